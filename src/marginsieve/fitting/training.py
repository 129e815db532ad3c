"""From a training part to a path, and from a path and a size to a model.

part -> prepare -> search -> Path;   Path, size -> Model: the machine refitted on the chosen features

A part is made ready from its rows alone: columns that vary, standardised, oversampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from ..batches.arrays import backend_for, explain_device_errors
from ..contracts import (
    Array,
    BatchedPart,
    BoolArray,
    HoldsOut,
    IntArray,
    JudgingRows,
    Machine,
    Matrix,
    Path,
    Refines,
    Solution,
    Step,
    View,
    is_batched,
    is_sparse,
    resources_of,
)
from ..data.stored import is_stored
from ..data.table import Table
from ..errors import InputError
from ..outcomes import Target
from ..problem import Problem
from ..solvers.execution import jit
from .batched_searches import SMALLEST, TrainingPart, inside_batch_fits, rank_batched
from .rows import Rows
from .settings import Plan

# -- preparation ------------------------------------------------------------------------------------------------------

WORTH_MOVING = 2e9  # multiplications of a kernel matrix from which on it is made on a device
SAFE = 2.0**200  # squares of squares of ranges between one over this and this are numbers


@dataclass(frozen=True)
class Scaling:
    """z -> (z - shift) * factor, by feature; a sparse table is not shifted, which the linear kernel cannot tell.

    With `fills` a missing cell is taken for the shift of its column, which is its mean.
    """

    shift: Array
    factor: Array
    fills: bool = False

    @classmethod
    def fit(cls, table: Table, weight: Array) -> Scaling:
        """To mean 0 and variance 1 over the weighted rows; constant columns and categories are left as they are."""
        Z, nominal = table.Z, np.array([kind == "nominal" for kind in table.kind], dtype=bool)
        share = weight / weight.max()
        share /= share.sum()
        size = _powers_of_two(table)  # squares of very large or very small numbers are none
        if is_sparse(Z):
            mean = np.asarray(share @ Z)
            cells = (Z.data - _by_cell(Z, mean)) * _by_cell(Z, 1.0 / size)
            seen = sparse.csc_array((np.ones(len(Z.data)), Z.indices, Z.indptr), shape=Z.shape)
            squares = sparse.csc_array((cells**2, Z.indices, Z.indptr), shape=Z.shape)
            variance = np.asarray(share @ squares) + (1.0 - np.asarray(share @ seen)).clip(0.0) * (mean / size) ** 2
            shift = np.zeros(len(mean))
        else:
            shift, variance = np.empty(len(size)), np.empty(len(size))
            for part, rows in column_blocks(Z):
                _moments(rows, share, 1.0 / size[part], shift[part], variance[part])
        deviation = np.where(nominal, 1.0, np.sqrt(variance) * size)
        return cls(np.where(nominal, 0.0, shift), 1.0 / np.where(deviation > 0, deviation, 1.0))

    @classmethod
    def from_means(cls, table: Table, weight: Array) -> Scaling:
        """To mean 0 over the weighted rows, categories left as they are.

        A machine with an intercept is the same on a linear kernel, but for the rounding that large offsets bring.
        """
        mean = weight / weight.sum() @ table.Z
        return cls(np.where([kind == "nominal" for kind in table.kind], 0.0, mean), np.ones(len(mean)))

    @classmethod
    def from_extremes(cls, table: Table) -> Scaling | None:
        """Columns of numbers whose range is extreme, to a range near 1 and exactly; None where none is."""
        size, real = _powers_of_two(table), np.array([kind == "real" for kind in table.kind])
        extreme = real & ((size > SAFE) | (size < 1.0 / SAFE))
        return cls(np.zeros(len(size)), np.where(extreme, 1.0 / size, 1.0)) if extreme.any() else None

    def apply(self, Z: Matrix) -> Matrix:
        if is_sparse(Z):
            return sparse.csc_array((Z.data * _by_cell(Z, self.factor), Z.indices, Z.indptr), shape=Z.shape)
        if is_stored(Z):
            return Z.scale(self.shift, self.factor)
        out = np.empty(Z.shape, order="F")
        _scale(_columns_as_rows(Z), self.shift, self.factor, self.fills, out.T)
        return out

    def columns(self, index: IntArray) -> Scaling:
        return replace(self, shift=self.shift[index], factor=self.factor[index])


def _by_cell(Z: Any, values: Array) -> Array:
    """For each stored cell of a matrix by columns, the value of its column."""
    return np.asarray(np.repeat(values, np.diff(Z.indptr)))


def _columns_as_rows(Z: Array) -> Array:
    """(n, m): the columns of a dense table as rows, contiguous; the table itself turned round where that is so."""
    return np.ascontiguousarray(np.asarray(Z, dtype=np.float64).T)


def column_blocks(Z: Any) -> Iterator[tuple[slice, Array]]:
    """The columns of a table as rows: all of them, or a few at a time where they stay in a file."""
    if is_stored(Z):
        yield from Z.blocks()
    else:
        yield slice(0, Z.shape[1]), _columns_as_rows(Z)


@jit
def _moments(rows: Array, share: Array, unit: Array, mean: Array, variance: Array) -> None:
    """Weighted mean and variance of each row, the variance in units of `unit` (n,), in two passes over it."""
    for j in range(rows.shape[0]):
        row, total, square = rows[j], 0.0, 0.0
        for i in range(row.shape[0]):
            total += share[i] * row[i]
        for i in range(row.shape[0]):
            d = (row[i] - total) * unit[j]
            square += share[i] * (d * d)
        mean[j], variance[j] = total, square


@jit
def _scale(rows: Array, shift: Array, factor: Array, fills: bool, out: Array) -> None:
    """(row - shift) * factor into out; with `fills` 0 where a cell is missing."""
    for j in range(rows.shape[0]):
        row, here, minus, times = rows[j], out[j], shift[j], factor[j]
        for i in range(row.shape[0]):
            here[i] = (row[i] - minus) * times
        if fills:
            for i in range(row.shape[0]):
                here[i] = here[i] if here[i] == here[i] else 0.0


def _powers_of_two(table: Table) -> Array:
    """(n,) the size of each column's range: a division by it is exact."""
    _, exponent = np.frexp(table.spread)
    return np.asarray(np.ldexp(1.0, exponent))


