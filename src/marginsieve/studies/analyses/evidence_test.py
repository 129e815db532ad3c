"""Is there any signal at all? Five statistics in closed form against the same on permuted outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import listing
from ...fitting.evidence import (
    CLEAR,
    MORE_PERMUTATIONS,
    MOST_ROWS,
    NON_LINEAR,
    SEVERAL,
    SINGLE,
    STATISTICS,
    TOGETHER,
    WEAK,
    find_evidence,
)
from ...report.numbers import format_p
from ..analysis import AnalysisResult, Facts, StudyRun, applies_always, part_of_every_study, register_analysis
from ..analysis import say_nothing as no_doubt

CELL = 1.3e-10  # seconds of a permutation for a cell of the table, and for a pair of rows
NAMED = 10  # columns that pass, in result.json
CARRIED = {
    TOGETHER: "many columns together",
    NON_LINEAR: "a non-linear machine on all columns",
    SEVERAL: "several columns, each by itself",
}


@register_analysis
class EvidenceTest:
    """Whether the columns say anything of the outcome."""

    name, order, template = "evidence", 5.0, ""

    applies = staticmethod(applies_always)
    levels = staticmethod(part_of_every_study)

    def cost(self, facts: Facts) -> float:
        """Products with as many permutations as there may be."""
        m, n = min(facts.shape.rows, MOST_ROWS), facts.shape.columns
        return 0.2 + CELL * MORE_PERMUTATIONS * m * (n + m)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The p, what carried it, and the columns that pass by the same permutations."""
        evidence = find_evidence(run.table.rows.active, np.random.default_rng([run.options.random_state, 3]))
        names = run.table.rows.schema.names
        order = np.lexsort((-evidence.column_value, evidence.column_p))  # many columns may have the smallest p there is
        passing = [j for j in order if evidence.column_p[j] <= WEAK]
        values = {
            "p": evidence.p,
            "strength": evidence.strength,
            "carried_by": evidence.carried_by,
            "columns": [names[j] for j in passing[:NAMED]],
            "n_columns": len(passing),
            "statistics": [
                {"looks_for": word, "value": value, "p": p}
                for word, value, p in zip(STATISTICS, evidence.values.tolist(), evidence.each.tolist(), strict=True)
            ],
            "permutations": evidence.permutations,
            "smallest_p": evidence.smallest_p,
            "rows": evidence.rows,
        }
        return AnalysisResult(values, {"evidence_p": evidence.column_p}, details=evidence)

    def evident(self, values: Mapping[str, Any] | None) -> bool:
        """Whether the evidence is weak or clear."""
        return values is None or values["strength"] != "none"

    def describe_test(self, values: Mapping[str, Any]) -> str:
        """Its p."""
        return format_p(values["p"], values["permutations"])

    def sentence(self, result: dict[str, Any]) -> str:
        """How strong it is, what carried it, and the columns that pass."""
        known = result["analyses"][self.name]
        test = f"{self.describe_test(known)} by {known['permutations']:,} permutations of the outcome"
        if known["rows"] < result["table"]["rows"]:
            test += f" in {known['rows']:,} of the rows"
        if known["smallest_p"] > CLEAR:
            test += f"; so few permutations differ that no p is below {known['smallest_p']:.2g}"
        if known["strength"] == "none":
            text = f"Nothing in the table is shown to go with {result['table']['target']} ({test})."
            if known["n_columns"]:
                text += f" {_passing(known)}, a lead to follow, not a finding."
            return text
        carried = known["carried_by"]
        what = f"one column alone: {known['columns'][0]}" if carried == SINGLE and known["columns"] else None
        what, target = what or CARRIED.get(carried, "one column alone"), result["table"]["target"]
        text = f"The evidence that the table says something of {target} is {known['strength']} ({test}); it is carried "
        text += f"by {what}."
        if known["n_columns"] > (carried == SINGLE):
            text += f" {_passing(known)}."
        return text

    doubt = staticmethod(no_doubt)


def _passing(known: Mapping[str, Any]) -> str:
    """The columns that pass by themselves."""
    count = known["n_columns"]
    noun, verb = ("column", "is") if count == 1 else ("columns", "are")
    text = f"{count:,} {noun} alone {verb} beyond what chance brings among all columns at 5 %"
    return f"{text} ({listing(known['columns'], NAMED, count)})"
