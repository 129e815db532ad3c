"""C-SVC on a linear kernel and a sparse table with many rows, without a matrix of rows by rows or columns by columns.

    min_a  1/2 |w|^2 - sum(a)    subject to  y'a = 0,  0 <= a <= top          w = sum_i a_i y_i x_i

Sweeps over the samples minimise in one a_i at a time, which takes the cells of its row (dual coordinate descent, Hsieh
et al. 2008). The equality is held by a price: with s = y'a the slope in a_i is y_i (w'x_i + b + rho s) - 1, and b
follows the samples inside their bounds, where E = b + rho s in the end. Between sweeps, conjugate gradients over the
samples inside their bounds do what single steps would crawl for. It ends with the certificate of the other solvers: E =
y - w'x, the largest E that may rise less the lowest that may fall.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array, IntArray
from .interior_point import balance, certificate
from .jit import jit
from .smo import SVCOptimum

ROUNDS = 400  # of sweeps and conjugate gradients
SWEEPS = 3  # between two rounds of conjugate gradients
PRODUCTS = 100  # in one of them
ALL_EVERY = 10  # rounds in which samples that are far on the right side of their bound are looked at too


def svc(X: Any, y: Array, top: Array, tol: float, start: Array | None = None) -> SVCOptimum:
    """C-SVC of the rows of X (m, p) in CSR."""
    m = len(y)
    a = np.zeros(m) if start is None else np.clip(start * y, 0.0, top)
    both = (y[top > 0] > 0).any() and (y[top > 0] < 0).any()
    a = _balance(a if both else np.zeros(m), y, top)
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    # A price of the size of the rows' squares makes the equality as stiff as the samples' own curvature: far less and
    # y'a drifts, far more and single steps in one a_i cannot move.
    rho = float(squares.mean()) or 1.0
    cells = X.indptr.astype(np.intp), X.indices.astype(np.intp), X.data
    rng, state = np.random.default_rng(0), np.zeros(2)  # state: b, s
    best: tuple[float, Array] = (np.inf, a)
    for k in range(ROUNDS if both else 0):
        w = np.asarray((a * y) @ X)
        E = y - X @ w
        violation, level = certificate(E, a * y, y, top)
        # The certificate is that of a point with y'a = 0 exactly, not of the point that the sweeps are at.
        feasible = _balance(a, y, top)
        apart = float(np.abs(feasible - a).sum())
        if violation <= 2.0 * tol and apart > 0.0:
            violation, level = certificate(y - X @ np.asarray((feasible * y) @ X), feasible * y, y, top)
        elif apart > 1e-9 * float(a.sum()):
            violation = max(violation, 2.0 * tol)
        gap = float(top @ np.maximum(0.0, y * (E - level)) + w @ w - a.sum())  # of the objectives
        if violation <= tol or gap < best[0]:
            best = gap, feasible
        if violation <= tol:
            break
        state[:] = level, float(y @ a)
        slack = y * (E - state[0])  # above 0: short of the margin
        # Shrinking: a sample at a bound, and on the right side of it by more than the violation, will hardly move.
        far = max(2.0 * violation, tol)
        at_rest = ((a <= 0.0) & (slack < -far)) | ((a >= top) & (slack > far)) | (top <= 0.0)
        active = np.flatnonzero(~at_rest) if k % ALL_EVERY else np.flatnonzero(top > 0.0)
        for _ in range(SWEEPS):
            _sweep(*cells, y, top, squares + rho, a, w, state, rng.permutation(active), rho)
        a = _conjugate(X, y, top, a, state[0], rho, 0.3 * tol)
    c = best[1] * y
    w = np.asarray(c @ X)
    E = y - X @ w
    violation, b = certificate(E, c, y, top)
    b = b if np.isfinite(b) else float(y[0]) if m else 0.0
    return SVCOptimum(c, b, float(np.abs(c).sum() - 0.5 * w @ w), np.maximum(0.0, y * (E - b)), violation)


@jit
def _sweep(
    indptr: IntArray,
    indices: IntArray,
    data: Array,
    y: Array,
    top: Array,
    curve: Array,
    a: Array,
    w: Array,
    state: Array,
    order: IntArray,
    rho: float,
) -> None:
    """One step in each sample's coefficient, in place: a, w and state = (b, s)."""
    for t in range(order.shape[0]):
        i = order[t]
        f = state[0] + rho * state[1]
        for k in range(indptr[i], indptr[i + 1]):
            f += w[indices[k]] * data[k]
        new = min(max(a[i] - (y[i] * f - 1.0) / curve[i], 0.0), top[i])  # curve: x_i'x_i + rho
        if new != a[i]:
            d = (new - a[i]) * y[i]
            a[i] = new
            state[1] += d
            for k in range(indptr[i], indptr[i + 1]):
                w[indices[k]] += d * data[k]


def _conjugate(X: Any, y: Array, top: Array, a: Array, b: float, rho: float, tol: float) -> Array:
    """Conjugate gradients over the samples strictly inside their bounds, whose sum costs rho.

    A sample that meets its bound stays there, and the others start anew.
    """
    inside = np.flatnonzero((a > 0.0) & (a < top))
    if len(inside) < 2:
        return a
    rows, label, c = X[inside], y[inside], a * y
    turned = rows.T.tocsr()
    r = label - rows @ np.asarray(c @ X) - b - rho * float(c.sum())
    low, high = np.where(label > 0, 0.0, -top[inside]), np.where(label > 0, top[inside], 0.0)
    some, free = c[inside], np.ones(len(inside), dtype=bool)
    d, previous = np.zeros(len(inside)), np.inf
    for _ in range(PRODUCTS):
        g = np.where(free, r, 0.0)
        square = float(g @ g)
        if not free.any() or np.abs(g).max() <= tol:
            break
        d = g + (square / previous) * d
        q = rows @ (turned @ d) + rho * float(d.sum())
        bend = float(d @ q)
        with np.errstate(all="ignore"):
            t = float(d @ g) / bend if bend > 1e-14 * float(d @ d) else np.inf
            room = np.where(d > 0, (high - some) / d, np.where(d < 0, (low - some) / d, np.inf))
        limit = max(float(room.min()), 0.0)
        length, previous = min(t, limit), square
        some = np.clip(some + length * d, low, high)
        r -= length * q
        if limit <= t:
            free &= room > limit
            d, previous = np.zeros(len(inside)), np.inf
    out = a.copy()
    out[inside] = some * label
    return out


def _balance(a: Array, y: Array, top: Array) -> Array:
    """The same with y'a = 0."""
    return balance(a, y, top, (a > 0.0) & (a < top))
