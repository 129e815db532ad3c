"""The documentation site: `make docs`."""

import warnings

from sphinx_gallery.scrapers import figure_rst

import marginsieve


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
autosummary_generate = True
napoleon_use_ivar = True
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "image_scrapers": (last_figure,),
    "capture_repr": (),
    "within_subsection_order": "FileNameSortKey",
}
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")
