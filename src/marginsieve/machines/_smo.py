"""Sequential minimal optimisation for quadratic programs with one equality and a box.

    max_c  p'c - 1/2 c'Kc    subject to  sum(c) = const,  lo <= c <= hi          c, p, lo, hi (m,), K (m, m)

E = p - Kc is the ascent direction. The point is optimal when no pair (i, j) with c_i < hi_i and c_j > lo_j has
E_i > E_j; the largest such difference is the violation. A pair is moved by t = (E_i - E_j) / (K_ii + K_jj - 2 K_ij),
clipped to the box; i has the largest E, j promises the largest gain (second-order choice).

C-SVC is p = y with c_i between 0 and y_i C_i; SVDD is p = diag K with 2K in place of K.
"""

import numpy as np

from .._jit import jit
from .._types import Array

EPS = float(np.finfo(float).eps)
WORK_BETWEEN_LOOKS = 30_000_000  # samples visited before the loop returns: about a tenth of a second


@jit
def _advance(
    K: Array, lo: Array, hi: Array, c: Array, E: Array, tol: float, tau: float, limit: int
) -> tuple[float, int]:
    """Change c and E in place for at most `limit` pair steps; return the violation and the steps."""
    m = c.shape[0]
    up_value, low_value, i = -np.inf, np.inf, -1
    for k in range(m):
        if c[k] < hi[k] and E[k] > up_value:
            up_value, i = E[k], k
        if c[k] > lo[k] and E[k] < low_value:
            low_value = E[k]
    for step in range(limit):
        if i < 0 or up_value - low_value <= tol:
            return up_value - low_value, step
        gain, j = -1.0, -1
        for k in range(m):
            slope = up_value - E[k]
            if slope > 0.0 and c[k] > lo[k]:
                curve = K[i, i] + K[k, k] - 2.0 * K[i, k]
                if curve < tau:
                    curve = tau
                if slope * slope > gain * curve:
                    gain, j = slope * slope / curve, k
        if j < 0:
            return up_value - low_value, step
        curve = max(K[i, i] + K[j, j] - 2.0 * K[i, j], tau)
        t = (up_value - E[j]) / curve
        room_i, room_j = hi[i] - c[i], c[j] - lo[j]
        if t >= room_i and room_i <= room_j:
            t = room_i
            c[i] = hi[i]
            c[j] = lo[j] if room_i == room_j else c[j] - t
        elif t >= room_j:
            t = room_j
            c[j] = lo[j]
            c[i] += t
        else:
            c[i] += t
            c[j] -= t
        a, b = i, j
        up_value, low_value, i = -np.inf, np.inf, -1
        for k in range(m):
            E[k] -= t * (K[a, k] - K[b, k])
            if c[k] < hi[k] and E[k] > up_value:
                up_value, i = E[k], k
            if c[k] > lo[k] and E[k] < low_value:
                low_value = E[k]
    return up_value - low_value, limit


def violation(c: Array, E: Array, lo: Array, hi: Array) -> tuple[float, float]:
    """The largest E that may still rise and the smallest that may still fall; optimal when the first is not above."""
    up, low = c < hi, c > lo
    return (
        float(E[up].max()) if up.any() else -np.inf,
        float(E[low].min()) if low.any() else np.inf,
    )


def solve(
    K: Array, p: Array, lo: Array, hi: Array, c: Array, tol: float, max_iter: int
) -> tuple[Array, Array, float, bool]:
    """Maximise from the feasible point c. Returns (c, E, violation, converged), E and violation computed afresh.

    It stops at `tol`, at `max_iter` pair steps, or where rounding in K hides any further progress; only the first
    counts as converged. The compiled loop comes back every tenth of a second or so, so that Ctrl-C is heard.
    """
    m = c.shape[0]
    root = np.sqrt(np.abs(K.diagonal()))
    tau = 1e-12 * max(float(np.mean(root * root)), float(np.finfo(float).tiny))
    chunk = WORK_BETWEEN_LOOKS // m + 1
    E = p - K @ c
    before, used = np.inf, 0
    while True:
        gap, steps = _advance(K, lo, hi, c, E, tol, tau, min(chunk, max_iter - used))
        used += steps
        settled = steps < chunk  # done, no pair left, or out of steps: look at the true gradient
        if settled:
            E = p - K @ c
            up, low = violation(c, E, lo, hi)
            gap = max(up - low, 0.0)
            if gap <= tol:
                return c, E, gap, True
        noise = 16 * EPS * float(root.max()) * float(root @ np.abs(c))
        if used >= max_iter or gap <= noise or (settled and gap >= before):
            E = p - K @ c
            up, low = violation(c, E, lo, hi)
            return c, E, max(up - low, 0.0), False
        before = gap if settled else np.inf
