"""The linear kernel with many rows: products with the columns, sparse or not, and no matrix of rows by rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from ..contracts import Array, Gram, IntArray, Kernel, Matrix, TableView, is_sparse
from .block_products import parts
from .blocks import NO_PRODUCT, Block
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
    def build(cls, kernel: Kernel, table: TableView, feature_weight: Array, live: IntArray) -> Self:
        """The kernel on some features at weights (n,)."""
        columns, centre = cls.columns_of(table, live)
        if is_sparse(columns) and (len(live) <= FEW or len(live) * table.shape[0] <= CELLS):
            columns = columns.toarray()
        block = Block(live, columns, feature_weight[live], centre, 0.0)
        return cls(kernel, table, feature_weight, live, block, np.arange(len(live)), NO_PRODUCT)

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

    def without(self, features: IntArray) -> Gram:
        """The Gram with these features dropped."""
        return self.without_product(features)

    def rescale(self, feature_weight: Array, features: IntArray | None = None) -> Self:
        """The same features, or some of them (sorted), at other weights (n,)."""
        live = self.features if features is None else features
        place = self.place if features is None else self.place[np.searchsorted(self.features, features)]
        columns = self.columns if features is None else self.block.columns[place]
        block = Block(live, columns, feature_weight[live], None, 0.0)
        return replace(
            self,
            feature_weight=feature_weight,
            features=live,
            block=block,
            place=np.arange(len(live)),
            product=NO_PRODUCT,
        )

    def only(self, rows: IntArray) -> Self:
        """The Gram among some training rows; where the rest has coefficient 0, its quadratic forms are the same."""
        columns = self.block.columns[:, rows]
        block = replace(self.block, columns=columns if is_sparse(columns) else np.ascontiguousarray(columns))
        return replace(self, table=self.table.sample(rows), block=block, product=NO_PRODUCT)

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
