"""Searches on some of the rows, and what they say of the others: members of an ensemble, inner folds.

Each member of an ensemble is a search on 80 % of each class; features rank by the mean of log(rank + 5). The rows that
a member left out judge it: its decision values there choose the number of features and the threshold, and no inner
folds are needed. Else inner folds give the same: decision values of rows that neither the machine nor the selection has
seen, by number of features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.model_selection import PredefinedSplit

from ..contracts import Array, IntArray, LeavesToFolds, Path, Search
from ..data.table import Table
from ..errors import InputError, one_line, shown_value
from ..outcomes import FoldLimit, Target
from ..outcomes.target import Splits
from ..problem import WorkDone
from ..solvers.execution import one_thread, parallel
from .batched_searches import NotYet, TrainingPart, rank_batched
from .rows import Rows
from .settings import Plan
from .training import Searched, decisions, search_once

# -- members of an ensemble, or of folds ------------------------------------------------------------------------------

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
    """The path over all features of the part, averaged over subsamples where the plan says so.

    What the search leaves to folds is chosen in five of them.
    """
    if leaves_to_folds(plan):
        (folds,), _ = inner_folds(SEARCH_FOLDS, part, rng)
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        plan = choose_search(plan, part, spread_sizes(part.table.shape[1]), folds, seed, None)
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


# -- what a search leaves to folds ------------------------------------------------------------------------------------

SEARCH_FOLDS = 5


def spread_sizes(columns: int) -> tuple[int, ...]:
    """Some sizes from all columns down to a few."""
    return tuple(sorted({max(1, round(columns / 4**k)) for k in range(8)}))


def leaves_to_folds(plan: Plan) -> bool:
    """Whether inner folds choose something before the search begins."""
    return isinstance(plan.search, LeavesToFolds) and bool(plan.search.candidates)


def choose_search(
    plan: Plan,
    part: Rows,
    sizes: Sequence[int],
    folds: Sequence[tuple[IntArray, IntArray]],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
) -> Plan:
    """The plan with the search that scores best on the folds' held-out rows; of equal ones with the fewest features.

    A search that chooses a number of features is scored at that number, after each of its stages where it has them,
    less the price of that number (`choose_size`, "auto"); another search on average over `sizes`.
    """
    assert isinstance(plan.search, LeavesToFolds)
    seeds, best = seed.spawn(len(folds)), None
    chosen: Search = plan.search
    for candidate in plan.search.candidates:
        tried = replace(plan, search=candidate, ensemble=None)
        stages = parallel(n_jobs)(
            delayed(_values_by_stage)(tried, part, train, test, sizes, child)
            for (train, test), child in zip(folds, seeds, strict=True)
        )
        for k in range(max(map(len, stages))):
            # A fold in which the search ended earlier stays where it ended.
            values, counts = zip(*(fold[min(k, len(fold) - 1)] for fold in stages), strict=True)
            members = [
                Member(np.empty(0), test, value, WorkDone(0)) for (_, test), value in zip(folds, values, strict=True)
            ]
            score = float(np.mean(HeldOut.from_members(tuple(range(len(values[0]))), members).scores(part.target)[0]))
            if count := float(np.mean(counts)):
                score -= float(price_of_size(np.array(count), part.table.shape[1], "auto"))
            merit = (round(score, 12), -count)
            if best is None or merit > best:
                best, chosen = merit, plan.search.end_after(candidate, k + 1)
    return replace(plan, search=chosen)


def _values_by_stage(
    plan: Plan, part: Rows, train: IntArray, test: IntArray, sizes: Sequence[int], seed: np.random.SeedSequence
) -> list[tuple[Array, int]]:
    """By stage of the search (S, rows, k) decision values of the rows that it did not see, and how many features."""
    with one_thread():
        searched = search_once(plan, part.take(train), np.random.default_rng(seed))
        path, Z = searched.path, part.table.Z[test]
        out = []
        for stage in path.stages or (path,):
            count = None if stage.stop is None else stage.stop.size
            at = tuple(sizes) if count is None else (count,)
            out.append((decisions(plan, replace(searched, path=stage), at, Z), count or 0))
        return out


# -- what they say of rows that they did not see ----------------------------------------------------------------------

PRICES = {
    "auto": (0.002, 50),
    "short": (0.005, 20),
}  # of twice or half the usual size, in units of the score; that size
REPEATS = ((500, 4), (2000, 2))  # inner folds of tables with at most so many rows are drawn so often, of others once


@dataclass(frozen=True)
class HeldOut:
    """Decision values of held-out rows by size: values (S, rows, k); row and fold numbers (rows,).

    A row may be held out in several folds where these overlap.
    """

    sizes: tuple[int, ...]
    values: Array
    rows: IntArray
    fold: IntArray
    work: tuple[WorkDone, ...]
    overlap: float  # rows tested for each row trained on, where folds overlap

    @classmethod
    def from_members(cls, sizes: tuple[int, ...], members: Sequence[Member], overlap: float = 0.0) -> HeldOut:
        """From the rows that each of these searches did not see."""
        values = np.concatenate([member.values for member in members], axis=1)
        rows = np.concatenate([member.rows for member in members])
        fold = np.repeat(np.arange(len(members)), [len(member.rows) for member in members])
        return cls(sizes, values, rows, fold, tuple(member.work for member in members), overlap)

    def values_at(self, size: int) -> Array:
        """(rows, k) the values at a size."""
        return np.asarray(self.values[self.sizes.index(size)])

    def weight(self, weight: Array) -> Array:
        """(rows,) the rows' weights, shared among the times that a row is held out."""
        return np.asarray(weight[self.rows] / np.bincount(self.rows)[self.rows])

    def scores(self, target: Target) -> tuple[Array, Array]:
        """(S,) mean score over folds (`Target.score_values`) of these rows of a target, and its standard error.

        A fold counts by its `fold_mass`: AUC, by its pairs of a positive and a negative row, as AUC over the pairs
        within folds does. Where no fold can be scored, as in leave-one-out, the folds are pooled and there is no error.
        Folds that overlap are not independent: the variance of their mean is s^2 (1 / folds + overlap) (Nadeau and
        Bengio 2003).
        """
        folds = [np.flatnonzero(self.fold == k) for k in np.unique(self.fold)]
        parts = [target.take(self.rows[fold]) for fold in folds]
        table = np.column_stack([part.score_values(self.values[:, f]) for part, f in zip(parts, folds, strict=True)])
        if np.isnan(table).all():
            pooled = target.take(self.rows).score_values(self.values)
            return pooled, np.zeros(len(pooled))
        mass = np.array([part.fold_mass for part in parts])
        with np.errstate(all="ignore"):
            count = np.sum(~np.isnan(table), axis=1)
            spread = np.nanstd(table, axis=1, ddof=1) if table.shape[1] > 1 else np.zeros(len(table))
            error = spread * np.sqrt(1.0 / count + self.overlap)
        share = np.where(np.isnan(table), 0.0, mass)
        return np.sum(share * np.nan_to_num(table), axis=1) / share.sum(axis=1), np.nan_to_num(error)


