"""What a run left, and the words of a verdict on a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from marginsieve.bench import SuiteResult

REPRODUCED, BETTER, LEVEL, WORSE, NOT_COMPARABLE = "reproduced", "better", "level", "worse", "not comparable"
VERDICTS = (REPRODUCED, BETTER, LEVEL, WORSE, NOT_COMPARABLE)
EQUAL = 1e-9  # a smaller difference of two means is none


class NotRun(Exception):
    """A figure that a claim needs is not there."""


@dataclass(frozen=True)
class Evidence:
    """What a run left: `ours` (job, dataset, method, quantity, printed, paper, nested), tables of parts, studies."""

    ours: Any  # a pandas table; tables are Any here, since every cell of one may be anything
    drafts: Path
    studies: Mapping[str, SuiteResult] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of jobs that are one table together

    def means(self, quantity: str, methods: Sequence[str], job: str = "", tuned: str = "paper") -> Any:
        """Our values by data set (rows) and method, on the data sets that all of them have.

        `tuned` is "paper", as the paper does it, or "nested", inside the training parts.
        """
        part = self.ours[(self.ours["quantity"] == quantity) & self.ours["method"].isin(methods)]
        part = part[(part["job"] == job) & part[tuned].notna()] if job else part[part[tuned].notna()]
        if lacking := [name for name in methods if name not in set(part["method"])]:
            raise NotRun(f"{', '.join(lacking)} of {job or quantity} were not run")
        return part.pivot_table(index="dataset", columns="method", values=tuned)[list(methods)].dropna()

    def study(self, job: str) -> SuiteResult:
        """The results of a job by the paper's protocol."""
        if job not in self.studies:
            raise NotRun(f"{job} was not run")
        return self.studies[job]

    def group(self, name: str) -> list[SuiteResult]:
        """The results of the jobs of a group."""
        if not (some := [self.studies[job] for job in self.groups.get(name, ()) if job in self.studies]):
            raise NotRun(f"{name} was not run")
        return some

    def table(self, name: str) -> Any:
        """A table that a part wrote."""
        file = self.drafts / f"{name}.csv"
        if not file.is_file():
            raise NotRun(f"{name} was not run")
        return pd.read_csv(file)


def kind_of(verdict: str) -> str:
    """The verdict's first words."""
    return next((kind for kind in VERDICTS if verdict.startswith(kind)), NOT_COMPARABLE)


def if_holds(holds: bool, figures: str, otherwise: str = WORSE) -> str:
    """'reproduced' or another verdict, with the figures that decide it."""
    return f"{REPRODUCED if holds else otherwise}: {figures}"


def format_values(values: Any, digits: int = 1) -> str:
    """Names with their values: a mapping or a column of a table."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())
