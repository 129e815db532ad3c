"""Results: folders that carry our mark, and in them one SQLite file per study, one row per finished unit.

Folders are ours only if they carry our mark; nobody's files are replaced or deleted.

Schema 3. Table `units`: key (hash of everything that decides the result), data, method, split, repeat, status ("done"
or "failed"), params, metrics, result (JSON: test rows, whether a limit ended the search; by size support, predicted
codes, decision values), error, seconds, peak_mb, versions, finished, checksum (of all the others). Table `data`: name,
rows, features, classes, positive, truth, names (JSON), checksum. Table `meta`: key, value; its entry `checksums` has
those of the others.

A unit is on the disk when `add` returns. A unit whose checksum is wrong counts as not run, and `mend` takes it out. A
store is anybody's until it was checked: it has these three tables and nothing else, and what is in it is only data.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from ..data.file_access import (
    check_place,
    create_file,
    file_error,
    format_path,
    kind_of_os_error,
    make_folder,
    put_in_place,
    reason,
    remove_leftovers,
    scratch_folder,
    sync_folder,
    try_lock,
    write_atomic,
    write_together,
)
from ..errors import FaultKind, InputError, SystemFault, listing, many
from .database import Error, kind_of_error, open_database
from .units import TUNING, UnitTable

# -- folders ----------------------------------------------------------------------------------------------------------

MARK = "marginsieve.json"
LOCK = "lock"
MARK_SCHEMA = 1
PLAIN = re.compile(r"[^/\\\x00-\x1f]{1,255}")  # a name that leads nowhere else
LONGEST = 2**20  # bytes of a mark


def claim(folder: Path, kind: str, names: Sequence[str], kept: Sequence[str] = ()) -> None:
    """Make a folder ours, before the work is done. It may be new, or hold other files as long as they have other names.

    Parameters
    ----------
    folder : Path
        The folder of results; a file with our mark is written there.
    kind : str
        What it holds, such as "study" or "suite"; a folder of ours that holds something else is refused.
    names : sequence of str
        Files that will be published there; files of others with such a name are refused.
    kept : sequence of str, default=()
        Files that a folder of ours may hold without their being published, such as the store.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginsieve.engine import claim
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     claim(Path(parent) / "out", "scores", ["table.csv"])
    ...     [path.name for path in (Path(parent) / "out").iterdir()]
    ['marginsieve.json']
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{format_path(folder)} is a file; name a folder")
        mark = check_kind(folder, kind)
        published = () if mark is None else _digests(mark)
        places = (*names, *kept, MARK, LOCK) if mark is None else names
        if taken := [
            name for name in dict.fromkeys(places) if name not in published and os.path.lexists(folder / name)
        ]:
            raise InputError(
                f"the folder {format_path(folder)} holds {listing(taken)}, which marginsieve did not write: name a new "
                "folder, or move them away"
            )
        for name in (*names, *kept):
            check_place(folder / name)
        if mark is None:
            make_folder(folder)
            write_atomic(folder / MARK, _mark(kind, {}))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise file_error(error, f"the folder {format_path(folder)} cannot be written to") from error


def check_kind(folder: Path, kind: str) -> dict[str, object] | None:
    """Our mark, None where the folder has none; refuses a folder of ours that holds something else."""
    mark = read_mark(folder)
    if mark is not None and mark["marginsieve"] != kind:
        held = str(mark["marginsieve"])[:30]
        known = held if held in ("study", "suite", "reproduction") else repr(held)
        raise InputError(f"the folder {format_path(folder)} holds a {known}, not a {kind}: name another one")
    return mark


def read_mark(folder: Path) -> dict[str, object] | None:
    """Our mark; None where the folder has none."""
    path = folder / MARK
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LONGEST:
            return None
        mark = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:  # whose folder it is cannot be known
        if kind_of_os_error(error) is FaultKind.SYSTEM:
            raise SystemFault(f"{format_path(path)} cannot be read: {reason(error)}") from error
        return None
    except (ValueError, RecursionError):
        return None
    ours = isinstance(mark, dict) and isinstance(mark.get("marginsieve"), str) and mark.get("schema") == MARK_SCHEMA
    return mark if ours else None


