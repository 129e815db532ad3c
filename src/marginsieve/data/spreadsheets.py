"""Sheets of Excel and OpenDocument files as tables, by python-calamine; a title above the header is refused."""

from __future__ import annotations

import zipfile
from collections import Counter
from contextlib import suppress
from datetime import time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, listing, many
from .cells import EMPTY
from .text_files import ReadOptions, clean_texts, leave_out, name_columns, note_empty_words, refuse_large

if TYPE_CHECKING:
    import pandas as pd

SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
OF_SHEET_CELL = 210.0  # bytes of memory of a cell at the peak of reading, measured
OF_UNPACKED = 3.0  # and of each byte of the unpacked file


def read_sheet(path: Path, options: ReadOptions) -> pd.DataFrame:
    """The sheet that is named, or the first that is not empty; its first row names the columns."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError as error:
        kind = options.kind[1:].upper()
        raise InputError(f"{path.name!r} is {kind}: install the extra, pip install 'marginsieve[excel]'") from error
    import pandas as pd

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            refuse_large(path, 0, 0, OF_UNPACKED * sum(entry.file_size for entry in archive.infolist()))
    with CalamineWorkbook.from_path(path) as book:
        sheet = _choose_sheet(path, book, options)
        refuse_large(path, sheet.height, sheet.width, OF_SHEET_CELL * sheet.height * sheet.width)
        rows, top = sheet.to_python(), (sheet.start or (0, 0))[0]
    names = [_text(cell).strip() for cell in rows[0]]
    _check_header(path, names, rows[1:])
    called, nameless = name_columns([name or f"Unnamed: {j}" for j, name in enumerate(names)])
    cells = pd.DataFrame(rows[1:], columns=called, dtype=object).replace("", None)
    filled = cells.notna().any(axis=1).to_numpy()
    numbers = top + 2 + np.arange(len(cells))
    options.ledger.add("row", "dropped", "", "a line that holds nothing", lines=numbers[~filled])
    options.ledger.lines = numbers[filled]
    cells = cells[filled].reset_index(drop=True)
    frame = cells.mask(cells.isin(EMPTY)).apply(_read_column)
    texts = [str(name) for name, dtype in frame.dtypes.items() if dtype.kind not in "biufcmM"]
    note_empty_words(frame, {name: cells[name].fillna("").astype(str) for name in texts}, options)
    _note_errors(path, options)
    return leave_out(clean_texts(frame, ".", options.ledger), nameless, options)


def _choose_sheet(path: Path, book: Any, options: ReadOptions) -> Any:
    """The sheet of a workbook that is read; what is not read is said."""
    names: list[str] = list(book.sheet_names)
    if options.sheet is not None and options.sheet not in names:
        raise InputError(f"sheet is {options.sheet!r}; {path.name!r} has {listing(names, 10)}")
    sheets = {name: book.get_sheet_by_name(name) for name in ([options.sheet] if options.sheet else names)}
    filled = [name for name, sheet in sheets.items() if sheet.height]
    if not filled:
        raise InputError(f"{path.name!r} is empty")
    if others := filled[1:]:
        text = f"the sheet {filled[0]!r} of {path.name!r} was read, and not {listing(others)} (--sheet names another)"
        options.ledger.remark("sheet", text)
    return sheets[filled[0]]


def _check_header(path: Path, names: list[str], rows: list[list[Any]]) -> None:
    """Refuse a first row that is no header: repeated names, or hardly a name above columns that are filled."""
    nameless = [j for j, name in enumerate(names) if not name and any(row[j] != "" for row in rows)]
    if 2 * len(nameless) > len(names):
        raise InputError(
            f"the first row of {path.name!r} names {len(names) - len(nameless)} of {many(len(names), 'column')}: it "
            "must name every column (no title or comment above it; delete these rows, or choose another sheet)"
        )
    counts = Counter(filter(None, names))
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"{path.name!r} has columns of the same name: {listing(twice)}; rename them")


def _read_column(column: pd.Series) -> pd.Series:
    """The cells of a column as numbers, truth values or dates where all of them are that, else as text."""
    import pandas as pd

    known = column.dropna()
    kinds = set(map(type, known))
    if not kinds:
        return column.astype(float)
    if kinds == {float} or kinds == {int} or kinds == {int, float}:
        whole = len(known) == len(column) and all(float(cell).is_integer() and abs(cell) < 2**53 for cell in known)
        return column.astype("int64" if whole else float)
    if kinds == {bool} and len(known) == len(column):
        return column.astype(bool)
    if all(hasattr(cell, "year") for cell in known):
        return pd.to_datetime(column.map(lambda cell: cell if cell is None else pd.Timestamp(cell)))
    if kinds == {timedelta}:
        return pd.to_timedelta(column)
    return column.map(_text, na_action="ignore")


def _text(cell: Any) -> str:
    """A cell as it is shown: whole numbers without a point, dates as 2026-11-19."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if hasattr(cell, "year") or isinstance(cell, time) else str(cell)


def _note_errors(path: Path, options: ReadOptions) -> None:
    """Say how many cells hold an error such as #DIV/0!, which are empty to the reader."""
    count = 0
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                count += archive.read(name).count(b' t="e"')
    if count:
        what = f"cells of {path.name!r} that hold an error such as #DIV/0! or #N/A and were read as empty: {count:,}"
        options.ledger.remark("marks", what)
