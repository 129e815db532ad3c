"""The linear kernel with many rows: products with the columns, sparse or not, and no matrix of rows by rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from ..contracts import Array, IntArray, Matrix, TableView, is_sparse
from .block_products import parts
from .line import Line
from .product_gram import LinearGram

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
