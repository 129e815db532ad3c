"""Many C-SVCs at once: an interior point that goes on with all of them in step, for arrays on any device.

    min_a  1/2 a'Qa - sum(a)    subject to  y'a = 0,  0 <= a <= top          Q = yy' K, for each of F problems

    conditions     Qa - 1 + b y - z + s = 0,   a z = mu,   (top - a) s = mu    (elementwise)
    Newton step    (Q + T) da + y db = r,   T = z / a + s / (top - a)          (F Cholesky factors in one call)

The number of iterations hardly varies from problem to problem, so none waits long for another; one that is done is
left as it is. Then, as in `linear_svc`, the samples inside their bounds are read off and their equations solved,
and the certificate is that of the pair steps. Samples with top = 0 take no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Backend, DeviceArray

ITERATIONS = 80
TO_BORDER = 0.995  # of the way to a bound that a step goes
GAPS = (1e-11, 1e-13, 1e-15)  # complementarity over the objective at which the bounds are read off, one after the other
LARGE = 2000  # samples from which on the interior point is enough where its certificate is
LARGE_GAPS = (1e-9, *GAPS)
NEAR_ROUNDS = 40  # from a start that is nearly optimal
MOST_INSIDE = 0.6  # of the samples, up to which their equations are cheaper than an interior point
ROUNDS = 8  # corrections of the guess which samples are inside
RIDGE = 1e-11  # of the mean of the diagonal, added where equations may have many solutions
HUGE = 1e300
AT_BOUND = 1e-10  # of the width of the box, as in `smo`


@dataclass(frozen=True)
class BatchedSolutions:
    """F machines: coef (F, m), intercept, dual objective and violation (F,)."""

    coef: DeviceArray
    intercept: DeviceArray
    objective: DeviceArray
    violation: DeviceArray


def svc(arrays: Backend, K: DeviceArray, y: DeviceArray, top: DeviceArray, tol: float) -> BatchedSolutions:
    """C-SVC on kernel matrices K (F, m, m) with labels y and bounds top (F, m)."""
    xp = arrays.xp
    used = xp.where(top > 0, 1.0, 0.0)
    diagonal = xp.einsum("fii->fi", K) * used
    unit = diagonal.sum(1) / used.sum(1)
    unit = xp.where(unit > 0, unit, 1.0)
    masked = y * used
    Q = K * masked[:, :, None] * (masked / unit[:, None])[:, None, :]
    problem = _Boxes(arrays, Q, masked, top * unit[:, None], used)
    with np.errstate(all="ignore"):  # of problems that are done, or have one class, nothing is read
        a = problem.solve(tol)
    coef = xp.where(a >= problem.top, top, a / unit[:, None]) * masked
    coef = xp.where(used > 0, coef, 0.0)
    f = xp.einsum("fij,fj->fi", K, coef)
    violation, level = certificate(arrays, y - f, coef, y, top)
    objective = xp.abs(coef).sum(1) - 0.5 * (coef * f).sum(1)
    return BatchedSolutions(coef, level, objective, violation)


def svc_near(
    arrays: Backend, K: DeviceArray, y: DeviceArray, top: DeviceArray, start: DeviceArray, tol: float
) -> BatchedSolutions | None:
    """One C-SVC, K (m, m), from coefficients `start` (m,) that are nearly optimal; None where that leads nowhere.

    Which samples are inside their bounds is taken from the start. Their equations are solved, those that leave their
    box go to its border, those on the wrong side of their margin come in, and so on until nothing changes.
    """
    xp = arrays.xp
    a = xp.abs(start)
    at_top, fewest, stalled = (a >= top) & (top > 0), K.shape[0] + 1, 0
    inside = (a > 0) & ~at_top
    for _ in range(NEAR_ROUNDS):
        on = arrays.places(inside)
        if not 0 < on.shape[0] <= MOST_INSIDE * K.shape[0]:
            return None
        fixed = xp.where(at_top, top, 0.0)
        short, y_on = -(y * fixed).sum(), y[on]
        Q = K[on][:, on] * y_on[:, None] * y_on[None, :]
        unit = xp.einsum("ii->i", Q).mean()
        factors = arrays.factors(arrays.with_diagonal(Q[None], (RIDGE * unit + 0.0 * y_on)[None]))
        right, level, moved = 1.0 - y_on * (K @ (fixed * y))[on], 0.0 * short, 0.0 * y_on
        for _ in range(3):
            off = right - Q @ moved - level * y_on
            both = arrays.solve(factors, xp.stack([off, y_on], -1)[None])[0]
            change = ((y_on * both[:, 0]).sum() - (short - (y_on * moved).sum())) / (y_on * both[:, 1]).sum()
            moved, level = moved + both[:, 0] - change * both[:, 1], level + change
        exact = fixed + 0.0
        exact[on] = moved
        clipped = xp.where(exact > 0, xp.where(exact < top, exact, top), 0.0)
        coef = clipped * y
        f = K @ coef
        violation, intercept = certificate(arrays, (y - f)[None], coef[None], y[None], top[None])
        if bool(violation[0] <= tol) and bool(xp.abs(coef.sum()) <= 1e-9 * clipped.sum()):
            objective = clipped.sum() - 0.5 * (coef * f).sum()
            return BatchedSolutions(coef[None], intercept, objective[None], violation)
        slack = 1.0 - y * (K @ (exact * y) + level)
        low, high = inside & (exact <= 0.0), inside & (exact >= top)
        enter = (top > 0) & ((~inside & ~at_top & (slack > 0.5 * tol)) | (at_top & (slack < -0.5 * tol)))
        changes = int((low | high | enter).sum())
        stalled = 0 if changes < fewest else stalled + 1
        fewest = min(fewest, changes)
        if not changes or stalled > 4 or not bool(xp.isfinite(level)):
            return None
        at_top = (at_top | high) & ~enter
        inside = (inside & ~low & ~high) | enter
    return None


def certificate(
    arrays: Backend, E: DeviceArray, c: DeviceArray, y: DeviceArray, top: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """(F,), (F,): the violation at c, and the intercept: as in `linear_svc`."""
    xp = arrays.xp
    used = top > 0
    lo, hi = xp.where(y > 0, 0.0, -top), xp.where(y > 0, top, 0.0)
    rises, falls = (c < hi) & used, (c > lo) & used
    gap = xp.amax(xp.where(rises, E, -HUGE), 1) - xp.amin(xp.where(falls, E, HUGE), 1)
    slip = AT_BOUND * top  # what lies within rounding of a bound is at it
    rises, falls = (c < hi - slip) & used, (c > lo + slip) & used
    up, low = xp.amax(xp.where(rises, E, -HUGE), 1), xp.amin(xp.where(falls, E, HUGE), 1)
    inside = xp.where(rises & falls, 1.0, 0.0)
    count = inside.sum(1)
    mean = (xp.where(inside > 0, E, 0.0)).sum(1) / xp.where(count > 0, count, 1.0)
    middle = 0.5 * (xp.where(up <= -HUGE, low, up) + xp.where(low >= HUGE, up, low))
    return xp.where(gap > 0, gap, 0.0), xp.where(count > 0, mean, middle)


@dataclass
class _Boxes:
    """Q (F, m, m) with rows of 0 where a sample takes no part; y, top, used (F, m)."""

    arrays: Backend
    Q: DeviceArray
    y: DeviceArray
    top: DeviceArray
    used: DeviceArray

    def solve(self, tol: float) -> DeviceArray:
        """(F, m): a at the optimum."""
        xp, top, used = self.arrays.xp, self.top, self.used
        above = (top * (self.y > 0)).sum(1)
        below = (top * (self.y < 0)).sum(1)
        both = (above > 0) & (below > 0)
        least = xp.where(above < below, above, below)
        mine = xp.where(self.y > 0, above[:, None], below[:, None])
        a = 0.5 * top * least[:, None] / xp.where(mine > 0, mine, 1.0)
        a = xp.where(a < 1.0, a, 1.0) * used
        a = xp.where(used > 0, a, 0.5)  # a sample that takes no part: any number inside (0, 1)
        self.room = xp.where(used > 0, top, 1.0)
        gradient = xp.einsum("fij,fj->fi", self.Q, a * used) - used
        size = xp.where(xp.abs(gradient) > 1.0, xp.abs(gradient), 1.0)
        z = size + xp.where(gradient > 0, gradient, 0.0)
        s = size + xp.where(gradient < 0, -gradient, 0.0)
        b = xp.zeros_like(above)
        best, best_a, goes_on = xp.zeros_like(above) + HUGE, xp.zeros_like(a), both
        for target in LARGE_GAPS if a.shape[1] > LARGE else GAPS:
            open_ = goes_on
            for _ in range(ITERATIONS):
                gap = ((a * z + (self.room - a) * s) * used).sum(1)
                whole = (a * used).sum(1)
                whole = xp.where(whole > 1.0, whole, 1.0)
                short = xp.abs((self.y * a).sum(1))
                open_ = open_ & ~((gap <= target * whole) & (short <= 1e-8 * whole))
                if not bool(open_.any()):
                    break
                a, b, z, s, moved = self._step(a, b, z, s, open_)
                open_ = open_ & moved
            violation, exact = self._face(xp.where((used > 0) & both[:, None], a, 0.0), b, z, s, goes_on, tol)
            better = (violation < best) & goes_on
            best, best_a = xp.where(better, violation, best), xp.where(better[:, None], exact, best_a)
            goes_on = both & (best > tol)
            if not bool(goes_on.any()):
                break
        return best_a

    def _step(
        self, a: DeviceArray, b: DeviceArray, z: DeviceArray, s: DeviceArray, open_: DeviceArray
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
        """One predictor and corrector of the problems that are open; which of them it moved."""
        xp, y, used = self.arrays.xp, self.y, self.used
        left = self.room - a
        count = used.sum(1)
        mu = ((a * z + left * s) * used).sum(1) / (2 * count)
        dual = xp.einsum("fij,fj->fi", self.Q, a * used) + used * (-1.0 - z + s) + b[:, None] * y
        short = (y * a).sum(1)
        T = xp.where((used > 0) & open_[:, None], z / a + s / left, 1.0)
        factors = self.arrays.factors(self.arrays.with_diagonal(self.Q, T))

        def direction(into_z: DeviceArray, into_s: DeviceArray) -> tuple[DeviceArray, ...]:
            right = used * (-dual + into_z / a - into_s / left)
            both = self.arrays.solve(factors, xp.stack([right, y], -1))
            r, of_y = both[:, :, 0], both[:, :, 1]
            slope = (y * of_y).sum(1)
            db = ((y * r).sum(1) + short) / slope
            da = (r - db[:, None] * of_y) * used
            return da, db, (into_z - z * da) / a * used, (into_s + s * da) / left * used

        da, _, dz, ds = direction(-a * z, -left * s)
        length = self._length(a, left, da, z, dz, s, ds)[:, None]
        after = (((a + length * da) * (z + length * dz) + (left - length * da) * (s + length * ds)) * used).sum(1)
        ratio = after / (2 * count) / mu
        ratio = xp.where(ratio > 0, xp.where(ratio < 1.0, ratio, 1.0), 0.0)
        goal = (ratio**3 * mu)[:, None]
        da, db, dz, ds = direction(goal - a * z - da * dz, goal - left * s + da * ds)
        length = TO_BORDER * self._length(a, left, da, z, dz, s, ds)
        length = xp.where(length < 1.0, length, 1.0)
        fine = open_ & xp.isfinite(da.sum(1) + dz.sum(1) + ds.sum(1) + db) & (length > 1e-10)
        length = xp.where(fine, length, 0.0)[:, None]
        da, dz, ds = (xp.where(fine[:, None], move, 0.0) for move in (da, dz, ds))
        a = a + length * da
        a = xp.where(a > 1e-300, a, 1e-300)
        highest = self.room * (1.0 - 1e-16)
        a = xp.where(a < highest, a, highest)
        z, s = z + length * dz, s + length * ds
        z, s = xp.where(z > 1e-300, z, 1e-300), xp.where(s > 1e-300, s, 1e-300)
        return a, b + length[:, 0] * xp.where(fine, db, 0.0), z, s, fine

    def _length(self, a, left, da, z, dz, s, ds) -> DeviceArray:  # type: ignore[no-untyped-def]
        """(F,): the longest step at which everything stays above its bound, at most a little more than 1."""
        xp, most = self.arrays.xp, 1.0 / TO_BORDER
        steps = []
        for value, move in ((a, da), (left, -da), (z, dz), (s, ds)):
            falls = move < 0
            steps.append(xp.amin(xp.where(falls, -value / xp.where(falls, move, -1.0), most), 1))
        least = xp.amin(xp.stack(steps), 0)
        return xp.where(least < most, least, most)

    def _face(
        self, a: DeviceArray, b: DeviceArray, z: DeviceArray, s: DeviceArray, goes_on: DeviceArray, tol: float
    ) -> tuple[DeviceArray, DeviceArray]:
        """The best of the interior point with what is near a bound put there, and of exact equations on its face.

        (F,), (F, m): its violation, and a.
        """
        xp, top, used = self.arrays.xp, self.top, self.used > 0
        unit = xp.where(top < 1.0, top, 1.0)
        at_top = ((top - a) < unit * s) & used
        at_zero = ((a < unit * z) & ~at_top) | ~used
        inside = ~(at_top | at_zero)
        best, best_a = self._certify(self._balance(xp.where(at_top, top, xp.where(at_zero, 0.0, a)), inside))[:2]
        for _ in range(ROUNDS):
            if a.shape[1] > LARGE and not bool(((best > tol) & goes_on).any()):
                break
            exact = self._equations(a, b, inside, at_top)
            clipped = xp.where(exact > 0, xp.where(exact < top, exact, top), 0.0)
            violation, clipped, level, f = self._certify(self._balance(clipped, inside))
            better = violation < best
            best, best_a = xp.where(better, violation, best), xp.where(better[:, None], clipped, best_a)
            open_ = (best > 0.1 * tol) & goes_on
            slack = 1.0 - (f + level[:, None] * self.y)
            slip = max(0.05 * tol, 1e-9)
            leave_low, leave_top = inside & (exact <= 0.0), inside & (exact >= top)
            enter = ((at_zero & used & (slack > slip)) | (at_top & (slack < -slip))) & open_[:, None]
            leave_low, leave_top = leave_low & open_[:, None], leave_top & open_[:, None]
            if not bool((enter | leave_low | leave_top).any()):
                break
            at_zero, at_top = (at_zero | leave_low) & ~enter, (at_top | leave_top) & ~enter
            inside = ~(at_top | at_zero)
        return best, best_a

    def _certify(self, a: DeviceArray) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
        """(violation, a, b, y f without the intercept)."""
        f = self.arrays.xp.einsum("fij,fj->fi", self.Q, a)
        y = self.arrays.xp.where(self.used > 0, self.y, 1.0)
        violation, level = certificate(self.arrays, y * (1.0 - f), a * y, y, self.top)
        return violation, a, level, f

    def _equations(self, a: DeviceArray, b: DeviceArray, inside: DeviceArray, at_top: DeviceArray) -> DeviceArray:
        """a with y f = 1 for the samples inside and y'a = 0, the others at their bounds; near the interior point."""
        xp = self.arrays.xp
        on = xp.where(inside, 1.0, 0.0)
        M = self.Q * on[:, :, None] * on[:, None, :]
        factors = self.arrays.factors(self.arrays.with_diagonal(M, xp.where(inside, RIDGE, 1.0)))
        y = self.y * on
        start = xp.where(inside, a, xp.where(at_top, self.top, 0.0))
        level = b
        for _ in range(3):
            r = (1.0 - xp.einsum("fij,fj->fi", self.Q, start) - level[:, None] * self.y) * on
            short = (self.y * start).sum(1)
            solved = self.arrays.solve(factors, xp.stack([r, y], -1))
            r, of_y = solved[:, :, 0], solved[:, :, 1]
            slope = (y * of_y).sum(1)
            change = ((y * r).sum(1) + short) / xp.where(slope > 0, slope, 1.0)
            move = (r - change[:, None] * of_y) * on
            fine = xp.isfinite(move.sum(1))
            start = start + xp.where(fine[:, None], move, 0.0)
            level = level + xp.where(fine, change, 0.0)
        return start

    def _balance(self, a: DeviceArray, inside: DeviceArray) -> DeviceArray:
        """The same with y'a = 0: samples inside, then all, give or take what is missing, by their room."""
        xp = self.arrays.xp
        for _ in range(3):
            missing = (self.y * a).sum(1)
            size = xp.abs(missing)
            away = self.y * xp.sign(missing)[:, None]
            room = xp.where(away > 0, a, xp.where(away < 0, self.top - a, 0.0))
            near = xp.where(inside, room, 0.0)
            enough = near.sum(1) >= size
            room = xp.where(enough[:, None], near, room)
            total = room.sum(1)
            share = xp.where(total >= size, size / xp.where(total > 0, total, 1.0), 0.0)
            a = a - away * room * share[:, None]
            a = xp.where(a > 0, xp.where(a < self.top, a, self.top), 0.0)
        return a
