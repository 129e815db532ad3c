"""Machines for times to an event, which may not have been seen: ridge on martingale residuals, proportional hazards."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import TIMES, Array, Gram, Matrix, Solution, View, as_gram
from ..errors import InputError
from ..solvers.cox import RiskSets, fit_cox
from ..solvers.ridge import centred_coordinates, leave_one_out_share
from .kernel_machines import NOT_FINITE
from .value_machines import ACCURATE, LEAVE_ONE_OUT, KernelRidge

LEAST = 1e-3  # of the penalties that leave-one-out may choose: with less, few events are told apart without an error
MOST_DIRECTIONS = 400  # of the kernel's space that proportional hazards are fitted in, the leading ones


def risk_sets(y: Array, cost: Array) -> RiskSets:
    """Who is at risk when, from places in time y (m,), below 0 where no event was seen, and weights (m,)."""
    return RiskSets(np.abs(y), y > 0, cost)


class MartingaleRidge(BaseEstimator):
    """Kernel ridge regression on the martingale residuals of these rows: events less the hazard that all rows share.

    ::

        M_i = event_i - H(t_i),     H the Nelson-Aalen estimate of the cumulative hazard

    The residuals are computed anew from the rows of every fit. They are the derivative of the partial likelihood at no
    effect, so that this is the first step of proportional hazards, in closed form: it ranks features quickly. For a
    prediction use `CoxRidge`.

    Parameters
    ----------
    penalty : "leave-one-out" or float, default="leave-one-out"
        As in `KernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import MartingaleRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10))
    >>> y = np.column_stack([rng.exponential(np.exp(-2.0 * X[:, 3])), np.ones(100)])
    >>> selector = SVMSelector(
    ...     machine=MartingaleRidge(0.1), outcome="survival", n_features_to_select=1, random_state=0
    ... )
    >>> selector.fit(X, y).get_support(indices=True)
    array([3])
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({TIMES})

    def __init__(self, penalty: float | str = LEAVE_ONE_OUT) -> None:
        self.penalty = penalty

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum on the gram's kernel matrix; y (m,) places in time, cost (m,)."""
        part = cost > 0
        residual = np.zeros(len(y))
        residual[part] = risk_sets(y[part], cost[part]).martingale(np.zeros(int(part.sum())))
        return KernelRidge(self.penalty).solve(view, residual, cost, warm)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z, higher where the event is expected earlier."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of the regression function."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        KernelRidge(self.penalty).check()


class CoxRidge(BaseEstimator):
    """Proportional hazards with a ridge penalty on a kernel (Breslow's handling of equal times).

    ::

        max over c of  log partial likelihood(Kc) / events - penalty * length / 2 * c'Kc
        length = sum_i cost_i |phi_i - mean|^2 / sum_i cost_i

    At the optimum c = (event - exp(f) H) / (penalty * length * events): the martingale residuals of the fitted model,
    so that the change of c'Kc without a feature judges features as it does for other machines. f has mean 0 over the
    training rows. Tables with more rows than `MOST_DIRECTIONS` = 400 are fitted in that many leading directions of the
    kernel's space.

    Parameters
    ----------
    penalty : "leave-one-out" or float, default="leave-one-out"
        Penalty on the squared norm. "leave-one-out" takes that of ridge regression on the martingale residuals, which
        is the first step of this fit, from 1e-3 to 1e2.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import CoxRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10))
    >>> y = np.column_stack([rng.exponential(np.exp(-2.0 * X[:, 3])), np.ones(100)])
    >>> selector = SVMSelector(machine=CoxRidge(), outcome="survival", n_features_to_select=1, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True)
    array([3])
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({TIMES})

    def __init__(self, penalty: float | str = LEAVE_ONE_OUT) -> None:
        self.penalty = penalty

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """The optimum on the gram's kernel matrix; y (m,) places in time, cost (m,)."""
        K, part = as_gram(view).matrix(), np.flatnonzero(cost > 0)
        if not np.isfinite(K).all():
            raise InputError(NOT_FINITE)
        inner, weight = K[np.ix_(part, part)], cost[part]
        sets = risk_sets(y[part], weight)
        rows, trace = centred_coordinates(inner, weight)
        if trace <= 0 or sets.events <= 0:
            return Solution(np.zeros(len(y)), 0.0, 0.0, 0.0, np.zeros(len(y)))
        rows = rows[:, -MOST_DIRECTIONS:]  # the leading directions come last
        share = self._share(rows, sets)
        penalty = share * trace / float(weight.sum())
        best = fit_cox(rows, sets, penalty)
        known = sets.martingale(best.eta)
        coef, slack = np.zeros(len(y)), np.zeros(len(y))
        inside = weight * known / (penalty * sets.events)
        if rows.shape[1] == MOST_DIRECTIONS:
            # In fewer directions than the kernel has, coefficients within these give their values. They have to sum to
            # 0, and the weights' own direction is one that the centred kernel does not see.
            inside = rows @ (best.weights / (rows**2).sum(axis=0))
            inside = inside - weight / weight.sum() * inside.sum()
        coef[part], slack[part] = inside, known
        largest = float(np.abs(rows.T @ (weight * sets.martingale(np.zeros(len(part))))).max(initial=0.0)) / sets.events
        residual = best.slope / max(largest, 1e-300)
        intercept = -float((weight / weight.sum()) @ (inner @ coef[part]))
        return Solution(coef, intercept, best.objective, residual, slack, residual <= ACCURATE)

    def _share(self, rows: Array, sets: RiskSets) -> float:
        """The penalty in units of the mean squared length."""
        if not isinstance(self.penalty, str):
            return float(self.penalty)
        return max(leave_one_out_share(rows, sets.martingale(np.zeros(len(rows))), sets.weight), LEAST)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z: the logarithm of the hazard ratio, higher where the event is expected earlier."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of the logarithm of the hazard ratio."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        KernelRidge(self.penalty).check()
