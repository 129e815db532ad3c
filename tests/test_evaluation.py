"""Metrics against scikit-learn and plain loops; nested scores at chance on shuffled labels; no leak."""

import numpy as np
import pandas as pd
import pytest
from oracles import auc as slow_auc
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import StratifiedKFold
from tiers import long_but

from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.engine import Pass, nested_cv, score_predictions
from marginsieve.engine.scoring import score_difference
from marginsieve.errors import InputError
from marginsieve.outcomes import ClassTarget
from marginsieve.outcomes.scores import ranking_aucs


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 60)
    decision = (rng.normal(size=(2, 60)) + truth).round(1)  # ties
    predicted = (decision > 0.0).astype(int)
    probability = 1.0 / (1.0 + np.exp(-decision))
    passes = [Pass(*rows) for rows in zip(predicted, decision, probability, strict=True)]
    value = score_predictions(ClassTarget.from_codes(truth), passes).value
    means = {
        "balanced_accuracy": np.mean([balanced_accuracy_score(truth, row) for row in predicted]),
        "sensitivity": np.mean([recall_score(truth, row) for row in predicted]),
        "specificity": np.mean([recall_score(truth, row, pos_label=0) for row in predicted]),
        "accuracy": np.mean(predicted == truth),
        "brier": np.mean([brier_score_loss(truth, row) for row in probability]),
        "auc": np.mean([roc_auc_score(truth, row) for row in decision]),
        "pr_auc": np.mean([average_precision_score(truth, row) for row in decision]),
        "g_mean": np.mean(
            [np.sqrt(recall_score(truth, row) * recall_score(truth, row, pos_label=0)) for row in predicted]
        ),
    }
    means |= {
        "ppv": np.mean([precision_score(truth, row) for row in predicted]),
        "npv": np.mean([precision_score(truth, row, pos_label=0) for row in predicted]),
        # the cut at 0 is a probability of one half: a false positive costs what a true one is worth
        "net_benefit": np.mean([np.mean(row * np.where(truth == 1, 1.0, -1.0)) for row in predicted]),
    }
    calibration = [name for name in value if name.startswith("calibration")]
    assert {name: value[name] for name in value if name not in calibration} == pytest.approx(means)
    assert len(calibration) == 2


def test_weighted_auc_is_the_sum_over_pairs(rng):
    decision, positive = rng.normal(size=20).round(1), np.arange(20) < 7
    weights = rng.integers(0, 4, (3, 20)).astype(float)
    fast = [ranking_aucs(decision[None], positive, row)[0] for row in weights]
    np.testing.assert_allclose(fast, [slow_auc(decision, positive, row) for row in weights])


