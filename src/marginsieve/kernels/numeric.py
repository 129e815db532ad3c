"""Kernels of tables of numbers: linear, polynomial and Gaussian, and what all kernels share."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import DistanceGram, LinearGram, ProductGram, ThinGram
from ..algebra.blocks import beyond_cache
from ..algebra.product_gram import PartialDistanceGram, PartialProductGram
from ..batches.arrays import Backend, DeviceArray
from ..batches.pair_sums import DeviceGram, ProductSums, Scales, SquareSums
from ..contracts import NUMBERS, Array, Gram, IntArray, Resources, TableView
from ..errors import InputError, positive_number, whole_number

CACHE = 1000.0  # megabytes of a kernel matrix: about 11,000 rows


class KernelMixin:
    """A kernel of dense tables of numbers that is no sum over features; `average` divides by the live features."""

    kinds: ClassVar[frozenset[str]] = NUMBERS
    missing = False
    sparse = False
    additive = False
    linear = False
    unit_free = False

    average: bool

    def divisor(self, table: TableView, live: IntArray) -> float:  # noqa: ARG002
        """The number of live features where the kernel averages, else 1."""
        return float(max(len(live), 1)) if self.average else 1.0


class WidthMixin(KernelMixin):
    """A kernel with a width, in units of the live columns, or of all columns together where it does not average."""

    width: float | str
    cache: float

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        number = isinstance(self.width, numbers.Real) and not isinstance(self.width, bool)
        if self.width != "auto" and not (number and 0 < float(self.width) < np.inf):
            raise InputError(f'width is {self.width!r}; it must be "auto" or a positive number')
        positive_number("kernel", "cache", self.cache)

    def start(self, table: TableView) -> Array:
        """(n,) of width^2; "auto" is 1 where the kernel averages, else 1 / sqrt(sum of the variances of all)."""
        self.check()
        if self.width != "auto":
            return np.full(table.shape[1], float(self.width) ** 2)
        return np.full(table.shape[1], 1.0 if self.average else 1.0 / _total(table.variance))

    def divisor(self, table: TableView, live: IntArray) -> float:
        """The sum of the variances of the live columns where the kernel averages, else 1."""
        return _total(table.variance[live]) if self.average else 1.0


def _total(variance: Array) -> float:
    return float(variance.sum()) or 1.0


# The linear kernel: base_j(u, v) = u v, outer(A) = A.

THIN = 400  # rows above which a kernel matrix is avoided where there are fewer columns

MANY_SPARSE = 3000  # rows of a sparse table above which it is avoided in any case


class Linear(KernelMixin, BaseEstimator):
    """K(x, z) = sum_j w_j x_j z_j, every w_j = 1 at the start.

    Parameters
    ----------
    average : bool, default=False
        Divide by the number of live features, so that C has the same meaning at every size.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.kernels import Linear
    >>> recipes.svm_rfe(kernel=Linear(average=True)).kernel
    Linear(average=True)
    """

    sparse = True
    additive = True
    linear = True
    in_batches: ClassVar[bool] = True

    def __init__(self, average: bool = False) -> None:
        self.average = average

    def start(self, table: TableView) -> Array:
        """(n,) the feature weights to start from."""
        return np.ones(table.shape[1])

    def bind(self, table: TableView, feature_weight: Array, live: IntArray) -> Gram:
        """The Gram of some features of a table at weights (n,)."""
        if table.arrays is not None:
            return DeviceGram.build(self, table, feature_weight, live, distance=False)
        m = table.shape[0]
        thin = m > MANY_SPARSE if table.is_sparse else m > THIN and len(live) < m
        return (ThinGram if thin else LinearGram).build(self, table, feature_weight, live)

    def pair_sums(self, arrays: Backend, X: DeviceArray, scales: Scales) -> ProductSums:
        """Kernel matrices over the rows of X (n, r) for many weightings at once."""
        return ProductSums(arrays, X, scales, self.average, None)

    def outer(self, A: Array) -> Array:
        """A itself."""
        return A

    def outer_derivative(self, A: Array, order: int = 1) -> Array | None:
        """The derivative of this order; None beyond the first, where all are 0."""
        return A if order == 0 else np.ones_like(A) if order == 1 else None


# The polynomial kernel: base_j(u, v) = u v, outer(A) = (A + 1)^d.


@dataclass(eq=False, repr=False)  # scikit-learn has its own
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

    degree: int = 3
    width: float | str = "auto"
    average: bool = True
    cache: float = CACHE

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


# The Gaussian kernel: base_j(u, v) = -(u - v)^2 / 2, outer(A) = exp(A).


class Gaussian(WidthMixin, BaseEstimator):
    """K(x, z) = exp(-sum_j w_j (x_j - z_j)^2 / 2).

    Parameters
    ----------
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
    >>> from marginsieve.kernels import Gaussian
    >>> recipes.svm_rfe(kernel=Gaussian(width=0.1)).kernel
    Gaussian(width=0.1)
    """

    resources = Resources(peak=(4.5, 7.0))
    in_batches: ClassVar[bool] = True

    def __init__(self, width: float | str = "auto", average: bool = True, cache: float = CACHE) -> None:
        self.width = width
        self.average = average
        self.cache = cache

    def bind(self, table: TableView, feature_weight: Array, live: IntArray) -> Gram:
        """The Gram of some features of a table at weights (n,)."""
        if table.arrays is not None:
            return DeviceGram.build(self, table, feature_weight, live, distance=True)
        partial = beyond_cache(table, self.cache)
        return (PartialDistanceGram if partial else DistanceGram).build(self, table, feature_weight, live)

    def pair_sums(self, arrays: Backend, X: DeviceArray, scales: Scales) -> SquareSums:
        """Kernel matrices over the rows of X (n, r) for many weightings at once."""
        return SquareSums(arrays, X, scales, self.average, None if self.width == "auto" else float(self.width))

    def outer(self, A: Array) -> Array:
        """exp(A)."""
        return np.exp(A)

    def outer_derivative(self, A: Array, order: int = 1) -> Array:  # noqa: ARG002
        """exp(A), whatever the order."""
        return np.exp(A)
