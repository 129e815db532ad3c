"""Linear and mixed-integer programs in HiGHS, built once, changed in place; with them the l1 machine with hinge loss.

min  cost'x    subject to  row_lower <= A x <= row_upper,  lower <= x <= upper,  some x whole numbers
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array, BoolArray, IntArray, Matrix, is_sparse
from ..errors import SolverError
from .execution import Clock, TimeUp

# HiGHS's ways to end, in our words. A fault raises SolverError, and so does a status that is not here; who holds a
# point goes on with that one.
STATES = {"kOptimal": "optimal", "kModelEmpty": "optimal", "kUnbounded": "unbounded"}
STATES |= dict.fromkeys(("kInfeasible", "kUnboundedOrInfeasible"), "infeasible")
STATES |= dict.fromkeys(("kIterationLimit", "kTimeLimit", "kSolutionLimit"), "limit")
STATES |= dict.fromkeys(("kObjectiveBound", "kObjectiveTarget"), "limit")
STATES |= dict.fromkeys(("kInterrupt", "kHighsInterrupt"), "interrupted")
STATES |= dict.fromkeys(("kNotset", "kLoadError", "kModelError", "kPresolveError", "kSolveError"), "fault")
STATES |= dict.fromkeys(("kPostsolveError", "kUnknown", "kMemoryLimit"), "fault")
NEARLY = 0.99  # of its seconds: a program that ends without an answer after so many was cut by the clock

# What HiGHS does before the first node without looking at the clock: on 300 x 3,000 cells it took 8 s, and tables have
# no symmetry and come with a start.
UNCLOCKED = ("mip_detect_symmetry", "mip_heuristic_run_feasibility_jump")


@dataclass(frozen=True)
class Limits:
    """What bounds the work: iterations and nodes decide results; seconds are a backstop, an answer says if they cut.

    Parameters
    ----------
    iterations : int or None, default=None
        Iterations of the simplex method in a linear program.
    nodes : int or None, default=None
        Nodes of branch and bound.
    stall_nodes : int or None, default=None
        Nodes without a better solution.
    seconds : float or None, default=None
        Seconds.
    gap : float, default=1e-4
        Relative gap at which branch and bound ends.

    Examples
    --------
    >>> from marginsieve.solvers import Limits
    >>> Limits(nodes=100).gap
    0.0001
    """

    iterations: int | None = None
    nodes: int | None = None
    stall_nodes: int | None = None
    seconds: float | None = None
    gap: float = 1e-4


@dataclass(frozen=True)
class Answer:
    """How a program ended.

    Attributes
    ----------
    status : str
        "optimal", "limit" or "interrupted" (with or without a point), "infeasible" or "unbounded".
    x : array of shape (n,) or None
        The point.
    value : float
        Its objective.
    bound : float
        No feasible point is below.
    row_dual : array of shape (r,) or None
        Dual variables of the rows.
    clock : bool
        Whether seconds ended it.
    nodes : int
        Nodes of branch and bound.
    col_dual : array of shape (n,) or None
        Reduced costs.

    Examples
    --------
    >>> from marginsieve.solvers import Answer
    >>> Answer("infeasible", None, float("inf"), float("inf"), None, clock=False).nodes
    0
    """

    status: str
    x: Array | None
    value: float
    bound: float
    row_dual: Array | None
    clock: bool
    nodes: int = 0
    col_dual: Array | None = None


class Program:
    """One model. Rows are given as a dense or sparse matrix (r, n); `integer` (n,) marks whole numbers."""

    def __init__(
        self,
        cost: Array,
        lower: Array,
        upper: Array,
        A: Any,
        row_lower: Array,
        row_upper: Array,
        integer: BoolArray | None = None,
        primal: bool = False,
    ) -> None:
        import highspy

        self._highspy, self._h = highspy, highspy.Highs()
        self._options: dict[str, Any] = {}
        self.whole = integer is not None and bool(integer.any())
        for name, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
            self._set(name, value)
        if self.whole:
            self._set("mip_feasibility_tolerance", 1e-9)
            for name in UNCLOCKED:
                self._set(name, False)
        else:
            # Presolve would throw the last basis away, which is nearly optimal where one row or one bound has changed.
            self._set("presolve", "off")  # small programs, solved again and again from the last basis
            self._set("simplex_strategy", 4 if primal else 1)
        lp: Any = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(cost), len(row_lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
        lp.row_lower_, lp.row_upper_ = row_lower, row_upper
        matrix = lp.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_, matrix.index_, matrix.value_ = _by_row(A)
        if self.whole:
            kind = highspy.HighsVarType
            # Continuous columns have to be named too as soon as some are whole numbers.
            lp.integrality_ = [kind.kInteger if whole else kind.kContinuous for whole in np.asarray(integer)]
        self._check(self._h.passModel(lp), "take the model")

    @property
    def rows(self) -> int:
        return int(self._h.getNumRow())

    def set_costs(self, columns: IntArray, values: Array) -> None:
        """Other costs for some columns."""
        self._check(self._h.changeColsCost(len(columns), _int(columns), values), "change costs")

    def set_bounds(self, columns: IntArray, lower: Array, upper: Array) -> None:
        """Other bounds for some columns."""
        self._check(self._h.changeColsBounds(len(columns), _int(columns), lower, upper), "change bounds")

    def set_row_bounds(self, rows: IntArray, lower: Array, upper: Array) -> None:
        """Other bounds for some rows."""
        self._check(self._h.changeRowsBounds(len(rows), _int(rows), lower, upper), "change rows")

    def add_rows(self, A: Any, lower: Array, upper: Array) -> None:
        """Further rows (k, n)."""
        start, index, value = _by_row(A)
        self._check(self._h.addRows(len(lower), lower, upper, len(value), start[:-1], index, value), "add rows")

    def delete_rows(self, rows: IntArray) -> None:
        """Rows leave, the others close up."""
        self._check(self._h.deleteRows(len(rows), _int(rows)), "delete rows")

    def clear_basis(self) -> None:
        """The next solve begins from nothing."""
        self._check(self._h.clearSolver(), "forget the last basis")

    def set_start(self, x: Array) -> None:
        """A point to begin a mixed-integer search with."""
        solution = self._highspy.HighsSolution()
        solution.col_value = list(x)
        solution.value_valid = True
        self._check(self._h.setSolution(solution), "take a start")

    def solve(self, limits: Limits | None = None, reduced_costs: bool = True) -> Answer:
        """Solve from where the last solve ended; reduced costs are read where they are asked for."""
        limits, since = limits or Limits(), time.perf_counter()
        if limits.seconds is not None and limits.seconds <= 0.0:
            return Answer("limit", None, np.inf, -np.inf, None, clock=True)
        self._limit(limits)
        self._run()
        status = self._h.getModelStatus()
        if not self.whole and status == self._highspy.HighsModelStatus.kOptimal:
            return self._optimum(reduced_costs)
        # Where the time ends before the first node, HiGHS has no status of its own for it ("Not Set").
        late = limits.seconds is not None and time.perf_counter() - since >= NEARLY * limits.seconds
        info, state = self._h.getInfo(), self._state_of(status, late)
        solution = self._h.getSolution()
        stopped = state in ("limit", "interrupted")
        feasible = state == "optimal" or (stopped and info.primal_solution_status == 2)  # 2: feasible
        has_point = bool(solution.value_valid) and feasible
        value = float(info.objective_function_value) if has_point else np.inf
        return Answer(
            state,
            np.array(solution.col_value) if has_point else None,
            value,
            self._bound(info.mip_dual_bound, status) if self.whole else (value if state == "optimal" else -np.inf),
            np.array(solution.row_dual) if has_point and solution.dual_valid else None,
            status == self._highspy.HighsModelStatus.kTimeLimit or (late and state == "limit"),
            max(int(info.mip_node_count), 0) if self.whole else 0,
            np.array(solution.col_dual) if reduced_costs and has_point and solution.dual_valid else None,
        )

    def _optimum(self, reduced_costs: bool) -> Answer:
        """The answer of a linear program that was solved: where there are thousands, reading them takes its time."""
        solution, value = self._h.getSolution(), float(self._h.getObjectiveValue())
        x, dual = np.array(solution.col_value), np.array(solution.row_dual)
        reduced = np.array(solution.col_dual) if reduced_costs else None
        return Answer("optimal", x, value, value, dual, False, 0, reduced)

    def write(self, path: str) -> None:
        """The model as a file in MPS format, for other solvers; columns keep their order."""
        self._check(self._h.writeModel(path), "write the model")

    def _run(self) -> None:
        """Run; Ctrl-C stops a mixed-integer search within a moment and is raised again."""
        if not self.whole:
            self._h.run()
            return
        pressed: list[KeyboardInterrupt] = []

        def look(_kind: Any, _message: str, _out: Any, control: Any, _user: Any) -> None:
            try:  # a signal is delivered where Python runs, which is here
                control.user_interrupt = int(bool(pressed) or self.should_stop())
            except KeyboardInterrupt as stop:
                pressed.append(stop)
                control.user_interrupt = 1

        self._h.setCallback(look, None)
        self._h.startCallback(self._highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
        try:
            self._h.run()
        finally:
            self._h.stopCallback(self._highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
        if pressed:
            raise pressed[0]

    def should_stop(self) -> bool:
        """Whether a search is to stop; for those who have their own reason."""
        return False

    def _bound(self, bound: float, status: Any) -> float:
        """HiGHS's bound, which means nothing where it ended without a status."""
        return float(bound) if STATES.get(status.name, "fault") != "fault" else -np.inf

    def _state_of(self, status: Any, late: bool) -> str:
        state = STATES.get(status.name, "fault")
        if state != "fault" or late:
            return "limit" if state == "fault" else state
        raise SolverError(
            f"HiGHS ended with {self._h.modelStatusToString(status)!r} on a program of {self._h.getNumCol()} columns "
            f"and {self.rows} rows: rescale the table (standardize=True), or lower C"
        )

    def _limit(self, limits: Limits) -> None:
        whole = 2**31 - 1
        self._set("time_limit", np.inf if limits.seconds is None else self._h.getRunTime() + limits.seconds)
        if not self.whole:
            self._set("simplex_iteration_limit", whole if limits.iterations is None else limits.iterations)
            return
        self._set("mip_rel_gap", limits.gap)
        self._set("mip_max_nodes", whole if limits.nodes is None else limits.nodes)
        self._set("mip_max_stall_nodes", whole if limits.stall_nodes is None else limits.stall_nodes)

    def _set(self, name: str, value: Any) -> None:
        if self._options.get(name) != value:
            self._check(self._h.setOptionValue(name, value), f"set {name}")
            self._options[name] = value

    def _check(self, status: Any, what: str) -> None:
        if status == self._highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS could not {what}")


