"""The exact program: equal to brute force, its bounds valid, its limits said."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginsieve.errors import SolverError
from marginsieve.solvers import ramp_descent as _ramp
from marginsieve.solvers import ramp_programs as _exact
from marginsieve.solvers.execution import Clock
from marginsieve.solvers.programs import HingeData, Limits, Program
from marginsieve.solvers.ramp_descent import Ramp
from marginsieve.solvers.ramp_path import PathSearch
from marginsieve.solvers.ramp_search import VertexSearch
from test_ramp import brute_force, instance, searched, value

TIGHT = Limits(gap=1e-7)


def begun(ramp, shakes=2):
    """A good point, without the proof that tiny tables get."""
    search = VertexSearch(ramp)
    here = search.improve(search.descend(_ramp.affordable_features(ramp, _ramp.class_separation(ramp))))
    for _ in range(shakes):
        here = _ramp.best_of([here, search.improve(search.shake(here, np.random.default_rng(0)))])
    return _ramp.best_of([here, ramp.flat_point()])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_it_is_brute_force(seed, C):
    ramp = instance(seed, 8, 3, C, 2.0)
    found = _exact.solve(ramp, begun(ramp), limits=TIGHT)
    best = brute_force(ramp)
    assert found.status == "optimal"
    assert pytest.approx(best, rel=1e-6) == found.point.F
    assert pytest.approx(value(ramp, found.point), rel=1e-9) == found.point.F
    assert found.bound <= best * (1 + 1e-6)
    assert found.gap <= 1e-6


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.01, 0.1, 1.0, 10.0, 100.0]),
    budget=st.integers(1, 3),
    n=st.integers(5, 7),
)
def test_bounds_cut_off_no_optimum(seed, C, budget, n):
    """The paper's constants, those tightened sample by sample and class by class, and safe ones agree."""
    ramp = instance(seed, 16, n, C, float(budget))
    start = begun(ramp)
    X = ramp.data.X
    far = np.array([2.0 + start.F * np.abs(X - x).max() for x in X])  # valid without any argument about classes
    first = _exact.first_bounds(ramp, start.F)
    safe = _exact.Bounds(
        2.0 * far, first.U, first.norm, 10.0 * first.low, 10.0 * first.high, np.zeros(len(far), dtype=bool)
    )
    answers = []
    for bounds in (
        safe,
        first,
        _exact.tighten_bounds(ramp, first, start.F, 3),
        _exact.tighten_bounds(ramp, first, start.F, 3, by_sample=False),
    ):
        if bounds.norm <= _exact.GONE or not (bounds.U > _exact.GONE).any():
            answers.append(ramp.flat_point().F)
            continue
        whole = _exact.MixedIntegerProgram(ramp, bounds)
        answer = whole.solve(start, TIGHT)
        features, marked = whole.decode(answer.x)
        answers.append(min(start.F, _ramp.descend_on(ramp, features, marked).F))
        assert answer.bound <= answers[-1] * (1 + 1e-5) + 1e-9
    np.testing.assert_allclose(answers, answers[0], rtol=1e-5)


def test_tightening_makes_bounds_smaller():
    ramp = instance(7, 40, 6, 0.3, 2.0)
    start = begun(ramp)
    first = _exact.first_bounds(ramp, start.F)
    once, often = (_exact.tighten_bounds(ramp, first, start.F, rounds) for rounds in (1, 5))
    assert np.median(once.M) < 0.7 * np.median(first.M)
    assert (often.M <= once.M + 1e-9).all()
    assert (often.U <= once.U + 1e-9).all()
    assert often.fixed.sum() >= once.fixed.sum()
    assert first.low <= once.low <= often.low <= often.high <= once.high <= first.high


def test_no_weight_is_proved_by_tightening_alone():
    base = instance(0)
    m, largest = len(base.data.y), np.abs(base.data.X).max()
    ramp = Ramp(HingeData(base.data.X, base.data.y, np.full(m, 0.9 / (m * largest))), base.owner, base.cost, 2.0)
    found = _exact.solve(ramp, begun(ramp))
    assert found.status == "optimal"
    assert not len(found.point.features)
    assert found.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_plain_hinge_is_the_best_of_all_sets_of_features(seed, C):
    ramp = instance(seed, 24, 6, C, 2.0, ramp=False)
    found = _exact.solve(ramp, begun(ramp), limits=TIGHT)
    best = min(_ramp.descend_on(ramp, features).F for features in itertools.combinations(range(6), 2))
    assert found.gap <= 1e-6
    assert pytest.approx(best, rel=1e-6) == found.point.F
    assert not found.point.marked.any()


