"""Proportional hazards: the partial likelihood with a ridge penalty, hazards, residuals, and the order of pairs.

Shapes: m rows, r coordinates. A row is at risk until its time; of rows with equal times all are (Breslow). Rows count
by their weights: a weight of 2 is a row twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ..contracts import Array, BoolArray, IntArray

LOWEST = -200.0  # of a linear predictor less the largest: hazards below are taken for that, which keeps sums above 0
STEPS = 50  # of Newton's method
NEGLIGIBLE = 1e-15  # of the objective: what rounding may take from it
HALVINGS = 40  # of a step that does not raise the objective
SLOPE = 1e-10  # of the gradient, beside its largest part at the start, at which Newton's method ends


class Risk(NamedTuple):
    """The partial log-likelihood, exp(eta) of each row, what is at risk at its time, and the hazard up to its time."""

    likelihood: float
    size: Array
    at_risk: Array
    hazard: Array


@dataclass(frozen=True)
class RiskSets:
    """Who is at risk when: times (m,), whether each is an event, and weights, in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers.cox import RiskSets
    >>> sets = RiskSets(np.array([2.0, 1.0, 3.0]), np.array([True, True, False]), np.ones(3))
    >>> sets.martingale(np.zeros(3)).round(3)
    array([ 0.167,  0.667, -0.833])
    """

    time: Array
    event: BoolArray
    weight: Array

    @cached_property
    def order(self) -> IntArray:
        """(m,) the rows from the longest time to the shortest."""
        return np.argsort(-self.time, kind="stable")

    @cached_property
    def _ends(self) -> tuple[IntArray, IntArray]:
        """(m,), (m,): the first and the last place with the time of each place in that order."""
        t = -self.time[self.order]
        return np.searchsorted(t, t, side="left"), np.searchsorted(t, t, side="right") - 1

    @cached_property
    def events(self) -> float:
        """The weight of all events."""
        return float(self.weight[self.event].sum())

    def risk(self, eta: Array) -> Risk:
        """What linear predictors eta (m,) say, in the order of the rows."""
        o, (first, last) = self.order, self._ends
        top = float(eta.max(initial=-np.inf))
        size = np.exp(np.maximum(eta[o] - top, LOWEST)) * self.weight[o]
        at_risk = np.cumsum(size)[last]
        struck = np.where(self.event[o], self.weight[o], 0.0)
        known = struck > 0
        likelihood = float(struck[known] @ (eta[o][known] - top - np.log(at_risk[known])))
        step = np.divide(struck, at_risk, out=np.zeros(len(o)), where=at_risk > 0)
        hazard = np.cumsum(step[::-1])[::-1][first]  # of events at or before the time
        out = np.empty((3, len(o)))
        out[:, o] = np.exp(np.maximum(eta[o] - top, LOWEST)), at_risk, hazard
        return Risk(likelihood, out[0], out[1], out[2])

    def martingale(self, eta: Array) -> Array:
        """(m,): events less the cumulative hazard of each row, for a unit of weight."""
        known = self.risk(eta)
        return np.asarray(self.event - known.size * known.hazard)

    def information(self, rows: Array, known: Risk) -> Array:
        """(r, r): minus the second derivative of the partial log-likelihood in the weights of coordinates (m, r)."""
        o, (_, last) = self.order, self._ends
        X, size, weight = rows[o], known.size[o], self.weight[o]
        struck = np.flatnonzero(self.event[o] & (weight > 0))
        sums = np.cumsum((size * weight)[:, None] * X, axis=0)[last[struck]]
        mean = sums / known.at_risk[o][struck, None] * np.sqrt(weight[struck])[:, None]
        return np.asarray((X.T * (size * weight * known.hazard[o])) @ X - mean.T @ mean)

    def score_statistics(self, columns: Array) -> Array:
        """(p,): z of the score test that a column (a row of columns (p, m)) does not matter, beside nothing else."""
        o, (_, last) = self.order, self._ends
        w, struck = self.weight[o], self.event[o]
        total, share = np.cumsum(w)[last][struck], w[struck]
        # the variance is a difference of squares: keep the means small
        x = columns[:, o] - (columns @ (self.weight / self.weight.sum()))[:, None]
        mean = np.cumsum(x * w, axis=1)[:, last][:, struck] / total
        square = np.cumsum(x * x * w, axis=1)[:, last][:, struck] / total
        variance = np.maximum(square - mean**2, 0.0) @ share
        whole = x * x @ w / w.sum() * max(self.events, 1e-300)
        score = (x[:, struck] - mean) @ share
        return np.asarray(np.where(variance > 1e-12 * whole, score / np.sqrt(np.maximum(variance, 1e-300)), 0.0))


class CoxOptimum(NamedTuple):
    """Weights of the coordinates (r,), the linear predictor (m,), the objective, and the slope that is left."""

    weights: Array
    eta: Array
    objective: float
    slope: float


def fit_cox(rows: Array, sets: RiskSets, penalty: float, start: Array | None = None) -> CoxOptimum:
    """max over w of  partial log-likelihood(rows w) / events - penalty / 2 |w|^2,  rows (m, r), by Newton's method.

    `slope` is the largest part of the gradient at the end.
    """
    w = np.zeros(rows.shape[1]) if start is None else start.copy()
    events = max(sets.events, 1e-300)
    known = sets.risk(rows @ w)
    objective, largest = known.likelihood / events - 0.5 * penalty * float(w @ w), 0.0
    for _ in range(STEPS):
        residual = sets.weight * (sets.event - known.size * known.hazard)
        gradient = rows.T @ residual / events - penalty * w
        slope = float(np.abs(gradient).max(initial=0.0))
        largest = max(largest, slope)
        if slope <= SLOPE * max(largest, 1e-300):
            break
        system = sets.information(rows, known) / events
        system.flat[:: len(w) + 1] += penalty
        try:
            direction = linalg.cho_solve(linalg.cho_factor(system, check_finite=False), gradient, check_finite=False)
        except linalg.LinAlgError:  # so little penalty that rounding leaves no curvature: uphill all the same
            direction = gradient / float(np.diag(system).max())
        moved = _climb(rows, sets, penalty, w, direction, objective)
        if moved is None:
            break
        w, known, objective = moved
    residual = sets.weight * (sets.event - known.size * known.hazard)
    slope = float(np.abs(rows.T @ residual / events - penalty * w).max(initial=0.0))
    return CoxOptimum(w, rows @ w, objective, slope)


def _climb(
    rows: Array, sets: RiskSets, penalty: float, w: Array, direction: Array, objective: float
) -> tuple[Array, Risk, float] | None:
    """The point along a direction, at full length or half of it and so on, that is not below; None: there is none."""
    length, events = 1.0, max(sets.events, 1e-300)
    for _ in range(HALVINGS):
        there = w + length * direction
        known = sets.risk(rows @ there)
        value = known.likelihood / events - 0.5 * penalty * float(there @ there)
        if np.isfinite(value) and value > objective - NEGLIGIBLE * abs(objective):
            return there, known, value
        length *= 0.5
    return None


@dataclass(frozen=True)
class BaselineHazard:
    """A step function: times (k,), sorted, and the cumulative hazard from each of them on.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers.cox import BaselineHazard, RiskSets
    >>> sets = RiskSets(np.array([2.0, 1.0, 3.0]), np.array([True, True, False]), np.ones(3))
    >>> BaselineHazard.from_risk(sets, np.zeros(3)).value_at(np.array([0.5, 1.0, 9.0])).round(3)
    array([0.   , 0.333, 0.833])
    """

    time: Array
    hazard: Array

    @classmethod
    def from_risk(cls, sets: RiskSets, eta: Array) -> BaselineHazard:
        """Breslow's estimate at linear predictors eta (m,)."""
        top = float(eta.max(initial=-np.inf))
        known = sets.risk(eta)
        times, place = np.unique(sets.time[sets.event], return_inverse=True)
        steps = np.bincount(place, (sets.weight / np.maximum(known.at_risk, 1e-300))[sets.event], minlength=len(times))
        return cls(times, np.cumsum(steps) * np.exp(-top))

    def value_at(self, time: Array) -> Array:
        """The cumulative hazard at each time."""
        place = np.searchsorted(self.time, time, side="right")
        return np.asarray(np.concatenate([[0.0], self.hazard])[place])
