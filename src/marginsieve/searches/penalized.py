"""Penalised scaling: each feature has a factor in the kernel; the factors are optimised and the smallest dropped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra.smooth import MOST_ON
from ..contracts import (
    SIGNS,
    VALUES,
    Array,
    BoolArray,
    Gram,
    IntArray,
    Machine,
    Path,
    ProblemView,
    Resources,
    Scalable,
    Solution,
    Step,
    StopInfo,
)
from ..errors import InputError, one_of, positive_number, whole_number
from ..problem import step_of
from .ranking import check_final, check_step, drop_count, worst_first

# Powell's damped BFGS update, kept as vectors: B is the identity plus a low-rank part, never an n x n array.

ETA = 0.2  # Powell's damping


class DampedBFGS:
    """B_0 = I;  B' = B - Bpp'B / p'Bp + rr' / p'r,  r = theta q + (1 - theta) Bp.

    theta = 1 where p'q >= eta p'Bp, else (1 - eta) p'Bp / (p'Bp - p'q): then p'r = eta p'Bp > 0 and B stays positive
    definite. With a_k = B_k p_k / sqrt(p'Bp) and b_k = r_k / sqrt(p'r), Bv = v - sum a_k (a_k'v) + sum b_k (b_k'v);
    its inverse is the two-loop recursion over the pairs (p_k, r_k). k updates take 4 k n numbers.
    """

    def __init__(self) -> None:
        self._pairs: list[tuple[Array, Array, float]] = []  # p, r, 1 / p'r
        self._parts: list[tuple[Array, Array]] = []  # a, b

    def __len__(self) -> int:
        return len(self._pairs)

    def times(self, v: Array) -> Array:
        """Bv."""
        out = v.copy()
        for a, b in self._parts:
            out += b * (b @ v) - a * (a @ v)
        return out

    def solve(self, v: Array) -> Array:
        """B^-1 v."""
        out, along = v.copy(), []
        for p, r, rho in reversed(self._pairs):
            along.append(rho * (p @ out))
            out -= along[-1] * r
        for (p, r, rho), a in zip(self._pairs, reversed(along), strict=True):
            out += (a - rho * (r @ out)) * p
        return out

    def update(self, p: Array, q: Array) -> None:
        """After a step p that changed the gradient by q; a step of length zero changes nothing."""
        Bp = self.times(p)
        curve, seen = float(p @ Bp), float(p @ q)
        if curve <= 0.0:
            return
        # Little or negative curvature p'q would make B singular or indefinite: q is mixed with Bp there.
        theta = 1.0 if seen >= ETA * curve else (1.0 - ETA) * curve / (curve - seen)
        r = theta * q + (1.0 - theta) * Bp
        slope = float(p @ r)
        self._pairs.append((p, r, 1.0 / slope))
        self._parts.append((Bp / np.sqrt(curve), r / np.sqrt(slope)))


# What penalised scaling minimises, as a function of the scaling factors of the live features.
#
#     Phi(e) = J(e) + P(e)                     direction "min-max"
#     Phi(e) = log J(e) - log sum_j e_j^2 V_j + P(e)    the same, for a machine with a contrast V (SVDD with outliers)
#     Phi(e) = -J(e) + P(e)                    direction "as-printed"
#
# J is the machine's optimal objective, summed over the binary problems; e_j^2 is the weight of feature j in the kernel
# (its divisor included). The penalty is of t = e / e_start:
#
#     concave  P = C2 * unit / n * sum(1 - exp(-beta t_j)),     l1  P = C2 * unit / n * sum(t_j)
#
# with unit = J at the start (1 for the logarithm), or as printed, in e itself: C2 * sum(1 - exp(-beta e_j)).

TINY = 1e-100  # in place of an objective of 0; what is divided by it can still be multiplied


@dataclass(frozen=True)
class Penalty:
    """strength * sum(1 - exp(-beta e / unit)), or strength * sum(e / unit) where beta is None."""

    strength: float
    beta: float | None
    unit: Array  # (n,)

    def value(self, e: Array, live: IntArray) -> float:
        t = e / self.unit[live]
        return self.strength * float(np.sum(t if self.beta is None else -np.expm1(-self.beta * t)))

    def slope(self, e: Array, live: IntArray) -> Array:
        t = e / self.unit[live]
        inner = np.ones(len(e)) if self.beta is None else self.beta * np.exp(-self.beta * t)
        return np.asarray(self.strength * inner / self.unit[live])


@dataclass(frozen=True)
class ScaledPoint:
    """The live features at some factors e, the machine there, its objective J and what is minimised."""

    gram: Gram
    e: Array  # (p,)
    solutions: tuple[Solution, ...]
    J: float
    value: float

    @property
    def live(self) -> IntArray:
        return self.gram.features


class Objective:
    """Phi for one problem; `start` (n,) are the factors that it is measured from.

    Parameters
    ----------
    problem : ProblemView
        The problem; its machine is `Scalable`.
    direction : "min-max" or "as-printed"
        The sign of the machine's objective.
    penalty : "concave" or "l1"
        The penalty of the factors.
    C2 : float
        Strength of the penalty.
    beta : float or None
        Slope of the concave penalty; None is the usual one.
    scaled : bool
        Whether the penalty is in units of the start.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.estimators import prepare_search
    >>> from marginsieve.searches import Objective
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> _, problem = prepare_search(recipes.kp_svm(), cohort.X, cohort.y)
    >>> objective = Objective(problem, "min-max", "concave", 1.0, None, True)
    >>> objective.slope(objective.begin()).shape
    (10,)
    """

    def __init__(
        self, problem: ProblemView, direction: str, penalty: str, C2: float, beta: float | None, scaled: bool
    ) -> None:
        n = problem.table.shape[1]
        assert isinstance(problem.machine, Scalable)
        self.problem, self.machine = problem, problem.machine
        self.sign = 1.0 if direction == "min-max" else -1.0
        self.start = np.sqrt(problem.feature_weight) / self._root(np.arange(n))
        self.contrast = self.machine.contrast(problem) if self.sign > 0 else None
        usual = {"concave": 1.0 if scaled else 5.0, "l1": None}[penalty]
        self.unit, self.C2, self.scaled = 1.0, C2, scaled
        self.penalty = Penalty(
            C2, usual if beta is None or usual is None else beta, self.start if scaled else np.ones(n)
        )

    def begin(self) -> ScaledPoint:
        """The point at the start; J there is the unit that the penalty is measured in."""
        gram, n = self.problem.gram(), len(self.start)
        solutions = self.problem.solve(gram)
        J = _total(solutions)
        # A logarithm has no unit; J does, and a penalty of C2 = 1 then weighs as much as the objective at the start.
        self.unit = 1.0 if self.contrast is not None else max(J, TINY)
        if self.scaled:
            self.penalty = replace(self.penalty, strength=self.C2 * self.unit / n)
        return ScaledPoint(gram, self.start.copy(), solutions, J, self._value(J, self.start, gram.features))

    def solve_at(self, before: ScaledPoint, e: Array, stay: IntArray | None = None) -> ScaledPoint:
        """The machine solved at other factors of the same features, or of some of them (places in `before.live`)."""
        features = before.live if stay is None else before.live[stay]
        weight = self.problem.feature_weight.copy()
        weight[features] = (e * self._root(features)) ** 2
        gram = before.gram.rescale(weight, None if stay is None else features)
        solutions = self.problem.solve(gram, before.solutions)
        J = _total(solutions)
        return ScaledPoint(gram, e, solutions, J, self._value(J, e, gram.features))

    def restrict_to_support(self, point: ScaledPoint) -> ScaledPoint:
        """The same point over the rows that carry its coefficients: enough while they are kept."""
        used = np.any([solution.coef != 0 for solution in point.solutions], axis=0)
        # Samples with coefficient 0 add nothing to c'Kc or its gradient, as long as the coefficients are kept.
        if used.mean() > MOST_ON:
            return point
        rows = np.flatnonzero(used)
        solutions = tuple(
            replace(solution, coef=solution.coef[rows], slack=solution.slack[rows]) for solution in point.solutions
        )
        return replace(point, gram=point.gram.only(rows), solutions=solutions)

    def along_line(
        self, point: ScaledPoint, d: Array
    ) -> tuple[Callable[[float], float], Callable[[float], ScaledPoint]]:
        """l -> Phi, and l -> the point, at e + l d with the machine's coefficients kept."""
        line = point.gram.line(d)

        def value(length: float) -> float:
            return self._value(self._dual(point, line.matrix(length)), point.e + length * d, point.live)

        def there(length: float) -> ScaledPoint:
            gram, e = line.gram_at(length), point.e + length * d
            J = self._dual(point, gram.matrix())
            return ScaledPoint(gram, e, point.solutions, J, self._value(J, e, point.live))

        return value, there

    def slope(self, point: ScaledPoint) -> Array:
        """(p,): dPhi / de_j; the machine re-solved or kept, the gradient is the same (envelope theorem)."""
        gram, live = point.gram, point.live
        root = self._root(live)
        scale = point.e * root / gram.divisor  # dJ/de = 2 e dJ/dw, in the rounding of the kernel's own scale
        # w_j = (e_j root)^2 / divisor with root^2 = divisor: dw/de = 2 e, and the sum over the binary problems is J's.
        J = root * sum(2.0 * scale * self.machine.weight_gradient(solution, gram) for solution in point.solutions)
        if self.contrast is None:
            return np.asarray(self.sign * J + self.penalty.slope(point.e, live))
        V = self.contrast[live]
        # d/de of log sum_j e_j^2 V_j.
        spread = 2.0 * point.e * V / max(float(point.e**2 @ V), TINY)
        return np.asarray(J / max(point.J, TINY) - spread + self.penalty.slope(point.e, live))

    def _root(self, live: IntArray) -> float:
        """What turns the root of a weight in the kernel into that of a feature weight, before the divisor."""
        divisor = self.problem.kernel.divisor(self.problem.table, live)
        return 1.0 if divisor == 1.0 else float(np.sqrt(divisor))

    def _dual(self, point: ScaledPoint, K: Array) -> float:
        return float(sum(self.machine.dual(solution, K) for solution in point.solutions))

    def _value(self, J: float, e: Array, live: IntArray) -> float:
        penalty = self.penalty.value(e, live)
        if self.contrast is None:
            return self.sign * J + penalty
        return float(np.log(max(J, TINY)) - np.log(max(float(e**2 @ self.contrast[live]), TINY))) + penalty


