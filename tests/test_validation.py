"""A model on a new cohort: alignment, forecast, scores and what they vary by, adapted models, the command, the page."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, roc_auc_score
from typer.testing import CliRunner

import marginsieve
from marginsieve import load, predict, recipes, save, validate
from marginsieve.cli.commands import app
from marginsieve.data import make_cohort
from marginsieve.data.moments import ColumnMoments, ColumnShift, fit_alignment
from marginsieve.engine import Pass
from marginsieve.engine.scoring import score_predictions
from marginsieve.errors import InputError
from marginsieve.estimators.fitted_selector import align_model
from marginsieve.estimators.persistence import to_bytes
from marginsieve.outcomes import ClassTarget
from marginsieve.outcomes.recalibration import move_cut, recalibrate
from marginsieve.outcomes.scores import auc_variance, fit_calibration, linearise_scores, log_odds
from marginsieve.report import render_validation
from marginsieve.validation import forecast, join_validations, pool
from marginsieve.validation.sentences import describe_calibration, meaning_of_gate
from marginsieve.validation.validated import name_endings

# -- columns ----------------------------------------------------------------------------------------------------------


def moments(Z, strata=None, kinds=None):
    Z = np.asarray(Z, dtype=float)
    strata = np.zeros(len(Z), dtype=np.intp) if strata is None else strata
    names = [f"x{j}" for j in range(Z.shape[1])]
    return ColumnMoments.of_rows(Z, names, kinds or ["real"] * Z.shape[1], strata)


def test_moments_of_strata_pool_to_those_of_weighted_rows(rng):
    Z, strata = rng.normal(size=(40, 3)) * [1.0, 5.0, 1e6] + [0.0, 3.0, 1e7], np.repeat([0, 1], [30, 10])
    Z[rng.random(Z.shape) < 0.2] = np.nan
    known = moments(Z, strata)
    mean, deviation, count = known.pool()
    np.testing.assert_allclose(mean, np.nanmean(Z, axis=0))
    np.testing.assert_allclose(deviation, np.nanstd(Z, axis=0, ddof=1))
    np.testing.assert_allclose(count, (~np.isnan(Z)).sum(axis=0))
    shares = np.array([0.4, 0.6])
    weight = np.where(strata == 0, 0.4 / 0.75, 0.6 / 0.25)
    for j, column in enumerate(Z.T):
        seen = ~np.isnan(column)
        average = np.average(column[seen], weights=weight[seen])
        assert known.pool(shares)[0][j] == pytest.approx(average)
        spread = np.average((column[seen] - average) ** 2, weights=weight[seen])
        n = seen.sum()
        assert known.pool(shares)[1][j] == pytest.approx(np.sqrt(spread * n / (n - 1)))


def test_a_shift_and_a_scale_are_taken_back(rng):
    A = rng.normal(size=(50, 4))
    B = A * [3.0, 0.5, 1.0, 2.0] + [10.0, -4.0, 100.0, 0.0]
    back = fit_alignment("location-scale", moments(A), moments(B), 50)
    np.testing.assert_allclose(back.apply(B, np.arange(4)), A, atol=1e-9)
    moved = fit_alignment("location", moments(A), moments(B), 50).apply(B, np.arange(4))
    np.testing.assert_allclose(moved.mean(axis=0), A.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(moved.std(axis=0), B.std(axis=0))
    matched = fit_alignment("quantiles", moments(A), moments(np.exp(A)), 50).apply(np.exp(A), np.arange(4))
    np.testing.assert_allclose(matched, A, atol=0.35)  # between the quantiles of so few rows a line is drawn
    np.testing.assert_allclose(matched.min(axis=0), A.min(axis=0))
    np.testing.assert_allclose(matched.max(axis=0), A.max(axis=0))


def test_few_rows_are_moved_by_what_sampling_does_not_explain(rng):
    A = rng.normal(size=(200, 30))
    alike = np.tile(A.mean(axis=0), (12, 1)) + A.std(axis=0, ddof=1) * _standardised(rng, 12, 30)
    same = fit_alignment("location-scale", moments(A), moments(alike), 12)
    np.testing.assert_allclose(same.apply(alike, np.arange(30)), alike)  # means and deviations are those of A
    far = alike + 50.0
    moved = fit_alignment("location", moments(A), moments(far), 12).apply(far, np.arange(30))
    assert np.abs(moved - alike).max() < 0.01  # of so far a shift sampling explains next to nothing
    with pytest.raises(InputError, match="the cohort has 9 rows"):
        fit_alignment("location", moments(A), moments(far[:9]), 9)
    with pytest.raises(InputError, match="align is 'rank'; it must be one of"):
        fit_alignment("rank", moments(A), moments(far), 12)


def _standardised(rng, m, n):
    Z = rng.normal(size=(m, n))
    return (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)


def test_the_gate_is_the_shift_beyond_sampling(rng):
    A, B = rng.normal(size=(4000, 50)), rng.normal(size=(4000, 50))
    training = moments(A)
    assert ColumnShift.between(training, moments(B)).gate < 0.05
    assert ColumnShift.between(training, moments(B + 0.7)).gate == pytest.approx(0.7, abs=0.02)
    assert ColumnShift.between(moments(A[:30]), moments(B[:15])).gate < 0.25  # sampling gives .3 alone
    constant, category = np.ones((20, 1)), ["nominal"]
    assert ColumnShift.between(moments(constant), moments(constant)).gate is None
    assert ColumnShift.between(moments(A[:, :1], kinds=category), moments(B[:, :1], kinds=category)).gate is None


def test_a_column_of_a_few_cells_does_not_count(rng):
    A, B = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    B[:9, 0], B[9:, 0] = 50.0 + B[:9, 0], np.nan
    alone = ColumnShift.between(moments(A[:, 1:]), moments(B[:, 1:])).gate
    assert ColumnShift.between(moments(A), moments(B)).gate == pytest.approx(alone)
    B[9, 0] = 50.0
    assert ColumnShift.between(moments(A), moments(B)).gate > 10
    assert ColumnShift.between(moments(A), moments(B[:9])).gate > 10  # all rows of a small cohort


def test_the_columns_that_make_a_shift_are_named():
    glucose = {"name": "glu", "shift": -4.0, "mean": 6.6, "mean_in_training": 124.0, "scale": 1 / 19}
    others = [{"name": f"x{k}", "shift": 0.1, "mean": 1.0, "mean_in_training": 1.1, "scale": 1.0} for k in range(6)]
    text = meaning_of_gate(1.5, 0.5, True, [glucose, *others])
    assert "mostly 'glu': mean 6.6 here, 124 in training, spread 1/19 of that in training, check the unit." in text
    assert "over many columns; the furthest is 'x0'" in meaning_of_gate(1.5, 0.5, True, 2 * others)


# -- forecast and pooling ---------------------------------------------------------------------------------------------


def test_the_variance_of_an_auc_without_signal_is_that_of_ranks():
    for ours, others in ((5, 9), (30, 50)):
        assert auc_variance(0.5, ours, others) == pytest.approx((ours + others + 1) / (12 * ours * others))


def test_the_forecast_is_its_formula_and_widens_elsewhere():
    target = ClassTarget.from_codes([0, 1])
    known = forecast(target, 0.8, 0.04, 25, (50, 30))
    middle = (0.8 * 25 + 0.5) / 26
    spread = np.sqrt(0.04**2 + auc_variance(middle, 30, 50)) / (middle * (1 - middle))
    for ends, between in ((known.same, 0.0), (known.elsewhere, 0.25)):
        reach = stats.t.ppf(0.95, 24) * np.sqrt(spread**2 + between)
        np.testing.assert_allclose(ends, special.expit(special.logit(middle) + np.array([-reach, reach])))
    assert known.elsewhere[0] < known.same[0] < known.same[1] < known.elsewhere[1]
    assert forecast(target, 0.8, 0.04, 25, (500, 300)).same[0] > known.same[0]


def test_pooling_solves_its_equation():
    values, errors, counts = [0.6, 0.75, 0.9, 0.8], [0.05, 0.04, 0.03, 0.06], [40, 50, 60, 30]
    known = pool(values, errors, counts)
    n = np.array(counts)
    middle = (np.array(values) * n + 0.5) / (n + 1)
    y, v = special.logit(middle), (np.array(errors) / (middle * (1 - middle))) ** 2
    weight = 1 / (v + known.tau**2)
    mean = weight @ y / weight.sum()
    assert known.value == pytest.approx(special.expit(mean))
    assert (weight * (y - mean) ** 2).sum() == pytest.approx(3.0, rel=1e-6)
    assert known.next_low < known.low < known.value < known.high < known.next_high
    alike = pool([0.8, 0.8], [0.05, 0.05], [40, 40])
    assert alike.tau == 0.0
    assert alike.value == pytest.approx((0.8 * 40 + 0.5) / 41)
    assert np.isnan(alike.next_low)
    assert np.isnan(pool([0.8], [0.05], [40]).low)


# -- scores -----------------------------------------------------------------------------------------------------------


def test_calibration_is_that_of_a_logistic_regression(rng):
    z = 2.0 * rng.normal(size=4000) + 1.0
    y = rng.random(4000) < special.expit(0.6 * z - 0.5)
    reference = LogisticRegression(C=1e9, max_iter=1000).fit(z[:, None], y)
    np.testing.assert_allclose(fit_calibration(z, y), [reference.intercept_[0], reference.coef_[0, 0]], rtol=0.01)
    alone, slope = fit_calibration(z, y, prior=(1.0, 0.0))
    assert slope == 1.0
    assert special.expit(alone + z).sum() == pytest.approx(y.sum(), abs=1.0)  # half a row of each class was added


@pytest.mark.parametrize("prior", [None, (1.0, 0.25)])
def test_calibration_is_the_maximum_of_its_penalised_likelihood(rng, prior):
    for _ in range(20):
        n = int(rng.integers(8, 60))
        z = rng.normal(size=n) * rng.choice([0.2, 1.0, 8.0]) + rng.choice([0.0, 4.0, -6.0])
        y = rng.random(n) < special.expit(z * rng.choice([0.0, 1.0, 3.0]))
        x = np.column_stack([np.ones(n), z])

        def loss(theta, x=x, y=y):
            t = x @ theta
            p = special.expit(t)
            value = np.logaddexp(0.0, t).sum() - t[y].sum()
            if prior is not None:
                return value + 0.5 * (theta[1] - prior[0]) ** 2 / prior[1]
            return value - 0.5 * np.linalg.slogdet((x * (p * (1 - p))[:, None]).T @ x)[1]

        found = np.array(fit_calibration(z, y, prior))
        options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
        better = optimize.minimize(loss, found, method="Nelder-Mead", options=options).fun
        assert loss(found) <= better + 1e-7


def test_influences_are_those_of_the_jackknife(rng):
    """What a row adds is (m - 1) times less than its jackknife value, centred in each class."""
    m = 300
    truth = np.repeat([0, 1], [180, 120])
    decision = rng.normal(size=m) + 1.2 * truth - 0.4
    probability = special.expit(1.3 * decision - 0.2)

    def scores(rows):
        one_pass = Pass((decision[rows] > 0).astype(int), decision[rows], probability[rows])
        return linearise_scores(truth[rows], one_pass, 1)

    every = scores(np.arange(m))
    without = [scores(np.delete(np.arange(m), i)) for i in range(m)]
    for name in ("ppv", "npv", "net_benefit", "calibration_slope", "calibration_intercept"):
        jackknife = np.array([(m - 1) * (every[name].value - known[name].value) for known in without]) / m
        influence = every[name].influence
        for code in (0, 1):
            jackknife[truth == code] -= jackknife[truth == code].mean()
        scale = np.abs(influence).max()
        np.testing.assert_allclose(influence, jackknife, atol=0.1 * scale, err_msg=name)


def test_the_auc_counts_pairs_and_halves_ties_in_any_number_of_rows(rng):
    """By ranks: the matrix of all pairs of these rows would take 7 GB."""
    truth = (rng.random(60_000) < 0.4).astype(int)
    decision = np.round(rng.normal(size=len(truth)) + truth, 1)
    score = linearise_scores(truth, Pass((decision > 0.5).astype(int), decision), 1)["auc"]
    assert score.value == pytest.approx(roc_auc_score(truth, decision), abs=1e-12)
    row = int(np.flatnonzero(truth)[0])  # of a positive: the share of negatives that it beats, less the AUC
    won = np.mean(decision[truth == 0] < decision[row]) + 0.5 * np.mean(decision[truth == 0] == decision[row])
    assert score.influence[row] * truth.sum() == pytest.approx(won - score.value, abs=1e-12)


def test_intervals_of_a_fixed_model_cover(rng):
    """AUC, balanced accuracy and the slope on cohorts of 30 and 50, truth by the normal distribution."""
    target = ClassTarget.from_codes(np.repeat([0, 1], [50, 30]))
    truth = {"auc": stats.norm.cdf(1.2 / np.sqrt(2)), "balanced_accuracy": stats.norm.cdf(0.6)}
    hits = dict.fromkeys(truth, 0)
    for _ in range(300):
        decision = rng.normal(size=80) + 1.2 * target.codes - 0.6
        scores = score_predictions(target, [Pass((decision > 0).astype(int), decision)], fixed=True)
        for name, value in truth.items():
            hits[name] += scores.low[name] <= value <= scores.high[name]
    assert all(0.92 * 300 <= count <= 0.985 * 300 for count in hits.values()), hits


# -- adapted models ---------------------------------------------------------------------------------------------------


def test_recalibration_fits_more_with_more_rows(rng):
    z = rng.normal(size=200)
    y = rng.random(200) < special.expit(2.5 * z + 1.0)
    for m, words in ((12, "intercept"), (30, "intercept and slope, held near 1"), (90, "intercept and slope")):
        intercept, slope, how = recalibrate(z[:m], y[:m], aligned=False)
        assert how.startswith(words)
        assert (slope == 1.0) == (m == 12)
        assert intercept != 0.0
    with pytest.raises(InputError, match="9 labelled rows; it takes 10"):
        recalibrate(z[:9], y[:9], aligned=False)
    with pytest.raises(InputError, match="of an aligned cohort; it takes 40"):
        recalibrate(z[:39], y[:39], aligned=True)
    assert recalibrate(z[:39], y[:39], False)[1] != recalibrate(z[:39], y[:39], False, m=12)[1] == 1.0


@pytest.mark.parametrize(
    ("rule", "called"),
    [("prevalence", lambda cut, v, _: np.mean(v > cut)), ("sensitivity:0.9", lambda cut, v, y: np.mean(v[y] > cut))],
)
def test_a_cut_calls_the_share_that_was_asked_for(rng, rule, called):
    value, y = rng.normal(size=50), rng.random(50) < 0.4
    cut, _ = move_cut(value, None, y, rule, 0.3)
    share = 0.3 if rule == "prevalence" else 0.9
    n = 50 if rule == "prevalence" else y.sum()
    assert share <= called(cut, value, y) < share + 1.0 / n + 1e-12


def test_a_cut_at_a_specificity_and_at_a_probability(rng):
    value, y = rng.normal(size=50), rng.random(50) < 0.4
    cut, _ = move_cut(value, None, y, "specificity:0.8", None)
    assert 0.8 <= np.mean(value[~y] < cut) < 0.8 + 1.0 / (~y).sum() + 1e-12
    cut, how = move_cut(value, 2.0 * value - 1.0, y, "probability:0.2", None)
    assert special.expit(2.0 * cut - 1.0) == pytest.approx(0.2)
    assert how == "a cut at a probability of 0.2"
    for rule, words in (
        ("prevalence", "give the prevalence too"),
        ("odds:2", "it must be"),
        ("sensitivity:2", "must be"),
    ):
        with pytest.raises(InputError, match=words):
            move_cut(value, None, y, rule, None)


# -- validate ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohorts():
    return list(make_cohort(90, 60, n_relevant=6, effect=1.2, prevalence=(0.4, 0.3, 0.5), cohorts=3, shift=1.2))


@pytest.fixture(scope="module")
def study(cohorts):
    old = cohorts[0]
    return marginsieve.study(old.X, old.y, methods="fisher", n_repeats=1, without=("suspects", "references"))


@pytest.mark.parametrize("positive", ["case", "control"])
def test_the_scores_are_those_of_the_models_predictions(cohorts, positive):
    old, new, _ = cohorts
    model = recipes.fisher(n_features_to_select=5, positive=positive, probability=True, random_state=0)
    model.fit(old.X, old.y)
    before = to_bytes(model)
    validation = validate(model, new.X, new.y, align="none")
    assert to_bytes(model) == before
    probability = model.predict_proba(new.X)[:, list(model.classes_).index(positive)]
    known = {
        "auc": roc_auc_score(new.y == positive, probability),
        "balanced_accuracy": balanced_accuracy_score(new.y, model.predict(new.X)),
        "brier": brier_score_loss(new.y == positive, probability),
    }
    for name, value in known.items():
        assert validation.scores[name]["value"] == pytest.approx(value)
    frame = validation.predictions["cohort"]
    assert (frame["predicted"] == model.predict(new.X)).all()
    assert (frame["observed"] == new.y).all()
    chances = validation.result["cohorts"][0]["lines"]["as_is"]["chances"]
    assert chances["mean"] == pytest.approx(probability.mean())
    assert (chances["class"], chances["observed"]) == (positive, pytest.approx((new.y == positive).mean()))


def test_a_shifted_cohort_gets_a_second_line_and_says_what_it_used(study, cohorts):
    _, new, other = cohorts
    known = study.validate(new.X, new.y).result["cohorts"][0]
    assert known["drift"]["gate"] > 0.5
    as_is, aligned = (known["lines"][key]["scores"] for key in ("as_is", "aligned"))
    assert aligned["balanced_accuracy"]["value"] > as_is["balanced_accuracy"]["value"]
    assert any("used the cohort's own rows" in text for text in known["sentences"])
    assert known["far"]["aligned"] == int(
        predict(align_model(study.model, new.X, "location-scale"), new.X).table["far"].sum()
    )
    same = study.validate(cohorts[0].X, cohorts[0].y).result["cohorts"][0]
    assert same["drift"]["gate"] == 0.0
    assert list(same["lines"]) == ["as_is"]
    assert "hardly shifted" in same["not_aligned"]
    few = study.validate(other.X[:9], other.y[:9]).result["cohorts"][0]
    assert few["not_aligned"] == "the cohort has 9 rows, fewer than 10"


def test_the_order_of_the_columns_decides_nothing(cohorts):
    """Columns whose order is not that of their names, as in most tables: the moments are those of each."""
    old, new, _ = cohorts
    names = old.X.columns[::-1]
    frame = (old.X * np.arange(1, 61))[names]  # of scales of their own
    quick = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": ("suspects", "references", "false-share")}
    study = marginsieve.study(frame, old.y, **quick)
    listed = list(study.model.get_feature_names_out())
    assert listed != sorted(listed)
    assert list(study.model.training_.names) == listed
    np.testing.assert_allclose(study.model.training_.pool()[0], frame[listed].mean())
    assert study.validate(frame, old.y).result["cohorts"][0]["drift"]["gate"] == 0.0
    other = (new.X * np.arange(1, 61))[names]
    aligned = align_model(study.model, other, "location-scale").adaptation_.alignment
    np.testing.assert_allclose(aligned.middle, other[list(aligned.names)].mean())
    np.testing.assert_allclose(aligned.centre, frame[list(aligned.names)].mean())


def test_outcomes_of_the_cohort_are_used_for_scores_alone(study, cohorts):
    _, new, _ = cohorts
    turned = new.y.map({"case": "control", "control": "case"})
    first, second = (study.validate(new.X, y, prevalence=0.3) for y in (new.y, turned))
    for name in ("predicted_aligned", "score_aligned"):
        assert (first.predictions["cohort"][name] == second.predictions["cohort"][name]).all()
    pd.testing.assert_frame_equal(first.columns["cohort"], second.columns["cohort"])
    assert first.scores["auc"]["value"] == pytest.approx(1.0 - second.scores["auc"]["value"])


def test_the_prevalence_is_that_of_the_reweighted_training_rows(study, cohorts):
    """Aligned to a mix of its own the training table is moved as its rows with these weights would be."""
    old, new, _ = cohorts
    model = align_model(study.model, new.X, "location", prevalence=0.3)
    case = (old.y == "case").to_numpy()
    weight = np.where(case, 0.3 / case.mean(), 0.7 / (1 - case.mean()))
    known = model.adaptation_.alignment
    for k, name in enumerate(known.names):
        assert known.centre[k] == pytest.approx(np.average(old.X[name], weights=weight))
        assert known.middle[k] == pytest.approx(new.X[name].mean())


def test_a_mix_far_from_that_of_the_alignment_is_said(study, cohorts):
    _, new, other = cohorts
    share = float((new.y == "case").mean())
    assert share == pytest.approx(0.3)
    for prevalence, said in ((share + 0.1, False), (share + 0.2, True), (share - 0.2, True), (None, False)):
        entry = study.validate(new.X, new.y, prevalence=prevalence).result["cohorts"][0]
        notes = [note for note in entry["notes"] if "alignment took the mix" in note]
        assert len(notes) == said
        if said:
            assert f"case {prevalence:.0%}, control {1 - prevalence:.0%} (by the given prevalence)" in notes[0]
            assert "the labelled rows are case 30%, control 70%" in notes[0]
    cases = np.r_[np.flatnonzero(other.y == "case"), np.flatnonzero(other.y != "case")[:12]]
    entry = study.validate(other.X.iloc[cases], other.y.iloc[cases], align="location").result["cohorts"][0]
    assert any("case 40%, control 60% (as in training)" in note for note in entry["notes"])
    unused = study.validate(new.X, new.y, prevalence=0.9, align="none").result["cohorts"][0]["notes"]
    assert unused == ["the prevalence was not used: nothing was aligned"]
    cut = study.validate(new.X, new.y, prevalence=0.3, align="none", cut="prevalence").result["cohorts"][0]
    assert cut["notes"] == []
    assert "the prevalence was not used" in predict(study.model, new.X, prevalence=0.3).notes[-1]
    for call in (study.validate, lambda X, _, **words: predict(study.model, X, **words)):
        with pytest.raises(InputError, match="prevalence is 33; it must be a share"):
            call(new.X, new.y, align="none", prevalence=33)


def test_a_model_that_does_not_rank_is_not_recalibrated(study, cohorts):
    _, new, _ = cohorts
    turned = new.y.map({"case": "control", "control": "case"})
    known = study.validate(new.X, turned, align="none", recalibrate=True, cut="sensitivity:0.9")
    entry = known.result["cohorts"][0]
    assert entry["sentences"][1].startswith("The model ranks the rows the wrong way round")
    assert known.models == {}
    assert [each["name"] for each in entry["adapted"]] == ["recalibrated", "cut"]
    assert all("not shown that the model ranks" in each["why_not"] for each in entry["adapted"])
    rare = np.r_[np.flatnonzero(turned == "case")[:9], np.flatnonzero(turned != "case")]
    known = study.validate(new.X.iloc[rare], turned.iloc[rare], align="none", recalibrate=True)
    assert known.scores["auc"]["low"] is None
    assert known.result["cohorts"][0]["sentences"][1].startswith(
        "It is not shown that the model ranks here: the AUC is 0"
    )
    assert known.models == {}
    few = study.validate(new.X[:9], new.y[:9], align="none", recalibrate=True).result["cohorts"][0]
    assert "recalibrate has 9 labelled rows; it takes 10" in few["adapted"][0]["why_not"]
    with pytest.raises(InputError, match="cut is 'odds:2'; it must be"):
        study.validate(new.X, new.y, cut="odds:2")


def test_a_model_without_probabilities_says_what_is_missing(cohorts):
    old, new, _ = cohorts
    model = recipes.fisher(n_features_to_select=3, random_state=0).fit(old.X, old.y)
    validation = validate(model, new.X, new.y)
    assert "no Brier score, calibration or net benefit" in " ".join(validation.result["cohorts"][0]["notes"])
    assert "probability=True" in validation.html()
    missing = {"brier", "calibration_slope", "calibration_intercept", "net_benefit"}
    assert not missing & set(validation.scores)
    fitted = recipes.fisher(n_features_to_select=3, probability=True, random_state=0).fit(old.X, old.y)
    known = validate(fitted, new.X, new.y)
    assert missing <= set(known.scores)
    assert not any("probabilities" in note for note in known.result["cohorts"][0]["notes"])


def test_what_was_promised_is_compared_and_forecast(study, cohorts):
    _, new, _ = cohorts
    result = study.validate(new.X, new.y).result
    promised, entry = result["promise"]["scores"], result["cohorts"][0]
    assert promised["auc"]["value"] == study.result["scores"]["auc"]["value"]
    score, change = entry["lines"]["as_is"]["scores"]["auc"], entry["lines"]["as_is"]["differences"]["auc"]
    assert change["value"] == pytest.approx(score["value"] - promised["auc"]["value"])
    reach = stats.t.ppf(0.975, 26) * np.hypot(score["error"], promised["auc"]["error"])  # 27 cases in the cohort
    assert change["high"] - change["value"] == pytest.approx(reach)
    known = forecast(study.main.nested.target, promised["auc"]["value"], promised["auc"]["error"], 36, (27, 63))
    assert entry["forecast"]["same"] == pytest.approx(list(known.same))
    assert "brier" not in entry["lines"]["as_is"]["differences"]  # the mix is another one
    assert "brier" in result["by_mix"]
    model = recipes.fisher(n_features_to_select=3, random_state=0).fit(cohorts[0].X, cohorts[0].y)
    with pytest.raises(InputError, match="it is the result of another study"):
        validate(model, new.X, new.y, promise=study.result)


def test_cohorts_that_cannot_be_scored_say_so(study, cohorts):
    _, new, _ = cohorts
    alone = new.y == "case"
    entry = study.validate(new.X[alone], new.y[alone]).result["cohorts"][0]
    assert entry["lines"]["as_is"]["scores"] == {}
    assert any("no row of 'control'" in note for note in entry["notes"])
    assert any(text.startswith("Aligned, which cannot be scored either, used") for text in entry["sentences"])
    assert not any(": ." in text for text in entry["sentences"])
    some = new.y.where(np.arange(len(new.y)) % 3 > 0)
    entry = study.validate(new.X, some).result["cohorts"][0]
    assert (entry["rows"], entry["labelled"]) == (90, 60)
    few = np.r_[np.flatnonzero(alone)[:9], np.flatnonzero(~alone)]
    entry = study.validate(new.X.iloc[few], new.y.iloc[few]).result["cohorts"][0]
    assert entry["lines"]["as_is"]["scores"]["auc"]["low"] is None
    assert any("fewer than 10 rows of case" in note for note in entry["notes"])
    change = entry["lines"]["as_is"]["differences"]["balanced_accuracy"]
    assert change["scarce"] == "the cohort has 9 rows of case"
    assert any("the cohort has 9 rows of case, too few to tell" in text for text in entry["sentences"])
    with pytest.raises(InputError, match="the cohort has 'sick'; the model knows 'case', 'control'"):
        study.validate(new.X, np.where(alone, "sick", "control"))
    with pytest.raises(InputError, match="X has 90 rows and y 3"):
        study.validate(new.X, ["case"] * 3)
    with pytest.raises(InputError, match="no row of the cohort has an outcome"):
        study.validate(new.X, [None] * 90)
    with pytest.raises(InputError, match="prevalence is 2; it must be a share between 0 and 1"):
        study.validate(new.X, new.y, prevalence=2)


def test_several_classes_and_categories_are_validated_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 6)), columns=list("abcdef")).assign(site=rng.choice(["p", "q"], 90))
    y = pd.Series(np.repeat(["one", "two", "three"], 30), name="kind")
    X["a"] += y.map({"one": 0.0, "two": 2.0, "three": 4.0})
    model = marginsieve.SVMSelector(n_features_to_select=2, kernel="clinical", random_state=0).fit(X, y)
    new = X.assign(site="r", a=X["a"] + 3.0)
    entry = validate(model, new, y).result["cohorts"][0]
    assert entry["forecast"] is None
    assert set(entry["lines"]) == {"as_is", "aligned"}
    known = validate(model, X, y).scores["balanced_accuracy"]["value"]
    assert known == pytest.approx(balanced_accuracy_score(y, model.predict(X)))


def test_adapted_models_are_marked_and_scored_out_of_fold(study, cohorts, tmp_path):
    _, new, _ = cohorts
    validation = study.validate(new.X, new.y, recalibrate=True, cut="sensitivity:0.9", prevalence=0.3)
    assert set(validation.models) == {"aligned", "recalibrated", "aligned-recalibrated", "cut", "aligned-cut"}
    model = load(save(validation.models["recalibrated"], tmp_path / "m.marginsieve"))
    assert "fitted to 90 labelled rows of a new cohort" in model.adaptation_.marks[0]
    assert predict(model, new.X).notes[0] == model.adaptation_.marks[0]
    place = list(model.classes_).index("case")
    z = log_odds(study.model.predict_proba(new.X)[:, place])
    intercept, slope = fit_calibration(z, (new.y == "case").to_numpy())
    np.testing.assert_allclose(model.predict_proba(new.X)[:, place], special.expit(intercept + slope * z), atol=1e-9)
    offered = {each["name"]: each for each in validation.result["cohorts"][0]["adapted"]}
    honest, apparent = (offered["recalibrated"][key]["brier"]["value"] for key in ("scores", "apparent"))
    assert apparent < honest
    assert apparent < validation.scores["brier"]["value"]
    moved = validation.models["cut"]
    np.testing.assert_allclose(moved.predict_proba(new.X), study.model.predict_proba(new.X))
    assert np.mean(moved.predict(new.X)[new.y == "case"] == "case") >= 0.9


def test_an_aligned_model_carries_the_cohorts_moments(study, cohorts, tmp_path):
    _, new, _ = cohorts
    known = study.validate(new.X, new.y, align="quantiles")
    model = load(save(known.models["aligned"], tmp_path / "m.marginsieve"))
    frame = known.predictions["cohort"]
    some = predict(model, new.X[:3]).table  # fewer than could be aligned by themselves
    np.testing.assert_allclose(some["score"], frame["score_aligned"][:3])
    np.testing.assert_allclose(predict(study.model, new.X, align="quantiles").table["score"], frame["score_aligned"])
    assert (predict(study.model, new.X).table["score"].to_numpy() == frame["score"].to_numpy()).all()


def test_an_aligned_model_is_for_its_cohort_alone(study, cohorts):
    _, new, other = cohorts
    model = study.validate(new.X, new.y, name="lab 1").models["aligned"]
    words = "rows of lab 1; rows of another cohort are not where the model expects them"
    assert [words in note for note in predict(model, other.X).notes[:2]].count(True) == 1
    with pytest.raises(InputError, match="the model was aligned before, by 90 rows of lab 1"):
        predict(model, other.X, align="location")
    with pytest.raises(InputError, match="the model was aligned before, by 90 rows of lab 1"):
        validate(model, other.X, other.y, align="location")
    entry = validate(model, other.X, other.y).result["cohorts"][0]
    assert set(entry["lines"]) == {"as_is"}
    assert entry["files"] == {}
    assert words in entry["notes"][0]
    assert "No aligned scores: the model was aligned before, by 90 rows of lab 1." in entry["sentences"]


def test_calibration_is_said_by_mean_intercept_and_slope():
    def say(mean, observed, intercept, slope, low=0.01, high=0.9):
        scores = {
            f"calibration_{name}": dict(zip(("value", "low", "high"), ends, strict=True))
            for name, ends in (("intercept", intercept), ("slope", slope))
        }
        chances = {"class": "case", "mean": mean, "observed": observed, "low": low, "high": high}
        return describe_calibration({"lines": {"as_is": {"scores": scores, "chances": chances}}})

    text = say(0.58, 0.36, (-1.18, -1.3, -1.06), (1.58, 1.26, 1.89))
    assert "0.58, and 0.36 observed" in text
    assert "intercept -1.18 (-1.30 to -1.06" in text
    assert "too high; slope 1.58" in text
    assert "too little" in text
    assert "hardly vary" not in text
    text = say(0.33, 0.47, (0.6, 0.1, 1.1), (-162.0, -200.0, -120.0), 0.320, 0.333)
    assert "the ranking is reversed" in text
    assert "hardly vary (95% of the rows 0.320 to 0.333)" in text
    assert "extreme" not in text
    assert "does not show that it is right" in say(0.4, 0.4, (0.0, -0.3, 0.3), (0.61, 0.12, 1.09))


def test_several_cohorts_are_pooled(study, cohorts, tmp_path):
    three = [*cohorts[1:], cohorts[0]]
    parts = [study.validate(each.X, each.y, name=f"lab {k}") for k, each in enumerate(three)]
    few = np.r_[np.flatnonzero(three[0].y == "case")[:9], np.flatnonzero(three[0].y != "case")]
    small = study.validate(three[0].X.iloc[few], three[0].y.iloc[few], name="small")
    joined = join_validations([*parts, small])
    scores = [part.scores["auc"] for part in parts]
    counts = [27, 45, 36]
    known = pool([each["value"] for each in scores], [each["error"] for each in scores], counts)
    pooled = joined.result["pooled"]["auc"]
    assert pooled["value"] == pytest.approx(known.value)
    assert pooled["tau"] == pytest.approx(known.tau)
    assert pooled["cohorts"] == 3
    assert "uncertain with so few cohorts" in pooled["text"]
    assert "(95 %)" in pooled["text"]
    assert joined.result["not_pooled"] == "'small' has no interval and is not pooled."
    two = join_validations([*parts[:2], small]).result
    assert two["pooled"] == {}
    assert "fewer than 3 cohorts with intervals are left" in two["not_pooled"]
    page = joined.html()
    assert page.count("pooled") > 1
    names = {path.name for path in joined.save(tmp_path / "out")}
    assert {"aligned.lab_0.marginsieve", "aligned.lab_1.marginsieve", "validation.json"} <= names
    assert [each["files"] for each in joined.result["cohorts"]] == [
        *({"aligned": f"aligned.lab_{k}.marginsieve"} for k in (0, 1)),
        {},
        {"aligned": "aligned.small.marginsieve"},
    ]
    assert name_endings(["a b", "a/b", "A b", "é"]) == [".a_b", ".a_b-2", ".A_b-3", ".cohort"]
    assert load(tmp_path / "out" / "aligned.lab_1.marginsieve").adaptation_.alignment.cohort == "lab 1"
    assert set(pd.read_csv(tmp_path / "out" / "scores.csv")["cohort"]) == {"lab 0", "lab 1", "lab 2", "small"}
    with pytest.raises(InputError, match="more than one cohort is called 'lab 0'"):
        join_validations([parts[0], parts[0]])


def test_the_page_shows_the_json_and_nothing_from_elsewhere(study, cohorts):
    _, new, _ = cohorts
    result = study.validate(new.X.assign(**{"<b>": 1.0}), new.y, name="<script>", recalibrate=True).result
    json.dumps(result, allow_nan=False)
    page = render_validation(json.loads(json.dumps(result)))
    assert "<script>:" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    for sentence in result["cohorts"][0]["sentences"]:
        assert sentence.split("'")[0][:60].replace("<script>", "&lt;script&gt;") in page
    with pytest.raises(InputError, match="this version draws validations of schema"):
        render_validation(study.result)
    with pytest.raises(InputError, match="cannot be drawn"):
        render_validation({**result, "cohorts": [{}]})


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(cohorts, tmp_path_factory):
    out = tmp_path_factory.mktemp("cohorts")
    for name, each in zip(("old", "new", "other"), cohorts, strict=True):
        each.frame().to_csv(out / f"{name}.csv", index=False)
    words = ["--methods", "fisher", "--n-repeats", "1", "--without", "references", "--next-cohort", "30+50"]
    known = CliRunner().invoke(
        app, ["select", str(out / "old.csv"), "--target", "outcome", "--out", str(out / "result"), *words]
    )
    assert known.exit_code == 0, known.output
    return out


def call(*words):
    known = CliRunner().invoke(app, [str(word) for word in words])
    return known.exit_code, known.output, known.exception


def test_a_study_forecasts_the_cohorts_that_it_is_asked_for(folder):
    result = json.loads((folder / "result" / "result.json").read_text())
    known = result["analyses"]["forecast"]["cohorts"][0]
    assert known["words"] == "30 case and 50 control"
    assert known["counts"] == [30, 50]
    text = " ".join(result["answer"]["sentences"])
    assert f"{known['same'][0]:.2f} to {known['same'][1]:.2f} on 30 case and 50 control" in text
    assert "Measured elsewhere" in text
    code, _, error = call(
        "select", folder / "old.csv", "--target", "outcome", "--out", folder / "no", "--next-cohort", "30,50x"
    )
    assert code == 1
    assert "next_cohort is '50x'; it must be numbers of rows such as 30+50" in str(error)


def test_the_command_validates_whatever_the_score(folder):
    worst = pd.read_csv(folder / "new.csv")
    worst["outcome"] = worst["outcome"].map({"case": "control", "control": "case"})
    worst.to_csv(folder / "worst.csv", index=False)
    tables = [folder / name for name in ("new.csv", "other.csv", "worst.csv")]
    code, out, _ = call("validate", folder / "result", *tables, "--out", folder / "v", "--prevalence", "0.3")
    assert code == 0
    assert "lower than promised by more than chance" in " ".join(out.split())
    assert "Over 3 cohorts" in " ".join(out.split())
    result = json.loads((folder / "v" / "validation.json").read_text())
    assert [each["name"] for each in result["cohorts"]] == ["new", "other", "worst"]
    assert (folder / "v" / "validation.html").read_text().startswith("<!doctype html>")
    code, out, _ = call("validate", folder / "result", tables[0], "--out", folder / "v", "--json")
    assert (code, json.loads(out)["kind"]) == (0, "validation")
    model = folder / "result" / "model.marginsieve"
    code, _, error = call("validate", model, tables[0], "--out", folder / "v2")
    assert "name the column of the outcome (--target)" in str(error)
    code, out, _ = call("validate", model, tables[0], "--target", "outcome", "--out", folder / "v2", "--json")
    assert json.loads(out)["promise"] is None
    _, _, error = call("validate", folder / "result", tables[0], tables[0], "--out", folder / "v2")
    assert "was given more than once" in str(error)
    _, _, error = call("validate", folder / "result", tables[0], "--target", "no", "--out", folder / "v2")
    assert "has no column 'no'" in str(error)


def test_a_cohort_that_is_refused_does_not_stop_the_others(folder):
    frame = pd.read_csv(folder / "new.csv")
    listed = load(folder / "result" / "model.marginsieve").get_feature_names_out()[0]
    frame.loc[0, listed] = np.nan
    frame.to_csv(folder / "gaps.csv", index=False)
    words = ["validate", folder / "result", folder / "gaps.csv"]
    code, out, _ = call(*words, folder / "other.csv", "--out", folder / "some", "--json")
    result = json.loads(out)
    assert code == 1
    assert [each["name"] for each in result["cohorts"]] == ["other"]
    assert "gaps.csv" in result["refused"]["gaps"]
    assert listed in result["refused"]["gaps"]
    assert "Not scored" in (folder / "some" / "validation.html").read_text()
    code, _, error = call(*words, "--out", folder / "none")
    assert code == 1
    assert "gaps.csv" in str(error)
    assert not (folder / "none").exists()
    code, _, error = call("validate", folder / "result", folder / "other.csv", "--prevalence", "33")
    assert "prevalence is 33" in str(error)


def test_predict_says_that_validate_exists_and_aligns_when_asked(folder):
    model, table = folder / "result" / "model.marginsieve", folder / "new.csv"
    code, out, _ = call("predict", model, table, "--json")
    assert code == 0
    assert any("`marginsieve validate` scores the model on it" in note for note in json.loads(out)["notes"])
    _, aligned, _ = call("predict", model, table, "--json", "--align", "location-scale")
    assert json.loads(aligned)["notes"][0].startswith("columns were aligned (location-scale) by 90 rows")
    assert json.loads(aligned)["rows"] != json.loads(out)["rows"]
