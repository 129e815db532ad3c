"""Machines with many rows: in factor form against LinearSVC, on a kernel matrix against SVC, and whole eliminations.

    python -m benchmarks.rows growth [RECIPE ...]     # exponents in rows and in columns, about 20 minutes

CPU seconds with one thread, compiled. The linear machine is solved to a duality gap of 1e-8, LinearSVC at its default
tolerance; kernel machines are both at 1e-3, then both at 1e-6.
"""

import itertools
import sys
import time
import warnings

import numpy as np
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from marginsieve import recipes
from marginsieve.data.table import Schema
from marginsieve.kernels import Gaussian
from marginsieve.machines import CSVC
from marginsieve.solvers import linear_svc

from .timing import Result

GAP = 1e-8


def cpu(call, rounds=3):
    """The least CPU seconds of a few rounds, after one to compile."""
    call()
    times = []
    for _ in range(rounds):
        since = time.process_time()
        call()
        times.append(time.process_time() - since)
    return min(times)


def table(m, n, seed=0):
    """Five columns with a signal, and noise in the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, np.where(X[:, :5].sum(axis=1) + 1.5 * rng.normal(size=m) > 0.5, 1.0, -1.0)


def linear(m, n, C):
    X, y = table(m, n)
    V, top = np.ascontiguousarray(X.T), np.full(m, C)
    c, _, dual, slack, _ = linear_svc.svc_by_columns(V, y, top, 1e-6)
    w = V @ c
    primal = 0.5 * w @ w + top @ slack
    assert primal - dual <= GAP * primal
    rounds = 1 if m > 50_000 else 3
    theirs = cpu(lambda: LinearSVC(loss="hinge", dual=True, C=C, random_state=0).fit(X, y), rounds)
    return Result(
        f"linear machine, {m:,} x {n}, C = {C:g}",
        "LinearSVC(hinge)",
        cpu(lambda: linear_svc.svc_by_columns(V, y, top, 1e-6), rounds),
        theirs,
        1,
    )


def gaussian(m, C, tol, cache=1000.0):
    X, y = table(m, 20)
    rows = Schema.from_table(X).table(np.asfortranarray(X))
    kernel = Gaussian(width=1 / np.sqrt(20), average=False, cache=cache)
    weight, live = kernel.start(rows), np.arange(20)
    ours = cpu(lambda: CSVC(C=C, tol=tol).solve(kernel.bind(rows, weight, live), y, np.ones(m)), 2)
    peer = SVC(C=C, gamma=weight[0] / 2, tol=tol, cache_size=cache)
    name = f"Gaussian machine, {m:,} rows, C = {C:g}, {tol:g}" + (f", cache {cache:g} MB" if cache < 1000 else "")
    least = 1 if cache >= 1000 or C == 1 else 0.4  # a quarter of the matrix costs more than it costs libsvm
    return Result(name, "SVC", ours, cpu(lambda: peer.fit(X, y), 2), least)


def fit(recipe, m, n, limit, **settings):
    X, y = table(m, n)
    selector = recipe(class_weight="balanced", threshold="margin", random_state=0, **settings)
    kernel = f" ({settings['kernel']})" if "kernel" in settings else ""
    return Result(
        f"{recipe.__name__}{kernel}, {m:,} x {n}", f"limit of {limit:g} s", cpu(lambda: selector.fit(X, y), 1), limit, 1
    )


def run():
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for m, n in ((2_000, 100), (6_000, 20), (100_000, 50)):
            for C in (1.0, 100.0):
                yield linear(m, n, C)
        for m in (1_000, 3_000, 10_000):
            for C in (1.0, 100.0):
                for tol in (1e-3, 1e-6):
                    yield gaussian(m, C, tol)
        for C in (1.0, 100.0):
            yield gaussian(10_000, C, 1e-3, cache=200.0)
        yield fit(recipes.svm_rfe, 100_000, 50, 20.0, n_features_to_select=5)
        yield fit(recipes.svm_rfe, 3_000, 400, 20.0, n_features_to_select=5)
        yield fit(recipes.fisher, 10_000, 200, 0.5, n_features_to_select=20)
        yield fit(recipes.svm_rfe, 3_000, 400, 10.0, kernel="gaussian", standardize=True, n_features_to_select=5)
        yield fit(recipes.clinical_rfe, 3_000, 400, 10.0, n_features_to_select=5)


PROGRAMS = {"fs_svm", "ramp_fs", "ramp_svm", "fsv", "svm_l1"}  # mixed-integer or linear programs
LIMIT = 60.0  # seconds of a fit from which on larger tables are not tried
SHAPES = {
    "rows, 400 columns": [(m, 400) for m in (100, 300, 1_000, 3_000)],
    "columns, 100 rows": [(100, n) for n in (2_000, 20_000, 200_000)],
    "rows, 20 columns": [(m, 20) for m in (1_000, 3_000, 9_000)],
}


def growth(names):
    """Exponents between the two largest sizes, and the seconds of the largest, a line for each recipe and axis."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (axis, shapes) in itertools.product(names, SHAPES.items()):
            sizes, times = [], []
            for m, n in shapes:
                X, y = table(m, n)
                made = recipes.get(name)(n_features_to_select=5, threshold="margin", random_state=0)
                made.fit(X[:40, :10], y[:40])  # compiles
                since = time.process_time()
                made.fit(X, y)
                times.append(time.process_time() - since)
                sizes.append(n if axis.startswith("columns") else m)
                if times[-1] > LIMIT:
                    break
            last = np.log(times[-1] / times[-2]) / np.log(sizes[-1] / sizes[-2]) if len(times) > 1 else np.nan
            print(f"| {name} | {axis} | {last:.2f} | {times[-1]:.2f} s at {sizes[-1]:,} |", flush=True)


if __name__ == "__main__" and sys.argv[1:2] == ["growth"]:
    growth(sys.argv[2:] or sorted(set(recipes.RECIPES) - PROGRAMS))
