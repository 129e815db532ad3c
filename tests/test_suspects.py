"""Suspicions: held-out scores equal refitting, probabilities hold, and all that name suspects name the same."""

import importlib
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, special
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import marginsieve
from marginsieve.cli.commands import app
from marginsieve.data import make_cohort
from marginsieve.data.table import Schema
from marginsieve.errors import InputError
from marginsieve.estimators.suspects import choose_suspects, gaussian_columns, label_columns
from marginsieve.outcomes.label_noise import wrong_label
from marginsieve.outcomes.target import stratified_folds
from marginsieve.solvers.ridge import LARGEST_RANK, RELATIVE, HeldOutRidge, screened_scores

SHAPES = [(30, 8), (20, 45)]  # fewer columns than rows, and more


def planted(seed=0, m=80, n=200, flips=8):
    """A wide table of eight strong columns, labels of which some are flipped, and which."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    X = rng.normal(size=(m, n))
    X[:, :8] += 2.0 * (2 * y[:, None] - 1) / 2
    wrong = rng.choice(m, flips, replace=False)
    given = y.copy()
    given[wrong] = 1 - given[wrong]
    return X, given, wrong


# -- held-out scores -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("grouped", [False, True])
def test_held_out_values_are_those_of_refits(shape, grouped):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=shape), rng.choice([-1.0, 1.0], shape[0]), rng.uniform(0.5, 2.0, shape[0])
    groups = rng.integers(0, 6, shape[0]) if grouped else np.arange(shape[0])
    groups = np.unique(groups, return_inverse=True)[1]
    ridge = HeldOutRidge.from_rows(X, weight, rng, groups if grouped else None)
    labels = np.column_stack([y, np.where(np.arange(shape[0]) == 3, -y, y)])
    values, means = ridge.values(labels, 2.5), ridge.mean_of_others(labels)
    for group in np.unique(groups):
        out = groups == group
        for k in range(2):
            peer = Ridge(alpha=2.5, solver="cholesky").fit(X[~out], labels[~out, k], sample_weight=weight[~out])
            np.testing.assert_allclose(values[out, k], peer.predict(X[out]), atol=1e-9)
            np.testing.assert_allclose(means[out, k], np.average(labels[~out, k], weights=weight[~out]))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_weight_of_two_is_the_row_twice(shape):
    rng = np.random.default_rng(1)
    X, y, weight = rng.lognormal(size=shape), rng.choice([-1.0, 1.0], shape[0]), rng.integers(1, 4, shape[0])
    rows = np.repeat(np.arange(shape[0]), weight)
    scores = []
    for table, count, groups in ((X, weight.astype(float), None), (X[rows], np.ones(len(rows)), rows)):
        columns = label_columns(Schema.from_table(table).table(table), count, rng)
        for features in (columns, gaussian_columns(columns, count, rng)):
            scores.append(HeldOutRidge.from_rows(features, count, rng, groups).scores(y if groups is None else y[rows]))
    for once, again in zip(scores[:2], scores[2:], strict=True):
        np.testing.assert_allclose(once[rows], again, atol=1e-7)
    label = y > 0
    twice = wrong_label(scores[2], label[rows], np.ones(len(rows)))
    np.testing.assert_allclose(wrong_label(scores[0], label, weight.astype(float))[rows], twice, atol=1e-9)


def test_the_penalty_is_the_one_with_the_smallest_error():
    X, y, _ = planted(n=20)
    ridge, label = HeldOutRidge.from_rows(X, np.ones(80), np.random.default_rng(0)), 2.0 * y - 1
    unit = ridge.energy.mean()
    errors = [((ridge.values(label[:, None], unit * one)[:, 0] - label) ** 2).sum() for one in RELATIVE]
    assert ridge.best_penalty(label) == unit * RELATIVE[int(np.argmin(errors))]
    held_out = ridge.values(label[:, None], ridge.best_penalty(label))[:, 0]
    np.testing.assert_allclose(ridge.scores(label), held_out - (label.sum() - label) / 79)


def test_leading_directions_stand_for_large_tables(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 80))
    monkeypatch.setattr("marginsieve.solvers.ridge.LARGEST_RANK", 5)
    assert LARGEST_RANK > 80
    y = np.sign(X[:, :1])
    few = HeldOutRidge.from_rows(X, np.ones(60), rng).values(y, 1.0)
    monkeypatch.undo()
    np.testing.assert_allclose(few, HeldOutRidge.from_rows(X, np.ones(60), rng).values(y, 1.0), atol=1e-8)


def test_screened_scores_do_not_see_the_row():
    X, y, _ = planted(m=60, n=50, flips=0)
    label, folds = 2.0 * y - 1, stratified_folds(y, None, 5, 0)
    scores = screened_scores(X, label, np.ones(60), folds, [10])
    test = folds[0][1]
    changed = label.copy()
    changed[test] *= -1
    np.testing.assert_allclose(screened_scores(X, changed, np.ones(60), folds, [10])[test], scores[test])
    assert roc_auc_score(y, scores) > 0.8


def test_shuffled_labels_leave_nothing_in_the_scores():
    """Leaving a row out lowers the mean label of its class; the scores are free of that."""
    rng = np.random.default_rng(0)
    areas = []
    for _ in range(30):
        y = rng.permutation(np.arange(40) % 2)
        ridge = HeldOutRidge.from_rows(rng.normal(size=(40, 100)), np.ones(40), rng)
        areas.append(roc_auc_score(y, ridge.scores(2.0 * y - 1)))
    assert abs(np.mean(areas) - 0.5) < 3 * np.std(areas) / np.sqrt(30)


def test_long_tails_become_ranks_and_gaps_have_a_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.exp(2.0 * rng.normal(size=50)), "k": rng.choice(list("uvw"), 50)})  # long tails
    frame.loc[:4, "a"], frame.loc[45:, "k"] = np.nan, None
    first, second = (
        label_columns(Schema.from_table(one).table(one), np.ones(50), rng)
        for one in (frame, frame.assign(a=5.0 * frame["a"] ** 1.5))
    )
    np.testing.assert_allclose(first, second)
    short = label_columns(Schema.from_table(X := rng.normal(size=(50, 2))).table(X), np.ones(50), rng)
    np.testing.assert_allclose(short, (X - X.mean(axis=0)) / X.std(axis=0))
    assert first.shape == (50, 6)  # a, where it is missing; u, v, w, where it is missing
    np.testing.assert_allclose(first.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(first.std(axis=0), 1.0)


# -- probabilities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separation", "rates"),  # separation 2 with 20 % wrong misses the promise: .38 is said where .50 is true
    [
        (2.0, (0.08, 0.08)),
        *(pytest.param(2.0, rates, marks=pytest.mark.long) for rates in ((0.0, 0.0), (0.0, 0.2))),
        *(
            pytest.param(3.5, rates, marks=pytest.mark.long)
            for rates in ((0.0, 0.0), (0.08, 0.08), (0.0, 0.2), (0.2, 0.2))
        ),
    ],
)
def test_probabilities_are_calibrated_where_the_model_holds(rates, separation):
    """The promise: bins within .1 (200 rows or more), the sum within a quarter of the flips or .015 of the rows."""
    rng = np.random.default_rng(0)
    stated, wrong = [], []
    for _ in range(15):
        true = rng.random(300) < 0.5
        score = rng.normal(size=300) + separation * true
        flip = rng.random(300) < np.where(true, rates[1], rates[0])
        stated.append(wrong_label(score, true ^ flip, np.ones(300)))
        wrong.append(flip)
    stated, wrong = np.concatenate(stated), np.concatenate(wrong)
    assert abs(stated.sum() - wrong.sum()) <= max(0.25 * wrong.sum(), 0.015 * len(wrong))
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.01)):
        inside = (stated >= low) & (stated < high)
        if inside.sum() >= 200:
            assert stated[inside].mean() == pytest.approx(wrong[inside].mean(), abs=0.1)


def test_suspicion_falls_with_the_score_of_the_label():
    rng = np.random.default_rng(0)
    positive = rng.random(1000) < 0.3  # more rows than points of the posterior
    score = rng.normal(size=1000) + 1.5 * positive
    p = wrong_label(score, positive, np.ones(1000))
    for side, sign in ((positive, -1), (~positive, 1)):
        assert (np.diff(p[side][np.argsort(score[side])]) * sign >= -1e-12).all()
    np.testing.assert_allclose(wrong_label(3.0 * score + 7.0, positive, np.ones(1000)), p, atol=1e-9)
    np.testing.assert_allclose(wrong_label(-score, ~positive, np.ones(1000)), p, atol=1e-3)  # up to the points


def test_generated_tables_keep_the_promise():
    stated, wrong = [], []
    for seed in range(8):
        cohort = make_cohort(300, 20, n_relevant=8, effect=1.2, prevalence=0.4, flip=0.1, random_state=seed)
        stated.append(marginsieve.find_suspects(cohort.X, cohort.y, random_state=0)["suspicion"].to_numpy())
        wrong.append(np.isin(np.arange(300), cohort.truth.flipped))
    stated, wrong = np.concatenate(stated), np.concatenate(wrong)
    assert abs(stated.sum() - wrong.sum()) <= 0.25 * wrong.sum()
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 1.01)):
        inside = (stated >= low) & (stated < high)
        assert stated[inside].mean() == pytest.approx(wrong[inside].mean(), abs=0.1)


def test_noise_of_one_class_is_told_from_noise_of_both():
    rng = np.random.default_rng(0)
    y = np.repeat(["case", "control"], [200, 300])
    X = rng.normal(size=(500, 10))
    X[:, :4] += 2.0 * (y == "case")[:, None]
    given = y.copy()
    given[rng.choice(200, 40, replace=False)] = "control"  # 40 of the 340 that are labelled so
    share = marginsieve.find_suspects(X, given, random_state=0).attrs["wrong_share"]
    assert share["control"] == pytest.approx(40 / 340, abs=0.03)
    assert share["case"] < 0.02


def test_clean_tables_have_few_suspects():
    flags = [
        marginsieve.find_suspects(*planted(seed, flips=0)[:2], random_state=0)["suspect"].mean() for seed in range(5)
    ]
    assert np.mean(flags) <= 0.01


def test_noise_has_no_suspects():
    """Where nothing can be told, no label can be called wrong."""
    rng = np.random.default_rng(0)
    judged = marginsieve.find_suspects(rng.normal(size=(60, 100)), np.arange(60) % 2, random_state=0)
    assert judged.suspect.mean() <= 0.05
    assert judged.suspicion.mean() < 0.3


@pytest.mark.parametrize("rare", [2, 5, 8])
def test_a_rare_class_is_not_suspect_for_being_rare(rare):
    flagged = 0
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(100, 10))
        y = (np.arange(100) < rare).astype(int)
        flagged += marginsieve.find_suspects(X, y, random_state=0).suspect[:rare].sum()
    assert flagged <= 0.25 * 4 * rare


def test_the_cut_holds_its_share():
    p = np.array([0.99, 0.9, 0.6, 0.3, 0.05, *[0.01] * 45])
    chosen = choose_suspects(p, np.ones(50), 0.05)
    assert (1 - p[chosen]).sum() <= 0.05 * (1 - p).sum()
    assert chosen[:3].all()
    assert not chosen[3:].any()
    assert choose_suspects(p, np.ones(50), 0.001).sum() == 1


# -- find_suspects ---------------------------------------------------------------------------------------------------


def test_planted_flips_are_found():
    X, y, wrong = planted()
    judged = marginsieve.find_suspects(X, y, random_state=0)
    assert list(judged.columns) == ["suspicion", "margin", "suspect"]
    assert judged.suspect.dtype == bool
    hits = judged.suspect.to_numpy()[wrong].sum()
    assert hits >= 6
    assert judged.suspect.sum() - hits <= 2
    assert judged.suspicion.between(0, 1).all()
    assert (judged.suspicion[judged.suspect] >= 0.5).all()
    assert (judged.margin[judged.suspect] < 0).all()
    shares = judged.suspicion.groupby(y).mean()
    assert judged.attrs["wrong_share"] == pytest.approx({str(label): share for label, share in shares.items()})


def test_the_class_weight_moves_the_border_alone():
    cohort = make_cohort(120, 10, n_relevant=4, effect=2.0, prevalence=0.2, random_state=0)
    even, plain, given = (
        marginsieve.find_suspects(cohort.X, cohort.y, class_weight=one, random_state=0)
        for one in ("balanced", None, {"case": 1.0, "control": 1.0})
    )
    np.testing.assert_array_equal(even.suspicion, plain.suspicion)
    pd.testing.assert_frame_equal(plain, given)
    side = np.where(cohort.y == "case", 1.0, -1.0)
    shift = side * (even.margin - plain.margin)
    np.testing.assert_allclose(shift, shift[0])
    assert shift[0] > 0  # towards the rare class
    means = (side * even.margin).groupby(cohort.y).mean()
    assert means["case"] == pytest.approx(-means["control"])


def test_the_same_for_any_number_of_workers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 30)), np.repeat(["a", "b", "c"], 30)
    X[:, 0] += np.repeat([0.0, 2.0, 4.0], 30)
    one, two = (marginsieve.find_suspects(X, y, random_state=0, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert one.attrs == two.attrs


def test_more_classes_weights_groups_categories_and_gaps():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    X = pd.DataFrame({"n": rng.normal(size=90) + 3 * (y == "a"), "k": np.where(y == "b", "yes", "no")})
    X.loc[rng.choice(90, 9, replace=False), "n"] = np.nan
    given = y.copy()
    given[[0, 35]] = "c"
    weight = np.ones(90)
    weight[5] = 0.0
    judged = marginsieve.find_suspects(X, given, sample_weight=weight, groups=np.arange(90) // 2, random_state=0)
    assert len(judged) == 90
    assert np.isnan(judged.suspicion[5])
    assert not judged.suspect[5]
    assert judged.suspect[35]
    assert set(judged.attrs["wrong_share"]) == {"a", "b", "c"}


def test_rows_of_a_group_are_judged_without_each_other():
    """Two rows of a person differ from each other by nothing, and their label says nothing of the columns."""
    rng = np.random.default_rng(0)
    persons, y = rng.normal(size=(40, 30)), np.repeat(rng.permutation(np.arange(40) % 2), 2)
    X, groups = np.repeat(persons, 2, axis=0), np.repeat(np.arange(40), 2)
    alone, together = (marginsieve.find_suspects(X, y, groups=one, random_state=0) for one in (None, groups))
    assert (alone.margin > 0).mean() > 0.9
    assert (together.margin > 0).mean() < 0.7


@pytest.mark.parametrize("X", [np.zeros((60, 1)), np.ones((60, 3)), (np.arange(60.0) < 2)[:, None]])
def test_columns_that_hardly_vary(X):
    judged = marginsieve.find_suspects(X, np.repeat([1, 0], 30), random_state=0)
    assert not judged.suspect.any()
    assert judged.suspicion.between(0, 0.3).all()


def test_sparse_tables_are_the_dense_ones(monkeypatch):
    X, y, wrong = planted(n=30)
    X = np.where(X > 0, X, 0.0)
    dense, thin = (marginsieve.find_suspects(table, y, random_state=0) for table in (X, sparse.csr_array(X)))
    pd.testing.assert_frame_equal(dense, thin)
    monkeypatch.setattr("marginsieve.estimators.suspects.MOST_CELLS", 10)
    projected = marginsieve.find_suspects(sparse.csr_array(X), y, random_state=0)
    assert roc_auc_score(np.isin(np.arange(80), wrong), projected.suspicion) > 0.7


def test_tall_tables_are_judged_and_fast():
    cohort = make_cohort(6000, 20, n_relevant=8, effect=1.2, flip=0.05, random_state=0)
    since = time.perf_counter()
    judged = marginsieve.find_suspects(cohort.X, cohort.y, random_state=0)
    assert time.perf_counter() - since < 60  # about 4 s; the resampled machines took many minutes
    wrong = np.isin(np.arange(6000), cohort.truth.flipped)
    assert judged.suspicion.sum() == pytest.approx(wrong.sum(), rel=0.25)
    assert wrong[judged.suspect].mean() > 0.7


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"clean_rate": 2.0}, "clean_rate is 2.0; it must be a positive number of at most 1"),
        ({"class_weight": "even"}, "class_weight is 'even'"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"random_state": -1}, "random_state is -1"),
        ({"groups": np.zeros(60)}, "groups is the same for all rows"),
    ],
)
def test_mistakes_are_named(settings, sentence):
    X, y, _ = planted(m=60, n=5)
    with pytest.raises(InputError, match=sentence):
        marginsieve.find_suspects(X, y, **settings)


# -- one meaning everywhere ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    cohort = make_cohort(90, 30, n_relevant=8, effect=2.0, prevalence=0.4, flip=0.08, missing=0.02, random_state=3)
    return cohort.frame().assign(sample=[f"S{k:03}" for k in range(90)])


def test_study_command_and_function_agree(noisy, tmp_path):
    X, y = noisy.drop(columns=["outcome", "sample"]), noisy["outcome"]
    judged = marginsieve.find_suspects(X, y, random_state=0)
    assert judged["suspect"].sum() >= 3
    study = marginsieve.study(noisy.drop(columns="outcome"), y, methods="su", cv=3, n_repeats=1, labels="fallible")
    noisy.to_csv(tmp_path / "t.csv", index=False)
    words = ["suspects", str(tmp_path / "t.csv"), "--target", "outcome", "--out", str(tmp_path / "s.csv")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    written = pd.read_csv(tmp_path / "s.csv")
    study.save(tmp_path / "out")
    kept = pd.read_csv(tmp_path / "out" / "suspects.csv")
    columns = ["row", "id", "label", "suspicion", "margin", "suspect"]
    assert list(written.columns) == columns
    assert list(study.suspects.columns) == list(kept.columns) == [*columns, "missed", "verdict"]
    for frame in (written, study.suspects, kept):
        by_row = frame.sort_values("row", ignore_index=True)
        np.testing.assert_array_equal(by_row["row"], np.arange(1, 91))
        np.testing.assert_allclose(by_row["suspicion"], judged["suspicion"], atol=1e-6)
        np.testing.assert_allclose(by_row["margin"], judged["margin"], atol=1e-6)
        assert list(by_row["suspect"]) == list(judged["suspect"])
        assert list(by_row["id"]) == list(noisy["sample"])
        assert list(by_row["label"]) == list(y)
    suspects = study.result["analyses"]["suspects"]
    assert suspects["count"] == len(suspects["rows"]) == judged["suspect"].sum()
    assert suspects["wrong_share"] == pytest.approx(judged.attrs["wrong_share"], abs=1e-6)
    assert {row["row"] - 1 for row in suspects["rows"]} == set(np.flatnonzero(judged["suspect"]))
    wrong = [row for row in suspects["rows"] if row["verdict"] == "probably wrong"]
    assert all(row["suspicion"] >= 0.9 and row["missed"] > 0.5 for row in wrong)
    text = " ".join(study.result["answer"]["sentences"])
    assert ("probably wrong" in text) == bool(wrong)
    assert "check them by hand. Estimated share of wrong labels" in text
    assert f"{suspects['count']} labels more likely wrong than right" in answer.output


def test_no_list_under_a_card_of_none(noisy):
    clean = make_cohort(90, 30, n_relevant=8, effect=3.0, prevalence=0.4, random_state=3)
    study = marginsieve.study(clean.X, clean.y, methods="fisher", cv=3, n_repeats=1, labels="fallible")
    assert study.result["analyses"]["suspects"]["count"] == 0
    assert study.result["analyses"]["suspects"]["rows"] == []
    assert "labels is called wrong" in study.html()
    assert json.dumps(study.result["analyses"]["suspects"]["wrong_share"])


# -- the benchmark ---------------------------------------------------------------------------------------------------


def test_confident_learning_is_cleanlabs(monkeypatch):
    cleanlab = pytest.importorskip("cleanlab.filter")
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    benchmark = importlib.import_module("benchmarks.suspects")
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = (rng.random(150) < rng.uniform(0.1, 0.6)).astype(int)
        p = special.expit((2 * y - 1) * rng.uniform(0.2, 3.0) + rng.normal(size=150))
        given = np.where(rng.random(150) < 0.1, 1 - y, y)
        peer = cleanlab.find_label_issues(given, np.column_stack([1 - p, p]))
        np.testing.assert_array_equal(benchmark.confident_learning(given, p), peer)
