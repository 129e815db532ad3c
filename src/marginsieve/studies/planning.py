"""What a study runs: which methods, how often, which analyses with what effort, and by how many processes.

The first method is the one whose features are presented; it is fixed beforehand, so that its score is not the best of
several. What everything is expected to cost is first taken from a table of measured seconds. Then the first outer fold
of every method is run on the table itself, and the units of the analyses (`measuring.py`), and from their seconds it is
decided once what fits into the minutes. The decision is recorded; a study that is given the record gives the same
result on any machine, whatever the clock there says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import recipes
from ..engine.units import ALL_FEATURES, Method
from ..errors import InputError, listing, many, shown_value
from ..fitting.rows import MOST_ROWS
from .analysis import ANALYSES, Choice, Effort, Facts, Gate, Measured, Shape, levels_of, load_analyses
from .options import MOST_COUNT, StudyOptions

FOLDS, REPEATS, MOST_REPEATS = 5, 3, 10
ONE_REPEAT = 1000  # rows from which on the outer folds are drawn once: scores hardly depend on the draw
NUMBERS = "a table of numbers: two views in one, elimination by a machine, an l1 penalty, and a non-linear one"
RARE = 0.1  # a class with a smaller share is rare
ROWS = 5000  # rows that are trained on where there are more than can be
# seconds of one fit: at least, for a million cells, for a million pairs of rows; recipes have theirs in the registry
ALL_COST = (0.1, 0.4, 1.0)
SEARCHES_OF_FIT = 25.0  # searches that a fit with its inner folds is about
SEARCH_SECONDS = 0.002  # a search, at least

ENOUGH = 500, 1000  # rows to train on and columns to search among: what is further above its number is halved first
FEWEST = 100, 100  # rows and columns of the smallest study

SHARE = 0.9  # of the minutes that is planned for
ALL_ROWS = 1.35  # what a fit on all rows takes, in fits on a training part
EACH, FIT_EACH = 0.85, 0.5  # what a further worker adds: in separate folds, and inside one fit
STARTING = 4.0  # seconds until workers have begun
WORTH_WORKERS = 12.0  # seconds of work from which on they are started
ENDING = 1.0  # seconds for the report and the files
METHOD_WORTH, FEW_REPEATS_WORTH, REPEATS_WORTH = 40.0, 60.0, 90.0  # see `Level`

Change = Callable[[Choice], Choice]


# -- by the shape of the table ----------------------------------------------------------------------------------------


def fit_seconds(cost: tuple[float, float, float], rows: float, columns: int) -> float:
    """What one fit is expected to take."""
    least, cells, pairs = cost
    return least + cells * rows * columns / 1e6 + pairs * rows * rows / 1e6


def cost_of(method: Method) -> tuple[float, float, float]:
    """What a method costs, by the registry."""
    return ALL_COST if method.baseline else recipes.entry(method.recipe).cost


def is_cheap(method: Method) -> bool:
    """Whether the costs of a method's search were measured, so that it can be run on shuffled labels."""
    return method.baseline or recipes.entry(method.recipe).measured


def search_seconds(method: Method, rows: float, columns: int) -> float:
    """What one search of a method without inner folds is expected to take."""
    _, cells, pairs = cost_of(method)
    return SEARCH_SECONDS + (cells * rows * columns + pairs * rows * rows) / 1e6 / SEARCHES_OF_FIT


def default_methods(shape: Shape) -> tuple[tuple[str, ...], str]:
    """Names of recipes by the shape of the table, and the reason."""
    if shape.outcome != "classes":
        if not (names := recipes.defaults(f"outcome {shape.outcome}{', mixed' if shape.mixed else ''}")):
            raise InputError(f"methods is 'auto', and there are no methods for {shape.outcome} by default: name some")
        return names, f"the outcome is {shape.outcome}: eliminations by ridge regression, and a filter"
    rare, share = shape.smallest_share < RARE and shape.has_auc, f"{shape.smallest_share:.1%}"
    if shape.mixed:
        reason = "the table has categories or empty cells: methods on the clinical kernel"
        reason += f"; a rare class ({share}): tests first" if rare else ""
        return recipes.defaults("mixed, rare class" if rare else "mixed"), reason
    if rare:
        return recipes.defaults(
            "rare class"
        ), f"numbers, and a rare class ({share}): methods that weigh both classes the same"
    return recipes.defaults("numbers"), NUMBERS


