"""Backward elimination (RFE, BFE, SVDD-RFE, RFE-MKL), and blends: several selectors in one model."""

from __future__ import annotations

import inspect
from typing import Any

from ..contracts import CriterionLike, KernelLike, Machine, MachineLike
from ..criteria import LearnedWeight, Loss, MarginChange, ReliefF, RReliefF
from ..estimators import Blend, SVMSelector
from ..estimators.selector import linear_and_clinical, ridge_machines, ridge_views
from ..fitting.parts import criterion_of, kernel_of, machine_of
from ..kernels import Clinical, Gaussian
from ..machines import CSVC, MKL, CoxRidge, KernelRidge, MartingaleRidge, RankingSVM, Sphere
from ..outcomes import Classes, Survival
from ..searches import Backward, InTurns, TopK
from .registry import outcome_named, register


@register(
    "guyon2002",
    family="elimination",
    outcomes="classes numbers survival",
    takes="numbers sparse",
    cost=(0.2, 0.8, 1.8),
    default_for={"numbers": 2, "outcome numbers": 2, "outcome survival": 3},
    does_for={
        "numbers": "Recursive elimination by the margin change of kernel ridge regression, which also predicts.",
        "survival": "Recursive elimination by ridge regression on martingale residuals; proportional hazards predict.",
    },
)
def svm_rfe(
    kernel: KernelLike = "linear", C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """Recursive elimination by the margin change of a support vector machine.

    With outcome="numbers" it is elimination by kernel ridge regression, with outcome="survival" by ridge regression on
    martingale residuals, then a support vector machine that ranks (`marginsieve.machines.RankingSVM`); `C` plays no
    part in either.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
    C : float, default=1.0
    step : float or int, default=0.2
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using support vector machines, Machine
    Learning 46 (2002) 389-422.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.svm_rfe(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    settings = {"standardize": standardize, **settings}
    if outcome_named(settings) == Survival.name:
        eliminates, _ = ridge_machines(Survival.name)
        return _backward(kernel, eliminates, MarginChange(), step, settings, RankingSVM())
    return _by_margin(kernel, C, step, settings)


@register(
    "paul",
    "daemen2009",
    family="elimination",
    outcomes="classes numbers survival",
    takes="numbers categories missing",
    cost=(0.1, 4.0, 2.4),
    default_for={
        "mixed": 1,
        "mixed, rare class": 2,
        "outcome numbers, mixed": 2,
        "outcome survival": 1,
        "outcome survival, mixed": 1,
    },
    does_for={
        "numbers": "Recursive elimination by kernel ridge regression on the clinical kernel, which also predicts.",
        "survival": "Eliminations by ridge regression on martingale residuals on the clinical kernel, merged by turns; "
        "proportional hazards predict.",
    },
)
def clinical_rfe(C: float = 1.0, step: float | int = 0.2, **settings: Any) -> SVMSelector:
    """Recursive elimination on the clinical kernel: numbers and categories together, cells may be missing.

    The kernel is the mean over the columns that are left. With outcome="numbers" the machine is kernel ridge
    regression. With outcome="survival" three eliminations by ridge regression on martingale residuals, with penalties
    1, 0.1 and 0.03, are merged by turns, and proportional hazards with a ridge penalty are fitted on the list. `C`
    plays no part in either.

    Parameters
    ----------
    C : float, default=1.0
    step : float or int, default=0.2
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Paul and Dupont, Kernel methods for mixed feature selection; kernel of Daemen and De Moor, Development of a kernel
    function for clinical data, EMBC 2009, 5913-5917.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 8, n_relevant=2, n_categorical=2, effect=2.0, missing=0.05, random_state=0)
    >>> selector = recipes.clinical_rfe(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> set(selector.get_feature_names_out()) == set(cohort.truth.relevant)
    True
    """
    if outcome_named(settings) == Survival.name:
        machines = [MartingaleRidge(penalty) for penalty in PENALTIES]
        search = InTurns(machines, step=step, final=CoxRidge())
        return SVMSelector(Clinical(), machines[0], MarginChange(), search, **settings)
    return _by_margin(Clinical(), C, step, settings)


@register("paul", family="elimination", takes="numbers categories missing", cost=(0.7, 15.0, 9.6))
def mkl_rfe(
    kernel: KernelLike | None = None,
    C: float = 1.0,
    step: float | int = 0.2,
    final: MachineLike | None = "c_svc",
    **settings: Any,
) -> SVMSelector:
    """Recursive elimination by the weights that multiple kernel learning gives the features' clinical kernels.

    Parameters
    ----------
    kernel : str, Kernel or None, default=None
        Kernel of each feature, one that is a sum over features (clinical or linear); None is the clinical kernel,
        averaged over the columns.
    C : float, default=1.0
    step : float or int, default=0.2
    final : str, Machine or None, default="c_svc"
        Machine fitted on the selected features: "c_svc" is a support vector machine with the same `C`, None is the
        machine with the learned kernel weights.
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Paul and Dupont, Kernel methods for mixed feature selection.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 8, n_relevant=2, n_categorical=2, effect=2.0, missing=0.05, random_state=0)
    >>> selector = recipes.mkl_rfe(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> set(selector.get_feature_names_out()) == set(cohort.truth.relevant)
    True
    """
    kernel = Clinical() if kernel is None else kernel_of(kernel)
    last = None if final is None else CSVC(C=C) if final == "c_svc" else machine_of(final)
    last = None if last is None else machine_of(last)
    return _backward(kernel, MKL(C=C), LearnedWeight(), step, settings, last)


@register("maldonado2014", family="elimination", takes="numbers sparse")
def svm_bfe(
    kernel: KernelLike = "linear",
    C: float = 1.0,
    loss: str = "balanced",
    costs: tuple[float, float] = (1.0, 1.0),
    held_out: float = 0.0,
    step: float | int = 0.2,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Backward elimination by the loss (balanced, zero-one or with costs) that the machine has without a feature.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
    C : float, default=1.0
    loss : "balanced", "zero-one" or "cost", default="balanced"
        Loss that is compared between features.
    costs : (float, float), default=(1.0, 1.0)
        Cost of a false positive and of a false negative, for loss="cost".
    held_out : float, default=0.0
        Share of the training rows, from 0 to 0.5, on which the loss is measured and on which the machine is not fitted;
        0 measures it on the rows of the fit.
    step : float or int, default=0.2
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Maldonado, Weber and Famili, Feature selection for high-dimensional class-imbalanced data sets using support vector
    machines, Information Sciences 286 (2014) 228-246.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.svm_bfe(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    criterion = Loss(loss=loss, costs=costs, held_out=held_out)
    return _backward(kernel, CSVC(C=C), criterion, step, {"standardize": standardize, **settings})


@register("jeong2012", family="elimination")
def svdd_rfe(
    kernel: KernelLike = "gaussian",
    r: float = 0.1,
    r_out: float = 0.1,
    criterion: str = "radius",
    step: float | int = 0.2,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Recursive elimination by the radius or the dual objective of a sphere around the majority class.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
    r : float, default=0.1
    r_out : float, default=0.1
    criterion : "radius", "dual", "radius_as_printed" or "dual_as_printed", default="radius"
        Quantity whose change ranks the features. The first two drop first what shrinks the sphere most, the others what
        changes it least, as published; see `marginsieve.criteria.SphereChange`.
    step : float or int, default=0.2
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Jeong, Kang, Jeong and Kong, A new feature selection method for one-class classification problems, IEEE Transactions
    on Systems, Man and Cybernetics C 42 (2012) 1500-1509.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.svdd_rfe(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    sphere = Sphere(r=r, r_out=r_out)
    return _backward(kernel, sphere, criterion_of(criterion), step, {"standardize": standardize, **settings})


def _by_margin(kernel: KernelLike, C: float, step: float | int, settings: dict[str, Any]) -> SVMSelector:
    """Elimination by the change of the margin: of a support vector machine, or of what ridge regression is for."""
    if (outcome := outcome_named(settings)) == Classes.name:
        return _backward(kernel, CSVC(C=C), MarginChange(), step, settings)
    eliminates, predicts = ridge_machines(outcome)
    return _backward(kernel, eliminates, MarginChange(), step, settings, predicts)


def _backward(
    kernel: KernelLike,
    machine: MachineLike,
    criterion: CriterionLike,
    step: float | int,
    settings: dict[str, Any],
    final: Machine | None = None,
) -> SVMSelector:
    search = Backward(step=step, final=final)
    return SVMSelector(kernel=kernel_of(kernel), machine=machine, criterion=criterion, search=search, **settings)


PENALTIES = (1.0, 0.1, 0.03)  # of ridge regressions on martingale residuals, whose eliminations are merged

# -- blends -----------------------------------------------------------------------------------------------------------

OF_BLEND = frozenset(inspect.signature(Blend).parameters) - {"views", "combine"}
COSTS = (1.0, 10.0, 100.0)  # C of the non-linear probe, chosen by inner folds


@register(
    "maldonado2018",
    "paul",
    "daemen2009",
    family="blend",
    outcomes="classes numbers survival",
    takes="numbers categories missing",
    cost=(0.5, 8.0, 6.0),
    default_for={
        "numbers": 1,
        "rare class": 1,
        "outcome numbers": 1,
        "outcome numbers, mixed": 1,
        "outcome survival": 2,
    },
    does_for={
        "numbers": "Eliminations by kernel ridge regression on the linear and on the clinical kernel, weighted so that "
        "their mean has the smallest squared error.",
        "survival": "Eliminations by ridge regression on martingale residuals on the linear and on the clinical "
        "kernel; proportional hazards predict in each, averaged.",
    },
)
def two_views(C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any) -> Blend:
    """A linear machine on the best columns by the Fisher score, and elimination on the clinical kernel, averaged.

    Each view ranks the features and chooses how many it takes. On tables with categories the linear view sees the
    other columns, and missing cells at the means of the training rows; the clinical kernel takes both as they are. With
    outcome="numbers" both views are eliminations by kernel ridge regression with penalty 0.1, each predicts by ridge
    regression at the penalty that leave-one-out chooses, and views are weighed so that their mean has the smallest
    squared error on held-out rows. With outcome="survival" the regression is on martingale residuals with penalty 1,
    and each view predicts by proportional hazards. `C` plays no part in either.

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
    if (outcome := outcome_named(settings)) != Classes.name:
        return Blend(ridge_views(outcome, step=step, standardize=standardize, **of_views), **shared)
    return Blend(linear_and_clinical(C, step, standardize, **of_views), **shared)


@register(
    "kononenko1994",
    family="blend",
    outcomes="classes numbers",
    takes="numbers",
    cost=(0.8, 10.0, 10.0),
    default_for={"numbers": 4},
    does_for={"numbers": "The best features by RReliefF, then kernel ridge regression on the Gaussian kernel."},
)
def interactions(
    n_neighbors: int = 10, C: float | tuple[float, ...] = COSTS, standardize: bool = True, **settings: Any
) -> Blend:
    """The best features by ReliefF, then a machine on the Gaussian kernel: sees features that matter only together.

    The cost of the machine is chosen by the inner folds, together with the number of features. With outcome="numbers"
    it is RReliefF and kernel ridge regression at the penalty that leave-one-out chooses.

    Parameters
    ----------
    n_neighbors : int, default=10
    C : float or tuple of float, default=(1.0, 10.0, 100.0)
        Costs of a margin error that are tried.
    standardize : bool, default=True
    **settings
        Further parameters of Blend, and of the views (SVMSelector).

    Returns
    -------
    Blend

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
    if outcome_named(settings) != Classes.name:
        view = SVMSelector(Gaussian(), KernelRidge(), RReliefF(n_neighbors), TopK(), **of_views)
        return Blend([view], combine="best", **shared)
    costs = C if isinstance(C, (tuple, list)) else (C,)
    views = [SVMSelector(Gaussian(), CSVC(C=cost), ReliefF(n_neighbors), TopK(), **of_views) for cost in costs]
    return Blend(views, combine="best", **shared)


def _split(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the views, and of the blend."""
    shared = {name: value for name, value in settings.items() if name in OF_BLEND}
    return {name: value for name, value in settings.items() if name not in shared}, shared