def _by_row(A: Any) -> tuple[Any, Any, Array]:
    """A matrix row by row: starts, columns, values."""
    if is_sparse(A):
        rows = sparse.csr_array(A)
        return _int(rows.indptr), _int(rows.indices), rows.data.astype(float)
    r, n = A.shape
    return _int(np.arange(r + 1) * n), _int(np.tile(np.arange(n), r)), np.ascontiguousarray(A, dtype=float).ravel()


def _int(values: Any) -> Any:
    return np.asarray(values, dtype=np.int32)


# Linear machines with an l1 penalty and hinge loss, by the dual linear program.
#
#     min over w, b of  sum_k p_k |w_k| + sum_i top_i max(0, 1 - y_i (x_i'w + b))
#   = max over alpha of  sum(alpha),   0 <= alpha_i <= top_i,  sum(alpha y) = 0,  |sum_i alpha_i y_i x_ik| <= p_k
#
# The dual has a row for each column of the table and a bounded variable for each sample: with few columns the basis is
# tiny, and the last basis stays good when a column joins as a row. Wide tables get their rows on demand: a row that is
# not there and not broken costs nothing.

FIRST = 80  # rows of a wide table to begin with
NEXT = 20  # beside those with a weight, where a similar program was solved before
MORE = 80  # rows that join at a time
BROKEN = 1e-7  # a row may be broken by so much, of its price
ZERO = 1e-9  # a weight below this is none
LEAST = 1e-6  # a price below this is this
GAP = 1e-6  # relative duality gap within which a program counts as solved
ITERATIONS = 200_000  # of the simplex method in one program
CYCLING = 20_000  # of them from the last basis, before it is given up and the program solved anew


