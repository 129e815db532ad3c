"""Is there any signal at all? Five statistics against the same on permuted outcomes, in closed form.

Ridge regression without a row is linear in the outcome, and so is a column's covariance with it: thousands of
permutations are products of matrices. No folds are drawn and nothing is searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..contracts import Array, IntArray
from ..data.table import filled_with_means, one_hot
from ..kernels import Clinical
from ..outcomes import Target
from ..solvers.execution import one_thread
from ..solvers.ridge import HeldOutRidge
from .rows import Rows
from .training import varying_columns

PERMUTATIONS, MORE_PERMUTATIONS = 999, 9999
WORTH_MORE = 0.2  # p below which more permutations are drawn
CHUNK = 500  # permutations at a time
PIECE = 1_000_000  # labels of permutations of columns at a time
WEAK, CLEAR = 0.05, 0.01  # p above which there is no evidence, and up to which it is clear
MOST_ROWS = 2000  # that are looked at: of longer tables a sample, a rare class whole
PENALTIES = (0.1, 1.0)  # of the linear kernel, in mean squared lengths of its rows
SMOOTH_PENALTY = 0.1  # of the other kernel
FEWEST_LEADING, LEADING = 5, 0.01  # the columns with the largest statistics, at least and as a share
NEAR_ONE = 1e-9
DIGITS = 9  # of held-out values, which are about 1 in size: what differs by rounding alone is equal

TOGETHER, NON_LINEAR, SINGLE, SEVERAL = "together", "non-linear", "single", "several"
STATISTICS = (TOGETHER, TOGETHER, NON_LINEAR, SINGLE, SEVERAL)  # what each of them looks for
LARGEST = STATISTICS.index(SINGLE)


@dataclass(frozen=True)
class Evidence:
    """Whether the columns say anything of the outcome.

    Attributes
    ----------
    p : float
        The share of labellings, ours included, whose smallest p is as small.
    each : array of shape (5,)
        The p of each statistic by itself.
    values : array of shape (5,)
        The statistics.
    carried_by : str
        What the statistic with the smallest p looks for: "together", "non-linear", "single" or "several".
    column_p : array of shape (n,)
        For each column the share of labellings whose largest statistic over all columns is as large.
    column_value : array of shape (n,)
        The statistic of each column.
    permutations : int
        Number of permutations.
    smallest_p : float
        The smallest p that there can be.
    rows : int
        Number of rows that were looked at.
    """

    p: float
    each: Array
    values: Array
    carried_by: str
    column_p: Array
    column_value: Array
    permutations: int
    smallest_p: float
    rows: int

    @property
    def strength(self) -> str:
        """ "none", "weak" or "clear"."""
        return "none" if self.p > WEAK else "weak" if self.p > CLEAR else "clear"


def find_evidence(part: Rows, rng: np.random.Generator, most: int = MORE_PERMUTATIONS) -> Evidence:
    """The smallest p of five statistics, compared with the smallest p of each permutation (Westfall and Young).

    The statistics are the agreement of held-out ridge regression with the outcome, on the linear kernel at two
    penalties and on a non-linear one (the clinical kernel where there are categories or gaps), the largest statistic of
    a column and the mean of the largest.
    """
    sample = sample_rows(part, rng)
    target = sample.target
    with one_thread():
        tests = _Tests.from_rows(sample)
        observed = tests.columns.statistics(np.arange(len(target))[None])[0]
        parts: list[Array] = []
        drawn, p = 0, 0.0
        for count in (PERMUTATIONS, most):
            if p < WORTH_MORE and count > drawn:
                parts += [tests.statistics(order) for order in _labellings(target, count - drawn, rng, first=not drawn)]
                drawn = count
                statistics = np.concatenate(parts)
                each, p = smallest_p(statistics)
    largest = np.sort(statistics[:, LARGEST])
    ahead = len(largest) - np.searchsorted(largest, observed - NEAR_ONE * np.abs(observed))
    # Where few labellings differ each is drawn many times, by chance less often than its share.
    least = max(1.0 / (drawn + 1), float(np.exp(-target.log_permutations)))
    p, each = max(p, least), np.maximum(each, least)
    column_p, column_value = np.ones(part.table.shape[1]), np.zeros(part.table.shape[1])
    column_value[tests.columns.features] = observed
    column_p[tests.columns.features] = np.maximum(ahead / len(largest), least)
    spread = np.maximum(statistics.std(axis=0), 1e-300)
    gain = (statistics[0] - statistics.mean(axis=0)) / spread  # decides between statistics of the same p
    carried = STATISTICS[int(np.lexsort((-gain, each))[0])]
    return Evidence(
        p=p,
        each=each,
        values=statistics[0],
        carried_by=carried,
        column_p=column_p,
        column_value=column_value,
        permutations=drawn,
        smallest_p=least,
        rows=len(sample),
    )


def sample_rows(part: Rows, rng: np.random.Generator) -> Rows:
    """At most `MOST_ROWS` rows, a rare class whole; of groups of one outcome each the same share of their rows.

    Groups of equal size stay so whatever their outcome, or they could not change places.
    """
    target, count = part.target, len(part)
    if count > MOST_ROWS and target.groups is not None:
        group, size = np.unique(target.groups, return_inverse=True, return_counts=True)[1:]
        outcomes = np.unique(np.stack([group, target.strata]), axis=1)[0]
        if size[np.bincount(outcomes) > 1].sum() < count / 2:
            share = MOST_ROWS / count
            while (kept := np.maximum((size * share).astype(np.intp), 1)).sum() > MOST_ROWS and kept.max() > 1:
                share *= 0.95
            order = np.lexsort((rng.random(count), group))  # by group, in each at random
            place = np.arange(count) - np.repeat(np.cumsum(size) - size, size)
            part = part.take(np.sort(order[place < np.repeat(kept, size)]))
    return part.with_sample(MOST_ROWS, rng).sample_part


def smallest_p(statistics: Array) -> tuple[Array, float]:
    """(S,) the p of each of the first row's statistics (B + 1, S) among all rows, and of the smallest of them."""
    count = len(statistics)
    ascending = np.sort(statistics, axis=0)
    each = np.column_stack(
        [
            (count - np.searchsorted(column, values - NEAR_ONE * np.abs(values))) / count
            for column, values in zip(ascending.T, statistics.T, strict=True)
        ]
    )
    least = each.min(axis=1)
    return each[0], float(np.mean(least <= least[0] + 1e-12))


