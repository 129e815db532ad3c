"""One BLAS thread per unit of work: sums then come out the same whatever the number of workers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit
