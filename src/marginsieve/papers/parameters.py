"""A paper's parameter studies: one parameter of a method at a time, error and number of features against its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import recipes
from ..data.table import filled_with_means
from ..study.engine import run_suite
from ..study.suite import Suite
from . import named_problems
from .drawings import convergence, two_scales

PROTOCOL = {"name": "nested", "folds": 10, "repeats": 1, "settings": {"threshold": "margin"}}


@dataclass(frozen=True)
class ParameterStudy:
    """`values` of a setting of a recipe on one data set, by 10-fold cross-validation; `text` is what the paper says."""

    name: str
    parameter: str
    values: tuple[float, ...]
    text: str
    recipe: str = "kp_svm"
    data: tuple[str] = ("COLON",)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self, out: Path, drafts: Path, n_jobs: int, fresh: bool, progress: Callable[..., None] | None) -> list[str]:
        """Lines of the report; the picture and the table as CSV beside it."""
        methods = [
            {"name": self.recipe, "label": f"{value:g}", **self.settings, self.parameter: value}
            for value in self.values
        ]
        suite = Suite.read(
            {"name": self.name, "protocol": PROTOCOL, "data": [{"name": self.data[0]}], "method": methods}
        )
        study = run_suite(suite, out / self.name, n_jobs=n_jobs, fresh=fresh, progress=progress)
        error = 100 * (1 - study.scores("accuracy").set_index("method")["accuracy"])
        size = study.to_pandas().groupby("method")["size"].mean()
        labels = [f"{value:g}" for value in self.values]
        table = error.loc[labels].to_frame("error").assign(features=size.loc[labels])
        table.rename_axis(self.parameter).to_csv(drafts / f"{self.name}.csv")
        two_scales(self.values, table["error"], table["features"], self.parameter, drafts / f"{self.name}.svg")
        lines = [f"## {self.name}: {self.parameter} on {self.data[0]}", "", f"The paper: {self.text}", ""]
        lines += [f"| {self.parameter} | error % (10-fold) | mean number of features |", "|---|---|---|"]
        lines += [
            f"| {label} | {row.error:.1f} | {row.features:.1f} |"
            for label, row in zip(labels, table.itertuples(), strict=True)
        ]
        return [*lines, "", f"![{self.name}]({self.name}.svg)", ""]


@dataclass(frozen=True)
class ConvergenceStudy:
    """How far the factors move, iteration by iteration, until the method's own stop, on all rows."""

    name: str
    text: str
    recipe: str = "kp_svm"
    data: tuple[str, ...] = ("COLON",)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(
        self,
        out: Path,  # noqa: ARG002
        drafts: Path,
        n_jobs: int,  # noqa: ARG002
        fresh: bool,  # noqa: ARG002
        progress: Callable[..., None] | None,  # noqa: ARG002
    ) -> list[str]:
        """Lines of the report; the picture beside it."""
        lines = [f"## {self.name}: convergence", "", f"The paper: {self.text}", ""]
        lines += ["| data set | moves | came to rest | features | at the cap |", "|---|---|---|---|---|"]
        moved = {}
        for name in self.data:
            data = named_problems.load(name)
            selector = recipes.get(self.recipe)(**self.settings, threshold="margin", class_weight="balanced")
            cells = data.X.to_numpy(dtype=float)
            stop = selector.fit(filled_with_means(cells, cells), data.y).path_.stop
            assert stop is not None
            moved[name] = stop.trace
            rest, details = "yes" if stop.details["converged"] else "no", stop.details
            lines.append(f"| {name} | {details['moves']} | {rest} | {stop.size} | {details['share_at_cap']:.0%} |")
        convergence(moved, drafts / f"{self.name}.svg")
        return [*lines, "", f"![{self.name}]({self.name}.svg)", ""]


TUNED = {"C2": 4.0}
KP_SVM_STUDIES: tuple[ParameterStudy | ConvergenceStudy, ...] = (
    ParameterStudy(
        "figure-6",
        "C2",
        (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
        "the most influential parameter; no penalty (C2 = 0) performs worse than a penalised solution.",
    ),
    ParameterStudy(
        "figure-7",
        "rate",
        (0.05, 0.1, 0.25, 0.5, 1.0),
        "a larger step (gamma) leads to fewer iterations; small enough, it does not drop useful features at once.",
        settings=TUNED,
    ),
    ParameterStudy(
        "figure-8", "beta", (0.25, 0.5, 1.0, 2.0, 5.0), "less influence on the final solution.", settings=TUNED
    ),
    ParameterStudy(
        "figure-9",
        "eps",
        (0.01, 0.05, 0.1, 0.25, 0.5, 0.75),
        "less influence on the final solution; small, for example a quarter of the start.",
        settings=TUNED,
    ),
    ParameterStudy(
        "figure-10",
        "width",
        tuple(factor / np.sqrt(2000.0) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)),
        "the starting scale (1 / sigma) has less influence on the final solution.",
        settings=TUNED,
    ),
    ConvergenceStudy(
        "figure-11",
        "fewer than 75 iterations on the colon data, fewer than 200 on all four sets.",
        data=("COLON", "DIABETES", "WDBC", "LYMPHOMA"),
    ),
    ParameterStudy(
        "figure-12",
        "max_iter",
        (1, 5, 13, 20, 26, 40, 60, 75, 100, 200),
        "performance decreases after 26 iterations; the number of features falls smoothly after 13.",
        settings=TUNED,
    ),
)
