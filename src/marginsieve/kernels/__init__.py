"""Kernels: K_s(x, z) = outer( sum_j s_j^2 base_j(x_j, z_j) )."""

from .clinical import clinical_kernel
from .gaussian import Gaussian
from .linear import Linear
from .polynomial import Polynomial

KERNELS = {"linear": Linear, "gaussian": Gaussian, "polynomial": Polynomial}

__all__ = ["KERNELS", "Gaussian", "Linear", "Polynomial", "clinical_kernel"]
