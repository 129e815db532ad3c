"""The study: which methods it runs, what it says of a table with a known truth, what it remarks beforehand."""

import json
import re
import sys
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pytest
from tiers import long_but

import marginsieve
from marginsieve import InputError, SVMSelector, predict, recipes, study
from marginsieve.data import make_cohort
from marginsieve.data.table import Schema
from marginsieve.engine.scoring import Pass, score_difference, score_predictions
from marginsieve.engine.store import open_store, publish
from marginsieve.fitting.settings import make_plan
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.outcomes.target import read_labels
from marginsieve.recipes import registry
from marginsieve.studies import planning
from marginsieve.studies.analyses.shuffled_study import above_chance
from marginsieve.studies.analysis import Measured, Shape, StudyRun
from marginsieve.studies.answer import answer
from marginsieve.studies.findings import find_leaks, table_findings
from marginsieve.studies.options import SWITCHES, StudyOptions
from marginsieve.studies.planning import MOST_REPEATS, correct_costs, fit_minutes, wall_seconds, workers_for
from marginsieve.studies.selection import prepare_method, score_label
from marginsieve.studies.study_data import find_ids, from_arrays, from_frame

QUICK = {"cv": 3, "n_repeats": 1, "without": ("suspects", "references"), "n_permutations": 24}


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(160, 60, n_relevant=8, effect=1.6, flip=0.04, prevalence=0.4, random_state=1)


@pytest.fixture(scope="module")
def found(cohort):
    fixed = {"cv": 3, "n_repeats": 2, "n_permutations": 24, "labels": "fallible", "random_state": 0}
    return study(cohort.X, cohort.y, methods="stable-fisher,svm-rfe", **fixed)


# -- the answer ---------------------------------------------------------------------------------------------------


def test_planted_features_are_recovered_and_flipped_labels_flagged(cohort, found):
    result = found.result
    assert result["answer"]["evidence"]
    assert result["answer"]["headline"].startswith(
        f"{result['n_features']} of 60 features separate case from control: AUC"
    )
    chosen = {feature["name"] for feature in result["features"]}
    assert len(chosen & set(cohort.truth.relevant)) >= 4
    assert len(chosen - set(cohort.truth.relevant)) <= 2
    suspects = {row["row"] - 1 for row in result["analyses"]["suspects"]["rows"]}
    flipped = set(cohort.truth.flipped)
    assert len(suspects & flipped) >= 0.6 * len(flipped)  # those that are more likely wrong than right
    assert len(suspects - flipped) <= 1
    assert result["analyses"]["suspects"]["count"] == len(suspects) >= 2
    assert re.search(r"labels? (is|are) (probably wrong|unlike)", " ".join(result["answer"]["sentences"]))


@pytest.mark.parametrize("seed", long_but(range(6), 0))
def test_null_tables_are_called_null(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 200)), np.repeat(["a", "b"], [30, 50])
    answer = study(
        X, y, methods="fisher", cv=5, n_repeats=2, without=("suspects", "references"), random_state=seed
    ).result["answer"]
    assert not answer["evidence"]
    assert answer["headline"].startswith("No evidence that this table says anything of")


