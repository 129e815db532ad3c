"""The whole fit of a selector on encoded rows: search, number of features, model, threshold, probabilities, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.utils.validation import check_random_state

from ..contracts import Array, BoolArray, IntArray, Matrix, Path
from ..data.table import Schema, equal_columns
from ..outcomes import check_classes
from ..outcomes.folds import Splits
from . import notes, resampling
from .ensemble import OVERLAP, agreed, members
from .held_out import HeldOut, choose_size, hold_out, inner_folds, listed_folds, lists_rows, rarest_class, size_grid
from .memory import refuse_too_large
from .near_duplicates import Group, near_duplicates
from .preparation import prepare, varying
from .settings import AnyPlan, Plan, Settings, check_seed, make_plan, size_choice, threshold_rule
from .threshold import balanced_threshold, cost_threshold, fit_sigmoid
from .training import AnyModel, Model, Searched, finite, fit_model, search_once
from .training_rows import MOST_ROWS, Encoded, Part, choose_rows, with_rest

if TYPE_CHECKING:
    import pandas as pd

MOST_COLUMNS = 5000  # up to which linear machines are solved by matrices of columns by columns
SMALL = 2**22  # cells of a sparse table up to which it is computed with as a dense one, with the same answer


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves: the path and the model, where its decision value is cut, and what to know about it."""

    plan: AnyPlan
    schema: Schema
    classes: Any
    model: AnyModel
    path: Path
    threshold: float = 0.0  # on the machine's own scale, the positive class above
    sigmoid: Array | None = None  # (k, 2) slope and offset of the probability in the decision value
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
    def sign(self) -> float:
        """+1 where the positive class is the second one, else -1."""
        return 1.0 if self.plan.outcome.positive == 1 else -1.0

    @property
    def support(self) -> BoolArray:
        """(n,) which features are selected."""
        return np.isin(np.arange(len(self.schema.names)), self.model.features)

    def decision(self, Z: Matrix) -> Array:
        """(rows,), above 0 for the second class; (rows, classes) where there are more than two."""
        return signed_decision(self.model, Z, self.sign, self.threshold)

    def probability(self, value: Array) -> Array:
        """(rows, classes) by such decision values."""
        assert self.sigmoid is not None
        return class_probability(value, self.sigmoid)


def signed_decision(model: AnyModel, Z: Matrix, sign: float, threshold: float) -> Array:
    """(rows,), above 0 for the second of two classes; (rows, classes) where there are more."""
    value = model.decision(Z)
    with np.errstate(over="ignore"):
        return value if value.shape[1] > 1 else finite(np.asarray(sign * (value[:, 0] - threshold)))


def predicted_codes(value: Array) -> IntArray:
    """(rows,) codes of the classes by such decision values."""
    return np.asarray(value.argmax(axis=1) if value.ndim == 2 else value > 0, dtype=np.intp)


def class_probability(value: Array, sigmoid: Array) -> Array:
    """(rows, classes): a sigmoid of each column of the decision values, summing to 1."""
    with np.errstate(over="ignore"):
        t = value.reshape(len(value), -1) * sigmoid[:, 0] + sigmoid[:, 1]
    p = 1.0 / (1.0 + np.exp(-np.clip(t, -500, 500)))
    if p.shape[1] == 1:
        return np.hstack([1.0 - p, p])
    return np.asarray(p / p.sum(axis=1, keepdims=True))


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


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit: all that count, the weights that the sample gives them, and the sample itself."""

    part: Part  # all rows, their own weights
    training: Part  # all rows, the weights of the sampled ones raised
    sample: IntArray
    chosen: Part  # the sampled rows
    used: IntArray  # numbers of the part's rows in the table


def rows_of_fit(settings: HasRows, encoded: Encoded, rng: np.random.Generator, plan: AnyPlan) -> FitRows:
    """The rows that a plan is fitted on; refuses more than it can take."""
    part, used = encoded.part()
    if part.table.is_sparse and math.prod(part.table.shape) <= SMALL:
        part = replace(part, table=replace(part.table, Z=np.asfortranarray(part.table.Z.toarray())))
    sample, boosted = choose_rows(part, settings.max_samples, rng, most_rows(plan, part))
    training = Part(part.table, part.y, boosted, part.groups)
    chosen = training if len(sample) == len(part.y) else training.take(sample)
    return FitRows(part, training, sample, chosen, used)


def most_rows(plan: AnyPlan, part: Part) -> int | None:
    """How many rows a plan can be trained on; None: as many as there are."""
    m, n = part.table.shape
    free = plan.linear_in_rows and (part.table.is_sparse or n < min(m, MOST_COLUMNS))
    return None if free else MOST_ROWS


def constant_and_equal(schema: Schema, part: Part) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The names of the columns that do not vary over the rows, and of those that are equal."""
    names = np.array(schema.names, dtype=object)
    equal = tuple(tuple(names[group]) for group in equal_columns(part.table.Z))
    return tuple(names[~varying(part.table)].tolist()), equal


