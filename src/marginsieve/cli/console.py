"""What the command prints of its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ..errors import listing, many

if TYPE_CHECKING:
    import pandas as pd

    from ..estimators.prediction import Prediction
    from ..estimators.selector import SVMSelector
    from ..study.findings import Finding

SHOWN = 20  # features in the printed table
NAMED = 3  # groups of near-duplicates that a note names


def show_result(result: dict[str, Any], out: Path) -> None:
    """The answer in words, the methods compared, the first features, what to doubt."""
    from ..study import METRICS

    console = Console()
    say: Any = lambda text="": console.print(text, markup=False, highlight=False)  # noqa: E731
    table = result["table"]
    classes = ", ".join(f"{label}: {count}" for label, count in table["classes"].items())
    about = f"; positive class: {table['positive']}" if len(table["classes"]) == 2 else ""
    say(f"{table['rows']} rows ({classes}), {table['features']} features{about}")
    say(result["answer"]["headline"])
    for sentence in result["answer"]["sentences"]:
        say(sentence)
    for doubt in result["answer"]["doubts"]:
        console.print(Text.assemble(("doubt: ", "bold yellow"), doubt))
    if result["chosen_by_method"]:
        say(f"number of features chosen by the method: {result['stop_reason']}")
    say()
    shown = [name for name in ("balanced_accuracy", "auc") if name in result["scores"]]
    grid = Grid(box=None, pad_edge=False)
    for heading in ("method", "features", *(METRICS[name] for name in shown), "stability"):
        grid.add_column(heading, justify="left" if heading == "method" else "right")
    for method in result["methods"]:
        cells = [
            f"{method['scores'][name]['value']:.3f} ({method['scores'][name]['low']:.3f}-"
            f"{method['scores'][name]['high']:.3f})"
            for name in shown
        ]
        stable = "" if method["stability"] is None else f"{method['stability']['value']:.2f}"
        grid.add_row(method["title"], f"{method['n_features']:,}", *cells, stable)
    console.print(grid, markup=False)
    say()
    if not result["answer"]["evidence"]:
        say("What the method picks when it must pick something; read it as noise:")
    _show_features(console, result)
    for note in _notes(result):
        say(f"note: {note}")
    where = f"\nreport: {out / 'report.html'}; everything: {out}/ ({result['seconds']:.1f} s)"
    console.print(where, markup=False, highlight=False, soft_wrap=True)


def _show_features(console: Console, result: dict[str, Any]) -> None:
    grid = Grid(box=None, pad_edge=False)
    for heading in ("rank", "feature", "selected in", "effect", "direction"):
        grid.add_column(heading, justify="right" if heading in ("rank", "effect") else "left", overflow="fold")
    for feature in result["features"][:SHOWN]:
        share = "" if feature["frequency"] is None else f"{feature['frequency']:.0%} of folds"
        value = feature.get("effect", {}).get("value")
        effect = "" if value is None else f"{value:.2f}"
        direction = _plain(feature.get("direction", ""))
        grid.add_row(str(feature["rank"]), _plain(feature["name"]), share, effect, direction)
    console.print(grid, markup=False)
    if result["n_features"] > SHOWN:
        console.print(f"... and {result['n_features'] - SHOWN} more in features.csv", markup=False, highlight=False)


def show_suspects(found: pd.DataFrame, findings: Sequence[Finding], target: str, out: Path) -> None:
    """The suspects, the most suspicious first."""
    from ..report.answer import LIKELY

    console = Console()
    worst = found[found["suspect"]].sort_values("suspicion", ascending=False, kind="stable")
    wrong = int((worst["suspicion"] >= LIKELY).sum())
    text = f"{many(len(found), 'sample')}: {many(wrong, 'label')} more likely wrong than right, "
    text += f"{len(worst) - wrong} more hard to place"
    console.print(text, markup=False, highlight=False)
    grid = Grid(box=None, pad_edge=False)
    named = ["row", *(["label"] if "label" in worst else []), target]
    for heading in (*named, "wrong with probability", "margin", "beyond it in"):
        grid.add_column(heading, justify="left" if heading in (target, "label") else "right", overflow="fold")
    for row in worst.head(SHOWN).to_dict("records"):
        share = f"{row['frequency']:.0%} of fits"
        cells = (_plain(str(row[name])) for name in named)
        grid.add_row(*cells, f"{row['suspicion']:.2f}", f"{row['margin']:.2f}", share)
    if len(worst):
        console.print(grid, markup=False)
    if len(worst) > SHOWN:
        console.print(f"... and {len(worst) - SHOWN} more", markup=False, highlight=False)
    for finding in findings:
        console.print(f"note: {finding.text}", markup=False, highlight=False)
    console.print(f"all samples: {out} (row 1 is the first after the header)", markup=False, highlight=False)


def _plain(text: str) -> Any:
    return Text(text)


def _notes(result: dict[str, Any]) -> list[str]:
    """What else a reader should know."""
    table = result["table"]
    notes = [finding["text"] for finding in result["findings"] if finding["level"] != "alarm"]
    if count := len(table["constant_columns"]):
        notes.append(f"{many(count, 'constant column')} left out")
    if count := len(table["equal_columns"]):
        notes.append(f"{many(count, 'group')} of columns that are equal to the last digit (result.json)")
    groups = result["groups"]
    notes += [f"{g['representative']!r} is nearly the same as {listing(g['members'], NAMED)}" for g in groups[:NAMED]]
    if len(groups) > NAMED:
        notes.append(f"{many(len(groups) - NAMED, 'more group')} of near-duplicates (result.json)")
    notes += [text for text in result["protocol"]["chosen"] if "longer than asked" in text]
    return notes


def show_study(study: Any, scores: Any, failures: Any, metric: str, out: Path) -> None:
    console = Console()
    shown = scores.assign(size=scores["size"].replace(0, "own"))
    table = shown.pivot_table(index=["data", "size"], columns="method", values=metric, sort=False)
    grid = Grid(box=None, pad_edge=False, title=metric.replace("_", " "), title_justify="left")
    if sum(max(len(str(name)), 5) + 2 for name in table.columns) > console.width - 30:
        _by_method(grid, table)
    else:
        for heading in ("data", "features", *table.columns):
            grid.add_column(_plain(str(heading)), justify="left" if heading == "data" else "right")
        for (data, size), row in table.iterrows():
            grid.add_row(_plain(str(data)), str(size), *("" if value != value else f"{value:.3f}" for value in row))
    console.print(grid, markup=False)
    for _, row in failures.iterrows():
        console.print(
            f"failed: {row.data}, {row.method}, split {row.split}: {row.error}", markup=False, highlight=False
        )
    if table.shape[1] > 1 and scores["data"].nunique() > 1 and not table.isna().to_numpy().any():
        compared = study.compare(metric)
        ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(compared.methods, compared.ranks, strict=True))
        console.print(f"\naverage ranks: {ranks}", markup=False, highlight=False)
        console.print(
            f"Friedman p = {compared.p_value:.3g}, critical difference {compared.critical_difference:.2f}",
            highlight=False,
        )
    console.print(f"study: {out}/results.sqlite", markup=False, highlight=False)


def _by_method(grid: Grid, table: pd.DataFrame) -> None:
    """Where the methods do not fit beside each other: a row for each, over data sets and sizes."""
    for heading in ("method", "mean", "standard error", "lowest", "highest", "of"):
        grid.add_column(heading, justify="left" if heading == "method" else "right")
    for name, values in table.agg(["mean", "sem", "min", "max", "count"]).items():
        *statistics, count = values.astype(float)
        grid.add_row(_plain(str(name)), *(f"{value:.3f}" for value in statistics), f"{count:.0f}")


def show_prediction(found: Prediction, model: SVMSelector, out: Path | None) -> None:
    """How many samples each class gets, and what to know about them."""
    console, frame = Console(), found.table
    say: Any = lambda text="": console.print(text, markup=False, highlight=False)  # noqa: E731
    counts = ", ".join(f"{label}: {count}" for label, count in frame["predicted"].value_counts().items())
    say(f"{many(len(frame), 'sample')} ({counts}) by a model of {many(model.n_features_, 'feature')}")
    if "probability" in frame and len(model.classes_) == 2:
        say(f"the probability is that of {model.positive_!s}; the score is cut at 0, which need not be one half")
    for note in found.notes:
        say(f"note: {note}")
    say(f"predictions: {out}")
