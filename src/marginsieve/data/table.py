"""From the user's table (array, pandas, polars, arrow, scipy sparse) to float codes, one column per feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from ..contracts import KINDS, Array, BoolArray, IntArray, Matrix, T, TableView, is_sparse
from ..errors import InputError, listing, one_line, shown_value
from .stored import is_anndata, is_stored

LARGEST = 1e75  # sums of squares of squares of anything larger overflow


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of one training part: built once, never refitted.

    Z (m, n) holds one column of codes per feature, column-major (or scipy CSC); nan is a missing cell.
    """

    Z: Matrix
    kind: tuple[str, ...]
    names: tuple[str, ...]
    known_variance: Array | None = None  # (n,) where it is not that of the rows alone
    origin: tuple[Table, IntArray, Matrix] | None = None  # the table whose rows these are, which rows, and their cells
    arrays: Any = None  # marginsieve.batches.arrays.Backend: where kernels of this table are made, None is here

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.Z.shape[0]), int(self.Z.shape[1])

    @property
    def is_sparse(self) -> bool:
        return bool(is_sparse(self.Z))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """(n,) the lowest and the highest value of each column over the training rows."""
        if is_stored(self.Z):
            pairs = [(rows.min(axis=1), rows.max(axis=1)) for _, rows in self.Z.blocks()]
            low, high = (np.concatenate(side) for side in zip(*pairs, strict=True))
            return low, high
        if self.is_sparse:
            return self.Z.min(axis=0).toarray().ravel(), self.Z.max(axis=0).toarray().ravel()
        with np.errstate(all="ignore"):
            return np.fmin.reduce(self.Z, axis=0), np.fmax.reduce(self.Z, axis=0)

    @cached_property
    def spread(self) -> Array:
        """(n,) range of each column over the training rows."""
        low, high = self.bounds
        return np.asarray(high - low, dtype=float)

    @cached_property
    def variance(self) -> Array:
        """(n,) variance of each column over the training rows, which count by their weights."""
        if self.known_variance is not None:
            return self.known_variance
        return self._variance(np.full(self.shape[0], 1.0 / self.shape[0]))

    def _variance(self, share: Array) -> Array:
        if is_stored(self.Z):
            mean = share @ self.Z
            return np.concatenate([(rows - mean[part, None]) ** 2 @ share for part, rows in self.Z.blocks()])
        D = self.Z - share @ self.Z
        return np.asarray(np.einsum("i,ij,ij->j", share, D, D))

    def compute_once(self, make: Callable[[TableView], T]) -> T:
        """What is made of the table: made once, then remembered."""
        results = vars(self).setdefault("_results", {})
        if make not in results:
            results[make] = make(self)
        derived: T = results[make]
        return derived

    def rows(self, index: IntArray | BoolArray) -> Table:
        """The table of some rows, spread and all from those rows alone."""
        Z = self.Z[index]
        Z = Z if self.is_sparse or is_stored(Z) else np.asfortranarray(Z)
        origin = None
        if (of := self.rows_of_origin) is not None:
            origin = (of[0], of[1][index], Z)
        return replace(self, Z=Z, known_variance=None, origin=origin)

    def track(self) -> Table:
        """The same table; tables of some of its rows know that they are."""
        return replace(self, origin=(self, np.arange(self.shape[0]), self.Z))

    @property
    def rows_of_origin(self) -> tuple[Table, IntArray] | None:
        """The tracked table whose rows these are, and which; None where there is none, or cells were changed since."""
        return None if self.origin is None or self.origin[2] is not self.Z else self.origin[:2]

    def sample(self, index: IntArray) -> Table:
        """The table of some rows with the variances of all."""
        return replace(self.rows(index), known_variance=self.variance)

    def columns(self, index: IntArray) -> Table:
        """The table of some features."""
        if len(index) == self.shape[1] and np.array_equal(index, np.arange(len(index))):
            return self
        variance = self.freeze().known_variance
        return Table(
            self.Z[:, index],
            tuple(self.kind[j] for j in index),
            tuple(self.names[j] for j in index),
            None if variance is None else variance[index],
            arrays=self.arrays,
        )

    def with_backend(self, arrays: Any) -> Table:
        """The same table, with its kernels made on a device; None is here."""
        return replace(self.freeze(), arrays=arrays)

    def with_row_weights(self, weight: Array) -> Table:
        """The same table, in which rows count by their weights (m,)."""
        if self.is_sparse or not np.ptp(weight) > 0:  # no kernel of sparse tables reads variances
            return self
        return replace(self, known_variance=self._variance(weight / weight.sum()))

    def freeze(self) -> Table:
        """The same table, which keeps its variances where they were computed: to the last bit in other layouts too."""
        return replace(self, known_variance=self.variance) if "variance" in vars(self) else self


