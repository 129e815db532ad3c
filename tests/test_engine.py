"""The engine under faults: killed runs and workers, full disks, broken methods; resumed studies equal undisturbed."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from marginsieve import recipes
from marginsieve.bench import SuiteResult
from marginsieve.bench.suite import Suite, run_suite
from marginsieve.criteria import Fisher
from marginsieve.engine import workers as engine
from marginsieve.engine.store import FILE, Store, claim, lock_folder
from marginsieve.engine.units import Method, PlainTable, Protocol, Split, Task, Unit
from marginsieve.engine.workers import share_table, shared_table, workers
from marginsieve.errors import InputError
from marginsieve.machines import CSVC

SPEC = {
    "name": "small",
    "protocol": {"name": "nested", "folds": 3, "repeats": 2},
    "data": [
        {"name": "A", "cohort": {"n_samples": 40, "n_features": 30, "n_relevant": 4, "effect": 1.5}},
        {"name": "B", "cohort": {"n_samples": 40, "n_features": 30, "n_relevant": 4, "random_state": 3}},
    ],
    "method": [{"name": "svm-rfe", "n_features_to_select": 4}, {"name": "fisher", "n_features_to_select": 4}],
}


def content(folder):
    """Everything but clocks and memory."""
    store = Store(Path(folder))
    rows = [{k: v for k, v in row.items() if k not in ("seconds", "peak_mb", "finished")} for row in store.units()]
    store.close()
    return rows


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run_suite(Suite.read(SPEC), folder)
    return content(folder)


def test_a_study_reads_back(undisturbed, tmp_path):
    study = run_suite(Suite.read(SPEC), tmp_path)
    assert len(undisturbed) == 2 * 2 * 6
    assert {row["status"] for row in undisturbed} == {"done"}
    frame = study.to_pandas()
    assert len(frame) == 24
    assert frame["balanced_accuracy"].between(0, 1).all()
    study.to_parquet(tmp_path / "study.parquet")
    assert len(pd.read_parquet(tmp_path / "study.parquet")) == 24
    scores = study.scores("auc")
    assert len(scores) == 4
    assert (scores["passes"] == 2).all()
    assert study.compare().methods
    assert study.stability()["stability"].between(-0.2, 1).all()
    assert not len(study.failures())
    study.plot_stability(tmp_path / "stability.svg")
    assert (tmp_path / "stability.svg").stat().st_size > 1000
    with pytest.raises(InputError, match="metric is 'luck'"):
        study.scores("luck")


def test_a_suite_names_its_control(tmp_path):
    labels = [method["name"] for method in SPEC["method"]]
    study = run_suite(Suite.read({**SPEC, "control": labels[1]}), tmp_path)
    assert study.compare().control == labels[1]
    assert study.compare(control=labels[0]).control == labels[0]
    assert "p_against_control" in study.compare().table()
    with pytest.raises(InputError, match="control of the suite is 'best'; it must be the label of one of its methods"):
        Suite.read({**SPEC, "control": "best"})


def test_pooled_scores_are_those_of_nested_predictions(tmp_path):
    """A pass through the table is one metric: AUC over the pairs within its folds, each fold by its pairs."""
    from sklearn.metrics import roc_auc_score

    study = run_suite(Suite.read({**SPEC, "data": SPEC["data"][:1], "method": SPEC["method"][:1]}), tmp_path)
    rows, data, _ = study._rows()
    values = []
    truth = np.array(data["A"]["truth"]) == data["A"]["positive"]
    for repeat in (0, 1):
        folds = [row["result"] for row in rows if row["repeat"] == repeat]
        areas = [roc_auc_score(truth[fold["test"]], fold["by_size"][0]["decision"]) for fold in folds]
        pairs = [truth[fold["test"]].sum() * (~truth[fold["test"]]).sum() for fold in folds]
        values.append(np.average(areas, weights=pairs))
    assert study.scores("auc")["auc"].item() == pytest.approx(np.mean(values))


def test_workers_do_not_change_the_result(undisturbed, tmp_path):
    run_suite(Suite.read(SPEC), tmp_path, n_jobs=2)
    assert content(tmp_path) == undisturbed


def test_a_second_run_repeats_nothing_and_a_larger_suite_runs_what_is_new(undisturbed, tmp_path):
    run_suite(Suite.read(SPEC), tmp_path)
    seen = []
    run_suite(Suite.read(SPEC), tmp_path, progress=lambda *state: seen.append(state))
    assert seen == [(24, 24, 0)]
    larger = {**SPEC, "method": [*SPEC["method"], {"name": "fisher", "label": "f9", "n_features_to_select": 9}]}
    seen.clear()
    run_suite(Suite.read(larger), tmp_path, progress=lambda *state: seen.append(state))
    assert seen[0] == (24, 36, 0)
    assert seen[-1] == (36, 36, 0)


def test_resume_and_fresh(tmp_path):
    with pytest.raises(InputError, match="nothing to resume"):
        run_suite(Suite.read(SPEC), tmp_path / "new", resume=True)
    run_suite(Suite.read(SPEC), tmp_path)
    run_suite(Suite.read(SPEC), tmp_path, resume=True)
    seen = []
    run_suite(Suite.read(SPEC), tmp_path, fresh=True, progress=lambda *state: seen.append(state))
    assert seen[0] == (0, 24, 0)
    with pytest.raises(InputError, match="choose one"):
        run_suite(Suite.read(SPEC), tmp_path, fresh=True, resume=True)


# -- faults ------------------------------------------------------------------------------------------------------

KILLED = """
import json, os, resource, signal, sys
from marginsieve.bench import Suite, run_suite, suite as runner
spec, folder, jobs, at, how = json.loads(sys.argv[1])
runner.SHORT = -1.0  # every unit is written at once, also on a fast machine
if how == "disk":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))
def progress(done, total, failed):
    if how == "kill" and done == at:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "interrupt" and done >= at:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