def _total(solutions: Sequence[Solution]) -> float:
    return float(sum(solution.objective for solution in solutions))


# How scaling factors move: from a point to a curve l -> new factors, l in (0, 1], shorter where the objective rose.
#
# t = e / unit; h = dPhi / dt. Where nothing but the cap bounds the factors, unit = e_start. Where their sum of squares
# is fixed, unit are the factors that would all be equal, and h is less its part along t: what is left moves shares.
#
# No two features with different slopes come to the same factor: a ranking is never decided by a bound that many reach.

Curve = Callable[[float], Array]

ARMIJO = 1e-4  # share of the promised fall that a step must bring
SHORTENED = 0.1  # the 2018 paper takes a tenth of the step that the line search accepts
SMALLEST = 2.0**-20  # of a line search
AT_CAP = 0.999  # share of the cap from which on a factor counts as there


class Update(Protocol):
    """One way to move; `total` is sum(e^2) to be kept, None where nothing but the cap bounds e.

    `length` is where on the curve the next move is tried first: halved when the objective rose, longer when it fell,
    up to `longest` where the sum is free.
    """

    length: float
    longest: float

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve: ...


def move_within(t: Array, move: Array, cap: float) -> Array:
    """t + move / sqrt(1 + (move / room)^2); room is half of the way up to the cap, nearly all of the way down to 0.

    It rises with t and with the move: factors that press against a bound keep their order. Within a thousandth of the
    cap they rest.
    """
    room = np.where(move > 0.0, np.where(t < AT_CAP * cap, 0.5 * (cap - t), 0.0), 0.9 * t)
    return np.asarray(t + move / np.hypot(1.0, move / np.maximum(room, 1e-300)))


