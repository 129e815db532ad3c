"""JSON in, one page out: nothing else is needed, and nothing of the user's is ever markup."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

from ..errors import InputError, one_line, shown_value
from . import svg
from .exports import download_link
from .numbers import format_change, format_score, format_share
from .sections import Section, sections_in_order, shipped_sections

SCHEMA = 6
NEEDED = (
    *("answer", "analyses", "table", "methods", "features", "scores", "protocol", "how", "findings", "curves"),
    *("confusion", "n_features", "n_features_over_folds", "stability", "groups", "methods_text", "bibtex", "seconds"),
    *("metrics", "lists", "n_always"),
)


def render(result: dict[str, Any]) -> str:
    """The report of a study as one HTML page without external resources.

    Parameters
    ----------
    result : dict
        The result of a study: `Study.result`, or the content of result.json.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import marginsieve
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.report import render
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, without="suspects")
    >>> render(study.result)[:15]
    '<!doctype html>'
    """
    if result.get("schema") != SCHEMA:
        raise InputError(
            f"this result has schema {shown_value(result.get('schema'))}; this version draws schema {SCHEMA}"
        )
    if lacking := [key for key in NEEDED if key not in result]:
        raise InputError(f"this result lacks {', '.join(lacking)}: it is not the result of a study")
    from jinja2 import TemplateError

    try:
        return _page(result)
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, TemplateError) as error:
        raise InputError(
            f"this result is not as a study leaves it, and cannot be drawn ({type(error).__name__}: {one_line(error)})"
        ) from error


def _page(result: dict[str, Any]) -> str:
    values: dict[str, Any] = {
        "r": result,
        "styles": {method["title"]: _style(k, method) for k, method in enumerate(result["methods"])},
        "sizes_chart": sizes_chart(result),
        "roc_chart": _two_lines(result, "roc", "false positive rate", "true positive rate"),
        "pr_chart": _two_lines(result, "precision_recall", "recall", "precision"),
        "calibration_chart": calibration_chart(result["curves"]["main"]),
        "benefit_chart": _benefit_chart(result),
        "learning_chart": _learning_chart(result),
        "agreement_chart": _agreement_chart(result),
        "survival_chart": _survival_chart(result),
        "floor": _floor(result),
        "reach": _reach(result),
    }
    values["numbers"] = partial(download_link, result)
    # what sections of other packages show is not known
    sections = shipped_sections().values() if "aggregated" in result else sections_in_order()
    known = [(section, _draw(section, values)) for section in sorted(sections, key=lambda section: section.place)]
    values["sections"] = [(section, html) for section, html in known if html]
    return page_of("report.html", values)


def _draw(section: Section, values: dict[str, Any]) -> Markup | None:
    """A section of the page; None where it has nothing to show."""
    if section.draw is not None:
        return section.draw(values["r"])
    html = _environment().from_string(section.template).render(values).strip()
    return Markup(html) if html else None


def page_of(template: str, values: dict[str, Any]) -> str:
    """A page of this template, with the style and the script of the report."""
    script = _part("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shared = {"style": Markup(_part("report.css")), "script": Markup(script), "digest": digest}
    return str(_environment().get_template(template).render({**shared, **values}))


def render_in_notebook(result: dict[str, Any]) -> str:
    """The page inside a frame of its own, so that its style does not touch the notebook's."""
    return in_frame(render(result), "marginsieve report")


def in_frame(page: str, title: str) -> str:
    """A page inside a frame."""
    style = "width:100%;height:48em;border:1px solid #8888;border-radius:6px"
    return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(__package__)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Callable[..., Any]] = {
        "num": _number,
        "value": lambda score: format_score(score)[0],
        "span": lambda score: format_score(score)[1],
        "fine_value": lambda score: format_score(score, 3)[0],
        "fine": lambda score: format_score(score, 3)[1],
        "change": lambda score: format_score(score, 2, signed=True),
        "signed": format_change,
        "share": format_share,
        "percent": "{:.0%}".format,
        "thousands": "{:,}".format,
        "reach": lambda ends: " to ".join(dict.fromkeys(f"{end:,}" for end in ends)),
        "duration": _duration,
    }
    environment.filters |= filters
    environment.globals |= {"small": svg.values_by_class, "bar": svg.interval_bar, "key": svg.legend_mark}
    return environment


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _number(value: float | None) -> str:
    """Three digits, no exponent where it can be helped."""
    if value is None:
        return ""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:.2e}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _style(k: int, method: dict[str, Any]) -> tuple[str, str]:
    """(colour class, shape) of a method in every chart."""
    return ("all", "cross") if method["baseline"] else (f"s{k % 6}", svg.MARKS[k % 5])


