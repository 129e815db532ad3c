"""The best machine within a budget of features: features, weights and samples left out are chosen together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import ColumnView, as_columns
from ..contracts import Array, FitsBudget, IntArray, Path, ProblemView, Solution, Step, StopInfo, is_sparse
from ..errors import InputError, listing, one_of, positive_number, whole_number
from ..problem import WorkDone
from ..solvers import ramp_descent as _ramp
from ..solvers.execution import Clock
from ..solvers.programs import HingeData
from ..solvers.ramp_path import PathAnswer, PathSearch

SOLVERS = ("auto", "daks", "exact", "fast")
SECONDS = {"fast": 60.0, "daks": 180.0, "auto": 180.0, "exact": 600.0}  # where no time_limit is given
SAME = 1e-9  # of an objective: what rounding may change
DENSE = 50_000_000  # cells of a sparse table that may be unpacked


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class Budget(BaseEstimator):
    """The smallest objective of the machine over all sets of features with a total cost of at most `budget`.

    With machine "ramp" it is RL-FS-M, which leaves out samples whose labels are likely to be wrong; with "hinge" it is
    FS-SVM.

    Parameters
    ----------
    budget : float or None, default=10
        Number of features, or the total that their costs may reach; None is no limit: with machine "ramp" it is then
        RL-l1-M.
    solver : "auto", "fast", "daks" or "exact", default="auto"
        Descents and exchanges, at two lower prices of the loss too, whose points are starts at this one ("fast");
        these, then small exact programs ("daks"); these, then branch and bound on the whole program, with a bound on
        how far the answer is from the optimum ("exact"). "auto" is "daks" on at most 500 rows where at most 15 lie on
        the wrong side of the best point, else "fast". A table of at most 30 rows and 120 cells is solved to the optimum
        by each of them; of one or two features all sets are tried where they are few.
    feature_costs : mapping of column to cost, sequence with a cost for each column, or None, default=None
        Cost of each feature; 1 by default, and for columns that a mapping does not name.
    shakes : int, default=20
        Number of random changes at each price after which the exchanges start again; counts of work may end them
        earlier. With 0 there are no further prices.
    time_limit : float or None, default=None
        Seconds after which the best point so far is used; None is 60 for "fast", 180 for "auto" and "daks", 600 for
        "exact". Work is limited by counts first: only a result with status "limit" was cut short by the clock or by a
        fault of the solver, and may differ from run to run.
    start : sequence of BudgetPoint, default=()
        Points of a path (`marginsieve.recipes.ramp_path`) that the search begins with. One that was found for these
        rows at this C and budget is the answer.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import Budget
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = Budget(budget=2, solver="fast")
    >>> selector = SVMSelector(machine="hinge", criterion=None, search=search, threshold="margin", random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    requires: ClassVar[tuple[type, ...]] = (FitsBudget,)
    ranks_by: ClassVar[frozenset[str]] = frozenset()
    multiclass = False  # a budget is shared by the weights of one machine

    budget: float | None = 10
    solver: str = "auto"
    feature_costs: Mapping[str, float] | Sequence[float] | None = None
    shakes: int = 20
    time_limit: float | None = None
    start: Sequence[BudgetPoint] = ()

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        if self.budget is not None:
            positive_number("search", "budget", self.budget)
        one_of("search", "solver", self.solver, SOLVERS)
        whole_number("search", "shakes", self.shakes, 0)
        if self.time_limit is not None:
            positive_number("search", "time_limit", self.time_limit)

    def for_columns(self, names: Sequence[str]) -> Budget:
        """The same with a cost by column name; refuses costs that do not fit the table."""
        costs: Any = self.feature_costs
        if costs is None:
            return self
        if hasattr(costs, "items"):  # a mapping, or a pandas Series
            costs = {str(name): cost for name, cost in costs.items()}
        else:
            ordered = np.ndim(costs) == 1 and not isinstance(costs, (str, set, frozenset))
            values = list(costs) if ordered else None
            if values is None or len(values) != len(names):
                what = repr(costs) if values is None else f"{len(values)} numbers"
                raise InputError(
                    f"search: feature_costs is {what}; it must name columns (x0, x1, ... where they have no names) or "
                    f"have {len(names)} numbers, one a column"
                )
            costs = dict(zip(names, values, strict=True))
        known = set(names)
        if unknown := [name for name in costs if name not in known]:
            raise InputError(f"search: feature_costs names {listing(unknown)}, which the table does not have")
        for name, cost in costs.items():
            if isinstance(cost, bool) or not isinstance(cost, (int, float, np.number)) or not 0 <= cost < np.inf:
                raise InputError(f"search: feature_costs of {name!r} is {cost!r}; it must be a number of 0 or more")
        return replace(self, feature_costs={name: float(cost) for name, cost in costs.items()})

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:
        """Features to keep, then the chosen by the size of their weight, then the others by their gradient at zero."""
        since = time.perf_counter()
        ramp, rows, view = self.instance(problem)
        starts, answer = self._from_start(problem, ramp, rows, view)
        answer = answer or self._solve(ramp, [1.0], [ramp.budget], rng, starts)[1.0, ramp.budget]
        point, bound, status, nodes = answer.point, answer.bound, answer.status, answer.nodes
        # Features without a weight rank below all others, by a gradient mapped into [0, 1).
        pull = _ramp.pulls(ramp, point)
        point, bound = rows.in_units(point), bound / rows.unit
        weight = _ramp.by_feature(ramp, point.columns, np.abs(point.w))
        chosen = np.union1d(point.features, problem.keep).astype(np.intp)
        emptied = not len(chosen)
        if emptied:
            chosen = np.array([int(np.argmax(np.where(ramp.cost <= ramp.budget, pull, -1.0)))], dtype=np.intp)
        score = pull / (1.0 + pull.max(initial=0.0))
        score[chosen] = 1.0 + weight[chosen]
        kept = np.isin(np.arange(len(score)), problem.keep)  # first, so that a head of any size has them
        order: IntArray = np.lexsort((-score, ~kept)).astype(np.intp)
        spent = float(self.prices(problem.table.names)[chosen].sum()) if not emptied else 0.0
        stop = self._stop(len(chosen), spent, point.F, bound, status, nodes, emptied)
        solution = _solution(problem, view, rows, point, chosen, bound, status)
        # One program, so one step: the path has no other sizes that were solved.
        step = Step(len(chosen), point.F, solution.residual, time.perf_counter() - since)
        problem.count(WorkDone())
        return Path(order, score, (step,), str(stop), stop=stop, solutions=(solution,))

    def _stop(
        self, size: int, spent: float, objective: float, bound: float, status: str, nodes: int, emptied: bool
    ) -> StopInfo:
        """The program's objective, the bound below it, and how it was solved."""
        paid = "no budget" if self.budget is None else f"{spent:g} of a budget of {self.budget:g} spent"
        text = f"{self.solver} ({status}): objective {objective:.5g}, {paid}"
        if emptied:
            best = "at the optimum" if status == "optimal" else "in the best solution known"
            text = f"no feature has a weight {best} at this C ({size} kept): raise C"
        budget = None if self.budget is None else float(self.budget)
        details: dict[str, Any] = {"spent": spent, "budget": budget, "objective": objective}
        details |= {"bound": None if np.isnan(bound) else bound, "status": status, "nodes": nodes}
        return StopInfo(size, text, details, emptied=emptied, costs_may_empty=True)

    def instance(self, problem: ProblemView) -> tuple[_ramp.Ramp, MergedRows, ColumnView]:
        """The program, the rows it was made of, and what its columns are."""
        view = as_columns(problem.view())
        machine = problem.machine
        assert isinstance(machine, FitsBudget)
        cost, budget = self._costs(problem)
        rows = MergedRows.from_arrays(_dense(view.X), problem.y[0], machine.C * problem.cost[0])
        return _ramp.Ramp(rows.data, view.owner, cost, budget, machine.truncated), rows, view

    def prices(self, names: Sequence[str]) -> Array:
        """What columns cost, costs being by name."""
        costs = self.feature_costs or {}
        assert isinstance(costs, Mapping)
        return np.array([float(costs.get(name, 1.0)) for name in names])

    def _costs(self, problem: ProblemView) -> tuple[Array, float]:
        """Costs and budget; features to keep are paid for beforehand."""
        cost = self.prices(problem.table.names)
        kept = float(cost[problem.keep].sum())
        left = float(cost.sum() if self.budget is None else self.budget) - kept
        if left < 0:
            raise InputError(
                f"search: budget is {self.budget!r}, less than the {kept:g} that the features to keep cost"
            )
        # What is kept anyway takes nothing of the rest of the budget.
        cost[problem.keep] = 0.0
        if not (cost <= left).any():
            raise InputError(
                f"search: budget is {self.budget!r} and no feature costs so little: the cheapest costs {cost.min():g}"
            )
        unit = float(cost.max()) or 1.0  # the solver's tolerances are for numbers around 1
        return cost / unit, left / unit

    def _solve(
        self,
        ramp: _ramp.Ramp,
        prices: Sequence[float],
        budgets: Sequence[float],
        rng: np.random.Generator,
        starts: Sequence[_ramp.RampPoint] = (),
    ) -> dict[tuple[float, float], PathAnswer]:
        """The answers at prices, factors of the instance's, and budgets."""
        seconds = SECONDS[self.solver] if self.time_limit is None else self.time_limit
        clock = Clock(seconds * len(set(prices)) * len(set(budgets)))
        return PathSearch(ramp, prices, budgets, rng, self.shakes, clock).run(self.solver, starts)

    def solve_path(
        self, problem: ProblemView, C: Sequence[float], budgets: Sequence[float], rng: np.random.Generator
    ) -> list[BudgetPoint]:
        """The best machines at several values of C and budgets, found together.

        Parameters
        ----------
        problem : ProblemView
            What a fit hands to its search.
        C : sequence of float
            Costs of a margin error.
        budgets : sequence of float
            Budgets; that of the search does not count.
        rng : Generator
            For random changes.

        Returns
        -------
        list of BudgetPoint
            One for each C and budget.
        """
        by_scaled = {replace(self, budget=budget)._costs(problem)[1]: float(budget) for budget in budgets}
        ramp, rows, view = replace(self, budget=max(budgets)).instance(problem)
        assert isinstance(problem.machine, FitsBudget)
        unit = problem.machine.C
        by_price = {float(value) / unit: float(value) for value in C}
        answers = self._solve(ramp, list(by_price), list(by_scaled), rng)
        names = problem.table.names
        points = []
        for (price, scaled), answer in answers.items():
            point = rows.in_units(answer.point)
            weights = {_column_name(view, names, int(k)): float(w) for k, w in zip(point.columns, point.w, strict=True)}
            features = tuple(names[j] for j in np.union1d(point.features, problem.keep).astype(int))
            objective, bound = point.F, answer.bound / rows.unit
            points.append(
                BudgetPoint(
                    by_price[price], by_scaled[scaled], objective, bound, answer.status, features, weights, point.b
                )
            )
        return points

    def _from_start(
        self, problem: ProblemView, ramp: _ramp.Ramp, rows: MergedRows, view: ColumnView
    ) -> tuple[list[_ramp.RampPoint], PathAnswer | None]:
        """The points of the path to start from, and the answer where one of them is that of this program."""
        names, points = problem.table.names, list[_ramp.RampPoint]()
        place = {_column_name(view, names, k): k for k in range(len(view.owner))}
        assert isinstance(problem.machine, FitsBudget)
        for start in self.start:
            if not set(start.weights) <= set(place):
                continue  # a column that does not vary in these rows
            columns = np.array([place[name] for name in start.weights], dtype=np.intp)
            order = np.argsort(columns)
            w = np.array(list(start.weights.values()))[order] * rows.unit
            point = ramp.point_at(columns[order], w, start.intercept)
            points.append(point)
            same = start.C == problem.machine.C and start.budget == self.budget
            if same and abs(point.F / rows.unit - start.objective) <= SAME * start.objective:
                return points, PathAnswer(point, start.bound * rows.unit, start.status)
        return points, None


def _column_name(view: ColumnView, names: Sequence[str], k: int) -> tuple[str, float]:
    """A column by the name of its feature and its level; nan-free, so that equal names are equal."""
    feature, level = view.key(k)
    return names[feature], -1.0 if level is None else level


@dataclass(frozen=True)
class BudgetPoint:
    """The best machine known at one C within one budget.

    Attributes
    ----------
    C, budget : float
        Cost of a margin error, and what the features may cost.
    objective : float
        Its objective.
    bound : float
        No machine has a lower one; nan where that is not known.
    status : str
        "optimal", "limit" (a limit or a fault ended the work) or "heuristic".
    features : tuple of str
        Its features, those to keep among them.
    weights : dict
        Weights by feature and level (-1 for numbers), of the columns as the machine sees them.
    intercept : float
        Its intercept.

    Examples
    --------
    >>> from marginsieve.searches import BudgetPoint
    >>> BudgetPoint(1.0, 2, 8.5, float("nan"), "heuristic", ("age",), {("age", -1.0): 0.5}, 0.1).features
    ('age',)
    """

    C: float
    budget: float
    objective: float
    bound: float
    status: str
    features: tuple[str, ...]
    weights: Mapping[tuple[str, float], float]
    intercept: float


@dataclass(frozen=True)
class MergedRows:
    """The rows of a table, equal ones with equal labels as one, in an order that does not depend on the table's.

    So a row with a weight of 2 is the row twice. The program has the cells over the largest of them, `unit`, and prices
    times it, so that its weights and its objective are `unit` times the table's, and tolerances mean the same whatever
    the units are. `place` (m,) is where each row went.
    """

    data: HingeData
    X: Array
    y: Array
    top: Array
    place: IntArray
    unit: float

    @classmethod
    def from_arrays(cls, X: Array, y: Array, top: Array) -> MergedRows:
        # Rows as opaque blocks of bytes: unique sorts them whole, labels first.
        both = np.ascontiguousarray(np.column_stack([y, X]))
        _, first, place = np.unique(
            both.view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).ravel(),
            return_index=True,
            return_inverse=True,
        )
        unit = float(np.abs(X).max(initial=0.0)) or 1.0
        price = unit * np.bincount(place, weights=top).astype(float)
        return cls(
            HingeData(np.asfortranarray(X[first] / unit), y[first], price), X, y, top, place.astype(np.intp), unit
        )

    def alpha(self, alpha: Array) -> Array:
        """(m,) dual variables of all rows: equal rows share theirs by their price."""
        # alpha_i <= top_i has to hold for each row again.
        total = np.maximum(self.data.top[self.place], 1e-300)
        return np.asarray(alpha[self.place] * self.top / total)

    def in_units(self, point: _ramp.RampPoint) -> _ramp.RampPoint:
        """A point of the program as one of the table."""
        return replace(point, w=point.w / self.unit, F=point.F / self.unit)