def test_all_features_are_run_beside_and_the_difference_is_paired(found):
    methods = found.result["methods"]
    assert [method["title"] for method in methods] == ["stable-fisher", "svm-rfe", "all features"]
    assert methods[-1]["n_features"] == 60
    assert methods[-1]["baseline"]
    for method in methods:
        change, score = method["difference"], method["scores"]
        for name in score:
            assert change[name]["value"] == pytest.approx(score[name]["value"] - methods[-1]["scores"][name]["value"])
    assert methods[-1]["difference"]["auc"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_the_paired_interval_is_narrower_than_two_single_ones():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    first = truth + rng.normal(0, 1, (2, 120))
    second = first + rng.normal(0, 0.05, (2, 120))
    ours, theirs = ((v > 0.5).astype(int) for v in (first, second))
    pairs = [[Pass(*rows) for rows in zip(*one, strict=True)] for one in ((ours, first), (theirs, second))]
    change = score_difference(ClassTarget.from_codes(truth), *pairs)
    single = [score_predictions(ClassTarget.from_codes(truth), passes) for passes in pairs]
    assert change.value["auc"] == pytest.approx(single[0].value["auc"] - single[1].value["auc"])
    widths = [one.high["auc"] - one.low["auc"] for one in (change, *single)]
    assert widths[0] < 0.8 * min(widths[1:])


def test_the_object_has_what_the_report_has(found, tmp_path):
    assert list(found.features["name"][found.features["selected"]]) == [f["name"] for f in found.result["features"]]
    assert {"row", "label", "suspicion", "suspect", "missed"} <= set(found.suspects.columns)
    assert found.suspects["suspicion"].is_monotonic_decreasing
    assert found.report(tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert "<iframe" in found._repr_html_()
    assert "srcdoc=" in found._repr_html_()
    assert "separate case from control" in repr(found)
    labels = {"sizes": "number of features", "roc": "false positive rate", "precision_recall": "recall"}
    labels |= {"calibration": "predicted probability", "features": "share of outer folds that selected it"}
    for name, label in labels.items():
        assert getattr(found, f"plot_{name}")().axes[0].get_xlabel() == label
    written = {path.name for path in found.save(tmp_path / "out")}
    assert written == {
        "report.html",
        "result.json",
        "methods.txt",
        "features.csv",
        "predictions.csv",
        "suspects.csv",
        "model.marginsieve",
        "model-long.marginsieve",
    }
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == found.result
    model = marginsieve.load(tmp_path / "out" / "model.marginsieve")
    assert (model.support_ == found.model.support_).all()


def test_the_same_seed_gives_the_same_study(cohort, found):
    again = study(
        polars.from_pandas(cohort.X),
        np.asarray(cohort.y),
        methods=["stable_fisher", "svm_rfe"],
        cv=3,
        n_repeats=2,
        labels="fallible",
    )
    for key in ("scores", "features"):
        assert again.result[key] == found.result[key]
    for name in set(found.result["analyses"]) - {"references"}:  # which has seconds
        assert again.result["analyses"][name] == found.result["analyses"][name]


def test_three_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = pd.DataFrame(rng.normal(size=(60, 15)))
    X[3] += np.select([y == "a", y == "b"], [3.5, -2.5])
    found = study(X, y, methods="svm-rfe", **QUICK)
    assert "highest in a" in found.html()
    result = found.result
    assert result["curves"]["main"] is None
    assert result["answer"]["evidence"]
    assert result["features"][0]["effect"]["name"] == "eta squared"
    assert result["features"][0]["direction"] == "highest in a"
    with pytest.raises(InputError, match="has 3 classes"):
        study(X, y, methods="fisher", n_features_to_select=3, **QUICK).plot_roc()


def test_mixed_tables_get_the_clinical_kernel():
    made = make_cohort(
        90, 10, n_relevant=4, n_categorical=6, n_categorical_relevant=3, effect=2.0, missing=0.05, random_state=0
    )
    result = study(made.X, made.y, methods=["clinical-rfe", "su"], **QUICK).result
    assert [method["kernel"] for method in result["methods"]] == ["clinical"] * 3
    assert {feature["effect"]["name"] for feature in result["features"]} <= {"Hedges' g", "Cramér's V"}
    assert any(finding["kind"] == "gaps" for finding in result["findings"])
    with pytest.raises(InputError, match="svm-rfe: "):
        study(made.X, made.y, methods="svm-rfe", kernel="linear", **QUICK)


# -- the choice ---------------------------------------------------------------------------------------------------


def chosen(m=100, n=1000, mixed=False, prevalence=0.3, **options):
    return planning.choose(Shape(m, n, mixed, prevalence), StudyOptions(**options))


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ({}, ["two_views", "svm_rfe", "l1_cssvm", "interactions"]),
        ({"prevalence": 0.03}, ["two_views", "l1_cssvm", "d_hell"]),
        ({"mixed": True, "prevalence": 0.3}, ["clinical_rfe", "relieff", "hfs_nb"]),
        ({"mixed": True, "prevalence": 0.03}, ["hfs_nb", "clinical_rfe", "relieff"]),
    ],
)
def test_methods_follow_the_shape(shape, names):
    choice = chosen(**shape)
    assert [method.recipe for method in choice.methods[:-1]] == names
    assert choice.methods[-1].baseline
    assert (choice.cv, choice.n_repeats) == (5, 3)


UNITS = {"labelling": 0.05, "search on half of the rows": 0.02}


