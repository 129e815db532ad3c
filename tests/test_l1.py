"""The l1 machine: optimal by its duality gap, equal to a general solver; its path ranks all features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import columns_of, l1_certificate
from scipy import sparse
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from marginsieve import SVMSelector, recipes
from marginsieve.data.table import Schema, Table
from marginsieve.errors import InputError
from marginsieve.kernels import Linear
from marginsieve.machines import CSVC, L1SVC
from marginsieve.searches import LearnedPath
from marginsieve.solvers import squared_hinge

FIXED = {"n_features_to_select": 3, "threshold": "margin"}


def wide(seed, m=30, n=60):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) < m // 3, 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0, :4] += 1.0
    return X, y, rng.uniform(0.3, 3.0, m)


def by_bounds(X, y, top):
    """The same problem with w = u - v, u, v >= 0, by a general solver."""
    n = X.shape[1]
    A = np.column_stack([X, -X, np.ones(len(X))])

    def value(t):
        slack = np.maximum(0.0, 1.0 - y * (A @ t))
        slope = -2 * A.T @ (top * y * slack)
        slope[:-1] += 1.0
        return t[:-1].sum() + top @ slack**2, slope

    bounds = [(0, None)] * (2 * n) + [(None, None)]
    chosen = {"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(value, np.zeros(2 * n + 1), jac=True, bounds=bounds, method="L-BFGS-B", options=chosen).fun


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(4, 40),
    n=st.integers(1, 80),
    C=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]),
    copies=st.booleans(),
)
def test_the_duality_gap_closes(seed, m, n, C, copies):
    """From all weights 0 to separated classes; with equal columns too, where the optimum is not unique."""
    X, y, cost = wide(seed, m, n)
    X = np.hstack([X, X[:, :1], X]) if copies else X
    machine = L1SVC(C=C, tol=1e-7)
    solution = machine.solve(columns_of(X), y, cost)
    assert solution.converged
    assert solution.residual <= 1e-7
    gap = l1_certificate(X, y, C * cost, solution.weights, solution.intercept)
    assert gap <= 1e-5 * max(1.0, solution.objective)
    f = X @ solution.weights + solution.intercept
    np.testing.assert_allclose(solution.coef, 2 * C * cost * y * np.maximum(0.0, 1.0 - y * f), atol=1e-6 * C)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_equal_to_a_general_solver(C):
    X, y, cost = wide(1)
    ours = L1SVC(C=C, tol=1e-8).solve(columns_of(X), y, cost)
    assert ours.objective == pytest.approx(by_bounds(X, y, C * cost), rel=1e-6)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_never_above_liblinear_which_penalises_the_intercept(C):
    X, y, cost = wide(2)
    ours = L1SVC(C=C, tol=1e-8).solve(columns_of(X), y, cost)
    theirs = LinearSVC(penalty="l1", dual=False, C=C, tol=1e-6, max_iter=100000, random_state=0, intercept_scaling=100)
    theirs.fit(X, y, sample_weight=cost)
    w, b = theirs.coef_[0], theirs.intercept_[0]
    value = np.abs(w).sum() + C * cost @ np.maximum(0.0, 1.0 - y * (X @ w + b)) ** 2
    assert ours.objective <= value + 1e-9
    assert ours.objective >= value - abs(b) / 100 - 1e-4 * value  # what the penalised intercept and its tolerance cost
    gap = l1_certificate(X, y, C * cost, ours.weights, ours.intercept)
    assert gap < l1_certificate(X, y, C * cost, w, b)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_columns_is_a_unit_of_the_weights(unit):
    """|w|_1 over columns of another unit is another price: C has to follow."""
    X, y, cost = wide(15)
    plain = L1SVC(C=50.0, tol=1e-6).solve(columns_of(X), y, cost)
    other = L1SVC(C=50.0 / unit, tol=1e-6).solve(columns_of(X * unit), y, cost)
    assert other.converged
    np.testing.assert_allclose(other.weights * unit, plain.weights, atol=1e-4)


def test_the_first_feature_enters_where_it_says():
    X, y, cost = wide(3)
    view = columns_of(X)
    first = L1SVC().first(view, y, cost)
    below, above = (L1SVC(C=first * factor, tol=1e-10).solve(view, y, cost) for factor in (0.999, 1.001))
    assert not below.weights.any()
    assert below.intercept == pytest.approx(cost @ y / cost.sum())
    assert np.count_nonzero(above.weights) == 1


def test_a_doubled_cost_is_a_row_twice():
    X, y, _ = wide(4)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    machine = L1SVC(C=2.0, tol=1e-9)
    once = machine.solve(columns_of(X), y, times.astype(float))
    twice = machine.solve(columns_of(np.repeat(X, times, axis=0)), np.repeat(y, times), np.ones(times.sum()))
    np.testing.assert_allclose(once.weights, twice.weights, atol=1e-7)
    assert once.objective == pytest.approx(twice.objective)


def test_warm_starts_arrive_where_cold_ones_do():
    X, y, cost = wide(5)
    view = columns_of(X)
    warm = None
    for C in (100.0, 0.1, 1.0, 10.0, 0.01):
        machine = L1SVC(C=C, tol=1e-9)
        warm, cold = machine.solve(view, y, cost, warm), machine.solve(view, y, cost)
        np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-6)


def test_sparse_and_averaged_tables():
    X, y, cost = wide(6)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    table = Schema.from_table(X).table(X)
    thin = Table(sparse.csc_array(X), table.kind, table.names)
    machine = L1SVC(tol=1e-9)
    dense, other = (machine.solve(columns_of(part), y, cost) for part in (table, thin))
    np.testing.assert_allclose(other.weights, dense.weights, atol=1e-7)
    averaged = machine.solve(columns_of(table, Linear(average=True)), y, cost)
    factor = 1 / np.sqrt(X.shape[1])
    plain = machine.solve(columns_of(X * factor), y, cost)
    np.testing.assert_allclose(averaged.weights, plain.weights * factor, atol=1e-7)
    Z = sparse.csr_array(X[:5])
    np.testing.assert_allclose(machine.decision(dense, columns_of(table), Z), X[:5] @ dense.weights + dense.intercept)


def test_a_row_of_cost_zero_takes_no_part():
    X, y, cost = wide(7, 12, 20)
    view, machine = columns_of(X), L1SVC(tol=1e-9)
    whole = machine.solve(view, y, cost)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        alone = machine.solve(columns_of(X[rest]), y[rest], cost[rest])
        fold = machine.solve(view, y, np.where(rest, cost, 0.0), whole)
        assert X[i] @ fold.weights + fold.intercept == pytest.approx(X[i] @ alone.weights + alone.intercept, abs=1e-5)


def test_work_that_runs_out_is_said_so():
    X, y, cost = wide(8, 40, 80)
    solution = L1SVC(C=100.0, tol=1e-14, max_iter=1).solve(columns_of(X), y, cost)
    assert not solution.converged
    assert solution.residual > 1e-14
    with pytest.raises(InputError, match="machine: C is -1; it must be a positive number"):
        L1SVC(C=-1).check()


# -- the path ------------------------------------------------------------------------------------------------


def test_the_path_ranks_by_entry_and_then_by_gradient():
    X, y, _ = wide(9)
    selector = SVMSelector(machine=L1SVC(C=5.0, tol=1e-9), criterion=None, search=LearnedPath(points=25), **FIXED)
    path = selector.fit(X, y).path_
    view, cost = columns_of(X), np.ones(len(y))
    first = L1SVC().first(view, y, cost)
    seen, at = [], None
    for C in np.geomspace(first, 5.0, 25)[1:]:
        at = L1SVC(C=C, tol=1e-9).solve(view, y, cost)
        new = [j for j in np.argsort(-np.abs(at.weights)) if at.weights[j] != 0 and j not in seen]
        seen += new
    rest = [j for j in np.argsort(-np.abs(X.T @ at.coef)) if j not in seen]
    np.testing.assert_array_equal(path.order, seen + rest)
    assert f"{len(seen)} of 60 features entered" in path.stop_reason
    assert all(path.scores[j] >= 1 for j in seen)
    assert all(0 <= path.scores[j] < 1 for j in rest)
    sizes = [step.size for step in path.steps]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] >= 1
    assert max(step.residual for step in path.steps) <= 1e-9


def test_columns_may_be_permuted():
    X, y, _ = wide(10)
    order = np.random.default_rng(0).permutation(X.shape[1])
    one, two = (recipes.l1_cssvm(C=3.0, **FIXED).fit(part, y).ranking_ for part in (X, X[:, order]))
    np.testing.assert_array_equal(two, one[order])


def test_a_price_below_the_first_entry_leaves_the_gradient():
    X, y, _ = wide(11)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.warns(UserWarning, match="the decision value is the same for every training row"):
        made = recipes.l1_cssvm(C=1e-6, **FIXED).fit(X, y)
    np.testing.assert_array_equal(np.argsort(-np.abs(Z.T @ (y - y.mean())), kind="stable"), made.path_.order)
    assert "0 of 60 features entered" in made.path_.stop_reason
    assert [step.size for step in made.path_.steps] == [60]


def test_another_machine_may_be_fitted_at_the_end():
    X, y, _ = wide(12)
    chosen = {"C": 3.0, "n_features_to_select": 12, "threshold": "margin", "standardize": False}
    lean, full = (recipes.l1_cssvm(final=final, **chosen).fit(X, y) for final in (None, "c_svc"))
    np.testing.assert_array_equal(lean.support_, full.support_)
    own = SVMSelector(machine=CSVC(), n_features_to_select=1.0, threshold="margin").fit(X[:, full.support_], y)
    np.testing.assert_allclose(full.decision_function(X), own.decision_function(X[:, full.support_]), atol=1e-3)
    assert np.abs(lean.decision_function(X) - full.decision_function(X)).max() > 0.01
    for wrong, sentence in ((3, "search: final is 3"), (CSVC, "search: final is <class"), (CSVC(C=-1), "C is -1")):
        with pytest.raises(InputError, match=sentence):
            recipes.l1_cssvm(**FIXED).set_params(search__final=wrong).fit(X, y)
    with pytest.raises(InputError, match="not a kernel such as Gaussian: use kernel='linear'"):
        recipes.l1_cssvm(kernel="gaussian", **FIXED).fit(X, y)
    with pytest.raises(InputError, match="search: points is 1"):
        recipes.l1_cssvm(points=1, **FIXED).fit(X, y)


@pytest.mark.usefixtures("kept_sparse")
def test_sparse_tables_go_through_the_recipe():
    X, y, _ = wide(13)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense, thin = (recipes.l1_cssvm(C=3.0, **FIXED).fit(part, y) for part in (X, sparse.csr_array(X)))
    np.testing.assert_array_equal(dense.ranking_, thin.ranking_)


def test_it_is_tuned_like_the_others():
    from marginsieve import tune

    X, y, _ = wide(14, 45, 40)
    X[y > 0, :4] += 1.0
    tuned = tune(recipes.l1_cssvm(**FIXED), X, y, {"machine__C": (1e-4, 1.0)}, cv=3)
    assert tuned.params == {"machine__C": 1.0}
    assert tuned.scores["machine"] > 0.8


def test_more_to_keep_than_ever_enters(rng):
    y = (np.arange(60) % 4 == 0).astype(int)
    X = rng.normal(size=(60, 300))
    X[:, :3] += 2 * y[:, None]
    made = recipes.l1_cssvm(C=0.05, keep=list(range(100, 115)), random_state=0).fit(X, y)
    assert 15 <= made.n_features_ < 100
    assert made.support_[100:115].all()


@pytest.mark.parametrize("shape", [(30, 400), (300, 40)])
def test_the_path_is_its_single_machines(shape):
    """What is kept from one C to the next, and columns whose gradient is not computed, change nothing."""
    X, y, cost = wide(21, *shape)
    view, machine = columns_of(X), L1SVC(tol=1e-8)
    prices = np.geomspace(1.01 * machine.first(view, y, cost), 5.0, 25)
    for C, one in zip(prices, machine.solve_path(view, y, cost, prices), strict=True):
        assert one.residual <= 1e-8
        f = X @ one.weights + one.intercept
        c = 2 * C * cost * y * np.maximum(0.0, 1.0 - y * f)
        g = c @ X
        broken = np.where(one.weights == 0, np.maximum(np.abs(g) - 1, 0), np.abs(g - np.sign(one.weights)))
        assert max(broken.max(), abs(c.sum())) <= 1e-7
        alone = L1SVC(C=float(C), tol=1e-8).solve(view, y, cost)
        np.testing.assert_allclose(one.weights, alone.weights, atol=1e-6)


def test_cholesky_is_that_of_lapack():
    rng = np.random.default_rng(0)
    for count in (1, 3, 4, 5, 17):
        A = rng.normal(size=(count, count + 3))
        A, d = A @ A.T, rng.normal(size=count)
        x = d.copy()
        assert squared_hinge._solve_in_place(A.copy(), x, count)
        np.testing.assert_allclose(x, np.linalg.solve(A, d), rtol=1e-8)
    assert not squared_hinge._solve_in_place(-np.eye(3), np.ones(3), 3)
