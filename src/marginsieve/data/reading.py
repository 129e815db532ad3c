"""Reading tables from files: text in whatever dialect it is written, Parquet, Feather, AnnData; and tables by name.

What a reader changes it records in a `Ledger`, and it looks at the size of a table before it makes it.
"""

from __future__ import annotations

import codecs
import csv
import errno
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import IntArray
from ..errors import InputError, listing, many, one_of
from .cells import EMPTY, is_formula, restore_text
from .file_access import check_file
from .ledger import TOO_LARGE, Ledger
from .stored import SPARE, free_bytes, refuse_more

if TYPE_CHECKING:
    import pandas as pd


SEPARATORS = (",", "\t", ";", "|")
TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # and the separator that is tried first
PEEK = 1 << 22  # bytes that are looked at: several rows of a wide table
ROWS = 50  # rows that are looked at
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NAMELESS = re.compile(r"^Unnamed: (\d+)$")  # what pandas calls a column without a name
WITH_COMMA = re.compile(r"(?![+-]?[1-9]\d{0,2}(,\d{3})+$)[+-]?\d+,\d+([eE][+-]?\d+)?")  # 1,234 may be thousands
BOOLEANS = {word: word.lower() == "true" for word in ("True", "TRUE", "true", "False", "FALSE", "false")}
WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
NOT_WESTERN = re.compile(rb"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f\x81\x8d\x8f\x90\x9d]")  # not in Windows-1252
OTHER_SCRIPT = re.compile(rb"(?=[\x80-\xff]{4})([\x80-\xff])\1*(?!\1)[\x80-\xff]")  # four such letters in a row
QUOTED = re.compile(rb'"[^"]*"?')
WIDE_ENCODINGS = ("utf-16", "utf-32", "utf_16", "utf_32")  # in which NUL bytes are parts of letters
RAGGED = ("refuse", "fill")
ADVICE = "take fewer rows or columns, or in Python a table that stays in its file (docs/files.md)"
# bytes of memory at the peak of reading, measured: of each byte of text, and of each cell
OF_TEXT, OF_TEXT_CELL, OF_CELL = 1.0, 20.0, 24.0
LOOKED_AT = 100  # rows of a columnar file by which the length of texts is judged


@dataclass(frozen=True)
class Dialect:
    """How a text file is written, and the names at its top."""

    separator: str
    decimal: str
    encoding: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadOptions:
    """What is known of a file beforehand: how it ends, how text is written, columns that have a role.

    What a reader changes goes into the `ledger`; columns of `keep` are not left out, and none if the table is `whole`.
    """

    kind: str
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    ragged: str = "refuse"
    target: str | None = None
    groups: str | None = None
    keep: Sequence[str] = ()
    whole: bool = False
    ledger: Ledger = field(default_factory=Ledger)

    def keeps(self, name: str) -> bool:
        """Whether a column stays whatever it looks like."""
        return self.whole or name in (self.target, self.groups, *self.keep)


Reader = Callable[[Path, ReadOptions], "pd.DataFrame"]
READERS: dict[str, Reader] = {}


def register_reader(*kinds: str) -> Callable[[Reader], Reader]:
    """Make a function known that reads files with these endings into a pandas table.

    Parameters
    ----------
    *kinds : str
        Endings with their dot, such as ".sav".

    Returns
    -------
    callable
        A decorator that returns the function as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.data.reading import READERS, register_reader
    >>> @register_reader(".jsonl")
    ... def read_lines(path, options):
    ...     return pd.read_json(path, lines=True)
    >>> READERS.pop(".jsonl") is read_lines
    True
    """

    def add(read: Reader) -> Reader:
        READERS.update(dict.fromkeys(kinds, read))
        return read

    return add


def endings() -> str:
    """The endings that are read, for messages."""
    return f"{', '.join(READERS)} (text also .gz)"


