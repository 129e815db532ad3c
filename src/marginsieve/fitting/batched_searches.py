"""Many searches on training parts of one table at once, in step, on a device: folds, halves, shuffles, members.

Every part of a plan must say that it works so (`contracts.Batched`); where one does not, or the table has missing cells
or categories, the searches are run one after the other on the CPU, which gives the same.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..batches.arrays import Backend, DeviceArray, backend_for, explain_device_errors
from ..batches.pair_sums import PairSums, Scales
from ..contracts import (
    Array,
    BatchedPart,
    HasParameters,
    IntArray,
    Machine,
    Step,
    T,
    is_batched,
)
from ..data.stored import is_stored
from ..data.table import Table
from ..outcomes import Target
from ..problem import WorkDone, is_filter
from .settings import Plan

ARRAYS = 14  # of features and of pairs of rows that a search keeps for each part
ELIMINATION = 4.5  # steps of an elimination for each unit of the logarithm of the columns
ROW_PAIRS, PATH_STEP = 2e-10, 2e-4  # seconds of the CPU: of a cell in a kernel matrix, of a step of a path
CALL, MACHINES, DEVICE_PAIRS = 0.12, 4000.0, 4e-14  # and of a GPU: of a step, machines in one, of a cell
LOST = 1e-4  # of the mean square: a variance below it is computed once more
MOST_TIMES = 12  # that a fit is begun again
ROUNDING = 1e-12  # of its largest value: by how much a column must vary
MOST_ROWS = 2000  # of a table: beyond, pairs of rows are too many
SMALLEST = 1e-305  # one over a smaller range is no number
LARGEST = 1e100  # squares of larger numbers are none


@dataclass(frozen=True)
class TrainingPart:
    """A training part: its rows, rows to judge it by, and the target of all rows of the table."""

    train: IntArray
    test: IntArray
    target: Target

    @cached_property
    def train_target(self) -> Target:
        """The target of the rows that are trained on."""
        return self.target.take(self.train)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for equal parts."""
        return self.train, self.test, self.target.strata, self.target.weight


@dataclass(frozen=True)
class Ranking:
    """What a search in a batch says: features (n,), best first; values (S, rows, k) of the rows that judge it."""

    order: IntArray
    usable: int  # so many of the first features vary in the training part
    scores: Array  # (usable,) of the first features, or none
    steps: tuple[Step, ...]
    values: Array
    work: WorkDone


def rank_batched(plan: Plan, table: Table, jobs: Sequence[TrainingPart], sizes: Sequence[int]) -> list[Ranking] | None:
    """The ranking of every training part, and decision values at these sizes; None where that is for the CPU.

    Inside `batch_fits` it is computed together with what other fits ask for.
    """
    if plan.device == "cpu" or not jobs or not fits_batches(plan, table):
        return None
    requests = _current.get()
    if requests is not None and table.rows_of_origin is not None:
        return requests.ask(_Request(plan, *table.rows_of_origin, jobs, tuple(sizes)))
    arrays = backend_for(plan.device, _gain(plan, table.shape, len(jobs), len(sizes)))
    with explain_device_errors(arrays):
        return None if arrays is None else rank_parts(arrays, plan, table, jobs, sizes)


