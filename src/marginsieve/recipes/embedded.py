"""Machines that choose features themselves: l1, FSV, the ramp loss, budgets; learned scales of kernels (KP-SVM)."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..contracts import KernelLike, MachineLike, SearchLike
from ..estimators import SVMSelector
from ..fitting.parts import kernel_of, machine_of
from ..kernels import Linear
from ..machines import CSVC, L1SVC, LSSVM, MACHINES, ConcaveSVC, HingeSVC, Lasso, RampSVC, Sphere
from ..outcomes import Classes, Numbers
from ..searches import Budget, LearnedPath, PenalizedScaling
from .registry import outcome_named, register

# -- linear machines --------------------------------------------------------------------------------------------------


@register(
    "maldonado2018",
    family="linear",
    takes="numbers sparse",
    cost=(1.5, 2.0, 0.9),
    default_for={"numbers": 3, "rare class": 2},
)
def l1_cssvm(
    kernel: KernelLike = "linear",
    C: float = 1.0,
    points: int = 40,
    final: MachineLike | None = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The linear support vector machine with an l1 penalty and squared hinge loss; features rank as they enter.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
        The linear kernel, by name or as an object.
    C : float, default=1.0
        Cost of a margin error at the end of the path.
    points : int, default=40
    final : str, Machine or None, default=None
    stop : "ranking" or "own", default="ranking"
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection for SVM
    classification, Applied Soft Computing 67 (2018) 94-105, eq. 6.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.l1_cssvm(points=10, n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _path_selector(L1SVC(C=C), points, final, stop, kernel=kernel, standardize=standardize, **settings)


@register("tibshirani1996", family="linear", outcomes="numbers")
def lasso(
    C: float = 1.0,
    points: int = 40,
    final: MachineLike | None = "kernel_ridge",
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Least squares with an l1 penalty, for numbers; features rank as they enter, ridge regression on them predicts.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a squared error at the end of the path, in units of the outcome's variance: alpha = s / (2 C m) of
        scikit-learn, s the outcome's standard deviation and m the number of rows.
    points : int, default=40
    final : str, Machine or None, default="kernel_ridge"
        Machine fitted on the selected features; None is the lasso at `C`, which may leave out some of them.
    stop : "ranking" or "own", default="ranking"
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Tibshirani, Regression shrinkage and selection via the lasso, Journal of the Royal Statistical Society B 58 (1996)
    267-288.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, outcome="numbers", random_state=0)
    >>> selector = recipes.lasso(points=10, n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g07', 'g08'], dtype=object)
    """
    settings = {"outcome": Numbers.name, **settings}
    return _path_selector(Lasso(C=C), points, final, stop, standardize=standardize, **settings)