@dataclass(frozen=True)
class Schema:
    """What a training table says about its columns; turns further tables of the same columns into codes.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    kind : tuple of str
        "real", "ordinal", "nominal" or "boolean" for each column.
    levels : mapping of int to tuple
        Levels, in their order, of columns that are not numbers, by position.
    days : mapping of int to (str, str), default={}
        The first day, and how dates are written, of columns that count days, by position.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.data import Schema
    >>> frame = pd.DataFrame({"age": [40.0, 60.0], "site": ["a", "b"]})
    >>> schema = Schema.from_table(frame)
    >>> schema.kind
    ('real', 'nominal')
    >>> schema.encode(frame)
    array([[40.,  0.],
           [60.,  1.]])
    """

    names: tuple[str, ...]
    kind: tuple[str, ...]
    levels: Mapping[int, tuple[Any, ...]]  # of features that are not numbers, by position
    days: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def from_table(cls, X: Any, kinds: Mapping[str, str] | None = None) -> Schema:
        """Read names, kinds and levels off a frame or an array."""
        frame = as_frame(X)
        inferred: dict[int, str] = {}
        levels: dict[int, tuple[Any, ...]] = {}
        if is_stored(X) and kinds:
            raise InputError(f"kinds names {listing([*kinds])}: columns that stay in a file are numbers, nothing else")
        if frame is None:
            names = tuple(f"x{j}" for j in range(X.shape[1]))
        else:
            names = tuple(map(str, column_names(X)))
            inferred, levels = _read_kinds(frame)
        kind = ["real"] * len(names)
        for j, name in inferred.items():
            kind[j] = name
        _override(kind, names, kinds)
        if is_sparse(X) and (wrong := [name for name, read_as in zip(names, kind, strict=True) if read_as != "real"]):
            raise InputError(f"kinds names {listing(wrong)}: columns of a sparse table are numbers, nothing else")
        for j, name in enumerate(kind):
            if name == "real":
                levels.pop(j, None)
            elif name == "boolean" and frame is not None and j in levels:  # a category may be declared and not used
                levels[j] = _sorted_levels(frame[:, j].to_list())
            elif j not in levels and inferred.get(j) != "boolean":
                levels[j] = _sorted_levels(np.unique(X[:, j]).tolist() if frame is None else frame[:, j].to_list())
            if name == "boolean" and len(levels.get(j, ())) > 2:
                raise InputError(
                    f"kinds calls {names[j]!r} boolean and it has {len(levels[j])} values ({listing(levels[j])}): "
                    "a boolean column has two at most"
                )
        return cls(names, tuple(kind), levels)

    def encode(self, X: Any) -> Matrix:
        """(rows, n) codes: numbers as they are, levels by their place; unseen levels get places of their own."""
        if is_sparse(X):
            cells = sparse.csc_array(X, dtype=np.float64)
            if not cells.has_canonical_format:  # in the order of the rows, each once: sums depend on the order
                cells = cells.copy()
                cells.sum_duplicates()
            return cells
        if is_stored(X):
            return X
        frame = as_frame(X)
        if frame is None:
            Z = np.array(X, dtype=np.float64, order="F")
        else:
            Z = np.empty(frame.shape, dtype=np.float64, order="F")
            for block in _blocks(frame, [j for j in range(len(self.names)) if j not in self.levels]):
                whole = len(block) == Z.shape[1]
                Z[:, slice(None) if whole else block] = _numbers(frame if whole else frame[:, block], self.names, block)
        for j, levels in self.levels.items():
            values, which = _distinct(Z[:, j]) if frame is None else _categories(frame[:, j])
            Z[:, j] = self._places(values, which, j, levels)
        return Z

    def _places(self, values: list[Any], which: IntArray, j: int, levels: tuple[Any, ...]) -> Array:
        """Codes of a column given as values and, row by row, the number of its value; the last value is a gap."""
        place: dict[Any, float] = {level: float(k) for k, level in enumerate(levels)}
        codes = np.array([*(place.setdefault(value, float(len(place))) for value in values), np.nan])[which]
        if self.kind[j] != "nominal" and np.nanmax(codes, initial=0.0) >= len(levels):
            new = values[int(which[np.nanargmax(codes)])]
            raise InputError(
                f"column {self.names[j]!r} is {self.kind[j]} and has the level {new!r}, unknown when it was trained"
            )
        if len(values) and not any(value in levels for value in values) and {*map(str, values)} & {*map(str, levels)}:
            raise InputError(
                f"column {self.names[j]!r} holds {listing([*values][:3])} and was trained on {listing([*levels][:3])}: "
                "the same categories in another type; convert them"
            )
        return codes

    def table(self, X: Any) -> Table:
        """The codes of a table with its kinds and names."""
        return Table(self.encode(X), self.kind, self.names)

    def columns(self, index: IntArray) -> Schema:
        """The schema of some columns."""
        levels = {k: self.levels[j] for k, j in enumerate(index) if j in self.levels}
        days = {k: self.days[j] for k, j in enumerate(index) if j in self.days}
        return Schema(tuple(self.names[j] for j in index), tuple(self.kind[j] for j in index), levels, days)

    def expand(self, owner: IntArray) -> Schema:
        """The schema of `one_hot`: numbers alone, named by the column that they were made of."""
        names = [f"{self.names[j]}.{k}" if (owner == j).sum() > 1 else self.names[j] for k, j in enumerate(owner)]
        return Schema(tuple(names), ("real",) * len(owner), {})


def sound_sparse(X: Any) -> Any:
    """A sparse table by rows or by columns, whose indices were looked at: compiled code does not look at them."""
    if X.ndim != 2:
        raise InputError(f"the table has {X.ndim} dimensions; it must have two")
    try:
        if X.format not in ("csr", "csc"):
            _check_places(X)
        if X.format in ("csr", "csc", "bsr"):
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
            X.check_format(full_check=True)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # whatever a broken object makes of itself
        raise InputError(f"the sparse table is broken: {one_line(error)}") from error
    return X


def _check_places(X: Any) -> None:
    """Refuse cells outside a sparse table of a format that scipy does not check."""
    rows, columns = X.shape
    places: list[tuple[Any, int, int]] = []  # numbers, the lowest and the highest that they may be
    if X.format == "coo":
        if not X.coords[0].shape == X.coords[1].shape == X.data.shape:
            raise InputError("the sparse table is broken: it has more places than cells, or fewer")
        places = [(X.coords[0], 0, rows - 1), (X.coords[1], 0, columns - 1)]
    elif X.format == "lil":
        if len(X.rows) != rows or [*map(len, X.rows)] != [*map(len, X.data)]:
            raise InputError("the sparse table is broken: it has more places than cells, or fewer")
        places = [(np.array([j for row in X.rows for j in row]), 0, columns - 1)]
    elif X.format == "dok":
        keys = np.array(list(X.keys())).reshape(-1, 2)
        places = [(keys[:, 0], 0, rows - 1), (keys[:, 1], 0, columns - 1)]
    elif X.format == "dia":
        if X.data.ndim != 2 or X.offsets.shape != (len(X.data),):
            raise InputError("the sparse table is broken: it has more diagonals than places for them, or fewer")
        places = [(X.offsets, 1 - rows, columns - 1)]
    for numbers, low, high in places:
        if numbers.size and not (numbers.dtype.kind in "iu" and low <= numbers.min() and numbers.max() <= high):
            raise InputError(f"the sparse table is broken: a cell lies outside its {rows} rows and {columns} columns")


