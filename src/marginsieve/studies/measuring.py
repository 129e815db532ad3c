"""What the first folds of a study take on its table, and what is decided from that.

Where there are minutes and the table of costs expects the least study to take longer, the first measurement is of a
smaller study (`smaller_choices`), and what it took says which size fits: a size is measured before it is run. No
measurement takes longer than a share of what is left.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..batches.arrays import has_cuda
from ..engine.store import open_store
from ..engine.units import Method, OutOfTime, PreparedMethod, UnitTable, key_of, limit_seconds
from ..engine.workers import workers
from ..errors import InputError, SolverError
from ..solvers.execution import Stopwatch, one_thread
from .analysis import ANALYSES, Choice, Measured, MeasuresItself, StudyRun, levels_of
from .planning import (
    ALL_ROWS,
    WORTH_WORKERS,
    correct_costs,
    fit_minutes,
    follow_plan,
    least_study,
    record_plan,
    smaller_choices,
    table_costs,
    wall_seconds,
    workers_for,
)
from .selection import FoldRows, outer_units, prepare_method

MOST_OF = 0.3  # of the seconds that the folds of one further method may take
ROOM = 0.6  # of what is left that the least study may take; the rest is for a machine that gets busier
UP, DOWN = 0.5, 0.85  # of the room, up to which a larger or a smaller study that was not measured is tried
TRIES = 6  # sizes that are measured
LONGEST = 0.12  # of what is left: a measurement that takes longer is cut
CUT = 2.5  # what is expected of a fold that was cut, in lengths of what it had
MUCH = 0.5  # of the seconds: where the least study takes less, there is time to measure what else there is
SHORTEST = 0.2  # seconds of computing from which on they say how busy the machine is

Pair = tuple[Method, PreparedMethod]


@dataclass(frozen=True)
class Planner:
    """What decides a plan: the table and the rows of folds that are known."""

    run: StudyRun
    kept: FoldRows
    n_jobs: int | None  # None leaves the number of workers open
    since: float
    prepared: dict[Any, dict[str, Pair]] = field(default_factory=dict)  # methods by label, by size

    def decide(self) -> tuple[Choice, int]:
        """What is run and by how many processes, from what the first folds took; within the minutes, if there are any.

        Where a folder has the decision of an earlier run of the same study, that holds.
        """
        choice, options = self.run.choice, self.run.options
        seconds = self.limit
        if seconds is not None and (record := recorded_plan(self.kept.folder, self.mark)) is not None:
            choice, seconds = follow_plan(choice, record), None
        if (
            seconds is None and options.device != "cpu" and has_cuda()
        ):  # one fold alone says nothing of folds in batches
            return choice, workers_for(choice, self.n_jobs)
        if seconds is None:
            choice = correct_costs(choice, self.measure(choice))
            return choice, workers_for(choice, self.n_jobs)
        choice, known = self.fit_size(choice)
        known = self.measure(choice, known)
        counts = [1, workers_for(choice, -1)] if self.n_jobs is None else [workers_for(choice, self.n_jobs)]
        plans = []
        for count in dict.fromkeys(counts):
            plan, possible = fit_minutes(choice, known, self.seconds_left, count)
            work = sum(plan.cost[method.label] for method in plan.methods) * plan.n_repeats
            plans.append((possible, work, -wall_seconds(plan, count), plan, count))
        *_, choice, count = max(plans, key=lambda entry: entry[:3])
        self.record(choice)
        return choice, count

    @property
    def limit(self) -> float | None:
        """Seconds that the study may take; None where there is no limit, or a plan decides."""
        options = self.run.options
        return None if options.minutes is None or options.plan is not None else 60.0 * float(options.minutes)

    @property
    def seconds_left(self) -> float:
        """What is left of the minutes."""
        assert self.limit is not None
        return max(self.limit - (time.perf_counter() - self.since), 0.01 * self.limit)

    @property
    def mark(self) -> str:
        """What tells that a plan is of this study."""
        return key_of(self.run.table.fingerprint, self.run.options.key())

    def record(self, choice: Choice) -> None:
        """Keep the decision in the folder, where there is one: who resumes the study follows it."""
        if self.kept.folder is not None:
            with open_store(self.kept.folder, "study") as store:
                store.set_meta("plan", {"mark": self.mark, "plan": record_plan(choice)})

    def prepare(self, choice: Choice) -> list[Pair]:
        """The methods of a choice with its settings; each is prepared once for each size."""
        size = choice.options.max_samples, choice.options.prefilter
        known = self.prepared.setdefault(size, {})
        for method in choice.methods:
            if method.label not in known:
                known[method.label] = prepare_method(method, self.run.table, choice.options)
        return [known[method.label] for method in choice.methods]

    # -- the size -----------------------------------------------------------------------------------------------------

    def sizes(self, choice: Choice) -> list[Choice]:
        """The study and smaller ones that its methods can do."""
        sizes = [choice]
        for smaller in smaller_choices(choice):
            try:
                self.prepare(smaller)
            except InputError:  # a method that takes no filter before it, or needs more rows
                continue
            sizes.append(smaller)
        return sizes

    def fit_size(self, choice: Choice) -> tuple[Choice, Measured]:
        """The study, or the largest smaller one, whose least part fits; and what its first folds took.

        The first guess is by the table of costs, the next by what was measured.
        """
        sizes, lowered = self.sizes(choice), False
        place = _first(sizes, lambda each: self.least_seconds(each, Measured(each.cost, {})) <= self.seconds_left)
        known = Measured({}, {})
        for _ in range(TRIES):
            ends = [sizes[place].methods[0], sizes[place].methods[-1]]
            known = self.first_folds(ends, sizes[place], 1, LONGEST * self.seconds_left)
            measured, room = sizes[place], ROOM * self.seconds_left
            expected = [self.least_seconds(each, scale_folds(known, measured, each)) for each in sizes]
            larger = next((k for k in range(place) if expected[k] <= UP * room), place)
            if expected[place] <= room and (lowered or larger == place):
                break
            if expected[place] > room and place == len(sizes) - 1:
                break
            lowered = lowered or expected[place] > room
            smaller = next((k for k in range(place + 1, len(sizes)) if expected[k] <= DOWN * room), len(sizes) - 1)
            place = smaller if expected[place] > room else larger
            known = scale_folds(known, measured, sizes[place])
        return sizes[place], known

    def least_seconds(self, choice: Choice, known: Measured) -> float:
        """What the least study of a choice takes, all its first folds being done."""
        plan, _ = least_study(choice, known)
        counts = {1, workers_for(plan, -1)} if self.n_jobs is None else {workers_for(plan, self.n_jobs)}
        return min(wall_seconds(plan, count) for count in counts)

    def make_least(self, choice: Choice, seconds: float) -> Choice:
        """The least study, on so few rows and columns that it is expected to fit into so many seconds; the least of all
        where none does."""
        known = Measured({method.label: choice.cost[method.label] for method in choice.methods}, {})
        sizes = self.sizes(choice)[1:]
        smaller = [least_study(each, scale_folds(known, choice, each))[0] for each in sizes]
        counts = 1 if self.n_jobs is None else workers_for(choice, self.n_jobs)
        least = smaller[_first(smaller, lambda each: wall_seconds(each, counts) <= seconds)]
        missing = {name: "the folds took too long" for name in choice.efforts if name not in least.efforts}
        return replace(least, left_out={**least.left_out, **missing})

    # -- measurements -------------------------------------------------------------------------------------------------

    def measure(self, choice: Choice, known: Measured | None = None) -> Measured:
        """Run the first folds and say what they took: of the main method, then of all features and of the others.

        With minutes the first two are `known`, and the others are left out where the table of costs, corrected by what
        the main method took, expects all of their folds to take longer than a part of the seconds that there are.
        """
        show = self.run.options.progress or (lambda *_: None)
        main, *rest = [*choice.methods[:1], *choice.methods[:0:-1][:1], *choice.methods[1:-1]]  # all features second
        longest = None
        if known is None:
            show(main.title, 0.0, 1.0)
            known = self.first_folds([main], choice, 1)
        else:
            rest, longest = rest[1:], LONGEST * self.seconds_left
        ratio = known.fold[main.label] / choice.cost[main.label]
        expected = {method.label: ratio * choice.cost[method.label] for method in rest}
        much = longest is None or self.least_seconds(choice, known) <= MUCH * self.seconds_left
        if longest is not None:
            most = MOST_OF * self.seconds_left * (os.cpu_count() or 1) / (choice.cv + ALL_ROWS)
            automatic = choice.facts.options.methods == "auto"
            rest = [method for method in rest if not automatic or (much and expected[method.label] <= most)]
        worth = sum(expected[method.label] for method in rest) > WORTH_WORKERS
        show("first folds of the other methods", 0.0, 1.0)
        others = self.first_folds(rest, choice, (-1 if self.n_jobs is None else self.n_jobs) if worth else 1, longest)
        unit = self.measure_units(choice, longest, much)
        return replace(known, fold={**known.fold, **others.fold}, unit=unit)

    def measure_units(self, choice: Choice, longest: float | None, much: bool) -> dict[str, float]:
        """Seconds of the units in which analyses are measured; infinite where there is no time to measure them."""
        unit: dict[str, float] = {}
        run = replace(
            self.run, choice=choice, methods=self.prepare(choice), options=replace(self.run.options, n_jobs=1)
        )
        for name in choice.efforts:
            analysis = ANALYSES[name]
            if not isinstance(analysis, MeasuresItself) or math.isfinite(unit.get(analysis.unit, math.inf)):
                continue
            least = levels_of(analysis, choice.facts)[0].worth == 0  # such as lists whose number was given
            required = least or name in choice.facts.options.with_
            if not (much or required):
                unit[analysis.unit] = math.inf
                continue
            watch = Stopwatch()
            try:
                with one_thread(), limit_seconds(longest):
                    analysis.measure(run)
                unit[analysis.unit] = watch.seconds()
            except OutOfTime:
                unit[analysis.unit] = CUT * watch.seconds()
        return unit

    def first_folds(
        self, methods: Sequence[Method], choice: Choice, n_jobs: int | None, longest: float | None = None
    ) -> Measured:
        """Seconds of the first fold of each method; one that fails says so when all folds are run."""
        table: UnitTable = self.run.table
        labels = {method.label for method in methods}
        prepared = [pair for pair in self.prepare(choice) if pair[0].label in labels]
        order = {method.label: place for place, method in enumerate(methods)}
        prepared.sort(key=lambda pair: order[pair[0].label])
        tasks = {
            pair[0].label: replace(outer_units(*pair, table, choice.options)[0], seconds=longest) for pair in prepared
        }
        with workers([table], n_jobs) as run:
            if n_jobs not in (1, None):
                try:
                    rows = {row["key"]: row for row in self.kept.rows([*tasks.values()], run)}
                    return Measured({label: float(rows[task.unit.key]["seconds"]) for label, task in tasks.items()}, {})
                except (SolverError, OutOfTime):
                    return self.first_folds(methods, choice, 1, longest)
            seconds: dict[str, float] = {}
            clock, computed = time.perf_counter(), time.process_time()
            for label, task in tasks.items():
                watch = Stopwatch()
                try:
                    (row,) = self.kept.rows([task], run)
                    seconds[label] = float(row["seconds"])
                except SolverError:
                    seconds[label] = watch.seconds()
                except OutOfTime:
                    seconds[label] = CUT * watch.seconds()
            pace = (time.perf_counter() - clock) / max(time.process_time() - computed, 1e-3)
        return Measured(seconds, {}, max(pace, 1.0) if time.perf_counter() - clock > SHORTEST else 1.0)


def _first(sizes: Sequence[Choice], fits: Any) -> int:
    """The place of the first size that fits, else the last."""
    return next((k for k, each in enumerate(sizes) if fits(each)), len(sizes) - 1)


def scale_folds(known: Measured, measured: Choice, other: Choice) -> Measured:
    """What folds of another size are expected to take, by the table of costs."""
    before, after = table_costs(measured), table_costs(other)
    fold = {label: seconds * after[label] / before[label] for label, seconds in known.fold.items()}
    return replace(known, fold=fold)


def recorded_plan(folder: Path | None, mark: str) -> dict[str, Any] | None:
    """The decision that an earlier run of the same study left in a folder."""
    if folder is None:
        return None
    with open_store(folder, "study") as store:
        entry = store.meta("plan")
    return entry["plan"] if entry is not None and entry["mark"] == mark else None
