"""Decisions: rules for the cut, predictive values at any mix, net benefit, calibration curve, the study's section."""

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

import marginsieve
from marginsieve.data import make_cohort
from marginsieve.engine import Pass, score_predictions
from marginsieve.engine.scoring import average_scores
from marginsieve.errors import InputError
from marginsieve.outcomes import ClassTarget
from marginsieve.outcomes.operating import (
    OPERATING_METRICS,
    CutRule,
    benefit_of_all,
    cut_above,
    move_mix,
    net_benefits,
    scores_at_mix,
    smooth_calibration,
)
from marginsieve.outcomes.scores import CLASS_METRICS


def dcurves_net_benefit(probability, y, thresholds, prevalence=None):
    """As dcurves computes it: rates among the classes, times the prevalence."""
    share = y.mean() if prevalence is None else prevalence
    out = []
    for t in thresholds:
        true = np.mean(probability[y == 1] >= t) * share
        false = np.mean(probability[y == 0] >= t) * (1 - share)
        out.append(true - t / (1 - t) * false)
    return np.array(out)


@pytest.fixture
def predictions(rng):
    y = (np.arange(90) < 30).astype(int)
    return y, 1 / (1 + np.exp(-(rng.normal(size=90) + 1.5 * y - 1)))


def test_net_benefit_is_that_of_dcurves(predictions):
    y, p = predictions
    grid = np.arange(1, 100) / 100
    for share in (None, 0.02, 0.6):
        known = net_benefits(p, y == 1, grid.tolist(), y.mean() if share is None else share)
        found = np.array([score.value for score in known])
        np.testing.assert_allclose(found, dcurves_net_benefit(p, y, grid, share), rtol=0, atol=1e-12)
        ones = dcurves_net_benefit(np.ones(90), y, grid, share)
        np.testing.assert_allclose(benefit_of_all(grid, share or y.mean()), ones, rtol=0, atol=1e-12)


def test_net_benefit_is_that_of_the_package(predictions):
    dcurves, pd = pytest.importorskip("dcurves"), pytest.importorskip("pandas")
    y, p = predictions
    grid = np.arange(5, 95, 5) / 100
    known = dcurves.dca(pd.DataFrame({"y": y, "p": p}), outcome="y", modelnames=["p"], thresholds=grid)
    theirs = known[known["model"] == "p"].sort_values("threshold")["net_benefit"].to_numpy()
    found = [score.value for score in net_benefits(p, y == 1, grid.tolist(), y.mean())]
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [1 / 3, 0.05, 0.7])
def test_predictive_values_are_those_of_rows_with_weights(predictions, share):
    y, p = predictions
    called = p > 0.4
    weight = np.where(y == 1, share / np.mean(y == 1), (1 - share) / np.mean(y == 0))
    known = scores_at_mix(called, y == 1, share)
    expected = {
        "sensitivity": recall_score(y, called),
        "specificity": recall_score(y, called, pos_label=0),
        "ppv": precision_score(y, called, sample_weight=weight),
        "npv": precision_score(y, called, sample_weight=weight, pos_label=0),
        "called": np.average(called, weights=weight),
    }
    assert {name: score.value for name, score in known.items()} == pytest.approx(expected, abs=1e-12)


def test_what_a_row_adds_is_the_slope_in_its_weight(predictions):
    """Of the shares in each class by rows' weights; the mix stays."""
    y, p = predictions
    called, share, step = p > 0.4, 0.2, 1e-6

    def values(weight):
        sensitivity = np.average(called[y == 1], weights=weight[y == 1])
        alarms = np.average(called[y == 0], weights=weight[y == 0])
        right, wrong = share * sensitivity, (1 - share) * alarms
        spared, missed = (1 - share) * (1 - alarms), share * (1 - sensitivity)
        return {"ppv": right / (right + wrong), "npv": spared / (spared + missed), "called": right + wrong}

    known, before = scores_at_mix(called, y == 1, share), values(np.ones(90))
    for row in (0, 7, 29, 30, 60, 89):
        weight = np.ones(90)
        weight[row] += step
        for name, value in values(weight).items():
            assert known[name].influence[row] == pytest.approx((value - before[name]) / step, abs=1e-6)


def test_without_a_row_that_is_called_so_there_is_no_predictive_value():
    y = np.array([True, False, False])
    assert "ppv" not in scores_at_mix(np.zeros(3, dtype=bool), y, 0.3)
    assert "npv" not in scores_at_mix(np.ones(3, dtype=bool), y, 0.3)


