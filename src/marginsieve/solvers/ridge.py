"""Ridge regression whose values for rows that it was fitted without are linear in the labels and need one factoring."""

from __future__ import annotations

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
    def of(
        cls, X: Array, weight: Array, rng: np.random.Generator, groups: IntArray | None = None
    ) -> HeldOutRidge:
        """Of rows X (m, d); no matrix of m x m is made where there are fewer columns than rows."""
        m, d = X.shape
        rows = (X - weight @ X / weight.sum()) * np.sqrt(weight)[:, None]
        if min(m, d) > LARGEST_RANK:
            rows = _leading(rows, rng)
            d = rows.shape[1]
        if d <= m:
            energy, right = np.linalg.eigh(rows.T @ rows)
            known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
            directions = rows @ (right[:, known] / np.sqrt(energy[known]))
        else:
            energy, left = np.linalg.eigh(rows @ rows.T)
            known = energy > NEGLIGIBLE * max(float(energy.max(initial=0.0)), 1e-300)
            directions = left[:, known]
        return cls(directions, energy[known], weight, groups)

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
        out = (fitted - leverage * Y) / (1.0 - leverage)
        for rows in [] if self.groups is None else self._members:
            part = U[rows]
            H = c[rows] / total + (part * shrink) @ part.T * (root[rows].T / root[rows])
            out[rows] = np.linalg.solve(np.eye(len(rows)) - H, fitted[rows] - H @ Y[rows])
        return np.asarray(out)

    def mean_of_others(self, Y: Array) -> Array:
        """(m, k): the mean label of the rows outside each row's group."""
        sums, weights = self.weight[:, None] * Y, self.weight
        if self.groups is not None:
            count = int(self.groups.max()) + 1
            by_group = np.zeros((count, Y.shape[1]))
            np.add.at(by_group, self.groups, sums)
            group_sums, group_weights = by_group[self.groups], np.bincount(self.groups, weights, count)[self.groups]
        else:
            group_sums, group_weights = sums, weights
        return np.asarray((sums.sum(axis=0) - group_sums) / (weights.sum() - group_weights)[:, None])

    def scores(self, y: Array) -> tuple[Array, float]:
        """(m,), error: x_i'w + b less the mean label under the fit without the row's group, at the penalty whose
        squared error on labels y (m,) is the smallest, and that error.

        The mean label of the others is low where the row's own is high; without it the score says nothing of the label
        where the columns do not.
        """
        Y, unit = y[:, None], float(self.energy.mean()) if len(self.energy) else 1.0
        tried = [self.values(Y, unit * penalty) for penalty in RELATIVE]
        errors = [float(self.weight @ (values[:, 0] - y) ** 2) for values in tried]
        best = int(np.argmin(errors))
        return np.asarray((tried[best] - self.mean_of_others(Y))[:, 0]), errors[best]


def _leading(rows: Array, rng: np.random.Generator) -> Array:
    """(m, LARGEST_RANK): the rows in coordinates of their leading directions, by subspace iteration."""
    basis = rng.normal(size=(rows.shape[1], LARGEST_RANK))
    for _ in range(ROUNDS):
        basis, _ = np.linalg.qr(rows.T @ (rows @ basis))
    return np.asarray(rows @ basis)
