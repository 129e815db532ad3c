"""Kernels of squared distances: A = -1/2 sum_j w_j (x_j - z_j)^2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..contracts import Array, IntArray, Matrix, TableView
from ..data.stored import is_stored
from .block_products import as_distance, row_squares
from .blocks import new_rows, table_columns
from .smooth import SmoothGram


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
