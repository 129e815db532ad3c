"""The methods by their names: each recipe is a configured SVMSelector and cites its paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .components import resolve
from .criteria import Fisher, MarginChange
from .errors import InputError, listing
from .machines import CSVC
from .searches import Backward, TopK
from .selector import SVMSelector


def svm_rfe(
    kernel: Any = "linear", C: float = 1.0, step: float | int = 0.2, standardize: bool = True, **settings: Any
) -> SVMSelector:
    """Recursive elimination by the margin change of a support vector machine.

    Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using support vector machines,
    Machine Learning 46 (2002) 389-422.
    """
    return SVMSelector(
        kernel=resolve("kernel", kernel),
        machine=CSVC(C=C),
        criterion=MarginChange(),
        search=Backward(step=step),
        standardize=standardize,
        **settings,
    )


def fisher(kernel: Any = "linear", C: float = 1.0, standardize: bool = True, **settings: Any) -> SVMSelector:
    """The best features by the Fisher score, then a support vector machine on them.

    Score as in Maldonado and Lopez, Dealing with high-dimensional class-imbalanced datasets: Embedded feature
    selection for SVM classification, Applied Soft Computing 67 (2018) 94-105, eq. 3.
    """
    return SVMSelector(
        kernel=resolve("kernel", kernel),
        machine=CSVC(C=C),
        criterion=Fisher(),
        search=TopK(),
        standardize=standardize,
        **settings,
    )


RECIPES: dict[str, Callable[..., SVMSelector]] = {"svm_rfe": svm_rfe, "fisher": fisher}


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
