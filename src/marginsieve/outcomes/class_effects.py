"""What the page shows of classes: a feature by class with its effect size, and curves of out-of-fold predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ..contracts import Array, BoolArray, IntArray
from .operating import benefit_of_all, net_benefits, smooth_calibration

if TYPE_CHECKING:
    import pandas as pd

POINTS = 40  # values of a class that a small plot shows, evenly spread over its order
LEVELS = 6  # levels that it names; the others are one
Z = 1.959964  # of a 95 % interval
DRAWS = 400  # of tables of counts, for the interval of Cramér's V
UNITS = {"Hedges' g": "standard deviations", "eta squared": "share of the variance", "Cramér's V": "0 to 1"}


def describe_feature(
    column: pd.Series, kind: str, codes: IntArray, classes: list[str], positive: int
) -> dict[str, Any]:
    """Effect size with its name, unit and 95 % interval, the direction in words, values by class.

    The interval is of the column alone: of a column that was selected because its effect is large it is too high.
    """
    if kind in ("nominal", "boolean") or column.dtype.kind not in "iufb":
        result = _describe_levels(column, codes, classes, positive)
    else:
        result = _describe_numbers(column.to_numpy(dtype=np.float64), codes, classes, positive)
    if len(classes) == 2:  # the class of interest first
        result["plot"]["classes"].sort(key=lambda part: part["class"] != classes[positive])
    return result


def _describe_numbers(value: Array, codes: IntArray, classes: list[str], positive: int) -> dict[str, Any]:
    known = np.isfinite(value)
    parts = [np.sort(value[known & (codes == code)]) for code in range(len(classes))]
    shown = []
    for name, part in zip(classes, parts, strict=True):
        entry: dict[str, Any] = {"class": name, "count": len(part), "quartiles": [], "points": []}
        if len(part):
            entry["quartiles"] = np.quantile(part, [0, 0.25, 0.5, 0.75, 1]).tolist()
            entry["points"] = part[np.unique(np.linspace(0, len(part) - 1, POINTS).round().astype(int))].tolist()
        shown.append(entry)
    if len(classes) == 2:
        name, size = "Hedges' g", hedges_g(parts[positive], parts[1 - positive])
        ends = _interval_of_g(size, len(parts[positive]), len(parts[1 - positive]))
        direction = f"{'higher' if size > 0 else 'lower'} in {classes[positive]}" if size else ""
    else:
        name, size = "eta squared", eta_squared(parts)
        ends = interval_of_eta(size, sum(map(len, parts)))
        direction = name_outlier({name: part.mean() for name, part in zip(classes, parts, strict=True) if len(part)})
    return {"effect": _effect(name, size, ends), "direction": direction, "plot": {"type": "numbers", "classes": shown}}


def _effect(name: str, size: float, ends: tuple[float, float]) -> dict[str, Any]:
    return {"name": name, "value": size, "low": ends[0], "high": ends[1], "unit": UNITS[name]}


def _interval_of_g(g: float, n1: int, n2: int) -> tuple[float, float]:
    """95 % interval of Hedges' g by its large-sample variance."""
    if n1 < 2 or n2 < 2 or not np.isfinite(g):
        return float("nan"), float("nan")
    error = np.sqrt((n1 + n2) / (n1 * n2) + g * g / (2 * (n1 + n2)))
    return float(g - Z * error), float(g + Z * error)


def interval_of_eta(size: float, count: int) -> tuple[float, float]:
    """95 % interval of eta squared, by Fisher's transformation of its root."""
    if count < 5:
        return float("nan"), float("nan")
    middle = np.arctanh(np.sqrt(min(size, 1.0 - 1e-12)))
    low, high = np.tanh([max(middle - Z / np.sqrt(count - 3), 0.0), middle + Z / np.sqrt(count - 3)]) ** 2
    return float(low), float(high)


def _interval_of_v(table: Array) -> tuple[float, float]:
    """95 % interval of Cramér's V: tables drawn with the shares of each class."""
    rng, counts = np.random.default_rng(0), table.sum(axis=1).astype(int)
    rows = [rng.multinomial(count, row / max(count, 1), size=DRAWS) for count, row in zip(counts, table, strict=True)]
    values = [cramers_v(np.array([some[k] for some in rows], dtype=float)) for k in range(DRAWS)]
    return tuple(float(end) for end in np.quantile(values, [0.025, 0.975]))  # type: ignore[return-value]


def name_outlier(means: dict[str, float]) -> str:
    """Which class lies furthest from the one next to it, above or below the others."""
    if len(means) < 2:
        return ""
    order = sorted(means, key=lambda name: means[name])
    low, high = means[order[1]] - means[order[0]], means[order[-1]] - means[order[-2]]
    return f"highest in {order[-1]}" if high >= low else f"lowest in {order[0]}"


