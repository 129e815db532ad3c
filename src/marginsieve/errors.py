"""Errors, and the sentences that they are made of."""

import math
import numbers
from collections.abc import Sequence
from typing import Any


class InputError(ValueError):
    """A user's mistake, in a sentence that names the column, sample or parameter, and what would be accepted."""


class SolverError(RuntimeError):
    """HiGHS could not do what it was asked."""


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
