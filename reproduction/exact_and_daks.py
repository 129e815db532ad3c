"""Table 4 of the ramp loss paper: the exact program against DAKS, with time, nodes and gap; SCIP's bound beside it."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from marginsieve import SVMSelector
from marginsieve.data import NamedTable, Schema, filled_with_means
from marginsieve.estimators import prepare_search
from marginsieve.searches import Budget
from marginsieve.solvers import Clock, MixedIntegerProgram, Ramp, restrict_program

from . import named_problems
from .daks_printed import PrintedDaks
from .markdown import number, table_lines
from .pins import make_selector
from .workplace import Call, Workplace

PROGRAMS = 6  # of DAKS by the printed rules, of equal length, fit into its time
ROUNDS, SHARE = 4, 0.5  # of tightening, and of the time for it
SAME = 1e-4  # of the objective: what counts as the same
SOLVERS = ("exact", "scip", "printed", "daks")


@dataclass(frozen=True)
class ExactAndDaks:
    """Both solvers on every data set and C at one budget each."""

    name: str
    budgets: Mapping[str, int]
    prices: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
    seconds: float = 200.0  # of the exact program, and of SCIP
    printed_seconds: float = 30.0  # of DAKS by the printed rules: what our DAKS takes on average
    scip_data: tuple[str, ...] = ("COLON",)  # where SCIP's bound is asked for, too
    long: bool = True

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets."""
        return tuple(self.budgets)

    def calls(self) -> list[Call]:
        """Each solver on each instance, those that take longest first."""
        cases = [(name, C) for name in named_problems.present(self.data) for C in self.prices]
        return [self._call(name, C, solver) for solver in SOLVERS for name, C in cases if self._is_run(solver, name)]

    def _is_run(self, solver: str, name: str) -> bool:
        return solver != "scip" or (name in self.scip_data and importlib.util.find_spec("pyscipopt") is not None)

    def _call(self, name: str, C: float, solver: str) -> Call:
        seconds = {"printed": self.printed_seconds, "daks": None}.get(solver, self.seconds)
        measure = partial(self._measure, C=C, solver=solver, seconds=seconds)
        return Call(f"{name}-{C:g}-{solver}", name, [self.budgets[name], seconds], measure, seconds or 1.0)

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report, and the table as CSV beside it; every instance is kept as it is done."""
        rows = dict[tuple[str, float], dict[str, Any]]()
        for row in place.run_calls(self.name, self.calls()):
            rows.setdefault((row["data"], row["C"]), {}).update(row)
        frame = pd.DataFrame([rows[name, C] for name in named_problems.present(self.data) for C in self.prices])
        frame.to_csv(place.drafts / f"{self.name}.csv", index=False)
        return self._lines(frame)

    def _measure(self, problem: NamedTable, C: float, solver: str, seconds: float | None) -> dict[str, Any]:
        """One solver on one instance: objective, bound, nodes and seconds."""
        row: dict[str, Any] = {"data": problem.name, "C": C}
        since = time.perf_counter()
        if solver in ("printed", "scip"):
            assert seconds is not None
            ramp, unit = self._program(problem, C)
            if solver == "scip":
                best = self._selector(problem, C, "fast", SHARE * seconds).fit(*with_means(problem)).objective_ * unit
                clock = Clock(seconds - (time.perf_counter() - since))
                return row | {"scip_bound": scip_bound(ramp, best, clock) / unit, "scip_s": time.perf_counter() - since}
            search = PrintedDaks(ramp, Clock(seconds), seconds / PROGRAMS)
            return row | {"printed": search.run().F / unit, "printed_s": time.perf_counter() - since}
        stop = self._selector(problem, C, solver, seconds).fit(*with_means(problem)).path_.stop
        assert stop is not None
        row |= {f"{solver}_s": time.perf_counter() - since, solver: stop.details["objective"]}
        return row | {f"{solver}_{key}": stop.details[key] for key in ("bound", "nodes", "status")}

    def _selector(self, problem: NamedTable, C: float, solver: str, seconds: float | None = None) -> SVMSelector:
        fixed: dict[str, Any] = {"positive": problem.positive, "random_state": 0, "resamples": 0, "similar": None}
        chosen = {"budget": self.budgets[problem.name], "C": C, "solver": solver, "time_limit": seconds}
        selector: SVMSelector = make_selector("ramp_fs", **chosen, **fixed)
        return selector

    def _program(self, problem: NamedTable, C: float) -> tuple[Ramp, float]:
        """The program of the table, and the unit of its objective."""
        search, prepared = prepare_search(self._selector(problem, C, "exact"), *with_means(problem))
        assert isinstance(search, Budget)
        ramp, rows, _ = search.instance(prepared)
        return ramp, rows.unit

    def _lines(self, frame: pd.DataFrame) -> list[str]:
        scip = "scip_bound" in frame
        change, printed = (100 * (frame[name] / frame["exact"] - 1.0) for name in ("daks", "printed"))
        proved = int((frame["exact_status"] == "optimal").sum())
        same, lower = int((change.abs() <= 100 * SAME).sum()), int((change < -100 * SAME).sum())
        lines = [
            f"## {self.name}: the exact program against DAKS (table 4)",
            "",
            f"The smallest budget of each data set, {self.seconds:g} s for the exact program (7,200 there) and "
            f"{self.printed_seconds:g} s for DAKS by the printed rules.",
            "Of the paper's table only what its text says is left: on average DAKS is 0.17 % below what the exact",
            "program found, and up to 10 % on ARRHYTHMIA. Ours:",
            "",
            f"- proved optimal by the exact program: {proved} of {len(frame)};",
            f"- DAKS less exact, in percent of it: {_spread(change, 3)};",
            f"- the same objective (within {SAME:.0e}) in {same} of {len(frame)}, DAKS lower in {lower}, higher in "
            f"{len(frame) - same - lower};",
            f"- DAKS by the printed rules, from the printed start, the same: {_spread(printed, 2)};",
            f"- seconds: exact {frame['exact_s'].sum():.0f}, DAKS {frame['daks_s'].sum():.0f}, by the printed rules "
            f"{frame['printed_s'].sum():.0f} in all.",
        ]
        head = ["data set", "C", "exact, s", "nodes", "gap, %", "DAKS, s", "DAKS above exact, %"]
        head += ["printed rules, s", "printed rules above exact, %"]
        if scip:
            head.append("gap with SCIP's bound, %")
            lines.append(
                f"- SCIP's bound is on the same tightened program, in as many seconds, where HiGHS did not end, on "
                f"{', '.join(self.scip_data)}."
            )
        rows = []
        for above, by_rules, row in zip(change, printed, frame.to_dict("records"), strict=True):
            cells = [row["data"], f"{row['C']:g}", number(row["exact_s"], 3), f"{row['exact_nodes']:,}"]
            cells += [_gap(row, "exact_bound"), number(row["daks_s"], 3), f"{above:+.2f}"]
            cells += [number(row["printed_s"], 3), f"{by_rules:+.2f}"]
            cells += [_gap(row, "scip_bound") if row["exact_status"] != "optimal" else "-"] if scip else []
            rows.append(cells)
        return [*lines, "", *table_lines(head, rows), ""]


def _spread(change: Any, digits: int) -> str:
    return f"{change.mean():+.{digits}f} on average, from {change.min():+.2f} to {change.max():+.2f}"


def _gap(row: Mapping[Any, Any], name: str) -> str:
    """How far a bound is below the exact program's point, in percent of it."""
    bound = row.get(name)
    return "-" if bound is None or bound != bound else f"{100 * (row['exact'] - bound) / row['exact']:.1f}"


