"""How many features of the main method's list are false, and what a test of each column alone says."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..contracts import Array
from ..criteria import MixedTest
from ..engine.units import PreparedMethod, UnitTable
from ..fitting.false_share import FalseShare, false_share
from .chance import rows_to_shuffle
from .choosing import Choice
from .options import StudyOptions


def main_false_share(prepared: PreparedMethod, table: UnitTable, choice: Choice, options: StudyOptions) -> FalseShare:
    """Scores and q-values of all features, by the main method on halves of the rows."""
    seed = np.random.SeedSequence([options.random_state, 2])
    part = rows_to_shuffle(table, choice, np.random.default_rng(seed.spawn(1)[0]))
    return false_share(prepared.plan, part, *choice.halves, seed, options.n_jobs)


def marginal_q(table: UnitTable) -> Array:
    """(n,) p-values of each column by itself (Welch's t-test, Fisher's exact test), adjusted over all columns.

    After Benjamini and Hochberg; nan where there are more than two classes, or a column does not vary.
    """
    encoded = table.encoded
    out = np.full(encoded.table.shape[1], np.nan)
    if len(table.classes) != 2:
        return out
    part, _ = encoded.part()
    label = np.where(part.y == table.positive, 1.0, -1.0)[None]
    with np.errstate(all="ignore"):
        p = 10.0 ** -np.asarray(MixedTest()(part.table, label, np.ones(len(part.y))))
    known = np.isfinite(p)
    out[known] = stats.false_discovery_control(np.clip(p[known], 0.0, 1.0))
    return out