@register("bradley1998", family="linear", takes="numbers categories sparse", cost=(2.0, 5.2, 2.9))
def svm_l1(
    C: float = 1.0,
    points: int = 40,
    final: MachineLike | None = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The linear machine with an l1 penalty and hinge loss, a linear program; features rank as they enter.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error at the end of the path.
    points : int, default=40
    final : str, Machine or None, default=None
    stop : "ranking" or "own", default="ranking"
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Bradley and Mangasarian, Feature selection via concave minimization and support vector machines, ICML 1998, 82-90.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.svm_l1(points=10, n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _path_selector(HingeSVC(C=C), points, final, stop, standardize=standardize, **settings)


@register("bradley1998", family="linear", takes="numbers categories sparse")
def fsv(
    C: float = 10.0,
    beta: float = 5.0,
    points: int = 40,
    final: MachineLike | None = None,
    stop: str = "ranking",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """A concave penalty, nearly the number of weights, by linear programs; features rank as they enter.

    Parameters
    ----------
    C : float, default=10.0
        Cost of a margin error at the end of the path.
    beta : float, default=5.0
        How fast the concave penalty saturates with the size of a weight.
    points : int, default=40
    final : str, Machine or None, default=None
    stop : "ranking" or "own", default="ranking"
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Bradley and Mangasarian, Feature selection via concave minimization and support vector machines, ICML 1998, 82-90.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.fsv(points=10, n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _path_selector(ConcaveSVC(C=C, beta=beta), points, final, stop, standardize=standardize, **settings)


@register("baldomero2021", family="linear", takes="numbers categories sparse")
def ramp_svm(
    C: float = 1.0,
    points: int = 40,
    final: MachineLike | None = None,
    stop: str = "ranking",
    solver: str = "descent",
    shakes: int = 20,
    time_limit: float | None = None,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """An l1 penalty with the ramp loss, which wrong labels far out cannot bend; features rank as they enter.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin error at the end of the path.
    points : int, default=40
    final : str, Machine or None, default=None
    stop : "ranking" or "own", default="ranking"
    solver : "descent", "auto", "fast", "daks" or "exact", default="descent"
        "descent" is a local optimum at every C of the path. The others solve the program at `C` alone, as `ramp_fs`
        does, without a budget, and rank features by their weight: "exact" by branch and bound, with a bound on the
        objective (`bound_`, `gap_`); `points`, `final` and `stop` play no part there.
    shakes : int, default=20
        For the other solvers: number of random changes after which the exchanges start again.
    time_limit : float or None, default=None
        For the other solvers: seconds after which the best point so far is used; None is 60 for "fast", 180 for "auto"
        and "daks", 600 for "exact".
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Baldomero-Naranjo, Martinez-Merino and Rodriguez-Chia, A robust SVM-based approach with feature selection and
    outliers detection for classification problems, Expert Systems with Applications 178 (2021) 115017.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.ramp_svm(points=10, n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    if solver == "descent":
        return _path_selector(RampSVC(C=C), points, final, stop, standardize=standardize, **settings)
    search = Budget(None, solver, None, shakes, time_limit)
    return _linear(RampSVC(C=C), search, standardize=standardize, **{"threshold": "margin", **settings})


@register("labbe2019", family="linear", takes="numbers categories sparse")
def fs_svm(
    budget: float = 10,
    solver: str = "auto",
    C: float = 1.0,
    feature_costs: Any = None,
    shakes: int = 20,
    time_limit: float | None = None,
    start: Any = (),
    threshold: Any = "margin",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The l1 machine with hinge loss within a budget of features, a mixed-integer program.

    Parameters
    ----------
    budget : float, default=10
    solver : "auto", "daks", "exact" or "fast", default="auto"
    C : float, default=1.0
    feature_costs : mapping, sequence or None, default=None
    shakes : int, default=20
    time_limit : float or None, default=None
    start : sequence of BudgetPoint, default=()
        Points of `ramp_path` that the search begins with.
    threshold : "margin", "auto", "balanced", float or (float, float), default="margin"
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Labbe, Martinez-Merino and Rodriguez-Chia, Mixed integer linear programming for feature selection in support vector
    machine, Discrete Applied Mathematics 261 (2019) 276-304.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.fs_svm(budget=2, solver="fast", random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    search = Budget(budget, solver, feature_costs, shakes, time_limit, start)
    return _linear(HingeSVC(C=C), search, threshold=threshold, standardize=standardize, **settings)


@register("baldomero2021", family="linear", takes="numbers categories sparse")
def ramp_fs(
    budget: float = 10,
    solver: str = "auto",
    C: float = 1.0,
    feature_costs: Any = None,
    shakes: int = 20,
    time_limit: float | None = None,
    start: Any = (),
    threshold: Any = "margin",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The ramp loss within a budget of features, a mixed-integer program that also names suspect labels (RL-FS-M).

    Parameters
    ----------
    budget : float, default=10
    solver : "auto", "daks", "exact" or "fast", default="auto"
    C : float, default=1.0
    feature_costs : mapping, sequence or None, default=None
    shakes : int, default=20
    time_limit : float or None, default=None
    start : sequence of BudgetPoint, default=()
        Points of `ramp_path` that the search begins with.
    threshold : "margin", "auto", "balanced", float or (float, float), default="margin"
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Baldomero-Naranjo, Martinez-Merino and Rodriguez-Chia, A robust SVM-based approach with feature selection and
    outliers detection for classification problems, Expert Systems with Applications 178 (2021) 115017.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.ramp_fs(budget=2, solver="fast", random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    search = Budget(budget, solver, feature_costs, shakes, time_limit, start)
    return _linear(RampSVC(C=C), search, threshold=threshold, standardize=standardize, **settings)


def _path_selector(
    machine: MachineLike, points: int, final: MachineLike | None, stop: str, **settings: Any
) -> SVMSelector:
    final = None if final is None else machine_of(final)
    return _linear(machine, LearnedPath(points, final, stop), **settings)


def _linear(machine: MachineLike, search: SearchLike, kernel: KernelLike = "linear", **settings: Any) -> SVMSelector:
    return SVMSelector(kernel=kernel_of(kernel), machine=machine, criterion=None, search=search, **settings)


# -- scales of kernels ------------------------------------------------------------------------------------------------


@register("maldonado2018", family="scaling")
def kp_cssvm(
    kernel: KernelLike = "gaussian",
    C: float = 1.0,
    C2: float | str = 1.0,
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
    C2 : float or "cv", default=1.0
    class_weight : None, "balanced" or dict, default="balanced"
        Weight of each class; "balanced" gives both classes the same total weight.
    standardize : bool, default=True
    **settings
        Further parameters of SVMSelector and of the search, PenalizedScaling; `width` is passed to the kernel.

    Returns
    -------
    SVMSelector

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
    C2: float | str = 1.0,
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
    r_out : float, default=0.1
    C2 : float or "cv", default=1.0
    standardize : bool, default=True
    **settings
        Further parameters of SVMSelector and of the search, PenalizedScaling; `width` is passed to the kernel.

    Returns
    -------
    SVMSelector

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


@register(
    "maldonado2011",
    family="scaling",
    outcomes="classes numbers",
    does_for={
        "numbers": "Penalised kernel scaling with the least-squares machine that decides how many features stay.",
    },
)
def kp_svm(
    kernel: KernelLike = "gaussian",
    C: float = 1.0,
    C2: float | str = 1.0,
    iterations: str | None = None,
    update: str = "gradient",
    stop: str = "own",
    final: MachineLike = "learned",
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Penalised kernel scaling that decides by itself how many features stay.

    With outcome="numbers" the machine is the least-squares support vector machine.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Kernel that is scaled, by name or as an object; "linear" is the linear kernel divided by the number of live
        features.
    C : float, default=1.0
    C2 : float or "cv", default=1.0
        Weight of the penalty; "cv" chooses it in inner folds, as the paper advises.
    iterations : None or "cv", default=None
        Moves of the factors until they converge, or as many as score best in inner folds.
    update : "gradient", "quasi-newton" or "multiplicative", default="gradient"
        Rule by which the scaling factors are updated; see `marginsieve.searches.PenalizedScaling`.
    stop : "own" or "ranking", default="own"
        With "own" the penalty decides how many features stay; "ranking" ranks all features.
    final : "learned", "start", str or Machine, default="learned"
        What is fitted on the selected features: the machine on the kernel that was learned, on the kernel as it
        started, or another machine, by name or as an object.
    standardize : bool, default=True
    **settings
        Further parameters of SVMSelector and of the search, PenalizedScaling; `width` is passed to the kernel.

    Returns
    -------
    SVMSelector

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
    options = {"C2": C2, "iterations": iterations, "update": update, "stop": stop, "final": final}
    machine = CSVC(C=C) if outcome_named(settings) == Classes.name else LSSVM(C=C)
    return _kp(kernel, machine, options, {"standardize": standardize, **settings})


def _kp(kernel: KernelLike, machine: MachineLike, options: dict[str, Any], settings: dict[str, Any]) -> SVMSelector:
    """The settings that belong to the search go there, `width` to the kernel, the rest to the selector.

    "linear" divides by the number of live features here, so that C means the same while the factors' sum is kept.
    """
    known = PenalizedScaling().get_params()
    options |= {name: settings.pop(name) for name in list(settings) if name in known}
    if options.get("final") in MACHINES:
        options["final"] = machine_of(options["final"])
    kernel = Linear(average=True) if isinstance(kernel, str) and kernel == "linear" else kernel_of(kernel)
    if "width" in settings:
        kernel = clone(kernel).set_params(width=settings.pop("width"))
    return SVMSelector(kernel=kernel, machine=machine, criterion=None, search=PenalizedScaling(**options), **settings)
