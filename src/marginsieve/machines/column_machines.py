"""Linear machines on columns, which choose features: l1 with squared hinge; hinge, ramp, concave by linear programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..algebra import ColumnView, as_columns
from ..contracts import Array, Matrix, Resources, Solution, View
from ..errors import InputError, cost_number, positive_number, whole_number
from ..solvers import programs
from ..solvers import ramp_descent as _ramp
from ..solvers.squared_hinge import SquaredHinge, first, objective

FINER = 1e-3  # of the tolerance: how tightly the machine of a model is solved, so that equal data predict equally


class L1SVC(BaseEstimator):
    """A sparse linear machine with a separate cost for each sample; the intercept is not penalized.

    ::

        min_{w, b}  |w|_1 + C sum_i cost_i max(0, 1 - y_i (w'x_i + b))^2

    `weights` of the solution are w; `coef` are the dual variables c_i = 2 C cost_i y_i max(0, 1 - y_i f_i), so that X'c
    is the gradient that is compared with the penalty's slope of 1.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error.
    tol : float, default=1e-6
        KKT violation at which the solver stops, in units of the penalty's slope.
    max_iter : int, default=1000
        Rounds of coordinate sweeps and Newton steps after which the solver stops without having converged.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import L1SVC
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(machine=L1SVC(C=0.1), criterion=None, search="learned", n_features_to_select=2)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    needs = "columns"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    resources = Resources(linear_in_rows=True)

    def __init__(self, C: float = 1.0, tol: float = 1e-6, max_iter: int = 1000) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum on the view's columns; y (m,) in {-1, +1}, cost (m,)."""
        live = as_columns(view)
        program = self._program(live, y, cost)
        if warm is not None and warm.weights is not None:
            # The program works on scaled columns sqrt(w_j) x_j, whose weights are those of the solution over sqrt(w_j).
            scale = np.sqrt(live.weight)
            program.start(warm.weights / np.where(scale > 0, scale, 1.0), warm.intercept)
        else:
            program.begin(self.C, int(self.max_iter))
        return self._solution(program, live, y, cost, self.C)

    def solve_path(self, view: View, y: Array, cost: Array, prices: Array) -> Iterator[Solution]:
        """The optima at rising values of C, each from the one before."""
        live = as_columns(view)
        program = self._program(live, y, cost)
        for C in prices:
            yield self._solution(program, live, y, cost, float(C))

    def _program(self, live: ColumnView, y: Array, cost: Array) -> SquaredHinge:
        # A sum is not finite where some cell is not: no mask of the table's size.
        columns = live.by_rows
        if not np.isfinite(columns.sum()):
            raise InputError("the table holds values that are not finite or too large: use standardize=True")
        return SquaredHinge(columns, np.sqrt(live.weight), y, cost)

    def _solution(self, program: SquaredHinge, live: ColumnView, y: Array, cost: Array, C: float) -> Solution:
        w, b, f, c, violation = program.solve(C, self.tol, int(self.max_iter))
        slack = np.maximum(0.0, 1.0 - y * f)
        value = objective(w, f, y, C * cost)
        return Solution(c, b, value, violation, slack, violation <= self.tol, weights=np.sqrt(live.weight) * w)

    def refine(self, solution: Solution, view: View, y: Array, cost: Array) -> Solution:
        """The optimum to a thousandth of the tolerance, which is not missed where it is not reached."""
        tight: Solution = clone(self).set_params(tol=FINER * self.tol).solve(view, y, cost, solution)
        return replace(tight, converged=tight.residual <= self.tol)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        columns = as_columns(view)
        return np.asarray(Z[:, columns.features] @ solution.weights + solution.intercept)

    def first(self, view: View, y: Array, cost: Array) -> float:
        """The C above which some weight differs from 0."""
        columns = as_columns(view)
        return first(columns.by_rows, np.sqrt(columns.weight), y, cost)

    def pull(self, solution: Solution, view: View) -> Array:
        """(p,) the gradient at zero weight, in units of the penalty's: at most 1 where a feature has no weight."""
        columns = as_columns(view)
        return np.asarray(np.abs(np.sqrt(columns.weight) * np.asarray(columns.by_rows @ solution.coef)))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)
        positive_number("machine", "tol", self.tol)
        whole_number("machine", "max_iter", self.max_iter)


# Sparse linear machines by linear programs: the l1 penalty with hinge loss, and a concave penalty in its place.

HIGHEST = 1e9  # a C at which no weight enters is taken to be too high for any
GUESSED: dict[str, Any] = {"bound": float("nan"), "status": "heuristic"}  # a local answer has no bound
FALL = 1e-9  # of the objective: what counts as a fall


class LinearProgramMixin:
    """What machines solved by linear programs share: they read columns; a category has a weight for each level."""

    needs = "columns"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset({"nominal"})

    C: float

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        columns = as_columns(view)
        return np.asarray(columns.rows(Z) @ solution.expanded + solution.intercept)

    def first(self, view: View, y: Array, cost: Array) -> float:
        """The C above which some weight differs from 0."""
        columns = as_columns(view)
        # The pulls at w = 0 grow in proportion to C, and a weight enters where the hardest is 1.
        pull = programs.least_pull(programs.HingeData(columns.X, y, cost))
        return 1.0 / pull if pull * HIGHEST > 1.0 else float("inf")

    def solve_path(self, view: View, y: Array, cost: Array, prices: Array) -> Iterator[Solution]:
        """The optima at rising values of C, each from the one before."""
        solution: Solution | None = None
        for C in prices:
            solution = clone(self).set_params(C=float(C)).solve(view, y, cost, solution)
            yield solution

    def pull(self, solution: Solution, view: View) -> Array:
        """(p,) the gradient at zero weight, in units of the penalty's: at most 1 where a feature has no weight."""
        columns = as_columns(view)
        return columns.by_feature(np.abs(np.asarray(solution.coef @ columns.X)))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)


