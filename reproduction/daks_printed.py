"""DAKS by the rules of its paper, for the record; ours (`solvers.daks`) has another start, descents and swaps.

Phase 1 is the paper's first solution, with constants from one round of linear programs. Every sample is then out (left
out at the full loss), in (cannot be left out) or open. Phase 2 solves the program on all features with shares instead
of whole features, fixes the samples as they are there, ranks the features by weight and then by reduced cost, and
solves the whole program on the kernel: the features with a weight. Phase 3 adds the next features of the ranking, a
bucket, and asks for a better point that uses one of them, again and again; the bucket grows where a program was easy.
After each answer the samples' states follow it, and features of the kernel that the last answers did not select leave.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from marginsieve.contracts import BoolArray, IntArray
from marginsieve.errors import SolverError
from marginsieve.solvers import (
    Answer,
    Bounds,
    Clock,
    Limits,
    MixedIntegerProgram,
    Ramp,
    RampPoint,
    descend_on,
    l1_start,
    restrict_program,
)

IN, OUT, OPEN = 0, 1, 2
GONE = 1e-6  # a smaller weight is none
GROWTH = 0.35  # of the bucket after an easy program
SAME = 2  # answers after which a sample that they agree on is fixed, and a feature that none selected leaves the kernel
STRICT = 1e-6  # of the objective: what a better point must be better by
EASY = 0.1  # of the time of a program, up to which it was easy
ROUNDS, BUCKETS = 3, 20  # returns to phase 2, and buckets of each


@dataclass
class PrintedDaks:
    """The state of the search on one program; `run` ends with the best point."""

    ramp: Ramp
    clock: Clock
    seconds: float = 400.0  # of one program, as printed
    programs: int = 0
    answers: list[tuple[IntArray, BoolArray]] = field(default_factory=list)

    def run(self) -> RampPoint:
        """All three phases."""
        ramp = self.ramp
        self.best = l1_start(ramp)
        self.state = self._states(self.best)
        first = self.best.features
        for _ in range(ROUNDS):
            order, weighted, least = self._ranking()
            kernel = np.union1d(np.union1d(weighted, first), self.best.features).astype(np.intp)
            self._solve(kernel, None)
            before = self.state.copy()
            self._buckets(order, kernel, least)
            if self.clock.is_up() or (least * (1 + STRICT) >= self.best.F and np.array_equal(before, self.state)):
                break
            first = self.best.features
        return self.best

    def _states(self, point: RampPoint) -> IntArray:
        outside = self.ramp.data.outside(point.w, point.b, point.columns)
        return np.where(point.marked, OUT, np.where((outside >= 1.0) & (outside <= 2.0), OPEN, IN)).astype(np.intp)

    def _ranking(self) -> tuple[IntArray, IntArray, float]:
        """Features by weight and then reduced cost in the relaxed program, those with a weight, and its value."""
        every = np.arange(len(self.ramp.cost), dtype=np.intp)
        nothing = every, np.empty(0, dtype=np.intp), -np.inf
        small = self._restrict(every)
        if small is None:
            return nothing
        part, bounds, rows = small
        relaxed = MixedIntegerProgram(part, bounds, whole_features=False)
        answer = self._answer(relaxed)
        if answer is None or answer.x is None:
            return nothing
        fixed = self._with_samples_fixed(part, bounds, relaxed.decode(answer.x)[1])
        if fixed is None or fixed.x is None:
            return nothing
        d = part.data.X.shape[1]
        weight, price = np.zeros(len(every)), np.full(len(every), np.inf)
        np.maximum.at(weight, part.owner, fixed.x[:d] + fixed.x[d : 2 * d])
        if fixed.col_dual is not None:
            least = np.minimum(fixed.col_dual[:d], fixed.col_dual[d : 2 * d])
            np.minimum.at(price, part.owner, least)
        order = np.lexsort((price, -weight)).astype(np.intp)
        return order, np.flatnonzero(weight > GONE).astype(np.intp), answer.bound + self._out_cost(rows)

    def _with_samples_fixed(self, part: Ramp, bounds: Bounds, marked: BoolArray) -> Answer | None:
        """The linear program that is left: samples that are left out are gone, the others stay."""
        stay, data = ~marked, part.data
        if len(np.unique(data.y[stay])) < 2:
            return None
        kept = replace(data, X=np.asfortranarray(data.X[stay]), y=data.y[stay], top=data.top[stay])
        every = replace(bounds, M=bounds.M[stay], fixed=np.ones(int(stay.sum()), dtype=bool))
        linear = MixedIntegerProgram(replace(part, data=kept), every, whole_features=False)
        return linear.program.solve(Limits(seconds=self._seconds_left()))

    def _buckets(self, order: IntArray, kernel: IntArray, least: float) -> None:
        """Phase 3."""
        size, place, proved = max(len(kernel), 1), 0, True
        order = order[~np.isin(order, kernel)]
        for _ in range(BUCKETS):
            bucket = np.sort(order[place : place + size])
            if not len(bucket) or self.clock.is_up() or least * (1 + STRICT) >= self.best.F:
                break
            since = time.perf_counter()
            required = bucket if proved else np.union1d(bucket, np.setdiff1d(kernel, self.best.features))
            answer = self._solve(kernel, bucket, required.astype(np.intp))
            proved = answer is None or answer.status != "limit"
            place += size
            kernel = self._kernel(np.union1d(kernel, np.intersect1d(bucket, self.best.features)).astype(np.intp))
            if time.perf_counter() - since <= EASY * self.seconds:
                size = int(np.ceil((1.0 + GROWTH) * size))

    def _kernel(self, kernel: IntArray) -> IntArray:
        """Without the features that the last answers did not select; the best point's stay."""
        if len(self.answers) < SAME:
            return kernel
        used = np.unique(np.concatenate([features for features, _ in self.answers[-SAME:]] + [self.best.features]))
        return np.intersect1d(kernel, used).astype(np.intp)

    def _restrict(self, features: IntArray) -> tuple[Ramp, Bounds, IntArray] | None:
        """The program on some features without the samples that are out; None: nothing is left of it."""
        rows = np.flatnonzero(self.state != OUT)
        worth = max(self.best.F - self._out_cost(rows), 1e-9)
        small = restrict_program(self.ramp.with_clock(self.clock), features, rows, self.state[rows] == IN, worth)
        return None if small is None else (*small, rows)

    def _out_cost(self, rows: IntArray) -> float:
        """What the samples outside these rows cost."""
        return 2.0 * float(self.ramp.data.top.sum() - self.ramp.data.top[rows].sum())

    def _solve(self, kernel: IntArray, bucket: IntArray | None, required: IntArray | None = None) -> Answer | None:
        """The program on the kernel and a bucket; its answer becomes the best point where it is better."""
        features = kernel if bucket is None else np.union1d(kernel, bucket).astype(np.intp)
        small = self._restrict(features)
        if small is None:
            return None
        part, bounds, rows = small
        whole = MixedIntegerProgram(part, bounds)
        if required is not None:
            worth = self.best.F - self._out_cost(rows) - STRICT * max(1.0, self.best.F)
            whole.require_better_with(np.searchsorted(features, required).astype(np.intp), worth)
        answer = self._answer(whole)
        if answer is not None and answer.x is not None:
            chosen, out = whole.decode(answer.x)
            marked = self.state == OUT
            marked[rows] = out
            self._take(features[chosen], marked)
        return answer

    def _answer(self, whole: MixedIntegerProgram) -> Answer | None:
        self.programs += 1
        try:
            return whole.solve(None, Limits(seconds=min(self.seconds, self._seconds_left() or self.seconds)))
        except SolverError:
            return None

    def _seconds_left(self) -> float | None:
        left = self.clock.remaining()
        return None if left is None else max(left, 0.1)

    def _take(self, features: IntArray, marked: BoolArray) -> None:
        """Keep a better point, and let the samples' states follow the answer."""
        if not self.ramp.fits(features):
            return
        point = descend_on(self.ramp, features, marked)
        self.answers.append((features, point.marked))
        self.best = point if point.F < self.best.F else self.best
        outside = self.ramp.data.outside(point.w, point.b, point.columns)
        state = self.state.copy()
        state[(state == IN) & (outside >= 1.0)] = OPEN
        state[(self.state == OUT) & (outside <= 1.0)] = OPEN
        if len(self.answers) >= SAME:
            last = np.array([out for _, out in self.answers[-SAME:]])
            state[(self.state == OPEN) & last.all(axis=0)] = OUT
            state[(self.state == OPEN) & ~last.any(axis=0)] = IN
        state[(state == IN) & self.best.marked] = OPEN
        state[(state == OUT) & ~self.best.marked] = OPEN
        self.state = state
