"""Learning curve: what the main method scores when it is trained on a quarter, a half and all of the rows of each
training part, and between which values twice the rows would bring it.

The errors of many methods fall like a power of the rows, e(m) = e + b m^-c: each doubling then gains a share r = 2^-c
of what the one before gained, which is 1/2 where c = 1 and 0.71 where c = 1/2. With r = 0.6 both steps that are
measured say what the next one would gain,

::

    gain = (r (s_1 - s_1/2) + r^2 (s_1/2 - s_1/4)) / 2.

A row's influence on the scores gives its error, so that the range is that of a score with the factors of its interval,
and the interval of the gain that of a difference of methods that have other training rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...contracts import IntArray, Score
from ...engine.nested import Fold, collect_folds
from ...engine.scoring import Pass, average_scores, score_predictions
from ...engine.units import Split
from ...errors import InputError
from ...outcomes import Target
from ...report.numbers import format_score
from ..analysis import AnalysisResult, Facts, Level, StudyRun, register_analysis
from ..selection import plain_scores, run_splits

SHARES = (0.25, 0.5)  # of the rows of a training part
RATIO = 0.6  # of what a doubling gains to what the one before gained
DRAWS = (1, 3)
MOST_SECONDS = 60.0
LEVEL = 0.9
FEWEST = 2  # of a class, or units, in a quarter: inner folds need as many


@register_analysis
class LearningCurve:
    """What more rows would bring."""

    name, order, template = "learning-curve", 31.0, "learning"

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """A draw of each size, or several where that does not take long."""
        return [Level((draws,), worth, MOST_SECONDS) for draws, worth in zip(DRAWS, (58, 68), strict=True)]

    def cost(self, facts: Facts) -> float:
        """Fits on a quarter and a half of the rows in the folds of one repeat."""
        if facts.measured is None:
            return 0.0
        return facts.effort[0] * sum(SHARES) * facts.cv * facts.measured.fold.get(facts.main.label, 0.0)

    def run(self, run: StudyRun) -> AnalysisResult:
        """The scores by rows, and the range at twice as many; None where a quarter cannot be trained on."""
        nested, (draws,) = run.main.nested, run.choice.efforts[self.name]
        whole = [fold for fold in nested.folds if fold.repeat == 0]
        by_share = {share: draw_splits(nested.target, whole, share, draws, nested.random_state) for share in SHARES}
        if any(splits is None for splits in by_share.values()):
            return AnalysisResult(None)
        options = replace(run.choice.options, n_jobs=run.options.n_jobs)
        splits = [split for known in by_share.values() for split in known or ()]
        try:
            folds = run_splits(*run.methods[0], run.table, options, splits)
        except InputError:  # a search that needs more rows than a quarter has
            return AnalysisResult(None)
        passes = {}
        for share, known in by_share.items():
            mine = {split.name for split in known or ()}
            some = [fold for fold in folds if fold.name in mine]
            passes[share] = collect_folds(nested.target, some, nested.n_features, nested.random_state).passes
        passes[1.0] = nested.passes[:1]
        rows = np.mean([len(nested.target) - len(fold.test) for fold in whole])
        return AnalysisResult(extrapolate(nested.target, passes, float(rows)) | {"draws": draws})

    def sentence(self, result: dict[str, Any]) -> str | None:
        """The scores by rows, and what twice the rows would give."""
        known = result["analyses"][self.name]
        if not result["answer"]["evidence"]:
            return None
        short, twice, gain = result["short_names"][known["score"]], known["twice"], known["gain"]
        scores = ", ".join(f"{each['value']:.2f}" for each in known["sizes"])
        rows = ", ".join(f"{each['rows']:,}" for each in known["sizes"])
        text = f"Trained on {rows} rows the method scores {scores} ({short})."
        if twice["low"] is None:
            return text
        change, span = format_score(gain, signed=True)
        text += f" Twice the rows would give about {twice['low']:.2f} to {twice['high']:.2f} ({twice['level']:.0%})"
        if gain["low"] > 0:
            return f"{text}, {change} ({span})."
        return f"{text}; whether that would be more cannot be told ({change}, {span})."


def draw_splits(
    target: Target, folds: Sequence[Fold], share: float, draws: int, random_state: int
) -> list[Split] | None:
    """For each draw and fold a split that trains on a share of the rows; smaller shares are parts of larger ones."""
    splits = []
    for draw in range(draws):
        for k, fold in enumerate(folds):
            rng = np.random.default_rng([random_state, 12, draw, k])
            train, size = np.setdiff1d(np.arange(len(target)), fold.test), 1.0
            while size > share:
                train, size = _halve(target, train, rng), size / 2
            part = target.take(train)
            if not part.complete or part.fold_limit().count < FEWEST:
                return None
            state = int(rng.integers(2**31))
            splits.append(Split(f"{draw}.rows{share:g}.{k}", draw, train, fold.test, random_state=state))
    return splits


def _halve(target: Target, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Half of the rows of each stratum, groups whole."""
    return rows[target.take(rows).draw(0.5, rng, at_least=1, leave=1)]


def extrapolate(target: Target, passes: Mapping[float, Sequence[Pass]], rows: float) -> dict[str, Any]:
    """Scores by rows, the gain of the next doubling and the range that it leads to."""
    known = {share: [target.scores(one_pass) for one_pass in some] for share, some in passes.items()}
    metric = next(name for name in reversed(known[1.0][0]) if target.metrics[name].listed)
    mean = {share: _average([each[metric] for each in some]) for share, some in known.items()}
    quarter, half, whole = (mean[share] for share in (*SHARES, 1.0))
    near, far = RATIO / 2, RATIO**2 / 2
    gain = Score(
        near * (whole.value - half.value) + far * (half.value - quarter.value),
        near * (whole.influence - half.influence) + far * (half.influence - quarter.influence),
    )
    info = target.metrics[metric]
    sign = 1.0 if info.higher_is_better else -1.0
    better = sign * max(sign * gain.value, 0.0)  # more rows are not expected to harm
    twice = Score(
        min(whole.value + better, 1.0) if info.share else whole.value + better, whole.influence + gain.influence
    )
    plain = replace(info, scale="plain", factors=info.difference)
    rooms = target.rooms({name: score.value for name, score in known[1.0][0].items()})
    at_twice = plain_scores(average_scores(target, [{metric: twice}], target.metrics, rooms, LEVEL))[metric]
    change = plain_scores(average_scores(target, [{metric: gain}], {metric: plain}, rooms, LEVEL))[metric]
    sizes = [
        {"rows": round(share * rows), **plain_scores(score_predictions(target, some))[metric]}
        for share, some in passes.items()
    ]
    return {
        "score": metric,
        "sizes": sizes,
        "twice": {"rows": round(2 * rows), **at_twice, "level": LEVEL},
        "gain": change,
        "ratio": RATIO,
    }


def _average(scores: Sequence[Score]) -> Score:
    """The mean of scores of the same rows."""
    return Score(
        float(np.mean([score.value for score in scores])), np.mean([score.influence for score in scores], axis=0)
    )