def planned(minutes, workers=1, seconds=1.0, **settings):
    """What is run in so many minutes where a fold of any method takes `seconds`."""
    choice = chosen(200, 2000, **settings)
    known = Measured({method.label: seconds for method in choice.methods}, UNITS)
    return fit_minutes(choice, known, 60.0 * minutes, workers)


def test_minutes_decide_once_and_more_give_more():
    plans = [planned(minutes)[0] for minutes in (0.1, 1, 2, 5, 20, 600)]
    counts = [(len(plan.methods), plan.n_repeats, len(plan.efforts)) for plan in plans]
    assert counts[0][:2] == (2, 1)  # never without the first method and all features
    assert counts == sorted(counts)
    assert counts[-1][:2] == (5, MOST_REPEATS)
    assert not planned(0.1)[1]
    assert "takes longer than asked for" in plans[0].why[-1]
    assert planned(0.1)[0].efforts == {
        "evidence": (999,),
        "effects": (),
        "false-share": (0, 0),
        "forecast": (),
        "decision": (),
    }
    for minutes in (1, 5, 20):
        plan, possible = planned(minutes)
        assert possible
        assert wall_seconds(plan, 1) <= 60 * minutes
        assert plan == planned(minutes)[0]
    more = planned(2, workers=4)[0]
    assert (len(more.methods), more.n_repeats) > counts[2][:2]
    given = planned(0.01, methods="svm-rfe,fisher")[0]
    assert [method.label for method in given.methods] == ["svm_rfe", "fisher", "all features"]
    assert planned(600, n_repeats=2)[0].n_repeats == 2


@pytest.mark.long
def test_a_recorded_plan_gives_the_same_study():
    made = make_cohort(60, 60, n_relevant=4, effect=1.5, random_state=0)
    settings = {"cv": 3, "random_state": 3}
    first = study(made.X, made.y, methods="auto", minutes=0.15, **settings)
    plan = first.result["protocol"]["plan"]
    again = study(made.X, made.y, methods="auto", plan=json.loads(json.dumps(plan)), n_jobs=2, **settings)
    assert again.result["protocol"]["plan"] == plan
    keys = ("scores", "n_features", "features", "stability")
    assert {key: first.result[key] for key in keys} == {key: again.result[key] for key in keys}
    names = ("evidence", "false-share", "other-lists")
    assert [first.result["analyses"][name] for name in names] == [again.result["analyses"][name] for name in names]
    for wrong in ({**plan, "repeats": 0}, {**plan, "methods": ["nothing"]}, {"repeats": 1}, {**plan, "analyses": 3}):
        with pytest.raises(InputError, match="must be the plan of a result"):
            study(made.X, made.y, plan=wrong, **settings)


def test_an_interrupted_study_keeps_its_plan(tmp_path):
    made = make_cohort(60, 60, n_relevant=4, effect=1.5, random_state=0)
    settings = {"methods": "auto", "cv": 3, "without": ("suspects", "references")}

    def stop(what, done, total):
        if done > 0.3 * total > 1.0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(made.X, made.y, minutes=0.2, folder=tmp_path, progress=stop, **settings)
    with open_store(tmp_path, "study") as store:
        plan = store.meta("plan")["plan"]
    resumed = study(made.X, made.y, minutes=0.2, folder=tmp_path, **settings)
    assert resumed.result["protocol"]["plan"] == plan


def test_workers_are_started_where_they_are_worth_it(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    small, large = (
        correct_costs(chosen(60, 60), Measured({"two_views": t}, dict.fromkeys(UNITS, t / 50))) for t in (0.01, 10.0)
    )
    assert workers_for(small, None) == 1
    assert workers_for(large, None) == 6
    assert [workers_for(small, jobs) for jobs in (1, 3, -1, -2)] == [1, 3, 6, 5]
    assert wall_seconds(large, 6) < 0.4 * wall_seconds(large, 1)


def test_many_rows_are_sampled():
    assert chosen(50_000, 30).options.max_samples == planning.ROWS
    assert chosen(5_000, 30).options.max_samples is None
    assert chosen(50_000, 30, max_samples=777).options.max_samples == 777


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"methods": "magic"}, "there is no method 'magic'"),
        ({"minutes": -1}, "minutes is -1"),
        ({"cv": 1}, "cv is 1"),
        ({"n_repeats": 0}, "n_repeats is 0"),
        ({"keep": ["nobody"]}, "keep names 'nobody'"),
        ({"positive": "maybe"}, "positive"),
        ({"cv": 90}, "outer folds, not 90"),
        ({"progress": 3}, "progress is 3; it must be a function"),
        ({"folder": b"x"}, "folder is b'x'; it must be a path"),
        ({"plan": "x"}, "plan is 'x'; it must be the plan of a result.json"),
        ({"with_": "suspects", "without": ("references", "suspects")}, "with_ and without both name 'suspects'"),
    ],
)
def test_wrong_settings_get_a_sentence(settings, sentence, cohort):
    with pytest.raises(InputError, match=sentence):
        study(cohort.X, cohort.y, **{"methods": "fisher", **QUICK, **settings})


