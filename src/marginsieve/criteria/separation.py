"""Filters: scores of each column from the labels alone, vectorised over blocks of columns.

With more than two classes the scores of the one-vs-rest problems are added. Missing cells are left out.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..batches.arrays import DeviceArray
from ..contracts import NUMBERS, Array, Batch, IntArray, Resources, TableView
from ..outcomes.scores import area_and_gap
from ..solvers.jit import jit
from ._columns import TINY, by_block, moments, over_columns

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
            square, spread, pooled = over_columns(table, label, weight, _shrunken)
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


def _shrunken(z: Array, label: Array, weight: Array) -> Array:
    """(3, p): squared difference of means, sum of the shrunken variances, pooled variance."""
    mean, variance, total, _ = moments(z, label, weight)
    pooled = (total[0] * variance[0] + total[1] * variance[1]) / sum(total)
    # The more rows a class has, the less its own variance is drawn to the pooled one.
    spread = sum((m * v + PSEUDO * pooled) / (m + PSEUDO) for m, v in zip(total, variance, strict=True))
    return np.array([(mean[0] - mean[1]) ** 2, spread, pooled])


def _areas_and_gaps(z: Array, label: Array, weight: Array) -> tuple[Array, Array]:
    """(|AUC - 1/2|, largest distance of the distribution functions) by row of z (p, m)."""
    positive = np.where(label > 0, weight, 0.0)
    out = np.empty((2, len(z)))
    _walk(z, np.argsort(z, axis=1), positive, weight - positive, out)
    return out[0], out[1]


@jit
def _walk(z: Array, order: IntArray, positive: Array, negative: Array, out: Array) -> None:
    """|AUC - 1/2| and the largest gap of each row of z (p, m)."""
    for j in range(z.shape[0]):
        area, gap = area_and_gap(z[j], order[j], positive, negative)
        out[0, j], out[1, j] = abs(area - 0.5), gap
