"""What libraries may answer is known in full, and a fault of the system is never called damage."""

import concurrent.futures
import errno
import importlib
import os
import pickle
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import joblib
import pytest
from joblib.externals.loky import get_reusable_executor, process_executor

from marginsieve import InputError, load, recipes, save
from marginsieve.batches.arrays import NUMPY, Backend, explain_device_errors
from marginsieve.bench import Suite, run_suite
from marginsieve.cli.guard import exit_code_of
from marginsieve.data import make_cohort
from marginsieve.data.file_access import NAMES, kind_of_os_error
from marginsieve.engine import database, store, workers
from marginsieve.engine.store import FILE, RESCUED, Store
from marginsieve.errors import FaultKind, SystemFault
from marginsieve.solvers import execution
from marginsieve.solvers.execution import WorkerLost, explain_worker_errors, parallel

from . import faults, stores

RESULTS = {name: value for name, value in vars(sqlite3).items() if name.startswith("SQLITE_")}
PRIMARY = {f"SQLITE_{name}" for names in database.OUTCOMES.values() for name in names}
ACTIONS = (  # of the authorizer, and its answers: no results
    *("ALTER_TABLE", "ANALYZE", "ATTACH", "CREATE_.*", "DELETE", "DENY", "DETACH", "DROP_.*", "FUNCTION", "IGNORE"),
    *("INSERT", "PRAGMA", "READ", "RECURSIVE", "REINDEX", "SAVEPOINT", "SELECT", "TRANSACTION", "UPDATE"),
    *("LIMIT_.*", "DBCONFIG_.*", "COPY"),
)


# -- SQLite ----------------------------------------------------------------------------------------------------------


def test_every_result_code_of_sqlite_has_a_meaning():
    actions = re.compile(f"SQLITE_({'|'.join(ACTIONS)})")
    codes = {name: code for name, code in RESULTS.items() if not actions.fullmatch(name)}
    extended = {name: code for name, code in codes.items() if code > 0xFF}
    assert {name for name in codes if name not in extended} == {name for name in PRIMARY if RESULTS[name] <= 0xFF}
    assert len(extended) > 60
    for name, code in codes.items():
        primary = next(each for each in PRIMARY if RESULTS[each] == code & 0xFF)
        assert name.startswith(primary), name
        damage = primary in ("SQLITE_CORRUPT", "SQLITE_NOTADB")
        assert (database.kind_of_code(code) is FaultKind.DAMAGE) == damage
    assert database.kind_of_code(77) is database.kind_of_code(99 + 7 * 256) is FaultKind.SYSTEM


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    run_suite(Suite.read(stores.SPEC), folder)
    return folder


