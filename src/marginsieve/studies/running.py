"""The user's study: a table in; what to believe about its features out."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..batches.arrays import has_cuda
from ..data.file_access import follow_umask
from ..data.stored import anndata_frame, is_anndata
from ..engine.units import OutOfTime, limit_seconds
from ..engine.workers import Run, run_in_thread, workers
from ..errors import InputError, SolverError, shown_value
from ..estimators.fitted_selector import FittedSelector, Prediction, predict
from ..estimators.persistence import NAME
from ..fitting.view_averaging import works_in_batches
from ..outcomes import Numbers, Survival, Target
from ..report import charts
from ..report.render import render, render_in_notebook
from ..validation import Validation, validate
from .analyses.costs import CheapList
from .analyses.missing_blocks import model_for, model_name
from .analyses.other_lists import lists_frame
from .analyses.substitutes import substitutes_frame
from .analysis import ANALYSES, AnalysisResult, Shape, StudyRun, load_analyses
from .checks import Finding
from .files import LONG_NAME, check_folder, digests_of, model_files, write_exports, write_study, write_text
from .measuring import Planner
from .options import StudyOptions, from_options
from .pacing import CUT_BY_CLOCK, StudyWork, TimeLimit
from .planning import FOLDS, choose, follow_plan, format_duration, wall_seconds
from .selection import FoldRows, Selection, outcome_by_options, outer_units, run_method
from .study_data import StudyData, column_costs, from_arrays
from .summary import summarize
from .target_column import find_positive

if TYPE_CHECKING:
    import pandas as pd


EXAMPLE = """
>>> import marginsieve
>>> from marginsieve.data import make_cohort
>>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
>>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, without="suspects")
""".strip()
CHART = """
Parameters
----------
file : str, path or None, default=None
    File to write (.svg, .png or .pdf); None writes none.

Returns
-------
matplotlib.figure.Figure
    The figure; it needs the extra `marginsieve[plot]`.

