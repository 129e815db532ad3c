"""Grams over a block of columns kept as rows: what the geometries with a closed form of sum_j w_j base_j share.

Shapes: m training rows, p live features, Z' the block of live columns kept as rows (p, m).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from ..contracts import Array, Gram, IntArray, Kernel, Matrix, TableView, is_sparse
from ..data.stored import is_stored
from ..solvers.execution import jit

# Large matrices in memory that is used again.
#
# The system hands out fresh memory page by page, which for a matrix of hundreds of megabytes takes longer than what is
# computed into it. A search makes such a matrix at every step: here the memory of one that is no longer used becomes
# the next.

SMALL = 2**20  # numbers below which a matrix is left to numpy
KEPT = 2**27  # numbers that are kept for later, in all
_free: list[Array] = []  # flat, unused; appending and popping are atomic


class _Lease:
    """Memory on loan: when the last array that lies in it is gone, it is free again."""

    def __init__(self, memory: Array, shape: tuple[int, int]) -> None:
        self.memory = memory
        interface: dict[str, Any] = dict(memory.__array_interface__)
        self.__array_interface__ = interface | {"shape": shape, "strides": None}

    def __del__(self) -> None:
        if sum(memory.size for memory in _free) + self.memory.size <= KEPT:
            _free.append(self.memory)


def allocate_matrix(rows: int, columns: int) -> Array:
    """An uninitialised matrix of doubles."""
    size = rows * columns
    if size < SMALL:
        return np.empty((rows, columns))
    memory = None
    for place, unused in enumerate(_free):
        if size <= unused.size <= 2 * size:
            try:
                memory = _free.pop(place)
            except IndexError:  # another thread was faster
                continue
            if not size <= memory.size <= 2 * size:
                _free.append(memory)
                memory = None
                continue
            break
    if memory is None:
        memory = np.empty(size)
    return np.asarray(_Lease(memory, (rows, columns)))


# How much of a kernel matrix is kept: a limit in megabytes, which is a parameter of the kernels.

MEGABYTE = 2**20
NUMBER = 8  # bytes


def beyond_cache(table: TableView, cache: float) -> bool:
    """Whether the kernel matrix of a table's rows takes more megabytes than the cache has."""
    rows = table.shape[0]
    return NUMBER * rows * rows > cache * MEGABYTE and not table.is_sparse and not is_stored(table.Z)


def rows_at_once(cache: float) -> int:
    """The rows of a matrix that takes a quarter of the cache, since some are copied."""
    return max(64, int(math.sqrt(cache * MEGABYTE / NUMBER) / 2.0))


# Products over a block of columns kept as rows (b, m), a few rows at a time: no temporary of the block's size.

BLOCK = 512  # rows of a block of a large kernel matrix
SYMMETRIC = 1000  # rows above which BLAS's own symmetric product is slower than one by blocks
CELLS_AT_ONCE = 2**23  # of a table whose columns are unpacked
ROWS_AT_ONCE = 1024  # of the block: large enough for BLAS, small enough for the cache


def weighted_product(left: Matrix, weights: Array, right: Matrix | None = None) -> Array:
    """left' diag(weights) right: (b, r), (b,), (b, m) -> (r, m); right is left by default."""
    symmetric = right is None or right is left
    right = left if right is None else right
    if is_stored(left) or is_stored(right):
        return _stored_product(left, weights, right)
    if is_sparse(left):
        return np.asarray((left.T @ sparse.diags_array(weights) @ right).toarray())
    if len(weights) and np.all(weights == weights[0]):
        if symmetric and weights[0] > 0 and left.shape[1] > SYMMETRIC:
            return square(left if weights[0] == 1.0 else left * np.sqrt(weights[0]))
        return np.asarray((left.T @ right) * weights[0])
    if symmetric and np.all(weights >= 0):  # Z'WZ = R'R with R = sqrt(W) Z: one triangle is enough
        return _square_product(left, np.sqrt(weights)[:, None])
    total = np.zeros((left.shape[1], right.shape[1]))
    for part in parts(len(weights)):
        total += (left[part] * weights[part, None]).T @ right[part]
    return total


def _stored_product(left: Matrix, weights: Array, right: Matrix) -> Array:
    """The same where one side stays in a file, or both: a block of columns at a time."""
    total = np.zeros((left.shape[1], right.shape[1]))
    stays = right if is_stored(right) else left
    assert is_stored(stays)
    for part, rows in stays.T.blocks():
        if left is right:
            total += weighted_product(rows, weights[part])
        else:
            ours, theirs = (rows if side is stays else side[part] for side in (left, right))
            total += weighted_product(ours, weights[part], theirs)
    return total


