"""Models in files: what comes back predicts the same, what is no model is refused; predictions for new tables."""

import io
import json
import pickle
import re
import zipfile
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

import marginsieve
from marginsieve import InputError, SVMSelector, load, predict, recipes, save
from marginsieve.contracts import Step
from marginsieve.data import make_cohort
from marginsieve.estimators import persistence
from marginsieve.estimators import persistence as container

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


@pytest.fixture(scope="module")
def twins(cohort):
    return cohort.X.assign(twin=2.0 * cohort.X.iloc[:, 0] + 1.0)  # near-duplicates are named in the model


@pytest.fixture(scope="module")
def fitted(cohort, twins):
    """A recipe's model by its name, fitted once."""

    @cache
    def fit(name):
        made = recipes.get(name)(random_state=0, threshold="margin", class_weight="balanced", **SHORT.get(name, {}))
        return made.fit(twins, cohort.y)

    return fit


@pytest.mark.parametrize("name", recipes.names("classes"))
def test_every_recipe_comes_back_as_it_was(name, fitted, twins, tmp_path):
    made, X = fitted(name), twins
    back = load(save(made, tmp_path / "model.marginsieve"))
    np.testing.assert_array_equal(back.decision_function(X), made.decision_function(X))
    np.testing.assert_array_equal(back.get_feature_names_out(), made.get_feature_names_out())
    assert repr(back) == repr(made)
    if hasattr(made, "suspects_"):
        pd.testing.assert_frame_equal(back.suspects_, made.suspects_, check_dtype=False, check_names=False)


def test_what_predictions_do_not_need_may_be_of_another_library(cohort, tmp_path):
    given = {"sampler": RandomOverSampler(random_state=0), "cv": StratifiedKFold(3)}
    made = recipes.fisher(**given, random_state=np.random.RandomState(0)).fit(cohort.X, cohort.y)
    back = load(save(made, tmp_path / "m.marginsieve"))
    np.testing.assert_array_equal(back.predict(cohort.X), made.predict(cohort.X))
    assert isinstance(made.sampler, RandomOverSampler)  # the model itself is left as it is
    assert isinstance(made.random_state, np.random.RandomState)


def test_what_predictions_do_not_need_is_left_out(cohort, tmp_path):
    made = recipes.symon(d=3, metric=len_of, threshold="margin", improvisations=2, memory=3).fit(cohort.X, cohort.y)
    loaded = load(save(made, tmp_path / "m.marginsieve"))
    assert loaded.search == SVMSelector().search
    np.testing.assert_array_equal(loaded.decision_function(cohort.X), made.decision_function(cohort.X))
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


def content_of(selector, format_=persistence.FORMAT):
    return json.dumps({"format": format_, "package": "0.1.0", "selector": selector})


def signed(text):
    """An archive of this text alone, with the right digest."""
    data = text.encode()
    return archive(model_json=data, sha256=container._digest([("model.json", data)]))


def skops_file():
    """What an earlier version wrote; this one asks for a function of the operating system."""
    state = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode", "content": "", "__id__": 1}
    return archive(schema_json=json.dumps({**state, "protocol": 2, "_skops_version": "0.12"}))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            pickle.dumps({"a": 1}),
            "not a model of marginsieve: it is not an archive: a pickle, for one, is never loaded",
        ),
        (b"", "is empty: copy it again"),
        (archive(note_txt="hello"), "is damaged or not a model of marginsieve"),
        (archive(model_json="{"), "is damaged or not a model of marginsieve"),
        (signed("[]"), "is damaged or not a model of marginsieve: its format is not what a model holds there"),
        (signed('{"format": "1"}'), "is damaged or not a model of marginsieve: its format is not"),
        (signed(content_of({})), "is damaged or not a model of marginsieve"),
        (
            signed(content_of({"$type": "os.system", "with": {}})),
            "holds 'os.system', which is not a type of marginsieve",
        ),
        (skops_file(), "is damaged or not a model of marginsieve"),
    ],
    ids=[
        "pickle",
        "empty",
        "other archive",
        "broken text",
        "other text",
        "no number of a format",
        "nothing in it",
        "foreign function",
        "skops",
    ],
)
def test_what_is_no_model_is_refused(content, sentence, tmp_path):
    (tmp_path / "m.marginsieve").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        load(tmp_path / "m.marginsieve")


def test_a_file_that_is_cut_off_is_refused(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="is cut off: copy it again"):
        load(path)
    with pytest.raises(InputError, match="there is no model"):
        load(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["svm_rfe", "two_views", "symon"])
