"""Many searches on training parts of one table at once, in step, on a device: folds, halves, shuffles, members.

What a plan needs for it its parts say (`SumsPairs`, `SolvesTogether`, `RunsTogether`); where one of them does not, or
the table has missing cells or categories, the searches are run one after the other on the CPU, which gives the same.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.pair_sums import PairSums, Scales
from ..contracts import (
    Array,
    HasParameters,
    IntArray,
    Machine,
    OfTheMargin,
    RunsTogether,
    ScoresTogether,
    SolvesTogether,
    Step,
    SumsPairs,
    T,
)
from ..data.stored import is_stored
from ..data.table import Table
from ..outcomes import Target
from ..problem import WorkDone, is_filter
from ..solvers.arrays import Backend, DeviceArray, backend_for
from .preparation import SMALLEST
from .settings import Plan

ARRAYS = 14  # of features and of pairs of rows that a search keeps for each part
ELIMINATION = 4.5  # steps of an elimination for each unit of the logarithm of the columns
ROW_PAIRS, PATH_STEP = 2e-10, 2e-4  # seconds of the CPU: of a cell in a kernel matrix, of a step of a path
CALL, MACHINES, DEVICE_PAIRS = 0.12, 4000.0, 4e-14  # and of a GPU: of a step, machines in one, of a cell
LOST = 1e-4  # of the mean square: a variance below it is computed once more
MOST_TIMES = 12  # that a fit is begun again
ROUNDING = 1e-12  # of its largest value: by how much a column must vary
MOST_ROWS = 2000  # of a table: beyond, pairs of rows are too many
LARGEST = 1e100  # squares of larger numbers are none


@dataclass(frozen=True)
class TrainingPart:
    """A training part: its rows, rows to judge it by, and the target of all rows of the table."""

    train: IntArray
    test: IntArray
    target: Target

    @cached_property
    def trained(self) -> Target:
        """The target of the rows that are trained on."""
        return self.target.take(self.train)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for equal parts."""
        return self.train, self.test, self.target.strata, self.target.weight


@dataclass(frozen=True)
class Ranked:
    """What a search in a batch says: features (n,), best first; values (S, rows, k) of the rows that judge it."""

    order: IntArray
    usable: int  # so many of the first features vary in the training part
    scores: Array  # (usable,) of the first features, or none
    steps: tuple[Step, ...]
    values: Array
    work: WorkDone


def rank_batched(plan: Plan, table: Table, jobs: Sequence[TrainingPart], sizes: Sequence[int]) -> list[Ranked] | None:
    """The ranking of every training part, and decision values at these sizes; None where that is for the CPU.

    Inside `fits_in_step` it is computed together with what other fits ask for.
    """
    if plan.device == "cpu" or not jobs or not fits_batches(plan, table):
        return None
    gathering = _current.get()
    if gathering is not None and table.rows_of_origin is not None:
        return gathering.ask(plan, table, jobs, sizes)
    arrays = backend_for(plan.device, _gain(plan, table.shape, len(jobs), len(sizes)))
    return None if arrays is None else rank_parts(arrays, plan, table, jobs, sizes)


class NotYet(BaseException):  # no error: it must pass those who handle errors
    """What a fit asks for is computed together with what others ask for, and it is to be begun again then."""


@dataclass
class Gathering:
    """What several fits have asked for, and what is known already."""

    known: dict[str, list[Ranked] | None] = field(default_factory=dict)
    requests: dict[str, _Request] = field(default_factory=dict)

    def ask(self, plan: Plan, table: Table, jobs: Sequence[TrainingPart], sizes: Sequence[int]) -> list[Ranked] | None:
        """What was computed for such a request; one that is new is noted, and the fit has to wait."""
        assert table.rows_of_origin is not None
        request = _Request(plan, *table.rows_of_origin, jobs, tuple(sizes))
        key = request.key
        if key not in self.known:
            self.requests[key] = request
            raise NotYet
        return self.known[key]

    def compute(self) -> None:
        """Everything that was asked for: what has one plan, one table and one list of sizes in one batch."""
        groups: dict[Any, dict[str, _Request]] = {}
        for key, request in self.requests.items():
            groups.setdefault(request.group, {})[key] = request
        self.requests = {}
        memories: dict[int, dict[str, Any]] = {}
        for group in groups.values():
            first = next(iter(group.values()))
            jobs = [job for request in group.values() for job in request.on_origin()]
            arrays = backend_for(first.plan.device, _gain(first.plan, first.whole.shape, len(jobs), len(first.sizes)))
            results = None
            if arrays is not None:
                memory = memories.setdefault(id(first.whole.Z), {})
                results = rank_parts(arrays, first.plan, first.whole, jobs, first.sizes, not first.sizes, memory)
            start = 0
            for key, request in group.items():
                end = start + len(request.jobs)
                self.known[key] = None if results is None else results[start:end]
                start = end


