"""Scores of decision values against classes, for weighted samples.

Weights are (B, m): a bootstrap draw is a row of counts, the plain value a row of ones, and all draws are worked out at
once.
"""

from __future__ import annotations

import numpy as np

from ..contracts import Array, BoolArray, IntArray

#: what each metric is called, in words
METRICS = {
    "balanced_accuracy": "balanced accuracy",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "g_mean": "G-mean",
    "auc": "ranking AUC",
    "pr_auc": "PR-AUC",
    "accuracy": "accuracy",
    "brier": "Brier score",
}


def by_value(decision: Array, positive: BoolArray, weights: Array) -> tuple[Array, Array]:
    """(B, G) weight of the positives and of the negatives at each distinct decision value, ascending."""
    order = np.argsort(decision, kind="stable")
    v = decision[order]
    starts = np.flatnonzero(np.concatenate([[True], v[1:] != v[:-1]]))
    w, side = weights[:, order], positive[order]
    return np.add.reduceat(w * side, starts, axis=1), np.add.reduceat(w * ~side, starts, axis=1)


def ranking_auc(decision: Array, positive: BoolArray, weights: Array) -> Array:
    """(B,) the chance that a positive ranks above a negative, ties counting half."""
    P, N = by_value(decision, positive, weights)
    below = np.cumsum(N, axis=1) - N
    return np.asarray(np.sum(P * (below + 0.5 * N), axis=1) / (P.sum(axis=1) * N.sum(axis=1)))


def average_precision(decision: Array, positive: BoolArray, weights: Array) -> Array:
    """(B,) area under the precision-recall steps."""
    P, N = by_value(decision, positive, weights)
    hits, misses = np.cumsum(P[:, ::-1], axis=1), np.cumsum(N[:, ::-1], axis=1)
    precision = np.nan_to_num(hits / (hits + misses))
    return np.asarray(np.sum(P[:, ::-1] * precision, axis=1) / P.sum(axis=1))


def balanced_accuracy(right: BoolArray, codes: IntArray, weight: Array) -> float:
    """The mean over the classes of the share of their samples that is called right."""
    sides = [codes == code for code in np.unique(codes)]
    return float(np.mean([np.average(right[side], weights=weight[side]) for side in sides]))