def test_at_the_mix_of_the_table_the_scores_are_those_of_the_study(predictions):
    """Values and intervals, from other formulas."""
    y, p = predictions
    target = ClassTarget.from_codes(y)
    one_pass = Pass((p > 0.4).astype(int), p - 0.4, p)
    known = average_scores(target, [target.operating_scores(one_pass, float(y.mean()))], OPERATING_METRICS)
    usual = average_scores(target, [target.scores(one_pass)], CLASS_METRICS)
    for name in ("sensitivity", "specificity", "ppv", "npv"):
        assert (known.value[name], known.low[name], known.high[name]) == pytest.approx(
            (usual.value[name], usual.low[name], usual.high[name])
        )


def test_another_mix_moves_the_odds():
    p = np.array([0.2, 0.5, 0.9])
    odds = p / (1 - p) * (0.1 / 0.9) / (0.4 / 0.6)
    np.testing.assert_allclose(move_mix(p, 0.4, 0.1), odds / (1 + odds))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9, 0.999])
def test_the_cut_is_the_highest_with_enough_above(rng, share):
    value, weight = rng.integers(0, 12, 40) / 3.0, rng.integers(1, 4, 40).astype(float)
    cut = cut_above(value, weight, share)
    assert weight[value > cut].sum() >= share * weight.sum() - 1e-9
    higher = np.unique(value[value > cut])[0]  # one more value below the cut is one too many
    assert weight[value > higher].sum() < share * weight.sum()


def test_rules_reach_what_they_say(rng):
    label = np.where(np.arange(200) < 60, 1.0, -1.0)
    value, weight = rng.normal(size=200) + label, rng.integers(1, 3, 200).astype(float)
    positive = label > 0

    def cut(text):
        return CutRule.read(text).cut(value, label, weight)

    assert np.average(value[positive] > cut("sensitivity:0.9"), weights=weight[positive]) >= 0.9
    assert np.average(value[~positive] <= cut("specificity:0.8"), weights=weight[~positive]) >= 0.8
    above = value > cut("capacity:0.1")
    assert 0.08 < np.average(above, weights=weight) <= 0.1
    moved = weight * np.where(positive, 0.02 / weight[positive].sum(), 0.98 / weight[~positive].sum())
    assert 0.05 < np.average(value > cut("capacity:0.1 at 0.02"), weights=moved) <= 0.1
    edges = np.concatenate([[-9.0], np.sort(value) + 1e-9])
    for text, mass, ratio in (("cost:5", weight, 5.0), ("cost:30 at 0.02", moved, 30.0)):
        prices = [ratio * mass[positive & (value <= e)].sum() + mass[~positive & (value > e)].sum() for e in edges]
        at = cut(text)
        ours = ratio * mass[positive & (value <= at)].sum() + mass[~positive & (value > at)].sum()
        assert ours == pytest.approx(min(prices))


@pytest.mark.parametrize("text", ["sensitivity:1.2", "capacity:x", "cost:-1", "specificity:0.9 at 2", "cost:"])
def test_rules_that_are_none_are_refused(text):
    with pytest.raises(InputError, match="such a rule is"):
        CutRule.read(text)


def test_a_selector_takes_a_rule(blobs):
    X, y = blobs
    cuts = {}
    for rule in ("sensitivity:0.95", "specificity:0.95", "cost:4"):
        selector = marginsieve.recipes.fisher(n_features_to_select=3, threshold=rule, positive=1.0, random_state=0)
        cuts[rule] = selector.fit(X, y).threshold_
    assert cuts["sensitivity:0.95"] < cuts["specificity:0.95"]
    pair = marginsieve.recipes.fisher(n_features_to_select=3, threshold=(1.0, 4.0), positive=1.0, random_state=0)
    assert cuts["cost:4"] == pair.fit(X, y).threshold_
    with pytest.raises(InputError, match="cut exists only between two"):
        marginsieve.SVMSelector(threshold="cost:4").fit(X, np.arange(40) % 3)


def test_the_smooth_curve_follows_a_line():
    """Local lines are exact where the shares lie on a line: here a row for each whole number of hundredths."""
    p = np.repeat(np.arange(1, 100) / 100, 100)
    y = np.concatenate([np.arange(100) < round(100 * (0.1 + 0.8 * q)) for q in np.arange(1, 100) / 100])
    curve = smooth_calibration(p, y)
    np.testing.assert_allclose(curve["y"], 0.1 + 0.8 * np.array(curve["x"]), atol=0.004)  # the shares are rounded
    flat = smooth_calibration(np.full(20, 0.3), np.arange(20) < 5)
    assert flat == {"x": [0.3], "y": [0.25]}


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(120, 15, n_relevant=3, effect=1.5, prevalence=0.3, random_state=0)


