"""Damaged and forged model files: each is refused in a sentence, or is a model that gives finite numbers."""

from __future__ import annotations

import copy
import io
import json
import sys
import tempfile
import warnings
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from marginsieve import load, predict, recipes
from marginsieve.errors import InputError
from marginsieve.estimators.persistence import DIGEST, TEXT, _digest, to_bytes

from . import processes
from .inputs import labels, mixed, numbers

LIMIT = 10.0
ODD = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    -1e308,
    "",
    "x",
    [],
    {},
    {"$float": "nan"},
    {"$float": "inf"},
    {"$array": 0, "dtype": "<f8"},
]


@cache
def models() -> list[tuple[bytes, Any]]:
    """Content of model files, and a table to predict."""
    X, y = numbers(), labels()
    thin = sparse.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))
    made = [
        (recipes.fisher(n_features_to_select=3, random_state=0, probability=True), X),
        (recipes.svm_rfe(n_features_to_select=3, kernel="gaussian", random_state=0), X),
        (recipes.clinical_rfe(n_features_to_select=3, random_state=0), mixed()),
        (recipes.mkl_rfe(n_features_to_select=3, random_state=0), mixed()),
        (recipes.svm_rfe(n_features_to_select=3, random_state=0), thin),
        (recipes.svm_l1(points=5, random_state=0), X),
        (recipes.svdd_rfe(n_features_to_select=3, random_state=0), X),
        (recipes.ramp_fs(solver="fast", budget=2, shakes=0, resamples=2, random_state=0), X),
        (recipes.two_views(n_features_to_select=3, random_state=0), mixed()),
        (recipes.symon(d=3, improvisations=5, memory=4, random_state=0), X),
    ]
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for selector, table in made:
            out.append((to_bytes(selector.fit(table, y)), table))
    return out


def judge(seed: int) -> tuple[str, str]:
    """What came of the file with this number."""
    rng = np.random.default_rng(seed)
    content, table = models()[seed % len(models())]
    forged, how = mutated(content, rng)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.marginsieve"
        path.write_bytes(forged)
        try:
            selector = load(path)
            value = selector.decision_function(table)
            called = selector.predict(table)
            numbers_of = [value]
            if selector.probability:
                numbers_of.append(selector.predict_proba(table))
            for name in ("coef_", "objective_"):
                with suppress(AttributeError):  # which says why there is none
                    numbers_of.append(np.atleast_1d(getattr(selector, name)))
            if not hasattr(table, "tocsr"):
                new = pd.DataFrame(table).set_axis(selector.columns_.names, axis=1)
                numbers_of.append(predict(selector, new).table["score"].to_numpy())
        except InputError as error:
            text = str(error)
            return ("clear", how) if text and "\n" not in text else ("raw", f"{how}: {text!r}")
        except Exception as error:
            return "raw", f"{how}: {type(error).__name__}: {error}"
    if not all(np.isfinite(one).all() for one in numbers_of[:2]) or len(called) != len(value):
        return "nonsense", f"{how}: decision values or probabilities are not finite"
    return "good", how


def mutated(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """The file after an accident (its digest is wrong) or a forgery (its digest is right), and which."""
    how = str(rng.choice(["flip", "cut", "members", "json", "array", "json", "array", "json"]))
    if how == "flip":
        damaged = bytearray(content)
        for place in rng.integers(len(damaged), size=int(rng.integers(1, 20))):
            damaged[place] = int(rng.integers(256))
        return bytes(damaged), how
    if how == "cut":
        return content[: int(rng.integers(len(content)))], how
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist() if name != DIGEST]
    if how == "members":
        members = _other_members(members, rng)
    elif how == "array":
        place = int(rng.integers(1, len(members)))
        members[place] = (members[place][0], _other_array(members[place][1], rng))
    else:
        text = json.loads(members[0][1])
        for _ in range(int(rng.integers(1, 4))):
            _change(text, rng)
        members[0] = (TEXT, json.dumps(text).encode())
    return packed(members, compress=bool(rng.random() < 0.05)), how


