"""A paper's parameter studies: one parameter of a method at a time, error and number of features against its value."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd

from marginsieve.bench import Suite
from marginsieve.data import NamedTable, filled_with_means

from . import named_problems
from .drawings import convergence, two_scales
from .markdown import table_lines
from .pins import make_selector, pin
from .workplace import Call, Workplace

PROTOCOL = {"name": "nested", "folds": 10, "settings": {"threshold": "margin"}}


def vary(parameter: str, values: Sequence[float], **settings: Any) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """KP-SVM at values of one parameter, by label."""
    return {f"{value:g}": ("kp_svm", {**settings, parameter: value}) for value in values}


@dataclass(frozen=True)
class ParameterStudy:
    """Methods (recipe and settings by label) on one data set, by 10-fold cross-validation.

    `text` is what the paper says. The folds are drawn several times; beside the mean error stands its standard
    error over the draws.
    """

    name: str
    parameter: str
    methods: Mapping[str, tuple[str, Mapping[str, Any]]]
    text: str
    data: tuple[str] = ("COLON",)
    draws: int = 2
    whole: bool = False  # all methods in a quick run, too

    def quick_form(self) -> ParameterStudy:
        """The first, the middle and the last method, with one draw of the folds."""
        labels = list(self.methods)
        some = labels if self.whole else list(dict.fromkeys((labels[0], labels[len(labels) // 2], labels[-1])))
        return replace(self, methods={label: self.methods[label] for label in some}, draws=1)

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the picture and the table as CSV beside it."""
        study, drafts = place.suite(self.suite(), self.name), place.drafts
        error = 100 * (1 - study.scores("accuracy").set_index("method")["accuracy"])
        frame = study.to_pandas()
        size = frame.groupby("method")["size"].mean()
        by_draw = frame.groupby(["method", "repeat"])["accuracy"].mean()
        deviation = 100 * by_draw.groupby("method").sem().fillna(0.0)
        labels = list(self.methods)
        table = error.loc[labels].to_frame("error").assign(deviation=deviation.loc[labels], features=size.loc[labels])
        table.rename_axis(self.parameter).to_csv(drafts / f"{self.name}.csv")
        two_scales(labels, table["error"], table["features"], self.parameter, drafts / f"{self.name}.svg")
        lines = [f"## {self.name}: {self.parameter} on {self.data[0]}", "", f"The paper: {self.text}", ""]
        headings = (self.parameter, "error %", "its standard error over draws of the folds", "mean number of features")
        lines += table_lines(headings, table.map("{:.1f}".format).itertuples(name=None))
        return [*lines, "", f"![{self.name}]({self.name}.svg)", ""]

    def suite(self) -> Suite:
        """The methods of the study."""
        methods = [
            {"name": recipe, "label": label, **pin(recipe, settings)}
            for label, (recipe, settings) in self.methods.items()
        ]
        data, protocol = [{"name": self.data[0]}], {**PROTOCOL, "repeats": self.draws}
        return Suite.read({"name": self.name, "protocol": protocol, "data": data, "method": methods})


@dataclass(frozen=True)
class ConvergenceStudy:
    """How far the factors move, iteration by iteration, until the method's own stop, on all rows."""

    name: str
    text: str
    recipe: str = "kp_svm"
    data: tuple[str, ...] = ("COLON",)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})  # settings by label

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and the picture beside it."""
        calls = self.calls()
        labels = [label for _ in named_problems.present(self.data) for label in self.variants]
        results = place.run_calls(self.name, calls, alone=True)
        rows = [{"variant": label, **result["row"]} for label, result in zip(labels, results, strict=True)]
        pd.DataFrame(rows).to_csv(place.drafts / f"{self.name}.csv", index=False)
        lines = [f"## {self.name}: convergence", "", f"The paper: {self.text}", ""]
        cells = (
            (
                f"{row['data']}, {row['variant']}" if row["variant"] else row["data"],
                *(row["moves"], "yes" if row["converged"] else "no", row["features"]),
                *(f"{row['at_cap']:.0%}", f"{row['seconds']:.2f}"),
            )
            for row in rows
        )
        lines += table_lines(("data set", "moves", "came to rest", "features", "at the cap", "seconds"), cells)
        traces = [call.name for call in calls]
        moved = {name: result["moved"] for name, result in zip(traces, results, strict=True)}
        convergence(moved, place.drafts / f"{self.name}.svg")
        return [*lines, "", f"![{self.name}]({self.name}.svg)", ""]

    def calls(self) -> list[Call]:
        """Every data set under every variant."""
        return [
            Call(f"{name}-{label}" if label else name, name, dict(settings), partial(self._measure, settings=settings))
            for name in named_problems.present(self.data)
            for label, settings in self.variants.items()
        ]

    def _measure(self, data: NamedTable, settings: Mapping[str, Any]) -> dict[str, Any]:
        fixed = {"threshold": "margin", "class_weight": "balanced", "similar": None}
        selector = make_selector(self.recipe, **settings, **fixed)
        cells = data.X.to_numpy(dtype=float)
        X, since = filled_with_means(cells, cells), time.perf_counter()
        stop = selector.fit(X, data.y).path_.stop
        assert stop is not None
        row = {"data": data.name, "moves": int(stop.details["moves"]), "converged": bool(stop.details["converged"])}
        row |= {"features": int(stop.size), "at_cap": float(stop.details["share_at_cap"])}
        return {"row": row | {"seconds": time.perf_counter() - since}, "moved": [float(move) for move in stop.trace]}
