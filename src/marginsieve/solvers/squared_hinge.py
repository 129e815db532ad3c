"""min over w, b of  |w|_1 + sum_i C_i max(0, 1 - y_i f_i)^2,   f_i = sum_j w_j x_ij + b      x (p, m): columns as rows

With c_i = 2 C_i y_i max(0, 1 - y_i f_i) and g = x c, the point is optimal when sum(c) = 0, g_j = sign(w_j) where
w_j != 0 and |g_j| <= 1 elsewhere; how far that is broken is the violation. g is in units of the penalty's slope.

Few w_j differ from 0, so the work is done on a working set: those, and the worst offenders outside. Inside it,
coordinates of the quadratic model at the point are minimised one by one, with the penalty, and the way there is gone as
far as the objective falls: this finds the signs. Then all that are not 0 are moved at once, which is a Newton step on a
piecewise quadratic and ends in a few of them.

Two things are kept from one C to the next. The Hessian of the working set changes by the samples that crossed their
margin, which are few. And g of a column outside is not computed where it cannot matter: from a c at which it is known
it moves by at most |x_j| |c - known c|, and most columns are far from 1.
"""

from __future__ import annotations

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Matrix, is_sparse
from .execution import jit

SWEEPS = 20  # over the working set before each Newton step
NEWTONS = 20  # steps in a row, while they move
FIRST = 32  # offenders that join the working set at once, at least
HALVINGS = 30
GROWTH = 4.0  # of C, on the way to a large one
MANY = 0.3  # share of the columns that may matter from which on g is computed for all of them
PANEL = 4  # rows of a Cholesky factor that are made at a time
MOVED, DONE, ANEW = 0, 1, 2  # how a round ended


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
def _sweep(x: Array, y: Array, C: Array, w: Array, f: Array) -> None:
    """One pass over the coordinates, in place (w, f = w'x); the last row of x is the intercept's, not penalised."""
    p, m = x.shape
    for j in range(p):
        row, price = x[j], (1.0 if j < p - 1 else 0.0)
        slope, curve = 0.0, 1e-300
        for i in range(m):
            t = 1.0 - y[i] * f[i]
            if t > 0.0:
                slope -= 2.0 * C[i] * y[i] * t * row[i]
                curve += 2.0 * C[i] * row[i] * row[i]
        broken = max(abs(slope) - price, 0.0) if w[j] == 0.0 else abs(slope + price * np.sign(w[j]))
        if broken > 1e-14 and curve > 1e-290:
            d = _step(row, y, C, f, w[j], slope, curve, price)
            w[j] += d
            for i in range(m):
                f[i] += d * row[i]


def objective(w: Array, f: Array, y: Array, C: Array) -> float:
    """|w|_1 + sum_i C_i max(0, 1 - y_i f_i)^2."""
    return float(np.abs(w).sum() + C @ np.maximum(0.0, 1.0 - y * f) ** 2)


class _WorkingSet:
    """A working set: rows x (k + 1, m) of the columns, the last that of the intercept, and the Hessian over it.

    The Hessian is that of the samples short of their margin, 2 sum_i C_i x_i x_i'; `short` says which these are.
    """

    def __init__(self, x: Array, short: BoolArray) -> None:
        self.x, self.short = x, short
        self.hessian = np.zeros((len(x), len(x)))

    def replace_rows(self, kept: IntArray, new: Array, C: Array) -> _WorkingSet:
        """The working set of some of the columns and of new ones (r, m) behind them, the intercept last."""
        count = len(kept)
        kept = np.append(kept, len(self.x) - 1)
        out = _WorkingSet(np.vstack([self.x[kept[:-1]], new, self.x[-1:]]), self.short)
        old = np.append(np.arange(count), len(out.x) - 1)
        out.hessian[old[:, None], old] = self.hessian[kept[:, None], kept]
        if len(new):
            short = np.flatnonzero(self.short)
            part = (new[:, short] * (2.0 * C[short])) @ out.x[:, short].T
            out.hessian[count:-1], out.hessian[:, count:-1] = part, part.T
        return out

    def optimum(self, y: Array, C: Array, w: Array, tol: float, rounds: int) -> int:
        """The optimum over the working set from w (k + 1,), in place, the intercept last; the rounds that it took.

        It comes back after each round, so that Ctrl-C is heard.
        """
        k, m = self.x.shape
        f, room = np.empty(m), np.empty((3, k + m + 1))
        step, curve = np.empty((4, k)), np.empty((k, k))
        done, state = 0, MOVED
        while state != DONE and done < rounds:
            done += 1
            state = _round(self.x, y, C, w, f, self.hessian, self.short, room, step, curve, tol)
            if state == ANEW:
                self.short = y * f < 1.0
                rows = self.x[:, self.short] * np.sqrt(2.0 * C[self.short])
                self.hessian = rows @ rows.T
        _mirror(self.hessian)
        return done