def test_equal_fits_have_equal_files(name, cohort):
    """F6: files held seconds, and with them no two were equal."""
    settings = {"random_state": 0, **SHORT.get(name, {})}
    contents = {
        container.to_bytes(recipes.get(name)(n_jobs=jobs, **settings).fit(cohort.X, cohort.y)) for jobs in (None, 1)
    }
    assert len(contents) == 1


@pytest.mark.parametrize("changed", [lambda c: b"#!/bin/sh\n" + c, lambda c: c + b"\0", lambda c: c[:-2] + b"\4\0junk"])
def test_bytes_around_an_archive_are_refused(model, tmp_path, changed):
    """F6: they were not looked at, so that a model could be something else too."""
    path = save(model, tmp_path / "m.marginsieve")
    path.write_bytes(changed(path.read_bytes()))
    with pytest.raises(InputError, match=r"it holds [\d,]+ bytes, and a model with its content [\d,]+"):
        load(path)


# -- the format ------------------------------------------------------------------------------------------------------


def members_of(path):
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def rewritten(path, members):
    """The same file with other members, and the right digest of them."""
    plain = [(name, content) for name, content in members.items() if name != container.DIGEST]
    with zipfile.ZipFile(path, "w") as made:
        for name, content in plain:
            made.writestr(name, content)
        made.writestr(container.DIGEST, container._digest(plain))
    return path


def text_of(path):
    return json.loads(members_of(path)[container.TEXT])


def changed(path, change):
    """The file after `change` had its way with the JSON in it."""
    members = members_of(path)
    text = json.loads(members[container.TEXT])
    change(text)
    return rewritten(path, {**members, container.TEXT: json.dumps(text).encode()})


def places(value, key):
    """Every JSON object below that has this key."""
    if isinstance(value, dict) and key in value:
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from places(item, key)


def entry(text, *keys):
    """A value of the selector by the names on the way to it."""
    found = text["selector"]
    for key in keys:
        found = found[key] if isinstance(key, int) else next(item for name, item in found["$dict"] if name == key)
    return found


