"""The ramp loss within a budget: fast, DAKS and exact on the papers' tables.

`make bench` runs a few instances; `python -m benchmarks.programs results.csv` runs all of them, goes on where the file
ends, and takes hours.
"""

import csv
import resource
import sys
import time
from pathlib import Path

import numpy as np

from marginsieve import datasets, recipes
from marginsieve._clock import Clock
from marginsieve._highs import Limits
from marginsieve.fitting import Part, prepare
from marginsieve.machines import _exact, _ramp
from marginsieve.machines._daks import daks
from marginsieve.table import imputed

from .timing import Result

SETS = ("WDBC", "SONAR", "IONOSPHERE", "COLON", "LEUKEMIA", "DLBCL", "ARRHYTHMIA", "MFEAT", "LEPIOTA")
LARGE = ("MFEAT", "LEPIOTA")
PRICES = (0.01, 0.1, 1.0, 10.0, 100.0)
PROVED = {(name, C) for name in ("WDBC", "SONAR", "COLON") for C in (0.1, 1.0)}
BUDGET = 5
SECONDS = 600.0
COLUMNS = (
    *("data", "C", "budget", "printed_start", "fast", "fast_s", "daks", "daks_s", "daks_cut", "iterated", "iterated_s"),
    *("exact", "bound", "gap", "naive_gap", "exact_s"),
)


def instance(name, C, budget, rows=None, columns=None, seed=0):
    """One program on a table, or on random rows and columns of it."""
    data = datasets.load(name)
    X, y = imputed(data.X, data.X), np.asarray(data.y)
    if rows is not None:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(len(y), rows, replace=False))
        X, y = X.iloc[chosen, np.sort(rng.choice(X.shape[1], columns, replace=False))], y[chosen]
    selector = recipes.ramp_fs(budget=budget, C=C)
    part, _ = selector._read(X, y, None, None)
    problem = prepare(selector._plan(part), Part(part.table, part.y, part.weight), np.random.default_rng(0)).problem
    return selector.search.instance(problem)[0]


def timed(call):
    since = time.perf_counter()
    return call(), time.perf_counter() - since


def measured(name, C):
    """One row: each method from a start of its own, exact from the best of all."""
    ramp = instance(name, C, BUDGET)
    rng, seen, clock = np.random.default_rng(0), [], Clock(180.0 if name in LARGE else 60.0)
    (fast, first), fast_s = timed(lambda: _ramp.fast(ramp, rng, seen=seen))
    kernel, daks_s = timed(lambda: daks(ramp, fast, seen, rng, clock))
    other = np.random.default_rng(1)
    iterated, iterated_s = timed(lambda: _ramp.shaken(ramp, fast, 10_000, other, Clock(fast_s + daks_s)))
    row = dict.fromkeys(COLUMNS, "")
    row |= {"data": name, "C": C, "budget": BUDGET, "printed_start": first.F, "fast": fast.F, "fast_s": fast_s}
    row |= {"daks": kernel.F, "daks_s": fast_s + daks_s, "daks_cut": clock.cut}
    row |= {"iterated": iterated.F, "iterated_s": iterated_s}
    if (name, C) in PROVED:
        best = _ramp.better([kernel, iterated])
        proved, exact_s = timed(lambda: _exact.solve(ramp, best, 10, clock=Clock(SECONDS)))
        naive = _exact.Whole(ramp, _exact.first_bounds(ramp, first.F)).solve(first, Limits(seconds=SECONDS))
        reached = min(first.F, naive.value)
        row |= {"exact": proved.point.F, "bound": proved.bound, "gap": proved.gap, "exact_s": exact_s}
        row |= {"naive_gap": (reached - naive.bound) / reached}
    return row


def run():
    """What `make bench` shows: seconds as ratios of the limits, objectives as ratios."""
    if not datasets.present(("WDBC", "SONAR", "LEUKEMIA", "DLBCL")):
        return
    for name, rows, columns, prices, limit in (
        ("WDBC", 60, 10, (0.1, 1.0, 10.0), 10),
        ("SONAR", 40, 20, (0.1, 1.0), 60),
    ):
        for C in prices:
            ramp = instance(name, C, 3, rows, columns)
            start, _ = _ramp.fast(ramp, np.random.default_rng(0))
            proved, seconds = timed(lambda ramp=ramp, start=start: _exact.solve(ramp, start, limits=Limits(gap=1e-4)))
            what = f"exact, {name} {rows} x {columns}, budget 3, C = {C:g}: gap {proved.gap:.1g}"
            yield Result(what, f"limit of {limit} s", seconds if proved.status == "optimal" else np.inf, limit, 1)
    for name, C in (("SONAR", 10.0), ("LEUKEMIA", 1.0)):
        ramp = instance(name, C, BUDGET)
        (found, first), seconds = timed(lambda ramp=ramp: _ramp.fast(ramp, np.random.default_rng(0)))
        yield Result(f"fast, {name}, budget {BUDGET}, C = {C:g}", "limit of 15 s", seconds, 15, 1)
        yield Result("its objective (not seconds)", "the paper's start", found.F, first.F, 1.25)
    for name in ("LEUKEMIA", "DLBCL"):
        made = recipes.ramp_fs(budget=10, C=1.0, random_state=0)
        data = datasets.load(name)
        _, seconds = timed(lambda made=made, data=data: made.fit(data.X, data.y))
        yield Result(f"daks, {name} ({data.X.shape[1]:,} columns), budget 10, C = 1", "limit of 60 s", seconds, 60, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Result("the largest memory of this process so far, in GB", "limit of 1 GB", peak, 1.0, 1)


def main(path):
    done = set()
    if path.exists():
        with path.open() as handle:
            done = {(row["data"], float(row["C"])) for row in csv.DictReader(handle)}
    else:
        path.write_text(",".join(COLUMNS) + "\n")
    for name in datasets.present(SETS):
        for C in PRICES:
            if (name, C) not in done:
                row = measured(name, C)
                with path.open("a", newline="") as handle:
                    csv.DictWriter(handle, COLUMNS).writerow(row)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
