"""Sums of tents: k(u, v) = max(0, 1 - |u - v|), the clinical kernel of one column in coordinates made for it.

A continuous or ordinal column is clipped to its training range and brought to [0, 1], so that k = 1 - |u - v|. The
levels of a nominal column are whole numbers, so that k = 1 where they are equal and 0 elsewhere. A missing cell lies so
far out that k = 0 against everything, itself included.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit
from .._types import Array, BoolArray, IntArray

MISSING = 1e9


def coordinates(Z: Array, nominal: BoolArray, low: Array, spread: Array) -> Array:
    """(n, rows): codes Z (rows, n) as coordinates, columns as rows; nan becomes MISSING."""
    unit = np.where(nominal | (spread <= 0), 1.0, spread)
    U = (Z - np.where(nominal, 0.0, low)) / unit
    U = np.where(nominal, U, np.clip(U, 0.0, np.where(spread > 0, 1.0, 0.0)))
    return np.ascontiguousarray(np.where(np.isnan(Z), MISSING, U).T)


@jit
def weighted(left: Array, weights: Array, right: Array) -> Array:
    """sum_j weights_j k(left_j, right_j): (n, r), (n,), (n, m) -> (r, m)."""
    n, r = left.shape
    m = right.shape[1]
    out = np.zeros((r, m))
    for j in range(n):
        w, row = weights[j], right[j]
        if w == 0.0:
            continue
        for i in range(r):
            u, here = left[j, i], out[i]
            if u < MISSING:
                for k in range(m):
                    here[k] += w * max(0.0, 1.0 - abs(u - row[k]))
    return out


@jit
def quadratics(U: Array, order: IntArray, seen: IntArray, nominal: BoolArray, c: Array, d: Array) -> Array:
    """(n,): c'K_j d for each row of U (n, m), sorted by `order` (n, m), the first seen_j of it observed.

    A continuous column by running sums: with P, Q the sums of c, d below a threshold and S, T their totals,
    c'K_j d = integral over the thresholds from 0 to 1 of P Q + (S - P)(T - Q). A nominal one by sums per level.
    """
    n = U.shape[0]
    out = np.zeros(n)
    for j in range(n):
        row, place, count = U[j], order[j], seen[j]
        S, T = 0.0, 0.0
        for i in range(count):
            S += c[place[i]]
            T += d[place[i]]
        P, Q, total, left = 0.0, 0.0, 0.0, 1.0
        for i in range(count):
            P += c[place[i]]
            Q += d[place[i]]
            gap = row[place[i + 1]] - row[place[i]] if i + 1 < count else 1.0
            if nominal[j]:
                if gap > 0.0:
                    total += P * Q
                    P, Q = 0.0, 0.0
            elif i + 1 < count:
                total += gap * (P * Q + (S - P) * (T - Q))
                left -= gap
        out[j] = total if nominal[j] else total + left * S * T
    return out


def sorted_columns(U: Array) -> tuple[IntArray, IntArray]:
    """(order (n, m), how many are observed (n,)) of coordinates (n, m); missing cells come last."""
    return np.argsort(U, axis=1, kind="stable"), np.count_nonzero(U < MISSING, axis=1).astype(np.intp)