@jit
def _round(
    x: Array,
    y: Array,
    C: Array,
    w: Array,
    f: Array,
    hessian: Array,
    short: BoolArray,
    room: Array,
    step: Array,
    curve: Array,
    tol: float,
) -> int:
    """Sweeps over the coordinates, and then Newton steps while they move.

    Returns `DONE` where the sweeps found nothing to do, `ANEW` where the Hessian has to be computed anew first.
    """
    _values(x, w, f)
    slope = step[3]
    if _slopes(x, y, C, w, f, slope, room[0]) <= tol:
        return DONE
    if not _follow(x, y, C, f, hessian, short):
        return ANEW
    if not _model_step(x, y, C, w, f, hessian, slope, room, step):  # by rounding: then by the objective itself
        _sweep(x, y, C, w, f)
    _values(x, w, f)
    for _ in range(NEWTONS):
        if not _follow(x, y, C, f, hessian, short):
            return ANEW
        moved, size = _newton(x, y, C, w, f, hessian, room, step, curve)
        if moved < 0.0:  # the equations cannot be solved
            return ANEW
        _values(x, w, f)  # afresh: no drift
        if moved <= 1e-9 * size:
            break
    return MOVED


@jit
def _slopes(x: Array, y: Array, C: Array, w: Array, f: Array, slope: Array, c: Array) -> float:
    """The slope of the loss in each coordinate; returns the largest violation. The last one is not penalised."""
    k, m = x.shape
    worst = 0.0
    for i in range(m):
        c[i] = 2.0 * C[i] * y[i] * max(1.0 - y[i] * f[i], 0.0)
    for j in range(k):
        slope[j] = -_dot(x[j], c, m)
        price = 1.0 if j < k - 1 else 0.0
        broken = max(abs(slope[j]) - price, 0.0) if w[j] == 0.0 else abs(slope[j] + price * np.sign(w[j]))
        worst = max(worst, broken)
    return worst


@jit
def _dot(a: Array, b: Array, m: int) -> float:
    """a'b in four sums: one alone waits for itself."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    whole = m - m % 4
    for i in range(0, whole, 4):
        t0 += a[i] * b[i]
        t1 += a[i + 1] * b[i + 1]
        t2 += a[i + 2] * b[i + 2]
        t3 += a[i + 3] * b[i + 3]
    for i in range(whole, m):
        t0 += a[i] * b[i]
    return (t0 + t1) + (t2 + t3)


@jit
def _model_sweeps(w: Array, hessian: Array, slope: Array, d: Array) -> None:
    """d near the minimum of slope'd + 1/2 d'Hd + |w + d|_1, in place; slope becomes that at d."""
    k = w.shape[0]
    d[:] = 0.0
    for _ in range(SWEEPS):
        largest = 0.0
        for j in range(k):
            curve, price = hessian[j, j], (1.0 if j < k - 1 else 0.0)
            if curve <= 1e-290:
                continue
            at = w[j] + d[j]
            aim = at - slope[j] / curve
            new = max(abs(aim) - price / curve, 0.0) * np.sign(aim)
            if new != at:
                moved, row = new - at, hessian[j]
                d[j] += moved
                for other in range(k):
                    slope[other] += moved * row[other]
                largest = max(largest, abs(moved) * curve)
        if largest <= 1e-3:  # of the penalty's slope
            break


@jit
def _model_step(
    x: Array, y: Array, C: Array, w: Array, f: Array, hessian: Array, slope: Array, room: Array, step: Array
) -> bool:
    """Towards the minimum of slope'd + 1/2 d'Hd + |w + d|_1, as far as the objective falls, in place.

    False where nothing moved.
    """
    k, m = x.shape
    d, zero = step[0], step[2]
    _mirror(hessian)
    _model_sweeps(w, hessian, slope, d)
    along = room[1, :m]
    along[:] = 0.0
    for j in range(k):
        zero[j] = np.inf
        if d[j] != 0.0:
            if j < k - 1 and d[j] * w[j] <= 0.0:
                zero[j] = -w[j] / d[j]
            row = x[j]
            for i in range(m):
                along[i] += d[j] * row[i]
    length = _line_minimum(w, d, zero, f, along, y, C, room[2])
    for j in range(k):
        w[j] = 0.0 if zero[j] == length else w[j] + length * d[j]
    return length > 0.0


@jit
def _mirror(hessian: Array) -> None:
    """The upper triangle from the lower one."""
    for j in range(hessian.shape[0]):
        for other in range(j):
            hessian[other, j] = hessian[j, other]


@jit
def _values(x: Array, w: Array, f: Array) -> None:
    """f = w'x."""
    f[:] = 0.0
    for j in range(x.shape[0]):
        if w[j] != 0.0:
            row = x[j]
            for i in range(f.shape[0]):
                f[i] += w[j] * row[i]


