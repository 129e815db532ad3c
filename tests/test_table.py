"""Tables from arrays, pandas, polars, arrow and sparse: names, kinds, levels, missing cells, types given back."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from marginsieve import recipes
from marginsieve.algebra import ColumnView
from marginsieve.data.table import Schema, Table, one_hot
from marginsieve.errors import InputError
from marginsieve.kernels import Linear


def mixed():
    return pd.DataFrame(
        {
            "age": [50.0, 61.5, np.nan, 40.0],
            "count": pd.array([1, None, 3, 4], dtype="Int64"),
            "sex": ["m", "f", None, "m"],
            "stage": pd.Categorical(["low", "high", "low", None], categories=["low", "high"], ordered=True),
            "smoker": [True, False, True, True],
            "site": pd.Categorical(["u", "v", "u", None]),
            "gene": np.array([1, 2, 3, 4], dtype=np.float32),
        }
    )


CODES = np.array(
    [
        [50.0, 1, 1, 0, 1, 0, 1],
        [61.5, np.nan, 0, 1, 0, 1, 2],
        [np.nan, 3, np.nan, 0, 1, 0, 3],
        [40.0, 4, 1, np.nan, 1, np.nan, 4],
    ]
)


@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_frames_become_codes(convert):
    frame = convert(mixed())
    columns = Schema.from_table(frame)
    assert columns.names == tuple(mixed().columns)
    ordinal = "nominal" if isinstance(frame, pl.DataFrame) else "ordinal"  # polars categories have no order
    assert columns.kind == ("real", "real", "nominal", ordinal, "boolean", "nominal", "real")
    np.testing.assert_array_equal(columns.encode(frame), CODES)


def test_polars_enums_are_ordinal_when_told():
    frame = pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Enum(["y", "x"]))})
    assert Schema.from_table(frame).kind == ("nominal",)
    columns = Schema.from_table(frame, {"a": "ordinal"})
    assert columns.kind == ("ordinal",)
    assert columns.encode(frame).ravel().tolist() == [1.0, 0.0]


def test_unseen_levels_get_codes_of_their_own():
    columns = Schema.from_table(pd.DataFrame({"a": ["x", "y"]}))
    codes = columns.encode(pd.DataFrame({"a": ["new", "y", "other", "new", None]})).ravel()
    assert codes[1] == 1.0
    assert codes[0] == codes[3] not in (0.0, 1.0)
    assert codes[2] not in (0.0, 1.0, codes[0])
    assert np.isnan(codes[4])


def test_kinds_can_be_given():
    frame = pd.DataFrame({"a": [3, 1, 2, 1], "b": [1.0, 2.0, 3.0, 4.0]})
    columns = Schema.from_table(frame, {"a": "nominal"})
    assert columns.kind == ("nominal", "real")
    assert columns.encode(frame)[:, 0].tolist() == [2.0, 0.0, 1.0, 0.0]
    with pytest.raises(InputError, match=r"kinds\['a'\] is 'odd'; it must be one of 'real', 'ordinal', 'nominal'"):
        Schema.from_table(frame, {"a": "odd"})
    with pytest.raises(InputError, match="kinds names the column 'z'"):
        Schema.from_table(frame, {"z": "real"})


def test_spread_is_the_range_of_observed_cells():
    table = Table(np.array([[1.0, 0.0], [np.nan, 5.0], [4.0, 2.0]]), ("real", "real"), ("a", "b"))
    np.testing.assert_array_equal(table.spread, [3.0, 5.0])
    thin = Table(sparse.csc_array([[1.0, 0.0], [0.0, -5.0]]), ("real", "real"), ("a", "b"))
    np.testing.assert_array_equal(thin.spread, [1.0, 5.0])
    np.testing.assert_array_equal(table.rows(np.array([0, 2])).spread, [3.0, 2.0])


def test_expanding_folds_levels_back_to_their_owner():
    """Machines with weights have a column for each level, numbers first; a level's column is in units of its spread."""
    columns = Schema.from_table(mixed()[["sex", "gene", "site"]])
    table = columns.table(mixed()[["sex", "gene", "site"]])
    view = ColumnView(Linear(), table, np.ones(3), np.arange(3))
    assert view.owner.tolist() == [1, 0, 0, 2, 2]
    np.testing.assert_array_equal(view.X[:, 2] > 0, [1, 0, 0, 1])
    np.testing.assert_allclose(view.X[:, 2], np.array([1, 0, 0, 1]) / np.std([1, 0, 0, 1]))
    np.testing.assert_array_equal(view.X[:, 0], [1, 2, 3, 4])


