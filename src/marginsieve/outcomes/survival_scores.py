"""Scores of predicted risks against times to an event, linearised, and Kaplan-Meier curves by thirds of the risk.

What has to weigh rows by the chance that they were not censored estimates that chance on the rows of the other folds,
which is what the model was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special, stats

from ..contracts import Array, BoolArray, IntArray, Score
from .scores import log_odds

AT_ONCE = 256  # rows with an event that are compared with all others together
TIED = 1e-8  # risks that differ by no more are equal
BINS = 5  # of predicted probabilities, at most
WEAK = 0.01  # of the prior of a calibration, in rows
POINTS = 6  # times at which a picture has the numbers at risk
THIRDS = ("lowest third of the risk", "middle third", "highest third")


class Pairs(NamedTuple):
    """C, the weight of all pairs, and for each row what its pairs are worth and weigh; a pair is in two rows."""

    value: float
    total: float
    won: Array
    weight: Array


def concordance(time: Array, event: BoolArray, risk: Array, weight: Array, counts: Array | None = None) -> Pairs:
    """The share of pairs in which who lived less long had the higher risk; equal risks count half.

    A pair is a row with an event and one that is known to have lived longer: of equal times one without an event has.
    `weight` (m,) multiplies the two rows of a pair, `counts` (m,) the row with the event alone. C is nan without pairs.
    """
    won, mass = np.zeros(len(time)), np.zeros(len(time))
    counts = np.ones(len(time)) if counts is None else counts
    for rows, longer in _comparable(time, event & (counts > 0)):
        gap = risk[rows, None] - risk[None, :]
        pair = longer * (counts[rows] * weight[rows])[:, None] * weight
        better = pair * np.where(np.abs(gap) <= TIED, 0.5, gap > 0)
        won[rows] += better.sum(axis=1)
        mass[rows] += pair.sum(axis=1)
        won += better.sum(axis=0)
        mass += pair.sum(axis=0)
    total = 0.5 * float(mass.sum())
    return Pairs(0.5 * float(won.sum()) / total if total > 0 else float("nan"), total, won, mass)


def _comparable(time: Array, event: BoolArray) -> Iterator[tuple[IntArray, BoolArray]]:
    """Rows with an event, a few at a time, and (rows, m) who is known to have lived longer."""
    struck = np.flatnonzero(event)
    for start in range(0, len(struck), AT_ONCE):
        rows = struck[start : start + AT_ONCE]
        same = (time[None, :] == time[rows, None]) & ~event[None, :]
        yield rows, (time[None, :] > time[rows, None]) | same


def pooled_concordance(time: Array, event: BoolArray, risk: Array, fold: IntArray, strata: IntArray) -> Score:
    """Harrell's C over pairs within a fold, and what each row adds to it."""
    won, mass = np.zeros(len(time)), np.zeros(len(time))
    for rows, _ in _folds(fold):
        part = concordance(time[rows], event[rows], risk[rows], np.ones(len(rows)))
        won[rows], mass[rows] = part.won, part.weight
    return _share_of_pairs(won, mass, strata)


def unos_concordance(time: Array, event: BoolArray, risk: Array, fold: IntArray, strata: IntArray) -> Score:
    """Uno's C: a pair counts by 1 / G(t)^2 of its event, which must be before the last one of the other folds."""
    won, mass = np.zeros(len(time)), np.zeros(len(time))
    for rows, rest in _folds(fold):
        chance = censoring_survival(time[rest], event[rest], time[rows])
        last = time[rest][event[rest]].max(initial=-np.inf)
        counts = _inverse(chance, event[rows] & (time[rows] < last)) ** 2
        part = concordance(time[rows], event[rows], risk[rows], np.ones(len(rows)), counts)
        won[rows], mass[rows] = part.won, part.weight
    return _share_of_pairs(won, mass, strata)


