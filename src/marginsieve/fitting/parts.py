"""Parts by name, a string for one with its defaults, and a sentence where parts do not work together.

Which combinations make sense is derived from what the parts declare.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import (
    NUMBERS,
    AnyPart,
    Criterion,
    CriterionLike,
    Filter,
    HasCheck,
    IntArray,
    Kernel,
    KernelLike,
    Machine,
    MachineLike,
    Sampler,
    SamplerLike,
    Search,
    SearchLike,
    TableView,
    TakesKinds,
    targets_of,
)
from ..criteria import CRITERIA, FILTERS
from ..errors import InputError, listing, one_of, positive_number, whole_number
from ..kernels import KERNELS
from ..machines import MACHINES
from ..problem import is_filter
from ..searches import SEARCHES

# -- samplers ---------------------------------------------------------------------------------------------------------

MOST_PERCENT = 1e5
BASES = ("drawn", "each")


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class Smote(BaseEstimator):
    """Synthetic rows of the rarest class between its own neighbors, by imbalanced-learn.

    Parameters
    ----------
    percent : float or None
        New rows, in per cent of the rarest class: 400 makes it five times as large (Chawla et al. 2002). None makes
        every class as large as the largest.
    k_neighbors : int
        Neighbors to interpolate with; where the class has fewer, all of them.
    bases : "drawn" or "each"
        From which rows the new ones start: "drawn" at random with repetition, as imbalanced-learn does; "each" as in
        Chawla et al.: with 400 per cent every row of the class four times, towards neighbors that are drawn without
        repetition as long as there are enough.
    random_state : int or None
        None takes the selector's own.
    """

    percent: float | None = 400.0
    k_neighbors: int = 5
    bases: str = "drawn"
    random_state: int | None = None

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """The rows with the new ones after them."""
        from imblearn.over_sampling import SMOTE

        if self.percent is not None:
            positive_number("sampler", "percent", self.percent, MOST_PERCENT)
        whole_number("sampler", "k_neighbors", self.k_neighbors)
        one_of("sampler", "bases", self.bases, BASES)
        if self.bases == "each" and (self.percent is None or self.percent % 100 != 0):
            raise InputError(f'sampler: percent is {self.percent}; with bases="each" it must be 100, 200 and so on')
        labels, which, counts = np.unique(y, return_inverse=True, return_counts=True)
        smallest = int(np.argmin(counts))
        count = int(counts[smallest])
        if count < 2:
            raise InputError(
                f"SMOTE interpolates between rows of the rarest class {labels[smallest]!s}, which has {count} in a "
                "training part: it needs 2 or more"
            )
        if self.bases == "each":
            return self._from_each(np.asarray(X), np.asarray(y), np.flatnonzero(which == smallest))
        strategy: Any = "not majority"
        if self.percent is not None:
            strategy = {labels[smallest]: count + round(self.percent / 100.0 * count)}
        smote = SMOTE(sampling_strategy=strategy, k_neighbors=self.neighbors(count), random_state=self.random_state)
        return smote.fit_resample(X, y)  # type: ignore[no-any-return]

    def _from_each(self, X: Any, y: Any, members: IntArray) -> tuple[Any, Any]:
        """So many new rows for each row of the class, on the way to different neighbors of it."""
        from sklearn.neighbors import NearestNeighbors

        assert self.percent is not None
        rng, Z, times = np.random.default_rng(self.random_state), X[members], round(self.percent / 100.0)
        count = self.neighbors(len(members))
        near = NearestNeighbors(n_neighbors=count + 1).fit(Z).kneighbors(Z, return_distance=False)
        others = [row[row != i][:count] for i, row in enumerate(near)]
        rounds = -(-times // count)
        ends = np.array([np.concatenate([rng.permutation(row) for _ in range(rounds)])[:times] for row in others])
        share = rng.random((len(members), times, 1))
        new = Z[:, None, :] + share * (Z[ends] - Z[:, None, :])
        return np.vstack([X, new.reshape(-1, X.shape[1])]), np.concatenate([y, np.repeat(y[members], times)])

    def rows_of(self, counts: Sequence[int]) -> int:
        """How many rows it makes of classes with so many rows."""
        if self.percent is None:
            return len(counts) * max(counts)
        return sum(counts) + round(self.percent / 100.0 * min(counts))

    def neighbors(self, count: int) -> int:
        """How many neighbors a class of so many rows is interpolated with."""
        return int(min(self.k_neighbors, count - 1))


# -- names of parts ---------------------------------------------------------------------------------------------------

SAMPLERS: dict[str, Callable[..., Sampler]] = {"smote": Smote, "smote_each": lambda: Smote(bases="each")}
AXES: dict[str, Mapping[str, Callable[..., AnyPart]]] = {  # the dictionaries themselves: what is added later counts
    "kernel": KERNELS,
    "machine": MACHINES,
    "criterion": cast(Mapping[str, Callable[..., AnyPart]], ChainMap(FILTERS, CRITERIA)),
    "search": SEARCHES,
    "sampler": SAMPLERS,
}
CONTRACTS: dict[str, type] = dict(zip(AXES, (Kernel, Machine, Criterion, Search, Sampler), strict=True))


def resolve(axis: str, value: str | AnyPart) -> AnyPart:
    """The part that `value` names or is, checked against its contract."""
    contract = CONTRACTS[axis]
    if isinstance(value, str):
        known = AXES[axis]
        name = value.replace("-", "_")
        if name not in known:
            raise InputError(f"{axis} is {value!r}; the names are {listing(list(known), most=30)}")
        value = known[name]()
    elif isinstance(value, type) or not (isinstance(value, contract) or (axis == "criterion" and callable(value))):
        methods = [name for name, member in vars(contract).items() if callable(member) and not name.startswith("_")]
        required = [*(name for name in contract.__annotations__ if not name.startswith("_")), *methods]
        lacking = [name for name in required if not hasattr(value, name)]
        raise InputError(
            f"{axis} is {value!r}; it must be a name or an object with {listing(required, 10)}"
            + (", or a filter, which is any callable" if axis == "criterion" else "")
            + (f" (it lacks {listing(lacking)})" if lacking and not isinstance(value, (int, float)) else "")
        )
    if isinstance(value, HasCheck):
        value.check()
    return value


def kernel_of(value: KernelLike) -> Kernel:
    """A kernel by name or as it is."""
    return cast(Kernel, resolve("kernel", value))


def machine_of(value: MachineLike) -> Machine:
    """A machine by name or as it is."""
    return cast(Machine, resolve("machine", value))


def criterion_of(value: CriterionLike) -> Criterion | Filter | None:
    """A criterion or a filter by name or as it is; None is none."""
    return None if value is None else cast(Criterion | Filter, resolve("criterion", value))


def search_of(value: SearchLike) -> Search:
    """A search by name or as it is."""
    return cast(Search, resolve("search", value))


def sampler_of(value: SamplerLike) -> Sampler | None:
    """A sampler by name or as it is; None is none."""
    return None if value is None else cast(Sampler, resolve("sampler", value))


# -- which parts work together ----------------------------------------------------------------------------------------

FOR_ALL = "criterion='mixed_test'"  # the filter that takes every kind of column


def refuses(kernel: Kernel, machine: Machine, criterion: Criterion | Filter | None, search: Search) -> str | None:
    """Why this combination is not run, or None where it is."""
    if not _reads(machine, kernel):
        if machine.needs == "columns":
            why = f"{_name(machine)} has weights for columns, not a kernel such as {_name(kernel)}"
        else:
            why = f"{_name(machine)} weighs one kernel per feature and {_name(kernel)} is not a sum of such"
        return f"{why}: use {_kernels(machine)}"
    if criterion is not None and not search.ranks_by:
        return f"{_name(search)} ranks by what it learns, not by {_name(criterion)}: use criterion=None"
    if _missing(search, machine):
        ways = [_machines(search, kernel), _learning(machine), _ranking(machine)]
        return _lacks(search, machine, ways)
    return _refuses_ranking(kernel, machine, criterion, search) if search.ranks_by else None


def _refuses_ranking(
    kernel: Kernel, machine: Machine, criterion: Criterion | Filter | None, search: Search
) -> str | None:
    """Why this search cannot rank by this criterion, or None where it can."""
    by_machine, by_labels = "criterion" in search.ranks_by, "filter" in search.ranks_by
    if criterion is None:
        ways = [_criteria(machine) if by_machine else "", f"a filter such as {FOR_ALL}" if by_labels else ""]
        if any(ways):
            return f"{_name(search)} needs a criterion to rank by: use {_either(ways)}"
        ways = [_learning(machine), f"search='top_k' with a filter such as {FOR_ALL}"]
        return f"{_name(search)} needs a criterion to rank by, and none is about {_name(machine)}: use {_either(ways)}"
    if is_filter(criterion):
        if by_labels:
            return None
        return (
            f"{_name(criterion)} scores a column by the labels alone, so its order does not change while features "
            f"drop: use search='top_k' instead of {_name(search)}"
        )
    if not by_machine:
        return (
            f"{_name(search)} works on lists that a filter ranked, and {_name(criterion)} is about a machine: use "
            f"{FOR_ALL}"
        )
    criterion = cast(Criterion, criterion)
    learning = _learning(machine)
    ways = [_machines(criterion, kernel), _criteria(machine), learning and f"{learning} with criterion=None"]
    if _missing(criterion, machine):
        return _lacks(criterion, machine, ways)
    if machine.needs == "columns":
        why = f"{_name(criterion)} scores features on a kernel and {_name(machine)} has weights for columns"
        return f"{why}: use {_either(ways)}"
    return None


# -- what fits ------------------------------------------------------------------------------------------------------


def _reads(machine: Machine, kernel: Kernel) -> bool:
    """Whether a machine can work on a kernel."""
    return kernel.linear if machine.needs == "columns" else kernel.additive or not machine.additive_only


def _missing(part: Search | Criterion, machine: Machine) -> type | None:
    """The first capability that a search or criterion requires of the machine and the machine lacks, or None."""
    return next((capability for capability in part.requires if not isinstance(machine, capability)), None)


def _lacks(part: Search | Criterion, machine: Machine, ways: Iterable[str]) -> str:
    """What a search or criterion requires of the machine, in the words of the capability, and the ways out."""
    missing = _missing(part, machine) or object
    text = (missing.__doc__ or f"Has {missing.__name__}").split(":")[0].splitlines()[0].rstrip(". ")
    return (
        f"{_name(part)} needs a machine that {text[0].lower()}{text[1:]}, and {_name(machine)} is not one: use "
        f"{_either(ways) or 'another machine'}"
    )


# -- ways out, as one would write them; empty where there is none ---------------------------------------------------


def _kernels(*machines: Machine) -> str:
    return _name_parts("kernel", KERNELS, lambda part: all(_reads(machine, part) for machine in machines))


def _machines(part: Search | Criterion, kernel: Kernel) -> str:
    """Machines that have what a search or criterion requires, and another kernel where none of them reads this one."""

    def able(machine: Machine) -> bool:
        on_kernel = machine.needs == "gram" or not isinstance(part, Criterion)  # criteria score features on a kernel
        return on_kernel and not _missing(part, machine)

    if direct := _name_parts("machine", MACHINES, lambda part: able(part) and _reads(part, kernel)):
        return direct
    kernels = _kernels(*(machine for make in MACHINES.values() if able(machine := make())))
    machines = _name_parts("machine", MACHINES, able)
    return f"{machines} with {kernels}" if machines and kernels else machines


def _criteria(machine: Machine) -> str:
    """Criteria that are about this machine."""
    return _name_parts("criterion", CRITERIA, lambda part: bool(part.requires) and not _missing(part, machine))


def _learning(machine: Machine) -> str:
    """Searches that rank by what they learn and take this machine."""
    return _name_parts("search", SEARCHES, lambda part: not part.ranks_by and not _missing(part, machine))


def _ranking(machine: Machine) -> str:
    """Searches that rank by a criterion, and the criteria that are about this machine."""
    criteria = _criteria(machine)
    searches = _name_parts(
        "search", SEARCHES, lambda part: "criterion" in part.ranks_by and not _missing(part, machine)
    )
    return f"{searches} with {criteria}" if searches and criteria else ""


def _name_parts(axis: str, known: Mapping[str, Any], fits: Callable[[Any], bool]) -> str:
    """The parts of an axis that fit: axis='a', 'b' or 'c'."""
    names = [repr(name) for name, make in known.items() if fits(make())]
    head = f"{', '.join(names[:-1])} or " if len(names) > 1 else ""
    return f"{axis}={head}{names[-1]}" if names else ""


def _either(ways: Iterable[str]) -> str:
    return ", or ".join(way for way in ways if way)


def _name(part: AnyPart) -> str:
    """What a part is called; a filter may be a function."""
    return str(getattr(part, "__name__", type(part).__name__))


# -- tables and outcomes --------------------------------------------------------------------------------------------


def kinds_taken(kernel: Kernel, machine: Machine | None = None) -> frozenset[str]:
    """The kinds of columns that a kernel takes; some machines expand categories themselves."""
    return kernel.kinds | (frozenset() if machine is None else machine.kinds)


def refuses_table(kernel: Kernel, table: TableView, machine: Machine | None = None) -> str | None:
    """Why this kernel cannot work on this table, or None where it can."""
    name, accepts = _name(kernel), kinds_taken(kernel, machine)
    if table.is_sparse and not kernel.sparse:
        return f"the {name} kernel needs a dense table and this one is sparse: use kernel='linear' or X.toarray()"
    if wrong := _columns(table, frozenset(table.kind) - accepts):
        return (
            f"text or categories where the {name} kernel needs numbers, in {listing(wrong)}: encode these columns as "
            "numbers, drop them, or take a method for both (clinical-rfe, mkl-rfe, hfs-nb, hfs-5nn; kernel='clinical')"
        )
    return None


def refuses_mixed(
    table: TableView,
    criterion: Criterion | Filter | None,
    prefilter: tuple[Filter, int] | None,
    sampler: Sampler | None,
) -> str | None:
    """Why a sampler, or a filter that counts with numbers, cannot work on this table, or None where it can."""
    parts = [("sampler", sampler), ("criterion", criterion), ("prefilter", None if prefilter is None else prefilter[0])]
    wrong = [(axis, part) for axis, part in parts if part is not None and not _takes_categories(axis, part)]
    if wrong and (columns := _columns(table, frozenset({"nominal"}))):
        axis, part = wrong[0]
        ways = "encode them as numbers, or leave the sampler out"
        if axis != "sampler":
            ways = "use it on tables of numbers alone, or the filter for both, mixed_test"
        shown = getattr(part, "__name__", repr(part))  # a filter may be a function
        return f"{axis} is {shown} and columns hold categories ({listing(columns)}): {ways}"
    if sampler is not None and not table.is_sparse and (lost := np.flatnonzero(np.isnan(table.Z).any(axis=0))).size:
        missing = listing([table.names[j] for j in lost])
        return f"sampler is {sampler!r} and cells are missing in {missing}: impute them, or leave the sampler out"
    return None


def _takes_categories(axis: str, part: Criterion | Filter | Sampler) -> bool:
    """Whether a part can work with categories: criteria of machines can, and some filters."""
    if axis == "criterion" and not is_filter(cast(Criterion | Filter, part)):
        return True
    return "nominal" in (part.kinds if isinstance(part, TakesKinds) else NUMBERS)


def _columns(table: TableView, kinds: frozenset[str]) -> list[str]:
    """Names of the columns of these kinds."""
    if kinds.isdisjoint(table.kind):
        return []
    return [name for name, kind in zip(table.names, table.kind, strict=True) if kind in kinds]


def refuses_target(parts: Iterable[AnyPart | None], kind: str, outcome: str) -> str | None:
    """Why a part cannot work on this outcome, or None where all can."""
    wrong = [part for part in parts if part is not None and kind not in targets_of(part)]
    if not wrong:
        return None
    axes: dict[str, Mapping[str, Any]] = {"machine": MACHINES, "criterion": CRITERIA, "search": SEARCHES}
    ways = [_name_parts(axis, known, lambda part: kind in targets_of(part)) for axis, known in axes.items()]
    takes = " and ".join(sorted(targets_of(wrong[0])))
    return f"{_name(wrong[0])} works on {takes} and {outcome} are {kind}: use {_either(ways) or 'parts that take them'}"
