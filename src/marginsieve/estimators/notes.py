"""What a selector says beside its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..contracts import Array, is_sparse
from ..data.table import Table
from ..errors import InputError, listing
from ..fitting.parts import resolve
from ..fitting.settings import keep_places
from ..fitting.smote import Smote
from ..fitting.training import Part, Plan, Searched
from ..searches import Budget

if TYPE_CHECKING:
    from .selector import SVMSelector

DOMINATES = 1e6  # a column that is so many times wider than the median column decides the kernel
FEWEST = 10  # rows from which on a column of categories can look like an id
OWN = 0.8  # categories per row above which it does
DROWNS = 1e14  # and one so much wider leaves nothing of the others


def of_table(selector: SVMSelector, part: Part) -> list[str]:
    """Columns to keep that do not vary, a class too small for the sampler, a column that decides the kernel alone."""
    names, notes = selector.columns_.names, []
    if lost := [names[j] for j in keep_places(selector) if names[j] in selector.constant_]:
        notes.append(f"keep names {listing(lost)}, which does not vary over the training rows: left out")
    count, sampler = int(np.bincount(part.y).min()), resolve("sampler", selector.sampler)
    if isinstance(sampler, Smote) and sampler.neighbors(count) < sampler.k_neighbors:
        notes.append(f"SMOTE has {count} rows of the rarest class: {max(count - 1, 0)} neighbours, not more")
    notes += own_levels(part.table)
    by_range = selector.standardize or resolve("kernel", selector.kernel).geometry == "tent"
    if not by_range and (note := _width(names, part.table.spread)):
        notes.append(note)
    return notes


def own_levels(table: Table) -> list[str]:
    """Columns of categories in which nearly every row has its own: they tell rows apart, not classes."""
    found = []
    for j in [j for j, kind in enumerate(table.kind) if kind == "nominal"]:
        seen = table.Z[~np.isnan(table.Z[:, j]), j]
        if len(seen) >= FEWEST and len(np.unique(seen)) > OWN * len(seen):
            found.append(table.names[j])
    if not found:
        return []
    return [f"nearly every row of {listing(found)} has a category of its own: if it is an id, leave it out"]


def of_model(selector: SVMSelector, plan: Plan, part: Part) -> list[str]:
    """A machine that calls every training row the same has learned nothing to cut."""
    told = selector.class_weight is not None or selector.negative_weight != 1.0
    emptied = selector.path_.own is not None and selector.path_.own.emptied  # which was said already
    if plan.n_classes > 2 or told or emptied or not hasattr(selector.model_.machine, "C"):
        return []
    side = np.sign(selector.model_.decision(part.table.Z)[:, 0])
    if (side != side[0]).any():
        return []
    label = selector.classes_[plan.positive if side[0] > 0 else 1 - plan.positive]
    return [f"the machine puts every training row into class {label!s}: try class_weight='balanced' or a larger C"]


def of_budget(selector: SVMSelector, plan: Plan) -> list[str]:
    """Features that were asked for by number, or by an ensemble, may cost more than the budget."""
    if not isinstance(plan.search, Budget):
        return []
    names = [name for name, taken in zip(selector.columns_.names, selector.support_, strict=True) if taken]
    spent = float(plan.search.prices(names).sum())
    if spent <= plan.search.budget * (1 + 1e-9):
        return []
    return [f"the {len(names)} selected features cost {spent:g}, more than the budget of {plan.search.budget:g}"]


def of_filter(selector: SVMSelector, plan: Plan) -> list[str]:
    """A filter that found nothing ranks by the place in the table alone."""
    if plan.criterion is None or "labels" not in plan.criterion.needs or plan.ensemble:
        return []
    score = selector.scores_[np.isfinite(selector.scores_)]
    if len(score) < 2 or score.any():
        return []
    return [f"every column has a {type(plan.criterion).__name__} score of 0: their order is that of the table"]


def unconverged(searched: Searched, names: Sequence[str]) -> str | None:
    """How many machines stopped short of their tolerance, and what may help."""
    problem = searched.problem
    if not problem.unconverged:
        return None
    Z = problem.table.Z
    size = abs(Z).max(axis=0).toarray().ravel() if is_sparse(Z) else np.fmax.reduce(np.abs(Z), axis=0)
    worst = names[searched.usable[int(np.argmax(size))]]
    return (
        f"{problem.unconverged} of {problem.solves} machine solves stopped with a residual of up to "
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
