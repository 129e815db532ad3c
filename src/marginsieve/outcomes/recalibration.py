"""What a model's values mean on another cohort: probabilities, and where they are cut, by labelled rows of it."""

from __future__ import annotations

import numpy as np
from scipy import special

from ..contracts import Array, BoolArray
from ..errors import InputError, shown_value
from .operating import cut_above
from .scores import fit_calibration

# Log loss on the other rows of 23 families of cohorts: a slope of its own needs about 80 rows, one that is held near 1
# about 20, and twice as many where the columns were aligned, which leaves less to gain.
FEWEST, FEWEST_FOR_SLOPE, FEWEST_ALIGNED, FEWEST_FREE = 10, 20, 40, 80
SLOPE_PRIOR = (1.0, 0.25)  # mean and variance
RULES = '"prevalence", "sensitivity:0.9", "specificity:0.9" or "probability:0.2"'


def recalibrate(z: Array, positive: BoolArray, aligned: bool, m: int | None = None) -> tuple[float, float, str]:
    """(intercept, slope, how) of P(positive) = 1 / (1 + exp(-(intercept + slope z))); z are log odds (rows,).

    How much is fitted depends on m, the number of rows; a fold of them gets what all of them get.
    """
    m = len(z) if m is None else m
    fewest = FEWEST_ALIGNED if aligned else FEWEST
    if m < fewest:
        where = " of an aligned cohort" if aligned else ""
        raise InputError(f"recalibrate has {m} labelled rows{where}; it takes {fewest}")
    if m < FEWEST_FOR_SLOPE:
        prior, how = (1.0, 0.0), "intercept"
    elif m < FEWEST_FREE:
        prior, how = SLOPE_PRIOR, f"intercept and slope, held near 1 by a normal prior of variance {SLOPE_PRIOR[1]:g}"
    else:
        return *fit_calibration(z, positive), "intercept and slope"
    return *fit_calibration(z, positive, prior), how


def move_cut(
    value: Array, z: Array | None, positive: BoolArray, rule: str, prevalence: float | None
) -> tuple[float, str]:
    """By how much the cut of values (m,), which is 0, is moved, and how in words.

    "prevalence": as many rows are called positive as there should be; "sensitivity:s": the highest cut at which at
    least a share s of the positives is found, "specificity:s" the lowest at which that share of the others is left
    alone; "probability:p": where the probability is p.
    """
    name, _, text = rule.partition(":")
    wrong = InputError(f"cut is {shown_value(rule)}; it must be {RULES}")
    if name == "prevalence" and not text:
        if prevalence is None:
            raise InputError("cut is 'prevalence': give the prevalence too")
        return _cut(value, prevalence), f"a cut at the given prevalence of {prevalence:g}"
    try:
        share = float(text)
    except ValueError:
        raise wrong from None
    if name not in ("sensitivity", "specificity", "probability") or not 0.0 < share < 1.0:
        raise wrong
    how = f"a cut at a {name} of {share:g}"
    if name == "probability":
        if z is None or np.ptp(z) == 0:
            raise InputError(f"cut is {rule!r} and the model has no probabilities")
        slope, offset = np.polyfit(value, z, 1)  # the log odds are linear in the values
        return float((special.logit(share) - offset) / slope), how
    side = positive if name == "sensitivity" else ~positive
    if not side.any():
        raise InputError(f"cut is {rule!r} and no labelled row is of that class")
    if name == "sensitivity":
        return _cut(value[side], share), how
    return -_cut(-value[side], share), how


def _cut(value: Array, share: float) -> float:
    """A cut above which this share of the values lies."""
    return cut_above(value, np.ones(len(value)), share)
