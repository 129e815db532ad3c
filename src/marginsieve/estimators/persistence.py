"""Models in files: a zip archive of one JSON text and plain arrays, in which our parts have their public names.

A file holds values and names of known classes, never code: classes are looked up in a fixed list and rebuilt by their
constructors, arrays are read without pickles. So files survive moves between modules, and nothing in one can run.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path as File
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..contracts import Path, Solution, Step, StopInfo, Trials, is_sparse
from ..data.atomic import write_atomic
from ..data.table import Schema, Table
from ..errors import InputError, listing
from ..fitting.near_duplicates import Group
from ..fitting.parts import AXES
from ..fitting.preparation import Scaling
from ..fitting.smote import Smote
from ..fitting.training import Model
from ..problem import view_of
from .selector import SVMSelector

FORMAT = 1
NAME = "model.marginsieve"
TEXT = "model.json"
ATTRIBUTES = (  # of a fitted selector; the others follow from them
    *("columns_", "classes_", "positive_", "path_", "threshold_", "_sign", "_sigmoid", "_weight", "_seed"),
    *("rows_", "notes_", "constant_", "duplicates_", "groups_", "n_features_in_", "feature_names_in_"),
)
# parameters that predictions do not need
UNREAD = ("criterion", "search", "prefilter", "sampler", "cv", "random_state")


@cache
def _known() -> dict[str, Any]:
    """Classes that a file may hold, by public name."""
    rooms = {"kernel": "kernels", "machine": "machines", "criterion": "criteria", "search": "searches"}
    makers = [(room, make) for axis, room in rooms.items() for make in AXES[axis].values()]
    parts = {f"{room}.{make.__name__}": make for room, make in makers if isinstance(make, type)}
    others = (Schema, Table, Scaling, Solution, Step, StopInfo, Path, Trials, Group, Smote)
    return {**parts, **{one.__name__: one for one in others}}


@cache
def _names() -> dict[type, str]:
    return {one: name for name, one in _known().items()}


def save(model: SVMSelector, path: str | File) -> File:
    """Write a fitted selector to a file, atomically.

    The file holds what predictions need, including the training rows of the selected columns. A criterion, a search, a
    sampler, a splitter or a random generator of another library is left out, since predictions do not need it; a model
    with a kernel or a machine of another library cannot be saved.

    Parameters
    ----------
    model : SVMSelector
        A fitted selector.
    path : str or path
        File to write.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginsieve import load, recipes, save
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(40, 10, n_relevant=2, random_state=0)
    >>> selector = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = load(save(selector, Path(folder) / "model.marginsieve"))
    >>> bool((loaded.predict(cohort.X) == selector.predict(cohort.X)).all())
    True
    """
    check_is_fitted(model)
    writer = _Writer()
    params = model.get_params(deep=False)
    for name in UNREAD:
        try:
            _Writer().encode(params[name])
        except TypeError:
            del params[name]
    fitted = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    suspects = getattr(model, "suspects_", None)
    if suspects is not None:
        columns = {name: suspects[name].to_numpy(dtype=np.float64) for name in suspects.columns}
        fitted["suspects_"] = {"index": suspects.index.tolist(), "columns": columns}
    whole = {"params": params, "fitted": fitted, "model": _plain_model(model.model_)}
    try:
        text = {"format": FORMAT, "package": version("marginsieve"), "selector": writer.encode(whole)}
    except TypeError as error:
        raise InputError(
            f"the model has a part {error}, which is not one of marginsieve's: such a model cannot be saved"
        ) from None
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(TEXT, json.dumps(text, allow_nan=False))
        for k, array in enumerate(writer.arrays):
            with archive.open(f"{k}.npy", "w") as handle:
                np.lib.format.write_array(handle, array, allow_pickle=False)
    path = File(path)
    write_atomic(path, content.getvalue())
    return path


def _plain_model(model: Model) -> dict[str, Any]:
    view = model.view
    return {
        "machine": model.machine,
        "kernel": view.kernel,
        "features": model.features,
        "scaling": model.scaling,
        "table": view.table,
        "feature_weight": view.feature_weight,
        "solutions": model.solutions,
    }


def load(path: str | File) -> SVMSelector:
    """Read a selector that `save` wrote; any other file is refused.

    Parameters
    ----------
    path : str or path
        A model file, or a result folder that holds one.

    Returns
    -------
    SVMSelector
        The fitted selector.

    Examples
    --------
    >>> from marginsieve import load
    >>> load("nowhere.marginsieve")
    Traceback (most recent call last):
        ...
    marginsieve.errors.InputError: there is no model 'nowhere.marginsieve'
    """
    path = File(path)
    if path.is_dir() and (path / NAME).is_file():
        path = path / NAME
    if not path.is_file():
        raise InputError(f"there is no model {str(path)!r}")
    if not zipfile.is_zipfile(path):
        with path.open("rb") as handle:
            start = handle.read(2)
        if start in (b"", b"PK"):
            raise InputError(f"{path.name!r} is {'cut off' if start else 'empty'}: copy it again")
        raise InputError(
            f"{path.name!r} is not a model of marginsieve (it is not an archive): a pickle, for one, is never loaded, "
            "since it can run any code"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            text = json.loads(archive.read(TEXT))
            check_format(path, text)
            whole = _Reader(archive).decode(text["selector"])
        return _rebuilt(whole)
    except InputError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise InputError(f"{path.name!r} is damaged or not a model of marginsieve: {reason}") from error


def check_format(path: File, text: Any) -> None:
    """Refuse a file of another format."""
    number = text.get("format") if isinstance(text, dict) else None
    if not isinstance(number, int):
        raise InputError(f"{path.name!r} is damaged or not a model of marginsieve: it has no format")
    if number != FORMAT:
        raise InputError(
            f"{path.name!r} has format {number} (marginsieve {text.get('package', 'unknown')}) and this marginsieve "
            f"reads {FORMAT}: load it with that version, or fit the model again"
        )


def _rebuilt(whole: Mapping[str, Any]) -> SVMSelector:
    """The selector from its parameters, its attributes and its model."""
    import pandas as pd

    selector = SVMSelector(**whole["params"])
    fitted = dict(whole["fitted"])
    suspects = fitted.pop("suspects_", None)
    if unknown := [name for name in fitted if name not in ATTRIBUTES]:
        raise InputError(f"the file has the attributes {listing(unknown)}, which a selector does not have")
    for name, value in fitted.items():
        setattr(selector, name, value)
    if suspects is not None:
        selector.suspects_ = pd.DataFrame(suspects["columns"], index=suspects["index"])
    model = whole["model"]
    machine, table = model["machine"], model["table"]
    view = view_of(machine, model["kernel"], table, model["feature_weight"], np.arange(table.shape[1]))
    selector.model_ = Model(machine, model["features"], model["scaling"], view, tuple(model["solutions"]))
    selector.rank()
    check_is_fitted(selector)
    return selector


class _Writer:
    """Values as JSON; arrays are kept apart."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []

    def encode(self, value: Any) -> Any:
        """Plain JSON; a TypeError names what has no place in a file."""
        if isinstance(value, np.generic):  # some of numpy's scalars are also floats or strings
            return {"$scalar": self.encode(value.item()), "dtype": value.dtype.str}
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (int, float)):
            return value if isinstance(value, int) or math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if is_sparse(value):
            parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
            return {"$csc": {name: self._array(part) for name, part in parts.items()}, "shape": list(value.shape)}
        if isinstance(value, (list, tuple)) and type(value) not in _names():
            items = [self.encode(item) for item in value]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, Mapping):
            return {"$dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, np.random.SeedSequence):
            return {"$seed": self.encode(value.entropy), "spawned": value.n_children_spawned}
        return self._part(value)

    def _array(self, value: Any) -> dict[str, Any]:
        if value.dtype.kind in "OUT":
            return {"$list": [self.encode(item) for item in value.ravel().tolist()], "dtype": value.dtype.str}
        self.arrays.append(np.asarray(value))
        return {"$array": len(self.arrays) - 1}

    def _part(self, value: Any) -> dict[str, Any]:
        name = _names().get(type(value))
        if name is None:
            raise TypeError(f"{getattr(value, '__qualname__', type(value).__qualname__)!r}")
        return {"$type": name, "with": {key: self.encode(item) for key, item in _arguments(value).items()}}


def _arguments(value: Any) -> dict[str, Any]:
    """What a constructor needs to make an equal object."""
    if isinstance(value, BaseEstimator):
        return dict(value.get_params(deep=False))
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return dict(value._asdict())


class _Reader:
    """The inverse: values from JSON and the arrays of an archive."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive

    def decode(self, value: Any) -> Any:
        """The value that was encoded."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value))
        read: Callable[[dict[str, Any]], Any] | None = {
            "$float": lambda one: float(one["$float"]),
            "$scalar": lambda one: np.dtype(one["dtype"]).type(self.decode(one["$scalar"])),
            "$tuple": lambda one: tuple(self.decode(item) for item in one["$tuple"]),
            "$dict": lambda one: {self.decode(key): self.decode(item) for key, item in one["$dict"]},
            "$list": self._list,
            "$array": lambda one: self._array(int(one["$array"])),
            "$csc": self._sparse,
            "$seed": lambda one: np.random.SeedSequence(
                self.decode(one["$seed"]), n_children_spawned=int(one["spawned"])
            ),
            "$type": self._part,
        }.get(kind)
        if read is None:
            raise InputError(f"the file holds {kind!r}, which is not a kind of value: it is not loaded")
        return read(value)

    def _array(self, k: int) -> Any:
        with self.archive.open(f"{k}.npy") as handle:
            return np.lib.format.read_array(io.BytesIO(handle.read()), allow_pickle=False)

    def _list(self, one: dict[str, Any]) -> Any:
        items, dtype = [self.decode(item) for item in one["$list"]], np.dtype(one["dtype"])
        out = np.empty(len(items), dtype=dtype)
        out[:] = items
        return out

    def _sparse(self, one: dict[str, Any]) -> Any:
        from scipy import sparse

        parts = [self.decode(one["$csc"][name]) for name in ("data", "indices", "indptr")]
        matrix = sparse.csc_array(tuple(parts), shape=tuple(one["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _part(self, one: dict[str, Any]) -> Any:
        make = _known().get(one["$type"])
        if make is None:
            raise InputError(f"the file holds {one['$type']!r}, which is not a type of marginsieve: it is not loaded")
        return make(**{str(key): self.decode(item) for key, item in one["with"].items()})
