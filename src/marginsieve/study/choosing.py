"""Which methods a study runs on a table, and how often: by the table's shape and a budget of minutes, never by a clock.

The first method is the one whose features are presented; it is fixed beforehand, so that its score is not the best of
several. The same table, minutes and number of workers give the same choice on every machine: what a fit costs is taken
from a table of measured seconds, not measured anew.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import recipes
from ..errors import InputError

ALL = "all features"
FOLDS, REPEATS = 5, 3
MOST_REPEATS = 10
RARE = 0.1  # a class with a smaller share is rare
ROWS = 5000  # rows that are trained on where there are more than can be
NUMBERS = ("stable_fisher", "svm_rfe", "l1_cssvm")
RARELY = ("stable_fisher", "l1_cssvm", "d_hell")
MIXED = ("clinical_rfe", "relieff", "hfs_nb")
MIXED_RARELY = ("hfs_nb", "clinical_rfe", "relieff")

# seconds of one fit with its inner folds: at least, for a million cells, for a million pairs of rows
SECONDS = {
    ALL: (0.1, 0.4, 1.0),
    "fisher": (0.2, 0.7, 1.3),
    "stable_fisher": (1.0, 3.2, 7.4),
    "su": (0.2, 0.7, 1.0),
    "relieff": (0.2, 5.0, 2.4),
    "d_hell": (0.3, 0.9, 1.3),
    "svm_rfe": (0.2, 0.8, 1.8),
    "clinical_rfe": (0.1, 4.0, 2.4),
    "hfs_nb": (0.4, 45.0, 1.7),
    "mkl_rfe": (0.7, 15.0, 9.6),
    "l1_cssvm": (1.5, 2.0, 0.9),
    "svm_l1": (2.0, 5.2, 2.9),
    "suspects": (5.0, 15.0, 6.0),
}
OTHERS = (3.0, 30.0, 15.0)  # what we have not measured
SHUFFLED_ROWS = 1000  # at most, in the comparison with shuffled labels
SHUFFLED_FITS = 60.0  # what that costs, in fits


@dataclass(frozen=True)
class Method:
    """A recipe with the settings that this table needs; `label` is what the report calls it."""

    label: str
    recipe: str
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def baseline(self) -> bool:
        return self.label == ALL

    @property
    def title(self) -> str:
        """As commands and reports write it."""
        return self.label.replace("_", "-")


@dataclass(frozen=True)
class Choice:
    """What a study runs; `why` says how it came to that."""

    methods: tuple[Method, ...]  # the main one first, the baseline last
    folds: int
    repeats: int
    rows: int | None
    suspects: bool
    why: tuple[str, ...]
    cost: dict[str, float]  # expected seconds of one fit, by label
    judging: float  # and of judging the labels
    shuffling: float  # and of the comparison with shuffled labels, where it is needed
    seconds: float  # of the whole with all workers


def seconds_of(name: str, rows: int, columns: int) -> float:
    """What one fit is expected to take."""
    least, cells, pairs = SECONDS.get(name, OTHERS)
    return least + cells * rows * columns / 1e6 + pairs * rows * rows / 1e6


def shuffling_of(name: str, rows: int, columns: int) -> float:
    """What the comparison with shuffled labels is expected to take: searches without an ensemble."""
    plain = {"stable_fisher": "fisher"}.get(name, name if name in SECONDS else ALL)
    return SHUFFLED_FITS * seconds_of(plain, min(rows, SHUFFLED_ROWS), columns)


def defaults(mixed: bool, prevalence: float, classes: int) -> tuple[tuple[str, ...], str]:
    """Names of recipes by the shape of the table, and the reason."""
    rare = prevalence < RARE and classes == 2
    if mixed:
        reason = "the table has categories or empty cells: methods on the clinical kernel"
        return (MIXED_RARELY, f"{reason}; a rare class ({prevalence:.1%}): tests first") if rare else (MIXED, reason)
    if rare:
        return RARELY, f"numbers, and a rare class ({prevalence:.1%}): methods that weigh both classes the same"
    return NUMBERS, "a table of numbers: a stable filter, elimination by a machine, an l1 penalty"


def choose(
    m: int,
    n: int,
    *,
    mixed: bool,
    prevalence: float,
    classes: int = 2,
    methods: str | Sequence[str] = "auto",
    minutes: float | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    rows: int | None = None,
    most_rows: int = 10_000,
    suspects: bool = True,
    kernel: str | None = None,
    n_jobs: int | None = None,
) -> Choice:
    """What to run on a table of m rows and n columns.

    Without minutes: the methods that fit the shape, five folds, three repeats. With minutes: as many of these methods,
    and then as many repeats up to ten, as are expected to fit in; what was asked for by name or number stays.
    """
    why = []
    if methods == "auto":
        names, reason = defaults(mixed, prevalence, classes)
        why.append(reason)
    else:
        asked = methods.split(",") if isinstance(methods, str) else methods
        names = tuple(dict.fromkeys(recipes.key(name) for name in asked if name.strip()))
        if not names:
            raise InputError("methods is empty; it must be 'auto' or names that `marginsieve methods` lists")
        why.append(f"{'method' if len(names) == 1 else 'methods'} as asked for")
    if rows is None and m > most_rows:
        rows = ROWS
        why.append(f"{m} rows: each fit is on every row of the rare class and a weighted sample, {ROWS} rows in all")
    folds = FOLDS if folds is None else folds
    used = round(min(m, rows or m) * (1 - 1 / folds))
    told = [Method(name, name, (("kernel", kernel),) if kernel else ()) for name in names]
    told.append(Method(ALL, "su" if mixed else "fisher", (("n_features_to_select", 1.0),)))
    cost = {method.label: seconds_of(method.label, used, n) for method in told}
    judging = seconds_of("suspects", used, n) if suspects else 0.0
    shuffling = shuffling_of(names[0], used, n)
    workers = _workers(n_jobs)
    chosen, count = told, REPEATS if repeats is None else repeats
    if minutes is not None:
        chosen, count, said = _within(
            60.0 * minutes * workers - judging - shuffling, told, cost, folds, repeats, shorten=methods == "auto"
        )
        why.append(said)
    total = judging + shuffling + sum(cost[method.label] for method in chosen) * (folds * count + 1)
    return Choice(tuple(chosen), folds, count, rows, suspects, tuple(why), cost, judging, shuffling, total / workers)


def _within(
    seconds: float,
    methods: list[Method],
    cost: dict[str, float],
    folds: int,
    repeats: int | None,
    shorten: bool,
) -> tuple[list[Method], int, str]:
    """The methods (never without the first and the baseline) and the repeats that fit into so many seconds."""
    chosen, least = list(methods), repeats or 1

    def total(some: Sequence[Method], times: int) -> float:
        return sum(cost[method.label] for method in some) * (folds * times + 1)

    while shorten and len(chosen) > 2 and total(chosen, least) > seconds:
        chosen.pop(-2)
    count = least
    while repeats is None and count < MOST_REPEATS and total(chosen, count + 1) <= seconds:
        count += 1
    over = "; that may take longer than asked" if total(chosen, count) > seconds else ""
    times = "1 repeat" if count == 1 else f"{count} repeats"
    said = f"{len(chosen) - 1} of {len(methods) - 1} methods and {times} by the budget of minutes{over}"
    return chosen, count, said


def _workers(n_jobs: int | None) -> int:
    cores = os.cpu_count() or 1
    return max(1, min(cores, n_jobs if n_jobs is not None and n_jobs > 0 else cores if n_jobs else 1))
