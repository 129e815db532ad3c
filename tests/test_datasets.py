"""Generated cohorts have the truth they claim; the papers' tables have the shapes the papers print."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn.metrics import roc_auc_score
from tiers import long_but

from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.solvers.cox import RiskSets, fit_cox
from reproduction import named_problems
from reproduction import named_problems as papers


def test_cohort_has_what_it_says():
    cohort = make_cohort(
        400,
        60,
        n_relevant=6,
        n_interactions=3,
        n_redundant=4,
        n_categorical=5,
        n_categorical_relevant=2,
        prevalence=0.25,
        effect=1.5,
        flip=0.05,
        missing=0.02,
        random_state=1,
    )
    X, truth = cohort.X, cohort.truth
    assert X.shape == (400, 65)
    assert len(truth.flipped) == 20
    right = (cohort.y == "case").to_numpy(copy=True)
    right[list(truth.flipped)] ^= True
    assert right.sum() == 100
    assert 0.015 < X.isna().to_numpy().mean() < 0.025
    assert len(truth.features) == 6 + 6 + 4 + 2
    X = X.fillna(X.select_dtypes("number").mean())
    strength = {name: abs(roc_auc_score(right, X[name]) - 0.5) for name in X.columns if name.startswith("g")}
    noise = max(value for name, value in strength.items() if name not in truth.features)
    assert min(strength[name] for name in truth.relevant) > noise
    assert all(strength[name] < 0.12 for pair in truth.interactions for name in pair)
    for a, b in truth.interactions:
        assert roc_auc_score(right, X[a] * X[b]) > 0.8
    assert all(np.corrcoef(X[copy], X[original])[0, 1] > 0.9 for copy, original in truth.redundant.items())
    for name in [c for c in X.columns if c.startswith("c")]:
        assert X[name].dtype == "category"
        shares = pd.crosstab(right, X[name], normalize="index")
        assert ((shares.loc[True] - shares.loc[False]).abs().max() > 0.2) == (name in truth.categorical)


def test_cohort_repeats_itself_and_refuses_nonsense():
    one, two, other = (make_cohort(30, 20, n_relevant=3, random_state=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one.X, two.X)
    assert not one.X.equals(other.X)
    assert list(one.frame().columns)[-1] == "outcome"
    for settings, sentence in (
        ({"n_features": 3, "n_relevant": 4}, "n_features is 3"),
        ({"prevalence": 1.0}, "prevalence is 1.0"),
        ({"flip": -0.1}, "flip is -0.1"),
        ({"n_relevant": 0, "n_redundant": 2}, "no relevant column"),
        ({"n_samples": 2}, "n_samples is 2"),
        ({"n_categorical_relevant": 1}, "more than n_categorical"),
        ({"outcome": "times"}, "outcome is 'times'"),
        ({"outcome": "numbers", "prevalence": 0.3}, "a parameter of outcome='classes' alone"),
        ({"outcome": "numbers", "n_censoring": 2}, "a parameter of outcome='survival' alone"),
        ({"censored": 0.5}, "a parameter of outcome='survival' alone"),
        ({"outcome": "survival", "censored": 1.0}, "censored is 1.0"),
        ({"outcome": "survival", "n_features": 12, "n_censoring": 3}, "the planted columns are 13"),
    ):
        with pytest.raises(InputError, match=sentence):
            make_cohort(**settings)


def planted_columns(cohort):
    """What the outcome is a sum of: a column of each planted thing."""
    X, truth = cohort.X, cohort.truth
    level = {name: X[name].cat.codes.to_numpy() - 1.0 for name in truth.categorical}
    pairs = [X[a].to_numpy() * X[b].to_numpy() for a, b in truth.interactions]
    return np.column_stack([*(X[name] for name in truth.relevant), *pairs, *level.values()])


PLANTED = {"n_relevant": 4, "n_interactions": 2, "n_redundant": 2, "n_categorical": 3, "n_categorical_relevant": 1}


def test_numbers_are_what_is_planted_and_noise_of_variance_one():
    cohort = make_cohort(3000, 30, **PLANTED, effect=0.8, outcome="numbers", random_state=2)
    A = planted_columns(cohort)
    slope, rest, *_ = np.linalg.lstsq(A, cohort.y.to_numpy(), rcond=None)
    sizes = np.abs(slope[:4]) / 0.8
    assert np.all((sizes > 0.7) & (sizes < 1.3))  # 0.75 to 1.25, and three standard errors
    np.testing.assert_allclose(slope[4:], 0.8, atol=0.1)
    assert stats.chi2.sf(rest[0], 3000 - A.shape[1]) > 1e-3
    assert stats.chi2.cdf(rest[0], 3000 - A.shape[1]) > 1e-3
    others = cohort.X.loc[:, [n for n in cohort.X if n.startswith("g") and n not in cohort.truth.features]]
    error = cohort.y.to_numpy() - A @ slope
    assert max(abs(stats.pearsonr(others[name], error)[0]) for name in others) < 5 / np.sqrt(3000)


def test_times_have_the_hazards_that_are_planted_and_censoring_has_its_own_columns():
    settings = {**PLANTED, "effect": 0.8, "outcome": "survival", "censored": 0.4, "n_censoring": 2}
    cohort = make_cohort(3000, 30, **settings, random_state=2)
    time, event = cohort.y["time"].to_numpy(), cohort.y["event"].to_numpy() == 1
    assert abs(event.mean() - 0.6) < 0.04
    A, Z = planted_columns(cohort), cohort.X[list(cohort.truth.censoring)].to_numpy()
    both = np.column_stack([A, Z])
    of_event, of_censoring = (
        fit_cox(both, RiskSets(time, seen, np.ones(3000)), 1e-9).weights for seen in (event, ~event)
    )
    sizes = np.abs(of_event[:4]) / 0.8
    assert np.all((sizes > 0.65) & (sizes < 1.35))
    np.testing.assert_allclose(of_event[4:7], 0.8, atol=0.15)
    np.testing.assert_allclose(of_event[7:], 0.0, atol=0.15)
    np.testing.assert_allclose(of_censoring[:7], 0.0, atol=0.15)
    sizes = np.abs(of_censoring[7:]) / 0.8
    assert np.all((sizes > 0.65) & (sizes < 1.35))
    assert not set(cohort.truth.censoring) & cohort.truth.features


def test_times_without_effects_or_censoring_are_exponential():
    cohort = make_cohort(2000, 5, n_relevant=0, outcome="survival", censored=0.0, random_state=0)
    assert cohort.y["event"].all()
    assert stats.kstest(cohort.y["time"], "expon", args=(0, 1000.0)).pvalue > 1e-3


def test_the_expected_share_is_censored_whatever_the_hazards():
    """Of two exponential times, the share is the mean of the ratio of their rates."""
    cohort = make_cohort(5000, 20, n_relevant=5, effect=2.0, outcome="survival", censored=0.85, random_state=4)
    A = planted_columns(cohort)
    time, event = cohort.y["time"].to_numpy(), cohort.y["event"].to_numpy() == 1
    assert abs(event.mean() - 0.15) < 4 * np.sqrt(0.15 * 0.85 / 5000)
    f = A @ fit_cox(A, RiskSets(time, event, np.ones(5000)), 1e-9).weights
    rate = time[~event].size / time.sum() * 1000.0  # of censoring, which is the same for all
    assert abs(special.expit(np.log(rate) - f).mean() - 0.85) < 0.02


def test_wrong_outcomes_are_those_of_other_rows():
    for outcome in ("numbers", "survival"):
        right, wrong = (
            make_cohort(60, 10, n_relevant=2, flip=flip, outcome=outcome, random_state=5) for flip in (0.0, 0.1)
        )
        pd.testing.assert_frame_equal(right.X, wrong.X)
        a, b = (np.atleast_2d(cohort.y.to_numpy().T).T for cohort in (right, wrong))
        assert np.flatnonzero((a != b).any(axis=1)).tolist() == list(wrong.truth.flipped)
        assert len(wrong.truth.flipped) == 6
        assert {tuple(row) for row in b} <= {tuple(row) for row in a}


def test_further_cohorts_of_numbers_have_the_same_effects():
    one, two = make_cohort(800, 20, n_relevant=4, outcome="numbers", cohorts=2, shift=1.0, random_state=6)
    assert one.truth.relevant == two.truth.relevant
    slopes = [np.polynomial.Polynomial.fit(c.X[c.truth.relevant[0]], c.y, 1).convert().coef[1] for c in (one, two)]
    assert abs(slopes[0] - slopes[1]) < 0.5
    assert np.sign(slopes[0]) == np.sign(slopes[1])
    assert (two.X.mean() - one.X.mean()).std() > 0.5


def test_a_missing_file_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"COLON needs colon.parquet.*docs/data.md.*MARGINSIEVE_DATA"):
        named_problems.load("colon")
    with pytest.raises(InputError, match="there is no data set 'IRIS'; the names are 'GORDON'"):
        named_problems.load("IRIS")
    monkeypatch.delenv("MARGINSIEVE_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert papers.folder() == tmp_path / "marginsieve"


def test_files_are_read_by_the_papers_names(monkeypatch, tmp_path):
    frame = pd.DataFrame({"g": [1.0, 2.0, 3.0], "target": pd.Categorical(["kidney", "liver", "colon"])})
    frame.to_parquet(tmp_path / "car.parquet")
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    data = named_problems.load("CAR 1")
    assert data.y.tolist() == ["kidney", "rest", "rest"]
    assert (data.name, data.positive, list(data.X.columns)) == ("CAR1", "kidney", ["g"])


SHAPES = {  # samples, features, positives: as the papers print them (CAR: one more gene than its paper)
    "GORDON": (181, 12533, 31),
    "GLIOMA": (50, 4434, 7),
    "SRBCT": (83, 2308, 11),
    "BHAT1": (203, 3312, 20),
    "BHAT2": (203, 3312, 17),
    "BHAT3": (203, 3312, 21),
    "BHAT4": (203, 3312, 6),
    "CAR1": (174, 9183, 11),
    "CAR2": (174, 9183, 12),
    "CAR3": (174, 9183, 7),
    "CAR4": (174, 9183, 6),
    "CARPROSTATE": (174, 9183, 26),
    "DIA": (768, 8, 268),
    "WBC": (569, 30, 212),
    "CMA": (62, 2000, 22),
    "LMA": (96, 4026, 46),
    "LYMPHOMA61": (96, 4026, 61),
    "LYMPHOMA66": (96, 4026, 66),
    "ARRHYTHMIA": (452, 279, 207),
    "ARRHYTHMIA430": (430, 279, 185),
    "HEART": (303, 13, 139),
    "HEPATITIS": (155, 19, 32),
    "VANTVEER": (77, 24195, 33),
    "VANTVEER4348": (77, 4355, 33),
    "BREAST": (97, 24188, 46),
    "BREAST78": (78, 24188, 34),
    "LEUKEMIA38": (38, 7129, 11),
    "CNS": (60, 7129, 21),
    "COHORT77": (77, 4355, 33),
    "DLBCL": (77, 7129, 19),
    "LEU": (72, 7129, 25),
    "SONAR": (208, 60, 111),
    "IONOSPHERE": (351, 34, 126),
    "MFEAT": (2000, 649, 200),
    "LEPIOTA": (8124, 22, 3916),
    "FACE": (400, 4096, 10),
}


@pytest.mark.data
@pytest.mark.parametrize("name", long_but(SHAPES, "SONAR", "LEU"))
def test_shapes_of_the_papers_tables(name):
    if not named_problems.present([name]):
        pytest.skip("the papers' data sets are not here (MARGINSIEVE_DATA)")
    data = named_problems.load(name)
    assert (*data.X.shape, int((data.y == data.positive).sum())) == SHAPES[name]
    assert "target" not in data.X.columns


def test_every_problem_has_a_shape_to_check():
    assert {papers.ALIASES.get(name, name) for name in SHAPES} == set(named_problems.names())
