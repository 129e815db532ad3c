"""Kernels that are given by base_j and outer alone, without a closed form: one matrix for each feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self, cast

import numpy as np

from ..contracts import Array, Gram, IntArray, Kernel, Matrix, TableView
from ..data.table import column_of
from .blocks import Line, nonzero_rows, parts


class Elementwise(Protocol):
    """A kernel K = outer(sum_j w_j base_j(x_j, z_j)); `kind` and `spread` (the range) are those of the column."""

    def base(self, u: Array, v: Array, kind: str, spread: float) -> Array: ...
    def outer(self, A: Array) -> Array: ...
    def outer_derivative(self, A: Array, order: int = 1) -> Array | None: ...


@dataclass(frozen=True, eq=False)
class GenericGram(Gram):
    """K = outer(sum_j w_j base_j(x_j, z_j)) for a kernel given by `base`, `outer` and `outer_derivative` alone.

    It computes one matrix for each feature: slow, simple to check, and enough for a kernel of a few lines.

    Parameters
    ----------
    kernel : Kernel
        Kernel that also has `base`, `outer` and `outer_derivative` (see `Elementwise`).
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor.
    features : array of int of shape (p,)
        The live features, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.algebra import GenericGram
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Linear
    >>> class Laplacian(Linear):
    ...     def base(self, u, v, kind, spread):
    ...         return -np.abs(u - v)
    ...     def outer(self, A):
    ...         return np.exp(A)
    ...     def outer_derivative(self, A, order=1):
    ...         return np.exp(A)
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0]])
    >>> GenericGram(Laplacian(), Schema.from_table(X).table(X), np.ones(2), np.arange(2)).matrix().round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    kernel: Kernel
    table: TableView
    feature_weight: Array
    features: IntArray

    @property
    def elementwise(self) -> Elementwise:
        """The kernel, for its base and outer functions."""
        return cast(Elementwise, self.kernel)

    def without(self, features: IntArray) -> Self:
        """The Gram with these features dropped."""
        return replace(self, features=np.delete(self.features, np.searchsorted(self.features, features)))

    def rescale(self, feature_weight: Array, features: IntArray | None = None) -> Self:
        """The same features, or some of them, at other weights (n,)."""
        return replace(self, feature_weight=feature_weight, features=self.features if features is None else features)

    def only(self, rows: IntArray) -> Self:
        """The Gram among some training rows."""
        return replace(self, table=self.table.sample(rows))

    # -- matrices ---------------------------------------------------------------------------------------------

    def base_matrices(
        self, Z: Matrix | None = None, rows: IntArray | None = None, places: IntArray | None = None
    ) -> Iterator[tuple[int, Array]]:
        """For each live feature (or some): its place, and base_j between the rows of Z and (some) training rows."""
        for k in range(len(self.features)) if places is None else places:
            j = self.features[k]
            v = column_of(self.table.Z, j) if rows is None else column_of(self.table.Z, j)[rows]
            u = v if Z is None else column_of(Z, j)
            yield k, self.elementwise.base(u[:, None], v[None, :], self.table.kind[j], float(self.table.spread[j]))

    def inner(self, weights: Array, Z: Matrix | None = None) -> Array:
        """(rows, m): sum_j weights_j base_j."""
        A = np.zeros((self.table.shape[0] if Z is None else Z.shape[0], self.table.shape[0]))
        for k, B in self.base_matrices(Z):
            A += weights[k] * B
        return A

    @cached_property
    def own_inner(self) -> Array:
        """(m, m): A of the training rows."""
        return self.inner(self.weight)

    @cached_property
    def own_matrix(self) -> Array:
        """(m, m): K of the training rows."""
        return np.ascontiguousarray(self.elementwise.outer(self.own_inner))

    def matrix(self, Z: Matrix | None = None) -> Array:
        """(m, m), or (rows, m) against new rows Z (rows, n)."""
        return self.own_matrix if Z is None else np.asarray(self.elementwise.outer(self.inner(self.weight, Z)))

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        if Z is None:
            return self.own_matrix.diagonal().copy()
        total = np.zeros(Z.shape[0])
        for j, w in zip(self.features, self.weight, strict=True):
            total += w * self._with_itself(column_of(Z, j), j)
        return np.asarray(self.elementwise.outer(total))

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c."""
        return np.asarray(self.matrix(Z) @ c)

    # -- what a feature is worth ------------------------------------------------------------------------------

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c, one kernel matrix for each feature."""
        on, rows, w = nonzero_rows(c), self.table.Z if Z is None else Z, self.weight
        A = (self.own_inner if Z is None else self.inner(w, Z))[:, on]
        outer = self.elementwise.outer
        for part in parts(len(self.features)):
            places = np.arange(len(self.features))[part]
            values = [outer(A - w[k] * B) @ c[on] for k, B in self.base_matrices(rows, on, places)]
            yield part, np.array(values).reshape(len(places), -1)

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:  # noqa: ARG002
        """(p,): c'Kd - c'K(without j)d, one kernel matrix for each feature."""
        d, w, outer = c if d is None else d, self.weight, self.elementwise.outer
        on = nonzero_rows(np.abs(c) + np.abs(d))
        A = self.own_inner[np.ix_(on, on)]
        K = outer(A)
        return np.array([c[on] @ (K - outer(A - w[k] * B)) @ d[on] for k, B in self.base_matrices(rows=on)])

    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): sum_i d_i [K(x_i, x_i) - K(without j)(x_i, x_i)]."""
        A, w, outer = self.own_inner.diagonal(), self.weight, self.elementwise.outer
        itself = np.array([self._with_itself(column_of(self.table.Z, j), j) for j in self.features])
        return np.asarray((outer(A) - outer(A - w[:, None] * itself)) @ d)

    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j."""
        slope = np.asarray(self.elementwise.outer_derivative(self.own_inner))
        G = np.outer(c, c) * slope
        if d is not None:
            G[np.diag_indices_from(G)] += d * slope.diagonal()
        return np.array([float(np.sum(G * B)) for _, B in self.base_matrices()])

    def line(self, direction: Array) -> Line:
        """Grams at weights (sqrt(w) + l * direction)^2."""
        d = direction * np.sqrt(self.divisor)
        s = np.sqrt(self.feature_weight[self.features])
        second = self.inner(d * d / self.divisor)
        first = self.inner((s + d) ** 2 / self.divisor) - self.own_inner - second
        return Line(self, d, self.own_inner, first, second)

    def feature_quadratic(self, c: Array) -> Array:
        """(p,): c'K_j c with K_j = base_j alone; additive kernels only."""
        if not self.kernel.additive:
            return super().feature_quadratic(c)
        return np.array([c @ B @ c for _, B in self.base_matrices()])

    def feature_products(self, c: Array, places: IntArray) -> Array:
        """(k, m): K_j c with K_j = base_j alone, for the live features at some places."""
        return np.array([B @ c for _, B in self.base_matrices(places=places)])

    def _with_itself(self, z: Array, j: int) -> Array:
        """base_j of values with themselves."""
        return np.asarray(self.elementwise.base(z, z, self.table.kind[j], float(self.table.spread[j])))

    def matrix_of(self, total: Array) -> Array:
        """K from A."""
        return np.asarray(self.elementwise.outer(total))

    def with_total(self, feature_weight: Array, total: Array) -> Self:  # noqa: ARG002
        """The same features at other weights; A is made anew."""
        return self.rescale(feature_weight)
