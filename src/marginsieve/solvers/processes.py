"""Worker processes die with the process that started them, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any

from joblib import Parallel
from joblib.parallel import get_active_backend

PR_SET_PDEATHSIG = 1
LOOK = 1.0  # seconds between two looks at the parent, where the system does not tell of its death


def parallel(n_jobs: int | None, **settings: Any) -> Parallel:
    """joblib's workers; those that it starts as processes die with this one. A backend that the user chose is kept."""
    if type(get_active_backend()[0]).__name__ != "LokyBackend":
        return Parallel(n_jobs=n_jobs, **settings)
    return Parallel(n_jobs, "loky", initializer=die_with_parent, initargs=(os.getpid(),), **settings)


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
