"""The command `marginsieve`: parse, call, write."""

from __future__ import annotations

import json
import shlex
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import InputError, check_n_jobs
from ..studies.options import read_names
from . import arguments
from .arguments import READING, RenamedOptions, with_reading_options, with_study_options
from .console import (
    say,
    show_changes,
    show_grid,
    show_prediction,
    show_recovered,
    show_result,
    show_study,
    show_suspects,
    show_validation,
)
from .guard import exit_code_of
from .progress import show_progress

if TYPE_CHECKING:
    from ..contracts import Progress

SELDOM = 30.0  # seconds between two lines of what may take days
ALIGN_HELP = (
    "How columns are brought to the scale of the training rows by the cohort's own rows: none, location, "
    "location-scale or quantiles."
)
PREVALENCE_HELP = "Share of the class of interest in the cohort's population, as you know it; for aligned columns."
EXPLAIN_HELP = "Add what each feature adds to a row's score (adds_NAME), and the score at the baseline (base)."
CUT_HELP = "Offer a model with another cut: prevalence, sensitivity:0.9, specificity:0.9 or probability:0.2."


def _set_umask(follow: bool) -> None:
    """Of the files of this command."""
    from ..data.file_access import set_follow_umask

    set_follow_umask(follow)


Figures = Annotated[Path | None, Option(help="A folder for the charts, as SVG and as PNG with 300 dots per inch.")]
Tables = Annotated[
    Path | None, Option(help="A folder for tables (LaTeX, HTML, CSV), the numbers of the charts, and TRIPOD+AI.")
]
FollowUmask = Annotated[bool, Option("--follow-umask", callback=_set_umask, help=arguments.HELP["follow_umask"])]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def _version(shown: bool) -> None:
    if shown:
        from importlib.metadata import version

        typer.echo(f"marginsieve {version('marginsieve')}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[  # noqa: ARG001, its callback ends the command
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Finds the few features that matter in a hard table and says honestly how well they predict."""
    from ..data.file_access import sweep

    sweep()


@app.command(cls=RenamedOptions)
@with_study_options
def select(
    table: Annotated[Path, Argument(help="A CSV, TSV, Excel, Parquet, Feather or AnnData file, one row per sample.")],
    target: Annotated[str, Option(help="The column that holds the class, the number, or whether the event came.")],
    out: Annotated[Path, Option(help="The folder for the results.")] = Path("marginsieve-result"),
    options: Annotated[
        Path | None,
        Option(help="Options by their names, in a TOML file or those of a result folder; those given here win."),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Refuse to start anew.")] = False,
    fresh: Annotated[bool, Option("--fresh", help="Delete the finished folds of an earlier run.")] = False,
    truth: Annotated[
        Path | None, Option(help="What was planted (.truth.json of `marginsieve cohort`): say what was found of it.")
    ] = None,
    figures: Figures = None,
    tables: Tables = None,
    as_json: Annotated[bool, Option("--json", help="Print result.json and nothing else.")] = False,
    **words: Any,
) -> None:
    """Select features, score the procedure by nested cross-validation, write a report; the same command resumes."""
    from ..engine.store import begin, forget_empty, read_mark
    from ..report import check_drawing
    from ..studies import files
    from ..studies.running import run_study
    from ..studies.study_data import find_label

    since = time.perf_counter()
    study_options = arguments.study_options(words, options)
    study_options.check()
    _set_umask(study_options.follow_umask)
    if figures is not None:
        check_drawing()
    new_folder, new_mark = not out.exists(), read_mark(out) is None
    planted = None if truth is None else arguments.truth_of(truth)

    announce = None if as_json else partial(say, stderr=True)
    try:
        with show_progress(in_seconds=True) as progress:
            reading = {name: words.get(name) or getattr(study_options, name, None) for name in READING}
            data = arguments.study_table(table, target, study_options, reading)
            label, annotated = find_label(data, study_options.positive), table.suffix.lower() == ".h5ad"
            files.check_folder(out, table if annotated else None)
            arguments.say_deleted(begin(out, "study", resume, fresh))
            command = arguments.say_replaced(out, shlex.join(["marginsieve", *sys.argv[1:]]))
            work = replace(study_options, positive=label, progress=progress, folder=out)
            auto_jobs = work.n_jobs is None
            study = run_study(data, work, auto_jobs=auto_jobs, command=command, announce=announce, since=since)
            progress("writing", 1.0, 1.0)
            study.save(out)
            if annotated:
                files.write_back(table, out, study.features, study.result)
            files.write_exports(study.result, figures, tables)
    except InputError:
        forget_empty(out, new_folder, new_mark)
        raise
    if as_json:
        sys.stdout.write((out / "result.json").read_text(encoding="utf-8"))
    else:
        show_result(study.result, out)
        if planted is not None:
            show_recovered(planted, study.model.get_feature_names_out(), study.suspects)


@app.command()
def report(
    folder: Annotated[Path, Argument(help="A folder that `marginsieve select` wrote.")],
    out: Annotated[Path | None, Option(help="Where to write the page; report.html in the folder.")] = None,
    aggregate: Annotated[
        bool,
        Option("--aggregate", help="Draw a page without rows, ids and values of single rows; aggregate.html."),
    ] = False,
    figures: Figures = None,
    tables: Tables = None,
    force: Annotated[bool, Option("--force", help="Replace a file that this command did not write.")] = False,
    follow_umask: FollowUmask = False,  # noqa: ARG001, its callback sees to it, here and below
) -> None:
    """Draw the report of a result folder again, from its result.json alone."""
    from ..report import render
    from ..studies import files
    from ..studies.aggregate import without_rows

    result = files.current_result(folder)
    result = without_rows(result) if aggregate else result
    page = render(result)
    path = out or folder / ("aggregate.html" if aggregate else "report.html")
    files.check_replaced(path, force)
    files.write_page(path, page)
    typer.echo(f"report: {path}")
    for written in files.write_exports(result, figures, tables):
        typer.echo(f"written: {written}")


@app.command()
@with_reading_options
def validate(
    result: Annotated[Path, Argument(help="A folder that `marginsieve select` wrote, or a model.marginsieve.")],
    tables: Annotated[list[Path], Argument(help="New cohorts with their outcomes, a file each.")],
    target: Annotated[
        str | None, Option(help="The column that holds the outcome; by default that of the study.")
    ] = None,
    out: Annotated[Path, Option(help="The folder for the page, the tables and adapted models.")] = Path(
        "marginsieve-validation"
    ),
    align: Annotated[str | None, Option(help=ALIGN_HELP)] = None,
    prevalence: Annotated[float | None, Option(help=PREVALENCE_HELP)] = None,
    recalibrate: Annotated[
        bool, Option("--recalibrate", help="Offer a model whose probabilities are fitted to the cohort.")
    ] = False,
    cut: Annotated[str | None, Option(help=CUT_HELP)] = None,
    long: Annotated[bool, Option("--long", help="Score the model of the longer list.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print validation.json and nothing else.")] = False,
    follow_umask: FollowUmask = False,  # noqa: ARG001
    **reading: Any,
) -> None:
    """Score a saved model on new cohorts, beside what was promised; nothing is fitted again, whatever the score."""
    from ..data.reading import read_table
    from ..engine.store import forget_empty, read_mark
    from ..studies import files
    from ..validation import claim_folder, join_validations
    from ..validation import validate as score
    from ..validation.cohort_check import ValidationRequest

    promise, _ = files.model_and_promise(result, long)
    column = target or (None if promise is None else promise["table"]["target"])
    if column is None:
        raise InputError(f"{result} is a model without its study: name the column of the outcome (--target)")
    names = arguments.cohort_names(tables)
    options: dict[str, Any] = {"align": align, "prevalence": prevalence, "recalibrate": recalibrate, "cut": cut}
    ValidationRequest(**options).check()
    new_folder, new_mark = not out.exists(), read_mark(out) is None
    claim_folder(out, names)
    known, refused = [], {}
    for path, name in zip(tables, names, strict=True):
        try:
            frame = read_table(path, target=column, whole=True, **reading)
            _, model = files.model_and_promise(result, long, frame.columns)
            times = None if promise is None else promise["options"]["time"]
            outcome = arguments.outcome_of(frame, column, path, model, times)
            known.append(score(model, frame, outcome, promise=promise, name=name, **options))
        except InputError as error:
            refused[name] = str(error) if path.name in str(error) else f"{path}: {error}"
    if not known:
        forget_empty(out, new_folder, new_mark)
        raise InputError("\n".join(refused.values()))
    joined = join_validations(known)
    joined.result["refused"] = refused
    joined.result["how"]["command"] = shlex.join(["marginsieve", *sys.argv[1:]])
    joined.save(out)
    if as_json:
        sys.stdout.write((out / "validation.json").read_text(encoding="utf-8"))
    else:
        show_validation(joined.result, out)
    if refused:
        raise typer.Exit(1)


@app.command()
@with_reading_options
def predict(
    model: Annotated[Path, Argument(help="The model.marginsieve of a result folder.")],
    table: Annotated[Path, Argument(help="New samples: CSV, TSV, Excel, Parquet, Feather or AnnData.")],
    out: Annotated[Path | None, Option(help="The predictions (.csv); predicted.csv, with --json no file.")] = None,
    align: Annotated[str, Option(help=f"{ALIGN_HELP} Nothing is aligned without it.")] = "none",
    prevalence: Annotated[float | None, Option(help=PREVALENCE_HELP)] = None,
    horizon: Annotated[
        float | None, Option(help="Time up to which survival is predicted; by default that of the study.")
    ] = None,
    explained: Annotated[bool, Option("--explain", help=EXPLAIN_HELP)] = False,
    force: Annotated[bool, Option("--force", help="Replace a file that this command did not write.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the predictions as JSON and nothing else.")] = False,
    follow_umask: FollowUmask = False,  # noqa: ARG001
    **reading: Any,
) -> None:
    """Predict new samples with a saved model; columns are matched by name."""
    from ..data.ledger import Ledger
    from ..data.reading import read_table
    from ..estimators.explanations import explain
    from ..estimators.fitted_selector import align_model
    from ..estimators.fitted_selector import predict as say
    from ..estimators.persistence import load
    from ..studies import files

    path = out or (None if as_json else Path("predicted.csv"))
    if path is not None:
        arguments.check_csv(path, table)
        files.check_replaced(path, force, "predicted")
    ledger = Ledger()
    new = read_table(table, whole=True, ledger=ledger, **reading)
    fitted = files.model_and_promise(model, False, new.columns)[1] if (model / "result.json").exists() else load(model)
    prediction = say(fitted, new, align, prevalence, horizon)
    labels = arguments.find_outcomes(model, new, fitted)
    frame = prediction.table.reset_index(drop=True)
    frame.insert(0, "row", range(1, len(frame) + 1))
    for place, name in enumerate(arguments.ids_among(new.columns, fitted.columns_.names, frame.columns), 1):
        frame.insert(place, name, new[name].to_numpy())
    if explained:
        known = explain(fitted if align == "none" else align_model(fitted, new, align, prevalence), new)
        frame, labels = known.join_to(frame), [*labels, known.words]
    if path is not None:
        files.write_csv(frame, path)
    if as_json:
        rows = json.loads(frame.to_json(orient="records", default_handler=str))
        notes = [*prediction.notes, *labels]
        sys.stdout.write(json.dumps({"notes": notes, "rows": rows}, allow_nan=False) + "\n")
    else:
        show_prediction(prediction, fitted, path, labels)
        show_changes(ledger.count())


@app.command(cls=RenamedOptions)
def bench(
    suite: Annotated[Path, Argument(help=r"A TOML file: \[\[data]], \[\[method]], protocol.")],
    out: Annotated[Path, Option(help="The folder of the study; the same folder resumes.")],
    n_jobs: Annotated[
        int | None, Option(help="Worker processes; one per core where there are many units, -1 is one per core.")
    ] = None,
    device: Annotated[
        str, Option(help="Where many searches at once are run: cpu, cuda, or auto for a GPU where it gains.")
    ] = "cpu",
    cluster: Annotated[str | None, Option(help="A Dask scheduler, tcp://host:port, instead of --n-jobs.")] = None,
    resume: Annotated[bool, Option("--resume", help="Refuse to start anew.")] = False,
    fresh: Annotated[bool, Option("--fresh", help="Delete what the folder holds and start over.")] = False,
    load: Annotated[str | None, Option(help="A Python module that registers tables and protocols by name.")] = None,
    verify: Annotated[bool, Option("--verify", help="Run nothing: look at the checksum of every stored unit.")] = False,
    metric: Annotated[
        str | None, Option(help="The metric to show; balanced_accuracy, r2 or c by default, as the suite's outcome is.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print the scores as JSON and nothing else.")] = False,
    follow_umask: FollowUmask = False,  # noqa: ARG001
) -> None:
    """Run methods x data sets x a protocol, and compare the methods."""
    from ..bench.results import PAGE
    from ..bench.suite import Suite, run_suite
    from ..engine.store import begin, publish

    check_n_jobs(n_jobs)
    if verify:
        arguments.say_verified(out)
        return
    if load is not None:
        arguments.load_module(load)
    chosen_suite = Suite.read(suite).on_device(device)
    arguments.say_deleted(begin(out, "suite", resume, fresh))
    with show_progress(SELDOM) as progress:
        watch = partial(_show_units, progress, chosen_suite.name)
        study = run_suite(chosen_suite, out, n_jobs=n_jobs, cluster=cluster, progress=watch)
    metric = study.main_metric() if metric is None else metric
    scores, failures = study.scores(metric), study.failures()
    publish(out, "suite", {PAGE: study.html(metric).encode()})
    if as_json:
        sys.stdout.write(scores.to_json(orient="records", indent=2) + "\n")
    else:
        show_study(study, scores, failures, metric, out)
    if len(failures):
        raise typer.Exit(1)


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce() -> None:
    """Say where the reproductions of the papers went."""

    raise InputError(
        "reproduce is not part of the package: in a clone of the repository it is python -m reproduction NAME, or "
        "make reproduce ARGS=NAME"
    )


@app.command()
def methods(
    as_json: Annotated[bool, Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the methods and the outcomes that they take."""
    from .. import recipes

    headings = ("method", "outcomes", "what it does", "source")
    entries = [
        (recipe.title, ", ".join(sorted(recipe.outcomes)), recipe.does, recipe.source)
        for recipe in recipes.RECIPES.values()
    ]
    if as_json:
        keys = ("name", "outcomes", "does", "source")
        sys.stdout.write(json.dumps([dict(zip(keys, each, strict=True)) for each in entries], indent=2) + "\n")
        return
    show_grid(headings, entries, left=headings, overflow="fold", no_wrap=("method",))


@app.command(cls=RenamedOptions)
@with_reading_options
def suspects(
    table: Annotated[Path, Argument(help="A CSV, TSV, Excel, Parquet, Feather or AnnData file, one row per sample.")],
    target: Annotated[str, Option(help="The column that holds the class.")],
    groups: Annotated[
        str | None, Option(help="A column whose equal values are judged together, such as a patient.")
    ] = None,
    drop: Annotated[str, Option(help="Columns that are not features, such as ids, separated by commas.")] = "",
    clean_rate: Annotated[
        float | None, Option(help="At most this share of the correct labels is expected among the suspects; 0.05.")
    ] = None,
    out: Annotated[Path, Option(help="The table of all samples (.csv).")] = Path("suspects.csv"),
    random_state: Annotated[int, Option(help="The same seed gives the same result.", min=0)] = 0,
    n_jobs: Annotated[int, Option(help="Worker processes; -1 is one per core.")] = 1,
    force: Annotated[bool, Option("--force", help="Replace a file that this command did not write.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the samples as JSON and nothing else.")] = False,
    follow_umask: FollowUmask = False,  # noqa: ARG001
    **reading: Any,
) -> None:
    """Name the samples whose label is likely to be wrong, each with its probability."""
    from ..data.ledger import Ledger
    from ..data.reading import read_table
    from ..studies import files
    from ..studies.study_data import judge_table

    check_n_jobs(n_jobs)
    arguments.check_csv(out, table)
    files.check_replaced(out, force, "suspicion")
    ledger = Ledger()
    frame = read_table(table, target=target, groups=groups, ledger=ledger, **reading)
    settings: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    settings |= {} if clean_rate is None else {"clean_rate": clean_rate}
    judged, findings = judge_table(frame, target, groups=groups, drop=read_names(drop), ledger=ledger, **settings)
    files.write_csv(judged, out)
    if as_json:
        sys.stdout.write(judged.to_json(orient="records", indent=2) + "\n")
    else:
        show_suspects(judged, findings, out)
        show_changes(ledger.count())


@app.command(cls=RenamedOptions)
def cohort(
    path: Annotated[Path, Argument(help="Where to write the table (.csv); the truth goes beside it (.truth.json).")],
    n_samples: Annotated[int, Option(help="Rows.")] = 120,
    n_features: Annotated[int, Option(help="Numeric columns.")] = 2000,
    n_relevant: Annotated[int, Option(help="Columns that the outcome depends on.")] = 10,
    n_redundant: Annotated[int, Option(help="Noisy copies of relevant columns.")] = 5,
    prevalence: Annotated[float | None, Option(help="Share of cases, of classes alone; by default 0.25.")] = None,
    effect: Annotated[
        float, Option(help="Of a relevant column, in standard deviations or logarithms of hazards.")
    ] = 1.5,
    flip: Annotated[float, Option(help="Share of wrong labels, or of outcomes that are those of other rows.")] = 0.0,
    n_categorical: Annotated[int, Option(help="Columns of categories.")] = 0,
    n_categorical_relevant: Annotated[int, Option(help="Those of them that the outcome depends on.")] = 0,
    missing: Annotated[float, Option(help="Share of empty cells.")] = 0.0,
    outcome: Annotated[str, Option(help="classes, numbers or survival.")] = "classes",
    censored: Annotated[float | None, Option(help="Share of events not seen, of survival; by default 0.3.")] = None,
    n_censoring: Annotated[int, Option(help="Columns that the censoring depends on and the event does not.")] = 0,
    random_state: Annotated[int, Option(help="The same seed gives the same table.", min=0)] = 0,
) -> None:
    """Generate a table with a known truth; its target is the column `outcome`, of survival `time` and `event`."""
    settings: dict[str, Any] = {name: value for name, value in locals().items() if name != "path"}
    if outcome == "classes" and prevalence is None:
        settings["prevalence"] = 0.25
    from ..data import make_cohort

    arguments.check_cells(n_samples, n_features + max(n_categorical, 0))
    table = make_cohort(**settings)
    truth = path.with_suffix(".truth.json")
    arguments.write_cohort(path, truth, table.frame().round(5), table.truth.to_dict())
    typer.echo(f"{n_samples} rows, {n_features + n_categorical} columns: {path}; what was planted: {truth}")


def run() -> int:
    """The command line of this process; its exit code."""
    return exit_code_of(partial(app, standalone_mode=False))


def main() -> None:
    """The command within a process that sees to signals itself."""
    sys.exit(run())


def _show_units(progress: Progress, label: str, done: int, total: int, failed: int) -> None:
    """Units of a suite as progress."""
    progress(f"{label}, {done} of {total}" + (f", {failed} failed" if failed else ""), done, total)
