"""A unit is one method on one split of one table: fitted once on the training part, predicting the test part.

Protocols say how a table is split, what is tuned where, which sizes are reported; each is a small frozen object. What
a unit leaves is plain JSON: the test rows and, for each reported size, the selected features, predicted codes and
decision values. Keys, by which results are found again, are of a table's content and of whatever else decides a result.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
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
from sklearn.model_selection import StratifiedShuffleSplit

from .. import recipes
from ..contracts import Array, IntArray
from ..data.table import filled_with_means, one_hot
from ..errors import InputError, listing, one_of, positive_number, shown_value, truth_value, whole_number
from ..estimators import SVMSelector
from ..estimators.fitted_selector import FittedSelector
from ..estimators.inputs import refuse_cells, takes_gaps
from ..fitting.held_out import inner_folds
from ..fitting.parts import kernel_of, kinds_taken, machine_of
from ..fitting.procedure import Fitted, ListRequest, refit_at_sizes, seed_sequence
from ..fitting.rows import Rows
from ..fitting.settings import AnyPlan
from ..outcomes import Target
from ..solvers.execution import Stopwatch, one_thread
from .scoring import Pass, point_scores
from .tuning import tune_machine

# -- keys -------------------------------------------------------------------------------------------------------------


def fingerprint(X: Any, target: Target) -> str:
    """A hash of a table's content: other values under the same name are other units."""
    import pandas as pd

    digest = hashlib.blake2b(digest_size=16)
    names = [str(name) for name in X.columns]
    facts, values = target.identity
    digest.update(json.dumps([names, *facts]).encode())
    if all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in X.dtypes.unique()):  # a plain matrix
        digest.update(np.ascontiguousarray(X.to_numpy()).tobytes())
    else:
        digest.update(pd.util.hash_pandas_object(X, index=False).to_numpy().tobytes())
    digest.update(np.ascontiguousarray(values).tobytes())
    digest.update(b"" if target.groups is None else np.ascontiguousarray(target.groups).tobytes())
    return digest.hexdigest()


