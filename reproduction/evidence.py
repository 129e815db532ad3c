"""What a run left: figures in three columns, tables of parts; and what a rule finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from marginsieve.bench import SuiteResult

#: how a figure of ours was made: by the paper's own protocol; by that with every rival at its own best; with nothing
#: chosen on the rows that are judged
AS_PRINTED, REPAIRED, HONEST = "as_printed", "repaired", "honest"
COLUMNS = {AS_PRINTED: "as printed", REPAIRED: "rivals repaired", HONEST: "honest"}
YES, NEAR, NO = "yes", "level", "no"
EQUAL = 1e-9  # a smaller difference of two means is none


class NotRun(Exception):
    """A figure that a claim needs is not there."""


@dataclass(frozen=True)
class Finding:
    """Whether a rule is met, with the figures that decide it."""

    answer: str  # YES, NEAR or NO
    figures: str

    def __str__(self) -> str:
        return f"{self.answer}: {self.figures}"


@dataclass(frozen=True)
class Evidence:
    """What a run left: `ours` (job, dataset, method, quantity, printed and the columns), tables of parts, studies.

    Rules read one column of it: see `read`.
    """

    ours: Any  # a pandas table; tables are Any here, since every cell of one may be anything
    drafts: Path
    studies: Mapping[tuple[str, str], SuiteResult] = field(default_factory=dict)  # by job and column
    column: str = AS_PRINTED

    def read(self, column: str) -> Evidence:
        """The same, read in another column."""
        return replace(self, column=column)

    def means(self, quantity: str, methods: Sequence[str], job: str = "") -> Any:
        """Our values by data set (rows) and method, on the data sets that all of them have."""
        part = self.ours[(self.ours["quantity"] == quantity) & self.ours["method"].isin(methods)]
        part = part[(part["job"] == job) & part[self.column].notna()] if job else part[part[self.column].notna()]
        if lacking := [name for name in methods if name not in set(part["method"])]:
            raise NotRun(f"{', '.join(lacking)} of {job or quantity} were not run")
        return part.pivot_table(index="dataset", columns="method", values=self.column)[list(methods)].dropna()

    def study(self, job: str) -> SuiteResult:
        """The results of a job."""
        if (job, self.column) not in self.studies:
            raise NotRun(f"{job} was not run")
        return self.studies[job, self.column]

    def table(self, name: str) -> Any:
        """A table that a part wrote."""
        file = self.drafts / f"{name}.csv"
        if not file.is_file():
            raise NotRun(f"{name} was not run")
        return pd.read_csv(file)


def if_holds(holds: bool, figures: str, otherwise: str = NO) -> Finding:
    """What a rule finds, with the figures that decide it."""
    return Finding(YES if holds else otherwise, figures)


def format_values(values: Any, digits: int = 1) -> str:
    """Names with their values: a mapping or a column of a table."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())
