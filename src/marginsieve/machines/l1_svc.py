"""The cost-sensitive support vector classifier with an l1 penalty and squared hinge loss; linear kernel only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..algebra import ColumnView, as_columns
from ..contracts import Array, Matrix, Resources, Solution, View
from ..errors import InputError, cost_number, positive_number, whole_number
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
