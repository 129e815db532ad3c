"""Names of parts: a string stands for a part with its defaults."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import cast

from ..contracts import (
    AnyPart,
    Criterion,
    CriterionLike,
    Filter,
    HasCheck,
    Kernel,
    KernelLike,
    Machine,
    MachineLike,
    Sampler,
    SamplerLike,
    Search,
    SearchLike,
)
from ..criteria import CRITERIA, FILTERS
from ..errors import InputError, listing
from ..kernels import KERNELS
from ..machines import MACHINES
from ..searches import SEARCHES
from .smote import Smote

SAMPLERS: dict[str, Callable[..., Sampler]] = {"smote": Smote, "smote_each": lambda: Smote(bases="each")}
AXES: dict[str, Mapping[str, Callable[..., AnyPart]]] = {  # the dictionaries themselves: what is added later counts
    "kernel": KERNELS,
    "machine": MACHINES,
    "criterion": cast(Mapping[str, Callable[..., AnyPart]], ChainMap(FILTERS, CRITERIA)),
    "search": SEARCHES,
    "sampler": SAMPLERS,
}
CONTRACTS: dict[str, type] = dict(zip(AXES, (Kernel, Machine, Criterion, Search, Sampler), strict=True))


def resolve(axis: str, value: str | AnyPart) -> AnyPart:
    """The part that `value` names or is, checked against its contract."""
    contract = CONTRACTS[axis]
    if isinstance(value, str):
        known = AXES[axis]
        name = value.replace("-", "_")
        if name not in known:
            raise InputError(f"{axis} is {value!r}; the names are {listing(list(known), most=30)}")
        value = known[name]()
    elif isinstance(value, type) or not (isinstance(value, contract) or (axis == "criterion" and callable(value))):
        methods = [name for name, one in vars(contract).items() if callable(one) and not name.startswith("_")]
        required = [*(name for name in contract.__annotations__ if not name.startswith("_")), *methods]
        lacking = [name for name in required if not hasattr(value, name)]
        raise InputError(
            f"{axis} is {value!r}; it must be a name or an object with {listing(required, 10)}"
            + (", or a filter, which is any callable" if axis == "criterion" else "")
            + (f" (it lacks {listing(lacking)})" if lacking and not isinstance(value, (int, float)) else "")
        )
    if isinstance(value, HasCheck):
        value.check()
    return value


def kernel_of(value: KernelLike) -> Kernel:
    """A kernel by name or as it is."""
    return cast(Kernel, resolve("kernel", value))


def machine_of(value: MachineLike) -> Machine:
    """A machine by name or as it is."""
    return cast(Machine, resolve("machine", value))


def criterion_of(value: CriterionLike) -> Criterion | Filter | None:
    """A criterion or a filter by name or as it is; None is none."""
    return None if value is None else cast(Criterion | Filter, resolve("criterion", value))


def search_of(value: SearchLike) -> Search:
    """A search by name or as it is."""
    return cast(Search, resolve("search", value))


def sampler_of(value: SamplerLike) -> Sampler | None:
    """A sampler by name or as it is; None is none."""
    return None if value is None else cast(Sampler, resolve("sampler", value))
