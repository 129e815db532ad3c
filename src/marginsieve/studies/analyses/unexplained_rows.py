"""Rows whose number the model cannot explain: their out-of-fold error is beyond what its other errors make likely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ...contracts import Array
from ...errors import listing, many
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..checks import NOTE, Finding

LEVEL = 0.05  # chance that a table with normal errors has any such row
LISTED = 200
SKEW = 2.0  # that of exponential times


@register_analysis
class UnexplainedRows:
    """Rows of an outcome of numbers that the model cannot explain."""

    name, order, template = "unexplained", 81.0, "unexplained"

    def applies(self, facts: Facts) -> str | None:
        """For numbers."""
        known = facts.shape.outcome
        return None if known == "numbers" else f"it is for numbers, not for {known}"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """It costs nothing."""
        return [Level((), 0)]

    def cost(self, facts: Facts) -> float:  # noqa: ARG002
        """Nothing is fitted."""
        return 0.0

    def run(self, run: StudyRun) -> AnalysisResult:
        """The rows, the furthest first, and a table of all rows with their errors."""
        nested = run.main.nested
        observed, predicted = np.asarray(nested.target.observed), np.asarray(nested.predicted).mean(axis=0)
        scaled = scale_errors(observed - predicted)
        limit = float(stats.norm.isf(0.5 * LEVEL / len(observed)))
        rows = 1 + (np.arange(len(observed)) if run.data.numbers is None else run.data.numbers)
        columns = {"row": rows, "id": run.data.labels, "observed": observed, "predicted": predicted, "error": scaled}
        frame = pd.DataFrame({name: np.asarray(part) for name, part in columns.items() if part is not None})
        frame["unexplained"] = np.abs(scaled) > limit
        order = np.lexsort((frame["row"], -np.abs(scaled)))
        frame = frame.iloc[order].reset_index(drop=True)
        far: list[dict[Any, Any]] = frame[frame["unexplained"]].drop(columns="unexplained").to_dict("records")
        values = {
            "judged": len(frame),
            "count": len(far),
            "limit": limit,
            "named_by": "id" if "id" in frame else "row",
            "rows": far[:LISTED],
            "skewed": is_skewed(observed),
        }
        return AnalysisResult(values, tables={"unexplained.csv": frame}, details=frame)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many rows there are and which."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        if not known["rows"]:
            return "No row has an error that stands out from the model's other errors."
        by = known["named_by"]
        which = f"{by}{'' if known['count'] == 1 else 's'} {listing([row[by] for row in known['rows']], 10)}"
        return f"The model cannot explain {many(known['count'], 'row')} ({which}): further out than its other errors."

    def doubt(self, result: dict[str, Any]) -> Finding | None:
        """That few large numbers decide."""
        if not result["analyses"][self.name]["skewed"]:
            return None
        known = result["table"]["numbers"]
        text = (
            f"the target is above 0 and skewed (mean {known['mean']:.4g}, median {known['median']:.4g}): the largest "
            "numbers decide the scores, and the rows that cannot be explained; its logarithm may be the better target"
        )
        return Finding("skewed", NOTE, text)


def is_skewed(values: Array) -> bool:
    """Whether numbers above 0 are so far from symmetric that their logarithms are less than half as far."""
    if values.min() <= 0:
        return False
    skew = float(stats.skew(values))
    return skew > SKEW and abs(float(stats.skew(np.log(values)))) < 0.5 * skew


def scale_errors(errors: Array) -> Array:
    """(m,) errors less their median, in robust standard deviations: the median size over that of a normal deviate."""
    away = errors - np.median(errors)
    spread = float(np.median(np.abs(away)) / stats.norm.ppf(0.75))
    if spread <= 0:
        spread = float(away.std())
    return np.asarray(away / spread if spread > 0 else np.zeros(len(errors)))
