"""Covariates: what the list adds to columns that are known anyway, against scikit-learn on the same folds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import marginsieve
from marginsieve.errors import InputError


@pytest.fixture(scope="module")
def table():
    """Age says something, sex nothing, and three columns say much."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(120) < 50, "case", "control")
    X = pd.DataFrame(rng.normal(size=(120, 15)), columns=[f"g{k}" for k in range(15)])
    X[["g0", "g1", "g2"]] += 1.0 * (y == "case")[:, None]
    X["age"] = 50.0 + 10.0 * (rng.normal(size=120) + 0.7 * (y == "case"))
    X["sex"] = rng.integers(0, 2, 120).astype(float)
    return X, y


def run(X, y, baseline, **options):
    options = {"methods": "fisher", "n_features_to_select": 4, "cv": 4, "n_repeats": 2, **options}
    return marginsieve.study(X, y, baseline=baseline, without=("suspects", "references", "substitutes"), **options)


@pytest.fixture(scope="module")
def study(table):
    return run(*table, ("age", "sex"))


def test_scores_are_those_of_scikit_learn_on_the_same_folds(study, table):
    X, y = table
    known, nested = study.result["analyses"]["covariates"], study.main.nested
    names, numbers = np.array(study.run.table.rows.schema.names), study.run.data.numbers
    X, y = X.iloc[numbers].reset_index(drop=True), (y[numbers] == "case").astype(int)
    won, pairs = dict.fromkeys(known["scores"], 0.0), 0.0
    for fold in [fold for fold in nested.folds if fold.repeat == 0]:
        train = np.setdiff1d(np.arange(120), fold.test)
        rest = [name for name in names[fold.support] if name not in ("age", "sex")]
        count = y[fold.test].sum() * (len(fold.test) - y[fold.test].sum())
        pairs += count
        for key, columns in {"baseline": ["age", "sex"], "list": rest, "both": [*rest, "age", "sex"]}.items():
            model = make_pipeline(StandardScaler(), SVC(kernel="linear", class_weight="balanced", tol=1e-6))
            value = model.fit(X.loc[train, columns], y[train]).decision_function(X.loc[fold.test, columns])
            won[key] += count * roc_auc_score(y[fold.test], value)
    for key, area in won.items():
        assert known["scores"][key]["auc"]["value"] == pytest.approx(area / pairs, abs=2e-3)
    adds = known["scores"]["both"]["auc"]["value"] - known["scores"]["baseline"]["auc"]["value"]
    assert known["adds"]["auc"]["value"] == pytest.approx(adds)


def test_a_list_with_the_signal_adds_and_is_said_to(study):
    known = study.result["analyses"]["covariates"]
    assert known["adds"]["auc"]["low"] > 0
    assert known["columns"] == ["age", "sex"]
    (text,) = [
        each for each in study.result["answer"]["sentences"] if each.startswith("To age and sex the list adds +")
    ]
    assert "to the rest of the list they add" in text
    page = study.html()
    assert 'id="covariates"' in page
    assert "the list without them" in page


def test_a_list_without_a_signal_adds_nothing(table):
    X, y = table
    noise = X[["age", *(f"g{k}" for k in range(3, 15))]].assign(age=X["age"] + 30.0 * (y == "case"))
    known = run(noise, y, "age").result["analyses"]["covariates"]
    assert known["adds"]["auc"]["low"] < 0.0 < known["reverse"]["auc"]["low"]
    assert known["listed"] == ["age"]


def test_numbers_and_times_have_covariates_too(table):
    X, _ = table
    value = X["g0"] + X["g1"] + 0.02 * X["age"] + 0.1 * X["g5"]
    known = run(X, value.to_numpy(), "age", n_repeats=1).result["analyses"]["covariates"]
    assert known["adds"]["r2"]["low"] > 0
    time = np.exp(-value + value.mean())
    event = np.arange(120) % 3 > 0
    known = run(X, np.column_stack([time, event]), "age", n_repeats=1, outcome="survival")
    known = known.result["analyses"]["covariates"]
    assert next(reversed(known["adds"].values()))["low"] > 0


def test_where_only_such_columns_are_selected_there_is_no_reverse(table):
    X, y = table
    X = X[["age", "g5"]].assign(age=X["age"] + 60.0 * (y == "case"))
    known = run(X, y, "age", n_features_to_select=1, n_repeats=1).result
    assert known["analyses"]["covariates"]["reverse"] is None
    assert any("nothing besides them was selected" in each for each in known["answer"]["sentences"])


def test_columns_must_be_there(table):
    with pytest.raises(InputError, match="did you mean 'age'"):
        run(*table, "agee")
