"""Hostile inputs: tables, labels, weights, groups and settings that break programs, each with a name.

A case is a function that makes a fresh `Case`; what it holds is given to `fit` as it is.
"""

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

CASES: dict[str, Callable[[], "Case"]] = {}


@dataclass
class Case:
    """What `fit` is given, the settings of the recipe, and the same table said in another way (for equal answers)."""

    X: Any
    y: Any
    weight: Any = None
    groups: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    same_as: Any = None  # a table that must give the same selection


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def cases(prefix: str, build: Callable[[Any], Case], values: dict[str, Any]) -> None:
    """One case for each value."""
    for name, value in values.items():
        CASES[f"{prefix}_{name}"] = lambda value=value: build(value)


def numbers(m: int = 33, n: int = 6, seed: int = 0) -> np.ndarray:
    """A table whose first two columns carry a weak signal of `labels`: it is not separable."""
    X = np.random.default_rng([seed, m, n]).normal(size=(m, n))
    X[:, : min(2, n)] += 0.9 * labels(m)[:, None]
    return X


def labels(m: int = 33) -> np.ndarray:
    return (np.arange(m) % 3 == 0).astype(int)


def mixed(m: int = 33) -> pd.DataFrame:
    frame = pd.DataFrame(numbers(m, 3), columns=["a", "b", "c"])
    frame["sex"] = np.where(np.arange(m) % 2, "f", "m")
    frame["stage"] = pd.Categorical(np.array(["I", "II", "III"])[np.arange(m) % 3])
    return frame


def with_cell(value: Any, dtype: Any = float) -> np.ndarray:
    X = numbers().astype(dtype)
    X[3, 2] = value
    return X


def with_column(values: Any) -> pd.DataFrame:
    frame = pd.DataFrame(numbers(), columns=list("abcdef"))
    frame["x"] = values
    return frame


# -- shapes --------------------------------------------------------------------------------------------------------

cases(
    "shape",
    lambda X: Case(X, labels(len(X)) if isinstance(X, list) or np.ndim(X) else labels()),
    {
        "no_rows": np.empty((0, 5)),
        "no_columns": np.empty((33, 0)),
        "one_row": numbers(1),
        "two_rows": numbers(2),
        "three_rows": numbers(3),
        "four_rows": numbers(4),
        "six_rows": numbers(6),
        "one_column": numbers(33, 1),
        "two_columns": numbers(33, 2),
        "one_dimension": np.arange(33.0),
        "three_dimensions": np.zeros((33, 2, 2)),
        "scalar": np.float64(3.0),
        "none": None,
        "text": "a table",
        "ragged": [[1.0, 2.0], [3.0]] * 10,
        "generator": (row for row in numbers()),
        "lists": numbers().tolist(),
        "dictionary": {"a": list(range(33))},
        "wide": numbers(30, 5000),
        "tall": numbers(3000, 5),
        "wide_and_few": numbers(8, 400),
        "all_zero": np.zeros((33, 5)),
        "all_equal": np.full((33, 5), 3.7),
        "one_constant": np.c_[numbers(), np.full(33, 2.0)],
        "twins": np.repeat(numbers(33, 2), 3, axis=1),
        "rows_all_equal": np.repeat(numbers(1), 33, axis=0),
        "rows_repeated": np.repeat(numbers(11), 3, axis=0),
        "identity": np.eye(33),
        "label_is_the_only_column": labels()[:, None].astype(float),
        "label_is_a_column": np.c_[numbers(), labels()],
        "label_negated": np.c_[numbers(), -labels()],
    },
)


# -- cells ---------------------------------------------------------------------------------------------------------

