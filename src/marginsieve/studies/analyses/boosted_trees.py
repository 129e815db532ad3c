"""Boosted trees on the same splits, where they are asked for: one more row beside the models for reference."""

from __future__ import annotations

import math
from typing import Any

from ..analysis import Facts, Level, StudyRun, register_analysis
from .references import References, boosted_trees, compare_references, compare_with_list


@register_analysis
class BoostedTrees:
    """Boosted trees of scikit-learn."""

    name, order, template = "boosted-trees", 71.0, ""

    def applies(self, facts: Facts) -> str | None:
        """Where they are asked for."""
        if self.name not in facts.options.with_:
            return "it was not asked for"
        return "there are none for survival" if facts.shape.outcome == "survival" else References().applies(facts)

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """After the models for reference."""
        return [Level((), 50)]

    def cost(self, facts: Facts) -> float:
        """By the size of the table, on all folds, each fitted four times."""
        m, n = facts.shape.rows, facts.shape.columns
        return facts.cv * (facts.options.n_repeats or 1) * (1.0 + 4e-6 * m * n * math.log2(m + 1))

    def run(self, run: StudyRun) -> dict[str, Any]:
        """A row for the table of methods."""
        return compare_references(run, [boosted_trees(run.table.target)])

    def sentence(self, result: dict[str, Any]) -> str | None:
        """Whether they score higher than the list."""
        return compare_with_list(result, self.name)
