"""Filters by statistical tests between a column and the target; categories are tested as they are.

With more than two classes the scores of the one-vs-rest problems are added. Missing cells are left out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator

from ..algebra.blocks import column_parts
from ..contracts import CATEGORICAL, KINDS, NUMBERS, SIGNS, TIMES, VALUES, Array, IntArray, Resources, TableView
from ..data.table import column_of
from ..errors import whole_number
from ..solvers.cox import RiskSets
from ..solvers.execution import jit
from ._columns import TINY, as_counts, as_rows, by_block, by_class_and_kind, by_level, is_enough, moments

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
        return np.asarray(by_class_and_kind(table, y, weight, _t_significance, _exact, CATEGORICAL).sum(axis=0))


class Correlation(BaseEstimator):
    """``|cov(x, y)| / (sd(x) sd(y))``: the size of Pearson's correlation of each column with the target.

    The target may be numbers or classes; with more than two classes the one-vs-rest problems are added.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Correlation
    >>> X = np.random.default_rng(0).normal(size=(60, 10))
    >>> y = 2.0 * X[:, 2] - X[:, 7]
    >>> parts = {"machine": "kernel_ridge", "criterion": Correlation(), "search": "top_k", "outcome": "numbers"}
    >>> SVMSelector(**parts, n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True)
    array([2, 7])
    """

    kinds: ClassVar[frozenset[str]] = NUMBERS
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return by_block(table, y, weight, _correlation)


class FTest(BaseEstimator):
    """-log10 p of the F test between a column and the target: of the regression on a number, between categories.

    ::

        F = r^2 (m - 2) / (1 - r^2)  with 1 and m - 2 degrees of freedom,    r the correlation with a number
        F = (between / (levels - 1)) / (within / (m - levels))               of the target over the levels of a category

    The target may be numbers or classes; with more than two classes the one-vs-rest problems are added. A weight of 2
    counts as two samples.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import FTest
    >>> X = np.random.default_rng(0).normal(size=(60, 10))
    >>> y = 2.0 * X[:, 2] - X[:, 7]
    >>> parts = {"machine": "kernel_ridge", "criterion": FTest(), "search": "top_k", "outcome": "numbers"}
    >>> SVMSelector(**parts, n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True)
    array([2, 7])
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        nominal = np.array([kind == "nominal" for kind in table.kind])
        out = np.zeros(len(nominal))
        if not nominal.all():
            part = table if not nominal.any() else table.columns(np.flatnonzero(~nominal))
            out[~nominal] = by_block(part, y, weight, _f_of_numbers)
        counts = as_counts(weight)
        for j in np.flatnonzero(nominal):
            out[j] = sum(_f_of_levels(column_of(table.Z, int(j)), label, counts) for label in y)
        return out


