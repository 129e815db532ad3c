"""The ramp loss with a budget of features, by descents and swaps: good points fast, no proof.

    F(w, b) = |w|_1 + sum_i top_i min(2, max(0, 1 - y_i f(x_i))),     the features with a weight within the budget

The ramp is a hinge less a shifted hinge. A descent leaves out the samples with y f < -1 (their loss is 2 whatever
happens), solves the hinge program on the others, marks anew, until F stops falling: the concave-convex procedure, F
never rises. An exchange drops a feature, adds one of those whose pull |sum_i alpha_i y_i x_ij| on the program that is
left is largest, and descends again; a swap adds first and drops one of those with the smallest weights where the budget
asks for it. The first fall is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from .execution import Clock, TimeUp
from .programs import Fit, HingeData, HingeProgram, begin, even_duals, finish, solve_hinge

EXCHANGED = 40  # features that are tried in the place of one that goes
CANDIDATES = 60  # features that a round of swaps tries to add
DROPS = 6  # and those that it tries to drop for each
FALL = 1e-7  # of F: what counts as a fall
ROUNDS = 500  # of swaps
DIGITS = 9  # of F by which points with the same features and samples are the same
SHAKES = 10  # random changes after which swaps begin anew
WORK = 9_000  # linear programs after which none of them begins
MANY = 200  # samples from which on there are fewer of them
ACCEPTED = 1.1  # a point up to so much above the last is gone on from
BACK = 15  # shakes after which the best point is gone on from
GRACE = 1.0  # seconds that the first descent has, however little time is left: the result is made of it
HOPELESS = 1.3  # a descent that is so many times above the best after its first program is given up


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
    n_programs : list of int
        Linear programs so far, counted in place.
    tried : dict
        Exchanges and swaps that were tried, filled in place.
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
    n_programs: list[int] = field(default_factory=lambda: [0], compare=False)
    tried: dict[Any, tuple[RampPoint | None, int]] = field(default_factory=dict, compare=False)  # see `_try_move`
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
    ramp.n_programs[0] += 1
    outside = ramp.data.outside(fit.w, fit.b, fit.columns)
    marked = outside > 2.0 if ramp.ramp else np.zeros(len(outside), dtype=bool)
    live = np.flatnonzero(fit.w)
    live = live[np.argsort(fit.columns[live])]
    columns = fit.columns[live]
    F = float(np.abs(fit.w).sum()) + ramp.loss(outside)
    features = columns if ramp.column_is_feature else np.unique(ramp.owner[columns])
    return RampPoint(features, columns, fit.w[live], fit.b, marked, F, fit.alpha)


def descend(
    ramp: Ramp, program: HingeProgram, marked: BoolArray, stop: float = np.inf, whole: bool = False
) -> RampPoint:
    """From some samples left out, on the program's columns; given up where it begins far above `stop`.

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
        # F never rises on the way, but it seldom falls by so much either: what begins far above `stop` is given up.
        if not ramp.ramp or HOPELESS * stop < point.F or np.array_equal(point.marked, marked):
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