@dataclass(frozen=True)
class _Request:
    """Training parts of some rows of a table, for a plan and sizes."""

    plan: Plan
    whole: Table
    rows: IntArray
    jobs: Sequence[TrainingPart]
    sizes: tuple[int, ...]

    @property
    def group(self) -> tuple[Any, ...]:
        """Requests of one group are computed in one batch."""
        plan = self.plan
        parts = tuple(_mark(part) for part in (plan.kernel, plan.machine, plan.criterion, plan.search))
        return (*parts, id(self.whole.Z), repr(plan.outcome), plan.standardize, plan.device, self.sizes)

    @property
    def key(self) -> str:
        """Equal for equal requests."""
        parts = (part for job in self.jobs for part in job.identity)
        return _digest(self.group, itertools.chain([self.rows], parts))

    def on_origin(self) -> list[TrainingPart]:
        """The training parts in the rows of the whole table."""
        m = self.whole.shape[0]
        return [
            TrainingPart(self.rows[job.train], self.rows[job.test], job.target.spread(self.rows, m))
            for job in self.jobs
        ]


def _digest(what: Any, parts: Iterable[Any]) -> str:
    """Equal for equal descriptions and equal arrays."""
    mark = hashlib.blake2b(repr(what).encode())
    for part in parts:
        mark.update(np.ascontiguousarray(part).tobytes())
    return mark.hexdigest()


def _mark(part: Any) -> Any:
    """Equal for parts that are the same."""
    if not isinstance(part, HasParameters):
        return id(part)
    return type(part).__qualname__, tuple(
        (name, _mark_value(value)) for name, value in sorted(part.get_params().items())
    )


def _mark_value(value: Any) -> Any:
    return _mark(value) if isinstance(value, HasParameters) else repr(value)


_current: ContextVar[Gathering | None] = ContextVar("gathering", default=None)


def gathers() -> bool:
    """Whether several fits are run in step."""
    return _current.get() is not None


def fits_in_step(fits: Sequence[Callable[[], T]]) -> Iterator[T]:
    """The results of several fits on rows of one tracked table, as they finish.

    Where a fit asks for searches in batches it stops; when all have asked, everything is computed at once, and those
    that stopped begin again with what is known. So every fit must give the same each time it is run.
    """
    gathering, left = Gathering(), dict(enumerate(fits))
    for times in itertools.count():
        if not left:
            return
        for k, fit in list(left.items()):
            token = _current.set(gathering if times < MOST_TIMES else None)  # else each on its own
            try:
                result = fit()
            except NotYet:
                continue
            finally:
                _current.reset(token)
            del left[k]
            yield result
        gathering.compute()


def fits_batches(plan: Plan, table: Table) -> bool:
    """Whether every part of a plan works in batches, on this table."""
    by_filter = is_filter(plan.criterion)
    of_margin = isinstance(plan.criterion, OfTheMargin) and plan.criterion.of_the_margin
    together = isinstance(plan.criterion, ScoresTogether) and plan.criterion.in_batches
    scores = together if by_filter else of_margin
    parts = isinstance(plan.kernel, SumsPairs) and isinstance(plan.search, RunsTogether) and scores
    plain = not (plan.keep or plan.prefilter or plan.sampler or plan.ensemble or table.is_sparse or is_stored(table.Z))
    return bool(
        parts
        and plain
        and table.shape[0] <= MOST_ROWS
        and isinstance(plan.machine, SolvesTogether)
        and isinstance(plan.final, SolvesTogether)
        and all(kind in ("real", "ordinal") for kind in table.kind)
        and np.abs(table.Z).max(initial=0.0) < LARGEST  # which no missing cell is
    )


