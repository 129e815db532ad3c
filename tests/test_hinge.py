"""Linear programs: the l1 machine equals a general solver, the concave one never rises; categories are expanded."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import columns_of, gram_of
from scipy import sparse
from scipy.optimize import linprog

from marginsieve import recipes
from marginsieve.data.table import Schema, Table
from marginsieve.errors import InputError, SolverError
from marginsieve.kernels import Linear
from marginsieve.machines import MKL, ConcaveSVC, HingeSVC
from marginsieve.solvers import programs
from marginsieve.solvers.programs import Limits, Program


def table(seed, m=20, n=12):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) < max(2, m // 3), 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0, :2] += 1.0
    return X, y, rng.uniform(0.3, 3.0, m)


def by_linprog(X, y, top, prices=None):
    """w = u - v, hinge slacks: the primal as it is written."""
    m, n = X.shape
    p = np.ones(n) if prices is None else prices
    A = np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None], y[:, None], -np.eye(m)])
    return linprog(np.concatenate([p, p, [0.0, 0.0], top]), A, -np.ones(m)).fun


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(4, 25),
    n=st.integers(1, 30),
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
    few=st.booleans(),
    cycling=st.booleans(),
)
def test_it_is_the_primal_program(seed, m, n, C, few, cycling):
    """Whether all rows are there from the beginning or come on demand, and where every basis is given up at once."""
    X, y, cost = table(seed, m, n)
    with pytest.MonkeyPatch.context() as patch:
        if few:
            patch.setattr(programs, "FIRST", 2)
            patch.setattr(programs, "MORE", 3)
        if cycling:
            patch.setattr(programs, "CYCLING", 1)
        found = HingeSVC(C=C).solve(columns_of(X), y, cost)
    assert found.residual <= 1e-7
    assert found.converged
    assert found.objective == pytest.approx(by_linprog(X, y, C * cost), rel=1e-7, abs=1e-9)
    alpha = found.coef * y
    assert abs(found.coef.sum()) <= 1e-6
    assert alpha.min() >= -1e-9
    assert (alpha - C * cost).max() <= 1e-9
    assert np.abs(X.T @ found.coef).max() <= 1 + 1e-6
    w = found.expanded
    np.testing.assert_allclose(found.slack, np.maximum(0, 1 - y * (X @ w + found.intercept)), atol=1e-9)


def test_prices_weigh_the_columns():
    X, y, cost = table(3)
    prices = np.random.default_rng(0).uniform(0.1, 3.0, X.shape[1])
    program = programs.begin(programs.HingeData(X, y, cost), np.ones(X.shape[1]))
    programs.finish(program)
    program.reprice(prices)
    fit = programs.finish(program)
    assert fit.value == pytest.approx(by_linprog(X, y, cost, prices), rel=1e-7)


def test_a_cost_of_two_is_a_row_twice():
    X, y, _ = table(1)
    cost = np.ones(20)
    cost[[0, 15]] = 2.0
    again = np.r_[np.arange(20), [0, 15]]
    for machine in (HingeSVC(C=0.7), ConcaveSVC(C=2.0)):
        one = machine.solve(columns_of(X), y, cost)
        two = machine.solve(columns_of(X[again]), y[again], np.ones(22))
        assert one.objective == pytest.approx(two.objective, rel=1e-8)


@pytest.mark.parametrize(("m", "n", "share"), [(30, 5, 0.5), (40, 8, 0.2), (25, 300, 0.3), (60, 200, 0.1)])
def test_the_first_weight_enters_there_with_rare_classes_costs_and_many_columns(m, n, share):
    rng = np.random.default_rng(m)
    y = np.where(np.arange(m) < share * m, 1.0, -1.0)
    X, cost = rng.normal(size=(m, n)) + 0.5 * (y > 0)[:, None] * (np.arange(n) < 3), rng.uniform(0.3, 3.0, m)
    first = HingeSVC().first(columns_of(X), y, cost)
    assert not HingeSVC(C=0.999 * first).solve(columns_of(X), y, cost).weights.any()
    assert HingeSVC(C=1.001 * first).solve(columns_of(X), y, cost).weights.any()


def test_the_first_weight_enters_where_it_is_said_to():
    X, y, cost = table(2)
    first = HingeSVC().first(columns_of(X), y, cost)
    assert not HingeSVC(C=0.99 * first).solve(columns_of(X), y, cost).weights.any()
    assert HingeSVC(C=1.01 * first).solve(columns_of(X), y, cost).weights.any()
    assert HingeSVC().first(columns_of(np.zeros((20, 2))), y, cost) == np.inf


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.3, 3.0, 30.0]))
def test_the_concave_objective_never_rises(seed, C):
    X, y, cost = table(seed, 25, 15)
    machine, seen = ConcaveSVC(C=C), []
    with pytest.MonkeyPatch.context() as patch:
        whole = programs.finish

        def watched(program):
            fit = whole(program)
            seen.append(machine.value(program.data, fit))
            return fit

        patch.setattr(programs, "finish", watched)
        found = machine.solve(columns_of(X), y, cost)
    assert found.converged
    assert len(seen) < 100
    assert (np.diff(seen) <= 1e-9 * np.abs(seen[0]) + 1e-9).all()
    assert found.objective == pytest.approx(min(seen))
    w = found.expanded
    slack = np.maximum(0, 1 - y * (X @ w + found.intercept))
    assert found.objective == pytest.approx(np.sum(1 - np.exp(-5 * np.abs(w))) + C * cost @ slack)
    plain = HingeSVC(C=C / 5).solve(columns_of(X), y, cost)  # the first program
    assert np.count_nonzero(found.weights) <= np.count_nonzero(plain.weights)


def test_sparse_tables_are_the_dense_ones():
    X, y, cost = table(4, 30, 20)
    X[np.abs(X) < 0.7] = 0.0
    dense, thin = columns_of(X), columns_of(sparse.csc_array(X))
    one, two = (HingeSVC(C=0.5).solve(view, y, cost) for view in (dense, thin))
    assert one.objective == pytest.approx(two.objective)
    machine = HingeSVC()
    np.testing.assert_allclose(
        machine.decision(two, thin, sparse.csc_array(X[:5])), machine.decision(two, dense, X[:5]), atol=1e-9
    )


# -- categories ----------------------------------------------------------------------------------------------------


def mixed(seed=0, m=80):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) % 2, "case", "control")
    frame = pd.DataFrame(rng.normal(size=(m, 6)), columns=list("abcdef"))
    frame["a"] += 1.2 * (y == "case")
    frame["site"] = np.where((y == "case") & (rng.random(m) < 0.7), "x", rng.choice(["y", "z", "w"], m))
    frame["hand"] = rng.choice(["l", "r"], m)
    frame.loc[::7, "site"] = None
    return frame, y


def test_a_category_has_a_column_for_each_level():
    frame, _ = mixed()
    table = Schema.from_table(frame).table(frame)
    columns = columns_of(table)
    X = columns.rows(table.Z)
    assert X.shape == (80, 6 + 4 + 2)
    np.testing.assert_array_equal(X[:, :6], frame[list("abcdef")])
    np.testing.assert_allclose(X[:, 6:].std(axis=0), 1.0)
    assert columns.owner.tolist() == [0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 7, 7]
    assert not X[0, 6:10].any()  # a gap is no level
    strange = table.Z[:1].copy()
    strange[0, 6] = 99.0
    assert not columns.rows(strange)[0, 6:10].any()
    assert columns.by_feature(np.arange(12.0)).tolist() == [0, 1, 2, 3, 4, 5, 9, 11]


@pytest.mark.parametrize("name", ["svm_l1", "fsv"])
def test_columns_of_the_users_table_are_counted(name):
    frame, y = mixed(seed=1)
    made = recipes.get(name)(C=1.0, n_features_to_select=2, threshold="margin").fit(frame, y)
    assert set(made.get_feature_names_out()) == {"a", "site"}
    assert made.score(frame, y) > 0.75
    new = frame.iloc[:3].assign(site=["nowhere", None, "x"])
    assert np.isfinite(made.decision_function(new)).all()
    renamed = frame.assign(site=frame["site"].map({"x": "4", "y": "3", "z": "2", "w": "1"}))
    again = recipes.get(name)(C=1.0, n_features_to_select=2, threshold="margin").fit(renamed, y)
    np.testing.assert_allclose(again.decision_function(renamed), made.decision_function(frame), atol=1e-6)


def test_categories_are_not_standardised():
    from marginsieve.fitting.training import Scaling

    scaling = Scaling.fit(
        Table(np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 8.0]]), ("nominal", "real"), ("a", "b")), np.ones(3)
    )
    assert scaling.shift[0] == 0.0
    assert scaling.factor[0] == 1.0
    assert scaling.shift[1] == 4.0


def test_the_path_of_a_recipe_ranks_by_entry(blobs):
    X, y = blobs
    made = recipes.svm_l1(n_features_to_select=3, threshold="margin").fit(X, y)
    assert set(np.flatnonzero(made.support_)) <= {0, 1, 2, 3}
    assert "features entered up to the largest C" in made.path_.stop_reason
    assert sorted(made.ranking_) == list(range(1, 13))


@pytest.mark.parametrize("name", ["svm_l1", "fsv", "ramp_svm", "l1_cssvm"])
def test_a_machine_as_it_is_at_its_own_price(name, blobs):
    X, y = blobs
    made = recipes.get(name)(stop="own", points=2, threshold="margin").fit(X, y)
    weights = made.model_.solutions[0].weights
    assert (np.abs(weights) > 0).all()
    whole = recipes.get(name)(n_features_to_select=12, points=2, threshold="margin").fit(X, y)
    np.testing.assert_array_equal(made.support_, np.abs(whole.model_.solutions[0].weights) > 0)
    assert made.path_.stop.to_dict() == {"size": made.n_features_}
    kept = recipes.get(name)(stop="own", points=2, threshold="margin", keep=["x11"]).fit(X, y)
    assert kept.support_[11]
    with pytest.raises(InputError, match="stop is 'soon'; it must be one of 'ranking', 'own'"):
        recipes.get(name)(stop="soon").fit(X, y)


def test_no_weight_at_all_is_told(blobs):
    with pytest.warns(UserWarning, match="no feature has a weight at this C .* raise C"):
        made = recipes.svm_l1(C=1e-4, stop="own", points=2, threshold="margin").fit(*blobs)
    assert made.n_features_ == 1


# -- the layer over HiGHS ------------------------------------------------------------------------------------------


def knapsack(n=12, seed=0):
    rng = np.random.default_rng(seed)
    worth, weight = rng.uniform(1, 2, n), rng.uniform(1, 2, n)
    program = Program(
        -worth, np.zeros(n), np.ones(n), weight[None], np.array([-np.inf]), np.array([6.0]), np.ones(n, dtype=bool)
    )
    return program, worth, weight


def test_a_whole_program_is_brute_force():
    program, worth, weight = knapsack()
    sets = np.array(np.meshgrid(*[[0, 1]] * 12)).reshape(12, -1)
    best = (worth @ sets)[weight @ sets <= 6.0].max()
    answer = program.solve(Limits(gap=0.0))
    assert answer.status == "optimal"
    assert -answer.value == pytest.approx(best)
    assert answer.bound <= answer.value + 1e-9
    program.set_bounds(np.array([0]), np.array([0.0]), np.array([0.0]))
    assert program.solve().value >= answer.value
    program.set_costs(np.arange(12), np.ones(12))
    assert program.solve().value == pytest.approx(0.0)


def test_limits_are_said():
    program, worth, _ = knapsack(60, 3)
    program.set_start(np.zeros(60))
    answer = program.solve(Limits(nodes=1, gap=0.0))
    assert answer.status in ("limit", "optimal")
    assert answer.x is not None
    assert answer.bound <= answer.value
    assert not answer.clock
    del worth


def test_programs_without_an_answer_say_so():
    one = np.ones(1)
    empty = Program(one, one, 2 * one, np.eye(1), np.array([5.0]), np.array([6.0]))
    assert empty.solve().status == "infeasible"
    endless = Program(-one, 0 * one, np.array([np.inf]), np.zeros((1, 1)), 0 * one, 0 * one)
    assert endless.solve().status == "unbounded"
    assert endless.solve().x is None


def test_a_failing_solver_is_an_error(monkeypatch):
    program, _, _ = knapsack()
    import highspy

    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda _: highspy.HighsModelStatus.kSolveError)
    with pytest.raises(SolverError, match="HiGHS ended with 'Solve error' on a program of 12 columns and 1 rows"):
        program.solve()
    X, y, cost = table(0)
    with pytest.raises(SolverError):
        HingeSVC().solve(columns_of(X), y, cost)
    assert issubclass(programs.SolverError, RuntimeError)


@pytest.mark.parametrize("machine", [HingeSVC(C=0.5), ConcaveSVC(C=5.0), MKL(C=0.5, tol=1e-9)], ids=str)
def test_a_row_of_cost_zero_takes_no_part(machine):
    X, y, cost = table(6, 14, 5)
    read = columns_of if machine.needs == "columns" else lambda rows: gram_of(Linear(), rows)
    view = read(X)
    whole = machine.solve(view, y, cost)
    for i in (0, 7, 13):
        rest = np.delete(np.arange(14), i)
        fold = machine.solve(view, y, np.where(np.arange(14) == i, 0.0, cost), whole)
        alone = read(X[rest])
        fit = machine.solve(alone, y[rest], cost[rest])
        value = machine.decision(fold, view, X[[i]])[0]
        assert value == pytest.approx(machine.decision(fit, alone, X[[i]])[0], abs=2e-3)


def branching(n=40):
    """A program that branches for long."""
    rng = np.random.default_rng(0)
    A = rng.integers(10, 100, (8, n)).astype(float)
    half = A.sum(axis=1) / 2
    return Program(
        -rng.integers(10, 100, n).astype(float),
        np.zeros(n),
        np.ones(n),
        A,
        np.full(8, -np.inf),
        half,
        integer=np.ones(n, dtype=bool),
    )


def test_ctrl_c_stops_a_search(monkeypatch):
    def pressed(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Program, "should_stop", pressed)
    with pytest.raises(KeyboardInterrupt):
        branching().solve(Limits(gap=0.0))


def test_a_stopped_search_has_its_point_and_bound(monkeypatch):
    calls = []

    def later(_self):
        calls.append(0)
        return len(calls) > 60

    monkeypatch.setattr(Program, "should_stop", later)
    answer = branching().solve(Limits(gap=0.0))
    assert answer.status == "interrupted"
    assert answer.bound <= answer.value < 0.0
