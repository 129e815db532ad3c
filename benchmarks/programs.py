"""The ramp loss within a budget on the papers' tables: the path of table 4, single fits, proofs.

`make bench` runs a few instances. `python -m benchmarks.programs paths.csv` searches the five values of C of each table
of table 4 together, beside the lowest point of earlier runs; `python -m benchmarks.programs --exact exact.csv`
proves some, ten minutes each, beside the paper's constants. Both go on where the file ends.
"""

import csv
import resource
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from marginsieve import recipes
from marginsieve.estimators import prepare_search
from marginsieve.solvers import l1_start, ramp_programs
from marginsieve.solvers.execution import Clock
from marginsieve.solvers.programs import Limits
from marginsieve.solvers.ramp_path import PathSearch
from reproduction import named_problems
from reproduction.exact_and_daks import known_points, with_means
from reproduction.ramp_loss import BUDGETS

from .timing import Result

SETS = ("WDBC", "SONAR", "IONOSPHERE", "COLON", "LEUKEMIA", "DLBCL", "ARRHYTHMIA", "MFEAT", "LEPIOTA")
PRICES = (0.01, 0.1, 1.0, 10.0, 100.0)
PROVED = {(name, C) for name in ("WDBC", "SONAR", "COLON") for C in (0.1, 1.0)}
BUDGET = 5
SECONDS = 600.0


def instance(name, C, budget, rows=None, columns=None, seed=0):
    """One program on a table, or on random rows and columns of it."""
    data = named_problems.load(name)
    X, y = with_means(data)
    y = np.asarray(y)
    if rows is not None:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(len(y), rows, replace=False))
        X, y = X.iloc[chosen, np.sort(rng.choice(X.shape[1], columns, replace=False))], y[chosen]
    search, problem = prepare_search(recipes.ramp_fs(budget=budget, C=C, positive=data.positive), X, y)
    ramp, rows, _ = search.instance(problem)
    return ramp, rows.unit


def timed(call):
    since = time.perf_counter()
    return call(), time.perf_counter() - since


def search(ramp, prices=(1.0,), solver="auto", shakes=40):
    """The answers at some prices."""
    return PathSearch(ramp, prices, [ramp.budget], np.random.default_rng(0), shakes, Clock()).run(solver)


def paths(name):
    """One row for each C of table 4, searched together."""
    ramp, unit = instance(name, 1.0, BUDGETS[name][0])
    known = known_points()
    since = time.process_time()
    answers = search(ramp, PRICES, shakes=100)
    seconds = time.process_time() - since
    for (C, budget), answer in answers.items():
        best = answer.point.F / unit
        row = {"data": name, "C": C, "budget": budget, "known": known[name, C], "path": best}
        yield row | {
            "change_percent": 100 * (best / known[name, C] - 1),
            "status": answer.status,
            "table_cpu_s": seconds,
        }


def proofs(name, C):
    """One row: the tightened program from the point of the search, and the printed one from its own start."""
    ramp, unit = instance(name, C, BUDGET)
    first, start = l1_start(ramp), search(ramp)[1.0, ramp.budget].point
    proved, exact_s = timed(lambda: ramp_programs.solve(ramp.with_clock(Clock(SECONDS)), start, 10))
    naive = ramp_programs.MixedIntegerProgram(ramp, ramp_programs.first_bounds(ramp, first.F)).solve(
        first, Limits(seconds=SECONDS)
    )
    reached = min(first.F, naive.value)
    yield {
        "data": name,
        "C": C,
        "start": start.F / unit,
        "exact": proved.point.F / unit,
        "bound": proved.bound / unit,
        "gap": proved.gap,
        "exact_s": exact_s,
        "naive": reached / unit,
        "naive_gap": (reached - naive.bound) / reached,
    }


def run():
    """What `make bench` shows: seconds as ratios of the limits, objectives as ratios."""
    if not named_problems.present(("WDBC", "SONAR", "LEUKEMIA", "DLBCL")):
        return
    for name, rows, columns, prices, limit, draw in (
        ("WDBC", 60, 10, (0.1, 1.0, 10.0), 10, 0),
        ("SONAR", 40, 20, (0.1, 1.0), 60, 1),
    ):
        for C in prices:
            ramp, _ = instance(name, C, 3, rows, columns, draw)
            start = search(ramp, solver="fast")[1.0, ramp.budget].point
            proved, seconds = timed(
                partial(ramp_programs.solve, ramp.with_clock(Clock(2 * limit)), start, limits=Limits(gap=1e-4))
            )
            what = f"exact, {name} {rows} x {columns}, budget 3, C = {C:g}: gap {proved.gap:.1g}"
            yield Result(what, f"limit of {limit} s", seconds if proved.status == "optimal" else np.inf, limit, 1)
    for name, C in (("SONAR", 10.0), ("LEUKEMIA", 1.0)):
        ramp, _ = instance(name, C, BUDGET)
        found, seconds = timed(lambda ramp=ramp: search(ramp, solver="fast")[1.0, ramp.budget].point)
        yield Result(f"fast, {name}, budget {BUDGET}, C = {C:g}", "limit of 15 s", seconds, 15, 1)
        yield Result("its objective (not seconds)", "the paper's start", found.F, l1_start(ramp).F, 1.25)
    for name in ("LEUKEMIA", "DLBCL"):
        made = recipes.ramp_fs(budget=10, C=1.0, random_state=0)
        data = named_problems.load(name)
        _, seconds = timed(lambda made=made, data=data: made.fit(data.X, data.y))
        yield Result(f"auto, {name} ({data.X.shape[1]:,} columns), budget 10, C = 1", "limit of 20 s", seconds, 20, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Result("the largest memory of this process so far, in GB", "limit of 1 GB", peak, 1.0, 1)


def main(path, exact):
    done = set()
    if path.exists():
        with path.open() as handle:
            done = {(row["data"], float(row["C"])) for row in csv.DictReader(handle)}
    for name in named_problems.present(SETS):
        calls = [partial(proofs, name, C) for C in PRICES if (name, C) in PROVED - done] if exact else []
        calls += [] if exact or {(name, C) for C in PRICES} <= done else [partial(paths, name)]
        for call in calls:
            rows, begun = list(call()), path.exists()
            with path.open("a", newline="") as handle:
                writer = csv.DictWriter(handle, rows[0])
                if not begun:
                    writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[-1]), "--exact" in sys.argv)
