"""What a smooth kernel is without one feature, from derivatives of its outer function.

Products and distances share it: both are made of products of columns, and leaving a feature out is a Taylor series.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, cast

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Matrix
from ..data.stored import is_stored
from ..data.table import column_of
from ..solvers.execution import jit
from .blocks import (
    BlockGram,
    allocate_matrix,
    block_pairs,
    nonzero_rows,
    parts,
    quadratic_rows,
    subtract_rows,
    weighted_product,
)

# What a kernel is without one feature, for all features at once, by a Taylor series in matrix products.
#
#     K(without j)_ik = outer(A_ik - w z_i z_k)                                   where base_j is a product
#                     = E_i E_k outer(A_ik - w z_i z_k),  E_i = exp(w z_i^2 / 2)  where it is a distance and outer = exp
#                     = E_i E_k sum_q (-w z_i z_k)^q / q!  H_q,ik,   H_q the q-th derivative of outer at A
#
# with z the column j (a distance sees it from its mid-range, which keeps the terms small) and w its weight. An order q
# costs one product (p, m) by (m, m). The sum is finite where outer is a polynomial. Where it is exp, cutting it after
# order q leaves at most
#
#     w^(q+1) / (q+1)!  sum_i |c_i| |z_i|^(q+1)  sum_k |d_k| |z_k|^(q+1)  e^T,      T = w max z^2
#
# in c'K(without j)d, since K(without j) <= 1: each feature goes on until that is small enough, or is left to the
# caller.

FEATURES_AT_ONCE = 256  # large enough for BLAS, small enough for the cache
MOST_ORDERS = 14  # beyond which the exponential itself is cheaper
LONGEST = 6.0  # T beyond which the terms of the series grow before they fall
PRECISION = 1e-6  # of the median criterion: what the series may be off by
ROUNDING = 1e-12  # of sum |c|: what decision values may be off by, and that is rounding


@dataclass(frozen=True)
class LiveColumns:
    """Live columns over some samples with their weights (p,); derivatives of outer at A: `derivative(q)` (rows, m).

    `distance` says that outer is exp, so that every derivative is K itself; a derivative of None ends the series.
    """

    block: Matrix  # (b, all samples)
    place: IntArray  # (p,) rows of the block
    samples: IntArray  # (m,) columns of it
    weight: Array
    distance: bool
    derivative: Callable[[int], Array | None]

    def centre_columns(self, part: slice | IntArray) -> tuple[Array, Array, Array]:
        """Weights (p,), columns (p, m), and what they are seen from (p, 1): the mid-range where distances count."""
        z = self.block[self.place[part]][:, self.samples]
        if not self.distance:
            return self.weight[part], z, np.zeros((len(z), 1))
        middle = 0.5 * (z.min(axis=1, keepdims=True) + z.max(axis=1, keepdims=True))
        z -= middle
        return self.weight[part], z, middle


def series_changes(columns: LiveColumns, c: Array, d: Array, exactly: Callable[[IntArray], Array]) -> Array:
    """(p,): c'Kd - c'K(without j)d; of distances within PRECISION of their median size, or by `exactly` (p',) -> (p',).

    No large numbers are subtracted. Orders up to 3 come first, for all features: they tell the median.
    """
    p, everything = len(columns.weight), np.arange(len(columns.weight))
    out, missing = np.empty(p), np.zeros(p)
    if not columns.distance:
        for part in parts(p, FEATURES_AT_ONCE):
            out[part] = _finite(columns, part, c, d)
        return out
    room = np.empty((2 if c is d else 3, 4 * min(p, FEATURES_AT_ONCE) * len(columns.samples)))
    for part in parts(p, FEATURES_AT_ONCE):
        out[part], missing[part] = _first_orders(columns, everything[part], c, d, room)
    far = np.flatnonzero(missing == np.inf)
    out[far], missing[far] = exactly(far), 0.0
    allowed = 0.5 * PRECISION * float(np.median(np.abs(out)))
    more = np.flatnonzero(missing > allowed)
    for part in parts(len(more), FEATURES_AT_ONCE):
        added, missing[more[part]] = _further_orders(columns, more[part], c, d, allowed)
        out[more[part]] += added
    while len(short := np.flatnonzero(missing > PRECISION * float(np.median(np.abs(out))))):
        out[short], missing[short] = exactly(short), 0.0  # which may lower the median that the others are held to
    return out


def series_products(columns: LiveColumns, others: Array | None, c: Array) -> Iterator[tuple[slice, Array, BoolArray]]:
    """Parts (p, rows) of K(without j) c, and the features for which the sum converged to rounding.

    `others` (p, rows) are the columns of the rows that are looked at, the training rows by default.
    """
    for part in parts(len(columns.weight), FEATURES_AT_ONCE):
        w, z, middle = columns.centre_columns(part)
        y = (columns.block[columns.place[part]] if others is None else others[part]) - middle
        yield part, *_decisions(columns, w, z, y, c)


def _finite(columns: LiveColumns, part: slice, c: Array, d: Array) -> Array:
    """The change where outer is a polynomial: all orders."""
    w, z, _ = columns.centre_columns(part)
    total, term, left, q = np.zeros(len(w)), -np.ones(len(w)), np.ones_like(z), 0
    while (H := columns.derivative(q := q + 1)) is not None:
        left, term = left * z, term * (-w / q)
        total += term * _forms(left * c, H, left * d)
    return total


def _first_orders(columns: LiveColumns, which: IntArray, c: Array, d: Array, room: Array) -> tuple[Array, Array]:
    """The change by orders 0 to 3 of some features, and at most how much is missing then (inf: ask elsewhere).

    Order 0 needs no product of its own. With x = w z^2 / 2, E - 1 = xE - r, r of order x^2:
    (c(E-1))'K(d(E-1)) = (cxE)'K(dxE) - (cxE)'K(dr) - (cr)'K(dxE) + (cr)'K(dr), and the last is left out.
    """
    w, p, m = columns.weight[which], len(which), len(columns.samples)
    K, block, place, largest = columns.derivative(0), columns.block, columns.place[which], np.empty(p)
    assert K is not None
    if is_stored(block):
        block, place = block[place], np.arange(p)
    left, right = (room[k, : 4 * p * m].reshape(4, p, m) for k in (0, 2 if c is not d else 0))
    sums = others = np.empty((2, p))
    _fill(block, place, columns.samples, w, c, left, largest, sums)
    if c is not d:
        others = np.empty((2, p))
        _fill(block, place, columns.samples, w, d, right, largest, others)
    Kc, Kd, images = K @ c, K @ d, room[1, : 3 * p * m].reshape(3, p, m)
    np.matmul(left[1:].reshape(3 * p, m), K, out=images.reshape(3 * p, m))
    first, square, third = np.einsum("qpm,qpm->qp", images, right[1:])
    cross = np.einsum("pm,pm->p", images[1], right[0])
    cross += cross if c is d else np.einsum("pm,pm->p", right[2] @ K, left[0])
    zeroth = 0.5 * w * (left[2] @ Kd + right[2] @ Kc - cross) + 0.25 * w**2 * square - left[0] @ Kd - right[0] @ Kc
    total = w * first - 0.5 * w**2 * square + w**3 / 6.0 * third - zeroth
    T = w * largest**2
    missing = w**4 / 24.0 * sums[0] * others[0] * np.exp(np.minimum(T, LONGEST)) + sums[1] * others[1]
    return total, np.where(T > LONGEST, np.inf, missing)


@jit
def _fill(
    block: Array, place: IntArray, samples: IntArray, weight: Array, c: Array, out: Array, largest: Array, sums: Array
) -> None:
    """out (4, p, m): c r, c E z, c E z^2, c E z^3; sums (2, p): sum |c z^4|, sum |c r|; largest (p,): max |z|.

    For x up to 1/4, r = xE - (E - 1) = sum_k (k - 1) x^k / k! and E = (1 - r) / (1 - x), exact to rounding.
    """
    m, z = samples.shape[0], np.empty(samples.shape[0])
    for k in range(place.shape[0]):
        column, half = block[place[k]], 0.5 * weight[k]
        low, high = column[samples[0]], column[samples[0]]
        for i in range(m):
            z[i] = column[samples[i]]
            low, high = min(low, z[i]), max(high, z[i])
        middle, largest[k] = 0.5 * (low + high), 0.5 * (high - low)
        rest, first, second, third = out[0, k], out[1, k], out[2, k], out[3, k]
        if half * largest[k] ** 2 <= 0.25:
            for i in range(m):
                v = z[i] - middle
                x = half * v * v
                r = 1 / 5760 + x * (1 / 45360 + x * (1 / 403200 + x / 3991680))
                r = 1 / 8 + x * (1 / 30 + x * (1 / 144 + x * (1 / 840 + x * r)))
                r = x * x * (1 / 2 + x * (1 / 3 + x * r))
                rest[i] = c[i] * r
                first[i] = c[i] * v * ((1.0 - r) / (1.0 - x))
                second[i] = first[i] * v
                third[i] = second[i] * v
        else:
            for i in range(m):
                v = z[i] - middle
                x = min(half * v * v, 3.0)
                rest[i] = c[i] * (x * np.exp(x) - np.expm1(x))
                first[i] = c[i] * v * np.exp(x)
                second[i] = first[i] * v
                third[i] = second[i] * v
        fourth, small = 0.0, 0.0
        for i in range(m):
            fourth += abs(c[i]) * (z[i] - middle) ** 4
            small += abs(rest[i])
        sums[0, k], sums[1, k] = fourth, small


def _further_orders(columns: LiveColumns, which: IntArray, c: Array, d: Array, allowed: float) -> tuple[Array, Array]:
    """What the rest of order 0 and orders 4, 5, ... of some features add, and at most how much is missing then."""
    w, z, _ = columns.centre_columns(which)
    K = columns.derivative(0)
    assert K is not None
    x = 0.5 * w[:, None] * z * z
    E, T, size = np.exp(x), w * np.max(z * z, axis=1), np.abs(z)
    rest = x * E - np.expm1(x)
    total, missing, live = -_forms(rest * c, K, rest * d), np.zeros(len(w)), np.arange(len(w))
    left, power, term = E * z**3, size**3, w**3 / 6.0
    for q in range(4, MOST_ORDERS + 1):
        power, term, left = power * size, term * (-w / q), left * z
        missing[live] = np.abs(term) * (power @ np.abs(c)) * (power @ np.abs(d)) * np.exp(T)
        on = missing[live] > allowed
        live = live[on]
        w, z, term, left, size, power, T = (values[on] for values in (w, z, term, left, size, power, T))
        if not len(live):
            break
        total[live] += term * _forms(left * c, K, left * d)
    return total, missing


def _decisions(columns: LiveColumns, w: Array, z: Array, y: Array, c: Array) -> tuple[Array, BoolArray]:
    """(p, rows) of K(without j) c at the rows whose columns are y (p, rows), and where the sum converged."""
    w, total, sure = w[:, None], np.zeros((len(w), y.shape[1])), np.ones(len(w), dtype=bool)
    left, right, T = np.ones_like(y), np.broadcast_to(c, z.shape), np.zeros(len(w))
    if columns.distance:
        inside, outside = np.abs(z).max(axis=1), np.abs(y).max(axis=1)
        T = w[:, 0] * np.maximum(inside, outside) ** 2
        sure = T <= LONGEST
        left = np.exp(np.minimum(0.5 * w * y * y, LONGEST))
        right = c * np.exp(np.minimum(0.5 * w * z * z, LONGEST))
    for q in range(MOST_ORDERS + 1):
        H = columns.derivative(q)
        if H is None:
            return total, sure
        if q:
            left, right = left * y * (-w / q), right * z
        if columns.distance:
            missing = np.abs(left).max(axis=1) * (np.abs(right) @ np.ones(len(c)))
            if np.all((missing * np.exp(np.minimum(T, LONGEST)) <= ROUNDING * np.abs(c).sum()) | ~sure):
                return total, sure
        total += left * (right @ H.T)
    return total, np.zeros(len(w), dtype=bool)


def _forms(left: Array, H: Array, right: Array) -> Array:
    """(p,): left_j' H right_j."""
    if np.all(H[0, 0] == H):  # the last derivative of a polynomial
        return np.asarray(H[0, 0] * left.sum(axis=1) * right.sum(axis=1))
    return np.asarray(np.einsum("pm,pm->p", left @ H, right))


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
        out = allocate_matrix(m, m)
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
        out, squares = allocate_matrix(q, q), total.diagonal()[on]
        for rows in parts(q, max(1, CACHED // max(q, 1))):
            out[rows] = self.inner_from(total[on[rows]][:, on], squares[rows], squares)
        return out

    def downdate(self, gone: IntArray) -> tuple[Array, float]:
        """The product less that of the live features at some places, and its trace."""
        if len(gone) <= FEW and not self.table.is_sparse:
            return subtract_rows(
                self.total, self.block.columns, self.place[gone], self.feature_weight[self.features[gone]]
            )
        return super().downdate(gone)

    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c by the series; where it does not converge, by one kernel matrix for each feature."""
        on = nonzero_rows(c)
        A = self.own_inner[:, on] if Z is None else self.inner(Z)[:, on]
        others = None if Z is None else self.rows_of(Z)
        for part, values, sure in series_products(self._live_on(A, on), others, c[on]):
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
        return series_changes(
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

    def _live_on(self, A: Array, on: IntArray) -> LiveColumns:
        """The live columns over some training rows, and the derivatives of outer at A."""
        known: dict[int, Array | None] = {}

        def derivative(order: int) -> Array | None:
            key = 0 if self.distance else order
            if key not in known:
                known[key] = self.smooth.outer_derivative(A, key)
            return known[key]

        return LiveColumns(self.block.columns, self.place, on, self.weight, self.distance, derivative)

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
