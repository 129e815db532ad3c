"""Filters and what is built on them: a ranking by labels, merged lists, harmony search."""

from __future__ import annotations

from typing import Any

from ..criteria import (
    DecomposedHellinger,
    Density,
    Fisher,
    Hellinger,
    MixedTest,
    Principal,
    ReliefF,
    ShrunkenFisher,
    SymmetricalUncertainty,
)
from ..estimators import SVMSelector
from ..fitting.parts import criterion_of, kernel_of, machine_of
from ..fitting.smote import Smote
from ..kernels import Clinical
from ..machines import CSVC
from ..searches import Harmony, Merge, TopK
from .registry import register


@register("maldonado2018", family="filter", takes="numbers sparse", cost=(0.2, 0.7, 1.3))
def fisher(
    kernel: Any = "linear", C: float = 1.0, machine: Any = None, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The best features by the Fisher score, then a support vector machine (or another machine) on them.

    Score as in Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature
    selection for SVM classification, Applied Soft Computing 67 (2018) 94-105, eq. 3.
    """
    return _filter(Fisher(), C, {"kernel": kernel, "machine": machine, "standardize": standardize, **settings})


@register(
    "tusher2001",
    "abeel2010",
    family="filter",
    takes="numbers sparse",
    cost=(1.0, 3.2, 7.4),
    default_for={"numbers": 1, "rare class": 1},
)
def stable_fisher(
    kernel: Any = "linear", C: float = 1.0, ensemble: int | None = 30, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The Fisher score with shrunken variances, its ranking averaged over subsamples, then a support vector machine.

    The score with variances shrunk as in Tusher, Tibshirani and Chu, Significance analysis of microarrays, PNAS 98
    (2001) 5116-5121; the average as in Abeel et al., Robust biomarker identification for cancer diagnosis with ensemble
    feature selection methods, Bioinformatics 26 (2010) 392-398.
    """
    return _filter(
        ShrunkenFisher(), C, {"kernel": kernel, "ensemble": ensemble, "standardize": standardize, **settings}
    )


@register("moayedikia2017", family="filter", takes="numbers categories missing sparse", cost=(0.2, 0.7, 1.0))
def su(
    cuts: str = "equal_frequency", bins: int = 5, C: float = 1.0, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The best features by symmetrical uncertainty with the class, then a support vector machine on them.

    Weights as in Moayedikia, Ong, Boo, Yeoh and Jensen, Feature selection for high dimensional imbalanced class data
    using harmony search, Engineering Applications of Artificial Intelligence 57 (2017) 38-49, eqs. 1-5.
    """
    return _filter(SymmetricalUncertainty(cuts, bins), C, {"standardize": standardize, **settings})


@register("cieslak2008", family="filter", takes="numbers sparse")
def hellinger(
    cuts: str = "equal_frequency", bins: int = 5, C: float = 1.0, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The best features by the Hellinger distance between the classes, then a support vector machine on them.

    Cieslak and Chawla, Learning decision trees for unbalanced data, ECML PKDD 2008, 241-256.
    """
    return _filter(Hellinger(cuts, bins), C, {"standardize": standardize, **settings})


@register("yin2013", family="filter", takes="numbers sparse", cost=(0.3, 0.9, 1.3), default_for={"rare class": 3})
def d_hell(
    n_clusters: int = 5, bins: int = 5, C: float = 1.0, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """The larger class split into k parts by k-means, features by their Hellinger distances to the smaller one.

    Yin, Ge, Xiao, Wang and Quan, Feature selection for high-dimensional imbalanced data, Neurocomputing 105 (2013)
    3-11.
    """
    return _filter(DecomposedHellinger(n_clusters, bins), C, {"standardize": standardize, **settings})


@register(
    "kononenko1994",
    family="filter",
    takes="numbers categories missing sparse",
    cost=(0.2, 5.0, 2.4),
    default_for={"mixed": 2, "mixed, rare class": 3},
)
def relieff(n_neighbors: int = 10, C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """The best features by ReliefF: differing to near rows of other classes, not to near rows of the own.

    Kononenko, Estimating attributes: analysis and extensions of RELIEF, ECML 1994, 171-182.
    """
    return _filter(ReliefF(n_neighbors), C, {"standardize": standardize, **settings})


@register("alibeigi2012", family="filter", takes="numbers sparse")
def dbfs(C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """The best features by how little the classes' densities overlap, then a support vector machine on them.

    After Alibeigi, Hashemi and Hamzeh, DBFS: an effective density based feature selection scheme for small sample size
    and high dimensional imbalanced data sets, Data and Knowledge Engineering 81-82 (2012) 67-103.
    """
    return _filter(Density(), C, {"standardize": standardize, **settings})


@register("chawla2002", "kononenko1994", family="filter", takes="numbers sparse")
def smote_relieff(n_neighbors: int = 10, C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """Classes made equally large by SMOTE, then features by ReliefF and a support vector machine.

    Chawla, Bowyer, Hall and Kegelmeyer, SMOTE: synthetic minority over-sampling technique, Journal of Artificial
    Intelligence Research 16 (2002) 321-357.
    """
    return _filter(ReliefF(n_neighbors), C, {"sampler": Smote(percent=None), "standardize": standardize, **settings})


@register("chawla2002", family="filter", takes="numbers sparse")
def smote_pca(explained: float = 0.95, C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """Classes made equally large by SMOTE, then features by their part in the principal components.

    Chawla, Bowyer, Hall and Kegelmeyer, SMOTE: synthetic minority over-sampling technique, Journal of Artificial
    Intelligence Research 16 (2002) 321-357.
    """
    return _filter(Principal(explained), C, {"sampler": Smote(percent=None), "standardize": standardize, **settings})


def _filter(criterion: Any, C: float, settings: dict[str, Any]) -> SVMSelector:
    """The best features by a filter, then a support vector machine, or another machine where one is given."""
    kernel, machine = kernel_of(settings.pop("kernel", "linear")), settings.pop("machine", None)
    machine = CSVC(C=C) if machine is None else machine_of(machine)
    return SVMSelector(kernel=kernel, machine=machine, criterion=criterion, search=TopK(), **settings)


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

    Paul and Dupont, Kernel methods for mixed feature selection, section 2, after Doquire and Verleysen, An hybrid
    approach to feature selection for mixed categorical and continuous data, KDIR 2011, 394-401. The machine on what is
    selected is a support vector machine on the clinical kernel.
    """
    return _merged(C, Merge("naive_bayes", cv=merge_cv), settings)


@register("paul", "doquire2011", family="search", takes="numbers categories missing")
def hfs_5nn(C: float = 1.0, merge_cv: int = 10, n_neighbors: int = 5, **settings: Any) -> SVMSelector:
    """Numbers ranked by t-test and categories by Fisher's exact test, merged by five nearest neighbors (HEOM).

    Paul and Dupont, Kernel methods for mixed feature selection, section 2, after Doquire and Verleysen, An hybrid
    approach to feature selection for mixed categorical and continuous data, KDIR 2011, 394-401. The machine on what is
    selected is a support vector machine on the clinical kernel.
    """
    return _merged(C, Merge("nearest_neighbors", cv=merge_cv, n_neighbors=n_neighbors), settings)


def _merged(C: float, search: Merge, settings: dict[str, Any]) -> SVMSelector:
    kernel = Clinical(average=True)
    return SVMSelector(kernel=kernel, machine=CSVC(C=C), criterion=MixedTest(), search=search, **settings)


@register("moayedikia2017", family="search", takes="numbers categories missing sparse")
def symon(
    d: Any = 0.2,
    ripple: int = 1,
    pool: float | None = None,
    C: float = 1.0,
    kernel: Any = "linear",
    machine: Any = None,
    criterion: Any = None,
    cuts: str = "equal_frequency",
    bins: int = 5,
    standardize: bool = True,
    **settings: Any,
) -> SVMSelector:
    """Harmony search over subsets of d features, weighed by symmetrical uncertainty, judged on validation rows.

    Moayedikia, Ong, Boo, Yeoh and Jensen, Feature selection for high dimensional imbalanced class data using harmony
    search, Engineering Applications of Artificial Intelligence 57 (2017) 38-49.
    """
    known = Harmony().get_params()
    search = {name: settings.pop(name) for name in list(settings) if name in known}
    return SVMSelector(
        kernel=kernel_of(kernel),
        machine=CSVC(C=C) if machine is None else machine_of(machine),
        criterion=SymmetricalUncertainty(cuts, bins) if criterion is None else criterion_of(criterion),
        search=Harmony(d, ripple, pool, **search),
        standardize=standardize,
        **settings,
    )
