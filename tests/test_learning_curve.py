"""Learning curve: parts of training parts, the extrapolation against a power law, the study's section."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import marginsieve
from marginsieve.data import make_cohort
from marginsieve.engine import Pass, score_predictions
from marginsieve.engine.nested import Fold
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.studies.analyses.learning_curve import draw_splits, extrapolate

WITHOUT = ("references", "suspects", "substitutes", "other-lists", "false-share", "each-class")


@pytest.fixture(scope="module")
def folds():
    """Three folds of 24 rows of one class and 48 of the other."""
    codes = (np.arange(72) % 3 == 0).astype(int)
    order = np.argsort(codes, kind="stable")
    tests = [np.sort(order[k::3]) for k in range(3)]
    known = [Fold(f"0.{k}", test, codes[test], None, None, 0.0, ()) for k, test in enumerate(tests)]
    return ClassTarget.from_codes(codes).settle(Classes()), known


def test_parts_are_of_the_training_rows_and_nested(folds):
    target, known = folds
    half, quarter = (draw_splits(target, known, share, 2, 0) for share in (0.5, 0.25))
    assert len(half) == len(quarter) == 6
    for large, small in zip(half, quarter, strict=True):
        assert set(small.train) < set(large.train) < set(np.setdiff1d(np.arange(72), large.test))
        assert np.bincount(target.codes[large.train]).tolist() == [16, 8]
        assert np.bincount(target.codes[small.train]).tolist() == [8, 4]
    assert len({tuple(split.train) for split in half}) == 6
    assert [split.repeat for split in half] == [0, 0, 0, 1, 1, 1]


def test_groups_stay_whole_and_few_rows_are_refused(folds):
    target, known = folds
    grouped = ClassTarget.from_codes(target.codes, groups=np.arange(72) // 3).settle(Classes())
    tests = [np.flatnonzero(np.arange(72) // 3 % 3 == k) for k in range(3)]
    known = [Fold(f"0.{k}", test, target.codes[test], None, None, 0.0, ()) for k, test in enumerate(tests)]
    for split in draw_splits(grouped, known, 0.5, 1, 0):
        assert (np.bincount(split.train // 3, minlength=24)[np.unique(split.train // 3)] == 3).all()
    few = ClassTarget.from_codes((np.arange(72) < 6).astype(int)).settle(Classes())
    assert draw_splits(few, known, 0.25, 1, 0) is None


def passes_of(target, level):
    """Decision values whose AUC is this share of the pairs, exactly."""
    ours, others = np.flatnonzero(target.codes == 1), np.flatnonzero(target.codes == 0)
    decision = np.zeros(len(target))
    lost = round((1 - level) * len(ours) * len(others))
    decision[others] = np.arange(len(others))
    for k, row in enumerate(ours):  # each positive loses to so many of the others
        share = lost // len(ours) + (k < lost % len(ours))
        decision[row] = len(others) - share - 0.5
    return Pass((decision > np.median(decision)).astype(int), decision)


def test_errors_that_fall_like_a_power_are_followed(folds):
    """With a ratio of 0.6 the next gain is 0.6 of the last, whichever step it is taken from."""
    target, _ = folds
    scores = [0.75, 0.8125, 0.85]  # gains of .0625 and .0375, multiples of a pair of the 24 x 48
    passes = {share: [passes_of(target, s)] for share, s in zip((0.25, 0.5, 1.0), scores, strict=True)}
    known = extrapolate(target, passes, 100.0)
    assert [each["value"] for each in known["sizes"]] == pytest.approx(scores, abs=1e-3)
    assert known["gain"]["value"] == pytest.approx(0.0225, abs=1e-3)
    assert known["twice"]["value"] == pytest.approx(0.8725, abs=1e-3)
    assert [each["rows"] for each in known["sizes"]] == [25, 50, 100]
    assert known["twice"]["rows"] == 200
    assert known["twice"]["low"] < 0.8725 < known["twice"]["high"]


def test_more_rows_are_not_expected_to_harm(folds):
    target, _ = folds
    passes = {share: [passes_of(target, s)] for share, s in zip((0.25, 0.5, 1.0), (0.9, 0.85, 0.8), strict=True)}
    known = extrapolate(target, passes, 100.0)
    assert known["gain"]["value"] < 0
    assert known["twice"]["value"] == pytest.approx(known["sizes"][-1]["value"])


def test_without_a_gain_the_range_is_about_the_score(folds):
    """Three equal passes: the value and the influence are those of the whole."""
    target, _ = folds
    one = passes_of(target, 0.8)
    known = extrapolate(target, {0.25: [one], 0.5: [one], 1.0: [one]}, 100.0)
    plain = score_predictions(target, [one], level=0.9)
    ends = (known["twice"]["low"], known["twice"]["high"])
    assert ends == pytest.approx((plain.low["auc"], plain.high["auc"]))
    assert known["gain"]["value"] == 0


@pytest.fixture(scope="module")
def study():
    cohort = make_cohort(120, 30, n_relevant=5, effect=1.0, prevalence=0.4, random_state=0)
    return marginsieve.study(
        cohort.X,
        cohort.y,
        methods="fisher",
        n_features_to_select=5,
        cv=3,
        n_repeats=1,
        without=WITHOUT,
    )


def test_a_study_has_the_scores_of_fits_on_parts(study):
    known = study.result["analyses"]["learning-curve"]
    assert known["score"] == "auc"
    assert [each["rows"] for each in known["sizes"]] == [20, 40, 80]
    assert known["sizes"][-1]["value"] == pytest.approx(study.result["scores"]["auc"]["value"])
    (text,) = [each for each in study.result["answer"]["sentences"] if each.startswith("Trained on 20, 40, 80 rows")]
    assert f"Twice the rows would give about {known['twice']['low']:.2f} to {known['twice']['high']:.2f} (90%)" in text
    page = study.html()
    assert "Score against training rows" in page
    assert 'id="learning"' in page


def test_scores_of_parts_are_those_of_fits_on_them(study):
    run, known = study.run, study.result["analyses"]["learning-curve"]
    rows, target = run.table.rows, run.table.target
    whole = [fold for fold in run.main.nested.folds if fold.repeat == 0]
    areas = []
    for draw in range(known["draws"]):
        won = pairs = 0.0
        for split in [each for each in draw_splits(target, whole, 0.5, known["draws"], 0) if each.repeat == draw]:
            fitted = run.main_method.selector.fit_rows(rows.take(split.train), plan=run.main_method.plan)
            value = fitted.model.decision(rows.table.Z[split.test])[:, 0]
            hit = target.codes[split.test] == target.positive
            won += roc_auc_score(hit, value) * hit.sum() * (~hit).sum()
            pairs += hit.sum() * (~hit).sum()
        areas.append(won / pairs)
    assert known["sizes"][1]["value"] == pytest.approx(np.mean(areas), abs=1e-9)


def test_numbers_and_several_classes_have_a_curve():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    value = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=120)
    options = {
        "methods": "fisher",
        "n_features_to_select": 2,
        "cv": 3,
        "n_repeats": 1,
        "without": ("references", "suspects"),
    }
    known = marginsieve.study(X, value, **options).result["analyses"]["learning-curve"]
    assert known["score"] == "r2"
    three = np.digitize(value, [-0.7, 0.7])
    known = marginsieve.study(X, three, **options).result["analyses"]["learning-curve"]
    assert known["score"] == "balanced_accuracy"
    assert known["twice"]["value"] >= known["sizes"][-1]["value"]