Examples
--------
{study}
>>> len(study.{name}().axes)
1
"""
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def with_study_example(documented: F) -> F:
    """The examples of a docstring begin with the same study, at {study}."""
    documented.__doc__ = inspect.cleandoc(documented.__doc__ or "").replace("{study}", EXAMPLE)
    return documented


def document_chart(method: F) -> F:
    """The docstring of a method that draws a chart."""
    method.__doc__ = f"{method.__doc__}\n{CHART.replace('{name}', method.__name__)}"
    return with_study_example(method)


@with_study_example
@dataclass(frozen=True)
class Study:
    """The result of a study; in a notebook it is displayed as the report.

    Parameters
    ----------
    run : StudyRun
        The table, the choice of methods, and every method's selector and nested scores.

    Attributes
    ----------
    main : Selection
        The method whose features are presented; it is chosen before anything is run.
    baseline : Selection
        All features with the same kind of machine and threshold.
    model : SVMSelector or Blend
        Selector of the main method, fitted on all rows: the short list's.
    long_model : SVMSelector, Blend or None
        That of the longer list; None where the number of features was given or chosen by the method.
    models_without : dict of str to model
        For each block of columns that was named, and that the list needs, the model of the other columns.
    features : DataFrame
        Every feature by rank.
    predictions : DataFrame
        Out-of-fold predictions of the main method.
    ledger : DataFrame
        What reading the table changed: a row for each cell, row, column and label, with its place.
    suspects : DataFrame or None
        Every sample, the most suspicious label first; None where labels were not judged.
    substitutes : DataFrame
        What could stand in for features of the list, with the change of AUC.
    alternatives : DataFrame
        The best lists that differ, with the change of AUC.
    cheapest : CheapList or None
        The cheapest list within the error of the best; None where no costs were given.
    result : dict
        The whole study as plain JSON: the content of result.json, which the report shows.

    Examples
    --------
    {study}
    >>> study.main.method.title, study.features.shape
    ('fisher', (10, 23))
    """

    run: StudyRun

    @property
    def main(self) -> Selection:
        """The method whose features are presented; chosen before anything was run."""
        return self.run.main

    @property
    def baseline(self) -> Selection:
        """All features with the same kind of machine and threshold."""
        return self.run.baseline

    @cached_property
    def model(self) -> FittedSelector:
        """The main method's selector, fitted on all rows, for tables with the columns in the user's order."""
        selector, places = self.run.main.selector, self.run.data.columns
        return selector if places is None else selector.moved_to(places)

    @cached_property
    def long_model(self) -> FittedSelector | None:
        """The same for the longer list; None where there is one list."""
        longer, places = self.run.main.longer, self.run.data.columns
        if longer is None or places is None:
            return None if longer is None else longer.selector
        return longer.selector.moved_to(places)

    @property
    def models_without(self) -> dict[str, FittedSelector]:
        """For each block of columns that was named, and that the list needs, the model of the other columns."""
        known: dict[str, Selection] = self._details("blocks", {})
        return {block: selection.selector for block, selection in known.items()}

    @property
    def features(self) -> pd.DataFrame:
        """Every feature by rank."""
        return self.run.features

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The main method's out-of-fold predictions."""
        return self.main.predictions(self.run.data.labels, self.run.data.numbers)

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """What reading the table changed, with its place."""
        return self.run.data.ledger.table()

    @property
    def suspects(self) -> pd.DataFrame | None:
        """Every sample, the most suspicious label first; None where labels were not judged."""
        return self._details("suspects", None)

    @property
    def substitutes(self) -> pd.DataFrame:
        """What could stand in for features of the list: `feature`, `substitute`, the change of AUC, the verdict."""
        return self._details("substitutes", substitutes_frame([]))

    @property
    def alternatives(self) -> pd.DataFrame:
        """The best lists that differ: what each does `without`, its features, the change of AUC."""
        return self._details("other-lists", lists_frame([]))

    @property
    def cheapest(self) -> CheapList | None:
        """The cheapest list within the error of the best; None where no costs were given."""
        return self._details("costs", None)

    def _details(self, name: str, default: T) -> T:
        """What an analysis has for users of Python; the default where it was not run."""
        result = self.run.results.get(name)
        return default if result is None else cast("T", result.details)

    @cached_property
    def result(self) -> dict[str, Any]:
        """The whole study as plain JSON: what result.json holds and the report shows."""
        return summarize(self.run) | {"models": digests_of(self._models)}

    @cached_property
    def _models(self) -> dict[str, bytes | InputError]:
        without = {model_name(block): model for block, model in self.models_without.items()}
        return model_files({NAME: self.model, LONG_NAME: self.long_model, **without})

    @with_study_example
    def html(self) -> str:
        """The report as one HTML page without external resources.

        Returns
        -------
        str
            The page.

        Examples
        --------
        {study}
        >>> study.html()[:15]
        '<!doctype html>'
        """
        return render(self.result)

    @with_study_example
    def report(self, file: str | Path) -> Path:
        """Write the report to a file.

        Parameters
        ----------
        file : str or path
            File to write.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        {study}
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.report(Path(folder) / "report.html").name
        'report.html'
        """
        with follow_umask(self.run.options.follow_umask):
            write_text(Path(file), self.html())
        return Path(file)

    @with_study_example
    def save(self, folder: str | Path) -> list[Path]:
        """Write the result folder: report, result.json, tables, model, and the paragraph for a paper.

        Parameters
        ----------
        folder : str or path
            Folder to write to; it is created where it does not exist.

        Returns
        -------
        list of Path
            The files.

        Examples
        --------
        {study}
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(file.name for file in study.save(folder))[:3]
        ['features.csv', 'methods.txt', 'model-long.marginsieve']
        """
        tables = {"features.csv": self.features, "predictions.csv": self.predictions}
        tables |= {"ledger.csv": self.ledger} if len(self.ledger) else {}
        for result in self.run.results.values():
            tables |= result.tables
        with follow_umask(self.run.options.follow_umask):
            check_folder(Path(folder), models=list(self._models))
            return write_study(Path(folder), self.result, self.html(), tables, self._models)

    @with_study_example
    def export(self, *, figures: str | Path | None = None, tables: str | Path | None = None) -> list[Path]:
        """Write figures and tables to paste into a paper, each into a folder of its own.

        Parameters
        ----------
        figures : str, path or None, default=None
            Folder for the charts, as SVG and as PNG with 300 dots per inch; it needs the extra `marginsieve[plot]`.
        tables : str, path or None, default=None
            Folder for tables (LaTeX, HTML, CSV), the numbers of the charts, and the TRIPOD+AI checklist.

        Returns
        -------
        list of Path
            The folders.

        Examples
        --------
        {study}
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     (folder,) = study.export(tables=f"{parent}/tables")
        ...     sorted(file.name for file in folder.glob("features.*"))
        ['features.csv', 'features.html', 'features.tex']
        """
        with follow_umask(self.run.options.follow_umask):
            folders = (None if folder is None else Path(folder) for folder in (figures, tables))
            return write_exports(self.result, *folders)

    @with_study_example
    def predict(
        self,
        X: Any,
        *,
        align: str = "none",
        prevalence: float | None = None,
        horizon: float | None = None,
        long: bool = False,
    ) -> Prediction:
        """Predict new rows with the model of the study.

        Parameters
        ----------
        X : DataFrame
            New rows, a pandas, polars, arrow or AnnData table; columns are matched by name and only the selected ones
            are needed. Of AnnData the layer of the study is read.
        align : "none", "location", "location-scale" or "quantiles", default="none"
            Bring each numeric column to the scale of the training rows by these rows' own.
        prevalence : float or None, default=None
            Share of the class of interest among these rows, for aligned columns.
        horizon : float or None, default=None
            Time up to which survival is predicted; None is that of the study.
        long : bool, default=False
            Whether the model of the longer list predicts.

        Returns
        -------
        Prediction
            A table with one row for each sample, and remarks.

        Examples
        --------
        {study}
        >>> study.predict(cohort.X[cohort.X.columns[::-1]]).table.shape
        (60, 4)
        """
        X = self._table_of(X)
        return predict(self._model_for(X, long), X, align, prevalence, horizon)

    @with_study_example
    def validate(self, X: Any, y: Any, *, long: bool = False, **options: Any) -> Validation:
        """Score the model on a new cohort, beside what this study promised; the model is not fitted again.

        Parameters
        ----------
        X : DataFrame
            The cohort; columns are matched by name and only the selected ones are needed.
        y : array-like of shape (n_samples,)
            Its outcomes.
        long : bool, default=False
            Whether the model of the longer list is scored.
        options : dict
            As of `marginsieve.validate`: `align`, `prevalence`, `recalibrate`, `cut`, `name`, `random_state`.

        Returns
        -------
        Validation
            Scores, drift, predictions, the page.

        Examples
        --------
        {study}
        >>> new = make_cohort(60, 10, n_relevant=2, effect=2.0, cohorts=2, random_state=0).others[0]
        >>> study.validate(new.X, new.y).result["cohorts"][0]["labelled"]
        60
        """
        X = self._table_of(X)
        return validate(self._model_for(X, long), X, y, promise=self.result, **options)

    def _table_of(self, X: Any) -> Any:
        """AnnData as the table of the layer that the study read; any other table as it is."""
        return anndata_frame(X, self.run.options.layer) if is_anndata(X) else X

    def _model_for(self, X: Any, long: bool) -> FittedSelector:
        """The model of one of the lists that suits a table."""
        model = self.long_model if long else model_for(X, self.model, self.result, self.models_without)
        if model is None:
            raise InputError("long is True, and this study has one list: leave it out")
        return model

    def _repr_html_(self) -> str:
        return render_in_notebook(self.result)

    def __repr__(self) -> str:
        return f"<Study: {self.result['answer']['headline']}>"

    @document_chart
    def plot_sizes(self, file: str | Path | None = None) -> Any:
        """Plot the score against the number of features, a line per method."""
        return charts.sizes(self.result, file)

    @document_chart
    def plot_roc(self, file: str | Path | None = None) -> Any:
        """Plot out-of-fold ROC curves of the main method and of all features."""
        return charts.roc(self.result, file)

    def plot_agreement(self, file: str | Path | None = None) -> Any:
        """Plot predicted against observed numbers, out of fold.

        Parameters
        ----------
        file : str, path or None, default=None
            File to write (.svg, .png or .pdf).

        Returns
        -------
        Figure
            A figure of matplotlib.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve import study
        >>> X = np.random.default_rng(0).normal(size=(40, 5))
        >>> done = study(X, X[:, 0] + 0.1 * X[:, 1], methods="fisher", cv=3, n_repeats=1)
        >>> done.plot_agreement().axes[0].get_xlabel()
        'observed'
        """
        return charts.agreement(self.result, file)

    @document_chart
    def plot_precision_recall(self, file: str | Path | None = None) -> Any:
        """Plot out-of-fold precision-recall curves of the main method and of all features."""
        return charts.precision_recall(self.result, file)

    @document_chart
    def plot_calibration(self, file: str | Path | None = None) -> Any:
        """Plot observed shares against predicted probabilities, out of fold."""
        return charts.calibration(self.result, file)

    @document_chart
    def plot_features(self, file: str | Path | None = None) -> Any:
        """Plot how often each selected feature was selected over the outer folds."""
        return charts.frequencies(self.result, file)


