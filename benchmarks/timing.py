"""Timing side by side."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    what: str
    peer: str
    ours: float
    theirs: float
    target: float  # theirs / ours must be at least this

    @property
    def ratio(self):
        return self.theirs / self.ours

    def row(self):
        verdict = "ok" if self.ratio >= self.target else "MISSED"
        return (
            f"| {self.what} | {self.peer} | {self.ours:.4g} | {self.theirs:.4g} | "
            f"{self.ratio:.1f} | {self.target:g} | {verdict} |"
        )


HEADING = "| what | peer | ours, s | peer, s | ratio | at least | |\n|---|---|---|---|---|---|---|"


def seconds(call):
    since = time.perf_counter()
    call()
    return time.perf_counter() - since


def side_by_side(ours, theirs, rounds=3):
    """The best time of each over alternating rounds, so that a busy machine slows both."""
    ours()  # compile, warm caches
    times = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return min(a for a, _ in times), min(b for _, b in times)
