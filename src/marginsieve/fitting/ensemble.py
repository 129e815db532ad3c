"""A ranking on which many subsamples agree, and what each of them says of the rows that it did not see.

Each member is a search on 80 % of each class; features rank by the mean of log(rank + 5). The rows that a member left
out judge it: its decision values there choose the number of features and the threshold, and no inner folds are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed

from ..contracts import Array, IntArray, Path
from ..data.table import Table
from ..problem import WorkDone
from ..solvers.execution import one_thread, parallel
from .batched_searches import TrainingPart, rank_batched
from .rows import Rows
from .settings import Plan
from .training import Searched, decisions, search_once

LEFT_OUT = 0.2  # share of each class that a member does not see
OVERLAP = LEFT_OUT / (1.0 - LEFT_OUT)  # rows that a member judges for each row that it sees
RANK_OFFSET = 5.0  # added to a rank, the best of which is 0, before its logarithm is taken


@dataclass(frozen=True)
class Member:
    """A search on some rows: the features' ranks (n,), decision values (S, rows, k) of rows left out, and work done."""

    rank: Array
    rows: IntArray
    values: Array
    work: WorkDone

    @classmethod
    def from_search(cls, plan: Plan, searched: Searched, sizes: tuple[int, ...], part: Rows, rows: IntArray) -> Member:
        """The search judged on the rows of a part that it did not see; without sizes there are no decision values."""
        values = decisions(plan, searched, sizes, part.table.Z[rows]) if sizes else np.empty((0, len(rows), 0))
        rank = np.empty(part.table.shape[1])
        rank[searched.path.order] = np.arange(len(rank))
        return cls(rank, rows, values, searched.problem.work)


def run_search(plan: Plan, part: Rows, rng: np.random.Generator) -> Searched:
    """The path over all features of the part, averaged over subsamples where the plan says so."""
    searched = search_once(plan, part, rng)
    return average_rankings(plan, searched, members(plan, part, (), rng, None)) if plan.ensemble else searched


def run_searches(plans: Iterable[tuple[Plan, Rows]], rng: np.random.Generator) -> Iterator[Searched]:
    """`run_search` of several plans; what solved no machine is not run again where only the machine is another."""
    known: list[tuple[Plan, Rows, Searched]] = []
    for plan, part in plans:
        same = (searched for before, rows, searched in known if rows is part and before.differs_in_machine(plan))
        like = next(same, None)
        searched = run_search(plan, part, rng) if like is None else like.with_machine(plan.machine)
        if not searched.problem.solves:
            known.append((plan, part, searched))
        yield searched


def members(
    plan: Plan, part: Rows, sizes: tuple[int, ...], rng: np.random.Generator, n_jobs: int | None
) -> list[Member]:
    """The plan's members, with decision values at these sizes; the same ones whatever n_jobs is."""
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(plan.ensemble or 0)
    jobs = []
    for seed in seeds if plan.device != "cpu" else ():
        out = part.target.draw(LEFT_OUT, np.random.default_rng(seed), at_least=1, leave=2)
        jobs.append(TrainingPart(np.flatnonzero(~out), np.flatnonzero(out), part.target))
    in_step = batch_members(replace(plan, ensemble=None), part.table, jobs, sizes)
    if in_step is not None:
        return in_step
    return list(parallel(n_jobs)(delayed(_member)(plan, part, sizes, seed) for seed in seeds))


def batch_members(plan: Plan, table: Table, jobs: Sequence[TrainingPart], sizes: Sequence[int]) -> list[Member] | None:
    """Members on the training parts of some jobs, in batches on a device; None where that is for the CPU."""
    rankings = rank_batched(plan, table, jobs, sizes)
    if rankings is None:
        return None
    out = []
    for job, ranking in zip(jobs, rankings, strict=True):
        rank = np.empty(table.shape[1])
        rank[ranking.order] = np.arange(len(rank))
        out.append(Member(rank, job.test, ranking.values, ranking.work))
    return out


def _member(plan: Plan, part: Rows, sizes: tuple[int, ...], seed: np.random.SeedSequence) -> Member:
    rng = np.random.default_rng(seed)
    out = part.target.draw(LEFT_OUT, rng, at_least=1, leave=2)
    with one_thread():
        searched = search_once(plan, part.take(np.flatnonzero(~out)), rng)
        path = replace(searched.path, weights=(), stop=None, solutions=())  # as the final machine is fitted
        return Member.from_search(plan, replace(searched, path=path), sizes, part, np.flatnonzero(out))


def average_rankings(plan: Plan, whole: Searched, ensemble: list[Member]) -> Searched:
    """The search of the whole part with the order on which the members agree; features to keep come first."""
    mean = np.mean([np.log(member.rank + RANK_OFFSET) for member in ensemble], axis=0)
    for member in ensemble:
        whole.problem.count(member.work)
    every = np.arange(len(mean))
    constant = ~np.isin(every, whole.ready.usable)
    kept = np.isin(every, plan.keep) & ~constant
    order = np.lexsort((mean, constant, ~kept)).astype(np.intp)
    if plan.prefilter is not None:  # the width of a search among so many features, for those that are ahead now
        problem, ahead = whole.problem, np.sort(np.searchsorted(whole.ready.usable, order[: whole.ready.most]))
        weight = problem.feature_weight.copy()
        weight[ahead] = plan.kernel.start(problem.table.columns(ahead))
        whole = whole.with_weights(weight)
    was, reason = whole.path, f"ranking averaged over {len(ensemble)} subsamples"
    if was.stop is None:
        reason = f"{was.stop_reason}; {reason}"
    path = Path(order, -mean, was.steps, reason, n_selected=was.n_selected, scored_by=was.scored_by)
    return replace(whole, path=path)