@pytest.mark.parametrize("name", ["suspects", "references", "substitutes"])
def test_switches_of_before_work_and_warn(name, cohort):
    settings = {"methods": "fisher", **QUICK, "without": [other for other in SWITCHES if other != name]}
    with pytest.warns(FutureWarning, match=rf"{name}=False is called without=\['{name}'\] now"):
        old = study(cohort.X, cohort.y, **settings, **{name: False})
    new = study(cohort.X, cohort.y, **{**settings, "without": [*settings["without"], name]})
    assert old.result["options"] == new.result["options"]
    assert old.result["scores"] == new.result["scores"]


def test_minutes_include_what_is_asked_for_by_name():
    assert "other-lists" not in planned(0.1)[0].efforts
    plan, possible = planned(0.1, with_=("other-lists", "suspects"))
    assert not possible
    assert plan.efforts["other-lists"] == (5,)
    assert "suspects" in plan.efforts


def test_what_is_no_option_is_refused(cohort):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'n_repeat'; did you mean 'n_repeats'"):
        study(cohort.X, cohort.y, n_repeat=3)
    with pytest.raises(InputError, match="without is 'suspect'; it must be one of"):
        study(cohort.X, cohort.y, without="suspect")


# -- the table ----------------------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    return made.assign(y=np.tile(["u", "v", "v"], 20))


def test_ids_are_recognised_and_never_features(frame):
    rng = np.random.default_rng(1)
    frame = frame.assign(
        nr=np.arange(60),
        sample_id=[f"S{k}" for k in rng.permutation(60)],
        counts=rng.permutation(60),  # different in every row, but no id by name or order
        patient=np.arange(60) // 3,
        ward=np.tile(["n", "s"], 30),
    )
    assert find_ids(frame.drop(columns="y")) == ["nr", "sample_id"]
    others = pd.DataFrame(
        {
            "crp": [*map(str, rng.normal(size=59)), "<0.01"],  # numbers but for one cell
            "reads_per_sample": rng.permutation(60),
            "income": np.sort(rng.choice(10_000, 60, replace=False)),  # the table may be sorted by it
            "u": rng.choice(60_000, 60, replace=False).astype("uint16"),
            "when": pd.date_range("2020-01-01", periods=60),
            "PatientID": rng.permutation(60),
        }
    )
    assert find_ids(others) == ["PatientID"]
    data = from_frame(frame, "y")
    assert list(data.X.columns) == ["a", "b", "c", "counts", "patient", "ward"]
    assert list(data.labels) == list(range(60))
    assert [finding.kind for finding in data.findings] == ["groups", "counts", "id"]
    assert from_frame(frame, "y", groups="patient").groups.nunique() == 20
    assert "nr" in from_frame(frame, "y", ids=()).X
    assert "nr" in from_frame(frame, "y", keep=["nr"]).X
    assert list(from_frame(frame, "y", ids=["sample_id"]).left_out) == ["sample_id"]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (lambda y: np.where(y == "u", "sick", "well"), "copy"),
        (lambda y: (y == "u").astype(int), "copy"),
        (lambda y: np.where(y == "u", np.tile(["p", "q"], 30), "r"), "leak"),
        (lambda y: np.where(y == "u", 5.0, 0.0) + np.linspace(0, 1, 60), "leak"),
        (lambda y: np.where(y == "u", np.nan, np.linspace(0, 1, 60)), "copy"),
        (lambda y: np.where(np.arange(60) == 7, np.nan, np.where(y == "u", 5.0, 0.0) + np.linspace(0, 1, 60)), "leak"),
        (lambda y: pd.array(np.where(np.arange(60) < 2, None, y == "u"), dtype="boolean"), "copy"),
    ],
)
def test_leaks_raise_an_alarm(column, kind, frame):
    assert find_leaks(frame.drop(columns="y"), frame["y"]) == []
    (finding,) = find_leaks(frame.drop(columns="y").assign(x=column(frame["y"])), frame["y"])
    assert (finding.kind, finding.level, finding.columns) == (kind, "alarm", ("x",))


