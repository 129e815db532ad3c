"""Covariates: what the list adds to columns that are known anyway, such as age and sex, and they to the list.

In every outer fold of the first repeat a machine is trained on the columns alone, on the list that was selected there
without them, and on both; the differences are of the same test rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...contracts import IntArray
from ...engine.nested import Nested
from ...engine.scoring import score_predictions
from ...errors import join_words, many
from ...fitting.rows import Rows
from ...report.numbers import format_score
from ..analysis import Facts, Level, StudyRun, register_analysis
from ..selection import plain_scores
from .substitutes import FIT, PAIR, list_change, passes_of, predict_by_lists

LISTS = ("baseline", "both", "list")
CONFIDENCE, NAMED = 0.95, 5


@register_analysis
class Covariates:
    """What the list adds to columns that are known anyway, and what they add to the list."""

    name, order, template = "covariates", 29.0, "covariates"

    def applies(self, facts: Facts) -> str | None:
        """Where such columns are named; for any outcome."""
        return None if facts.options.baseline else "no columns were named that are known anyway (--baseline)"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """It is asked for."""
        return [Level((), 0)]

    def cost(self, facts: Facts) -> float:
        """Three machines in each fold."""
        return 3 * facts.cv * (FIT + PAIR * facts.used**2)

    def run(self, run: StudyRun) -> dict[str, Any]:
        """Scores of the three lists, and both differences."""
        nested, names = run.main.nested, run.table.rows.schema.names
        known = np.array(sorted(names.index(name) for name in run.options.baseline), dtype=np.intp)
        choose = partial(_lists, known=known)
        entries, _ = predict_by_lists(run.table.rows, nested, run.selected_features, choose, run.options.n_jobs)
        by_list = dict(zip(LISTS, zip(*entries, strict=True), strict=True))
        complete = all(entry is not None for entry in by_list["list"])  # else a fold selected nothing besides
        lists = [name for name in LISTS if complete or name != "list"]
        listed = {names[j] for j in run.selected_features}
        return {
            "columns": list(run.options.baseline),
            "listed": [name for name in run.options.baseline if name in listed],
            "scores": {name: _scores(nested, by_list[name]) for name in lists},
            "adds": _keep_listed(nested, plain_scores(_change(nested, by_list["both"], by_list["baseline"]))),
            "reverse": _keep_listed(nested, plain_scores(_change(nested, by_list["both"], by_list["list"])))
            if complete
            else None,
        }

    def sentence(self, result: dict[str, Any]) -> str | None:
        """Both differences, by the score of the ranking."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        metric, columns = next(reversed(known["adds"])), _name(known["columns"])
        short = result["short_names"][metric]
        alone, both = (format_score(known["scores"][name][metric])[0] for name in ("baseline", "both"))
        value, span = format_score(known["adds"][metric], signed=True)
        text = f"To {columns} the list adds {value} of {short} ({span}; {alone} by these alone, {both} by both)"
        if known["reverse"] is None:
            return f"{text}; in some folds nothing besides them was selected."
        value, span = format_score(known["reverse"][metric], signed=True)
        return f"{text}; to the rest of the list they add {value} ({span})."


def _lists(part: Rows, chosen: IntArray, number: int, known: IntArray) -> list[IntArray | None]:  # noqa: ARG001
    """The columns that are known anyway, these with the list, and the list without them."""
    rest = np.setdiff1d(chosen, known)
    return [known, np.union1d(rest, known), rest if len(rest) else None]


def _change(nested: Nested, ours: Sequence[Any], theirs: Sequence[Any]) -> Any:
    return list_change(nested, ours, theirs, level=CONFIDENCE)


def _scores(nested: Nested, entries: Sequence[Any]) -> dict[str, Any]:
    return _keep_listed(nested, plain_scores(score_predictions(nested.target, passes_of(nested, entries))))


def _keep_listed(nested: Nested, scores: dict[str, Any]) -> dict[str, Any]:
    """The scores that tables of methods have, that of the ranking last."""
    return {name: score for name, score in scores.items() if nested.target.metrics[name].listed}


def _name(columns: Sequence[str]) -> str:
    """The columns in a sentence."""
    return join_words(list(columns)) if len(columns) <= NAMED else many(len(columns), "column")
