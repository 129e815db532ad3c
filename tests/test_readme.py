"""What the README promises."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short():
    assert len(README.split()) <= 450


def test_the_python_example_runs():
    (block,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(block.strip().splitlines()) <= 12
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {})
    assert re.search(r"AUC 0\.[89]\d", printed.getvalue())


def test_both_commands_are_there_and_have_a_target():
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"`make {command}`" in README
        assert re.search(rf"^{command}:", make, re.M)


def test_the_picture_is_there_and_small():
    (target,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    picture = (ROOT / target).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