def key_of(*parts: Any) -> str:
    """A key that changes with any of the parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# -- protocols --------------------------------------------------------------------------------------------------------

MOST_DRAWS = 100_000  # and folds


@dataclass(frozen=True)
class Split:
    """Row numbers of one split; `repeat` numbers the passes over the table, whose test parts are pooled."""

    name: str
    repeat: int
    train: IntArray
    test: IntArray
    validation: IntArray | None = None
    random_state: int = 0  # of what is fitted on it, where the protocol does not say otherwise


@dataclass(frozen=True)
class Protocol:
    """How a suite splits its tables, which numbers of features it reports, and what it tunes where.

    A subclass may override `training_target`, as a study of wrong labels does.

    Parameters
    ----------
    name : str
        Name by which suites know it.
    scheme : "folds", "loo" or "shares"
        Repeated stratified folds, leave-one-out, or test rows drawn at random.
    folds : int, default=5
        Number of folds.
    repeats : int, default=1
        How often the folds, or the test rows, are drawn.
    test_share : float, default=0.1
        Share of the rows that are drawn for the test ("shares").
    validation_share : float, default=0.0
        Share of the rows that are drawn for validation ("shares"); methods are trained on them, too.
    outer_share : float, default=1.0
        Share of the rows that is drawn once and then split ("shares"); the rest is not used.
    sizes : tuple of float, default=()
        Numbers of features to report, or shares of the columns below 1; empty: the number that each method chooses.
    grid : mapping of str to tuple, default={}
        Values of each parameter that is tuned.
    tuned : "", "nested" or "reported", default=""
        Where parameters are tuned: nowhere, inside each training part, or on the splits that are reported, which is
        optimistic.
    inner_folds : int, default=10
        Number of folds for tuning inside a training part.
    settings : mapping of str to object, default={}
        Parameters that every method is given.
    impute : bool, default=False
        Whether missing numbers become means of the training part and, for methods that take numbers alone, categories
        columns of 0 and 1.

    Examples
    --------
    >>> from marginsieve.engine import Protocol
    >>> from marginsieve.outcomes import ClassTarget
    >>> splits = Protocol("tenfold", "folds", folds=10).splits(ClassTarget.from_codes([0, 1] * 20), 0)
    >>> len(splits), len(splits[0].test)
    (10, 4)
    """

    name: str
    scheme: str
    folds: int = 5
    repeats: int = 1
    test_share: float = 0.1
    validation_share: float = 0.0
    outer_share: float = 1.0
    sizes: tuple[float, ...] = ()
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    tuned: str = ""
    inner_folds: int = 10
    settings: Mapping[str, Any] = field(default_factory=dict)
    impute: bool = False

    def splits(self, target: Target, seed: int) -> list[Split]:
        """All splits of a table, in order; they depend on its outcomes, the groups and the seed alone."""
        m = len(target)
        if self.scheme == "loo":
            everything = np.arange(m)
            return [Split(f"{i}", 0, np.delete(everything, i), everything[[i]]) for i in range(m)]
        states = np.random.SeedSequence(seed).generate_state(self.repeats + 1)
        if self.scheme == "folds":
            limit = target.fold_limit()
            if limit.count < self.folds:
                raise InputError(f"protocol {self.name!r} makes {self.folds} folds and {limit.reason}: use fewer folds")
            return [
                Split(f"{r}.{k}", r, train, test)
                for r in range(self.repeats)
                for k, (train, test) in enumerate(target.folds(self.folds, int(states[r] // 2)))
            ]
        if target.groups is not None:
            raise InputError(f"protocol {self.name!r} draws rows, not groups: use 'nested' for grouped tables")
        return self._shares(target.strata, states)

    def _shares(self, y: IntArray, states: Any) -> list[Split]:
        rows = np.arange(len(y))
        if self.outer_share < 1.0:
            rows = _draw(rows, y, round(self.outer_share * len(y)), int(states[-1] // 2))[0]
        out, m = [], len(rows)
        for r in range(self.repeats):
            state = int(states[r] // 2)
            test, rest = _draw(rows, y, round(self.test_share * m), state)
            validation = None
            if self.validation_share:
                validation, rest = _draw(rest, y, round(self.validation_share * m), state + 1)
            out.append(Split(f"{r}", r, rest, test, validation))
        return out

    def sizes_for(self, n: int) -> list[int]:
        """The sizes to report on a table of n columns: shares become counts, larger ones than n are left out."""
        counts = (max(1, round(size * n)) if size < 1 else int(size) for size in self.sizes)
        return sorted({count for count in counts if count <= n})

    def training_target(self, part: Rows, rng: np.random.Generator) -> Target:  # noqa: ARG002, others draw
        """The target that methods are given for a training part."""
        return part.target


def _draw(rows: IntArray, y: IntArray, count: int, state: int) -> tuple[IntArray, IntArray]:
    """(so many rows, stratified, and the rest), both sorted."""
    splitter = StratifiedShuffleSplit(1, test_size=count, random_state=state)
    rest, drawn = next(splitter.split(np.zeros(len(rows)), y[rows]))
    return np.sort(rows[drawn]), np.sort(rows[rest])


PROTOCOLS: dict[str, Protocol] = {"nested": Protocol("nested", "folds", folds=5, repeats=3)}


def register_protocol(protocol: Protocol) -> None:
    """Register a protocol by its name, so that suites can name it.

    Parameters
    ----------
    protocol : Protocol
        The protocol.

    Examples
    --------
    >>> from marginsieve.bench import Suite
    >>> from marginsieve.engine import Protocol, register_protocol
    >>> register_protocol(Protocol("twenty-draws", "shares", repeats=20, test_share=0.3))
    >>> spec = {"protocol": "twenty-draws", "data": [{"name": "toy", "cohort": {}}], "method": [{"name": "fisher"}]}
    >>> Suite.read(spec).protocol.test_share
    0.3
    """
    PROTOCOLS[protocol.name] = protocol


def protocol_of(spec: str | Mapping[str, Any]) -> Protocol:
    """A protocol by name, with some of its fields changed where a mapping is given."""
    if not isinstance(spec, (str, Mapping)):
        raise InputError(f"protocol is {shown_value(spec)}; it must be a name, or a table with a name and fields")
    fields: dict[str, Any] = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = fields.pop("name", "nested")
    if not isinstance(name, str):
        raise InputError(f"protocol: name is {shown_value(name)}; it must be a text")
    if name not in PROTOCOLS:
        raise InputError(f"there is no protocol {name!r}; the protocols are {listing(list(PROTOCOLS), most=20)}")
    known = PROTOCOLS[name].__dataclass_fields__
    if unknown := [key for key in fields if key not in known]:
        raise InputError(
            f"protocol {name!r} has no field {listing(unknown)}; the fields are {listing(list(known), 20)}"
        )
    if "sizes" in fields:
        fields["sizes"] = _sizes(fields["sizes"])
    if "grid" in fields:
        fields["grid"] = checked_grid(fields["grid"])
    protocol = replace(PROTOCOLS[name], **fields)
    _check(protocol)
    return protocol


def _check(protocol: Protocol) -> None:
    """Refuse fields that make no sense, before anything is run."""
    for field_, lowest in (("folds", 2), ("repeats", 1), ("inner_folds", 2)):
        whole_number("protocol", field_, getattr(protocol, field_), lowest, MOST_DRAWS)
    for field_ in ("test_share", "outer_share"):
        positive_number("protocol", field_, getattr(protocol, field_), 1.0)
    if protocol.validation_share != 0:
        positive_number("protocol", "validation_share", protocol.validation_share, 1.0)
    if protocol.scheme == "shares" and protocol.test_share + protocol.validation_share >= 1:
        raise InputError("protocol: test_share and validation_share leave nothing to train on")
    for field_, known in (("tuned", ("", "nested", "reported")), ("scheme", ("folds", "loo", "shares"))):
        one_of("protocol", field_, getattr(protocol, field_), known)
    truth_value("protocol", "impute", protocol.impute)
    if not isinstance(protocol.settings, Mapping):
        raise InputError(f"protocol: settings is {shown_value(protocol.settings)}; it must be a table of parameters")


def _sizes(sizes: Any) -> tuple[float, ...]:
    if not isinstance(sizes, (list, tuple)):
        raise InputError(f"protocol: sizes is {shown_value(sizes)}; it must be a list of counts, or of shares below 1")
    for size in sizes:
        positive_number("protocol", "a value of sizes", size)
    return tuple(sizes)


def checked_grid(grid: Any) -> dict[str, tuple[Any, ...]]:
    """A grid as it is used: lists of values by parameter."""
    if not isinstance(grid, Mapping) or not all(isinstance(values, (list, tuple)) for values in grid.values()):
        raise InputError(f"grid is {shown_value(grid)}; it must be a table of lists of values, by parameter")
    return {str(key): tuple(values) for key, values in grid.items()}


# -- units ------------------------------------------------------------------------------------------------------------

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
        params = recipes.configure(self.function, dict(self.settings)).get_params()
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
        watch = Stopwatch()
        try:
            with limit_seconds(self.seconds), one_thread(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                row.update(self.work(self.unit, table), status="done")
            if row["result"] is not None:
                texts = [*row["result"].get("notes", ()), *(str(item.message) for item in caught)]
                row["result"]["notes"] = list(dict.fromkeys(texts))
        except OutOfTime:
            if not self.catch:
                raise
            row.update(status="failed", error=f"cut by the clock after {self.seconds:g} s")
        except MemoryError:
            if not self.catch:
                raise
            row.update(status="failed", error="there was not enough memory; the same command tries it again")
        except Exception as error:
            if not self.catch:
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
            row.update(status="failed", error=message)
        now = datetime.now(UTC).isoformat(timespec="seconds")  # such texts are in the order of time
        return row | {"seconds": watch.seconds(), "peak_mb": peak_memory(), "finished": now}

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
    """A unit of a study: the method as it is, at the number of features that it chooses.

    Where a rule chooses it, the short list comes first and the longer one after it.
    """
    selector, test = seed_estimator(prepared.selector, unit.random_state), unit.split.test
    fitted = selector.fit_rows(table.rows.take(unit.split.train), plan=prepared.plan, lists=ListRequest(short=True))
    lists = [fitted] if fitted.short is None else [fitted.short, fitted]
    return {"result": _result(fitted, test, [_entry(each, table, table.rows.table.Z[test]) for each in lists])}


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
    refuse_cells(part.table.Z, part.schema, takes_gaps(selector))
    chosen = dict(params)
    if protocol.tuned == "nested" and unit.grid:
        (folds,), _ = inner_folds(protocol.inner_folds, part.active, np.random.default_rng(unit.random_state))
        chosen = tune_machine(_plain(selector), part, unit.grid, folds)[0]
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
    selector = recipes.configure(recipe, dict(unit.method.settings))
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


def peak_memory() -> float:
    """The largest memory of this process so far, in MB."""
    try:
        import resource
    except ImportError:  # pragma: no cover
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def limit_seconds(seconds: float | None) -> Iterator[None]:
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
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # what was sent at the last moment is for this block


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    over = False

    def ring(*_: Any) -> None:
        if not over:  # at the last moment
            raise OutOfTime

    before, since = signal.signal(signal.SIGALRM, ring), time.perf_counter()
    left, _ = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-5))  # 0 would be for ever
    if 0.0 < left < seconds:  # an outer limit comes first
        signal.setitimer(signal.ITIMER_REAL, left)
    try:
        yield
    finally:
        over = True
        if signal.getsignal(signal.SIGALRM) is ring:  # not where a signal that ends the process uses the timer now
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - since), 1e-3) if left else 0.0)
