"""Kernels of tents: A = sum_j w_j k_j, each k_j a tent in coordinates made for its column (the clinical kernel)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from ..contracts import Array, HasCache, IntArray, Matrix, TableView
from . import buffers
from .block_products import parts
from .blocks import BlockGram
from .cache import rows_at_once
from .tent_sums import MISSING, Tents, add_tents, sum_tents

FEW = 100  # training rows up to which new rows are compared with each of them


@dataclass(frozen=True, eq=False)
class TentGram(BlockGram):
    """K = sum_j w_j k_j, k_j the tents of the clinical kernel.

    A kernel's `bind` builds it.

    Parameters
    ----------
    kernel : Kernel
        The clinical kernel.
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor.
    features : array of int of shape (p,)
        The live features, sorted.
    block : Block
        Columns in the coordinates of their tents, kept as rows and shared by Grams over fewer features.
    place : array of int of shape (p,)
        Position of each live feature in the block.
    product : array of shape (m, m)
        Weighted sum over the live columns, before the divisor.
    tents : Tents
        Training rows in the coordinates of the tents.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Clinical
    >>> X = pd.DataFrame({"age": [20.0, 40.0, 60.0], "stage": ["a", "b", "b"]})
    >>> gram = Clinical().bind(Schema.from_table(X).table(X), np.ones(2), np.arange(2))
    >>> gram.matrix()
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.75],
           [0.  , 0.75, 1.  ]])
    """

    tents: Tents

    @classmethod
    def extra(cls, table: TableView) -> dict[str, Any]:
        """The coordinates of the training rows, made once for a table."""
        return {"tents": table.compute_once(Tents.from_table)}

    @classmethod
    def columns_of(cls, table: TableView, live: IntArray) -> tuple[Matrix, Array | None]:
        """The live columns in the coordinates of their tents."""
        U = table.compute_once(Tents.from_table).U
        return U if len(live) == table.shape[1] else U[live], None

    @staticmethod
    def weighted_sum(left: Matrix, weights: Array, right: Matrix | None = None) -> Array:
        """sum_j weights_j k_j."""
        return sum_tents(left, weights, left if right is None else right)

    @staticmethod
    def trace_of(columns: Array, weight: Array) -> float:
        """The trace of the weighted sum over columns (p, m)."""
        if columns.size and columns.max() < MISSING:
            return float(weight.sum() * columns.shape[1])
        return float(weight @ np.count_nonzero(columns < MISSING, axis=1))

    def downdate(self, gone: IntArray) -> tuple[Array, float]:
        """The product less that of the live features at some places, and its trace."""
        product = buffers.matrix(*self.total.shape)
        np.copyto(product, self.total)
        add_tents(self.block.columns[self.place[gone]], -self.total_weight[gone], product)
        return product, float(product.trace())

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c; new rows are looked up among sorted training rows where these are many."""
        if Z is None or len(c) <= FEW:
            return super().apply(c, Z)
        return self.tents.product(self.features, self.weight, c, self.rows_of(Z))

    def only(self, rows: IntArray) -> Self:
        """The Gram among some training rows, in the coordinates of all."""
        return replace(super().only(rows), tents=self.tents.rows(rows))

    def rows_of(self, Z: Matrix) -> Matrix:
        """New rows (rows, n) as a block (p, rows) in the coordinates of the live features."""
        return self.tents.coordinates_of(Z, self.features)

    def outer(self, A: Array) -> Array:
        """A itself."""
        return A

    def diagonal_at(self, Z: Matrix) -> Array:
        """(rows,): K(x, x) of new rows Z (rows, n), the weights of what is observed."""
        return self.squares_of(self.rows_of(Z), self.weight)

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c: the whole less one column's part."""
        whole = self.apply(c, Z)
        for part in parts(len(self.features)):
            left = None if Z is None else self.tents.coordinates_of(Z, self.features[part])
            parts_of = self.tents.products(self.features[part], c, left)
            yield part, whole - self.weight[part, None] * parts_of

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:  # noqa: ARG002
        """(p,): w_j c'K_j d, exact as it is."""
        return self.weight * self.tents.quadratics(self.features, c, c if d is None else d)

    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): w_j times the sum of d over the rows in which feature j is observed."""
        return self.weight * self.tents.sum_observed(self.features, d)

    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j."""
        observed = 0.0 if d is None else self.tents.sum_observed(self.features, d)
        return np.asarray(self.feature_quadratic(c) + observed)

    def feature_quadratic(self, c: Array) -> Array:
        """(p,): c'K_j c."""
        return self.tents.quadratics(self.features, c, c)

    def feature_products(self, c: Array, places: IntArray) -> Array:
        """(k, m): K_j c for the live features at some places."""
        return self.tents.products(self.features[places], c)

    def squares_of(self, block: Matrix, weight: Array) -> Array:
        """(rows,): the weights of what each row of a block (p, rows) has observed."""
        return np.asarray(weight @ (block < MISSING))


@dataclass(frozen=True, eq=False)
class TallTentGram(TentGram):
    """The clinical kernel with few columns and many rows: a product with K takes the time of reading the columns.

    The kernel's `bind` builds it. A kernel matrix is made only for those who ask for one; machines that can do without
    it use `apply` and `submatrix`.

    Parameters
    ----------
    kernel : Kernel
        The clinical kernel.
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor.
    features : array of int of shape (p,)
        The live features, sorted.
    block : Block
        Columns in the coordinates of their tents, kept as rows and shared by Grams over fewer features.
    place : array of int of shape (p,)
        Position of each live feature in the block.
    product : array of shape (0, 0) or (m, m)
        Weighted sum over the live columns, where it is known already.
    tents : Tents
        Training rows in the coordinates of the tents.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.algebra import TallTentGram
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Clinical
    >>> X = np.array([[20.0], [40.0], [60.0]])
    >>> gram = TallTentGram.build(Clinical(), Schema.from_table(X).table(X), np.ones(1), np.arange(1))
    >>> gram.apply(np.array([1.0, 1.0, 0.0]))
    array([1.5, 1.5, 0.5])
    >>> gram.submatrix(np.array([0, 2]))
    array([[1., 0.],
           [0., 1.]])
    """

    matrix_free: ClassVar[bool] = True

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        return self.squares_of(self.columns, self.weight) if Z is None else self.diagonal_at(Z)

    @property
    def rows_at_once(self) -> int:
        """How many rows `submatrix` may be asked for."""
        return rows_at_once(cast(HasCache, self.kernel).cache)

    def submatrix(self, rows: IntArray) -> Array:
        """(q, q): K of some training rows."""
        some = np.ascontiguousarray(self.block.columns[self.place][:, rows])
        return sum_tents(some, self.weight, some)

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c, without the matrix."""
        if Z is not None:
            return super().apply(c, Z)
        return self.tents.product(self.features, self.weight, c)