def _describe_levels(column: pd.Series, codes: IntArray, classes: list[str], positive: int) -> dict[str, Any]:
    known = column.notna().to_numpy()
    levels, which = np.unique(column[known].astype(str), return_inverse=True)
    table = np.zeros((len(classes), len(levels)))
    np.add.at(table, (codes[known], which), 1.0)
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    others = table.sum(axis=0) - table
    ahead = share - others / np.maximum(others.sum(axis=1, keepdims=True), 1.0)
    if len(classes) > 2 and ahead.size:
        positive = int(np.unravel_index(np.argmax(ahead), ahead.shape)[0])
    order = np.argsort(-table.sum(axis=0), kind="stable")
    named, rest = order[:LEVELS], order[LEVELS:]
    shown = {
        "type": "levels",
        "levels": [*levels[named].tolist(), *(["other"] if len(rest) else [])],
        "classes": [
            {
                "class": classes[code],
                "count": int(table[code].sum()),
                "shares": [*share[code, named].tolist(), *([float(share[code, rest].sum())] if len(rest) else [])],
            }
            for code in range(len(classes))
        ],
    }
    most = "empty"
    if len(levels):
        gap = ahead[positive]
        widest, how = int(np.argmax(gap)), "more"
        if -gap.min() > gap.max() + 1e-9:
            widest, how = int(np.argmin(gap)), "less"
        most = f"{how} often {levels[widest]!s} in {classes[positive]}"
    size = cramers_v(table)
    return {
        "effect": _effect("Cramér's V", size, _interval_of_v(table)),
        "direction": most if size > 0 else "",
        "plot": shown,
    }


def hedges_g(ours: Array, others: Array) -> float:
    """(mean - mean) / pooled standard deviation, times 1 - 3 / (4 (n1 + n2) - 9)."""
    n1, n2 = len(ours), len(others)
    if n1 < 1 or n2 < 1 or n1 + n2 < 3:
        return 0.0
    pooled = ((ours - ours.mean()) ** 2).sum() + ((others - others.mean()) ** 2).sum()
    spread = np.sqrt(pooled / (n1 + n2 - 2))
    if spread == 0:
        return 0.0 if ours.mean() == others.mean() else float(np.sign(ours.mean() - others.mean()) * np.inf)
    return float((ours.mean() - others.mean()) / spread * (1 - 3 / (4 * (n1 + n2) - 9)))


def eta_squared(parts: list[Array]) -> float:
    """The share of the variance that lies between the classes."""
    every = np.concatenate(parts)
    total = ((every - every.mean()) ** 2).sum()
    between = sum(len(part) * (part.mean() - every.mean()) ** 2 for part in parts if len(part))
    return float(between / total) if total > 0 else 0.0


def cramers_v(table: Array) -> float:
    """sqrt(chi^2 / (N (min(rows, columns) - 1))) of a table of counts, less what chance gives (Bergsma 2013)."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    total = table.sum()
    if min(table.shape) < 2 or total < 3:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    rows, columns = table.shape
    phi = ((table - expected) ** 2 / expected).sum() / total - (rows - 1) * (columns - 1) / (total - 1)
    least = min(size - (size - 1) ** 2 / (total - 1) for size in (rows, columns)) - 1
    return float(np.sqrt(max(phi, 0.0) / least)) if least > 0 else 0.0


# -- curves of out-of-fold predictions, averaged over the repeats -----------------------------------------------------

CURVE_POINTS = 61
BINS = 8


def draw_curves(decision: Array, probability: Array | None, positive: BoolArray) -> dict[str, Any]:
    """What the page draws of decision values and probabilities (repeats, m)."""
    flat = None if probability is None else probability.ravel()
    return {
        "roc": _roc(decision, positive),
        "precision_recall": _precision_recall(decision, positive),
        "calibration": None if probability is None else _calibration(probability, positive),
        "smooth": None if flat is None else smooth_calibration(flat, np.tile(positive, len(decision))),
        "brier": None if probability is None else float(np.mean((probability - positive) ** 2)),
        "decision": None if probability is None else _net_benefit(probability, positive),
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
    grid = np.linspace(0.0, 1.0, CURVE_POINTS)
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
    grid = np.linspace(0.0, 1.0, CURVE_POINTS)[1:]
    curves = []
    for row in decision:
        hits, misses = _steps(row, positive)
        recall, precision = hits[1:] / hits[-1], hits[1:] / (hits[1:] + misses[1:])
        curves.append(precision[np.searchsorted(recall, grid - 1e-12)])
    return {"x": grid.tolist(), "y": np.mean(curves, axis=0).tolist(), "chance": float(positive.mean())}


def _net_benefit(probability: Array, positive: BoolArray) -> dict[str, list[float]]:
    """The share of true positives less that of false ones times the odds of the threshold; calling all beside it."""
    grid, rate = np.linspace(0.01, 0.99, 50), float(positive.mean())
    known = net_benefits(probability.ravel(), np.tile(positive, len(probability)), grid.tolist(), rate)
    every = benefit_of_all(grid, rate)
    return {"x": grid.tolist(), "y": [score.value for score in known], "all": every.tolist()}


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
