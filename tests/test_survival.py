"""Times to an event: proportional hazards and scores against references and definitions, estimators, studies, files."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracles import gram_of
from scipy import optimize, special, stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import marginsieve
from marginsieve import SVMSelector, load, nested_cv, predict, recipes, save
from marginsieve.criteria import CoxScore
from marginsieve.data.table import Schema, Table
from marginsieve.engine import Pass, score_predictions
from marginsieve.engine.scoring import interval_ends
from marginsieve.errors import InputError
from marginsieve.fitting.rows import Rows
from marginsieve.fitting.site_tests import judge_sites
from marginsieve.kernels import Clinical, Gaussian, Linear
from marginsieve.machines import CoxRidge, KernelRidge, MartingaleRidge, RankingSVM
from marginsieve.outcomes import Survival, SurvivalDecision, SurvivalTarget
from marginsieve.outcomes.survival_scores import (
    brier_at,
    calibration_at,
    censoring_survival,
    concordance,
    draw_calibration,
    draw_thirds,
    horizon_auc,
    kaplan_meier,
    pooled_concordance,
    survival_at,
    unos_concordance,
)
from marginsieve.solvers.comparable_pairs import ComparablePairs, fit_pairs
from marginsieve.solvers.cox import BaselineHazard, RiskSets, fit_cox
from marginsieve.studies.aggregate import without_rows
from marginsieve.studies.analyses.references import OnTimes, cox_lasso_path
from marginsieve.studies.analyses.unexplained_rows import judge_times
from marginsieve.studies.target_column import read_survival

RECIPES = ("clinical_rfe", "two_views", "svm_rfe", "fisher")


def survival_table(m=80, n=12, seed=0, ties=False):
    """Two columns that count, a third of the rows censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    t = rng.exponential(np.exp(-1.5 * X[:, 0] - X[:, min(1, n - 1)]))
    c = rng.exponential(1.5, size=m)
    time = np.minimum(t, c)
    return X, np.ceil(4 * time) if ties else time, t <= c


def partial_likelihood(eta, time, event):
    """By its definition (Breslow)."""
    return sum(eta[i] - np.log(np.exp(eta[time >= time[i]]).sum()) for i in np.flatnonzero(event))


def structured(time, event):
    return np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])


# -- proportional hazards ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
def test_the_partial_likelihood_and_its_derivatives_are_those_of_the_definition(ties):
    X, time, event = survival_table(40, 3, ties=ties)
    sets, w = RiskSets(time, event, np.ones(40)), np.array([0.3, -0.2, 0.1])
    known = sets.risk(X @ w)
    assert known.likelihood == pytest.approx(partial_likelihood(X @ w, time, event))
    slope = optimize.approx_fprime(w, lambda v: partial_likelihood(X @ v, time, event), 1e-6)
    np.testing.assert_allclose(X.T @ sets.martingale(X @ w), slope, atol=1e-4)
    bend = [optimize.approx_fprime(w, lambda v, j=j: (X.T @ sets.martingale(X @ v))[j], 1e-6) for j in range(3)]
    np.testing.assert_allclose(sets.information(X, known), -np.array(bend), atol=1e-3)


@pytest.mark.parametrize("ties", [False, True])
def test_the_fit_is_the_maximum_of_the_penalised_likelihood(ties):
    X, time, event = survival_table(60, 4, ties=ties)
    best = fit_cox(X, RiskSets(time, event, np.ones(60)), 0.2)

    def loss(w):
        return -partial_likelihood(X @ w, time, event) / event.sum() + 0.1 * w @ w

    slow = optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(best.weights, slow.x, atol=1e-5)
    assert best.objective == pytest.approx(-slow.fun, abs=1e-9)
    assert best.slope < 1e-9


def test_a_weight_of_two_is_a_row_twice_in_proportional_hazards():
    X, time, event = survival_table(50, 3, ties=True)
    times = np.random.default_rng(1).choice([1, 2, 3], 50)
    rows = np.repeat(np.arange(50), times)
    heavy = fit_cox(X, RiskSets(time, event, times.astype(float)), 0.1)
    long = fit_cox(X[rows], RiskSets(time[rows], event[rows], np.ones(len(rows))), 0.1)
    np.testing.assert_allclose(heavy.weights, long.weights, atol=1e-8)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(), Clinical()], ids=lambda kernel: type(kernel).__name__)
def test_coefficients_on_a_kernel_are_martingale_residuals(kernel):
    """c = (event - exp(f) H) / (penalty * length * events), and the residuals of the whole sum to 0."""
    X, time, event = survival_table(50, 6)
    gram, y = gram_of(kernel, X), SurvivalTarget(np.ones(50), None, time, event).machine_target.y[0]
    K = gram.matrix()
    solution = CoxRidge(penalty=0.3).solve(gram, y, np.ones(50))
    f = K @ solution.coef + solution.intercept
    length = np.trace(K - K.mean(axis=0)[None] - K.mean(axis=1)[:, None] + K.mean()) / 50
    residuals = RiskSets(time, event, np.ones(50)).martingale(f)
    np.testing.assert_allclose(solution.coef, residuals / (0.3 * length * event.sum()), atol=1e-7)
    assert solution.converged
    assert abs(f.mean()) < 1e-9


