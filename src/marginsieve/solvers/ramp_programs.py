"""The ramp loss with a budget of features, exactly: a mixed-integer program whose constants are tightened first.

    min  sum_k (p_k + q_k) + sum_i top_i (xi_i + 2 z_i)
    y_i f(x_i) + xi_i + M_i z_i >= 1,   xi_i + 2 z_i <= 2
    sum_{k of j} (p_k + q_k) <= U_j v_j,   sum_j cost_j v_j <= budget

with w = p - q; z_i = 1 leaves sample i out at the full loss of 2, v_j = 1 lets feature j have weights. M and U come
from an upper bound of the optimum (a point of `ramp_path`), and linear programs over all points that are no
worse make them smaller, round by round: a sample whose M_i is at most 2 cannot gain by being left out, a feature whose
U_j is 0 is gone. With the plain hinge (FS-SVM) there is no z, xi has no top, and M plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array, BoolArray, IntArray
from ..errors import SolverError
from .execution import TimeUp
from .programs import Answer, HingeData, Limits, Program, answers, begin, even_duals, finish
from .ramp_descent import FALL, GRACE, Ramp, RampPoint, best_of, by_feature, descend_on, pulls_at
from .ramp_search import VertexSearch

SAFETY = 1e-6  # added to the value of a linear program before it is used as a bound
GONE = 1e-6  # a feature whose weights cannot be larger is dropped; the bound allows for it
FEW = 200  # features up to which each has a bound of its own
PROGRESS = 0.01  # of the number of samples: what the logarithms of all bounds must fall by for another round
WRONG = 1e-5  # of the objective: a bound so far above a known point is wrong, less is rounding
SETUP = 3e-6  # seconds for each cell of the table that presolving takes, which looks at the clock seldom
ITERATIONS = 50_000  # of the simplex method in one of the tightening programs


@dataclass(frozen=True)
class Bounds:
    """What holds at some optimum.

    Attributes
    ----------
    M : array of shape (m,)
        1 - y_i f_i <= M_i where z_i = 1.
    U : array of shape (n,)
        The weights of feature j are at most U_j in size.
    norm : float
        |w|_1 <= norm.
    low, high : float
        low <= b <= high.
    fixed : array of bool of shape (m,)
        z_i = 0 for the samples that are fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import Bounds
    >>> Bounds(np.array([1.5, 9.0]), np.ones(3), 2.0, -1.0, 1.0, np.zeros(2, dtype=bool)).fix_safe_samples().fixed
    array([ True, False])
    """

    M: Array
    U: Array
    norm: float
    low: float
    high: float
    fixed: BoolArray

    def fix_safe_samples(self) -> Bounds:
        """A sample that misses its margin by 2 at most is not worth leaving out."""
        return replace(self, fixed=self.fixed | (self.M <= 2.0))


@dataclass(frozen=True)
class ExactAnswer:
    """The best point, a bound that no point is below, their relative gap, and whether it was closed."""

    point: RampPoint
    bound: float
    gap: float
    status: str  # "optimal" or "limit"
    clock: bool
    nodes: int = 0


def distances(ramp: Ramp) -> Array:
    """(m,) the largest distance, in any column, to a sample of the same class."""
    X, y = ramp.data.X, ramp.data.y
    D = np.empty(len(y))
    for side in (1.0, -1.0):
        rows = X[y == side]
        low, high = rows.min(axis=0), rows.max(axis=0)
        D[y == side] = np.maximum(rows - low, high - rows).max(axis=1)
    return D


def first_bounds(ramp: Ramp, UB: float) -> Bounds:
    """M_i = UB D_i, D_i the distance of `distances`; U_j = norm = UB."""
    reach = 1.0 + UB * float(np.abs(ramp.data.X).max(initial=0.0))  # some sample of each class has |f| at least 1
    M, fixed = UB * distances(ramp), np.full(len(ramp.data.y), not ramp.ramp)
    return Bounds(M, np.full(len(ramp.cost), UB), UB, -reach, reach, fixed).fix_safe_samples()


class _RelaxedProgram:
    """The linear program over all points that are no worse than UB, as the bounds have it now.

    Columns: p (d), q (d), b, t (m). t_i in [0, 2] stands for xi_i + 2 z_i: y_i f + (M_i / 2) t_i >= 1 where z_i is free
    (to cover a lack h, z costs 2 / M_i a unit, less than xi), y_i f + t_i >= 1 where it is fixed.
    """

    def __init__(self, ramp: Ramp, bounds: Bounds, UB: float) -> None:
        X, y, top = ramp.data.X, ramp.data.y, ramp.data.top
        m, d = X.shape
        self.clock = ramp.clock
        self.d, self.m, self.y, self.X = d, m, y, X
        yX = y[:, None] * X
        slope = np.where(bounds.fixed, 1.0, 0.5 * bounds.M)
        blocks: list[Any] = [sparse.csr_array(part) for part in (yX, -yX, y[:, None])]
        cover = sparse.hstack([*blocks, sparse.diags_array(slope)], format="csr")
        rows, upper = [self.vector(1.0, 1.0, t=top), self.vector(1.0, 1.0)], [UB * (1 + 1e-6) + 1e-9, bounds.norm]
        # sum |w_k| / U_j <= v_j for the columns of j: times cost_j, added up, the v_j leave and the budget bounds w.
        if len(np.unique(bounds.U)) > 1:  # links and budget, projected on w
            share = (ramp.cost / np.maximum(bounds.U, GONE))[ramp.owner]
            rows.append(self.vector(share, share))
            upper.append(ramp.budget)
        U = bounds.U[ramp.owner]
        self.program = Program(
            np.zeros(2 * d + 1 + m),
            np.concatenate([np.zeros(2 * d), [bounds.low], np.zeros(m)]),
            np.concatenate([U, U, [bounds.high], np.full(m, ramp.top)]),
            sparse.vstack([cover, sparse.csr_array(np.array(rows))]),
            np.concatenate([np.ones(m), np.full(len(rows), -np.inf)]),
            np.concatenate([np.full(m, np.inf), upper]),
            primal=d > m,
        )

    def maximize(self, cost: Array) -> tuple[str, float]:
        """(status, the largest cost'x a little enlarged); infinite where the program did not end."""
        if self.clock.is_up():
            return "limit", np.inf
        self.program.set_costs(np.arange(len(cost)), -cost)
        answer = self.program.solve(Limits(iterations=ITERATIONS, seconds=self.clock.remaining()), reduced_costs=False)
        self.clock.cut = self.clock.cut or answer.clock
        if answer.status != "optimal":
            return answer.status, np.inf
        return "optimal", -answer.value + SAFETY * max(1.0, abs(answer.value))

    def vector(self, p: Array | float = 0.0, q: Array | float = 0.0, b: float = 0.0, t: Array | float = 0.0) -> Array:
        d, out = self.d, np.empty(2 * self.d + 1 + self.m)
        out[:d], out[d : 2 * d], out[2 * d], out[2 * d + 1 :] = p, q, b, t
        return out

    def largest_slack(self, i: int) -> float:
        """The largest 1 - y_i f_i with z_i = 1; 0 where z_i = 1 is not possible."""
        place, two = np.array([2 * self.d + 1 + i]), np.array([2.0])
        # t_i = 2 leaves sample i out; where that is infeasible no point as good as UB does so.
        self.program.set_bounds(place, two, two)
        status, value = self.maximize(self.vector(-self.y[i] * self.X[i], self.y[i] * self.X[i], -self.y[i]))
        self.program.set_bounds(place, np.zeros(1), two)
        return 0.0 if status == "infeasible" else 1.0 + value


def tighten_bounds(ramp: Ramp, bounds: Bounds, UB: float, rounds: int, by_sample: bool = True) -> Bounds:
    """Rounds of linear programs: the norm, the intercept, each feature's weights where they are few, each sample's M.

    With `by_sample` False the M of a class is bounded by one program for the corner of its box, two in all. Bounds that
    the clock leaves no time for stay as they are.
    """
    for _ in range(rounds):
        before, fixed = _size(bounds), int(bounds.fixed.sum())
        if ramp.clock.is_up():
            break
        bounds = _tighten_intercept_and_norm(ramp, bounds, UB)
        if bounds.norm <= GONE:
            return bounds
        if len(ramp.cost) <= FEW:
            bounds = _tighten_features(ramp, bounds, UB)
        bounds = _bound_slack_without_program(ramp, bounds)
        if ramp.clock.is_up():
            break
        bounds = _tighten_samples(ramp, bounds, UB) if by_sample else _tighten_classes(ramp, bounds, UB)
        if bounds.fixed.sum() == fixed and before - _size(bounds) <= PROGRESS * len(bounds.M):
            break
    return bounds


def _size(bounds: Bounds) -> float:
    return float(np.log(np.maximum(bounds.M, 2.0)).sum() + np.log(np.maximum(bounds.U, GONE)).sum())


def _tighten_intercept_and_norm(ramp: Ramp, bounds: Bounds, UB: float) -> Bounds:
    relaxed = _RelaxedProgram(ramp, bounds, UB)
    norm = min(bounds.norm, relaxed.maximize(relaxed.vector(1.0, 1.0))[1])
    high = min(bounds.high, relaxed.maximize(relaxed.vector(b=1.0))[1])
    low = max(bounds.low, -relaxed.maximize(relaxed.vector(b=-1.0))[1])
    M, U = np.minimum(bounds.M, norm * distances(ramp)), np.minimum(bounds.U, norm)
    return replace(bounds, norm=norm, low=low, high=high, M=M, U=U).fix_safe_samples()


def _tighten_features(ramp: Ramp, bounds: Bounds, UB: float) -> Bounds:
    relaxed, U = _RelaxedProgram(ramp, bounds, UB), bounds.U.copy()
    for j in np.flatnonzero(U > GONE):
        if ramp.clock.is_up():
            break
        columns = (ramp.owner == j).astype(float)
        # With one column |w| is p or q, whichever is not 0: two programs, one for each sign, bound it.
        sides = ((columns, columns),) if columns.sum() > 1 else ((columns, 0.0), (0.0, columns))
        U[j] = min(U[j], max(relaxed.maximize(relaxed.vector(p, q))[1] for p, q in sides))
    return replace(bounds, U=np.where(U <= GONE, 0.0, U))


def _bound_slack_without_program(ramp: Ramp, bounds: Bounds) -> Bounds:
    """Without a program: |f - b| is at most what the largest |x_ij| carry within the bounds of w."""
    X, y = np.abs(ramp.data.X), ramp.data.y
    U, out = bounds.U[ramp.owner], np.empty(len(y))
    for i in range(len(y)):
        order = np.argsort(-X[i], kind="stable")
        room = np.minimum(np.cumsum(U[order]), bounds.norm)
        out[i] = float(np.diff(room, prepend=0.0) @ X[i][order])
    M = 1.0 + np.maximum(-y * bounds.low, -y * bounds.high) + out
    return replace(bounds, M=np.minimum(bounds.M, M)).fix_safe_samples()


def _tighten_samples(ramp: Ramp, bounds: Bounds, UB: float) -> Bounds:
    relaxed, M = _RelaxedProgram(ramp, bounds, UB), bounds.M.copy()
    for i in np.flatnonzero(~bounds.fixed):
        if ramp.clock.is_up():
            break
        M[i] = min(M[i], relaxed.largest_slack(int(i)))
    return replace(bounds, M=M).fix_safe_samples()


def _tighten_classes(ramp: Ramp, bounds: Bounds, UB: float) -> Bounds:
    relaxed, M, y = _RelaxedProgram(ramp, bounds, UB), bounds.M.copy(), ramp.data.y
    for side in (1.0, -1.0):
        rows = ramp.data.X[y == side]
        low, high = rows.min(axis=0), rows.max(axis=0)
        cost = relaxed.vector(-low, high, -1.0) if side > 0 else relaxed.vector(high, -low, 1.0)
        M[y == side] = np.minimum(M[y == side], 1.0 + relaxed.maximize(cost)[1])
    return replace(bounds, M=M).fix_safe_samples()


def solve(
    ramp: Ramp,
    start: RampPoint,
    rounds: int = 4,
    limits: Limits | None = None,
    by_sample: bool = True,
) -> ExactAnswer:
    """From a good point: a bound by relaxation, tighten (half of the time, if that is bounded), then branch and bound.

    The answer is recomputed from its weights. Where the clock cuts the work, the bound is the best that is known.
    """
    limits, clock = limits or Limits(), ramp.clock
    first = first_bounds(ramp, start.F)
    known = relaxation(ramp, first)
    bounds = tighten_bounds(ramp.with_clock(clock.part(0.5)), first, start.F, rounds, by_sample)
    # No feature can have a weight: the best point is flat, up to what weights below GONE could change.
    if bounds.norm <= GONE or not (bounds.U > GONE).any():
        best, small = best_of([ramp.flat_point(), start]), min(bounds.norm, GONE * len(bounds.U))
        return _answer_with_gap(ramp, best, known, ramp.flat_point().F - _largest_loss_change(ramp, small), limits.gap)
    moved = _largest_loss_change(ramp, GONE * int((bounds.U <= GONE).sum()))
    below = relaxation(ramp, bounds) - moved
    left = clock.remaining()
    if left is not None and left <= SETUP * ramp.data.X.size:  # the time would be over before the first node
        return _answer_with_gap(ramp, start, known, below, limits.gap, clock=True)
    whole = MixedIntegerProgram(ramp, bounds)
    answer = whole.solve(start, replace(limits, seconds=clock.remaining()))
    if answer.status in ("infeasible", "unbounded"):
        raise SolverError(
            f"HiGHS called a program {answer.status!r} that has a point of value {start.F:.6g}: standardise the table, "
            "or use solver='fast'"
        )
    best = start
    if answer.x is not None:
        features, marked = whole.decode(answer.x)
        if ramp.fits(features):
            brief = ramp.with_clock(clock.at_least(GRACE))
            best = best_of([start, descend_on(brief, features, marked), descend_on(brief, features)])
    proved = _answer_with_gap(ramp, best, known, max(below, answer.bound - moved), limits.gap, answer.clock)
    return replace(proved, nodes=answer.nodes)


def relaxation(ramp: Ramp, bounds: Bounds) -> float:
    """A value that no point within the bounds is below, any number of features allowed.

    With t_i = xi_i + 2 z_i, y_i f + (M_i / 2) t_i >= 1 at a price of top_i (M_i = 2 where z_i is fixed): the l1 machine
    with prices 2 top_i / M_i. Any multipliers of it, shrunk until no column pulls harder than 1, give a bound, so a
    program that the clock cuts leaves one too.
    """
    share = np.where(bounds.fixed, 1.0, 2.0 / np.maximum(bounds.M, 2.0))
    data = HingeData(ramp.data.X, ramp.data.y, ramp.data.top * share)

    def worth(alpha: Array) -> float:
        return float(alpha.sum()) / max(1.0, float(np.abs((alpha * data.y) @ data.X).max(initial=0.0)))

    best = worth(np.abs(even_duals(data.y, data.top)))
    try:
        for fit in answers(begin(data, np.ones(len(ramp.owner)), clock=ramp.clock)):
            best = max(best, worth(np.clip(fit.alpha, 0.0, data.top)))
    except TimeUp:
        pass
    return best * (1.0 - SAFETY)


def _largest_loss_change(ramp: Ramp, small: float) -> float:
    """How far weights of features that are gone, `small` in all, could change the loss."""
    return small * float(ramp.data.top @ np.abs(ramp.data.X).max(axis=1, initial=0.0))


def _answer_with_gap(
    ramp: Ramp, best: RampPoint, known: float, below: float, least_gap: float, clock: bool = False
) -> ExactAnswer:
    """No point is below `known` or `below`; a bound that is above the best point is an error of the solver."""
    bound = max(0.0, known, below)
    if bound > best.F + WRONG * max(best.F, float(ramp.data.top.max(initial=0.0))):
        raise SolverError(
            f"a bound of {bound:.8g} is above a point of value {best.F:.8g}: standardise the table, or use "
            "solver='fast'"
        )
    bound = min(bound, best.F)  # what is left is rounding
    gap = (best.F - bound) / max(best.F, 1e-300)
    return ExactAnswer(best, bound, gap, "optimal" if gap <= least_gap else "limit", clock)


class MixedIntegerProgram:
    """The mixed-integer program: columns p (d), q (d), b, xi (m), z (free samples), v (n).

    Parameters
    ----------
    ramp : Ramp
        The instance.
    bounds : Bounds
        Its constants.
    whole_features : bool, default=True
        Whether v is in {0, 1}; else in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData, Limits, MixedIntegerProgram, Ramp, restrict_program
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> ramp = Ramp(HingeData(X, y, np.full(4, 10.0)), owner=np.arange(2), cost=np.ones(2), budget=1.0)
    >>> part, bounds = restrict_program(ramp, np.arange(2), np.arange(4), np.zeros(4, dtype=bool), 40.0)
    >>> program = MixedIntegerProgram(part, bounds)
    >>> answer = program.solve(None, Limits())
    >>> answer.status, program.decode(answer.x)[0]
    ('optimal', array([0]))
    """

    def __init__(self, ramp: Ramp, bounds: Bounds, whole_features: bool = True) -> None:
        X, y, top = ramp.data.X, ramp.data.y, ramp.data.top
        self.ramp, self.free = ramp, np.flatnonzero(~bounds.fixed)
        m, d, n, k = len(y), X.shape[1], len(ramp.cost), len(self.free)
        self.sizes = np.cumsum([d, d, 1, m, k, n])
        yX = sparse.csr_array(y[:, None] * X)
        pick = sparse.csr_array((np.ones(k), (self.free, np.arange(k))), shape=(m, k))
        eye: Any = sparse.eye_array(m)
        none: Any = sparse.csr_array
        owned = sparse.csr_array((np.ones(d), (ramp.owner, np.arange(d))), shape=(n, d))
        parts: Any = [
            [yX, -yX, none(y[:, None]), eye, pick @ sparse.diags_array(bounds.M[self.free]), None],
            [none((k, d)), none((k, d)), none((k, 1)), pick.T, 2.0 * sparse.eye_array(k), None],
            [owned, owned, None, None, None, -sparse.diags_array(bounds.U)],
            [none((1, d)), none((1, d)), None, None, None, none(ramp.cost[None])],
            [none(np.ones((1, d))), none(np.ones((1, d))), None, None, None, none((1, n))],
        ]
        U = bounds.U[ramp.owner]
        integer = np.zeros(self.sizes[-1], dtype=bool)
        integer[self.sizes[3] : self.sizes[5 if whole_features else 4]] = True
        self.cost = np.concatenate([np.ones(2 * d), [0.0], top, 2.0 * top[self.free], np.zeros(n)])
        self.program = Program(
            self.cost,
            np.concatenate([np.zeros(2 * d), [bounds.low], np.zeros(m + k + n)]),
            np.concatenate([U, U, [bounds.high], np.full(m, ramp.top), np.ones(k), (bounds.U > GONE).astype(float)]),
            sparse.block_array(parts),
            np.concatenate([np.ones(m), np.full(k + n + 2, -np.inf)]),
            np.concatenate([np.full(m, np.inf), np.full(k, 2.0), np.zeros(n), [ramp.budget], [bounds.norm]]),
            integer,
        )

    def solve(self, start: RampPoint | None, limits: Limits) -> Answer:
        """From a point, where it has one."""
        if start is not None:
            self.program.set_start(self.encode(start))
        return self.program.solve(limits)

    def encode(self, start: RampPoint) -> Array:
        """A point as the program's variables."""
        data, x = self.ramp.data, np.zeros(self.sizes[-1])
        d = data.X.shape[1]
        x[start.columns] = np.maximum(start.w, 0.0)
        x[d + start.columns] = np.maximum(-start.w, 0.0)
        x[2 * d] = start.b
        outside = np.maximum(0.0, data.outside(start.w, start.b, start.columns))
        left_out = (outside > 2.0) & self.ramp.ramp
        x[self.sizes[2] : self.sizes[3]] = np.where(left_out, 0.0, np.minimum(outside, self.ramp.top))
        x[self.sizes[3] : self.sizes[4]] = left_out[self.free]
        x[self.sizes[4] + start.features] = 1.0
        return x

    def require_better_with(self, features: IntArray, value: float) -> None:
        """Only points below a value that have one of these features."""
        any_of = np.zeros(self.sizes[-1])
        any_of[self.sizes[4] + features] = 1.0
        rows = sparse.csr_array(np.vstack([self.cost, any_of]))
        self.program.add_rows(rows, np.array([-np.inf, 1.0]), np.array([value, np.inf]))

    def decode(self, x: Array) -> tuple[IntArray, BoolArray]:
        """The features and the samples left out of an answer."""
        marked = np.zeros(len(self.ramp.data.y), dtype=bool)
        marked[self.free] = x[self.sizes[3] : self.sizes[4]] > 0.5
        return np.flatnonzero(x[self.sizes[4] :] > 0.5), marked


# The dynamic adaptive kernel search: small exact programs over promising features and doubtful samples (DAKS).
#
# Every sample is out (its z is 1), in (0) or doubtful (z is to be found), every feature is in the kernel or not. Phase
# 1 is a good point and the pool of others that the search by exchanges met. Phase 2 solves the program without a whole
# budget for the doubtful samples, ranks the features by weight and then by pull, and solves the program on a kernel:
# the features of the pool, which local optima share in part and an exact program recombines, and the best ranked. Phase
# 3 adds the next features of the ranking, a bucket, and asks for a better point that uses one of them. After each
# answer the samples' states follow it, and a descent and exchanges polish it.
#
# What a program does not have is not in it: features outside the kernel, samples that are out. The constants M and U
# are tightened on the small program itself, which is why it is solved in a second where the whole one is not in an
# hour.

IN, OUT, DOUBTFUL = 0, 1, 2
PASSES = 3  # of phases 2 and 3; they end with the first that finds nothing
GROWING = 1  # passes with a ranking and a phase 3
GOOD = 1.3  # points up to so many times the best one propose features for the kernel
LARGEST = 30  # features in a kernel that the points seen propose
RANKED = 10  # and that the ranking does
RELAXED = 60  # features of the program without a whole budget
AGREEING = 2  # answers with the same z after which that is fixed
CELLS = 6e5  # nodes times cells of the program's matrix
STRICT = 1e-6  # of the objective: what a better point must be better by


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
    part = replace(ramp, data=kept, owner=owner, cost=ramp.cost[features])
    first = first_bounds(part, worth)
    bounds = tighten_bounds(part, replace(first, fixed=first.fixed | inside), worth, rounds)
    return None if bounds.norm <= GONE or not (bounds.U > GONE).any() else (part, bounds)


class KernelSearch:
    """The best point, the state of each sample, and what the last answers had in common.

    Parameters
    ----------
    search : VertexSearch
        Exchanges on the instance.
    start : RampPoint
        A point; none that is worse replaces it.
    seen : list of RampPoint
        Further points, whose features are the kernel.
    """

    def __init__(self, search: VertexSearch, start: RampPoint, seen: list[RampPoint]) -> None:
        self.search, self.ramp, self.best, self.seen = search, search.ramp, start, list(seen)
        self.clock = self.ramp.clock
        self.state = self._states(start)
        self.answers: list[RampPoint] = []

    def run(self) -> RampPoint:
        """All passes; where the clock or a fault ends one, `best` is the best point until then."""
        for k in range(PASSES):
            before = self.best
            self.run_pass(k < GROWING)
            if self.clock.is_up() or self.best is before or self.ramp.is_optimal(self.best.F):
                break
        return self.best

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
        limits = Limits(nodes=nodes, stall_nodes=max(nodes // 2, 20), seconds=self.clock.remaining())
        answer = program.solve(start, limits)
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
            self.best = best_of([point, self.search.deepen(point)])
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
