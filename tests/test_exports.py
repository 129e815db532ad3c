"""Tables, figures and the checklist to paste: the numbers are those of the study, under the same names everywhere."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from marginsieve import study
from marginsieve.cli import main
from marginsieve.data import make_cohort
from marginsieve.report.checklist import ITEMS, checklist_rows
from marginsieve.report.exports import FEATURE_COLUMNS, chart_rows, figure_files, table_files
from marginsieve.studies.files import write_exports


@pytest.fixture(scope="module")
def done():
    cohort = make_cohort(90, 12, n_relevant=3, effect=2.0, n_categorical=2, n_categorical_relevant=1, random_state=0)
    X = cohort.X.rename(columns={"g03": "a_b & c%"})
    return study(
        X, cohort.y, methods="clinical-rfe", cv=3, n_repeats=1, without=["suspects", "references"], keep=["c1"]
    )


def read_csv(content):
    return pd.read_csv(io.BytesIO(content))


def test_the_table_of_features_is_that_of_the_frame_under_its_names(done):
    table = read_csv(table_files(done.result)["features.csv"])
    assert set(table.columns) <= set(done.features.columns)
    assert {"rank", "name", "part", "frequency", "effect", "effect_low", "effect_high", "effect_is"} <= {*table}
    ours = done.features.query("selected").reset_index(drop=True)
    table["substitutes"] = table["substitutes"].astype(object).fillna("")
    pd.testing.assert_frame_equal(table, ours[list(table.columns)], check_dtype=False)
    assert set(FEATURE_COLUMNS) - {"effect"} <= set(done.result["features"][0])


def test_scores_are_those_of_the_result(done):
    table = read_csv(table_files(done.result)["scores.csv"]).set_index(["method", "score"])
    for method in done.result["methods"]:
        for name, score in method["scores"].items():
            row = table.loc[(method["title"], name)]
            assert row["value"] == pytest.approx(score["value"])
            assert row["low"] == pytest.approx(score["low"], nan_ok=True)


class Cells(HTMLParser):
    """The cells of a table of HTML."""

    def __init__(self):
        super().__init__()
        self.cells, self.inside = [], False

    def handle_starttag(self, tag, attrs):
        self.inside = tag in ("td", "th")
        self.cells += [""] * self.inside

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


def test_html_and_latex_hold_the_names_as_they_are(done):
    files = table_files(done.result)
    parser = Cells()
    parser.feed(files["features.html"].decode())
    assert "a_b & c%" in parser.cells
    assert r"a\_b \& c\%" in files["features.tex"].decode()
    lines = [line for line in files["features.tex"].decode().splitlines() if line.endswith(r"\\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1  # as many cells in every row


def test_numbers_of_charts_are_those_of_the_predictions(done):
    curve = pd.DataFrame(chart_rows(done.result)["roc"]).query("features == 'main'")
    area = np.trapezoid(curve["true_positive_rate"], curve["false_positive_rate"])
    positive = done.predictions["label"] == done.result["table"]["positive"]
    assert area == pytest.approx(roc_auc_score(positive, done.predictions["decision"]), abs=0.02)
    shares = pd.DataFrame(chart_rows(done.result)["values"]).query("name.str.startswith('c')")
    assert np.allclose(shares.groupby(["name", "label"])["number"].sum(), 1.0)


def test_the_page_has_the_numbers_of_each_chart(done):
    links = dict(re.findall(r'download="([\w-]+)\.csv" href="data:text/csv;base64,([\w+/=]+)"', done.html()))
    assert {"roc", "precision-recall", "calibration", "sizes", "values"} <= set(links)
    files = table_files(done.result)
    for name, data in links.items():
        assert base64.b64decode(data) == files[f"chart-{name}.csv"]


def test_bars_of_categories_carry_their_levels(done):
    feature = next(each for each in done.result["features"] if each["kind"] == "nominal")
    row = done.html().split(f'name, part">{feature["name"]}')[1].split("</tr>")[0]
    shown = re.findall(r'class="level-name"[^>]*>([^<]+)<', row)
    assert set(shown) <= set(feature["plot"]["levels"])
    assert shown


def test_figures_are_vectors_and_pictures_for_print(done):
    pytest.importorskip("matplotlib", reason="needs the extra marginsieve[plot]")
    from PIL import Image

    files = figure_files(done.result)
    assert {"sizes.svg", "sizes.png", "roc.svg", "roc.png", "features.svg"} <= set(files)
    assert "agreement.svg" not in files
    picture = Image.open(io.BytesIO(files["roc.png"]))
    assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    assert files["roc.svg"].startswith(b"<?xml")
    assert files == figure_files(done.result)  # equal figures have equal files


def test_the_checklist_has_52_items_and_says_what_the_study_knows(done):
    rows = checklist_rows(done.result)
    assert [row["item"] for row in rows] == [item for item, *_ in ITEMS]
    numbers = [int(re.match(r"\d+", row["item"])[0]) for row in rows]
    assert len({row["item"] for row in rows}) == 52
    assert sorted(set(numbers)) == list(range(1, 28))
    assert sum(bool(row["study"]) for row in rows) >= 24
    assert all(row["study"] or row["authors"] for row in rows)
    by_item = {row["item"]: row["study"] for row in rows}
    assert "90 rows" in by_item["20a"]
    assert done.result["models"]["model.marginsieve"][:12] in by_item["22"]


@pytest.mark.parametrize("outcome", ["numbers", "survival", "three"])
def test_other_outcomes_have_tables_and_a_checklist_too(outcome):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 5)), columns=list("abcde"))
    strength = X["a"] + 0.5 * rng.normal(size=80)
    y = {
        "numbers": strength,
        "survival": pd.DataFrame({"time": np.exp(-strength), "event": rng.random(80) < 0.8}),
        "three": pd.cut(strength, 3, labels=["low", "mid", "high"]).astype(str),
    }[outcome]
    how = {} if outcome == "three" else {"outcome": outcome}
    result = study(
        X, y, methods="fisher", cv=3, n_repeats=1, n_features_to_select=2, without=["references"], **how
    ).result
    files = table_files(result)
    assert len(read_csv(files["tripod-ai.csv"])) == 52
    assert sum(bool(row["study"]) for row in checklist_rows(result)) >= 24
    chart = {"numbers": "agreement", "survival": "survival", "three": "values"}[outcome]
    assert len(read_csv(files[f"chart-{chart}.csv"])) > 1
    assert ("confusion.csv" in files) == (outcome == "three")


def test_the_command_writes_what_the_function_does(done, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra marginsieve[plot]")
    done.save(tmp_path / "r")
    folders = [str(tmp_path / name) for name in ("figures", "tables")]
    words = ["marginsieve", "report", str(tmp_path / "r"), "--figures", folders[0], "--tables", folders[1]]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert f"written: {folders[1]}" in capsys.readouterr().out.replace("\n", "")
    for name, content in table_files(done.result).items():
        assert (tmp_path / "tables" / name).read_bytes() == content
    assert (tmp_path / "figures" / "roc.png").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "scores.csv").write_text("of somebody else")
    with pytest.raises(ValueError, match=r"holds 'scores.csv', which marginsieve did not write"):
        write_exports(done.result, None, tmp_path / "other")
