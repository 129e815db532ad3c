"""Running a suite: units go to workers, their rows into the store as they come back; what is there is not run again."""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .results import Study
from .store import Store, begin, locked
from .suite import Data, Suite, Unit, key_of
from .work import run_tuning, run_unit

Progress = Callable[[int, int, int], None]  # done, all, failed
CRASHES = 3  # deaths of workers without a finished unit in between, after which the next unit is run on its own


@dataclass(frozen=True)
class Task:
    """A unit on its way to a worker, with the parameters that were tuned for it."""

    unit: Unit
    seconds: float | None
    params: dict[str, Any] | None = None
    tuning: bool = False

    def run(self, data: Data) -> dict[str, Any]:
        if self.tuning:
            return run_tuning(self.unit, data, self.seconds)
        return run_unit(self.unit, data, self.seconds, self.params)


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Run what is missing of a suite and return the study. The result depends on the suite alone, not on the workers.

    The same call on the same folder resumes; `resume` refuses to start anew; `fresh` deletes the store first. `cluster`
    is the address of a Dask scheduler.
    """
    folder = Path(folder)
    begin(folder, resume, fresh)
    with locked(folder), ExitStack() as stack:
        store = Store(folder)
        stack.callback(store.close)
        tables = suite.tables()
        for data in tables:
            _describe(store, data)
        units = suite.units(tables)
        run = stack.enter_context(_workers(tables, n_jobs, cluster))
        params = _tuned(suite, units, store, run, progress)
        store.set_meta("suite", {"name": suite.name, "protocol": suite.protocol.name, "scheme": suite.protocol.scheme})
        store.set_meta("current", [unit.key for unit in units])
        done = store.done()
        pending = [
            Task(unit, suite.seconds, params.get((unit.data, unit.method.tuned_with)))
            for unit in units
            if unit.key not in done and params.get((unit.data, unit.method.tuned_with), {}) is not None
        ]
        _run_all(pending, store, run, progress, len(units))
    return Study(folder)


def _tuned(
    suite: Suite, units: list[Unit], store: Store, run: Any, progress: Progress | None
) -> dict[tuple[str, str], dict[str, Any] | None]:
    """Parameters tuned on the reported splits, by data set and method; None where the tuning failed."""
    if suite.protocol.tuned != "reported":
        return {}
    first: dict[tuple[str, str], Unit] = {}
    for unit in units:
        where = (unit.data, unit.method.tuned_with)
        if where not in first and unit.grid:
            split = replace(unit.split, name="tuning")
            first[where] = replace(unit, key=key_of(unit.key, "tuning"), split=split)
    done = store.done()
    tasks = [Task(unit, suite.seconds, tuning=True) for unit in first.values() if unit.key not in done]
    _run_all(tasks, store, run, progress, len(first))
    rows = {row["key"]: row for row in store.units() if row["split"] == "tuning"}
    return {
        where: rows[unit.key]["metrics"]["chosen"] if rows[unit.key]["status"] == "done" else None
        for where, unit in first.items()
    }


def _run_all(tasks: list[Task], store: Store, run: Any, progress: Progress | None, total: int) -> None:
    done, failed = total - len(tasks), 0
    if progress is not None:
        progress(done, total, failed)
    for row in run(tasks):
        store.add([row])
        done += 1
        failed += row["status"] == "failed"
        if progress is not None:
            progress(done, total, failed)


def _describe(store: Store, data: Data) -> None:
    m, n = data.X.shape
    store.add_data(data.name, m, n, list(data.classes), data.positive, truth=data.y.tolist(), names=data.names)


# -- workers -----------------------------------------------------------------------------------------------------


@contextmanager
def _workers(tables: Sequence[Data], n_jobs: int, cluster: str | None) -> Iterator[Any]:
    """A function that takes tasks and yields rows as they finish, in any order."""
    if cluster is not None:
        with _dask(tables, cluster) as run:
            yield run
    elif n_jobs == 1:
        by_name = {data.name: data for data in tables}
        yield lambda tasks: (task.run(by_name[task.unit.data]) for task in tasks)
    else:
        with tempfile.TemporaryDirectory(prefix="marginsieve-") as folder:
            paths = {data.name: _share(data, Path(folder) / f"{k}") for k, data in enumerate(tables)}
            yield lambda tasks: _local(tasks, paths, n_jobs)


def _local(tasks: list[Task], paths: dict[str, Path], n_jobs: int) -> Iterator[dict[str, Any]]:
    """joblib's processes. If one dies, the pool is made anew and what was under way is run again."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left, crashes = {task.unit.key: task for task in tasks}, 0
    while left:
        alone = crashes >= CRASHES
        batch = list(left.values())[:1] if alone else list(left.values())
        try:
            calls = (delayed(_run_shared)(task, paths[task.unit.data]) for task in batch)
            for row in Parallel(n_jobs=2 if alone else n_jobs, return_as="generator_unordered")(calls):
                del left[row["key"]]
                crashes = 0
                yield row
        except TerminatedWorkerError:
            crashes += 1
            if alone:
                task = left.pop(batch[0].unit.key)
                yield _died(task)


