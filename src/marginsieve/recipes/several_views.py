"""Blends: several selectors in one model."""

from __future__ import annotations

import inspect
from typing import Any

from ..criteria import ReliefF
from ..estimators import Blend, SVMSelector
from ..estimators.blend import linear_and_clinical
from ..kernels import Gaussian
from ..machines import CSVC
from ..searches import TopK
from .registry import register

OF_BLEND = frozenset(inspect.signature(Blend).parameters) - {"views", "combine"}
COSTS = (1.0, 10.0, 100.0)  # C of the non-linear probe, chosen by inner folds


@register(
    "maldonado2018",
    "paul",
    "daemen2009",
    family="blend",
    takes="numbers categories missing",
    cost=(0.5, 8.0, 6.0),
    default_for={"numbers": 1, "rare class": 1},
)
def two_views(C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any) -> Blend:
    """A linear machine on the best columns by the Fisher score, and elimination on the clinical kernel, averaged.

    Each view ranks the features and chooses how many it takes. On tables with categories the linear view sees the
    other columns, and missing cells at the means of the training rows; the clinical kernel takes both as they are.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error in both views.
    step : float or int, default=0.2
        Features dropped in each step of the elimination: a share of those that are left or a count.
    standardize : bool, default=True
        Scale every column of the linear view to mean 0 and variance 1 over the training rows.
    **settings
        Further parameters of Blend, and of the views (SVMSelector).

    Returns
    -------
    Blend
        The configured blend, not fitted.

    References
    ----------
    Fisher score as in Maldonado and Lopez, Applied Soft Computing 67 (2018) 94-105; elimination on the clinical kernel
    as in Paul and Dupont, Kernel methods for mixed feature selection; kernel of Daemen and De Moor, EMBC 2009.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> blend = recipes.two_views(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> blend.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    of_views, shared = _split(settings)
    return Blend(linear_and_clinical(C, step, standardize, **of_views), **shared)


@register("kononenko1994", family="blend", takes="numbers", cost=(0.8, 10.0, 10.0), default_for={"numbers": 4})
def interactions(
    n_neighbors: int = 10, C: float | tuple[float, ...] = COSTS, standardize: bool = True, **settings: Any
) -> Blend:
    """The best features by ReliefF, then a machine on the Gaussian kernel: sees features that matter only together.

    The cost of the machine is chosen by the inner folds, together with the number of features.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbors of each class that a row is compared with.
    C : float or tuple of float, default=(1.0, 10.0, 100.0)
        Costs of a margin error that are tried.
    standardize : bool, default=True
        Scale every column to mean 0 and variance 1 over the training rows.
    **settings
        Further parameters of Blend, and of the views (SVMSelector).

    Returns
    -------
    Blend
        The configured blend, not fitted.

    References
    ----------
    Kononenko, Estimating attributes: analysis and extensions of RELIEF, ECML 1994, 171-182.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import recipes
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> y = X[:, 2] * X[:, 5] > 0
    >>> recipes.interactions(n_features_to_select=2, random_state=0).fit(X, y).get_support(indices=True).tolist()
    [2, 5]
    """
    of_views, shared = _split({"standardize": standardize, **settings})
    costs = C if isinstance(C, (tuple, list)) else (C,)
    views = [SVMSelector(Gaussian(), CSVC(C=cost), ReliefF(n_neighbors), TopK(), **of_views) for cost in costs]
    return Blend(views, combine="best", **shared)


def _split(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the views, and of the blend."""
    shared = {name: value for name, value in settings.items() if name in OF_BLEND}
    return {name: value for name, value in settings.items() if name not in shared}, shared
