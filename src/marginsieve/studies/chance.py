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
from ..engine.units import Method, PreparedMethod, UnitTable
from ..fitting.batched_searches import TrainingPart
from ..fitting.ensemble import batch_members
from ..fitting.false_share import shuffled_rows
from ..fitting.held_out import HeldOut, hold_out, inner_folds, size_grid
from ..fitting.settings import Plan
from ..fitting.training import search_once
from ..fitting.training_rows import Part, choose_rows
from ..fitting.view_averaging import BlendPlan, ViewPlan
from ..problem import is_filter
from ..solvers.processes import parallel
from .choosing import SHUFFLED_ROWS, Choice, is_cheap
from .selection import StudyOptions

LEVEL = 0.04  # of the test: at 99 shuffles a claim without a signal is made in 4 % of tables
FEWEST = 24  # shuffles with which p can be as low as the level
SIZES = 8
FOLDS = 5
SHUFFLED_PAIRS = 1e8  # pairs of rows times columns up to which a filter that compares rows is shuffled


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
) -> Chance:
    """(1 + shuffles that score as well) / (1 + shuffles), and whether that is evidence.

    What is searched: see `_shuffled`.
    """
    shuffles = options.n_permutations
    rng = np.random.default_rng(options.random_state)
    part = rows_to_shuffle(table, choice, rng)
    searches = []
    for view in _shuffled(methods, part):
        searched = search_once(view.plan, view.part(part), rng)
        grid = size_grid(searched.ready.most, max(1, len(searched.problem.keep)))
        some = tuple(sorted({grid[int(k)] for k in np.linspace(0, len(grid) - 1, SIZES)}))
        searches.append((view, (len(searched.ready.usable),) if view.place < 0 else some))
    orders = [np.arange(len(part.y)), *(shuffled_rows(part, rng) for _ in range(shuffles))]
    seed = int(rng.integers(2**31))
    names = table.encoded.target.classes.tolist()
    values = _batch_best(searches, part, orders, names, seed)
    if values is None:
        values = parallel(options.n_jobs)(delayed(_best)(searches, part, order, names, seed) for order in orders)
    p = float(np.mean(np.array(values) >= values[0] - 1e-12))
    return Chance(p <= LEVEL, p, shuffles)


def rows_to_shuffle(table: UnitTable, choice: Choice, rng: np.random.Generator) -> Part:
    """The rows on which labels are shuffled: all, or a sample."""
    part, _ = table.encoded.part()
    sample, boosted = choose_rows(part, min(SHUFFLED_ROWS, choice.max_samples or SHUFFLED_ROWS), rng)
    return Part(part.table, part.y, boosted, part.groups).take(sample)


def _shuffled(methods: Sequence[tuple[Method, PreparedMethod]], part: Part) -> list[ViewPlan]:
    """What is searched on shuffled labels: the main method, all features (place -1), and a non-linear filter.

    Of a blend the filters are searched; of a method whose search is expensive, the filter of all features. The
    non-linear filter is left out of tables on which it is expensive too.
    """
    every = np.arange(part.table.shape[1])
    (main, prepared), baseline = methods[0], _plans(methods[-1][1], every)[0]
    chosen = _plans(prepared, every) if is_cheap(main) else [baseline]
    pairs = len(part.y) ** 2 * len(every)
    for _, other in methods[1:-1]:
        if isinstance(other.plan, BlendPlan) and pairs <= SHUFFLED_PAIRS:
            filters = [view for view in other.plan.views if is_filter(view.plan.criterion)]
            chosen += [view for view in filters if not view.plan.kernel.linear][:1]
    return [*chosen, replace(baseline, place=-1)]


def _plans(prepared: PreparedMethod, every: IntArray) -> list[ViewPlan]:
    plan = prepared.plan
    if isinstance(plan, Plan):
        return [ViewPlan(replace(plan, ensemble=None), every, 0)]
    assert isinstance(plan, BlendPlan)
    return [view for view in plan.views if is_filter(view.plan.criterion)] or list(plan.views[:1])


def _best(
    searches: Sequence[tuple[ViewPlan, tuple[int, ...]]],
    part: Part,
    order: IntArray,
    names: list[Any],
    seed: int,
) -> float:
    """The best score over the sizes of each search, of folds in which the search was run on these labels."""
    moved = Part(part.table, part.y[order], part.weight[order], part.groups)
    if len(np.unique(moved.y)) < len(names):
        return float("-inf")
    (folds,), _ = inner_folds(FOLDS, moved, names, np.random.default_rng(seed))
    scores = []
    for view, sizes in searches:
        held = hold_out(view.plan, view.part(moved), sizes, folds, np.random.SeedSequence(seed), None)
        scores.append(np.nanmax(held.scores(moved.y, moved.weight, view.plan)[0]))
    return float(max(scores))


def _batch_best(
    searches: Sequence[tuple[ViewPlan, tuple[int, ...]]],
    part: Part,
    orders: Sequence[IntArray],
    names: list[Any],
    seed: int,
) -> list[float] | None:
    """`_best` of every labelling, in batches on a device; None where that is for the CPU."""
    moved = [Part(part.table, part.y[order], part.weight[order], part.groups) for order in orders]
    if any(view.plan.device == "cpu" for view, _ in searches) or any(len(np.unique(p.y)) < len(names) for p in moved):
        return None
    folds = [inner_folds(FOLDS, one, names, np.random.default_rng(seed))[0][0] for one in moved]
    best = np.full(len(orders), -np.inf)
    for view, sizes in searches:
        table = view.part(part).table
        jobs = [TrainingPart(*fold, one.y, one.weight) for one, some in zip(moved, folds, strict=True) for fold in some]
        members = batch_members(view.plan, table, jobs, sizes)
        if members is None:
            return None
        for k, one in enumerate(moved):
            held = HeldOut.of(sizes, members[k * len(folds[0]) : (k + 1) * len(folds[0])])
            best[k] = max(best[k], np.nanmax(held.scores(one.y, one.weight, view.plan)[0]))
    return best.tolist()
