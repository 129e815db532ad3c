"""How many features of a list are false: scores on halves of the rows against shuffled labels."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from marginsieve import load, recipes, save, study
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.evidence import permutation_p
from marginsieve.fitting.false_share import (
    PENALTY,
    FalseShare,
    _count_first,
    false_share,
    list_sizes,
    q_values,
    ridge_false_share,
    ridge_strengths,
    ridge_weights,
)
from marginsieve.outcomes import Classes
from marginsieve.studies.analyses.false_features import adjust, list_share, marginal_p, marginal_share
from marginsieve.studies.study_data import from_arrays


def planted(rows=80, columns=200, count=6, shift=1.4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    X = rng.normal(size=(rows, columns))
    X[:, :count] += shift * y[:, None]
    return X, y


def shares(recipe, X, y, pairs=10, shuffles=20, groups=None, n_jobs=None, **settings):
    selector = recipes.get(recipe)(random_state=0, **settings)
    encoded = encode(selector, X, y, None, None, groups)
    return false_share(selector.plan(encoded), encoded.active, pairs, shuffles, np.random.SeedSequence(0), n_jobs)


def slow_q(score, null, shuffles):
    """The definition, feature by feature."""
    out = []
    for own in score:
        ratios = []
        for t in [one for one in score if one <= own + 1e-12]:
            ratios.append((1 + np.sum(null >= t - 1e-12)) / shuffles / np.sum(score >= t - 1e-12))
        out.append(min(1.0, min(ratios)))
    return np.array(out)


@pytest.mark.parametrize("seed", range(5))
def test_q_values_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(1, 4, size=60), 2)  # with ties
    null = np.sort(np.round(rng.beta(1, 6, size=600), 2))
    np.testing.assert_allclose(q_values(score, null, 10), slow_q(score, null, 10))


def test_the_share_of_a_list_cut_by_score_is_its_ratio_and_never_more_than_its_parts_say():
    score = np.array([0.9, 0.8, 0.7, 0.2, 0.1, 0.0])
    null = np.sort(np.r_[np.full(40, 0.05), np.full(15, 0.3), 0.75])
    known = FalseShare(score, q_values(score, null, 10), null, 10, 10, (5,))
    top = score >= 0.7
    assert known.of_list(top) == pytest.approx((1 + 1) / 10 / 3)
    rest = score >= 0.1  # above 0.7 chance brings 0.2, below it all are counted
    assert known.of_list(rest) == pytest.approx(min((1 + 56 - 40) / 10, 0.2 + 2) / 5)
    assert known.of_list(np.zeros(6, dtype=bool)) == 0.0
    assert known.of_list(np.ones(6, dtype=bool)) <= 1.0


def test_sizes_run_from_five_to_a_tenth():
    sizes = list_sizes(2000)
    assert (sizes[0], sizes[-1], len(sizes)) == (5, 200, 8)
    assert np.ptp(np.diff(np.log(sizes))) < 0.3  # evenly spaced in the logarithm
    assert list_sizes(10) == (2,)
    assert list_sizes(1) == (1,)


@pytest.mark.parametrize("recipe", ["fisher", "svm_rfe", "two_views", "interactions", "stable_fisher"])
def test_planted_features_have_low_q_values(recipe):
    X, y = planted()
    known = shares(recipe, X, y)
    assert known.score.shape == (200,)
    assert ((known.score >= 0) & (known.score <= 1)).all()
    assert known.score[:6].min() > np.median(known.score[6:])
    assert np.sum(known.q[:6] <= 0.1) >= 5
    assert np.sum(known.q[6:] <= 0.1) <= 1


def test_workers_do_not_matter():
    X, y = planted(columns=40)
    one, two = (shares("fisher", X, y, 5, 6, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.q, two.q)
    np.testing.assert_array_equal(one.score, two.score)


def test_labels_of_a_group_move_together():
    """A column that tells the groups apart is no better than chance where labels belong to groups."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 10)
    y = (groups % 2).astype(int)
    X = rng.normal(size=(80, 30))
    X[:, 0] += 3.0 * rng.normal(size=8)[groups]
    X[:, 1] += 3.0 * y
    assert shares("fisher", X, y, groups=groups).q[0] > 0.1


