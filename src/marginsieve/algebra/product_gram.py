"""Grams made of products of columns: A = sum_j w_j x_j z_j, and squared distances; whole, thin, or a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
from scipy import sparse

from ..contracts import Array, HasCache, IntArray, Matrix, TableView, is_sparse
from ..data.stored import is_stored
from .blocks import (
    Line,
    as_distance,
    new_rows,
    nonzero_rows,
    parts,
    row_squares,
    rows_at_once,
    table_columns,
    weighted_product,
)
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
        return self.divide(self.total_weight * (left * right).take(self.place))

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


# The linear kernel with many rows: products with the columns, sparse or not, and no matrix of rows by rows.

FEW, CELLS = 200, 2**24  # columns, or cells, of a sparse table up to which it is unpacked


@dataclass(frozen=True, eq=False)
class ThinGram(LinearGram):
    """K = sum_j w_j x_j z_j with many rows; machines read `factor` in place of a kernel matrix.

    The linear kernel's `bind` builds it. A kernel matrix is made only for those who ask for one.

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
    product : array of shape (0, 0) or (m, m)
        Weighted sum over the live columns, where it is known already.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.algebra import ThinGram
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Linear
    >>> X = np.array([[1.0], [3.0], [2.0]])
    >>> gram = ThinGram.build(Linear(), Schema.from_table(X).table(X), np.full(1, 4.0), np.arange(1))
    >>> gram.factor
    array([[2., 6., 4.]])
    """

    matrix_free: ClassVar[bool] = True

    @classmethod
    def columns_of(cls, table: TableView, live: IntArray) -> tuple[Matrix, Array | None]:
        """The live columns as they are; few of a sparse table, or few cells, are unpacked."""
        columns, centre = super().columns_of(table, live)
        small = len(live) <= FEW or len(live) * table.shape[0] <= CELLS
        return columns.toarray() if is_sparse(columns) and small else columns, centre

    @cached_property
    def factor(self) -> Matrix | None:
        """(p, m): the live columns times the roots of their weights, V with K = V'V; None where K is known already."""
        if self.product.size:
            return None
        weight, columns = self.weight, self.columns
        if np.all(weight == 1.0):
            return columns
        if is_sparse(columns):
            return sparse.csr_array(sparse.diags_array(np.sqrt(weight)) @ columns)
        return np.sqrt(weight)[:, None] * columns

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c, without the matrix."""
        rows = self.columns if Z is None else self.rows_of(Z)
        return np.asarray((self.weight * self._times(c)) @ rows)

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        if Z is not None:
            return self.diagonal_at(Z)
        if is_sparse(self.columns):
            return np.asarray(self.weight @ self.columns.multiply(self.columns))
        return np.asarray(np.einsum("p,pm,pm->m", self.weight, self.columns, self.columns))

    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): w_j sum_i d_i x_ij^2."""
        out = np.empty(len(self.features))
        for part in parts(len(out)):
            z = self.block.columns[self.place[part]]
            out[part] = (z.multiply(z) if is_sparse(z) else z * z) @ d
        return np.asarray(self.weight * out)

    def line(self, direction: Array) -> Line:
        """Grams at weights (sqrt(w) + l * direction)^2."""
        whole = LinearGram(
            self.kernel, self.table, self.feature_weight, self.features, self.block, self.place, self.total
        )
        return whole.line(direction)


# Kernels of squared distances: A = -1/2 sum_j w_j (x_j - z_j)^2.


@dataclass(frozen=True, eq=False)
class DistanceGram(SmoothGram):
    """K = exp(A), A = -1/2 sum_j w_j (x_j - z_j)^2.

    Columns are centered, which leaves distances unchanged and reduces rounding errors. A kernel's `bind` builds it.

    Parameters
    ----------
    kernel : Kernel
        Kernel with the outer function.
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor.
    features : array of int of shape (p,)
        The live features, sorted.
    block : Block
        Centered columns of the table kept as rows, shared by Grams over fewer features.
    place : array of int of shape (p,)
        Position of each live feature in the block.
    product : array of shape (m, m)
        Weighted sum of products over the live columns, before the divisor.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Gaussian
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> gram = Gaussian(average=False).bind(Schema.from_table(X).table(X), np.ones(2), np.arange(2))
    >>> gram.matrix().round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    distance: ClassVar[bool] = True

    @classmethod
    def columns_of(cls, table: TableView, live: IntArray) -> tuple[Matrix, Array | None]:
        """The live columns, centred."""
        columns = table_columns(table, live)
        centre = columns.mean(axis=1)
        if is_stored(columns):
            return columns.centre(centre), centre
        return np.subtract(columns, centre[:, None], out=None if len(live) == table.shape[1] else columns), centre

    def base(self, u: Array, v: Array) -> Array:
        """-(u - v)^2 / 2."""
        return np.asarray(-0.5 * (u - v) ** 2)

    def rows_of(self, Z: Matrix) -> Matrix:
        """New rows (rows, n) as a block (p, rows) of the live features, centred as the training rows are."""
        assert self.block.centre is not None
        rows, centre = new_rows(Z, self.features), self.block.centre[self.place]
        return rows.centre(centre) if is_stored(rows) else rows - centre[:, None]

    def inner_of(self, product: Array) -> Array:
        """A from a product of the training rows."""
        A = self.divide(product)
        return as_distance(A, A.diagonal(), A.diagonal())

    def inner_from(self, product: Array, left: Array, right: Array) -> Array:
        """A from products of rows (before the divisor) whose products with themselves are given."""
        return as_distance(self.divide(product), self.divide(left), self.divide(right))

    def inner(self, Z: Matrix) -> Array:
        """(rows, m): -1/2 sum_j w_j (x_j - z_j)^2 between new rows and the training rows."""
        rows, columns, weight = self.rows_of(Z), self.columns, self.weight
        squares = self.divide(self.total.diagonal()) if self.total_is_known else row_squares(columns, weight)
        return as_distance(self.weighted_sum(rows, weight, columns), row_squares(rows, weight), squares)

    def diagonal_at(self, Z: Matrix) -> Array:
        """(rows,): K(x, x) of new rows Z (rows, n)."""
        return np.asarray(self.outer(np.zeros(Z.shape[0])))

    def drop_one_diagonal_change(self, d: Array) -> Array:  # noqa: ARG002
        """(p,) of 0: the diagonal does not depend on the features."""
        return np.zeros(len(self.features))

    def further(self, A: Array, squares: Array) -> tuple[Array, Array]:
        """K of further rows with the training rows from their products A (rows, m), and of each with itself."""
        m = A.shape[1]
        return np.asarray(self.outer(as_distance(A, squares[m:], squares[:m]))), self.outer(np.zeros(len(A)))


# Smooth kernels with more training rows than their kernel matrix has room: it is made for some rows at a time.
#
# The limit is the kernel's `cache`. What is quadratic in coefficients is summed over pairs of groups of rows.


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
