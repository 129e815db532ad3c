"""Protocols: how a table is split, what is tuned where, which sizes are reported.

Each is a small frozen object. `tuned` says where hyper-parameters are chosen: "nested" inside each training part,
"reported" on the very splits that are reported (what the papers do; optimistic), "" not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from ..contracts import IntArray
from ..errors import InputError, listing, positive_number, shown_value, truth_value, whole_number
from ..fitting.rows import Rows
from ..outcomes import Target

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
        if getattr(protocol, field_) not in known:
            value = shown_value(getattr(protocol, field_))
            raise InputError(f"protocol: {field_} is {value}; it must be one of {listing(known)}")
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