def read_table(
    path: Path,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    ragged: str = "refuse",
    target: str | None = None,
    groups: str | None = None,
    keep: Sequence[str] = (),
    whole: bool = False,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """A file as a pandas table; what is not given about a text file is found out from its first rows.

    AnnData (.h5ad, the extra `marginsieve[anndata]`) becomes its matrix, with the columns of `obs` that are the target
    and tell groups, and its cells' names as the index. A first column without a name that counts or names the rows is
    left out, unless it is in `keep` or the table is wanted whole. Rows of another length than the header are refused,
    or with `ragged="fill"` filled and cut. What is changed on the way is added to the `ledger`.
    """
    check_file(path, f"name a table that ends in {endings()}")
    one_of("reading", "ragged", ragged, RAGGED)
    kind = path.suffixes[-2].lower() if path.suffix.lower() == ".gz" and len(path.suffixes) > 1 else path.suffix.lower()
    if kind not in READERS:
        hint = " (from a spreadsheet, save it as CSV)" if kind in (".xlsx", ".xls", ".ods") else ""
        raise InputError(f"{path.name!r} ends in {path.suffix!r}; it must end in {endings()}{hint}")
    ledger = Ledger() if ledger is None else ledger
    options = ReadOptions(kind, separator, decimal, encoding, ragged, target, groups, keep, whole, ledger)
    try:
        frame = READERS[kind](path, options)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOMEM or "out of memory" in str(error):
            raise MemoryError(f"{path.name!r} does not fit into memory") from error
        raise InputError(f"{path.name!r} could not be read as {kind[1:].upper()}: {error}") from error
    if frame.empty:
        raise InputError(
            f"{path.name!r} has {frame.shape[0]} rows and {frame.shape[1]} columns: there is nothing in it"
        )
    frame.columns = [str(name) for name in frame.columns]
    return frame


def refuse_large(path: Path, rows: int, columns: int, needed: float, least: bool = False) -> None:
    """Refuse a file whose table does not fit into memory; `least`: it has more rows than were counted."""
    some = "at least " if least else ""
    refuse_more(needed, f"the table of {path.name!r} ({some}{many(rows, 'row')}, {many(columns, 'column')})", ADVICE)


# -- text -------------------------------------------------------------------------------------------------------------


@register_reader(".csv", ".tsv", ".txt")
def _read_text(path: Path, options: ReadOptions) -> pd.DataFrame:
    """Text in whatever dialect it is written, perhaps packed by gzip."""
    from pandas.errors import ParserError

    fill, ledger, encoding = options.ragged == "fill", options.ledger, options.encoding
    dialect = dialect_of(path, TEXT[options.kind], options.separator, options.decimal, encoding, fill)
    lines = _scan(path, dialect)
    how: dict[str, Any] = {"usecols": range(len(dialect.names))} if fill else {}
    how |= {"dtype": {options.target: str}} if options.target in dialect.names else {}
    try:
        try:
            frame = _parse(path, dialect, encoding is None, **how)
        except UnicodeDecodeError as error:
            if encoding is not None:
                raise InputError(f"{path.name!r} is not written in {encoding}: {error.reason}") from error
            dialect = replace(dialect, encoding="cp1252")  # a stray byte far down
            frame = _parse(path, dialect, True, **how)
    except ParserError:
        _check_rows(path, dialect, Records.read(path, dialect), options)
        raise
    if fill or lines != len(frame) + 1 or (frame.iloc[:, -1].hasnans and not _is_even(path, dialect, lines)):
        records = Records.read(path, dialect)
        _check_rows(path, dialect, records, options)
        ledger.lines = records.lines if len(records.lines) == len(frame) else None
    else:
        ledger.lines = np.arange(len(frame)) + 2
    frame.columns, nameless = _name_columns([*frame.columns])
    _find_empty_words(path, dialect, frame, options)
    _find_overflows(path, dialect, frame, options)
    if "dtype" in how and options.target in frame.columns:
        frame[options.target] = _read_labels(frame[options.target], dialect.decimal, ledger)
    frame = _leave_out(_clean_texts(frame, dialect.decimal, ledger), nameless, options)
    if encoding is None and dialect.encoding == "cp1252":
        text = f"{path.name!r} is not UTF-8 and was read as Windows-1252: where letters look wrong, name the encoding"
        ledger.remark("encoding", f"{text} (--encoding)")
    return frame


def _parse(path: Path, dialect: Dialect, guessed: bool, **how: Any) -> pd.DataFrame:
    """The cells of a text file as pandas reads them."""
    import pandas as pd

    how |= {"sep": dialect.separator, "decimal": dialect.decimal, "encoding": dialect.encoding, "index_col": False}
    how |= {"encoding_errors": "replace" if guessed and dialect.encoding == "cp1252" else "strict"}
    how |= {"keep_default_na": False, "na_values": EMPTY, "low_memory": False}
    frame: pd.DataFrame = pd.read_csv(path, compression="gzip" if path.suffix.lower() == ".gz" else None, **how)
    return frame


def _scan(path: Path, dialect: Dialect) -> int:
    """The lines of a text file, read once; refuses a NUL, with its place, and a table that does not fit into memory."""
    free, columns = SPARE * free_bytes(), len(dialect.names)
    lines = size = 0
    line: list[bytes] = []  # of which nothing but its beginning was read so far
    for chunk in _chunks(path, dialect.encoding):
        if (place := chunk.find(b"\0")) >= 0:
            before = chunk[:place]
            start = before.rpartition(b"\n")[2]
            start = start if b"\n" in before else b"".join([*line, start])
            raise _nul_error(path, lines + before.count(b"\n"), start, dialect.separator)
        size += len(chunk)
        if count := chunk.count(b"\n"):
            lines, line = lines + count, []
        line.append(chunk.rpartition(b"\n")[2])
        needed = OF_TEXT * size + OF_TEXT_CELL * lines * columns
        if needed > free:
            refuse_large(path, lines, columns, needed, least=True)
    return lines + any(line)


def _is_even(path: Path, dialect: Dialect, lines: int) -> bool:
    """Whether no row is short, by the number of separators, where no row is too long and nothing is quoted."""
    total, separator = 0, dialect.separator.encode()
    for chunk in _chunks(path, dialect.encoding):
        if b'"' in chunk:
            return False
        total += chunk.count(separator)
    return total == lines * (len(dialect.names) - 1)


def _chunks(path: Path, encoding: str) -> Iterator[bytes]:
    """The bytes of a text file, unpacked; those of an encoding with NUL bytes in its letters as UTF-8."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as handle:
        raw = iter(lambda: bytes(handle.read(PEEK)), b"")
        if encoding.lower().startswith(WIDE_ENCODINGS):
            raw = (text.encode("utf-8", "surrogatepass") for text in codecs.iterdecode(raw, encoding))
        yield from raw


def _nul_error(path: Path, lines: int, start: bytes, separator: str) -> InputError:
    """The refusal of a NUL behind so many whole lines and the start of its own."""
    field_number = QUOTED.sub(b"", start).count(separator.encode()) + 1
    return InputError(
        f"{path.name!r} is not a text file: there is a NUL byte in line {lines + 1:,}, field {field_number:,}; a table "
        f"must end in {endings()} and be what its name says"
    )


@dataclass(frozen=True)
class Records:
    """The rows of a text file: the line on which each begins, its number of fields, those beyond the header's."""

    lines: IntArray
    counts: IntArray
    extra: dict[int, list[str]]
    blank: IntArray  # lines that hold nothing, with rows below them

    @classmethod
    def read(cls, path: Path, dialect: Dialect) -> Records:
        """Look at every row once more, one by one."""
        lines: list[int] = []
        counts, blank, extra, width = [], [], {}, len(dialect.names)
        open_text: Any = gzip.open if path.suffix.lower() == ".gz" else open
        with open_text(path, "rt", encoding=dialect.encoding, errors="replace") as handle, _long_fields():
            reader, after = csv.reader(handle, delimiter=dialect.separator), 1
            for row in reader:
                line, after = after, reader.line_num + 1
                if not row or (len(row) == 1 and row[0].isspace()):
                    blank.append(line)
                    continue
                if len(row) > width:
                    extra[len(lines) - 1] = row[width:]
                lines.append(line)
                counts.append(len(row))
        inner = [line for line in blank if line < lines[-1]]
        return cls(np.array(lines[1:]), np.array(counts[1:]), extra, np.array(inner, dtype=np.intp))


@contextmanager
def _long_fields() -> Iterator[None]:
    """While fields of any length are read, as pandas reads them."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_rows(path: Path, dialect: Dialect, records: Records, options: ReadOptions) -> None:
    """Refuse rows that have not the fields of the header, or record how they are filled and cut; record blank lines."""
    width, ledger = len(dialect.names), options.ledger
    ledger.add("row", "dropped", "", "a line that holds nothing", lines=records.blank)
    odd = np.flatnonzero(records.counts != width)
    if not len(odd):
        return
    first = int(odd[0])
    what = f"row {first + 1:,} of {path.name!r} (line {records.lines[first]:,}) has "
    what += f"{many(int(records.counts[first]), 'field')} and the header {width:,}"
    if options.ragged == "refuse":
        others = f"; so have {many(len(odd) - 1, 'more row')}" if len(odd) > 1 else ""
        raise InputError(
            f"{what}{others}: correct it, or have short rows filled with empty cells and long ones cut (--ragged fill)"
        )
    for j in range(int(records.counts.min()), width):
        rows = np.flatnonzero(records.counts <= j)
        ledger.add("cell", "filled", dialect.names[j] or f"column {j + 1}", "its row was too short", rows=rows)
    for row, cells in records.extra.items():
        ledger.add("cell", "dropped", "", "beyond the header", rows=np.full(len(cells), row), cells=cells)
    short, long = (int(some.sum()) for some in (records.counts < width, records.counts > width))
    counted = f"{many(short, 'row')} filled with empty cells, {many(long, 'row')} cut"
    ledger.remark("ragged", f"rows of another length than the header: {counted}; the first: {what}", level="alarm")


def _find_empty_words(path: Path, dialect: Dialect, frame: pd.DataFrame, options: ReadOptions) -> None:
    """Record words such as NA that were read as empty cells of columns of text, where they may be values."""
    texts = [j for j, dtype in enumerate(frame.dtypes) if dtype.kind not in "biufc"]
    places = [j for j in texts if frame.iloc[:, j].hasnans]
    if options.whole or not places:
        return
    raw = _parse(path, dialect, options.encoding is None, usecols=places, dtype=str, na_filter=False)
    raw.columns, seen = frame.columns[places], []
    for name in raw.columns:
        rows = np.flatnonzero(frame[name].isna() & raw[name].str.strip().ne(""))
        cells = raw[name].iloc[rows].tolist()
        options.ledger.add("cell", "converted", name, "a word, to an empty cell", rows=rows, cells=cells)
        seen += [f"{word!r} in {name!r} ({many(count, 'row')})" for word, count in Counter(cells).items()]
    if seen:
        more = f" and {len(seen) - 5:,} more" if len(seen) > 5 else ""
        options.ledger.remark("marks", f"words that were read as empty cells: {', '.join(seen[:5])}{more}")


def _find_overflows(path: Path, dialect: Dialect, frame: pd.DataFrame, options: ReadOptions) -> None:
    """Record numerals such as 1e400, which pandas reads as infinite, in columns of numbers."""
    numbers = frame.select_dtypes("float")
    names = numbers.columns[np.isinf(numbers.to_numpy()).any(axis=0)].tolist()
    if not names:
        return
    raw = _parse(path, dialect, options.encoding is None, usecols=frame.columns.get_indexer(names), dtype=str)
    raw.columns = names
    for name in names:
        large = np.isinf(frame[name]) & ~raw[name].str.contains("inf", case=False, na=True)
        rows = np.flatnonzero(large)
        options.ledger.add("cell", "converted", name, TOO_LARGE, rows=rows, cells=raw[name].iloc[rows].tolist())


def _read_labels(column: pd.Series, decimal: str, ledger: Ledger) -> pd.Series:
    """The texts of a target as numbers or truth values, where all of them are; those of one value are joined."""
    import pandas as pd

    texts = column.dropna().unique().tolist()
    numbers = pd.to_numeric(pd.Series([text.replace(decimal, ".") for text in texts], dtype=object), errors="coerce")
    values = [BOOLEANS.get(text) for text in texts] if not numbers.notna().all() else numbers.tolist()
    inexact = numbers.dtype.kind == "f" and numbers.abs().max() > 2**53  # other labels might be the same float
    if not texts or None in values or inexact:
        return column
    first = {value: text for text, value in reversed([*zip(texts, values, strict=True)])}
    if others := [text for text, value in zip(texts, values, strict=True) if first[value] != text]:
        rows = np.flatnonzero(column.isin(others))
        cells = column.iloc[rows].tolist()
        ledger.add("label", "joined", column.name, "with the same value in other digits", rows=rows, cells=cells)
        text = f"labels of the same value were read as one class: {listing(texts)} as {listing(sorted(first))}"
        ledger.remark("labels", text, level="alarm")
    return column.map(dict(zip(texts, values, strict=True)))


def _clean_texts(frame: pd.DataFrame, decimal: str, ledger: Ledger) -> pd.DataFrame:
    """Texts that we wrote with an apostrophe in front, so that no program runs them, without it.

    A column in which any text could be run was not written by us and stays as it is. A cell that is empty but for
    spaces, and numbers of a column that has other cells too, are what they would be in any other column.
    """
    import pandas as pd

    for name in frame.columns[[dtype.kind not in "biufc" for dtype in frame.dtypes]]:
        texts = {value for value in frame[name].unique() if isinstance(value, str)}
        if any("'" in text for text in texts) and not any(is_formula(text) for text in texts):
            frame[name] = frame[name].map(restore_text)
        if decimal == ",":
            points = {text: text.replace(",", ".") for text in texts if text.count(",") == 1}
            mostly = 2 * sum(bool(WITH_COMMA.fullmatch(text.strip())) for text in points) > len(texts)
            frame[name] = frame[name].replace(points) if mostly else frame[name]
        for how, some in (
            ("a word between spaces, to an empty cell", [text for text in texts if text.strip() in EMPTY]),
            ("bytes that are no letters, to a sign for them", [text for text in texts if "\ufffd" in text]),
        ):
            rows = np.flatnonzero(frame[name].isin(some)) if some else np.empty(0, dtype=np.intp)
            ledger.add("cell", "converted", name, how, rows=rows, cells=frame[name].iloc[rows].tolist())
            if len(rows) and how.endswith("empty cell"):
                column = frame[name].mask(frame[name].isin(some))
                plain = pd.to_numeric(column, errors="coerce")
                frame[name] = plain if plain.notna().equals(column.notna()) else column
    return frame


def _name_columns(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of a file as we use them, and those of columns without a name, which are called by their place.

    Names that we wrote with an apostrophe in front, so that no program runs them, lose it; names of which any could be
    run were not written by us and stay as they are.
    """
    ours = any("'" in name for name in names) and not any(is_formula(name) for name in names)
    places = {name: int(match[1]) for name in names if (match := NAMELESS.match(name))}
    called = {name: f"column {place + 1}" for name, place in places.items()}
    if taken := [name for name in called.values() if name in names]:
        raise InputError(f"a column has no name, and another is called {taken[0]!r}: name every column")
    return [called.get(name, restore_text(name) if ours else name) for name in names], list(called.values())


def _leave_out(frame: pd.DataFrame, nameless: Sequence[str], options: ReadOptions) -> pd.DataFrame:
    """The table without columns that have no name and are empty, or count or name the rows; these are said."""
    loose = [name for name in nameless if not options.keeps(name)]
    empty = [name for name in loose if frame[name].isna().all()]
    counting = [name for name in loose if name == frame.columns[0] and _tells_rows(frame[name])]
    for name in empty:
        options.ledger.add("column", "dropped", name, "no name and no filled cell")
    for name in counting:
        options.ledger.add("column", "dropped", name, "no name, and it counts or names the rows")
        text = f"the first column has no name and {'counts' if frame[name].dtype.kind in 'iu' else 'names'} the rows"
        options.ledger.remark("unnamed", f"{text}: it is not used (--include {name!r} makes a feature of it)", [name])
    if rest := [name for name in nameless if name not in (*empty, *counting)]:
        options.ledger.remark("unnamed", f"columns without a name are called by their place: {listing(rest)}", rest)
    if empty:
        options.ledger.remark("unnamed", f"columns without a name or a filled cell were left out: {listing(empty)}")
    return frame.drop(columns=[*empty, *counting]) if empty or counting else frame


def _tells_rows(column: pd.Series) -> bool:
    """Whether a column without a name is what other programs write to count or to name the rows."""
    if column.dtype.kind in "iu":  # in order, or the numbers of all rows in another order
        steps = np.diff(column.to_numpy())
        return bool((steps > 0).all() or (column.is_unique and column.max() - column.min() == len(column) - 1))
    return column.dtype.kind not in "bfcmM" and column.is_unique


def dialect_of(
    path: Path,
    first: str = ",",
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    ragged: bool = False,
) -> Dialect:
    """What a text file is written in: given, or from its first rows; refuses headers that would be misread."""
    if decimal is not None and decimal not in (".", ","):
        raise InputError(f"decimal is {decimal!r}; it must be '.' or ','")
    if separator is not None and len(separator) != 1:
        raise InputError(f"separator is {separator!r}; it must be one character")
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as handle:
        start = bytes(handle.read(PEEK))
    guessed, encoding = encoding is None, encoding or _encoding(start)
    if (place := start.find(b"\0")) >= 0 and not encoding.lower().startswith(WIDE_ENCODINGS):
        lines, before = start.replace(b"\0", b"").decode("latin-1").splitlines()[: ROWS + 1], start[:place]
        mark = separator or _separator(lines, first)
        raise _nul_error(path, before.count(b"\n"), before.rpartition(b"\n")[2], mark)
    if guessed and encoding == "cp1252" and (NOT_WESTERN.search(start) or OTHER_SCRIPT.search(start)):
        raise InputError(
            f"{path.name!r} is not UTF-8 and does not look like Windows-1252: name its encoding (--encoding), such as "
            "gb18030, shift_jis, euc_kr, cp1251 or latin-1"
        )
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(start)
    except (LookupError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name!r} could not be read as text with encoding {encoding!r}: {error}") from error
    lines = text.splitlines()
    lines = lines[: ROWS + 1] if len(lines) > ROWS + 1 else lines if len(text) < PEEK // 2 else lines[:-1] or lines
    separator = separator or _separator(lines, first)
    rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    _check_header(path, rows, separator, ragged)
    if decimal is None:  # a comma where cells look like 3,5 and more of them than like 3.5; only quoted ones have one
        cells = [cell.strip() for row in rows[1:] for cell in row if cell]
        commas = sum(bool(WITH_COMMA.fullmatch(cell)) for cell in cells if "," in cell)
        decimal = "," if commas and commas > sum(bool(WITH_POINT.fullmatch(cell)) for cell in cells) else "."
    return Dialect(separator, decimal, encoding, tuple(rows[0]))


def _encoding(start: bytes) -> str:
    """By its mark; UTF-8 where the bytes are that, else Windows-1252."""
    for mark, name in MARKS.items():
        if start.startswith(mark):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(start)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _separator(lines: Sequence[str], first: str) -> str:
    """The one that cuts the header and the first rows into the same number of fields, the most; else `first`."""

    def fields(mark: str) -> tuple[int, bool]:
        try:
            counts = [len(row) for row in csv.reader(lines, delimiter=mark) if row]
        except csv.Error:  # one field as long as a whole wide row
            return 1, False
        even = len(counts) > 0 and counts.count(counts[0]) == len(counts)
        return (counts[0] if even else 1), mark == first

    best = max(SEPARATORS, key=fields)
    return best if fields(best)[0] > 1 else first


def _check_header(path: Path, rows: Sequence[Sequence[str]], separator: str, ragged: bool) -> None:
    """What pandas would pass over in silence: repeated names, a first row of another length, one column."""
    if not rows:
        raise InputError(f"{path.name!r} is empty")
    names, first = rows[0], rows[1] if len(rows) > 1 else None
    if first and len(first) != len(names) and not ragged:
        raise InputError(
            f"the header of {path.name!r} has {len(names)} field{'' if len(names) == 1 else 's'} and its first row "
            f"{len(first)}: the first line must name every column (no title or comment above it), and no separator "
            f"({separator!r}) may stand at the end of the rows"
        )
    if len(names) == 1 and any(mark in names[0] for mark in SEPARATORS):
        raise InputError(f"{path.name!r} has one column, {names[0][:60]!r}: its separator is not {separator!r}")
    counts = Counter(name for name in names if name)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"{path.name!r} has columns of the same name: {listing(twice)}; rename them")


