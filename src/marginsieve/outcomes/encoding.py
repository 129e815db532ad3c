"""The target as it is given: labels, weights and groups as arrays, with an error that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from ..contracts import Array, IntArray
from ..data.table import is_missing
from ..errors import InputError, reading

MOST_WEIGHT = 1e12


def read_labels(X: Any, y: Any) -> tuple[Any, IntArray]:
    """The classes, sorted, and the code of each row of X; missing, infinite and continuous labels are refused."""
    if isinstance(y, np.ma.MaskedArray):
        raise InputError("y is a masked array and its mask would be ignored: drop the masked rows")
    with reading("y"):
        y = column_or_1d(_plain_labels(y), warn=True)
        check_consistent_length(X, y)
    missing = int(sum(map(is_missing, y.tolist())))
    if missing:
        raise InputError(f"Input y contains NaN: {missing} of {len(y)} labels are missing; drop these rows")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError(f"Input y contains infinity: {int(np.isinf(y).sum())} of {len(y)} labels; drop these rows")
    if y.dtype.kind in "MmcV":
        raise InputError(f"y holds {y.dtype}: labels are texts, whole numbers or booleans; make classes of it first")
    distinct = len(np.unique(y)) if y.dtype.kind in "fiu" else 0
    with reading("y"):
        continuous = type_of_target(y).startswith("continuous")
    if distinct > max(10, len(y) / 2) or continuous:
        raise InputError(
            f"Unknown label type: continuous. The target looks continuous ({distinct} distinct values in "
            f"{len(y)} rows); make classes of it first, for example above and below its median"
        )
    with reading("y"):
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.intp)


def read_groups(groups: Any, rows: Any) -> IntArray | None:
    """Check the rows' groups.

    Parameters
    ----------
    groups : array-like of shape (m,) or None
        Group of each row.
    rows : sequence of length m
        The rows; only their number is used.

    Returns
    -------
    array of int of shape (m,) or None
        The group of each row as a code; None where there are no groups.

    Examples
    --------
    >>> from marginsieve.outcomes import read_groups
    >>> read_groups(["b", "a", "b"], range(3))
    array([1, 0, 1])
    """
    if groups is None:
        return None
    with reading("groups"):
        groups = column_or_1d(_plain_labels(groups))
        check_consistent_length(rows, groups)
        if missing := int(sum(map(is_missing, groups.tolist()))):
            raise InputError(f"{missing} of {len(rows)} rows have no group: give each a group, or drop these rows")
        return np.asarray(np.unique(groups, return_inverse=True)[1], dtype=np.intp)


def read_weight(sample_weight: Any, m: int) -> Array:
    """Check the samples' weights.

    Parameters
    ----------
    sample_weight : array-like of shape (m,), float or None
        The weights, none below 0; None is 1 for each.
    m : int
        Number of samples.

    Returns
    -------
    array of shape (m,)
        The weights.

    Examples
    --------
    >>> from marginsieve.outcomes import read_weight
    >>> read_weight(None, 3)
    array([1., 1., 1.])
    """
    if sample_weight is None:
        return np.ones(m)
    with reading("sample_weight"):
        weight = _check_sample_weight(sample_weight, np.empty((m, 1)), dtype=np.float64, ensure_non_negative=True)
    weight = np.asarray(weight, dtype=np.float64)
    counted = weight[weight > 0]
    if len(counted) and not 1 / MOST_WEIGHT <= counted.min() <= counted.max() <= MOST_WEIGHT:
        raise InputError(
            f"sample_weight is between {counted.min():g} and {counted.max():g}; weights are 0 or between "
            f"{1 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}"
        )
    return weight


def _plain_labels(y: Any) -> Any:
    """Labels of a pandas, polars or arrow column as plain values, so that no nullable type leaks into classes_."""
    if isinstance(y, (np.ndarray, list, tuple)) or getattr(y, "ndim", 1) != 1:
        return y
    if isinstance(getattr(y, "dtype", None), np.dtype):
        return np.asarray(y)
    values = y.to_list() if hasattr(y, "to_list") else y.to_pylist() if hasattr(y, "to_pylist") else None
    if values is None:
        return y
    return np.array(values, dtype=object if any(map(is_missing, values)) else None)
