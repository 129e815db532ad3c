"""Where to cut the decision value, and what probability it means: from decision values of held-out rows."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from ..contracts import Array


def balanced_threshold(value: Array, label: Array, weight: Array) -> float:
    """Halfway between the medians of the two classes' decision values; label (rows,) in {-1, +1}."""
    return 0.5 * sum(_median(value[label == side], weight[label == side]) for side in (1.0, -1.0))


def cost_threshold(value: Array, label: Array, weight: Array, false_positive: float, false_negative: float) -> float:
    """The cut that makes fp * (false positives) + fn * (false negatives) smallest, midway between two values."""
    order = np.argsort(value, kind="stable")
    v, positive, w = value[order], label[order] > 0, weight[order]
    below = np.concatenate([[0.0], np.cumsum(np.where(positive, w * false_negative, 0.0))])
    above = np.concatenate([np.cumsum(np.where(positive, 0.0, w * false_positive)[::-1])[::-1], [0.0]])
    total = below + above
    total[1:-1][v[1:] == v[:-1]] = np.inf  # no cut between equal values
    edge = np.concatenate([[v[0] - 1.0], 0.5 * (v[1:] + v[:-1]), [v[-1] + 1.0]])
    lowest = np.flatnonzero(total <= total.min() + 1e-12 * max(total[0], total[-1]))
    return float(edge[lowest[len(lowest) // 2]])


def fit_sigmoid(value: Array, label: Array, weight: Array) -> tuple[float, float]:
    """(a, b) of P(+1 | f) = 1 / (1 + exp(-(a f + b))) by likelihood with Platt's smoothed targets."""
    positive = label > 0
    n_pos, n_neg = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    unit = float(np.abs(value).max()) or 1.0
    f = value / unit

    def loss(theta: Array) -> tuple[float, Array]:
        t = theta[0] * f + theta[1]
        residual = weight * (1.0 / (1.0 + np.exp(-np.clip(t, -500, 500))) - target)
        return float(weight @ (np.logaddexp(0.0, t) - target * t)), np.array([residual @ f, residual.sum()])

    start = np.array([0.0, np.log((n_pos + 1) / (n_neg + 1))])
    a, b = optimize.minimize(loss, start, jac=True, method="BFGS").x
    return float(a) / unit, float(b)


def _median(value: Array, weight: Array) -> float:
    """The weighted median: a weight of 2 counts as two samples."""
    order = np.argsort(value, kind="stable")
    v, mass = value[order], np.cumsum(weight[order])
    half = 0.5 * mass[-1]
    left, right = np.searchsorted(mass, half, side="left"), np.searchsorted(mass, half, side="right")
    return float(0.5 * (v[left] + v[min(right, len(v) - 1)]))
