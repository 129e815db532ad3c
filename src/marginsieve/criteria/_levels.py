"""Columns of numbers cut into levels, all of a block at once; both ways look at the training rows alone.

Shapes: z (p, m) holds columns as rows, what comes back is a level number for each cell (p, m).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..batches.arrays import Backend, DeviceArray
from ..contracts import Array, Batch, IntArray, TableView
from ..solvers.jit import jit
from ._columns import as_counts, by_class_and_kind

ARRAYS = 12  # of the size of a block of columns, while it is cut


def by_level(
    table: TableView, y: Array, weight: Array, of: Callable[[Array], Array], bins: int, cuts: str = "equal_frequency"
) -> Array:
    """(k, n): a score of counts (p, levels, 2) by class problem and column, of numbers after they are cut."""

    def numbers(z: Array, label: Array, weight: Array) -> Array:
        levels = mdl(z, (label > 0).astype(np.intp), weight) if cuts == "mdl" else equal_frequency(z, weight, bins)
        return of(counts(levels, label, weight))

    return by_class_and_kind(table, y, weight, numbers, lambda counted: float(of(counted[None])[0]))


def by_level_batched(batch: Batch, of: Callable[[DeviceArray], DeviceArray], bins: int) -> DeviceArray:
    """(k, F, n): `by_level` with levels of about equal weight, for many training parts."""
    arrays, (F, k, _), n = batch.arrays, batch.labels.shape, batch.X.shape[0]
    out, weights = arrays.zeros(k, F, n), arrays.to_host(batch.weight)
    for f, rows in enumerate(batch.rows):
        weight, places = arrays.to_device(as_counts(weights[f, rows])), arrays.to_device(rows, np.int64)
        positive = [arrays.xp.where(batch.labels[f, c][places] > 0, weight, 0.0) for c in range(k)]
        step = int(max(64, 0.25 * arrays.free_bytes() / (8.0 * ARRAYS * len(rows))))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            order, level = by_rank_batched(arrays, batch.X[part][:, places], weight, bins)
            whole = _by_number(arrays, level, weight[order], bins)
            for c in range(k):
                sides = _by_number(arrays, level, positive[c][order], bins)
                out[c, f, part] = of(arrays.xp.stack([sides, whole - sides], -1))
    return out


def by_rank_batched(arrays: Backend, z: DeviceArray, weight: DeviceArray, bins: int) -> tuple[DeviceArray, DeviceArray]:
    """(p, m), (p, m): the places of the values of each row of z in order, and the level of each, as in `_by_rank`."""
    xp = arrays.xp
    order = arrays.order(z)
    value = arrays.take_along(z, order)
    group = xp.zeros_like(order)  # equal values are one
    group[:, 1:] = xp.cumsum(xp.where(value[:, 1:] != value[:, :-1], 1, 0), axis=1)
    # The level of a value is that of the middle of its weight among all, so that equal values are never separated.
    here = arrays.add_at(arrays.zeros(*z.shape), group, weight[order])
    below = xp.cumsum(here, axis=1) - here
    level = xp.floor(bins * (below + 0.5 * here) / weight.sum())
    level = xp.where(level < bins - 1, level, bins - 1.0)
    return order, xp.where(group[:, -1:] < bins, 1.0 * group, arrays.take_along(level, group))


def _by_number(arrays: Backend, level: DeviceArray, weight: DeviceArray, bins: int) -> DeviceArray:
    """(p, bins): the sum of the weights (p, m) at each level (p, m)."""
    xp = arrays.xp
    return xp.stack([xp.where(level == k, weight, 0.0).sum(1) for k in range(bins)], -1)


def equal_frequency(z: Array, weight: Array, bins: int) -> IntArray:
    """Levels of about equal weight; equal values share one, and few distinct values keep a level each."""
    out = np.empty(z.shape, dtype=np.intp)
    _by_rank(z, np.argsort(z, axis=1), weight, bins, out)
    return out


def mdl(z: Array, codes: IntArray, weight: Array) -> IntArray:
    """Levels by class entropy: a cut is made where it pays for its own description (Fayyad and Irani 1993).

    An interval S of weight N with k classes is cut where the entropy of its two sides is smallest, if

        Ent(S) - Ent(sides) > (log2(N - 1) + log2(3^k - 2) - k Ent(S) + k1 Ent(S1) + k2 Ent(S2)) / N

    and so on within the two sides. A column without a cut has one level.
    """
    return np.asarray([np.searchsorted(cuts, row) for row, cuts in zip(z, mdl_cuts(z, codes, weight), strict=True)])


def mdl_cuts(z: Array, codes: IntArray, weight: Array) -> list[Array]:
    """The cuts of `mdl`, by column: midway between two values, in order."""
    place, count = np.empty(z.shape, dtype=np.float64), np.empty(len(z), dtype=np.intp)
    _by_entropy(z, np.argsort(z, axis=1, kind="stable"), codes, weight, int(codes.max()) + 1, place, count)
    return [np.sort(row[:c]) for row, c in zip(place, count, strict=True)]


def counts(levels: IntArray, label: Array, weight: Array) -> Array:
    """(p, levels, 2): the weight of the positives and of the negatives in each level of each row of levels (p, m)."""
    out = np.zeros((len(levels), int(levels.max(initial=0)) + 1, 2))
    _count(levels, np.where(label > 0, weight, 0.0), np.where(label > 0, 0.0, weight), out)
    return out


@jit
def _count(levels: IntArray, positive: Array, negative: Array, out: Array) -> None:
    for j in range(levels.shape[0]):
        for i in range(levels.shape[1]):
            out[j, levels[j, i], 0] += positive[i]
            out[j, levels[j, i], 1] += negative[i]


@jit
def _by_rank(z: Array, order: IntArray, weight: Array, bins: int, out: IntArray) -> None:
    """A level by the middle rank of a value among all weights, or by its place where there are few values."""
    m, total = z.shape[1], weight.sum()
    for j in range(z.shape[0]):
        row, place = z[j], order[j]
        distinct = 1
        for i in range(1, m):
            distinct += row[place[i]] != row[place[i - 1]]
        below, start, value = 0.0, 0, 0
        while start < m:
            end, here = start, 0.0
            while end < m and row[place[end]] == row[place[start]]:
                here += weight[place[end]]
                end += 1
            level = value if distinct <= bins else min(bins - 1, int(bins * (below + 0.5 * here) / total))
            for i in range(start, end):
                out[j, place[i]] = level
            below, start, value = below + here, end, value + 1


@jit
def _entropy(counts: Array) -> tuple[float, int, float]:
    """(bits, classes that occur, weight)."""
    total, classes, bits = counts.sum(), 0, 0.0
    for c in counts:
        if c > 0.0:
            classes += 1
            bits -= c / total * np.log2(c / total)
    return bits, classes, total


@jit
def _by_entropy(
    z: Array, order: IntArray, codes: IntArray, weight: Array, classes: int, place: Array, count: IntArray
) -> None:
    m = z.shape[1]
    # With sums in front of each place the counts of any interval are one difference.
    passed = np.zeros((m + 1, classes))  # weights by class in front of each place of a column in order
    todo = np.empty((m + 1, 2), dtype=np.intp)
    for j in range(z.shape[0]):
        row, index = z[j], order[j]
        for i in range(m):
            passed[i + 1] = passed[i]
            passed[i + 1, codes[index[i]]] += weight[index[i]]
        count[j], waiting = 0, 1
        todo[0, 0], todo[0, 1] = 0, m
        while waiting:
            waiting -= 1
            low, high = todo[waiting]
            whole, k, N = _entropy(passed[high] - passed[low])
            least, cut = np.inf, -1
            for i in range(low + 1, high):
                if row[index[i]] != row[index[i - 1]]:
                    left, _, a = _entropy(passed[i] - passed[low])
                    right, _, b = _entropy(passed[high] - passed[i])
                    both = (a * left + b * right) / N
                    if both < least - 1e-12:  # the leftmost of equally good cuts, whatever rounding says
                        least, cut = both, i
            if cut < 0 or N <= 1.0:
                continue
            left, k1, _ = _entropy(passed[cut] - passed[low])
            right, k2, _ = _entropy(passed[high] - passed[cut])
            # Ent(S) - Ent(sides) > price / N, times N.
            price = np.log2(N - 1.0) + np.log2(3.0**k - 2.0) - (k * whole - k1 * left - k2 * right)
            if (whole - least) * N > price + 1e-9:
                place[j, count[j]] = 0.5 * (row[index[cut - 1]] + row[index[cut]])
                count[j] += 1
                todo[waiting, 0], todo[waiting, 1] = low, cut
                todo[waiting + 1, 0], todo[waiting + 1, 1] = cut, high
                waiting += 2
