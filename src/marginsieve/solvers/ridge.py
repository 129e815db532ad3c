"""Ridge regression whose values for rows that it was fitted without are linear in the labels and need one factoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ..contracts import Array, IntArray

RELATIVE = tuple(float(power) for power in 10.0 ** np.arange(-3.0, 3.1, 0.5))  # penalties, in mean squared lengths
NEGLIGIBLE = 1e-10  # directions whose share of the largest is below are left out
LARGEST_RANK = 2000  # of rows and columns: with more of both, this number of leading directions
ROUNDS = 3  # of the subspace iteration that finds them


@dataclass(frozen=True)
class HeldOutRidge:
    """min over w, b of sum_i c_i (y_i - b - x_i'w)^2 + penalty |w|^2, without the rows of one group at a time.

    With H = 1 c'/sum(c) + C^(-1/2) U diag(e / (e + penalty)) U' C^(1/2) the values of the rows of a group G under the
    fit without G are (I - H_GG)^(-1) (H y - H_GG y_G), which costs no further fit.

    Parameters
    ----------
    directions : array of shape (m, r)
        U: left singular vectors of the centred rows, each times the root of its weight.
    energy : array of shape (r,)
        e: the squared singular values.
    weight : array of shape (m,)
        c: the weights of the rows, above 0.
    groups : array of int of shape (m,) or None, default=None
        Group of each row; None leaves out one row at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers.ridge import HeldOutRidge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> ridge = HeldOutRidge.from_rows(X, np.ones(4), np.random.default_rng(0))
    >>> ridge.values(y, 1.0).ravel().round(2)
    array([-0.62, -0.67,  0.67,  0.62])
    """

    directions: Array
    energy: Array
    weight: Array
    groups: IntArray | None = None

    @classmethod
    def from_rows(
        cls, X: Array, weight: Array, rng: np.random.Generator, groups: IntArray | None = None
    ) -> HeldOutRidge:
        """Of rows X (m, d); no matrix of m x m is made where there are fewer columns than rows."""
        m, d = X.shape
        rows = (X - weight @ X / weight.sum()) * np.sqrt(weight)[:, None]
        if min(m, d) > LARGEST_RANK:
            rows = _leading(rows, rng)
            d = rows.shape[1]
        # The left singular vectors come from the smaller one of X X' and X'X.
        if d <= m:
            energy, right = np.linalg.eigh(rows.T @ rows)
            known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
            directions = rows @ (right[:, known] / np.sqrt(energy[known]))
        else:
            energy, left = np.linalg.eigh(rows @ rows.T)
            known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
            directions = left[:, known]
        return cls(directions, energy[known], weight, groups)

    @classmethod
    def from_kernel(cls, K: Array, groups: IntArray | None = None) -> HeldOutRidge:
        """Of the rows of a kernel matrix (m, m), each with weight 1."""
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        energy, left = np.linalg.eigh(centred)
        known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
        return cls(left[:, known], energy[known], np.ones(len(K)), groups)

    @property
    def unit(self) -> float:
        """The mean squared length of a centred row."""
        return float(self.energy.sum() / self.weight.sum())

    def held_out(self, Y: Array, penalty: float) -> Array:
        """(m, k): `values` less the mean label of the others, which is low where the row's own label is high."""
        return self.values(Y, penalty) - self.mean_of_others(Y)

    @cached_property
    def _members(self) -> list[IntArray]:
        """The rows of each group of two or more."""
        assert self.groups is not None
        order = np.argsort(self.groups, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(self.groups[order])) + 1)
        return [part for part in parts if len(part) > 1]

    def values(self, Y: Array, penalty: float) -> Array:
        """(m, k): for each column of labels Y (m, k) the values of the rows under the fit without their group."""
        c, U = self.weight, self.directions
        root, total = np.sqrt(c)[:, None], c.sum()
        shrink = self.energy / (self.energy + penalty)
        fitted = c @ Y / total + U @ (shrink[:, None] * (U.T @ (root * Y))) / root
        leverage = (c / total + U**2 @ shrink)[:, None]
        # For a row alone (I - H_ii)^-1 is a division; a group of several rows takes a small system.
        out = (fitted - leverage * Y) / (1.0 - leverage)
        for rows in [] if self.groups is None else self._members:
            part = U[rows]
            H = c[rows] / total + (part * shrink) @ part.T * (root[rows].T / root[rows])
            out[rows] = np.linalg.solve(np.eye(len(rows)) - H, fitted[rows] - H @ Y[rows])
        return np.asarray(out)

    def mean_of_others(self, Y: Array) -> Array:
        """(m, k): the mean label of the rows outside each row's group."""
        group = np.arange(len(Y)) if self.groups is None else self.groups
        labels, weights = np.zeros((int(group.max()) + 1, Y.shape[1])), np.zeros(int(group.max()) + 1)
        np.add.at(labels, group, self.weight[:, None] * Y)
        np.add.at(weights, group, self.weight)
        return np.asarray(((labels.sum(axis=0) - labels) / (weights.sum() - weights)[:, None])[group])

    def best_penalty(self, y: Array) -> float:
        """The penalty whose held-out values have the smallest squared error on labels y (m,)."""
        unit = float(self.energy.mean()) if len(self.energy) else 1.0
        errors = [self.weight @ (self.values(y[:, None], unit * share)[:, 0] - y) ** 2 for share in RELATIVE]
        return unit * RELATIVE[int(np.argmin(errors))]

    def scores(self, y: Array) -> Array:
        """(m,): x_i'w + b less the mean label under the fit without the row's group, at the best penalty for labels y.

        The mean label of the others is low where the row's own is high; without it the score says nothing of the label
        where the columns do not.
        """
        return np.asarray(self.held_out(y[:, None], self.best_penalty(y))[:, 0])


