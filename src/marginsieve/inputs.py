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

from ._types import Array, IntArray, Matrix
from .errors import InputError, listing
from .fitting import Part
from .table import Columns, Table, as_frame, refuse_bad_cells

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
    numeric = [j for j, kind in enumerate(columns.kind) if kind == "real"]
    if len(numeric) == len(columns.kind):
        refuse_bad_cells(table.Z, columns.names)
    elif numeric:
        refuse_bad_cells(table.Z[:, numeric], [columns.names[j] for j in numeric])
    return columns, table


def read_new(estimator: Any, X: Any) -> Matrix:
    """Codes of further rows, checked against the columns of the training table."""
    X = _checked(estimator, X, reset=False)
    Z = estimator.columns_.encode(X)
    refuse_bad_cells(Z, estimator.columns_.names)
    return Z


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
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    missing = int(sum(value is None or value != value for value in y))
    if missing:
        raise InputError(f"Input y contains NaN: {missing} of {len(y)} labels are missing; drop these rows")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError(f"Input y contains infinity: {int(np.isinf(y).sum())} of {len(y)} labels; drop these rows")
    if type_of_target(y).startswith("continuous"):
        raise InputError(
            f"Unknown label type: continuous. The target looks continuous ({len(np.unique(y))} distinct values in "
            f"{len(y)} rows); pass classes, for example y > np.median(y)"
        )
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    m = len(y)
    weight = (
        np.ones(m)
        if sample_weight is None
        else _check_sample_weight(sample_weight, np.empty((m, 1)), dtype=np.float64, ensure_non_negative=True)
    )
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(y, groups)
        groups = np.unique(groups, return_inverse=True)[1]
    return classes, codes.astype(np.intp), np.asarray(weight, dtype=np.float64), groups


def check_classes(classes: Any, codes: IntArray) -> None:
    """At least two classes must have rows that count."""
    counts = np.bincount(codes, minlength=len(classes))
    if (counts > 0).sum() < 2:
        raise InputError(
            f"y holds one class only ({listing(classes[counts > 0].tolist())}): a classifier needs at least two classes"
        )
    if (counts == 0).any():
        raise InputError(f"every sample of class {listing(classes[counts == 0].tolist())} has sample_weight 0")


def choose_rows(part: Part, rows: int | None, positive: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
    """The rows to train on and the weights of all rows.

    All positives and a random sample of the others, whose weights are raised so that their sum stays what it was. If
    the positives alone would fill more than half, both sides are sampled.
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
    ours, others = np.flatnonzero(part.y == positive), np.flatnonzero(part.y != positive)
    n_ours = len(ours) if 2 * len(ours) <= rows else max(rows // 2, rows - len(others))
    weight, chosen = part.weight.copy(), []
    for members, count in ((ours, n_ours), (others, rows - n_ours)):
        taken = rng.choice(members, size=min(count, len(members)), replace=False)
        weight[taken] *= part.weight[members].sum() / part.weight[taken].sum()
        chosen.append(taken)
    return np.sort(np.concatenate(chosen)), weight


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """A numpy seed from what scikit-learn calls a random_state."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.SeedSequence(random_state)
    return np.random.SeedSequence(int(check_random_state(random_state).randint(2**31)))


def with_rest(
    folds: list[tuple[IntArray, IntArray]], sample: IntArray, m: int, rng: np.random.Generator
) -> list[tuple[IntArray, IntArray]]:
    """Folds of the sampled rows in the numbering of all rows; rows left out of the sample join the test sides."""
    if len(sample) == m:
        return folds
    rest = np.array_split(rng.permutation(np.setdiff1d(np.arange(m), sample)), len(folds))
    return [
        (sample[train], np.concatenate([sample[test], extra])) for (train, test), extra in zip(folds, rest, strict=True)
    ]
