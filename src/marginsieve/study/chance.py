"""Could chance have done it? The main method's ranking on shuffled labels, where the intervals alone cannot tell.

A bootstrap draws test samples anew, not training samples: without a signal the scores vary up to twice as much as its
intervals say (measured: 50 x 1,000, standard deviation of the z value 1.9). So a score that is clear by FAR
standard errors is believed, one whose interval reaches chance is not, and one in between is compared with what the same
search gets on shuffled labels, in the same folds, at the best of the same sizes: the share of shuffles that do as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed

from ..contracts import IntArray
from ..fitting.held_out import hold_out, inner_folds, size_grid
from ..fitting.part import Part, choose_rows
from ..fitting.settings import Plan
from ..fitting.training import search_once
from ..solvers.processes import parallel
from .choosing import SHUFFLED_ROWS, Choice, is_cheap
from .findings import FEW, fewest_units
from .selection import Selection, StudyOptions
from .units import Method, PreparedMethod, UnitTable

FAR = 4.0  # standard errors above chance that need no test
LEVEL = 0.02
SHUFFLES = 99
SIZES = 10
FOLDS = 5


@dataclass(frozen=True)
class Chance:
    """Whether the scores are above chance: `p` and `shuffles` where that needed a test."""

    evident: bool
    p: float | None = None
    shuffles: int = 0


def above_chance(
    selection: Selection,
    methods: Sequence[tuple[Method, PreparedMethod]],
    table: UnitTable,
    choice: Choice,
    options: StudyOptions,
) -> Chance:
    """What to believe of the main method's scores."""
    scores, classes = selection.scores, len(selection.nested.classes)
    levels = {"balanced_accuracy": 1.0 / classes} | ({"auc": 0.5} if "auc" in scores.value else {})
    if not all(scores.low[name] > level for name, level in levels.items()):
        return Chance(False)
    fewest = fewest_units(selection.nested.truth, selection.nested.groups)
    # the interval is about four standard errors wide
    error = {name: max((scores.high[name] - scores.low[name]) / 3.92, 1e-12) for name in levels}
    if fewest >= FEW and all((scores.value[name] - level) / error[name] >= FAR for name, level in levels.items()):
        return Chance(True)
    p = shuffled(methods, table, choice, options)
    return Chance(p <= LEVEL, p, SHUFFLES)


def shuffled(
    methods: Sequence[tuple[Method, PreparedMethod]],
    table: UnitTable,
    choice: Choice,
    options: StudyOptions,
    shuffles: int = SHUFFLES,
) -> float:
    """(1 + shuffles that score as well) / (1 + shuffles); for a method whose search is dear all features' filter."""
    prepared = methods[0][1] if is_cheap(methods[0][0]) else methods[-1][1]
    plan = replace(prepared.plan, ensemble=None)
    rng = np.random.default_rng(options.random_state)
    part, _ = table.encoded.part()
    sample, boosted = choose_rows(part, min(SHUFFLED_ROWS, choice.max_samples or SHUFFLED_ROWS), rng)
    part = Part(part.table, part.y, boosted, part.groups).take(sample)
    searched = search_once(plan, part, rng)
    grid = size_grid([], searched.ready.most, max(1, len(searched.problem.keep)))
    sizes = tuple(sorted({grid[int(k)] for k in np.linspace(0, len(grid) - 1, SIZES)}))
    orders = [np.arange(len(part.y)), *(_order(part, rng) for _ in range(shuffles))]
    seed = int(rng.integers(2**31))
    names = table.encoded.target.classes.tolist()
    values = parallel(options.n_jobs)(delayed(_best)(plan, part, order, sizes, names, seed) for order in orders)
    return float(np.mean(np.array(values) >= values[0] - 1e-12))


def _order(part: Part, rng: np.random.Generator) -> IntArray:
    """Which row each row's label comes from; the labels of a group move together."""
    m = len(part.y)
    if part.groups is None:
        return np.asarray(rng.permutation(m), dtype=np.intp)
    _, place = np.unique(part.groups, return_inverse=True)
    members = [np.flatnonzero(place == k) for k in range(place.max() + 1)]
    order = np.empty(m, dtype=np.intp)
    for rows, source in zip(members, rng.permutation(len(members)), strict=True):
        order[rows] = np.resize(rng.permutation(members[source]), len(rows))
    return order


def _best(plan: Plan, part: Part, order: IntArray, sizes: tuple[int, ...], names: list[Any], seed: int) -> float:
    """The best score over the sizes, of folds in which the search was run on these labels."""
    moved = Part(part.table, part.y[order], part.weight[order], part.groups)
    if len(np.unique(moved.y)) < len(names):
        return float("-inf")
    folds, _ = inner_folds(FOLDS, moved, names, np.random.default_rng(seed))
    held = hold_out(plan, moved, sizes, folds, np.random.SeedSequence(seed), None)
    score, _ = held.scores(moved.y, moved.weight, plan)
    return float(np.nanmax(score))
