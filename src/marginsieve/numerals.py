"""Numbers that are written as text: thousands, currencies, percents, limits of detection, marks for what is unknown."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = frozenset({"", "?", "-", "--", ".", "n.d.", "nd", "missing", "unknown"})
AROUND = re.compile(r"^([+-]?)\s*[€$£¥]?\s*(.*?)\s*[€$£¥%]?$")
LIMIT = re.compile(r"^[<>≤≥]=?\s*")
BLANKS = "'\u2019\u00a0 "  # between the thousands, whatever the decimal mark
FORMS = {
    mark: re.compile(rf"(?:[1-9]\d{{0,2}}(?:[{other}{BLANKS}]\d{{3}})+|\d+)?(?:[{mark}]\d+)?(?:[eE][+-]?\d+)?")
    for mark, other in ((".", ","), (",", "."))
}


@dataclass(frozen=True)
class Numerals:
    """A column of text as numbers; `said` is how its cells were read, `limits` how many are limits."""

    values: pd.Series
    said: tuple[str, ...]
    limits: int


def is_text(dtype: Any) -> bool:
    """Whether a column of this dtype holds text, and not declared categories."""
    return dtype.kind not in "biufcmM" and str(dtype) != "category"


def read_numerals(column: pd.Series) -> Numerals | None:
    """The numbers of a column whose every cell is one, or a mark for what is unknown; None where one is not.

    None as well where nothing but digits and points is there: what is plain text on purpose, like codes, stays text.
    """
    cells = column.dropna().astype(str).str.strip()
    distinct = cells.unique()
    asked = [text for text in distinct if text.lower() not in UNKNOWN]
    if not asked:
        return None
    for mark, form in FORMS.items():
        if all(_number(text, mark, form) is not None for text in asked[:1] + asked[-1:]):  # most columns end here
            read = {text: _number(text, mark, form) for text in asked}
            if all(value is not None for value in read.values()):
                return _made(column, cells, read)
    return None


def _number(text: str, mark: str, form: re.Pattern[str]) -> float | None:
    found = AROUND.match(LIMIT.sub("", text))
    if found is None or not found[2][:1].isdecimal() or not form.fullmatch(found[2]):
        return None
    digits = found[2].translate({ord(blank): None for blank in BLANKS})
    digits = digits.replace(",", "") if mark == "." else digits.replace(".", "").replace(",", ".")
    return float(found[1] + digits)


def _made(column: pd.Series, cells: pd.Series, read: dict[str, float | None]) -> Numerals | None:
    unknown = cells[cells.str.lower().isin(UNKNOWN)]
    limits = cells[cells.str.match(LIMIT)]
    dressed = [text for text in read if not LIMIT.match(text) and not _plain(text)]
    if not (len(unknown) or len(limits) or dressed):
        return None
    show: Callable[[str], str] = lambda text: f"{text!r} as {read[text]:g}"  # noqa: E731
    said = [show(dressed[0])] if dressed else []
    said += [f"{limits.iloc[0]!r} as its limit ({len(limits)} of {len(cells)} cells)"] if len(limits) else []
    said += [f"{unknown.iloc[0]!r} as empty ({len(unknown)} of {len(cells)} cells)"] if len(unknown) else []
    values = column.astype(object).where(column.isna(), cells).map(read).astype(float)
    return Numerals(values, tuple(said), len(limits))


def _plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
