"""ReliefF: a column is worth how much more it differs to near rows of other classes than to near rows of the own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra.block_products import parts
from ..contracts import CATEGORICAL, KINDS, Array, BoolArray, IntArray, TableView
from ..errors import whole_number
from ..problem import class_codes
from ..solvers.jit import jit
from ._columns import as_counts, as_rows

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
        start, near, share = _neighbors(_distances(table, weight), codes, weight, int(self.n_neighbors))
        out = np.empty(table.shape[1])
        for part, z, nominal, limit in _blocks(table, weight):
            scores = np.zeros(len(z))
            _add_scores(z, nominal, limit, codes, weight / weight.sum(), prior, start, near, share, scores)
            out[part] = scores
        return out


def _blocks(table: TableView, weight: Array) -> Iterator[tuple[slice, Array, BoolArray, Array]]:
    """Columns as rows: in units of their range, which are categories, and from which difference on one counts as 1."""
    kinds = np.array([kind in CATEGORICAL for kind in table.kind])
    mixed = bool(kinds.any() and not kinds.all())
    for part in parts(table.shape[1]):
        z = as_rows(table.Z, part)
        nominal = kinds[part]
        with np.errstate(all="ignore"):
            low, high = np.fmin.reduce(z, axis=1), np.fmax.reduce(z, axis=1)
        span = np.where(nominal | ~(high > low), 1.0, high - low)
        z = (z - np.where(nominal, 0.0, low)[:, None]) / span[:, None]
        yield part, z, nominal, _deviation(z, weight) if mixed else np.full(len(z), np.inf)


def _deviation(z: Array, weight: Array) -> Array:
    """(p,) the weighted standard deviation of each row over its observed cells."""
    seen = ~np.isnan(z)
    filled, total = np.where(seen, z, 0.0), np.maximum(seen @ weight, 1e-300)
    mean = filled @ weight / total
    return np.asarray(np.sqrt((np.where(seen, z - mean[:, None], 0.0) ** 2) @ weight / total))


def _distances(table: TableView, weight: Array) -> Array:
    """(m, m): the sum of the differences, or their mean over the columns that both rows have where cells are missing.

    Two rows without a common cell are infinitely far apart.
    """
    m = table.shape[0]
    D, shared, gaps = np.zeros((m, m)), np.zeros((m, m)), False
    for _, z, nominal, _ in _blocks(table, weight):
        gaps = gaps or bool(np.isnan(z).any())
        _add_distances(z, nominal, D)
        seen = (~np.isnan(z)).astype(np.float64)
        shared += seen.T @ seen
    if gaps:
        D = np.where(shared > 0, D / np.maximum(shared, 1.0), np.inf)
    return np.asarray(D + D.T)


def _neighbors(D: Array, codes: IntArray, weight: Array, k: int) -> tuple[IntArray, IntArray, Array]:
    """Rows (start[i]:start[i + 1] of `near`) that row i is compared with, and how much of each: weight k per class.

    A row of weight w has w - 1 copies of itself at distance 0. Of rows that are equally far all count, by their share.
    """
    start, near, share = [0], [], []
    D = np.round(D / max(float(D[np.isfinite(D)].max(initial=0.0)), 1e-300), DIGITS)
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
    for i in range(len(D)):
        for rows in members:
            have = np.where(rows == i, max(weight[i] - 1.0, 0.0), weight[rows])
            _, place = np.unique(D[i, rows], return_inverse=True)
            together = np.bincount(place, have)
            taken = np.clip(k - (np.cumsum(together) - together), 0.0, together)
            part = have * (taken / np.where(together > 0, together, 1.0))[place]
            near.append(rows[part > 0])
            share.append(part[part > 0])
        start.append(start[-1] + sum(len(block) for block in near[-len(members) :]))
    return np.array(start, dtype=np.intp), np.concatenate(near).astype(np.intp), np.concatenate(share)


@jit
def _add_distances(z: Array, nominal: BoolArray, D: Array) -> None:
    """The differences of each pair of rows i < j, above the diagonal."""
    m = z.shape[1]
    for f in range(z.shape[0]):
        row, category = z[f], nominal[f]
        for i in range(m):
            u = row[i]
            if np.isnan(u):
                continue
            for j in range(i + 1, m):
                d = abs(u - row[j])
                if d > 0.0:  # false where the other cell is missing
                    D[i, j] += 1.0 if category else d


@jit
def _add_scores(
    z: Array,
    nominal: BoolArray,
    limit: Array,
    codes: IntArray,
    weight: Array,
    prior: Array,
    start: IntArray,
    near: IntArray,
    share: Array,
    out: Array,
) -> None:
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
