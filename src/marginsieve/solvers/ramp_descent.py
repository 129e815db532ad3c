"""The ramp loss with a budget of features: its instances, its points, and descents by linear programs.

    F(w, b) = |w|_1 + sum_i top_i min(2, max(0, 1 - y_i f(x_i))),     the features with a weight within the budget

The ramp is a hinge less a shifted hinge. A descent leaves out the samples with y f < -1 (their loss is 2 whatever
happens), solves the hinge program on the others, marks anew, until F stops falling: the concave-convex procedure, F
never rises. Exchanges of features are in `ramp_search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from .execution import Clock, TimeUp
from .programs import Fit, HingeData, HingeProgram, begin, even_duals, finish, solve_hinge

FALL = 1e-7  # of F: what counts as a fall
GRACE = 1.0  # seconds that the first descent has, however little time is left: the result is made of it


@dataclass(frozen=True)
class Ramp:
    """One instance: columns of the table belong to features, features have costs and the budget bounds their sum.

    Attributes
    ----------
    data : HingeData
        The rows.
    owner : array of int of shape (d,)
        The feature of each column.
    cost : array of shape (n,)
        Costs of the features.
    budget : float
        What the costs of the features with a weight may add up to.
    ramp : bool
        Whether the loss is the ramp; else it is the plain hinge, and no sample is ever left out.
    clock : Clock
        Limit of every program and every loop.
    floor : float
        No point is below.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData, Ramp
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> ramp = Ramp(HingeData(X, y, np.full(4, 10.0)), owner=np.arange(2), cost=np.ones(2), budget=1.0)
    >>> ramp.fits([0]), ramp.fits([0, 1])
    (True, False)
    """

    data: HingeData
    owner: IntArray
    cost: Array
    budget: float
    ramp: bool = True
    clock: Clock = field(default_factory=Clock, compare=False)
    floor: float = -np.inf

    @property
    def top(self) -> float:
        """The largest lack that a sample pays for."""
        return 2.0 if self.ramp else np.inf

    @cached_property
    def column_is_feature(self) -> bool:
        """Whether every column is a feature of its own."""
        return len(self.owner) == len(self.cost) and bool((self.owner == np.arange(len(self.owner))).all())

    def columns(self, features: Sequence[int] | IntArray) -> IntArray:
        if self.column_is_feature:
            return np.sort(np.asarray(features, dtype=np.intp))
        return np.flatnonzero(np.isin(self.owner, features))

    def program(self, columns: IntArray) -> HingeProgram:
        return HingeProgram(self.data, columns, np.ones(len(self.owner)), self.clock)

    def with_clock(self, clock: Clock) -> Ramp:
        """The same whose programs and loops keep another limit of time."""
        return replace(self, clock=clock)

    def fits(self, features: Sequence[int] | IntArray) -> bool:
        return float(self.cost[np.asarray(features, dtype=np.intp)].sum()) <= self.budget * (1 + 1e-12)

    def loss(self, outside: Array) -> float:
        """sum_i top_i min(2, h_i), or of the hinge."""
        h = np.maximum(0.0, outside)
        return float(self.data.top @ (np.minimum(2.0, h) if self.ramp else h))

    def point_at(self, columns: IntArray, w: Array, b: float, alpha: Array | None = None) -> RampPoint:
        """Weights as a point, the objective computed from them; `alpha` are dual variables where they are known."""
        outside = self.data.outside(w, b, columns)
        marked = outside > 2.0 if self.ramp else np.zeros(len(outside), dtype=bool)
        features = columns if self.column_is_feature else np.unique(self.owner[columns])
        F = float(np.abs(w).sum()) + self.loss(outside)
        return RampPoint(features, columns, w, b, marked, F, np.zeros(len(outside)) if alpha is None else alpha)

    def lower_bound(self, relaxed: float) -> float:
        """A bound below every point from the program on all features without a budget: its value, or less.

        A point at which no sample is beyond the ramp is a point of that program; any other pays for a whole sample.
        """
        counted = self.data.top[self.data.top > 0]
        return min(relaxed, 2.0 * float(counted.min(initial=np.inf))) if self.ramp else relaxed

    def is_optimal(self, F: float) -> bool:
        """Whether no point can be lower than F."""
        return self.floor >= F - FALL * max(1.0, F)

    def flat_point(self) -> RampPoint:
        """w = 0 and the better of b = 1 and b = -1."""
        data = self.data
        b = 1.0 if data.top[data.y > 0].sum() >= data.top[data.y < 0].sum() else -1.0
        outside = 1.0 - data.y * b
        none = np.empty(0, dtype=np.intp)
        marked = outside > 2.0 - 1e-12 if self.ramp else np.zeros(len(data.y), dtype=bool)
        alpha = np.abs(even_duals(data.y, data.top))
        return RampPoint(none, none, np.empty(0), b, marked, self.loss(outside), alpha)


@dataclass(frozen=True)
class RampPoint:
    """A point of an instance.

    Attributes
    ----------
    features : array of int
        Features with a weight.
    columns : array of int
        Columns with a weight.
    w : array of float
        Their weights.
    b : float
        The intercept.
    marked : array of bool of shape (m,)
        Samples beyond the ramp, which are left out.
    F : float
        The objective.
    alpha : array of shape (m,)
        Dual variables of the last linear program.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData, Ramp
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> ramp = Ramp(HingeData(X, y, np.full(4, 10.0)), owner=np.arange(2), cost=np.ones(2), budget=1.0)
    >>> point = ramp.flat_point()
    >>> point.b, point.F, point.features
    (1.0, 40.0, array([], dtype=int64))
    """

    features: IntArray
    columns: IntArray
    w: Array
    b: float
    marked: BoolArray
    F: float
    alpha: Array


def _point(ramp: Ramp, fit: Fit) -> RampPoint:
    """A program's answer as a point, the samples that lie beyond the ramp marked."""
    live = np.flatnonzero(fit.w)
    live = live[np.argsort(fit.columns[live])]
    return ramp.point_at(fit.columns[live], fit.w[live], fit.b, fit.alpha)