def test_the_linear_kernel_gives_the_fit_of_the_columns():
    X, time, event = survival_table(60, 4)
    y = SurvivalTarget(np.ones(60), None, time, event).machine_target.y[0]
    solution = CoxRidge(penalty=0.1).solve(gram_of(Linear(), X), y, np.ones(60))
    length = ((X - X.mean(axis=0)) ** 2).sum() / 60
    direct = fit_cox(X - X.mean(axis=0), RiskSets(time, event, np.ones(60)), 0.1 * length)
    np.testing.assert_allclose(X.T @ solution.coef, direct.weights, atol=1e-7)


def test_rows_without_weight_take_no_part():
    X, time, event = survival_table(60, 4)
    y = SurvivalTarget(np.ones(60), None, time, event).machine_target.y[0]
    weight = np.where(np.arange(60) < 45, 1.0, 0.0)
    whole = CoxRidge(0.1).solve(gram_of(Linear(), X), y, weight)
    some = CoxRidge(0.1).solve(gram_of(Linear(), X[:45]), y[:45], np.ones(45))
    np.testing.assert_allclose(whole.coef[:45], some.coef, atol=1e-9)
    assert (whole.coef[45:] == 0).all()


def test_ridge_on_residuals_is_ridge_regression_on_them():
    X, time, event = survival_table(50, 6, ties=True)
    target, gram = SurvivalTarget(np.ones(50), None, time, event), gram_of(Linear(), X)
    ours = MartingaleRidge(0.1).solve(gram, target.machine_target.y[0], np.ones(50))
    theirs = KernelRidge(0.1).solve(gram, target.residuals, np.ones(50))
    np.testing.assert_allclose(ours.coef, theirs.coef, atol=1e-12)


@pytest.mark.parametrize("machine", [CoxRidge(penalty=1e-6), RankingSVM(1e-6)])
def test_extreme_separation_still_ends(machine):
    """One column orders all events: the likelihood has no maximum without a penalty."""
    time = np.arange(1.0, 41.0)
    gram = gram_of(Linear(), -time[:, None])
    y = SurvivalTarget(np.ones(40), None, time, np.ones(40, dtype=bool)).machine_target.y[0]
    solution = machine.solve(gram, y, np.ones(40))
    assert np.isfinite(solution.coef).all()
    assert (np.diff(gram.matrix() @ solution.coef) < 0).all()


# -- the support vector machine that ranks ----------------------------------------------------------------------------


def all_pairs(time, event, weight):
    """(m, m) the weight of each pair: row i had the event and j is known to have lived longer."""
    later = (time[:, None] < time[None]) | ((time[:, None] == time[None]) & ~event[None])
    return (event[:, None] & later) * weight[:, None] * weight[None]


def pair_loss(eta, pairs):
    """By its definition, over all pairs."""
    return 0.5 * (pairs * np.maximum(1.0 - eta[:, None] + eta[None], 0.0) ** 2).sum() / pairs.sum()


@pytest.mark.parametrize("ties", [False, True])
def test_sums_over_pairs_are_those_over_all_of_them(ties):
    X, time, event = survival_table(60, 4, ties=ties)
    rng = np.random.default_rng(1)
    weight, eta = rng.integers(0, 4, 60).astype(float), rng.normal(size=60)
    eta = np.round(eta) if ties else eta  # values apart by 1 exactly, and equal ones
    ours, brute = ComparablePairs(time, event, weight), all_pairs(time, event, weight)
    assert ours.total == brute.sum() > 0
    assert ours.loss(eta) == pytest.approx(pair_loss(eta, brute), rel=1e-12)
    slope = optimize.approx_fprime(eta, lambda value: pair_loss(value, brute), 1e-7)
    np.testing.assert_allclose(ours.slope(eta), slope, atol=1e-6)
    active = brute * (1.0 - eta[:, None] + eta[None] > 0)
    bend = np.diag(active.sum(axis=0) + active.sum(axis=1)) - active - active.T
    np.testing.assert_allclose(ours.curvature(eta, X), X.T @ bend @ X / brute.sum(), atol=1e-12)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(), Clinical()], ids=lambda kernel: type(kernel).__name__)
def test_the_ranking_machine_minimises_its_objective_on_a_kernel(kernel):
    """And its coefficients are minus the slope of the loss over the penalty, which sum to 0."""
    X, time, event = survival_table(40, 6, ties=True)
    gram, y = gram_of(kernel, X), SurvivalTarget(np.ones(40), None, time, event).machine_target.y[0]
    K, pairs = gram.matrix(), all_pairs(time, event, np.ones(40))
    solution = RankingSVM(0.2).solve(gram, y, np.ones(40))
    penalty = 0.2 * np.trace(K - K.mean(axis=0)[None] - K.mean(axis=1)[:, None] + K.mean()) / 40

    def objective(c):
        return pair_loss(K @ c, pairs) + 0.5 * penalty * c @ K @ c

    f = K @ solution.coef
    slope = optimize.approx_fprime(f, lambda value: pair_loss(value, pairs), 1e-7)
    np.testing.assert_allclose(solution.coef, -slope / penalty, atol=1e-5 / penalty)
    assert abs(solution.coef.sum()) < 1e-10
    assert solution.converged
    assert solution.objective == pytest.approx(objective(solution.coef))
    rng = np.random.default_rng(0)
    assert all(objective(solution.coef + 0.01 * rng.normal(size=40)) > solution.objective for _ in range(20))


