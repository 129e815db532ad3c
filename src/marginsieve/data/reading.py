"""Reading tables from files: text, spreadsheets, Parquet, Feather, AnnData; and tables by name.

What a reader changes it records in a `Ledger`, and it looks at the size of a table before it makes it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, listing, one_of
from .file_access import check_file, file_error
from .ledger import Ledger
from .spreadsheets import SPREADSHEETS, read_sheet
from .stored import matrix_of
from .text_files import RAGGED, TEXT, ReadOptions, read_text, refuse_large, tells_rows

if TYPE_CHECKING:
    import pandas as pd

OF_CELL = 24.0  # bytes of memory of a cell at the peak of reading, measured
LOOKED_AT = 100  # rows of a columnar file by which the length of texts is judged

# lines of R that write what is not read here as Parquet
CONVERSIONS = {
    ".rds": 'arrow::write_parquet(readRDS("PATH"), "STEM.parquet")',
    ".rda": 'load("PATH"); arrow::write_parquet(NAME, "STEM.parquet")',
    ".sav": 'arrow::write_parquet(haven::read_sav("PATH"), "STEM.parquet")',
    ".dta": 'arrow::write_parquet(haven::read_dta("PATH"), "STEM.parquet")',
    ".sas7bdat": 'arrow::write_parquet(haven::read_sas("PATH"), "STEM.parquet")',
}
CONVERSIONS[".rdata"] = CONVERSIONS[".rda"]

Reader = Callable[[Path, ReadOptions], "pd.DataFrame"]
READERS: dict[str, Reader] = {}


def register_reader(*kinds: str) -> Callable[[Reader], Reader]:
    """Make a function known that reads files with these endings into a pandas table.

    Parameters
    ----------
    *kinds : str
        Endings with their dot, such as ".sav".

    Returns
    -------
    callable
        A decorator that returns the function as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.data.reading import READERS, register_reader
    >>> @register_reader(".jsonl")
    ... def read_lines(path, options):
    ...     return pd.read_json(path, lines=True)
    >>> READERS.pop(".jsonl") is read_lines
    True
    """

    def add(read: Reader) -> Reader:
        READERS.update(dict.fromkeys(kinds, read))
        return read

    return add


def endings() -> str:
    """The endings that are read, for messages."""
    return f"{', '.join(READERS)} (text also .gz)"


def read_table(
    path: Path,
    *,
    target: str | None = None,
    groups: str | None = None,
    site: str | None = None,
    keep: Sequence[str] = (),
    whole: bool = False,
    ledger: Ledger | None = None,
    **how: Any,
) -> pd.DataFrame:
    """A file as a pandas table; what is not given about a text file is found out from its first rows.

    `how`: the `separator`, `decimal`, `encoding` of a text file, and whether it may be `ragged`; the `sheet` of a
    spreadsheet; the `layer` of AnnData.

    AnnData (.h5ad, the extra `marginsieve[anndata]`) becomes its matrix, with the columns of `obs` that are the target
    and tell groups and sites, and its cells' names as the index. A first column without a name that counts or names the
    rows is left out, unless it is in `keep` or the table is wanted whole. Rows of another length than the header are
    refused, or with `ragged="fill"` filled and cut. Of a spreadsheet the `sheet` is read, or the first that is not
    empty; of AnnData the `layer` in place of X. What is changed on the way is added to the `ledger`.
    """
    check_file(path, f"name a table that ends in {endings()}")
    one_of("reading", "ragged", how.get("ragged", "refuse"), RAGGED)
    kind = path.suffixes[-2].lower() if path.suffix.lower() == ".gz" and len(path.suffixes) > 1 else path.suffix.lower()
    if kind not in READERS:
        line = CONVERSIONS.get(kind, "").replace("PATH", path.name).replace("STEM", path.stem)
        hint = f" (in R: {line})" if line else ""
        raise InputError(f"{path.name!r} ends in {path.suffix!r}; it must end in {endings()}{hint}")
    for name, kinds in (("sheet", SPREADSHEETS), ("layer", (".h5ad",))):
        if how.get(name) is not None and kind not in kinds:
            raise InputError(f"{name} is {how[name]!r}, and {path.name!r} has none: it is of {', '.join(kinds)} files")
    ledger = Ledger() if ledger is None else ledger
    roles: dict[str, Any] = {"target": target, "groups": groups, "site": site, "keep": keep, "whole": whole}
    options = ReadOptions(kind, **roles, **how, ledger=ledger)
    try:
        frame = READERS[kind](path, options)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOMEM or "out of memory" in str(error):
            raise MemoryError(f"{path.name!r} does not fit into memory") from error
        if isinstance(error, OSError) and error.errno is not None:  # the system's; libraries raise others for bad files
            raise file_error(error, f"{path.name!r} cannot be read") from error
        raise InputError(f"{path.name!r} could not be read as {kind[1:].upper()}: {error}") from error
    if frame.empty:
        raise InputError(
            f"{path.name!r} has {frame.shape[0]} rows and {frame.shape[1]} columns: there is nothing in it"
        )
    frame.columns = [str(name) for name in frame.columns]
    return frame


register_reader(*TEXT)(read_text)
register_reader(*SPREADSHEETS)(read_sheet)


@register_reader(".parquet", ".pq")
def _read_parquet(path: Path, options: ReadOptions) -> pd.DataFrame:
    import pandas as pd

    _refuse_large_arrow(path, "parquet")
    return _place_index(pd.read_parquet(path), options)


@register_reader(".feather", ".arrow")
def _read_feather(path: Path, options: ReadOptions) -> pd.DataFrame:
    import pandas as pd

    _refuse_large_arrow(path, "feather")
    return _place_index(pd.read_feather(path), options)


def _refuse_large_arrow(path: Path, kind: str) -> None:
    """Refuse a table that does not fit into memory, by what the file says of it; texts are as long as in its top."""
    import pyarrow
    from pyarrow import dataset, ipc, parquet

    with suppress(pyarrow.ArrowException):  # which the reader says too
        table = dataset.dataset(path, format=kind)
        rows, names = table.count_rows(), table.schema.names
        texts = [j for j, dtype in enumerate(table.schema.types) if _is_long(dtype)]
        length = 0.0
        if texts and rows:
            if kind == "parquet":
                columns = [names[j] for j in texts]
                top = next(parquet.ParquetFile(path).iter_batches(LOOKED_AT, columns=columns, use_threads=False))
            else:
                options = ipc.IpcReadOptions(included_fields=texts, use_threads=False)
                top = ipc.open_file(pyarrow.memory_map(str(path)), options=options).get_batch(0)
            length = top.nbytes / max(top.num_rows, 1)
        needed = OF_CELL * rows * (len(names) - len(texts)) + 2.0 * length * rows
        refuse_large(path, rows, len(names), needed)


def _is_long(dtype: Any) -> bool:
    """Whether cells of an arrow column take more or less than a number."""
    try:
        return bool(dtype.bit_width > 64)
    except ValueError:  # of no fixed width
        return True


def _place_index(frame: pd.DataFrame, options: ReadOptions) -> pd.DataFrame:
    """The table with index columns that hold data as columns; those that count or name the rows stay its index."""
    import pandas as pd

    if isinstance(frame.index, pd.RangeIndex):
        return frame
    for level, name in enumerate(frame.index.names):
        column = frame.index.get_level_values(level).to_series(index=pd.RangeIndex(len(frame)))
        called = str(name if name is not None else f"index {level + 1}")
        if called in frame.columns:
            raise InputError(f"an index column of the file is called {called!r} like another column: rename one")
        data = options.keeps(called) or not tells_rows(column)
        if data:
            frame = frame.assign(**{called: column.to_numpy()})
        what = "was read as a column like the others" if data else "names the rows and is not used"
        options.ledger.add("column", "converted" if data else "dropped", called, "an index column of the file")
        options.ledger.remark("unnamed", f"the index column {called!r} {what}", [called])
    return frame


@register_reader(".h5ad")
def _read_anndata(path: Path, options: ReadOptions) -> pd.DataFrame:
    """The matrix of an AnnData file with its variables' names, and the columns of `obs` that have a role."""
    try:
        import anndata  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise InputError(f"{path.name!r} is AnnData: install the extra, pip install 'marginsieve[anndata]'") from error
    import pandas as pd

    _refuse_large_hdf5(path, "X" if options.layer is None else f"layers/{options.layer}")
    data = anndata.read_h5ad(path)
    matrix = matrix_of(data, options.layer, repr(path.name))
    roles = {"target": options.target, "groups": options.groups, "site": options.site}
    named = {role: name for role, name in roles.items() if name is not None}
    for role, name in named.items():
        if name not in data.obs.columns:
            known = listing([str(name) for name in data.obs.columns], most=10)
            raise InputError(f"{role} is {name!r}; the obs of {path.name!r} has the columns {known}")
        if name in set(map(str, data.var_names)):
            raise InputError(f"{role} is {name!r}, which is also the name of a variable of {path.name!r}: rename one")
    for name in [name for name in data.obs.columns if name not in named.values()]:
        options.ledger.add("column", "dropped", name, "a column of obs that has no role")
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    frame = pd.DataFrame(matrix, columns=[str(name) for name in data.var_names]).astype("float64")
    frame = frame.assign(**{name: data.obs[name].to_numpy() for name in named.values()})
    return frame.set_index(pd.Index(data.obs_names.astype(str), name="cell"))


