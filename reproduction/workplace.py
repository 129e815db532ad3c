"""Where a paper's study is run: its folders, its workers, and results that are kept so that a run can go on."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from marginsieve import __version__
from marginsieve.bench import Suite, SuiteResult, run_suite
from marginsieve.data import NamedTable
from marginsieve.engine import parallel

from . import named_problems
from .record import timestamp, write_json

Progress = Callable[[str, int, int, int], None]  # what is run, done, all, failed


@dataclass(frozen=True)
class Call:
    """A computation on one data set that is no unit of a suite; its result is plain JSON.

    `name` is that of its file; a result is used again while `settings` and the version are the same.
    """

    name: str
    data: str
    settings: Any
    compute: Callable[[NamedTable], dict[str, Any]]
    amount: float = 1.0  # of work, where settings change it: what it takes is in proportion

    @property
    def key(self) -> str:
        """What decides the result."""
        text = json.dumps([self.settings, __version__], sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class FinishedSuite(SuiteResult):
    """The results of a suite that has been run: its store, which may be large, is read once for each table."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._units, self._scores = cache(super().to_pandas), cache(super().scores)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each unit and size."""
        return self._units().copy()

    def scores(self, metric: str | None = None) -> pd.DataFrame:
        """Scores by data set, method and size."""
        return self._scores(metric).copy()


class JoinedResults(SuiteResult):
    """The results of a suite with those of another of the methods that it has not: two columns share them."""

    def __init__(self, newer: SuiteResult, other: SuiteResult, labels: Collection[str]) -> None:
        super().__init__(newer.folder)
        self._newer, self._other, self._labels = newer, other, labels

    def to_pandas(self) -> pd.DataFrame:
        """One row for each unit and size."""
        return self._join(self._newer.to_pandas(), self._other.to_pandas())

    def scores(self, metric: str | None = None) -> pd.DataFrame:
        """Scores by data set, method and size."""
        return self._join(self._newer.scores(metric), self._other.scores(metric))

    def _join(self, newer: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([newer, other[~other["method"].isin(self._labels)]], ignore_index=True)


@dataclass(frozen=True)
class Workplace:
    """Folders and workers of one run: stores lie in `out`, tables and pictures in `drafts` until all are there."""

    out: Path
    drafts: Path
    n_jobs: int = 1
    cluster: str | None = None
    fresh: bool = False
    progress: Progress | None = None

    def suite(self, suite: Suite, folder: str) -> SuiteResult:
        """The results of a suite; what the folder holds is not run again."""
        watch = None if self.progress is None else partial(self.progress, folder)
        place = self.out / folder
        run_suite(suite, place, n_jobs=self.n_jobs, cluster=self.cluster, fresh=self.fresh, progress=watch)
        return FinishedSuite(place)

    def run_calls(self, folder: str, calls: Sequence[Call], alone: bool = False) -> list[dict[str, Any]]:
        """The results of calls, in their order, kept as JSON in the folder; `alone`: nothing else runs meanwhile."""
        files = [self.out / folder / f"{call.name}.json" for call in calls]
        stored = {k: self._read_result(files[k], call) for k, call in enumerate(calls)}
        results = {k: result for k, result in stored.items() if result is not None}
        waiting = [k for k in range(len(calls)) if k not in results]
        self._show(folder, len(results), len(calls))
        for k, result, seconds in self._compute(waiting, [calls[k] for k in waiting], alone):
            entry = {"key": calls[k].key, "data": calls[k].data, "amount": calls[k].amount, "seconds": seconds}
            write_json(files[k], {**entry, "finished": timestamp(), "result": result})
            results[k] = result
            self._show(folder, len(results), len(calls))
        return [results[k] for k in range(len(calls))]

    def _read_result(self, file: Path, call: Call) -> dict[str, Any] | None:
        if self.fresh or not file.is_file():
            return None
        entry = json.loads(file.read_text(encoding="utf-8"))
        return dict(entry["result"]) if entry.get("key") == call.key else None

    def _show(self, folder: str, done: int, count: int) -> None:
        if self.progress is not None:
            self.progress(folder, done, count, 0)

    def _compute(
        self, places: Sequence[int], calls: Sequence[Call], alone: bool
    ) -> Iterator[tuple[int, dict[str, Any], float]]:
        """Places, results and seconds as they come."""
        if self.cluster is None or alone:
            work = (joblib.delayed(_result)(k, call) for k, call in zip(places, calls, strict=True))
            yield from parallel(1 if alone else self.n_jobs, return_as="generator_unordered")(work)
            return
        from distributed import Client, as_completed

        with Client(self.cluster, timeout=20) as client:
            tables = {name: client.scatter(named_problems.load(name), hash=False) for name in {c.data for c in calls}}
            futures = [
                client.submit(_result, k, call, tables[call.data], pure=False)
                for k, call in zip(places, calls, strict=True)
            ]
            for future in as_completed(futures):
                yield future.result()


def _result(place: int, call: Call, problem: NamedTable | None = None) -> tuple[int, dict[str, Any], float]:
    problem, since = named_problems.load(call.data) if problem is None else problem, time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single fits: at a low C no feature has a weight, a column is constant
        result = call.compute(problem)
    return place, result, time.perf_counter() - since