def plan_of(settings: Settings, encoded: Encoded) -> Plan:
    """The plan of a fit on these rows; refuses what makes no sense."""
    part, _ = encoded.part()
    check_classes(replace(encoded.target, codes=part.y, weight=part.weight, groups=part.groups))
    return make_plan(settings, encoded.schema, encoded.target, part)


def fit_encoded(
    settings: Settings,
    encoded: Encoded,
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
    if _always_holds_out(settings, plan):  # known before the search
        rarest_class(rows.chosen, encoded.target.classes.tolist())
    constant, duplicates = constant_and_equal(encoded.schema, rows.chosen)
    remarks = notes.table_notes(plan, encoded.schema.names, constant, rows.chosen)
    searched = search_once(plan, rows.chosen, rng)
    fitted = _decided(settings, plan, encoded, rows, searched, remarks, rng, allowed)
    index = resampling.sample_index(encoded.names, len(encoded.target.codes))[fitted.rows]
    groups = groups_of(settings.similar, fitted, constant, rows.chosen)
    assert isinstance(fitted.model, Model)
    suspects = resampling.of_model(plan, rows.chosen, fitted.model, rng, index, settings.resamples)
    return replace(fitted, constant=constant, duplicates=duplicates, groups=groups, suspects=suspects)


def _always_holds_out(settings: Settings, plan: Plan) -> bool:
    """Whether the settings ask for held-out decision values, whatever the search finds."""
    threshold = threshold_rule(settings, plan.outcome.count)
    sized = isinstance(settings.n_features_to_select, str)
    return sized or settings.probability or threshold == "balanced" or isinstance(threshold, tuple)


def refit_at_sizes(
    settings: Settings, encoded: Encoded, fitted: Fitted, sizes: Sequence[int], seed: np.random.SeedSequence
) -> list[Fitted]:
    """The same path at other sizes, cut at the margin: the search is not run again, the machine is.

    The rows and the seed must be those of the fit. Features to keep are in every one.
    """
    assert isinstance(fitted.plan, Plan)
    rng = np.random.default_rng(seed)
    rows = rows_of_fit(settings, encoded, rng, fitted.plan)
    searched = Searched(prepare(fitted.plan, rows.chosen, rng), fitted.path).with_weights(fitted.feature_weight)
    out = []
    for size in sizes:
        model = fit_model(fitted.plan, searched, max(int(size), len(searched.problem.keep)))
        path = replace(fitted.path, n_selected=len(model.features))
        out.append(replace(fitted, model=model, path=path, threshold=0.0, sigmoid=None, groups=(), suspects=None))
    return out


def _decided(
    settings: Settings,
    plan: Plan,
    encoded: Encoded,
    rows: FitRows,
    searched: Searched,
    remarks: list[str],
    rng: np.random.Generator,
    allowed: BoolArray | None,
) -> Fitted:
    """Size, model, threshold and sigmoid; inner folds only if one of them needs held-out decision values."""
    path, classes = searched.path, encoded.target.classes.tolist()
    stop, part = path.stop, rows.part
    if stop is not None and stop.emptied and settings.n_features_to_select is None:
        remarks += [] if notes.expects_empty(settings, stop) else [str(stop)]
    if plan.ensemble and not (stop is not None and stop.fixed):
        stop = None
    ready = searched.ready
    kept = len(searched.problem.keep)
    choice = size_choice(settings, part.table.shape[1], len(ready.usable), ready.most, kept, stop)
    remarks += [choice.note] if choice.note else []
    size, threshold = choice.size, threshold_rule(settings, plan.outcome.count)
    held, sizes = None, tuple[int, ...]()
    if choice.rule or _always_holds_out(settings, plan):
        sizes = size_grid(ready.most, max(1, kept)) if choice.rule else (size,)
    if plan.ensemble:
        if sizes:
            rarest_class(rows.chosen, classes)
        ensemble = members(plan, rows.chosen, sizes, rng, settings.n_jobs)
        searched, part = agreed(plan, searched, ensemble), rows.chosen
        path, held = searched.path, HeldOut.of(sizes, ensemble, OVERLAP) if sizes else None
    elif sizes:
        folds, some = inner_splits(settings.cv, encoded, rows, rng, repeated=bool(choice.rule))
        remarks += some
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        held = hold_out(plan, rows.training, sizes, folds, seed, settings.n_jobs)
        for work in held.work:
            searched.problem.count(work)
    if held is not None:
        score, error = held.scores(part.y, part.weight, plan)
        path = path.with_scores(sizes, score, error, plan.outcome.scored_by)
        size = choose_size(sizes, score, part.table.shape[1], choice.rule) if choice.rule else size
        size = within(sizes, size, path.order, allowed) if choice.rule and allowed is not None else size
    model = fit_model(plan, searched, size)
    fitted = Fitted(plan, encoded.schema, encoded.target.classes, model, replace(path, n_selected=len(model.features)))
    remarks += notes.model_notes(settings, plan, fitted, rows.chosen)
    cut, sigmoid = threshold_and_sigmoid(settings, plan, part, held, size, threshold, fitted.sign)
    return replace(
        fitted,
        unit=None if held is None else float(np.std(held.values[held.sizes.index(size)][:, 0])),
        threshold=cut,
        sigmoid=sigmoid,
        rows=rows.used[rows.sample],
        notes=tuple(remarks),
        unconverged=notes.unconverged(searched, encoded.schema.names),
        feature_weight=searched.problem.feature_weight,
    )


def inner_splits(
    cv: Any, encoded: Encoded, rows: FitRows, rng: np.random.Generator, repeated: bool
) -> tuple[Splits, list[str]]:
    """The inner folds of a fit, and remarks."""
    part, classes = rows.part, encoded.target.classes.tolist()
    if lists_rows(cv):
        return listed_folds(cv, encoded, rows.used, rows.sample, classes), []
    draws, remark = inner_folds(cv, rows.chosen, classes, rng, repeated=repeated)
    folds = [fold for one in draws for fold in with_rest(one, rows.sample, len(part.y), rng, part.groups)]
    return folds, [remark] if remark else []


def within(sizes: Sequence[int], size: int, order: IntArray, allowed: BoolArray) -> int:
    """The largest size up to this one whose features are all allowed; the smallest where none is."""
    ends = int(np.argmin(np.append(allowed[order], False)))
    return max((some for some in sizes if some <= min(size, ends)), default=min(sizes))


class HasThreshold(Protocol):
    """What decides whether there are probabilities."""

    probability: bool


def threshold_and_sigmoid(
    settings: HasThreshold, plan: AnyPlan, part: Part, held: HeldOut | None, size: int, threshold: Any, sign: float
) -> tuple[float, Array | None]:
    """Where the decision value is cut, and the sigmoid of its probability, by values of held-out rows."""
    cut = float(threshold) if isinstance(threshold, (int, float)) else 0.0
    if held is None:
        return cut, None
    value = held.values[held.sizes.index(size)]
    labels, weight = plan.outcome.labels(part.y)[:, held.rows], held.weight(part.weight)
    if threshold == "balanced":
        cut = balanced_threshold(value[:, 0], labels[0], weight)
    elif isinstance(threshold, tuple):
        cut = cost_threshold(value[:, 0], labels[0], weight, *threshold)
    if not settings.probability:
        return cut, None
    sign = sign if plan.outcome.binary else 1.0
    shifted = sign * (value - cut)
    return cut, np.array([fit_sigmoid(shifted[:, k], sign * labels[k], weight) for k in range(value.shape[1])])


def groups_of(similar: float | None, fitted: Fitted, constant: tuple[str, ...], part: Part) -> tuple[Group, ...]:
    """The selected features that stand for others."""
    if similar is None:
        return ()
    names, real = fitted.schema.names, np.array(fitted.schema.kind) != "nominal"
    usable = real & ~np.isin(names, constant)
    selected = fitted.path.order[: len(fitted.model.features)]
    near = near_duplicates(part.table.Z, part.weight, selected, usable, similar)
    return tuple(Group(names[j], tuple(names[k] for k in others), tuple(r.tolist())) for j, others, r in near)