def screened_scores(
    X: Array, y: Array, weight: Array, folds: Sequence[tuple[IntArray, IntArray]], counts: Sequence[int]
) -> Array:
    """(m,): held-out scores like `HeldOutRidge.scores`, of the columns most correlated with the label alone.

    The columns, their weights and the penalty come from the training rows of each fold; each row is tested at least
    once. The number of columns is the one of `counts` with the smallest error.
    """
    total, times = np.zeros((len(counts), len(y))), np.zeros(len(y))
    base = np.zeros(len(y))
    for train, test in folds:
        rows, labels, w = X[train], y[train], weight[train]
        centre, mean = w @ rows / w.sum(), w @ labels / w.sum()
        rows = rows - centre
        length = np.sqrt(w @ rows**2)
        covariance = np.abs((w * (labels - mean)) @ rows) / np.where(length > 0, length, np.inf)
        order = np.argsort(-covariance, kind="stable")
        for place, count in enumerate(counts):
            chosen = order[:count]
            fit = HeldOutRidge.from_rows(rows[:, chosen], w, np.random.default_rng(0))
            penalty = fit.best_penalty(labels)
            A = rows[:, chosen]
            slope = np.linalg.solve((A.T * w) @ A + penalty * np.eye(len(chosen)), (A.T * w) @ (labels - mean))
            total[place, test] += (X[np.ix_(test, chosen)] - centre[chosen]) @ slope
        base[test] += mean
        times[test] += 1
    scores = total / times
    errors = [float(weight @ (score + base / times - y) ** 2) for score in scores]
    return np.asarray(scores[int(np.argmin(errors))])


def _leading(rows: Array, rng: np.random.Generator) -> Array:
    """(m, LARGEST_RANK): the rows in coordinates of their leading directions, by subspace iteration."""
    basis = rng.normal(size=(rows.shape[1], LARGEST_RANK))
    for _ in range(ROUNDS):
        basis, _ = np.linalg.qr(rows.T @ (rows @ basis))
    return np.asarray(rows @ basis)


# -- on a kernel, as a machine ----------------------------------------------------------------------------------------

SHARES = tuple(
    float(share) for share in 10.0 ** np.arange(2.0, -5.1, -0.5)
)  # penalties that leave-one-out chooses from


class RidgeOptimum(NamedTuple):
    """A ridge regression: coef (m,), intercept, penalty, slack (m,) = y - f, the objective and the residual."""

    coef: Array
    intercept: float
    penalty: float
    slack: Array
    objective: float
    residual: float


def kernel_ridge(K: Array, y: Array, cost: Array, share: float | None, penalty: float | None = None) -> RidgeOptimum:
    """min over c, b of sum_i cost_i (y_i - f_i)^2 + penalty c'Kc, f = Kc + b; penalty = share * trace, or as given.

    The trace is sum_i cost_i |phi_i - mean|^2, of the rows in the kernel's space about their weighted mean, so that a
    share means the same whatever the scale and the number of features. Without a share leave-one-out chooses it.
    K (m, m) of a kernel, y and cost (m,).
    """
    part = np.flatnonzero(cost > 0)
    root, mean, z, centre = weighted_values(y[part], cost[part])
    inner = K if len(part) == len(y) else K[np.ix_(part, part)]
    by_row = inner @ mean
    centred = (inner - by_row[:, None] - by_row[None, :] + mean @ by_row) * np.outer(root, root)
    if share is None and penalty is None:
        energy, directions = np.linalg.eigh(centred)
        known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
        d, penalty = _solve_in_directions(energy[known], directions[:, known], z, cost[part], share)
    else:
        penalty = float(share or 0.0) * float(np.trace(centred)) if penalty is None else penalty
        d = np.zeros(len(part))
        if penalty > 0:
            centred.flat[:: len(part) + 1] += penalty
            d = linalg.solve(centred, z, assume_a="pos", overwrite_a=True, check_finite=False)
    coef = np.zeros(len(y))
    coef[part] = root * d
    values = K @ coef
    return _certify(coef, values, float(mean @ values[part]), y, cost, centre, penalty)


