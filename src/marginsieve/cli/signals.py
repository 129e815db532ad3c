"""SIGTERM and SIGHUP end a command as Ctrl-C does: what is finished is kept, temporary files and workers go."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

_received: list[int] = []


def end_on_signals() -> None:
    """From now on signals that end a process raise KeyboardInterrupt in the main thread."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP: leave it so
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    _received.append(number)
    raise KeyboardInterrupt


def exit_code() -> int:
    """128 and the number of the signal that came, as shells have it."""
    return 128 + (_received[-1] if _received else int(signal.SIGINT))
