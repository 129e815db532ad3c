"""Models in files that are safe to load: a zip archive, uncompressed, of one JSON text, plain arrays and a digest.

Our parts have their public names there: a file holds values and names of known classes, never code. Classes are looked
up in a fixed list and rebuilt by their constructors, arrays are read without pickles. So files survive moves between
modules, and nothing in one can run. Nothing is unpacked that is larger than the file itself, no array is made before
its size is known to be right, and a file that was changed by accident does not have its digest.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import math
import operator
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..contracts import HasParameters, Path, Solution, Step, StopInfo, Trials, is_sparse
from ..data.file_access import check_file, file_error, format_path, write_atomic
from ..data.moments import Alignment, ColumnMoments
from ..data.table import Schema, Table
from ..errors import InputError
from ..fitting.parts import AXES, Smote
from ..fitting.procedure import Group
from ..fitting.settings import outcome_of, refuse_model
from ..fitting.training import Blended, Model, Scaling
from ..outcomes import DECISIONS, Classes, Numbers, Survival
from ..problem import view_of
from .fitted_selector import Adaptation, FittedSelector
from .model_checks import check_attributes, check_csc, check_parts, check_view, check_works, floats, require, texts
from .selector import Blend, SVMSelector

if TYPE_CHECKING:
    import pandas as pd

# -- the container ----------------------------------------------------------------------------------------------------

TEXT = "model.json"
DIGEST = "sha256"
DTYPES = ("<f8", "<i8", "|u1", "|b1")
MOST_ARRAYS = 100_000
END_HEADER, MEMBER_HEADERS = 22, 76  # bytes of an archive beside names and contents


def pack(text: Any, arrays: list[Any]) -> bytes:
    """The bytes of an archive."""
    members = [(TEXT, json.dumps(text, allow_nan=False).encode("ascii"))]
    for k, array in enumerate(arrays):
        out = io.BytesIO()
        np.lib.format.write_array(out, plain(array), allow_pickle=False)
        members.append((f"{k}.npy", out.getvalue()))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [*members, (DIGEST, _digest(members).encode("ascii"))]:
            info = zipfile.ZipInfo(name)  # of 1980
            info.create_system = 3  # on every system
            archive.writestr(info, data)
    return content.getvalue()


def plain(array: Any) -> Any:
    """The array in one of the types that a file may hold."""
    array = np.asarray(array)
    kinds = {"f": "<f8", "i": "<i8", "u": "|u1" if array.dtype.itemsize == 1 else "<i8", "b": "|b1"}
    if array.dtype.kind not in kinds:
        raise TypeError(f"an array of {array.dtype}")
    return array.astype(kinds[array.dtype.kind], copy=False)


def unpack(content: bytes) -> tuple[Any, list[Any]]:
    """The JSON text and the arrays of an archive; refuses anything else."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        if content[:2] in (b"", b"PK"):
            raise InputError(f"it is {'cut off' if content else 'empty'}: copy it again")
        raise InputError("it is not an archive: a pickle, for one, is never loaded, since it can run any code")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        count = len(names) - 2
        if not 0 <= count <= MOST_ARRAYS or names != [TEXT, *(f"{k}.npy" for k in range(count)), DIGEST]:
            raise InputError("it does not hold what a model holds")
        if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
            raise InputError("it is compressed, which no model is")
        # two headers for each member and one at the end: no byte is left that is no model's (larger ones have others)
        size = END_HEADER + sum(MEMBER_HEADERS + 2 * len(info.filename) + info.file_size for info in infos)
        if size != len(content) if len(content) <= zipfile.ZIP64_LIMIT else size > len(content):
            raise InputError(f"it holds {len(content):,} bytes, and a model with its content {size:,}")
        members = [(name, archive.read(name)) for name in names]
    del content  # there are copies, and copies of these come
    *members, (_, digest) = members
    if digest != _digest(members).encode("ascii"):
        raise InputError("its digest is not that of its content: copy it again")
    text = json.loads(members[0][1].decode("ascii"), parse_constant=_no_constant)
    return text, [_array(data) for _, data in members[1:]]


def _digest(members: list[tuple[str, bytes]]) -> str:
    total = hashlib.sha256()
    for name, data in members:
        total.update(f"{name} {len(data)}\n".encode("ascii"))
        total.update(data)
    return total.hexdigest()


def _no_constant(word: str) -> Any:
    raise InputError(f"it holds the number {word}")


