"""The polynomial kernel: base_j(u, v) = u v, outer(A) = (A + 1)^d."""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array
from ..data.table import Table
from ..errors import whole_number
from ._width import starting_scale


class Polynomial(BaseEstimator):
    """K(x, z) = (sum_j s_j^2 x_j z_j + 1)^degree.

    Parameters
    ----------
    degree : int
    width : "auto" or float
        The factor s0 that every s_j starts from; "auto" is 1 / sqrt(sum of the feature variances), frozen at fit.
    average : bool
        Divide the sum by the number of live features; "auto" then uses the mean variance.
    """

    geometry = "product"
    additive = False
    accepts = frozenset({"real", "ordinal", "boolean"})
    sparse = False

    def __init__(self, degree: int = 3, width: float | str = "auto", average: bool = False) -> None:
        self.degree = degree
        self.width = width
        self.average = average

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("kernel", "degree", self.degree)

    def scale(self, table: Table, weight: Array | None = None) -> Array:
        """(n,) the scaling factors to start from; rows count by their weight."""
        return starting_scale(table, self.width, self.average, weight)

    def base(self, u: Array, v: Array, kind: str, spread: float) -> Array:  # noqa: ARG002
        return u * v

    def outer(self, A: Array) -> Array:
        return np.asarray((A + 1.0) ** self.degree)

    def outer_derivative(self, A: Array, order: int = 1) -> Array | None:
        """The derivative of this order; None beyond the degree, where all are 0."""
        if order > self.degree:
            return None
        factor = math.prod(range(self.degree - order + 1, self.degree + 1))
        return np.asarray(factor * (A + 1.0) ** (self.degree - order))
