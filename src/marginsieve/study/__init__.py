"""One engine: plan, units, store, results. Studies of a table, suites of many, statistics, stability, tuning."""

import sys
from types import ModuleType
from typing import Any

from .difficulty import describe
from .engine import run_suite
from .loo import loo_decision
from .metrics import METRICS, Pass, Scores, score_predictions
from .nested import Nested, nested_cv
from .results import SuiteResult
from .running import Study, study
from .stability import jaccard, kuncheva, nogueira
from .statistics import Comparison, compare
from .suite import Suite
from .tuning import Tuned, tune

__all__ = [
    "METRICS",
    "Comparison",
    "Nested",
    "Pass",
    "Scores",
    "Study",
    "Suite",
    "SuiteResult",
    "Tuned",
    "compare",
    "describe",
    "jaccard",
    "kuncheva",
    "loo_decision",
    "nested_cv",
    "nogueira",
    "run_suite",
    "score_predictions",
    "study",
    "tune",
]


class _Callable(ModuleType):
    """`marginsieve.study` is this package and, as the function of that name, can be called."""

    __signature__ = __import__("inspect").signature(study)

    def __call__(self, *args: Any, **settings: Any) -> Study:
        return study(*args, **settings)


sys.modules[__name__].__class__ = _Callable
