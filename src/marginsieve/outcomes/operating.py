"""Decisions between two classes: where values are cut, what a cut gives at any mix of classes, net benefit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from ..contracts import Array, BoolArray, Score, ScoreInfo
from ..errors import InputError, shown_value
from .scores import CLASS_METRICS, cost_threshold, log_odds

OPERATING_METRICS = {
    **{name: CLASS_METRICS[name] for name in ("sensitivity", "specificity", "ppv", "npv")},
    "called": ScoreInfo("share that is called positive", varies_with_mix=True),
}
CUTS = ("sensitivity", "specificity", "cost", "capacity")
CURVE_POINTS, SPAN = 41, 0.6  # of a smooth calibration curve; share of the rows that each point of it looks at


@dataclass(frozen=True)
class CutRule:
    """Where decision values are cut: "sensitivity:0.9", "specificity:0.9", "cost:5" or "capacity:0.1".

    Of a cost it is how many false alarms one missed positive is worth, of a capacity the share of rows that may be
    called positive at most. These two depend on the mix of classes: "cost:5 at 0.02" is for rows of which a share of
    0.02 is of the class of interest, whatever it is among the rows that the rule is given.
    """

    name: str
    number: float
    share: float | None = None

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The rule of a text; None where it is no such rule."""
        name, _, rest = text.partition(":")
        if name not in CUTS:
            return None
        number, _, share = rest.partition(" at ")
        try:
            rule = cls(name, float(number), float(share) if share else None)
        except ValueError:
            rule = cls(name, float("nan"))
        within = 0.0 < rule.number < (1e12 if name == "cost" else 1.0)
        if not within or not (rule.share is None or 0.0 < rule.share < 1.0):
            raise InputError(
                f"threshold is {shown_value(text)}; such a rule is sensitivity:0.9, specificity:0.9, cost:5, "
                "capacity:0.1 or, for another share of the class of interest, capacity:0.1 at 0.02"
            )
        return rule

    def cut(self, value: Array, label: Array, weight: Array) -> float:
        """The cut of values (rows,) whose labels are -1 or +1."""
        positive = label > 0
        if self.name == "sensitivity":
            return cut_above(value[positive], weight[positive], self.number)
        if self.name == "specificity":
            return -cut_above(-value[~positive], weight[~positive], self.number)
        if self.share is not None:
            weight = weight * np.where(
                positive, self.share / weight[positive].sum(), (1.0 - self.share) / weight[~positive].sum()
            )
        if self.name == "cost":
            return cost_threshold(value, label, weight, 1.0, self.number)
        return -cut_above(-value, weight, 1.0 - self.number)


def cut_above(value: Array, weight: Array, share: float) -> float:
    """The highest cut above which at least this share of the values lies, by weight: midway between two of them."""
    order = np.argsort(-value, kind="stable")
    mass = np.cumsum(weight[order])
    count = int(np.searchsorted(mass, (share - 1e-12) * mass[-1]))
    last = value[order[min(count, len(order) - 1)]]
    below = value[value < last]
    return float(last - 1e-9 * max(abs(last), 1.0) if not len(below) else 0.5 * (last + below.max()))


def scores_at_mix(called: BoolArray, positive: BoolArray, share: float) -> dict[str, Score]:
    """What a cut gives where a share of the rows is of the class of interest; `called` (m,): which rows are called so.

    ::

        PPV = s sens / (s sens + (1 - s) (1 - spec)),      NPV = (1 - s) spec / ((1 - s) spec + s (1 - sens))
    """
    sensitivity, hit = _share_of(called, positive)
    alarms, alarm = _share_of(called, ~positive)
    right, wrong, missed, spared = (
        *(share * sensitivity, (1.0 - share) * alarms),
        *(share * (1.0 - sensitivity), (1.0 - share) * (1.0 - alarms)),
    )
    d_right, d_wrong = share * hit, (1.0 - share) * alarm
    out = {
        "sensitivity": Score(sensitivity, hit),
        "specificity": Score(1.0 - alarms, -alarm),
        "called": Score(right + wrong, d_right + d_wrong),
    }
    if right + wrong > 0:  # of none called so there is no share
        out["ppv"] = Score(right / (right + wrong), (wrong * d_right - right * d_wrong) / (right + wrong) ** 2)
    if missed + spared > 0:
        out["npv"] = Score(spared / (missed + spared), (spared * d_right - missed * d_wrong) / (missed + spared) ** 2)
    return out


def net_benefits(probability: Array, positive: BoolArray, grid: Sequence[float], share: float) -> list[Score]:
    """For each threshold t  share of true positives - t / (1 - t) share of false ones  where rows of at least t are
    called positive (Vickers and Elkin, 2006); probabilities and shares are those at a mix of classes."""
    out = []
    for threshold in grid:
        called = probability >= threshold
        (hits, hit), (alarms, alarm) = _share_of(called, positive), _share_of(called, ~positive)
        price = (1.0 - share) * threshold / (1.0 - threshold)
        out.append(Score(share * hits - price * alarms, share * hit - price * alarm))
    return out


def benefit_of_all(grid: Array, share: float) -> Array:
    """The net benefit of calling every row positive."""
    return np.asarray(share - (1.0 - share) * grid / (1.0 - grid))


def _share_of(called: BoolArray, side: BoolArray) -> tuple[float, Array]:
    """The share of a side's rows that are called so, and what each row adds to it (m,)."""
    value = float(called[side].mean())
    return value, side * (called - value) / side.sum()


def move_mix(probability: Array, before: float, after: float) -> Array:
    """Probabilities at another share of the class of interest: the odds are moved by those of the shares."""
    if before == after:
        return probability
    return np.asarray(special.expit(log_odds(probability) + special.logit(after) - special.logit(before)))


def smooth_calibration(probability: Array, positive: BoolArray) -> dict[str, list[float]]:
    """The observed share by probability, by local lines: at each point a line through the nearest rows, weighed by
    tricube of their distance in probability (Cleveland's loess without its robust steps)."""
    order = np.argsort(probability, kind="stable")
    p, y = probability[order], positive[order].astype(np.float64)
    at = np.unique(np.linspace(np.quantile(p, 0.01), np.quantile(p, 0.99), CURVE_POINTS))
    m, count = len(p), max(int(SPAN * len(p)), min(len(p), 3))
    share = np.empty(len(at))
    for k, x in enumerate(at):
        away = np.abs(p - x)
        reach = max(float(np.partition(away, min(count, m) - 1)[min(count, m) - 1]), 1e-9)
        weight = np.clip(1.0 - (away / (1.0001 * reach)) ** 3, 0.0, None) ** 3
        mean, level = np.average(p, weights=weight), np.average(y, weights=weight)
        spread = float(weight @ (p - mean) ** 2)
        slope = float(weight @ ((p - mean) * (y - level))) / spread if spread > 1e-12 * weight.sum() else 0.0
        share[k] = level + slope * (x - mean)
    return {"x": at.tolist(), "y": np.clip(share, 0.0, 1.0).tolist()}
