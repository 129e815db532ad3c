"""The cost-sensitive support vector classifier on a precomputed kernel matrix."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from ..batches import lockstep
from ..batches.arrays import Backend, DeviceArray
from ..batches.lockstep import BatchedSolutions
from ..contracts import Array, Gram, Matrix, ProblemView, Resources, Solution, View, as_gram, is_sparse
from ..errors import InputError, cost_number, positive_number
from ..solvers import interior_point, sparse_rows
from ..solvers import smo as _smo

FINER = 1e-3  # of the tolerance: how tightly the machine of a model is solved, so that equal data predict equally
MOST_ROWS = 3000  # up to which pair steps go on where the interior point stops short
NOT_FINITE = "the kernel matrix holds values that are not finite: use standardize=True or a lower degree"


class CSVC(BaseEstimator):
    """C-SVC with a separate cost for each sample.

    ::

        max_alpha  sum(alpha) - 1/2 c'Kc,   c = alpha * y,   sum(c) = 0,   0 <= alpha_i <= C * cost_i

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error.
    tol : float, default=1e-6
        KKT violation at which the solver stops, in units of the margin.
    max_iter : int or None, default=None
        Pair steps after which the solver stops without having converged; None is max(10^6, 1000 m).

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import CSVC
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(machine=CSVC(C=10.0), n_features_to_select=2, standardize=True, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    resources = Resources(linear_in_rows=True)
    in_batches: ClassVar[bool] = True

    def __init__(self, C: float = 1.0, tol: float = 1e-6, max_iter: int | None = None) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum on the gram's kernel matrix; y (m,) in {-1, +1}, cost (m,)."""
        gram, top = as_gram(view), self.C * cost
        if gram.on_device is not None:
            return self._on_device(gram, y, cost, warm)
        start = np.zeros(len(y)) if warm is None else warm.coef
        if (factor := gram.factor) is None:
            if not gram.rows_at_once:
                return self.solve_matrix(gram.matrix(), y, cost, start)
            room, limit = gram.rows_at_once, self._limit(y)  # K is never whole
            return self._solution(_smo.svc_by_parts(gram.apply, gram.submatrix, y, top, start, self.tol, limit, room))
        if is_sparse(factor):
            return self._solution(sparse_rows.svc(sparse.csr_array(factor.T), y, top, self.tol, start))
        if not np.isfinite(factor).all():
            raise InputError(NOT_FINITE)
        solution = self._solution(interior_point.svc(factor, y, top, self.tol))
        # The interior point may stop just short where the kernel matrix is nearly singular: pair steps finish.
        if solution.converged or len(y) > MOST_ROWS:
            return solution
        return self.solve_matrix(gram.matrix(), y, cost, solution.coef)

    def solve_batched(self, arrays: Backend, K: DeviceArray, y: DeviceArray, cost: DeviceArray) -> BatchedSolutions:
        """Many problems in step: K (F, m, m), y and cost (F, m); what misses the tolerance is solved one by one."""
        machines = lockstep.svc(arrays, K, y, self.C * cost, self.tol)
        short = np.flatnonzero(arrays.to_host(machines.violation) > self.tol)
        if not len(short):
            return machines
        coef, intercept, objective, violation = (arrays.to_host(part).copy() for part in astuple(machines))
        labels, costs = arrays.to_host(y), arrays.to_host(cost)
        for f in short:
            solution = self.solve_matrix(np.ascontiguousarray(arrays.to_host(K[f])), labels[f], costs[f], coef[f])
            coef[f], intercept[f] = solution.coef, solution.intercept
            objective[f], violation[f] = solution.objective, solution.residual
        return BatchedSolutions(*(arrays.to_device(part) for part in (coef, intercept, objective, violation)))

    def refine(self, solution: Solution, view: View, y: Array, cost: Array) -> Solution:
        """The optimum to a thousandth of the tolerance, which is not missed where it is not reached."""
        # Two fits of equal data that took different ways differ within the tolerance, and so would their predictions.
        if solution.residual <= FINER * self.tol:
            return solution
        tight: Solution = clone(self).set_params(tol=FINER * self.tol).solve(view, y, cost, solution)
        return replace(tight, converged=tight.residual <= self.tol)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        gram = as_gram(view)
        return gram.apply(solution.coef, Z) + solution.intercept

    def dual(self, solution: Solution, K: Array) -> float:
        """The dual objective of these coefficients on another kernel matrix: a lower bound of its optimum."""
        c = solution.coef
        return float(np.abs(c).sum() - 0.5 * c @ K @ c)

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of w, whose inverse is the squared margin."""
        return float(solution.coef @ gram.apply(solution.coef))

    def weight_gradient(self, solution: Solution, gram: Gram) -> Array:
        """(p,): derivative of the optimal objective in w_j, j live (envelope theorem)."""
        return -0.5 * gram.weight_gradient(solution.coef)

    def contrast(self, problem: ProblemView) -> Array | None:  # noqa: ARG002
        """What penalised scaling weighs the objective against: nothing, since both classes are inside it."""
        return None

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)
        positive_number("machine", "tol", self.tol)
        if self.max_iter is not None:
            positive_number("machine", "max_iter", self.max_iter)

    def _on_device(self, gram: Gram, y: Array, cost: Array, warm: Solution | None) -> Solution:
        """The optimum on a kernel matrix on a device."""
        arrays: Backend = gram.table.arrays
        K = gram.on_device
        labels, top = arrays.to_device(y), arrays.to_device(self.C * cost)
        machine: BatchedSolutions | None = None
        if warm is not None:
            machine = lockstep.svc_near(arrays, K, labels, top, arrays.to_device(warm.coef), self.tol)
        if machine is None:  # a cold start, or one that was too far from the optimum
            machine = self.solve_batched(arrays, K[None], labels[None], arrays.to_device(cost[None]))
        coef, intercept, objective, violation = (arrays.to_host(part)[0] for part in astuple(machine))
        f = arrays.to_host(K @ machine.coef[0])
        if not np.isfinite(f).all():
            raise InputError(NOT_FINITE)
        slack = np.maximum(0.0, 1.0 - y * (f + intercept))
        return Solution(coef, float(intercept), float(objective), float(violation), slack, violation <= self.tol)

    def _limit(self, y: Array) -> int:
        return max(1_000_000, 1000 * len(y)) if self.max_iter is None else int(self.max_iter)

    def _solution(self, optimum: _smo.SVCOptimum) -> Solution:
        c, b, objective, slack, residual = optimum
        if residual >= _smo.HUGE:
            raise InputError(NOT_FINITE)
        return Solution(c, b, objective, residual, slack, residual <= self.tol)

    def solve_matrix(self, K: Array, y: Array, cost: Array, start: Array) -> Solution:
        """The optimum on a kernel matrix, from any coefficients."""
        return self._solution(_smo.svc(K, y, self.C * cost, start, self.tol, self._limit(y)))
