"""The command `marginsieve`."""

import sys
from importlib import import_module
from typing import Any

from .signals import end_on_signals, ignore_signals, signal_exit_code

__all__ = ["app", "check_jobs", "exit_code_of", "main", "say", "show_progress"]

_homes = {  # what other commands of ours share with this one: module and name
    "app": (".commands", "app"),
    "check_jobs": ("..errors", "check_n_jobs"),
    "exit_code_of": (".guard", "exit_code_of"),
    "say": (".console", "say"),
    "show_progress": (".progress", "show_progress"),
}


def main() -> None:
    """The command; `guard` says what its exit codes mean. Signals are seen to before anything heavy is loaded."""
    end_on_signals()
    try:
        from .commands import run

        code = run()
    except KeyboardInterrupt:
        code = signal_exit_code()
        sys.stderr.write("error: interrupted\n")
    ignore_signals()
    sys.exit(code)


def __getattr__(name: str) -> Any:
    if name not in _homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inner = _homes[name]
    return getattr(import_module(module, __name__), inner)
