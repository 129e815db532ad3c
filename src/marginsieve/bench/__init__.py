"""Many tables: suites of methods, their results, and statistics over tables."""

from .results import SuiteResult
from .statistics import Comparison, compare, describe, wilcoxon_p
from .suite import Suite, example_result, run_suite

__all__ = ["Comparison", "Suite", "SuiteResult", "compare", "describe", "example_result", "run_suite", "wilcoxon_p"]
