"""Errors, and the sentences that they are made of."""

import math
import numbers
from collections.abc import Sequence
from typing import Any


class InputError(ValueError):
    """Invalid input, with a message that names the column, sample or parameter, and what would be accepted.

    Examples
    --------
    >>> from marginsieve import InputError, recipes
    >>> try:
    ...     recipes.get("svm-rfee")
    ... except InputError as error:
    ...     print(error)
    there is no method 'svm-rfee'; did you mean 'svm-rfe'?
    """


class SolverError(RuntimeError):
    """The solver of linear and mixed-integer programs (HiGHS) failed.

    Examples
    --------
    >>> from marginsieve import SolverError
    >>> issubclass(SolverError, RuntimeError)
    True
    """


def many(count: int, thing: str) -> str:
    """'1 feature', '2 features', '2,000 features'."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def listing(items: Sequence[Any], most: int = 5) -> str:
    """'a', 'b', 'c' and 12 more."""
    head = ", ".join(repr(str(item)) if isinstance(item, str) else str(item) for item in items[:most])
    return head + (f" and {len(items) - most} more" if len(items) > most else "")


def whole_number(owner: str, name: str, value: Any, lowest: int = 1) -> None:
    """Refuse a parameter that is not a whole number of at least `lowest`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < lowest:
        raise InputError(f"{owner}: {name} is {value!r}; it must be a whole number of {lowest} or more")


def positive_number(owner: str, name: str, value: Any, top: float = math.inf) -> None:
    """Refuse a parameter that is not a number above 0 (and up to `top`)."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not 0 < float(value) <= top:
        limit = "" if top == math.inf else f" of at most {top:g}"
        raise InputError(f"{owner}: {name} is {value!r}; it must be a positive number{limit}")
