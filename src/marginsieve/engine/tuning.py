"""Choosing hyper-parameters on inner folds: those of machine and kernel after selection, then those of the search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from ..contracts import Array, Gram, HasParameters, IntArray, Kernel, Solution, View
from ..errors import InputError, listing
from ..estimators import SVMSelector
from ..estimators.inputs import encode
from ..fitting.held_out import hold_out, inner_folds, listed_folds, lists_rows, run_search, spread_sizes
from ..fitting.parts import criterion_of, kernel_of, machine_of, search_of
from ..fitting.procedure import plan_of
from ..fitting.rows import Rows
from ..fitting.settings import Plan, check_seed, feature_count, outcome_of
from ..fitting.training import Prepared, Searched, decisions, prepare
from ..outcomes.target import Splits

GRID: dict[str, tuple[Any, ...]] = {
    "machine__C": tuple(2.0**k for k in range(-7, 8, 2)),
    "machine__r": (0.01, 0.05, 0.1, 0.2, 0.5),
    "kernel__width": tuple(2.0**k for k in range(-3, 4)),  # in units of the live columns
    "search__C2": (0.0, 0.5, 1.0, 2.0, 4.0),
}


@dataclass(frozen=True)
class Tuned:
    """A selector with the parameters that scored best.

    The parameters were chosen by these scores, so the scores are optimistically biased: they are not an estimate of
    performance.

    Attributes
    ----------
    selector : SVMSelector
        Copy of the selector with the chosen parameters, not fitted.
    params : dict
        The chosen parameters.
    scores : dict of str to float
        Scores by inner cross-validation: "machine" is the balanced accuracy at the selector's threshold, on the
        features that the search selects, "search" the mean score (AUC for two classes) of the selection. Without a
        given number of features both are means over several sizes.

    Examples
    --------
    >>> from marginsieve import recipes, tune
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> tuned = tune(recipes.svm_rfe(), cohort.X, cohort.y, {"machine__C": [0.1, 1.0]}, cv=3)
    >>> list(tuned.params), list(tuned.scores)
    (['machine__C'], ['machine'])
    """

    selector: SVMSelector
    params: dict[str, Any]
    scores: dict[str, float]


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

    First those of the machine, the kernel and the costs, on the features that the search selects in each fold, at the
    threshold that the selector uses; then those of the search (`search__C2` and the like), by a whole search in each
    fold. In the first stage the points of the grid share the searches, run with the selector as it is; a search that
    learns the weights of the kernel is run for each point.

    Parameters
    ----------
    selector : SVMSelector
        The selector, not fitted; it is not changed.
    X : table of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        The classes.
    grid : mapping of str to sequence, or None, default=None
        Values of each parameter, for example {"machine__C": [0.1, 1.0]}; None is a grid over C (r for a sphere), the
        width where the kernel has one, and C2.
    cv : int, splitter or list of splits, default=5
        The inner folds; a list has (train, test) rows of the table, as in `SVMSelector`.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weight of each row.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of each row; rows of one group are never on both sides of a fold.
    n_jobs : int or None, default=None
        Number of workers for the searches.
    random_state : int, RandomState or None, default=0
        Seed of the folds and searches.

    Returns
    -------
    Tuned
        The selector with the chosen parameters, not fitted.

    Examples
    --------
    >>> from marginsieve import recipes, tune
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> tuned = tune(recipes.svm_rfe(n_features_to_select=2), cohort.X, cohort.y, {"machine__C": [0.1, 1.0]}, cv=3)
    >>> tuned.selector.fit(cohort.X, cohort.y).n_features_
    2
    """
    copy: SVMSelector = clone(selector)
    parts = {"kernel": kernel_of, "machine": machine_of, "criterion": criterion_of, "search": search_of}
    copy.set_params(**{axis: part_of(getattr(copy, axis)) for axis, part_of in parts.items()})
    check_seed(random_state)
    drawn = isinstance(random_state, np.random.Generator)
    seed = random_state.integers(2**31) if drawn else check_random_state(random_state).randint(2**31)
    rng = np.random.default_rng(int(seed))
    encoded = (
        encode(copy, X, y, copy.kinds, sample_weight, groups, outcome_of(copy))
        .active.with_sample(copy.max_samples, rng)
        .sample_part
    )
    if grid is None:
        known = copy.get_params()
        grid = {name: values for name, values in GRID.items() if name in known}
    refuse_grid(copy, grid)
    if lists_rows(cv):
        folds = listed_folds(cv, encoded)
    else:
        (folds,), _ = inner_folds(cv, encoded, rng)
    params: dict[str, Any] = {}
    scores: dict[str, float] = {}
    second = {name: tuple(values) for name, values in grid.items() if name.startswith("search__")}
    first = {name: tuple(values) for name, values in grid.items() if name not in second}
    if first:
        params, scores["machine"] = _tune_selected(copy, encoded, first, folds, int(rng.integers(2**31)))
        copy.set_params(**params)
    if second:
        chosen, scores["search"] = _tune_search(copy, encoded, second, folds, int(rng.integers(2**31)), n_jobs)
        copy.set_params(**chosen)
        params |= chosen
    return Tuned(clone(copy), params, scores)


