"""One method on a table: a selector on all rows, and the nested score of the way it was made."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .. import recipes
from ..contracts import Array, BoolArray, IntArray, Outcome, PricesFeatures
from ..engine.nested import Fold, Nested, collect_folds, nested_errors, nested_splits, pair_splits
from ..engine.scoring import Scores, Stability, nogueira
from ..engine.store import Store, open_store
from ..engine.units import (
    UNREAD,
    Method,
    PreparedMethod,
    Protocol,
    Split,
    Task,
    Unit,
    UnitTable,
    key_of,
    run_prepared,
    versions,
)
from ..engine.workers import Run, workers
from ..errors import InputError
from ..estimators import SVMSelector
from ..estimators.fitted_selector import FittedSelector
from ..estimators.inputs import refuse_cells, takes_gaps
from ..fitting.parts import kernel_of, search_of
from ..fitting.procedure import ListRequest, seed_sequence
from ..fitting.settings import find_outcome
from .options import StudyOptions

if TYPE_CHECKING:
    import pandas as pd


CORE = 0.9  # share of the outer folds that selected a feature of the core


@dataclass(frozen=True)
class ScoreFormula:
    """score = sum_j coefficient_j x_j + intercept, above 0 for the positive class.

    The probability of that class is the logistic function of slope * score + offset. sign * score is the decision
    value, above 0 for the second class.
    """

    coefficient: Array  # (columns,)
    intercept: float
    slope: float
    offset: float
    sign: int


@dataclass(frozen=True)
class Selection:
    """A method's selector on all rows and its nested score.

    Where a rule chose the number of features this is the short list, and `longer` the one of the lower price.
    """

    method: Method
    selector: FittedSelector
    nested: Nested
    scores: Scores
    seconds: float
    longer: Selection | None = None

    @property
    def in_core(self) -> BoolArray:
        """(n,) which features are selected, and in at least nine of ten outer folds too."""
        return np.asarray(self.selector.support_ & (self.nested.frequency >= CORE - 1e-12))

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys([*self.selector.notes_, *self.nested.notes]))

    @property
    def stability(self) -> Stability | None:
        """How alike the sets of the outer folds are; None where all features are taken, or most: then it misleads."""
        sets = [fold.support for fold in self.nested.folds if fold.support is not None]
        if self.method.baseline or len(sets) < 2 or 2 * np.median(self.nested.sizes) > self.nested.n_features:
            return None
        stability = nogueira(sets, self.nested.n_features)
        return None if np.isnan(stability.value) else stability

    @cached_property
    def formula(self) -> ScoreFormula | None:
        """A new sample's score by hand; None where the machine is not linear or there are three classes."""
        selector = self.selector
        if not self.nested.target.has_auc or not hasattr(selector, "coef_"):
            return None
        sign, (slope, offset) = selector._sign, selector._sigmoid[0]
        return ScoreFormula(sign * selector.coef_[0], sign * selector.intercept_[0], slope, sign * offset, int(sign))

    def features(self) -> pd.DataFrame:
        """Every feature by rank: name, rank, score, part of the list, share of the outer folds, what it resembles.

        `coefficient` is that of the `formula`, empty where there is none.
        """
        import pandas as pd

        order = np.argsort(self.selector.ranking_)
        names = self.selector.columns_.names
        coef = None if self.formula is None else self.formula.coefficient
        factor = np.full(len(names), np.nan) if coef is None else np.where(self.selector.support_, coef, np.nan)
        numbered = enumerate(self.selector.groups_, 1)
        groups = {name: k for k, group in numbered for name in (group.representative, *group.members)}
        like = {name: group.representative for group in self.selector.groups_ for name in group.members}
        return pd.DataFrame(
            {
                "name": np.array(names, dtype=object)[order],
                "rank": self.selector.ranking_[order],
                "score": self.selector.scores_[order],
                "part": list_part(self.selector.support_, self.nested.frequency)[order],
                "selected": self.selector.support_[order],
                "in_short": self.selector.support_[order],
                "in_long": (self.longer or self).selector.support_[order],
                "frequency": self.nested.frequency[order],
                "frequency_long": (self.longer or self).nested.frequency[order],
                "coefficient": factor[order],
                "group": pd.array([groups.get(name) for name in names], dtype="Int64")[order],
                "like": [like.get(names[j], "") for j in order],
                "kind": np.array(self.selector.columns_.kind, dtype=object)[order],
            }
        )

    def predictions(self, ids: Any = None, numbers: IntArray | None = None) -> pd.DataFrame:
        """Out-of-fold predictions, one row per sample and repeat; `ids` is what the rows are called.

        `numbers`: the rows' numbers in the user's table, from 0, whose order they get; `row` counts from 1.
        """
        import pandas as pd

        nested = self.nested
        shape = repeats, m = nested.predicted.shape
        frame = pd.DataFrame({"row": 1 + np.tile(np.arange(m) if numbers is None else numbers, repeats)})
        if ids is not None:
            frame["id"] = np.tile(np.asarray(ids), repeats)
        frame["repeat"] = np.repeat(np.arange(1, repeats + 1), m)
        frame["label"] = np.tile(nested.target.observed, repeats)
        for suffix, each in (("", nested), ("_long", None if self.longer is None else self.longer.nested)):
            if each is not None:
                frame[f"predicted{suffix}"] = nested.target.in_terms_of_user(each.predicted.ravel())
                for name, values in (("decision", each.decision), ("probability", each.probability)):
                    frame[name + suffix] = (np.full(shape, np.nan) if values is None else values).ravel()
        return frame.sort_values(["repeat", "row"], ignore_index=True)