def _floor(result: dict[str, Any]) -> float:
    """Where the axis of the scores begins."""
    scores = [method["scores"][result["main_score"]] for method in result["methods"]]
    lowest = min(_end(score, "low") for score in scores)
    return _axis_floor(result, lowest)


def _axis_floor(result: dict[str, Any], lowest: float) -> float:
    """Where an axis of scores begins: at 1/2 or below, never below what a guess scores less 1/2."""
    chance = result["chance_levels"][result["main_score"]]
    return float(max(min(0.0, (chance or 0.0) - 0.5), min(0.5, lowest // 0.1 / 10)))


def _reach(result: dict[str, Any]) -> float:
    """How far the axis of the differences goes to each side."""
    changes = [method["difference"][result["main_score"]] for method in result["methods"]]
    return float(max(0.05, *(abs(_end(change, side)) for change in changes for side in ("low", "high"))))


def _end(score: dict[str, Any], side: str) -> float:
    """An end of an interval; the value where there is none."""
    return float(score["value"] if score[side] is None else score[side])


def sizes_chart(result: dict[str, Any]) -> Markup:
    """Scores of the inner folds by size with a standard error, the cut, and the nested score with its interval."""
    metric = result["listed_scores"][-1]
    methods = result["methods"]
    lowest = min(_end(m["scores"][metric], "low") for m in methods)
    lowest = min([lowest, *(p["score"] - p["error"] for m in methods for p in m["curve"])])
    floor, top = _axis_floor(result, lowest), max(result["table"]["features"], 2)
    chart = svg.Chart(
        "Score against the number of features",
        (1, top),
        (floor, 1.0),
        "number of features",
        result["metrics"][metric],
        True,
    )
    for k, method in enumerate(methods):
        style, shape = _style(k, method)
        points, score = method["curve"], method["scores"][metric]
        if len(points) > 1:
            sizes, level = [p["size"] for p in points], [p["score"] for p in points]
            low, high = ([p["score"] + sign * p["error"] for p in points] for sign in (-1, 1))
            chart.band(sizes, low, high, style)
            chart.line(sizes, level, style, f"{method['title']}: inner folds")
            for p in points[:: max(1, len(points) // 20)]:
                text = f"{method['title']}, {p['size']:,} features: {p['score']:.3f} (standard error {p['error']:.3f})"
                chart.mark(p["size"], p["score"], style, shape, text, 2.5)
        at = max(method["n_features"], 1)
        if k == 0:
            chart.vertical(at, style, f"selected: {at:,} features")
        chart.interval(at, max(_end(score, "low"), floor), _end(score, "high"), style)
        value, span = format_score(score, 3)
        text = f"{method['title']}, {at:,} features, nested: {value} ({span})"
        chart.mark(at, max(score["value"], floor), style, shape, text, 5.5)
    return chart.svg()


def _shares_chart(title: str, x: str, y: str) -> svg.Chart:
    return svg.Chart(title, (0, 1), (0, 1), x, y, width=420, height=340)


def _two_lines(result: dict[str, Any], what: str, x: str, y: str) -> Markup | None:
    """A curve of the main method and of all features."""
    if what not in (result["curves"]["main"] or {}):
        return None
    chart = _shares_chart(f"{y} against {x}", x, y)
    chance = result["curves"]["main"][what].get("chance")
    chart.line([0, 1], [0, 1] if chance is None else [chance, chance], "chance", "chance")
    for name, style, title in (("all", "all", "all features"), ("main", "s0", result["methods"][0]["title"])):
        curve = result["curves"][name][what]
        chart.line(curve["x"], curve["y"], style, title)
    return chart.svg()


def calibration_chart(curve: dict[str, Any] | None, style: str = "s0") -> Markup | None:
    """Observed shares by predicted probability."""
    if curve is None or curve.get("calibration") is None:
        return None
    title = "Observed share against predicted probability"
    chart = _shares_chart(title, "predicted probability", "observed share")
    chart.line([0, 1], [0, 1], "chance", "perfect calibration")
    bins = curve["calibration"]
    if smooth := curve.get("smooth"):
        chart.line(smooth["x"], smooth["y"], style, "smooth curve")
    for b in bins:
        chart.interval(b["predicted"], b["low"], b["high"], style)
        values = f"predicted {b['predicted']:.2f}, observed {b['observed']:.2f} ({b['low']:.2f} to {b['high']:.2f})"
        chart.mark(b["predicted"], b["observed"], style, "circle", values)
    return chart.svg()


def _benefit_chart(result: dict[str, Any]) -> Markup | None:
    """Net benefit of the main method with its intervals."""
    curve = (result["analyses"].get("decision") or {}).get("net_benefit")
    return None if curve is None else decision_chart([(result["methods"][0]["title"], "s0", curve)])


def _learning_chart(result: dict[str, Any]) -> Markup | None:
    """The score by the rows that are trained on, and the range at twice as many."""
    if (known := result["analyses"].get("learning-curve")) is None:
        return None
    sizes, twice = known["sizes"], known["twice"]
    ends = [_end(each, side) for each in (*sizes, twice) for side in ("low", "high")]
    reach, name = (min(ends), max(ends)), result["metrics"][known["score"]]
    span = (sizes[0]["rows"] / 1.2, twice["rows"] * 1.2)
    chart = svg.Chart("Score against training rows", span, reach, "training rows", name, True, width=420)
    chart.line([each["rows"] for each in sizes], [each["value"] for each in sizes], "s0")
    for each, style in (*((each, "s0") for each in sizes), (twice, "all")):
        value, text = format_score(each, 3)
        chart.interval(each["rows"], _end(each, "low"), _end(each, "high"), style)
        chart.mark(each["rows"], each["value"], style, "circle", f"{each['rows']:,} rows: {value} ({text})")
    return chart.svg()


def decision_chart(curves: list[tuple[str, str, dict[str, Any]]]) -> Markup | None:
    """Net benefit against the threshold probability by label, colour and curve, beside calling all or none."""
    if not curves:
        return None
    first = curves[0][2]
    top = max(0.05, *(max(curve["y"]) for _, _, curve in curves), first["all"][0])
    floor, title = -0.25 * top, "Net benefit against threshold probability"
    chart = svg.Chart(title, (0.0, 1.0), (floor, 1.1 * top), "threshold probability", "net benefit", width=420)
    lines = [("all called positive", "all", {"x": first["x"], "y": first["all"]}), *curves]
    chart.line([0, 1], [0, 0], "chance", "none called positive")
    for label, style, curve in lines:
        inside = [k for k, y in enumerate(curve["y"]) if y >= floor]
        x, y = ([curve[axis][k] for k in inside] for axis in "xy")
        if curve.get("low") and None not in curve["low"]:
            chart.band(x, [curve["low"][k] for k in inside], [curve["high"][k] for k in inside], style)
        chart.line(x, y, style, label)
    return chart.svg()


def _agreement_chart(result: dict[str, Any]) -> Markup | None:
    """Predicted against observed numbers."""
    points = (result["curves"]["main"] or {}).get("agreement")
    if points is None:
        return None
    observed, predicted = points["observed"], points["predicted"]
    ends = min(*observed, *predicted), max(*observed, *predicted)
    title, target = "Predicted against observed numbers", result["table"]["target"]
    chart = svg.Chart(title, ends, ends, f"{target}, observed", f"{target}, predicted", width=420, height=340)
    chart.line(ends, ends, "chance", "predicted = observed")
    for x, y in zip(observed, predicted, strict=True):
        chart.mark(x, y, "s0", "circle", f"observed {x:.4g}, predicted {y:.4g}", 2.5)
    return chart.svg()


def _survival_chart(result: dict[str, Any]) -> Markup | None:
    """Kaplan-Meier curves by thirds of the predicted risk."""
    drawn = (result["curves"]["main"] or {}).get("survival")
    if drawn is None:
        return None
    longest = drawn["longest"] or 1.0
    title = "Share without the event, by thirds of the predicted risk"
    chart = svg.Chart(title, (0.0, longest), (0.0, 1.0), "time", "share without the event", width=640)
    for k, group in enumerate(drawn["groups"]):
        xs, ys = [0.0], [1.0]
        for x, y in zip(group["time"], group["survival"], strict=True):
            xs += [x, x]
            ys += [ys[-1], y]
        chart.line([*xs, longest], [*ys, ys[-1]], f"s{k}", f"{group['name']}: {group['events']} events")
    return chart.svg()
