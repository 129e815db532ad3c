"""Blocks of columns that may be missing elsewhere, such as an assay: what the main method scores without each of them.

For each block of which the list has a column, and each two of which it has one, the main method is run on the other
columns as a study of them runs it: on rows in the order that their cells have without the block, from which folds are
drawn. So there is a model for a cohort without them, and its score is known beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ...contracts import IntArray
from ...engine.scoring import Scores, score_difference
from ...errors import InputError, listing, many
from ...estimators.fitted_selector import FittedSelector
from ...report.numbers import format_score
from ...validation.forecasting import record_promise
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..selection import Selection, outcome_by_options, plain_scores, select_again

MOST_SECONDS = 300.0
MOST_PAIRED = 6  # blocks of which each two are left out as well


@register_analysis
class Blocks:
    """The main method without each block of columns, and each two; a model for cohorts that lack them."""

    name, order, template = "blocks", 17.0, "blocks"

    def applies(self, facts: Facts) -> str | None:
        """Where blocks are named."""
        return None if facts.options.blocks else "no blocks were named (--blocks)"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """Always: a model for that case is what was asked for; as many repeats as the study where they are cheap."""
        return [Level((1,), 0), Level((0,), 60, MOST_SECONDS)]

    def cost(self, facts: Facts) -> float:
        """A pass of the main method for each block and each two."""
        if facts.measured is None:
            return 0.0
        fold, blocks = facts.measured.fold.get(facts.main.label, 0.0), facts.options.blocks
        count = max(len(set(blocks.values()) if isinstance(blocks, Mapping) else blocks), 2)
        repeats = facts.effort[0] or facts.options.n_repeats or 1
        return (repeats * facts.cv + 1.0) * fold * (count + (count * (count - 1) / 2 if count <= MOST_PAIRED else 0))

    def run(self, run: StudyRun) -> AnalysisResult:
        """Scores, differences from the whole table and models by block, then by two of them."""
        names = run.main.selector.columns_.names
        blocks = find_blocks(run.choice.options.blocks, names)
        rows, models = dict[str, dict[str, Any]](), dict[str, Selection]()
        pairs = combinations(blocks, 2) if len(blocks) <= MOST_PAIRED else ()
        for absent in [*((name,) for name in blocks), *pairs]:
            columns, name = np.sort(np.concatenate([blocks[each] for each in absent])), " and ".join(absent)
            listed = int(np.isin(run.selected_features, columns).sum())
            row: dict[str, Any] = {"name": name, "n_columns": len(columns), "n_listed": listed, "model": None}
            row |= {"blocks": list(absent), "columns": [names[j] for j in columns]}
            rest = np.setdiff1d(np.arange(len(names)), columns)
            served = [each for each in absent if each in models and not needs(models[each], row["columns"])]
            if served:  # by the model without one of the two, which needs nothing of the other
                row = rows[served[0]] | row | {"model": rows[served[0]]["model"]}
            elif listed and len(rest):
                models[name], change = run_without(run, rest, run.choice.efforts[self.name][0] or run.choice.n_repeats)
                without = models[name]
                row |= {
                    "model": model_name(name),
                    "n_features": without.selector.n_features_,
                    "scores": plain_scores(without.scores),
                    "difference": plain_scores(change),
                    "promise": record_promise(without.scores, without.selector.get_feature_names_out()),
                }
            if len(absent) == 1 or row["model"] is not None:
                rows[name] = row
        return AnalysisResult({"blocks": list(rows.values())}, details=models)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What a missing block costs."""
        metric, texts = result["listed_scores"][-1], []
        rows = result["analyses"][self.name]["blocks"]
        for row in rows:
            if row["model"] is not None and len(row["blocks"]) == 1:
                value, span = format_score(row["difference"][metric], signed=True)
                score = format_score(row["scores"][metric])[0]
                texts.append(f"without {row['name']} {result['short_names'][metric]} {score} ({value}, {span})")
        unused = [row["name"] for row in rows if not row["n_listed"]]
        text = f"For cohorts that lack a block there is a model of its own: {'; '.join(texts)}." if texts else ""
        if any(len(row["blocks"]) == 2 for row in rows):
            text += " There is one for those that lack two as well."
        if unused:
            text += f"{' ' if text else ''}The list needs nothing of {listing(unused, 5)}."
        return text or None


