"""marginsieve finds the few features that matter in a hard table and says honestly how well they predict."""

from importlib.metadata import version

from . import recipes
from .errors import InputError
from .evaluation.describe import describe
from .evaluation.tuning import tune
from .mkl import MKLClassifier
from .persistence import load, save
from .prediction import Prediction, predict
from .selector import SVMSelector
from .studies import Study, study
from .suspects import find_suspects
from .svdd import SVDD

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
