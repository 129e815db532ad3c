"""Penalised kernel scaling: KP-SVM, KP-CSSVM, KP-SVDD."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..contracts import KernelLike, MachineLike
from ..estimators import SVMSelector
from ..fitting.parts import kernel_of
from ..kernels import Linear
from ..machines import CSVC, Sphere
from ..searches import PenalizedScaling
from .registry import register


@register("maldonado2018", family="scaling")
def kp_cssvm(
    kernel: KernelLike = "gaussian",
    C: float = 1.0,
    C2: float = 1.0,
    class_weight: Any = "balanced",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling with the cost-sensitive support vector machine, for imbalanced classes.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Kernel that is scaled, by name or as an object; "linear" is the linear kernel divided by the number of live
        features.
    C : float, default=1.0
        Cost of a margin error.
    C2 : float, default=1.0
        Weight of the penalty on the scaling factors; 0 is no penalty.
    class_weight : None, "balanced" or dict, default="balanced"
        Weight of each class; "balanced" gives both classes the same total weight.
    standardize : bool, default=True
        Scale every column to mean 0 and variance 1 over the training rows.
    **settings
        Further parameters of SVMSelector and of the search, PenalizedScaling; `width` is passed to the kernel.

    Returns
    -------
    SVMSelector
        The configured selector, not fitted.

    References
    ----------
    Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection for SVM
    classification, Applied Soft Computing 67 (2018) 94-105.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.kp_cssvm(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _kp(kernel, CSVC(C=C), {"C2": C2}, {"class_weight": class_weight, "standardize": standardize, **settings})


@register("maldonado2018", family="scaling")
def kp_svdd(
    kernel: KernelLike = "gaussian",
    r: float = 0.1,
    r_out: float = 0.1,
    C2: float = 1.0,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling with a sphere around the majority class; weak where a margin separates the classes.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Kernel that is scaled, by name or as an object; "linear" is the linear kernel divided by the number of live
        features.
    r : float, default=0.1
        Upper bound, in (0, 1], on the share of the majority class outside the sphere (approximately).
    r_out : float, default=0.1
        Upper bound on the share of the other class inside the sphere (approximately); 0 leaves that class out of the
        fit.
    C2 : float, default=1.0
        Weight of the penalty on the scaling factors; 0 is no penalty.
    standardize : bool, default=True
        Scale every column to mean 0 and variance 1 over the training rows.
    **settings
        Further parameters of SVMSelector and of the search, PenalizedScaling; `width` is passed to the kernel.

    Returns
    -------
    SVMSelector
        The configured selector, not fitted.

    References
    ----------
    Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection for SVM
    classification, Applied Soft Computing 67 (2018) 94-105.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.kp_svdd(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _kp(kernel, Sphere(r=r, r_out=r_out), {"C2": C2}, {"standardize": standardize, **settings})


@register("maldonado2011", family="scaling")
def kp_svm(
    kernel: KernelLike = "gaussian",
    C: float = 1.0,
    C2: float = 1.0,
    update: str = "gradient",
    stop: str = "own",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling that decides by itself how many features stay.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Kernel that is scaled, by name or as an object; "linear" is the linear kernel divided by the number of live
        features.
    C : float, default=1.0
        Cost of a margin error.
    C2 : float, default=1.0
        Weight of the penalty on the scaling factors; 0 is no penalty.
    update : "gradient", "quasi-newton" or "multiplicative", default="gradient"
        Rule by which the scaling factors are updated; see `marginsieve.searches.PenalizedScaling`.
    stop : "own" or "ranking", default="own"
        With "own" the penalty decides how many features stay; "ranking" ranks all features.
    standardize : bool, default=True
        Scale every column to mean 0 and variance 1 over the training rows.
    **settings
        Further parameters of SVMSelector and of the search, PenalizedScaling; `width` is passed to the kernel.

    Returns
    -------
    SVMSelector
        The configured selector, not fitted.

    References
    ----------
    Maldonado, Weber and Basak, Simultaneous feature selection and classification using kernel-penalized support vector
    machines, Information Sciences 181 (2011) 115-128.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.kp_svm(C2=1.0, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _kp(kernel, CSVC(C=C), {"C2": C2, "update": update, "stop": stop}, {"standardize": standardize, **settings})


def _kp(kernel: KernelLike, machine: MachineLike, options: dict[str, Any], settings: dict[str, Any]) -> SVMSelector:
    """The settings that belong to the search go there, `width` to the kernel, the rest to the selector.

    "linear" divides by the number of live features here, so that C means the same while the factors' sum is kept.
    """
    known = PenalizedScaling().get_params()
    options |= {name: settings.pop(name) for name in list(settings) if name in known}
    kernel = Linear(average=True) if isinstance(kernel, str) and kernel == "linear" else kernel_of(kernel)
    if "width" in settings:
        kernel = clone(kernel).set_params(width=settings.pop("width"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=PenalizedScaling(**options), **settings)
