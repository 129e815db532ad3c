"""Backward elimination: RFE, BFE, SVDD-RFE, RFE-MKL."""

from __future__ import annotations

from typing import Any

from ..criteria import LearnedWeight, Loss, MarginChange
from ..estimators import SVMSelector
from ..fitting.parts import criterion_of, kernel_of, machine_of
from ..kernels import Clinical
from ..machines import CSVC, MKL, Sphere
from ..searches import Backward
from .registry import register


@register("guyon2002", family="elimination", takes="numbers sparse", cost=(0.2, 0.8, 1.8), default_for={"numbers": 2})
def svm_rfe(
    kernel: Any = "linear", C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """Recursive elimination by the margin change of a support vector machine.

    Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using support vector machines,
    Machine Learning 46 (2002) 389-422.
    """
    return _backward(kernel, CSVC(C=C), MarginChange(), step, {"standardize": standardize, **settings})


@register(
    "paul",
    "daemen2009",
    family="elimination",
    takes="numbers categories missing",
    cost=(0.1, 4.0, 2.4),
    default_for={"mixed": 1, "mixed, rare class": 2},
)
def clinical_rfe(C: float = 1.0, step: float | int = 0.2, **settings: Any) -> SVMSelector:
    """Recursive elimination on the clinical kernel: numbers and categories together, cells may be missing.

    The kernel is the mean over the columns that are left.

    Paul and Dupont, Kernel methods for mixed feature selection; kernel of Daemen and De Moor, Development of a kernel
    function for clinical data, EMBC 2009, 5913-5917.
    """
    return _backward(Clinical(average=True), CSVC(C=C), MarginChange(), step, settings)


@register("paul", family="elimination", takes="numbers categories missing", cost=(0.7, 15.0, 9.6))
def mkl_rfe(
    kernel: Any = None, C: float = 1.0, step: float | int = 0.2, final: Any = "c_svc", **settings: Any
) -> SVMSelector:
    """Recursive elimination by the weights that multiple kernel learning gives the features' clinical kernels.

    Paul and Dupont, Kernel methods for mixed feature selection; the machine on what is selected is a support vector
    machine (final="c_svc"), or the learned weights themselves (final=None).
    """
    kernel = Clinical(average=True) if kernel is None else kernel_of(kernel)
    last = CSVC(C=C) if isinstance(final, str) and final == "c_svc" else final
    last = None if last is None else machine_of(last)
    return _backward(kernel, MKL(C=C), LearnedWeight(), step, settings, last)


@register("maldonado2014", family="elimination", takes="numbers sparse")
def svm_bfe(
    kernel: Any = "linear",
    C: float = 1.0,
    loss: str = "balanced",
    costs: tuple[float, float] = (1.0, 1.0),
    held_out: float = 0.0,
    step: float | int = 0.2,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Backward elimination by the loss (balanced, zero-one or with costs) that the machine has without a feature.

    Maldonado, Weber and Famili, Feature selection for high-dimensional class-imbalanced data sets using support vector
    machines, Information Sciences 286 (2014) 228-246.
    """
    criterion = Loss(loss=loss, costs=costs, held_out=held_out)
    return _backward(kernel, CSVC(C=C), criterion, step, {"standardize": standardize, **settings})


@register("jeong2012", family="elimination")
def svdd_rfe(
    kernel: Any = "gaussian",
    r: float = 0.1,
    r_out: float = 0.1,
    criterion: str = "radius",
    step: float | int = 0.2,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Recursive elimination by the radius or the dual objective of a sphere around the majority class.

    Jeong, Kang, Jeong and Kong, A new feature selection method for one-class classification problems, IEEE
    Transactions on Systems, Man and Cybernetics C 42 (2012) 1500-1509.
    """
    sphere = Sphere(r=r, r_out=r_out)
    return _backward(kernel, sphere, criterion_of(criterion), step, {"standardize": standardize, **settings})


def _backward(
    kernel: Any, machine: Any, criterion: Any, step: float | int, settings: dict[str, Any], final: Any = None
) -> SVMSelector:
    search = Backward(step=step, final=final)
    return SVMSelector(kernel=kernel_of(kernel), machine=machine, criterion=criterion, search=search, **settings)
