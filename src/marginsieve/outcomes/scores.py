"""Scores of decision values and predictions against classes, for weighted samples; where values are cut.

The AUC is here twice: `area_and_gap` is compiled, for searches and filters that come with another order each time; that
of `linearise_scores` has the `influence` (m,) of each row, what it adds to a score, so that the variance of a score is
a sum of squares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy import optimize

from ..contracts import Array, BoolArray, IntArray, Predictions, Score, ScoreInfo
from ..solvers.execution import jit


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
    plus = np.where(positive, weight, 0.0)
    return _aucs(values, np.argsort(values, axis=1, kind="stable"), plus[None, :], (weight - plus)[None, :])


def labelled_aucs(values: Array, positive: BoolArray) -> Array:
    """(B,) the AUC of each row of values (B, m) by labels of its own."""
    plus = positive.astype(np.float64)
    return _aucs(values, np.argsort(values, axis=1), plus, 1.0 - plus)


def _aucs(values: Array, order: IntArray, positive: Array, negative: Array) -> Array:
    """(B,) the AUC of each row of values (B, m), with the classes' weights in the same row, or in the only one."""
    out = np.empty(len(values))
    _fill_aucs(np.ascontiguousarray(values), order, positive, negative, out)
    return out


@jit
def _fill_aucs(values: Array, order: IntArray, positive: Array, negative: Array, out: Array) -> None:
    """The AUC of each row, into out (B,)."""
    for row in range(values.shape[0]):
        labels = row if positive.shape[0] > 1 else 0
        out[row] = area_and_gap(values[row], order[row], positive[labels], negative[labels])[0]


def balanced_accuracy(right: Array | BoolArray, codes: IntArray, weight: Array) -> float:
    """The mean over the classes that have weight of the share of it that is called right; a row may count in part."""
    mass = np.bincount(codes, weight)
    hits = np.bincount(codes, weight * right)
    return float(np.mean(hits[mass > 0] / mass[mass > 0]))


# -- scores of predicted classes, linearised --------------------------------------------------------------------------

# Factors of intervals and of differences were measured on simulated tables: benchmarks/coverage.md. Above is more than
# below, since models on a part of the rows score lower than the one on all.
CLASS_METRICS = {
    "balanced_accuracy": ScoreInfo(
        "balanced accuracy",
        chance=0.5,
        compared=True,
        listed=True,
        factors=(0.93, 1.35, 0.0, 0.0),
        difference=(0.95, 0.95, 0.04, 0.04),
    ),
    "sensitivity": ScoreInfo("sensitivity"),
    "specificity": ScoreInfo("specificity"),
    "g_mean": ScoreInfo("G-mean"),
    "auc": ScoreInfo(
        "ranking AUC",
        chance=0.5,
        short="AUC",
        compared=True,
        listed=True,
        factors=(0.95, 1.55, 0.02, 0.0),
        difference=(0.95, 0.95, 0.06, 0.06),
    ),
    "pr_auc": ScoreInfo("PR-AUC", compared=True, factors=(1.0, 1.55, 0.01, 0.04), difference=(1.36, 1.36, 0.0, 0.0)),
    "accuracy": ScoreInfo(
        "accuracy", compared=True, factors=(0.95, 1.55, 0.03, 0.0), difference=(1.05, 1.05, 0.03, 0.03)
    ),
    "brier": ScoreInfo(
        "Brier score",
        scale="log",
        factors=(2.0, 1.25, 0.03, 0.0),
        difference=(1.62, 1.62, 0.0, 0.0),
        share=False,
        higher_is_better=False,
    ),
}
#: what each metric is called, in words
METRICS = {name: metric.title for name, metric in CLASS_METRICS.items()}


def rooms_of(value: Mapping[str, float], truth: IntArray, positive: int) -> dict[str, float]:
    """For each metric 4 u (1 - u), u from 0 at chance to 1 at no error: where training rows matter most."""
    rate, chance = float(np.mean(truth == positive)), 1.0 / len(np.unique(truth))
    level = dict.fromkeys(value, (value["balanced_accuracy"] - chance) / (1.0 - chance))
    if "auc" in value:
        level |= {"auc": 2.0 * value["auc"] - 1.0, "pr_auc": (value["pr_auc"] - rate) / (1.0 - rate)}
    if "brier" in value:
        level["brier"] = 1.0 - value["brier"] / (rate * (1.0 - rate))
    return {name: 4.0 * (u := float(np.clip(share, 0.0, 1.0))) * (1.0 - u) for name, share in level.items()}


