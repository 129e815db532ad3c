"""Margin change: how far the squared margin norm moves when a feature is left out and alpha is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from .._types import Array
from ..gram import Gram
from ..problem import Problem, Solution


class MarginChange(BaseEstimator):
    """|W^2 - W^2(without j)|, W^2 = c'Kc; on the linear kernel this is w_j^2 (Guyon et al. 2002)."""

    needs = frozenset({"solution"})

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) summed over the binary problems."""
        assert gram is not None
        total = np.abs(gram.drop_one_change(solutions[0].coef))
        for solution in solutions[1:]:
            total += np.abs(gram.drop_one_change(solution.coef))
        return np.asarray(total)
