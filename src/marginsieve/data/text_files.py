"""Text files as tables, in whatever dialect they are written; what needs a guess is refused by its place.

What pandas would pass over in silence (NUL bytes, short rows, words for empty cells, numbers beyond the largest,
columns without a name) is looked for beside it, at little cost where there is none of it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import IntArray
from ..errors import InputError, listing, many
from .cells import EMPTY, is_formula, restore_text
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
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]")  # in no text
NOT_WESTERN = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # not in Windows-1252
LETTERS = re.compile(rb"[\x80-\xff]+")
# encodings that are told apart, those with two bytes to a letter first
ENCODINGS = (
    *("gb18030", "cp932", "big5", "cp949", "euc_jis_2004"),
    *("cp1251", "koi8_r", "cp1253", "cp1250", "cp1254", "cp1255", "cp1256"),
)
LOOKED_AT = 2**16  # bytes of the rows with other letters, by which these are told apart
OTHER_SCRIPT = re.compile(rb"(?=[\x80-\xff]{4})([\x80-\xff])\1*(?!\1)[\x80-\xff]")  # four such letters in a row
QUOTED = re.compile(rb'"[^"]*"?')
RAGGED = ("refuse", "fill")
ADVICE = "take fewer rows or columns, or in Python a table that stays in its file (docs/files.md)"
# bytes of memory at the peak of reading, measured: of each byte of text, and of each cell
OF_TEXT, OF_TEXT_CELL = 1.0, 20.0


@dataclass(frozen=True)
class ReadOptions:
    """What is known of a file beforehand: how it ends, how text is written, columns that have a role, its part to read.

    What a reader changes goes into the `ledger`; columns of `keep` are not left out, and none if the table is `whole`.
    """

    kind: str
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    ragged: str = "refuse"
    target: str | None = None
    groups: str | None = None
    site: str | None = None
    keep: Sequence[str] = ()
    whole: bool = False
    sheet: str | None = None
    layer: str | None = None
    ledger: Ledger = field(default_factory=Ledger)

    def keeps(self, name: str) -> bool:
        """Whether a column stays whatever it looks like."""
        return self.whole or name in (self.target, self.groups, *self.keep)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written, and the names at its top."""

    separator: str
    decimal: str
    encoding: str
    names: tuple[str, ...] = ()
    guessed: bool = False  # whether the encoding was found out by the letters of another script
    others: tuple[str, ...] = ()  # encodings in which the file would be other letters of a script


def refuse_large(path: Path, rows: int, columns: int, needed: float, least: bool = False) -> None:
    """Refuse a file whose table does not fit into memory; `least`: it has more rows than were counted."""
    some = "at least " if least else ""
    refuse_more(needed, f"the table of {path.name!r} ({some}{many(rows, 'row')}, {many(columns, 'column')})", ADVICE)


def read_text(path: Path, options: ReadOptions) -> pd.DataFrame:
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
            if encoding is not None or dialect.guessed:
                raise InputError(f"{path.name!r} is not written in {dialect.encoding}: {error.reason}") from error
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
    frame.columns, nameless = name_columns([*frame.columns])
    _find_empty_words(path, dialect, frame, options)
    _find_overflows(path, dialect, frame, options)
    if "dtype" in how and options.target in frame.columns:
        frame[options.target] = _read_labels(frame[options.target], dialect.decimal, ledger)
    frame = leave_out(clean_texts(frame, dialect.decimal, ledger), nameless, options)
    if encoding is None and dialect.encoding == "cp1252":
        text = f"{path.name!r} is not UTF-8 and was read as Windows-1252: where letters look wrong, name the encoding"
        ledger.remark("encoding", f"{text} (--encoding)")
    if dialect.guessed:
        text = f"{path.name!r} is not UTF-8 and was read as {dialect.encoding}, by its letters: where they look wrong, "
        unsure = f"; it could be {listing(dialect.others)} too" if dialect.others else ""
        text += f"name the encoding (--encoding){unsure}"
        ledger.remark("encoding", text, level="alarm" if unsure else "note")
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
        if _has_wide_letters(encoding):
            raw = (text.encode("utf-8", "surrogatepass") for text in codecs.iterdecode(raw, encoding))
        yield from raw


