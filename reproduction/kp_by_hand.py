"""KP-SVM written anew from its paper, in NumPy and scikit-learn's SVC alone; its raw step, and a measured one.

    repeat   solve the machine at the factors v;   v <- v - move;   v_j < eps is zero for good

    F'_j = v_j sum_is c_i c_s K_is (x_ij - x_sj)^2 + C2 beta exp(-beta v_j)          (eq. 16)
    K_is = exp(-sum_j v_j^2 (x_ij - x_sj)^2 / 2)

The raw move is gamma F'. The measured one is gamma v_0 F' / q, cut at one gamma v_0, with q the 95 % quantile of |F'|:
the raw one is 6 to 15 times v_0. Nothing here is shared with `marginsieve.searches.PenalizedScaling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from marginsieve.contracts import Array, IntArray

STRENGTHS = (0.0, 0.2, 0.4, 0.8)  # C2 beta in units of a large pull at the start, among which folds choose
MOST, BETA = 40, 5.0
LONGEST = 30_000  # iterations of libsvm


@dataclass(frozen=True)
class WidthPath:
    """The factors v before the first move and after each, 0 where a feature was dropped: (iterations + 1, n)."""

    factors: Array
    converged: bool

    @property
    def counts(self) -> IntArray:
        """Features that are left, by iteration."""
        return np.asarray((self.factors > 0).sum(axis=1))

    def at_size(self, size: int) -> Array:
        """(n,) v of so many features: where fewer are left for the first time, with the best of those that just fell.

        Where more are left at the end, those with the largest v (algorithm 2 of the paper).
        """
        reached = np.flatnonzero(self.counts <= size)
        now = int(reached[0]) if len(reached) else len(self.factors) - 1
        v: Array = self.factors[now].copy()
        fallen = np.where(v > 0, 0.0, self.factors[max(now - 1, 0)])
        back = np.argsort(-fallen, kind="stable")[: max(size - int((v > 0).sum()), 0)]
        v[back] = fallen[back]
        v[np.argsort(-v, kind="stable")[size:]] = 0.0
        return v


def learn_factors(
    X: Array,
    y: Array,
    C: float,
    C2: float,
    start: float,
    *,
    raw: bool = False,
    gamma: float = 0.25,
    eps: float | None = None,
    max_iter: int = MOST,
) -> WidthPath:
    """Algorithm 1 on columns X (m, n), labels y in {-1, +1}; `eps` None is a quarter of the start.

    C2 is given as its pull, C2 beta, in units of the 95 % quantile of |F'| at the start without a penalty.
    """
    v, eps, converged, unit = np.full(X.shape[1], float(start)), 0.25 * start if eps is None else eps, False, 0.0
    path = [v.copy()]
    while len(path) <= max_iter and not converged and (v > 0).any():
        live = np.flatnonzero(v)
        pull = data_slope(X[:, live], y, C, v[live])
        unit = unit or float(np.quantile(np.abs(pull), 0.95))
        slope = pull + C2 * unit * np.exp(-BETA * v[live])
        if raw:
            move = gamma * slope
        else:
            large = max(float(np.quantile(np.abs(slope), 0.95)), 1e-300)
            move = gamma * start * np.clip(slope / large, -1.0, 1.0)
        after = np.where(v[live] - move < eps, 0.0, v[live] - move)
        converged = float(np.abs(after - v[live]).sum()) <= 1e-6 * start * len(live)
        v[live] = after
        path.append(v.copy())
    return WidthPath(np.array(path), converged)


def data_slope(X: Array, y: Array, C: float, v: Array) -> Array:
    """v_j sum_is c_i c_s K_is (x_ij - x_sj)^2 at the machine's solution c = alpha y on this kernel."""
    K = gaussian_kernel(X * v)
    machine = SVC(C=C, kernel="precomputed", tol=1e-5, max_iter=LONGEST).fit(K, y)
    c, Z = machine.dual_coef_[0], X[machine.support_]
    G = K[np.ix_(machine.support_, machine.support_)] * np.outer(c, c)
    return np.asarray(v * 2.0 * ((Z * Z).T @ G.sum(axis=1) - np.einsum("ij,ij->j", Z, G @ Z)))


def gaussian_kernel(Z: Array) -> Array:
    """exp(-|z_i - z_s|^2 / 2)."""
    square = np.einsum("ij,ij->i", Z, Z)
    return np.asarray(np.exp(-0.5 * np.maximum(square[:, None] + square - 2.0 * Z @ Z.T, 0.0)))


def count_right(K: Array, y: Array, C: float, splits: Sequence[tuple[IntArray, IntArray]]) -> Array:
    """The share of right answers of an SVC on each split of the rows of a kernel matrix."""
    out = []
    for train, test in splits:
        machine = SVC(C=C, kernel="precomputed", max_iter=LONGEST).fit(K[np.ix_(train, train)], y[train])
        out.append(np.mean(machine.predict(K[np.ix_(test, train)]) == y[test]))
    return np.array(out)


def choose_path(
    X: Array, y: Array, C: float, start: float, *, raw: bool = False, folds: int = 5, max_iter: int = MOST
) -> tuple[WidthPath, float, int]:
    """C2 and the number of iterations with the best accuracy in folds (section 6); of equals the fewest features.

    Returns the path on all rows at that C2, up to that iteration where the number of features is the method's own.
    """
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=1).split(X, y))
    right, sizes = np.zeros((len(STRENGTHS), max_iter + 1)), np.zeros((len(STRENGTHS), max_iter + 1))
    for k, C2 in enumerate(STRENGTHS):
        for train, test in splits:
            path = learn_factors(X[train], y[train], C, C2, start, raw=raw, max_iter=max_iter)
            known: dict[int, float] = {}
            for t in range(max_iter + 1):
                at = min(t, len(path.factors) - 1)
                if at not in known:
                    known[at] = _right_at(X, y, C, path.factors[at], train, test)
                right[k, t] += known[at]
                sizes[k, t] += path.counts[at]
    best = np.flatnonzero(np.isclose(right, right[:, 1:].max()) & (np.arange(max_iter + 1) > 0))
    k, t = np.unravel_index(best[np.argmin(sizes.ravel()[best])], right.shape)
    path = learn_factors(X, y, C, STRENGTHS[k], start, raw=raw, max_iter=max_iter)
    return path, STRENGTHS[k], int(min(t, len(path.factors) - 1))


def _right_at(X: Array, y: Array, C: float, v: Array, train: IntArray, test: IntArray) -> float:
    """Accuracy on a split with a kernel that was learned; of the larger class where no feature is left."""
    live = np.flatnonzero(v)
    if not len(live):
        return float(np.mean(y[test] == np.sign(y[train].sum() or 1.0)))
    return float(count_right(gaussian_kernel(X[:, live] * v[live]), y, C, [(train, test)])[0])
