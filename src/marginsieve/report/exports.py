"""A result as tables and figures to paste into a paper, and the numbers behind its charts; from its JSON alone."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..data.cells import csv_of
from . import charts
from .checklist import checklist_rows
from .figures import check_drawing, figure_bytes

if TYPE_CHECKING:
    import pandas as pd

Rows = list[dict[str, Any]]
# of features.csv too, under the same names
FEATURE_COLUMNS = (
    *("rank", "name", "part", "in_long", "frequency", "effect", "effect_low", "effect_high", "effect_is", "direction"),
    *("q_value", "marginal_q", "group", "substitutes", "coefficient", "kind"),
)
FIGURES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "sizes": charts.sizes,
    "roc": charts.roc,
    "precision-recall": charts.precision_recall,
    "calibration": charts.calibration,
    "agreement": charts.agreement,
    "features": charts.frequencies,
}
DOTS = 300  # per inch, of pictures for print


def table_files(result: dict[str, Any]) -> dict[str, bytes]:
    """Each table as CSV, HTML and LaTeX, and the numbers of each chart as CSV, by the names of their files."""
    import pandas as pd

    tables = {"features": feature_rows(result), "scores": score_rows(result), "tripod-ai": checklist_rows(result)}
    if (confusion := result.get("confusion")) is not None:
        labels = confusion["classes"]
        tables["confusion"] = [
            {"label": label, **{f"called {name}": n for name, n in zip(labels, counts, strict=True)}}
            for label, counts in zip(labels, confusion["counts"], strict=True)
        ]
    files: dict[str, bytes] = {}
    for name, rows_ in tables.items():
        frame = pd.DataFrame(rows_)
        files[f"{name}.csv"] = csv_of(frame).encode()
        shown = frame.map(_format_cell)
        files[f"{name}.html"] = shown.to_html(index=False, border=0).encode()
        files[f"{name}.tex"] = shown.to_latex(index=False, escape=True).encode()
    return files | {f"chart-{name}.csv": csv_of(_frame(rows_)).encode() for name, rows_ in chart_rows(result).items()}


def figure_files(result: dict[str, Any]) -> dict[str, bytes]:
    """Each chart that the result has, as SVG and as PNG with 300 dots per inch."""
    check_drawing()
    known = chart_rows(result)
    figures = {name: draw(result) for name, draw in FIGURES.items() if name in known}
    return {
        f"{name}.{kind}": figure_bytes(figure, kind, DOTS)
        for name, figure in figures.items()
        for kind in ("svg", "png")
    }


def download_link(result: dict[str, Any], name: str) -> Markup:
    """A link of the page that saves the numbers of a chart; nothing where it has none."""
    rows = chart_rows(result).get(name)
    if not rows:
        return Markup("")
    data = base64.b64encode(csv_of(_frame(rows)).encode()).decode()
    link = '<a class="dim" download="{0}.csv" href="data:text/csv;base64,{1}">{0}.csv: the numbers</a>'
    return Markup(link).format(name, data)


def feature_rows(result: dict[str, Any]) -> Rows:
    """The selected features, under the names that features.csv has."""
    rows = []
    for feature in result["features"]:
        effect = feature.get("effect") or {}
        flat = {**feature, "effect": effect.get("value")}
        rows.append({name: flat.get(name) for name in FEATURE_COLUMNS})
    return [{name: row[name] for name in row if any(each[name] is not None for each in rows)} for row in rows]


def score_rows(result: dict[str, Any]) -> Rows:
    """A row for each score of each method: its value, its interval, the difference from all features."""
    rows = []
    for method in result["methods"]:
        for name, score in method["scores"].items():
            change = (method["difference"] or {}).get(name) or {}
            rows.append(
                {
                    "method": method["title"],
                    "n_features": method["n_features"],
                    "score": name,
                    **{end: score[end] for end in ("value", "low", "high")},
                    **{f"difference{end and '_' + end}": change.get(end or "value") for end in ("", "low", "high")},
                }
            )
    return rows


def chart_rows(result: dict[str, Any]) -> dict[str, Rows]:
    """The numbers that each chart of the page draws, by its name; charts that a result has not are not there."""
    methods, curves = result["methods"], result["curves"]
    main = curves["main"] or {}
    known: dict[str, Rows] = {
        "sizes": [{"method": each["title"], **point} for each in methods for point in each["curve"]],
        "features": [{name: each[name] for name in ("name", "frequency")} for each in result["features"]],
        "calibration": list(main.get("calibration") or ()),
        "agreement": _columns_as_rows(main.get("agreement") or {}),
        "values": [
            {"name": feature["name"], **row}
            for feature in result["features"]
            for row in _plot_rows(feature.get("plot") or {"classes": ()})
        ],
    }
    for name, x, y in (
        ("roc", "false_positive_rate", "true_positive_rate"),
        ("precision_recall", "recall", "precision"),
    ):
        if name in main:
            rows = [
                {"features": which, x: a, y: b}
                for which, curve in curves.items()
                if curve
                for a, b in zip(curve[name]["x"], curve[name]["y"], strict=True)
            ]
            known[name.replace("_", "-")] = rows
    if main.get("decision"):
        known["net-benefit"] = _columns_as_rows({name: main["decision"][name] for name in ("x", "y", "all")})
    for group in (main.get("survival") or {"groups": ()})["groups"]:
        points = _columns_as_rows({name: group[name] for name in ("time", "survival")})
        known.setdefault("survival", []).extend({"group": group["name"], **point} for point in points)
    return {name: rows for name, rows in known.items() if rows}


def _plot_rows(plot: Mapping[str, Any]) -> Rows:
    """The quartiles, or the shares of the levels, of a feature by class."""
    ends = ("lowest", "quarter", "median", "three_quarters", "highest")
    rows = []
    for part in plot["classes"]:
        if plot["type"] == "levels":
            pairs = zip(plot["levels"], part["shares"], strict=True)
        else:
            pairs = zip(ends, part["quartiles"] or [None] * 5, strict=True)
        rows += [{"label": part["class"], "of": what, "number": value} for what, value in pairs]
    return rows


def _columns_as_rows(columns: Mapping[str, Any]) -> Rows:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _frame(rows: Rows) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)


def _format_cell(value: Any) -> str:
    """A cell for print: three digits, nothing for a gap."""
    if value is None or value != value:
        return ""
    return str(value) if not isinstance(value, float) else f"{value:.3g}" if value % 1 else f"{value:g}"
