"""KP-SVM as its paper prints it: a raw step, an absolute threshold, no objective that is looked at.

    repeat   solve the machine at the factors v;   v <- v - gamma * gradient;   v_j < eps is zero for good

    gradient_j = v_j sum_is c_i c_s K_is (x_ij - x_sj)^2 + C2 beta exp(-beta v_j)
    K_is = exp(-sum_j v_j^2 (x_ij - x_sj)^2 / 2)

The product moves in units of the start and accepts what lowers the re-solved objective (`searches.PenalizedScaling`);
this is kept beside it for the record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginsieve.contracts import Array, IntArray
from marginsieve.machines import CSVC

TOL, STEPS = 1e-6, 10**7


@dataclass(frozen=True)
class PrintedRun:
    """What the printed algorithm left.

    Attributes
    ----------
    factors : array of shape (n,)
        v, 0 where a feature was dropped.
    moved : tuple of float
        Sum over the features of the change of v, by iteration.
    dropped : tuple of int
        Features dropped, by iteration.
    converged : bool
        Whether v did not change any more.
    """

    factors: Array
    moved: tuple[float, ...]
    dropped: tuple[int, ...]
    converged: bool

    @property
    def features(self) -> IntArray:
        """The features that are left."""
        return np.flatnonzero(self.factors)

    @property
    def order(self) -> IntArray:
        """Features by their last factor, the largest first."""
        return np.argsort(-self.factors, kind="stable")

    def summary(self) -> str:
        """What the run did, in a sentence."""
        fell = [count for count in self.dropped if count]
        how = "came to rest" if self.converged else "still moved"
        first = f"{fell[0]} in the first of {len(fell)} iterations that dropped any" if fell else "none"
        return f"{how} after {len(self.moved)} iterations, {len(self.features)} features left; dropped: {first}"


def kp_as_printed(
    X: Array,
    y: Array,
    C: float,
    C2: float,
    start: float,
    gamma: float = 0.25,
    eps: float | None = None,
    beta: float = 5.0,
    max_iter: int = 200,
) -> PrintedRun:
    """Algorithm 1 of the paper on columns X (m, n), labels y in {-1, +1}; `eps` None is a quarter of the start."""
    v = np.full(X.shape[1], float(start))
    eps = 0.25 * start if eps is None else eps
    moved, dropped, converged, c = list[float](), list[int](), False, np.zeros(len(y))
    machine, cost = CSVC(C=C, tol=TOL, max_iter=STEPS), np.ones(len(y))
    while len(moved) < max_iter and not converged and (v > 0).any():
        live = np.flatnonzero(v)
        Z = X[:, live]
        K = _gaussian(Z * v[live])
        c = machine.solve_matrix(K, y, cost, c).coef
        G = K * np.outer(c, c)
        spread = 2.0 * ((Z * Z).T @ G.sum(axis=1) - np.einsum("ij,ij->j", Z, G @ Z))
        change = gamma * (v[live] * spread + C2 * beta * np.exp(-beta * v[live]))
        after = np.where(v[live] - change < eps, 0.0, v[live] - change)
        moved.append(float(np.abs(after - v[live]).sum()))
        dropped.append(int(np.sum(after == 0.0)))
        converged = moved[-1] <= 1e-6 * start * len(live)
        v[live] = after
    return PrintedRun(v, tuple(moved), tuple(dropped), converged)


def _gaussian(Z: Array) -> Array:
    """exp(-|z_i - z_s|^2 / 2)."""
    square = np.einsum("ij,ij->i", Z, Z)
    return np.asarray(np.exp(-0.5 * np.maximum(square[:, None] + square - 2.0 * Z @ Z.T, 0.0)))