def _labellings(target: Target, count: int, rng: np.random.Generator, first: bool) -> Iterator[IntArray]:
    """(chunk, m) rows from which the outcomes come: some permutations at a time, before them the rows as they are."""
    if first:
        yield np.arange(len(target))[None]
    for start in range(0, count, CHUNK):
        yield target.permutations(min(CHUNK, count - start), rng)


def numeric_columns(part: Rows) -> tuple[Array, IntArray, IntArray]:
    """(m, d) the columns that vary as numbers, the column that each is made of, and those columns.

    A column of numbers has mean 0 and variance 1, an empty cell its mean. A category has a column for each level, of
    length sqrt(m) before its mean was taken off, so that sum_l (x_l'q)^2 is Pearson's chi^2 for a unit vector q.
    """
    table = part.table
    features = np.flatnonzero(varying_columns(table)).astype(np.intp)
    Z = table.Z[:, features]
    Z = Z.toarray() if table.is_sparse else np.asarray(Z)
    kind = [table.kind[j] for j in features]
    X, owner = one_hot(filled_with_means(Z, Z, kind), Z, kind)
    X = np.nan_to_num(X)  # a category that is missing has no level
    several = np.bincount(owner, minlength=len(features))[owner] > 1
    length = np.sqrt(np.where(several, (X**2).sum(axis=0), ((X - X.mean(axis=0)) ** 2).sum(axis=0)) / len(X))
    return np.asarray((X - X.mean(axis=0)) / np.where(length > 0, length, 1.0)), owner, features


