"""The command `marginsieve`: parse, call, write."""

from __future__ import annotations

import json
import shlex
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from . import options
from .console import say, show_grid, show_prediction, show_recovered, show_result, show_study, show_suspects
from .guard import guarded
from .progress import shown

if TYPE_CHECKING:
    from ..contracts import Progress

SELDOM = 30.0  # seconds between two lines of what may take days

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
    from ..data.scratch import sweep

    sweep()


@app.command()
def select(
    table: Annotated[Path, Argument(help="A CSV, TSV, Parquet, Feather or AnnData file, one row per sample.")],
    target: Annotated[str, Option(help="The column that holds the class.")],
    positive: Annotated[str | None, Option(help="The class of interest; the rarer one by default.")] = None,
    method: Annotated[
        str,
        Option(
            help="One or several of those that `marginsieve methods` lists, separated by commas, the one to present "
            "first; auto chooses by the shape of the table. All features are always run beside them."
        ),
    ] = "auto",
    minutes: Annotated[
        float | None,
        Option(help="How long it may take: the first folds, measured, decide how many methods and repeats are run."),
    ] = None,
    features: Annotated[
        str,
        Option(help="How many features (a method with a budget: at most), or auto: inner folds decide, or the method."),
    ] = "auto",
    groups: Annotated[str | None, Option(help="A column whose equal values stay together, such as a patient.")] = None,
    ids: Annotated[
        str,
        Option(help="Columns that tell rows apart, separated by commas; auto finds them, none: there are none."),
    ] = "auto",
    keep: Annotated[
        str,
        Option(help="Columns that are always selected, separated by commas (a name with a comma in double quotes)."),
    ] = "",
    drop: Annotated[str, Option(help="Columns that are not features, separated by commas.")] = "",
    prefilter: Annotated[
        str,
        Option(help="Search among the best columns of a filter only, such as fast:2000 or su:500; see the docs."),
    ] = "",
    ensemble: Annotated[
        int | None, Option(help="Average the ranking over this many subsamples: slower, more stable.", min=1)
    ] = None,
    kernel: Annotated[
        str | None, Option(help="linear, gaussian, polynomial or clinical, for methods that take one.")
    ] = None,
    max_samples: Annotated[int | None, Option(help="Train on at most this many rows; 5,000 above 10,000.")] = None,
    folds: Annotated[int, Option(help="Outer folds.", min=2)] = 5,
    repeats: Annotated[
        int | None,
        Option(help="How often the outer folds are drawn; 3 (1 from 1,000 rows on), or by --minutes.", min=1),
    ] = None,
    judge: Annotated[bool, Option("--suspects/--no-suspects", help="Judge every label.")] = True,
    references: Annotated[
        bool, Option("--references/--no-references", help="Score common models of scikit-learn for reference.")
    ] = True,
    permutations: Annotated[
        int, Option(help="Shuffles of the labels that test whether anything predicts, 24 or more.")
    ] = 99,
    intervals: Annotated[
        str, Option(help="simple, or nested: standard errors by nested cross-validation, about 3 times as long.")
    ] = "simple",
    false_share: Annotated[
        float | None, Option(help="Take the longest list with at most this share of false features, such as 0.1.")
    ] = None,
    stand_ins: Annotated[
        bool, Option("--substitutes/--no-substitutes", help="Test which columns could stand in for selected ones.")
    ] = True,
    alternatives: Annotated[
        int | None, Option(help="How many lists that differ to make; 5, or none where that takes long.", min=0)
    ] = None,
    costs: Annotated[
        Path | None, Option(help="A table of columns and what they cost: find the cheapest list that predicts as well.")
    ] = None,
    out: Annotated[Path, Option(help="The folder for the results.")] = Path("marginsieve-result"),
    seed: Annotated[int, Option(help="The same seed gives the same result.", min=0)] = 0,
    jobs: Annotated[
        int | None, Option(help="Worker processes; one per core where that is faster, -1 is one per core.")
    ] = None,
    device: Annotated[
        str, Option(help="Where many searches at once are run: cpu, cuda, or auto for a GPU where it gains.")
    ] = "cpu",
    separator: Annotated[str | None, Option(help="Between the fields of a text file; found out by default.")] = None,
    decimal: Annotated[str | None, Option(help="A point or a comma in numbers; found out by default.")] = None,
    encoding: Annotated[str | None, Option(help="Of a text file; found out by default.")] = None,
    resume: Annotated[bool, Option("--resume", help="Refuse to start anew.")] = False,
    fresh: Annotated[bool, Option("--fresh", help="Delete the finished folds of an earlier run.")] = False,
    plan: Annotated[
        Path | None,
        Option(help="A result folder: run what its --minutes decided, on any machine with the same result."),
    ] = None,
    truth: Annotated[
        Path | None, Option(help="What was planted (.truth.json of `marginsieve cohort`): say what was found of it.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print result.json and nothing else.")] = False,
) -> None:
    """Select features, score the procedure by nested cross-validation, write a report; the same command resumes."""
    from ..data.reading import read_table
    from ..engine.folders import read_mark
    from ..engine.store import begin, forget_empty
    from ..errors import InputError
    from ..studies import files
    from ..studies.files import write_back
    from ..studies.running import run_study
    from ..studies.selection import StudyOptions
    from ..studies.study_data import from_frame, label_of

    since = time.perf_counter()
    count, filtered = options.features_of(features), options.prefilter_of(prefilter)
    new_folder, new_mark = not out.exists(), read_mark(out) is None
    options.check_jobs(1 if jobs is None else jobs)
    planted = None if truth is None else options.truth_of(truth)
    prices = None if costs is None else options.costs_of(costs)

    def tell(text: str) -> None:
        if not as_json:
            say(text, stderr=True)

    try:
        with shown(in_seconds=True) as progress:
            frame = read_table(
                table, separator=separator, decimal=decimal, encoding=encoding, target=target, groups=groups
            )
            kept, dropped = tuple(options.names_of(keep)), options.names_of(drop)
            data = from_frame(frame, target, groups=groups, drop=dropped, ids=options.ids_of(ids), keep=kept)
            label = None if positive is None else label_of(data, positive)
            study_options = StudyOptions(
                *(label, count, kept, filtered, ensemble, seed, jobs, permutations, intervals, false_share),
                *(stand_ins, alternatives, prices, jobs is None, device),
            )
            settings = {"methods": method, "minutes": minutes, "kernel": kernel, "max_samples": max_samples}
            settings |= {"cv": folds, "n_repeats": repeats, "suspects": judge, "references": references}
            settings["plan"] = None if plan is None else files.current_result(plan)["protocol"]["plan"]
            annotated = table.suffix.lower() == ".h5ad"
            files.check_folder(out, table if annotated else None)
            options.say_deleted(begin(out, "study", resume, fresh))
            command = options.say_replaced(out, shlex.join(["marginsieve", *sys.argv[1:]]))
            study = run_study(data, study_options, settings, progress, out, command, tell, since)
            progress("writing", 1.0, 1.0)
            study.save(out)
            if annotated:
                write_back(table, out, study.features, study.result)
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
    force: Annotated[bool, Option("--force", help="Replace a file that this command did not write.")] = False,
) -> None:
    """Draw the report of a result folder again, from its result.json alone."""
    from ..report import render
    from ..studies import files

    page = render(files.current_result(folder))
    path = out or folder / "report.html"
    files.check_replaced(path, force)
    files.write_page(path, page)
    typer.echo(f"report: {path}")


