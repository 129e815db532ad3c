"""Tables whose cells stay in a file, read in blocks of columns and scaled as they are read; how much memory is free.

`StoredCells` (m, n) takes the place of the array of a table, `StoredColumns` (n, m) is the same turned round. Taking
few cells gives an array, taking many another such object; what would need all cells at once is refused with a sentence.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Array, IntArray
from ..errors import InputError, listing

if TYPE_CHECKING:
    import pandas as pd

# How much memory this process may still use; what would take more is refused before any work.

SPARE = 0.9  # of what is free
GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def refuse_more(needed: float, what: str, way: str) -> None:
    """Refuse what would take more memory than this process may use: "what" would take so much, do "way"."""
    free = SPARE * free_bytes()
    if needed > free:
        raise InputError(f"{what} would take about {gigabytes(needed)} of memory and {gigabytes(free)} are free: {way}")


def gigabytes(count: float) -> str:
    """'1.5 GB', '20 MB'."""
    return f"{count / 2**30:,.1f} GB" if count >= 2**29 else f"{count / 2**20:.0f} MB"


def free_bytes() -> float:
    """What this process may still allocate: of the machine, its container and its own limit; inf where unknown."""
    return min(_free_in_machine(), free_in_container(), _free_to_process())


def _free_in_machine() -> float:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf  # pragma: no cover


def free_in_container() -> float:
    """What is left in the control group of this process and in those above it; inf where there is no limit."""
    free = math.inf
    for group, limit, used in _groups():
        with suppress(OSError, ValueError):
            left = float(int((group / limit).read_text()) - int((group / used).read_text()))
            with suppress(OSError, ValueError):  # files that a group keeps in memory are given up when asked
                for line in (group / "memory.stat").read_text().splitlines():
                    if line.startswith(("inactive_file ", "total_inactive_file ")):
                        left += float(line.split()[1])
                        break
            free = min(free, left)
    return max(free, 0.0)


def _groups() -> Iterator[tuple[Path, str, str]]:
    """The folders of the groups that this process is in, up to the top, and the names of their limit and use."""
    second, first = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
    groups = [(GROUPS, "/", second), (GROUPS / "memory", "/", first)]
    with suppress(OSError, ValueError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, inside = line.split(":", 2)
            if controllers == "":
                groups.append((GROUPS, inside, second))
            elif "memory" in controllers.split(","):
                groups.append((GROUPS / "memory", inside, first))
    for top, inside, names in groups:
        parts = [part for part in inside.split("/") if part not in ("", "..")]
        for count in range(len(parts) + 1):
            yield (top.joinpath(*parts[:count]), *names)


def _free_to_process() -> float:
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            return max(0.0, float(limit - used))
    return math.inf


IN_MEMORY = 2**26  # cells of a memory map up to which it is read whole
DENSE = 2**24  # cells up to which a part of a stored table becomes an array
AT_ONCE = 2**21  # cells that are read at a time
FAR = 64  # columns between two that are not read in one slice


@dataclass(frozen=True, eq=False)
class StoredCells:
    """Some rows and columns of a source (M, N), as (cell - shift) * factor.

    Parameters
    ----------
    source : array-like of shape (M, N)
        Memory map, or dataset of an HDF5 file: anything that is sliced as ``source[:, start:stop]``.
    row, column : array of int or None, default=None
        Rows and columns of the source; None is all.
    shift, factor : array of shape (n,) or None, default=None
        What is taken off each column, and by what it is multiplied then.
    """

    source: Any
    row: IntArray | None = None
    column: IntArray | None = None
    shift: Array | None = None
    factor: Array | None = None

    ndim = 2
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.source.shape
        return (m if self.row is None else len(self.row)), (n if self.column is None else len(self.column))

    @property
    def T(self) -> StoredColumns:
        return StoredColumns(self)

    def __len__(self) -> int:
        return self.shape[0]

    def scale(self, shift: Array, factor: Array) -> StoredCells:
        """The same with (cell - shift) * factor on top."""
        if self.shift is None or self.factor is None:
            return replace(self, shift=shift, factor=factor)
        return replace(self, shift=self.shift + shift / self.factor, factor=self.factor * factor)

    def rows(self, index: Any) -> StoredCells:
        """Some of the rows."""
        row = np.arange(self.source.shape[0]) if self.row is None else self.row
        return replace(self, row=row[index])

    def columns(self, index: Any) -> StoredCells:
        """Some of the columns."""
        column = np.arange(self.source.shape[1]) if self.column is None else self.column
        parts = {name: value[index] for name in ("shift", "factor") if (value := getattr(self, name)) is not None}
        return replace(self, column=column[index], **parts)

    def read(self) -> Array:
        """(n, m): all cells, columns as rows."""
        m, n = self.shape
        column = np.arange(n) if self.column is None else self.column
        out = np.empty((n, m))
        order = np.argsort(column, kind="stable")
        near = np.flatnonzero(np.diff(column[order]) > FAR) + 1  # runs of columns near each other: one slice each
        for run in np.split(order, near) if n else []:
            first, last = int(column[run[0]]), int(column[run[-1]]) + 1
            part = np.asarray(self.source[:, first:last])
            part = part if self.row is None else part[self.row]
            out[run] = part.T[column[run] - first]
        if self.shift is not None and self.factor is not None:
            out -= self.shift[:, None]
            out *= self.factor[:, None]
        return out

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        some = self
        if not (isinstance(rows, slice) and rows == slice(None)):
            some = some.rows(rows)
        if isinstance(columns, (int, np.integer)):
            return some.columns(np.array([columns])).read()[0]
        if not (isinstance(columns, slice) and columns == slice(None)):
            some = some.columns(columns)
        return some if math.prod(some.shape) > DENSE else some.read().T

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """The columns as rows (k, m), a few at a time, and which they are."""
        m, n = self.shape
        step = max(1, AT_ONCE // max(m, 1))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            yield part, self.columns(part).read()

    def __rmatmul__(self, left: Array) -> Array:
        """left @ cells: (m,) or (k, m) -> (n,) or (k, n)."""
        return np.concatenate([left @ rows.T for _, rows in self.blocks()], axis=-1)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        return _matmul(self, ufunc, method, inputs)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise whole_needed(*self.shape)


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """The columns of stored cells as rows: (n, m).

    Parameters
    ----------
    cells : StoredCells
        The table.
    """

    cells: StoredCells

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.cells.shape
        return n, m

    @property
    def T(self) -> StoredCells:
        return self.cells

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        columns, rows = key if isinstance(key, tuple) else (key, slice(None))
        some = self.cells[rows, columns]
        return StoredColumns(some) if isinstance(some, StoredCells) else np.ascontiguousarray(some.T)

    def __matmul__(self, right: Array) -> Array:
        """(n, m) @ (m,) or (m, k)."""
        return np.concatenate([rows @ right for _, rows in self.cells.blocks()])

    def __rmatmul__(self, left: Array) -> Array:
        """left @ columns: (n,) -> (m,)."""
        total = np.zeros(self.shape[1])
        for part, rows in self.cells.blocks():
            total += left[part] @ rows
        return total

    def mean(self, axis: int) -> Array:
        """(n,) of each column."""
        assert axis == 1
        return np.concatenate([rows.mean(axis=1) for _, rows in self.cells.blocks()])

    def centre(self, centre: Array) -> StoredColumns:
        """Less something for each column."""
        return StoredColumns(self.cells.scale(centre, np.ones(len(centre))))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        return _matmul(self, ufunc, method, inputs)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise whole_needed(*self.cells.shape)


def _matmul(cells: StoredCells | StoredColumns, ufunc: Any, method: str, inputs: tuple[Any, ...]) -> Array:
    """An array times stored cells; any other arithmetic would need them whole."""
    if ufunc is np.matmul and method == "__call__" and inputs[1] is cells and isinstance(inputs[0], np.ndarray):
        return np.asarray(cells.__rmatmul__(inputs[0]))
    raise whole_needed(*(cells.shape if isinstance(cells, StoredCells) else cells.shape[::-1]))


def whole_needed(m: int, n: int) -> InputError:
    """The refusal of a method that would need all cells at once."""
    return InputError(
        f"the table of {m:,} rows and {n:,} columns is read in blocks of columns, and this method needs it whole: "
        'use prefilter=("fisher", 10000), or another method on the linear or the Gaussian kernel'
    )


def is_stored(Z: Any) -> bool:
    """Whether cells stay in a file."""
    return isinstance(Z, (StoredCells, StoredColumns))


class HDF5Cells:
    """A dense dataset of an HDF5 file, opened where it is read: it can be sent to other processes.

    Parameters
    ----------
    path : str
        The file.
    name : str
        The dataset.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        self._data: Any = None
        self.shape: tuple[int, int] = self.data.shape

    @property
    def data(self) -> Any:
        """The dataset."""
        if self._data is None:
            import h5py  # type: ignore[import-not-found,import-untyped,unused-ignore]

            self._data = h5py.File(self.path, "r")[self.name]
        return self._data

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_data": None}


