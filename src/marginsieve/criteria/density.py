"""A filter by densities: how little the two classes' distributions of a column overlap."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import KINDS, Array, TableView
from ..errors import whole_number
from ..solvers.jit import jit
from ._columns import by_class_and_kind, moments

NARROWEST = 1e-3  # of the range: the least bandwidth
REACH = 3.0  # bandwidths beyond the outermost rows


class Density(BaseEstimator):
    """``1 - integral of min(p_+, p_-)``, by column: the part of the classes' densities that does not overlap.

    Densities are Gaussian kernel estimates with bandwidth 1.06 s m_c^(-1/5), s the standard deviation inside the
    classes and m_c the class's number of rows; class sizes do not enter otherwise. Categories have their shares. This
    is the overlap idea of the paper in its simplest form; the paper also considers where a density is interrupted and
    columns that repeat each other.

    Parameters
    ----------
    points : int, default=64
        Number of points, evenly spaced over the column's range and a little beyond, at which the densities are
        compared.

    References
    ----------
    Alibeigi, Hashemi and Hamzeh, DBFS: an effective density based feature selection scheme for small sample size and
    high dimensional imbalanced data sets, Data and Knowledge Engineering 81-82 (2012) 67-103.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Density
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=Density(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)

    def __init__(self, points: int = 64) -> None:
        self.points = points

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("criterion", "points", self.points, 8)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""

        def numbers(z: Array, label: Array, weight: Array) -> Array:
            _, variance, total, _ = moments(z, label, weight)
            inside = np.sqrt((total[0] * variance[0] + total[1] * variance[1]) / sum(total))
            width = np.array([1.06 * inside * size**-0.2 for size in total])
            span = z.max(axis=1) - z.min(axis=1)
            out = np.zeros(len(z))
            _non_overlap(z, label, weight, np.maximum(width, NARROWEST * span), span, int(self.points), out)
            return out

        return np.asarray(by_class_and_kind(table, y, weight, numbers, _non_overlap_by_level).sum(axis=0))


def _non_overlap_by_level(counts: Array) -> float:
    share = counts / np.maximum(counts.sum(axis=0), 1e-300)
    return float(1.0 - share.min(axis=1).sum()) if len(counts) > 1 else 0.0


@jit
def _non_overlap(z: Array, label: Array, weight: Array, width: Array, span: Array, points: int, out: Array) -> None:
    """By row of z (p, m): 1 - sum of the smaller density over the sum of their mean, on a grid."""
    for j in range(z.shape[0]):
        if span[j] <= 0.0:
            continue
        reach = REACH * max(width[0, j], width[1, j])
        low = z[j].min() - reach
        step = (span[j] + 2.0 * reach) / (points - 1)
        both = np.zeros((2, points))
        for i in range(z.shape[1]):
            side = 0 if label[i] > 0 else 1
            h = width[side, j]
            # A row's density ends four bandwidths away; on the grid it sums to the row's weight.
            first = max(0, int(np.ceil((z[j, i] - 4.0 * h - low) / step)))
            last = min(points - 1, int((z[j, i] + 4.0 * h - low) / step))
            if last < first:  # narrower than the grid: the nearest point
                both[side, int(np.rint((z[j, i] - low) / step))] += weight[i]
                continue
            total = 0.0
            for g in range(first, last + 1):
                t = (low + g * step - z[j, i]) / h
                total += np.exp(-0.5 * t * t)
            for g in range(first, last + 1):
                t = (low + g * step - z[j, i]) / h
                both[side, g] += weight[i] * np.exp(-0.5 * t * t) / total
        # The grid is even, so its step cancels: shares of sums take the place of integrals.
        common = 0.0
        P, N = both[0].sum(), both[1].sum()
        for g in range(points):
            common += min(both[0, g] / P, both[1, g] / N)
        out[j] = 1.0 - common