def test_mixed_tables():
    cohort = make_cohort(100, 60, n_relevant=5, n_categorical=20, effect=1.8, missing=0.03, random_state=1)
    known = shares("two_views", cohort.X, cohort.y)
    relevant = np.isin(list(cohort.X.columns), list(cohort.truth.relevant))
    assert np.sum(known.q[relevant] <= 0.1) >= 4
    assert np.sum(known.q[~relevant] <= 0.1) <= 1


@pytest.mark.parametrize("recipe", ["fisher", "two_views", "svm_rfe"])
def test_a_list_may_be_cut_by_its_false_share(recipe, tmp_path):
    X, y = planted()
    made = recipes.get(recipe)(false_share=0.1, probability=True, random_state=0).fit(X, y)
    assert 5 <= made.n_features_ <= 7
    assert made.support_[:6].sum() >= 5
    assert (made.ranking_[made.support_] <= made.n_features_).all()
    assert made.score(X, y) > 0.85
    loaded = load(save(made, tmp_path / "m.marginsieve"))
    np.testing.assert_array_equal(loaded.predict_proba(X), made.predict_proba(X))


def test_without_any_signal_a_list_says_that_none_keeps_the_share():
    X, y = planted(shift=0.0)
    with pytest.warns(UserWarning, match=r"no list keeps a false share of 0.1: the best feature is taken"):
        made = recipes.fisher(false_share=0.1, random_state=0).fit(X, y)
    assert made.n_features_ == 1


@pytest.mark.parametrize("value", [0, -0.1, 1.5, "x", np.nan])
def test_a_share_that_is_none_is_refused(value):
    X, y = planted(columns=20)
    with pytest.raises(InputError, match="false_share is"):
        recipes.fisher(false_share=value).fit(X, y)


def test_marginal_values_are_adjusted_tests_of_single_columns():
    X, y = planted(columns=30)
    p = stats.ttest_ind(X[y == 1], X[y == 0], equal_var=False).pvalue
    part = from_arrays(X, y, ids=()).table(Classes(positive=1)).rows.active
    found = adjust(marginal_p(part, np.random.default_rng(0)))
    np.testing.assert_allclose(found, stats.false_discovery_control(p), rtol=1e-6)


def rows_of(X, y, groups=None):
    return encode(recipes.two_views(), X, y, None, None, groups).active


def ridge_shares(X, y, groups=None, n_jobs=1, seed=0):
    return ridge_false_share(rows_of(X, y, groups), np.random.SeedSequence(seed), n_jobs)


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_ridge_weights_are_scikit_learns(rng, shape):
    X, Y = rng.normal(size=shape), rng.normal(size=(3, shape[0]))
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=1, keepdims=True)
    weights, residuals = ridge_weights(X, Y)
    model = Ridge(alpha=PENALTY * np.sum(X**2) / len(X), fit_intercept=False).fit(X, Y.T)
    np.testing.assert_allclose(weights, model.coef_, rtol=1e-8)
    np.testing.assert_allclose(residuals, Y - model.predict(X).T, atol=1e-10)


def test_strengths_are_weights_for_residuals_of_length_one(rng):
    X = rng.normal(size=(30, 40))
    X -= X.mean(axis=0)
    Y = rng.normal(size=(4, 1, 30))
    found = ridge_strengths(X, Y)
    for k in range(4):
        weights, residuals = ridge_weights(X, Y[k] - Y[k].mean())
        np.testing.assert_allclose(found[k], weights[0] ** 2 / np.sum(residuals**2))
    np.testing.assert_allclose(ridge_strengths(X, 7.0 * Y + 3.0), found)  # of any scale and origin


