"""A file is written whole or not at all, under a temporary name that nobody else has; several appear together."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PREFIX = ".marginsieve-"  # of files that are not in their place yet


def write_atomic(path: Path, content: bytes) -> None:
    """Write beside the file, then put it in its place; folders are made, a link is replaced and not followed."""
    write_together(path.parent, {path.name: content})


def write_together(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files beside their places, on the disk, and only then put them there, in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[tuple[Path, Path]] = []
    try:
        for name, content in files.items():
            written.append((_write_beside(folder, content), folder / name))
        for temporary, place in written:
            os.replace(temporary, place)
        _sync_folder(folder)
    finally:
        for temporary, _ in written:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _write_beside(folder: Path, content: bytes) -> Path:
    """A new file with a random name, on the disk; it never follows a link."""
    handle, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
    try:
        with open(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
            if hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), 0o666 & ~_mask())
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _mask() -> int:
    """The process's mask of permissions."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """So that the names, too, are on the disk."""
    if os.name == "nt":  # pragma: no cover
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left beside the places of its files; only while no other process writes there."""
    with suppress(OSError):
        for path in folder.glob(f"{PREFIX}*"):
            if path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)
