"""Types used all over."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Matrix = Any  # a dense Array or a scipy.sparse array
Progress = Callable[[str, float, float], None]  # what is being done, work done, all work


def is_sparse(Z: Matrix) -> bool:
    """Whether this is a scipy.sparse array or matrix."""
    return bool(sparse.issparse(Z))