def choose(shape: Shape, options: StudyOptions, on_gpu: bool = False) -> Choice:
    """What to run on a table: the methods that fit its shape, five folds, three repeats (one from 1,000 rows on).

    With `on_gpu` searches may take as long as they would take there.
    """
    why, m, max_samples = [], shape.rows, options.max_samples
    if options.methods == "auto":
        names, reason = default_methods(shape)
        why.append(reason)
    else:
        entries = options.methods.split(",") if isinstance(options.methods, str) else options.methods
        names = tuple(dict.fromkeys(recipes.entry(name).name for name in entries if name.strip()))
        if not names:
            raise InputError("methods is empty; it must be 'auto' or names that `marginsieve methods` lists")
        for name in names:
            recipes.refuse_outcome(recipes.entry(name), shape.outcome)
        why.append(f"{'method' if len(names) == 1 else 'methods'} as given")
    if max_samples is None and (max_samples := default_rows(m)) is not None:
        why.append(f"{m} rows: each fit is on every row of the rare class and a weighted sample, {ROWS} rows in all")
    cv = options.cv or FOLDS
    repeats = options.n_repeats or (1 if m >= ONE_REPEAT else REPEATS)
    used = round(min(m, max_samples or m) * (1 - 1 / cv))
    kernel = (("kernel", options.kernel),) if options.kernel else ()
    methods = [Method(name, name, kernel) for name in names]
    plain = "su" if shape.mixed and shape.outcome != "survival" else "fisher"
    if not recipes.defaults(f"outcome {shape.outcome}") and shape.outcome != "classes":  # filters are not about it
        plain = names[0]
    methods.append(Method(ALL_FEATURES, plain, (("n_features_to_select", 1.0),)))
    facts = Facts(shape=shape, options=options, main=methods[0], cv=cv, used=used, on_gpu=on_gpu)
    efforts, left_out = choose_analyses(facts)
    return Choice(
        methods=tuple(methods),
        options=replace(options, cv=cv, n_repeats=repeats, max_samples=max_samples),
        facts=facts,
        efforts=efforts,
        left_out=left_out,
        why=tuple(why),
        cost=expected_costs(methods, used, shape.columns, shape.columns),
    )


def expected_costs(methods: Sequence[Method], used: float, columns: int, searched: int) -> dict[str, float]:
    """Seconds of a fit of each method on so many rows, by the table of costs; `searched`: columns after a filter."""
    return {each.label: fit_seconds(cost_of(each), used, columns if each.baseline else searched) for each in methods}


def choose_analyses(facts: Facts) -> tuple[dict[str, Effort], dict[str, str]]:
    """The efforts of the analyses that are run, and why the others are not."""
    options, known = facts.options, load_analyses()
    for option, names in (("with_", options.with_), ("without", options.without)):
        for name in names:
            if name not in known:
                raise InputError(f"study: {option} is {name!r}; it must be one of {listing(list(known), most=20)}")
            if option == "without" and isinstance(known[name], Gate):
                raise InputError(f"study: without is {name!r}, which decides what can be said: it is always run")
    efforts, left_out = {}, {}
    for name, analysis in known.items():
        if name in options.without:
            left_out[name] = "it was not asked for"
        elif (reason := analysis.applies(facts)) is not None:
            if name in options.with_:
                raise InputError(f"study: with_ names {name!r}, which cannot be run: {reason}")
            left_out[name] = reason
        else:
            fits = [
                level.effort
                for level in levels_of(analysis, facts)
                if name in options.with_ or analysis.cost(replace(facts, effort=level.effort)) <= level.most_seconds
            ]
            if fits:
                efforts[name] = fits[-1]
            else:
                left_out[name] = "it would take long"
    return efforts, left_out


# -- smaller studies --------------------------------------------------------------------------------------------------


