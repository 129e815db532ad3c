"""Learned weights: what a machine that weighs each feature's kernel gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, LearnsWeights, ProblemView, Solution


class LearnedWeight(BaseEstimator):
    """mu_f of multiple kernel learning.

    Most weights are exactly 0; features without a weight rank by c'K_f c, the gradient at zero weight.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import LearnedWeight
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector("clinical", "mkl", criterion=LearnedWeight(), n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    requires: ClassVar[tuple[type, ...]] = (LearnsWeights,)
    ties_by = "features without a weight ranked by c'K_f c"

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:
        """(p,) summed over the binary problems."""
        machine = problem.machine
        assert isinstance(machine, LearnsWeights)
        return np.asarray(np.sum([machine.learned_weights(solution, gram) for solution in solutions], axis=0))

    def ties(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) c'K_f c, summed over the binary problems."""
        return np.asarray(np.sum([gram.feature_quadratic(solution.coef) for solution in solutions], axis=0))
