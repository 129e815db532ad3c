"""What a sphere loses when a feature is left out and alpha is kept: radius, or dual objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, HasSphere, ProblemView, Solution
from ..errors import one_of


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
