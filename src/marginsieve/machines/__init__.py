"""Machines: what is solved for the expansion coefficients on a fixed kernel."""

from collections.abc import Callable

from ..contracts import Machine
from .c_svc import CSVC
from .l1_svc import L1SVC
from .linear_programs import ConcaveSVC, HingeSVC, RampSVC
from .multiple_kernels import MKL
from .sphere import Sphere

MACHINES: dict[str, Callable[..., Machine]] = {
    "c_svc": CSVC,
    "svdd": Sphere,
    "l1": L1SVC,
    "hinge": HingeSVC,
    "fsv": ConcaveSVC,
    "ramp": RampSVC,
    "mkl": MKL,
}

__all__ = ["CSVC", "L1SVC", "MACHINES", "MKL", "ConcaveSVC", "HingeSVC", "RampSVC", "Sphere"]
