"""Tables that stay in a file: the same selection as in memory, a few blocks of columns at a time."""

import pickle

import numpy as np
import pytest

from marginsieve import recipes
from marginsieve.data import stored
from marginsieve.data.stored import StoredCells, is_stored
from marginsieve.data.table import Schema, Table, equal_columns, refuse_bad_cells
from marginsieve.errors import InputError
from marginsieve.kernels import Gaussian, Linear, Polynomial


@pytest.fixture
def in_file(tmp_path, monkeypatch):
    """(X in memory, the same as a memory map, y), with limits so low that the map is not read whole."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 2500)) + 3.0).astype(np.float32)
    y = (X[:, :5].sum(axis=1) + rng.normal(size=50) > 15).astype(int)
    np.save(tmp_path / "x.npy", X)
    for name, cells in (("IN_MEMORY", 1000), ("DENSE", 60_000), ("AT_ONCE", 4_000)):
        monkeypatch.setattr(stored, name, cells)
    return X, np.load(tmp_path / "x.npy", mmap_mode="r"), y


RECIPES = [
    ("fisher", {}),
    ("relieff", {}),
    ("su", {}),
    ("svm_rfe", {}),
    ("svm_rfe", {"standardize": True}),
    ("svm_rfe", {"kernel": "gaussian", "standardize": True}),
    ("svdd_rfe", {}),
    ("kp_svm", {}),
]


@pytest.mark.parametrize(("name", "settings"), RECIPES)
def test_the_selection_is_that_of_the_table_in_memory(in_file, name, settings):
    X, kept, y = in_file
    ours = recipes.get(name)(random_state=0, cv=3, **settings).fit(kept, y)
    theirs = recipes.get(name)(random_state=0, cv=3, **settings).fit(X, y)
    np.testing.assert_array_equal(ours.ranking_, theirs.ranking_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.decision_function(kept), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_penalised_scaling_selects_the_same(in_file):
    """Far down its ranking scales are equal to rounding, so that only the selection is compared."""
    X, kept, y = in_file
    fixed = {"n_features_to_select": 10, "threshold": "margin", "random_state": 0}
    ours, theirs = (recipes.kp_cssvm(**fixed).fit(table, y) for table in (kept, X))
    np.testing.assert_array_equal(ours.support_, theirs.support_)


def test_workers_read_the_file_themselves(in_file):
    X, kept, y = in_file
    ours = recipes.fisher(random_state=0, cv=3, n_jobs=2).fit(kept, y)
    np.testing.assert_array_equal(ours.ranking_, recipes.fisher(random_state=0, cv=3).fit(X, y).ranking_)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(), Polynomial(degree=2)])
def test_grams_are_those_of_the_array(in_file, kernel):
    X, kept, _ = in_file
    Z = X.astype(np.float64)
    tables = [Schema.from_table(cells).table(cells) for cells in (Z, StoredCells(kept))]
    live = np.arange(0, 2500, 2)
    plain, ours = (kernel.bind(table, kernel.start(table), live) for table in tables)
    assert is_stored(ours.block.columns)
    rng = np.random.default_rng(1)
    c = rng.normal(size=50)
    gone = live[:700]

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * np.abs(b).max())

    few, other = ours.without(gone), plain.without(gone)
    for one, two in ((ours, plain), (few, other), (few.without(live[700:703]), other.without(live[700:703]))):
        same(one.matrix(), two.matrix())
        same(one.matrix(tables[1].Z[3:9]), two.matrix(Z[3:9]))
        same(one.apply(c, Z[3:9]), two.apply(c, Z[3:9]))
        same(one.drop_one_change(c), two.drop_one_change(c))
        same(one.weight_gradient(c), two.weight_gradient(c))
    some = np.arange(20)
    same(ours.only(some).matrix(), plain.only(some).matrix())
    weight = rng.uniform(0.5, 1.5, 2500)
    same(ours.rescale(weight).matrix(), plain.rescale(weight).matrix())


def test_what_is_taken_is_what_numpy_takes(in_file):
    X, kept, _ = in_file
    rng = np.random.default_rng(2)
    shift, factor = rng.normal(size=2500), rng.uniform(0.5, 2.0, 2500)
    cells = StoredCells(kept).scale(shift, factor).scale(factor, shift)
    Z = ((X - shift) * factor - factor) * shift
    rows, columns = rng.permutation(50)[:20], rng.permutation(2500)[:300]
    np.testing.assert_allclose(cells[rows][:, columns], Z[rows][:, columns], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cells[:, 7], Z[:, 7], atol=1e-9)
    np.testing.assert_allclose(cells[:, 5:9], Z[:, 5:9], atol=1e-9)
    np.testing.assert_allclose(cells.T[columns][:, rows], Z.T[columns][:, rows], atol=1e-9)
    left = rng.normal(size=50)
    np.testing.assert_allclose(left @ cells, left @ Z, atol=1e-8)
    np.testing.assert_allclose(cells.T @ left, Z.T @ left, atol=1e-8)
    right = rng.normal(size=2500)
    np.testing.assert_allclose(right @ cells.T, Z @ right, atol=1e-8)
    again = pickle.loads(pickle.dumps(cells[rows]))
    np.testing.assert_allclose(again[:, columns], Z[rows][:, columns], atol=1e-9)
    table, plain = Table(cells, (), ()), Table(np.asfortranarray(Z), (), ())
    np.testing.assert_allclose(table.bounds, plain.bounds, atol=1e-9)
    np.testing.assert_allclose(table.variance, plain.variance, rtol=1e-8)


def test_equal_columns_and_bad_cells_are_found(in_file, tmp_path):
    X, _, _ = in_file
    X[:, 1200] = X[:, 3]
    np.save(tmp_path / "twice.npy", X)
    cells = StoredCells(np.load(tmp_path / "twice.npy", mmap_mode="r"))
    assert [group.tolist() for group in equal_columns(cells)] == [[3, 1200]]
    X[4, 2000] = np.nan
    np.save(tmp_path / "gap.npy", X)
    with pytest.raises(InputError, match=r"1 cells that are missing \(NaN\) in 1 columns: x2000"):
        refuse_bad_cells(StoredCells(np.load(tmp_path / "gap.npy", mmap_mode="r")), [f"x{j}" for j in range(2500)])


@pytest.mark.parametrize("name", ["l1_cssvm", "clinical_rfe", "two_views", "svm_l1"])
def test_what_needs_the_whole_table_says_so(in_file, name):
    _, kept, y = in_file
    with pytest.raises(InputError, match=r"50 rows and 2,500 columns is read in blocks of columns.*prefilter"):
        recipes.get(name)(random_state=0).fit(kept, y)


def test_it_works_after_a_prefilter(in_file):
    X, kept, y = in_file
    some = {"prefilter": ("fisher", 300), "random_state": 0, "cv": 3}
    ours, theirs = (recipes.l1_cssvm(**some).fit(table, y) for table in (kept, X))
    np.testing.assert_array_equal(ours.ranking_, theirs.ranking_)


def test_other_columns_are_refused(in_file):
    _, kept, y = in_file
    selector = recipes.fisher(n_features_to_select=5, threshold="margin").fit(kept, y)
    with pytest.raises(InputError, match=r"2000 features, but .* is expecting 2500"):
        selector.predict(StoredCells(kept)[:, :2000])
    with pytest.raises(InputError, match="columns that stay in a file are numbers"):
        recipes.fisher(kinds={"x0": "nominal"}).fit(kept, y)


def test_a_small_memory_map_is_read_whole(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 20))
    np.save(tmp_path / "x.npy", X)
    kept = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert stored.as_stored(kept) is None
    y = np.arange(30) % 2
    fixed = {"n_features_to_select": 3, "random_state": 0}
    np.testing.assert_array_equal(
        recipes.fisher(**fixed).fit(kept, y).ranking_, recipes.fisher(**fixed).fit(X, y).ranking_
    )


class TestAnnData:
    """AnnData in its file, in memory, dense and sparse."""

    @pytest.fixture
    def written(self, in_file, tmp_path):
        anndata = pytest.importorskip("anndata", reason="needs the extra marginsieve[anndata]")
        import pandas as pd

        X, _, y = in_file
        names = pd.DataFrame(index=[f"gene{j}" for j in range(2500)])
        anndata.AnnData(X=X, var=names).write_h5ad(tmp_path / "cells.h5ad")
        return anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r"), X, y

    def test_a_file_is_read_in_blocks(self, written):
        backed, X, y = written
        ours = recipes.svm_rfe(random_state=0, cv=3).fit(backed, y)
        theirs = recipes.svm_rfe(random_state=0, cv=3).fit(X, y)
        np.testing.assert_array_equal(ours.ranking_, theirs.ranking_)
        assert ours.feature_names_in_[0] == "gene0"
        assert set(ours.get_feature_names_out()) <= set(ours.feature_names_in_)
        assert is_stored(stored.as_stored(backed)[0])
        assert pickle.loads(pickle.dumps(stored.as_stored(backed)[0]))[:, 3].shape == (50,)

    def test_in_memory_it_is_its_table(self, written):
        import anndata
        from scipy import sparse

        backed, X, y = written
        fixed = {"n_features_to_select": 4, "threshold": "margin", "random_state": 0}
        theirs = recipes.fisher(**fixed).fit(X, y)
        dense = recipes.fisher(**fixed).fit(backed.to_memory(), y)
        some = anndata.AnnData(X=sparse.csr_matrix(X), var=backed.var.copy())
        for ours in (dense, recipes.fisher(**fixed).fit(some, y)):
            np.testing.assert_array_equal(ours.support_, theirs.support_)
            assert ours.feature_names_in_[1] == "gene1"
