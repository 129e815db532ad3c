"""One engine: units of work, store, workers, nested cross-validation and its scores."""

from ..outcomes.scores import METRICS
from ..solvers.execution import parallel
from .nested import Nested, nested_cv
from .scoring import Pass, Scores, jaccard, kuncheva, nogueira, score_predictions
from .store import claim, publish
from .tuning import Tuned, tune, tune_on_all_features
from .units import Protocol, register_protocol

__all__ = ["METRICS", "Nested", "Pass", "Protocol", "Scores", "Tuned", "claim", "jaccard", "kuncheva", "nested_cv"]
__all__ += ["nogueira", "parallel", "publish", "register_protocol", "score_predictions", "tune", "tune_on_all_features"]
