"""Numbers as the page and the terminal write them: with enough digits that nothing is rounded into a falsehood."""

from __future__ import annotations

from typing import Any

MOST_DIGITS = 4


def format_score(score: dict[str, Any], digits: int = 2, signed: bool = False) -> tuple[str, str]:
    """A value and its interval, "0.94 to 1.00", with further digits where these would hide that they differ.

    A value below 1 is not written as 1, the two ends are not written alike, and no end of the interval of a difference
    is written as 0 that is not; "no interval" where there is none.
    """
    known = [score[key] for key in ("value", "low", "high") if score[key] is not None]
    while digits < MOST_DIGITS and _hides_difference([f"{value:z.{digits}f}" for value in known], known, signed):
        digits += 1
    texts = [format_change(value, digits) if signed else f"{value:z.{digits}f}" for value in known]
    return texts[0], f"{texts[1]} to {texts[2]}" if len(texts) == 3 else "no interval"


def format_p(p: float, permutations: int) -> str:
    """ "p = 0.02", or that it is as small as so many permutations can make it."""
    return f"p ≤ {p:.1g}" if p <= 1.0 / (permutations + 1) + 1e-12 else f"p = {p:.2g}"


def format_change(value: float, digits: int = 2) -> str:
    """A difference with its sign; 0 has none."""
    text = f"{value:z.{digits}f}"
    return text if float(text) == 0 else f"{value:+.{digits}f}"


def format_share(share: float) -> str:
    """A share in per cent; what is not 0 is not written as 0."""
    return "under 1%" if 0 < share < 0.01 else f"{share:.0%}"


def format_expected(share: float, count: int) -> str:
    """How many of a list that share is expected to be: "about 3 of them are", "fewer than 1 of them is"."""
    if share * count < 0.5:
        return "fewer than 1 of them is"
    number = max(round(share * count), 1)
    return "all of them are" if number >= count else f"about {number:,} of them {'is' if number == 1 else 'are'}"


def _hides_difference(texts: list[str], values: list[float], signed: bool) -> bool:
    """Whether rounding makes 1 of what is less, 0 of an end that is not, or equal ends of an interval that differ."""
    if signed and len(texts) == 3 and values[1] * values[2] != 0 and 0.0 in map(float, texts[1:]):
        return True
    if any(float(text) >= 1.0 > value for text, value in zip(texts[:2], values[:2], strict=False)):
        return True
    return len(texts) == 3 and texts[1] == texts[2] and values[1] != values[2]
