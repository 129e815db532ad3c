"""How a user is told of a mistake."""

from collections.abc import Sequence
from typing import Any


class InputError(ValueError):
    """A user's mistake, in a sentence that names the column, sample or parameter, and what would be accepted."""


def listing(items: Sequence[Any], most: int = 5) -> str:
    """'a', 'b', 'c' and 12 more."""
    head = ", ".join(repr(str(item)) if isinstance(item, str) else str(item) for item in items[:most])
    return head + (f" and {len(items) - most} more" if len(items) > most else "")
