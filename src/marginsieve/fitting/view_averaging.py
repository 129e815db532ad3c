"""Several views of one table in one model: each view selects features for itself, their decision values are averaged.

All views have the same inner folds. A view's values there choose its number of features, and bring it to the scale of
the others: the middle between the classes' medians becomes 0, the standard deviation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Outcome, Path
from ..data.table import Table
from ..errors import InputError
from ..outcomes import Target
from ..problem import size_grid
from .batched_searches import fits_batches
from .held_out import HeldOut, hold_out_each, require_folds, run_searches, smooth_scores
from .parts import kernel_of, kinds_taken, machine_of
from .procedure import (
    ONE_LIST,
    TELLS_NOTHING,
    Fitted,
    ListRequest,
    constant_and_equal,
    decide,
    describe_lists,
    groups_of,
    inner_splits,
    rows_of_fit,
    seed_sequence,
    table_notes,
    unconverged_note,
)
from .rows import Rows
from .settings import (
    AnyPlan,
    CommonSettings,
    Plan,
    Settings,
    feature_count,
    keep_places,
    make_plan,
    refuse_too_large,
    size_choice,
)
from .training import Blended, Searched, average_values, fit_model, varying_columns

COMBINE = ("mean", "best")


@dataclass(frozen=True)
class ViewPlan:
    """The plan of a view and the columns of the table that it sees; `place`: which of the blend's views it is."""

    plan: Plan
    columns: IntArray
    place: int

    def part(self, part: Rows) -> Rows:
        """The rows as this view sees them."""
        return part.columns(self.columns)


@dataclass(frozen=True)
class BlendPlan:
    """The plans of the views."""

    views: tuple[ViewPlan, ...]
    outcome: Outcome

    @property
    def linear_in_rows(self) -> bool:
        """Whether no view makes a matrix of rows by rows, where there are fewer columns than rows."""
        return all(view.plan.linear_in_rows for view in self.views)


def blend_plan(given_views: Sequence[Settings], outcome: Outcome, encoded: Rows) -> BlendPlan:
    """The plan of every view on these rows; what the views keep is written into their settings.

    A view sees the columns of the kinds that its kernel takes; one whose kernel takes no missing cells has them filled
    with the means of the training rows. A view that would see nothing is left out.
    """
    encoded.target.refuse()
    part, views = encoded.active, []
    for place, view in enumerate(given_views):
        kernel = kernel_of(view.kernel)
        taken = kinds_taken(kernel, machine_of(view.machine))
        columns = np.flatnonzero([kind in taken for kind in encoded.schema.kind]).astype(np.intp)
        if not len(columns):
            continue
        kept = keep_places(view.keep, encoded.schema.names)
        view.keep = [int(k) for k in np.flatnonzero(np.isin(columns, kept))] or None
        plan = make_plan(view, part.columns(columns))
        views.append(ViewPlan(replace(plan, fills=not kernel.missing), columns, place))
    if not views:
        raise InputError("no view takes a column of this table: give one whose kernel takes categories")
    return BlendPlan(tuple(views), outcome)


@dataclass(frozen=True)
class _ViewSearch:
    """A view's search on all rows, the sizes that were looked at, its values on held-out rows, and its choice."""

    view: ViewPlan
    searched: Searched
    sizes: tuple[int, ...]
    held: HeldOut
    score: Array
    size: int
    short: int | None = None  # its size in the short list, where a rule chooses sizes

    @property
    def order(self) -> IntArray:
        """The view's ranking, in the numbering of the whole table."""
        return self.view.columns[self.searched.path.order]

    @property
    def best(self) -> float:
        """The smoothed score at its size."""
        return float(smooth_scores(np.asarray(self.sizes, dtype=float), self.score)[self.sizes.index(self.size)])


