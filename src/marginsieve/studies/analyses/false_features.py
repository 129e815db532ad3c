"""How many features of the main method's list are false, and what a test of each column alone says."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from ...contracts import Array
from ...criteria import MixedTest
from ...engine.units import UnitTable
from ...errors import many
from ...fitting.false_share import (
    FEWEST_COLUMNS,
    FEWEST_PAIRS,
    FEWEST_SHUFFLES,
    PAIRS,
    SHUFFLES,
    FalseShare,
    false_share,
    places,
)
from ..analysis import AnalysisResult, Facts, Level, StudyRun, applies_always, register_analysis, say_nothing
from ..planning import search_seconds
from .evidence import rows_to_shuffle

MOST_SECONDS = 60.0  # CPU seconds that the searches on halves of the rows may take where no minutes are given
GPU_GAIN = 50.0  # by which these are faster on a GPU
SEARCH = "search on half of the rows"


@register_analysis
class FalseFeatures:
    """The share of false features in the list, by halves of the rows; q-values of the features."""

    name, order, template, unit = "false-share", 20.0, "", SEARCH

    applies = staticmethod(applies_always)

    def levels(self, facts: Facts) -> list[Level]:
        """(0, 0) is the test of each column alone; then pairs of halves, and shuffles."""
        alone = Level((0, 0), 0)
        if facts.shape.columns < FEWEST_COLUMNS:
            return [alone]
        most = MOST_SECONDS * (GPU_GAIN if facts.on_gpu else 1.0)
        few, usual = (FEWEST_PAIRS, FEWEST_SHUFFLES), (PAIRS, SHUFFLES)
        return [alone, Level(few, 30, most), Level(usual, 80, most)]

    def cost(self, facts: Facts) -> float:
        """Searches of the main method on halves of the rows."""
        pairs, shuffles = facts.effort
        unit = facts.seconds_of_unit(self.unit)
        if unit is None:
            unit = search_seconds(facts.main, facts.used / 2, facts.shape.columns)
        return 2 * pairs * (shuffles + 1) * unit if pairs else 0.0

    def measure(self, run: StudyRun) -> None:
        """A search on half of the rows."""
        search_half(run)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The estimated share of false features in the list, and how it was got."""
        pairs, shuffles = run.choice.efforts[self.name]
        n = len(run.main.selector.columns_.names)
        columns = {"halves": np.full(n, np.nan), "q_value": np.full(n, np.nan), "marginal_q": marginal_q(run.table)}
        few = run.choice.facts.shape.columns < FEWEST_COLUMNS
        values: dict[str, Any] = {"share": None, "why": "it has few columns" if few else "that would take long"}
        if pairs:
            known = main_false_share(run, pairs, shuffles)
            columns |= {"halves": known.score, "q_value": known.q}
            values = {
                "share": known.of_list(run.main.selector.support_),
                "asked": run.options.false_share,
                "below_a_tenth": int(np.count_nonzero(known.q <= 0.1)),
                "pairs": known.pairs,
                "shuffles": known.shuffles,
                "sizes": list(known.sizes),
            }
        names = run.main.selector.columns_.names
        entries = {names[j]: {key: column[j] for key, column in columns.items()} for j in run.selected_features}
        return AnalysisResult(values, columns, entries)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many features of the list are false."""
        known, count = result["analyses"][self.name], result["n_features"]
        if not result["answer"]["evidence"]:
            return None
        if known["share"] is None:
            return f"How many features of the list are false was not estimated on this table, since {known['why']}."
        share, below = known["share"], known["below_a_tenth"]
        how = f"{2 * known['pairs']} halves of the rows against {known['shuffles']} shuffles of the labels"
        text = f"Of the {count:,} features in the list up to {share:.0%} may have nothing to do with the target ({how})"
        if count == 1:
            text = (
                f"That the one feature has nothing to do with the target has an estimated chance of {share:.0%} ({how})"
            )
        longest = f"the longest list with at most 10 % of such has {many(below, 'feature')}"
        return f"{text}; {longest if below else 'no list keeps that below 10 %'}."

    doubt = staticmethod(say_nothing)


def search_half(run: StudyRun) -> None:
    """One search of the main method on half of the rows; of all features where it is the only one."""
    rng = np.random.default_rng(0)
    part = rows_to_shuffle(run.table, run.choice.options, rng)
    half = part.take(np.flatnonzero(part.target.draw(0.5, rng, at_least=1, leave=1)))
    places(run.main_method.plan, half, rng)


def main_false_share(run: StudyRun, pairs: int, shuffles: int) -> FalseShare:
    """Scores and q-values of all features, by the main method on halves of the rows."""
    seed = np.random.SeedSequence([run.options.random_state, 2])
    part = rows_to_shuffle(run.table, run.choice.options, np.random.default_rng(seed.spawn(1)[0]))
    return false_share(run.main_method.plan, part, pairs, shuffles, seed, run.options.n_jobs)


def marginal_q(table: UnitTable) -> Array:
    """(n,) p-values of each column by itself (Welch's t-test, Fisher's exact test), adjusted over all columns.

    After Benjamini and Hochberg; nan where there are more than two classes, or a column does not vary.
    """
    part = table.rows.active
    out = np.full(part.table.shape[1], np.nan)
    if not part.target.has_auc:
        return out
    with np.errstate(all="ignore"):
        p = 10.0 ** -np.asarray(MixedTest()(part.table, part.target.machine_target.y, np.ones(len(part))))
    known = np.isfinite(p)
    out[known] = stats.false_discovery_control(np.clip(p[known], 0.0, 1.0))
    return out