def plain_scores(scores: Scores) -> dict[str, dict[str, float | None]]:
    """Scores as result.json has them: None where there is no interval."""
    ends = {"value": scores.value, "low": scores.low, "high": scores.high}
    return {
        name: {key: None if np.isnan(values[name]) else values[name] for key, values in ends.items()}
        for name in scores.value
    }


def list_part(selected: BoolArray, frequency: Array) -> NDArray[np.object_]:
    """(n,) "core": selected, and in at least 9 of 10 outer folds too; "optional": selected; "rest"."""
    core = selected & (frequency >= CORE - 1e-12)
    return np.where(core, "core", np.where(selected, "optional", "rest")).astype(object)


def score_label(selector: FittedSelector) -> str:
    """What the features' scores are."""
    if not isinstance(selector, SVMSelector):
        return "minus the mean of the feature's places in the views"
    if selector.ensemble:
        return "minus the mean of log(rank + 5) over the subsamples"
    if isinstance(search_of(selector.search), PricesFeatures):
        return "1 + the size of the weight; where there is none, the gradient at zero weight, below 1"
    part = selector.search if selector.criterion is None else selector.criterion
    name = part if isinstance(part, str) else getattr(part, "__name__", type(part).__name__)
    return f"{name}, when the feature was last looked at"


def outcome_by_options(options: StudyOptions) -> Outcome:
    """The outcome that reads the target of a study."""
    return find_outcome(options.outcome, {"positive": options.positive, "threshold": options.cut_rule() or "auto"})


def prepare_method(method: Method, table: UnitTable, options: StudyOptions) -> tuple[Method, PreparedMethod]:
    """A method with its settings for this table: columns standardised, both classes weigh the same.

    A table with categories or empty cells gets the clinical kernel where the recipe's own kernel refuses it. Both the
    recipe and the table are checked before anything is run.
    """
    recipe = recipes.get(method.recipe)
    settings = _settings(method, recipe, options)
    selector = _build(recipe, method, settings)
    try:
        return replace(method, settings=tuple(settings.items())), _prepare(selector, table)
    except InputError as error:
        refusal = error
    plain = isinstance(selector, SVMSelector) and "nominal" not in kernel_of(selector.kernel).kinds
    if "kernel" not in settings and plain:
        settings |= {"kernel": "clinical", "standardize": False}
        try:
            prepared = _prepare(_build(recipe, method, settings), table)
            return replace(method, settings=tuple(settings.items())), prepared
        except InputError:
            pass  # what the recipe's own kernel refuses is what the user should read
    raise InputError(f"{method.title}: {refusal}") from refusal