def test_a_weight_of_two_is_a_row_twice_to_the_ranking_machine():
    """A row and its copy are no pair, whose times are equal."""
    X, time, event = survival_table(40, 3)
    times = np.random.default_rng(1).choice([1, 2, 3], 40)
    rows = np.repeat(np.arange(40), times)
    heavy = fit_pairs(X, ComparablePairs(time, event, times.astype(float)), 0.1)
    long = fit_pairs(X[rows], ComparablePairs(time[rows], event[rows], np.ones(len(rows))), 0.1)
    np.testing.assert_allclose(heavy.weights, long.weights, atol=1e-9)


def test_the_ranking_machine_takes_memory_by_rows_not_by_pairs():
    X, time, event = survival_table(6000, 3)
    tracemalloc.start()
    best = fit_pairs(X, ComparablePairs(time, event, np.ones(6000)), 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert best.residual < 1e-9
    assert peak < 6000**2  # bytes: an eighth of a matrix of pairs


def test_the_objective_is_that_of_scikit_survivals_machine():
    """FastSurvivalSVM minimises |w|^2 / 2 + alpha / 2 * sum over pairs; without equal times the pairs are the same."""
    sksurv = pytest.importorskip("sksurv.svm")
    X, time, event = survival_table(60, 4)
    pairs = ComparablePairs(time, event, np.ones(60))
    ours = fit_pairs(X, pairs, 0.1)
    theirs = sksurv.FastSurvivalSVM(alpha=1 / (0.1 * pairs.total), rank_ratio=1.0, tol=1e-10, max_iter=1000)
    risk = theirs.fit(X, structured(time, event)).predict(X)
    w = np.linalg.lstsq(X - X.mean(axis=0), risk - risk.mean(), rcond=None)[0]
    assert pair_loss(X @ w, all_pairs(time, event, np.ones(60))) + 0.05 * w @ w == pytest.approx(
        ours.objective, rel=1e-6
    )


def test_the_score_test_of_two_groups_is_the_log_rank_test():
    X, time, event = survival_table(60, 2)
    group = (X[:, 0] > 0).astype(float)
    first, second = (
        stats.CensoredData(time[some & event], right=time[some & ~event]) for some in (group == 0, group == 1)
    )
    z = RiskSets(time, event, np.ones(60)).score_statistics(group[None])[0]
    assert abs(z) == pytest.approx(abs(stats.logrank(first, second).statistic))


def test_the_filter_takes_categories_and_gaps():
    X, time, event = survival_table(80, 4)
    X[:, 3] = np.digitize(X[:, 0], [-0.5, 0.5])
    X[5, 1] = np.nan
    y = SurvivalTarget(np.ones(80), None, time, event).machine_target.y
    table = Table(np.asfortranarray(X), ("real", "real", "real", "nominal"), ("a", "b", "c", "d"))
    value = CoxScore()(table, y, np.ones(80))
    seen = ~np.isnan(X[:, 1])
    alone = RiskSets(time[seen], event[seen], np.ones(79)).score_statistics(X[seen, 1][None])
    assert value[1] == pytest.approx(abs(alone[0]))
    levels = [RiskSets(time, event, np.ones(80)).score_statistics((X[:, 3] == k)[None].astype(float)) for k in range(3)]
    assert value[3] == pytest.approx(np.abs(levels).max())


def test_breslows_hazard_without_effects_is_nelson_and_aalens():
    _, time, event = survival_table(40, 1, ties=True)
    base = BaselineHazard.from_risk(RiskSets(time, event, np.ones(40)), np.zeros(40))
    expected = [
        sum((event & (time == s)).sum() / (time >= s).sum() for s in np.unique(time[event]) if s <= t)
        for t in base.time
    ]
    np.testing.assert_allclose(base.hazard, expected)
    np.testing.assert_allclose(
        BaselineHazard.from_risk(RiskSets(time, event, np.ones(40)), np.full(40, 3.0)).hazard,
        base.hazard * np.exp(-3.0),
    )


def test_the_l1_path_is_optimal():
    """No column outside pulls harder than the penalty, and those inside pull exactly as hard."""
    X, time, event = survival_table(80, 30, ties=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    sets = RiskSets(time, event, np.ones(80))
    path = cox_lasso_path(X, sets, (1.0, 0.5, 0.2))
    most = np.abs(X.T @ sets.martingale(np.zeros(80))).max()
    assert not path[0].any()
    for w, share in zip(path, (1.0, 0.5, 0.2), strict=True):
        pull = X.T @ sets.martingale(X @ w)
        assert np.abs(pull).max() <= share * most * (1 + 1e-3)
        np.testing.assert_allclose(pull[w != 0], share * most * np.sign(w[w != 0]), rtol=1e-3)


# -- scores -----------------------------------------------------------------------------------------------------------


def test_concordance_is_the_share_of_pairs():
    _, time, event = survival_table(40, 1, ties=True)
    risk = np.round(np.random.default_rng(3).normal(size=40), 1)
    won = total = 0.0
    for i in range(40):
        for j in range(40):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                total += 1
                won += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    known = concordance(time, event, risk, np.ones(40))
    assert known.total == total
    assert known.value == pytest.approx(won / total)


def test_kaplan_meier_is_scipys():
    _, time, event = survival_table(60, 1, ties=True)
    curve = stats.ecdf(stats.CensoredData(time[event], right=time[~event])).sf
    times, share = kaplan_meier(time, event)
    np.testing.assert_allclose(share, curve.evaluate(times))
    later = time + 1e-9 * ~event  # of equal times events come first
    censored = stats.ecdf(stats.CensoredData(later[~event], right=later[event])).sf
    at = np.linspace(0.0, 0.99 * time.max(), 25) + 1e-6
    np.testing.assert_allclose(censoring_survival(time, event, at), censored.evaluate(at))


def test_without_censoring_every_weight_is_one():
    """Uno's C is Harrell's; the AUC at a horizon is that of two classes, and so is the Brier score."""
    rng = np.random.default_rng(0)
    time, risk, fold = rng.exponential(size=60), rng.normal(size=60), np.zeros(60, dtype=np.intp)
    event, strata = np.ones(60, dtype=bool), np.zeros(60, dtype=np.intp)
    arguments = (time, event, risk, fold)
    uno = unos_concordance(*arguments, strata).value
    assert uno == pytest.approx(pooled_concordance(*arguments, strata).value)
    early = time <= 0.7
    expected = stats.mannwhitneyu(risk[early], risk[~early]).statistic / (early.sum() * (~early).sum())
    assert horizon_auc(*arguments, 0.7, strata).value == pytest.approx(expected)
    p = 1 / (1 + np.exp(-risk))
    assert brier_at(time, event, p, fold, 0.7, strata).value == pytest.approx(np.mean((p - early) ** 2))


@pytest.mark.parametrize("score", ["c", "uno_c"])
def test_influences_are_those_of_the_jackknife(score):
    X, time, event = survival_table(150, 2)
    risk, strata = X[:, 0] + np.random.default_rng(0).normal(size=150), np.zeros(150, dtype=np.intp)
    of = {"c": pooled_concordance, "uno_c": unos_concordance}[score]

    def value(rows):
        return of(time[rows], event[rows], risk[rows], np.zeros(len(rows), dtype=np.intp), strata[rows])

    whole = value(np.arange(150))
    left = np.array([value(np.delete(np.arange(150), i)).value for i in range(150)])
    jackknife = 149 * (whole.value - left) / 150
    assert abs(whole.influence.sum()) < 1e-10
    assert np.corrcoef(whole.influence, jackknife)[0, 1] > 0.95
    assert (whole.influence**2).sum() == pytest.approx((jackknife**2).sum(), rel=0.15)


def test_calibration_of_complete_times_is_that_of_two_classes():
    """Logistic regressions on the log odds; the observed shares are those of the bins."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    time, event = rng.exponential(np.exp(-x)), np.ones(400, dtype=bool)
    fold, p, early = np.zeros(400, dtype=np.intp), special.expit(0.5 * x - 0.3), time <= 0.7
    known = calibration_at(time, event, p, fold, 0.7, fold)
    z = (0.5 * x - 0.3)[:, None]
    slope = LogisticRegression(C=1e6, tol=1e-8).fit(z, early).coef_[0, 0]
    assert known["calibration_slope_at"].value == pytest.approx(slope, rel=2e-3)  # the weak prior
    a = known["calibration_intercept_at"].value
    assert special.expit(a + z).sum() == pytest.approx(early.sum(), abs=0.01)
    bins = draw_calibration(time, event, p[None], 0.7)
    parts = np.array_split(np.argsort(p, kind="stable"), 5)
    np.testing.assert_allclose([b["observed"] for b in bins], [early[part].mean() for part in parts])
    assert all(b["low"] < b["observed"] < b["high"] for b in bins)
    assert not calibration_at(time, event, p, fold, 1e-9, fold)


def test_true_probabilities_are_calibrated_whatever_is_censored():
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    t, c = rng.exponential(np.exp(-x)), rng.exponential(1.0, size=4000)
    p, zeros = 1.0 - np.exp(-0.7 * np.exp(x)), np.zeros(4000, dtype=np.intp)
    known = calibration_at(np.minimum(t, c), t <= c, p, zeros, 0.7, zeros)
    for name, right in (("calibration_slope_at", 1.0), ("calibration_intercept_at", 0.0)):
        error = np.sqrt((known[name].influence ** 2).sum())
        assert 0.01 < error < 0.15
        assert abs(known[name].value - right) < 3 * error


def test_the_error_of_a_survival_share_is_greenwoods():
    """Of complete times that of a share; else the jackknife's."""
    _, time, event = survival_table(150, 1)
    alive, error = survival_at(time, np.ones(150, dtype=bool), 0.4)
    assert alive == pytest.approx(np.mean(time > 0.4))
    assert error == pytest.approx(np.sqrt(alive * (1 - alive) / 150))
    left = [survival_at(np.delete(time, i), np.delete(event, i), 0.4)[0] for i in range(150)]
    assert survival_at(time, event, 0.4)[1] == pytest.approx(np.sqrt(149 * np.var(left)), rel=0.05)


def test_intervals_have_the_degrees_of_freedom_of_the_events():
    X, time, event = survival_table(120, 2, seed=2)
    event[np.flatnonzero(event)[14:]] = False
    target = SurvivalTarget(np.ones(120), None, time, event)
    scores = score_predictions(target, [Pass(X[:, 0])])
    assert scores.effective_count == 14
    ends = interval_ends("logit", scores.value["c"], (scores.error["c"],) * 2, 14, 0.95)
    assert (scores.low["c"], scores.high["c"]) == ends
    few = replace(target, event=event & (np.cumsum(event) <= 9))
    assert np.isnan(score_predictions(few, [Pass(X[:, 0])]).low["c"])


def test_the_variance_of_the_forecast_is_kendalls_where_risks_mean_nothing():
    """Var(tau) = 2 (2n + 5) / (9 n (n - 1)), and C = (tau + 1) / 2; cohorts are told by their events."""
    target = SurvivalTarget(np.ones(4), None, np.arange(4.0), np.array([True, True, False, True]))
    assert target.forecast_variance(0.5, (20000,)) == pytest.approx(40005 / (18 * 20000 * 19999), rel=1e-3)
    assert target.cohort_counts == (3,)
    assert target.read_counts((50,)) == (50,)
    with pytest.raises(InputError, match="it takes 1 numbers"):
        target.read_counts((50, 60))


def test_rows_that_outlive_their_risk_are_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    time = rng.exponential(np.exp(-x))
    target = SurvivalTarget(np.ones(2000), None, time, np.ones(2000, dtype=bool))
    residual, chance = judge_times(target, x[None])
    assert abs(np.mean(chance < 0.1) - 0.1) < 0.02  # times that follow the model
    assert (np.sign(residual) == np.sign(1.0 - np.exp(x) * time)).mean() > 0.98
    worst = int(np.argmax(x))
    time[worst], x[:] = 3.0 * time.max(), x
    residual, chance = judge_times(replace(target, time=time), x[None])
    assert int(np.argmin(chance)) == worst
    assert chance[worst] < 0.05 / 2000
    assert residual[worst] < -3


def test_the_reference_on_a_block_is_proportional_hazards_on_its_columns():
    X, time, event = survival_table(80, 5)
    y = np.where(event, time, -time)
    some = OnTimes(("real",) * 5, np.array([0, 3])).fit(X, y)
    alone = OnTimes(("real",) * 2, np.array([0, 1])).fit(X[:, [0, 3]], y)
    np.testing.assert_allclose(some.predict(X), alone.predict(X[:, [0, 3]]), atol=1e-10)
    assert some.get_support(indices=True).tolist() == [0, 3]


def test_scores_are_those_of_scikit_survival():
    """Fold by fold; the folds' values are pooled by the weight of their pairs, or their rows."""
    metrics = pytest.importorskip("sksurv.metrics")
    _, time, event = survival_table(120, 2, seed=5, ties=True)
    order = np.argsort(time)[:-1]  # scikit-survival has no weight for times beyond the last of the training part
    time, event = time[order], event[order]
    rng = np.random.default_rng(0)
    risk, fold = rng.normal(size=119), rng.permutation(119) % 2
    probability, strata = 1 / (1 + np.exp(-risk)), np.zeros(119, dtype=np.intp)
    limit = min(time[fold == 0].max(), time[fold == 1].max())
    some = time <= limit
    time, event, risk, fold, probability, strata = (v[some] for v in (time, event, risk, fold, probability, strata))
    horizon, theirs = float(np.median(time)), {"c": [], "uno": [], "auc": [], "brier": []}
    for k in (0, 1):
        test, train = fold == k, fold != k
        here, there = structured(time[test], event[test]), structured(time[train], event[train])
        t, e, r = time[test], event[test], risk[test]
        chance = censoring_survival(time[train], event[train], t)
        longer = (t[None] > t[:, None]) | ((t[None] == t[:, None]) & ~e[None])
        last = time[train][event[train]].max()
        weight = np.divide(1.0, chance**2, out=np.zeros(len(t)), where=(chance > 0) & e & (t < last))
        early = e & (t <= horizon)
        cases = np.divide(1.0, chance, out=np.zeros(len(t)), where=early).sum() * (t > horizon).sum()
        survival = 1.0 - probability[test][:, None]
        theirs["c"].append((metrics.concordance_index_censored(e, t, r)[0], (longer & e[:, None]).sum()))
        uno = metrics.concordance_index_ipcw(there, here, r, tau=last)[0]
        theirs["uno"].append((uno, (longer.sum(axis=1) * weight).sum()))
        theirs["auc"].append((metrics.cumulative_dynamic_auc(there, here, r, [horizon])[0][0], cases))
        theirs["brier"].append((metrics.brier_score(there, here, survival, [horizon])[1][0], len(t)))
    arguments = (time, event, risk, fold)
    ours = {
        "c": pooled_concordance(*arguments, strata),
        "uno": unos_concordance(*arguments, strata),
        "auc": horizon_auc(*arguments, horizon, strata),
        "brier": brier_at(time, event, probability, fold, horizon, strata),
    }
    for name, score in ours.items():
        expected = np.average([value for value, _ in theirs[name]], weights=[mass for _, mass in theirs[name]])
        assert score.value == pytest.approx(expected, abs=1e-10), name


def test_proportional_hazards_are_those_of_scikit_survival():
    linear = pytest.importorskip("sksurv.linear_model")
    X, time, event = survival_table(100, 4, ties=True)
    events = event.sum()
    theirs = linear.CoxPHSurvivalAnalysis(alpha=0.2 * events, ties="breslow", tol=1e-14).fit(X, structured(time, event))
    ours = fit_cox(X, RiskSets(time, event, np.ones(100)), 0.2)
    np.testing.assert_allclose(ours.weights, theirs.coef_, atol=1e-8)


# -- the outcome ------------------------------------------------------------------------------------------------------


def test_times_are_read_in_any_usual_form():
    time, event = np.array([5.0, 2.0, 9.0]), np.array([True, False, True])
    forms = [
        structured(time, event),
        np.column_stack([time, event]),
        np.column_stack([event, time]),
        pd.DataFrame({"time": time, "event": event}),
        pd.DataFrame({"died": event.astype(int), "days": time}),
    ]
    for y in forms:
        target = Survival().read(np.zeros((3, 1)), y)
        np.testing.assert_array_equal(target.time, time)
        np.testing.assert_array_equal(target.event, event)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(4.0), "two columns"),
        (np.column_stack([np.arange(4.0), np.arange(4.0) + 2]), "no column of events"),
        (np.column_stack([np.arange(4.0), [0, 0, 0, 1]]), "1 event: at least 2"),
        (np.column_stack([[1.0, np.nan, 2.0, 3.0], [1, 1, 0, 1]]), "NaN"),
        (np.column_stack([np.ones(4), np.ones(4)]), "nothing can be predicted"),
    ],
)
def test_what_are_no_times_is_refused(y, message):
    with pytest.raises(InputError, match=message):
        SVMSelector(machine="cox", outcome="survival").fit(np.random.default_rng(0).normal(size=(4, 2)), y)