def packed(members: list[tuple[str, bytes]], compress: bool = False) -> bytes:
    """An archive of these members with their right digest."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # members of one name
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
            for name, data in members:
                archive.writestr(name, data)
            archive.writestr(DIGEST, _digest(members))
    return out.getvalue()


def _other_members(members: list[tuple[str, bytes]], rng: np.random.Generator) -> list[tuple[str, bytes]]:
    a, b = rng.integers(1, len(members), size=2)
    names = [name for name, _ in members]
    way = int(rng.integers(5))
    if way == 0:  # two arrays change places
        swapped = [data for _, data in members]
        swapped[a], swapped[b] = swapped[b], swapped[a]
        return list(zip(names, swapped, strict=True))
    if way == 1:  # one is not there
        return [one for k, one in enumerate(members) if k != a]
    if way == 2:  # one is there twice
        return [*members, members[a]]
    if way == 3:  # something else is there
        return [*members, ("../../escaped.txt", b"x"), ("__init__.py", b"import os")]
    return [(name, b"" if k == a else data) for k, (name, data) in enumerate(members)]


def _other_array(data: bytes, rng: np.random.Generator) -> bytes:
    array = np.load(io.BytesIO(data))
    way = int(rng.integers(9))
    if way == 0:
        array = array[: len(array) // 2]
    elif way == 1:
        array = np.concatenate([array, array])
    elif way == 2:
        array = array.astype(rng.choice(["<f4", "<i4", "<c16", "|S3", ">f8", "<i8", "<f8", "|b1"]))
    elif way == 3:
        array = array.reshape(-1)[:0]
    elif way == 4 and array.size:
        array = array.astype(float) if rng.random() < 0.5 else array.copy()
        array.reshape(-1)[int(rng.integers(array.size))] = (
            rng.choice([-1, 0, 2**31 - 1])
            if array.dtype.kind in "iub"
            else rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
        )
    elif way == 5:
        array = array.astype(np.int64) * 10**9 if array.dtype.kind in "iub" else array * 1e200
    elif way == 6:
        array = array[..., None]
    elif way == 7:
        array = -array if array.dtype.kind in "if" else array
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    written = out.getvalue()
    if way == 8:  # the header lies about the size
        written = written.replace(b"(", b"(9", 1)
    return written


def _change(value: Any, rng: np.random.Generator) -> None:
    """Put something odd at a random place of the text."""
    places: list[tuple[Any, Any]] = []

    def walk(one: Any) -> None:
        for key in list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ():
            places.append((one, key))
            walk(one[key])

    walk(value)
    where, key = places[int(rng.integers(len(places)))]
    other, its = places[int(rng.integers(len(places)))]
    way = int(rng.integers(5))
    if way == 0:
        where[key] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    elif way == 1:
        where[key] = copy.deepcopy(other[its])
    elif way == 2 and isinstance(where, dict):
        del where[key]
    elif way == 3 and isinstance(where, dict):
        where[str(rng.choice(["decision", "__class__", "solve", "$type", "extra", "bind"]))] = copy.deepcopy(other[its])
    elif isinstance(where, list):
        where.append(copy.deepcopy(other[its]))


def main() -> int:
    """So many files (the first argument, or 5,000)."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    tally: dict[str, int] = {}
    for item, (kind, said) in processes.run(judge, [(seed,) for seed in range(count)], 2, lambda _: LIMIT):
        tally[kind] = tally.get(kind, 0) + 1
        if kind not in ("good", "clear"):
            sys.stdout.write(f"{kind} {item[0]} {said}\n")
    sys.stdout.write(f"{tally}\n")
    return int(set(tally) - {"good", "clear"} != set())


if __name__ == "__main__":
    sys.exit(main())