@with_study_example
@from_options(StudyOptions)
def study(X: Any, y: Any, options: StudyOptions) -> Study:
    """Select features of a table and score the whole procedure by nested cross-validation.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        pandas, polars, arrow, AnnData or an array; numbers, categories, dates, empty cells.
    y : array-like of shape (n_samples,)
        The classes, two or more; or numbers; or of survival two columns, or a structured array, of a time and an event.
        With AnnData the name of a column of `obs` will do, for groups and site too.
    {options}

    Returns
    -------
    Study
        Features, scores, predictions and the report.

    Examples
    --------
    {study}
    >>> study.features["name"].head(2).sort_values().tolist()
    ['g03', 'g07']
    """
    named = ("groups", "site", "ids", "keep", "include", "drop", "outcome", "time", "layer")
    columns = {name: getattr(options, name) for name in named} | {"include": options.features_in_any_case}
    with follow_umask(bool(options.follow_umask)):
        return run_study(from_arrays(X, y, **columns), options)


def run_study(
    data: StudyData,
    options: StudyOptions,
    *,
    auto_jobs: bool = False,
    command: str | None = None,
    announce: Callable[[str], None] | None = None,
    since: float | None = None,
) -> Study:
    """Choose what to run on the data and run it; the table is encoded once for all methods.

    With `auto_jobs` there are as many workers as it is worth. `announce` is called with a sentence when it is known how
    long the study takes; `since` is when its time began.
    """
    since = time.perf_counter() if since is None else since
    options.check()
    known, data = load_analyses(), data.in_canonical_order(options.random_state)
    data, options = _settle_outcome(data, options)
    table = data.table(outcome_by_options(options))
    target = table.target
    if target.interest_share is None and (value := options.cut_rule() or options.share_elsewhere) is not None:
        raise InputError(f"a cut or a share of a class was given ({value}), and the target does not hold two classes")
    data.find_rows([int(row) for row in options.explain_rows])
    if options.feature_costs is not None:
        column_costs(options.feature_costs, table.rows.schema.names)
    _check_folds(target, data, options.cv)
    on_gpu = options.device != "cpu" and has_cuda()
    share = min(target.row_counts) / len(target)
    rows, columns = data.X.shape
    shape = Shape(
        rows=rows,
        columns=columns,
        mixed=data.has_categories or data.has_gaps,
        smallest_share=share,
        outcome=target.outcome_name,
        has_auc=target.has_auc,
        list_score=target.list_score,
    )
    choice = choose(shape, options, on_gpu)
    if options.plan is not None:
        choice = follow_plan(choice, options.plan)
    kept = FoldRows(None if options.folder is None else Path(options.folder))
    run = StudyRun(data=data, table=table, choice=choice, options=options, methods=[], command=command)
    planner = Planner(run=run, kept=kept, n_jobs=None if auto_jobs else options.n_jobs or 1, since=since)
    planner.prepare(choice)  # which refuses methods that the table is not for, before anything is run
    choice, count = planner.decide()
    if announce is not None:
        seconds = time.perf_counter() - since + wall_seconds(choice, count)
        cores = f" with {count} processes" if count > 1 else ""
        announce(f"this takes about {format_duration(seconds)}{cores}: {choice.why[-1]}")
    options = replace(options, n_jobs=count if auto_jobs else options.n_jobs)
    run = replace(run, choice=choice, options=options, methods=planner.prepare(choice))
    run, pace = run_within(run, planner, count, on_gpu)
    for name in [name for name in known if name in run.choice.efforts]:
        run = pace.choose_effort(run, name)
        if name in run.choice.efforts:
            with pace.work.step(name, run.choice.seconds(name)):
                run = run_analysis(run, name, pace)
    return Study(replace(run, seconds=time.perf_counter() - since))


