"""What penalised scaling minimises, as a function of the scaling factors of the live features.

    Phi(e) = J(e) + P(e)                     direction "min-max"
    Phi(e) = log J(e) - log sum_j e_j^2 V_j + P(e)    the same, for a machine with a contrast V (SVDD with outliers)
    Phi(e) = -J(e) + P(e)                    direction "as-printed"

J is the machine's optimal objective, summed over the binary problems; e_j^2 is the weight of feature j in the kernel
(its divisor included). The penalty is of t = e / e_start:

    concave  P = C2 * unit / n * sum(1 - exp(-beta t_j)),     l1  P = C2 * unit / n * sum(t_j)

with unit = J at the start (1 for the logarithm), or as printed, in e itself: C2 * sum(1 - exp(-beta e_j)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..algebra.smooth import MOST_ON
from ..contracts import Array, Gram, IntArray, ProblemView, Scalable, Solution

TINY = 1e-300


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
        solutions = tuple(replace(solution, coef=solution.coef[rows]) for solution in point.solutions)
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
