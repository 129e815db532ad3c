"""The whole fit of a selector on encoded rows: search, number of features, model, decision, and what to say of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_random_state

from ..algebra import as_columns
from ..algebra.blocks import column_parts
from ..contracts import (
    Array,
    BoolArray,
    Decision,
    FitsBudget,
    IntArray,
    Interpolates,
    Matrix,
    Path,
    PricesFeatures,
    StopInfo,
    TableView,
    is_sparse,
)
from ..data.association import observed_correlation
from ..data.table import Schema, equal_columns
from ..errors import InputError, listing
from ..machines import RampSVC
from ..outcomes import Target
from ..outcomes.target import Splits
from ..problem import is_filter, size_grid
from ..solvers.execution import one_thread
from .held_out import (
    OVERLAP,
    HeldOut,
    average_rankings,
    choose_search,
    choose_size,
    hold_out,
    inner_folds,
    leaves_to_folds,
    listed_folds,
    lists_rows,
    members,
    require_folds,
    spread_sizes,
)
from .rows import MOST_ROWS, Rows, with_rest
from .settings import (
    AnyPlan,
    CommonSettings,
    Plan,
    Settings,
    check_seed,
    feature_count,
    make_plan,
    refuse_too_large,
    size_choice,
)
from .training import AnyModel, Model, Searched, finite, fit_model, prepare, search_once, varying_columns

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
    short: Fitted | None = None  # the same at the size of the short list, where that was asked for and a rule decides

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


def rows_of_fit(settings: CommonSettings, encoded: Rows, rng: np.random.Generator, plan: AnyPlan) -> Rows:
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
    return tuple(names[~varying_columns(part.table)].tolist()), equal


def plan_of(settings: Settings, encoded: Rows) -> Plan:
    """The plan of a fit on these rows; refuses what makes no sense."""
    encoded.target.refuse()
    return make_plan(settings, encoded.active)


@dataclass(frozen=True)
class ListRequest:
    """What is asked of a fit besides the selector's own list, where a rule chooses the number of features.

    Attributes
    ----------
    short : bool
        Whether the list by the rule "short" is made too, from the same scores of inner folds.
    allowed : array of bool of shape (n,) or None
        A list ends before the first feature that is not allowed.
    allowed_short : array of bool of shape (n,) or None
        The same of the short list.
    """

    short: bool = False
    allowed: BoolArray | None = None
    allowed_short: BoolArray | None = None

    def sizes(
        self, sizes: Sequence[int], score: Array, columns: int, rule: str, order: IntArray, seen: IntArray | None = None
    ) -> tuple[int, int | None]:
        """The size by the rule, and that of the short list; `seen`: the columns that are ranked, where not all are.

        Beside a short list the other is as long at least: the lower price may lead to fewer features than usual.
        """
        chosen = [choose_size(sizes, score, columns, some) for some in (rule, "short")]
        if self.short:
            chosen[0] = max(chosen)
        for k, allowed in enumerate((self.allowed, self.allowed_short)):
            if allowed is not None:
                chosen[k] = allowed_size(sizes, chosen[k], order, allowed if seen is None else allowed[seen])
        return chosen[0], chosen[1] if self.short else None


ONE_LIST = ListRequest()


def fit_encoded(
    settings: Settings,
    encoded: Rows,
    seed: np.random.SeedSequence | None,
    plan: Plan,
    lists: ListRequest = ONE_LIST,
) -> Fitted:
    """The whole fit on encoded rows; `lists` where there is more than one."""
    refuse_too_large(settings, plan, encoded)
    rng = np.random.default_rng(seed_sequence(settings.random_state) if seed is None else seed)
    rows = rows_of_fit(settings, encoded, rng, plan)
    if _always_holds_out(settings, rows.target):  # known before the search
        require_folds(rows.sample_part.target)
    constant, duplicates = constant_and_equal(encoded.schema, rows.sample_part)
    remarks = table_notes(plan, encoded.schema.names, constant, rows.sample_part)
    if leaves_to_folds(plan):
        plan, some = _choose_search(settings, plan, rows, rng)
        remarks += some
    searched = search_once(plan, rows.sample_part, rng)
    fitted = _choose_and_decide(settings, plan, rows, searched, remarks, rng, lists)

    def describe(fitted: Fitted) -> Fitted:
        groups = groups_of(settings.similar, fitted, constant, rows.sample_part)
        assert isinstance(fitted.model, Model)
        suspects = left_out_samples(plan, rows.sample_part, fitted.model, rng, settings.resamples)
        return replace(fitted, constant=constant, duplicates=duplicates, groups=groups, suspects=suspects)

    return describe_lists(fitted, describe)


def _choose_search(settings: Settings, plan: Plan, rows: Rows, rng: np.random.Generator) -> tuple[Plan, list[str]]:
    """The plan with what its search leaves to inner folds, and remarks."""
    folds, remarks = inner_splits(settings.cv, rows, rng, repeated=False)
    columns = rows.table.shape[1]
    count = feature_count(settings, columns)
    sizes = spread_sizes(columns) if count is None else (count,)
    seed = np.random.SeedSequence(int(rng.integers(2**63)))
    return choose_search(plan, rows.training, sizes, folds, seed, settings.n_jobs), remarks


def describe_lists(fitted: Fitted, describe: Callable[[Fitted], Fitted]) -> Fitted:
    """A fit with what is said of it, and of its short list."""
    short = None if fitted.short is None else describe(fitted.short)
    return replace(describe(fitted), short=short)


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
    lists: ListRequest,
) -> Fitted:
    """Size, model and decision; inner folds only if one of them needs held-out decision values."""
    path, ready, columns = searched.path, searched.ready, rows.table.shape[1]
    stop, part = path.stop, rows
    if stop is not None and stop.emptied and settings.n_features_to_select is None:
        remarks += [] if expects_empty(rows, stop) else [str(stop)]
    if plan.ensemble and not (stop is not None and stop.fixed):
        stop = None
    kept = len(searched.problem.keep)
    choice = size_choice(settings, columns, len(ready.usable), ready.most, kept, stop)
    remarks += [choice.note] if choice.note else []
    size, short, held, sizes = choice.size, None, None, tuple[int, ...]()
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
        remarks += [remark for remark in some if remark not in remarks]
        seed = np.random.SeedSequence(int(rng.integers(2**63)))
        held = hold_out(plan, rows.training, sizes, folds, seed, settings.n_jobs)
        for work in held.work:
            searched.problem.count(work)
    if held is not None:
        score, error = held.scores(part.target)
        searched = replace(searched, path=path.with_scores(sizes, score, error, part.target.scored_by))
        if choice.rule:
            size, short = lists.sizes(sizes, score, columns, choice.rule, path.order)
    fitted, *others = (
        _fit_at_size(settings, plan, rows, part.target, searched, held, count, remarks)
        for count in ([size] if short in (None, size) else [size, short])
    )
    return fitted if short is None else replace(fitted, short=others[0] if others else fitted)


def _fit_at_size(
    settings: Settings,
    plan: Plan,
    rows: Rows,
    target: Target,
    searched: Searched,
    held: HeldOut | None,
    size: int,
    remarks: Sequence[str],
) -> Fitted:
    """Model and decision at a size; `target` is that of the rows whose held-out values there are."""
    model = fit_model(plan, searched, size)
    fitted = Fitted(
        plan,
        rows.schema,
        model,
        replace(searched.path, n_selected=len(model.features), replay={}),
        decide(target, held, size),
        unit=None if held is None else float(np.std(held.values_at(size)[:, 0])),
        rows=rows.row_numbers()[rows.sample_rows],
        unconverged=unconverged_note(searched, rows.schema.names),
        feature_weight=searched.problem.feature_weight,
    )
    return replace(fitted, notes=(*remarks, *model_notes(settings, plan, fitted, rows.sample_part)))


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


# -- remarks ----------------------------------------------------------------------------------------------------------

TELLS_NOTHING = "the decision value is the same for every training row: the model tells nothing apart"
DOMINATES = 1e6  # a column that is so many times wider than the median column decides the kernel
FEWEST = 10  # rows from which on a column of categories can look like an id
DISTINCT = 0.8  # categories per row above which it does
DROWNS = 1e14  # and one so much wider leaves nothing of the others


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


def model_notes(settings: Settings, plan: Plan, fitted: Fitted, part: Rows) -> list[str]:
    """What is remarkable about a fitted model."""
    return [*_one_class(settings, plan, fitted, part), *_over_budget(plan, fitted), *_no_score(plan, fitted)]


def expects_empty(part: Rows, stop: StopInfo) -> bool:
    """Whether an empty model is no surprise: with a cost for each class, one of them may be all that counts."""
    return stop.costs_may_empty and part.target.has_costs


def _one_class(settings: Settings, plan: Plan, fitted: Fitted, part: Rows) -> list[str]:
    """A machine that calls every training row the same has learned nothing to cut."""
    stop = fitted.path.stop
    emptied = stop is not None and stop.emptied  # which has a note of its own
    value = fitted.model.decision(part.table.Z)
    if not np.ptp(value, axis=0).any():
        if emptied and stop and settings.n_features_to_select is None and not expects_empty(part, stop):
            return []
        return [TELLS_NOTHING]
    machines = [model.machine for model in fitted.model.models]
    return [] if emptied else part.target.with_settings(plan.outcome).model_notes(value, machines)


def _over_budget(plan: Plan, fitted: Fitted) -> list[str]:
    """Features that were asked for by number, or by an ensemble, may cost more than the budget."""
    search = plan.search
    if not isinstance(search, PricesFeatures) or search.budget is None:
        return []
    names = [fitted.schema.names[j] for j in fitted.model.features]
    spent = float(search.prices(names).sum())
    if spent <= search.budget * (1 + 1e-9):
        return []
    return [f"the {len(names)} selected features cost {spent:g}, more than the budget of {search.budget:g}"]


def _no_score(plan: Plan, fitted: Fitted) -> list[str]:
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


# -- near-duplicates --------------------------------------------------------------------------------------------------

MOST = 200  # best-ranked features that are looked at as representatives
ROUNDING = 1e-9  # of a correlation


class Group(NamedTuple):
    """A selected feature, and the columns that are nearly the same with their correlations, the nearest first."""

    representative: str
    members: tuple[str, ...]
    correlation: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "representative": self.representative,
            "members": list(self.members),
            "correlation": list(self.correlation),
        }


def near_duplicates(
    Z: Matrix, weight: Array, chosen: IntArray, usable: BoolArray, least: float
) -> list[tuple[int, IntArray, Array]]:
    """For the columns `chosen`, best first: those with a correlation of at least `least` in size, and the correlations.

    A column belongs to the first that it is near to; one that belongs to another represents nothing itself. At most
    MOST columns are compared with all: the cost is MOST m n.
    """
    chosen = chosen[:MOST]
    chosen = chosen[usable[chosen]]
    if not len(chosen):
        return []
    ours = _dense(Z[:, chosen])
    first = _representatives(np.abs(observed_correlation(ours, ours, weight)) >= least - ROUNDING)
    chosen, ours = chosen[first], ours[:, first]
    members: list[list[IntArray]] = [[] for _ in chosen]
    correlation: list[list[Array]] = [[] for _ in chosen]
    for part in column_parts(Z.shape):
        r = observed_correlation(ours, _dense(Z[:, part]), weight)
        near = np.abs(r) >= least - ROUNDING
        owner = np.where(near.any(axis=0) & usable[part], near.argmax(axis=0), -1)
        for k in np.unique(owner[owner >= 0]):
            mine = np.flatnonzero(owner == k)
            mine = mine[mine + part.start != chosen[k]]
            members[k].append(mine + part.start)
            correlation[k].append(r[k, mine])
    groups = []
    for k, j in enumerate(chosen):
        alike, r = np.concatenate([*members[k], chosen[:0]]), np.concatenate([*correlation[k], np.zeros(0)])
        if len(alike):
            order = np.argsort(-np.abs(r), kind="stable")
            groups.append((int(j), alike[order], r[order]))
    return groups


def _representatives(near: BoolArray) -> IntArray:
    """Those of columns, best first, that are not near to one before them that is a representative itself."""
    out: list[int] = []
    for k in range(len(near)):
        if not near[k, out].any():
            out.append(k)
    return np.array(out, dtype=np.intp)


def _dense(block: Matrix) -> Array:
    return np.asarray(block.toarray() if is_sparse(block) else block)


# -- samples that a machine with the ramp loss leaves out -------------------------------------------------------------

LEFT_OUT = 0.3  # share of each class that a fit does not see
BEYOND = -1.0 - 1e-9  # a margin below this is beyond the opposite one


def beyond_frequency(plan: Plan, part: Rows, price: float, rng: np.random.Generator, count: int) -> Array:
    """(k, m): by binary problem and sample, the share of the fits that did not see it and put it beyond the opposite
    margin; nan where there was none.

    Each of `count` fits, at the price C, is on 70 % of the rows, groups together, with all features. A fit without a
    weight says nothing and is left out.
    """
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(count)
    shape = part.target.machine_target.y.shape
    beyond, seen = np.zeros(shape), np.zeros(shape)
    for seed in seeds:
        rows, flagged, fits = _once(plan, part, price, seed)
        beyond[:, rows] += flagged
        seen[:, rows] += fits[:, None]
    return np.asarray(beyond / np.where(seen > 0, seen, np.nan))


def _once(plan: Plan, part: Rows, price: float, seed: np.random.SeedSequence) -> tuple[IntArray, Array, Array]:
    """(rows not seen, whether they are beyond the margin, by binary problem whether there was a fit)."""
    rng = np.random.default_rng(seed)
    out = part.target.draw(LEFT_OUT, rng, at_least=1, leave=2)
    rows = np.flatnonzero(out)
    labels = part.target.machine_target.y[:, rows]
    flagged, fits = np.zeros(labels.shape), np.zeros(len(labels))
    seen = part.take(np.flatnonzero(~out))
    if not varying_columns(seen.table).any():
        return rows, flagged, fits  # nothing to fit on
    with one_thread():
        ready = prepare(plan, seen, rng)
        problem = ready.problem
        view = as_columns(problem.view())
        X = view.rows(ready.rows(part.table.Z[rows]))
        for k in range(len(labels)):
            solution = RampSVC(C=price).solve(view, problem.y[k], problem.cost[k])
            assert solution.expanded is not None
            if solution.expanded.any():
                flagged[k] = labels[k] * (np.asarray(X @ solution.expanded) + solution.intercept) < BEYOND
                fits[k] = 1
    return rows, flagged, fits


def left_out_samples(plan: Plan, part: Rows, model: Model, rng: np.random.Generator, resamples: int) -> Any:
    """The samples that a model with the ramp loss left out, as a DataFrame; None where it has another loss.

    `margin` is y f of the model, below -1; `frequency` the share of resampled fits on the selected features, among
    those that did not see the sample, that put it there too, nan where there are none.
    """
    import pandas as pd

    machine = model.machine
    if not (isinstance(machine, FitsBudget) and machine.truncated):
        return None
    labels, problem = part.target.machine_target.y, part.target.own_problem
    margin = (labels * model.decision(part.table.Z).T)[problem, np.arange(len(problem))]
    chosen = np.flatnonzero(margin < BEYOND)
    frequency = np.full(len(chosen), np.nan)
    if len(chosen) and resamples:
        small = replace(part, table=part.table.columns(model.features))
        simple = replace(plan, keep=(), prefilter=None, sampler=None, ensemble=None)
        frequency = beyond_frequency(simple, small, machine.C, rng, resamples)[problem[chosen], chosen]
    frame = pd.DataFrame({"margin": margin[chosen], "frequency": frequency}, index=sample_index(part)[chosen])
    return frame.sort_values("margin", kind="stable")


def sample_index(rows: Rows) -> Any:
    """The names of the samples: a pandas index, or row numbers."""
    import pandas as pd

    return rows.names if isinstance(rows.names, pd.Index) else pd.Index(rows.row_numbers())
