"""Seconds of one step: a method's first ranking, straight after its machine was fitted on all features."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from marginsieve.contracts import ProblemView
from marginsieve.data import NamedTable
from marginsieve.estimators import prepare_search
from marginsieve.searches import Objective, QuasiNewton

from . import named_problems
from .markdown import number, table_lines
from .paper import printed_figures
from .pins import make_selector
from .workplace import Call, Workplace

FOLDS = 3  # of leave-one-out


def _filter(problem: ProblemView) -> Callable[[], Any]:
    return lambda: problem.score(None, ())


def _ranking(problem: ProblemView) -> Callable[[], Any]:
    gram = problem.gram()
    solutions = problem.solve(gram)
    return lambda: (problem.score(gram, solutions), problem.ties(gram, solutions))


def _training(problem: ProblemView) -> Callable[[], Any]:
    view = problem.view()
    return lambda: problem.solve(view)


def _quasi_newton(problem: ProblemView) -> Callable[[], Any]:
    objective = Objective(problem, "min-max", "concave", 1.0, None, True)
    start = objective.begin()
    return lambda: QuasiNewton(1, 0.25, 4.0).curve(objective, start, None)


STEPS: Mapping[str, tuple[str, Mapping[str, Any], Callable[[ProblemView], Callable[[], Any]]]] = {
    "fisher": ("fisher", {}, _filter),
    "svm_rfe": ("svm_rfe", {}, _ranking),
    "svm_bfe": ("svm_bfe", {}, _ranking),
    "l1_cssvm": ("l1_cssvm", {}, _training),
    "kp_cssvm": ("kp_cssvm", {}, _quasi_newton),
    "kp_svdd": ("kp_svdd", {}, _quasi_newton),
    "svm_rfe, Gaussian": ("svm_rfe", {"kernel": "gaussian"}, _ranking),
    "svm_bfe, Gaussian": ("svm_bfe", {"kernel": "gaussian"}, _ranking),
}


@dataclass(frozen=True)
class StepTimes:
    """Our seconds beside the printed ones, method by method."""

    name: str
    data: tuple[str, ...]
    paper: str

    def quick_form(self) -> StepTimes:
        """The first three tables."""
        return replace(self, data=self.data[:3])

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report, and the table as CSV beside it."""
        printed = printed_figures(self.paper)
        printed = printed[printed["quantity"].isin(["seconds_per_step", "seconds_training"])]
        known = printed.set_index(["dataset", "method"])["value"].to_dict()
        present = named_problems.present(self.data)
        results = place.run_calls(self.name, [Call(name, name, FOLDS, _time_steps) for name in present], alone=True)
        ours = dict(zip(present, results, strict=True))
        rows = [
            {"dataset": name, "method": method, "printed": known.get((name, method)), "ours": value}
            for name, times in ours.items()
            for method, value in times.items()
        ]
        pd.DataFrame(rows).to_csv(place.drafts / f"{self.name}.csv", index=False)
        text = (
            "The first ranking after the machine was fitted on all features (for the KP methods a quasi-Newton step, "
            "for l1-CSSVM the training), the mean over three training parts of leave-one-out. Printed: the paper's "
            "machine, an i7-2620M of 2.7 GHz; ours: this one. Printed / ours, in seconds:"
        )
        cells = (
            [name, *(f"{known.get((name, method), '-')} / {number(value, 2)}" for method, value in times.items())]
            for name, times in ours.items()
        )
        table = table_lines(["data set", *STEPS], cells)
        return [f"## {self.name}: seconds of one step", "", text, "", *table, ""]


def _time_steps(data: NamedTable) -> dict[str, Any]:
    """Mean seconds of a step of each method on one data set."""
    X, out = data.X.to_numpy(dtype=np.float64), dict[str, float]()
    for method, (recipe, settings, make) in STEPS.items():
        times = []
        for left_out in range(FOLDS):
            rest = np.arange(len(X)) != left_out
            selector = make_selector(recipe, positive=data.positive, **settings)
            step = make(prepare_search(selector, X[rest], data.y[rest])[1])
            step()  # compile, fill caches
            since = time.perf_counter()
            step()
            times.append(time.perf_counter() - since)
        out[method] = float(np.mean(times))
    return out
