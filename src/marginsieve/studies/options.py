"""The options of a study, each written once.

`StudyOptions` has a field for each option, with its sentence of help, its check, how the command line reads it and
whether it decides the result. The options of `marginsieve select`, the signature and docstring of `marginsieve.study`,
the key `options` of result.json, `--options FILE` and the table in docs/options.md are made from it. Nothing heavy is
imported here, so that the command can show its help at once.
"""

from __future__ import annotations

import csv
import difflib
import functools
import importlib.util
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from ..errors import (
    InputError,
    check_device,
    check_n_jobs,
    listing,
    positive_number,
    shown_value,
    truth_value,
    whole_number,
)
from .checks import refuse_unknown

FEWEST_SHUFFLES = 24  # of the labels: with fewer, p cannot be as low as the level of the test
MOST_COUNT = 100_000  # subsamples, shuffles, lists and folds
MOST_MINUTES = 1e7
INTERVALS = ("simple", "nested")
LABELS = ("fallible", "certain")
CORRECTIONS = ("location-scale", "combatlearn")
OUTCOMES = ("auto", "classes", "numbers", "survival")
CUTS = {"sensitivity": "sensitivity", "specificity": "specificity", "cost_ratio": "cost", "capacity": "capacity"}
SWITCHES = ("suspects", "references", "substitutes")  # were options of their own, on or off

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class OptionInfo:
    """What is known of an option besides its type and default."""

    help: str
    kind: str = ""  # as docstrings write its type; by default the annotation
    check: Callable[[str, Any], None] | None = None  # refuses a value, by name; not asked for the default
    read: Callable[[str], Any] | None = None  # the value of a text of the command line
    shown: str = ""  # the default as the command line shows it
    old: str = ""  # its spelling on the command line of the version before
    decides: bool = True  # whether the result depends on it: part of the key of what was done before
    command: bool = True  # whether the command line has it
    recorded: bool = True  # whether result.json has it


def option(default: Any, help_text: str, **info: Any) -> Any:
    """A field of the options."""
    return field(default=default, metadata={"option": OptionInfo(help_text, **info)})


# -- checks and texts -------------------------------------------------------------------------------------------------


def whole(lowest: int, most: int | None = MOST_COUNT) -> Callable[[str, Any], None]:
    """A check for whole numbers."""
    return lambda name, value: whole_number("study", name, value, lowest, most)


def number(most: float) -> Callable[[str, Any], None]:
    """A check for positive numbers."""
    return lambda name, value: positive_number("study", name, value, most)


def must_be(kind: Callable[[Any], bool], words: str) -> Callable[[str, Any], None]:
    """A check for values of another kind, and what a message says of it."""

    def check(name: str, value: Any) -> None:
        if not kind(value):
            raise InputError(f"study: {name} is {shown_value(value)}; it must be {words}")

    return check


def between_ends(name: str, value: Any) -> None:
    """Refuse what is no share above 0 and below 1."""
    positive_number("study", name, value, 1.0)
    if value >= 1.0:
        raise InputError(f"study: {name} is {shown_value(value)}; it must be a share below 1")


check_names = must_be(
    lambda value: isinstance(value, Sequence) and all(isinstance(entry, str) for entry in value),
    "a name or a sequence of names",
)


def check_rows(name: str, value: Any) -> None:
    """Refuse numbers of rows that are none."""
    for row in value if isinstance(value, Sequence) else [value]:
        if not str(row).isdecimal() or int(row) < 1:
            raise InputError(f"study: {name} is {shown_value(row)}; it must be numbers of rows, 1 or more")


def read_names(text: str) -> tuple[str, ...]:
    """Names between commas; one that holds a comma itself stands in double quotes."""
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip())


def read_ids(text: str) -> tuple[str, ...] | None:
    """None: they are to be detected."""
    return None if text == "auto" else () if text == "none" else read_names(text)


def read_count(text: str) -> int | None:
    """A number of features, or None for auto."""
    if text == "auto":
        return None
    if not text.isdecimal() or len(text) > 12 or int(text) < 1:
        raise InputError(f"--n-features-to-select is {text[:30]!r}; it must be auto or a whole number of 1 or more")
    return int(text)


def read_prefilter_text(text: str) -> tuple[str, int] | None:
    """A filter and how many columns it leaves."""
    if not text:
        return None
    name, _, count = text.partition(":")
    if not count.isdecimal() or len(count) > 12:
        raise InputError(f"--prefilter is {text!r}; it must be a filter and a count, like fast:2000")
    return name.strip(), int(count)


