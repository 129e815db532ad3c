"""A file is written whole or not at all, under a temporary name that nobody else has; several appear together."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

TEMPORARY = re.compile(r"\.marginsieve-[0-9a-f]{16}\.part")  # names of files that are not in their place yet


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
        sync_folder(folder)
    finally:
        for temporary, _ in written:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _write_beside(folder: Path, content: bytes) -> Path:
    """A new file with a random name, on the disk; it never follows a link."""
    name = temporary_name(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(name, flags, 0o600)
    try:
        with open(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
            if hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), 0o666 & ~_mask())
    except BaseException:
        name.unlink()
        raise
    return name


def temporary_name(folder: Path) -> Path:
    """A name for a file that is not in its place yet; nobody else's begins, ends and is as long as this."""
    return folder / f".marginsieve-{secrets.token_hex(8)}.part"


def put_in_place(temporary: Path, place: Path) -> None:
    """Put a file that another library wrote under a temporary name into its place, on the disk."""
    with temporary.open("rb+") as handle:
        os.fsync(handle.fileno())
    os.replace(temporary, place)
    sync_folder(place.parent)


def _mask() -> int:
    """The process's mask of permissions."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
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
        for path in folder.iterdir():
            if TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)
