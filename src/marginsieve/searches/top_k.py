"""Top k: score every feature once and sort."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Batch, Path, ProblemView, Resources, Solution
from ..problem import is_filter, step_of
from .backward import reason_with_ties, worst_first


class TopK(BaseEstimator):
    """One ranking, by a filter or by a criterion of one machine fitted on all features.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import TopK
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion="fisher", search=TopK(), n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"criterion", "filter"})
    multiclass = True
    resources = Resources(linear_in_rows=True)
    in_batches: ClassVar[bool] = True
    ended: ClassVar[str] = "every feature was scored once"

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Equal scores rank from left to right; features to keep come first."""
        since = time.perf_counter()
        value, ties, solutions = score_features(problem)
        kept = np.isin(np.arange(len(value)), problem.keep)
        order = worst_first(value, len(value), kept, ties)[::-1]
        reason = reason_with_ties(self.ended, problem)
        return Path(order, value, (step_of(len(order), solutions, since),), reason)

    def run_batched(self, batch: Batch) -> tuple[Any, Any]:
        """`run` on many training parts in step: features (F, p), best first, and their scores."""
        value = batch.score(batch.usable)
        order = batch.arrays.order(-value)
        return batch.arrays.take_along(batch.usable, order), batch.arrays.take_along(value, order)


def score_features(problem: ProblemView) -> tuple[Array, Array | None, tuple[Solution, ...]]:
    """(n,) the score of every feature, what orders equal ones, and the machine on all where it was needed."""
    gram = None if is_filter(problem.criterion) else problem.gram()
    solutions = problem.solve(gram) if gram is not None else ()
    return problem.score(gram, solutions), problem.ties(gram, solutions), solutions
