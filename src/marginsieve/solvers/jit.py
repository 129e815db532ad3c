"""How loops are compiled: one signature each, cached on disk, without the GIL, never with threads of their own."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile `function` on its first call (float64, C-contiguous arrays)."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
