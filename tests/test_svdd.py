"""SVDD: equal to OneClassSVM where the diagonal is constant and to a general QP solver otherwise; certified; warm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import gram_of, svdd_by_slsqp, svdd_certificate
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

from marginsieve import SVDD
from marginsieve.errors import InputError
from marginsieve.kernels import Gaussian, Linear, Polynomial
from marginsieve.machines import Sphere

KERNELS = [Linear(), Gaussian(), Polynomial(degree=2)]


def described(seed, m, n, outliers):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) < outliers, 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0] += 1.5
    return X, y, rng


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_equals_one_class_svm_where_the_diagonal_is_constant(nu):
    X, _, rng = described(0, 60, 5, 0)
    gram = gram_of(Gaussian(), X)
    solution = Sphere(r=nu, tol=1e-9).solve(gram, -np.ones(60), np.ones(60))
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(gram.matrix())
    Z = rng.normal(size=(20, 5))
    ours = Sphere().decision(solution, gram, Z)  # d2 - R2
    np.testing.assert_allclose(-ours, 2 / (nu * 60) * theirs.decision_function(gram.matrix(Z)), atol=1e-6)
    assert solution.residual <= 1e-9


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize(("outliers", "r_out"), [(0, 0.1), (6, 0.3), (6, 0.0)])
def test_equals_a_general_solver(kernel, outliers, r_out):
    X, y, rng = described(1, 30, 4, outliers)
    cost = rng.uniform(0.5, 2.0, 30)
    gram = gram_of(kernel, X)
    K = gram.matrix()
    solution = Sphere(r=0.2, r_out=r_out, tol=1e-9).solve(gram, y, cost)
    lo, hi = bounds(y, cost, 0.2, r_out)
    objective, c = svdd_by_slsqp(K, lo, hi)
    assert solution.objective == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(solution.coef / -2, c, atol=2e-3 * np.abs(hi).max())
    assert solution.diagonal == 1.0


def bounds(y, cost, r, r_out):
    inside, outside = np.where(y < 0, cost, 0.0), np.where(y > 0, cost, 0.0)
    lo = -outside / (r_out * outside.sum()) if r_out and outside.any() else np.zeros(len(y))
    return lo, inside / (r * inside.sum())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(3, 40),
    n=st.integers(1, 20),
    outliers=st.integers(0, 8),
    r=st.floats(0.02, 1.0),
    r_out=st.sampled_from([0.0, 0.05, 0.5, 2.0]),
    kernel=st.sampled_from(KERNELS),
)
def test_every_sphere_is_certified(seed, m, n, outliers, r, r_out, kernel):
    """Duplicates, zero costs, few targets: feasible and within the gap, from a cold and from a warm start."""
    X, y, rng = described(seed, m + outliers, n, outliers)
    X[-1] = X[-2]
    cost = rng.choice([0.0, 0.5, 1.0, 2.0], size=len(y))
    cost[-1] = 1.0
    gram = gram_of(kernel, X)
    lo, hi = bounds(y, cost, r, r_out)
    cold = Sphere(r=r, r_out=r_out, tol=1e-6).solve(gram, y, cost)
    other = Sphere(r=min(1.0, 2 * r), r_out=0.3, tol=1e-3).solve(gram, y, cost[::-1] + (cost > 0))
    for solution in (cold, Sphere(r=r, r_out=r_out, tol=1e-6).solve(gram, y, cost, warm=other)):
        broken, gap = svdd_certificate(gram.matrix(), lo, hi, solution.coef / -2)
        size = np.abs(gram.matrix()).max()
        assert broken <= 1e-9
        assert gap <= 2e-6 * size * (np.abs(lo).sum() + np.abs(hi).sum())
        assert solution.objective == pytest.approx(cold.objective, abs=1e-5 * size * (1 + np.abs(lo).sum()))


def test_the_decision_is_the_distance_less_the_squared_radius():
    """By the definition, in the feature space of the linear kernel: centre a = sum c_i x_i."""
    X, y, rng = described(3, 40, 3, 5)
    gram = gram_of(Linear(), X)
    solution = Sphere(r=0.2, r_out=0.5, tol=1e-9).solve(gram, y, np.ones(40))
    c = solution.coef / -2
    lo, hi = bounds(y, np.ones(40), 0.2, 0.5)
    distance = ((X - c @ X) ** 2).sum(axis=1)
    free = (c > lo + 1e-7) & (c < hi - 1e-7)
    radius = distance[free].mean()
    np.testing.assert_allclose(distance[free], radius, rtol=1e-6)
    Z = rng.normal(size=(10, 3))
    np.testing.assert_allclose(
        Sphere().decision(solution, gram, Z), ((Z - c @ X) ** 2).sum(axis=1) - radius, rtol=1e-6, atol=1e-9
    )
    excess = distance - radius
    np.testing.assert_allclose(solution.slack, np.maximum(0, np.where(y < 0, excess, -excess)), atol=1e-6)


def test_a_doubled_weight_is_a_repeated_sample():
    X, y, _ = described(4, 25, 3, 4)
    weight = np.ones(25)
    weight[[1, 20]] = 2.0
    once = Sphere(tol=1e-10, r_out=0.5).solve(gram_of(Gaussian(width=0.5, average=False), X), y, weight)
    more = np.r_[np.arange(25), 1, 20]
    twice = Sphere(tol=1e-10, r_out=0.5).solve(
        gram_of(Gaussian(width=0.5, average=False), X[more]), y[more], np.ones(27)
    )
    assert once.objective == pytest.approx(twice.objective, rel=1e-8)


def test_a_row_of_cost_zero_takes_no_part():
    X, y, _ = described(5, 25, 3, 4)
    machine, gram = Sphere(r=0.2, r_out=0.5, tol=1e-8), gram_of(Gaussian(width=0.5, average=False), X)
    whole = machine.solve(gram, y, np.ones(25))
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        part = gram_of(Gaussian(width=0.5, average=False), X[rest])
        slow = machine.decision(machine.solve(part, y[rest], np.ones(24)), part, X[[i]])[0]
        fold = machine.solve(gram, y, np.where(np.arange(25) == i, 0.0, 1.0), whole)
        assert machine.decision(fold, gram, X[[i]])[0] == pytest.approx(slow, abs=1e-4)


def test_targets_are_needed():
    gram = gram_of(Linear(), np.eye(3))
    with pytest.raises(InputError, match="no target to describe"):
        Sphere().solve(gram, np.ones(3), np.ones(3))


@pytest.mark.parametrize("wrong", [{"r": 0}, {"r": 1.5}, {"r_out": -1}, {"tol": 0}, {"max_iter": 0}])
def test_parameters_without_sense_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is .* it must be a positive number"):
        Sphere(**wrong).check()


# -- the estimator ------------------------------------------------------------------------------------------------


def test_the_detector_flags_what_lies_outside(rng):
    X = rng.normal(size=(200, 3))
    strange = rng.normal(size=(20, 3)) + 6.0
    model = SVDD(r=0.05).fit(X)
    assert (model.predict(strange) == -1).all()
    assert (model.predict(X) == -1).mean() <= 0.1
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) >= 0, 1, -1))
    assert model.radius_ == pytest.approx(np.sqrt(-model.offset_))


def test_known_outliers_shrink_the_sphere(rng):
    X = np.vstack([rng.normal(size=(80, 2)), rng.normal(size=(8, 2)) * 0.3 + [1.5, 0.0]])
    known = np.arange(88) >= 80
    without, informed = SVDD(r=0.1).fit(X[:80]), SVDD(r=0.1, r_out=0.1).fit(X, outliers=known)
    assert (informed.predict(X[80:]) == -1).mean() > (without.predict(X[80:]) == -1).mean()


def test_the_detector_reads_tables_and_names_what_is_wrong(rng):
    import pandas as pd

    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    model = SVDD(kernel="linear").fit(X)
    assert list(model.feature_names_in_) == ["a", "b"]
    X.loc[3, "b"] = np.nan
    with pytest.raises(InputError, match=r"NaN.*: b"):
        SVDD().fit(X)
    with pytest.raises(InputError, match="outliers has 3 values; X has 30 rows"):
        SVDD().fit(X.fillna(0), outliers=[True, False, True])
    with pytest.raises(InputError, match="every row that counts is marked as an outlier"):
        SVDD().fit(X.fillna(0), outliers=np.ones(30, dtype=bool))


def test_a_sphere_is_where_the_rows_are(rng):
    """It depends on distances alone: far from the origin it is the same, and J does not lose its digits."""
    X, known = rng.normal(size=(80, 20)), np.arange(80) < 12
    near = SVDD(kernel="linear").fit(X, outliers=known)
    far = SVDD(kernel="linear").fit(X + 1e4, outliers=known)
    assert far.radius_ == pytest.approx(near.radius_, rel=1e-4)
    assert far._solution.objective == pytest.approx(near._solution.objective, rel=1e-4)
    assert far._solution.coef.sum() / -2 == pytest.approx(1.0, abs=1e-9)
    narrow = [SVDD(kernel=Gaussian(width=w)).fit(X, outliers=known)._solution.objective / w**2 for w in (1e-4, 1e-5)]
    assert narrow[0] == pytest.approx(narrow[1], rel=1e-4)


def test_what_did_not_converge_is_told(rng):
    with pytest.warns(ConvergenceWarning, match="above tol"):
        SVDD(kernel="linear").fit(rng.normal(size=(80, 6)) + 1e8)


def test_a_row_at_the_centre_is_inside():
    assert (SVDD(kernel="linear").fit(np.ones((10, 2))).predict(np.ones((10, 2))) == 1).all()