@dataclass(frozen=True)
class HingeData:
    """The rows of a linear machine.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        The columns.
    y : array of shape (m,)
        Labels -1 and +1.
    top : array of shape (m,)
        Price of each sample's loss.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.solvers import HingeData
    >>> data = HingeData(np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([-1.0, 1.0]), np.ones(2))
    >>> data.outside(np.array([1.0]), -1.0, np.array([0]))
    array([0., 0.])
    """

    X: Matrix
    y: Array
    top: Array

    def some(self, columns: IntArray | list[int]) -> Array:
        """(m, k) some columns, dense."""
        part = self.X[:, columns]
        return np.asarray(part.toarray() if is_sparse(part) else part)

    def outside(self, w: Array, b: float, columns: IntArray) -> Array:
        """(m,) 1 - y f: what is missing to the margin."""
        live = np.flatnonzero(w)
        return np.asarray(1.0 - self.y * (self.some(columns[live]) @ w[live] + b))


@dataclass(frozen=True)
class Fit:
    """Weights of some columns, intercept, dual variables (m,) and the program's value."""

    columns: IntArray
    w: Array
    b: float
    alpha: Array
    value: float


class HingeProgram:
    """The dual program over some columns; others join and leave, samples are left out.

    A program that the clock cuts raises `TimeUp`.
    """

    def __init__(self, data: HingeData, columns: IntArray, prices: Array, clock: Clock | None = None) -> None:
        self.data, self.prices, self.clock = data, prices, clock or Clock()
        self.columns = [int(k) for k in columns]
        m = len(data.y)
        self._marked = np.zeros(m, dtype=bool)
        # The first row is the equality, whose dual is the intercept; those of the columns have the weights as duals.
        A = np.vstack([data.y, (data.y[:, None] * data.some(self.columns)).T])
        p = self.prices[self.columns]
        lower, upper = np.concatenate([[0.0], -p]), np.concatenate([[0.0], p])
        self.program = Program(-np.ones(m), np.zeros(m), data.top.copy(), A, lower, upper)

    def join(self, columns: IntArray) -> None:
        p = self.prices[columns]
        self.program.add_rows((self.data.y[:, None] * self.data.some(columns)).T, -p, p)
        self.columns += [int(k) for k in columns]

    def leave(self, columns: IntArray) -> None:
        """Columns that are not looked at any more."""
        places = {self.columns.index(int(k)) for k in columns}
        self.program.delete_rows(1 + np.array(sorted(places)))
        self.columns = [k for place, k in enumerate(self.columns) if place not in places]

    def silence(self, columns: IntArray, silent: bool = True) -> None:
        """Columns whose weight must be 0: their rows are not bounded any more; or they are again."""
        # A dual row without bounds is a weight of 0: the basis stays, where deleting the row would lose it.
        p = np.full(len(columns), np.inf) if silent else self.prices[columns]
        self.program.set_row_bounds(np.array([1 + self.columns.index(int(k)) for k in columns]), -p, p)

    def leave_out(self, marked: BoolArray) -> None:
        """The samples that do not count; all others do."""
        changed = np.flatnonzero(marked != self._marked)
        if len(changed):
            top = np.where(marked[changed], 0.0, self.data.top[changed])
            self.program.set_bounds(changed, np.zeros(len(changed)), top)
            self._marked = marked.copy()

    def reprice(self, prices: Array) -> None:
        """Other prices for all columns."""
        self.prices = np.maximum(prices, LEAST)
        p = self.prices[self.columns]
        self.program.set_row_bounds(1 + np.arange(len(p)), -p, p)

    def solve(self) -> Fit:
        alpha, dual, value = _optimum(self.program, self.clock)
        w = -dual[1:]
        w[np.abs(w) < ZERO] = 0.0
        return Fit(np.array(self.columns, dtype=np.intp), w, -float(dual[0]), alpha, -value)