def test_a_file_says_its_format_and_who_wrote_it(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    text = text_of(path)
    assert list(text) == ["format", "package", "selector"]
    assert (text["format"], text["package"]) == (persistence.FORMAT, marginsieve.__version__)
    assert persistence.FORMAT == 3
    arrays = {name for name in members_of(path) if name not in ("model.json", "sha256")}
    assert arrays == {f"{one['$array']}.npy" for one in places(text, "$array")}


@pytest.mark.parametrize("number", [0, 1, 99])
def test_a_file_of_another_format_is_refused(number, model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    changed(path, lambda text: text.update(format=number, package="9.8.7"))
    own = persistence.FORMAT
    with pytest.raises(
        InputError, match=rf"'m.marginsieve' .* it has format {number} \(marginsieve 9.8.7\) .* reads {own}:"
    ):
        load(path)


@pytest.mark.parametrize("name", recipes.names("classes"))
def test_parts_have_their_public_names(name, fitted, tmp_path):
    path = save(fitted(name), tmp_path / "m.marginsieve")
    written = members_of(path)["model.json"].decode()
    assert "marginsieve." not in written
    types = {one["$type"] for one in places(json.loads(written), "$type")}
    rooms = {"kernels", "machines", "criteria", "searches"}
    assert {one.split(".")[0] for one in types if "." in one} <= rooms
    for one in (one for one in types if "." in one):
        room, short = one.split(".")
        assert short in getattr(marginsieve, room).__all__
    assert types >= {"Schema", "Table", "Solution", "Path", "Step"}


def test_the_name_of_a_kernel(cohort, tmp_path):
    made = recipes.svm_rfe(kernel="gaussian", n_features_to_select=3, threshold="margin").fit(cohort.X, cohort.y)
    text = text_of(save(made, tmp_path / "m.marginsieve"))
    assert entry(text, "params", "kernel")["$type"] == "kernels.Gaussian"
    assert entry(text, "params", "machine") == {
        "$type": "machines.CSVC",
        "with": {"C": 1.0, "max_iter": None, "tol": made.machine.tol},
    }
    assert entry(text, "models", 0, "kernel") == entry(text, "params", "kernel")


@pytest.mark.parametrize(
    "name", ["subprocess.Popen", "kernels.Nosuch", "marginsieve.kernels.Gaussian", "Gaussian", "Blend", "Model"]
)
def test_a_class_that_is_not_known_is_refused(name, model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    changed(path, lambda text: entry(text, "params", "kernel").update({"$type": name}))
    with pytest.raises(InputError, match=f"holds {name!r}, which is not a type of marginsieve: it is not loaded"):
        load(path)


@pytest.mark.parametrize("name", ["decision_function", "__class__", "model_", "support_", "extra_"])
def test_an_attribute_that_is_not_known_is_refused(name, model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    changed(path, lambda text: entry(text, "fitted")["$dict"].append([name, 1]))
    with pytest.raises(InputError, match="its list is not what a model holds there"):
        load(path)


def test_parameters_that_are_not_known_are_refused(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    whole = members_of(path)
    changed(path, lambda text: entry(text, "params")["$dict"].append(["nosuch", 1]))
    with pytest.raises(InputError, match=r"is damaged or not a model of marginsieve: .*'nosuch'"):
        load(path)
    changed(rewritten(path, whole), lambda text: entry(text, "params", "machine")["with"].update(nosuch=1))
    with pytest.raises(InputError, match=r"is damaged or not a model of marginsieve: .*'nosuch'"):
        load(path)


@pytest.mark.parametrize("kind", ["$pickle", "$call", "format", ""])
def test_a_kind_of_value_that_is_not_known_is_refused(kind, model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    changed(path, lambda text: entry(text, "fitted")["$dict"].append(["threshold_", {kind: "gASVAAAA"}]))
    with pytest.raises(
        InputError, match=rf"holds {re.escape(repr(kind))}, which is not a kind of value: it is not loaded"
    ):
        load(path)


class Trap:
    """Opens a pickle's door when it is unpickled."""

    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_an_array_of_objects_is_refused(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    members, content = members_of(path), io.BytesIO()
    np.save(content, np.array([Trap()], dtype=object), allow_pickle=True)
    rewritten(path, {**members, "0.npy": content.getvalue()})
    with pytest.raises(InputError, match="is damaged or not a model of marginsieve: it holds an array of"):
        load(path)
    assert not Trap.sprung
    np.load(io.BytesIO(content.getvalue()), allow_pickle=True)
    assert Trap.sprung  # as it would have been


def test_an_array_that_is_not_there_or_no_array_is_refused(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    members = members_of(path)
    rewritten(path, {name: content for name, content in members.items() if name != "0.npy"})
    with pytest.raises(
        InputError, match="is damaged or not a model of marginsieve: it does not hold what a model holds"
    ):
        load(path)
    rewritten(path, {**members, "0.npy": b"cos\nsystem\n"})
    with pytest.raises(InputError, match="is damaged or not a model of marginsieve"):
        load(path)


def test_a_small_file_does_not_make_a_large_model(model, tmp_path, monkeypatch):
    path = save(model, tmp_path / "m.marginsieve")
    whole = members_of(path)
    padded = {"$list": ["x" * 20_000, *["a"] * 2_000], "text": True}  # 160 MB as an array of texts
    changed(path, lambda text: entry(text, "params")["$dict"].append(["keep", padded]))
    with pytest.raises(InputError, match="a list of texts is not what a model holds there"):
        load(path)
    twice = {"$tuple": [{"$array": 0, "dtype": "<f8"}] * 2}
    changed(rewritten(path, whole), lambda text: entry(text, "params")["$dict"].append(["keep", twice]))
    with pytest.raises(InputError, match="the number of an array is not what a model holds there"):
        load(path)
    larger = io.BytesIO()
    np.save(larger, np.zeros(100, dtype=np.uint8))
    count = sum(name.endswith(".npy") for name in whole)
    head = {name: content for name, content in whole.items() if name != "sha256"}
    rewritten(path, {**head, f"{count}.npy": larger.getvalue(), "sha256": b""})
    cast = {"$array": count, "dtype": "<f8"}
    changed(path, lambda text: entry(text, "params")["$dict"].append(["keep", cast]))
    with pytest.raises(InputError, match="the type of an array is not what a model holds there"):
        load(path)
    rewritten(path, whole)
    monkeypatch.setattr("marginsieve.data.stored.free_bytes", lambda: 1e4)
    with pytest.raises(InputError, match=r"a model of \d+ training rows would take about 0 MB of memory"):
        load(path)


def test_predictions_that_would_take_too_much_memory_are_refused(model, cohort, monkeypatch):
    monkeypatch.setattr("marginsieve.data.stored.free_bytes", lambda: 1e4)
    with pytest.raises(InputError, match=r"distances among \d+ training rows would take about"):
        predict(model, cohort.X)


def test_distances_to_the_training_rows_do_not_depend_on_how_many_are_looked_at_together(model, cohort, monkeypatch):
    new = cohort.X * 1.7
    whole = predict(model, new).table["far"]
    assert 0 < whole.sum() < len(whole)
    monkeypatch.setattr("marginsieve.estimators.fitted_selector.AT_ONCE", 7)
    assert (predict(model, new).table["far"] == whole).all()


def forged(model, tmp_path, room, name, value):
    """A file in which one entry has another value."""
    path = save(model, tmp_path / "m.marginsieve")

    def put(text):
        entries = entry(text, *(room if isinstance(room, tuple) else (room,)))["$dict"]
        entries[:] = [one for one in entries if one[0] != name] + [[name, value]]

    changed(path, put)
    return path


@pytest.mark.parametrize(
    ("room", "name", "value", "sentence"),
    [
        ("fitted", "_sigmoid", None, "_sigmoid is not what a model holds there"),
        ("params", "probability", "yes", "probability is 'yes'; it must be True or False"),
        (("models", 0), "machine", {"$type": "machines.MKL", "with": {}}, "its parts do not belong together"),
    ],
)
def test_a_file_whose_parts_do_not_belong_together_is_refused(room, name, value, sentence, model, tmp_path):
    with pytest.raises(InputError, match=re.escape(sentence)):
        load(forged(model, tmp_path, room, name, value))


def test_a_solution_of_an_unknown_state_is_refused(model, tmp_path):
    path = save(model, tmp_path / "m.marginsieve")
    changed(path, lambda text: entry(text, "models", 0, "solutions")["$tuple"][0]["with"].update(status="perfect"))
    with pytest.raises(InputError, match="the state of a solution is not what a model holds there"):
        load(path)


@pytest.mark.usefixtures("kept_sparse")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("name", ["svm_rfe", "fisher", "svm_l1", "l1_cssvm", "fs_svm", "smote_relieff"])
def test_sparse_models_come_back(name, standardize, cohort, tmp_path):
    X = sparse.csr_array(np.where(cohort.X.to_numpy() > 0.5, cohort.X, 0.0))
    made = recipes.get(name)(
        n_features_to_select=3, random_state=0, standardize=standardize, **SHORT.get(name, {}), class_weight="balanced"
    ).fit(X, cohort.y)
    path = save(made, tmp_path / "m.marginsieve")
    assert list(places(text_of(path), "$csc"))
    back = load(path)
    table = back.model_.view.table.Z
    assert sparse.issparse(table)
    assert table.format == "csc"
    np.testing.assert_array_equal(table.toarray(), made.model_.view.table.Z.toarray())
    np.testing.assert_array_equal(back.decision_function(X), made.decision_function(X))
    np.testing.assert_array_equal(back.decision_function(X.toarray()), made.decision_function(X.toarray()))


@pytest.mark.usefixtures("kept_sparse")
def test_a_broken_sparse_table_is_refused(cohort, tmp_path):
    X = sparse.csr_array(np.where(cohort.X.to_numpy() > 0.5, cohort.X, 0.0))
    made = recipes.fisher(n_features_to_select=3, threshold="margin").fit(X, cohort.y)
    path = save(made, tmp_path / "m.marginsieve")
    changed(path, lambda text: next(places(text, "$csc")).update(shape=[5, 3]))
    with pytest.raises(InputError, match="is damaged or not a model of marginsieve"):
        load(path)


@pytest.mark.parametrize("name", ["clinical_rfe", "mkl_rfe", "hfs_nb", "svm_l1"])
def test_categories_come_back(name, cohort, tmp_path):
    stage = pd.Categorical(np.resize(["low", "high", "low"], 60), categories=["low", "mid", "high"], ordered=True)
    X = cohort.X.iloc[:, :4].assign(
        word=pd.Categorical(np.where(cohort.y == "case", "ja", "nein")), stage=stage, flag=np.arange(60) % 5 == 0
    )
    X["count"] = pd.Series(np.arange(60) % 3, dtype=object)  # levels that are numbers
    if name != "svm_l1":
        X.loc[[1, 7], "word"] = None
    kinds = {"count": "nominal"}
    made = recipes.get(name)(n_features_to_select=6, random_state=0, keep=["word", "stage"], kinds=kinds)
    made.fit(X, cohort.y)
    back = load(save(made, tmp_path / "m.marginsieve"))
    assert back.columns_ == made.columns_
    assert back.columns_.kind[4:] == ("nominal", "ordinal", "boolean", "nominal")
    assert back.columns_.levels[5] == ("low", "mid", "high")
    assert [type(level) for level in back.columns_.levels[7]] == [type(level) for level in made.columns_.levels[7]]
    np.testing.assert_array_equal(back.decision_function(X), made.decision_function(X))
    new = X.assign(word=pd.Categorical(["never"] * 60))
    np.testing.assert_array_equal(back.decision_function(new), made.decision_function(new))
    assert predict(back, new).notes == predict(made, new).notes


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([3, 7]),
        np.array([3, 7], dtype=np.int8),
        np.array([1.0, 2.0]),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        np.array([1, 2, 3]),
    ],
    ids=str,
)
def test_classes_keep_their_type(labels, cohort, tmp_path):
    y = labels[np.arange(60) % len(labels)]
    made = recipes.fisher(n_features_to_select=3, random_state=0, probability=True).fit(cohort.X, y)
    back = load(save(made, tmp_path / "m.marginsieve"))
    assert back.classes_.dtype == made.classes_.dtype
    assert type(back.positive_) is type(made.positive_)
    assert back.positive_ == made.positive_
    np.testing.assert_array_equal(back.predict(cohort.X), made.predict(cohort.X))
    np.testing.assert_array_equal(back.predict_proba(cohort.X), made.predict_proba(cohort.X))


def test_everything_that_was_fitted_comes_back(cohort, tmp_path):
    """Each attribute, numbers that are no JSON among them; the path can be cut again at other sizes."""
    settings = {"prefilter": ("fisher", 12), "threshold": (1.0, 3.0), "keep": ["g01"], "class_weight": {"case": 2.0}}
    made = recipes.svm_rfe(n_features_to_select=4, C=np.float64(2.0), **settings).fit(cohort.X, cohort.y)
    made.path_ = replace(made.path_, steps=(*made.path_.steps, Step(1, np.float64("inf"), np.float64("nan"), 0.0)))
    back = load(save(made, tmp_path / "m.marginsieve"))
    assert set(vars(back)) == set(vars(made))
    assert repr(back) == repr(made)
    assert isinstance(back.prefilter, tuple)
    assert isinstance(back.threshold, tuple)
    np.testing.assert_array_equal(back.path_.order, made.path_.order)
    np.testing.assert_array_equal(back.scores_, made.scores_)
    without_clock = tuple(replace(step, seconds=0.0) for step in made.path_.steps)  # equal fits have equal files
    assert repr(back.path_.steps) == repr(without_clock)
    assert (back.threshold_, back.notes_, back.groups_) == (made.threshold_, made.notes_, made.groups_)
    one, two = (next(model.at_sizes(cohort.X, cohort.y, [2])) for model in (made, back))
    np.testing.assert_array_equal(one.decision_function(cohort.X), two.decision_function(cohort.X))


def test_the_file_of_a_loaded_model_is_the_same(model, tmp_path):
    one = save(model, tmp_path / "one.marginsieve")
    two = save(load(one), tmp_path / "two.marginsieve")
    assert members_of(one) == members_of(two)


# -- predictions -----------------------------------------------------------------------------------------------------


def test_predictions_are_the_models_own_whatever_the_order_of_the_columns(model, cohort):
    found = predict(model, cohort.X[cohort.X.columns[::-1]])
    np.testing.assert_array_equal(found.table["predicted"], model.predict(cohort.X))
    np.testing.assert_allclose(found.table["score"], model.decision_function(cohort.X))
    assert ((found.table["score"] > 0) == (found.table["predicted"] == model.classes_[1])).all()
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
    assert found.notes[0] == "'word' has levels that training never saw in 1 rows: 'never'; treated as unknown"


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
    from marginsieve.studies.files import write_csv

    frame = pd.DataFrame({"=name": ["=1+1", "@x", "plain", "-5 mg"], "number": [-1.5, 2.0, 3.0, 4.0]})
    write_csv(frame, tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv")
    assert back.columns.tolist() == ["'=name", "number"]
    assert back["'=name"].tolist() == ["'=1+1", "'@x", "plain", "'-5 mg"]
    assert back["number"].tolist() == [-1.5, 2.0, 3.0, 4.0]
