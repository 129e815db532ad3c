"""What the list's score will be on another cohort: measured in the same way, and measured elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...validation.forecasting import ELSEWHERE, FAMILIES, LEVEL, forecast_by_promise, record_promise
from ..analysis import Facts, StudyRun, part_of_every_study, register_analysis


@register_analysis
class ForecastsOfCohorts:
    """Between which values the score will be on a cohort of the sizes that were sizes for, or of this table's."""

    name, order, template = "forecast", 15.0, ""

    levels = staticmethod(part_of_every_study)

    def applies(self, facts: Facts) -> str | None:
        """Scores whose variance on another cohort is known: AUC and Harrell's C."""
        known = facts.shape.has_auc or facts.shape.outcome == "survival"
        return None if known else "no score of this outcome has a forecast"

    def run(self, run: StudyRun) -> dict[str, Any]:
        """Forecasts by cohort, none with fewer than 10 rows of a stratum in the table."""
        target = run.table.target
        sizes = [target.read_counts(parts) for parts in run.options.cohort_sizes()]
        promise = record_promise(run.main.scores)
        cohorts = []
        for counts in sizes or [target.cohort_counts]:
            if (known := forecast_by_promise(target, promise, counts)) is not None:
                cohorts.append({"words": target.describe_counts(counts), **asdict(known)})
        return {
            "score": target.forecast_by,
            "level": LEVEL,
            "tau2": ELSEWHERE,
            "families": FAMILIES,
            "cohorts": cohorts,
        }

    def sentence(self, result: Mapping[str, Any]) -> str | None:
        """Two sentences: measured in the same way, and elsewhere."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"] or not known["cohorts"]:
            return None
        score = result["short_names"][known["score"]]
        same, elsewhere = (
            "; ".join(f"{each[key][0]:.2f} to {each[key][1]:.2f} on {each['words']}" for each in known["cohorts"])
            for key in ("same", "elsewhere")
        )
        return (
            f"Forecast for a new cohort measured in the same way: {score} {same} ({known['level']:.0%}). "
            f"Measured elsewhere: {score} {elsewhere}, as {'' if known['score'] == 'auc' else 'the AUC of '}"
            f"{known['families']} families of real cohorts differed."
        )
