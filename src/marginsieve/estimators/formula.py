"""A linear result as a formula: decision value = sum_j coef_j x_j + intercept, in the units of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array

ROWS = 256  # unit vectors at a time


class FormulaMixin:
    """`coef_` (classes or 1, columns) and `intercept_` (classes or 1,) where the machine is linear in the columns.

    `X @ coef_.T + intercept_` is the decision value, its cut included; a column that was not selected has 0, a
    boolean counts as 0 or 1. Other kernels, spheres and tables with levels among what was selected have no formula.
    """

    model_: Any
    columns_: Any
    classes_: Any
    threshold_: float
    n_features_in_: int
    _sign: float

    @property
    def coef_(self) -> Array:
        return self._formula("coef_")[0]

    @property
    def intercept_(self) -> Array:
        return self._formula("intercept_")[1]

    def _formula(self, name: str) -> tuple[Array, Array]:
        if why := self._not_linear():
            raise AttributeError(f"{type(self).__name__} has no {name}: {why}")
        model, p = self.model_, len(self.model_.features)
        constant = model.values(np.zeros((1, p)))[0]
        weight = np.empty((p, len(constant)))
        for start in range(0, p, ROWS):
            stop = min(start + ROWS, p)
            weight[start:stop] = model.values(np.eye(stop - start, p, start)) - constant
        if model.scaling is not None:
            weight *= model.scaling.factor[:, None]
            constant = constant - model.scaling.shift @ weight
        if len(self.classes_) == 2:
            weight, constant = self._sign * weight, self._sign * (constant - self.threshold_)
        coef = np.zeros((len(constant), self.n_features_in_))
        coef[:, model.features] = weight.T
        return coef, constant

    def _not_linear(self) -> str | None:
        model = self.__dict__.get("model_")
        if model is None:
            return "it is not fitted"
        kernel = model.view.kernel
        if not kernel.linear or any(one.diagonal for one in model.solutions):
            return f"{type(model.machine).__name__} on the {type(kernel).__name__.lower()} kernel is not linear"
        for j in model.features:
            if self.columns_.kind[j] not in ("real", "boolean") or self.columns_.levels.get(j):
                return f"the column {self.columns_.names[j]!r} has levels"
        return None
