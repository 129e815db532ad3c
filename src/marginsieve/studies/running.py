"""The user's study: a table in; what to believe about its features out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batches.arrays import check_device, has_cuda
from ..contracts import Array, Progress
from ..engine.protocols import MOST_DRAWS
from ..engine.units import Method, PreparedMethod, UnitTable
from ..engine.workers import Run, beside, workers
from ..errors import InputError, SolverError, listing, many, positive_number, shown_value, whole_number
from ..estimators.fitted_selector import FittedSelector
from ..estimators.suspects import judge_labels
from ..fitting.settings import MOST_MEMBERS, check_n_jobs
from ..fitting.view_averaging import works_in_batches
from ..outcomes import Target, rarest, units_per_class
from ..report import charts
from ..report.render import render, render_in_notebook
from .chance import FEWEST, above_chance
from .cheapest import CheapList, cheapest_list, costs_of
from .choosing import FOLDS, Choice, choose
from .deciding import chosen, decided
from .false_features import main_false_share, marginal_q
from .files import check_folder, write_study, write_text
from .findings import Finding
from .minutes import as_recorded, spoken, wall_seconds
from .other_lists import lists_frame, other_lists
from .reference_rows import ReferenceRow, reference_rows
from .selection import FoldRows, Selection, StudyOptions, prepare_method, run_method, units_of
from .study_data import StudyData, from_arrays
from .study_run import StudyRun
from .substitutes import substitutes, substitutes_frame
from .summary import summarize

if TYPE_CHECKING:
    import pandas as pd

INTERVALS = ("simple", "nested")
MOST_MINUTES = 1e7


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
        Selector of the main method, fitted on all rows.
    features : DataFrame
        Every feature by rank.
    predictions : DataFrame
        Out-of-fold predictions of the main method.
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
    >>> import marginsieve
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
    >>> study.main.method.title, study.features.shape
    ('fisher', (10, 18))
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

    @property
    def model(self) -> FittedSelector:
        """The main method's selector, fitted on all rows."""
        return self.run.main.selector

    @property
    def features(self) -> pd.DataFrame:
        """Every feature by rank."""
        return self.run.features

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The main method's out-of-fold predictions."""
        return self.main.predictions(self.run.data.labels)

    @property
    def suspects(self) -> pd.DataFrame | None:
        """Every sample, the most suspicious label first; None where labels were not judged."""
        return self.run.suspects

    @property
    def substitutes(self) -> pd.DataFrame:
        """What could stand in for features of the list: `feature`, `substitute`, the change of AUC, the verdict."""
        frame = self.run.substitutes
        return substitutes_frame([]) if frame is None else frame

    @property
    def alternatives(self) -> pd.DataFrame:
        """The best lists that differ: what each does `without`, its features, the change of AUC."""
        frame = self.run.alternatives
        return lists_frame([]) if frame is None else frame

    @property
    def cheapest(self) -> CheapList | None:
        """The cheapest list within the error of the best; None where no costs were given."""
        return self.run.cheapest

    @cached_property
    def result(self) -> dict[str, Any]:
        """The whole study as plain JSON: what result.json holds and the report shows."""
        return summarize(self.run)

    def html(self) -> str:
        """The report as one HTML page without external resources.

        Returns
        -------
        str
            The page.

        Examples
        --------
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> study.html()[:15]
        '<!doctype html>'
        """
        return render(self.result)

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
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.report(Path(folder) / "report.html").name
        'report.html'
        """
        write_text(Path(file), self.html())
        return Path(file)

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
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(file.name for file in study.save(folder))[:3]
        ['features.csv', 'methods.txt', 'model.marginsieve']
        """
        check_folder(Path(folder))
        tables = {"features.csv": self.features, "predictions.csv": self.predictions, "suspects.csv": self.suspects}
        return write_study(Path(folder), self.result, self.html(), tables, self.model)

    def _repr_html_(self) -> str:
        return render_in_notebook(self.result)

    def __repr__(self) -> str:
        return f"<Study: {self.result['answer']['headline']}>"

    def plot_sizes(self, file: str | Path | None = None) -> Any:
        """Plot the score against the number of features, a line per method (matplotlib, the extra `marginsieve[plot]`).

        Parameters
        ----------
        file : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> study.plot_sizes().axes[0].get_xlabel()
        'number of features'
        """
        return charts.sizes(self.result, file)

    def plot_roc(self, file: str | Path | None = None) -> Any:
        """Plot out-of-fold ROC curves of the main method and of all features.

        Parameters
        ----------
        file : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> study.plot_roc().axes[0].get_xlabel()
        'false positive rate'
        """
        return charts.roc(self.result, file)

    def plot_precision_recall(self, file: str | Path | None = None) -> Any:
        """Plot out-of-fold precision-recall curves of the main method and of all features.

        Parameters
        ----------
        file : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> study.plot_precision_recall().axes[0].get_xlabel()
        'recall'
        """
        return charts.precision_recall(self.result, file)

    def plot_calibration(self, file: str | Path | None = None) -> Any:
        """Plot observed shares against predicted probabilities, out of fold.

        Parameters
        ----------
        file : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> study.plot_calibration().axes[0].get_xlabel()
        'predicted probability'
        """
        return charts.calibration(self.result, file)

    def plot_features(self, file: str | Path | None = None) -> Any:
        """Plot how often each selected feature was selected over the outer folds.

        Parameters
        ----------
        file : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import marginsieve
        >>> from marginsieve.data import make_cohort
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
        >>> study.plot_features().axes[0].get_xlabel()
        'share of outer folds that selected it'
        """
        return charts.frequencies(self.result, file)


