"""The target as it is given: labels of classes become codes, with an error that says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from ..contracts import Array, IntArray
from ..data.table import is_missing
from ..errors import InputError, listing, reading

MOST_WEIGHT = 1e12


@dataclass(frozen=True)
class Target:
    """Class labels as codes, with the weights and groups of the rows.

    Parameters
    ----------
    classes : array of shape (k,)
        The class labels, sorted.
    codes : array of int of shape (m,)
        Code of each row's class: its position in `classes`.
    weight : array of shape (m,)
        Weight of each row.
    groups : array of int of shape (m,) or None, default=None
        Group of each row, as a code.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import Target
    >>> target = Target(np.array(["case", "control"]), np.array([0, 1, 1]), np.ones(3))
    >>> target.take(np.array([0, 2])).codes
    array([0, 1])
    """

    classes: Any
    codes: IntArray
    weight: Array
    groups: IntArray | None = None

    def take(self, rows: IntArray) -> Target:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, codes=self.codes[rows], weight=self.weight[rows], groups=groups)


def read_target(X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Target:
    """Encode the labels of the rows of X; missing, infinite and continuous labels are refused.

    Parameters
    ----------
    X : table of shape (m, n)
        The rows; only their number is used.
    y : array-like of shape (m,)
        The classes.
    sample_weight : array-like of shape (m,) or None, default=None
        Weight of each row; None is 1.
    groups : array-like of shape (m,) or None, default=None
        Group of each row.

    Returns
    -------
    Target
        Classes, codes, weights and groups.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import read_target
    >>> target = read_target(np.zeros((3, 2)), ["case", "control", "case"])
    >>> target.classes.tolist(), target.codes.tolist()
    (['case', 'control'], [0, 1, 0])
    """
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
    weight = read_weight(sample_weight, len(y))
    if groups is not None:
        with reading("groups"):
            groups = column_or_1d(_plain_labels(groups))
            check_consistent_length(y, groups)
            if missing := int(sum(map(is_missing, groups.tolist()))):
                raise InputError(f"{missing} of {len(y)} rows have no group: give each a group, or drop these rows")
            groups = np.unique(groups, return_inverse=True)[1]
    return Target(classes, codes.astype(np.intp), weight, groups)


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


def check_classes(target: Target) -> None:
    """Refuse a target in which fewer than two classes, or not all classes, have rows.

    Parameters
    ----------
    target : Target
        Target of the rows that count.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import check_classes, read_target
    >>> check_classes(read_target(np.zeros((2, 1)), ["a", "b"]))
    >>> check_classes(read_target(np.zeros((2, 1)), ["a", "a"]))
    Traceback (most recent call last):
        ...
    marginsieve.errors.InputError: y holds one class only ('a'): a classifier needs at least two classes
    """
    classes, counts = target.classes, np.bincount(target.codes, minlength=len(target.classes))
    if (counts > 0).sum() < 2:
        raise InputError(
            f"y holds one class only ({listing(classes[counts > 0].tolist())}): a classifier needs at least two classes"
        )
    if (counts == 0).any():
        raise InputError(f"every sample of class {listing(classes[counts == 0].tolist())} has sample_weight 0")


def positive_code(target: Target, positive: Any = None) -> int:
    """The code of the class of interest.

    Parameters
    ----------
    target : Target
        Classes, codes and weights.
    positive : label or None, default=None
        Label of the class; None is the rarer of two classes (the second where they are equally
        frequent), and the second of more than two.

    Returns
    -------
    int
        Its position in `target.classes`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import positive_code, read_target
    >>> target = read_target(np.zeros((3, 1)), ["case", "control", "control"])
    >>> positive_code(target), positive_code(target, "control")
    (0, 1)
    """
    if positive is None:
        counts = np.bincount(target.codes, weights=target.weight, minlength=len(target.classes))
        return 0 if len(counts) == 2 and counts[0] < counts[1] else 1
    labels: list[Any] = target.classes.tolist()
    try:
        where = np.flatnonzero(target.classes == positive)
    except OverflowError:  # a number beyond those of numpy is none of the classes
        where = np.empty(0, dtype=np.intp)
    if not len(where):
        raise InputError(f"positive is {positive!r}; the classes are {listing(labels)}")
    return int(where[0])
