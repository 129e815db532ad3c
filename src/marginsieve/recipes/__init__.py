"""The methods by their names: each recipe is a configured SVMSelector and cites its paper."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from ..errors import InputError, listing
from ..estimators.selector import SVMSelector
from .elimination import clinical_rfe, mkl_rfe, svdd_rfe, svm_bfe, svm_rfe
from .filters import (
    d_hell,
    dbfs,
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
from .scaling import kp_cssvm, kp_svdd, kp_svm

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
    "su": su,
    "hellinger": hellinger,
    "d_hell": d_hell,
    "relieff": relieff,
    "dbfs": dbfs,
    "smote_relieff": smote_relieff,
    "smote_pca": smote_pca,
    "symon": symon,
    "kp_svm": kp_svm,
    "kp_cssvm": kp_cssvm,
    "kp_svdd": kp_svdd,
}


def names() -> list[str]:
    """The names of all recipes."""
    return list(RECIPES)


def key(name: str) -> str:
    """The recipe's name as it is listed here; svm-rfe and svm_rfe are the same."""
    plain = name.strip().lower().replace("-", "_")
    if plain not in RECIPES:
        close = difflib.get_close_matches(plain, RECIPES, n=1)
        known = [one.replace("_", "-") for one in names()]
        hint = (
            f"did you mean {close[0].replace('_', '-')!r}?" if close else f"the methods are {listing(known, most=50)}"
        )
        raise InputError(f"there is no method {name!r}; {hint}")
    return plain


def get(name: str) -> Callable[..., SVMSelector]:
    """The recipe of this name."""
    return RECIPES[key(name)]


def summary(name: str) -> tuple[str, str]:
    """(what it does, where it was published) of a recipe, from its docstring."""
    text = (get(name).__doc__ or "").strip().split("\n\n")
    return " ".join(text[0].split()), " ".join(" ".join(text[1:]).split())


__all__ = [
    "RECIPES",
    "clinical_rfe",
    "d_hell",
    "dbfs",
    "fisher",
    "fs_svm",
    "fsv",
    "get",
    "hellinger",
    "hfs_5nn",
    "hfs_nb",
    "key",
    "kp_cssvm",
    "kp_svdd",
    "kp_svm",
    "l1_cssvm",
    "mkl_rfe",
    "names",
    "ramp_fs",
    "ramp_svm",
    "relieff",
    "smote_pca",
    "smote_relieff",
    "stable_fisher",
    "su",
    "summary",
    "svdd_rfe",
    "svm_bfe",
    "svm_l1",
    "svm_rfe",
    "symon",
]