def eliminate_features(ramp: Ramp, weight: Array) -> list[int]:
    """Features left when a third of the surplus, those with the smallest weights, goes at a time."""
    left = np.flatnonzero(weight)
    while len(left) and not ramp.fits(left):
        order, surplus = left[np.argsort(-weight[left], kind="stable")], 1
        while surplus < len(left) and not ramp.fits(order[: len(left) - surplus]):
            surplus += 1
        left = np.sort(order[: len(left) - (surplus + 2) // 3])
        if not len(left):
            break
        fit = ramp.program(ramp.columns(left)).solve()
        weight = by_feature(ramp, fit.columns, np.abs(fit.w)) + 1e-12 * (weight > 0)
    return [int(j) for j in left]


def class_separation(ramp: Ramp) -> Array:
    """(n,) |mean difference| / (sum of the classes' standard deviations), the best of a feature's columns."""
    data = ramp.data
    sides = [data.X[data.y == side] for side in (1.0, -1.0)]
    spread = sum(part.std(axis=0) for part in sides)
    score = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return by_feature(ramp, np.arange(len(score)), score)


def fast(
    ramp: Ramp,
    rng: np.random.Generator,
    rounds: int = SHAKES,
    seen: list[RampPoint] | None = None,
    weight: Array | None = None,
) -> tuple[RampPoint, RampPoint]:
    """(best point, the paper's start): swaps from several sets of features, then from shaken ones.

    There are `rounds` random changes, fewer where there are many samples. The points at which swaps ended are added to
    `seen`. `weight` are the `l1_weights` where they are known.
    """
    seen = [] if seen is None else seen
    # However little time is left, this point is made: there must be a result.
    sure = descend_on(ramp.with_clock(ramp.clock.at_least(GRACE)), affordable_features(ramp, class_separation(ramp)))
    try:
        weight = l1_weights(ramp) if weight is None else weight
        first = l1_start(ramp, weight)
        sets = [affordable_features(ramp, weight), eliminate_features(ramp, weight)]
    except TimeUp:
        seen.append(sure)
        return sure, sure
    points = [descend_on(ramp, first.features, first.marked), *(descend_on(ramp, chosen) for chosen in sets), sure]
    seen += [_while_lower(ramp, point, (_swap,)) for point in _distinct(points)]
    fewer = min(1.0, MANY / len(ramp.data.y))
    left, times = WORK - ramp.n_programs[0], int(np.ceil(rounds * fewer))
    best = iterated_swaps(ramp, best_of([first, *seen]), times, rng, seen, left)
    return swap_until_stable(ramp, best), first


def _distinct(points: Sequence[RampPoint]) -> list[RampPoint]:
    """One point for each set of features, the best first."""
    seen: dict[tuple[int, ...], RampPoint] = {}
    for point in sorted(points, key=lambda point: point.F):
        seen.setdefault(tuple(point.features.tolist()), point)
    return list(seen.values())


def iterated_swaps(
    ramp: Ramp,
    best: RampPoint,
    rounds: int,
    rng: np.random.Generator,
    seen: list[RampPoint] | None = None,
    programs: float = np.inf,
) -> RampPoint:
    """Iterated swaps: some features go at random, others that pull come, samples near the ramp's edge change sides.

    No further round begins after so many linear programs.
    """
    here, seen = best, [] if seen is None else seen
    last = ramp.n_programs[0] + programs
    for k in range(rounds):
        if ramp.clock.is_up() or ramp.n_programs[0] >= last or ramp.is_optimal(best.F):
            break
        there = _while_lower(ramp, _shake(ramp, here, rng), (_swap,) if k % 2 else (_exchange,))
        seen.append(there)
        if best.F - FALL * max(1.0, best.F) > there.F:
            best = there
        if there.F < ACCEPTED * here.F:
            here = there
        if k % BACK == BACK - 1:
            here = best
    return best


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


def _shake(ramp: Ramp, here: RampPoint, rng: np.random.Generator) -> RampPoint:
    pull, count = pulls(ramp, here), len(here.features)
    gone = rng.choice(here.features, size=rng.integers(1, max(2, count // 2 + 1)), replace=False) if count else ()
    stay = [int(j) for j in here.features if j not in gone]
    likely = np.argsort(-pull, kind="stable")[: max(20, 3 * count)]
    likely = likely[pull[likely] > 0]
    while len(likely):
        chance = pull[likely] / pull[likely].sum()
        new = int(rng.choice(likely, p=chance))
        likely = likely[likely != new]
        if ramp.fits([*stay, new]):
            stay.append(new)
        elif ramp.cost[here.features].min(initial=np.inf) >= ramp.cost.max():
            break  # all cost the same, and there is no room for any
    return descend_on(ramp, stay, _random_marks(ramp, here, rng) if ramp.ramp else here.marked)


def swap_until_stable(ramp: Ramp, here: RampPoint) -> RampPoint:
    """Exchanges, and then swaps that add first, until none of those tried lowers F."""
    return _while_lower(ramp, here, (_exchange, _swap))


def _while_lower(ramp: Ramp, here: RampPoint, moves: Sequence[Any]) -> RampPoint:
    for _ in range(ROUNDS):
        target = here.F - FALL * max(1.0, here.F)
        if ramp.is_optimal(here.F):
            return here
        for move in moves:
            try:
                there = _try_move(ramp, here, target, move)
            except TimeUp:
                return here
            if there is not None:
                break
        else:
            return here
        here = there
    return here


def _try_move(ramp: Ramp, here: RampPoint, target: float, move: Any) -> RampPoint | None:
    """Where a move leads; searches that meet at a point do not repeat it, and the programs it took count again."""
    # A move is deterministic, so the point is its key. Programs that are not solved again count all the same: the
    # limits of work are then reached at the same place whatever is remembered.
    key = (move, here.features.tobytes(), here.marked.tobytes(), f"{here.F:.{DIGITS}e}")
    if key in ramp.tried and not ramp.clock.is_up():
        known, programs = ramp.tried[key]
        ramp.n_programs[0] += programs
        return known
    before = ramp.n_programs[0]
    there: RampPoint | None = move(ramp, here, target)
    if not ramp.clock.cut:
        ramp.tried[key] = there, ramp.n_programs[0] - before
    return there


def _exchange(ramp: Ramp, here: RampPoint, target: float) -> RampPoint | None:
    """The first lower point by dropping a feature and adding one that pulls on what is left."""
    weight = by_feature(ramp, here.columns, np.abs(here.w))
    room = not len(here.features) or ramp.fits([*here.features, int(np.argmin(ramp.cost))])
    if room and (there := _swap(ramp, here, target)) is not None:
        return there
    program = ramp.program(ramp.columns(here.features))
    for k in here.features[np.argsort(weight[here.features], kind="stable")]:
        # One program serves all exchanges: a silenced column keeps its row in the basis, one that joined leaves again.
        silent, rest = ramp.columns([k]), here.features[here.features != k]
        program.silence(silent)
        less = descend(ramp, program, here.marked)
        pull = _affordable_pulls(ramp, less)
        pull[here.features] = 0.0
        order = np.argsort(-pull, kind="stable")[:EXCHANGED]
        order = order[pull[order] > 1.0]
        # Features whose first program cannot get below the limit are passed over without solving it.
        for j in order[_exchange_bounds(ramp, here, less, order) < _limit(ramp, here, target)]:
            if ramp.clock.is_up():
                return None
            if not ramp.fits([*rest, int(j)]):
                continue
            new = ramp.columns([j])
            program.join(new)
            point = descend(ramp, program, less.marked, here.F)
            if target > point.F:
                return point
            program.leave(new)
        program.silence(silent, False)
    return None


def _limit(ramp: Ramp, here: RampPoint, target: float) -> float:
    """A first program of a descent that is not below this leads nowhere.

    Where a sample beyond the ramp costs more than the target, none is left out, and a descent is one program.
    """
    return target if ramp.lower_bound(np.inf) > target else HOPELESS * here.F


def _exchange_bounds(ramp: Ramp, here: RampPoint, less: RampPoint, features: IntArray) -> Array:
    """(k,) bounds below the first program when one of these features joins `less`, which is `here` without a feature.

    Any alpha within the program's bounds whose pulls are at most 1 gives one. Those of the two points do, but for the
    pull of the new feature: alone, over its pull, or mixed so that the pulls make up for each other.
    """
    data = ramp.data
    columns = ramp.columns(features)
    if len(columns) != len(features) or not np.array_equal(here.marked, less.marked):  # several columns to a feature
        return np.full(len(features), -np.inf)
    X = data.some(features)
    kept = ~less.marked
    left_out = 2.0 * float(data.top[less.marked].sum())
    alphas = [np.where(kept, point.alpha, 0.0) for point in (here, less)]
    at_here, at_less = ((alpha * data.y) @ X for alpha in alphas)
    value_here, value_less = (float(alpha.sum()) for alpha in alphas)
    bound = np.maximum(value_here / np.maximum(np.abs(at_here), 1.0), value_less / np.maximum(np.abs(at_less), 1.0))
    with np.errstate(all="ignore"):  # the share of `less` at which the pull is 1
        share = np.clip((np.sign(at_less) - at_here) / (at_less - at_here), 0.0, 1.0)
    mixed = (1.0 - share) * value_here + share * value_less
    usable = (np.abs(at_here) <= 1.0) & np.isfinite(share)
    return np.asarray(np.where(usable, np.maximum(bound, mixed), bound) * (1.0 - 1e-9) + left_out)


def _swap(ramp: Ramp, here: RampPoint, target: float) -> RampPoint | None:
    """The first lower point by adding a feature and, where the budget asks for it, dropping others."""
    pull = _affordable_pulls(ramp, here)
    order = np.argsort(-pull, kind="stable")[:CANDIDATES]
    program = ramp.program(ramp.columns(here.features))
    for j in order[pull[order] > 1.0]:
        if ramp.clock.is_up():
            return None
        new = ramp.columns([j])
        program.join(new)
        point = descend(ramp, program, here.marked, here.F)
        if ramp.fits(point.features):
            if target > point.F:
                return point
        elif (less := _without_one(ramp, program, point, int(j), here, target)) is not None:
            return less
        program.leave(new)
    return None


def _affordable_pulls(ramp: Ramp, here: RampPoint) -> Array:
    """The pulls of the features that the budget could pay for."""
    pull = pulls(ramp, here)
    pull[ramp.cost > ramp.budget * (1 + 1e-12)] = 0.0
    return pull


def _without_one(
    ramp: Ramp, program: HingeProgram, wide: RampPoint, added: int, here: RampPoint, target: float
) -> RampPoint | None:
    """The first lower point when one of the features with the smallest weights goes, and more where that is needed."""
    weight = by_feature(ramp, wide.columns, np.abs(wide.w))
    others = np.array([j for j in wide.features if j != added], dtype=np.intp)
    for k in others[np.argsort(weight[others], kind="stable")[:DROPS]]:
        gone, rest = [int(k)], [int(j) for j in wide.features if j != k]
        for other in sorted((j for j in rest if j != added), key=lambda j: weight[j]):
            if ramp.fits(rest):
                break
            gone.append(other)
            rest.remove(other)
        if not ramp.fits(rest):
            continue
        silent = ramp.columns(gone)
        program.silence(silent)
        point = descend(ramp, program, wide.marked, here.F)
        program.silence(silent, False)
        if target > point.F and ramp.fits(point.features):
            return point
    return None
