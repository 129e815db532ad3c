"""Machines: what is solved for the expansion coefficients on a fixed kernel."""

from .c_svc import CSVC
from .svdd import Sphere

MACHINES = {"c_svc": CSVC, "svdd": Sphere}

__all__ = ["CSVC", "MACHINES", "Sphere"]
