"""Filters: scores of columns, vectorised over blocks: how far classes lie apart, how they overlap, main directions.

With more than two classes the scores of the one-vs-rest problems are added. Missing cells are left out.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra.blocks import parts
from ..batches.arrays import DeviceArray
from ..contracts import KINDS, NUMBERS, Array, Batch, IntArray, Resources, TableView
from ..errors import positive_number, whole_number
from ..outcomes.scores import area_and_gap
from ..solvers.execution import jit
from ._columns import TINY, as_counts, by_block, by_class_and_kind, centre_columns, moments, over_columns, products

PSEUDO = 5.0  # observations with the pooled variance that are added to each class
FLOOR = 0.05  # of the median pooled variance, added below


class Fisher(BaseEstimator):
    """``|mean_+ - mean_-| / (var_+ + var_-)``, by column.

    The score depends on the scale of a column (a difference above, variances below): standardize first.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Fisher
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=Fisher(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    in_batches: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = NUMBERS
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return by_block(table, y, weight, _fisher)

    def score_batched(self, batch: Batch, live: DeviceArray) -> DeviceArray:  # noqa: ARG002
        """(F, n): the same for many training parts."""
        xp, X, of = batch.arrays.xp, batch.X, batch.scales
        square = X * X
        total = batch.arrays.zeros(batch.weight.shape[0], X.shape[0])
        for k in range(batch.labels.shape[1]):
            mean, spread = [], TINY * of.variance
            variance = batch.arrays.zeros(*total.shape)
            for side in (1.0, -1.0):
                weight = xp.where(batch.labels[:, k] == side, batch.weight, 0.0)
                # Means and variances of all columns and parts are products (F, r) by (r, n): no part is cut out of the
                # table.
                weight = weight / weight.sum(1)[:, None]
                mean.append(weight @ X.T)
                inside = weight @ square.T - mean[-1] ** 2
                variance = variance + xp.where(inside > 0, inside, 0.0)
            spread = xp.where(variance > spread, variance, spread) * of.factor
            total = total + xp.abs(mean[0] - mean[1]) * xp.sqrt(of.factor) / xp.where(spread > 0, spread, 1.0)
        return total


class ShrunkenFisher(BaseEstimator):
    """``(mean_+ - mean_-)^2 / (var_+ + var_- + 0.05 of the median pooled variance)``, the variances shrunk.

    Each class's variance is shrunk towards the pooled variance of the column by 5 pseudo-observations, so that no
    column ranks high because of a variance that is small by chance.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import ShrunkenFisher
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=ShrunkenFisher(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        total = np.zeros(table.shape[1])
        for label in y:
            square, spread, pooled = over_columns(table, label, weight, _shrink)
            spread = spread + FLOOR * float(np.median(pooled))
            total += square / np.where(spread > 0, spread, 1.0)
        return total


class Fast(BaseEstimator):
    """``|AUC - 1/2|`` of each column alone: the chance that a positive has the larger value (ties count half).

    The area is exact, not computed at a few thresholds as in the paper.

    References
    ----------
    Chen and Wasikowski, FAST: a roc-based feature selection metric for small samples and imbalanced data classification
    problems, KDD 2008, 124-132.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Fast
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=Fast(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return by_block(table, y, weight, lambda z, label, weight: _areas_and_gaps(z, label, weight)[0])


class KolmogorovSmirnov(BaseEstimator):
    """The largest distance between the two classes' distribution functions, by column.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import KolmogorovSmirnov
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=KolmogorovSmirnov(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return by_block(table, y, weight, lambda z, label, weight: _areas_and_gaps(z, label, weight)[1])


def _fisher(z: Array, label: Array, weight: Array) -> Array:
    mean, variance, _, least = moments(z, label, weight)
    # `least` keeps a column that is constant inside the classes up to rounding from an infinite score.
    spread = np.maximum(variance[0] + variance[1], least)
    return np.asarray(np.abs(mean[0] - mean[1]) / np.where(spread > 0, spread, 1.0))


def _shrink(z: Array, label: Array, weight: Array) -> Array:
    """(3, p): squared difference of means, sum of the shrunken variances, pooled variance."""
    mean, variance, total, _ = moments(z, label, weight)
    pooled = (total[0] * variance[0] + total[1] * variance[1]) / sum(total)
    # The more rows a class has, the less its own variance is drawn to the pooled one.
    spread = sum((m * v + PSEUDO * pooled) / (m + PSEUDO) for m, v in zip(total, variance, strict=True))
    return np.array([(mean[0] - mean[1]) ** 2, spread, pooled])


def _areas_and_gaps(z: Array, label: Array, weight: Array) -> tuple[Array, Array]:
    """(|AUC - 1/2|, largest distance of the distribution functions) by row of z (p, m)."""
    above = np.where(label > 0, weight, 0.0)
    out = np.empty((2, len(z)))
    _walk(z, np.argsort(z, axis=1), above, weight - above, out)
    return out[0], out[1]


@jit
def _walk(z: Array, order: IntArray, above: Array, below: Array, out: Array) -> None:
    """|AUC - 1/2| and the largest gap of each row of z (p, m)."""
    for j in range(z.shape[0]):
        area, gap = area_and_gap(z[j], order[j], above, below)
        out[0, j], out[1, j] = abs(area - 0.5), gap


# A filter by densities: how little the two classes' distributions of a column overlap.

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


# A filter that looks at no label: how much a column takes part in the main directions of the table.


class Principal(BaseEstimator):
    """``sum_k lambda_k |v_kj|`` over the first principal components of the columns, lambda their variances, v unit.

    Labels do not enter; rows that oversampling adds to the rare class do. Standardize first. Missing cells count as the
    column's mean.

    Parameters
    ----------
    explained : float, default=0.95
        Share of the variance, in (0, 1], that the components used explain.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Principal
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> criterion = Principal(explained=0.9)
    >>> selector = SVMSelector(criterion=criterion, search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS

    def __init__(self, explained: float = 0.95) -> None:
        self.explained = explained

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        positive_number("criterion", "explained", self.explained, 1.0)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:  # noqa: ARG002
        """(n,)."""
        Z, weight = table.Z, as_counts(weight)
        root, total = np.sqrt(weight), weight.sum()
        if Z.shape[1] <= Z.shape[0]:
            # With fewer columns than rows: the eigenvectors of the covariances, n x n. Else those of the rows'
            # products, m x m, from which the columns' loadings are U'z block by block.
            z = centre_columns(Z, slice(None), weight)
            value, vector = _largest((z * weight) @ z.T / total, self.explained)
            return np.asarray(np.abs(vector) @ value)
        value, vector = _largest(products(Z, weight) * np.outer(root, root) / total, self.explained)
        U = (root[:, None] * vector) * np.sqrt(value / total)
        return np.concatenate([np.abs(centre_columns(Z, part, weight) @ U).sum(axis=1) for part in parts(Z.shape[1])])


def _largest(G: Array, explained: float) -> tuple[Array, Array]:
    """The largest eigenvalues of a matrix that make up this share of their sum, and their vectors."""
    value, vector = np.linalg.eigh(G)
    value, vector = np.maximum(value[::-1], 0.0), vector[:, ::-1]
    most = int(np.searchsorted(np.cumsum(value), explained * value.sum() * (1.0 - 1e-12))) + 1
    return value[:most], vector[:, :most]