class CoxScore(BaseEstimator):
    """``|U| / sqrt(I)``: the size of z of the score test of proportional hazards, by column.

    U and I are the first derivative of the partial likelihood of the column alone, and minus the second, at no effect;
    for two groups it is the log-rank test. A category is tested by the largest z of its levels.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import CoxScore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10))
    >>> y = np.column_stack([rng.exponential(np.exp(-2.0 * X[:, 3])), np.ones(100)])
    >>> parts = {"machine": "cox", "criterion": CoxScore(), "search": "top_k", "outcome": "survival"}
    >>> SVMSelector(**parts, n_features_to_select=1, random_state=0).fit(X, y).get_support(indices=True)
    array([3])
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    targets: ClassVar[frozenset[str]] = frozenset({TIMES})
    resources = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return np.asarray(np.sum([self._statistics(table, places, as_counts(weight)) for places in y], axis=0))

    def _statistics(self, table: TableView, places: Array, counts: Array) -> Array:
        """(n,) of places in time, below 0 where no event was seen."""
        out, plain = np.zeros(table.shape[1]), []
        for j, kind in enumerate(table.kind):
            z = column_of(table.Z, j)
            seen = ~np.isnan(z) & (counts > 0)
            if kind != "nominal" and seen.all():
                plain.append(j)
                continue
            if not is_enough(places[seen], counts[seen]):
                continue
            sets = RiskSets(np.abs(places[seen]), places[seen] > 0, counts[seen])
            columns = z[seen][None]
            if kind == "nominal":
                columns = (z[seen] == np.unique(z[seen])[:, None]).astype(np.float64)
            if sets.events > 0 and columns.size:
                out[j] = np.abs(sets.score_statistics(columns)).max()
        if plain:
            sets = RiskSets(np.abs(places), places > 0, counts)
            part = table.columns(np.array(plain, dtype=np.intp))
            blocks = column_parts(part.shape)
            out[plain] = np.concatenate([np.abs(sets.score_statistics(as_rows(part.Z, some))) for some in blocks])
        return out


def _correlation(z: Array, label: Array, weight: Array) -> Array:
    """The size of the correlation of each row of z (p, m) with the labels."""
    share = weight / weight.sum()
    z, y = z - (z @ share)[:, None], label - label @ share
    square = z * z
    # A column that is constant up to rounding, beside its own size, has no correlation.
    spread = np.sqrt((square @ share) * (y * y @ share))
    return np.asarray(np.minimum(np.abs(z @ (share * y)) / np.where(spread > 0, spread, 1.0), 1.0))


def _f_of_numbers(z: Array, label: Array, weight: Array) -> Array:
    square, freedom = _correlation(z, label, weight) ** 2, max(float(weight.sum()) - 2.0, 1.0)
    return _f_significance(square * freedom, np.maximum(1.0 - square, TINY), 1.0, freedom)


def _f_of_levels(z: Array, label: Array, weight: Array) -> float:
    """-log10 p of one-way analysis of variance of the labels over the levels of a column."""
    seen = ~np.isnan(z) & (weight > 0)
    if not is_enough(label[seen], weight[seen]):
        return 0.0
    level = np.unique(z[seen], return_inverse=True)[1]
    w, values = weight[seen], label[seen] - np.average(label[seen], weights=weight[seen])
    count = np.bincount(level, w)
    mean = np.bincount(level, w * values) / count
    between, total = float(count @ mean**2), float(w @ values**2)
    above, below = len(count) - 1.0, float(w.sum()) - len(count)
    if above < 1 or below <= 0:
        return 0.0
    within = max(total - between, TINY * total)
    return float(_f_significance(np.array([between / above * below]), np.array([within]), above, below)[0])


def _f_significance(above: Array, below: Array, first: float, second: float) -> Array:
    """-log10 p of F = above / below with `first` and `second` degrees of freedom: I_x(second / 2, first / 2)."""
    x = second / (second + first * above / below)
    return _log_tail(0.5 * second, 0.5 * first, x)


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


def _t_significance(z: Array, label: Array, weight: Array) -> Array:
    """-log10 of the two-sided p of Welch's t: I_x(a, 1/2) with a = freedom / 2, x = freedom / (freedom + t^2)."""
    t, freedom = _welch(z, label, weight)
    return _log_tail(0.5 * freedom, 0.5, freedom / (freedom + t * t), special.log_ndtr(-np.abs(t)) + np.log(2.0))


def _log_tail(a: Array | float, b: float, x: Array, normal: Array | None = None) -> Array:
    """-log10 of I_x(a, b), where that underflows too; `normal` are logarithms that hold where nothing else can."""
    with np.errstate(all="ignore"):
        # I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) 2F1(a + b, 1; a + 1; x), as a logarithm.
        far = a * np.log(x) + b * np.log1p(-x) - np.log(a) - special.betaln(a, b)
        far = far + np.log(special.hyp2f1(a + b, 1.0, a + 1.0, x))  # where p underflows
        p = special.betainc(a, b, x)
        if normal is not None:
            far = np.where(np.isfinite(far), far, normal)  # so many that t is normal
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


# Fisher's exact test for tables of r levels and two classes (Freeman and Halton).

MOST = 2_000_000  # beginnings of tables that are looked at
SLACK = 1e-7  # tables whose log-likelihoods differ by less are equally likely


def log_p(table: IntArray) -> float | None:
    """log p of the counts (r, 2): tables with the same margins that are no likelier. None where there are too many."""
    rows = table[table.sum(axis=1) > 0]
    if len(rows) < 2 or not rows.sum(axis=0).all():
        return 0.0
    # The walk is over all levels but two: with the largest ones left out it is shortest. Sorting also lets tables that
    # differ in the order of their levels share a cached result.
    order = np.lexsort((rows[:, 0], rows.sum(axis=1)))  # the two largest levels last
    return _log_p(tuple(map(tuple, rows[order].tolist())))


