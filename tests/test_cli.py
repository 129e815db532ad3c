"""The command, run as a user runs it: files in, files and a readable page out, sentences for mistakes."""

import inspect
import json
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import typer
from tiers import long_but

import marginsieve
from marginsieve import recipes
from marginsieve.cli import commands as cli
from marginsieve.cli import progress as cli_progress
from marginsieve.cli.guard import exit_code_of
from marginsieve.data import make_cohort
from marginsieve.studies import selection
from marginsieve.studies.analysis import Gate, load_analyses
from marginsieve.studies.options import StudyOptions, info_of, read_names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    cohort = make_cohort(60, 40, n_relevant=5, effect=2.0, random_state=0)
    frame = cohort.frame()
    frame.insert(0, "patient", np.arange(60) // 2)
    frame["outcome"] = np.repeat(["case", "control"], [20, 40])
    for name in cohort.truth.relevant:
        frame[name] += np.repeat([2.0, 0.0], [20, 40])
    frame.to_csv(path / "t.csv", index=False)
    frame.to_csv(path / "t.tsv", index=False, sep="\t")
    frame.to_parquet(path / "t.parquet")
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["marginsieve", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


QUICK = ("--cv", 3, "--n-repeats", 1, "--without", "suspects,references", "--n-permutations", 24)
ONE = (*QUICK, "--methods", "svm-rfe")


def test_a_saved_model_predicts_new_samples(folder, run, tmp_path):
    asked = ("--target", "outcome", "--drop", "patient", "--n-features-to-select", 4, "--out", tmp_path / "r")
    assert run("select", folder / "t.csv", *asked, *ONE)[0] == 0
    chosen = [entry["name"] for entry in json.loads((tmp_path / "r" / "result.json").read_text())["features"]]
    frame = pd.read_csv(folder / "t.csv")
    new = frame[[*chosen, "patient"]].head(9)
    new.to_csv(tmp_path / "new.csv", sep=";", decimal=",", index=False)
    code, out, _ = run(
        "predict", tmp_path / "r" / "model.marginsieve", tmp_path / "new.csv", "--out", tmp_path / "p.csv"
    )
    assert code == 0
    assert "9 samples (case: 9) by a model of 4 features" in out
    assert "columns that the model does not know were not used: 'patient'" in out
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found.columns) == ["row", "patient", "predicted", "score", "probability", "far"]
    assert (found["predicted"] == "case").all()
    code, out, _ = run(
        "predict", tmp_path / "r" / "model.marginsieve", tmp_path / "new.csv", "--json", "--out", tmp_path / "p.csv"
    )
    assert len(json.loads(out)["rows"]) == 9
    code, _, err = run("predict", folder / "t.csv", tmp_path / "new.csv")
    assert code == 2
    assert "not a model of marginsieve" in " ".join(err.split())


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_select_writes_what_it_promises(kind, folder, run, tmp_path):
    code, out, _ = run(
        "select", folder / f"t.{kind}", "--target", "outcome", "--groups", "patient", "--out", tmp_path, *ONE
    )
    assert code == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["schema"] == 6
    assert result["method"] == "svm_rfe"
    assert result["table"]["classes"] == {"case": 20, "control": 40}
    assert result["table"]["positive"] == "case"
    assert result["table"]["features"] == 40
    assert "grouped" in result["protocol"]["outer"]
    for name, score in result["scores"].items():
        assert score["low"] <= score["value"] <= score["high"]
        if not name.startswith(("calibration", "net")):  # which are no shares
            assert 0 <= score["low"] <= score["high"] <= 1
    features = pd.read_csv(tmp_path / "features.csv")
    assert list(features.columns) == [
        *(
            "name",
            "rank",
            "score",
            "part",
            "selected",
            "in_short",
            "in_long",
            "frequency",
            "frequency_long",
            "coefficient",
            "group",
            "like",
        ),
        *("kind", "evidence_p"),
        *("effect", "effect_low", "effect_high", "effect_is", "direction", "halves", "q_value", "marginal_q"),
        "substitutes",
    ]
    assert features["rank"].tolist() == list(range(1, 41))
    assert features["selected"].sum() == result["n_features"] == len(result["features"])
    assert features["frequency"].between(0, 1).all()
    predictions = pd.read_csv(tmp_path / "predictions.csv")
    assert list(predictions.columns) == [
        *("row", "repeat", "label", "predicted", "decision", "probability"),
        *("predicted_long", "decision_long", "probability_long"),
    ]
    assert len(predictions) == 60
    right = ((predictions["decision"] > 0) == (predictions["predicted"] == "case")).all()
    assert right
    assert "balanced accuracy" in out
    assert result["features"][0]["name"] in out


OPTIONAL = [name for name, each in load_analyses().items() if not isinstance(each, Gate)]


@pytest.mark.parametrize("without", long_but([*OPTIONAL, ",".join(OPTIONAL)], "effects", ",".join(OPTIONAL)))
def test_a_study_can_do_without_each_analysis(without, folder, run, tmp_path):
    """Nothing that prints, draws or sums up a study needs an analysis that was left out."""
    (tmp_path / "costs.csv").write_text("column,cost\ng01,3\n")
    frame = pd.read_csv(folder / "t.csv").iloc[:, 1:15].assign(outcome=np.repeat(["case", "control"], [20, 40]))
    frame.to_csv(tmp_path / "t.csv", index=False)
    left_out = without.split(",")
    more = ("other-lists", "references", "suspects", "costs")
    words = ["select", tmp_path / "t.csv", "--target", "outcome", "--methods", "fisher", "--cv", 3, "--n-repeats", 1]
    words += ["--feature-costs", tmp_path / "costs.csv", "--alternatives", 2, "--out", tmp_path / "r"]
    words += [word for name in left_out for word in ("--without", name)]
    words += [word for name in more if name not in left_out for word in ("--with", name)]
    code, _, err = run(*words)
    assert code == 0, err
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert all(result["analyses"][name] is None for name in left_out)
    assert all(result["analyses"][name] is not None for name in more if name not in left_out)
    for words in ((), ("--aggregate",)):
        assert run("report", tmp_path / "r", *words)[0] == 0


def test_json_is_all_that_is_printed(folder, run, tmp_path):
    words = ("select", folder / "t.csv", "--target", "outcome", "--drop", "patient", "--json", "--out", tmp_path)
    code, out, _ = run(
        *words, "--n-features-to-select", 3, "--keep", "g01,g02", "--methods", "fisher", "--random-state", 4, *QUICK
    )
    assert code == 0
    result = json.loads(out)
    assert result == json.loads((tmp_path / "result.json").read_text())
    assert result["n_features"] == 3
    assert {"g01", "g02"} <= {feature["name"] for feature in result["features"]}
    assert result["table"]["dropped_columns"] == ["patient"]
    assert result["protocol"]["random_state"] == 4


def test_a_filter_may_come_first_and_near_duplicates_are_named(tmp_path, run):
    frame = make_cohort(60, 80, n_relevant=4, effect=2.0, random_state=0).frame()
    first = next(name for name in frame.columns if name != "outcome")
    frame["copy"] = frame[first] * 2.0 + 1.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = (
        "select",
        tmp_path / "t.csv",
        "--target",
        "outcome",
        "--out",
        tmp_path / "out",
        "--n-features-to-select",
        10,
    )
    code, out, _ = run(*words, "--prefilter", "fast:10", "--keep", first, "--methods", "svm-bfe", *QUICK)
    assert code == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["options"]["prefilter"] == ["fast", 10]
    (group,) = result["groups"]
    assert {group["representative"], *group["members"]} == {first, "copy"}
    assert group["correlation"] == [pytest.approx(1.0)]
    assert f"{group['representative']!r} is nearly the same as {group['members'][0]!r}" in out
    features = pd.read_csv(tmp_path / "out" / "features.csv").set_index("name")["like"]
    assert features[group["members"][0]] == group["representative"]
    for wrong, sentence in (
        ("fast", "it must be a filter and a count, like fast:2000"),
        ("fast:²", "it must be a filter and a count, like fast:2000"),
        ("fats:9", "prefilter is ('fats', 9); it must be a pair"),
    ):
        code, _, error = run(*words, "--prefilter", wrong)
        assert code == 2
        assert sentence in " ".join(error.split())


def test_same_seed_same_result_for_every_number_of_jobs(folder, run, tmp_path):
    def result(jobs, name):
        words = ("select", folder / "t.csv", "--target", "outcome", "--n-jobs", jobs, "--out", tmp_path / name)
        assert run(*words, *ONE)[0] == 0
        return settled(tmp_path / name), (tmp_path / name / "predictions.csv").read_text()

    assert result(1, "one") == result(2, "two")


@pytest.mark.parametrize("moment", [4, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 7, 11))])
def test_an_interrupted_study_goes_on_where_it_was(moment, folder, run, tmp_path, monkeypatch):
    words = ("select", folder / "t.csv", "--target", "outcome", "--methods", "fisher,svm-rfe", "--cv", 2)
    words = (
        *words,
        "--n-repeats",
        2,
        "--n-features-to-select",
        5,
        "--without",
        "suspects,references,learning-curve",
        "--n-permutations",
        24,
        "--out",
    )
    whole, cut, genuine, runs = tmp_path / "whole", tmp_path / "cut", selection.run_prepared, []

    def counted(*arguments, **prepared):
        runs.append(1)
        if len(runs) == moment:
            raise KeyboardInterrupt
        return genuine(*arguments, **prepared)

    monkeypatch.setattr(selection, "run_prepared", counted)
    code, _, err = run(*words, cut)
    assert code == 130
    assert "the same command goes on where it was" in " ".join(err.split())
    assert not (cut / "result.json").exists()
    assert run(*words, cut, "--resume")[0] == 0
    assert len(runs) == 3 * 4 + 1  # two methods and all features, four folds each, and the one that was broken off
    monkeypatch.setattr(selection, "run_prepared", genuine)
    assert run(*words, whole)[0] == 0
    results = [settled(place) for place in (whole, cut)]
    assert results[0] == results[1]
    assert (whole / "predictions.csv").read_text() == (cut / "predictions.csv").read_text()
    assert run(*words, tmp_path / "new", "--resume")[0] == 2
    code, _, err = run(*words, cut, "--fresh")
    assert code == 0
    assert "deleted" in err


