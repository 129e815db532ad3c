"""Scores of decision values against classes, for weighted samples.

Weights are (B, m): a bootstrap draw is a row of counts, the plain value a row of ones, and all draws are worked out at
once. The AUC is here twice, since one value under many weights and many values under one weight are two loops:
`ranking_auc` shares one sort between all draws; `area_and_gap` is compiled, for searches and filters that come with
another order each time.
"""

from __future__ import annotations

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from ..solvers.execution import jit

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


@jit
def area_and_gap(value: Array, order: IntArray, positive: Array, negative: Array) -> tuple[float, float]:
    """AUC of values (m,) in ascending `order`, and the largest distance of the classes' distribution functions.

    `positive` and `negative` are the samples' weights in the two classes; ties count half.
    """
    P, N, m = positive.sum(), negative.sum(), value.shape[0]
    below, passed, won, gap, start = 0.0, 0.0, 0.0, 0.0, 0
    while start < m:
        end, plus, minus = start, 0.0, 0.0
        while end < m and value[order[end]] == value[order[start]]:
            plus += positive[order[end]]
            minus += negative[order[end]]
            end += 1
        won += plus * (below + 0.5 * minus)
        below, passed, start = below + minus, passed + plus, end
        gap = max(gap, abs(passed / P - below / N))
    return won / (P * N), gap


def ranking_aucs(values: Array, positive: BoolArray, weight: Array) -> Array:
    """(S,) the AUC of each row of values (S, m); nan where a class is missing."""
    if positive.all() or not positive.any():
        return np.full(len(values), np.nan)
    plus, out = np.where(positive, weight, 0.0), np.empty(len(values))
    values = np.ascontiguousarray(values)
    _areas(values, np.argsort(values, axis=1, kind="stable"), plus, weight - plus, out)
    return out


@jit
def _areas(values: Array, order: IntArray, positive: Array, negative: Array, out: Array) -> None:
    """The AUC of each row, into out (S,)."""
    for row in range(values.shape[0]):
        out[row] = area_and_gap(values[row], order[row], positive, negative)[0]


def balanced_accuracy(right: Array | BoolArray, codes: IntArray, weight: Array) -> float:
    """The mean over the classes that have weight of the share of it that is called right; a row may count in part."""
    mass = np.bincount(codes, weight)
    hits = np.bincount(codes, weight * right)
    return float(np.mean(hits[mass > 0] / mass[mass > 0]))
