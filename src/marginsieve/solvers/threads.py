"""One BLAS thread per unit of work: sums then come out the same whatever the number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    with _controller().limit(limits=1, user_api="blas"):
        yield
