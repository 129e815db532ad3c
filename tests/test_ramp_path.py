"""Prices and budgets searched together: the laws of the optimum hold, faults and clocks leave the best point."""

import itertools
import traceback
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tiers import long_but

from marginsieve import recipes
from marginsieve.errors import InputError, SolverError
from marginsieve.solvers import ramp_descent as _ramp
from marginsieve.solvers import ramp_programs as _exact
from marginsieve.solvers import ramp_search
from marginsieve.solvers.execution import Clock
from marginsieve.solvers.programs import STATES, Limits, Program
from marginsieve.solvers.ramp_path import PathSearch, check_laws, fill_prices
from marginsieve.solvers.ramp_search import VertexSearch
from test_ramp import brute_force, instance, value

PRICES, BUDGETS = (0.05, 0.3, 1.0, 8.0), (1.0, 2.0, 4.0)


def path_of(ramp, solver="fast", shakes=4, prices=PRICES, budgets=BUDGETS, clock=None):
    return PathSearch(ramp, prices, budgets, np.random.default_rng(0), shakes, clock or Clock()).run(solver)


def at(ramp, price, budget):
    """The instance of a price and budget."""
    return replace(ramp, data=replace(ramp.data, top=price * ramp.data.top), budget=budget)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 10.0, 1000.0]), k=st.integers(1, 7))
def test_descents_from_vertex_to_vertex_solve_the_hinge(seed, C, k):
    ramp = instance(seed, 40, 8, C, 8.0, ramp=False)
    found, program = VertexSearch(ramp).descend(np.arange(k)), ramp.program(np.arange(k)).solve()
    assert pytest.approx(value(ramp, found), rel=1e-12) == found.F
    assert program.value * (1 - 1e-9) <= found.F <= program.value * (1 + 1e-6)
    pull = np.abs((found.alpha * ramp.data.y) @ ramp.data.X[:, :k])
    assert (pull <= 1 + 1e-6).all()  # dual variables that are feasible
    assert found.alpha.sum() == pytest.approx(found.F, rel=1e-5)  # and optimal


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1.0, 10.0]))
def test_descents_on_the_ramp_end_at_an_optimum_of_the_samples_that_are_left_in(seed, C):
    ramp = instance(seed, 40, 5, C, 5.0)
    search = VertexSearch(ramp)
    there = search.descend(np.arange(5))
    again = search.descend(np.arange(5), there)
    assert again.F <= there.F * (1 + 1e-6)
    if len(there.features):  # without the samples beyond the ramp it is an optimum of the linear program
        program = ramp.program(there.columns)
        program.leave_out(there.marked)
        least = program.solve().value + 2.0 * ramp.data.top[there.marked].sum()
        assert pytest.approx(there.F, rel=1e-5) == least


@pytest.mark.parametrize("ramp_loss", [True, False])
@pytest.mark.parametrize("seed", long_but(range(3), 0))
def test_the_objective_neither_falls_with_the_price_nor_rises_with_the_budget(seed, ramp_loss):
    ramp = instance(seed, 30, 10, 1.0, 4.0, ramp_loss)
    answers = path_of(ramp, shakes=1)
    F = np.array([[answers[price, budget].point.F for price in PRICES] for budget in BUDGETS])
    assert (np.diff(F, axis=1) >= -1e-9 * F[:, 1:]).all()
    assert (np.diff(F, axis=0) <= 1e-9 * F[1:]).all()
    share = (PRICES[2] - PRICES[1]) / (PRICES[3] - PRICES[1])  # the least of lines is concave
    assert (F[:, 2] >= (1 - 1e-9) * ((1 - share) * F[:, 1] + share * F[:, 3])).all()
    for (price, budget), answer in answers.items():
        assert pytest.approx(value(at(ramp, price, budget), answer.point), rel=1e-9) == answer.point.F
        assert len(answer.point.features) <= budget
    check_laws({key: answer.point.F for key, answer in answers.items()})
    with pytest.raises(SolverError, match="is below the best of"):
        check_laws({(1.0, 2.0): 3.0, (2.0, 2.0): 2.0})


def test_a_point_that_breaks_a_law_is_taken():
    ramp = instance(0, 40, 12, 1.0, 4.0)
    search = PathSearch(ramp, (0.5, 1.0), (2.0, 3.0), np.random.default_rng(0), 0, Clock())
    good = path_of(ramp, prices=(1.0,), budgets=(2.0,))[1.0, 2.0].point
    search._add((1.0, 2.0), good)  # every other instance has its flat point alone
    answers = search._settle(list(search.instances))
    assert all(answer.point.F <= good.F for answer in answers.values() if answer is not answers[0.5, 2.0])
    assert pytest.approx(good.F) == answers[1.0, 3.0].point.F
    assert answers[0.5, 3.0].point.F <= good.F


