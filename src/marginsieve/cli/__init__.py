"""The command `marginsieve`."""

from .commands import app, main

__all__ = ["app", "main"]