def run_within(run: StudyRun, planner: Planner, count: int, on_gpu: bool) -> tuple[StudyRun, TimeLimit]:
    """The study with its methods, smaller where the clock cut one that it is not without; and what says what fits."""
    pace, done = TimeLimit(StudyWork(run.choice, count, run.options.progress), planner, planner.limit), None
    with suppress(OutOfTime):
        done = run_methods(run, planner.kept, on_gpu, pace)
    if done is None:  # what was cut is closed by now
        run = pace.start_smaller(run)
        work = StudyWork(run.choice, count, run.options.progress)
        pace = TimeLimit(work, planner, planner.limit, cuts=False)
        done = run_methods(run, planner.kept, on_gpu, pace)
    return done, pace


def run_analysis(run: StudyRun, name: str, pace: TimeLimit) -> StudyRun:
    """The study with an analysis; where the clock cuts it, with its least effort or without it."""
    try:
        with limit_seconds(pace.seconds_of_analysis(run, name)):
            result = ANALYSES[name].run(run)
    except OutOfTime:
        run = pace.cut_analysis(run, name)
        return run_analysis(run, name, pace) if name in run.choice.efforts else run
    run.results[name] = result if isinstance(result, AnalysisResult) else AnalysisResult(result)
    return run


def _settle_outcome(data: StudyData, options: StudyOptions) -> tuple[StudyData, StudyOptions]:
    """What the target was taken for, and of classes the one of interest, of times the horizon."""
    outcome = data.outcome
    if outcome == Survival.name:
        outcome = Survival(probability=True, horizon=options.horizon)
    elif options.horizon is not None:
        raise InputError(f"horizon is {options.horizon!r}, and the outcome is {outcome}: it is for survival")
    without_forecast = ("next_cohort",) if data.outcome == Numbers.name else ()
    for name in ("positive", "sensitivity", "specificity", *without_forecast):
        if data.outcome in (Numbers.name, Survival.name) and getattr(options, name):
            value = getattr(options, name)
            raise InputError(f"{name} is {shown_value(value)}, and the outcome is {data.outcome}: it is for classes")
    options = replace(options, outcome=outcome)
    if options.positive is None and outcome == "classes":
        label, notes = find_positive(data.y, data.target)
        return replace(data, findings=(*data.findings, *notes)), replace(options, positive=label)
    return data, options


