"""ReliefF: a column is worth how much more it differs to near rows of other classes than to near rows of the own.

RReliefF asks the same of numbers: how much more a column differs between near rows whose targets are far apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra.blocks import column_parts
from ..batches.arrays import DeviceArray
from ..batches.pair_sums import DifferenceSums
from ..contracts import CATEGORICAL, KINDS, SIGNS, VALUES, Array, Batch, BoolArray, IntArray, TableView
from ..errors import whole_number
from ..problem import class_codes
from ..solvers.execution import jit
from ._columns import as_counts, as_rows, is_enough

AT_ONCE = 256  # columns of which scores are computed together
ROWS = 8  # of the distances that are computed together
DIGITS = 12  # of the largest distance: rows that agree so far are equally near


class ReliefF(BaseEstimator):
    """sum_i [ - mean of d_j(i, hits) + sum_c P(c) / (1 - P(c_i)) mean of d_j(i, misses of class c) ] / m, by column j.

    Hits and misses of row i are its nearest rows of each class by the sum of d over the columns (their mean where cells
    are missing). d is ``|u - v| / range`` for numbers and [u != v] for categories; in tables with both, numbers that
    differ by more than a standard deviation count as 1, as in scikit-rebate. Where a cell is missing, or no neighbor on
    one side has one, the row counts 0. All classes enter together, not one against the rest. A weight of 2 is a row
    twice; rows that are equally near share their place.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbors of each class.

    References
    ----------
    Kononenko, Estimating attributes: analysis and extensions of RELIEF, ECML 1994, 171-182; Robnik-Sikonja and
    Kononenko, Theoretical and empirical analysis of ReliefF and RReliefF, Machine Learning 53 (2003) 23-69.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import ReliefF
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=ReliefF(n_neighbors=5), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    in_batches: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("criterion", "n_neighbors", self.n_neighbors)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        codes, weight = class_codes(y), as_counts(weight)
        prior = np.bincount(codes, weight) / weight.sum()
        D = _distances(table, weight)
        near = _neighbors(D, codes, weight, int(self.n_neighbors))
        share = weight / weight.sum()
        pairs = _pair_weights(near, codes, share, prior)
        out = np.empty(table.shape[1])
        for part, z, nominal, limit in _blocks(table, weight):
            whole = ~np.isnan(z).any(axis=1)
            # For numbers without gaps the score is a sum over pairs of weight |z_i - z_j|, and the weights of the
            # pairs are the same for every column: `_pair_weights` computes them once.
            plain = whole & ~nominal & ~np.isfinite(limit)
            scores = np.zeros(len(z))
            scores[plain] = _plain_scores(np.ascontiguousarray(z[plain].T), *pairs)
            rest = np.flatnonzero(~plain)
            if len(rest):
                scores[rest] = _scores(z[rest], nominal[rest], limit[rest], codes, share, prior, *near)
            out[part] = scores
        return out

    def score_batched(self, batch: Batch, live: DeviceArray) -> DeviceArray:  # noqa: ARG002
        """(F, n): the same for many training parts without missing cells; neighbors are found on the host."""
        arrays, of = batch.arrays, batch.scales
        sums = DifferenceSums(arrays, batch.X, of, average=False, width=None)
        # Dividing by the range is a weight of 1 / range on the absolute differences.
        W = of.usable / arrays.xp.where(of.spread > 0, of.spread, 1.0)
        D = arrays.to_host(sums.square(sums.sums(W), 0.0))
        places = np.zeros((len(D), D.shape[1], D.shape[1]))
        weights = arrays.to_host(batch.weight)

        def compare(f: int) -> None:
            rows, codes = batch.rows[f], batch.strata[f]
            weight = as_counts(weights[f, rows])
            prior = np.bincount(codes, weight) / weight.sum()
            near = _neighbors(np.ascontiguousarray(D[f][np.ix_(rows, rows)]), codes, weight, int(self.n_neighbors))
            i, j, pair = _pair_weights(near, codes, weight / weight.sum(), prior)
            places[f, rows[i], rows[j]] = places[f, rows[j], rows[i]] = pair

        with ThreadPoolExecutor() as threads:  # the compiled loops of which run side by side
            list(threads.map(compare, range(len(D))))
        return sums.forms(sums.at_pairs(arrays.to_device(places)), W) * W