@jit
def _follow(x: Array, y: Array, C: Array, f: Array, hessian: Array, short: BoolArray) -> bool:
    """The Hessian, its lower triangle, where the samples that are short of their margin at f count.

    Samples that have crossed their margin are added or taken off; False, and nothing done, where they are many.
    """
    k, m = x.shape
    which, changed, count = np.empty(m, dtype=np.intp), 0, 0
    for i in range(m):
        now = 1.0 - y[i] * f[i] > 0.0
        count += now
        if now != short[i]:
            which[changed], changed = i, changed + 1
    # One rank-one update for each sample that crossed: with many of them a new Hessian is cheaper.
    if 2 * changed > count:
        return False
    row = np.empty(k)
    for t in range(changed):
        i = which[t]
        short[i] = not short[i]
        factor = 2.0 * C[i] if short[i] else -2.0 * C[i]
        for j in range(k):
            row[j] = x[j, i]
        for j in range(k):
            scaled, here = factor * row[j], hessian[j]
            for other in range(j + 1):
                here[other] += scaled * row[other]
    return True


@jit
def _newton(
    x: Array, y: Array, C: Array, w: Array, f: Array, hessian: Array, room: Array, step: Array, curve: Array
) -> tuple[float, float]:
    """A Newton step over the coordinates that are not 0 and the intercept, as far as the objective falls, in place.

    Returns the largest change of a weight and the largest weight; -1 for the change where no step can be made.
    """
    k, m = x.shape
    on, count = np.empty(k, dtype=np.intp), 0
    for j in range(k):
        if w[j] != 0.0 or j == k - 1:
            on[count], count = j, count + 1
    c, along = room[0, :m], room[1, :m]
    for i in range(m):
        c[i] = 2.0 * C[i] * y[i] * max(1.0 - y[i] * f[i], 0.0)
    d, weight, zero = step[0, :count], step[1, :count], step[2, :count]
    for a in range(count):
        weight[a] = w[on[a]]
        d[a] = _dot(x[on[a]], c, m) - (np.sign(weight[a]) if a < count - 1 else 0.0)
        for other in range(a, count):
            curve[a, other] = hessian[on[other], on[a]]
        # Columns of the working set may be equal, and the Hessian over them singular: a touch of ridge.
        curve[a, a] = (1.0 + 1e-12) * curve[a, a] + 1e-300
    if not _solve_in_place(curve, d, count):
        return -1.0, 0.0
    along[:] = 0.0
    for a in range(count):
        zero[a] = -weight[a] / d[a] if d[a] * weight[a] < 0.0 and a < count - 1 else np.inf
        row = x[on[a]]
        for i in range(m):
            along[i] += d[a] * row[i]
    # The search is exact, and a weight that would change its sign at the best length is set to exactly 0 there.
    length = _line_minimum(weight, d, zero, f, along, y, C, room[2])
    moved, size = 0.0, 0.0
    for a in range(count):
        new = 0.0 if zero[a] == length else weight[a] + length * d[a]
        moved, size = max(moved, abs(new - weight[a])), max(size, abs(new))
        w[on[a]] = new
    return moved, size