def rescale_to(e: Array, total: float | None) -> Array:
    """The factors times what makes the sum of their squares `total`, where there is one."""
    return e if total is None else np.asarray(e * np.sqrt(total / max(float(e @ e), 1e-300)))


def _unit(objective: Objective, point: ScaledPoint, total: float | None) -> Array:
    """What t is measured in: the start, or equal factors (in units of the start) with the same sum of squares."""
    start = objective.start[point.live]
    return rescale_to(start, total)


def _along_shares(h: Array, t: Array, total: float | None) -> Array:
    """The slope, less its part along t where the sum is fixed."""
    return h if total is None else h - t * (float(t @ h) / float(t @ t))


def _pull(slope: Array, at_cap: BoolArray) -> Array:
    """Slopes in units of a large one, bent so that they stay within (-1, 1) and no two become equal."""
    # A few features with a huge slope would make all others stand still: the 95 % quantile is the unit, of the features
    # that can still move.
    free = slope[~at_cap | (slope > 0)]
    x = slope / max(float(np.quantile(np.abs(free), 0.95)) if len(free) else 1.0, 1e-300)
    return np.asarray(x / np.hypot(1.0, x))


class Multiplicative:
    """mu = t^2 moves to mu * exp(-rate * pull), pull the bent slope in mu."""

    def __init__(self, rate: float, cap: float) -> None:
        self.rate, self.cap, self.length, self.longest = rate, cap, 1.0, 8.0

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve:
        unit = _unit(objective, point, total)
        t, cap = point.e / unit, self.cap if total is None else np.inf
        h = _along_shares(objective.slope(point) * unit, t, total)
        pull = -0.5 * self.rate * _pull(h / np.maximum(2.0 * t, 1e-300), t > AT_CAP * cap)
        return lambda length: rescale_to(unit * move_within(t, t * np.expm1(length * pull), cap), total)


