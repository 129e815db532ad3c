"""Multiple kernel learning: a support vector machine that also learns how much each feature's kernel counts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, Matrix, Solution, View, as_gram
from ..errors import InputError, cost_number, positive_number, whole_number
from ..solvers import kernel_weights as _mkl
from ..solvers import smo as _smo


class MKL(BaseEstimator):
    """C-SVC on K = sum_f mu_f K_f, mu >= 0 and sum(mu) = 1 learned with it; K_f is the kernel of feature f alone.

    ::

        min over mu of  max_alpha  sum(alpha) - 1/2 c'K_mu c,   c = alpha * y,   sum(c) = 0,   0 <= alpha_i <= C cost_i

    Most mu are exactly 0. `scale` of the solution is sqrt(mu) by feature of the table; `residual` is the duality gap
    relative to the primal objective. It takes kernels that are a sum over features: linear and clinical.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error.
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=1000
        Machines solved before the solver stops without having converged.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import MKL
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector("clinical", MKL(C=1.0), criterion="learned", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    needs = "gram"
    additive_only = True
    kinds: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, C: float = 1.0, tol: float = 1e-6, max_iter: int = 1000) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum over the gram's features; y (m,) in {-1, +1}, cost (m,)."""
        gram = as_gram(view)
        mu, c = None, np.zeros(len(y))
        if warm is not None and warm.scale is not None:
            # Weights of features that have left are lost; the others are brought to a sum of 1 again.
            c, before = warm.coef, warm.scale[gram.features] ** 2
            mu = before / before.sum() if before.sum() > 0 else None
        base = _mkl.BaseKernels(
            len(gram.features), lambda mu: mix_kernels(gram, mu).matrix(), gram.feature_quadratic, gram.feature_products
        )
        answer = _mkl.solve(base, y, self.C * cost, mu, c, self.tol, int(self.max_iter))
        point = answer.point
        if point.violation >= _smo.HUGE:
            raise InputError("the table holds values that are not finite or too large: use standardize=True")
        scale = np.zeros(gram.table.shape[1])
        scale[gram.features] = np.sqrt(point.mu)
        done = answer.gap <= self.tol
        return Solution(
            point.c, point.b, point.J, answer.gap, point.slack, done, scale=scale, iterations=answer.machines
        )

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        gram = as_gram(view)
        live = mix_kernels(gram, self.learned_weights(solution, gram))
        return live.apply(solution.coef, Z) + solution.intercept

    def learned_weights(self, solution: Solution, gram: Gram) -> Array:
        """(p,) mu of the gram's features."""
        assert solution.scale is not None
        return np.asarray(solution.scale[gram.features] ** 2)

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        cost_number("machine", "C", self.C)
        positive_number("machine", "tol", self.tol)
        whole_number("machine", "max_iter", self.max_iter)


def mix_kernels(gram: Gram, mu: Array) -> Gram:
    """The kernel sum_f mu_f K_f over the gram's features with a weight; mu (p,)."""
    live, kernel = np.flatnonzero(mu > 0), gram.kernel
    weight = np.zeros(gram.table.shape[1])
    features = gram.features[live]
    # The kernel divides by the number of live features, which mu does not: the divisor is multiplied back.
    weight[features] = np.sqrt(mu[live] * kernel.divisor(gram.table, features)) ** 2
    return kernel.bind(gram.table, weight, features)
