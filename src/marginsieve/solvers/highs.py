"""Linear and mixed-integer programs in HiGHS: built once, changed in place, every answer with its status and bound.

min  cost'x    subject to  row_lower <= A x <= row_upper,  lower <= x <= upper,  some x whole numbers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array, BoolArray, IntArray, is_sparse
from ..errors import SolverError

STATES = {"kOptimal": "optimal", "kUnbounded": "unbounded"}  # HiGHS's ways to end, in our words
STATES |= dict.fromkeys(("kInfeasible", "kUnboundedOrInfeasible"), "infeasible")
STATES |= dict.fromkeys(("kIterationLimit", "kTimeLimit", "kSolutionLimit", "kObjectiveBound", "kInterrupt"), "limit")

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
        "optimal", "limit" (with or without a point), "infeasible" or "unbounded".
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
        self._limit(limits or Limits())
        self._run()
        status = self._h.getModelStatus()
        if not self.whole and status == self._highspy.HighsModelStatus.kOptimal:
            return self._optimum(reduced_costs)
        info, state = self._h.getInfo(), self._state_of(status)
        solution = self._h.getSolution()
        feasible = state == "optimal" or (state == "limit" and info.primal_solution_status == 2)  # 2: feasible
        has_point = bool(solution.value_valid) and feasible
        value = float(info.objective_function_value) if has_point else np.inf
        return Answer(
            state,
            np.array(solution.col_value) if has_point else None,
            value,
            float(info.mip_dual_bound) if self.whole else (value if state == "optimal" else -np.inf),
            np.array(solution.row_dual) if has_point and solution.dual_valid else None,
            status == self._highspy.HighsModelStatus.kTimeLimit,
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

    def _state_of(self, status: Any) -> str:
        if status.name in STATES:
            return STATES[status.name]
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