def fit_blend(
    settings: CommonSettings,
    given_views: Sequence[Settings],
    combine: str,
    encoded: Rows,
    seed: np.random.SeedSequence | None,
    plan: BlendPlan,
    lists: ListRequest = ONE_LIST,
) -> Fitted:
    """The whole fit on encoded rows; `lists` as in `fit_encoded`."""
    rng = np.random.default_rng(seed_sequence(settings.random_state) if seed is None else seed)
    rows = rows_of_fit(settings, encoded, rng, plan)
    require_folds(rows.sample_part.target)
    constant, duplicates = constant_and_equal(encoded.schema, rows.sample_part)
    views, remarks = _run_views(settings, given_views, combine == "mean", plan, rows, rng, lists)

    def average(views: list[_ViewSearch]) -> Fitted:
        if combine == "best":
            views = [max(views, key=lambda view: view.best)]
        return replace(_average_views(plan, rows, views), rows=rows.row_numbers()[rows.sample_rows])

    def describe(fitted: Fitted) -> Fitted:
        flat = not np.ptp(fitted.model.decision(rows.sample_part.table.Z), axis=0).any()
        notes = tuple(dict.fromkeys([*remarks, *([TELLS_NOTHING] if flat else [])]))
        groups = groups_of(settings.similar, fitted, constant, rows.sample_part)
        return replace(fitted, constant=constant, duplicates=duplicates, groups=groups, notes=notes)

    fitted = average(views)
    if any(view.short is not None for view in views):
        short = [view if view.short is None else replace(view, size=view.short) for view in views]
        fitted = replace(fitted, short=average(short))
    return describe_lists(fitted, describe)


def _run_views(
    settings: CommonSettings,
    given_views: Sequence[Settings],
    shares_list: bool,
    plan: BlendPlan,
    rows: Rows,
    rng: np.random.Generator,
    lists: ListRequest,
) -> tuple[list[_ViewSearch], list[str]]:
    """Every view's search, held-out values and number of features; and remarks."""
    remarks, n = list[str](), rows.table.shape[1]
    count = feature_count(settings, n)
    ready = []
    ran = run_searches(((view.plan, view.part(rows.sample_part)) for view in plan.views), rng)
    for view in plan.views:
        of_view, seen = given_views[view.place], view.part(rows.sample_part)
        refuse_too_large(of_view, view.plan, view.part(rows))
        lost = tuple(np.array(seen.table.names, dtype=object)[~varying_columns(seen.table)].tolist())
        remarks += table_notes(view.plan, seen.table.names, lost, seen)
        searched = next(ran)
        kept, most = len(searched.problem.keep), searched.ready.most
        choice = size_choice(of_view, seen.table.shape[1], len(searched.ready.usable), most, kept, searched.path.stop)
        ready.append((view, searched, choice))
    if count is not None and all(choice.note for _, _, choice in ready):
        remarks.append(ready[0][2].note)
    wishes: list[int | None] = [None] * len(ready)
    if count is not None and shares_list:
        wishes = [*sizes_of_list([view.columns[searched.path.order] for view, searched, _ in ready], count)]
    ready = [entry for entry, wished in zip(ready, wishes, strict=True) if wished != 0]  # a short list is for few views
    wishes = [wished for wished in wishes if wished != 0]
    sizes = []
    for (_, searched, choice), wished in zip(ready, wishes, strict=True):
        kept, most = len(searched.problem.keep), searched.ready.most
        fixed = choice.size if wished is None else max(min(wished, most), kept, 1)
        sizes.append((size_grid(most, max(1, kept)) if choice.rule else (), fixed))
    folds, some = inner_splits(settings.cv, rows, rng, repeated=any(grid for grid, _ in sizes))
    searches = [
        (view.plan, view.part(rows.training), grid or (fixed,), np.random.SeedSequence(int(rng.integers(2**63))))
        for (view, _, _), (grid, fixed) in zip(ready, sizes, strict=True)
    ]
    views = []
    for (view, searched, choice), (grid, fixed), held in zip(
        ready, sizes, hold_out_each(searches, folds, settings.n_jobs), strict=True
    ):
        for work in held.work:
            searched.problem.count(work)
        looked = held.sizes
        score, _ = held.scores(rows.target)
        size, short = fixed, None
        if grid:
            size, short = lists.sizes(looked, score, n, choice.rule, searched.path.order, view.columns)
        views.append(_ViewSearch(view, searched, looked, held, score, size, short))
    return views, [*remarks, *some]


def sizes_of_list(orders: Sequence[IntArray], count: int | None) -> list[int]:
    """How many features each view takes for a list of so many: by turns, as long as the list does not grow beyond it.

    A feature that another view has brought is free.
    """
    sizes = [0] * len(orders)
    if count is None:
        return sizes
    taken: set[int] = set()
    moved = True
    while moved:
        moved = False
        for k, order in enumerate(orders):
            if sizes[k] < len(order) and (len(taken) < count or int(order[sizes[k]]) in taken):
                taken.add(int(order[sizes[k]]))
                sizes[k] += 1
                moved = True
    return sizes


