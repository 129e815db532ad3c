"""Products over a block of columns kept as rows (b, m), a few rows at a time: no temporary of the block's size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from ..contracts import Array, IntArray, Matrix, is_sparse
from ..data.stored import is_stored
from ..solvers.jit import jit
from . import buffers

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
    out = buffers.matrix(m, m)
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
    out = buffers.matrix(*product.shape)
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