def test_intervals_cover_the_truth():
    """Accuracy of a coin that is right 70 % of the time: 95 % intervals must cover 0.7 about 95 % of the time."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    hits = 0
    for _ in range(200):
        right = rng.random(120) < 0.7
        predicted = np.where(right, truth, 1 - truth)
        scores = score_predictions(ClassTarget.from_codes(truth), [Pass(predicted, predicted.astype(float))])
        hits += scores.low["balanced_accuracy"] <= 0.7 <= scores.high["balanced_accuracy"]
    assert 185 <= hits <= 199


@pytest.mark.parametrize("metric", ["auc", "pr_auc", "balanced_accuracy", "g_mean", "accuracy", "brier"])
def test_what_a_row_adds_is_the_derivative_in_its_weight(metric):
    rng = np.random.default_rng(3)
    truth = (rng.random(40) < 0.4).astype(int)
    decision = np.round(rng.normal(size=40) + truth, 1)  # ties
    probability, predicted = 1.0 / (1.0 + np.exp(-decision)), (decision > 0.5).astype(int)
    slow = np.empty(40)
    for i in range(40):
        ends = []
        for step in (1e-5, -1e-5):
            w = np.ones(40)
            w[i] += step
            recall = [w[truth == k] @ (predicted == truth)[truth == k] / w[truth == k].sum() for k in (0, 1)]
            ends.append(
                {
                    "auc": ranking_aucs(decision[None], truth == 1, w)[0],
                    "pr_auc": average_precision_score(truth == 1, decision, sample_weight=w),
                    "balanced_accuracy": np.mean(recall),
                    "g_mean": np.sqrt(np.prod(recall)),
                    "accuracy": w @ (predicted == truth) / w.sum(),
                    "brier": w @ (probability - truth) ** 2 / w.sum(),
                }[metric]
            )
        slow[i] = (ends[0] - ends[1]) / 2e-5
    for k in (0, 1):  # the classes keep their sizes
        slow[truth == k] -= slow[truth == k].mean()
    fast = ClassTarget.from_codes(truth).scores(Pass(predicted, decision, probability))[metric].influence
    np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_auc_is_over_pairs_within_a_fold():
    """Two models on scales of their own, each without an error: pooled, their values would mix."""
    truth, fold = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    one = Pass(truth, np.array([-1.0, 0.0, 5.0, 6.0]), fold=fold)
    assert score_predictions(ClassTarget.from_codes(truth), [one]).value["auc"] == 1.0
    assert score_predictions(ClassTarget.from_codes(truth), [Pass(truth, one.decision)]).value["auc"] == 0.75
    alone = Pass(truth, one.decision, fold=np.arange(4))  # leave-one-out: no fold has a pair
    assert score_predictions(ClassTarget.from_codes(truth), [alone]).value["auc"] == 0.75


def test_averaged_passes_do_not_narrow_the_interval():
    """The same pass five times is no more evidence than once; with few samples of a class there is no interval."""
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1], 30)
    decision = rng.normal(size=60) + truth
    one = Pass((decision > 0.5).astype(int), decision)
    once, often = (
        score_predictions(ClassTarget.from_codes(truth), [one]),
        score_predictions(ClassTarget.from_codes(truth), [one] * 5),
    )
    for name in ("value", "low", "high", "error"):
        assert getattr(once, name) == pytest.approx(getattr(often, name))
    few = score_predictions(ClassTarget.from_codes(truth[:39]), [one.take(np.arange(39))])  # nine of a class
    assert np.isnan(few.low["auc"])
    assert 0 < few.value["auc"] < 1
    same = score_difference(ClassTarget.from_codes(truth), [one], [one])
    assert same.value["auc"] == 0.0
    assert same.low["auc"] < 0.0 < same.high["auc"]


def test_a_forecast_is_wider_for_a_smaller_cohort():
    rng = np.random.default_rng(5)
    truth = np.repeat([0, 1], 40)
    decision = rng.normal(size=80) + truth
    scores = score_predictions(ClassTarget.from_codes(truth), [Pass((decision > 0.5).astype(int), decision)])
    ends = [scores.forecast([count, count], level=0.95)["auc"] for count in (10, 100, 10**9)]
    widths = [high - low for low, high in ends]
    assert widths[0] > widths[1] > widths[2] > 0.9 * (scores.high["auc"] - scores.low["auc"])


def test_groups_widen_the_interval():
    """Ten copies of each sample are no new evidence: drawn by group, the interval is that of the originals."""
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], 20)
    predicted = np.where(rng.random(40) < 0.75, truth, 1 - truth)
    many, copies = np.repeat(truth, 10), np.repeat(predicted, 10)
    groups = np.repeat(np.arange(40), 10)
    passes = [Pass(copies, copies.astype(float))]
    by_row = score_predictions(ClassTarget.from_codes(many), passes)
    by_group = score_predictions(ClassTarget.from_codes(many, groups=groups), passes)
    width = {name: s.high["accuracy"] - s.low["accuracy"] for name, s in (("row", by_row), ("group", by_group))}
    assert width["group"] > 2 * width["row"]


def test_more_than_two_classes_have_accuracies_only(rng):
    truth = rng.integers(0, 3, 50)
    value = score_predictions(ClassTarget.from_codes(truth), [Pass(truth)]).value
    assert value == {"balanced_accuracy": 1.0, "accuracy": 1.0}


@pytest.mark.parametrize("name", long_but(recipes.names("classes"), "fisher", "svm_rfe"))
def test_shuffled_labels_score_at_chance(name):
    """Selection, size, threshold: if any of them saw a test row, the mean would leave one half."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 150))
    y = np.repeat([0, 1], [24, 36])
    scores = []
    short = {"points": 8} if name in ("l1_cssvm", "svm_l1", "fsv", "ramp_svm") else {}  # values of C
    short |= {"solver": "fast", "budget": 3, "shakes": 0} if name in ("fs_svm", "ramp_fs") else {}
    once = StratifiedKFold(3, shuffle=True, random_state=0)  # inner folds are drawn once, not four times
    short |= {"resamples": 0, "similar": None, "cv": once}  # nothing here reads groups_ and suspects_
    short |= {"improvisations": 15, "memory": 10} if name == "symon" else {}
    for shuffle in range(14):
        nested = nested_cv(recipes.get(name)(**short), X, rng.permutation(y), cv=3, n_repeats=1, random_state=shuffle)
        scores.append(nested.scores().value["balanced_accuracy"])
    assert 0.42 <= np.mean(scores) <= 0.55  # cross-validation on few rows of noise is below one half by itself