def test_residuals_are_computed_anew_in_every_part():
    _, time, event = survival_table(40, 1)
    target, rows = SurvivalTarget(np.ones(40), None, time, event), np.arange(0, 40, 2)
    part = target.take(rows)
    np.testing.assert_allclose(part.residuals, RiskSets(time[rows], event[rows], np.ones(20)).martingale(np.zeros(20)))
    assert not np.allclose(part.residuals, target.residuals[rows])
    order = np.argsort(np.abs(part.machine_target.y[0]), kind="stable")
    assert (np.diff(time[rows][order]) >= 0).all()


def test_permutations_move_time_and_event_together():
    _, time, event = survival_table(30, 1)
    target = SurvivalTarget(np.ones(30), None, time, event)
    shuffled = target.deal(target.permutations(1, np.random.default_rng(0))[0])
    pairs = {(t, e) for t, e in zip(time, event, strict=True)}
    assert {(t, e) for t, e in zip(shuffled.time, shuffled.event, strict=True)} == pairs
    assert (shuffled.time != time).any()


def test_folds_share_the_events():
    _, time, event = survival_table(60, 1)
    target = SurvivalTarget(np.ones(60), None, time, event)
    counts = [event[test].sum() for _, test in target.folds(5, 0)]
    assert max(counts) - min(counts) <= 1