def settled(folder):
    """A result without what differs from run to run."""
    result = json.loads((folder / "result.json").read_text())
    del result["seconds"], result["how"]["command"]
    references = result["analyses"]["references"] or {"compared": []}
    for method in (*result["methods"], *references["compared"]):
        del method["seconds"]
    return result


def test_names_with_dashes_and_underscores_and_the_list_of_methods(run):
    code, out, _ = run("methods")
    assert code == 0
    assert "svm-rfe" in out
    assert "fisher" in out
    listed = json.loads(run("methods", "--json")[1])
    assert [entry["name"] for entry in listed] == [name.replace("_", "-") for name in recipes.names()]
    assert all(entry["does"] and entry["source"] for entry in listed)
    assert run("--version")[1].startswith("marginsieve ")


def mistakes(folder):
    table = folder / "t.csv"
    target = ("--target", "outcome")
    return [
        (("select", folder / "none.csv", *target), "there is no file"),
        (("select", folder, *target), "is a folder"),
        (("select", table, "--target", "outcom"), "did you mean 'outcome'?"),
        (("select", table, *target, "--groups", "nobody"), "groups names 'nobody'"),
        (("select", table, *target, "--methods", "magic"), "there is no method 'magic'; the methods are 'svm-rfe'"),
        (("select", table, *target, "--methods", "svm-ref"), "did you mean 'svm-rfe'?"),
        (
            ("select", table, *target, "--n-features-to-select", "few"),
            "--n-features-to-select is 'few'; it must be auto",
        ),
        (("select", table, *target, "--n-features-to-select", "0"), "--n-features-to-select is '0'"),
        (("select", table, *target, "--positive", "maybe"), "positive is 'maybe'; the target 'outcome' has"),
        (("select", table, *target, "--keep", "g99"), "keep names 'g99'"),
        (("select", table, *target, "--keep", "outcome"), "which is the target"),
        (("select", table, *target, "--n-jobs", "0"), "n_jobs is 0"),
        (("select", table, *target, "--out", table), "is a file; name a folder"),
        (("select", table, *target, "--drop", "outcome"), "is the target"),
        (("select", table, *target, "--cv", "50"), "it takes 20 outer folds, not 50"),
        (("select", table, "--target", "g01", "--outcome", "classes"), "looks continuous"),
        (("select", table), "Missing option"),
        (("cohort", folder / "x.csv", "--prevalence", "2"), "prevalence is 2.0"),
    ]


