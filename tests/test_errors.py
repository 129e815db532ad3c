"""A user's mistakes: each ends in a sentence that names what is wrong and what would be accepted, and none hangs."""

import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from marginsieve import recipes
from marginsieve.errors import InputError

Y = np.arange(40) % 2


@pytest.fixture
def X(rng):
    return pd.DataFrame(rng.normal(size=(40, 6)), columns=["a", "b", "c", "d", "e", "f"])


def fit(X, y=Y, **settings):
    return recipes.svm_rfe(n_features_to_select=2, threshold="margin", **settings).fit(X, y)


def refused(sentence, X, y=Y, **settings):
    with pytest.raises(InputError, match=sentence):
        fit(X, y, **settings)


def test_missing_cells_are_counted_by_column(X):
    X.loc[[1, 2], "b"] = np.nan
    X.loc[5, "e"] = np.nan
    refused(r"3 cells that are missing \(NaN\) in 2 columns: b \(2\), e \(1\); impute", X)
    refused(r"3 cells that are missing \(NaN\) in 2 columns: x1 \(2\), x4 \(1\)", X.to_numpy())
    refused(r"3 cells that are missing \(NaN\) in 2 columns: b \(2\), e \(1\)", pl.from_pandas(X))
    refused(r"3 cells that are missing", sparse.csr_array(X.to_numpy()))


def test_infinite_cells_are_counted_by_column(X):
    X.loc[3, "c"] = -np.inf
    refused(r"1 cells that are infinite \(inf\) in 1 columns: c \(1\)", X)


def test_predicting_on_missing_cells_names_the_column(X):
    model = fit(X)
    X.loc[0, "d"] = np.nan
    with pytest.raises(InputError, match=r"missing \(NaN\) in 1 columns: d"):
        model.predict(X)


def test_text_where_numbers_are_needed(X):
    X["site"] = ["u", "v"] * 20
    X["stage"] = pd.Categorical(["I", "II"] * 20)
    refused("text or categories where the Linear kernel needs numbers, in 'site', 'stage': encode", X)
    model = fit(X[list("abcdef")])
    with pytest.raises(InputError, match="text where numbers are needed in 'a'"):
        model.predict(X[list("abcdef")].assign(a="x"))


def test_dates_are_refused(X):
    X["seen"] = pd.Timestamp("2020-01-01")
    refused("neither numbers, booleans nor categories: 'seen'; convert", X)


def test_one_class_only(X):
    refused("one class only .*: a classifier needs at least two classes", X, np.zeros(40))
    with pytest.raises(InputError, match="has sample_weight 0"):
        recipes.svm_rfe(n_features_to_select=2).fit(X, np.arange(40) % 3, sample_weight=(np.arange(40) % 3 > 0) * 1.0)


def test_target_that_looks_continuous(X, rng):
    refused("The target looks continuous .40 distinct values in 40 rows.; make classes of it", X, rng.normal(size=40))


def test_target_of_counts(X):
    refused("The target looks continuous .40 distinct values in 40 rows", X, np.arange(40))


def test_missing_labels(X):
    y = Y.astype(float)
    y[4] = np.nan
    refused("1 of 40 labels are missing", X, y)
    labels = np.array(["a", "b"] * 20, dtype=object)
    labels[3] = None
    refused("1 of 40 labels are missing", X, labels)
    refused("estimator requires y to be passed", X, None)


def test_duplicate_names(X):
    X.columns = ["a", "b", "a", "d", "b", "f"]
    refused("column names occur more than once: 'a', 'b'; rename", X)


def test_masked_arrays(X):
    refused("X is a masked array and its mask would be ignored", np.ma.masked_invalid(X.to_numpy()))
    refused("y is a masked array", X, np.ma.masked_equal(Y, 3))


def test_empty_tables(X):
    refused("the table is empty", X.iloc[:, :0])
    refused("the table is empty", X.iloc[:0], Y[:0])
    with pytest.raises(ValueError, match="0 feature"):
        fit(X.to_numpy()[:, :0])


def test_every_column_constant():
    refused("every column is constant", np.ones((40, 3)))


def test_names_that_are_not_there(X):
    refused("keep names the column 'z'", X, keep=["z"])
    refused("keep names the column 9", X, keep=[9])
    refused("positive is 'maybe'; the classes are 0, 1", X, positive="maybe")
    refused(r"class_weight names 'x'; the classes are 0, 1", X, class_weight={"x": 2.0})


def test_sparse_needs_the_linear_kernel(X):
    refused("the Gaussian kernel needs a dense table", sparse.csr_array(X.to_numpy()), kernel="gaussian")


def test_new_tables_must_have_the_same_columns(X):
    model = fit(X)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"a": "z"}))
    model = fit(X.to_numpy())
    with pytest.raises(ValueError, match="X has 5 features, but SVMSelector is expecting 6"):
        model.predict(X.to_numpy()[:, :5])


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
def test_a_column_of_absurd_scale_ends_in_seconds(X, kernel):
    X["b"] *= 1e12
    since = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recipes.svm_rfe(kernel=kernel, standardize=False, random_state=0).fit(X, Y)
    assert any("column 'b' is 8e+11 times as wide as the median column" in str(item.message) for item in caught)
    scaled = recipes.svm_rfe(kernel=kernel, random_state=0).fit(X, Y)
    X["b"] /= 1e12
    np.testing.assert_array_equal(scaled.ranking_, recipes.svm_rfe(kernel=kernel, random_state=0).fit(X, Y).ranking_)
    assert time.perf_counter() - since < 60


def test_a_column_that_overflows_is_named(X):
    X["b"] *= 1e300
    refused(r"1e\+75 or larger in size in 1 columns: b .*: their squares overflow", X)


def test_work_limits_end_in_a_warning(X):
    with pytest.warns(ConvergenceWarning, match="machine solves stopped with a residual of up to"):
        fit(X).set_params(machine__max_iter=2, machine__tol=1e-12).fit(X, Y)
