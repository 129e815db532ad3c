"""Multiple kernel learning as a classifier of its own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, KernelLike
from ..criteria import LearnedWeight
from ..errors import InputError
from ..fitting.compatibility import refuses, refuses_table
from ..fitting.notes import distinct_levels
from ..fitting.parts import kernel_of
from ..fitting.preparation import prepare
from ..fitting.settings import Plan
from ..fitting.training import Model
from ..machines import MKL
from ..outcomes import ClassDecision, Classes, ClassTarget
from ..searches import TopK
from .inputs import encode, read_new


class MKLClassifier(ClassifierMixin, BaseEstimator):
    """A support vector machine on sum_f mu_f K_f, one kernel per column, that learns mu >= 0, sum(mu) = 1.

    The weights have an l1 penalty: most are exactly 0. With more than two classes there is one machine for each class
    against the rest, each with separate weights.

    Parameters
    ----------
    kernel : "clinical", "linear" or Kernel, default="clinical"
        Clinical: numbers and categories together, cells may be missing. Linear: numbers alone.
    C : float, default=1.0
        Cost of a margin error.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class; "balanced" gives both sides of each binary problem the same total weight.
    standardize : bool, default=False
        Scale every column to mean 0 and variance 1 over the training rows; the clinical kernel does not need it.
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns ("real", "ordinal", "nominal" or "boolean") where they differ from what the dtypes imply.
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=1000
        Machines solved before the solver stops without having converged.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes.
    weights_ : array of shape (n,), or (n_classes, n) with more than two classes
        The weights mu; columns that do not vary have weight 0.
    gap_ : float
        Relative duality gap, the largest where there are several machines.
    objective_ : float
        Objective of the machine, the sum where there are several.
    n_iter_ : int
        Number of machines solved.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n,)
        Names of the columns in `fit`, where they have names.

    References
    ----------
    Lanckriet, De Bie, Cristianini, Jordan and Noble, A statistical framework for genomic data fusion, Bioinformatics 20
    (2004) 2626-2635; on the clinical kernel: Paul and Dupont, Kernel methods for mixed feature selection.

    Examples
    --------
    >>> from marginsieve import MKLClassifier
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> classifier = MKLClassifier().fit(cohort.X, cohort.y)
    >>> round(float(classifier.weights_.sum()), 6)
    1.0
    """

    def __init__(
        self,
        kernel: KernelLike = "clinical",
        C: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        standardize: bool = False,
        kinds: Mapping[str, str] | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.standardize = standardize
        self.kinds = kinds
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
        """Learn the weights of the kernels and the machine.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Array, pandas, polars or arrow table.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row; rows of weight 0 are left out.

        Returns
        -------
        MKLClassifier
            The fitted classifier.

        Examples
        --------
        >>> from marginsieve import MKLClassifier
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> classifier = MKLClassifier(C=1.0).fit(cohort.X, cohort.y)
        >>> cohort.X.columns[classifier.weights_.argsort()[-2:]].sort_values().tolist()
        ['g03', 'g07']
        """
        machine, kernel = MKL(C=self.C, tol=self.tol, max_iter=self.max_iter), kernel_of(self.kernel)
        machine.check()
        outcome = Classes(class_weight=self.class_weight, threshold="margin")
        outcome.check()
        if sentence := refuses(kernel, machine, LearnedWeight(), TopK()):
            raise InputError(sentence)
        encoded = encode(self, X, y, self.kinds, sample_weight)
        target, table = encoded.active.target, encoded.table
        assert isinstance(target, ClassTarget)
        self.columns_, self.classes_ = encoded.schema, target.classes
        if sentence := refuses_table(kernel, table):
            raise InputError(sentence)
        for note in distinct_levels(table):
            warnings.warn(note, UserWarning, stacklevel=2)
        encoded.target.refuse()
        target = replace(target, outcome=outcome, positive=1)  # the second class lies above 0
        target.refuse(TopK())
        part = replace(encoded.active, target=target)
        plan = Plan(kernel, machine, None, TopK(), outcome, standardize=bool(self.standardize))
        ready = prepare(plan, part, np.random.default_rng(0))
        gram = ready.problem.gram()
        solutions = ready.problem.solve(gram)
        self._model = Model(machine, ready.usable, ready.scaling, gram, solutions)
        weights = np.zeros((len(solutions), table.shape[1]))
        weights[:, ready.usable] = [machine.learned_weights(solution, gram) for solution in solutions]
        self.weights_ = weights[0] if len(weights) == 1 else weights
        self.gap_ = max(solution.residual for solution in solutions)
        self.n_iter_ = sum(solution.iterations for solution in solutions)
        self.objective_ = sum(solution.objective for solution in solutions)
        if not all(solution.converged for solution in solutions):
            warnings.warn(
                f"the weights were learned to a relative duality gap of {self.gap_:.2g}, above tol={self.tol:g}: raise "
                "max_iter, lower C, or use standardize=True on a linear kernel",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            Positive for classes_[1]; of shape (n_samples, n_classes) with more than two classes.

        Examples
        --------
        >>> from marginsieve import MKLClassifier
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> MKLClassifier().fit(cohort.X, cohort.y).decision_function(cohort.X).shape
        (60,)
        """
        check_is_fitted(self)
        values = self._model.decision(read_new(self, X))
        return values[:, 0] if values.shape[1] == 1 else values

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
        >>> from marginsieve import MKLClassifier
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> MKLClassifier().fit(cohort.X, cohort.y).predict(cohort.X).shape
        (60,)
        """
        value = self.decision_function(X)
        return ClassDecision(self.classes_, 1).predict(value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = kernel_of(self.kernel)
        tags.input_tags.sparse = kernel.sparse
        tags.input_tags.allow_nan = kernel.missing
        return tags
