"""Honest scores: protocols, metrics, intervals. Knows scikit-learn estimators only."""

from .loo import loo_decision
from .metrics import METRICS, Scores, score_predictions
from .protocol import Nested, nested_cv

__all__ = ["METRICS", "Nested", "Scores", "loo_decision", "nested_cv", "score_predictions"]
