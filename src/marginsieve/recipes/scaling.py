"""Penalised kernel scaling: KP-SVM, KP-CSSVM, KP-SVDD."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..estimators import SVMSelector
from ..fitting.parts import kernel_of
from ..kernels import Linear
from ..machines import CSVC, Sphere
from ..searches import PenalizedScaling
from .registry import register


@register("maldonado2018", family="scaling")
def kp_cssvm(
    kernel: Any = "gaussian",
    C: float = 1.0,
    C2: float = 1.0,
    class_weight: Any = "balanced",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling with the cost-sensitive support vector machine, for imbalanced classes.

    Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection for SVM
    classification, Applied Soft Computing 67 (2018) 94-105.
    """
    return _kp(kernel, CSVC(C=C), {"C2": C2}, {"class_weight": class_weight, "standardize": standardize, **settings})


@register("maldonado2018", family="scaling")
def kp_svdd(
    kernel: Any = "gaussian",
    r: float = 0.1,
    r_out: float = 0.1,
    C2: float = 1.0,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling with a sphere around the majority class; weak where a margin separates the classes.

    Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection for SVM
    classification, Applied Soft Computing 67 (2018) 94-105.
    """
    return _kp(kernel, Sphere(r=r, r_out=r_out), {"C2": C2}, {"standardize": standardize, **settings})


@register("maldonado2011", family="scaling")
def kp_svm(
    kernel: Any = "gaussian",
    C: float = 1.0,
    C2: float = 1.0,
    update: str = "gradient",
    stop: str = "own",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling that decides by itself how many features stay.

    Maldonado, Weber and Basak, Simultaneous feature selection and classification using kernel-penalized support vector
    machines, Information Sciences 181 (2011) 115-128.
    """
    return _kp(kernel, CSVC(C=C), {"C2": C2, "update": update, "stop": stop}, {"standardize": standardize, **settings})


def _kp(kernel: Any, machine: Any, search: dict[str, Any], settings: dict[str, Any]) -> SVMSelector:
    """The settings that belong to the search go there, `width` to the kernel, the rest to the selector.

    "linear" divides by the number of live features here, so that C means the same while the factors' sum is kept.
    """
    known = PenalizedScaling().get_params()
    search |= {name: settings.pop(name) for name in list(settings) if name in known}
    kernel = Linear(average=True) if isinstance(kernel, str) and kernel == "linear" else kernel_of(kernel)
    if "width" in settings:
        kernel = clone(kernel).set_params(width=settings.pop("width"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=PenalizedScaling(**search), **settings)