# -- other files ------------------------------------------------------------------------------------------------------


@register_reader(".parquet", ".pq")
def _read_parquet(path: Path, options: ReadOptions) -> pd.DataFrame:
    import pandas as pd

    _refuse_large_arrow(path, "parquet")
    return _place_index(pd.read_parquet(path), options)


@register_reader(".feather", ".arrow")
def _read_feather(path: Path, options: ReadOptions) -> pd.DataFrame:
    import pandas as pd

    _refuse_large_arrow(path, "feather")
    return _place_index(pd.read_feather(path), options)


def _refuse_large_arrow(path: Path, kind: str) -> None:
    """Refuse a table that does not fit into memory, by what the file says of it; texts are as long as in its top."""
    import pyarrow
    from pyarrow import dataset, ipc, parquet

    with suppress(pyarrow.ArrowException):  # which the reader says too
        table = dataset.dataset(path, format=kind)
        rows, names = table.count_rows(), table.schema.names
        texts = [j for j, dtype in enumerate(table.schema.types) if _is_long(dtype)]
        length = 0.0
        if texts and rows:
            if kind == "parquet":
                columns = [names[j] for j in texts]
                top = next(parquet.ParquetFile(path).iter_batches(LOOKED_AT, columns=columns, use_threads=False))
            else:
                options = ipc.IpcReadOptions(included_fields=texts, use_threads=False)
                top = ipc.open_file(pyarrow.memory_map(str(path)), options=options).get_batch(0)
            length = top.nbytes / max(top.num_rows, 1)
        needed = OF_CELL * rows * (len(names) - len(texts)) + 2.0 * length * rows
        refuse_large(path, rows, len(names), needed)


