"""A part of what `make hostile` runs: inputs, files, command lines and kills end in an answer or a sentence."""

import csv
import datetime as dt
import io
import json
import os
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import marginsieve
from marginsieve import InputError, load, predict, recipes, save
from marginsieve.bench import Suite, run_suite
from marginsieve.cli import arguments
from marginsieve.data import make_cohort
from marginsieve.data.cells import inert, is_formula, restore_text
from marginsieve.data.file_access import write_atomic, write_together
from marginsieve.data.reading import read_table
from marginsieve.data.stored import free_in_container
from marginsieve.engine.store import FILE, RESCUED, Store, changed_files, claim, read_mark
from marginsieve.errors import check_n_jobs
from marginsieve.fitting import settings as fit_settings
from marginsieve.report import render
from marginsieve.studies import files
from marginsieve.studies.study_data import from_frame

from . import cells, commands, kills, matrix, memory, models, processes, strategies
from .inputs import CASES, labels, numbers


@pytest.fixture(scope="module")
def small_result():
    made = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": ("suspects", "references")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(marginsieve.study(made.X, made.y, **settings).result))


def told(outcomes):
    """What was neither a good answer nor a clear error."""
    return [outcome for outcome in outcomes if outcome[1][0] not in ("good", "clear")]


@pytest.mark.long
def test_hostile_inputs_end_in_an_answer_or_a_sentence():
    """Every case with one or two recipes of 26, another part of them for each case."""
    assert len(CASES) >= 114
    wanted = matrix.pairs(every=17)
    assert len({case for case, _ in wanted}) == len(CASES)
    assert len({recipe for _, recipe in wanted}) == len(recipes.names())
    assert not told(processes.run(matrix.judge, wanted, 2, matrix.limit_of))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.cases(), st.sampled_from(["fisher", "svm_rfe", "clinical_rfe", "svm_l1", "su"]))
def test_drawn_inputs_end_in_an_answer_or_a_sentence(case, recipe):
    kind, said = matrix.judge_case(case, recipe)
    assert kind in ("good", "clear"), said


@pytest.mark.long
def test_damaged_and_forged_models_are_refused_or_finite():
    found = list(processes.run(models.judge, [(seed,) for seed in range(500)], 2, lambda _: models.LIMIT))
    assert not told(found)
    assert sum(kind == "clear" for _, (kind, _) in found) > 300


@pytest.mark.long
def test_odd_command_lines_end_in_a_sentence():
    assert len(commands.LINES) > 197
    assert not told(processes.run(commands.judge, [(line,) for line in commands.LINES], 2, lambda _: commands.LIMIT))


@pytest.mark.long
def test_killed_commands_leave_nothing():
    assert kills.rounds(10, seed=1) == []


