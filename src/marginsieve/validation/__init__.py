"""A fitted model and a new cohort: what was promised, what it scores there, how far its columns are."""

from .cohort_check import validate
from .forecasting import Forecast, forecast, record_promise
from .pooling import Pooled, pool
from .validated import Validation, claim_folder, join_validations

__all__ = [
    "Forecast",
    "Pooled",
    "Validation",
    "claim_folder",
    "forecast",
    "join_validations",
    "pool",
    "record_promise",
    "validate",
]
