"""min over w, b of  |w|_1 + sum_i C_i max(0, 1 - y_i f_i)^2,   f_i = sum_j w_j x_ij + b      x (p, m): columns as rows

With c_i = 2 C_i y_i max(0, 1 - y_i f_i) and g = x c, the point is optimal when sum(c) = 0, g_j = sign(w_j) where
w_j != 0 and |g_j| <= 1 elsewhere; how far that is broken is the violation. g is in units of the penalty's slope.

Few w_j differ from 0, so the work is done on a working set: those, and the worst offenders outside. Inside it,
coordinates are minimised one by one (Newton with a line search), which finds the signs, and then all that are not 0 at
once, which is a Newton step on a piecewise quadratic and ends in a few of them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..contracts import Array, IntArray, Matrix, is_sparse
from .jit import jit

SWEEPS = 4  # over the working set before each Newton step
NEWTONS = 20  # steps in a row, while they move
FIRST = 32  # offenders that join the working set at once, at least
HALVINGS = 30
GROWTH = 4.0  # of C, on the way to a large one


@jit
def _step(row: Array, y: Array, C: Array, f: Array, w: float, slope: float, curve: float, price: float) -> float:
    """How far one coordinate moves: its Newton step, halved until the objective falls enough; 0 where it never does."""
    if slope + price <= curve * w:
        d = -(slope + price) / curve
    elif slope - price >= curve * w:
        d = -(slope - price) / curve
    else:
        d = -w
    promised = slope * d + price * (abs(w + d) - abs(w))
    for _ in range(HALVINGS):
        change = price * (abs(w + d) - abs(w))
        for i in range(row.shape[0]):
            before, after = max(1.0 - y[i] * f[i], 0.0), max(1.0 - y[i] * (f[i] + d * row[i]), 0.0)
            change += C[i] * (after - before) * (after + before)
        if change <= 0.01 * promised:
            return d
        d, promised = 0.5 * d, 0.5 * promised
    return 0.0


@jit
def _sweep(x: Array, y: Array, C: Array, w: Array, f: Array) -> float:
    """One pass over the coordinates, in place (w, f = w'x); the last row of x is the intercept's, not penalised.

    Returns the largest violation that was met.
    """
    p, m = x.shape
    worst = 0.0
    for j in range(p):
        row, price = x[j], (1.0 if j < p - 1 else 0.0)
        slope, curve = 0.0, 1e-300
        for i in range(m):
            t = 1.0 - y[i] * f[i]
            if t > 0.0:
                slope -= 2.0 * C[i] * y[i] * t * row[i]
                curve += 2.0 * C[i] * row[i] * row[i]
        broken = max(abs(slope) - price, 0.0) if w[j] == 0.0 else abs(slope + price * np.sign(w[j]))
        worst = max(worst, broken)
        if broken > 1e-14 and curve > 1e-290:
            d = _step(row, y, C, f, w[j], slope, curve, price)
            w[j] += d
            for i in range(m):
                f[i] += d * row[i]
    return worst


@jit
def _gathered(x: Array, rows: IntArray, columns: IntArray, factor: Array, out: Array) -> None:
    """out = x[rows][:, columns] * factor, without the copy between."""
    for i in range(rows.shape[0]):
        row = x[rows[i]]
        for k in range(columns.shape[0]):
            out[i, k] = row[columns[k]] * factor[k]


def objective(w: Array, f: Array, y: Array, C: Array) -> float:
    """|w|_1 + sum_i C_i max(0, 1 - y_i f_i)^2."""
    return float(np.abs(w).sum() + C @ np.maximum(0.0, 1.0 - y * f) ** 2)


def _newton(x: Array, y: Array, C: Array, w: Array, f: Array) -> Array:
    """A Newton step over the coordinates that are not 0 and the intercept, as far as the objective falls."""
    on = np.append(np.flatnonzero(w[:-1]), len(w) - 1)
    missing = 1.0 - y * f
    short = np.flatnonzero(missing > 0.0)
    root, rows = np.sqrt(2.0 * C[short]), np.empty((len(on), len(short)))
    _gathered(x, on, short, root, rows)
    slope = np.append(np.sign(w[on[:-1]]), 0.0) - rows @ (root * missing[short] * y[short])
    curve = rows @ rows.T
    curve.flat[:: len(curve) + 1] = (1.0 + 1e-12) * curve.diagonal() + 1e-300
    _, d, failed = lapack.dposv(curve, -slope)
    if failed:
        try:
            d = -np.linalg.solve(curve, slope)
        except np.linalg.LinAlgError:
            return w
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(d[:-1] * w[on[:-1]] < 0, -w[on[:-1]] / d[:-1], np.inf)
    step = np.zeros(len(w))
    step[on] = d
    length = _along(w[on], d, zero, f, step @ x, y, C)
    changed = w.copy()
    changed[on] += length * d
    changed[on[:-1][zero == length]] = 0.0
    return changed if np.isfinite(changed).all() else w


@jit
def _derivative(
    t: float, side: float, w: Array, d: Array, zero: Array, f: Array, a: Array, y: Array, C: Array
) -> float:
    """Of |w + td|_1 + sum_i C_i max(0, 1 - y_i (f_i + t a_i))^2 to the right (side 1) or the left (-1) of t."""
    total = 0.0
    for j in range(w.shape[0] - 1):
        total += d[j] * (side * np.sign(d[j]) if zero[j] == t else np.sign(w[j] + t * d[j]))
    for i in range(f.shape[0]):
        total -= 2.0 * C[i] * y[i] * a[i] * max(0.0, 1.0 - y[i] * (f[i] + t * a[i]))
    return total


@jit
def _along(w: Array, d: Array, zero: Array, f: Array, a: Array, y: Array, C: Array) -> float:
    """The t >= 0 that minimises |w + td|_1 + sum_i C_i max(0, 1 - y_i (f_i + t a_i))^2; zero_j: where w_j passes 0.

    The last of w is not penalised. The derivative grows with t; it jumps where a w_j passes 0 and bends where a sample
    reaches its margin. The interval between two such places in which it passes 0 is found by bisection.
    """
    k, m = w.shape[0] - 1, f.shape[0]
    places, count = np.zeros(k + m + 1), 1
    for j in range(k):
        if zero[j] < np.inf:
            places[count], count = zero[j], count + 1
    for i in range(m):
        t = (1.0 - y[i] * f[i]) / (y[i] * a[i]) if a[i] != 0.0 else -1.0
        if t > 0.0:
            places[count], count = t, count + 1
    places = np.sort(places[:count])
    if _derivative(0.0, 1.0, w, d, zero, f, a, y, C) >= 0.0:
        return 0.0
    low, high = 0, count  # the derivative to the right of places[low] is negative
    while high - low > 1:
        middle = (low + high) // 2
        if _derivative(places[middle], 1.0, w, d, zero, f, a, y, C) < 0.0:
            low = middle
        else:
            high = middle
    start, slope = places[low], _derivative(places[low], 1.0, w, d, zero, f, a, y, C)
    if high == count:  # quadratic from here on, or flat
        rise = _derivative(start + 1.0, -1.0, w, d, zero, f, a, y, C) - slope
        return float(start - slope / rise if rise > 0.0 else start)
    end, arrived = places[high], _derivative(places[high], -1.0, w, d, zero, f, a, y, C)
    return float(end if arrived < 0.0 else start - slope * (end - start) / (arrived - slope))


def _inside(x: Array, y: Array, C: Array, w: Array, tol: float, rounds: int) -> tuple[Array, Array, int]:
    """The optimum over a working set (its last row is the intercept): (w, f, rounds)."""
    f = w @ x
    for done in range(1, rounds + 1):
        for _ in range(SWEEPS):
            if _sweep(x, y, C, w, f) <= tol:
                return w, w @ x, done
        for _ in range(NEWTONS):
            before, w = w, _newton(x, y, C, w, f)
            f = w @ x  # afresh: no drift
            if np.abs(w - before).max() <= 1e-9 * np.abs(w).max():
                break
    return w, f, rounds


def first(columns: Matrix, factor: Array, y: Array, C: Array) -> float:
    """The share of C above which some w_j differs from 0; infinite where none ever does."""
    g = factor * np.asarray(columns @ (2.0 * C * (y - _constant(y, C))))
    largest = float(np.abs(g).max(initial=0.0))
    return 1.0 / largest if largest > 0 else np.inf


def _constant(y: Array, C: Array) -> float:
    """The best intercept where w = 0: all samples are short of their margin then."""
    return float(C @ y / C.sum())


def solve(
    columns: Matrix, factor: Array, y: Array, C: Array, start: tuple[Array, float] | None, tol: float, rounds: int
) -> tuple[Array, float, Array, Array, float]:
    """(w (p,), b, f (m,), c (m,), violation) over factor_j * columns_j, from a start (w, b)."""
    if start is None:
        start, share = (np.zeros(len(factor)), _constant(y, C)), first(columns, factor, y, C)
        while (share := GROWTH * share) < 1.0:  # from where the first coordinate enters, C grows to what it is
            w, b, _, _, _ = solve(columns, factor, y, share * C, start, 0.1, rounds)
            start = w, b
    w, b, size = start[0].copy(), start[1], FIRST
    while True:
        on = np.flatnonzero(w)
        f = np.asarray(w[on] @ _rows(columns, factor, on)) + b
        c = 2.0 * C * y * np.maximum(0.0, 1.0 - y * f)
        g = factor * np.asarray(columns @ c)
        broken = np.where(w == 0.0, np.maximum(np.abs(g) - 1.0, 0.0), np.abs(g - np.sign(w)))
        violation = max(float(broken.max(initial=0.0)), abs(float(c.sum())))
        if violation <= tol or rounds <= 0:
            return w, b, f, c, violation
        outside = np.flatnonzero((w == 0.0) & (broken > 0.0))
        outside = outside[np.argsort(-broken[outside], kind="stable")[:size]]
        work = np.sort(np.concatenate([on, outside]))
        x = np.vstack([_rows(columns, factor, work), np.ones((1, len(y)))])
        inner, _, used = _inside(x, y, C, np.append(w[work], b), 0.3 * tol, rounds)
        w[work], b = inner[:-1], float(inner[-1])
        rounds, size = rounds - max(used, 1), max(FIRST, 2 * int(np.count_nonzero(w)))


def _rows(columns: Matrix, factor: Array, which: IntArray) -> Array:
    rows = columns[which]
    return np.asarray(factor[which, None] * (rows.toarray() if is_sparse(rows) else rows))