def test_one_hot_has_a_column_for_each_level_and_one_for_two():
    frame = mixed()[["sex", "gene", "site"]].assign(site=["u", "v", "w", None])
    columns = Schema.from_table(frame)
    Z = columns.encode(frame)
    wide, owner = one_hot(Z, Z, columns.kind)
    assert owner.tolist() == [0, 1, 2, 2, 2]
    np.testing.assert_array_equal(wide[:, 0], [1, 0, 0, 1])
    np.testing.assert_array_equal(wide[:, 1], [1, 2, 3, 4])
    np.testing.assert_array_equal(wide[:, 2:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert columns.expand(owner).names == ("sex", "gene", "site.2", "site.3", "site.4")
    new = columns.encode(frame.assign(site=["z", "v", None, "u"]))  # a level that was not trained on, and a gap
    np.testing.assert_array_equal(one_hot(new, Z, columns.kind)[0][:, 2:], [[0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]])


@pytest.fixture
def frame(rng):
    X = pd.DataFrame(rng.normal(size=(30, 5)), columns=list("abcde")).astype({"b": np.float32})
    X["d"] = rng.integers(0, 9, 30)
    y = np.where(X["d"] + 4 * X["b"] > 4, "yes", "no")
    return X, y


FRAMES = {
    "pandas": (lambda f: f, pd.DataFrame),
    "polars": (pl.from_pandas, pl.DataFrame),
    "arrow": (pa.Table.from_pandas, pa.Table),
}


@pytest.mark.parametrize("name", list(FRAMES))
def test_transform_gives_back_the_users_type_and_dtypes(name, frame):
    convert, kind = FRAMES[name]
    X, y = frame
    given = convert(X)
    selector = recipes.fisher(n_features_to_select=2, threshold="margin").fit(given, y)
    assert selector.feature_names_in_.tolist() == list("abcde")
    out = selector.transform(given)
    assert isinstance(out, kind)
    back = out if kind is pd.DataFrame else out.to_pandas()
    assert sorted(back.columns) == ["b", "d"]
    assert back["b"].dtype == np.float32
    assert back["d"].dtype == np.int64
    reference = recipes.fisher(n_features_to_select=2, threshold="margin").fit(X.to_numpy(), y)
    np.testing.assert_allclose(selector.decision_function(given), reference.decision_function(X.to_numpy()))


def test_transform_keeps_array_and_sparse_types(frame):
    X, y = frame
    for given in (X.to_numpy(dtype=np.float32), sparse.csr_array(X.to_numpy())):
        out = recipes.svm_rfe(n_features_to_select=2, threshold="margin").fit(given, y).transform(given)
        assert type(out) is type(given)
        assert out.dtype == given.dtype
        assert out.shape == (30, 2)


def test_set_output(frame):
    X, y = frame
    selector = recipes.svm_rfe(n_features_to_select=2, threshold="margin").set_output(transform="pandas")
    out = selector.fit(X, y).transform(X)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == selector.get_feature_names_out().tolist()
    polars = selector.set_output(transform="polars").transform(X)
    assert isinstance(polars, pl.DataFrame)


@pytest.mark.usefixtures("kept_sparse")
def test_sparse_selects_what_dense_selects(frame, rng):
    X, y = frame
    dense = X.to_numpy() * (rng.random(X.shape) < 0.5)
    for standardize in (False, True):
        settings = {"n_features_to_select": 3, "threshold": "balanced", "standardize": standardize, "random_state": 0}
        one = recipes.svm_rfe(**settings).fit(dense, y)
        two = recipes.svm_rfe(**settings).fit(sparse.csr_array(dense), y)
        np.testing.assert_array_equal(one.ranking_, two.ranking_)
        np.testing.assert_allclose(
            one.decision_function(dense), two.decision_function(sparse.csc_array(dense)), atol=1e-2
        )


def test_lazy_frames_coo_matrices_and_arrow_with_set_output(frame):
    X, y = frame
    selector = recipes.svm_rfe(n_features_to_select=2, threshold="margin")
    with pytest.raises(InputError, match=r"lazy frame: call .collect\(\) first"):
        selector.fit(pl.from_pandas(X).lazy(), y)
    thin = sparse.coo_array(X.to_numpy())
    assert selector.fit(thin, y).transform(thin).shape == (30, 2)
    arrow = pa.Table.from_pandas(X)
    out = selector.fit(arrow, y).set_output(transform="pandas").transform(arrow)
    assert isinstance(out, pd.DataFrame)


def test_booleans_with_gaps_are_booleans():
    frame = pd.DataFrame({"d": [True, None, False, True], "n": [1, None, 0, 1]})
    columns = Schema.from_table(frame.astype({"d": object}))
    assert columns.kind == ("boolean", "real")
    np.testing.assert_array_equal(columns.encode(frame)[:, 0], [1.0, np.nan, 0.0, 1.0])
    yes = pd.DataFrame({"d": pd.Categorical(["y", "n", "y"], categories=["n", "x", "y"])})
    assert Schema.from_table(yes, {"d": "boolean"}).levels[0] == ("n", "y")
    with pytest.raises(InputError, match="kinds calls 'd' boolean and it has 3 values"):
        Schema.from_table(pd.DataFrame({"d": ["a", "b", "c"]}), {"d": "boolean"})


def test_the_same_categories_in_another_type_are_told():
    columns = Schema.from_table(pd.DataFrame({"c": pd.Categorical([1, 2, 3])}))
    with pytest.raises(InputError, match="column 'c' holds '1', '2' and was trained on 1, 2, 3: the same categories"):
        columns.encode(pd.DataFrame({"c": ["1", "2"]}))
    np.testing.assert_array_equal(columns.encode(pd.DataFrame({"c": [7, 9]}))[:, 0], [3.0, 4.0])


def test_kinds_of_sparse_tables_are_refused():
    from scipy import sparse

    with pytest.raises(InputError, match="kinds names 'x1': columns of a sparse table are numbers"):
        Schema.from_table(sparse.eye_array(3).tocsr(), {"x1": "nominal"})
