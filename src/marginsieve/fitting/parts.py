"""Names of parts: a string stands for a part with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contracts import Checked, Criterion, Filter, Kernel, Machine, Sampler, Search
from ..criteria import CRITERIA, FILTERS
from ..errors import InputError, listing
from ..kernels import KERNELS
from ..machines import MACHINES
from ..searches import SEARCHES
from .smote import Smote

AXES: dict[str, Mapping[str, Any]] = {
    "kernel": KERNELS,
    "machine": MACHINES,
    "criterion": {**CRITERIA, **FILTERS},
    "search": SEARCHES,
    "sampler": {"smote": Smote},
}
CONTRACTS: dict[str, Any] = {
    "kernel": Kernel,
    "machine": Machine,
    "criterion": Criterion,
    "search": Search,
    "sampler": Sampler,
}


def resolve(axis: str, value: Any) -> Any:
    """The part that `value` names or is, checked against its contract."""
    if isinstance(value, str):
        known = AXES[axis]
        name = value.replace("-", "_")
        if name not in known:
            raise InputError(f"{axis} is {value!r}; the names are {listing(list(known), most=30)}")
        value = known[name]()
    elif isinstance(value, type) or not _keeps(axis, value):
        lacking = [name for name in members(CONTRACTS[axis]) if not hasattr(value, name)]
        raise InputError(
            f"{axis} is {value!r}; it must be a name or an object with {listing(members(CONTRACTS[axis]), 10)}"
            + (", or a filter, which is any callable" if axis == "criterion" else "")
            + (f" (it lacks {listing(lacking)})" if lacking and not isinstance(value, (int, float)) else "")
        )
    if isinstance(value, Checked):
        value.check()
    return value


def _keeps(axis: str, value: Any) -> bool:
    """Whether an object keeps the contract of an axis; a filter is any callable."""
    return isinstance(value, CONTRACTS[axis]) or (axis == "criterion" and callable(value))


def members(contract: Any) -> list[str]:
    """The names that a contract asks for."""
    methods = [name for name, value in vars(contract).items() if callable(value) and not name.startswith("_")]
    return [*(name for name in contract.__annotations__ if not name.startswith("_")), *methods]


def kernel_of(value: Any) -> Kernel:
    """A kernel by name or as it is."""
    kernel: Kernel = resolve("kernel", value)
    return kernel


def machine_of(value: Any) -> Machine:
    """A machine by name or as it is."""
    machine: Machine = resolve("machine", value)
    return machine


def criterion_of(value: Any) -> Criterion | Filter | None:
    """A criterion or a filter by name or as it is; None is none."""
    criterion: Criterion | Filter | None = None if value is None else resolve("criterion", value)
    return criterion


def search_of(value: Any) -> Search:
    """A search by name or as it is."""
    search: Search = resolve("search", value)
    return search


def sampler_of(value: Any) -> Sampler | None:
    """A sampler by name or as it is; None is none."""
    sampler: Sampler | None = None if value is None else resolve("sampler", value)
    return sampler
