"""What the command prints of its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from .errors import listing

if TYPE_CHECKING:
    import pandas as pd

    from .prediction import Prediction
    from .selector import SVMSelector
    from .study import Selection

SHOWN = 20  # features in the printed table
NAMED = 3  # groups of near-duplicates that a note names


def show_selection(selection: Selection, out: Path) -> None:
    from .evaluation import METRICS

    console = Console()
    result = selection.to_dict()
    say: Any = lambda text="": console.print(text, markup=False, highlight=False)  # noqa: E731
    table, scores = result["table"], result["scores"]
    classes = ", ".join(f"{count} {label}" for label, count in table["classes"].items())
    about = f"; positive class: {table['positive']}" if len(table["classes"]) == 2 else ""
    say(f"{table['rows']} rows ({classes}), {table['features']} features{about}")
    sizes = result["n_features_over_folds"]
    say(
        f"{result['method'].replace('_', '-')} selects {_many(result['n_features'], 'feature')} "
        f"(over the outer folds: median {sizes['median']:g}, {sizes['smallest']} to {sizes['largest']})"
    )
    if result["own_number"]:
        say(f"its own number: {result['stop_reason']}")
    say()
    grid = Grid(box=None, pad_edge=False)
    for heading in ("nested score", "value", "95 % interval"):
        grid.add_column(heading, justify="left" if heading == "nested score" else "right")
    for name, score in scores.items():
        grid.add_row(METRICS[name], f"{score['value']:.3f}", f"{score['low']:.3f} to {score['high']:.3f}")
    console.print(grid, markup=False)
    say()
    grid = Grid(box=None, pad_edge=False)
    for heading in ("rank", "feature", "score", "selected in"):
        grid.add_column(heading, justify="left" if heading == "feature" else "right", overflow="fold")
    for feature in result["features"][:SHOWN]:
        share = f"{feature['frequency']:.0%} of folds"
        grid.add_row(str(feature["rank"]), _plain(feature["name"]), f"{feature['score']:.3g}", share)
    console.print(grid, markup=False)
    if len(result["features"]) > SHOWN:
        say(f"... and {len(result['features']) - SHOWN} more in features.csv")
    if result["suspects"]:
        rows = listing([entry["sample"] for entry in result["suspects"]])
        say(f"labels that the machine does not believe: sample {rows}; `marginsieve suspects` judges them all")
    for note in _doubts(result):
        say(f"note: {note}")
    say(f"\nresults: {out}/ (result.json, features.csv, predictions.csv, model.skops); {result['seconds']:.1f} s")


def show_suspects(found: pd.DataFrame, target: str, out: Path) -> None:
    """The suspects, the most suspicious first."""
    console = Console()
    worst = found[found["suspect"]].sort_values("suspicion", ascending=False, kind="stable")
    text = f"{_many(len(found), 'sample')}, {_many(len(worst), 'suspect label')}"
    console.print(text, markup=False, highlight=False)
    grid = Grid(box=None, pad_edge=False)
    for heading in ("row", target, "wrong with probability", "margin", "beyond it in"):
        grid.add_column(heading, justify="left" if heading == target else "right", overflow="fold")
    for row in worst.head(SHOWN).to_dict("records"):
        share = f"{row['frequency']:.0%} of fits"
        grid.add_row(
            str(row["row"]), _plain(str(row[target])), f"{row['suspicion']:.2f}", f"{row['margin']:.2f}", share
        )
    if len(worst):
        console.print(grid, markup=False)
    if len(worst) > SHOWN:
        console.print(f"... and {len(worst) - SHOWN} more", markup=False, highlight=False)
    console.print(f"all samples: {out} (row 1 is the first after the header)", markup=False, highlight=False)


def _plain(text: str) -> Any:
    return Text(text)


def _many(count: int, thing: str) -> str:
    """'1 feature', '2 features'."""
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _doubts(result: dict[str, Any]) -> list[str]:
    """What a reader should know before believing the numbers."""
    doubts = list(result["notes"])
    table, balanced = result["table"], result["scores"]["balanced_accuracy"]
    if balanced["low"] <= 1 / len(table["classes"]):
        doubts.append("the interval of the balanced accuracy reaches chance: no evidence that these features predict")
    if count := len(table["constant_columns"]):
        doubts.append(f"{_many(count, 'constant column')} left out")
    if count := len(table["equal_columns"]):
        doubts.append(f"{_many(count, 'group')} of columns that are equal to the last digit (result.json)")
    groups = result["groups"]
    doubts += [f"{g['representative']!r} is nearly the same as {listing(g['members'], NAMED)}" for g in groups[:NAMED]]
    if len(groups) > NAMED:
        doubts.append(f"{_many(len(groups) - NAMED, 'more group')} of near-duplicates (result.json)")
    return doubts


def show_study(study: Any, scores: Any, failures: Any, metric: str, out: Path) -> None:
    console = Console()
    shown = scores.assign(size=scores["size"].replace(0, "own"))
    table = shown.pivot_table(index=["data", "size"], columns="method", values=metric, sort=False)
    grid = Grid(box=None, pad_edge=False, title=metric.replace("_", " "), title_justify="left")
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


def show_prediction(found: Prediction, model: SVMSelector, out: Path) -> None:
    """How many samples each class gets, and what to know about them."""
    console, frame = Console(), found.table
    say: Any = lambda text="": console.print(text, markup=False, highlight=False)  # noqa: E731
    counts = ", ".join(f"{count} {label}" for label, count in frame["predicted"].value_counts().items())
    say(f"{_many(len(frame), 'sample')}: {counts} (model of {_many(model.n_features_, 'feature')})")
    for note in found.notes:
        say(f"note: {note}")
    say(f"predictions: {out}")
