"""What a study looks at besides its methods: the contract of an analysis, and what it is given.

An analysis is an object with the attributes of `Analysis`. `register_analysis` makes it known; then the plan of a
study, `with_` and `without`, result.json, the answer, the page and its navigation have it. The modules of `analyses/`
are found by themselves; other packages name a module of theirs as an entry point `marginsieve.analyses`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import pandas as pd

from ..contracts import IntArray
from ..engine.scoring import Scores, score_difference
from ..engine.units import Method, PreparedMethod, UnitTable
from ..report.sections import load_plugins, register_template
from .checks import Finding
from .options import StudyOptions
from .selection import Selection
from .study_data import StudyData

Effort = tuple[int, ...]  # how much an analysis does, in numbers of its own: shuffles, pairs of halves, lists


class Level(NamedTuple):
    """An effort of an analysis, and when it is made.

    `worth` is its place among what a study is given as its minutes allow: 0 belongs to the least study; then come more
    permutations (4), the share of false features (6), substitutes (8), the judging of labels (10), more shuffles (20),
    the methods (40), models for reference (50), a second and third repeat (60), other lists (70), and up to ten repeats
    (90). Without minutes the last level is taken whose cost is at most `most_seconds`, or the last at all where it was
    asked for.
    """

    effort: Effort
    worth: float
    most_seconds: float = float("inf")


@dataclass(frozen=True)
class Measured:
    """Seconds: of the first fold of methods, by label; of the units in which analyses are measured, by their names.

    `pace`: what a second of computing takes on the clock, more than one beside other work.
    """

    fold: Mapping[str, float]
    unit: Mapping[str, float]
    pace: float = 1.0


@dataclass(frozen=True)
class Shape:
    """What is known of a table before anything is run."""

    rows: int
    columns: int
    mixed: bool  # whether there are categories or empty cells
    smallest_share: float  # of the rows, in a stratum: a class
    outcome: str = "classes"
    has_auc: bool = True  # two sides, which AUC compares
    list_score: str = "auc"  # by which lists are compared that differ in few columns


@dataclass(frozen=True)
class Facts:
    """What is known of a study before it is run: from these an analysis says whether it applies, and what it costs."""

    shape: Shape
    options: StudyOptions
    main: Method
    cv: int
    used: int  # rows of a training part
    on_gpu: bool = False
    effort: Effort = ()  # whose cost is asked for
    measured: Measured | None = None

    def seconds_of_unit(self, name: str) -> float | None:
        """What a unit of an analysis took on this table; None before it was measured."""
        return None if self.measured is None else self.measured.unit.get(name, 0.0)


@dataclass(frozen=True)
class Choice:
    """What a study runs; `why` says how it came to that."""

    methods: tuple[Method, ...]  # the main one first, the baseline last
    options: StudyOptions  # as given, with the number of folds, repeats and rows that are used
    facts: Facts
    efforts: Mapping[str, Effort]  # of the analyses that are run, by name
    left_out: Mapping[str, str]  # why others are not
    why: tuple[str, ...]
    cost: Mapping[str, float]  # expected seconds of one fit, by label

    @property
    def cv(self) -> int:
        """Number of outer folds."""
        return self.facts.cv

    @property
    def n_repeats(self) -> int:
        """Number of times that the folds are drawn."""
        return self.options.n_repeats or 1

    def seconds(self, name: str) -> float:
        """What an analysis is expected to take."""
        analysis, measured = ANALYSES[name], self.facts.measured
        pace = 1.0 if measured is None or isinstance(analysis, MeasuresItself) else measured.pace
        return pace * analysis.cost(replace(self.facts, effort=self.efforts[name], options=self.options))


@dataclass(frozen=True)
class AnalysisResult:
    """What came of an analysis.

    Attributes
    ----------
    values : mapping
        Plain values: its entry in result.json. `features_note` is shown above the selected features, `methods_text` is
        a sentence of the paragraph for a paper where there is evidence.
    columns : mapping of str to array of shape (n_features,)
        Columns of the table of features, in the order of the features in the table.
    entries : mapping of feature to mapping
        What result.json says of a selected feature.
    tables : mapping of str to DataFrame
        Files of the result folder (.csv).
    details : object
        The same for users of Python, as an attribute of `Study` may show it.
    findings : sequence of Finding
        Remarks for the list of what is remarkable.
    """

    values: Mapping[str, Any] | None
    columns: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    details: Any = None
    findings: Sequence[Finding] = ()


@dataclass(frozen=True)
class StudyRun:
    """What a study runs and what has come of it so far: what analyses are given, and what the answer is made of."""

    data: StudyData
    table: UnitTable
    choice: Choice
    options: StudyOptions  # as given, but for the number of workers
    methods: Sequence[tuple[Method, PreparedMethod]]
    selections: tuple[Selection, ...] = ()  # the main method first, all features last
    results: dict[str, AnalysisResult] = field(default_factory=dict)  # of the analyses that are done
    failures: tuple[Finding, ...] = ()
    seconds: float = 0.0
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
    def main_method(self) -> PreparedMethod:
        """The main method with its settings for the table."""
        return self.methods[0][1]

    @property
    def selected_features(self) -> IntArray:
        """The selected features by rank."""
        order = np.argsort(self.main.selector.ranking_)
        return np.asarray(order[self.main.selector.support_[order]], dtype=np.intp)

    @property
    def evident(self) -> bool:
        """Whether anything predicts, as far as the analyses that decide this are done."""
        known = ((ANALYSES[name], result.values) for name, result in self.results.items())
        return all(analysis.evident(values) for analysis, values in known if isinstance(analysis, Gate))

    @cached_property
    def features(self) -> pd.DataFrame:
        """Every feature by rank."""
        frame, order = self.main.features(), np.argsort(self.main.selector.ranking_)
        columns = {
            name: np.asarray(values)[order]
            for result in self.results.values()
            for name, values in result.columns.items()
        }
        return frame.assign(**columns)

    def difference(self, selection: Selection, other: Selection | None = None) -> Scores:
        """A method's metrics less those of another, or of all features, on the same rows and folds."""
        ours, theirs = selection.nested, (self.baseline if other is None else other).nested
        scores = score_difference(ours.target, ours.passes, theirs.passes)
        zero = dict.fromkeys(scores.value, 0.0)
        return replace(scores, low=zero, high=zero, error=zero) if ours is theirs else scores


