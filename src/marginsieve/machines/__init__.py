"""Machines: what is solved for the expansion coefficients on a fixed kernel."""

from collections.abc import Callable

from ..contracts import Machine
from .column_machines import L1SVC, ConcaveSVC, HingeSVC, RampSVC
from .kernel_machines import CSVC, MKL, Sphere
from .survival_machines import CoxRidge, MartingaleRidge, RankingSVM
from .value_machines import LSSVM, SVR, KernelRidge, Lasso

MACHINES: dict[str, Callable[..., Machine]] = {
    "c_svc": CSVC,
    "svdd": Sphere,
    "l1": L1SVC,
    "hinge": HingeSVC,
    "fsv": ConcaveSVC,
    "ramp": RampSVC,
    "mkl": MKL,
    "kernel_ridge": KernelRidge,
    "svr": SVR,
    "ls_svm": LSSVM,
    "lasso": Lasso,
    "cox": CoxRidge,
    "martingale_ridge": MartingaleRidge,
    "ranking_svm": RankingSVM,
}

__all__ = ["CSVC", "L1SVC", "LSSVM", "MACHINES", "MKL", "SVR", "ConcaveSVC", "CoxRidge", "HingeSVC", "KernelRidge"]
__all__ += ["Lasso", "MartingaleRidge", "RampSVC", "RankingSVM", "Sphere"]
