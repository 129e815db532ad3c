"""Tables of a report as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def grid(title: str, table: pd.DataFrame, corner: str = "data set", digits: int = 3) -> list[str]:
    """A title and a table with its index in front; numbers with so many digits, text as it is, a dash for nothing."""
    lines = [title, "", f"| {corner} | " + " | ".join(map(str, table.columns)) + " |"]
    lines.append("|---" * (table.shape[1] + 1) + "|")
    for name, row in table.iterrows():
        cells = (v if isinstance(v, str) else "-" if v != v else number(v, digits) for v in row)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def number(value: float, digits: int) -> str:
    """So many digits, and all before the point: 187 rather than 1.9e+02."""
    return f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"
