"""Several classes: how well each is told from the rest and from each other one, by which features, and its own list.

The list of a class is what the main method selects where that class is told from all others, scored on the folds of
the first repeat.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...engine.nested import Nested
from ...engine.scoring import average_scores
from ...engine.units import UnitTable
from ...outcomes import Target
from ...report.numbers import format_score
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..selection import Selection, plain_scores, select_again

LISTED = 100  # features of a class in result.json
MOST_SECONDS = 120.0
EXPECTED = 5  # classes, for the plan


@register_analysis
class EachClass:
    """Scores of each class and pair of classes, the class that each feature tells, a list for each class."""

    name, order, template = "each-class", 11.0, "classes"

    def applies(self, facts: Facts) -> str | None:
        """For more than two classes."""
        several = facts.shape.outcome == "classes" and not facts.shape.has_auc
        return None if several else "it is for more than two classes"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """Scores in any case, a list for each class where they do not take long."""
        return [Level((0,), 0), Level((1,), 72, MOST_SECONDS)]

    def cost(self, facts: Facts) -> float:
        """For each class the folds of one repeat, and a fit on all rows."""
        if facts.measured is None:
            return 0.0
        return facts.effort[0] * EXPECTED * (facts.cv + 1) * facts.measured.fold.get(facts.main.label, 0.0)

    def run(self, run: StudyRun) -> AnalysisResult:
        """Scores, what each feature tells, the lists."""
        nested, binary = run.main.nested, run.table.target.against_rest()
        rows, (lists,) = describe_classes(nested), run.choice.efforts[self.name]
        for row in rows:
            row["list"] = describe_list(select_against_rest(run, binary[row["name"]])) if lists else None
        tells = tell_classes(run, binary)
        labels = [tells[name]["class"] if name in tells else "" for name in run.main.selector.columns_.names]
        values = {"classes": rows, "pairs": describe_pairs(nested)}
        columns = {"tells": np.array(labels, dtype=object)}
        return AnalysisResult(values, columns, {name: {"tells": known} for name, known in tells.items()})

    def sentence(self, result: dict[str, Any]) -> str | None:
        """The AUC over classes and pairs, the class that is found least, and what it is taken for."""
        known, scores = result["analyses"][self.name], result["scores"]
        if not result["answer"]["evidence"]:
            return None
        text = ""
        if "auc_rest" in scores:
            rest, pairs = ("{} ({})".format(*format_score(scores[name])) for name in ("auc_rest", "auc_pairs"))
            text = f"AUC of one class against the rest {rest}, of pairs of classes {pairs}, each a mean. "
        worst = min(known["classes"], key=lambda row: row["scores"]["sensitivity"]["value"])
        value = worst["scores"]["sensitivity"]["value"]
        text += f"Least often found is {worst['name']} ({value:.0%} of its {worst['rows']} rows"
        text += f", most often taken for {worst['taken_for']})." if worst["taken_for"] else ")."
        if all(row["list"] for row in known["classes"]):
            sizes = ", ".join(f"{row['name']} {row['list']['n_features']}" for row in known["classes"])
            text += f" Lists of one class against the rest have so many features: {sizes}."
        return text


def describe_classes(nested: Nested) -> list[dict[str, Any]]:
    """For each class its rows, its scores, and what it is taken for most often where it is not found."""
    target = nested.target
    passes = [target.scores_by_class(one_pass) for one_pass in nested.passes]
    counts = np.asarray(target.pictures(nested.predicted, None, None)["confusion"]["counts"])
    out, names = [], list(passes[0])
    for k, name in enumerate(names):
        scores = average_scores(target, [known[name] for known in passes], target.metrics)
        others = np.where(np.arange(len(names)) == k, 0.0, counts[k])
        out.append(
            {
                "name": name,
                "rows": round(float(counts[k].sum())),
                "scores": plain_scores(scores),
                "taken_for": names[int(others.argmax())] if others.any() else None,
            }
        )
    return out


def describe_pairs(nested: Nested) -> list[dict[str, Any]]:
    """For each pair of classes the AUC of their rows, the lowest first."""
    target = nested.target
    passes = [target.areas_by_pair(one_pass) for one_pass in nested.passes]
    out = []
    for pair in passes[0]:
        scores = average_scores(target, [{"auc": known[pair]} for known in passes], target.metrics)
        out.append({"pair": list(pair), **plain_scores(scores)["auc"]})
    return sorted(out, key=lambda row: row["value"])


def tell_classes(run: StudyRun, binary: dict[str, Target]) -> dict[str, dict[str, Any]]:
    """For each selected feature the class that it tells best from the rest, by its effect size, and how."""
    columns, out = run.main.selector.columns_, {}
    for name, kind in ((columns.names[j], columns.kind[j]) for j in run.selected_features):
        best: dict[str, Any] = {"class": "", "effect": 0.0, "direction": ""}
        for label, target in binary.items():
            known = target.effect(run.data.X[name], kind)
            size = known["effect"]["value"]
            if np.isfinite(size) and abs(size) > abs(best["effect"]):
                best = {"class": label, "effect": size, "direction": known["direction"]}
        out[name] = best
    return out


def select_against_rest(run: StudyRun, target: Target) -> Selection:
    """The main method where one class is told from all others."""
    rows = replace(run.table.rows, target=target)
    table = UnitTable(run.table.name, rows, f"{run.table.fingerprint}, {target.identity[0]}")
    options = replace(run.choice.options, n_repeats=1, n_jobs=run.options.n_jobs, **target.fixed_settings)
    return select_again(run.choice.methods[0], table, options)


def describe_list(selection: Selection) -> dict[str, Any]:
    """The features of a class, the best first, and what the list scores."""
    selector = selection.selector
    names = selector.get_feature_names_out()[np.argsort(selector.ranking_[selector.support_])]
    scores = plain_scores(selection.scores)
    return {
        "n_features": selector.n_features_,
        "features": [str(name) for name in names[:LISTED]],
        "scores": {name: scores[name] for name in ("balanced_accuracy", "auc")},
    }
