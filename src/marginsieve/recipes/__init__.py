"""The methods by their names: each recipe is a function that returns a configured selector, and cites its paper."""

from .elimination import clinical_rfe, interactions, mkl_rfe, svdd_rfe, svm_bfe, svm_rfe, two_views
from .embedded import fs_svm, fsv, kp_cssvm, kp_svdd, kp_svm, l1_cssvm, lasso, ramp_fs, ramp_svm, svm_l1
from .filters import (
    d_hell,
    dbfs,
    fast,
    fisher,
    hellinger,
    hfs_5nn,
    hfs_nb,
    relieff,
    smote_pca,
    smote_relieff,
    stable_fisher,
    su,
    symon,
)
from .paths import RampPath, ramp_path
from .registry import (
    OUTCOMES,
    RECIPES,
    Recipe,
    configure,
    defaults,
    entry,
    get,
    names,
    reference_text,
    references,
    refuse_outcome,
    register,
)

__all__ = [
    "OUTCOMES",
    "RECIPES",
    "Recipe",
    "configure",
    "defaults",
    "entry",
    "get",
    "names",
    "reference_text",
    "references",
    "refuse_outcome",
    "register",
]
__all__ += ["RampPath", "interactions", "ramp_path", "two_views"]
__all__ += ["clinical_rfe", "mkl_rfe", "svdd_rfe", "svm_bfe", "svm_rfe"]
__all__ += ["d_hell", "dbfs", "fast", "fisher", "hellinger", "hfs_5nn", "hfs_nb"]
__all__ += ["relieff", "smote_pca", "smote_relieff", "stable_fisher", "su", "symon"]
__all__ += ["fs_svm", "fsv", "l1_cssvm", "lasso", "ramp_fs", "ramp_svm", "svm_l1"]
__all__ += ["kp_cssvm", "kp_svdd", "kp_svm"]
