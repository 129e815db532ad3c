"""Splits of rows: stratified by class, rows of one group together."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..contracts import BoolArray, IntArray

Splits = list[tuple[IntArray, IntArray]]


def stratified_folds(codes: IntArray, groups: IntArray | None, n_splits: int, random_state: int) -> Splits:
    """Folds stratified by class, with the rows of a group in the same fold.

    Parameters
    ----------
    codes : array of int of shape (m,)
        Class of each row.
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
    >>> from marginsieve.outcomes import stratified_folds
    >>> codes = np.array([0, 0, 1, 1])
    >>> [np.bincount(codes[test]).tolist() for train, test in stratified_folds(codes, None, 2, 0)]
    [[1, 1], [1, 1]]
    """
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(n_splits, shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros(len(codes)), codes, groups))


def units_per_class(codes: IntArray, groups: IntArray | None = None, classes: int | None = None) -> list[int]:
    """The number of samples, or of groups where there are any, in each class.

    Parameters
    ----------
    codes : array of int of shape (m,)
        Class of each row.
    groups : array of int of shape (m,) or None, default=None
        Group of each row.
    classes : int or None, default=None
        Number of classes; None counts those that occur in `codes`.

    Returns
    -------
    list of int
        A count for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import units_per_class
    >>> units_per_class(np.array([0, 0, 1, 1]), groups=np.array([0, 0, 1, 2]))
    [1, 2]
    """
    units = np.arange(len(codes)) if groups is None else groups
    known = np.unique(codes) if classes is None else range(classes)
    return [len(np.unique(units[codes == code])) for code in known]


def rarest(codes: IntArray, groups: IntArray | None = None, classes: int | None = None) -> tuple[int, int]:
    """The rarest class, and how many samples (or groups) it has.

    Parameters
    ----------
    codes : array of int of shape (m,)
        Class of each row.
    groups : array of int of shape (m,) or None, default=None
        Group of each row.
    classes : int or None, default=None
        Number of classes; None is one more than the largest code.

    Returns
    -------
    tuple of int
        Its code, and the number of its samples or groups.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import rarest
    >>> rarest(np.array([0, 1, 0, 1, 1]))
    (0, 2)
    """
    units = units_per_class(codes, groups, int(codes.max()) + 1 if classes is None else classes)
    code = int(np.argmin(units))
    return code, int(units[code])


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
    >>> from marginsieve.outcomes import unit_name
    >>> unit_name(None)
    'samples'
    """
    return "samples" if groups is None else "groups"


def left_out(
    codes: IntArray, groups: IntArray | None, share: float, rng: np.random.Generator, at_least: int, leave: int
) -> BoolArray:
    """Draw a share of the rows of each class, all rows of a group together.

    Parameters
    ----------
    codes : array of int of shape (m,)
        Class of each row.
    groups : array of int of shape (m,) or None
        Group of each row.
    share : float
        Share of each class that is drawn.
    rng : numpy.random.Generator
        Source of the random numbers.
    at_least : int
        Smallest number of rows (or groups) of a class that are drawn.
    leave : int
        Smallest number of rows (or groups) of a class that stay, where possible.

    Returns
    -------
    array of bool of shape (m,)
        Which rows are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import left_out
    >>> codes = np.array([0] * 6 + [1] * 4)
    >>> drawn = left_out(codes, None, 0.5, np.random.default_rng(0), at_least=1, leave=2)
    >>> np.bincount(codes[drawn])
    array([3, 2])
    """
    units = np.arange(len(codes)) if groups is None else groups
    chosen: set[int] = set()
    for code in np.unique(codes):
        of_class = np.array(sorted(set(units[codes == code].tolist())))
        most = min(max(at_least, round(share * len(of_class))), max(len(of_class) - leave, min(1, len(of_class) - 1)))
        free = of_class[~np.isin(of_class, list(chosen))]
        count = most - (len(of_class) - len(free))
        chosen |= set(rng.choice(free, size=min(max(count, 0), len(free)), replace=False).tolist())
    for code in np.unique(codes) if leave else ():  # groups that hold two classes may have taken too much of one
        members = set(units[codes == code].tolist())
        lacking = min(leave, max(len(members) - 1, 1)) - len(members - chosen)
        chosen -= set(rng.permutation(sorted(members & chosen))[: max(lacking, 0)].tolist())
    return np.isin(units, list(chosen))