@pytest.mark.parametrize("seed", range(3))
def test_it_is_brute_force_at_every_price_and_budget(seed):
    ramp = instance(seed, 8, 3, 1.0, 3.0)
    for (price, budget), answer in path_of(ramp, prices=(0.3, 3.0), budgets=(1.0, 2.0)).items():
        best = brute_force(at(ramp, price, budget))
        assert answer.status == "optimal"
        assert pytest.approx(best, rel=1e-6) == answer.point.F


@pytest.mark.parametrize("ramp_loss", [True, False])
def test_exact_answers_are_those_of_the_path_and_their_bounds_keep_the_laws(ramp_loss):
    ramp = instance(1, 24, 8, 1.0, 3.0, ramp_loss)
    fast, exact = (path_of(ramp, solver, prices=(0.2, 1.0), budgets=(1.0, 2.0)) for solver in ("fast", "exact"))
    for key, answer in exact.items():
        assert answer.status == "optimal"
        assert answer.bound <= answer.point.F <= fast[key].point.F * (1 + 1e-9)
        assert fast[key].point.F <= answer.point.F * (1 + 1e-3)
    assert exact[0.2, 1.0].bound <= exact[1.0, 1.0].bound
    assert exact[1.0, 2.0].bound <= exact[1.0, 1.0].bound


@pytest.mark.parametrize("ramp_loss", [True, False])
@pytest.mark.parametrize("budget", [1.0, 2.0])
def test_all_sets_of_one_or_two_features_have_the_optimum_of_the_whole_program(budget, ramp_loss):
    for seed in range(3):
        ramp = instance(seed, 18, 6, 1.0, budget, ramp_loss)
        search = VertexSearch(ramp)
        tried = list(search.try_every_set())
        assert 0 < len(tried) <= ramp_search.KEPT
        best = _ramp.best_of(tried)
        proved = _exact.solve(ramp, _ramp.best_of([best, ramp.flat_point()]), limits=Limits(gap=1e-7))
        assert proved.status == "optimal"
        # With the ramp a descent on one set may end above the least of that set.
        most = proved.point.F * (1.05 if ramp_loss else 1 + 1e-6)
        assert most >= best.F or not len(proved.point.features)
    assert not list(VertexSearch(replace(ramp, budget=3.0)).try_every_set())


def test_prices_between_those_asked_for():
    assert fill_prices([1.0]) == [0.215, 0.464, 1.0]
    assert fill_prices([1.0, 2.0]) == [1.0, 2.0]
    filled = fill_prices([0.1, 1.0, 10.0])
    assert len(filled) == 7
    assert filled == sorted(filled)


# -- statuses, clocks and faults -------------------------------------------------------------------------------------


def test_every_status_of_the_solver_is_classified():
    import highspy

    assert set(STATES) == set(highspy.HighsModelStatus.__members__)
    assert set(STATES.values()) == {"optimal", "infeasible", "unbounded", "limit", "interrupted", "fault"}


@pytest.mark.parametrize("status", sorted(STATES))
def test_a_status_without_an_answer_is_a_limit_where_the_time_is_over_and_else_a_fault(monkeypatch, status):
    import highspy

    program = Program(np.ones(2), np.zeros(2), np.ones(2), np.ones((1, 2)), np.ones(1), np.full(1, 2.0))
    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda _: highspy.HighsModelStatus.__members__[status])
    if STATES[status] != "fault":
        assert program.solve().status == STATES[status]
        return
    with pytest.raises(SolverError, match="HiGHS ended with"):
        program.solve(Limits(seconds=60.0))
    late = program.solve(Limits(seconds=1e-9))
    assert (late.status, late.clock) == ("limit", True)


def test_no_time_is_a_limit():
    program = Program(np.ones(2), np.zeros(2), np.ones(2), np.ones((1, 2)), np.ones(1), np.full(1, 2.0))
    assert program.solve(Limits(seconds=0.0)).clock


def wide(m=49, n=40):
    rng = np.random.default_rng(0)
    y = np.arange(m) % 2
    X = rng.normal(size=(m, n)) + 0.6 * y[:, None] * (np.arange(n) < 6)
    y[:3] = 1 - y[:3]
    return X, y


def sites_of_programs(monkeypatch, action, broken=None):
    """Where programs are solved, each place once; a fault at the first call from one of them."""
    seen, solve = dict.fromkeys(()), Program.solve

    def watched(self, *arguments, **options):
        frames = traceback.extract_stack(limit=6)[:-1]
        place = tuple((frame.name, frame.lineno) for frame in frames if "marginsieve" in frame.filename)
        first = place not in seen
        seen[place] = None
        if first and place == broken:
            raise SolverError("injected")
        return solve(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Program, "solve", watched)
        action()
    return list(seen)


