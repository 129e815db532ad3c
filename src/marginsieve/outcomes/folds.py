"""Splits of rows: stratified by class, rows of one group together."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..contracts import BoolArray, IntArray

Splits = list[tuple[IntArray, IntArray]]


def stratified_folds(codes: IntArray, groups: IntArray | None, folds: int, random_state: int) -> Splits:
    """(train, test) row numbers of each fold."""
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(folds, shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros(len(codes)), codes, groups))


def units_per_class(codes: IntArray, groups: IntArray | None = None, classes: int | None = None) -> list[int]:
    """How many samples, or groups where there are any, each class has."""
    units = np.arange(len(codes)) if groups is None else groups
    known = np.unique(codes) if classes is None else range(classes)
    return [len(np.unique(units[codes == code])) for code in known]


def unit_name(groups: IntArray | None) -> str:
    """What is counted: samples, or groups of them."""
    return "samples" if groups is None else "groups"


def left_out(
    codes: IntArray, groups: IntArray | None, share: float, rng: np.random.Generator, at_least: int, leave: int
) -> BoolArray:
    """(m,) which rows are drawn: a share of each class, all rows of a group together.

    At least so many rows (or groups) of a class are drawn, and at least `leave` stay where they can.
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