def as_stored(X: Any) -> tuple[StoredCells, list[str] | None] | None:
    """The cells of a memory map that is too large to be read whole, or of AnnData that stays in its file, with names.

    None for any other table.
    """
    if isinstance(X, StoredCells):
        return X, None
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub" and X.size > IN_MEMORY:
        return StoredCells(X), None
    if is_anndata(X) and getattr(X, "isbacked", False) and hasattr(X.X, "name"):
        return StoredCells(HDF5Cells(str(X.filename), X.X.name)), [str(name) for name in X.var_names]
    return None


def as_memory(X: Any) -> Any:
    """An AnnData object with its matrix in memory; one without a matrix is refused."""
    X = X.to_memory() if getattr(X, "isbacked", False) else X
    matrix_of(X)
    return X


def matrix_of(data: Any, layer: str | None = None, name: str = "the AnnData object") -> Any:
    """The matrix X of AnnData, or a layer of it; one that is not there is refused."""
    if layer is None:
        if data.X is None:
            raise InputError(f"{name} has no matrix X: write what is to be selected from into X (adata.X)")
        return data.X
    if layer not in data.layers:
        raise InputError(f"layer is {layer!r}; {name} has {listing([*data.layers], 10) or 'no layers'}")
    return data.layers[layer]


def anndata_frame(data: Any, layer: str | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The matrix of AnnData, or a layer of it, with its names; some of its columns, as far as it has them."""
    matrix_of(data, layer)
    if columns is not None:
        known = {str(name) for name in data.var_names}
        data = data[:, [name for name in columns if name in known]]
    data = data.to_memory() if getattr(data, "isbacked", False) else data
    frame: pd.DataFrame = data.to_df() if layer is None else data.to_df(layer=layer)
    return frame


def is_anndata(X: Any) -> bool:
    """Whether this is an AnnData object."""
    return all(hasattr(X, name) for name in ("obs", "var", "to_df"))
