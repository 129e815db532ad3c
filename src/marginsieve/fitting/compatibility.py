"""Which combinations of kernel, machine, criterion and search make sense: a sentence where one does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..criteria import LearnedWeight, SphereChange
from ..data.table import Table
from ..errors import listing
from ..kernels import Linear
from ..machines import L1SVC, MKL, ConcaveSVC, HingeSVC, Sphere
from ..searches import Backward, Budget, LearnedPath, Merge, PenalizedScaling

PRIMAL = (L1SVC, HingeSVC)  # machines with weights instead of a kernel


def refuses(kernel: Any, machine: Any, criterion: Any, search: Any) -> str | None:
    """Why this combination is not run, or None where it is."""
    if isinstance(machine, PRIMAL) and not isinstance(kernel, Linear):
        return f"an l1 machine has weights, not a kernel such as {type(kernel).__name__}: use kernel='linear'"
    if isinstance(machine, MKL) and not kernel.additive:
        name = type(kernel).__name__
        return f"MKL weighs one kernel per feature and {name} is not a sum of such: use kernel='clinical' or 'linear'"
    if isinstance(search, (PenalizedScaling, LearnedPath, Budget)):
        return _refuses_learning(machine, criterion, search)
    if criterion is None:
        return f"{type(search).__name__} needs a criterion to rank by: use criterion='margin' or another name"
    if "solution" in criterion.needs and (sentence := _refuses_scoring(machine, criterion)):
        return sentence
    if isinstance(search, Merge) and "solution" in criterion.needs:
        return (
            f"{type(search).__name__} merges lists that a filter ranked, and {type(criterion).__name__} is about a "
            "machine: use criterion='mixed_test'"
        )
    if isinstance(search, Backward) and "solution" not in criterion.needs:
        return (
            f"{type(criterion).__name__} scores a column by the labels alone, so its order does not change while "
            'features drop: use search="top_k" instead of backward elimination'
        )
    return None


def _refuses_scoring(machine: Any, criterion: Any) -> str | None:
    """Why this criterion cannot score what this machine finds, or None where it can."""
    name = type(criterion).__name__
    if isinstance(criterion, SphereChange):
        return None if isinstance(machine, Sphere) else f"{name} is about a sphere: use machine='svdd'"
    if isinstance(criterion, LearnedWeight):
        return None if isinstance(machine, MKL) else f"{name} is about learned kernel weights: use machine='mkl'"
    if isinstance(machine, Sphere):
        return (
            f"{name} is about a margin and a sphere has none: use criterion='radius' or 'dual', search='scaling', or "
            "machine='c_svc'"
        )
    if isinstance(machine, PRIMAL):
        return f"an l1 machine chooses by its weights, not by {name}: use search='learned'"
    return (
        f"MKL ranks by the weights that it learns, not by {name}: use criterion='learned'"
        if isinstance(machine, MKL)
        else None
    )


def _refuses_learning(machine: Any, criterion: Any, search: Any) -> str | None:
    """The same for searches that rank by what they learn."""
    if criterion is not None:
        return (
            f"{type(search).__name__} ranks by the factors or weights that it learns, not by "
            f"{type(criterion).__name__}: use criterion=None"
        )
    if isinstance(machine, MKL):
        return "MKL learns its kernel's weights itself: use search='backward' or 'top_k' with criterion='learned'"
    if isinstance(search, LearnedPath) and not isinstance(machine, PRIMAL):
        return f"{type(machine).__name__} does not choose features itself: use machine='l1' or search='backward'"
    if isinstance(search, Budget) and (not isinstance(machine, HingeSVC) or isinstance(machine, ConcaveSVC)):
        return f"a budget is for linear programs, not for {type(machine).__name__}: use machine='ramp' or 'hinge'"
    if isinstance(search, PenalizedScaling) and isinstance(machine, PRIMAL):
        return "an l1 machine has no kernel to scale: use search='learned'"
    return None


def kinds_taken(kernel: Any, machine: Any = None) -> frozenset[str]:
    """The kinds of columns that a kernel takes; some machines expand categories themselves."""
    return frozenset(kernel.accepts | ({"nominal"} if getattr(machine, "expands", False) else set()))


def refuses_table(kernel: Any, table: Table, machine: Any = None) -> str | None:
    """Why this kernel cannot work on this table, or None where it can."""
    name, accepts = type(kernel).__name__, kinds_taken(kernel, machine)
    if table.is_sparse and not kernel.sparse:
        return f"the {name} kernel needs a dense table and this one is sparse: use kernel='linear' or X.toarray()"
    wrong = [column for column, kind in zip(table.names, table.kind, strict=True) if kind not in accepts]
    if wrong:
        return (
            f"text or categories where the {name} kernel needs numbers, in {listing(wrong)}: encode these columns as "
            "numbers, drop them, or take a method for both (clinical-rfe, mkl-rfe, hfs-nb, hfs-5nn; kernel='clinical')"
        )
    return None


def refuses_mixed(table: Table, criterion: Any, prefilter: Any, sampler: Any) -> str | None:
    """Why a sampler, or a filter that counts with numbers, cannot work on this table, or None where it can."""
    asked = [("sampler", sampler, sampler), ("criterion", criterion, criterion)]
    asked += [] if prefilter is None else [("prefilter", prefilter, prefilter[0])]
    named = [f"{axis} is {value!r} and" for axis, value, part in asked if part is not None and not _takes(part)]
    if named and (wrong := [name for name, kind in zip(table.names, table.kind, strict=True) if kind == "nominal"]):
        return (
            f"{named[0]} columns hold categories ({listing(wrong)}): use it on tables of numbers alone, or the filter "
            "for both, mixed_test"
        )
    if sampler is not None and not table.is_sparse and (lost := np.flatnonzero(np.isnan(table.Z).any(axis=0))).size:
        missing = listing([table.names[j] for j in lost])
        return f"sampler is {sampler!r} and cells are missing in {missing}: impute them, or leave the sampler out"
    return None


def _takes(component: Any) -> bool:
    """Whether a component is at home with categories: machines' criteria are, and some filters."""
    return "solution" in getattr(component, "needs", ()) or bool(getattr(component, "categories", False))


def refuses_classes(n_classes: int, negative_weight: float, threshold: Any, search: Any = None) -> str | None:
    """Why this setting cannot serve more than two classes, or None where it can."""
    if n_classes <= 2:
        return None
    if isinstance(search, Budget):
        return (
            "Only binary classification is supported. The type of the target is multiclass: a budget is shared by the "
            f"weights of one machine and y has {n_classes} classes; use two, or svm_l1"
        )
    if negative_weight != 1.0:
        return f"negative_weight is {negative_weight!r} and y has {n_classes} classes: use class_weight with so many"
    if not isinstance(threshold, str) or threshold not in ("auto", "margin"):
        return f"threshold is {threshold!r} and y has {n_classes} classes: a cut exists only between two"
    return None