def descend(ramp: Ramp, program: HingeProgram, marked: BoolArray, whole: bool = False) -> RampPoint:
    """From some samples left out, on the program's columns.

    With `whole` on all columns of the table, which join the program on demand. Where the clock cuts it, the best point
    so far; `TimeUp` where there is none.
    """
    best: RampPoint | None = None
    while True:
        if ramp.ramp:
            program.leave_out(marked)
        try:
            point = _point(ramp, finish(program) if whole else program.solve())
        except TimeUp:
            if best is None:
                raise
            return best
        if best is not None and best.F - FALL * max(1.0, best.F) <= point.F:
            return best
        if not ramp.ramp or np.array_equal(point.marked, marked):
            return point
        best, marked = point, point.marked


def descend_on(ramp: Ramp, features: Sequence[int] | IntArray, marked: BoolArray | None = None) -> RampPoint:
    """A descent on some features; never above the flat point, which it is where the clock leaves no time for another.

    Parameters
    ----------
    ramp : Ramp
        The instance.
    features : sequence of int
        The features that may have a weight.
    marked : array of bool of shape (m,) or None, default=None
        Samples that are left out at the start; None: none is.

    Returns
    -------
    RampPoint
        Where the descent ended.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData, Ramp, descend_on
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> ramp = Ramp(HingeData(X, y, np.full(4, 10.0)), owner=np.arange(2), cost=np.ones(2), budget=1.0)
    >>> round(descend_on(ramp, [0]).F, 6)
    2.0
    """
    start = np.zeros(len(ramp.data.y), dtype=bool) if marked is None else marked
    if not len(columns := ramp.columns(features)):
        return ramp.flat_point()
    try:
        return best_of([descend(ramp, ramp.program(columns), start), ramp.flat_point()])
    except TimeUp:
        return ramp.flat_point()


def descend_everywhere(ramp: Ramp) -> RampPoint:
    """A descent on all features, from no sample left out; never above the flat point."""
    program = begin(ramp.data, np.ones(len(ramp.owner)))
    return best_of([descend(ramp, program, np.zeros(len(ramp.data.y), dtype=bool), whole=True), ramp.flat_point()])


def best_of(points: Sequence[RampPoint]) -> RampPoint:
    return min(points, key=lambda point: point.F)


def by_feature(ramp: Ramp, columns: IntArray, value: Array) -> Array:
    """(n,) the largest of a feature's columns' values."""
    out = np.zeros(len(ramp.cost))
    if ramp.column_is_feature:
        out[columns] = np.maximum(value, 0.0)
        return out
    np.maximum.at(out, ramp.owner[columns], value)
    return out


def pulls_at(ramp: Ramp, alpha: Array) -> Array:
    """(n,) how hard each feature pulls at these dual variables."""
    return by_feature(ramp, np.arange(len(ramp.owner)), np.abs((alpha * ramp.data.y) @ ramp.data.X))


