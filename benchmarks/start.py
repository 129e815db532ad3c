"""Import, help, first call with compilation, first call from the cache: each in a process of its own."""

import os
import subprocess
import sys
import tempfile

from .timing import Result

# CPU seconds of the whole process, its start included: what a user waits for on a busy machine does not move them
CPU = "{}; import resource; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
OURS = "from marginsieve import SVMSelector, recipes; recipes.fisher()"
HELP = """import sys
sys.argv = ["marginsieve", "--help"]
import contextlib, io
from marginsieve.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()"""
HELP_LIMIT = 0.62  # a fifth of what it took before the rebuilding
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
    codes = [CPU.format(OURS), CPU.format("import sklearn.svm"), CPU.replace("{}; ", "{}\n").format(HELP)]
    times = [[seconds(code) for code in codes] for _ in range(5)]
    ours, theirs, shown = (min(column) for column in zip(*times, strict=True))
    yield Result("import and a recipe, CPU", "1.3 times import of sklearn.svm", ours, 1.3 * theirs, 1)
    yield Result("marginsieve --help, CPU", f"limit of {HELP_LIMIT} s", shown, HELP_LIMIT, 1)
    with tempfile.TemporaryDirectory() as cache:
        yield Result("first fit, compiling", "limit of 10 s", seconds(FIRST, NUMBA_CACHE_DIR=cache), 10.0, 1)
        yield Result("first fit, from the cache", "limit of 1 s", seconds(FIRST, NUMBA_CACHE_DIR=cache), 1.0, 1)
