"""Filters: scores of each column from the labels alone. Samples count by their weight: whole numbers are counts, any
other weights are brought to a mean of 1 first.

Each is vectorised over blocks of columns; with more than two classes the scores of the one-vs-rest problems are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator

from .._jit import jit
from .._products import parts
from .._types import Array, IntArray, is_sparse
from ..errors import whole_number
from ..gram import Gram
from ..problem import Problem, Solution

TINY = 1e-12  # of the variance of a column: what counts as no variance inside the classes


class Fisher(BaseEstimator):
    """|mean_+ - mean_-| / (var_+ + var_-), by column.

    It is not scale-free (a difference above, variances below): standardise first.
    """

    needs = frozenset({"labels"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,)."""
        return _by_block(problem, _fisher)


class TTest(BaseEstimator):
    """|t| of Welch's test: |mean_+ - mean_-| / sqrt(var_+ / m_+ + var_- / m_-); a weight of 2 counts as two samples."""

    needs = frozenset({"labels"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,)."""
        return _by_block(problem, _t)


class Fast(BaseEstimator):
    """|AUC - 1/2| of each column alone: the chance that a positive has the larger value (ties count half).

    Chen and Wasikowski, FAST: a roc-based feature selection metric for small samples and imbalanced data
    classification problems, KDD 2008, 124-132, with the exact area instead of one by thresholds.
    """

    needs = frozenset({"labels"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,)."""
        return _by_block(problem, lambda z, label, weight: _areas_and_gaps(z, label, weight)[0])


class KolmogorovSmirnov(BaseEstimator):
    """The largest distance between the two classes' distribution functions, by column."""

    needs = frozenset({"labels"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,)."""
        return _by_block(problem, lambda z, label, weight: _areas_and_gaps(z, label, weight)[1])


class ChiSquare(BaseEstimator):
    """-log10 p of the chi-square test between a column's levels and the class.

    Parameters
    ----------
    bins : int
        A column with more distinct values than this is cut into so many levels of about equal weight.
    """

    needs = frozenset({"labels"})

    def __init__(self, bins: int = 4) -> None:
        self.bins = bins

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("criterion", "bins", self.bins, 2)

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,)."""
        return _by_block(problem, lambda z, label, weight: _chi_square(_counts(z, label, weight, self.bins)))


class FisherExact(BaseEstimator):
    """-log10 p of Fisher's exact test (two-sided) between a column and the class.

    A column with two values is taken as it is, any other is split at its median. Sums of weights are rounded.
    """

    needs = frozenset({"labels"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,)."""
        return _by_block(problem, lambda z, label, weight: _fisher_exact(_counts(z, label, weight, 2)))


def _by_block(problem: Problem, of: Callable[[Array, Array, Array], Array]) -> Array:
    """(n,): of(columns as rows (p, m), labels (m,), weights (m,)) block by block, added over the class problems."""
    Z, n = problem.table.Z, problem.table.shape[1]
    out, weight = np.zeros(n), _as_counts(problem.sample_weight)
    for part in parts(n):
        block = Z[:, part]
        z = np.ascontiguousarray((block.toarray() if is_sparse(block) else block).T)
        for label in problem.y:
            out[part] += of(z, label, weight)
    return out


def _as_counts(weight: Array) -> Array:
    """Whole numbers are counts; any other weights are brought to a mean of 1."""
    if np.all(weight == np.rint(weight)):
        return weight
    return np.asarray(np.round(weight * (len(weight) / weight.sum()), 12))


def _moments(z: Array, label: Array, weight: Array) -> tuple[list[Array], list[Array], list[float], Array]:
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


def _fisher(z: Array, label: Array, weight: Array) -> Array:
    mean, variance, _, least = _moments(z, label, weight)
    spread = np.maximum(variance[0] + variance[1], least)
    return np.asarray(np.abs(mean[0] - mean[1]) / np.where(spread > 0, spread, 1.0))


def _t(z: Array, label: Array, weight: Array) -> Array:
    mean, variance, total, least = _moments(z, label, weight)
    spread = sum((v / (m - 1.0) for v, m in zip(variance, total, strict=True) if m > 1.0), np.zeros(len(z)))
    spread = np.maximum(spread, least)
    return np.asarray(np.abs(mean[0] - mean[1]) / np.sqrt(np.where(spread > 0, spread, 1.0)))


def _areas_and_gaps(z: Array, label: Array, weight: Array) -> tuple[Array, Array]:
    """(|AUC - 1/2|, largest distance of the distribution functions) by row of z (p, m)."""
    positive = np.where(label > 0, weight, 0.0)
    out = np.empty((2, len(z)))
    _walk(z, np.argsort(z, axis=1), positive, weight - positive, out)
    return out[0], out[1]


@jit
def _tied(row: Array, place: IntArray, positive: Array, negative: Array, plus: Array, minus: Array) -> int:
    """The positives' and the negatives' weights by distinct value of a row, in order; returns how many there are."""
    count = 0
    for i in range(row.shape[0]):
        if i == 0 or row[place[i]] != row[place[i - 1]]:
            plus[count], minus[count] = 0.0, 0.0
            count += 1
        plus[count - 1] += positive[place[i]]
        minus[count - 1] += negative[place[i]]
    return count


@jit
def _walk(z: Array, order: IntArray, positive: Array, negative: Array, out: Array) -> None:
    """Along each row of z (p, m) in its order: pairs won, and how far the two classes' shares are apart."""
    P, N, plus, minus = positive.sum(), negative.sum(), np.empty(z.shape[1]), np.empty(z.shape[1])
    for j in range(z.shape[0]):
        below, passed, won, gap = 0.0, 0.0, 0.0, 0.0
        for k in range(_tied(z[j], order[j], positive, negative, plus, minus)):
            won += plus[k] * (below + 0.5 * minus[k])
            below, passed = below + minus[k], passed + plus[k]
            gap = max(gap, abs(passed / P - below / N))
        out[0, j], out[1, j] = abs(won / (P * N) - 0.5), gap


def _counts(z: Array, label: Array, weight: Array, bins: int) -> Array:
    """(p, bins, 2): the weight of the positives and of the negatives in each level of each row of z (p, m)."""
    positive = np.where(label > 0, weight, 0.0)
    out = np.zeros((len(z), bins, 2))
    _fill_levels(z, np.argsort(z, axis=1), positive, weight - positive, out)
    return out


@jit
def _fill_levels(z: Array, order: IntArray, positive: Array, negative: Array, out: Array) -> None:
    """Equal values share a level; each has its own where there are no more than levels, else by their middle rank."""
    bins, total = out.shape[1], positive.sum() + negative.sum()
    plus, minus = np.empty(z.shape[1]), np.empty(z.shape[1])
    for j in range(z.shape[0]):
        below, distinct = 0.0, _tied(z[j], order[j], positive, negative, plus, minus)
        for k in range(distinct):
            here = plus[k] + minus[k]
            level = k if distinct <= bins else min(bins - 1, int(bins * (below + 0.5 * here) / total))
            out[j, level, 0] += plus[k]
            out[j, level, 1] += minus[k]
            below += here


def _chi_square(counts: Array) -> Array:
    """-log10 p from counts (p, levels, 2)."""
    by_level, by_class = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    expected = by_level * by_class / counts.sum(axis=(1, 2), keepdims=True)
    statistic = np.sum((counts - expected) ** 2 / np.where(expected > 0, expected, 1.0), axis=(1, 2))
    half = 0.5 * np.maximum((by_level[:, :, 0] > 0).sum(axis=1) - 1, 1)
    x = 0.5 * statistic
    with np.errstate(divide="ignore"):
        far = -x + (half - 1.0) * np.log(np.maximum(x, 1e-300)) - special.gammaln(half)  # where p underflows
        p = special.gammaincc(half, x)
        return np.asarray(-np.where(p > 1e-290, np.log(np.maximum(p, 1e-300)), far) / np.log(10.0))


def _fisher_exact(counts: Array) -> Array:
    """-log10 p from counts (p, 2, 2): tables with the same margins that are no likelier than the one seen."""
    table = np.rint(counts).astype(np.intp)
    seen, place = np.unique(table.reshape(-1, 4), axis=0, return_inverse=True)
    value = np.array([_log_p(*row) for row in seen.tolist()])
    return np.asarray(-value[np.ravel(place)] / np.log(10.0))


def _log_p(a: int, b: int, c: int, d: int) -> float:
    """log p of the table ((a, b), (c, d))."""
    x = np.arange(max(0, a - d), min(a + b, a + c) + 1)
    likely = -np.sum([special.gammaln(part + 1.0) for part in (x, a + b - x, a + c - x, d - a + x)], axis=0)
    own = likely[a - x[0]]
    no_likelier = likely <= own + 1e-7
    return float(min(special.logsumexp(likely[no_likelier]) - special.logsumexp(likely), 0.0))
