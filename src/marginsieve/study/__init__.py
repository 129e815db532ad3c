"""Studies: units, scores, statistics, and what to believe about a table."""

from .conducting import Study, study
from .loo import loo_decision
from .metrics import METRICS, Scores, score_predictions
from .protocol import Nested, nested_cv
from .results import Study as SuiteResult
from .stability import jaccard, kuncheva, nogueira
from .statistics import Comparison, compare

__all__ = [
    "METRICS",
    "Comparison",
    "Nested",
    "Scores",
    "Study",
    "SuiteResult",
    "compare",
    "jaccard",
    "kuncheva",
    "loo_decision",
    "nested_cv",
    "nogueira",
    "score_predictions",
    "study",
]
