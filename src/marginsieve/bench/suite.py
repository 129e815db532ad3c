"""Suites: methods x data sets x a protocol, read from a TOML file or a dict, expanded into small work units and run.

Units go to workers, their rows into the store as they come back; what is there is not run again.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import time
import tomllib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from .. import recipes
from ..data import load_table, make_cohort
from ..data.file_access import check_file, process_folder
from ..data.reading import read_table
from ..data.table import Schema
from ..engine.store import Store, begin, open_store
from ..engine.tuning import refuse_grid
from ..engine.units import (
    TUNING,
    Method,
    Protocol,
    Task,
    Unit,
    UnitTable,
    checked_grid,
    fingerprint,
    fit_and_predict,
    key_of,
    protocol_of,
    tune_reported,
)
from ..engine.workers import Run, workers
from ..errors import (
    InputError,
    check_device,
    listing,
    one_line,
    one_of,
    positive_number,
    reading,
    shown_value,
    whole_number,
)
from ..fitting.rows import Rows
from ..fitting.settings import check_seed, find_outcome
from ..outcomes import Classes
from .results import SuiteResult

MOST_SECONDS = 1e8
MOST_SHUFFLED = 10_000  # copies of a table


@dataclass(frozen=True)
class Suite:
    """Methods, data sets and a protocol: what `run_suite` runs.

    Parameters
    ----------
    name : str
        Name of the suite.
    protocol : Protocol
        How the tables are split and what is tuned.
    data : tuple of mapping
        The data sets: each a registered name, a cohort to generate, or a file.
    methods : tuple of Method
        Recipes with their settings.
    random_state : int, default=0
        Seed of the splits.
    seconds : float or None, default=None
        Time limit for one unit; a unit that exceeds it has failed.
    control : str or None, default=None
        Label of the method that the others are tested against; None tests all pairs of methods.
    outcome : str, default="classes"
        What is predicted in every data set, by every method: "classes", "numbers" or "survival".

    Examples
    --------
    >>> from marginsieve.bench import Suite
    >>> suite = Suite.read({"data": [{"name": "toy", "cohort": {}}], "method": [{"name": "fisher"}]})
    >>> suite.protocol.name, suite.protocol.folds, suite.random_state
    ('nested', 5, 0)
    """

    name: str
    protocol: Protocol
    data: tuple[Mapping[str, Any], ...]
    methods: tuple[Method, ...]
    random_state: int = 0
    seconds: float | None = None
    control: str | None = None
    outcome: str = "classes"

    @classmethod
    def read(cls, source: str | Path | Mapping[str, Any]) -> Suite:
        """Read a suite from a TOML file or a mapping of the same shape.

        Parameters
        ----------
        source : str, path or mapping
            With the keys name, protocol, seed, seconds, control, outcome, data (a list of data sets) and method (a list
            of methods).

        Returns
        -------
        Suite
            The suite, checked.

        Examples
        --------
        >>> from marginsieve.bench import Suite
        >>> suite = Suite.read({
        ...     "protocol": {"name": "nested", "folds": 3},
        ...     "data": [{"name": "toy", "cohort": {"n_samples": 40, "n_features": 10, "n_relevant": 2}}],
        ...     "method": [{"name": "fisher"}, {"name": "fisher", "label": "fisher-20", "n_features_to_select": 20}],
        ... })
        >>> [method.label for method in suite.methods]
        ['fisher', 'fisher-20']
        """
        spec = dict(source) if isinstance(source, Mapping) else _toml(Path(source))
        allowed = {"name", "protocol", "seed", "seconds", "control", "outcome", "data", "method"}
        if unknown := [key for key in spec if key not in allowed]:
            raise InputError(f"the suite has {listing(unknown)}; it may have {listing(sorted(allowed), 10)}")
        for part in ("data", "method"):
            if not spec.get(part):
                raise InputError(f"the suite has no [[{part}]]: name at least one")
            if not isinstance(spec[part], (list, tuple)) or not all(isinstance(entry, Mapping) for entry in spec[part]):
                raise InputError(f"{part} of the suite is {shown_value(spec[part])}; it must be [[{part}]] tables")
        _refuse_dates(spec)
        check_seed(spec.get("seed", 0))
        if spec.get("seconds") is not None:
            positive_number("suite", "seconds", spec["seconds"], MOST_SECONDS)
        for entry in spec["data"]:
            _check_data(entry)
        one_of("suite", "outcome", outcome := spec.get("outcome", Classes.name), recipes.OUTCOMES)
        methods = tuple(_method(entry, outcome) for entry in spec["method"])
        labels = [method.label for method in methods]
        if len(set(labels)) < len(labels):
            raise InputError(f"two methods of the suite have the same label ({listing(labels)}): give one a 'label'")
        if spec.get("control") is not None and spec["control"] not in labels:
            raise InputError(
                f"control of the suite is {shown_value(spec['control'])}; it must be the label of one of its methods: "
                f"{listing(labels, 10)}"
            )
        protocol = protocol_of(spec.get("protocol", "nested"))
        for method in methods:
            _check_tuned(method, protocol)
        return cls(
            name=str(spec.get("name", "suite")),
            protocol=protocol,
            data=tuple(spec["data"]),
            methods=methods,
            random_state=int(spec.get("seed", 0)),
            seconds=spec.get("seconds"),
            control=spec.get("control"),
            outcome=outcome,
        )

    def on_device(self, device: str) -> Suite:
        """The same suite with many searches at once on a device."""
        check_device(device)
        if device == "cpu":
            return self
        methods = [
            replace(method, settings=tuple(sorted({**dict(method.settings), "device": device}.items())))
            for method in self.methods
        ]
        return replace(self, methods=tuple(methods))

    def tables(self) -> list[UnitTable]:
        """The data sets, loaded; a 'shuffle' count makes so many copies with permuted labels."""
        out = []
        for entry in self.data:
            name, frame, y, positive, groups = _load(dict(entry), self.outcome)
            shuffles = int(entry.get("shuffle", 0))
            base = table_of(name, frame, y, positive, groups, self.outcome)
            if not shuffles:
                out.append(base)
            for k in range(shuffles):
                rng = np.random.default_rng([self.random_state, k, _number(name)])
                target = base.target.deal(rng.permutation(len(base.target)))
                out.append(UnitTable(f"{name}~{k}", replace(base.rows, target=target), fingerprint(frame, target)))
        names = [table.name for table in out]
        if len(set(names)) < len(names):
            raise InputError(f"two data sets of the suite have the same name: {listing(names)}")
        return out

    def units(self, tables: list[UnitTable]) -> list[Unit]:
        """Every unit, in the order in which it is run."""
        out, protocol = [], asdict(self.protocol)
        if not protocol["impute"]:  # a field that came later: studies from before it are still good
            del protocol["impute"]
        for table in tables:
            splits = self.protocol.splits(table.target, self.random_state)
            for method in self.methods:
                for split in splits:
                    what = (method.recipe, method.settings, method.grid)
                    key = key_of(table.fingerprint, protocol, what, split.name, self.random_state)
                    random_state = int(key[:8], 16) // 2
                    out.append(Unit(key, table.name, method, self.protocol, split, self.random_state, random_state))
        return out


def _toml(path: Path) -> dict[str, Any]:
    check_file(path, "name a suite, a TOML file")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} is not valid TOML: {one_line(error)}") from error


def _check_data(entry: Mapping[str, Any]) -> None:
    """Refuse a [[data]] with fields that make no sense."""
    allowed = ("name", "cohort", "file", "target", "time", "groups", "positive", "shuffle")
    if unknown := [key for key in entry if key not in allowed]:
        raise InputError(f"a [[data]] of the suite has {listing(unknown)}; it may have {listing(allowed, 10)}")
    whole_number("data", "shuffle", entry.get("shuffle", 0), 0, MOST_SHUFFLED)
    for key in ("name", "file", "target", "time", "groups"):
        if key in entry and not isinstance(entry[key], str):
            raise InputError(f"a [[data]] of the suite has the {key} {shown_value(entry[key])}; it must be a text")
    if not isinstance(entry.get("cohort", {}), Mapping):
        raise InputError(f"a [[data]] of the suite has the cohort {shown_value(entry['cohort'])}; it must be a table")


def _method(entry: Mapping[str, Any], outcome: str) -> Method:
    settings = dict(entry)
    if "name" not in settings:
        raise InputError(f"a [[method]] of the suite has no 'name': {settings}")
    name = settings.pop("name")
    if not isinstance(name, str):
        raise InputError(f"a [[method]] of the suite has the name {shown_value(name)}; it must be a text")
    recipes.refuse_outcome(recipes.entry(name), outcome)
    recipe = recipes.get(name).__name__
    settings |= {} if outcome == Classes.name else {"outcome": outcome}
    label = str(settings.pop("label", recipe.replace("_", "-")))
    if (grid := settings.pop("grid", None)) is not None:
        grid = tuple(checked_grid(grid).items())
    method = Method(label, recipe, tuple(sorted(settings.items())), grid)
    try:
        selector = recipes.configure(method.function, settings)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"method {name!r} does not take these settings: {one_line(error)}") from error
    selector.check()
    return method


def _check_tuned(method: Method, protocol: Protocol) -> None:
    """Refuse what the protocol forces on a method, and every value of the grid that it is tuned over."""
    selector: Any = recipes.configure(method.function, dict(method.settings))
    known = selector.get_params()
    with reading(f"settings of the protocol, for {method.label!r}"):
        selector.set_params(**{key: value for key, value in protocol.settings.items() if key in known}).check()
    grid = protocol.grid if method.grid is None else dict(method.grid)
    if not protocol.tuned or not grid:
        return
    refuse_grid(selector, grid)
    for name, values in grid.items():
        for value in values:
            with reading(f"{name}={shown_value(value)} in the grid of {method.label!r}"):
                clone(selector).set_params(**{name: value}).check()


def _refuse_dates(value: Any, where: str = "the suite") -> None:
    """TOML has dates and times, for which there is no place in a suite."""
    if isinstance(value, (dt.date, dt.time)):
        raise InputError(f"{where} is the date or time {value}; there is no place for one in a suite")
    for key, entry in value.items() if isinstance(value, Mapping) else ():
        _refuse_dates(entry, f"{key} of the suite")
    for entry in value if isinstance(value, (list, tuple)) else ():
        _refuse_dates(entry, where)


def _load(entry: dict[str, Any], outcome: str) -> tuple[str, Any, Any, Any, Any]:
    """(name, features, target, positive class, groups) of a [[data]]; times are a column beside the target."""
    if "cohort" in entry:
        with reading(f"cohort of the data set {entry.get('name', 'cohort')!r}"):
            cohort = make_cohort(**{"outcome": outcome, **entry["cohort"]})
        positive = "case" if outcome == Classes.name else None
        return str(entry.get("name", "cohort")), cohort.X, cohort.y, positive, None
    if "file" in entry:
        target = str(entry.get("target", ""))
        frame = read_table(Path(entry["file"]), target=target)
        for key in ("target", "time", "groups"):
            if (key == "target" or key in entry) and entry.get(key, "") not in frame.columns:
                raise InputError(f"{key} is {entry.get(key, '')!r}, which {entry['file']} does not have")
        y: Any = frame.pop(target)
        if "time" in entry:
            y = pd.DataFrame({"time": frame.pop(entry["time"]), "event": y})
        groups = frame.pop(entry["groups"]) if "groups" in entry else None
        return str(entry.get("name", Path(entry["file"]).stem)), frame, y, entry.get("positive"), groups
    if "name" not in entry:
        raise InputError(f"a [[data]] of the suite needs a 'name', a 'cohort' or a 'file': {entry}")
    table = load_table(str(entry["name"]))
    return table.name, table.X, table.y, table.positive, None


def table_of(name: str, X: Any, y: Any, positive: Any, groups: Any = None, outcome: str = Classes.name) -> UnitTable:
    """A pandas table and its target as units see them; the rarer class is positive where none is named."""
    schema = Schema.from_table(X)
    if outcome != Classes.name:
        others = find_outcome(outcome, {}).read(X, y, None, groups)
        return UnitTable(name, Rows(schema, schema.table(X), others), fingerprint(X, others))
    target = Classes().read(X, y, None, groups)
    labels = {str(label): label for label in target.classes}  # files of suites name classes by their text
    if positive is not None and str(positive) not in labels:
        raise InputError(f"positive is {positive!r}; data set {name!r} has {listing(list(labels))}")
    target = target.settle(Classes(positive=None if positive is None else labels[str(positive)]))
    return UnitTable(name, Rows(schema, schema.table(X), target), fingerprint(X, target))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())


# -- running ----------------------------------------------------------------------------------------------------------

UnitProgress = Callable[[int, int, int], None]  # done, all, failed
SHORT, WRITE_EVERY = 0.005, 0.2  # seconds: shorter units are written together, so often
MANY_UNITS = 40  # from which on processes are started where it is left open


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    n_jobs: int | None = 1,
    cluster: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    progress: UnitProgress | None = None,
) -> SuiteResult:
    """Run the missing units of a suite. The result depends on the suite alone, not on the workers.

    Parameters
    ----------
    suite : Suite
        What to run.
    folder : str or path
        Folder of the results; the same call on the same folder resumes.
    n_jobs : int or None, default=1
        Number of worker processes; None is one for each core where there are many units.
    cluster : str or None, default=None
        Address of a Dask scheduler, to use instead of local processes.
    resume : bool, default=False
        Refuse to start a new folder.
    fresh : bool, default=False
        Delete stored results first.
    progress : callable or None, default=None
        Called as progress(done, total, failed).

    Returns
    -------
    SuiteResult
        Scores, comparisons and stability.

    Examples
    --------
    >>> import tempfile
    >>> from marginsieve.bench import Suite, run_suite
    >>> suite = Suite.read({
    ...     "protocol": {"name": "nested", "folds": 2, "repeats": 1},
    ...     "data": [{"name": "toy", "cohort": {"n_samples": 40, "n_features": 10, "n_relevant": 2}}],
    ...     "method": [{"name": "fisher", "n_features_to_select": 2}],
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_suite(suite, folder)
    ...     len(result.to_pandas())
    2
    """
    folder = Path(folder)
    begin(folder, "suite", resume, fresh)
    with open_store(folder, "suite") as store, ExitStack() as stack:
        tables = suite.tables()
        for table in tables:
            store.add_table(table)
        units = suite.units(tables)
        n_jobs = (-1 if len(units) >= MANY_UNITS else 1) if n_jobs is None else n_jobs
        run = stack.enter_context(workers(tables, n_jobs, cluster))
        params = _tune_reported(suite, units, store, run, progress)
        about = {"name": suite.name, "protocol": suite.protocol.name, "scheme": suite.protocol.scheme}
        store.set_meta("suite", {**about, "control": suite.control, "outcome": suite.outcome})
        store.set_meta("current", [unit.key for unit in units])
        done = store.done()
        pending = []
        for unit in units:
            tuned = params.get((unit.table, unit.method.tuned_with), {})
            if unit.key not in done and tuned is not None:
                work = partial(fit_and_predict, recipe=unit.method.function, params=tuned)
                pending.append(Task(unit, work, suite.seconds, tuned))
        _run_all(pending, store, run, progress, len(units))
    return SuiteResult(folder)


@cache
def example_result() -> SuiteResult:
    """Run two methods on three small generated tables, once in a process: results to try things on.

    Returns
    -------
    SuiteResult
        The results, in a folder that goes with the process.

    Examples
    --------
    >>> from marginsieve.bench import example_result
    >>> example_result().to_pandas()["data"].unique().tolist()
    ['toy0', 'toy1', 'toy2']
    """
    cohort = {"n_samples": 40, "n_features": 10, "n_relevant": 2}
    spec = {
        "protocol": {"name": "nested", "folds": 2, "repeats": 1},
        "data": [{"name": f"toy{k}", "cohort": {**cohort, "random_state": k}} for k in range(3)],
        "method": [{"name": name, "n_features_to_select": 2} for name in ("fisher", "relieff")],
    }
    return run_suite(Suite.read(spec), process_folder() / "example")


def _tune_reported(
    suite: Suite, units: list[Unit], store: Store, run: Run, progress: UnitProgress | None
) -> dict[tuple[str, str], dict[str, Any] | None]:
    """Parameters tuned on the reported splits, by table and method; None where the tuning failed."""
    if suite.protocol.tuned != "reported":
        return {}
    waiting: dict[tuple[str, str], dict[str, Unit]] = {}  # by what is tuned: a unit of each method that asks for it
    for unit in units:
        if not unit.grid:
            continue
        asking = waiting.setdefault((unit.table, unit.method.tuned_with), {})
        if unit.method.label not in asking:
            split = replace(unit.split, name=TUNING)
            asking[unit.method.label] = replace(unit, key=key_of(unit.key, TUNING), split=split)
    params: dict[tuple[str, str], dict[str, Any] | None] = dict.fromkeys(waiting)
    candidates = {where: list(asking.values()) for where, asking in waiting.items()}
    while candidates:  # what one method cannot tune (its criterion refuses the table, say) the next one may
        done, first = store.done(), {where: some[0] for where, some in candidates.items()}
        tasks = [
            Task(unit, partial(tune_reported, recipe=unit.method.function), suite.seconds)
            for unit in first.values()
            if unit.key not in done
        ]
        _run_all(tasks, store, run, progress, len(first))
        rows = store.tuning_rows()
        for where, unit in first.items():
            params[where] = rows[unit.key]["metrics"]["chosen"] if rows[unit.key]["status"] == "done" else None
        candidates = {where: some[1:] for where, some in candidates.items() if params[where] is None and some[1:]}
    return params


def _run_all(tasks: list[Task], store: Store, run: Run, progress: UnitProgress | None, total: int) -> None:
    done, failed, show = total - len(tasks), 0, progress or (lambda *_: None)
    show(done, total, failed)
    rows: list[dict[str, Any]] = []
    written = time.monotonic()
    try:
        for row in run(tasks):
            rows.append(row)
            done += 1
            failed += row["status"] == "failed"
            if (row["seconds"] or 0.0) > SHORT or time.monotonic() - written > WRITE_EVERY:
                store.add(rows)
                rows, written = [], time.monotonic()
            show(done, total, failed)
    finally:
        store.add(rows)
