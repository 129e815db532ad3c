"""The page of a validation: validation.json in, one page out, in the style of the report."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ..errors import InputError, one_line, shown_value
from . import svg
from .render import calibration_chart, decision_chart, in_frame, page_of

SCHEMA = 1
NEEDED = ("kind", "cohorts", "promise", "metrics", "short_names", "listed_scores", "model", "pooled")
LINES = {"as_is": ("as is", "s1"), "aligned": ("aligned", "s2")}


def render_validation(result: dict[str, Any]) -> str:
    """The page of a validation, without external resources.

    Parameters
    ----------
    result : dict
        `Validation.result`, or the content of validation.json.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from marginsieve import recipes, validate
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.report import render_validation
    >>> old, new = make_cohort(60, 10, n_relevant=2, effect=2.0, cohorts=2, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(old.X, old.y)
    >>> render_validation(validate(model, new.X, new.y).result)[:15]
    '<!doctype html>'
    """
    if result.get("kind") != "validation" or result.get("schema") != SCHEMA:
        raise InputError(
            f"this is a result of kind {shown_value(result.get('kind'))} and schema "
            f"{shown_value(result.get('schema'))}; this version draws validations of schema {SCHEMA}"
        )
    if lacking := [key for key in NEEDED if key not in result]:
        raise InputError(f"this result lacks {', '.join(lacking)}: it is not the result of a validation")
    from jinja2 import TemplateError

    try:
        return page_of(
            "validation.html",
            {"r": result, "cohorts": [_draw(result, each) for each in result["cohorts"]]} | _over(result),
        )
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, TemplateError) as error:
        raise InputError(
            f"this result is not as a validation leaves it, and cannot be drawn ({type(error).__name__}: "
            f"{one_line(error)})"
        ) from error


def render_validation_in_notebook(result: dict[str, Any]) -> str:
    """The page inside a frame of its own."""
    return in_frame(render_validation(result), "marginsieve validation")


def _over(result: dict[str, Any]) -> dict[str, Any]:
    """A forest plot for each pooled score; none for one cohort."""
    forests = []
    for known in (result["pooled"] or {}).values():
        name, line = known["score"], known["line"]
        style = LINES[line][1]
        rows = [] if (promise := _promise_row(result, name)) is None else [promise]
        for cohort in result["cohorts"]:
            score = cohort["lines"].get(line, {"scores": {}})["scores"].get(name)
            if score is not None:
                rows.append(svg.IntervalRow(cohort["name"], score["value"], score["low"], score["high"], style))
        rows.append(svg.IntervalRow("pooled", known["value"], known["low"], known["high"], "all", "diamond"))
        if known["next_low"] is not None:
            rows.append(svg.IntervalRow("a further cohort", None, known["next_low"], known["next_high"], "all"))
        title = f"{result['metrics'][name]}, {LINES[line][0]}"
        forests.append((svg.interval_rows(title, rows, result["short_names"][name]), known["text"]))
    return {"forests": forests}


def _promise_row(result: dict[str, Any], name: str) -> svg.IntervalRow | None:
    known = (result["promise"] or {"scores": {}})["scores"].get(name)
    return (
        None
        if known is None
        else svg.IntervalRow("promised", known["value"], known["low"], known["high"], "s0", "square")
    )


def _draw(result: dict[str, Any], cohort: dict[str, Any]) -> dict[str, Any]:
    """The pictures of a cohort."""
    against = []
    for name in result["listed_scores"][::-1]:
        rows = [] if (promise := _promise_row(result, name)) is None else [promise]
        known = cohort["forecast"]
        if known is not None and known["score"] == name:
            for key, label in (("same", "forecast, same way"), ("elsewhere", "forecast, elsewhere")):
                rows.append(svg.IntervalRow(label, None, known[key][0], known[key][1], "all"))
        for key, line in cohort["lines"].items():
            if name in line["scores"]:
                score, (label, style) = line["scores"][name], LINES[key]
                rows.append(svg.IntervalRow(label, score["value"], score["low"], score["high"], style))
        title = f"{result['metrics'][name]}: promised, forecast and found"
        if rows:
            against.append(svg.interval_rows(title, rows, result["short_names"][name]))
    lines = [(LINES[key], line) for key, line in cohort["lines"].items()]
    return {
        "known": cohort,
        "against": against,
        "lines": lines,
        "calibration": [
            (label, chart)
            for (label, style), line in lines
            if (chart := calibration_chart(line["curves"], style)) is not None
        ],
        "decision": decision_chart(
            [(*of_line, curve) for of_line, line in lines if (curve := (line["curves"] or {}).get("decision"))]
        ),
        "drift": _drift_chart(cohort),
    }


def _drift_chart(cohort: dict[str, Any]) -> Markup | None:
    """Shift against ratio of deviations, a mark for each column."""
    known = [each for each in cohort["drift"]["columns"] if each["shift"] is not None and each["scale"] is not None]
    if not known:
        return None
    reach = max(1.0, *(abs(each["shift"]) for each in known)) * 1.05
    top = max(2.0, *(each["scale"] for each in known)) * 1.05
    chart = svg.Chart(
        "Columns: shift and scale against the training rows",
        (-reach, reach),
        (0.0, top),
        "shift (standard deviations of the training rows)",
        "scale (1 as in training)",
        width=420,
    )
    chart.line([-reach, reach], [1, 1], "chance", "the scale of the training rows")
    chart.vertical(0.0, "all", "no shift")
    for each in known:
        text = f"{each['name']}: shift {each['shift']:.2f}, scale {each['scale']:.2f}"
        chart.mark(each["shift"], each["scale"], "s0", "circle", text, 3.5)
    return chart.svg()
