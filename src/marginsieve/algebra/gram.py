"""The kernel algebra, once, for every kernel: K_s = outer(A), A = sum_j w_j base_j, w_j = s_j^2.

Shapes: m training rows, p live features, Z' the block of live columns kept as rows (p, m).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array, IntArray, Matrix, is_sparse
from ..data.table import Table, column_of
from . import series
from .line import Line
from .products import as_distance, less, parts, quadratic_rows, removed, used, weighted
from .tents import MISSING
from .tents import weighted as tents

FEW = 4  # columns up to which a downdate is a compiled loop instead of a matrix product
MOST_ON = 0.8  # share of non-zero coefficients above which picking their samples out costs more than it saves
CANCELLATION = 1e-5  # a downdated matrix is rebuilt when its trace has fallen to this share of what it was


@dataclass(frozen=True)
class Block:
    """Columns as rows, contiguous; shared by all Grams until half of its columns have been dropped."""

    features: IntArray  # (b,) places in the table
    columns: Matrix  # (b, m), centred where the kernel sees distances only
    weight: Array  # (b,) s_j^2
    centre: Array | None  # (b,)
    trace: float  # of the weighted product when the block was made


@dataclass(frozen=True)
class Gram:
    """A kernel bound to a table and a scale; `features` are the live ones, sorted."""

    kernel: Any
    table: Table
    scale: Array  # (n,) over all features of the table
    features: IntArray  # (p,)
    block: Block
    place: IntArray  # (p,) where the live features lie in the block
    product: Array | None  # (m, m): sum of w_j z_j z_j' where the kernel is a product or a distance

    # -- building ---------------------------------------------------------------------------------------------

    @classmethod
    def build(cls, kernel: Any, table: Table, features: IntArray | None = None, scale: Array | None = None) -> Gram:
        """The kernel on some features (all by default) at a scale (the kernel's own by default)."""
        live = np.arange(table.shape[1]) if features is None else np.asarray(features, dtype=np.intp)
        s = kernel.scale(table) if scale is None else scale
        return cls._assemble(kernel, table, s, live)

    @classmethod
    def _assemble(cls, kernel: Any, table: Table, scale: Array, live: IntArray) -> Gram:
        everything = len(live) == table.shape[1]
        columns: Matrix
        if kernel.geometry == "tent":
            columns = table.tents.U if everything else table.tents.U[live]
        elif table.is_sparse:
            columns = sparse.csr_array((table.Z if everything else table.Z[:, live]).T)
        else:
            columns = np.ascontiguousarray(table.Z.T if everything else table.Z.T[live])
        centre = None
        if kernel.geometry == "distance":
            centre = columns.mean(axis=1)
            columns = np.subtract(columns, centre[:, None], out=None if everything else columns)
        weight = scale[live] ** 2
        product = None if kernel.geometry is None else _summed(kernel, columns, weight)
        trace = 0.0 if product is None else float(np.trace(product))
        block = Block(live, columns, weight, centre, trace)
        return cls(kernel, table, scale, live, block, np.arange(len(live)), product)

    def without(self, features: IntArray) -> Gram:
        """The Gram with these features dropped: downdated where that is exact enough and cheaper, else rebuilt."""
        gone = np.searchsorted(self.features, features)
        live, place = removed(self.features, gone), removed(self.place, gone)
        if self.product is not None and 2 * len(live) > len(self.block.features):
            product, trace = self._downdated(self.product, self.place[gone])
            if trace > CANCELLATION * self.block.trace:
                return Gram(self.kernel, self.table, self.scale, live, self.block, place, product)
        return self._assemble(self.kernel, self.table, self.scale, live)

    def _downdated(self, product: Array, rows: IntArray) -> tuple[Array, float]:
        """The product less that of some rows of the block, and its trace."""
        weights = self.block.weight[rows]
        if len(rows) <= FEW and not self.table.is_sparse and self.kernel.geometry != "tent":
            return less(product, self.block.columns, rows, weights)
        product = product - _summed(self.kernel, self.block.columns[rows], weights)
        return product, float(product.trace())

    def rescaled(self, scale: Array, features: IntArray | None = None) -> Gram:
        """The same features, or some of them (sorted), at another scale (n,)."""
        live = self.features if features is None else features
        place = self.place if features is None else self.place[np.searchsorted(self.features, features)]
        block = self.block
        if len(place) < len(block.features):  # a block of their own: its rows are visited many times
            centre = None if block.centre is None else block.centre[place]
            block = replace(block, features=live, columns=block.columns[place], centre=centre)
            place = np.arange(len(live))
        weight = scale[live] ** 2
        if self.product is None:
            product = None
        elif features is None and (ratio := _common(weight, self.block.weight[self.place])):
            product = ratio * self.product
        else:
            product = _summed(self.kernel, block.columns, weight)
        trace = 0.0 if product is None else float(product.trace())
        return Gram(self.kernel, self.table, scale, live, replace(block, weight=weight, trace=trace), place, product)

    def only(self, rows: IntArray) -> Gram:
        """The Gram among some training rows; where the rest has coefficient 0, its quadratic forms are the same."""
        block = replace(self.block, columns=self.block.columns[:, rows])
        product = None if self.product is None else self.product[np.ix_(rows, rows)]
        table = self.table.rows(rows)
        if self.kernel.geometry == "tent":
            table.__dict__["tents"] = self.table.tents.rows(rows)  # in the coordinates of all rows
        return replace(self, table=table, block=block, product=product)

    @property
    def weight(self) -> Array:
        """(p,) w_j = s_j^2, divided by p where the kernel averages."""
        return self._divided(self.block.weight[self.place])

    def _divided(self, values: Array) -> Array:
        """Divided by the number of live features where the kernel averages."""
        return values / max(len(self.features), 1) if self.kernel.average else values

    @property
    def columns(self) -> Matrix:
        """(p, m): the live columns as rows."""
        whole = len(self.place) == len(self.block.features)
        return self.block.columns if whole else self.block.columns[self.place]

    def _times(self, V: Array) -> Array:
        """Z'V for the live columns; cheaper on the whole block than after copying the live part of it."""
        return np.asarray((self.block.columns @ V)[self.place])

    # -- matrices ---------------------------------------------------------------------------------------------

    @cached_property
    def _inner(self) -> Array:
        return self.inner(self.weight) if self.product is None else self._inner_of(self.product)

    def _inner_of(self, product: Array) -> Array:
        A = self._divided(product)
        return as_distance(A, A.diagonal(), A.diagonal()) if self.kernel.geometry == "distance" else A

    @cached_property
    def _matrix(self) -> Array:
        return np.ascontiguousarray(self.kernel.outer(self._inner))

    def inner(self, weights: Array, Z: Matrix | None = None) -> Array:
        """(rows, m): sum_j weights_j base_j between rows (the training rows by default) and the training rows."""
        if self.kernel.geometry is None:
            return self._inner_by_feature(weights, Z)
        own = self.columns
        other = own if Z is None else self._block_of(Z)
        A = _summed(self.kernel, other, weights, own)
        if self.kernel.geometry != "distance":
            return A
        if Z is None:
            return as_distance(A, A.diagonal(), A.diagonal())
        squares = [np.einsum("j,jm,jm->m", weights, block, block) for block in (other, own)]
        return as_distance(A, *squares)

    def matrix(self, Z: Matrix | None = None) -> Array:
        """(m, m), or (rows, m) against new rows Z (rows, n)."""
        return self._matrix if Z is None else np.asarray(self.kernel.outer(self.inner(self.weight, Z)))

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        if Z is None:
            return self._matrix.diagonal().copy()
        if self.kernel.geometry == "distance":
            return np.asarray(self.kernel.outer(np.zeros(Z.shape[0])))
        if self.kernel.geometry == "product":
            part = Z[:, self.features]
            square = part.multiply(part) if is_sparse(part) else part * part
            return np.asarray(self.kernel.outer(square @ self.weight))
        if self.kernel.geometry == "tent":
            return np.asarray(self.weight @ (self._block_of(Z) < MISSING))
        total = np.zeros(Z.shape[0])
        for j, w in zip(self.features, self.weight, strict=True):
            total += w * self._base_of(column_of(Z, j), j)
        return np.asarray(self.kernel.outer(total))

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c, without the matrix where the kernel is linear."""
        if Z is None:
            return np.asarray(self._matrix @ c)
        if self._is_linear:
            return np.asarray((self.weight * self._times(c)) @ self._block_of(Z))
        step = max(1, 4_000_000 // max(len(c), 1))
        pieces = [self.matrix(Z[start : start + step]) @ c for start in range(0, Z.shape[0], step)]
        return np.concatenate(pieces) if pieces else np.empty(0)

    # -- what a feature is worth ------------------------------------------------------------------------------

    def drop_one(self, c: Array, Z: Matrix | None = None) -> Array:
        """(p, rows): K(without j) @ c for each live feature j; an averaging kernel keeps its divisor."""
        return np.concatenate([values for _, values in self.drop_one_parts(c, Z)])

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """The same a few features at a time: places in `features`, and their rows of it."""
        if self._is_linear:
            u = self.weight * self._times(c)
            rows = self.block.columns if Z is None else self._block_of(Z)
            whole = self.apply(c) if Z is None else u @ rows
            for part in parts(len(u)):
                own = rows[self.place[part]] if Z is None else rows[part]
                yield part, whole - u[part, None] * (own.toarray() if is_sparse(own) else own)
            return
        if self.kernel.geometry == "tent":
            whole = self.apply(c, Z)
            for part in parts(len(self.features)):
                left = None if Z is None else self.table.tents.of_rows(Z, self.features[part])
                own = self.table.tents.products(self.features[part], c, left)
                yield part, whole - self.weight[part, None] * own
            return
        on = used(c)
        A = self._inner[:, on] if Z is None else self.inner(self.weight, Z)[:, on]
        if self.kernel.geometry is None:
            for part in parts(len(self.features)):
                yield part, self._decisions_without(np.arange(len(self.features))[part], A, c[on], on, Z)
            return
        for part, values, sure in series.products(
            self._columns_on(A, on), None if Z is None else self._block_of(Z), c[on]
        ):
            unsure = np.flatnonzero(~sure)
            if len(unsure):
                values[unsure] = self._decisions_without(part.start + unsure, A, c[on], on, Z)
            yield part, values

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:
        """(p,): c'Kd - c'K(without j)d (d is c by default), never as the difference of two large numbers.

        Where the kernel is not a polynomial, within 1e-6 of the median of their sizes; to rounding with `exact`.
        """
        if self._is_linear:
            left = self.block.columns @ c
            right = left if d is None else self.block.columns @ d
            return self._divided((self.block.weight * left * right)[self.place])
        if self.kernel.geometry == "tent":
            return self.weight * self.table.tents.quadratics(self.features, c, c if d is None else d)
        on = used(c if d is None else np.abs(c) + np.abs(d))
        left = c[on]
        right = left if d is None else d[on]
        A = self._inner[np.ix_(on, on)]
        if exact or self.kernel.geometry is None:
            return self._changes_without(np.arange(len(self.features)), A, left, right, on)
        return series.changes(
            self._columns_on(A, on), left, right, lambda places: self._changes_without(places, A, left, right, on)
        )

    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): sum_i d_i [K(x_i, x_i) - K(without j)(x_i, x_i)]."""
        if self.kernel.geometry == "distance":
            return np.zeros(len(self.features))
        if self.kernel.geometry == "tent":
            return self.weight * self.table.tents.observed(self.features, d)
        A, w, out = self._inner.diagonal(), self.weight, np.empty(len(self.features))
        K = self.kernel.outer(A)
        for part in parts(len(w)):
            if self.kernel.geometry == "product":
                z = self.block.columns[self.place[part]]
                own = np.asarray((z.multiply(z)).toarray() if is_sparse(z) else z * z)
            else:
                own = np.array([self._base_of(column_of(self.table.Z, j), j) for j in self.features[part]])
            out[part] = (K - self.kernel.outer(A - w[part, None] * own)) @ d
        return out

    def _columns_on(self, A: Array, on: IntArray) -> series.Columns:
        """The live columns over some training rows, and the derivatives of outer at A."""
        known: dict[int, Array | None] = {}
        distance = self.kernel.geometry == "distance"

        def derivative(order: int) -> Array | None:
            key = 0 if distance else order
            if key not in known:
                known[key] = self.kernel.outer_derivative(A, key)
            return known[key]

        return series.Columns(self.block.columns, self.place, on, self.weight, distance, derivative)

    def _changes_without(self, places: IntArray, A: Array, c: Array, d: Array, on: IntArray) -> Array:
        """drop_one_change of some live features, one kernel matrix each."""
        K, w = self.kernel.outer(A), self.weight
        return np.array(
            [c @ (K - self.kernel.outer(A - w[k] * B)) @ d for k, B in self._base_matrices(rows=on, places=places)]
        )

    def _decisions_without(self, places: IntArray, A: Array, c: Array, on: IntArray, Z: Matrix | None) -> Array:
        """drop_one of some live features, one kernel matrix each."""
        w, rows = self.weight, self.table.Z if Z is None else Z
        return np.array(
            [self.kernel.outer(A - w[k] * B) @ c for k, B in self._base_matrices(rows, on, places)]
        ).reshape(len(places), -1)

    def scale_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in s_j, j live."""
        if self.kernel.geometry == "tent":
            own = 0.0 if d is None else self.table.tents.observed(self.features, d)
            return np.asarray(2.0 * self._divided(self.scale[self.features]) * (self.feature_quadratic(c) + own))
        some = used(c if d is None else np.abs(c) + np.abs(d))
        on = None if len(some) > MOST_ON * len(c) else some
        A, v = (self._inner, c) if on is None else (self._inner[np.ix_(on, on)], c[on])
        slope = np.asarray(self.kernel.outer_derivative(A))
        G = np.outer(v, v) * slope
        if d is not None:
            G[np.diag_indices_from(G)] += (d if on is None else d[on]) * slope.diagonal()
        s = self._divided(self.scale[self.features])
        if self.kernel.geometry is None:
            return np.array([2.0 * s[k] * float(np.sum(G * B)) for k, B in self._base_matrices(rows=on)])
        if self._is_linear and d is None:
            return np.asarray(2.0 * s * self._times(c) ** 2)
        return np.asarray(2.0 * s * quadratic_rows(self.columns, G, self.kernel.geometry == "distance", on))

    def along(self, direction: Array) -> Line:
        """The line s + l * direction (p,): three matrices (m, m) are made once, a trial step costs m^2."""
        s, d = self.scale[self.features], direction
        if self.product is None:
            A2 = self.inner(self._divided(d * d))
            return Line(self, d, self.inner(self._divided((s + d) ** 2)) - self._inner - A2, A2)
        P2 = _summed(self.kernel, self.columns, d * d)  # no weight is negative: each product at half the cost
        return Line(self, d, _summed(self.kernel, self.columns, (s + d) ** 2) - self.product - P2, P2)

    def feature_quadratic(self, c: Array) -> Array:
        """(p,): c'K_j c with K_j = base_j alone; additive kernels only."""
        if not self.kernel.additive:
            raise TypeError(f"{type(self.kernel).__name__} is not a sum over features: it has no K_j")
        if self.kernel.geometry == "product":
            return np.asarray(self._times(c) ** 2)
        if self.kernel.geometry == "tent":
            return self.table.tents.quadratics(self.features, c, c)
        return np.array([c @ B @ c for _, B in self._base_matrices()])

    def feature_products(self, c: Array, places: IntArray) -> Array:
        """(k, m): K_j c with K_j = base_j alone, for the live features at some places; additive kernels only."""
        if self.kernel.geometry == "tent":
            return self.table.tents.products(self.features[places], c)
        if self.kernel.geometry == "product" and self.kernel.additive:
            z = self.block.columns[self.place[places]]
            z = np.asarray(z.toarray()) if is_sparse(z) else z
            return np.asarray((z @ c)[:, None] * z)
        return np.array([B @ c for _, B in self._base_matrices(places=places)])

    # -- the pieces -------------------------------------------------------------------------------------------
    @property
    def _is_linear(self) -> bool:
        return bool(self.kernel.additive and self.kernel.geometry == "product")

    def _block_of(self, Z: Matrix) -> Matrix:
        """New rows (rows, n) as a block (p, rows) of the live features."""
        if self.kernel.geometry == "tent":
            return self.table.tents.of_rows(Z, self.features)
        if is_sparse(Z):
            return sparse.csr_array(sparse.csc_array(Z)[:, self.features].T)
        block = np.ascontiguousarray(Z[:, self.features].T)
        return block if self.block.centre is None else block - self.block.centre[self.place][:, None]

    def _base_matrices(
        self, Z: Matrix | None = None, rows: IntArray | None = None, places: IntArray | None = None
    ) -> Iterator[tuple[int, Array]]:
        """For each live feature (or some): its place, and base_j between the rows of Z and (some) training rows."""
        for k in range(len(self.features)) if places is None else places:
            j = self.features[k]
            v = column_of(self.table.Z, j) if rows is None else column_of(self.table.Z, j)[rows]
            u = v if Z is None else column_of(Z, j)
            yield k, self.kernel.base(u[:, None], v[None, :], self.table.kind[j], self.table.spread[j])

    def _base_of(self, z: Array, j: int) -> Array:
        """base_j of values with themselves."""
        return np.asarray(self.kernel.base(z, z, self.table.kind[j], self.table.spread[j]))

    def _inner_by_feature(self, weights: Array, Z: Matrix | None) -> Array:
        A = np.zeros((self.table.shape[0] if Z is None else Z.shape[0], self.table.shape[0]))
        for k, B in self._base_matrices(Z):
            A += weights[k] * B
        return A


def _summed(kernel: Any, left: Matrix, weights: Array, right: Matrix | None = None) -> Array:
    """sum_j weights_j base_j, or the products that it is made of: (p, r), (p,), (p, m) -> (r, m)."""
    if kernel.geometry == "tent":
        return tents(left, weights, left if right is None else right)
    return weighted(left, weights, right)


def _common(weight: Array, before: Array) -> float:
    """The factor by which all weights changed; 0 where they did not change alike."""
    first = weight[0] / before[0] if before[0] > 0 else 0.0
    return float(first) if np.allclose(weight, first * before, rtol=1e-14, atol=0.0) else 0.0
