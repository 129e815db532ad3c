"""A Gram whose matrices stay on a device: for searches that rescale one large kernel many times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from ..algebra.line import Line
from ..contracts import Array, Gram, IntArray, Kernel, Matrix, TableView
from .arrays import Backend, DeviceArray

CELLS = 2**27  # of a temporary


@dataclass(frozen=True, eq=False)
class DeviceGram(Gram):
    """K = exp(-1/2 sum_j w_j (x_j - z_j)^2), or with `linear` sum_j w_j x_j z_j, of the training rows on a device.

    What is asked of it beyond kernel matrices, products and gradients is answered by the kernel's Gram on the host.
    """

    kernel: Kernel
    table: TableView
    feature_weight: Array
    features: IntArray
    columns: DeviceArray  # (p, m) the live columns as rows, centred
    distance: bool

    @classmethod
    def build(cls, kernel: Kernel, table: TableView, feature_weight: Array, live: IntArray, distance: bool) -> Self:
        """The kernel on some features at weights (n,)."""
        columns = table.arrays.to_device(table.Z.T if len(live) == table.shape[1] else table.Z.T[live])
        return cls(kernel, table, feature_weight, live, columns - columns.mean(1)[:, None], distance)

    @property
    def arrays(self) -> Backend:
        """Where its arrays are."""
        arrays: Backend = self.table.arrays
        return arrays

    @cached_property
    def host(self) -> Gram:
        """The same Gram in the memory of the host."""
        return self.kernel.bind(self.table.with_backend(None), self.feature_weight, self.features)

    @cached_property
    def on_device(self) -> DeviceArray:
        """(m, m): K of the training rows."""
        return self._outer(self._inner(self.weight))

    def _inner(self, weight: Array) -> DeviceArray:
        """(m, m): A at weights (p,): the products P = sum_j w_j x_j x_j', or P_ik - (P_ii + P_kk) / 2 for distances."""
        root, m = self.arrays.to_device(np.sqrt(weight)), self.columns.shape[1]
        P = self.arrays.zeros(m, m)
        step = max(1, CELLS // m)
        for start in range(0, self.columns.shape[0], step):
            R = self.columns[start : start + step] * root[start : start + step, None]
            P = P + R.T @ R
        if not self.distance:
            return P
        squares = self.arrays.xp.einsum("ii->i", P)
        return P - 0.5 * (squares[:, None] + squares[None, :])

    def _outer(self, A: DeviceArray) -> DeviceArray:
        """K from A."""
        xp = self.arrays.xp
        return xp.exp(xp.where(A < 0, A, 0.0)) if self.distance else A

    def matrix(self, Z: Matrix | None = None) -> Array:
        """(m, m), or (rows, m) against new rows Z (rows, n)."""
        return np.asarray(self.arrays.to_host(self.on_device)) if Z is None else self.host.matrix(Z)

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        return self.host.diagonal(Z) if Z is not None else np.asarray(self.matrix().diagonal())

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c."""
        if Z is not None:
            return self.host.apply(c, Z)
        return np.asarray(self.arrays.to_host(self.on_device @ self.arrays.to_device(c)))

    def without(self, features: IntArray) -> Gram:
        """The Gram with these features dropped."""
        return self.rescale(self.feature_weight, np.setdiff1d(self.features, features))

    def rescale(self, feature_weight: Array, features: IntArray | None = None) -> Self:
        """The same features, or some of them (sorted), at other weights (n,)."""
        if features is None:
            return replace(self, feature_weight=feature_weight)
        place = self.arrays.to_device(np.searchsorted(self.features, features), np.int64)
        return replace(self, feature_weight=feature_weight, features=features, columns=self.columns[place])

    def only(self, rows: IntArray) -> Self:
        """The Gram among some training rows; where the rest has coefficient 0, its quadratic forms are the same."""
        some = self.columns[:, self.arrays.to_device(rows, np.int64)]
        return replace(self, table=self.table.sample(rows), columns=some)

    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j."""
        if d is not None:
            return self.host.weight_gradient(c, d)
        xp, v = self.arrays.xp, self.arrays.to_device(c)
        if not self.distance:
            return np.asarray(self.arrays.to_host((self.columns @ v) ** 2))
        G = self.on_device * v[:, None] * v[None, :]
        rows = G.sum(1)
        pieces = []
        step = max(1, CELLS // self.columns.shape[1])
        for start in range(0, self.columns.shape[0], step):
            z = self.columns[start : start + step]
            pieces.append(((z @ G) * z).sum(1) - (z * z) @ rows)
        return np.asarray(self.arrays.to_host(xp.concatenate(pieces)))

    def line(self, direction: Array) -> Line:
        """Grams at weights (sqrt(w) + l * direction)^2."""
        s, d = np.sqrt(self.weight), direction
        total, second = self._inner(s * s), self._inner(d * d)
        return Line(self, d * np.sqrt(self.divisor), total, self._inner((s + d) ** 2) - total - second, second)

    def matrix_of(self, total: DeviceArray) -> Array:
        """K from A, in the memory of the host."""
        return np.asarray(self.arrays.to_host(self._outer(total)))

    def with_total(self, feature_weight: Array, total: DeviceArray) -> Self:  # noqa: ARG002
        """The same features at other weights; A is made anew."""
        return self.rescale(feature_weight)

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c, a few features at a time."""
        return self.host.drop_one_parts(c, Z)

    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:
        """(p,): c'Kd - c'K(without j)d."""
        return self.host.drop_one_change(c, d, exact)

    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): sum_i d_i [K(x_i, x_i) - K(without j)(x_i, x_i)]."""
        return self.host.drop_one_diagonal_change(d)
