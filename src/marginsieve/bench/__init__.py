"""Many tables: suites of methods, their results, and statistics over tables."""

from .difficulty import describe
from .results import SuiteResult
from .statistics import Comparison, compare
from .suite import Suite
from .suite_runner import run_suite

__all__ = ["Comparison", "Suite", "SuiteResult", "compare", "describe", "run_suite"]
