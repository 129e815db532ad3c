"""The dynamic adaptive kernel search: small exact programs over promising features and doubtful samples (DAKS).

Every sample is out (its z is 1), in (0) or doubtful (z is to be found), every feature is in the kernel or not.
Phase 1 is a good point and the other points at which swaps ended on the way. Phase 2 solves the program without a whole
budget for the doubtful samples, ranks the features by weight and then by pull, and solves the program on a kernel:
the features of the points seen, which local optima share in part and an exact program recombines, and the best ranked.
Phase 3 adds the next features of the ranking, a bucket, and asks for a better point that uses one of them.
After each answer the samples' states follow it, and a descent and swaps polish it. Before each pass random changes find
further points: where a program is dear, a pass may be all that there is time for.

What a program does not have is not in it: features outside the kernel, samples that are out. The constants M and U are
tightened on the small program itself, which is why it is solved in a second where the whole one is not in an hour.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..contracts import Array, BoolArray, IntArray
from ..errors import SolverError
from .branch_and_bound import GONE, Bounds, MixedIntegerProgram, first_bounds, tighten_bounds
from .clock import TimeUp
from .highs import Limits
from .hinge_program import HingeData, begin, finish
from .ramp_descent import (
    FALL,
    Ramp,
    RampPoint,
    best_of,
    by_feature,
    descend_on,
    iterated_swaps,
    pulls_at,
    swap_until_stable,
)

IN, OUT, DOUBTFUL = 0, 1, 2
PASSES = 5  # of phases 2 and 3
IDLE = 3  # of them without a better point: it ends
GROWING = 1  # passes with a ranking and a phase 3
SHAKES = 60  # random changes before a pass, at most
WORK = 17_000  # linear programs after which they end, fewer the more samples there are
SAMPLES = 400  # half as many at so many
GOOD = 1.3  # points up to so many times the best one propose features for the kernel
LARGEST = 30  # features in a kernel that the points seen propose
RANKED = 10  # and that the ranking does
RELAXED = 60  # features of the program without a whole budget
AGREEING = 2  # answers with the same z after which that is fixed
CELLS = 4e5  # nodes times cells of the program's matrix
STRICT = 1e-6  # of the objective: what a better point must be better by


def daks(ramp: Ramp, start: RampPoint, seen: list[RampPoint], rng: np.random.Generator) -> RampPoint:
    """A point that is no worse than the start; `seen` are the points met on the way to it."""
    programs = WORK / (1.0 + len(ramp.data.y) / SAMPLES)
    search, idle = _KernelSearch(ramp, start, list(seen)), 0
    for k in range(PASSES):
        if ramp.clock.is_up() or idle == IDLE or ramp.is_optimal(search.best.F):
            break
        before = search.best
        search.best = iterated_swaps(ramp, search.best, SHAKES, rng, search.seen, programs)
        try:
            search.run_pass(k < GROWING)
        except TimeUp:
            break
        if search.best is not before:
            search.best = swap_until_stable(ramp, search.best)
        idle = idle + 1 if search.best is before else 0
    return search.best


def restrict_program(
    ramp: Ramp, features: IntArray, rows: IntArray, inside: BoolArray, worth: float, rounds: int = 1
) -> tuple[Ramp, Bounds] | None:
    """The program on some features and rows, and its tightened bounds.

    Parameters
    ----------
    ramp : Ramp
        The instance.
    features : array of int
        The features that stay, ascending.
    rows : array of int
        The rows that stay.
    inside : array of bool of shape (rows,)
        Rows that cannot be left out.
    worth : float
        What a known point costs on these rows.
    rounds : int, default=1
        Rounds of tightening.

    Returns
    -------
    (Ramp, Bounds) or None
        The smaller instance and its bounds; None where only the flat point can be better.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData, Ramp, restrict_program
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> ramp = Ramp(HingeData(X, y, np.full(4, 10.0)), owner=np.arange(2), cost=np.ones(2), budget=1.0)
    >>> part, bounds = restrict_program(ramp, np.array([0]), np.arange(4), np.ones(4, dtype=bool), 40.0)
    >>> part.data.X.shape, bool(bounds.norm <= 40.0)
    ((4, 1), True)
    """
    data, columns = ramp.data, ramp.columns(features)
    if len(np.unique(data.y[rows])) < 2 or not len(columns):
        return None
    owner = np.searchsorted(features, ramp.owner[columns])
    kept = HingeData(np.asfortranarray(data.some(columns)[rows]), data.y[rows], data.top[rows])
    part = replace(ramp, data=kept, owner=owner, cost=ramp.cost[features], tried={})
    first = first_bounds(part, worth)
    bounds = tighten_bounds(part, replace(first, fixed=first.fixed | inside), worth, rounds)
    return None if bounds.norm <= GONE or not (bounds.U > GONE).any() else (part, bounds)


class _KernelSearch:
    """The best point, the state of each sample, and what the last answers had in common."""

    def __init__(self, ramp: Ramp, start: RampPoint, seen: list[RampPoint]) -> None:
        self.ramp, self.best, self.seen, self.clock = ramp, start, seen, ramp.clock
        self.state = self._states(start)
        self.answers: list[RampPoint] = []

    def _states(self, point: RampPoint) -> IntArray:
        """Out where a sample is left out, doubtful where it lies on the wrong side, else in."""
        outside = self.ramp.data.outside(point.w, point.b, point.columns)
        near = (outside >= 1.0) & (outside <= 2.0) & self.ramp.ramp
        return np.where(point.marked, OUT, np.where(near, DOUBTFUL, IN))

    def run_pass(self, growing: bool) -> None:
        """Phase 2, whose kernel the ranking fills where it is `growing`, and phase 3, which goes on with it."""
        self.state = np.where(self.state == DOUBTFUL, DOUBTFUL, self._states(self.best))
        order = self._rank_features() if growing else np.empty(0, dtype=np.intp)
        kernel = np.union1d(self._proposed_features(), order[:RANKED]).astype(np.intp)
        self._solve(kernel, None)
        bucket = order[~np.isin(order, kernel)][: max(len(kernel), 1)]
        if len(bucket) and not self.clock.is_up():
            self._solve(kernel, np.sort(bucket))

    def _proposed_features(self) -> IntArray:
        """The features of the points seen, the best points' first, the best one's in any case."""
        chosen: dict[int, None] = dict.fromkeys(self.best.features.tolist())
        for point in sorted(self.seen, key=lambda point: point.F):
            if GOOD * self.best.F < point.F or len(chosen) >= LARGEST:
                break
            chosen |= dict.fromkeys(point.features.tolist())
        return np.array(sorted(chosen), dtype=np.intp)

    def _rank_features(self) -> IntArray:
        """The features that could enter: those with a weight in the program without a budget first, then by pull."""
        ramp, marked = self.ramp, self.best.marked
        if (self.state == DOUBTFUL).any():
            marked = self._marks_without_whole_budget()
        program = begin(ramp.data, np.ones(len(ramp.owner)), clock=self.clock)
        program.leave_out(marked)
        fit = finish(program)
        weight = by_feature(ramp, fit.columns, np.abs(fit.w))
        pull = pulls_at(ramp, fit.alpha)
        pull[ramp.cost > ramp.budget * (1 + 1e-12)] = 0.0
        order = np.lexsort((-pull, -weight)).astype(np.intp)
        return order[pull[order] > 0]

    def _marks_without_whole_budget(self) -> BoolArray:
        """The samples left out where the budget need not be whole, on the features that pull hardest."""
        pull = pulls_at(self.ramp, self.best.alpha)
        # The best point's own features are in the program whatever they pull.
        pull[self.best.features] = np.inf
        small = self._restrict(np.sort(np.argsort(-pull, kind="stable")[:RELAXED]).astype(np.intp))
        marked = self.best.marked.copy()
        if small is not None and (~small[1].fixed).any():
            part, bounds, rows = small
            answer = self._run(MixedIntegerProgram(part, bounds, whole_features=False), None, part)
            if answer is not None:
                marked[rows] = answer[1]
        both = len(np.unique(self.ramp.data.y[~marked])) == 2
        return marked if both else self.best.marked

    def _restrict(self, features: IntArray) -> tuple[Ramp, Bounds, IntArray] | None:
        """The program on some features without the samples that are out, its bounds, its rows; None: nothing left."""
        rows = np.flatnonzero(self.state != OUT)
        small = restrict_program(self.ramp, features, rows, self.state[rows] == IN, self._value_inside())
        return None if small is None else (*small, rows)

    def _value_inside(self) -> float:
        """What the best point costs beside the samples that are out."""
        return max(self.best.F - 2.0 * float(self.ramp.data.top[self.state == OUT].sum()), 1e-9)

    def _solve(self, kernel: IntArray, bucket: IntArray | None) -> None:
        """Look for a better point on the kernel, with a feature of the bucket where there is one."""
        features = kernel if bucket is None else np.union1d(kernel, bucket).astype(np.intp)
        small = self._restrict(features)
        if small is None:
            return
        part, bounds, rows = small
        program = MixedIntegerProgram(part, bounds)
        if bucket is not None:
            worth = self._value_inside() - STRICT * max(1.0, self.best.F)
            program.require_better_with(np.searchsorted(features, bucket).astype(np.intp), worth)
        answer = self._run(program, self._restrict_best(features, rows) if bucket is None else None, part)
        if answer is not None:
            marked = self.state == OUT
            marked[rows] = answer[1]
            self._accept(features[answer[0]], marked)

    def _run(
        self, program: MixedIntegerProgram, start: RampPoint | None, part: Ramp
    ) -> tuple[IntArray, BoolArray] | None:
        # Fewer nodes in larger programs, so that each takes about the same time.
        nodes = int(np.clip(CELLS / (part.data.X.size + 1), 20, 1000))
        limits = Limits(nodes=nodes, stall_nodes=max(nodes // 4, 20), seconds=self.clock.remaining())
        try:
            answer = program.solve(start, limits)
        except SolverError:
            return None  # a program that cannot be solved proposes nothing
        self.clock.cut = self.clock.cut or answer.clock
        return None if answer.x is None else program.decode(answer.x)

    def _restrict_best(self, features: IntArray, rows: IntArray) -> RampPoint:
        """The best point as a point of the restricted program."""
        best, columns = self.best, self.ramp.columns(features)
        return replace(
            best,
            features=np.searchsorted(features, best.features),
            columns=np.searchsorted(columns, best.columns),
            marked=best.marked[rows],
        )

    def _accept(self, features: IntArray, marked: BoolArray) -> None:
        """Polish an answer, keep it where it is better, and let the samples' states follow it."""
        ramp = self.ramp
        if not ramp.fits(features):
            return
        point = best_of([descend_on(ramp, features, marked), descend_on(ramp, features, self.best.marked)])
        # What several answers in a row agree on is fixed, which makes the next programs smaller.
        self.answers = [*self.answers, point][-AGREEING:]
        if self.best.F - FALL * max(1.0, self.best.F) > point.F:
            self.best = swap_until_stable(ramp, point)
            self.seen.append(self.best)
        if ramp.ramp:
            self.state = self._states_after(point)

    def _states_after(self, point: RampPoint) -> IntArray:
        """The samples' states after an answer."""
        outside = self.ramp.data.outside(point.w, point.b, point.columns)
        state = self.state.copy()
        state[(self.state == IN) & (outside >= 1.0)] = DOUBTFUL
        state[(self.state == OUT) & (outside <= 1.0)] = DOUBTFUL
        if len(self.answers) == AGREEING:
            out: Array = np.array([answer.marked for answer in self.answers])
            state[(self.state == DOUBTFUL) & out.all(axis=0)] = OUT
            state[(self.state == DOUBTFUL) & ~out.any(axis=0)] = IN
        state[(state == IN) & self.best.marked] = DOUBTFUL  # the best point is a point of the next program
        state[(state == OUT) & ~self.best.marked] = DOUBTFUL
        return state
