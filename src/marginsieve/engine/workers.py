"""Workers that run units: this process, processes of this machine, a device, or a Dask cluster."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ..data.file_access import scratch_folder
from ..errors import FaultKind, InputError, SystemFault, one_line
from ..fitting.batched_searches import batch_fits
from ..solvers.execution import WorkerLost, parallel
from .units import PlainTable, Task, UnitTable

Run = Callable[[list[Task]], Iterator[dict[str, Any]]]  # rows as they finish, in any order
AHEAD = 4  # batches under way for each thread of a cluster
LOOK_EVERY = 1.0  # seconds between two looks at how many there are
TOGETHER, MOST_TOGETHER = 0.2, 500  # seconds of work that travel together, and units
SENDING = 120.0  # seconds after which a table is sent again
CRASHES = 3  # deaths of workers without a finished unit in between, after which the next unit is run on its own


@contextmanager
def workers(
    tables: Sequence[UnitTable | PlainTable], n_jobs: int | None, cluster: str | None = None, in_step: bool = False
) -> Iterator[Run]:
    """A function that takes tasks and yields rows as they finish, in any order; with `in_step` for one device."""
    if cluster is not None:
        with _dask_workers(tables, cluster) as run:
            yield run
    elif in_step:
        tracked = {table.name: table.track() if isinstance(table, UnitTable) else table for table in tables}
        yield lambda tasks: batch_fits([partial(task.run, tracked[task.unit.table]) for task in tasks])
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


def run_in_thread(run: Run, batches: Sequence[list[Task]]) -> list[Run]:
    """For each batch of tasks what gives its rows; they are run in a thread, one batch after the other, from now on."""
    queues: list[queue.SimpleQueue[dict[str, Any] | BaseException | None]] = [queue.SimpleQueue() for _ in batches]

    def work() -> None:
        for tasks, rows in zip(batches, queues, strict=True):
            try:
                for row in run(tasks):
                    rows.put(row)
                rows.put(None)
            except BaseException as error:  # it is raised where the rows are read
                rows.put(error)

    def read(_: list[Task], rows: queue.SimpleQueue[dict[str, Any] | BaseException | None]) -> Iterator[dict[str, Any]]:
        while (row := rows.get()) is not None:
            if isinstance(row, BaseException):
                raise row
            yield row

    threading.Thread(target=work, daemon=True).start()
    return [partial(read, rows=rows) for rows in queues]


def _local(tasks: list[Task], shared: dict[str, Path | PlainTable], n_jobs: int | None) -> Iterator[dict[str, Any]]:
    """joblib's processes. If one dies, the pool is made anew and what was under way is run again."""
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
        except WorkerLost:
            crashes += 1
            if alone:
                yield _row_of_dead_worker(left.pop(batch[0].unit.key))


def _row_of_dead_worker(task: Task) -> dict[str, Any]:
    return {**task.row(), "error": "the worker died each time", "versions": {}}


def share_table(table: UnitTable, path: Path) -> Path:
    """Write a table so that workers map it into memory instead of copying it."""
    cells = replace(table.rows.table, Z=np.asarray(table.rows.table.Z, dtype=np.float64, order="F"))
    joblib.dump(replace(table, rows=replace(table.rows, table=cells)), path)
    return path


@lru_cache(maxsize=8)
def shared_table(path: Path) -> UnitTable:
    """What `share_table` wrote; its cells stay in the file."""
    table: UnitTable = joblib.load(path, mmap_mode="r")
    return table


def _run_shared(task: Task, where: Path | PlainTable) -> dict[str, Any]:
    return task.run(shared_table(where) if isinstance(where, Path) else where)


#: by the names of exception classes, of `distributed` and of what it raises itself; others are of the work
OF_CLUSTERS = {
    FaultKind.SYSTEM: (
        *("CommClosedError", "FatalCommClosedError", "RPCClosed", "ClosedClientError", "WorkerStartTimeoutError"),
        *("AsyncTaskGroupClosedError", "NoWorkerError", "NoValidWorkerError", "AllExit", "InvalidTaskState"),
        *("InvalidTransition", "TransitionCounterMaxExceeded", "RecommendationsConflict", "Reschedule"),
        *(
            "KilledWorker",
            "FutureCancelledError",
            "FuturesCancelledError",
            "CancelledError",
            "TimeoutError",
            "ConnectionError",
        ),
    ),
    FaultKind.INPUT: ("PicklingError",),
}


@contextmanager
def explain_cluster_errors() -> Iterator[None]:
    """What Dask raises, as a sentence; errors of the work pass."""
    try:
        yield
    except (InputError, SystemFault, MemoryError):
        raise
    except Exception as error:
        names = {base.__name__ for base in type(error).__mro__}
        if names & set(OF_CLUSTERS[FaultKind.INPUT]):
            raise InputError(f"this cannot be sent to the workers of a cluster: {one_line(error)}") from error
        if names & set(OF_CLUSTERS[FaultKind.SYSTEM]):
            raise _lost_cluster(one_line(error)[:200]) from error
        raise


def _lost_cluster(text: str) -> SystemFault:
    return SystemFault(f"the cluster was lost ({text}); what was finished is kept, and the same command goes on")