def test_strengths_do_not_depend_on_the_basis_of_the_problems(rng):
    X = rng.normal(size=(30, 40))
    X -= X.mean(axis=0)
    Y = rng.normal(size=(5, 2, 30))
    turned = np.einsum("ij,bjm->bim", rng.normal(size=(2, 2)), Y)
    np.testing.assert_allclose(ridge_strengths(X, turned), ridge_strengths(X, Y), rtol=1e-6)


def test_a_labelling_with_one_class_in_a_half_has_no_strengths(rng):
    Y = np.stack([np.ones((1, 30)), rng.normal(size=(1, 30))])
    found = ridge_strengths(rng.normal(size=(30, 6)), Y)
    assert (found[0] == 0).all()
    assert (found[1] > 0).all()


def test_first_are_those_as_strong_as_the_limits(rng):
    strength, limits = np.round(rng.random((7, 30)), 1), np.array([0.2, 0.5, 0.9])
    counts = np.zeros(strength.shape)
    _count_first(strength, limits, counts)
    slow = np.array([[sum(value > 0 and value >= limit for limit in limits) for value in row] for row in strength])
    np.testing.assert_array_equal(counts, slow)


def test_the_closed_form_finds_what_is_planted_and_states_what_is_false():
    X, y = planted()
    known = ridge_shares(X, y)
    assert np.sum(known.q[:6] <= 0.1) >= 5
    assert np.sum(known.q[6:] <= 0.1) <= 1
    p = marginal_p(rows_of(X, y), np.random.default_rng(0))
    for count, low, high in ((6, 0.0, 0.35), (20, 0.5, 0.9), (200, 0.9, 1.0)):
        share = list_share(known, p, np.arange(200) < count)  # the first six are the true ones
        assert low <= share <= high
    assert known.of_list(np.arange(200) >= 6) > 0.9


def test_the_closed_form_does_not_depend_on_workers_scales_or_constant_columns():
    X, y = planted(columns=60)
    X[:, 50] = 1.0
    alone, by_two = ridge_shares(X, y), ridge_shares(X * 10.0 ** np.arange(-3, 3).repeat(10), y, n_jobs=2)
    np.testing.assert_allclose(by_two.score, alone.score, atol=1e-12)
    np.testing.assert_allclose(by_two.q, alone.q, atol=1e-12)
    assert (alone.score[50], alone.q[50]) == (0.0, 1.0)


@pytest.mark.parametrize("rare", [False, True])
def test_tables_without_a_signal_have_a_list_in_about_a_tenth(rare):
    """Of 40 tables; eleven or more would come with a probability of a thousandth."""
    lists = 0
    for seed in range(40):
        X, y = planted(rows=40, columns=60, shift=0.0, seed=100 + seed)
        y = (np.arange(40) < 4).astype(int) if rare else y
        lists += bool((ridge_shares(X, y, seed=seed).q <= 0.1).any())
    assert lists <= 10


def test_categories_count_as_one_column():
    cohort = make_cohort(
        120, 60, n_relevant=4, n_categorical=20, n_categorical_relevant=3, effect=1.8, missing=0.03, random_state=1
    )
    known = ridge_shares(cohort.X, cohort.y)
    relevant = np.isin(list(cohort.X.columns), [*cohort.truth.relevant, *cohort.truth.categorical])
    assert known.score.shape == relevant.shape
    assert np.sum(known.q[relevant] <= 0.1) >= 5
    assert np.sum(known.q[~relevant] <= 0.1) <= 1


def site_table(rng):
    """A column that tells groups apart whose labels are drawn by chance, and one that goes with the labels."""
    groups = np.repeat(np.arange(12), 8)
    y = (groups % 2).astype(int)
    X = rng.normal(size=(96, 60))
    X[:, 0] += 3.0 * rng.normal(size=12)[groups]
    X[:, 1] += 3.0 * y
    return X, y, groups


