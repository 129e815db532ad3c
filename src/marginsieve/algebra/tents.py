"""Sums of tents: k(u, v) = max(0, 1 - |u - v|), the clinical kernel of one column in coordinates made for it.

A continuous or ordinal column is clipped to its training range and brought to [0, 1], so that k = 1 - |u - v|. The
levels of a nominal column are whole numbers, so that k = 1 where they are equal and 0 elsewhere. A missing cell lies so
far out that k = 0 against everything, itself included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np

from ..contracts import CATEGORICAL, Array, BoolArray, HasCache, IntArray, Matrix, TableView
from ..solvers.execution import jit
from .blocks import BlockGram, allocate_matrix, parts, rows_at_once

MISSING = 1e9
FEW = 64  # rows up to which inserting one after the other sorts fastest
ROWS = 8  # of a matrix that are made at a time
SQUARE = 32  # rows and columns that are mirrored at a time


@dataclass(frozen=True)
class Tents:
    """Training rows in coordinates U (n, m)."""

    U: Array
    nominal: BoolArray  # (n,)
    low: Array  # (n,)
    spread: Array  # (n,)

    @classmethod
    def from_table(cls, table: TableView) -> Tents:
        """The rows of a table."""
        return cls.from_codes(table.Z, table.kind, table.bounds)

    @classmethod
    def from_codes(cls, Z: Array, kind: Sequence[str], bounds: tuple[Array, Array] | None = None) -> Tents:
        """From codes (m, n) and the lowest and highest value of each column (n,), which has an observed cell."""
        low, high = bounds or (np.fmin.reduce(Z, axis=0), np.fmax.reduce(Z, axis=0))
        nominal = np.array([name in CATEGORICAL for name in kind], dtype=bool)
        return cls(coordinates(Z, nominal, low, high - low), nominal, low, high - low)

    @cached_property
    def sorting(self) -> tuple[IntArray, Array, IntArray]:
        """Order (n, m), missing cells last; the gap (n, m) to the next one in order; how many are observed (n,).

        Behind the last one observed the gap of a continuous column is what is left of 1, that of a nominal one is 1.
        """
        U = self.U
        if U.shape[1] <= FEW:
            order, gap, seen = np.empty(U.shape, dtype=np.intp), np.empty(U.shape), np.empty(len(U), dtype=np.intp)
            _sorted_few(U, self.nominal, order, gap, seen)
            return order, gap, seen
        order = np.argsort(U, axis=1, kind="stable")
        seen = np.count_nonzero(U < MISSING, axis=1).astype(np.intp)
        value = np.take_along_axis(U, order, axis=1)
        gap = np.diff(value, axis=1, append=MISSING)
        some = np.flatnonzero(seen)
        last = seen[some] - 1
        gap[some, last] = np.where(self.nominal[some], 1.0, 1.0 - (value[some, last] - value[some, 0]))
        return order, gap, seen

    def rows(self, rows: IntArray) -> Tents:
        """Some of the rows, in the same coordinates."""
        return replace(self, U=np.ascontiguousarray(self.U[:, rows]))

    def coordinates_of(self, Z: Array, features: IntArray) -> Array:
        """(p, rows): other rows Z (rows, n) in the coordinates of some features."""
        return coordinates(Z[:, features], self.nominal[features], self.low[features], self.spread[features])

    def quadratics(self, features: IntArray, c: Array, d: Array) -> Array:
        """(p,): c'K_j d for some features."""
        which = np.asarray(features, dtype=np.intp)
        return _quadratics(*self.sorting, self.nominal, which, c, d, c is d)

    def product(self, features: IntArray, weights: Array, c: Array, left: Array | None = None) -> Array:
        """(rows,): sum_j w_j K_j c over some features, at the rows themselves or at others, left (p, rows).

        No matrix of rows by rows is made; `left` is in coordinates.
        """
        total: Array = self._multiply(features, weights, c, left, 1)[0]
        return total

    def products(self, features: IntArray, c: Array, left: Array | None = None) -> Array:
        """(p, rows): K_j c for some features, at the rows themselves or at others, left (p, rows) in coordinates."""
        return self._multiply(features, np.ones(len(features)), c, left, len(features))

    def _multiply(self, features: IntArray, weights: Array, c: Array, left: Array | None, count: int) -> Array:
        """(p, rows): w_j K_j c by feature; with a count of 1 their sum (1, rows)."""
        which = np.asarray(features, dtype=np.intp)
        order, gap, seen = self.sorting
        out: Array = np.zeros((count, len(c) if left is None else left.shape[1]))
        if left is None:
            _add_products(order, gap, seen, self.nominal, self.U, which, weights, c, out)
        else:
            _add_products_at(order, seen, self.nominal, self.U, which, weights, c, left, out)
        return out

    def sum_observed(self, features: IntArray, d: Array) -> Array:
        """(p,): the sum of d over the rows in which a feature is observed, that is d'diag(K_j)."""
        return np.asarray((self.U[features] < MISSING) @ d)


