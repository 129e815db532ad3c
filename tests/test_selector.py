"""The estimator: cut, threshold, probabilities, costs, samplers, rows, and its life inside scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginsieve import SVMSelector, recipes
from marginsieve.criteria import ChiSquare
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.fitting import held_out, procedure
from marginsieve.fitting.parts import Smote
from marginsieve.fitting.rows import Rows, with_rest
from marginsieve.kernels import Gaussian, Polynomial
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.outcomes.scores import balanced_threshold, cost_threshold, fit_sigmoid
from marginsieve.outcomes.target import draw_share
from marginsieve.problem import size_grid


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(80, 60, n_relevant=5, effect=2.0, random_state=1)


def test_predicts_like_svc_on_what_it_selected(cohort):
    X, y = cohort.X, cohort.y
    selector = recipes.svm_rfe(C=0.5, n_features_to_select=6, threshold="margin", standardize=False).fit(X, y)
    theirs = SVC(kernel="linear", C=0.5, tol=1e-8).fit(selector.transform(X), y)
    np.testing.assert_allclose(
        selector.decision_function(X), theirs.decision_function(selector.transform(X)), atol=2e-3
    )
    np.testing.assert_array_equal(selector.predict(X), theirs.predict(selector.transform(X)))


def test_attributes(cohort):
    selector = recipes.svm_rfe(n_features_to_select=6, random_state=0).fit(cohort.X, cohort.y)
    assert sorted(selector.ranking_) == list(range(1, 61))
    np.testing.assert_array_equal(selector.support_, selector.ranking_ <= 6)
    assert selector.scores_.shape == (60,)
    assert selector.classes_.tolist() == ["case", "control"]
    assert selector.positive_ == "case"
    assert selector.n_features_ == 6
    assert selector.get_feature_names_out().tolist() == cohort.X.columns[selector.support_].tolist()
    assert selector.feature_names_in_.tolist() == cohort.X.columns.tolist()
    assert selector.constant_ == []
    assert selector.duplicates_ == []


def test_planted_features_are_found(cohort):
    for recipe in (recipes.svm_rfe, recipes.fisher):
        selector = recipe(n_features_to_select=5, threshold="margin").fit(cohort.X, cohort.y)
        assert len(set(selector.get_feature_names_out()) & set(cohort.truth.relevant)) >= 4


@pytest.mark.parametrize("flip", [False, True])
def test_second_class_is_up_whatever_is_positive(cohort, flip):
    y = np.where(cohort.y == "case", "a" if flip else "z", "m")
    selector = recipes.fisher(n_features_to_select=5, random_state=0).fit(cohort.X, y)
    value = selector.decision_function(cohort.X)
    np.testing.assert_array_equal(selector.predict(cohort.X), selector.classes_[(value > 0).astype(int)])
    assert selector.positive_ == ("a" if flip else "z")
    assert roc_auc_score(y == selector.classes_[1], value) > 0.9


# -- the cut on the path -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "size"), [(7, 7), (0.25, 15), (1.0, 60), (np.int64(3), 3)])
def test_given_sizes(cohort, asked, size):
    selector = recipes.svm_rfe(n_features_to_select=asked, threshold="margin").fit(cohort.X, cohort.y)
    assert selector.n_features_ == size


def test_more_than_there_are_is_told(cohort):
    with pytest.warns(UserWarning, match="1000 features were asked for and 60 vary: all of them are selected"):
        selector = recipes.svm_rfe(n_features_to_select=1000, threshold="margin").fit(cohort.X, cohort.y)
    assert selector.n_features_ == 60


@pytest.mark.parametrize("asked", [0, -3, 0.0, 1.5, True, "some"])
def test_wrong_sizes_are_refused(cohort, asked):
    with pytest.raises(InputError, match="n_features_to_select is"):
        recipes.svm_rfe(n_features_to_select=asked).fit(cohort.X, cohort.y)


def test_the_size_is_that_of_the_best_smoothed_score_less_a_price():
    sizes = np.array([2.0**k for k in range(12)])  # neighbours are a factor of two apart: nothing is smoothed
    flat, peak = np.full(12, 0.8), np.where(sizes == 1024, 0.9, 0.8)
    assert held_out.choose_size(sizes, peak, 2048, "best") == 1024
    assert held_out.choose_size(sizes, flat, 2048, "auto") == 32  # 32 and 64 are as far from the root of the columns
    assert held_out.choose_size(sizes, flat, 300, "auto") == 16  # next to 17
    assert held_out.choose_size(sizes, flat, 10**6, "auto") == 64  # next to 50
    assert held_out.choose_size(sizes, peak, 2048, "auto") == 1024  # a gain of .1 against a price of .04
    assert held_out.choose_size(sizes, np.where(sizes == 1024, 0.83, 0.8), 2048, "auto") == 32
    dense = np.arange(1.0, 101.0)
    spike = np.where(dense == 90, 0.9, 0.8) + np.where(np.abs(dense - 20) < 6, 0.05, 0.0)
    assert 15 <= held_out.choose_size(dense, spike, 100, "best") <= 25  # one size that stands out alone is noise
    away = np.abs(np.log2(dense[:, None] / dense))
    weight = np.maximum(1 - away, 0)
    np.testing.assert_allclose(held_out.smooth_scores(dense, spike), (weight * spike).sum(1) / weight.sum(1))


def test_folds_are_repeated_where_rows_are_few(rng):
    for rows, times in ((60, 4), (600, 2), (2400, 1)):
        part = Rows(None, None, ClassTarget.from_codes(np.arange(rows) % 2))
        draws, _ = held_out.inner_folds(5, part, rng, repeated=True)
        assert len(draws) == times
        assert all(sorted(np.concatenate([test for _, test in folds])) == list(range(rows)) for folds in draws)
    assert len(held_out.inner_folds(5, part, rng)[0]) == 1


def test_a_list_ends_before_what_is_not_allowed(cohort):
    from marginsieve.estimators.inputs import encode
    from marginsieve.fitting.procedure import ListRequest

    selector = recipes.fisher(n_features_to_select="auto", random_state=0)
    encoded = encode(selector, cohort.X, cohort.y, None, None, None)
    whole = selector.fit_rows(encoded)
    order, size = whole.path.order, whole.path.n_selected
    assert size > 2
    allowed = np.ones(len(order), dtype=bool)
    allowed[order[size - 1]] = False
    assert selector.fit_rows(encoded, lists=ListRequest(allowed=allowed)).path.n_selected < size
    given = recipes.fisher(n_features_to_select=size, random_state=0)
    assert given.fit_rows(encoded, lists=ListRequest(allowed=allowed)).path.n_selected == size


def test_inner_folds_choose_a_size_and_say_how(cohort):
    best, parsimonious = (
        recipes.svm_rfe(n_features_to_select=rule, random_state=0).fit(cohort.X, cohort.y) for rule in ("best", None)
    )
    assert parsimonious.n_features_ <= best.n_features_ < 60
    scored = [step for step in best.path_.steps if not np.isnan(step.score)]
    top = max(scored, key=lambda step: step.score)
    chosen = {step.size: step for step in scored}
    assert chosen[best.n_features_].score == top.score
    assert chosen[parsimonious.n_features_].score >= top.score - chosen[best.n_features_].score_error - 1e-12


def test_size_grid():
    assert size_grid(4, 2) == (2, 3, 4)
    many = size_grid(2000, 1)
    assert 25 < len(many) <= 40
    assert (many[0], many[-1]) == (1, 2000)
    assert size_grid(500, 15)[0] >= 15
    assert size_grid(5, 9) == (5,)


# -- threshold ---------------------------------------------------------------------------------------------------


def test_cuts_on_values_known_by_heart():
    value, label = np.array([5.0, 3.0, 1.0, 0.0, -1.0, -2.0, -9.0]), np.array([1.0, 1, 1, -1, -1, -1, -1])
    ones = np.ones(7)
    assert balanced_threshold(value, label, ones) == (3.0 + -1.5) / 2
    assert cost_threshold(value, label, ones, 1.0, 1.0) == 0.5
    label[3] = 1.0  # now 0.0 is a positive among negatives' neighbours
    label[2] = -1.0
    assert cost_threshold(value, label, ones, 10.0, 1.0) == 2.0
    assert cost_threshold(value, label, ones, 1.0, 10.0) == -0.5
    repeated = np.array([1, 2, 1, 3, 1, 1, 2])
    assert balanced_threshold(value, label, repeated.astype(float)) == balanced_threshold(
        np.repeat(value, repeated), np.repeat(label, repeated), np.ones(repeated.sum())
    )


def test_cost_cut_is_the_cheapest_of_all(rng):
    value, label = rng.normal(size=40).round(1), rng.choice([-1.0, 1.0], 40)
    fp, fn = 2.0, 3.0

    def bill(at):
        return fp * np.sum((value > at) & (label < 0)) + fn * np.sum((value <= at) & (label > 0))

    every = [bill(at) for at in np.concatenate([[-99], np.unique(value)])]
    assert bill(cost_threshold(value, label, np.ones(40), fp, fn)) == min(every)


def test_auto_threshold(cohort):
    X, y = cohort.X, cohort.y

    def fitted(**settings):
        return recipes.fisher(n_features_to_select=5, random_state=0, **settings).fit(X, y).threshold_

    balanced = fitted(threshold="balanced")
    assert balanced != 0.0
    assert fitted() == balanced
    assert fitted(class_weight="balanced") != 0.0
    assert fitted(class_weight={"case": 2.0}) == 0.0
    assert fitted(negative_weight=0.5) == 0.0
    assert fitted(threshold="margin") == 0.0
    assert fitted(threshold=0.3) == 0.3
    assert fitted(threshold=(1.0, 50.0)) < fitted(threshold=(50.0, 1.0))


def test_the_cut_is_where_the_decision_is_zero(cohort):
    X, y = cohort.X, cohort.y
    plain = recipes.fisher(n_features_to_select=5, threshold="margin").fit(X, y)
    moved = recipes.fisher(n_features_to_select=5, threshold=0.4).fit(X, y)
    sign = 1.0 if moved.positive_ == moved.classes_[1] else -1.0
    np.testing.assert_allclose(moved.decision_function(X), plain.decision_function(X) - sign * 0.4)


def test_balanced_threshold_is_the_midpoint_on_held_out_rows(cohort):
    """Rebuilt by hand: the same folds, the whole selection in each."""
    X, y = cohort.X.to_numpy(), cohort.y.to_numpy()
    folds = list(StratifiedKFold(4, shuffle=True, random_state=5).split(X, y))
    selector = recipes.fisher(n_features_to_select=5, cv=folds, positive="case").fit(X, y)
    value = np.empty(len(y))
    for train, test in folds:
        inner = recipes.fisher(n_features_to_select=5, threshold="margin").fit(X[train], y[train])
        value[test] = -inner.decision_function(X[test])
    expected = 0.5 * (np.median(value[y == "case"]) + np.median(value[y == "control"]))
    assert selector.threshold_ == pytest.approx(expected, abs=1e-3)


def test_a_rare_separable_class_is_found():
    """6 of 105: class costs do nothing on a separable table; the held-out midpoint does."""
    cohort = make_cohort(105, 1000, n_relevant=40, prevalence=6 / 105, effect=1.2, random_state=3)
    X, y = cohort.X.to_numpy(), (cohort.y == "case").to_numpy()
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    value, plain = np.empty(105), np.empty(105)
    for train, test in folds.split(X, y):
        settings = {"n_features_to_select": 200, "random_state": 0, "cv": 4}
        value[test] = recipes.fisher(**settings).fit(X[train], y[train]).decision_function(X[test])
        scaled = make_pipeline(StandardScaler(), SVC(kernel="linear", class_weight="balanced"))
        plain[test] = scaled.fit(X[train], y[train]).decision_function(X[test])
    assert roc_auc_score(y, value) > 0.9
    assert balanced_accuracy_score(y, value > 0) > 0.8
    assert balanced_accuracy_score(y, plain > 0) < 0.7


def test_wrong_thresholds_are_refused(cohort):
    for threshold in ("middle", (1.0,), (1.0, -1.0), None, True):
        with pytest.raises(InputError, match="threshold is"):
            recipes.fisher(threshold=threshold, n_features_to_select=3).fit(cohort.X, cohort.y)


# -- probabilities, costs, weights ---------------------------------------------------------------------------------


def test_probabilities(cohort):
    selector = recipes.svm_rfe(n_features_to_select=5, probability=True, random_state=0).fit(cohort.X, cohort.y)
    p = selector.predict_proba(cohort.X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    value = selector.decision_function(cohort.X)
    np.testing.assert_array_equal(np.argsort(p[:, 1], kind="stable"), np.argsort(value, kind="stable"))
    assert not hasattr(recipes.svm_rfe(), "predict_proba")
    with pytest.raises(AttributeError, match=r"no attribute 'predict_proba': probability is False; use probability=Tr"):
        recipes.svm_rfe(n_features_to_select=5, random_state=0).fit(cohort.X, cohort.y).predict_proba(cohort.X)


def test_the_sigmoid_is_the_likeliest(rng):
    truth = rng.random(4000)
    value = 3.0 * rng.normal(size=4000)
    label = np.where(truth < 1 / (1 + np.exp(-(0.8 * value - 0.5))), 1.0, -1.0)
    a, b = fit_sigmoid(value, label, np.ones(4000))
    assert a == pytest.approx(0.8, abs=0.1)
    assert b == pytest.approx(-0.5, abs=0.15)


def test_costs_by_class():
    y, weight = np.array([0, 0, 0, 1, 1]), np.array([1.0, 1.0, 2.0, 1.0, 1.0])

    def costs(**settings):
        outcome = Classes(positive=1, **settings)
        return outcome.read(np.zeros((5, 1)), y, weight).settle(outcome).machine_target.cost[0]

    np.testing.assert_allclose(costs(), weight)
    np.testing.assert_allclose(costs(negative_weight=0.1), [0.1, 0.1, 0.2, 1.0, 1.0])
    np.testing.assert_allclose(costs(class_weight={0: 3.0, 1: 1.0}), [3, 3, 6, 1, 1])
    balanced = costs(class_weight="balanced")
    assert balanced[y == 0].sum() == pytest.approx(balanced[y == 1].sum())


def test_weights_are_repetitions(cohort, rng):
    X, y = cohort.X.to_numpy(), cohort.y.to_numpy()
    times = rng.integers(0, 3, len(y))
    settings = {"n_features_to_select": 4, "threshold": "margin"}
    for recipe in (recipes.svm_rfe, recipes.fisher):
        weighted = recipe(**settings).set_params(machine__tol=1e-9).fit(X, y, sample_weight=times)
        repeated = recipe(**settings).set_params(machine__tol=1e-9)
        repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        np.testing.assert_array_equal(weighted.ranking_, repeated.ranking_)
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


# -- more than two classes -----------------------------------------------------------------------------------------


def test_three_classes_share_one_feature_set():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.assign(**{f"noise{j}": np.random.default_rng(j).normal(size=150) for j in range(10)})
    selector = recipes.svm_rfe(random_state=0, probability=True).fit(X, y)
    assert selector.decision_function(X).shape == (150, 3)
    assert any("petal" in name for name in selector.get_feature_names_out())
    np.testing.assert_allclose(selector.predict_proba(X).sum(axis=1), 1.0)
    # with two features the middle class's machine is flat, and rows on the others' margins tie with it
    assert recipes.svm_rfe(n_features_to_select=3).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("settings", [{"negative_weight": 0.5}, {"threshold": "balanced"}, {"threshold": 0.1}])
def test_what_needs_two_classes_says_so(settings):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="y has 3 classes"):
        recipes.svm_rfe(n_features_to_select=2, **settings).fit(X, y)


# -- sampler, prefilter, ensemble, rows, groups --------------------------------------------------------------------


def test_smote_touches_training_rows_alone(cohort, monkeypatch):
    seen = []

    class Spy(SMOTE):
        def fit_resample(self, X, y):
            out = super().fit_resample(X, y)
            seen.append((len(y), len(out[1])))
            return out

    selector = recipes.svm_rfe(n_features_to_select=5, sampler=Spy(k_neighbors=3), random_state=0)
    selector.fit(cohort.X, cohort.y)
    assert [before for before, _ in seen] == [80, 64, 64, 64, 64, 64]  # all rows once, four fifths in each inner fold
    assert all(after > before for before, after in seen)
    named = recipes.svm_rfe(n_features_to_select=5, sampler="smote", random_state=0).fit(cohort.X, cohort.y)
    assert named.score(cohort.X, cohort.y) > 0.8
    np.testing.assert_array_equal(named.ranking_, clone(named).set_params(n_jobs=2).fit(cohort.X, cohort.y).ranking_)


def test_smote_makes_four_new_rows_for_each_of_the_rarest_class(rng):
    X, y = rng.normal(size=(40, 3)), np.where(np.arange(40) < 8, "rare", "usual")
    Z, labels = Smote(random_state=0).fit_resample(X, y)
    assert (labels == "rare").sum() == 8 * 5
    assert (labels == "usual").sum() == 32
    np.testing.assert_array_equal(Z[:40], X)
    low, high = X[:8].min(axis=0), X[:8].max(axis=0)
    assert ((Z[40:] >= low) & (Z[40:] <= high)).all()  # between rows of the class


def test_smote_from_each_row_goes_to_different_neighbors(rng):
    """Every row of the class is the start of four new ones, each towards another of its nearest five."""
    X, y = rng.normal(size=(40, 3)), np.where(np.arange(40) < 8, "rare", "usual")
    Z, labels = Smote(bases="each", random_state=0).fit_resample(X, y)
    assert (labels[40:] == "rare").all()
    np.testing.assert_array_equal(Z[:40], X)
    distance = np.linalg.norm(X[:8, None] - X[None, :8], axis=2)
    for i, new in enumerate(Z[40:].reshape(8, 4, 3)):
        near = np.argsort(distance[i])[1:6]
        off, way = new - X[i], X[near] - X[i]  # a new row is X[i] + share * way to one neighbor
        share = np.einsum("tj,kj->tk", off, way) / np.sum(way**2, axis=1)
        apart = np.linalg.norm(off[:, None] - share[:, :, None] * way[None], axis=2)
        ends = apart.argmin(axis=1)
        assert len(set(ends)) == 4
        assert (apart.min(axis=1) < 1e-12).all()
        assert ((share[np.arange(4), ends] >= 0) & (share[np.arange(4), ends] <= 1)).all()
    with pytest.raises(InputError, match=r'percent is 250; with bases="each" it must be 100, 200 and so on'):
        Smote(percent=250, bases="each").fit_resample(X, y)
    with pytest.raises(InputError, match="bases is 'all'; it must be one of"):
        Smote(bases="all").fit_resample(X, y)


@pytest.mark.parametrize("name", recipes.names("classes"))
def test_every_recipe_takes_a_sampler(name, cohort):
    for sampler in ("smote", RandomOverSampler(random_state=0)):
        short = {"solver": "fast", "shakes": 0} if name in ("fs_svm", "ramp_fs") else {}
        asked = {"n_features_to_select": 5, "threshold": "margin", "random_state": 0, **short}
        selector = recipes.get(name)(sampler=sampler, **asked)
        selector.fit(cohort.X, cohort.y)
        assert len(selector.model_.solutions[0].coef) > 80  # the final machine has the new rows too
        assert selector.n_features_ == 5


def test_smote_with_few_rows_takes_fewer_neighbours_and_says_so(cohort):
    few = np.r_[np.flatnonzero(cohort.y == "case")[:3], np.flatnonzero(cohort.y == "control")]
    selector = recipes.svm_rfe(n_features_to_select=5, sampler="smote", threshold="margin")
    with pytest.warns(UserWarning, match="SMOTE has 3 rows of the rarest class: 2 neighbors"):
        selector.fit(cohort.X.iloc[few], cohort.y.iloc[few])
    assert len(selector.model_.solutions[0].coef) == len(few) + 12
    one = few[2:]
    with pytest.raises(InputError, match=r"^SMOTE interpolates .* which has 1 in a training part: it needs 2"):
        selector.fit(cohort.X.iloc[one], cohort.y.iloc[one])
    with pytest.raises(InputError, match="SMOTE failed on a training part whose rarest class has 3 rows"):
        selector.set_params(sampler=SMOTE()).fit(cohort.X.iloc[few], cohort.y.iloc[few])
    with pytest.raises(InputError, match="sample_weight and sampler"):
        selector.fit(cohort.X, cohort.y, sample_weight=np.arange(1, 81))


@pytest.mark.parametrize(
    "make",
    [
        lambda: recipes.svm_rfe(kernel="gaussian", prefilter=("fisher", 8)),
        lambda: recipes.kp_cssvm(final="start", prefilter=("fisher", 8)),
        lambda: recipes.kp_cssvm(max_samples=40),
        lambda: recipes.kp_cssvm(sampler="smote"),
        lambda: recipes.kp_svm(probability=True, keep=["g01", "g02", "g03"]),
    ],
)
def test_at_sizes_is_the_model_of_fit(make, cohort):
    """The same rows, synthetic ones included, and the same scale, without a seed too."""
    selector = make().set_params(n_features_to_select=5, threshold="margin").fit(cohort.X, cohort.y)
    again = next(selector.at_sizes(cohort.X, cohort.y, [5]))
    np.testing.assert_allclose(again.decision_function(cohort.X), selector.decision_function(cohort.X), atol=1e-9)
    kept = len(selector.keep or [])
    assert next(selector.at_sizes(cohort.X, cohort.y, [1])).n_features_ == max(1, kept)


def test_weights_of_sampled_rows_outlast_oversampling(rng):
    """max_samples= weighs the negatives that it keeps; a sampler that adds nothing must not change the fit."""
    X, y = rng.normal(size=(200, 6)), (np.arange(200) < 15).astype(int)
    X[:15, 0] += 1.5
    settings = {"random_state": 0, "threshold": "margin", "n_features_to_select": 3, "max_samples": 40, "C": 10.0}
    plain = recipes.kp_cssvm(class_weight=None, **settings).fit(X, y)
    sampled = recipes.kp_cssvm(class_weight=None, sampler=Smote(percent=1e-6), **settings).fit(X, y)
    np.testing.assert_allclose(sampled.decision_function(X), plain.decision_function(X), atol=1e-3)


def test_a_sample_is_fitted_as_closely_as_so_many_rows(rng):
    """Strata weigh what they weigh among all rows, and a sampled row as much as any row."""
    y = np.arange(3000) % 10 == 0
    weight = np.where(np.arange(3000) < 600, 2.0, 1.0)
    target = Classes().read(np.zeros((3000, 1)), y, weight)
    rows, sampled = target.sample(400, rng)
    assert len(rows) == 400
    assert sampled[rows].mean() == pytest.approx(target.weight.mean())
    share = target.weight[y].sum() / target.weight.sum()
    assert sampled[rows][y[rows]].sum() / sampled[rows].sum() == pytest.approx(share)


def test_eliminations_on_a_sample_keep_what_is_planted():
    """Where 250 rows stood for all, machines fitted them so closely that the strongest columns were dropped first."""
    cohort = make_cohort(6000, 60, 10, n_categorical=10, n_categorical_relevant=4, prevalence=0.25, effect=0.5)
    small = recipes.clinical_rfe(max_samples=250, n_features_to_select=14, threshold="margin", random_state=0)
    small.fit(cohort.X, cohort.y)
    planted = {*cohort.truth.relevant, *cohort.truth.categorical}
    found = planted & set(cohort.X.columns[small.support_])
    assert len(found) >= 9
    assert len(set(cohort.truth.categorical) & found) == 4


def test_prefilter_searches_among_the_best(cohort):
    fisher = recipes.fisher(n_features_to_select=5, threshold="margin").fit(cohort.X, cohort.y)
    both = recipes.svm_rfe(n_features_to_select=5, threshold="margin", prefilter=("fisher", 20), keep=["g01"])
    both.fit(cohort.X, cohort.y)
    inside = set(np.flatnonzero(both.ranking_ <= 20)) - {0}
    assert inside <= set(np.flatnonzero(fisher.ranking_ <= 20))
    assert both.support_[0]
    assert sorted(both.ranking_) == list(range(1, 61))


def test_ensembles_average_rankings(cohort):
    settings = {"n_features_to_select": 5, "threshold": "margin", "random_state": 0}
    selector = recipes.svm_rfe(ensemble=10, **settings).fit(cohort.X, cohort.y)
    assert "averaged over 10 subsamples" in selector.path_.stop_reason
    assert len(set(selector.get_feature_names_out()) & set(cohort.truth.relevant)) >= 4
    again = recipes.svm_rfe(ensemble=10, **settings).fit(cohort.X, cohort.y)
    np.testing.assert_array_equal(selector.ranking_, again.ranking_)


def test_the_members_of_an_ensemble_judge_what_they_draw_share(cohort):
    """Each subsample selects and fits alone; the threshold is the midpoint of its values on the other rows."""
    from marginsieve.fitting.held_out import LEFT_OUT

    given = {"n_features_to_select": 5, "random_state": 0}
    made = recipes.fisher(ensemble=6, **given).fit(cohort.X, cohort.y)
    y = np.unique(cohort.y, return_inverse=True)[1]
    rng = np.random.default_rng(np.random.SeedSequence(0))
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(6)
    values, labels, ranks = [], [], []
    for seed in seeds:
        out = draw_share(y, None, LEFT_OUT, np.random.default_rng(seed), at_least=1, leave=2)
        alone = recipes.fisher(threshold="margin", **given).fit(cohort.X[~out], cohort.y[~out])
        values.append(made._sign * alone.decision_function(cohort.X[out]))
        labels.append(np.where(cohort.y[out] == made.positive_, 1.0, -1.0))
        ranks.append(alone.ranking_)
        assert abs(out.mean() - LEFT_OUT) < 0.05
    value, label = np.concatenate(values), np.concatenate(labels)
    middle = 0.5 * (np.median(value[label > 0]) + np.median(value[label < 0]))
    assert made.threshold_ == pytest.approx(middle, abs=0.1 * np.ptp(value))  # weights share a row among its times
    order = np.argsort(np.mean(np.log(np.array(ranks) + 4.0), axis=0), kind="stable")
    np.testing.assert_array_equal(np.argsort(made.ranking_), order)


def test_an_ensemble_needs_no_inner_folds(cohort, monkeypatch):
    monkeypatch.setattr(procedure, "hold_out", None)
    given = {"ensemble": 8, "random_state": 0, "probability": True}
    one, two = (recipes.svm_rfe(n_jobs=jobs, **given).fit(cohort.X, cohort.y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.ranking_, two.ranking_)
    assert one.threshold_ == two.threshold_
    assert one.n_features_ == two.n_features_
    assert one.score(cohort.X, cohort.y) > 0.8
    chance = one.predict_proba(cohort.X)[:, 1]
    assert chance.min() < 0.5 < chance.max()


def test_no_group_is_in_and_out_of_a_subsample(cohort):
    y, groups = np.arange(60) % 3 // 2, np.arange(60) // 4  # every group holds both classes
    for seed in range(20):
        out = draw_share(y, groups, 0.2, np.random.default_rng(seed), at_least=1, leave=2)
        assert not set(groups[out]) & set(groups[~out])
        assert len(np.unique(y[~out])) == 2
        assert 0 < out.sum() < 30
    rare = np.r_[np.zeros(3, int), np.ones(120, int)]  # whose groups hold rows of the other class too
    groups = np.r_[[0, 1, 2], np.repeat(np.arange(40), 3)]
    for seed in range(100):
        out = draw_share(rare, groups, 0.2, np.random.default_rng(seed), at_least=1, leave=2)
        assert min(len(np.unique(groups[(rare == code) & ~out])) for code in (0, 1)) >= 2


def test_a_class_with_one_row_has_no_row_draw_share(cohort):
    y = np.where(np.arange(len(cohort.y)) == 0, "lone", "rest")
    with pytest.raises(InputError, match="class 'lone' has 1 samples"):
        recipes.stable_fisher(random_state=0).fit(cohort.X, y)
    two = np.where(np.arange(len(cohort.y)) < 2, "pair", "rest")
    recipes.stable_fisher(ensemble=4, n_features_to_select=2, random_state=0, class_weight="balanced").fit(
        cohort.X, two
    )


@pytest.mark.parametrize("name", ["svm_rfe", "clinical_rfe"])
def test_ensembles_are_more_stable(name):
    """Over 12 halves of a cohort, the ten features selected agree more when the ranking is averaged."""
    from marginsieve.data import make_cohort
    from marginsieve.engine.scoring import nogueira

    cohort, rng = (
        make_cohort(n_samples=100, n_features=150, n_relevant=12, effect=0.9, random_state=3),
        np.random.default_rng(0),
    )
    parts = [np.sort(rng.permutation(100)[:60]) for _ in range(12)]
    found = []
    for ensemble in (None, 15):
        given = {"n_features_to_select": 10, "threshold": "margin", "ensemble": ensemble, "random_state": 0}
        made = (recipes.get(name)(**given).fit(cohort.X.iloc[rows], cohort.y.iloc[rows]) for rows in parts)
        found.append(nogueira([np.flatnonzero(selector.support_) for selector in made], 150).value)
    assert found[1] > found[0] + 0.03


@pytest.mark.parametrize("name", ["kp_svm", "kp_cssvm"])
def test_members_judge_the_machine_that_is_fitted_in_the_end(name, rng):
    """Learned kernel weights are not averaged: neither the members' values nor the last machine have them."""
    y, yt = np.arange(80) % 3 // 2, np.arange(1500) % 3 // 2
    X, T = rng.normal(size=(80, 100)), rng.normal(size=(1500, 100))
    X[:, :8] += y[:, None]
    T[:, :8] += yt[:, None]
    made = recipes.get(name)(ensemble=8, n_features_to_select=10, random_state=0, probability=True).fit(X, y)
    called = made.predict(T)
    assert 0.5 * (called[yt == 1].mean() + 1 - called[yt == 0].mean()) > 0.8
    assert abs(made.predict_proba(T)[:, 1].mean() - yt.mean()) < 0.1