def _sizes(selector: SVMSelector, columns: int) -> tuple[int, ...]:
    """The number of features where it is given, else some from all columns down to a few."""
    count = feature_count(selector, columns)
    return spread_sizes(columns) if count is None else (count,)


def _tune_selected(
    selector: SVMSelector, encoded: Rows, grid: Mapping[str, Sequence[Any]], folds: Splits, seed: int
) -> tuple[dict[str, Any], float]:
    """The point of the grid with the best balanced accuracy on the features that each fold selects.

    Of equally good points the one with the larger AUC wins (two classes), then the last of the grid.
    """
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    plan = plan_of(selector, encoded)
    part = _settled_rows(plan, encoded)
    plans, sizes = [_plan_at(selector, point, encoded) for point in points], _sizes(selector, part.table.shape[1])
    values: list[Array] = []
    for (train, test), child in zip(folds, np.random.SeedSequence(seed).spawn(len(folds)), strict=True):
        rows, Z = part.take(train), part.table.Z[test]
        searched = run_search(plan, rows, np.random.default_rng(child))
        learned = bool(searched.path.weights) or bool(searched.path.solutions)
        values.append(
            np.array(
                [decisions(at, _search_at(at, searched, rows, child if learned else None), sizes, Z) for at in plans]
            )
        )
    tested = np.concatenate([test for _, test in folds])
    fold = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])
    target = part.target.take(tested)
    scores = [[target.tuning_scores(value, fold) for value in at_point] for at_point in np.concatenate(values, axis=2)]
    return _best_point(points, np.mean(scores, axis=1))


def _settled_rows(plan: Plan, encoded: Rows) -> Rows:
    """The rows that count, with the settings of a plan."""
    part = encoded.active
    return replace(part, target=part.target.settle(plan.outcome))


def _best_point(points: list[dict[str, Any]], scores: Array) -> tuple[dict[str, Any], float]:
    """The point with the best first score; of equally good ones that with the best second, then the last."""
    first, second = scores.T
    ties = np.flatnonzero(first >= first.max() - 1e-12)
    rounded = np.round(second[ties], 12)
    ties = ties[rounded == rounded.max()]
    return points[ties[-1]], float(first[ties[-1]])


def _search_at(plan: Plan, searched: Searched, part: Rows, seed: np.random.SeedSequence | None) -> Searched:
    """The search at a point of the grid: run anew with a seed, else the same path with other machine and kernel."""
    if seed is not None:
        return run_search(plan, part, np.random.default_rng(seed))
    problem = searched.problem
    changed = problem.fresh_copy(
        kernel=plan.kernel,
        machine=plan.machine,
        cost=searched.ready.target.with_settings(plan.outcome).machine_target.cost,
        feature_weight=plan.kernel.start(problem.table),
    )
    return replace(searched, ready=replace(searched.ready, problem=changed), path=replace(searched.path, replay={}))


def tune_machine(
    selector: SVMSelector,
    encoded: Rows,
    grid: Mapping[str, Sequence[Any]],
    splits: Sequence[tuple[IntArray, IntArray]],
) -> tuple[dict[str, Any], float]:
    """The point of the grid with the best balanced accuracy, pooled over the splits, of the machine on all features.

    Of equally good points the one with the larger AUC wins (two classes), then the last of the grid: on a wide table
    many values of C do equally well, and a small one that serves all features is far too small for a few. Everything
    but the grid's own parameters is as in the selector.
    """
    refuse_grid(selector, grid)
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    plan = plan_of(selector, encoded)
    part = _settled_rows(plan, encoded)
    plans = [_plan_at(selector, point, encoded) for point in points]
    values: list[Array] = []
    rows = np.concatenate([test for _, test in splits])
    for train, test in splits:
        ready = prepare(plan, part.take(train), np.random.default_rng(0))
        values.append(np.array([*_along_grid(points, plans, ready, ready.rows(part.table.Z[test]))]))
    target = part.target.take(rows)
    return _best_point(points, np.array([target.machine_scores(value) for value in np.concatenate(values, axis=1)]))


