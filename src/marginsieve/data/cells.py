"""Cells as they are read and written: numbers written as text, values no table can hold, text that is no formula.

A cell has one meaning wherever it stands, so that training and prediction agree. Thousands separators and decimal
commas have not (1,234 may be either) and are never read here; underscores (1_234) have.
"""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import IntArray
from ..errors import InputError, refuse_surrogates, shown_value
from .ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd


EMPTY = frozenset(  # None may be a class
    {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"}
)
UNKNOWN = frozenset({"?", "-", "--", ".", "n.d.", "nd", "missing", "unknown", *(word.lower() for word in EMPTY)})
PLAIN = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")  # no code like 007
HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,13}")  # as many digits as a float holds
UNDERSCORES = re.compile(r"[+-]?[1-9]\d{0,2}(?:_\d{3})+(?:\.\d*)?")
WIDE = str.maketrans("\u2212\uff0d\uff0b\uff0e\u066b\uff05\uff1c\uff1e\uff3f", "--+..%<>_")  # other signs for ours
AROUND = re.compile(r"([<>≤≥]=?)?\s*([€$£¥])?\s*(\S*?)\s*([€$£¥%])?")
SEPARATED = re.compile(r"[+-]?\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?|[+-]?\d+,\d+")
FEW = 10  # different plain numbers up to which a column of text may be categories


@dataclass(frozen=True)
class Numerals:
    """A column of text as numbers; `read_as` is how its cells were read, `limits` how many are limits.

    `changed` has the places of the cells that are more or less than a plain number, by what was done with them, and
    `others` those of cells that are no number, of which there are none unless some were allowed.
    """

    values: pd.Series
    read_as: tuple[str, ...]
    limits: int
    changed: Mapping[str, IntArray]
    others: IntArray


def is_text(dtype: Any) -> bool:
    """Whether a column of this dtype holds text, and not declared categories."""
    return dtype.kind not in "biufcmM" and str(dtype) != "category"


def read_numerals(column: pd.Series, others: float = 0.0) -> Numerals | None:
    """A column in which every cell is a number or unknown, all of them written alike; None where that is not so.

    Plain numbers alone are read where they are more than a few different ones. `others`: the share of filled cells that
    may be something else, which is then nan.
    """
    cells = column.dropna().astype(str).str.strip()
    unknown = cells[cells.str.lower().isin(UNKNOWN)]
    known = cells.drop(unknown.index)
    parts = {text: part for text in known.unique() if (part := _parts(text)) is not None}
    wrong = known[~known.isin(list(parts))]
    limited = known[known.isin([text for text, (sign, _, _) in parts.items() if sign])]
    if not parts or len(wrong) > others * len(known) or 2 * len(limited) > len(cells) or not _written_alike(parts):
        return None
    dressed = [text for text, (sign, _, _) in parts.items() if not sign and not PLAIN.fullmatch(text)]
    shown = dressed[0] if dressed else next(iter(parts)) if len(parts) > FEW else None
    if shown is None and not (len(unknown) or len(limited) or len(wrong)):
        return None
    read_as = [] if shown is None else [f"{shown!r} as {parts[shown][2]:g}"]
    read_as += [f"{limited.iloc[0]!r} as its limit ({len(limited)} of {len(cells)} cells)"] if len(limited) else []
    read_as += [f"{unknown.iloc[0]!r} as empty ({len(unknown)} of {len(cells)} cells)"] if len(unknown) else []
    groups = {
        "a limit, to a number": limited,
        "a word, to an empty cell": unknown,
        "a numeral, to a plain number": known[known.isin(dressed)],
        "no number, to an empty cell": wrong,
    }
    changed = {how: _positions(column, some) for how, some in groups.items() if len(some)}
    return Numerals(_values(column), tuple(read_as), len(limited), changed, _positions(column, wrong))


def _written_alike(parts: Mapping[str, tuple[str, str, float]]) -> bool:
    """Whether there is one unit, and no two limits are below and above the same number."""
    limits = [(sign[0], value) for sign, _, value in parts.values() if sign]
    both = len({sign for sign, _ in limits}) > 1 and len({value for _, value in limits}) < len(limits)
    return len({unit for _, unit, _ in parts.values()}) == 1 and not both


def _positions(column: pd.Series, cells: pd.Series) -> IntArray:
    """The places of some cells of a column."""
    return np.flatnonzero(column.index.isin(cells.index))


def are_numbers(cells: pd.Series) -> pd.Series:
    """Which cells of a column of text are numbers."""
    import pandas as pd

    plain = pd.to_numeric(cells, errors="coerce").abs() < math.inf
    return plain | cells.map(lambda cell: _parts(cell.strip()) is not None)