class Gradient:
    """t moves to t - rate * pull, pull the bent slope in t: the 2011 rule, scaled."""

    def __init__(self, rate: float, cap: float) -> None:
        self.rate, self.cap, self.length, self.longest = rate, cap, 1.0, 1.0

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve:
        unit = _unit(objective, point, total)
        t, cap = point.e / unit, self.cap if total is None else np.inf
        h = _along_shares(objective.slope(point) * unit, t, total)
        pull = -self.rate * _pull(h, t > AT_CAP * cap)
        return lambda length: rescale_to(unit * move_within(t, length * pull, cap), total)


class QuasiNewton:
    """The 2018 rule, the machine's coefficients kept: d = P(t - B^-1 h) - t, Armijo, a tenth of that step, damped BFGS.

    P keeps t within its bounds (`move_within`). It moves until a factor falls below eps or `inner` times. Phi is
    divided by its unit over n, so that h is about 1 and B = I is a fair start; where d does not descend, B = I again.

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

    def curve(self, objective: Objective, point: ScaledPoint, total: float | None) -> Curve:
        unit, B = _unit(objective, point, total), DampedBFGS()
        here = objective.restrict_to_support(point)
        h = self.slope(objective, here, total)
        for _ in range(self.inner):
            here, h, B, moved = self.iterate(objective, here, h, B, total)
            if not moved or (total is None and (here.e < self.eps * unit).any()):
                break
        away = here.e - point.e
        return lambda length: rescale_to(point.e + length * away, total)

    def iterate(
        self, objective: Objective, here: ScaledPoint, h: Array, B: DampedBFGS, total: float | None = None
    ) -> tuple[ScaledPoint, Array, DampedBFGS, bool]:
        """One iteration: (point, slope there, B, whether it moved)."""
        unit, cap = _unit(objective, here, total), self.cap if total is None else np.inf
        t = here.e / unit
        d = move_within(t, -B.solve(h), cap) - t
        # Bounds can turn B^-1 h into a direction of ascent; the bounded gradient never is one.
        if len(B) and not d @ h < 0.0:
            B = DampedBFGS()
            d = move_within(t, -h, cap) - t
        slope = float(d @ h)
        if not slope < 0.0:
            return here, h, B, False
        factor = self._factor(objective, here, total)
        # With the coefficients kept a trial length costs a kernel matrix and no machine.
        (value, there), length = objective.along_line(here, d * unit), 1.0
        while value(length) * factor > here.value * factor + ARMIJO * length * slope:
            length *= 0.5
            if length < SMALLEST:
                return here, h, B, False
        moved = there(SHORTENED * length)
        after = self.slope(objective, moved, total)
        # p is the step that was made, a tenth of the one that passed the test.
        B.update(SHORTENED * length * d, after - h)
        return moved, after, B, True

    def slope(self, objective: Objective, here: ScaledPoint, total: float | None = None) -> Array:
        """(p,) the slope in t, of about 1."""
        unit = _unit(objective, here, total)
        h = _along_shares(objective.slope(here) * unit, here.e / unit, total)
        return h * self._factor(objective, here, total)

    def _factor(self, objective: Objective, here: ScaledPoint, total: float | None) -> float:
        return len(objective.start if total is None else here.live) / objective.unit


LONGER = 1.2  # the next move after one that lowered the objective
HALVINGS = 6  # of a move whose objective rose, before it is given up
CHOICES = {
    "update": ("multiplicative", "quasi-newton", "gradient"),
    "direction": ("min-max", "as-printed"),
    "stop": ("ranking", "own"),
    "penalty": ("concave", "l1"),
}
FROM_FOLDS = "cv"
PENALTIES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # C2 in folds


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class PenalizedScaling(BaseEstimator):
    """KP: scale the features, penalize the scale, drop features whose factor becomes small.

    ::

        min over s >= 0 of  J(s) + C2 * sum(1 - exp(-beta * s / s_start)) * J(s_start) / n

    where J is the machine's optimal objective at the scale s. A move is accepted only if it does not raise this
    objective after the machine has been solved again.

    Parameters
    ----------
    update : "multiplicative", "quasi-newton" or "gradient", default="multiplicative"
        How the factors move: in mu = s^2 with a fixed sum; by the 2018 rule; by the 2011 rule.
    direction : "min-max" or "as-printed", default="min-max"
        Towards a small J, or towards a large one, as the papers' formulas read. See docs/direction.md.
    stop : "ranking" or "own", default="ranking"
        Rank all features; or first let the penalty decide how many stay, with the sum of mu free, and rank these after.
    penalty : "concave" or "l1", default="concave"
        The concave penalty of the formula above, or the sum of the factors.
    C2 : float or "cv", default=1.0
        Weight of the penalty; 0 is no penalty. With "cv" inner folds choose among 0.25, 0.5, 1, 2, 4, 8 and 16: by the
        score at the number of features that the penalty leaves (stop="own"), or on average over sizes ("ranking").
    beta : float or None, default=None
        How fast the concave penalty saturates; None is 1 (5 where `scaled` is False).
    scaled : bool, default=True
        Measure s in units of its start and C2 in units of J / n; False uses the papers' formula as printed.
    step : float or int, default=0.2
        Features dropped after each round of the ranking: a share of those that are left, or a count.
    one_by_one_below : int, default=10
        From this number of features on, one is dropped after each round.
    moves : int, default=3
        Number of moves in a round. One move of "quasi-newton" is a run of iterations until a factor falls below `eps`.
    rate : float or None, default=None
        Size of the largest move: of log mu for "multiplicative" (None is 0.1; up to eight times as far where the sum is
        free and the objective keeps falling), of s for "gradient" (None is 0.25), in units of the start where the sum
        is free and of a mean factor where it is fixed.
    eps : float, default=0.25
        stop="own": a factor below this share of its start counts as zero.
    cap : float or None, default=4.0
        stop="own": no factor reaches this multiple of its start; None is no cap. Without one the factors of a few
        features may grow as long as they move: see `iterations`.
    tol : float, default=1e-3
        stop="own": the factors have converged when they move by less than this share of their start, on average.
    max_iter : int, default=200
        stop="own": largest number of moves.
    iterations : None or "cv", default=None
        stop="own": None moves until the factors converge; with "cv" inner folds choose the number of moves, from 1 to
        `max_iter`. Of equal scores in folds the fewest features win.
    inner : int, default=3
        Largest number of iterations of "quasi-newton" with the coefficients kept; many of them follow a bound of J, not
        J.
    final : "learned", "start" or Machine, default="learned"
        What is fitted on the selected features: the machine of the search on the learned kernel, the same at the
        factors that the kernel started with, or another machine at these.

    References
    ----------
    Maldonado, Weber and Basak, Simultaneous feature selection and classification using kernel-penalized support vector
    machines, Information Sciences 181 (2011) 115-128; Maldonado and Lopez, Dealing with high-dimensional
    class-imbalanced datasets: Embedded feature selection for SVM classification, Applied Soft Computing 67 (2018)
    94-105.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import PenalizedScaling
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = PenalizedScaling(C2=1.0)
    >>> selector = SVMSelector(
    ...     "gaussian", criterion=None, search=search, n_features_to_select=2, standardize=True, class_weight="balanced"
    ... )
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    resources = Resources(peak=(5.0, 9.0), rescales_often=True)
    requires: ClassVar[tuple[type, ...]] = (Scalable,)
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})
    ranks_by: ClassVar[frozenset[str]] = frozenset()
    multiclass = True

    update: str = "multiplicative"
    direction: str = "min-max"
    stop: str = "ranking"
    penalty: str = "concave"
    C2: float | str = 1.0
    beta: float | None = None
    scaled: bool = True
    step: float | int = 0.2
    one_by_one_below: int = 10
    moves: int = 3
    rate: float | None = None
    eps: float = 0.25
    cap: float | None = 4.0
    tol: float = 1e-3
    max_iter: int = 200
    iterations: str | None = None
    inner: int = 3
    final: str | Machine = "learned"

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Later dropped features rank higher; within one drop, those with the larger last factor."""
        if self.C2 == FROM_FOLDS:
            raise InputError(f"search: C2 is {self.C2!r}, which a fit chooses in inner folds; give a number here")
        objective = Objective(problem, self.direction, self.penalty, float(self.C2), self.beta, self.scaled)
        walk = _ScalingWalk(objective, self.eps)
        stop = self._settle(walk) if self.stop == "own" else None
        if self.iterations is None:  # else folds only look at what was settled on, move by move
            self._rank(walk)
        reason = f"all features were ranked at C2 = {objective.C2:g}: {walk.accepted} moves lowered the objective, "
        reason += f"{walk.refused} did not"
        path = walk.path(stop, reason if stop is None else str(stop))
        return path if self.final == "learned" else without_weights(path)

    @property
    def candidates(self) -> tuple[PenalizedScaling, ...]:
        """The searches that inner folds choose among; none where nothing is left to them."""
        if FROM_FOLDS not in (self.C2, self.iterations):
            return ()
        penalties = PENALTIES if self.C2 == FROM_FOLDS else (self.C2,)
        return tuple(replace(self, C2=C2) for C2 in penalties)

    def end_after(self, candidate: PenalizedScaling, stages: int) -> PenalizedScaling:
        """One of the candidates; where folds choose the number of moves too, with so many of them."""
        return candidate if self.iterations is None else replace(candidate, iterations=None, max_iter=stages)

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        for name, known in CHOICES.items():
            one_of("search", name, getattr(self, name), known)
        if self.C2 not in (0, FROM_FOLDS):
            positive_number("search", "C2", self.C2)
        if self.iterations not in (None, FROM_FOLDS):
            raise InputError(f'search: iterations is {self.iterations!r}; it must be None or "cv"')
        if self.iterations is not None and self.stop != "own":
            raise InputError('search: iterations="cv" needs stop="own": a ranking goes on until one feature is left')
        positive_number("search", "eps", self.eps, 1.0)
        positive_number("search", "tol", self.tol)
        for name, most in (("cap", math.inf), ("beta", math.inf), ("rate", 2.0)):
            if getattr(self, name) is not None:
                positive_number("search", name, getattr(self, name), most)
        if self.cap is not None and self.cap < 1:
            raise InputError(f"search: cap is {self.cap!r}; it must be 1 or more, the factors start at 1")
        for name, lowest in (("moves", 1), ("inner", 1), ("max_iter", 1), ("one_by_one_below", 0)):
            whole_number("search", name, getattr(self, name), lowest)
        check_step(self.step)
        if isinstance(self.final, str):
            one_of("search", "final", self.final, ("learned", "start"))
        else:
            check_final(self.final)

    def _rule(self) -> Update:
        cap = np.inf if self.cap is None else self.cap
        if self.update == "multiplicative":
            return Multiplicative(0.1 if self.rate is None else self.rate, cap)
        if self.update == "gradient":
            return Gradient(0.25 if self.rate is None else self.rate, cap)
        return QuasiNewton(self.inner, self.eps, cap)

    def _rank(self, walk: _ScalingWalk) -> None:
        """Rounds of moves with a fixed sum, a drop after each, down to one feature."""
        walk.total = float(walk.point.e @ walk.point.e)
        while len(walk.point.live) > 1:
            since, rule = time.perf_counter(), self._rule()
            for _ in range(self.moves):
                if not walk.move(rule):
                    break
            walk.record(since)
            walk.drop(drop_count(len(walk.point.live), self.step, self.one_by_one_below))
        walk.record(time.perf_counter())

    def _settle(self, walk: _ScalingWalk) -> StopInfo:
        """Moves without a fixed sum until the factors converge; what fell below eps is gone for good."""
        rule, converged, since = self._rule(), False, time.perf_counter()
        moved: list[float] = []
        while len(moved) < self.max_iter and not converged:
            before = walk.point
            stalled = not walk.move(rule)
            start = walk.objective.start[before.live]
            moved.append(float(np.mean(np.abs(walk.point.e - before.e) / start)))
            fallen = int(walk.below_eps().sum())
            emptied = fallen == len(walk.point.live)
            converged = emptied or (not fallen and (stalled or moved[-1] < self.tol))
            if fallen and not (emptied and fallen == 1):
                walk.record(since)
                since = time.perf_counter()
                walk.drop(fallen)
            if self.iterations is not None:
                walk.keep_stage()
        emptied = bool(walk.below_eps().all())
        # The share at the cap is read before what stays without a factor gets its own back.
        t = walk.point.e / walk.objective.start[walk.point.live]
        at_cap = 0.0 if self.cap is None else float(np.mean(t > AT_CAP * self.cap))
        walk.restore()
        walk.record(since)
        how = "the factors converged" if converged else "the factors still moved"
        text = f"{how} after {len(moved)} moves at C2 = {walk.objective.C2:g}: {len(t)} features"
        text += "" if self.cap is None else f", {at_cap:.0%} of them at the cap"
        if emptied:
            text = f"the penalty removed every feature after {len(moved)} moves ({len(t)} kept): lower C2"
        details = {"C2": walk.objective.C2, "converged": converged, "moves": len(moved), "share_at_cap": at_cap}
        return StopInfo(len(t), text, details, emptied=emptied, trace=tuple(moved))


def without_weights(path: Path) -> Path:
    """The path with the kernel's own weights at every size."""
    return replace(path, weights=(), stages=tuple(replace(stage, weights=()) for stage in path.stages))


