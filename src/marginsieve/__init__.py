"""marginsieve finds the few features that matter in a hard table and says honestly how well they predict."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import bench, criteria, data, engine, kernels, machines, recipes, searches
    from .bench import describe
    from .contracts import Path
    from .engine import nested_cv, tune
    from .errors import InputError, SolverError
    from .estimators import SVDD, Blend, MKLClassifier, Prediction, SVMSelector, find_suspects, predict
    from .estimators.explanations import Explanation, explain
    from .estimators.onnx_export import to_onnx
    from .estimators.persistence import load, save
    from .report.path_plot import plot_path
    from .studies.running import Study, study
    from .validation import Validation, validate

    __version__: str

_homes = {  # public names load when they are used
    "bench": ("describe",),
    "contracts": ("Path",),
    "engine": ("nested_cv", "tune"),
    "errors": ("InputError", "SolverError"),
    "estimators": ("Blend", "MKLClassifier", "Prediction", "SVDD", "SVMSelector", "find_suspects", "predict"),
    "estimators.explanations": ("Explanation", "explain"),
    "estimators.onnx_export": ("to_onnx",),
    "estimators.persistence": ("load", "save"),
    "report.path_plot": ("plot_path",),
    "studies.running": ("Study", "study"),
    "validation": ("Validation", "validate"),
}
_home_of = {name: home for home, names in _homes.items() for name in names}
__all__ = ["SVDD", "Blend", "InputError", "MKLClassifier", "Path", "Prediction", "SVMSelector", "SolverError", "Study"]
__all__ += ["Explanation", "Validation"]
__all__ += [
    "describe",
    "explain",
    "find_suspects",
    "load",
    "nested_cv",
    "plot_path",
    "predict",
    "save",
    "to_onnx",
    "tune",
    "validate",
]
__all__ += ["__version__", "bench", "criteria", "data", "engine", "kernels", "machines", "recipes", "searches", "study"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("marginsieve")
    if name not in __all__:
        raise AttributeError(f"module 'marginsieve' has no attribute {name!r}")
    module = import_module(f".{_home_of.get(name, name)}", __name__)
    return getattr(module, name) if name in _home_of else module


def __dir__() -> list[str]:
    return sorted(__all__)
