"""A line search over scales: a trial step costs m^2, not m^2 n."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..contracts import Array

if TYPE_CHECKING:
    from .gram import Gram


@dataclass(frozen=True)
class Line:
    """Grams along a line of scales: sum_j (s_j + l d_j)^2 base_j = first matrix + l * second + l^2 * third."""

    gram: Gram
    direction: Array  # (p,)
    second: Array  # of products where the kernel has them, else of base_j
    third: Array

    def matrix(self, length: float) -> Array:
        """K at s + length * direction."""
        A = self._at(length)
        return np.asarray(self.gram.kernel.outer(A if self.gram.product is None else self.gram._inner_of(A)))

    def at(self, length: float) -> Gram:
        """The Gram there."""
        gram = self.gram
        scale = gram.scale.copy()
        scale[gram.features] += length * self.direction
        if gram.product is None:
            return gram.rescaled(scale)
        product = self._at(length)
        weight = scale[gram.block.features] ** 2
        block = replace(gram.block, weight=weight, trace=float(product.trace()))
        return replace(gram, scale=scale, block=block, product=product)

    def _at(self, length: float) -> Array:
        first = self.gram._inner if self.gram.product is None else self.gram.product
        return np.asarray(first + length * self.second + length**2 * self.third)
