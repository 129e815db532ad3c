"""What a selector is set to, checked, with a sentence for what makes no sense; the plan of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from ..batches.arrays import check_device
from ..contracts import (
    Criterion,
    CriterionLike,
    Filter,
    FixesSize,
    HasParameters,
    Kernel,
    KernelLike,
    Machine,
    MachineLike,
    PrefilterLike,
    ReadsColumns,
    Refits,
    Sampler,
    SamplerLike,
    Search,
    SearchLike,
    StopInfo,
    resources_of,
)
from ..criteria import FILTERS
from ..data.table import Schema
from ..errors import InputError, cost_number, listing, positive_number, shown_value, truth_value, whole_number
from ..outcomes import Classes, Target, positive_code
from ..problem import is_filter
from .compatibility import refuses, refuses_classes, refuses_mixed, refuses_table
from .parts import criterion_of, kernel_of, machine_of, sampler_of, search_of
from .training_rows import Part

SIZE_RULES = ("auto", "best")
MOST_JOBS = 1_000
MOST_MEMBERS = 100_000  # of an ensemble, and of fits on subsamples


class Settings(Protocol):
    """The parameters of a selector, as `marginsieve.SVMSelector` describes them."""

    kernel: KernelLike
    machine: MachineLike
    criterion: CriterionLike
    search: SearchLike
    n_features_to_select: int | float | str | None
    standardize: bool
    prefilter: PrefilterLike
    sampler: SamplerLike
    ensemble: int | None
    keep: Sequence[Any] | None
    class_weight: Mapping[Any, float] | str | None
    negative_weight: float
    positive: Any
    threshold: float | str | tuple[float, float]
    probability: bool
    max_samples: int | None
    similar: float | None
    resamples: int
    false_share: float | None
    cv: Any
    n_jobs: int | None
    device: str
    random_state: Any


class AnyPlan(Protocol):
    """What the plan of a selector has, whatever its kind."""

    @property
    def outcome(self) -> Classes: ...
    @property
    def linear_in_rows(self) -> bool: ...  # no matrix of rows by rows, where there are fewer columns than rows

    def for_rows(self, settings: Any, part: Part) -> AnyPlan:
        """The same plan on some of the rows."""


@dataclass(frozen=True)
class Plan:
    """The parts of one fit, resolved once and checked against each other and the table."""

    kernel: Kernel
    machine: Machine
    criterion: Criterion | Filter | None
    search: Search
    outcome: Classes
    standardize: bool = False
    prefilter: tuple[Filter, int] | None = None
    sampler: Sampler | None = None
    ensemble: int | None = None
    keep: tuple[int, ...] = ()
    device: str = "cpu"  # where many searches at once are run
    fills: bool = False  # whether missing cells are taken for the mean of their column's training rows

    @property
    def final(self) -> Machine:
        """The machine that is fitted on what was selected."""
        final = self.search.final if isinstance(self.search, Refits) else None
        return self.machine if final is None else final

    @property
    def linear_in_rows(self) -> bool:
        """Whether a fit makes no matrix of rows by rows, where there are fewer columns than rows."""
        return self.kernel.linear and self.sampler is None and self.needs_no_matrix

    @property
    def needs_no_matrix(self) -> bool:
        """Whether no part asks for a matrix of rows by rows where the kernel does without one."""
        filters = () if self.prefilter is None else (self.prefilter[0],)
        criteria = () if self.criterion is None else (self.criterion,)
        parts = [self.machine, self.final, self.search, *filters, *criteria]
        return all(resources_of(part).linear_in_rows for part in parts)

    def differs_in_machine(self, other: Plan) -> bool:
        """Whether the other plan is this one but for the machine."""
        names = [one.name for one in fields(self) if one.name != "machine"]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    def for_rows(self, settings: Settings, part: Part) -> Plan:
        """The same plan on some of the rows: where no class was named, the rarer one of these rows is positive."""
        if settings.positive is not None:
            return self
        rows = Target(np.arange(self.outcome.count), part.y, part.weight)
        return replace(self, outcome=replace(self.outcome, positive=positive_code(rows)))


def _equal(one: Any, other: Any) -> bool:
    """Whether two parts, or values, are the same: of one class with the same parameters."""
    if isinstance(one, HasParameters) and type(one) is type(other):
        ours, theirs = one.get_params(deep=False), other.get_params(deep=False)
        return all(_equal(value, theirs[name]) for name, value in ours.items())
    return bool(np.array_equal(one, other))


def make_plan(settings: Settings, schema: Schema, target: Target, part: Part) -> Plan:
    """The plan of a fit on the rows of a part; refuses what makes no sense before anything is computed."""
    check_settings(settings)
    count = len(target.classes)
    kernel, machine = kernel_of(settings.kernel), machine_of(settings.machine)
    criterion, search = criterion_of(settings.criterion), search_of(settings.search)
    if isinstance(search, ReadsColumns):
        search = search.for_columns(schema.names)
    if isinstance(search, FixesSize) and (size := feature_count(settings, part.table.shape[1])) is not None:
        search = search.for_size(size)
    prefilter = None if settings.prefilter is None else read_prefilter(settings.prefilter)
    sampler = sampler_of(settings.sampler)
    for sentence in (
        refuses(kernel, machine, criterion, search),
        refuses_table(kernel, part.table, machine),
        refuses_mixed(part.table, criterion, prefilter, sampler),
        refuses_classes(count, settings.negative_weight, settings.threshold, search),
    ):
        if sentence:
            raise InputError(sentence)
    if sampler is not None and len(np.unique(part.weight)) > 1:
        raise InputError("sample_weight and sampler were both given: synthetic rows have no weight; leave one out")
    positive = positive_code(Target(target.classes, part.y, part.weight), settings.positive)
    class_weight = weight_by_code(settings.class_weight, target.classes)
    outcome = Classes(count, positive, class_weight, settings.negative_weight)
    keep, standardize = keep_places(settings.keep, schema.names), bool(settings.standardize)
    parts = kernel, machine, criterion, search
    return Plan(*parts, outcome, standardize, prefilter, sampler, settings.ensemble, keep, settings.device)


def check_settings(settings: Settings) -> None:
    """Refuse values that make no sense."""
    check_class_weight(settings.class_weight)
    cost_number("selector", "negative_weight", settings.negative_weight)
    if settings.ensemble is not None:
        whole_number("selector", "ensemble", settings.ensemble, most=MOST_MEMBERS)
    if settings.similar is not None:
        positive_number("selector", "similar", settings.similar, 1.0)
    whole_number("selector", "resamples", settings.resamples, 0, MOST_MEMBERS)
    if settings.false_share is not None:
        positive_number("selector", "false_share", settings.false_share, 1.0)
    if settings.max_samples is not None:
        whole_number("selector", "max_samples", settings.max_samples, 4)
    truth_value("selector", "standardize", settings.standardize)
    truth_value("selector", "probability", settings.probability)
    check_seed(settings.random_state)
    check_n_jobs(settings.n_jobs)
    check_device(settings.device)
    _check_cv(settings.cv)
    threshold_rule(settings, 2)
    feature_count(settings, 1)
    if settings.prefilter is not None:
        read_prefilter(settings.prefilter)
    sampler_of(settings.sampler)
    keep = settings.keep
    if isinstance(keep, str) or not (keep is None or hasattr(keep, "__iter__")):
        raise InputError(f"keep is {shown_value(keep)}; it must be a list of column names or numbers")
    for item in keep if keep is not None else ():
        if not isinstance(item, (str, int, np.integer)) or isinstance(item, bool):
            raise InputError(f"keep names the column {shown_value(item)}; it must hold column names or numbers")


def _check_cv(cv: Any) -> None:
    """Refuse what no folds can be made of, as far as that is known without rows."""
    whole = isinstance(cv, (int, np.integer)) and not isinstance(cv, bool)
    if whole and cv >= 2:
        return
    if whole or not (hasattr(cv, "split") or hasattr(cv, "__iter__")) or isinstance(cv, (str, bytes, Mapping)):
        raise InputError(
            f"cv is {shown_value(cv)}; it must be a whole number of 2 or more, or a splitter of scikit-learn"
        )
    if hasattr(cv, "__len__") and len(cv) == 0:
        raise InputError("cv is a list without any fold; it must hold pairs of training and test rows")


def check_seed(random_state: Any) -> None:
    """Refuse what no random numbers are made of."""
    if random_state is None or isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state < 2**63:
        raise InputError(
            f"random_state is {shown_value(random_state)}; it must be a whole number of 0 or more, a RandomState, "
            "a Generator or None"
        )


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of workers."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool) and n_jobs != 0
    if not (n_jobs is None or (whole and -MOST_JOBS <= n_jobs <= MOST_JOBS)):
        raise InputError(
            f"n_jobs is {shown_value(n_jobs)}; it must be 1 or more (up to {MOST_JOBS:,}), -1 for one per core, or None"
        )


def check_class_weight(weight: Any) -> None:
    """Refuse what is neither None, "balanced" nor a dict of positive numbers."""
    balanced = isinstance(weight, str) and weight == "balanced"
    if not (weight is None or balanced or isinstance(weight, Mapping)):
        raise InputError(
            f'class_weight is {shown_value(weight)}; it must be None, "balanced" or a dict of class to weight'
        )
    for label, value in weight.items() if isinstance(weight, Mapping) else ():
        cost_number("selector", f"class_weight of {shown_value(label)}", value)


def read_prefilter(prefilter: PrefilterLike) -> tuple[Filter, int]:
    """The filter and how many columns it leaves; refuses what is no filter or no count."""
    name, count = prefilter if isinstance(prefilter, (tuple, list)) and len(prefilter) == 2 else (None, 0)
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool) and count >= 1
    known = not isinstance(name, str) or name.replace("-", "_") in FILTERS
    score = criterion_of(name) if whole and known else None
    if not is_filter(score):
        raise InputError(
            f'prefilter is {shown_value(prefilter)}; it must be a pair like ("fast", 2000): a filter '
            f"({listing(list(FILTERS), most=20)}) and a count"
        )
    return score, int(count)


def keep_places(keep: Sequence[Any] | None, names: Sequence[str]) -> tuple[int, ...]:
    """The numbers of the columns that `keep` names."""
    if keep is None:
        return ()
    place = {name: j for j, name in enumerate(names)}
    places = []
    for item in keep:
        whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        j = int(item) if whole else place.get(item, -1) if isinstance(item, str) else -1
        if not 0 <= j < len(place):
            raise InputError(f"keep names the column {item!r}, which the table does not have")
        places.append(j)
    return tuple(dict.fromkeys(places))


def weight_by_code(weight: Any, classes: Any) -> Mapping[int, float] | str | None:
    """class_weight with the classes' codes in place of their names."""
    if not isinstance(weight, Mapping):
        return None if weight is None else str(weight)
    if unknown := [label for label in weight if label not in classes]:
        raise InputError(f"class_weight names {listing(unknown)}; the classes are {listing(classes.tolist())}")
    return {k: float(weight.get(label, 1.0)) for k, label in enumerate(classes)}


