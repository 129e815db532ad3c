"""Numbers as an outcome: machines and filters equal to references, scores with their influences, studies, files."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles import columns_of, gram_of
from scipy import stats
from sklearn import kernel_ridge, linear_model, metrics, svm
from sklearn.base import is_classifier, is_regressor
from sklearn.feature_selection import f_regression
from sklearn.model_selection import LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import marginsieve
from marginsieve import SVMSelector, load, nested_cv, predict, recipes, save
from marginsieve.bench import Suite, run_suite
from marginsieve.contracts import Scalable
from marginsieve.criteria import Correlation, FTest, RReliefF, SymmetricalUncertainty
from marginsieve.data import make_cohort
from marginsieve.data.table import Table
from marginsieve.engine import Pass
from marginsieve.engine.scoring import interval_ends
from marginsieve.errors import InputError
from marginsieve.kernels import Clinical, Gaussian, Linear
from marginsieve.machines import LSSVM, SVR, KernelRidge, Lasso
from marginsieve.outcomes import Numbers, NumberTarget
from marginsieve.outcomes.values import error_interval, linearise_errors, spearman
from marginsieve.problem import Problem
from marginsieve.searches.penalized import Objective
from marginsieve.solvers.ridge import SHARES, factor_ridge
from marginsieve.solvers.ridge import kernel_ridge as solve_ridge
from marginsieve.studies.aggregate import without_rows
from marginsieve.studies.analyses.substitutes import predict_on
from marginsieve.studies.analyses.unexplained_rows import UnexplainedRows, is_skewed, scale_errors

RECIPES = recipes.names("numbers")


def linear_table(m=80, n=30, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, 2.0 * X[:, 0] + X[:, 1] - X[:, 2] + noise * rng.normal(size=m)


# -- machines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(), Clinical()], ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("shape", [(40, 100), (60, 3)], ids=str)
def test_kernel_ridge_equals_scikit_learn_on_the_centred_kernel(kernel, shape):
    X, y = linear_table(*shape) if shape[1] > 2 else None
    gram = gram_of(kernel, X)
    K, m = gram.matrix(), len(y)
    centre = np.eye(m) - 1.0 / m
    centred = centre @ K @ centre
    solution = KernelRidge(penalty=0.03).solve(gram, y, np.ones(m))
    theirs = kernel_ridge.KernelRidge(alpha=0.03 * np.trace(centred), kernel="precomputed")
    expected = theirs.fit(centred, y - y.mean()).predict(centred) + y.mean()
    np.testing.assert_allclose(K @ solution.coef + solution.intercept, expected, atol=1e-8)
    assert solution.converged
    assert abs(solution.coef.sum()) < 1e-8 * np.abs(solution.coef).sum()


def test_the_penalty_is_that_of_the_smallest_leave_one_out_error():
    X, y = linear_table(30, 8, noise=3.0)
    K, m = X @ X.T, len(y)
    chosen = solve_ridge(K, y, np.ones(m), None)
    trace = np.trace((X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T)
    errors = []
    for share in SHARES:
        left = [solve_without(K, y, share * trace, i) for i in range(m)]
        errors.append(np.mean((np.array(left) - y) ** 2))
    assert chosen.penalty == pytest.approx(SHARES[int(np.argmin(errors))] * trace)


def solve_without(K, y, penalty, i):
    """The value of row i under the fit without it, the penalty kept, by the system of all others."""
    rest = np.delete(np.arange(len(y)), i)
    inner = K[np.ix_(rest, rest)]
    ones = np.ones((len(rest), 1))
    system = np.block([[inner + penalty * np.eye(len(rest)), ones], [ones.T, np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(y[rest], 0.0))
    return K[i, rest] @ solved[:-1] + solved[-1]


@pytest.mark.parametrize("share", [0.01, None])
def test_the_solution_by_columns_is_that_by_rows(share):
    X, y = linear_table(50, 6)
    cost = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 50)
    by_rows, by_columns = solve_ridge(X @ X.T, y, cost, share), factor_ridge(X.T, y, cost, share)
    assert by_columns.penalty == pytest.approx(by_rows.penalty)
    assert by_columns.objective == pytest.approx(by_rows.objective)
    np.testing.assert_allclose(by_columns.coef, by_rows.coef, atol=1e-9)


def test_leave_one_out_of_a_row_twice_is_that_of_a_weight_of_two():
    X, y = linear_table(40, 60, noise=3.0)
    times = np.random.default_rng(2).choice([1, 2, 3], 40)
    rows = np.repeat(np.arange(40), times)
    heavy = solve_ridge(X @ X.T, y, times.astype(float), None)
    long = solve_ridge((X @ X.T)[np.ix_(rows, rows)], y[rows], np.ones(len(rows)), None)
    assert heavy.penalty == pytest.approx(long.penalty)
    assert heavy.objective == pytest.approx(long.objective)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian()], ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("shape", [(50, 8), (60, 200)], ids=str)
def test_support_vector_regression_equals_scikit_learn(kernel, C, shape):
    X, y = linear_table(*shape)
    gram, cost = gram_of(kernel, X), np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    K = gram.matrix()
    solution = SVR(C=C, epsilon=0.2, tol=1e-10).solve(gram, y, cost)
    theirs = svm.SVR(kernel="precomputed", C=C, epsilon=0.2, tol=1e-10).fit(K, y, sample_weight=cost)
    assert solution.converged
    np.testing.assert_allclose(K @ solution.coef + solution.intercept, theirs.predict(K), atol=1e-4)
    c = solution.coef
    assert np.all(np.abs(c) <= C * cost * (1 + 1e-12))
    assert solution.objective == pytest.approx(
        (y - np.average(y, weights=cost)) @ c - 0.2 * np.abs(c).sum() - 0.5 * c @ K @ c
    )


@pytest.mark.parametrize("kernel", [Linear(), Gaussian()], ids=lambda kernel: type(kernel).__name__)
def test_the_least_squares_machine_is_ridge_regression_of_a_penalty_that_stays(kernel):
    X, y = linear_table(50, 8)
    gram, cost = gram_of(kernel, X), np.random.default_rng(4).uniform(0.5, 2.0, 50)
    solution = LSSVM(C=3.0).solve(gram, y, cost)
    K, share = gram.matrix(), cost / cost.sum()
    trace = float(cost @ np.diag(K) - cost.sum() * share @ K @ share)
    ridge = KernelRidge(penalty=1.0 / (3.0 * trace)).solve(gram, y, cost)
    np.testing.assert_allclose(solution.coef, 3.0 * cost * solution.slack, atol=1e-8)
    np.testing.assert_allclose(K @ solution.coef + solution.intercept, K @ ridge.coef + ridge.intercept, atol=1e-8)
    value = 0.5 * solution.coef @ K @ solution.coef + 1.5 * cost @ solution.slack**2
    assert solution.objective == pytest.approx(value)


@pytest.mark.parametrize("kernel", [Linear(average=True), Gaussian()], ids=["averaged", "gaussian"])
@pytest.mark.parametrize("machine", [LSSVM(C=2.0), SVR(C=2.0, epsilon=0.2, tol=1e-11)], ids=["ls_svm", "svr"])
def test_scaled_kernels_of_numbers_have_the_gradient_of_differences(machine, kernel):
    assert isinstance(machine, Scalable)
    X, y = linear_table(24, 5)
    table = Table(np.asfortranarray(X), ("real",) * 5, tuple("abcde"))
    weight, cost = kernel.start(table), np.random.default_rng(5).uniform(0.5, 2.0, 24)
    problem = Problem(
        table, y[None], cost[None], np.ones(24), weight, kernel, machine, None, keep=np.array([], dtype=np.intp)
    )
    objective = Objective(problem, "min-max", "concave", 0.7, None, True)
    start = objective.begin()
    point = objective.solve_at(start, objective.start * np.random.default_rng(6).uniform(0.7, 1.3, 5))
    step = 1e-4 * point.e[0]
    slow = [
        (objective.solve_at(point, point.e + move).value - objective.solve_at(point, point.e - move).value) / (2 * step)
        for move in step * np.eye(5)
    ]
    np.testing.assert_allclose(objective.slope(point), slow, rtol=1e-4, atol=1e-5 * np.abs(slow).max())
    kept, there = objective.along_line(point, objective.start - point.e)
    assert kept(0.0) == pytest.approx(point.value)  # the dual objective of the coefficients, where they are the optimum
    assert kept(1.0) <= start.value + 1e-9  # elsewhere a lower bound
    assert there(1.0).value == pytest.approx(kept(1.0))


@pytest.mark.parametrize("C", [0.02, 0.1, 1.0])
@pytest.mark.parametrize("shape", [(60, 10), (40, 120)], ids=str)
def test_the_lasso_is_scikit_learns(shape, C):
    X, y = linear_table(*shape)
    y, weights = 100.0 * y + 7.0, np.random.default_rng(7).choice([0.0, 1.0, 2.0], len(y))
    view = columns_of(X)
    solution = Lasso(C=C, tol=1e-13).solve(view, y, weights)
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    deviation = float(np.std(y[rows]))
    theirs = linear_model.Lasso(alpha=deviation / (2 * C * len(rows)), tol=1e-13, max_iter=10**6).fit(X[rows], y[rows])
    assert solution.converged
    np.testing.assert_allclose(solution.weights, theirs.coef_, atol=1e-5 * deviation)
    assert solution.intercept == pytest.approx(theirs.intercept_, abs=1e-4)
    pull = Lasso().pull(solution, view)
    np.testing.assert_allclose(pull[theirs.coef_ != 0], 1.0, atol=1e-5)
    assert pull.max() < 1 + 1e-5
    rest = (y - X @ solution.weights - solution.intercept) / deviation
    assert solution.objective == pytest.approx(np.abs(solution.weights).sum() / deviation + C * weights @ rest**2)


def test_the_first_feature_enters_the_lasso_where_it_says():
    X, y = linear_table(50, 20)
    view, cost = columns_of(X), np.ones(50)
    first = Lasso().first(view, y, cost)
    below, above = Lasso().solve_path(view, y, cost, np.array([0.999 * first, 1.01 * first]))
    assert np.count_nonzero(below.weights) == 0
    assert np.count_nonzero(above.weights) == 1
    assert Lasso().first(view, np.ones(50), cost) == np.inf


@pytest.mark.parametrize("outcome", ["classes", "numbers", "survival"])
@pytest.mark.parametrize("name", recipes.RECIPES)
def test_recipes_take_the_outcomes_that_they_name(name, outcome):
    """Their parts agree, and a study refuses the others by name."""
    recipe = recipes.entry(name)
    if outcome in recipe.outcomes:
        recipes.refuse_outcome(recipe, outcome)
        selector = recipe.function(outcome=outcome)
        for view in getattr(selector, "views", None) or [selector]:
            view.check()
        return
    with pytest.raises(InputError, match=f"takes .*, and the outcome is {outcome}: the methods for it are"):
        recipes.refuse_outcome(recipe, outcome)
    X, y = linear_table(40, 6)
    kinds = {"classes": y > 0, "numbers": y, "survival": np.column_stack([np.exp(y), np.arange(40) % 3 > 0])}
    with pytest.raises(InputError):
        recipe.function(outcome=outcome, n_features_to_select=2, random_state=0).fit(X, kinds[outcome])


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (LSSVM(C=-1.0), "C is -1.0"),
        (Lasso(C=0.0), "C is 0.0"),
        (Lasso(max_iter=0), "max_iter is 0"),
        (KernelRidge(penalty="loo"), "it must be 'leave-one-out' or a positive number"),
        (KernelRidge(penalty=-1.0), "positive number"),
        (SVR(epsilon=-0.1), "epsilon is -0.1"),
        (SVR(C=0.0), "C is 0.0"),
    ],
)
def test_machines_refuse_parameters_without_sense(machine, message):
    with pytest.raises(InputError, match=message):
        machine.check()


# -- filters ----------------------------------------------------------------------------------------------------------


def scores_of(criterion, X, y, kinds=None, weight=None):
    kinds = ("real",) * X.shape[1] if kinds is None else kinds
    table = Table(np.asfortranarray(X), kinds, tuple(f"x{j}" for j in range(X.shape[1])))
    return criterion(table, np.atleast_2d(y), np.ones(len(X)) if weight is None else weight)


def test_the_f_test_equals_scikit_learn_and_analysis_of_variance():
    X, y = linear_table(60, 5)
    X[:, 4] = np.random.default_rng(1).integers(0, 3, 60)
    kinds = ("real", "real", "real", "real", "nominal")
    value = scores_of(FTest(), X, y, kinds)
    np.testing.assert_allclose(10.0 ** -value[:4], f_regression(X[:, :4], y)[1], rtol=1e-8)
    by_level = [y[X[:, 4] == level] for level in range(3)]
    np.testing.assert_allclose(10.0 ** -value[4], stats.f_oneway(*by_level).pvalue, rtol=1e-8)
    labels = np.where(y > 0, 1.0, -1.0)
    welch_of_equal_variances = stats.ttest_ind(X[labels > 0, 0], X[labels < 0, 0]).pvalue
    np.testing.assert_allclose(10.0 ** -scores_of(FTest(), X, labels)[0], welch_of_equal_variances, rtol=1e-8)


def test_correlation_is_pearsons():
    X, y = linear_table(40, 6)
    X[5, 1] = np.nan
    seen = ~np.isnan(X[:, 1])
    value = scores_of(Correlation(), X, y)
    expected = [abs(stats.pearsonr(X[:, j], y)[0]) for j in (0, 2, 3, 4, 5)]
    np.testing.assert_allclose(value[[0, 2, 3, 4, 5]], expected, atol=1e-12)
    assert value[1] == pytest.approx(abs(stats.pearsonr(X[seen, 1], y[seen])[0]))


def test_symmetrical_uncertainty_with_numbers_is_that_of_their_levels():
    X, y = linear_table(100, 4)
    bins = [np.searchsorted(np.quantile(v, [0.2, 0.4, 0.6, 0.8]), v) for v in (*X.T, y)]
    *columns, target = bins

    def entropy(*codes):
        counts = np.unique(np.stack(codes), axis=1, return_counts=True)[1]
        return stats.entropy(counts, base=2)

    expected = [
        2 * (entropy(c) + entropy(target) - entropy(c, target)) / (entropy(c) + entropy(target)) for c in columns
    ]
    np.testing.assert_allclose(scores_of(SymmetricalUncertainty(), X, y), expected, atol=1e-9)


def test_rrelieff_is_its_definition():
    """Neighbours, pairs and sums written out, with a category and missing cells."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X[:, 3] = rng.integers(0, 3, 30)
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=30)
    kinds, k = ("real", "real", "real", "nominal"), 5
    spread = X[:, :3].std(axis=0)
    scaled = X.copy()
    scaled[:, :3] = (X[:, :3] - X[:, :3].min(axis=0)) / np.ptp(X[:, :3], axis=0)
    d = np.abs(scaled[:, None, :] - scaled[None, :, :])
    d[..., 3] = d[..., 3] > 0
    near = np.argsort(d.sum(axis=2) + 1e9 * np.eye(30), axis=1)[:, :k]
    counted = d.copy()
    counted[..., :3] = np.where(d[..., :3] > spread / np.ptp(X[:, :3], axis=0), 1.0, d[..., :3])
    expected = []
    for j in range(4):
        far_and_other = far_and_alike = other = alike = 0.0
        for i in range(30):
            for o in near[i]:
                apart = abs(y[i] - y[o]) / np.ptp(y)
                other, alike = other + apart, alike + 1 - apart
                far_and_other += apart * counted[i, o, j]
                far_and_alike += (1 - apart) * counted[i, o, j]
        expected.append(far_and_other / other - far_and_alike / alike)
    np.testing.assert_allclose(scores_of(RReliefF(n_neighbors=k), X, y, kinds), expected, atol=1e-10)


