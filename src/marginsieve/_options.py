"""What words on the command line mean."""

from __future__ import annotations

import csv
from pathlib import Path

from rich.console import Console

from .errors import InputError


def features_of(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--features is {text!r}; it must be auto or a whole number of 1 or more")
    return int(text)


def prefilter_of(text: str) -> tuple[str, int] | None:
    from .settings import read_prefilter

    name, _, count = text.partition(":")
    if text and not count.isdecimal():
        raise InputError(f"--prefilter is {text!r}; it must be a filter and a count, like fast:2000")
    wanted = (name.strip(), int(count)) if text else None
    if wanted is not None:
        read_prefilter(wanted)
    return wanted


def say_deleted(paths: list[Path]) -> None:
    for path in paths:
        Console(stderr=True).print(f"deleted {path}", markup=False, highlight=False)


def check_jobs(jobs: int) -> None:
    if jobs == 0:
        raise InputError("--jobs is 0; it must be 1 or more, or -1 for one per core")


def names_of(text: str) -> list[str]:
    """Names between commas; one that holds a comma itself stands in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()]


def ids_of(text: str) -> list[str] | None:
    """None: they are to be found."""
    return None if text == "auto" else [] if text == "none" else names_of(text)
