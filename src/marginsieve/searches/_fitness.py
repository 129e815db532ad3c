"""What a subset is worth on validation rows: a metric, then what decides between equal ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..contracts import Array, Metric
from ..errors import InputError, listing
from ..outcomes.scores import area_and_gap
from ..solvers.jit import jit

NAMES = {"g_mean": "G-mean", "auc": "AUC", "balanced_accuracy": "balanced accuracy"}

STEP, DIGITS = 1e-3, 4  # of decision values, in their middle size; of the loss


def fitness_of(metric: Any) -> tuple[Metric, str]:
    """(metric, AUC, minus the mean hinge loss) as a function, and what the first is called.

    With "auc" the second is the G-mean. A function is called with the labels and the decision values: (rows,) in
    {-1, +1} and (rows,) for two classes, class numbers and (rows, classes) for more; larger is better.
    """
    if isinstance(metric, str) and metric in NAMES:
        return _metric_by_name(metric), NAMES[metric]
    if callable(metric) and not isinstance(metric, type):
        return _metric_from_function(metric), getattr(metric, "__name__", "score")
    raise InputError(
        f"search: metric is {metric!r}; it must be one of {listing(list(NAMES))}, or a function(y, values)"
    )


def _metric_by_name(metric: str) -> Metric:
    def fitness(decision: Array, y: Array, weight: Array) -> tuple[float, ...]:
        # With few validation rows most subsets share their G-mean; AUC and hinge loss tell them apart.
        recall, auc, hinge = _measure(_round_values(decision), y, weight)
        g_mean = float(np.prod(recall) ** (1.0 / len(recall)))
        first = {"g_mean": g_mean, "auc": auc, "balanced_accuracy": float(recall.mean())}[metric]
        return first, g_mean if metric == "auc" else auc, -round(hinge, DIGITS)

    return fitness


def _metric_from_function(function: Callable[[Any, Any], float]) -> Metric:
    def fitness(decision: Array, y: Array, weight: Array) -> tuple[float, ...]:
        decision = _round_values(decision)
        pair = (y[0], decision[0]) if len(y) == 1 else (y.argmax(axis=0), decision.T)
        try:
            value = float(function(*pair))
        except Exception as error:
            name = getattr(function, "__name__", function)
            raise InputError(
                f"search: metric is {name} and failed ({type(error).__name__}: {error}); it must take the labels and "
                "the decision values and return a number"
            ) from error
        if not np.isfinite(value):
            raise InputError(f"search: metric returned {value!r}; it must return a finite number")
        _, auc, hinge = _measure(decision, y, weight)
        return value, auc, -round(hinge, DIGITS)

    return fitness


def _round_values(decision: Array) -> Array:
    """Decision values to a thousandth of their middle size: what a solver leaves open orders no samples."""
    # Warm starts differ in the last digits: without this two equal subsets could be ordered by how they were reached.
    unit = STEP * float(np.median(np.abs(decision)))
    return np.asarray(np.rint(decision / unit) * unit) if unit > 0 else decision


@jit
def _measure(decision: Array, y: Array, weight: Array) -> tuple[Array, float, float]:
    """The share of each class that is called right, the ranking AUC and the mean hinge loss.

    Two classes are called by sign, more by the largest value; of more the last two are means over the class problems.
    In the AUC ties count half.
    """
    k, m = y.shape
    # One loop for all that is asked of a subset: the search calls it thousands of times on few rows.
    right, whole = np.zeros(max(k, 2)), np.zeros(max(k, 2))
    for i in range(m):
        side = (0 if y[0, i] > 0.0 else 1) if k == 1 else int(y[:, i].argmax())
        hit = y[0, i] * decision[0, i] > 0.0 if k == 1 else int(decision[:, i].argmax()) == side
        whole[side] += weight[i]
        right[side] += weight[i] if hit else 0.0
    auc, hinge = 0.0, 0.0
    for j in range(k):
        plus = np.where(y[j] > 0.0, weight, 0.0)
        auc += area_and_gap(decision[j], np.argsort(decision[j]), plus, weight - plus)[0]
        for i in range(m):
            hinge += weight[i] * max(0.0, 1.0 - y[j, i] * decision[j, i])
    return right / whole, auc / k, hinge / (k * weight.sum())
