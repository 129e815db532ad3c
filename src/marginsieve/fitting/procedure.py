"""The whole fit of a selector on encoded rows: search, number of features, model, decision, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.utils.validation import check_random_state

from ..contracts import Array, BoolArray, Decision, IntArray, Matrix, Path
from ..data.table import Schema, equal_columns
from ..outcomes import Target
from ..outcomes.folds import Splits
from . import notes, resampling
from .ensemble import OVERLAP, average_rankings, members
from .held_out import HeldOut, choose_size, hold_out, inner_folds, listed_folds, lists_rows, require_folds, size_grid
from .memory import refuse_too_large
from .near_duplicates import Group, near_duplicates
from .preparation import prepare, varying
from .rows import MOST_ROWS, Rows, with_rest
from .settings import AnyPlan, Plan, Settings, check_seed, make_plan, size_choice
from .training import AnyModel, Model, Searched, finite, fit_model, search_once

if TYPE_CHECKING:
    import pandas as pd

MOST_COLUMNS = 5000  # up to which linear machines are solved by matrices of columns by columns
SMALL = 2**22  # cells of a sparse table up to which it is computed with as a dense one, with the same answer


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves: the path and the model, what its values mean, and what to know about it."""

    plan: AnyPlan
    schema: Schema
    model: AnyModel
    path: Path
    decision: Decision  # what the model's values mean
    unit: float | None = None  # standard deviation of the decision values of rows held out in inner folds
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # numbers of the training rows
    constant: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, ...], ...] = ()
    groups: tuple[Group, ...] = ()
    suspects: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    unconverged: str | None = None  # machines that stopped short of their tolerance, in a sentence
    feature_weight: Array = field(default_factory=lambda: np.empty(0))  # of the features that vary

    @property
    def support(self) -> BoolArray:
        """(n,) which features are selected."""
        return np.isin(np.arange(len(self.schema.names)), self.model.features)

    def values(self, Z: Matrix) -> Array:
        """Decision values of rows of the whole table, as `decision_function` returns them."""
        return decision_values(self.model, self.decision, Z)


def decision_values(model: AnyModel, decision: Decision, Z: Matrix) -> Array:
    """What `decision_function` returns for rows of the whole table; refuses values that are no numbers."""
    return finite(decision.values(model.decision(Z)))


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """A numpy seed from what scikit-learn calls a random_state."""
    check_seed(random_state)
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.SeedSequence(random_state)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**31)))
    return np.random.SeedSequence(int(check_random_state(random_state).randint(2**31)))


class HasRows(Protocol):
    """What decides on which rows a machine is trained."""

    max_samples: int | None


def rows_of_fit(settings: HasRows, encoded: Rows, rng: np.random.Generator, plan: AnyPlan) -> Rows:
    """The rows that a plan is fitted on, with its settings of the outcome; refuses more than it can take."""
    part = encoded.active
    part = replace(part, target=part.target.settle(plan.outcome))
    if part.table.is_sparse and math.prod(part.table.shape) <= SMALL:
        part = replace(part, table=replace(part.table, Z=np.asfortranarray(part.table.Z.toarray())))
    return part.with_sample(settings.max_samples, rng, most_rows(plan, part))


def most_rows(plan: AnyPlan, part: Rows) -> int | None:
    """How many rows a plan can be trained on; None: as many as there are."""
    m, n = part.table.shape
    free = plan.linear_in_rows and (part.table.is_sparse or n < min(m, MOST_COLUMNS))
    return None if free else MOST_ROWS


