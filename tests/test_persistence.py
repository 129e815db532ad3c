"""Models in files: what comes back predicts the same, what is no model is refused; predictions for new tables."""

import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

from marginsieve import InputError, load, predict, recipes, save
from marginsieve.data import make_cohort

SHORT = {
    "fs_svm": {"solver": "fast", "shakes": 0, "budget": 3},
    "ramp_fs": {"solver": "fast", "shakes": 0, "budget": 3},
    "symon": {"improvisations": 5, "memory": 4},
    "stable_fisher": {"ensemble": 3},
}


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(60, 20, n_relevant=4, effect=1.6, prevalence=0.4, random_state=0)


@pytest.fixture(scope="module")
def model(cohort):
    return recipes.fisher(n_features_to_select=4, random_state=0, probability=True).fit(cohort.X, cohort.y)


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_comes_back_as_it_was(name, cohort, tmp_path):
    made = recipes.get(name)(random_state=0, threshold="margin", class_weight="balanced", **SHORT.get(name, {}))
    X = cohort.X.assign(twin=2.0 * cohort.X.iloc[:, 0] + 1.0)  # near-duplicates are named in the model
    made.fit(X, cohort.y)
    back = load(save(made, tmp_path / "model.marginsieve"))
    np.testing.assert_array_equal(back.decision_function(X), made.decision_function(X))
    np.testing.assert_array_equal(back.get_feature_names_out(), made.get_feature_names_out())
    assert repr(back) == repr(made)
    if hasattr(made, "suspects_"):
        pd.testing.assert_frame_equal(back.suspects_, made.suspects_, check_dtype=False, check_names=False)


def test_what_predictions_do_not_need_may_be_of_another_library(cohort, tmp_path):
    made = recipes.fisher(sampler=RandomOverSampler(random_state=0), cv=StratifiedKFold(3), random_state=0)
    made.fit(cohort.X, cohort.y)
    back = load(save(made, tmp_path / "m.marginsieve"))
    np.testing.assert_array_equal(back.predict(cohort.X), made.predict(cohort.X))
    assert isinstance(made.sampler, RandomOverSampler)  # the model itself is left as it is


def test_what_cannot_be_read_back_is_not_written(cohort, tmp_path):
    made = recipes.symon(d=3, metric=len_of, threshold="margin", improvisations=2, memory=3).fit(cohort.X, cohort.y)
    with pytest.raises(InputError, match=r"the model holds .*len_of"):
        save(made, tmp_path / "m.marginsieve")
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotFittedError):
        save(recipes.fisher(), tmp_path / "m.marginsieve")


def len_of(y, value):
    return float(len(y) + 0.0 * value.sum())


def archive(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name, text in members.items():
            made.writestr(name.replace("_", "."), text)
    return content.getvalue()


def evil():
    """A skops file that asks for a function of the operating system."""
    state = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode", "content": "", "__id__": 1}
    return archive(schema_json=json.dumps({**state, "protocol": 2, "_skops_version": "0.12"}))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (pickle.dumps({"a": 1}), "is not a model of marginsieve .* a pickle, for one, is never loaded"),
        (b"", "is empty: copy it again"),
        (archive(note_txt="hello"), "is damaged or no model of marginsieve"),
        (archive(schema_json="{"), "is damaged or no model of marginsieve"),
        (evil(), "holds .*system.*, which is none of our types: it is not loaded|is damaged"),
    ],
    ids=["pickle", "empty", "other archive", "broken schema", "foreign function"],
)
def test_what_is_no_model_is_refused(content, sentence, tmp_path):
    (tmp_path / "m.marginsieve").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        load(tmp_path / "m.marginsieve")