def read_size(text: str) -> tuple[int, ...]:
    """Rows of a cohort, by stratum, as in 30+50."""
    parts = [part.strip() for part in text.split("+")]
    if not all(part.isdecimal() and len(part) <= 9 and int(part) > 0 for part in parts):
        raise InputError(f"study: next_cohort is {shown_value(text)}; it must be numbers of rows such as 30+50")
    return tuple(map(int, parts))


def check_sizes(name: str, value: Any) -> None:
    """Refuse sizes of cohorts that are none."""
    check_names(name, value)
    for text in value:
        read_size(text)


# -- the options ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What a user asks of a study. Values are checked by `check`, which `run_study` calls first."""

    methods: str | Sequence[str] = option(
        "auto",
        "Methods that `marginsieve methods` lists, separated by commas or as a sequence; the first is the one whose "
        "features are presented. auto chooses by the shape of the table. All features with the same threshold are "
        "always run beside them.",
        kind='"auto", str or sequence of str',
        check=check_names,
        old="--method",
    )
    minutes: float | None = option(
        None,
        "How long the study may take: the first folds are measured, and decide once how many methods and repeats are "
        "run and, where not even one method fits, on how many rows and columns.",
        check=number(MOST_MINUTES),
    )
    positive: Any = option(None, "The class of interest; by default the rarer one.", kind="label or None")
    sensitivity: float | None = option(
        None,
        "Cut the decision value where inner folds find at least this share of the class of interest, in place of "
        "halfway between the classes; so with every method, in the training rows of each outer fold.",
        check=between_ends,
    )
    specificity: float | None = option(
        None,
        "Cut where inner folds leave at least this share of the other class alone.",
        check=between_ends,
    )
    cost_ratio: float | None = option(
        None,
        "Cut where errors cost least in inner folds; a missed one of the class of interest costs as much as so many "
        "false alarms.",
        check=number(1e6),
    )
    capacity: float | None = option(
        None,
        "Cut so that at most this share of all rows is called the class of interest.",
        check=between_ends,
    )
    prevalence: float | None = option(
        None,
        "Share of the class of interest where the model is to be used: predictive values and net benefit are given for "
        "that mix too, and cost_ratio and capacity cut for it.",
        check=between_ends,
    )
    baseline: Sequence[str] = option(
        (),
        "Columns that are known anyway, such as age,sex: what the list adds to them is tested, and they to it.",
        check=check_names,
        decides=False,  # of the folds nothing
    )
    explain_rows: Sequence[Any] = option(
        (),
        "Numbers of rows (1 is the first) for which the page says what each feature adds to their score.",
        kind="sequence of int",
        check=check_rows,
        decides=False,
    )
    outcome: Any = option(
        "auto",
        "What the target is: classes, numbers, whose values are predicted, or survival: whether an event was seen, its "
        "time in another column. auto takes it for numbers where it holds more than ten different ones that are not "
        "whole, or most of them rare, and for survival where there is a time, and says so.",
        kind="str or Outcome",
        check=must_be(lambda value: not isinstance(value, str) or value in OUTCOMES, f"one of {listing(OUTCOMES)}"),
    )
    time: str | None = option(
        None,
        "Column of the time to the event, or to which it had not come; the target says whether it came (1 or true, or "
        "a word such as died).",
        check=must_be(lambda value: isinstance(value, str), "the name of a column"),
        decides=False,  # a part of the table, which is known by its fingerprint
    )
    layer: str | None = option(
        None,
        "Layer of an AnnData object or .h5ad file that is read in place of its matrix X.",
        check=must_be(lambda value: isinstance(value, str), "the name of a layer"),
        decides=False,  # a part of the table, which is known by its fingerprint
    )
    horizon: float | None = option(
        None,
        "For survival: the time at which AUC and Brier score are computed and survival is predicted.",
        check=number(1e300),
    )
    n_features_to_select: int | None = option(
        None,
        "Number of features (of a method with a budget: at most); by default inner folds decide, or the method.",
        check=whole(1, None),
        read=read_count,
        shown="auto",
        old="--features",
    )
    groups: Any = option(
        None,
        "Group of each row, on the command line a column such as a patient: rows of one group are never on both sides "
        "of a split.",
        kind="array-like of shape (n_samples,) or None",
        decides=False,  # a part of the table, which is known by its fingerprint
    )
    site: Any = option(
        None,
        "Where each row was measured, on the command line a column such as a hospital, batch or study: whole sites are "
        "left out beside the folds, and two alarms say whether sites pass for signal. The column is no feature.",
        kind="array-like of shape (n_samples,) or None",
        decides=False,
    )
    site_correction: str | None = option(
        None,
        "Score the main method too with each site's columns corrected without outcomes: location-scale brings them to "
        "one mean and deviation, combatlearn is ComBat by that package (marginsieve[combat]). The model itself stays "
        "as it is.",
        kind='"location-scale", "combatlearn" or None',
        check=must_be(lambda value: value in CORRECTIONS, f"one of {listing(CORRECTIONS)}"),
        decides=False,
    )
    blocks: Any = option(
        (),
        "Blocks of columns that may be missing elsewhere: prefixes of their names, such as mrna_,protein_, or a "
        "mapping of columns to blocks (on the command line a table of two columns). For each block of the list there "
        "is a model without it.",
        kind="sequence of prefixes, or mapping of column to block",
        check=lambda name, value: isinstance(value, Mapping) or check_names(name, value),
        decides=False,
    )
    ids: Sequence[str] | None = option(
        None,
        "Columns that identify rows and are not features; by default they are detected. () means there are none, on "
        "the command line none.",
        kind="sequence of column names, or None",
        check=check_names,
        read=read_ids,
        shown="auto",
    )
    keep: Sequence[str] = option(
        (),
        "Features that every method always selects (on the command line a name with a comma in double quotes).",
        check=check_names,
    )
    include: Sequence[str] = option(
        (), "Columns that are features whatever they look like (ids, times).", check=check_names
    )
    drop: Sequence[str] = option((), "Columns that are not features.", check=check_names)
    prefilter: tuple[str, int] | None = option(
        None,
        "Search only among this number of best columns of a filter, for every method; on the command line like "
        "fast:2000.",
        read=read_prefilter_text,
    )
    ensemble: int | None = option(
        None,
        "Average the ranking over this number of subsamples, for every method: slower, more stable.",
        check=whole(1),
    )
    kernel: str | None = option(
        None,
        "Kernel of every method that takes one: linear, gaussian, polynomial or clinical; by default the methods "
        "choose.",
        check=must_be(lambda value: isinstance(value, str), "a name"),
    )
    max_samples: int | None = option(
        None,
        "Train on at most this number of rows; by default 5,000 where there are more than 10,000.",
        check=whole(1, None),
    )
    cv: int | None = option(None, "Number of outer folds; by default 5.", check=whole(2), shown="5", old="--folds")
    n_repeats: int | None = option(
        None,
        "Number of times that the outer folds are drawn; by default 3 (1 from 1,000 rows on), or what the minutes "
        "allow.",
        check=whole(1),
        old="--repeats",
    )
    labels: str | None = option(
        None,
        "Whether a label can be wrong: fallible (such as a diagnosis) or certain (what happened, happened). Unless it "
        "is fallible no label is called wrong.",
        kind='"fallible", "certain" or None',
        check=must_be(lambda value: value in LABELS, f"one of {listing(LABELS)}"),
    )
    mute: Sequence[str] = option(
        (),
        "Codes of checks that are not to be shown, such as MS108 (docs/checks.md has them all).",
        check=refuse_unknown,
        decides=False,  # only what is shown
    )
    with_: Sequence[str] = option(
        (),
        "Analyses that are run even where they take long, such as false-share or other-lists.",
        check=check_names,
    )
    without: Sequence[str] = option(
        (),
        "Analyses that are left out, such as suspects, references or substitutes.",
        check=check_names,
    )
    n_permutations: int = option(
        99,
        "Number of times that the analysis shuffled-study shuffles the labels, 24 or more.",
        check=whole(FEWEST_SHUFFLES),
        old="--permutations",
    )
    intervals: str = option(
        "simple",
        "simple: standard errors from the predictions with factors that were measured on simulated tables. nested: by "
        "nested cross-validation on this table, which takes about three times as long.",
        kind='"simple" or "nested"',
        check=must_be(lambda value: value in INTERVALS, f"one of {listing(INTERVALS)}"),
    )
    false_share: float | None = option(
        None,
        "Every method selects the longest list whose estimated share of false features is at most this, in place of a "
        "number of features. The share is estimated for the main method's list in any case, where it is not too "
        "costly.",
        check=number(1.0),
    )
    alternatives: int | None = option(
        None,
        "Number of lists that differ from the main one: without its first feature, its second and so on, and the last "
        "without the whole list. By default 5, or none where that would take long.",
        check=whole(0),
    )
    feature_costs: Mapping[str, float] | None = option(
        None,
        "What it costs to measure each column, 1 where it is not named (on the command line a table of names and "
        "costs): the cheapest list within the error of the best is reported beside the main one.",
        check=must_be(lambda value: isinstance(value, Mapping), "a mapping of columns to numbers"),
        old="--costs",
    )
    next_cohort: Sequence[str] = option(
        (),
        "Sizes of cohorts for which the score is forecast, such as 30+50 (the class of interest first), or a number of "
        "events where the outcome is times; by default that of the table.",
        check=check_sizes,
        decides=False,  # of the folds nothing
    )
    random_state: int = option(
        0,
        "Seed; the result depends on it alone, not on the number of workers.",
        check=whole(0, None),
        old="--seed",
    )
    n_jobs: int | None = option(
        None,
        "Number of worker processes, -1 for one per core; on the command line by default one per core where that is "
        "faster.",
        check=lambda _, value: check_n_jobs(value),
        old="--jobs",
        decides=False,
        recorded=False,
    )
    device: str = option(
        "cpu",
        "Where many searches at once are run: cpu, cuda, or auto for a GPU where it gains.",
        check=lambda _, value: check_device(value),
        decides=False,
    )
    follow_umask: bool = option(
        False,
        "Results may be read by others as far as the umask lets them; by default they are for their owner alone (files "
        "0600, new folders 0700; on POSIX systems).",
        check=lambda name, value: truth_value("study", name, value),
        decides=False,
        recorded=False,
    )
    plan: Mapping[str, Any] | None = option(
        None,
        'What an earlier study decided by its minutes (`result["protocol"]["plan"]`, on the command line its result '
        "folder), to be done again as it was.",
        check=must_be(lambda value: isinstance(value, Mapping), "the plan of a result.json"),
        decides=False,
        recorded=False,
    )
    progress: Callable[[str, float, float], Any] | None = option(
        None,
        "Called as progress(what, done, total).",
        check=must_be(callable, "a function of what is done, how much of it, and of how much"),
        decides=False,
        command=False,
        recorded=False,
    )
    folder: str | Path | None = option(
        None,
        "Folder in which finished folds are kept: the same call continues where it was interrupted.",
        check=must_be(lambda value: isinstance(value, (str, Path)), "a path"),
        decides=False,
        command=False,
        recorded=False,
    )

    def __post_init__(self) -> None:
        """One name alone is a sequence of one, and what files have as a list is a tuple."""
        for entry in fields(self):
            value, several = (
                getattr(self, entry.name),
                entry.name
                in (
                    "ids",
                    "keep",
                    "drop",
                    "baseline",
                    "explain_rows",
                    "include",
                    "mute",
                    "with_",
                    "without",
                    "next_cohort",
                    "blocks",
                ),
            )
            if isinstance(value, list) or (several and isinstance(value, str)):
                object.__setattr__(self, entry.name, (value,) if isinstance(value, str) else tuple(value))

    def check(self) -> None:
        """Refuse values that make no sense; a message names the option, its value and what would be accepted."""
        for entry in fields(self):
            value, info = getattr(self, entry.name), info_of(entry)
            if info.check is not None and not (value is None and entry.default is None):
                info.check(entry.name, value)
        if both := [name for name in self.with_ if name in self.without]:
            raise InputError(f"study: with_ and without both name {both[0]!r}: leave one out")
        if self.false_share is not None and self.n_features_to_select is not None:
            raise InputError("false_share and n_features_to_select were both given: leave one out")
        if len(cuts := [name for name in CUTS if getattr(self, name) is not None]) > 1:
            raise InputError(f"{cuts[0]} and {cuts[1]} were both given: the decision value is cut in one place")
        if self.site_correction is not None and self.site is None:
            raise InputError("site_correction was given and no site: name the column of the sites")
        if self.site_correction == "combatlearn" and importlib.util.find_spec("combatlearn") is None:
            raise InputError("site_correction: combatlearn is not installed: pip install 'marginsieve[combat]'")

    def cut_rule(self) -> str | None:
        """The threshold of selectors that was asked for; None is the usual one."""
        for name, word in CUTS.items():
            if (value := getattr(self, name)) is not None:
                by_mix = self.prevalence is not None and name in ("cost_ratio", "capacity")
                return f"{word}:{value:g}" + (f" at {self.prevalence:g}" if by_mix else "")
        return None

    @property
    def share_elsewhere(self) -> float | None:
        """The share of the class of interest where the model is to be used."""
        return self.prevalence

    @property
    def features_in_any_case(self) -> tuple[str, ...]:
        """Columns that are features whatever they look like."""
        return (*self.include, *self.baseline)

    def cohort_sizes(self) -> list[tuple[int, ...]]:
        """Rows of the cohorts for which the score is forecast."""
        return [read_size(text) for text in self.next_cohort]

    def record(self) -> dict[str, Any]:
        """The options by name, as result.json has them and `--options` reads them."""
        named = {entry.name: getattr(self, entry.name) for entry in fields(self) if info_of(entry).recorded}
        label = self.positive
        outcome = getattr(self.outcome, "name", self.outcome)
        label = None if label is None else str(label)
        return named | {"groups": None, "site": None, "positive": label, "outcome": outcome}

    def key(self) -> list[tuple[str, Any]]:
        """What decides the result: a study with the same key and table is the same study."""
        return [(entry.name, getattr(self, entry.name)) for entry in fields(self) if info_of(entry).decides]