def column_names(X: Any) -> list[Any]:
    """The names of a pandas, polars or arrow table."""
    names = getattr(X, "column_names", None)
    names = X.columns if names is None else names
    return list(names.tolist() if hasattr(names, "tolist") else names)


def as_table(X: Any) -> Any:
    """A record batch of arrow as the table that it is, names included; anything else as it is."""
    if type(X).__name__ != "RecordBatch" or not hasattr(X, "schema"):
        return X
    import pyarrow

    return pyarrow.Table.from_batches([X])


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """The narwhals view of a pandas, polars or arrow table; None for anything else."""
    if isinstance(X, (np.ndarray, list, tuple)) or is_sparse(X) or is_stored(X):
        return None
    X = as_table(X)
    if hasattr(X, "collect_schema") and not hasattr(X, "to_numpy"):
        raise InputError("the table is a lazy frame: call .collect() first")
    if is_anndata(X):
        raise InputError("the table is an AnnData object: pass X.to_df(), or give the command its .h5ad file")
    if hasattr(X, "columns"):
        counts = Counter(column_names(X))
        if twice := [str(name) for name, count in counts.items() if count > 1]:
            raise InputError(f"column names occur more than once: {listing(twice)}; rename or drop the repeats")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _blocks(frame: nw.DataFrame[Any], columns: Sequence[int]) -> list[list[int]]:
    """The places of some columns, grouped by dtype; a wide table has few dtypes."""
    native = frame.to_native()
    dtypes = native.schema.types if hasattr(native, "column_names") else list(native.dtypes)
    blocks: dict[Any, list[int]] = {}
    for j in columns:
        blocks.setdefault(dtypes[j], []).append(j)
    return list(blocks.values())


def _read_kinds(frame: nw.DataFrame[Any]) -> tuple[dict[int, str], dict[int, tuple[Any, ...]]]:
    """Kinds of the columns that are not plain numbers, levels of those that are not booleans either."""
    kind: dict[int, str] = {}
    levels: dict[int, tuple[Any, ...]] = {}
    wrong: list[str] = []
    for block in _blocks(frame, range(frame.shape[1])):
        dtype = frame[:, block[0]].dtype
        if dtype == nw.Boolean:
            kind |= dict.fromkeys(block, "boolean")
        if dtype.is_numeric() or dtype == nw.Boolean:
            continue
        for j in block:
            column = frame[:, j]
            if dtype in (nw.Categorical, nw.Enum):
                native = column.to_native()
                declared = native.type if hasattr(native, "type") else getattr(native, "cat", None)
                kind[j] = "ordinal" if getattr(declared, "ordered", False) else "nominal"
                levels[j] = tuple(column.cat.get_categories().to_list())
            elif dtype in (nw.String, nw.Object, nw.Unknown):
                values = column.to_list()
                types = set() if dtype == nw.String else {type(value) for value in values if not is_missing(value)}
                if types and types <= {bool, np.bool_}:  # as a file has booleans with gaps
                    kind[j] = "boolean"
                elif dtype == nw.String or not _all_numbers(values):
                    kind[j], levels[j] = "nominal", _sorted_levels(values)
            else:
                wrong.append(column.name)
    if wrong:
        raise InputError(
            f"columns that are neither numbers, booleans nor categories: {listing(wrong)}; convert or drop them"
        )
    return kind, levels


def _sorted_levels(column: list[Any]) -> tuple[Any, ...]:
    values = {value for value in column if not is_missing(value)}
    try:
        return tuple(sorted(values))
    except TypeError:
        return tuple(sorted(values, key=str))


