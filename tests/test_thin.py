"""Linear machines with fewer columns than rows: an interior point in factor form, and a Gram without a matrix."""

import numpy as np
import pytest
from oracles import drop_one
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from marginsieve import SVMSelector, recipes
from marginsieve.algebra import LinearGram, ThinGram
from marginsieve.data.table import Schema
from marginsieve.kernels import Gaussian, Linear
from marginsieve.machines import CSVC
from marginsieve.solvers import linear_svc, smo


def drawn(kind, seed):
    """(columns (p, m), y, top) of a hard kind."""
    rng = np.random.default_rng(seed)
    m, p = int(rng.integers(40, 300)), int(rng.integers(1, 30))
    X = rng.normal(size=(m, p))
    y = np.where(X[:, 0] + rng.normal(size=m) > rng.choice([0.0, 1.5]), 1.0, -1.0)
    if kind == "repeated rows":
        X, y = np.repeat(X[: m // 4], 4, axis=0), np.repeat(y[: m // 4], 4)
    elif kind == "few values":
        X = np.round(X)
    elif kind == "constant column":
        X[:, -1] = 1.0
    elif kind == "collinear":
        X = np.hstack([X, 2.0 * X[:, :1], X[:, :1] + X[:, -1:]])
    elif kind == "separable":
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
    elif kind == "indicators":
        X = (rng.random((m, p)) < 0.3).astype(float)
    elif kind == "small units":
        X = 1e-3 * X
    top = 10.0 ** rng.uniform(-3, 3) * np.where(y > 0, 1.0, (y > 0).mean() / (y < 0).mean())
    if kind == "costs":
        top = top * rng.exponential(size=m)
        top[rng.random(m) < 0.2] = 0.0
    return np.ascontiguousarray(X.T), y, top


KINDS = ("plain", "repeated rows", "few values", "constant column", "collinear", "separable", "indicators")


@pytest.mark.parametrize("kind", [*KINDS, "small units", "costs"])
def test_the_interior_point_meets_the_conditions_and_the_objective_of_pair_steps(kind):
    for seed in range(8):
        V, y, top = drawn(kind, seed)
        c, b, objective, slack, violation = linear_svc.svc_by_columns(V, y, top, 1e-6)
        K = V.T @ V
        lo, hi = np.where(y > 0, 0.0, -top), np.where(y > 0, top, 0.0)
        assert (c >= lo).all()
        assert (c <= hi).all()
        assert abs(c.sum()) <= 1e-12 * max(1.0, np.abs(c).sum())
        E = y - K @ c
        assert max(E[c < hi].max() - E[c > lo].min(), 0.0) == pytest.approx(violation, abs=1e-7)
        assert violation <= 1e-6
        reference = smo.svc(K, y, top, np.zeros(len(y)), 1e-6, 10**6)
        assert objective == pytest.approx(np.abs(c).sum() - 0.5 * c @ K @ c, rel=1e-9)
        assert objective == pytest.approx(reference[2], rel=1e-5, abs=1e-8)
        np.testing.assert_allclose(slack, np.maximum(0.0, 1.0 - y * (K @ c + b)), atol=1e-7)
        primal = 0.5 * c @ K @ c + top @ slack
        assert primal - objective <= 1e-5 * max(1.0, top.sum())


def test_it_is_the_machine_of_scikit_learn():
    V, y, _ = drawn("plain", 3)
    ours = linear_svc.svc_by_columns(V, y, np.full(len(y), 2.0), 1e-9)
    theirs = SVC(kernel="linear", C=2.0, tol=1e-9).fit(V.T, y)
    np.testing.assert_allclose(V @ ours[0], theirs.coef_[0], atol=1e-5)  # whose kernel is in single precision
    assert ours[1] == pytest.approx(theirs.intercept_[0], abs=1e-5)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_it_has_a_lower_objective_than_a_library_at_its_tolerance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = np.where(X[:, :4].sum(axis=1) + rng.normal(size=2000) > 0.5, 1.0, -1.0)
    c, _b, _, slack, violation = linear_svc.svc_by_columns(np.ascontiguousarray(X.T), y, np.ones(2000), 1e-6)
    w = X.T @ c
    theirs = LinearSVC(loss="hinge", dual=True, random_state=0, max_iter=10_000).fit(X, y)
    u, d = theirs.coef_[0], theirs.intercept_[0]
    assert violation <= 1e-6
    assert 0.5 * w @ w + slack.sum() <= 0.5 * u @ u + np.maximum(0.0, 1.0 - y * (X @ u + d)).sum() + 1e-6


@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_one_class_or_no_row_that_counts(cost):
    V = np.random.default_rng(0).normal(size=(2, 10))
    c, b, objective, slack, violation = linear_svc.svc_by_columns(V, np.ones(10), np.full(10, cost), 1e-6)
    assert not c.any()
    assert objective == 0.0
    assert violation == 0.0
    if cost:
        assert b >= 1.0 - 1e-12
        assert not slack.any()


def grams():
    X = np.random.default_rng(1).normal(size=(30, 6))
    table, weight, live = Schema.from_table(X).table(X), np.linspace(0.5, 2.0, 6), np.array([0, 1, 3, 5])
    kernel = Linear(average=True)
    return X, ThinGram.build(kernel, table, weight, live), LinearGram.build(kernel, table, weight, live)


def test_a_thin_gram_is_the_linear_one(monkeypatch):
    monkeypatch.setattr("marginsieve.kernels.numeric.THIN", 5)
    _X, thin, plain = grams()
    rng = np.random.default_rng(2)
    c, d, Z = rng.normal(size=30), rng.normal(size=30), rng.normal(size=(7, 6))

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)

    def alike(one, two):
        same(one.factor.T @ one.factor, two.matrix())
        same(one.matrix(), two.matrix())
        same(one.matrix(Z), two.matrix(Z))
        same(one.apply(c[: one.table.shape[0]]), two.apply(c[: one.table.shape[0]]))
        same(one.apply(c[: one.table.shape[0]], Z), two.apply(c[: one.table.shape[0]], Z))
        same(one.diagonal(), two.diagonal())
        same(one.diagonal(Z), two.diagonal(Z))
        same(one.weight, two.weight)

    alike(thin, plain)
    for name in ("drop_one_change", "weight_gradient", "drop_one_diagonal_change", "feature_quadratic"):
        same(getattr(thin, name)(c), getattr(plain, name)(c))
    same(drop_one(thin, c), drop_one(plain, c))
    same(drop_one(thin, c, Z), drop_one(plain, c, Z))
    same(thin.drop_one_change(c, d), plain.drop_one_change(c, d))
    same(thin.weight_gradient(c, d), plain.weight_gradient(c, d))
    same(thin.feature_products(c, np.array([0, 2])), plain.feature_products(c, np.array([0, 2])))
    alike(thin.without(np.array([3])), plain.without(np.array([3])))
    alike(thin.without(np.array([3])).without(np.array([0])), plain.without(np.array([0, 3])))
    alike(thin.rescale(np.arange(6.0) + 1), plain.rescale(np.arange(6.0) + 1))
    other = np.array([1, 5])
    alike(thin.rescale(np.arange(6.0) + 1, other), plain.rescale(np.arange(6.0) + 1, other))
    alike(thin.only(np.arange(12)), plain.only(np.arange(12)))
    direction = rng.normal(size=4)
    same(thin.line(direction).matrix(0.3), plain.line(direction).matrix(0.3))
    same(thin.line(direction).gram_at(0.3).matrix(), plain.line(direction).gram_at(0.3).matrix())
    sums, known = thin.subset_sums(Z), plain.subset_sums(Z)
    A, squares = sums.sums_over(np.array([0, 2]))
    B, others = known.sums_over(np.array([0, 2]))
    same(sums.gram(A[:30], np.array([0, 2])).matrix(), known.gram(B[:30], np.array([0, 2])).matrix())
    for ours, theirs in zip(
        sums.kernel(sums.gram(A[:30], np.array([0, 2])), A[30:], squares),
        known.kernel(known.gram(B[:30], np.array([0, 2])), B[30:], others),
        strict=True,
    ):
        same(ours, theirs)


@pytest.fixture
def tall():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 24))
    y = (X[:, :5] @ np.array([1.0, 0.8, 0.6, 0.4, 0.3]) + rng.normal(size=900) > 0.8).astype(int)
    return X, y


