"""How long a study takes, measured on its own table, and what fits into the minutes that it may take.

The first outer fold of every method is run, and a search on shuffled labels and on half of the rows. From their seconds
it is decided once what the study runs: methods, repeats, and how much else. The decision is recorded; a study that is
given the record gives the same result on any machine, whatever the clock there says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine.units import Method
from ..errors import InputError, many, shown_value
from ..fitting.false_share import FEWEST_PAIRS, FEWEST_SHUFFLES, PAIRS, SHUFFLES
from .choosing import REPEATS, Choice
from .options import FEWEST_SHUFFLES as FEWEST

MOST_REPEATS = 10
SHARE = 0.9  # of the minutes that is planned for
ALL_ROWS = 1.35  # what a fit on all rows takes, in fits on a training part
EACH, FIT_EACH = 0.85, 0.5  # what a further worker adds: in separate folds, and inside one fit
STARTING = 4.0  # seconds until workers have begun
WORTH_WORKERS = 12.0  # seconds of work from which on they are started
ENDING = 1.0  # seconds for the report and the files
RECORDED = ("methods", "repeats", "permutations", "halves", "alternatives", "suspects", "references")


@dataclass(frozen=True)
class Measured:
    """Seconds: of the first fold of methods, by label; of one labelling; of a search on half of the rows."""

    fold: Mapping[str, float]
    labelling: float
    search: float


def corrected(choice: Choice, known: Measured) -> Choice:
    """The same choice with what its parts take by measurement; methods without one are scaled as the main one is."""
    main = choice.methods[0].label
    factor = known.fold[main] / max(choice.cost[main], 1e-9)
    cost = {label: known.fold.get(label, factor * seconds) for label, seconds in choice.cost.items()}
    return replace(
        choice,
        cost=cost,
        shuffling=known.labelling * choice.permutations,
        halving=_halving(choice.halves, known),
        listing=_listing(choice.alternatives, choice.cv, known),
    )


def _halving(halves: tuple[int, int], known: Measured) -> float:
    return 2 * halves[0] * (halves[1] + 1) * known.search


def _listing(count: int, cv: int, known: Measured) -> float:
    return 2.5 * known.search * (count + 1) * (cv + 1) if count else 0.0


def wall_seconds(choice: Choice, workers: int) -> float:
    """What a study is expected to take from here on, its first folds being done."""
    folds = sum(choice.cost[method.label] for method in choice.methods) * (choice.cv * choice.n_repeats - 1)
    whole = ALL_ROWS * sum(choice.cost[method.label] for method in choice.methods)
    others = choice.shuffling + choice.halving + choice.listing
    others += choice.judging * choice.suspects + choice.referring * choice.references
    by_folds = 1.0 if workers == 1 else EACH * workers
    inside = 1.0 if workers == 1 else 1.0 + FIT_EACH * (workers - 1)
    return (folds + others) / by_folds + whole / inside + ENDING + (STARTING if workers > 1 else 0.0)


def workers_for(choice: Choice, n_jobs: int | None) -> int:
    """How many worker processes: those asked for, or where that is left open one for each core, if it is worth it."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores if wall_seconds(choice, 1) > WORTH_WORKERS else 1
    return max(1, n_jobs if n_jobs > 0 else cores + 1 + n_jobs)


def within(
    choice: Choice, known: Measured, seconds: float, workers: int, fixed: Mapping[str, bool]
) -> tuple[Choice, bool]:
    """What fits into so many seconds, beginning with the least study, and whether that is within them.

    The least study is the main method and all features with one repeat and as few shuffles as a test needs. Then come,
    as far as they fit: the judging of labels, more shuffles, a share of false features, the other methods, models of
    scikit-learn, a second and third repeat, other lists, more halves, and up to ten repeats. `fixed` says which of
    methods, repeats, permutations and alternatives were given: they stay as they are.
    """
    budget = SHARE * seconds
    every = choice.methods
    least = replace(
        choice,
        methods=every if fixed["methods"] else (every[0], every[-1]),
        n_repeats=choice.n_repeats if fixed["n_repeats"] else 1,
        permutations=choice.permutations if fixed["permutations"] else min(choice.permutations, FEWEST),
        alternatives=choice.alternatives if fixed["alternatives"] else 0,
        halves=(0, 0),
        suspects=False,
        references=False,
    )
    plan = corrected(least, known)
    possible = wall_seconds(plan, workers) <= budget

    for name, change in _further(choice, known):
        more = corrected(replace(plan, **change(plan)), known)
        if not fixed.get(name) and wall_seconds(more, workers) <= budget:
            plan = more
    what = f"{len(plan.methods) - 1} of {len(every) - 1} methods and {many(plan.n_repeats, 'repeat')}"
    over = "" if possible else "; this is the least study, and takes longer than asked for"
    return replace(plan, why=(*plan.why, f"{what} by the budget of minutes{over}")), possible


