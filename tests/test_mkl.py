"""Multiple kernel learning: certified by its gap, equal to C-SVC, to brute force and to an l1 machine in its limits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import gram_of
from scipy.optimize import linprog, minimize

from marginsieve import MKLClassifier, recipes
from marginsieve.data.table import Schema
from marginsieve.errors import InputError
from marginsieve.kernels import Clinical, Linear, clinical_kernel
from marginsieve.machines import CSVC, MKL
from marginsieve.machines.kernel_machines import mix_kernels
from marginsieve.solvers import kernel_weights as _mkl
from test_clinical import table as mixed_table


def labels(m):
    return np.where(np.arange(m) < max(2, m // 3), 1.0, -1.0)


def problem(seed, m, n, shift=1.0, kernel=None):
    """Clinical kernels of n columns, half of them nominal, cells missing; linear ones of numbers where asked."""
    rng = np.random.default_rng(seed)
    y = labels(m)
    X = rng.normal(size=(m, n))
    X[y > 0, : max(1, n // 3)] += shift
    if kernel is not None:
        return gram_of(kernel, X), y, rng
    X[:, n // 2 :] = np.round(X[:, n // 2 :])
    X[rng.random(X.shape) < 0.05] = np.nan
    kinds = {f"x{j}": "nominal" for j in range(n // 2, n)}
    return gram_of(Clinical(), Schema.from_table(X, kinds).table(X)), y, rng


def J(gram, mu, y, cost, C):
    return CSVC(C=C, tol=1e-10).solve(mix_kernels(gram, mu), y, cost).objective


@pytest.mark.parametrize("kernel", [Linear(), Clinical(), Clinical(average=True)], ids=str)
def test_one_kernel_is_c_svc(kernel, rng):
    y = labels(40)
    X = rng.normal(size=(40, 1)) + 0.7 * y[:, None]
    gram, cost = gram_of(kernel, X, np.ones(1)), rng.uniform(0.5, 2.0, 40)
    one, other = (machine.solve(gram, y, cost) for machine in (MKL(C=2.0, tol=1e-8), CSVC(C=2.0, tol=1e-10)))
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    assert one.residual <= 1e-8
    Z = rng.normal(size=(15, 1))
    np.testing.assert_allclose(
        MKL().decision(one, gram, Z), CSVC().decision(other, gram, Z), atol=1e-5 * np.abs(other.intercept)
    )


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_two_kernels_are_a_line_search(C):
    gram, y, rng = problem(3, 40, 2)
    cost = rng.uniform(0.5, 2.0, 40)
    grid = np.linspace(0.0, 1.0, 201)
    values = [J(gram, np.array([t, 1.0 - t]), y, cost, C) for t in grid]
    found = MKL(C=C, tol=1e-7).solve(gram, y, cost)
    assert found.objective <= min(values) * (1 + 1e-7)
    assert found.objective >= min(values) - 1e-3 * abs(min(values))
    assert abs(found.scale[0] ** 2 - grid[int(np.argmin(values))]) <= 0.01


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), m=st.integers(6, 30), n=st.integers(2, 8), C=st.sampled_from([0.03, 0.3, 3.0, 100.0])
)
def test_the_gap_is_a_certificate(seed, m, n, C):
    """J at the weights is never further above the least that a general solver finds than the gap says."""
    gram, y, rng = problem(seed, m, n)
    cost = rng.uniform(0.5, 2.0, m)
    found = MKL(C=C, tol=1e-4).solve(gram, y, cost)
    mu = found.scale**2
    assert mu.min() >= 0
    assert mu.sum() == pytest.approx(1.0)
    assert found.converged
    assert found.residual <= 1e-4
    assert found.objective == pytest.approx(J(gram, mu, y, cost, C), rel=1e-5)

    def value(t):
        mu = np.abs(t) / np.abs(t).sum()
        solved = CSVC(C=C, tol=1e-9).solve(mix_kernels(gram, mu), y, cost)
        return solved.objective

    best = minimize(value, mu + 1e-3, method="Nelder-Mead", options={"maxiter": 200, "xatol": 1e-7, "fatol": 1e-10})
    starts = [found.objective, best.fun, *(value(np.eye(n)[j] + 1e-12) for j in range(n)), value(np.ones(n))]
    assert found.objective <= min(starts) + 1.01e-4 * found.objective


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_on_linear_kernels_it_is_an_l1_machine(C):
    """min 1/2 |w|_1^2 + C sum hinge: at its own |w|_1 a linear program finds no smaller loss, nor do its neighbours."""
    gram, y, _ = problem(0, 30, 12, kernel=Linear())
    X, m = gram.table.Z, 30
    found = MKL(C=C, tol=1e-8).solve(gram, y, np.ones(m))
    w = found.scale**2 * (X.T @ found.coef)
    np.testing.assert_allclose(X @ w + found.intercept, MKL().decision(found, gram, X), atol=1e-9)
    size = np.abs(w).sum()
    hinge = np.maximum(0.0, 1.0 - y * (X @ w + found.intercept)).sum()
    assert found.objective == pytest.approx(0.5 * size**2 + C * hinge, rel=1e-6)

    def least(t):
        """C times the least loss with |w|_1 <= t, plus t^2 / 2."""
        n = X.shape[1]
        A = np.vstack(
            [
                np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None], y[:, None], -np.eye(m)]),
                np.concatenate([np.ones(2 * n), np.zeros(2 + m)])[None],
            ]
        )
        cost = np.concatenate([np.zeros(2 * n + 2), np.ones(m)])
        return 0.5 * t * t + C * linprog(cost, A, np.append(-np.ones(m), t)).fun

    for t in (size, 0.97 * size, 1.03 * size):
        assert found.objective <= least(t) * (1 + 1e-7)
    assert found.objective == pytest.approx(least(size), rel=1e-6)


def test_a_cost_of_two_is_a_row_twice():
    gram, y, rng = problem(5, 24, 6)
    twice = np.r_[np.arange(24), [0, 20]]
    X = gram.table.Z
    schema = Schema.from_table(X, dict(zip(gram.table.names, gram.table.kind, strict=True)))
    other = gram_of(Clinical(), schema.table(X[twice]))
    cost = np.ones(24)
    cost[[0, 20]] = 2.0
    one = MKL(tol=1e-7).solve(gram, y, cost)
    two = MKL(tol=1e-7).solve(other, y[twice], np.ones(26))
    assert one.objective == pytest.approx(two.objective, rel=1e-6)
    del rng


def test_warm_starts_end_where_cold_ones_do():
    gram, y, _ = problem(2, 50, 40)
    cost, machine = np.ones(50), MKL(tol=1e-6)
    before = machine.solve(gram, y, cost)
    rest = gram.without(np.flatnonzero(before.scale > np.median(before.scale[before.scale > 0])))
    cold, warm = machine.solve(rest, y, cost), machine.solve(rest, y, cost, before)
    assert warm.objective == pytest.approx(cold.objective, rel=3e-6)
    dropped = gram.without(np.flatnonzero(before.scale == 0)[:5])
    again = machine.solve(dropped, y, cost, before)
    assert again.objective == pytest.approx(before.objective, rel=1e-9)  # a feature without a weight is not missed


def test_hinge_finds_the_best_intercept(rng):
    for _ in range(20):
        y, f, top = labels(9), rng.normal(size=9), rng.uniform(0.1, 1.0, 9)
        plain = [top @ np.maximum(0.0, 1.0 - y * (f + b)) for b in y - f]
        assert _mkl.hinge(f, y, top) == pytest.approx(min(plain))


def test_the_hessian_is_a_difference_of_gradients():
    gram, y, _ = problem(4, 40, 6, shift=0.5)
    base = _mkl.BaseKernels(6, lambda mu: mix_kernels(gram, mu).matrix(), gram.feature_quadratic, gram.feature_products)
    search = _mkl._WeightSearch(base, y, np.full(40, 5.0), 1e-12, 1)
    mu, step = np.full(6, 1 / 6), 1e-5
    here = search.solve_at(mu, np.zeros(40))
    H = _mkl._hessian(base, np.full(40, 5.0), here, np.arange(6))
    for f in range(6):
        away = step * np.eye(6)[f]
        slopes = [-0.5 * search.solve_at(mu + sign * away, here.c).q for sign in (1, -1)]
        np.testing.assert_allclose(H[f], (slopes[0] - slopes[1]) / (2 * step), rtol=1e-3, atol=1e-5 * np.abs(H).max())


# -- the recipe and the classifier ---------------------------------------------------------------------------------


@pytest.fixture
def cohort():
    frame = pd.concat([mixed_table(1, 70), pd.DataFrame(np.random.default_rng(2).normal(size=(70, 40)))], axis=1)
    frame.columns = frame.columns.astype(str)
    y = np.where(np.arange(70) < 25, "case", "control")
    frame["age"] += np.where(y == "case", 20.0, 0.0)
    frame["site"] = np.where((y == "case") & (np.arange(70) % 5 > 0), "b", frame["site"].to_numpy(dtype=object))
    return frame, y


def test_elimination_ranks_by_weight_then_by_pull(cohort):
    X, y = cohort
    made = recipes.mkl_rfe(step=1, n_features_to_select=2, threshold="margin").fit(X, y)
    assert set(made.get_feature_names_out()) == {"age", "site"}
    assert "features without a weight ranked by c'K_f c" in made.path_.stop_reason
    once = recipes.mkl_rfe(threshold="margin", n_features_to_select=5).set_params(search="top_k").fit(X, y)
    mu = MKLClassifier().fit(X, y).weights_
    live = np.flatnonzero(mu > 0)
    assert set(np.argsort(once.ranking_)[: len(live)]) == set(live)
    np.testing.assert_allclose(once.scores_, mu, atol=1e-3)
    own = recipes.mkl_rfe(final=None, n_features_to_select=2, threshold="margin").fit(X, y)
    assert isinstance(made.model_.machine, CSVC)
    assert isinstance(own.model_.machine, MKL)
    assert own.score(X, y) > 0.8


def test_the_classifier_takes_mixed_tables(cohort):
    X, y = cohort
    made = MKLClassifier(C=0.5, class_weight="balanced", tol=1e-5).fit(X, y)
    assert made.weights_.shape == (X.shape[1],)
    assert made.weights_.sum() == pytest.approx(1.0)
    assert made.gap_ <= 1e-5
    assert made.score(X, y) > 0.85
    named = dict(zip(X.columns, made.weights_, strict=True))
    assert min(named["age"], named["site"]) > max(named[str(j)] for j in range(40))
    heavy = [name for name, mu in named.items() if mu > 0]
    K = sum(named[name] * clinical_kernel(X[[name]]) for name in heavy)
    cost = np.where(y == "case", 70 / 50, 70 / 90)
    assert made.objective_ == pytest.approx(
        CSVC(C=0.5, tol=1e-9).solve_matrix(K, np.where(y == "case", -1.0, 1.0), cost, np.zeros(70)).objective, rel=1e-4
    )


def test_three_classes_have_weights_each(cohort):
    X, y = cohort
    y = np.where(np.arange(70) % 7 == 0, "other", y)
    made = MKLClassifier().fit(X, y)
    assert made.weights_.shape == (3, X.shape[1])
    np.testing.assert_allclose(made.weights_.sum(axis=1), 1.0)
    assert made.decision_function(X).shape == (70, 3)


def test_constant_columns_have_no_weight(cohort):
    X, y = cohort
    made = MKLClassifier().fit(X.assign(same=1.0), y)
    assert made.weights_[-1] == 0.0


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"kernel": "gaussian"}, "MKL weighs one kernel per feature and Gaussian is not a sum of such: use kernel="),
        ({"C": -1}, "C is -1"),
        ({"class_weight": "even"}, "class_weight is 'even'"),
        ({"kernel": "linear"}, "missing|text or categories"),
    ],
)
def test_what_makes_no_sense_is_refused(told, sentence, cohort):
    with pytest.raises(InputError, match=sentence):
        MKLClassifier(**told).fit(*cohort)


@pytest.mark.parametrize("C", [1e3, 1e5])
def test_large_prices_are_no_problem(C):
    gram, y, _ = problem(1, 60, 30)
    found = MKL(C=C).solve(gram, y, np.ones(60))
    assert found.converged
    assert found.objective == pytest.approx(MKL(C=1e3, tol=1e-6).solve(gram, y, np.ones(60)).objective, rel=1e-3)


def test_a_gap_that_rounding_hides_is_not_claimed():
    """A column of a million times the size of the other: the gap is told as it is, or is right."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = np.repeat([-1.0, 1.0], 12)
        X = rng.normal(size=(24, 2)) * [1e6, 1.0] + np.outer(y, [0.0, 0.5])
        gram = gram_of(Linear(), X)
        found = MKL(C=1000.0).solve(gram, y, np.ones(24))
        w = found.scale**2 * (X.T @ found.coef)
        hinge = np.maximum(0.0, 1.0 - y * (X @ w + found.intercept)).sum()
        primal = 0.5 * np.abs(w).sum() ** 2 + 1000.0 * hinge
        bound = np.abs(found.coef).sum() - 0.5 * (X.T @ found.coef).__pow__(2).max()
        assert found.residual >= 0
        if found.converged:
            assert primal - bound <= 0.05 * primal


def test_a_limit_is_said(cohort):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="relative duality gap of .*, above tol=1e-05"):
        MKLClassifier(tol=1e-5, max_iter=2).fit(*cohort)