@pytest.mark.parametrize("recipe", ["svm_rfe", "fisher", "svm_bfe"])
def test_the_path_is_that_of_a_kernel_matrix(tall, recipe, monkeypatch):
    X, y = tall
    settings = {"class_weight": "balanced", "standardize": True, "random_state": 0, "n_features_to_select": 6}
    if recipe == "svm_bfe":
        X, y = X[:450, :8], y[:450]
    thin = recipes.get(recipe)(**settings).fit(X, y)
    monkeypatch.setattr("marginsieve.kernels.numeric.THIN", 10**9)
    plain = recipes.get(recipe)(**settings).fit(X, y)
    np.testing.assert_array_equal(thin.ranking_, plain.ranking_)
    np.testing.assert_allclose(thin.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(thin.decision_function(X), plain.decision_function(X), atol=1e-4)


def test_no_kernel_matrix_is_made(tall, monkeypatch):
    X, y = tall

    def refuse(*_):
        raise AssertionError("a matrix of rows by rows")

    build = LinearGram.build.__func__

    def thin_only(cls, *args):
        return build(cls, *args) if cls is ThinGram else refuse()

    monkeypatch.setattr(ThinGram, "weighted_sum", refuse)
    monkeypatch.setattr(LinearGram, "build", classmethod(thin_only))
    for recipe in (recipes.svm_rfe, recipes.fisher, recipes.stable_fisher, recipes.l1_cssvm):
        made = recipe(class_weight="balanced", standardize=True, random_state=0).fit(X, y)
        assert made.score(X, y) > 0.7


def test_what_has_no_thin_gram_has_a_matrix(tall):
    X, y = tall
    table = Schema.from_table(X).table(X)
    everything = np.arange(24)
    assert isinstance(Linear().bind(table, np.ones(24), everything), ThinGram)
    assert isinstance(Linear().bind(table.rows(np.arange(300)), np.ones(24), everything), LinearGram)
    assert not isinstance(Linear().bind(table.rows(np.arange(300)), np.ones(24), everything), ThinGram)
    gaussian = Gaussian()
    gram = gaussian.bind(table, gaussian.start(table), everything)
    assert gram.factor is None
    assert gram.rows_at_once == 0
    machine = CSVC(C=1e9, max_iter=1000)
    selector = SVMSelector("linear", machine, n_features_to_select=1, threshold="margin", random_state=0)
    with pytest.warns(ConvergenceWarning, match="residual"):  # said, not hidden
        assert selector.fit(X[:500, :2] * 1e3, y[:500]).n_features_ == 1


def test_samples_that_are_alike_on_the_margin_are_no_obstacle():
    """Rows at 0, rows that are equal, and columns that depend on each other: the equations have many solutions."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(-1, 2, size=(12, 2)).astype(float), 5, axis=0)
    X = np.column_stack([X, X[:, 0] + X[:, 1], 2.0 * X[:, 0]])
    X[:10] = 0.0
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    for C in (0.01, 1.0, 100.0):
        c, b, objective, slack, violation = linear_svc.svc_by_columns(
            np.ascontiguousarray(X.T), y, np.full(60, C), 1e-7
        )
        assert violation <= 1e-7
        assert objective == pytest.approx(smo.svc(X @ X.T, y, np.full(60, C), np.zeros(60), 1e-9, 10**7)[2], rel=1e-7)
        assert abs(c.sum()) <= 1e-8 * np.abs(c).sum() + 1e-12
        np.testing.assert_allclose(slack, np.maximum(0.0, 1.0 - y * (X @ (X.T @ c) + b)), atol=1e-9)