@jit
def _factorize(curve: Array, count: int) -> bool:
    """curve <- U with curve = U'U, upper triangles, in place; False where it is not definite."""
    for start in range(0, count, PANEL):
        end = min(start + PANEL, count)
        for a in range(start, end):  # rows of the panel: less those above in it, then over the root of the pivot
            here = curve[a]
            for above in range(start, a):
                factor, top = curve[above, a], curve[above]
                for other in range(a, count):
                    here[other] -= factor * top[other]
            if not 0.0 < here[a] < np.inf:
                return False
            root = np.sqrt(here[a])
            for other in range(a, count):
                here[other] /= root
        if end - start < PANEL:
            break
        p0, p1, p2, p3 = curve[start], curve[start + 1], curve[start + 2], curve[start + 3]
        for lower in range(end, count):  # the rows below, less the whole panel at once
            f0, f1, f2, f3, here = p0[lower], p1[lower], p2[lower], p3[lower], curve[lower]
            for other in range(lower, count):
                here[other] -= (f0 * p0[other] + f1 * p1[other]) + (f2 * p2[other] + f3 * p3[other])
    return True


@jit
def _solve_in_place(curve: Array, d: Array, count: int) -> bool:
    """d <- curve^-1 d, its upper triangle given, in place; False where it is not definite."""
    if not _factorize(curve, count):
        return False
    for a in range(count):
        d[a] /= curve[a, a]
        for other in range(a + 1, count):
            d[other] -= d[a] * curve[a, other]
    for a in range(count - 1, -1, -1):
        for other in range(a + 1, count):
            d[a] -= curve[a, other] * d[other]
        d[a] /= curve[a, a]
        if not abs(d[a]) < np.inf:
            return False
    return True


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
def _line_minimum(w: Array, d: Array, zero: Array, f: Array, a: Array, y: Array, C: Array, places: Array) -> float:
    """The t >= 0 that minimises |w + td|_1 + sum_i C_i max(0, 1 - y_i (f_i + t a_i))^2; zero_j: where w_j passes 0.

    The last of w is not penalised. The derivative grows with t; it jumps where a w_j passes 0 and bends where a sample
    reaches its margin. The interval between two such places in which it passes 0 is found by bisection. `places` is
    room for them.
    """
    k, m = w.shape[0] - 1, f.shape[0]
    places[0], count = 0.0, 1
    for j in range(k):
        if zero[j] < np.inf:
            places[count], count = zero[j], count + 1
    for i in range(m):
        t = (1.0 - y[i] * f[i]) / (y[i] * a[i]) if a[i] != 0.0 else -1.0
        if t > 0.0:
            places[count], count = t, count + 1
    places[:count].sort()
    if _derivative(0.0, 1.0, w, d, zero, f, a, y, C) >= 0.0:
        return 0.0
    low, high = 0, count  # the derivative to the right of places[low] is negative
    while high - low > 1:
        middle = (low + high) // 2
        if _derivative(places[middle], 1.0, w, d, zero, f, a, y, C) < 0.0:
            low = middle
        else:
            high = middle
    # Between two places the derivative is linear: its zero is interpolated. Or it jumps over 0 at places[high].
    start, slope = places[low], _derivative(places[low], 1.0, w, d, zero, f, a, y, C)
    if high == count:  # quadratic from here on, or flat
        rise = _derivative(start + 1.0, -1.0, w, d, zero, f, a, y, C) - slope
        return float(start - slope / rise if rise > 0.0 else start)
    end, arrived = places[high], _derivative(places[high], -1.0, w, d, zero, f, a, y, C)
    return float(end if arrived < 0.0 else start - slope * (end - start) / (arrived - slope))


def first(columns: Matrix, factor: Array, y: Array, C: Array) -> float:
    """The share of C above which some w_j differs from 0; infinite where none ever does."""
    g = factor * np.asarray(columns @ (2.0 * C * (y - _constant(y, C))))
    largest = float(np.abs(g).max(initial=0.0))
    return 1.0 / largest if largest > 0 else np.inf


def _constant(y: Array, C: Array) -> float:
    """The best intercept where w = 0: all samples are short of their margin then."""
    return float(C @ y / C.sum())


