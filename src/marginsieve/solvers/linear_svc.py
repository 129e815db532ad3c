"""C-SVC on a linear kernel with fewer columns than rows, without a matrix of rows by rows.

    min_a  1/2 |V a|^2 - sum(a)    subject to  y'a = 0,  0 <= a <= top          V = columns * y (p, m), w = V a

    conditions     V'w - 1 + b y - z + s = 0,   a z = mu,   (top - a) s = mu    (elementwise)
    Newton step    (T + V'V) da + y db = r,   T = z / a + s / (top - a)
                   (T + V'V)^-1 r = r/T - (V'(I + (V/T) V')^-1 (V/T) r) / T     (p x p Cholesky, once an iteration)

An interior point method with Mehrotra's predictor and corrector (Fine and Scheinberg 2001): 10 to 25 iterations of
m p^2 whatever the costs are. It says which samples are inside their bounds; on those the conditions are linear
equations, and their solution is exact to rounding: that is what is returned, with the same certificate as that of the
pair steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..contracts import Array, BoolArray, IntArray
from .execution import jit
from .smo import SVCOptimum

ITERATIONS = 300
TO_BORDER = 0.995  # of the way to a bound that a step goes
GAP = 1e-9  # complementarity over the objective at which the bounds are read off first
LEAST_GAP = 1e-15
ROUNDS = 12  # corrections of the guess which samples are inside
RIDGE, REFINED = 1e-11, 3  # of the mean of the diagonal, added to equations that may have many solutions; corrections


@dataclass
class _Point:
    """a (m,), the multiplier b of the equality, those of the bounds z and s (m,)."""

    a: Array
    b: float
    z: Array
    s: Array


def svc_by_columns(columns: Array, y: Array, top: Array, tol: float, limit: int = ITERATIONS) -> SVCOptimum:
    """C-SVC of the rows of columns (p, m).

    The violation is as in `smo`: E = y - f without the intercept, the largest E that may rise less the lowest that may
    fall. Rows of cost 0 have coefficient 0.
    """
    # Rows of cost 0 have a box of no width, in which there is no interior point: they are left out.
    used = np.flatnonzero(top > 0)
    whole = len(used) == len(y)
    some = columns if whole else np.ascontiguousarray(columns[:, used])
    unit = float(np.einsum("pm,pm->", some, some)) / max(len(used), 1) or 1.0  # makes the rows' squares 1 on average
    a, b = _solve(some * (y[used] / np.sqrt(unit)), y[used], unit * top[used], tol, limit)
    c = np.zeros(len(y))
    c[used] = np.minimum(a / unit, top[used]) * y[used]
    c[used] = np.where(a == unit * top[used], y[used] * top[used], c[used])
    w = columns @ c
    f = w @ columns
    violation, level = certificate(y - f, c, y, top)
    b = level if np.isfinite(level) else b
    objective = float(np.abs(c).sum() - 0.5 * w @ w)
    return SVCOptimum(c, b, objective, np.maximum(0.0, 1.0 - y * (f + b)), violation)


def certificate(E: Array, c: Array, y: Array, top: Array) -> tuple[float, float]:
    """The violation at c, and the intercept: the mean of E inside the box, or the middle of what is left."""
    lo, hi = np.where(y > 0, 0.0, -top), np.where(y > 0, top, 0.0)
    rises, falls = c < hi, c > lo
    up, low = float(E[rises].max(initial=-np.inf)), float(E[falls].min(initial=np.inf))
    inside = rises & falls
    if inside.any():
        level = float(E[inside].mean())
    else:
        level = 0.5 * ((low if up == -np.inf else up) + (up if low == np.inf else low))
    return max(up - low, 0.0), level


def _solve(V: Array, y: Array, top: Array, tol: float, limit: int) -> tuple[Array, float]:
    """(a, b): from the interior point to a vertex of the face that it points to."""
    if not ((y > 0).any() and (y < 0).any()):
        return np.zeros(len(y)), float(y[0]) if len(y) else 0.0
    point = _start(V, y, top)
    room, target = np.empty_like(V), GAP
    best: tuple[float, Array, float] = (np.inf, np.zeros(len(y)), 0.0)
    for _ in range(limit):
        gap = _gap(point, top)
        size = max(1.0, float(point.a.sum()))
        small = abs(float(y @ point.a)) <= 1e-8 * size
        if gap <= target * size and small:
            best = min(best, _solve_on_face(V, y, top, point, tol), key=lambda candidate: candidate[0])
            if best[0] <= tol or gap <= LEAST_GAP * size:
                break
            target *= 1e-2
        if not _step(V, y, top, point, room):
            break
    if best[0] > tol:
        best = min(best, _solve_on_face(V, y, top, point, tol), key=lambda candidate: candidate[0])
    return best[1], best[2]


def _start(V: Array, y: Array, top: Array) -> _Point:
    """Inside the box, both classes with the same sum, multipliers of the size of the gradient."""
    # a_i = 0.5 top_i (the lighter class's sum over that of its own class): y'a = 0, and at most half of each box.
    share = np.where(y > 0, top[y > 0].sum(), top[y < 0].sum())
    a = np.minimum(0.5 * top * min(top[y > 0].sum(), top[y < 0].sum()) / share, 1.0)
    gradient = (V @ a) @ V - 1.0
    size = np.maximum(np.abs(gradient), 1.0)
    return _Point(a, 0.0, size + np.maximum(gradient, 0.0), size + np.maximum(-gradient, 0.0))


def _gap(point: _Point, top: Array) -> float:
    return float(point.a @ point.z + (top - point.a) @ point.s)


def _step(V: Array, y: Array, top: Array, point: _Point, room: Array) -> bool:
    """One predictor and corrector, in place; False where the equations cannot be solved any more."""
    a, z, s = point.a, point.z, point.s
    left = top - a
    mu = _gap(point, top) / (2 * len(a))
    dual = (V @ a) @ V - 1.0 + point.b * y - z + s
    short = float(y @ a)
    with np.errstate(all="ignore"):
        # Without z and s the linearised conditions are (T + V'V) da + y db = r. By Woodbury that inverse goes through
        # I + (V/T) V', p x p, whose eigenvalues are at least 1.
        T = z / a + s / left
        np.multiply(V, 1.0 / np.sqrt(T), out=room)
        M = room @ room.T
    M.flat[:: len(M) + 1] += 1.0
    if not np.isfinite(M).all():
        return False
    factor, failed = lapack.dpotrf(M, lower=True, overwrite_a=True, clean=False)
    if failed:
        return False

    def inverse(r: Array) -> Array:
        q = r / T
        return np.asarray(q - (lapack.dpotrs(factor, V @ q, lower=True)[0] @ V) / T)

    of_y = inverse(y)
    slope = float(y @ of_y)

    def direction(into_z: Array, into_s: Array) -> tuple[Array, float, Array, Array]:
        """The step that makes a z and (top - a) s grow by these."""
        r = inverse(-dual + into_z / a - into_s / left)
        db = (float(y @ r) + short) / slope
        da = r - db * of_y
        return da, db, (into_z - z * da) / a, (into_s + s * da) / left

    with np.errstate(all="ignore"):
        # Predictor: straight at complementarity 0. How far it gets says how much centring the corrector needs (sigma),
        # which also has the products da dz of the predictor in it, what the linearisation leaves out (Mehrotra 1992).
        da, _, dz, ds = direction(-a * z, -left * s)
        length = min(_longest(a, da, left, -da), _longest(z, dz, s, ds))
        after = float((a + length * da) @ (z + length * dz) + (left - length * da) @ (s + length * ds)) / (2 * len(a))
        sigma = min(1.0, max(after / mu, 0.0)) ** 3
        da, db, dz, ds = direction(sigma * mu - a * z - da * dz, sigma * mu - left * s + da * ds)
    if not (np.isfinite(da).all() and np.isfinite(dz).all() and np.isfinite(ds).all() and np.isfinite(db)):
        return False
    length = min(1.0, TO_BORDER * min(_longest(a, da, left, -da), _longest(z, dz, s, ds)))
    point.a = np.clip(a + length * da, 1e-300, None)
    point.a = np.minimum(point.a, top * (1.0 - 1e-16))  # stays below the bound, where s is divided by what is left
    point.b += length * db
    point.z, point.s = np.maximum(z + length * dz, 1e-300), np.maximum(s + length * ds, 1e-300)
    return length > 1e-10


def _longest(u: Array, du: Array, v: Array, dv: Array) -> float:
    """The longest step, up to `1 / TO_BORDER`, at which neither u nor v falls below 0."""
    with np.errstate(all="ignore"):
        of_u, of_v = np.where(du < 0, -u / du, np.inf).min(), np.where(dv < 0, -v / dv, np.inf).min()
    return float(min(of_u, of_v, 1.0 / TO_BORDER))


def _solve_on_face(V: Array, y: Array, top: Array, point: _Point, tol: float) -> tuple[float, Array, float]:
    """(violation, a, b) where the samples that are inside their bounds meet their margin exactly.

    Which are inside is read off the interior point, and corrected where a coefficient leaves its box or a sample at a
    bound is on the wrong side of its margin.
    """
    # Near the optimum a_i s_i -> 0 with a_i far above its multiplier, or the other way round: the larger one of the
    # pair says on which side the sample is. A sample that is on neither is inside.
    unit = np.minimum(top, 1.0)
    at_top = (top - point.a) < unit * point.s
    at_zero = (point.a < unit * point.z) & ~at_top
    inside = ~(at_top | at_zero)
    snapped = np.where(at_top, top, np.where(at_zero, 0.0, point.a))
    best = _certify(V, y, top, balance(snapped, y, top, inside))[:3]
    for _ in range(ROUNDS):
        with np.errstate(all="ignore"):  # samples on the margin may be alike, or all at 0
            a = _solve_inside(V, y, top, inside, at_top, point)
        violation, clipped, level, f = _certify(V, y, top, balance(np.clip(a, 0.0, top), y, top, inside))
        if violation < best[0]:
            best = (violation, clipped, level)
        if violation <= 0.1 * tol:
            break
        # The active set is corrected as in an active-set method, but all samples that are wrong at once: a cycle is
        # possible, and the best point met is what counts.
        slack = 1.0 - (f + level * y)  # above 0: short of the margin
        slip = 1e-9
        leave_low, leave_top = inside & (a <= 0.0), inside & (a >= top)
        enter = (at_zero & (slack > max(0.05 * tol, slip))) | (at_top & (slack < -max(0.05 * tol, slip)))
        if not (leave_low.any() or leave_top.any() or enter.any()):
            break
        at_zero, at_top = (at_zero | leave_low) & ~enter, (at_top | leave_top) & ~enter
        inside = ~(at_top | at_zero)
    return best


def _certify(V: Array, y: Array, top: Array, a: Array) -> tuple[float, Array, float, Array]:
    """(violation, a, b, y f without the intercept)."""
    f = (V @ a) @ V
    violation, level = certificate(y * (1.0 - f), a * y, y, top)
    return violation, a, level, f


def _solve_inside(V: Array, y: Array, top: Array, inside: BoolArray, at_top: BoolArray, point: _Point) -> Array:
    """a with y_i f_i = 1 for the samples inside and sum(a y) = 0, the others at their bounds.

    Of all a that do the nearest to the interior point is taken, where there is more than one.
    """
    a = np.where(at_top, top, 0.0)
    on = np.flatnonzero(inside)
    if not len(on):
        return a
    start = point.a[on]
    a[on] = start
    U, of_y = V[:, on], y[on]
    r = 1.0 - (V @ a) @ U - point.b * of_y
    short = float(y @ a)
    if len(on) <= len(V) + 1:
        a[on] = start + _solve_bordered(U, of_y, r, -short)
        return a
    # more samples on the margin than dimensions: the step of least norm in a that gives w and b of least error
    A = np.vstack([U, of_y])  # w = U a + rest, y'a
    solve = _ridge_solver(A @ A.T)
    if solve is not None:
        dw = solve(A @ r)  # U'dw + y db = r
        dw += solve(A @ (r - dw @ A))
        goal = np.append(dw[:-1], -short)
        da = solve(goal) @ A
        da += solve(goal - A @ da) @ A
    if solve is None or not np.isfinite(da).all():
        dw, *_ = linalg.lstsq(A.T, r, check_finite=False)
        da, *_ = linalg.lstsq(A, np.append(dw[:-1], -short), check_finite=False)
    a[on] = start + da
    return a


def _solve_bordered(U: Array, y: Array, r: Array, total: float) -> Array:
    """da with U'U da + y db = r and y'da = total."""
    Q = U.T @ U
    solve = _ridge_solver(Q)
    if solve is not None:
        da, db, of_y = np.zeros(len(y)), 0.0, solve(y)
        slope = float(y @ of_y)
        # The ridge makes the factor safe and the solution a little wrong: corrections with the residual of the true
        # equations remove that in a few steps.
        for _ in range(REFINED):
            off = solve(r - Q @ da - db * y)
            change = (float(y @ off) - (total - float(y @ da))) / slope
            da, db = da + off - change * of_y, db + change
        if np.isfinite(da).all():
            return da
    q = len(y)
    bordered = np.zeros((q + 1, q + 1))
    bordered[:q, :q] = Q
    bordered[:q, q] = bordered[q, :q] = y
    return np.asarray(linalg.lstsq(bordered, np.append(r, total), check_finite=False)[0][:q])


def _ridge_solver(M: Array) -> Callable[[Array], Array] | None:
    """Solves M x = r about, where columns may be dependent: what is left is for refinement; None where it cannot."""
    ridged = M.copy()
    ridged.flat[:: len(M) + 1] += RIDGE * max(float(np.trace(M)) / len(M), 1e-300)
    factor, failed = lapack.dpotrf(ridged, lower=True, overwrite_a=True, clean=False)
    return None if failed else lambda r: np.asarray(lapack.dpotrs(factor, r, lower=True)[0])


def balance(a: Array, y: Array, top: Array, inside: BoolArray) -> Array:
    """The same with sum(a y) = 0: the samples inside give or take what is missing, in proportion to their room."""
    for _ in range(3):
        missing = float(y @ a)
        if abs(missing) <= 1e-15 * float(a.sum()):
            break
        room = np.where(y * np.sign(missing) > 0, a, top - a)
        for some in (inside, np.ones(len(y), dtype=bool)):
            total = float(room[some].sum())
            if total >= abs(missing):
                share = np.where(some, room, 0.0) * (abs(missing) / total)
                a = np.clip(a - y * np.sign(missing) * share, 0.0, top)
                break
    return a


# C-SVC on a linear kernel and a sparse table with many rows, without a matrix of rows by rows or columns by columns.
#
#     min_a  1/2 |w|^2 - sum(a)    subject to  y'a = 0,  0 <= a <= top          w = sum_i a_i y_i x_i
#
# Sweeps over the samples minimise in one a_i at a time, which takes the cells of its row (dual coordinate descent,
# Hsieh et al. 2008). The equality is held by a price: with s = y'a the slope in a_i is y_i (w'x_i + b + rho s) - 1, and
# b follows the samples inside their bounds, where E = b + rho s in the end. Between sweeps, conjugate gradients over
# the samples inside their bounds do what single steps would crawl for. It ends with the certificate of the other
# solvers: E = y - w'x, the largest E that may rise less the lowest that may fall.

SWEEP_ROUNDS = 400  # of sweeps and conjugate gradients
SWEEPS = 3  # between two rounds of conjugate gradients
PRODUCTS = 100  # in one of them
ALL_EVERY = 10  # rounds in which samples that are far on the right side of their bound are looked at too


def svc_by_rows(X: Any, y: Array, top: Array, tol: float, start: Array | None = None) -> SVCOptimum:
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
    for k in range(SWEEP_ROUNDS if both else 0):
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
