"""What the docs show runs, and what they name exists."""

import csv
import importlib
import importlib.util
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import marginsieve
from marginsieve import recipes
from marginsieve.bench.suite import Suite
from marginsieve.cli.commands import app
from marginsieve.criteria import FILTERS
from marginsieve.engine import store
from marginsieve.estimators.persistence import FORMAT
from marginsieve.report.render import SCHEMA
from reproduction.catalogue import PAPERS
from reproduction.claims import VERDICTS
from reproduction.reproduce import claim_table

ROOT = Path(__file__).parents[1]
SOURCE = Path(marginsieve.__file__).parent
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md")
    if not {"_build", "gallery"} & set(path.parts)
)
OLD = {"CHANGELOG.md"}  # names what was renamed


def text_of(*names):
    return ROOT.joinpath(*names).read_text(encoding="utf-8")


def test_the_suite_in_the_docs_is_one(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", text_of("docs", "bench.md"), re.S)
    path = tmp_path / "suite.toml"
    path.write_text(block)
    suite = Suite.read(path)
    assert [method.label for method in suite.methods] == ["svm-rfe", "fisher-20"]
    assert len(suite.tables()) == 6


def test_the_null_gate_runs_every_recipe():
    suite = Suite.read(ROOT / "benchmarks" / "suites" / "null.toml")
    assert {method.recipe for method in suite.methods} == set(recipes.names("classes"))
    assert len(suite.tables()) == 20


def script(name):
    """A module of docs/ that writes a table."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def methods_table():
    return script("methods_table")


def test_the_page_of_options_is_that_of_the_study():
    page = text_of("docs", "options.md")
    assert page == script("options_table").filled(page), "run: python docs/options_table.py"
    assert page.count("\n| `--") == 44


def test_the_page_of_methods_is_that_of_the_recipes(methods_table):
    page = text_of("docs", "methods.md")
    assert page == methods_table.filled(page), "run: python docs/methods_table.py"


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_has_a_row(name):
    recipe = recipes.RECIPES[name]
    (row,) = re.findall(rf"^\| `{name}` \| `{recipe.title}` \|.*$", text_of("docs", "methods.md"), re.M)
    assert recipe.does in row


def test_a_recipe_that_is_missing_in_the_page_is_noticed(methods_table):
    page = text_of("docs", "methods.md")

    @recipes.register("guyon2002", family="elimination")
    def forgotten(**settings):
        """A recipe that no page has."""
        return recipes.svm_rfe(**settings)

    try:
        assert page != methods_table.filled(page)
    finally:
        del recipes.RECIPES["forgotten"]


@pytest.mark.parametrize("axis", ["kernel", "machine", "criterion", "search"])
def test_every_part_is_named_on_the_page_of_the_api(axis):
    """Which is made from what each folder has as public, with the names in its dictionary below each class."""
    part_names, page = script("part_names"), text_of("docs", "api.rst")
    folder = {"criterion": "criteria", "search": "searches"}.get(axis, f"{axis}s")
    (options,) = re.findall(rf"(?m)^\.\. automodule:: marginsieve\.{folder}\n((?:   .*\n)+)", page)
    assert ":members:\n" in options
    assert ":imported-members:" in options
    home = importlib.import_module(f"marginsieve.{folder}")
    shown = {entry for name in home.__all__ for entry in part_names.names_of(getattr(home, name))}
    registered = {f'{axis}="{name}"' for dictionary in part_names.PARTS[axis] for name in dictionary}
    assert shown == registered


def test_every_filter_is_named():
    """In the text about filters, which tells of some where they belong together, or with its class in the API."""
    page = text_of("docs", "elimination.md").split("## Filters")[1]
    named = set(re.findall(r'`"(\w+)"`', page))
    assert named <= set(FILTERS)
    assert len(named) >= 14
    assert "[API](api.rst)" in page


@pytest.mark.parametrize("name", list(FILTERS))
def test_the_line_of_a_part_stands_below_its_first_paragraph(name):
    lines = ["What it is.", "", "Examples"]
    cls = type(FILTERS[name]())
    script("part_names").add_names(None, "class", cls.__name__, cls, None, lines)
    assert lines == ["What it is.", "", f'By name: `criterion="{name}"`.', "", "Examples"]


def test_every_promise_names_the_test_that_holds_it():
    tests = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    text = text_of("docs", "reliability.md")
    rows = text.split("| fault | then | test |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`test_\w+` \|$", row)] == []
    assert set(re.findall(r"`(test_\w+)`", text)) <= tests


def test_actions_are_pinned_and_the_lock_has_hashes():
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    used = [line for path in workflows for line in path.read_text().splitlines() if "uses:" in line]
    assert len(used) > 10
    assert [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$", line)] == []
    lock = text_of("requirements.lock")
    entries = re.split(r"\n(?=[a-z])", lock.split("\n", 1)[1])
    assert [entry[:60] for entry in entries if "--hash=sha256:" not in entry or "==" not in entry] == []
    assert not re.search(r"://|^-", lock, re.M)  # no index, no path
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(name for extra in ("test", "docs", "release") for name in extras[extra])]
    locked = {re.split(r"[=\s;]", entry, maxsplit=1)[0] for entry in entries}
    assert {re.match(r"[\w-]+", name)[0].lower() for name in needed} <= locked


def test_the_versions_of_files_are_those_that_are_written():
    page = text_of("docs", "files.md")
    for name, number in (("model.marginsieve", FORMAT), ("result.json", SCHEMA), ("results.sqlite", store.SCHEMA)):
        assert re.search(rf"^\| `{re.escape(name)}` \| {number} \|", page, re.M), name
    assert f"`result.json`, schema {SCHEMA}." in text_of("docs", "result.md")
    assert f"Schema {store.SCHEMA}:" in text_of("docs", "bench.md")


def test_the_design_names_every_folder():
    page = text_of("docs", "design.md")
    folders = [path.parent.name for path in SOURCE.glob("*/__init__.py")]
    assert [name for name in folders if f"`{name}/`" not in page] == []


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.name)
def test_the_page_of_reproductions_has_every_claim_as_it_was_run(paper):
    with (ROOT / "docs" / "reproduction" / paper.name / "claims.csv").open(encoding="utf-8") as handle:
        claims = list(csv.DictReader(handle))
    if "honest" not in claims[0]:
        pytest.skip("the run that is kept has one column")
    assert [row["claim"] for row in claims] == [claim.text for claim in paper.claims]
    assert "\n".join(claim_table(claims)) in text_of("docs", "reproduction", paper.name, "report.md")
    verdicts = [row["verdict"] for row in claims]
    counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
    page = text_of("docs", "reproduction", "README.md")
    assert re.search(rf"^\| \[[^|]*\]\({paper.name}/report\.md\) \|.*\| {counts} \|$", page, re.M), counts


def test_one_version_everywhere():
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert f"\nversion: {version}\n" in text_of("CITATION.cff")
    assert re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.M)[1] == version


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OLD], ids=lambda path: path.name)
def test_names_and_files_of_the_package_exist(page):
    text = page.read_text(encoding="utf-8")
    for dotted in set(re.findall(r"`(marginsieve(?:\.\w+)+)", text)):
        if not dotted.endswith(".marginsieve"):
            assert resolved(dotted) is not None, dotted
    for name in set(re.findall(r"`((?:\w+/)?\w+\.py)`", text)):
        places = [ROOT / folder / name for folder in ("", "tests", "docs", "benchmarks", "src/marginsieve")]
        assert any(place.exists() for place in places) or list(SOURCE.rglob(name)), name


def resolved(dotted):
    """The object that a dotted name means: attributes, or modules where there is no such attribute."""
    value, path = marginsieve, "marginsieve"
    for part in dotted.split(".")[1:]:
        path += f".{part}"
        value = getattr(value, part, None) or importlib.import_module(path)
    return value


def commands():
    """Every command line of the pages: in blocks of shell, or as code in the text with something after its name."""
    found = set()
    for page in PAGES:
        if page.name in OLD:
            continue
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```sh\n(.*?)```", text, re.S):
            found |= {line.split("#")[0].strip() for line in block.splitlines() if line.startswith("marginsieve ")}
        found |= set(re.findall(r"`(marginsieve [a-z][^`|\n]*)`", text))
    # kept reports name the command of the version that made them
    return sorted(line for line in found if not line.startswith("marginsieve reproduce "))


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_pages_is_one(line):
    _, name, *words = shlex.split(line)
    command = typer.main.get_command(app).commands[name]
    if words and "--help" not in words:
        assert command.make_context(name, words).params


@pytest.mark.parametrize("page", ["index.md", pytest.param("mixed.md", marks=pytest.mark.long)])
def test_the_python_of_a_page_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", text_of("docs", page), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")))
def test_benchmarks_import(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    try:
        assert importlib.import_module(f"benchmarks.{name}").__doc__
    finally:
        for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == "benchmarks"]:
            del sys.modules[loaded]


def test_the_help_of_a_command_keeps_its_brackets():
    text = CliRunner().invoke(app, ["bench", "--help"]).output
    assert "[[data]], [[method]]" in text
