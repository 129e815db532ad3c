"""Linear machines that choose features themselves: l1, FSV, the ramp loss, budgets."""

from __future__ import annotations

from typing import Any

from ..estimators import SVMSelector
from ..fitting.parts import kernel_of, machine_of
from ..machines import L1SVC, ConcaveSVC, HingeSVC, RampSVC
from ..searches import Budget, LearnedPath
from .registry import register


@register(
    "maldonado2018",
    family="linear",
    takes="numbers sparse",
    cost=(1.5, 2.0, 0.9),
    default_for={"numbers": 3, "rare class": 2},
)
def l1_cssvm(
    kernel: Any = "linear",
    C: float = 1.0,
    points: int = 40,
    final: Any = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The linear support vector machine with an l1 penalty and squared hinge loss; features rank as they enter.

    Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection for SVM
    classification, Applied Soft Computing 67 (2018) 94-105, eq. 6.
    """
    return _learned(
        L1SVC(C=C), LearnedPath(points, final, stop), {"kernel": kernel, "standardize": standardize, **settings}
    )


@register("bradley1998", family="linear", takes="numbers categories sparse", cost=(2.0, 5.2, 2.9))
def svm_l1(
    C: float = 1.0,
    points: int = 40,
    final: Any = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The linear machine with an l1 penalty and hinge loss, a linear program; features rank as they enter.

    Bradley and Mangasarian, Feature selection via concave minimization and support vector machines, ICML 1998, 82-90.
    """
    return _learned(HingeSVC(C=C), LearnedPath(points, final, stop), {"standardize": standardize, **settings})


@register("bradley1998", family="linear", takes="numbers categories sparse")
def fsv(
    C: float = 10.0,
    beta: float = 5.0,
    points: int = 40,
    final: Any = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """A concave penalty, nearly the number of weights, by linear programs; features rank as they enter.

    Bradley and Mangasarian, Feature selection via concave minimization and support vector machines, ICML 1998, 82-90.
    """
    return _learned(
        ConcaveSVC(C=C, beta=beta), LearnedPath(points, final, stop), {"standardize": standardize, **settings}
    )


@register("baldomero2021", family="linear", takes="numbers categories sparse")
def ramp_svm(
    C: float = 1.0,
    points: int = 40,
    final: Any = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """An l1 penalty with the ramp loss, which wrong labels far out cannot bend; features rank as they enter.

    Baldomero-Naranjo, Martinez-Merino and Rodriguez-Chia, A robust SVM-based approach with feature selection and
    outliers detection for classification problems, Expert Systems with Applications 178 (2021) 115017.
    """
    return _learned(RampSVC(C=C), LearnedPath(points, final, stop), {"standardize": standardize, **settings})


@register("labbe2019", family="linear", takes="numbers categories sparse")
def fs_svm(
    budget: float = 10,
    solver: str = "daks",
    C: float = 1.0,
    feature_costs: Any = None,
    shakes: int = 10,
    time_limit: float | None = None,
    threshold: Any = "margin",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The l1 machine with hinge loss within a budget of features, a mixed-integer program.

    Labbe, Martinez-Merino and Rodriguez-Chia, Mixed integer linear programming for feature selection in support vector
    machine, Discrete Applied Mathematics 261 (2019) 276-304.
    """
    search = Budget(budget, solver, feature_costs, shakes, time_limit)
    return _budgeted(HingeSVC(C=C), search, {"threshold": threshold, "standardize": standardize, **settings})


@register("baldomero2021", family="linear", takes="numbers categories sparse")
def ramp_fs(
    budget: float = 10,
    solver: str = "daks",
    C: float = 1.0,
    feature_costs: Any = None,
    shakes: int = 10,
    time_limit: float | None = None,
    threshold: Any = "margin",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The ramp loss within a budget of features, a mixed-integer program that also names suspect labels (RL-FS-M).

    Baldomero-Naranjo, Martinez-Merino and Rodriguez-Chia, A robust SVM-based approach with feature selection and
    outliers detection for classification problems, Expert Systems with Applications 178 (2021) 115017.
    """
    search = Budget(budget, solver, feature_costs, shakes, time_limit)
    return _budgeted(RampSVC(C=C), search, {"threshold": threshold, "standardize": standardize, **settings})


def _budgeted(machine: Any, search: Budget, settings: dict[str, Any]) -> SVMSelector:
    kernel = kernel_of(settings.pop("kernel", "linear"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=search, **settings)


def _learned(machine: Any, search: LearnedPath, settings: dict[str, Any]) -> SVMSelector:
    search = LearnedPath(search.points, None if search.final is None else machine_of(search.final), search.stop)
    kernel = kernel_of(settings.pop("kernel", "linear"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=search, **settings)
