"""Metrics of pooled out-of-fold predictions, with bootstrap intervals over samples.

Every metric is written for weighted samples, weights (B, m): a bootstrap draw is a row of counts, the plain value a row
of ones, and all draws are worked out at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from ..outcomes.scores import METRICS, average_precision, ranking_auc

__all__ = ["METRICS", "Scores", "point_metrics", "score_difference", "score_predictions", "split_metrics"]

DRAWS = 2000
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Scores:
    """A value and its interval for each metric.

    Attributes
    ----------
    value : dict of str to float
        Value of each metric.
    low, high : dict of str to float
        Ends of the interval of each metric.
    level : float
        Level of the intervals.
    draws : int
        Number of bootstrap draws.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.study import nested_cv
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> nested = nested_cv(recipes.fisher(n_features_to_select=2), cohort.X, cohort.y, cv=3, n_repeats=2)
    >>> scores = nested.scores(draws=200)
    >>> scores.low["auc"] <= scores.value["auc"] <= scores.high["auc"]
    True
    """

    value: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    level: float
    draws: int


def score_predictions(
    truth: IntArray,
    predicted: IntArray,
    decision: Array | None,
    positive: int,
    groups: IntArray | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Scores:
    """Metrics averaged over repeats, with percentile intervals from a bootstrap over samples (over groups if given).

    Classes are drawn separately, so that every draw has samples of each.

    Parameters
    ----------
    truth : array of int of shape (m,)
        Class codes.
    predicted : array of int of shape (repeats, m)
        Predicted class codes.
    decision : array of shape (repeats, m) or None
        Decision values, higher for the positive class; None with more than two classes, for which only accuracy and
        balanced accuracy are computed.
    positive : int
        Code of the positive class.
    groups : array of int of shape (m,) or None, default=None
        Group of each sample.
    draws : int, default=2000
        Number of bootstrap draws.
    level : float, default=0.95
        Level of the intervals.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    Scores
        Value and interval of each metric.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.study import score_predictions
    >>> truth, decision = np.array([0, 0, 1, 1]), np.array([[-1.0, 0.5, 0.4, 2.0]])
    >>> scores = score_predictions(truth, (decision > 0).astype(int), decision, positive=1, draws=100)
    >>> scores.value["auc"], scores.value["sensitivity"]
    (0.75, 1.0)
    """
    metrics = partial(_all_metrics, truth, predicted, decision, positive)
    return _with_intervals(metrics, truth, groups, draws, level, seed)


def score_difference(
    truth: IntArray,
    ours: tuple[IntArray, Array | None],
    theirs: tuple[IntArray, Array | None],
    positive: int,
    groups: IntArray | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Scores:
    """Each metric of one (predicted, decision) less that of another, both on the same draws of the samples."""

    def difference(weights: Array) -> dict[str, Array]:
        a, b = (_all_metrics(truth, predicted, decision, positive, weights) for predicted, decision in (ours, theirs))
        return {name: a[name] - b[name] for name in a if name in b}

    return _with_intervals(difference, truth, groups, draws, level, seed)


def _with_intervals(
    metrics: Callable[[Array], dict[str, Array]],
    truth: IntArray,
    groups: IntArray | None,
    draws: int,
    level: float,
    seed: int,
) -> Scores:
    """What metrics of weights (B, m) are with every sample once, and between which values the draws lie."""
    points = {name: float(value[0]) for name, value in metrics(np.ones((1, len(truth)))).items()}
    rng = np.random.default_rng(seed)
    batch = max(1, CELLS_AT_ONCE // max(len(truth), 1))
    drawn: dict[str, list[Array]] = {name: [] for name in points}
    for start in range(0, draws, batch):
        for name, values in metrics(_draw(truth, groups, min(batch, draws - start), rng)).items():
            drawn[name].append(values)
    tail = 100 * (1 - level) / 2
    low, high = {}, {}
    for name, pieces in drawn.items():
        low[name], high[name] = (float(v) for v in np.nanpercentile(np.concatenate(pieces), [tail, 100 - tail]))
    return Scores(points, low, high, level, draws)


def point_metrics(truth: IntArray, predicted: IntArray, decision: Array | None, positive: int) -> dict[str, float]:
    """The metrics of `score_predictions` without their intervals."""
    values = _all_metrics(truth, predicted, decision, positive, np.ones((1, len(truth))))
    return {name: float(value[0]) for name, value in values.items()}


def split_metrics(truth: IntArray, classes: int, predicted: Any, decision: Any, positive: int) -> dict[str, float]:
    """The metrics of one pass over these rows; none where a class is not among them."""
    if len(np.unique(truth)) < classes:
        return {}
    decision = None if decision is None else np.asarray(decision)[None, :]
    return point_metrics(truth, np.asarray(predicted)[None, :], decision, positive)


def _draw(truth: IntArray, groups: IntArray | None, count: int, rng: np.random.Generator) -> Array:
    """(count, m) how often each sample is drawn; whole groups at a time where there are groups."""
    if groups is not None:
        names, member = np.unique(groups, return_inverse=True)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=count)
        return np.asarray(times[:, member], dtype=float)
    weights = np.zeros((count, len(truth)))
    for code in np.unique(truth):
        members = np.flatnonzero(truth == code)
        weights[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), size=count)
    return weights


def _all_metrics(
    truth: IntArray, predicted: IntArray, decision: Array | None, positive: int, weights: Array
) -> dict[str, Array]:
    """(B,) of each metric, the mean over the repeats."""
    codes = np.unique(truth)
    with np.errstate(invalid="ignore", divide="ignore"):
        right = np.mean(predicted == truth, axis=0)  # (m,) share of repeats that were right
        recall = {int(code): (weights * (truth == code)) @ right / (weights @ (truth == code)) for code in codes}
        out = {"balanced_accuracy": np.mean(list(recall.values()), axis=0)}
        if decision is not None:
            out["sensitivity"] = recall[positive]
            out["specificity"] = next(value for code, value in recall.items() if code != positive)
            out["g_mean"] = _over_repeats(predicted == truth, weights, truth == positive, _g_mean)
            out["auc"] = _over_repeats(decision, weights, truth == positive, ranking_auc)
            out["pr_auc"] = _over_repeats(decision, weights, truth == positive, average_precision)
        out["accuracy"] = weights @ right / weights.sum(axis=1)
    return out


def _over_repeats(
    values: Array | BoolArray, weights: Array, positive: BoolArray, metric: Callable[[Array, BoolArray, Array], Array]
) -> Array:
    return np.asarray(np.mean([metric(np.asarray(row, dtype=float), positive, weights) for row in values], axis=0))


def _g_mean(right: Array, positive: BoolArray, weights: Array) -> Array:
    sides = [(weights * side) @ right / (weights @ side) for side in (positive.astype(float), 1.0 - positive)]
    return np.asarray(np.sqrt(sides[0] * sides[1]))
