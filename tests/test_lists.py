"""Two lists from one curve: the short one, which is a study's answer, and the longer one beside it."""

import numpy as np
import pandas as pd
import pytest

import marginsieve
from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.engine.nested import Fold
from marginsieve.engine.scoring import score_difference
from marginsieve.errors import InputError
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.held_out import choose_size, smooth_scores
from marginsieve.fitting.procedure import ListRequest

PLAIN = {"cv": 3, "n_repeats": 2, "without": ("suspects", "references", "substitutes")}


@pytest.mark.parametrize(("rule", "price", "usual"), [("short", 0.005, 20), ("auto", 0.002, 50), ("best", 0.0, 1)])
def test_a_rule_is_its_formula(rule, price, usual):
    rng = np.random.default_rng(0)
    sizes = (1, 2, 3, 5, 9, 17, 30, 60, 120, 300)
    for columns in (100, 5000):
        for _ in range(50):
            score = rng.uniform(0.6, 0.9, len(sizes))
            smooth = smooth_scores(np.array(sizes, dtype=float), score)
            value = [s - price * np.log2(k / min(usual, columns**0.5)) ** 2 for s, k in zip(smooth, sizes, strict=True)]
            assert choose_size(sizes, score, columns, rule) == sizes[int(np.argmax(value))]


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(70, 150, n_relevant=20, effect=0.9, prevalence=0.4, random_state=2)


@pytest.mark.parametrize("name", ["fisher", "two_views", "clinical_rfe", "stable_fisher"])
def test_both_lists_are_those_of_fits_of_their_own(cohort, name):
    """The second list changes nothing of the first; both are what the rules alone give, if the long one is longer."""
    selector = recipes.get(name)(random_state=0)
    rows = encode(selector, cohort.X, cohort.y, None)
    seed = np.random.SeedSequence(7)
    both = selector.fit_rows(rows, np.random.SeedSequence(7), lists=ListRequest(short=True))
    alone = selector.fit_rows(rows, seed)
    assert alone.short is None
    short = recipes.get(name)(random_state=0, n_features_to_select="short").fit_rows(rows, np.random.SeedSequence(7))
    longer = max(short, alone, key=lambda fitted: len(fitted.model.features))
    assert len(both.model.features) >= len(both.short.model.features)
    for ours, theirs in ((both, longer), (both.short, short)):
        np.testing.assert_array_equal(ours.model.features, theirs.model.features)
        np.testing.assert_allclose(ours.values(rows.table.Z), theirs.values(rows.table.Z), rtol=0, atol=1e-9)
        assert ours.path.n_selected == theirs.path.n_selected


@pytest.mark.parametrize("settings", [{"n_features_to_select": 5}, {"n_features_to_select": 0.2}])
def test_a_given_number_is_one_list(cohort, settings):
    selector = recipes.two_views(random_state=0, **settings)
    rows = encode(selector, cohort.X, cohort.y, None)
    assert selector.fit_rows(rows, lists=ListRequest(short=True)).short is None


def test_a_method_that_chooses_its_number_has_one_list(cohort):
    study = marginsieve.study(cohort.X, cohort.y, methods="kp_svm", **(PLAIN | {"n_repeats": 1}))
    rule = study.result["methods"][0]["size_rule"]
    assert (study.result["lists"]["long"] is None) == (rule == "method")
    one = marginsieve.study(cohort.X, cohort.y, methods="fisher", n_features_to_select=4, **PLAIN)
    share = one.result["analyses"]["false-share"]["share"]
    assert one.result["lists"] == {"chance_share": share, "long": None, "difference": None}
    assert one.long_model is None
    assert one.features["in_long"].tolist() == one.features["selected"].tolist()


def test_short_is_a_rule_of_estimators_and_words_that_are_none_are_refused(cohort):
    short = recipes.fisher(n_features_to_select="short", random_state=0).fit(cohort.X, cohort.y)
    usual = recipes.fisher(n_features_to_select="auto", random_state=0).fit(cohort.X, cohort.y)
    assert short.n_features_ <= usual.n_features_
    assert recipes.fisher().n_features_to_select is None
    with pytest.raises(InputError, match="short"):
        recipes.fisher(n_features_to_select="shortest").fit(cohort.X, cohort.y)


@pytest.fixture(scope="module")
def study(cohort):
    return marginsieve.study(cohort.X, cohort.y, methods="two_views", **PLAIN)


def test_a_study_has_both_with_predictions_of_their_own(cohort, study, tmp_path):
    result, longer = study.result, study.main.longer
    long = result["lists"]["long"]
    assert result["methods"][0]["size_rule"] == "short"
    assert result["n_features"] == study.model.n_features_ == study.features["in_short"].sum()
    assert long["n_features"] == study.long_model.n_features_ == study.features["in_long"].sum()
    assert set(long["features"]) == set(study.long_model.get_feature_names_out())
    frame = study.predictions
    by_row = frame.pivot_table(index="repeat", columns="row", values="decision_long").to_numpy()
    numbers = study.run.data.numbers
    np.testing.assert_allclose(by_row[:, numbers], longer.nested.decision, rtol=0, atol=1e-12)
    assert not np.allclose(frame["decision"], frame["decision_long"])
    study.save(tmp_path)
    loaded = marginsieve.load(tmp_path / "model-long.marginsieve")
    np.testing.assert_array_equal(loaded.decision_function(cohort.X), study.long_model.decision_function(cohort.X))
    kept = pd.read_csv(tmp_path / "features.csv")
    assert kept["in_long"].sum() == long["n_features"]


def test_the_difference_is_paired_and_said(study):
    change = score_difference(study.run.table.target, study.main.longer.nested.passes, study.main.nested.passes)
    kept = study.result["lists"]["difference"]
    for name, value in change.value.items():
        assert kept[name] == {"value": value, "low": change.low[name], "high": change.high[name]}
    text = next(text for text in study.result["answer"]["sentences"] if text.startswith("The long list"))
    verdict = "clearly better" if kept["auc"]["low"] > 0 else "worse" if kept["auc"]["high"] < 0 else "cannot tell"
    assert verdict in text
    assert "The short and the long list" in study.html()
    assert ("long less short" in study.html()) == (kept is not None)


def test_rows_of_units_have_the_short_list_first():
    entry = {"predicted": [0], "decision": [0.1], "support": [1], "probability": None, "unit": 1.0}
    row = {
        "split": "0.0",
        "seconds": 1.0,
        "result": {"test": [0], "notes": [], "by_size": [entry, {**entry, "support": [1, 2]}]},
    }
    assert Fold.from_row(row).support.tolist() == [1]
    assert Fold.from_row(row, 1).support.tolist() == [1, 2]