@pytest.mark.parametrize("criterion", [Correlation(), FTest(), RReliefF(n_neighbors=4), SymmetricalUncertainty()])
def test_a_weight_of_two_is_a_row_twice_in_every_filter_of_numbers(criterion):
    X, y = linear_table(40, 5)
    X = np.round(X, 2)
    times = np.random.default_rng(4).choice([1, 2], 40)
    rows = np.repeat(np.arange(40), times)
    heavy = scores_of(criterion, X, y, weight=times.astype(float))
    np.testing.assert_allclose(heavy, scores_of(criterion, X[rows], y[rows]), atol=1e-10)


# -- scores -----------------------------------------------------------------------------------------------------------


def test_scores_equal_scikit_learn_in_one_fold():
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=50), rng.normal(size=50)
    p += y
    value = {name: score.value for name, score in linearise_errors(y, p, None).items()}
    assert value["r2"] == pytest.approx(metrics.r2_score(y, p))
    assert value["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, p))
    assert value["mae"] == pytest.approx(metrics.mean_absolute_error(y, p))
    assert value["rank_correlation"] == pytest.approx(stats.spearmanr(y, p)[0])


def test_r2_of_the_training_means_is_zero():
    """A model that knows no column predicts the mean of the other folds; within its folds no rank is right or wrong."""
    y = np.random.default_rng(0).normal(size=30)
    fold = np.arange(30) % 5
    means = np.array([y[fold != k].mean() for k in range(5)])[fold]
    scores = linearise_errors(y, means, fold)
    assert scores["r2"].value == pytest.approx(0.0, abs=1e-12)
    assert scores["rank_correlation"].value == 0.0


@pytest.mark.parametrize("name", ["r2", "rmse", "mae", "rank_correlation"])
def test_influences_are_those_of_the_jackknife(name):
    """Leaving a row out changes a score by about its influence: their variances agree, and they correlate."""
    rng = np.random.default_rng(1)
    m = 200
    y = rng.normal(size=m)
    p = 0.7 * y + rng.normal(size=m)
    score = linearise_errors(y, p, None)[name]
    left = np.array([linearise_errors(np.delete(y, i), np.delete(p, i), None)[name].value for i in range(m)])
    jackknife = (m - 1) * (score.value - left) / m
    assert abs(score.influence.sum()) < 1e-10
    assert np.corrcoef(score.influence, jackknife)[0, 1] > 0.99
    assert (score.influence**2).sum() == pytest.approx((jackknife**2).sum(), rel=0.1)


def test_spearman_of_ties_and_constants():
    x, y = np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0, 2.0])
    assert spearman(x, y)[0] == pytest.approx(stats.spearmanr(x, y)[0])
    assert spearman(np.ones(5), np.arange(5.0))[0] == 0.0


