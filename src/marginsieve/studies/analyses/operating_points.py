"""Decisions: what the cut gives at the table's mix of classes and at another, and net benefit by threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.nested import Nested
from ...engine.scoring import average_scores
from ...errors import many
from ...report.numbers import format_score
from ..analysis import Facts, StudyRun, part_of_every_study, register_analysis
from ..selection import plain_scores

GRID = np.arange(1, 100) / 100  # threshold probabilities
THOUSAND = 1000
RULES = {
    "sensitivity": "for a sensitivity of {value:g}",
    "specificity": "for a specificity of {value:g}",
    "cost_ratio": "for the lowest cost, a missed one costing as much as {value:g} false alarms",
    "capacity": "so that at most {value:.3g} of the rows are called so",
}


@register_analysis
class Decisions:
    """Predictive values at the chosen cut, counts in 1,000 rows, net benefit against calling all or none."""

    name, order, template = "decision", 17.0, "decision"

    levels = staticmethod(part_of_every_study)

    def applies(self, facts: Facts) -> str | None:
        """For two classes."""
        two = facts.shape.outcome == "classes" and facts.shape.has_auc
        return None if two else "it is for two classes: other outcomes are not cut in two"

    def run(self, run: StudyRun) -> dict[str, Any]:
        """By out-of-fold predictions, at the table's mix of classes and at the one that was given."""
        nested, options = run.main.nested, run.options
        own, other = nested.target.interest_share, options.share_elsewhere
        assert own is not None
        rule = next((name for name in RULES if getattr(options, name) is not None), None)
        level = None if rule is None else float(getattr(options, rule))
        return {
            "rule": rule,
            "asked": level,
            "words": "halfway between the classes" if rule is None else RULES[rule].format(value=level),
            "mixes": [describe_mix(nested, share) for share in ((own,) if other is None else (own, other))],
            "net_benefit": describe_benefit(nested, own if other is None else other),
        }

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What the cut gives in 1,000 rows of each mix."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        scores, label = known["mixes"][0]["scores"], result["words"]["above"]
        sensitivity, specificity = (_with_span(scores[name], "(") for name in ("sensitivity", "specificity"))
        text = f"Cut {known['words']} in inner folds; out of fold sensitivity {sensitivity}, specificity {specificity}."
        for mix in known["mixes"]:
            values, counts = mix["scores"], mix["per_1000"]
            text += f" Of 1,000 rows with {mix['share']:.3g} of class {label} {counts['called']} are called {label}"
            if "ppv" in values:
                text += f", {counts['right']} of them rightly (PPV {_with_span(values['ppv'])})"
            if "npv" in values:
                rest = THOUSAND - counts["called"]
                text += f"; of the {rest} others {counts['missed']} are {label} (NPV {_with_span(values['npv'])})"
            text += "."
        return f"{text}{_useful(known['net_benefit'])}"


def _with_span(score: dict[str, Any], joint: str = ": ") -> str:
    """ "0.41: 0.31 to 0.52", or in brackets."""
    value, span = format_score(score)
    return f"{value} ({span})" if joint == "(" else f"{value}{joint}{span}"


def _useful(known: dict[str, Any] | None) -> str:
    """Where deciding by the model is shown to be better than calling all rows or none."""
    if known is None:
        return ""
    if not (better := known["better"]):
        return " At no threshold is the net benefit shown to be above that of calling all rows or none."
    span = f"{better[0]:.2f} to {better[-1]:.2f}" if len(better) > 1 else f"{better[0]:.2f}"
    where = "thresholds" if len(better) > 1 else "a threshold"
    gaps = "" if len(better) == round(100 * (better[-1] - better[0])) + 1 else f" ({many(len(better), 'step')} of .01)"
    return f" Its net benefit is above that of calling all rows or none at {where} of {span}{gaps}."


def describe_mix(nested: Nested, share: float) -> dict[str, Any]:
    """Scores of the cut at a mix of classes, and what they are in 1,000 rows."""
    target = nested.target
    known = [target.operating_scores(one_pass, share) for one_pass in nested.passes]
    scores = average_scores(target, known, target.operating_metrics)
    right = share * scores.value["sensitivity"]
    called = right + (1.0 - share) * (1.0 - scores.value["specificity"])
    counts = {"called": called, "right": right, "missed": share - right}
    return {
        "share": share,
        "scores": plain_scores(scores),
        "per_1000": {name: round(THOUSAND * value) for name, value in counts.items()},
    }


def describe_benefit(nested: Nested, share: float) -> dict[str, Any] | None:
    """Net benefit by threshold, of the model with its interval and of calling all rows positive; none has 0."""
    target = nested.target
    if nested.probability is None:
        return None
    names = [f"{threshold:.2f}" for threshold in GRID]
    known = [
        dict(zip(names, target.benefit_scores(one_pass, GRID.tolist(), share), strict=True))
        for one_pass in nested.passes
    ]
    scores = average_scores(target, known, dict.fromkeys(names, target.metrics["net_benefit"]))
    value, low, high = ([each[name] for name in names] for each in (scores.value, scores.low, scores.high))
    every = target.benefit_of_all(GRID, share)
    better = np.asarray(low) > np.maximum(every, 0.0)  # never where there are no intervals, which are nan
    return {
        "share": share,
        "x": GRID.tolist(),
        "y": value,
        "low": low,
        "high": high,
        "all": every.tolist(),
        "better": GRID[better].tolist(),
    }