def tune_on_all_features(
    selector: SVMSelector,
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]],
    splits: Sequence[tuple[IntArray, IntArray]],
) -> Tuned:
    """Choose hyper-parameters of the machine and the kernel without a selection, as protocols with a grid do.

    Of equally good points the one with the larger AUC wins (two classes), then the last of the grid.

    Parameters
    ----------
    selector : SVMSelector
        The selector, not fitted; it is not changed.
    X : table of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        The classes.
    grid : mapping of str to sequence
        Values of each parameter.
    splits : sequence of (train, test)
        Row numbers of each split; the balanced accuracy is pooled over the test parts.

    Returns
    -------
    Tuned
        The selector with the chosen parameters, not fitted.

    Examples
    --------
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.engine import tune_on_all_features
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> splits = list(StratifiedKFold(5).split(cohort.X, cohort.y))
    >>> list(tune_on_all_features(recipes.fisher(), cohort.X, cohort.y, {"machine__C": [0.1, 1.0]}, splits).params)
    ['machine__C']
    """
    params, score = tune_machine(selector, encode(selector, X, y, selector.kinds), grid, splits)
    return Tuned(clone(selector).set_params(**params), params, {"machine": score})


def refuse_grid(selector: SVMSelector, grid: Mapping[str, Sequence[Any]]) -> None:
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


def _plan_at(selector: SVMSelector, point: dict[str, Any], encoded: Rows) -> Plan:
    """The selector's plan at a point of the grid; it refuses values that make no sense."""
    return plan_of(clone(selector).set_params(**point), encoded)


def _along_grid(points: list[dict[str, Any]], plans: list[Plan], ready: Prepared, rows: Any) -> Iterator[Array]:
    """Decision values (rows, k) point by point: points of one kernel share its matrix and start from the last."""
    views: dict[str, View] = {}
    grams: list[Gram] = []
    against: dict[str, tuple[Array, Array]] = {}
    warm: dict[str, Sequence[Solution | None]] = {}
    costs: dict[str, Array] = {}
    problem = ready.problem
    for point, plan in zip(points, plans, strict=True):
        kernel = repr((plan.machine.needs, [value for name, value in point.items() if name.startswith("kernel")]))
        weighting = repr([point[name] for name in ("negative_weight", "class_weight") if name in point])
        if kernel not in views:
            if plan.machine.needs == "columns":
                views[kernel] = replace(problem, kernel=plan.kernel, machine=plan.machine).view()
            else:
                grams.append(_gram(plan.kernel, ready, grams))
                views[kernel], against[kernel] = grams[-1], (grams[-1].matrix(rows), grams[-1].diagonal(rows))
        if weighting not in costs:
            costs[weighting] = ready.target.with_settings(plan.outcome).machine_target.cost
        view, last = views[kernel], warm.get(kernel, [None] * len(problem.y))
        solutions = [
            plan.machine.solve(view, y, cost, warm=start)
            for y, cost, start in zip(problem.y, costs[weighting], last, strict=True)
        ]
        warm[kernel] = solutions
        yield np.column_stack([_values(plan, solution, view, rows, against.get(kernel)) for solution in solutions])


def _values(plan: Plan, solution: Solution, view: View, rows: Any, against: tuple[Array, Array] | None) -> Array:
    """(rows,) decision values; K against the rows and their diagonal are known where the machine has a kernel."""
    if against is None or not solution.is_expansion:
        return plan.machine.decision(solution, view, rows)
    cross, diagonal = against
    return np.asarray(cross @ solution.coef + solution.diagonal * diagonal + solution.intercept)


def _gram(kernel: Kernel, ready: Prepared, known: list[Gram]) -> Gram:
    """The kernel on the prepared rows; at another width of a known one, its product is reused."""
    table = ready.problem.table
    weight = kernel.start(table)
    for gram in known:
        if _but_width(gram.kernel) == _but_width(kernel):
            return gram.rescale(weight)
    return kernel.bind(table, weight, np.arange(table.shape[1]))


def _but_width(kernel: Kernel) -> dict[str, Any]:
    """What a kernel is apart from its width; one without readable parameters is only like itself."""
    params = kernel.get_params() if isinstance(kernel, HasParameters) else {"is": id(kernel)}
    return {**params, "width": 0, "": type(kernel)}


def _tune_search(
    selector: SVMSelector,
    encoded: Rows,
    grid: Mapping[str, Sequence[Any]],
    folds: Sequence[tuple[IntArray, IntArray]],
    seed: int,
    n_jobs: int | None,
) -> tuple[dict[str, Any], float]:
    """The point whose searches rank held-out rows best, on average over sizes from all features down to a few."""
    sizes = _sizes(selector, encoded.table.shape[1])
    best: tuple[dict[str, Any], float] = {}, -np.inf
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        plan = _plan_at(selector, point, encoded)
        part = _settled_rows(plan, encoded)
        held = hold_out(plan, part, sizes, folds, np.random.SeedSequence(seed), n_jobs)
        score = float(np.mean(held.scores(part.target)[0]))
        if score > best[1]:
            best = point, score
    return best