def test_chance_separation_is_no_alarm():
    """With 3 samples of 12 in a class, one column in 110 separates the classes by chance."""
    rng = np.random.default_rng(0)
    y = pd.Series(np.repeat(["u", "v"], [3, 9]))
    X = pd.DataFrame(rng.normal(size=(12, 2000)))
    assert [finding.kind for finding in table_findings(X, y)] == ["few"]
    assert find_leaks(X, y) == []
    rare, binary = pd.Series(np.repeat(["u", "v"], [3, 57])), np.zeros((60, 5000), dtype=int)
    binary[rng.permuted(np.tile(np.arange(60), (5000, 1)), axis=1)[:, :3].T, np.arange(5000)] = 1
    assert find_leaks(pd.DataFrame(binary), rare) == []


def test_equal_rows_gaps_and_numbers_as_text_are_told(frame):
    X = frame.drop(columns="y")
    X.loc[1] = X.loc[0]
    X.loc[3, "b"] = np.nan
    X["t"] = [*map(str, range(59)), "n/a"]
    kinds = [finding.kind for finding in table_findings(X.drop(columns="t"), frame["y"])]
    assert kinds == ["equal rows", "torn rows", "gaps"]  # rows 0 and 1 are of different classes
    assert "text" in [finding.kind for finding in table_findings(X, frame["y"])]


def test_groups_are_what_counts_where_there_are_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 10)
    y = pd.Series(np.repeat(["u", "v"], 60))
    assert [f.kind for f in table_findings(pd.DataFrame(rng.normal(size=(120, 3))), y, groups)] == ["few"]


def again(done):
    """The methods of a study, prepared anew, with what else the test of chance needs."""
    run = done.run
    table = run.data.table(Classes(positive=run.options.positive))
    methods = [prepare_method(method, table, run.choice.options) for method in run.choice.methods]
    return StudyRun(run.data, table, run.choice, run.options, methods)


@pytest.mark.parametrize("pure", [True, False])
def test_shuffled_labels_of_groups_tell_a_signal_from_none(pure):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 2)
    label = np.repeat(np.tile([0, 1], 15), 2)
    label[0] = label[0] if pure else 1 - label[0]
    signal, noise = rng.normal(size=(60, 4)), rng.normal(size=(60, 4))
    signal[:, 0] += 1.6 * label
    for X, found in ((signal, True), (noise, False)):
        done = study(X, np.where(label, "a", "b"), groups=groups, methods="fisher", **QUICK)
        assert (above_chance(again(done), 24).p <= 0.04) == found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": None}, "y is NoneType"),
        ({"y": pd.DataFrame({"a": range(40), "b": range(40)})}, "of 2 dimensions"),
        ({"groups": np.arange(7)}, "40 rows and groups 7"),
        ({"groups": np.where(np.arange(40) < 3, np.nan, 1.0)}, "is empty in 3 of 40 rows"),
        ({"X": np.ma.masked_array(np.ones((40, 3)))}, "X is a masked array"),
        ({"X": pd.DataFrame({"a": np.arange(40.0) % 7, "b": [[1]] * 40})}, "column 'b' holds a list"),
        ({"random_state": -1}, "random_state is -1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_features_to_select": 0}, "n_features_to_select is 0"),
    ],
)
def test_odd_arguments_get_a_sentence(change, sentence):
    rng = np.random.default_rng(0)
    told = {"X": rng.normal(size=(40, 3)), "y": np.tile([0, 1], 20), "methods": "fisher", **QUICK, **change}
    with pytest.raises(InputError, match=sentence):
        study(told.pop("X"), told.pop("y"), **told)