run_suite(Suite.read(spec), folder, n_jobs=jobs, progress=progress)
"""


def in_a_process(folder, how, at, jobs=1):
    argument = json.dumps([SPEC, str(folder), jobs, at, how])
    said = folder / "said.txt"  # not a pipe, which workers that outlive the run would keep open
    with said.open("w") as handle:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, argument], stdout=handle, stderr=handle, timeout=200, check=False
        )
    return done.returncode, said.read_text()


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_killed_run_resumes_where_it_was(undisturbed, tmp_path, jobs):
    assert in_a_process(tmp_path, "kill", 7, jobs)[0] == -signal.SIGKILL
    assert len(content(tmp_path)) == 7
    seen = []
    run_suite(Suite.read(SPEC), tmp_path, progress=lambda *state: seen.append(state))
    assert seen[0] == (7, 24, 0)
    assert content(tmp_path) == undisturbed


@pytest.mark.long
def test_interrupted_twice_resumes_where_it_was(undisturbed, tmp_path):
    code, said = in_a_process(tmp_path, "interrupt", 5)
    assert code != 0
    assert "KeyboardInterrupt" in said
    assert 4 <= len(content(tmp_path)) <= 6
    run_suite(Suite.read(SPEC), tmp_path)
    assert content(tmp_path) == undisturbed


def test_a_full_disk_is_told_and_costs_nothing_but_time(undisturbed, tmp_path):
    code, said = in_a_process(tmp_path, "disk", 120_000)
    assert code == 1
    assert "could not be written" in said or "disk" in said
    run_suite(Suite.read(SPEC), tmp_path)
    assert content(tmp_path) == undisturbed


class Breaking(Fisher):
    """A filter that breaks in the way that its label says."""

    def __init__(self, label="", flag=""):
        self.label = label
        self.flag = flag

    def __call__(self, table, y, weight):
        if self.label == "raises":
            raise RuntimeError("no such luck")
        if self.label == "hangs":
            while True:
                pass
        if self.label == "dies" or (self.label == "dies once" and self._first()):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(table, y, weight)

    def _first(self):
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


class NotFinite(CSVC):
    """A machine whose intercept is no number."""

    def solve(self, gram, y, cost, warm=None):
        return replace(super().solve(gram, y, cost, warm), intercept=float("nan"))


def breaking(label, flag, **_):
    if label == "nan":
        return recipes.fisher(n_features_to_select=4, threshold="margin", machine=NotFinite())
    return recipes.fisher(n_features_to_select=4).set_params(criterion=Breaking(label, flag))


@dataclass(frozen=True)
class Saboteur(Method):
    """Breaks in the way that its label says."""

    flag: str = ""

    @property
    def function(self):
        return partial(breaking, self.label, self.flag)


def sabotaged(label, flag=""):
    suite = Suite.read({**SPEC, "data": SPEC["data"][:1], "method": SPEC["method"][1:]})
    bad = Saboteur(label, "fisher", (("n_features_to_select", 4), ("x", label)), flag=flag)
    return replace(suite, methods=(*suite.methods, bad), seconds=1.0 if label == "hangs" else None)


@pytest.mark.parametrize(
    ("label", "message", "jobs"),
    [
        ("raises", "RuntimeError: no such luck", 1),
        ("raises", "RuntimeError: no such luck", 2),
        ("hangs", "cut by the clock after 1 s", 2),
        ("nan", "is not a finite number", 1),
    ],
)
def test_a_broken_method_is_listed_and_the_others_go_on(label, message, jobs, tmp_path):
    study = run_suite(sabotaged(label), tmp_path, n_jobs=jobs)
    failures = study.failures()
    assert len(failures) == 6
    assert failures["error"].str.contains(message, regex=False).all()
    assert set(study.scores()["method"]) == {"fisher"}
    assert not [row for row in content(tmp_path) if row["status"] not in ("done", "failed")]


@pytest.mark.long
def test_a_dead_worker_is_replaced(tmp_path):
    study = run_suite(sabotaged("dies once", str(tmp_path / "flag")), tmp_path / "study", n_jobs=2)
    assert (tmp_path / "flag").exists()
    assert not len(study.failures())
    by_method = study.scores().set_index("method")["balanced_accuracy"]
    assert len(by_method) == 2


@pytest.mark.long
def test_a_unit_that_always_kills_its_worker_fails_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "CRASHES", 1)  # after which units run alone: every further pool costs seconds
    suite = sabotaged("dies")
    suite = replace(suite, protocol=replace(suite.protocol, folds=2, repeats=1))
    study = run_suite(suite, tmp_path, n_jobs=2)
    assert set(study.failures()["method"]) == {"dies"}
    assert (study.failures()["error"] == "the worker died each time").all()
    assert len(study.scores()) == 1


def test_two_runs_on_one_folder(tmp_path):
    claim(tmp_path, "suite", [])
    with lock_folder(tmp_path), pytest.raises(InputError, match=r"another run is at work on .* \(process \d+\)"):
        run_suite(Suite.read(SPEC), tmp_path)


def test_stores_that_are_none_are_left_alone(tmp_path):
    path = tmp_path / FILE
    path.write_bytes(b"of someone else")
    for fresh in (False, True):
        with pytest.raises(
            InputError, match=r"holds 'results.sqlite', which marginsieve did not write: name a new folder"
        ):
            run_suite(Suite.read(SPEC), tmp_path, fresh=fresh)
    assert path.read_bytes() == b"of someone else"
    path.unlink()
    claim(tmp_path, "suite", [])
    for bytes_ in (b"not a database at all, but quite long" * 100, b"SQLite format 3\0" + b"\1" * 5000):
        path.write_bytes(bytes_)
        with pytest.raises(InputError, match=r"cannot be read as a study .*--fresh"):
            run_suite(Suite.read(SPEC), tmp_path)
        assert path.read_bytes() == bytes_
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="holds what marginsieve did not make"):
        SuiteResult(tmp_path).to_pandas()
    assert path.read_bytes() == before


@pytest.mark.parametrize(("version", "age"), [(4, "a newer"), (2, "an older"), (0, "an older")])
def test_stores_of_other_versions_are_left_alone(version, age, tmp_path):
    run_suite(Suite.read({**SPEC, "data": SPEC["data"][:1], "method": SPEC["method"][1:]}), tmp_path)
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(version),))
    connection.execute("DELETE FROM meta WHERE key = 'checksums'")  # it would tell that an entry was changed
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=f"written by {age} marginsieve .schema {version}"):
        run_suite(Suite.read(SPEC), tmp_path)


def test_tables_are_mapped_not_copied(tmp_path):
    (table,) = Suite.read({**SPEC, "data": SPEC["data"][:1]}).tables()
    shared = shared_table(share_table(table, tmp_path / "table"))
    values = shared.rows.table.Z
    np.testing.assert_array_equal(values, table.rows.table.Z)
    base = values
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


# -- Dask --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:::distributed", "ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.long
def test_a_cluster_gives_the_same_result_though_a_worker_is_killed(undisturbed, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]

        def progress(done, total, failed):
            if done == 3:
                os.kill(pids[0], signal.SIGKILL)

        run_suite(Suite.read(SPEC), tmp_path, cluster=cluster.scheduler_address, progress=progress)
    assert content(tmp_path) == undisturbed


def test_a_table_that_does_not_arrive_is_sent_again(monkeypatch):
    class Client:
        limits: ClassVar[list[float]] = []

        def scatter(self, *_, **__):
            return "the table on the cluster"

        def sync(self, send, callback_timeout):
            self.limits.append(callback_timeout)
            if len(self.limits) < 3:
                raise TimeoutError
            return send()

    monkeypatch.setattr(engine, "LOOK_EVERY", 0.0)
    assert engine._send_table(Client(), None) == "the table on the cluster"
    assert Client.limits == [engine.SENDING] * 3
    monkeypatch.setattr(engine, "CRASHES", 0)
    Client.limits.clear()
    with pytest.raises(TimeoutError):
        engine._send_table(Client(), None)


def test_no_scheduler_is_told(tmp_path, monkeypatch):
    import distributed

    def refuse(*_, **__):
        raise OSError("refused")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(InputError, match=r"no Dask scheduler at 'tcp://127.0.0.1:1'"):
        run_suite(Suite.read(SPEC), tmp_path, cluster="tcp://127.0.0.1:1")


# -- suites ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"data": []}, r"no \[\[data\]\]"),
        ({"method": []}, r"no \[\[method\]\]"),
        ({"method": [{"name": "magic"}]}, "there is no method 'magic'"),
        ({"method": [{"name": "fisher", "colour": 3}]}, "does not take these settings"),
        ({"method": [{"name": "fisher"}, {"name": "fisher"}]}, "the same label"),
        ({"method": [{"C": 3}]}, "has no 'name'"),
        ({"protocol": "magic"}, "there is no protocol 'magic'; the protocols are 'nested'"),
        ({"protocol": {"name": "nested", "fold": 3}}, "has no field 'fold'"),
        ({"protocol": {"name": "nested", "tuned": "somehow"}}, "tuned is 'somehow'"),
        ({"colour": 1}, "the suite has 'colour'"),
    ],
)
def test_wrong_suites_get_a_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        Suite.read({**SPEC, **change})


def test_wrong_data_get_a_sentence(tmp_path):
    for entry, sentence in (
        ({"name": "NOWHERE"}, "there is no table 'NOWHERE'"),
        ({}, "needs a 'name', a 'cohort' or a 'file'"),
        ({"file": str(tmp_path / "none.csv"), "target": "y"}, "there is no file"),
    ):
        with pytest.raises(InputError, match=sentence):
            Suite.read({**SPEC, "data": [entry]}).tables()
    with pytest.raises(InputError, match="there is no file"):
        Suite.read(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(InputError, match=r"bad.toml is not valid TOML"):
        Suite.read(tmp_path / "bad.toml")


def test_files_with_categories_and_groups_reach_the_workers(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    frame["n"] = rng.integers(0, 5, 40)
    frame["flag"] = rng.random(40) < 0.5
    frame["who"] = np.repeat(np.arange(20), 2)
    frame["y"] = np.repeat(np.arange(20) % 2, 2)
    frame.to_csv(tmp_path / "t.csv", index=False)
    entry = {"file": str(tmp_path / "t.csv"), "target": "y", "positive": 1, "groups": "who"}
    spec = {**SPEC, "data": [entry], "method": SPEC["method"][1:]}
    run_suite(Suite.read(spec), tmp_path / "one")
    run_suite(Suite.read(spec), tmp_path / "two", n_jobs=2)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    groups = frame["who"].to_numpy()
    for row in content(tmp_path / "one"):
        test = row["result"]["test"]
        assert not set(groups[test]) & set(np.delete(groups, test))


def one_millisecond(unit, table):
    """The work of a unit that takes a millisecond and says which process did it."""
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass
    return {"result": None, "metrics": {"pid": os.getpid()}}


def small_tasks(count):
    table = PlainTable("table", None, None, None, None)
    split = Split("0", 0, np.arange(2), np.arange(2), random_state=0)
    unit = Unit("key", "table", Method("fisher", "fisher"), Protocol("study", "folds", folds=2, repeats=1), split, 0, 0)
    return table, [Task(replace(unit, key=f"k{k}"), one_millisecond) for k in range(count)]


@pytest.mark.filterwarnings("ignore:::distributed", "ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.long
def test_a_cluster_that_grows_is_used_and_small_units_travel_together():
    from distributed import LocalCluster

    table, tasks = small_tasks(3000)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        by, together, since = Counter(), 0.0, time.perf_counter()
        with workers([table], None, cluster.scheduler_address) as run:
            for k, row in enumerate(run(tasks)):
                assert row["status"] == "done"
                by[row["metrics"]["pid"]] += 1
                together += row["seconds"]
                if k == 300:
                    cluster.scale(3)
                    cluster.wait_for_workers(3)
    assert sum(by.values()) == 3000
    assert len(by) == 3
    assert min(by.values()) > 20
    assert time.perf_counter() - since < 60  # one by one these take longer than the starting of workers
