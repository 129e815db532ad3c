"""Support vector data description: the smallest soft sphere around the targets, known outliers kept outside."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, Matrix, ProblemView, Resources, Solution, View, as_gram, is_sparse
from ..errors import InputError, positive_number
from ..solvers import smo as _smo


class Sphere(BaseEstimator):
    """The sphere around the majority class; y = -1 is a target, +1 a known outlier, t = -y and c = t * alpha.

    ::

        max_c  sum_i c_i K_ii - c'Kc,   sum(c) = 1,   0 <= alpha_i <= C_i
        C_i = w_i / (r * sum of the targets' w),  w_i / (r_out * sum of the outliers' w) for outliers

    f(x) = d2(x) - R2, positive outside the sphere: d2(x) = K(x, x) - 2 sum_i c_i K(x_i, x) + c'Kc. A factor on the cost
    of a whole class changes nothing: `r` and `r_out` set the costs of the two classes.

    Parameters
    ----------
    r : float, default=0.1
        Upper bound, in (0, 1], on the share of the targets outside the sphere (approximately).
    r_out : float, default=0.1
        Upper bound on the share of the known outliers inside the sphere (approximately); 0 leaves the outliers out of
        the fit.
    tol : float, default=1e-6
        KKT violation at which the solver stops, in units of the mean squared distance from the mean.
    max_iter : int or None, default=None
        Pair steps after which the solver stops without having converged; None is max(10^6, 1000 m).

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import Sphere
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(
    ...     "gaussian", Sphere(r=0.1), criterion="radius", n_features_to_select=2, standardize=True, random_state=0
    ... )
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    resources = Resources(peak=(4.5, 6.0))
    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, r: float = 0.1, r_out: float = 0.1, tol: float = 1e-6, max_iter: int | None = None) -> None:
        self.r = r
        self.r_out = r_out
        self.tol = tol
        self.max_iter = max_iter

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum on the gram's kernel matrix; y (m,), cost (m,)."""
        gram = as_gram(view)
        return self._solve(gram.matrix(), y, cost, None if warm is None else warm.coef / -2.0)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z."""
        gram = as_gram(view)
        return gram.apply(solution.coef, Z) + solution.diagonal * gram.diagonal(Z) + solution.intercept

    def on_sphere(self, solution: Solution, gram: Gram, y: Array, cost: Array) -> Array:
        """(m,) weights with sum 1 such that R2 = sum_k weight_k d2(x_k).

        The targets strictly inside their box, by their cost (a known outlier on the sphere is far out just where the
        classes differ: it says nothing of how the targets scatter); else the outliers there; where no sample is
        inside, the two that bound R2 on both sides.
        """
        lo, hi = self._box(y, cost)
        c, slip = solution.coef / -2.0, _smo.AT_BOUND * (hi - lo)
        # Complementary slackness: a sample strictly inside its box lies on the sphere, d2 = R2.
        below, above = c < hi - slip, c > lo + slip
        free = below & above
        v = np.where(free & (y < 0), cost, 0.0)
        if not v.any():
            v = np.where(free, cost, 0.0)
        if not v.any():
            K = gram.matrix()
            d2 = K.diagonal() - 2.0 * (K @ c)
            if below.any():
                v[np.argmax(np.where(below, d2, -np.inf))] += 1.0
            if above.any():
                v[np.argmin(np.where(above, d2, np.inf))] += 1.0
        return np.asarray(v / v.sum())

    def dual(self, solution: Solution, K: Array) -> float:
        """The dual objective of these coefficients on another kernel matrix: a lower bound of its optimum."""
        c = solution.coef / -2.0
        return float(c @ K.diagonal() - c @ K @ c)

    def weight_gradient(self, solution: Solution, gram: Gram) -> Array:
        """(p,): derivative of the optimal objective in w_j, j live (envelope theorem)."""
        c = solution.coef / -2.0
        return -gram.weight_gradient(c, -c)

    def contrast(self, problem: ProblemView) -> Array | None:
        """(n,): mean squared distance of the known outliers from the targets' mean; None without outliers."""
        Z, total = problem.table.Z, np.zeros(problem.table.shape[1])
        if self.r_out == 0 or "nominal" in problem.kernel.kinds:  # codes of levels have no mean
            return None
        for label, cost in zip(problem.y, problem.cost, strict=True):
            inside, outside = np.where(label < 0, cost, 0.0), np.where(label > 0, cost, 0.0)
            # E_b |x - mean|^2 = E_b x^2 - 2 mean E_b x + mean^2 by column: no table of differences is made.
            a, b = inside / inside.sum(), outside / outside.sum()
            mean = np.asarray(a @ Z)
            square = np.asarray(b @ (Z.multiply(Z) if is_sparse(Z) else Z * Z))
            total += square - 2.0 * mean * np.asarray(b @ Z) + mean**2
        return np.maximum(total, 0.0)

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        for name, value, top in (("r", self.r, 1.0), ("tol", self.tol, np.inf)):
            positive_number("machine", name, value, top)
        if self.r_out != 0:
            positive_number("machine", "r_out", self.r_out)
        if self.max_iter is not None:
            positive_number("machine", "max_iter", self.max_iter)

    def _box(self, y: Array, cost: Array) -> tuple[Array, Array]:
        """The bounds of c."""
        hi, outside = np.where(y < 0, cost, 0.0), np.where(y > 0, cost, 0.0)
        if not hi.any():
            raise InputError("the sphere has no target to describe: the class that is not positive has no rows")
        known = self.r_out > 0 and outside.any()
        lo = -outside / (self.r_out * outside.sum()) if known else np.zeros(len(y))
        return lo, hi / (self.r * hi.sum())

    def _solve(self, K: Array, y: Array, cost: Array, start: Array | None) -> Solution:
        lo, hi = self._box(y, cost)
        # Distances stay the same when the points are centred, K - 1'mean - mean'1 + mean: K itself may be a constant
        # plus a little, as a wide Gaussian kernel is, and the little is all that counts.
        mean = K.mean(axis=1)
        centred = K - mean[:, None] - mean[None, :] + mean.mean()
        unit = max(float(centred.diagonal().mean()), 1e-12 * float(np.abs(K.diagonal()).max()), 1e-300)
        limit = max(1_000_000, 1000 * len(y)) if self.max_iter is None else self.max_iter
        c, multiplier, objective, E, gap, _ = _smo.svdd(  # in units of the mean squared distance: any scale is alike
            np.ascontiguousarray(centred / unit), lo, hi, _feasible(start, lo, hi), self.tol, limit
        )
        if gap >= _smo.HUGE:
            raise InputError(
                "the kernel matrix holds values that are not finite: use standardize=True or a lower degree"
            )
        multiplier, objective, E = unit * multiplier, unit * objective, unit * E
        excess = E - multiplier  # d2 - R2
        slack = np.maximum(0.0, np.where(y < 0, excess, -excess))
        rounding = 16.0 * _smo.EPS * float(np.abs(K.diagonal()).max())  # in K: no violation is known better than that
        residual = max(gap, rounding / unit) if gap > 0.0 else 0.0
        intercept = float(2.0 * c @ mean - mean.mean() - multiplier)
        return Solution(-2.0 * c, intercept, objective, residual, slack, residual <= self.tol, diagonal=1.0)


def _feasible(start: Array | None, lo: Array, hi: Array) -> Array:
    """A point of the box with sum 1, near `start`."""
    if start is None:
        return np.asarray(hi / hi.sum())
    # A warm start from other costs: after clipping the targets are shrunk, the outliers are, or the targets grow into
    # what is left of their room.
    c = np.clip(start, lo, hi)
    inside, outside = float(np.maximum(c, 0.0).sum()), float(-np.minimum(c, 0.0).sum())
    if inside <= 0.0:
        return np.asarray(hi / hi.sum())
    if inside - outside > 1.0:
        return np.asarray(np.where(c > 0, c * ((1.0 + outside) / inside), c))
    if inside >= 1.0:  # fewer outliers
        return np.asarray(np.where(c < 0, c * ((inside - 1.0) / outside), c)) if outside > 0 else c
    c = np.maximum(c, 0.0)
    return np.asarray(c + (hi - c) * ((1.0 - inside) / max(float(hi.sum()) - inside, 1e-12)))
