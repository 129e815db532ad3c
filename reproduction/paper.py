"""What a paper's study is made of: jobs that make our figures and their variants, parts that are no suites, claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from marginsieve.errors import InputError

from .claims import Claim
from .evidence import AS_PRINTED, HONEST, REPAIRED
from .workplace import Workplace

QUICK, KEPT, FULL = "quick", "kept", "full"  # how much of a study is run
MANY_VALUES = 8  # of a parameter, which a quick run does not try all


@dataclass(frozen=True)
class Job:
    """A suite and the printed quantities that it answers, run once for each column.

    A `handicap` is set in the printed column alone (by the long names of parameters of parts, where a method has them
    and does not set them itself); with one there is a column without it, in which the rivals are repaired.

    `methods` maps a printed method to (recipe, settings).
    `quantities` maps a printed quantity to (metric, "value" | "mean" | "max" over sizes). `variants` are settings of a
    method that the paper chose among by the very estimate that it reports; `untuned` are the settings with which a
    method is run instead, with nothing tuned, where parameters may not be chosen so. `control` is the paper's own
    method, which the others are tested against; without one all pairs are tested.
    """

    name: str
    tables: tuple[str, ...]
    protocol: Mapping[str, Any]
    data: tuple[str, ...]
    quick: tuple[str, ...]
    methods: Mapping[str, tuple[str, Mapping[str, Any]]]
    quantities: Mapping[str, tuple[str, str]]
    note: str = ""  # printed rows must carry this in their note
    size: str = ""  # printed rows must be of this size
    nested: bool = True  # also run with everything chosen inside the training parts: the honest column
    handicap: Mapping[str, Any] = field(default_factory=dict)  # what the paper does to all methods and no rival needs
    grids: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)  # by method: what is tuned for it
    variants: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    untuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quick_protocol: Mapping[str, Any] = field(default_factory=dict)
    nested_protocol: Mapping[str, Any] = field(default_factory=dict)  # what changes where parameters are tuned inside
    control: str = ""
    group: str = ""  # of jobs that are one table of the paper together: its claims and ranks are over all of them

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is run for."""
        return (AS_PRINTED, *((REPAIRED,) if self.handicap else ()), *((HONEST,) if self.nested else ()))

    def quick_form(self) -> Job:
        """The small data sets, the first variant of each method, every fourth value of what has many."""
        protocol = {**self.protocol, **self.quick_protocol}
        if "grid" in protocol:
            protocol["grid"] = _thin_out(protocol["grid"])
        grids = {label: _thin_out(values) for label, values in self.grids.items()}
        first = {
            label: tuple(
                {**extra, "grid": _thin_out(extra["grid"])} if "grid" in extra else extra for extra in some[:1]
            )
            for label, some in self.variants.items()
        }
        return replace(self, data=self.quick, protocol=protocol, grids=grids, variants=first)


def _thin_out(values: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    return {name: some[::4] if len(some) > MANY_VALUES else some for name, some in values.items()}


class StudyPart(Protocol):
    """A piece of a study that is not a suite with printed figures; one with `long` is left out of a quick run."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> tuple[str, ...]: ...
    def run(self, place: Workplace) -> list[str]: ...  # lines of the report


@runtime_checkable
class HasQuickForm(Protocol):
    """A part that is smaller in a quick run."""

    def quick_form(self) -> StudyPart: ...


@runtime_checkable
class HasAnswers(Protocol):
    """A part whose figures are compared with the print, as those of a job are."""

    @property
    def job(self) -> Job: ...
    def answers(self, place: Workplace) -> list[pd.DataFrame]: ...  # after it was run, a table for each column


@dataclass(frozen=True)
class Paper:
    """A paper's study as it is kept; `full` has, by job or part, what changes where its whole grids are run."""

    name: str
    title: str
    jobs: tuple[Job, ...]
    claims: tuple[Claim, ...]
    studies: tuple[StudyPart, ...] = ()
    full: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_scope(self, scope: str) -> Paper:
        """The study at a scope: quick, kept or full."""
        if scope == QUICK:
            short = tuple(
                part.quick_form() if isinstance(part, HasQuickForm) else part
                for part in self.studies
                if not getattr(part, "long", False)
            )
            return replace(self, jobs=tuple(job.quick_form() for job in self.jobs), studies=short)
        if scope == FULL:
            jobs = tuple(replace(job, **self.full.get(job.name, {})) for job in self.jobs)
            parts: list[Any] = list(self.studies)
            whole = tuple(replace(part, **self.full.get(part.name, {})) for part in parts)
            return replace(self, jobs=jobs, studies=whole)
        if scope != KEPT:
            raise InputError(f"scope is {scope!r}; it must be {QUICK!r}, {KEPT!r} or {FULL!r}")
        return self

    @property
    def data(self) -> list[str]:
        """The data sets of its jobs, and of parts that are compared with the print as jobs are."""
        jobs = [*self.jobs, *(part.job for part in self.studies if isinstance(part, HasAnswers))]
        return list(dict.fromkeys(name for job in jobs for name in job.data))

    def figures(self) -> pd.DataFrame:
        """The printed figures: table, dataset, method, quantity, size, value, note."""
        return printed_figures(self.name)


def printed_figures(name: str) -> pd.DataFrame:
    """The figures that a paper prints: table, dataset, method, quantity, size, value, note."""
    with (files(__package__) / "printed" / f"{name}.csv").open(encoding="utf-8") as handle:
        frame = pd.read_csv(handle, dtype=str, keep_default_na=False)
    return frame.assign(value=pd.to_numeric(frame["value"]))


def variant_label(label: str, extra: Mapping[str, Any]) -> str:
    """The label of a method with further settings."""
    settings = [
        f"{name}={value if isinstance(value, str) else f'{value:g}'}" for name, value in extra.items() if name != "grid"
    ]
    return f"{label}[{', '.join(settings)}]" if settings else label


def base_of(label: str) -> str:
    """The label of a method without its further settings."""
    return label.split("[", maxsplit=1)[0]


def bases(labels: Any) -> Any:
    """The same for a column of labels."""
    return labels.str.split("[", regex=False).str[0]