def _died(task: Task) -> dict[str, Any]:
    unit = task.unit
    row: dict[str, Any] = {"params": {}, "metrics": {}, "versions": {}}
    row.update(key=unit.key, data=unit.data, method=unit.method.label, split=unit.split.name, repeat=unit.split.repeat)
    row.update(status="failed", error="the worker died each time", result=None, seconds=None, peak_mb=None)
    return {**row, "finished": None}


def _share(data: Data, path: Path) -> Path:
    """Write a table so that workers map it into memory instead of copying it."""
    path.mkdir()
    plain = all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in data.X.dtypes.unique())
    if plain:
        np.save(path / "X.npy", np.asarray(data.X, dtype=np.float64, order="F"))
    else:
        data.X.reset_index(drop=True).to_feather(path / "X.feather", compression="uncompressed")
    np.save(path / "y.npy", data.y)
    if data.groups is not None:
        np.save(path / "groups.npy", data.groups)
    about = {"name": data.name, "classes": data.classes, "positive": data.positive, "names": data.names}
    (path / "about.json").write_text(json.dumps(about), encoding="utf-8")
    return path


@lru_cache(maxsize=8)
def _shared(path: Path) -> Data:
    import pandas as pd
    import pyarrow.feather

    about = json.loads((path / "about.json").read_text(encoding="utf-8"))
    if (path / "X.npy").exists():
        X = pd.DataFrame(np.load(path / "X.npy", mmap_mode="r"), columns=about["names"], copy=False)
    else:
        X = pyarrow.feather.read_feather(path / "X.feather", memory_map=True)
    groups = np.load(path / "groups.npy") if (path / "groups.npy").exists() else None
    return Data(about["name"], X, np.load(path / "y.npy"), tuple(about["classes"]), about["positive"], groups)


def _run_shared(task: Task, path: Path) -> dict[str, Any]:
    return task.run(_shared(path))


@contextmanager
def _dask(tables: Sequence[Data], address: str) -> Iterator[Any]:
    """Dask workers: tables are scattered once; what goes with a worker that dies is made again elsewhere."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("a cluster needs Dask: pip install 'marginsieve[dask]'") from error
    try:
        client = Client(address, timeout=20)
    except OSError as error:
        raise InputError(f"there is no Dask scheduler at {address!r}: {error}") from error
    with client:
        cluster = _Cluster(client, {data.name: data for data in tables})
        yield cluster.run


class _Cluster:
    """A Dask client with the tables that it has scattered."""

    def __init__(self, client: Any, tables: dict[str, Data]) -> None:
        self.client, self.tables = client, tables
        self.scattered: dict[str, Any] = {}

    def _table(self, name: str) -> Any:
        """The table on the cluster; scattered again if its copies went with their workers."""
        if name not in self.scattered or self.scattered[name].status != "finished":
            self.scattered[name] = self.client.scatter(self.tables[name], broadcast=True, hash=False)
        return self.scattered[name]

    def run(self, tasks: list[Task]) -> Iterator[dict[str, Any]]:
        """Rows as they finish; a few units per worker are under way at a time."""
        from distributed import CancelledError, as_completed
        from distributed.scheduler import KilledWorker

        waiting = deque((task, 0) for task in tasks)
        under_way: dict[Any, tuple[Any, Task, int]] = {}
        running = as_completed()

        def submit() -> None:
            if waiting:
                task, tries = waiting.popleft()
                key = f"{task.unit.key}-{tries}"
                future = self.client.submit(Task.run, task, self._table(task.unit.data), key=key, retries=2)
                under_way[key] = future, task, tries
                running.add(future)

        for _ in range(4 * max(1, sum(self.client.nthreads().values()))):
            submit()
        for future in running:
            _, task, tries = under_way.pop(future.key)
            try:
                yield future.result()
            except KilledWorker:
                yield _died(task)
            except CancelledError:  # the result, or the table, was on a worker that died
                if tries < CRASHES:
                    waiting.appendleft((task, tries + 1))
                else:
                    yield _died(task)
            submit()
