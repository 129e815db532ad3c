"""Smooth kernels with more training rows than their kernel matrix has room: it is made for some rows at a time.

The limit is the kernel's `cache`. What is quadratic in coefficients is summed over pairs of groups of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from ..contracts import Array, HasCache, IntArray, Matrix
from .block_products import nonzero_rows, parts, row_squares, weighted_product
from .cache import rows_at_once
from .distance import DistanceGram
from .product_gram import ProductGram
from .smooth import SmoothGram


@dataclass(frozen=True, eq=False)
class PartialGram(SmoothGram):
    """A kernel matrix that is never whole; `apply` and `submatrix` take its place.

    Who asks for `matrix()`, moves along lines of weights or compares decision values without a feature still makes it.
    """

    matrix_free: ClassVar[bool] = True

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        return self.diagonal_at(self.table.Z if Z is None else Z)

    def submatrix(self, rows: IntArray) -> Array:
        """(q, q): K of some training rows."""
        return self.outer(self.inner_among(rows))

    def inner_among(self, on: IntArray) -> Array:
        """(q, q): A among some training rows."""
        some = np.ascontiguousarray(self.block.columns[self.place][:, on])
        product = weighted_product(some, self.total_weight)
        squares = product.diagonal().copy()
        A = self.inner_from(product, squares, squares)
        if self.distance:
            np.fill_diagonal(A, 0.0)
        return A

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c, a few rows at a time and only those with a coefficient."""
        on, weight = nonzero_rows(c), self.total_weight
        columns = self.block.columns[self.place]
        right = np.ascontiguousarray(columns[:, on])
        left = columns if Z is None else self.rows_of(Z)
        squares = row_squares(right, weight)
        out = np.empty(left.shape[1])
        scaled = right * weight[:, None]
        for some in parts(len(out), max(1, self._group() ** 2 // max(len(on), 1))):
            rows = left[:, some]
            A = self.inner_from(rows.T @ scaled, row_squares(rows, weight), squares)
            out[some] = self.outer(A) @ c[on]
        return out

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:
        """(p,): c'Kd - c'K(without j)d, summed over pairs of groups of rows."""
        groups = self._groups(c if d is None else np.abs(c) + np.abs(d))
        if len(groups) == 1:
            return super().drop_one_change(c, d, exact)
        total = np.zeros(len(self.features))
        for i, left in enumerate(groups):
            for j, right in enumerate(groups):
                if d is not None:
                    total += super().drop_one_change(_restrict(c, left), _restrict(d, right), exact)
                elif j >= i:
                    times = 1.0 if i == j else 2.0
                    total += times * super().drop_one_change(_restrict(c, left), _restrict(c, right), exact)
        return total

    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j, summed over pairs of groups of rows."""
        groups = self._groups(c if d is None else np.abs(c) + np.abs(d))
        gradient: Callable[[Array, Array | None], Array] = super().weight_gradient
        if len(groups) == 1:
            return gradient(c, d)
        alone = [gradient(_restrict(c, some), None if d is None else _restrict(d, some)) for some in groups]
        plain = alone if d is None else [gradient(_restrict(c, some), None) for some in groups]
        total = np.sum(alone, axis=0)
        for i, left in enumerate(groups):
            for j in range(i):
                both = np.concatenate([left, groups[j]])
                total += gradient(_restrict(c, both), None) - plain[i] - plain[j]
        return np.asarray(total)

    @property
    def rows_at_once(self) -> int:
        """How many rows `submatrix` may be asked for."""
        return rows_at_once(cast(HasCache, self.kernel).cache)

    def _group(self) -> int:
        """How many rows are in a group: matrices of two groups by two groups fit into the cache."""
        return max(16, self.rows_at_once // 4)

    def _groups(self, c: Array) -> list[IntArray]:
        """The rows with a coefficient, in groups."""
        on = nonzero_rows(c)
        return [on[part] for part in parts(len(on), self._group())]


def _restrict(c: Array, rows: IntArray) -> Array:
    """The coefficients of some rows, 0 elsewhere."""
    out = np.zeros_like(c)
    out[rows] = c[rows]
    return out


@dataclass(frozen=True, eq=False)
class PartialDistanceGram(PartialGram, DistanceGram):
    """`DistanceGram` with a kernel matrix that is never whole."""


@dataclass(frozen=True, eq=False)
class PartialProductGram(PartialGram, ProductGram):
    """`ProductGram` with a kernel matrix that is never whole."""
