"""The store: one SQLite file per study, one row per finished unit, written as units finish.

Schema 3. Table `units`: key (hash of everything that decides the result), data, method, split, repeat, status ("done"
or "failed"), params, metrics, result (JSON: test rows, whether a limit ended the search; by size support, predicted
codes, decision values), error, seconds, peak_mb, versions, finished, checksum (of all the others). Table `data`: name,
rows, features, classes, positive, truth, names (JSON), checksum. Table `meta`: key, value.

A unit is on the disk when `add` returns. A unit whose checksum is wrong counts as not run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import InputError, many
from .folders import LOCK, MARK, claim, locked, read_mark
from .units import UnitTable

SCHEMA = 3
FILE = "results.sqlite"
COLUMNS = (
    *("key", "data", "method", "split", "repeat", "status", "params", "metrics", "result", "error", "seconds"),
    *("peak_mb", "versions", "finished"),
)
TYPES = {"repeat": "INTEGER", "seconds": "REAL", "peak_mb": "REAL"}  # of columns that are not text
TABLE_COLUMNS = ("name", "rows", "features", "classes", "positive", "truth", "names")
JSON_COLUMNS = ("params", "metrics", "result", "versions", "classes", "truth", "names")


RESCUED = "rescued.sqlite"


def checksum(values: Iterable[Any]) -> str:
    """Of the values of a row as they are stored."""
    return hashlib.blake2b(json.dumps(list(values)).encode(), digest_size=16).hexdigest()


class Store:
    """Reads and writes the results of one folder; one writer at a time (see `opened`)."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        new = not self.path.exists()
        if new:
            folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(self.path, isolation_level="IMMEDIATE", timeout=30)
        try:
            if not new:
                self._check()
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")  # a unit that is reported as done is on the disk
            if new:
                self._create()
        except sqlite3.DatabaseError as error:
            self.connection.close()
            raise self._unreadable(str(error)) from error
        except InputError:
            self.connection.close()
            raise

    def _create(self) -> None:
        fields = ", ".join(f"{name} {TYPES.get(name, 'TEXT')}" for name in COLUMNS)
        with self.connection:
            self.connection.execute("BEGIN IMMEDIATE")  # creating a table does not begin a transaction
            self.connection.execute(f"CREATE TABLE units ({fields}, checksum TEXT, PRIMARY KEY (key)) WITHOUT ROWID")
            self.connection.execute(
                "CREATE TABLE data (name TEXT PRIMARY KEY, rows INTEGER, features INTEGER, classes TEXT, "
                "positive INTEGER, truth TEXT, names TEXT, checksum TEXT)"
            )
            self.connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
            marks = (("schema", str(SCHEMA)), ("package", json.dumps(version("marginsieve"))))
            self.connection.executemany("INSERT INTO meta VALUES (?, ?)", marks)

    def _check(self) -> None:
        tables = {row[0] for row in self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"units", "data", "meta"} <= tables:
            raise self._unreadable("it has not the tables of a study")
        stored = self.connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        number = int(stored[0]) if stored else 0
        if number != SCHEMA:
            age = "a newer" if number > SCHEMA else "an older"
            raise InputError(
                f"{self.path} was written by {age} marginsieve (schema {number}, this one writes {SCHEMA}): "
                "use that version, or another folder; nothing was changed"
            )
        if (state := self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise self._unreadable(str(state))

    def _unreadable(self, why: str) -> InputError:
        saved = rescue(self.path)
        kept = f"; {many(saved, 'unit')} of it can be read and are saved in {RESCUED} beside it" if saved else ""
        return InputError(
            f"{self.path} cannot be read as a study ({why}){kept}; nothing was changed: move it away"
            + (f" and rename {RESCUED} to {FILE} to go on with these, or use --fresh" if saved else " or use --fresh")
        )

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write finished units, all or none of them."""
        self._insert("units", [_stored(row, COLUMNS) for row in rows])

    def add_table(self, table: UnitTable) -> None:
        """Describe a table: class codes of its rows (truth) and names of its features."""
        rows, features = table.encoded.table.shape
        row = {"name": table.name, "rows": rows, "features": features, "classes": table.classes}
        row |= {"positive": table.positive, "truth": table.y.tolist(), "names": table.encoded.schema.names}
        self._insert("data", [_stored(row, TABLE_COLUMNS)])

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        marks = ", ".join("?" * (len(rows[0]) + 1))
        try:
            with self.connection:
                values = [(*row, checksum(row)) for row in rows]
                self.connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path} could not be written ({error}); what was finished before is safe") from error

    def set_meta(self, key: str, value: Any) -> None:
        with self.connection:
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def meta(self, key: str) -> Any:
        stored = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if stored is None else json.loads(stored[0])

    def done(self) -> set[str]:
        """Keys of the units that ended well; failed and damaged ones are tried again."""
        return {row["key"] for row in self.units() if row["status"] == "done"}

    def units(self) -> Iterator[dict[str, Any]]:
        """Every unit that is not damaged, in the order of data, method and split."""
        return self._rows(COLUMNS, "units ORDER BY data, method, repeat, split, key")

    def data(self) -> dict[str, dict[str, Any]]:
        """The data sets by name, but for damaged ones, which a run describes again."""
        return {row["name"]: row for row in self._rows(TABLE_COLUMNS, "data")}

    def damaged(self) -> list[str]:
        """Units and data sets whose checksum is wrong, in words."""
        units = self._raw(("data", "method", "split", *COLUMNS), "units")
        tables = self._raw(("name", *TABLE_COLUMNS), "data")
        return [
            *(f"unit {d} / {m} / {split}" for (d, m, split, *row), mark in units if mark != checksum(row)),
            *(f"data set {name}" for (name, *row), mark in tables if mark != checksum(row)),
        ]

    def _raw(self, columns: tuple[str, ...], source: str) -> Iterator[tuple[list[Any], Any]]:
        try:
            for *row, mark in self.connection.execute(f"SELECT {', '.join(columns)}, checksum FROM {source}"):
                yield row, mark
        except sqlite3.DatabaseError as error:
            raise self._unreadable(str(error)) from error

    def _rows(self, columns: tuple[str, ...], source: str) -> Iterator[dict[str, Any]]:
        for row, mark in self._raw(columns, source):
            if mark == checksum(row):
                yield {
                    name: json.loads(value) if name in JSON_COLUMNS and value is not None else value
                    for name, value in zip(columns, row, strict=True)
                }

    def close(self) -> None:
        self.connection.close()


def _stored(row: Mapping[str, Any], columns: Iterable[str]) -> tuple[Any, ...]:
    """The values of a row as they are stored."""
    return tuple(json.dumps(row[name]) if name in JSON_COLUMNS else row[name] for name in columns)


def rescue(path: Path) -> int:
    """Save the units of a damaged store that can be read and are right, in a store beside it; returns how many."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as damaged:
            rows: dict[str, list[tuple[Any, ...]]] = {}
            for table, columns in (("units", COLUMNS), ("data", TABLE_COLUMNS)):
                rows[table] = []
                with suppress(sqlite3.DatabaseError):
                    for *row, mark in damaged.execute(f"SELECT {', '.join(columns)}, checksum FROM {table}"):
                        if mark == checksum(row):
                            rows[table].append(tuple(row))
        if not rows["units"]:
            return 0
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            store = Store(Path(folder))
            for table, values in rows.items():
                store._insert(table, values)
            store.connection.execute("PRAGMA journal_mode = DELETE")
            store.close()
            os.replace(Path(folder) / FILE, path.with_name(RESCUED))
        return len(rows["units"])
    except (sqlite3.Error, OSError):
        return 0


@contextmanager
def opened(folder: Path, kind: str) -> Iterator[Store]:
    """The store of a folder on which no other run is at work; the folder is made ours."""
    claim(folder, kind, [path.name for path in _files(folder)])
    with locked(folder), closing(Store(folder)) as store:
        yield store


def begin(folder: Path, resume: bool, fresh: bool) -> list[Path]:
    """What a run does first: `fresh` deletes the store and returns what it deleted, `resume` needs one to be there."""
    if resume and fresh:
        raise InputError("resume and fresh were both asked for: choose one")
    ours = read_mark(folder) is not None
    existing = [path for path in _files(folder) if path.is_file()] if ours else []
    if resume and not existing:
        raise InputError(f"there is nothing to resume in {folder}")
    if not fresh or not existing:
        return []
    with locked(folder):
        for path in existing:
            path.unlink()
    return existing


def _files(folder: Path) -> list[Path]:
    """The store and what SQLite keeps beside it."""
    return [folder / f"{FILE}{ending}" for ending in ("", "-journal", "-shm", "-wal")]


def forget_empty(folder: Path, is_new: bool) -> None:
    """Take away what a run that failed at once leaves: a store without a unit, lock and mark, a folder it made."""
    try:
        mark = read_mark(folder)
        if mark is not None and not mark.get("files"):
            used = False
            if (folder / FILE).is_file():
                with locked(folder), closing(Store(folder)) as store:
                    used = next(store.units(), None) is not None
            for path in [] if used else [*_files(folder), folder / LOCK, folder / MARK]:
                path.unlink(missing_ok=True)
        if is_new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    except (InputError, OSError):  # another run is at work, or the folder is not ours to remove
        return