def test_odd_tables_are_read_and_the_users_own_is_left_alone():
    rng = np.random.default_rng(0)
    y = np.tile(["u", "v"], 30)
    X = pd.DataFrame({0: rng.normal(size=60) + 2 * (y == "u"), 1: [Decimal(k) / 7 for k in range(60)]})
    X[2] = pd.to_timedelta(rng.integers(0, 9, 60), unit="D")
    X[3] = pd.cut(rng.normal(size=60), 3)
    X[4] = np.nan
    X.index = pd.MultiIndex.from_product([range(6), range(10)])
    before = X.copy()
    result = study(X, y, methods="clinical-rfe", cv=2, n_repeats=1)
    pd.testing.assert_frame_equal(X, before)
    assert result.result["table"]["features"] == 4  # the empty one is left out
    assert result.result["analyses"]["suspects"]["judged"] == 60
    assert result.run.data.labels.iloc[0] == (0, 0)
    assert study(X[[0, 1]].to_numpy(), y, methods="fisher", **QUICK).result["table"]["features"] == 2


def test_sentences_fit_small_lists(tmp_path):
    rng = np.random.default_rng(0)
    y = np.tile(["u", "v"], 30)
    X = pd.DataFrame({"a": rng.normal(size=60) + 3 * (y == "u"), "b": (y == "u").astype(int)})
    one = study(X[["a"]], y, methods="fisher", **QUICK)
    assert one.result["answer"]["headline"].startswith("The only feature separates v from u")
    assert not any("short list" in sentence for sentence in one.result["answer"]["sentences"])
    two = study(X, y, methods="fisher", n_features_to_select=1, **QUICK)
    assert not any("not exact" in sentence for sentence in two.result["answer"]["sentences"])
    assert "no spread" in two.html() or two.result["features"][0]["name"] == "a"
    two.save(tmp_path)
    publish(tmp_path, "study", {"suspects.csv": b"of an earlier run"})
    two.save(tmp_path)
    assert not (tmp_path / "suspects.csv").exists()
    (tmp_path / "suspects.csv").write_text("of someone else")
    with pytest.raises(InputError, match=r"holds 'suspects.csv', which marginsieve did not write"):
        two.save(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "report.html").write_text("of someone else")
    with pytest.raises(InputError, match=r"holds 'report.html', which marginsieve did not write"):
        two.save(tmp_path / "other")


def test_columns_that_only_tell_rows_apart_are_not_used():
    rng = np.random.default_rng(0)
    y = np.tile(["u", "v"], 50)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=100) + 2 * (y == "u"),
            "code": rng.permutation(np.repeat([f"c{k}" for k in range(50)], 2)),
            "seen": pd.date_range("2020-01-01", periods=50).repeat(2).astype(str),
            "when": pd.date_range("2020-01-01", periods=100),
            "stage": rng.choice(["I", "II", "III"], 100),
        }
    )
    data = from_arrays(X, y)
    assert list(data.X.columns) == ["x", "seen", "when", "stage"]
    kinds = {finding.columns[0]: (finding.kind, finding.level) for finding in data.findings if finding.columns}
    assert kinds["code"] == ("levels", "alarm")
    assert kinds["seen"] == kinds["when"] == ("dates", "note")
    assert "code" in from_arrays(X, y, keep=["code"]).X.columns
    with pytest.raises(InputError, match="no column is left to select from: 'code' has 50 levels in 100 rows"):
        from_arrays(X[["code"]], y)
    small = from_arrays(X[["stage"]].iloc[:12], y[:12])
    assert list(small.X.columns) == ["stage"]


def test_numbers_in_text_are_numbers_and_the_model_reads_them_alike():
    rng = np.random.default_rng(0)
    y = np.tile(["u", "v"], 40)
    pay = 1500 + 900 * (y == "u") + rng.normal(size=80) * 300
    X = pd.DataFrame({"pay": [f"€{value:.2f}" for value in pay], "b": rng.normal(size=80)})
    X["level"] = ["<0.1" if value < 0.3 else f"{value:.3f}" for value in rng.uniform(size=80)]
    X["parts"] = [f"{1000 * value:,.0f}" for value in pay]
    found = study(X, y, methods="fisher", n_features_to_select=1, **QUICK)
    assert found.result["features"][0]["name"] == "pay"
    assert found.result["answer"]["evidence"]
    texts = " ".join(finding["text"] for finding in found.result["findings"])
    assert "'pay' was read as numbers" in texts
    doubts = " ".join(found.result["answer"]["doubts"])
    assert "'<0.1' as its limit" in doubts
    assert "'parts' holds numbers with thousands separators" in doubts
    again = predict(found.model, X[["pay"]]).table
    assert (
        again["predicted"].iloc[found.run.data.numbers].tolist()
        == found.main.selector.predict(found.run.data.X).tolist()
    )
    with pytest.raises(InputError, match="column 'pay' holds 'much' in row 1, and the model was trained on numbers"):
        predict(found.model, X[["pay"]].replace(X["pay"][0], "much"))


