"""Quadratic programs with one equality and a box, by pair steps and conjugate gradients.

    max_c  p'c - 1/2 c'Kc    subject to  sum(c) = const,  lo <= c <= hi          c, p, lo, hi (m,), K (m, m)

E = p - Kc is the ascent direction. The point is optimal when no pair (i, j) with c_i < hi_i and c_j > lo_j has
E_i > E_j; the largest such difference is the violation.

Pair steps (sequential minimal optimisation) move one pair by t = (E_i - E_j) / (K_ii + K_jj - 2 K_ij), clipped to the
box; i has the largest E, j promises the largest gain. They find quickly which variables sit at a bound, and then
crawl. Conjugate gradients over the variables inside the box crawl nowhere: after a warm start they alone are often
enough, and between bursts of pair steps they do the rest. Both only ever raise the objective.

C-SVC is p = y with c_i between 0 and y_i C_i; SVDD is p = diag K with 2K in place of K, sum(c) = 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from .execution import jit

EPS = float(np.finfo(float).eps)
WORK_BETWEEN_LOOKS = 30_000_000  # multiplications before the loop returns to Python: under a tenth of a second
BURST = 2  # pair steps between two rounds of conjugate gradients, in multiples of m
ROUNDS = 30  # products with K in one round of conjugate gradients, fewer where that takes longer than
PRODUCT_WORK = 300_000_000  # so many multiplications
STEP_WORK = 80_000_000  # samples visited by the pair steps between two rounds, at most
HUGE = 1e300
FEWER = 0.7  # share of the variables up to which those that may still move are solved for alone
PART = 300  # variables at each side of the box that are solved for at a time
PARTS = 1000  # such rounds, at most
FINER = 0.02  # of the violation, to which a part is solved
AT_BOUND = 1e-10  # of the width of the box


class Optimum(NamedTuple):
    """c (m,), the multiplier of the sum, the objective, E = p - Kc (m,), the violation and the pair steps taken."""

    c: Array
    multiplier: float
    objective: float
    E: Array
    violation: float
    steps: int


class SVCOptimum(NamedTuple):
    """A C-SVC: coef (m,), the intercept, the dual objective, slack (m,) and the violation."""

    coef: Array
    intercept: float
    objective: float
    slack: Array
    violation: float


@jit
def _pair_steps(
    K: Array, diagonal: Array, lo: Array, hi: Array, c: Array, E: Array, gain: Array, tol: float, limit: int
) -> int:
    """At most `limit` pair steps, in place; fewer when the violation is at `tol`. `gain` is room to work in."""
    m, tau = c.shape[0], 1e-290
    up, low = -HUGE, HUGE
    for k in range(m):
        tau += 1e-12 / m * abs(diagonal[k])
        above = E[k] if c[k] < hi[k] else -HUGE
        below = E[k] if c[k] > lo[k] else HUGE
        up = above if above > up else up
        low = below if below < low else low
    # The loops below have no branches on data but conditional values, so that they are vectorised; each pass over E
    # updates it and finds the two ends of the violation for the next step at the same time.
    for step in range(limit):
        if up - low <= tol:
            return step
        i = 0
        # i: the steepest variable that may rise.
        while E[i] != up or c[i] >= hi[i]:
            i += 1
        # j: of those that may fall, the one whose unclipped step raises the objective most, (E_i - E_j)^2 / (2 curve).
        Ki, best = K[i], -1.0
        for k in range(m):
            slope = up - E[k]
            slope = slope if (c[k] > lo[k] and slope > 0.0) else 0.0  # 0: may not fall, or no gain
            curve = diagonal[i] + diagonal[k] - 2.0 * Ki[k]
            curve = curve if curve > tau else tau
            gain[k] = slope * slope / curve
            best = gain[k] if gain[k] > best else best
        j = 0
        while gain[j] != best:
            j += 1
        Kj = K[j]
        t = (up - E[j]) / max(diagonal[i] + diagonal[j] - 2.0 * Ki[j], tau)
        room_i, room_j = hi[i] - c[i], c[j] - lo[j]
        # A variable that reaches its bound is set to it, not to c + t: what is at a bound must be recognised exactly.
        if t >= room_i and room_i <= room_j:
            t = room_i
            c[i], c[j] = hi[i], (lo[j] if room_i == room_j else c[j] - t)
        elif t >= room_j:
            t = room_j
            c[i], c[j] = c[i] + t, lo[j]
        else:
            c[i], c[j] = c[i] + t, c[j] - t
        up, low = -HUGE, HUGE
        for k in range(m):
            e = E[k] - t * (Ki[k] - Kj[k])
            E[k] = e
            above = e if c[k] < hi[k] else -HUGE
            below = e if c[k] > lo[k] else HUGE
            up = above if above > up else up
            low = below if below < low else low
    return limit


@jit
def _mark_inside(lo: Array, hi: Array, c: Array, free: Array, d: Array) -> int:
    """Mark with 1 and count the variables strictly inside the box; the direction d starts anew."""
    count = 0
    for k in range(c.shape[0]):
        free[k], d[k] = 0.0, 0.0
        if lo[k] < c[k] < hi[k]:
            free[k] = 1.0
            count += 1
    return count


@jit
def _residual(E: Array, free: Array, inside: int) -> tuple[float, float, float]:
    """Mean of E over the free variables; sum of squares and range of the residual r = E - mean.

    The mean is taken twice: r may be a millionth of E, and its sum must vanish to the precision of r.
    """
    first, rest, square, top, bottom = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(E.shape[0]):
        first += free[k] * E[k] / inside
    for k in range(E.shape[0]):
        rest += free[k] * (E[k] - first) / inside
    mean = first + rest
    for k in range(E.shape[0]):
        r = free[k] * (E[k] - mean)
        square += r * r
        top = r if r > top else top
        bottom = r if r < bottom else bottom
    return mean, square, top - bottom


@jit
def _step_to_bound(lo: Array, hi: Array, c: Array, d: Array, t: float) -> tuple[float, int]:
    """The longest step along d up to t that stays in the box, and which variable stops it (-1: none)."""
    hit = -1
    for k in range(c.shape[0]):
        if d[k] != 0.0:
            room = ((hi[k] if d[k] > 0.0 else lo[k]) - c[k]) / d[k]
            if room <= t:
                t, hit = room, k
    return t, hit


@jit
def _direction(E: Array, free: Array, d: Array, inside: int, previous: float, tol: float) -> tuple[float, float]:
    """The next conjugate direction d; its slope (0: flat enough, or too few variables) and the residual's square."""
    if inside < 2:
        return 0.0, previous
    mean, square, spread = _residual(E, free, inside)
    if spread <= tol:
        return 0.0, square
    slope = 0.0
    for k in range(E.shape[0]):
        r = free[k] * (E[k] - mean)
        d[k] = r + square / previous * d[k]
        slope += d[k] * r
    return max(slope, 0.0), square


