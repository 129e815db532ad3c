"""Tables of a report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd


def table_lines(headings: Sequence[Any], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A table of cells as they are."""
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (headings, *rows)]
    return [lines[0], "|---" * len(headings) + "|", *lines[1:]]


def grid(title: str, table: pd.DataFrame, corner: str = "data set", digits: int = 3) -> list[str]:
    """A title and a table with its index in front; numbers with so many digits, text as it is, a dash for nothing."""
    rows = (
        [name, *(v if isinstance(v, str) else "-" if v != v else number(v, digits) for v in row)]
        for name, row in table.iterrows()
    )
    return [title, "", *table_lines([corner, *table.columns], rows), ""]


def number(value: float, digits: int) -> str:
    """So many digits, and all before the point: 187 rather than 1.9e+02."""
    return f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"
