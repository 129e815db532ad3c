"""What a smooth kernel is without one feature, from derivatives of its outer function.

Products and distances share it: both are made of products of columns, and leaving a feature out is a Taylor series.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, cast

import numpy as np

from ..contracts import Array, IntArray, Matrix
from ..data.stored import is_stored
from ..data.table import column_of
from . import buffers, series
from .block_products import block_pairs, nonzero_rows, parts, quadratic_rows, subtract_rows, weighted_product
from .blocks import BlockGram

FEW = 4  # columns up to which a downdate is a compiled loop instead of a matrix product
CACHED = 2**17  # cells of a kernel matrix that are made at once
MOST_ON = 0.8  # share of non-zero coefficients above which picking their samples out costs more than it saves


class SmoothKernel(Protocol):
    """A kernel with a smooth outer function: its values, and its derivatives (None beyond the last that is not 0)."""

    def outer(self, A: Array) -> Array: ...
    def outer_derivative(self, A: Array, order: int = 1) -> Array | None: ...


@dataclass(frozen=True, eq=False)
class SmoothGram(BlockGram):
    """K = outer(A) with A from products of columns."""

    distance: ClassVar[bool] = False  # A is minus half a squared distance, and outer is exp

    @staticmethod
    def weighted_sum(left: Matrix, weights: Array, right: Matrix | None = None) -> Array:
        """sum_j weights_j left_j right_j'."""
        return weighted_product(left, weights, right)

    @abstractmethod
    def base(self, u: Array, v: Array) -> Array:
        """base_j of values of a column."""

    @property
    def smooth(self) -> SmoothKernel:
        """The kernel, for its outer function."""
        return cast(SmoothKernel, self.kernel)

    def outer(self, A: Array) -> Array:
        """K from A."""
        return self.smooth.outer(A)

    @cached_property
    def own_matrix(self) -> Array:
        """(m, m): K of the training rows, a few rows at a time, so that what lies between stays in the cache."""
        if self.linear:
            return np.ascontiguousarray(self.own_inner)
        m = self.table.shape[0]
        out = buffers.matrix(m, m)
        if self.total_is_known or is_stored(self.block.columns) or np.any(self.total_weight < 0):
            squares = self.total.diagonal()
            for rows in parts(m, max(1, CACHED // max(m, 1))):
                out[rows] = self.outer(self.inner_from(self.total[rows], squares[rows], squares))
            return out
        R = np.sqrt(self.total_weight)[:, None] * self.columns
        squares = np.einsum("pm,pm->m", R, R)
        for i, j in block_pairs(m):
            A = self.inner_from(R[:, i].T @ R[:, j], squares[i], squares[j])
            if i == j and self.distance:
                np.fill_diagonal(A, 0.0)
            out[i, j] = self.outer(A)
            if i != j:
                out[j, i] = out[i, j].T
        return out

    def inner_from(self, product: Array, left: Array, right: Array) -> Array:  # noqa: ARG002
        """A from products of rows (before the divisor) whose products with themselves are given."""
        return self.divide(product)

    def inner_among(self, on: IntArray) -> Array:
        """(q, q): A among some training rows."""
        q, total = len(on), self.total
        out, squares = buffers.matrix(q, q), total.diagonal()[on]
        for rows in parts(q, max(1, CACHED // max(q, 1))):
            out[rows] = self.inner_from(total[on[rows]][:, on], squares[rows], squares)
        return out

    def downdate(self, gone: IntArray) -> tuple[Array, float]:
        """The product less that of the live features at some places, and its trace."""
        if len(gone) <= FEW and not self.table.is_sparse:
            return subtract_rows(self.total, self.block.columns, self.place[gone], self.total_weight[gone])
        return super().downdate(gone)

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c by the series; where it does not converge, by one kernel matrix for each feature."""
        on = nonzero_rows(c)
        A = self.own_inner[:, on] if Z is None else self.inner(Z)[:, on]
        others = None if Z is None else self.rows_of(Z)
        for part, values, sure in series.products(self._live_on(A, on), others, c[on]):
            unsure = np.flatnonzero(~sure)
            if len(unsure):
                values[unsure] = self._decisions_without(part.start + unsure, A, c[on], on, Z)
            yield part, values

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:
        """(p,): c'Kd - c'K(without j)d, by the series, or with `exact` by one kernel matrix for each feature."""
        on = nonzero_rows(c if d is None else np.abs(c) + np.abs(d))
        left = c[on]
        right = left if d is None else d[on]
        A = self.inner_among(on)
        if exact:
            return self._changes_without(np.arange(len(self.features)), A, left, right, on)
        return series.changes(
            self._live_on(A, on), left, right, lambda places: self._changes_without(places, A, left, right, on)
        )

    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j."""
        some = nonzero_rows(c if d is None else np.abs(c) + np.abs(d))
        on = None if len(some) > MOST_ON * len(c) else some
        A, v = (self.own_inner, c) if on is None else (self.inner_among(on), c[on])
        slope = np.asarray(self.smooth.outer_derivative(A))
        G = np.outer(v, v) * slope  # d(c'Kc) / dw_j = sum_ik c_i c_k outer'(A_ik) base_j(x_i, x_k)
        if d is not None:
            G[np.diag_indices_from(G)] += (d if on is None else d[on]) * slope.diagonal()
        return quadratic_rows(self.columns, G, self.distance, on)

    def _live_on(self, A: Array, on: IntArray) -> series.LiveColumns:
        """The live columns over some training rows, and the derivatives of outer at A."""
        known: dict[int, Array | None] = {}

        def derivative(order: int) -> Array | None:
            key = 0 if self.distance else order
            if key not in known:
                known[key] = self.smooth.outer_derivative(A, key)
            return known[key]

        return series.LiveColumns(self.block.columns, self.place, on, self.weight, self.distance, derivative)

    def _changes_without(self, places: IntArray, A: Array, c: Array, d: Array, on: IntArray) -> Array:
        """drop_one_change of some live features, one kernel matrix each."""
        K, w = self.outer(A), self.weight
        changes = []
        for k in places:
            v = column_of(self.table.Z, self.features[k])[on]
            changes.append(c @ (K - self.outer(A - w[k] * self.base(v[:, None], v[None, :]))) @ d)
        return np.array(changes)

    def _decisions_without(self, places: IntArray, A: Array, c: Array, on: IntArray, Z: Matrix | None) -> Array:
        """K(without j) @ c for some live features j, one kernel matrix each."""
        w, rows, out = self.weight, self.table.Z if Z is None else Z, []
        for k in places:
            j = self.features[k]
            u, v = column_of(rows, j), column_of(self.table.Z, j)[on]
            out.append(self.outer(A - w[k] * self.base(u[:, None], v[None, :])) @ c)
        return np.array(out).reshape(len(places), -1)
