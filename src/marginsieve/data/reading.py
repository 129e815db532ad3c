"""Reading tables from files: text in whatever dialect it is written, Parquet, Feather, AnnData; and tables by name."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, listing
from .cells import is_formula, restore_text
from .file_access import check_file

if TYPE_CHECKING:
    import pandas as pd


SEPARATORS = (",", "\t", ";", "|")
TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # and the separator that is tried first
PEEK = 1 << 22  # bytes that are looked at: several rows of a wide table
ROWS = 50  # rows that are looked at
EMPTY = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"]  # "None" may be a class
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NAMELESS = re.compile(r"^Unnamed: (\d+)$")  # what pandas calls a column without a name
WITH_COMMA = re.compile(r"(?![+-]?[1-9]\d{0,2}(,\d{3})+$)[+-]?\d+,\d+([eE][+-]?\d+)?")  # 1,234 may be thousands
WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
NOT_WESTERN = re.compile(rb"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f\x81\x8d\x8f\x90\x9d]")  # not in Windows-1252
OTHER_SCRIPT = re.compile(rb"(?=[\x80-\xff]{4})([\x80-\xff])\1*(?!\1)[\x80-\xff]")  # four such letters in a row
ENCODING_NOTE = "marginsieve_encoding"  # in the attrs of a table


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str
    decimal: str
    encoding: str


@dataclass(frozen=True)
class ReadOptions:
    """What is known of a file beforehand: how it ends, how text is written, columns that have a role."""

    kind: str
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    target: str | None = None
    groups: str | None = None
    whole: bool = False


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
    target: str | None = None,
    groups: str | None = None,
    whole: bool = False,
) -> pd.DataFrame:
    """A file as a pandas table; what is not given about a text file is found out from its first rows.

    AnnData (.h5ad, the extra `marginsieve[anndata]`) becomes its matrix, with the columns of `obs` that are the target
    and tell groups, and its cells' names as the index. A first column without a name that tells rows apart is left out,
    unless the table is wanted whole.
    """
    check_file(path, f"name a table that ends in {endings()}")
    kind = path.suffixes[-2].lower() if path.suffix.lower() == ".gz" and len(path.suffixes) > 1 else path.suffix.lower()
    if kind not in READERS:
        hint = " (from a spreadsheet, save it as CSV)" if kind in (".xlsx", ".xls", ".ods") else ""
        raise InputError(f"{path.name!r} ends in {path.suffix!r}; it must end in {endings()}{hint}")
    try:
        frame = READERS[kind](path, ReadOptions(kind, separator, decimal, encoding, target, groups, whole))
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path.name!r} could not be read as {kind[1:].upper()}: {error}") from error
    if frame.empty:
        raise InputError(
            f"{path.name!r} has {frame.shape[0]} rows and {frame.shape[1]} columns: there is nothing in it"
        )
    frame.columns = [str(name) for name in frame.columns]
    return frame


@register_reader(".csv", ".tsv", ".txt")
def _read_text(path: Path, options: ReadOptions) -> pd.DataFrame:
    """Text in whatever dialect it is written, perhaps packed by gzip."""
    import pandas as pd

    encoding = options.encoding
    dialect = dialect_of(path, TEXT[options.kind], options.separator, options.decimal, encoding)
    packed = "gzip" if path.suffix.lower() == ".gz" else None
    how: dict[str, Any] = {"sep": dialect.separator, "decimal": dialect.decimal, "compression": packed}
    how |= {"low_memory": False, "keep_default_na": False, "na_values": EMPTY}
    frame: pd.DataFrame
    try:
        frame = pd.read_csv(path, encoding=dialect.encoding, **how)
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise InputError(f"{path.name!r} is not written in {encoding}: {error.reason}") from error
        frame = pd.read_csv(path, encoding="cp1252", encoding_errors="replace", **how)  # a stray byte far down
        dialect = replace(dialect, encoding="cp1252")
    frame = _restore_texts(_name_columns(frame, options.whole))
    if encoding is None and dialect.encoding == "cp1252":
        frame.attrs[ENCODING_NOTE] = (
            f"{path.name!r} is not UTF-8 and was read as Windows-1252: where letters look wrong, name the encoding "
            "(--encoding)"
        )
    return frame


def _restore_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Names and texts that we wrote with an apostrophe in front, so that no program runs them, without it.

    Names, or a column, in which any text could be run were not written by us and stay as they are.
    """
    if not any(is_formula(name) for name in frame.columns):
        frame = frame.rename(columns=restore_text)
    for name in frame.columns[[dtype.kind not in "biufc" for dtype in frame.dtypes]]:
        texts = {value for value in frame[name].unique() if isinstance(value, str)}
        if any("'" in text for text in texts) and not any(is_formula(text) for text in texts):
            frame[name] = frame[name].map(restore_text)
    return frame


