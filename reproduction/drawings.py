"""The papers' figures, drawn with matplotlib (the extra `marginsieve[plot]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from marginsieve.report import COLOURS, finish_figure, new_figure

MARKS = "osD^vP*X"
MOST_TICKS = 12
LONG_LABEL = 8  # is written aslant


def curves(frame: pd.DataFrame, path: Path, label: str = "score", across: str = "number of features") -> None:
    """A value against the number of features, or another size, a line per method; columns method, size and value."""
    figure, axes = new_figure(6.5, 4.2)
    for j, (method, part) in enumerate(frame.groupby("method", sort=False)):
        part = part.sort_values("size")
        style = {"color": COLOURS[j % len(COLOURS)], "marker": MARKS[j % len(MARKS)]}
        axes.plot(part["size"], part["value"], label=str(method), **style)
    axes.set_xscale("log")
    sizes = sorted(frame["size"].unique())
    if len(sizes) <= MOST_TICKS:
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
    finish_figure(figure, axes, across, label, path)


def two_scales(labels: Sequence[str], error: Any, features: Any, parameter: str, path: Path) -> None:
    """Error to the left and number of features to the right against the values of a parameter, evenly spaced."""
    figure, axes = new_figure(6.0, 3.8)
    place, is_long = np.arange(len(labels)), max(map(len, labels)) > LONG_LABEL
    axes.plot(place, error, color=COLOURS[0], marker=MARKS[0])
    axes.set_xticks(place, labels, rotation=30 if is_long else 0, ha="right" if is_long else "center")
    axes.set_ylim(bottom=0)
    axes.yaxis.label.set_color(COLOURS[0])
    other = axes.twinx()
    other.plot(place, features, color=COLOURS[1], marker=MARKS[1], ls="--")
    other.set_ylabel("number of features", color=COLOURS[1])
    other.set_ylim(bottom=0)
    finish_figure(figure, axes, parameter, "error %", path, legend=False)


def convergence(moved: Mapping[str, Sequence[float]], path: Path) -> None:
    """How far the factors move in each iteration, a line per data set."""
    figure, axes = new_figure(6.0, 3.8)
    for j, (name, values) in enumerate(moved.items()):
        axes.plot(np.arange(1, len(values) + 1), np.maximum(values, 1e-6), color=COLOURS[j % len(COLOURS)], label=name)
    axes.set_yscale("log")
    finish_figure(figure, axes, "iteration", "mean change of the factors, of their start", path)


def intervals(labels: Sequence[str], values: Any, halves: Any, label: str, path: Path) -> None:
    """Values with what each may be off by, a line for each, from top to bottom, and a line at zero."""
    figure, axes = new_figure(6.5, 1.0 + 0.32 * len(labels))
    place = np.arange(len(labels))[::-1]
    axes.axvline(0.0, color="0.7", lw=1)
    axes.errorbar(values, place, xerr=halves, fmt=MARKS[0], color=COLOURS[0], capsize=3)
    axes.set_yticks(place, labels)
    finish_figure(figure, axes, label, "", path, legend=False)


def sorted_values(table: pd.DataFrame, path: Path, label: str) -> None:
    """Columns of a table, a line each, over its rows, from high to low."""
    figure, axes = new_figure(6.5, 3.8)
    for j, name in enumerate(table):
        values = np.sort(table[name].to_numpy())[::-1]
        style = {"color": COLOURS[j % len(COLOURS)], "marker": MARKS[j % len(MARKS)], "ms": 3}
        axes.plot(np.arange(1, len(values) + 1), np.maximum(values, 1e-3), label=str(name), **style)
    axes.set_yscale("log")
    finish_figure(figure, axes, "instances, from the worst to the best", label, path)
