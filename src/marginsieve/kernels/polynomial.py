"""The polynomial kernel: base_j(u, v) = u v, outer(A) = (A + 1)^d."""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import ProductGram
from ..algebra.cache import beyond_cache
from ..algebra.partial_gram import PartialProductGram
from ..contracts import Array, IntArray, Resources, TableView
from ..errors import whole_number
from ._shared import CACHE, WidthMixin


class Polynomial(WidthMixin, BaseEstimator):
    """K(x, z) = (sum_j w_j x_j z_j + 1)^degree.

    Parameters
    ----------
    degree : int, default=3
        Degree of the polynomial.
    width : "auto" or float, default="auto"
        Square root of the weight that every w_j starts from, in units of 1 / sqrt(sum of the variances of the live
        columns), which "auto" is. So the kernel keeps its meaning as features leave, whatever the columns' units.
    average : bool, default=True
        False keeps the weights of all columns for every subset, as the papers do: `width` is then in plain units, and
        "auto" is 1 / sqrt(sum of the variances of all columns). With few of many columns left such a kernel is nearly
        constant.
    cache : float, default=1000
        Megabytes that the kernel matrix of the training rows may take. Where it would take more, machines and
        elimination make it for some rows at a time, which takes longer.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.kernels import Polynomial
    >>> recipes.svm_rfe(kernel=Polynomial(degree=2)).kernel
    Polynomial(degree=2)
    """

    resources = Resources(peak=(4.5, 7.0))

    def __init__(
        self, degree: int = 3, width: float | str = "auto", average: bool = True, cache: float = CACHE
    ) -> None:
        self.degree = degree
        self.width = width
        self.average = average
        self.cache = cache

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        super().check()
        whole_number("kernel", "degree", self.degree)

    def bind(self, table: TableView, feature_weight: Array, live: IntArray) -> ProductGram:
        """The Gram of some features of a table at weights (n,)."""
        partial = beyond_cache(table, self.cache)
        return (PartialProductGram if partial else ProductGram).build(self, table, feature_weight, live)

    def outer(self, A: Array) -> Array:
        """(A + 1)^degree."""
        return np.asarray((A + 1.0) ** self.degree)

    def outer_derivative(self, A: Array, order: int = 1) -> Array | None:
        """The derivative of this order; None beyond the degree, where all are 0."""
        if order > self.degree:
            return None
        factor = math.prod(range(self.degree - order + 1, self.degree + 1))
        return np.asarray(factor * (A + 1.0) ** (self.degree - order))