def info_of(entry: Field[Any]) -> OptionInfo:
    """What is known of an option."""
    info: OptionInfo = entry.metadata["option"]
    return info


def flag_of(entry: Field[Any]) -> str:
    """An option's spelling on the command line."""
    return "--" + entry.name.strip("_").replace("_", "-")


def check_keys(known: Mapping[str, Any], source: str) -> None:
    """Refuse names in a file of options that are none."""
    names = [entry.name for entry in fields(StudyOptions) if info_of(entry).command]
    for name in known:
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"options are {listing(names, len(names))}"
            raise InputError(f"{source} has {str(name)!r}, which is no option; {hint}")


# -- Python -----------------------------------------------------------------------------------------------------------


def from_options(
    make: Callable[P, StudyOptions],
) -> Callable[[Callable[[Any, Any, StudyOptions], T]], Callable[Concatenate[Any, Any, P], T]]:
    """Give a function of (X, y, options) a keyword for each option, in its signature and in its docstring."""

    def decorate(function: Callable[[Any, Any, StudyOptions], T]) -> Callable[Concatenate[Any, Any, P], T]:
        @functools.wraps(function)
        def call(X: Any, y: Any, **options: Any) -> T:
            return function(X, y, cast(Any, make)(**without_old_names(options)))

        signature = inspect.signature(function)
        X, y, _ = signature.parameters.values()
        keywords = [
            inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=entry.default, annotation=entry.type)
            for entry in fields(StudyOptions)
        ]
        cast(Any, call).__signature__ = signature.replace(parameters=[X, y, *keywords])
        call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("{options}", document_options())
        del cast(Any, call).__wrapped__
        return cast("Callable[Concatenate[Any, Any, P], T]", call)

    return decorate