def is_missing(value: Any) -> bool:
    """None, nan, and the missing values of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _all_numbers(column: list[Any]) -> bool:
    return all(is_missing(value) or isinstance(value, (int, float, np.number)) for value in column)


def _override(kind: list[str], names: tuple[str, ...], kinds: Mapping[str, str] | None) -> None:
    if not (kinds is None or isinstance(kinds, Mapping)):
        raise InputError(
            f"kinds is {shown_value(kinds)}; it must be a dict of column names to kinds ({listing(KINDS)})"
        )
    place = {name: j for j, name in enumerate(names)}
    for name, stated in (kinds or {}).items():
        if stated not in KINDS:
            raise InputError(f"kinds[{name!r}] is {stated!r}; it must be one of {listing(KINDS)}")
        if name not in place:
            raise InputError(f"kinds names the column {name!r}, which the table does not have")
        kind[place[name]] = stated


def _distinct(column: Array) -> tuple[list[Any], IntArray]:
    """The values of a column of numbers in order, and the number of each row's value; -1 where it is missing."""
    values, which = np.unique(column, return_inverse=True)
    seen = ~np.isnan(values)
    return values[seen].tolist(), np.where(seen[which], which, -1).astype(np.intp)


def _categories(column: nw.Series[Any]) -> tuple[list[Any], IntArray]:
    """The same of a column of a frame; categories of pandas come with their numbers."""
    native = column.to_native()
    if column.dtype == nw.Categorical and hasattr(getattr(native, "cat", None), "codes"):
        return native.cat.categories.tolist(), native.cat.codes.to_numpy().astype(np.intp)
    known: dict[Any, int] = {}
    which = [-1 if is_missing(value) else known.setdefault(value, len(known)) for value in column.to_list()]
    return list(known), np.array(which, dtype=np.intp)


