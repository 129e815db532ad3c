"""Merging two rankings, of numbers and of categories, into one: hybrid feature selection."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import CATEGORICAL, Path, ProblemView
from ..errors import InputError, one_of, positive_number, whole_number
from ..outcomes.target import stratified_folds, units_per_stratum
from ..problem import class_codes, step_of
from ._judges import FoldedRows, NaiveBayes, NearestNeighbors
from .backward import worst_first

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