@dataclass(frozen=True)
class Prepared:
    """A training part ready for a search: scaled, oversampled, columns that do not vary left out."""

    problem: Problem  # over `usable` alone
    target: Target  # of the problem's rows
    usable: IntArray  # the table's features that vary
    scaling: Scaling | None
    most: int  # features that are searched: those that vary, or those that a prefilter leaves

    def with_weights(self, feature_weight: Array) -> Prepared:
        """The same with other weights of the kernel; the counts of the work stay."""
        return replace(self, problem=replace(self.problem, feature_weight=feature_weight))

    def rows(self, Z: Matrix) -> Matrix:
        """Rows of the whole table as the problem sees them."""
        part = Z[:, self.usable]
        return part if self.scaling is None else self.scaling.apply(part)


def varying_columns(table: Table) -> BoolArray:
    """(n,) whether a column takes values that differ by more than rounding."""
    low, high = table.bounds
    return np.asarray(high - low > np.maximum(1e-12 * np.maximum(np.abs(low), np.abs(high)), SMALLEST))


def prepare(plan: Plan, part: Rows, rng: np.random.Generator) -> Prepared:
    """Leave out columns that do not vary, standardise, oversample: all from these rows alone."""
    table, n = part.table, part.table.shape[1]
    target = part.target.with_settings(plan.outcome)
    usable = np.flatnonzero(varying_columns(table)).astype(np.intp)
    if not len(usable):
        raise InputError("every column is constant in the training rows: there is nothing to select")
    if len(usable) < n:
        table = table.columns(usable)
    if plan.fills and not table.is_sparse:
        table = replace(table, Z=_fill_gaps(table.Z, target.weight))
    scaling = None
    if plan.standardize and not plan.kernel.unit_free:
        scaling = Scaling.fit(table, target.weight)
    elif plan.kernel.unit_free:
        scaling = Scaling.from_extremes(table)
    elif plan.kernel.linear and not table.is_sparse:
        scaling = Scaling.from_means(table, target.weight)
    if scaling is not None:
        scaling = replace(scaling, fills=plan.fills)
        table = replace(table, Z=scaling.apply(table.Z))
    if plan.sampler is not None:
        Z, target = target.resample(plan.sampler, table.Z, rng)
        table = replace(table, Z=Z)
    table, (_, y, cost) = table.with_row_weights(target.weight), target.machine_target
    problem = Problem(
        table=table,
        y=y,
        cost=cost,
        sample_weight=target.weight,
        feature_weight=plan.kernel.start(table),
        kernel=plan.kernel,
        machine=plan.machine,
        criterion=plan.criterion,
        keep=np.flatnonzero(np.isin(usable, plan.keep)).astype(np.intp),
        groups=target.groups,
    )
    left = len(usable) if plan.prefilter is None else max(plan.prefilter[1], len(problem.keep))
    return Prepared(problem, target, usable, scaling, min(left, len(usable)))


