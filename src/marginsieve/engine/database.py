"""SQLite, and what each of its result codes means. No other module knows it.

A file is damaged where SQLite says so (CORRUPT, NOTADB) or its header is none of ours. Whatever else goes wrong is the
system's fault: a store that is busy, read-only or on a full disk is whole.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ..data.file_access import create_file
from ..errors import FaultKind

Connection = sqlite3.Connection
Error = sqlite3.Error
PATIENCE = 30.0  # seconds for which a lock of another program is waited for

#: by the names of SQLite's constants; an extended code that is not named means what its primary code does
OUTCOMES = {
    FaultKind.ANSWER: ("OK", "ROW", "DONE", "NOTICE", "WARNING"),
    FaultKind.INPUT: ("TOOBIG", "CANTOPEN_ISDIR"),
    FaultKind.DAMAGE: ("CORRUPT", "NOTADB"),
    FaultKind.SYSTEM: (
        *("ABORT", "AUTH", "BUSY", "CANTOPEN", "CONSTRAINT", "EMPTY", "ERROR", "FORMAT", "FULL", "INTERNAL"),
        *("INTERRUPT", "IOERR", "LOCKED", "MISMATCH", "MISUSE", "NOLFS", "NOMEM", "NOTFOUND", "PERM", "PROTOCOL"),
        *("RANGE", "READONLY", "SCHEMA"),
    ),
}
KINDS = {getattr(sqlite3, f"SQLITE_{name}"): kind for kind, names in OUTCOMES.items() for name in names}
MAGIC = b"SQLite format 3\0"


def kind_of_code(code: int) -> FaultKind:
    """What a primary or extended result code means."""
    return KINDS.get(code, KINDS.get(code & 0xFF, FaultKind.SYSTEM))


def kind_of_error(error: BaseException, path: Path) -> FaultKind:
    """What an error means that came while this database was read or written."""
    if not isinstance(error, sqlite3.Error):  # a value is not as it was written
        return FaultKind.DAMAGE
    kind = kind_of_code(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR))
    # a changed header can make SQLite say that a file is read-only, or of a format that it does not know
    return FaultKind.DAMAGE if kind is FaultKind.SYSTEM and not has_sound_header(path) else kind


def has_sound_header(path: Path) -> bool:
    """Whether a file is empty or begins as databases do that we write; True where it cannot be read."""
    try:
        with path.open("rb") as handle:
            head = handle.read(100)
    except OSError:
        return True
    if not head:
        return True
    fixed = head[:16] == MAGIC and set(head[18:20]) <= {1, 2} and head[21:24] == bytes((64, 32, 32))
    return fixed and head[44:48] <= bytes((0, 0, 0, 4)) and head[56:60] <= bytes((0, 0, 0, 1))  # format, encoding


def open_database(path: Path, write: bool) -> Connection:
    """A connection that runs nothing of what is in the file; without `write` not a byte of it changes."""
    if write:
        if not os.path.lexists(path):
            os.close(create_file(path))  # for its owner alone, as what SQLite keeps beside it then is
        connection = sqlite3.connect(path, isolation_level="IMMEDIATE", timeout=PATIENCE)
    else:
        waiting = path.with_name(f"{path.name}-wal")
        alone = not (waiting.exists() and waiting.stat().st_size)
        how = "?mode=ro&immutable=1" if alone else "?mode=ro"
        connection = sqlite3.connect(path.absolute().as_uri() + how, uri=True, timeout=PATIENCE)
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection
