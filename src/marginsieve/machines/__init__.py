"""Machines: what is solved for the expansion coefficients on a fixed kernel."""

from .c_svc import CSVC

MACHINES = {"c_svc": CSVC}

__all__ = ["CSVC", "MACHINES"]