def on_device(plan: Plan, problem: Problem) -> Problem:
    """The same with its kernel matrices on a device, where the search rescales them often and the table is large."""
    table, often = problem.table, resources_of(plan.search).rescales_often
    if not (often and is_batched(plan.machine) and is_batched(plan.kernel)):
        return problem
    if plan.kernel.unit_free or table.is_sparse or is_stored(table.Z):
        return problem
    m, n = table.shape
    arrays = backend_for(plan.device, float(m) * m * n / WORTH_MOVING)
    return problem if arrays is None else problem.fresh_copy(table=table.with_backend(arrays))


def _fill_gaps(Z: Array, weight: Array) -> Array:
    """Missing cells at the weighted mean of the known cells of their column."""
    gaps = np.isnan(Z)
    if not gaps.any():
        return Z
    known = np.where(gaps, 0.0, Z)
    return np.where(gaps, weight @ known / np.maximum(weight @ ~gaps, 1e-300), known)


def with_validation(plan: Plan, part: Rows, share: float, name: str, rng: np.random.Generator) -> Prepared:
    """A share of the rows is held out for the criterion or the search, everything else is fitted without them."""
    target = part.target
    held = target.draw(share, rng, at_least=1, leave=0)
    known = len(np.unique(target.strata))
    if any(len(np.unique(target.strata[side])) < known for side in (held, ~held)):
        raise InputError(
            f"{name} is {share!r} and a class has too few rows (or groups) to be on both sides "
            f"({min(target.row_counts)} in a training part): use "
            + ("another search" if name.startswith("search") else "held_out=0")
        )
    inner = prepare(plan, part.take(np.flatnonzero(~held)), rng)
    outside = part.take(np.flatnonzero(held))
    labels = outside.target.with_settings(plan.outcome).machine_target.y
    judging = JudgingRows(inner.rows(outside.table.Z), labels, outside.target.weight)
    return replace(inner, problem=inner.problem.fresh_copy(validation=judging))


# -- searches and models ----------------------------------------------------------------------------------------------

GROWN_ROWS = 1000  # up to which a kernel matrix over training and test rows grows from size to size


@dataclass(frozen=True)
class Searched:
    """A prepared part and a path over the features of its table: enough to refit on any of the path's subsets."""

    ready: Prepared
    path: Path

    @property
    def problem(self) -> Problem:
        """The problem over the features that vary."""
        return self.ready.problem

    def with_weights(self, feature_weight: Array) -> Searched:
        """The same with other weights of the kernel."""
        return replace(self, ready=self.ready.with_weights(feature_weight))

    def with_machine(self, machine: Machine) -> Searched:
        """The same path for another machine, with counts of its own."""
        ready = replace(self.ready, problem=self.problem.with_machine(machine))
        return replace(self, ready=ready, path=replace(self.path, replay={}))


