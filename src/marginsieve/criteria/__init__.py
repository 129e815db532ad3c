"""Criteria: what a feature is worth, higher means keep."""

from collections.abc import Callable
from functools import partial
from typing import Any

from .filters import ChiSquare, Fast, Fisher, FisherExact, KolmogorovSmirnov, TTest
from .learned import LearnedWeight
from .loss import Loss
from .margin import MarginChange
from .sphere import SphereChange

CRITERIA: dict[str, Callable[..., Any]] = {
    "margin": MarginChange,
    "loss": Loss,
    "learned": LearnedWeight,
    "radius": SphereChange,
    "dual": partial(SphereChange, of="dual"),
    "radius_as_printed": partial(SphereChange, drop="smallest"),
    "dual_as_printed": partial(SphereChange, of="dual", drop="smallest"),
    "fisher": Fisher,
    "fast": Fast,
    "t_test": TTest,
    "kolmogorov_smirnov": KolmogorovSmirnov,
    "chi_square": ChiSquare,
    "fisher_exact": FisherExact,
}

__all__ = [
    "CRITERIA",
    "ChiSquare",
    "Fast",
    "Fisher",
    "FisherExact",
    "KolmogorovSmirnov",
    "LearnedWeight",
    "Loss",
    "MarginChange",
    "SphereChange",
    "TTest",
]
