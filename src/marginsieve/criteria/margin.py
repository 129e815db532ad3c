"""Margin change: how far the squared margin norm moves when a feature is left out and alpha is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..batches.arrays import DeviceArray
from ..contracts import Array, Batch, Gram, HasMargin, ProblemView, Resources, Solution


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
