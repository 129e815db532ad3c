"""Suites: methods x data sets x a protocol, read from a TOML file or a dict, expanded into small work units."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import recipes
from ..contracts import IntArray
from ..data import load_table, make_cohort
from ..errors import InputError, listing
from ..estimators.inputs import read_target
from .protocols import Protocol, Split, protocol_of


@dataclass(frozen=True)
class Data:
    """A table with class codes; names of the classes and which is positive."""

    name: str
    X: Any  # a pandas table, or an array with `names`
    y: IntArray
    classes: tuple[str, ...]
    positive: int
    groups: IntArray | None = None

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.X.columns]


@dataclass(frozen=True)
class Method:
    """A recipe with settings, under a label of its own; `grid` replaces what the protocol tunes."""

    label: str
    recipe: str
    settings: tuple[tuple[str, Any], ...]
    grid: tuple[tuple[str, tuple[Any, ...]], ...] | None = None

    @property
    def tuned_with(self) -> str:
        """What methods with the same tuned parameters share: the label but for its brackets, and the grid."""
        return f"{self.label.split('[')[0]} {self.grid}"

    def build(self) -> Any:
        return recipes.get(self.recipe)(**dict(self.settings))


@dataclass(frozen=True)
class Unit:
    """The smallest piece of work: one method on one split of one data set. Its key decides its seed and its row."""

    key: str
    data: str
    method: Method
    protocol: Protocol
    split: Split
    split_seed: int  # of the suite: the splits of its data set are drawn with it

    @property
    def seed(self) -> int:
        return int(self.key[:8], 16) // 2

    @property
    def grid(self) -> Mapping[str, tuple[Any, ...]]:
        """What is tuned: the method's own grid, or the protocol's."""
        return self.protocol.grid if self.method.grid is None else dict(self.method.grid)


@dataclass(frozen=True)
class Suite:
    """What a study runs; `seconds` is the clock's limit for one unit (a backstop: a unit that it cut has failed)."""

    name: str
    protocol: Protocol
    data: tuple[Mapping[str, Any], ...]
    methods: tuple[Method, ...]
    seed: int = 0
    seconds: float | None = None

    @classmethod
    def read(cls, source: str | Path | Mapping[str, Any]) -> Suite:
        """From a TOML file or a mapping of the same shape: name, protocol, seed, seconds, [[data]], [[method]]."""
        spec = dict(source) if isinstance(source, Mapping) else _toml(Path(source))
        allowed = {"name", "protocol", "seed", "seconds", "data", "method"}
        if unknown := [key for key in spec if key not in allowed]:
            raise InputError(f"the suite has {listing(unknown)}; it may have {listing(sorted(allowed), 10)}")
        for part in ("data", "method"):
            if not spec.get(part):
                raise InputError(f"the suite has no [[{part}]]: name at least one")
        methods = tuple(_method(entry) for entry in spec["method"])
        labels = [method.label for method in methods]
        if len(set(labels)) < len(labels):
            raise InputError(f"two methods of the suite have the same label ({listing(labels)}): give one a 'label'")
        return cls(
            name=str(spec.get("name", "suite")),
            protocol=protocol_of(spec.get("protocol", "nested")),
            data=tuple(spec["data"]),
            methods=methods,
            seed=int(spec.get("seed", 0)),
            seconds=spec.get("seconds"),
        )

    def tables(self) -> list[Data]:
        """The data sets, loaded; a 'shuffle' count makes so many copies with permuted labels."""
        out = []
        for entry in self.data:
            base = _load(dict(entry))
            shuffles = int(entry.get("shuffle", 0))
            if not shuffles:
                out.append(base)
            for k in range(shuffles):
                rng = np.random.default_rng([self.seed, k, _number(base.name)])
                shuffled = rng.permutation(base.y)
                out.append(Data(f"{base.name}~{k}", base.X, shuffled, base.classes, base.positive, base.groups))
        names = [data.name for data in out]
        if len(set(names)) < len(names):
            raise InputError(f"two data sets of the suite have the same name: {listing(names)}")
        return out

    def units(self, tables: list[Data]) -> list[Unit]:
        """Every unit, in the order in which it is run."""
        out, protocol = [], asdict(self.protocol)
        if not protocol["impute"]:  # a field that came later: studies from before it are still good
            del protocol["impute"]
        for data in tables:
            splits = self.protocol.splits(data.y, data.groups, self.seed)
            mark = fingerprint(data)
            for method in self.methods:
                for split in splits:
                    what = (method.recipe, method.settings, method.grid)
                    key = key_of(mark, protocol, what, split.name, self.seed)
                    out.append(Unit(key, data.name, method, self.protocol, split, self.seed))
        return out


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"there is no suite {str(path)!r}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path.name} is not valid TOML: {error}") from error


