"""Numbers as the page and the terminal write them: with enough digits that nothing is rounded into a falsehood."""

from __future__ import annotations

from typing import Any

MOST_DIGITS = 4


def format_score(score: dict[str, Any], digits: int = 2, signed: bool = False) -> tuple[str, str]:
    """A value and its interval, "0.94 to 1.00", with further digits where these would hide that they differ.

    A value below 1 is not written as 1, and the two ends are not written alike; "no interval" where there is none.
    """
    sign = "+" if signed else ""
    known = [score[key] for key in ("value", "low", "high") if score[key] is not None]
    while digits < MOST_DIGITS and _hides_difference([f"{value:z.{digits}f}" for value in known], known):
        digits += 1
    texts = [f"{value:{sign}z.{digits}f}" for value in known]
    return texts[0], f"{texts[1]} to {texts[2]}" if len(texts) == 3 else "no interval"


def format_p(p: float, permutations: int) -> str:
    """ "p = 0.02", or that it is as small as so many permutations can make it."""
    return f"p ≤ {p:.1g}" if p <= 1.0 / (permutations + 1) + 1e-12 else f"p = {p:.2g}"


def _hides_difference(texts: list[str], values: list[float]) -> bool:
    """Whether rounding makes 1 of what is less, or the ends of an interval equal that are not."""
    if any(float(text) >= 1.0 > value for text, value in zip(texts[:2], values[:2], strict=False)):
        return True
    return len(texts) == 3 and texts[1] == texts[2] and values[1] != values[2]
