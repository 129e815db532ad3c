"""Splits and draws of rows: stratified, rows of one group together."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..contracts import BoolArray, IntArray

Splits = list[tuple[IntArray, IntArray]]


def stratified_folds(strata: IntArray, groups: IntArray | None, n_splits: int, random_state: int) -> Splits:
    """Folds stratified, with the rows of a group in the same fold.

    Parameters
    ----------
    strata : array of int of shape (m,)
        Stratum of each row, such as its class.
    groups : array of int of shape (m,) or None
        Group of each row.
    n_splits : int
        Number of folds.
    random_state : int
        Seed of the shuffling.

    Returns
    -------
    list of (array, array)
        Row numbers of the training part and of the test part of each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes.folds import stratified_folds
    >>> strata = np.array([0, 0, 1, 1])
    >>> [np.bincount(strata[test]).tolist() for train, test in stratified_folds(strata, None, 2, 0)]
    [[1, 1], [1, 1]]
    """
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(n_splits, shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros(len(strata)), strata, groups))


def units_per_stratum(strata: IntArray, groups: IntArray | None = None, count: int | None = None) -> list[int]:
    """The number of rows, or of groups where there are any, in each stratum: those that occur, or the first `count`."""
    units = np.arange(len(strata)) if groups is None else groups
    known = np.unique(strata) if count is None else range(count)
    return [len(np.unique(units[strata == stratum])) for stratum in known]


def unit_name(groups: IntArray | None) -> str:
    """The name of what is counted: samples, or groups of them.

    Parameters
    ----------
    groups : array of int of shape (m,) or None
        Group of each row.

    Returns
    -------
    str
        "samples" or "groups".

    Examples
    --------
    >>> from marginsieve.outcomes.folds import unit_name
    >>> unit_name(None)
    'samples'
    """
    return "samples" if groups is None else "groups"


def draw_share(
    strata: IntArray, groups: IntArray | None, share: float, rng: np.random.Generator, at_least: int, leave: int
) -> BoolArray:
    """Draw a share of the rows of each stratum, all rows of a group together.

    Parameters
    ----------
    strata : array of int of shape (m,)
        Stratum of each row, such as its class.
    groups : array of int of shape (m,) or None
        Group of each row.
    share : float
        Share of each stratum that is drawn.
    rng : numpy.random.Generator
        Source of the random numbers.
    at_least : int
        Smallest number of rows (or groups) of a stratum that are drawn.
    leave : int
        Smallest number of rows (or groups) of a stratum that stay, where possible.

    Returns
    -------
    array of bool of shape (m,)
        Which rows are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes.folds import draw_share
    >>> strata = np.array([0] * 6 + [1] * 4)
    >>> drawn = draw_share(strata, None, 0.5, np.random.default_rng(0), at_least=1, leave=2)
    >>> np.bincount(strata[drawn])
    array([3, 2])
    """
    units = np.arange(len(strata)) if groups is None else groups
    chosen: set[int] = set()
    for stratum in np.unique(strata):
        members = np.array(sorted(set(units[strata == stratum].tolist())))
        most = min(max(at_least, round(share * len(members))), max(len(members) - leave, min(1, len(members) - 1)))
        free = members[~np.isin(members, list(chosen))]
        count = most - (len(members) - len(free))
        chosen |= set(rng.choice(free, size=min(max(count, 0), len(free)), replace=False).tolist())
    for stratum in np.unique(strata) if leave else ():  # groups that hold two classes may have taken too much of one
        of_stratum = set(units[strata == stratum].tolist())
        lacking = min(leave, max(len(of_stratum) - 1, 1)) - len(of_stratum - chosen)
        chosen -= set(rng.permutation(sorted(of_stratum & chosen))[: max(lacking, 0)].tolist())
    return np.isin(units, list(chosen))
