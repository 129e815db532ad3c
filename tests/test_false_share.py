"""How many features of a list are false: scores on halves of the rows against shuffled labels."""

import numpy as np
import pandas as pd
import pytest

from marginsieve import load, recipes, save, study
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.false_share import FalseShare, false_share, list_sizes, q_values
from marginsieve.outcomes import Classes
from marginsieve.studies.analyses.false_features import adjust, marginal_p
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
    from scipy import stats

    X, y = planted(columns=30)
    p = stats.ttest_ind(X[y == 1], X[y == 0], equal_var=False).pvalue
    part = from_arrays(X, y, ids=()).table(Classes(positive=1)).rows.active
    found = adjust(marginal_p(part, np.random.default_rng(0)))
    np.testing.assert_allclose(found, stats.false_discovery_control(p), rtol=1e-6)


@pytest.mark.usefixtures("halves")
def test_a_study_says_how_many_are_false(tmp_path):
    X, y = planted()
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": ("suspects", "references")}
    made = study(X, y, n_permutations=24, **settings)
    known = made.result["analyses"]["false-share"]
    assert 0 <= known["share"] <= 1
    assert 5 <= known["below_a_tenth"] <= 7
    assert any("may have nothing to do with the target" in text for text in made.result["answer"]["sentences"])
    made.save(tmp_path / "out")
    frame = pd.read_csv(tmp_path / "out" / "features.csv").set_index("name")
    assert (frame["q_value"] <= 0.1).sum() == known["below_a_tenth"]
    assert {"halves", "marginal_q"} <= set(frame.columns)
    short = study(X, y, n_permutations=24, false_share=0.1, **settings)
    assert 5 <= short.model.n_features_ <= 7
    with pytest.raises(InputError, match="false_share and n_features_to_select were both given"):
        study(X, y, false_share=0.1, n_features_to_select=5, **settings)


@pytest.mark.usefixtures("halves")
def test_tables_of_few_columns_have_none(rng):
    X = rng.normal(size=(60, 20))
    y = np.arange(60) % 2
    X[:, 0] += 3.0 * y
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": ("suspects", "references")}
    made = study(X, y, n_permutations=24, **settings)
    assert made.result["analyses"]["false-share"]["share"] is None
    assert any("since it has few columns" in text for text in made.result["answer"]["sentences"])
    assert made.features["marginal_q"].min() < 0.01


@pytest.mark.parametrize("recipe", ["fisher", "two_views"])
def test_features_to_keep_are_in_a_list_that_is_cut(recipe):
    X, y = planted()
    made = recipes.get(recipe)(false_share=0.1, keep=[150, 0], random_state=0).fit(X, y)
    assert made.support_[[0, 150]].all()
    assert set(np.flatnonzero(made.ranking_ <= 2)) == {0, 150}
    assert 6 <= made.n_features_ <= 8