@pytest.mark.parametrize("case", range(18))
def test_mistakes_get_a_sentence_and_exit_code_2(case, folder, run):
    words, sentence = mistakes(folder)[case]
    code, out, err = run(*words)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("twice.csv", "a,b,a,y\n1,2,3,u\n4,5,6,v\n", "columns of the same name: 'a'"),
        ("empty.csv", "", "'empty.csv' is empty"),
        ("header.csv", "a,b,y\n", "0 rows and 3 columns"),
        ("hash.csv", "a;b,y\n1#2#u\n3#4#v\n", "fields and its first row"),
        ("trailing.csv", "a,b,y\n1,2,u,\n3,4,v,\n", "has 3 fields and its first row 4"),
        ("odd.sav", "x", "it must end in .csv, .tsv"),
        ("broken.parquet", "x", "could not be read as PARQUET"),
        ("holes.csv", "a,b,y\n1,2,u\n3,4,\n5,6,v\n", "the target 'y' is empty in 1 of 3 rows"),
        (
            "words.csv",
            "a,b,y\n" + "1,red,u\n2,blue,v\n" * 10,
            "svm-rfe: text or categories where the Linear kernel needs numbers",
        ),
        (
            "nan.csv",
            "a,b,y\n" + "1,2,u\n,4,v\n3,3,v\n7,1,u\n" * 5,
            "svm-rfe: Input X contains 5 cells that are missing (NaN) in 1 columns: a (5)",
        ),
    ],
)
def test_bad_files_get_a_sentence(name, text, sentence, run, tmp_path):
    (tmp_path / name).write_text(text)
    words = ("--target", "y", "--kernel", "linear", "--out", tmp_path / "out")
    code, _, err = run("select", tmp_path / name, *words, *ONE)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert not list((tmp_path / "out").glob("*.json"))


