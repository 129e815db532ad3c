"""Blocks of columns that may be missing elsewhere, such as an assay: what the main method scores without each of them.

For each block of which the list has a column the main method is run on the other columns, in the folds of the first
repeat and on all rows. So there is a model for a cohort without the block, and its score is known beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...contracts import IntArray
from ...engine.scoring import score_difference
from ...engine.units import UnitTable
from ...errors import InputError, listing, many
from ...estimators.fitted_selector import FittedSelector
from ...report.numbers import format_score
from ...validation.forecasting import record_promise
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..selection import Selection, plain_scores, select_again


@register_analysis
class Blocks:
    """The main method without each block of columns, and a model for cohorts that lack it."""

    name, order, template = "blocks", 17.0, "blocks"

    def applies(self, facts: Facts) -> str | None:
        """Where blocks are named."""
        return None if facts.options.blocks else "no blocks were named (--blocks)"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """Always: a model for that case is what was asked for."""
        return [Level((), 0)]

    def cost(self, facts: Facts) -> float:
        """A pass of the main method for each block."""
        if facts.measured is None:
            return 0.0
        fold = facts.measured.fold.get(facts.main.label, 0.0)
        return (facts.cv + 1.0) * fold * max(len(facts.options.blocks), 2)

    def run(self, run: StudyRun) -> AnalysisResult:
        """Scores, differences from the whole table and models by block."""
        names = run.main.selector.columns_.names
        blocks = find_blocks(run.choice.options.blocks, names)
        rows, models = [], dict[str, Selection]()
        for name, columns in blocks.items():
            listed = int(np.isin(run.selected_features, columns).sum())
            row: dict[str, Any] = {"name": name, "n_columns": len(columns), "n_listed": listed, "model": None}
            row["columns"] = [names[j] for j in columns]
            rest = np.setdiff1d(np.arange(len(names)), columns)
            if listed and len(rest):
                models[name] = without = run_without(run, rest)
                change = score_difference(run.table.target, without.nested.passes, run.main.nested.passes[:1])
                row |= {
                    "model": model_name(name),
                    "n_features": without.selector.n_features_,
                    "scores": plain_scores(without.scores),
                    "difference": plain_scores(change),
                    "promise": record_promise(without.scores, without.selector.get_feature_names_out()),
                }
            rows.append(row)
        return AnalysisResult({"blocks": rows}, details=models)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What a missing block costs."""
        metric, texts = result["listed_scores"][-1], []
        for row in result["analyses"][self.name]["blocks"]:
            if row["model"] is not None:
                value, span = format_score(row["difference"][metric], signed=True)
                score = format_score(row["scores"][metric])[0]
                texts.append(f"without {row['name']} {result['short_names'][metric]} {score} ({value}, {span})")
        unused = [row["name"] for row in result["analyses"][self.name]["blocks"] if not row["n_listed"]]
        text = f"For cohorts that lack a block there is a model of its own: {'; '.join(texts)}." if texts else ""
        if unused:
            text += f"{' ' if text else ''}The list needs nothing of {listing(unused, 5)}."
        return text or None


def run_without(run: StudyRun, rest: IntArray) -> Selection:
    """The main method on these columns: one pass over the folds of the first repeat, and the fit on all rows."""
    rows = run.table.rows.columns(rest)
    table = UnitTable(run.table.name, rows, f"{run.table.fingerprint}, {rest.tolist()}")
    keep = [name for name in run.choice.options.keep if name in rows.schema.names]
    options = replace(run.choice.options, keep=tuple(keep), n_jobs=run.options.n_jobs)
    method, _ = run.methods[0]
    settings = {**dict(method.settings), "keep": keep or None}
    return select_again(replace(method, settings=tuple(settings.items())), table, options)


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
    slugs = [model_name(block) for block in out]
    if len(set(slugs)) < len(slugs):
        raise InputError(f"blocks has {listing(list(out), 10)}, which differ in signs alone: name them otherwise")
    return {block: np.array(sorted(columns), dtype=np.intp) for block, columns in out.items()}


def model_name(block: str) -> str:
    """The file of the model for cohorts without a block."""
    return f"model-without-{re.sub(r'[^A-Za-z0-9]+', '-', block).strip('-').lower() or 'block'}.marginsieve"


def absent_block(columns: Iterable[Any], features: Sequence[str], result: Mapping[str, Any]) -> dict[str, Any] | None:
    """The block that explains which features of the list a new table lacks: all of them are of it, and it is absent."""
    present = set(map(str, columns))
    lacking = {name for name in features if name not in present}
    for row in (result["analyses"].get("blocks") or {"blocks": []})["blocks"] if lacking else ():
        if row["model"] is not None and lacking <= set(row["columns"]) and not present & set(row["columns"]):
            return dict(row)
    return None


def model_for(
    table: Any, model: FittedSelector, result: Mapping[str, Any], others: Mapping[str, FittedSelector]
) -> FittedSelector:
    """The model that suits a table: that of all columns, or the one without a block that the table lacks."""
    columns = getattr(table, "columns", ())
    row = absent_block(columns, [str(name) for name in model.get_feature_names_out()], result)
    return model if row is None else others[row["name"]]
