"""The Gaussian kernel: base_j(u, v) = -(u - v)^2 / 2, outer(A) = exp(A)."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array
from ..data.table import Table
from ._width import starting_scale


class Gaussian(BaseEstimator):
    """K(x, z) = exp(-sum_j s_j^2 (x_j - z_j)^2 / 2).

    Parameters
    ----------
    width : "auto" or float
        The factor s0 that every s_j starts from; "auto" is 1 / sqrt(sum of the feature variances), frozen at fit.
    average : bool
        Divide the exponent by the number of live features; "auto" then uses the mean variance.
    """

    geometry = "distance"  # sum_j w_j base_j is minus half a squared distance
    additive = False
    accepts = frozenset({"real", "ordinal", "boolean"})
    sparse = False

    def __init__(self, width: float | str = "auto", average: bool = False) -> None:
        self.width = width
        self.average = average

    def scale(self, table: Table, weight: Array | None = None) -> Array:
        """(n,) the scaling factors to start from; rows count by their weight."""
        return starting_scale(table, self.width, self.average, weight)

    def base(self, u: Array, v: Array, kind: str, spread: float) -> Array:  # noqa: ARG002
        return -0.5 * (u - v) ** 2

    def outer(self, A: Array) -> Array:
        return np.exp(A)

    def outer_derivative(self, A: Array, order: int = 1) -> Array:  # noqa: ARG002
        return np.exp(A)
