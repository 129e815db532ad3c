"""What common models of scikit-learn score on the same splits: rows to read the methods' scores against.

They have what the methods have: the same outer folds and repeats, and for classes a threshold from rows that the model
did not see (inner folds, or the trees that did not see a row).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from ...contracts import Array, BoolArray, IntArray
from ...data.table import filled_with_means, one_hot
from ...engine.nested import Nested, nested_splits, score_on_splits
from ...engine.scoring import Scores, score_difference
from ...engine.units import PlainTable
from ...errors import join_words, many
from ...machines.survival_machines import choose_share
from ...outcomes import Classes, ClassTarget, Target
from ...outcomes.survival_scores import concordance
from ...outcomes.target import Splits, stratified_folds, units_per_stratum
from ...report.numbers import format_score
from ...solvers.cox import RiskSets, fit_cox
from ..analysis import Facts, Level, StudyRun, register_analysis
from ..selection import plain_scores
from .missing_blocks import find_blocks

COSTS = (0.03, 0.1, 0.3, 1.0)  # C of the logistic regression, chosen by inner folds
TREES = 200
RIDGE_PENALTIES = tuple(float(penalty) for penalty in 10.0 ** np.arange(-1.0, 7.1, 0.5))
NUMBERS = "numbers"
SURVIVAL = "survival"
KNOWN = ("classes", NUMBERS, SURVIVAL)
L1_SHARES = tuple(float(share) for share in np.geomspace(1.0, 0.1, 15))  # of the smallest penalty that removes all
L1_ROUNDS, L1_TOLERANCE, L1_GAP = 30, 1e-5, 1e-7  # lassos for each penalty; of the linear predictor; of each lasso
FOLDS = 3  # inner ones, for C and for the threshold
NEW = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)
L1: dict[str, Any] = {"l1_ratio": 1.0} if NEW else {"penalty": "l1"}  # how scikit-learn asks for it
LASSO_PATH: dict[str, Any] = {"alphas" if NEW else "n_alphas": 50}  # likewise


@dataclass(frozen=True)
class Reference:
    """A model of scikit-learn, and the values of a parameter that inner folds choose from."""

    title: str
    estimator: Any
    grid: Mapping[str, Sequence[float]] | None = None
    columns: IntArray | None = None  # of the table, where it is not on all of them


@dataclass(frozen=True)
class ReferenceRow:
    """A model of scikit-learn on the study's splits."""

    title: str
    nested: Nested
    scores: Scores
    difference: Scores  # from all features
    against: Scores  # from the main method's list
    seconds: float  # of all fits on training parts


