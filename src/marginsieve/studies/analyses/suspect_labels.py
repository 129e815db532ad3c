"""Rows that the model cannot explain and, where labels can be wrong, how likely each label is.

A label can be wrong (a diagnosis) or certain (what happened, happened), and no table says which. So nothing is called
wrong unless the user says that labels are fallible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ...contracts import Array
from ...engine.nested import Nested
from ...errors import InputError, SolverError, listing, many
from ...estimators.suspects import CLEAN_RATE, PREDICTS, WRONG_SHARE, judge_labels
from ...report.numbers import format_share
from ..analysis import AnalysisResult, Facts, Level, StudyRun, applies_to_classes, register_analysis
from ..checks import Finding
from ..planning import fit_seconds
from ..study_data import suspect_table

COST = (0.6, 3.0, 0.05)  # seconds: at least, for a million cells, for a million pairs of rows
PROBABLY = 0.9  # from which on a label is probably wrong, by its suspicion and by the nested predictions
METHODS_TEXT = (
    "How likely each label is wrong was estimated from ridge regressions (linear or with a Gaussian kernel) that had "
    "not seen the sample, with unknown rates of wrong labels in each class."
)
WRONG, UNLIKE, UNEXPLAINED = "probably wrong", "unlike its class", "not explained"


@register_analysis
class Suspects:
    """Rows that the model cannot explain; labels that look wrong, where they can be."""

    name, order, template = "suspects", 80.0, "suspects"

    applies = staticmethod(applies_to_classes)

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """The first thing after the least study."""
        return [Level((), 10)]

    def cost(self, facts: Facts) -> float:
        """By the size of the table."""
        return fit_seconds(COST, facts.shape.rows, facts.shape.columns)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The rows, the worst first; how many labels were judged and, of fallible ones, the share that is wrong."""
        fallible = run.options.labels == "fallible"
        values: dict[str, Any] = {"labels": run.options.labels, "judged": 0, "count": 0, "rows": [], "trusted": False}
        try:
            options = run.options
            judged = judge_labels(run.table.rows, n_jobs=options.n_jobs, random_state=options.random_state)
        except (InputError, SolverError) as error:
            return AnalysisResult(values, findings=[Finding("suspects", "note", f"labels were not judged: {error}")])
        nested = run.main.nested
        judged["missed"] = (nested.predicted != nested.target.strata).mean(axis=0)
        judged["verdict"] = _verdicts(judged, _probability_of_other(nested), fallible)
        frame = suspect_table(judged, run.data)
        if not fallible:
            frame = frame.drop(columns=["suspicion", "suspect"])
            frame = frame.sort_values(["missed", "margin", "row"], ascending=[False, True, True], ignore_index=True)
        rows = frame[frame["verdict"] != ""].drop(columns="suspect", errors="ignore").to_dict("records")
        values |= {"judged": len(frame), "count": len(rows), "rows": rows}
        values["missed"] = int(np.count_nonzero(judged["missed"] > 0.5))
        values |= {"named_by": "id" if "id" in frame else "row"}
        values["trusted"] = run.evident and judged.attrs[PREDICTS]
        if fallible:
            values |= {"wrong_share": judged.attrs[WRONG_SHARE], "clean_rate": CLEAN_RATE, "methods_text": METHODS_TEXT}
        file = "suspects.csv" if fallible else "unexplained.csv"
        return AnalysisResult(values, tables={file: frame}, details=frame)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many rows there are and which; of fallible labels what share is wrong."""
        known = result["analyses"][self.name]
        if known["judged"] == 0 or not result["answer"]["evidence"] or not known["trusted"]:
            return None
        by, rows = known["named_by"], known["rows"]
        if known["labels"] != "fallible":
            if not rows:
                missed = f"{many(known['missed'], 'row')} {'is' if known['missed'] == 1 else 'are'}"
                return f"{missed} on the wrong side in most predictions; none stands out from the model's other errors."
            which = f"{many(len(rows), 'row')} ({_list_rows(rows, by)})"
            they, labels = ("they look", "their labels are") if len(rows) > 1 else ("it looks", "its label is")
            text = f"The model cannot explain {which}: {they} like another class to models that did not see "
            return f"{text}{'them' if len(rows) > 1 else 'it'}, which does not say that {labels} wrong."
        shares = ", ".join(f"{format_share(share)} of {label}" for label, share in known["wrong_share"].items())
        estimate = f"Estimated share of wrong labels: {shares}."
        if not rows:
            return f"No label is called wrong. {estimate}"
        parts = []
        for verdict, texts in (
            (WRONG, ("is probably wrong", "are probably wrong")),
            (UNLIKE, ("is unlike its class", "are unlike their class")),
        ):
            if some := [row for row in rows if row["verdict"] == verdict]:
                parts.append(f"{many(len(some), 'label')} {texts[len(some) > 1]} ({_list_rows(some, by)})")
        return f"{' and '.join(parts)}: check them by hand. {estimate}"

    def card(self, result: dict[str, Any]) -> tuple[str, str] | None:
        """How many rows are not explained, or labels look wrong."""
        known = result["analyses"][self.name]
        if not known["judged"] or not known["trusted"]:
            return None
        if known["labels"] != "fallible" and not known["count"]:
            return None
        if known["labels"] != "fallible":
            return str(known["count"]), f"{'row' if known['count'] == 1 else 'rows'} that the model cannot explain"
        wrong = sum(row["verdict"] == WRONG for row in known["rows"])
        return str(wrong), f"{'label' if wrong == 1 else 'labels'} probably wrong"


def _list_rows(rows: list[dict[str, Any]], by: str) -> str:
    """ "rows 3, 9 and 2 more"."""
    return f"{by}{'' if len(rows) == 1 else 's'} {listing([row[by] for row in rows], 10)}"


def _probability_of_other(nested: Nested) -> Array:
    """(m,) the mean nested probability that a row is of the other class; the share of misses where there are none."""
    if nested.probability is None or not nested.target.has_auc:
        return np.asarray((nested.predicted != nested.target.strata).mean(axis=0))
    labels, probability = nested.target.machine_target.y[0], nested.probability.mean(axis=0)
    return np.asarray(np.where(labels > 0, 1.0 - probability, probability))


def _verdicts(judged: pd.DataFrame, other: Array, fallible: bool) -> Any:
    """(m,) what is said of each row; nothing of most.

    On public tables with planted flips a suspicion of 0.9 alone is true of about half of the labels where correct rows
    look wrong already; with the nested predictions as sure of the other class it holds (docs/suspects.md).
    """
    marked = judged["suspect"].to_numpy()
    if not fallible:
        return np.where(marked & (judged["missed"].to_numpy() > 0.5) & (other >= 0.5), UNEXPLAINED, "")
    wrong = marked & (np.minimum(judged["suspicion"].to_numpy(), other) >= PROBABLY)
    return np.where(wrong, WRONG, np.where(marked, UNLIKE, ""))