class CanRun(Protocol):
    """What an analysis must have; the rest of `Analysis` it may leave out."""

    name: str
    order: float
    template: str

    def run(self, run: StudyRun) -> Mapping[str, Any] | AnalysisResult:
        """Plain values, or a result with columns and tables besides; reads what it is given and writes nothing."""
        ...


class Analysis(CanRun, Protocol):
    """Something that a study looks at besides its methods; all but the attributes and `run` may be left out.

    Attributes
    ----------
    name : str
        Its key in result.json and in the plan, and what `with_` and `without` call it.
    order : float
        Its place among the analyses, and of its sentence in the answer, which is at 10 (the list), 30 (its price), 40
        (features that matter together) and 50 (stability) itself.
    template : str
        Its section of the page: the name of a file of report/templates/sections/, or a template that begins with its
        place and title, as in `{# 75: Sites #}`; "" for none. The template is given the result as `r`.
    """

    def applies(self, facts: Facts) -> str | None:
        """None, as for any table, or the sentence why it cannot be run on this table."""
        ...

    def cost(self, facts: Facts) -> float:
        """Expected seconds of one process; 0 for what is little beside the folds."""
        ...

    def sentence(self, result: dict[str, Any]) -> str | None:
        """What the answer says of it; `result` is the whole study, and has it in `analyses` under its name."""
        ...

    def doubt(self, result: dict[str, Any]) -> Finding | str | None:
        """A reason to doubt the answer; a finding where it has a check of its own."""
        ...