cases(
    "cell",
    lambda value: Case(with_cell(value), labels()),
    {
        "nan": np.nan,
        "inf": np.inf,
        "minus_inf": -np.inf,
        "huge": 1e308,
        "huge_square": 1e160,
        "denormal": 5e-324,
        "negative_zero": -0.0,
    },
)
cases(
    "object_cell",
    lambda value: Case(with_cell(value, object), labels()),
    {
        "none": None,
        "text": "high",
        "number_text": "1.5",
        "empty_text": "",
        "list": [1, 2],
        "dictionary": {"a": 1},
        "array": np.arange(3),
        "decimal": decimal.Decimal("1.5"),
        "big_integer": 10**400,
        "complex": 1 + 2j,
        "date": dt.date(2020, 1, 1),
        "function": len,
        "bytes": b"\xff\x00",
        "pandas_na": pd.NA,
        "boolean": True,
    },
)
cases(
    "column",
    lambda values: Case(with_column(values), labels()),
    {
        "all_missing": np.nan,
        "half_missing": np.where(np.arange(33) % 2, np.nan, 1.0),
        "one_value_left": np.where(np.arange(33) == 4, 1.0, np.nan),
        "none_objects": [None] * 33,
        "lists": [[1, 2]] * 33,
        "dictionaries": [{"a": 1}] * 33,
        "dates": pd.date_range("2020-01-01", periods=33),
        "dates_with_zone": pd.date_range("2020-01-01", periods=33, tz="Europe/Paris"),
        "durations": pd.to_timedelta(np.arange(33), unit="h"),
        "periods": pd.period_range("2020-01", periods=33, freq="M"),
        "intervals": pd.interval_range(0, 33),
        "complex": np.arange(33) * 1j,
        "numbers_as_text": [str(v) for v in range(33)],
        "numbers_too_large_as_text": ["1e400", *(str(v) for v in range(32))],
        "numbers_and_text": [0.5, "x"] * 16 + [1],
        "all_different_text": [f"id{v}" for v in range(33)],
        "one_level": ["same"] * 33,
        "two_levels": ["a", "b"] * 16 + ["a"],
        "missing_levels": ["a", None, "b"] * 11,
        "empty_levels": ["a", "", " "] * 11,
        "unused_levels": pd.Categorical(["a", "b", "c"] * 11, categories=list("abcdefgh")),
        "ordered_levels": pd.Categorical(["lo", "hi", "mid"] * 11, categories=["lo", "mid", "hi"], ordered=True),
        "number_levels": pd.Categorical([1, 2, 3] * 11),
        "nan_levels": pd.Categorical(["a", None, "b"] * 11),
        "booleans": np.arange(33) % 2 == 0,
        "nullable_booleans": pd.array([True, None, False] * 11, dtype="boolean"),
        "nullable_integers": pd.array([1, None, 3] * 11, dtype="Int64"),
        "arrow_text": pd.array(["a", None, "b"] * 11, dtype="string[pyarrow]"),
        "sparse_pandas": pd.arrays.SparseArray([0.0, 1.0, 0.0] * 11),
        "huge_integers": np.full(33, 2**63, dtype=np.uint64) + np.arange(33, dtype=np.uint64),
        "long_text": ["x" * 10_000, "y"] * 16 + ["y"],
        "formulas": ["=1+1", "@cmd", "-2+3"] * 11,
        "label_as_text": np.where(labels() > 0, "yes", "no"),
        "far_away": np.arange(33.0) + 1e15,
        "steps_below_precision": 1e16 + np.arange(33.0),
    },
)
cases(
    "scaled",
    lambda factor: Case(numbers() * np.array([1, factor, 1, 1, 1, 1]), labels(), same_as=numbers()),
    {"1e7": 1e7, "1e-7": 1e-7, "1e100": 1e100, "1e-100": 1e-100, "1e-170": 1e-170, "1e170": 1e170, "1e-300": 1e-300},
)
cases(
    "table_scaled",
    lambda factor: Case(numbers() * factor, labels(), same_as=numbers()),
    {"1e100": 1e100, "1e-100": 1e-100, "1e200": 1e200, "1e-200": 1e-200, "1e-310": 1e-310},
)
cases(
    "offset",
    lambda shift: Case(numbers() + shift * np.array([0, 1, 0, 0, 0, 0]), labels(), same_as=numbers()),
    {"1e3": 1e3, "1e7": 1e7, "minus_1e7": -1e7},
)


@case
def scales_from_1e_150_to_1e150() -> Case:
    return Case(numbers(33, 7) * 10.0 ** np.arange(-150, 151, 50), labels())


# -- types of tables -----------------------------------------------------------------------------------------------

cases(
    "dtype",
    lambda dtype: Case((10 * numbers()).astype(dtype), labels()),
    {
        name: name
        for name in ("int8", "int64", "float16", "float32", "longdouble", "complex128", ">f8", "object", "str", "bool")
    },
)
cases(
    "dtype",
    lambda dtype: Case(np.abs(numbers() * 100).astype("int64").astype(dtype), labels()),
    {name: name for name in ("uint8", "uint64", "datetime64[s]", "timedelta64[s]", "S3")},
)