def _dense(X: Any) -> Array:
    if is_sparse(X):
        if X.shape[0] * X.shape[1] > DENSE:
            raise InputError(
                f"search: a budget needs a dense table and this sparse one has {X.shape[0]} x {X.shape[1]} cells: "
                'use prefilter=("fast", 2000)'
            )
        return np.asfortranarray(X.toarray())
    return np.asarray(X)


def _solution(
    problem: ProblemView,
    view: ColumnView,
    rows: MergedRows,
    point: _ramp.RampPoint,
    chosen: IntArray,
    bound: float,
    status: str,
) -> Solution:
    """The point as a solution on the chosen features alone."""
    small = as_columns(problem.view(chosen))
    # Columns are matched by feature and level: the view of the chosen features numbers them anew.
    weight = {view.key(int(k)): float(w) for k, w in zip(point.columns, point.w, strict=True)}
    expanded = np.array([weight.get(small.key(k), 0.0) for k in range(len(small.owner))])
    outside = 1.0 - rows.y * (rows.X[:, point.columns] @ point.w + point.b)
    gap = (point.F - bound) / max(point.F, 1e-300)
    return Solution(
        rows.alpha(point.alpha) * rows.y,
        point.b,
        point.F,
        0.0 if np.isnan(gap) else gap,
        np.maximum(outside, 0.0),
        weights=small.by_feature(np.abs(expanded)),
        expanded=expanded,
        bound=bound,
        status=status,
    )
