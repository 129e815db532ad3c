"""Import, first call with compilation, first call from the cache: each in a process of its own."""

import os
import subprocess
import sys
import tempfile

from .timing import Result

CLOCK = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
FIRST = (
    "import numpy as np; from marginsieve import recipes; rng = np.random.default_rng(0); "
    "X = rng.normal(size=(40, 100)); y = np.arange(40) % 2; import time; t = time.perf_counter(); "
    "recipes.svm_rfe().fit(X, y); print(time.perf_counter() - t)"
)


def seconds(code, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def run():
    ours, theirs = CLOCK.format("from marginsieve import SVMSelector, recipes"), CLOCK.format("import sklearn.svm")
    times = [(seconds(ours), seconds(theirs)) for _ in range(5)]
    a, b = (min(column) for column in zip(*times, strict=True))
    yield Result("import of the package", "twice import of sklearn.svm", a, 2 * b, 1)
    with tempfile.TemporaryDirectory() as cache:
        yield Result("first fit, compiling", "limit of 10 s", seconds(FIRST, NUMBA_CACHE_DIR=cache), 10.0, 1)
        yield Result("first fit, from the cache", "limit of 1 s", seconds(FIRST, NUMBA_CACHE_DIR=cache), 1.0, 1)
