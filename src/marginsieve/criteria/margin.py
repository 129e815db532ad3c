"""Margin change: how far the squared margin norm moves when a feature is left out and alpha is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, HasMargin, ProblemView, Solution


class MarginChange(BaseEstimator):
    """|W^2 - W^2(without j)|, W^2 = c'Kc; on the linear kernel this is w_j^2 (Guyon et al. 2002).

    Parameters
    ----------
    exact : bool
        To rounding on the Gaussian kernel too, by one kernel matrix for each feature; else within 1e-6 of the median.
    """

    requires: ClassVar[tuple[type, ...]] = (HasMargin,)

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) summed over the binary problems."""
        total = np.abs(gram.drop_one_change(solutions[0].coef, exact=self.exact))
        for solution in solutions[1:]:
            total += np.abs(gram.drop_one_change(solution.coef, exact=self.exact))
        return np.asarray(total)
