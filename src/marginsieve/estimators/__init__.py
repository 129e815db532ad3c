"""Estimators with the contract of scikit-learn, suspects, predictions for new tables, models in files."""

from .blend import Blend
from .mkl_classifier import MKLClassifier
from .prediction import Prediction, predict
from .selector import SVMSelector, prepare_search
from .suspects import find_suspects
from .svdd import SVDD

__all__ = ["SVDD", "Blend", "MKLClassifier", "Prediction", "SVMSelector", "find_suspects", "predict", "prepare_search"]
