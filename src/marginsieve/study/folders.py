"""Result folders are ours only if they carry our mark; nobody's files are replaced or deleted."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO

from ..data.atomic import remove_leftovers, write_atomic, write_together
from ..data.paths import reason, shown
from ..data.scratch import try_lock
from ..errors import InputError, listing

MARK = "marginsieve.json"
LOCK = "lock"
SCHEMA = 1


def claim(folder: Path, kind: str, names: Sequence[str]) -> None:
    """Make a folder ours, before the work is done. It may be new, or hold other files as long as they have other names.

    `kind` says what it holds: "study", "suite" or "reproduction"; `names` are the files that will be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{shown(folder)} is a file; name a folder")
        mark = read_mark(folder)
        if mark is None:
            if taken := [name for name in dict.fromkeys((*names, MARK, LOCK)) if os.path.lexists(folder / name)]:
                raise InputError(
                    f"the folder {shown(folder)} holds {listing(taken)}, which marginsieve did not write: name a new "
                    "folder, or move them away"
                )
            folder.mkdir(parents=True, exist_ok=True)
            _write_mark(folder, kind, {})
        elif mark["marginsieve"] != kind:
            raise InputError(
                f"the folder {shown(folder)} holds a {mark['marginsieve']}, not a {kind}: name another one"
            )
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the folder {shown(folder)} cannot be written to: {reason(error)}") from error


def read_mark(folder: Path) -> dict[str, object] | None:
    """Our mark; None where the folder has none."""
    path = folder / MARK
    try:
        if path.is_symlink() or not path.is_file():
            return None
        mark = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(mark, dict) and isinstance(mark.get("marginsieve"), str) and mark.get("schema") == SCHEMA
    return mark if ours else None


def publish(folder: Path, kind: str, files: Mapping[str, bytes], gone: Sequence[str] = ()) -> None:
    """Put results into a folder of ours: all are written beside their places first; the mark, with digests, is last."""
    for name in gone:  # an earlier run's would not belong to this result
        (folder / name).unlink(missing_ok=True)
    write_together(folder, files)
    _write_mark(folder, kind, {name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def changed_files(folder: Path) -> list[str]:
    """Files of a result that are not as they were written, or whose writing was cut short."""
    mark = read_mark(folder)
    digests = mark.get("files") if mark is not None else None
    out = []
    for name, digest in digests.items() if isinstance(digests, dict) else ():
        with suppress(OSError):
            if hashlib.sha256((folder / str(name)).read_bytes()).hexdigest() != digest:
                out.append(str(name))
    return out


def _write_mark(folder: Path, kind: str, files: Mapping[str, str]) -> None:
    mark = {"marginsieve": kind, "schema": SCHEMA, "package": version("marginsieve"), "files": dict(files)}
    write_atomic(folder / MARK, (json.dumps(mark, indent=2) + "\n").encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
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
    """The lock file; a link in its place is not followed."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.fdopen(os.open(path, flags, 0o666), "r+", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be opened as a lock: {reason(error)}") from error
