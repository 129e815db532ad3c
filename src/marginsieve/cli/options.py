"""What words on the command line mean."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, listing, many
from .console import say

if TYPE_CHECKING:
    import pandas as pd

    from ..data.cohort import Truth

COPIES_WRITTEN = 5.5  # of a generated table while its file is made


def features_of(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or len(text) > 12 or int(text) < 1:
        raise InputError(f"--features is {text[:30]!r}; it must be auto or a whole number of 1 or more")
    return int(text)


def prefilter_of(text: str) -> tuple[str, int] | None:
    from ..fitting.settings import read_prefilter

    if not text:
        return None
    name, _, count = text.partition(":")
    if not count.isdecimal() or len(count) > 12:
        raise InputError(f"--prefilter is {text!r}; it must be a filter and a count, like fast:2000")
    prefilter = name.strip(), int(count)
    read_prefilter(prefilter)
    return prefilter


def say_deleted(paths: list[Path]) -> None:
    for path in paths:
        say(f"deleted {path}", stderr=True)


def say_replaced(out: Path, command: str) -> str:
    """Tell of a folder that holds the result of another command; the command again."""
    from ..studies.files import read_result

    try:
        earlier = str(read_result(out)["how"]["command"] or "")
    except (InputError, OSError, LookupError, TypeError, AttributeError):  # none, or not as a study leaves it
        earlier = ""
    if earlier and earlier.removesuffix(" --fresh") != command.removesuffix(" --fresh"):
        say(f"note: {out} holds the result of another command, which will be replaced ({earlier})", stderr=True)
    return command


def load_module(name: str) -> None:
    """Import a module of the current folder, or an installed one, that registers tables and protocols."""
    import importlib
    import sys

    sys.path.insert(0, "")
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"--load names {name!r}, which cannot be imported: {error}") from error


def say_verified(folder: Path) -> None:
    """Look at every unit of a store; an error names what is damaged."""
    from contextlib import closing

    from ..engine.folders import changed_files, read_mark
    from ..engine.store import FILE, Store

    if read_mark(folder) is None or not (folder / FILE).is_file():
        raise InputError(f"there is no store of marginsieve in {str(folder)!r}")
    with closing(Store(folder, write=False)) as store:
        count, damaged = store.count(), [*store.damages(), *changed_files(folder)]
    if damaged:
        counted = "1 entry is" if len(damaged) == 1 else f"{len(damaged):,} entries are"
        raise InputError(f"{counted} damaged: {listing(damaged, 20)}; the command that made them makes them again")
    say(f"{many(count, 'unit')}, all as they were written")


def check_cells(samples: int, features: int) -> None:
    """Refuse a table that does not fit into memory as numbers and as text."""
    from ..data.cohort import refuse_cells

    refuse_cells(max(samples, 0), max(features, 0), COPIES_WRITTEN)


def write_cohort(path: Path, truth: Path, frame: pd.DataFrame, planted: dict[str, Any]) -> None:
    """A generated table and its truth; replaces them only where they are as an earlier call left them."""
    import hashlib
    import json

    from ..data.atomic import write_together
    from ..data.paths import check_file, format_path, write_error

    if path.suffix.lower() != ".csv":
        raise InputError(f"the table is to be {format_path(path)}; it must end in .csv")
    content = frame.to_csv(index=False).encode()
    try:
        for file in (path, truth):
            if file.is_symlink() or file.exists():
                check_file(file)
                if not _as_generated(path, truth):
                    raise InputError(
                        f"{format_path(file)} is there already and was not made by this command: name another file"
                    )
        mark = {**planted, "marginsieve": "cohort", "sha256": hashlib.sha256(content).hexdigest()}
        write_together(path.parent, {path.name: content, truth.name: (json.dumps(mark, indent=2) + "\n").encode()})
    except OSError as error:
        raise write_error(error, f"{format_path(path)} cannot be written") from error


def costs_of(path: Path) -> dict[str, float]:
    """What columns cost, from a table whose first column names them and whose second has numbers."""
    from ..data.paths import format_path
    from ..data.reading import read_table

    frame = read_table(path, whole=True)
    if frame.shape[1] != 2:
        counted = many(frame.shape[1], "column")
        raise InputError(f"{format_path(path)} has {counted}; it must have two: the columns' names and their costs")
    names, costs = frame.iloc[:, 0], frame.iloc[:, 1]
    if costs.dtype.kind not in "iuf" or costs.isna().any():
        column = f"the column {frame.columns[1]!r} of {format_path(path)}"
        raise InputError(f"{column} must have a number in every row: the costs")
    if len(again := names[names.duplicated()]):
        raise InputError(f"{format_path(path)} names {listing(again.astype(str).tolist())} more than once")
    return dict(zip(names.astype(str), costs.astype(float), strict=True))


def truth_of(path: Path) -> Truth:
    """What was planted in a generated table."""
    import json

    from ..data.cohort import Truth
    from ..data.paths import check_file, format_path

    check_file(path, "name the .truth.json that `marginsieve cohort` wrote")
    wrong = InputError(f"{format_path(path)} is not what `marginsieve cohort` writes beside its table")
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.pop("marginsieve") != "cohort":
            raise wrong
        known.pop("sha256")
        lists = {name: tuple(known[name]) for name in ("relevant", "categorical", "flipped")}
        pairs = tuple((str(a), str(b)) for a, b in known["interactions"])
        return Truth(**lists, interactions=pairs, redundant=dict(known["redundant"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise wrong from error


def _as_generated(path: Path, truth: Path) -> bool:
    """Whether a table is the one of which its truth was written."""
    import hashlib
    import json

    try:
        known = json.loads(truth.read_text(encoding="utf-8"))
        ours = isinstance(known, dict) and known.get("marginsieve") == "cohort"
        return ours and known["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError):
        return False


def check_jobs(jobs: int) -> None:
    from ..fitting.settings import MOST_JOBS

    if jobs == 0 or not -MOST_JOBS <= jobs <= MOST_JOBS:
        raise InputError(f"--jobs is {jobs}; it must be 1 or more (up to {MOST_JOBS:,}), or -1 for one per core")


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
    from ..studies.study_data import called_id

    other = {*known, *taken}
    return [name for name in columns if called_id(name) and name not in other]
