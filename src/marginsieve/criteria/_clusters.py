"""k-means without a random start, on coordinates that keep all distances between rows."""

from __future__ import annotations

import numpy as np

from ..algebra.block_products import parts
from ..contracts import Array, IntArray, Matrix
from ._columns import as_rows

FLAT = 1e-10  # of the largest eigenvalue: what counts as no direction


def centre_columns(Z: Matrix, part: slice, weight: Array) -> Array:
    """(p, m): some columns as rows, their weighted mean taken off, missing cells at the mean."""
    z = as_rows(Z, part)
    seen = ~np.isnan(z)
    z = np.where(seen, z, 0.0)
    z -= ((z @ weight) / np.maximum(seen @ weight, 1e-300))[:, None]
    return np.asarray(np.where(seen, z, 0.0))


def products(Z: Matrix, weight: Array) -> Array:
    """(m, m): inner products of the centred rows."""
    G = np.zeros((Z.shape[0], Z.shape[0]))
    for part in parts(Z.shape[1]):
        z = centre_columns(Z, part, weight)
        G += z.T @ z
    return G


def coordinates(Z: Matrix, weight: Array) -> Array:
    """(m, r): rows in as many coordinates as they span, with the distances of the table."""
    if Z.shape[1] <= Z.shape[0]:
        return np.ascontiguousarray(centre_columns(Z, slice(None), weight).T)
    # Distances between m rows need at most m coordinates: the eigenvectors of their m x m products, not n columns.
    value, vector = np.linalg.eigh(products(Z, weight))
    used = value > FLAT * value.max(initial=0.0)
    return np.asarray(vector[:, used] * np.sqrt(value[used]))


def split(x: Array, weight: Array, k: int, rounds: int) -> IntArray:
    """(m,) the part of each row: k-means from a start by main directions, at most so many rounds."""
    part = _first(x, weight, k)
    for _ in range(rounds):
        share = np.array([weight * (part == p) for p in range(int(part.max()) + 1)])
        centre = share @ x / share.sum(axis=1, keepdims=True)
        # |x - centre|^2 without |x|^2, which is the same for all centres.
        moved = ((centre**2).sum(axis=1) - 2.0 * x @ centre.T).argmin(axis=1)
        if len(np.unique(moved)) < len(centre) or np.array_equal(moved, part):
            break
        part = moved.astype(np.intp)
    return part


def _first(x: Array, weight: Array, k: int) -> IntArray:
    """The part of largest spread is cut at its mean across its main direction until there are k."""
    part, least = np.zeros(len(x), dtype=np.intp), FLAT * _spread(x, weight)
    while part.max() < k - 1:
        inside = [np.flatnonzero(part == p) for p in range(int(part.max()) + 1)]
        spread = [_spread(x[rows], weight[rows]) for rows in inside]
        # No part has any spread left: there are fewer distinct rows than parts asked for.
        if max(spread) <= least:
            break
        rows = inside[int(np.argmax(spread))]
        away = x[rows] - np.average(x[rows], axis=0, weights=weight[rows])
        main = np.linalg.svd(away * np.sqrt(weight[rows])[:, None], full_matrices=False)[2][0]
        side = away @ main
        cut = rows[side > 0 if side.max() >= -side.min() else side < 0]
        if not 0 < len(cut) < len(rows):  # what is left of a spread is rounding
            break
        part[cut] = part.max() + 1
    return part


def _spread(x: Array, weight: Array) -> float:
    away = x - np.average(x, axis=0, weights=weight)
    return float(weight @ (away**2).sum(axis=1))
