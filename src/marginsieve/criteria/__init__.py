"""Criteria score the features of a fitted machine, filters score columns from the labels alone; higher means keep."""

from collections.abc import Callable
from functools import partial

from ..contracts import Criterion, Filter
from .information import DecomposedHellinger, Hellinger, SymmetricalUncertainty
from .machine_criteria import LearnedWeight, Loss, MarginChange, SphereChange
from .relief import ReliefF, RReliefF
from .separation import Density, Fast, Fisher, KolmogorovSmirnov, Principal, ShrunkenFisher
from .significance import ChiSquare, Correlation, CoxScore, FisherExact, FTest, MixedTest, TTest

CRITERIA: dict[str, Callable[..., Criterion]] = {
    "margin": MarginChange,
    "loss": Loss,
    "learned": LearnedWeight,
    "radius": SphereChange,
    "dual": partial(SphereChange, of="dual"),
    "radius_as_printed": partial(SphereChange, drop="smallest"),
    "dual_as_printed": partial(SphereChange, of="dual", drop="smallest"),
}
FILTERS: dict[str, Callable[..., Filter]] = {
    "fisher": Fisher,
    "shrunken_fisher": ShrunkenFisher,
    "fast": Fast,
    "t_test": TTest,
    "kolmogorov_smirnov": KolmogorovSmirnov,
    "chi_square": ChiSquare,
    "fisher_exact": FisherExact,
    "mixed_test": MixedTest,
    "su": SymmetricalUncertainty,
    "hellinger": Hellinger,
    "d_hell": DecomposedHellinger,
    "relieff": ReliefF,
    "dbfs": Density,
    "pca": Principal,
    "correlation": Correlation,
    "f_test": FTest,
    "rrelieff": RReliefF,
    "cox_score": CoxScore,
}

__all__ = [
    "CRITERIA",
    "FILTERS",
    "ChiSquare",
    "Correlation",
    "CoxScore",
    "DecomposedHellinger",
    "Density",
    "FTest",
    "Fast",
    "Fisher",
    "FisherExact",
    "Hellinger",
    "KolmogorovSmirnov",
    "LearnedWeight",
    "Loss",
    "MarginChange",
    "MixedTest",
    "Principal",
    "RReliefF",
    "ReliefF",
    "ShrunkenFisher",
    "SphereChange",
    "SymmetricalUncertainty",
    "TTest",
]
