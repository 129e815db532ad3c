"""A unit is one method on one split of one table: fitted once on the training part, predicting the test part.

What it leaves is plain JSON: the test rows and, for each reported size, the selected features, predicted codes and
decision values.
"""

from __future__ import annotations

import ctypes
import platform
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import clone

from .. import recipes
from ..contracts import Array, IntArray
from ..data.table import filled_with_means, one_hot
from ..errors import InputError
from ..estimators import SVMSelector
from ..estimators.fitted_selector import FittedSelector
from ..estimators.inputs import refuse_cells
from ..fitting.compatibility import kinds_taken
from ..fitting.held_out import inner_folds
from ..fitting.parts import kernel_of, machine_of
from ..fitting.procedure import Fitted, refit_at_sizes, seed_sequence
from ..fitting.rows import Rows
from ..fitting.settings import AnyPlan
from ..outcomes import Target
from ..solvers.execution import one_thread
from .protocols import Protocol, Split
from .scoring import Pass, point_scores
from .tuning import tune_machine

ALL_FEATURES = "all features"
TUNING = "tuning"  # what the split of a unit is called that tunes parameters on all reported splits
#: what the machine on all features depends on; searches and criteria rank features, and all of them are used
READ_BY_TUNING = ("kernel", "machine", "standardize", "sampler", "kinds", "class_weight", "negative_weight", "positive")
UNREAD = {"similar": None, "resamples": 0}  # no unit reads groups_ and suspects_
Recipe = Callable[..., FittedSelector]


class OutOfTime(Exception):
    """A unit ran past its time limit."""


@dataclass(frozen=True, eq=False)
class UnitTable:
    """A table as units see it: encoded once, its target settled, and a hash of its content."""

    name: str
    rows: Rows
    fingerprint: str

    @property
    def target(self) -> Target:
        """The rows' outcomes, as they are scored."""
        return self.rows.target

    def track(self) -> UnitTable:
        """The same table; parts of it know that they are."""
        return replace(self, rows=replace(self.rows, table=self.rows.table.track()))


@dataclass(frozen=True, eq=False)
class PlainTable:
    """A table as its user gave it, for estimators of any kind."""

    name: str
    X: Any
    y: Any
    weight: Array | None
    target: Target


@dataclass(frozen=True)
class Method:
    """A recipe with settings, under a label of its own; `grid` replaces what the protocol tunes."""

    label: str
    recipe: str
    settings: tuple[tuple[str, Any], ...] = ()
    grid: tuple[tuple[str, tuple[Any, ...]], ...] | None = None

    @property
    def baseline(self) -> bool:
        """Whether it is all features without a selection."""
        return self.label == ALL_FEATURES

    @property
    def title(self) -> str:
        """As commands and reports write it."""
        return self.label.replace("_", "-")

    @cached_property
    def tuned_with(self) -> str:
        """What decides the parameters that are tuned on all features: methods that have it in common share them."""
        params = self.function(**dict(self.settings)).get_params()
        read = {name: value for name, value in params.items() if name.split("__")[0] in READ_BY_TUNING}
        return repr((sorted(read.items()), self.grid))

    @property
    def function(self) -> Recipe:
        """The recipe. Workers are sent it, since they do not know those that a user registered."""
        return recipes.get(self.recipe)


@dataclass(frozen=True)
class Unit:
    """The smallest piece of work. Its key decides its row in the store."""

    key: str
    table: str
    method: Method
    protocol: Protocol
    split: Split
    seed: int  # the splits of the table were drawn with it
    random_state: int

    @property
    def grid(self) -> Mapping[str, tuple[Any, ...]]:
        """What is tuned: the method's own grid, or the protocol's."""
        return self.protocol.grid if self.method.grid is None else dict(self.method.grid)


@dataclass(frozen=True)
class PreparedMethod:
    """A method's selector and its plan on the whole table, resolved and checked once."""

    selector: FittedSelector
    plan: AnyPlan