def even_columns(X: Array, owner: IntArray) -> Array:
    """The same with the levels of a category shrunken, so that it weighs what a column of numbers does."""
    variance = np.bincount(owner, (X**2).mean(axis=0))
    return np.asarray(X / np.sqrt(np.where(variance > 0, variance, 1.0))[owner])


@dataclass(frozen=True)
class ColumnTests:
    """A statistic of each column, for any labelling."""

    target: Target
    basis: Array  # (d, m) what columns are correlated with
    X: Array
    owner: IntArray
    features: IntArray  # the columns that vary
    width: Array  # (columns,) the dimensions of a column: 1 of numbers, the levels less one of a category

    @classmethod
    def from_rows(cls, part: Rows) -> ColumnTests:
        """Those of the columns that vary."""
        X, owner, features = numeric_columns(part)
        width = np.maximum(np.bincount(owner, minlength=len(features)) - 1.0, 1.0)
        return cls(part.target, part.target.association(), X, owner, features, width)

    def statistics(self, order: IntArray) -> Array:
        """(B, columns): t^2 of a column of numbers and two classes; others as the t^2 that is as unlikely by chance.

        With x a column of `width` dimensions, Q the orthonormal basis (d, m) and V = |Q x|^2 / |x|^2, summed over the
        dimensions, Pillai's trace: F = (m - 1 - max(width, d)) V / (s - V) s / (width d), s = min(width, d), with width
        d and s (m - 1 - max(width, d)) degrees of freedom. For two classes that is F, from Pearson's chi^2 = m V.
        """
        (B, m), d = order.shape, len(self.basis)
        Q = np.moveaxis(self.basis[:, order], 1, 0)  # (B, d, m)
        Q = _orthonormal(Q) if self.target.groups is not None else Q
        V = ((Q.reshape(B * d, m) @ self.X) ** 2).reshape(B, d, -1).sum(axis=1) / m
        if len(self.owner) > len(self.features):
            V = np.add.reduceat(V, np.searchsorted(self.owner, np.arange(len(self.features))), axis=1)
        most, rest = np.minimum(self.width, d), np.maximum(m - 1 - np.maximum(self.width, d), 0.0)
        value = rest * V / np.maximum(1.0 - V / most, NEAR_ONE)
        wide = np.flatnonzero((self.width * d > 1) & (rest > 0))
        if len(wide):
            value[:, wide] = as_one_degree(value[:, wide], (self.width * d)[wide], (most * rest)[wide], m - 2.0)
        return np.asarray(value)


