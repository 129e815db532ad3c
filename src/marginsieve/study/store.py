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
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import InputError
from .units import UnitTable

SCHEMA = 2
FILE = "results.sqlite"
COLUMNS = (
    "key",
    "data",
    "method",
    "split",
    "repeat",
    "status",
    "params",
    "metrics",
    "result",
    "error",
    "seconds",
    "peak_mb",
    "versions",
    "finished",
)
JSON_COLUMNS = ("params", "metrics", "result", "versions")


class Store:
    """Reads and writes the results of one folder; one writer at a time (see `locked`)."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        new = not self.path.exists()
        if new:
            folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
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
        fields = ", ".join(f"{name} {_type(name)}" for name in COLUMNS)
        with self._transaction():
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

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write finished units, all or none of them."""
        marks = ", ".join("?" * len(COLUMNS))
        values = [
            tuple(json.dumps(row[name]) if name in JSON_COLUMNS else row[name] for name in COLUMNS) for row in rows
        ]
        try:
            with self._transaction():
                self.connection.executemany(f"INSERT OR REPLACE INTO units VALUES ({marks})", values)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path} could not be written ({error}); what was finished before is safe") from error

    def add_table(self, table: UnitTable) -> None:
        """Describe a table: class codes of its rows (truth) and names of its features."""
        rows, features = table.encoded.table.shape
        values = (table.name, rows, features, json.dumps(table.classes), table.positive)
        truth, names = json.dumps(table.y.tolist()), json.dumps(table.encoded.schema.names)
        with self._transaction():
            self.connection.execute(
                "INSERT OR REPLACE INTO data VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*values, truth, names),
            )

    def set_meta(self, key: str, value: Any) -> None:
        with self._transaction():
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def meta(self, key: str) -> Any:
        stored = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if stored is None else json.loads(stored[0])

    def done(self) -> set[str]:
        """Keys of the units that ended well; failed ones are tried again."""
        return {row[0] for row in self.connection.execute("SELECT key FROM units WHERE status = 'done'")}

    def units(self) -> Iterator[dict[str, Any]]:
        """Every unit, in the order of data, method and split."""
        query = f"SELECT {', '.join(COLUMNS)} FROM units ORDER BY data, method, repeat, split, key"
        for row in self.connection.execute(query):
            yield {
                name: json.loads(value) if name in JSON_COLUMNS and value is not None else value
                for name, value in zip(COLUMNS, row, strict=True)
            }

    def data(self) -> dict[str, dict[str, Any]]:
        """The data sets by name."""
        names = ("name", "rows", "features", "classes", "positive", "truth", "names")
        rows = self.connection.execute(f"SELECT {', '.join(names)} FROM data")
        out = {}
        for row in rows:
            entry = dict(zip(names, row, strict=True))
            for key in ("classes", "truth", "names"):
                entry[key] = json.loads(entry[key])
            out[entry["name"]] = entry
        return out

    def close(self) -> None:
        self.connection.close()


def _type(name: str) -> str:
    return {"repeat": "INTEGER", "seconds": "REAL", "peak_mb": "REAL"}.get(name, "TEXT")


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
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'units'").fetchall())
        finally:
            connection.close()
    except sqlite3.Error:
        return False


def forget_empty(folder: Path, made: bool) -> None:
    """Take away what a run that failed at once leaves behind: a store without a unit, the lock, a folder it made."""
    try:
        if is_store(folder):
            with locked(folder):
                store = Store(folder)
                used = next(iter(store.units()), None) is not None
                store.close()
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
    path = folder / "lock"
    with path.open("a+", encoding="utf-8") as handle:
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