def row_blocks(columns: Matrix) -> Iterator[Array]:
    """The rows of a dense block: all of them, or a few at a time where they stay in a file."""
    if is_stored(columns):
        for _, rows in columns.T.blocks():
            yield rows
    else:
        yield columns


def row_squares(columns: Matrix, weights: Array) -> Array:
    """(m,): sum_j w_j z_j^2 over the rows z_j of a dense block."""
    total, start = np.zeros(columns.shape[1]), 0
    for rows in row_blocks(columns):
        total += np.einsum("j,jm,jm->m", weights[start : start + len(rows)], rows, rows)
        start += len(rows)
    return total


def _square_product(left: Array, root: Array) -> Array:
    """R'R for R = root * left; BLAS computes one triangle, so it is symmetric to the last bit, at half the cost."""
    m = left.shape[1]
    if m > max(SYMMETRIC, len(left)):
        return square(root * left)
    total, room = np.zeros((m, m)), np.empty((min(ROWS_AT_ONCE, len(left)), m))
    for part in parts(len(left)):
        rows = left[part]
        piece = np.multiply(root[part], rows, out=room[: len(rows)])
        total += piece.T @ piece
    return total


def square(R: Array) -> Array:
    """R'R (m, m), symmetric to the last bit, by blocks that stay in the cache."""
    m = R.shape[1]
    out = allocate_matrix(m, m)
    for i, j in block_pairs(m):
        out[i, j] = R[:, i].T @ R[:, j]
        if i != j:
            out[j, i] = out[i, j].T
    return out


def block_pairs(m: int) -> Iterator[tuple[slice, slice]]:
    """Pairs of slices that cover the upper triangle of an (m, m) matrix; equal ones on its diagonal."""
    for i in parts(m, BLOCK):
        for j in parts(m, BLOCK):
            if j.start >= i.start:
                yield i, j


def quadratic_rows(columns: Matrix, G: Array, distance: bool, rows: IntArray | None = None) -> Array:
    """(b,): z'Gz for each row z of the block; with `distance` minus 1/2 sum_is G_is (z_i - z_s)^2 instead.

    G (q, q) is symmetric, over the samples `rows` (all by default).
    """
    if is_sparse(columns):
        part = columns if rows is None else columns[:, rows]
        return np.asarray(part.multiply(part @ G).sum(axis=1)).ravel()
    if distance:  # sum_is G_is (z_i - z_s)^2 / 2 = z' (diag(G 1) - G) z
        G = G - np.diag(G.sum(axis=1))
    out, room = np.empty(columns.shape[0]), np.empty((min(ROWS_AT_ONCE, columns.shape[0]), len(G)))
    for part in parts(columns.shape[0]):
        Z = columns[part] if rows is None else columns[part][:, rows]
        out[part] = np.einsum("pm,pm->p", np.matmul(Z, G, out=room[: len(Z)]), Z)
    return out


