"""C-SVC: certified optimal, equal to scikit-learn's SVC, warm starts and limits harmless."""

import signal
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import columns_of, gram_of, svc_certificate
from sklearn.svm import SVC

from marginsieve.algebra import GenericGram
from marginsieve.contracts import LearnsWeights
from marginsieve.errors import InputError
from marginsieve.kernels import Gaussian, Linear, Polynomial
from marginsieve.machines import CSVC, MACHINES
from marginsieve.solvers import smo as _smo


def given_matrix(K):
    class Fixed(GenericGram):
        def __init__(self):
            pass

        def matrix(self, Z=None):
            return np.ascontiguousarray(K)

    return Fixed()


def problem(seed, m, n, shift):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) < max(2, m // 3), 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0] += shift
    return X, y, rng


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(), Polynomial()], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(40, 200), (60, 3)], ids=str)
def test_equals_scikit_learn(kernel, C, shape):
    X, y, rng = problem(1, *shape, 0.5)
    cost = rng.uniform(0.3, 3.0, len(y))
    gram = gram_of(kernel, X)
    K = gram.matrix()
    solution = CSVC(C=C, tol=1e-8).solve(gram, y, cost)
    broken, gap = svc_certificate(K, y, C * cost, solution.coef, solution.intercept)
    assert solution.converged
    assert solution.residual <= 1e-8
    assert broken <= 1e-9 * C
    assert gap <= 1e-8 * C * cost.sum() + 1e-9 * abs(solution.objective)
    theirs = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y, sample_weight=cost)
    c = np.zeros(len(y))
    c[theirs.support_] = theirs.dual_coef_[0]
    assert svc_certificate(K, y, C * cost, c, theirs.intercept_[0])[1] <= 1e-5 * C * cost.sum()  # it rounds K to single
    assert solution.objective == pytest.approx(c @ y - 0.5 * c @ K @ c, rel=1e-6)
    Z = rng.normal(size=(20, shape[1]))
    np.testing.assert_allclose(
        CSVC().decision(solution, gram, Z), theirs.decision_function(gram.matrix(Z)), atol=1e-3, rtol=1e-3
    )
    margin = y * (K @ solution.coef + solution.intercept)
    np.testing.assert_allclose(solution.slack, np.maximum(0, 1 - margin), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(4, 40),
    n=st.integers(1, 30),
    C=st.floats(1e-3, 1e3),
    spread=st.floats(0.0, 3.0),
)
def test_every_solution_is_certified(seed, m, n, C, spread):
    """Duplicated rows, zero costs, one feature, hard margins: feasible and within the gap all the same."""
    X, y, rng = problem(seed, m, n, spread)
    X[1] = X[0]
    cost = rng.choice([0.0, 0.5, 1.0, 2.0], size=m)
    cost[[0, -1]] = 1.0
    gram = gram_of(Linear(), X)
    solution = CSVC(C=C, tol=1e-6).solve(gram, y, cost)
    broken, gap = svc_certificate(gram.matrix(), y, C * cost, solution.coef, solution.intercept)
    assert broken <= 1e-9 * C
    assert solution.converged
    assert gap <= 1e-6 * C * cost.sum() + 1e-9 * abs(solution.objective)
    start = CSVC(C=2 * C, tol=1e-2).solve(gram, y, cost[::-1].copy())
    again = CSVC(C=C, tol=1e-6).solve(gram, y, cost, warm=start)
    assert again.objective == pytest.approx(solution.objective, abs=2e-6 * C * cost.sum())


def test_tight_tolerances_keep_the_constraint():
    """The conjugate directions must keep sum(c) = 0 when the residual is a billionth of the gradient."""
    X, y, _ = problem(0, 62, 2000, 0.05)
    gram = gram_of(Linear(), X)
    solution = CSVC(tol=1e-11).solve(gram, y, np.ones(62))
    broken, gap = svc_certificate(gram.matrix(), y, np.ones(62), solution.coef, solution.intercept)
    assert solution.converged
    assert broken < 1e-15
    assert gap <= 1e-11 * 62


