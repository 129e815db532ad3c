"""The page of a suite: its scores, comparison, stability and failures in, one page out, in the style of the report."""

from __future__ import annotations

from typing import Any

from . import svg
from .render import page_of


def render_suite(result: dict[str, Any]) -> str:
    """The page of a suite, without external resources.

    Parameters
    ----------
    result : dict
        `SuiteResult.summary()`.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from marginsieve.bench import example_result
    >>> from marginsieve.report.suite_page import render_suite
    >>> render_suite(example_result().summary("auc"))[:15]
    '<!doctype html>'
    """
    means = (result["comparison"] or {"means": []})["means"]
    chart = None
    if means and all(0.0 <= end <= 1.0 for row in means for end in (row["low"], row["high"])):
        rows = [svg.IntervalRow(row["method"], row["mean"], row["low"], row["high"], "s0") for row in means]
        chart = svg.interval_rows("Means over the tables", rows, f"{result['title']}, mean over the tables")
    return page_of("suite.html", {"r": result, "chart": chart})
