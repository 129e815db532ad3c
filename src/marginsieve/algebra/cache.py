"""How much of a kernel matrix is kept: a limit in megabytes, which is a parameter of the kernels."""

from __future__ import annotations

import math

from ..contracts import TableView
from ..data.stored import is_stored

MEGABYTE = 2**20
NUMBER = 8  # bytes


def beyond_cache(table: TableView, cache: float) -> bool:
    """Whether the kernel matrix of a table's rows takes more megabytes than the cache has."""
    rows = table.shape[0]
    return NUMBER * rows * rows > cache * MEGABYTE and not table.is_sparse and not is_stored(table.Z)


def rows_at_once(cache: float) -> int:
    """The rows of a matrix that takes a quarter of the cache, since some are copied."""
    return max(64, int(math.sqrt(cache * MEGABYTE / NUMBER) / 2.0))
