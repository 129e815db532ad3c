"""SIGINT, SIGTERM and SIGHUP end a command alike: what is finished is kept, temporary files and workers go.

The first signal raises KeyboardInterrupt in the main thread; later ones are ignored, so that they do not disturb the
cleaning up. Python drops an exception that is raised within a callback of a weak reference or a destructor: a timer
raises it again until it is on its way. Nothing heavy is imported here: this is the first module of the command.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any, NoReturn

NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
AGAIN = 0.2  # seconds after which an exception that was dropped is raised again
ON_THE_WAY = (KeyboardInterrupt, GeneratorExit, SystemExit)

_received: list[int] = []


def end_on_signals() -> None:
    """From now on signals that end a process raise KeyboardInterrupt in the main thread."""
    _received.clear()
    for number in NUMBERS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP: leave it so
            signal.signal(number, _end)
    sys.unraisablehook = _ignore_dropped


def _end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    _received.append(number)
    ignore_signals()
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _again)
        signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
    raise KeyboardInterrupt


def _again(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, ON_THE_WAY):  # cleaning up is under way
            return
        error = error.__context__
    raise KeyboardInterrupt


def _ignore_dropped(what: Any) -> None:
    """Say nothing of a KeyboardInterrupt that Python could not raise where it came: it comes again."""
    if not (_received and issubclass(what.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(what)


def signal_exit_code() -> int:
    """Call it where a KeyboardInterrupt has arrived; 128 and the number of the signal, as shells have it."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return 128 + (_received[0] if _received else int(signal.SIGINT))


def ignore_signals() -> None:
    """From now on nothing interrupts: what is left to do is short."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)
