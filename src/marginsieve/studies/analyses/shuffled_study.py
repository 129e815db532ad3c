"""The scores of the study's own searches against their scores on shuffled labels: minutes, where it is asked for.

The statistic is the largest of the main method's scores at several sizes and that of all features, by folds in which
the search is run anew. The largest is taken for the shuffled labels too, so that looking at a short list and at all
features does not double the claims. It is always computed: without a signal the scores of such folds vary more than any
interval of one table says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed

from ...contracts import IntArray
from ...engine.units import Method, PreparedMethod, UnitTable
from ...fitting.batched_searches import TrainingPart
from ...fitting.held_out import HeldOut, batch_members, hold_out, inner_folds, run_search
from ...fitting.rows import Rows
from ...fitting.settings import Plan
from ...fitting.view_averaging import BlendPlan, ViewPlan
from ...problem import is_filter, size_grid
from ...solvers.execution import parallel
from ..analysis import Facts, Level, StudyRun, register_analysis
from ..options import StudyOptions
from ..planning import ALL_COST, cost_of, fit_seconds, is_cheap

SHUFFLES = 99
SIZES = 8
FOLDS = 5
SHUFFLED_ROWS = 1000  # at most
SHUFFLED_FITS = 60.0  # what 99 shuffles cost, in fits
SHUFFLED_PAIRS = 1e8  # pairs of rows times columns up to which a filter that compares rows is shuffled


@dataclass(frozen=True)
class Chance:
    """`p` is the share of labellings that score as well, ours included."""

    p: float
    shuffles: int


@register_analysis
class ShuffledStudy:
    """The searches of the study, run anew on shuffled labels."""

    name, order, template, unit = "shuffled-study", 5.5, "", "labelling"

    def applies(self, facts: Facts) -> str | None:
        """Where it is asked for: it takes minutes, and the test in closed form is not weaker."""
        return None if self.name in facts.options.with_ else "it was not asked for"

    def levels(self, facts: Facts) -> list[Level]:
        """As many shuffles as were given."""
        return [Level((facts.options.n_permutations,), 0)]

    def cost(self, facts: Facts) -> float:
        """Searches of the main method without an ensemble."""
        (shuffles,) = facts.effort
        if (unit := facts.seconds_of_unit(self.unit)) is not None:
            return unit * shuffles
        plain = Method("fisher", "fisher") if facts.main.recipe in ("stable_fisher", "two_views") else facts.main
        cost, rows = cost_of(plain) if is_cheap(facts.main) else ALL_COST, min(facts.used, SHUFFLED_ROWS)
        return SHUFFLED_FITS * fit_seconds(cost, rows, facts.shape.columns) * shuffles / SHUFFLES

    def measure(self, run: StudyRun) -> None:
        """The true labels."""
        above_chance(run, 0)

    def run(self, run: StudyRun) -> dict[str, Any]:
        """The p and the number of shuffles."""
        return asdict(above_chance(run, run.choice.efforts[self.name][0]))

    def sentence(self, result: dict[str, Any]) -> str:
        """How often shuffled labels score as well."""
        known = result["analyses"][self.name]
        share, count = f"{known['p']:.0%}", known["shuffles"]
        return f"Of this study and {count} on shuffled labels {share} score as well as this one (p = {known['p']:.2g})."


def above_chance(run: StudyRun, shuffles: int) -> Chance:
    """(1 + shuffles that score as well) / (1 + shuffles).

    What is searched: see `_choose_searches`.
    """
    table, options = run.table, run.choice.options
    rng = np.random.default_rng(options.random_state)
    part = rows_to_shuffle(table, options, rng)
    searches = []
    for view in _choose_searches(run.methods, part):
        searched = run_search(view.plan, view.part(part), rng)
        grid = size_grid(searched.ready.most, max(1, len(searched.problem.keep)))
        some = tuple(sorted({grid[int(k)] for k in np.linspace(0, len(grid) - 1, SIZES)}))
        searches.append((view, (len(searched.ready.usable),) if view.place < 0 else some))
    dealt = [part, *(replace(part, target=part.target.shuffle(rng)) for _ in range(shuffles))]
    seed = int(rng.integers(2**31))
    values = _best_scores_batched(searches, dealt, seed)
    if values is None:
        values = parallel(run.options.n_jobs)(delayed(_best_score)(searches, rows, seed) for rows in dealt)
    p = float(np.mean(np.array(values) >= values[0] - 1e-12))
    return Chance(p, shuffles)


def rows_to_shuffle(table: UnitTable, options: StudyOptions, rng: np.random.Generator) -> Rows:
    """The rows on which labels are shuffled: all, or a sample."""
    return table.rows.active.with_sample(min(SHUFFLED_ROWS, options.max_samples or SHUFFLED_ROWS), rng).sample_part


def _choose_searches(methods: Sequence[tuple[Method, PreparedMethod]], part: Rows) -> list[ViewPlan]:
    """What is searched on shuffled labels: the main method, all features (place -1), and a non-linear filter.

    Of a blend the filters are searched; of a method whose search is expensive, the filter of all features. The
    non-linear filter is left out of tables on which it is expensive too.
    """
    every = np.arange(part.table.shape[1])
    (main, prepared), baseline = methods[0], _plans(methods[-1][1], every)[0]
    chosen = _plans(prepared, every) if is_cheap(main) else [baseline]
    pairs = len(part) ** 2 * len(every)
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


def _best_score(searches: Sequence[tuple[ViewPlan, tuple[int, ...]]], rows: Rows, seed: int) -> float:
    """The best score over the sizes of each search, of folds in which the search was run on these labels."""
    if not rows.target.complete:
        return float("-inf")
    (folds,), _ = inner_folds(FOLDS, rows, np.random.default_rng(seed))
    scores = []
    for view, sizes in searches:
        held = hold_out(view.plan, view.part(rows), sizes, folds, np.random.SeedSequence(seed), None)
        scores.append(np.nanmax(held.scores(rows.target)[0]))
    return float(max(scores))


def _best_scores_batched(
    searches: Sequence[tuple[ViewPlan, tuple[int, ...]]], dealt: Sequence[Rows], seed: int
) -> list[float] | None:
    """`_best_score` of every labelling, in batches on a device; None where that is for the CPU."""
    if any(view.plan.device == "cpu" for view, _ in searches) or not all(rows.target.complete for rows in dealt):
        return None
    folds = [inner_folds(FOLDS, rows, np.random.default_rng(seed))[0][0] for rows in dealt]
    best = np.full(len(dealt), -np.inf)
    for view, sizes in searches:
        jobs = [TrainingPart(*fold, rows.target) for rows, some in zip(dealt, folds, strict=True) for fold in some]
        members = batch_members(view.plan, view.part(dealt[0]).table, jobs, sizes)
        if members is None:
            return None
        for k, rows in enumerate(dealt):
            held = HeldOut.from_members(sizes, members[k * len(folds[0]) : (k + 1) * len(folds[0])])
            best[k] = max(best[k], np.nanmax(held.scores(rows.target)[0]))
    return best.tolist()