def horizon_auc(
    time: Array, event: BoolArray, risk: Array, fold: IntArray, horizon: float, strata: IntArray
) -> Score | None:
    """The chance that who has the event by a time has a higher risk than who lives longer; None without such pairs.

    Rows with the event count by 1 / G(t), so that those who were censored before are made up for.
    """
    won, mass = np.zeros(len(time)), np.zeros(len(time))
    for rows, rest in _folds(fold):
        chance = censoring_survival(time[rest], event[rest], time[rows])
        early = event[rows] & (time[rows] <= horizon) & (chance > 0.0)
        late = time[rows] > horizon
        gap = risk[rows][early][:, None] - risk[rows][late][None, :]
        pair = np.broadcast_to(_inverse(chance, early)[early][:, None], gap.shape)
        better = pair * np.where(np.abs(gap) <= TIED, 0.5, gap > 0)
        for side, axis in ((early, 1), (late, 0)):
            won[rows[side]] += better.sum(axis=axis)
            mass[rows[side]] += pair.sum(axis=axis)
    return _share_of_pairs(won, mass, strata) if mass.any() else None


def brier_at(
    time: Array, event: BoolArray, probability: Array, fold: IntArray, horizon: float, strata: IntArray
) -> Score:
    """The squared error of the probability of an event by a time, rows weighed by the chance of not being censored."""
    error = np.zeros(len(time))
    for rows, rest in _folds(fold):
        t, p = time[rows], probability[rows]
        early, late = event[rows] & (t <= horizon), t > horizon
        chance = censoring_survival(time[rest], event[rest], np.where(late, horizon, t))
        error[rows] = _inverse(chance, early | late) * np.where(early, (1.0 - p) ** 2, p**2)
    return Score(float(error.mean()), without_stratum_means((error - error.mean()) / len(error), strata))


def calibration_at(
    time: Array, event: BoolArray, probability: Array, fold: IntArray, horizon: float, strata: IntArray
) -> dict[str, Score]:
    """Slope and intercept of who has the event by a time in the log odds of its probability.

    Logistic regressions in which rows weigh 1 over the chance of not being censored, as in the Brier score; the
    intercept is that where the slope is 1. There is no slope of one probability, and nothing where all rows that count
    are on one side.
    """
    weight, early = np.zeros(len(time)), event & (time <= horizon)
    for rows, rest in _folds(fold):
        late = time[rows] > horizon
        chance = censoring_survival(time[rest], event[rest], np.where(late, horizon, time[rows]))
        weight[rows] = _inverse(chance, early[rows] | late)
    if not 0.0 < weight[early].sum() < weight.sum():
        return {}
    z = log_odds(probability)
    designs = {"calibration_intercept_at": (np.ones((len(z), 1)), z)}
    if np.ptp(z) > TIED:
        designs["calibration_slope_at"] = np.column_stack([np.ones(len(z)), z - z.mean()]), np.zeros(len(z))
    out = {}
    for name, (x, offset) in designs.items():
        theta, inverse = _fit_odds(x, offset, early, weight)
        fitted = special.expit(offset + x @ theta)
        added = (x * (weight * (early - fitted))[:, None]) @ inverse
        out[name] = Score(float(theta[-1]), without_stratum_means(added[:, -1], strata))
    return out


def _fit_odds(x: Array, offset: Array, hit: BoolArray, weight: Array) -> tuple[Array, Array]:
    """Weights of coordinates x (m, r) in a logistic regression, and the inverse of its information.

    A prior as weak as a hundredth of a row keeps them finite where a coordinate tells the sides apart.
    """

    def loss(theta: Array) -> tuple[float, Array]:
        eta = offset + x @ theta
        value = weight @ (np.logaddexp(0.0, eta) - hit * eta) + 0.5 * WEAK * float(theta @ theta)
        return float(value), x.T @ (weight * (special.expit(eta) - hit)) + WEAK * theta

    theta = optimize.minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    p = special.expit(offset + x @ theta)
    information = (x.T * (weight * p * (1.0 - p))) @ x + WEAK * np.eye(x.shape[1])
    return np.asarray(theta), np.asarray(np.linalg.inv(information))


