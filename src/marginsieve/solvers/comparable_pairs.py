"""The squared hinge over pairs of rows of which one is known to have lived longer, without a list of the pairs.

Shapes: m rows, r coordinates. Row i, whose event was seen, and row j, which is known to have lived longer (of equal
times a row without an event has), are a pair of weight w_i w_j; it costs nothing where eta_i is larger than eta_j by 1.
What a row adds depends on sums over the rows on the other side that are near enough, which is asked of a tree of
partial sums (Fenwick) as rows are gone through in the order of their times: m log m additions, never m^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ..contracts import Array, BoolArray, IntArray
from .execution import jit

STEPS = 100  # of Newton's method; the objective is piecewise quadratic, so that it ends in the right piece
HALVINGS = 40  # of a step that does not lower the objective
SLOPE = 1e-10  # of the gradient, beside its largest part, at which Newton's method ends


@jit
def _sums_up_to(rows: IntArray, adds: BoolArray, place: IntArray, limit: IntArray, values: Array) -> Array:
    """(m, q): rows are gone through in order; one that adds leaves its values (m, q) at its place, from 1, one that
    does not gets the sum over the places up to its limit."""
    m, q = values.shape
    tree = np.zeros((m + 2, q))
    out = np.zeros((m, q))
    for k in range(len(rows)):
        row = rows[k]
        if adds[k]:
            at = place[row]
            while at < m + 2:
                for c in range(q):
                    tree[at, c] += values[row, c]
                at += at & -at
        else:
            at = limit[row]
            while at > 0:
                for c in range(q):
                    out[row, c] += tree[at, c]
                at -= at & -at
    return out


class Active(NamedTuple):
    """Which pairs cost something, as places on both sides: of row j among all eta, and from which on row i costs."""

    rank: IntArray
    least: IntArray


@dataclass(frozen=True)
class ComparablePairs:
    """Pairs of rows by times (m,), whether each is an event, and weights.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers.comparable_pairs import ComparablePairs
    >>> pairs = ComparablePairs(np.array([2.0, 1.0, 3.0]), np.array([True, True, False]), np.ones(3))
    >>> pairs.total, pairs.loss(np.array([0.0, 0.5, 0.0]))
    (3.0, 0.75)
    """

    time: Array
    event: BoolArray
    weight: Array

    @cached_property
    def _order(self) -> tuple[IntArray, BoolArray]:
        """Rows from the longest time to the shortest and whether each adds itself: of equal times rows without an
        event come first, then those with one ask, and then they add themselves."""
        every, struck = np.arange(len(self.time)), np.flatnonzero(self.event)
        row = np.concatenate([every, struck])
        adds = np.concatenate([np.ones(len(every), dtype=bool), np.zeros(len(struck), dtype=bool)])
        turn = np.concatenate([np.where(self.event, 2, 0), np.ones(len(struck), dtype=np.intp)])
        order = np.lexsort((turn, -self.time[row]))
        return row[order], adds[order]

    @cached_property
    def _way_back(self) -> tuple[IntArray, BoolArray]:
        """The same from the shortest time: rows with an event add themselves, and every row asks."""
        rows, adds = self._order
        return rows[::-1].copy(), ~adds[::-1]

    @cached_property
    def total(self) -> float:
        """The weight of all pairs."""
        whole = np.zeros(len(self.time))
        return float(
            np.where(self.event, self.weight, 0.0) @ self._sum_longer(self._active(whole), self.weight[:, None])[:, 0]
        )

    def _active(self, eta: Array) -> Active:
        """The pairs with eta_j > eta_i - 1."""
        order = np.argsort(eta, kind="stable")
        rank = np.empty(len(eta), dtype=np.intp)
        rank[order] = np.arange(len(eta))
        return Active(rank, np.searchsorted(eta[order], eta - 1.0, side="right").astype(np.intp))

    def _sum_longer(self, active: Active, values: Array) -> Array:
        """(m, q): for each row with an event the sum of values (m, q) over its active rows that lived longer."""
        m = len(self.time)
        return _sums_up_to(*self._order, m - active.rank, m - active.least, np.ascontiguousarray(values))

    def _sum_struck(self, active: Active, values: Array) -> Array:
        """(m, q): for each row the sum of values (m, q) over the rows with an event of its active pairs."""
        return _sums_up_to(*self._way_back, active.least + 1, active.rank + 1, np.ascontiguousarray(values))

    def _parts(self, eta: Array) -> tuple[Active, Array, Array]:
        """The active pairs, and sums of 1, eta and eta^2 on the other side: (m, 3) for events, (m, 2) for all rows."""
        active, w = self._active(eta), self.weight
        longer = self._sum_longer(active, np.column_stack([w, w * eta, w * eta**2]))
        return active, longer, self._sum_struck(active, np.column_stack([w, w * eta]))

    def loss(self, eta: Array) -> float:
        """Half the mean over pairs of max(0, 1 - eta_i + eta_j)^2."""
        away = eta - eta.mean() if len(eta) else eta
        longer = self._parts(away)[1]
        gap = 1.0 - away
        costs = longer[:, 0] * gap**2 + 2.0 * gap * longer[:, 1] + longer[:, 2]
        return 0.5 * float(self.weight @ np.where(self.event, costs, 0.0)) / max(self.total, 1e-300)

    def slope(self, eta: Array) -> Array:
        """(m,): the derivative of the loss in eta; it sums to 0."""
        _, longer, struck = self._parts(eta)
        own = np.where(self.event, longer[:, 0] * (1.0 - eta) + longer[:, 1], 0.0)
        return np.asarray(self.weight * (struck[:, 0] * (1.0 + eta) - struck[:, 1] - own) / max(self.total, 1e-300))

    def curvature(self, eta: Array, rows: Array) -> Array:
        """(r, r): the second derivative in the weights of coordinates (m, r), eta = rows @ weights."""
        active, longer, struck = self._parts(eta)
        w = self.weight[:, None]
        own = self.weight * (np.where(self.event, longer[:, 0], 0.0) + struck[:, 0])
        products = own[:, None] * rows - w * self._sum_struck(active, w * rows)
        products -= w * np.where(self.event[:, None], self._sum_longer(active, w * rows), 0.0)
        return np.asarray(rows.T @ products / max(self.total, 1e-300))


class PairOptimum(NamedTuple):
    """Weights of the coordinates (r,), their values (m,), the objective, and the slope that is left, of the first."""

    weights: Array
    eta: Array
    objective: float
    residual: float


def fit_pairs(rows: Array, pairs: ComparablePairs, penalty: float) -> PairOptimum:
    """min over w of  pairs.loss(rows w) + penalty / 2 |w|^2,  rows (m, r), by Newton's method."""
    w = np.zeros(rows.shape[1])
    eta = rows @ w
    objective, largest = pairs.loss(eta), 0.0
    for step in range(STEPS + 1):
        gradient = rows.T @ pairs.slope(eta) + penalty * w
        slope = float(np.abs(gradient).max(initial=0.0))
        largest = max(largest, slope)
        if slope <= SLOPE * max(largest, 1e-300) or step == STEPS:
            break
        system = pairs.curvature(eta, rows)
        system.flat[:: len(w) + 1] += penalty
        direction = linalg.solve(system, -gradient, assume_a="pos", check_finite=False)
        length, decrease = 1.0, float(gradient @ direction)
        for _ in range(HALVINGS):
            there = w + length * direction
            value = pairs.loss(rows @ there) + 0.5 * penalty * float(there @ there)
            if value <= objective + 1e-4 * length * decrease:
                break
            length *= 0.5
        else:  # rounding decides: there is no lower point along it
            break
        w, eta, objective = there, rows @ there, value
    return PairOptimum(w, eta, objective, slope / max(largest, 1e-300))
