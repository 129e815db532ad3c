"""Several views of one table in one model: each view selects features for itself, their decision values are averaged.

All views have the same inner folds. A view's values there choose its number of features, and bring it to the scale of
the others: the middle between the classes' medians becomes 0, the standard deviation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Path
from ..data.table import Table
from ..errors import InputError
from ..outcomes import Classes, check_classes
from . import notes
from .batched_searches import fits_batches
from .compatibility import kinds_taken
from .ensemble import run_searches
from .held_out import HeldOut, choose_size, hold_out_each, rarest_class, size_grid, smoothed
from .memory import refuse_too_large
from .parts import kernel_of, machine_of
from .preparation import varying
from .procedure import (
    FitRows,
    Fitted,
    constant_and_equal,
    groups_of,
    inner_splits,
    rows_of_fit,
    seed_sequence,
    threshold_and_sigmoid,
    within,
)
from .settings import AnyPlan, Plan, Settings, feature_count, keep_places, make_plan, size_choice, threshold_rule
from .threshold import balanced_threshold
from .training import Blended, Searched, blended, fit_model
from .training_rows import Encoded, Part

COMBINE = ("mean", "best")


class BlendSettings(Protocol):
    """The parameters of a blend, as `marginsieve.Blend` describes them."""

    combine: str
    n_features_to_select: int | float | str | None
    class_weight: Any
    negative_weight: float
    positive: Any
    threshold: Any
    probability: bool
    max_samples: int | None
    similar: float | None
    cv: Any
    n_jobs: int | None
    random_state: Any

    def view_settings(self) -> Sequence[Settings]:
        """The views, with what the blend decides for all of them."""


@dataclass(frozen=True)
class ViewPlan:
    """The plan of a view and the columns of the table that it sees; `place`: which of the blend's views it is."""

    plan: Plan
    columns: IntArray
    place: int

    def part(self, part: Part) -> Part:
        """The rows as this view sees them."""
        return _columns_of(part, self.columns)


def _columns_of(part: Part, columns: IntArray) -> Part:
    every = len(columns) == part.table.shape[1]
    return part if every else replace(part, table=part.table.columns(columns))


@dataclass(frozen=True)
class BlendPlan:
    """The plans of the views."""

    views: tuple[ViewPlan, ...]

    @property
    def outcome(self) -> Classes:
        """The classes, which all views share."""
        return self.views[0].plan.outcome

    @property
    def linear_in_rows(self) -> bool:
        """Whether no view makes a matrix of rows by rows, where there are fewer columns than rows."""
        return all(view.plan.linear_in_rows for view in self.views)

    def for_rows(self, settings: Any, part: Part) -> BlendPlan:
        """The same plan on some of the rows."""
        return BlendPlan(tuple(replace(view, plan=view.plan.for_rows(settings, part)) for view in self.views))


def blend_plan(settings: BlendSettings, encoded: Encoded) -> BlendPlan:
    """The plan of every view on these rows.

    A view sees the columns of the kinds that its kernel takes; one whose kernel takes no missing cells has them filled
    with the means of the training rows. A view that would see nothing is left out.
    """
    part, _ = encoded.part()
    check_classes(replace(encoded.target, codes=part.y, weight=part.weight, groups=part.groups))
    views = []
    for place, view in enumerate(settings.view_settings()):
        kernel = kernel_of(view.kernel)
        taken = kinds_taken(kernel, machine_of(view.machine))
        columns = np.flatnonzero([kind in taken for kind in encoded.schema.kind]).astype(np.intp)
        if not len(columns):
            continue
        kept = keep_places(view.keep, encoded.schema.names)
        view.keep = [int(k) for k in np.flatnonzero(np.isin(columns, kept))] or None
        plan = make_plan(view, encoded.schema.columns(columns), encoded.target, _columns_of(part, columns))
        views.append(ViewPlan(replace(plan, fills=not kernel.missing), columns, place))
    if not views:
        raise InputError("no view takes a column of this table: give one whose kernel takes categories")
    return BlendPlan(tuple(views))


@dataclass(frozen=True)
class _ViewSearch:
    """A view's search on all rows, the sizes that were looked at, its values on held-out rows, and its choice."""

    view: ViewPlan
    searched: Searched
    sizes: tuple[int, ...]
    held: HeldOut
    score: Array
    size: int

    @property
    def order(self) -> IntArray:
        """The view's ranking, in the numbering of the whole table."""
        return self.view.columns[self.searched.path.order]

    def at(self, size: int) -> Array:
        """(rows, k) decision values of held-out rows at a size."""
        return np.asarray(self.held.values[self.sizes.index(size)])

    @property
    def best(self) -> float:
        """The smoothed score at its size."""
        return float(smoothed(np.asarray(self.sizes, dtype=float), self.score)[self.sizes.index(self.size)])