def needs(selection: Selection, columns: Sequence[str]) -> bool:
    """Whether a list has any of these columns."""
    return not set(columns).isdisjoint(map(str, selection.selector.get_feature_names_out()))


def run_without(run: StudyRun, rest: IntArray, n_repeats: int) -> tuple[Selection, Scores]:
    """The main method on these columns, and its scores less those of all columns on the same rows."""
    part = replace(run.data, X=run.data.X.iloc[:, rest]).in_canonical_order(run.options.random_state)
    table = part.table(outcome_by_options(run.options))
    keep = tuple(name for name in run.choice.options.keep if name in table.rows.schema.names)
    options = replace(run.choice.options, n_repeats=n_repeats, keep=keep, n_jobs=run.options.n_jobs)
    without = select_again(run.choice.methods[0], table, options)
    assert part.numbers is not None
    theirs = [one_pass.take(part.numbers) for one_pass in run.main.nested.passes[:n_repeats]]
    return without, score_difference(table.target, without.nested.passes, theirs)


def find_blocks(blocks: Sequence[str] | Mapping[str, str], names: Sequence[str]) -> dict[str, IntArray]:
    """The columns of each block; `blocks` are prefixes, or the block of each column by its name."""
    if isinstance(blocks, Mapping):
        known = {name: j for j, name in enumerate(names)}
        out: dict[str, list[int]] = {}
        for column, block in blocks.items():
            if column in known:
                out.setdefault(str(block), []).append(known[column])
        if not out:
            raise InputError(f"blocks names {many(len(blocks), 'column')}, none of which is a feature of the table")
    else:
        out = {prefix: [j for j, name in enumerate(names) if name.startswith(prefix)] for prefix in blocks}
        if empty := [prefix for prefix, columns in out.items() if not columns]:
            raise InputError(f"blocks is {listing(empty)}, with which no feature of the table begins")
    sizes = (1, 2) if len(out) <= MOST_PAIRED else (1,)
    slugs = [model_name(" and ".join(absent)) for size in sizes for absent in combinations(out, size)]
    if len(set(slugs)) < len(slugs):
        raise InputError(f"blocks has {listing(list(out), 10)}, which differ in signs alone: name them otherwise")
    return {block: np.array(sorted(columns), dtype=np.intp) for block, columns in out.items()}


def model_name(block: str) -> str:
    """The file of the model for cohorts without a block."""
    return f"model-without-{re.sub(r'[^A-Za-z0-9]+', '-', block).strip('-').lower() or 'block'}.marginsieve"


def absent_block(columns: Iterable[Any], features: Sequence[str], result: Mapping[str, Any]) -> dict[str, Any] | None:
    """The block, or the two, that explain which features of the list a new table lacks: all are of it, and absent."""
    present = set(map(str, columns))
    lacking = {name for name in features if name not in present}
    known = (result["analyses"].get("blocks") or {"blocks": []})["blocks"] if lacking else []
    fitting = [
        row
        for row in known
        if row["model"] is not None and lacking <= set(row["columns"]) and not present & set(row["columns"])
    ]
    return max(fitting, key=lambda row: len(row["columns"]), default=None)  # all that is absent, if two are


def model_for(
    table: Any, model: FittedSelector, result: Mapping[str, Any], others: Mapping[str, FittedSelector]
) -> FittedSelector:
    """The model that suits a table: that of all columns, or the one without the blocks that the table lacks."""
    columns = getattr(table, "columns", ())
    row = absent_block(columns, [str(name) for name in model.get_feature_names_out()], result)
    if row is None:
        return model
    return next(other for name, other in others.items() if model_name(name) == row["model"])