def _settings(method: Method, recipe: Callable[..., FittedSelector], options: StudyOptions) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "standardize": True,
        "class_weight": "balanced",
        "keep": list(options.keep) or None,
        "positive": options.positive,
        "outcome": options.outcome,
        "max_samples": options.max_samples,
        "probability": True,
        "random_state": options.random_state,
    }
    settings |= {} if options.device == "cpu" else {"device": options.device}
    settings |= {} if (rule := options.cut_rule()) is None else {"threshold": rule}
    size, parameters = options.n_features_to_select, inspect.signature(recipe).parameters
    if not method.baseline:
        budgeted = size is not None and "budget" in parameters
        settings["budget" if budgeted else "n_features_to_select"] = size  # the count is the budget
        settings["prefilter"] = options.prefilter
        settings |= {} if options.ensemble is None else {"ensemble": options.ensemble}
        settings |= {} if options.false_share is None else {"false_share": options.false_share}
    settings |= dict(method.settings)
    if settings.get("kernel") == "clinical":
        settings["standardize"] = False
    return settings


def _build(recipe: Callable[..., FittedSelector], method: Method, settings: dict[str, Any]) -> FittedSelector:
    try:
        return recipe(**settings)
    except TypeError as error:
        if "'kernel'" in str(error):
            raise InputError(f"{method.title} has a kernel of its own: leave the kernel out") from error
        raise InputError(f"{method.title} does not take this setting: {error}") from error


def _prepare(selector: FittedSelector, table: UnitTable) -> PreparedMethod:
    """The selector with its plan on the whole table; refuses what does not fit, before any fold is run."""
    plan = selector.plan(table.rows)
    refuse_cells(table.rows.table.Z, table.rows.schema, takes_gaps(selector))
    return PreparedMethod(selector, plan)


def outer_units(method: Method, prepared: PreparedMethod, table: UnitTable, options: StudyOptions) -> list[Task]:
    """The outer folds of a method, repeat by repeat; the options say how many."""
    target, state, cv, n_repeats = table.target, options.random_state, options.cv, options.n_repeats
    assert cv is not None
    assert n_repeats is not None
    splits = nested_splits(target, cv, n_repeats, state)
    pairs = pair_splits(splits, state) if options.intervals == "nested" else []
    return units_of(method, prepared, table, options, [*splits, *pairs])


def units_of(
    method: Method, prepared: PreparedMethod, table: UnitTable, options: StudyOptions, splits: Sequence[Split]
) -> list[Task]:
    """A method on splits of the table; their names are part of what finished ones are known by."""
    state, cv, n_repeats = options.random_state, options.cv or 0, options.n_repeats or 1
    protocol = Protocol("study", "folds", folds=cv, repeats=n_repeats)
    quick = clone(prepared.selector)
    quick.set_params(**{name: value for name, value in UNREAD.items() if name in quick.get_params(deep=False)})
    unread = PreparedMethod(quick, prepared.plan)
    mark = key_of(table.fingerprint, repr(prepared.selector), prepared.selector.get_params(), versions()["marginsieve"])
    tasks = []
    for split in splits:
        unit = Unit(key_of(mark, cv, state, split.name), table.name, method, protocol, split, state, split.random_state)
        tasks.append(Task(unit, partial(run_prepared, prepared=unread), catch=False))
    return tasks


def run_splits(
    method: Method, prepared: PreparedMethod, table: UnitTable, options: StudyOptions, splits: Sequence[Split]
) -> list[Fold]:
    """A method on splits of the table: what it gives for each, in their order."""
    with workers([table], options.n_jobs) as pool:
        rows = {row["split"]: row for row in pool(units_of(method, prepared, table, options, splits))}
    return [Fold.from_row(rows[split.name]) for split in splits]


