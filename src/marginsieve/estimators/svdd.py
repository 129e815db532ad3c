"""SVDD as an outlier detector of its own."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, BoolArray, IntArray, KernelLike
from ..errors import InputError
from ..fitting.compatibility import refuses_table
from ..fitting.parts import kernel_of
from ..fitting.preparation import Scaling
from ..machines import Sphere
from ..outcomes import read_weight
from .inputs import read_new, read_training


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

    def __init__(
        self,
        kernel: KernelLike = "gaussian",
        r: float = 0.1,
        r_out: float = 0.1,
        standardize: bool = False,
        tol: float = 1e-4,
    ) -> None:
        self.kernel = kernel
        self.r = r
        self.r_out = r_out
        self.standardize = standardize
        self.tol = tol

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


def _mask(outliers: Any, m: int) -> BoolArray:
    if outliers is None:
        return np.zeros(m, dtype=bool)
    known = np.asarray(outliers)
    if known.shape != (m,):
        raise InputError(f"outliers has {known.size} values; X has {m} rows")
    if known.dtype != bool and not np.isin(known, (0, 1)).all():
        raise InputError("outliers must be true (known outlier) or false for each row")
    return known.astype(bool)
