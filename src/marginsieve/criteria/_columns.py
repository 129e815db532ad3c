"""What filters share: blocks of columns, each over the rows where it is observed; levels of numbers; clusters of rows.

Samples count by their weight: whole numbers are counts, any other weights are brought to a mean of 1 first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..algebra.blocks import column_parts, parts
from ..batches.arrays import Backend, DeviceArray
from ..contracts import Array, Batch, IntArray, Matrix, TableView, is_sparse
from ..data.table import column_of
from ..solvers.execution import jit

TINY = 1e-12  # of the variance of a column: what counts as no variance inside the classes

Score = Callable[[Array, Array, Array], Array]  # columns as rows (p, m), labels (m,), weights (m,) -> (p,) or (r, p)


def as_rows(Z: Matrix, part: slice) -> Array:
    """(p, m): some columns of a table as rows, unpacked where it is sparse."""
    block = Z[:, part]
    return np.ascontiguousarray((block.toarray() if is_sparse(block) else block).T)


def by_block(table: TableView, y: Array, weight: Array, of: Score) -> Array:
    """(n,): a score by column, added over the class problems."""
    return np.asarray(np.sum([over_columns(table, label, weight, of) for label in y], axis=0))


def over_columns(table: TableView, label: Array, weight: Array, of: Score) -> Array:
    """(n,) or (r, n): `of` block by block; columns with missing cells one by one, over what is observed of them.

    A column of which one class is not observed at all, or no class twice, has 0. Labels may be numbers.
    """
    Z, weight = table.Z, as_counts(weight)
    pieces = []
    for part in column_parts(table.shape):
        z = as_rows(Z, part)
        gaps = np.flatnonzero(np.isnan(z).any(axis=1))
        scores = of(np.nan_to_num(z, nan=0.0) if len(gaps) else z, label, weight)
        # Columns with gaps have rows of their own; the others share all sums of a block.
        for k in gaps:
            seen = ~np.isnan(z[k])
            known = is_enough(label[seen], weight[seen])
            scores[..., k] = of(z[[k]][:, seen], label[seen], weight[seen])[..., 0] if known else 0.0
        pieces.append(scores)
    return np.concatenate(pieces, axis=-1)


def by_class_and_kind(
    table: TableView,
    y: Array,
    weight: Array,
    numbers: Score,
    categories: Callable[[Array], float],
    kinds: Sequence[str] = ("nominal",),
) -> Array:
    """(k, n): a score by class problem and column; one for columns of some kinds, another for the rest."""
    other = np.array([kind in kinds for kind in table.kind])
    out = np.empty((len(y), len(other)))
    if not other.all():
        part = table if not other.any() else table.columns(np.flatnonzero(~other))
        out[:, ~other] = [over_columns(part, label, weight, numbers) for label in y]
    out[:, other] = _by_level(table, y, as_counts(weight), np.flatnonzero(other), categories)
    return out


def _by_level(table: TableView, y: Array, weight: Array, features: IntArray, of: Callable[[Array], float]) -> Array:
    """(k, features): `of` the weights (levels, 2) of positives and negatives by category of some columns."""
    out = np.zeros((len(y), len(features)))
    for f, j in enumerate(features):
        z = column_of(table.Z, j)
        seen = ~np.isnan(z)
        level = np.unique(z[seen], return_inverse=True)[1]
        for k, label in enumerate(y):
            positive = np.where(label[seen] > 0, weight[seen], 0.0)
            sides = np.bincount(level, positive), np.bincount(level, weight[seen] - positive)
            out[k, f] = of(np.column_stack(sides)) if is_enough(label[seen], weight[seen]) else 0.0
    return out


def is_enough(label: Array, weight: Array) -> bool:
    """Whether a column is observed at two values of the target, and more than once at one of two."""
    known, place = np.unique(label[weight > 0], return_inverse=True)
    return len(known) > 2 or (len(known) == 2 and np.bincount(place, weight[weight > 0]).max() > 1)


def as_counts(weight: Array) -> Array:
    """Whole numbers are counts; any other weights are brought to a mean of 1."""
    if np.all(weight == np.rint(weight)):
        return weight
    # Rounded, so that weights that differ by a factor give the same counts to the last digit.
    return np.asarray(np.round(weight * (len(weight) / weight.sum()), 12))


def moments(z: Array, label: Array, weight: Array) -> tuple[list[Array], list[Array], list[float], Array]:
    """Means and variances (p,) of positives and negatives, their weights, and the least variance that counts."""
    z = z - (z @ weight / weight.sum())[:, None]  # the variances are differences of squares: keep the means small
    square = z * z
    mean, variance, total = [], [], []
    for side in (1.0, -1.0):
        w = weight * (label == side)
        total.append(float(w.sum()))
        mean.append(z @ w / total[-1])
        variance.append(np.maximum(square @ w / total[-1] - mean[-1] ** 2, 0.0))
    return mean, variance, total, TINY * (square @ weight) / weight.sum()


# Columns of numbers cut into levels, all of a block at once; both ways look at the training rows alone.
#
# Shapes: z (p, m) holds columns as rows, what comes back is a level number for each cell (p, m).

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


# k-means without a random start, on coordinates that keep all distances between rows.

FLAT = 1e-10  # of the largest eigenvalue: what counts as no direction


def centre_columns(Z: Matrix, part: slice, weight: Array) -> Array:
    """(p, m): some columns as rows, their weighted mean taken off, missing cells at the mean."""
    z = as_rows(Z, part)
    seen = ~np.isnan(z)
    z = np.where(seen, z, 0.0)
    z -= ((z @ weight) / np.maximum(seen @ weight, 1e-300))[:, None]
    return np.asarray(np.where(seen, z, 0.0))


def products(Z: Matrix, weight: Array) -> Array:
    """(m, m): inner products of the centred rows."""
    G = np.zeros((Z.shape[0], Z.shape[0]))
    for part in parts(Z.shape[1]):
        z = centre_columns(Z, part, weight)
        G += z.T @ z
    return G


def coordinates(Z: Matrix, weight: Array) -> Array:
    """(m, r): rows in as many coordinates as they span, with the distances of the table."""
    if Z.shape[1] <= Z.shape[0]:
        return np.ascontiguousarray(centre_columns(Z, slice(None), weight).T)
    # Distances between m rows need at most m coordinates: the eigenvectors of their m x m products, not n columns.
    value, vector = np.linalg.eigh(products(Z, weight))
    used = value > FLAT * value.max(initial=0.0)
    return np.asarray(vector[:, used] * np.sqrt(value[used]))


def split(x: Array, weight: Array, k: int, rounds: int) -> IntArray:
    """(m,) the part of each row: k-means from a start by main directions, at most so many rounds."""
    part = _first(x, weight, k)
    for _ in range(rounds):
        share = np.array([weight * (part == p) for p in range(int(part.max()) + 1)])
        centre = share @ x / share.sum(axis=1, keepdims=True)
        # |x - centre|^2 without |x|^2, which is the same for all centres.
        moved = ((centre**2).sum(axis=1) - 2.0 * x @ centre.T).argmin(axis=1)
        if len(np.unique(moved)) < len(centre) or np.array_equal(moved, part):
            break
        part = moved.astype(np.intp)
    return part


def _first(x: Array, weight: Array, k: int) -> IntArray:
    """The part of largest spread is cut at its mean across its main direction until there are k."""
    part, least = np.zeros(len(x), dtype=np.intp), FLAT * _spread(x, weight)
    while part.max() < k - 1:
        inside = [np.flatnonzero(part == p) for p in range(int(part.max()) + 1)]
        spread = [_spread(x[rows], weight[rows]) for rows in inside]
        # No part has any spread left: there are fewer distinct rows than parts asked for.
        if max(spread) <= least:
            break
        rows = inside[int(np.argmax(spread))]
        away = x[rows] - np.average(x[rows], axis=0, weights=weight[rows])
        main = np.linalg.svd(away * np.sqrt(weight[rows])[:, None], full_matrices=False)[2][0]
        side = away @ main
        cut = rows[side > 0 if side.max() >= -side.min() else side < 0]
        if not 0 < len(cut) < len(rows):  # what is left of a spread is rounding
            break
        part[cut] = part.max() + 1
    return part


def _spread(x: Array, weight: Array) -> float:
    away = x - np.average(x, axis=0, weights=weight)
    return float(weight @ (away**2).sum(axis=1))
