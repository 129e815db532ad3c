"""Exchanges of features for one instance of the ramp loss with a budget: good points fast, no proof.

An exchange drops a feature, descends (`ramp_vertices`), and adds that one of those with the largest pull
|sum_i alpha_i y_i x_ij| with which a further descent ends lowest; a double exchange drops two and adds two. Random
changes, builds from nothing and crossings of two points are where exchanges begin anew. Counts of cells bound the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..contracts import Array, IntArray
from .ramp_descent import FALL, Ramp, RampPoint, best_of, by_feature
from .ramp_vertices import descend_vertices, join_each, spread_margins

OFFERS = 40  # features that are tried in the place of one that goes
FIRST_OF_TWO = 3  # and those of them after which a second is tried
LIKELY = 20  # features that a random choice is made from
SLICE = 2e5  # cells of the programs that are solved without a look at the clock
EVERY_SET = 2e7  # cells of the programs up to which all sets of one or two features are tried
KEPT = 5  # of them, the best, that exchanges begin at
ZERO = 1e-9  # a weight below this is none


@dataclass(frozen=True)
class SignedColumns:
    """What all prices and budgets of a table share: y_i x_ij by columns (d, m), and the columns of each feature."""

    X: Array
    first: IntArray
    columns: IntArray
    margin: Array

    @classmethod
    def from_ramp(cls, ramp: Ramp) -> SignedColumns:
        columns = np.argsort(ramp.owner, kind="stable")
        first = np.searchsorted(ramp.owner[columns], np.arange(len(ramp.cost) + 1))
        X = np.ascontiguousarray((ramp.data.y[:, None] * ramp.data.X).T)
        return cls(X, first, columns, spread_margins(len(ramp.data.y)))


class VertexSearch:
    """Moves from point to point of one instance; `work` counts cells of programs, `limit` ends the search."""

    def __init__(self, ramp: Ramp, table: SignedColumns | None = None, offers: int = OFFERS) -> None:
        self.ramp, self.table, self.offers = ramp, table or SignedColumns.from_ramp(ramp), offers
        self.work, self.limit = 0.0, np.inf
        self._stable = set[tuple[int, bytes, str]]()  # points that no exchange of so many features lowers

    def is_over(self) -> bool:
        """Whether the clock or the limit of work ends the search."""
        return self.ramp.clock.is_up() or self.work >= self.limit

    def descend(
        self, features: Sequence[int] | IntArray, start: RampPoint | None = None, far: bool = True
    ) -> RampPoint:
        """A descent on some features from a point, or from where one with the hinge ends; `far` as in the vertices."""
        ramp, data = self.ramp, self.ramp.data
        columns = ramp.columns(features)
        G = np.vstack([self.table.X[columns], data.y])
        u, alpha = np.zeros(len(columns) + 1), np.empty(len(data.y))
        if start is not None:
            here = np.isin(start.columns, columns)
            u[np.searchsorted(columns, start.columns[here])] = start.w[here]
            u[-1] = start.b
        elif ramp.ramp:
            descend_vertices(G, data.top, np.inf, self.table.margin, u, alpha, False)
        descend_vertices(G, data.top, ramp.top, self.table.margin, u, alpha, far and ramp.ramp)
        self.work += G.size
        live = np.abs(u[:-1]) > ZERO
        return ramp.point_at(columns[live], u[:-1][live], float(u[-1]), alpha)

    def improve(self, here: RampPoint) -> RampPoint:
        """Exchanges of single features until none lowers F."""
        while not self.is_over() and (there := self._exchange(here)) is not None:
            here = there
        return here

    def deepen(self, here: RampPoint) -> RampPoint:
        """Exchanges of one feature and of two until none lowers F."""
        here = self.improve(here)
        while not self.is_over() and (there := self._exchange_two(here)) is not None:
            here = self.improve(there)
        return here

    def cells_of_pairs(self, here: RampPoint) -> float:
        """How many cells the programs of one round of exchanges of two features have."""
        count = len(here.features)
        return float(
            0.5 * count**2 * (1 + FIRST_OF_TWO) * self.offers * self.table.X.shape[1] * (len(here.columns) + 1)
        )

    def _is_known(self, count: int, here: RampPoint) -> bool:
        """Whether exchanges of so many features were begun at a point: they find nothing else the second time."""
        key = count, here.features.tobytes(), f"{here.F:.9e}"
        known = key in self._stable
        self._stable.add(key)
        return known

    def _exchange(self, here: RampPoint) -> RampPoint | None:
        """The first lower point by adding a feature, where the budget has room, or by one in the place of another."""
        if self._is_known(1, here):
            return None
        ramp, target = self.ramp, here.F - FALL * max(1.0, here.F)
        if (there := self._join(here, target, self._room(here.features))) is not None:
            return there
        weight = by_feature(ramp, here.columns, np.abs(here.w))
        for k in here.features[np.argsort(weight[here.features], kind="stable")]:
            if self.is_over():
                return None
            rest = here.features[here.features != k]
            there = self._join(self.descend(rest, here, False), target, self._room(rest), [int(k)])
            if there is not None:
                return there
        return None

    def _exchange_two(self, here: RampPoint) -> RampPoint | None:
        """The first lower point by two features in the place of two others."""
        if len(here.features) < 2 or self._is_known(2, here):
            return None
        target = here.F - FALL * max(1.0, here.F)
        for gone in combinations(here.features.tolist(), 2):
            rest = np.setdiff1d(here.features, gone)
            less, left = self.descend(rest, here, False), self._room(rest)
            offers, values = self._offers(less, left, gone)
            for j in offers[np.argsort(values, kind="stable")[:FIRST_OF_TWO]]:
                if self.is_over():
                    return None
                more = self.descend(np.append(less.features, j), less, False)
                if (there := self._join(more, target, left - self.ramp.cost[j])) is not None:
                    return there
        return None

    def _room(self, features: IntArray) -> float:
        return float(self.ramp.budget - self.ramp.cost[features].sum())

    def _offers(self, here: RampPoint, left: float, gone: Sequence[int] = ()) -> tuple[IntArray, Array]:
        """The features that pull hardest and fit into what is left of the budget, and F with each of them."""
        ramp, table, data = self.ramp, self.table, self.ramp.data
        pull = self.pulls(here)
        pull[ramp.cost > left + 1e-12 * ramp.budget] = 0.0
        pull[list(gone)] = 0.0
        offers = np.argsort(-pull, kind="stable")[: self.offers]
        offers = offers[pull[offers] > 1.0]
        values, u = np.empty(len(offers)), np.append(here.w, here.b)
        size = table.X.shape[1] * (len(u) + 1)
        several = max(int(SLICE / size), 1)
        for k in range(0, len(offers), several):
            part = slice(k, k + several)
            join_each(
                table.X, here.columns, data.y, data.top, ramp.top, table.margin, u, offers[part], table.first,
                table.columns, values[part],
            )  # fmt: skip
        self.work += len(offers) * size
        return offers, values

    def _join(self, here: RampPoint, target: float, left: float, gone: Sequence[int] = ()) -> RampPoint | None:
        """A point below the target with one more feature."""
        offers, values = self._offers(here, left, gone)
        if not len(offers) or values.min() >= target:
            return None
        there = self.descend(np.append(here.features, offers[np.argmin(values)]), here)
        return there if target > there.F else None

    def pulls(self, point: RampPoint) -> Array:
        """(n,) how hard the features without a weight press for one."""
        pull = np.abs(self.table.X @ point.alpha)
        if not self.ramp.column_is_feature:
            pull = by_feature(self.ramp, np.arange(len(self.ramp.owner)), pull)
        pull[point.features] = 0.0
        return np.asarray(pull)

    def shake(self, here: RampPoint, rng: np.random.Generator) -> RampPoint:
        """Up to half of the features go at random, others come."""
        count = len(here.features)
        stay = here.features
        if count:
            stay = np.setdiff1d(stay, rng.choice(stay, size=rng.integers(1, max(2, count // 2 + 1)), replace=False))
        pull, likely = self.pulls(here), max(LIKELY, 3 * count)
        while (new := self._draw(pull, stay, likely, rng)) is not None:
            stay = np.append(stay, new)
        return self.descend(stay, here)

    def build(self, rng: np.random.Generator) -> RampPoint:
        """Features one by one from none, at random by their pull."""
        here = self.ramp.flat_point()
        while not self.is_over():
            pull = self.pulls(here)
            new = self._draw(np.where(pull > 1.0, pull, 0.0), here.features, LIKELY, rng)
            there = here if new is None else self.descend(np.append(here.features, new), here)
            if here.F <= there.F:
                break
            here = there
        return here

    def _draw(self, pull: Array, features: IntArray, count: int, rng: np.random.Generator) -> int | None:
        """One of the features that pull hardest and fit beside the others, at random; None: there is none."""
        pull = np.where(self.ramp.cost <= self._room(features) + 1e-12 * self.ramp.budget, pull, 0.0)
        pull[features] = 0.0
        likely = np.argsort(-pull, kind="stable")[:count]
        likely = likely[pull[likely] > 0]
        return int(rng.choice(likely, p=pull[likely] / pull[likely].sum())) if len(likely) else None

    def eliminate(self, here: RampPoint) -> RampPoint:
        """A third of the surplus over the budget, features with the smallest weights, goes at a time."""
        ramp, features = self.ramp, here.features
        while not ramp.fits(features):
            weight = by_feature(ramp, here.columns, np.abs(here.w))
            order, surplus = features[np.argsort(-weight[features], kind="stable")], 1
            while not ramp.fits(order[: len(order) - surplus]):
                surplus += 1
            here = self.descend(order[: len(order) - (surplus + 2) // 3], here, False)
            features = here.features
        return here

    def cross(self, here: RampPoint, other: RampPoint) -> RampPoint:
        """The features of two points, as many as the budget has room for."""
        return self.eliminate(self.descend(np.union1d(here.features, other.features), here, False))

    def try_every_set(self) -> Iterator[RampPoint]:
        """The best of all sets of features, where the budget has room for two at most and they are few enough."""
        ramp, table, data = self.ramp, self.table, self.ramp.data
        cheapest, n = np.sort(ramp.cost), len(ramp.cost)
        m, width = table.X.shape[1], 2 * table.X.shape[0] / n + 1
        pairs, more = (n >= k and cheapest[:k].sum() <= ramp.budget * (1 + 1e-12) for k in (2, 3))
        if more or m * width * n * (n if pairs else 1) > EVERY_SET:
            return
        tried = list[tuple[float, tuple[int, ...]]]()
        every = np.flatnonzero(ramp.cost <= ramp.budget * (1 + 1e-12))
        for j in every:
            alone = self.descend(every[every == j])
            tried.append((alone.F, (int(j),)))
            others = every[(every > j) & (ramp.cost[every] <= self._room(np.array([j])) + 1e-12 * ramp.budget)]
            if not pairs or not len(others) or self.is_over():
                continue
            base, values = ramp.columns(every[every == j]), np.empty(len(others))
            u = np.append(np.zeros(len(base)), alone.b)
            u[np.searchsorted(base, alone.columns)] = alone.w
            join_each(
                table.X, base, data.y, data.top, ramp.top, table.margin, u, others, table.first, table.columns, values
            )
            tried += [(float(value), (int(j), int(k))) for value, k in zip(values, others, strict=True)]
        for _, features in sorted(tried)[:KEPT]:
            # With the ramp descents from different starts end in different places.
            yield best_of([self.descend(features), self.descend(features, ramp.flat_point())])