def test_one_width_for_all_where_members_prefilter(rng):
    y = np.arange(60) % 3 // 2
    X = rng.normal(size=(60, 100))
    X[:, :5] += y[:, None]
    frozen = Gaussian(average=False)
    given = {"kernel": frozen, "prefilter": ("t_test", 10), "threshold": "margin", "random_state": 0}
    made = recipes.svm_rfe(ensemble=6, n_features_to_select=9, **given).fit(X, y)
    weight = made.model_.view.feature_weight[made.model_.view.features]
    np.testing.assert_allclose(weight, weight[0])
    assert weight[0] == pytest.approx(1 / 10)


def test_columns_that_look_like_ids_are_told(rng):
    from marginsieve import MKLClassifier

    y = np.arange(40) % 2
    frame = pd.DataFrame({"patient": [f"P{i}" for i in range(40)], "a": rng.normal(size=40) + y})
    told = "nearly every row of 'patient' has a category of its own"
    with pytest.warns(UserWarning, match=told):
        recipes.clinical_rfe(n_features_to_select=1, threshold="margin").fit(frame, y)
    with pytest.warns(UserWarning, match=told):
        MKLClassifier().fit(frame, y)


def test_many_rows_need_max_samples(rng):
    m = 10_050
    y = np.where(np.arange(m) < 300, "bad", "good")
    X = rng.normal(size=(m, 6))
    X[:300, 2] += 2.0
    with pytest.raises(InputError, match=r"10050 rows .* pass max_samples=5000"):
        recipes.svm_rfe(kernel="gaussian", n_features_to_select=1).fit(X, y)
    whole = recipes.svm_rfe(class_weight="balanced", n_features_to_select=1, threshold="margin").fit(X, y)
    assert whole.support_[2]  # the linear kernel with few columns takes them all
    assert len(whole.rows_) == m
    settings = {"n_features_to_select": 1, "max_samples": 900, "random_state": 0}
    with pytest.warns(UserWarning, match="puts every training row into class good: try class_weight='balanced'"):
        recipes.svm_rfe(**settings).fit(X, y)
    selector = recipes.svm_rfe(class_weight="balanced", **settings).fit(X, y)
    assert len(selector.rows_) == 900
    assert set(range(300)) <= set(selector.rows_)  # every positive
    assert selector.support_[2]
    assert balanced_accuracy_score(y, selector.predict(X)) > 0.8
    with pytest.raises(InputError, match="max_samples is 20000; for this method it must be at most 10000"):
        recipes.svm_rfe(kernel="gaussian", max_samples=20_000).fit(X, y)