class SquaredHinge:
    """Solutions at one C after the other, over factor_j * columns_j and costs C * cost."""

    def __init__(self, columns: Matrix, factor: Array, y: Array, cost: Array) -> None:
        self.columns, self.factor, self.y, self.cost = columns, factor, y, cost
        squares = (
            columns.multiply(columns).sum(axis=1) if is_sparse(columns) else np.einsum("pm,pm->p", columns, columns)
        )
        self.length = factor * np.sqrt(np.asarray(squares).ravel())
        self.w, self.b = np.zeros(len(factor)), _constant(y, cost)
        self.known_c = np.full(len(y), np.nan)  # g is known here; none yet
        self.known_g = np.zeros(len(factor))
        self.work, self.place = np.empty(0, dtype=np.intp), np.full(len(factor), -1)  # the working set; where in it
        self.working, self.C = _WorkingSet(np.ones((1, len(y))), np.zeros(len(y), dtype=bool)), 1.0

    def begin(self, C: float, rounds: int) -> None:
        """From where the first coordinate enters, C grows to near what it is to be."""
        share = first(self.columns, self.factor, self.y, C * self.cost)
        while (share := GROWTH * share) < 1.0:
            self.solve(share * C, 0.1, rounds)

    def start(self, w: Array, b: float) -> None:
        """Go on from a point."""
        self.w, self.b = w.copy(), b

    def solve(self, C: float, tol: float, rounds: int) -> tuple[Array, float, Array, Array, float]:
        """(w (p,), b, f (m,), c (m,), violation) at this C, from the last one."""
        y, top, w, size = self.y, C * self.cost, self.w, FIRST
        self.working.hessian *= C / self.C
        self.C = C
        while True:
            on = np.flatnonzero(w)
            f = self._values(on)
            c = 2.0 * top * y * np.maximum(0.0, 1.0 - y * f)
            near, g = self._gradient(c, on)
            broken = np.where(w[near] == 0.0, np.maximum(np.abs(g) - 1.0, 0.0), np.abs(g - np.sign(w[near])))
            violation = max(float(broken.max(initial=0.0)), abs(float(c.sum())))
            if violation <= tol or rounds <= 0:
                return w.copy(), self.b, f, c, violation
            outside = (w[near] == 0.0) & (broken > 0.0)
            worst = near[outside][np.argsort(-broken[outside], kind="stable")[:size]]
            self._work_on(on, worst, top)
            inner = np.append(w[self.work], self.b)
            used = self.working.optimum(y, top, inner, 0.3 * tol, rounds)
            w[self.work], self.b = inner[:-1], float(inner[-1])
            # Twice as many columns may join as have weights, so that a few rounds reach any number of them.
            rounds, size = rounds - max(used, 1), max(FIRST, 2 * int(np.count_nonzero(w)))

    def _values(self, on: IntArray) -> Array:
        """(m,) f."""
        rows = self.working.x[self.place[on]] if (self.place[on] >= 0).all() else self._rows(on)
        return np.asarray(self.w[on] @ rows + self.b)

    def _work_on(self, on: IntArray, new: IntArray, C: Array) -> None:
        """The working set of these columns; what is known of those that stay is kept."""
        both = np.concatenate([on, new])
        inside = self.place[both] >= 0
        kept, fresh = both[inside], both[~inside]
        self.working = self.working.replace_rows(self.place[kept], self._rows(fresh), C)
        self.place[self.work] = -1
        self.work = np.concatenate([kept, fresh])
        self.place[self.work] = np.arange(len(self.work))

    def _gradient(self, c: Array, on: IntArray) -> tuple[IntArray, Array]:
        """Columns that may break a condition, and g of them; all of them where that is about as cheap."""
        moved = float(np.linalg.norm(c - self.known_c))
        if np.isfinite(moved):
            may = np.abs(self.known_g) + self.length * moved > 1.0 - 1e-9
            may[on] = True
            near = np.flatnonzero(may)
            # Where nearly all columns have to be looked at, g is computed for all, and known from here on.
            if len(near) <= MANY * len(may):
                return near, np.asarray(self.factor[near] * np.asarray(self.columns[near] @ c))
        self.known_c, self.known_g = c, self.factor * np.asarray(self.columns @ c)
        return np.arange(len(self.factor)), self.known_g

    def _rows(self, which: IntArray) -> Array:
        rows = self.columns[which]
        return np.asarray(self.factor[which, None] * (rows.toarray() if is_sparse(rows) else rows))