@lru_cache(maxsize=100_000)
def _log_p(rows: tuple[tuple[int, int], ...]) -> float | None:
    """With x_k positives in level k of size n_k a table's likelihood is prod_k C(n_k, x_k) / C(N, P).

    All beginnings (x_1 .. x_(r-2)) are walked through; the two levels left have one free count, whose likelihoods are
    sorted and summed up once for each number of positives that they may share.
    """
    table = np.array(rows, dtype=np.intp)
    size, positives = table.sum(axis=1), int(table[:, 0].sum())
    fewest, most = max(0, positives - int(size[:-2].sum())), min(positives, int(size[-2:].sum()))
    beginnings = float(np.prod(size[:-2] + 1.0))
    if max(beginnings, (most - fewest + 1.0) * (min(size[-2], positives) + 1.0)) > MOST:
        return None
    logs = [_choose(int(n), np.arange(n + 1)) for n in size]
    term = float(sum(logs[k][x] for k, x in enumerate(table[:, 0])))
    total = float(_choose(int(size.sum()), np.array([positives]))[0])
    ends, tops, sums, starts = _last_two(logs[-2], logs[-1], fewest, most)
    begin = np.full((max(len(size) - 2, 0), int(size[:-2].max(initial=0)) + 1), -np.inf)
    for k, part in enumerate(logs[:-2]):
        begin[k, : len(part)] = part
    likelihood = _walk(begin, size[:-2], positives, fewest, term + SLACK, total, ends, tops, sums, starts)
    least = term - total
    return min(max(float(np.log(likelihood)) if likelihood > 0 else least, least), 0.0)


def _choose(n: int, x: IntArray) -> Array:
    """log of n over x."""
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(x + 1.0) - special.gammaln(n - x + 1.0))


def _last_two(first: Array, second: Array, fewest: int, most: int) -> tuple[Array, Array, Array, IntArray]:
    """For each number s of positives in two levels: the sorted log-likelihoods, the largest of them, and running sums
    of the likelihoods in units of the largest; all s one after the other, from starts[s - fewest]."""
    ends, tops, sums, starts = [], [], [], [0]
    for s in range(fewest, most + 1):
        x = np.arange(max(0, s - len(second) + 1), min(len(first) - 1, s) + 1)
        sorted_logs = np.sort(first[x] + second[s - x])
        ends.append(sorted_logs)
        tops.append(sorted_logs[-1])
        # Running sums by likelihood: how much lies below a bound is then one binary search.
        sums.append(np.cumsum(np.exp(sorted_logs - sorted_logs[-1])))
        starts.append(starts[-1] + len(x))
    return np.concatenate(ends), np.array(tops), np.concatenate(sums), np.array(starts, dtype=np.intp)


@jit
def _walk(
    logs: Array,
    size: IntArray,
    positives: int,
    fewest: int,
    term: float,
    total: float,
    ends: Array,
    tops: Array,
    sums: Array,
    starts: IntArray,
) -> float:
    """The chance of all tables whose log-likelihood (less that of the margins) is at most `term`."""
    levels, most = size.shape[0], tops.shape[0] - 1
    x, chance = np.zeros(levels + 1, dtype=np.intp), 0.0
    while True:
        begun, taken = 0.0, 0
        for k in range(levels):
            begun += logs[k, x[k]]
            taken += x[k]
        s = positives - taken - fewest
        if 0 <= s <= most:
            low, high = starts[s], starts[s + 1]
            while low < high:  # how many ends are no likelier
                middle = (low + high) // 2
                if begun + ends[middle] <= term:
                    low = middle + 1
                else:
                    high = middle
            if low > starts[s]:
                chance += np.exp(begun + tops[s] - total) * sums[low - 1]
        k = 0
        # Count on like an odometer whose wheels have size_k + 1 digits.
        while k < levels and x[k] == size[k]:
            x[k] = 0
            k += 1
        if k == levels:
            return chance
        x[k] += 1
