"""ONNX models give what decision_function gives, in onnxruntime."""

import sys

import numpy as np
import pandas as pd
import pytest

from marginsieve import recipes, to_onnx
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.kernels import Gaussian, Polynomial

COHORT = make_cohort(80, 15, n_relevant=3, effect=1.5, random_state=0)
X = COHORT.X.to_numpy() * np.logspace(-3, 3, 15) + np.linspace(-50, 50, 15)  # units of all kinds
THREE = np.digitize(COHORT.X["g03"], [-0.5, 1.0])
LEVELS = pd.DataFrame({"c": pd.Categorical(np.where(COHORT.y == "case", "u", "v"))})
FIXED = {"n_features_to_select": 4, "random_state": 0}
MODELS = {
    "linear": lambda: recipes.svm_rfe(**FIXED),
    "l1": lambda: recipes.l1_cssvm(random_state=0),
    "gaussian": lambda: recipes.svm_rfe(kernel="gaussian", **FIXED),
    "narrow": lambda: recipes.fisher(kernel=Gaussian(width=3.0), **FIXED),
    "learned": lambda: recipes.kp_svm(random_state=0),
    "polynomial": lambda: recipes.svm_rfe(kernel=Polynomial(degree=2), **FIXED),
    "clinical": lambda: recipes.clinical_rfe(**FIXED),
    "mkl": lambda: recipes.mkl_rfe(**FIXED),
    "views": lambda: recipes.two_views(**FIXED),
}


def run(model, rows):
    """The decision values that onnxruntime gives for rows of the selected columns."""
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    (values,) = session.run(["decision"], {"X": rows[:, model.get_support()]})
    return values


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", ["two", "three"])
def test_it_gives_the_decision_function(name, target):
    pytest.importorskip("onnx", reason="needs the extra marginsieve[onnx]")
    model = MODELS[name]().fit(X, COHORT.y if target == "two" else THREE)
    beyond = np.vstack([X, 1.5 * X])  # outside the range of training too
    expected = model.decision_function(beyond)
    values = run(model, beyond)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(values.reshape(expected.shape), expected, atol=1e-6 * max(scale, 1.0), rtol=0)


def test_a_positive_class_that_is_the_first_has_the_same_sign():
    pytest.importorskip("onnx", reason="needs the extra marginsieve[onnx]")
    for label in np.unique(COHORT.y):
        model = recipes.fisher(positive=label, **FIXED).fit(X, COHORT.y)
        np.testing.assert_allclose(run(model, X)[:, 0], model.decision_function(X), atol=1e-9)


def test_gaps_of_training_and_truth_values_are_as_in_the_kernel():
    pytest.importorskip("onnx", reason="needs the extra marginsieve[onnx]")
    frame = COHORT.X.iloc[:, :6].assign(flag=COHORT.X["g03"] > 0)
    frame.iloc[::7, 2] = np.nan
    model = recipes.clinical_rfe(n_features_to_select=7, class_weight="balanced", random_state=0).fit(frame, COHORT.y)
    whole = frame.dropna()
    values = run(model, whole[list(model.feature_names_in_)].to_numpy(dtype=float))
    np.testing.assert_allclose(values[:, 0], model.decision_function(whole), atol=1e-9)


def test_the_file_names_its_columns_and_classes(tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs the extra marginsieve[onnx]")
    model = recipes.fisher(**FIXED).fit(COHORT.X, COHORT.y)
    to_onnx(model, tmp_path / "m.onnx")
    props = {each.key: each.value.split("\n") for each in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert props == {"features": list(model.get_feature_names_out()), "classes": list(map(str, model.classes_))}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: recipes.svdd_rfe(kernel="gaussian", **FIXED).fit(X, COHORT.y), "Sphere on the gaussian kernel"),
        (lambda: recipes.fisher(outcome="numbers", **FIXED).fit(X, X[:, 0]), "outcome is 'numbers'"),
        (lambda: recipes.clinical_rfe(random_state=0).fit(LEVELS, COHORT.y), "the columns 'c' have levels"),
    ],
)
def test_what_has_no_onnx_model_is_refused(make, sentence):
    pytest.importorskip("onnx", reason="needs the extra marginsieve[onnx]")
    with pytest.raises(InputError, match=sentence):
        to_onnx(make())


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'marginsieve\[onnx\]'"):
        to_onnx(recipes.fisher(**FIXED).fit(X, COHORT.y))