def study(
    X: Any,
    y: Any,
    *,
    methods: str | Sequence[str] = "auto",
    minutes: float | None = None,
    positive: Any = None,
    n_features_to_select: int | None = None,
    groups: Any = None,
    ids: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    prefilter: tuple[str, int] | None = None,
    ensemble: int | None = None,
    kernel: str | None = None,
    max_samples: int | None = None,
    cv: int | None = None,
    n_repeats: int | None = None,
    suspects: bool = True,
    references: bool = True,
    n_permutations: int = 99,
    intervals: str = "simple",
    false_share: float | None = None,
    substitutes: bool = True,
    alternatives: int | None = None,
    feature_costs: Mapping[str, float] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
    folder: str | Path | None = None,
    plan: Mapping[str, Any] | None = None,
) -> Study:
    """Select features of a table and score the whole procedure by nested cross-validation.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        pandas, polars, arrow or an array; numbers, categories, empty cells.
    y : array-like of shape (n_samples,)
        The classes, two or more.
    methods : "auto", str or sequence of str, default="auto"
        Names of methods as `marginsieve methods` lists them; the first is the one whose features are presented. "auto"
        chooses by the shape of the table. All features with the same threshold are always run beside them.
    minutes : float or None, default=None
        How long the study may take: the first folds are measured, and decide once how many methods and repeats are run.
    positive : label or None, default=None
        The class of interest; None is the rarer one.
    n_features_to_select : int or None, default=None
        Number of features; None lets inner folds (or the method) decide.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of each row; rows of one group are never on both sides of a split.
    ids : sequence of column names, or None, default=None
        Columns that identify rows and are not features; None detects them, () means there are none.
    keep : sequence of column names, default=()
        Features that are always selected, by every method.
    prefilter : (str, int) or None, default=None
        Search only among this number of best columns of a filter, for every method.
    ensemble : int or None, default=None
        Average the ranking over this number of subsamples, for every method.
    kernel : str or None, default=None
        Kernel of every method; None leaves the choice to the methods.
    max_samples : int or None, default=None
        Train on at most this number of rows.
    cv : int or None, default=None
        Number of outer folds; None is 5.
    n_repeats : int or None, default=None
        Number of times that the folds are drawn; None is 3 (1 from 1,000 rows on), or what the minutes allow.
    suspects : bool, default=True
        Estimate how likely each label is wrong, as `find_suspects` does.
    references : bool, default=True
        Score an l1 logistic regression and a random forest of scikit-learn on the first repeat, for reference.
    n_permutations : int, default=99
        Number of times that the labels are shuffled to test whether anything predicts them, 24 or more.
    intervals : "simple" or "nested", default="simple"
        Standard errors from the predictions with factors that were measured on simulated tables, or by nested
        cross-validation on this table, which takes about three times as long.
    false_share : float or None, default=None
        Every method selects the longest list whose estimated share of false features is at most this, in place of a
        number of features. The share is estimated for the main method's list in any case, where it is not too costly.
    substitutes : bool, default=True
        Test which columns could stand in for features of the list.
    alternatives : int or None, default=None
        Number of lists that differ from the main one: without its first feature, its second and so on, and the last
        without the whole list. None is 5, or none where that would take long; 0 is none.
    feature_costs : mapping of column to cost, or None, default=None
        What it costs to measure each column, 1 where it is not named; the cheapest list within the error of the best is
        reported beside the main one.
    random_state : int, default=0
        Seed; the result depends on it alone, not on the number of workers.
    n_jobs : int or None, default=None
        Number of worker processes.
    device : str, default="cpu"
        Where many searches at once are run, as in `SVMSelector`: "cpu", "cuda" or "auto".
    progress : callable or None, default=None
        Called as progress(what, done, total).
    folder : str, path or None, default=None
        Folder in which finished folds are kept: the same call continues where it was interrupted.
    plan : mapping or None, default=None
        What an earlier study decided by its minutes (`result["protocol"]["plan"]`), to be done again as it was.

    Returns
    -------
    Study
        Features, scores, predictions and the report.

    Examples
    --------
    >>> import marginsieve
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> study = marginsieve.study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, suspects=False)
    >>> study.features["name"].head(2).sort_values().tolist()
    ['g03', 'g07']
    """
    keep = [keep] if isinstance(keep, str) else keep
    data = from_arrays(X, y, groups, [ids] if isinstance(ids, str) else ids, keep)
    given = (
        positive,
        n_features_to_select,
        tuple(keep),
        prefilter,
        ensemble,
        random_state,
        n_jobs,
        n_permutations,
        intervals,
        false_share,
        substitutes,
        alternatives,
        feature_costs,
    )
    options = StudyOptions(*given, device=device)
    settings: dict[str, Any] = {"methods": methods, "minutes": minutes, "kernel": kernel, "max_samples": max_samples}
    settings |= {"cv": cv, "n_repeats": n_repeats, "suspects": suspects, "references": references, "plan": plan}
    return run_study(data, options, settings, progress, None if folder is None else Path(folder))


