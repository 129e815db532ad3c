"""Top k: score every feature once and sort."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator

from ..problem import Path, Problem
from .backward import told, worst_first


class TopK(BaseEstimator):
    """One ranking by the criterion, of a filter or of one machine fitted on all features."""

    def run(self, problem: Problem, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Equal scores rank from left to right; features to keep come first."""
        since = time.perf_counter()
        gram = problem.gram() if "solution" in problem.criterion.needs else None
        solutions = problem.solve(gram) if gram is not None else ()
        value = problem.score(gram, solutions)
        kept = np.isin(np.arange(len(value)), problem.keep)
        order = worst_first(value, len(value), kept, problem.ties(gram, solutions))[::-1]
        reason = told("every feature was scored once", problem)
        return Path(order, value, (problem.step(len(order), solutions, since),), reason)
