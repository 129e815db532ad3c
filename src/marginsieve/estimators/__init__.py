"""Estimators with the contract of scikit-learn, suspects, predictions for new tables, models in files."""

from .classifiers import SVDD, MKLClassifier
from .fitted_selector import Prediction, predict
from .selector import Blend, SVMSelector, prepare_search
from .suspects import find_suspects

__all__ = ["SVDD", "Blend", "MKLClassifier", "Prediction", "SVMSelector", "find_suspects", "predict", "prepare_search"]
