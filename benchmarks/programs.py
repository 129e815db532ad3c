"""The ramp loss within a budget: fast, DAKS and exact on the papers' tables.

`make bench` runs a few instances. `python -m benchmarks.programs heuristics.csv` runs all of them;
`python -m benchmarks.programs --exact exact.csv` proves some, ten minutes each, beside the paper's constants. Both go
on where the file ends.
"""

import csv
import resource
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from marginsieve import recipes
from marginsieve.data.table import filled_with_means
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.procedure import plan_of
from marginsieve.fitting.training import prepare
from marginsieve.solvers import ramp_descent, ramp_programs
from marginsieve.solvers.execution import Clock
from marginsieve.solvers.programs import Limits
from marginsieve.solvers.ramp_programs import daks
from reproduction import named_problems

from .timing import Result

SETS = ("WDBC", "SONAR", "IONOSPHERE", "COLON", "LEUKEMIA", "DLBCL", "ARRHYTHMIA", "MFEAT", "LEPIOTA")
LARGE = ("MFEAT", "LEPIOTA")
PRICES = (0.01, 0.1, 1.0, 10.0, 100.0)
PROVED = {(name, C) for name in ("WDBC", "SONAR", "COLON") for C in (0.1, 1.0)}
BUDGET = 5
SECONDS = 600.0


def filled(X):
    """The table with the columns' means where numbers are missing; categories stay as they are."""
    numbers = X.select_dtypes("number")
    if numbers.shape[1] < X.shape[1]:
        return X.fillna(numbers.mean().fillna(0.0))
    Z = X.to_numpy(dtype=float)
    return pd.DataFrame(filled_with_means(Z, Z))


def instance(name, C, budget, rows=None, columns=None, seed=0):
    """One program on a table, or on random rows and columns of it."""
    data = named_problems.load(name)
    X, y = filled(data.X), np.asarray(data.y)
    if rows is not None:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(len(y), rows, replace=False))
        X, y = X.iloc[chosen, np.sort(rng.choice(X.shape[1], columns, replace=False))], y[chosen]
    selector = recipes.ramp_fs(budget=budget, C=C)
    encoded = encode(selector, X, y, None)
    problem = prepare(plan_of(selector, encoded), encoded.part()[0], np.random.default_rng(0)).problem
    ramp, rows, _ = selector.search.instance(problem)
    return ramp, rows.unit


def timed(call):
    since = time.perf_counter()
    return call(), time.perf_counter() - since


def heuristics(name, C):
    """One row: swaps, kernel search, and iterated swaps for as long as that took, from another seed."""
    ramp, unit = instance(name, C, BUDGET)
    rng, seen, clock = np.random.default_rng(0), [], Clock(180.0 if name in LARGE else 60.0)
    (fast, first), fast_s = timed(lambda: ramp_descent.fast(ramp, rng, seen=seen))
    kernel, daks_s = timed(lambda: daks(ramp.with_clock(clock), fast, seen, rng))
    other = np.random.default_rng(1)
    iterated, iterated_s = timed(
        lambda: ramp_descent.iterated_swaps(ramp.with_clock(Clock(fast_s + daks_s)), fast, 10_000, other)
    )
    return {
        "data": name,
        "C": C,
        "printed_start": first.F / unit,
        "fast": fast.F / unit,
        "fast_s": fast_s,
        "daks": kernel.F / unit,
        "daks_s": fast_s + daks_s,
        "daks_cut": clock.cut,
        "iterated": iterated.F / unit,
        "iterated_s": iterated_s,
    }


def proofs(name, C):
    """One row: the tightened program from the point of the kernel search, and the printed one from its own start."""
    ramp, unit = instance(name, C, BUDGET)
    rng, seen = np.random.default_rng(0), []
    fast, first = ramp_descent.fast(ramp, rng, seen=seen)
    start = daks(ramp.with_clock(Clock(60.0)), fast, seen, rng)
    proved, exact_s = timed(lambda: ramp_programs.solve(ramp.with_clock(Clock(SECONDS)), start, 10))
    naive = ramp_programs.MixedIntegerProgram(ramp, ramp_programs.first_bounds(ramp, first.F)).solve(
        first, Limits(seconds=SECONDS)
    )
    reached = min(first.F, naive.value)
    return {
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
            start, _ = ramp_descent.fast(ramp, np.random.default_rng(0))
            proved, seconds = timed(
                partial(ramp_programs.solve, ramp.with_clock(Clock(2 * limit)), start, limits=Limits(gap=1e-4))
            )
            what = f"exact, {name} {rows} x {columns}, budget 3, C = {C:g}: gap {proved.gap:.1g}"
            yield Result(what, f"limit of {limit} s", seconds if proved.status == "optimal" else np.inf, limit, 1)
    for name, C in (("SONAR", 10.0), ("LEUKEMIA", 1.0)):
        ramp, _ = instance(name, C, BUDGET)
        (found, first), seconds = timed(lambda ramp=ramp: ramp_descent.fast(ramp, np.random.default_rng(0)))
        yield Result(f"fast, {name}, budget {BUDGET}, C = {C:g}", "limit of 15 s", seconds, 15, 1)
        yield Result("its objective (not seconds)", "the paper's start", found.F, first.F, 1.25)
    for name in ("LEUKEMIA", "DLBCL"):
        made = recipes.ramp_fs(budget=10, C=1.0, random_state=0)
        data = named_problems.load(name)
        _, seconds = timed(lambda made=made, data=data: made.fit(data.X, data.y))
        yield Result(f"daks, {name} ({data.X.shape[1]:,} columns), budget 10, C = 1", "limit of 60 s", seconds, 60, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Result("the largest memory of this process so far, in GB", "limit of 1 GB", peak, 1.0, 1)


def main(path, exact):
    done = set()
    if path.exists():
        with path.open() as handle:
            done = {(row["data"], float(row["C"])) for row in csv.DictReader(handle)}
    for name in named_problems.present(SETS):
        for C in PRICES:
            if (name, C) in done or (exact and (name, C) not in PROVED):
                continue
            row = proofs(name, C) if exact else heuristics(name, C)
            begun = path.exists()
            with path.open("a", newline="") as handle:
                writer = csv.DictWriter(handle, row)
                if not begun:
                    writer.writeheader()
                writer.writerow(row)


if __name__ == "__main__":
    main(Path(sys.argv[-1]), "--exact" in sys.argv)
