"""What a search sees: k binary problems over one table, and the work that was done on them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeGuard, cast

import numpy as np

from .algebra import ColumnView
from .contracts import (
    Array,
    BreaksTies,
    Criterion,
    Filter,
    Gram,
    IntArray,
    JudgingRows,
    Kernel,
    Machine,
    Metric,
    Solution,
    Step,
    TableView,
    View,
    Work,
)


class WorkDone(NamedTuple):
    """Counts of work that was done elsewhere."""

    solves: int = 1
    n_unconverged: int = 0
    worst_residual: float = 0.0

    @classmethod
    def from_solutions(cls, solutions: Sequence[Solution]) -> WorkDone:
        """One solve each."""
        short = [solution.residual for solution in solutions if not solution.converged]
        return cls(len(solutions), len(short), max(short, default=0.0))


def is_filter(criterion: Criterion | Filter | None) -> TypeGuard[Filter]:
    """Whether this scores columns from the labels alone; the others score what a machine has learned."""
    return criterion is not None and not isinstance(criterion, Criterion)


def view_of(machine: Machine, kernel: Kernel, table: TableView, feature_weight: Array, live: IntArray) -> View:
    """What a machine reads of some features of a table: a Gram, or columns without any kernel matrix."""
    if machine.needs == "gram":
        return kernel.bind(table, feature_weight, live)
    return ColumnView(kernel, table, feature_weight, live)


@dataclass
class Problem:
    """k binary problems over one table that share one scale: y (k, m) in {-1, +1}, cost (k, m)."""

    table: TableView
    y: Array
    cost: Array
    sample_weight: Array  # (m,) what filters count a sample by; costs have it inside
    feature_weight: Array  # (n,) of the kernel, frozen at fit
    kernel: Kernel
    machine: Machine
    criterion: Criterion | Filter | None
    validation: JudgingRows | None = None  # rows that the machine is not fitted on, for criteria that judge it
    keep: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    groups: IntArray | None = None  # (m,) rows of one group stay together in folds
    solves: int = 0
    n_unconverged: int = 0
    worst_residual: float = 0.0

    def gram(self, features: IntArray | None = None) -> Gram:
        """The kernel on the features (all of them by default), at the frozen weights."""
        return self.kernel.bind(self.table, self.feature_weight, self._live(features))

    def view(self, features: IntArray | None = None) -> View:
        """What the machine reads of the features: a Gram, or columns without any kernel matrix."""
        return view_of(self.machine, self.kernel, self.table, self.feature_weight, self._live(features))

    def _live(self, features: IntArray | None) -> IntArray:
        return np.arange(self.table.shape[1]) if features is None else np.asarray(features, dtype=np.intp)

    def solve(self, view: View, warm: Sequence[Solution] | None = None) -> tuple[Solution, ...]:
        """One solution per binary problem."""
        starts = [None] * len(self.y) if warm is None else warm
        solutions = tuple(
            self.machine.solve(view, y, cost, warm=start)
            for y, cost, start in zip(self.y, self.cost, starts, strict=True)
        )
        self.count(WorkDone.from_solutions(solutions))
        return solutions

    def judge(self, view: View, solutions: Sequence[Solution], metric: Metric) -> tuple[float, ...]:
        """What solutions are worth on the rows that the machine is judged by."""
        Z, y, weight = self.judging_rows
        rows = self.table.Z if Z is None else Z
        return metric(np.array([self.machine.decision(solution, view, rows) for solution in solutions]), y, weight)

    def fresh_copy(self, **fields: Any) -> Self:
        """The problem with other fields and counts of its own."""
        return replace(self, solves=0, n_unconverged=0, worst_residual=0.0, **fields)

    def with_machine(self, machine: Machine) -> Self:
        """The problem with another machine and counts of its own."""
        return self.fresh_copy(machine=machine)

    def part(self, features: IntArray, **fields: Any) -> Self:
        """The problem on some features, with counts of its own."""
        keep = np.flatnonzero(np.isin(features, self.keep)).astype(np.intp)
        validation = self.validation
        if validation is not None and validation.Z is not None:
            validation = validation._replace(Z=validation.Z[:, features])
        fields = {"feature_weight": self.feature_weight[features], **fields}
        return self.fresh_copy(table=self.table.columns(features), keep=keep, validation=validation, **fields)

    @property
    def work(self) -> WorkDone:
        """The counts of this problem's work."""
        return WorkDone(self.solves, self.n_unconverged, self.worst_residual)

    def count(self, work: Work) -> None:
        """Add the counts of other work to this problem's."""
        self.solves += work.solves
        self.n_unconverged += work.n_unconverged
        self.worst_residual = max(self.worst_residual, work.worst_residual)

    def score(self, gram: Gram | None, solutions: Sequence[Solution]) -> Array:
        """The criterion of each live feature (same order as gram.features), or a filter's score of every column."""
        if self._filter is not None:
            return np.asarray(self._filter(self.table, self.y, self.sample_weight))
        assert gram is not None
        return np.asarray(cast(Criterion, self.criterion).score(self, gram, solutions))

    def ties(self, gram: Gram | None, solutions: Sequence[Solution]) -> Array | None:
        """What orders live features of equal score, where the criterion says so."""
        if self._breaker is None or gram is None:
            return None
        return self._breaker.ties(self, gram, solutions)

    # What the criterion can do is looked up once: a search asks at each step, and isinstance of a protocol is slow.

    @cached_property
    def _filter(self) -> Filter | None:
        """The criterion where it is a filter."""
        return self.criterion if is_filter(self.criterion) else None

    @cached_property
    def _breaker(self) -> BreaksTies | None:
        """The criterion where it breaks ties."""
        return self.criterion if isinstance(self.criterion, BreaksTies) else None

    @property
    def judging_rows(self) -> JudgingRows:
        """The rows on which a criterion judges the machine: those held out for it, or its own."""
        return JudgingRows(None, self.y, self.sample_weight) if self.validation is None else self.validation


def step_of(size: int, solutions: Sequence[Solution], since: float) -> Step:
    """A path's step from what was solved since the clock read `since`."""
    objective, residual = 0.0, 0.0
    for solution in solutions:
        objective, residual = objective + solution.objective, max(residual, solution.residual)
    return Step(size, objective, residual, time.perf_counter() - since)


def class_codes(y: Array) -> IntArray:
    """(m,) class numbers from the labels (k, m) of binary problems."""
    return np.asarray(y[0] > 0 if len(y) == 1 else y.argmax(axis=0), dtype=np.intp)


MOST_SIZES = 40  # sizes on the grid


def size_grid(most: int, smallest: int) -> tuple[int, ...]:
    """The sizes that inner folds look at: all if they are few, else about forty up to `most`, evenly by ratio."""
    geometric = {round(size) for size in np.geomspace(1, most, min(most, MOST_SIZES))}
    return tuple(size for size in sorted(geometric) if size >= smallest) or (most,)
