"""Worker processes die with the process that started them, however it ends."""

from __future__ import annotations

import ctypes
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, effective_n_jobs
from joblib.externals.loky.backend import resource_tracker
from joblib.parallel import get_active_backend

from ..data.scratch import process_folder

PR_SET_PDEATHSIG = 1
LOOK = 1.0  # seconds between two looks at the parent, where the system does not tell of its death


class _Workers(Parallel):  # type: ignore[misc,unused-ignore]
    """joblib's processes, deaf from their start to the signals that a terminal sends to all: their parent acts."""

    def _initialize_backend(self) -> Any:
        with _block_signals():
            resource_tracker.ensure_running()
            # Helper processes of joblib and Python are started here, while signals are blocked: they inherit the mask.
            if os.name == "posix":
                multiprocessing.resource_tracker.ensure_running()  # its start would let SIGINT through again
        with _block_signals():
            count = super()._initialize_backend()
            start = getattr(getattr(self._backend, "_workers", None), "_ensure_executor_running", None)
            if start is not None:
                start()
            return count


@contextmanager
def _block_signals() -> Iterator[None]:
    """Signals wait in this thread; a process that is started meanwhile never gets them."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def parallel(n_jobs: int | None, **settings: Any) -> Parallel:
    """joblib's workers; those that it starts as processes die with this one. A backend that the user chose is kept.

    Arrays that joblib shares with them lie in a scratch folder of ours: the next command removes what a kill left.

    Parameters
    ----------
    n_jobs : int or None
        Number of workers, as joblib has it.
    **settings
        Further arguments of `joblib.Parallel`.

    Returns
    -------
    joblib.Parallel
        The workers.

    Examples
    --------
    >>> import math
    >>> from joblib import delayed
    >>> from marginsieve.engine import parallel
    >>> parallel(1)(delayed(math.sqrt)(k) for k in (4, 9))
    [2.0, 3.0]
    """
    if type(get_active_backend()[0]).__name__ != "LokyBackend":
        return Parallel(n_jobs=n_jobs, **settings)
    if effective_n_jobs(n_jobs) == 1:
        return Parallel(n_jobs=n_jobs, **settings)
    starts = {"initializer": die_with_parent, "initargs": (os.getpid(),), "temp_folder": str(process_folder())}
    return _Workers(n_jobs, "loky", **starts, **settings)


def die_with_parent(parent: int) -> None:
    """Run in a worker as it starts: `parent` is the process that it belongs to."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    else:  # pragma: no cover
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it died before the request took effect
        os._exit(1)


def _watch(parent: int) -> None:  # pragma: no cover
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)
