"""Blends: several views, one list, one threshold."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks
from tiers import rotate

from marginsieve import Blend, load, predict, recipes, save, study
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.fitting.view_averaging import sizes_of_list
from marginsieve.outcomes.scores import balanced_threshold


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(70, 40, n_relevant=5, effect=1.5, random_state=0)


@pytest.fixture(scope="module")
def mixed():
    return make_cohort(90, 20, n_relevant=4, n_categorical=4, effect=2.0, missing=0.05, random_state=0)


def views(**settings):
    return [recipes.fisher(**settings), recipes.clinical_rfe(**settings)]


DEFAULT = Blend()


@rotate(parametrize_with_checks([DEFAULT, recipes.two_views()]), every=9, whole=[DEFAULT])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_decision_is_the_mean_of_the_views_by_hand(cohort):
    """The same folds through scikit-learn's splitter: values, middles, deviations and threshold, one by one."""
    X, y = cohort.X.to_numpy(), (cohort.y == "case").to_numpy().astype(int)
    folds = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    blend = Blend(views(n_features_to_select=6), positive=1, cv=folds, random_state=0).fit(X, y)
    label, total, held = np.where(y == 1, 1.0, -1.0), np.zeros(len(y)), np.zeros(len(y))
    for view in views(n_features_to_select=6, positive=1, threshold="margin"):
        value = np.empty(len(y))
        for train, test in folds:
            value[test] = clone(view).fit(X[train], y[train]).decision_function(X[test])
        middle, unit = balanced_threshold(value, label, np.ones(len(y))), value.std()
        total += (clone(view).fit(X, y).decision_function(X) - middle) / unit / 2
        held += (value - middle) / unit / 2
    cut = balanced_threshold(held, label, np.ones(len(y)))
    assert blend.threshold_ == pytest.approx(cut, abs=1e-6)
    np.testing.assert_allclose(blend.decision_function(X), total - cut, atol=1e-5)


def test_the_list_is_the_union_and_ranks_by_mean_place(cohort):
    one, other = (view.fit(cohort.X, cohort.y) for view in views(n_features_to_select=6, random_state=0))
    blend = Blend(views(n_features_to_select=6), random_state=0).fit(cohort.X, cohort.y)
    assert (blend.support_ == (one.support_ | other.support_)).all()
    mean = (one.ranking_ + other.ranking_) / 2
    np.testing.assert_allclose(blend.scores_, -mean)
    inside = np.argsort(blend.ranking_)[: blend.n_features_]
    assert set(inside) == set(np.flatnonzero(blend.support_))
    assert (np.diff(mean[inside]) >= 0).all()


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_a_number_is_that_of_the_whole_list(cohort, count):
    blend = Blend(n_features_to_select=count, random_state=0).fit(cohort.X, cohort.y)
    assert blend.n_features_ == count


def test_a_list_of_one_is_of_one_though_the_views_differ(rng):
    X = rng.normal(size=(80, 30))
    y = (np.arange(80) % 2).astype(int)
    X[:, 0] += 0.8 * y
    X[:, 1] += np.where(rng.random(80) < 0.1, 30.0, 0.0) + 1.0 * y  # long tails: the clinical kernel sees it otherwise
    for seed in range(3):
        assert Blend(n_features_to_select=1, random_state=seed).fit(X, y).n_features_ == 1


def test_more_features_than_there_are(cohort):
    with pytest.warns(UserWarning, match="50 features were asked for and 40 vary: all of them are selected"):
        assert Blend(n_features_to_select=50, random_state=0).fit(cohort.X, cohort.y).n_features_ == 40


def test_one_view_alone_is_that_selector(cohort):
    plain = recipes.fisher(n_features_to_select=5, random_state=0).fit(cohort.X, cohort.y)
    blend = Blend([recipes.fisher(n_features_to_select=5)], random_state=0).fit(cohort.X, cohort.y)
    assert (blend.support_ == plain.support_).all()
    a, b = plain.decision_function(cohort.X), blend.decision_function(cohort.X)
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(1.0, abs=1e-9)


def test_linear_views_have_coefficients(cohort):
    blend = Blend([recipes.fisher(), recipes.svm_rfe()], n_features_to_select=8, random_state=0).fit(cohort.X, cohort.y)
    by_hand = cohort.X.to_numpy() @ blend.coef_[0] + blend.intercept_[0]
    np.testing.assert_allclose(by_hand, blend.decision_function(cohort.X), atol=1e-9)
    assert (np.flatnonzero(blend.coef_[0]) == np.flatnonzero(blend.support_)).all()
    with pytest.raises(AttributeError, match="on the clinical kernel is not linear"):
        _ = Blend(random_state=0).fit(cohort.X, cohort.y).coef_


def test_mixed_tables_with_gaps(mixed, tmp_path):
    blend = recipes.two_views(probability=True, random_state=0).fit(mixed.X, mixed.y)
    linear, _ = blend.model_.models
    kinds = np.array(blend.columns_.kind)
    assert set(kinds[linear.features]) <= {"real", "boolean", "ordinal"}
    assert roc_auc_score(mixed.y == "case", blend.predict_proba(mixed.X)[:, list(blend.classes_).index("case")]) > 0.9
    loaded = load(save(blend, tmp_path / "m.marginsieve"))
    np.testing.assert_array_equal(loaded.decision_function(mixed.X), blend.decision_function(mixed.X))
    np.testing.assert_array_equal(loaded.predict_proba(mixed.X), blend.predict_proba(mixed.X))
    assert [type(view.kernel).__name__ for view in loaded.views] == ["str", "Clinical"]
    needed = mixed.X[list(blend.get_feature_names_out())]
    assert (predict(loaded, needed).table["predicted"] == blend.predict(mixed.X)).all()


def test_gaps_are_filled_with_means_of_training_rows(cohort):
    """A view that takes no gaps has them at the means of the rows it was trained on: by hand."""
    X, y = cohort.X.copy(), cohort.y
    X.iloc[3, :] = np.nan
    X.iloc[5:20, 1] = np.nan
    settings = {"n_features_to_select": 40, "cv": 3, "random_state": 0}
    filled = X.fillna(X.mean())
    with_gaps = Blend([recipes.fisher()], **settings).fit(X, y)
    by_hand = recipes.fisher(n_features_to_select=40, threshold="margin", random_state=0).fit(filled, y)
    a, b = with_gaps.model_.models[0], by_hand.model_
    np.testing.assert_allclose(a.decision(X.to_numpy()), b.decision(filled.to_numpy()), atol=1e-6)
    new = cohort.X.head(4).copy()
    new.iloc[0, :5] = np.nan
    np.testing.assert_allclose(a.decision(new.to_numpy()), b.decision(new.fillna(X.mean()).to_numpy()), atol=1e-6)


def test_a_table_of_categories_alone_leaves_out_the_linear_view(mixed):
    X = mixed.X.select_dtypes(exclude="number")
    blend = Blend(random_state=0).fit(X, mixed.y)
    assert len(blend.model_.models) == 1


def test_weights_groups_and_rows_without_weight(cohort, rng):
    X, y, times = cohort.X, cohort.y, rng.integers(0, 3, len(cohort.y))
    groups = np.arange(len(y)) // 2
    blend = Blend(n_features_to_select=5, cv=3, random_state=0).fit(X, y, sample_weight=times, groups=groups)
    assert len(blend.rows_) == np.count_nonzero(times)
    kept = np.isin(np.arange(len(y)), blend.rows_)
    alone = Blend(n_features_to_select=5, cv=3, random_state=0)
    alone.fit(X[kept], y[kept], sample_weight=times[kept], groups=groups[kept])
    np.testing.assert_allclose(blend.decision_function(X), alone.decision_function(X), atol=1e-9)


def test_workers_do_not_matter(cohort):
    one, two = (Blend(n_jobs=jobs, cv=3, random_state=0).fit(cohort.X, cohort.y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.decision_function(cohort.X), two.decision_function(cohort.X))


def test_three_classes(rng):
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 12))
    X[:, 0] += 2.0 * (y == 1)
    X[:, 1] += 2.0 * (y == 2)
    blend = Blend(n_features_to_select=4, random_state=0).fit(X, y)
    assert blend.decision_function(X).shape == (90, 3)
    assert blend.score(X, y) > 0.7
    assert blend.support_[:2].all()


def test_the_best_view_is_chosen_by_inner_folds(rng):
    X = rng.normal(size=(200, 30))
    y = (X[:, 3] * X[:, 17] > 0).astype(int)
    blend = Blend([recipes.fisher(), *recipes.interactions().views], combine="best", random_state=0).fit(X, y)
    assert len(blend.model_.models) == 1
    assert type(blend.model_.models[0].view.kernel).__name__ == "Gaussian"
    assert blend.support_[[3, 17]].all()


@pytest.mark.parametrize("seed", range(2))
def test_interactions_finds_a_pair_that_matters_only_together(seed):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(200, 60)), rng.normal(size=(1000, 60))
    y, truth = X[:, 3] * X[:, 17] > 0, new[:, 3] * new[:, 17] > 0
    made = recipes.interactions(class_weight="balanced", random_state=0).fit(X, y)
    assert made.support_[[3, 17]].all()
    assert np.mean(made.predict(new) == truth) > 0.85


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"views": []}, r"views is \[\]; it must be a list of SVMSelector"),
        ({"views": "fisher"}, "views is 'fisher'; it must be a list of SVMSelector"),
        ({"views": [Blend()]}, "it must be a list of SVMSelector"),
        ({"combine": "median"}, "combine is 'median'; it must be one of 'mean', 'best'"),
        ({"n_features_to_select": 0}, "n_features_to_select is 0; it must be a whole number"),
        ({"cv": 1}, "cv is 1; it must be"),
        ({"probability": "yes"}, "probability is 'yes'; it must be True or False"),
    ],
)
def test_what_makes_no_sense_is_refused(cohort, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Blend(**settings).fit(cohort.X, cohort.y)


def test_a_study_of_two_views(mixed, tmp_path):
    made = study(mixed.X, mixed.y, methods="two-views,clinical-rfe", cv=3, n_repeats=1, n_permutations=24)
    methods = {one["title"]: one for one in made.result["methods"]}
    assert methods["two-views"]["kernel"] == "linear and clinical"
    assert methods["two-views"]["scores"]["auc"]["value"] > 0.8
    assert made.result["analyses"]["evidence"]["strength"] == "clear"
    made.save(tmp_path / "out")
    frame = pd.read_csv(tmp_path / "out" / "features.csv")
    assert frame["selected"].sum() == made.model.n_features_
    assert isinstance(load(tmp_path / "out"), Blend)


def test_views_take_turns_and_what_another_has_brought_is_free():
    one, other = np.array([0, 1, 2, 3]), np.array([3, 1, 0, 2])
    assert sizes_of_list([one, other], 1) == [1, 0]
    assert sizes_of_list([one, other], 2) == [1, 1]
    assert sizes_of_list([one, other], 3) == [2, 3]
    assert sizes_of_list([one, other], 4) == [4, 4]
    assert sizes_of_list([one, other], None) == [0, 0]
