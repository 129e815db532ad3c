"""A section of the report, an analysis and a file format, each really added, in as many places as CONTRIBUTING says."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from typer.testing import CliRunner

import marginsieve
from marginsieve.cli.commands import app
from marginsieve.data import make_cohort
from marginsieve.data.reading import READERS, read_table, register_reader
from marginsieve.errors import InputError
from marginsieve.report import SECTIONS, register_section, render
from marginsieve.report.sections import load_plugins
from marginsieve.studies.analysis import ANALYSES


def test_a_file_format_is_one_reader(tmp_path):
    cohort = make_cohort(30, 5, n_relevant=1, random_state=0)
    path = tmp_path / "table.jsonl"
    cohort.frame().to_json(path, orient="records", lines=True)
    with pytest.raises(InputError, match=r"ends in '\.jsonl'; it must end in \.csv"):
        read_table(path)

    @register_reader(".jsonl")
    def read_lines(path, options):
        assert options.target == "outcome"
        return pd.read_json(path, lines=True)

    try:
        frame = read_table(path, target="outcome")
    finally:
        del READERS[".jsonl"]
    pd.testing.assert_frame_equal(frame[cohort.X.columns], cohort.X, check_dtype=False)


def test_a_section_of_the_report_is_one_function():
    cohort = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    result = marginsieve.study(
        cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, without=("suspects", "references"), n_permutations=24
    ).result

    @register_section("Weather <today>")
    def weather(result):
        return Markup("<p>{} rows under the sky</p>").format(result["table"]["rows"])

    @register_section("Nothing to show")
    def nothing(result):
        return None

    try:
        page = render(result)
    finally:
        del SECTIONS["Weather <today>"], SECTIONS["Nothing to show"]
    assert '<h2 id="weather-today">Weather &lt;today&gt;</h2>\n<p>40 rows under the sky</p>' in page
    assert '<a href="#weather-today">Weather &lt;today&gt;</a>' in page
    assert page.index('id="data"') < page.index('id="weather-today"') < page.index('id="how"')
    assert "Nothing to show" not in page
    assert "under the sky" not in render(result)


NEAREST = '''
"""How far the nearest row of the same class is: an analysis in one file."""

import numpy as np
from marginsieve.studies.analysis import register_analysis


@register_analysis
class Nearest:
    name, order = "nearest-rows", 75.0
    template = """{# 75: Nearest <rows> #}
{% set a = r.analyses["nearest-rows"] %}
{% if a %}<p>{{ a.median | num }} to the nearest row</p>{% endif %}"""

    def applies(self, facts):
        return None if facts.shape.rows <= 1000 else "there are more than 1,000 rows"

    def cost(self, facts):
        return 1e-6 * facts.shape.rows**2

    def run(self, run):
        Z = run.data.X.to_numpy(dtype=float)
        gaps = np.sqrt(((Z[:, None] - Z[None]) ** 2).sum(axis=2)) + 1e9 * np.eye(len(Z))
        return {"median": np.median(gaps.min(axis=1)), "evident": run.evident}

    def sentence(self, result):
        return f"The nearest row is {result['analyses'][self.name]['median']:.2f} away."

    def doubt(self, result):
        return "rows are far from each other" if result["analyses"][self.name]["median"] > 1 else None
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package that has an analysis and a section; what it registers is forgotten afterwards."""
    (tmp_path / "nearest_rows.py").write_text(NEAREST)
    (tmp_path / "weather_report.py").write_text(
        "from markupsafe import Markup\nfrom marginsieve.report import register_section\n\n"
        "@register_section('Weather', place=15)\ndef weather(result):\n    return Markup('<p>It rains.</p>')\n"
    )
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[marginsieve.analyses]\nnearest = nearest_rows\n\n[marginsieve.sections]\nweather = weather_report\n"
    )
    before = dict(ANALYSES), dict(SECTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins.cache_clear()
    yield
    monkeypatch.undo()
    for registry, entries in zip((ANALYSES, SECTIONS), before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in ("nearest_rows", "weather_report"):
        sys.modules.pop(name, None)
    load_plugins.cache_clear()


@pytest.mark.usefixtures("plugin")
def test_an_analysis_is_one_file(tmp_path):
    cohort = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "n_permutations": 24}
    study = marginsieve.study(cohort.X, cohort.y, without=("suspects", "references"), **settings)
    result = json.loads(json.dumps(study.result))
    median = result["analyses"]["nearest-rows"]["median"]
    assert median > 0
    assert result["protocol"]["plan"]["analyses"]["nearest-rows"] == []
    assert f"The nearest row is {median:.2f} away." in result["answer"]["sentences"]
    assert "rows are far from each other" in result["answer"]["doubts"]
    page = render(result)
    assert '<a href="#nearest-rows">Nearest &lt;rows&gt;</a>' in page
    assert page.index('id="methods"') < page.index('id="nearest-rows"') < page.index('id="suspects"')
    assert page.index('id="sizes"') < page.index('id="weather"') < page.index('id="features"')
    assert page.count("It rains.") == 1
    other = marginsieve.study(cohort.X, cohort.y, without=("suspects", "references", "nearest-rows"), **settings)
    assert other.result["analyses"]["nearest-rows"] is None
    assert other.result["protocol"]["left_out"]["nearest-rows"] == "it was not asked for"
    assert "nearest" not in other.html().lower().replace("neighbour", "")
    assert other.result["scores"] == study.result["scores"]
    again = marginsieve.study(cohort.X, cohort.y, methods="fisher", plan=result["protocol"]["plan"], cv=3)
    assert again.result["analyses"]["nearest-rows"] == result["analyses"]["nearest-rows"]


@pytest.mark.usefixtures("plugin")
def test_the_command_has_the_analyses_of_other_packages(tmp_path):
    table = tmp_path / "t.csv"
    make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0).frame().to_csv(table, index=False)
    words = ["select", str(table), "--target", "outcome", "--methods", "fisher", "--cv", "3", "--n-repeats", "1"]
    words += ["--n-permutations", "24", "--without", "suspects,references", "--out", str(tmp_path / "r")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert "The nearest row is" in " ".join(answer.output.split())
    page = (tmp_path / "r" / "report.html").read_text()
    assert 'id="nearest-rows"' in page
    assert "It rains." in page


@pytest.mark.usefixtures("plugin")
def test_analyses_that_cannot_be_run_or_left_out_are_refused():
    cohort = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    y = cohort.y.astype(str).where(np.arange(40) % 5 > 0, "third")
    for labels, settings, sentence in (
        (cohort.y, {"without": "nothing"}, "it must be one of 'evidence', 'effects', 'false-share', 'substitutes'"),
        (cohort.y, {"with_": "nothing"}, "with_ is 'nothing'"),
        (cohort.y, {"without": "evidence"}, "without is 'evidence', which decides what can be said"),
        (cohort.y, {"with_": "costs"}, "with_ names 'costs', which cannot be run: no costs were given"),
        (
            y,
            {"with_": "other-lists"},
            "with_ names 'other-lists', which cannot be run: there are more than two classes",
        ),
    ):
        with pytest.raises(InputError, match=sentence):
            marginsieve.study(cohort.X, labels, methods="fisher", **settings)


def test_a_plugin_that_breaks_is_named_and_left_out(tmp_path, monkeypatch):
    (tmp_path / "broken_plugin.py").write_text("raise RuntimeError('no luck')\n")
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marginsieve.sections]\nbad = broken_plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins.cache_clear()
    with pytest.warns(UserWarning, match="the plug-in 'bad' cannot be loaded: no luck"):
        load_plugins("marginsieve.sections")
    load_plugins.cache_clear()


def test_templates_can_be_read():
    folder = Path(marginsieve.__file__).parent / "report" / "templates"
    long = [path.name for path in folder.rglob("*.*") if any(len(line) > 160 for line in path.read_text().splitlines())]
    assert long == []
