"""What reading changed: every cell, row, column and label that was dropped, filled, converted or joined, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import IntArray
from ..errors import many

if TYPE_CHECKING:
    import pandas as pd

PLACES = 20  # that a report shows
LISTED = 1000  # entries by column that a report shows
TOO_LARGE = "a number beyond the largest, to an empty cell"


@dataclass(frozen=True, eq=False)
class Change:
    """What was changed in one way: cells or labels of a column, rows, or a column."""

    what: str  # cell, row, column or label
    action: str  # dropped, filled, converted or joined
    column: str  # empty where whole rows are meant
    how: str  # why, or into what; it holds no value of the table
    rows: IntArray | None = None  # places in the table, from 0; None: no row, or all
    cells: Sequence[Any] = ()  # as they were written
    lines: IntArray | None = None  # places in the file, of lines that are no rows

    def __len__(self) -> int:
        return next((len(some) for some in (self.rows, self.lines) if some is not None), 1)


@dataclass
class Ledger:
    """The changes of one table, sentences about them, and the line of the file on which each row begins."""

    changes: list[Change] = field(default_factory=list)
    remarks: list[tuple[str, str, str, tuple[str, ...]]] = field(default_factory=list)  # kind, level, text, columns
    lines: IntArray | None = None  # (m,) of a text file

    def add(self, what: str, action: str, column: Any, how: str, **place: Any) -> None:
        """Record a change, unless it is one of no rows."""
        change = Change(what, action, str(column), how, **place)
        if len(change):
            self.changes.append(change)

    def remark(self, kind: str, text: str, columns: Sequence[str] = (), level: str = "note") -> None:
        """Record what is to be said of a change: a finding of the check `kind`."""
        self.remarks.append((kind, level, text, tuple(columns)))

    def find(self, how: str, columns: Container[str]) -> Iterator[tuple[str, IntArray, Sequence[Any]]]:
        """The column, rows and cells of each change of one kind in some columns."""
        for change in self.changes:
            if change.how == how and change.column in columns and change.rows is not None:
                yield change.column, change.rows, change.cells

    def count(self) -> dict[str, int]:
        """How many cells, rows, columns and labels were changed, by what was done with them."""
        counts: Counter[str] = Counter()
        for change in self.changes:
            counts[f"{change.what}s {change.action}"] += len(change)
        return dict(counts)

    def table(self, most: int | None = None) -> pd.DataFrame:
        """A row for each change: `what`, `action`, `column`, `row` from 1, `line` of a text file, `how`, `cell`."""
        import pandas as pd

        changes, counts = self.changes, [len(change) for change in self.changes]
        if most is not None:  # the first changes hold the first places
            changes = changes[: int(np.searchsorted(np.cumsum(counts), most)) + 1]
            counts = counts[: len(changes)]
        names = ("what", "action", "column", "how")
        each = {name: np.array([getattr(change, name) for change in changes], dtype=object) for name in names}
        out = pd.DataFrame({name: np.repeat(values, counts) for name, values in each.items()})
        places = [_places_of(change, self.lines) for change in changes]
        for k, name in enumerate(("row", "line")):
            values = np.concatenate([np.empty(0, dtype=np.intp), *(place[k] for place in places)])
            out.insert(3 + k, name, pd.Series(values, dtype="Int64").mask(values == 0))
        out["cell"] = [
            cell for change in changes for cell in (change.cells if len(change.cells) else [None] * len(change))
        ]
        return out if most is None else out.head(most)

    def summarize(self) -> dict[str, Any]:
        """Counts by column and the first places, without a value of the table."""
        columns = [
            {"column": each.column, "what": each.what, "action": each.action, "how": each.how, "count": len(each)}
            for each in self.changes[:LISTED]
        ]
        first = self.table(PLACES).drop(columns="cell").astype(object)
        places = first.where(first.notna(), None).to_dict("records")
        return {"counts": self.count(), "columns": columns, "places": places}


def _places_of(change: Change, lines: IntArray | None) -> tuple[IntArray, IntArray]:
    """Rows and lines of a change, from 1; 0 where there is none."""
    none = np.zeros(len(change), dtype=np.intp)
    if change.lines is not None:
        return none, change.lines
    if change.rows is None:
        return none, none
    return change.rows + 1, none if lines is None else lines[change.rows]


def format_counts(counts: dict[str, int]) -> str:
    """'3 cells converted, 1 column dropped'."""
    parts = [(name.partition("s "), count) for name, count in counts.items()]
    return ", ".join(f"{many(count, what)} {action}" for (what, _, action), count in parts)