def _average_views(plan: BlendPlan, rows: Rows, views: list[_ViewSearch]) -> Fitted:
    """The views' models on one scale, the decision of their mean, one ranking."""
    held = views[0].held
    values = [view.held.values_at(view.size) for view in views]
    middle, unit = _scales(rows.target, held, values)
    models = [fit_model(view.view.plan, view.searched, view.size).in_wider_table(view.view.columns) for view in views]
    mean = Blended(tuple(models), middle, unit)
    joined = replace(held, sizes=(0,), values=average_values(values, middle, unit)[None])
    names = rows.schema.names
    sentences = [unconverged_note(view.searched, [names[j] for j in view.view.columns]) for view in views]
    return Fitted(
        plan,
        rows.schema,
        mean,
        replace(_path(rows, views), n_selected=len(mean.features)),
        decide(rows.target, joined, 0),
        unit=float(np.std(joined.values[0][:, 0])),
        unconverged="; ".join(sentence for sentence in sentences if sentence) or None,
        feature_weight=np.ones(len(names)),
    )


def _scales(target: Target, held: HeldOut, values: Sequence[Array]) -> tuple[Array, Array]:
    """(v, k), (v, k): where each view's values are cut, and what they are divided by."""
    return target.scales(values, held.rows, held.weight(target.weight))


@dataclass(frozen=True)
class JointPlaces:
    """Places of n features in the rankings of several views, 1 is the best; inf where a view does not see a feature.

    `first`: in the first view, `best` and `mean`: over the views that see it, `varies`: whether one can use it.
    """

    first: Array
    best: Array
    mean: Array
    varies: BoolArray

    @classmethod
    def from_rankings(cls, n: int, rankings: Sequence[tuple[IntArray, IntArray, IntArray]]) -> JointPlaces:
        """From each view's columns, and among these its order and those that vary."""
        places, varies = np.full((len(rankings), n), np.nan), np.zeros(n, dtype=bool)
        for k, (columns, order, usable) in enumerate(rankings):
            places[k, columns[order]] = np.arange(1, len(order) + 1)
            varies[columns[usable]] = True
        seen, mean = ~np.isnan(places).all(axis=0), np.full(n, np.inf)
        mean[seen] = np.nanmean(places[:, seen], axis=0)
        best = np.nanmin(np.vstack([places, np.full(n, np.inf)]), axis=0)
        return cls(np.nan_to_num(places[0], nan=np.inf), best, mean, varies)


def _path(rows: Rows, views: list[_ViewSearch]) -> Path:
    """One ranking: the union of the views' lists before all else, each by the mean of its places in the views."""
    n = len(rows.schema.names)
    rankings = [(search.view.columns, search.searched.path.order, search.searched.ready.usable) for search in views]
    joint, chosen = JointPlaces.from_rankings(n, rankings), np.zeros(n, dtype=bool)
    for view in views:
        chosen[view.order[: view.size]] = True
    order = np.lexsort((joint.first, joint.best, joint.mean, ~joint.varies, ~chosen)).astype(np.intp)
    scores = np.where(joint.varies, -joint.mean, np.nan)
    reason = "; ".join(dict.fromkeys(view.searched.path.stop_reason for view in views))
    path = Path(order, scores, (), f"{len(views)} views: {reason}" if len(views) > 1 else reason)
    sizes, score, error = _curve(rows.target, views)
    return path.with_scores(sizes, score, error, rows.target.scored_by)


def _curve(target: Target, views: list[_ViewSearch]) -> tuple[list[int], Array, Array]:
    """The score of the mean by the number of features of the whole list, where every view gives as many."""
    common = sorted(set.intersection(*(set(view.sizes) for view in views)))
    held = views[0].held
    by_count: dict[int, Array] = {}
    for size in common:
        values = [view.held.values_at(size) for view in views]
        middle, unit = _scales(target, held, values)
        count = len(np.unique(np.concatenate([view.order[:size] for view in views])))
        by_count.setdefault(count, average_values(values, middle, unit))
    if not by_count:
        return [], np.zeros(0), np.zeros(0)
    sizes = sorted(by_count)
    joined = replace(held, sizes=tuple(sizes), values=np.array([by_count[size] for size in sizes]))
    score, error = joined.scores(target)
    return sizes, score, error


def works_in_batches(plan: AnyPlan, table: Table) -> bool:
    """Whether many fits of a plan on rows of a table can be run in step on a device."""
    if isinstance(plan, Plan):
        return plan.device != "cpu" and fits_batches(plan, table)
    assert isinstance(plan, BlendPlan)
    return all(works_in_batches(view.plan, table.columns(view.columns)) for view in plan.views)
