"""Result folders are ours only if they carry our mark; nobody's files are replaced or deleted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO

from ..data.file_access import (
    check_place,
    format_path,
    put_in_place,
    reason,
    remove_leftovers,
    try_lock,
    write_atomic,
    write_error,
    write_together,
)
from ..errors import InputError, listing

MARK = "marginsieve.json"
LOCK = "lock"
SCHEMA = 1
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
            folder.mkdir(parents=True, exist_ok=True)
            _write_mark(folder, kind, {})
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise write_error(error, f"the folder {format_path(folder)} cannot be written to") from error


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
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(mark, dict) and isinstance(mark.get("marginsieve"), str) and mark.get("schema") == SCHEMA
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
    _write_mark(folder, kind, digests)


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
        except (InputError, OSError) as error:
            out.append(f"{name} cannot be read: {reason(error)}")
    return out


def _digests(mark: Mapping[str, object]) -> dict[str, object]:
    """Digests by the names of the published files."""
    files = mark.get("files")
    return {str(name): digest for name, digest in files.items()} if isinstance(files, dict) else {}


def _mark(kind: str, files: Mapping[str, object]) -> bytes:
    mark = {"marginsieve": kind, "schema": SCHEMA, "package": version("marginsieve"), "files": dict(files)}
    return (json.dumps(mark, indent=2) + "\n").encode()


def _write_mark(folder: Path, kind: str, files: Mapping[str, object]) -> None:
    write_atomic(folder / MARK, _mark(kind, files))


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
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.fdopen(os.open(path, flags, 0o666), "r+", encoding="ascii", errors="backslashreplace")
    except OSError as error:
        raise write_error(error, f"{format_path(path)} cannot be opened as a lock") from error