@dataclass(frozen=True)
class Model:
    """A machine on some features; `view` is what it was solved on: a Gram or columns."""

    machine: Machine
    features: IntArray
    scaling: Scaling | None
    view: View
    solutions: tuple[Solution, ...]

    def rows(self, Z: Matrix) -> Matrix:
        """Rows of the whole table as the machine sees them."""
        part = Z[:, self.features]
        if is_sparse(part) and not self.view.table.is_sparse:
            part = part.toarray()
        return part if self.scaling is None else self.scaling.apply(part)

    def values(self, rows: Matrix) -> Array:
        """(rows, k) decision values of rows of the selected features, scaled."""
        return np.column_stack([self.machine.decision(solution, self.view, rows) for solution in self.solutions])

    def decision(self, Z: Matrix) -> Array:
        """(rows, k) decision values of rows of the whole table."""
        with np.errstate(all="ignore"):
            return finite(self.values(self.rows(Z)))

    def in_wider_table(self, columns: IntArray) -> Model:
        """The same model in a wider table, of which it has seen these columns."""
        return replace(self, features=columns[self.features])

    @property
    def models(self) -> tuple[Model, ...]:
        """The models whose decision values are averaged: this one."""
        return (self,)

    @property
    def middle(self) -> Array:
        """(1, k) where each model's decision values are cut before they are averaged."""
        return np.zeros((1, len(self.solutions)))

    @property
    def unit(self) -> Array:
        """(1, k) by what each model's decision values are divided before they are averaged."""
        return np.ones((1, len(self.solutions)))


@dataclass(frozen=True)
class Blended:
    """Several models whose decision values are averaged: the mean over models v of (value_v - middle_v) / unit_v."""

    models: tuple[Model, ...]
    middle: Array  # (v, k)
    unit: Array  # (v, k)

    def in_wider_table(self, columns: IntArray) -> Blended:
        """The same models in a wider table, of which they have seen these columns."""
        return replace(self, models=tuple(model.in_wider_table(columns) for model in self.models))

    @property
    def features(self) -> IntArray:
        """The features of all models."""
        return np.unique(np.concatenate([model.features for model in self.models]))

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """The solutions of all models."""
        return tuple(solution for model in self.models for solution in model.solutions)

    def decision(self, Z: Matrix) -> Array:
        """(rows, k) decision values of rows of the whole table."""
        values = [model.decision(Z) for model in self.models]
        with np.errstate(all="ignore"):
            return finite(average_values(values, self.middle, self.unit))


AnyModel = Model | Blended


def average_values(values: Sequence[Array], middle: Array, unit: Array) -> Array:
    """The mean of (value - middle) / unit over views; values (rows, k), middle and unit (v, k)."""
    scaled = [(value - cut) / by for value, cut, by in zip(values, middle, unit, strict=True)]
    return np.asarray(np.mean(scaled, axis=0))


def finite(value: Array) -> Array:
    """Decision values (rows, ...); refuses those that are no numbers."""
    if not np.isfinite(value).all():
        row = int(np.argwhere(~np.isfinite(value))[0][0])
        raise InputError(f"the decision value of row {row + 1} is not a finite number: its cells are out of range")
    return value


def fit_model(plan: Plan, searched: Searched, size: int) -> Model:
    """The machine on the path's subset of this size (at most the number of features that were searched)."""
    ready, problem = searched.ready, searched.problem
    local, weight = _subset(searched, size)
    small = problem.part(local, machine=plan.final, feature_weight=weight[local])
    view = small.view()
    solutions = _solutions_of_search(searched, size)
    if not solutions:
        solutions = _refine_solutions(small, view, searched.path.replay.get(len(local)) or small.solve(view))
    problem.count(small)
    scaling = None if ready.scaling is None else ready.scaling.columns(local)
    return Model(small.machine, ready.usable[local], scaling, view, solutions)


def _refine_solutions(problem: Problem, view: View, solutions: tuple[Solution, ...]) -> tuple[Solution, ...]:
    """The solutions of a model, which predicts from them, more tightly than those of a search."""
    machine = problem.machine
    if not isinstance(machine, Refines):
        return solutions
    return tuple(
        machine.refine(solution, view, y, cost) if solution.converged else solution
        for solution, y, cost in zip(solutions, problem.y, problem.cost, strict=True)
    )