def coordinates(Z: Array, nominal: BoolArray, low: Array, spread: Array) -> Array:
    """(n, rows): codes Z (rows, n) as coordinates, columns as rows; nan becomes MISSING."""
    unit = np.where(nominal | (spread <= 0), 1.0, spread)
    U = (Z - np.where(nominal, 0.0, low)) / unit
    U = np.where(nominal, U, np.clip(U, 0.0, np.where(spread > 0, 1.0, 0.0)))
    return np.ascontiguousarray(np.where(np.isnan(Z), MISSING, U).T)


def sum_tents(left: Array, weights: Array, right: Array) -> Array:
    """sum_j weights_j k(left_j, right_j): (n, r), (n,), (n, m) -> (r, m)."""
    out = np.zeros((left.shape[1], right.shape[1]))
    _add_tents(left, weights, right, left is right, out)
    return out


def squares(left: Array, right: Array) -> Array:
    """sum_j d_j^2, d = min(1, |u - v|), 1 where a cell is missing: (n, r), (n, m) -> (r, m)."""
    return _squares(left, right, left is right)


@jit
def _sorted_few(U: Array, nominal: BoolArray, order: IntArray, gap: Array, seen: IntArray) -> None:
    """`Tents.sorting` of few rows, into order, gap and seen."""
    m = U.shape[1]
    for j in range(U.shape[0]):
        u, place, value, count = U[j], order[j], gap[j], 0
        for i in range(m):
            here, k = u[i], i
            count += here < MISSING
            while k > 0 and value[k - 1] > here:
                value[k], place[k] = value[k - 1], place[k - 1]
                k -= 1
            value[k], place[k] = here, i
        first, last = value[0], value[max(count - 1, 0)]
        for k in range(m - 1):
            value[k] = value[k + 1] - value[k]
        value[m - 1] = MISSING - value[m - 1]
        if count:
            value[count - 1] = 1.0 if nominal[j] else 1.0 - (last - first)
        seen[j] = count


@jit
def _add_tents(left: Array, weights: Array, right: Array, same: bool, out: Array) -> None:
    """A few rows at a time, which stay in the cache; half of it where both sides are the same."""
    n, r = left.shape
    for first in range(0, r, ROWS):
        start = first if same else 0
        for j in range(n):
            w, row = weights[j], right[j, start:]
            if w == 0.0:
                continue
            for i in range(first, min(first + ROWS, r)):
                u, here = left[j, i], out[i, start:]
                if u < MISSING:
                    for k in range(row.shape[0]):
                        here[k] += w * max(0.0, 1.0 - abs(u - row[k]))
    if same:
        _mirror(out)


@jit
def _squares(left: Array, right: Array, same: bool) -> Array:
    n, r = left.shape
    out = np.zeros((r, right.shape[1]))
    for first in range(0, r, ROWS):
        start = first if same else 0
        for j in range(n):
            row = right[j, start:]
            for i in range(first, min(first + ROWS, r)):
                u, here = left[j, i], out[i, start:]
                for k in range(row.shape[0]):
                    d = min(1.0, abs(u - row[k]))
                    here[k] += d * d if u < MISSING else 1.0
    if same:
        _mirror(out)
    return out


@jit
def _mirror(out: Array) -> None:
    """The lower triangle from the upper one, by squares that stay in the cache."""
    m = out.shape[0]
    for top in range(0, m, SQUARE):
        for left in range(0, top + 1, SQUARE):
            for i in range(top, min(top + SQUARE, m)):
                for k in range(left, min(left + SQUARE, i)):
                    out[i, k] = out[k, i]