class _ScalingWalk:
    """Where the search stands, and what it has left behind."""

    def __init__(self, objective: Objective, eps: float) -> None:
        self.objective, self.eps = objective, eps
        self.point: ScaledPoint = objective.begin()
        self.total: float | None = None
        n = len(objective.start)
        self.kept: BoolArray = np.isin(np.arange(n), objective.problem.keep)
        self.scores = np.zeros(n)
        self.gone: list[IntArray] = []  # worst first
        self.steps: list[Step] = []
        self.weights: list[tuple[IntArray, Array]] = []
        self.stages: list[Path] = []
        self.accepted = self.refused = 0

    def move(self, rule: Update) -> bool:
        """One move along the rule's curve, halved until the re-solved objective does not rise; False if it did not."""
        curve = rule.curve(self.objective, self.point, self.total)
        for _ in range(HALVINGS):
            # The slope belongs to kept coefficients (envelope theorem); whether a move helps is known after solving
            # anew.
            there = self.objective.solve_at(self.point, curve(rule.length))
            if there.value <= self.point.value:
                self.point = there
                self.accepted += 1
                # Careful growth after a success: halving costs a solved machine each time.
                rule.length = min(1.0 if self.total is not None else rule.longest, LONGER * rule.length)
                return True
            self.refused += 1
            rule.length *= 0.5
        return False

    def refill_factors(self) -> Array:
        """(p,) the factors; a feature that stays although its own fell to nothing (kept, or the last) gets it back."""
        start = self.objective.start[self.point.live]
        return np.where(self.point.e < self.eps * start, start, self.point.e)

    def restore(self) -> None:
        """Go on from the factors that it gives."""
        e = self.refill_factors()
        if not np.array_equal(e, self.point.e):
            self.point = self.objective.solve_at(self.point, e)

    def keep_stage(self) -> None:
        """Keep what the search would have settled on if it ended here."""
        e, live = self.refill_factors(), self.point.live
        by_factor = worst_first(e, len(e), self.kept[live])[::-1]
        stop = StopInfo(len(e), "")
        self.stages.append(Path(live[by_factor], e[by_factor], (), "", weights=(e[by_factor] ** 2,), stop=stop))

    def below_eps(self) -> BoolArray:
        """(p,) which live features have a factor of almost nothing; those to keep never have."""
        live = self.point.live
        return np.asarray((self.point.e < self.eps * self.objective.start[live]) & ~self.kept[live])

    def drop(self, count: int) -> None:
        """Drop the features with the smallest factors, all but one at most.

        Where the total is fixed the others go on from mu <- sqrt(mu): a short memory of what they were.
        """
        live, e = self.point.live, self.point.e
        worst = worst_first(e, min(count, len(live) - 1), self.kept[live])
        self.scores[live] = e / self.objective.start[live]
        self.gone.append(live[worst])
        stay = np.setdiff1d(np.arange(len(live)), worst)
        # Without the square root features that fell behind early could hardly come back.
        e = e[stay] if self.total is None else rescale_to(np.sqrt(e[stay]), self.total)
        self.point = self.objective.solve_at(self.point, e, stay)

    def record(self, since: float) -> None:
        """A step of the path at the present features."""
        self.steps.append(step_of(len(self.point.live), self.point.solutions, since))
        self.weights.append((self.point.live, self.point.e**2))

    def path(self, stop: StopInfo | None, reason: str) -> Path:
        live, e = self.point.live, self.point.e
        self.scores[live] = e / self.objective.start[live]
        order = np.concatenate([*self.gone, live])[::-1].astype(np.intp)
        known, steps, weight = {}, {}, np.zeros(len(order))
        for step, (features, mu) in zip(self.steps, self.weights, strict=True):
            if step.size not in steps:  # what the method settled on comes before what ranks it
                weight[features] = mu
                steps[step.size], known[step.size] = step, weight[order[: step.size]].copy()
        return Path(
            order,
            self.scores,
            tuple(steps.values()),
            reason,
            weights=tuple(known.values()),
            stop=stop,
            stages=tuple(self.stages),
        )