def test_rows_left_out_are_scored_and_weights_make_up_for_them(rng):
    y = np.where(np.arange(1000) < 50, 1, 0)
    sample, weight = ClassTarget.from_codes(y).sample(200, rng)
    assert len(sample) == 200
    assert weight[sample][y[sample] == 0].sum() == pytest.approx(190)
    assert weight[y == 1] == pytest.approx(0.2)
    folds = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    spread = with_rest(folds, sample, 1000, rng)
    assert sorted(np.concatenate([test for _, test in spread])) == list(range(1000))
    assert all(set(train) <= set(sample) for train, _ in spread)


def test_groups_stay_together_in_inner_folds(cohort, monkeypatch):
    groups = np.repeat(np.arange(40), 2)
    y = np.repeat(np.arange(40) % 2, 2)
    seen = []
    original = procedure.hold_out

    def spy(plan, part, sizes, folds, seed, n_jobs):
        seen.extend(folds)
        return original(plan, part, sizes, folds, seed, n_jobs)

    monkeypatch.setattr(procedure, "hold_out", spy)
    recipes.fisher(n_features_to_select=3, random_state=0).fit(cohort.X, y, groups=groups)
    assert len(seen) == 5
    assert all(not set(groups[train]) & set(groups[test]) for train, test in seen)


