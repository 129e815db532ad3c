"""The linear kernel: base_j(u, v) = u v, outer(A) = A."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import LinearGram, ThinGram
from ..batches.arrays import Backend, DeviceArray
from ..batches.device_gram import DeviceGram
from ..batches.pair_sums import ProductSums, Scales
from ..contracts import Array, Gram, IntArray, TableView
from ._shared import KernelMixin

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
