"""The ramp loss with a budget of features at several prices of the loss and several budgets: one pool of points.

    F_c(w, b) = |w|_1 + c L(w, b),     L the loss at price 1,     at most `budget` features

A point has the same |w|_1 and L at every price c, so it is a line in c, and the best value known within a budget is the
lower envelope of the lines of the pool: it rises with c, is concave in c, and does not rise with the budget. Whatever
search finds a point, it joins the pool, and every other price and budget begins from it. Prices between those asked for
make the way from one to the next shorter: a set of features that is best at a high price often comes from a low one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..errors import SolverError
from . import ramp_programs
from .execution import Clock, TimeUp
from .programs import Limits
from .ramp_descent import (
    FALL,
    Ramp,
    RampPoint,
    affordable_features,
    class_separation,
    descend_on,
    l1_start,
    with_room,
    without_budget,
)
from .ramp_search import OFFERS, SignedColumns, VertexSearch

SWEEPS = 4  # over all prices and budgets, each with a share of the random changes;
FEW_SWEEPS, FEW_SHARED, FEW_OFFERS = 2, 3, 25  # these where one of each is asked for
WORK = 1.6e6  # cells of the programs for each random change, on average, after which a price and budget ends,
MOST_WORK = 7e7  # and in all,
SHARE_BETWEEN = 0.35  # of it at prices between those asked for
STEP = 5.0  # a larger step from price to price has others between
BETWEEN = (0.215, 0.464)  # of the larger one
SHARED = 5  # points of each neighbouring price and budget that exchanges begin at
NEAR = 2  # prices on either side that are neighbours
DEEP = 2  # points, the best, for which exchanges of two features are tried
PAIRS = 5e6  # cells of the programs up to which that is done before the last sweep
PARTNERS = 30  # points that are crossed with the best
MOST_SETS = 400  # sets of features of the pool that are begun anew at last, or that propose a kernel,
ANEW = 5e6  # and cells of the programs after which that ends
ACCEPTED = 1.1  # a point up to so much above the last is gone on from
SAMPLE_SHAKES = 5  # random choices of samples for each of the random changes, where the budget has room
MOST_SAMPLE_SHAKES = 50
SWAPS = 0.5  # of the time of "exact" that all but the exact programs may take
ROUNDS = 4  # of tightening
NODES = 200_000  # of branch and bound
TINY = 120  # cells of a table up to which every solver proves its answer,
TINY_ROWS = 30  # and rows: what each sample's side costs doubles with every few of them
TINY_NODES = 20_000
TINY_GAP = 1e-6
CLOSE = 5e-4  # above the bound without a budget, relative: nothing is left to gain for small exact programs
BY_SAMPLE = 1000  # samples up to which each has a constant of its own
OPEN = 15  # samples on the wrong side up to which "auto" solves small exact programs: more leave them no bound,
KERNEL_ROWS = 500  # and rows
SAME = 1e-9  # of the objective: what rounding may change

Key = tuple[float, float]  # price, budget


@dataclass(frozen=True)
class PathAnswer:
    """The best point of a price and budget, a bound that no point is below (nan: none is known), and how it ended."""

    point: RampPoint
    bound: float
    status: str  # "optimal", "limit" or "heuristic"
    nodes: int = 0


@dataclass
class PointPool:
    """Points as lines |w|_1 + price L; for each set of features those that are lowest at some price.

    Attributes
    ----------
    lines : dict
        By set of features: (|w|_1, L, point).
    """

    lines: dict[bytes, list[tuple[float, float, RampPoint]]] = field(default_factory=dict)

    def add(self, price: float, point: RampPoint) -> None:
        """A point whose objective is that at a price."""
        norm = float(np.abs(point.w).sum())
        loss = max(point.F - norm, 0.0) / price
        known = self.lines.setdefault(point.features.tobytes(), [])
        if not any(a <= norm and b <= loss for a, b, _ in known):
            known[:] = [line for line in known if line[0] < norm or line[1] < loss] + [(norm, loss, point)]

    def lowest_points(self, ramp: Ramp, price: float, count: int) -> list[RampPoint]:
        """The lowest points at a price within the ramp's budget, one of each set of features."""
        best = [min(lines, key=lambda line: line[0] + price * line[1]) for lines in self.lines.values()]
        best = [line for line in best if ramp.fits(line[2].features)]
        best.sort(key=lambda line: line[0] + price * line[1])
        return [point for _, _, point in best[:count]]