def _gain(plan: Plan, shape: tuple[int, int], jobs: int, sizes: int) -> float:
    """How many times as fast a GPU is, about: it waits for each call, and then does thousands of problems at once."""
    m, n = shape
    by_filter = is_filter(plan.criterion)
    steps = 1.0 if by_filter else ELIMINATION * math.log(n + 1.0)
    pairs = float(m) * m * n
    cpu = jobs * (ROW_PAIRS * pairs * (1.0 + (not by_filter)) + PATH_STEP * (steps + sizes))
    calls = steps + math.ceil(sizes * jobs / MACHINES)
    return cpu / (CALL * calls + jobs * pairs * DEVICE_PAIRS * (0.5 * steps + sizes))


def rank_parts(
    arrays: Backend,
    plan: Plan,
    table: Table,
    jobs: Sequence[TrainingPart],
    sizes: Sequence[int],
    scored: bool = False,
    memory: dict[str, DeviceArray] | None = None,
) -> list[Ranked]:
    """`together` on given arrays, as many parts at a time as the device has memory for; `scored`: with the scores.

    What a filter said is remembered in `memory`, and asked there.
    """
    m, n = table.shape
    X = arrays.to_device(table.Z.T)
    centre = X.mean(1)
    X = X - centre[:, None]
    most = max(1, int(0.5 * arrays.free_bytes() / (8.0 * ARRAYS * (n + m * m))))
    out: list[Ranked] = []
    for start in range(0, len(jobs), most):
        out += _rank_by_usable(arrays, plan, X, centre, jobs[start : start + most], sizes, scored, memory)
    return out


def _rank_by_usable(
    arrays: Backend,
    plan: Plan,
    X: DeviceArray,
    centre: DeviceArray,
    jobs: Sequence[TrainingPart],
    sizes: Sequence[int],
    scored: bool,
    memory: dict[str, DeviceArray] | None,
) -> list[Ranked]:
    """Training parts with as many usable columns as each other go together."""
    spread = _spreads(arrays, X, centre, jobs)
    count = arrays.to_host((spread > 0).sum(1))
    out: list[Ranked | None] = [None] * len(jobs)
    for usable in np.unique(count):
        places = np.flatnonzero(count == usable)
        some = spread if len(places) == len(jobs) else spread[arrays.to_device(places, np.int64)]
        batch = PartsInStep.from_jobs(arrays, plan, X, [jobs[int(k)] for k in places], some, int(usable))
        batch.memory = {} if memory is None else memory
        for k, ranked in zip(places, batch.results(sizes, scored), strict=True):
            out[k] = ranked
    return [ranked for ranked in out if ranked is not None]


def _spreads(arrays: Backend, X: DeviceArray, centre: DeviceArray, jobs: Sequence[TrainingPart]) -> DeviceArray:
    """(F, n): the range of each column over the rows of each part, 0 where it does not vary by more than rounding."""
    xp, out = arrays.xp, arrays.zeros(len(jobs), X.shape[0])
    for f, job in enumerate(jobs):
        rows = X[:, arrays.to_device(job.train, np.int64)]
        low, high = xp.amin(rows, 1), xp.amax(rows, 1)
        ends = xp.abs(low + centre), xp.abs(high + centre)
        largest = xp.where(ends[0] > ends[1], *ends)
        out[f] = xp.where((high - low > ROUNDING * largest) & (high - low > SMALLEST), high - low, 0.0)
    return out


def _variances(arrays: Backend, X: DeviceArray, share: DeviceArray) -> DeviceArray:
    """(F, n): the variances of columns X (n, r) with shares of the rows (F, r).

    As differences of squares, and where much is lost by that once more in two passes.
    """
    xp = arrays.xp
    mean, second = share @ X.T, share @ (X * X).T
    variance = second - mean**2
    variance = xp.where(variance > 0, variance, 0.0)
    lost = variance < LOST * second
    for f in np.flatnonzero(arrays.to_host(lost.any(1))):
        columns = arrays.places(lost[int(f)])
        off = X[columns] - mean[int(f), columns][:, None]
        variance[int(f), columns] = (off**2) @ share[int(f)]
    return variance