def _is_long(dtype: Any) -> bool:
    """Whether cells of an arrow column take more or less than a number."""
    try:
        return bool(dtype.bit_width > 64)
    except ValueError:  # of no fixed width
        return True


def _place_index(frame: pd.DataFrame, options: ReadOptions) -> pd.DataFrame:
    """The table with index columns that hold data as columns; those that count or name the rows stay its index."""
    import pandas as pd

    if isinstance(frame.index, pd.RangeIndex):
        return frame
    for level, name in enumerate(frame.index.names):
        column = frame.index.get_level_values(level).to_series(index=pd.RangeIndex(len(frame)))
        called = str(name if name is not None else f"index {level + 1}")
        if called in frame.columns:
            raise InputError(f"an index column of the file is called {called!r} like another column: rename one")
        data = options.keeps(called) or not _tells_rows(column)
        if data:
            frame = frame.assign(**{called: column.to_numpy()})
        what = "was read as a column like the others" if data else "names the rows and is not used"
        options.ledger.add("column", "converted" if data else "dropped", called, "an index column of the file")
        options.ledger.remark("unnamed", f"the index column {called!r} {what}", [called])
    return frame


@register_reader(".h5ad")
def _read_anndata(path: Path, options: ReadOptions) -> pd.DataFrame:
    """The matrix of an AnnData file with its variables' names, and the columns of `obs` that have a role."""
    try:
        import anndata  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise InputError(f"{path.name!r} is AnnData: install the extra, pip install 'marginsieve[anndata]'") from error
    import pandas as pd

    _refuse_large_hdf5(path)
    data = anndata.read_h5ad(path)
    if data.X is None:
        raise InputError(f"{path.name!r} has no matrix X: write what is to be selected from into X (adata.X)")
    roles = {"target": options.target, "groups": options.groups}
    named = {role: name for role, name in roles.items() if name is not None}
    for role, name in named.items():
        if name not in data.obs.columns:
            known = listing([str(name) for name in data.obs.columns], most=10)
            raise InputError(f"{role} is {name!r}; the obs of {path.name!r} has the columns {known}")
        if name in set(map(str, data.var_names)):
            raise InputError(f"{role} is {name!r}, which is also the name of a variable of {path.name!r}: rename one")
    for name in [name for name in data.obs.columns if name not in named.values()]:
        options.ledger.add("column", "dropped", name, "a column of obs that has no role")
    matrix = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    frame = pd.DataFrame(matrix, columns=[str(name) for name in data.var_names]).astype("float64")
    frame = frame.assign(**{name: data.obs[name].to_numpy() for name in named.values()})
    return frame.set_index(pd.Index(data.obs_names.astype(str), name="cell"))