@app.command()
def predict(
    model: Annotated[Path, Argument(help="The model.marginsieve of a result folder.")],
    table: Annotated[Path, Argument(help="New samples: CSV, TSV, Parquet, Feather or AnnData.")],
    out: Annotated[Path | None, Option(help="The predictions (.csv); predicted.csv, with --json no file.")] = None,
    force: Annotated[bool, Option("--force", help="Replace a file that this command did not write.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the predictions as JSON and nothing else.")] = False,
) -> None:
    """Predict new samples with a saved model; columns are matched by name."""
    from ..data.reading import read_table
    from ..estimators.persistence import load
    from ..estimators.prediction import predict as say
    from ..studies import files

    path = out or (None if as_json else Path("predicted.csv"))
    if path is not None:
        options.check_csv(path, table)
        files.check_replaced(path, force, "predicted")
    fitted, new = load(model), read_table(table, whole=True)
    prediction = say(fitted, new)
    frame = prediction.table.reset_index(drop=True)
    frame.insert(0, "row", range(1, len(frame) + 1))
    for place, name in enumerate(options.ids_among(new.columns, fitted.columns_.names, frame.columns), 1):
        frame.insert(place, name, new[name].to_numpy())
    if path is not None:
        files.write_csv(frame, path)
    if as_json:
        rows = json.loads(frame.to_json(orient="records", default_handler=str))
        sys.stdout.write(json.dumps({"notes": prediction.notes, "rows": rows}, allow_nan=False) + "\n")
    else:
        show_prediction(prediction, fitted, path)


