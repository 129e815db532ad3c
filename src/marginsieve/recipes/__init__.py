"""The methods by their names: each recipe is a function that returns a configured selector, and cites its paper."""

from .elimination import clinical_rfe, mkl_rfe, svdd_rfe, svm_bfe, svm_rfe
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
from .linear_machines import fs_svm, fsv, l1_cssvm, ramp_fs, ramp_svm, svm_l1
from .registry import RECIPES, Recipe, defaults, entry, get, names, reference_text, references, register
from .scaling import kp_cssvm, kp_svdd, kp_svm
from .several_views import interactions, two_views

__all__ = ["RECIPES", "Recipe", "defaults", "entry", "get", "names", "reference_text", "references", "register"]
__all__ += ["interactions", "two_views"]
__all__ += ["clinical_rfe", "mkl_rfe", "svdd_rfe", "svm_bfe", "svm_rfe"]
__all__ += ["d_hell", "dbfs", "fast", "fisher", "hellinger", "hfs_5nn", "hfs_nb"]
__all__ += ["relieff", "smote_pca", "smote_relieff", "stable_fisher", "su", "symon"]
__all__ += ["fs_svm", "fsv", "l1_cssvm", "ramp_fs", "ramp_svm", "svm_l1"]
__all__ += ["kp_cssvm", "kp_svdd", "kp_svm"]
