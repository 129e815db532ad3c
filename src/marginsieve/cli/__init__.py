"""The command `marginsieve`."""

import sys
from typing import Any

from .signals import caught, end_on_signals, ignore_signals

__all__ = ["app", "main"]


def main() -> None:
    """The command; `guard` says what its exit codes mean. Signals are seen to before anything heavy is loaded."""
    end_on_signals()
    try:
        from .commands import run

        code = run()
    except KeyboardInterrupt:
        code = caught()
        sys.stderr.write("error: interrupted\n")
    ignore_signals()
    sys.exit(code)


def __getattr__(name: str) -> Any:
    if name == "app":
        from .commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
