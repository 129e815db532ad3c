"""The table that an estimator is given: checked once, with an error that names what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from ..batches.arrays import on_host, to_library_of
from ..contracts import Matrix, Outcome, is_sparse
from ..data.stored import as_memory, as_stored, is_anndata
from ..data.table import Schema, Table, as_frame, as_table, refuse_bad_cells, sound_sparse
from ..errors import InputError, reading
from ..fitting.rows import Rows
from ..fitting.settings import refuse_columns
from ..outcomes import Classes


def encode(
    estimator: Any,
    X: Any,
    y: Any,
    kinds: Mapping[str, str] | None,
    sample_weight: Any = None,
    groups: Any = None,
    outcome: Outcome | None = None,
) -> Rows:
    """The table and its target as numbers, classes by default; sets n_features_in_ and feature_names_in_."""
    X, y, sample_weight, groups = map(on_host, (X, y, sample_weight, groups))
    with reading("the table"):
        schema, table = read_training(estimator, X, y, kinds)
    target = (outcome or Classes()).read(X, y, sample_weight, groups)
    index = getattr(X, "index", None)
    return Rows(schema, table, target, None if callable(index) else index)  # a list has a method of that name


def read_training(estimator: Any, X: Any, y: Any, kinds: Mapping[str, str] | None) -> tuple[Schema, Table]:
    """The schema and the table of codes; sets n_features_in_ and feature_names_in_."""
    if y is None:
        raise InputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    X, names = _check_table(estimator, on_host(X), reset=True)
    refuse_columns(X.shape[1])
    schema = Schema.from_table(X, kinds)
    schema = schema if names is None else replace(schema, names=tuple(names))
    table = schema.table(X)
    refuse_cells(table.Z, schema, takes_gaps(estimator))
    return schema, table


def read_new(estimator: Any, X: Any) -> Matrix:
    """Codes of further rows, checked against the columns of the training table."""
    with reading("the table"):
        X, _ = _check_table(estimator, on_host(X), reset=False)
        Z = estimator.columns_.encode(X)
    refuse_cells(Z, estimator.columns_, takes_gaps(estimator))
    return Z


def as_given(values: Any, X: Any) -> Any:
    """What is returned for a table X: with scikit-learn's array API dispatch an array of its library and device."""
    return to_library_of(values, X) if get_config()["array_api_dispatch"] else values


def takes_gaps(estimator: Any) -> bool:
    """Whether cells may be missing."""
    return bool(get_tags(estimator).input_tags.allow_nan)


def refuse_cells(Z: Matrix, schema: Schema, missing: bool) -> None:
    """Refuse cells that are no numbers, but for those of categories."""
    numeric = [j for j, kind in enumerate(schema.kind) if kind != "nominal"]
    if len(numeric) == len(schema.kind):
        refuse_bad_cells(Z, schema.names, missing)
    elif numeric:
        refuse_bad_cells(Z[:, numeric], [schema.names[j] for j in numeric], missing)


def _check_table(estimator: Any, X: Any, reset: bool) -> tuple[Any, list[str] | None]:
    """The table, and the names of its columns where it cannot tell them itself."""
    if (kept := as_stored(X)) is not None:
        X, names = kept
        _set_columns(estimator, X.shape[1], names, reset)
        return X, names
    if is_anndata(X):
        X = as_memory(X)
        if is_sparse(X.X):
            names = [str(name) for name in X.var_names]
            _set_columns(estimator, X.shape[1], names, reset)
            return _sound(X.X), names
        X = X.to_df()
    return _check_in_memory(estimator, as_table(X), reset), None


def _set_columns(estimator: Any, n: int, names: list[str] | None, reset: bool) -> None:
    """Remember the columns of the training table, or compare with them, as scikit-learn's `validate_data` does."""
    if reset:
        estimator.n_features_in_ = n
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    if n != estimator.n_features_in_:
        raise InputError(
            f"X has {n} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features as "
            "input"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and list(known) != names:
        raise InputError("The feature names should match those that were passed during fit: columns have other names")


def _check_in_memory(estimator: Any, X: Any, reset: bool) -> Any:
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            "X is a masked array and its mask would be ignored: pass X.filled(np.nan) and impute, or a DataFrame"
        )
    frame = as_frame(X)
    if frame is None:
        X = _sound(X)
        return validate_data(
            estimator, X, reset=reset, accept_sparse=("csr", "csc"), dtype=np.float64, ensure_all_finite=False
        )
    if 0 in frame.shape:
        raise InputError(
            f"the table is empty: Found array with {frame.shape[0]} sample(s) and {frame.shape[1]} feature(s) "
            f"(shape={frame.shape}) while a minimum of 1 is required."
        )
    named = X
    if frame.implementation.is_pyarrow():  # scikit-learn does not read names off arrow tables
        import pandas as pd

        named = pd.DataFrame(columns=frame.columns)
    try:
        validate_data(estimator, named, reset=reset, skip_check_array=True)
    except ValueError as error:
        known = {*map(str, getattr(estimator, "feature_names_in_", ()))}
        if reset or not known or not known <= {*map(str, frame.columns)}:
            raise
        raise ValueError(
            f"{str(error).strip()} The table has all of them: X[model.feature_names_in_] puts them in order, and "
            "marginsieve.predict(model, X) matches columns by name."
        ) from error
    return X


def _sound(X: Any) -> Any:
    """The table; refuses arrays of dates, and sparse tables whose indices lead outside."""
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        raise InputError(
            f"the table holds dates or durations ({X.dtype}): make numbers of them, such as days since a date"
        )
    return sound_sparse(X) if is_sparse(X) else X
