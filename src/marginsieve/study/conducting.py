"""The user's study: a table in; what to believe about its features out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Progress
from ..errors import InputError, many, positive_number, whole_number
from ..estimators.inputs import MOST_ROWS, read_target
from ..estimators.suspects import find_suspects
from ..solvers.highs import SolverError
from .chance import Chance, above_chance
from .choosing import FOLDS, Choice, Method, choose
from .findings import Finding, units_of
from .material import Material, from_arrays
from .metrics import Scores, score_difference
from .selection import Selection, Wishes, configured, run

if TYPE_CHECKING:
    import pandas as pd

MOST_JUDGED = 3000  # rows up to which every label is judged
CLEAN_RATE = 0.02  # at most this share of the correct labels is expected among the suspects


@dataclass(frozen=True)
class Study:
    """What a study found.

    `features`, `suspects` and `predictions` are pandas tables, `result` is the whole as plain JSON. `report(file)`
    writes the page; in a notebook the study shows itself.
    """

    material: Material
    choice: Choice
    wishes: Wishes
    selections: tuple[Selection, ...]  # the main method first, all features last
    chance: Chance
    judged: pd.DataFrame | None  # what find_suspects says of every sample
    failures: tuple[Finding, ...]
    seconds: float
    command: str | None = None

    @property
    def main(self) -> Selection:
        """The method whose features are presented; chosen before anything was run."""
        return self.selections[0]

    @property
    def baseline(self) -> Selection:
        """All features with the same kind of machine and threshold."""
        return self.selections[-1]

    @property
    def model(self) -> Any:
        """The main method's selector, fitted on all rows."""
        return self.main.selector

    @cached_property
    def features(self) -> pd.DataFrame:
        """Every feature by rank."""
        return self.main.features()

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The main method's out-of-fold predictions."""
        return self.main.predictions(self.material.labels)

    @cached_property
    def suspects(self) -> pd.DataFrame | None:
        """Every sample, the most suspicious label first; None where labels were not judged."""
        if self.judged is None:
            return None
        frame = self.judged.reset_index(drop=True)
        frame.insert(0, "row", np.arange(1, len(frame) + 1))
        if self.material.labels is not None:
            frame.insert(1, "label", np.asarray(self.material.labels))
        frame.insert(list(frame.columns).index("suspicion"), "truth", np.asarray(self.material.y))
        nested = self.main.nested
        frame["missed"] = (nested.predicted != nested.truth).mean(axis=0)
        return frame.sort_values("suspicion", ascending=False, kind="stable", ignore_index=True)

    def difference(self, selection: Selection) -> Scores:
        """A method's metrics less those of all features, on the same draws of the samples."""
        ours, theirs = selection.nested, self.baseline.nested
        return score_difference(
            ours.truth,
            (ours.predicted, ours.decision),
            (theirs.predicted, theirs.decision),
            ours.positive,
            ours.groups,
            seed=ours.seed,
        )

    @cached_property
    def result(self) -> dict[str, Any]:
        """The whole study as plain JSON: what result.json holds and the report shows."""
        from .summary import summarize

        return summarize(self)

    def html(self) -> str:
        """The report as one page without links to anywhere."""
        from ..report.render import render

        return render(self.result)

    def report(self, file: str | Path) -> Path:
        """Write the report to a file."""
        from .files import write_text

        write_text(Path(file), self.html())
        return Path(file)

    def save(self, folder: str | Path) -> list[Path]:
        """Write the whole result folder: report, result.json, tables, model, the paragraph for a paper."""
        from .files import check_folder, write_study

        check_folder(Path(folder))
        return write_study(self, Path(folder))

    def _repr_html_(self) -> str:
        from ..report.render import render_in_notebook

        return render_in_notebook(self.result)

    def __repr__(self) -> str:
        return f"<Study: {self.result['answer']['headline']}>"

    def plot_sizes(self, file: str | Path | None = None) -> Any:
        """Score against the number of features, a line per method (matplotlib, the extra `marginsieve[plot]`)."""
        from ..report import charts as plots

        return plots.sizes(self.result, file)

    def plot_roc(self, file: str | Path | None = None) -> Any:
        """True against false positives, out of fold, of the main method and of all features."""
        from ..report import charts as plots

        return plots.roc(self.result, file)

    def plot_precision_recall(self, file: str | Path | None = None) -> Any:
        """Precision against recall, out of fold."""
        from ..report import charts as plots

        return plots.precision_recall(self.result, file)

    def plot_calibration(self, file: str | Path | None = None) -> Any:
        """Observed shares against predicted probabilities, out of fold."""
        from ..report import charts as plots

        return plots.calibration(self.result, file)

    def plot_features(self, file: str | Path | None = None) -> Any:
        """How often each selected feature was selected over the outer folds."""
        from ..report import charts as plots

        return plots.frequencies(self.result, file)


