"""From a training part to a path, and from a path and a size to a model. Everything fitted is fitted here, on the part.

part -> prepare (constant columns, standardisation, oversampling, prefilter) -> search -> Path
Path, size -> Model: the machine refitted on the chosen features
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..algebra.gram import Gram
from ..contracts import Array, BoolArray, IntArray, Matrix, is_sparse
from ..data.table import Table
from ..errors import InputError
from ..problem import Path, Problem, Rows, Solution


@dataclass(frozen=True)
class Part:
    """Training rows: codes of the classes (m,), weights (m,), groups (m,) or None."""

    table: Table
    y: IntArray
    weight: Array
    groups: Any = None

    def take(self, rows: IntArray) -> Part:
        groups = None if self.groups is None else self.groups[rows]
        return Part(self.table.rows(rows), self.y[rows], self.weight[rows], groups)


@dataclass(frozen=True)
class Plan:
    """The components of one fit, resolved and checked; classes are codes 0, 1, ..."""

    kernel: Any
    machine: Any
    criterion: Any
    search: Any
    n_classes: int
    positive: int = 1
    standardize: bool = False
    prefilter: tuple[Any, int] | None = None
    sampler: Any = None
    ensemble: int | None = None
    keep: tuple[int, ...] = ()
    class_weight: Mapping[int, float] | str | None = None
    negative_weight: float = 1.0

    def labels(self, y: IntArray) -> Array:
        """(k, m) in {-1, +1}: one row for two classes (+1 is the positive one), else one row per class."""
        codes = [self.positive] if self.n_classes == 2 else range(self.n_classes)
        return np.array([np.where(y == code, 1.0, -1.0) for code in codes])

    def costs(self, y: IntArray, weight: Array) -> Array:
        """(k, m): weight times class weight; "balanced" gives both sides of each binary problem the same total."""
        labels = self.labels(y)
        if self.class_weight == "balanced":
            total = weight.sum()
            share = np.array([[weight[row > 0].sum(), weight[row < 0].sum()] for row in labels])
            factor = np.where(labels > 0, total / (2 * share[:, :1]), total / (2 * share[:, 1:]))
        elif isinstance(self.class_weight, Mapping):
            by_class = np.array([self.class_weight.get(code, 1.0) for code in range(self.n_classes)])
            factor = np.broadcast_to(by_class[y], labels.shape)
        else:
            factor = np.ones(labels.shape)
        return np.asarray(weight * factor * np.where(labels < 0, self.negative_weight, 1.0))


@dataclass(frozen=True)
class Scaling:
    """z -> (z - shift) * factor, by feature; a sparse table is not shifted, which the linear kernel cannot tell."""

    shift: Array
    factor: Array

    @classmethod
    def fit(cls, table: Table, weight: Array) -> Scaling:
        """To mean 0 and variance 1 over the weighted rows; constant columns and categories are left as they are."""
        Z, nominal = table.Z, np.array([kind == "nominal" for kind in table.kind], dtype=bool)
        total = weight.sum()
        mean = np.asarray(weight @ Z) / total
        if is_sparse(Z):
            variance = np.maximum(np.asarray(weight @ Z.multiply(Z)) / total - mean**2, 0.0)
            shift = np.zeros(len(mean))
        else:
            D = Z - mean
            variance = np.einsum("i,ij,ij->j", weight / total, D, D)
            shift = mean
        deviation = np.where(nominal, 1.0, np.sqrt(variance))
        return cls(np.where(nominal, 0.0, shift), 1.0 / np.where(deviation > 0, deviation, 1.0))

    def apply(self, Z: Matrix) -> Matrix:
        if is_sparse(Z):
            return sparse.csc_array(Z @ sparse.diags_array(self.factor))
        out = Z - self.shift
        out *= self.factor
        return out

    def columns(self, index: IntArray) -> Scaling:
        return Scaling(self.shift[index], self.factor[index])


@dataclass(frozen=True)
class Prepared:
    """A training part ready for a search: scaled, oversampled, columns that do not vary left out."""

    problem: Problem  # over `usable` alone
    y: IntArray  # class codes of the problem's rows
    usable: IntArray  # the table's features that vary
    scaling: Scaling | None
    most: int  # features that are searched: those that vary, or those that a prefilter leaves

    def rows(self, Z: Matrix) -> Matrix:
        """Rows of the whole table as the problem sees them."""
        part = Z[:, self.usable]
        return part if self.scaling is None else self.scaling.apply(part)


@dataclass(frozen=True)
class Searched(Prepared):
    """A path over the features of the table, and what is needed to refit on any of its subsets."""

    path: Path


@dataclass(frozen=True)
class Model:
    """A machine on some features: decision (rows, k) for rows of the whole table."""

    machine: Any
    features: IntArray
    scaling: Scaling | None
    gram: Gram
    solutions: tuple[Solution, ...]

    def decision(self, Z: Matrix) -> Array:
        part = Z[:, self.features]
        part = part if self.scaling is None else self.scaling.apply(part)
        return np.column_stack([self.machine.decision(solution, self.gram, part) for solution in self.solutions])


def fit_model(plan: Plan, searched: Searched, size: int) -> Model:
    """The machine on the path's subset of this size (at most the number of features that were searched)."""
    problem = searched.problem
    local, scale = _subset(searched, size)
    small = problem.part(local)
    small.machine, small.scale = _final(plan), scale[local]
    gram = small.gram()
    solutions = _found(searched, size) or small.solve(gram)
    problem.count(small)
    scaling = None if searched.scaling is None else searched.scaling.columns(local)
    return Model(small.machine, searched.usable[local], scaling, gram, solutions)