def _optimum(program: Program, clock: Clock) -> tuple[Array, Array, float]:
    """The point, the rows' duals and the objective; where the simplex method cycles it begins anew."""
    # From the last basis a few pivots are usually enough; where they are thousands the simplex method is cycling.
    answer = _in_time(program, CYCLING, clock)
    if answer.status == "limit":
        program.clear_basis()
        answer = _in_time(program, ITERATIONS, clock)
    if answer.status != "optimal" or answer.x is None or answer.row_dual is None:
        raise SolverError(f"HiGHS stopped at {answer.status!r} in a linear program of {program.rows} rows")
    return answer.x, answer.row_dual, answer.value


def _in_time(program: Program, iterations: int, clock: Clock) -> Answer:
    if clock.is_up():
        raise TimeUp
    answer = program.solve(Limits(iterations=iterations, seconds=clock.remaining()), reduced_costs=False)
    if answer.clock:
        clock.cut = True
        raise TimeUp
    return answer


def even_duals(y: Array, top: Array) -> Array:
    """(m,) alpha y with every sample of the cheaper class at its price and the other class shrunk to the same sum."""
    sides = [float(top[y == side].sum()) for side in (1.0, -1.0)]
    return np.asarray(y * top * np.where(y > 0, min(sides) / sides[0], min(sides) / sides[1]))