def fits_batches(plan: Plan, table: Table) -> bool:
    """Whether every part of a plan works in batches, on this table."""
    parts = plan.kernel, plan.machine, plan.final, plan.criterion, plan.search
    plain = not (plan.keep or plan.prefilter or plan.sampler or plan.ensemble or table.is_sparse or is_stored(table.Z))
    return bool(
        all(map(is_batched, parts))
        and plain
        and table.shape[0] <= MOST_ROWS
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


# -- several fits that share their batches ----------------------------------------------------------------------------


class NotYet(BaseException):  # no error: it must pass those who handle errors
    """What a fit asks for is computed together with what others ask for, and it is to be begun again then."""


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
        parts = tuple(_describe(part) for part in (plan.kernel, plan.machine, plan.criterion, plan.search))
        return (*parts, id(self.whole.Z), repr(plan.outcome), plan.standardize, plan.device, self.sizes)

    @property
    def key(self) -> str:
        """Equal for equal requests."""
        parts = (part for job in self.jobs for part in job.identity)
        return _digest(self.group, itertools.chain([self.rows], parts))

    def jobs_on_origin(self) -> list[TrainingPart]:
        """The training parts in the rows of the whole table."""
        rows, m = self.rows, self.whole.shape[0]
        return [TrainingPart(rows[job.train], rows[job.test], job.target.spread(rows, m)) for job in self.jobs]


@dataclass
class _SharedRequests:
    """What several fits have asked for, and what is known already."""

    known: dict[str, list[Ranking] | None] = field(default_factory=dict)
    open: dict[str, _Request] = field(default_factory=dict)

    def ask(self, request: _Request) -> list[Ranking] | None:
        """What was computed for such a request; one that is new is noted, and the fit has to wait."""
        key = request.key
        if key not in self.known:
            self.open[key] = request
            raise NotYet
        return self.known[key]

    def compute(self) -> None:
        """Everything that was asked for: what has one plan, one table and one list of sizes in one batch."""
        groups: dict[Any, dict[str, _Request]] = {}
        for key, request in self.open.items():
            groups.setdefault(request.group, {})[key] = request
        self.open = {}
        filter_scores: dict[int, dict[str, DeviceArray]] = {}
        for group in groups.values():
            first = next(iter(group.values()))
            plan, table, sizes = first.plan, first.whole, first.sizes
            jobs = [job for request in group.values() for job in request.jobs_on_origin()]
            arrays = backend_for(plan.device, _gain(plan, table.shape, len(jobs), len(sizes)))
            if arrays is None:
                self.known |= dict.fromkeys(group)
                continue
            known_scores = filter_scores.setdefault(id(table.Z), {})
            with explain_device_errors(arrays):
                results = iter(rank_parts(arrays, plan, table, jobs, sizes, not sizes, known_scores))
            for key, request in group.items():
                self.known[key] = list(itertools.islice(results, len(request.jobs)))


def _digest(what: Any, parts: Iterable[Any]) -> str:
    """Equal for equal descriptions and equal arrays."""
    mark = hashlib.blake2b(repr(what).encode())
    for part in parts:
        mark.update(np.ascontiguousarray(part).tobytes())
    return mark.hexdigest()


def _describe(part: Any) -> Any:
    """Equal for parts that are the same."""
    if not isinstance(part, HasParameters):
        return id(part)
    values = sorted(part.get_params().items())
    described = ((name, _describe(v) if isinstance(v, HasParameters) else repr(v)) for name, v in values)
    return type(part).__qualname__, tuple(described)


_current: ContextVar[_SharedRequests | None] = ContextVar("requests", default=None)


def inside_batch_fits() -> bool:
    """Whether this fit is one of several that share their batches."""
    return _current.get() is not None


def batch_fits(fits: Sequence[Callable[[], T]]) -> Iterator[T]:
    """The results of several fits on rows of one tracked table, as they finish.

    Where a fit asks for searches in batches it stops; when all have asked, everything is computed at once, and those
    that stopped begin again with what is known. So every fit must give the same each time it is run.
    """
    requests, left = _SharedRequests(), dict(enumerate(fits))
    for times in itertools.count():
        if not left:
            return
        for k, fit in list(left.items()):
            token = _current.set(requests if times < MOST_TIMES else None)  # else each on its own
            try:
                result = fit()
            except NotYet:
                continue
            finally:
                _current.reset(token)
            del left[k]
            yield result
        requests.compute()


# -- the batches ------------------------------------------------------------------------------------------------------


def rank_parts(
    arrays: Backend,
    plan: Plan,
    table: Table,
    jobs: Sequence[TrainingPart],
    sizes: Sequence[int],
    with_scores: bool = False,
    filter_scores: dict[str, DeviceArray] | None = None,
) -> list[Ranking]:
    """`rank_batched` on given arrays, as many parts at a time as the device has memory for.

    Parts with as many usable columns as each other go together. What a filter says is kept in `filter_scores`.
    """
    m, n = table.shape
    X = arrays.to_device(table.Z.T)
    centre = X.mean(1)
    X = X - centre[:, None]
    most = max(1, int(0.5 * arrays.free_bytes() / (8.0 * ARRAYS * (n + m * m))))
    known = {} if filter_scores is None else filter_scores
    out: dict[int, Ranking] = {}
    for start in range(0, len(jobs), most):
        some = jobs[start : start + most]
        spread = _spreads(arrays, X, centre, some)
        count = arrays.to_host((spread > 0).sum(1))
        for usable in np.unique(count):
            places = np.flatnonzero(count == usable)
            alike = [some[int(k)] for k in places]
            batch = PartsBatch(arrays, plan, X, alike, spread[arrays.to_device(places, np.int64)], int(usable), known)
            out |= zip((start + places).tolist(), batch.rank(sizes, with_scores), strict=True)
    return [out[k] for k in range(len(jobs))]


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

    As differences of squares, E x^2 - (E x)^2 in two products; where much is lost by that, once more as E (x - E x)^2.
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


class PartsBatch:
    """F training parts with `count` usable columns each, as searches and criteria see them (`contracts.Batch`).

    Machines see the m rows of their part alone; parts with fewer rows than the longest are filled up with the first row
    of the table at a cost of 0. What they say is spread over all r rows, where the matrices of all parts lie.
    """

    def __init__(
        self,
        arrays: Backend,
        plan: Plan,
        X: DeviceArray,
        jobs: Sequence[TrainingPart],
        spread: DeviceArray,
        count: int,
        filter_scores: dict[str, DeviceArray],
    ) -> None:
        self.arrays, self.plan, self.X, self.jobs, self.filter_scores = arrays, plan, X, jobs, filter_scores
        self.rows: Sequence[IntArray] = [job.train for job in jobs]
        self.strata: Sequence[IntArray] = [job.train_target.strata for job in jobs]
        self.solved: list[tuple[int, Array, Array]] = []  # the number of features, objectives and residuals (F,)
        targets = [job.train_target.with_settings(plan.outcome) for job in jobs]
        F, r, longest = len(jobs), X.shape[1], max(map(len, self.rows))
        k = len(targets[0].machine_target.y)
        weight, labels, cost = np.zeros((F, r)), np.zeros((F, k, r)), np.zeros((F, k, r))
        train, filled = np.zeros((F, longest), dtype=np.int64), np.zeros((F, longest))
        for f, (rows, target) in enumerate(zip(self.rows, targets, strict=True)):
            weight[f, rows] = target.weight
            _, labels[f][:, rows], cost[f][:, rows] = target.machine_target
            train[f, : len(rows)], filled[f, : len(rows)] = rows, 1.0
        self.weight, self.labels, self.cost = (arrays.to_device(part) for part in (weight, labels, cost))
        self.train, self.filled = arrays.to_device(train, np.int64), arrays.to_device(filled)  # (F, m)
        self.scales = self._scale(spread)
        self.usable = arrays.order(-self.scales.usable)[:, :count]
        self.sums: PairSums = cast(BatchedPart, plan.kernel).pair_sums(arrays, X, self.scales)

    def _scale(self, spread: DeviceArray) -> Scales:
        """What the parts say of the columns, from their spreads (F, n)."""
        xp = self.arrays.xp
        usable = xp.where(spread > 0, 1.0, 0.0)
        variance = _variances(self.arrays, self.X, self.weight / self.weight.sum(1)[:, None])
        standardized = self.plan.standardize and not self.plan.kernel.unit_free
        factor = 1.0 / xp.where(variance > 0, variance, 1.0) if standardized else xp.ones_like(variance)
        variance = variance * usable
        whole = xp.stack([(variance * factor).sum(1), usable.sum(1)], -1)
        return Scales(factor, variance, spread, usable, whole)

    def score(self, live: DeviceArray) -> DeviceArray:
        """(F, q): the criterion at the live features (F, q)."""
        criterion = cast(BatchedPart, self.plan.criterion)
        if not is_filter(self.plan.criterion):
            return self.arrays.take_along(criterion.score_batched(self, live), live)
        parts = (part for job in self.jobs for part in (job.train, job.target.strata, job.target.weight))
        key = _digest((_describe(criterion), self.plan.standardize), parts)
        if key not in self.filter_scores:
            self.filter_scores[key] = criterion.score_batched(self, live)
        return self.arrays.take_along(self.filter_scores[key], live)

    def margin_changes(self, live: DeviceArray) -> DeviceArray:
        """(F, n): |c'Kc - c'K(without j)c|, summed over the problems, c of machines on the live features (F, q)."""
        W = self.sums.weights(self.arrays.indicator(live, self.X.shape[0]))
        K = self.sums.matrices(W)
        total = self.arrays.zeros(*W.shape)
        objective, residual = np.zeros(len(W)), np.zeros(len(W))
        for k in range(self.labels.shape[1]):
            coef, _, value, worst = self._solve(self.plan.machine, K, k, np.arange(len(W)))
            total = total + self.sums.changes(W, K, coef)
            objective, residual = objective + value, np.maximum(residual, worst)
        self.solved.append((int(live.shape[1]), objective, residual))
        return total

    def _solve(
        self, machine: Machine, K: DeviceArray, k: int, which: IntArray
    ) -> tuple[DeviceArray, DeviceArray, Array, Array]:
        """Coefficients (F', r), intercepts, and objectives and violations (F',) of binary problem k of some parts."""
        arrays, xp = self.arrays, self.arrays.xp
        part = arrays.to_device(which, np.int64)
        train, filled = self.train[part], self.filled[part]
        F, r = K.shape[0], K.shape[1]
        flat = train[:, :, None] * r + train[:, None, :]  # where the matrix of the part's own rows lies in that of all
        small = arrays.take_along(K.reshape(F, r * r), flat.reshape(F, -1)).reshape(F, train.shape[1], train.shape[1])
        y = xp.where(filled > 0, arrays.take_along(self.labels[part, k], train), 1.0)
        cost = arrays.take_along(self.cost[part, k], train) * filled
        machines = cast(BatchedPart, machine).solve_batched(arrays, small, y, cost)
        coef = arrays.add_at(arrays.zeros(F, r), train, machines.coef * filled)
        return coef, machines.intercept, arrays.to_host(machines.objective), arrays.to_host(machines.violation)

    def rank(self, sizes: Sequence[int], with_scores: bool) -> list[Ranking]:
        """Every part's ranking, and decision values of its test rows at these sizes."""
        order, scores = cast(BatchedPart, self.plan.search).run_batched(self)
        n, p = self.X.shape[0], order.shape[1]
        ascending = sorted(sizes)
        values, worst = self._values(order, ascending)
        places = [ascending.index(size) for size in sizes]
        tol = cast(BatchedPart, self.plan.machine).tol
        orders = self.arrays.to_host(self.arrays.as_int32(order))
        by_place = self.arrays.to_host(scores) if with_scores else np.empty((len(self.jobs), 0))
        solves = self.labels.shape[1] * (len(self.solved) + len(sizes))
        out = []
        for f, job in enumerate(self.jobs):
            steps = tuple(Step(size, float(value[f]), float(off[f]), 0.0) for size, value, off in self.solved)
            residuals = np.array([step.residual for step in steps] + list(worst[f]))
            short = residuals[residuals > tol]
            rest = np.setdiff1d(np.arange(n), orders[f]) if p < n else ()
            whole = np.concatenate([orders[f], rest]).astype(orders.dtype)
            work = WorkDone(solves, len(short), float(short.max(initial=0.0)))
            out.append(Ranking(whole, p, by_place[f], steps, values[f][places][:, job.test], work))
        return out

    def _values(self, order: DeviceArray, sizes: Sequence[int]) -> tuple[Array, Array]:
        """Decision values (F, S, r, k) at sizes in ascending order, and the worst violations (F, S).

        Matrices are made of the columns that the first features of the parts need, for as many sizes as there is room.
        """
        F, problems, r = self.labels.shape
        values, worst = np.empty((F, len(sizes), r, problems)), np.zeros((F, len(sizes)))
        counts = [max(1, min(size, order.shape[1])) for size in sizes]
        start = 0
        while start < len(sizes):
            sums, heads = self.sums.restrict_to(order[:, : counts[start]])
            room = 0.3 * self.arrays.free_bytes() / (8.0 * ARRAYS * (sums.X.shape[0] + r * r))
            end = min(start + max(1, int(room // F)), len(sizes))
            if end > start + 1:
                sums, heads = self.sums.restrict_to(order[:, : counts[end - 1]])
            values[:, start:end], worst[:, start:end] = self._values_at(sums, heads, counts[start:end])
            start = end
        return values, worst

    def _values_at(self, sums: PairSums, order: DeviceArray, counts: Sequence[int]) -> tuple[Array, Array]:
        """(F, S, r, k), (F, S): values of all rows and the worst violations, at some sizes of the ranking."""
        arrays, (F, problems, r) = self.arrays, self.labels.shape
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
