"""The linear kernel: base_j(u, v) = u v, outer(A) = A."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array
from ..data.table import Table


class Linear(BaseEstimator):
    """K(x, z) = sum_j s_j^2 x_j z_j, every s_j = 1 at the start.

    Parameters
    ----------
    average : bool
        Divide by the number of live features, so that C means the same at every size.
    """

    geometry = "product"  # sum_j w_j base_j is a matrix product
    additive = True  # K is a sum over features
    accepts = frozenset({"real", "ordinal", "boolean"})
    sparse = True

    def __init__(self, average: bool = False) -> None:
        self.average = average

    def scale(self, table: Table, weight: Array | None = None) -> Array:  # noqa: ARG002
        """(n,) the scaling factors to start from; rows count by their weight."""
        return np.ones(table.shape[1])

    def base(self, u: Array, v: Array, kind: str, spread: float) -> Array:  # noqa: ARG002
        return u * v

    def outer(self, A: Array) -> Array:
        return A

    def outer_derivative(self, A: Array, order: int = 1) -> Array | None:
        return A if order == 0 else np.ones_like(A) if order == 1 else None
