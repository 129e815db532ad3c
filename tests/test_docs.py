"""What the docs show runs."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from marginsieve import recipes
from marginsieve.cli import app
from marginsieve.study.suite import Suite

ROOT = Path(__file__).parents[1]


def test_the_suite_in_the_docs_is_one(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "bench.md").read_text(encoding="utf-8"), re.S)
    path = tmp_path / "suite.toml"
    path.write_text(block)
    suite = Suite.read(path)
    assert [method.label for method in suite.methods] == ["svm-rfe", "fisher-20"]
    assert len(suite.tables()) == 6


def test_the_null_gate_runs_every_recipe():
    suite = Suite.read(ROOT / "benchmarks" / "suites" / "null.toml")
    assert {method.recipe for method in suite.methods} == set(recipes.names())
    assert len(suite.tables()) == 20


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_links_between_pages_lead_somewhere(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target


def commands():
    """Every command line of the pages: in blocks of shell, or as code in the text with something after its name."""
    found = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"):
        if "_build" in page.parts or "gallery" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```sh\n(.*?)```", text, re.S):
            found |= {line.split("#")[0].strip() for line in block.splitlines() if line.startswith("marginsieve ")}
        found |= set(re.findall(r"`(marginsieve [a-z][^`|\n]*)`", text))
    return sorted(found)


@pytest.mark.parametrize("line", commands())
def test_every_command_of_the_pages_is_one(line):
    _, name, *words = shlex.split(line)
    command = typer.main.get_command(app).commands[name]
    if words and "--help" not in words:
        assert command.make_context(name, words).params


@pytest.mark.parametrize("page", ["mixed.md", "index.md"])
def test_the_python_of_a_page_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
    assert capsys.readouterr().out.strip()
