"""Kernels: K_s(x, z) = outer( sum_j s_j^2 base_j(x_j, z_j) )."""

from collections.abc import Callable

from ..contracts import Kernel
from .clinical import Clinical, clinical_kernel, heom_distances
from .numeric import Gaussian, Linear, Polynomial

KERNELS: dict[str, Callable[..., Kernel]] = {
    "linear": Linear,
    "gaussian": Gaussian,
    "polynomial": Polynomial,
    "clinical": Clinical,
}

__all__ = ["KERNELS", "Clinical", "Gaussian", "Linear", "Polynomial", "clinical_kernel", "heom_distances"]
