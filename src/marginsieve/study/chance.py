"""Could chance have done it? The score of the study against its scores on shuffled labels.

The statistic is the largest of the main method's scores at several sizes and that of all features, by folds in which
the search is run anew. The largest is taken for the shuffled labels too, so that looking at a short list and at all
features does not double the claims. It is always computed: without a signal the scores of such folds vary more than any
interval of one table says.
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
from .selection import StudyOptions
from .units import Method, PreparedMethod, UnitTable

LEVEL = 0.04  # of the test: at 99 shuffles a claim without a signal is made in 4 % of tables
SHUFFLES = 99
SIZES = 8
FOLDS = 5


@dataclass(frozen=True)
class Chance:
    """Whether the scores are above chance: `p` is the share of labellings that score as well, ours included."""

    evident: bool
    p: float
    shuffles: int


def above_chance(
    methods: Sequence[tuple[Method, PreparedMethod]],
    table: UnitTable,
    choice: Choice,
    options: StudyOptions,
    shuffles: int = SHUFFLES,
) -> Chance:
    """(1 + shuffles that score as well) / (1 + shuffles), and whether that is evidence.

    For a method whose search is expensive, the filter of all features is searched instead.
    """
    main = methods[0][1] if is_cheap(methods[0][0]) else methods[-1][1]
    plans = [replace(main.plan, ensemble=None), methods[-1][1].plan]
    rng = np.random.default_rng(options.random_state)
    part, _ = table.encoded.part()
    sample, boosted = choose_rows(part, min(SHUFFLED_ROWS, choice.max_samples or SHUFFLED_ROWS), rng)
    part = Part(part.table, part.y, boosted, part.groups).take(sample)
    searched = search_once(plans[0], part, rng)
    grid = size_grid(searched.ready.most, max(1, len(searched.problem.keep)))
    some = tuple(sorted({grid[int(k)] for k in np.linspace(0, len(grid) - 1, SIZES)}))
    sizes = (some, (len(searched.ready.usable),))
    orders = [np.arange(len(part.y)), *(_order(part, rng) for _ in range(shuffles))]
    seed = int(rng.integers(2**31))
    names = table.encoded.target.classes.tolist()
    values = parallel(options.n_jobs)(delayed(_best)(plans, part, order, sizes, names, seed) for order in orders)
    p = float(np.mean(np.array(values) >= values[0] - 1e-12))
    return Chance(p <= LEVEL, p, shuffles)


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


def _best(
    plans: Sequence[Plan],
    part: Part,
    order: IntArray,
    sizes: Sequence[tuple[int, ...]],
    names: list[Any],
    seed: int,
) -> float:
    """The best score over the sizes of each plan, of folds in which the search was run on these labels."""
    moved = Part(part.table, part.y[order], part.weight[order], part.groups)
    if len(np.unique(moved.y)) < len(names):
        return float("-inf")
    (folds,), _ = inner_folds(FOLDS, moved, names, np.random.default_rng(seed))
    scores = []
    for plan, some in zip(plans, sizes, strict=True):
        held = hold_out(plan, moved, some, folds, np.random.SeedSequence(seed), None)
        scores.append(np.nanmax(held.scores(moved.y, moved.weight, plan)[0]))
    return float(max(scores))