def test_a_doubled_cost_is_a_repeated_sample():
    X, y, _ = problem(2, 30, 4, 0.7)
    cost = np.ones(30)
    cost[3] = 2.0
    once = CSVC(tol=1e-10).solve(gram_of(Linear(), X), y, cost)
    twice_X, twice_y = np.vstack([X, X[3]]), np.append(y, y[3])
    twice = CSVC(tol=1e-10).solve(gram_of(Linear(), twice_X), twice_y, np.ones(31))
    assert once.objective == pytest.approx(twice.objective, rel=1e-8)
    np.testing.assert_allclose(once.coef @ X, twice.coef @ twice_X, atol=1e-6)


# -- what holds for every machine -----------------------------------------------------------------------------------


def solved(name, X, y, cost, Z, warm=False):
    """The solution of a machine by name at a tight tolerance, and its values of the rows of Z."""
    machine = MACHINES[name]()
    if "tol" in machine.get_params():
        machine.set_params(tol=1e-6 if isinstance(machine, LearnsWeights) else 1e-9)  # a gap, or a violation
    view = gram_of(Linear(), X) if machine.needs == "gram" else columns_of(X)
    before = machine.solve(view, y, cost[::-1].copy()) if warm else None
    solution = machine.solve(view, y, cost, warm=before)
    return solution, machine.decision(solution, view, Z)


@pytest.fixture
def overlap():
    X, y, rng = problem(7, 30, 4, 0.7)
    return X, y, rng.choice([1.0, 2.0], size=30), rng.normal(size=(9, 4))


@pytest.mark.parametrize("name", MACHINES)
def test_a_cost_of_two_is_a_row_twice_for_every_machine(name, overlap):
    X, y, cost, Z = overlap
    times = cost.astype(int)
    costly, values = solved(name, X, y, cost, Z)
    twice, same = solved(name, np.repeat(X, times, axis=0), np.repeat(y, times), np.ones(times.sum()), Z)
    assert costly.converged
    assert costly.objective == pytest.approx(twice.objective, rel=1e-6)
    np.testing.assert_allclose(values, same, atol=1e-4)


@pytest.mark.parametrize("name", MACHINES)
def test_a_row_of_cost_zero_takes_no_part_in_any_machine(name, overlap):
    X, y, cost, Z = overlap
    cost[::4] = 0.0
    part = cost > 0
    whole, values = solved(name, X, y, cost, Z)
    rest, same = solved(name, X[part], y[part], cost[part], Z)
    assert whole.objective == pytest.approx(rest.objective, rel=1e-6)
    np.testing.assert_allclose(values, same, atol=1e-4)


@pytest.mark.parametrize("name", MACHINES)
def test_a_warm_start_ends_where_a_cold_one_does_for_every_machine(name, overlap):
    X, y, cost, Z = overlap
    (cold, values), (warm, same) = (solved(name, X, y, cost, Z, warm=warm) for warm in (False, True))
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    np.testing.assert_allclose(values, same, atol=1e-4)


def test_intercept_without_free_support_vectors():
    """Two overlapping pairs at a tiny C: all alpha at the bound; b must lie in the interval that optimality leaves."""
    x = np.array([1.0, -1.0, 1.5, -1.5])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    C = 0.01
    solution = CSVC(C=C).solve(given_matrix(np.outer(x, x)), y, np.ones(4))
    np.testing.assert_allclose(np.abs(solution.coef), C)
    assert solution.intercept == pytest.approx(0.0, abs=1e-12)  # by symmetry


def test_indefinite_matrices_end(rng):
    """A kernel that is none: the solver ends at a point it can justify, or says that it has not converged."""
    A = rng.normal(size=(30, 30))
    y = np.where(np.arange(30) < 10, 1.0, -1.0)
    solution = CSVC(max_iter=20_000).solve(given_matrix(A + A.T), y, np.ones(30))
    assert np.isfinite(solution.coef).all()
    assert abs(solution.coef.sum()) < 1e-9
    assert solution.converged == (solution.residual <= 1e-4)


def test_iteration_limit_is_told():
    X, y, _ = problem(3, 80, 5, 0.2)
    solution = CSVC(C=1000.0, tol=1e-10, max_iter=30).solve(gram_of(Linear(), X), y, np.ones(80))
    assert not solution.converged
    assert solution.residual > 1e-10


