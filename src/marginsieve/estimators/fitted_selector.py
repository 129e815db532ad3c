"""What every fitted selector does: predict, also for new tables, transform, tell its coefficients."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from types import MethodType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import gen_batches
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from ..contracts import (
    Array,
    BoolArray,
    Decision,
    Gram,
    IntArray,
    KnowsShares,
    Matrix,
    PredictsAtTimes,
    T,
    is_sparse,
)
from ..data.cells import as_trained, is_text, tidy_frame
from ..data.dates import count_days
from ..data.moments import MOST_CELLS, Alignment, ColumnMoments, fit_alignment
from ..data.stored import anndata_frame, is_anndata, is_stored
from ..data.table import as_frame, is_missing
from ..errors import InputError, listing, shown_value
from ..fitting.false_share import fit_list
from ..fitting.procedure import ONE_LIST, Fitted, ListRequest, decision_values, seed_sequence
from ..fitting.rows import Rows
from ..fitting.settings import AnyPlan, CommonSettings, outcome_of, refuse_distances
from ..fitting.training import Model
from ..outcomes import ClassDecision, Classes
from .inputs import as_given, encode, read_new

if TYPE_CHECKING:
    import pandas as pd


def describe_like(source: object) -> Callable[[T], T]:
    """A decorator: documented names without a description get the one that the docstring of `source` has for them."""
    known: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in inspect.cleandoc(source.__doc__ or "").splitlines():
        if line.startswith("    "):
            lines.append(line)
        else:
            lines = known.setdefault(line.split(" : ")[0], [])

    def complete(value: T) -> T:
        text = inspect.cleandoc(value.__doc__ or "").splitlines()
        out: list[str] = []
        if not text:  # python -OO has no docstrings
            return value
        for line, following in zip(text, [*text[1:], ""], strict=True):
            lacks = line and not line.startswith(" ") and not following.startswith("    ")
            out += [line, *(known.get(line.split(" : ")[0], ()) if lacks else ())]
        value.__doc__ = "\n".join(out)
        return value

    return complete


@dataclass(frozen=True)
class Adaptation:
    """How a model was changed for a cohort after it was fitted: its marks, and the map of that cohort's columns."""

    marks: tuple[str, ...]
    alignment: Alignment | None = None


class _OfClasses:
    """A method for classes, of which `because` says why a selector does not have it; the error says so too."""

    def __init__(self, because: Callable[[FittedSelector], str]) -> None:
        self.because = because

    def __call__(self, method: Callable[..., Any]) -> _OfClasses:
        self.method, self.__doc__ = method, method.__doc__
        return self

    def __get__(self, selector: FittedSelector | None, owner: type | None = None) -> Callable[..., Any]:
        if selector is None:
            return self.method
        outcome = selector.outcome
        why = "" if outcome == Classes.name or isinstance(outcome, Classes) else f"outcome is {outcome!r}; use predict"
        if why := why or self.because(selector):
            raise AttributeError(f"This {type(selector).__name__!r} has no attribute {self.method.__name__!r}: {why}")
        return MethodType(self.method, selector)


def _without_probability(selector: FittedSelector) -> str:
    return (
        "" if selector.probability else (f"probability is {selector.probability!r}; use probability=True and fit again")
    )