def _refuse_large_hdf5(path: Path) -> None:
    """Refuse an AnnData file whose arrays, unpacked and X as numbers, do not fit into memory."""
    import h5py  # type: ignore[import-not-found,import-untyped,unused-ignore]

    sizes: list[float] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda _, item: sizes.append(item.nbytes) if isinstance(item, h5py.Dataset) else None)
        X = file.get("X")
        shape = () if X is None else X.attrs["shape"] if isinstance(X, h5py.Group) else X.shape
        rows, columns = (int(side) for side in shape) if len(shape) == 2 else (0, 0)
        refuse_large(path, rows, columns, sum(sizes) + OF_CELL * rows * columns)


# Tables by name: whoever has tables registers how they are loaded.


@dataclass(frozen=True)
class NamedTable:
    """A binary problem with a name.

    Parameters
    ----------
    name : str
        Name of the table.
    X : DataFrame of shape (n_samples, n_features)
        The table.
    y : Series of shape (n_samples,)
        The labels: the positive class by its name, the others "rest".
    positive : str
        Name of the positive class.

    Examples
    --------
    >>> from marginsieve.data import NamedTable, make_cohort
    >>> cohort = make_cohort(40, 10, n_relevant=2, random_state=0)
    >>> table = NamedTable("TINY", cohort.X, cohort.y, positive="case")
    >>> table.name, table.X.shape
    ('TINY', (40, 10))
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    positive: str


Loader = Callable[[str], NamedTable]
_loaders: dict[str, Loader] = {}


def register_tables(names: Iterable[str], load: Loader) -> None:
    """Register tables by name, so that suites can name them.

    Parameters
    ----------
    names : iterable of str
        Names of the tables; case, spaces and hyphens are ignored when a table is loaded.
    load : callable
        Function that takes a name and returns a `NamedTable`.

    Examples
    --------
    >>> from marginsieve.data import NamedTable, load_table, make_cohort, register_tables
    >>> def load(name):
    ...     cohort = make_cohort(40, 10, n_relevant=2, random_state=0)
    ...     return NamedTable(name, cohort.X, cohort.y, "case")
    >>> register_tables(["TINY"], load)
    >>> load_table("tiny").X.shape
    (40, 10)
    """
    _loaders.update({_key(name): load for name in names})


def load_table(name: str) -> NamedTable:
    """Load a registered table.

    Parameters
    ----------
    name : str
        One of the registered names.

    Returns
    -------
    NamedTable
        The table with its labels.

    Examples
    --------
    >>> from marginsieve.data import NamedTable, load_table, make_cohort, register_tables
    >>> cohort = make_cohort(30, 5, n_relevant=2, random_state=0)
    >>> register_tables(["SMALL"], lambda name: NamedTable(name, cohort.X, cohort.y, "case"))
    >>> load_table("small").X.shape
    (30, 5)
    """
    if (key := _key(name)) not in _loaders:
        raise InputError(f"there is no table {name!r}; the names are {listing(sorted(_loaders), most=50) or 'none'}")
    return _loaders[key](key)


def _key(name: str) -> str:
    return name.strip().upper().replace(" ", "").replace("-", "")