def run(cohort, **options):
    options = {"methods": "fisher", "cv": 4, "n_repeats": 2, "without": ("suspects", "substitutes"), **options}
    return marginsieve.study(cohort.X, cohort.y, **options)


@pytest.fixture(scope="module")
def specific(cohort):
    return run(cohort, specificity=0.95, prevalence=0.05)


def test_a_study_cuts_in_inner_folds_and_scores_in_outer_ones(specific):
    known, scores = specific.result["analyses"]["decision"], specific.result["scores"]
    own, other = known["mixes"]
    for name in ("sensitivity", "specificity", "ppv", "npv"):
        assert own["scores"][name] == pytest.approx(scores[name])
    assert known["rule"] == "specificity"
    assert other["share"] == 0.05
    assert other["scores"]["ppv"]["value"] < own["scores"]["ppv"]["value"]
    assert own["scores"]["specificity"]["value"] > 0.85
    counts, values = other["per_1000"], other["scores"]
    assert counts["right"] == round(50 * values["sensitivity"]["value"])
    assert counts["missed"] == pytest.approx(50 - counts["right"], abs=1)
    assert specific.model.threshold == "specificity:0.95"
    references = specific.result["analyses"]["references"]["compared"]
    assert all(row["scores"]["specificity"]["value"] > 0.85 for row in references)


def test_net_benefit_of_a_study_is_for_the_mix_that_was_given(specific):
    known = specific.result["analyses"]["decision"]["net_benefit"]
    nested = specific.main.nested
    y = (nested.target.codes == nested.target.positive).astype(int)
    moved = [move_mix(p, y.mean(), 0.05) for p in nested.probability]
    expected = np.mean([dcurves_net_benefit(p, y, np.array(known["x"]), 0.05) for p in moved], axis=0)
    np.testing.assert_allclose(known["y"], expected, rtol=0, atol=1e-12)
    better = [x for x, low, every in zip(known["x"], known["low"], known["all"], strict=True) if low > max(every, 0)]
    assert known["better"] == better


def test_the_answer_and_the_page_say_what_the_cut_gives(specific):
    known = specific.result["analyses"]["decision"]["mixes"][1]["per_1000"]
    (text,) = [each for each in specific.result["answer"]["sentences"] if "Of 1,000 rows" in each]
    assert text.startswith("Cut for a specificity of 0.95 in inner folds; out of fold sensitivity ")
    assert f"Of 1,000 rows with 0.05 of class case {known['called']} are called case" in text
    page = specific.html()
    assert 'id="decision"' in page
    assert f"{known['called']} called case, {known['right']} of them rightly; {known['missed']} missed" in page
    assert "Net benefit against threshold probability" in page
    assert "smooth curve" in page


def test_cuts_are_for_two_classes(cohort):
    with pytest.raises(InputError, match="does not hold two classes"):
        marginsieve.study(cohort.X, cohort.X.iloc[:, 0].to_numpy() * 1.001, capacity=0.1)
    with pytest.raises(InputError, match="sensitivity and capacity"):
        run(cohort, sensitivity=0.9, capacity=0.1)
    with pytest.raises(InputError, match="must be a share below 1"):
        run(cohort, capacity=1.0)
    three = np.arange(120) % 3
    study = marginsieve.study(cohort.X, three, methods="fisher", cv=3, n_repeats=1, without="references")
    assert study.result["analyses"]["decision"] is None
    assert "two classes" in study.result["protocol"]["left_out"]["decision"]


def test_a_slope_near_0_has_no_interval_for_another_model(rng):
    """Which may have any; the slope of one model on these rows has one."""
    y = np.arange(80) % 2
    p = 1 / (1 + np.exp(-rng.normal(size=80)))
    target = ClassTarget.from_codes(y)
    one_pass = Pass((p > 0.5).astype(int), p - 0.5, p)
    study, fixed = score_predictions(target, [one_pass]), score_predictions(target, [one_pass], fixed=True)
    assert np.isnan(study.low["calibration_slope"])
    assert fixed.low["calibration_slope"] < study.value["calibration_slope"] < fixed.high["calibration_slope"]
    better = 1 / (1 + np.exp(-(rng.normal(size=80) + 4.0 * y - 2.0)))
    study = score_predictions(target, [Pass((better > 0.5).astype(int), better - 0.5, better)])
    assert study.low["calibration_slope"] > 0
