"""Machines for times to an event, which may not have been seen: ridge regression on martingale residuals, proportional
hazards, and a support vector machine that ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import TIMES, Array, Gram, IntArray, Matrix, Solution, View, as_gram
from ..errors import InputError, positive_number
from ..solvers.comparable_pairs import ComparablePairs, fit_pairs
from ..solvers.cox import RiskSets, fit_cox
from ..solvers.ridge import centred_coordinates, leave_one_out_share
from .kernel_machines import NOT_FINITE
from .value_machines import ACCURATE, LEAVE_ONE_OUT, KernelRidge

# Columns of a list were chosen because they go with the residuals of these very rows, which leave-one-out on the list
# does not see: it takes far too small a penalty. A penalty of 1 / (V * events) is a normal prior of variance V for a
# row's logarithm of the hazard ratio; with V = 0.5 risks have C = 0.67 on average.
PRIOR_VARIANCE = 0.5
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


def choose_share(rows: Array, sets: RiskSets) -> float:
    """The penalty that leave-one-out chooses for coordinates (m, r), in units of the mean squared length."""
    least = 1.0 / (PRIOR_VARIANCE * sets.events)
    return max(leave_one_out_share(rows, sets.martingale(np.zeros(len(rows))), sets.weight), least)


@dataclass(frozen=True)
class KernelSpace:
    """The rows with a cost in coordinates of a kernel's space about their mean: the leading ones of many.

    Parameters
    ----------
    K : array of shape (m, m)
        The kernel matrix.
    part : array of int of shape (rows,)
        The rows with a cost.
    weight : array of shape (rows,)
        Their costs.
    rows : array of shape (rows, r)
        The coordinates.
    length : float
        The mean squared length of a row.
    """

    K: Array
    part: IntArray
    weight: Array
    rows: Array
    length: float

    @classmethod
    def from_gram(cls, gram: Gram, cost: Array) -> KernelSpace:
        """Of the rows with a cost (m,) above 0."""
        K, part = gram.matrix(), np.flatnonzero(cost > 0)
        if not np.isfinite(K).all():
            raise InputError(NOT_FINITE)
        rows, trace = centred_coordinates(K[np.ix_(part, part)], cost[part])
        # the leading directions come last
        return cls(K, part, cost[part], rows[:, -MOST_DIRECTIONS:], trace / float(cost.sum()))

    def nothing(self) -> Solution:
        """What is the same in every row."""
        return Solution(np.zeros(len(self.K)), 0.0, 0.0, 0.0, np.zeros(len(self.K)))

    def solution(self, inside: Array, weights: Array, objective: float, residual: float, evidence: Array) -> Solution:
        """Coefficients (rows,) and evidence of the rows with a cost, the values with mean 0 over these.

        Where there are fewer directions than the kernel has, coefficients within these give the values of the weights
        (r,): they have to sum to 0, and the costs' own direction is one that the centred kernel does not see.
        """
        if self.rows.shape[1] == MOST_DIRECTIONS:
            inside = self.rows @ (weights / (self.rows**2).sum(axis=0))
            inside = inside - self.weight / self.weight.sum() * inside.sum()
        coef, slack = np.zeros(len(self.K)), np.zeros(len(self.K))
        coef[self.part], slack[self.part] = inside, evidence
        intercept = -float((self.weight / self.weight.sum()) @ (self.K[np.ix_(self.part, self.part)] @ inside))
        return Solution(coef, intercept, objective, residual, slack, residual <= ACCURATE)


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
        is the first step of this fit, from 2 / events to 1e2: 2 / events is a normal prior with variance 0.5 of a row's
        logarithm of the hazard ratio. With less, a list that was chosen on the same rows is fitted too closely.

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
        space = KernelSpace.from_gram(as_gram(view), cost)
        sets = risk_sets(y[space.part], space.weight)
        if space.length <= 0 or sets.events <= 0:
            return space.nothing()
        penalty = self._share(space.rows, sets) * space.length
        best = fit_cox(space.rows, sets, penalty)
        known = sets.martingale(best.eta)
        pull = space.weight * sets.martingale(np.zeros(len(known)))
        largest = float(np.abs(space.rows.T @ pull).max(initial=0.0)) / sets.events
        coef = space.weight * known / (penalty * sets.events)
        return space.solution(coef, best.weights, best.objective, best.slope / max(largest, 1e-300), known)

    def _share(self, rows: Array, sets: RiskSets) -> float:
        """The penalty in units of the mean squared length."""
        return choose_share(rows, sets) if isinstance(self.penalty, str) else float(self.penalty)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z: the logarithm of the hazard ratio, higher where the event is expected earlier."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of the logarithm of the hazard ratio."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        KernelRidge(self.penalty).check()


class RankingSVM(BaseEstimator):
    """A support vector machine that ranks: of two rows of which one is known to have lived longer, the other is higher.

    ::

        min over c of  mean over pairs of max(0, 1 - f_i + f_j)^2 / 2 + penalty * length / 2 * c'Kc,      f = Kc
        length = sum_i cost_i |phi_i - mean|^2 / sum_i cost_i

    i had the event and j is known to have lived longer (of equal times a row without an event has); a pair counts by
    the product of its rows' weights. The values have no unit of time or hazard, only an order. Pairs are never listed:
    what is needed of them are sums over the rows in the order of time and value, m log m additions for each. Tables
    with more rows than `MOST_DIRECTIONS` = 400 are fitted in that many leading directions of the kernel's space.

    Parameters
    ----------
    penalty : float, default=0.1
        Penalty on the squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import RankingSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10))
    >>> y = np.column_stack([rng.exponential(np.exp(-2.0 * X[:, 3])), np.ones(100)])
    >>> selector = SVMSelector(machine=RankingSVM(), outcome="survival", n_features_to_select=1, random_state=0)
    >>> selector.fit(X, y).get_support(indices=True)
    array([3])
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()
    targets: ClassVar[frozenset[str]] = frozenset({TIMES})

    def __init__(self, penalty: float = 0.1) -> None:
        self.penalty = penalty

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """The optimum on the gram's kernel matrix; y (m,) places in time, cost (m,)."""
        space = KernelSpace.from_gram(as_gram(view), cost)
        pairs = ComparablePairs(np.abs(y[space.part]), y[space.part] > 0, space.weight)
        if space.length <= 0 or pairs.total <= 0:
            return space.nothing()
        penalty = self.penalty * space.length
        best = fit_pairs(space.rows, pairs, penalty)
        pull = -pairs.slope(best.eta)
        return space.solution(pull / penalty, best.weights, best.objective, best.residual, pull)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z, higher where the event is expected earlier."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc: the squared norm of f."""
        return float(solution.coef @ gram.apply(solution.coef))

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        positive_number("machine", "penalty", self.penalty)