def test_survival_curves_fall_with_time_and_risk():
    decision = SurvivalDecision(np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.5, 2.0]), 0.7, 0.2, horizon=2.0)
    risk = np.array([-1.0, 0.2, 3.0])
    assert (np.diff(decision.survival(risk, 2.0)) < 0).all()
    assert decision.survival(risk, 2.0)[1] == pytest.approx(np.exp(-0.5))
    assert (decision.survival(risk, 0.5) == 1).all()
    median = decision.median_time(risk)
    assert median[2] <= median[1]
    assert decision.survival(risk, median[1])[1] <= 0.5
    assert np.isnan(SurvivalDecision(np.array([1.0]), np.array([0.1])).median_time(np.array([0.0]))[0])


# -- estimators and studies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_predict_risks_and_their_files_do_too(name, tmp_path):
    X, time, event = survival_table(70, 8)
    frame, y = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)]), structured(time, event)
    settings = {"outcome": Survival(probability=True, horizon=0.5), "n_features_to_select": 3}
    selector = recipes.get(name)(**settings, random_state=0, cv=3, probability=True).fit(frame, y)
    assert {"c0", "c1"} <= set(selector.get_feature_names_out())
    assert selector.score(frame, y) == pytest.approx(
        concordance(time, event, selector.predict(frame), np.ones(70)).value
    )
    again = load(save(selector, tmp_path / "m.marginsieve"))
    table = predict(again, frame).table
    assert list(table.columns) == ["predicted", "survival", "median_time", "far"]
    np.testing.assert_array_equal(again.predict(frame), selector.predict(frame))
    assert np.corrcoef(table["predicted"], table["survival"])[0, 1] < -0.5


