"""Filters and what is built on them: a ranking by labels, merged lists, harmony search."""

from __future__ import annotations

from typing import Any

from .. import criteria
from ..contracts import CriterionLike, KernelLike, MachineLike
from ..estimators import SVMSelector
from ..estimators.selector import ridge_machines
from ..fitting.parts import Smote, criterion_of, kernel_of, machine_of
from ..kernels import Clinical
from ..machines import CSVC
from ..outcomes import Classes, Survival
from ..searches import Harmony, Merge, TopK
from .registry import outcome_named, register


@register(
    "maldonado2018",
    family="filter",
    outcomes="classes numbers survival",
    takes="numbers sparse",
    cost=(0.2, 0.7, 1.3),
    default_for={"outcome numbers": 3, "outcome survival": 4, "outcome survival, mixed": 2},
    does_for={
        "numbers": "The best features by the F test, then kernel ridge regression on them.",
        "survival": "The best features by the score test of proportional hazards, which then predict.",
    },
)
def fisher(
    kernel: KernelLike = "linear",
    C: float = 1.0,
    machine: MachineLike | None = None,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The best features by the Fisher score, then a support vector machine (or another machine) on them.

    With outcome="numbers" the features are ranked by the F test and the machine is kernel ridge regression, with
    outcome="survival" by the score test of proportional hazards, which are the machine.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
    C : float, default=1.0
    machine : str, Machine or None, default=None
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Score as in Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature selection
    for SVM classification, Applied Soft Computing 67 (2018) 94-105, eq. 3.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    outcome = outcome_named(settings)
    criterion: CriterionLike = criteria.Fisher()
    if outcome != Classes.name:
        criterion = criteria.CoxScore() if outcome == Survival.name else criteria.FTest()
    return _filter(criterion, C, kernel, machine, standardize=standardize, **settings)


@register("chen2008", family="filter", takes="numbers sparse", cost=(0.2, 1.4, 1.3))
def fast(
    kernel: KernelLike = "linear",
    C: float = 1.0,
    machine: MachineLike | None = None,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """The best features by the area under the ROC curve of each alone (FAST), then a support vector machine on them.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
    C : float, default=1.0
    machine : str, Machine or None, default=None
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Chen and Wasikowski, FAST: a roc-based feature selection metric for small samples and imbalanced data classification
    problems, KDD 2008, 124-132.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.fast(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _filter(criteria.Fast(), C, kernel, machine, standardize=standardize, **settings)


@register(
    "tusher2001",
    "abeel2010",
    family="filter",
    takes="numbers sparse",
    cost=(1.0, 3.2, 7.4),
)
def stable_fisher(
    kernel: KernelLike = "linear", C: float = 1.0, ensemble: int | None = 30, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The Fisher score with shrunken variances, its ranking averaged over subsamples, then a support vector machine.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
    C : float, default=1.0
    ensemble : int or None, default=30
        Number of subsamples over which the ranking is averaged; None ranks once, on all training rows.
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    The score with variances shrunk as in Tusher, Tibshirani and Chu, Significance analysis of microarrays, PNAS 98
    (2001) 5116-5121; the average as in Abeel et al., Robust biomarker identification for cancer diagnosis with ensemble
    feature selection methods, Bioinformatics 26 (2010) 392-398.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.stable_fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _filter(criteria.ShrunkenFisher(), C, kernel, ensemble=ensemble, standardize=standardize, **settings)


@register(
    "moayedikia2017",
    family="filter",
    outcomes="classes numbers",
    takes="numbers categories missing sparse",
    cost=(0.2, 0.7, 1.0),
    default_for={"outcome numbers, mixed": 3},
    does_for={
        "numbers": "The best features by symmetrical uncertainty with levels of the numbers, then kernel ridge "
        "regression on them.",
    },
)
def su(
    cuts: str = "equal_frequency", bins: int = 5, C: float = 1.0, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The best features by symmetrical uncertainty with the class, then a support vector machine on them.

    With outcome="numbers" the uncertainty is that with levels of the numbers, and the machine kernel ridge regression.

    Parameters
    ----------
    cuts : "equal_frequency" or "mdl", default="equal_frequency"
    bins : int, default=5
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Weights as in Moayedikia, Ong, Boo, Yeoh and Jensen, Feature selection for high dimensional imbalanced class data
    using harmony search, Engineering Applications of Artificial Intelligence 57 (2017) 38-49, eqs. 1-5.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.su(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _filter(criteria.SymmetricalUncertainty(cuts, bins), C, standardize=standardize, **settings)


@register("cieslak2008", family="filter", takes="numbers sparse")
def hellinger(
    cuts: str = "equal_frequency", bins: int = 5, C: float = 1.0, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The best features by the Hellinger distance between the classes, then a support vector machine on them.

    Parameters
    ----------
    cuts : "equal_frequency" or "mdl", default="equal_frequency"
    bins : int, default=5
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Cieslak and Chawla, Learning decision trees for unbalanced data, ECML PKDD 2008, 241-256.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.hellinger(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _filter(criteria.Hellinger(cuts, bins), C, standardize=standardize, **settings)


@register("yin2013", family="filter", takes="numbers sparse", cost=(0.3, 0.9, 1.3), default_for={"rare class": 3})
def d_hell(
    n_clusters: int = 5, bins: int = 5, C: float = 1.0, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The larger class split into k parts by k-means, features by their Hellinger distances to the smaller one.

    A support vector machine is fitted on the selected features.

    Parameters
    ----------
    n_clusters : int, default=5
        Number of parts of the larger class; fewer where it has fewer rows.
    bins : int, default=5
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Yin, Ge, Xiao, Wang and Quan, Feature selection for high-dimensional imbalanced data, Neurocomputing 105 (2013)
    3-11.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.d_hell(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _filter(criteria.DecomposedHellinger(n_clusters, bins), C, standardize=standardize, **settings)


@register(
    "kononenko1994",
    family="filter",
    outcomes="classes numbers",
    takes="numbers categories missing sparse",
    cost=(0.2, 5.0, 2.4),
    default_for={"mixed": 2, "mixed, rare class": 3},
    does_for={
        "numbers": "The best features by RReliefF, then kernel ridge regression on them.",
    },
)
def relieff(n_neighbors: int = 10, C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """The best features by ReliefF: differing to near rows of other classes, not to near rows of the own.

    A support vector machine is fitted on the selected features. With outcome="numbers" it is RReliefF and kernel ridge
    regression.

    Parameters
    ----------
    n_neighbors : int, default=10
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Kononenko, Estimating attributes: analysis and extensions of RELIEF, ECML 1994, 171-182.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.relieff(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    ranking = criteria.ReliefF if outcome_named(settings) == Classes.name else criteria.RReliefF
    return _filter(ranking(n_neighbors), C, standardize=standardize, **settings)


@register("alibeigi2012", family="filter", takes="numbers sparse")
def dbfs(C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """The best features by how little the classes' densities overlap, then a support vector machine on them.

    Parameters
    ----------
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    After Alibeigi, Hashemi and Hamzeh, DBFS: an effective density based feature selection scheme for small sample size
    and high dimensional imbalanced data sets, Data and Knowledge Engineering 81-82 (2012) 67-103.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.dbfs(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    return _filter(criteria.Density(), C, standardize=standardize, **settings)


@register("chawla2002", "kononenko1994", family="filter", takes="numbers sparse")
def smote_relieff(n_neighbors: int = 10, C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """Classes made equally large by SMOTE, then features by ReliefF and a support vector machine.

    Parameters
    ----------
    n_neighbors : int, default=10
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Chawla, Bowyer, Hall and Kegelmeyer, SMOTE: synthetic minority over-sampling technique, Journal of Artificial
    Intelligence Research 16 (2002) 321-357.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.smote_relieff(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    settings = {"sampler": Smote(percent=None), **settings}
    return _filter(criteria.ReliefF(n_neighbors), C, standardize=standardize, **settings)


@register("chawla2002", family="filter", takes="numbers sparse")
def smote_pca(explained: float = 0.95, C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """Classes made equally large by SMOTE, then features by their part in the principal components.

    A support vector machine is fitted on the selected features.

    Parameters
    ----------
    explained : float, default=0.95
        Share of the variance, in (0, 1], that the components used explain.
    C : float, default=1.0
    standardize : bool, default=True
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Chawla, Bowyer, Hall and Kegelmeyer, SMOTE: synthetic minority over-sampling technique, Journal of Artificial
    Intelligence Research 16 (2002) 321-357.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.smote_pca(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.n_features_
    2
    """
    settings = {"sampler": Smote(percent=None), **settings}
    return _filter(criteria.Principal(explained), C, standardize=standardize, **settings)


def _filter(
    criterion: CriterionLike,
    C: float,
    kernel: KernelLike = "linear",
    machine: MachineLike | None = None,
    **settings: Any,
) -> SVMSelector:
    """The best features by a filter, then a support vector machine, or ridge regression, or what is given."""
    outcome = outcome_named(settings)
    usual = CSVC(C=C) if outcome == Classes.name else ridge_machines(outcome)[1]
    last = usual if machine is None else machine_of(machine)
    return SVMSelector(kernel=kernel_of(kernel), machine=last, criterion=criterion, search=TopK(), **settings)


@register(
    "paul",
    "doquire2011",
    family="search",
    takes="numbers categories missing",
    cost=(0.4, 45.0, 1.7),
    default_for={"mixed": 3, "mixed, rare class": 1},
)
def hfs_nb(C: float = 1.0, merge_cv: int = 10, **settings: Any) -> SVMSelector:
    """Numbers ranked by t-test and categories by Fisher's exact test, merged by naive Bayes in inner folds.

    The machine on the selected features is a support vector machine on the clinical kernel.

    Parameters
    ----------
    C : float, default=1.0
    merge_cv : int, default=10
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Paul and Dupont, Kernel methods for mixed feature selection, section 2, after Doquire and Verleysen, An hybrid
    approach to feature selection for mixed categorical and continuous data, KDIR 2011, 394-401.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 8, n_relevant=2, n_categorical=2, effect=2.0, missing=0.05, random_state=0)
    >>> selector = recipes.hfs_nb(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> set(selector.get_feature_names_out()) == set(cohort.truth.relevant)
    True
    """
    return _merge_selector(C, Merge("naive_bayes", cv=merge_cv), settings)


@register("paul", "doquire2011", family="search", takes="numbers categories missing")
def hfs_5nn(C: float = 1.0, merge_cv: int = 10, n_neighbors: int = 5, **settings: Any) -> SVMSelector:
    """Numbers ranked by t-test and categories by Fisher's exact test, merged by five nearest neighbors (HEOM).

    The machine on the selected features is a support vector machine on the clinical kernel.

    Parameters
    ----------
    C : float, default=1.0
    merge_cv : int, default=10
    n_neighbors : int, default=5
        Number of neighbors that vote.
    **settings

    Returns
    -------
    SVMSelector

    References
    ----------
    Paul and Dupont, Kernel methods for mixed feature selection, section 2, after Doquire and Verleysen, An hybrid
    approach to feature selection for mixed categorical and continuous data, KDIR 2011, 394-401.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 8, n_relevant=2, n_categorical=2, effect=2.0, missing=0.05, random_state=0)
    >>> selector = recipes.hfs_5nn(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> set(selector.get_feature_names_out()) == set(cohort.truth.relevant)
    True
    """
    return _merge_selector(C, Merge("nearest_neighbors", cv=merge_cv, n_neighbors=n_neighbors), settings)


def _merge_selector(C: float, search: Merge, settings: dict[str, Any]) -> SVMSelector:
    kernel = Clinical()
    return SVMSelector(kernel=kernel, machine=CSVC(C=C), criterion=criteria.MixedTest(), search=search, **settings)


@register("moayedikia2017", family="search", takes="numbers categories missing sparse")
def symon(
    d: Any = 0.2,
    ripple: int = 1,
    pool: float | None = None,
    C: float = 1.0,
    kernel: KernelLike = "linear",
    machine: MachineLike | None = None,
    criterion: CriterionLike = None,
    cuts: str = "equal_frequency",
    bins: int = 5,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Harmony search over subsets of d features, weighed by symmetrical uncertainty, judged on validation rows.

    Parameters
    ----------
    d : int, float or pair, default=0.2
        Number of features of a subset: a count, a share of the columns, or the smallest and the largest of either; with
        a pair the size is searched too.
    ripple : int, default=1
        Features added in each step of tuning, with one less removed, or the other way round.
    pool : float or None, default=None
        Search only among the `d` best features by weight and this share of the columns more; None searches all.
    C : float, default=1.0
        Cost of a margin error of the support vector machine.
    kernel : str or Kernel, default="linear"
        Kernel of the machine that is fitted on the subsets, by name or as an object.
    machine : str, Machine or None, default=None
        Machine fitted on the subsets; None is a support vector machine with this `C`.
    criterion : str, Criterion, filter or None, default=None
        Weights of the features; None is symmetrical uncertainty with `cuts` and `bins`.
    cuts : "equal_frequency" or "mdl", default="equal_frequency"
    bins : int, default=5
    standardize : bool, default=True
    **settings
        Further parameters of SVMSelector and of the search, Harmony.

    Returns
    -------
    SVMSelector

    References
    ----------
    Moayedikia, Ong, Boo, Yeoh and Jensen, Feature selection for high dimensional imbalanced class data using harmony
    search, Engineering Applications of Artificial Intelligence 57 (2017) 38-49.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = recipes.symon(d=2, improvisations=20, random_state=0).fit(cohort.X, cohort.y)
    >>> selector.get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """
    known = Harmony().get_params()
    search = {name: settings.pop(name) for name in list(settings) if name in known}
    return SVMSelector(
        kernel=kernel_of(kernel),
        machine=CSVC(C=C) if machine is None else machine_of(machine),
        criterion=criteria.SymmetricalUncertainty(cuts, bins) if criterion is None else criterion_of(criterion),
        search=Harmony(d, ripple, pool, **search),
        standardize=standardize,
        **settings,
    )
