"""Tables from files: what a file is written in is found out, and the table is the same."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginsieve import recipes, study
from marginsieve.data import make_cohort
from marginsieve.data.cells import as_trained, find_separated, read_numerals
from marginsieve.data.ledger import Ledger
from marginsieve.data.reading import read_table
from marginsieve.data.text_files import dialect_of
from marginsieve.errors import InputError
from marginsieve.kernels import clinical_kernel
from marginsieve.studies.files import write_back
from marginsieve.studies.study_data import from_frame

FRAME = pd.DataFrame(
    {"weight": [60.5, 71.25, 80.0], "größe": [1.6, 1.75, 1.9], "name": ["Zoë", "a;b", "c,d"], "y": ["u", "v", "u"]}
)


def read_study(path, target="y", **how):
    """A file as a study reads it."""
    ledger = Ledger()
    return from_frame(read_table(path, target=target, ledger=ledger, **how), target, ledger=ledger)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_in_any_dialect_is_the_same_table(separator, decimal, encoding, packed, tmp_path):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    FRAME.to_csv(path, sep=separator, decimal=decimal, encoding=encoding, index=False)
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_dtype=False)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 8),
    columns=st.integers(2, 6),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
    seed=st.integers(0, 10**6),
)
def test_numbers_survive(rows, columns, separator, decimal, seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(np.round(rng.normal(size=(rows, columns)) * 100, 3) + 0.0005)
    frame.columns = [f"c {j}" for j in range(columns)]
    path = tmp_path_factory.mktemp("t") / "t.txt"
    frame.to_csv(path, sep=separator, decimal=decimal, index=False)
    pd.testing.assert_frame_equal(read_table(path), frame)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_columnar_files(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    getattr(FRAME, f"to_{kind}")(path)
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_dtype=False)


def test_what_is_given_is_not_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b,y\n1;5,u\n2;6,v\n")
    assert read_table(path, separator=",").columns.tolist() == ["a;b", "y"]
    assert read_table(path, separator=";").columns.tolist() == ["a", "b,y"]
    assert dialect_of(path, separator=";", decimal=".").decimal == "."


def test_a_stray_byte_far_down_does_not_stop_the_reading(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\n" + b"1.5,u\n" * 800_000 + b"2.5,caf\xe9\n")
    assert len(read_table(path)) == 800_001
    with pytest.raises(InputError, match=r"'t.csv' is not written in utf-8"):
        read_table(path, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "given", "sentence"),
    [
        ("a,b\n1,2\n", {"decimal": ";"}, "decimal is ';'; it must be '.' or ','"),
        ("a,b\n1,2\n", {"separator": "::"}, "separator is '::'; it must be one character"),
        ("a,b\n1,2\n", {"encoding": "klingon"}, "could not be read as text with encoding 'klingon'"),
        ("a,b\n", {}, "0 rows"),
        ("a;b;c\n1#2#3\n", {}, "has one column|has 3 fields"),
        ("\n\n", {}, "is empty"),
    ],
)
def test_what_cannot_be_read_is_told(text, given, sentence, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_table(path, **given)


def test_columns_without_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,,b,\n0,1,7,u,\n1,2,7,v,\n")
    frame = read_table(path)
    assert list(frame.columns) == ["a", "column 3", "b"]  # the row numbers and the empty last one are left out
    assert frame["column 3"].tolist() == [7, 7]
    path.write_text(",a\n5,1\n5,2\n")
    assert list(read_table(path).columns) == ["column 1", "a"]
    path.write_text(",a\n5,1\n6,2\n")
    assert list(read_table(path).columns) == ["a"]
    assert list(read_table(path, whole=True).columns) == ["column 1", "a"]
    path.write_text("a,,column 2\n5,1,2\n6,2,3\n")
    with pytest.raises(InputError, match="another is called 'column 2'"):
        read_table(path)


def test_what_is_no_text_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(InputError, match=r"'t.csv' is not a text file"):
        read_table(path)
    (tmp_path / "t.rds").write_bytes(b"RDX3")
    with pytest.raises(InputError, match=r'in R: arrow::write_parquet\(readRDS\("t.rds"\), "t.parquet"\)'):
        read_table(tmp_path / "t.rds")


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["23.4%", "5 %"], [23.4, 5.0]),
        (["€12.30", "€ 5"], [12.3, 5.0]),
        (["1.5", "?", " 2 "], [1.5, np.nan, 2.0]),
        (["<0.1", "0.5", None, ">= 9", "7", "8"], [0.1, 0.5, np.nan, 9.0, 7.0, 8.0]),
        ([".5", "unknown", "-1."], [0.5, np.nan, -1.0]),
        ([str(k / 8) for k in range(12)], [k / 8 for k in range(12)]),
        (["1.5", "2"], None),  # a few plain ones may be categories
        (["3.105,22", "12,5"], None),
        (["1,234", "5,000.5", "?"], None),
        (["<65", ">=65"], None),  # nothing but limits
        (["<5", ">5", "7", "8", "9"], None),  # both sides of one number
        (["007", "012", "-"], None),  # codes
        (["€5", "$5"], None),
        (["5%", "0.05"], None),
        (["555 123 456", "?"], None),
        (["10.120.130.140", "?"], None),
        (["1,5", "much", "?"], None),
        (["?", "-"], None),
        (["12:30", "120/80", "5-10"], None),
        (["²", "?"], None),
        (["1e999", "?"], None),
    ],
)
def test_numbers_in_text(cells, values):
    column = pd.Series(cells, dtype=object)
    read = read_numerals(column)
    if values is None:
        assert read is None
    else:
        np.testing.assert_array_equal(read.values, values)
        np.testing.assert_array_equal(as_trained(column), values)
        assert read.read_as


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(max_size=8), st.floats(allow_nan=False).map(str), st.none()), min_size=1, max_size=8))
def test_no_text_stops_the_reading_of_numbers(cells):
    column = pd.Series(cells, dtype=object)
    read, mark = read_numerals(column), find_separated(column)
    if read is not None:
        assert mark is None
        assert np.isfinite(read.values.dropna()).all()
        np.testing.assert_array_equal(as_trained(column), read.values)


def test_thousands_are_not_taken_for_decimals(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('income,n,y\n"1,243",3,u\n960,4,v\n"2,080",5,u\n')
    assert dialect_of(path).decimal == "."
    assert read_table(path)["income"].tolist() == ["1,243", "960", "2,080"]
    path.write_text("income;y\n1,5;u\n1,243;v\n")
    assert read_table(path)["income"].tolist() == [1.5, 1.243]


def test_a_truncated_archive_is_told(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:60])
    with pytest.raises(InputError, match=r"'t.csv.gz' could not be read as CSV"):
        read_table(path)


def test_annotated_data(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    data = anndata.AnnData(np.arange(6.0).reshape(3, 2), obs=pd.DataFrame({"y": list("uvu")}, index=list("abc")))
    data.var_names = ["g1", "g2"]
    data.write_h5ad(tmp_path / "t.h5ad")
    frame = read_table(tmp_path / "t.h5ad", target="y")
    assert frame.columns.tolist() == ["g1", "g2", "y"]
    assert frame["y"].tolist() == list("uvu")
    with pytest.raises(InputError, match=r"target is 'z'; the obs of 't.h5ad' has the columns 'y'"):
        read_table(tmp_path / "t.h5ad", target="z")


@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", ",")])
def test_rows_longer_than_a_field_may_be(separator, decimal, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 20_000))).rename(columns=lambda j: f"gene{j:05}")
    frame.to_csv(tmp_path / "wide.csv", sep=separator, decimal=decimal, index=False)
    assert np.allclose(read_table(tmp_path / "wide.csv"), frame)


def test_an_annotated_file_comes_back_with_what_was_found(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    cohort = make_cohort(60, 30, n_relevant=3, effect=2.5, random_state=0)
    obs = pd.DataFrame({"state": np.asarray(cohort.y)}, index=[f"cell{k}" for k in range(60)])
    path = tmp_path / "t.h5ad"
    anndata.AnnData(cohort.X.to_numpy(), obs=obs, var=pd.DataFrame(index=list(cohort.X.columns))).write_h5ad(path)
    frame = read_table(path, target="state")
    found = study(frame.drop(columns="state"), frame["state"], methods="fisher", cv=2, n_repeats=1, without="suspects")
    (tmp_path / "r").mkdir()
    for folder, name in ((tmp_path / "r", "t.h5ad"), (tmp_path, "t-selected.h5ad")):
        written = write_back(path, folder, found.features, found.result)
        assert written.name == name
        back = anndata.read_h5ad(written)
        assert list(back.var_names[back.var["marginsieve_selected"]]) == list(found.model.get_feature_names_out())
        assert back.uns["marginsieve"]["method"] == "fisher"
        assert back.uns["marginsieve"]["auc_value"] == pytest.approx(found.result["scores"]["auc"]["value"])


def test_no_encoding_is_guessed_where_there_are_control_characters(tmp_path):
    path = tmp_path / "t.csv"
    names = ["age", "sex\x02", "größe"]
    pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=names).to_csv(path, index=False, encoding="cp1252")
    with pytest.raises(InputError, match=r"does not look like Windows-1252: name its encoding \(--encoding\)"):
        read_table(path)
    assert read_table(path, encoding="cp1252").columns.tolist() == names


def test_what_was_read_as_windows_1252_is_noted(tmp_path):
    path = tmp_path / "t.csv"
    cohort = make_cohort(30, 3, n_relevant=1, random_state=0).frame().rename(columns={"g1": "größe \u2013 “x”"})
    for encoding, count in (("cp1252", 1), ("utf-8", 0)):
        cohort.to_csv(path, index=False, encoding=encoding)
        notes = [finding.text for finding in read_study(path, "outcome").findings if finding.kind == "encoding"]
        assert len(notes) == count
        assert all("was read as Windows-1252" in note for note in notes)
    cohort.to_csv(path, index=False, encoding="cp1252")
    assert "encoding" not in {finding.kind for finding in read_study(path, "outcome", encoding="cp1252").findings}


def test_an_anndata_object_is_its_table():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2

    class AnnData:
        X, obs, var, shape = rng.normal(size=(40, 4)) + y[:, None], None, None, (40, 4)

        def to_df(self):
            return pd.DataFrame(self.X, columns=list("abcd"))

    fixed = {"n_features_to_select": 2, "random_state": 0}
    ours, theirs = (recipes.fisher(**fixed).fit(table, y) for table in (AnnData(), AnnData().to_df()))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    some = study(
        AnnData(), y, methods="fisher", cv=3, n_repeats=1, without=("suspects", "references"), n_permutations=24
    )
    assert set(some.features["name"]) == set("abcd")
    with pytest.raises(InputError, match="AnnData object"):
        clinical_kernel(AnnData())
