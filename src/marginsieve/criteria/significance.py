"""Filters by statistical tests between a column and the class; categories are tested as they are.

With more than two classes the scores of the one-vs-rest problems are added. Missing cells are left out.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator

from ..contracts import CATEGORICAL, KINDS, NUMBERS, Array, Resources, TableView
from ..errors import whole_number
from ._columns import by_block, by_class_and_kind, moments
from ._exact_test import log_p
from ._levels import by_level

LOG_10 = float(np.log(10.0))


class TTest(BaseEstimator):
    """``|mean_+ - mean_-| / sqrt(var_+ / m_+ + var_- / m_-)``: the size of t of Welch's test, by column.

    A weight of 2 counts as two samples.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import TTest
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=TTest(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return by_block(table, y, weight, lambda z, label, weight: _welch(z, label, weight)[0])


class ChiSquare(BaseEstimator):
    """-log10 p of the chi-square test between a column's levels and the class; each category is a level.

    Parameters
    ----------
    bins : int, default=4
        Number of levels of about equal weight into which numbers with more distinct values are cut.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import ChiSquare
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=ChiSquare(bins=4), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    resources = Resources(linear_in_rows=True)

    def __init__(self, bins: int = 4) -> None:
        self.bins = bins

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("criterion", "bins", self.bins, 2)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return np.asarray(by_level(table, y, weight, _chi_square, self.bins).sum(axis=0))


class FisherExact(BaseEstimator):
    """-log10 p of Fisher's exact test (two-sided) between a column and the class; each category is a level.

    Numbers with two values are used as they are, any others are split at their median. Sums of weights are rounded.
    With more than two levels it is the test of Freeman and Halton: the probability of all tables with the same margins
    that are no more likely than the observed one. Where more than two million partial tables would have to be
    enumerated, the chi-square test is used instead.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import FisherExact
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=FisherExact(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        exact = by_level(table, y, weight, lambda counts: np.array([_exact(table) for table in counts]), 2)
        return np.asarray(exact.sum(axis=0))


class MixedTest(BaseEstimator):
    """-log10 p of Welch's t-test for numbers, of Fisher's exact test for categories: a filter for mixed tables.

    Booleans are categories.

    References
    ----------
    Paul and Dupont, Kernel methods for mixed feature selection.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import MixedTest
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=MixedTest(), search="top_k", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        numbers = lambda z, label, weight: _t_significance(*_welch(z, label, weight))  # noqa: E731
        return np.asarray(by_class_and_kind(table, y, weight, numbers, _exact, CATEGORICAL).sum(axis=0))


def _welch(z: Array, label: Array, weight: Array) -> tuple[Array, Array]:
    """|t| and its degrees of freedom, by row of z (p, m); a class of one sample has the variance of the other."""
    mean, variance, total, least = moments(z, label, weight)
    if max(total) <= 1.0:
        return np.zeros(len(z)), np.ones(len(z))
    variances = [v * m / (m - 1.0) if m > 1.0 else None for v, m in zip(variance, total, strict=True)]
    # A class of one row has no variance: that of the other is taken for it.
    spare = next(v for v in variances if v is not None)
    parts = [(spare if v is None else v) / m for v, m in zip(variances, total, strict=True)]
    whole = parts[0] + parts[1]
    if min(total) > 1.0:
        below = sum(p * p / (m - 1.0) for p, m in zip(parts, total, strict=True))
    else:
        below = whole**2 / (max(total) - 1.0)
    # Welch and Satterthwaite: (sum of s_c^2 / m_c)^2 / sum of (s_c^2 / m_c)^2 / (m_c - 1).
    freedom = np.where(whole > least, whole**2 / np.maximum(below, 1e-300), max(sum(total) - 2.0, 1.0))
    spread = np.maximum(whole, least)
    return np.asarray(np.abs(mean[0] - mean[1]) / np.sqrt(np.where(spread > 0, spread, 1.0))), freedom


def _t_significance(t: Array, freedom: Array) -> Array:
    """-log10 of the two-sided p of t: I_x(a, 1/2) with a = freedom / 2, x = freedom / (freedom + t^2)."""
    a, x = 0.5 * freedom, freedom / (freedom + t * t)
    with np.errstate(all="ignore"):
        # I_x(a, 1/2) = x^a (1 - x)^(1/2) / (a B(a, 1/2)) 2F1(a + 1/2, 1; a + 1; x), as a logarithm.
        far = a * np.log(x) + 0.5 * np.log1p(-x) - np.log(a) - special.betaln(a, 0.5)
        far = far + np.log(special.hyp2f1(a + 0.5, 1.0, a + 1.0, x))  # where p underflows
        far = np.where(np.isfinite(far), far, special.log_ndtr(-np.abs(t)) + np.log(2.0))  # so many that t is normal
        p = special.betainc(a, 0.5, x)
        return np.asarray(-np.where(p > 1e-290, np.log(np.maximum(p, 1e-300)), far) / LOG_10)


def _chi_square(counts: Array) -> Array:
    """-log10 p from counts (p, levels, 2)."""
    by_level, by_class = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    expected = by_level * by_class / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1e-300)
    statistic = np.sum((counts - expected) ** 2 / np.where(expected > 0, expected, 1.0), axis=(1, 2))
    # Levels without rows take no degree of freedom.
    half = 0.5 * np.maximum((by_level[:, :, 0] > 0).sum(axis=1) - 1, 1)
    x = 0.5 * statistic
    with np.errstate(divide="ignore"):
        # The first term of the asymptotic series Gamma(h, x) ~ x^(h - 1) e^-x, for x far above h.
        far = -x + (half - 1.0) * np.log(np.maximum(x, 1e-300)) - special.gammaln(half)  # where p underflows
        p = special.gammaincc(half, x)
        return np.asarray(-np.where(p > 1e-290, np.log(np.maximum(p, 1e-300)), far) / LOG_10)


def _exact(counts: Array) -> float:
    """-log10 p of Fisher's exact test from counts (levels, 2), or of the chi-square test where that is too much."""
    exact = log_p(np.rint(counts).astype(np.intp))
    return float(_chi_square(counts[None])[0]) if exact is None else max(-exact / LOG_10, 0.0)
