"""Out-of-fold curves of two classes, averaged over the repeats: ROC, precision-recall, confusion, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ..contracts import Array, BoolArray, IntArray

POINTS = 61
BINS = 8
Z = 1.959964  # of a 95 % interval


def draw_curves(decision: Array, probability: Array | None, positive: BoolArray) -> dict[str, Any]:
    """What the page draws of decision values and probabilities (repeats, m)."""
    return {
        "roc": _roc(decision, positive),
        "precision_recall": _precision_recall(decision, positive),
        "calibration": None if probability is None else _calibration(probability, positive),
        "brier": None if probability is None else float(np.mean((probability - positive) ** 2)),
    }


def confusion(predicted: IntArray, truth: IntArray, labels: list[str]) -> dict[str, Any]:
    """Mean counts over the repeats: a row per true class, a column per predicted one."""
    tables = [confusion_matrix(truth, row, labels=np.arange(len(labels))) for row in predicted]
    return {"classes": labels, "counts": np.mean(tables, axis=0).tolist()}


def _steps(decision: Array, positive: BoolArray) -> tuple[Array, Array]:
    """Positives and others found as the cut falls past each distinct decision value, from none to all."""
    order = np.argsort(-decision, kind="stable")
    value, side = decision[order], positive[order]
    last = np.concatenate([value[1:] != value[:-1], [True]])
    hits, misses = np.cumsum(side)[last], np.cumsum(~side)[last]
    return np.concatenate([[0.0], hits]), np.concatenate([[0.0], misses])


def _roc(decision: Array, positive: BoolArray) -> dict[str, list[float]]:
    """True positives by false positives; the mean over the repeats at each share of false positives."""
    grid = np.linspace(0.0, 1.0, POINTS)
    curves = []
    for row in decision:
        hits, misses = _steps(row, positive)
        curves.append(np.interp(grid, misses / misses[-1], hits / hits[-1]))
    mean = np.mean(curves, axis=0)
    # at no false positives at all: what is found before the first one
    mean[0] = float(np.mean([np.mean(row[positive] > row[~positive].max()) for row in decision]))
    return {"x": grid.tolist(), "y": mean.tolist()}


def _precision_recall(decision: Array, positive: BoolArray) -> dict[str, Any]:
    """Precision at each recall: of the smallest set of samples that reaches it; the mean over the repeats."""
    grid = np.linspace(0.0, 1.0, POINTS)[1:]
    curves = []
    for row in decision:
        hits, misses = _steps(row, positive)
        recall, precision = hits[1:] / hits[-1], hits[1:] / (hits[1:] + misses[1:])
        curves.append(precision[np.searchsorted(recall, grid - 1e-12)])
    return {"x": grid.tolist(), "y": np.mean(curves, axis=0).tolist(), "chance": float(positive.mean())}


def _calibration(probability: Array, positive: BoolArray) -> list[dict[str, float]]:
    """Bins of equal size by predicted probability: the mean, the observed share with Wilson's interval, samples."""
    repeats = len(probability)
    value, side = probability.ravel(), np.tile(positive, repeats)
    order = np.argsort(value, kind="stable")
    bins = []
    for part in np.array_split(order, min(BINS, max(len(positive) // 8, 1))):
        share, count = float(side[part].mean()), len(part) / repeats
        low, high = wilson(share, count)
        bins.append({"predicted": float(value[part].mean()), "observed": share, "low": low, "high": high, "n": count})
    return bins


def wilson(share: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share among `count` samples."""
    middle = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    reach = Z / (1 + Z * Z / count) * np.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return float(np.clip(middle - reach, 0.0, share)), float(np.clip(middle + reach, share, 1.0))