def constant_and_equal(schema: Schema, part: Rows) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The names of the columns that do not vary over the rows, and of those that are equal."""
    names = np.array(schema.names, dtype=object)
    equal = tuple(tuple(names[group]) for group in equal_columns(part.table.Z))
    return tuple(names[~varying(part.table)].tolist()), equal


def plan_of(settings: Settings, encoded: Rows) -> Plan:
    """The plan of a fit on these rows; refuses what makes no sense."""
    encoded.target.refuse()
    return make_plan(settings, encoded.active)


def fit_encoded(
    settings: Settings,
    encoded: Rows,
    seed: np.random.SeedSequence | None = None,
    plan: Plan | None = None,
    allowed: BoolArray | None = None,
) -> Fitted:
    """The whole fit on encoded rows; `plan` where it is known already.

    `allowed` (n,): where a rule chooses the number of features, the list ends before the first one that is not allowed.
    """
    plan = plan_of(settings, encoded) if plan is None else plan
    refuse_too_large(settings, plan, encoded)
    rng = np.random.default_rng(seed_sequence(settings.random_state) if seed is None else seed)
    rows = rows_of_fit(settings, encoded, rng, plan)
    if _always_holds_out(settings, rows.target):  # known before the search
        require_folds(rows.sample_part.target)
    constant, duplicates = constant_and_equal(encoded.schema, rows.sample_part)
    remarks = notes.table_notes(plan, encoded.schema.names, constant, rows.sample_part)
    searched = search_once(plan, rows.sample_part, rng)
    fitted = _choose_and_decide(settings, plan, rows, searched, remarks, rng, allowed)
    groups = groups_of(settings.similar, fitted, constant, rows.sample_part)
    assert isinstance(fitted.model, Model)
    suspects = resampling.left_out_samples(plan, rows.sample_part, fitted.model, rng, settings.resamples)
    return replace(fitted, constant=constant, duplicates=duplicates, groups=groups, suspects=suspects)


def _always_holds_out(settings: Settings, target: Target) -> bool:
    """Whether the settings ask for held-out decision values, whatever the search finds."""
    return isinstance(settings.n_features_to_select, str) or target.needs_held_out


def refit_at_sizes(
    settings: Settings, encoded: Rows, fitted: Fitted, sizes: Sequence[int], seed: np.random.SeedSequence
) -> list[Fitted]:
    """The same path at other sizes, cut at the margin: the search is not run again, the machine is.

    The rows and the seed must be those of the fit. Features to keep are in every one.
    """
    assert isinstance(fitted.plan, Plan)
    rng = np.random.default_rng(seed)
    rows = rows_of_fit(settings, encoded, rng, fitted.plan)
    searched = Searched(prepare(fitted.plan, rows.sample_part, rng), fitted.path).with_weights(fitted.feature_weight)
    at_margin = fitted.decision.at_margin()
    out = []
    for size in sizes:
        model = fit_model(fitted.plan, searched, max(int(size), len(searched.problem.keep)))
        path = replace(fitted.path, n_selected=len(model.features))
        out.append(replace(fitted, model=model, path=path, decision=at_margin, groups=(), suspects=None))
    return out


def _choose_and_decide(
    settings: Settings,
    plan: Plan,
    rows: Rows,
    searched: Searched,
    remarks: list[str],
    rng: np.random.Generator,
    allowed: BoolArray | None,
) -> Fitted:
    """Size, model and decision; inner folds only if one of them needs held-out decision values."""
    path, ready, columns = searched.path, searched.ready, rows.table.shape[1]
    stop, part = path.stop, rows
    if stop is not None and stop.emptied and settings.n_features_to_select is None:
        remarks += [] if notes.expects_empty(rows, stop) else [str(stop)]
    if plan.ensemble and not (stop is not None and stop.fixed):
        stop = None
    kept = len(searched.problem.keep)
    choice = size_choice(settings, columns, len(ready.usable), ready.most, kept, stop)
    remarks += [choice.note] if choice.note else []
    size, held, sizes = choice.size, None, tuple[int, ...]()
    if choice.rule or _always_holds_out(settings, rows.target):
        sizes = size_grid(ready.most, max(1, kept)) if choice.rule else (size,)
    if plan.ensemble:
        if sizes:
            require_folds(rows.sample_part.target)
        ensemble = members(plan, rows.sample_part, sizes, rng, settings.n_jobs)
        searched, part = average_rankings(plan, searched, ensemble), rows.sample_part
        path, held = searched.path, HeldOut.from_members(sizes, ensemble, OVERLAP) if sizes else None
    elif sizes:
        folds, some = inner_splits(settings.cv, rows, rng, repeated=bool(choice.rule))
        remarks += some
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        held = hold_out(plan, rows.training, sizes, folds, seed, settings.n_jobs)
        for work in held.work:
            searched.problem.count(work)
    if held is not None:
        score, error = held.scores(part.target)
        path = path.with_scores(sizes, score, error, part.target.scored_by)
        size = choose_size(sizes, score, columns, choice.rule) if choice.rule else size
        size = allowed_size(sizes, size, path.order, allowed) if choice.rule and allowed is not None else size
    model = fit_model(plan, searched, size)
    fitted = Fitted(
        plan,
        rows.schema,
        model,
        replace(path, n_selected=len(model.features), replay={}),
        decide(part.target, held, size),
        unit=None if held is None else float(np.std(held.values_at(size)[:, 0])),
        rows=rows.row_numbers()[rows.sample_rows],
        unconverged=notes.unconverged_note(searched, rows.schema.names),
        feature_weight=searched.problem.feature_weight,
    )
    remarks += notes.model_notes(settings, plan, fitted, rows.sample_part)
    return replace(fitted, notes=tuple(remarks))


def decide(target: Target, held: HeldOut | None, size: int) -> Decision:
    """What values mean, by those of held-out rows where there are any."""
    if held is None:
        return target.decide(None, np.empty(0, dtype=np.intp), np.empty(0))
    return target.decide(held.values_at(size), held.rows, held.weight(target.weight))


def inner_splits(cv: Any, rows: Rows, rng: np.random.Generator, repeated: bool) -> tuple[Splits, list[str]]:
    """The inner folds of a fit, and remarks."""
    if lists_rows(cv):
        return listed_folds(cv, rows), []
    draws, remark = inner_folds(cv, rows.sample_part, rng, repeated=repeated)
    sample, groups = rows.sample_rows, rows.target.groups
    folds = [fold for draw in draws for fold in with_rest(draw, sample, len(rows), rng, groups)]
    return folds, [remark] if remark else []


def allowed_size(sizes: Sequence[int], size: int, order: IntArray, allowed: BoolArray) -> int:
    """The largest size up to this one whose features are all allowed; the smallest where none is."""
    ends = int(np.argmin(np.append(allowed[order], False)))
    return max((some for some in sizes if some <= min(size, ends)), default=min(sizes))


def groups_of(similar: float | None, fitted: Fitted, constant: tuple[str, ...], part: Rows) -> tuple[Group, ...]:
    """The selected features that stand for others."""
    if similar is None:
        return ()
    names, real = fitted.schema.names, np.array(fitted.schema.kind) != "nominal"
    usable = real & ~np.isin(names, constant)
    selected = fitted.path.order[: len(fitted.model.features)]
    near = near_duplicates(part.table.Z, part.target.weight, selected, usable, similar)
    return tuple(Group(names[j], tuple(names[k] for k in others), tuple(r.tolist())) for j, others, r in near)