def run_methods(run: StudyRun, kept: FoldRows, on_gpu: bool, pace: TimeLimit) -> StudyRun:
    """The study with every method's nested scores and its selector on all rows."""
    table, settled = run.table, replace(run.choice.options, n_jobs=run.options.n_jobs)
    selections, failures = [], []
    with workers([table], settled.n_jobs) as on_cpu, workers([table], 1, in_step=True) as batched:
        runners = [on_cpu] * len(run.methods)
        if on_gpu:
            runners = _beside_the_device(run, settled, kept, on_cpu, batched)
        for (method, prepared), runner in zip(run.methods, runners, strict=True):
            if not pace.allows(run, method):
                run = pace.without_method(run, method)
                continue
            with pace.work.part(method) as tick:
                try:
                    with limit_seconds(pace.seconds_of_method(run, method)):
                        selections.append(run_method(method, prepared, table, settled, runner, kept, tick))
                except OutOfTime:
                    if pace.must_run(run, method):
                        raise
                    run = pace.without_method(run, method, CUT_BY_CLOCK)
                except SolverError as error:
                    if method is run.methods[0][0] or method.baseline:
                        raise
                    failures.append(Finding("method", "alarm", f"{method.title} failed: {error}"))
    return replace(run, selections=tuple(selections), failures=tuple(failures))


def _beside_the_device(run: StudyRun, settled: StudyOptions, kept: FoldRows, on_cpu: Run, batched: Run) -> list[Run]:
    """What runs the folds of each method: those without batches are run by processes while the device works."""
    runners = [batched if works_in_batches(pair[1].plan, run.table.rows.table) else on_cpu for pair in run.methods]
    if settled.n_jobs in (1, None):
        return runners
    places = [k for k, runner in enumerate(runners) if runner is on_cpu]
    missing = [kept.missing(outer_units(*run.methods[k], run.table, settled)) for k in places]
    for k, runner in zip(places, run_in_thread(on_cpu, missing), strict=True):
        runners[k] = runner
    return runners


def _check_folds(target: Target, data: StudyData, cv: int | None) -> None:
    """Refuse a target of which the outer folds, and inner ones within them, cannot be made."""
    if advice := target.fold_advice(FOLDS if cv is None else cv):
        raise InputError(f"the target {data.target!r} {advice}")
