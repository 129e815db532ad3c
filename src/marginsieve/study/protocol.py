"""Nested cross-validation: everything that is fitted is fitted inside the training part of an outer fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from ..contracts import Array, IntArray
from ..errors import InputError
from ..estimators.inputs import check_classes, positive_code, read_target
from ..solvers.threads import one_thread
from .metrics import DRAWS, Scores, score_predictions


@dataclass(frozen=True)
class Fold:
    """What one outer fold gave: codes and decision values of its test rows, and what was selected without them."""

    name: str  # "repeat.fold"
    test: IntArray
    predicted: IntArray
    decision: Array | None  # (test rows,), higher for the positive class; None for more than two classes
    support: IntArray | None  # None: the estimator does not tell
    seconds: float
    notes: tuple[str, ...]
    probability: Array | None = None  # (test rows,) of the positive class, where the estimator tells

    @property
    def repeat(self) -> int:
        return int(self.name.split(".")[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        out = asdict(self)
        for key in ("test", "predicted", "decision", "support", "probability"):
            out[key] = None if out[key] is None else out[key].tolist()
        return out

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Fold:
        """What `to_dict` gave."""
        whole: Any = lambda key: None if values.get(key) is None else np.asarray(values[key], dtype=np.intp)  # noqa: E731
        real: Any = lambda key: None if values.get(key) is None else np.asarray(values[key], dtype=float)  # noqa: E731
        return cls(
            values["name"],
            whole("test"),
            whole("predicted"),
            real("decision"),
            whole("support"),
            values["seconds"],
            tuple(values["notes"]),
            real("probability"),
        )


@dataclass(frozen=True)
class Nested:
    """Out-of-fold predictions of every repeat, and the features selected in every fold."""

    classes: Any
    positive: int  # code of the positive class
    truth: IntArray
    groups: IntArray | None
    folds: tuple[Fold, ...]
    n_features: int
    seed: int

    @property
    def repeats(self) -> int:
        return max(fold.repeat for fold in self.folds) + 1

    @cached_property
    def predicted(self) -> IntArray:
        """(repeats, m) class codes."""
        out = np.empty((self.repeats, len(self.truth)), dtype=np.intp)
        for fold in self.folds:
            out[fold.repeat, fold.test] = fold.predicted
        return out

    @cached_property
    def decision(self) -> Array | None:
        """(repeats, m) decision values, higher for the positive class."""
        return self._spread([fold.decision for fold in self.folds])

    @cached_property
    def probability(self) -> Array | None:
        """(repeats, m) probabilities of the positive class, where the estimator tells."""
        return self._spread([fold.probability for fold in self.folds])

    def _spread(self, values: Sequence[Array | None]) -> Array | None:
        """(repeats, m) from what the folds say of their test rows; None where one says nothing."""
        out = np.empty((self.repeats, len(self.truth)))
        for fold, value in zip(self.folds, values, strict=True):
            if value is None:
                return None
            out[fold.repeat, fold.test] = value
        return out

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

    def scores(self, draws: int = DRAWS, level: float = 0.95) -> Scores:
        """Metrics of the pooled predictions with bootstrap intervals over samples (over groups if there are any)."""
        return score_predictions(
            self.truth, self.predicted, self.decision, self.positive, self.groups, draws, level, self.seed
        )


def nested_cv(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    positive: Any = None,
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    memory: MutableMapping[str, Fold] | None = None,
) -> Nested:
    """Repeated stratified cross-validation (grouped where groups are given) around the estimator's whole fit.

    The result depends on the seed alone, not on n_jobs. `progress(done, total)` is called as folds finish. `memory`
    holds folds by name ("repeat.fold"): those it has are not run, those that finish are put there.
    """
    X = np.asarray(X) if isinstance(X, (list, tuple)) else X
    classes, codes, weight, groups = read_target(X, y, sample_weight, groups)
    check_classes(classes, codes)
    if sample_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(f"{type(estimator).__name__} does not take sample_weight: leave it out")
    _enough(classes, codes, groups, folds)
    if repeats < 1:
        raise InputError(f"repeats is {repeats!r}; it must be 1 or more")
    code = positive_code(classes, codes, np.ones(len(codes)), positive)
    seeds = np.random.SeedSequence(seed).spawn(repeats * (folds + 1))
    tasks, done = [], []
    for repeat in range(repeats):
        splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
        splits = splitter(folds, shuffle=True, random_state=_integer(seeds[repeat * (folds + 1)]))
        for k, (train, test) in enumerate(splits.split(np.zeros(len(codes)), codes, groups)):
            random_state = _integer(seeds[repeat * (folds + 1) + 1 + k])
            given = None if sample_weight is None else weight
            name = f"{repeat}.{k}"
            if memory is not None and name in memory:
                done.append(memory[name])
                continue
            tasks.append(delayed(_run)(estimator, X, y, given, groups, code, classes, name, train, test, random_state))
    for result in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks):
        if memory is not None:
            memory[result.name] = result
        done.append(result)
        if progress is not None:
            progress(len(done), folds * repeats)
    ordered = tuple(sorted(done, key=lambda fold: (fold.repeat, int(fold.test[0]))))
    return Nested(classes, code, codes, groups, ordered, int(X.shape[1]), seed)


def _run(
    estimator: Any,
    X: Any,
    y: Any,
    weight: Array | None,
    groups: IntArray | None,
    positive: int,
    classes: Any,
    name: str,
    train: IntArray,
    test: IntArray,
    random_state: int,
) -> Fold:
    since = time.perf_counter()
    estimator = _seeded(clone(estimator), random_state)
    extra = {
        key: values[train]
        for key, values in (("sample_weight", weight), ("groups", groups))
        if values is not None and has_fit_parameter(estimator, key)
    }
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train), **extra)
        rows = _safe_indexing(X, test)
        predicted = np.searchsorted(classes, estimator.predict(rows))
        decision = probability = None
        if len(classes) == 2:
            decision = _decision(estimator, rows) * (1.0 if positive == 1 else -1.0)
            if hasattr(estimator, "predict_proba"):
                probability = np.asarray(estimator.predict_proba(rows), dtype=float)[:, positive]
    return Fold(
        name,
        test,
        predicted.astype(np.intp),
        decision,
        _selected(estimator, int(X.shape[1])),
        time.perf_counter() - since,
        tuple(dict.fromkeys(str(item.message) for item in caught)),
        probability,
    )


def _seeded(estimator: Any, random_state: int) -> Any:
    """The estimator with a seed wherever it or a part of it takes one and has none; its own is set in any case."""
    params = estimator.get_params(deep=True)
    unset = [name for name in params if name.endswith("__random_state") and params[name] is None]
    own = ["random_state"] if "random_state" in params else []
    return estimator.set_params(**dict.fromkeys(own + unset, random_state))


def _decision(estimator: Any, rows: Any) -> Array:
    """Higher for the second class, 0 at the cut."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(rows), dtype=float)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(rows), dtype=float)[:, 1] - 0.5
    raise InputError(f"{type(estimator).__name__} has neither decision_function nor predict_proba")


def _selected(estimator: Any, n: int) -> IntArray | None:
    """The features an estimator selected, looked up inside a search or a pipeline; None where it cannot be told."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    for step in steps:
        if hasattr(step, "get_support"):
            known = getattr(step, "n_features_in_", n) == n
            return np.asarray(step.get_support(indices=True), dtype=np.intp) if known else None
    return np.arange(n)


def _enough(classes: Any, codes: IntArray, groups: IntArray | None, folds: int) -> None:
    if folds < 2:
        raise InputError(f"folds is {folds!r}; it must be 2 or more")
    units = np.arange(len(codes)) if groups is None else groups
    counts = [len(np.unique(units[codes == k])) for k in range(len(classes))]
    rarest = int(np.argmin(counts))
    if counts[rarest] < folds:
        what = "samples" if groups is None else "groups"
        few = counts[rarest]
        advice = f"use {few} folds or fewer" if few >= 2 else "a score needs at least 2"
        raise InputError(f"class {classes[rarest]!s} has {few} {what}, fewer than the {folds} outer folds: {advice}")


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0] // 2)
