"""How likely each label is wrong, as `find_suspects` says, beside the nested predictions."""

from __future__ import annotations

from typing import Any

from ...errors import InputError, SolverError, listing
from ...estimators.suspects import CLEAN_RATE, PREDICTS, WRONG_SHARE, judge_labels
from ..analysis import AnalysisResult, Facts, Level, StudyRun, applies_to_classes, register_analysis, say_nothing
from ..findings import Finding
from ..planning import fit_seconds
from ..study_data import suspect_table

COST = (0.6, 3.0, 0.05)  # seconds: at least, for a million cells, for a million pairs of rows


@register_analysis
class Suspects:
    """Labels that are more likely wrong than right."""

    name, order, template = "suspects", 80.0, "suspects"

    applies = staticmethod(applies_to_classes)

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """The first thing after the least study."""
        return [Level((), 10)]

    def cost(self, facts: Facts) -> float:
        """By the size of the table."""
        return fit_seconds(COST, facts.shape.rows, facts.shape.columns)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The suspects, the worst first; how many labels were judged, and the share that is wrong in each class."""
        values: dict[str, Any] = {"judged": 0, "count": 0, "clean_rate": CLEAN_RATE, "named_by": "row"}
        try:
            options = run.options
            judged = judge_labels(run.table.rows, n_jobs=options.n_jobs, random_state=options.random_state)
        except (InputError, SolverError) as error:
            values |= {"wrong_share": {}, "rows": [], "trusted": False}
            return AnalysisResult(values, findings=[Finding("suspects", "note", f"labels were not judged: {error}")])
        frame, nested = suspect_table(judged, run.data), run.main.nested
        frame["missed"] = (nested.predicted != nested.target.strata).mean(axis=0)[frame["row"]]
        rows = frame[frame["suspect"]].drop(columns="suspect").to_dict("records")
        values |= {"judged": len(frame), "count": len(rows), "named_by": "id" if "id" in frame else "row"}
        values |= {"wrong_share": judged.attrs[WRONG_SHARE], "rows": rows}
        values["trusted"] = run.evident and judged.attrs[PREDICTS]
        return AnalysisResult(values, tables={"suspects.csv": frame}, details=frame)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many there are and which, and what share of the labels is wrong."""
        judged = result["analyses"][self.name]
        if judged["judged"] == 0:
            return None
        if not result["answer"]["evidence"]:
            return "Labels cannot be judged where nothing predicts them."
        if not judged["trusted"]:
            return "Labels cannot be judged: the machines that judge them predict no better than chance."
        shares = ", ".join(f"{share:.0%} of {label}" for label, share in judged["wrong_share"].items())
        estimate = f"Estimated share of wrong labels: {shares}."
        if not judged["rows"]:
            return f"No label is more likely wrong than right. {estimate}"
        named = listing([row[judged["named_by"]] for row in judged["rows"]], 5)
        single = judged["count"] == 1
        labels, them = ("1 label is", "it") if single else (f"{judged['count']:,} labels are", "them")
        noun = judged["named_by"] + ("" if single else "s")
        return f"{labels} more likely wrong than right ({noun} {named}): check {them} by hand. {estimate}"

    doubt = staticmethod(say_nothing)

    def card(self, result: dict[str, Any]) -> tuple[str, str] | None:
        """How many labels look wrong."""
        judged = result["analyses"][self.name]
        if not judged["judged"]:
            return None
        text = f"{'label' if judged['count'] == 1 else 'labels'} more likely wrong than right"
        return (str(judged["count"]), text) if judged["trusted"] else ("-", f"{text} (cannot be judged)")
