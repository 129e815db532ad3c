"""Which combinations make sense: a sentence where one does not, derived from what the parts declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..contracts import NUMBERS, Criterion, Filter, Kernel, Machine, Sampler, Search, TableView, TakesKinds
from ..criteria import CRITERIA
from ..errors import listing
from ..kernels import KERNELS
from ..machines import MACHINES
from ..problem import is_filter
from ..searches import SEARCHES


def refuses(kernel: Kernel, machine: Machine, criterion: Criterion | Filter | None, search: Search) -> str | None:
    """Why this combination is not run, or None where it is."""
    if machine.needs == "columns" and not kernel.linear:
        use = _named("kernel", KERNELS, lambda one: one.linear)
        return f"{_name(machine)} has weights for columns, not a kernel such as {_name(kernel)}: use {use}"
    if machine.additive_only and not kernel.additive:
        use = _named("kernel", KERNELS, lambda one: one.additive)
        return f"{_name(machine)} weighs one kernel per feature and {_name(kernel)} is not a sum of such: use {use}"
    if criterion is not None and not search.ranks_by:
        return (
            f"{_name(search)} ranks by the factors or weights that it learns, not by {_name(criterion)}: "
            "use criterion=None"
        )
    if sentence := _lacks(search, machine):
        return sentence
    return _refuses_ranking(machine, criterion, search) if search.ranks_by else None


def _refuses_ranking(machine: Machine, criterion: Criterion | Filter | None, search: Search) -> str | None:
    """Why this search cannot rank by this criterion, or None where it can."""
    if criterion is None:
        return f"{_name(search)} needs a criterion to rank by: use criterion='margin' or another name"
    if is_filter(criterion):
        if "filter" in search.ranks_by:
            return None
        return (
            f"{_name(criterion)} scores a column by the labels alone, so its order does not change while features "
            f"drop: use search='top_k' instead of {_name(search)}"
        )
    if "criterion" not in search.ranks_by:
        return (
            f"{_name(search)} works on lists that a filter ranked, and {_name(criterion)} is about a machine: use "
            "criterion='mixed_test'"
        )
    return _lacks(criterion, machine)


def _lacks(part: Any, machine: Machine) -> str | None:
    """What a search or criterion requires of the machine, where the machine lacks it."""
    missing = next((one for one in part.requires if not isinstance(machine, one)), None)
    if missing is None:
        return None
    need = (missing.__doc__ or missing.__name__).split(":")[0].splitlines()[0].rstrip(". ")
    fitting = [_named("machine", MACHINES, lambda one: isinstance(one, missing))]
    fitting += [_named("criterion", CRITERIA, lambda one: one.requires and not _lacks(one, machine))]
    fitting += [_named("search", SEARCHES, lambda one: one.requires and not _lacks(one, machine))]
    return (
        f"{_name(part)} needs a machine that {need[0].lower()}{need[1:]}, and {_name(machine)} does not: use "
        f"{', or '.join(text for text in fitting if text)}"
    )


def _named(axis: str, known: Mapping[str, Any], fits: Any) -> str:
    """The parts of an axis that fit, as one would write them; empty where none does."""
    names = [repr(name) for name, make in known.items() if fits(make())]
    return f"{axis}={' or '.join(names)}" if names else ""


def _name(part: Any) -> str:
    """What a part is called; a filter may be a function."""
    return str(getattr(part, "__name__", type(part).__name__))


def kinds_taken(kernel: Kernel, machine: Machine | None = None) -> frozenset[str]:
    """The kinds of columns that a kernel takes; some machines expand categories themselves."""
    return kernel.kinds | (frozenset() if machine is None else machine.kinds)


def refuses_table(kernel: Kernel, table: TableView, machine: Machine | None = None) -> str | None:
    """Why this kernel cannot work on this table, or None where it can."""
    name, accepts = _name(kernel), kinds_taken(kernel, machine)
    if table.is_sparse and not kernel.sparse:
        return f"the {name} kernel needs a dense table and this one is sparse: use kernel='linear' or X.toarray()"
    if wrong := _columns(table, lambda kind: kind not in accepts):
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
    if wrong and (columns := _columns(table, lambda kind: kind == "nominal")):
        axis, part = wrong[0]
        return (
            f"{axis} is {part!r} and columns hold categories ({listing(columns)}): use it on tables of numbers alone, "
            "or the filter for both, mixed_test"
        )
    if sampler is not None and not table.is_sparse and (lost := np.flatnonzero(np.isnan(table.Z).any(axis=0))).size:
        missing = listing([table.names[j] for j in lost])
        return f"sampler is {sampler!r} and cells are missing in {missing}: impute them, or leave the sampler out"
    return None


def _takes_categories(axis: str, part: Any) -> bool:
    """Whether a part can work with categories: criteria of machines can, and some filters."""
    if axis == "criterion" and not is_filter(part):
        return True
    return "nominal" in (part.kinds if isinstance(part, TakesKinds) else NUMBERS)


def _columns(table: TableView, wrong: Any) -> list[str]:
    return [name for name, kind in zip(table.names, table.kind, strict=True) if wrong(kind)]


def refuses_classes(count: int, negative_weight: float, threshold: Any, search: Search | None = None) -> str | None:
    """Why this setting cannot serve more than two classes, or None where it can."""
    if count <= 2:
        return None
    if search is not None and not search.multiclass:
        return (
            "Only binary classification is supported. The type of the target is multiclass: "
            f"{_name(search)} shares one budget among the weights of one machine and y has {count} classes; use two, "
            "or svm_l1"
        )
    if negative_weight != 1.0:
        return f"negative_weight is {negative_weight!r} and y has {count} classes: use class_weight with so many"
    if not isinstance(threshold, str) or threshold not in ("auto", "margin"):
        return f"threshold is {threshold!r} and y has {count} classes: a cut exists only between two"
    return None


def first(sentences: Iterable[str | None]) -> str | None:
    """The first sentence that there is."""
    return next((sentence for sentence in sentences if sentence), None)