class TableColumns:
    """Codes of a table as numbers: gaps filled with means, a column for each level, columns standardised."""

    kind: tuple[str, ...]
    model_: Any

    def fit_columns(self, Z: Array) -> Array:
        """The standardised columns of training rows, whose means and levels hold for all rows."""
        self.training_, self.n_features_in_ = Z, Z.shape[1]
        X, self.owner_ = self._columns(Z)
        self.scaler_ = StandardScaler().fit(X)
        return np.asarray(self.scaler_.transform(X))

    def columns(self, Z: Array) -> Array:
        """The same of any rows."""
        return np.asarray(self.scaler_.transform(self._columns(Z)[0]))

    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """The table's columns with a weight; all for models without weights."""
        linear = [model for model in getattr(self.model_, "estimators_", [self.model_]) if hasattr(model, "coef_")]
        chosen = np.array([len(np.unique(column[~np.isnan(column)])) > 1 for column in self.training_.T])
        if linear:
            used = np.any([np.atleast_2d(model.coef_).any(axis=0) for model in linear], axis=0)
            chosen = np.isin(np.arange(self.n_features_in_), self.owner_[used])
        return np.flatnonzero(chosen) if indices else chosen

    def _columns(self, Z: Array) -> tuple[Array, IntArray]:
        filled = filled_with_means(Z, self.training_, self.kind)
        X, owner = one_hot(filled, self.training_, self.kind)
        return np.nan_to_num(X), owner


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class OnCodes(ClassifierMixin, TableColumns, BaseEstimator):
    """A classifier on codes of a table, made numbers as `TableColumns` does.

    Parameters
    ----------
    estimator : classifier
        Fitted on these columns.
    kind : tuple of str
        Kinds of the table's columns.
    grid : mapping of str to sequence, or None, default=None
        Values of a parameter that inner folds choose from.
    outcome : Classes or None, default=None
        Whose rule says where two classes are cut; None is halfway between them.
    """

    estimator: Any
    kind: tuple[str, ...]
    grid: Mapping[str, Sequence[float]] | None = None
    outcome: Any = None

    def fit(self, Z: Array, y: Any, groups: IntArray | None = None) -> OnCodes:
        """Fit on training rows; of two classes the threshold comes from values of rows that were not fitted on."""
        X = self.fit_columns(Z)
        self.classes_, codes = np.unique(y, return_inverse=True)
        binary = len(self.classes_) == 2
        count = min(FOLDS, *units_per_stratum(codes, groups))
        folds = stratified_folds(codes, groups, count, 0) if count > 1 else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clone(self.estimator)
            if self.grid is not None and folds is not None:
                scoring = "roc_auc" if binary else "balanced_accuracy"
                model = GridSearchCV(model, self.grid, scoring=scoring, cv=folds).fit(X, y).best_estimator_
            self.model_ = model.fit(X, y)
            self.threshold_ = self._threshold(X, y, folds) if binary else 0.5
        return self

    def _threshold(self, X: Array, y: Any, folds: Splits | None) -> float:
        """Where the probability of the second class is cut, by the rule of the methods."""
        if hasattr(self.model_, "oob_decision_function_"):
            value = self.model_.oob_decision_function_[:, 1]
        elif folds is None:
            return 0.5
        else:
            value = cross_val_predict(clone(self.model_), X, y, cv=folds, method="predict_proba")[:, 1]
        known = np.flatnonzero(np.isfinite(value))
        outcome = Classes() if self.outcome is None else self.outcome
        codes = np.searchsorted(self.classes_, y)
        target = ClassTarget(np.ones(len(codes)), None, self.classes_, codes, outcome).settle(outcome)
        sign = 1.0 if target.classes[1] == target.in_terms_of_user(target.positive) else -1.0
        return float(sign * target.threshold_of(sign * value[known], known, np.ones(len(known))))

    def predict(self, Z: Array) -> Any:
        """Classes of new rows."""
        probability = self.predict_proba(Z)
        if len(self.classes_) > 2:
            return self.classes_[probability.argmax(axis=1)]
        return self.classes_[(probability[:, 1] > self.threshold_).astype(int)]

    def predict_proba(self, Z: Array) -> Array:
        """Probabilities of the classes."""
        return np.asarray(self.model_.predict_proba(self.columns(Z)))


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class OnValues(RegressorMixin, TableColumns, BaseEstimator):
    """A regressor on codes of a table, made numbers as `TableColumns` does.

    Parameters
    ----------
    estimator : regressor
        Fitted on these columns; one with a parameter `cv` is given inner folds that keep groups together.
    kind : tuple of str
        Kinds of the table's columns.
    """

    estimator: Any
    kind: tuple[str, ...]

    def fit(self, Z: Array, y: Array, groups: IntArray | None = None) -> OnValues:
        """Fit on training rows."""
        X, model = self.fit_columns(Z), clone(self.estimator)
        if "cv" in model.get_params():
            units = len(y) if groups is None else len(np.unique(groups))
            splitter = (KFold if groups is None else GroupKFold)(min(FOLDS, units), shuffle=True, random_state=0)
            model.set_params(cv=list(splitter.split(X, groups=groups)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model_ = model.fit(X, y)
        return self

    def predict(self, Z: Array) -> Array:
        """Numbers for new rows."""
        return np.asarray(self.model_.predict(self.columns(Z)))


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class OnTimes(TableColumns, BaseEstimator):
    """Proportional hazards on codes of a table, made numbers as `TableColumns` does.

    On all columns with an l1 penalty, the one of `L1_SHARES`, of the smallest that removes every column, with the
    largest C in inner folds; on a block of columns with the ridge penalty of `CoxRidge`.

    Parameters
    ----------
    kind : tuple of str
        Kinds of the table's columns.
    block : array of int or None, default=None
        The columns of the block.
    """

    kind: tuple[str, ...]
    block: IntArray | None = None

    def fit(self, Z: Array, y: Array, groups: IntArray | None = None) -> OnTimes:
        """Fit on training rows; y (m,) places in time, below 0 where no event was seen."""
        X, time, event = self.fit_columns(Z), np.abs(y), y > 0
        if self.block is not None:
            inside, sets = np.isin(self.owner_, self.block), RiskSets(time, event, np.ones(len(y)))
            rows = X[:, inside]
            penalty = choose_share(rows, sets) * float((rows**2).sum()) / len(rows)
            coef = np.zeros(X.shape[1])
            coef[inside] = fit_cox(rows, sets, penalty).weights
            self.model_ = _Weights(coef)
            return self
        count = min(FOLDS, int(event.sum()))
        scores = np.zeros((max(count, 1), len(L1_SHARES)))
        if count > 1:
            for k, (train, test) in enumerate(stratified_folds(event.astype(np.intp), groups, count, 0)):
                path = cox_lasso_path(X[train], RiskSets(time[train], event[train], np.ones(len(train))), L1_SHARES)
                risks = X[test] @ path.T
                for place, risk in enumerate(risks.T):
                    pairs = concordance(time[test], event[test], risk, np.ones(len(test)))
                    scores[k, place] = 0.5 if pairs.total <= 0 else pairs.value
        best = int(np.argmax(scores.mean(axis=0)))
        path = cox_lasso_path(X, RiskSets(time, event, np.ones(len(y))), L1_SHARES[: best + 1])
        self.model_ = _Weights(path[-1])
        return self

    def predict(self, Z: Array) -> Array:
        """Risks of new rows."""
        return np.asarray(self.columns(Z) @ self.model_.coef_)


@dataclass(frozen=True)
class _Weights:
    """Weights of columns, as a linear model has them."""

    coef_: Array


def cox_lasso_path(X: Array, sets: RiskSets, shares: Sequence[float]) -> Array:
    """(k, n): weights w that maximise  log partial likelihood(Xw) / events - penalty |w|_1, one after the other.

    The penalties are shares of the smallest that removes every column. Each round is a lasso on the linear predictor
    plus the martingale residuals over the hazards, weighed by these, whose fixed point is the maximum.
    """
    events, w = max(sets.events, 1.0), np.zeros(X.shape[1])
    slope = np.abs(X.T @ (sets.weight * sets.martingale(np.zeros(len(X))))) / events
    most = before = float(slope.max())
    path = np.empty((len(shares), X.shape[1]))
    for place, share in enumerate(shares):
        price = share * most
        # only columns whose slope can have reached the price by now take part, and those that are found to have
        live = np.flatnonzero((slope >= 2.0 * price - before) | (w != 0))
        while True:
            w[live] = _solve_l1(X[:, live], w[live], sets, price)
            slope = np.abs(X.T @ (sets.weight * sets.martingale(X @ w))) / events
            lacking = np.setdiff1d(np.flatnonzero(slope > price * (1.0 + L1_TOLERANCE)), live)
            if not len(lacking):
                break
            live = np.union1d(live, lacking)
        path[place], before = w, price
    return path


def _solve_l1(X: Array, w: Array, sets: RiskSets, price: float) -> Array:
    """The weights of these columns at one price, from weights near them."""
    if not X.shape[1]:
        return w
    lasso = Lasso(fit_intercept=False, tol=L1_GAP, max_iter=5000, warm_start=True)
    lasso.coef_, events = w.copy(), max(sets.events, 1.0)
    for _ in range(L1_ROUNDS):
        eta = X @ w
        known = sets.risk(eta)
        hazard = np.maximum(known.size * known.hazard, 1e-6)
        weight = sets.weight * hazard
        lasso.set_params(alpha=price * events / weight.sum())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lasso.fit(X, eta + (sets.event - known.size * known.hazard) / hazard, sample_weight=weight)
        before, w = w, np.array(lasso.coef_)
        if np.abs(X @ (w - before)).max(initial=0.0) <= L1_TOLERANCE:
            break
    return w


@register_analysis
class References:
    """What common models of scikit-learn score on the same splits."""

    name, order, template = "references", 70.0, ""

    def applies(self, facts: Facts) -> str | None:
        """For classes, numbers and times to an event."""
        return None if facts.shape.outcome in KNOWN else f"there are no such models for {facts.shape.outcome}"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """After the methods."""
        return [Level((), 50)]

    def cost(self, facts: Facts) -> float:
        """By the size of the table, on all folds."""
        m, n = facts.shape.rows, facts.shape.columns
        folds = facts.cv * (facts.options.n_repeats or 1)
        return folds * (0.25 + 3e-6 * m * math.sqrt(n) * math.log2(m + 1) + 6e-7 * m * n)

    def run(self, run: StudyRun) -> dict[str, Any]:
        """Rows for the table of methods."""
        models = common_models(run.table.target)
        if run.table.target.outcome_name == SURVIVAL and run.choice.options.blocks:
            blocks = find_blocks(run.choice.options.blocks, run.table.rows.schema.names)
            models += [Reference(f"Cox on {name}", None, columns=columns) for name, columns in blocks.items()]
        return compare_references(run, models)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """Whether a model that selects nothing, or otherwise, scores higher than the list."""
        return compare_with_list(result, self.name)


def compare_references(run: StudyRun, references: Sequence[Reference]) -> dict[str, Any]:
    """Rows for the table of methods, with the differences from all features and from the list."""
    rows = reference_rows(run, references)
    return {
        "compared": [
            {
                "title": row.title,
                "scores": plain_scores(row.scores),
                "difference": plain_scores(row.difference),
                "against_list": plain_scores(row.against),
                "n_features": int(np.median(row.nested.sizes)),
                "seconds": round(row.seconds, 3),
            }
            for row in rows
        ]
    }


def compare_with_list(result: dict[str, Any], name: str) -> str | None:
    """The scores in which reference models are ahead of the list, or the best of those that are not."""
    metric, rows = result["listed_scores"][-1], result["analyses"][name]["compared"]
    if not result["answer"]["evidence"] or not rows:
        return None

    def describe(row: dict[str, Any], metrics: Sequence[str]) -> str:
        changes = {result["short_names"][each]: row["against_list"][each] for each in metrics}
        texts = {short: format_score(change, signed=True) for short, change in changes.items()}
        parts = [f"{short} {value} against the list ({span})" for short, (value, span) in texts.items()]
        return f"{row['title']} ({many(row['n_features'], 'feature')}): {join_words(parts)}"

    short = result["short_names"][metric]
    better = {
        row["title"]: describe(row, list(dict.fromkeys([*ahead, metric])))
        for row in rows
        if (ahead := [each for each in result["compared_scores"] if (row["against_list"][each]["low"] or 0.0) > 0.0])
    }
    if better:
        return f"Scores higher than the list on the same folds: {'; '.join(better.values())}."
    best = describe(max(rows, key=lambda row: row["scores"][metric]["value"]), [metric])
    if rows[0]["against_list"][metric]["low"] is None:
        return f"Without intervals no reference model is shown to be better or worse; the highest in {short} is {best}."
    return f"No model for reference is shown to be better than the list; the highest in {short} is {best}."


def reference_rows(run: StudyRun, references: Sequence[Reference]) -> tuple[ReferenceRow, ...]:
    """The models on the splits of all repeats."""
    rows, target, state = run.table.rows, run.table.target, run.options.random_state
    Z = rows.table.Z.toarray() if rows.table.is_sparse else np.asarray(rows.table.Z)
    y = target.machine_target.y[0] if target.outcome_name == SURVIVAL else target.observed
    plain = PlainTable(run.table.name, Z, y, None, target)
    splits = nested_splits(target, run.choice.cv, run.choice.n_repeats, state)
    outcome = target.outcome if isinstance(target, ClassTarget) else None
    out = []
    for reference in references:
        if target.outcome_name == SURVIVAL:
            estimator: Any = OnTimes(rows.schema.kind, reference.columns)
        elif target.outcome_name == NUMBERS:
            estimator = OnValues(reference.estimator, rows.schema.kind)
        else:
            estimator = OnCodes(reference.estimator, rows.schema.kind, reference.grid, outcome)
        nested = score_on_splits(plain, estimator, splits, state, run.options.n_jobs)
        all_features, against = (
            score_difference(target, nested.passes, selection.nested.passes) for selection in (run.baseline, run.main)
        )
        seconds = sum(fold.seconds for fold in nested.folds)
        out.append(ReferenceRow(reference.title, nested, nested.scores(), all_features, against, seconds))
    return tuple(out)


def common_models(target: Target) -> list[Reference]:
    """l1 logistic regression and a random forest; for numbers ridge regression, lasso and a random forest,
    for times to an event proportional hazards with an l1 penalty."""
    if target.outcome_name == SURVIVAL:
        return [Reference("Cox lasso", None)]
    if target.outcome_name == NUMBERS:
        forest = RandomForestRegressor(TREES, min_samples_leaf=3, max_features=1 / 3, random_state=0)
        ridge, lasso = RidgeCV(alphas=RIDGE_PENALTIES), LassoCV(**LASSO_PATH, random_state=0)
        return [Reference("ridge regression", ridge), Reference("lasso", lasso), Reference("random forest", forest)]
    two_sided = target.has_auc
    logistic = LogisticRegression(solver="liblinear", class_weight="balanced", random_state=0, max_iter=300, **L1)
    grid: dict[str, Sequence[float]] = {"C": COSTS}
    if not two_sided:
        logistic, grid = OneVsRestClassifier(logistic), {"estimator__C": COSTS}
    forest = RandomForestClassifier(TREES, class_weight="balanced_subsample", oob_score=True, random_state=0)
    return [Reference("l1 logistic regression", logistic, grid), Reference("random forest", forest)]


def boosted_trees(target: Target) -> Reference:
    """Boosted trees."""
    if target.outcome_name == NUMBERS:
        return Reference("boosted trees", HistGradientBoostingRegressor(random_state=0))
    return Reference("boosted trees", HistGradientBoostingClassifier(class_weight="balanced", random_state=0))