def _name_columns(frame: pd.DataFrame, whole: bool) -> pd.DataFrame:
    """A first column without a name that tells rows apart is left out; others without one are called by their place."""
    first = frame.columns[0]
    if not whole and NAMELESS.match(str(first)) and frame[first].is_unique:
        frame = frame.drop(columns=first)
    nameless = {name: match for name in frame.columns if (match := NAMELESS.match(str(name)))}
    frame = frame.drop(columns=[name for name in nameless if frame[name].isna().all() and not whole])
    called = {name: f"column {int(match[1]) + 1}" for name, match in nameless.items()}
    if taken := [name for name in called.values() if name in frame.columns]:
        raise InputError(f"a column has no name, and another is called {taken[0]!r}: name every column")
    return frame.rename(columns=called)


def dialect_of(
    path: Path, first: str = ",", separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Dialect:
    """What a text file is written in: given, or from its first rows; refuses headers that would be misread."""
    if decimal is not None and decimal not in (".", ","):
        raise InputError(f"decimal is {decimal!r}; it must be '.' or ','")
    if separator is not None and len(separator) != 1:
        raise InputError(f"separator is {separator!r}; it must be one character")
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as handle:
        start = bytes(handle.read(PEEK))
    guessed, encoding = encoding is None, encoding or _encoding(start)
    if b"\0" in start and not encoding.lower().startswith(("utf-16", "utf-32", "utf_16", "utf_32")):
        raise InputError(f"{path.name!r} is not a text file; a table must end in {endings()} and be what its name says")
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
    _check_header(path, rows, separator)
    if decimal is None:  # a comma where cells look like 3,5 and more of them than like 3.5; only quoted ones have one
        cells = [cell.strip() for row in rows[1:] for cell in row if cell]
        commas, points = (sum(bool(form.fullmatch(cell)) for cell in cells) for form in (WITH_COMMA, WITH_POINT))
        decimal = "," if commas > points else "."
    return Dialect(separator, decimal, encoding)


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


def _check_header(path: Path, rows: Sequence[Sequence[str]], separator: str) -> None:
    """What pandas would pass over in silence: repeated names, rows with another number of fields, one column."""
    if not rows:
        raise InputError(f"{path.name!r} is empty")
    names, first = rows[0], rows[1] if len(rows) > 1 else None
    if first and len(first) != len(names):
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


@register_reader(".parquet", ".pq")
def _read_parquet(path: Path, _: ReadOptions) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path)


@register_reader(".feather", ".arrow")
def _read_feather(path: Path, _: ReadOptions) -> pd.DataFrame:
    import pandas as pd

    return pd.read_feather(path)


@register_reader(".h5ad")
def _read_anndata(path: Path, options: ReadOptions) -> pd.DataFrame:
    """The matrix of an AnnData file with its variables' names, and the columns of `obs` that have a role."""
    try:
        import anndata  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise InputError(f"{path.name!r} is AnnData: install the extra, pip install 'marginsieve[anndata]'") from error
    import pandas as pd

    data = anndata.read_h5ad(path)
    roles = {"target": options.target, "groups": options.groups}
    named = {role: name for role, name in roles.items() if name is not None}
    for role, name in named.items():
        if name not in data.obs.columns:
            known = listing([str(name) for name in data.obs.columns], most=10)
            raise InputError(f"{role} is {name!r}; the obs of {path.name!r} has the columns {known}")
        if name in set(map(str, data.var_names)):
            raise InputError(f"{role} is {name!r}, which is also the name of a variable of {path.name!r}: rename one")
    matrix = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    frame = pd.DataFrame(matrix, columns=[str(name) for name in data.var_names]).astype("float64")
    frame = frame.assign(**{name: data.obs[name].to_numpy() for name in named.values()})
    return frame.set_index(pd.Index(data.obs_names.astype(str), name="cell"))


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
