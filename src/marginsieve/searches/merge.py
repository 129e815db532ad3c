"""Merging two rankings, of numbers and of categories, into one: hybrid feature selection."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import CATEGORICAL, Array, BoolArray, IntArray, Path, ProblemView, TableView
from ..data.table import column_of
from ..errors import InputError, one_of, positive_number, whole_number
from ..outcomes.scores import balanced_accuracy
from ..outcomes.target import stratified_folds, units_per_stratum
from ..problem import class_codes, step_of
from ..solvers.execution import jit
from .ranking import worst_first

# How well a growing set of features predicts in inner folds, by classifiers whose scores are sums over features.
#
# Naive Bayes adds log-likelihoods, nearest neighbors add squared distances: the running sums are kept, so that trying
# one more feature costs m (or m^2) and nothing is fitted anew. Everything that is fitted (means, variances, shares of
# levels, ranges) comes from the rows outside the fold of the row that it judges.


@dataclass(frozen=True)
class FoldedRows:
    """What the judges know of the rows: class codes, weights, folds (m,)."""

    table: TableView
    codes: IntArray
    weight: Array
    fold: IntArray

    @property
    def classes(self) -> int:
        return int(self.codes.max()) + 1

    @property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    def outside(self, values: Array, cell: IntArray, size: int) -> Array:
        """(folds, size): sums of values by cell over the rows outside each fold."""
        # Sums over all rows less those of the fold: one pass for all folds.
        by_fold = np.bincount(self.fold * size + cell, values, minlength=self.folds * size).reshape(self.folds, size)
        return np.asarray(by_fold.sum(axis=0) - by_fold)

    def balanced_accuracy(self, score: Array) -> float:
        """Of the class with the largest score (m, classes); where several are, a row counts in part."""
        best = score >= score.max(axis=1, keepdims=True) - 1e-12
        right = best[np.arange(len(score)), self.codes] / best.sum(axis=1)
        return balanced_accuracy(right, self.codes, self.weight)


class NaiveBayes:
    """log P(class) + sum_j log p(x_j | class): a normal density for numbers, smoothed shares of levels for categories.

    A missing cell says nothing. `smoothing` of a column's variance is added to each class's; each level of a category
    is counted once more than it was seen.
    """

    def __init__(self, rows: FoldedRows, smoothing: float) -> None:
        self.rows, self.smoothing = rows, smoothing
        prior = rows.outside(rows.weight, rows.codes, rows.classes)
        with np.errstate(divide="ignore"):
            self.total = np.log(prior / prior.sum(axis=1, keepdims=True))[rows.fold]  # (m, classes)

    def value(self, j: int) -> float:
        return self.rows.balanced_accuracy(self.total + self.likelihood(j))

    def add(self, j: int) -> None:
        self.total = self.total + self.likelihood(j)

    def likelihood(self, j: int) -> Array:
        """(m, classes): log p(x_j | class) of each row."""
        x = column_of(self.rows.table.Z, j)
        seen = ~np.isnan(x)
        logs = self._levels(x, seen) if self.rows.table.kind[j] in CATEGORICAL else self._density(x, seen)
        return np.where(seen[:, None], logs, 0.0)

    def _density(self, x: Array, seen: BoolArray) -> Array:
        rows, w = self.rows, self.rows.weight * seen
        z = np.where(seen, x, 0.0)
        # Variances are differences of squares below: the common mean is taken off first.
        z = z - (w @ z) / max(float(w.sum()), 1e-300)
        z = np.where(seen, z, 0.0)
        k = rows.classes
        mass, first, second = (rows.outside(w * power, rows.codes, k) for power in (np.ones(len(z)), z, z * z))
        mean = first / np.maximum(mass, 1e-300)
        variance = np.maximum(second / np.maximum(mass, 1e-300) - mean**2, 0.0)
        whole = np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
        middle = first.sum(axis=1, keepdims=True) / whole
        overall = np.maximum(second.sum(axis=1, keepdims=True) / whole - middle**2, 0.0)
        mean = np.where(mass > 0, mean, middle)  # a class that was never observed is like all rows
        variance = np.where(mass > 0, variance, overall) + self.smoothing * np.maximum(overall, 1e-300)
        fold, away = rows.fold, z[:, None] - mean[rows.fold]
        return np.asarray(-0.5 * (np.log(2.0 * np.pi * variance[fold]) + away**2 / variance[fold]))

    def _levels(self, x: Array, seen: BoolArray) -> Array:
        rows, level = self.rows, np.zeros(len(x), dtype=np.intp)
        known, level[seen] = np.unique(x[seen], return_inverse=True)
        count, k = max(len(known), 1), rows.classes
        mass = rows.outside(rows.weight * seen, level * k + rows.codes, count * k).reshape(-1, count, k)
        # Laplace's rule: a level that a class does not have is unlikely, not impossible.
        share = np.log((mass + 1.0) / (mass.sum(axis=1, keepdims=True) + count))
        return np.asarray(share[rows.fold, level])


class NearestNeighbors:
    """The vote of the nearest rows outside the fold, by the heterogeneous Euclidean-overlap distance.

    Rows at the distance of the last neighbor share its vote, so that the order of the rows does not matter.
    """

    def __init__(self, rows: FoldedRows, n_neighbors: int) -> None:
        self.rows, self.n_neighbors = rows, n_neighbors
        self.total = np.zeros((len(rows.codes), len(rows.codes)))  # squared distances

    def value(self, j: int) -> float:
        rows = self.rows
        column = self._column(j)
        votes = _votes(self.total, *column, rows.fold, rows.codes, rows.weight, rows.classes, self.n_neighbors)
        return rows.balanced_accuracy(votes)

    def add(self, j: int) -> None:
        _add(self.total, *self._column(j), self.rows.fold)

    def _column(self, j: int) -> tuple[Array, bool, Array, Array]:
        """Codes, whether they are categories, and the range over the rows outside each fold."""
        x = column_of(self.rows.table.Z, j)
        low, high = np.zeros(self.rows.folds), np.zeros(self.rows.folds)
        for k in range(self.rows.folds):
            part = x[self.rows.fold != k]
            if not np.isnan(part).all():
                low[k], high[k] = np.nanmin(part), np.nanmax(part)
        return np.ascontiguousarray(x), self.rows.table.kind[j] in CATEGORICAL, low, high


@jit
def _square(u: float, v: float, nominal: bool, low: float, high: float) -> float:
    """d^2 of two values, u clipped to the range of the others."""
    if np.isnan(u) or np.isnan(v):
        return 1.0
    if nominal:
        return 0.0 if u == v else 1.0
    if high <= low:
        return 0.0
    d = (min(max(u, low), high) - v) / (high - low)
    return d * d


@jit
def _add(total: Array, x: Array, nominal: bool, low: Array, high: Array, fold: IntArray) -> None:
    """One more column in the squared distances of each row to the rows outside its fold."""
    m = x.shape[0]
    for i in range(m):
        f, u = fold[i], x[i]
        for k in range(m):
            if fold[k] != f:
                total[i, k] += _square(u, x[k], nominal, low[f], high[f])


@jit
def _last(distance: Array, fold: IntArray, f: int, nearest: Array) -> float:
    """The distance of the last of the nearest rows outside a fold, all of them where they are fewer."""
    count, most = 0, nearest.shape[0]
    for k in range(distance.shape[0]):
        d = distance[k]
        if fold[k] == f or (count == most and d >= nearest[count - 1]):
            continue
        place = count if count < most else most - 1  # insert into the sorted list of the nearest
        count = min(count + 1, most)
        while place > 0 and nearest[place - 1] > d:
            nearest[place] = nearest[place - 1]
            place -= 1
        nearest[place] = d
    last: float = nearest[count - 1]
    return last


@jit
def _votes(
    total: Array,
    x: Array,
    nominal: bool,
    low: Array,
    high: Array,
    fold: IntArray,
    codes: IntArray,
    weight: Array,
    classes: int,
    n_neighbors: int,
) -> Array:
    """(m, classes): what the nearest rows vote with one more column in the distances."""
    m = x.shape[0]
    out, distance, nearest, edge_votes = np.zeros((m, classes)), np.empty(m), np.empty(n_neighbors), np.empty(classes)
    for i in range(m):
        f, u = fold[i], x[i]
        for k in range(m):
            distance[k] = total[i, k] + _square(u, x[k], nominal, low[f], high[f])
        edge = _last(distance, fold, f, nearest)
        # Rows at the edge share the votes that are left, so that neither their order nor rounding decides.
        slip, inside, at_edge = 1e-12 * (1.0 + edge), 0, 0
        edge_votes[:] = 0.0
        for k in range(m):
            if fold[k] == f or distance[k] > edge + slip:
                continue
            if distance[k] < edge - slip:
                inside += 1
                out[i, codes[k]] += weight[k]
            else:
                at_edge += 1
                edge_votes[codes[k]] += weight[k]
        share = min(n_neighbors - inside, at_edge) / at_edge
        for k in range(classes):
            out[i, k] += share * edge_votes[k]
    return out


JUDGES = ("naive_bayes", "nearest_neighbors")


class Merge(BaseEstimator):
    """Numbers and categories are ranked apart by the criterion; the heads of the two lists then compete for each place.

    The head with which a classifier does better in inner folds (by balanced accuracy) comes next; of equal ones the one
    with the higher score, then the number. When one list is used up, the other follows in its order.

    Parameters
    ----------
    judge : "naive_bayes" or "nearest_neighbors", default="naive_bayes"
        The classifier: naive Bayes for mixed columns, or nearest neighbors by the HEOM distance.
    cv : int, default=10
        Number of inner folds; fewer where a class has fewer rows.
    n_neighbors : int, default=5
        Number of neighbors that vote, for judge="nearest_neighbors".
    smoothing : float, default=1e-3
        Share of a column's variance that naive Bayes adds to that of each class.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import Merge
    >>> cohort = make_cohort(60, 8, n_relevant=2, n_categorical=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(
    ...     "clinical", criterion="mixed_test", search=Merge("naive_bayes"), n_features_to_select=2, random_state=0
    ... )
    >>> selector.fit(cohort.X, cohort.y).n_features_
    2
    """

    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"filter"})
    multiclass = True

    def __init__(self, judge: str = "naive_bayes", cv: int = 10, n_neighbors: int = 5, smoothing: float = 1e-3) -> None:
        self.judge = judge
        self.cv = cv
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        one_of("search", "judge", self.judge, JUDGES)
        whole_number("search", "cv", self.cv, 2)
        whole_number("search", "n_neighbors", self.n_neighbors)
        positive_number("search", "smoothing", self.smoothing)

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:
        """Features to keep come first, by their score."""
        since = time.perf_counter()
        value = problem.score(None, ())
        n = len(value)
        best_first = worst_first(value, n, np.isin(np.arange(n), problem.keep))[::-1]
        chosen, rest = best_first[: len(problem.keep)].tolist(), best_first[len(problem.keep) :]
        category = np.array([kind in CATEGORICAL for kind in problem.table.kind])
        lists = [rest[~category[rest]].tolist(), rest[category[rest]].tolist()]
        placed = 0
        if all(lists):
            judge = self._judge(problem, rng)
            for j in chosen:
                judge.add(j)
            while all(lists):
                # The heads of the two lists compete; a tie goes by the filter's score, and then to numbers.
                tried = [(judge.value(part[0]), value[part[0]]) for part in lists]
                winner = lists[int(tried[1] > tried[0])].pop(0)
                judge.add(winner)
                chosen.append(winner)
                placed += 1
        order = np.array([*chosen, *lists[0], *lists[1]], dtype=np.intp)
        reason = f"{placed} features were placed by {self.judge} in inner folds; the others follow in their order"
        return Path(order, value, (step_of(n, (), since),), reason)

    def _judge(self, problem: ProblemView, rng: np.random.Generator) -> NaiveBayes | NearestNeighbors:
        codes, groups = class_codes(problem.y), problem.groups
        folds = min(int(self.cv), *units_per_stratum(codes, groups))
        if folds < 2:
            raise InputError(
                f"search: {type(self).__name__} needs two rows (or groups) of each class in a training part: use "
                "another search"
            )
        # Every row is tested once: a fold number for each row is all that the judges need.
        fold = np.zeros(len(codes), dtype=np.intp)
        for k, (_, test) in enumerate(stratified_folds(codes, groups, folds, int(rng.integers(2**31)))):
            fold[test] = k
        rows = FoldedRows(problem.table, codes, problem.sample_weight, fold)
        if self.judge == "naive_bayes":
            return NaiveBayes(rows, self.smoothing)
        return NearestNeighbors(rows, int(self.n_neighbors))
