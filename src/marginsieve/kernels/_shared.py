"""What the kernels share: what they declare of themselves unless they say otherwise, and where their weights start."""

from __future__ import annotations

import numbers
from typing import ClassVar

import numpy as np

from ..contracts import NUMBERS, Array, IntArray, TableView
from ..errors import InputError, positive_number

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
