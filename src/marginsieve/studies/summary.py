"""A study as plain JSON: everything that the page shows and nothing that needs the table."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from .. import recipes
from ..engine.nested import Nested
from ..engine.scoring import Stability
from ..fitting.training import Model
from ..outcomes import Classes
from ..report.render import SCHEMA
from ..report.wording import paragraph
from ..validation.forecasting import record_promise
from ..validation.validated import plain_values
from .analysis import ANALYSES, Choice, JudgesLists, StudyRun, load_analyses
from .answer import answer
from .checks import ALARM, Finding
from .planning import describe_reduction, record_plan
from .selection import Selection, plain_scores, score_label

PROBE = "interactions"  # the recipe that looks for features that matter only together
NAMED = 10  # of its features
OFTEN = 0.5  # share of the outer folds that choose a column from which on it is missed in the list
LISTED = 1000  # selected features in the JSON; features.csv has them all
LIBRARIES = ("marginsieve", "numpy", "scipy", "scikit-learn", "numba", "highspy", "pandas")


def summarize(study: StudyRun) -> dict[str, Any]:
    """The whole study; the keys are described in docs/result.md."""
    main, nested, data = study.main, study.main.nested, study.data
    selector, findings = main.selector, _findings(study)
    methods = [_method(study, selection) for selection in study.selections]
    metrics, pictures = nested.target.metrics, [_pictures(some.nested) for some in (main, study.baseline)]
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "version": version("marginsieve"),
        "method": main.method.recipe,
        "options": study.options.record() | {"groups": data.group_column, "site": data.site_column},
        "table": _table(study),
        "ledger": study.data.ledger.summarize(),
        "protocol": _protocol(study),
        "metrics": {name: metrics[name].title for name in methods[0]["scores"]},
        "short_names": {name: metrics[name].short or metrics[name].title for name in methods[0]["scores"]},
        "chance_levels": {name: metrics[name].chance for name in methods[0]["scores"]},
        "main_score": next(iter(methods[0]["scores"])),
        "listed_scores": [name for name in methods[0]["scores"] if metrics[name].listed],
        "compared_scores": [name for name in methods[0]["scores"] if metrics[name].compared],
        "words": asdict(nested.target.words),
        "scores": methods[0]["scores"],
        "promise": _promise(study),
        "analyses": {name: study.results[name].values if name in study.results else None for name in load_analyses()},
        "stability": methods[0]["stability"],
        "lists": _lists(study),
        "interactions": _interactions(study),
        "n_features": selector.n_features_,
        "n_always": int(np.count_nonzero(selector.support_ & (nested.frequency == 1))),
        "n_features_over_folds": methods[0]["n_features_over_folds"],
        "threshold": getattr(selector, "threshold_", None),
        "formula": _formula(main),
        "score_is": methods[0]["score_is"],
        "stop_reason": methods[0]["stop_reason"],
        "chosen_by_method": methods[0]["chosen_by_method"],
        "features": _features(study),
        "often_outside": _often_outside(main),
        "groups": [group.to_dict() for group in selector.groups_],
        "methods": methods,
        **_curves(*pictures),
        "findings": [{"code": finding.code, **asdict(finding)} for finding in findings],
        "notes": main.notes,
        "seconds": round(study.seconds, 3),
        "how": {
            "command": study.command,
            "random_state": nested.random_state,
            "python": platform.python_version(),
            "versions": {name: version(name) for name in LIBRARIES},
        },
    }
    result["answer"] = answer(result)
    findings += result["answer"]["doubts"]
    muted = {finding.code for finding in findings} & set(study.options.mute)
    shown = [finding for finding in findings if finding.code not in muted]
    result["findings"] = [{"code": finding.code, **asdict(finding)} for finding in shown]
    result["answer"]["doubts"] = [each.text for each in shown if each.level == ALARM]
    result["protocol"]["muted"] = sorted(muted)
    result["references"] = recipes.references()
    result["methods_text"], result["bibtex"] = paragraph(result)
    del result["references"]  # what is cited stands in bibtex
    return dict(plain_values(result))


def _findings(study: StudyRun) -> list[Finding]:
    """What is said of the table, the methods and the analyses; the answer has doubts of its own."""
    findings = [*study.data.findings, *study.failures]
    findings += [finding for result in study.results.values() for finding in result.findings]
    if (smaller := describe_reduction(study.choice)) is not None:
        text = f"the minutes do not suffice for the whole table: {smaller}; more time may give a better list and score"
        findings.append(Finding("minutes", ALARM, text))
    return findings + [Finding("remark", ALARM, text) for text in study.main.notes]


def _pictures(nested: Nested) -> dict[str, Any]:
    return nested.target.pictures(nested.predicted, nested.decision, nested.probability)


def _curves(main: dict[str, Any], every: dict[str, Any]) -> dict[str, Any]:
    """The pictures of the list and of all features."""
    return {"curves": {"main": main["curves"], "all": every["curves"]}, "confusion": main["confusion"]}


def _promise(study: StudyRun) -> dict[str, Any]:
    """What a validation compares the score on a new cohort with, of each list."""
    lists = {"short": study.main, "long": study.main.longer}
    return {
        name: None if each is None else record_promise(each.scores, each.selector.get_feature_names_out())
        for name, each in lists.items()
    }


def _table(study: StudyRun) -> dict[str, Any]:
    data, nested, selector = study.data, study.main.nested, study.main.selector
    return {
        "target": data.target,
        "rows": len(nested.target),
        "features": data.X.shape[1],
        **nested.target.describe(),
        "kinds": dict(sorted(Counter(selector.columns_.kind).items())),
        "missing_cells": float(data.X.isna().to_numpy().mean()),
        "id_columns": list(data.ids),
        "dropped_columns": list(data.left_out),
        "constant_columns": selector.constant_,
        "equal_columns": [list(group) for group in selector.duplicates_],
    }


def _protocol(study: StudyRun) -> dict[str, Any]:
    nested, scores = study.main.nested, study.main.scores
    return {
        "outer": f"repeated {'stratified ' if np.ptp(nested.target.strata) else ''}cross-validation"
        + (", grouped" if nested.target.groups is not None else ""),
        "folds": study.choice.cv,
        "repeats": nested.repeats,
        "random_state": nested.random_state,
        "trained_on": _trained_on(study.choice, len(nested.target)),
        "interval": f"intervals ({scores.level:.0%}) are for the model on all rows"
        + (", by nested cross-validation" if study.options.intervals == "nested" else ""),
        "chosen": list(study.choice.why),
        "plan": record_plan(study.choice),
        "left_out": dict(study.choice.left_out),
    }


def _trained_on(choice: Choice, rows: int) -> str:
    """The rows of a training part that machines see, and the columns among which methods search."""
    text, options = f"{choice.cv - 1}/{choice.cv} of the rows", choice.options
    if options.max_samples is not None and options.max_samples < rows * (1 - 1 / choice.cv):
        text += f" (samples of at most {options.max_samples:,} of them)"
    if options.prefilter is not None:
        name, count = options.prefilter
        text += f", searching among the best {count:,} columns by {name} there"
    return text


def _method(study: StudyRun, selection: Selection) -> dict[str, Any]:
    selector, nested, stable = selection.selector, selection.nested, selection.stability
    recipe = recipes.entry(selection.method.recipe)
    baseline, path = selection.method.baseline, selector.path_
    steps = sorted((step for step in path.steps if np.isfinite(step.score)), key=lambda step: step.size)
    return {
        "name": selection.method.recipe,
        "title": selection.method.title,
        "baseline": baseline,
        "does": _does(selection, study.main.nested.target.outcome_name),
        "source": "" if baseline else recipe.source,
        "citation": [] if baseline else list(recipe.citation),
        "scores": plain_scores(selection.scores),
        "difference": plain_scores(study.difference(selection)),
        "n_features": selector.n_features_,
        "n_features_over_folds": _size_range(nested),
        "stability": _plain_stability(stable),
        "size_rule": _size_rule(selector),
        "curve": [] if baseline else [{"size": s.size, "score": s.score, "error": s.score_error} for s in steps],
        "scored_by": path.scored_by,
        "score_is": score_label(selector),
        "stop_reason": path.stop_reason,
        "chosen_by_method": None if path.stop is None else path.stop.to_dict(),
        "kernel": " and ".join(dict.fromkeys(_kernel_name(model) for model in selector.model_.models)),
        "left_out": _left_out(selector),
        "notes": selection.notes,
        "seconds": round(selection.seconds, 3),
    }


def _does(selection: Selection, outcome: str) -> str:
    """What a method does with an outcome, in a sentence."""
    if selection.method.baseline:
        same = " and the same threshold" if outcome == Classes.name else ""
        return f"All features with the same kind of machine{same}."
    recipe = recipes.entry(selection.method.recipe)
    return recipe.does_for.get(outcome, recipe.does)


def _lists(study: StudyRun) -> dict[str, Any]:
    """The list of the lower price beside the short one, and the difference; None where there is none or no other."""
    main, longer, (share, share_long) = study.main, study.main.longer, _chance_shares(study)
    if longer is None:
        return {"chance_share": share, "long": None, "difference": None}
    folds = zip(main.nested.folds, longer.nested.folds, strict=True)
    pairs = [
        (main.selector.support_, longer.selector.support_),
        *((ours.support, theirs.support) for ours, theirs in folds),
    ]
    same = all(np.array_equal(np.asarray(ours), np.asarray(theirs)) for ours, theirs in pairs)
    stable = longer.stability
    names = longer.selector.get_feature_names_out()[np.argsort(longer.selector.ranking_[longer.selector.support_])]
    return {
        "chance_share": share,
        "long": {
            "n_features": longer.selector.n_features_,
            "n_features_over_folds": _size_range(longer.nested),
            "scores": plain_scores(longer.scores),
            "stability": _plain_stability(stable),
            "chance_share": share_long,
            "features": [str(name) for name in names[:LISTED]],
        },
        "difference": None if same else plain_scores(study.difference(longer, main)),
    }


def _chance_shares(study: StudyRun) -> tuple[float | None, float | None]:
    """What share of the short and of the long list may be there by chance, where an analysis says so."""
    for name, result in study.results.items():
        if isinstance(judge := ANALYSES[name], JudgesLists) and result.values is not None:
            return judge.chance_shares(result.values)
    return None, None


def _often_outside(main: Selection) -> list[dict[str, Any]]:
    """Columns outside the list that more outer folds chose than some column of it, and at least half of them."""
    frequency, listed = main.nested.frequency, main.selector.support_
    least = frequency[listed].min(initial=1.0)
    outside = np.flatnonzero(~listed & (frequency >= OFTEN) & (frequency > least))
    order = outside[np.argsort(-frequency[outside], kind="stable")]
    return [{"name": main.selector.columns_.names[j], "frequency": frequency[j]} for j in order]


def _plain_stability(stability: Stability | None) -> dict[str, Any] | None:
    """The measure with its interval, whose ends are None where there are too few folds for one."""
    return None if stability is None else dict(plain_values(asdict(stability)))


def _size_range(nested: Nested) -> dict[str, Any]:
    return {
        "median": float(np.median(nested.sizes)),
        "smallest": int(nested.sizes.min()),
        "largest": int(nested.sizes.max()),
        "usual": [int(np.round(size)) for size in np.quantile(nested.sizes, [0.1, 0.9])],
    }


def _interactions(study: StudyRun) -> dict[str, Any] | None:
    """What a non-linear model on features that matter together scores beside the main method; None without one."""
    probe = next((each for each in study.selections[1:] if each.method.recipe == PROBE), None)
    if probe is None:
        return None
    names = probe.selector.get_feature_names_out()[np.argsort(probe.selector.ranking_[probe.selector.support_])]
    return {
        "title": probe.method.title,
        "n_features": probe.selector.n_features_,
        "features": [str(name) for name in names[:NAMED]],
        "difference": plain_scores(study.difference(probe, study.main)),
    }


def _kernel_name(model: Model) -> str:
    return type(model.view.kernel).__name__.lower()


def _size_rule(selector: Any) -> str:
    """How the number of features came about: given, false share, method (chosen by it), short, best or auto."""
    size = selector.n_features_to_select
    if getattr(selector, "false_share", None) is not None:
        return "false share"
    if size is None:
        return "auto" if selector.path_.stop is None or getattr(selector, "ensemble", None) else "method"
    return size if isinstance(size, str) else "given"


def _left_out(selector: Any) -> list[dict[str, Any]] | None:
    """The samples (row 1 is the first) that a machine with the ramp loss left out; None where it has another loss."""
    if not hasattr(selector, "suspects_"):
        return None
    return [{"row": int(row) + 1, **values} for row, values in selector.suspects_.to_dict("index").items()]


def _features(study: StudyRun) -> list[dict[str, Any]]:
    """The selected features of the main method, by rank, with what the analyses say of them."""
    frame = study.features.query("selected").head(LISTED)
    others = [s for s in study.selections[1:] if not s.method.baseline]
    chosen = {s.method.title: set(s.selector.get_feature_names_out()) for s in others}
    flat = [name for name in frame.columns if name not in ("selected", "in_short", "effect", "like")]
    out: list[dict[Any, Any]] = frame[flat].astype(object).where(frame[flat].notna(), None).to_dict("records")
    for entry in out:
        name = entry["name"]
        entry |= {"also_by": [title for title, some in chosen.items() if name in some]}
        for result in study.results.values():
            entry |= result.entries.get(name, {})
    return out


def _formula(selection: Selection) -> dict[str, Any] | None:
    """What goes with the features' coefficients to score a new sample by hand."""
    if (formula := selection.formula) is None:
        return None
    return {"intercept": formula.intercept, "slope": formula.slope, "offset": formula.offset, "sign": formula.sign}