def test_ids_stay_ids_whatever_they_are_written_in():
    y = np.tile(["u", "v"], 40)
    X = pd.DataFrame({"x": np.arange(80.0) % 7, "patient_id": [f"{1000 + k:,}" for k in range(80)]})
    assert from_arrays(X, y).ids == ("patient_id",)
    X["patient_id"] = [f"{1000 + k // 4:,}" if k else "?" for k in range(80)]
    data = from_arrays(X, y)
    assert any(finding.kind == "groups" for finding in data.findings)
    assert "patient_id" not in data.X.columns  # levels of four rows, and no number


def test_what_is_left_out_is_looked_at_for_leaks_first():
    y = np.tile(["u", "v"], 40)
    stamps = pd.to_datetime(np.where(y == "u", "2020-01-01", "2021-01-01"))
    X = pd.DataFrame({"x": np.arange(80.0) % 7, "when": stamps})
    data = from_arrays(X, y)
    assert data.X["when"].max() == 366.0
    assert any(finding.kind in ("copy", "leak") and finding.columns == ("when",) for finding in data.findings)
    parts = pd.DataFrame({"x": np.arange(80.0) % 7, "part": np.where(y == "u", "1.2.05", "1.2.06")})
    assert "part" in from_arrays(parts, y).X.columns  # a number of a batch is no date


def test_lengths_and_members_of_a_list_are_told_apart(found):
    result = json.loads(json.dumps(found.result))
    result["stability"]["value"] = 0.1
    result["n_always"] = result["n_features"]
    told = answer(result)
    assert "came up in every outer fold; what varies is how many others did" in " ".join(told["sentences"])
    assert not any("changes much" in doubt for doubt in map(str, told["doubts"]))
    result["n_always"] -= 1
    assert any("changes much" in doubt for doubt in map(str, answer(result)["doubts"]))


def test_no_suspect_is_said_as_such(found):
    result = json.loads(json.dumps(found.result))
    result["analyses"]["suspects"] |= {"rows": [], "count": 0}
    text = " ".join(answer(result)["sentences"])
    assert "No label is called wrong. Estimated share of wrong labels: " in text


@pytest.mark.parametrize(
    ("count", "folds", "sentence"),
    [
        (2, None, "a study needs at least 3 of each class"),
        (3, None, r"it takes 3 outer folds, not 5 \(cv=3, --cv 3\)"),
        (3, 2, "it takes 3 outer folds, not 2"),
        (4, 6, "it takes 4 outer folds, not 6"),
    ],
)
def test_tiny_classes_get_advice_that_works(count, folds, sentence):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.array(["rare"] * count + ["other"] * (30 - count))
    with pytest.raises(InputError, match=sentence):
        study(X, y, methods="fisher", n_features_to_select=1, cv=folds, n_repeats=1, without="suspects")
    if advised := re.search(r"takes (\d)", sentence):
        study(X, y, methods="fisher", n_features_to_select=1, cv=int(advised[1]), n_repeats=1, without="suspects")


def test_kernels_that_do_not_fit_are_told_of():
    X = pd.DataFrame({"a": pd.Categorical(list("uvw") * 10), "b": np.arange(30.0)})
    y = np.tile([0, 1], 15)
    with pytest.raises(InputError, match="clinical-rfe has a kernel of its own"):
        study(X, y, methods="clinical-rfe", kernel="gaussian", **QUICK)


