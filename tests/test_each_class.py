"""Several classes: AUC against the rest and of pairs, scores of each class, what features tell, a list per class."""

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score, roc_auc_score

import marginsieve
from marginsieve.engine import Pass, nested_cv
from marginsieve.outcomes import ClassTarget
from marginsieve.outcomes.scores import areas_by_class, areas_by_pair


@pytest.fixture
def values(rng):
    """Classes of 20, 30 and 40 rows, and rows of probabilities."""
    codes = np.repeat([0, 1, 2], [20, 30, 40])
    return codes, special.softmax(rng.normal(size=(90, 3)) + 1.5 * np.eye(3)[codes], axis=1)


def test_both_aucs_are_those_of_scikit_learn(values):
    codes, p = values
    target = ClassTarget.from_codes(codes)
    known = target.scores(Pass(p.argmax(axis=1), values=p))
    assert known["auc_rest"].value == pytest.approx(roc_auc_score(codes, p, multi_class="ovr"), abs=1e-12)
    assert known["auc_pairs"].value == pytest.approx(roc_auc_score(codes, p, multi_class="ovo"), abs=1e-12)
    one = areas_by_class(p, codes, np.zeros(90, dtype=int))
    for code in range(3):
        assert one[code][0] == pytest.approx(roc_auc_score(codes == code, p[:, code]), abs=1e-12)
    pairs = areas_by_pair(p, codes, np.zeros(90, dtype=int))
    rows = codes != 1
    both = [roc_auc_score(codes[rows] == code, p[rows, code]) for code in (0, 2)]
    assert pairs[0, 2][0] == pytest.approx(np.mean(both), abs=1e-12)


def test_values_of_two_folds_are_not_compared(values):
    codes, p = values
    fold = np.arange(90) % 2
    shifted = p + 10.0 * fold[:, None]
    target = ClassTarget.from_codes(codes)
    ours = target.scores(Pass(p.argmax(axis=1), fold=fold, values=p))
    moved = target.scores(Pass(p.argmax(axis=1), fold=fold, values=shifted))
    for name in ("auc_rest", "auc_pairs"):
        assert moved[name].value == pytest.approx(ours[name].value, abs=1e-12)


def test_what_rows_add_has_the_variance_of_the_score(values, rng):
    """Against the deviation over tables that are drawn from the rows of each class."""
    codes, p = values
    known = ClassTarget.from_codes(codes).scores(Pass(p.argmax(axis=1), values=p))
    draws = []
    for _ in range(400):
        rows = np.concatenate([rng.choice(np.flatnonzero(codes == code), (codes == code).sum()) for code in range(3)])
        one = ClassTarget.from_codes(codes[rows]).scores(Pass(p[rows].argmax(axis=1), values=p[rows]))
        draws.append([one["auc_rest"].value, one["auc_pairs"].value])
    for name, spread in zip(("auc_rest", "auc_pairs"), np.std(draws, axis=0), strict=True):
        influence = known[name].influence
        assert np.sqrt(influence @ influence) == pytest.approx(spread, rel=0.12)
        assert [influence[codes == code].sum() for code in range(3)] == pytest.approx([0, 0, 0], abs=1e-12)


def test_scores_of_a_class_are_those_of_scikit_learn(values):
    codes, p = values
    called = p.argmax(axis=1)
    target = ClassTarget.from_codes(codes, classes=["a", "b", "c"])
    known = target.scores_by_class(Pass(called, values=p))
    found = [known[name]["sensitivity"].value for name in "abc"]
    np.testing.assert_allclose(found, recall_score(codes, called, average=None))
    right = [known[name]["ppv"].value for name in "abc"]
    np.testing.assert_allclose(right, precision_score(codes, called, average=None))


def test_two_classes_have_no_such_scores(values):
    codes, p = values
    binary = ClassTarget.from_codes((codes > 0).astype(int))
    assert binary.against_rest() == {}
    assert "auc_rest" not in binary.scores(Pass((p[:, 0] < 0.5).astype(int), 0.5 - p[:, 0]))


@pytest.fixture(scope="module")
def table():
    """Three classes; a tells x from the rest, b tells y, and c is lower in z."""
    rng = np.random.default_rng(0)
    y = np.repeat(["x", "y", "z"], [30, 30, 40])
    X = pd.DataFrame(rng.normal(size=(100, 12)), columns=list("abcdefghijkl"))
    X["a"] += 2.0 * (y == "x")
    X["b"] += 2.0 * (y == "y")
    X["c"] -= 2.0 * (y == "z")
    return X, y


def test_any_classifier_is_scored_on_its_values(table):
    X, y = table
    nested = nested_cv(LogisticRegression(), X, y, cv=3, n_repeats=1)
    (one_pass,) = nested.passes
    areas = [
        roc_auc_score(y[fold.test], special.softmax(one_pass.values[fold.test], axis=1), multi_class="ovr")
        for fold in nested.folds
    ]
    assert nested.scores().value["auc_rest"] == pytest.approx(np.mean(areas), abs=0.01)  # folds differ in their pairs


@pytest.fixture(scope="module")
def study(table):
    X, y = table
    return marginsieve.study(
        X, y, methods="fisher", n_features_to_select=3, cv=4, n_repeats=1, without=("suspects", "references")
    )


def test_a_study_has_a_list_for_each_class(study):
    known = study.result["analyses"]["each-class"]
    rows = {row["name"]: row for row in known["classes"]}
    assert {name: row["rows"] for name, row in rows.items()} == {"x": 30, "y": 30, "z": 40}
    assert {name: row["list"]["features"][0] for name, row in rows.items()} == {"x": "a", "y": "b", "z": "c"}
    assert all(row["list"]["scores"]["auc"]["value"] > 0.8 for row in rows.values())
    confusion = np.array(study.result["confusion"]["counts"])
    for k, row in enumerate(known["classes"]):
        assert row["scores"]["sensitivity"]["value"] == pytest.approx(confusion[k, k] / confusion[k].sum())
        away = np.where(np.arange(3) == k, 0, confusion[k])
        assert row["taken_for"] == "xyz"[int(away.argmax())]
    assert [set(row["pair"]) for row in known["pairs"]] != []
    mean = np.mean([row["value"] for row in known["pairs"]])
    assert mean == pytest.approx(study.result["scores"]["auc_pairs"]["value"])


def test_each_feature_tells_its_class(study):
    tells = {feature["name"]: feature["tells"] for feature in study.result["features"]}
    assert {name: each["class"] for name, each in tells.items()} == {"a": "x", "b": "y", "c": "z"}
    assert tells["c"]["direction"] == "lower in z"
    assert study.features.set_index("name")["tells"].to_dict() == dict.fromkeys("defghijkl", "") | {
        "a": "x",
        "b": "y",
        "c": "z",
    }


def test_the_answer_and_the_page_have_the_classes(study):
    (text,) = [each for each in study.result["answer"]["sentences"] if each.startswith("AUC of one class against")]
    worst = min(
        study.result["analyses"]["each-class"]["classes"], key=lambda row: row["scores"]["sensitivity"]["value"]
    )
    assert f"Least often found is {worst['name']}" in text
    assert text.endswith("have so many features: x 3, y 3, z 3.")
    page = study.html()
    assert 'id="each-class"' in page or 'id="classes"' in page
    assert "Pairs of classes" in page