def parts(count: int, at_once: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Slices that cover so many rows."""
    for start in range(0, count, at_once):
        yield slice(start, min(start + at_once, count))


def column_parts(shape: tuple[int, int]) -> Iterator[slice]:
    """Slices that cover the columns of a table (m, n), fewer at a time where there are many rows."""
    m, n = shape
    yield from parts(n, max(16, min(ROWS_AT_ONCE, CELLS_AT_ONCE // max(m, 1))))


def subtract_rows(product: Array, columns: Array, rows: IntArray, weights: Array) -> tuple[Array, float]:
    """product - sum_k w_k z_k z_k' for a few rows z_k of the block, and its trace: one pass, no temporaries."""
    out = allocate_matrix(*product.shape)
    if is_stored(columns):
        columns, rows = columns[rows], np.arange(len(rows))
    return out, _subtract_rows(product, columns, rows, weights, out)


@jit
def _subtract_rows(product: Array, columns: Array, rows: IntArray, weights: Array, out: Array) -> float:
    m, trace = product.shape[0], 0.0
    for i in range(m):
        for j in range(m):
            out[i, j] = product[i, j]
        for k in range(rows.shape[0]):
            z = columns[rows[k]]
            for j in range(m):
                out[i, j] -= weights[k] * (z[i] * z[j])
        trace += out[i, i]
    return trace


def as_distance(product: Array, left: Array, right: Array) -> Array:
    """-|x - z|^2 / 2 from products; never positive, exactly 0 on the diagonal of a square matrix with itself."""
    return np.asarray(np.minimum(product - 0.5 * (left[:, None] + right[None, :]), 0.0))


def nonzero_rows(c: Array) -> IntArray:
    """The samples with a coefficient; the first where none has one."""
    on = np.flatnonzero(c)
    return on if len(on) else np.zeros(1, dtype=np.intp)


def delete_places(values: IntArray, gone: IntArray) -> IntArray:
    """The values without those at some places."""
    if len(gone) == 1:  # much faster than numpy.delete, thousands of times
        return np.concatenate((values[: gone[0]], values[gone[0] + 1 :]))
    stay = np.ones(len(values), dtype=bool)
    stay[gone] = False
    return values[stay]


# A line search over scales: a trial step costs m^2, not m^2 n.


class OnLine(Protocol):
    """What a line asks of the Gram that it goes through."""

    @property
    def features(self) -> IntArray: ...
    @property
    def feature_weight(self) -> Array: ...
    def matrix_of(self, total: Array) -> Array: ...
    def with_total(self, feature_weight: Array, total: Array) -> Gram: ...


@dataclass(frozen=True)
class Line:
    """sum_j (s_j + l d_j)^2 base_j = total + l * first + l^2 * second, s_j = sqrt(w_j)."""

    gram: OnLine
    direction: Array  # (p,) in units of the square roots of the feature weights
    total: Array  # (m, m) the sum over features that the Gram's matrix is made of
    first: Array
    second: Array

    def matrix(self, length: float) -> Array:
        """K at s + length * direction."""
        return self.gram.matrix_of(self._total_at(length))

    def gram_at(self, length: float) -> Gram:
        """The Gram there."""
        scale = np.sqrt(self.gram.feature_weight)
        scale[self.gram.features] += length * self.direction
        return self.gram.with_total(scale**2, self._total_at(length))

    def _total_at(self, length: float) -> Array:
        return self.total + length * self.first + length**2 * self.second


CANCELLATION = 1e-5  # a downdated matrix is rebuilt when its trace has fallen to this share of what it was
NO_PRODUCT = np.empty((0, 0))
NEW_CELLS_AT_ONCE = 4_000_000  # of a kernel matrix against new rows


@dataclass(frozen=True)
class Block:
    """Columns as rows, contiguous; shared by all Grams until half of its columns have been dropped."""

    features: IntArray  # (b,) places in the table
    columns: Matrix  # (b, m)
    centre: Array | None  # (b,) what was taken off the columns
    trace: float  # of the weighted sum when the block was made


@dataclass(frozen=True, eq=False)
class BlockGram(Gram):
    """`product` (m, m) is the weighted sum over the live columns, before the divisor, that A is made of.

    It is empty where it was not needed yet; `total` makes it.
    """

    kernel: Kernel
    table: TableView
    feature_weight: Array
    features: IntArray
    block: Block
    place: IntArray  # (p,) where the live features lie in the block
    product: Array

    # -- what a geometry says of itself --------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def columns_of(cls, table: TableView, live: IntArray) -> tuple[Matrix, Array | None]:
        """(p, m) the live columns as rows, and what was taken off them (p,) where something was."""

    @staticmethod
    @abstractmethod
    def weighted_sum(left: Matrix, weights: Array, right: Matrix | None = None) -> Array:
        """What A is made of: (p, r), (p,), (p, m) -> (r, m); right is left by default."""

    @abstractmethod
    def rows_of(self, Z: Matrix) -> Matrix:
        """New rows (rows, n) as a block (p, rows) of the live features."""

    def inner_of(self, product: Array) -> Array:
        """A from a product of the training rows."""
        return self.divide(product)

    def inner(self, Z: Matrix) -> Array:
        """(rows, m): A between new rows Z (rows, n) and the training rows."""
        return self.weighted_sum(self.rows_of(Z), self.weight, self.columns)

    @abstractmethod
    def outer(self, A: Array) -> Array:
        """K from A."""

    @abstractmethod
    def diagonal_at(self, Z: Matrix) -> Array:
        """(rows,): K(x, x) of new rows Z (rows, n)."""

    # -- building ---------------------------------------------------------------------------------------------

    @classmethod
    def build(cls, kernel: Kernel, table: TableView, feature_weight: Array, live: IntArray) -> Self:
        """The kernel on some features at weights (n,)."""
        columns, centre = cls.columns_of(table, live)
        weight, product, trace = feature_weight[live], NO_PRODUCT, 0.0
        if is_sparse(columns) and not cls.matrix_free:
            product = cls.weighted_sum(columns, weight)
            trace = float(np.trace(product))
        elif not cls.matrix_free:
            trace = cls.trace_of(columns, weight)
        block = Block(live, columns, centre, trace)
        return cls(kernel, table, feature_weight, live, block, np.arange(len(live)), product, **cls.extra(table))

    @staticmethod
    def trace_of(columns: Array, weight: Array) -> float:
        """The trace of the weighted sum over columns (p, m)."""
        squares = [np.einsum("pm,pm->p", rows, rows) for rows in row_blocks(columns)]
        return float(weight @ np.concatenate([*squares, np.empty(0)]))

    @classmethod
    def extra(cls, table: TableView) -> dict[str, Any]:  # noqa: ARG003
        """Further fields of a geometry."""
        return {}

    def without(self, features: IntArray) -> Gram:
        """The Gram with these features dropped: downdated where that is exact enough and cheaper, else rebuilt."""
        gone = np.searchsorted(self.features, features)
        live, place = delete_places(self.features, gone), delete_places(self.place, gone)
        if 2 * len(live) > len(self.block.features):
            if self.matrix_free:
                return replace(self, features=live, place=place, product=NO_PRODUCT)
            product, trace = self.downdate(gone)
            if trace > CANCELLATION * self.block.trace:  # else little more than rounding would be left
                return replace(self, features=live, place=place, product=product)
        return self.kernel.bind(self.table, self.feature_weight, live)

    def downdate(self, gone: IntArray) -> tuple[Array, float]:
        """The product less that of the live features at some places, and its trace."""
        product = allocate_matrix(*self.total.shape)
        part = self.weighted_sum(self.block.columns[self.place[gone]], self.total_weight[gone])
        np.subtract(self.total, part, out=product)
        return product, float(product.trace())

    def rescale(self, feature_weight: Array, features: IntArray | None = None) -> Self:
        """The same features, or some of them (sorted), at other weights (n,)."""
        live = self.features if features is None else features
        place = self.place if features is None else self.place[np.searchsorted(self.features, features)]
        block = self.block
        if len(place) < len(block.features):  # a block of their own: its rows are visited many times
            centre = None if block.centre is None else block.centre[place]
            block = replace(block, features=live, columns=block.columns[place], centre=centre)
            place = np.arange(len(live))
        weight, product = feature_weight[live], NO_PRODUCT
        if self.matrix_free:
            pass
        elif features is None and (ratio := _common_factor(weight, self.total_weight)):
            product = ratio * self.total
        else:
            product = self.weighted_sum(block.columns, weight)
        block = replace(block, trace=float(product.trace()))
        return replace(self, feature_weight=feature_weight, features=live, block=block, place=place, product=product)

    def only(self, rows: IntArray) -> Self:
        """The Gram among some training rows; where the rest has coefficient 0, its quadratic forms are the same."""
        block = replace(self.block, columns=_contiguous(self.block.columns[:, rows]))
        product = NO_PRODUCT if self.matrix_free else self.total[np.ix_(rows, rows)]
        return replace(self, table=self.table.sample(rows), block=block, product=product)

    @property
    def total_weight(self) -> Array:
        """(p,) the weights of `total`: w_j of the live features, before the divisor."""
        return self.feature_weight.take(self.features)

    @property
    def columns(self) -> Matrix:
        """(p, m): the live columns as rows."""
        whole = len(self.place) == len(self.block.features)
        return self.block.columns if whole else self.block.columns[self.place]

    @property
    def total_is_known(self) -> bool:
        """Whether `total` has been made."""
        return bool(self.product.size) or "total" in self.__dict__

    @cached_property
    def total(self) -> Array:
        """(m, m): the weighted sum over the live columns, before the divisor."""
        return self.product if self.product.size else self.weighted_sum(self.columns, self.total_weight)

    # -- matrices ---------------------------------------------------------------------------------------------

    @cached_property
    def own_inner(self) -> Array:
        """(m, m): A of the training rows."""
        return self.inner_of(self.total)

    @cached_property
    def own_matrix(self) -> Array:
        """(m, m): K of the training rows."""
        return np.ascontiguousarray(self.outer(self.own_inner))

    def matrix(self, Z: Matrix | None = None) -> Array:
        """(m, m), or (rows, m) against new rows Z (rows, n)."""
        return self.own_matrix if Z is None else np.asarray(self.outer(self.inner(Z)))

    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""
        return self.own_matrix.diagonal().copy() if Z is None else self.diagonal_at(Z)

    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c."""
        if Z is None:
            return np.asarray(self.own_matrix @ c)
        step = max(1, NEW_CELLS_AT_ONCE // max(len(c), 1))
        pieces = [self.matrix(Z[start : start + step]) @ c for start in range(0, Z.shape[0], step)]
        return np.concatenate(pieces) if pieces else np.empty(0)

    def line(self, direction: Array) -> Line:
        """Grams at weights (sqrt(w) + l * direction)^2: three matrices (m, m) are made once, a trial costs m^2."""
        s = np.sqrt(self.total_weight)
        d = direction if self.divisor == 1.0 else direction * np.sqrt(self.divisor)
        # (s + l d)^2 = s^2 + l (2 s d) + l^2 d^2, and 2 s d = (s + d)^2 - s^2 - d^2
        second = self.weighted_sum(self.columns, d * d)  # no weight is negative: each product at half the cost
        first = self.weighted_sum(self.columns, (s + d) ** 2) - self.total - second
        return Line(self, d, self.total, first, second)

    def matrix_of(self, total: Array) -> Array:
        """K from such a sum."""
        return np.asarray(self.outer(self.inner_of(total)))

    def with_total(self, feature_weight: Array, total: Array) -> Self:
        """The same features at other weights, whose sum is known."""
        block = replace(self.block, trace=float(total.trace()))
        return replace(self, feature_weight=feature_weight, block=block, product=total)

    def subset_sums(self, Z: Matrix | None) -> BlockSums | None:
        """Sums over many subsets of the live features, with rows Z after the training rows; None for a sparse table."""
        if self.table.is_sparse or is_stored(self.block.columns):
            return None
        columns = np.asarray(self.columns)
        return BlockSums(self, np.hstack([columns, columns if Z is None else self.rows_of(Z)]))

    def squares_of(self, block: Matrix, weight: Array) -> Array:
        """(rows,): sum_j w_j base_j of each row of a block (p, rows) with itself, as far as it is not constant."""
        return np.asarray(weight @ (block * block))

    def further(self, A: Array, squares: Array) -> tuple[Array, Array]:
        """K of further rows with the training rows from their sums A (rows, m), and of each with itself."""
        return np.asarray(self.outer(A)), np.asarray(self.outer(squares[len(squares) - len(A) :]))


@dataclass(frozen=True)
class BlockSums:
    """What the features of a Gram add to A over the training rows and further rows after them, columns (p, rows)."""

    whole: BlockGram
    columns: Array

    def sums_over(self, places: IntArray) -> tuple[Array, Array]:
        """What some features add to A (rows, m) and to the rows' sums with themselves (rows,)."""
        block, weight = np.ascontiguousarray(self.columns[places]), self.whole.total_weight[places]
        training = np.ascontiguousarray(block[:, : self.whole.table.shape[0]])
        return self.whole.weighted_sum(block, weight, training), self.whole.squares_of(block, weight)

    def gram(self, A: Array, places: IntArray) -> BlockGram:
        """The Gram over the training rows of the features at some places, from their sum A (m, m)."""
        return replace(
            self.whole, features=self.whole.features[places], place=self.whole.place[places], product=0.5 * (A + A.T)
        )

    def kernel(self, gram: Gram, A: Array, squares: Array) -> tuple[Array, Array]:
        """K between the further and the training rows, and of each further row with itself."""
        assert isinstance(gram, BlockGram)
        return gram.further(gram.divide(A), gram.divide(squares))


def new_rows(Z: Matrix, features: IntArray) -> Matrix:
    """New rows (rows, n) as a block (p, rows) of some features."""
    if is_sparse(Z):
        return sparse.csr_array(sparse.csc_array(Z)[:, features].T)
    return _contiguous(Z[:, features].T)


def table_columns(table: TableView, live: IntArray) -> Matrix:
    """(p, m) columns of a table as rows; a copy, or the table itself turned round where all features are live."""
    everything = len(live) == table.shape[1]
    if table.is_sparse:
        return sparse.csr_array((table.Z if everything else table.Z[:, live]).T)
    return _contiguous(table.Z.T if everything else table.Z.T[live])


def _contiguous(columns: Matrix) -> Matrix:
    """The same, dense rows one after the other in memory."""
    return columns if is_sparse(columns) or is_stored(columns) else np.ascontiguousarray(columns)


def _common_factor(weight: Array, before: Array) -> float:
    """The factor by which all weights changed; 0 where they did not change alike."""
    first = weight[0] / before[0] if before[0] > 0 else 0.0
    return float(first) if np.allclose(weight, first * before, rtol=1e-14, atol=0.0) else 0.0
