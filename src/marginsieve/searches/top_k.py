"""Top k: score every feature once and sort."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array
from ..problem import Path, Problem, Solution
from .backward import told, worst_first


class TopK(BaseEstimator):
    """One ranking by the criterion, of a filter or of one machine fitted on all features."""

    def run(self, problem: Problem, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Equal scores rank from left to right; features to keep come first."""
        since = time.perf_counter()
        value, ties, solutions = scored(problem)
        kept = np.isin(np.arange(len(value)), problem.keep)
        order = worst_first(value, len(value), kept, ties)[::-1]
        reason = told("every feature was scored once", problem)
        return Path(order, value, (problem.step(len(order), solutions, since),), reason)


def scored(problem: Problem) -> tuple[Array, Array | None, tuple[Solution, ...]]:
    """(n,) the criterion of every feature, what orders equal ones, and the machine on all where it was needed."""
    gram = problem.gram() if "solution" in problem.criterion.needs else None
    solutions = problem.solve(gram) if gram is not None else ()
    return problem.score(gram, solutions), problem.ties(gram, solutions), solutions
