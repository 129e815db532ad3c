"""Tables as people have them: workbooks, letters of other scripts, dates, free text, AnnData, columns in any order."""

import datetime
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import marginsieve
from marginsieve import recipes, study
from marginsieve.data import make_cohort
from marginsieve.data.dates import find_order
from marginsieve.data.ledger import Ledger
from marginsieve.data.reading import read_table
from marginsieve.errors import InputError
from marginsieve.studies.study_data import from_arrays, from_frame

QUICK = {"methods": "fisher", "n_features_to_select": 2, "cv": 3, "n_repeats": 1, "without": ["suspects", "references"]}
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


# -- workbooks --------------------------------------------------------------------------------------------------------


def cell_xml(place, value):
    """One cell of a sheet, by the type of its value."""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime.date):
        return f'<c r="{place}" s="1"><v>{(value - datetime.date(1899, 12, 30)).days}</v></c>'
    if isinstance(value, (int, float)):
        return f'<c r="{place}"><v>{value}</v></c>'
    if value.startswith("#"):
        return f'<c r="{place}" t="e"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def write_workbook(path, **sheets):
    """An .xlsx file of sheets, each a list of rows, by the standard's own words."""
    parts, relations, entries = {}, [], []
    for k, (name, rows) in enumerate(sheets.items(), 1):
        lines = []
        for i, row in enumerate(rows, 1):
            cells = [cell_xml(f"{chr(65 + j)}{i}", value) for j, value in enumerate(row) if value is not None]
            lines.append(f'<row r="{i}">{"".join(cells)}</row>')
        sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
        parts[f"xl/worksheets/sheet{k}.xml"] = sheet
        relations.append(f'<Relationship Id="r{k}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{k}.xml"/>')
        entries.append(f'<sheet name="{name}" sheetId="{k}" r:id="r{k}"/>')
    relations.append(f'<Relationship Id="s" Type="{OFFICE}/styles" Target="styles.xml"/>')
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{"".join(entries)}</sheets></workbook>'
    )
    relation = f'<Relationships xmlns="{PACKAGE}/relationships">%s</Relationships>'
    parts["xl/_rels/workbook.xml.rels"] = relation % "".join(relations)
    parts["_rels/.rels"] = relation % f'<Relationship Id="w" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    formats = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs>'
    parts["xl/styles.xml"] = f'<styleSheet xmlns="{MAIN}">{formats}</styleSheet>'
    parts["[Content_Types].xml"] = (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def test_a_workbook_is_the_table_that_the_same_cells_are_as_csv(tmp_path):
    pytest.importorskip("python_calamine", reason="needs the extra marginsieve[excel]")
    frame = pd.DataFrame({"n": [1, 2, 3], "x": [0.5, None, 2.0], "sex": ["f", "m", None], "ok": [True, False, True]})
    frame["y"] = ["u", "v", "u"]
    rows = [list(frame), *frame.astype(object).where(frame.notna(), None).values.tolist()]
    path = write_workbook(tmp_path / "t.xlsx", data=rows)
    frame.to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(read_table(path), read_table(tmp_path / "t.csv"), check_dtype=False)
    assert [read_table(path)[name].dtype.kind for name in "nx"] == ["i", "f"]


def test_what_a_workbook_loses_is_said(tmp_path):
    pytest.importorskip("python_calamine", reason="needs the extra marginsieve[excel]")
    day = datetime.date(2020, 2, 29)
    rows = [["when", "x", "word"], [day, 1, "NA"], [None] * 3, [None, "#DIV/0!", "low"]]
    path, ledger = write_workbook(tmp_path / "t.xlsx", notes=[], data=rows, other=[["z"], [7]]), Ledger()
    frame = read_table(path, ledger=ledger)
    assert frame["when"].tolist()[0] == pd.Timestamp(day)
    assert frame.isna().to_numpy().tolist() == [[False, False, True], [True, True, False]]
    assert ledger.lines.tolist() == [2, 4]  # of the sheet
    assert ledger.count() == {"rows dropped": 1, "cells converted": 1}
    kinds = [kind for kind, *_ in ledger.remarks]
    assert sorted(kinds) == ["marks", "marks", "sheet"]
    assert read_table(path, sheet="other")["z"].tolist() == [7]
    with pytest.raises(InputError, match=r"sheet is 'gone'; 't.xlsx' has 'notes', 'data', 'other'"):
        read_table(path, sheet="gone")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([["Study of 2020"], ["a", "b", "c"], [1, 2, 3]], "names 1 of 3 columns: it must name every column"),
        ([["a", "a"], [1, 2]], "has columns of the same name: 'a'"),
        ([], "is empty"),
        ([["a", "b"]], "0 rows and 2 columns"),
    ],
)
def test_a_sheet_that_is_no_table_is_refused(rows, sentence, tmp_path):
    pytest.importorskip("python_calamine", reason="needs the extra marginsieve[excel]")
    with pytest.raises(InputError, match=sentence):
        read_table(write_workbook(tmp_path / "t.xlsx", data=rows))


