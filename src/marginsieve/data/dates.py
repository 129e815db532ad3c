"""Dates as numbers: days since the first day of the training table, whatever the order in which text has its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, shown_value

if TYPE_CHECKING:
    import pandas as pd

YEAR = r"(?:1[89]|20|21)\d\d"
CLOCK = r"(?:[ T](?P<clock>\d{1,2}:\d{2}.*))?"
BY_YEAR = re.compile(rf"(?P<year>{YEAR})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?){CLOCK}")
BY_DAY = re.compile(rf"(?P<day>\d\d?)(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<year>{YEAR}){CLOCK}")
BY_MONTH = re.compile(BY_DAY.pattern.replace("day", "other").replace("month", "day").replace("other", "month"))
ORDERS: Mapping[str, re.Pattern[str]] = {"year first": BY_YEAR, "day first": BY_DAY, "month first": BY_MONTH}
SECONDS = 86400.0


def find_order(cells: pd.Series) -> str | None:
    """How dates of a column of text are written, a key of `ORDERS`; None where it has others than dates.

    "unknown" where days and months cannot be told apart. A point between the parts means that the day comes first.
    """
    texts = cells.dropna().astype(str).str.strip()
    if texts.empty or not texts.str.fullmatch(BY_DAY).all():
        return "year first" if len(texts) and texts.str.fullmatch(BY_YEAR).all() else None
    parts = texts.str.extract(BY_DAY)
    first, second = parts["day"].astype(int).max(), parts["month"].astype(int).max()
    if max(first, second) > 31 or min(first, second) > 12:
        return None
    if first > 12 or (parts["mark"] == ".").all():
        return "day first"
    return "month first" if second > 12 else "unknown"


def parse_dates(column: pd.Series, order: str | None) -> pd.Series:
    """The cells as times without a zone; what is no day of the calendar is empty. None: they are times already."""
    import pandas as pd

    if column.dtype.kind != "M":
        parts = column.astype("string").str.strip().str.extract(ORDERS[order or "year first"])
        date = parts["year"] + "-" + parts["month"].str.zfill(2) + "-" + parts["day"].str.zfill(2)
        clock = parts["clock"].str.replace(r"^(\d):", r"0\1:", regex=True)
        column = (date + " " + clock).where(clock.notna(), date)
    times: pd.Series = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True).dt.tz_localize(None)
    return times


def count_days(column: pd.Series, first: str, order: str) -> pd.Series:
    """(m,) days since the first day of the training table; a cell that is no date is refused by its row."""
    import pandas as pd

    times = parse_dates(column, order)
    wrong = np.flatnonzero(times.isna() & column.notna() & column.astype(str).str.strip().ne(""))
    if len(wrong):
        cell, row = shown_value(column.iloc[wrong[0]]), int(wrong[0]) + 1
        raise InputError(
            f"column {str(column.name)!r} holds {cell} in row {row}, and the model was trained on dates, {order}: "
            "correct the cell, or leave it empty"
        )
    return days_since(times, pd.Timestamp(first))


def days_since(times: pd.Series, first: Any) -> pd.Series:
    """Days, with their fractions."""
    days: pd.Series = (times - first).dt.total_seconds() / SECONDS
    return days
