"""The papers' figures, drawn with matplotlib (the extra `marginsieve[plot]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from marginsieve.report.figures import COLOURS, new_figure, save

if TYPE_CHECKING:
    import pandas as pd

MARKS = "osD^vP*X"
MOST_TICKS = 12


def curves(frame: pd.DataFrame, path: str | Path | None = None, label: str = "score") -> Any:
    """A value against the number of features, a line per method; columns method, size, value and perhaps low, high."""
    figure, axes = new_figure(6.5, 4.2)
    for j, (method, part) in enumerate(frame.groupby("method", sort=False)):
        part = part.sort_values("size")
        colour = COLOURS[j % len(COLOURS)]
        axes.plot(part["size"], part["value"], color=colour, marker=MARKS[j % len(MARKS)], label=str(method))
        if {"low", "high"} <= set(part.columns) and np.isfinite(part["low"]).all():
            axes.fill_between(part["size"], part["low"], part["high"], color=colour, alpha=0.15)
    axes.set_xscale("log")
    sizes = sorted(frame["size"].unique())
    if len(sizes) <= MOST_TICKS:
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
    axes.set_xlabel("number of features")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return save(figure, path)


def two_scales(
    values: Sequence[float], error: Any, features: Any, parameter: str, path: str | Path | None = None
) -> Any:
    """Error to the left and number of features to the right against the values of a parameter, evenly spaced."""
    figure, axes = new_figure(6.0, 3.8)
    place = np.arange(len(values))
    axes.plot(place, error, color=COLOURS[0], marker=MARKS[0], label="error")
    axes.set_xticks(place, [f"{value:.3g}" for value in values])
    axes.set_xlabel(parameter)
    axes.set_ylabel("error %", color=COLOURS[0])
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    other.plot(place, features, color=COLOURS[1], marker=MARKS[1], ls="--")
    other.set_ylabel("number of features", color=COLOURS[1])
    other.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    return save(figure, path)


def convergence(moved: Mapping[str, Sequence[float]], path: str | Path | None = None) -> Any:
    """How far the factors move in each iteration, a line per data set."""
    figure, axes = new_figure(6.0, 3.8)
    for j, (name, values) in enumerate(moved.items()):
        axes.plot(np.arange(1, len(values) + 1), np.maximum(values, 1e-6), color=COLOURS[j % len(COLOURS)], label=name)
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("mean change of the factors, of their start")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return save(figure, path)
