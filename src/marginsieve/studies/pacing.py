"""How far a study is, and what still fits into its minutes while it is run.

The plan is decided beforehand. Where the machine turns out slower, what a study can do without is left out, and what
runs past the minutes nevertheless is cut: a method or an analysis, or, where it is one that a study is not without, the
study is begun again on fewer rows and columns. What is left out is recorded in the plan, so that the plan gives the
same result again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from ..engine.units import Method
from .analysis import ANALYSES, Choice, Level, StudyRun, levels_of
from .measuring import Planner
from .planning import describe_reduction, wall_seconds

SLOWER = "the machine was slower than expected"
CUT_BY_CLOCK = "it was cut by the clock"
CUT_AT, CUT_AFTER = 1.15, 5.0  # of the minutes, and seconds more: then what is under way is cut
AGAIN, AGAIN_SECONDS = 0.1, 8.0  # what a study may take that is begun again, likewise
SHORTEST = 1.0  # seconds that anything has


class StudyWork:
    """Work done of all work, in expected seconds, passed on as parts of it finish."""

    def __init__(self, choice: Choice, workers: int, progress: Callable[[str, float, float], Any] | None) -> None:
        self.fits, self.cost = choice.cv * choice.n_repeats + 1, choice.cost
        work = sum(self.cost[method.label] for method in choice.methods) * self.fits
        work += sum(map(choice.seconds, choice.efforts))
        self.unit = wall_seconds(choice, workers) / max(work, 1e-9)  # seconds on the clock for one of work
        self.total = self.unit * work
        self.done, self.show = 0.0, progress or (lambda *_: None)

    def part(self, method: Method) -> AbstractContextManager[Callable[[float], None]]:
        """While a method is run; gives what is called with the number of folds done."""
        return self.step(method.title, self.cost[method.label] * self.fits, self.fits)

    @contextmanager
    def step(self, name: str, cost: float, pieces: int = 1) -> Iterator[Callable[[float], None]]:
        """While something of this cost is done; gives what is called with the number of pieces done."""
        before, cost = self.done, self.unit * cost
        self.show(name, before, self.total)
        yield lambda count: self.show(name, before + cost * count / pieces, self.total)
        self.done = before + cost
        self.show(name, self.done, self.total)


class TimeLimit:
    """What still fits into the minutes, by the wall clock that has passed: a busy machine is slower than was measured.

    `cuts`: whether methods that a study is not without may be cut, for a smaller study.
    """

    def __init__(self, work: StudyWork, planner: Planner, limit: float | None, cuts: bool = True) -> None:
        self.work, self.planner, self.limit, self.cuts = work, planner, limit, cuts
        self.began = time.perf_counter()

    def fits(self, seconds: float, clock: float | None = None) -> bool:
        """Whether so many expected seconds of work fit into what is left, at the pace so far."""
        if self.limit is None:
            return True
        now = time.perf_counter() if clock is None else clock
        return self.work.unit * seconds * self.slowness(now) <= self.limit - (now - self.planner.since)

    def slowness(self, now: float) -> float:
        """What has passed, in seconds that were expected for what is done."""
        return max(1.0, (now - self.began) / max(self.work.done, 1e-9)) if self.work.done > 0 else 1.0

    # -- methods ------------------------------------------------------------------------------------------------------

    def must_run(self, run: StudyRun, method: Method) -> bool:
        """Whether a study is not without a method: the main one, all features, and those that were given."""
        return method is run.methods[0][0] or method.baseline or run.choice.facts.options.methods != "auto"

    def allows(self, run: StudyRun, method: Method) -> bool:
        """Whether a method is run: what must be always, another if what is needed fits beside it."""
        choice = run.choice
        if self.must_run(run, method):
            return True
        fits = choice.cv * choice.n_repeats + 1
        needed = choice.cost[run.methods[-1][0].label] + choice.cost[method.label]
        return self.fits(fits * needed + sum(choice.seconds(name) for name in self._least(run)))

    def without_method(self, run: StudyRun, method: Method, why: str = SLOWER) -> StudyRun:
        """The study without a method for which there is no time."""
        left = tuple(each for each in run.choice.methods if each.label != method.label)
        choice = replace(run.choice, methods=left, why=(*run.choice.why, f"{method.title} was left out: {why}"))
        return self._record(replace(run, methods=[pair for pair in run.methods if pair[0] is not method]), choice)

    def seconds_of_method(self, run: StudyRun, method: Method) -> float | None:
        """After how many seconds a method is cut; None where nothing smaller could take its place."""
        if self.limit is None:
            return None
        if self.must_run(run, method) and not (self.cuts and len(self.planner.sizes(run.choice)) > 1):
            return None
        return self._until_cut()

    def start_smaller(self, run: StudyRun) -> StudyRun:
        """The least study on so few rows and columns that it fits into what may still pass."""
        assert self.limit is not None
        choice = self.planner.make_least(run.choice, AGAIN * self.limit + AGAIN_SECONDS)
        why = f"begun again smaller, since the folds took too long for the minutes: {describe_reduction(choice)}"
        choice = replace(choice, why=(*choice.why, why))
        return self._record(replace(run, methods=self.planner.prepare(choice)), choice)

    # -- analyses -----------------------------------------------------------------------------------------------------

    def _least(self, run: StudyRun) -> list[str]:
        """The analyses that a study is not without."""
        return [name for name in run.choice.efforts if self._first_level(run, name).worth == 0]

    def _first_level(self, run: StudyRun, name: str) -> Level:
        """The least effort of an analysis."""
        return levels_of(ANALYSES[name], run.choice.facts)[0]

    def _levels(self, run: StudyRun, name: str) -> list[Level]:
        """The efforts of an analysis up to the one that was planned."""
        levels = levels_of(ANALYSES[name], run.choice.facts)
        return [level for level in levels if level.effort <= run.choice.efforts[name]]

    def seconds_of_analysis(self, run: StudyRun, name: str) -> float | None:
        """After how many seconds an analysis is cut; None where it was asked for or there is no less of it."""
        if self.limit is None or name in run.choice.facts.options.with_:
            return None
        least = name in self._least(run) and len(self._levels(run, name)) <= 1
        return None if least else self._until_cut()

    def choose_effort(self, run: StudyRun, name: str) -> StudyRun:
        """The study with the largest effort of an analysis that fits, or without it where it can do without."""
        choice, levels = run.choice, self._levels(run, name)
        if self.limit is None or name in choice.facts.options.with_ or not levels:
            return run
        rest = sum(choice.seconds(other) for other in self._least(run) if other != name and other not in run.results)
        for level in levels[::-1]:
            tried = replace(choice, efforts={**choice.efforts, name: level.effort})
            if level.worth == 0 or self.fits(tried.seconds(name) + rest):
                return run if level.effort == choice.efforts[name] else self._record(run, tried)
        return self._without(run, name, SLOWER)

    def cut_analysis(self, run: StudyRun, name: str) -> StudyRun:
        """The study with the least effort of an analysis that the clock cut, or without it where it can do without."""
        least = self._first_level(run, name)
        if least.worth > 0:
            return self._without(run, name, CUT_BY_CLOCK)
        return self._record(run, replace(run.choice, efforts={**run.choice.efforts, name: least.effort}))

    def _without(self, run: StudyRun, name: str, why: str) -> StudyRun:
        choice = run.choice
        efforts = {other: effort for other, effort in choice.efforts.items() if other != name}
        return self._record(run, replace(choice, efforts=efforts, left_out={**choice.left_out, name: why}))

    def _until_cut(self) -> float:
        """Seconds until what is under way is cut."""
        assert self.limit is not None
        end = self.planner.since + CUT_AT * self.limit + CUT_AFTER
        return max(end - time.perf_counter(), SHORTEST)

    def _record(self, run: StudyRun, choice: Choice) -> StudyRun:
        self.planner.record(choice)
        return replace(run, choice=choice)
