"""Progress on the terminal: a bar with the time left, or a line now and then where there is no terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from ..contracts import Progress


EVERY = 4.0  # seconds between two lines


@contextmanager
def show_progress(every: float | None = None, in_seconds: bool = False) -> Iterator[Progress]:
    """Gives progress(what, done, total); the time left is by the speed since the start, or since `done` last fell.

    With `in_seconds` the work is given in expected seconds, so that the time left is known from the start.
    """
    console, pace = Console(stderr=True), _Pace(in_seconds)
    shower = _bar(console, pace) if console.is_terminal else _lines(console, pace, EVERY if every is None else every)
    with shower as progress:
        yield progress


class _Pace:
    """How much is done, and how long the rest takes at the speed so far."""

    def __init__(self, in_seconds: bool = False) -> None:
        self.what, self.done, self.total, self.in_seconds = "reading", 0.0, 1.0, in_seconds
        self.since, self.first = time.monotonic(), 0.0

    def set(self, what: str, done: float, total: float) -> None:
        if total != self.total or done < self.done:  # other work
            self.since, self.first = time.monotonic(), done
        self.what, self.done, self.total = what, done, max(total, 1e-9)

    @property
    def share(self) -> float:
        return min(self.done / self.total, 1.0)

    def time_left(self) -> str:
        gained, rest = self.done - self.first, self.total - self.done
        if rest <= 0:
            return "nearly done"
        if self.in_seconds and self.total > 1.0:  # what was expected counts as if a tenth had been done at that speed
            before = 0.1 * self.total
            return f"about {_clock((before + time.monotonic() - self.since) / (before + gained) * rest)} left"
        if self.in_seconds:
            return "the time is being measured"
        if gained < 0.02 * self.total:
            return "time left: not known yet"
        return f"about {_clock((time.monotonic() - self.since) * rest / gained)} left"


@contextmanager
def _bar(console: Console, pace: _Pace) -> Iterator[Progress]:
    from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    bar = Bar(*columns, TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=console, transient=True)
    with bar:
        task = bar.add_task("reading", total=1.0, left="")

        def progress(what: str, done: float, total: float) -> None:
            pace.set(what, done, total)
            bar.update(task, description=what, completed=pace.share, left=pace.time_left())

        yield progress


@contextmanager
def _lines(console: Console, pace: _Pace, every: float) -> Iterator[Progress]:
    """A line every few seconds from a thread of its own."""
    over = threading.Event()

    def talk() -> None:
        while not over.wait(every):
            console.print(f"{pace.what}: {pace.share:.0%} done, {pace.time_left()}", markup=False, highlight=False)

    speaker = threading.Thread(target=talk, daemon=True)
    speaker.start()
    try:
        yield pace.set
    finally:
        over.set()
        speaker.join()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