def run_study(
    data: StudyData,
    options: StudyOptions,
    settings: dict[str, Any],
    progress: Progress | None = None,
    folder: Path | None = None,
    command: str | None = None,
    announce: Callable[[str], None] | None = None,
    since: float | None = None,
) -> Study:
    """Choose what to run on the data and run it; the table is encoded once for all methods.

    `announce` is called with a sentence when it is known how long the study takes; `since` is when its time began.
    """
    since = time.perf_counter() if since is None else since
    _check(settings, options)
    table = data.table(options.positive)
    target = table.encoded.target
    cost = None if options.feature_costs is None else costs_of(options.feature_costs, table.encoded.schema.names)
    _check_classes(target, data, settings["cv"])
    on_gpu = options.device != "cpu" and has_cuda()
    choice = choose(
        *data.X.shape,
        mixed=data.mixed or data.gaps,
        prevalence=rarest(target.codes)[1] / len(target.codes),
        classes=len(target.classes),
        alternatives=options.alternatives,
        permutations=options.n_permutations,
        on_gpu=on_gpu,
        **{name: value for name, value in settings.items() if name not in ("minutes", "plan")},
    )
    if (plan := settings.get("plan")) is not None:
        choice = as_recorded(choice, plan)
    methods = [prepare_method(method, table, options, choice.max_samples) for method in choice.methods]
    kept = FoldRows(folder)
    choice, count = decided(methods, table, choice, options, settings, kept, since, progress)
    methods = chosen(methods, choice)
    if announce is not None:
        seconds = time.perf_counter() - since + wall_seconds(choice, count)
        cores = f" with {count} processes" if count > 1 else ""
        announce(f"this takes about {spoken(seconds)}{cores}: {choice.why[-1]}")
    options = replace(
        options, n_jobs=count if options.auto_jobs else options.n_jobs, n_permutations=choice.permutations
    )
    work = _StudyWork(choice, count, progress)
    done, failures = [], []
    with workers([table], options.n_jobs) as on_cpu, workers([table], 1, in_step=True) as in_step:
        runs = [on_cpu] * len(methods)
        if on_gpu:
            runs = _beside_the_device(methods, table, choice, options, kept, on_cpu, in_step)
        for (method, prepared), run in zip(methods, runs, strict=True):
            with work.part(method) as tick:
                try:
                    done.append(run_method(method, prepared, table, choice, options, run, kept, tick))
                except SolverError as error:
                    if method is methods[0][0] or method.baseline:
                        raise
                    failures.append(Finding("method", "alarm", f"{method.title} failed: {error}"))
    references: tuple[ReferenceRow, ...] = ()
    if choice.references:
        with work.step("reference rows", choice.referring):
            state = options.random_state
            references = reference_rows(table, done[-1].nested, choice.cv, state, options.n_jobs)
    with work.step("shuffled labels", choice.shuffling):
        chance = above_chance(methods, table, choice, options)
    halves = None
    if any(choice.halves):
        with work.step("halves of the rows", choice.halving):
            halves = main_false_share(methods[0][1], table, choice, options)
    others = _other_lists(methods[0][1], table, done[0], choice, options, cost, work)
    judged = None
    if choice.suspects:
        with work.step("judging labels", choice.judging):
            judged, remarks = _judged(table, options)
            failures += remarks
    seconds = time.perf_counter() - since
    came = (
        tuple(done),
        chance,
        judged,
        tuple(failures),
        seconds,
        references,
        halves,
        marginal_q(table),
        *others,
        command,
    )
    return Study(StudyRun(data, choice, options, *came))


