"""One table to an answer: options, the plan, the choice of methods, what is looked at, and the files."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Study", "study"]


def __getattr__(name: str) -> Any:
    """The study loads when it is used: the command shows its options without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".running", __name__), name)
