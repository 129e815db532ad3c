"""Why a row: contributions sum to the score, are the terms of linear and clinical models, and Shapley's values else."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import marginsieve
from marginsieve import explain, predict, recipes
from marginsieve.cli.commands import app
from marginsieve.errors import InputError
from marginsieve.estimators.explanations import contributions


@pytest.fixture(scope="module")
def mixed():
    """Numbers, a category, a boolean, empty cells."""
    rng = np.random.default_rng(0)
    y = np.repeat(["case", "control"], 35)
    X = pd.DataFrame(rng.normal(size=(70, 5)), columns=list("uvwxy"))
    X["u"] += 1.5 * (y == "case")
    X["level"] = rng.choice(["p", "q", "r"], 70, p=[0.2, 0.5, 0.3])
    X["flag"] = rng.random(70) > 0.6
    X.loc[[3, 8], "v"] = np.nan
    return X, y


def numbers_of(mixed):
    X, y = mixed
    return X[list("uvwxy")].fillna(0.0), y


def test_contributions_of_a_linear_model_are_its_terms(mixed):
    X, y = numbers_of(mixed)
    model = recipes.fisher(n_features_to_select=3, positive="control", random_state=0).fit(X, y)
    known, names = explain(model, X), model.get_feature_names_out()
    sign = np.sign(model.decision_function(X)) * np.sign(predict(model, X).table["score"])
    terms = (X[names] - X[names].mean()) * model.coef_[0][model.support_] * sign.to_numpy()[0]
    assert known.exact
    np.testing.assert_allclose(known.contributions[names], terms[names], atol=1e-10)
    assert known.baseline == pytest.approx(X[names].mean().to_dict())


@pytest.mark.parametrize("recipe", ["clinical_rfe", "fisher", "two_views"])
def test_contributions_sum_to_the_score(mixed, recipe):
    X, y = mixed if recipe == "clinical_rfe" else numbers_of(mixed)
    for labels in (y, np.arange(70) % 3) if recipe == "fisher" else (y,):
        model = recipes.get(recipe)(n_features_to_select=4, random_state=0).fit(X, labels)
        known = explain(model, X)
        total = known.base + known.contributions.sum(axis=1)
        np.testing.assert_allclose(total, predict(model, X).table["score"], atol=1e-10)


def test_a_clinical_model_is_explained_whatever_the_other_features_are(mixed):
    """What a feature adds is a function of it alone: equal cells add the same, and a cell at the baseline nothing."""
    X, y = mixed
    model = recipes.clinical_rfe(n_features_to_select=6, keep=["level", "v"], random_state=0).fit(X, y)
    known = explain(model, X)
    assert known.exact
    by_level = known.contributions["level"].groupby(X["level"]).agg(["min", "max"])
    np.testing.assert_allclose(by_level["min"], by_level["max"], atol=1e-10)
    assert known.baseline["level"] == "q"
    np.testing.assert_allclose(by_level.loc["q"], 0.0, atol=1e-10)
    assert np.ptp(known.contributions["v"][[3, 8]]) < 1e-10


def test_a_baseline_of_ones_own(mixed):
    X, y = numbers_of(mixed)
    model = recipes.fisher(n_features_to_select=3, random_state=0).fit(X, y)
    known, score = explain(model, X, baseline=X.iloc[[5]]), predict(model, X).table["score"]
    np.testing.assert_allclose(known.contributions.iloc[5], 0.0, atol=1e-12)
    np.testing.assert_allclose(known.base, score[5])
    with pytest.raises(InputError, match="it must be one row"):
        explain(model, X, baseline=X)


def test_means_over_all_orders_are_shapley_values(rng):
    """Of a product of three features, with every order; by the formula over subsets."""
    Z, start = rng.normal(size=(4, 3)), rng.normal(size=3)

    def value(rows):
        return (rows.prod(axis=1) + rows[:, 0] ** 2)[:, None]

    orders = [np.array(order) for order in itertools.permutations(range(3))]
    found = contributions(value, Z, start, orders, np.zeros(4, dtype=int))
    for row, z in enumerate(Z):
        for j in range(3):
            rest, total = [k for k in range(3) if k != j], 0.0
            for size in range(3):
                for some in itertools.combinations(rest, size):
                    without = start.copy()
                    without[list(some)] = z[list(some)]
                    with_it = without.copy()
                    with_it[j] = z[j]
                    share = math.factorial(size) * math.factorial(2 - size) / 6
                    total += share * float(value(with_it[None])[0, 0] - value(without[None])[0, 0])
            assert found[row, j] == pytest.approx(total)


def test_a_gaussian_model_is_explained_by_means_over_orders(mixed):
    X, y = numbers_of(mixed)
    model = marginsieve.SVMSelector("gaussian", n_features_to_select=3, random_state=0).fit(X, y)
    known = explain(model, X)
    assert not known.exact
    total = known.base + known.contributions.sum(axis=1)
    np.testing.assert_allclose(total, predict(model, X).table["score"], atol=1e-10)
    pd.testing.assert_frame_equal(explain(model, X).contributions, known.contributions)
    assert "on average over 16 orders" in known.words


def test_numbers_and_times_are_explained(mixed):
    X, _ = numbers_of(mixed)
    value = X["u"] + 0.5 * X["v"]
    number = recipes.fisher(n_features_to_select=2, outcome="numbers", random_state=0).fit(X, value)
    times = np.column_stack([np.exp(-value), np.arange(70) % 4 > 0])
    risk = recipes.fisher(n_features_to_select=2, outcome="survival", random_state=0).fit(X, times)
    for model in (number, risk):
        known = explain(model, X)
        total = known.base + known.contributions.sum(axis=1)
        np.testing.assert_allclose(total, predict(model, X).table["predicted"], atol=1e-9)


@pytest.fixture(scope="module")
def folder(mixed, tmp_path_factory):
    X, y = mixed
    out = tmp_path_factory.mktemp("study")
    study = marginsieve.study(
        X,
        y,
        methods="clinical-rfe",
        n_features_to_select=3,
        cv=3,
        n_repeats=1,
        without=("suspects", "references", "substitutes", "false-share"),
        explain_rows=[4, "70"],
    )
    study.save(out / "result")
    X.head(5).to_csv(out / "new.csv", index=False)
    return study, out


def test_the_page_explains_the_rows_that_were_named(folder, mixed):
    study, _ = folder
    known, (X, y) = study.result["analyses"]["explained-rows"], mixed
    assert [row["row"] for row in known["rows"]] == [4, 70]
    first = known["rows"][0]
    assert first["observed"] == y[3]
    assert first["score"] == pytest.approx(predict(study.model, X.iloc[[3]]).table["score"][3])
    assert first["base"] + sum(each["adds"] for each in first["features"]) + first["rest"] == pytest.approx(
        first["score"]
    )
    page = study.html()
    assert "Row 70" in page
    assert "the parts are exact" in page


def test_a_row_that_is_not_there_is_refused_before_anything_is_run(mixed):
    with pytest.raises(InputError, match="names row 71, which is not among the 70"):
        marginsieve.study(*mixed, explain_rows=[71])
    with pytest.raises(InputError, match="must be numbers of rows"):
        marginsieve.study(*mixed, explain_rows=["a"])


def test_the_command_explains_predictions(folder):
    _, out = folder
    file, model = out / "predicted.csv", out / "result" / "model.marginsieve"
    words = ["predict", str(model), str(out / "new.csv"), "--explain", "--out", str(file)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "the model is a sum over features" in done.output.replace("\n", " ")
    table = pd.read_csv(file)
    adds = [name for name in table.columns if name.startswith("adds_")]
    assert len(adds) == 3
    np.testing.assert_allclose(table["base"] + table[adds].sum(axis=1), table["score"], atol=1e-9)
    done = CliRunner().invoke(app, [*words[:4], "--json"])
    assert set(adds) < set(json.loads(done.stdout)["rows"][0])