def draw_calibration(time: Array, event: BoolArray, probability: Array, horizon: float) -> list[dict[str, float]]:
    """Bins of equal size by the predicted probability (repeats, m) of an event by a time: its mean, the observed share
    by Kaplan and Meier with its interval (Greenwood, on the log-log scale), samples."""
    repeats = len(probability)
    value, t, e = probability.ravel(), np.tile(time, repeats), np.tile(event, repeats)
    bins = []
    for part in np.array_split(np.argsort(value, kind="stable"), min(BINS, max(int(event.sum()) // 8, 1))):
        alive, error = survival_at(t[part], e[part], horizon)
        inside = min(max(alive, 1e-9), 1.0 - 1e-9)
        # a row is in as many bins as there are repeats, which adds nothing to what is known of it
        reach = 1.96 * error * np.sqrt(repeats) / (inside * abs(np.log(inside)))
        low, high = sorted(1.0 - inside ** np.exp(np.array([-reach, reach])))
        known = {"low": float(min(low, 1.0 - alive)), "high": float(max(high, 1.0 - alive))}
        mean = float(value[part].mean())
        bins.append({"predicted": mean, "observed": 1.0 - alive, **known, "n": len(part) / repeats})
    return bins


def survival_at(time: Array, event: BoolArray, horizon: float) -> tuple[float, float]:
    """The share without the event by a time, by Kaplan and Meier, and its standard error by Greenwood."""
    times = np.unique(time[event & (time <= horizon)])
    at_risk = np.array([(time >= t).sum() for t in times], dtype=np.float64)
    struck = np.array([(event & (time == t)).sum() for t in times], dtype=np.float64)
    alive = float(np.prod(1.0 - struck / at_risk))
    left = at_risk > struck
    return alive, alive * float(np.sqrt((struck[left] / (at_risk * (at_risk - struck))[left]).sum()))


def _inverse(chance: Array, some: BoolArray) -> Array:
    """1 / chance of some rows, 0 for the others and where there is no chance."""
    return np.divide(1.0, chance, out=np.zeros(len(chance)), where=some & (chance > 0))


def _folds(fold: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The rows of each fold, and all others; all rows twice where there is one fold."""
    for k in np.unique(fold):
        rows = np.flatnonzero(fold == k)
        rest = np.flatnonzero(fold != k)
        yield rows, rest if len(rest) else rows


def _share_of_pairs(won: Array, mass: Array, strata: IntArray) -> Score:
    total = 0.5 * float(mass.sum())
    if total <= 0:
        return Score(float("nan"), np.zeros(len(won)))
    value = 0.5 * float(won.sum()) / total
    return Score(value, without_stratum_means((won - value * mass) / total, strata))


def without_stratum_means(influence: Array, strata: IntArray) -> Array:
    """The influences less their mean in each stratum."""
    out = influence.copy()
    for code in np.unique(strata):
        out[strata == code] -= out[strata == code].mean()
    return out


def kaplan_meier(time: Array, event: BoolArray) -> tuple[Array, Array]:
    """Times at which the survival curve steps down, and its value from each on."""
    times, place = np.unique(time, return_inverse=True)
    struck = np.bincount(place, event.astype(np.float64), minlength=len(times))
    at_risk = len(time) - np.concatenate([[0.0], np.cumsum(np.bincount(place, minlength=len(times)))[:-1]])
    steps = struck > 0
    return times[steps], np.cumprod(1.0 - struck[steps] / at_risk[steps])


def censoring_survival(time: Array, event: BoolArray, at: Array) -> Array:
    """(k,): the chance of not being censored up to each time, by Kaplan and Meier; of equal times events come first."""
    times, place = np.unique(time, return_inverse=True)
    struck = np.bincount(place, event.astype(np.float64), minlength=len(times))
    count = np.bincount(place, minlength=len(times)).astype(np.float64)
    at_risk = len(time) - np.concatenate([[0.0], np.cumsum(count)[:-1]]) - struck
    share = np.divide(count - struck, at_risk, out=np.zeros(len(times)), where=at_risk > 0)
    steps = np.concatenate([[1.0], np.cumprod(1.0 - share)])
    return np.asarray(steps[np.searchsorted(times, at, side="right")])


def draw_thirds(time: Array, event: BoolArray, risk: Array) -> dict[str, Any]:
    """Kaplan-Meier curves by thirds of the risk (repeats, m), by its mean place, with the numbers at risk."""
    place = np.mean([stats.rankdata(row) for row in risk], axis=0)
    third = np.searchsorted(np.quantile(place, [1 / 3, 2 / 3]), place, side="left")
    at = np.linspace(0.0, float(time.max()), POINTS)
    groups = []
    for k, name in enumerate(THIRDS):
        rows = third == k
        times, share = kaplan_meier(time[rows], event[rows])
        at_risk = [int((time[rows] >= t).sum()) for t in at]
        known = {"name": name, "count": int(rows.sum()), "events": int(event[rows].sum())}
        groups.append({**known, "time": times.tolist(), "survival": share.tolist(), "at_risk": at_risk})
    return {"groups": groups, "at": at.tolist(), "longest": float(time.max())}