def _numbers(part: nw.DataFrame[Any], names: tuple[str, ...], columns: list[int]) -> Array:
    native, first = part.to_native(), part[:, 0]  # the others are of its dtype
    kind = getattr(getattr(first.to_native(), "dtype", None), "kind", "")
    if first.dtype.is_temporal() or (isinstance(kind, str) and kind in ("c", "m", "M")):
        raise InputError(
            f"dates, durations or complex numbers where numbers are needed in {listing([names[j] for j in columns])}: "
            "make numbers of them, as in the table that was trained on"
        )
    try:
        if nw.dependencies.is_pandas_dataframe(native):
            return np.asarray(native.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(part.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        text = [names[j] for k, j in enumerate(columns) if not _all_numbers(part[:, k].to_list())]
        raise InputError(
            f"text where numbers are needed in {listing(text or [names[j] for j in columns])}; the table that was "
            "trained on, or kinds, has numbers there"
        ) from None


def refuse_bad_cells(Z: Matrix, names: Sequence[str], missing_allowed: bool = False) -> None:
    """Raise where cells are missing, infinite or so large that their squares are no numbers."""
    if is_stored(Z):
        for part, rows in Z.blocks():
            refuse_bad_cells(rows.T, names[part], missing_allowed)
        return
    values = Z.data if is_sparse(Z) else Z
    with np.errstate(all="ignore"):
        total = float(np.sum(values)) if values.size else 0.0
        peak = float(max(-values.min(), values.max())) if values.size else 0.0
    if np.isfinite(total) and peak < LARGEST:
        return
    dense = Z.toarray() if is_sparse(Z) else Z
    for wrong, what, advice in (
        (
            np.isnan(dense),
            "missing (NaN)",
            "impute them, drop these rows or columns, or take a method that leaves them missing (clinical-rfe, "
            "mkl-rfe, hfs-nb, hfs-5nn; kernel='clinical')",
        ),
        (np.isinf(dense), "infinite (inf)", "replace them, for example by the largest sensible value"),
        (np.abs(dense) >= LARGEST, f"{LARGEST:g} or larger in size", "rescale these columns: their squares overflow"),
    ):
        if missing_allowed and what.startswith("missing"):
            continue
        count = wrong.sum(axis=0)
        if count.any():
            worst = [int(j) for j in np.flatnonzero(count)]
            where = listing([f"{names[j]} ({count[j]})" for j in worst]).replace("'", "")
            raise InputError(
                f"Input X contains {int(count.sum())} cells that are {what} in {len(worst)} columns: {where}; {advice}"
            )


def column_of(Z: Matrix, j: int) -> Array:
    """(m,) one column, dense."""
    return np.asarray(Z[:, [j]].toarray().ravel() if is_sparse(Z) else Z[:, j])


def equal_columns(Z: Matrix) -> list[IntArray]:
    """Groups of columns that are equal to the last bit."""
    key = np.asarray(np.random.default_rng(0).normal(size=Z.shape[0]) @ Z)
    order = np.argsort(key, kind="stable")
    groups: list[IntArray] = []
    close = np.flatnonzero(np.abs(np.diff(key[order])) <= 1e-12 * np.abs(key[order][:-1]))
    for run in np.split(close, np.flatnonzero(np.diff(close) > 1) + 1) if len(close) else []:
        by_bytes: dict[bytes, list[int]] = {}
        for j in order[run[0] : run[-1] + 2]:
            by_bytes.setdefault(column_of(Z, j).tobytes(), []).append(int(j))
        groups += [np.sort(np.array(group, dtype=np.intp)) for group in by_bytes.values() if len(group) > 1]
    return sorted(groups, key=lambda group: int(group[0]))


def filled_with_means(Z: Array, training: Array, kind: Sequence[str] | None = None) -> Array:
    """Codes with the training rows' column means where numbers are missing; other kinds stay as they are.

    Parameters
    ----------
    Z : array of shape (rows, n)
        Codes of a table, nan where a cell is missing.
    training : array of shape (m, n)
        Codes of the training rows.
    kind : sequence of str or None, default=None
        Kinds of the columns; None: all are numbers.

    Returns
    -------
    array of shape (rows, n)
        The codes, in a new array.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.data import filled_with_means
    >>> filled_with_means(np.array([[np.nan, 5.0]]), np.array([[1.0, 2.0], [3.0, np.nan]]))
    array([[2., 5.]])
    """
    seen = ~np.isnan(training)
    mean = np.where(seen, training, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    if kind is not None:
        mean = np.where([name in ("real", "boolean") for name in kind], mean, np.nan)
    return np.asarray(np.where(np.isnan(Z), mean, Z))


def levels_of(codes: Array) -> Array:
    """The levels of a column of categories, ascending; missing cells have none."""
    return np.asarray(np.unique(codes[~np.isnan(codes)]))


def one_hot(Z: Array, training: Array, kind: Sequence[str]) -> tuple[Array, IntArray]:
    """Codes as numbers alone, and the column that each of theirs was made of.

    A category becomes a column of 0 and 1 for each level of the training rows, two levels one column; a cell without a
    value, or with a level that was not trained on, is 0 in all of them.

    Parameters
    ----------
    Z : array of shape (rows, n)
        Codes of a table.
    training : array of shape (m, n)
        Codes of the training rows.
    kind : sequence of str
        Kinds of the columns.

    Returns
    -------
    (array of shape (rows, k), array of int of shape (k,))
        Numbers, and the column of Z that each of their columns was made of.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.data import Schema, one_hot
    >>> frame = pd.DataFrame({"age": [40.0, 60.0, 50.0], "site": ["a", "b", "c"]})
    >>> schema = Schema.from_table(frame)
    >>> one_hot(schema.encode(frame), schema.encode(frame), schema.kind)[1]
    array([0, 1, 1, 1])
    """
    out: list[Array] = []
    owner: list[int] = []
    for j, name in enumerate(kind):
        if name in ("real", "boolean"):
            out.append(Z[:, j])
        else:
            known = levels_of(training[:, j])
            out += [(Z[:, j] == level).astype(np.float64) for level in known[len(known) == 2 :]]
        owner += [j] * (len(out) - len(owner))
    return np.asfortranarray(np.column_stack(out)), np.array(owner, dtype=np.intp)
