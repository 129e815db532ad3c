"""What a paper's study is made of: jobs that make our figures, claims that they are to decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Job:
    """A suite and the printed quantities that it answers.

    `methods` maps a printed method to (recipe, settings); a recipe that does not exist is shown as missing.
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
    nested: bool = True  # also run with tuning inside the training parts, to show the optimism
    grids: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)  # by method: what is tuned for it
    variants: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    untuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quick_protocol: Mapping[str, Any] = field(default_factory=dict)
    nested_protocol: Mapping[str, Any] = field(default_factory=dict)  # what changes where parameters are tuned inside
    follows: str = ""  # "job:method": the sizes are the mean number of features that the method there settled on
    refined: Mapping[str, Any] = field(default_factory=dict)  # or: its best variant there is run again with these
    chosen_by: str = ""  # the metric by which the best variant is chosen for all quantities; each has its own without
    control: str = ""


@dataclass(frozen=True)
class Claim:
    """What the paper says of its methods: `best` has the highest mean of a quantity among `among`.

    Or each of `above` has a higher one than each of `below`.
    """

    text: str
    where: str
    best: str = ""
    among: tuple[str, ...] = ()
    quantity: str = ""
    job: str = ""  # only what this job measured
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    why_not: str = ""  # a claim that no figure of ours can decide


class StudyPart(Protocol):
    """A piece of a study that is not a suite with printed figures; one with `long` is left out of a quick run."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> tuple[str, ...]: ...
    def run(
        self, out: Path, drafts: Path, n_jobs: int, fresh: bool, progress: Callable[..., None] | None
    ) -> list[str]: ...


@runtime_checkable
class DecidesClaims(Protocol):
    """A piece of a study that decides claims of its own, from what it left in the folder of drafts."""

    def claims(self, drafts: Path) -> list[tuple[str, str, str]]: ...  # what is claimed, where, the verdict


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    jobs: tuple[Job, ...]
    claims: tuple[Claim, ...]
    studies: tuple[StudyPart, ...] = ()

    def printed(self) -> pd.DataFrame:
        """The printed figures: table, dataset, method, quantity, size, value, note."""
        return printed_figures(self.name)


def printed_figures(name: str) -> pd.DataFrame:
    """The figures that a paper prints: table, dataset, method, quantity, size, value, note."""
    import pandas as pd

    with (files(__package__) / "printed" / f"{name}.csv").open(encoding="utf-8") as handle:
        frame = pd.read_csv(handle, dtype=str, keep_default_na=False)
    return frame.assign(value=pd.to_numeric(frame["value"]))
