"""What a run will take: its fits are counted, and seconds are those of the run that is kept, by job, table, method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from marginsieve.bench import Suite
from marginsieve.outcomes import ClassTarget

from . import named_problems
from .catalogue import PAPERS, paper_of
from .paper import Paper, base_of
from .record import stored_calls, timings
from .reproduce import suite_of
from .workplace import Call

RATES = "rates.csv"
COLUMNS = ("paper", "folder", "data", "method", "kind", "count", "seconds")


@runtime_checkable
class HasSuite(Protocol):
    """A part of a study that is one suite."""

    def suite(self) -> Suite: ...


@runtime_checkable
class HasCalls(Protocol):
    """A part of a study that is made of calls."""

    def calls(self) -> list[Call]: ...


@dataclass(frozen=True)
class Effort:
    """Fits and other computations of a run, their hours of one core, and those of which no rate is known."""

    count: int
    hours: float
    unknown: int = 0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.count + other.count, self.hours + other.hours, self.unknown + other.unknown)

    def sentence(self, n_jobs: int) -> str:
        """In words, for so many processes."""
        if self.unknown == self.count:
            return f"{self.count:,} fits, of which no rate is known"
        text = f"{self.count:,} fits: about {_time(self.hours)} of one core by the rates of the run that is kept"
        text += f", {_time(self.hours / n_jobs)} with {n_jobs} processes" if n_jobs > 1 else ""
        return text + (f"; no rate is known for {self.unknown:,} of them" if self.unknown else "")


def _time(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"


def estimate_effort(name: str, scope: str) -> Effort:
    """What a paper's run at a scope will take, on the data sets that are here, if nothing of it is stored."""
    paper, total = paper_of(name).with_scope(scope), Effort(0, 0.0)
    for folder, data, method, kind, count, amount in _pieces(paper):
        rate = _rate(name, folder, data, method, kind)
        if rate is None and kind == "whole":
            continue  # it reads what others made, or takes seconds
        total += Effort(count, 0.0, count) if rate is None else Effort(count, rate * count * amount / 3600.0)
    return total


def _pieces(paper: Paper) -> Iterator[tuple[str, str, str, str, int, float]]:
    """Folder, data set, method, kind ("fit", "tuning" or "call"), count, and the amount of work of each."""
    for job in paper.jobs:
        for column in job.columns:
            suite = suite_of(job, named_problems.present(job.data), column)
            if suite is not None:
                yield from _of_suite(f"{job.name}-{column.replace('_', '-')}", suite)
    for part in paper.studies:
        if not named_problems.present(part.data):
            continue
        if not _is_counted(part):
            yield part.name, "", "", "whole", 1, float(getattr(part, "repeats", 1))
        elif isinstance(part, HasSuite):
            yield from _of_suite(part.name, part.suite())
        elif isinstance(part, HasCalls):
            for call in part.calls():
                yield part.name, call.data, call.name, "call", 1, call.amount


def _of_suite(folder: str, suite: Suite) -> Iterator[tuple[str, str, str, str, int, float]]:
    for entry in suite.data:
        name = str(entry["name"])
        splits, tuned = len(suite.protocol.splits(ClassTarget.from_codes(_labels(name)), 0)), set[str]()
        for method in suite.methods:
            grid = dict(suite.protocol.grid) if method.grid is None else dict(method.grid)
            base, points = base_of(method.label), prod(len(values) for values in grid.values())
            yield folder, name, base, "fit", splits, 1.0
            if suite.protocol.tuned == "reported" and grid and method.tuned_with not in tuned:
                tuned.add(method.tuned_with)
                yield folder, name, base, "tuning", 1, float(points)


@lru_cache(maxsize=64)
def _labels(name: str) -> Any:
    return np.unique(np.asarray(named_problems.load(name).y).astype(str), return_inverse=True)[1]


def read_rates() -> Any:
    """The rates of the run that is kept."""
    with (files(__package__) / RATES).open(encoding="utf-8") as handle:
        return pd.read_csv(handle, keep_default_na=False)


def _keys(paper: str, folder: str, data: str, method: str, kind: str) -> tuple[tuple[str, ...], ...]:
    """What a rate is looked up by, the most special first."""
    return (paper, folder, data, method, kind), (paper, folder, method, kind), (paper, folder, kind)


@lru_cache(maxsize=1)
def rates() -> dict[tuple[str, ...], list[float]]:
    """Seconds for one unit of work, by paper, folder, data set, method and kind, and by fewer of them."""
    out: dict[tuple[str, ...], list[float]] = {}
    for row in read_rates().to_dict("records"):
        paper, folder, data, method, kind = (str(row[key]) for key in COLUMNS[:5])
        for key in _keys(paper, folder, data, method, kind):
            out.setdefault(key, []).append(float(row["seconds"]))
    return out


def _rate(paper: str, folder: str, data: str, method: str, kind: str) -> float | None:
    """The rate of the very same, or the mean over the data sets, or over the folder."""
    known = rates()
    for key in _keys(paper, folder, data, method, kind):
        if key in known:
            return float(np.mean(known[key]))
    return None


def rates_of(out: Path) -> Any:
    """The rates of a run of all papers, from its stores: mean seconds for one unit of work, and how many there were."""
    rows: list[tuple[Any, ...]] = []
    for paper in (paper for paper in PAPERS.values() if (out / paper.name).is_dir()):
        points = {piece[:3]: piece[5] for piece in _pieces(paper) if piece[3] == "tuning"}
        parts = {part.name: float(getattr(part, "repeats", 1)) for part in paper.studies if not _is_counted(part)}
        for folder in sorted(path for path in (out / paper.name).glob("*") if path.is_dir()):
            amount = parts.get(folder.name)
            units = _seconds_of(folder)
            if amount is not None:
                rows.append((paper.name, folder.name, "", "", "whole", 1, sum(unit[3] for unit in units) / amount))
                continue
            sums: dict[tuple[str, str, str], list[float]] = {}
            for data, method, kind, seconds in units:
                scale = points.get((folder.name, data, method), 1.0) if kind == "tuning" else 1.0
                sums.setdefault((data, method, kind), []).append(seconds / scale)
            rows += [(paper.name, folder.name, *key, len(some), float(np.mean(some))) for key, some in sums.items()]
    return pd.DataFrame(rows, columns=list(COLUMNS)).round({"seconds": 6})


def _is_counted(part: Any) -> bool:
    return isinstance(part, (HasSuite, HasCalls))


def _seconds_of(folder: Path) -> list[tuple[str, str, str, float]]:
    """Data set, method, kind and seconds of every unit, and of every call for one unit of work."""
    units = [
        (data, base_of(method), "tuning" if split == "tuning" else "fit", seconds)
        for data, method, split, seconds, _ in timings(folder)
    ]
    calls = stored_calls(folder)
    return units + [(entry["data"], name, "call", entry["seconds"] / entry["amount"]) for name, entry in calls]