def test_a_structured_array_works_in_cross_validation():
    X, time, event = survival_table(80, 6)
    selector = SVMSelector(machine="cox", outcome="survival", n_features_to_select=2, random_state=0)
    assert cross_val_score(clone(selector), X, structured(time, event), cv=4).mean() > 0.6
    assert not hasattr(selector, "decision_function")


def test_nested_scores_are_pooled_over_pairs_within_folds():
    X, time, event = survival_table(80, 6)
    recipe = recipes.fisher(outcome="survival", n_features_to_select=2, random_state=0)
    nested = nested_cv(recipe, X, structured(time, event), cv=4, n_repeats=1)
    (one,) = nested.passes
    parts = [np.flatnonzero(one.fold == k) for k in range(4)]
    pairs = [concordance(time[rows], event[rows], one.predicted[rows], np.ones(len(rows))) for rows in parts]
    expected = sum(p.value * p.total for p in pairs) / sum(p.total for p in pairs)
    scores = nested.scores()
    assert scores.value["c"] == pytest.approx(expected)
    assert 0.5 < scores.low["c"] < scores.value["c"] < scores.high["c"] < 1


def test_parts_for_other_outcomes_are_refused():
    X, time, event = survival_table(40, 4)
    with pytest.raises(InputError, match="KernelRidge works on signs and values and survival are times: use machine="):
        SVMSelector(machine="kernel_ridge", outcome="survival").fit(X, structured(time, event))