def decisions(plan: Plan, searched: Searched, sizes: Sequence[int], Z: Matrix) -> Array:
    """(S, rows, k): what fit_model at each size says of rows of the whole table.

    From a size to the next smaller one the kernel matrix is downdated where its scale stays.
    """
    Z = searched.rows(Z)
    problem = searched.problem
    last = problem.afresh(machine=_final(plan))
    made: dict[int, Array] = {}
    gram: Gram | None = None
    for size in sorted(sizes, reverse=True):
        local, scale = _subset(searched, size)
        if gram is not None and np.array_equal(gram.scale[local], scale[local]):
            gone = ~np.isin(gram.features, local, kind="table")
            gram = gram.without(gram.features[gone]) if gone.any() else gram
        else:
            gram = Gram.build(plan.kernel, problem.table, local, scale)
        solutions = _found(searched, size) or last.solve(gram)
        made[size] = np.column_stack([last.machine.decision(one, gram, Z) for one in solutions])
    problem.count(last)
    return np.array([made[size] for size in sizes])


def _subset(searched: Searched, size: int) -> tuple[IntArray, Array]:
    """The usable features of the path's subset of this size, sorted, and the scale (of all) at which it is fitted."""
    problem = searched.problem
    chosen = searched.path.order[: max(1, min(size, searched.most))]
    place = np.searchsorted(searched.usable, chosen)
    weights, scale = searched.path.weights_at(len(chosen)), problem.scale
    if weights is not None:
        scale = scale.copy()
        scale[place] = problem.root(len(chosen)) * np.sqrt(weights)
    return np.sort(place), scale


def _found(searched: Searched, size: int) -> tuple[Solution, ...]:
    """What the search itself found at this size, where it did."""
    own = searched.path.own
    return searched.path.solutions if own is not None and own.size == size else ()


def _final(plan: Plan) -> Any:
    """The machine that is fitted on what was selected."""
    return getattr(plan.search, "final", None) or plan.machine


def varying(Z: Matrix) -> BoolArray:
    """(n,) whether a column takes values that differ by more than rounding."""
    table = Table(Z, (), ())
    if is_sparse(Z):
        size = np.asarray(abs(Z).max(axis=0).toarray()).ravel()
    else:
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(np.fmin.reduce(Z, axis=0)), np.abs(np.fmax.reduce(Z, axis=0)))
    return np.asarray(table.spread > 1e-12 * size)


