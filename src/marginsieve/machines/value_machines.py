"""Machines for numbers on a kernel: ridge regression in closed form, and support vector regression."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..contracts import SIGNS, VALUES, Array, Gram, Matrix, Solution, View, as_gram, is_sparse
from ..errors import InputError, cost_number, positive_number, shown_value
from ..solvers import ridge as _ridge
from ..solvers import smo as _smo
from .kernel_machines import FINER, NOT_FINITE

LEAVE_ONE_OUT = "leave-one-out"
ACCURATE = 1e-6  # the relative residual up to which a system counts as solved


class KernelRidge(BaseEstimator):
    """Kernel ridge regression with a cost for each sample, in closed form.

    ::

        min over c, b of  sum_i cost_i (y_i - f_i)^2 + penalty * trace * c'Kc,      f = Kc + b
        trace = sum_i cost_i |phi_i - mean|^2

    phi are the rows in the kernel's space and `mean` is their weighted mean: a penalty means the same whatever the
    scale and the number of the features. The intercept is free. Of two classes, as -1 and +1, this is the least-squares
    support vector machine.

    Parameters
    ----------
    penalty : "leave-one-out" or float, default="leave-one-out"
        Penalty on the squared norm, in units of the trace. "leave-one-out" takes the one of 1e-5 to 1e2, in steps of
        half a power of ten, whose leave-one-out values have the smallest squared error, which costs one factoring.
        Rows of a group are left out one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import KernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 10))
    >>> y = 2.0 * X[:, 2] - X[:, 7] + 0.1 * rng.normal(size=60)
    >>> selector = SVMSelector(machine=KernelRidge(), outcome="numbers", n_features_to_select=2, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True)
    array([2, 7])
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})

    def __init__(self, penalty: float | str = LEAVE_ONE_OUT) -> None:
        self.penalty = penalty

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """The optimum on the gram's kernel matrix; y and cost (m,)."""
        gram = as_gram(view)
        share = None if isinstance(self.penalty, str) else float(self.penalty)
        factor = gram.factor
        thin = factor is not None and not is_sparse(factor)
        matrix = np.asarray(factor if thin else gram.matrix())
        if not np.isfinite(matrix).all():
            raise InputError(NOT_FINITE)
        best = (_ridge.factor_ridge if thin else _ridge.kernel_ridge)(matrix, y, cost, share)
        return Solution(best.coef, best.intercept, best.objective, best.residual, best.slack, best.residual <= ACCURATE)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of the regression function."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        if isinstance(self.penalty, str):
            if self.penalty != LEAVE_ONE_OUT:
                raise InputError(
                    f"machine: penalty is {shown_value(self.penalty)}; it must be {LEAVE_ONE_OUT!r} or a positive "
                    "number"
                )
        else:
            positive_number("machine", "penalty", self.penalty)


class SVR(BaseEstimator):
    """Support vector regression with a cost for each sample: errors up to epsilon cost nothing.

    ::

        max_c  y'c - epsilon |c|_1 - 1/2 c'Kc,   sum(c) = 0,   -C * cost_i <= c_i <= C * cost_i

    Parameters
    ----------
    C : float, default=1.0
        Cost of an error beyond epsilon, in units of y.
    epsilon : float, default=0.1
        Errors up to here cost nothing, in units of y.
    tol : float, default=1e-6
        KKT violation at which the solver stops, in units of the standard deviation of y.
    max_iter : int or None, default=None
        Pair steps after which the solver stops without having converged; None is max(10^6, 1000 m).

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import SVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 10))
    >>> y = 2.0 * X[:, 2] - X[:, 7] + 0.1 * rng.normal(size=60)
    >>> selector = SVMSelector(machine=SVR(), outcome="numbers", n_features_to_select=2, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True)
    array([2, 7])
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})

    def __init__(self, C: float = 1.0, epsilon: float = 0.1, tol: float = 1e-6, max_iter: int | None = None) -> None:
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum on the gram's kernel matrix; y and cost (m,)."""
        K, m = as_gram(view).matrix(), len(y)
        if not np.isfinite(K).all():
            raise InputError(NOT_FINITE)
        part, top = np.flatnonzero(cost > 0), self.C * cost
        # c = rising - falling, each between 0 and its bound: the price epsilon |c| is then linear, and the rest is the
        # quadratic program of a C-SVC with every row twice.
        inner = K if len(part) == m else K[np.ix_(part, part)]
        bound, centre = top[part], float(cost @ y / cost.sum())
        values = y[part] - centre
        unit = float(np.sqrt(cost[part] @ values**2 / cost.sum())) or 1.0
        start = np.zeros(len(part)) if warm is None else balance_sides(np.clip(warm.coef[part], -bound, bound))
        limit = max(1_000_000, 1000 * m) if self.max_iter is None else int(self.max_iter)
        best = _smo.quadratic(
            np.tile(inner, (2, 2)),
            np.concatenate([values - self.epsilon, values + self.epsilon]),
            np.concatenate([np.zeros(len(part)), -bound]),
            np.concatenate([bound, np.zeros(len(part))]),
            np.concatenate([np.maximum(start, 0.0), np.minimum(start, 0.0)]),
            self.tol * unit,
            limit,
        )
        coef = np.zeros(m)
        coef[part] = best.c[: len(part)] + best.c[len(part) :]
        intercept, residual = best.multiplier + centre, best.violation / unit
        slack = np.maximum(np.abs(y - K @ coef - intercept) - self.epsilon, 0.0)
        return Solution(coef, float(intercept), best.objective, residual, slack, residual <= self.tol)

    def refine(self, solution: Solution, view: View, y: Array, cost: Array) -> Solution:
        """The optimum to a thousandth of the tolerance, which is not missed where it is not reached."""
        tight: Solution = clone(self).set_params(tol=FINER * self.tol).solve(view, y, cost, solution)
        return replace(tight, converged=tight.residual <= self.tol)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of the regression function."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)
        positive_number("machine", "tol", self.tol)
        if self.epsilon != 0:
            positive_number("machine", "epsilon", self.epsilon)
        if self.max_iter is not None:
            positive_number("machine", "max_iter", self.max_iter)


def balance_sides(c: Array) -> Array:
    """The coefficients with the heavier side scaled down, so that they sum to 0."""
    above, below = float(np.maximum(c, 0.0).sum()), float(-np.minimum(c, 0.0).sum())
    if above > below:
        return np.asarray(np.where(c > 0, c * (below / above), c))
    return np.asarray(np.where(c < 0, c * (above / below), c)) if below > above else c