def _array(data: bytes) -> Any:
    """An array of a known type whose size is that of its bytes."""
    handle = io.BytesIO(data)
    if np.lib.format.read_magic(handle) != (1, 0):
        raise InputError("it holds an array of another version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(handle)
    if dtype.str not in DTYPES or len(shape) > 2 or any(side < 0 for side in shape):
        raise InputError(f"it holds an array of {dtype.str!r} of shape {shape}")
    rest = memoryview(data)[handle.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise InputError(f"it holds an array of {len(rest)} bytes that says it has the shape {shape}")
    flat = np.frombuffer(rest, dtype=dtype)
    if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise InputError("it holds truth values that are neither 0 nor 1")
    array = flat.reshape(shape, order="F" if fortran else "C").copy(order="A")
    return array.astype(np.intp, copy=False) if dtype.kind == "i" else array


# -- models -----------------------------------------------------------------------------------------------------------

FORMAT = 3
NAME = "model.marginsieve"
MOST_PADDED = 2**24
MOST_DIGITS = 100  # of a decimal number that is a label
SCALARS = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
ATTRIBUTES = (  # of a fitted selector; the others follow from them
    *("columns_", "path_", "_weight", "_seed"),
    *("rows_", "notes_", "constant_", "duplicates_", "groups_", "n_features_in_", "feature_names_in_"),
    *("training_", "adaptation_"),
)
OF_OUTCOMES = {  # and those that its decision has, by the name of the outcome
    "classes": ("classes_", "positive_", "threshold_", "_sign", "_sigmoid"),
    "numbers": ("interval_",),
    "survival": ("baseline_",),
}
# parameters that predictions do not need
UNREAD = ("criterion", "search", "prefilter", "sampler", "cv", "random_state", "views")
KINDS = {"SVMSelector": SVMSelector, "Blend": Blend}


def _known_types() -> dict[str, type]:
    """Classes that a file may hold, by public name: those that the dictionaries of parts have now, and our own."""
    rooms = {"kernel": "kernels", "machine": "machines", "criterion": "criteria", "search": "searches"}
    makers = [(room, make) for axis, room in rooms.items() for make in AXES[axis].values()]
    parts = {f"{room}.{make.__name__}": make for room, make in makers if isinstance(make, type)}
    others: tuple[type, ...] = (
        *(Schema, Table, Scaling, Solution, Step, StopInfo, Path, Trials, Group, Smote, SVMSelector),
        *(ColumnMoments, Alignment, Adaptation, Classes, Numbers, Survival),
    )
    return {**parts, **{part.__name__: part for part in others}}


def save(model: FittedSelector, path: str | File) -> File:
    """Write a fitted selector to a file, atomically.

    The file holds what predictions need, including the training rows of the selected columns. A criterion, a search, a
    sampler, a splitter or a random generator of another library is left out, since predictions do not need it; a model
    with a kernel or a machine of another library cannot be saved.

    Parameters
    ----------
    model : SVMSelector or Blend
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
    path = File(path)
    write_atomic(path, to_bytes(model))
    return path


def to_bytes(model: FittedSelector) -> bytes:
    """The content of a model file."""
    check_is_fitted(model)
    writer = _Writer()
    params = model.get_params(deep=False)
    params.pop("n_jobs", None)  # whoever loads it has other cores, and equal fits have equal files
    for name in UNREAD:
        if name not in params:
            continue
        try:
            _Writer().encode(params[name])
        except TypeError:
            del params[name]
    names = (*ATTRIBUTES, *OF_OUTCOMES.get(outcome_of(model).name, ()))
    fitted = {name: getattr(model, name) for name in names if hasattr(model, name)}
    suspects = getattr(model, "suspects_", None)
    if suspects is not None:
        columns = {name: suspects[name].to_numpy(dtype=np.float64) for name in suspects.columns}
        fitted["suspects_"] = {"index": suspects.index.tolist(), "columns": columns}
    blend = model.model_
    whole = {
        "kind": type(model).__name__,
        "params": params,
        "fitted": fitted,
        "models": [_plain_model(model) for model in blend.models],
        "middle": blend.middle,
        "unit": blend.unit,
    }
    try:
        text = {"format": FORMAT, "package": version("marginsieve"), "selector": writer.encode(whole)}
    except TypeError as error:
        raise InputError(
            f"the model has a part {error}, which is not one of marginsieve's: such a model cannot be saved"
        ) from None
    return pack(text, writer.arrays)


def _plain_model(model: Model) -> dict[str, Any]:
    view = model.view
    return {
        "machine": model.machine,
        "kernel": view.kernel,
        "features": model.features,
        "scaling": model.scaling,
        "table": view.table.freeze(),
        "feature_weight": view.feature_weight,
        "solutions": model.solutions,
    }


def load(path: str | File) -> FittedSelector:
    """Read a selector that `save` wrote; any other file is refused.

    Parameters
    ----------
    path : str or path
        A model file, or a result folder that holds one.

    Returns
    -------
    SVMSelector or Blend
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
    if os.path.isdir(path):
        path = path / NAME
    if not os.path.lexists(path):
        raise InputError(f"there is no model {format_path(path)}")
    check_file(path, "name a model.marginsieve, or a folder that holds one")
    try:
        text, arrays = unpack(path.read_bytes())
        check_format(text)
        return _rebuild(_Reader(arrays).decode(text["selector"]))
    except OSError as error:
        raise file_error(error, f"{format_path(path)} cannot be read") from error
    except MemoryError:  # says nothing of the file
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise InputError(f"{path.name!r} is damaged or not a model of marginsieve: {reason}") from error


def check_format(text: Any) -> None:
    """Refuse a file of another format."""
    number = text.get("format") if isinstance(text, dict) else None
    require(isinstance(number, int) and isinstance(text.get("package"), str), "its format")
    if number != FORMAT:
        raise InputError(
            f"it has format {number} (marginsieve {text['package'][:20]}) and this marginsieve reads {FORMAT}: load it "
            "with that version, or fit the model again"
        )


def _rebuild(whole: Any) -> FittedSelector:
    """The selector from its parameters, its attributes and its models, each of them checked."""
    fields_ = {"kind", "params", "fitted", "models", "middle", "unit"}
    require(isinstance(whole, Mapping) and set(whole) == fields_ and whole["kind"] in KINDS, "its content")
    selector: FittedSelector = KINDS[whole["kind"]](**whole["params"])
    selector.check()
    fitted, parts = dict(whole["fitted"]), whole["models"]
    outcome = outcome_of(selector).name
    own = OF_OUTCOMES[outcome]
    require(not selector.probability or fitted.get(own[-1]) is not None, own[-1])
    suspects = fitted.pop("suspects_", None)
    problems = check_attributes(fitted, ATTRIBUTES, own)
    require(type(parts) is list and (len(parts) == 1 or (parts and isinstance(selector, Blend))), "the models")
    shape = (len(parts), problems)
    floats(whole["middle"], shape, "the middle of a view")
    floats(whole["unit"], shape, "the unit of a view", least=1e-300)
    for part in parts:
        check_parts(part, fitted["columns_"], problems)
    for name, value in fitted.items():
        setattr(selector, name, value)
    if suspects is not None:
        selector.suspects_ = _frame(suspects)
    selector._decision = DECISIONS[outcome](selector)
    models = tuple(_model(part) for part in parts)
    single = isinstance(selector, SVMSelector)
    selector.model_ = models[0] if single else Blended(models, whole["middle"], whole["unit"])
    selector.rank()
    check_is_fitted(selector)
    if "training_" in fitted:
        listed = tuple(name for name, taken in zip(selector.columns_.names, selector.support_, strict=True) if taken)
        require(fitted["training_"].names == listed, "the moments of the columns")
    for model in models:
        check_works(model)
    return selector


def _model(part: Mapping[str, Any]) -> Model:
    machine, table = part["machine"], part["table"]
    refuse_model(machine, part["kernel"], table.shape)
    view = view_of(machine, part["kernel"], table, part["feature_weight"], np.arange(table.shape[1]))
    model = Model(machine, part["features"], part["scaling"], view, part["solutions"])
    check_view(model)
    return model


def _frame(suspects: Any) -> pd.DataFrame:
    """The table of suspects."""
    import pandas as pd

    require(isinstance(suspects, Mapping) and set(suspects) == {"index", "columns"}, "suspects_")
    index, columns = suspects["index"], suspects["columns"]
    require(isinstance(index, list) and isinstance(columns, Mapping), "suspects_")
    texts(list(columns), list, "suspects_")
    for values in columns.values():
        floats(values, (len(index),), "suspects_", finite=False)
    return pd.DataFrame(dict(columns), index=index)


class _Writer:
    """Values as JSON; arrays are kept apart."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.names = {part: name for name, part in _known_types().items()}

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
        if isinstance(value, Decimal):
            return {"$decimal": str(value)}
        if is_sparse(value):
            parts = {
                "data": value.data,
                "indices": value.indices.astype(np.intp),
                "indptr": value.indptr.astype(np.intp),
            }
            return {"$csc": {name: self._array(part) for name, part in parts.items()}, "shape": list(value.shape)}
        if isinstance(value, (list, tuple)) and type(value) not in self.names:
            items = [self.encode(item) for item in value]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, Mapping):
            return {"$dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, np.random.SeedSequence):
            return {"$seed": self.encode(value.entropy), "spawned": value.n_children_spawned}
        return self._part(value)

    def _array(self, value: Any) -> dict[str, Any]:
        if value.dtype.kind in "OUT":
            return {"$list": [self.encode(item) for item in value.ravel().tolist()], "text": value.dtype.kind != "O"}
        self.arrays.append(plain(value))
        return {"$array": len(self.arrays) - 1, "dtype": value.dtype.str}

    def _part(self, value: Any) -> dict[str, Any]:
        name = self.names.get(type(value))
        if name is None:
            raise TypeError(f"{getattr(value, '__qualname__', type(value).__qualname__)!r}")
        return {"$type": name, "with": {key: self.encode(item) for key, item in _arguments(value).items()}}


def _decimal(entry: dict[str, Any]) -> Decimal:
    require(isinstance(entry["$decimal"], str) and len(entry["$decimal"]) <= MOST_DIGITS, "a decimal number")
    value = Decimal(entry["$decimal"])
    require(value.is_finite() and abs(value.adjusted()) <= MOST_DIGITS, "a decimal number")
    return value


def _arguments(value: Any) -> dict[str, Any]:
    """What a constructor needs to make an equal object: constructors only assign."""
    if isinstance(value, HasParameters):
        return dict(value.get_params(deep=False))
    if is_dataclass(value):
        without_clock = {"seconds": 0.0} if isinstance(value, Step) else {}  # equal fits have equal files
        return {field.name: getattr(value, field.name) for field in fields(value)} | without_clock
    names = inspect.signature(type(value)).parameters
    if lacking := [name for name in names if not hasattr(value, name)]:
        raise TypeError(f"{type(value).__qualname__!r} (without the attribute {lacking[0]!r} of its constructor)")
    return {name: getattr(value, name) for name in names}


class _Reader:
    """The inverse: values from JSON and the arrays of an archive."""

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.known = _known_types()
        self.used: set[int] = set()
        self.padded = 0  # characters of all lists of texts, each text as long as the longest of its list

    def decode(self, value: Any) -> Any:
        """The value that was encoded."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value))
        read: Callable[[dict[str, Any]], Any] | None = {
            "$float": lambda entry: float(entry["$float"]),
            "$decimal": _decimal,
            "$scalar": self._scalar,
            "$tuple": lambda entry: tuple(self.decode(item) for item in entry["$tuple"]),
            "$dict": lambda entry: {self.decode(key): self.decode(item) for key, item in entry["$dict"]},
            "$list": self._list,
            "$array": self._array,
            "$csc": self._sparse,
            "$seed": lambda entry: np.random.SeedSequence(
                self.decode(entry["$seed"]), n_children_spawned=int(entry["spawned"])
            ),
            "$type": self._part,
        }.get(kind)
        if read is None:
            raise InputError(f"the file holds {kind!r}, which is not a kind of value: it is not loaded")
        return read(value)

    def _array(self, entry: dict[str, Any]) -> Any:
        """An array, which is in the text once, of its own type or a smaller one: what is read is never the larger."""
        place = operator.index(entry["$array"])
        require(0 <= place < len(self.arrays) and place not in self.used, "the number of an array")
        self.used.add(place)
        array = self.arrays[place]
        require(entry["dtype"] in SCALARS, "the type of an array")
        require(np.dtype(entry["dtype"]).itemsize <= array.dtype.itemsize, "the type of an array")
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(entry["dtype"], copy=False)

    def _scalar(self, entry: dict[str, Any]) -> Any:
        dtype = entry["dtype"]
        if dtype.startswith("<U"):
            return np.str_(entry["$scalar"])
        require(dtype in SCALARS, "a number")
        return np.dtype(dtype).type(self.decode(entry["$scalar"]))

    def _list(self, entry: dict[str, Any]) -> Any:
        items = [self.decode(item) for item in entry["$list"]]
        if entry["text"]:
            texts(items, list, "a list of texts")
            self.padded += len(items) * max(map(len, items), default=0)
            require(self.padded <= MOST_PADDED, "a list of texts")
            return np.array(items, dtype=str)
        out = np.empty(len(items), dtype=object)
        out[:] = items
        return out

    def _sparse(self, entry: dict[str, Any]) -> Any:
        from scipy import sparse

        data, at, starts = (self.decode(entry["$csc"][name]) for name in ("data", "indices", "indptr"))
        check_csc(data, at, starts, entry["shape"])
        return sparse.csc_array((data, at.astype(np.int32), starts.astype(np.int32)), shape=tuple(entry["shape"]))

    def _part(self, entry: dict[str, Any]) -> Any:
        make = self.known.get(entry["$type"])
        if make is None:
            raise InputError(f"the file holds {entry['$type']!r}, which is not a type of marginsieve: it is not loaded")
        return make(**{str(key): self.decode(item) for key, item in entry["with"].items()})