def test_the_compiled_loop_comes_back_often(monkeypatch):
    """Ctrl-C is heard between two calls of the compiled loop: each must be short."""
    X, y, _ = problem(4, 1500, 30, 0.2)
    gram = gram_of(Polynomial(degree=1), X)
    CSVC(C=100.0, max_iter=10).solve(gram, y, np.ones(1500))
    calls = []

    def watched(loop):
        def called(*arguments):
            since = time.perf_counter()
            result = loop(*arguments)
            calls.append(time.perf_counter() - since)
            return result

        return called

    monkeypatch.setattr(_smo, "_work_once", watched(_smo._work_once))
    CSVC(C=100.0, tol=1e-9, max_iter=200_000).solve(gram, y, np.ones(1500))
    assert len(calls) > 2
    assert np.median(calls) < 1.0


def test_an_interrupt_is_heard_within_a_second():
    X, y, _ = problem(6, 1500, 20, 0.02)
    gram = gram_of(Linear(), X)
    CSVC(max_iter=1).solve(gram, y, np.ones(1500))  # compiled before the clock starts

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.5)
        since = time.process_time()  # the timer counts the same
        with pytest.raises(KeyboardInterrupt):
            CSVC(C=1e4, tol=1e-13, max_iter=10**9).solve(gram, y, np.ones(1500))
        assert time.process_time() - since < 1.5
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_row_of_cost_zero_takes_no_part(C, class_weight):
    X, y, _ = problem(5, 25, 6, 0.6)
    K, machine = X @ X.T, CSVC(C=C, tol=1e-8)
    whole = machine.solve(gram_of(Linear(), X), y, np.ones(25))
    fast, slow = np.empty(25), np.empty(25)
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        weight = np.ones(24)
        if class_weight:
            share = {label: np.mean(y[rest] == label) for label in (-1.0, 1.0)}
            weight = np.array([0.5 / share[label] for label in y[rest]])
        model = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K[np.ix_(rest, rest)], y[rest], sample_weight=weight)
        slow[i] = model.decision_function(K[[i]][:, rest])[0]
        fold = machine.solve_matrix(K, y, np.insert(weight, i, 0.0), whole.coef)
        fast[i] = K[i] @ fold.coef + fold.intercept
    np.testing.assert_allclose(fast, slow, atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_a_warm_start_has_the_intercept_of_a_cold_one(C):
    """With no support vector free, rounding must not turn one at its bound into a free one."""
    rng = np.random.default_rng(2)
    Z, y = rng.normal(size=(30, 3)), np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    K, machine = Z @ Z.T, CSVC(C=C, tol=1e-9)
    whole = machine.solve_matrix(K, y, np.ones(30), np.zeros(30))
    fast, slow = np.empty(30), np.empty(30)
    for i in range(30):
        rest = np.delete(np.arange(30), i)
        model = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K[np.ix_(rest, rest)], y[rest])
        c = np.zeros(30)
        c[rest[model.support_]] = model.dual_coef_[0]
        slow[i] = K[i] @ c + middle_intercept(K, y, C, c, rest)
        fold = machine.solve_matrix(K, y, np.where(np.arange(30) == i, 0.0, 1.0), whole.coef)
        fast[i] = K[i] @ fold.coef + fold.intercept
    np.testing.assert_allclose(fast, slow, atol=1e-3)


def middle_intercept(K, y, C, c, rest):
    """scikit-learn's own intercept sits at an end of its interval where rounding makes a support vector look free."""
    E, alpha, y = (y - K @ c)[rest], (c * y)[rest] / C, y[rest]
    free = (alpha > 1e-6) & (alpha < 1 - 1e-6)
    if free.any():
        return E[free].mean()
    may_rise = np.where(y > 0, alpha < 0.5, alpha > 0.5)
    return 0.5 * (E[may_rise].max() + E[~may_rise].min())


def test_kernels_that_are_not_finite_are_refused():
    K = np.eye(4)
    K[1, 2] = K[2, 1] = np.inf
    with pytest.raises(InputError, match="not finite"):
        CSVC().solve(given_matrix(K), np.array([1.0, 1, -1, -1]), np.ones(4))


@pytest.mark.parametrize(
    "settings", [{"C": -1}, {"C": 0}, {"C": float("nan")}, {"C": "a"}, {"tol": 0}, {"max_iter": 0}]
)
def test_parameters_without_sense_are_refused(settings):
    with pytest.raises(InputError, match="it must be a positive number"):
        CSVC(**settings).check()