def fit_blend(
    settings: BlendSettings,
    encoded: Encoded,
    seed: np.random.SeedSequence | None = None,
    plan: BlendPlan | None = None,
    allowed: BoolArray | None = None,
) -> Fitted:
    """The whole fit on encoded rows; `plan` and `allowed` as in `fit_encoded`."""
    plan = blend_plan(settings, encoded) if plan is None else plan
    rng = np.random.default_rng(seed_sequence(settings.random_state) if seed is None else seed)
    rows = rows_of_fit(settings, encoded, rng, plan)
    rarest_class(rows.chosen, encoded.target.classes.tolist())
    constant, duplicates = constant_and_equal(encoded.schema, rows.chosen)
    views, remarks = _searched(settings, plan, encoded, rows, rng, allowed)
    if settings.combine == "best":
        views = [max(views, key=lambda one: one.best)]
    fitted = replace(_decided(settings, plan, encoded, rows, views), rows=rows.used[rows.sample])
    remarks = list(dict.fromkeys([*remarks, *_model_notes(fitted, rows.chosen)]))
    groups = groups_of(settings.similar, fitted, constant, rows.chosen)
    return replace(fitted, constant=constant, duplicates=duplicates, groups=groups, notes=tuple(remarks))


def _searched(
    settings: BlendSettings,
    plan: BlendPlan,
    encoded: Encoded,
    rows: FitRows,
    rng: np.random.Generator,
    allowed: BoolArray | None,
) -> tuple[list[_ViewSearch], list[str]]:
    """Every view's search, held-out values and number of features; and remarks."""
    part, remarks = rows.part, list[str]()
    count = feature_count(settings, part.table.shape[1])  # type: ignore[arg-type]
    ready, given_views = [], settings.view_settings()
    ran = run_searches(((view.plan, view.part(rows.chosen)) for view in plan.views), rng)
    for view in plan.views:
        of_view, seen = given_views[view.place], view.part(rows.chosen)
        refuse_too_large(of_view, view.plan, replace(encoded, table=encoded.table.columns(view.columns)))
        lost = tuple(np.array(seen.table.names, dtype=object)[~varying(seen.table)].tolist())
        remarks += notes.table_notes(view.plan, seen.table.names, lost, seen)
        searched = next(ran)
        kept, most = len(searched.problem.keep), searched.ready.most
        choice = size_choice(of_view, seen.table.shape[1], len(searched.ready.usable), most, kept, searched.path.stop)
        ready.append((view, searched, choice))
    if count is not None and all(choice.note for _, _, choice in ready):
        remarks.append(ready[0][2].note)
    given: list[int | None] = [None] * len(ready)
    if count is not None and settings.combine == "mean":
        given = [*sizes_of_list([view.columns[searched.path.order] for view, searched, _ in ready], count)]
    ready = [one for one, wished in zip(ready, given, strict=True) if wished != 0]  # a short list is for few views
    given = [wished for wished in given if wished != 0]
    sizes = []
    for (_, searched, choice), wished in zip(ready, given, strict=True):
        kept, most = len(searched.problem.keep), searched.ready.most
        fixed = choice.size if wished is None else max(min(wished, most), kept, 1)
        sizes.append((size_grid(most, max(1, kept)) if choice.rule else (), fixed))
    folds, some = inner_splits(settings.cv, encoded, rows, rng, repeated=any(grid for grid, _ in sizes))
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
        score, _ = held.scores(part.y, part.weight, view.plan)
        size = fixed
        if grid:
            size = choose_size(looked, score, part.table.shape[1], choice.rule)
            if allowed is not None:
                size = within(looked, size, searched.path.order, allowed[view.columns])
        views.append(_ViewSearch(view, searched, looked, held, score, size))
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


def _decided(
    settings: BlendSettings, plan: BlendPlan, encoded: Encoded, rows: FitRows, views: list[_ViewSearch]
) -> Fitted:
    """The views' models on one scale, the threshold of their mean, one ranking."""
    part, outcome = rows.part, plan.outcome
    held = views[0].held
    labels, weight = outcome.labels(part.y)[:, held.rows], held.weight(part.weight)
    values = [one.at(one.size) for one in views]
    middle, unit = zip(*(_scale(value, labels, weight, outcome.binary) for value in values), strict=True)
    models = []
    for one in views:
        models.append(fit_model(one.view.plan, one.searched, one.size).among(one.view.columns))
    mean = Blended(tuple(models), np.array(middle), np.array(unit))
    joined = replace(held, sizes=(0,), values=blended(values, mean.middle, mean.unit)[None])
    path = replace(_path(plan, part, views, encoded), n_selected=len(mean.features))
    fitted = Fitted(plan, encoded.schema, encoded.target.classes, mean, path)
    rule = threshold_rule(settings, outcome.count)  # type: ignore[arg-type]
    cut, sigmoid = threshold_and_sigmoid(settings, plan, part, joined, 0, rule, fitted.sign)
    sentences = [notes.unconverged(one.searched, [encoded.schema.names[j] for j in one.view.columns]) for one in views]
    return replace(
        fitted,
        threshold=cut,
        sigmoid=sigmoid,
        unit=float(np.std(joined.values[0][:, 0])),
        unconverged="; ".join(one for one in sentences if one) or None,
        feature_weight=np.ones(len(encoded.schema.names)),
    )