@runtime_checkable
class HasLevels(Protocol):
    """Can be run with more or less effort, or only where it does not take long."""

    def levels(self, facts: Facts) -> Sequence[Level]:
        """Efforts from the least to the most; none where it is not worth it."""
        ...


@runtime_checkable
class MeasuresItself(Protocol):
    """Its cost is known from a unit that is run on the table; analyses of the same unit share it."""

    unit: str

    def measure(self, run: StudyRun) -> None:
        """Run one unit, which is timed."""
        ...


@runtime_checkable
class Gate(Protocol):
    """Decides whether anything predicts, which the headline is about: it cannot be left out."""

    def evident(self, values: Mapping[str, Any] | None) -> bool:
        """Whether there is evidence."""
        ...

    def is_weak(self, values: Mapping[str, Any]) -> bool:
        """Whether there is some evidence, which the headline must call weak."""
        ...

    def describe_test(self, values: Mapping[str, Any]) -> str:
        """The test in a few words, such as "p = 0.4"."""
        ...


class Support(NamedTuple):
    """What the headline says of how far the members of a list can be believed."""

    warning: str = ""  # a sentence before all else
    text: str = ""  # after the score


@runtime_checkable
class JudgesLists(Protocol):
    """Says how many features of the lists may be there by chance."""

    def chance_shares(self, values: Mapping[str, Any]) -> tuple[float | None, float | None]:
        """The share of the short list and of the long one that may be there by chance; None where it is not known."""
        ...

    def support(self, result: dict[str, Any]) -> Support:
        """What the headline says of the short list."""
        ...


@runtime_checkable
class HasCard(Protocol):
    """A number at the top of the page."""

    def card(self, result: dict[str, Any]) -> tuple[str, str] | None:
        """The number and what it is."""
        ...


ANALYSES: dict[str, Analysis] = {}  # by name, in their order
A = TypeVar("A", bound=Callable[[], CanRun])


def _nothing(_: Any) -> None:
    """`applies` of an analysis of any table; `sentence` or `doubt` of what is seen elsewhere."""


def _costs_little(_: Facts) -> float:
    """`cost` of what is little beside the folds."""
    return 0.0


DEFAULTS = {"applies": _nothing, "cost": _costs_little, "sentence": _nothing, "doubt": _nothing}


def register_analysis(make: A) -> A:
    """Make an analysis known; a decorator of its class.

    Parameters
    ----------
    make : callable
        The class: it is called without arguments.

    Returns
    -------
    callable
        The same.
    """
    analysis = cast(Analysis, make())
    for name, default in DEFAULTS.items():
        if not hasattr(analysis, name):
            setattr(type(analysis), name, staticmethod(default))
    register_template(analysis.name, analysis.template)
    known = sorted([*ANALYSES.values(), analysis], key=lambda each: each.order)
    ANALYSES.clear()
    ANALYSES.update({each.name: each for each in known})
    return make


def load_analyses() -> dict[str, Analysis]:
    """The analyses that are known: ours, and those of other packages."""
    import_module(".analyses", __package__)
    load_plugins("marginsieve.analyses")
    return ANALYSES


def levels_of(analysis: Analysis, facts: Facts) -> Sequence[Level]:
    """The efforts with which an analysis can be run."""
    return analysis.levels(facts) if isinstance(analysis, HasLevels) else (Level((), 65.0),)


# -- what several analyses have in common -----------------------------------------------------------------------------


def applies_to_classes(facts: Facts) -> str | None:
    """Of an analysis that is about classes."""
    return None if facts.shape.outcome == "classes" else f"it is for classes, not for {facts.shape.outcome}"


def applies_to_lists(facts: Facts) -> str | None:
    """Of an analysis that compares lists of columns."""
    if facts.shape.list_score:
        return None
    known = facts.shape.outcome
    return "there are more than two classes" if known == "classes" else f"lists are not compared for {known}"


def part_of_every_study(facts: Facts) -> tuple[Level, ...]:  # noqa: ARG001
    """`levels` of what belongs to the least study."""
    return (Level((), 0),)