def as_trained(column: pd.Series) -> pd.Series:
    """The cells of a column of text that was numbers in training; one that is no number is refused by its row."""
    cells = column.dropna().astype(str).str.strip()
    wrong = [text for text in cells.unique() if text.lower() not in UNKNOWN and _parts(text) is None]
    if wrong:
        row = int(np.argmax(column.astype(str).str.strip() == wrong[0])) + 1
        raise InputError(
            f"column {str(column.name)!r} holds {shown_value(wrong[0])} in row {row}, and the model was trained on "
            "numbers there: correct the cell, or leave it empty"
        )
    return _values(column)


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
    if not text.isascii():  # digits of any script, and signs as other keyboards have them
        text = "".join(str(unicodedata.decimal(sign, sign)) for sign in text).translate(WIDE)
    match = AROUND.fullmatch(text)
    if match is None or (match[2] and match[4]):
        return None
    number = match[3].replace("_", "") if UNDERSCORES.fullmatch(match[3]) else match[3]
    if HEXADECIMAL.fullmatch(number):
        value = float(int(number, 16))
    elif PLAIN.fullmatch(number):
        value = float(number)
    else:
        return None
    return (match[1] or "", match[2] or match[4] or "", value) if math.isfinite(value) else None


# Columns of a file as they are trained on and predicted from: what is no plain number or text is made one.

NO_VALUES = (list, dict, set, np.ndarray, bytes, bytearray, memoryview)


def tidy_frame(frame: pd.DataFrame, ledger: Ledger | None = None) -> pd.DataFrame:
    """Decimal numbers and durations as floats, levels of intervals as text; cells that are lists are refused.

    Numbers in the byte order of another machine, or of more than 64 bits, become plain ones.
    """
    import pandas as pd

    ledger = ledger or Ledger()
    frame = _plain_numbers(frame, ledger)
    refuse_surrogates("a column's name", frame.columns)
    changed: dict[Any, Any] = {}
    for name, dtype in [(name, dtype) for name, dtype in frame.dtypes.items() if dtype.kind not in "biufc"]:
        column = frame[name]
        if dtype.kind == "m":
            changed[name] = column.dt.total_seconds()
            ledger.add("column", "converted", name, "durations, to seconds")
        elif isinstance(dtype, pd.CategoricalDtype) and isinstance(dtype.categories.dtype, pd.IntervalDtype):
            changed[name] = column.cat.rename_categories(str)
            ledger.add("column", "converted", name, "intervals, to text")
        elif dtype.kind == "O" and not isinstance(dtype, pd.CategoricalDtype):
            known = column.dropna()
            refuse_surrogates(f"column {name!r}", known)
            if len(known) and known.map(lambda cell: isinstance(cell, Decimal)).all():
                changed[name] = column.astype(float)
                ledger.add("column", "converted", name, "decimal numbers, to binary ones")
            elif wrong := [type(cell).__name__ for cell in known if isinstance(cell, NO_VALUES)][:1]:
                raise InputError(
                    f"column {name!r} holds a {wrong[0]}; a cell must be a number or a text: convert or drop it"
                )
    return frame.assign(**changed) if changed else frame


def _plain_numbers(frame: pd.DataFrame, ledger: Ledger) -> pd.DataFrame:
    """Numbers that pandas and the compiled loops know."""
    types: dict[Any, Any] = {}
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8:
            types[name] = np.float64
            ledger.add("column", "converted", name, "numbers of more than 64 bits, to 64")
        elif isinstance(dtype, np.dtype) and dtype.kind in "iuf" and not dtype.isnative:
            types[name] = dtype.newbyteorder("=")
    return frame.astype(types) if types else frame


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


def csv_of(frame: pd.DataFrame) -> str:
    """A table as CSV; text that a spreadsheet could run, at its start or after a break, gets an apostrophe in front."""
    safe = frame.rename(columns=inert)
    for name, column in safe.items():
        if column.dtype.kind not in "biufc":
            safe[name] = column.map(inert)
    return str(safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n"))


def restore_text(value: Any) -> Any:
    """The text of which `inert` made this one; other values as they are."""
    return PREFIXED.sub(r"\1", value) if isinstance(value, str) else value


def is_formula(value: Any) -> bool:
    """Whether `inert` cannot have made this text: a program could run it. Numbers are no formulas."""
    return isinstance(value, str) and bool(FORMULA.search(value)) and not is_numeral(value)


def is_numeral(text: Any) -> bool:
    """Whether Python reads this text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