@pytest.mark.parametrize("ramp", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_small_exact_programs_end_at_the_optimum_of_small_instances(seed, ramp):
    given = instance(seed, 16, 6, 2.0, 2.0, ramp=ramp)
    start = begun(given, 0)
    search = _exact.KernelSearch(VertexSearch(given), start, [start])
    found = search.run()
    proved = _exact.solve(given, found, limits=TIGHT)
    assert pytest.approx(value(given, found), rel=1e-9) == found.F
    assert found.F <= start.F
    assert proved.point.F <= found.F <= 1.01 * proved.point.F
    assert len(found.features) <= 2


def test_kernels_with_costs_and_columns_of_one_feature():
    cost = np.array([3.0, 1.0, 1.0, 1.0])
    base = instance(5, 24, 6, 2.0, 2.0)
    ramp = Ramp(base.data, np.array([0, 0, 1, 1, 2, 3]), cost, 3.0)
    found = searched(ramp, 0, "daks")
    proved = _exact.solve(ramp, found, limits=TIGHT)
    assert cost[found.features].sum() <= 3.0
    assert proved.point.F <= found.F <= 1.01 * proved.point.F


def test_costs_and_columns_of_one_feature():
    cost = np.array([3.0, 1.0, 1.0, 1.0])
    base = instance(3, 20, 6, 2.0, 2.0)
    ramp = Ramp(base.data, np.array([0, 0, 1, 1, 2, 3]), cost, 2.0)
    found = _exact.solve(ramp, begun(ramp), limits=TIGHT)
    assert cost[found.point.features].sum() <= 2.0
    sets = [(1, 2), (1, 3), (2, 3)]
    for features in sets:  # no descent on any set that fits is better
        assert found.point.F <= _ramp.descend_on(ramp, features).F * (1 + 1e-6)


def test_a_limit_is_said_with_a_bound():
    ramp = instance(11, 60, 12, 1.0, 3.0)
    found = _exact.solve(ramp, begun(ramp, 0), rounds=0, limits=Limits(nodes=1))
    assert found.status == "limit"
    assert 0.0 < found.bound < found.point.F
    assert found.gap == pytest.approx((found.point.F - found.bound) / found.point.F)
    assert not found.clock


def test_a_wrong_answer_of_the_solver_is_an_error(monkeypatch):
    ramp = instance(2, 12, 4, 1.0, 2.0)
    whole = _exact.MixedIntegerProgram.solve
    monkeypatch.setattr(_exact.MixedIntegerProgram, "solve", lambda *given: replace(whole(*given), status="infeasible"))
    with pytest.raises(SolverError, match="HiGHS called a program 'infeasible' that has a point of value"):
        _exact.solve(ramp, begun(ramp))


def test_a_bound_above_a_known_point_is_an_error(monkeypatch):
    ramp = instance(2, 12, 4, 1.0, 2.0)
    start, whole = begun(ramp), _exact.MixedIntegerProgram.solve
    monkeypatch.setattr(
        _exact.MixedIntegerProgram, "solve", lambda *given: replace(whole(*given), bound=1.01 * start.F)
    )
    with pytest.raises(SolverError, match=r"a bound of .* is above a point of value"):
        _exact.solve(ramp, start)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 10.0]), ramp=st.booleans())
def test_the_relaxation_is_a_bound_with_and_without_time(seed, C, ramp):
    given = instance(seed, 14, 6, C, 2.0, ramp=ramp)
    start = begun(given)
    proved = _exact.solve(given, start, limits=TIGHT)
    first = _exact.first_bounds(given, start.F)
    tight = _exact.tighten_bounds(given, first, start.F, 2)
    early, late = (_exact.relaxation(given.with_clock(clock), first) for clock in (Clock(0.0), Clock()))
    assert 0.0 < early <= late * (1 + 1e-9)
    if tight.norm > _exact.GONE:
        later = _exact.relaxation(given, tight)
        assert late <= later * (1 + 1e-6)
        assert later <= proved.point.F * (1 + 1e-6)


def test_a_run_without_time_returns_the_bound_that_it_knows():
    ramp = instance(11, 60, 12, 1.0, 3.0)
    start = begun(ramp, 0)
    cut = _exact.solve(ramp.with_clock(Clock(0.0)), start)
    assert cut.clock
    assert cut.status == "limit"
    assert cut.point is start
    assert _exact.relaxation(ramp.with_clock(Clock(0.0)), _exact.first_bounds(ramp, start.F)) <= cut.bound < start.F


@pytest.mark.parametrize("ramp", [True, False])
def test_every_program_has_the_clock(monkeypatch, ramp):
    limits, solve = [], Program.solve

    def watched(self, given=None, **options):
        limits.append(given)
        return solve(self, given, **options)

    monkeypatch.setattr(Program, "solve", watched)
    given = instance(9, 30, 12, 1.0, 3.0, ramp=ramp).with_clock(Clock(60.0))
    start = searched(given, 1, "daks")
    _exact.solve(given, start, rounds=1, limits=Limits(nodes=10))
    _exact.tighten_bounds(given, _exact.first_bounds(given, start.F), start.F, 1, by_sample=False)
    assert len(limits) > 50
    assert all(one is not None and 0.0 < one.seconds <= 60.0 for one in limits)


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1])
def test_a_cut_at_any_time_leaves_a_point(seconds):
    """Wherever the clock runs out, there is a point within the budget and its value is its own."""
    ramp, clock = instance(9, 60, 40, 1.0, 3.0), Clock(seconds)
    answer = PathSearch(ramp, [1.0], [3.0], np.random.default_rng(0), 40, clock).run("daks")[1.0, 3.0]
    assert clock.cut
    assert answer.status == "limit"
    assert answer.point.F <= ramp.flat_point().F
    assert pytest.approx(value(ramp, answer.point), rel=1e-9) == answer.point.F
    assert len(answer.point.features) <= 3


@pytest.mark.parametrize("solver", ["fast", "daks"])
@pytest.mark.parametrize("seed", range(4))
def test_no_solver_misses_a_tiny_optimum(solver, seed):
    ramp = instance(seed, 9, 4, 3.0, 2.0)
    answer = PathSearch(ramp, [1.0], [2.0], np.random.default_rng(0), 0, Clock()).run(solver)[1.0, 2.0]
    assert answer.status == "optimal"
    assert pytest.approx(brute_force(ramp), rel=1e-6) == answer.point.F
    assert answer.bound <= answer.point.F
