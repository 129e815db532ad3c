"""What every fitted selector does: predict, transform, tell its coefficients."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, BoolArray, Decision, Outcome, is_sparse
from ..data.table import as_frame
from ..fitting.procedure import Fitted, decision_values, seed_sequence
from ..fitting.rows import Rows
from ..fitting.settings import AnyPlan, outcome_of
from ..outcomes import ClassDecision
from .formula import formula
from .inputs import as_given, encode, read_new


class _WithProbability:
    """A method that is there with probability=True; the error without says so (that of `available_if` does not)."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, selector: FittedSelector | None, owner: type | None = None) -> Callable[..., Any]:
        if selector is None:
            return self.method
        if not selector.probability:
            raise AttributeError(
                f"This {type(selector).__name__!r} has no attribute {self.method.__name__!r}: probability is "
                f"{selector.probability!r}; use probability=True and fit again"
            )
        return MethodType(self.method, selector)


class FittedSelector(ClassifierMixin, SelectorMixin, BaseEstimator):
    """A selector as studies and commands use it: parameters of its own, a fit on encoded rows, one kind of result."""

    outcome: str | Outcome
    kinds: Mapping[str, str] | None
    probability: bool
    random_state: Any
    _decision: Decision

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
        for note in self.notes_:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    @property
    @abstractmethod
    def takes_gaps(self) -> bool:
        """Whether cells may be missing."""

    @abstractmethod
    def check(self) -> None:
        """Refuse parameters that no table could make sense of."""

    @abstractmethod
    def plan(self, encoded: Rows) -> AnyPlan:
        """The plan of a fit on these rows; refuses what makes no sense."""

    @abstractmethod
    def fit_rows(
        self,
        encoded: Rows,
        seed: np.random.SeedSequence | None = None,
        plan: AnyPlan | None = None,
        allowed: BoolArray | None = None,
    ) -> Fitted:
        """The whole fit on encoded rows, without a change of the selector."""

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
        for name, value in {**fitted.decision.attributes(), "suspects_": fitted.suspects}.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

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
        return decision_values(self.model_, self._decision, read_new(self, X))

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

    @_WithProbability
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
