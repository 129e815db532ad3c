"""Kernel matrices of many weightings of one table at once, on any device.

A kernel whose matrix is made of a sum over features of a function of two cells has, for every pair of rows (i, k),

    A_ik = sum_j W_j base(x_ij, x_kj)          for F weightings W (F, n):   A (F, pairs) = W @ B,   B (n, pairs)

and what a feature adds to a form sum_ik G_ik base_ik is G @ B' for all features at once: both are matrix products,
which a device does near its limit. B is made for some pairs at a time.

Coefficients of every machine here sum to 0, so that what is added to a whole row or column of K changes nothing but the
intercept: columns need no centring for each weighting, and rows outside the range of the training rows no clipping.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from ..algebra.blocks import Line
from ..contracts import Array, Gram, IntArray, Kernel, Matrix, TableView
from .arrays import Backend, DeviceArray

EXACT = 64  # features up to which an exponential is computed for each of them
SMALL_TERM = 1e-11  # of the first term of a series: where it ends
MOST_TERMS = 60
LONGEST = 10.0  # exponent up to which the series is used


class Scales(NamedTuple):
    """What F training parts say of the columns: all (F, n).

    `factor`: what a standardised column was multiplied by, squared, else 1; `variance` and `spread` of the columns as
    they are, before that; `usable`: 1 where a column varies.
    """

    factor: DeviceArray
    variance: DeviceArray
    spread: DeviceArray
    usable: DeviceArray
    whole: DeviceArray  # (F, 2) the sum of the variances, standardised or not, and the number of all usable columns

    def columns(self, places: DeviceArray) -> Scales:
        """The same of some columns."""
        factor, variance, spread, usable, whole = self
        return Scales(factor[:, places], variance[:, places], spread[:, places], usable[:, places], whole)

    def repeat(self, times: int, arrays: Backend) -> Scales:
        """The parts one after the other, so many times."""
        if times == 1:
            return self
        return Scales(*(arrays.xp.concatenate([part] * times, 0) for part in self))


class PairSums(ABC):
    """Kernel matrices over all rows of X (n, r) for F weightings of its columns, and what features change in them."""

    def __init__(self, arrays: Backend, X: DeviceArray, scales: Scales, average: bool, width: float | None) -> None:
        self.arrays, self.X, self.scales = arrays, X, scales
        self.average, self.width = average, width
        rows = X.shape[1]
        left, right = np.triu_indices(rows, 1)
        self.left, self.right = arrays.to_device(left, np.int64), arrays.to_device(right, np.int64)
        self.rows = rows

    @staticmethod
    @abstractmethod
    def base(u: DeviceArray, v: DeviceArray) -> DeviceArray:
        """What two cells of a column add, before weights."""

    @abstractmethod
    def weights(self, live: DeviceArray, scales: Scales | None = None) -> DeviceArray:
        """(F, n): the weights W where features are live (1.0) or not (0.0)."""

    @abstractmethod
    def matrices(self, W: DeviceArray) -> DeviceArray:
        """(F, r, r): K for each weighting."""

    @abstractmethod
    def changes(self, W: DeviceArray, K: DeviceArray, coef: DeviceArray) -> DeviceArray:
        """(F, n): |c'Kc - c'K(without j)c| for coefficients c (F, r) that sum to 0; 0 where W is 0."""

    def restrict_to(self, features: DeviceArray) -> tuple[Self, DeviceArray]:
        """The same on the columns that occur among features (F, q), and where these lie there (F, q)."""
        n = self.X.shape[0]
        present = self._present(self.arrays.indicator(features, n))
        if 2 * present.shape[0] > n:
            return self, features
        place = self.arrays.to_device(np.zeros(n), np.int64)
        place[present] = self.arrays.to_device(np.arange(present.shape[0]), np.int64)
        scales = self.scales.columns(present)
        return type(self)(self.arrays, self.X[present], scales, self.average, self.width), place[features]

    # -- sums over pairs ----------------------------------------------------------------------------------------

    def _present(self, W: DeviceArray) -> DeviceArray:
        """The places of the columns that some weighting uses."""
        return self.arrays.places(self.arrays.xp.amax(W, 0) > 0)

    def _bases(self, X: DeviceArray, further: int) -> Iterator[tuple[slice, DeviceArray]]:
        """Some pairs at a time, and base for them (columns, pairs); `further` arrays of that size are kept beside."""
        count = self.left.shape[0]
        room = 0.25 * self.arrays.free_bytes() / (8.0 * (4 + further) * max(X.shape[0], 1))
        step = int(min(max(room, 64), count or 1))
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            yield part, self.base(X[:, self.left[part]], X[:, self.right[part]])

    def sums(self, W: DeviceArray) -> DeviceArray:
        """(F, pairs): sum_j W_j base_j of each pair of different rows."""
        xp = self.arrays.xp
        present = self._present(W)
        X, some = self.X[present], W[:, present]
        pieces = [some @ base for _, base in self._bases(X, 0)]
        return xp.concatenate(pieces, 1) if pieces else self.arrays.zeros(W.shape[0], 0)

    def forms(self, G: DeviceArray, W: DeviceArray, power: int = 1, unit: DeviceArray | None = None) -> DeviceArray:
        """(F, n): sum over pairs i < k of G_ik base_ik^power, for the columns that W uses; G (F, pairs).

        With `unit` (n,) the columns are in these units: powers of large numbers are none.
        """
        present = self._present(W)
        X = self.X[present] if unit is None else self.X[present] / unit[present][:, None]
        total = self.arrays.zeros(G.shape[0], X.shape[0])
        for part, base in self._bases(X, 1):
            total = total + G[:, part] @ (base if power == 1 else base**power).T
        out = self.arrays.zeros(*W.shape)
        out[:, present] = total
        return out

    def square(self, pairs: DeviceArray, diagonal: DeviceArray | float) -> DeviceArray:
        """(F, r, r) symmetric matrices from their values at pairs (F, pairs) and on the diagonal."""
        r = self.rows
        out = self.arrays.zeros(pairs.shape[0], r * r)
        out[:, self.left * r + self.right] = pairs
        out[:, self.right * r + self.left] = pairs
        out[:, :: r + 1] = diagonal
        return out.reshape(pairs.shape[0], r, r)

    def at_pairs(self, M: DeviceArray) -> DeviceArray:
        """(F, pairs): the values of symmetric matrices (F, r, r) at pairs."""
        return M.reshape(M.shape[0], -1)[:, self.left * self.rows + self.right]

    def products(self, coef: DeviceArray) -> DeviceArray:
        """(F, pairs): c_i c_k."""
        return coef[:, self.left] * coef[:, self.right]

    def counts(self, live: DeviceArray) -> DeviceArray:
        """(F, 1): the number of live features."""
        count = live.sum(1)[:, None]
        return self.arrays.xp.where(count > 0, count, 1.0)


class ProductSums(PairSums):
    """The linear kernel: base = u v."""

    @staticmethod
    def base(u: DeviceArray, v: DeviceArray) -> DeviceArray:
        """u v."""
        return u * v

    def weights(self, live: DeviceArray, scales: Scales | None = None) -> DeviceArray:
        """The squared factor of a standardised column, over the number of live ones where the kernel averages."""
        W = live * (scales or self.scales).factor
        return W / self.counts(live) if self.average else W

    def matrices(self, W: DeviceArray) -> DeviceArray:
        """(F, r, r)."""
        return self.square(self.sums(W), W @ (self.X * self.X))

    def changes(self, W: DeviceArray, K: DeviceArray, coef: DeviceArray) -> DeviceArray:  # noqa: ARG002
        """W_j (x_j'c)^2."""
        return W * (coef @ self.X.T) ** 2


class SquareSums(PairSums):
    """The Gaussian kernel: base = (u - v)^2, K = exp(-A / 2)."""

    @staticmethod
    def base(u: DeviceArray, v: DeviceArray) -> DeviceArray:
        """(u - v)^2."""
        return (u - v) ** 2

    def weights(self, live: DeviceArray, scales: Scales | None = None) -> DeviceArray:
        """In units of the sum of the variances of the live columns; without `average` of all usable ones."""
        xp, of = self.arrays.xp, scales or self.scales
        variance = of.variance * of.factor
        unit = 1.0 if self.width is None else self.width**2
        if not self.average and self.width is not None:
            return live * of.factor * unit
        whole = (variance * live).sum(1)[:, None] if self.average else of.whole[:, :1]
        return live * of.factor * unit / xp.where(whole > 0, whole, 1.0)

    def matrices(self, W: DeviceArray) -> DeviceArray:
        """(F, r, r)."""
        return self.square(self.arrays.xp.exp(-0.5 * self.sums(W)), 1.0)

    def changes(self, W: DeviceArray, K: DeviceArray, coef: DeviceArray) -> DeviceArray:
        """2 sum over pairs of c_i c_k K_ik (1 - exp(W_j base / 2)), by its series or, of few features, as it is."""
        xp = self.arrays.xp
        # K(without j) = K exp(W_j base / 2), so each pair changes by c_i c_k K_ik (1 - exp(W_j base / 2)), and
        # exp(x) - 1 = sum_q x^q / q!: an order costs one product of G (F, pairs) with base^q (pairs, n)
        G = self.products(coef) * self.at_pairs(K)
        most = int((W > 0).sum(1).max())
        reach = xp.amax(self.X, 1) - xp.amin(self.X, 1)
        reach = xp.where(reach > 0, reach, 1.0)
        span = 0.5 * W * (reach**2)[None, :]  # the largest W_j base / 2 of a feature
        longest = float(xp.amax(span))
        if most <= EXACT or longest > LONGEST:
            return self._exactly(W, G, most)
        total, factor = self.arrays.zeros(*W.shape), xp.ones_like(W)
        for order in range(1, MOST_TERMS):
            factor = factor * span / order
            total = total + factor * self.forms(G, W, order, reach)
            if longest**order / math.factorial(order + 1) < SMALL_TERM:
                break
        return xp.abs(2.0 * total)

    def _exactly(self, W: DeviceArray, G: DeviceArray, most: int) -> DeviceArray:
        """One exponential for each problem, pair and live feature."""
        xp = self.arrays.xp
        live = self.arrays.order(-W)[:, :most]
        weight = self.arrays.take_along(W, live)
        total = self.arrays.zeros(*weight.shape)
        count = G.shape[1]
        room = 0.25 * self.arrays.free_bytes() / (48.0 * weight.shape[0] * most)
        step = int(min(max(room, 16), count))
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            u, v = self.X[:, self.left[part]][live], self.X[:, self.right[part]][live]
            total = total + xp.einsum("fkp,fp->fk", xp.expm1(0.5 * weight[:, :, None] * (u - v) ** 2), G[:, part])
        out = self.arrays.zeros(*W.shape)
        return self.arrays.assign_at(out, live, xp.abs(2.0 * total) * xp.where(weight > 0, 1.0, 0.0))


class DifferenceSums(PairSums):
    """The clinical kernel: base = |u - v|, K = sum of the weights less A; categories were given codes 0 and 1 apart."""

    @staticmethod
    def base(u: DeviceArray, v: DeviceArray) -> DeviceArray:
        """|u - v|."""
        return abs(u - v)

    def weights(self, live: DeviceArray, scales: Scales | None = None) -> DeviceArray:
        """In units of the range of the training rows, over the number of live features, or of all usable ones."""
        xp, of = self.arrays.xp, scales or self.scales
        count = self.counts(live) if self.average else of.whole[:, 1:]
        return live / xp.where(of.spread > 0, of.spread, 1.0) / count

    def matrices(self, W: DeviceArray) -> DeviceArray:
        """(F, r, r), with 1 on the diagonal: a constant is added, which no machine can tell."""
        return self.square(1.0 - self.sums(W), 1.0)

    def changes(self, W: DeviceArray, K: DeviceArray, coef: DeviceArray) -> DeviceArray:  # noqa: ARG002
        """2 W_j |sum over pairs of c_i c_k |x_ij - x_kj||."""
        return 2.0 * W * self.arrays.xp.abs(self.forms(self.products(coef), W))


# A Gram whose matrices stay on a device: for searches that rescale one large kernel many times.

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
