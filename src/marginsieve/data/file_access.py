"""Files and folders: paths are checked before they are opened, files written whole, scratch folders removed."""

from __future__ import annotations

import atexit
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from ..errors import InputError

NOT_FILES = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
NOT_PLACES = ((stat.S_ISLNK, "a link"), *NOT_FILES)

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what another name would not mend


def check_file(path: Path, advice: str = "name a file") -> None:
    """Refuse what is not there, is no regular file, or may not be read."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InputError(f"there is no file {format_path(path)}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{format_path(path)} cannot be read: {reason(error)}") from None
    if not stat.S_ISREG(mode):
        what = next((name for test, name in NOT_FILES if test(mode)), "a device")
        raise InputError(f"{format_path(path)} is {what}: {advice}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{format_path(path)} cannot be read: you may not")


def check_place(path: Path) -> None:
    """Refuse a place of our own files that holds a link or something that is no regular file."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(f"{format_path(path)} cannot be read: {reason(error)}") from None
    if not stat.S_ISREG(mode):
        what = next((name for test, name in NOT_PLACES if test(mode)), "a device")
        raise InputError(f"{format_path(path)} is {what}, which marginsieve did not make: move it away")


def write_error(error: OSError | ValueError, text: str) -> Exception:
    """What to raise where a file cannot be written: a wrong name is the user's, a full disk the system's."""
    if isinstance(error, OSError) and error.errno in FULL:
        return OSError(error.errno, f"{text}: {reason(error)}")
    return InputError(f"{text}: {reason(error)}")


def format_path(path: Path) -> str:
    """A path for messages; very long ones are cut."""
    text = str(path)
    return repr(text if len(text) <= 200 else f"{text[:100]}...{text[-60:]}")


def reason(error: BaseException) -> str:
    """Why the system refused, in a few words."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)[0].lower() + str(text)[1:]


# A file is written whole or not at all, under a temporary name that nobody else has; several appear together.

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
                mask = os.umask(0o077)  # the process's mask of permissions is read by setting it
                os.umask(mask)
                os.fchmod(out.fileno(), 0o666 & ~mask)
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


# Temporary folders that do not outlive us: what a killed process left is removed by the next one.

PREFIX = "marginsieve-scratch-"
LOCK = "in-use"
FRESH = 60.0  # seconds in which a folder may still be without its lock

_of_process: dict[int, Path] = {}


def process_folder() -> Path:
    """A scratch folder that goes with this process."""
    folder = _of_process.get(os.getpid())
    if folder is None or not folder.is_dir():
        stack = ExitStack()
        folder = _of_process[os.getpid()] = stack.enter_context(scratch_folder())
        atexit.register(_close, stack, os.getpid())
    return folder


def _close(stack: ExitStack, process: int) -> None:
    if os.getpid() == process:  # and not a child that was forked since
        stack.close()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that goes with the block; its lock is the system's own and goes with the process."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / LOCK).open("w") as handle:
            try_lock(handle)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of processes that are gone; those of other users are left alone."""
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                ours = not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()
                if ours:
                    _remove_unused(Path(entry.path))


def _remove_unused(folder: Path) -> None:
    with suppress(OSError):
        try:
            with (folder / LOCK).open("r+") as handle:
                unused = try_lock(handle)
        except FileNotFoundError:
            unused = time.time() - folder.stat().st_mtime > FRESH
        if unused:
            shutil.rmtree(folder, ignore_errors=True)


def try_lock(handle: IO[str]) -> bool:
    """Lock an open file for this process; False where another process has it."""
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