def test_fewer_inner_folds_than_asked_is_told(cohort):
    few = np.r_[np.flatnonzero(cohort.y == "case")[:3], np.flatnonzero(cohort.y == "control")]
    warning = "class 'case' has 3 samples to train on, fewer than cv=5: 3 inner folds were made"
    with pytest.warns(UserWarning, match=warning):
        recipes.fisher(n_features_to_select=3).fit(cohort.X.iloc[few], cohort.y.iloc[few])
    with pytest.raises(InputError, match="class 'case' has 1 samples: inner folds need at least 2"):
        recipes.fisher(n_features_to_select=3).fit(cohort.X.iloc[few[2:]], cohort.y.iloc[few[2:]])
    with pytest.raises(InputError, match="cv is 1"):
        recipes.fisher(cv=1).fit(cohort.X, cohort.y)


# -- inside scikit-learn -------------------------------------------------------------------------------------------


def test_grid_search_reaches_the_components(cohort):
    grid = {"search__step": [0.3, 2], "machine__C": [0.1, 1.0]}
    search = GridSearchCV(recipes.svm_rfe(n_features_to_select=5, threshold="margin"), grid, cv=3)
    search.fit(cohort.X, cohort.y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_.search.step == search.best_params_["search__step"]


def test_pipelines_and_scores(cohort):
    X = cohort.X.mask(np.random.default_rng(0).random(cohort.X.shape) < 0.05)
    pipeline = make_pipeline(SimpleImputer(), recipes.svm_rfe(n_features_to_select=5, random_state=0))
    assert cross_val_score(pipeline, X, cohort.y, cv=3, scoring="balanced_accuracy").mean() > 0.7
    chained = make_pipeline(recipes.fisher(n_features_to_select=5, threshold="margin"), SVC())
    assert chained.fit(cohort.X, cohort.y).score(cohort.X, cohort.y) > 0.8


def test_metadata_is_routed(cohort):
    groups, weight = np.repeat(np.arange(40), 2), np.ones(80)
    y = np.repeat(np.arange(40) % 2, 2)
    with config_context(enable_metadata_routing=True):
        selector = recipes.fisher(n_features_to_select=3, random_state=0)
        selector.set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
        out = cross_validate(
            selector, cohort.X, y, cv=GroupKFold(4), params={"groups": groups, "sample_weight": weight}
        )
    assert len(out["test_score"]) == 4


def test_clone_and_repr_round_trip():
    selector = recipes.svm_rfe(kernel="gaussian", C=3.0, keep=["a"], random_state=1)
    copy = clone(selector)
    assert repr(copy) == repr(selector)
    assert copy.get_params()["machine__C"] == 3.0
    assert isinstance(SVMSelector(kernel="linear"), SVMSelector)


@pytest.mark.parametrize("settings", [{}, {"sampler": "smote"}, {"ensemble": 3}, {"kernel": "gaussian"}], ids=str)
def test_the_result_does_not_depend_on_workers(cohort, settings):
    one, two = (recipes.svm_rfe(n_jobs=jobs, random_state=7, **settings).fit(cohort.X, cohort.y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.ranking_, two.ranking_)
    assert one.n_features_ == two.n_features_
    assert one.threshold_ == two.threshold_
    np.testing.assert_array_equal(one.decision_function(cohort.X), two.decision_function(cohort.X))


def test_constant_and_equal_columns_are_listed(cohort):
    X = cohort.X.assign(flat=1.0, again=cohort.X["g05"], third=cohort.X["g05"])
    selector = recipes.svm_rfe(n_features_to_select=4, threshold="margin").fit(X, cohort.y)
    assert selector.constant_ == ["flat"]
    assert selector.duplicates_ == [("g05", "again", "third")]
    assert selector.ranking_[list(X.columns).index("flat")] == len(X.columns)
    assert isinstance(selector.transform(X), pd.DataFrame)


# -- what a reviewer broke -----------------------------------------------------------------------------------------


def test_rows_and_groups_never_share_a_group_across_a_fold(rng):
    groups = np.repeat(np.arange(40), 5)
    sample = np.sort(rng.choice(200, 80, replace=False))
    fold_of = rng.integers(4, size=40)[groups[sample]]
    folds = [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(4)]
    spread = with_rest(folds, sample, 200, rng, groups)
    assert sorted(np.concatenate([test for _, test in spread])) == list(range(200))
    assert all(not set(groups[train]) & set(groups[test]) for train, test in spread)


def test_rows_keep_every_member_of_a_rare_class_among_many(rng):
    y = np.repeat([0, 1, 2], [975, 1018, 7])
    sample, weight = ClassTarget.from_codes(y).sample(100, rng)
    assert len(sample) == 100
    assert (y[sample] == 2).sum() == 7
    assert [weight[sample][y[sample] == code].sum() for code in range(3)] == pytest.approx([48.75, 50.9, 0.35])


def test_integer_column_names_survive_transform(cohort):
    X = pd.DataFrame(cohort.X.to_numpy())
    selector = recipes.fisher(n_features_to_select=3, threshold="margin").fit(X, cohort.y)
    assert list(selector.transform(X).columns) == np.flatnonzero(selector.support_).tolist()


def test_ordinal_columns_with_holes_and_new_levels(cohort):
    stage = pd.Categorical(["low", "high"] * 40, categories=["low", "mid", "high"], ordered=True)
    X = cohort.X.assign(stage=stage)
    selector = recipes.fisher(n_features_to_select=3, threshold="margin").fit(X, cohort.y)
    new = X.assign(stage=pd.Categorical(["huge"] * 80, categories=["huge"], ordered=True))
    with pytest.raises(InputError, match="column 'stage' is ordinal and has the level 'huge'"):
        selector.predict(new)
    holed = X.assign(stage=pd.Categorical([None, "high"] * 40, categories=["low", "mid", "high"], ordered=True))
    with pytest.raises(InputError, match=r"missing \(NaN\) in 1 columns: stage \(40\)"):
        selector.fit(holed, cohort.y)


@pytest.mark.parametrize("ensemble", [None, 3])
def test_a_kept_column_that_is_constant_is_told(cohort, ensemble):
    X = cohort.X.assign(flat=1.0)
    selector = recipes.svm_rfe(n_features_to_select=2, keep=["flat"], threshold="margin", ensemble=ensemble)
    with pytest.warns(UserWarning, match="keep names 'flat', which does not vary"):
        selector.fit(X, cohort.y)
    assert selector.n_features_ == 2
    assert selector.ranking_[-1] == 61


def test_a_prefiltered_search_and_its_machine_work_at_one_width(cohort):
    frozen = Gaussian(average=False)
    selector = recipes.svm_rfe(
        kernel=frozen, prefilter=("fisher", 10), n_features_to_select=10, threshold="margin", standardize=True
    ).fit(cohort.X, cohort.y)
    np.testing.assert_allclose(selector.model_.view.feature_weight, 1 / 10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_a_curved_kernel_is_that_of_the_selected_columns(kernel, weighted, rng):
    """Decision values are scikit-learn's on those columns, whatever other columns there were and in what units."""
    X = rng.normal(size=(120, 30)) * np.geomspace(1e-2, 1e3, 30)
    y = (X[:, 0] / X[:, 0].std() + X[:, 29] / X[:, 29].std() + 0.5 * rng.normal(size=120) > 0).astype(int)
    weight = rng.uniform(0.5, 2.0, 120) if weighted else None
    settings = {"kernel": kernel, "n_features_to_select": 3, "threshold": "margin", "C": 5.0, "standardize": False}
    made = recipes.fisher(**settings).set_params(machine__tol=1e-10).fit(X, y, sample_weight=weight)
    columns = X[:, made.support_]
    share = np.ones(120) / 120 if weight is None else weight / weight.sum()
    spread = (share @ (columns - share @ columns) ** 2).sum()
    gamma = 0.5 / spread if kernel == "gaussian" else 1.0 / spread
    theirs = SVC(kernel={"gaussian": "rbf", "polynomial": "poly"}[kernel], gamma=gamma, coef0=1.0, C=5.0, tol=1e-10)
    theirs.fit(columns, y, sample_weight=weight)
    # libsvm keeps its kernel in single precision
    np.testing.assert_allclose(made.decision_function(X), theirs.decision_function(columns), atol=2e-4)
    few = recipes.fisher(**settings).set_params(machine__tol=1e-10).fit(columns, y, sample_weight=weight)
    np.testing.assert_allclose(few.decision_function(columns), made.decision_function(X), atol=1e-7)


def test_a_gaussian_machine_finds_and_uses_a_product_of_two_columns():
    """The sign of x0 x1 among 60 columns: no method that keeps the width of all columns can say it with two."""
    X = np.random.default_rng(0).normal(size=(1150, 60))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    settings = {"n_features_to_select": 2, "threshold": "margin"}
    for selector in (
        recipes.fisher(kernel="gaussian", keep=["x0", "x1"], **settings),
        recipes.svm_rfe(kernel="gaussian", **settings),
        recipes.kp_cssvm(**settings),
        recipes.kp_cssvm(ensemble=5, random_state=0, **settings),
    ):
        selector.fit(X[:150], y[:150])
        assert np.flatnonzero(selector.support_).tolist() == [0, 1]
        assert selector.score(X[150:], y[150:]) >= 0.92


def test_weights_are_repetitions_on_curved_kernels(cohort, rng):
    X, y, times = cohort.X.to_numpy()[:, :10], cohort.y.to_numpy(), rng.integers(1, 3, 80)
    for kernel in ("gaussian", "polynomial"):
        made = [recipes.svm_rfe(kernel=kernel, n_features_to_select=4, threshold="margin") for _ in range(2)]
        weighted, repeated = (one.set_params(machine__tol=1e-9) for one in made)
        weighted.fit(X, y, sample_weight=times)
        repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


def test_a_final_machine_that_did_not_converge_is_told(cohort):
    selector = recipes.fisher(C=100.0, n_features_to_select=10, threshold="margin")
    with pytest.warns(ConvergenceWarning, match="1 of 1 machine solves stopped"):
        selector.set_params(machine__max_iter=1, machine__tol=1e-9).fit(cohort.X, cohort.y)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"negative_weight": -1.0}, "negative_weight is -1.0"),
        ({"class_weight": "balance"}, "class_weight is 'balance'"),
        ({"class_weight": {"case": -1.0}}, "class_weight of 'case' is -1.0; it must be a positive number"),
        ({"class_weight": {"case": "a"}}, "class_weight of 'case' is 'a'"),
        ({"negative_weight": "x"}, "negative_weight is 'x'"),
        ({"threshold": (1.0, "a")}, "a cost of threshold is 'a'"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"ensemble": -3}, "ensemble is -3"),
        ({"ensemble": 0.5}, "ensemble is 0.5"),
        ({"prefilter": ("fisher", 0)}, "prefilter is"),
        ({"prefilter": ("margin", 3)}, "it must be a pair like .*: a filter .'fisher', 'shrunken_fisher', 'fast'"),
        ({"prefilter": ("nosuch", 3)}, "prefilter is .'nosuch', 3.; it must be"),
        ({"prefilter": (None, 3)}, "prefilter is .None, 3.; it must be"),
        ({"prefilter": ("fast", True)}, "prefilter is .'fast', True.; it must be"),
        (
            {"prefilter": (LogisticRegression(), 3)},
            "criterion is LogisticRegression.* with 'requires', 'score', or a filter",
        ),
        ({"prefilter": (ChiSquare(bins=0), 3)}, "criterion: bins is 0"),
        ({"ensemble": True}, "ensemble is True"),
        ({"keep": "g01"}, "keep is 'g01'; it must be a list"),
        ({"keep": 5}, "keep is 5; it must be a list"),
        ({"keep": [1.5]}, "keep names the column 1.5"),
        ({"kernel": Gaussian(width=None)}, "width is None"),
        ({"kernel": Polynomial(degree=2.5)}, "kernel: degree is 2.5"),
        ({"cv": "x"}, "cv is 'x'"),
        ({"cv": 2.5}, "cv is 2.5"),
        ({"C": -1.0}, "C is -1.0"),
    ],
)
def test_settings_without_sense_are_refused(cohort, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        recipes.svm_rfe(**settings).fit(cohort.X, cohort.y)


def test_odd_splitters(cohort):
    X, y = cohort.X.iloc[:30, :8], cohort.y.iloc[:30]
    loo = recipes.fisher(cv=LeaveOneOut()).fit(X, y)
    assert np.isfinite(loo.threshold_)
    ordered = np.argsort(y.to_numpy(), kind="stable")
    with pytest.raises(InputError, match=r"trains without class|tests class"):
        recipes.fisher(cv=KFold(2)).fit(X.iloc[ordered], np.repeat(["a", "b"], 15))


def test_labels_of_nullable_types(cohort):
    X = cohort.X
    y = pd.Series((cohort.y == "case").to_numpy(), dtype="boolean")
    selector = recipes.fisher(n_features_to_select=3, threshold="margin").fit(X, y)
    assert selector.classes_.tolist() == [False, True]
    assert selector.classes_.dtype == bool
    counts = recipes.fisher(n_features_to_select=3, threshold="margin").fit(X, y.astype("Int64"))
    assert counts.classes_.dtype.kind == "i"
    text = cohort.y.astype("string")
    text.iloc[3] = pd.NA
    with pytest.raises(InputError, match="1 of 80 labels are missing"):
        recipes.fisher().fit(X, text)
