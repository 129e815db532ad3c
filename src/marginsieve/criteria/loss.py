"""Loss without a feature: what the machine gets wrong when a feature is left out, alpha and b kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, HasMargin, ProblemView, Resources, Solution
from ..errors import InputError, number_within, one_of, positive_number
from .margin import MarginChange

LOSSES = ("balanced", "zero-one", "cost")
DIGITS = 12  # losses that agree so far are equal: sums of weights in another order differ behind that


class Loss(BaseEstimator):
    """The loss of f_j(x) = sum_i c_i K(without j)(x_i, x) + b; a feature whose loss is small can be dropped.

    ::

        zero-one: share of the rows with y f_j <= 0          balanced: mean of the two classes' shares
        cost:     (fp * false positives + fn * false negatives) / rows

    Rows count by their sample weight. A loss takes few values, so many features tie: of equal losses the one with the
    smaller margin change is dropped first. With more than two classes the losses of the class problems are added.

    Parameters
    ----------
    loss : "balanced", "zero-one" or "cost", default="balanced"
        Loss that is compared between features.
    costs : (float, float), default=(1.0, 1.0)
        Cost of a false positive and of a false negative, for loss="cost".
    held_out : float, default=0.0
        Share of the training rows (of each class, groups kept together), from 0 to 0.5, on which the loss is measured;
        the machine is then fitted on the others. 0 measures it on the rows of the fit.

    References
    ----------
    Maldonado, Weber and Famili, Feature selection for high-dimensional class-imbalanced data sets using support vector
    machines, Information Sciences 286 (2014) 228-246.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Loss
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=Loss("balanced"), search="backward", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    requires: ClassVar[tuple[type, ...]] = (HasMargin,)
    ties_by = "equal losses were ordered by the margin change"
    resources = Resources(linear_in_rows=True)

    def __init__(self, loss: str = "balanced", costs: tuple[float, float] = (1.0, 1.0), held_out: float = 0.0) -> None:
        self.loss = loss
        self.costs = costs
        self.held_out = held_out

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        one_of("criterion", "loss", self.loss, LOSSES)
        if not isinstance(self.costs, (tuple, list)) or len(self.costs) != 2:
            raise InputError(
                f"criterion: costs is {self.costs!r}; it must be two positive numbers, of a false positive and of a "
                "false negative"
            )
        for value in self.costs:
            positive_number("criterion", "a value of costs", value)
        number_within("criterion", "held_out", self.held_out, 0.0, 0.5)

    @property
    def held_out_share(self) -> float:
        """The share of the training rows on which the loss is measured."""
        return float(self.held_out)

    @property
    def held_out_name(self) -> str:
        """The parameter that sets it."""
        return "criterion: held_out"

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:
        """(p,) the loss without each live feature, summed over the class problems."""
        Z, y, weight = problem.judging_rows
        total = np.zeros(len(gram.features))
        for solution, label in zip(solutions, y, strict=True):
            # f without j has the coefficients and the intercept of f with it: nothing is solved again.
            for part, values in gram.drop_one_parts(solution.coef, Z):
                total[part] += self._losses(values + solution.intercept, label, weight)
        return np.round(total, DIGITS)

    def ties(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:
        """(p,) what orders features of equal loss."""
        return MarginChange().score(problem, gram, solutions)

    def _losses(self, value: Array, label: Array, weight: Array) -> Array:
        """(p,): the loss of decision values (p, rows)."""
        wrong, positive = (label * value <= 0.0).astype(np.float64), label > 0
        misses, alarms = wrong @ np.where(positive, weight, 0.0), wrong @ np.where(positive, 0.0, weight)
        if self.loss == "balanced":
            return np.asarray(0.5 * (misses / weight[positive].sum() + alarms / weight[~positive].sum()))
        fp, fn = self.costs if self.loss == "cost" else (1.0, 1.0)
        return np.asarray((fp * alarms + fn * misses) / weight.sum())
