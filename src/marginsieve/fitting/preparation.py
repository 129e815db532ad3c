"""A training part made ready for a search: columns that vary, standardised, oversampled, from its rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..batches.arrays import backend_for
from ..contracts import (
    Array,
    BoolArray,
    IntArray,
    JudgingRows,
    Matrix,
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
from .rows import Rows
from .settings import Plan

WORTH_MOVING = 2e9  # multiplications of a kernel matrix from which on it is made on a device
SMALLEST = 1e-305  # one over a smaller range is no number
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


def varying(table: Table) -> BoolArray:
    """(n,) whether a column takes values that differ by more than rounding."""
    low, high = table.bounds
    return np.asarray(high - low > np.maximum(1e-12 * np.maximum(np.abs(low), np.abs(high)), SMALLEST))


def prepare(plan: Plan, part: Rows, rng: np.random.Generator) -> Prepared:
    """Leave out columns that do not vary, standardise, oversample: all from these rows alone."""
    table, n = part.table, part.table.shape[1]
    target = part.target.with_settings(plan.outcome)
    usable = np.flatnonzero(varying(table)).astype(np.intp)
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
