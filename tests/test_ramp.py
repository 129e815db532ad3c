"""The ramp loss with a budget: descents never rise, what is found is between the optimum and the paper's start."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import columns_of

from marginsieve import recipes
from marginsieve.errors import InputError
from marginsieve.machines import HingeSVC, RampSVC
from marginsieve.solvers import programs
from marginsieve.solvers import ramp_descent as _ramp
from marginsieve.solvers.programs import HingeData
from marginsieve.solvers.ramp_descent import Ramp
from marginsieve.solvers.ramp_path import PathSearch
from marginsieve.solvers.ramp_search import VertexSearch


def instance(seed, m=14, n=5, C=1.0, budget=2.0, ramp=True, cost=None):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) % 2, 1.0, -1.0)
    X = rng.normal(size=(m, n)) + 0.8 * y[:, None] * (np.arange(n) < 2)
    y[rng.choice(m, 2, replace=False)] *= -1
    top = C * rng.uniform(0.5, 2.0, m)
    return Ramp(HingeData(X, y, top), np.arange(n), np.ones(n) if cost is None else cost, budget, ramp)


def searched(ramp, shakes=4, solver="fast", seed=0):
    """The best point of a search at one price and budget."""
    rng = np.random.default_rng(seed)
    return PathSearch(ramp, [1.0], [ramp.budget], rng, shakes, ramp.clock).run(solver)[1.0, ramp.budget].point


def value(ramp, point):
    """F from the weights alone."""
    data = ramp.data
    h = np.maximum(0.0, 1.0 - data.y * (data.X[:, point.columns] @ point.w + point.b))
    return np.abs(point.w).sum() + data.top @ (np.minimum(2.0, h) if ramp.ramp else h)


def brute_force(ramp):
    """The least F over all sets of features within the budget and all sets of samples left out."""
    n, m = len(ramp.cost), len(ramp.data.y)
    best = ramp.flat_point().F
    for size in range(1, n + 1):
        for features in itertools.combinations(range(n), size):
            if not ramp.fits(features):
                continue
            program = ramp.program(ramp.columns(features))
            for marked in itertools.product([False, True], repeat=m):
                program.leave_out(np.array(marked))
                best = min(best, value(ramp, _ramp._point(ramp, program.solve())))
    return best


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 0.3, 1.0, 10.0, 100.0]), budget=st.integers(1, 4))
def test_what_is_found_is_what_it_says(seed, C, budget):
    ramp = instance(seed, 20, 8, C, float(budget))
    found, start = searched(ramp, 1), _ramp.l1_start(ramp)
    assert pytest.approx(value(ramp, found), rel=1e-9) == found.F
    assert pytest.approx(value(ramp, start), rel=1e-9) == start.F
    assert found.F <= start.F * (1 + 1e-12)
    assert 2 * min(ramp.data.top[ramp.data.y == side].sum() for side in (1.0, -1.0)) * (1 + 1e-12) >= found.F
    assert len(found.features) <= budget
    outside = ramp.data.outside(found.w, found.b, found.columns)
    assert found.marked[outside > 2.0 + 1e-9].all()  # at 2 the loss is the same, marked or not
    assert (outside[found.marked] >= 2.0 - 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_it_is_never_below_and_mostly_at_the_optimum(seed, C):
    ramp = instance(seed, 8, 3, C, 2.0)
    found = searched(ramp)
    best = brute_force(ramp)
    assert best * (1 - 1e-9) <= found.F
    assert best * 1.02 >= found.F


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.3, 3.0, 30.0]))
def test_descents_never_rise(seed, C):
    ramp, seen = instance(seed, 24, 6, C, 6.0), []
    with pytest.MonkeyPatch.context() as patch:
        whole = _ramp._point

        def watched(*given):
            seen.append(whole(*given).F)
            return whole(*given)

        patch.setattr(_ramp, "_point", watched)
        found = _ramp.descend_on(ramp, range(6))
    assert (np.diff(seen) <= 1e-7 * np.abs(seen[:-1])).all()
    assert seen[0] * (1 + 1e-12) >= found.F


def test_a_small_price_leaves_no_weight():
    """C < 1 / (m max|x|): the loss cannot pay for any weight."""
    ramp = instance(0)
    X, m = ramp.data.X, len(ramp.data.y)
    small = Ramp(HingeData(X, ramp.data.y, np.full(m, 0.99 / (m * np.abs(X).max()))), ramp.owner, ramp.cost, 2.0)
    found = searched(small)
    assert not len(found.features)
    assert pytest.approx(2 * small.data.top[0] * min((ramp.data.y > 0).sum(), (ramp.data.y < 0).sum())) == found.F


def test_without_the_ramp_it_is_the_hinge_with_a_budget():
    ramp = instance(1, 16, 4, 1.0, 2.0, ramp=False)
    found = searched(ramp)
    sets = [ramp.program(ramp.columns(pair)).solve().value for pair in itertools.combinations(range(4), 2)]
    assert pytest.approx(min(sets), rel=1e-7) == found.F
    assert not found.marked.any()


def test_a_budget_may_be_a_sum_of_costs():
    cost = np.array([5.0, 1.0, 1.0, 2.0, 9.0])
    ramp = instance(2, 20, 5, 3.0, 4.0, cost=cost)
    found, start = searched(ramp), _ramp.l1_start(ramp)
    for point in (found, start):
        assert cost[point.features].sum() <= 4.0
    assert not {0, 4} & set(found.features)
    assert len(found.features)


def test_columns_of_one_feature_count_once():
    base = instance(3, 24, 6, 3.0, 2.0)
    ramp = Ramp(base.data, np.array([0, 0, 0, 1, 2, 3]), np.ones(4), 2.0)
    found = searched(ramp)
    assert len(found.features) <= 2
    assert set(ramp.owner[found.columns]) == set(found.features)
    assert pytest.approx(value(ramp, found)) == found.F


def test_the_same_seed_gives_the_same_point():
    ramp = instance(4, 30, 12, 3.0, 3.0)
    one, two = (searched(ramp, seed=7) for _ in range(2))
    np.testing.assert_array_equal(one.columns, two.columns)
    assert one.F == two.F


def test_more_budget_is_no_worse_from_the_same_point():
    small = instance(5, 40, 10, 3.0, 2.0)
    here = searched(small)
    large = Ramp(small.data, small.owner, small.cost, 4.0)
    assert VertexSearch(large).improve(here).F <= here.F


# -- the machine ---------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 10.0]))
def test_the_machine_descends_on_all_features(seed, C):
    ramp = instance(seed, 24, 30, C, 30.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "FIRST", 4)  # columns join on demand
        found = RampSVC(C=1.0).solve(columns_of(ramp.data.X), ramp.data.y, ramp.data.top)
    h = np.maximum(0.0, 1.0 - ramp.data.y * (ramp.data.X @ found.expanded + found.intercept))
    assert found.objective == pytest.approx(np.abs(found.expanded).sum() + ramp.data.top @ np.minimum(2.0, h))
    np.testing.assert_allclose(found.slack, h, atol=1e-9)
    hinge = HingeSVC(C=1.0).solve(columns_of(ramp.data.X), ramp.data.y, ramp.data.top)
    assert found.objective <= hinge.objective * (1 + 1e-9)  # the ramp is below the hinge, and the descent starts there


def test_wrong_labels_far_out_do_not_bend_it(rng):
    """Two of 40 rows far on the wrong side: the hinge gives way, the ramp leaves them out."""
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    X = rng.normal(size=(40, 4))
    X[:, 0] += 2.5 * y
    X[[0, 25], 0] = [-30.0, 30.0]
    view, clean = columns_of(X), np.delete(np.arange(40), [0, 25])
    robust, plain = (machine(C=1.0).solve(view, y, np.ones(40)) for machine in (RampSVC, HingeSVC))
    right = [np.mean(np.sign(X[clean] @ s.expanded + s.intercept) == y[clean]) for s in (robust, plain)]
    assert right[0] > 0.95
    assert right[0] > right[1]
    assert set(np.flatnonzero(robust.slack > 2.0)) == {0, 25}


@pytest.mark.parametrize("ramp_loss", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_no_point_is_below_the_bound_without_a_budget(seed, ramp_loss):
    ramp = instance(seed, 8, 3, 0.5, 2.0, ramp_loss)
    floor, free, _ = _ramp.without_budget(ramp)
    best = (
        brute_force(ramp) if ramp_loss else min(_ramp.descend_on(ramp, chosen).F for chosen in ([0, 1], [0, 2], [1, 2]))
    )
    assert floor <= best * (1 + 1e-9)
    if free is not None and not ramp_loss:
        assert pytest.approx(floor) == free.F
        assert pytest.approx(best) == free.F


@pytest.mark.parametrize("machine", ["fs_svm", "ramp_fs"])
def test_a_budget_that_does_not_bind_is_proved_at_once(machine):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1, -1)
    X = rng.normal(size=(40, 500))
    X[:, :3] += 2.0 * y[:, None]
    made = recipes.get(machine)(budget=45, C=50.0, threshold="margin", random_state=0).fit(X, y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0) if made.standardize else X - X.mean(axis=0)
    alone = HingeSVC(C=50.0).solve(columns_of(scaled), y.astype(float), np.ones(40))
    details = made.path_.stop.details
    assert details["status"] == "optimal"
    assert details["bound"] == pytest.approx(details["objective"])
    assert np.count_nonzero(made.coef_) <= 45
    assert details["objective"] == pytest.approx(alone.objective)


@pytest.mark.parametrize("seed", range(4))
def test_where_the_budget_has_room_samples_are_found_as_by_swaps(seed):
    ramp = instance(seed, 24, 10, 0.4, 10.0)
    floor, free, _ = _ramp.without_budget(ramp)
    assert free is not None
    point = _ramp.with_room(replace(ramp, floor=floor), free, 50, np.random.default_rng(0))
    assert value(ramp, point) == pytest.approx(point.F)
    assert point.F <= 1.02 * searched(ramp).F


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_the_ramp_without_a_budget_is_solved_exactly(seed, C):
    """RL-l1-M: the least objective over all sets of samples left out, each a linear program on all features."""
    ramp = instance(seed, 10, 4, C, 4.0)
    data = ramp.data
    program, best = ramp.program(np.arange(4)), ramp.flat_point().F
    for marked in itertools.product([False, True], repeat=10):
        program.leave_out(np.array(marked))
        best = min(best, value(ramp, _ramp._point(ramp, program.solve())))
    selector = recipes.ramp_svm(C=C, solver="exact", standardize=False, random_state=0, resamples=0)
    weight = data.top / C
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # at a low C no feature has a weight
        selector.fit(data.X, data.y, weight)
    assert selector.status_ == "optimal"
    assert selector.objective_ == pytest.approx(best, rel=1e-4)
    assert selector.bound_ <= best * (1 + 1e-9)
    local = recipes.ramp_svm(C=C, standardize=False, stop="own", points=2, random_state=0, resamples=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        local.fit(data.X, data.y, weight)
    assert local.objective_ >= selector.objective_ * (1 - 1e-6)


def test_every_solver_of_the_ramp_without_a_budget_says_what_it_did():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 8)), np.arange(50) % 2
    X[:, 0] += 2.0 * y
    y[:3] = 1 - y[:3]
    objectives = {}
    for solver in ("fast", "daks", "exact"):
        selector = recipes.ramp_svm(C=1.0, solver=solver, random_state=0, resamples=0, time_limit=20.0).fit(X, y)
        objectives[solver] = selector.objective_
        assert "no budget" in str(selector.path_.stop)
        assert 0 in np.flatnonzero(selector.support_)
    assert objectives["exact"] <= min(objectives.values()) * (1 + 1e-9)
    with pytest.raises(InputError, match="solver is 'cplex'; it must be one of"):
        recipes.ramp_svm(solver="cplex").fit(X, y)