def factor_ridge(V: Array, y: Array, cost: Array, share: float | None) -> RidgeOptimum:
    """`kernel_ridge` of K = V'V from V (p, m) alone, for fewer features than rows."""
    part = np.flatnonzero(cost > 0)
    root, mean, z, centre = weighted_values(y[part], cost[part])
    rows = V[:, part].T
    away = rows - mean @ rows
    scaled = root[:, None] * away
    energy, right = np.linalg.eigh(scaled.T @ scaled)
    known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
    directions = scaled @ (right[:, known] / np.sqrt(energy[known]))
    d, penalty = _solve_in_directions(energy[known], directions, z, cost[part], share)
    coef = np.zeros(len(y))
    coef[part] = root * d
    slope = rows.T @ coef[part]
    return _certify(coef, V.T @ slope, float(mean @ (rows @ slope)), y, cost, centre, penalty)


def weighted_values(y: Array, cost: Array) -> tuple[Array, Array, Array, float]:
    """Roots of the weights, the weights as shares, the centred and weighted values, and their mean."""
    mean = cost / cost.sum()
    centre = float(mean @ y)
    root = np.sqrt(cost)
    return root, mean, root * (y - centre), centre


def _solve_in_directions(
    energy: Array, directions: Array, z: Array, cost: Array, share: float | None
) -> tuple[Array, float]:
    """(A + penalty)^-1 z with A = U diag(energy) U', and the penalty."""
    trace = float(energy.sum())
    if trace <= 0.0:
        return np.zeros(len(z)), 0.0
    along = directions.T @ z
    if share is None:
        share = _best_share(energy / trace, directions, z, along, cost)
    penalty = share * trace
    inside = along / (energy + penalty)
    # what lies outside the directions is z less its part along them, over the penalty alone
    return np.asarray(directions @ inside + (z - directions @ along) / penalty), penalty


def _best_share(energy: Array, directions: Array, z: Array, along: Array, cost: Array) -> float:
    """The share whose leave-one-out values have the smallest squared error; of equal ones the largest.

    The value of a row under the fit without it is that under the fit with it, its error divided by 1 - h. A row of
    weight 2 is two rows, of which one is left out: h is that of a unit of weight.
    """
    counts = cost if np.all(cost == np.rint(cost)) else cost * (len(cost) / cost.sum())
    squares, errors = directions**2, []
    for share in SHARES:
        shrink = energy / (energy + share)
        leverage = cost / cost.sum() + squares @ shrink
        left = (z - directions @ (shrink * along)) / np.maximum(1.0 - leverage / counts, 1e-6)
        errors.append(float(left @ left))
    return SHARES[int(np.argmin(errors))]


def _certify(
    coef: Array, values: Array, middle: float, y: Array, cost: Array, centre: float, penalty: float
) -> RidgeOptimum:
    """The optimum and its residual: cost (y - f) = penalty c for every row, in units of the largest cost |y - mean|."""
    intercept = centre - middle
    slack = y - values - intercept
    objective = float(cost @ slack**2 + penalty * coef @ values)
    unit = float(np.abs(cost * (y - centre)).max(initial=0.0)) or 1.0
    wrong = float(np.abs(cost * slack - penalty * coef).max(initial=0.0)) if penalty > 0 else 0.0
    return RidgeOptimum(coef, intercept, penalty, slack, objective, wrong / unit)


def centred_coordinates(K: Array, cost: Array) -> tuple[Array, float]:
    """(rows, r), trace: coordinates whose products are the kernel matrix about its weighted mean, and its trace.

    K (rows, rows) and cost (rows,), above 0; the trace is sum_i cost_i |phi_i - mean|^2.
    """
    mean = cost / cost.sum()
    by_row = K @ mean
    energy, directions = np.linalg.eigh(K - by_row[:, None] - by_row[None, :] + mean @ by_row)
    known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
    coordinates = directions[:, known] * np.sqrt(energy[known])
    return coordinates, float(cost @ (coordinates**2).sum(axis=1))


def leave_one_out_share(coordinates: Array, y: Array, cost: Array) -> float:
    """The penalty, in units of the trace, of the smallest leave-one-out error of ridge regression on coordinates."""
    root, _, z, _ = weighted_values(y, cost)
    scaled = root[:, None] * coordinates
    products = scaled.T @ scaled
    energy = np.diag(products).copy()
    if np.abs(products - np.diag(energy)).max(initial=0.0) <= NEGLIGIBLE * energy.max(initial=0.0):
        left = scaled / np.sqrt(np.maximum(energy, 1e-300))  # as `centred_coordinates` of equal costs are
    else:
        left, size, _ = np.linalg.svd(scaled, full_matrices=False)
        energy = size**2
    known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
    directions = left[:, known]
    return _best_share(energy[known] / energy.sum(), directions, z, directions.T @ z, cost)