def _strided() -> Any:
    big = np.zeros((66, 12))
    big[::2, ::2] = numbers()
    return big[::2, ::2]


def _readonly() -> Any:
    X = numbers()
    X.flags.writeable = False
    return X


cases(
    "table",
    lambda build: Case(build(), labels(), same_as=numbers()),
    {
        "fortran": lambda: np.asfortranarray(numbers()),
        "strided": _strided,
        "read_only": _readonly,
        "pandas": lambda: pd.DataFrame(numbers()),
        "polars": lambda: pl.DataFrame(numbers(), schema=list("abcdef")),
        "arrow": lambda: pa.table(pd.DataFrame(numbers(), columns=list("abcdef"))),
        "numbers_as_names": lambda: pd.DataFrame(numbers(), columns=[0.5, 1, 2, 3, 4, 5]),
        "odd_index": lambda: pd.DataFrame(numbers(), index=["same"] * 33),
        "empty_names": lambda: pd.DataFrame(numbers(), columns=["", " ", "\n", "a", "\x00", "é" * 300]),
        "csr": lambda: sparse.csr_array(numbers()),
        "csc": lambda: sparse.csc_array(numbers()),
        "coo": lambda: sparse.coo_array(numbers()),
        "bsr": lambda: sparse.bsr_array(numbers()),
        "dok": lambda: sparse.dok_array(numbers()),
        "csr_matrix": lambda: sparse.csr_matrix(numbers()),
        "csr_doubled": lambda: _doubled(),
        "csr_unsorted": lambda: _unsorted(),
        "csr_long_indices": lambda: _long_indices(),
    },
)


def _doubled() -> Any:
    """Every cell as two halves at the same place."""
    X = sparse.csr_array(numbers())
    return sparse.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


def _unsorted() -> Any:
    X = sparse.csr_array(numbers())
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    return sparse.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def _long_indices() -> Any:
    X = sparse.csr_array(numbers())
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _wild(where: str, value: int) -> Any:
    """A CSR or CSC matrix with one index out of range, which scipy does not look at."""
    X = sparse.csc_array(numbers()) if where.startswith("csc") else sparse.csr_array(numbers())
    getattr(X, where.split("_")[1])[5] = value
    return X


def _wild_coo(axis: int, value: int) -> Any:
    X = sparse.coo_array(numbers())
    X.coords[axis][5] = value
    return X


def _wild_lil(rows: list[int], cells: list[float]) -> Any:
    X = sparse.lil_array(numbers())
    X.rows[3], X.data[3] = rows, cells
    return X


def _wild_dok() -> Any:
    X = sparse.dok_array(numbers())
    X._dict[(3, 10**7)] = 1.0
    return X


def _wild_dia() -> Any:
    X = sparse.dia_array(numbers())
    X.offsets[0] = 10**8
    return X


def _booleans() -> Any:
    return numbers() > 0


cases(
    "sparse",
    lambda build: Case(build(), labels()),
    {
        "empty": lambda: sparse.csr_array((33, 5)),
        "no_columns": lambda: sparse.csr_array((33, 0)),
        "no_rows": lambda: sparse.csr_array((0, 5)),
        "nan": lambda: sparse.csr_array(with_cell(np.nan)),
        "inf": lambda: sparse.csr_array(with_cell(np.inf)),
        "boolean": lambda: sparse.csr_array(_booleans()),
        "integer": lambda: sparse.csr_array((5 * numbers()).astype(int)),
        "complex": lambda: sparse.csr_array(numbers() + 1j),
        "wild_csr_indices": lambda: _wild("csr_indices", 10**8),
        "wild_csr_indptr": lambda: _wild("csr_indptr", 10**8),
        "negative_csr_indices": lambda: _wild("csr_indices", -7),
        "wild_csc_indices": lambda: _wild("csc_indices", 10**8),
        "wild_csc_indptr": lambda: _wild("csc_indptr", 10**6),
        "negative_csc_indptr": lambda: _wild("csc_indptr", -3),
        "wild_coo_column": lambda: _wild_coo(1, 10**8),
        "wild_coo_row": lambda: _wild_coo(0, 10**8),
        "negative_coo_column": lambda: _wild_coo(1, -1),
        "wild_lil": lambda: _wild_lil([10**8], [1.0]),
        "lil_without_cells": lambda: _wild_lil([0, 1, 2], [1.0]),
        "lil_without_places": lambda: _wild_lil([0], [1.0] * 3),
        "wild_dok": _wild_dok,
        "wild_dia": _wild_dia,
        "too_many_columns": lambda: sparse.csr_array((33, 10**12), dtype=float),
    },
)
cases(
    "table",
    lambda build: Case(build(), labels()),
    {
        "matrix": lambda: np.asmatrix(numbers()),
        "masked": lambda: np.ma.masked_array(numbers(), mask=numbers() > 1.5),
        "structured": lambda: np.zeros(33, dtype=[("a", "f8"), ("b", "i4")]),
        "doubled_names": lambda: pd.DataFrame(numbers(), columns=list("abcabc")),
        "names_of_two_levels": lambda: pd.DataFrame(
            numbers(), columns=pd.MultiIndex.from_product([["a", "b"], [*"xyz"]])
        ),
        "polars_nulls": lambda: pl.DataFrame({"a": [1.0, None, 3.0] * 11, "b": list(range(33))}),
        "polars_lists": lambda: pl.DataFrame({"a": [[1.0]] * 33, "b": list(range(33))}),
        "arrow_nested": lambda: pa.table({"a": [{"x": 1}] * 33, "b": list(range(33))}),
        "lazy": lambda: pl.DataFrame(numbers(), schema=list("abcdef")).lazy(),
        "mixed": mixed,
        "mixed_nan": lambda: mixed().mask(np.random.default_rng(0).random((33, 5)) < 0.2),
        "series": lambda: pd.Series(np.arange(33.0)),
        "booleans": _booleans,
        "booleans_as_floats": lambda: _booleans().astype(float),
    },
)