def linearise_scores(truth: IntArray, predictions: Predictions, positive: int) -> dict[str, Score]:
    """Each metric of a pass, and what each row adds to it (m,), of mean 0 in each class."""
    codes, right = np.unique(truth), (predictions.predicted == truth).astype(float)
    side = {int(code): truth == code for code in codes}
    recall = {code: float(right[rows].mean()) for code, rows in side.items()}
    added = {code: rows * (right - recall[code]) / rows.sum() for code, rows in side.items()}
    out = {"balanced_accuracy": (float(np.mean(list(recall.values()))), np.mean(list(added.values()), axis=0))}
    if predictions.decision is not None and len(codes) == 2:
        negative = next(code for code in side if code != positive)
        out["sensitivity"] = recall[positive], added[positive]
        out["specificity"] = recall[negative], added[negative]
        out["g_mean"] = _g_mean(recall[positive], recall[negative], added[positive], added[negative])
        hit, unit = side[positive], 1.0 if predictions.unit is None else predictions.unit
        fold = np.zeros(len(truth), dtype=np.intp) if predictions.fold is None else predictions.fold
        out["auc"] = _auc(predictions.decision, hit, fold)
        out["pr_auc"] = _average_precision(predictions.decision / unit, hit)
        if predictions.probability is not None:
            wrong = (predictions.probability - hit) ** 2
            out["brier"] = float(wrong.mean()), _by_class((wrong - wrong.mean()) / len(truth), side.values())
    share = {code: float(rows.mean()) for code, rows in side.items()}
    out["accuracy"] = float(right.mean()), np.sum([share[code] * added[code] for code in side], axis=0)
    return {name: Score(*pair) for name, pair in out.items()}


def _by_class(influence: Array, sides: Iterable[BoolArray]) -> Array:
    """The same, less its mean in each class: classes have as many samples in every table of this mix."""
    out = influence.copy()
    for rows in sides:
        out[rows] -= out[rows].mean()
    return out


def _g_mean(ours: float, others: float, added: Array, added_by_others: Array) -> tuple[float, Array]:
    value = float(np.sqrt(ours * others))
    slope = 0.5 / max(value, 1e-12)
    return value, np.asarray(slope * (others * added + ours * added_by_others))


def _auc(decision: Array, positive: BoolArray, fold: IntArray) -> tuple[float, Array]:
    """Over pairs within a fold: values of two models have no common scale. Of all pairs where no fold has one."""
    folds = [rows for k in np.unique(fold) if 0 < positive[rows := np.flatnonzero(fold == k)].sum() < len(rows)]
    folds = folds or [np.arange(len(decision))]
    won, pairs, against = np.zeros(len(decision)), 0.0, np.zeros(len(decision))
    for rows in folds:
        hit = positive[rows]
        gap = decision[rows][hit][:, None] - decision[rows][~hit][None, :]
        better = np.where(gap > 0, 1.0, np.where(gap == 0, 0.5, 0.0))
        won[rows[hit]], won[rows[~hit]] = better.sum(axis=1), better.sum(axis=0)
        against[rows[hit]], against[rows[~hit]] = (~hit).sum(), hit.sum()
        pairs += better.size
    value = float(won[positive].sum() / pairs)
    return value, _by_class((won - value * against) / pairs, (positive, ~positive))


def _average_precision(decision: Array, positive: BoolArray) -> tuple[float, Array]:
    """Area under the precision-recall steps."""
    order = np.argsort(-decision, kind="stable")
    value, hit = decision[order], positive[order]
    last = np.searchsorted(-value, -value, side="right") - 1  # of equal values all count
    hits, all_ = np.cumsum(hit)[last].astype(float), (last + 1).astype(float)
    count = float(hit.sum())
    area = float((hits / all_)[hit].sum() / count)
    first = np.searchsorted(-value, -value, side="left")

    def sum_below(part: Array) -> Array:
        """Sum over the positives at or below each value."""
        total = np.cumsum((part * hit)[::-1])[::-1]
        return total[first]

    grown = np.where(
        hit, (hits / all_ - area + sum_below((all_ - hits) / all_**2)) / count, -sum_below(hits / all_**2) / count
    )
    influence = np.empty(len(value))
    influence[order] = grown
    return area, _by_class(influence, (positive, ~positive))


# -- thresholds and probabilities -------------------------------------------------------------------------------------


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