@pytest.mark.parametrize("scale", ["size", "complement", "correlation"])
def test_intervals_on_their_scales_are_those_of_small_errors(scale):
    """For small errors every scale is the plain one; the ends stay where the score can be."""
    low, high = interval_ends(scale, 0.4, (1e-5, 2e-5), 50, 0.95)
    t = stats.t.ppf(0.975, 49)
    assert low == pytest.approx(0.4 - 1e-5 * t, abs=1e-8)
    assert high == pytest.approx(0.4 + 2e-5 * t, abs=1e-8)
    low, high = interval_ends(scale, 0.4, (5.0, 5.0), 50, 0.95)
    assert low >= {"size": 0.0, "correlation": -1.0}.get(scale, -np.inf)
    assert high <= {"size": np.inf}.get(scale, 1.0)


def test_inner_folds_pool_the_squared_errors():
    y = np.random.default_rng(0).normal(3.0, 2.0, size=20)
    target = NumberTarget(np.ones(20), None, y).settle(Numbers())
    p = y + np.random.default_rng(1).normal(size=20)
    parts = np.array_split(np.arange(20), 4)
    folds = [target.take(rows).score_values(p[rows][None, :, None])[0] for rows in parts]
    assert np.mean(folds) == pytest.approx(metrics.r2_score(y, p))


