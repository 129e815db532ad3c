"""Text that a spreadsheet program could take for a formula, made inert and back."""

from __future__ import annotations

import re
from typing import Any

SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20\u2212"  # with the full-width signs that some programs take for the plain ones
BREAKS = r"\r\n\x0b\x0c\x85\u2028\u2029\t;"  # what some programs take for the end of a cell
SPACE = r"[ \xa0\u3000\ufeff\x00\"]*"  # what they skip before a sign
BEGINS = rf"{SPACE}[{SIGNS}]"
FORMULA = re.compile(rf"(?:^|[{BREAKS}]){BEGINS}")  # some program could run it
TO_PREFIX = re.compile(rf"(^|[{BREAKS}])(?='*{BEGINS})")
PREFIXED = re.compile(rf"(^|[{BREAKS}])'(?='*{BEGINS})")


def inert(value: Any) -> Any:
    """A text with one more apostrophe before every place where a formula could begin; other values as they are.

    Places that have apostrophes already get one more too, so that no two texts become the same.
    """
    return TO_PREFIX.sub(r"\1'", value) if isinstance(value, str) else value


def restore_text(value: Any) -> Any:
    """The text of which `inert` made this one; other values as they are."""
    return PREFIXED.sub(r"\1", value) if isinstance(value, str) else value


def is_formula(value: Any) -> bool:
    """Whether `inert` cannot have made this text: a program could run it. Numbers are no formulas."""
    if not isinstance(value, str) or not FORMULA.search(value):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False
