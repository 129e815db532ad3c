"""What the page shows of a feature beside an outcome of numbers: its correlation, and its values by thirds of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Array
from .class_effects import Z, describe_feature, eta_squared, interval_of_eta, name_outlier

if TYPE_CHECKING:
    import pandas as pd

THIRDS = ("lowest third", "middle third", "highest third")


def describe_with_values(column: pd.Series, kind: str, values: Array, what: str = "the outcome") -> dict[str, Any]:
    """Correlation of a number, share of the variance between the levels of a category; direction, values by thirds.

    The interval is of the column alone: of a column that was selected because its effect is large it is too high.
    """
    thirds = np.searchsorted(np.quantile(values, [1 / 3, 2 / 3]), values, side="right")
    by_third = describe_feature(column, kind, thirds, list(THIRDS), 2)
    if by_third["plot"]["type"] == "levels":
        return {**by_third, **_describe_levels(column, values)}
    x = column.to_numpy(dtype=np.float64)
    known = np.isfinite(x)
    size, count = _correlation(x[known], values[known]), int(known.sum())
    low = high = float("nan")
    if count > 3 and abs(size) < 1:
        low, high = np.tanh(np.arctanh(size) + np.array([-Z, Z]) / np.sqrt(count - 3)).tolist()
    effect = {"name": "Pearson's r", "value": size, "low": low, "high": high, "unit": "-1 to 1"}
    direction = "" if size == 0 else f"{'rises' if size > 0 else 'falls'} with {what}"
    return {**by_third, "effect": effect, "direction": direction}


def _describe_levels(column: pd.Series, values: Array) -> dict[str, Any]:
    known = column.notna().to_numpy()
    levels, which = np.unique(column[known].astype(str), return_inverse=True)
    parts = {str(level): values[known][which == k] for k, level in enumerate(levels)}
    size = eta_squared(list(parts.values())) if parts else 0.0
    low, high = interval_of_eta(size, int(known.sum()))
    effect = {"name": "eta squared", "value": size, "low": low, "high": high, "unit": "share of the variance"}
    return {"effect": effect, "direction": name_outlier({name: float(part.mean()) for name, part in parts.items()})}


def _correlation(x: Array, y: Array) -> float:
    """Pearson's correlation; 0 where one side does not vary."""
    x, y = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    size = np.sqrt((x @ x) * (y @ y))
    return float(np.clip(x @ y / size, -1.0, 1.0)) if size > 0 else 0.0
