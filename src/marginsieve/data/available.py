"""How much memory this process may still use; what would take more is refused before any work."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..errors import InputError

SPARE = 0.9  # of what is free
GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def refuse_more(needed: float, what: str, way: str) -> None:
    """Refuse what would take more memory than this process may use: "what" would take so much, do "way"."""
    free = SPARE * free_bytes()
    if needed > free:
        raise InputError(f"{what} would take about {gigabytes(needed)} of memory and {gigabytes(free)} are free: {way}")


def gigabytes(count: float) -> str:
    """'1.5 GB', '20 MB'."""
    return f"{count / 2**30:,.1f} GB" if count >= 2**29 else f"{count / 2**20:.0f} MB"


def free_bytes() -> float:
    """What this process may still allocate: of the machine, its container and its own limit; inf where unknown."""
    return min(_free_in_machine(), free_in_container(), _free_to_process())


def _free_in_machine() -> float:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf  # pragma: no cover


def free_in_container() -> float:
    """What is left in the control group of this process and in those above it; inf where there is no limit."""
    free = math.inf
    for group, limit, used in _groups():
        with suppress(OSError, ValueError):
            left = int((group / limit).read_text()) - int((group / used).read_text())
            free = min(free, float(left) + _file_cache(group))
    return max(free, 0.0)


def _groups() -> Iterator[tuple[Path, str, str]]:
    """The folders of the groups that this process is in, up to the top, and the names of their limit and use."""
    second, first = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
    groups = [(GROUPS, "/", second), (GROUPS / "memory", "/", first)]
    with suppress(OSError, ValueError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, inside = line.split(":", 2)
            if controllers == "":
                groups.append((GROUPS, inside, second))
            elif "memory" in controllers.split(","):
                groups.append((GROUPS / "memory", inside, first))
    for top, inside, names in groups:
        parts = [part for part in inside.split("/") if part not in ("", "..")]
        for count in range(len(parts) + 1):
            yield (top.joinpath(*parts[:count]), *names)


def _file_cache(group: Path) -> float:
    """Files that a group keeps in memory and gives up when asked."""
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text().splitlines():
            if line.startswith(("inactive_file ", "total_inactive_file ")):
                return float(line.split()[1])
    return 0.0


def _free_to_process() -> float:
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            return max(0.0, float(limit - used))
    return math.inf