def feature_count(settings: Settings, columns: int) -> int | None:
    """n_features_to_select as a count; None where a rule or the method decides."""
    size: Any = settings.n_features_to_select
    if size is None or (isinstance(size, str) and size in SIZE_RULES):
        return None
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 1 <= size < 2**62:
        return int(size)
    if isinstance(size, (float, np.floating)) and 0 < size <= 1:
        return max(1, round(float(size) * columns))
    raise InputError(
        f"n_features_to_select is {shown_value(size)}; it must be a whole number of 1 or more, a share in (0, 1], "
        '"auto", "best" or None'
    )


@dataclass(frozen=True)
class SizeChoice:
    """The number of features, or the rule by which inner folds choose it; `note` says what could not be had."""

    size: int = 0
    rule: str = ""
    note: str = ""


def size_choice(
    settings: Settings, columns: int, usable: int, searched: int, kept: int, stop: StopInfo | None
) -> SizeChoice:
    """What `n_features_to_select` comes to where so many columns vary and so many are searched."""
    given = settings.n_features_to_select
    if given is None and stop is not None:
        return SizeChoice(max(stop.size, kept))
    count = feature_count(settings, columns)
    if count is None:
        return SizeChoice(rule="best" if given == "best" else "auto")
    note = ""
    if count > searched and not (isinstance(given, (float, np.floating)) and settings.prefilter is None):
        left = "vary" if searched == usable else "are left by the prefilter"
        note = f"{count} features were asked for and {searched} {left}: all of them are selected"
    return SizeChoice(min(max(count, kept), searched), note=note)


def threshold_rule(settings: Settings, classes: int) -> Any:
    """Where the decision value is cut: a word, a number, or a pair of costs; "auto" is resolved."""
    rule = settings.threshold
    if rule == "auto":
        costs = isinstance(settings.class_weight, Mapping) or settings.negative_weight != 1.0
        return "margin" if costs or classes > 2 else "balanced"
    if isinstance(rule, (tuple, list)) and len(rule) == 2:
        for cost in rule:
            cost_number("selector", "a cost of threshold", cost)
        return tuple(rule)
    number = isinstance(rule, (int, float)) and not isinstance(rule, bool) and abs(rule) < 1e12
    if not (number or (isinstance(rule, str) and rule in ("balanced", "margin"))):
        raise InputError(
            f'threshold is {shown_value(rule)}; it must be "auto", "balanced", "margin", a number below 1e12 in '
            "size, or two positive costs "
            "(of a false positive, of a false negative)"
        )
    return rule
