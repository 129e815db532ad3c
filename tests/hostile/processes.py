"""Functions in processes of their own, with a limit in CPU time; one that dies or does not end is told of."""

from __future__ import annotations

import multiprocessing as mp
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Answer = tuple[str, str]
Judge = Callable[..., Answer]


def run(
    judge: Judge, items: Sequence[tuple[Any, ...]], workers: int, limit: Callable[..., float]
) -> Iterator[tuple[tuple[Any, ...], Answer]]:
    """(item, judge(*item)) as they come; ("crash", ...) where the process died, ("endless", ...) past limit(*item)."""
    context = mp.get_context("spawn")
    left, pool = deque(items), [_Worker(context, judge) for _ in range(min(workers, max(1, len(items))))]
    try:
        while left or any(one.item for one in pool):
            moved = False
            for k, one in enumerate(pool):
                if one.item is not None:
                    found = one.look(limit(*one.item))
                    if found is None:
                        continue
                    yield one.item, found
                    moved = True
                    if found[0] in ("crash", "endless"):
                        one.stop()
                        one = pool[k] = _Worker(context, judge)
                    one.item = None
                if left:
                    one.give(left.popleft())
                    moved = True
            if not moved:
                time.sleep(0.002)
    finally:
        for one in pool:
            one.stop()


def _serve(connection: Any, judge: Judge) -> None:
    """A worker: judges items until it is killed; what it prints is thrown away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    while True:
        connection.send(judge(*connection.recv()))


class _Worker:
    def __init__(self, context: Any, judge: Judge) -> None:
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, judge), daemon=True)
        self.process.start()
        there.close()
        self.item: tuple[Any, ...] | None = None
        self.since = 0.0

    def give(self, item: tuple[Any, ...]) -> None:
        self.item, self.since = item, self.cpu()
        self.connection.send(item)

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        with open(f"/proc/{self.process.pid}/stat") as handle:
            parts = handle.read().rsplit(") ", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def look(self, limit: float) -> Answer | None:
        """What came of the item, or None while it runs."""
        if self.connection.poll():
            try:
                answer: Answer = self.connection.recv()
            except EOFError:
                self.process.join()
                return "crash", f"exit {self.process.exitcode}"
            return answer
        if not self.process.is_alive():
            return "crash", f"exit {self.process.exitcode}"
        if self.cpu() - self.since > limit:
            return "endless", f"more than {limit:g} CPU s"
        return None

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
