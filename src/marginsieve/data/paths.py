"""Paths that users name: what cannot be read is refused in a sentence before it is opened."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

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
