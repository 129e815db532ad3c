"""Sparse tables with many rows: linear machines without a matrix of rows by rows."""

import numpy as np
import pytest
from scipy import sparse

from marginsieve import recipes
from marginsieve.algebra import LinearGram, ThinGram
from marginsieve.data.table import Schema
from marginsieve.kernels import Linear
from marginsieve.solvers import linear_svc, smo


def counts(m, n, seed=0, density=0.1):
    """Counts with a signal in ten columns, each column over the root of its mean square."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((m, n), density=density, rng=rng, format="csr")
    X.data = rng.poisson(2, len(X.data)) + 1.0
    X = sparse.csr_array(X @ sparse.diags_array(1 / np.sqrt(np.maximum(X.power(2).mean(axis=0), 1e-9))))
    f = np.asarray(X[:, :10].sum(axis=1)).ravel()
    return X, np.where(f + 0.7 * f.std() * rng.normal(size=m) > np.median(f), 1.0, -1.0)


@pytest.mark.parametrize("shape", [(300, 60), (200, 500)])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_it_is_the_machine_of_the_kernel_matrix(shape, C):
    X, y = counts(*shape)
    rng = np.random.default_rng(1)
    top = C * rng.uniform(0.3, 2.0, len(y))
    top[:4] = 0.0
    c, b, objective, slack, violation = linear_svc.svc_by_rows(X, y, top, 1e-7)
    K = (X @ X.T).toarray()
    theirs = smo.svc(K, y, top, np.zeros(len(y)), 1e-8, 10**7)
    assert violation <= 1e-7
    lo, hi = np.where(y > 0, 0.0, -top), np.where(y > 0, top, 0.0)
    assert ((lo <= c) & (c <= hi)).all()
    assert abs(c.sum()) <= 1e-9 * np.abs(c).sum()
    E = y - K @ c
    assert E[c < hi].max() - E[c > lo].min() <= 1e-6
    assert objective == pytest.approx(theirs[2], rel=1e-7)
    np.testing.assert_allclose(slack, np.maximum(0.0, 1.0 - y * (K @ c + b)), atol=1e-9)
    warm = linear_svc.svc_by_rows(X, y, top, 1e-7, c)
    assert warm[2] == pytest.approx(objective, rel=1e-9)


def test_one_class_has_no_weights():
    X, _ = counts(30, 10)
    c, _, objective, _, violation = linear_svc.svc_by_rows(X, np.ones(30), np.ones(30), 1e-6)
    assert not c.any()
    assert objective == 0.0
    assert violation == 0.0


def test_a_sparse_thin_gram_is_the_linear_one(monkeypatch):
    monkeypatch.setattr("marginsieve.algebra.product_gram.FEW", 1)
    monkeypatch.setattr("marginsieve.algebra.product_gram.CELLS", 1)
    X, _ = counts(40, 25)
    table, live, weight = Schema.from_table(X).table(X), np.arange(0, 25, 2), np.linspace(0.5, 2.0, 25)
    thin, plain = (gram.build(Linear(average=True), table, weight, live) for gram in (ThinGram, LinearGram))
    c, Z = np.random.default_rng(0).normal(size=40), table.Z[:7]
    for one, two in ((thin, plain), (thin.only(np.arange(9)), plain.only(np.arange(9)))):
        v = c[: one.table.shape[0]]
        np.testing.assert_allclose((one.factor.T @ one.factor).toarray(), two.matrix(), atol=1e-9)
        np.testing.assert_allclose(one.apply(v), two.matrix() @ v, atol=1e-9)
        np.testing.assert_allclose(one.apply(v, Z), two.apply(v, Z), atol=1e-9)
        np.testing.assert_allclose(one.diagonal(), two.diagonal(), atol=1e-9)
        np.testing.assert_allclose(one.drop_one_change(v), two.drop_one_change(v), atol=1e-9)
        np.testing.assert_allclose(one.drop_one_diagonal_change(v), two.drop_one_diagonal_change(v), atol=1e-9)
    less = thin.without(live[:3])
    np.testing.assert_allclose(less.matrix(), plain.without(live[:3]).matrix(), atol=1e-9)


@pytest.mark.parametrize("name", ["svm_rfe", "fisher", "l1_cssvm"])
def test_the_selection_is_that_of_the_kernel_matrix(name, monkeypatch):
    X, y = counts(400, 150)
    monkeypatch.setattr("marginsieve.fitting.procedure.SMALL", 0)
    fixed = {"n_features_to_select": 10, "threshold": "margin", "random_state": 0, "C": 0.1}
    plain = recipes.get(name)(**fixed).fit(X, y)
    monkeypatch.setattr("marginsieve.kernels.numeric.MANY_SPARSE", 10)
    monkeypatch.setattr("marginsieve.algebra.product_gram.FEW", 20)
    monkeypatch.setattr("marginsieve.algebra.product_gram.CELLS", 1)
    thin = recipes.get(name)(**fixed).fit(X, y)
    np.testing.assert_array_equal(thin.support_, plain.support_)
    np.testing.assert_allclose(thin.decision_function(X), plain.decision_function(X), atol=1e-4)


def test_more_rows_than_a_kernel_matrix_has_room_for(monkeypatch):
    X, y = counts(12_000, 400)
    monkeypatch.setattr("marginsieve.algebra.product_gram.CELLS", 1)
    selector = recipes.svm_rfe(n_features_to_select=10, C=1e-4, threshold="margin", random_state=0).fit(X, y)
    assert selector.support_[:10].sum() == 10
    assert selector.score(X, y) > 0.7