def _beside_the_device(
    methods: Sequence[tuple[Method, PreparedMethod]],
    table: UnitTable,
    choice: Choice,
    options: StudyOptions,
    kept: FoldRows,
    on_cpu: Run,
    in_step: Run,
) -> list[Run]:
    """What runs the folds of each method: those without batches are run by processes while the device works."""
    runs = [in_step if works_in_batches(pair[1].plan, table.encoded.table) else on_cpu for pair in methods]
    if options.n_jobs in (1, None):
        return runs
    places = [k for k, run in enumerate(runs) if run is on_cpu]
    missing = [kept.missing(units_of(*methods[k], table, choice, options)) for k in places]
    for k, run in zip(places, beside(on_cpu, missing), strict=True):
        runs[k] = run
    return runs


def _other_lists(
    prepared: PreparedMethod,
    table: UnitTable,
    main: Selection,
    choice: Choice,
    options: StudyOptions,
    cost: Array | None,
    work: _StudyWork,
) -> tuple[pd.DataFrame | None, pd.DataFrame | None, Array | None, CheapList | None]:
    """Substitutes, alternatives, the cost of each column and the cheapest list, as far as they are asked for."""
    selector, nested, jobs, keep = main.selector, main.nested, options.n_jobs, options.keep
    order = np.argsort(selector.ranking_)
    listed = order[selector.support_[order]]
    near = other = cheap = None
    if options.substitutes:
        with work.step("substitutes", 0.0):
            near = substitutes(table, nested, listed, jobs, keep)
    if choice.alternatives:
        with work.step("other lists", choice.listing):
            other = other_lists(table, prepared, nested, len(listed), choice.alternatives, keep, jobs)
    if cost is not None:
        with work.step("costs", 0.0):
            cheap = cheapest_list(table, prepared, nested, listed, cost, keep, jobs)
    return near, other, cost, cheap