def least_pull(data: HingeData) -> float:
    """How hard the column that pulls hardest pulls where no weight differs from 0: at prices `top` / this, one enters.

    Without weights the cheaper class has alpha = top and the other any alpha of the same sum: the least, over these, of
    the hardest pull, a linear program with the pull as its last variable. Its rows join on demand.
    """
    side = 1.0 if data.top[data.y > 0].sum() <= data.top[data.y < 0].sum() else -1.0
    held, c, m = data.y == side, even_duals(data.y, data.top), len(data.y)
    pull = np.abs(np.asarray(c @ data.X))
    program: Program | None = None
    looked = np.zeros(len(pull), dtype=bool)
    least = 0.0
    while np.any(new := (pull > least * (1.0 + BROKEN)) & ~looked):
        places = np.flatnonzero(new)[np.argsort(-pull[new], kind="stable")[:MORE]]
        looked[places] = True
        rows = (data.y[:, None] * data.some(places)).T
        A = np.hstack([np.vstack([rows, -rows]), np.full((2 * len(rows), 1), -1.0)])
        low, high = np.full(len(A), -np.inf), np.zeros(len(A))
        if program is None:
            A, low, high = np.vstack([np.append(data.y, 0.0), A]), np.append(0.0, low), np.append(0.0, high)
            lower, upper = np.append(np.where(held, data.top, 0.0), 0.0), np.append(data.top, np.inf)
            program = Program(np.append(np.zeros(m), 1.0), lower, upper, A, low, high)
        else:
            program.add_rows(A, low, high)
        x, _, least = _optimum(program, Clock())
        pull = np.abs(np.asarray((x[:-1] * data.y) @ data.X))
    return least


def solve_hinge(data: HingeData, near: tuple[Array, Array] | None = None, clock: Clock | None = None) -> Fit:
    """Over all columns of the table; `near` (weights, alpha y) is the answer to a similar program."""
    return finish(begin(data, np.ones(data.X.shape[1]), near, clock))


def begin(
    data: HingeData, prices: Array, near: tuple[Array, Array] | None = None, clock: Clock | None = None
) -> HingeProgram:
    """The program over the columns that pull hardest."""
    p, d = np.maximum(prices, LEAST), data.X.shape[1]
    # Columns join in the order of their pull: that of a similar program, or of an alpha that is optimal at w = 0.
    weight, c = (np.zeros(d), even_duals(data.y, data.top)) if near is None else near
    pull = np.abs(np.asarray(c @ data.X)) / p
    pull[weight != 0] = np.inf
    most = FIRST if near is None else int(np.count_nonzero(weight)) + NEXT
    return HingeProgram(data, np.sort(np.argsort(-pull, kind="stable")[:most]), p, clock)


def finish(program: HingeProgram) -> Fit:
    """The answer over all columns of the table: rows that it breaks join until there are none."""
    *_, fit = answers(program)
    return fit


def answers(program: HingeProgram) -> Iterator[Fit]:
    """The answers on the way to that of `finish`, which is the last."""
    data, p = program.data, program.prices
    while True:
        fit = program.solve()
        yield fit
        if len(program.columns) == len(p):
            return
        # A row that is not there but holds at this alpha would change nothing: w_k = 0 is optimal in the whole program.
        over = np.abs(np.asarray((fit.alpha * data.y) @ data.X)) - p * (1.0 + BROKEN)
        over[program.columns] = 0.0
        broken = np.flatnonzero(over > 0.0)
        if not len(broken):
            return
        program.join(np.sort(broken[np.argsort(-over[broken], kind="stable")[:MORE]]))
