"""Large matrices in memory that is used again.

The system hands out fresh memory page by page, which for a matrix of hundreds of megabytes takes longer than what is
computed into it. A search makes such a matrix at every step: here the memory of one that is no longer used becomes the
next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array

SMALL = 2**20  # numbers below which a matrix is left to numpy
KEPT = 2**27  # numbers that are kept for later, in all
_free: list[Array] = []  # flat, unused; appending and popping are atomic


class _Lease:
    """Memory on loan: when the last array that lies in it is gone, it is free again."""

    def __init__(self, memory: Array, shape: tuple[int, int]) -> None:
        self.memory = memory
        interface: dict[str, Any] = dict(memory.__array_interface__)
        self.__array_interface__ = interface | {"shape": shape, "strides": None}

    def __del__(self) -> None:
        if sum(memory.size for memory in _free) + self.memory.size <= KEPT:
            _free.append(self.memory)


def matrix(rows: int, columns: int) -> Array:
    """An uninitialised matrix of doubles."""
    size = rows * columns
    if size < SMALL:
        return np.empty((rows, columns))
    memory = None
    for place, unused in enumerate(_free):
        if size <= unused.size <= 2 * size:
            try:
                memory = _free.pop(place)
            except IndexError:  # another thread was faster
                continue
            if not size <= memory.size <= 2 * size:
                _free.append(memory)
                memory = None
                continue
            break
    if memory is None:
        memory = np.empty(size)
    return np.asarray(_Lease(memory, (rows, columns)))
