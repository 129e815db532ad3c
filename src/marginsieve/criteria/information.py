"""Filters that compare distributions over the levels of a column: symmetrical uncertainty and Hellinger distances.

With more than two classes the scores of the one-vs-rest problems are added. Missing cells are left out.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..batches.arrays import DeviceArray
from ..contracts import KINDS, NUMBERS, SIGNS, VALUES, Array, Batch, Resources, TableView
from ..data.table import column_of
from ..errors import one_of, whole_number
from ._columns import (
    as_counts,
    by_level,
    by_level_batched,
    coordinates,
    equal_frequency,
    is_enough,
    mdl,
    split,
)

DIGITS = 12  # scores that agree so far are equal: logarithms in another order differ behind that
CUTS = ("equal_frequency", "mdl")
ROUNDS = 100  # of moving rows between pseudo-classes


class CutsNumbersMixin:
    """A filter of levels: numbers are cut, categories have their own."""

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)

    def __init__(self, cuts: str = "equal_frequency", bins: int = 5) -> None:
        self.cuts = cuts
        self.bins = bins

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        one_of("criterion", "cuts", self.cuts, CUTS)
        whole_number("criterion", "bins", self.bins, 2)

    @property
    def in_batches(self) -> bool:
        """Whether many training parts can be scored at once: cuts by class entropy are made one after the other."""
        return self.cuts == "equal_frequency"


class SymmetricalUncertainty(CutsNumbersMixin, BaseEstimator):
    """2 (H(f) + H(c) - H(f, c)) / (H(f) + H(c)) between a column's levels and a class label, H the entropy in bits.

    The weight of a column is the sum over the labels of its share in that label's total over all columns. A target of
    numbers is cut into levels of equal weight first, as many as a column has, and the uncertainty is that between the
    levels of the two.

    Parameters
    ----------
    cuts : "equal_frequency" or "mdl", default="equal_frequency"
        How numbers are cut into levels: into levels of equal weight, or by class entropy with the stopping rule of
        Fayyad and Irani, which leaves most columns of a wide table uncut and therefore without a weight.
    bins : int, default=5
        Number of levels of equal weight.

    References
    ----------
    Moayedikia, Ong, Boo, Yeoh and Jensen, Feature selection for high dimensional imbalanced class data using harmony
    search, Engineering Applications of Artificial Intelligence 57 (2017) 38-49, eqs. 1-5.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import SymmetricalUncertainty
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> criterion = SymmetricalUncertainty()
    >>> selector = SVMSelector(criterion=criterion, search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        if not (np.abs(y) == 1.0).all():
            return np.asarray(sum(self._between_levels(table, values, weight) for values in y))
        value = self.by_class(table, y, weight)
        total = value.sum(axis=1, keepdims=True)
        return np.asarray(np.sum(value / np.where(total > 0, total, 1.0), axis=0))

    def score_batched(self, batch: Batch, live: DeviceArray) -> DeviceArray:  # noqa: ARG002
        """(F, n): the same for many training parts."""
        xp = batch.arrays.xp
        value = by_level_batched(batch, partial(_uncertainty, xp=xp), self.bins)
        total = value.sum(2)[:, :, None]
        return (value / xp.where(total > 0, total, 1.0)).sum(0)

    def by_class(self, table: TableView, y: Array, weight: Array) -> Array:
        """(k, n): the symmetrical uncertainty with each label of the problem, in [0, 1]."""
        return by_level(table, y, weight, _uncertainty, self.bins, self.cuts)

    def _between_levels(self, table: TableView, values: Array, weight: Array) -> Array:
        """(n,): the symmetrical uncertainty of each column and numbers that are cut into levels."""
        counts = as_counts(weight)
        target = equal_frequency(values[None], counts, self.bins)[0]
        nominal, out = np.array([kind == "nominal" for kind in table.kind]), np.zeros(table.shape[1])
        for j in range(table.shape[1]):
            z = column_of(table.Z, j)
            seen = ~np.isnan(z) & (counts > 0)
            if not is_enough(values[seen], counts[seen]):
                continue
            z, w, of_target = z[seen], counts[seen], target[seen]
            if nominal[j]:
                levels = np.unique(z, return_inverse=True)[1]
            elif self.cuts == "mdl":
                levels = mdl(z[None], of_target, w)[0]
            else:
                levels = equal_frequency(z[None], w, self.bins)[0]
            joint = np.zeros((1, int(levels.max()) + 1, int(target.max()) + 1))
            np.add.at(joint[0], (levels, of_target), w)
            out[j] = _uncertainty(joint)[0]
        return out


class Hellinger(CutsNumbersMixin, BaseEstimator):
    """sqrt(1 - sum_b sqrt(p_b q_b)) between the two classes' shares p, q over the levels of a column.

    Class sizes do not enter.

    Parameters
    ----------
    cuts : "equal_frequency" or "mdl", default="equal_frequency"
        How numbers are cut into levels: into levels of equal weight, or by class entropy (Fayyad and Irani).
    bins : int, default=5
        Number of levels of equal weight.

    References
    ----------
    Cieslak and Chawla, Learning decision trees for unbalanced data, ECML PKDD 2008, 241-256.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Hellinger
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=Hellinger(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return np.asarray(by_level(table, y, weight, _distance, self.bins, self.cuts).sum(axis=0))

    def score_batched(self, batch: Batch, live: DeviceArray) -> DeviceArray:  # noqa: ARG002
        """(F, n): the same for many training parts."""
        return by_level_batched(batch, partial(_distance, xp=batch.arrays.xp), self.bins).sum(0)


class DecomposedHellinger(BaseEstimator):
    """The mean of the Hellinger distances between the smaller class and each of k parts of the larger one (D-HELL).

    The larger class is split by k-means, so that no part of it dominates a column's score by its number of rows alone;
    the parts count by their weight. The initial centers come from cutting the part with the largest spread across its
    main direction, again and again (no random start). Missing cells count as the column's mean there.

    Parameters
    ----------
    n_clusters : int, default=5
        Number of parts of the larger class; fewer where it has fewer rows.
    bins : int, default=5
        Number of levels of equal weight.

    References
    ----------
    Yin, Ge, Xiao, Wang and Quan, Feature selection for high-dimensional imbalanced data, Neurocomputing 105 (2013)
    3-11.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import DecomposedHellinger
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> criterion = DecomposedHellinger(n_clusters=3)
    >>> selector = SVMSelector(criterion=criterion, search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS

    def __init__(self, n_clusters: int = 5, bins: int = 5) -> None:
        self.n_clusters = n_clusters
        self.bins = bins

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("criterion", "n_clusters", self.n_clusters)
        whole_number("criterion", "bins", self.bins, 2)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        counts, total, hellinger = as_counts(weight), np.zeros(table.shape[1]), Hellinger(bins=self.bins)
        place = coordinates(table.Z, counts)
        for label in y:
            above = float(counts[label > 0].sum())
            # The rarer class stays whole against each part of the other one.
            larger = label > 0 if above > 0.5 * counts.sum() else label < 0
            part = np.full(len(label), -1)
            part[larger] = split(place[larger], counts[larger], self.n_clusters, ROUNDS)
            for k in range(int(part.max()) + 1):
                rows = np.flatnonzero((part == k) | ~larger)
                share = float(counts[part == k].sum() / counts[larger].sum())
                total += share * hellinger(table.rows(rows), label[None, rows], weight[rows])
        return np.round(total, DIGITS)


def _shares(counts: Any, axis: int, xp: Any) -> Any:
    """Counts over their sum."""
    total = counts.sum(axis=axis, keepdims=True)
    return counts / xp.where(total > 0, total, 1.0)


def _bits(counts: Any, xp: Any) -> Any:
    """The entropy over the last axis."""
    share = _shares(counts, -1, xp)
    return -(share * xp.log2(xp.where(share > 0, share, 1.0))).sum(axis=-1)


def _uncertainty(counts: Any, xp: Any = np) -> Any:
    """Symmetrical uncertainty from counts (p, levels, classes)."""
    of_level, of_class = _bits(counts.sum(axis=2), xp), _bits(counts.sum(axis=1), xp)
    both = _bits(counts.reshape(len(counts), -1), xp)
    alone = of_level + of_class
    # H(f) + H(c) - H(f, c) is the mutual information; over the mean entropy it favours no column of many levels.
    share = 2.0 * (alone - both) / xp.where(alone > 0, alone, 1.0)
    return xp.round(xp.where(of_level > 0, xp.clip(share, 0.0, 1.0), 0.0), decimals=DIGITS)


def _distance(counts: Any, xp: Any = np) -> Any:
    """Hellinger distance of the two classes from counts (p, levels, 2)."""
    share = _shares(counts, 1, xp)
    # 1 less the Bhattacharyya coefficient; rounding may bring it below 0 for equal shares.
    apart = 1.0 - xp.sqrt(share[..., 0] * share[..., 1]).sum(axis=1)
    return xp.round(xp.sqrt(xp.where(apart > 0, apart, 0.0)), decimals=DIGITS)
