"""Machines for numbers: ridge regression in closed form, support vector regression, and on columns the lasso."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from ..algebra import ColumnView, as_columns
from ..batches import ridge_batches
from ..batches.arrays import Backend, DeviceArray
from ..batches.lockstep import BatchedSolutions
from ..contracts import SIGNS, VALUES, Array, Gram, Matrix, ProblemView, Solution, View, as_gram, is_sparse
from ..errors import InputError, cost_number, positive_number, shown_value, whole_number
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
    in_batches: ClassVar[bool] = True
    tol: ClassVar[float] = ACCURATE

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

    def solve_batched(self, arrays: Backend, K: DeviceArray, y: DeviceArray, cost: DeviceArray) -> BatchedSolutions:
        """Many problems at once: K (F, m, m), y and cost (F, m)."""
        return ridge_batches.ridge(arrays, K, y, cost, None if isinstance(self.penalty, str) else float(self.penalty))

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


class LSSVM(BaseEstimator):
    """The least-squares support vector machine, of numbers or signs, with a cost for each sample.

    ::

        min over c, b of  1/2 c'Kc + C/2 sum_i cost_i (y_i - f_i)^2,      f = Kc + b,   c_i = C cost_i (y_i - f_i)

    `KernelRidge` has the same optimum where its penalty times its trace is 1 / C. Here the penalty does not move with
    the kernel, so that the objective can be differentiated in the kernel's weights, as penalised scaling needs.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import LSSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 10))
    >>> y = 2.0 * X[:, 2] - X[:, 7] + 0.1 * rng.normal(size=60)
    >>> selector = SVMSelector(machine=LSSVM(), outcome="numbers", n_features_to_select=2, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True)
    array([2, 7])
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """The optimum on the gram's kernel matrix; y and cost (m,)."""
        K = as_gram(view).matrix()
        if not np.isfinite(K).all():
            raise InputError(NOT_FINITE)
        best = _ridge.kernel_ridge(K, y, cost, None, 1.0 / self.C)
        value = 0.5 * self.C * best.objective
        return Solution(best.coef, best.intercept, value, best.residual, best.slack, best.residual <= ACCURATE)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def dual(self, solution: Solution, K: Array) -> float:
        """The dual objective y'c - sum c^2 / (2 C cost) - c'Kc / 2 of these coefficients on another kernel matrix."""
        c = solution.coef  # c_i^2 / (C cost_i) = c_i slack_i, and y'c = c'slack + c'Kc on the matrix that was solved
        return float(2.0 * solution.objective - 0.5 * c @ solution.slack - 0.5 * c @ K @ c)

    def weight_gradient(self, solution: Solution, gram: Gram) -> Array:
        """(p,): derivative of the optimal objective in w_j, j live (envelope theorem)."""
        return -0.5 * gram.weight_gradient(solution.coef)

    def contrast(self, problem: ProblemView) -> Array | None:  # noqa: ARG002
        """What penalised scaling weighs the objective against: nothing, since all rows are inside it."""
        return None

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of the regression function."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)


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

    def dual(self, solution: Solution, K: Array) -> float:
        """The dual objective of these coefficients on another kernel matrix: a lower bound of its optimum."""
        c = solution.coef  # at the optimum y'c - epsilon |c| = c'Kc + |c|'slack, since sum(c) = 0
        return float(2.0 * solution.objective - np.abs(c) @ solution.slack - 0.5 * c @ K @ c)

    def weight_gradient(self, solution: Solution, gram: Gram) -> Array:
        """(p,): derivative of the optimal objective in w_j, j live (envelope theorem)."""
        return -0.5 * gram.weight_gradient(solution.coef)

    def contrast(self, problem: ProblemView) -> Array | None:  # noqa: ARG002
        """What penalised scaling weighs the objective against: nothing, since all rows are inside it."""
        return None

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