def _has_wide_letters(encoding: str) -> bool:
    """Whether NUL bytes are parts of letters."""
    with suppress(LookupError):  # which is refused where it is used
        return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    return False


def _nul_error(path: Path, lines: int, start: bytes, separator: str) -> InputError:
    """The refusal of a NUL behind so many whole lines and the start of its own."""
    field_number = QUOTED.sub(b"", start).count(separator.encode()) + 1
    return InputError(
        f"{path.name!r} is not a text file: there is a NUL byte in line {lines + 1:,}, field {field_number:,}; a table "
        "must be what its name says"
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
    note_empty_words(frame, dict(zip(frame.columns[places], (raw[name] for name in raw.columns), strict=True)), options)


def note_empty_words(frame: pd.DataFrame, written: Mapping[str, pd.Series], options: ReadOptions) -> None:
    """Record cells that are empty in the table and hold a word as they are written, for columns of text."""
    seen: list[str] = []
    for name, texts in written.items():
        rows = np.flatnonzero(frame[name].isna() & texts.str.strip().ne(""))
        cells = texts.iloc[rows].tolist()
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


def clean_texts(frame: pd.DataFrame, decimal: str, ledger: Ledger) -> pd.DataFrame:
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


def name_columns(names: Sequence[str]) -> tuple[list[str], list[str]]:
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


def leave_out(frame: pd.DataFrame, nameless: Sequence[str], options: ReadOptions) -> pd.DataFrame:
    """The table without columns that have no name and are empty, or count or name the rows; these are said."""
    loose = [name for name in nameless if not options.keeps(name)]
    empty = [name for name in loose if frame[name].isna().all()]
    counting = [name for name in loose if name == frame.columns[0] and tells_rows(frame[name])]
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


def tells_rows(column: pd.Series) -> bool:
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
    if (place := start.find(b"\0")) >= 0 and not _has_wide_letters(encoding):
        lines, before = start.replace(b"\0", b"").decode("latin-1").splitlines()[: ROWS + 1], start[:place]
        mark = separator or _separator(lines, first)
        raise _nul_error(path, before.count(b"\n"), before.rpartition(b"\n")[2], mark)
    fitting: dict[str, str] = {}
    if guessed and encoding == "cp1252" and not _looks_western(start):
        fitting = _find_encodings(start)
        if not fitting:
            raise InputError(
                f"{path.name!r} is not UTF-8 and does not look like Windows-1252: name its encoding (--encoding), such "
                "as gb18030, shift_jis, euc_kr, cp1251 or latin-1"
            )
        encoding = next(iter(fitting))
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
    others = tuple(name for name, text in fitting.items() if text != fitting[encoding])
    return Dialect(separator, decimal, encoding, tuple(rows[0]), bool(fitting), others)


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


def _looks_western(start: bytes) -> bool:
    """Whether bytes that are not UTF-8 can be Windows-1252: their letters stand alone among those of ASCII."""
    runs = set(LETTERS.findall(start))
    pairs = len(runs) > 1 and all(len(run) % 2 == 0 for run in runs)
    return not (pairs or CONTROL.search(start) or NOT_WESTERN.search(start) or OTHER_SCRIPT.search(start))


def _find_encodings(start: bytes) -> dict[str, str]:
    """Encodings in which the letters look like words, the likeliest first, and the text of some rows in each."""
    from charset_normalizer import from_bytes

    if CONTROL.search(start):
        return {}
    some = b"\n".join(line for line in start.splitlines()[:-1] or [start] if LETTERS.search(line))
    some = some if len(some) <= LOOKED_AT else some[:LOOKED_AT].rpartition(b"\n")[0] or some
    return {match.encoding: str(match) for match in from_bytes(some, cp_isolation=[*ENCODINGS])}


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