def _further(choice: Choice, known: Measured) -> list[tuple[str, Callable[[Choice], dict[str, Any]]]]:
    """What a study may have beyond the least, in the order of what it is worth: what it is about, and the change."""

    def with_method(method: Method) -> Callable[[Choice], dict[str, Any]]:
        return lambda plan: {"methods": tuple(one for one in choice.methods if one in (*plan.methods, method))}

    def repeats(count: int) -> tuple[str, Callable[[Choice], dict[str, Any]]]:
        return "n_repeats", lambda plan: {"n_repeats": max(count, plan.n_repeats)}

    few, many_halves = ((0, 0), (0, 0)) if known.search == 0.0 else ((FEWEST_PAIRS, FEWEST_SHUFFLES), (PAIRS, SHUFFLES))
    others = [method for method in choice.methods[1:-1] if method.label in known.fold]
    return [
        ("suspects", lambda _: {"suspects": choice.suspects}),
        ("permutations", lambda _: {"permutations": choice.permutations}),
        ("halves", lambda _: {"halves": few}),
        *(("methods", with_method(method)) for method in others),
        ("references", lambda _: {"references": choice.references}),
        *(repeats(count) for count in range(2, REPEATS + 1)),
        ("alternatives", lambda _: {"alternatives": choice.alternatives}),
        ("halves", lambda _: {"halves": many_halves}),
        *(repeats(count) for count in range(REPEATS + 1, MOST_REPEATS + 1)),
    ]


def recorded(choice: Choice) -> dict[str, Any]:
    """The decision as plain JSON."""
    return {
        "methods": [method.label for method in choice.methods[:-1]],
        "repeats": choice.n_repeats,
        "permutations": choice.permutations,
        "halves": list(choice.halves),
        "alternatives": choice.alternatives,
        "suspects": choice.suspects,
        "references": choice.references,
    }


def as_recorded(choice: Choice, plan: Mapping[str, Any]) -> Choice:
    """The choice that a record says; refuses one that is not like those that a study leaves."""
    wrong = InputError(
        f"plan is {shown_value(dict(plan))}; it must be the plan of a result.json: {', '.join(RECORDED)}"
    )
    if set(plan) != set(RECORDED):
        raise wrong
    known = {method.label: method for method in choice.methods}
    labels, counts = plan["methods"], [plan[name] for name in ("repeats", "permutations", "alternatives")]
    fine = isinstance(labels, list) and bool(labels) and all(label in known for label in labels)
    fine = fine and all(isinstance(one, int) and not isinstance(one, bool) for one in counts)
    fine = fine and counts[0] >= 1 and counts[1] >= FEWEST and counts[2] >= 0
    halves = plan["halves"]
    fine = fine and isinstance(halves, list) and len(halves) == 2 and all(isinstance(one, int) for one in halves)
    if not fine or min(halves) < 0 or not all(isinstance(plan[name], bool) for name in ("suspects", "references")):
        raise wrong
    methods = (*(known[label] for label in labels), choice.methods[-1])
    return replace(
        choice,
        methods=methods,
        n_repeats=counts[0],
        permutations=counts[1],
        alternatives=counts[2],
        halves=(halves[0], halves[1]),
        suspects=plan["suspects"],
        references=plan["references"],
        why=(*choice.why, "methods and repeats by a recorded plan"),
    )


def spoken(seconds: float) -> str:
    """About how long, in words."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
