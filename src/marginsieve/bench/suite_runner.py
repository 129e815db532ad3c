"""Running a suite: units go to workers, their rows into the store as they come back; what is there is not run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..data.file_access import process_folder
from ..engine.keys import key_of
from ..engine.store import Store, begin, open_store
from ..engine.units import TUNING, Task, Unit, fit_and_predict, tune_reported
from ..engine.workers import Run, workers
from .results import SuiteResult
from .suite import Suite

UnitProgress = Callable[[int, int, int], None]  # done, all, failed
SHORT, WRITE_EVERY = 0.005, 0.2  # seconds: shorter units are written together, so often
MANY_UNITS = 40  # from which on processes are started where it is left open


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    n_jobs: int | None = 1,
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
    n_jobs : int or None, default=1
        Number of worker processes; None is one for each core where there are many units.
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
    >>> from marginsieve.bench import Suite, run_suite
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
    with open_store(folder, "suite") as store, ExitStack() as stack:
        tables = suite.tables()
        for table in tables:
            store.add_table(table)
        units = suite.units(tables)
        n_jobs = (-1 if len(units) >= MANY_UNITS else 1) if n_jobs is None else n_jobs
        run = stack.enter_context(workers(tables, n_jobs, cluster))
        params = _tune_reported(suite, units, store, run, progress)
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


@cache
def example_result() -> SuiteResult:
    """Run two methods on three small generated tables, once in a process: results to try things on.

    Returns
    -------
    SuiteResult
        The results, in a folder that goes with the process.

    Examples
    --------
    >>> from marginsieve.bench import example_result
    >>> example_result().to_pandas()["data"].unique().tolist()
    ['toy0', 'toy1', 'toy2']
    """
    cohort = {"n_samples": 40, "n_features": 10, "n_relevant": 2}
    spec = {
        "protocol": {"name": "nested", "folds": 2, "repeats": 1},
        "data": [{"name": f"toy{k}", "cohort": {**cohort, "random_state": k}} for k in range(3)],
        "method": [{"name": name, "n_features_to_select": 2} for name in ("fisher", "relieff")],
    }
    return run_suite(Suite.read(spec), process_folder() / "example")


def _tune_reported(
    suite: Suite, units: list[Unit], store: Store, run: Run, progress: UnitProgress | None
) -> dict[tuple[str, str], dict[str, Any] | None]:
    """Parameters tuned on the reported splits, by table and method; None where the tuning failed."""
    if suite.protocol.tuned != "reported":
        return {}
    waiting: dict[tuple[str, str], dict[str, Unit]] = {}  # by what is tuned: a unit of each method that asks for it
    for unit in units:
        if not unit.grid:
            continue
        asking = waiting.setdefault((unit.table, unit.method.tuned_with), {})
        if unit.method.label not in asking:
            split = replace(unit.split, name=TUNING)
            asking[unit.method.label] = replace(unit, key=key_of(unit.key, TUNING), split=split)
    params: dict[tuple[str, str], dict[str, Any] | None] = dict.fromkeys(waiting)
    candidates = {where: list(asking.values()) for where, asking in waiting.items()}
    while candidates:  # what one method cannot tune (its criterion refuses the table, say) the next one may
        done, first = store.done(), {where: some[0] for where, some in candidates.items()}
        tasks = [
            Task(unit, partial(tune_reported, recipe=unit.method.function), suite.seconds)
            for unit in first.values()
            if unit.key not in done
        ]
        _run_all(tasks, store, run, progress, len(first))
        rows = store.tuning_rows()
        for where, unit in first.items():
            params[where] = rows[unit.key]["metrics"]["chosen"] if rows[unit.key]["status"] == "done" else None
        candidates = {where: some[1:] for where, some in candidates.items() if params[where] is None and some[1:]}
    return params


def _run_all(tasks: list[Task], store: Store, run: Run, progress: UnitProgress | None, total: int) -> None:
    done, failed, show = total - len(tasks), 0, progress or (lambda *_: None)
    show(done, total, failed)
    rows: list[dict[str, Any]] = []
    written = time.monotonic()
    try:
        for row in run(tasks):
            rows.append(row)
            done += 1
            failed += row["status"] == "failed"
            if (row["seconds"] or 0.0) > SHORT or time.monotonic() - written > WRITE_EVERY:
                store.add(rows)
                rows, written = [], time.monotonic()
            show(done, total, failed)
    finally:
        store.add(rows)