def study(
    X: Any,
    y: Any,
    *,
    methods: str | Sequence[str] = "auto",
    minutes: float | None = None,
    positive: Any = None,
    features: int | None = None,
    groups: Any = None,
    ids: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    prefilter: tuple[str, int] | None = None,
    ensemble: int | None = None,
    kernel: str | None = None,
    rows: int | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    suspects: bool = True,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    folder: str | Path | None = None,
) -> Study:
    """Select features of a table, score the whole procedure by nested cross-validation, and say what to believe.

    Parameters
    ----------
    X, y : table and classes
        pandas, polars, arrow or an array; numbers, categories, empty cells. y has two classes or more.
    methods : "auto", or names as `marginsieve methods` lists them
        The first is the one whose features are presented. "auto" chooses by the shape of the table. All features with
        the same threshold are always run beside them.
    minutes : float or None
        How long it may take, by a table of costs: decides beforehand how many methods and repeats are run.
    positive : label or None
        The class of interest; the rarer one by default.
    features : int or None
        How many features; None lets inner folds (or the method) decide.
    groups : one value per row, or None
        Rows with equal values never sit on both sides of a split.
    ids : column names, or None
        Columns that tell rows apart and are no features; None finds them, () means there are none.
    keep, prefilter, ensemble, kernel, rows :
        As in SVMSelector, for every method.
    folds, repeats : int or None
        Outer folds (5) and how often they are drawn anew (3, or what the minutes allow).
    suspects : bool
        Judge every label by machines that did not see it.
    seed, n_jobs :
        The same seed gives the same result, whatever the number of workers.
    progress : callable or None
        Called as progress(what, done, total).
    folder : path or None
        Finished folds are kept there: the same call goes on where it was interrupted.
    """
    keep = [keep] if isinstance(keep, str) else keep
    material = from_arrays(X, y, groups, [ids] if isinstance(ids, str) else ids, keep)
    wishes = Wishes(positive, features, tuple(keep), prefilter, ensemble, seed, n_jobs)
    settings = {"methods": methods, "minutes": minutes, "kernel": kernel, "rows": rows, "folds": folds}
    return conduct(
        material,
        wishes,
        {**settings, "repeats": repeats, "suspects": suspects},
        progress,
        None if folder is None else Path(folder),
    )


def conduct(
    material: Material,
    wishes: Wishes,
    settings: dict[str, Any],
    progress: Progress | None = None,
    folder: Path | None = None,
    command: str | None = None,
) -> Study:
    """Choose what to run on the material and run it."""
    since = time.perf_counter()
    _check(settings, wishes)
    classes, codes, _, _ = read_target(material.X, material.y, None, None)
    counts = np.bincount(codes)
    _check_classes(classes, codes, material, settings["folds"])
    choice = choose(
        *material.X.shape,
        mixed=material.mixed or material.gaps,
        prevalence=float(counts.min() / counts.sum()),
        classes=len(classes),
        most_rows=MOST_ROWS,
        n_jobs=wishes.n_jobs,
        **settings,
    )
    selectors = [configured(method, material, wishes, choice.rows) for method in choice.methods]
    clock = _Work(choice, progress)
    done, failures = [], []
    for method, selector in zip(choice.methods, selectors, strict=True):
        with clock.part(method) as tick:
            try:
                done.append(run(method, selector, material, choice, wishes, folder, tick))
            except SolverError as error:
                if method is choice.methods[0] or method.baseline:
                    raise
                failures.append(Finding("method", "alarm", f"{method.title} failed: {error}"))
    with clock.step("shuffled labels", choice.shuffling):
        chance = above_chance(done[0], material, choice, wishes)
    judged = None
    if choice.suspects:
        with clock.step("judging labels", choice.judging):
            judged, said = _judged(material, wishes)
            failures += said
    return Study(
        material, choice, wishes, tuple(done), chance, judged, tuple(failures), time.perf_counter() - since, command
    )