@dataclass
class PartsInStep:
    """F jobs with as many usable columns as each other, as a search and a filter see them (`contracts.Batch`)."""

    arrays: Backend
    plan: Plan
    X: DeviceArray
    scales: Scales
    sums: PairSums
    usable: DeviceArray
    labels: DeviceArray
    weight: DeviceArray
    cost: DeviceArray  # (F, k, r)
    train: DeviceArray  # (F, m) rows of each job, the first row where there are fewer
    filled: DeviceArray  # (F, m) 1 where that is one of them
    strata: Sequence[IntArray]
    rows: Sequence[IntArray]
    jobs: Sequence[TrainingPart]
    memory: dict[str, DeviceArray]  # what filters said of such training parts
    solved: list[tuple[int, Array, Array]]  # the number of features, objectives and residuals (F,)

    @classmethod
    def from_jobs(
        cls, arrays: Backend, plan: Plan, X: DeviceArray, jobs: Sequence[TrainingPart], spread: DeviceArray, count: int
    ) -> PartsInStep:
        """The arrays of some jobs."""
        assert isinstance(plan.kernel, SumsPairs)
        r = X.shape[1]
        targets = [job.trained.with_settings(plan.outcome) for job in jobs]
        F, k = len(jobs), len(targets[0].machine_target.y)
        weight, labels, cost = np.zeros((F, r)), np.zeros((F, k, r)), np.zeros((F, k, r))
        longest = max(len(job.train) for job in jobs)
        train, filled = np.zeros((F, longest), dtype=np.int64), np.zeros((F, longest))
        for f, (job, target) in enumerate(zip(jobs, targets, strict=True)):
            _, y, costs = target.machine_target
            weight[f, job.train] = target.weight
            labels[f][:, job.train] = y
            cost[f][:, job.train] = costs
            train[f, : len(job.train)], filled[f, : len(job.train)] = job.train, 1.0
        on_device = arrays.to_device(weight)
        xp = arrays.xp
        usable = xp.where(spread > 0, 1.0, 0.0)
        share = on_device / on_device.sum(1)[:, None]
        variance = _variances(arrays, X, share)
        scaled = plan.standardize and not plan.kernel.unit_free
        known = xp.where(variance > 0, variance, 1.0)
        factor = 1.0 / known if scaled else xp.ones_like(variance)
        variance = variance * usable
        whole = xp.stack([(variance * factor).sum(1), usable.sum(1)], -1)
        scales = Scales(factor, variance, spread, usable, whole)
        sums = plan.kernel.pair_sums(arrays, X, scales)
        varying = arrays.order(-usable)[:, :count]
        return cls(
            arrays,
            plan,
            X,
            scales,
            sums,
            varying,
            arrays.to_device(labels),
            on_device,
            arrays.to_device(cost),
            arrays.to_device(train, np.int64),
            arrays.to_device(filled),
            [job.trained.strata for job in jobs],
            [job.train for job in jobs],
            jobs,
            {},
            [],
        )

    def score(self, live: DeviceArray) -> DeviceArray:
        """(F, q): the criterion at the live features (F, q), from machines that are solved on them."""
        criterion = self.plan.criterion
        if is_filter(criterion):
            assert isinstance(criterion, ScoresTogether)
            parts = (part for job in self.jobs for part in (job.train, job.target.strata, job.target.weight))
            key = _digest((_mark(criterion), self.plan.standardize), parts)
            if key not in self.memory:
                self.memory[key] = criterion.score_together(self)
            return self.arrays.take_along(self.memory[key], live)
        W = self.sums.weights(self.arrays.indicator(live, self.X.shape[0]))
        K = self.sums.matrices(W)
        total = self.arrays.zeros(*W.shape)
        objective, residual = np.zeros(len(W)), np.zeros(len(W))
        for k in range(self.labels.shape[1]):
            coef, _, value, worst = self._solve(self.plan.machine, K, k, np.arange(len(W)))
            total = total + self.sums.changes(W, K, coef)
            objective, residual = objective + value, np.maximum(residual, worst)
        self.solved.append((int(live.shape[1]), objective, residual))
        return self.arrays.take_along(total, live)

    def _solve(
        self, machine: Machine, K: DeviceArray, k: int, which: IntArray
    ) -> tuple[DeviceArray, DeviceArray, Array, Array]:
        """Coefficients (F', r), intercepts, and objectives and violations (F',) of binary problem k of some jobs."""
        assert isinstance(machine, SolvesTogether)
        arrays, xp = self.arrays, self.arrays.xp
        which = arrays.to_device(which, np.int64)
        train, filled = self.train[which], self.filled[which]
        F, r = K.shape[0], K.shape[1]
        flat = train[:, :, None] * r + train[:, None, :]
        small = arrays.take_along(K.reshape(F, r * r), flat.reshape(F, -1)).reshape(F, train.shape[1], train.shape[1])
        y = arrays.take_along(self.labels[which, k], train)
        cost = arrays.take_along(self.cost[which, k], train) * filled
        y = xp.where(filled > 0, y, 1.0)
        machines = machine.solve_together(arrays, small, y, cost)
        coef = arrays.add_at(arrays.zeros(F, r), train, machines.coef * filled)
        return coef, machines.intercept, arrays.to_host(machines.objective), arrays.to_host(machines.violation)

    def results(self, sizes: Sequence[int], scored: bool) -> list[Ranked]:
        """Every job's ranking, and decision values at these sizes."""
        search = self.plan.search
        assert isinstance(search, RunsTogether)
        order, scores = search.run_together(self)
        n, p = self.X.shape[0], order.shape[1]
        ascending = sorted(sizes)
        values, worst = self._values(order, ascending)
        places = [ascending.index(size) for size in sizes]
        tol: float = self.plan.machine.tol  # type: ignore[attr-defined]
        orders, out = self.arrays.to_host(self.arrays.as_int32(order)), list[Ranked]()
        by_place = self.arrays.to_host(scores) if scored else np.empty((len(self.jobs), 0))
        problems = self.labels.shape[1]
        solves = problems * (len(self.solved) + len(sizes))
        for f in range(len(self.jobs)):
            steps = tuple(
                Step(size, float(objective[f]), float(residual[f]), 0.0) for size, objective, residual in self.solved
            )
            residuals = np.array([step.residual for step in steps] + list(worst[f]))
            short = residuals[residuals > tol]
            order = orders[f]
            if p < n:
                order = np.concatenate([order, np.setdiff1d(np.arange(n), order)])
            work = WorkDone(solves, len(short), float(short.max(initial=0.0)))
            out.append(Ranked(order, p, by_place[f], steps, values[f][places], work))
        return out

    def _values(self, order: DeviceArray, sizes: Sequence[int]) -> tuple[list[Array], Array]:
        """Decision values (S, rows, k) of each part's test rows, and the worst violation at each size (F, S)."""
        F, problems, r = len(self.jobs), self.labels.shape[1], self.X.shape[1]
        values, worst = np.empty((F, len(sizes), r, problems)), np.zeros((F, len(sizes)))
        counts = [max(1, min(size, order.shape[1])) for size in sizes]
        start = 0
        while start < len(sizes):
            sums, heads = self.sums.restrict_to(order[:, : counts[start]])
            room = 0.3 * self.arrays.free_bytes() / (8.0 * ARRAYS * (sums.X.shape[0] + r * r))
            end = min(start + max(1, int(room // F)), len(sizes))
            if end > start + 1:
                sums, heads = self.sums.restrict_to(order[:, : counts[end - 1]])
            values[:, start:end], worst[:, start:end] = self._at_sizes(sums, heads, counts[start:end])
            start = end
        return [values[f][:, job.test] for f, job in enumerate(self.jobs)], worst

    def _at_sizes(self, sums: PairSums, order: DeviceArray, counts: Sequence[int]) -> tuple[Array, Array]:
        """(F, S, r, k), (F, S): values of all rows and the worst violations, at some sizes of the ranking."""
        arrays, F, (_, problems, r) = self.arrays, len(self.jobs), self.labels.shape
        live = arrays.xp.concatenate([arrays.indicator(order[:, :count], sums.X.shape[0]) for count in counts], 0)
        every = np.tile(np.arange(F), len(counts))
        K = sums.matrices(sums.weights(live, sums.scales.repeat(len(counts), arrays)))
        values, worst = np.empty((F, len(counts), r, problems)), np.zeros((F, len(counts)))
        for k in range(problems):
            coef, intercept, _, violation = self._solve(self.plan.final, K, k, every)
            f = arrays.to_host(arrays.xp.einsum("fij,fj->fi", K, coef) + intercept[:, None])
            values[..., k] = f.reshape(len(counts), F, r).transpose(1, 0, 2)
            worst = np.maximum(worst, violation.reshape(len(counts), F).T)
        return values, worst
