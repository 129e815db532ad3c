"""The clinical kernel for continuous, ordinal and nominal columns together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import TallTentGram, TentGram, tents
from ..algebra.blocks import beyond_cache
from ..batches.arrays import Backend, DeviceArray
from ..batches.pair_sums import DifferenceSums, Scales
from ..contracts import KINDS, Array, IntArray, Resources, TableView, is_sparse
from ..data.table import Schema, as_frame, column_names
from ..errors import InputError, listing, positive_number
from .numeric import CACHE, KernelMixin

MANY_ROWS, FEW_COLUMNS = 500, 64  # more rows and fewer columns than these: no kernel matrix is made


class Clinical(KernelMixin, BaseEstimator):
    """K(x, z) = mean_j w_j k_j(x_j, z_j) over the live columns, w_j = 1 at the start; k_j as in `clinical_kernel`.

    Each column is measured in units of its range over the training rows, so standardizing would change nothing and is
    not done.

    Parameters
    ----------
    average : bool, default=True
        The mean over the columns that are left, so that C has the same meaning at every size; False divides by the
        number of all columns.
    cache : float, default=1000
        Megabytes that the kernel matrix of the training rows may take. Where it would take more, machines and
        elimination make it for some rows at a time, which takes longer.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.relieff(kernel="clinical").kernel
    Clinical()
    """

    resources = Resources(peak=(6.5, 4.5))
    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    missing = True
    additive = True
    unit_free = True
    in_batches: ClassVar[bool] = True

    def __init__(self, average: bool = True, cache: float = CACHE) -> None:
        self.average = average
        self.cache = cache

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        positive_number("kernel", "cache", self.cache)

    def start(self, table: TableView) -> Array:
        """(n,) the feature weights to start from."""
        n = table.shape[1]
        return np.full(n, 1.0 if self.average else 1.0 / np.sqrt(n)) ** 2

    def bind(self, table: TableView, feature_weight: Array, live: IntArray) -> TentGram:
        """The Gram of some features of a table at weights (n,)."""
        tall = (table.shape[0] > MANY_ROWS and len(live) <= FEW_COLUMNS) or beyond_cache(table, self.cache)
        return (TallTentGram if tall else TentGram).build(self, table, feature_weight, live)

    def pair_sums(self, arrays: Backend, X: DeviceArray, scales: Scales) -> DifferenceSums:
        """Kernel matrices over the rows of X (n, r) for many weightings at once."""
        return DifferenceSums(arrays, X, scales, self.average, None)


def clinical_kernel(A: Any, B: Any = None, kinds: Mapping[str, str] | None = None) -> Array:
    """(rows of A, rows of B): the mean over the columns of k_j, with ranges and levels from B, the training rows.

    ::

        k_j(a, b) = 1 - |a - b| / range_j    continuous or ordinal, a and b within the range of B
        k_j(a, b) = 1 if a equals b, else 0   nominal and boolean

    A missing cell has k_j = 0 against everything, itself included: nothing is imputed. A category that does not occur
    in B has k_j = 0 against every row of B. Columns in which every cell of B is missing are named in a warning and left
    out of the mean.

    Parameters
    ----------
    A : table of shape (rows of A, n)
        Rows to compare with those of B.
    B : table of shape (rows of B, n) or None, default=None
        Training rows; None is A. The columns must be those of A, in the same order.
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns ("real", "ordinal", "nominal" or "boolean") where they differ from what the dtypes of a pandas,
        polars or arrow table imply (bool, category, string, ordered category), for example {"stage": "ordinal"}. The
        columns of an array are called x0, x1, ...

    Returns
    -------
    array of shape (rows of A, rows of B)
        The kernel matrix.

    Notes
    -----
    With scikit-learn, use SVC(kernel="precomputed") on clinical_kernel(train) and clinical_kernel(test, train), or, for
    an array of numbers, SVC(kernel=clinical_kernel).

    References
    ----------
    Daemen and De Moor, Development of a kernel function for clinical data, EMBC 2009, 5913-5917.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.kernels import clinical_kernel
    >>> train = pd.DataFrame({"age": [20.0, 40.0, 60.0], "stage": ["a", "b", "b"]})
    >>> clinical_kernel(train)
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.75],
           [0.  , 0.75, 1.  ]])
    """
    left, right = _coordinates(A, B, kinds, "the clinical kernel")
    return tents.sum_tents(left, np.full(len(right), 1.0 / len(right)), right)


def heom_distances(A: Any, B: Any = None, kinds: Mapping[str, str] | None = None) -> Array:
    """(rows of A, rows of B): the heterogeneous Euclidean-overlap distance, ranges and levels from B, training rows.

    ::

        d(a, b)^2 = sum_j d_j^2,   d_j = 1 - k_j of `clinical_kernel`: |a_j - b_j| / range_j, or 0 if equal and else 1

    A missing cell is at distance 1 from everything, another missing cell included, so that d(a, a) > 0 where cells of a
    are missing. Values outside the range of B are clipped to it; columns without an observed cell in B are named in a
    warning and left out.

    Parameters
    ----------
    A : table of shape (rows of A, n)
        Rows to compare with those of B.
    B : table of shape (rows of B, n) or None, default=None
        Training rows; None is A. The columns must be those of A, in the same order.
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns ("real", "ordinal", "nominal" or "boolean") where they differ from what the dtypes imply.

    Returns
    -------
    array of shape (rows of A, rows of B)
        The distances.

    References
    ----------
    Wilson and Martinez, Improved heterogeneous distance functions, Journal of Artificial Intelligence Research 6 (1997)
    1-34.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.kernels import heom_distances
    >>> train = pd.DataFrame({"age": [20.0, 40.0, 60.0], "stage": ["a", "b", "b"]})
    >>> heom_distances(train).round(3)
    array([[0.   , 1.118, 1.414],
           [1.118, 0.   , 0.5  ],
           [1.414, 0.5  , 0.   ]])
    """
    left, right = _coordinates(A, B, kinds, "the HEOM distance")
    return np.sqrt(tents.squares(left, right))


def _coordinates(A: Any, B: Any, kinds: Mapping[str, str] | None, what: str) -> tuple[Array, Array]:
    """(n, rows of A), (n, rows of B): both tables in the coordinates of B, columns without a cell in B left out."""
    train = A if B is None else B
    for table in (A, train):
        if is_sparse(table):
            raise InputError(f"{what} needs a dense table and this one is sparse: use X.toarray()")
    ours, theirs = (None if as_frame(table) is None else column_names(table) for table in (A, train))
    if ours is not None and theirs is not None and ours != theirs and len(ours) == len(theirs):
        wrong = next((a, b) for a, b in zip(ours, theirs, strict=True) if a != b)
        raise InputError(
            f"A has the column {wrong[0]!r} where B has {wrong[1]!r}: they must be the same columns in order"
        )
    columns = Schema.from_table(train, kinds)
    Z = columns.encode(train)
    empty = np.isnan(Z).all(axis=0)
    if empty.all():
        raise InputError("every cell of the training table is missing")
    if empty.any():
        names = [name for name, gone in zip(columns.names, empty, strict=True) if gone]
        warnings.warn(f"no cell of {listing(names)} is observed: left out of {what}", UserWarning, stacklevel=3)
    kept = np.flatnonzero(~empty)
    training = tents.Tents.from_codes(Z[:, kept], [columns.kind[j] for j in kept])
    if B is None:
        return training.U, training.U
    rows = columns.encode(A)
    if rows.shape[1] != len(empty):
        raise InputError(f"A has {rows.shape[1]} columns and B has {len(empty)}: they must be the same columns")
    return training.coordinates_of(rows[:, kept], np.arange(len(kept))), training.U
