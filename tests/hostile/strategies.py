"""Hypothesis strategies for tables, labels, weights and settings, sane and hostile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from .inputs import Case

CELLS = st.one_of(
    st.floats(-5, 5),
    st.sampled_from(
        [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e-300, 1e-170, 1e70, 1e80, 1e300, 5e-324, 1e15, 1e16 + 2]
    ),
)
TEXTS = st.one_of(st.text(max_size=5), st.sampled_from(["", " ", "=1+1", "nan", "NA", "\n", "\x00", "a;=b"]), st.none())
NUMBERS = st.one_of(
    st.integers(-3, 100),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([None, True, "x", "auto", "balanced", [1], (1.0, 2.0), 10**30, 1e-30, {}]),
)
PARAMETERS = (
    *("C", "n_features_to_select", "cv", "random_state", "threshold", "class_weight", "negative_weight", "ensemble"),
    *("similar", "standardize", "max_samples", "probability", "positive", "keep", "n_jobs", "kinds", "resamples"),
)


@st.composite
def tables(draw: Any, rows: int) -> Any:
    """A table of so many rows: an array, a sparse matrix, or a frame of numbers and texts."""
    columns = draw(st.integers(1, 6))
    base = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(rows, columns))
    spoiled = draw(st.dictionaries(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)), CELLS, max_size=3))
    for place, value in spoiled.items():
        base[place] = value
    with np.errstate(all="ignore"):
        base *= draw(st.sampled_from([1.0, 1.0, 1e-170, 1e60, 1e-8]))
    form = draw(st.sampled_from(["array", "array", "csr", "frame", "mixed"]))
    if form == "csr":
        return sparse.csr_array(base)
    if form == "array":
        with np.errstate(all="ignore"):
            return base.astype(draw(st.sampled_from(["f8", "f8", "f4", "O"])))
    frame = pd.DataFrame(base, columns=draw(st.lists(st.text(max_size=3), min_size=columns, max_size=columns)))
    if form == "mixed":
        frame["levels"] = draw(st.lists(TEXTS, min_size=rows, max_size=rows))
    return frame


@st.composite
def targets(draw: Any, rows: int) -> Any:
    """Labels of so many rows."""
    values = draw(st.lists(st.one_of(st.integers(-1, 3), TEXTS, CELLS), min_size=1, max_size=3))
    if draw(st.booleans()):
        return np.arange(rows) % 3 == 0
    return [values[k % len(values)] for k in range(rows)]


def weights(rows: int) -> Any:
    """None, or weights of so many rows."""
    return st.one_of(st.none(), hnp.arrays(float, rows, elements=st.one_of(st.floats(0, 10), CELLS)))


@st.composite
def cases(draw: Any) -> Case:
    """What a fit may be given."""
    rows = draw(st.integers(2, 30))
    settings = draw(st.dictionaries(st.sampled_from(PARAMETERS), NUMBERS, max_size=2))
    return Case(draw(tables(rows)), draw(targets(rows)), draw(weights(rows)), settings=settings)
