"""The store: one SQLite file per study, one row per finished unit, written as units finish.

Schema 2. Table `units`: key (hash of everything that decides the result), data, method, split, repeat, status ("done"
or "failed"), params, metrics, result (JSON: test rows, whether a limit ended the search; by size support, predicted
codes, decision values), error, seconds, peak_mb, versions, finished. Table `data`: name, rows, features, classes,
positive, truth, names (JSON). Table `meta`: key, value.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import InputError
from .units import UnitTable

SCHEMA = 2
FILE = "results.sqlite"
COLUMNS = (
    *("key", "data", "method", "split", "repeat", "status", "params", "metrics", "result", "error", "seconds"),
    *("peak_mb", "versions", "finished"),
)
TYPES = {"repeat": "INTEGER", "seconds": "REAL", "peak_mb": "REAL"}  # of columns that are not text
TABLE_COLUMNS = ("name", "rows", "features", "classes", "positive", "truth", "names")
JSON_COLUMNS = ("params", "metrics", "result", "versions", "classes", "truth", "names")


class Store:
    """Reads and writes the results of one folder; one writer at a time (see `locked`)."""

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
            self.connection.execute("PRAGMA synchronous = NORMAL")
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
            self.connection.execute(f"CREATE TABLE units ({fields}, PRIMARY KEY (key)) WITHOUT ROWID")
            self.connection.execute(
                "CREATE TABLE data (name TEXT PRIMARY KEY, rows INTEGER, features INTEGER, classes TEXT, "
                "positive INTEGER, truth TEXT, names TEXT)"
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
        return InputError(
            f"{self.path} cannot be read as a study ({why}); nothing was changed: move it away or use --fresh"
        )

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write finished units, all or none of them."""
        marks = ", ".join("?" * len(COLUMNS))
        values = [
            tuple(json.dumps(row[name]) if name in JSON_COLUMNS else row[name] for name in COLUMNS) for row in rows
        ]
        try:
            with self.connection:
                self.connection.executemany(f"INSERT OR REPLACE INTO units VALUES ({marks})", values)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path} could not be written ({error}); what was finished before is safe") from error

    def add_table(self, table: UnitTable) -> None:
        """Describe a table: class codes of its rows (truth) and names of its features."""
        classes, truth = json.dumps(table.classes), json.dumps(table.y.tolist())
        names = json.dumps(table.encoded.schema.names)
        values = (table.name, *table.encoded.table.shape, classes, table.positive, truth, names)
        with self.connection:
            self.connection.execute("INSERT OR REPLACE INTO data VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def set_meta(self, key: str, value: Any) -> None:
        with self.connection:
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def meta(self, key: str) -> Any:
        stored = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if stored is None else json.loads(stored[0])

    def done(self) -> set[str]:
        """Keys of the units that ended well; failed ones are tried again."""
        return {row[0] for row in self.connection.execute("SELECT key FROM units WHERE status = 'done'")}

    def units(self) -> Iterator[dict[str, Any]]:
        """Every unit, in the order of data, method and split."""
        return self._rows(COLUMNS, "units ORDER BY data, method, repeat, split, key")

    def data(self) -> dict[str, dict[str, Any]]:
        """The data sets by name."""
        return {row["name"]: row for row in self._rows(TABLE_COLUMNS, "data")}

    def _rows(self, columns: tuple[str, ...], source: str) -> Iterator[dict[str, Any]]:
        for row in self.connection.execute(f"SELECT {', '.join(columns)} FROM {source}"):
            yield {
                name: json.loads(value) if name in JSON_COLUMNS and value is not None else value
                for name, value in zip(columns, row, strict=True)
            }

    def close(self) -> None:
        self.connection.close()


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """The store of a folder on which no other run is at work."""
    with locked(folder), closing(Store(folder)) as store:
        yield store


def begin(folder: Path, resume: bool, fresh: bool) -> list[Path]:
    """What a run does first: `fresh` deletes the store and returns what it deleted, `resume` needs one to be there."""
    existing = [path for path in _files(folder) if path.is_file()]
    if resume and fresh:
        raise InputError("resume and fresh were both asked for: choose one")
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


def is_store(folder: Path) -> bool:
    """Whether a folder holds a store of ours."""
    path = folder / FILE
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'units'").fetchall())
    except sqlite3.Error:
        return False


def forget_empty(folder: Path, made: bool) -> None:
    """Take away what a run that failed at once leaves behind: a store without a unit, the lock, a folder it made."""
    try:
        if is_store(folder):
            with opened(folder) as store:
                used = next(store.units(), None) is not None
            for path in [] if used else [*_files(folder), folder / "lock"]:
                path.unlink(missing_ok=True)
        if made and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    except (InputError, OSError):  # another run is at work, or the folder is not ours to remove
        return


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one run works on a folder. The lock is the system's own: it goes when the process does, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8") as handle:
        if not _try_lock(handle):
            handle.seek(0)
            owner = handle.read().strip() or "unknown"
            raise InputError(f"another run is at work on {folder} ({owner}): wait for it, or name another folder")
        handle.seek(0)
        handle.truncate()
        handle.write(f"process {os.getpid()}")
        handle.flush()
        try:
            yield
        finally:
            handle.seek(0)
            handle.truncate()


def _try_lock(handle: Any) -> bool:
    try:
        if os.name == "nt":  # pragma: no cover
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