def test_groups_are_whole_in_halves_permutations_and_tests_of_columns(rng):
    X, y, groups = site_table(rng)
    known, p = ridge_shares(X, y, groups), marginal_p(rows_of(X, y, groups), np.random.default_rng(0))
    q = adjust(p)
    assert known.q[0] > 0.1
    assert q[0] > 0.1
    assert q[1] <= 0.1
    as_rows = adjust(marginal_p(rows_of(X, y), np.random.default_rng(0)))
    assert as_rows[1] < q[1]  # as if there were more to know it from


def test_permutation_p_is_that_of_the_t_test_on_normal_columns(rng):
    X, y = planted(columns=400, shift=0.5)
    found = permutation_p(rows_of(X, y), 200, rng)
    expected = stats.ttest_ind(X[y == 1], X[y == 0]).pvalue
    assert np.abs(np.log10(found) - np.log10(expected))[expected > 1e-3].max() < 0.15
    X[:, 3] = 0.0
    assert np.isnan(permutation_p(rows_of(X, y), 200, rng)[3])


def test_tests_of_single_columns_hold_for_a_class_of_four():
    """Welch's test does not: with so few rows their variance is sometimes next to nothing."""
    smallest = []
    for seed in range(30):
        X = np.random.default_rng(seed).normal(size=(60, 100))
        y = (np.arange(60) < 4).astype(int)
        smallest.append(adjust(marginal_p(rows_of(X, y), np.random.default_rng(seed))).min())
    assert np.mean(np.array(smallest) <= 0.1) <= 0.3


def test_the_marginal_share_of_a_list_counts_what_chance_brings_and_what_is_above():
    p = np.array([0.001, 0.01, 0.2, 0.9])
    assert marginal_share(p, np.array([True, True, False, False])) == pytest.approx(4 * 0.01 / 2)
    assert marginal_share(p, np.array([True, False, False, True])) == pytest.approx((4 * 0.001 + 1) / 2)
    assert marginal_share(p, np.zeros(4, dtype=bool)) == 1.0


def test_a_study_says_how_many_are_false(tmp_path):
    X, y = planted()
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": ("suspects", "references")}
    result = study(X, y, **settings)
    known = result.result["analyses"]["false-share"]
    assert 0 <= known["share"] <= known["share_long"] <= 1
    assert 5 <= known["below_a_tenth"] <= 7
    assert set(known["best_supported"]) <= {f"x{j}" for j in range(6)}
    assert "expected to be there by chance" in result.result["answer"]["headline"]
    result.save(tmp_path / "out")
    frame = pd.read_csv(tmp_path / "out" / "features.csv").set_index("name")
    assert (frame["q_value"] <= 0.1).sum() == known["below_a_tenth"]
    assert {"halves", "marginal_q"} <= set(frame.columns)
    short = study(X, y, false_share=0.1, **settings)
    assert 5 <= short.model.n_features_ <= 7
    with pytest.raises(InputError, match="false_share and n_features_to_select were both given"):
        study(X, y, false_share=0.1, n_features_to_select=5, **settings)


@pytest.mark.parametrize("minutes", [None, 1])
def test_tables_of_few_columns_have_none_whatever_the_minutes(rng, minutes):
    X = rng.normal(size=(60, 20))
    y = np.arange(60) % 2
    X[:, 0] += 3.0 * y
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": ("suspects", "references"), "minutes": minutes}
    result = study(X, y, **settings)
    assert result.result["analyses"]["false-share"]["share"] is None
    assert any("the table has fewer than 50 columns" in text for text in result.result["answer"]["sentences"])
    assert result.features["marginal_q"].min() < 0.01
    assert result.features["q_value"].isna().all()


@pytest.mark.parametrize("recipe", ["fisher", "two_views"])
def test_features_to_keep_are_in_a_list_that_is_cut(recipe):
    X, y = planted()
    made = recipes.get(recipe)(false_share=0.1, keep=[150, 0], random_state=0).fit(X, y)
    assert made.support_[[0, 150]].all()
    assert set(np.flatnonzero(made.ranking_ <= 2)) == {0, 150}
    assert 6 <= made.n_features_ <= 8
