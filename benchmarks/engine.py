"""The engine: overhead per unit at 10,000 units, and two workers against one."""

import shutil
import tempfile
from pathlib import Path

from marginsieve.bench.suite import Suite, run_suite
from marginsieve.engine.store import Store

from .timing import Result, seconds

UNITS = 10_000


def row(k):
    lists = {
        "test": [1, 2, 3],
        "by_size": [{"size": 3, "support": [1, 2, 3], "predicted": [0] * 3, "decision": [0.1] * 3}],
    }
    return {
        "key": f"{k:032x}",
        "data": "d",
        "method": "m",
        "split": str(k),
        "repeat": 0,
        "status": "done",
        "params": {"C": 1.0},
        "metrics": {"3": {"balanced_accuracy": 0.5}},
        "result": lists,
        "error": None,
        "seconds": 0.1,
        "peak_mb": 100.0,
        "versions": {"python": "3"},
        "finished": "",
    }


def storing(folder):
    store = Store(folder)
    for k in range(UNITS):
        store.add([row(k)])
    store.close()


def suite(repeats, n_features):
    return Suite.read(
        {
            "protocol": {"name": "nested", "folds": 5, "repeats": repeats},
            "data": [{"cohort": {"n_samples": 100, "n_features": n_features, "n_relevant": 10}}],
            "method": [{"name": "svm-rfe"}],
        }
    )


def run():
    folder = Path(tempfile.mkdtemp())
    try:
        spent = seconds(lambda: storing(folder / "store")) / UNITS
        yield Result("storing a unit, of 10,000", "limit of 5 ms", spent, 0.005, 1)
        small = Suite.read(
            {
                "protocol": {"name": "nested", "folds": 5, "repeats": 400},
                "data": [{"cohort": {"n_samples": 20, "n_features": 5, "n_relevant": 2}}],
                "method": [{"name": "fisher", "n_features_to_select": 2, "threshold": "margin"}],
            }
        )
        study = []
        whole = seconds(lambda: study.append(run_suite(small, folder / "small")))
        inside = study[0].to_pandas()["seconds"].sum()
        yield Result("overhead of a unit, 2,000 units", "limit of 5 ms", (whole - inside) / 2000, 0.005, 1)
        work = suite(8, 2000)
        run_suite(suite(1, 50), folder / "warm", n_jobs=2)  # workers are up, as in a long study
        two = seconds(lambda: run_suite(work, folder / "two", n_jobs=2))
        one = seconds(lambda: run_suite(work, folder / "one", n_jobs=1))
        yield Result("two workers, 40 units of svm-rfe on 100 x 2,000", "one worker", two, one, 1.7)
    finally:
        shutil.rmtree(folder)