def test_planted_signal_is_scored_well_and_repeats_itself():
    cohort = make_cohort(60, 100, n_relevant=8, effect=1.8, random_state=2)
    calls = []
    runs = [
        nested_cv(
            recipes.svm_rfe(),
            cohort.X,
            cohort.y,
            cv=3,
            n_repeats=2,
            random_state=5,
            n_jobs=jobs,
            progress=lambda done, total: calls.append((done, total)),
        )
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].decision, runs[1].decision)
    np.testing.assert_array_equal(runs[0].frequency, runs[1].frequency)
    assert calls == [(k, 6) for k in range(1, 7)] * 2
    scores = runs[0].scores()
    assert scores.value["auc"] > 0.85
    assert all(scores.low[name] <= scores.value[name] <= scores.high[name] for name in scores.value)
    assert scores == runs[1].scores()
    assert len(runs[0].sizes) == 6


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers nothing but what it was shown: predicts by looking up training rows."""

    def fit(self, X, y, groups=None):
        self.classes_, self.seen_ = np.unique(y), {float(v) for v in np.asarray(X)[:, 0]}
        self.groups_ = None if groups is None else set(groups)
        return self

    def decision_function(self, X):
        return np.array([1.0 if float(v) in self.seen_ else -1.0 for v in np.asarray(X)[:, 0]])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def test_test_rows_are_never_seen():
    X = pd.DataFrame({"id": np.arange(30.0)})
    nested = nested_cv(Recorder(), X, np.arange(30) % 2, cv=5, n_repeats=2)
    assert (nested.decision == -1.0).all()
    assert sorted(np.concatenate([fold.test for fold in nested.folds])) == sorted(list(range(30)) * 2)


def test_groups_are_never_split():
    groups = np.repeat(np.arange(15), 2)
    X = pd.DataFrame({"group": groups.astype(float)})
    nested = nested_cv(Recorder(), X, np.repeat(np.arange(15) % 2, 2), groups=groups, cv=3, n_repeats=2)
    assert (nested.decision == -1.0).all()


def test_too_few_of_a_class_for_the_folds():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.repeat(["a", "b"], [3, 17])
    with pytest.raises(InputError, match="class 'a' has 3 samples, fewer than the 5 outer folds: use 3 folds or fewer"):
        nested_cv(recipes.fisher(), X, y)
    with pytest.raises(InputError, match=r"class 'a' has 1 samples.*a score needs at least 2"):
        nested_cv(recipes.fisher(), X[2:], y[2:])
    with pytest.raises(InputError, match="class 'a' has 2 groups"):
        nested_cv(recipes.fisher(), X, y, groups=np.r_[0, 0, 1, np.arange(2, 19)])
    with pytest.raises(InputError, match="cv is 1"):
        nested_cv(recipes.fisher(), X, y, cv=1)


def test_remarks_of_the_folds_are_collected_once():
    X, y = np.random.default_rng(0).normal(size=(24, 5)), np.repeat(["a", "b"], [6, 18])
    nested = nested_cv(recipes.fisher(class_weight="balanced"), X, y, cv=3, n_repeats=2)
    assert nested.notes == ["class 'a' has 4 samples to train on, fewer than cv=5: 4 inner folds were made"]


def test_wrappers_are_looked_into():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    cohort = make_cohort(40, 12, n_relevant=3, effect=2.0, random_state=0)
    X, y = cohort.X.to_numpy(), cohort.y
    inner = recipes.fisher(n_features_to_select=3)
    pipeline = make_pipeline(StandardScaler(), inner)
    for wrapped in (pipeline, GridSearchCV(inner, {"machine__C": [0.1, 1.0]}, cv=2)):
        first, second = (nested_cv(wrapped, X.tolist(), y, cv=3, n_repeats=1, random_state=4) for _ in range(2))
        assert first.sizes.tolist() == [3, 3, 3]
        np.testing.assert_array_equal(first.decision, second.decision)
    with pytest.raises(InputError, match="Pipeline does not take sample_weight"):
        nested_cv(pipeline, X, y, sample_weight=np.ones(40))
    forest = nested_cv(RandomForestClassifier(10), X, y, cv=3, n_repeats=1)
    assert forest.scores().value["auc"] > 0.6
    assert forest.sizes.tolist() == [12, 12, 12]
