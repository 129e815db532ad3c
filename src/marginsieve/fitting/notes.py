"""What a fit says beside its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..contracts import Array, Interpolates, Path, PricesFeatures, StopInfo, TableView, is_sparse
from ..data.table import Schema
from ..errors import InputError, listing
from ..problem import is_filter
from .rows import Rows
from .settings import Plan, Settings
from .training import AnyModel, Searched

DOMINATES = 1e6  # a column that is so many times wider than the median column decides the kernel
FEWEST = 10  # rows from which on a column of categories can look like an id
DISTINCT = 0.8  # categories per row above which it does
DROWNS = 1e14  # and one so much wider leaves nothing of the others


class FittedModel(Protocol):
    """What is read of a fit (`fitting.procedure.Fitted`)."""

    @property
    def schema(self) -> Schema: ...
    @property
    def model(self) -> AnyModel: ...
    @property
    def path(self) -> Path: ...


def table_notes(plan: Plan, names: Sequence[str], constant: Sequence[str], part: Rows) -> list[str]:
    """Columns to keep that do not vary, a class too small for the sampler, a column that decides the kernel alone."""
    notes = []
    spread = dict(zip(names, part.table.spread, strict=True))
    if tiny := [name for name in constant if spread[name] > 0]:
        notes.append(
            f"{listing(tiny)} varies by rounding alone, or by less than any number: left out; subtract what is common, "
            "or change its unit"
        )
    if lost := [names[j] for j in plan.keep if names[j] in constant]:
        notes.append(f"keep names {listing(lost)}, which does not vary over the training rows: left out")
    count, sampler = min(part.target.row_counts), plan.sampler
    if isinstance(sampler, Interpolates) and sampler.neighbors(count) < sampler.k_neighbors:
        notes.append(f"SMOTE has {count} rows of the rarest class: {max(count - 1, 0)} neighbors, not more")
    notes += distinct_levels(part.table)
    if not (plan.standardize or plan.kernel.unit_free) and (note := _width(names, part.table.spread)):
        notes.append(note)
    return notes


def distinct_levels(table: TableView) -> list[str]:
    """Columns of categories in which nearly every row has its own: they tell rows apart, not classes."""
    columns = []
    for j in [j for j, kind in enumerate(table.kind) if kind == "nominal"]:
        seen = table.Z[~np.isnan(table.Z[:, j]), j]
        if len(seen) >= FEWEST and len(np.unique(seen)) > DISTINCT * len(seen):
            columns.append(table.names[j])
    if not columns:
        return []
    return [f"nearly every row of {listing(columns)} has a category of its own: if it is an id, leave it out"]


def model_notes(settings: Settings, plan: Plan, fitted: FittedModel, part: Rows) -> list[str]:
    """What is remarkable about a fitted model."""
    return [*_one_class(settings, plan, fitted, part), *_over_budget(plan, fitted), *_no_score(plan, fitted)]


def expects_empty(part: Rows, stop: StopInfo) -> bool:
    """Whether an empty model is no surprise: with a cost for each class, one of them may be all that counts."""
    return stop.costs_may_empty and part.target.has_costs


def _one_class(settings: Settings, plan: Plan, fitted: FittedModel, part: Rows) -> list[str]:
    """A machine that calls every training row the same has learned nothing to cut."""
    stop = fitted.path.stop
    emptied = stop is not None and stop.emptied  # which has a note of its own
    value = fitted.model.decision(part.table.Z)
    if not np.ptp(value, axis=0).any():
        if emptied and stop and settings.n_features_to_select is None and not expects_empty(part, stop):
            return []
        return ["the decision value is the same for every training row: the model tells nothing apart"]
    machines = [model.machine for model in fitted.model.models]
    return [] if emptied else part.target.with_settings(plan.outcome).model_notes(value, machines)


def _over_budget(plan: Plan, fitted: FittedModel) -> list[str]:
    """Features that were asked for by number, or by an ensemble, may cost more than the budget."""
    search = plan.search
    if not isinstance(search, PricesFeatures) or search.budget is None:
        return []
    names = [fitted.schema.names[j] for j in fitted.model.features]
    spent = float(search.prices(names).sum())
    if spent <= search.budget * (1 + 1e-9):
        return []
    return [f"the {len(names)} selected features cost {spent:g}, more than the budget of {search.budget:g}"]


def _no_score(plan: Plan, fitted: FittedModel) -> list[str]:
    """A filter that scores every column 0 ranks by the place in the table alone."""
    if not is_filter(plan.criterion) or plan.ensemble:
        return []
    score = fitted.path.scores[np.isfinite(fitted.path.scores)]
    if len(score) < 2 or score.any():
        return []
    name = getattr(plan.criterion, "__name__", type(plan.criterion).__name__)
    return [f"every column has a {name} score of 0: their order is that of the table"]


def unconverged_note(searched: Searched, names: Sequence[str]) -> str | None:
    """How many machines stopped short of their tolerance, and what may help."""
    problem = searched.problem
    if not problem.n_unconverged:
        return None
    Z = problem.table.Z
    if is_sparse(Z):
        size = abs(Z).max(axis=0).toarray().ravel()
    else:
        size = np.fmax.reduce(np.abs(problem.table.bounds), axis=0)
    worst = names[searched.ready.usable[int(np.argmax(size))]]
    return (
        f"{problem.n_unconverged} of {problem.solves} machine solves stopped with a residual of up to "
        f"{problem.worst_residual:.2g}, above the tolerance; raise machine__max_iter, lower C, or use "
        f"standardize=True (the largest column is {worst!r}, up to {size.max():.3g})"
    )


def _width(names: Sequence[str], spread: Array) -> str | None:
    """A sentence where one column is so wide that it decides the kernel alone; an error where nothing else is left."""
    ratio = spread.max() / (np.median(spread[spread > 0]) if (spread > 0).any() else 1.0)
    about = f"column {names[int(spread.argmax())]!r} is {ratio:.0e} times as wide as the median column"
    if ratio > DROWNS:
        raise InputError(
            f"{about}: in double precision nothing is left of the others; use standardize=True or rescale it"
        )
    return f"{about} and decides the kernel alone; use standardize=True or rescale it" if ratio > DOMINATES else None
