"""Filters: scores of each column from the labels alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from .._types import Array, Matrix, is_sparse
from ..gram import Gram
from ..problem import Problem, Solution

COLUMNS_AT_ONCE = 1024


class Fisher(BaseEstimator):
    """|mean_+ - mean_-| / (var_+ + var_-), by column; samples count by their weight.

    It is not scale-free (a difference above, variances below): standardise first.
    """

    needs = frozenset({"labels"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(n,) summed over the one-vs-rest problems."""
        Z, n = problem.table.Z, problem.table.shape[1]
        parts = [slice(start, start + COLUMNS_AT_ONCE) for start in range(0, n, COLUMNS_AT_ONCE)]
        return np.concatenate([_fisher(Z[:, part], problem.y, problem.sample_weight) for part in parts])


def _fisher(Z: Matrix, y: Array, weight: Array) -> Array:
    """Z (m, p), y (k, m) in {-1, +1}, weight (m,) -> (p,)."""
    Z = Z.toarray() if is_sparse(Z) else Z
    whole = weight @ Z / weight.sum()
    Z = Z - whole  # the variances below are differences of squares: keep the means small
    squares, total = Z * Z, np.zeros(Z.shape[1])
    floor = 1e-12 * (weight @ squares) / weight.sum()
    for label in y:
        mean, variance = [], []
        for side in (1.0, -1.0):
            w = weight * (label == side)
            mean.append(w @ Z / w.sum())
            variance.append(np.maximum(w @ squares / w.sum() - mean[-1] ** 2, 0.0))
        spread = np.maximum(variance[0] + variance[1], floor)
        total += np.abs(mean[0] - mean[1]) / np.where(spread > 0, spread, 1.0)
    return total