class FittedSelector(ClassifierMixin, SelectorMixin, BaseEstimator, CommonSettings):
    """A selector as studies and commands use it: parameters of its own, a fit on encoded rows, one kind of result."""

    _decision: Decision
    training_: ColumnMoments
    adaptation_: Adaptation

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Select features and fit the machine on them.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Array of numpy, torch or cupy, on any device; pandas, polars or arrow table; or a scipy sparse matrix with
            the linear kernel.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row; rows of weight 0 are left out.
        groups : array-like of shape (n_samples,) or None, default=None
            Group of each row; rows of one group are never on both sides of an inner fold.

        Returns
        -------
        self
            The fitted selector.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
        >>> selector.get_feature_names_out()
        array(['g03', 'g07'], dtype=object)
        """
        encoded = encode(self, X, y, self.kinds, sample_weight, groups, outcome_of(self))
        seed = seed_sequence(self.random_state)
        self.adopt(self.fit_rows(encoded, seed), seed)
        self.describe_training(encoded)
        for note in self.notes_:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    @abstractmethod
    def check(self) -> None:
        """Refuse parameters that no table could make sense of."""

    @abstractmethod
    def plan(self, encoded: Rows) -> AnyPlan:
        """The plan of a fit on these rows; refuses what makes no sense."""

    @abstractmethod
    def on_all(self) -> Self:
        """The same selector on every column that it is given."""

    @abstractmethod
    def fit_plan(self, encoded: Rows, seed: np.random.SeedSequence | None, plan: Any, lists: ListRequest) -> Fitted:
        """The whole fit of a plan, but for a list by its share of false features."""

    def fit_rows(
        self,
        encoded: Rows,
        seed: np.random.SeedSequence | None = None,
        plan: AnyPlan | None = None,
        lists: ListRequest = ONE_LIST,
    ) -> Fitted:
        """The whole fit on encoded rows, without a change of the selector."""
        plan = self.plan(encoded) if plan is None else plan
        if self.false_share is not None:
            return fit_list(self, encoded, seed, plan, self.on_all().fit_rows)
        return self.fit_plan(encoded, seed, plan, lists)

    def adopt(self, fitted: Fitted, seed: np.random.SeedSequence) -> None:
        """Take over what a fit left that was run elsewhere, as studies do."""
        self._seed = seed
        if not hasattr(self, "n_features_in_"):
            self.feature_names_in_ = np.array(fitted.schema.names, dtype=object)
            self.n_features_in_ = len(self.feature_names_in_)
        if fitted.unconverged:
            warnings.warn(fitted.unconverged, ConvergenceWarning, stacklevel=3)
        self.columns_, self.model_, self.path_ = fitted.schema, fitted.model, fitted.path
        self._decision, self._weight = fitted.decision, fitted.feature_weight
        self.rank()
        self.rows_, self.notes_ = fitted.rows, list(fitted.notes)
        self.constant_, self.duplicates_ = list(fitted.constant), list(fitted.duplicates)
        self.groups_ = list(fitted.groups)
        forgotten = {"suspects_": fitted.suspects, "training_": None, "adaptation_": None}
        for name, value in {**fitted.decision.attributes(), **forgotten}.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def describe_training(self, encoded: Rows) -> None:
        """Remember the moments of the selected columns, by which new cohorts are compared with the training rows."""
        part = encoded.active
        columns = np.flatnonzero(self.support_)
        if is_stored(part.table.Z) or len(part) * len(columns) > MOST_CELLS:
            return
        table, target = part.table.columns(columns), part.target
        self.training_ = ColumnMoments.of_rows(table.Z, table.names, table.kind, target.strata, target.weight)

    def read_rows(self, X: Any) -> Matrix:
        """Codes of further rows with the columns of `fit`, aligned where the model was aligned to their cohort."""
        Z, known = read_new(self, X), getattr(self, "adaptation_", None)
        if known is None or known.alignment is None:
            return Z
        place = {name: j for j, name in enumerate(self.columns_.names)}
        columns = np.array([place[name] for name in known.alignment.names], dtype=np.intp)
        return known.alignment.apply(Z.toarray() if is_sparse(Z) else Z, columns)

    def moved_to(self, places: IntArray) -> Self:
        """The same fitted selector for a table whose column places[j] is column j of this one's."""
        out, back = copy(self), np.argsort(places)
        varies = places[~np.isin(self.columns_.names, self.constant_)]
        out.columns_, out.path_ = self.columns_.columns(back), self.path_.moved_to(places)
        out.model_ = self.model_.in_wider_table(places)
        out.feature_names_in_ = np.array(out.columns_.names, dtype=object)
        if len(varies) == len(self._weight):
            out._weight = self._weight[np.argsort(varies)]
        out.rank()
        if (known := getattr(self, "training_", None)) is not None:  # in the order of the columns
            place = {name: k for k, name in enumerate(known.names)}
            listed = [out.columns_.names[j] for j in np.flatnonzero(out.support_)]
            out.training_ = known.take(np.array([place[name] for name in listed], dtype=np.intp))
        return out

    def rank(self) -> None:
        """Set what follows from the path and the model: `ranking_`, `scores_`, `support_`, `n_features_`."""
        n = len(self.columns_.names)
        self.scores_, self.ranking_ = self.path_.scores, np.empty(n, dtype=np.intp)
        self.ranking_[self.path_.order] = np.arange(1, n + 1)
        self.support_ = np.isin(np.arange(n), self.model_.features)
        self.n_features_ = int(self.support_.sum())

    @property
    def coef_(self) -> Array:
        return formula(self, "coef_")[0]

    @property
    def intercept_(self) -> Array:
        return formula(self, "intercept_")[1]

    @_OfClasses(lambda _: "")
    def decision_function(self, X: Any) -> Any:
        """Decision values.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            Positive for classes_[1] and 0 at the threshold; of shape (n_samples, n_classes) with more than two classes.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
        >>> selector.decision_function(cohort.X).shape
        (60,)
        """
        return as_given(self._values(X), X)

    def _values(self, X: Any) -> Array:
        """Decision values as numpy's array."""
        check_is_fitted(self)
        return decision_values(self.model_, self._decision, self.read_rows(X))

    def predict(self, X: Any) -> Any:
        """The class of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            The predicted classes.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
        >>> selector.predict(cohort.X).shape
        (60,)
        """
        values = self._values(X)
        return as_given(self._decision.predict(values), X)

    @_OfClasses(_without_probability)
    def predict_proba(self, X: Any) -> Any:
        """Probabilities: a sigmoid of the decision value, fitted on the inner folds; needs probability=True.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probability of each class, in the order of `classes_`.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, probability=True, random_state=0).fit(cohort.X, cohort.y)
        >>> selector.predict_proba(cohort.X).shape
        (60, 2)
        """
        values = self._values(X)
        assert isinstance(self._decision, ClassDecision)
        return as_given(self._decision.probability(values), X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the predictions: accuracy for classes, R2 for numbers.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.
        y : array-like of shape (n_samples,)
            Their classes or numbers.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row.

        Returns
        -------
        float
            The score, higher is better.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=3.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
        >>> selector.score(cohort.X, cohort.y) > 0.9
        True
        """
        outcome = outcome_of(self)
        if outcome.name == Classes.name:
            return float(super().score(X, y, sample_weight))
        values = self._values(X)
        target = outcome.read(X, y, sample_weight)
        return float(target.score_values(values.reshape(1, len(values), -1))[0])

    def transform(self, X: Any) -> Any:
        """The selected columns, in the type and the dtypes of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        table of shape (n_samples, number of selected features)
            The selected columns.

        Examples
        --------
        >>> from marginsieve import SVMSelector
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> selector = SVMSelector(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
        >>> selector.transform(cohort.X).columns.tolist()
        ['g03', 'g07']
        """
        check_is_fitted(self)
        read_new(self, X)
        frame = as_frame(X)
        if frame is not None:
            chosen = frame[:, np.flatnonzero(self.support_).tolist()]
            wrapped = _get_output_config("transform", self)["dense"] != "default"
            return chosen.to_pandas() if wrapped and frame.implementation.is_pyarrow() else chosen.to_native()
        if is_sparse(X) and X.format not in ("csr", "csc"):
            X = X.tocsr()
        return (X if hasattr(X, "dtype") else np.asarray(X))[:, np.flatnonzero(self.support_).tolist()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        outcome_of(self).tag(tags)
        return tags

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return np.asarray(self.support_)


# -- a linear result as a formula -------------------------------------------------------------------------------------

ROWS = 256  # unit vectors at a time


def formula(selector: Any, name: str) -> tuple[Array, Array]:
    """(classes or 1, columns) coefficients and (classes or 1,) intercepts of a machine that is linear in the columns.

    `X @ coef.T + intercept` is the decision value, its cut included; a column that was not selected has 0, a boolean
    counts as 0 or 1. Other kernels, spheres and tables with levels among what was selected have no formula: an
    AttributeError says why there is no `name`.
    """
    if why := _not_linear(selector):
        raise AttributeError(f"{type(selector).__name__} has no {name}: {why}")
    blend = selector.model_
    coef, constant = np.zeros((blend.middle.shape[1], selector.n_features_in_)), np.zeros(blend.middle.shape[1])
    for model, middle, unit in zip(blend.models, blend.middle, blend.unit, strict=True):
        weight, offset = _of_model(model)
        share = 1.0 / (unit * len(blend.models))
        coef[:, model.features] += weight.T * share[:, None]
        constant = constant + (offset - middle) * share
    if len(getattr(selector, "classes_", ())) == 2:
        coef, constant = selector._sign * coef, selector._sign * (constant - selector.threshold_)
    return coef, constant


def _of_model(model: Model) -> tuple[Array, Array]:
    """(features, k) and (k,): weights in the units of the columns, and what is added to them."""
    p = len(model.features)
    constant = model.values(np.zeros((1, p)))[0]
    weight = np.empty((p, len(constant)))
    for start in range(0, p, ROWS):
        stop = min(start + ROWS, p)
        weight[start:stop] = model.values(np.eye(stop - start, p, start)) - constant
    if model.scaling is not None:
        weight *= model.scaling.factor[:, None]
        constant = constant - model.scaling.shift @ weight
    return weight, constant


def _not_linear(selector: Any) -> str | None:
    model = selector.__dict__.get("model_")
    if model is None:
        return "it is not fitted"
    columns = selector.columns_
    for part in model.models:
        if not part.view.kernel.linear or any(solution.diagonal for solution in part.solutions):
            return (
                f"{type(part.machine).__name__} on the {type(part.view.kernel).__name__.lower()} kernel is not linear"
            )
    for j in model.features:
        if columns.kind[j] not in ("real", "boolean") or columns.levels.get(j):
            return f"the column {columns.names[j]!r} has levels"
    return None


# -- optimality of programs -------------------------------------------------------------------------------------------


def optimality(selector: Any, name: str) -> tuple[float, float, str]:
    """(objective, bound, status) of the machine on the selected features, summed over the classes.

    The objective is recomputed from the weights. No objective is below the bound, which is nan where none is known. The
    status is "optimal", "limit" (the gap was not closed, or the clock cut the work) or "heuristic". An AttributeError
    says why there is no `name`.
    """
    model = selector.__dict__.get("model_")
    if model is None or not all(solution.status for solution in model.solutions):
        why = "it is not fitted" if model is None else f"{type(model.machine).__name__} is not a linear program"
        raise AttributeError(f"{type(selector).__name__} has no {name}: {why}")
    known = {solution.status for solution in model.solutions}
    status = next(status for status in ("limit", "heuristic", "optimal") if status in known)
    bound = sum(solution.bound for solution in model.solutions)
    return sum(solution.objective for solution in model.solutions), bound, status


# -- predictions for new tables ---------------------------------------------------------------------------------------

AT_ONCE = 500  # rows whose distances to all training rows are looked at together
COMPARED = 10_000  # training rows with which new ones are compared, at most


@dataclass(frozen=True)
class Prediction:
    """Predictions for new rows, with remarks about them.

    Attributes
    ----------
    table : DataFrame
        One row for each sample. `predicted`: the class, or the number, with an interval from `low` to `high` where the
        model has intervals. `score`: the decision value, above 0 for the positive class;
        with more than two classes that of the predicted one. `probability`: of the positive class (of the predicted one
        with more than two), where the model has probabilities. Of times to an event `predicted` is the risk, `survival`
        the chance of no event up to the horizon, `median_time` the median time, empty where it is beyond what is known.
        `far`: whether the sample is further from every training
        sample than any training sample is from its nearest one.
    notes : tuple of str
        Remarks, for example about unknown columns or levels.

    Examples
    --------
    >>> from marginsieve import predict, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> prediction = predict(model, cohort.X)
    >>> prediction.table.columns.tolist(), prediction.notes
    (['predicted', 'score', 'far'], ())
    """

    table: pd.DataFrame
    notes: tuple[str, ...]


def predict(
    model: FittedSelector,
    frame: Any,
    align: str = "none",
    prevalence: float | None = None,
    horizon: float | None = None,
) -> Prediction:
    """Predict the rows of a pandas table; only the selected columns have to be present.

    Parameters
    ----------
    model : SVMSelector or Blend
        A fitted selector.
    frame : DataFrame
        New rows, a pandas, polars, arrow or AnnData table. Columns are matched by name.
    align : "none", "location", "location-scale" or "quantiles", default="none"
        Bring each numeric column to the scale of the training rows by the moments, or the quantiles, of these rows,
        of which it takes 10; nothing is aligned without being asked for.
    prevalence : float or None, default=None
        Share of the class of interest among these rows, to which the training rows are weighted before they are
        aligned to.
    horizon : float or None, default=None
        Time up to which survival is predicted, by a model of times to an event; None is that of the model.

    Returns
    -------
    Prediction
        A table with one row for each sample, and remarks.

    Examples
    --------
    >>> from marginsieve import predict, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> predict(model, cohort.X[["g03", "g07"]]).table.shape
    (60, 3)
    """
    import pandas as pd

    if prevalence is not None:
        check_prevalence(prevalence)
    if align != "none":
        model = align_model(model, frame, align, prevalence)
    new = read_cohort(model, frame)
    frame, needed = new.frame, new.needed
    decision = model._decision
    if horizon is not None:
        if not isinstance(decision, PredictsAtTimes):
            raise InputError(f"horizon is {shown_value(horizon)}, and the model does not predict times to an event")
        decision = decision.at_horizon(horizon)
    out = pd.DataFrame(decision.columns(decision_values(model.model_, decision, new.Z)), index=frame.index)
    out["far"] = far_rows(model, new.Z)
    marks = () if (known := getattr(model, "adaptation_", None)) is None else known.marks
    notes = _notes(model, frame, needed, out)
    if prevalence is not None and align == "none":
        notes.append("the prevalence was not used: nothing was aligned")
    if isinstance(decision, PredictsAtTimes) and "survival" in out:
        notes.append(f"survival is the chance of no event up to {decision.horizon:g}")
    return Prediction(out, (*marks, *new.notes, *notes))


def far_rows(model: FittedSelector, Z: Matrix) -> BoolArray:
    """(rows,) which rows are further from every training row than any of these is from its nearest one."""
    return np.asarray(np.any([_far_of(part, Z) for part in model.model_.models], axis=0))


@dataclass(frozen=True)
class NewRows:
    """Rows of a new table: as they were given, the columns that a model needs, their codes, remarks about them."""

    frame: pd.DataFrame
    needed: list[str]
    Z: Matrix
    notes: tuple[str, ...]


def read_cohort(model: FittedSelector, table: Any) -> NewRows:
    """The rows of a new table, columns matched by name; refuses one that lacks a selected column."""
    names, support = model.columns_.names, model.support_
    needed = [name for name, taken in zip(names, support, strict=True) if taken]
    frame = _as_named_frame(anndata_frame(table, columns=needed) if is_anndata(table) else table)
    if absent := [name for name in needed if name not in frame.columns]:
        lower = {str(name).strip().lower(): name for name in frame.columns}
        like = lower.get(absent[0].strip().lower())
        hint = "" if like is None else f"; it has {like!r}, which is written differently"
        raise InputError(
            f"the table lacks {listing(absent, 10)}, which the model needs; it needs {len(needed)} in all{hint}"
        )
    if len(frame) == 0:
        raise InputError("the table has no rows to predict")
    original, fixed = frame, tidy_frame(frame[needed])
    if any(fixed[name].dtype != frame[name].dtype for name in needed):
        frame = frame.assign(**fixed)
    Z = model.read_rows(_complete(model, frame))
    spans = [name for name in needed if original[name].dtype.kind == "m"]
    notes = (f"durations were read as seconds: {listing(spans)}",) if spans else ()
    return NewRows(frame, needed, Z, notes)


# -- models that are adapted to a cohort ------------------------------------------------------------------------------


def align_model(
    model: FittedSelector, table: Any, how: str, prevalence: float | None = None, cohort: str = ""
) -> FittedSelector:
    """The same model for rows of the cohort of this table: their columns are brought to the training rows' scale.

    No outcome of the cohort is used; `prevalence` is the share of the class of interest there, where it is known.
    """
    if (aligned := alignment_of(model)) is not None:
        raise InputError(
            f"align is {shown_value(how)}, and the model was aligned before, by {aligned.rows} rows of "
            f"{aligned.cohort or 'a cohort'}: take the model as the study left it"
        )
    training = training_columns(model)
    shares = None if prevalence is None else stratum_shares(model, prevalence)
    new = read_cohort(model, table)
    label = getattr(model, "positive_", "the class of interest")
    weighted = "" if prevalence is None else f", with the given prevalence {prevalence:g} of {label}"
    known = fit_alignment(how, training, describe_cohort(model, new.Z), len(new.frame), shares, weighted)
    known = replace(known, cohort=cohort)
    return adapt(model, known.describe(), known)


def alignment_of(model: FittedSelector) -> Alignment | None:
    """To which cohort a model was aligned."""
    known: Adaptation | None = getattr(model, "adaptation_", None)
    return None if known is None else known.alignment


def adapt(
    model: FittedSelector, mark: str, alignment: Alignment | None = None, decision: Decision | None = None
) -> FittedSelector:
    """A copy of a model with a mark of what was changed: an alignment, or what its values mean."""
    out, known = copy(model), getattr(model, "adaptation_", Adaptation(()))
    out.adaptation_ = Adaptation((*known.marks, mark), alignment or known.alignment)
    if decision is not None:
        out._decision = decision
        for name, value in decision.attributes().items():
            setattr(out, name, value)
    return out


def training_columns(model: FittedSelector) -> ColumnMoments:
    """What the model remembers of its training columns; refuses a model that remembers nothing."""
    check_is_fitted(model)
    known: ColumnMoments | None = getattr(model, "training_", None)
    if known is None:
        raise InputError(
            "the model has no moments of its training columns, as those of earlier versions and of very large tables "
            "have none: fit it again, or use align='none'"
        )
    return known


def describe_cohort(model: FittedSelector, Z: Matrix) -> ColumnMoments:
    """The moments of the selected columns in new rows Z (m, n), as one stratum."""
    columns = np.flatnonzero(model.support_)
    kinds = [model.columns_.kind[j] for j in columns]
    names = [model.columns_.names[j] for j in columns]
    return ColumnMoments.of_rows(Z[:, columns], names, kinds, np.zeros(Z.shape[0], dtype=np.intp))


def check_prevalence(prevalence: float) -> None:
    """Refuse what is not a share."""
    number = isinstance(prevalence, (int, float)) and not isinstance(prevalence, bool)
    if not number or not 0.0 < prevalence < 1.0:
        raise InputError(f"prevalence is {prevalence!r}; it must be a share between 0 and 1")


def stratum_shares(model: FittedSelector, prevalence: float) -> Array:
    """The shares of the strata with this share of the class of interest."""
    check_prevalence(prevalence)
    decision = model._decision
    if not isinstance(decision, KnowsShares) or (shares := decision.stratum_shares(float(prevalence))) is None:
        raise InputError(f"prevalence is {prevalence!r}, and the model does not predict two classes: leave it out")
    return shares


def _as_named_frame(table: Any) -> pd.DataFrame:
    """The table as a pandas one, whose columns are named by texts that differ."""
    frame = as_frame(table)
    if frame is None:
        raise InputError(
            f"the table is {type(table).__name__}, whose columns have no names: pass a DataFrame, or use model.predict"
        )
    pandas: pd.DataFrame = frame.to_pandas()
    names = [str(name) for name in pandas.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"column names occur more than once: {listing(twice)}; rename or drop the repeats")
    return pandas.set_axis(names, axis=1)


def _complete(model: FittedSelector, frame: pd.DataFrame) -> Any:
    """The training table's columns: the selected ones from the new table, the others at a value of no consequence."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for j, name in enumerate(model.columns_.names):
        levels = model.columns_.levels.get(j)
        neutral: Any = 0.0 if levels is None else levels[0] if levels else None
        if not model.support_[j]:
            columns[name] = neutral
        elif j in model.columns_.days:
            columns[name] = count_days(frame[name], *model.columns_.days[j])
        elif levels is None and is_text(frame[name].dtype):  # numbers with something around them, as in the training
            columns[name] = as_trained(frame[name])
        else:
            columns[name] = frame[name]
    complete = pd.DataFrame(columns, index=frame.index)
    return complete if hasattr(model, "feature_names_in_") else complete.to_numpy()


def _far_of(fitted: Model, Z: Any) -> BoolArray:
    """(rows,) by distance in a kernel's space: |x - z|^2 = K(x, x) + K(z, z) - 2 K(x, z).

    Where there are many training rows, some of them stand for all.
    """
    part, view = fitted.rows(Z), fitted.view
    m = view.table.shape[0]
    refuse_distances(min(m, COMPARED))
    gram = view if isinstance(view, Gram) else view.kernel.bind(view.table, view.feature_weight, view.features)
    if m > COMPARED:
        gram = gram.only(np.linspace(0, m - 1, COMPARED).astype(np.intp))
    K = gram.matrix()
    diagonal = K.diagonal()
    limit = -np.inf
    for some in gen_batches(len(K), AT_ONCE):
        among = diagonal[some, None] + diagonal[None, :] - 2.0 * K[some]
        among[np.arange(len(among)), np.arange(some.start, some.stop)] = np.inf
        limit = max(limit, float(among.min(axis=1).max()))
    nearest = np.empty(part.shape[0])
    for some in gen_batches(part.shape[0], AT_ONCE):
        away: Array = gram.diagonal(part[some])[:, None] + diagonal[None, :] - 2.0 * gram.matrix(part[some])
        nearest[some] = away.min(axis=1)
    return np.asarray(nearest > limit + 1e-9 * max(float(diagonal.max()), 1e-300))


def _notes(model: FittedSelector, frame: pd.DataFrame, needed: list[str], out: pd.DataFrame) -> list[str]:
    known = set(model.columns_.names)
    notes = []
    if extra := [str(name) for name in frame.columns if name not in known]:
        notes.append(f"columns that the model does not know were not used: {listing(extra)}")
    for name in needed:
        j = model.columns_.names.index(name)
        if model.columns_.kind[j] == "nominal":
            seen = set(model.columns_.levels.get(j, ()))
            new = [value for value in frame[name].unique().tolist() if not is_missing(value) and value not in seen]
            if new:
                count = int(frame[name].isin(new).sum())
                notes.append(
                    f"{name!r} has levels that training never saw in {count} rows: {listing(new)}; treated as unknown"
                )
    far = int(out["far"].sum())
    if far:
        notes.append(
            f"{far} of {len(out)} samples are far outside the training samples: do not rely on their predictions"
        )
    return notes
