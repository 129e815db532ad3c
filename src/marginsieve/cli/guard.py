"""The one place that turns what a command could not do into a sentence and a stable exit code.

0 done; 1 a method, a unit or a solver failed; 2 wrong use or wrong input; 3 the system refused (disk, memory,
permission, network); 4 an error of marginsieve itself; 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import errno
import io
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from .signals import signal_exit_code

FAILED, WRONG, REFUSED, OURS, INTERRUPTED = 1, 2, 3, 4, 130
#: errors of a name: nobody can use it, or not this user
UNUSABLE = (errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ, errno.EACCES, errno.EPERM)
#: what the system's loader says where a library is there and there is no memory or no descriptor for it
OF_LOADER = ("failed to map segment", "annot allocate memory", "Too many open files", "cannot map zero-fill pages")
# typer brings its own copy of click; this is the class of everything that is wrong with a command line
UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def exit_code_of(run: Callable[[], Any]) -> int:
    """Run a command; the exit code."""
    from typer.rich_utils import rich_format_error

    _open_streams()
    try:
        code = run()
        sys.stdout.flush()
        if code == INTERRUPTED:  # what typer makes of a KeyboardInterrupt
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except UsageError as error:
        rich_format_error(error)
        return WRONG
    except (typer.Abort, KeyboardInterrupt):
        code = signal_exit_code()
        complain("interrupted; the same command goes on where it was")
        return code
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        return _explain(error)


def _open_streams() -> None:
    """Standard streams that can be written to, whatever is closed and whatever their encoding."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file that is opened would take its place, and what is printed
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115, until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _explain(error: Exception) -> int:
    from ..data.file_access import format_path, reason
    from ..errors import InputError, SolverError, one_line

    if isinstance(error, InputError):
        complain(str(error))
        return WRONG
    if isinstance(error, SolverError):
        complain(str(error))
        return FAILED
    if isinstance(error, MemoryError):
        complain(f"there is not enough memory: use fewer rows (--max-samples) or columns (--prefilter){_log(error)}")
        return REFUSED
    if isinstance(error, OSError):
        name = getattr(error, "filename", None)
        where = f" ({format_path(Path(os.fsdecode(name)))})" if isinstance(name, (str, bytes)) else ""
        if error.errno in UNUSABLE:
            complain(f"this place cannot be used: {reason(error)}{where}")
            return WRONG
        complain(f"the system refused: {reason(error)}{where}{_log(error)}")
        return REFUSED
    if isinstance(error, ImportError) and any(text in str(error) for text in OF_LOADER):
        complain(f"the system refused to load a library: {one_line(error)[:300]}{_log(error)}")
        return REFUSED
    text = str(error).strip().splitlines()
    complain(f"an error of marginsieve itself, {type(error).__name__}: {text[0] if text else ''}{_log(error)}")
    return OURS


def complain(text: str) -> None:
    """A sentence on standard error."""
    console = Console(stderr=True)
    with suppress(OSError):  # nobody can be told
        console.print("error:", style="bold red", end=" ")
        console.print(text, markup=False, highlight=False)


def _log(error: Exception) -> str:
    """Write the details to a file of its own; says where."""
    try:
        handle, path = tempfile.mkstemp(prefix="marginsieve-error-", suffix=".log")
        with open(handle, "w", encoding="utf-8") as out:
            out.write(
                f"marginsieve {version('marginsieve')}, Python {platform.python_version()}, {platform.platform()}\n"
            )
            out.write(f"command: {sys.argv!r}\n\n")
            out.write("".join(traceback.format_exception(error)))
    except OSError:
        return ""
    return f"; the details are in {path}"
