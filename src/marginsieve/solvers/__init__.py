"""Numerics in arrays: arrays in, arrays and a residual out.

The names here are those of the ramp loss with a budget of features, for whoever writes another search for it.
"""

from .execution import Clock
from .programs import Answer, HingeData, Limits
from .ramp_descent import Ramp, RampPoint, descend_on, l1_start
from .ramp_programs import Bounds, MixedIntegerProgram, restrict_program

__all__ = ["Answer", "Bounds", "Clock", "HingeData", "Limits", "MixedIntegerProgram", "Ramp", "RampPoint"]
__all__ += ["descend_on", "l1_start", "restrict_program"]
