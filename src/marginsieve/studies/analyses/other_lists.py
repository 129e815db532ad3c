"""The best lists that differ from the main method's: without one of its features, or without all of them.

A list is what the main method ranks first when it may not use some columns: one feature of its own list and those that
are nearly the same, or the whole list. What is left out is chosen anew from the training rows of each outer fold, by
the place of the feature in the ranking there, so that the score is that of the way the list is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...contracts import IntArray
from ...data.association import most_alike
from ...engine.nested import Nested
from ...engine.units import PreparedMethod, UnitTable
from ...estimators.fitted_selector import FittedSelector
from ...fitting.false_share import places
from ...fitting.rows import Rows
from ...fitting.training import varying_columns
from ..analysis import AnalysisResult, Facts, Level, StudyRun, applies_to_lists, register_analysis
from ..planning import search_seconds
from .shuffled_study import rows_to_shuffle
from .substitutes import MARGIN, list_change, predict_by_lists

if TYPE_CHECKING:
    import pandas as pd

SAME, MOST_SAME = 0.9, 50  # how alike a column is that is left out with a feature, and how many of them at most
SEARCH = "search on half of the rows"
LISTS, MOST_SECONDS = 5, 30.0  # how many are made where their searches take no longer than that
NAMED = 100  # features of a list in result.json
COLUMNS = ("without", "features", "shared", "change", "low", "high", "as_good")


@register_analysis
class OtherLists:
    """The best lists that differ from the main one."""

    name, order, template, unit = "other-lists", 61.0, "instead", SEARCH

    def applies(self, facts: Facts) -> str | None:
        """Unless no list is asked for."""
        if (why := applies_to_lists(facts)) is not None:
            return why
        return "no list was asked for" if facts.options.alternatives == 0 else None

    def levels(self, facts: Facts) -> list[Level]:
        """As many as were given; otherwise some, where that does not take long."""
        if facts.options.alternatives is not None:
            return [Level((facts.options.alternatives,), 0)]
        expected = (LISTS + 1) * (facts.cv + 1) * search_seconds(facts.main, facts.used, facts.shape.columns)
        required = self.name in facts.options.with_ or facts.options.plan is not None
        return [Level((LISTS,), 70)] if required or expected <= MOST_SECONDS else []

    def cost(self, facts: Facts) -> float:
        """Searches of the main method in the folds of one repeat."""
        searches = (facts.effort[0] + 1) * (facts.cv + 1)
        if (unit := facts.seconds_of_unit(self.unit)) is not None:
            return 2.5 * unit * searches  # on all rows of a training part, where the unit has half of them
        return searches * search_seconds(facts.main, facts.used, facts.shape.columns)

    def measure(self, run: StudyRun) -> None:
        """A search on half of the rows."""
        search_half(run)

    def run(self, run: StudyRun) -> AnalysisResult:
        """Lists that differ; None where none could be made."""
        count, options = run.choice.efforts[self.name][0], run.options
        frame = find_other_lists(
            run.table, run.main_method, run.main.nested, run.selected_features, count, options.keep, options.n_jobs
        )
        rows: list[dict[Any, Any]] = frame.to_dict("records")
        for row in rows:
            row |= {"n_features": len(row["features"]), "features": list(row["features"][:NAMED])}
        return AnalysisResult(
            {"margin": MARGIN, "score": run.table.target.list_score, "rows": rows} if rows else None, details=frame
        )


def search_half(run: StudyRun) -> None:
    """One search of the main method on half of the rows; of all features where it is the only one."""
    rng = np.random.default_rng(0)
    part = rows_to_shuffle(run.table, run.choice.options, rng)
    half = part.take(np.flatnonzero(part.target.draw(0.5, rng, at_least=1, leave=1)))
    places(run.main_method.plan, half, rng)


def find_other_lists(
    table: UnitTable,
    prepared: PreparedMethod,
    nested: Nested,
    main: IntArray,
    count: int,
    keep: Sequence[str],
    n_jobs: int | None,
) -> pd.DataFrame:
    """`count` lists with the change of the score on the first repeat's folds, the best first.

    They have as many features as the main list, `main` on all rows.
    """
    names, rows = table.rows.schema.names, []
    kept = np.array([names.index(name) for name in keep], dtype=np.intp)
    choose = partial(_lists, selector=prepared.selector, count=count, kept=kept)
    values, (first, *others) = predict_by_lists(table.rows, nested, main, choose, n_jobs)
    free = first[~np.isin(first, kept)]
    for k, other in enumerate(others):
        ours = [each[k + 1] for each in values]
        if other is None or any(value is None for value in ours):
            continue
        gap = list_change(nested, ours, [each[0] for each in values])
        change, low, high = (ends[table.target.list_score] for ends in (gap.value, gap.low, gap.high))
        without = "the whole list" if k == count - 1 else names[free[k]]
        shared = int(np.isin(other, first).sum())
        rows.append((without, tuple(names[j] for j in other), shared, change, low, high, bool(low > -MARGIN)))
    return lists_frame(rows).sort_values("change", ascending=False, kind="stable", ignore_index=True)


def lists_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """The rows as a table, which may be empty."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COLUMNS))


def _lists(
    encoded: Rows, main: IntArray, _: int, selector: FittedSelector, count: int, kept: IntArray
) -> list[IntArray | None]:
    """The main method's list on some rows, and those without the k-th of its features, then without all of it.

    None: nothing is left to choose from. What the user wants in every list is never left out.
    """
    size = max(1, len(main))
    usable = varying_columns(encoded.table)
    kept = kept[usable[kept]]
    first = rank_columns(encoded, selector, np.arange(len(usable)), size, kept)
    free = first[~np.isin(first, kept)]
    others: list[IntArray | None] = []
    for k in range(count):
        if k < count - 1 and k >= len(free):
            others.append(None)
            continue
        left_out = free
        if k < count - 1:
            [(near, alike)] = most_alike(encoded.table, free[[k]], usable, MOST_SAME)
            left_out = np.append(near[np.abs(alike) >= SAME], free[k])
        rest = np.setdiff1d(np.arange(len(usable)), np.setdiff1d(left_out, kept))
        enough = usable[rest].sum() >= max(2, size)
        others.append(rank_columns(encoded, selector, rest, size, kept) if enough else None)
    return [first, *others]


def rank_columns(encoded: Rows, selector: FittedSelector, columns: IntArray, size: int, kept: IntArray) -> IntArray:
    """The first columns in the method's ranking of some columns, those to keep before all others."""
    some = encoded.columns(columns)
    place = places(selector.plan(some), some.active, np.random.default_rng(0))
    order = columns[np.argsort(place, kind="stable")[: np.isfinite(place).sum()]]
    order = np.concatenate([kept, order[~np.isin(order, kept)]])
    return np.asarray(order[:size], dtype=np.intp)