@contextmanager
def connect_cluster(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at this address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("a cluster needs Dask: pip install 'marginsieve[dask]'") from error
    try:
        client = Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise InputError(f"there is no Dask scheduler at {address!r}: {one_line(error)}") from error
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # a scheduler that is gone is said in a sentence, without a traceback
    try:
        with client:
            yield client
    finally:
        log.setLevel(level)


@contextmanager
def _dask_workers(tables: Sequence[UnitTable | PlainTable], address: str) -> Iterator[Run]:
    """Dask workers: tables are scattered once; what goes with a worker that dies is made again elsewhere."""
    with connect_cluster(address) as client:
        yield partial(_on_cluster, client, {table.name: table for table in tables}, {})


class _Window:
    """How much is under way on a cluster: a few batches for each of the workers that there are now."""

    def __init__(self, client: Any) -> None:
        self.client, self.looked, self.threads, self.mean = client, -np.inf, 1, 0.0

    def room(self) -> int:
        """How many batches may be under way."""
        if time.monotonic() - self.looked > LOOK_EVERY:
            self.threads = max(1, sum(self.client.nthreads().values()))
            self.looked = time.monotonic()
        return AHEAD * self.threads

    def batch(self, waiting: int) -> int:
        """How many units travel together: about a fifth of a second's work, and never so many that workers idle."""
        enough = max(1, waiting // (2 * AHEAD * self.threads))
        return 1 if self.mean <= 0 else max(1, min(MOST_TOGETHER, enough, round(TOGETHER / self.mean)))

    def learn(self, rows: Sequence[dict[str, Any]]) -> None:
        """Follow what units take."""
        seconds = float(np.mean([row["seconds"] or 0.0 for row in rows])) + 1e-4
        self.mean = seconds if self.mean == 0.0 else 0.8 * self.mean + 0.2 * seconds


def run_together(tasks: Sequence[Task], table: UnitTable | PlainTable) -> list[dict[str, Any]]:
    """The rows of several units of one table."""
    return [task.run(table) for task in tasks]


def _send_table(client: Any, table: UnitTable | PlainTable) -> Any:
    """A table on all workers; where one dies while it is sent, once more to those that are left.

    Dask waits for ever for a worker that dies at a certain moment: hence the time limit.
    """
    send = partial(client.scatter, table, broadcast=True, hash=False, asynchronous=True)
    for again in range(CRASHES):
        try:
            return client.sync(send, callback_timeout=SENDING)
        except OSError:  # the connection to a worker was closed, or the time is up
            time.sleep(LOOK_EVERY * (again + 1))
    return client.sync(send, callback_timeout=SENDING)


class _Batches:
    """Units under way on a cluster, in batches; those whose worker died wait again."""

    def __init__(self, client: Any, tables: dict[str, Any], scattered: dict[str, Any], tasks: list[Task]) -> None:
        self.client, self.tables, self.scattered = client, tables, scattered
        self.waiting = deque((task, 0) for task in tasks)
        self.left = Counter(task.unit.table for task in tasks)
        self.under_way: dict[Any, tuple[Any, list[tuple[Task, int]]]] = {}
        self.window, self.number = _Window(client), itertools.count()

    def submit(self) -> Iterator[Any]:
        """Futures of as many batches as there is room for."""
        while self.waiting and len(self.under_way) < self.window.room():
            batch = [self.waiting.popleft()]
            (first, tries), size = batch[0], self.window.batch(len(self.waiting))
            name = first.unit.table
            while self.waiting and not tries and len(batch) < size and self.waiting[0][0].unit.table == name:
                batch.append(self.waiting.popleft())
            known = self.scattered.get(name)
            if known is None or known.status != "finished":  # its copies went with their workers
                self.scattered[name] = _send_table(self.client, self.tables[name])
            key, some = f"{first.unit.key}-{tries}-{next(self.number)}", [task for task, _ in batch]
            future = self.client.submit(run_together, some, self.scattered[name], key=key, retries=2, pure=False)
            self.under_way[key] = future, batch
            yield future

    def collect(self, future: Any) -> list[dict[str, Any]]:
        """The rows of a batch; those of units that are tried again come later."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        _, batch = self.under_way.pop(future.key)
        rows: list[dict[str, Any]] = []
        try:
            rows = future.result()
            self.window.learn(rows)
        except (KilledWorker, CancelledError) as error:  # the result, or the table, was on a worker that died
            if self.client.status not in ("running", "newly-created"):  # or the scheduler is gone
                raise _lost_cluster("its scheduler is gone") from error
            again = CRASHES if isinstance(error, CancelledError) else int(len(batch) > 1)
            self.waiting.extendleft((task, tries + 1) for task, tries in reversed(batch) if tries < again)
            rows = [_row_of_dead_worker(task) for task, tries in batch if tries >= again]
        for row in rows:
            self.left[row["data"]] -= 1
            if not self.left[row["data"]]:
                self.scattered.pop(row["data"], None)
        return rows


def _on_cluster(
    client: Any, tables: dict[str, UnitTable | PlainTable], scattered: dict[str, Any], tasks: list[Task]
) -> Iterator[dict[str, Any]]:
    """Rows as they finish. `scattered`: tables on the cluster, which are let go when their last unit is done."""
    from distributed import as_completed

    with explain_cluster_errors():
        batches = _Batches(client, tables, scattered, tasks)
        running = as_completed(list(batches.submit()))
        for future in running:
            yield from batches.collect(future)
            for more in batches.submit():
                running.add(more)
