"""What a selector was told: checked, with a sentence for what makes no sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..criteria import CRITERIA
from ..errors import InputError, listing, positive_number, whole_number
from .parts import resolve

if TYPE_CHECKING:
    from ..estimators.mkl_classifier import MKLClassifier
    from ..estimators.selector import SVMSelector
    from ..problem import Own
    from .training import Searched


def check_settings(selector: SVMSelector) -> None:
    """Refuse values that make no sense, before anything is computed."""
    ensemble = selector.ensemble
    check_class_weight(selector.class_weight)
    positive_number("selector", "negative_weight", selector.negative_weight)
    if ensemble is not None:
        whole_number("selector", "ensemble", ensemble)
    if selector.similar is not None:
        positive_number("selector", "similar", selector.similar, 1.0)
    whole_number("selector", "resamples", selector.resamples, 0)
    if isinstance(selector.keep, str) or not (selector.keep is None or hasattr(selector.keep, "__iter__")):
        raise InputError(f"keep is {selector.keep!r}; it must be a list of column names or numbers")


def check_class_weight(weight: Any) -> None:
    """Refuse what is neither None, "balanced" nor a dict of positive numbers."""
    if not (weight is None or weight == "balanced" or isinstance(weight, Mapping)):
        raise InputError(f'class_weight is {weight!r}; it must be None, "balanced" or a dict of class to weight')
    for label, value in weight.items() if isinstance(weight, Mapping) else ():
        positive_number("selector", f"class_weight of {label!r}", value)


def read_prefilter(prefilter: Any) -> tuple[Any, int]:
    """The filter and how many columns it leaves; refuses what is no filter or no count."""
    filters = listing([name for name, make in CRITERIA.items() if "labels" in make().needs], most=20)
    wrong = f'prefilter is {prefilter!r}; it must be a pair like ("fast", 2000): a filter ({filters}) and a count'
    if not isinstance(prefilter, (tuple, list)) or len(prefilter) != 2:
        raise InputError(wrong)
    name, count = prefilter
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InputError(wrong)
    if name is None or (isinstance(name, str) and name.replace("-", "_") not in CRITERIA):
        raise InputError(wrong)
    criterion = resolve("criterion", name)
    if "labels" not in criterion.needs:
        raise InputError(wrong)
    if hasattr(criterion, "check"):
        criterion.check()
    return criterion, int(count)


def keep_places(selector: SVMSelector) -> tuple[int, ...]:
    """The numbers of the columns that `keep` names."""
    place = {name: j for j, name in enumerate(selector.columns_.names)}
    places = []
    for item in selector.keep if selector.keep is not None else ():
        whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        j = int(item) if whole else place.get(item, -1) if isinstance(item, str) else -1
        if not 0 <= j < len(place):
            raise InputError(f"keep names the column {item!r}, which the table does not have")
        places.append(j)
    return tuple(dict.fromkeys(places))


def weight_by_code(selector: SVMSelector | MKLClassifier) -> Mapping[int, float] | str | None:
    """class_weight with the classes' codes in place of their names."""
    weight, classes = selector.class_weight, selector.classes_
    if not isinstance(weight, Mapping):
        return weight
    if unknown := [label for label in weight if label not in classes]:
        raise InputError(f"class_weight names {listing(unknown)}; the classes are {listing(classes.tolist())}")
    return {k: float(weight.get(label, 1.0)) for k, label in enumerate(classes)}


def wanted_size(selector: SVMSelector, searched: Searched, own: Own | None) -> tuple[int, str]:
    """(size, "") where it was given or the method has its own, (0, rule) where inner folds choose it."""
    asked, kept, most = selector.n_features_to_select, len(searched.problem.keep), searched.most
    if asked is None and own is not None:
        return max(own.size, kept), ""
    count = asked_count(selector)
    if count is None:
        return 0, "best" if asked == "best" else "one-se"
    if count > most and not (isinstance(asked, (float, np.floating)) and selector.prefilter is None):
        left = "vary" if most == len(searched.usable) else "are left by the prefilter"
        selector.notes_.append(f"{count} features were asked for and {most} {left}: all of them are selected")
    return min(max(count, kept), most), ""


def asked_count(selector: SVMSelector) -> int | None:
    """The number of features that was asked for, as a count; None where a rule or the method decides."""
    asked: Any = selector.n_features_to_select
    if asked is None or (isinstance(asked, str) and asked in ("one-se", "best")):
        return None
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1:
        return int(asked)
    if isinstance(asked, (float, np.floating)) and 0 < asked <= 1:
        return max(1, round(float(asked) * int(selector.n_features_in_)))
    raise InputError(
        f"n_features_to_select is {asked!r}; it must be a whole number of 1 or more, a share in (0, 1], "
        '"one-se", "best" or None'
    )


def threshold_rule(selector: SVMSelector) -> Any:
    """Where the decision value is cut: a word, a number, or a pair of costs; "auto" is resolved."""
    rule = selector.threshold
    if rule == "auto":
        given = (
            isinstance(selector.class_weight, Mapping) or selector.negative_weight != 1.0 or len(selector.classes_) > 2
        )
        return "margin" if given else "balanced"
    if isinstance(rule, (tuple, list)) and len(rule) == 2:
        for cost in rule:
            positive_number("selector", "a cost of threshold", cost)
        return tuple(rule)
    number = isinstance(rule, (int, float)) and not isinstance(rule, bool) and np.isfinite(rule)
    if not (number or rule in ("balanced", "margin")):
        raise InputError(
            f'threshold is {rule!r}; it must be "auto", "balanced", "margin", a number, or two positive costs '
            "(of a false positive, of a false negative)"
        )
    return rule
