"""SMOTE as the papers use it: so many per cent of new rows for the rarest class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import IntArray
from ..errors import InputError, listing, positive_number, shown_value, whole_number

MOST_PERCENT = 1e5
BASES = ("drawn", "each")


class Smote(BaseEstimator):
    """Synthetic rows of the rarest class between its own neighbors, by imbalanced-learn.

    Parameters
    ----------
    percent : float or None
        New rows, in per cent of the rarest class: 400 makes it five times as large (Chawla et al. 2002). None makes
        every class as large as the largest.
    k_neighbors : int
        Neighbors to interpolate with; where the class has fewer, all of them.
    bases : "drawn" or "each"
        From which rows the new ones start: "drawn" at random with repetition, as imbalanced-learn does; "each" as in
        Chawla et al.: with 400 per cent every row of the class four times, towards neighbors that are drawn without
        repetition as long as there are enough.
    random_state : int or None
        None takes the selector's own.
    """

    def __init__(
        self,
        percent: float | None = 400.0,
        k_neighbors: int = 5,
        bases: str = "drawn",
        random_state: int | None = None,
    ) -> None:
        self.percent = percent
        self.k_neighbors = k_neighbors
        self.bases = bases
        self.random_state = random_state

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """The rows with the new ones after them."""
        from imblearn.over_sampling import SMOTE

        if self.percent is not None:
            positive_number("sampler", "percent", self.percent, MOST_PERCENT)
        whole_number("sampler", "k_neighbors", self.k_neighbors)
        if self.bases not in BASES:
            raise InputError(f"sampler: bases is {shown_value(self.bases)}; it must be one of {listing(BASES)}")
        if self.bases == "each" and (self.percent is None or self.percent % 100 != 0):
            raise InputError(f'sampler: percent is {self.percent}; with bases="each" it must be 100, 200 and so on')
        labels, which, counts = np.unique(y, return_inverse=True, return_counts=True)
        smallest = int(np.argmin(counts))
        count = int(counts[smallest])
        if count < 2:
            raise InputError(
                f"SMOTE interpolates between rows of the rarest class {labels[smallest]!s}, which has {count} in a "
                "training part: it needs 2 or more"
            )
        if self.bases == "each":
            return self._from_each(np.asarray(X), np.asarray(y), np.flatnonzero(which == smallest))
        strategy: Any = "not majority"
        if self.percent is not None:
            strategy = {labels[smallest]: count + round(self.percent / 100.0 * count)}
        smote = SMOTE(sampling_strategy=strategy, k_neighbors=self.neighbors(count), random_state=self.random_state)
        return smote.fit_resample(X, y)  # type: ignore[no-any-return]

    def _from_each(self, X: Any, y: Any, members: IntArray) -> tuple[Any, Any]:
        """So many new rows for each row of the class, on the way to different neighbors of it."""
        from sklearn.neighbors import NearestNeighbors

        assert self.percent is not None
        rng, Z, times = np.random.default_rng(self.random_state), X[members], round(self.percent / 100.0)
        count = self.neighbors(len(members))
        near = NearestNeighbors(n_neighbors=count + 1).fit(Z).kneighbors(Z, return_distance=False)
        others = [row[row != i][:count] for i, row in enumerate(near)]
        rounds = -(-times // count)
        ends = np.array([np.concatenate([rng.permutation(row) for _ in range(rounds)])[:times] for row in others])
        share = rng.random((len(members), times, 1))
        new = Z[:, None, :] + share * (Z[ends] - Z[:, None, :])
        return np.vstack([X, new.reshape(-1, X.shape[1])]), np.concatenate([y, np.repeat(y[members], times)])

    def rows_of(self, counts: Sequence[int]) -> int:
        """How many rows it makes of classes with so many rows."""
        if self.percent is None:
            return len(counts) * max(counts)
        return sum(counts) + round(self.percent / 100.0 * min(counts))

    def neighbors(self, count: int) -> int:
        """How many neighbors a class of so many rows is interpolated with."""
        return int(min(self.k_neighbors, count - 1))
