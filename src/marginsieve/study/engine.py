"""Running units: they go to workers, their rows into the store as they come back; what is there is not run again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ..data.scratch import scratch_folder
from ..errors import InputError, one_line
from ..solvers.processes import parallel
from .results import SuiteResult
from .store import Store, begin, opened
from .suite import Suite, key_of
from .units import PlainTable, Task, Unit, UnitTable, fit_and_predict, tune_reported

UnitProgress = Callable[[int, int, int], None]  # done, all, failed
Run = Callable[[list[Task]], Iterator[dict[str, Any]]]  # rows as they finish, in any order
CRASHES = 3  # deaths of workers without a finished unit in between, after which the next unit is run on its own


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    progress: UnitProgress | None = None,
) -> SuiteResult:
    """Run the missing units of a suite. The result depends on the suite alone, not on the workers.

    Parameters
    ----------
    suite : Suite
        What to run.
    folder : str or path
        Folder of the results; the same call on the same folder resumes.
    n_jobs : int, default=1
        Number of worker processes.
    cluster : str or None, default=None
        Address of a Dask scheduler, to use instead of local processes.
    resume : bool, default=False
        Refuse to start a new folder.
    fresh : bool, default=False
        Delete stored results first.
    progress : callable or None, default=None
        Called as progress(done, total, failed).

    Returns
    -------
    SuiteResult
        Scores, comparisons and stability.

    Examples
    --------
    >>> import tempfile
    >>> from marginsieve.study import Suite, run_suite
    >>> suite = Suite.read({
    ...     "protocol": {"name": "nested", "folds": 2, "repeats": 1},
    ...     "data": [{"name": "toy", "cohort": {"n_samples": 40, "n_features": 10, "n_relevant": 2}}],
    ...     "method": [{"name": "fisher", "n_features_to_select": 2}],
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_suite(suite, folder)
    ...     len(result.to_pandas())
    2
    """
    folder = Path(folder)
    begin(folder, "suite", resume, fresh)
    with opened(folder, "suite") as store, ExitStack() as stack:
        tables = suite.tables()
        for table in tables:
            store.add_table(table)
        units = suite.units(tables)
        run = stack.enter_context(workers(tables, n_jobs, cluster))
        params = _tuned(suite, units, store, run, progress)
        about = {"name": suite.name, "protocol": suite.protocol.name, "scheme": suite.protocol.scheme}
        store.set_meta("suite", {**about, "control": suite.control})
        store.set_meta("current", [unit.key for unit in units])
        done = store.done()
        pending = []
        for unit in units:
            tuned = params.get((unit.table, unit.method.tuned_with), {})
            if unit.key not in done and tuned is not None:
                work = partial(fit_and_predict, recipe=unit.method.function, params=tuned)
                pending.append(Task(unit, work, suite.seconds, tuned))
        _run_all(pending, store, run, progress, len(units))
    return SuiteResult(folder)


def _tuned(
    suite: Suite, units: list[Unit], store: Store, run: Run, progress: UnitProgress | None
) -> dict[tuple[str, str], dict[str, Any] | None]:
    """Parameters tuned on the reported splits, by table and method; None where the tuning failed."""
    if suite.protocol.tuned != "reported":
        return {}
    first: dict[tuple[str, str], Unit] = {}
    for unit in units:
        where = (unit.table, unit.method.tuned_with)
        if where not in first and unit.grid:
            split = replace(unit.split, name="tuning")
            first[where] = replace(unit, key=key_of(unit.key, "tuning"), split=split)
    done = store.done()
    tasks = [
        Task(unit, partial(tune_reported, recipe=unit.method.function), suite.seconds)
        for unit in first.values()
        if unit.key not in done
    ]
    _run_all(tasks, store, run, progress, len(first))
    rows = {row["key"]: row for row in store.units() if row["split"] == "tuning"}
    return {
        where: rows[unit.key]["metrics"]["chosen"] if rows[unit.key]["status"] == "done" else None
        for where, unit in first.items()
    }


def _run_all(tasks: list[Task], store: Store, run: Run, progress: UnitProgress | None, total: int) -> None:
    done, failed, show = total - len(tasks), 0, progress or (lambda *_: None)
    show(done, total, failed)
    for row in run(tasks):
        store.add([row])
        done += 1
        failed += row["status"] == "failed"
        show(done, total, failed)


# -- workers -----------------------------------------------------------------------------------------------------


@contextmanager
def workers(tables: Sequence[UnitTable | PlainTable], n_jobs: int | None, cluster: str | None = None) -> Iterator[Run]:
    """A function that takes tasks and yields rows as they finish, in any order."""
    if cluster is not None:
        with _dask(tables, cluster) as run:
            yield run
    elif n_jobs in (1, None):
        by_name = {table.name: table for table in tables}
        yield lambda tasks: (task.run(by_name[task.unit.table]) for task in tasks)
    else:
        with scratch_folder() as folder:
            shared = {
                table.name: share_table(table, folder / f"{k}") if isinstance(table, UnitTable) else table
                for k, table in enumerate(tables)
            }
            yield lambda tasks: _local(tasks, shared, n_jobs)


def _local(tasks: list[Task], shared: dict[str, Path | PlainTable], n_jobs: int | None) -> Iterator[dict[str, Any]]:
    """joblib's processes. If one dies, the pool is made anew and what was under way is run again."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left, crashes = {task.unit.key: task for task in tasks}, 0
    while left:
        alone = crashes >= CRASHES
        batch = list(left.values())[:1] if alone else list(left.values())
        try:
            calls = (joblib.delayed(_run_shared)(task, shared[task.unit.table]) for task in batch)
            for row in parallel(2 if alone else n_jobs, return_as="generator_unordered")(calls):
                del left[row["key"]]
                crashes = 0
                yield row
        except TerminatedWorkerError:
            crashes += 1
            if alone:
                yield _died(left.pop(batch[0].unit.key))


def _died(task: Task) -> dict[str, Any]:
    return {**task.row(), "error": "the worker died each time", "versions": {}}


def share_table(table: UnitTable, path: Path) -> Path:
    """Write a table so that workers map it into memory instead of copying it."""
    cells = replace(table.encoded.table, Z=np.asarray(table.encoded.table.Z, dtype=np.float64, order="F"))
    joblib.dump(replace(table, encoded=replace(table.encoded, table=cells)), path)
    return path


@lru_cache(maxsize=8)
def shared_table(path: Path) -> UnitTable:
    """What `share_table` wrote; its cells stay in the file."""
    table: UnitTable = joblib.load(path, mmap_mode="r")
    return table


def _run_shared(task: Task, where: Path | PlainTable) -> dict[str, Any]:
    return task.run(shared_table(where) if isinstance(where, Path) else where)


@contextmanager
def _dask(tables: Sequence[UnitTable | PlainTable], address: str) -> Iterator[Run]:
    """Dask workers: tables are scattered once; what goes with a worker that dies is made again elsewhere."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("a cluster needs Dask: pip install 'marginsieve[dask]'") from error
    try:
        client = Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise InputError(f"there is no Dask scheduler at {address!r}: {one_line(error)}") from error
    with client:
        yield partial(_on_cluster, client, {table.name: table for table in tables}, {})


def _on_cluster(
    client: Any, tables: dict[str, UnitTable | PlainTable], scattered: dict[str, Any], tasks: list[Task]
) -> Iterator[dict[str, Any]]:
    """Rows as they finish; a few units per worker are under way at a time. `scattered`: tables on the cluster."""
    from distributed import CancelledError, as_completed
    from distributed.scheduler import KilledWorker

    waiting = deque((task, 0) for task in tasks)
    under_way: dict[Any, tuple[Any, Task, int]] = {}
    running = as_completed()

    def submit() -> None:
        if waiting:
            task, tries = waiting.popleft()
            name, key = task.unit.table, f"{task.unit.key}-{tries}"
            if name not in scattered or scattered[name].status != "finished":  # its copies went with their workers
                scattered[name] = client.scatter(tables[name], broadcast=True, hash=False)
            future = client.submit(Task.run, task, scattered[name], key=key, retries=2)
            under_way[key] = future, task, tries
            running.add(future)

    for _ in range(4 * max(1, sum(client.nthreads().values()))):
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
