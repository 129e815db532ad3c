"""SVDD as an outlier detector of its own."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array, BoolArray, IntArray
from ..errors import InputError
from ..fitting.compatibility import refuses_table
from ..fitting.parts import kernel_of
from ..fitting.preparation import Scaling
from ..machines import Sphere
from ..outcomes import read_weight
from .inputs import read_new, read_training


class SVDD(OutlierMixin, BaseEstimator):
    """The smallest soft sphere around the rows, in the space of a kernel; what lies outside is an outlier.

    Tax and Duin, Support vector data description, Machine Learning 54 (2004) 45-66.

    Parameters
    ----------
    kernel : str or kernel
    r : float in (0, 1]
        At most about this share of the rows lies outside.
    r_out : float, 0 or more
        At most about this share of the known outliers lies inside.
    standardize : bool
        Bring every column to mean 0 and variance 1 over the training rows.
    tol : float
        The KKT violation at which the solver stops; rows so near the sphere count as inside.

    Attributes
    ----------
    radius_ : the sphere's radius
    offset_ : minus its square; ``decision_function = score_samples - offset_``
    support_ : numbers of the rows that carry the centre; `dual_coef_` are their weights in it
    residual_ : the KKT violation at which the solver stopped
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
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
        """Describe the rows; `outliers` (rows,) marks those that are known not to belong. y is ignored."""
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
        self._machine = machine
        self._gram = kernel.bind(table, kernel.start(table, weight), np.arange(table.shape[1]))
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
        """(rows,) minus the squared distance from the centre: higher is more like the training rows."""
        check_is_fitted(self)
        Z = read_new(self, X)
        Z = Z if self._scaling is None else self._scaling.apply(Z)
        outside = self._machine.decision(self._solution, self._gram, Z)
        return np.asarray(self._solution.intercept - self._centre - outside)

    def decision_function(self, X: Any) -> Array:
        """(rows,) R^2 - d^2: negative outside the sphere."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """(rows,) 1 inside the sphere, -1 outside."""
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