@jit
def _conjugate(
    K: Array, lo: Array, hi: Array, c: Array, E: Array, room: Array, tol: float, rounds: int, go_on: bool
) -> int:
    """Conjugate gradients over the variables strictly inside the box, their sum kept.

    A variable that hits a bound stays there; then the rest starts anew, or it ends unless `go_on`. Returns the number
    of products with K that it took.
    """
    # The equality holds along d, since the residual is E less its mean over the free variables: it sums to 0.
    m, d, free, q = c.shape[0], room[1], room[2], room[6]
    inside, previous = _mark_inside(lo, hi, c, free, d), HUGE
    for used in range(rounds):
        slope, previous = _direction(E, free, d, inside, previous, tol)
        if slope <= 0.0:
            return used
        _multiply(K, d, q)
        curve = 0.0
        for k in range(m):
            curve += d[k] * q[k]
        # Along a direction without curvature the objective rises until some variable is stopped by its bound.
        t, hit = _step_to_bound(lo, hi, c, d, slope / curve if curve > 1e-12 * slope else HUGE)
        if t >= HUGE:
            return used
        for k in range(m):
            c[k] = min(max(c[k] + t * d[k], lo[k]), hi[k])
            E[k] -= t * q[k]
        if hit >= 0:  # start anew without the variable that sits at its bound now
            c[hit] = hi[hit] if d[hit] > 0.0 else lo[hit]
            if not go_on:
                return used
            inside, previous = _mark_inside(lo, hi, c, free, d), HUGE
    return rounds