def without_old_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords with `suspects`, `references` and `substitutes` as `without`; refuses those that are no options."""
    names, known = [entry.name for entry in fields(StudyOptions)], dict(options)
    for name in [name for name in SWITCHES if name in known]:
        text = f"study: {name}=False is called without=[{name!r}] now; the old name will be gone in the next version"
        warnings.warn(text, FutureWarning, stacklevel=3)
        if not known.pop(name):
            others = known.get("without", ())
            known["without"] = (*([others] if isinstance(others, str) else others), name)
    for name in known:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"study() got an unexpected keyword argument {name!r}{hint}")
    return known


def document_options() -> str:
    """The options as the section of a docstring has them."""
    lines = []
    for entry in fields(StudyOptions):
        default = f'"{entry.default}"' if isinstance(entry.default, str) else repr(entry.default)
        lines.append(f"{entry.name} : {kind_of(entry)}, default={default}")
        lines += [f"    {line}" for line in textwrap.wrap(info_of(entry).help, 112)]
    return "\n".join(lines)


def kind_of(entry: Field[Any]) -> str:
    """The type of an option in words."""
    text = info_of(entry).kind or str(entry.type).replace(" | ", " or ")
    text = re.sub(r"Callable\[.*\]", "callable", re.sub(r"tuple\[(.*?)\]", r"(\1)", text))
    text = re.sub(r"Mapping\[(\w+), (\w+)\]", r"mapping of \1 to \2", text)
    return re.sub(r"Sequence\[(\w+)\]", r"sequence of \1", text).replace("Any", "value")


def word_type_of(entry: Field[Any]) -> Any:
    """What the command line takes a text for; names may be given several times."""
    if info_of(entry).read is None:
        for start, kind in (("int", int), ("float", float), ("bool", bool), ("Sequence", list[str])):
            if str(entry.type).startswith(start):
                return kind
    return str
