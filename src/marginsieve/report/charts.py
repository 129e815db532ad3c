"""The report's charts in matplotlib (the extra `marginsieve[plot]`), from the same JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InputError
from .figures import COLOURS, finish_figure, new_figure, save_figure

MOST = 40  # features with a bar


def sizes(result: dict[str, Any], file: str | Path | None = None) -> Any:
    """Scores of inner folds by size with a standard error, and nested scores with their intervals."""
    metric = result["listed_scores"][-1]
    figure, axes = new_figure(7.0, 4.2)
    for k, method in enumerate(result["methods"]):
        colour = COLOURS[k % len(COLOURS)]
        points, score = method["curve"], method["scores"][metric]
        if len(points) > 1:
            at = [p["size"] for p in points]
            axes.plot(at, [p["score"] for p in points], color=colour, lw=1.3)
            low, high = ([p["score"] + sign * p["error"] for p in points] for sign in (-1, 1))
            axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
        low, high = (score["value"] if score[end] is None else score[end] for end in ("low", "high"))
        span = [[score["value"] - low], [high - score["value"]]]
        axes.errorbar([method["n_features"]], [score["value"]], span, color=colour, fmt="o", label=method["title"])
    axes.set_xscale("log")
    return finish_figure(figure, axes, "number of features", result["metrics"][metric], file)


def roc(result: dict[str, Any], file: str | Path | None = None) -> Any:
    """True against false positives."""
    return _lines(result, "roc", "false positive rate", "true positive rate", file)


def agreement(result: dict[str, Any], file: str | Path | None = None) -> Any:
    """Predicted against observed numbers."""
    points = (result["curves"]["main"] or {}).get("agreement")
    if points is None:
        raise InputError("the outcome is not numbers: there is no plot of predicted against observed ones")
    figure, axes = new_figure(4.6, 4.2)
    both = [*points["observed"], *points["predicted"]]
    axes.plot([min(both), max(both)], [min(both), max(both)], color="grey", ls=":")
    axes.plot(points["observed"], points["predicted"], "o", ms=3, color=COLOURS[0])
    return finish_figure(figure, axes, "observed", "predicted", file, legend=False)


def precision_recall(result: dict[str, Any], file: str | Path | None = None) -> Any:
    """Precision against recall."""
    return _lines(result, "precision_recall", "recall", "precision", file)


def calibration(result: dict[str, Any], file: str | Path | None = None) -> Any:
    """Observed shares against predicted probabilities."""
    bins = _curves(result)["calibration"]
    figure, axes = new_figure(4.6, 4.2)
    axes.plot([0, 1], [0, 1], color="grey", ls=":")
    observed = [b["observed"] for b in bins]
    span = [[b["observed"] - b["low"] for b in bins], [b["high"] - b["observed"] for b in bins]]
    axes.errorbar([b["predicted"] for b in bins], observed, span, color=COLOURS[0], fmt="o")
    if smooth := _curves(result).get("smooth"):
        axes.plot(smooth["x"], smooth["y"], color=COLOURS[0])
    return finish_figure(figure, axes, "predicted probability", "observed share", file, legend=False)


def frequencies(result: dict[str, Any], file: str | Path | None = None) -> Any:
    """A bar per selected feature: the share of outer folds that selected it."""
    chosen = result["features"][:MOST][::-1]
    figure, axes = new_figure(6.5, 1.0 + 0.24 * len(chosen))
    shares = [feature["frequency"] or 0.0 for feature in chosen]
    axes.barh([feature["name"] for feature in chosen], shares, color=COLOURS[0])
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of outer folds that selected it")
    return save_figure(figure, file)


def _lines(result: dict[str, Any], what: str, x: str, y: str, file: str | Path | None) -> Any:
    _curves(result)
    figure, axes = new_figure(4.6, 4.2)
    for name, label in (("main", result["methods"][0]["title"]), ("all", "all features")):
        curve = result["curves"][name][what]
        axes.plot(curve["x"], curve["y"], label=label, ls="-" if name == "main" else "--")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    return finish_figure(figure, axes, x, y, file)


def _curves(result: dict[str, Any]) -> dict[str, Any]:
    curves = result["curves"]["main"]
    if curves is None or "roc" not in curves:
        count = len(result["table"].get("classes", ()))
        what = f"the target has {count} classes" if count else "the target is not classes"
        raise InputError(f"{what}; this curve exists for two classes")
    return dict(curves)