def search_once(plan: Plan, part: Part, rng: np.random.Generator) -> Searched:
    """The path over all features of the part; features that do not vary come last, in the order of the table."""
    ready = prepare(plan, part, rng)
    share = getattr(plan.search, "validation", 0.0) or getattr(plan.criterion, "held_out", 0.0)
    inner = _with_validation(plan, part, share, rng) if share else ready
    path = _prefiltered(plan, inner.problem, rng) if plan.prefilter else plan.search.run(inner.problem, rng)
    path = _over_all(path, inner.usable, part.table.shape[1])
    if share:  # columns that vary, but not among the rows that were searched, rank before those that never do
        ready.problem.count(inner.problem)
        ready.problem.scale[np.searchsorted(ready.usable, inner.usable)] = inner.problem.scale
        kept = np.isin(path.order, plan.keep) & np.isin(path.order, ready.usable)
        path = replace(path, order=path.order[np.lexsort((~np.isin(path.order, ready.usable), ~kept))])
    return with_path(ready, path)


def _with_validation(plan: Plan, part: Part, share: float, rng: np.random.Generator) -> Prepared:
    """A share of the rows is held out for the criterion or the search, everything else is fitted without them."""
    held = left_out(part, share, rng, at_least=1, leave=0)
    if len(np.unique(part.y[held])) < len(np.unique(part.y)) or len(np.unique(part.y[~held])) < len(np.unique(part.y)):
        whose = "search: validation" if getattr(plan.search, "validation", 0.0) else "criterion: held_out"
        fewest = int(np.bincount(part.y).min())
        raise InputError(
            f"{whose} is {share!r} and a class has too few rows (or groups) to be on both sides ({fewest} in a training"
            " part): use " + ("another search" if whose.startswith("search") else "held_out=0")
        )
    inner = prepare(plan, part.take(np.flatnonzero(~held)), rng)
    outside = part.take(np.flatnonzero(held))
    inner.problem.validation = Rows(inner.rows(outside.table.Z), plan.labels(outside.y), outside.weight)
    return inner


def left_out(part: Part, share: float, rng: np.random.Generator, at_least: int, leave: int) -> BoolArray:
    """(m,) which rows are drawn: a share of each class, all rows of a group together.

    At least so many rows (or groups) of a class are drawn, and at least `leave` stay where they can.
    """
    units = np.arange(len(part.y)) if part.groups is None else part.groups
    chosen: set[int] = set()
    for code in np.unique(part.y):
        own = np.array(sorted(set(units[part.y == code].tolist())))
        most = min(max(at_least, round(share * len(own))), max(len(own) - leave, min(1, len(own) - 1)))
        free = own[~np.isin(own, list(chosen))]
        wanted = most - (len(own) - len(free))
        chosen |= set(rng.choice(free, size=min(max(wanted, 0), len(free)), replace=False).tolist())
    for code in np.unique(part.y) if leave else ():  # groups that hold two classes may have taken too much of one
        members = set(units[part.y == code].tolist())
        lacking = min(leave, max(len(members) - 1, 1)) - len(members - chosen)
        chosen -= set(rng.permutation(sorted(members & chosen))[: max(lacking, 0)].tolist())
    return np.isin(units, list(chosen))


def with_path(ready: Prepared, path: Path) -> Searched:
    """A prepared part and a path over its table that is known already."""
    return Searched(ready.problem, ready.y, ready.usable, ready.scaling, ready.most, path)


