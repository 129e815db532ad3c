"""The documentation site: `make docs`."""

import re
import sys
import warnings
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

import marginsieve

sys.path.insert(0, str(Path(__file__).parent))
from part_names import add_names


def last_figure(_block, block_vars, gallery_conf):
    """Our figures are matplotlib's own, made without pyplot: what a block ends with is shown."""
    figure = block_vars["example_globals"].get("___")
    if not hasattr(figure, "savefig"):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=110)
    block_vars["example_globals"]["___"] = None
    return figure_rst([path], gallery_conf["src_dir"])


project = "marginsieve"
author = "The marginsieve developers"
copyright = author
version = release = marginsieve.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "marginsieve"
exclude_patterns = ["_build", "figures"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "myst.header", "config.cache"]  # pages also link to files of the repository
autodoc_typehints = "none"
default_role = "literal"
autosummary_generate = True
napoleon_use_ivar = True
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # they would differ from build to build
    "image_scrapers": (last_figure,),
    "capture_repr": (),
    "within_subsection_order": "FileNameSortKey",
}
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")


def plain_text(_app, _what, _name, _obj, _options, lines):
    """Docstrings are plain text: bars and underscores of formulas are no markup, indented formulas are literal."""
    out, example, literal, sections = [], False, False, False
    for line in lines:
        text = line.strip()
        example = (example and bool(text)) or text.startswith(">>>")
        sections = sections or set(text) == {"-"}
        if line.startswith("    ") and not (example or literal or sections) and out and not out[-1]:
            if not out[-2:-1] or not out[-2].endswith("::"):
                out += ["::", ""]
            literal = True
        literal = literal and (line.startswith("    ") or not text)
        out.append(line if example or literal else _escaped(line))
    lines[:] = out


def _escaped(line):
    parts = line.split("`")
    parts[::2] = [
        re.sub(r"\w_(?!\w)", lambda found: found[0][0] + r"\_", part).replace("|", r"\|") for part in parts[::2]
    ]
    return "`".join(parts)


def setup(app):
    """Before napoleon, which makes markup of the sections."""
    app.connect("autodoc-process-docstring", add_names, priority=300)
    app.connect("autodoc-process-docstring", plain_text, priority=400)
