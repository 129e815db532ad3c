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
        cells = (v if isinstance(v, str) else "-" if v != v else f"{v:.{digits}g}" for v in row)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]
