"""One engine: units of work, store, workers, nested cross-validation and its scores."""

from ..solvers.execution import parallel
from .folders import claim, publish
from .nested import Nested, nested_cv
from .protocols import Protocol, register_protocol
from .scoring import METRICS, Pass, Scores, score_predictions
from .stability import jaccard, kuncheva, nogueira
from .tuning import Tuned, tune, tune_on_all_features

__all__ = ["METRICS", "Nested", "Pass", "Protocol", "Scores", "Tuned", "claim", "jaccard", "kuncheva", "nested_cv"]
__all__ += ["nogueira", "parallel", "publish", "register_protocol", "score_predictions", "tune", "tune_on_all_features"]
