"""What the command prints of its results."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ..errors import listing, many

if TYPE_CHECKING:
    import pandas as pd

    from ..bench.statistics import Comparison
    from ..data.cohort import Truth
    from ..estimators.fitted_selector import FittedSelector, Prediction
    from ..studies.checks import Finding

SHOWN = 20  # features in the printed table
NAMED = 3  # groups of near-duplicates that a note names


def say(text: str = "", stderr: bool = False, soft_wrap: bool = False) -> None:
    """A line as it is: nothing in it is markup."""
    Console(stderr=stderr).print(text, markup=False, highlight=False, soft_wrap=soft_wrap)


def show_grid(
    headings: Iterable[str],
    rows: Iterable[Iterable[Any]],
    left: Container[str],
    overflow: Any = "ellipsis",
    no_wrap: Container[str] = (),
    title: str | None = None,
) -> None:
    """A table without lines; the columns `left` are aligned to the left, numbers to the right."""
    grid = Grid(box=None, pad_edge=False, title=title, title_justify="left")
    for name in headings:
        justify: Any = "left" if name in left else "right"
        grid.add_column(Text(name), justify=justify, overflow=overflow, no_wrap=name in no_wrap)
    for row in rows:
        grid.add_row(*row)
    Console().print(grid, markup=False)


def show_result(result: dict[str, Any], out: Path) -> None:
    """The answer in words, the methods compared, the first features, what to doubt."""
    from ..report.numbers import format_score

    table = result["table"]
    about = "".join(f"; {text}" for text in (result["words"]["interest"],) if text)
    say(f"{table['rows']} rows ({result['words']['rows']}), {table['features']} features{about}")
    for sentence in (result["answer"]["headline"], *result["answer"]["sentences"]):
        say(sentence)
    for doubt in result["findings"]:
        if doubt["level"] == "alarm":
            Console().print(Text.assemble(("doubt: ", "bold yellow"), doubt["text"], (f" [{doubt['code']}]", "dim")))
    if result["chosen_by_method"]:
        say(f"number of features chosen by the method: {result['stop_reason']}")
    say()
    shown = result["listed_scores"]
    rows = []
    for method in result["methods"]:
        scores = [method["scores"][name] for name in shown]
        cells = ["{} ({})".format(*format_score(score, 3)) for score in scores]
        stable = "" if method["stability"] is None else f"{method['stability']['value']:.2f}"
        rows.append((method["title"], f"{method['n_features']:,}", *cells, stable))
    show_grid(("method", "features", *(result["metrics"][name] for name in shown), "stability"), rows, left=("method",))
    say()
    if not result["answer"]["evidence"]:
        say("What the method picks when it must pick something:")
    _show_features(result)
    for note in _notes(result):
        say(f"note: {note}")
    show_changes(result["ledger"]["counts"], f"; each has its place in {out / 'ledger.csv'}")
    say(f"\nreport: {out / 'report.html'}; everything: {out}/ ({result['seconds']:.1f} s)", soft_wrap=True)


def show_changes(counts: dict[str, int], places: str = "") -> None:
    """How much was changed in a table while it was read."""
    from ..data.ledger import format_counts

    if counts:
        say(f"changed while reading: {format_counts(counts)}{places}")


def _show_features(result: dict[str, Any]) -> None:
    rows = []
    for feature in result["features"][:SHOWN]:
        share = "" if feature["frequency"] is None else f"{feature['frequency']:.0%}"
        value = feature.get("effect", {}).get("value")  # of an analysis, which may have been left out
        effect, direction = "" if value is None else f"{value:.2f}", Text(feature.get("direction", ""))
        rows.append((str(feature["rank"]), Text(feature["name"]), feature["part"], share, effect, direction))
    left = ("name", "part", "direction")
    show_grid(("rank", "name", "part", "frequency", "effect", "direction"), rows, left=left, overflow="fold")
    if result["n_features"] > SHOWN:
        say(f"... and {result['n_features'] - SHOWN} more in features.csv")


def show_suspects(judged: pd.DataFrame, findings: Sequence[Finding], out: Path) -> None:
    """The suspects, the most suspicious first."""
    worst = judged[judged["suspect"]]
    say(f"{many(len(judged), 'sample')}: {many(len(worst), 'label')} more likely wrong than right")
    names = [name for name in ("row", "id", "group", "label") if name in worst]
    rows = [
        (*(Text(str(row[name])) for name in names), f"{row['suspicion']:.2f}", f"{row['margin']:.2f}")
        for row in worst.head(SHOWN).to_dict("records")
    ]
    if rows:
        show_grid((*names, "suspicion", "margin"), rows, left=("id", "group", "label"), overflow="fold")
    if len(worst) > SHOWN:
        say(f"... and {len(worst) - SHOWN} more")
    for finding in findings:
        say(f"note: {finding.text}")
    say(f"all samples: {out} (row 1 is the first after the header)")


def _notes(result: dict[str, Any]) -> list[str]:
    """What else a reader should know."""
    table = result["table"]
    notes = [finding["text"] for finding in result["findings"] if finding["level"] != "alarm"]
    if count := len(table["constant_columns"]):
        notes.append(f"{many(count, 'constant or empty column')} left out")
    if count := len(table["equal_columns"]):
        notes.append(f"{many(count, 'group')} of columns that are equal to the last digit (result.json)")
    groups = result["groups"]
    notes += [f"{g['representative']!r} is nearly the same as {listing(g['members'], NAMED)}" for g in groups[:NAMED]]
    if len(groups) > NAMED:
        notes.append(f"{many(len(groups) - NAMED, 'more group')} of near-duplicates (result.json)")
    notes += [text for text in result["protocol"]["chosen"] if "longer than asked" in text]
    return notes


def show_study(study: Any, scores: Any, failures: Any, metric: str, out: Path) -> None:
    shown = scores.assign(size=scores["size"].replace(0, "own"))
    table = shown.pivot_table(index=["data", "size"], columns="method", values=metric, sort=False)
    title = metric.replace("_", " ")
    if sum(max(len(str(name)), 5) + 2 for name in table.columns) > Console().width - 30:  # a row for each method
        rows = []
        for name, values in table.agg(["mean", "sem", "min", "max", "count"]).items():
            *statistics, count = values.astype(float)
            rows.append((Text(str(name)), *(f"{value:.3f}" for value in statistics), f"{count:.0f}"))
        headings = ["method", "mean", "standard error", "lowest", "highest", "of"]
        show_grid(headings, rows, left=("method",), title=title)
    else:
        rows = [
            (Text(str(data)), str(size), *("" if value != value else f"{value:.3f}" for value in row))
            for (data, size), row in table.iterrows()
        ]
        show_grid(["data", "features", *map(str, table.columns)], rows, left=("data",), title=title)
    for _, row in failures.iterrows():
        say(f"failed: {row.data}, {row.method}, split {row.split}: {row.error}")
    if table.shape[1] > 1 and scores["data"].nunique() > 1 and not table.isna().to_numpy().any():
        compared = study.compare(metric)
        ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(compared.methods, compared.ranks, strict=True))
        say(f"\naverage ranks: {ranks}")
        say(f"Friedman p = {compared.p_value:.3g}, critical difference {compared.critical_difference:.2f}")
        say(_tests(compared))
    say(f"study: {out}/results.sqlite; page: {out}/suite.html")


def _tests(compared: Comparison) -> str:
    """The p-values against the control that the suite names, or the pairs of methods that differ."""
    if compared.control is not None:
        rows = compared.table().dropna(subset="p_against_control").to_dict("records")
        values = ", ".join(f"{row['method']} {row['p_against_control']:.3g}" for row in rows)
        return f"p against the control {compared.control} (average ranks, Holm): {values}"
    pairs = compared.pairs()
    names = [
        f"{row['first']} and {row['second']}" for row in pairs[pairs["p_nemenyi"] <= compared.alpha].to_dict("records")
    ]
    differing = listing(names, SHOWN) if names else "none"
    return f"pairs that differ at {compared.alpha:.0%} (Nemenyi, all {len(pairs)} pairs): {differing}"


def show_recovered(truth: Truth, selected: Iterable[str], suspects: pd.DataFrame | None) -> None:
    """What was found of what was planted in a generated table."""
    listed = {str(name) for name in selected}
    right, wrong = listed & truth.features, listed - truth.features
    text = f"{len(right)} of {many(len(truth.features), 'feature')}, {len(wrong)} false"
    if suspects is not None and "suspect" in suspects:  # labels were declared fallible
        named, flipped = set(suspects.loc[suspects["suspect"], "row"] - 1), set(truth.flipped)
        text += f"; {len(named & flipped)} of {many(len(flipped), 'wrong label')}, "
        text += many(len(named - flipped), "false alarm")
    say(f"found of what was planted: {text}")


def show_validation(result: dict[str, Any], out: Path) -> None:
    """The sentences about each cohort, the scores beside what was promised, what was pooled."""
    from ..report.numbers import format_score

    promised = {} if result["promise"] is None else result["promise"]["scores"]
    for cohort in result["cohorts"]:
        say(f"{cohort['name']}: {many(cohort['labelled'], 'row')}")
        for sentence in cohort["sentences"]:
            say(sentence)
        for note in cohort["notes"]:
            say(f"note: {note}")
        rows = []
        for name, title in result["metrics"].items():
            scores = [promised.get(name), *(line["scores"].get(name) for line in cohort["lines"].values())]
            cells = ["" if score is None else "{} ({})".format(*format_score(score, 3)) for score in scores]
            rows.append((title, *cells))
        show_grid(("score", "promised", *(key.replace("_", " ") for key in cohort["lines"])), rows, left=("score",))
        say()
    for known in (result["pooled"] or {}).values():
        say(known["text"])
    for reason in result["refused"].values():
        say(f"not scored: {reason}")
    if result["not_pooled"]:
        say(result["not_pooled"])
    for cohort in result["cohorts"]:
        if cohort["files"]:
            files = listing(list(cohort["files"].values()), SHOWN)
            say(f"adapted models for {cohort['name']}, each marked with what was done: {files}")
    say(f"page: {out / 'validation.html'}; everything: {out}/", soft_wrap=True)


def show_prediction(prediction: Prediction, model: FittedSelector, out: Path | None, more: Sequence[str] = ()) -> None:
    """How many samples each class gets, or between which numbers they are, and what to know about them."""
    frame = prediction.table
    if hasattr(model, "classes_"):
        shown = ", ".join(f"{label}: {count}" for label, count in frame["predicted"].value_counts().items())
    else:
        shown = f"{frame['predicted'].min():.4g} to {frame['predicted'].max():.4g}"
    say(f"{many(len(frame), 'sample')} ({shown}) by a model of {many(model.n_features_, 'feature')}")
    if "low" in frame:
        say("low and high are the ends of an interval for each row, which is to hold 90 % of new rows")
    if "probability" in frame and len(model.classes_) == 2:
        say(f"the probability is that of {model.positive_!s}")
        say(f"a score above 0 means {model.classes_[1]!s}; the cut need not be a probability of one half")
    for note in (*prediction.notes, *more):
        say(f"note: {note}")
    say(f"predictions: {out}")