@pytest.fixture(scope="module")
def studied():
    X, time, event = survival_table(90, 10)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    y = pd.DataFrame({"time": time, "event": event})
    methods = "fisher"
    return frame, y, marginsieve.study(frame, y, methods=methods, cv=3, n_repeats=1, horizon=0.5, blocks=["c0"])


def test_a_study_of_times_has_an_answer_and_a_page(studied):
    _, y, study = studied
    result = study.result
    assert result["options"]["outcome"] == "survival"
    assert result["main_score"] == "c"
    assert {"c", "uno_c", "auc_at", "brier_at"} <= set(result["scores"])
    assert result["table"]["survival"]["events"] == int(y["event"].sum())
    assert result["analyses"]["evidence"]["strength"] == "clear"
    assert {"calibration_slope_at", "calibration_intercept_at"} <= set(result["scores"])
    titles = [(row["title"], row["n_features"]) for row in result["analyses"]["references"]["compared"]]
    assert [title for title, _ in titles] == ["Cox lasso", "Cox on c0"]
    assert titles[1][1] == 1
    (cohort,) = result["analyses"]["forecast"]["cohorts"]
    assert cohort["words"] == f"{int(y['event'].sum())} events"
    assert cohort["same"][0] < result["scores"]["c"]["value"] < cohort["same"][1]
    assert result["analyses"]["unexplained"]["judged"] == len(y)
    page = study.html()
    assert "Calibration of the probability of an event by 0.5" in page
    assert "Numbers at risk" in page
    drawn = result["curves"]["main"]["survival"]
    assert [group["at_risk"][0] for group in drawn["groups"]] == [group["count"] for group in drawn["groups"]]
    assert sum(group["count"] for group in drawn["groups"]) == len(y)
    assert "survival" not in without_rows(result)["curves"]["main"]
    marginsieve.report.render(without_rows(result))


def test_curves_by_thirds_are_in_the_order_of_the_risk():
    time = np.arange(1.0, 31.0)
    drawn = draw_thirds(time, np.ones(30, dtype=bool), -time[None])
    ends = [group["time"][-1] for group in drawn["groups"]]
    assert ends == [30.0, 20.0, 10.0]