@pytest.mark.parametrize(("solver", "every"), long_but([("daks", 5), ("daks", 1), ("exact", 1)], ("daks", 5)))
def test_a_fault_at_any_place_leaves_the_best_point(monkeypatch, solver, every):
    X, y = wide()
    # Work enough to come to every place, and no more.
    settings = {"budget": 4, "C": 0.5, "solver": solver, "shakes": 0, "random_state": 0, "resamples": 0}
    monkeypatch.setattr(_exact, "CELLS", 2e4)
    monkeypatch.setattr("marginsieve.solvers.ramp_path.NODES", 20)
    selector = recipes.ramp_fs(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        places = sites_of_programs(monkeypatch, lambda: selector.fit(X, y))
    flat = 2.0 * 0.5 * min(np.bincount(y))
    assert len(places) > 5
    for place in places[::every]:
        broken = recipes.ramp_fs(**settings)
        with pytest.warns(ConvergenceWarning, match="the best point found is used, though a program failed: injected"):
            sites_of_programs(monkeypatch, lambda broken=broken: broken.fit(X, y), place)
        assert broken.status_ == "limit"
        assert broken.objective_ <= min(flat, 1.05 * selector.objective_)
        assert broken.n_features_ <= 4


@pytest.mark.parametrize("seconds", [1e-9, pytest.param(1.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("solver", ["daks", "exact"])
def test_a_limit_of_time_on_a_wide_table_is_no_error(solver, seconds):
    X, y = wide(49, 400 if seconds < 1 else 7129)
    made = recipes.ramp_fs(budget=10, solver=solver, C=1.0, time_limit=seconds, random_state=0, resamples=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no time for a single feature
        made.fit(X, y)
    assert made.status_ == "limit"
    assert made.n_features_ <= 10


# -- for users -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["ramp", "hinge"])
def test_the_selectors_of_a_path_have_its_machines(loss):
    X, y = wide(40, 20)
    path = recipes.ramp_path(
        X, y, C=[1.0, 0.1], budget=[2, 3], loss=loss, shakes=2, solver="fast", random_state=0, resamples=0
    )
    table = path.to_pandas()
    assert list(table["n_features"] <= table["budget"]) == [True] * 4
    for C, budget in itertools.product((0.1, 1.0), (2, 3)):
        point, selector = path.point(C, budget), path.selector(C, budget)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PathSearch, "run", None)  # nothing is searched
            selector.fit(X, y)
        assert selector.objective_ == pytest.approx(point.objective, rel=1e-9)
        assert set(selector.get_feature_names_out()) == set(point.features)
        assert selector.status_ == point.status
        other = clone(selector).fit(X[:30], y[:30])  # other rows: the path's points are starts
        assert other.n_features_ <= budget
    again = recipes.ramp_path(
        X, y, C=[0.1, 1.0], budget=[3, 2], loss=loss, shakes=2, solver="fast", random_state=0, resamples=0
    )
    assert {(p.C, p.budget): p.objective for p in path.points} == {(p.C, p.budget): p.objective for p in again.points}


def test_a_path_with_categories_costs_and_features_to_keep():
    import pandas as pd

    X, y = wide(40, 8)
    frame = pd.DataFrame(X, columns=[f"n{k}" for k in range(8)])
    frame["level"] = np.where(y > 0, "a", np.where(X[:, 7] > 0, "b", "c"))
    costs = {"n0": 5.0}
    path = recipes.ramp_path(
        frame, y, C=[1.0], budget=[2, 4], feature_costs=costs, keep=["n7"], shakes=1, random_state=0
    )
    for point in path.points:
        assert "n7" in point.features
        assert sum(costs.get(name, 1.0) for name in point.features) <= point.budget
        selector = path.selector(point.C, point.budget).fit(frame, y)
        assert selector.objective_ == pytest.approx(point.objective, rel=1e-9)
    assert any(name == "level" for name, _ in path.point(1.0, 4).weights)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "square"}, "loss is 'square'; it must be one of"),
        ({"C": []}, "C and budget need one value each at least"),
        ({"C": [0.0]}, "C is .*0.0"),
        ({"budget": [0]}, "budget is .*0"),
    ],
)
def test_mistakes_of_a_path_are_named(settings, message):
    X, y = wide(20, 5)
    with pytest.raises(InputError, match=message):
        recipes.ramp_path(X, y, **settings)
    path = recipes.ramp_path(X, y, C=[1.0], budget=[1], shakes=0, solver="fast")
    with pytest.raises(InputError, match=r"the path has no C = 2.0 with budget = 1; it has \(1, 1\)"):
        path.selector(2.0, 1)
