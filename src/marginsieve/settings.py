"""What a selector was told: checked, with a sentence for what makes no sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Array
from .components import resolve
from .errors import InputError, listing, positive_number

if TYPE_CHECKING:
    from .problem import Own
    from .selector import SVMSelector


DOMINATES = 1e6  # a column that is so many times wider than the median column decides the kernel
DROWNS = 1e14  # and one so much wider leaves nothing of the others


def check_settings(selector: SVMSelector) -> None:
    """Refuse values that make no sense, before anything is computed."""
    weight, ensemble, prefilter = selector.class_weight, selector.ensemble, selector.prefilter
    if not (weight is None or weight == "balanced" or isinstance(weight, Mapping)):
        raise InputError(f'class_weight is {weight!r}; it must be None, "balanced" or a dict of class to weight')
    if isinstance(weight, Mapping) and not all(0 < value < np.inf for value in weight.values()):
        raise InputError(f"class_weight is {weight!r}; every weight must be a positive number")
    if not 0 < selector.negative_weight < np.inf:
        raise InputError(f"negative_weight is {selector.negative_weight!r}; it must be a positive number")
    if ensemble is not None and (not isinstance(ensemble, (int, np.integer)) or ensemble < 1):
        raise InputError(f"ensemble is {ensemble!r}; it must be None or a whole number of 1 or more")
    if selector.similar is not None:
        positive_number("selector", "similar", selector.similar, 1.0)
    if isinstance(selector.keep, str):
        raise InputError(f"keep is the text {selector.keep!r}; it must be a list of column names or numbers")
    if prefilter is not None:
        pair = isinstance(prefilter, (tuple, list)) and len(prefilter) == 2
        if not pair or not isinstance(prefilter[1], (int, np.integer)) or prefilter[1] < 1:
            raise InputError(f'prefilter is {prefilter!r}; it must be a pair like ("fisher", 2000)')
        if "labels" not in resolve("criterion", prefilter[0]).needs:
            raise InputError(f"prefilter is {prefilter!r}; its criterion must be a filter such as 'fisher'")


def keep_places(selector: SVMSelector) -> tuple[int, ...]:
    """The numbers of the columns that `keep` names."""
    place = {name: j for j, name in enumerate(selector.columns_.names)}
    places = []
    for item in selector.keep if selector.keep is not None else ():
        j = place.get(item, -1) if isinstance(item, str) else int(item)
        if not 0 <= j < len(place):
            raise InputError(f"keep names the column {item!r}, which the table does not have")
        places.append(j)
    return tuple(dict.fromkeys(places))


def weight_by_code(selector: SVMSelector) -> Mapping[int, float] | str | None:
    """class_weight with the classes' codes in place of their names."""
    weight, classes = selector.class_weight, selector.classes_
    if not isinstance(weight, Mapping):
        return weight
    if unknown := [label for label in weight if label not in classes]:
        raise InputError(f"class_weight names {listing(unknown)}; the classes are {listing(classes.tolist())}")
    return {k: float(weight.get(label, 1.0)) for k, label in enumerate(classes)}


def wanted_size(selector: SVMSelector, usable: int, kept: int, own: Own | None) -> tuple[int, str]:
    """(size, "") where it was given or the method has its own, (0, rule) where inner folds choose it."""
    asked = selector.n_features_to_select
    if asked is None and own is not None:
        return max(own.size, kept), ""
    if asked is None or asked == "one-se":
        return 0, "one-se"
    if asked == "best":
        return 0, "best"
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1:
        count = int(asked)
    elif isinstance(asked, (float, np.floating)) and 0 < asked <= 1:
        count = max(1, round(float(asked) * selector.n_features_in_))
    else:
        raise InputError(
            f"n_features_to_select is {asked!r}; it must be a whole number of 1 or more, a share in (0, 1], "
            '"one-se", "best" or None'
        )
    if count > usable and not isinstance(asked, (float, np.floating)):
        selector.notes_.append(f"{count} features were asked for and {usable} vary: all of them are selected")
    return min(max(count, kept), usable), ""


def threshold_rule(selector: SVMSelector) -> Any:
    """Where the decision value is cut: a word, a number, or a pair of costs; "auto" is resolved."""
    rule = selector.threshold
    if rule == "auto":
        given = (
            isinstance(selector.class_weight, Mapping) or selector.negative_weight != 1.0 or len(selector.classes_) > 2
        )
        return "margin" if given else "balanced"
    if isinstance(rule, (tuple, list)) and len(rule) == 2 and all(cost > 0 for cost in rule):
        return tuple(rule)
    number = isinstance(rule, (int, float)) and not isinstance(rule, bool) and np.isfinite(rule)
    if not (number or rule in ("balanced", "margin")):
        raise InputError(
            f'threshold is {rule!r}; it must be "auto", "balanced", "margin", a number, or two positive costs '
            "(of a false positive, of a false negative)"
        )
    return rule


def width_note(names: Sequence[str], spread: Array) -> str | None:
    """A sentence where one column is so wide that it decides the kernel alone; an error where nothing else is left."""
    ratio = spread.max() / (np.median(spread[spread > 0]) if (spread > 0).any() else 1.0)
    about = f"column {names[int(spread.argmax())]!r} is {ratio:.0e} times as wide as the median column"
    if ratio > DROWNS:
        raise InputError(
            f"{about}: in double precision nothing is left of the others; use standardize=True or rescale it"
        )
    return f"{about} and decides the kernel alone; use standardize=True or rescale it" if ratio > DOMINATES else None
