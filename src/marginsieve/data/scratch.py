"""Temporary folders that do not outlive us: what a killed process left is removed by the next one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

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
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and _is_ours(entry):
                _remove_unused(Path(entry.path))


def _is_ours(entry: os.DirEntry[str]) -> bool:
    return not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()


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
