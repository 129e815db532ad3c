"""What a study runs and by how many processes: decided once, from what its first folds take on its own table."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..batches.arrays import has_cuda
from ..contracts import Progress
from ..engine.keys import key_of
from ..engine.store import opened
from ..engine.units import Method, PreparedMethod, UnitTable
from ..engine.workers import workers
from ..errors import SolverError
from ..fitting.false_share import FEWEST_COLUMNS, places
from ..outcomes import left_out
from ..solvers.threads import one_thread
from .chance import above_chance, rows_to_shuffle
from .choosing import PERMUTATIONS, Choice
from .minutes import (
    ALL_ROWS,
    WORTH_WORKERS,
    Measured,
    as_recorded,
    corrected,
    recorded,
    wall_seconds,
    within,
    workers_for,
)
from .selection import FoldRows, StudyOptions, units_of

MOST_OF = 0.3  # of the seconds that the folds of one further method may take

Methods = Sequence[tuple[Method, PreparedMethod]]


def decided(
    methods: Methods,
    table: UnitTable,
    choice: Choice,
    options: StudyOptions,
    settings: dict[str, Any],
    kept: FoldRows,
    since: float,
    progress: Progress | None,
) -> tuple[Choice, int]:
    """What is run and by how many processes, from what the first folds took; within the minutes, where there are any.

    Where a folder has the decision of an earlier run of the same study, that holds.
    """
    minutes = None if settings.get("plan") is not None else settings["minutes"]
    seconds = None if minutes is None else 60.0 * minutes
    labels = sorted(method.label for method in choice.methods)
    mark = key_of(table.fingerprint, labels, minutes, choice.cv, options.random_state)
    if minutes is not None and (plan := _recorded_in(kept.folder, mark)) is not None:
        choice, seconds = as_recorded(choice, plan), None
        methods = chosen(methods, choice)
    if seconds is None and options.device != "cpu" and has_cuda():  # one fold alone says nothing of folds in step
        return choice, workers_for(choice, None if options.auto_jobs else options.n_jobs or 1)
    known = _measured(methods, table, choice, options, kept, seconds, progress)
    choice = corrected(choice, known)
    given = None if options.auto_jobs else options.n_jobs or 1
    if seconds is None:
        return choice, workers_for(choice, given)
    fixed = {
        "methods": settings["methods"] != "auto",
        "n_repeats": settings["n_repeats"] is not None,
        "permutations": options.n_permutations != PERMUTATIONS,
        "alternatives": options.alternatives is not None,
    }
    left = seconds - (time.perf_counter() - since)
    plans = []
    for count in dict.fromkeys([1, workers_for(choice, -1)] if given is None else [workers_for(choice, given)]):
        some, possible = within(choice, known, left, count, fixed)
        work = sum(some.cost[one.label] for one in some.methods) * some.n_repeats
        plans.append((possible, work, -wall_seconds(some, count), some, count))
    *_, choice, count = max(plans, key=lambda one: one[:3])
    if kept.folder is not None:
        with opened(kept.folder, "study") as store:
            store.set_meta("plan", {"mark": mark, "plan": recorded(choice)})
    return choice, count


def chosen(methods: Methods, choice: Choice) -> list[tuple[Method, PreparedMethod]]:
    """The methods that a choice runs."""
    labels = {method.label for method in choice.methods}
    return [pair for pair in methods if pair[0].label in labels]


def _recorded_in(folder: Path | None, mark: str) -> dict[str, Any] | None:
    """The decision that an earlier run of the same study left in a folder."""
    if folder is None:
        return None
    with opened(folder, "study") as store:
        entry = store.meta("plan")
    return entry["plan"] if entry is not None and entry["mark"] == mark else None


def _measured(
    methods: Methods,
    table: UnitTable,
    choice: Choice,
    options: StudyOptions,
    kept: FoldRows,
    seconds: float | None,
    progress: Progress | None,
) -> Measured:
    """Run the first fold of the main method, then of all features and of the others, and say what they took.

    Others are left out where the table of costs, corrected by what the main method took, expects all of their folds to
    take longer than a part of the `seconds` that there are.
    """
    show = progress or (lambda *_: None)
    main, rest = methods[0], [*methods[:0:-1][:1], *methods[1:-1]]  # all features, the last one, first
    show(main[0].title, 0.0, 1.0)
    fold = _first_folds([main], table, choice, options, kept, 1)
    ratio = fold[main[0].label] / choice.cost[main[0].label]
    expected = {method.label: ratio * choice.cost[method.label] for method, _ in rest}
    if seconds is not None:
        most = MOST_OF * seconds * (os.cpu_count() or 1) / (choice.cv + ALL_ROWS)
        rest = [*rest[:1], *(pair for pair in rest[1:] if expected[pair[0].label] <= most)]
    worth = sum(expected[method.label] for method, _ in rest) > WORTH_WORKERS
    show("first folds of the other methods", 0.0, 1.0)
    fold |= _first_folds(
        rest, table, choice, options, kept, (-1 if options.auto_jobs else options.n_jobs) if worth else 1
    )
    with one_thread():
        started = time.perf_counter()
        above_chance(methods, table, choice, replace(options, n_permutations=0, n_jobs=1))
        labelling = time.perf_counter() - started
        search = 0.0
        if table.encoded.table.shape[1] >= FEWEST_COLUMNS or choice.alternatives:
            rng = np.random.default_rng(0)
            part = rows_to_shuffle(table, choice, rng)
            half = part.take(np.flatnonzero(left_out(part.y, part.groups, 0.5, rng, at_least=1, leave=1)))
            started = time.perf_counter()
            places(main[1].plan, half, rng)
            search = time.perf_counter() - started
    return Measured(fold, labelling, search)


def _first_folds(
    methods: Methods, table: UnitTable, choice: Choice, options: StudyOptions, kept: FoldRows, n_jobs: int | None
) -> dict[str, float]:
    """Seconds of the first fold of each method, by label; one that fails says so when all of its folds are run."""
    tasks = {pair[0].label: units_of(*pair, table, choice, options)[0] for pair in methods}
    with workers([table], n_jobs) as run:
        if n_jobs not in (1, None):
            try:
                rows = {row["key"]: row for row in kept.rows([*tasks.values()], run)}
                return {label: float(rows[task.unit.key]["seconds"]) for label, task in tasks.items()}
            except SolverError:
                return _first_folds(methods, table, choice, options, kept, 1)
        seconds = {}
        for label, task in tasks.items():
            started = time.perf_counter()
            try:
                (row,) = kept.rows([task], run)
                seconds[label] = float(row["seconds"])
            except SolverError:
                seconds[label] = time.perf_counter() - started
    return seconds
