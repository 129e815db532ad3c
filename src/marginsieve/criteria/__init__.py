"""Criteria: what a feature is worth, higher means keep."""

from functools import partial

from .filters import Fisher
from .loss import Loss
from .margin import MarginChange
from .sphere import SphereChange

CRITERIA = {
    "margin": MarginChange,
    "loss": Loss,
    "radius": SphereChange,
    "dual": partial(SphereChange, of="dual"),
    "radius_as_printed": partial(SphereChange, drop="smallest"),
    "dual_as_printed": partial(SphereChange, of="dual", drop="smallest"),
    "fisher": Fisher,
}

__all__ = ["CRITERIA", "Fisher", "Loss", "MarginChange", "SphereChange"]
