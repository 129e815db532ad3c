"""Which methods a study runs on a table, and how often, by the table's shape.

The first method is the one whose features are presented; it is fixed beforehand, so that its score is not the best of
several. What everything is expected to cost is taken from a table of measured seconds; `minutes` measures it on the
table itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import recipes
from ..engine.units import ALL_FEATURES, Method
from ..errors import InputError
from ..fitting.false_share import FEWEST_COLUMNS, FEWEST_PAIRS, FEWEST_SHUFFLES, PAIRS, SHUFFLES
from ..fitting.training_rows import MOST_ROWS
from .options import StudyOptions

FOLDS, REPEATS = 5, 3
ONE_REPEAT = 1000  # rows from which on the outer folds are drawn once: scores hardly depend on the draw
NUMBERS = "a table of numbers: two views in one, elimination by a machine, an l1 penalty, and a non-linear one"
PERMUTATIONS = 99
RARE = 0.1  # a class with a smaller share is rare
ROWS = 5000  # rows that are trained on where there are more than can be
# seconds of one fit: at least, for a million cells, for a million pairs of rows; recipes have theirs in the registry
ALL_COST = (0.1, 0.4, 1.0)
SUSPECTS_COST = (0.6, 3.0, 0.05)
SHUFFLED_ROWS = 1000  # at most, in the comparison with shuffled labels
SHUFFLED_FITS = 60.0  # what that costs, in fits
GPU_GAIN = 50.0  # by which searches on halves are faster on a GPU
HALF_SECONDS = 60.0  # CPU seconds that the searches on halves of the rows may take where no minutes are given
SEARCHES_OF_FIT = 25.0  # searches that a fit with its inner folds is about
SEARCH_SECONDS = 0.002  # a search, at least
LISTS, LIST_SECONDS = 5, 30.0  # lists that differ, where their searches take no longer than that


@dataclass(frozen=True)
class Choice:
    """What a study runs; `why` says how it came to that."""

    methods: tuple[Method, ...]  # the main one first, the baseline last
    cv: int
    n_repeats: int
    max_samples: int | None
    suspects: bool
    why: tuple[str, ...]
    cost: dict[str, float]  # expected seconds of one fit, by label
    judging: float  # and of judging the labels
    shuffling: float  # and of the comparison with shuffled labels, where it is needed
    halves: tuple[int, int]  # pairs of halves and shuffles for the share of false features; (0, 0): not estimated
    halving: float  # expected seconds of that
    alternatives: int  # lists that differ from the main one
    listing: float  # expected seconds of these
    permutations: int  # shuffles of the labels
    references: bool  # whether models of scikit-learn are scored beside
    referring: float  # expected seconds of that


def seconds_of(cost: tuple[float, float, float], rows: int, columns: int) -> float:
    """What one fit is expected to take."""
    least, cells, pairs = cost
    return least + cells * rows * columns / 1e6 + pairs * rows * rows / 1e6


def cost_of(method: Method) -> tuple[float, float, float]:
    """What a method costs, by the registry."""
    return ALL_COST if method.baseline else recipes.entry(method.recipe).cost


def is_cheap(method: Method) -> bool:
    """Whether the costs of a method's search were measured, so that it can be run on shuffled labels."""
    return method.baseline or recipes.entry(method.recipe).measured


def shuffling_of(method: Method, rows: int, columns: int) -> float:
    """What the comparison with shuffled labels is expected to take: searches without an ensemble."""
    plain = Method("fisher", "fisher") if method.recipe in ("stable_fisher", "two_views") else method
    cost = cost_of(plain) if is_cheap(method) else ALL_COST
    return SHUFFLED_FITS * seconds_of(cost, min(rows, SHUFFLED_ROWS), columns)


def search_seconds(method: Method, rows: float, columns: int) -> float:
    """What one search of a method without inner folds is expected to take."""
    _, cells, pairs = cost_of(method)
    return SEARCH_SECONDS + (cells * rows * columns + pairs * rows * rows) / 1e6 / SEARCHES_OF_FIT


def lists_of(method: Method, rows: int, columns: int, cv: int, given: int | None) -> tuple[int, float]:
    """How many lists that differ from the main one are made, and what they are expected to take."""
    one = search_seconds(method, rows, columns) * (cv + 1)
    count = LISTS if given is None else given
    if given is None and (LISTS + 1) * one > LIST_SECONDS:
        count = 0
    return count, (count + 1) * one if count else 0.0