@pytest.fixture
def stored(suite, tmp_path):
    for path in suite.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_a_busy_store_is_not_called_damaged(stored, monkeypatch):
    """F2: it was, with the advice to move it away or to delete it, and a copy beside it."""
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    before = (stored / FILE).read_bytes()
    with closing(sqlite3.connect(stored / FILE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SystemFault, match=r"\(database is locked\); what was finished before is safe") as caught:
            run_suite(Suite.read(stores.SPEC), stored)
        other.rollback()
    assert "damaged" not in str(caught.value)
    assert "--fresh" not in str(caught.value)
    assert not (stored / RESCUED).exists()
    assert (stored / FILE).read_bytes() == before
    assert len(run_suite(Suite.read(stores.SPEC), stored).to_pandas()) == 6


def test_a_store_that_another_writes_to_takes_no_unit_and_is_whole(stored, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    with closing(Store(stored)) as ours, closing(sqlite3.connect(stored / FILE)) as other:
        (row, *_) = ours.units()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SystemFault, match=r"could not be written .database is locked"):
            ours.add([row])
        other.rollback()
        ours.add([row])
        assert ours.damages() == []


@pytest.mark.parametrize(
    "name", sorted(PRIMARY | {"SQLITE_BUSY_SNAPSHOT", "SQLITE_IOERR_FSYNC", "SQLITE_CORRUPT_INDEX"})
)
def test_only_damage_is_called_damage(stored, monkeypatch, name):
    """F2: 13 of 16 codes were, busy, read-only and out of memory among them."""
    code, real = RESULTS[name], Store._is_empty

    def fail(self):
        if self.path.parent != stored:  # where what can be read is saved
            return real(self)
        error = sqlite3.OperationalError("injected")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(Store, "_is_empty", fail)
    before = (stored / FILE).read_bytes()
    with pytest.raises((InputError, SystemFault)) as caught:
        Store(stored)
    kind = database.kind_of_code(code)
    if kind is FaultKind.DAMAGE:
        assert "6 units of it can be read and are saved in rescued.sqlite beside it" in str(caught.value)
    else:
        assert isinstance(caught.value, InputError if kind is FaultKind.INPUT else SystemFault)
        assert not (stored / RESCUED).exists()
        assert "--fresh" not in str(caught.value)
    assert (stored / FILE).read_bytes() == before
    monkeypatch.setattr(Store, "_is_empty", real)
    Store(stored).close()


def test_a_store_with_another_header_is_damaged_whatever_sqlite_says_of_it(stored):
    content = bytearray((stored / FILE).read_bytes())
    content[18] = 9  # a version that SQLite only reads: it says that the file is read-only
    (stored / FILE).write_bytes(content)
    with pytest.raises(InputError, match="6 units of it can be read and are saved"):
        run_suite(Suite.read(stores.SPEC), stored)


def test_no_room_for_what_can_be_saved_is_said(stored, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (stored / FILE).write_bytes((stored / FILE).read_bytes().replace(b"CREATE TABLE meta", b"CREATE TABLE mets"))
    monkeypatch.setattr(store, "_save_copy", full)
    with pytest.raises(SystemFault, match=r"is damaged, and what can be read of it could not be saved .no space left"):
        Store(stored)


def test_a_unit_that_is_counted_is_on_the_disk(stored):
    with closing(Store(stored)) as ours:
        journal = [ours.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert journal == ["wal", 2]  # FULL: the log is synchronised with each transaction


# -- files and memory ------------------------------------------------------------------------------------------------


def test_every_error_of_the_system_is_the_users_or_the_systems():
    assert set(NAMES) <= set(errno.errorcode.values())
    kinds = {name: kind_of_os_error(OSError(code, name)) for code, name in errno.errorcode.items()}
    assert {name for name, kind in kinds.items() if kind is FaultKind.INPUT} == set(NAMES)
    for name in ("ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EFBIG", "ENOLCK", "EBUSY", "EAGAIN"):
        assert kinds[name] is FaultKind.SYSTEM
    assert kind_of_os_error(OSError(99_999, "new")) is kind_of_os_error(OSError("no number")) is FaultKind.SYSTEM
    assert kind_of_os_error(ValueError("embedded null byte")) is FaultKind.INPUT


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), MemoryError()])
def test_a_model_that_cannot_be_read_now_is_not_called_damaged(tmp_path, monkeypatch, error):
    cohort = make_cohort(40, 6, n_relevant=2, random_state=0)
    path = save(recipes.fisher(n_features_to_select=2).fit(cohort.X, cohort.y), tmp_path / "m.marginsieve")

    def fail(_):
        raise error

    monkeypatch.setattr(type(path), "read_bytes", fail)
    with pytest.raises(SystemFault if isinstance(error, OSError) else MemoryError) as caught:
        load(path)
    assert "damaged" not in str(caught.value)

    def stop():
        load(path)

    assert exit_code_of(stop) == 3


@pytest.mark.parametrize(("code", "exit_code"), [("EACCES", 2), ("EPERM", 2), ("ENAMETOOLONG", 2), ("EIO", 3)])
def test_a_place_that_the_user_may_not_use_is_wrong_use(capsys, tmp_path, monkeypatch, code, exit_code):
    monkeypatch.chdir(tmp_path)

    def stop():
        raise OSError(getattr(errno, code), "refused by the system", "results")

    assert exit_code_of(stop) == exit_code
    said = capsys.readouterr().err
    assert ("this place cannot be used" in said) == (exit_code == 2)
    assert "results" in said


# -- workers, clusters, devices --------------------------------------------------------------------------------------


def exceptions_of(module):
    """The exception classes that a module defines."""
    return {
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.__name__
    }


def test_every_exception_of_loky_has_a_meaning():
    of_loky = exceptions_of(process_executor) - {process_executor._RemoteTraceback}  # a cause, never raised
    assert len(of_loky) >= 4
    for error in (*of_loky, pickle.PicklingError):
        with pytest.raises((SystemFault, InputError)) as caught, explain_worker_errors():
            raise error("x")
        assert isinstance(caught.value, InputError) == (error is pickle.PicklingError)
    with pytest.raises(ZeroDivisionError), explain_worker_errors():
        _ = 1 / 0


def test_a_worker_that_dies_outside_the_engine_is_the_systems_fault():
    with pytest.raises(WorkerLost, match=r"a worker process died .* nothing that was finished is lost"):
        parallel(2)(joblib.delayed(os._exit)(1) for _ in range(2))


