"""SMOTE as the papers use it: so many per cent of new rows for the rarest class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import InputError, positive_number, whole_number
from ..outcomes import rarest

MOST_PERCENT = 1e5


class Smote(BaseEstimator):
    """Synthetic rows of the rarest class between its own neighbors, by imbalanced-learn.

    Parameters
    ----------
    percent : float or None
        New rows, in per cent of the rarest class: 400 makes it five times as large (Chawla et al. 2002). None makes
        every class as large as the largest.
    k_neighbors : int
        Neighbors to interpolate with; where the class has fewer, all of them.
    random_state : int or None
        None takes the selector's own.
    """

    def __init__(self, percent: float | None = 400.0, k_neighbors: int = 5, random_state: int | None = None) -> None:
        self.percent = percent
        self.k_neighbors = k_neighbors
        self.random_state = random_state

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """The rows with the new ones after them."""
        from imblearn.over_sampling import SMOTE

        if self.percent is not None:
            positive_number("sampler", "percent", self.percent, MOST_PERCENT)
        whole_number("sampler", "k_neighbors", self.k_neighbors)
        labels, codes = np.unique(y, return_inverse=True)
        code, count = rarest(codes)
        if count < 2:
            raise InputError(
                f"SMOTE interpolates between rows of the rarest class {labels[code]!s}, which has {count} in a "
                "training part: it needs 2 or more"
            )
        strategy: Any = "not majority"
        if self.percent is not None:
            strategy = {labels[code]: count + round(self.percent / 100.0 * count)}
        smote = SMOTE(sampling_strategy=strategy, k_neighbors=self.neighbors(count), random_state=self.random_state)
        return smote.fit_resample(X, y)  # type: ignore[no-any-return]

    def rows_of(self, counts: Sequence[int]) -> int:
        """How many rows it makes of classes with so many rows."""
        if self.percent is None:
            return len(counts) * max(counts)
        return sum(counts) + round(self.percent / 100.0 * min(counts))

    def neighbors(self, count: int) -> int:
        """How many neighbors a class of so many rows is interpolated with."""
        return int(min(self.k_neighbors, count - 1))
