"""A linear result as a formula: it is the decision value itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import marginsieve
from marginsieve import recipes
from marginsieve.data import make_cohort

COHORT = make_cohort(60, 30, n_relevant=5, effect=1.5, random_state=0)
LINEAR = [
    "svm_rfe",
    "fisher",
    "stable_fisher",
    "l1_cssvm",
    "svm_l1",
    "fsv",
    "ramp_svm",
    "fs_svm",
    "ramp_fs",
    "symon",
    "kp_svm",
]
SHORT = {  # a formula is read off the solution, however long the search for it was
    "stable_fisher": {"ensemble": 5},
    "l1_cssvm": {"points": 10},
    "svm_l1": {"points": 10},
    "fsv": {"points": 10},
    "ramp_svm": {"points": 10},
    "fs_svm": {"solver": "fast"},
    "ramp_fs": {"solver": "fast"},
    "symon": {"improvisations": 50},
    "kp_svm": {"kernel": "linear"},
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", LINEAR)
def test_the_formula_is_the_decision_value(name, standardize):
    X = 10.0 + 3.0 * COHORT.X.to_numpy(dtype=float)
    selector = recipes.get(name)(standardize=standardize, random_state=0, **SHORT.get(name, {})).fit(X, COHORT.y)
    assert selector.coef_.shape == (1, 30)
    assert not selector.coef_[0, ~selector.support_].any()
    value = selector.decision_function(X)
    np.testing.assert_allclose(X @ selector.coef_[0] + selector.intercept_[0], value, atol=1e-8 * np.abs(value).max())


@pytest.mark.parametrize("positive", [0, 1])
def test_either_class_may_be_the_one_of_interest(positive):
    label = np.unique(COHORT.y)[positive]
    selector = recipes.fisher(n_features_to_select=5, positive=label).fit(COHORT.X, COHORT.y)
    value = COHORT.X.to_numpy(dtype=float) @ selector.coef_[0] + selector.intercept_[0]
    np.testing.assert_allclose(value, selector.decision_function(COHORT.X), atol=1e-8)


@pytest.mark.usefixtures("kept_sparse")
def test_three_classes_sparse_tables_and_booleans_have_one_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 300)), np.arange(60) % 3
    X[:, 0] += y
    many = recipes.fisher(n_features_to_select=280).fit(X, y)
    np.testing.assert_allclose(X @ many.coef_.T + many.intercept_, many.decision_function(X), atol=1e-8)
    packed = sparse.csr_array(np.where(X > 0.5, X, 0.0))
    thin = recipes.fisher(n_features_to_select=4).fit(packed, y == 0)
    np.testing.assert_allclose(packed @ thin.coef_[0] + thin.intercept_[0], thin.decision_function(packed), atol=1e-8)
    frame = pd.DataFrame({"yes": y == 0, "x": X[:, 1]})
    flags = recipes.fisher(n_features_to_select=2).fit(frame, y == 1)
    value = frame.to_numpy(dtype=float) @ flags.coef_[0] + flags.intercept_[0]
    np.testing.assert_allclose(value, flags.decision_function(frame), atol=1e-8)


def test_what_is_not_linear_has_none():
    X = COHORT.X.to_numpy(dtype=float)
    assert not hasattr(recipes.fisher(), "coef_")
    curved = recipes.fisher(kernel="gaussian", n_features_to_select=3).fit(X, COHORT.y)
    with pytest.raises(AttributeError, match="no coef_: CSVC on the gaussian kernel is not linear"):
        _ = curved.coef_
    assert not hasattr(recipes.svdd_rfe(kernel="linear", n_features_to_select=3).fit(X, COHORT.y), "intercept_")
    frame = pd.DataFrame({"x": X[:, 0], "colour": pd.Categorical(np.where(X[:, 1] > 0, "red", "blue"))})
    levels = recipes.svm_l1(C=10.0, n_features_to_select=2, class_weight="balanced").fit(frame, COHORT.y)
    with pytest.raises(AttributeError, match="the column 'colour' has levels"):
        _ = levels.coef_


@pytest.mark.parametrize("positive", [0, 1])
def test_a_study_gives_the_score_and_the_probability_by_hand(positive):
    label = np.unique(COHORT.y)[positive]
    found = marginsieve.study(
        COHORT.X,
        COHORT.y,
        methods="fisher",
        positive=label,
        cv=2,
        n_repeats=1,
        without=("suspects", "references"),
        n_permutations=24,
    )
    told = marginsieve.predict(found.model, COHORT.X).table
    features, formula = found.features.query("selected"), found.result["formula"]
    score = COHORT.X[features["name"]].to_numpy(dtype=float) @ features["coefficient"] + formula["intercept"]
    np.testing.assert_allclose(formula["sign"] * score, told["score"], atol=1e-8)
    chance = 1.0 / (1.0 + np.exp(-(formula["slope"] * score + formula["offset"])))
    np.testing.assert_allclose(chance, told["probability"], atol=1e-8)
    assert found.features.query("not selected")["coefficient"].isna().all()
    assert "The model as a formula" in found.html()
