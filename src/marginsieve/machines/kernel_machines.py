"""Machines on a kernel: the support vector classifier, the smallest sphere around one class, multiple kernels."""

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
from ..errors import InputError, cost_number, positive_number, whole_number
from ..solvers import kernel_weights as _mkl
from ..solvers import linear_svc
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
        # There is a solver for the factor's shape; a Gram that multiplies fast never makes K as a whole.
        if (factor := gram.factor) is None:
            if not gram.rows_at_once:
                return self.solve_matrix(gram.matrix(), y, cost, start)
            room, limit = gram.rows_at_once, self._limit(y)  # K is never whole
            return self._solution(_smo.svc_by_parts(gram.apply, gram.submatrix, y, top, start, self.tol, limit, room))
        if is_sparse(factor):
            return self._solution(linear_svc.svc_by_rows(sparse.csr_array(factor.T), y, top, self.tol, start))
        if not np.isfinite(factor).all():
            raise InputError(NOT_FINITE)
        solution = self._solution(linear_svc.svc_by_columns(factor, y, top, self.tol))
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


# Support vector data description: the smallest soft sphere around the targets, known outliers kept outside.


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
            raise InputError(NOT_FINITE)
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


# Multiple kernel learning: a support vector machine that also learns how much each feature's kernel counts.


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
