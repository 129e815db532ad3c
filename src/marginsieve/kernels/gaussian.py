"""The Gaussian kernel: base_j(u, v) = -(u - v)^2 / 2, outer(A) = exp(A)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import DistanceGram
from ..algebra.cache import beyond_cache
from ..algebra.partial_gram import PartialDistanceGram
from ..batches.arrays import Backend, DeviceArray
from ..batches.device_gram import DeviceGram
from ..batches.pair_sums import Scales, SquareSums
from ..contracts import Array, Gram, IntArray, Resources, TableView
from ._shared import CACHE, WidthMixin


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