@jit
def _multiply(K: Array, v: Array, out: Array) -> None:
    """out = Kv for a symmetric K, row by row, rows with v = 0 left out; compiles in no time, unlike a call of BLAS."""
    m = v.shape[0]
    for k in range(m):
        out[k] = 0.0
    for j in range(m):
        if v[j] != 0.0:
            row = K[j]
            for k in range(m):
                out[k] += v[j] * row[k]


@jit
def _refresh(K: Array, p: Array, lo: Array, hi: Array, c: Array, E: Array) -> float:
    """E = p - Kc computed anew; returns the violation, HUGE where K is not finite."""
    up, low = -HUGE, HUGE
    _multiply(K, c, E)
    for k in range(c.shape[0]):
        E[k] = p[k] - E[k]
        if not abs(E[k]) < HUGE:
            return HUGE
        if c[k] < hi[k] and E[k] > up:
            up = E[k]
        if c[k] > lo[k] and E[k] < low:
            low = E[k]
    return max(up - low, 0.0)


@jit
def _ascend(
    K: Array, p: Array, lo: Array, hi: Array, c: Array, E: Array, room: Array, tol: float, limit: int, work: int
) -> tuple[float, int]:
    """Rounds of conjugate gradients and pair steps until `tol`, `limit` pair steps, `work`, or the floor of rounding.

    Returns the violation at a gradient computed afresh, and the pair steps taken (-1: at the floor).
    """
    m, steps, spent, before = c.shape[0], 0, 0, HUGE
    diagonal, largest, warm = room[0], 0.0, False
    for k in range(m):
        diagonal[k] = K[k, k]
        largest = max(largest, abs(K[k, k]))
        warm = warm or c[k] != 0.0
    gap = _refresh(K, p, lo, hi, c, E)
    if gap >= HUGE:
        return gap, -1
    rounds = max(4, min(ROUNDS, PRODUCT_WORK // (m * m)))
    while spent <= work:
        if warm:  # right after a warm start, a bound in the way means that the bounds must be found first
            spent += m * m * _conjugate(K, lo, hi, c, E, room, 0.5 * tol, rounds, steps > 0)
        warm = True
        burst = min(BURST * m + 20, STEP_WORK // m + 1, limit - steps)
        taken = _pair_steps(K, diagonal, lo, hi, c, E, room[1], tol, burst)
        steps, spent = steps + taken, spent + 3 * m * taken
        if taken < burst or steps >= limit:
            # Both kinds of steps work on an E that they update; only a violation at a fresh E counts.
            gap = _refresh(K, p, lo, hi, c, E)
            if gap <= tol or steps >= limit:
                return gap, steps
            # E is a sum of m products K_ij c_j: its rounding error is about EPS sqrt(K_ii) sum_j sqrt(K_jj) |c_j|, and
            # no violation below that means anything. So it ends there, or where a fresh E shows no progress.
            noise = 0.0
            for k in range(m):
                noise += np.sqrt(abs(diagonal[k])) * abs(c[k])
            if gap <= 16.0 * EPS * np.sqrt(largest) * noise or gap >= before:
                return gap, -1
            before = gap
    return _refresh(K, p, lo, hi, c, E), steps


@jit
def _fill_box(y: Array, top: Array, lo: Array, hi: Array, c: Array) -> None:
    """Fill in the box of a C-SVC; c is clipped into it and its heavier class shrunk so that sum(c) = 0."""
    m = y.shape[0]
    # A warm start from other costs may break sum(c) = 0: the heavier class is scaled down, which keeps the box.
    above, below = 0.0, 0.0
    for k in range(m):
        lo[k] = 0.0 if y[k] > 0.0 else -top[k]
        hi[k] = top[k] if y[k] > 0.0 else 0.0
        c[k] = min(max(c[k], lo[k]), hi[k])
        above, below = above + max(c[k], 0.0), below - min(c[k], 0.0)
    for k in range(m):
        if c[k] > 0.0 and above > below:
            c[k] *= below / above
        elif c[k] < 0.0 and below > above:
            c[k] *= above / below


@jit
def _intercept(lo: Array, hi: Array, c: Array, E: Array) -> float:
    """The mean of E over the variables inside the box; if there is none, the middle of the interval that is left.

    What lies within rounding of a bound is at it: a warm start leaves variables there that never were inside.
    """
    inside, total, up, low = 0, 0.0, -HUGE, HUGE
    for k in range(c.shape[0]):
        slip = AT_BOUND * (hi[k] - lo[k])
        below, above = c[k] < hi[k] - slip, c[k] > lo[k] + slip
        if below:
            up = max(up, E[k])
        if above:
            low = min(low, E[k])
        if below and above:
            inside, total = inside + 1, total + E[k]
    if inside:
        return total / inside
    return 0.5 * ((low if up == -HUGE else up) + (up if low == HUGE else low))


def svc(K: Array, y: Array, top: Array, start: Array, tol: float, max_iter: int) -> SVCOptimum:
    """C-SVC from any point `start`.

    It stops at `tol`, at `max_iter` pair steps, or where rounding in K hides any further progress.
    """
    c, room, slack = start.copy(), np.empty((9, len(y))), np.zeros(len(y))
    lo, hi = room[7], room[8]
    # Only a cold start multiplies no column of K, and a path goes on from what was checked.
    if not c.any() and not np.abs(K).sum() < HUGE:
        return SVCOptimum(c, 0.0, 0.0, slack, HUGE)
    _fill_box(y, top, lo, hi, c)
    b, objective, gap, _ = _work(K, y, lo, hi, c, room, tol, max_iter)
    _fill_slack(y, room[5], b, slack)
    return SVCOptimum(c, b, objective, slack, gap)


@jit
def _fill_slack(y: Array, E: Array, b: float, slack: Array) -> None:
    """max(0, 1 - y f) where f = y - E + b."""
    for k in range(y.shape[0]):
        slack[k] = max(0.0, 1.0 - y[k] * (y[k] - E[k] + b))


def _solve_active(K: Array, lo: Array, hi: Array, c: Array, E: Array, gap: float, tol: float, limit: int) -> int:
    """Solve, in place, for the variables that may still move, the others as they are; returns the pair steps.

    A variable at a bound stays there as long as its E is on the far side of all that it could be paired with. The small
    problem is solved to a tenth of the violation; then the whole one says which were left out wrongly.
    """
    # c_i at its lower bound can only rise, paired with a c_j that falls, and gains only where E_i > E_j; the least E_j
    # that may fall is `low`. So it stays where E_i <= low, and in the same way at the upper bound where E_i >= up.
    up, low = E[c < hi].max(), E[c > lo].min()
    active = np.flatnonzero(((c > lo) | (low < E)) & ((c < hi) | (up > E)))
    if not 2 <= len(active) <= FEWER * len(c):
        return 0
    small = K[np.ix_(active, active)]
    # The linear term of the small problem has what the fixed variables do to it: p_A - K_AN c_N = E_A + K_AA c_A.
    p = E[active] + small @ c[active]
    optimum = quadratic(small, p, lo[active], hi[active], c[active], max(tol, 0.1 * gap), limit)
    c[active] = optimum.c
    return optimum.steps


def svc_by_parts(
    product: Callable[[Array], Array],
    among: Callable[[IntArray], Array],
    y: Array,
    top: Array,
    start: Array,
    tol: float,
    max_iter: int,
    at_once: int,
) -> SVCOptimum:
    """The same as `svc` from products with K and its parts: `product(c)` is Kc, `among(rows)` is K of some rows.

    In each round the variables inside the box and those that break the conditions most, at most `at_once`, are solved
    for, the others as they are; then a product with what has changed says how far the conditions are broken.
    """
    c, lo, hi = start.copy(), np.empty(len(y)), np.empty(len(y))
    _fill_box(y, top, lo, hi, c)
    E, before, largest = y - product(c), c.copy(), 0.0
    for _ in range(PARTS):
        if not np.isfinite(E).all():
            return SVCOptimum(c, 0.0, 0.0, np.zeros(len(y)), HUGE)
        rises, falls = c < hi, c > lo
        up, low = float(E[rises].max(initial=-HUGE)), float(E[falls].min(initial=HUGE))
        gap = max(up - low, 0.0)
        # No matrix is at hand to bound rounding by: `largest` is the largest diagonal element met so far.
        if gap <= max(tol, 16.0 * EPS * largest * float(np.abs(c).sum())) or max_iter <= 0:
            if before is c:
                break
            E, before = y - product(c), c  # what has added up is checked against a product with all
            continue
        rows = _to_solve(E, rises, falls, up, low, at_once)
        before = c.copy()
        small, some = among(rows), c[rows]
        largest = max(largest, float(small.diagonal().max()))
        p, enough = E[rows] + small @ some, max(0.5 * tol, FINER * gap)  # as in `_solve_active`
        optimum = quadratic(small, p, lo[rows], hi[rows], some, enough, max_iter)
        c[rows] = optimum.c
        max_iter -= max(optimum.steps, 1)
        E -= product(c - before)
    b = float(_intercept(lo, hi, c, E))
    return SVCOptimum(c, b, float(0.5 * c @ (y + E)), np.maximum(0.0, 1.0 - y * (y - E + b)), gap)


def _to_solve(E: Array, rises: BoolArray, falls: BoolArray, up: float, low: float, at_once: int) -> IntArray:
    """The variables inside the box, and of those at a bound that break a condition the worst, at most `PART` of each.

    Where many break it by the same, as at the beginning, they are taken evenly. Of more than `at_once` variables inside
    the box those are taken that are the farthest from the middle of what the conditions leave open.
    """
    chosen = rises & falls
    inside = np.flatnonzero(chosen)
    if len(inside) > at_once:
        chosen[inside[np.argsort(np.abs(E[inside] - 0.5 * (up + low)), kind="stable")[:-at_once]]] = False
    for moves, distance in ((rises & ~falls, E - low), (falls & ~rises, up - E)):
        worst = np.flatnonzero(moves & (distance > 0.0))
        if len(worst) > PART:
            # equal distances are ordered by multiples of the golden ratio, which are spread evenly over the rows
            order = np.lexsort((np.arange(len(worst)) * 0.6180339887498949 % 1.0, -distance[worst]))
            worst = worst[order[:PART]]
        chosen[worst] = True
    return np.flatnonzero(chosen)


@jit
def _work_once(
    K: Array, p: Array, lo: Array, hi: Array, c: Array, room: Array, tol: float, limit: int, work: int
) -> tuple[float, float, float, int]:
    """One stretch of work on c, in place: (multiplier of the sum, objective, violation, pair steps).

    It returns numbers alone: handing over arrays can lose an interrupt, and making them takes long to compile.
    """
    objective, E = 0.0, room[5]
    gap, steps = _ascend(K, p, lo, hi, c, E, room, tol, limit, work)
    for k in range(c.shape[0]):
        objective += 0.5 * c[k] * (p[k] + E[k])
    return _intercept(lo, hi, c, E), objective, gap, steps


def _work(
    K: Array, p: Array, lo: Array, hi: Array, c: Array, room: Array, tol: float, max_iter: int
) -> tuple[float, float, float, int]:
    """The whole work on c, in place: (multiplier of the sum, objective, violation, pair steps); E is left in room[5].

    The compiled loop comes back every tenth of a second or so, so that Ctrl-C is heard.
    """
    left = max_iter
    while True:
        multiplier, objective, gap, steps = _work_once(K, p, lo, hi, c, room, tol, left, WORK_BETWEEN_LOOKS)
        if gap <= tol or steps < 0 or steps >= left:
            return multiplier, objective, gap, max_iter - left + max(steps, 0)
        left -= steps
        left -= _solve_active(K, lo, hi, c, room[5], gap, tol, left)


def quadratic(K: Array, p: Array, lo: Array, hi: Array, start: Array, tol: float, max_iter: int) -> Optimum:
    """max p'c - 1/2 c'Kc from a feasible `start`, its sum kept."""
    c, room = start.copy(), np.empty((7, len(start)))
    multiplier, objective, gap, steps = _work(K, p, lo, hi, c, room, tol, max_iter)
    return Optimum(c, multiplier, objective, room[5].copy(), gap, steps)


def svdd(K: Array, lo: Array, hi: Array, start: Array, tol: float, max_iter: int) -> Optimum:
    """SVDD from a feasible `start`: max c'diag K - c'Kc, with E = diag K - 2Kc."""
    if not np.isfinite(K).all():
        return Optimum(start, 0.0, 0.0, start, HUGE, 0)
    return quadratic(2.0 * K, K.diagonal().copy(), lo, hi, start, tol, max_iter)