def halves_of(method: Method, rows: int, columns: int, seconds: float) -> tuple[tuple[int, int], float]:
    """How many pairs of halves and shuffles fit in so many seconds, and what they are expected to take."""
    if columns < FEWEST_COLUMNS:
        return (0, 0), 0.0
    one = search_seconds(method, rows / 2, columns)
    for count in ((PAIRS, SHUFFLES), (FEWEST_PAIRS, FEWEST_SHUFFLES)):
        if (cost := 2 * count[0] * (count[1] + 1) * one) <= seconds:
            return count, cost
    return (0, 0), 0.0


def defaults(mixed: bool, prevalence: float, classes: int) -> tuple[tuple[str, ...], str]:
    """Names of recipes by the shape of the table, and the reason."""
    rare = prevalence < RARE and classes == 2
    if mixed:
        reason = "the table has categories or empty cells: methods on the clinical kernel"
        reason += f"; a rare class ({prevalence:.1%}): tests first" if rare else ""
        return recipes.defaults("mixed, rare class" if rare else "mixed"), reason
    if rare:
        reason = f"numbers, and a rare class ({prevalence:.1%}): methods that weigh both classes the same"
        return recipes.defaults("rare class"), reason
    return recipes.defaults("numbers"), NUMBERS


def choose(
    m: int,
    n: int,
    *,
    mixed: bool,
    prevalence: float,
    classes: int = 2,
    options: StudyOptions,
    on_gpu: bool = False,
) -> Choice:
    """What to run on a table of m rows and n columns: the methods that fit the shape, five folds, three repeats.

    From 1,000 rows on there is one repeat. With `on_gpu` the halves of the rows may take as long as they would take
    there.
    """
    why: list[str] = []
    methods, max_samples, kernel = options.methods, options.max_samples, options.kernel
    suspects, references = (name not in options.without for name in ("suspects", "references"))
    if methods == "auto":
        names, reason = defaults(mixed, prevalence, classes)
        why.append(reason)
    else:
        given = methods.split(",") if isinstance(methods, str) else methods
        names = tuple(dict.fromkeys(recipes.entry(name).name for name in given if name.strip()))
        if not names:
            raise InputError("methods is empty; it must be 'auto' or names that `marginsieve methods` lists")
        why.append(f"{'method' if len(names) == 1 else 'methods'} as given")
    if max_samples is None and m > MOST_ROWS:
        max_samples = ROWS
        why.append(f"{m} rows: each fit is on every row of the rare class and a weighted sample, {ROWS} rows in all")
    cv = FOLDS if options.cv is None else options.cv
    used = round(min(m, max_samples or m) * (1 - 1 / cv))
    every = [Method(name, name, (("kernel", kernel),) if kernel else ()) for name in names]
    every.append(Method(ALL_FEATURES, "su" if mixed else "fisher", (("n_features_to_select", 1.0),)))
    cost = {method.label: seconds_of(cost_of(method), used, n) for method in every}
    judging = seconds_of(SUSPECTS_COST, m, n) if suspects else 0.0
    shuffling = shuffling_of(every[0], used, n) * options.n_permutations / PERMUTATIONS
    halves, halving = halves_of(every[0], used, n, HALF_SECONDS * (GPU_GAIN if on_gpu else 1.0))
    lists, listing = lists_of(every[0], used, n, cv, options.alternatives)
    return Choice(
        methods=tuple(every),
        cv=cv,
        n_repeats=(1 if m >= ONE_REPEAT else REPEATS) if options.n_repeats is None else options.n_repeats,
        max_samples=max_samples,
        suspects=suspects,
        why=tuple(why),
        cost=cost,
        judging=judging,
        shuffling=shuffling,
        halves=halves,
        halving=halving,
        alternatives=lists,
        listing=listing,
        permutations=options.n_permutations,
        references=references,
        referring=reference_seconds(m, n) if references else 0.0,
    )


def reference_seconds(m: int, n: int) -> float:
    """What the models of scikit-learn are expected to take on five folds."""
    return FOLDS * (0.5 + 9e-6 * m * math.sqrt(n) * math.log2(m + 1) + 8e-7 * m * n)
