"""Numerics in arrays: arrays in, arrays and a residual out.

The names here are those of the ramp loss with a budget of features, for whoever writes another search for it.
"""

from .branch_and_bound import Bounds, MixedIntegerProgram
from .clock import Clock
from .daks import restrict_program
from .highs import Answer, Limits
from .hinge_program import HingeData
from .ramp_descent import Ramp, RampPoint, descend_on, l1_start

__all__ = ["Answer", "Bounds", "Clock", "HingeData", "Limits", "MixedIntegerProgram", "Ramp", "RampPoint"]
__all__ += ["descend_on", "l1_start", "restrict_program"]
