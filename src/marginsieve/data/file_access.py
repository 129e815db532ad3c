"""Files and folders: paths are checked before they are opened, files written whole, scratch folders removed.

What we write is for its owner alone (0600, folders 0700), unless the process was told to follow its umask.
"""

from __future__ import annotations

import atexit
import errno
import math
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from ..errors import FaultKind, InputError, SystemFault

NOT_FILES = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
NOT_PLACES = ((stat.S_ISLNK, "a link"), *NOT_FILES)

#: of the system's errors those that another name would mend; all others are faults of the system
NAMES = (
    *("EACCES", "EEXIST", "EILSEQ", "EINVAL", "EISDIR", "ELOOP", "EMLINK", "ENAMETOOLONG", "ENODEV"),
    *("ENOENT", "ENOTDIR", "ENOTEMPTY", "ENXIO", "EPERM", "EROFS", "EXDEV"),
)


def check_file(path: Path, advice: str = "name a file") -> None:
    """Refuse what is not there, is no regular file, or may not be read."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InputError(f"there is no file {format_path(path)}") from None
    except (OSError, ValueError) as error:
        raise file_error(error, f"{format_path(path)} cannot be read") from None
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
        raise file_error(error, f"{format_path(path)} cannot be read") from None
    if not stat.S_ISREG(mode):
        what = next((name for test, name in NOT_PLACES if test(mode)), "a device")
        raise InputError(f"{format_path(path)} is {what}, which marginsieve did not make: move it away")


def kind_of_os_error(error: OSError | ValueError) -> FaultKind:
    """Whose fault it is that a file cannot be used: a wrong name is the user's, a full disk the system's."""
    if not isinstance(error, OSError):  # a path that holds a NUL
        return FaultKind.INPUT
    return FaultKind.INPUT if errno.errorcode.get(error.errno or 0) in NAMES else FaultKind.SYSTEM


def file_error(error: OSError | ValueError, text: str) -> Exception:
    """What to raise where a file cannot be read or written; the text says which file."""
    if kind_of_os_error(error) is FaultKind.INPUT:
        return InputError(f"{text}: {reason(error)}")
    return SystemFault(f"{text}: {reason(error)}")


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
    make_folder(folder)
    remove_leftovers(folder, STALE)
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
    handle = create_file(name)
    try:
        with open(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        name.unlink()
        raise
    return name


_follows: ContextVar[bool] = ContextVar("follows_umask", default=False)


def set_follow_umask(follow: bool) -> None:
    """From now on, whether others may read what is written, as far as the process's umask lets them."""
    _follows.set(follow)


@contextmanager
def follow_umask(follow: bool) -> Iterator[None]:
    """The same within a block."""
    token = _follows.set(follow)
    try:
        yield
    finally:
        _follows.reset(token)


def create_file(path: Path, flags: int = os.O_WRONLY | os.O_EXCL) -> int:
    """The descriptor of a new file; a link in its place is not followed."""
    more = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_BINARY", "O_CLOEXEC"))
    return os.open(path, flags | os.O_CREAT | sum(more), 0o666 if _follows.get() else 0o600)


def make_folder(folder: Path) -> None:
    """A folder and those above it, as far as they are not there."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(0o777 if _follows.get() else 0o700, exist_ok=True)


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


def remove_leftovers(folder: Path, older_than: float = 0.0) -> None:
    """Remove what a killed process left beside the places of its files, and is ours and so many seconds old.

    At once (0) only while no other process writes there.
    """
    latest = time.time() - older_than if older_than else math.inf
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            ours = TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False) and _is_ours(entry)
            if ours and entry.stat(follow_symlinks=False).st_mtime < latest:
                os.unlink(entry)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    """Whether it belongs to the user of this process."""
    return not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()


# Temporary folders that do not outlive us: what a killed process left is removed by the next one.

PREFIX = "marginsieve-scratch-"
LOCK = "in-use"
SHARED = "/dev/shm"
STALE = 86_400.0  # seconds after which nobody writes a file any more
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
        _remove_shared(process)  # a signal while workers start can make joblib forget some


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that goes with the block; its lock is the system's own and goes with the process."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / LOCK).open("w") as handle:
            with suppress(OSError):  # a file system without locks: nobody removes the folder then
                try_lock(handle)
            handle.write(str(os.getpid()))
            handle.flush()
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of processes that are gone, and what they shared; those of other users are left alone."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and _is_ours(entry):
                _remove_unused(Path(entry.path))


def _remove_unused(folder: Path) -> None:
    with suppress(OSError, ValueError):
        process = 0
        try:
            with (folder / LOCK).open("r+") as handle:
                unused = try_lock(handle)
                process = int(handle.read(20) or 0)
        except FileNotFoundError:
            unused = time.time() - folder.stat().st_mtime > FRESH
        if unused:
            if process and not _is_running(process):  # the number may be another's by now
                _remove_shared(process)
            shutil.rmtree(folder, ignore_errors=True)


def _remove_shared(process: int) -> None:
    """Remove what joblib leaves in shared memory under the number of a process of ours that is at its end."""
    names = re.compile(rf"sem\.loky-{process}-\w+|joblib_memmapping_folder_{process}_\w+")
    with suppress(OSError), os.scandir(SHARED) as entries:
        for entry in entries:
            if names.fullmatch(entry.name) and _is_ours(entry):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    os.unlink(entry)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # pragma: no cover
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True


def try_lock(handle: IO[str]) -> bool:
    """Lock an open file for this process; False where another process has it."""
    try:
        if os.name == "nt":  # pragma: no cover
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