def test_a_tampered_model_is_refused(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    schema = json.loads(members["schema.json"])
    schema["__class__"], schema["__module__"] = "Popen", "subprocess"
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            new.writestr(name, json.dumps(schema) if name == "schema.json" else content)
    with pytest.raises(InputError, match=r"holds 'subprocess.Popen', which is none of our types"):
        load(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="is cut off: copy it again"):
        load(path)
    with pytest.raises(InputError, match="there is no model"):
        load(tmp_path / "elsewhere")


# -- predictions -----------------------------------------------------------------------------------------------------


def test_predictions_are_the_models_own_whatever_the_order_of_the_columns(model, cohort):
    found = predict(model, cohort.X[cohort.X.columns[::-1]])
    np.testing.assert_array_equal(found.table["predicted"], model.predict(cohort.X))
    sign = 1 if model.classes_[1] == model.positive_ else -1
    np.testing.assert_allclose(found.table["score"], sign * model.decision_function(cohort.X))
    assert ((found.table["score"] > 0) == (found.table["predicted"] == model.positive_)).all()
    place = list(model.classes_).index(model.positive_)
    np.testing.assert_allclose(found.table["probability"], model.predict_proba(cohort.X)[:, place])
    assert found.notes == ()
    assert not found.table["far"].any()  # each training sample is itself


def test_only_the_selected_columns_have_to_be_there(model, cohort):
    chosen = list(model.get_feature_names_out())
    found = predict(model, cohort.X[chosen].assign(note="text", age=7))
    np.testing.assert_array_equal(found.table["predicted"], model.predict(cohort.X))
    assert found.notes == ("columns that the model does not know were not used: 'note', 'age'",)
    with pytest.raises(InputError, match=rf"the table lacks '{chosen[1]}', which the model needs; it needs 4 in all"):
        predict(model, cohort.X[chosen].drop(columns=chosen[1]))
    with pytest.raises(InputError, match="no rows to predict"):
        predict(model, cohort.X.head(0))


def test_samples_far_outside_are_marked(model, cohort):
    far = cohort.X.head(3).copy()
    far.iloc[1] += 50.0
    found = predict(model, far)
    assert found.table["far"].tolist() == [False, True, False]
    assert "1 of 3 samples are far outside the training samples" in found.notes[0]


def test_levels_that_training_never_saw_are_told(rng):
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    X["word"] = pd.Series(np.where(rng.random(60) < 0.9, np.where(y == 1, "yes", "no"), "maybe"), dtype=object)
    made = recipes.clinical_rfe(n_features_to_select=2, threshold="margin", keep=["word"]).fit(X, y)
    new = X.head(4).copy()
    new.loc[1, "word"], new.loc[2, "word"] = "never", None
    found = predict(made, new)
    assert found.notes[0] == "'word' has levels that training never saw in 1 rows: 'never'; like no other"


def test_models_of_arrays_know_their_columns_by_number(cohort):
    made = recipes.fisher(n_features_to_select=3, threshold="margin").fit(cohort.X.to_numpy(), cohort.y)
    frame = pd.DataFrame(cohort.X.to_numpy(), columns=[f"x{j}" for j in range(20)])
    np.testing.assert_array_equal(predict(made, frame).table["predicted"], made.predict(cohort.X.to_numpy()))


def test_many_classes(rng):
    y = np.arange(60) % 3
    X = pd.DataFrame(rng.normal(size=(60, 4)) + y[:, None], columns=list("abcd"))
    made = recipes.fisher(n_features_to_select=2).fit(X, y)
    found = predict(made, X).table
    np.testing.assert_allclose(found["score"], made.decision_function(X).max(axis=1))


def test_no_cell_of_a_csv_is_a_formula(tmp_path):
    from marginsieve.study.files import write_csv

    frame = pd.DataFrame({"=name": ["=1+1", "@x", "plain", "-5 mg"], "number": [-1.5, 2.0, 3.0, 4.0]})
    write_csv(frame, tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv")
    assert back.columns.tolist() == ["'=name", "number"]
    assert back["'=name"].tolist() == ["'=1+1", "'@x", "plain", "'-5 mg"]
    assert back["number"].tolist() == [-1.5, 2.0, 3.0, 4.0]
