"""How much memory a fit will take, and how much there is: what does not fit is refused before any work."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from joblib import effective_n_jobs

from ..contracts import KnowsPeak
from ..errors import InputError
from ..problem import is_filter
from .settings import Plan, Settings
from .training_rows import Encoded

NUMBER = 8  # bytes
PEAK = (5.2, 1.7)  # of parts that do not say: copies of the table, matrices of rows by rows
ONCE = (5.2, 2.5)  # of a kernel that is not linear, for a model alone
ALWAYS = 3 * 2**20  # what is taken whatever the table
SPARE = 0.9  # of what is free
CGROUPS = (  # limit and use of a container, by the second and the first version of the system's groups
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def estimated_bytes(settings: Settings, plan: Plan, encoded: Encoded) -> float:
    """The peak of what a fit on these rows allocates, beyond what its caller holds; its workers are counted in.

    Parts say what they take, in copies of the table and in matrices of rows by rows.
    """
    table = encoded.table
    m, n = table.shape
    trained = min(m, settings.max_samples or m)
    by_filter = is_filter(plan.criterion)  # then the kernel is needed once, for the model
    parts = (plan.machine, plan.search) if by_filter else (plan.kernel, plan.machine, plan.search)
    peaks = [PEAK if plan.kernel.linear or not by_filter else ONCE]
    peaks += [part.peak for part in parts if isinstance(part, KnowsPeak)]
    tables = max(one for one, _ in peaks)
    matrices = 0.0 if plan.machine.needs == "columns" else max(one for _, one in peaks)
    cells = 1.5 * table.Z.nnz if table.is_sparse else m * n  # an index is half a number
    one = ALWAYS + NUMBER * (tables * cells + matrices * trained**2)
    return float(one * max(1, effective_n_jobs(settings.n_jobs)))


def refuse_too_large(settings: Settings, plan: Plan, encoded: Encoded) -> None:
    """Refuse a fit that would take more memory than this process may use."""
    needed, free = estimated_bytes(settings, plan, encoded), SPARE * free_bytes()
    if needed <= free:
        return
    m, n = encoded.table.shape
    ways = [f"max_samples={max(4, int(0.7 * m * math.sqrt(free / needed)))}"]
    ways += [f'prefilter=("fast", {max(1, int(0.5 * n * free / needed))})'] if n > m else []
    ways += ["n_jobs=1"] if effective_n_jobs(settings.n_jobs) > 1 else []
    raise InputError(
        f"the fit of {m:,} rows and {n:,} columns would take about {_gigabytes(needed)} of memory and "
        f"{_gigabytes(free)} are free: use {' or '.join(ways)}"
    )


def _gigabytes(count: float) -> str:
    return f"{count / 2**30:.1f} GB" if count >= 2**29 else f"{count / 2**20:.0f} MB"


def free_bytes() -> float:
    """What this process may still allocate: of the machine, its container and its own limit; inf where unknown."""
    return min(_of_machine(), _of_container(), _of_process())


def _of_machine() -> float:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf  # pragma: no cover


def _of_container() -> float:
    free = math.inf
    for limit, used in CGROUPS:
        with suppress(OSError, ValueError):
            free = min(free, float(int(Path(limit).read_text()) - int(Path(used).read_text())) + _cached())
    return max(free, 0.0)


def _cached() -> float:
    """Files that a container keeps in memory and gives up when asked."""
    with suppress(OSError, ValueError):
        for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                return float(line.split()[1])
    return 0.0


def _of_process() -> float:
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            return max(0.0, float(limit - used))
    return math.inf
