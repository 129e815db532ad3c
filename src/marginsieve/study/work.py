"""Running one unit: fit on the training part, predict the test part, at every size that the protocol asks for."""

from __future__ import annotations

import ctypes
import platform
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from ..contracts import IntArray
from ..data.table import expanded, imputed
from ..estimators.inputs import read_new
from ..fitting import inner_folds as cut
from ..fitting.compatibility import kinds_taken
from ..fitting.parts import resolve
from ..solvers.threads import one_thread
from .metrics import point_metrics
from .suite import Data, Unit, floats_alone
from .tuning import tune_machine


class OutOfTime(Exception):
    """A unit ran past its time limit."""


def run_unit(
    unit: Unit, data: Data, seconds: float | None = None, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The unit's row for the store; an error becomes a row too, with its message. `params` were tuned beforehand."""
    return _row(unit, data, seconds, params or {}, _fit_and_predict)


def _row(
    unit: Unit,
    data: Data,
    seconds: float | None,
    params: dict[str, Any],
    work: Callable[[Unit, Data, dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    since = time.perf_counter()
    row: dict[str, Any] = {
        "key": unit.key,
        "data": unit.data,
        "method": unit.method.label,
        "split": unit.split.name,
        "repeat": unit.split.repeat,
        "params": {**dict(unit.method.settings), **params},
        "metrics": {},
        "result": None,
        "error": None,
        "versions": versions(),
    }
    try:
        with _limit(seconds), one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = work(unit, data, params)
        row.update(outcome, status="done")
    except OutOfTime:
        row.update(status="failed", error=f"cut by the clock after {seconds:g} s")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        row.update(status="failed", error=message)
    row["seconds"] = time.perf_counter() - since
    row["peak_mb"] = peak_memory()
    row["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
    return row


def _fit_and_predict(unit: Unit, data: Data, params: dict[str, Any]) -> dict[str, Any]:
    protocol, split = unit.protocol, unit.split
    train = split.train if split.validation is None else np.sort(np.concatenate([split.train, split.validation]))
    table = _plain(data.X, unit)
    X, y, rows = _safe_indexing(table, train), data.y[train], _safe_indexing(table, split.test)
    if protocol.impute:
        X, rows = imputed(X, X), imputed(rows, X)
    if protocol.noise:
        y = protocol.noisy(X, y, np.random.default_rng([unit.split_seed, *split.name.encode()]))
    selector, owner = _selector(unit, data, params), None
    if protocol.impute and hasattr(X, "columns") and not _takes_categories(selector):
        (rows, owner), (X, _) = expanded(rows, X), expanded(X, X)
    chosen = dict(params)
    groups = None if data.groups is None else data.groups[train]
    if protocol.tuned == "nested" and unit.grid:
        chosen = tune_on(selector, X, y, groups, unit)
        selector.set_params(**chosen)
    sizes = protocol.sizes_for(int(X.shape[1]))
    if sizes:
        selector.set_params(n_features_to_select=sizes[-1])
    selector.fit(X, y, **({} if groups is None else {"groups": groups}))
    fitted = selector.at_sizes(X, y, sizes) if sizes else [selector]
    Z = read_new(selector, rows)
    by_size = [_outcome(made, Z, data, owner) for made in fitted]
    metrics = {str(entry["size"]): _metrics(entry, data, split.test) for entry in by_size}
    limited = getattr(selector, "status_", "") == "limit"
    return {
        "params": {**dict(unit.method.settings), **chosen},
        "metrics": metrics,
        "result": {"test": split.test.tolist(), "by_size": by_size, "limited": limited},
    }


def _selector(unit: Unit, data: Data, params: dict[str, Any]) -> Any:
    """The method with what the protocol forces on it and the parameters that were tuned."""
    selector = unit.method.build()
    known = selector.get_params()
    forced = {name: value for name, value in unit.protocol.settings.items() if name in known}
    positive = data.positive if len(data.classes) == 2 else None
    untold = {"similar": None, "resamples": 0}  # nothing here reads groups_ and suspects_
    return selector.set_params(**{**forced, **params}, random_state=unit.seed, positive=positive, **untold)


def run_tuning(unit: Unit, data: Data, seconds: float | None = None) -> dict[str, Any]:
    """The row of a tuning: the parameters that do best on the very splits that are reported, on all features."""

    def choose(unit: Unit, data: Data, _: dict[str, Any]) -> dict[str, Any]:
        selector = _selector(unit, data, {})
        X = imputed(data.X, data.X) if unit.protocol.impute else data.X
        part, _ = selector._read(X, data.y, None, None)
        splits = unit.protocol.splits(data.y, data.groups, unit.split_seed)
        pairs = [(split.train, split.test) for split in splits]
        chosen, score = tune_machine(selector, part, selector._plan(part), unit.grid, pairs)
        return {"metrics": {"chosen": chosen, "balanced_accuracy": score}}

    return _row(unit, data, seconds, {}, choose)


def tune_on(selector: Any, X: Any, y: IntArray, groups: IntArray | None, unit: Unit) -> dict[str, Any]:
    """Hyper-parameters by inner folds of a training part; rows of one group never sit on both sides of one."""
    part, _ = selector._read(X, y, None, groups)
    names = selector.classes_.tolist()
    folds, _ = cut.inner_folds(unit.protocol.inner_folds, part, names, np.random.default_rng(unit.seed))
    return tune_machine(selector, part, selector._plan(part), unit.grid, folds)[0]


def _plain(X: Any, unit: Unit) -> Any:
    """The table as a matrix where it holds floats alone and the method names no column: reading it takes no time."""
    named = {"keep", "kinds"} & {name for name, _ in unit.method.settings}
    if named or not floats_alone(X):
        return X
    return X.to_numpy(dtype=np.float64)


def _takes_categories(selector: Any) -> bool:
    return "nominal" in kinds_taken(*(resolve(axis, getattr(selector, axis)) for axis in ("kernel", "machine")))


def _outcome(selector: Any, Z: Any, data: Data, owner: IntArray | None) -> dict[str, Any]:
    """What a fitted selector says of test rows that were read already; `owner`: the table's columns of its features."""
    value = selector._decision(Z)
    predicted = np.asarray(selector._called(value))
    decision = None
    if len(data.classes) == 2:
        sign = 1.0 if data.positive == 1 else -1.0
        decision = (sign * value).tolist()
        if not np.isfinite(decision).all():
            raise ValueError("the decision values are not all finite")
    support = np.flatnonzero(selector.support_)
    return {
        "size": len(support),
        "support": (support if owner is None else np.unique(owner[support])).tolist(),
        "predicted": predicted.tolist(),
        "decision": decision,
    }


def _metrics(entry: dict[str, Any], data: Data, test: IntArray) -> dict[str, float]:
    """Metrics of this split alone, where its test part has every class; pooled ones are made when reading."""
    truth = data.y[test]
    if len(np.unique(truth)) < len(data.classes):
        return {}
    decision = None if entry["decision"] is None else np.asarray(entry["decision"])[None, :]
    return point_metrics(truth, np.asarray(entry["predicted"])[None, :], decision, data.positive)


@cache
def versions() -> dict[str, str]:
    """Versions that decide a result."""
    names = ("marginsieve", "scikit-learn", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def peak_memory() -> float:
    """The largest memory of this process so far, in MB."""
    try:
        import resource
    except ImportError:  # pragma: no cover
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def _limit(seconds: float | None) -> Iterator[None]:
    """Raise OutOfTime in this thread after so many seconds: by a signal in the main thread, else from a timer."""
    if seconds is None:
        yield
        return
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        with _alarm(seconds):
            yield
        return
    thread = ctypes.c_ulong(threading.get_ident())
    timer = threading.Timer(
        seconds, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(OutOfTime))
    )
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)