def decisions(plan: Plan, searched: Searched, sizes: Sequence[int], Z: Matrix) -> Array:
    """(S, rows, k): decision values of `fit_model` at each size for rows of the whole table."""
    Z = searched.ready.rows(Z)
    last = searched.problem.with_machine(plan.final)
    values = _by_growing(searched, last, sorted(sizes), Z)
    if values is None:
        values = _by_shrinking(searched, last, sorted(sizes, reverse=True), Z)
    searched.problem.count(last)
    return np.array([values[size] for size in sizes])


def _by_growing(searched: Searched, last: Problem, sizes: Sequence[int], Z: Matrix) -> dict[int, Array] | None:
    """Decision values by size, from the smallest on: one kernel matrix grows in place, and machines start warm.

    None where kernel matrices are not sums that grow: weights that differ from size to size, or machines without one.
    """
    path, m = searched.path, last.table.shape[0]
    largest, weight = _subset(searched, sizes[-1])
    if path.weights or path.solutions or last.machine.needs != "gram" or m > GROWN_ROWS:
        return None
    whole = replace(last, feature_weight=weight).gram(largest)
    sums = None if whole.matrix_free else whole.subset_sums(Z)
    if sums is None:
        return None
    order = np.searchsorted(largest, np.searchsorted(searched.ready.usable, path.order[: len(largest)]))
    values: dict[int, Array] = {}
    A, squares, before = np.zeros((m + len(Z), m)), np.zeros(m + len(Z)), 0
    warm: tuple[Solution, ...] | None = None
    for size in sizes:
        count = max(1, min(size, len(largest)))
        if count > before:
            more = sums.sums_over(order[before:count])
            A += more[0]
            squares += more[1]
        before = count
        gram = sums.gram(A[:m], np.sort(order[:count]))
        warm = path.replay.get(count) or last.solve(gram, warm)
        if all(solution.is_expansion for solution in warm):
            K, diagonal = sums.kernel(gram, A[m:], squares)
            values[size] = np.column_stack(
                [K @ solution.coef + solution.diagonal * diagonal + solution.intercept for solution in warm]
            )
        else:
            values[size] = np.column_stack([last.machine.decision(solution, gram, Z) for solution in warm])
    return values


def _by_shrinking(searched: Searched, last: Problem, sizes: Sequence[int], Z: Matrix) -> dict[int, Array]:
    """Decision values by size, from the largest on.

    From a size to the next smaller one the kernel matrix is downdated where its weights stay, and a machine with one
    optimum starts from its last solution.
    """
    values: dict[int, Array] = {}
    view: View | None = None
    warm: tuple[Solution, ...] | None = None
    for size in sizes:
        local, weight = _subset(searched, size)
        if view is not None and np.array_equal(view.feature_weight[local], weight[local]):
            stay = np.isin(view.features, local, kind="table")
            warm = None if warm is None else _restrict_solutions(warm, stay)
            view = view if stay.all() else view.without(view.features[~stay])
        else:
            view, warm = replace(last, feature_weight=weight).view(local), None
        replayed = searched.path.replay.get(len(local), ())
        solutions = _solutions_of_search(searched, size) or replayed or last.solve(view, warm)
        warm = solutions
        values[size] = np.column_stack([last.machine.decision(solution, view, Z) for solution in solutions])
    return values


def _restrict_solutions(solutions: tuple[Solution, ...], stay: BoolArray) -> tuple[Solution, ...] | None:
    """Where to start without some of the features; None for programs, whose heuristics would depend on it."""
    if any(solution.status for solution in solutions):
        return None
    return tuple(
        solution if solution.weights is None else replace(solution, weights=solution.weights[stay])
        for solution in solutions
    )


def _subset(searched: Searched, size: int) -> tuple[IntArray, Array]:
    """The usable features of the path's subset of this size, sorted, and the weights (of all) at which it is fitted."""
    problem, ready = searched.problem, searched.ready
    chosen = searched.path.order[: max(1, min(size, ready.most))]
    place = np.searchsorted(ready.usable, chosen)
    learned, weight = searched.path.weights_at(len(chosen)), problem.feature_weight
    if learned is not None:
        weight = weight.copy()
        weight[place] = (np.sqrt(problem.kernel.divisor(problem.table, place)) * np.sqrt(learned)) ** 2
    return np.sort(place), weight


