"""Learned weights: what a machine that weighs each feature's kernel gives it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra.gram import Gram
from ..contracts import Array
from ..problem import Problem, Solution


class LearnedWeight(BaseEstimator):
    """mu_f of multiple kernel learning; most are exactly 0, and these rank by c'K_f c, the pull towards a weight."""

    needs = frozenset({"solution"})
    ties_by = "features without a weight ranked by c'K_f c"

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) summed over the binary problems."""
        assert gram is not None
        return np.asarray(np.sum([s.scale[gram.features] ** 2 for s in solutions if s.scale is not None], axis=0))

    def ties(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) c'K_f c, summed over the binary problems."""
        assert gram is not None
        return np.asarray(np.sum([gram.feature_quadratic(solution.coef) for solution in solutions], axis=0))
