"""Criteria of a fitted machine: how margin, loss or sphere change without a feature, and weights that it learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..batches.arrays import DeviceArray
from ..contracts import (
    SIGNS,
    TIMES,
    VALUES,
    Array,
    Batch,
    Gram,
    HasMargin,
    HasSphere,
    LearnsWeights,
    ProblemView,
    Resources,
    Solution,
)
from ..errors import InputError, number_within, one_of, positive_number


class MarginChange(BaseEstimator):
    """``|W^2 - W^2(without j)|``, W^2 = c'Kc; on the linear kernel this is w_j^2 (Guyon et al. 2002).

    Parameters
    ----------
    exact : bool, default=False
        Compute the change to rounding error on the Gaussian kernel too, by one kernel matrix for each feature;
        otherwise it is accurate to 1e-6 of the median change.

    References
    ----------
    Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using support vector machines, Machine
    Learning 46 (2002) 389-422.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import MarginChange
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion=MarginChange(), search="backward", n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES, TIMES})
    requires: ClassVar[tuple[type, ...]] = (HasMargin,)
    resources = Resources(linear_in_rows=True)
    in_batches: ClassVar[bool] = True

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) summed over the binary problems."""
        # The sign says whether the margin grew or shrank without j; either way the machine leans on j.
        total = np.abs(gram.drop_one_change(solutions[0].coef, exact=self.exact))
        for solution in solutions[1:]:
            total += np.abs(gram.drop_one_change(solution.coef, exact=self.exact))
        return np.asarray(total)

    def score_batched(self, batch: Batch, live: DeviceArray) -> DeviceArray:
        """(F, n): the same for many training parts, each at its live features (F, q)."""
        return batch.margin_changes(live)


# Loss without a feature: what the machine gets wrong when a feature is left out, alpha and b kept.

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
        wrong, above = (label * value <= 0.0).astype(np.float64), label > 0
        misses, alarms = wrong @ np.where(above, weight, 0.0), wrong @ np.where(above, 0.0, weight)
        if self.loss == "balanced":
            return np.asarray(0.5 * (misses / weight[above].sum() + alarms / weight[~above].sum()))
        fp, fn = self.costs if self.loss == "cost" else (1.0, 1.0)
        return np.asarray((fp * alarms + fn * misses) / weight.sum())


# What a sphere loses when a feature is left out and alpha is kept: radius, or dual objective.


class SphereChange(BaseEstimator):
    """How far the squared radius R2 or the dual objective D of a sphere moves without feature j, alpha kept.

    ::

        R2 = sum_k v_k d2(x_k),   d2(x) = K(x, x) - 2 sum_i c_i K(x_i, x) + c'Kc,   D = sum_i c_i K_ii - c'Kc
        R2 - R2(without j) = sum_k v_k G_kk + c'G(c - 2v),   D - D(without j) = sum_i c_i G_ii - c'Gc

    with G = K - K(without j) and v the mean over the samples on the sphere. On the linear kernel, with
    a_j = sum_i c_i x_ij, these are s_j^2 sum_k v_k (x_kj - a_j)^2 and s_j^2 (sum_i c_i x_ij^2 - a_j^2).

    The published rule drops first what changes R2 or D least. On standardized columns that keeps the columns in which
    the targets scatter, which is noise, and loses those that separate the classes; so by default what shrinks the
    sphere most is dropped first.

    Parameters
    ----------
    of : "radius" or "dual", default="radius"
        Whether the change is that of the squared radius or of the dual objective.
    drop : "largest" or "smallest", default="largest"
        What is dropped first: what shrinks the sphere most, or the change of the smallest size, as published.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import SphereChange
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(
    ...     "gaussian", "svdd", SphereChange(of="radius"), n_features_to_select=2, standardize=True, random_state=0
    ... )
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    requires: ClassVar[tuple[type, ...]] = (HasSphere,)

    def __init__(self, of: str = "radius", drop: str = "largest") -> None:
        self.of = of
        self.drop = drop

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        one_of("criterion", "of", self.of, ("radius", "dual"))
        one_of("criterion", "drop", self.drop, ("largest", "smallest"))

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:
        """(p,) summed over the class problems."""
        machine, total = problem.machine, np.zeros(len(gram.features))
        assert isinstance(machine, HasSphere)
        for solution, y, cost in zip(solutions, problem.y, problem.cost, strict=True):
            c = solution.coef / -2.0
            if self.of == "dual":
                change = gram.drop_one_diagonal_change(c) - gram.drop_one_change(c)
            else:
                v = machine.on_sphere(solution, gram, y, cost)
                # c'G(c - 2v) is bilinear: one call with two vectors, never the difference of two radii.
                change = gram.drop_one_diagonal_change(v) + gram.drop_one_change(c, c - 2.0 * v)
            total += np.abs(change) if self.drop == "smallest" else -change
        return total


# Learned weights: what a machine that weighs each feature's kernel gives it.


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
