"""A linear result as a formula: decision value = sum_j coef_j x_j + intercept, in the units of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array
from ..fitting.training import Model

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
    if len(selector.classes_) == 2:
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