def test_prediction_intervals_hold_their_share_of_new_rows():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        errors = rng.exponential(size=60)
        low, high = error_interval(errors, np.ones(60), 60)
        new = rng.exponential(size=50)
        inside.append(np.mean((new >= low) & (new <= high)))
    assert 0.89 < np.mean(inside) < 0.915


def test_views_are_weighed_by_least_squares():
    """Of two views the share has a closed form; a view that adds nothing has none."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    target = NumberTarget(np.ones(50), None, y)
    first, second = y + rng.normal(size=50), y + 2.0 * rng.normal(size=50)
    gap = first - second
    share = np.clip((y - second) @ gap / (gap @ gap), 0.0, 1.0)
    views = [first[:, None], second[:, None]]
    middle, unit = target.scales(views, np.arange(50), np.ones(50))
    mean = np.mean([(value - m) / u for value, m, u in zip(views, middle, unit, strict=True)], axis=0)
    np.testing.assert_allclose(mean[:, 0], share * first + (1 - share) * second, atol=1e-6)
    worse = [y[:, None] + 0.1, y[:, None] + 5.0]
    middle, unit = target.scales(worse, np.arange(50), np.ones(50))
    assert 1.0 / (2 * unit[1, 0]) < 1e-6


# -- estimators -------------------------------------------------------------------------------------------------------

ESTIMATORS = {
    "ridge": partial(SVMSelector, machine="kernel_ridge", outcome="numbers"),
    "svr": partial(SVMSelector, machine="svr", outcome="numbers"),
    "two_views": partial(recipes.two_views, outcome="numbers"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learns_checks_of_regressors(name):
    results = check_estimator(ESTIMATORS[name](), on_fail=None, on_skip=None)
    failed = [(each["check_name"], each["exception"]) for each in results if each["status"] == "failed"]
    assert failed == []


def test_a_selector_is_what_its_outcome_says():
    selector = ESTIMATORS["ridge"]()
    assert is_regressor(selector)
    assert not is_classifier(selector)
    assert not hasattr(selector, "decision_function")
    assert is_classifier(SVMSelector())
    X, y = linear_table()
    fitted = selector.set_params(n_features_to_select=3, random_state=0).fit(X, y)
    assert set(np.flatnonzero(fitted.support_)) == {0, 1, 2}
    assert fitted.score(X, y) == pytest.approx(metrics.r2_score(y, fitted.predict(X)))
    np.testing.assert_allclose(X @ fitted.coef_[0] + fitted.intercept_[0], fitted.predict(X))
    assert cross_val_score(fitted, X, y, cv=3).mean() > 0.5


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_for_numbers_predict_and_their_files_do_too(name, tmp_path):
    X, y = linear_table(60, 12)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    selector = recipes.get(name)(outcome="numbers", probability=True, random_state=0, cv=3).fit(frame, y)
    assert selector.score(frame, y) > 0.3
    again = load(save(selector, tmp_path / "m.marginsieve"))
    np.testing.assert_array_equal(again.predict(frame), selector.predict(frame))
    assert again.interval_ == selector.interval_
    table = predict(again, frame).table
    assert list(table.columns) == ["predicted", "low", "high", "far"]
    assert np.all((table["low"] <= table["high"]).to_numpy())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(40, 2.0), "is 2 in every row"),
        (["a", "b"] * 20, "holds 'a'"),
        (np.r_[np.nan, np.arange(39)], "NaN"),
        (np.r_[np.inf, np.arange(39)], "infinity"),
        (np.ma.masked_array(np.arange(40.0), mask=[True] + [False] * 39), "masked"),
        (np.arange(40) * 1j, "Complex"),
    ],
)
def test_what_is_no_number_is_refused(y, message):
    with pytest.raises(InputError, match=message):
        ESTIMATORS["ridge"]().fit(linear_table(40, 3)[0], y)


def test_machines_of_classes_are_refused_for_numbers():
    X, y = linear_table(40, 5)
    with pytest.raises(InputError, match="CSVC works on signs and numbers are values: use machine='kernel_ridge'"):
        SVMSelector(outcome="numbers").fit(X, y)


def test_a_scale_and_a_shift_of_the_numbers_change_nothing_else():
    X, y = linear_table(50, 10)
    plain = recipes.two_views(outcome="numbers", random_state=0).fit(X, y)
    moved = recipes.two_views(outcome="numbers", random_state=0).fit(X, 1000.0 * y - 7.0)
    np.testing.assert_array_equal(moved.support_, plain.support_)
    np.testing.assert_allclose(moved.predict(X), 1000.0 * plain.predict(X) - 7.0, rtol=1e-6)


def test_rows_of_a_group_stay_together_and_weights_of_zero_take_no_part():
    X, y = linear_table(40, 6)
    X, y, groups = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(40), 2)
    target = Numbers().read(X, y, groups=groups)
    for train, test in target.folds(4, 0):
        assert not set(groups[train]) & set(groups[test])
    weight = np.where(np.arange(80) < 60, 1.0, 0.0)
    some = ESTIMATORS["ridge"](n_features_to_select=3, random_state=0).fit(X, y, sample_weight=weight)
    only = ESTIMATORS["ridge"](n_features_to_select=3, random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(some.predict(X), only.predict(X))


def test_nested_scores_of_noise_are_at_or_below_zero():
    """The mean over tables: one of 60 rows may be far from it."""
    X, _ = linear_table(60, 40)
    tables = np.random.default_rng(9).normal(size=(8, 60))
    recipe = recipes.fisher(outcome="numbers", n_features_to_select=5)
    scores = [nested_cv(recipe, X, y, cv=5, n_repeats=1).scores() for y in tables]
    assert np.mean([each.value["r2"] for each in scores]) < 0.0
    assert abs(np.mean([each.value["rank_correlation"] for each in scores])) < 0.15
    assert all(each.low["r2"] < each.value["r2"] < each.high["r2"] for each in scores)


def test_nested_r2_is_pooled_around_the_training_means():
    X, y = linear_table(50, 8)
    nested = nested_cv(recipes.fisher(outcome="numbers", n_features_to_select=3), X, y, cv=5, n_repeats=1)
    (one,) = nested.passes
    means = np.array([y[one.fold != k].mean() for k in range(5)])[one.fold]
    expected = 1 - ((y - one.predicted) ** 2).sum() / ((y - means) ** 2).sum()
    assert nested.scores().value["r2"] == pytest.approx(expected)


def test_leave_one_out_of_a_fixed_penalty_is_that_of_scikit_learn():
    X, y = linear_table(30, 5)
    K = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T
    share = SHARES[6]
    penalty = share * np.trace(K)
    ours = np.array([solve_without(X @ X.T, y, penalty, i) for i in range(30)])

    def fit_one(train, test):
        centre, mean = X[train].mean(axis=0), y[train].mean()
        inner = (X[train] - centre) @ (X[train] - centre).T
        model = kernel_ridge.KernelRidge(alpha=penalty, kernel="precomputed").fit(inner, y[train] - mean)
        return model.predict((X[test] - centre) @ (X[train] - centre).T)[0] + mean

    theirs = np.array([fit_one(train, test) for train, test in LeaveOneOut().split(X)])
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


# -- studies ----------------------------------------------------------------------------------------------------------

QUICK = {"cv": 3, "n_repeats": 1, "methods": "two-views"}


@pytest.fixture(scope="module")
def studied():
    X, y = linear_table(60, 20)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(20)])
    frame["c20"] = frame["c0"] + 0.01 * np.random.default_rng(1).normal(size=60)
    y = pd.Series(y, name="level")
    y.iloc[7] += 12.0
    return frame, y, marginsieve.study(frame, y, **QUICK)


def test_a_study_takes_numbers_for_what_they_are_and_says_so(studied):
    _, _, study = studied
    result = study.result
    assert result["options"]["outcome"] == "numbers"
    assert result["main_score"] == "r2"
    assert any(finding["code"] == "MS124" for finding in result["findings"])
    assert "R2 0." in result["answer"]["headline"]
    assert result["analyses"]["evidence"]["strength"] != "none"
    assert result["protocol"]["left_out"]["suspects"] == "it is for classes, not for numbers"
    titles = [row["title"] for row in result["analyses"]["references"]["compared"]]
    assert titles == ["ridge regression", "lasso", "random forest"]


def test_the_page_of_numbers_shows_predicted_against_observed(studied):
    _, y, study = studied
    page = study.html()
    assert "Predicted against observed" in page
    assert len(study.result["curves"]["main"]["agreement"]["observed"]) == len(y)
    shown = re.sub(r'class="[^"]*"|<style>.*?</style>|<script>.*?</script>|<pre.*?</pre>', "", page, flags=re.S)
    assert "AUC" not in shown
    assert "by class" not in shown
    assert "lowest third" in shown


def test_an_impossible_number_is_not_explained(studied):
    _, y, study = studied
    known = study.result["analyses"]["unexplained"]
    assert known["rows"][0]["row"] == 8
    assert known["rows"][0]["observed"] == y.iloc[7]


def test_effects_are_correlations(studied):
    frame, y, study = studied
    first = next(feature for feature in study.result["features"] if feature["name"] in ("c0", "c20"))
    assert first["effect"]["name"] == "Pearson's r"
    assert first["effect"]["value"] == pytest.approx(stats.pearsonr(frame[first["name"]], y)[0])
    assert first["direction"] == "rises with the outcome"


def test_lists_are_compared_by_ridge_regression_and_r2(studied):
    _, _, study = studied
    assert study.run.choice.facts.shape.list_score == "r2"
    rows, columns = study.run.table.rows, np.array([0, 1, 2])
    entry = predict_on(rows, columns, rows, np.arange(60))
    Z = np.asarray(rows.table.Z)[:, columns]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    solution = KernelRidge().solve(gram_of(Linear(), Z), rows.target.values, np.ones(60))
    np.testing.assert_allclose(entry["predicted"], Z @ Z.T @ solution.coef + solution.intercept, atol=1e-6)
    nothing = rows.target.constant_entry(entry)
    assert metrics.r2_score(rows.target.values, nothing["predicted"]) == pytest.approx(0.0, abs=1e-12)


def test_a_shared_page_has_no_single_rows(studied):
    _, _, study = studied
    shared = without_rows(study.result)
    assert "agreement" not in shared["curves"]["main"]
    assert "unexplained" not in shared["analyses"]
    marginsieve.report.render(shared)


def test_numbers_may_be_classes_if_somebody_says_so():
    X, y = linear_table(60, 5)
    codes = np.digitize(y, [-2, 0, 2])
    assert marginsieve.study(X, codes, methods="fisher", cv=3, n_repeats=1).result["main_score"] == "balanced_accuracy"
    with pytest.raises(InputError, match="amounts rather than classes"):
        marginsieve.study(X, np.arange(60), outcome="classes")


def test_numbers_over_orders_of_magnitude_are_noticed():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=500)
    assert is_skewed(np.exp(1.5 * normal))
    assert not is_skewed(normal)  # below 0
    assert not is_skewed(normal - normal.min() + 1.0)
    assert not is_skewed(np.exp(0.1 * normal))
    doubt = UnexplainedRows().doubt(
        {"analyses": {"unexplained": {"skewed": True}}, "table": {"numbers": {"mean": 9.0, "median": 1.0}}}
    )
    assert doubt.code == "MS125"


def test_methods_are_described_for_the_outcome(studied):
    """No word of what only classes have."""
    result, page = studied[2].result, studied[2].html()
    main, every = result["methods"][0], result["methods"][-1]
    assert main["does"] == recipes.entry(main["name"]).does_for["numbers"]
    assert every["does"] == "All features with the same kind of machine."
    assert "threshold" not in result["methods_text"]
    assert "stratified" not in result["methods_text"] + result["protocol"]["outer"]
    assert "threshold" not in re.sub(r"<[^>]+>", " ", page[page.index("<body") : page.index("BibTeX")])


def test_scaled_errors_are_robust():
    errors = np.r_[np.random.default_rng(0).normal(size=200), 50.0]
    scaled = scale_errors(errors)
    assert abs(np.median(np.abs(scaled)) - stats.norm.ppf(0.75)) < 0.05
    assert scaled[-1] > 40
    assert (scale_errors(np.ones(5)) == 0).all()


def test_predictions_of_any_regressor_are_scored():
    X, y = linear_table(60, 5)
    values = cross_val_predict(svm.SVR(kernel="linear"), X, y, cv=4)
    target = Numbers().read(X, y)
    assert target.scores(Pass(values))["r2"].value == pytest.approx(metrics.r2_score(y, values))


# -- suites -----------------------------------------------------------------------------------------------------------


def sum_up(outcome, y, value, mean):
    """Squared errors of a fold, about the prediction and about the training mean; or concordant pairs and all pairs."""
    if outcome == "numbers":
        return np.sum((y - value) ** 2), np.sum((y - mean) ** 2)
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i, 1] == 1 and y[i, 0] < y[j, 0]]
    return sum((value[i] > value[j]) + 0.5 * (value[i] == value[j]) for i, j in pairs), len(pairs)


@pytest.mark.parametrize("outcome", ["numbers", "survival"])
def test_a_suite_of_another_outcome_is_scored_by_its_definition(outcome, tmp_path):
    cohort = make_cohort(60, 12, n_relevant=3, effect=0.8, outcome=outcome, random_state=2)
    cohort.frame().to_csv(tmp_path / "t.csv", index=False)
    columns = {"target": "outcome"} if outcome == "numbers" else {"target": "event", "time": "time"}
    spec = {
        "outcome": outcome,
        "protocol": {"name": "nested", "folds": 3, "repeats": 2},
        "data": [
            {"name": "file", "file": str(tmp_path / "t.csv"), **columns},
            {"name": "noise", "shuffle": 1, "cohort": {"n_samples": 40, "n_features": 12, "n_relevant": 0}},
        ],
        "method": [{"name": "fisher", "n_features_to_select": 3}, {"name": "svm-rfe", "n_features_to_select": 3}],
    }
    suite = Suite.read(spec)
    result = run_suite(suite, tmp_path / "suite")
    metric = result.main_metric()
    assert metric == {"numbers": "r2", "survival": "c"}[outcome]
    assert len(result.failures()) == 0
    scores = result.scores().set_index(["data", "method"])[metric]
    passes = {0: [], 1: []}
    for split in suite.protocol.splits(suite.tables()[0].target, 0):
        model = recipes.fisher(outcome=outcome, n_features_to_select=3)
        y = cohort.y.to_numpy()
        risk = model.fit(cohort.X.iloc[split.train], y[split.train]).predict(cohort.X.iloc[split.test])
        passes[split.repeat].append(sum_up(outcome, y[split.test], risk, y[split.train].mean()))
    expected = np.mean([part / whole for part, whole in (np.sum(each, axis=0) for each in passes.values())])
    assert scores["file", "fisher"] == pytest.approx(1 - expected if outcome == "numbers" else expected, abs=1e-3)
    assert scores["noise~0", "fisher"] < scores["file", "fisher"]
    assert set(result.compare().methods) == {"fisher", "svm-rfe"}
    assert result.scores("rmse" if outcome == "numbers" else "uno_c").iloc[:, 3].notna().all()
    with pytest.raises(InputError, match="metric is 'auc'"):
        result.scores("auc")


def test_a_suite_refuses_methods_of_other_outcomes():
    data = [{"name": "toy", "cohort": {}}]
    with pytest.raises(InputError, match="the method 'l1-cssvm' takes classes, and the outcome is numbers"):
        Suite.read({"outcome": "numbers", "data": data, "method": [{"name": "l1-cssvm"}]})
    with pytest.raises(InputError, match="outcome is 'counts'"):
        Suite.read({"outcome": "counts", "data": data, "method": [{"name": "fisher"}]})


@pytest.mark.parametrize("name", ["numbers", "survival"])
def test_the_suites_of_other_outcomes_can_be_read(name):
    suite = Suite.read(Path(__file__).parents[1] / "benchmarks" / "suites" / f"{name}.toml")
    assert suite.outcome == name
    assert {len(table.target) for table in suite.tables()} <= {60, 100, 150, 200}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive": 1.0}, "positive is 1.0, and the outcome is numbers: it is for classes"),
        ({"sensitivity": 0.9}, "sensitivity is 0.9"),
        ({"next_cohort": ("30+50",)}, "next_cohort is"),
        ({"horizon": 3.0}, "horizon is 3.0"),
        ({"methods": "l1-cssvm"}, "the method 'l1-cssvm' takes classes, and the outcome is numbers"),
    ],
)
def test_what_is_about_other_outcomes_is_refused_by_name(options, message):
    X, y = linear_table(40, 6)
    with pytest.raises(InputError, match=re.escape(message)):
        marginsieve.study(X, y, outcome="numbers", **{**QUICK, **options})


@pytest.mark.filterwarnings("ignore:::distributed", "ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.long
@pytest.mark.parametrize("outcome", ["numbers", "survival"])
def test_a_cluster_gives_the_same_result(outcome, tmp_path):
    distributed = pytest.importorskip("dask.distributed", reason="dask is not installed")
    spec = {
        "outcome": outcome,
        "protocol": {"name": "nested", "folds": 3, "repeats": 1},
        "data": [{"name": "a", "cohort": {"n_samples": 60, "n_features": 20, "n_relevant": 3}}],
        "method": [{"name": "fisher"}, {"name": "clinical-rfe"}],
    }
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        there = run_suite(Suite.read(spec), tmp_path / "there", cluster=cluster.scheduler_address)
    pd.testing.assert_frame_equal(there.scores(), run_suite(Suite.read(spec), tmp_path / "here").scores())
