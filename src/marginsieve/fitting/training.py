"""From a training part to a path, and from a path and a size to a model.

part -> prepare -> search -> Path;   Path, size -> Model: the machine refitted on the chosen features
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..contracts import (
    Array,
    BatchedSearch,
    BoolArray,
    HoldsOut,
    IntArray,
    Machine,
    Matrix,
    Path,
    Refines,
    Solution,
    Step,
    View,
    is_sparse,
)
from ..errors import InputError
from ..problem import Problem
from .batched_searches import TrainingPart, inside_batch_fits, rank_batched
from .preparation import Prepared, Scaling, on_device, prepare, with_validation
from .settings import Plan
from .training_rows import Part

GROWN_ROWS = 1000  # up to which a kernel matrix over training and test rows grows from size to size


@dataclass(frozen=True)
class Searched:
    """A prepared part and a path over the features of its table: enough to refit on any of the path's subsets."""

    ready: Prepared
    path: Path

    @property
    def problem(self) -> Problem:
        """The problem over the features that vary."""
        return self.ready.problem

    def with_weights(self, feature_weight: Array) -> Searched:
        """The same with other weights of the kernel."""
        return replace(self, ready=self.ready.with_weights(feature_weight))

    def with_machine(self, machine: Machine) -> Searched:
        """The same path for another machine, with counts of its own."""
        return replace(self, ready=replace(self.ready, problem=self.problem.with_machine(machine)))


@dataclass(frozen=True)
class Model:
    """A machine on some features; `view` is what it was solved on: a Gram or columns."""

    machine: Machine
    features: IntArray
    scaling: Scaling | None
    view: View
    solutions: tuple[Solution, ...]

    def rows(self, Z: Matrix) -> Matrix:
        """Rows of the whole table as the machine sees them."""
        part = Z[:, self.features]
        if is_sparse(part) and not self.view.table.is_sparse:
            part = part.toarray()
        return part if self.scaling is None else self.scaling.apply(part)

    def values(self, rows: Matrix) -> Array:
        """(rows, k) decision values of rows of the selected features, scaled."""
        return np.column_stack([self.machine.decision(one, self.view, rows) for one in self.solutions])

    def decision(self, Z: Matrix) -> Array:
        """(rows, k) decision values of rows of the whole table."""
        with np.errstate(all="ignore"):
            return finite(self.values(self.rows(Z)))

    def among(self, columns: IntArray) -> Model:
        """The same model in a wider table, of which it has seen these columns."""
        return replace(self, features=columns[self.features])

    @property
    def models(self) -> tuple[Model, ...]:
        """The models whose decision values are averaged: this one."""
        return (self,)

    @property
    def middle(self) -> Array:
        """(1, k) where each model's decision values are cut before they are averaged."""
        return np.zeros((1, len(self.solutions)))

    @property
    def unit(self) -> Array:
        """(1, k) by what each model's decision values are divided before they are averaged."""
        return np.ones((1, len(self.solutions)))


@dataclass(frozen=True)
class Blended:
    """Several models whose decision values are averaged: the mean over models v of (value_v - middle_v) / unit_v."""

    models: tuple[Model, ...]
    middle: Array  # (v, k)
    unit: Array  # (v, k)

    def among(self, columns: IntArray) -> Blended:
        """The same models in a wider table, of which they have seen these columns."""
        return replace(self, models=tuple(model.among(columns) for model in self.models))

    @property
    def features(self) -> IntArray:
        """The features of all models."""
        return np.unique(np.concatenate([model.features for model in self.models]))

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """The solutions of all models."""
        return tuple(solution for model in self.models for solution in model.solutions)

    def decision(self, Z: Matrix) -> Array:
        """(rows, k) decision values of rows of the whole table."""
        values = [model.decision(Z) for model in self.models]
        with np.errstate(all="ignore"):
            return finite(blended(values, self.middle, self.unit))


AnyModel = Model | Blended


def blended(values: Sequence[Array], middle: Array, unit: Array) -> Array:
    """The mean of (value - middle) / unit over views; values (rows, k), middle and unit (v, k)."""
    scaled = [(value - one) / by for value, one, by in zip(values, middle, unit, strict=True)]
    return np.asarray(np.mean(scaled, axis=0))


def finite(value: Array) -> Array:
    """Decision values (rows, ...); refuses those that are no numbers."""
    if not np.isfinite(value).all():
        row = int(np.argwhere(~np.isfinite(value))[0][0])
        raise InputError(f"the decision value of row {row + 1} is not a finite number: its cells are out of range")
    return value


