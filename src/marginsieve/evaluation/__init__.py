"""Honest scores: protocols, metrics, intervals. Knows scikit-learn estimators only."""

from .loo import loo_decision
from .metrics import METRICS, Scores, score_predictions
from .protocol import Nested, nested_cv
from .results import Study
from .stability import jaccard, kuncheva, nogueira
from .statistics import Comparison, compare

__all__ = [
    "METRICS",
    "Comparison",
    "Nested",
    "Scores",
    "Study",
    "compare",
    "jaccard",
    "kuncheva",
    "loo_decision",
    "nested_cv",
    "nogueira",
    "score_predictions",
]