cases(
    "ties",
    lambda build: Case(sparse.csr_array(build()), labels(), same_as=build()),
    {
        "booleans": lambda: _booleans().astype(float),
        "integers": lambda: np.round(numbers()),
        "twins": lambda: np.repeat(np.round(numbers(33, 3)), 2, axis=1),
        "few_cells": lambda: np.where(np.abs(numbers()) > 1.2, 1.0, 0.0),
        "counts": lambda: np.floor(np.abs(2 * numbers(33, 12))),
    },
)


# -- labels --------------------------------------------------------------------------------------------------------

cases(
    "labels",
    lambda y: Case(numbers(), y),
    {
        "none": None,
        "scalar": 1,
        "short": labels()[:10],
        "long": labels(40),
        "empty": [],
        "one_class": np.zeros(33),
        "three_classes": np.arange(33) % 3,
        "ten_classes": np.arange(33) % 10,
        "all_different": np.arange(33),
        "floats": labels() + 0.5,
        "continuous": np.linspace(0, 1, 33),
        "nan": np.where(np.arange(33) == 2, np.nan, labels()),
        "inf": np.where(np.arange(33) == 2, np.inf, labels()),
        "none_inside": [None, *labels()[1:].tolist()],
        "text": np.where(labels() > 0, "case", "control"),
        "bytes": np.where(labels() > 0, b"case", b"control"),
        "booleans": labels() > 0,
        "number_text": labels().astype(str),
        "text_and_numbers": ["a", 1, 1] * 11,
        "objects": [object()] * 33,
        "lists": [[1]] * 33,
        "column": labels()[:, None],
        "two_columns": np.c_[labels(), labels()],
        "dates": pd.date_range("2020", periods=2).to_numpy()[labels()],
        "complex": labels() * 1j,
        "huge": labels() * 10**18,
        "minus_plus": 2 * labels() - 1,
        "category": pd.Series(pd.Categorical(np.where(labels() > 0, "b", "a"), categories=["a", "b", "unused"])),
        "category_missing": pd.Series(pd.Categorical([None] + ["a", "b"] * 16)),
        "nullable": pd.Series(pd.array([None] + [0, 1] * 16, dtype="Int64")),
        "sparse": sparse.csr_array(labels()[:, None]),
        "one_positive": (np.arange(33) == 5).astype(int),
        "two_positive": (np.arange(33) < 2).astype(int),
        "three_positive": (np.arange(33) < 3).astype(int),
        "one_of_three": np.r_[2, np.arange(32) % 2],
        "empty_text": np.where(labels() > 0, "", "x"),
        "long_text": np.where(labels() > 0, "x" * 5000, "y"),
        "random": np.random.default_rng(5).permutation(labels()),
    },
)


@case
def labels_conflict_on_equal_rows() -> Case:
    return Case(np.repeat(numbers(11), 3, axis=0), labels())


# -- weights and groups --------------------------------------------------------------------------------------------

