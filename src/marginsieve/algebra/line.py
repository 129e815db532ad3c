"""A line search over scales: a trial step costs m^2, not m^2 n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..contracts import Array, Gram, IntArray


class OnLine(Protocol):
    """What a line asks of the Gram that it goes through."""

    @property
    def features(self) -> IntArray: ...
    @property
    def feature_weight(self) -> Array: ...
    def matrix_of(self, total: Array) -> Array: ...
    def with_total(self, feature_weight: Array, total: Array) -> Gram: ...


@dataclass(frozen=True)
class Line:
    """sum_j (s_j + l d_j)^2 base_j = total + l * first + l^2 * second, s_j = sqrt(w_j)."""

    gram: OnLine
    direction: Array  # (p,) in units of the square roots of the feature weights
    total: Array  # (m, m) the sum over features that the Gram's matrix is made of
    first: Array
    second: Array

    def matrix(self, length: float) -> Array:
        """K at s + length * direction."""
        return self.gram.matrix_of(self._total_at(length))

    def gram_at(self, length: float) -> Gram:
        """The Gram there."""
        scale = np.sqrt(self.gram.feature_weight)
        scale[self.gram.features] += length * self.direction
        return self.gram.with_total(scale**2, self._total_at(length))

    def _total_at(self, length: float) -> Array:
        return self.total + length * self.first + length**2 * self.second