@app.command()
def bench(
    suite: Annotated[Path, Argument(help=r"A TOML file: \[\[data]], \[\[method]], protocol.")],
    out: Annotated[Path, Option(help="The folder of the study; the same folder resumes.")],
    jobs: Annotated[
        int | None, Option(help="Worker processes; one per core where there are many units, -1 is one per core.")
    ] = None,
    device: Annotated[
        str, Option(help="Where many searches at once are run: cpu, cuda, or auto for a GPU where it gains.")
    ] = "cpu",
    cluster: Annotated[str | None, Option(help="A Dask scheduler, tcp://host:port, instead of --jobs.")] = None,
    resume: Annotated[bool, Option("--resume", help="Refuse to start anew.")] = False,
    fresh: Annotated[bool, Option("--fresh", help="Delete what the folder holds and start over.")] = False,
    load: Annotated[str | None, Option(help="A Python module that registers tables and protocols by name.")] = None,
    verify: Annotated[bool, Option("--verify", help="Run nothing: look at the checksum of every stored unit.")] = False,
    metric: Annotated[str, Option(help="The metric to show.")] = "balanced_accuracy",
    as_json: Annotated[bool, Option("--json", help="Print the scores as JSON and nothing else.")] = False,
) -> None:
    """Run methods x data sets x a protocol, and compare the methods."""
    from ..bench.suite import Suite
    from ..bench.suite_runner import run_suite
    from ..engine.store import begin

    options.check_jobs(1 if jobs is None else jobs)
    if verify:
        options.say_verified(out)
        return
    if load is not None:
        options.load_module(load)
    chosen_suite = Suite.read(suite).on_device(device)
    options.say_deleted(begin(out, "suite", resume, fresh))
    with shown(SELDOM) as progress:
        watch = partial(_counted, progress, chosen_suite.name)
        study = run_suite(chosen_suite, out, n_jobs=jobs, cluster=cluster, progress=watch)
    scores, failures = study.scores(metric), study.failures()
    if as_json:
        sys.stdout.write(scores.to_json(orient="records", indent=2) + "\n")
    else:
        show_study(study, scores, failures, metric, out)
    if len(failures):
        raise typer.Exit(1)


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce() -> None:
    """Say where the reproductions of the papers went."""
    from ..errors import InputError

    raise InputError(
        "reproduce is not part of the package: in a clone of the repository it is python -m reproduction NAME, or "
        "make reproduce ARGS=NAME"
    )


