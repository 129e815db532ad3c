"""What the kernels share: what they declare of themselves unless they say otherwise, and where their weights start."""

from __future__ import annotations

import numbers
from typing import ClassVar

import numpy as np

from ..contracts import NUMBERS, Array, TableView
from ..errors import InputError


class KernelMixin:
    """A kernel of dense tables of numbers that is no sum over features; `average` divides by the live features."""

    kinds: ClassVar[frozenset[str]] = NUMBERS
    missing = False
    sparse = False
    additive = False
    linear = False
    unit_free = False

    average: bool

    def divisor(self, live: int) -> float:
        """The number of live features where the kernel averages, else 1."""
        return float(max(live, 1)) if self.average else 1.0


def starting_weight(table: TableView, width: float | str, average: bool, weight: Array | None = None) -> Array:
    """(n,) of width^2; "auto" is 1 / sqrt(sum of variances), of their mean where the kernel averages."""
    n = table.shape[1]
    if width == "auto":
        w = np.full(table.shape[0], 1.0 / table.shape[0]) if weight is None else weight / weight.sum()
        D = table.Z - w @ table.Z
        variance = np.einsum("i,ij,ij->j", w, D, D)
        total = float(variance.mean() if average else variance.sum())
        return np.full(n, 1.0 / np.sqrt(total) if total > 0 else 1.0) ** 2
    number = isinstance(width, numbers.Real) and not isinstance(width, bool)
    if not number or not 0 < float(width) < np.inf:
        raise InputError(f'width is {width!r}; it must be "auto" or a positive number')
    return np.full(n, float(width)) ** 2
