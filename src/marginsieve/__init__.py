"""marginsieve finds the few features that matter in a hard table and says honestly how well they predict."""

from importlib.metadata import version

from . import recipes
from .errors import InputError
from .estimators.mkl_classifier import MKLClassifier
from .estimators.persistence import load, save
from .estimators.prediction import Prediction, predict
from .estimators.selector import SVMSelector
from .estimators.suspects import find_suspects
from .estimators.svdd import SVDD
from .study import Study, study
from .study.describe import describe
from .study.tuning import tune

__version__ = version("marginsieve")
__all__ = [
    "SVDD",
    "InputError",
    "MKLClassifier",
    "Prediction",
    "SVMSelector",
    "Study",
    "__version__",
    "describe",
    "find_suspects",
    "load",
    "predict",
    "recipes",
    "save",
    "study",
    "tune",
]
