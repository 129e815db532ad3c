"""What a kernel is without one feature, for all features at once, by a Taylor series in matrix products.

    K(without j)_ik = outer(A_ik - w z_i z_k)                                    where base_j is a product
                    = E_i E_k outer(A_ik - w z_i z_k),  E_i = exp(w z_i^2 / 2)   where it is a distance and outer = exp
                    = E_i E_k sum_q (-w z_i z_k)^q / q!  H_q,ik,   H_q the q-th derivative of outer at A

with z the column j (a distance sees it from its mid-range, which keeps the terms small) and w its weight. An order q
costs one product (p, m) by (m, m). The sum is finite where outer is a polynomial. Where it is exp, cutting it after
order q leaves at most

    w^(q+1) / (q+1)!  sum_i |c_i| |z_i|^(q+1)  sum_k |d_k| |z_k|^(q+1)  e^T,      T = w max z^2

in c'K(without j)d, since K(without j) <= 1: each feature goes on until that is small enough, or is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Matrix
from ..data.stored import is_stored
from ..solvers.jit import jit
from .block_products import parts

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


def changes(columns: LiveColumns, c: Array, d: Array, exactly: Callable[[IntArray], Array]) -> Array:
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


def products(columns: LiveColumns, others: Array | None, c: Array) -> Iterator[tuple[slice, Array, BoolArray]]:
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