@app.command()
def methods(
    as_json: Annotated[bool, Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the methods."""
    from .. import recipes

    entries = [(recipe.title, recipe.does, recipe.source) for recipe in recipes.RECIPES.values()]
    if as_json:
        sys.stdout.write(json.dumps([{"name": n, "does": d, "source": s} for n, d, s in entries], indent=2) + "\n")
        return
    headings = ("method", "what it does", "source")
    show_grid(headings, entries, left=headings, overflow="fold", no_wrap=("method",))


@app.command()
def suspects(
    table: Annotated[Path, Argument(help="A CSV, TSV, Parquet, Feather or AnnData file, one row per sample.")],
    target: Annotated[str, Option(help="The column that holds the class.")],
    groups: Annotated[
        str | None, Option(help="A column whose equal values are judged together, such as a patient.")
    ] = None,
    drop: Annotated[str, Option(help="Columns that are not features, such as ids, separated by commas.")] = "",
    clean_rate: Annotated[
        float | None, Option(help="At most this share of the correct labels is expected among the suspects; 0.05.")
    ] = None,
    out: Annotated[Path, Option(help="The table of all samples (.csv).")] = Path("suspects.csv"),
    seed: Annotated[int, Option(help="The same seed gives the same result.", min=0)] = 0,
    jobs: Annotated[int, Option(help="Worker processes; -1 is one per core.")] = 1,
    force: Annotated[bool, Option("--force", help="Replace a file that this command did not write.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the samples as JSON and nothing else.")] = False,
) -> None:
    """Name the samples whose label is likely to be wrong, each with its probability."""
    from ..data.reading import read_table
    from ..studies import files
    from ..studies.study_data import suspects_of

    options.check_jobs(jobs)
    options.check_csv(out, table)
    files.check_replaced(out, force, "suspicion")
    frame, dropped = read_table(table, target=target, groups=groups), options.names_of(drop)
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": jobs}
    settings |= {} if clean_rate is None else {"clean_rate": clean_rate}
    judged, findings = suspects_of(frame, target, groups=groups, drop=dropped, **settings)
    files.write_csv(judged, out)
    if as_json:
        sys.stdout.write(judged.to_json(orient="records", indent=2) + "\n")
    else:
        show_suspects(judged, findings, out)


@app.command()
def cohort(
    path: Annotated[Path, Argument(help="Where to write the table (.csv); the truth goes beside it (.truth.json).")],
    samples: Annotated[int, Option(help="Rows.")] = 120,
    features: Annotated[int, Option(help="Numeric columns.")] = 2000,
    relevant: Annotated[int, Option(help="Columns that differ between the classes.")] = 10,
    redundant: Annotated[int, Option(help="Noisy copies of relevant columns.")] = 5,
    prevalence: Annotated[float, Option(help="Share of cases.")] = 0.25,
    effect: Annotated[float, Option(help="Difference of a relevant column, in standard deviations.")] = 1.5,
    flip: Annotated[float, Option(help="Share of wrong labels.")] = 0.0,
    categorical: Annotated[int, Option(help="Columns of categories.")] = 0,
    categorical_relevant: Annotated[int, Option(help="Those of them that differ between the classes.")] = 0,
    missing: Annotated[float, Option(help="Share of empty cells.")] = 0.0,
    seed: Annotated[int, Option(help="The same seed gives the same table.", min=0)] = 0,
) -> None:
    """Generate a table with a known truth to try things on; its target is the column `outcome`."""
    from ..data import make_cohort

    options.check_cells(samples, features + max(categorical, 0))
    planted: dict[str, Any] = {"n_relevant": relevant, "n_redundant": redundant, "effect": effect, "flip": flip}
    planted |= {"n_categorical": categorical, "n_categorical_relevant": categorical_relevant, "missing": missing}
    table = make_cohort(samples, features, prevalence=prevalence, random_state=seed, **planted)
    truth = path.with_suffix(".truth.json")
    options.write_cohort(path, truth, table.frame().round(5), table.truth.to_dict())
    typer.echo(f"{samples} rows, {features + categorical} columns: {path}; what was planted: {truth}")


def run() -> int:
    """The command line of this process; its exit code."""
    return guarded(partial(app, standalone_mode=False))


def main() -> None:
    """The command within a process that sees to signals itself."""
    sys.exit(run())


def _counted(progress: Progress, label: str, done: int, total: int, failed: int) -> None:
    """Units of a suite as progress."""
    progress(f"{label}, {done} of {total}" + (f", {failed} failed" if failed else ""), done, total)
