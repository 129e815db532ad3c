"""Machines: what is solved for the expansion coefficients on a fixed kernel."""

from .c_svc import CSVC
from .hinge import ConcaveSVC, HingeSVC, RampSVC
from .l1 import L1SVC
from .mkl import MKL
from .svdd import Sphere

MACHINES = {
    "c_svc": CSVC,
    "svdd": Sphere,
    "l1": L1SVC,
    "hinge": HingeSVC,
    "fsv": ConcaveSVC,
    "ramp": RampSVC,
    "mkl": MKL,
}

__all__ = ["CSVC", "L1SVC", "MACHINES", "MKL", "ConcaveSVC", "HingeSVC", "RampSVC", "Sphere"]
