"""Models in files: written and read by skops, which runs no code from a file; only our own types are taken."""

from __future__ import annotations

import copy
import inspect
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..data.atomic import write_atomic
from ..errors import InputError, listing
from .selector import SVMSelector

PARTS = ("kernels", "machines", "criteria", "searches", "algebra", "fitting", "problem", "data", "estimators.selector")
OTHERS = ("numpy.random.bit_generator.SeedSequence",)
SUSPECTS = "_suspects_in_file"


@cache
def _ours() -> frozenset[str]:
    """The full names of the types that a model file may hold beyond those of Python, numpy, scipy and scikit-learn."""
    prefixes = tuple(f"marginsieve.{part}" for part in PARTS)
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(prefixes)]
    classes = [kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)]
    return frozenset(
        f"{kind.__module__}.{kind.__qualname__}" for kind in classes if kind.__module__.startswith(prefixes)
    )


def save(model: SVMSelector, path: str | Path) -> Path:
    """Write a fitted selector to a file, whole or not at all.

    It holds what predictions need, the training rows of the selected columns among it. A sampler or a splitter of
    another library is left out: it is not needed any more.
    """
    from skops import io

    check_is_fitted(model)
    path, kept = Path(path), copy.copy(model)
    for name in ("sampler", "cv"):
        kind = type(getattr(model, name))
        if not (kind.__module__.startswith("marginsieve.") or kind in (int, str, type(None))):
            setattr(kept, name, inspect.signature(SVMSelector).parameters[name].default)
    found = kept.__dict__.pop("suspects_", None)
    if found is not None:
        columns = {name: found[name].to_numpy(dtype=np.float64) for name in found.columns}
        setattr(kept, SUSPECTS, {"index": found.index.tolist(), "columns": columns})
    content = io.dumps(kept)
    if foreign := _foreign(io.get_untrusted_types(data=content)):
        raise InputError(
            f"the model holds {listing(foreign)}, which no file is read back with: replace these parameters"
        )
    write_atomic(path, content)
    return path


def load(path: str | Path) -> SVMSelector:
    """Read what `save` wrote; anything else is refused."""
    import pandas as pd
    from skops import io

    path = Path(path)
    if path.is_dir() and (path / "model.skops").is_file():
        path = path / "model.skops"
    if not path.is_file():
        raise InputError(f"there is no model {str(path)!r}")
    if not zipfile.is_zipfile(path):
        with path.open("rb") as handle:
            start = handle.read(2)
        if start in (b"", b"PK"):
            raise InputError(f"{path.name!r} is {'cut off' if start else 'empty'}: copy it again")
        raise InputError(
            f"{path.name!r} is not a model of marginsieve (it is no archive): a pickle, for one, is never loaded, "
            "since it can run any code"
        )
    try:
        types = io.get_untrusted_types(file=path)
    except Exception as error:
        raise InputError(f"{path.name!r} is damaged or no model of marginsieve: {_told(error)}") from error
    if foreign := _foreign(types):
        raise InputError(f"{path.name!r} holds {listing(foreign)}, which is none of our types: it is not loaded")
    try:
        model: Any = io.load(path, trusted=types)
        check_is_fitted(model)
        clone(model)
    except Exception as error:
        raise InputError(f"{path.name!r} is damaged: {_told(error)}") from error
    if not isinstance(model, SVMSelector):
        raise InputError(f"{path.name!r} holds a {type(model).__name__}, not a fitted selector")
    found = model.__dict__.pop(SUSPECTS, None)
    if found is not None:
        model.suspects_ = pd.DataFrame(found["columns"], index=found["index"])
    return model


def _foreign(types: list[str]) -> list[str]:
    return [name for name in types if name not in _ours() and name not in OTHERS]


def _told(error: Exception) -> str:
    """An error's first line."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]