def hold_out(
    plan: Plan,
    part: Rows,
    sizes: tuple[int, ...],
    folds: Sequence[tuple[IntArray, IntArray]],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
) -> HeldOut:
    """Run search and machine in each fold's training rows; decision values of its other rows at each size."""
    return hold_out_each([(plan, part, sizes, seed)], folds, n_jobs)[0]


def hold_out_each(
    searches: Sequence[tuple[Plan, Rows, tuple[int, ...], np.random.SeedSequence]],
    folds: Sequence[tuple[IntArray, IntArray]],
    n_jobs: int | None,
) -> list[HeldOut]:
    """`hold_out` of several plans on the same folds, side by side; plans on the same rows share what is the same."""
    held: dict[int, HeldOut] = {}
    waits = False
    together: list[list[int]] = []
    tested = np.bincount(np.concatenate([test for _, test in folds])).max()
    overlap = len(folds[0][1]) / len(folds[0][0]) if tested > 1 else 0.0
    for k, (plan, part, sizes, _) in enumerate(searches):
        jobs = [TrainingPart(train, test, part.target) for train, test in folds]
        try:
            members = batch_members(plan, part.table, jobs, sizes)
        except NotYet:  # the other searches ask too before this one waits
            waits = True
            continue
        if members is not None:
            held[k] = HeldOut.from_members(sizes, members, overlap)
            continue
        first = [searches[some[0]] for some in together]
        like = (place for place, search in enumerate(first) if search[1] is part and search[0].differs_in_machine(plan))
        if (place := next(like, None)) is None:
            together.append([k])
        else:
            together[place].append(k)
    if waits:
        raise NotYet
    tasks = (
        delayed(_one_fold)([searches[k][0] for k in some], part, train, test, [searches[k][2] for k in some], child)
        for some in together
        for _, part, _, seed in [searches[some[0]]]
        for (train, test), child in zip(folds, seed.spawn(len(folds)), strict=True)
    )
    done = parallel(n_jobs)(tasks) if together else []
    for place, some in enumerate(together):
        of_folds = done[place * len(folds) : (place + 1) * len(folds)]
        for which, k in enumerate(some):
            held[k] = HeldOut.from_members(searches[k][2], [members[which] for members in of_folds], overlap)
    return [held[k] for k in range(len(searches))]


