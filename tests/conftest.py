import os
import signal
import sys

import numpy as np
import pytest
from hypothesis import settings

from marginsieve.data.table import Schema
from marginsieve.studies.analyses import other_lists

settings.register_profile("fixed", derandomize=True)  # the same examples each time; --hypothesis-seed draws others
settings.load_profile("fixed")
other_lists.MOST_SECONDS = 0.0  # many searches, where no test asks for them


def pytest_configure(config):
    """Before the workers start: there are as many as cores, and with more threads each would wait for the others."""
    if getattr(config.option, "numprocesses", None):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def signals_as_before():
    """The command takes signals for itself."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before, hook = {number: signal.getsignal(number) for number in numbers}, sys.unraisablehook
    yield
    for number, handler in before.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)
    sys.unraisablehook = hook


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs(rng):
    """40 x 12, two classes of 15 and 25, the first three columns informative."""
    y = np.where(np.arange(40) < 15, 1.0, -1.0)
    X = rng.normal(size=(40, 12))
    X[y > 0, :3] += 1.5
    return X, y


@pytest.fixture
def table_of():
    def build(X):
        return Schema.from_table(X).table(X)

    return build


@pytest.fixture
def kept_sparse(monkeypatch):
    """Small sparse tables, too, are computed with as sparse ones."""
    from marginsieve.fitting import procedure

    monkeypatch.setattr(procedure, "SMALL", 0)
