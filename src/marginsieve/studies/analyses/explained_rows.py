"""Why these rows: what each feature adds to the score of the rows that were named, by the model on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...estimators.explanations import explain
from ...estimators.fitted_selector import predict
from ..analysis import Facts, Level, StudyRun, register_analysis

SHOWN = 20  # features of a row


@register_analysis
class ExplainedRows:
    """What each feature adds to the score of chosen rows."""

    name, order, template = "explained-rows", 83.0, "explained"

    def applies(self, facts: Facts) -> str | None:
        """Where rows are named; for any outcome."""
        return None if facts.options.explain_rows else "no rows were named (--explain-rows)"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """It is asked for."""
        return [Level((), 0)]

    def run(self, run: StudyRun) -> dict[str, Any]:
        """For each row its score, that of the baseline, and the features that add most."""
        chosen_rows = [int(number) for number in run.options.explain_rows]
        rows = run.data.find_rows(chosen_rows)
        frame, selector = run.data.X.iloc[rows], run.main.selector
        known, predicted = explain(selector, frame), predict(selector, frame).table
        observed = np.asarray(run.table.target.observed)
        entries = []
        for k, number in enumerate(chosen_rows):
            adds = known.contributions.iloc[k]
            order = np.argsort(-np.abs(adds.to_numpy()), kind="stable")
            names = [str(adds.index[j]) for j in order[:SHOWN]]
            features = [
                {
                    "name": name,
                    "value": frame[name].iloc[k],
                    "baseline": known.baseline[name],
                    "adds": float(adds[name]),
                }
                for name in names
            ]
            row: dict[str, Any] = {
                "row": number,
                "id": None if run.data.labels is None else str(np.asarray(run.data.labels)[rows[k]]),
            }
            row |= {"observed": observed[rows[k]] if observed.ndim == 1 else observed[rows[k]].tolist()}
            row |= {"predicted": predicted["predicted"].iloc[k], "base": float(known.base[k])}
            row |= {"score": float(known.base[k] + adds.sum()), "rest": float(adds.iloc[order[SHOWN:]].sum())}
            entries.append(row | {"features": features})
        return {"exact": known.exact, "rows": entries}