def publish(folder: Path, kind: str, files: Mapping[str, bytes], gone: Sequence[str] = ()) -> None:
    """Put results into a folder of ours in one step: all are written beside their places first.

    The mark with their digests goes first, so that whatever cuts the step short is seen.

    Parameters
    ----------
    folder : Path
        A folder that `claim` was called for.
    kind : str
        What it holds.
    files : mapping of str to bytes
        Content by name.
    gone : sequence of str, default=()
        Files of an earlier result that would not belong to this one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginsieve.engine import claim, publish
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = Path(parent) / "out"
    ...     claim(folder, "scores", ["table.csv"])
    ...     publish(folder, "scores", {"table.csv": b"method,auc"})
    ...     (folder / "table.csv").read_text()
    'method,auc'
    """
    earlier = _digests(read_mark(folder) or {})
    for name in files:
        check_place(folder / name)
    digests = {name: digest for name, digest in earlier.items() if name not in gone}
    digests |= {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_together(folder, {MARK: _mark(kind, digests), **files})
    for name in gone:
        if name in earlier:
            (folder / name).unlink(missing_ok=True)


def add_published(folder: Path, kind: str, name: str, temporary: Path) -> None:
    """Put one more file, which lies in the folder under a temporary name, beside the results."""
    check_place(folder / name)
    digests = {**_digests(read_mark(folder) or {}), name: digest_of(temporary)}
    put_in_place(temporary, folder / name)
    write_atomic(folder / MARK, _mark(kind, digests))


def digest_of(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def changed_files(folder: Path) -> list[str]:
    """Files of a result that are not as they were written, or whose writing was cut short, in words."""
    out = []
    for name, digest in _digests(read_mark(folder) or {}).items():
        if not PLAIN.fullmatch(name) or name in (".", "..", MARK, LOCK):
            out.append(f"{MARK} names {name[:60]!r}, which is no file of a result")
            continue
        try:
            check_place(folder / name)
            if not (folder / name).exists():
                out.append(f"{name} is missing")
            elif digest_of(folder / name) != digest:
                out.append(f"{name} was changed")
        except InputError as error:
            out.append(f"{name} cannot be read: {reason(error)}")
    return out


def _digests(mark: Mapping[str, object]) -> dict[str, object]:
    """Digests by the names of the published files."""
    files = mark.get("files")
    return {str(name): digest for name, digest in files.items()} if isinstance(files, dict) else {}


def _mark(kind: str, files: Mapping[str, object]) -> bytes:
    mark = {"marginsieve": kind, "schema": MARK_SCHEMA, "package": version("marginsieve"), "files": dict(files)}
    return (json.dumps(mark, indent=2) + "\n").encode()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Only one run works on a folder of ours. The lock is the system's own: it goes when the process does."""
    with _open_lock(folder / LOCK) as handle:
        if not try_lock(handle):
            handle.seek(0)
            owner = handle.read(100).strip() or "unknown"
            raise InputError(f"another run is at work on {folder} ({owner}): wait for it, or name another folder")
        remove_leftovers(folder)
        handle.seek(0)
        handle.truncate()
        handle.write(f"process {os.getpid()}")
        handle.flush()
        try:
            yield
        finally:
            handle.seek(0)
            handle.truncate()


def _open_lock(path: Path) -> IO[str]:
    """The lock file; a link in its place is not followed, and whatever is in it can be read."""
    check_place(path)
    try:
        return os.fdopen(create_file(path, os.O_RDWR), "r+", encoding="ascii", errors="backslashreplace")
    except OSError as error:
        raise file_error(error, f"{format_path(path)} cannot be opened as a lock") from error


# -- the store --------------------------------------------------------------------------------------------------------

SCHEMA = 3
FILE = "results.sqlite"
COLUMNS = (
    *("key", "data", "method", "split", "repeat", "status", "params", "metrics", "result", "error", "seconds"),
    *("peak_mb", "versions", "finished"),
)
TYPES = {"repeat": "INTEGER", "seconds": "REAL", "peak_mb": "REAL"}  # of columns that are not text
TABLE_COLUMNS = ("name", "rows", "features", "classes", "positive", "truth", "names")
JSON_COLUMNS = ("params", "metrics", "result", "versions", "classes", "truth", "names")

CREATE = {
    "units": "CREATE TABLE units ("
    + ", ".join(f"{name} {TYPES.get(name, 'TEXT')}" for name in COLUMNS)
    + ", checksum TEXT, PRIMARY KEY (key)) WITHOUT ROWID",
    "data": "CREATE TABLE data (name TEXT PRIMARY KEY, rows INTEGER, features INTEGER, classes TEXT, "
    "positive INTEGER, truth TEXT, names TEXT, checksum TEXT)",
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)",
}
RESCUED = "rescued.sqlite"
CHECKSUMS = "checksums"  # the entry of `meta` with the checksums of the others
OF_A_CELL = re.compile(r"[A-Z]+ value in \w+\.\w+")  # what SQLite says of one value: checksums see to that
BAD = (Error, ValueError, TypeError, OverflowError)  # what damaged bytes can raise; no InputError


def checksum(values: Iterable[Any]) -> str:
    """Of the values of a row as they are stored."""
    return hashlib.blake2b(json.dumps(list(values), default=repr).encode(), digest_size=16).hexdigest()


class Store:
    """Reads and writes the results of one folder; one writer at a time (see `open_store`)."""

    def __init__(self, folder: Path, write: bool = True) -> None:
        self.path, self.write = folder / FILE, write
        for path in _files(folder):
            check_place(path)
        if write:
            make_folder(folder)
        elif not self.path.exists():
            raise InputError(f"there is no study in {folder}")
        with self._explain_errors():
            self.connection = open_database(self.path, write)
        try:
            with self._explain_errors():
                new = write and self._is_empty()
                if not new:
                    self._check()
                if write:
                    self.connection.execute("PRAGMA journal_mode = WAL")
                    self.connection.execute("PRAGMA synchronous = FULL")  # a unit that was told to be done is on disk
                if new:
                    with self._transaction():
                        self._create()
        except BaseException:
            self.connection.close()
            raise

    def _is_empty(self) -> bool:
        """Whether there is nothing yet, as when the disk was full at the first attempt."""
        if self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return False
        return bool(self.connection.execute("PRAGMA page_count").fetchone()[0] <= 1)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, tables too, which do not begin a transaction of themselves."""
        with self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            yield

    def _create(self) -> None:
        for text in CREATE.values():
            self.connection.execute(text)
        marks = {"schema": str(SCHEMA), "package": json.dumps(version("marginsieve"))}
        self._put_meta(marks, {})

    def _check(self) -> None:
        entries = list(self.connection.execute("SELECT type, name, sql FROM sqlite_master"))
        if not entries and not self.write:
            raise InputError(f"{self.path} is empty: its run ended as it began, and the same command begins it again")
        others = [entry for entry in entries if entry[0] != "table" and not str(entry[1]).startswith("sqlite_auto")]
        others += [entry for entry in entries if entry[0] == "table" and entry[1] not in CREATE]
        if others:
            names = listing([f"{kind} {name}" for kind, name, _ in others])
            raise InputError(f"{self.path} holds what marginsieve did not make ({names}): use another folder")
        tables = {name: sql for kind, name, sql in entries if kind == "table"}
        if tables.get("meta") != CREATE["meta"]:
            raise self._unreadable("it has not the tables of a study")
        self._check_schema()
        if tables != CREATE:
            raise self._unreadable("it has not the tables of a study")
        state = [str(line) for (line,) in self.connection.execute("PRAGMA quick_check(100)")]
        if wrong := [line for line in state if line != "ok" and not OF_A_CELL.fullmatch(line)]:
            raise self._unreadable(wrong[0])

    def _check_schema(self) -> None:
        values, known = self._meta_values()
        if known.get("schema") == checksum(("schema", str(SCHEMA))):
            return  # of our schema, whatever has become of the entry since
        stored = str(values.get("schema", ""))
        if not re.fullmatch(r"[0-9]{1,6}", stored):
            raise self._unreadable("it does not say what schema it has")
        number = int(stored)
        if number != SCHEMA:
            age = "a newer" if number > SCHEMA else "an older"
            raise InputError(
                f"{self.path} was written by {age} marginsieve (schema {number}, this one writes {SCHEMA}): "
                "use that version, or another folder; nothing was changed"
            )

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """What SQLite or damaged bytes raise, as a sentence: of the system, or of what is wrong with the file."""
        try:
            yield
        except InputError:
            raise
        except BAD as error:
            kind, why = kind_of_error(error, self.path), " ".join(str(error).split())
            if kind is FaultKind.DAMAGE:
                raise self._unreadable(why) from error
            if kind is FaultKind.INPUT:
                raise InputError(f"{self.path} cannot hold this ({why})") from error
            done = "written" if self.write else "read"
            safe = "what was finished before is safe, and the same command goes on"
            raise SystemFault(f"{self.path} could not be {done} ({why}); {safe}") from error

    def _unreadable(self, text: str) -> InputError:
        why = " ".join(text.split())
        if not self.write:
            return InputError(f"{self.path} cannot be read as a study ({why}); nothing was changed")
        saved, name = rescue(self.path)
        kept = f"; {many(saved, 'unit')} of it can be read and are saved in {name} beside it" if saved else ""
        return InputError(
            f"{self.path} cannot be read as a study ({why}){kept}; nothing was changed: move it away"
            + (f" and rename {name} to {FILE} to go on with these, or use --fresh" if saved else " or use --fresh")
        )

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write finished units, all or none of them."""
        self._insert("units", [_as_stored(row, COLUMNS) for row in rows])

    def add_table(self, table: UnitTable) -> None:
        """Describe a table: the outcomes of its rows and the names of its features."""
        rows, features = table.rows.table.shape
        row = {"name": table.name, "rows": rows, "features": features, "names": table.rows.schema.names}
        row |= table.target.store_row
        self._insert("data", [_as_stored(row, TABLE_COLUMNS)])

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        with self._explain_errors(), self.connection:
            self._write_rows(table, rows)

    def _write_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * (len(rows[0]) + 1))
            values = [(*row, checksum(row)) for row in rows]
            self.connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values)

    def set_meta(self, key: str, value: Any) -> None:
        with self._explain_errors(), self.connection:
            self._put_meta({key: json.dumps(value)}, self._meta_values()[1])

    def _put_meta(self, values: Mapping[str, str], known: Mapping[str, Any]) -> None:
        sums = {**known, **{key: checksum((key, value)) for key, value in values.items()}}
        rows = [*values.items(), (CHECKSUMS, json.dumps(sums))]
        self.connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def _meta_values(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The entries of `meta`, and the checksums that they should have (none in stores of before)."""
        values = {str(key): value for key, value in self.connection.execute("SELECT key, value FROM meta")}
        sums = values.pop(CHECKSUMS, "{}")
        try:
            known = json.loads(sums)
        except (ValueError, TypeError, RecursionError):
            known = None
        return values, known if isinstance(known, dict) else dict.fromkeys((*values, CHECKSUMS))

    def _damaged_meta(self) -> list[str]:
        values, known = self._meta_values()
        return [key for key in known if key not in values or known[key] != checksum((key, values[key]))]

    def meta(self, key: str) -> Any:
        """An entry; None where there is none. A damaged one is an error."""
        with self._explain_errors():
            if key in self._damaged_meta():
                raise InputError(f"{self.path} is damaged (entry {key}): the same command as before makes it again")
            stored = self._meta_values()[0].get(key)
            return None if stored is None else json.loads(stored)

    def done(self) -> set[str]:
        """Keys of the units that ended well; failed and damaged ones are tried again."""
        key = COLUMNS.index("key")
        rows = self._raw(COLUMNS, "units WHERE status = 'done'")
        return {str(row[key]) for row, mark in rows if mark == checksum(row)}

    def tuning_rows(self) -> dict[str, dict[str, Any]]:
        """The units that tuned parameters on the reported splits, by their keys."""
        return {row["key"]: row for row in self._rows(COLUMNS, f"units WHERE split = '{TUNING}'")}

    def units(self) -> Iterator[dict[str, Any]]:
        """Every unit that is not damaged, in the order of data, method and split."""
        return self._rows(COLUMNS, "units ORDER BY data, method, repeat, split, key")

    def timings(self) -> list[tuple[str, str, str, float, str]]:
        """Data set, method, split, seconds and end of every unit that was run, without a look at its result."""
        columns = "data, method, split, seconds, finished"
        where = "typeof(seconds) IN ('real', 'integer') AND finished IS NOT NULL"
        with self._explain_errors():
            rows = list(self.connection.execute(f"SELECT {columns} FROM units WHERE {where}"))
        return [(str(d), str(m), str(split), float(s), str(end)) for d, m, split, s, end in rows]

    def data(self) -> dict[str, dict[str, Any]]:
        """The data sets by name, but for damaged ones, which a run describes again."""
        return {row["name"]: row for row in self._rows(TABLE_COLUMNS, "data")}

    def damages(self) -> list[str]:
        """Units, data sets and entries whose checksum is wrong, and what SQLite finds wrong, in words."""
        units = self._raw(("data", "method", "split", *COLUMNS), "units")
        tables = self._raw(("name", *TABLE_COLUMNS), "data")
        with self._explain_errors():
            damaged = [
                *(f"unit {d} / {m} / {split}" for (d, m, split, *row), mark in units if mark != checksum(row)),
                *(f"data set {name}" for (name, *row), mark in tables if mark != checksum(row)),
                *(f"entry {key}" for key in self._damaged_meta()),
            ]
            state = [str(line) for (line,) in self.connection.execute("PRAGMA integrity_check(100)")]
        return damaged + [line for line in state if line != "ok" and not (damaged and OF_A_CELL.fullmatch(line))]

    def mend(self) -> None:
        """Write the tables anew from what is not damaged."""
        with self._explain_errors():
            units = [tuple(row) for row, mark in self._raw(COLUMNS, "units") if mark == checksum(row)]
            tables = [tuple(row) for row, mark in self._raw(TABLE_COLUMNS, "data") if mark == checksum(row)]
            wrong = {*self._damaged_meta(), "schema", "package"}
            entries = {
                key: value
                for key, value in self._meta_values()[0].items()
                if key not in wrong and f"{key}{value}".isascii()  # as JSON is, and damaged texts often are not
            }
            with self._transaction():
                for table in CREATE:
                    self.connection.execute(f"DROP TABLE {table}")
                self._create()
                self._write_rows("units", units)
                self._write_rows("data", tables)
                self._put_meta(entries, self._meta_values()[1])

    def count(self) -> int:
        """Rows of units, damaged ones too."""
        with self._explain_errors():
            return int(self.connection.execute("SELECT count(*) FROM units").fetchone()[0])

    def _raw(self, columns: tuple[str, ...], source: str) -> Iterator[tuple[list[Any], Any]]:
        with self._explain_errors():
            for *row, mark in self.connection.execute(f"SELECT {', '.join(columns)}, checksum FROM {source}"):
                yield row, mark

    def _rows(self, columns: tuple[str, ...], source: str) -> Iterator[dict[str, Any]]:
        for row, mark in self._raw(columns, source):
            if mark == checksum(row):
                yield {
                    name: json.loads(value) if name in JSON_COLUMNS and value is not None else value
                    for name, value in zip(columns, row, strict=True)
                }

    def close(self) -> None:
        self.connection.close()


def _as_stored(row: Mapping[str, Any], columns: Iterable[str]) -> tuple[Any, ...]:
    """The values of a row as they are stored."""
    return tuple(json.dumps(row[name]) if name in JSON_COLUMNS else row[name] for name in columns)


def rescue(path: Path) -> tuple[int, str]:
    """Save the units of a damaged store that can be read and are right, in a store beside it; how many, and where.

    Where there is no room for them that is an error: nobody must be told that nothing can be saved.
    """
    try:
        with scratch_folder() as folder:
            readable = _readable(path)
            if not readable["units"]:
                readable = _readable(_with_first_page(path, folder))
                (folder / FILE).unlink()
            if not readable["units"]:
                return 0, ""
            with closing(Store(folder)) as store:
                for table, rows in readable.items():
                    store._insert(table, list(rows.values()))
                store.connection.execute("PRAGMA journal_mode = DELETE")
            content = (folder / FILE).read_bytes()
        return len(readable["units"]), _save_copy(path.parent, content)
    except BAD:
        return 0, ""
    except OSError as error:
        raise SystemFault(
            f"{path} is damaged, and what can be read of it could not be saved ({reason(error)}); nothing was changed"
        ) from error


def _with_first_page(path: Path, folder: Path) -> Path:
    """A copy in which the first page, which says where the tables are, is that of a store as we make it."""
    Store(folder).close()
    new, content = (folder / FILE).read_bytes(), path.read_bytes()
    size = int.from_bytes(new[16:18], "big")
    header = new[:28] + (len(content) // size).to_bytes(4, "big") + bytes(8) + new[40:size]  # no free pages
    (folder / FILE).write_bytes(header + content[size:])
    return folder / FILE


def _readable(path: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Rows of a damaged store whose checksum is right, by table and key; read from both ends."""
    readable: dict[str, dict[str, tuple[Any, ...]]] = {"units": {}, "data": {}}
    with suppress(*BAD), closing(open_database(path, write=False)) as damaged:
        for table, columns in (("units", COLUMNS), ("data", TABLE_COLUMNS)):
            for end in ("", f" ORDER BY {columns[0]} DESC"):
                with suppress(*BAD):
                    for *row, mark in damaged.execute(f"SELECT * FROM {table}{end}"):
                        if len(row) == len(columns) and mark == checksum(row):
                            readable[table][row[0]] = tuple(row)
    return readable


def _save_copy(folder: Path, content: bytes) -> str:
    """Write a rescued store under a name that is free; the same one is not saved twice."""
    stem, ending = RESCUED.split(".")
    for name in (RESCUED, *(f"{stem}-{number}.{ending}" for number in range(2, 100))):
        place = folder / name
        if not os.path.lexists(place):
            write_atomic(place, content)
            return name
        if (
            place.is_file()
            and not place.is_symlink()
            and place.stat().st_size == len(content)
            and place.read_bytes() == content
        ):
            return name
    raise OSError("there are too many rescued stores")


@contextmanager
def open_store(folder: Path, kind: str) -> Iterator[Store]:
    """The store of a folder on which no other run is at work; the folder is made ours, damage is told and mended."""
    claim(folder, kind, (), [path.name for path in _files(folder)])
    with lock_folder(folder), closing(Store(folder)) as store:
        if damaged := store.damages():
            text = f"{store.path} is damaged: what is wrong is made again ({listing(damaged)})"
            warnings.warn(text, UserWarning, stacklevel=4)
            store.mend()
        yield store


def begin(folder: Path, kind: str, resume: bool, fresh: bool) -> list[Path]:
    """What a run does first: `fresh` deletes the store and returns what it deleted, `resume` needs one to be there."""
    if resume and fresh:
        raise InputError("resume and fresh were both asked for: choose one")
    ours = check_kind(folder, kind) is not None
    existing = [path for path in _files(folder) if path.is_file()] if ours else []
    if resume and not existing:
        raise InputError(f"there is nothing to resume in {folder}")
    if not fresh or not existing:
        return []
    for path in existing:
        check_place(path)
    with lock_folder(folder):
        for path in existing:
            path.unlink()
        sync_folder(folder)
    return existing


def _files(folder: Path) -> list[Path]:
    """The store and what SQLite keeps beside it."""
    return [folder / f"{FILE}{ending}" for ending in ("", "-journal", "-shm", "-wal")]


def forget_empty(folder: Path, is_new: bool, marked: bool) -> None:
    """Take away what a run that failed at once leaves: a store without a unit, lock and mark, a folder it made.

    `is_new`: the run made the folder; `marked`: the folder had no mark before it. What others marked stays.
    """
    try:
        mark = read_mark(folder) if marked else None
        if mark is not None and mark["marginsieve"] in ("study", "validation") and not mark.get("files"):
            for path in [*_files(folder), folder / LOCK]:
                check_place(path)
            used = 0
            if (folder / FILE).is_file():
                with lock_folder(folder), closing(Store(folder, write=False)) as store:
                    used = store.count()
            for path in [] if used else [*_files(folder), folder / LOCK, folder / MARK]:
                path.unlink(missing_ok=True)
        if is_new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    except (InputError, OSError):  # another run is at work, or the folder is not ours to remove
        return
