"""A part of what `make hostile` runs: inputs, files, command lines and kills end in an answer or a sentence."""

import csv
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

from marginsieve import InputError, load, predict, recipes, save
from marginsieve.data.atomic import write_atomic, write_together
from marginsieve.data.formulas import inert, is_formula, restored
from marginsieve.data.reading import read_table
from marginsieve.fitting import memory as free_memory
from marginsieve.study import Suite, files, run_suite
from marginsieve.study.folders import changed_files, claim, read_mark
from marginsieve.study.store import FILE, RESCUED, Store

from . import cells, commands, kills, matrix, memory, models, processes, strategies
from .inputs import CASES, labels, numbers


def told(outcomes):
    """What was neither a good answer nor a clear error."""
    return [outcome for outcome in outcomes if outcome[1][0] not in ("good", "clear")]


def test_hostile_inputs_end_in_an_answer_or_a_sentence():
    """Every case with one or two recipes of 26, another part of them for each case."""
    assert len(CASES) >= 114
    wanted = matrix.pairs(every=17)
    assert len({case for case, _ in wanted}) == len(CASES)
    assert len({recipe for _, recipe in wanted}) == len(recipes.names())
    assert not told(processes.run(matrix.judge, wanted, 2, matrix.LIMIT))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.cases(), st.sampled_from(["fisher", "svm_rfe", "clinical_rfe", "svm_l1", "su"]))
def test_drawn_inputs_end_in_an_answer_or_a_sentence(case, recipe):
    kind, said = matrix.judge_case(case, recipe)
    assert kind in ("good", "clear"), said


def test_damaged_and_forged_models_are_refused_or_finite():
    found = list(processes.run(models.judge, [(seed,) for seed in range(500)], 2, models.LIMIT))
    assert not told(found)
    assert sum(kind == "clear" for _, (kind, _) in found) > 300


def test_odd_command_lines_end_in_a_sentence():
    assert len(commands.LINES) > 197
    assert not told(processes.run(commands.judge, [(line,) for line in commands.LINES], 2, commands.LIMIT))


def test_killed_commands_leave_nothing():
    assert kills.rounds(10, seed=1) == []


@pytest.mark.parametrize("name", ["fisher wide", "rfe tall", "rfe gaussian", "sphere"])
def test_the_peak_of_memory_is_known_beforehand(name, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    estimate, peak = memory.measured(name)
    assert peak / 1.5 <= estimate <= 1.5 * peak


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 2**22)
    with pytest.raises(InputError, match=r"would take about \d+ MB of memory and 4 MB are free: use max_samples="):
        recipes.svm_rfe().fit(numbers(400, 50), labels(400))


def test_a_limit_of_the_process_is_seen():
    code = """
import resource
from marginsieve.fitting.memory import free_bytes
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, resource.RLIM_INFINITY))
assert free_bytes() < 6 * 2**30
"""
    subprocess.run([sys.executable, "-c", code], check=True)


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
    assert [restored(cell) for cell in again["'=name"]] == FORMULAS


@given(st.text(max_size=30) | cells.texts())
def test_what_was_made_inert_comes_back(text):
    assert restored(inert(text)) == text
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
    damaged = store.damaged()
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
    for _ in range(60):
        damaged = bytearray(content)
        for place in rng.integers(len(damaged), size=int(rng.integers(1, 6))):
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
