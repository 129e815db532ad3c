"""Penalised scaling: gradients, the limited-memory update, descent, what it finds, how it stops, what it costs."""

import os
import tracemalloc

import numpy as np
import pytest
from oracles import Plain, dense_damped_bfgs, gram_of
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from marginsieve import load, recipes, save
from marginsieve.data import filled_with_means, make_cohort
from marginsieve.data.table import Schema
from marginsieve.engine import nested_cv
from marginsieve.errors import InputError
from marginsieve.kernels import KERNELS, Gaussian, Linear
from marginsieve.machines import CSVC, Sphere
from marginsieve.problem import Problem
from marginsieve.searches import PenalizedScaling, penalized
from marginsieve.searches.penalized import DampedBFGS, Objective, QuasiNewton, move_within
from reproduction import named_problems

MACHINES = {"c_svc": CSVC(C=2.0, tol=1e-11), "svdd": Sphere(r=0.3, r_out=0.5, tol=1e-11)}
UPDATES = ("multiplicative", "quasi-newton", "gradient")
FAST = {"n_features_to_select": 5, "threshold": "margin"}

kernels = pytest.mark.parametrize("kernel", [kernel() for kernel in KERNELS.values()], ids=list(KERNELS))
machines = pytest.mark.parametrize("machine", list(MACHINES.values()), ids=list(MACHINES))


def problem_of(X, y, kernel, machine, keep=()):
    table = Schema.from_table(X).table(X)
    cost = np.where(y > 0, (y < 0).sum() / (y > 0).sum(), 1.0)
    keep = np.array(keep, dtype=np.intp)
    weight = kernel.start(table)
    return Problem(table, y[None], cost[None], np.ones(len(y)), weight, kernel, machine, None, keep=keep)


def small(seed=0, m=24, n=5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) < m // 3, 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0, :2] += 1.0
    return X, y, rng


def wide(m=40, n=300, planted=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) < m // 3, 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0, :planted] += 1.5
    return X, y


def difference_quotient(value, at, step=1e-5):
    out = np.empty(len(at))
    for j in range(len(at)):
        move = step * np.eye(len(at))[j]
        out[j] = (value(at + move) - value(at - move)) / (2 * step)
    return out


# -- gradients ----------------------------------------------------------------------------------------------------


def slope_in_scale(by_weight, gram):
    """d/ds_j from d/dw_j, s_j the root of the weight before the divisor."""
    return 2.0 * np.sqrt(gram.feature_weight[gram.features]) / gram.divisor * by_weight


@kernels
@machines
def test_the_gradient_of_the_optimum_is_the_difference_quotient(kernel, machine):
    """Envelope theorem: the machine re-solved at every scale."""
    X, y, rng = small()
    gram = gram_of(kernel, X)
    s = np.sqrt(gram.feature_weight) * rng.uniform(0.7, 1.3, 5)

    def optimum(scale):
        return machine.solve(gram.rescale(scale**2), y, np.ones(len(y))).objective

    here = gram.rescale(s**2)
    fast = slope_in_scale(machine.weight_gradient(machine.solve(here, y, np.ones(len(y))), here), here)
    slow = difference_quotient(optimum, s, 1e-4 * s[0])
    assert np.abs(fast - slow).max() < 1e-5 * np.abs(slow).max()


@kernels
@machines
def test_the_gradient_with_coefficients_kept_is_the_difference_quotient(kernel, machine):
    X, y, rng = small(1)
    gram = gram_of(kernel, X)
    s = np.sqrt(gram.feature_weight) * rng.uniform(0.7, 1.3, 5)
    here = gram.rescale(s**2)
    solution = machine.solve(here, y, np.ones(len(y)))
    fast = slope_in_scale(machine.weight_gradient(solution, here), here)
    slow = difference_quotient(lambda t: machine.dual(solution, gram.rescale(t**2).matrix()), s, 1e-5 * s[0])
    assert np.abs(fast - slow).max() < 1e-5 * np.abs(slow).max()
    assert machine.dual(solution, here.matrix()) == pytest.approx(solution.objective, rel=1e-8)


