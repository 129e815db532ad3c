"""Diagrams, drawn with matplotlib (the extra `marginsieve[plot]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..report.figures import COLOURS, new_figure, save

if TYPE_CHECKING:
    import pandas as pd


class Ranked(Protocol):
    """Methods with their average ranks over the rows of a table."""

    @property
    def methods(self) -> Sequence[str]: ...
    @property
    def ranks(self) -> Any: ...
    @property
    def scores(self) -> Any: ...
    @property
    def alpha(self) -> float: ...
    @property
    def critical_difference(self) -> float: ...
    def groups(self) -> list[tuple[int, int]]: ...


MARKS = "osD^vP*X"
MOST_TICKS = 12


def critical_difference_diagram(comparison: Ranked, path: str | Path | None = None, blocks: str = "data sets") -> Any:
    """Average ranks on a line, best to the left; bars join methods that Nemenyi's test does not tell apart."""
    k = len(comparison.methods)
    bars = comparison.groups()
    half = (k + 1) // 2
    height = 1.1 + 0.18 * len(bars) + 0.26 * half
    figure, axes = new_figure(7.5, height)
    axes.axis("off")
    axes.set_xlim(1 - 0.55 * k, k + 0.55 * k)
    axes.set_ylim(-(0.9 + 0.5 * len(bars) + 1.0 * half), 2.1)
    axes.hlines(0, 1, k, color="black", lw=1.2)
    for tick in range(1, k + 1):
        axes.vlines(tick, 0, 0.18, color="black", lw=1.2)
        axes.text(tick, 0.3, str(tick), ha="center", va="bottom", fontsize=9)
    width = comparison.critical_difference
    axes.hlines(1.35, 1, 1 + width, color="black", lw=2)
    axes.text(1, 1.5, f"CD = {width:.2f} ({comparison.alpha:g}), {len(comparison.scores)} {blocks}", fontsize=9)
    for row, (first, last) in enumerate(bars):
        y = -0.35 - 0.5 * row
        axes.hlines(y, comparison.ranks[first] - 0.04, comparison.ranks[last] + 0.04, color=COLOURS[0], lw=3.5)
    for j, (name, rank) in enumerate(zip(comparison.methods, comparison.ranks, strict=True)):
        left = j < half
        y = -(0.7 + 0.5 * len(bars) + 1.0 * (j if left else k - 1 - j))
        edge = 1 - 0.08 * k if left else k + 0.08 * k
        axes.plot([rank, rank, edge], [0, y, y], color="black", lw=0.8)
        align = "right" if left else "left"
        axes.text(edge + (-0.05 if left else 0.05), y, f"{name}  {rank:.2f}", ha=align, va="center", fontsize=9.5)
    return save(figure, path)


def stability_against_score(frame: pd.DataFrame, path: str | Path | None = None, score: str = "score") -> Any:
    """One point per method and size: stability to the right, score upwards; columns method, size, stability, score."""
    figure, axes = new_figure(6.5, 4.5)
    for j, (method, part) in enumerate(frame.groupby("method", sort=False)):
        part = part.sort_values("size")
        style = {"color": COLOURS[j % len(COLOURS)], "marker": MARKS[j % len(MARKS)]}
        axes.plot(part["stability"], part["score"], lw=1, label=str(method), **style)
        for size, x, y in zip(part["size"], part["stability"], part["score"], strict=True):
            axes.annotate(f"{size:g}", (x, y), fontsize=7, xytext=(3, 3), textcoords="offset points")
    axes.set_xlabel("stability of the selected sets (Nogueira)")
    axes.set_ylabel(score)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return save(figure, path)
