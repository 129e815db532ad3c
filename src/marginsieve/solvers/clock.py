"""A backstop in seconds: work is bounded by counts, and where the clock cuts it all the same, the result says so."""

from __future__ import annotations

import time


class TimeUp(Exception):
    """The clock cut a program that has no answer without its end; who holds a point goes on with that one."""


class Clock:
    """So many seconds from now.

    Parameters
    ----------
    seconds : float or None, default=None
        The seconds; None is for ever.

    Examples
    --------
    >>> from marginsieve.solvers import Clock
    >>> Clock().is_up(), Clock(0.0).is_up()
    (False, True)
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.end = None if seconds is None else time.perf_counter() + seconds
        self.cut = False  # whether it ran out and was asked

    def remaining(self) -> float | None:
        return None if self.end is None else max(self.end - time.perf_counter(), 0.0)

    def is_up(self) -> bool:
        """Whether the time is up; once it was, `cut` says so."""
        self.cut = self.cut or (self.end is not None and time.perf_counter() >= self.end)
        return self.cut

    def part(self, share: float) -> Clock:
        """A share of what is left."""
        left = self.remaining()
        return Clock(None if left is None else share * left)

    def at_least(self, seconds: float) -> Clock:
        """What is left, but not less than so many seconds: for the least that a result is made of."""
        left = self.remaining()
        return Clock(None if left is None else max(left, seconds))
