"""Errors, and the sentences that they are made of."""

import math
import numbers
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

MOST_COST = 1e12
MOST_JOBS = 1_000
DEVICES = ("cpu", "auto", "cuda")


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


class InputTypeError(InputError, TypeError):
    """Input of a wrong type."""


class SolverError(RuntimeError):
    """The solver of linear and mixed-integer programs (HiGHS) failed.

    Examples
    --------
    >>> from marginsieve import SolverError
    >>> issubclass(SolverError, RuntimeError)
    True
    """


class FaultKind(Enum):
    """What an outcome of something that we depend on means here; what nobody knows is the system's fault."""

    ANSWER = "an answer"
    LIMIT = "a limit of work or time: what was found so far is the answer"
    INPUT = "refused input (exit code 2)"
    SYSTEM = "a fault of the system, with nothing lost (exit code 3)"
    DAMAGE = "damage, with evidence in the file"


class SystemFault(OSError):
    """The system refused (a lock, a disk, memory, a worker, a device); what was finished before is not lost."""


def refuse_surrogates(what: str, texts: Iterable[Any]) -> None:
    """Refuse halves of characters, which no file can hold as text: they come of bytes that were decoded wrongly."""
    for text in texts:
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                shown = ascii(text[:30])
                raise InputError(
                    f"{what} holds {shown}, which is not valid text (a lone surrogate): correct it"
                ) from None


@contextmanager
def reading(what: str) -> Iterator[None]:
    """While a user's input is read: what other libraries say about it becomes an InputError that names it."""
    try:
        yield
    except InputError:
        raise
    except TypeError as error:
        raise InputTypeError(f"{what}: {one_line(error)}") from error
    except (ValueError, AttributeError, IndexError, KeyError, ArithmeticError, NotImplementedError) as error:
        raise InputError(f"{what}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """A message in one line, not too long."""
    return " ".join(str(error).split())[:400] or type(error).__name__


def shown_value(value: Any) -> str:
    """A value as messages show it: one line, not too long."""
    try:
        text = repr(value)
    except Exception:  # a number of thousands of digits, say
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def many(count: int, thing: str) -> str:
    """'1 feature', '2 features', '2,000 features'."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def join_words(texts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def listing(items: Sequence[Any], most: int = 5, total: int | None = None) -> str:
    """'a', 'b', 'c' and 12 more; `total`: how many there are where not all are given."""
    head = ", ".join(repr(str(item)) if isinstance(item, str) else str(item) for item in items[:most])
    total = len(items) if total is None else total
    return head + (f" and {total - most:,} more" if total > most else "")


def whole_number(owner: str, name: str, value: Any, lowest: int = 1, most: int | None = None) -> None:
    """Refuse a parameter that is not a whole number of at least `lowest` (and at most `most`)."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < lowest or (most is not None and int(value) > most):
        limit = "" if most is None else f", at most {most:,}"
        raise InputError(
            f"{owner}: {name} is {shown_value(value)}; it must be a whole number of {lowest} or more{limit}"
        )


def is_real(value: Any) -> bool:
    """Whether this is a number, True and False left out."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def number_within(owner: str, name: str, value: Any, low: float, high: float) -> None:
    """Refuse a parameter that is not a number from `low` to `high`."""
    if not is_real(value) or not low <= float(value) <= high:
        raise InputError(f"{owner}: {name} is {shown_value(value)}; it must be a number from {low:g} to {high:g}")


def one_of(owner: str, name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a parameter that is none of some words."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{owner}: {name} is {shown_value(value)}; it must be one of {listing(known)}")


def truth_value(owner: str, name: str, value: Any) -> None:
    """Refuse a parameter that is neither True nor False."""
    if not (isinstance(value, bool) or type(value).__name__ == "bool"):
        raise InputError(f"{owner}: {name} is {shown_value(value)}; it must be True or False")


def cost_number(owner: str, name: str, value: Any) -> None:
    """Refuse a cost or weight that is no number, or so far from 1 that solvers do not come to an end with it."""
    positive_number(owner, name, value)
    if not 1 / MOST_COST <= float(value) <= MOST_COST:
        raise InputError(
            f"{owner}: {name} is {shown_value(value)}; it must be between {1 / MOST_COST:g} and {MOST_COST:g}"
        )


def positive_number(owner: str, name: str, value: Any, top: float = math.inf) -> None:
    """Refuse a parameter that is not a number above 0 (and up to `top`)."""
    if not is_real(value) or not math.isfinite(value) or not 0 < float(value) <= top:
        limit = "" if top == math.inf else f" of at most {top:g}"
        raise InputError(f"{owner}: {name} is {shown_value(value)}; it must be a positive number{limit}")


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of workers."""
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool) and n_jobs != 0
    if not (n_jobs is None or (whole and -MOST_JOBS <= n_jobs <= MOST_JOBS)):
        raise InputError(
            f"n_jobs is {shown_value(n_jobs)}; it must be 1 or more (up to {MOST_JOBS:,}), -1 for one per core, or None"
        )


def check_device(device: Any) -> None:
    """Refuse what is no device."""
    plain = isinstance(device, str) and (device in DEVICES or device.removeprefix("cuda:").isdigit())
    if not plain:
        raise InputError(f'device is {shown_value(device)}; it must be "auto", "cpu", "cuda" or "cuda:0" and so on')
