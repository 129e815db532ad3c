"""A result without what belongs to single rows, for a page that can be sent round.

What is known to hold no rows is kept and everything else is left out, so that what another package adds is not shown
by mistake. The sentences are made anew from what is left.
"""

from __future__ import annotations

from typing import Any

from ..errors import InputError, one_line
from .answer import answer
from .checks import ALARM

FEWEST = 10  # rows of a class below which its quartiles would be values of single rows
FEWEST_OF_LEVEL = 5  # rows of a class with a level, unless there are none
ANALYSES = (
    *("evidence", "shuffled-study", "effects", "false-share", "substitutes", "other-lists", "costs", "references"),
    *("boosted-trees", "forecast", "sites", "blocks", "decision", "each-class", "covariates", "learning-curve"),
)
OF_ROWS = ("agreement", "survival")  # curves that show single rows
#: whose sentences hold counts and names of columns alone
FINDINGS = (
    *("copy", "leak", "before", "groups", "equal rows", "torn rows", "few", "gaps", "id", "counts", "unstable", "wide"),
    *("long", "short", "other", "false", "longer", "outside", "site", "transfer", "confounded"),
)


def without_rows(result: dict[str, Any]) -> dict[str, Any]:
    """The result of a study without rows, ids and values of single rows."""
    try:
        return _without_rows(result)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"this result is not as a study leaves it ({type(error).__name__}: {one_line(error)})"
        ) from error


def _without_rows(result: dict[str, Any]) -> dict[str, Any]:
    judged = result["analyses"].get("suspects") or {}
    doubts = set(result["answer"]["doubts"])
    findings = [each for each in result["findings"] if each["kind"] in FINDINGS]
    aggregated = {
        **result,
        "analyses": {name: values for name, values in result["analyses"].items() if name in ANALYSES},
        "features": [{**feature, "plot": _plot_of_class(feature.get("plot"))} for feature in result["features"]],
        "methods": [{**method, "left_out": None, "notes": []} for method in result["methods"]],
        "curves": {name: _without_points(curves) for name, curves in result["curves"].items()},
        "findings": findings,
        "ledger": {**result["ledger"], "places": []},
        "notes": [],
        "how": {**result["how"], "command": None},
        "aggregated": {"rows": judged.get("count", 0), "findings": len(result["findings"]) - len(findings)},
    }
    words = answer(aggregated)
    words["doubts"] = [each["text"] for each in findings if each["level"] == ALARM and each["text"] in doubts]
    return aggregated | {"answer": words}


def _without_points(curves: dict[str, Any] | None) -> dict[str, Any] | None:
    """Curves without predictions, or times, of single rows."""
    return None if curves is None else {name: part for name, part in curves.items() if name not in OF_ROWS}


def _plot_of_class(plot: dict[str, Any] | None) -> dict[str, Any] | None:
    """Quartiles without ends and points, or shares; None where a class has so few rows that they tell of one."""
    if not plot or plot["type"] not in ("numbers", "levels") or any(each["count"] < FEWEST for each in plot["classes"]):
        return None
    if plot["type"] == "numbers":
        inner = [(each, each["quartiles"][1:4]) for each in plot["classes"]]
        parts = [{**each, "quartiles": [q1, q1, q2, q3, q3], "points": []} for each, (q1, q2, q3) in inner]
        return {**plot, "classes": parts}
    counts = [share * each["count"] for each in plot["classes"] for share in each["shares"]]
    return None if any(0.5 <= count < FEWEST_OF_LEVEL - 0.5 for count in counts) else plot
