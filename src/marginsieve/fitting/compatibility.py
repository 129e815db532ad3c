"""Which combinations make sense: a sentence where one does not, derived from what the parts declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np

from ..contracts import NUMBERS, AnyPart, Criterion, Filter, Kernel, Machine, Sampler, Search, TableView, TakesKinds
from ..criteria import CRITERIA
from ..errors import listing
from ..kernels import KERNELS
from ..machines import MACHINES
from ..problem import is_filter
from ..searches import SEARCHES

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
    return next((one for one in part.requires if not isinstance(machine, one)), None)


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
    return _named("kernel", KERNELS, lambda one: all(_reads(machine, one) for machine in machines))


def _machines(part: Search | Criterion, kernel: Kernel) -> str:
    """Machines that have what a search or criterion requires, and another kernel where none of them reads this one."""

    def able(machine: Machine) -> bool:
        on_kernel = machine.needs == "gram" or not isinstance(part, Criterion)  # criteria score features on a kernel
        return on_kernel and not _missing(part, machine)

    if direct := _named("machine", MACHINES, lambda one: able(one) and _reads(one, kernel)):
        return direct
    kernels = _kernels(*(machine for make in MACHINES.values() if able(machine := make())))
    machines = _named("machine", MACHINES, able)
    return f"{machines} with {kernels}" if machines and kernels else machines


def _criteria(machine: Machine) -> str:
    """Criteria that are about this machine."""
    return _named("criterion", CRITERIA, lambda one: bool(one.requires) and not _missing(one, machine))


def _learning(machine: Machine) -> str:
    """Searches that rank by what they learn and take this machine."""
    return _named("search", SEARCHES, lambda one: not one.ranks_by and not _missing(one, machine))


def _ranking(machine: Machine) -> str:
    """Searches that rank by a criterion, and the criteria that are about this machine."""
    criteria = _criteria(machine)
    searches = _named("search", SEARCHES, lambda one: "criterion" in one.ranks_by and not _missing(one, machine))
    return f"{searches} with {criteria}" if searches and criteria else ""


def _named(axis: str, known: Mapping[str, Any], fits: Callable[[Any], bool]) -> str:
    """The parts of an axis that fit: axis='a', 'b' or 'c'."""
    names = [repr(name) for name, make in known.items() if fits(make())]
    head = f"{', '.join(names[:-1])} or " if len(names) > 1 else ""
    return f"{axis}={head}{names[-1]}" if names else ""


def _either(ways: Iterable[str]) -> str:
    return ", or ".join(way for way in ways if way)


def _name(part: AnyPart) -> str:
    """What a part is called; a filter may be a function."""
    return str(getattr(part, "__name__", type(part).__name__))


# -- tables and classes ---------------------------------------------------------------------------------------------


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


def refuses_classes(count: int, negative_weight: float, threshold: Any, search: Search | None = None) -> str | None:
    """Why this setting cannot serve more than two classes, or None where it can."""
    if count <= 2:
        return None
    if search is not None and not search.multiclass:
        return (
            "Only binary classification is supported. The type of the target is multiclass: "
            f"{_name(search)} takes two classes and y has {count} classes; use two, or svm_l1"
        )
    if negative_weight != 1.0:
        return f"negative_weight is {negative_weight!r} and y has {count} classes: use class_weight instead"
    if not isinstance(threshold, str) or threshold not in ("auto", "margin"):
        return f"threshold is {threshold!r} and y has {count} classes: a cut exists only between two; use 'margin'"
    return None
