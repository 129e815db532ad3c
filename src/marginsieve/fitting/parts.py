"""Names of components: a string stands for one with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..criteria import CRITERIA
from ..errors import InputError, listing
from ..kernels import KERNELS
from ..machines import MACHINES
from ..searches import SEARCHES
from .smote import Smote

AXES: dict[str, Mapping[str, Any]] = {
    "kernel": KERNELS,
    "machine": MACHINES,
    "criterion": CRITERIA,
    "search": SEARCHES,
}
REQUIRED = {
    "kernel": ("base", "outer"),
    "machine": ("solve", "decision"),
    "criterion": ("score", "needs"),
    "search": ("run",),
    "sampler": ("fit_resample",),
}


def resolve(axis: str, value: Any) -> Any:
    """The component that `value` names or is; None stays None for a sampler and for a criterion."""
    if value is None and axis in ("sampler", "criterion"):
        return None
    if axis == "sampler" and value == "smote":
        return Smote()
    if isinstance(value, str):
        known = AXES.get(axis, {})
        name = value.replace("-", "_")
        if name not in known:
            names = listing(list(known) or ["smote"], most=20)
            raise InputError(f"{axis} is {value!r}; the names are {names}")
        return known[name]()
    lacking = [name for name in REQUIRED[axis] if not hasattr(value, name)]
    if isinstance(value, type) or lacking:
        raise InputError(f"{axis} is {value!r}; it must be a name or an object with {listing(REQUIRED[axis])}")
    return value
