"""What words on the command line mean."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from .console import say

if TYPE_CHECKING:
    from ..papers.paper import Paper


def features_of(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--features is {text!r}; it must be auto or a whole number of 1 or more")
    return int(text)


def prefilter_of(text: str) -> tuple[str, int] | None:
    from ..fitting.settings import read_prefilter

    if not text:
        return None
    name, _, count = text.partition(":")
    if not count.isdecimal():
        raise InputError(f"--prefilter is {text!r}; it must be a filter and a count, like fast:2000")
    prefilter = name.strip(), int(count)
    read_prefilter(prefilter)
    return prefilter


def say_deleted(paths: list[Path]) -> None:
    for path in paths:
        say(f"deleted {path}", stderr=True)


def say_replaced(out: Path, command: str) -> str:
    """Tell of a folder that holds the result of another command; the command again."""
    from ..study.files import read_result

    earlier = read_result(out).get("how", {}).get("command") if (out / "result.json").exists() else None
    if earlier and earlier.removesuffix(" --fresh") != command.removesuffix(" --fresh"):
        say(f"note: {out} holds the result of another command, which will be replaced ({earlier})", stderr=True)
    return command


def say_absent(paper: Paper, quick: bool) -> None:
    """Data sets of a paper that are not here."""
    from ..papers.problems import present

    needed = sorted({name for job in paper.jobs for name in (job.quick if quick else job.data)})
    if absent := sorted(set(needed) - set(present(needed))):
        text = f"note: {len(absent)} of {len(needed)} data sets are not here and were not run ({', '.join(absent)}): "
        text += "docs/data.md says where they come from, --data or MARGINSIEVE_DATA names their folder"
        say(text, stderr=True)


def check_jobs(jobs: int) -> None:
    if jobs == 0:
        raise InputError("--jobs is 0; it must be 1 or more, or -1 for one per core")


def names_of(text: str) -> list[str]:
    """Names between commas; one that holds a comma itself stands in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()]


def ids_of(text: str) -> list[str] | None:
    """None: they are to be found."""
    return None if text == "auto" else [] if text == "none" else names_of(text)


def check_csv(path: Path, table: Path) -> None:
    """Where a table of results goes: a CSV file, and not the table that was given."""
    if path.resolve() == table.resolve():
        raise InputError(f"--out is {str(path)!r}, the table itself: name another file")
    if path.suffix.lower() != ".csv":
        raise InputError(f"--out is {str(path)!r}; it must end in .csv")


def ids_among(columns: Iterable[str], known: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Columns of a new table that are named like ids and are nothing that the model knows."""
    from ..study.study_data import called_id

    other = {*known, *taken}
    return [name for name in columns if called_id(name) and name not in other]