@kernels
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_a_line_search_is_rebuilding(kernel, plain, average):
    X, _, rng = small(2)
    kernel = clone(kernel).set_params(average=average)
    gram = gram_of(Plain(kernel) if plain else kernel, X).without(np.array([3]))
    d = np.sqrt(gram.feature_weight) * rng.uniform(-1, 1, 5)  # in the kernel's own units, before the divisor
    line = gram.line(d[gram.features] / np.sqrt(gram.divisor))
    for length in (0.0, 0.3, 1.0):
        slow = gram.rescale((np.sqrt(gram.feature_weight) + length * d) ** 2)
        np.testing.assert_allclose(line.matrix(length), slow.matrix(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(line.gram_at(length).matrix(), slow.matrix(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(line.gram_at(length).weight, slow.weight)
        c = rng.normal(size=len(X))
        gradient = line.gram_at(length).weight_gradient(c)
        np.testing.assert_allclose(gradient, slow.weight_gradient(c), rtol=1e-8, atol=1e-11)


@kernels
@machines
def test_rows_without_a_coefficient_do_not_matter_while_it_is_kept(kernel, machine, monkeypatch):
    X, y, rng = small(4, m=60)
    objective = Objective(
        problem_of(X, y, kernel, clone(machine).set_params(tol=1e-6)), "min-max", "l1", 0.1, None, True
    )
    whole = objective.begin()
    few = objective.restrict_to_support(whole)
    if np.mean(whole.solutions[0].coef != 0) > penalized.MOST_ON:  # it does not pay on this kernel
        assert few is whole
        monkeypatch.setattr(penalized, "MOST_ON", 1.0)
        few = objective.restrict_to_support(whole)
    assert len(few.solutions[0].coef) < 60
    np.testing.assert_allclose(objective.slope(few), objective.slope(whole), rtol=1e-9, atol=1e-12)
    d = whole.e * rng.uniform(-1, 1, 5)
    slow, fast = objective.along_line(whole, d), objective.along_line(few, d)
    assert fast[0](0.5) == pytest.approx(slow[0](0.5), rel=1e-9)
    assert fast[1](0.5).value == pytest.approx(slow[0](0.5), rel=1e-9)


@pytest.mark.parametrize("direction", ["min-max", "as-printed"])
@pytest.mark.parametrize(("penalty", "beta"), [("concave", None), ("concave", 3.0), ("l1", None)])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(), Linear(average=True)], ids=["gaussian", "averaged"])
@machines
def test_the_slope_of_the_objective_is_the_difference_quotient(direction, penalty, beta, scaled, kernel, machine):
    X, y, rng = small(3)
    objective = Objective(problem_of(X, y, kernel, machine), direction, penalty, 0.7, beta, scaled)
    point = objective.solve_at(objective.begin(), objective.start * rng.uniform(0.7, 1.3, 5))
    slow = difference_quotient(lambda e: objective.solve_at(point, e).value, point.e, 1e-4 * point.e[0])
    fast = objective.slope(point)
    assert np.abs(fast - slow).max() < 1e-5 * np.abs(slow).max()
    assert (objective.contrast is not None) == (direction == "min-max" and isinstance(machine, Sphere))


# -- the limited-memory update ------------------------------------------------------------------------------------


def test_the_limited_memory_update_is_the_dense_one():
    """n = 200, 20 updates, curvatures of both signs so that the damping acts."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 200))
    H = A @ A.T / 200 - 0.8 * np.eye(200)
    B, ours, damped = np.eye(200), DampedBFGS(), 0
    for _ in range(20):
        p = rng.normal(size=200)
        q = H @ p
        damped += p @ q < 0.2 * (p @ B @ p)
        B = dense_damped_bfgs(B, p, q)
        ours.update(p, q)
        v = rng.normal(size=200)
        assert np.abs(ours.times(v) - B @ v).max() < 1e-8
        assert np.abs(ours.solve(v) - np.linalg.solve(B, v)).max() < 1e-8
    assert 0 < damped < 20
    assert np.linalg.eigvalsh(B).min() > 0


def test_a_step_of_length_zero_changes_nothing():
    B = DampedBFGS()
    B.update(np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(B.solve(np.arange(3.0)), np.arange(3.0))


@pytest.mark.parametrize("update", UPDATES)
def test_memory_grows_with_the_table_not_with_its_square(update):
    """n = 8,000: an n x n array would be 0.5 GB; the search may take three copies of the table and O(m^2)."""
    X, y = wide(60, 8_000)
    problem = problem_of(X, y, Gaussian(), CSVC())
    search = PenalizedScaling(update=update)
    tracemalloc.start()
    search.run(problem, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes + 100 * 8 * 60 * 60


# -- descent and ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("direction", ["min-max", "as-printed"])
@pytest.mark.parametrize("stop", ["ranking", "own"])
@machines
def test_the_objective_never_rises_and_every_run_ends_with_a_reason(update, direction, stop, machine, monkeypatch):
    from marginsieve.searches.penalized import _ScalingWalk

    values, move = [], _ScalingWalk.move

    def watched(self, rule):
        before = self.point.value
        moved = move(self, rule)
        values.append((before, self.point.value, moved))
        return moved

    monkeypatch.setattr(_ScalingWalk, "move", watched)
    X, y = wide(30, 60)
    problem = problem_of(X, y, Gaussian(), machine.__class__())
    path = PenalizedScaling(update=update, direction=direction, stop=stop, max_iter=60).run(problem, None)
    assert all(after <= before for before, after, _ in values)
    assert any(after < before for before, after, _ in values)
    assert sorted(path.order) == list(range(60))
    sizes = [step.size for step in path.steps]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    assert max(step.residual for step in path.steps) <= 1e-4
    assert len(path.stop_reason.split()) > 5
    if stop == "own":
        assert 1 <= path.stop.size <= 60
        assert str(path.stop) in path.stop_reason
        assert 0 <= path.stop.details["share_at_cap"] <= 1
        assert len(path.stop.trace) == path.stop.details["moves"]


def test_the_stop_of_2011_stops():
    """Long before the limit; few features, nearly all at the cap: the penalty is bang-bang."""
    X, y = wide(40, 300)
    path = recipes.kp_svm().fit(X, y).path_
    assert path.stop.details["converged"]
    assert path.stop.details["moves"] < 200
    assert path.stop.trace[-1] < 1e-3
    assert path.stop.size < 100
    assert path.stop.details["share_at_cap"] > 0.5
    assert "the factors converged" in path.stop_reason
    stopped = recipes.kp_svm(max_iter=5).fit(X, y).path_
    assert not stopped.stop.details["converged"]
    assert "still moved after 5 moves" in stopped.stop_reason


def equal_share(path, size):
    """The share of the best features whose learned weight another of them has too."""
    weights = np.sort(path.weights_at(size))
    equal = np.isclose(weights[1:], weights[:-1], rtol=1e-9, atol=0.0)
    return np.mean(np.append(equal, False) | np.append(False, equal))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("stop", ["ranking", "own"])
@pytest.mark.parametrize("name", ["kp_svm", "kp_cssvm", "kp_svdd"])
def test_no_ranking_is_decided_by_ties(name, stop, update):
    cohort = make_cohort(50, 400, n_relevant=20, prevalence=0.3, effect=1.5, random_state=0)
    path = recipes.get(name)(update=update, stop=stop, **FAST).fit(cohort.X, cohort.y).path_
    assert max(equal_share(path, size) for size in (250, 100, 40, 20, 8)) <= 0.05


@pytest.mark.long
@pytest.mark.skipif(not os.environ.get("MARGINSIEVE_DATA"), reason="MARGINSIEVE_DATA does not name the data sets")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("stop", ["ranking", "own"])
@pytest.mark.parametrize("data", ["COLON", "LYMPHOMA"])
def test_no_ranking_of_genes_is_decided_by_ties(data, stop, update):
    table = named_problems.load(data)
    X = table.X.to_numpy(dtype=float)
    X = filled_with_means(X, X)
    _, first = np.unique(X, axis=1, return_index=True)  # equal columns have equal factors by right
    X, y = X[:, np.sort(first)], np.asarray(table.y)
    for name in ("kp_svm", "kp_cssvm", "kp_svdd"):
        path = recipes.get(name)(update=update, stop=stop, similar=None, **FAST).fit(X, y).path_
        assert max(equal_share(path, size) for size in (250, 100, 40, 20, 8)) <= 0.05


def test_a_move_stays_within_its_bounds_and_keeps_the_order(rng):
    t, move = np.sort(rng.uniform(0.01, 3.9, 500)), rng.normal(size=500) * 10.0 ** rng.uniform(-3, 3, 500)
    for cap in (4.0, np.inf):
        after = move_within(t, move, cap)
        assert (after > 0).all()
        assert (after < cap).all()
        assert (np.sign(after - t) == np.sign(move)).all()
        one = move_within(np.ones(500), np.sort(move), cap)
        assert (np.diff(one) > 0).all()  # of equal factors the one that is moved further is ahead
        assert (np.diff(move_within(t, np.full(500, 0.3), cap)) > 0).all()  # moved alike, the order stays
    np.testing.assert_array_equal(move_within(t, np.abs(move), np.inf), t + np.abs(move))
    np.testing.assert_allclose(move_within(t, 1e-9 * move, 4.0), t + 1e-9 * move, rtol=1e-9)
    assert move_within(np.array([3.9999]), np.ones(1), 4.0) == 3.9999  # within a thousandth of the cap it rests


@pytest.mark.parametrize("update", UPDATES)
def test_without_a_cap_factors_grow_beyond_it(update):
    X, y = wide(40, 100)
    bounded, free = (recipes.kp_svm(update=update, cap=cap, max_iter=60).fit(X, y).path_ for cap in (4.0, None))
    start = 1.0 / np.var(X / X.std(axis=0), axis=0).sum()  # of mu, as factors squared
    assert bounded.weights_at(bounded.stop.size).max() < 16.0 * start
    assert free.weights_at(free.stop.size).max() > 16.0 * start
    assert "at the cap" in bounded.stop_reason
    assert "at the cap" not in free.stop_reason
    assert free.stop.details["share_at_cap"] == 0.0


def test_a_dearer_feature_leaves_fewer():
    X, y = wide(40, 300)
    sizes = [recipes.kp_svm(C2=C2).fit(X, y).n_features_ for C2 in (0.25, 1.0, 4.0)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_the_method_decides_the_size_unless_told():
    X, y = wide(40, 300)
    own = recipes.kp_svm().fit(X, y)
    assert own.n_features_ == own.path_.stop.size
    assert recipes.kp_svm(n_features_to_select=7).fit(X, y).n_features_ == 7
    told = recipes.kp_svm(n_features_to_select="auto", cv=3).fit(X, y)
    assert any(np.isfinite(step.score) for step in told.path_.steps)


def test_undershooting_is_refilled_with_the_best_of_the_last_drop():
    """A step that leaves fewer than r: the head of the ranking takes the dropped ones with the largest last factor."""
    X, y = wide(40, 300)
    path = recipes.kp_svm(stop="ranking", step=0.9).fit(X, y).path_
    sizes = [step.size for step in path.steps]
    large, little = sizes[0], sizes[1]
    between = path.order[little:large]
    assert (np.diff(path.scores[between]) <= 0).all()


@pytest.mark.parametrize("update", UPDATES)
def test_kept_features_rank_first(update):
    X, y = wide(30, 60)
    problem = problem_of(X, y, Gaussian(), CSVC(), keep=[50, 55])
    path = PenalizedScaling(update=update, stop="own").run(problem, None)
    assert set(path.order[:2]) == {50, 55}


def test_a_price_that_no_feature_is_worth_is_told():
    X, y = wide(40, 100)
    with pytest.warns(UserWarning, match="the penalty removed every feature after .* lower C2"):
        selector = recipes.kp_svm(C2=500.0, class_weight="balanced").fit(X, y)
    stop = selector.path_.stop
    assert (stop.size, stop.emptied, stop.details["converged"]) == (1, True, True)
    assert stop.details["moves"] < 100
    assert np.ptp(selector.decision_function(X)) > 0.05  # the feature that is left has a weight


@pytest.mark.parametrize("update", UPDATES)
def test_features_to_keep_have_a_weight(update):
    X, y = wide(40, 100)
    selector = recipes.kp_svm(keep=[50, 51, 51], update=update).fit(X, y)
    assert selector.support_[[50, 51]].all()
    assert selector.n_features_ == selector.path_.stop.size
    kept = np.isin(selector.model_.features, [50, 51])
    assert (selector.model_.view.weight[kept] > 0).all()


def test_learned_weights_reach_the_model():
    X, y = wide(40, 300)
    learned = recipes.kp_cssvm(n_features_to_select=20, threshold="margin").fit(X, y)
    weights = learned.path_.weights_at(20)
    total = 300 / np.var(X / X.std(axis=0), axis=0).sum()  # the start: 300 weights of 1 / (sum of the variances)
    assert weights.sum() == pytest.approx(total)  # the sum is kept while features drop
    order = np.argsort(learned.path_.order[:20])
    np.testing.assert_allclose(learned.model_.view.weight, weights[order])
    start = recipes.kp_cssvm(n_features_to_select=20, threshold="margin", final="start").fit(X, y)
    np.testing.assert_allclose(start.model_.view.weight, 1 / 20)  # the kernel of the 20 columns


@pytest.mark.parametrize("name", ["kp_svm", "kp_cssvm"])
@pytest.mark.parametrize("settings", [{}, {"stop": "own", "cap": None, "max_iter": 15}])
def test_what_is_fitted_is_the_machine_on_the_learned_kernel(name, settings):
    """Against scikit-learn's SVC on a kernel matrix made of the learned factors."""
    X, y = wide(60, 80)
    chosen = {} if name == "kp_svm" or settings else {"n_features_to_select": 12}
    selector = recipes.get(name)(class_weight=None, **{**chosen, "threshold": "margin", **settings})
    selector.set_params(machine__tol=1e-10).fit(X[:40], y[:40])
    size = selector.n_features_
    assert size == chosen.get("n_features_to_select", selector.path_.stop and selector.path_.stop.size)
    columns, weights = selector.path_.order[:size], selector.path_.weights_at(size)
    Z = ((X - X[:40].mean(axis=0)) / X[:40].std(axis=0))[:, columns] * np.sqrt(weights)
    K = np.exp(-0.5 * cdist(Z, Z[:40], "sqeuclidean"))
    peer = SVC(C=1.0, kernel="precomputed", tol=1e-10).fit(K[:40], y[:40])
    np.testing.assert_allclose(selector.decision_function(X), peer.decision_function(K), atol=1e-5)
    assert np.ptp(weights) > 0


@pytest.mark.parametrize("name", ["kp_svm", "kp_cssvm", "kp_svdd"])
def test_another_machine_is_fitted_where_one_is_named(name):
    X, y = wide(40, 60)
    selector = recipes.get(name)(final="c_svc", n_features_to_select=6, threshold="margin").fit(X, y)
    assert isinstance(selector.model_.machine, CSVC)
    np.testing.assert_allclose(selector.model_.view.weight, 1 / 6)
    assert selector.score(X, y) > 0.9


def test_averaging_kernels_learn_the_same(blobs):
    """Dividing by the number of live features is a matter of units while the sum of the weights is fixed."""
    X, y = blobs
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    plain = problem_of(X, y, Linear(), CSVC(C=1.0 / 12, tol=1e-8))
    averaged = problem_of(X, y, Linear(average=True), CSVC(C=1.0, tol=1e-8))
    a = PenalizedScaling(C2=0).run(plain, None)
    b = PenalizedScaling(C2=0).run(averaged, None)
    np.testing.assert_array_equal(a.order, b.order)
    np.testing.assert_allclose(a.weights_at(5), 12 * b.weights_at(5), rtol=1e-3)


# -- what inner folds choose --------------------------------------------------------------------------------------


def price_of(count, columns):
    return 0.002 * np.log2(count / min(50, np.sqrt(columns))) ** 2


def choose_slowly(X, y, folds, penalties, moves, **settings):
    """(C2, moves) by the mean AUC of folds, pairs counted, less the price of the number of features."""
    best = None
    for C2 in penalties:
        for t in moves:
            scores, sizes, pairs = [], [], []
            for train, test in folds:
                fitted = recipes.kp_svm(C2=C2, max_iter=t, threshold="margin", **settings).fit(X[train], y[train])
                scores.append(roc_auc_score(y[test], fitted.decision_function(X[test])))
                sizes.append(fitted.n_features_)
                pairs.append(np.sum(y[test] > 0) * np.sum(y[test] < 0))
            merit = round(np.average(scores, weights=pairs) - price_of(np.mean(sizes), X.shape[1]), 12), -np.mean(sizes)
            if best is None or merit > best[0]:
                best = merit, C2, t
    return best[1:]


@pytest.mark.parametrize("settings", [{}, {"cap": None, "update": "multiplicative"}, {"final": "start"}])
def test_the_choice_in_folds_is_a_slow_loop(settings, monkeypatch):
    X, y = wide(36, 40, planted=4, seed=3)
    X += np.random.default_rng(5).normal(size=X.shape)  # so that the scores differ
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    monkeypatch.setattr(penalized, "PENALTIES", (0.5, 4.0))
    given = {**settings, "cv": folds, "threshold": "margin", "max_iter": 12}
    both = recipes.kp_svm(C2="cv", iterations="cv", **given).fit(X, y).path_.stop.details
    assert (both["C2"], both["moves"]) == choose_slowly(X, y, folds, (0.5, 4.0), range(1, 13), **settings)
    moves = recipes.kp_svm(C2=2.0, iterations="cv", **given).fit(X, y).path_.stop.details["moves"]
    assert moves == choose_slowly(X, y, folds, (2.0,), range(1, 13), **settings)[1]
    penalty = recipes.kp_svm(C2="cv", **given).fit(X, y).path_.stop.details["C2"]
    assert penalty == choose_slowly(X, y, folds, (0.5, 4.0), (12,), **settings)[0]


def test_a_ranking_chooses_its_penalty_by_the_size_that_is_asked_for(monkeypatch):
    X, y = wide(36, 40, planted=4, seed=3)
    X += np.random.default_rng(5).normal(size=X.shape)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    monkeypatch.setattr(penalized, "PENALTIES", (0.5, 40.0))
    for name in ("kp_cssvm", "kp_svdd"):
        merits = []
        for C2 in penalized.PENALTIES:
            fits = [recipes.get(name)(C2=C2, **FAST).fit(X[train], y[train]) for train, _ in folds]
            scores = [
                roc_auc_score(y[test], fit.decision_function(X[test]))
                for fit, (_, test) in zip(fits, folds, strict=True)
            ]
            pairs = [np.sum(y[test] > 0) * np.sum(y[test] < 0) for _, test in folds]
            merits.append(round(np.average(scores, weights=pairs), 12))
        chosen = recipes.get(name)(C2="cv", cv=folds, **FAST).fit(X, y)
        given = recipes.get(name)(C2=penalized.PENALTIES[int(np.argmax(merits))], **FAST).fit(X, y)
        assert chosen.path_.stop_reason == given.path_.stop_reason
        np.testing.assert_array_equal(chosen.ranking_, given.ranking_)


def test_what_folds_choose_is_a_selector_like_any_other(tmp_path, monkeypatch):
    """Same seed, same choice, however many workers; clones, model files, ensembles, prefilters and nested folds."""
    monkeypatch.setattr(penalized, "PENALTIES", (1.0, 4.0))
    cohort = make_cohort(60, 40, n_relevant=4, effect=1.5, random_state=0)
    selector = recipes.kp_svm(C2="cv", iterations="cv", max_iter=15, cv=3, random_state=0)
    again = clone(selector)
    assert again.get_params()["search__C2"] == again.get_params()["search__iterations"] == "cv"
    fitted = [one.fit(cohort.X, cohort.y) for one in (selector, again.set_params(n_jobs=2))]
    np.testing.assert_array_equal(*(one.ranking_ for one in fitted))
    assert fitted[0].path_.stop.to_dict() == fitted[1].path_.stop.to_dict()
    assert fitted[0].search.C2 == "cv"  # parameters stay as they were given
    back = load(save(fitted[0], tmp_path / "model.marginsieve"))
    np.testing.assert_array_equal(back.decision_function(cohort.X), fitted[0].decision_function(cohort.X))
    together = recipes.kp_svm(C2="cv", max_iter=15, cv=3, ensemble=3, random_state=0, threshold="margin")
    assert together.fit(cohort.X, cohort.y).n_features_ > 0
    nested = nested_cv(clone(selector), cohort.X, cohort.y, cv=3, random_state=0)
    assert nested.scores().value["auc"] > 0.5
    drawn = recipes.kp_svm(C2="cv", max_iter=15, random_state=0, prefilter=("fisher", 20), keep=["g01"])
    assert drawn.fit(cohort.X, cohort.y).support_[0]


# -- what it finds ------------------------------------------------------------------------------------------------


def found(selector, cohort):
    """Share of the planted features among the first 2k."""
    planted = cohort.truth.features
    selector.fit(cohort.X, cohort.y)
    head = np.array(cohort.X.columns)[np.argsort(selector.ranking_)[: 2 * len(planted)]]
    return len(planted & set(head)) / len(planted)


LINEAR = [make_cohort(120, 500, n_relevant=10, effect=1.3, random_state=seed) for seed in range(3)]
PAIRS = [make_cohort(160, 60, n_relevant=0, n_interactions=2, prevalence=0.5, random_state=seed) for seed in range(4)]


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_planted_features_are_found(kernel):
    assert np.mean([found(recipes.kp_cssvm(kernel=kernel, **FAST), cohort) for cohort in LINEAR]) >= 0.9
    printed = [found(recipes.kp_cssvm(kernel=kernel, direction="as-printed", **FAST), cohort) for cohort in LINEAR]
    assert np.mean(printed) <= 0.1


@pytest.mark.parametrize("update", ["multiplicative", "quasi-newton"])
def test_pairs_that_act_together_are_found_where_fisher_fails(update):
    assert np.mean([found(recipes.kp_cssvm(C=10.0, update=update, **FAST), cohort) for cohort in PAIRS]) >= 0.9
    assert np.mean([found(recipes.fisher(**FAST), cohort) for cohort in PAIRS]) <= 0.4
    printed = [found(recipes.kp_cssvm(C=10.0, update=update, direction="as-printed", **FAST), c) for c in PAIRS]
    assert np.mean(printed) <= 0.5


def test_the_sphere_finds_planted_features_far_above_chance_and_the_printed_form_none():
    cohorts = [make_cohort(150, 300, n_relevant=20, prevalence=0.2, effect=1.5, random_state=seed) for seed in range(2)]

    def precision(**settings):
        total = 0
        for cohort in cohorts:
            selector = recipes.kp_svdd(**{**FAST, **settings}).fit(cohort.X, cohort.y)
            head = np.array(cohort.X.columns)[np.argsort(selector.ranking_)[:20]]
            total += len(cohort.truth.features & set(head))
        return total / 40

    contrast, alone, printed = precision(), precision(r_out=0), precision(direction="as-printed")
    assert contrast >= 0.75
    assert 0.4 <= alone < contrast
    assert printed <= 0.1  # chance is 0.07


def test_shuffled_labels_rank_planted_features_no_better_than_chance():
    rng = np.random.default_rng(0)
    place = []
    for cohort in LINEAR:
        selector = recipes.kp_cssvm(**FAST).fit(cohort.X, rng.permutation(cohort.y))
        columns = [list(cohort.X.columns).index(name) for name in cohort.truth.features]
        place += list(selector.ranking_[columns] / 500)
    assert 0.35 < np.mean(place) < 0.65  # 30 places, standard error 0.05


# -- parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"update": "newton"}, "update is 'newton'; it must be one of 'multiplicative'"),
        ({"direction": "up"}, "direction is 'up'"),
        ({"penalty": "l2"}, "penalty is 'l2'"),
        ({"stop": "soon"}, "stop is 'soon'"),
        ({"final": "no"}, "final is 'no'"),
        ({"C2": -1}, "C2 is -1; it must be a positive number"),
        ({"C2": "auto"}, "C2 is 'auto'; it must be a positive number"),
        ({"iterations": 5}, 'iterations is 5; it must be None or "cv"'),
        ({"iterations": "cv"}, 'iterations="cv" needs stop="own"'),
        ({"final": 3}, "final is 3; it must be None or a machine"),
        ({"eps": 2}, "eps is 2; it must be a positive number of at most 1"),
        ({"rate": 0}, "rate is 0"),
        ({"step": 1.5}, "step is 1.5"),
        ({"step": "a"}, "step is 'a'"),
        ({"step": float("inf")}, "step is inf"),
        ({"rate": 1e6}, "rate is 1000000.0; it must be a positive number of at most 2"),
        ({"moves": 1.5}, "moves is 1.5; it must be a whole number"),
        ({"one_by_one_below": "x"}, "one_by_one_below is 'x'"),
        ({"cap": 0.5}, "cap is 0.5; it must be 1 or more"),
        ({"max_iter": 0}, "max_iter is 0"),
    ],
)
def test_parameters_without_sense_are_refused(wrong, message, blobs):
    with pytest.raises(InputError, match=message):
        recipes.kp_cssvm(**{**FAST, **wrong}).fit(*blobs)


def test_a_criterion_is_not_for_penalised_scaling(blobs):
    selector = recipes.kp_cssvm(**FAST).set_params(criterion="margin")
    with pytest.raises(
        InputError, match="PenalizedScaling ranks by what it learns, not by MarginChange: use criterion=None"
    ):
        selector.fit(*blobs)
    with pytest.raises(InputError, match="Backward needs a criterion"):
        recipes.svm_rfe(**FAST).set_params(criterion=None).fit(*blobs)


def test_quasi_newton_falls_back_where_its_direction_does_not_descend(blobs):
    """A matrix that learned from another place: the iteration starts anew from the identity and still descends."""
    X, y = blobs
    objective = Objective(problem_of(X, y, Gaussian(), CSVC()), "min-max", "concave", 1.0, None, True)
    rule, first = QuasiNewton(5, 0.25, 4.0), objective.begin()
    h = rule.slope(objective, first)

    class Backwards(DampedBFGS):
        def solve(self, v):
            return -v

        def __len__(self):
            return 1

    there, _, B, moved = rule.iterate(objective, first, h, Backwards())
    assert moved
    assert type(B) is DampedBFGS
    assert there.value < first.value