@dataclass
class FoldRows:
    """Rows of finished folds: those of this study, and those that an earlier run left in the folder."""

    folder: Path | None = None
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def missing(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks whose rows are not known."""
        if self.folder is not None:
            with open_store(self.folder, "study") as store:
                self._read(store)
        return [task for task in tasks if task.unit.key not in self.known]

    def _read(self, store: Store) -> None:
        self.known |= {row["key"]: row for row in store.units() if row["status"] == "done"}

    def rows(self, tasks: Sequence[Task], run: Run) -> Iterator[dict[str, Any]]:
        """The rows of all tasks, those that are known first; the others are run and kept."""
        with nullcontext() if self.folder is None else open_store(self.folder, "study") as store:
            if store is not None:
                self._read(store)
            yield from (self.known[task.unit.key] for task in tasks if task.unit.key in self.known)
            for row in run([task for task in tasks if task.unit.key not in self.known]):
                if store is not None:
                    store.add([{**row, "params": {}}])
                self.known[row["key"]] = row
                yield row


def run_method(
    method: Method,
    prepared: PreparedMethod,
    table: UnitTable,
    options: StudyOptions,
    run: Run,
    kept: FoldRows,
    progress: Callable[[int], None] | None = None,
) -> Selection:
    """The nested score of a method, then its fit on all rows."""
    rows: list[dict[str, Any]] = []
    for row in kept.rows(outer_units(method, prepared, table, options), run):
        rows.append(row)
        if progress is not None:
            progress(len(rows))
    scored = [
        _score_list(table, rows, place, options) for place in range(min(len(row["result"]["by_size"]) for row in rows))
    ]
    chosen = [None if method.baseline else nested.frequency > 0 for nested, _ in scored]
    selectors = fit_prepared(prepared, table, options.n_jobs, ListRequest(len(scored) > 1, chosen[-1], chosen[0]))
    seconds = sum(float(row["seconds"]) for row in rows)
    *longer, short = (
        Selection(method, selector, nested, scores, seconds)
        for selector, (nested, scores) in zip(selectors[::-1], scored[::-1], strict=True)
    )
    return replace(short, longer=longer[0] if longer else None)


def select_again(method: Method, table: UnitTable, options: StudyOptions) -> Selection:
    """A method on another table: the folds of the repeats, and the fit on all rows."""
    options = replace(options, intervals="simple")
    method, prepared = prepare_method(method, table, options)
    with workers([table], options.n_jobs) as pool:
        return run_method(method, prepared, table, options, pool, FoldRows())


def _score_list(
    table: UnitTable, rows: Sequence[dict[str, Any]], place: int, options: StudyOptions
) -> tuple[Nested, Scores]:
    """The nested predictions of one of the lists that units left, and its scores."""
    folds = [Fold.from_row(row, place) for row in rows]
    outer, twice = ([fold for fold in folds if ("x" in fold.name) == paired] for paired in (False, True))
    nested = collect_folds(table.target, outer, table.rows.table.shape[1], options.random_state)
    return nested, nested.scores(errors=nested_errors(nested, twice) if twice else None)


def fit_prepared(
    prepared: PreparedMethod, table: UnitTable, n_jobs: int | None, lists: ListRequest
) -> list[FittedSelector]:
    """The method's selector on all rows of the table; with `lists.short` that of the short list before it."""
    selector: FittedSelector = clone(prepared.selector).set_params(n_jobs=n_jobs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = selector.fit_rows(table.rows, plan=prepared.plan, lists=lists)
        out = []
        for each, rule in ((fitted.short, "short"), (fitted, None)):
            if each is not None:
                of_list = clone(selector).set_params(**({} if rule is None else {"n_features_to_select": rule}))
                of_list.adopt(each, seed_sequence(selector.random_state))
                of_list.describe_training(table.rows)
                out.append(of_list)
    for of_list in out:
        of_list.notes_ = list(dict.fromkeys([*of_list.notes_, *(str(item.message) for item in caught)]))
    return out
