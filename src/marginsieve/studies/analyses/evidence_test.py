"""Is there any signal at all? Five statistics in closed form against the same on permuted outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import join_words
from ...fitting.evidence import (
    CLEAR,
    MORE_PERMUTATIONS,
    MOST_ROWS,
    NON_LINEAR,
    PERMUTATIONS,
    SEVERAL,
    SINGLE,
    STATISTICS,
    TOGETHER,
    WEAK,
    find_evidence,
)
from ...report.numbers import format_p
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis

CELL = 1.3e-10  # seconds of a permutation for a cell of the table, and for a pair of rows
FACTOR, PRODUCT = 4e-10, 1e-10  # of factoring a matrix of rows by rows and of making it, for each of its operations
NAMED = 10  # columns that pass, in result.json
CARRIED = {
    SINGLE: "the column that is furthest by itself",
    TOGETHER: "many columns together",
    NON_LINEAR: "a non-linear machine on all columns",
    SEVERAL: "the columns that are furthest, each by itself",
}


@register_analysis
class EvidenceTest:
    """Whether the columns say anything of the outcome."""

    name, order, template = "evidence", 5.0, ""

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """The most permutations that are drawn; without more, p is at least 0.001."""
        return [Level((PERMUTATIONS,), 0), Level((MORE_PERMUTATIONS,), 4)]

    def cost(self, facts: Facts) -> float:
        """Factoring, and products with as many permutations as there may be."""
        m, n = min(facts.shape.rows, MOST_ROWS), facts.shape.columns
        return 0.2 + m * m * (FACTOR * m + PRODUCT * n) + CELL * facts.effort[0] * m * (n + m)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The p, what carried it, and the columns that pass by the same permutations."""
        (most,) = run.choice.efforts[self.name]
        evidence = find_evidence(run.table.rows.active, np.random.default_rng([run.options.random_state, 3]), most)
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
        values["methods_text"] = (
            "Whether the table says anything of the outcome was tested by five statistics of all columns against "
            f"{evidence.permutations:,} permutations of the outcome, the smallest of their p values against the "
            f"smallest of each permutation after Westfall and Young ({self.describe_test(values)})."
        )
        return AnalysisResult(values, {"evidence_p": evidence.column_p}, details=evidence)

    def evident(self, values: Mapping[str, Any] | None) -> bool:
        """Whether the evidence is weak or clear."""
        return values is None or values["strength"] != "none"

    def is_weak(self, values: Mapping[str, Any]) -> bool:
        """Whether p is between the two limits."""
        return bool(values["strength"] == "weak")

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
            text = f"The test: five statistics of the whole table, {test}."
            if known["n_columns"]:
                text += f" {_passing(known)}, a lead to follow, not a finding."
            return text
        target = result["table"]["target"]
        text = f"The evidence that the table says something of {target} is {known['strength']} ({test})"
        least = min(each["p"] for each in known["statistics"])
        tied = list(dict.fromkeys(each["looks_for"] for each in known["statistics"] if each["p"] <= least + 1e-12))
        alone = tied == [SINGLE] and known["n_columns"] == 1
        if len(tied) == len(set(STATISTICS)) and least <= known["smallest_p"] + 1e-12:
            text += f"; each of its statistics is as far out as {known['permutations']:,} permutations can show."
        else:
            words = [CARRIED[word] for word in tied]
            if alone:
                words = [f"one column alone, {known['columns'][0]}"]
            text += f"; the smallest p is that of {join_words(words, 'and that of')}."
        return text if alone or not known["n_columns"] else f"{text} {_passing(known)}."


def _passing(known: Mapping[str, Any]) -> str:
    """The columns that pass by themselves."""
    count = known["n_columns"]
    noun, verb = ("column", "is") if count == 1 else ("columns, each judged by itself,", "are")
    text = f"{count:,} {noun} {verb} beyond what chance brings among all columns at 5 %"
    return f"{text} ({', '.join(known['columns'])}{f' and {count - NAMED:,} more' if count > NAMED else ''})"
