"""The methods by their names: each recipe is a configured SVMSelector and cites its paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from .components import resolve
from .criteria import Fisher, LearnedWeight, Loss, MarginChange, MixedTest, ShrunkenFisher
from .errors import InputError, listing
from .kernels import Clinical, Linear
from .machines import CSVC, L1SVC, MKL, ConcaveSVC, HingeSVC, RampSVC, Sphere
from .searches import Backward, Budget, LearnedPath, Merge, PenalizedScaling, TopK
from .selector import SVMSelector


def svm_rfe(
    kernel: Any = "linear", C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """Recursive elimination by the margin change of a support vector machine.

    Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using support vector machines,
    Machine Learning 46 (2002) 389-422.
    """
    return _backward(kernel, CSVC(C=C), MarginChange(), step, {"standardize": standardize, **settings})


def clinical_rfe(C: float = 1.0, step: float | int = 0.2, **settings: Any) -> SVMSelector:
    """Recursive elimination on the clinical kernel: numbers and categories together, cells may be missing.

    The kernel is the mean over the columns that are left.

    Paul and Dupont, Kernel methods for mixed feature selection; kernel of Daemen and De Moor, Development of a kernel
    function for clinical data, EMBC 2009, 5913-5917.
    """
    return _backward(Clinical(average=True), CSVC(C=C), MarginChange(), step, settings)


def mkl_rfe(
    kernel: Any = None, C: float = 1.0, step: float | int = 0.2, final: Any = "c_svc", **settings: Any
) -> SVMSelector:
    """Recursive elimination by the weights that multiple kernel learning gives the features' clinical kernels.

    Paul and Dupont, Kernel methods for mixed feature selection; the machine on what is selected is a support vector
    machine (final="c_svc"), or the learned weights themselves (final=None).
    """
    kernel = Clinical(average=True) if kernel is None else resolve("kernel", kernel)
    last = CSVC(C=C) if isinstance(final, str) and final == "c_svc" else final
    last = None if last is None else resolve("machine", last)
    return _backward(kernel, MKL(C=C), LearnedWeight(), step, settings, last)


def hfs_nb(C: float = 1.0, folds: int = 10, **settings: Any) -> SVMSelector:
    """Numbers ranked by t-test and categories by Fisher's exact test, merged by naive Bayes in inner folds.

    Paul and Dupont, Kernel methods for mixed feature selection, section 2, after Doquire and Verleysen, An hybrid
    approach to feature selection for mixed categorical and continuous data, KDIR 2011, 394-401. The machine on what is
    selected is a support vector machine on the clinical kernel.
    """
    return _merged(C, Merge("naive_bayes", folds=folds), settings)


def hfs_5nn(C: float = 1.0, folds: int = 10, neighbours: int = 5, **settings: Any) -> SVMSelector:
    """Numbers ranked by t-test and categories by Fisher's exact test, merged by five nearest neighbours (HEOM).

    Paul and Dupont, Kernel methods for mixed feature selection, section 2, after Doquire and Verleysen, An hybrid
    approach to feature selection for mixed categorical and continuous data, KDIR 2011, 394-401. The machine on what is
    selected is a support vector machine on the clinical kernel.
    """
    return _merged(C, Merge("neighbours", folds=folds, neighbours=neighbours), settings)


def _merged(C: float, search: Merge, settings: dict[str, Any]) -> SVMSelector:
    kernel = Clinical(average=True)
    return SVMSelector(kernel=kernel, machine=CSVC(C=C), criterion=MixedTest(), search=search, **settings)


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
    return _backward(kernel, sphere, resolve("criterion", criterion), step, {"standardize": standardize, **settings})


def _backward(
    kernel: Any, machine: Any, criterion: Any, step: float | int, settings: dict[str, Any], final: Any = None
) -> SVMSelector:
    search = Backward(step=step, final=final)
    return SVMSelector(
        kernel=resolve("kernel", kernel), machine=machine, criterion=criterion, search=search, **settings
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
    kernel = resolve("kernel", settings.pop("kernel", "linear"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=search, **settings)


def _learned(machine: Any, search: LearnedPath, settings: dict[str, Any]) -> SVMSelector:
    search.final = None if search.final is None else resolve("machine", search.final)
    kernel = resolve("kernel", settings.pop("kernel", "linear"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=search, **settings)


def fisher(
    kernel: Any = "linear", C: float = 1.0, machine: Any = None, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The best features by the Fisher score, then a support vector machine (or another machine) on them.

    Score as in Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature
    selection for SVM classification, Applied Soft Computing 67 (2018) 94-105, eq. 3.
    """
    return SVMSelector(
        kernel=resolve("kernel", kernel),
        machine=CSVC(C=C) if machine is None else resolve("machine", machine),
        criterion=Fisher(),
        search=TopK(),
        standardize=standardize,
        **settings,
    )


def stable_fisher(
    kernel: Any = "linear", C: float = 1.0, ensemble: int | None = 30, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The Fisher score with shrunken variances, its ranking averaged over subsamples, then a support vector machine.

    The score with variances shrunk as in Tusher, Tibshirani and Chu, Significance analysis of microarrays, PNAS 98
    (2001) 5116-5121; the average as in Abeel et al., Robust biomarker identification for cancer diagnosis with ensemble
    feature selection methods, Bioinformatics 26 (2010) 392-398.
    """
    return SVMSelector(
        kernel=resolve("kernel", kernel),
        machine=CSVC(C=C),
        criterion=ShrunkenFisher(),
        search=TopK(),
        ensemble=ensemble,
        standardize=standardize,
        **settings,
    )


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
    kernel = Linear(average=True) if isinstance(kernel, str) and kernel == "linear" else resolve("kernel", kernel)
    if "width" in settings:
        kernel = clone(kernel).set_params(width=settings.pop("width"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=PenalizedScaling(**search), **settings)


RECIPES: dict[str, Callable[..., SVMSelector]] = {
    "svm_rfe": svm_rfe,
    "clinical_rfe": clinical_rfe,
    "mkl_rfe": mkl_rfe,
    "hfs_nb": hfs_nb,
    "hfs_5nn": hfs_5nn,
    "svm_bfe": svm_bfe,
    "svdd_rfe": svdd_rfe,
    "l1_cssvm": l1_cssvm,
    "svm_l1": svm_l1,
    "fsv": fsv,
    "ramp_svm": ramp_svm,
    "fs_svm": fs_svm,
    "ramp_fs": ramp_fs,
    "fisher": fisher,
    "stable_fisher": stable_fisher,
    "kp_svm": kp_svm,
    "kp_cssvm": kp_cssvm,
    "kp_svdd": kp_svdd,
}


def names() -> list[str]:
    """The names of all recipes."""
    return list(RECIPES)


def get(name: str) -> Callable[..., SVMSelector]:
    """The recipe of this name; svm-rfe and svm_rfe are the same."""
    key = name.strip().lower().replace("-", "_")
    if key not in RECIPES:
        raise InputError(f"there is no method {name!r}; the methods are {listing(names(), most=50)}")
    return RECIPES[key]


def summary(name: str) -> tuple[str, str]:
    """(what it does, where it was published) of a recipe, from its docstring."""
    text = (get(name).__doc__ or "").strip().split("\n\n")
    return " ".join(text[0].split()), " ".join(" ".join(text[1:]).split())