def _check(settings: dict[str, Any], wishes: Wishes) -> None:
    whole_number("study", "seed", wishes.seed, 0)
    if wishes.n_jobs == 0:
        raise InputError("study: n_jobs is 0; it must be 1 or more, or -1 for one per core")
    if wishes.features is not None:
        whole_number("study", "features", wishes.features)
    if settings["minutes"] is not None:
        positive_number("study", "minutes", settings["minutes"])
    for name, lowest in (("folds", 2), ("repeats", 1), ("rows", 1)):
        if settings[name] is not None:
            whole_number("study", name, settings[name], lowest)


def _check_classes(classes: Any, codes: Any, material: Material, folds: int | None) -> None:
    """Every class must be there in every training part, twice, so that inner folds can be made of it."""
    asked = FOLDS if folds is None else folds
    for label, count in zip(classes, units_of(codes, material.groups), strict=True):
        enough = [some for some in range(2, count + 1) if count - -(-count // some) >= 2]
        if asked in enough or len(classes) < 2:
            continue
        units = many(count, "sample" if material.groups is None else "group")
        if enough:
            few = min(enough, key=lambda some: abs(some - asked))
            advice = f"it takes {few} outer folds, not {asked} (--folds {few}, folds={few})"
        else:
            advice = "a study needs at least 3 of each class; leave this class out, or join it with another"
        raise InputError(f"the target {material.target!r} has {units} of class {label!s}: {advice}")


def _judged(material: Material, wishes: Wishes) -> tuple[pd.DataFrame | None, list[Finding]]:
    """What is suspect about the labels."""
    if len(material.X) > MOST_JUDGED:
        text = f"labels were not judged: {len(material.X)} rows, more than the {MOST_JUDGED} that this is done for"
        return None, [Finding("suspects", "note", text)]
    try:
        told: dict[str, Any] = {"groups": material.groups, "n_jobs": wishes.n_jobs, "random_state": wishes.seed}
        found = find_suspects(material.filled(), material.y, clean_rate=CLEAN_RATE, **told)
    except (InputError, SolverError) as error:
        return None, [Finding("suspects", "note", f"labels were not judged: {error}")]
    return found, []


class _Work:
    """Work done of all work, in expected seconds, passed on as parts of it finish."""

    def __init__(self, choice: Choice, progress: Progress | None) -> None:
        self.fits, self.cost = choice.folds * choice.repeats + 1, choice.cost
        self.total = sum(self.cost[method.label] for method in choice.methods) * self.fits
        self.total += choice.judging + choice.shuffling
        self.done, self.say = 0.0, progress or (lambda *_: None)

    def part(self, method: Method) -> AbstractContextManager[Callable[[float], None]]:
        """While a method is run; gives what is called with the number of folds done."""
        return self.step(method.title, self.cost[method.label] * self.fits, self.fits)

    @contextmanager
    def step(self, name: str, cost: float, pieces: int = 1) -> Iterator[Callable[[float], None]]:
        """While something of this cost is done; gives what is called with the number of pieces done."""
        before = self.done
        self.say(name, before, self.total)
        yield lambda count: self.say(name, before + cost * count / pieces, self.total)
        self.done = before + cost
        self.say(name, self.done, self.total)