def _method(entry: Mapping[str, Any]) -> Method:
    settings = dict(entry)
    if "name" not in settings:
        raise InputError(f"a [[method]] of the suite has no 'name': {settings}")
    name = str(settings.pop("name"))
    recipe = recipes.get(name).__name__
    label = str(settings.pop("label", recipe.replace("_", "-")))
    grid = settings.pop("grid", None)
    if grid is not None:
        grid = tuple((str(key), tuple(values)) for key, values in grid.items())
    method = Method(label, recipe, tuple(sorted(settings.items())), grid)
    try:
        method.build()
    except TypeError as error:
        raise InputError(f"method {name!r} does not take these settings: {error}") from error
    return method


def _load(entry: dict[str, Any]) -> Data:
    entry.pop("shuffle", None)
    if "cohort" in entry:
        made = make_cohort(**entry["cohort"])
        name = str(entry.get("name", "cohort"))
        return _data(name, made.X, made.y, "case")
    if "file" in entry:
        from ..data.reading import read_table

        target = str(entry.get("target", ""))
        frame = read_table(Path(entry["file"]), target=target)
        if target not in frame.columns:
            raise InputError(f"target is {target!r}, which {entry['file']} does not have")
        y = frame.pop(target)
        groups = frame.pop(entry["groups"]) if "groups" in entry else None
        return _data(str(entry.get("name", Path(entry["file"]).stem)), frame, y, entry.get("positive"), groups)
    if "name" not in entry:
        raise InputError(f"a [[data]] of the suite needs a 'name', a 'cohort' or a 'file': {entry}")
    data = load_table(str(entry["name"]))
    return _data(data.name, data.X, data.y, data.positive)


def _data(name: str, X: Any, y: Any, positive: Any, groups: Any = None) -> Data:
    classes, codes, _, groups = read_target(X, y, None, groups)
    labels = tuple(str(label) for label in classes)
    if positive is not None and str(positive) not in labels:
        raise InputError(f"positive is {positive!r}; data set {name!r} has {listing(labels)}")
    code = labels.index(str(positive)) if positive is not None else int(np.bincount(codes).argmin())
    return Data(name, X, codes, labels, code, groups)


def floats_alone(X: Any) -> bool:
    """Whether a pandas table is a plain matrix of floats."""
    return all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in X.dtypes.unique())


def fingerprint(data: Data) -> str:
    """A hash of the table's content: other values under the same name are other units."""
    import pandas as pd

    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([data.names, list(data.classes), data.positive]).encode())
    if floats_alone(data.X):
        digest.update(np.ascontiguousarray(data.X.to_numpy()).tobytes())
    else:
        digest.update(pd.util.hash_pandas_object(data.X, index=False).to_numpy().tobytes())
    digest.update(np.ascontiguousarray(data.y).tobytes())
    digest.update(b"" if data.groups is None else np.ascontiguousarray(data.groups).tobytes())
    return digest.hexdigest()


def key_of(*parts: Any) -> str:
    """A key that changes with any of the parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())
