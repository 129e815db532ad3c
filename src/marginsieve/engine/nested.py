"""Nested cross-validation: everything that is fitted is fitted inside the training part of an outer fold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from ..contracts import Array, BoolArray, IntArray, Outcome
from ..errors import InputError, whole_number
from ..estimators import SVMSelector
from ..fitting.held_out import lists_rows
from ..fitting.settings import find_outcome
from ..outcomes import Target
from .scoring import PREDICTED, Pass, Scores, point_scores, score_predictions
from .units import MOST_DRAWS, Method, PlainTable, Protocol, Split, Task, Unit, seed_estimator
from .workers import workers


@dataclass(frozen=True)
class Fold:
    """What one outer fold gave: predictions of its test rows, and what was selected without them."""

    name: str  # "repeat.fold"
    test: IntArray
    predicted: Any  # codes of classes, or numbers
    decision: Array | None  # (test rows,), of two classes: higher for the one of interest
    support: IntArray | None  # None: the estimator does not tell
    seconds: float
    notes: tuple[str, ...]
    probability: Array | None = None  # (test rows,) of the class of interest, where the estimator tells
    values: Array | None = None  # (test rows, k) of more than two classes
    unit: float | None = None  # standard deviation of the model's decision values on rows that it did not see

    @property
    def repeat(self) -> int:
        return int(self.name.split(".")[0])

    @classmethod
    def from_row(cls, row: dict[str, Any], place: int = 0) -> Fold:
        """The row that a unit left in the store; `place` of the list, where it left several."""
        result = row["result"]
        kinds = {"predicted": None, "decision": float, "support": np.intp, "probability": float, "values": float}
        entry: dict[str, Any] = dict.fromkeys(kinds) | result["by_size"][place]
        values: Any = {key: None if entry[key] is None else np.asarray(entry[key], kind) for key, kind in kinds.items()}
        test, notes = np.asarray(result["test"], dtype=np.intp), tuple(result["notes"])
        unit = entry.get("unit")
        return cls(name=row["split"], test=test, seconds=row["seconds"], notes=notes, unit=unit, **values)


@dataclass(frozen=True)
class Nested:
    """Out-of-fold predictions of every repeat, and the features selected in every fold.

    Attributes
    ----------
    target : Target
        The rows' outcomes: `target.classes`, `target.codes` and `target.positive` where they are classes.
    folds : tuple of Fold
        Predictions and selected features of each outer fold.
    n_features : int
        Number of columns of the table.
    random_state : int
        Seed of the splits.
    repeats : int
        Number of repeats.
    predicted : array of shape (repeats, m)
        Predictions: codes of classes, or numbers.
    decision : array of shape (repeats, m) or None
        Decision values, of two classes: higher for the class of interest.
    probability : array of shape (repeats, m) or None
        Probabilities of the class of interest, where the estimator has them.
    frequency : array of shape (n_features,)
        Share of outer folds in which each feature was selected; nan where the estimator does not report a selection.
    sizes : array of int of shape (folds,)
        Number of features selected in each fold; -1 where the estimator does not report a selection.
    notes : list of str
        Remarks of the folds, each once.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.engine import nested_cv
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> nested = nested_cv(recipes.fisher(n_features_to_select=2), cohort.X, cohort.y, cv=3, n_repeats=2)
    >>> nested.predicted.shape, nested.sizes.tolist()
    ((2, 60), [2, 2, 2, 2, 2, 2])
    """

    target: Target
    folds: tuple[Fold, ...]
    n_features: int
    random_state: int

    @property
    def repeats(self) -> int:
        return max(fold.repeat for fold in self.folds) + 1

    @cached_property
    def predicted(self) -> Any:
        """(repeats, m) predictions: codes of classes, or numbers."""
        return self._spread("predicted", self.folds[0].predicted.dtype)

    @cached_property
    def decision(self) -> Array | None:
        """(repeats, m) decision values."""
        return self._spread("decision")

    @cached_property
    def probability(self) -> Array | None:
        """(repeats, m) probabilities, where the estimator tells."""
        return self._spread("probability")

    def _spread(self, name: str, dtype: Any = np.float64) -> Array | None:
        """(repeats, m) from what the folds say of their test rows; None where one says nothing."""
        out: Array = np.empty((self.repeats, len(self.target)), dtype=dtype)
        for fold in self.folds:
            if (value := getattr(fold, name)) is None:
                return None
            out[fold.repeat, fold.test] = value
        return out

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """The predictions of each repeat, with what tells the models of its folds apart."""
        passes = []
        for repeat in range(self.repeats):
            folds = [fold for fold in self.folds if fold.repeat == repeat]
            back = np.argsort(np.concatenate([fold.test for fold in folds]))
            passes.append(Pass.from_entries([vars(fold) for fold in folds]).take(back))
        return tuple(passes)

    @cached_property
    def frequency(self) -> Array:
        """(n,) the share of outer folds in which each feature was selected; nan where the estimator does not tell."""
        count = np.zeros(self.n_features)
        for fold in self.folds:
            if fold.support is None:
                return np.full(self.n_features, np.nan)
            count[fold.support] += 1
        return count / len(self.folds)

    @property
    def sizes(self) -> IntArray:
        """How many features each fold selected; -1 where the estimator does not tell."""
        return np.array([-1 if fold.support is None else len(fold.support) for fold in self.folds])

    @property
    def notes(self) -> list[str]:
        """What the folds remarked, each remark once."""
        return list(dict.fromkeys(note for fold in self.folds for note in fold.notes))

    def scores(self, level: float = 0.95, errors: Mapping[str, float] | None = None) -> Scores:
        """Metrics averaged over the repeats, with intervals for the model that is fitted on all rows.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals.
        errors : mapping of metric to float, or None, default=None
            Standard errors that were estimated otherwise; they count where they are larger than those from the
            predictions.

        Returns
        -------
        Scores
            Value, standard error and interval of each metric.

        Examples
        --------
        >>> from marginsieve import recipes
        >>> from marginsieve.data import make_cohort
        >>> from marginsieve.engine import nested_cv
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> nested = nested_cv(recipes.fisher(n_features_to_select=2), cohort.X, cohort.y, cv=3, n_repeats=2)
        >>> nested.scores().value["auc"] > 0.8
        True
        """
        return score_predictions(self.target, self.passes, level, errors)


def nested_splits(target: Target, cv: int, n_repeats: int, random_state: int) -> list[Split]:
    """Stratified folds (grouped where there are groups), drawn anew for each repeat, with a seed for each fit."""
    seeds = np.random.SeedSequence(random_state).spawn(n_repeats * (cv + 1))
    splits = []
    for repeat in range(n_repeats):
        first = repeat * (cv + 1)
        folds = target.folds(cv, _integer(seeds[first]))
        for k, (train, test) in enumerate(folds):
            state = _integer(seeds[first + 1 + k])
            splits.append(Split(f"{repeat}.{k}", repeat, train, test, random_state=state))
    return splits


def pair_splits(splits: Sequence[Split], random_state: int) -> list[Split]:
    """For each repeat and pair of its folds a split that tests both and trains on the others."""
    pairs = []
    for repeat in sorted({split.repeat for split in splits}):
        folds = [split for split in splits if split.repeat == repeat]
        for j, k in itertools.combinations(range(len(folds)), 2):
            test = np.sort(np.concatenate([folds[j].test, folds[k].test]))
            train = np.setdiff1d(np.concatenate([folds[j].train, folds[j].test]), test)
            state = _integer(np.random.SeedSequence([random_state, repeat, j, k]))
            pairs.append(Split(f"{repeat}.{j}x{k}", repeat, train, test, random_state=state))
    return pairs


def nested_errors(nested: Nested, pairs: Sequence[Fold]) -> dict[str, float]:
    """Standard errors of the metrics by nested cross-validation (after Bates, Hastie and Tibshirani).

    ::

        MSE = mean over folds j of (s_in,j - s_out,j)^2 - K V,      SE = sqrt((K - 1) / K max(MSE, 0))

    s_out,j is the score on fold j of the model on the other folds, s_in,j the score of models on K - 2 folds over the
    rows outside j, V the variance of a pass; SE is kept within sqrt(V) and sqrt(K V).
    """
    away: dict[str, list[float]] = {}
    target, K = nested.target, len([fold for fold in nested.folds if fold.repeat == 0])
    for repeat in range(nested.repeats):
        folds = [fold for fold in nested.folds if fold.repeat == repeat]
        for fold in folds:
            entries, rows = [], []
            for pair in (some for some in pairs if some.repeat == repeat and np.isin(fold.test, some.test).all()):
                inside = ~np.isin(pair.test, fold.test)
                entries.append(_part_of(pair, inside))
                rows.append(pair.test[inside])
            inner = point_scores(target.take(np.concatenate(rows)), Pass.from_entries(entries))
            outer = point_scores(target.take(fold.test), Pass.from_entries([vars(fold)]))
            for name in inner.keys() & outer.keys():
                away.setdefault(name, []).append((inner[name] - outer[name]) ** 2)
    scores, counts = nested.scores(), np.array(target.row_counts)
    errors = {}
    for name, squares in away.items():
        variance = float(np.sum(np.array(scores.by_stratum[name]) / counts))
        mse = float(np.mean(squares)) - K * variance
        wide = np.sqrt((K - 1) / K * max(mse, 0.0))
        errors[name] = float(np.clip(wide, np.sqrt(variance), np.sqrt(K * variance)))
    return errors


def _part_of(fold: Fold, rows: BoolArray) -> dict[str, Any]:
    """What a fold predicts for some of its test rows."""
    values = {name: getattr(fold, name) for name in PREDICTED}
    return {"unit": fold.unit} | {name: None if value is None else value[rows] for name, value in values.items()}


def collect_folds(target: Target, folds: Sequence[Fold], n_features: int, random_state: int) -> Nested:
    """Folds in their order, whatever the order in which they finished."""
    ordered = tuple(sorted(folds, key=lambda fold: (fold.repeat, int(fold.test[0]))))
    return Nested(target, ordered, n_features, random_state)


def nested_cv(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    positive: Any = None,
    cv: int = 5,
    n_repeats: int = 3,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    outcome: str | Outcome | None = None,
) -> Nested:
    """Repeated stratified cross-validation (grouped where groups are given) around any estimator's whole fit.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted on each training part; it has `decision_function` or `predict_proba`.
    X : table of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        The classes.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Passed to `fit`.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of each row; rows of one group are never on both sides of a split.
    positive : label or None, default=None
        The class of interest; None is the rarer one.
    cv : int, default=5
        Number of outer folds.
    n_repeats : int, default=3
        Number of times that the folds are drawn.
    random_state : int, default=0
        Seed; the result depends on it alone, not on n_jobs.
    n_jobs : int or None, default=None
        Number of worker processes.
    progress : callable or None, default=None
        Called as progress(done, total) as folds finish.
    outcome : str, Outcome or None, default=None
        What y is; None is what the estimator says in its parameter `outcome`, else classes.

    Returns
    -------
    Nested
        Out-of-fold predictions and the features selected in every fold; `scores()` has metrics with intervals.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.engine import nested_cv
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> nested = nested_cv(recipes.fisher(n_features_to_select=2), cohort.X, cohort.y, cv=3, n_repeats=2)
    >>> nested.scores().value["auc"] > 0.8
    True
    """
    X = np.asarray(X) if isinstance(X, (list, tuple)) else X
    known = _outcome(estimator, outcome, positive)
    target = known.read(X, y, sample_weight, groups)
    target.refuse()
    if sample_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(f"{type(estimator).__name__} does not take sample_weight: leave it out")
    if isinstance(estimator, SVMSelector) and lists_rows(estimator.cv):
        raise InputError(
            "cv of the estimator is a list of splits, whose rows are not those of an outer fold: give a number or a "
            "splitter"
        )
    _refuse_few(target, cv)
    whole_number("nested_cv", "n_repeats", n_repeats, most=MOST_DRAWS)
    weight = None if sample_weight is None else target.weight
    target = target.with_weight(np.ones(len(target))).settle(known)
    splits = nested_splits(target, cv, n_repeats, random_state)
    table = PlainTable("table", X, y, weight, target)
    return score_on_splits(table, estimator, splits, random_state, n_jobs, progress)


def score_on_splits(
    table: PlainTable,
    estimator: Any,
    splits: Sequence[Split],
    random_state: int,
    n_jobs: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> Nested:
    """An estimator on the splits of a table whose target is read already."""
    cv, n_repeats = len([split for split in splits if split.repeat == 0]), max(split.repeat for split in splits) + 1
    method, protocol = Method(type(estimator).__name__, ""), Protocol("nested", "folds", folds=cv, repeats=n_repeats)
    tasks = []
    for split in splits:
        unit = Unit(split.name, table.name, method, protocol, split, random_state, split.random_state)
        tasks.append(Task(unit, partial(_fit_and_predict, estimator=estimator), catch=False))
    done: list[Fold] = []
    with workers([table], n_jobs) as run:
        for row in run(tasks):
            done.append(Fold.from_row(row))
            if progress is not None:
                progress(len(done), len(splits))
    return collect_folds(table.target, done, int(table.X.shape[1]), random_state)


def _fit_and_predict(unit: Unit, table: PlainTable, estimator: Any) -> dict[str, Any]:
    """A unit on an estimator of any kind: it is given the user's own rows."""
    estimator, train = seed_estimator(estimator, unit.random_state), unit.split.train
    extra = {
        key: values[train]
        for key, values in (("sample_weight", table.weight), ("groups", table.target.groups))
        if values is not None and has_fit_parameter(estimator, key)
    }
    estimator.fit(_safe_indexing(table.X, train), _safe_indexing(table.y, train), **extra)
    rows = _safe_indexing(table.X, unit.split.test)
    entry = table.target.entry_of(estimator, rows)
    entry["support"] = _support_of(estimator, int(table.X.shape[1]))
    return {"result": {"test": unit.split.test, "by_size": [entry]}}


def _support_of(estimator: Any, n: int) -> IntArray | None:
    """The features an estimator selected, looked up inside a search or a pipeline; None where it cannot be told."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    for step in steps:
        if hasattr(step, "get_support"):
            known = getattr(step, "n_features_in_", n) == n
            return np.asarray(step.get_support(indices=True), dtype=np.intp) if known else None
    return np.arange(n)


def _outcome(estimator: Any, outcome: str | Outcome | None, positive: Any) -> Outcome:
    """What y is: as it is given, as the estimator says, or classes."""
    outcome = getattr(estimator, "outcome", "classes") if outcome is None else outcome
    return find_outcome(outcome, {"positive": positive})


def _refuse_few(target: Target, folds: int) -> None:
    if folds < 2:
        raise InputError(f"cv is {folds!r}; it must be 2 or more")
    limit = target.fold_limit()
    if limit.count < folds:
        advice = f"use {limit.count} folds or fewer" if limit.count >= 2 else "a score needs at least 2"
        raise InputError(f"{limit.reason}, fewer than the {folds} outer folds: {advice}")


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0] // 2)
