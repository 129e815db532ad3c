"""Cells as they are read and written: numbers written as text, values no table can hold, text that is no formula.

A cell has one meaning wherever it stands, so that training and prediction agree. Thousands separators and decimal
commas have not (1,234 may be either) and are never read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd


UNKNOWN = frozenset({"", "?", "-", "--", ".", "n.d.", "nd", "missing", "unknown"})
PLAIN = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?")  # no code like 007
AROUND = re.compile(r"([<>≤≥]=?)?\s*([€$£¥])?\s*(\S*?)\s*([€$£¥%])?")
SEPARATED = re.compile(r"[+-]?\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?|[+-]?\d+,\d+")
FEW = 10  # different plain numbers up to which a column of text may be categories


@dataclass(frozen=True)
class Numerals:
    """A column of text as numbers; `read_as` is how its cells were read, `limits` how many are limits."""

    values: pd.Series
    read_as: tuple[str, ...]
    limits: int


def is_text(dtype: Any) -> bool:
    """Whether a column of this dtype holds text, and not declared categories."""
    return dtype.kind not in "biufcmM" and str(dtype) != "category"


def read_numerals(column: pd.Series) -> Numerals | None:
    """A column in which every cell is a number or unknown, all of them written alike; None where that is not so.

    Plain numbers alone are read where they are more than a few different ones.
    """
    cells = column.dropna().astype(str).str.strip()
    texts = [text for text in cells.unique() if text.lower() not in UNKNOWN]
    parts = {text: part for text in texts if (part := _parts(text)) is not None}
    if not texts or len(parts) < len(texts):
        return None
    signs = {sign for sign, _, _ in parts.values() if sign}
    limits = cells[cells.isin([text for text, (sign, _, _) in parts.items() if sign])]
    edges = {value for sign, _, value in parts.values() if sign}
    if len({unit for _, unit, _ in parts.values()}) > 1 or 2 * len(limits) > len(cells):
        return None
    if len({sign[0] for sign in signs}) > 1 and len(edges) < len([sign for sign, _, _ in parts.values() if sign]):
        return None  # below and above the same number
    unknown = cells[cells.str.lower().isin(UNKNOWN)]
    dressed = [text for text in texts if parts[text][1] or len(texts) > FEW]
    if not (len(unknown) or len(limits) or dressed):
        return None
    read_as = [f"{dressed[0]!r} as {parts[dressed[0]][2]:g}"] if dressed else []
    read_as += [f"{limits.iloc[0]!r} as its limit ({len(limits)} of {len(cells)} cells)"] if len(limits) else []
    read_as += [f"{unknown.iloc[0]!r} as empty ({len(unknown)} of {len(cells)} cells)"] if len(unknown) else []
    return Numerals(_values(column), tuple(read_as), len(limits))


def as_trained(column: pd.Series) -> pd.Series:
    """The cells of a column of text that was numbers in training; the column itself where one cell is no number."""
    cells = column.dropna().astype(str).str.strip()
    known = [text for text in cells.unique() if text.lower() not in UNKNOWN]
    return column if any(_parts(text) is None for text in known) else _values(column)


def find_separated(column: pd.Series) -> str | None:
    """The first cell with a separator in a column of numbers some of which have one; None where it is not that."""
    cells = column.dropna().astype(str).str.strip()
    cells = cells[~cells.str.lower().isin(UNKNOWN)].str.strip("€$£¥% ")
    some = cells[cells.str.fullmatch(SEPARATED)]
    if some.empty or not cells.str.fullmatch(rf"(?:{SEPARATED.pattern})|{PLAIN.pattern}").all():
        return None
    return str(some.iloc[0])


def _values(column: pd.Series) -> pd.Series:
    def value(cell: Any) -> float:
        part = _parts(str(cell).strip())
        return float("nan") if part is None else part[2]

    return column.map(value, na_action="ignore").astype(float)


def _parts(text: str) -> tuple[str, str, float] | None:
    """(sign of a limit, unit, value) of one cell."""
    match = AROUND.fullmatch(text)
    if match is None or (match[2] and match[4]) or not PLAIN.fullmatch(match[3]):
        return None
    return match[1] or "", match[2] or match[4] or "", float(match[3])


# Columns of a file as they are trained on and predicted from: what is no plain number or text is made one.

NO_VALUES = (list, dict, set, np.ndarray, bytes, bytearray, memoryview)


def tidy_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Decimal numbers and durations as floats, levels of intervals as text; cells that are lists are refused."""
    import pandas as pd

    changed: dict[Any, Any] = {}
    for name, dtype in [(name, dtype) for name, dtype in frame.dtypes.items() if dtype.kind not in "biufc"]:
        column = frame[name]
        if dtype.kind == "m":
            changed[name] = column.dt.total_seconds()
        elif isinstance(dtype, pd.CategoricalDtype) and isinstance(dtype.categories.dtype, pd.IntervalDtype):
            changed[name] = column.cat.rename_categories(str)
        elif dtype.kind == "O" and not isinstance(dtype, pd.CategoricalDtype):
            known = column.dropna()
            if len(known) and known.map(lambda cell: isinstance(cell, Decimal)).all():
                changed[name] = column.astype(float)
            elif wrong := [type(cell).__name__ for cell in known if isinstance(cell, NO_VALUES)][:1]:
                raise InputError(
                    f"column {name!r} holds a {wrong[0]}; a cell must be a number or a text: convert or drop it"
                )
    return frame.assign(**changed) if changed else frame


# Text that a spreadsheet program could take for a formula, made inert and back.

SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20\u2212"  # with the full-width signs that some programs take for the plain ones
BREAKS = r"\r\n\x0b\x0c\x85\u2028\u2029\t;"  # what some programs take for the end of a cell
SPACE = r"[ \xa0\u3000\ufeff\x00\"]*"  # what they skip before a sign
BEGINS = rf"{SPACE}[{SIGNS}]"
FORMULA = re.compile(rf"(?:^|[{BREAKS}]){BEGINS}")  # some program could run it
TO_PREFIX = re.compile(rf"(^|[{BREAKS}])(?='*{BEGINS})")
PREFIXED = re.compile(rf"(^|[{BREAKS}])'(?='*{BEGINS})")


def inert(value: Any) -> Any:
    """A text with one more apostrophe before every place where a formula could begin; other values as they are.

    Places that have apostrophes already get one more too, so that no two texts become the same.
    """
    return TO_PREFIX.sub(r"\1'", value) if isinstance(value, str) else value


def restore_text(value: Any) -> Any:
    """The text of which `inert` made this one; other values as they are."""
    return PREFIXED.sub(r"\1", value) if isinstance(value, str) else value


def is_formula(value: Any) -> bool:
    """Whether `inert` cannot have made this text: a program could run it. Numbers are no formulas."""
    if not isinstance(value, str) or not FORMULA.search(value):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False
