"""Choosing hyper-parameters: those of machine and kernel on all features, those of the search by whole searches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from ..algebra.gram import Gram
from ..contracts import Array, IntArray
from ..errors import InputError, listing
from ..estimators.inputs import choose_rows
from ..estimators.selector import SVMSelector
from ..fitting import inner_folds as cut
from ..fitting.parts import resolve
from ..fitting.training import Part, Plan, Prepared, prepare
from .metrics import ranking_auc

GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "machine": {
        "machine__C": tuple(2.0**k for k in range(-7, 8, 2)),
        "machine__r": (0.01, 0.05, 0.1, 0.2, 0.5),
        "kernel__width": tuple(2.0**k for k in range(-7, 0)),
    },
    "search": {"search__C2": (0.0, 0.5, 1.0, 2.0, 4.0)},
}


@dataclass(frozen=True)
class Tuned:
    """A copy of the selector with the parameters that did best, not fitted; their scores by inner cross-validation.

    The scores were looked at to choose: they are no estimate of performance.
    """

    selector: SVMSelector
    params: dict[str, Any]
    scores: dict[str, float]  # "machine": balanced accuracy on all features; "search": AUC of the selection


def tune(
    selector: SVMSelector,
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    cv: Any = 5,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Tuned:
    """Choose hyper-parameters in two stages, both on inner folds of these rows.

    First those of the machine, the kernel and the costs, on all features, where points of the grid share kernel
    matrices and warm starts; then those of the search (`search__C2` and the like), by a whole search in each fold.
    `grid` maps parameters to values; by default C (r for a sphere), the width where the kernel has one, and C2.
    """
    made = clone(selector)
    parts = {axis: resolve(axis, getattr(made, axis)) for axis in ("kernel", "machine", "criterion", "search")}
    made.set_params(**parts)
    part, _ = made._read(X, y, sample_weight, groups)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    sample, boosted = choose_rows(part, made.rows, rng)
    part = Part(part.table, part.y, boosted, part.groups).take(sample)
    known = made.get_params()
    if grid is None:
        grid = {name: values for kind in GRIDS.values() for name, values in kind.items() if name in known}
    _refuse(made, grid)
    folds, _ = cut.inner_folds(cv, part, made.classes_.tolist(), rng)
    params: dict[str, Any] = {}
    scores: dict[str, float] = {}
    first = {name: tuple(values) for name, values in grid.items() if not name.startswith("search__")}
    second = {name: tuple(values) for name, values in grid.items() if name.startswith("search__")}
    if first:
        params, scores["machine"] = tune_machine(made, part, made._plan(part), first, folds)
        made.set_params(**params)
    if second:
        chosen, scores["search"] = _tune_search(made, part, second, folds, int(rng.integers(2**31)), n_jobs)
        made.set_params(**chosen)
        params |= chosen
    return Tuned(clone(made), params, scores)


def tune_machine(
    selector: SVMSelector,
    part: Part,
    plan: Plan,
    grid: Mapping[str, Sequence[Any]],
    splits: Sequence[tuple[IntArray, IntArray]],
) -> tuple[dict[str, Any], float]:
    """The point of the grid with the best balanced accuracy, pooled over the splits, of the machine on all features.

    Of equally good points the one with the larger AUC wins (two classes), then the last of the grid: on a wide table
    many values of C do equally well, and a small one that serves all features is far too small for a few. Everything
    but the grid's own parameters is as in the selector.
    """
    _refuse(selector, grid)
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    plans = [_at(selector, point, part) for point in points]
    values: list[Array] = []
    rows = np.concatenate([test for _, test in splits])
    for train, test in splits:
        ready = prepare(plan, part.take(train), np.random.default_rng(0))
        values.append(np.array(list(_along_grid(points, plans, ready, ready.rows(part.table.Z[test])))))
    decision, truth, weight = np.concatenate(values, axis=1), part.y[rows], part.weight[rows]
    score = np.array([_balanced(_predicted(value, plan), truth, weight) for value in decision])
    ties = np.flatnonzero(score >= score.max() - 1e-12)
    if plan.n_classes == 2 and len(ties) > 1:
        positive = truth == plan.positive
        area = np.round([ranking_auc(decision[k, :, 0], positive, weight[None, :])[0] for k in ties], 12)
        ties = ties[area == area.max()]
    return points[ties[-1]], float(score[ties[-1]])


def _refuse(selector: SVMSelector, grid: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a grid over what is not there, or over what these stages do not look at."""
    known = selector.get_params()
    if unknown := [key for key in grid if key not in known]:
        raise InputError(f"the grid names {listing(unknown)}, which {type(selector).__name__} does not have")
    tuned = ("machine", "kernel", "search__", "negative_weight", "class_weight")
    if other := [key for key in grid if not key.startswith(tuned)]:
        raise InputError(
            f"the grid names {listing(other)}; what is tuned is the machine, the kernel, negative_weight, class_weight "
            "and what belongs to the search (search__...)"
        )
    if wrong := [key for key, values in grid.items() if isinstance(values, str) or not hasattr(values, "__len__")]:
        raise InputError(f"the grid has no list of values for {listing(wrong)}")
    if empty := [key for key, values in grid.items() if not len(values)]:
        raise InputError(f"the grid has no value for {listing(empty)}")