def _one_fold(
    plans: Sequence[Plan],
    part: Rows,
    train: IntArray,
    test: IntArray,
    sizes: Sequence[tuple[int, ...]],
    seed: np.random.SeedSequence,
) -> list[Member]:
    trained = part.take(train)
    with one_thread():
        searches = run_searches([(plan, trained) for plan in plans], np.random.default_rng(seed))
        return [
            Member.from_search(plan, searched, some, part, test)
            for plan, searched, some in zip(plans, searches, sizes, strict=True)
        ]


def inner_folds(
    cv: Any, part: Rows, rng: np.random.Generator, repeated: bool = False
) -> tuple[list[Splits], str | None]:
    """The splits of a part, stratified (and by group where there are groups), and a remark where fewer were made.

    A `cv` that lists rows of the user's table is for `listed_folds`.

    A whole number `cv` is lowered to what the rarest class can fill; with `repeated` such folds are drawn several times
    where the part is small, since a curve over sizes from one draw of few rows is mostly noise.
    """
    if not isinstance(cv, (int, np.integer)):
        return [_folds_of_splitter(cv, part)], None
    if cv < 2:
        raise InputError(f"cv is {cv!r}; it must be 2 or more, or a splitter of scikit-learn")
    limit = require_folds(part.target)
    k = min(int(cv), limit.count)
    remark = f"{limit.reason} to train on, fewer than cv={cv}: {k} inner folds were made" if k < cv else None
    times = next((some for rows, some in REPEATS if len(part) <= rows), 1) if repeated else 1
    return [part.target.folds(k, int(rng.integers(2**31))) for _ in range(times)], remark


def require_folds(target: Target) -> FoldLimit:
    """How many folds can be made of these rows; refuses fewer than two."""
    limit = target.fold_limit()
    if limit.count < 2:
        raise InputError(
            f"{limit.reason}: inner folds need at least 2 of each class; to do without them give n_features_to_select "
            "a number and threshold='margin'"
        )
    return limit


def lists_rows(cv: Any) -> bool:
    """Whether `cv` names rows of the user's table, whatever the table that it is asked to split."""
    return isinstance(cv, PredefinedSplit) or not (isinstance(cv, (int, np.integer)) or hasattr(cv, "split"))


def listed_folds(cv: Any, part: Rows) -> Splits:
    """The folds of a list of (train, test) rows of the user's table, as places among the rows of a part.

    Rows that take no part (they have no weight, or are not in this part of the table) are in no fold. Those that are
    not in the part's sample are not trained on, but tested where the list says so. A fold that tests none of the rows
    is left out.
    """
    places = Places(part.row_numbers())
    in_sample = np.zeros(len(part), dtype=bool)
    in_sample[part.sample_rows] = True
    folds = []
    for train, test in _row_lists(cv, part.total or len(part)):
        inside = places.find(train)
        folds.append((inside[in_sample[inside]], places.find(test)))
    folds = [(train, test) for train, test in folds if len(test)]
    part.target.check_folds(folds)
    return folds


