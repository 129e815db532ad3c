"""Machines without a selection: SVDD, a sphere around one class, and MKLClassifier, learned weights of kernels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, BoolArray, IntArray, KernelLike
from ..criteria import LearnedWeight
from ..errors import InputError
from ..fitting.parts import kernel_of, refuses, refuses_table
from ..fitting.procedure import distinct_levels
from ..fitting.settings import Plan
from ..fitting.training import Model, Scaling, prepare
from ..machines import MKL, Sphere
from ..outcomes import ClassDecision, Classes, ClassTarget, read_weight
from ..searches import TopK
from .inputs import encode, read_new, read_training

# -- SVDD -------------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class SVDD(OutlierMixin, BaseEstimator):
    """The smallest soft sphere around the rows, in the space of a kernel; a row outside is an outlier.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        The kernel, by name or as an object.
    r : float, default=0.1
        Upper bound, in (0, 1], on the share of the rows outside the sphere (approximately).
    r_out : float, default=0.1
        Upper bound on the share of the known outliers inside the sphere (approximately); 0 leaves them out of the fit.
    standardize : bool, default=False
        Scale every column to mean 0 and variance 1 over the training rows.
    tol : float, default=1e-4
        KKT violation at which the solver stops; rows this close to the sphere count as inside.

    Attributes
    ----------
    radius_ : float
        Radius of the sphere.
    offset_ : float
        Minus the squared radius; ``decision_function = score_samples - offset_``.
    support_ : array of int
        Numbers of the rows with a nonzero coefficient in the center.
    dual_coef_ : array
        Coefficients of these rows in the center.
    residual_ : float
        KKT violation at which the solver stopped.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n,)
        Names of the columns in `fit`, where they have names.

    References
    ----------
    Tax and Duin, Support vector data description, Machine Learning 54 (2004) 45-66.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import SVDD
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> SVDD(r=0.1).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    kernel: KernelLike = "gaussian"
    r: float = 0.1
    r_out: float = 0.1
    standardize: bool = False
    tol: float = 1e-4

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, outliers: Any = None) -> SVDD:  # noqa: ARG002
        """Fit the sphere around the rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Array, pandas, polars or arrow table.
        y : None, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row.
        outliers : array-like of bool of shape (n_samples,) or None, default=None
            Marks rows that are known not to belong to the others; they are kept outside the sphere.

        Returns
        -------
        SVDD
            The fitted detector.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve import SVDD
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> detector = SVDD().fit(X, outliers=X[:, 0] > 1.5)
        >>> detector.radius_ > 0
        True
        """
        machine = Sphere(r=self.r, r_out=self.r_out, tol=self.tol)
        machine.check()
        kernel = kernel_of(self.kernel)
        self.columns_, table = read_training(self, X, np.empty(0), None)
        if sentence := refuses_table(kernel, table):
            raise InputError(sentence)
        m = table.shape[0]
        known = _mask(outliers, m)
        weight = read_weight(sample_weight, m)
        if not weight[~known].any():
            raise InputError("every row that counts is marked as an outlier: there is nothing to describe")
        self._scaling = Scaling.fit(table, weight) if self.standardize else None
        if self._scaling is not None:
            table = replace(table, Z=self._scaling.apply(table.Z))
        table = table.with_row_weights(weight)
        self._machine = machine
        self._gram = kernel.bind(table, kernel.start(table), np.arange(table.shape[1]))
        solution = machine.solve(self._gram, np.where(known, 1.0, -1.0), weight)
        self._solution = solution
        c = solution.coef / -2.0
        self.support_: IntArray = np.flatnonzero(c)
        self.dual_coef_: Array = c[self.support_]
        self._centre = float(c @ self._gram.matrix() @ c)  # its squared norm
        rounding = 1e-12 * float(np.abs(self._gram.diagonal()).max())
        self.offset_ = -max(self._centre - solution.intercept, 0.0) * (1.0 + 2.0 * self.tol) - rounding
        self.radius_ = float(np.sqrt(-self.offset_))
        self.residual_ = solution.residual
        if not solution.converged:
            warnings.warn(
                f"the sphere was fitted to a KKT violation of {solution.residual:.2g}, above tol={self.tol:g}: columns "
                "far from 0 or of very different sizes do that; use standardize=True",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def score_samples(self, X: Any) -> Array:
        """Minus the squared distance from the center: higher means more similar to the training rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            The scores.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve import SVDD
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> near, far = SVDD().fit(X).score_samples([[0.0, 0.0], [9.0, 9.0]])
        >>> bool(near > far)
        True
        """
        check_is_fitted(self)
        Z = read_new(self, X)
        Z = Z if self._scaling is None else self._scaling.apply(Z)
        outside = self._machine.decision(self._solution, self._gram, Z)
        return np.asarray(self._solution.intercept - self._centre - outside)

    def decision_function(self, X: Any) -> Array:
        """R^2 - d^2: the squared radius minus the squared distance from the center, negative outside the sphere.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            The decision values.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve import SVDD
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> SVDD().fit(X).decision_function([[0.0, 0.0], [9.0, 9.0]]) > 0
        array([ True, False])
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """1 for rows inside the sphere, -1 for rows outside.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        array of int of shape (n_samples,)
            1 or -1 for each row.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve import SVDD
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> SVDD().fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
        array([ 1, -1])
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = kernel_of(self.kernel)
        tags.input_tags.sparse = kernel.sparse
        tags.input_tags.allow_nan = kernel.missing
        return tags


def _mask(outliers: Any, m: int) -> BoolArray:
    if outliers is None:
        return np.zeros(m, dtype=bool)
    known = np.asarray(outliers)
    if known.shape != (m,):
        raise InputError(f"outliers has {known.size} values; X has {m} rows")
    if known.dtype != bool and not np.isin(known, (0, 1)).all():
        raise InputError("outliers must be true (known outlier) or false for each row")
    return known.astype(bool)


# -- MKLClassifier ----------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)  # scikit-learn has its own
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

    kernel: KernelLike = "clinical"
    C: float = 1.0
    class_weight: Mapping[Any, float] | str | None = None
    standardize: bool = False
    kinds: Mapping[str, str] | None = None
    tol: float = 1e-6
    max_iter: int = 1000

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
