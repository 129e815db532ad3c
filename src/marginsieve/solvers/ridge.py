"""Ridge regression whose values for rows that it was fitted without are linear in the labels and need one factoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
    >>> ridge = HeldOutRidge.of(X, np.ones(4), np.random.default_rng(0))
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
