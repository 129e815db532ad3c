"""Descents from vertex to vertex of the ramp loss on a few columns, compiled: what searches solve by the thousand.

    F(w, b) = |w|_1 + sum_i top_i min(highest, max(0, s_i)),     s_i = 1 - y_i f(x_i),     highest 2, or infinite

F is piecewise linear in u = (w, b). At a vertex as many of its convex kinks, s_i = 0 or w_q = 0, hold as u has entries
(p); each of the p edges that leave one kink is tried, and the step goes to the lowest point of the whole line, past
the concave kinks s_i = 2 where it is lower beyond them. With the hinge this is the simplex method with long steps, as
in least absolute deviations (Barrodale and Roberts, SIAM J. Numer. Anal. 10 (1973) 839-848); with the ramp it ends at
a vertex without a lower point on any of its edges. Rows are columns here: G (p, m) has y_i x_ik, and y_i last.
"""

from __future__ import annotations

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from .execution import jit

FLAT = 1e-9  # a slope, of the length of its edge, or a fall of F, relative, that is none
SMALL = 1e-10  # a rate that is none
NOTHING = -1_000_000_000  # an event that there is none of
SPREAD = 1e-7  # by how much the margins of samples are moved apart, so that few vertices have more kinks than p
STEPS = 40  # from vertex to vertex for each entry of u, after which a descent ends


def spread_margins(m: int) -> Array:
    """(m,) margins near 1, no two the same: the fractional parts of multiples of the golden ratio."""
    return np.asarray(1.0 + SPREAD * ((np.arange(m) * 0.6180339887498949) % 1.0))