@dataclass(frozen=True)
class Task:
    """A unit on its way to a worker, with what is to be done for it.

    `work` takes the unit and its table and returns fields of the unit's row. `params`: what was tuned for the unit.
    `catch`: an error becomes a row of the store; else it is raised.
    """

    unit: Unit
    work: Callable[[Unit, Any], dict[str, Any]]
    seconds: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    catch: bool = True

    def run(self, table: UnitTable | PlainTable) -> dict[str, Any]:
        """The unit's row for the store."""
        row = self.row()
        since = time.perf_counter()
        try:
            with _limit(self.seconds), one_thread(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                row.update(self.work(self.unit, table), status="done")
            if row["result"] is not None:
                texts = [*row["result"].get("notes", ()), *(str(item.message) for item in caught)]
                row["result"]["notes"] = list(dict.fromkeys(texts))
        except OutOfTime:
            row.update(status="failed", error=f"cut by the clock after {self.seconds:g} s")
        except Exception as error:
            if not self.catch:
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
            row.update(status="failed", error=message)
        return row | {"seconds": time.perf_counter() - since, "peak_mb": peak_memory(), "finished": timestamp()}

    def row(self) -> dict[str, Any]:
        """The row of a unit that has not been run."""
        unit = self.unit
        return {
            "key": unit.key,
            "data": unit.table,
            "method": unit.method.label,
            "split": unit.split.name,
            "repeat": unit.split.repeat,
            "status": "failed",
            "params": {**dict(unit.method.settings), **self.params},
            "metrics": {},
            "versions": versions(),
            **dict.fromkeys(("result", "error", "seconds", "peak_mb", "finished")),
        }


def run_prepared(unit: Unit, table: UnitTable, prepared: PreparedMethod) -> dict[str, Any]:
    """A unit of a study: the method as it is, at the number of features that it chooses."""
    selector, test = seed_estimator(prepared.selector, unit.random_state), unit.split.test
    fitted = selector.fit_rows(table.rows.take(unit.split.train), plan=prepared.plan)
    return {"result": _result(fitted, test, [_entry(fitted, table, table.rows.table.Z[test])])}


def fit_and_predict(unit: Unit, table: UnitTable, recipe: Recipe, params: Mapping[str, Any]) -> dict[str, Any]:
    """A unit of a suite: with what its protocol asks for (labels, imputation, tuning, sizes)."""
    protocol, split = unit.protocol, unit.split
    train = split.train if split.validation is None else np.sort(np.concatenate([split.train, split.validation]))
    part, rows = table.rows.take(train), table.rows.table.Z[split.test]
    if protocol.impute:
        means = part.table.Z
        rows = filled_with_means(rows, means, part.schema.kind)
        part = _with_cells(part, filled_with_means(means, means, part.schema.kind))
    target = protocol.training_target(part, np.random.default_rng([unit.seed, *split.name.encode()]))
    part = replace(part, target=target)
    selector, owner = _selector(unit, table, recipe, params), None
    by_number = isinstance(selector, SVMSelector) and "nominal" not in kinds_taken(
        kernel_of(selector.kernel), machine_of(selector.machine)
    )
    if protocol.impute and by_number:
        (cells, owner), (rows, _) = (one_hot(Z, part.table.Z, part.schema.kind) for Z in (part.table.Z, rows))
        part = _with_cells(part, cells, owner)
    refuse_cells(part.table.Z, part.schema, selector.takes_gaps)
    chosen = dict(params)
    if protocol.tuned == "nested" and unit.grid:
        chosen = _tune_nested(_plain(selector), part, unit)
        selector.set_params(**chosen)
    sizes = protocol.sizes_for(part.table.shape[1])
    if sizes:
        selector.set_params(n_features_to_select=sizes[-1])
    seed = seed_sequence(selector.random_state)
    fitted = selector.fit_rows(part, seed)
    at_sizes = refit_at_sizes(_plain(selector), part, fitted, sizes, seed) if sizes else [fitted]
    by_size, tested = [_entry(each, table, rows, owner) for each in at_sizes], table.target.take(split.test)
    metrics = {  # of this split alone, where its test part has every class; pooled ones are made when reading
        str(entry["size"]): point_scores(tested, Pass.from_entries([entry])) for entry in by_size
    }
    return {
        "params": {**dict(unit.method.settings), **chosen},
        "metrics": metrics,
        "result": _result(fitted, split.test, by_size),
    }


def _plain(selector: FittedSelector) -> SVMSelector:
    """A selector with one path, which protocols with several sizes or tuned parameters need."""
    if not isinstance(selector, SVMSelector):
        raise InputError(
            f"{type(selector).__name__} has no single path: give n_features_to_select in the method's settings and no "
            "sizes or grid in the protocol"
        )
    return selector


def _result(fitted: Fitted, test: IntArray, by_size: list[dict[str, Any]]) -> dict[str, Any]:
    """What a unit leaves of a fit; `limited`: a limit of seconds or nodes ended the search for the model."""
    limited = any(solution.status == "limit" for solution in fitted.model.solutions)
    notes = [*([fitted.unconverged] if fitted.unconverged else []), *fitted.notes]
    return {"test": test.tolist(), "by_size": by_size, "limited": limited, "notes": notes}


def _with_cells(part: Rows, Z: Array, owner: IntArray | None = None) -> Rows:
    """The same rows with other cells; columns that were made of levels are numbers."""
    schema = part.schema if owner is None else part.schema.expand(owner)
    return replace(part, schema=schema, table=replace(part.table, Z=Z, kind=schema.kind, names=schema.names))


def _selector(unit: Unit, table: UnitTable, recipe: Recipe, params: Mapping[str, Any]) -> FittedSelector:
    """The method with what the protocol forces on it and the parameters that were tuned."""
    selector = recipe(**dict(unit.method.settings))
    known = selector.get_params()
    forced = {name: value for name, value in unit.protocol.settings.items() if name in known}
    unread = {name: value for name, value in UNREAD.items() if name in known}
    selector.set_params(**{**forced, **params}, random_state=unit.random_state, **table.target.fixed_settings, **unread)
    return selector


def seed_estimator(estimator: Any, random_state: int) -> Any:
    """A copy with a seed wherever it or a part of it takes one and has none; its own is set in any case."""
    copy = clone(estimator)
    seeds = {name: seed for name, seed in copy.get_params().items() if name.split("__")[-1] == "random_state"}
    names = [name for name, seed in seeds.items() if seed is None or name == "random_state"]
    return copy.set_params(**dict.fromkeys(names, random_state))


def tune_reported(unit: Unit, table: UnitTable, recipe: Recipe) -> dict[str, Any]:
    """The parameters that do best on the very splits that are reported, on all features."""
    selector, encoded = _plain(_selector(unit, table, recipe, {})), table.rows
    if unit.protocol.impute:
        Z = encoded.table.Z
        encoded = _with_cells(encoded, filled_with_means(Z, Z, encoded.schema.kind))
    splits = unit.protocol.splits(table.target, unit.seed)
    pairs = [(split.train, split.test) for split in splits]
    chosen, score = tune_machine(selector, encoded, unit.grid, pairs)
    return {"metrics": {"chosen": chosen, "balanced_accuracy": score}}


def _tune_nested(selector: SVMSelector, encoded: Rows, unit: Unit) -> dict[str, Any]:
    """Hyper-parameters by inner folds of a training part; rows of one group never sit on both sides of one."""
    (folds,), _ = inner_folds(unit.protocol.inner_folds, encoded.active, np.random.default_rng(unit.random_state))
    return tune_machine(selector, encoded, unit.grid, folds)[0]


def _entry(fitted: Fitted, table: UnitTable, rows: Any, owner: IntArray | None = None) -> dict[str, Any]:
    """What a fit predicts for test rows; `owner`: the table's column that each of the fit's columns was made of."""
    support = np.flatnonzero(fitted.support)
    return {
        "size": len(support),
        "support": (support if owner is None else np.unique(owner[support])).tolist(),
        **table.target.entry(fitted.decision, fitted.model.decision(rows)),
        "unit": fitted.unit,
    }


@cache
def versions() -> dict[str, str]:
    """Versions that decide a result."""
    names = ("marginsieve", "scikit-learn", "numpy", "scipy", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def timestamp() -> str:
    """Now, in UTC, to the second: such texts are in the order of time."""
    return datetime.now(UTC).isoformat(timespec="seconds")


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
    thread, error = ctypes.c_ulong(threading.get_ident()), ctypes.py_object(OutOfTime)
    timer = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (thread, error))
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
