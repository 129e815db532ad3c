"""The cheapest list that predicts as well as the main method's, within its error, where features have costs.

The candidates are the first k features by the main method's ranking, in which a feature's cost counts more or less::

    log(place + 5) + t log(cost),      t = 0, 1/2, 1, 2

Inner folds, in which the ranking is made anew, score every t and k. The score at t = 0 and the main list's length, less
its standard error, is what a list has to reach, and the cheapest that does is taken, unless the main method's list is
as cheap. All of this is run again in the training rows of each outer fold of the first repeat, which gives the change
of the score against the main method's list there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...contracts import Array, IntArray
from ...engine.nested import Nested
from ...engine.scoring import Scores
from ...engine.units import PreparedMethod, UnitTable
from ...fitting.false_share import places
from ...fitting.held_out import inner_folds
from ...fitting.rows import Rows
from ...fitting.settings import AnyPlan
from ...report.numbers import format_score
from ..analysis import AnalysisResult, Facts, StudyRun, applies_to_lists, part_of_every_study, register_analysis
from ..study_data import column_costs
from .substitutes import list_change, predict_by_lists, predict_on

EXPONENTS = (0.0, 0.5, 1.0, 2.0)
SIZES = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
FOLDS = 5
SMOOTHING = 5.0  # of places
FREE = 0.1  # what a feature without a cost counts as, of the lowest cost


@dataclass(frozen=True)
class CheapList:
    """The features of the cheapest list, what they cost, what the main list costs, and the change of the score."""

    features: tuple[str, ...]
    cost: float
    main_cost: float
    change: Scores


@register_analysis
class Costs:
    """The cheapest list that predicts as well."""

    name, order, template = "costs", 62.0, "instead"

    def applies(self, facts: Facts) -> str | None:
        """Where costs are given."""
        if facts.options.feature_costs is None:
            return "no costs were given"
        return applies_to_lists(facts)

    levels = staticmethod(part_of_every_study)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The cheapest list, and what it and the main one cost."""
        options, names = run.options, run.table.rows.schema.names
        cost = column_costs(options.feature_costs or {}, names)
        cheap = cheapest_list(
            run.table, run.main_method, run.main.nested, run.selected_features, cost, options.keep, options.n_jobs
        )
        change, metric = cheap.change, run.table.target.list_score
        values = {
            "main": cheap.main_cost,
            "cheapest": cheap.cost,
            "features": list(cheap.features),
            "score": metric,
            "change": {"value": change.value[metric], "low": change.low[metric], "high": change.high[metric]},
        }
        return AnalysisResult(values, {"cost": cost}, details=cheap)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What it costs and whether it is as good."""
        costs = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        if costs["cheapest"] >= costs["main"]:
            return f"No list that costs less than this one ({costs['main']:g}) reached its score."
        value, span = format_score(costs["change"], signed=True)
        text = f"A list that costs {costs['cheapest']:g} instead of {costs['main']:g} did as well in inner folds"
        span = span if span.startswith("no") else f"90 % interval {span}"
        return f"{text}; over the outer folds the {result['short_names'][costs['score']]} changed by {value} ({span})."


def cheapest_list(
    table: UnitTable,
    prepared: PreparedMethod,
    nested: Nested,
    main: IntArray,
    cost: Array,
    keep: Sequence[str],
    n_jobs: int | None,
) -> CheapList:
    """The cheapest list and its score beside the main list."""
    names = table.rows.schema.names
    kept = np.array([names.index(name) for name in keep], dtype=np.intp)
    choose = partial(_choose, plan=prepared.plan, cost=cost, kept=kept)
    values, (chosen, _) = predict_by_lists(table.rows, nested, main, choose, n_jobs)
    change = list_change(nested, [each[0] for each in values], [each[1] for each in values])
    listed = tuple(names[j] for j in chosen)
    return CheapList(listed, float(cost[chosen].sum()), float(cost[main].sum()), change)


def _choose(
    encoded: Rows, main: IntArray, number: int, plan: AnyPlan, cost: Array, kept: IntArray
) -> tuple[IntArray, IntArray]:
    """The columns of the cheapest list on some rows, in the order in which they came in, and of the main one there."""
    rng = np.random.default_rng(number)
    (folds, *_), _ = inner_folds(FOLDS, encoded, rng)
    orders = _orders(places(plan, encoded, rng), cost, kept)
    most = min(len(orders[0]), SIZES[-1])
    usual = min(max(len(main), len(kept), 1), len(orders[0]))
    sizes = sorted({usual, *(size for size in SIZES if len(kept) <= size <= most)})
    score = np.empty((len(folds), len(EXPONENTS), len(sizes)))
    for f, (train, test) in enumerate(folds):
        some, tested = encoded.take(train), encoded.target.take(test)
        here = _orders(places(plan, some, rng), cost, kept)
        for i, order in enumerate(here):
            for k, size in enumerate(sizes):
                predicted = predict_on(some, np.sort(order[:size]), encoded, test)
                score[f, i, k] = tested.score_values(tested.decisions_of(predicted)[None, :, None])[0]
    mean = np.nanmean(score, axis=0)
    at = sizes.index(usual)
    least = mean[0, at] - np.nanstd(score[:, 0, at], ddof=1) / np.sqrt(len(folds))
    enough = [(i, k) for i, k in np.ndindex(*mean.shape) if mean[i, k] >= least]
    lists = [orders[i][: sizes[k]] for i, k in enough]
    best = min(range(len(lists)), key=lambda j: (cost[lists[j]].sum(), -mean[enough[j]]))
    return (lists[best] if cost[lists[best]].sum() < cost[main].sum() else main), main


def _orders(place: Array, cost: Array, kept: IntArray) -> list[IntArray]:
    """The order of the columns for each exponent of the costs, those to keep before all others."""
    above = cost[cost > 0]
    log_cost = np.log(np.maximum(cost, FREE * above.min() if len(above) else 1.0))
    out = []
    for exponent in EXPONENTS:
        value = np.log(place + SMOOTHING) + exponent * log_cost
        order = np.argsort(value, kind="stable")[: np.isfinite(place).sum()]
        out.append(np.concatenate([kept, order[~np.isin(order, kept)]]).astype(np.intp))
    return out
