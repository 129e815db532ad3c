"""What reading changes is recorded with its place, or refused with it; nothing is lost, cut or guessed in silence."""

import gzip
import json
import sys
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from marginsieve import InputError, load, predict, recipes, save, study
from marginsieve.cli import commands
from marginsieve.data import reading, stored
from marginsieve.data.ledger import Ledger, format_counts
from marginsieve.data.reading import read_table
from marginsieve.studies.study_data import find_ids, from_arrays, from_frame

ROWS = 40
CASE = np.arange(ROWS) % 2 == 0
QUICK = {"methods": "fisher", "cv": 2, "n_repeats": 1}
QUICK["without"] = ("suspects", "references", "false-share", "substitutes", "other-lists", "effects")


def draw(columns=3):
    """Numbers of which the first column tells the classes, in four digits."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(ROWS, columns)).round(4))
    X.columns = [f"g{j}" for j in range(columns)]
    return X.assign(g0=(X["g0"] + 2 * CASE).round(4))


def read_study(path, target="y", **how):
    """A file as a study reads it."""
    ledger = Ledger()
    return from_frame(read_table(path, target=target, ledger=ledger, **how), target, ledger=ledger)


def places(data, *columns):
    """The places that the ledger names."""
    return data.ledger.table()[list(columns)].astype(object).values.tolist()


@pytest.fixture
def table(tmp_path):
    """The path of a file that a function of its cells, as text, has changed."""

    def write(change=lambda frame: frame, name="t.csv", **how):
        frame = change(draw().astype(str).assign(y=np.where(CASE, "case", "control")))
        frame.to_csv(tmp_path / name, index=False, **how)
        return tmp_path / name

    return write


def put(cell, row=6, column="g1"):
    """A change of one cell."""

    def change(frame):
        frame.loc[row, column] = cell
        return frame

    return change


def test_a_clean_table_has_an_empty_ledger(table):
    data = read_study(table())
    assert data.ledger.count() == {}
    assert data.ledger.summarize() == {"counts": {}, "columns": [], "places": []}
    assert data.findings == ()


# -- NUL bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_a_nul_far_down_is_refused_with_its_place(packed, tmp_path):
    rows = b"1.209546368996,2,u\n" * 250_000  # beyond the 4 MiB that are looked at first
    content = b"a,b,y\n" + rows + b"3," + b"1.2\x0009546368996,u\n" + b"4,5,v\n"
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    with pytest.raises(InputError, match=r"not a text file: there is a NUL byte in line 250,002, field 2;"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_nul_near_the_top_is_refused_with_its_place(encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes('a;b;y\n1;"x;y";u\n1;2\x00;v\n'.encode(encoding))
    with pytest.raises(InputError, match="NUL byte in line 3, field 2"):
        read_table(tmp_path / "t.csv")


# -- labels -----------------------------------------------------------------------------------------------------------

LARGE = np.array([2**53, 2**53 + 1, 7])[np.arange(ROWS) % 3]
LABELS = {
    "Int64": pd.Series(LARGE, dtype="Int64"),
    "Int64 in a table": pd.DataFrame({"y": pd.Series(LARGE, dtype="Int64")}),
    "boolean": pd.Series(CASE, dtype="boolean"),
    "boolean in a table": pd.DataFrame({"y": pd.Series(CASE, dtype="boolean")}),
    "boolean array": pd.array(CASE, dtype="boolean"),
    "arrow booleans": pd.DataFrame({"y": pd.Series(CASE, dtype="bool[pyarrow]")}),
    "booleans as objects": np.array(CASE, dtype=object),
    "polars": pl.DataFrame({"y": CASE}),
    "arrow": pa.table({"y": CASE.tolist()}),
    "numbers of categories": pd.Categorical(np.where(CASE, 3, 5)),
    "Decimal": pd.Series([Decimal("0.1") if case else Decimal(2) for case in CASE]),
}
CLASSES = {"Int64": [7, 2**53, 2**53 + 1], "numbers": [3, 5], "Decimal": [Decimal("0.1"), Decimal(2)]}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_in_the_type_given(name, tmp_path):
    X, y, classes = draw(), LABELS[name], CLASSES.get(name.split()[0], [False, True])
    models = {"fit": recipes.fisher(n_features_to_select=2, threshold="margin").fit(X, y)}
    models["study"] = from_arrays(X, y).y
    models["file"] = load(save(models["fit"], tmp_path / "m.marginsieve"))
    for place in ("fit", "file"):
        assert models[place].classes_.tolist() == classes
        assert {type(label) for label in models[place].predict(X).tolist()} == {type(classes[0])}
    assert sorted(set(models["study"].tolist())) == classes
    assert {type(label) for label in models["study"].tolist()} == {type(classes[0])}


def test_a_study_predicts_labels_of_the_type_given():
    y = LABELS["Decimal"]
    assert set(study(draw(), y, **QUICK).model.predict(draw())) == set(y)


def test_spellings_of_a_class_are_joined_in_files_and_said_in_python(table):
    path = table(put("case ", row=4, column="y"))
    data = read_study(path)
    assert sorted(set(data.y)) == ["case", "control"]
    assert places(data, "what", "action", "column", "row", "cell") == [["label", "joined", "y", 5, "case "]]
    given = from_arrays(pd.read_csv(path).drop(columns="y"), pd.read_csv(path)["y"])
    assert sorted(set(given.y)) == ["case", "case ", "control"]
    assert places(given, "what") == []
    for one in (data, given):
        assert [finding.code for finding in one.findings if finding.code == "MS116"] == ["MS116"]


@pytest.mark.parametrize("other", ["case\u200b", "ca\u00adse", "\u2068case\u2069"])
def test_marks_that_do_not_show_make_no_class_of_their_own(table, other):
    data = read_study(table(put(other, row=4, column="y")))
    assert sorted(set(data.y)) == ["case", "control"]
    assert places(data, "what", "action", "column", "row", "cell") == [["label", "joined", "y", 5, other]]


def test_a_character_composed_in_two_ways_is_one(table):
    def change(frame):
        return frame.assign(y=np.where(CASE, np.where(np.arange(ROWS) < 6, "\u00e9", "e\u0301"), "a"))

    assert len(set(read_study(table(change)).y)) == 2


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", "a\0", "b"], "ends in a NUL character, which would be lost"),
        (["a", "\ud800", "b"], "is not valid text"),
    ],
)
def test_labels_that_no_array_or_file_can_hold_are_refused(labels, sentence):
    y = [labels[k % 3] for k in range(ROWS)]
    with pytest.raises(InputError, match=sentence):
        study(draw(), y, **QUICK)
    if "\0" in "".join(labels):
        with pytest.raises(InputError, match=sentence):
            recipes.fisher().fit(draw(), y)


def test_columns_of_other_byte_orders_and_widths_are_plain_numbers():
    X = draw()
    plain = from_arrays(X, CASE)
    np.testing.assert_array_equal(from_arrays(X.to_numpy().astype(">f8"), CASE).X, plain.X)
    wide = from_arrays(X.astype(np.longdouble), CASE)
    np.testing.assert_array_equal(wide.X, plain.X)
    assert {place["what"] for place in wide.ledger.table().to_dict("records")} == {"column"}
    study(X.astype(">f8"), CASE, **QUICK)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X: X.assign(g0=X["g0"] + 1j), "'g0' holds complex numbers"),
        (lambda X: X.set_axis(pd.Index(["\ud800", *X.columns[1:]], dtype=object), axis=1), "column's name holds"),
        (lambda X: X.assign(t=pd.Series(["a", "\udcff"] * (ROWS // 2), dtype=object)), "column 't' holds"),
    ],
)
def test_columns_that_are_no_numbers_or_texts_are_refused(change, sentence):
    with pytest.raises(InputError, match=sentence):
        from_arrays(change(draw()), CASE)


def test_numbers_of_another_machine_are_classes():
    y = CASE.astype(">i4")
    fitted = recipes.fisher(n_features_to_select=2).fit(draw(), y)
    assert fitted.classes_.tolist() == [0, 1]
    assert from_arrays(draw(), y).y.tolist() == y.tolist()
    assert study(draw(), y, **QUICK).result["table"]["classes"] == {"0": int((y == 0).sum()), "1": int(y.sum())}


def test_numbers_as_labels_that_are_written_in_two_ways_are_said(table):
    def change(frame):
        return frame.assign(y=np.where(CASE, np.where(np.arange(ROWS) < 6, "1.0", "1"), "0"))

    data = read_study(table(change))
    assert sorted(set(data.y)) == [0, 1]
    assert places(data, "what", "action", "row") == [["label", "joined", row] for row in range(7, ROWS, 2)]
    assert [finding.code for finding in data.findings] == ["MS116"]


# -- names ------------------------------------------------------------------------------------------------------------


def test_a_record_batch_keeps_its_names():
    X = draw()
    batch = pa.RecordBatch.from_pandas(X, preserve_index=False)
    model = recipes.fisher(n_features_to_select=2, threshold="margin").fit(batch, CASE)
    assert model.feature_names_in_.tolist() == list(X)
    np.testing.assert_array_equal(model.decision_function(batch), model.decision_function(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(batch.select(["g2", "g1", "g0"]))
    assert list(from_arrays(batch, CASE).X) == list(X)
    assert from_arrays(batch, CASE).named


# -- rows of another length -------------------------------------------------------------------------------------------


def cut(lines, number, fields):
    """Lines of which one has another number of fields."""
    cells = [*lines[number].split(","), "more", "and more"][:fields]
    return [*lines[:number], ",".join(cells), *lines[number + 1 :]]


@pytest.mark.parametrize(("fields", "row"), [(3, 9), (5, 9), (3, 1), (5, 1)])
def test_a_row_of_another_length_is_refused_by_its_number(fields, row, table):
    path = table()
    lines = path.read_text().splitlines()
    path.write_text("\n".join(cut(lines, row, fields)))
    sentence = (
        f"has 4 fields and its first row {fields}" if row == 1 else rf"row {row} of 't.csv' \(line {row + 1}\) has"
    )
    with pytest.raises(InputError, match=sentence):
        read_table(path)
    data = read_study(path, target="g0", ragged="fill") if row == 1 else None
    frame = read_table(path, ragged="fill", ledger=(ledger := Ledger()))
    assert data is None or len(data.y) == ROWS
    assert frame.shape == (ROWS, 4)
    (change,) = ledger.changes
    assert (change.what, change.action, change.rows.tolist()) == (
        ("cell", "filled", [row - 1]) if fields == 3 else ("cell", "dropped", [row - 1])
    )
    assert (change.column, list(change.cells)) == (("y", []) if fields == 3 else ("", ["more"]))
    assert frame["y"].isna().sum() == (fields == 3)
    assert [kind for kind, *_ in ledger.remarks] == ["ragged"]


def test_ragged_is_refuse_or_fill(table):
    with pytest.raises(InputError, match="ragged is 'cut'; it must be one of 'refuse', 'fill'"):
        read_table(table(), ragged="cut")


def test_a_gap_in_the_last_column_is_no_short_row(table):
    frame = read_table(table(lambda frame: frame.assign(y=[*frame["y"][:-1], ""])))
    assert frame["y"].isna().sum() == 1
    quoted = table(lambda frame: frame.assign(y=[*frame["y"][:-1], ""]), quoting=1)
    assert read_table(quoted)["y"].isna().sum() == 1


def test_lines_are_those_of_the_file(table):
    path = table(lambda frame: put("?", 6)(frame.assign(g2=['two\nlines"' if k == 2 else "x" for k in range(ROWS)])))
    lines = path.read_text().splitlines()
    lines[2:2] = ["", "  "]
    path.write_text("\n".join([*lines, "", ""]))
    data = read_study(path)
    assert places(data, "what", "action", "row", "line") == [
        ["row", "dropped", pd.NA, 3],
        ["row", "dropped", pd.NA, 4],
        ["cell", "converted", 7, 11],
    ]
    assert format_counts(data.ledger.count()) == "2 rows dropped, 1 cell converted"


# -- columns without a name, index columns, empty columns -------------------------------------------------------------


def test_a_first_column_without_a_name_is_used_if_it_is_data(table):
    data = read_study(table(lambda frame: frame.rename(columns={"g0": ""})))
    assert list(data.X) == ["column 1", "g1", "g2"]
    assert [finding.code for finding in data.findings] == ["MS119"]
    amounts = [str(value) for value in np.random.default_rng(1).choice(10_000, ROWS, replace=False)]
    assert "column 1" in read_study(table(lambda frame: frame.assign(g0=amounts).rename(columns={"g0": ""}))).X


@pytest.mark.parametrize("names", [np.arange(ROWS), np.arange(ROWS)[::-1] + 1, [f"row {k}" for k in range(ROWS)]])
def test_row_numbers_without_a_name_are_left_out_and_said(names, table):
    path = table(lambda frame: frame.assign(g0=names).rename(columns={"g0": ""}))
    data = read_study(path)
    assert list(data.X) == ["g1", "g2"]
    assert [(finding.code, finding.columns) for finding in data.findings] == [("MS119", ("column 1",))]
    assert places(data, "what", "action", "column") == [["column", "dropped", "column 1"]]
    assert "column 1" in read_table(path, keep=["column 1"])


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_index_columns_are_used_if_they_are_data(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    frame = draw().assign(y=CASE)

    def read(indexed):
        indexed.to_parquet(path) if kind == "parquet" else feather.write_feather(pa.Table.from_pandas(indexed), path)
        return read_study(path)

    data = read(frame.set_index("g0"))
    assert sorted(data.X) == ["g0", "g1", "g2"]
    assert [finding.code for finding in data.findings] == ["MS119"]
    data = read(frame.set_index(pd.Index([f"s{k}" for k in range(ROWS)], name="sample")))
    assert list(data.X) == ["g0", "g1", "g2"]
    assert data.has_ids
    assert "the index column 'sample' names the rows and is not used" in data.findings[0].text
    assert read(frame).findings == ()
    read(frame.set_index("y"))  # the target itself


def test_an_empty_column_is_called_empty(tmp_path):
    draw().assign(y=CASE, nothing=pd.Series([None] * ROWS, dtype=object)).to_parquet(tmp_path / "t.parquet")
    data = read_study(tmp_path / "t.parquet")
    assert [(finding.code, finding.text) for finding in data.findings] == [
        ("MS121", "'nothing' is empty in every row and not used")
    ]
    assert study(draw().assign(nothing=None), CASE, **QUICK | {"methods": "svm-rfe"}).result["table"]["features"] == 3


# -- numerals ---------------------------------------------------------------------------------------------------------


def wide(value):
    return "".join(chr(ord(sign) + 0xFEE0) for sign in str(value))


NUMERALS = {
    "1e400": np.nan,
    "NA ": np.nan,
    " NULL": np.nan,
    "\u22121.5": -1.5,
    "0x1F": 31.0,
    "1_000": 1000.0,
    wide("12.5"): 12.5,
    " 1.5": 1.5,
    "1.5 ": 1.5,
    "1e-120": 1e-120,
    "\u0661\u0662": 12.0,
    "see note": np.nan,
}
CHANGED = {name for name in NUMERALS if name.strip() not in ("1.5", "1e-120")}


@pytest.mark.parametrize("cell", NUMERALS)
@pytest.mark.parametrize("source", ["file", "python"])
def test_an_odd_cell_among_numbers_is_read_or_named(cell, source, table):
    if source == "file":
        data = read_study(table(put(cell)))
    else:
        data = from_arrays(put(cell)(draw().astype(str)), np.where(CASE, "case", "control"))
    assert list(data.X) == ["g0", "g1", "g2"]
    assert data.ids == ()
    np.testing.assert_array_equal(data.X["g1"].iloc[6], NUMERALS[cell])
    np.testing.assert_allclose(data.X["g1"].drop(6), draw()["g1"].drop(6))
    if cell in CHANGED:
        cells = [place for place in places(data, "what", "action", "column", "row") if place[0] == "cell"]
        assert cells == [["cell", "converted", "g1", 7]]
    if cell in ("1e400", "see note"):
        (finding,) = [finding for finding in data.findings if finding.code == "MS109"]
        assert finding.level == "alarm"
        assert f"'g1' holds numbers but also {cell!r} in row 7" in finding.text


@pytest.mark.parametrize("write", [hex, lambda value: f"{value:_}", wide, lambda value: f"\u2212{value}"])
def test_columns_of_odd_numerals_are_numbers_and_no_ids(write, table):
    values = 1000 + np.random.default_rng(2).choice(90_000, ROWS, replace=False)
    texts = [write(int(value)) for value in values]
    assert find_ids(draw().assign(x=texts)) == []
    data = read_study(table(lambda frame: frame.assign(g1=texts)))
    np.testing.assert_array_equal(data.X["g1"].abs(), values)
    assert data.ids == ()


def test_what_was_read_in_training_is_read_when_it_is_predicted(table):
    texts = [f"{value:_}" for value in range(1000, 1000 + 10 * ROWS, 10)]
    X = draw().assign(g0=[f"{1000 + 5000 * case + k:_}" for k, case in enumerate(CASE)], g1=texts)
    found = study(X, CASE, **QUICK, n_features_to_select=2)
    assert "g0" in set(found.model.get_feature_names_out())
    assert (predict(found.model, X).table["predicted"].to_numpy() == CASE).mean() > 0.9
    with pytest.raises(InputError, match="column 'g0' holds 'see note' in row 4, and the model was trained on numbers"):
        predict(found.model, put("see note", 3, "g0")(X.copy()))


def test_decimal_commas_beside_an_odd_cell(table):
    path = table(lambda frame: put("n.d.")(frame.apply(lambda column: column.str.replace(".", ","))), sep=";")
    data = read_study(path)
    np.testing.assert_allclose(data.X["g1"].drop(6), draw()["g1"].drop(6))


def test_words_for_empty_cells_in_text_are_said(table):
    sites = ["NA" if k in (3, 8) else "" if k == 5 else "DE" if k % 3 else "FR" for k in range(ROWS)]
    data = read_study(table(lambda frame: frame.assign(g2=sites)))
    assert data.X["g2"].isna().sum() == 3
    assert places(data, "what", "action", "row", "cell") == [["cell", "converted", row, "NA"] for row in (4, 9)]
    (finding,) = [finding for finding in data.findings if finding.code == "MS122"]
    assert finding.text == "words that were read as empty cells: 'NA' in 'g2' (2 rows)"


def test_conversions_of_tables_in_python_are_recorded():
    X = draw().assign(
        exact=[Decimal(k) / 7 for k in range(ROWS)],
        span=pd.to_timedelta(np.arange(ROWS) ** 2, unit="D"),
        large=[2**53 + 1 + 2 * k**2 for k in range(ROWS)],
        code=[f"x{k}" for k in range(ROWS)],
    )
    data = from_arrays(X, CASE)
    assert data.ledger.count() == {"columns converted": 2, "cells converted": ROWS, "columns dropped": 1}
    assert {change.column for change in data.ledger.changes} == {"exact", "span", "large", "code"}


# -- the ledger in the results ----------------------------------------------------------------------------------------


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["marginsieve", *map(str, words)])
    code = 0
    try:
        commands.main()
    except SystemExit as stop:
        code = stop.code or 0
    out = capsys.readouterr()
    return code, " ".join(out.out.split()), " ".join(out.err.split())


def test_the_ledger_is_in_every_result(table, tmp_path, monkeypatch, capsys):
    secret = "1_234"
    path = table(lambda frame: frame.assign(g1=[secret if k < 30 else str(k) for k in range(ROWS)]))
    words = ("--target", "y", "--out", tmp_path / "r", "--methods", "fisher", "--cv", 2, "--n-repeats", 1)
    words = (*words, "--without", "suspects,references,false-share,substitutes,other-lists")
    code, out, _ = run(monkeypatch, capsys, "select", path, *words)
    assert code == 0
    assert "changed while reading: 30 cells converted; each has its place in" in out
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert result["ledger"]["counts"] == {"cells converted": 30}
    assert [(entry["column"], entry["count"]) for entry in result["ledger"]["columns"]] == [("g1", 30)]
    assert [(place["row"], place["line"]) for place in result["ledger"]["places"]] == [(k, k + 1) for k in range(1, 21)]
    assert secret not in json.dumps(result["ledger"])
    whole = pd.read_csv(tmp_path / "r" / "ledger.csv", dtype=str)
    assert list(whole) == ["what", "action", "column", "row", "line", "how", "cell"]
    assert len(whole) == 30
    assert set(whole["cell"]) == {secret}
    page = (tmp_path / "r" / "report.html").read_text()
    assert "Changed while reading" in page
    assert "cells converted: 30" in page
    code, out, _ = run(
        monkeypatch, capsys, "predict", tmp_path / "r", table(put("NA ")), "--out", tmp_path / "predicted.csv"
    )
    assert code == 0
    assert "changed while reading: 1 cell converted" in out
    run(monkeypatch, capsys, "select", table(), *words)
    assert not (tmp_path / "r" / "ledger.csv").exists()


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def little_memory(monkeypatch):
    """30 MB that are free, and readers that must not be called."""
    monkeypatch.setattr(stored, "_free_in_machine", lambda: 30e6)
    for name in ("read_csv", "read_parquet", "read_feather"):
        monkeypatch.setattr(pd, name, lambda *_, **__: pytest.fail("the table was read"))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "feather", "texts.parquet"])
def test_a_table_that_does_not_fit_is_refused_before_it_is_read(kind, little_memory, tmp_path):
    path, rows = tmp_path / f"t.{kind}", 600_000
    if kind.startswith("csv"):
        content = b"a,b,c\n" + b"0,0,0\n" * rows
        path.write_bytes(gzip.compress(content, 1) if kind.endswith("gz") else content)
    else:
        cells = np.zeros(rows) if kind != "texts.parquet" else pa.array(["a text of some length"] * rows)
        some = pa.table({name: cells for name in "abc"})
        (parquet.write_table if kind.endswith("parquet") else feather.write_feather)(some, str(path))
    with pytest.raises(
        InputError, match=r"'t\..*' \(.*rows, 3 columns\) would take about .* MB of memory and 26 MB are"
    ):
        read_table(path)


def test_a_line_without_end_is_refused(little_memory, tmp_path):
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as out:
        out.write(b"a,b\n1,")
        for _ in range(50):
            out.write(b"0" * 2**20)
    with pytest.raises(InputError, match="would take about"):
        read_table(tmp_path / "t.csv.gz")


def test_an_annotated_file_that_does_not_fit_is_refused(little_memory, tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda _: pytest.fail("the file was read")))
    for sparse in (False, True):
        with h5py.File(tmp_path / "t.h5ad", "w") as file:
            if sparse:
                file.create_group("X").attrs["shape"] = (10_000, 10_000)
            else:
                file.create_dataset("X", (10_000, 10_000), dtype="f4", chunks=(100, 100), compression="gzip")
        with pytest.raises(InputError, match=r"'t.h5ad' \(10,000 rows, 10,000 columns\) would take about"):
            read_table(tmp_path / "t.h5ad")


def test_an_annotated_file_without_a_matrix_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.h5ad").write_bytes(b"")
    monkeypatch.setattr(reading, "_refuse_large_hdf5", lambda *_: None)
    monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda _: SimpleNamespace(X=None)))
    with pytest.raises(InputError, match=r"'t\.h5ad' has no matrix X: write what is to be selected from into X"):
        read_table(tmp_path / "t.h5ad", target="y")


def test_an_annotated_object_without_a_matrix_is_refused():
    empty = SimpleNamespace(obs=None, var=None, to_df=lambda: pytest.fail("it has no table"), X=None, shape=(ROWS, 0))
    for use in (from_arrays, recipes.fisher().fit):
        with pytest.raises(InputError, match="the AnnData object has no matrix X"):
            use(empty, CASE)


@pytest.mark.parametrize(
    "error",
    [MemoryError("no room"), pd.errors.ParserError("C error: out of memory"), pa.lib.ArrowMemoryError("malloc failed")],
)
def test_memory_that_ends_while_reading_is_the_systems_fault(error, table, tmp_path, monkeypatch, capsys):
    path = table()

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(pd, "read_csv", fail)
    code, _, err = run(monkeypatch, capsys, "select", path, "--target", "y", "--out", tmp_path / "r")
    assert code == 3
    assert "there is not enough memory" in err
    assert not (tmp_path / "r" / "result.json").exists()
