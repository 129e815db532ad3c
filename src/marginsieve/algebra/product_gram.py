"""Kernels of inner products: A = sum_j w_j x_j z_j."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..contracts import Array, IntArray, Matrix, TableView, is_sparse
from .block_products import parts
from .blocks import new_rows, table_columns
from .smooth import SmoothGram


@dataclass(frozen=True, eq=False)
class ProductGram(SmoothGram):
    """K = outer(sum_j w_j x_j z_j), outer a polynomial.

    A kernel's `bind` builds it.

    Parameters
    ----------
    kernel : Kernel
        Kernel with the outer function and its derivatives.
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor.
    features : array of int of shape (p,)
        The live features, sorted.
    block : Block
        Columns of the table kept as rows, shared by Grams over fewer features.
    place : array of int of shape (p,)
        Position of each live feature in the block.
    product : array of shape (m, m)
        Weighted sum over the live columns, before the divisor.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Polynomial
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> gram = Polynomial(degree=2, average=False).bind(Schema.from_table(X).table(X), np.ones(2), np.arange(2))
    >>> gram.matrix()
    array([[ 36.,  36.],
           [ 36., 121.]])
    >>> gram.without(np.array([1])).matrix()
    array([[  4.,  16.],
           [ 16., 100.]])
    """

    @classmethod
    def columns_of(cls, table: TableView, live: IntArray) -> tuple[Matrix, Array | None]:
        """The live columns as they are."""
        return table_columns(table, live), None

    def base(self, u: Array, v: Array) -> Array:
        """u v."""
        return u * v

    def rows_of(self, Z: Matrix) -> Matrix:
        """New rows (rows, n) as a block (p, rows) of the live features."""
        return new_rows(Z, self.features)

    def diagonal_at(self, Z: Matrix) -> Array:
        """(rows,): K(x, x) of new rows Z (rows, n)."""
        part = Z[:, self.features]
        square = part.multiply(part) if is_sparse(part) else part * part
        return np.asarray(self.outer(square @ self.weight))

    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): sum_i d_i [K(x_i, x_i) - K(without j)(x_i, x_i)]."""
        A, w, out = self.own_inner.diagonal(), self.weight, np.empty(len(self.features))
        K = self.outer(A)
        for part in parts(len(w)):
            z = self.block.columns[self.place[part]]
            squares = np.asarray((z.multiply(z)).toarray() if is_sparse(z) else z * z)
            out[part] = (K - self.outer(A - w[part, None] * squares)) @ d
        return out


@dataclass(frozen=True, eq=False)
class LinearGram(ProductGram):
    """K = sum_j w_j x_j z_j: everything about one feature is a product with its column.

    A kernel's `bind` builds it.

    Parameters
    ----------
    kernel : Kernel
        The linear kernel.
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor.
    features : array of int of shape (p,)
        The live features, sorted.
    block : Block
        Columns of the table kept as rows, shared by Grams over fewer features.
    place : array of int of shape (p,)
        Position of each live feature in the block.
    product : array of shape (m, m)
        Weighted sum over the live columns, before the divisor.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> gram = Linear().bind(Schema.from_table(X).table(X), np.ones(2), np.arange(2))
    >>> gram.matrix()
    array([[ 5.,  5.],
           [ 5., 10.]])
    >>> gram.drop_one_change(np.array([1.0, -1.0]))
    array([4., 1.])
    """

    linear: ClassVar[bool] = True

    def _times(self, V: Array) -> Array:
        """Z'V for the live columns; cheaper on the whole block than after copying the live part of it."""
        return np.asarray((self.block.columns @ V)[self.place])

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c, without the matrix."""
        if Z is None:
            return np.asarray(self.own_matrix @ c)
        return np.asarray((self.weight * self._times(c)) @ self.rows_of(Z))

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c: the whole less one column's part."""
        u = self.weight * self._times(c)
        rows = self.block.columns if Z is None else self.rows_of(Z)
        whole = self.apply(c) if Z is None else u @ rows
        for part in parts(len(u)):
            columns = rows[self.place[part]] if Z is None else rows[part]
            yield part, whole - u[part, None] * (columns.toarray() if is_sparse(columns) else columns)

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:  # noqa: ARG002
        """(p,): w_j (z_j'c) (z_j'd), exact as it is."""
        left = self.block.columns @ c
        right = left if d is None else self.block.columns @ d
        return self.divide(self.total_weight * (left * right)[self.place])

    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j."""
        return np.asarray(self._times(c) ** 2) if d is None else super().weight_gradient(c, d)

    def feature_quadratic(self, c: Array) -> Array:
        """(p,): c'K_j c with K_j = z_j z_j'."""
        return np.asarray(self._times(c) ** 2)

    def feature_products(self, c: Array, places: IntArray) -> Array:
        """(k, m): K_j c with K_j = z_j z_j', for the live features at some places."""
        z = self.block.columns[self.place[places]]
        z = np.asarray(z.toarray()) if is_sparse(z) else z
        return np.asarray((z @ c)[:, None] * z)