def _solutions_of_search(searched: Searched, size: int) -> tuple[Solution, ...]:
    """The solutions of the search itself at this size, where it has them."""
    stop = searched.path.stop
    return searched.path.solutions if stop is not None and stop.size == size else ()


def search_once(plan: Plan, part: Rows, rng: np.random.Generator) -> Searched:
    """The path over all features of the part; features that do not vary come last, in the order of the table."""
    ready = prepare(plan, part, rng)
    if inside_batch_fits() and (of_batch := _from_batch(plan, part, ready)) is not None:
        return of_batch
    parts: tuple[object, ...] = plan.search, plan.criterion
    judge = next((holder for holder in parts if isinstance(holder, HoldsOut) and holder.held_out_share), None)
    inner = ready if judge is None else with_validation(plan, part, judge.held_out_share, judge.held_out_name, rng)
    if plan.prefilter:
        inner, path = _search_prefiltered(plan, inner, rng)
    else:
        problem = on_device(plan, inner.problem)
        with explain_device_errors(problem.table.arrays):
            path = plan.search.run(problem, rng)
        if problem is not inner.problem:
            inner.problem.count(problem)
    n = part.table.shape[1]
    path = _place_path(path, inner.usable, np.setdiff1d(np.arange(n), inner.usable), n)
    if judge is None:
        return Searched(inner, path)
    # columns that vary, but not among the rows that were searched, rank before those that never do
    ready.problem.count(inner.problem)
    weight = ready.problem.feature_weight.copy()
    weight[np.searchsorted(ready.usable, inner.usable)] = inner.problem.feature_weight
    kept = np.isin(path.order, plan.keep) & np.isin(path.order, ready.usable)
    order = path.order[np.lexsort((~np.isin(path.order, ready.usable), ~kept))]
    path = replace(path, order=order, replay={})  # whose machines saw fewer rows
    return Searched(ready.with_weights(weight), path)


def _from_batch(plan: Plan, part: Rows, ready: Prepared) -> Searched | None:
    """The search on these rows, run in step with others; None where that is for the CPU."""
    m, n = part.table.shape
    whole = TrainingPart(np.arange(m), np.empty(0, dtype=np.intp), part.target)
    results = rank_batched(plan, part.table, [whole], ())
    if results is None:
        return None
    (ranking,), scores = results, np.full(n, np.nan)
    scores[ranking.order[: ranking.usable]] = ranking.scores
    ready.problem.count(ranking.work)
    steps = ranking.steps or (Step(ranking.usable, 0.0, 0.0, 0.0),)
    return Searched(ready, Path(ranking.order, scores, steps, cast(BatchedPart, plan.search).ended))


def _place_path(path: Path, inside: IntArray, rest: IntArray, n: int) -> Path:
    """A path over some of n features in the numbering of all, the rest after it without a score."""
    if len(inside) == n:
        return path
    scores = np.full(n, np.nan)
    scores[inside] = path.scores
    order = np.concatenate([inside[path.order], rest]).astype(np.intp)
    trials = None if path.trials is None else path.trials.embed(inside, n)
    stages = tuple(replace(stage, order=inside[stage.order]) for stage in path.stages)
    return replace(path, order=order, scores=scores, trials=trials, stages=stages)


def _search_prefiltered(plan: Plan, ready: Prepared, rng: np.random.Generator) -> tuple[Prepared, Path]:
    """Search among the best columns of a filter; the others follow in the filter's order.

    The machine on what is selected works at the weights of the search.
    """
    assert plan.prefilter is not None
    problem, (score, size) = ready.problem, plan.prefilter
    value = np.asarray(score(problem.table, problem.y, problem.sample_weight))
    kept = np.isin(np.arange(len(value)), problem.keep)
    order = np.lexsort((-value, ~kept)).astype(np.intp)
    size = max(size, int(kept.sum()))
    inside, outside = np.sort(order[:size]), order[size:]
    small = problem.part(inside)
    small = replace(small, feature_weight=plan.kernel.start(small.table))
    path: Path = plan.search.run(small, rng)
    problem.count(small)
    weight = problem.feature_weight.copy()
    weight[inside] = small.feature_weight
    return ready.with_weights(weight), _place_path(path, inside, outside, len(value))