class HingeSVC(LinearProgramMixin, BaseEstimator):
    """A sparse linear machine with a separate cost for each sample, as a linear program (SVM-l1).

    ::

        min_{w, b}  |w|_1 + C sum_i cost_i max(0, 1 - y_i (w'x_i + b))

    A category has one weight for each level. `coef` of the solution are the dual variables times y: ``|X'coef| <= 1``.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import HingeSVC
    >>> from marginsieve.searches import LearnedPath
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = LearnedPath(points=10)
    >>> selector = SVMSelector(machine=HingeSVC(C=1.0), criterion=None, search=search, n_features_to_select=2)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    truncated = False

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum on the columns; y (m,) in {-1, +1}, cost (m,)."""
        columns = as_columns(view)
        data = programs.HingeData(columns.X, y, self.C * cost)
        near = None
        if warm is not None and warm.expanded is not None and len(warm.expanded) == len(columns.owner):
            near = warm.expanded, warm.coef
        return _solution(data, columns, programs.solve_hinge(data, near))


class RampSVC(LinearProgramMixin, BaseEstimator):
    """A sparse linear machine with the ramp loss (RL-l1-M): beyond the opposite margin a sample costs 2, no more.

    ::

        min_{w, b}  |w|_1 + C sum_i cost_i min(2, max(0, 1 - y_i (w'x_i + b)))

    It is solved by the concave-convex procedure, starting from the hinge loss: samples beyond the ramp are left out and
    the program is solved on the others, until the objective stops falling; this gives a local optimum. `slack` of the
    solution is what each sample lacks to its margin; a sample above 2 was left out, and its label is suspect.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import RampSVC
    >>> from marginsieve.searches import LearnedPath
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(
    ...     machine=RampSVC(C=1.0), criterion=None, search=LearnedPath(points=10), n_features_to_select=2, resamples=0
    ... )
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    truncated = True

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """A local optimum on the columns; y (m,) in {-1, +1}, cost (m,)."""
        columns = as_columns(view)
        data = programs.HingeData(columns.X, y, self.C * cost)
        # A budget of all features at a cost of 1 each is none.
        features = len(columns.features)
        point = _ramp.descend_everywhere(_ramp.Ramp(data, columns.owner, np.ones(features), float(features)))
        fit = programs.Fit(point.columns, point.w, point.b, point.alpha, point.F)
        return replace(_solution(data, columns, fit), objective=point.F, residual=0.0, converged=True, **GUESSED)


class ConcaveSVC(LinearProgramMixin, BaseEstimator):
    """Feature selection by a concave penalty (FSV): nearly the number of weights that differ from 0.

    ::

        min_{w, b}  sum_k (1 - exp(-beta |w_k|)) + C sum_i cost_i max(0, 1 - y_i (w'x_i + b))

    It is solved by successive linearization from w = 0: each step is the l1 machine with the penalty ``beta exp(-beta
    |w_k|)`` on weight k. The objective never rises, since the linearization lies above it. The procedure ends where the
    objective does not fall, at a local optimum.

    Parameters
    ----------
    C : float, default=10.0
        Cost of a margin error.
    beta : float, default=5.0
        How fast the penalty saturates with the size of a weight.
    max_iter : int, default=100
        Largest number of linear programs.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import ConcaveSVC
    >>> from marginsieve.searches import LearnedPath
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = LearnedPath(points=10)
    >>> selector = SVMSelector(machine=ConcaveSVC(C=10.0), criterion=None, search=search, n_features_to_select=2)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    def __init__(self, C: float = 10.0, beta: float = 5.0, max_iter: int = 100) -> None:
        self.C = C
        self.beta = beta
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """A local optimum on the columns; `residual` is the last fall of the objective, of its size."""
        columns = as_columns(view)
        data = programs.HingeData(columns.X, y, self.C * cost)
        weight, best, value, fall, steps = np.zeros(len(columns.owner)), None, np.inf, np.inf, 0
        program = programs.begin(data, self.beta * np.ones(len(weight)))
        while steps < self.max_iter:
            steps += 1
            fit = programs.finish(program)
            there = self.value(data, fit)
            fall = (value - there) / max(abs(there), 1e-300)
            if best is not None and fall <= FALL:
                break
            best, value = fit, there
            weight[:] = 0.0
            weight[fit.columns] = np.abs(fit.w)
            # The tangent at |w_k| in place of 1 - exp(-beta |w_k|): it lies above, so the objective cannot rise.
            program.reprice(self.beta * np.exp(-self.beta * weight))
        assert best is not None
        solution, done = _solution(data, columns, best), bool(fall <= FALL)
        return replace(
            solution, objective=value, residual=max(float(fall), 0.0), converged=done, iterations=steps, **GUESSED
        )

    def value(self, data: programs.HingeData, fit: programs.Fit) -> float:
        """The objective at a program's answer."""
        outside = np.maximum(0.0, data.outside(fit.w, fit.b, fit.columns))
        return float(-np.expm1(-self.beta * np.abs(fit.w)).sum() + data.top @ outside)

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)
        positive_number("machine", "beta", self.beta)
        whole_number("machine", "max_iter", self.max_iter)


def _solution(data: programs.HingeData, view: ColumnView, fit: programs.Fit) -> Solution:
    """A program's answer; `residual` is its duality gap recomputed from w and b, of the objective."""
    outside = np.maximum(0.0, data.outside(fit.w, fit.b, fit.columns))
    primal = float(np.abs(fit.w).sum() + data.top @ outside)
    gap = abs(primal - fit.value) / max(primal, 1e-300)
    expanded = np.zeros(len(view.owner))
    expanded[fit.columns] = fit.w
    return Solution(
        fit.alpha * data.y,
        fit.b,
        primal,
        gap,
        outside,
        gap <= programs.GAP,
        # A category counts by the largest weight of its levels.
        weights=view.by_feature(np.abs(expanded)),
        expanded=expanded,
        bound=min(fit.value, primal),
        status="optimal" if gap <= programs.GAP else "limit",
    )