class RReliefF(BaseEstimator):
    """P(d_j | near and of other targets) - P(d_j | near and of alike targets), by column j, for a target of numbers.

    ::

        score_j = sum s d_y d_j / sum s d_y  -  sum s (1 - d_y) d_j / sum s (1 - d_y)

    The sums are over rows and their nearest rows by the sum of d over the columns; s shares a row's weight among its
    neighbors evenly, d_y is ``|y_i - y_k| / range of y``, and d_j is as in `ReliefF`. Pairs in which a cell of the
    column is missing are left out of its sums. With several problems their scores are added. A weight of 2 is a row
    twice; rows that are equally near share their place.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbors of each row.

    References
    ----------
    Robnik-Sikonja and Kononenko, Theoretical and empirical analysis of ReliefF and RReliefF, Machine Learning 53 (2003)
    23-69; all neighbors count alike here.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import RReliefF
    >>> X = np.random.default_rng(0).normal(size=(120, 6))
    >>> y = X[:, 2] * X[:, 5]
    >>> parts = {"machine": "kernel_ridge", "criterion": RReliefF(), "search": "top_k", "outcome": "numbers"}
    >>> SVMSelector(**parts, n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True)
    array([2, 5])
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("criterion", "n_neighbors", self.n_neighbors)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        weight, m = as_counts(weight), table.shape[0]
        start, other, share = _neighbors(
            _distances(table, weight), np.zeros(m, dtype=np.intp), weight, int(self.n_neighbors)
        )
        row = np.repeat(np.arange(m), np.diff(start))
        total = np.bincount(row, share, minlength=m)
        share = weight[row] * share / np.maximum(total[row], 1e-300)
        out = np.zeros(table.shape[1])
        for values in y:
            span = float(values[weight > 0].max() - values[weight > 0].min())
            if span > 0:
                apart = np.abs(values[row] - values[other]) / span
                out += _regression_scores(table, values, weight, (row, other, share, apart))
        return out


def _regression_scores(
    table: TableView, values: Array, weight: Array, pairs: tuple[IntArray, IntArray, Array, Array]
) -> Array:
    """(n,) scores from pairs of near rows, with what each counts for and how far apart their targets are."""
    out, (row, other, share, apart) = np.empty(table.shape[1]), pairs
    for part, z, nominal, limit in _blocks(table, weight):
        for f, j in enumerate(range(part.start, part.start + len(z))):
            d = np.abs(z[f, row] - z[f, other])
            d = np.where((d > limit[f]) | (nominal[f] & (d > 0)), 1.0, d)
            seen = ~np.isnan(z[f])
            known = share * ~np.isnan(d) * is_enough(values[seen], weight[seen])
            d, far, near = np.nan_to_num(d, nan=0.0), known @ apart, known @ (1.0 - apart)
            both = far > 0 and near > 0
            out[j] = (known * apart) @ d / far - (known * (1.0 - apart)) @ d / near if both else 0.0
    return out


def _blocks(table: TableView, weight: Array) -> Iterator[tuple[slice, Array, BoolArray, Array]]:
    """Columns as rows: in units of their range, which are categories, and from which difference on one counts as 1."""
    kinds = np.array([kind in CATEGORICAL for kind in table.kind])
    mixed = bool(kinds.any() and not kinds.all())
    for part in column_parts(table.shape):
        z = as_rows(table.Z, part)
        nominal = kinds[part]
        with np.errstate(all="ignore"):
            low, high = np.fmin.reduce(z, axis=1), np.fmax.reduce(z, axis=1)
        span = np.where(nominal | ~(high > low), 1.0, high - low)
        z = (z - np.where(nominal, 0.0, low)[:, None]) / span[:, None]
        whole = np.full(len(z), np.inf)
        if mixed:  # the weighted standard deviation of each row over its observed cells
            seen = ~np.isnan(z)
            filled, total = np.where(seen, z, 0.0), np.maximum(seen @ weight, 1e-300)
            mean = filled @ weight / total
            whole = np.sqrt((np.where(seen, z - mean[:, None], 0.0) ** 2) @ weight / total)
        yield part, z, nominal, whole


def _distances(table: TableView, weight: Array) -> Array:
    """(m, m): the sum of the differences, or their mean over the columns that both rows have where cells are missing.

    Two rows without a common cell are infinitely far apart.
    """
    m = table.shape[0]
    D, shared, gaps = np.zeros((m, m)), np.zeros((m, m)), False
    for _, z, nominal, _ in _blocks(table, weight):
        _add_distances(z, nominal, D)
        missing = np.isnan(z)
        if missing.any():
            gaps, seen = True, (~missing).astype(np.float64)
            shared += seen.T @ seen
        else:
            shared += len(z)
    if gaps:
        D = np.where(shared > 0, D / np.maximum(shared, 1.0), np.inf)
    return np.asarray(D + D.T)


def _neighbors(D: Array, codes: IntArray, weight: Array, k: int) -> tuple[IntArray, IntArray, Array]:
    """Rows (start[i]:start[i + 1] of `near`) that row i is compared with, and how much of each: weight k per class.

    A row of weight w has w - 1 copies of itself at distance 0. Of rows that are equally far all count, by their share.
    """
    unit = max(float(D[np.isfinite(D)].max(initial=0.0)), 1e-300)
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
    first = np.cumsum([0, *map(len, members)])
    # The rows of each class lie one after the other in `members`, so that the compiled loop needs no lists.
    row_share = np.zeros(D.shape)
    _take_nearest(D, unit, np.concatenate(members), first, weight, float(k), row_share)
    row, near = np.nonzero(row_share)
    start = np.searchsorted(row, np.arange(len(D) + 1))
    return start.astype(np.intp), near.astype(np.intp), row_share[row, near]


@jit
def _take_nearest(
    D: Array, unit: float, members: IntArray, first: IntArray, weight: Array, k: float, share: Array
) -> None:
    """How much of each row a row is compared with, into share (m, m): of each class the nearest, weight k in all."""
    m = D.shape[0]
    far, have, near = np.empty(m), np.empty(m), np.empty(m, dtype=np.intp)
    for i in range(m):
        for code in range(first.shape[0] - 1):
            rows = members[first[code] : first[code + 1]]
            for t in range(rows.shape[0]):
                far[t] = np.round(D[i, rows[t]] / unit, DIGITS)
                have[t] = max(weight[i] - 1.0, 0.0) if rows[t] == i else weight[rows[t]]
            # Sorting all rows of a class would take most of the time: only those within reach are.
            limit, count = _reach(far[: rows.shape[0]], have, k), 0
            for t in range(rows.shape[0]):
                if far[t] <= limit and have[t] > 0.0:
                    near[count], count = t, count + 1
            order = near[:count][np.argsort(far[near[:count]])]
            begin, before = 0, 0.0
            while begin < count and before < k:
                end, together = begin, 0.0  # rows begin to end are equally far
                while end < count and far[order[end]] == far[order[begin]]:
                    together += have[order[end]]
                    end += 1
                for t in order[begin:end]:
                    share[i, rows[t]] = have[t] * (min(k - before, together) / together)
                begin, before = end, before + together


@jit
def _reach(far: Array, have: Array, k: float) -> float:
    """A distance within which there is a weight of k, where rows weigh 1 or more the least; else the largest."""
    size = int(k)
    nearest = np.full(size, np.inf)
    for t in range(far.shape[0]):
        if 0.0 < have[t] < 1.0:
            return np.inf
        if have[t] > 0.0 and far[t] < nearest[size - 1]:
            place = size - 1
            while place > 0 and nearest[place - 1] > far[t]:
                nearest[place] = nearest[place - 1]
                place -= 1
            nearest[place] = far[t]
    return float(nearest[size - 1])


def _pair_weights(
    near: tuple[IntArray, IntArray, Array], codes: IntArray, weight: Array, prior: Array
) -> tuple[IntArray, IntArray, Array]:
    """Pairs i < j and a weight each: the score of a column without missing cells is the sum of weight * |z_i - z_j|."""
    start, other, share = near
    m, classes = len(codes), len(prior)
    row = np.repeat(np.arange(m), np.diff(start))
    count = np.zeros((m, classes))
    np.add.at(count, (row, codes[other]), share)
    seen = count > 0
    hit = seen[np.arange(m), codes]
    misses = np.where(seen, prior, 0.0)
    misses[np.arange(m), codes] = 0.0
    known = misses.sum(axis=1)
    counts = hit & (known > 0)
    # P(c) / (1 - P(c_i)) over the classes of which a neighbor was found: they may be fewer, so it is normalised anew.
    factor = misses / np.where(known > 0, known, 1.0)[:, None]
    factor[np.arange(m), codes] = -1.0
    factor = np.where(counts[:, None] & seen, factor * weight[:, None] / np.where(seen, count, 1.0), 0.0)
    # i may be near j without j being near i: the weights of both directions are added.
    whole = np.zeros((m, m))
    whole[row, other] = share * factor[row, codes[other]]
    whole += whole.T
    i, j = np.nonzero(np.triu(whole, 1))
    return i.astype(np.intp), j.astype(np.intp), whole[i, j]


@jit
def _plain_scores(Z: Array, i: IntArray, j: IntArray, weight: Array) -> Array:
    """(p,): sum over pairs of weight * |Z[i] - Z[j]|, Z (m, p): a few columns at a time, which stay in the cache."""
    out = np.zeros(Z.shape[1])
    for first in range(0, Z.shape[1], AT_ONCE):
        last = min(first + AT_ONCE, Z.shape[1])
        here = out[first:last]
        for t in range(i.shape[0]):
            left, right, w = Z[i[t], first:last], Z[j[t], first:last], weight[t]
            for f in range(last - first):
                here[f] += w * abs(left[f] - right[f])
    return out


@jit
def _add_distances(z: Array, nominal: BoolArray, D: Array) -> None:
    """The differences of each pair of rows i < j, above the diagonal; a missing cell adds nothing.

    A few rows of D at a time, which stay in the cache.
    """
    m = z.shape[1]
    for first in range(0, m, ROWS):
        for f in range(z.shape[0]):
            row = z[f, first:]
            for i in range(first, min(first + ROWS, m)):
                u, here = z[f, i], D[i, first:]
                if nominal[f]:
                    for j in range(row.shape[0]):
                        here[j] += 1.0 if abs(u - row[j]) > 0.0 else 0.0
                else:
                    for j in range(row.shape[0]):
                        d = abs(u - row[j])
                        here[j] += d if d > 0.0 else 0.0  # not where a cell is missing
    for i in range(m):
        for j in range(i + 1):
            D[i, j] = 0.0


@jit
def _scores(
    z: Array,
    nominal: BoolArray,
    limit: Array,
    codes: IntArray,
    weight: Array,
    prior: Array,
    start: IntArray,
    near: IntArray,
    share: Array,
) -> Array:
    """(p,) the scores of columns z (p, m), with missing cells or not: what `_plain_scores` gives where it applies."""
    out = np.zeros(z.shape[0])
    m, classes = z.shape[1], len(prior)
    total, count = np.empty(classes), np.empty(classes)
    for f in range(z.shape[0]):
        row = z[f]
        for i in range(m):
            if np.isnan(row[i]):
                continue
            total[:], count[:] = 0.0, 0.0
            for t in range(start[i], start[i + 1]):
                v = row[near[t]]
                if np.isnan(v):
                    continue
                d = abs(row[i] - v)
                if d > limit[f] or (nominal[f] and d > 0.0):
                    d = 1.0
                total[codes[near[t]]] += share[t] * d
                count[codes[near[t]]] += share[t]
            code, miss, known = codes[i], 0.0, 0.0
            for c in range(classes):
                if c != code and count[c] > 0.0:
                    miss += prior[c] * total[c] / count[c]
                    known += prior[c]
            if count[code] > 0.0 and known > 0.0:
                out[f] += weight[i] * (miss / known - total[code] / count[code])
    return out