def fit_model(plan: Plan, searched: Searched, size: int) -> Model:
    """The machine on the path's subset of this size (at most the number of features that were searched)."""
    ready, problem = searched.ready, searched.problem
    local, weight = _subset(searched, size)
    small = problem.part(local, machine=plan.final, feature_weight=weight[local])
    view = small.view()
    solutions = _known(searched, size) or _refined(small, view, small.solve(view))
    problem.count(small)
    scaling = None if ready.scaling is None else ready.scaling.columns(local)
    return Model(small.machine, ready.usable[local], scaling, view, solutions)


def _refined(problem: Problem, view: View, solutions: tuple[Solution, ...]) -> tuple[Solution, ...]:
    """The solutions of a model, which predicts from them, more tightly than those of a search."""
    machine = problem.machine
    if not isinstance(machine, Refines):
        return solutions
    return tuple(
        machine.refine(one, view, y, cost) if one.converged else one
        for one, y, cost in zip(solutions, problem.y, problem.cost, strict=True)
    )


def decisions(plan: Plan, searched: Searched, sizes: Sequence[int], Z: Matrix) -> Array:
    """(S, rows, k): decision values of `fit_model` at each size for rows of the whole table."""
    Z = searched.ready.rows(Z)
    last = searched.problem.with_machine(plan.final)
    values = _by_growing(searched, last, sorted(sizes), Z)
    if values is None:
        values = _by_shrinking(searched, last, sorted(sizes, reverse=True), Z)
    searched.problem.count(last)
    return np.array([values[size] for size in sizes])


def _by_growing(searched: Searched, last: Problem, sizes: Sequence[int], Z: Matrix) -> dict[int, Array] | None:
    """Decision values by size, from the smallest on: one kernel matrix grows in place, and machines start warm.

    None where kernel matrices are not sums that grow: weights that differ from size to size, or machines without one.
    """
    path, m = searched.path, last.table.shape[0]
    largest, weight = _subset(searched, sizes[-1])
    if path.weights or path.solutions or last.machine.needs != "gram" or m > GROWN_ROWS:
        return None
    whole = replace(last, feature_weight=weight).gram(largest)
    sums = None if whole.matrix_free else whole.subset_sums(Z)
    if sums is None:
        return None
    order = np.searchsorted(largest, np.searchsorted(searched.ready.usable, path.order[: len(largest)]))
    values: dict[int, Array] = {}
    A, squares, before = np.zeros((m + len(Z), m)), np.zeros(m + len(Z)), 0
    warm: tuple[Solution, ...] | None = None
    for size in sizes:
        count = max(1, min(size, len(largest)))
        if count > before:
            more = sums.sums_over(order[before:count])
            A += more[0]
            squares += more[1]
        before = count
        gram = sums.gram(A[:m], np.sort(order[:count]))
        warm = last.solve(gram, warm)
        if all(one.is_expansion for one in warm):
            K, diagonal = sums.kernel(gram, A[m:], squares)
            values[size] = np.column_stack([K @ one.coef + one.diagonal * diagonal + one.intercept for one in warm])
        else:
            values[size] = np.column_stack([last.machine.decision(one, gram, Z) for one in warm])
    return values


def _by_shrinking(searched: Searched, last: Problem, sizes: Sequence[int], Z: Matrix) -> dict[int, Array]:
    """Decision values by size, from the largest on.

    From a size to the next smaller one the kernel matrix is downdated where its weights stay, and a machine with one
    optimum starts from its last solution.
    """
    values: dict[int, Array] = {}
    view: View | None = None
    warm: tuple[Solution, ...] | None = None
    for size in sizes:
        local, weight = _subset(searched, size)
        if view is not None and np.array_equal(view.feature_weight[local], weight[local]):
            stay = np.isin(view.features, local, kind="table")
            warm = None if warm is None else _restricted(warm, stay)
            view = view if stay.all() else view.without(view.features[~stay])
        else:
            view, warm = replace(last, feature_weight=weight).view(local), None
        solutions = _known(searched, size) or last.solve(view, warm)
        warm = solutions
        values[size] = np.column_stack([last.machine.decision(one, view, Z) for one in solutions])
    return values


def _restricted(solutions: tuple[Solution, ...], stay: BoolArray) -> tuple[Solution, ...] | None:
    """Where to start without some of the features; None for programs, whose heuristics would depend on it."""
    if any(one.status for one in solutions):
        return None
    return tuple(one if one.weights is None else replace(one, weights=one.weights[stay]) for one in solutions)