def smaller_choices(choice: Choice) -> list[Choice]:
    """The same study on ever fewer rows to train on and columns to search among; what was given stays as it is.

    Machines are trained on a sample of the rows (`max_samples`), and the methods search among the best columns of a
    filter (`prefilter`), which is applied to each training part anew. The rest of the rows is predicted and scored.
    """
    options, shape, sizes = choice.facts.options, choice.facts.shape, list[Choice]()
    rows = min(choice.facts.used, choice.options.max_samples or shape.rows)
    columns = shape.columns if choice.options.prefilter is None else choice.options.prefilter[1]
    least = max(FEWEST[1], 4 * (options.n_features_to_select or 0), 4 * len(options.keep))
    while True:
        above = [
            rows / ENOUGH[0] if options.max_samples is None and rows > FEWEST[0] else 0.0,
            columns / ENOUGH[1]
            if options.prefilter is None and shape.outcome == "classes" and columns > least
            else 0.0,
        ]
        if not any(above):
            return sizes
        if above[0] >= above[1]:
            rows = max(rows // 2, FEWEST[0])
        else:
            columns = max(columns // 2, least)
        sizes.append(make_smaller(choice, rows, columns))


def make_smaller(choice: Choice, rows: int, columns: int) -> Choice:
    """The study with so many rows to train on, and columns to search among, at most."""
    shape, options = choice.facts.shape, choice.options
    if rows < choice.facts.used:
        options = replace(options, max_samples=rows)
    if columns < shape.columns and choice.facts.options.prefilter is None:
        options = replace(options, prefilter=("su" if shape.mixed else "fisher", columns))
    smaller = replace(choice, options=options, facts=replace(choice.facts, used=min(rows, choice.facts.used)))
    return replace(smaller, cost=table_costs(smaller))


def table_costs(choice: Choice) -> dict[str, float]:
    """Seconds of a fit of each method of a choice, by the table of costs."""
    columns = choice.facts.shape.columns
    searched = columns if choice.options.prefilter is None else min(columns, choice.options.prefilter[1])
    return expected_costs(choice.methods, choice.facts.used, columns, searched)


def describe_reduction(choice: Choice) -> str | None:
    """What the minutes took from the rows and columns, in words; None where they took nothing."""
    parts, options, shape = [], choice.facts.options, choice.facts.shape
    if options.max_samples is None and choice.options.max_samples not in (None, default_rows(shape.rows)):
        parts.append(f"machines are trained on samples of {choice.options.max_samples:,} of the {shape.rows:,} rows")
    if options.prefilter is None and choice.options.prefilter is not None:
        name, count = choice.options.prefilter
        among = f"the best {count:,} of {shape.columns:,} columns by {name}, found in each training part anew"
        parts.append(f"methods search among {among}")
    return " and ".join(parts) or None


def default_rows(rows: int) -> int | None:
    """How many rows are trained on where nothing was asked for; None: all."""
    return ROWS if rows > MOST_ROWS else None


# -- by what was measured ---------------------------------------------------------------------------------------------


def correct_costs(choice: Choice, known: Measured) -> Choice:
    """The same choice with what its parts take by measurement; methods without one are scaled as the main one is."""
    main = choice.methods[0].label
    factor = known.fold[main] / max(choice.cost[main], 1e-9)
    cost = {label: known.fold.get(label, factor * seconds) for label, seconds in choice.cost.items()}
    return replace(choice, cost=cost, facts=replace(choice.facts, measured=known))


def wall_seconds(choice: Choice, workers: int) -> float:
    """What a study is expected to take from here on, its first folds being done."""
    each = sum(choice.cost[method.label] for method in choice.methods)
    work = each * (choice.cv * choice.n_repeats - 1) + sum(map(choice.seconds, choice.efforts))
    by_folds = 1.0 if workers == 1 else EACH * workers
    inside = 1.0 if workers == 1 else 1.0 + FIT_EACH * (workers - 1)
    return work / by_folds + ALL_ROWS * each / inside + ENDING + (STARTING if workers > 1 else 0.0)


def workers_for(choice: Choice, n_jobs: int | None) -> int:
    """How many worker processes: those asked for, or where that is left open one for each core, if it is worth it."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores if wall_seconds(choice, 1) > WORTH_WORKERS else 1
    return max(1, n_jobs if n_jobs > 0 else cores + 1 + n_jobs)


def least_study(choice: Choice, known: Measured) -> tuple[Choice, list[tuple[float, Change]]]:
    """The least study of a choice, and the changes by which it becomes more, each with its worth.

    The least study is the main method and all features with one repeat and the least effort of each analysis that it
    cannot do without. Then come those of `Level`. What was given stays as it is.
    """
    every, options = choice.methods, choice.facts.options
    plan = correct_costs(choice, known)
    steps: list[tuple[float, Change]] = []
    efforts: dict[str, Effort] = {}
    for name in choice.efforts:
        for k, level in enumerate(levels_of(ANALYSES[name], plan.facts)):
            if name in options.with_ or (k == 0 and level.worth == 0):
                efforts[name] = level.effort
            else:
                steps.append((level.worth, with_effort(name, level.effort)))
    if options.methods == "auto":
        plan = replace(plan, methods=(every[0], every[-1]))
        steps += [(METHOD_WORTH, with_method(every, method)) for method in every[1:-1] if method.label in known.fold]
    if options.n_repeats is None:
        plan = with_repeats(1)(plan)
        few = [(FEW_REPEATS_WORTH, with_repeats(count)) for count in range(2, REPEATS + 1)]
        steps += [*few, *((REPEATS_WORTH, with_repeats(count)) for count in range(REPEATS + 1, MOST_REPEATS + 1))]
    return replace(plan, efforts=efforts), steps


def fit_minutes(choice: Choice, known: Measured, seconds: float, workers: int) -> tuple[Choice, bool]:
    """What fits into so many seconds, beginning with the least study, and whether that is within them."""
    budget, every = SHARE * seconds, choice.methods
    plan, steps = least_study(choice, known)
    possible = wall_seconds(plan, workers) <= budget
    for _, change in sorted(steps, key=lambda step: step[0]):
        if wall_seconds(more := change(plan), workers) <= budget:
            plan = more
    what = f"{len(plan.methods) - 1} of {len(every) - 1} methods and {many(plan.n_repeats, 'repeat')}"
    over = "" if possible else "; this is the least study, and takes longer than asked for"
    left_out = {name: "it does not fit into the minutes" for name in choice.efforts if name not in plan.efforts}
    smaller = "" if (text := describe_reduction(plan)) is None else f"; {text}"
    why = (*plan.why, f"{what} by the budget of minutes{smaller}{over}")
    return replace(plan, why=why, left_out={**plan.left_out, **left_out}), possible


def with_effort(name: str, effort: Effort) -> Change:
    """A change of a plan: an analysis with an effort."""
    return lambda plan: replace(plan, efforts={**plan.efforts, name: effort})


def with_method(every: Sequence[Method], method: Method) -> Change:
    """A change of a plan: one more method, in the order of all."""
    return lambda plan: replace(plan, methods=tuple(each for each in every if each in (*plan.methods, method)))


def with_repeats(count: int) -> Change:
    """A change of a plan: the number of repeats."""
    return lambda plan: replace(plan, options=replace(plan.options, n_repeats=count))


# -- the record -------------------------------------------------------------------------------------------------------


def record_plan(choice: Choice) -> dict[str, Any]:
    """The decision as plain JSON."""
    plan: dict[str, Any] = {
        "methods": [method.label for method in choice.methods[:-1]],
        "repeats": choice.n_repeats,
        "analyses": {name: list(choice.efforts[name]) for name in ANALYSES if name in choice.efforts},
    }
    if describe_reduction(choice) is not None:
        columns = choice.facts.shape.columns if choice.options.prefilter is None else choice.options.prefilter[1]
        plan["smaller"] = {"rows": choice.facts.used, "columns": columns}
    return plan


def _is_count(value: Any, lowest: int, most: int | None = MOST_COUNT) -> bool:
    """Whether a plan may have a number as a count: no study has more of anything."""
    return type(value) is int and lowest <= value and (most is None or value <= most)


def follow_plan(choice: Choice, plan: Mapping[str, Any]) -> Choice:
    """The choice that a record says; refuses one that is not like those that a study leaves."""
    known = {method.label: method for method in choice.methods}
    try:
        labels, repeats, efforts = plan["methods"], plan["repeats"], plan["analyses"]
        fine = set(plan) - {"smaller"} == {"methods", "repeats", "analyses"} and _is_count(repeats, 1)
        fine = fine and isinstance(labels, list) and bool(labels) and all(label in known for label in labels)
        fine = fine and len(set(labels)) == len(labels)
        for name, effort in efforts.items():
            least, *_ = levels_of(ANALYSES[name], replace(choice.facts, options=StudyOptions(plan=plan)))
            fine = fine and isinstance(effort, list) and len(effort) == len(least.effort)
            fine = fine and all(_is_count(count, 0) for count in effort)
        fine = fine and all(name in efforts for name, each in ANALYSES.items() if isinstance(each, Gate))
        smaller = plan.get("smaller", {"rows": choice.facts.used, "columns": choice.facts.shape.columns})
        fine = fine and set(smaller) == {"rows", "columns"}
        fine = fine and all(_is_count(count, 1, None) for count in smaller.values())
    except (LookupError, TypeError, AttributeError, ValueError):
        fine = False
    if not fine:
        names = "methods, repeats, analyses"
        raise InputError(f"plan is {shown_value(plan)}; it must be the plan of a result.json: {names}")
    choice = with_repeats(repeats)(make_smaller(choice, **smaller))
    return replace(
        choice,
        methods=(*(known[label] for label in labels), choice.methods[-1]),
        efforts={name: tuple(effort) for name, effort in efforts.items()},
        left_out={name: "the plan is without it" for name in ANALYSES if name not in efforts},
        why=(*choice.why, "methods and repeats by a recorded plan"),
    )


def format_duration(seconds: float) -> str:
    """About how long, in words."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