def _at(selector: SVMSelector, point: dict[str, Any], part: Part) -> Plan:
    """The selector's plan at a point of the grid; it refuses values that make no sense."""
    made: SVMSelector = clone(selector).set_params(**point)
    made.classes_, made.columns_ = selector.classes_, selector.columns_
    return made._plan(part)


def _along_grid(points: list[dict[str, Any]], plans: list[Plan], ready: Prepared, rows: Any) -> Iterator[Array]:
    """Decision values (rows, k) point by point: points of one kernel share its matrix and start from the last."""
    shared: dict[str, tuple[Gram, Array, Array]] = {}
    warm: dict[str, Any] = {}
    for point, plan in zip(points, plans, strict=True):
        kernel = repr(sorted((name, value) for name, value in point.items() if name.startswith("kernel")))
        if kernel not in shared:
            gram = _gram(plan.kernel, ready, [gram for gram, _, _ in shared.values()])
            shared[kernel] = gram, gram.matrix(rows), gram.diagonal(rows)
        gram, cross, diagonal = shared[kernel]
        cost = plan.costs(ready.y, ready.problem.sample_weight)
        problem = replace(ready.problem, machine=plan.machine, cost=cost)
        warm[kernel] = problem.solve(gram, warm.get(kernel))
        yield np.column_stack(
            [
                cross @ s.coef + s.diagonal * diagonal + s.intercept
                if s.weights is None and s.scale is None
                else plan.machine.decision(s, gram, rows)
                for s in warm[kernel]
            ]
        )


def _gram(kernel: Any, ready: Prepared, known: list[Gram]) -> Gram:
    """The kernel on the prepared rows; at another width of a known one, its product is reused."""
    scale = kernel.scale(ready.problem.table, ready.problem.sample_weight)
    for gram in known:
        if {**gram.kernel.get_params(), "width": 0} == {**kernel.get_params(), "width": 0}:
            return gram.rescaled(scale)
    return Gram.build(kernel, ready.problem.table, scale=scale)


def _tune_search(
    selector: SVMSelector,
    part: Part,
    grid: Mapping[str, Sequence[Any]],
    folds: Sequence[tuple[IntArray, IntArray]],
    seed: int,
    n_jobs: int | None,
) -> tuple[dict[str, Any], float]:
    """The point whose searches rank held-out rows best, on average over sizes from all features down to a few."""
    n = part.table.shape[1]
    sizes = tuple(sorted({max(1, round(n / 4**k)) for k in range(8)}))
    best: tuple[dict[str, Any], float] = {}, -np.inf
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        plan = _at(selector, point, part)
        held = cut.hold_out(plan, part, sizes, folds, np.random.SeedSequence(seed), n_jobs)
        score = float(np.mean(held.scores(part.y, part.weight, plan)[0]))
        if score > best[1]:
            best = point, score
    return best


def _balanced(predicted: IntArray, truth: IntArray, weight: Array) -> float:
    sides = [truth == code for code in np.unique(truth)]
    return float(np.mean([np.average(predicted[side] == truth[side], weights=weight[side]) for side in sides]))


def _predicted(value: Array, plan: Plan) -> IntArray:
    if plan.n_classes > 2:
        return np.asarray(value.argmax(axis=1))
    return np.where(value[:, 0] > 0, plan.positive, 1 - plan.positive)
