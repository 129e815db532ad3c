"""What a subset is worth on validation rows: a metric, then what decides between equal ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Array, BoolArray
from ..errors import InputError, listing
from ..problem import Metric

NAMES = {"g_mean": "G-mean", "auc": "AUC", "balanced_accuracy": "balanced accuracy"}


def fitness_of(metric: Any) -> tuple[Metric, str]:
    """(metric, AUC, minus the mean hinge loss) as a function, and what the first is called.

    With "auc" the second is the G-mean. A function is called with the labels and the decision values: (rows,) in
    {-1, +1} and (rows,) for two classes, class numbers and (rows, classes) for more; larger is better.
    """
    if isinstance(metric, str) and metric in NAMES:
        return _named(metric), NAMES[metric]
    if callable(metric) and not isinstance(metric, type):
        return _given(metric), getattr(metric, "__name__", "score")
    raise InputError(
        f"search: metric is {metric!r}; it must be one of {listing(list(NAMES))}, or a function(y, values)"
    )


def _named(metric: str) -> Metric:
    def fitness(decision: Array, y: Array, weight: Array) -> tuple[float, ...]:
        recall = _recalls(decision, y, weight)
        g_mean = float(np.prod(recall) ** (1.0 / len(recall)))
        auc, hinge = _auc(decision, y, weight), _hinge(decision, y, weight)
        first = {"g_mean": g_mean, "auc": auc, "balanced_accuracy": float(np.mean(recall))}[metric]
        return first, g_mean if metric == "auc" else auc, -hinge

    return fitness


def _given(function: Callable[[Any, Any], float]) -> Metric:
    def fitness(decision: Array, y: Array, weight: Array) -> tuple[float, ...]:
        pair = (y[0], decision[0]) if len(y) == 1 else (y.argmax(axis=0), decision.T)
        value = float(function(*pair))
        if not np.isfinite(value):
            raise InputError(f"search: metric returned {value!r}; it must return a finite number")
        return value, _auc(decision, y, weight), -_hinge(decision, y, weight)

    return fitness


def _recalls(decision: Array, y: Array, weight: Array) -> Array:
    """The share of each class that is called right: by sign for two classes, by the largest value for more."""
    if len(y) == 1:
        right, sides = y[0] * decision[0] > 0, (y[0] > 0, y[0] < 0)
        return np.array([_share(right, side, weight) for side in sides])
    right = decision.argmax(axis=0) == y.argmax(axis=0)
    return np.array([_share(right, row > 0, weight) for row in y])


def _share(right: BoolArray, side: BoolArray, weight: Array) -> float:
    return float(weight[right & side].sum() / weight[side].sum())


def _auc(decision: Array, y: Array, weight: Array) -> float:
    """The chance that a positive ranks above a negative, ties counting half; the mean over the class problems."""
    total = 0.0
    for value, label in zip(decision, y, strict=True):
        _, place = np.unique(value, return_inverse=True)
        ours, others = np.bincount(place, weight * (label > 0)), np.bincount(place, weight * (label < 0))
        total += float(ours @ (np.cumsum(others) - 0.5 * others) / (ours.sum() * others.sum()))
    return total / len(y)


def _hinge(decision: Array, y: Array, weight: Array) -> float:
    return float(np.mean(np.maximum(0.0, 1.0 - y * decision) @ weight) / weight.sum())