def test_a_name_that_no_file_can_have_is_refused(folder, run, tmp_path):
    words = ("select", folder / "t.csv", "--target", "outcome", "--out", tmp_path / ("x" * 300))
    code, _, err = run(*words)
    assert code == 2
    assert "file name too long" in " ".join(err.split())
    assert "x" * 300 not in "".join(err.split())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a.so: failed to map segment from shared object", 3),
        ("a.so: cannot open shared object file: Too many open files", 3),
        ("No module named 'a'", 4),
    ],
)
def test_a_library_that_the_system_cannot_load_is_its_fault(text, code):
    def stop():
        raise ImportError(text)

    assert exit_code_of(stop) == code


@pytest.mark.long
def test_docstrings_and_assertions_decide_nothing(folder, tmp_path):
    """Under -OO there are none."""
    words = ["select", folder / "t.csv", "--target", "outcome", "--out", tmp_path / "r", *ONE]
    code = [sys.executable, "-OO", "-m", "marginsieve", *map(str, words)]
    ran = subprocess.run(code, check=False, capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "r" / "report.html").is_file()


def test_many_classes_are_refused_without_a_warning_of_a_library(run, tmp_path):
    frame = pd.DataFrame({"g": np.arange(30.0), "y": [f"class {k % 20}" for k in range(30)]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = run("select", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "r")
    assert code == 2
    assert "1 sample of class" in " ".join(err.split())


def test_an_interrupt_ends_with_130(folder, run, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(selection, "run_prepared", interrupted)
    assert run("select", folder / "t.csv", "--target", "outcome", "--out", tmp_path)[0] == 130


def test_numeric_targets_and_hostile_names(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [12, 18])
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=["[bold]x[/bold]", "b", "=cmd()", "ü"])
    frame["[bold]x[/bold]"] += 3 * y
    frame.assign(y=y, flat=1.0, twin=frame["b"]).to_csv(tmp_path / "t.csv", index=False)
    code, out, _ = run("select", tmp_path / "t.csv", "--target", "y", "--positive", "1", "--out", tmp_path / "r", *ONE)
    assert code == 0
    assert "[bold]x[/bold]" in out
    assert "1 constant or empty column left out" in out
    assert "1 group of columns that are equal" in out
    assert json.loads((tmp_path / "r" / "result.json").read_text())["table"]["positive"] == "1"


def test_row_numbers_are_no_features(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc")).assign(y=np.repeat(["u", "v"], 15))
    frame.to_csv(tmp_path / "indexed.csv")  # a nameless first column
    _, out, _ = run("select", tmp_path / "indexed.csv", "--target", "y", "--out", tmp_path / "r", *ONE)
    assert "3 features" in out
    frame.assign(id=np.arange(30)).to_csv(tmp_path / "id.csv", index=False)
    _, out, _ = run("select", tmp_path / "id.csv", "--target", "y", "--out", tmp_path / "r", *ONE)
    assert "3 features" in out
    assert "note: 'id' tells the rows apart as an id does and is not used as a feature" in " ".join(out.split())
    _, out, _ = run("select", tmp_path / "id.csv", "--target", "y", "--ids", "none", "--out", tmp_path / "n", *ONE)
    assert "4 features" in out


def test_noise_is_called_noise(run, tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(40, 30))).assign(y=np.tile(["u", "v"], 20))
    frame.to_csv(tmp_path / "t.csv", index=False)
    _, out, _ = run("select", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "r", *ONE)
    assert "No evidence that this table says anything of y" in " ".join(out.split())


def test_cohort_writes_a_table_and_its_truth(run, tmp_path):
    code, out, _ = run("cohort", tmp_path / "sub" / "c.csv", "--n-samples", 20, "--n-features", 30)
    assert code == 0
    assert "c.csv" in out
    frame = pd.read_csv(tmp_path / "sub" / "c.csv")
    truth = json.loads((tmp_path / "sub" / "c.truth.json").read_text())
    assert frame.shape == (20, 31)
    assert set(truth["relevant"]) < set(frame.columns)
    code, _, _ = run("cohort", tmp_path / "s.csv", "--n-samples", 20, "--outcome", "survival", "--n-censoring", 2)
    assert code == 0
    assert pd.read_csv(tmp_path / "s.csv").columns[-2:].tolist() == ["time", "event"]
    assert len(json.loads((tmp_path / "s.truth.json").read_text())["censoring"]) == 2
    code, _, error = run("cohort", tmp_path / "n.csv", "--outcome", "numbers", "--prevalence", 0.2)
    assert (code, "prevalence is 0.2" in error) == (2, True)


def test_suspects_are_named_with_their_rows(run, tmp_path):
    cohort = make_cohort(80, 60, n_relevant=10, effect=2.5, prevalence=0.5, random_state=1)
    frame = cohort.frame()
    wrong = [3, 40, 77]
    frame.loc[wrong, "outcome"] = frame.loc[wrong, "outcome"].map({"case": "control", "control": "case"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    file = tmp_path / "s.csv"
    code, out, _ = run("suspects", tmp_path / "t.csv", "--target", "outcome", "--out", file)
    assert code == 0
    assert "80 samples" in out
    table = pd.read_csv(file)
    assert list(table.columns) == ["row", "label", "suspicion", "margin", "suspect"]
    assert set(table["row"][table["suspect"]]) >= {row + 1 for row in wrong}
    assert table["suspect"].sum() <= 7
    code, out, _ = run("suspects", tmp_path / "t.csv", "--target", "outcome", "--out", file, "--json")
    assert len(json.loads(out)) == 80
    code, _, told = run("suspects", tmp_path / "t.csv", "--target", "outcom", "--out", file)
    assert code == 2
    assert "did you mean 'outcome'" in told


def test_a_count_is_the_budget_of_methods_that_have_one(run, tmp_path, monkeypatch):
    frame = make_cohort(60, 20, n_relevant=5, effect=2.0, random_state=0).frame()
    frame["ward"] = np.where(np.arange(60) % 3, "north", "south")  # a category, which linear programs take
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setitem(recipes.RECIPES, "ramp_fs", replace(recipes.entry("ramp_fs"), function=quick_ramp_fs))
    words = (
        "--target",
        "outcome",
        "--methods",
        "ramp-fs",
        "--n-features-to-select",
        3,
        "--out",
        tmp_path / "o",
        *QUICK,
    )
    code, out, _ = run("select", tmp_path / "t.csv", *words)
    assert code == 0
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert result["chosen_by_method"]["budget"] == 3
    assert result["n_features"] <= 3
    assert isinstance(result["methods"][0]["left_out"], list)
    assert "of a budget of 3 spent" in out


def quick_ramp_fs(budget=10, **settings):
    return recipes.ramp_fs(budget, "fast", shakes=0, **settings)


def test_several_methods_a_budget_of_minutes_and_a_report(run, tmp_path):
    cohort = make_cohort(60, 30, n_relevant=4, effect=2.0, random_state=0)
    cohort.frame().assign(sample=[f"S{k:03}" for k in range(60)]).to_csv(tmp_path / "t.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--target", "outcome", "--methods", "fisher,su", "--out", tmp_path / "r")
    code, out, err = run(*words, "--minutes", "0.01", "--cv", 2)
    assert code == 0
    assert "this takes about" in err
    assert "the least study, and takes longer than asked for" in err
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert [method["title"] for method in result["methods"]] == ["fisher", "su", "all features"]
    assert result["protocol"]["repeats"] == 1
    assert "by the budget of minutes" in result["protocol"]["chosen"][1]
    assert result["table"]["id_columns"] == ["sample"]
    assert result["how"]["command"].startswith("marginsieve select ")
    assert "report.html" in out
    assert not (tmp_path / "r" / "suspects.csv").exists()
    plan = result["protocol"]["plan"]
    assert (plan["methods"], plan["analyses"]["evidence"]) == (["fisher", "su"], [999])
    assert "suspects" not in plan["analyses"]
    again = (*words[:-1], tmp_path / "again", "--plan", tmp_path / "r", "--cv", 2)
    assert run(*again)[0] == 0
    second = json.loads((tmp_path / "again" / "result.json").read_text())
    assert (second["scores"], second["features"]) == (result["scores"], result["features"])
    assert "@article" in (tmp_path / "r" / "methods.txt").read_text()
    assert {"id", "label"} <= set(pd.read_csv(tmp_path / "r" / "predictions.csv").columns)


def test_progress_without_a_terminal_is_lines(monkeypatch, capsys):
    monkeypatch.setattr(cli_progress, "EVERY", 0.01)
    with cli_progress.show_progress() as progress:
        progress("reading", 0.0, 4.0)
        progress("svm-rfe", 3.0, 4.0)
        while "svm-rfe" not in (said := capsys.readouterr().err):
            pass
    assert "svm-rfe: 75% done, about 0 s left" in said


def test_the_time_left_starts_anew_with_other_work(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(cli_progress.time, "monotonic", lambda: now[0])
    pace = cli_progress._Pace()
    pace.set("first, 300 of 400", 300, 400)  # an earlier run did these
    assert "not known" in pace.time_left()
    now[0] = 10.0
    pace.set("first, 350 of 400", 350, 400)
    assert pace.time_left() == "about 10 s left"
    pace.set("second, 0 of 400", 0, 400)
    assert "not known" in pace.time_left()
    now[0] = 110.0
    pace.set("second, 100 of 400", 100, 400)
    assert pace.time_left() == "about 5 min 00 s left"


def test_bench_runs_a_suite_says_how_far_it_is_and_resumes(run, tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "SELDOM", 0.001)
    (tmp_path / "small.toml").write_text(
        'name = "small"\n[protocol]\nname = "nested"\nfolds = 2\nrepeats = 2\n'
        '[[data]]\nname = "A"\ncohort = {n_samples = 40, n_features = 30, n_relevant = 4, effect = 1.5}\n'
        '[[method]]\nname = "fisher"\nn_features_to_select = 4\n[[method]]\nname = "su"\nn_features_to_select = 4\n'
    )
    words = ("bench", tmp_path / "small.toml", "--out", tmp_path / "b")
    code, out, err = run(*words)
    assert code == 0
    assert "of 8: " in err
    assert "% done" in err
    assert "fisher" in out
    assert "average ranks" not in out  # one data set
    monkeypatch.setenv("COLUMNS", "42")
    code, out, _ = run(*words, "--resume")
    assert code == 0
    assert "lowest" in out  # a row for each method where they do not fit beside each other
    code, out, _ = run(*words, "--resume", "--json", "--metric", "auc")
    assert code == 0
    assert {row["method"] for row in json.loads(out)} == {"fisher", "su"}


@pytest.mark.parametrize("control", ["", 'control = "su"\n'])
def test_bench_tests_against_the_control_or_all_pairs(run, tmp_path, control):
    cohort = "cohort = {n_samples = 40, n_features = 10, n_relevant = 2, effect = 1.5, random_state = "
    data = "".join(f'[[data]]\nname = "{name}"\n{cohort}{k}}}\n' for k, name in enumerate("ABC"))
    (tmp_path / "small.toml").write_text(
        f'{control}[protocol]\nname = "nested"\nfolds = 2\nrepeats = 1\n{data}'
        '[[method]]\nname = "fisher"\nn_features_to_select = 2\n[[method]]\nname = "su"\nn_features_to_select = 2\n'
    )
    code, out, _ = run("bench", tmp_path / "small.toml", "--out", tmp_path / "b")
    assert code == 0
    line = "p against the control su (average ranks, Holm): fisher " if control else "pairs that differ at 5% (Nemenyi"
    assert line in out


def test_predictions_never_overwrite_the_table(folder, run, tmp_path):
    code, _, _ = run(
        "select",
        folder / "t.csv",
        "--target",
        "outcome",
        "--methods",
        "fisher",
        "--out",
        tmp_path / "r",
        "--without",
        "suspects",
        "--cv",
        2,
        "--n-repeats",
        1,
    )
    assert code == 0
    frame = pd.read_csv(folder / "t.csv").assign(**{"sample id": "S1"})
    frame.to_csv(tmp_path / "n.csv", index=False)
    for out, sentence in ((tmp_path / "n.csv", "the table itself"), (tmp_path / "p.parquet", "must end in .csv")):
        code, _, err = run("predict", tmp_path / "r", tmp_path / "n.csv", "--out", out)
        assert code == 2
        assert sentence in " ".join(err.split())
    code, out, _ = run("predict", tmp_path / "r", tmp_path / "n.csv", "--json")
    assert code == 0
    assert json.loads(out)["rows"][0]["sample id"] == "S1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.csv", "r"]


def test_a_command_that_fails_at_once_leaves_nothing_behind(folder, run, tmp_path):
    code, _, _ = run("select", folder / "t.csv", "--target", "g01", "--outcome", "classes", "--out", tmp_path / "r")
    assert code == 2
    assert not (tmp_path / "r").exists()
    code, _, err = run("select", folder / "t.csv", "--target", "outcome", "--cv", 50, "--out", tmp_path / "r")
    assert code == 2
    assert "outer folds" in err
    assert not (tmp_path / "r").exists()


def test_reproduce_says_where_it_went(run, tmp_path):
    code, out, err = run("reproduce", "mixed", "--quick", "--out", tmp_path / "r")
    assert code == 2
    assert "python -m reproduction NAME" in " ".join(err.split())
    assert not out
    assert not (tmp_path / "r").exists()


def test_bench_loads_a_module_that_registers_tables(run, tmp_path):
    code, _, err = run("bench", tmp_path / "s.toml", "--out", tmp_path / "r", "--load", "no_such_module")
    assert code == 2
    assert "--load names 'no_such_module'" in " ".join(err.split())


def test_names_with_commas_stand_in_quotes():
    assert read_names('a, "b, c" ,d,,') == ("a", "b, c", "d")
    assert read_names("") == ()


def test_no_color_is_obeyed(folder, run, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "")
    _, out, err = run("select", folder / "t.csv", "--target", "outcom", "--out", tmp_path)
    assert "\x1b[3" not in out + err
    assert "did you mean" in err


def test_options_come_from_a_file_or_a_result_folder_and_those_given_win(folder, run, tmp_path):
    (tmp_path / "o.toml").write_text(
        'methods = ["fisher"]\ncv = 3\nn_repeats = 1\nn_permutations = 24\nrandom_state = 4\n'
        'without = ["suspects", "references"]\nprefilter = ["fast", 20]\ndrop = ["patient"]\nkeep = ["g01"]\n'
    )
    words = ("select", folder / "t.csv", "--target", "outcome", "--options")
    code, _, err = run(*words, tmp_path / "o.toml", "--cv", 2, "--positive", "control", "--out", tmp_path / "r")
    assert code == 0, err
    first = json.loads((tmp_path / "r" / "result.json").read_text())
    assert first["protocol"]["folds"] == 2
    assert first["table"]["dropped_columns"] == ["patient"]
    assert first["options"]["keep"] == ["g01"]
    assert run(*words, tmp_path / "r", "--out", tmp_path / "again")[0] == 0
    second = settled(tmp_path / "again")
    assert second == settled(tmp_path / "r")
    for text, sentence in (
        ("folds = 3", "has 'folds', which is no option; options are"),
        ("n_repeat = 3", "which is no option; did you mean 'n_repeats'?"),
        ("cv = 'x'", "cv is 'x'; it must be a whole number"),
        ("keep = 3", "keep is 3; it must be a name or a sequence of names"),
        ("prefilter = 3", "prefilter is 3; it must be a pair"),
        ("cv =", "is not valid TOML"),
    ):
        (tmp_path / "wrong.toml").write_text(text)
        code, _, err = run(*words, tmp_path / "wrong.toml", "--out", tmp_path / "wrong")
        assert code == 2, text
        assert sentence in " ".join(err.split())


def test_old_spellings_work_and_warn(folder, run, tmp_path):
    new = ("--cv", 2, "--n-repeats", 1, "--n-permutations", 24, "--methods", "fisher", "--random-state", 3)
    old = ("--folds", 2, "--repeats=1", "--permutations", 24, "--method", "fisher", "--seed", 3, "--jobs", 1)
    words = ("select", folder / "t.csv", "--target", "outcome", "--out")
    without = ("--no-suspects", "--no-references", "--no-substitutes", "--features", 5)
    code, _, err = run(*words, tmp_path / "old", *old, *without)
    assert code == 0
    for name, spelled in (("--folds", "--cv"), ("--repeats", "--n-repeats"), ("--features", "--n-features-to-select")):
        assert f"note: {name} is {spelled} now" in err
    assert "note: --no-suspects is --without suspects now" in err
    without = ("--without", "suspects,references", "--without", "substitutes", "--n-features-to-select", 5)
    code, _, err = run(*words, tmp_path / "new", *new, *without, "--n-jobs", 1)
    assert code == 0
    assert "note: --" not in err
    assert settled(tmp_path / "old") == settled(tmp_path / "new")
    code, out, err = run(
        "cohort", tmp_path / "c.csv", "--samples", 20, "--features", 6, "--relevant", 2, "--redundant", 1, "--seed", 1
    )
    assert code == 0
    assert "20 rows, 6 columns" in out
    assert "--seed is --random-state now" in err


def test_every_option_is_on_the_command_line_under_its_python_name():
    command = typer.main.get_command(cli.app).commands["select"]
    spelled = {name: parameter for parameter in command.params for name in parameter.opts}
    for entry in fields(StudyOptions):
        if info_of(entry).command:
            flag = "--" + entry.name.strip("_").replace("_", "-")
            assert spelled[flag].help.startswith(info_of(entry).help[:40])
    assert list(inspect.signature(marginsieve.study).parameters)[2:] == [one.name for one in fields(StudyOptions)]
