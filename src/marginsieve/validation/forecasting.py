"""What a model's score will be on another cohort, and what was promised of it.

With the score a on the logit scale, SE its standard error, m the rows of the new cohort and k the rows of the rarest
stratum (class) of the training table, or its events::

    logit(a) +- t(.95; k - 1) sqrt((SE^2 + V_new(a, m)) / (a (1 - a))^2 + tau^2)

tau^2 is 0 where the cohort is measured in the same way, and .25 where it is measured elsewhere. The latter was chosen
on 23 families of real cohorts, all of which are about AUC, most of them of gene expression: it is provisional.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from ..engine.scoring import FEWEST, Scores
from ..outcomes import Target

ELSEWHERE = 0.25  # variance between cohorts of the logit of AUC
FAMILIES = 23  # of cohorts by which it was chosen
LEVEL = 0.9


@dataclass(frozen=True)
class Forecast:
    """Between which values a score will be on another cohort.

    Attributes
    ----------
    same : (float, float)
        Where it is measured in the same way.
    elsewhere : (float, float)
        Where it is measured elsewhere.
    counts : tuple of int
        Rows of each stratum in that cohort, or its events.
    """

    same: tuple[float, float]
    elsewhere: tuple[float, float]
    counts: tuple[int, ...]


def forecast(
    target: Target, value: float, error: float, few: int, counts: Sequence[int], level: float = LEVEL
) -> Forecast:
    """Between which values the score that can be forecast will be on a cohort with so many rows of each stratum.

    Parameters
    ----------
    target : Target
        Rows of the outcome; how its score varies.
    value, error : float
        The score and its standard error.
    few : int
        Rows (or groups) of the training table that decide how sure the score is: of the rarest stratum, or those with
        an event.
    counts : sequence of int
        What decides how the score varies on the new cohort: the rows of each stratum, or the events.
    level : float, default=0.9
        Level of the forecast.

    Returns
    -------
    Forecast
        Both intervals.

    Examples
    --------
    >>> from marginsieve.outcomes import ClassTarget
    >>> from marginsieve.validation import forecast
    >>> known = forecast(ClassTarget.from_codes([0, 1]), 0.8, 0.05, 30, (50, 30))
    >>> [round(end, 2) for end in known.same]
    [0.64, 0.89]
    """
    middle = (value * few + 0.5) / (few + 1)
    unit = middle * (1.0 - middle)
    within = (error**2 + target.forecast_variance(middle, counts)) / unit**2
    reach = float(stats.t.ppf(0.5 + level / 2, max(few - 1, 1)))
    ends = []
    for between in (0.0, ELSEWHERE):
        spread = reach * np.sqrt(within + between)
        low, high = special.expit(special.logit(middle) + np.array([-spread, spread]))
        ends.append((float(low), float(high)))
    return Forecast(ends[0], ends[1], tuple(map(int, counts)))


def record_promise(scores: Scores, features: Iterable[str] = ()) -> dict[str, Any]:
    """What a study promises, as result.json has it: each score with its standard error, the training rows, the list."""
    promised = {
        name: {
            "value": scores.value[name],
            "low": scores.low[name],
            "high": scores.high[name],
            "error": scores.error[name],
        }
        for name in scores.value
    }
    known = {"counts": list(scores.counts), "effective_count": scores.effective_count}
    return {"scores": promised, **known, "list": digest_of_list(features)}


def digest_of_list(features: Iterable[str]) -> str:
    """By what a list is known: the SHA-256 of its names."""
    names = sorted(map(str, features))
    return hashlib.sha256("\n".join(names).encode("utf-8", errors="backslashreplace")).hexdigest()


def forecast_by_promise(target: Target, promise: Mapping[str, Any], counts: Sequence[int]) -> Forecast | None:
    """The forecast from a promise; None where there is none for this outcome, or too few rows say how sure it is."""
    name, few = target.forecast_by, promise["effective_count"]
    if name is None or name not in promise["scores"] or few < FEWEST or min(counts, default=0) < 1:
        return None
    known = promise["scores"][name]
    return forecast(target, float(known["value"]), float(known["error"]), few, counts)
