"""marginsieve finds the few features that matter in a hard table and says honestly how well they predict."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import criteria, data, kernels, machines, recipes, searches
    from .contracts import Path
    from .errors import InputError, SolverError
    from .estimators import SVDD, MKLClassifier, Prediction, SVMSelector, find_suspects, predict
    from .estimators.persistence import load, save
    from .report.path_plot import plot_path
    from .study import Study, describe, nested_cv, study, tune

    __version__: str

_homes = {  # public names load when they are used
    "InputError": "errors",
    "MKLClassifier": "estimators",
    "Path": "contracts",
    "Prediction": "estimators",
    "SVDD": "estimators",
    "SVMSelector": "estimators",
    "SolverError": "errors",
    "Study": "study",
    "criteria": "",
    "data": "",
    "describe": "study",
    "find_suspects": "estimators",
    "kernels": "",
    "load": "estimators.persistence",
    "machines": "",
    "nested_cv": "study",
    "plot_path": "report.path_plot",
    "predict": "estimators",
    "recipes": "",
    "save": "estimators.persistence",
    "searches": "",
    "study": "",
    "tune": "study",
}
__all__ = [
    "SVDD",
    "InputError",
    "MKLClassifier",
    "Path",
    "Prediction",
    "SVMSelector",
    "SolverError",
    "Study",
    "__version__",
    "criteria",
    "data",
    "describe",
    "find_suspects",
    "kernels",
    "load",
    "machines",
    "nested_cv",
    "plot_path",
    "predict",
    "recipes",
    "save",
    "searches",
    "study",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("marginsieve")
    if name not in _homes:
        raise AttributeError(f"module 'marginsieve' has no attribute {name!r}")
    home = _homes[name]
    return getattr(import_module(f".{home}", __name__), name) if home else import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