def scip_bound(ramp: Ramp, best: float, clock: Clock) -> float:
    """SCIP's bound on the mixed-integer program after its constants were tightened; `best` is the value of a point."""
    import pyscipopt

    every, m = np.arange(len(ramp.cost)), len(ramp.data.y)
    brief = ramp.with_clock(clock.part(SHARE))
    small = restrict_program(brief, every, np.arange(m), np.zeros(m, dtype=bool), best, ROUNDS)
    if small is None:
        return best
    model = pyscipopt.Model()
    model.hideOutput()
    with tempfile.TemporaryDirectory() as folder:
        MixedIntegerProgram(*small).program.write(f"{folder}/program.mps")
        model.readProblem(f"{folder}/program.mps")
    model.setParam("limits/time", max(clock.remaining() or 0.0, 1.0))
    model.setObjlimit(best * (1 + 1e-6))
    model.optimize()
    return float(min(model.getDualbound(), best))


def with_means(problem: NamedTable) -> tuple[pd.DataFrame, Any]:
    """A data set with the means of its columns where numbers are missing; a missing category is one of its own."""
    X = problem.X.copy()
    schema = Schema.from_table(X)
    for j, kind in enumerate(schema.kind):
        column = X.columns[j]
        if kind == "nominal":
            X[column] = X[column].astype(object).where(X[column].notna(), "missing").astype("category")
        elif X[column].isna().any():
            cells = X[[column]].to_numpy(dtype=float)
            X[column] = filled_with_means(cells, cells)[:, 0]
    return X, problem.y