@jit
def _sift(t: Array, change: Array, event: IntArray, place: int, size: int) -> None:
    """Let an entry of a heap, the earliest event first, sink to its place."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and t[child + 1] < t[child]:
            child += 1
        if t[place] <= t[child]:
            return
        t[place], t[child] = t[child], t[place]
        change[place], change[child] = change[child], change[place]
        event[place], event[child] = event[child], event[place]
        place = child


@jit
def _list_events(
    u: Array, step: Array, slack: Array, rate: Array, top: Array, highest: float, leaving: int,
    t: Array, change: Array, event: IntArray,
) -> tuple[int, float]:  # fmt: skip
    """Where the slope along a line changes: (number of events, how much concave kinks can lower the slope in all).

    Event i is s_i = 0, m + i is s_i = highest, -1 - q is w_q = 0. `leaving` is the kink that the line leaves.
    """
    m, k, size, concave = len(slack), len(u) - 1, 0, 0.0
    for q in range(k):
        if abs(step[q]) > SMALL and -1 - q != leaving:
            if u[q] == 0.0:
                t[size], change[size], event[size] = 0.0, abs(step[q]), -1 - q
                size += 1
            elif u[q] * step[q] < 0.0:
                t[size], change[size], event[size] = -u[q] / step[q], 2.0 * abs(step[q]), -1 - q
                size += 1
    for i in range(m):
        v, s = rate[i], slack[i]
        weight = top[i] * abs(v)
        if abs(v) <= SMALL or weight == 0.0:
            continue
        if i != leaving and ((v > 0.0 and s <= 0.0) or (v < 0.0 and s > 0.0)):
            t[size], change[size], event[size] = -s / v, weight, i
            size += 1
        if (v > 0.0 and s < highest and highest < np.inf) or (v < 0.0 and s >= highest):
            t[size], change[size], event[size] = (highest - s) / v, -weight, m + i
            size += 1
            concave += weight
    return size, concave


@jit
def _lowest_on_line(
    slope: float, size: int, concave: float, t: Array, change: Array, event: IntArray
) -> tuple[float, float, int]:
    """(distance, change of F, event) of the lowest convex kink along a line that begins with this slope.

    Where kinks at the start let nothing be lower, it is the one of them at which the slope turns.
    """
    for place in range(size // 2 - 1, -1, -1):
        _sift(t, change, event, place, size)
    now, value, best, far, entering = 0.0, 0.0, 0.0, 0.0, NOTHING
    # The slope can fall by `concave` at most: once it is above, nothing further on is lower.
    while size > 0 and slope - concave < 0.0:
        value += slope * (t[0] - now)
        now = t[0]
        if value < best and change[0] > 0.0:
            best, far, entering = value, now, event[0]
        if entering == NOTHING and value == 0.0 and slope + change[0] >= 0.0:
            entering = event[0]  # the line is closed at its start
        slope += change[0]
        if change[0] < 0.0:
            concave += change[0]
        size -= 1
        t[0], change[0], event[0] = t[size], change[size], event[size]
        _sift(t, change, event, 0, size)
    return far, best, entering


@jit
def _exchange_kink(inverse: Array, row: Array, place: int) -> None:
    """The inverse of the matrix of kinks, in place, after `row` took the place of one of them."""
    z, p = row @ inverse, len(row)
    for c in range(p):
        if c != place:
            share = z[c] / z[place]
            for q in range(p):
                inverse[q, c] -= share * inverse[q, place]
    for q in range(p):
        inverse[q, place] /= z[place]


@jit
def _gradient(G: Array, top: Array, highest: float, u: Array, slack: Array, held: BoolArray, price: Array) -> Array:
    """(p,) of F at a point without the kinks that are held; `price` (m,) has what each sample pays a unit."""
    for i in range(len(slack)):
        price[i] = top[i] if not held[i] and 0.0 < slack[i] < highest else 0.0
    slope = np.sign(u) - G @ price
    slope[-1] -= np.sign(u[-1])  # the intercept is free
    return slope


@jit
def _slope_at_kink(kink: int, loose: bool, way: int, top: Array) -> float:
    """What leaving a kink itself costs a unit: upwards (0) or downwards (1)."""
    if loose or (kink >= 0 and way == 0):
        return 0.0
    return float(top[kink]) if kink >= 0 else 1.0


@jit
def _steepest_edge(
    along: Array, inverse: Array, kink: IntArray, loose: BoolArray, top: Array, tried: BoolArray
) -> tuple[int, int]:
    """(row, way) of the edge that goes down most steeply, of those not tried in vain from here; (-1, 0): none."""
    p, steepest, place, side = len(kink), -FLAT, -1, 0
    for r in range(p):
        square = 0.0
        for q in range(p):
            square += inverse[q, r] ** 2
        for way in range(2):
            slope = (along[r] if way == 0 else -along[r]) + _slope_at_kink(kink[r], loose[r], way, top)
            if slope < 0.0 and not tried[r, way] and slope / np.sqrt(square) < steepest:
                steepest, place, side = slope / np.sqrt(square), r, way
    return place, side


@jit
def _look_along(
    G: Array, top: Array, highest: float, u: Array, slack: Array, kink: IntArray, loose: BoolArray, step: Array,
    slope: float, place: int,
) -> tuple[float, float, int]:  # fmt: skip
    """(distance, change of F, event) of the lowest kink on the edge that leaves one kink."""
    rate = -(step @ G)
    for q in range(len(kink)):
        if kink[q] >= 0 and q != place:
            rate[kink[q]] = 0.0
    leaving, most = 2 * len(slack) if loose[place] else kink[place], 2 * len(slack) + len(u)
    t, change, event = np.empty(most), np.empty(most), np.empty(most, dtype=np.int64)
    size, concave = _list_events(u, step, slack, rate, top, highest, leaving, t, change, event)
    return _lowest_on_line(slope, size, concave, t, change, event)


@jit
def _enter_kink(
    G: Array, inverse: Array, kink: IntArray, loose: BoolArray, held: BoolArray, place: int, entering: int
) -> None:
    """A kink takes the place of another, in place."""
    p = len(kink)
    if kink[place] >= 0:
        held[kink[place]] = False
    row = np.zeros(p)
    if entering >= 0:
        row[:] = G[:, entering]
        held[entering] = True
    else:
        row[-1 - entering] = 1.0
    _exchange_kink(inverse, row, place)
    kink[place], loose[place] = entering, False


@jit
def _settle(margin: Array, G: Array, u: Array, kink: IntArray, loose: BoolArray) -> Array:
    """(m,) the slack at u; what is held at a kink is exactly there, in u too."""
    for q in range(len(kink)):
        if kink[q] < 0 and not loose[q]:
            u[-1 - kink[q]] = 0.0
    slack = margin - u @ G
    for q in range(len(kink)):
        if kink[q] >= 0:
            slack[kink[q]] = 0.0
    return slack


@jit
def descend_vertices(G: Array, top: Array, highest: float, margin: Array, u: Array, alpha: Array, far: bool) -> float:
    """F at the vertex where a descent from u ends; u (p,) and the dual variables alpha (m,) in place.

    With `far` edges that begin upwards are tried too where none goes down.
    """
    p, m = G.shape
    inverse, held = np.eye(p), np.zeros(m, dtype=np.bool_)
    # A row of the matrix of kinks is a kink, or an entry of u as it is at the start: that one leaves at no price.
    kink, loose = -1 - np.arange(p), u != 0.0
    loose[p - 1] = True
    tried, steps = np.zeros((p, 2), dtype=np.bool_), 0
    slack = _settle(margin, G, u, kink, loose)
    while True:
        gradient = _gradient(G, top, highest, u, slack, held, alpha)
        along = gradient @ inverse
        place, way = _steepest_edge(along, inverse, kink, loose, top, tried)
        alone = place >= 0
        if steps > STEPS * p or not (alone or far):
            break
        best, distance, entering = 0.0, 0.0, NOTHING
        for edge in range(2 * place + way if alone else 0, 2 * place + way + 1 if alone else 2 * p):
            r, sign = edge // 2, 1.0 - 2.0 * (edge % 2)
            slope = sign * along[r] + _slope_at_kink(kink[r], loose[r], edge % 2, top)
            reach, fall, there = _look_along(G, top, highest, u, slack, kink, loose, sign * inverse[:, r], slope, r)
            if fall < best or alone:
                best, distance, entering, place, way = fall, reach, there, r, edge % 2
        steps += 1
        if best > -FLAT:
            if not alone:
                break
            if not loose[place] or entering == NOTHING:
                tried[place, way] = True
                continue
            distance = 0.0  # a start at a vertex: its kinks take the place of what is loose
        u += distance * (1.0 - 2.0 * way) * inverse[:, place]
        _enter_kink(G, inverse, kink, loose, held, place, entering)
        slack = _settle(margin, G, u, kink, loose)
        tried[:] = False
    for r in range(p):
        if kink[r] >= 0:
            alpha[kink[r]] = min(max(along[r], 0.0), top[kink[r]])
    return value_at(G, top, highest, u)


@jit
def value_at(G: Array, top: Array, highest: float, u: Array) -> float:
    """F at u."""
    slack = 1.0 - u @ G
    total = np.abs(u[:-1]).sum()
    for i in range(len(slack)):
        total += top[i] * min(highest, max(slack[i], 0.0))
    return float(total)


@jit
def join_each(
    X: Array, base: IntArray, y: Array, top: Array, highest: float, margin: Array, u: Array, offers: IntArray,
    first: IntArray, columns: IntArray, out: Array,
) -> None:  # fmt: skip
    """F, in `out`, of descents from u (its last entry b) on some columns of X (d, m) when one of the offers joins.

    Feature j has the columns `columns[first[j] : first[j + 1]]`.
    """
    k, m, widest = len(base), X.shape[1], 0
    for j in offers:
        widest = max(widest, first[j + 1] - first[j])
    G, alpha, start = np.empty((k + widest + 1, m)), np.empty(m), np.empty(k + widest + 1)
    for q in range(k):
        G[q] = X[base[q]]
    for place in range(len(offers)):
        j = offers[place]
        width = first[j + 1] - first[j]
        for q in range(width):
            G[k + q] = X[columns[first[j] + q]]
        G[k + width] = y
        start[:k], start[k : k + width], start[k + width] = u[:k], 0.0, u[k]
        out[place] = descend_vertices(G[: k + width + 1], top, highest, margin, start[: k + width + 1], alpha, False)
