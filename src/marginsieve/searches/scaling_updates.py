"""How scaling factors move: from a point to a curve l -> new factors, l in (0, 1], shorter where the objective rose.

t = e / e_start; h = dPhi / dt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..contracts import Array, BoolArray
from ..solvers.bfgs import DampedBFGS
from .scaling_objective import Objective, ScaledPoint

Curve = Callable[[float], Array]

ARMIJO = 1e-4  # share of the promised fall that a step must bring
SHORTENED = 0.1  # the 2018 paper takes a tenth of the step that the line search accepts
SMALLEST = 2.0**-20  # of a line search


class Update(Protocol):
    """One way to move; `total` is sum(e^2) to be kept where the rule can, None where nothing but the cap bounds e.

    `length` is where on the curve the next move is tried first: halved when the objective rose, longer when it fell,
    up to `longest` where the sum is free.
    """

    length: float
    longest: float

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve: ...


def _pull(slope: Array, at_cap: BoolArray | None = None) -> Array:
    """Slopes in units of a large one, within [-1, 1]; those that press against the cap do not count as large."""
    free = slope if at_cap is None else slope[~at_cap | (slope > 0)]
    # A few features with a huge slope would make all others stand still: the 95 % quantile is the unit.
    large = max(float(np.quantile(np.abs(free), 0.95)), 1e-300) if len(free) else 1.0
    return np.clip(slope / large, -1.0, 1.0)


class Multiplicative:
    """mu = e^2 moves to mu * exp(-rate * clip(r / q95(|r|), -1, 1)), r = dPhi/dmu.

    At a fixed total r is taken less its mean by mu.
    """

    def __init__(self, rate: float, cap: float) -> None:
        self.rate, self.cap, self.length, self.longest = rate, cap, 1.0, 8.0

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve:
        mu, start = point.e**2, objective.start[point.live]
        g = objective.slope(point) / np.maximum(2.0 * point.e, 1e-300)
        if total is None:
            pull = _pull(g, point.e >= self.cap * start)
            return lambda length: np.minimum(point.e * np.exp(-0.5 * self.rate * length * pull), self.cap * start)
        # Less its mean by mu, the slope has no part along the sum of mu, which is fixed: what is left moves shares.
        pull = _pull(g - float(mu @ g) / float(mu.sum()))
        return lambda length: rescale_to(np.sqrt(mu * np.exp(-self.rate * length * pull)), total)


class Gradient:
    """t moves to t - rate * clip(h / q95(|h|), -1, 1), within [0, cap]: the 2011 rule, scaled."""

    def __init__(self, rate: float, cap: float) -> None:
        self.rate, self.cap, self.length, self.longest = rate, cap, 1.0, 1.0

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve:  # noqa: ARG002
        start = objective.start[point.live]
        t = point.e / start
        pull = self.rate * _pull(objective.slope(point) * start, t >= self.cap)
        return lambda length: start * np.clip(t - length * pull, 0.0, self.cap)


class QuasiNewton:
    """The 2018 rule, the machine's coefficients kept: d = P(t - B^-1 h) - t, Armijo, a tenth of that step, damped BFGS.

    It moves until a factor falls below eps or `inner` times. Phi is divided by its unit over n, so that h is about 1
    and B = I is a fair start; where d does not descend, B = I again.

    Parameters
    ----------
    inner : int
        Largest number of iterations in one move.
    eps : float
        A move ends where a factor is below this, in units of its start.
    cap : float
        Largest factor, in units of its start.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.estimators import prepare_search
    >>> from marginsieve.searches import Objective, QuasiNewton
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> _, problem = prepare_search(recipes.kp_cssvm(), cohort.X, cohort.y)
    >>> objective = Objective(problem, "min-max", "concave", 1.0, None, True)
    >>> start = objective.begin()
    >>> factors = QuasiNewton(3, eps=0.25, cap=4.0).curve(objective, start, None)
    >>> objective.solve_at(start, factors(1.0)).value <= start.value
    True
    """

    def __init__(self, inner: int, eps: float, cap: float) -> None:
        self.inner, self.eps, self.cap, self.length, self.longest = inner, eps, cap, 1.0, 1.0

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve:  # noqa: ARG002
        start, B = objective.start[point.live], DampedBFGS()
        here = objective.restrict_to_support(point)
        h = self._slope(objective, here)
        for _ in range(self.inner):
            here, h, B, moved = self.iterate(objective, here, h, B)
            if not moved or (here.e < self.eps * start).any():
                break
        away = here.e - point.e
        return lambda length: point.e + length * away

    def iterate(
        self, objective: Objective, here: ScaledPoint, h: Array, B: DampedBFGS
    ) -> tuple[ScaledPoint, Array, DampedBFGS, bool]:
        """One iteration: (point, slope there, B, whether it moved)."""
        start = objective.start[here.live]
        t = here.e / start
        d = np.clip(t - B.solve(h), 0.0, self.cap) - t
        # Clipping to the box can turn B^-1 h into a direction of ascent; the clipped gradient never is one.
        if len(B) and not d @ h < 0.0:
            B = DampedBFGS()
            d = np.clip(t - h, 0.0, self.cap) - t
        slope = float(d @ h)
        if not slope < 0.0:
            return here, h, B, False
        factor = self._factor(objective)
        # With the coefficients kept a trial length costs a kernel matrix and no machine.
        (value, there), length = objective.along_line(here, d * start), 1.0
        while value(length) * factor > here.value * factor + ARMIJO * length * slope:
            length *= 0.5
            if length < SMALLEST:
                return here, h, B, False
        moved = there(SHORTENED * length)
        after = self._slope(objective, moved)
        # p is the step that was made, a tenth of the one that passed the test.
        B.update(SHORTENED * length * d, after - h)
        return moved, after, B, True

    def _slope(self, objective: Objective, point: ScaledPoint) -> Array:
        return objective.slope(point) * objective.start[point.live] * self._factor(objective)

    def _factor(self, objective: Objective) -> float:
        return len(objective.start) / objective.unit


def rescale_to(e: Array, total: float) -> Array:
    """The factors times what makes the sum of their squares `total`."""
    return np.asarray(e * np.sqrt(total / max(float(e @ e), 1e-300)))
