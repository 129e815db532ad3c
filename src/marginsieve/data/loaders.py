"""Tables by name: whoever has tables registers how they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError, listing

if TYPE_CHECKING:
    import pandas as pd


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
