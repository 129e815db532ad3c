"""What common models of scikit-learn score on the same splits: rows to read the methods' scores against."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from ...contracts import Array, BoolArray, IntArray
from ...data.table import filled_with_means, one_hot
from ...engine.nested import Nested, nested_splits, score_on_splits
from ...engine.scoring import Scores, score_difference
from ...engine.units import PlainTable, UnitTable
from ..analysis import Facts, Level, StudyRun, applies_to_classes, register_analysis, say_nothing
from ..selection import plain_scores

COSTS = (0.03, 0.1, 0.3, 1.0)  # C of the logistic regression, chosen by inner folds
TREES = 200
NEW = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)
L1: dict[str, Any] = {"l1_ratio": 1.0} if NEW else {"penalty": "l1"}  # how scikit-learn asks for it


@dataclass(frozen=True)
class ReferenceRow:
    """A model of scikit-learn on the first repeat's splits."""

    title: str
    nested: Nested
    scores: Scores
    difference: Scores  # from all features
    seconds: float


class OnCodes(ClassifierMixin, BaseEstimator):
    """An estimator on codes of a table: gaps filled with means, a column for each level, columns standardised.

    Parameters
    ----------
    estimator : classifier
        Fitted on these columns.
    kind : tuple of str
        Kinds of the table's columns.
    """

    def __init__(self, estimator: Any, kind: tuple[str, ...]) -> None:
        self.estimator = estimator
        self.kind = kind

    def fit(self, Z: Array, y: Any) -> OnCodes:
        """Fit on training rows."""
        self.training_ = Z
        X, self.owner_ = self._columns(Z)
        self.scaler_ = StandardScaler().fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model_ = clone(self.estimator).fit(self.scaler_.transform(X), y)
        self.classes_ = self.model_.classes_
        self.n_features_in_ = Z.shape[1]
        return self

    def predict(self, Z: Array) -> Any:
        """Classes of new rows."""
        return self.model_.predict(self.scaler_.transform(self._columns(Z)[0]))

    def predict_proba(self, Z: Array) -> Array:
        """Probabilities of the classes."""
        return np.asarray(self.model_.predict_proba(self.scaler_.transform(self._columns(Z)[0])))

    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """The table's columns with a weight; all for models without weights."""
        best = getattr(self.model_, "best_estimator_", self.model_)
        linear = [model for model in getattr(best, "estimators_", [best]) if hasattr(model, "coef_")]
        chosen = np.ones(self.n_features_in_, dtype=bool)
        if linear:
            used = np.any([model.coef_.any(axis=0) for model in linear], axis=0)
            chosen = np.isin(np.arange(self.n_features_in_), self.owner_[used])
        return np.flatnonzero(chosen) if indices else chosen

    def _columns(self, Z: Array) -> tuple[Array, IntArray]:
        filled = filled_with_means(Z, self.training_, self.kind)
        X, owner = one_hot(filled, self.training_, self.kind)
        return np.nan_to_num(X), owner


@register_analysis
class References:
    """What common models of scikit-learn score on the same splits."""

    name, order, template = "references", 70.0, ""

    applies = staticmethod(applies_to_classes)

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """After the methods."""
        return [Level((), 50)]

    def cost(self, facts: Facts) -> float:
        """By the size of the table, on five folds."""
        m, n = facts.shape.rows, facts.shape.columns
        return 5 * (0.5 + 9e-6 * m * math.sqrt(n) * math.log2(m + 1) + 8e-7 * m * n)

    def run(self, run: StudyRun) -> dict[str, Any]:
        """Rows for the table of methods."""
        rows = reference_rows(
            run.table, run.baseline.nested, run.choice.cv, run.options.random_state, run.options.n_jobs
        )
        return {
            "compared": [
                {
                    "title": row.title,
                    "scores": plain_scores(row.scores),
                    "difference": plain_scores(row.difference),
                    "n_features": int(np.median(row.nested.sizes)),
                    "seconds": round(row.seconds, 3),
                }
                for row in rows
            ]
        }

    sentence = doubt = staticmethod(say_nothing)  # they stand beside the methods


def reference_rows(
    table: UnitTable, baseline: Nested, cv: int, random_state: int, n_jobs: int | None
) -> tuple[ReferenceRow, ...]:
    """l1 logistic regression and a random forest, scored on the first repeat."""
    rows, target = table.rows, table.target
    Z = rows.table.Z.toarray() if rows.table.is_sparse else np.asarray(rows.table.Z)
    plain = PlainTable(table.name, Z, target.observed, None, target)
    splits = nested_splits(target, cv, 1, random_state)
    out = []
    for title, estimator in _estimators(target.has_auc).items():
        since = time.perf_counter()
        nested = score_on_splits(plain, OnCodes(estimator, rows.schema.kind), splits, random_state, n_jobs)
        gap = score_difference(target, nested.passes, baseline.passes[:1])
        out.append(ReferenceRow(title, nested, nested.scores(), gap, time.perf_counter() - since))
    return tuple(out)


def _estimators(two_sided: bool) -> dict[str, Any]:
    logistic = LogisticRegression(solver="liblinear", class_weight="balanced", random_state=0, max_iter=300, **L1)
    grid, scoring = {"C": COSTS}, "roc_auc"
    if not two_sided:
        logistic, grid, scoring = OneVsRestClassifier(logistic), {"estimator__C": COSTS}, "balanced_accuracy"
    forest = RandomForestClassifier(TREES, class_weight="balanced_subsample", random_state=0)
    return {
        "l1 logistic regression": GridSearchCV(logistic, grid, scoring=scoring, cv=3),
        "random forest": forest,
    }
