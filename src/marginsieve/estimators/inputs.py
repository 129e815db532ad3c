"""What the estimator is given: checked once, with an error that names what is wrong and what would be accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_random_state,
    column_or_1d,
    validate_data,
)

from ..contracts import Array, IntArray, Matrix
from ..data.table import Columns, Table, as_frame, is_missing, refuse_bad_cells
from ..errors import InputError, listing
from ..fitting.parts import resolve
from ..fitting.training import Part

MOST_ROWS = 10_000


def read_training(estimator: Any, X: Any, y: Any, kinds: Mapping[str, str] | None) -> tuple[Columns, Table]:
    """The columns and the table of codes; sets n_features_in_ and feature_names_in_."""
    if y is None:
        raise InputError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    X = _checked(estimator, X, reset=True)
    columns = Columns.of(X, kinds)
    table = columns.table(X)
    _refuse_cells(table.Z, columns, takes_missing(estimator))
    return columns, table


def takes_missing(estimator: Any) -> bool:
    """Whether cells may be missing: the estimator's kernel decides."""
    return bool(getattr(resolve("kernel", estimator.kernel), "missing", False))


def read_new(estimator: Any, X: Any) -> Matrix:
    """Codes of further rows, checked against the columns of the training table."""
    X = _checked(estimator, X, reset=False)
    Z = estimator.columns_.encode(X)
    _refuse_cells(Z, estimator.columns_, takes_missing(estimator))
    return Z


def _refuse_cells(Z: Matrix, columns: Columns, missing: bool) -> None:
    """Refuse cells that are no numbers, but for those of categories."""
    numeric = [j for j, kind in enumerate(columns.kind) if kind != "nominal"]
    if len(numeric) == len(columns.kind):
        refuse_bad_cells(Z, columns.names, missing)
    elif numeric:
        refuse_bad_cells(Z[:, numeric], [columns.names[j] for j in numeric], missing)


def _checked(estimator: Any, X: Any, reset: bool) -> Any:
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            "X is a masked array and its mask would be ignored: pass X.filled(np.nan) and impute, or a DataFrame"
        )
    frame = as_frame(X)
    if frame is None:
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
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    return X


def read_target(X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Any, IntArray, Array, Any]:
    """(classes, codes, weights, groups), each row of X having one of each."""
    if isinstance(y, np.ma.MaskedArray):
        raise InputError("y is a masked array and its mask would be ignored: drop the masked rows")
    y = column_or_1d(_plain_labels(y), warn=True)
    check_consistent_length(X, y)
    missing = int(sum(map(is_missing, y.tolist())))
    if missing:
        raise InputError(f"Input y contains NaN: {missing} of {len(y)} labels are missing; drop these rows")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError(f"Input y contains infinity: {int(np.isinf(y).sum())} of {len(y)} labels; drop these rows")
    distinct = len(np.unique(y)) if y.dtype.kind in "fiu" else 0
    if distinct > max(10, len(y) / 2) or type_of_target(y).startswith("continuous"):
        raise InputError(
            f"Unknown label type: continuous. The target looks continuous ({distinct} distinct values in "
            f"{len(y)} rows); make classes of it first, for example above and below its median"
        )
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    weight = read_weight(sample_weight, len(y))
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(y, groups)
        groups = np.unique(groups, return_inverse=True)[1]
    return classes, codes.astype(np.intp), weight, groups


def read_weight(sample_weight: Any, m: int) -> Array:
    """(m,) the samples' weights, 1 by default, none below 0."""
    if sample_weight is None:
        return np.ones(m)
    weight = _check_sample_weight(sample_weight, np.empty((m, 1)), dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weight, dtype=np.float64)


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


def check_classes(classes: Any, codes: IntArray) -> None:
    """At least two classes must have rows that count."""
    counts = np.bincount(codes, minlength=len(classes))
    if (counts > 0).sum() < 2:
        raise InputError(
            f"y holds one class only ({listing(classes[counts > 0].tolist())}): a classifier needs at least two classes"
        )
    if (counts == 0).any():
        raise InputError(f"every sample of class {listing(classes[counts == 0].tolist())} has sample_weight 0")


def positive_code(classes: Any, codes: IntArray, weight: Array, positive: Any) -> int:
    """The code of the class of interest: the one named, else the rarer of two (the second where they are even)."""
    if positive is None:
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        return 0 if len(counts) == 2 and counts[0] < counts[1] else 1
    where = np.flatnonzero(classes == positive)
    if not len(where):
        raise InputError(f"positive is {positive!r}; the classes are {listing(classes.tolist())}")
    return int(where[0])


def choose_rows(part: Part, rows: int | None, rng: np.random.Generator) -> tuple[IntArray, Array]:
    """The rows to train on and the weights of all rows.

    Every class gets an equal share of `rows`; what a rare class cannot fill goes to the others, so a rare class is
    taken whole. Weights of a class that is sampled are raised so that their sum stays what it was.
    """
    m = len(part.y)
    if rows is None:
        if m > MOST_ROWS:
            raise InputError(
                f"the table has {m} rows and the kernel matrix of more than {MOST_ROWS} does not fit in memory: "
                "pass rows=5000, say, to train on all positives and a weighted sample of the negatives; "
                "the rest is scored"
            )
        return np.arange(m), part.weight
    if not isinstance(rows, (int, np.integer)) or rows < 4:
        raise InputError(f"rows is {rows!r}; it must be a whole number of 4 or more")
    if rows > MOST_ROWS:
        raise InputError(f"rows is {rows}; it must be at most {MOST_ROWS}")
    if m <= rows:
        return np.arange(m), part.weight
    weight, chosen, left = part.weight.copy(), [], rows
    counts = np.bincount(part.y)
    for place, code in enumerate(np.argsort(counts, kind="stable")):
        members = np.flatnonzero(part.y == code)
        taken = rng.choice(members, size=min(len(members), left // (len(counts) - place)), replace=False)
        weight[taken] *= part.weight[members].sum() / part.weight[taken].sum()
        left -= len(taken)
        chosen.append(taken)
    return np.sort(np.concatenate(chosen)), weight


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """A numpy seed from what scikit-learn calls a random_state."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.SeedSequence(random_state)
    return np.random.SeedSequence(int(check_random_state(random_state).randint(2**31)))


def with_rest(
    folds: list[tuple[IntArray, IntArray]],
    sample: IntArray,
    m: int,
    rng: np.random.Generator,
    groups: IntArray | None = None,
) -> list[tuple[IntArray, IntArray]]:
    """Folds of the sampled rows in the numbering of all rows; rows left out of the sample join the test sides.

    A row whose group was sampled joins the fold that tests its group, so that no group is on both sides.
    """
    if len(sample) == m:
        return folds
    rest = np.setdiff1d(np.arange(m), sample)
    units = np.arange(m) if groups is None else groups
    home = dict(zip(np.unique(units), rng.integers(len(folds), size=len(np.unique(units))), strict=True))
    for k, (_, test) in enumerate(folds):
        home.update(dict.fromkeys(units[sample[test]], k))
    fold = np.array([home[unit] for unit in units[rest]])
    return [(sample[train], np.concatenate([sample[test], rest[fold == k]])) for k, (train, test) in enumerate(folds)]