class Places:
    """Where the rows with given numbers are; a number may stand for several rows or for none."""

    def __init__(self, numbers: IntArray) -> None:
        self.order = np.argsort(numbers, kind="stable")
        self.sorted = numbers[self.order]

    def find(self, rows: IntArray) -> IntArray:
        """The places of these rows, in their order."""
        first, last = (np.searchsorted(self.sorted, rows, side) for side in ("left", "right"))
        count = last - first
        return self.order[np.repeat(last - np.cumsum(count), count) + np.arange(count.sum())]


def _row_lists(cv: Any, total: int) -> Splits:
    """The splits of a list: numbers of rows, or masks over all of them; refuses rows that the table does not have."""
    try:
        splits = list(cv.split() if isinstance(cv, PredefinedSplit) else cv)
        folds = [(_rows_of(train, total), _rows_of(test, total)) for train, test in splits]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cv is {shown_value(cv)}; it must be a whole number, a splitter or a list of splits ({one_line(error)})"
        ) from error
    if not folds:
        raise InputError("cv has no splits; it must be a whole number, a splitter or a list of splits")
    for k, fold in enumerate(folds):
        rows = np.concatenate(fold)
        if len(outside := rows[(rows < 0) | (rows >= total)]):
            raise InputError(f"split {k} of cv names row {outside[0]}; the table has rows 0 to {total - 1}")
    return folds


def _rows_of(side: Any, total: int) -> IntArray:
    rows = np.asarray(side)
    if rows.ndim != 1:
        raise ValueError("a side of a split must be a list of rows")
    if rows.dtype == bool:
        if len(rows) != total:
            raise ValueError(f"a mask has {len(rows)} rows and the table {total}")
        return np.flatnonzero(rows)
    if len(rows) and rows.dtype.kind not in "iu":
        raise ValueError(f"rows are numbered by whole numbers, not by {rows.dtype}")
    return rows.astype(np.intp)


def _folds_of_splitter(cv: Any, part: Rows) -> Splits:
    """The folds that a splitter makes of a part."""
    try:
        m, target = len(part), part.target
        splits = cv.split(np.zeros(m), target.strata, target.groups)
        folds = [(_rows_of(train, m), _rows_of(test, m)) for train, test in splits]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cv is {cv!r}; it must be a whole number, a splitter or a list of splits ({one_line(error)})"
        ) from error
    if not folds:
        raise InputError("cv makes no fold; it must make at least one pair of training and test rows")
    for k, fold in enumerate(folds):
        if len(outside := (rows := np.concatenate(fold))[(rows < 0) | (rows >= m)]):
            raise InputError(
                f"fold {k} of cv={cv!r} names row {outside[0]} of the {m} rows that it was to split: where "
                "it has rows of its own, give it as a list of splits"
            )
    target.check_folds(folds)
    return folds


def choose_size(sizes: Sequence[int], score: Array, columns: int, rule: str) -> int:
    """The size with the best smooth score; of other rules than "best" less a price for being far from a usual size.

    ::

        "best"   maximises  s(k)
        "auto"              s(k) - 0.002 log2(k / k0)^2,      k0 = min(50, sqrt(columns))
        "short"             s(k) - 0.005 log2(k / k0)^2,      k0 = min(20, sqrt(columns))

    s is the mean score over neighbouring sizes (`smooth_scores`). The price is what makes the size repeatable: where
    the curve is flat the size is near k0, and a curve that rises or falls by more than the price moves it.
    """
    at = np.asarray(sizes, dtype=float)
    value = smooth_scores(at, score)
    if rule in PRICES:
        value = value - price_of_size(at, columns, rule)
    return int(at[value >= value.max() - 1e-12].min())


def price_of_size(sizes: Array, columns: int, rule: str) -> Array:
    """What a rule takes from the score of a size for being far from the usual one."""
    price, usual = PRICES[rule]
    return np.asarray(price * np.log2(sizes / min(usual, np.sqrt(columns))) ** 2)


def smooth_scores(sizes: Array, score: Array) -> Array:
    """The mean score over sizes within a factor of two, with weights that fall linearly in the logarithm."""
    apart = np.abs(np.log2(sizes[:, None] / sizes[None, :]))
    weight = np.clip(1.0 - apart, 0.0, None)
    return np.asarray(weight @ score / weight.sum(axis=1))
