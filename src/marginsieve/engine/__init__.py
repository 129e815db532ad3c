"""One engine: units of work, store, workers, nested cross-validation and its scores."""

from .nested import Nested, nested_cv
from .scoring import METRICS, Pass, Scores, score_predictions
from .stability import jaccard, kuncheva, nogueira
from .tuning import Tuned, tune

__all__ = ["METRICS", "Nested", "Pass", "Scores", "Tuned", "jaccard", "kuncheva", "nested_cv", "nogueira"]
__all__ += ["score_predictions", "tune"]