@pytest.mark.parametrize(
    "name", ["fisher wide", "thin rfe", "rfe tall", "rfe gaussian", "sphere", "l1 tall", "smote pca"]
)
@pytest.mark.long
def test_the_peak_of_memory_is_known_beforehand(name, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    estimate, peak = memory.measured(name)
    assert peak / 1.5 <= estimate <= 1.5 * peak


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(fit_settings, "free_bytes", lambda: 2**22)
    with pytest.raises(InputError, match=r"would take about \d+ MB of memory and 4 MB are free: use max_samples="):
        recipes.svm_rfe().fit(numbers(400, 50), labels(400))


def test_sparse_tables_of_every_format_are_looked_at_when_they_are_predicted():
    model = recipes.fisher(n_features_to_select=2, random_state=0).fit(sparse.csr_array(numbers()), labels())
    wild = sparse.coo_array(numbers())
    wild.coords[1][5] = 10**8
    for call in (model.predict, model.transform):
        with pytest.raises(InputError, match="a cell lies outside its 33 rows and 6 columns"):
            call(wild)
    expected = model.predict(numbers())
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        assert (model.predict(sparse.csr_array(numbers()).asformat(form)) == expected).all()


def test_a_table_of_very_many_columns_is_refused_before_they_are_named():
    with pytest.raises(InputError, match=r"the names of 1,000,000,000,000 columns would take about 139,698\.4 GB"):
        recipes.fisher().fit(sparse.csr_array((33, 10**12), dtype=float), labels())


def test_the_limit_of_a_control_group_is_read_where_the_process_is(tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for folder, limit, used in ((tmp_path / "a", "1000", "300"), (inner, "max", "100")):
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text(used)
    (tmp_path / "a" / "memory.stat").write_text("anon 5\ninactive_file 40\n")
    (tmp_path / "membership").write_text("0::/a/b\n")
    monkeypatch.setattr("marginsieve.data.stored.GROUPS", tmp_path)
    monkeypatch.setattr("marginsieve.data.stored.MEMBERSHIP", tmp_path / "membership")
    assert free_in_container() == 1000 - 300 + 40


def test_a_limit_of_the_process_is_seen():
    code = """
import resource
from marginsieve.data.stored import free_bytes
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, resource.RLIM_INFINITY))
assert free_bytes() < 6 * 2**30
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_result_with_a_wrong_value_is_drawn_or_refused_in_a_sentence(small_result):
    """Every value of a result, one after the other, replaced by something odd, or taken out."""
    places = []

    def walk(value, path):
        for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((*path, key))
            walk(value[key], (*path, key))

    walk(small_result, ())
    odd = [None, True, -1, 1e308, "", "x", [], {}, [None], {"a": 1}, 10**400]
    drawn = 0
    for k, path in enumerate(places[:: max(1, len(places) // 150)]):
        result = json.loads(json.dumps(small_result))
        where = result
        for key in path[:-1]:
            where = where[key]
        if k % 5 == 0 and isinstance(where, dict):
            del where[path[-1]]
        else:
            where[path[-1]] = odd[k % len(odd)]
        try:
            drawn += bool(render(result))
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert drawn > 10


@pytest.mark.parametrize("content", ['{"how": null}', '{"how": {"command": 3}}', "[]", "{}", "nothing", '{"how": []}'])
def test_a_folder_with_an_odd_result_has_no_earlier_command(content, tmp_path, capsys):
    (tmp_path / "result.json").write_text(content)
    assert arguments.say_replaced(tmp_path, "marginsieve select") == "marginsieve select"
    assert "Traceback" not in capsys.readouterr().err


def test_texts_that_are_not_utf8_are_written(tmp_path):
    name = os.fsdecode(b"t\xff.csv")
    files.write_text(tmp_path / "page.html", f"table {name}")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "table t\\udcff.csv"


@pytest.mark.parametrize("cells", [[[1, 2]] * 20, [np.arange(2)] * 20, [b"\xff"] * 20, [{"a": 1}] * 20])
@pytest.mark.parametrize("role", ["x", "y"])
def test_cells_that_are_no_values_are_refused(cells, role):
    frame = pd.DataFrame({"a": np.arange(20.0), "x": np.arange(20.0) ** 2, "y": ["u", "v"] * 10})
    frame[role] = pd.Series(cells, dtype=object)
    with pytest.raises(InputError, match=rf"column '{role}' holds a \w+; a cell must be a number or a text"):
        from_frame(frame, "y")


SUITE = {"data": [{"name": "A", "cohort": {}}], "method": [{"name": "fisher"}]}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": [{"name": "fisher", "n_features_to_select": "x"}]}, "n_features_to_select is 'x'"),
        ({"method": [{"name": "fisher", "n_features_to_select": 0}]}, "n_features_to_select is 0"),
        ({"method": [{"name": "fisher", "sampler": "nosuch"}]}, "sampler is 'nosuch'"),
        ({"method": [{"name": "fisher", "prefilter": ["nosuch", 3]}]}, r"prefilter is \['nosuch', 3\]"),
        ({"method": [{"name": "fisher", "cv": []}]}, "cv is a list without any fold"),
        ({"method": [{"name": "fisher", "keep": [1.5]}]}, r"keep names the column 1\.5"),
        ({"method": [{"name": "fisher", "max_samples": 1}]}, "max_samples is 1"),
        ({"method": [{"name": "fisher", "ensemble": 10**9}]}, "at most 100,000"),
        ({"method": [{"name": "fisher", "cv": dt.date(2020, 1, 1)}]}, "cv of the suite is the date or time 2020-01-01"),
        ({"protocol": {"name": "nested", "repeats": 10**9}}, "repeats is 1000000000; .* at most 100,000"),
        ({"protocol": {"name": "nested", "tuned": "nested", "grid": {"x": [1]}}}, "the grid names 'x'"),
        (
            {"protocol": {"name": "nested", "tuned": "nested", "grid": {"machine__C": [1.0, -1.0]}}},
            "C is -1.0; it must be a positive number",
        ),
        ({"protocol": {"name": "nested", "settings": {"cv": 1}}}, "cv is 1"),
        ({"data": [{"name": "A", "cohort": {}, "shuffle": 2**63 - 1}]}, "shuffle is 9223372036854775807"),
        ({"seconds": 1e300}, r"seconds is 1e\+300; it must be a positive number of at most 1e\+08"),
    ],
)
def test_a_suite_is_checked_whole_before_anything_is_run(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        Suite.read({**SUITE, **changes})


def test_a_generator_is_a_random_state():
    one, two = (
        recipes.fisher(n_features_to_select=2, random_state=np.random.default_rng(seed)).fit(numbers(), labels())
        for seed in (5, 5)
    )
    assert one.threshold_ == two.threshold_


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        ([], "cv is a list without any fold"),
        (iter(()), "cv has no splits"),
        ([(np.arange(20), np.arange(20, 99))], r"split 0 of cv names row 33; the table has rows 0 to 32"),
        ([(np.arange(-3, 20), np.arange(20, 33))], r"split 0 of cv names row -3; the table has rows 0 to 32"),
        ([(np.arange(20), np.arange(0))], "no fold of cv tests class 0"),
    ],
)
def test_folds_of_rows_that_are_not_there_are_refused(cv, sentence):
    with pytest.raises(InputError, match=sentence):
        recipes.fisher(cv=cv, random_state=0).fit(numbers(), labels())


@pytest.mark.parametrize("jobs", [0, 10**30, -(10**30)])
def test_counts_of_workers_without_sense_are_refused(jobs):
    with pytest.raises(InputError, match="it must be 1 or more"):
        check_n_jobs(jobs)
    with pytest.raises(InputError, match="it must be 1 or more"):
        recipes.fisher(n_jobs=jobs).fit(numbers(), labels())


def test_durations_are_seconds_when_they_are_trained_on_and_when_they_are_predicted():
    rng = np.random.default_rng(0)
    hours = rng.normal(10, 3, size=60)
    frame = pd.DataFrame({"stay": pd.to_timedelta(hours, unit="h"), "b": rng.normal(size=60)})
    y = np.where(hours + rng.normal(size=60) > 10, "u", "v")
    data = from_frame(frame.assign(y=y), "y")
    model = recipes.fisher(n_features_to_select=1, random_state=0).fit(data.X, data.y)
    assert model.get_feature_names_out().tolist() == ["stay"]
    predicted = predict(model, frame)
    assert predicted.table["predicted"].tolist() == model.predict(data.X).tolist()
    assert "durations were read as seconds: 'stay'" in predicted.notes
    for wrong in (pd.date_range("2020", periods=60), hours + 1j):
        for call in (model.predict, lambda new: predict(model, new)):
            with pytest.raises(InputError, match="dates, durations or complex numbers where numbers are needed"):
                call(frame.assign(stay=wrong))


@pytest.mark.parametrize("table", [None, numbers(), sparse.csr_array(numbers()), "table"])
def test_predictions_need_names(table):
    model = recipes.fisher(n_features_to_select=2, random_state=0).fit(numbers(), labels())
    with pytest.raises(InputError, match="whose columns have no names: pass a DataFrame"):
        predict(model, table)


def test_names_of_two_levels_and_repeated_names_are_matched_or_refused():
    two = pd.DataFrame(numbers(), columns=pd.MultiIndex.from_product([["a", "b"], [*"xyz"]]))
    model = recipes.fisher(n_features_to_select=2, random_state=0).fit(two, labels())
    assert predict(model, two).table["predicted"].tolist() == model.predict(two).tolist()
    with pytest.raises(InputError, match="column names occur more than once"):
        predict(model, pd.DataFrame(numbers(), columns=list("abcabc")))
    with pytest.raises(InputError, match="column names occur more than once: '1'"):
        predict(model, pd.DataFrame(numbers(33, 2), columns=[1, "1"]))


def test_a_constant_decision_is_always_told():
    with pytest.warns(UserWarning, match="the decision value is the same for every training row"):
        recipes.l1_cssvm(negative_weight=1e-12, points=4, random_state=0).fit(numbers(45, 9), labels(45))


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_closed_streams_do_not_stop_a_command(closed, tmp_path):
    def close():
        for number in closed:
            os.close(number)

    line = [sys.executable, "-m", "marginsieve", "cohort", "c.csv", "--n-samples", "20", "--n-features", "5"]
    line += ["--relevant", "2", "--redundant", "0"]
    done = subprocess.run(line, cwd=tmp_path, preexec_fn=close, check=False, timeout=100)
    assert done.returncode == 0
    assert (tmp_path / "c.csv").read_text().startswith("g")


def test_a_stream_that_knows_ascii_alone_is_written_to(tmp_path):
    line = [sys.executable, "-m", "marginsieve", "select", "na\u00efve.csv", "--target", "y"]
    setting = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(line, cwd=tmp_path, env=setting, capture_output=True, check=False, timeout=100)
    assert done.returncode == 2
    assert done.stderr == b"error: there is no file 'na\\xefve.csv'\n"


def test_a_generated_table_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(InputError, match=r"a table of 1,000,000 rows and 1,000,000 columns would take about"):
        make_cohort(10**6, 10**6)
    with pytest.raises(InputError, match=r"a table of 1,000,000 rows and 1,000,000 columns would take about"):
        arguments.check_cells(10**6, 10**6)


# -- cells of CSV files --------------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "+1",
    "-1+2",
    "@SUM(A1)",
    "\t=1",
    "\r=1+cmd",
    "a\r=1+cmd",
    "a\n=1",
    "a;=1+1",
    "\n=1",
    "\uff1d1+1",
    "\uff0b1",
    "\u22122",
    " =1",
    '"=1',
    "x",
]


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    frame = pd.DataFrame({"=name": FORMULAS, "value": np.arange(len(FORMULAS)) - 3.0})
    files.write_csv(frame, tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_bytes().decode()
    for separator in (",", ";", "\t"):
        for row in csv.reader(io.StringIO(text.replace("\r", "\n")), delimiter=separator):
            for cell in row:
                for line in cell.strip('"').splitlines():
                    begins = line.lstrip(' "\xa0\u3000')
                    assert (
                        not begins.startswith(("=", "@", "+", "\uff1d", "\uff0b", "\u2212"))
                        or begins[1:].replace(".", "").isdecimal()
                    )
    again = pd.read_csv(tmp_path / "t.csv")
    assert again["value"].tolist() == frame["value"].tolist()
    assert [restore_text(cell) for cell in again["'=name"]] == FORMULAS


@given(st.text(max_size=30) | cells.texts())
def test_what_was_made_inert_comes_back(text):
    assert restore_text(inert(text)) == text
    assert not is_formula(inert(text))


@given(st.lists(cells.texts(), min_size=2, max_size=6, unique=True))
def test_no_two_texts_become_the_same(texts):
    assert len({inert(text) for text in texts}) == len(texts)


def test_hostile_cells_come_back_from_files(tmp_path):
    assert cells.wrong(cells.round_trips(tmp_path, 60, seed=1)) == []


def test_classes_that_differ_by_an_apostrophe_stay_apart(tmp_path):
    names = ["=x", "'=x", "''=x", "x", "'x"]
    frame = pd.DataFrame({"=a": np.arange(20.0), "'=a": np.arange(20.0), "y": names * 4})
    files.write_csv(frame, tmp_path / "ours.csv")
    frame.to_csv(tmp_path / "theirs.csv", index=False)
    for name in ("ours.csv", "theirs.csv"):
        again = read_table(tmp_path / name, whole=True)
        assert again["y"].tolist() == frame["y"].tolist()
        assert list(again.columns) == list(frame.columns)


def test_names_and_levels_that_look_like_formulas_are_read_back(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    frame = pd.DataFrame({"=a": rng.normal(size=40) + 2 * y, "b": np.where(y, "=x", "+y")})
    model = recipes.clinical_rfe(n_features_to_select=2, random_state=0).fit(frame, y)
    save(model, tmp_path / "m.marginsieve")
    files.write_csv(frame, tmp_path / "new.csv")
    new = read_table(tmp_path / "new.csv")
    assert predict(load(tmp_path / "m.marginsieve"), new).table["predicted"].tolist() == model.predict(frame).tolist()


def test_a_number_too_large_is_told(tmp_path):
    lines = ["a,b,y", *(f"{k},{k % 7},{'uv'[k % 2]}" for k in range(40)), "1e400,3,u"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    frame = read_table(tmp_path / "t.csv", target="y")
    with pytest.raises(InputError, match=r"infinite \(inf\) in 1 columns: a \(1\)"):
        recipes.fisher().fit(frame[["a", "b"]], frame["y"])


# -- files of others -----------------------------------------------------------------------------------------------


def test_temporary_names_are_nobody_elses(tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    for name in ("report.html.part", ".marginsieve-x", "report.html"):
        os.symlink(victim, tmp_path / name)
    write_atomic(tmp_path / "report.html", b"page")
    assert victim.read_text() == "mine"
    assert (tmp_path / "report.html").read_bytes() == b"page"
    assert not (tmp_path / "report.html").is_symlink()


def test_files_appear_together_or_not_at_all(tmp_path, monkeypatch):
    write_together(tmp_path, {"a": b"1", "b": b"1"})
    real = os.fsync

    def full(handle):
        if len(list(tmp_path.glob(".marginsieve-*"))) > 1:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_together(tmp_path, {"a": b"2", "b": b"2"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"1", "b": b"1"}


def test_a_folder_is_ours_only_with_our_mark(tmp_path):
    for content in ('{"schema": 1}', "[]", '{"marginsieve": 1, "schema": 1}', '{"marginsieve": "study", "schema": 99}'):
        (tmp_path / "marginsieve.json").write_text(content)
        assert read_mark(tmp_path) is None
        with pytest.raises(InputError, match=r"holds 'marginsieve\.json', which marginsieve did not write"):
            claim(tmp_path, "study", ["result.json"])
    claim(tmp_path / "new", "study", ["result.json"])
    claim(tmp_path / "new", "study", ["result.json"])
    with pytest.raises(InputError, match="holds a study, not a suite"):
        claim(tmp_path / "new", "suite", [])


# -- the store -----------------------------------------------------------------------------------------------------

SPEC = {
    "protocol": {"name": "nested", "folds": 3, "repeats": 2},
    "data": [{"name": "A", "cohort": {"n_samples": 40, "n_features": 10, "n_relevant": 2}}],
    "method": [{"name": "fisher", "n_features_to_select": 2}],
}


@pytest.fixture
def stored(tmp_path):
    run_suite(Suite.read(SPEC), tmp_path)
    return tmp_path


def test_a_changed_digit_is_named_and_made_again(stored):
    before = run_suite(Suite.read(SPEC), stored).to_pandas()
    connection = sqlite3.connect(stored / FILE)
    with connection:
        (key, result) = connection.execute("SELECT key, result FROM units LIMIT 1").fetchone()
        entry = json.loads(result)
        entry["by_size"][0]["decision"][0] += 1.0
        connection.execute("UPDATE units SET result = ? WHERE key = ?", (json.dumps(entry), key))
        connection.execute("UPDATE data SET positive = 1 - positive")
    connection.close()
    store = Store(stored)
    damaged = store.damages()
    store.close()
    assert len(damaged) == 2
    assert damaged[0].startswith("unit A / fisher / ")
    assert damaged[1] == "data set A"
    with pytest.warns(UserWarning, match="is damaged: what is wrong is made again"):
        after = run_suite(Suite.read(SPEC), stored)
    columns = ["data", "method", "split", "auc"] if "auc" in before else list(before.columns[:4])
    pd.testing.assert_frame_equal(after.to_pandas()[columns], before[columns])


def test_flipped_bytes_give_a_sentence_or_the_same_result(stored):
    content = (stored / FILE).read_bytes()
    expected = run_suite(Suite.read(SPEC), stored).scores("auc")
    for ending in ("-wal", "-shm"):
        (stored / f"{FILE}{ending}").unlink(missing_ok=True)
    rng, refused = np.random.default_rng(0), []
    for k in range(60):
        damaged = bytearray(content)
        reach = 4096 if k % 3 == 0 else len(damaged)  # the first page has the header and the names of the tables
        for place in rng.integers(reach, size=int(rng.integers(1, 6))):
            damaged[place] = int(rng.integers(256))
        (stored / FILE).write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = run_suite(Suite.read(SPEC), stored).scores("auc")
        except InputError as error:
            refused.append(str(error))
        else:
            pd.testing.assert_frame_equal(found, expected)
        for ending in ("-wal", "-shm"):
            (stored / f"{FILE}{ending}").unlink(missing_ok=True)
    assert refused
    assert all("nothing was changed" in sentence for sentence in refused)


def test_what_can_be_read_of_a_damaged_store_is_saved(stored):
    whole = run_suite(Suite.read(SPEC), stored).to_pandas()
    connection = sqlite3.connect(stored / FILE)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("DROP TABLE meta")
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=f"{len(whole)} units of it can be read and are saved in {RESCUED} beside it"):
        run_suite(Suite.read(SPEC), stored)
    os.replace(stored / RESCUED, stored / FILE)
    runs = []
    again = run_suite(Suite.read(SPEC), stored, progress=lambda *state: runs.append(state))
    assert runs[0] == (len(whole), len(whole), 0)
    assert len(again.to_pandas()) == len(whole)


def test_results_that_were_changed_are_known(stored):
    claim(stored / "r", "study", [])
    assert changed_files(stored / "r") == []
