"""Numerics in arrays: arrays in, arrays and a residual out.

The names here are those of the ramp loss with a budget of features, for whoever writes another search for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .branch_and_bound import Bounds, MixedIntegerProgram
    from .clock import Clock
    from .daks import restrict_program
    from .highs import Answer, Limits
    from .hinge_program import HingeData
    from .ramp_descent import Ramp, RampPoint, descend_on, l1_start

_homes = {  # modules load when a name is used: others need one of them alone
    "branch_and_bound": ("Bounds", "MixedIntegerProgram"),
    "clock": ("Clock",),
    "daks": ("restrict_program",),
    "highs": ("Answer", "Limits"),
    "hinge_program": ("HingeData",),
    "ramp_descent": ("Ramp", "RampPoint", "descend_on", "l1_start"),
}
_home_of = {name: home for home, names in _homes.items() for name in names}
__all__ = ["Answer", "Bounds", "Clock", "HingeData", "Limits", "MixedIntegerProgram", "Ramp", "RampPoint"]
__all__ += ["descend_on", "l1_start", "restrict_program"]


def __getattr__(name: str) -> Any:
    if name not in _home_of:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_home_of[name]}", __name__), name)