@dataclass
class _Instance:
    """One price and budget: its search, its best point and what is known of the optimum."""

    search: VertexSearch
    best: RampPoint
    requested: bool
    free: bool = False  # the budget has room for the machine on all features
    bound: float = -np.inf
    status: str = "heuristic"
    nodes: int = 0

    @property
    def is_optimal(self) -> bool:
        return self.status == "optimal" or self.bound >= self.best.F - FALL * max(1.0, self.best.F)


class PathSearch:
    """All prices and budgets of one table.

    Parameters
    ----------
    ramp : Ramp
        The instance at price 1; its budget does not count.
    prices, budgets : sequences of float
        Factors of the prices of samples, and budgets.
    rng : Generator
        For random changes.
    shakes : int
        Random changes at each price and budget.
    clock : Clock
        The time for all of it.
    """

    def __init__(
        self,
        ramp: Ramp,
        prices: Sequence[float],
        budgets: Sequence[float],
        rng: np.random.Generator,
        shakes: int,
        clock: Clock,
    ) -> None:
        self.rng, self.shakes, self.clock, self.pool = rng, shakes, clock, PointPool()
        self.faults: list[str] = []
        offers = FEW_OFFERS if len(set(prices)) * len(set(budgets)) == 1 else OFFERS
        table, self.instances = SignedColumns.from_ramp(ramp), dict[Key, _Instance]()
        for budget in sorted(set(budgets)):
            for price in fill_prices(prices) if shakes else sorted(set(prices)):
                data = replace(ramp.data, top=price * ramp.data.top)
                search = VertexSearch(replace(ramp, data=data, budget=budget, clock=clock), table, offers)
                self.instances[price, budget] = _Instance(search, search.ramp.flat_point(), price in prices)

    def run(self, solver: str, starts: Iterable[RampPoint] = ()) -> dict[Key, PathAnswer]:
        """The answers at the prices and budgets asked for, from the points of another search where there are some."""
        swaps = self.clock.part(SWAPS) if solver == "exact" else self.clock
        self._keep_clock(swaps)
        starts = list(starts)
        for key, at in self.instances.items():
            for point in starts:
                if at.search.ramp.fits(point.features):
                    self._add(key, at.search.improve(at.search.descend(point.features, point)))
            self._begin(key, at)
        requested = [key for key, at in self.instances.items() if at.requested]
        sweeps = min(SWEEPS if len(requested) > 1 else FEW_SWEEPS, self.shakes)
        for sweep in range(sweeps + 1):
            # Up and down again: points of high prices are of use at low ones, but less often.
            for key in [*self.instances, *reversed(self.instances)]:
                self._share(key, sweep == sweeps, len(requested) > 1)
            if sweep < sweeps:
                for key in self.instances:
                    self._change_at_random(key, self.shakes // sweeps + (sweep < self.shakes % sweeps))
        self._keep_clock(self.clock)
        self._prove(requested, solver)
        return self._settle(requested)

    def _keep_clock(self, clock: Clock) -> None:
        for at in self.instances.values():
            at.search.ramp = at.search.ramp.with_clock(clock)

    def _attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        """What HiGHS does: if it fails, or the time is up, what it would have added is missing, and nothing else."""
        try:
            action(*arguments)
        except TimeUp:
            pass
        except SolverError as error:
            self.faults.append(str(error))

    def _add(self, key: Key, point: RampPoint) -> None:
        self.pool.add(key[0], point)
        at = self.instances[key]
        if point.F < at.best.F:
            at.best = point

    def _begin(self, key: Key, at: _Instance) -> None:
        """The points that a price and budget begins with."""
        search, ramp = at.search, at.search.ramp
        search.limit = min(WORK * (self.shakes + 10), MOST_WORK) * (1.0 if at.requested else SHARE_BETWEEN)
        self._add(key, at.best)
        sets = [affordable_features(ramp, class_separation(ramp))]
        self._attempt(self._solve_without_budget, key, at, sets)
        if at.is_optimal:
            return
        for features in sets:
            if len(features) and not self.clock.is_up():
                whole = search.descend(features)
                self._add(key, search.improve(whole if ramp.fits(whole.features) else search.eliminate(whole)))
        for point in search.try_every_set() if at.requested else ():
            self._add(key, search.improve(point))

    def _solve_without_budget(self, key: Key, at: _Instance, sets: list[list[int]]) -> None:
        """The machine on all features: a bound, and the features with its largest weights, which are added."""
        floor, free, weight = without_budget(at.search.ramp)
        at.bound, at.free = floor, free is not None
        at.search.ramp = ramp = replace(at.search.ramp, floor=floor)
        if free is not None:
            rounds = min(SAMPLE_SHAKES * self.shakes, MOST_SAMPLE_SHAKES)
            self._add(key, with_room(ramp, free, rounds, self.rng))
        if weight is not None and free is None:
            self._add(key, at.search.improve(l1_start(ramp, weight)))
            sets += [affordable_features(ramp, weight), np.flatnonzero(weight).tolist()]

    def _share(self, key: Key, last: bool, deep: bool) -> None:
        """Begin from the best points of the neighbouring prices and budgets; exchange two where `deep` or at last."""
        at = self.instances[key]
        search = at.search
        if at.is_optimal or search.is_over() or self._is_settled(key):
            return
        shared, pairs = (SHARED, DEEP) if deep else (FEW_SHARED, 1)
        for other in self._neighbors(key) if self.shakes else [key]:
            for point in self.pool.lowest_points(self.instances[other].search.ramp, other[0], shared):
                fits = search.ramp.fits(point.features)
                there = search.descend(point.features, point)
                self._add(key, search.improve(there if fits else search.eliminate(there)))
        for point in self.pool.lowest_points(search.ramp, key[0], pairs) if self.shakes else ():
            if last or (deep and search.cells_of_pairs(point) <= PAIRS):
                self._add(key, search.deepen(search.descend(point.features, point)))

    def _neighbors(self, key: Key) -> list[Key]:
        """This price and budget, the prices next to it, and the budgets."""
        prices, budgets = (sorted({other[part] for other in self.instances}) for part in (0, 1))
        price, budget = prices.index(key[0]), budgets.index(key[1])
        near = prices[max(price - NEAR, 0) : price + NEAR + 1]
        others = budgets[max(budget - 1, 0) : budget] + budgets[budget + 1 : budget + 2]
        return [*((other, key[1]) for other in near), *((key[0], other) for other in others)]

    def _is_settled(self, key: Key) -> bool:
        """Whether the best point at the next lower price has no loss: no higher price can ask for another."""
        below = [other for other in self.instances if other[1] == key[1] and other[0] < key[0]]
        if not below:
            return False
        best = self.instances[max(below)].best
        return best.F - float(np.abs(best.w).sum()) <= FALL * best.F

    def _change_at_random(self, key: Key, rounds: int) -> None:
        """Random changes and crossings, after a third of them from a point built anew."""
        at, rng = self.instances[key], self.rng
        here, search = at.best, at.search
        for k in range(0 if self._is_settled(key) else rounds):
            if at.is_optimal or search.is_over():
                return
            if k == rounds // 3:
                here = search.improve(search.build(rng))
                self._add(key, here)
            elif k == 2 * rounds // 3:
                here = at.best
            partners = self.pool.lowest_points(search.ramp, key[0], PARTNERS) if k % 3 == 2 else []
            partner = partners[rng.integers(len(partners))] if partners else None
            there = search.improve(search.shake(here, rng) if partner is None else search.cross(here, partner))
            self._add(key, there)
            if there.F < ACCEPTED * here.F:
                here = there

    # -- exact programs -----------------------------------------------------------------------------------------------

    def _prove(self, requested: Sequence[Key], solver: str) -> None:
        """Programs of HiGHS at the prices asked for: polish, small exact programs, proofs."""
        for left, key in zip(range(len(requested), 0, -1), requested, strict=True):
            at = self.instances[key]
            self._take_lowest(key)
            self._begin_anew(key, at)
            if not self.clock.is_up() and not at.is_optimal:
                self._attempt(self._polish, key, at)
            cells, m = at.search.ramp.data.X.size, len(at.search.ramp.data.y)
            tiny = cells <= TINY and m <= TINY_ROWS
            if at.is_optimal or (self.clock.is_up() and solver != "exact"):
                continue
            clock = self.clock.part(1.0 / left)
            if tiny or solver == "exact":
                limits = Limits(nodes=NODES) if solver == "exact" else Limits(nodes=TINY_NODES, gap=TINY_GAP)
                self._attempt(self._solve_exactly, key, at, clock, limits)
            elif self._has_kernels(at, solver) and not self._is_settled(key):
                self._attempt(self._search_kernels, key, at)
            self.clock.cut = self.clock.cut or clock.cut

    def _begin_anew(self, key: Key, at: _Instance) -> None:
        """With the ramp: the best sets of features again, from where the hinge ends instead of from another point."""
        if not at.search.ramp.ramp or at.is_optimal:
            return
        last = at.search.work + ANEW
        for point in self.pool.lowest_points(at.search.ramp, key[0], MOST_SETS):
            if at.search.work >= last or self.clock.is_up():
                break
            if len(point.features):
                self._add(key, at.search.descend(point.features))

    def _has_kernels(self, at: _Instance, solver: str) -> bool:
        """Whether small exact programs are solved: "auto" has them where few samples could be left out."""
        if at.free or at.bound * (1.0 + CLOSE) >= at.best.F or solver not in ("auto", "daks"):
            return False
        best, data = at.best, at.search.ramp.data
        open_samples = int((data.outside(best.w, best.b, best.columns) >= 1.0).sum()) if at.search.ramp.ramp else 0
        return solver == "daks" or (open_samples <= OPEN and len(data.y) <= KERNEL_ROWS)

    def _polish(self, key: Key, at: _Instance) -> None:
        """The last programs by HiGHS, whose dual variables are exact."""
        self._add(key, descend_on(at.search.ramp, at.best.features, at.best.marked))

    def _search_kernels(self, key: Key, at: _Instance) -> None:
        seen = self.pool.lowest_points(at.search.ramp, key[0], MOST_SETS)
        search = ramp_programs.KernelSearch(at.search, at.best, seen)
        try:
            search.run()
        finally:
            self._add(key, search.best)

    def _solve_exactly(self, key: Key, at: _Instance, clock: Clock, limits: Limits) -> None:
        ramp = at.search.ramp.with_clock(clock)
        proved = ramp_programs.solve(ramp, at.best, ROUNDS, limits, len(ramp.data.y) <= BY_SAMPLE)
        self._add(key, proved.point)
        at.bound, at.nodes = max(at.bound, proved.bound), proved.nodes
        at.status = proved.status

    # -- the laws -----------------------------------------------------------------------------------------------------

    def _take_lowest(self, key: Key) -> None:
        """The lowest of the pool's points at a price and budget: by it the objectives keep their laws."""
        search = self.instances[key].search
        for point in self.pool.lowest_points(search.ramp, key[0], 1):
            alpha = search.descend(point.features, point, False).alpha if len(point.features) else point.alpha
            self._add(key, search.ramp.point_at(point.columns, point.w, point.b, alpha))

    def _settle(self, requested: Sequence[Key]) -> dict[Key, PathAnswer]:
        for key in requested:
            self._take_lowest(key)
        if self.faults:
            text = f"the best point found is used, though a program failed: {self.faults[0]}"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        answers = dict[Key, PathAnswer]()
        for key in requested:
            at = self.instances[key]
            # What no point is below at a lower price or within a larger budget, none is below here.
            below = [self.instances[other].bound for other in requested if other[0] <= key[0] and other[1] >= key[1]]
            at.bound = min(max(below), at.best.F)
            cut = self.clock.cut or bool(self.faults) or at.status == "limit"
            status = "optimal" if at.is_optimal else "limit" if cut else "heuristic"
            known = status == "optimal" or at.nodes or at.status == "limit" or at.bound * (1.0 + CLOSE) >= at.best.F
            answers[key] = PathAnswer(at.best, at.bound if known else float("nan"), status, at.nodes)
        check_laws({key: answer.point.F for key, answer in answers.items()})
        return answers


def check_laws(values: dict[Key, float]) -> None:
    """The least objective neither falls with the price nor rises with the budget."""
    for key, value in values.items():
        for other, there in values.items():
            if other[0] >= key[0] and other[1] <= key[1] and there < value * (1.0 - SAME):
                raise SolverError(f"a point of value {there:.9g} at {other} is below the best of {value:.9g} at {key}")


def fill_prices(prices: Sequence[float]) -> list[float]:
    """The prices, and others where the step from one to the next is large, or below a single one."""
    requested = sorted(set(prices))
    filled = set(requested)
    steps = pairwise(requested) if len(requested) > 1 else ((0.0, requested[0]),)
    for low, high in steps:
        if high > STEP * low:
            filled |= {high * share for share in BETWEEN}
    return sorted(filled)