def _subset(searched: Searched, size: int) -> tuple[IntArray, Array]:
    """The usable features of the path's subset of this size, sorted, and the weights (of all) at which it is fitted."""
    problem, ready = searched.problem, searched.ready
    chosen = searched.path.order[: max(1, min(size, ready.most))]
    place = np.searchsorted(ready.usable, chosen)
    learned, weight = searched.path.weights_at(len(chosen)), problem.feature_weight
    if learned is not None:
        weight = weight.copy()
        weight[place] = (np.sqrt(problem.kernel.divisor(problem.table, place)) * np.sqrt(learned)) ** 2
    return np.sort(place), weight


def _known(searched: Searched, size: int) -> tuple[Solution, ...]:
    """The solutions of the search itself at this size, where it has them."""
    stop = searched.path.stop
    return searched.path.solutions if stop is not None and stop.size == size else ()


def search_once(plan: Plan, part: Part, rng: np.random.Generator) -> Searched:
    """The path over all features of the part; features that do not vary come last, in the order of the table."""
    ready = prepare(plan, part, rng)
    if inside_batch_fits() and (of_batch := _from_batch(plan, part, ready)) is not None:
        return of_batch
    parts: tuple[object, ...] = plan.search, plan.criterion
    judge = next((one for one in parts if isinstance(one, HoldsOut) and one.held_out_share), None)
    inner = ready if judge is None else with_validation(plan, part, judge.held_out_share, judge.held_out_name, rng)
    if plan.prefilter:
        inner, path = _prefiltered(plan, inner, rng)
    else:
        problem = on_device(plan, inner.problem)
        path = plan.search.run(problem, rng)
        if problem is not inner.problem:
            inner.problem.count(problem)
    n = part.table.shape[1]
    path = _placed(path, inner.usable, np.flatnonzero(~_marked(inner.usable, n)), n)
    if judge is None:
        return Searched(inner, path)
    # columns that vary, but not among the rows that were searched, rank before those that never do
    ready.problem.count(inner.problem)
    weight = ready.problem.feature_weight.copy()
    weight[np.searchsorted(ready.usable, inner.usable)] = inner.problem.feature_weight
    kept = np.isin(path.order, plan.keep) & np.isin(path.order, ready.usable)
    path = replace(path, order=path.order[np.lexsort((~np.isin(path.order, ready.usable), ~kept))])
    return Searched(ready.with_weights(weight), path)


def _from_batch(plan: Plan, part: Part, ready: Prepared) -> Searched | None:
    """The search on these rows, run in step with others; None where that is for the CPU."""
    m, n = part.table.shape
    whole = TrainingPart(np.arange(m), np.empty(0, dtype=np.intp), part.y, part.weight)
    results = rank_batched(plan, part.table, [whole], ())
    if results is None:
        return None
    (one,), scores = results, np.full(n, np.nan)
    scores[one.order[: one.usable]] = one.scores
    ready.problem.count(one.work)
    steps = one.steps or (Step(one.usable, 0.0, 0.0, 0.0),)
    return Searched(ready, Path(one.order, scores, steps, cast(BatchedSearch, plan.search).ended))


def _marked(places: IntArray, n: int) -> BoolArray:
    """(n,) which of n places are among these."""
    marks = np.zeros(n, dtype=bool)
    marks[places] = True
    return marks


def _placed(path: Path, inside: IntArray, rest: IntArray, n: int) -> Path:
    """A path over some of n features in the numbering of all, the rest after it without a score."""
    if len(inside) == n:
        return path
    scores = np.full(n, np.nan)
    scores[inside] = path.scores
    order = np.concatenate([inside[path.order], rest]).astype(np.intp)
    trials = None if path.trials is None else path.trials.embed(inside, n)
    return replace(path, order=order, scores=scores, trials=trials)


def _prefiltered(plan: Plan, ready: Prepared, rng: np.random.Generator) -> tuple[Prepared, Path]:
    """Search among the best columns of a filter; the others follow in the filter's order.

    The machine on what is selected works at the weights of the search.
    """
    assert plan.prefilter is not None
    problem, (score, size) = ready.problem, plan.prefilter
    value = np.asarray(score(problem.table, problem.y, problem.sample_weight))
    kept = np.isin(np.arange(len(value)), problem.keep)
    order = np.lexsort((-value, ~kept)).astype(np.intp)
    size = max(size, int(kept.sum()))
    inside, outside = np.sort(order[:size]), order[size:]
    small = problem.part(inside)
    small = replace(small, feature_weight=plan.kernel.start(small.table))
    path: Path = plan.search.run(small, rng)
    problem.count(small)
    weight = problem.feature_weight.copy()
    weight[inside] = small.feature_weight
    return ready.with_weights(weight), _placed(path, inside, outside, len(value))