cases(
    "weight",
    lambda weight: Case(numbers(), labels(), weight=weight),
    {
        "zero": np.zeros(33),
        "one_class_zero": labels().astype(float),
        "one_positive_left": np.where((labels() == 0) | (np.arange(33) == 3), 1.0, 0.0),
        "two_rows_left": (np.arange(33) < 2).astype(float),
        "negative": np.where(np.arange(33) == 1, -1.0, 1.0),
        "nan": np.where(np.arange(33) == 1, np.nan, 1.0),
        "inf": np.where(np.arange(33) == 1, np.inf, 1.0),
        "1e-300": np.full(33, 1e-300),
        "1e300": np.full(33, 1e300),
        "one_1e-300": np.where(np.arange(33) == 1, 1e-300, 1.0),
        "one_1e12": np.where(np.arange(33) == 1, 1e12, 1.0),
        "short": np.ones(5),
        "text": ["heavy"] * 33,
        "scalar": 2.0,
        "two_columns": np.ones((33, 2)),
    },
)
cases(
    "groups",
    lambda groups: Case(numbers(), labels(), groups=groups),
    {
        "one": np.zeros(33),
        "each": np.arange(33),
        "two": np.arange(33) % 2,
        "three": np.arange(33) // 11,
        "the_classes": labels(),
        "nan": np.where(np.arange(33) == 1, np.nan, np.arange(33) // 3),
        "none_inside": [None, *range(32)],
        "short": np.arange(5),
        "text": [f"g{v // 3}" for v in range(33)],
        "two_columns": np.ones((33, 2)),
    },
)


# -- settings ------------------------------------------------------------------------------------------------------


def settings(name: str, values: dict[str, Any]) -> None:
    cases(f"setting_{name}", lambda value: Case(numbers(), labels(), settings={name: value}), values)


odd = {"nan": np.nan, "inf": np.inf, "minus_one": -1, "zero": 0, "text": "x", "list": [1], "none": None}
settings(
    "C", {**odd, "1e-30": 1e-30, "1e30": 1e30, "1e300": 1e300, "1e8": 1e8, "1e12": 1e12, "1e-12": 1e-12, "true": True}
)
settings(
    "n_features_to_select",
    {**odd, "half": 0.5, "1.5": 1.5, "100": 100, "digits": 10**5000, "true": True, "numpy": np.int64(2)},
)
settings("cv", {**odd, "one": 1, "1000": 1000, "2.5": 2.5})
settings("random_state", {**odd, "2**40": 2**40, "1.5": 1.5, "generator": np.random.RandomState(0)})
settings("threshold", {**odd, "word": "best", "pair": (1.0, 5.0), "pair_zero": (0.0, 0.0), "1e300": 1e300})
settings("class_weight", {**odd, "empty": {}, "unknown": {"zz": 2.0}, "negative": {0: -1.0}, "zero": {0: 0.0, 1: 1.0}})
settings("negative_weight", {**odd, "1e-30": 1e-30, "1e30": 1e30})
settings("prefilter", {**odd, "word": ("x", 3), "zero": ("fisher", 0), "all": ("fisher", 100), "one": ("fisher", 1)})
settings("ensemble", {**odd, "one": 1, "1.5": 1.5})
settings("similar", {**odd, "two": 2.0})
settings("standardize", {"text": "yes", "none": None, "false": False, "two": 2})
settings("max_samples", {**odd, "one": 1, "four": 4, "half": 0.5, "1000": 1000})
settings("probability", {"text": "maybe", "true": True, "none": None})
settings("positive", {"unknown": "zz", "one": 1, "nan": np.nan, "list": [1]})
settings("keep", {"unknown": ["nope"], "far": [99], "first": [0], "all": list(range(6)), "text": "x0", "scalar": 3})
settings("n_jobs", {"zero": 0, "far": -99, "text": "x", "half": 0.5})
settings("kinds", {"word": "x", "unknown": {"zz": "nominal"}, "wrong": {"x0": "colour"}, "short": ["nominal"]})
settings("sampler", {**odd, "smote": "smote"})
settings("resamples", {**odd, "half": 0.5})
settings("kernel", {**odd, "gaussian": "gaussian", "clinical": "clinical", "class": dict})
settings("machine", {**odd})
settings("criterion", {**odd, "fisher": "fisher", "margin": "margin"})
settings("search", {**odd, "top_k": "top_k", "backward": "backward"})