def test_arrays_become_data():
    data = from_arrays(np.eye(12), np.tile([0, 1], 6), groups=np.arange(12) // 2)
    assert list(data.X.columns[:2]) == ["x0", "x1"]
    assert data.target == "target"
    with pytest.raises(InputError, match="12 rows and y 3"):
        from_arrays(np.eye(12), [0, 1, 1])


# -- the work -------------------------------------------------------------------------------------------------------


def count_calls(monkeypatch, function):
    """What a function is called with first, wherever in the package it was imported."""
    calls = []

    def counted(*args, **settings):
        calls.append(args[0])
        return function(*args, **settings)

    for module in [module for name, module in sys.modules.items() if name.split(".")[0] == "marginsieve"]:
        if vars(module).get(function.__name__) is function:
            monkeypatch.setattr(module, function.__name__, counted)
    return calls


def test_a_study_reads_its_table_once_and_plans_each_method_once(monkeypatch):
    cohort = make_cohort(60, 60, n_relevant=6, effect=2.0, prevalence=0.4, random_state=0)
    encoded, encode = [], Schema.encode
    monkeypatch.setattr(Schema, "encode", lambda schema, X: encoded.append(X) or encode(schema, X))
    read, planned = count_calls(monkeypatch, read_labels), count_calls(monkeypatch, make_plan)
    found = study(cohort.X, cohort.y, cv=5, n_repeats=1, n_permutations=24)
    assert found.html()
    assert found.suspects is not None
    methods = [method.title for method in found.run.choice.methods]
    assert methods == ["two-views", "svm-rfe", "l1-cssvm", "interactions", "all features"]
    assert 1 <= len(encoded) <= 2
    assert 1 <= len(read) <= 2
    assert set(Counter(repr(sorted(one.get_params().items(), key=str)) for one in planned).values()) == {1}
    assert len(planned) == 2 + 1 + 1 + 3 + 1  # a view is a plan


# -- the paragraph --------------------------------------------------------------------------------------------------


def test_every_recipe_is_cited():
    references = recipes.references()
    for name in recipes.names():
        keys = recipes.entry(name).citation
        assert keys, name
        assert set(keys) <= set(references), name
    for name, entry in references.items():
        assert entry.startswith("@")
        assert entry.count("{") == entry.count("}"), name
        assert "title = {" in entry


def test_a_recipe_that_a_user_registers_is_cited_to_the_end(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_extra", {})
    monkeypatch.setattr(registry, "RECIPES", dict(recipes.RECIPES))
    bibtex = "@article{doe2026,\n  author = {Doe, Jane},\n  title = {Halves},\n  journal = {Sieves},\n  year = 2026\n}"

    @recipes.register("doe2026", "guyon2002", family="elimination", bibtex=bibtex)
    def by_halves(**settings):
        """Half of the features at a time."""
        return SVMSelector(**settings)

    cohort = make_cohort(60, 12, n_relevant=3, effect=2.0, random_state=0)
    found = study(cohort.X, cohort.y, methods="by-halves,fisher", **QUICK)
    result = found.result
    assert result["method"] == "by_halves"
    assert "with by-halves [doe2026, guyon2002]" in result["methods_text"]
    assert bibtex in result["bibtex"]
    assert "{guyon2002," in result["bibtex"]
    found.save(tmp_path)
    assert "[doe2026, guyon2002]" in (tmp_path / "methods.txt").read_text()
    mixed = make_cohort(60, 6, n_relevant=3, n_categorical=2, missing=0.05, random_state=0)  # needs another kernel
    assert study(mixed.X, mixed.y, methods="by-halves", **QUICK).result["methods"][0]["kernel"] == "clinical"
    for keys, told in ((("nobody1900",), "references.bib does not have"), ((), "citation is empty")):
        with pytest.raises(InputError, match=told):
            recipes.register(*keys, family="filter")


def test_scores_are_told_alike_of_parts_by_name_and_as_they_are():
    named = SVMSelector(machine="hinge", criterion=None, search="budget")
    assert score_label(named) == score_label(recipes.fs_svm())
    assert score_label(named).startswith("1 + the size of the weight")


def test_the_paragraph_cites_what_was_run(found):
    text, bib = found.result["methods_text"], found.result["bibtex"]
    assert "[guyon2002]" in text
    assert "2 times repeated 3-fold stratified nested cross-validation" in text
    for key in ("guyon2002", "nogueira2018", "varma2006"):
        assert f"{{{key}," in bib
    assert "labbe2019" not in bib