def permutation_p(part: Rows, permutations: int, rng: np.random.Generator) -> Array:
    """(n,) the p of each column by itself, among the statistics of all columns in permutations; nan: it does not vary.

    Permutations know groups and how rare a class is, which tests by a distribution do not.
    """
    tests, n = ColumnTests.from_rows(part), len(part)
    with one_thread():
        observed = tests.statistics(np.arange(n)[None])[0]
        drawn = part.target.permutations(permutations, rng)
        pieces = np.array_split(drawn, -(-permutations * n // PIECE))
        null = np.sort(np.concatenate([tests.statistics(some).ravel() for some in pieces]))
    as_large = len(null) - np.searchsorted(null, observed - NEAR_ONE * np.abs(observed))
    p = np.full(part.table.shape[1], np.nan)
    p[tests.features] = (1.0 + as_large) / (1.0 + len(null))
    return p


@dataclass(frozen=True)
class _Tests:
    """What the statistics of any labelling are computed from."""

    labels: Array  # (k, m) what machines solve for
    ridges: tuple[tuple[HeldOutRidge, float], ...]  # with their penalties
    columns: ColumnTests

    @classmethod
    def from_rows(cls, part: Rows) -> _Tests:
        columns, target, table = ColumnTests.from_rows(part), part.target, part.table
        X, features = columns.X, columns.features
        even = even_columns(X, columns.owner)
        linear = HeldOutRidge.from_rows(even, np.ones(len(X)), np.random.default_rng(0), target.groups)
        if "nominal" in table.kind or (not table.is_sparse and np.isnan(table.Z).any()):
            kernel = Clinical()
            K = kernel.bind(table.columns(features), kernel.start(table.columns(features)), np.arange(len(features)))
            smooth = HeldOutRidge.from_kernel(K.matrix(), target.groups)
        else:
            smooth = HeldOutRidge.from_kernel(median_gaussian(even), target.groups)
        ridges = [(linear, penalty * linear.unit) for penalty in PENALTIES]
        ridges.append((smooth, SMOOTH_PENALTY * smooth.unit))
        return cls(target.linear_outcome, tuple(ridges), columns)

    def statistics(self, order: IntArray) -> Array:
        """(B, 5) the statistics of B labellings."""
        m = order.shape[1]
        labels = np.moveaxis(self.labels[:, order], 1, 0)  # (B, k, m)
        flat = np.ascontiguousarray(labels.reshape(-1, m).T)
        out = []
        for ridge, penalty in self.ridges:
            values = ridge.held_out(flat, penalty).round(DIGITS).T.reshape(labels.shape)
            out.append(self.columns.target.agreement(values, labels))
        columns = self.columns.statistics(order)
        leading = min(columns.shape[1], max(FEWEST_LEADING, round(LEADING * columns.shape[1])))
        top = np.partition(columns, columns.shape[1] - leading, axis=1)[:, columns.shape[1] - leading :]
        return np.column_stack([*out, top.max(axis=1), top.mean(axis=1)])


def as_one_degree(value: Array, freedom: Array, rest: Array, rest_of_one: float) -> Array:
    """Values of freedom F, with `rest` below, as the t^2 with `rest_of_one` degrees of freedom that is as unlikely.

    Both by Paulson's z = ((1 - b) u - (1 - a)) / sqrt(b u^2 + a), u^3 = F, with a and b 2 / 9 over the degrees of
    freedom.
    """
    a, b = 2.0 / (9.0 * freedom), 2.0 / (9.0 * rest)
    u = np.cbrt(np.maximum(value, 0.0) / freedom)
    z = ((1.0 - b) * u - (1.0 - a)) / np.sqrt(b * u**2 + a)
    p, q, c, e = 1.0 - 2.0 / (9.0 * rest_of_one), 7.0 / 9.0, 2.0 / (9.0 * rest_of_one), 2.0 / 9.0
    z = np.clip(z, -q / np.sqrt(e), 0.999 * p / np.sqrt(c))  # t^2 is between 0 and infinity
    root = np.sqrt(p**2 * e + c * q**2 - z**2 * c * e)
    return np.asarray(((p * q + z * root) / (p**2 - z**2 * c)) ** 3)


def _orthonormal(Q: Array) -> Array:
    """(B, d, m): each set of rows with mean 0, orthonormal; groups of other sizes may have changed their places."""
    Q = Q - Q.mean(axis=2, keepdims=True)
    product = Q @ np.swapaxes(Q, 1, 2)
    size = np.trace(product, axis1=1, axis2=2)[:, None, None]
    factor = np.linalg.cholesky(product + 1e-12 * size * np.eye(Q.shape[1]))
    return np.asarray(np.linalg.solve(factor, Q))


def median_gaussian(X: Array) -> Array:
    """(m, m) exp(-distance^2 / median), of rows; the median is that of different rows."""
    K = X @ X.T
    square = np.maximum(np.diag(K)[:, None] + np.diag(K) - 2.0 * K, 0.0)
    median = float(np.median(square[np.triu_indices(len(X), 1)]))
    return np.asarray(np.exp(-square / (median if median > 0 else 1.0)))
