"""Columns of a file as they are trained on and predicted from: what is no plain number or text is made one."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

NO_VALUES = (list, dict, set, np.ndarray, bytes, bytearray, memoryview)


def tidy_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Decimal numbers and durations as floats, levels of intervals as text; cells that are lists are refused."""
    import pandas as pd

    changed: dict[Any, Any] = {}
    for name, dtype in [(name, dtype) for name, dtype in frame.dtypes.items() if dtype.kind not in "biufc"]:
        column = frame[name]
        if dtype.kind == "m":
            changed[name] = column.dt.total_seconds()
        elif isinstance(dtype, pd.CategoricalDtype) and isinstance(dtype.categories.dtype, pd.IntervalDtype):
            changed[name] = column.cat.rename_categories(str)
        elif dtype.kind == "O" and not isinstance(dtype, pd.CategoricalDtype):
            known = column.dropna()
            if len(known) and known.map(lambda cell: isinstance(cell, Decimal)).all():
                changed[name] = column.astype(float)
            elif wrong := [type(cell).__name__ for cell in known if isinstance(cell, NO_VALUES)][:1]:
                raise InputError(
                    f"column {name!r} holds a {wrong[0]}; a cell must be a number or a text: convert or drop it"
                )
    return frame.assign(**changed) if changed else frame