def prepare(plan: Plan, part: Part, rng: np.random.Generator) -> Prepared:
    """Leave out columns that do not vary, standardise, oversample: all from these rows alone."""
    table, n = part.table, part.table.shape[1]
    usable = np.flatnonzero(varying(table.Z)).astype(np.intp)
    if not len(usable):
        raise InputError("every column is constant in the training rows: there is nothing to select")
    if len(usable) < n:
        table = table.columns(usable)
    scaling = None
    if plan.standardize and plan.kernel.geometry != "tent":
        scaling = Scaling.fit(table, part.weight)
        table = replace(table, Z=scaling.apply(table.Z))
    y, weight = part.y, part.weight
    if plan.sampler is not None:
        table, y, weight = _oversampled(plan.sampler, table, y, weight, rng)
    problem = Problem(
        table=table,
        y=plan.labels(y),
        cost=plan.costs(y, weight),
        sample_weight=weight,
        scale=plan.kernel.scale(table, weight),
        kernel=plan.kernel,
        machine=plan.machine,
        criterion=plan.criterion,
        keep=_places(plan.keep, usable),
        groups=part.groups if plan.sampler is None else None,
    )
    left = len(usable) if plan.prefilter is None else max(plan.prefilter[1], len(problem.keep))
    return Prepared(problem, y, usable, scaling, min(left, len(usable)))


def _places(keep: tuple[int, ...], usable: IntArray) -> IntArray:
    return np.flatnonzero(np.isin(usable, keep)).astype(np.intp)


def _over_all(path: Path, usable: IntArray, n: int) -> Path:
    """The path in the table's own numbering, features that do not vary at its end without a score."""
    if len(usable) == n:
        return path
    rest = np.setdiff1d(np.arange(n), usable)
    return _placed(path, usable, rest, n)


def _placed(path: Path, inside: IntArray, rest: IntArray, n: int) -> Path:
    """A path over some of n features in the numbering of all, the rest after it without a score."""
    scores = np.full(n, np.nan)
    scores[inside] = path.scores
    order = np.concatenate([inside[path.order], rest]).astype(np.intp)
    tried = None if path.harmonies is None else path.harmonies.among(inside, n)
    return replace(path, order=order, scores=scores, harmonies=tried)


def _prefiltered(plan: Plan, problem: Problem, rng: np.random.Generator) -> Path:
    """Search among the best columns of a filter; the others follow in the filter's order."""
    assert plan.prefilter is not None
    criterion, size = plan.prefilter
    value = np.asarray(criterion.score(problem, None, ()))
    kept = np.isin(np.arange(len(value)), problem.keep)
    order = np.lexsort((-value, ~kept)).astype(np.intp)
    size = max(size, int(kept.sum()))
    inside, outside = np.sort(order[:size]), order[size:]
    small = problem.part(inside)
    small.scale = plan.kernel.scale(small.table, small.sample_weight)
    problem.scale[inside] = small.scale  # the machine on what is selected works at the width of the search
    path: Path = plan.search.run(small, rng)
    problem.count(small)
    return _placed(path, inside, outside, len(value))


def _oversampled(
    sampler: Any, table: Table, y: IntArray, weight: Array, rng: np.random.Generator
) -> tuple[Table, IntArray, Array]:
    """The resampled rows; a synthetic row weighs what the rows of its class weigh on average."""
    from sklearn.base import clone

    sampler = clone(sampler)
    if getattr(sampler, "random_state", 0) is None:
        sampler.set_params(random_state=int(rng.integers(2**31)))
    try:
        rows = sparse.csr_array(table.Z) if table.is_sparse else np.ascontiguousarray(table.Z)
        Z, codes = sampler.fit_resample(rows, y)
    except InputError:
        raise
    except ValueError as error:
        smallest = int(np.bincount(y).min())
        raise InputError(
            f"{type(sampler).__name__} failed on a training part whose rarest class has {smallest} rows: {error}"
        ) from error
    codes = np.asarray(codes, dtype=np.intp)
    mean = np.bincount(y, weight) / np.maximum(np.bincount(y), 1)
    weights = mean[codes]
    if hasattr(sampler, "sample_indices_"):
        weights = weight[sampler.sample_indices_]
    elif len(codes) >= len(y) and np.array_equal(codes[: len(y)], y):
        weights[: len(y)] = weight
    return replace(table, Z=sparse.csc_array(Z) if is_sparse(Z) else np.asfortranarray(Z)), codes, weights
