"""Choosing hyper-parameters of the machine on all features, with kernels and warm starts reused along the grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._types import Array, IntArray
from ..errors import InputError, listing
from ..fitting import Part, Plan, prepare
from ..gram import Gram
from ..selector import SVMSelector

COSTS = ("machine__C", "negative_weight")  # these leave the kernel matrix as it is


def tune(
    selector: SVMSelector,
    part: Part,
    plan: Plan,
    grid: Mapping[str, Sequence[Any]],
    splits: Sequence[tuple[IntArray, IntArray]],
) -> tuple[dict[str, Any], float]:
    """The point of the grid with the best balanced accuracy, pooled over the splits, of the machine on all features.

    Of equally good points the last of the grid wins: on a wide table many values of C do equally well, and a small one
    that serves all features is far too small for a few. Everything but the grid's own parameters is as in the selector.
    """
    known = selector.get_params()
    if unknown := [key for key in grid if key not in known]:
        raise InputError(f"the grid names {listing(unknown)}, which {type(selector).__name__} does not have")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    chosen = [_chosen(selector, point) for point in points]
    right: Array = np.zeros((len(points), plan.n_classes))
    total = np.zeros(plan.n_classes)
    for train, test in splits:
        ready = prepare(plan, part.take(train), np.random.default_rng(0))
        rows = part.table.Z[test][:, ready.usable]
        rows = rows if ready.scaling is None else ready.scaling.apply(rows)
        total += np.bincount(part.y[test], minlength=plan.n_classes)
        for point, value in _along_grid(chosen, plan, part.take(train), ready, rows):
            hit = _predicted(value, plan) == part.y[test]
            right[point] += np.bincount(part.y[test][hit], minlength=plan.n_classes)
    score = (right / np.maximum(total, 1)).mean(axis=1)
    best = len(score) - 1 - int(np.argmax(np.round(score, 12)[::-1]))
    return points[best], float(score[best])


def _chosen(selector: SVMSelector, point: dict[str, Any]) -> tuple[str, SVMSelector]:
    """The selector at a point of the grid, and what of the point decides the kernel matrix."""
    kernel = repr(sorted((name, value) for name, value in point.items() if name not in COSTS))
    return kernel, clone(selector).set_params(**point)


def _along_grid(
    chosen: list[tuple[str, SVMSelector]], plan: Plan, part: Part, ready: Any, rows: Any
) -> Iterator[tuple[int, Array]]:
    """(number of a point, decision values (rows, k)): points of one kernel share its matrix and start from the last."""
    grams: dict[str, tuple[Gram, Array]] = {}
    warm: dict[str, Any] = {}
    for number, (kernel, made) in enumerate(chosen):
        if kernel not in grams:
            scale = made.kernel.scale(ready.problem.table, ready.problem.sample_weight)
            gram = Gram.build(made.kernel, ready.problem.table, scale=scale)
            grams[kernel] = gram, gram.matrix(rows)
        gram, cross = grams[kernel]
        here = replace(plan, negative_weight=made.negative_weight)
        cost = here.costs(part.y, part.weight) if plan.sampler is None else ready.problem.cost
        problem = replace(ready.problem, machine=made.machine, cost=cost)
        warm[kernel] = problem.solve(gram, warm.get(kernel))
        yield number, np.column_stack([cross @ solution.coef + solution.intercept for solution in warm[kernel]])


def _predicted(value: Array, plan: Plan) -> IntArray:
    if plan.n_classes > 2:
        return np.asarray(value.argmax(axis=1))
    return np.where(value[:, 0] > 0, plan.positive, 1 - plan.positive)
