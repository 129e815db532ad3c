"""How work is run: a clock as a backstop, one BLAS thread, loops compiled when they are first called, workers that
die with their parent.
"""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing.resource_tracker
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

from joblib import Parallel, effective_n_jobs
from joblib.externals.loky.backend import resource_tracker
from joblib.externals.loky.process_executor import BrokenProcessPool, LokyRecursionError, ShutdownExecutorError
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from ..data.file_access import process_folder
from ..errors import FaultKind, InputError, SystemFault, one_line


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


# One thread of BLAS and of OpenMP per unit of work: sums then come out the same whatever the number of workers, and
# boosted trees beside other work take a tenth of the time, since their threads do not wait for each other.


_controller = cache(ThreadpoolController)  # looks for the libraries once, when it is first asked


def one_thread() -> AbstractContextManager[object]:
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit


# How loops are compiled: one signature each, cached on disk, without the GIL, never with threads of their own.
#
# numba is loaded when the first loop runs, not when the package is imported.

F = TypeVar("F", bound=Callable[..., object])


class Stopwatch:
    """Seconds since it was started, without those in which loops were compiled, which no later run pays."""

    compiling: ClassVar[float] = 0.0  # seconds of this process

    def __init__(self) -> None:
        self.start = time.perf_counter() - Stopwatch.compiling

    def seconds(self) -> float:
        """What has passed."""
        return max(time.perf_counter() - Stopwatch.compiling - self.start, 0.0)


def _keep_on_disk(code: Any) -> None:
    """numba's cache for a function, in files that several processes may write at the same time.

    numba numbers the files of a function in the order in which they are made, and counts a file before it is written.
    Two processes that compile the function for different arrays on a new machine can take the same number; what one
    of them loads then is code for arrays of another type, for good. Here a file is named by what it is for and
    counted when it is there; one that cannot be read is compiled again.
    """
    from numba.core.caching import IndexDataCacheFile

    class Files(IndexDataCacheFile):  # type: ignore[misc,unused-ignore]
        def save(self, key: Any, data: Any) -> None:
            name = self._data_name(int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "little"))
            self._save_data(name, data)
            self._save_index({**self._load_index(), key: name})

        def _load_index(self) -> dict[Any, str]:
            with suppress(Exception):  # of a file that is damaged: pickle may raise anything
                return dict(super()._load_index())
            return {}

        def _load_data(self, name: str) -> Any:
            try:
                return super()._load_data(name)
            except Exception as error:
                raise OSError(f"{name} cannot be read") from error  # numba then compiles

    with suppress(RuntimeError):  # no folder may be written: it is compiled in each process
        code.enable_caching()
        code._cache._cache_file.__class__ = Files


class _Loop:
    """A function that is compiled when it is first called, with the loops that it calls."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.machine_code: Any = None

    def compile(self) -> Any:
        """numba's function; it takes this one's place in the module, and so do those that it calls."""
        if self.machine_code is None:
            import numba

            # numba resolves names when it compiles: the loops that this one calls must be compiled functions by then.
            known = self.function.__globals__
            for name in self.function.__code__.co_names:
                if isinstance(known.get(name), _Loop):
                    known[name] = known[name].compile()
            self.machine_code = numba.njit(nogil=True)(self.function)
            _keep_on_disk(self.machine_code)
            if known.get(self.function.__name__) is self:
                known[self.function.__name__] = self.machine_code
        return self.machine_code

    def __call__(self, *arguments: Any) -> Any:
        started = time.perf_counter()
        code = self.compile()
        if not code.signatures:
            code.compile(tuple(map(code.typeof_pyval, arguments)))
            Stopwatch.compiling += time.perf_counter() - started
        return code(*arguments)


def jit(function: F) -> F:
    """Compile `function` on its first call (float64, C-contiguous arrays)."""
    return cast(F, _Loop(function))


# Worker processes die with the process that started them, however it ends.

PR_SET_PDEATHSIG = 1
LOOK = 1.0  # seconds between two looks at the parent, where the system does not tell of its death


class WorkerLost(SystemFault):
    """A worker process died, or what it was sent or gave could not be read."""


#: by exception class, the first that fits; whatever else comes out of a worker was raised by the work itself
OF_WORKERS = {
    BrokenProcessPool: FaultKind.SYSTEM,  # TerminatedWorkerError too
    ShutdownExecutorError: FaultKind.SYSTEM,
    LokyRecursionError: FaultKind.SYSTEM,
    pickle.PicklingError: FaultKind.INPUT,
}


@contextmanager
def explain_worker_errors() -> Iterator[None]:
    """What joblib and loky raise, as a sentence; errors of the work pass."""
    try:
        yield
    except tuple(OF_WORKERS) as error:
        kind = next(kind for known, kind in OF_WORKERS.items() if isinstance(error, known))
        if kind is FaultKind.INPUT:
            raise InputError(f"this cannot be sent to worker processes, use n_jobs=1: {one_line(error)}") from error
        text = f"a worker process died or could not be reached ({one_line(error)[:200]})"
        raise WorkerLost(f"{text}; nothing that was finished is lost, and fewer workers (n_jobs) may help") from error


class _Workers(Parallel):  # type: ignore[misc,unused-ignore]
    """joblib's processes, deaf from their start to the signals that a terminal sends to all: their parent acts."""

    def __call__(self, iterable: Iterable[Any]) -> Any:
        with explain_worker_errors():
            results = super().__call__(iterable)
        return self._explain(results) if isinstance(results, Generator) else results

    def _explain(self, results: Iterator[Any]) -> Iterator[Any]:
        with explain_worker_errors():
            yield from results

    def _initialize_backend(self) -> Any:
        # loky starts another worker in the place of one that grew, and tells the user what is none of theirs
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        try:
            with _block_signals():
                resource_tracker.ensure_running()
                # Helper processes of joblib and Python start here, while signals are blocked: they inherit the mask.
                if os.name == "posix":
                    multiprocessing.resource_tracker.ensure_running()  # its start would let SIGINT through again
            with _block_signals():
                count = super()._initialize_backend()
                _start_deaf(getattr(self._backend, "_workers", None))
                return count
        except ValueError as error:  # of a variable of the environment that joblib reads, such as LOKY_MAX_CPU_COUNT
            raise InputError(
                f"worker processes could not be started ({one_line(error)}); with n_jobs=1 none is needed"
            ) from error
        except (OSError, MemoryError) as error:  # no room for one more process
            _give_up(getattr(self._backend, "_workers", None))
            text = f"worker processes could not be started ({one_line(error)})"
            raise SystemFault(f"{text}; nothing is lost, and with n_jobs=1 none is needed") from error


def _start_deaf(executor: Any) -> None:
    """Start the workers now, and each that takes the place of another while signals wait.

    A signal that ended the parent halfway through a start left a worker that complained of its empty letter.
    """
    start = getattr(executor, "_ensure_executor_running", None)
    if start is None:
        return
    if "_ensure_executor_running" not in vars(executor):  # joblib gives the same executor again

        def start_deaf() -> None:
            with _block_signals():
                start()

        executor._ensure_executor_running = start_deaf
    executor._ensure_executor_running()


def _give_up(executor: Any) -> None:
    """End an executor of which not all processes could be started; the next call makes another."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.terminate()
    if executor is not None:
        executor.shutdown(wait=False, kill_workers=True)


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