def _refuse_large_hdf5(path: Path, matrix: str) -> None:
    """Refuse an AnnData file whose arrays, unpacked and the matrix as numbers, do not fit into memory."""
    import h5py  # type: ignore[import-not-found,import-untyped,unused-ignore]

    sizes: list[float] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda _, item: sizes.append(item.nbytes) if isinstance(item, h5py.Dataset) else None)
        X = file.get(matrix)
        shape = () if X is None else X.attrs["shape"] if isinstance(X, h5py.Group) else X.shape
        rows, columns = (int(side) for side in shape) if len(shape) == 2 else (0, 0)
        refuse_large(path, rows, columns, sum(sizes) + OF_CELL * rows * columns)


# Tables by name: whoever has tables registers how they are loaded.


@dataclass(frozen=True)
class NamedTable:
    """A binary problem with a name.

    Parameters
    ----------
    name : str
        Name of the table.
    X : DataFrame of shape (n_samples, n_features)
        The table.
    y : Series of shape (n_samples,)
        The labels: the positive class by its name, the others "rest".
    positive : str
        Name of the positive class.

    Examples
    --------
    >>> from marginsieve.data import NamedTable, make_cohort
    >>> cohort = make_cohort(40, 10, n_relevant=2, random_state=0)
    >>> table = NamedTable("TINY", cohort.X, cohort.y, positive="case")
    >>> table.name, table.X.shape
    ('TINY', (40, 10))
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    positive: str


Loader = Callable[[str], NamedTable]
_loaders: dict[str, Loader] = {}


def register_tables(names: Iterable[str], load: Loader) -> None:
    """Register tables by name, so that suites can name them.

    Parameters
    ----------
    names : iterable of str
        Names of the tables; case, spaces and hyphens are ignored when a table is loaded.
    load : callable
        Function that takes a name and returns a `NamedTable`.

    Examples
    --------
    >>> from marginsieve.data import NamedTable, load_table, make_cohort, register_tables
    >>> def load(name):
    ...     cohort = make_cohort(40, 10, n_relevant=2, random_state=0)
    ...     return NamedTable(name, cohort.X, cohort.y, "case")
    >>> register_tables(["TINY"], load)
    >>> load_table("tiny").X.shape
    (40, 10)
    """
    _loaders.update({_key(name): load for name in names})


def load_table(name: str) -> NamedTable:
    """Load a registered table.

    Parameters
    ----------
    name : str
        One of the registered names.

    Returns
    -------
    NamedTable
        The table with its labels.

    Examples
    --------
    >>> from marginsieve.data import NamedTable, load_table, make_cohort, register_tables
    >>> cohort = make_cohort(30, 5, n_relevant=2, random_state=0)
    >>> register_tables(["SMALL"], lambda name: NamedTable(name, cohort.X, cohort.y, "case"))
    >>> load_table("small").X.shape
    (30, 5)
    """
    if (key := _key(name)) not in _loaders:
        raise InputError(f"there is no table {name!r}; the names are {listing(sorted(_loaders), most=50) or 'none'}")
    return _loaders[key](key)


def _key(name: str) -> str:
    return name.strip().upper().replace(" ", "").replace("-", "")
