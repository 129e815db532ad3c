"""Backward elimination: solve, score, drop the worst, again."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator

from .._types import IntArray
from ..problem import Path, Problem
from ..table import InputError


class Backward(BaseEstimator):
    """Recursive elimination from all features down to one.

    Parameters
    ----------
    step : float or int
        What is dropped each time: a share of what is left (in (0, 1), at least one feature) or a count (1, 2, ...).
    one_by_one_below : int
        From this many features on, one is dropped each time; 0 is never.
    """

    def __init__(self, step: float | int = 0.2, one_by_one_below: int = 0) -> None:
        self.step = step
        self.one_by_one_below = one_by_one_below

    def run(self, problem: Problem, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Ranks later dropped features higher; within one drop, higher scores; then the leftmost column."""
        self._check()
        gram = problem.gram()
        n = len(gram.features)
        scores, order, steps = np.zeros(n), np.empty(n, dtype=np.intp), []
        solutions, left = None, n
        while True:
            since = time.perf_counter()
            solutions = problem.solve(gram, warm=solutions)
            value = problem.score(gram, solutions)
            scores[gram.features] = value
            steps.append(problem.step(left, solutions, since))
            worst_first = _ascending(value, np.isin(gram.features, problem.keep) if len(problem.keep) else None)
            count = min(self._count(left), left - 1) if left > 1 else 1
            gone = gram.features[worst_first[:count]]
            order[left - count : left] = gone[::-1]
            left -= count
            if left == 0:
                return Path(order, scores, tuple(steps), "all features were eliminated")
            gram = gram.without(np.sort(gone))

    def _count(self, left: int) -> int:
        if left <= self.one_by_one_below:
            return 1
        return int(self.step) if self.step >= 1 else max(1, int(self.step * left))

    def _check(self) -> None:
        step = self.step
        if isinstance(step, bool) or not (0 < step < 1 or (step >= 1 and float(step).is_integer())):
            raise InputError(f"step is {step!r}; it must be a share in (0, 1) or a whole number of 1 or more")


def _ascending(value: np.ndarray, kept: np.ndarray | None) -> IntArray:
    """Places from worst to best: kept features last, then by score; the leftmost of equal columns counts as better."""
    backwards = np.arange(len(value) - 1, -1, -1)
    keys = (value[::-1],) if kept is None else (value[::-1], kept[::-1])
    return np.asarray(backwards[np.lexsort(keys)], dtype=np.intp)