class Lasso(BaseEstimator):
    """Least squares with an l1 penalty and a cost for each sample; the intercept is not penalized.

    ::

        min over w, b of  |w|_1 / s + C sum_i cost_i ((y_i - w'x_i - b) / s)^2,      s = standard deviation of y

    In units of s, C means the same whatever the unit of y: it is scikit-learn's Lasso with alpha = s / (2 C m), whose
    coordinate descent solves it. `coef` of the solution are c_i = 2 C cost_i (y_i - f_i) / s, so that X'c is the
    gradient that is compared with the penalty's slope of 1.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a squared error of a standard deviation of y.
    tol : float, default=1e-8
        Duality gap at which the solver stops, in units of the sum of squares of y about its mean.
    max_iter : int, default=100000
        Sweeps over the columns after which the solver stops without having converged.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 10))
    >>> y = 2.0 * X[:, 2] - X[:, 7] + 0.1 * rng.normal(size=60)
    >>> parts = {"machine": Lasso(), "criterion": None, "search": "learned", "outcome": "numbers"}
    >>> SVMSelector(**parts, n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True)
    array([2, 7])
    """

    needs = "columns"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({VALUES})

    def __init__(self, C: float = 1.0, tol: float = 1e-8, max_iter: int = 100_000) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """The optimum on the view's columns; y and cost (m,)."""
        return next(self.solve_path(view, y, cost, np.array([self.C])))

    def solve_path(self, view: View, y: Array, cost: Array, prices: Array) -> Iterator[Solution]:
        """The optima at rising values of C, each from the one before."""
        columns = as_columns(view)
        X, mean, values, unit, root = self._standardize(columns, y, cost)
        known = len(values) * (values @ values > 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the solution says so
            _, weights, gaps = lasso_path(
                X,
                values,
                alphas=1.0 / (2.0 * np.asarray(prices) * len(y)),
                tol=self.tol,
                max_iter=int(self.max_iter),
            )
        scale = np.sqrt(columns.weight)
        for C, w, gap in zip(prices, weights.T, gaps, strict=True):
            rest = values - X @ w
            residual = float(gap * known / max(float(values @ values), 1e-300))
            value = float(np.abs(w).sum() + C * rest @ rest)
            weight = scale * w * unit
            slope = w * unit
            intercept = float(cost @ y / cost.sum() - mean @ slope)
            error = y - columns.X @ slope - intercept
            coef = 2.0 * C * root * rest
            converged = residual <= self.tol
            yield Solution(coef, intercept, value, residual, error, converged, weights=weight)

    def _standardize(self, columns: ColumnView, y: Array, cost: Array) -> tuple[Array, Array, Array, float, Array]:
        """Columns and outcome about their means times the roots of the costs, the means, the unit and the roots."""
        X, root, share = columns.X, np.sqrt(cost), cost / cost.sum()
        X = X.toarray() if is_sparse(X) else np.asarray(X)
        if not np.isfinite(X.sum()):
            raise InputError("the table holds values that are not finite or too large: use standardize=True")
        mean, away = share @ X, y - share @ y
        unit = float(np.sqrt(share @ away**2)) or 1.0
        return np.asfortranarray((X - mean) * root[:, None]), mean, root * away / unit, unit, root

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        columns = as_columns(view)
        return np.asarray(Z[:, columns.features] @ solution.weights + solution.intercept)

    def first(self, view: View, y: Array, cost: Array) -> float:
        """The C above which some weight differs from 0."""
        X, _, values, _, _ = self._standardize(as_columns(view), y, cost)
        largest = float(np.abs(values @ X).max(initial=0.0))
        return 0.5 / largest if largest > 0 else float("inf")

    def pull(self, solution: Solution, view: View) -> Array:
        """(p,) the gradient at zero weight, in units of the penalty's: at most 1 where a feature has no weight."""
        return np.asarray(np.abs(solution.coef @ as_columns(view).X))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)
        positive_number("machine", "tol", self.tol)
        whole_number("machine", "max_iter", self.max_iter)
