"""Models for reference: the folds, repeats and threshold rule of the methods, and differences that add up."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import marginsieve
from marginsieve.data import make_cohort
from marginsieve.outcomes.scores import balanced_threshold
from marginsieve.outcomes.target import stratified_folds
from marginsieve.studies.analyses.references import FOLDS, OnCodes
from marginsieve.studies.answer import answer

QUICK = {"methods": "fisher", "cv": 3, "n_repeats": 2, "without": ("suspects", "substitutes")}


@pytest.fixture(scope="module")
def study():
    cohort = make_cohort(90, 20, n_relevant=5, effect=0.8, prevalence=0.3, random_state=0)
    return marginsieve.study(cohort.X, cohort.y, with_="boosted-trees", **QUICK)


def test_differences_are_those_of_the_values_shown(study):
    result = study.result
    everything = result["methods"][-1]["scores"]
    rows = [row for name in ("references", "boosted-trees") for row in result["analyses"][name]["compared"]]
    assert [row["title"] for row in rows] == ["l1 logistic regression", "random forest", "boosted trees"]
    for row in rows:
        assert row["seconds"] > 0
        for name, score in row["scores"].items():
            assert row["difference"][name]["value"] == pytest.approx(score["value"] - everything[name]["value"])
            against = score["value"] - result["scores"][name]["value"]
            assert row["against_list"][name]["value"] == pytest.approx(against)


def test_boosted_trees_are_run_where_they_are_asked_for(study):
    cohort = make_cohort(60, 8, n_relevant=2, effect=1.0, random_state=0)
    plain = marginsieve.study(cohort.X, cohort.y, **(QUICK | {"n_repeats": 1}))
    assert plain.result["analyses"]["boosted-trees"] is None
    assert plain.result["protocol"]["left_out"]["boosted-trees"] == "it was not asked for"
    assert "boosted trees" not in plain.html()
    assert "boosted trees" in study.html()


@pytest.mark.parametrize("forest", [False, True])
def test_the_threshold_is_that_of_rows_that_were_not_fitted_on(forest):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) < 20, "case", "control")
    Z = rng.normal(size=(80, 5)) + 1.0 * (y == "case")[:, None]
    plain = RandomForestClassifier(50, oob_score=True, random_state=0) if forest else LogisticRegression()
    model = OnCodes(plain, ("real",) * 5).fit(Z, y)
    X = model.scaler_.transform(Z)
    codes = (y == "control").astype(int)
    if forest:
        value = clone(plain).fit(X, y).oob_decision_function_[:, 1]
    else:
        folds = stratified_folds(codes, None, FOLDS, 0)
        value = cross_val_predict(plain, X, y, cv=folds, method="predict_proba")[:, 1]
    assert model.threshold_ == balanced_threshold(value, 2.0 * codes - 1.0, np.ones(80))
    assert model.threshold_ > 0.5  # half of the probability would call nearly all the frequent class
    called = np.where(model.predict_proba(Z)[:, 1] > model.threshold_, "control", "case")
    np.testing.assert_array_equal(model.predict(Z), called)


def test_inner_folds_keep_groups_together(monkeypatch):
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, 0].copy())
            return super().fit(X, y)

    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 3)
    y = np.repeat(rng.permutation(np.arange(20) % 2), 3)
    Z = np.column_stack([groups.astype(float), rng.normal(size=60)])
    OnCodes(Spy(), ("real", "real")).fit(Z, y, groups)
    inner = [np.unique(part, return_counts=True)[1] for part in seen if len(part) < 60]
    assert len(inner) == FOLDS
    assert all((counts == 3).all() for counts in inner)


def test_a_model_that_wins_is_said_to(study):
    result = copy.deepcopy(study.result)
    text = " ".join(answer(result)["sentences"])
    assert "No model for reference is shown to be better than the list" in text or "Scores higher than the list" in text
    for row in result["analyses"]["references"]["compared"]:
        row["against_list"]["auc"] = {"value": 0.05, "low": 0.01, "high": 0.09}
    text = " ".join(answer(result)["sentences"])
    assert "Scores higher than the list on the same folds: l1 logistic regression (" in text
    assert "AUC +0.05 against the list (+0.01 to +0.09); random forest (" in text