def _check(settings: dict[str, Any], options: StudyOptions) -> None:
    whole_number("study", "random_state", options.random_state, 0)
    whole_number("study", "n_permutations", options.n_permutations, FEWEST, most=MOST_MEMBERS)
    if options.intervals not in INTERVALS:
        raise InputError(f"study: intervals is {options.intervals!r}; it must be one of {listing(INTERVALS)}")
    check_n_jobs(options.n_jobs)
    check_device(options.device)
    if options.false_share is not None:
        positive_number("study", "false_share", options.false_share, 1.0)
        if options.n_features_to_select is not None:
            raise InputError("false_share and n_features_to_select were both given: leave one out")
    if not (options.feature_costs is None or isinstance(options.feature_costs, Mapping)):
        raise InputError(
            f"study: feature_costs is {shown_value(options.feature_costs)}; it must be a mapping of columns to numbers"
        )
    numbers = (("ensemble", 1, MOST_MEMBERS), ("n_features_to_select", 1, None), ("alternatives", 0, MOST_MEMBERS))
    for name, lowest, most in numbers:
        if (value := getattr(options, name)) is not None:
            whole_number("study", name, value, lowest, most)
    if settings["minutes"] is not None:
        positive_number("study", "minutes", settings["minutes"], MOST_MINUTES)
    for name, lowest in (("cv", 2), ("n_repeats", 1), ("max_samples", 1)):
        if settings[name] is not None:
            whole_number("study", name, settings[name], lowest, None if name == "max_samples" else MOST_DRAWS)


def _check_classes(target: Target, data: StudyData, cv: int | None) -> None:
    """Every class must be there in every training part, twice, so that inner folds can be made of it."""
    folds = FOLDS if cv is None else cv
    for label, count in zip(target.classes, units_per_class(target.codes, target.groups), strict=True):
        enough = [some for some in range(2, count + 1) if count - -(-count // some) >= 2]
        if folds in enough or len(target.classes) < 2:
            continue
        units = many(count, "sample" if data.groups is None else "group")
        if enough:
            few = min(enough, key=lambda some: abs(some - folds))
            advice = f"it takes {few} outer folds, not {folds} (--folds {few}, cv={few})"
        else:
            advice = "a study needs at least 3 of each class; leave this class out, or join it with another"
        raise InputError(f"the target {data.target!r} has {units} of class {label!s}: {advice}")


def _judged(table: UnitTable, options: StudyOptions) -> tuple[pd.DataFrame | None, list[Finding]]:
    """How likely each label is wrong."""
    try:
        return judge_labels(table.encoded, n_jobs=options.n_jobs, random_state=options.random_state), []
    except (InputError, SolverError) as error:
        return None, [Finding("suspects", "note", f"labels were not judged: {error}")]


class _StudyWork:
    """Work done of all work, in expected seconds, passed on as parts of it finish."""

    def __init__(self, choice: Choice, workers: int, progress: Progress | None) -> None:
        self.fits, self.cost = choice.cv * choice.n_repeats + 1, choice.cost
        work = sum(self.cost[method.label] for method in choice.methods) * self.fits
        work += choice.shuffling + choice.halving + choice.listing
        work += choice.judging * choice.suspects + choice.referring * choice.references
        self.unit = wall_seconds(choice, workers) / max(work, 1e-9)  # seconds on the clock for one of work
        self.total = self.unit * work
        self.done, self.show = 0.0, progress or (lambda *_: None)

    def part(self, method: Method) -> AbstractContextManager[Callable[[float], None]]:
        """While a method is run; gives what is called with the number of folds done."""
        return self.step(method.title, self.cost[method.label] * self.fits, self.fits)

    @contextmanager
    def step(self, name: str, cost: float, pieces: int = 1) -> Iterator[Callable[[float], None]]:
        """While something of this cost is done; gives what is called with the number of pieces done."""
        before, cost = self.done, self.unit * cost
        self.show(name, before, self.total)
        yield lambda count: self.show(name, before + cost * count / pieces, self.total)
        self.done = before + cost
        self.show(name, self.done, self.total)