def pulls(ramp: Ramp, here: RampPoint) -> Array:
    """(n,) how hard the features without a weight press for one: at most 1 where none would lower the last program."""
    pull = pulls_at(ramp, here.alpha)
    pull[here.features] = 0.0
    return pull


def affordable_features(ramp: Ramp, score: Array) -> list[int]:
    """The features with the best scores, as many as the budget has room for."""
    chosen, left = [], ramp.budget
    for j in np.argsort(-score, kind="stable"):
        if score[j] > 0 and ramp.cost[j] <= left * (1 + 1e-12):
            chosen.append(int(j))
            left -= float(ramp.cost[j])
    return chosen


def l1_weights(ramp: Ramp) -> Array:
    """(n,) sizes of the weights of the l1 machine on all features."""
    fit = solve_hinge(ramp.data, clock=ramp.clock)
    return by_feature(ramp, fit.columns, np.abs(fit.w))


def without_budget(ramp: Ramp) -> tuple[float, RampPoint | None, Array | None]:
    """A bound below every point, the l1 machine on all features where the budget has room for it, and `l1_weights`.

    No bound and no weights where the clock leaves no time for them.
    """
    try:
        fit = solve_hinge(ramp.data, clock=ramp.clock)
    except TimeUp:
        return -np.inf, None, None
    point = _point(ramp, fit)
    weight = by_feature(ramp, fit.columns, np.abs(fit.w))
    return ramp.lower_bound(fit.value), point if ramp.fits(point.features) else None, weight


def l1_start(ramp: Ramp, weight: Array | None = None) -> RampPoint:
    """The l1 machine's largest weights within the budget, the machine on them, again without samples beyond the ramp.

    Parameters
    ----------
    ramp : Ramp
        The instance.
    weight : array of shape (n,) or None, default=None
        Sizes of the weights of the l1 machine on all features; None: it is solved.

    Returns
    -------
    RampPoint
        The first solution of the paper on DAKS.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData, Ramp, l1_start
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> ramp = Ramp(HingeData(X, y, np.full(4, 10.0)), owner=np.arange(2), cost=np.ones(2), budget=1.0)
    >>> l1_start(ramp).features
    array([0])
    """
    chosen = affordable_features(ramp, l1_weights(ramp) if weight is None else weight)
    if not chosen:
        return ramp.flat_point()
    program = ramp.program(ramp.columns(chosen))
    first = _point(ramp, program.solve())
    if not ramp.ramp:
        return first
    program.leave_out(first.marked)
    return best_of([first, _point(ramp, program.solve()), ramp.flat_point()])


def class_separation(ramp: Ramp) -> Array:
    """(n,) |mean difference| / (sum of the classes' standard deviations), the best of a feature's columns."""
    data = ramp.data
    sides = [data.X[data.y == side] for side in (1.0, -1.0)]
    spread = sum(part.std(axis=0) for part in sides)
    score = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return by_feature(ramp, np.arange(len(score)), score)


def with_room(ramp: Ramp, free: RampPoint, rounds: int, rng: np.random.Generator) -> RampPoint:
    """The best point where the budget has room for the l1 machine on all features: only samples are looked for.

    Whatever samples are left out, the program on all features is solved; of its answers those within the budget count.
    """
    best, marked = best_of([free, ramp.flat_point()]), free.marked
    program = begin(ramp.data, np.ones(len(ramp.owner)), clock=ramp.clock)
    for k in range(rounds + 1):
        if ramp.clock.is_up() or ramp.is_optimal(best.F):
            break
        if len(np.unique(ramp.data.y[~marked])) == 2:
            try:
                there = descend(ramp, program, marked, whole=True)
            except TimeUp:
                break
            if ramp.fits(there.features) and best.F - FALL * max(1.0, best.F) > there.F:
                best = there
        marked = _random_marks(ramp, best if k % 2 else free, rng)
    return best


def _random_marks(ramp: Ramp, here: RampPoint, rng: np.random.Generator) -> BoolArray:
    """The samples left out at a point, half of them at random, and a few that are near the edge of the ramp."""
    outside = ramp.data.outside(here.w, here.b, here.columns)
    near = (outside >= 1.0) & (outside <= 2.0)
    few, chance = rng.random(len(near)) < 0.5, rng.random(len(near))
    return np.asarray(np.where(here.marked, few, near & (chance < 0.2)))
