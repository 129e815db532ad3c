"""The clinical kernel for continuous, ordinal and nominal columns together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator

from .. import _tent
from .._types import Array, is_sparse
from ..errors import InputError, listing
from ..table import Columns, Table, as_frame


class Clinical(BaseEstimator):
    """K(x, z) = sum_j s_j^2 k_j(x_j, z_j), every s_j = 1 / sqrt(n) at the start; k_j as in `clinical_kernel`.

    It sees each column in units of its training range, so that standardising would change nothing and is not done.
    """

    geometry = "tent"  # sum_j w_j base_j in coordinates in which each k_j is a tent
    additive = True
    accepts = frozenset({"real", "ordinal", "nominal"})
    missing = True  # cells may be missing
    sparse = False
    average = False

    def scale(self, table: Table, weight: Array | None = None) -> Array:  # noqa: ARG002
        """(n,) the scaling factors to start from."""
        return np.full(table.shape[1], 1.0 / np.sqrt(table.shape[1]))

    def base(self, u: Array, v: Array, kind: str, spread: float) -> Array:
        """k_j of codes within the training range; a missing one is like nothing."""
        if kind == "nominal":
            return np.asarray(np.equal(u, v), dtype=np.float64)
        alike = 1.0 - np.abs(np.subtract(u, v)) / (spread if spread > 0 else np.inf)
        return np.asarray(np.nan_to_num(alike, nan=0.0))

    def outer(self, A: Array) -> Array:
        return A

    def outer_derivative(self, A: Array, order: int = 1) -> Array | None:
        return A if order == 0 else np.ones_like(A) if order == 1 else None


def clinical_kernel(A: Any, B: Any = None, kinds: Mapping[str, str] | None = None) -> Array:
    """(rows of A, rows of B): the mean over the columns of k_j, with ranges and levels from B, the training rows.

        k_j(a, b) = 1 - |a - b| / range_j    continuous or ordinal, a and b within the range of B
        k_j(a, b) = 1 if a equals b, else 0   nominal and boolean

    A missing cell has k_j = 0 against everything, itself included: nothing is imputed, and what is missing carries
    signal. A category that B does not have is like nothing in B. Columns with nothing but missing cells in B are named
    in a warning and left out of the mean. B is A by default. Tables of pandas, polars and arrow say what their columns
    are (bool, category, string, ordered category); `kinds` says otherwise, for example {"stage": "ordinal"}; columns
    of an array are called x0, x1, ...

    With scikit-learn: SVC(kernel="precomputed") on clinical_kernel(train) and clinical_kernel(test, train), or, for an
    array of numbers, SVC(kernel=clinical_kernel).

    Daemen and De Moor, Development of a kernel function for clinical data, EMBC 2009, 5913-5917.
    """
    train = A if B is None else B
    for table in (A, train):
        if is_sparse(table):
            raise InputError("the clinical kernel needs a dense table and this one is sparse: use X.toarray()")
    columns = Columns.of(train, {**_booleans(train), **(kinds or {})})
    Z = columns.encode(train)
    empty = np.isnan(Z).all(axis=0)
    if empty.all():
        raise InputError("every cell of the training table is missing")
    if empty.any():
        names = [name for name, gone in zip(columns.names, empty, strict=True) if gone]
        warnings.warn(f"no cell of {listing(names)} is observed: left out of the kernel", UserWarning, stacklevel=2)
    kept = np.flatnonzero(~empty)
    tents = _tent.Tents.of(Z[:, kept], [columns.kind[j] for j in kept])
    left = right = tents.U
    if B is not None:
        rows = columns.encode(A)
        if rows.shape[1] != len(empty):
            raise InputError(f"A has {rows.shape[1]} columns and B has {len(empty)}: they must be the same columns")
        left = tents.of_rows(rows[:, kept], np.arange(len(kept)))
    weight = np.full(len(right), 1.0 / len(right))
    return _tent.weighted(left, weight, right)


def _booleans(X: Any) -> dict[str, str]:
    """Boolean columns of a frame as nominal ones: a value that was not seen is like nothing."""
    frame = as_frame(X)
    schema = {} if frame is None else frame.schema
    return {str(name): "nominal" for name, dtype in schema.items() if dtype == nw.Boolean}