def test_a_workbook_without_its_extra_names_it(tmp_path, monkeypatch):
    path = write_workbook(tmp_path / "t.xlsx", data=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InputError, match=r"pip install 'marginsieve\[excel\]'"):
        read_table(path)


def test_a_sheet_of_what_has_none_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"sheet is 'x', and 't.csv' has none"):
        read_table(tmp_path / "t.csv", sheet="x")


# -- letters ----------------------------------------------------------------------------------------------------------

WORDS = {
    "gbk": ["年龄", "性别", "高血压", "正常", "北京", "肿瘤", "患者"],
    "shift_jis": ["年齢", "性別", "高血圧", "がん", "ステージ", "正常", "東京"],
    "big5": ["年齡", "性別", "高血壓", "正常", "台北", "腫瘤", "患者"],
    "euc_kr": ["나이", "성별", "고혈압", "정상", "서울", "종양", "환자"],
    "cp1251": ["возраст", "пол", "больной", "норма", "опухоль", "Москва"],
}


@pytest.mark.parametrize("encoding", WORDS)
def test_other_scripts_are_read_right_and_it_is_said(encoding, tmp_path):
    words, path, ledger = WORDS[encoding], tmp_path / "t.csv", Ledger()
    frame = pd.DataFrame({words[0]: np.arange(40) / 7, words[1]: np.resize(words[2:], 40)})
    frame["y"] = np.resize(["a", "b"], 40)
    frame.to_csv(path, index=False, encoding=encoding)
    pd.testing.assert_frame_equal(read_table(path, ledger=ledger), frame, check_dtype=False)
    ((kind, level, text, _),) = ledger.remarks
    assert kind == "encoding"
    assert (level == "alarm") == ("it could be" in text)


def test_unsure_letters_are_an_alarm(tmp_path):
    (tmp_path / "t.csv").write_bytes("x,s\n1,男\n2,女\n3,男\n".encode("gbk"))
    ledger = Ledger()
    read_table(tmp_path / "t.csv", ledger=ledger)
    ((kind, level, text, _),) = ledger.remarks
    assert (kind, level) == ("encoding", "alarm")
    assert "it could be" in text


# -- dates and free text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["2020-02-29", "1999/1/5"], "year first"),
        (["29/02/2020", "01/03/2020"], "day first"),
        (["02/29/2020", "03/01/2020"], "month first"),
        (["1.2.2020", "3.4.2020"], "day first"),
        (["01/02/2020", "03/04/2020"], "unknown"),
        (["2020-02-29", "x"], None),
        (["45/02/2020"], None),
        ([], None),
    ],
)
def test_the_order_of_dates(cells, order):
    assert find_order(pd.Series(cells, dtype=object)) == order


def dated_table(write):
    """A table in which a date decides, and its text or times."""
    rng = np.random.default_rng(0)
    days = rng.permutation(120) * 3
    when = pd.Series(pd.Timestamp("2019-12-31") + pd.to_timedelta(days, unit="D"))
    X = pd.DataFrame({"a": rng.normal(size=120), "when": write(when), "b": rng.normal(size=120)})
    return X, np.where(days + rng.normal(size=120) * 40 > 180, "late", "early"), days


@pytest.mark.parametrize("style", ["times", "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y 06:00"])
def test_dates_are_days_since_the_first_also_of_new_rows(style):
    X, y, days = dated_table(lambda when: when if style == "times" else when.dt.strftime(style))
    data = from_arrays(X, y)
    shift = 0.25 if style.endswith("06:00") else 0.0
    assert np.allclose(data.X["when"], days - days.min() + shift)
    assert "dates" in [finding.kind for finding in data.findings if finding.columns == ("when",)]
    done = study(X, y, **QUICK)
    assert done.features["name"][0] == "when"
    rows = [5, 2, 9]  # none of them the first: the first day is that of the training
    new = done.predict(X.iloc[rows, ::-1]).table["score"]
    assert np.allclose(new, done.predict(X).table["score"].iloc[rows])


def test_a_model_with_dates_comes_back_from_its_file(tmp_path):
    X, y, _ = dated_table(lambda when: when.dt.strftime("%d/%m/%Y"))
    done = study(X, y, **QUICK)
    model = marginsieve.load(marginsieve.save(done.model, tmp_path / "m.marginsieve"))
    pd.testing.assert_frame_equal(marginsieve.predict(model, X).table, done.predict(X).table)
    with pytest.raises(
        InputError, match=r"column 'when' holds '2020-01-01' in row 1, and the model was trained on dates"
    ):
        marginsieve.predict(model, X.assign(when="2020-01-01"))


def test_dates_that_cannot_be_told_are_left_out_and_named():
    X, y, _ = dated_table(lambda _: pd.Series(["01/02/2020", "03/04/2020"] * 60))
    data = from_arrays(X, y)
    assert "when" not in data.X
    assert any("days and months cannot be told apart" in finding.text for finding in data.findings)


