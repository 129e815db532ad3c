"""A score of several cohorts: what it is on average, and how much it varies between them.

On the logit scale, each cohort's value y_i with its variance v_i: tau^2 is what Paule and Mandel's equation makes of
them, the interval of the mean Hartung and Knapp's, and that of a further cohort Higgins'::

    sum_i (y_i - mu)^2 / (v_i + tau^2) = k - 1,    mu = sum_i y_i / (v_i + tau^2) / sum_i 1 / (v_i + tau^2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from ..contracts import Array

MOST_SPREAD = 100.0  # tau^2 on the logit scale


@dataclass(frozen=True)
class Pooled:
    """A score over cohorts.

    Attributes
    ----------
    value, low, high : float
        The mean with its interval; without ends (nan) for one cohort.
    tau : float
        Standard deviation between cohorts, on the logit scale.
    next_low, next_high : float
        Between which the score of a further cohort, as large as one likes, lies; nan for fewer than 3 cohorts.
    cohorts : int
        How many there are.
    """

    value: float
    low: float
    high: float
    tau: float
    next_low: float
    next_high: float
    cohorts: int


def pool(values: Sequence[float], errors: Sequence[float], counts: Sequence[int], level: float = 0.95) -> Pooled:
    """The mean of shares over cohorts, and how much they vary beyond their own errors.

    Parameters
    ----------
    values, errors : sequence of float
        The score of each cohort and its standard error.
    counts : sequence of int
        Rows of the rarest stratum (class) of each: half a row is added, so that a score of 1 has a logit.
    level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    Pooled
        The mean, its interval, tau.

    Examples
    --------
    >>> from marginsieve.validation import pool
    >>> known = pool([0.7, 0.8, 0.9], [0.05, 0.05, 0.05], [30, 30, 30])
    >>> round(known.value, 2), known.low < known.value < known.high
    (0.79, True)
    """
    k, n = len(values), np.asarray(counts, dtype=float)
    middle = (np.asarray(values, dtype=float) * n + 0.5) / (n + 1.0)
    y = special.logit(middle)
    # a cohort without an error varies as if half an error had been made
    v = np.maximum(np.asarray(errors, dtype=float), 0.5 / (n + 1.0)) ** 2 / (middle * (1.0 - middle)) ** 2

    def mean_at(between: float) -> float:
        weight = 1.0 / (v + between)
        return float(weight @ y / weight.sum())

    def excess(between: float) -> float:
        return float(((y - mean_at(between)) ** 2 / (v + between)).sum() - (k - 1))

    between = 0.0
    if k > 1 and excess(0.0) > 0:
        between = float(optimize.brentq(excess, 0.0, MOST_SPREAD)) if excess(MOST_SPREAD) < 0 else MOST_SPREAD
    centre, weight = mean_at(between), 1.0 / (v + between)
    if k < 2:
        unknown = float("nan")
        return Pooled(float(special.expit(centre)), unknown, unknown, 0.0, unknown, unknown, k)
    spread = max(float(weight @ (y - centre) ** 2) / (k - 1), 1.0) / float(weight.sum())
    low, high = _ends(centre, float(stats.t.ppf(0.5 + level / 2, k - 1)) * np.sqrt(spread))
    ends = (float("nan"), float("nan"))
    if k > 2:
        ends = _ends(centre, float(stats.t.ppf(0.5 + level / 2, k - 2)) * np.sqrt(spread + between))
    return Pooled(float(special.expit(centre)), low, high, float(np.sqrt(between)), *ends, k)


def _ends(centre: float, reach: float) -> tuple[float, float]:
    ends: Array = special.expit(np.array([centre - reach, centre + reach]))
    return float(ends[0]), float(ends[1])