@jit
def _quadratics(
    order: IntArray, gap: Array, seen: IntArray, nominal: BoolArray, which: IntArray, c: Array, d: Array, same: bool
) -> Array:
    """(p,): c'K_j d for some features j; `same` says that d is c.

    A continuous column by running sums: with P, Q the sums of c, d below a threshold and S, T their totals,
    c'K_j d = integral over the thresholds from 0 to 1 of P Q + (S - P)(T - Q). A nominal one by sums per level.
    """
    out, m = np.zeros(which.shape[0]), c.shape[0]
    all_c, all_d = c.sum(), d.sum()
    for k in range(which.shape[0]):
        j = which[k]
        place, step, count = order[j], gap[j], seen[j]
        S, T, P, Q, total = all_c, all_d, 0.0, 0.0, 0.0
        for i in range(count, m):
            S -= c[place[i]]
            T -= d[place[i]]
        if nominal[j]:
            for i in range(count):
                P += c[place[i]]
                Q += d[place[i]]
                if step[i] > 0.0:
                    total += P * Q
                    P, Q = 0.0, 0.0
        elif same:
            for i in range(count):
                P += c[place[i]]
                total += step[i] * (P * P + (S - P) * (S - P))
        else:
            for i in range(count):
                P += c[place[i]]
                Q += d[place[i]]
                total += step[i] * (P * Q + (S - P) * (T - Q))
        out[k] = total
    return out


@jit
def _add_product(
    place: IntArray, step: Array, count: int, nominal: bool, u: Array, weight: float, c: Array, out: Array
) -> None:
    """out += weight * K_j c at the rows themselves, for one feature j.

    With S the sum of c over the observed rows, P and Q the sums of c and of c u up to u_i and R that of c u over all,
    (K_j c)_i = S - u_i (2 P - S) + 2 Q - R. A nominal column has one sum per level.
    """
    if nominal:
        first, P = 0, 0.0
        for i in range(count):
            P += c[place[i]]
            if step[i] > 0.0:
                for other in range(first, i + 1):
                    out[place[other]] += weight * P
                first, P = i + 1, 0.0
        return
    S, R, P, Q = 0.0, 0.0, 0.0, 0.0
    for i in range(count):
        S += c[place[i]]
        R += c[place[i]] * u[place[i]]
    for i in range(count):
        k = place[i]
        P += c[k]
        Q += c[k] * u[k]
        out[k] += weight * (S - u[k] * (2.0 * P - S) + 2.0 * Q - R)


@jit
def _add_products(
    order: IntArray,
    gap: Array,
    seen: IntArray,
    nominal: BoolArray,
    U: Array,
    which: IntArray,
    weights: Array,
    c: Array,
    out: Array,
) -> None:
    """out (p, m) += weights_k K_j c at the rows themselves, j = which[k], or their sum where out has one row."""
    for k in range(which.shape[0]):
        j, row = which[k], out[k if out.shape[0] > 1 else 0]
        _add_product(order[j], gap[j], seen[j], nominal[j], U[j], weights[k], c, row)


@jit
def _add_product_at(
    place: IntArray, count: int, nominal: bool, u: Array, weight: float, c: Array, left: Array, room: Array, out: Array
) -> None:
    """out += weight * K_j(left rows, training rows) c for one feature j, left (r,) in its coordinates: by bisection."""
    P, Q = room[0], room[1]
    P[0], Q[0] = 0.0, 0.0
    for i in range(count):
        P[i + 1] = P[i] + c[place[i]]
        Q[i + 1] = Q[i] + c[place[i]] * u[place[i]]
    for row in range(left.shape[0]):
        x = left[row]
        if x >= MISSING:
            continue
        k = _count_below(u, place, count, x + 0.5 if nominal else x)  # how many training values are below, or equal
        if nominal:
            out[row] += weight * (P[k] - P[_count_below(u, place, count, x - 0.5)])
        else:
            out[row] += weight * (P[count] - x * (2.0 * P[k] - P[count]) + 2.0 * Q[k] - Q[count])


@jit
def _count_below(u: Array, place: IntArray, count: int, x: float) -> int:
    """How many of the first `count` values in order are at most x."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if u[place[middle]] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _add_products_at(
    order: IntArray,
    seen: IntArray,
    nominal: BoolArray,
    U: Array,
    which: IntArray,
    weights: Array,
    c: Array,
    left: Array,
    out: Array,
) -> None:
    """The same at other rows, out (p, r), left (p, r) in the coordinates of the features."""
    room = np.empty((2, c.shape[0] + 1))
    for k in range(which.shape[0]):
        j, row = which[k], out[k if out.shape[0] > 1 else 0]
        _add_product_at(order[j], seen[j], nominal[j], U[j], weights[k], c, left[k], room, row)


# Kernels of tents: A = sum_j w_j k_j, each k_j a tent in coordinates made for its column (the clinical kernel).

FEW_ROWS = 100  # training rows up to which new rows are compared with each of them


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
        product = allocate_matrix(*self.total.shape)
        np.copyto(product, self.total)
        left = self.block.columns[self.place[gone]]
        _add_tents(left, -self.total_weight[gone], left, True, product)
        return product, float(product.trace())

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c; new rows are looked up among sorted training rows where these are many."""
        if Z is None or len(c) <= FEW_ROWS:
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