def test_free_text_is_named_and_left_out():
    rng = np.random.default_rng(0)
    words = np.array(["pain", "left", "since", "days", "no", "fever", "seen", "again", "cough"])
    said = [" ".join(rng.choice(words, 6)) + f" {k}" for k in range(60)]
    X = pd.DataFrame({"x": rng.normal(size=60), "said": said, "town": [f"T{k // 2}" for k in range(60)]})
    data = from_arrays(X, np.tile(["a", "b"], 30))
    assert list(data.X.columns) == ["x"]
    kinds = {finding.columns: finding.kind for finding in data.findings if finding.columns}
    assert kinds[("said",)] == "prose"
    assert kinds[("town",)] == "levels"
    assert data.ids == ()


# -- AnnData ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def annotated():
    anndata = pytest.importorskip("anndata", reason="needs the extra marginsieve[anndata]")
    from scipy import sparse

    cohort = make_cohort(60, 12, n_relevant=2, effect=2.5, random_state=0)
    X = cohort.X.to_numpy()
    obs = pd.DataFrame({"state": np.asarray(cohort.y), "site": np.tile(["p", "q"], 30)})
    obs.index = [f"cell{k}" for k in range(60)]
    var = pd.DataFrame(index=list(cohort.X.columns))
    zero = np.zeros_like(X)
    return anndata.AnnData(zero, obs=obs, var=var, layers={"log": sparse.csr_matrix(X)}), cohort


def test_a_layer_of_anndata_is_the_table(annotated, tmp_path):
    data, cohort = annotated
    done = study(data, "state", layer="log", **QUICK)
    plain = study(cohort.X.set_axis(data.obs_names), pd.Series(np.asarray(cohort.y), name="state"), **QUICK)
    assert done.result["scores"] == plain.result["scores"]
    assert np.allclose(done.predict(data).table["score"], plain.predict(cohort.X).table["score"])
    data.write_h5ad(tmp_path / "t.h5ad")
    frame = read_table(tmp_path / "t.h5ad", target="state", layer="log")
    assert np.allclose(frame[list(cohort.X.columns)], cohort.X)
    with pytest.raises(InputError, match=r"layer is 'raw'; 't.h5ad' has 'log'"):
        read_table(tmp_path / "t.h5ad", target="state", layer="raw")
    with pytest.raises(InputError, match=r"y is 'gone'; the obs of the AnnData object has 'state', 'site'"):
        study(data, "gone")


def test_anndata_that_stays_in_its_file_is_studied(annotated, tmp_path):
    import anndata

    data, cohort = annotated
    data.X = cohort.X.to_numpy()
    data.write_h5ad(tmp_path / "t.h5ad")
    backed = anndata.read_h5ad(tmp_path / "t.h5ad", backed="r")
    done = study(backed, "state", **QUICK)
    assert sorted(done.model.get_feature_names_out()) == sorted(
        study(cohort.X, cohort.y, **QUICK).model.get_feature_names_out()
    )
    assert len(done.predict(backed).table) == 60


def test_a_layer_of_what_has_none_is_refused():
    with pytest.raises(InputError, match="layer is 'log', and X is DataFrame: AnnData has layers"):
        study(pd.DataFrame({"x": [1.0]}), [0], layer="log")


# -- columns in any order ---------------------------------------------------------------------------------------------


def test_a_study_predicts_by_name_and_an_estimator_says_how():
    cohort = make_cohort(60, 8, n_relevant=2, effect=2.0, random_state=0)
    done = study(cohort.X, cohort.y, **QUICK)
    turned = cohort.X[cohort.X.columns[::-1]]
    pd.testing.assert_frame_equal(done.predict(turned).table, done.predict(cohort.X).table)
    with pytest.raises(ValueError, match=r"X\[model.feature_names_in_\] puts them in order"):
        done.model.predict(turned)
    with pytest.raises(ValueError, match="feature names") as lacking:
        done.model.predict(turned.iloc[:, 1:])
    assert "puts them in order" not in str(lacking.value)


@pytest.mark.parametrize("positive", ["case", "control"])
def test_the_score_has_the_sign_of_the_decision_function(positive):
    cohort = make_cohort(60, 6, n_relevant=2, effect=2.0, random_state=0)
    model = recipes.fisher(n_features_to_select=2, positive=positive, random_state=0).fit(cohort.X, cohort.y)
    score = marginsieve.predict(model, cohort.X).table["score"]
    assert np.allclose(score, model.decision_function(cohort.X))


def test_a_frame_with_its_target_is_read_as_before():
    """Whole numbers of a workbook are whole: labels 0 and 1 stay what they are."""
    frame = pd.DataFrame({"x": np.arange(20.0), "y": [0, 1] * 10})
    assert from_frame(frame, "y").y.tolist() == [0, 1] * 10