def _scale(value: Array, labels: Array, weight: Array, binary: bool) -> tuple[Array, Array]:
    """(k,), (k,): where a view's values are cut and by what they are divided before they are averaged."""
    share = weight / weight.sum()
    spread = np.sqrt(share @ (value - share @ value) ** 2)
    middle = np.zeros(value.shape[1])
    if binary:
        middle[0] = balanced_threshold(value[:, 0], labels[0], weight)
    return middle, np.where(spread > 0, spread, 1.0)


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
    def of(cls, n: int, rankings: Sequence[tuple[IntArray, IntArray, IntArray]]) -> JointPlaces:
        """From each view's columns, and among these its order and those that vary."""
        places, varies = np.full((len(rankings), n), np.nan), np.zeros(n, dtype=bool)
        for k, (columns, order, usable) in enumerate(rankings):
            places[k, columns[order]] = np.arange(1, len(order) + 1)
            varies[columns[usable]] = True
        seen, mean = ~np.isnan(places).all(axis=0), np.full(n, np.inf)
        mean[seen] = np.nanmean(places[:, seen], axis=0)
        best = np.nanmin(np.vstack([places, np.full(n, np.inf)]), axis=0)
        return cls(np.nan_to_num(places[0], nan=np.inf), best, mean, varies)


def _path(plan: BlendPlan, part: Part, views: list[_ViewSearch], encoded: Encoded) -> Path:
    """One ranking: the union of the views' lists before all else, each by the mean of its places in the views."""
    n = len(encoded.schema.names)
    rankings = [(one.view.columns, one.searched.path.order, one.searched.ready.usable) for one in views]
    joint, chosen = JointPlaces.of(n, rankings), np.zeros(n, dtype=bool)
    for one in views:
        chosen[one.order[: one.size]] = True
    order = np.lexsort((joint.first, joint.best, joint.mean, ~joint.varies, ~chosen)).astype(np.intp)
    scores = np.where(joint.varies, -joint.mean, np.nan)
    reason = "; ".join(dict.fromkeys(one.searched.path.stop_reason for one in views))
    path = Path(order, scores, (), f"{len(views)} views: {reason}" if len(views) > 1 else reason)
    sizes, score, error = _curve(plan, part, views)
    return path.with_scores(sizes, score, error, plan.outcome.scored_by)


def _curve(plan: BlendPlan, part: Part, views: list[_ViewSearch]) -> tuple[list[int], Array, Array]:
    """The score of the mean by the number of features of the whole list, where every view gives as many."""
    common = sorted(set.intersection(*(set(one.sizes) for one in views)))
    held = views[0].held
    labels, weight = plan.outcome.labels(part.y)[:, held.rows], held.weight(part.weight)
    by_count: dict[int, Array] = {}
    for size in common:
        values = [one.at(size) for one in views]
        middle, unit = zip(*(_scale(value, labels, weight, plan.outcome.binary) for value in values), strict=True)
        count = len(np.unique(np.concatenate([one.order[:size] for one in views])))
        by_count.setdefault(count, blended(values, np.array(middle), np.array(unit)))
    if not by_count:
        return [], np.zeros(0), np.zeros(0)
    sizes = sorted(by_count)
    joined = replace(held, sizes=tuple(sizes), values=np.array([by_count[size] for size in sizes]))
    score, error = joined.scores(part.y, part.weight, plan)
    return sizes, score, error


def _model_notes(fitted: Fitted, part: Part) -> list[str]:
    value = fitted.model.decision(part.table.Z)
    if np.ptp(value, axis=0).any():
        return []
    return ["the decision value is the same for every training row: the model tells nothing apart"]


def works_in_batches(plan: AnyPlan, table: Table) -> bool:
    """Whether many fits of a plan on rows of a table can be run in step on a device."""
    if isinstance(plan, Plan):
        return plan.device != "cpu" and fits_batches(plan, table)
    assert isinstance(plan, BlendPlan)
    return all(works_in_batches(view.plan, table.columns(view.columns)) for view in plan.views)