def test_signals_wait_whenever_workers_are_started(monkeypatch):
    """Also those that take the place of others, which loky starts when it is given work."""
    get_reusable_executor().shutdown(wait=True)
    seen = []
    original = process_executor.ProcessPoolExecutor._adjust_process_count

    def look(self):
        seen.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return original(self)

    monkeypatch.setattr(process_executor.ProcessPoolExecutor, "_adjust_process_count", look)
    assert parallel(2)(joblib.delayed(abs)(-k) for k in range(2)) == [0, 1]
    executor = get_reusable_executor(max_workers=2, reuse=True)
    executor._max_workers += 1  # as if one had left
    before = len(seen)
    executor._ensure_executor_running()
    assert before >= 1
    assert len(seen) == before + 1
    assert all({signal.SIGINT, signal.SIGHUP} <= mask for mask in seen)
    executor.shutdown(wait=True)


def test_a_variable_that_joblib_cannot_read_is_refused(monkeypatch):
    get_reusable_executor().shutdown(wait=True)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "x")
    with pytest.raises(InputError, match=r"worker processes could not be started .*; with n_jobs=1 none is needed"):
        parallel(2)(joblib.delayed(abs)(1) for _ in range(2))


def test_every_exception_of_dask_has_a_meaning(monkeypatch):
    names = ("client", "comm.core", "core", "exceptions", "scheduler", "worker_state_machine", "_async_taskgroup")
    classes = set().union(*(exceptions_of(importlib.import_module(f"distributed.{name}")) for name in names))
    assert len(classes) > 14
    for error in (*classes, concurrent.futures.CancelledError, TimeoutError, ConnectionResetError):
        with pytest.raises(SystemFault, match="the cluster was lost"), workers.explain_cluster_errors():
            raise type(error.__name__, (error,), {"__init__": lambda _: None, "__str__": lambda _: "x"})
    with pytest.raises(InputError, match="cannot be sent"), workers.explain_cluster_errors():
        raise pickle.PicklingError("a lambda")
    with pytest.raises(ZeroDivisionError), workers.explain_cluster_errors():
        _ = 1 / 0


def test_a_scheduler_that_is_gone_makes_no_unit_fail():
    from distributed import CancelledError

    def gone():
        raise CancelledError("key")

    client = SimpleNamespace(status="closed", nthreads=dict)
    batches = workers._Batches(client, {}, {}, [])
    batches.under_way["k"] = (None, [])
    with pytest.raises(SystemFault, match="its scheduler is gone"):
        batches.collect(SimpleNamespace(key="k", result=gone))


def test_what_a_device_answers_is_the_systems_fault():
    theirs = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})
    device = Backend(None, "torch", "cuda")
    for error in (theirs("CUDA out of memory"), RuntimeError("CUDA error: an illegal memory access")):
        with pytest.raises(SystemFault, match=r"the device failed .torch: CUDA"), explain_device_errors(device):
            raise error
        for none in (None, NUMPY):
            with pytest.raises(type(error)), explain_device_errors(none):
                raise error
    for error in (InputError("ours"), ZeroDivisionError(), NotImplementedError()):
        with pytest.raises(type(error)), explain_device_errors(device):
            raise error


def test_each_library_is_known_to_one_module():
    known = {"sqlite3": set(), "distributed": set(), "torch": set(), "cupy": set(), "joblib.externals": set()}
    for path in Path(execution.__file__).parents[1].rglob("*.py"):
        for library, places in known.items():
            if re.search(rf"^\s*(import|from) {re.escape(library)}\b", path.read_text(encoding="utf-8"), re.M):
                places.add(path.name)
    assert {library: sorted(places) for library, places in known.items()} == {
        "sqlite3": ["database.py"],
        "distributed": ["workers.py"],
        "torch": ["arrays.py"],
        "cupy": ["arrays.py"],
        "joblib.externals": ["execution.py"],
    }


# -- the k-th call fails ---------------------------------------------------------------------------------------------


def test_some_calls_fail_and_nothing_is_lost():
    counts, wrong = faults.inject("bench", every=6, start=2)
    assert wrong == []
    assert counts["survived"] == counts["tried"] > 2


@pytest.mark.long
@pytest.mark.parametrize("name", list(faults.COMMANDS))
def test_each_call_fails_and_nothing_is_lost(name):
    counts, wrong = faults.inject(name, every=3, start=1)
    assert wrong == []
    assert counts["survived"] == counts["tried"] >= 1