def test_the_command_takes_a_column_of_times(studied, tmp_path):
    from typer.testing import CliRunner

    from marginsieve.cli import app

    frame, y, _ = studied
    status = np.where(y["event"], "died", "alive")
    frame.assign(days=y["time"], status=status).to_csv(tmp_path / "t.csv", index=False)
    words = ["select", "t.csv", "--target", "status", "--time", "days", "--methods", "fisher", "--cv", "3"]
    words = [*words, "--n-repeats", "1", "--json", "--out", str(tmp_path / "r")]
    words[1] = str(tmp_path / "t.csv")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["options"]["outcome"] == "survival"
    assert any("died was taken for the event" in finding["text"] for finding in result["findings"])
    assert "days" not in {feature["name"] for feature in result["features"]}
    words = ["validate", str(tmp_path / "r"), str(tmp_path / "t.csv"), "--json", "--out", str(tmp_path / "v")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (cohort,) = json.loads(done.stdout)["cohorts"]
    assert cohort["labelled"] == len(frame)
    assert cohort["lines"]["as_is"]["scores"]["c"]["value"] > 0.7  # the rows of the fit
    words = ["predict", str(tmp_path / "r"), str(tmp_path / "t.csv"), "--horizon", "0.5", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    risk, alive = (np.array([row[name] for row in rows]) for name in ("predicted", "survival"))
    assert ((alive > 0) & (alive < 1)).all()
    np.testing.assert_array_equal(np.argsort(risk, kind="stable"), np.argsort(-alive, kind="stable"))
    done = CliRunner().invoke(app, [*words[:2], str(tmp_path / "t.csv"), "--horizon", "-1", "--json"])
    assert "horizon is -1.0; it must be a positive number" in str(done.exception)
    frame.assign(status=status).to_csv(tmp_path / "u.csv", index=False)
    done = CliRunner().invoke(
        app, ["validate", str(tmp_path / "r"), str(tmp_path / "u.csv"), "--out", str(tmp_path / "w")]
    )
    assert "has no column 'days'" in str(done.exception)


def test_a_model_of_times_is_validated_on_another_cohort(studied):
    _, _, study = studied
    X, time, event = survival_table(70, 10, seed=4)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    y = pd.DataFrame({"time": time, "event": event.astype(float)})
    y.loc[:4, "time"] = np.nan  # rows without an outcome are not scored
    known = marginsieve.validate(study.model, frame, y, promise=study.result)
    (entry,) = known.result["cohorts"]
    assert entry["labelled"] == 65
    assert [each["name"] for each in entry["mix"]] == ["censored", "with the event"]
    assert entry["forecast"]["score"] == "c"
    assert entry["forecast"]["counts"] == [int(event[5:].sum())]
    assert "At the horizon the predicted chances of an event are" in " ".join(entry["sentences"])
    scores, risk = entry["lines"]["as_is"]["scores"], study.model.predict(frame)[5:]
    assert scores["c"]["value"] == pytest.approx(concordance(time[5:], event[5:], risk, np.ones(65)).value)
    table = known.predictions["cohort"]
    assert table["time"].isna().tolist() == [True] * 5 + [False] * 65
    np.testing.assert_array_equal(table["event"][5:].astype(int), event[5:].astype(int))
    known = marginsieve.validate(study.model, frame[5:], structured(time, event)[5:], promise=study.result)
    assert known.result["cohorts"][0]["lines"]["as_is"]["scores"]["c"] == scores["c"]
    alone = y.assign(event=np.arange(70) == 10)
    (entry,) = marginsieve.validate(study.model, frame, alone, promise=study.result).result["cohorts"]
    assert "the cohort has 1 event: nothing can be scored" in entry["notes"]


@pytest.mark.parametrize("turned", [False, True])
def test_sites_are_judged_by_the_residuals_of_times(turned):
    """A column that shortens times at every site but one, or at all: only in the former is a model lost at a site."""
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(150, 6)), np.repeat(np.arange(3), 50)
    t = rng.exponential(np.exp(np.where(turned & (site == 2), 2.0, -2.0) * X[:, 0]))
    c = rng.exponential(2.0, size=150)
    target = SurvivalTarget(np.ones(150), None, np.minimum(t, c), t <= c)
    schema = Schema.from_table(X)
    known = judge_sites(Rows(schema, schema.table(X), target), site, rng, 99)
    assert known.loses == turned
    assert (known.left_out < known.pseudo - 0.15) == turned
    assert known.pseudo > 0.2
    assert not known.complete


def test_survival_is_predicted_up_to_any_time(studied):
    frame, _, study = studied
    early, late = (predict(study.model, frame, horizon=time).table["survival"] for time in (0.2, 0.8))
    assert (early > late).all()
    assert predict(study.model, frame).table["survival"].between(late, early).all()  # at 0.5, that of the study
    X = np.random.default_rng(0).normal(size=(30, 3))
    classes = recipes.fisher(n_features_to_select=1).fit(pd.DataFrame(X, columns=list("abc")), X[:, 0] > 0)
    with pytest.raises(InputError, match="does not predict times"):
        predict(classes, pd.DataFrame(X, columns=list("abc")), horizon=1.0)


@pytest.mark.parametrize(
    ("status", "message"),
    [([0, 1, 2, 1], "whether an event was seen is 0 and 1"), (["a", "b", "a", "b"], "died, event, relapse")],
)
def test_codes_of_events_are_known_or_refused(status, message):
    frame = pd.DataFrame({"s": status, "t": [1.0, 2.0, 3.0, 0.0]})
    with pytest.raises(InputError, match=message):
        read_survival(frame, "s", "t")
    with pytest.raises(InputError, match="name the column of the time"):
        read_survival(frame, "s", None)
    y, notes = read_survival(frame.assign(s=[1, 2, 2, 1]), "s", "t")
    assert y["event"].tolist() == [False, True, True, False]
    assert ["2 was taken for the event" in notes[0].text, "1 of the times" in notes[1].text] == [True, True]
