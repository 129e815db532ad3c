"""Rows whose outcome the model cannot explain.

Of numbers the out-of-fold error is beyond what the other errors make likely. Of times the cumulative hazard up to the
row's time, by its out-of-fold risk, would be an exponential deviate if the model were right: an event where it is very
small came too early, and a row that outlives a very large one too late.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ...contracts import Array
from ...errors import listing, many
from ...outcomes import SurvivalTarget
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..checks import NOTE, Finding

LEVEL = 0.05  # chance that a table with normal errors has any such row
LISTED = 200
SKEW = 2.0  # that of exponential times


@register_analysis
class UnexplainedRows:
    """Rows of numbers, or of times to an event, that the model cannot explain."""

    name, order, template = "unexplained", 81.0, "unexplained"

    def applies(self, facts: Facts) -> str | None:
        """For numbers and times."""
        known = facts.shape.outcome
        return None if known in ("numbers", "survival") else f"it is for numbers and times, not for {known}"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """It costs nothing."""
        return [Level((), 0)]

    def cost(self, facts: Facts) -> float:  # noqa: ARG002
        """Nothing is fitted."""
        return 0.0

    def run(self, run: StudyRun) -> AnalysisResult:
        """The rows, the furthest first, and a table of all rows with their errors or residuals."""
        target, passes = run.main.nested.target, np.asarray(run.main.nested.predicted)
        m = len(target)
        if isinstance(target, SurvivalTarget):
            residual, chance = judge_times(target, passes)
            beyond, limit, size = chance < LEVEL / m, LEVEL / m, -chance
            known = {"time": target.time, "event": target.event.astype(np.intp), "residual": residual, "chance": chance}
        else:
            observed, predicted = np.asarray(target.observed), passes.mean(axis=0)
            scaled = scale_errors(observed - predicted)
            limit, size = float(stats.norm.isf(0.5 * LEVEL / m)), np.abs(scaled)
            beyond, known = size > limit, {"observed": observed, "predicted": predicted, "error": scaled}
        rows = 1 + (np.arange(m) if run.data.numbers is None else run.data.numbers)
        columns = {"row": rows, "id": run.data.labels, **known, "unexplained": beyond}
        frame = pd.DataFrame({name: np.asarray(part) for name, part in columns.items() if part is not None})
        frame = frame.iloc[np.lexsort((rows, -size))].reset_index(drop=True)
        far: list[dict[Any, Any]] = frame[frame["unexplained"]].drop(columns="unexplained").to_dict("records")
        values = {
            "judged": len(frame),
            "count": len(far),
            "limit": limit,
            "outcome": target.outcome_name,
            "named_by": "id" if "id" in frame else "row",
            "rows": far[:LISTED],
            "skewed": target.outcome_name == "numbers" and is_skewed(np.asarray(target.observed)),
        }
        return AnalysisResult(values, tables={"unexplained.csv": frame}, details=frame)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many rows there are and which."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        of_times = known["outcome"] == "survival"
        if not known["rows"]:
            if of_times:
                return "No event came so early, and no row went so long without it, that its risk does not explain it."
            return "No row has an error that stands out from the model's other errors."
        by = known["named_by"]
        which = f"{by}{'' if known['count'] == 1 else 's'} {listing([row[by] for row in known['rows']], 10)}"
        why = (
            "an event too early, or too long a time without it, for the risk"
            if of_times
            else "further out than its other errors"
        )
        return f"The model cannot explain {many(known['count'], 'row')} ({which}): {why}."

    def doubt(self, result: dict[str, Any]) -> Finding | None:
        """That few large numbers decide."""
        if not result["analyses"][self.name].get("skewed"):
            return None
        known = result["table"]["numbers"]
        text = (
            f"the target is above 0 and skewed (mean {known['mean']:.4g}, median {known['median']:.4g}): the largest "
            "numbers decide the scores, and the rows that cannot be explained; its logarithm may be the better target"
        )
        return Finding("skewed", NOTE, text)


def judge_times(target: SurvivalTarget, risks: Array) -> tuple[Array, Array]:
    """(m,), (m,): deviance residuals of rows by their out-of-fold risks (repeats, m), above 0 where the event came
    early, and the chance of a time as far or further out, on both sides together.

    The baseline hazard and the slope of the risk are those of the held-out risks themselves. The chance of an event as
    early is 1 - exp(-H), that of a time as long without one exp(-H), with H the cumulative hazard up to the row's time.
    """
    calibrated, every = target.with_settings(replace(target.outcome, probability=True)), np.arange(len(target))
    hazard = np.zeros(len(target))
    for risk in risks:
        decision = calibrated.decide(risk[:, None], every, target.weight)
        hazard += decision.hazard_at(risk, target.time) / len(risks)
    left, hit = target.event - hazard, target.event.astype(np.float64)
    size = -2.0 * (left + hit * np.log(np.maximum(hazard, 1e-300)))
    residual = np.sign(left) * np.sqrt(np.maximum(size, 0.0))
    early = np.where(target.event, -np.expm1(-hazard), 1.0)
    return residual, np.minimum(2.0 * np.minimum(early, np.exp(-hazard)), 1.0)


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
