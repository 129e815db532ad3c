"""What a study runs: which methods, how often, which analyses with what effort, and by how many processes.

The first method is the one whose features are presented; it is fixed beforehand, so that its score is not the best of
several. What everything is expected to cost is first taken from a table of measured seconds. Then the first outer fold
of every method is run on the table itself, and the units of the analyses, and from their seconds it is decided once
what fits into the minutes. The decision is recorded; a study that is given the record gives the same result on any
machine, whatever the clock there says.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import recipes
from ..batches.arrays import has_cuda
from ..engine.store import open_store
from ..engine.units import ALL_FEATURES, Method, PreparedMethod, UnitTable, key_of
from ..engine.workers import workers
from ..errors import InputError, SolverError, listing, many, shown_value
from ..fitting.rows import MOST_ROWS
from ..solvers.execution import Stopwatch, one_thread
from .analysis import (
    ANALYSES,
    Choice,
    Effort,
    Facts,
    Gate,
    Measured,
    MeasuresItself,
    Shape,
    StudyRun,
    levels_of,
    load_analyses,
)
from .options import StudyOptions
from .selection import FoldRows, outer_units

FOLDS, REPEATS, MOST_REPEATS = 5, 3, 10
ONE_REPEAT = 1000  # rows from which on the outer folds are drawn once: scores hardly depend on the draw
NUMBERS = "a table of numbers: two views in one, elimination by a machine, an l1 penalty, and a non-linear one"
RARE = 0.1  # a class with a smaller share is rare
ROWS = 5000  # rows that are trained on where there are more than can be
# seconds of one fit: at least, for a million cells, for a million pairs of rows; recipes have theirs in the registry
ALL_COST = (0.1, 0.4, 1.0)
SEARCHES_OF_FIT = 25.0  # searches that a fit with its inner folds is about
SEARCH_SECONDS = 0.002  # a search, at least

SHARE = 0.9  # of the minutes that is planned for
MOST_OF = 0.3  # of the seconds that the folds of one further method may take
ALL_ROWS = 1.35  # what a fit on all rows takes, in fits on a training part
EACH, FIT_EACH = 0.85, 0.5  # what a further worker adds: in separate folds, and inside one fit
STARTING = 4.0  # seconds until workers have begun
WORTH_WORKERS = 12.0  # seconds of work from which on they are started
ENDING = 1.0  # seconds for the report and the files
METHOD_WORTH, FEW_REPEATS_WORTH, REPEATS_WORTH = 40.0, 60.0, 90.0  # see `Level`

Methods = Sequence[tuple[Method, PreparedMethod]]
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
        why.append(f"{'method' if len(names) == 1 else 'methods'} as given")
    if max_samples is None and m > MOST_ROWS:
        max_samples = ROWS
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
        cost={method.label: fit_seconds(cost_of(method), used, shape.columns) for method in methods},
    )


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


def fit_minutes(choice: Choice, known: Measured, seconds: float, workers: int) -> tuple[Choice, bool]:
    """What fits into so many seconds, beginning with the least study, and whether that is within them.

    The least study is the main method and all features with one repeat and the least effort of each analysis that it
    cannot do without. Then comes, as far as it fits, what `Level` lists. What was given stays as it is.
    """
    budget, every, options = SHARE * seconds, choice.methods, choice.facts.options
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
    plan = replace(plan, efforts=efforts)
    possible = wall_seconds(plan, workers) <= budget
    for _, change in sorted(steps, key=lambda step: step[0]):
        if wall_seconds(more := change(plan), workers) <= budget:
            plan = more
    what = f"{len(plan.methods) - 1} of {len(every) - 1} methods and {many(plan.n_repeats, 'repeat')}"
    over = "" if possible else "; this is the least study, and takes longer than asked for"
    left_out = {name: "it does not fit into the minutes" for name in choice.efforts if name not in plan.efforts}
    why = (*plan.why, f"{what} by the budget of minutes{over}")
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
    return {
        "methods": [method.label for method in choice.methods[:-1]],
        "repeats": choice.n_repeats,
        "analyses": {name: list(choice.efforts[name]) for name in ANALYSES if name in choice.efforts},
    }


def follow_plan(choice: Choice, plan: Mapping[str, Any]) -> Choice:
    """The choice that a record says; refuses one that is not like those that a study leaves."""
    known = {method.label: method for method in choice.methods}
    try:
        labels, repeats, efforts = plan["methods"], plan["repeats"], plan["analyses"]
        fine = set(plan) == {"methods", "repeats", "analyses"} and type(repeats) is int and repeats >= 1
        fine = fine and isinstance(labels, list) and bool(labels) and all(label in known for label in labels)
        for name, effort in efforts.items():
            least, *_ = levels_of(ANALYSES[name], replace(choice.facts, options=StudyOptions(plan=plan)))
            fine = fine and isinstance(effort, list) and len(effort) == len(least.effort)
            fine = fine and all(type(count) is int and count >= 0 for count in effort)
        fine = fine and all(name in efforts for name, each in ANALYSES.items() if isinstance(each, Gate))
    except (LookupError, TypeError, AttributeError, ValueError):
        fine = False
    if not fine:
        names = "methods, repeats, analyses"
        raise InputError(f"plan is {shown_value(dict(plan))}; it must be the plan of a result.json: {names}")
    choice = with_repeats(repeats)(choice)
    return replace(
        choice,
        methods=(*(known[label] for label in labels), choice.methods[-1]),
        efforts={name: tuple(effort) for name, effort in efforts.items()},
        left_out={name: "the plan is without it" for name in ANALYSES if name not in efforts},
        why=(*choice.why, "methods and repeats by a recorded plan"),
    )


# -- the decision -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planner:
    """What decides a plan: the methods, the table and the rows of folds that are known."""

    methods: Methods
    run: StudyRun
    kept: FoldRows
    n_jobs: int | None  # None leaves the number of workers open
    since: float

    def decide(self) -> tuple[Choice, int]:
        """What is run and by how many processes, from what the first folds took; within the minutes, if there are any.

        Where a folder has the decision of an earlier run of the same study, that holds.
        """
        choice, options = self.run.choice, self.run.options
        seconds = self.limit
        if seconds is not None and (record := recorded_plan(self.kept.folder, self.mark)) is not None:
            choice, seconds = follow_plan(choice, record), None
        if (
            seconds is None and options.device != "cpu" and has_cuda()
        ):  # one fold alone says nothing of folds in batches
            return choice, workers_for(choice, self.n_jobs)
        known = self.measure(choice, seconds)
        if seconds is None:
            choice = correct_costs(choice, known)
            return choice, workers_for(choice, self.n_jobs)
        left = seconds - (time.perf_counter() - self.since)
        counts = [1, workers_for(choice, -1)] if self.n_jobs is None else [workers_for(choice, self.n_jobs)]
        plans = []
        for count in dict.fromkeys(counts):
            plan, possible = fit_minutes(choice, known, left, count)
            work = sum(plan.cost[method.label] for method in plan.methods) * plan.n_repeats
            plans.append((possible, work, -wall_seconds(plan, count), plan, count))
        *_, choice, count = max(plans, key=lambda entry: entry[:3])
        self.record(choice)
        return choice, count

    @property
    def limit(self) -> float | None:
        """Seconds that the study may take; None where there is no limit, or a plan decides."""
        options = self.run.options
        return None if options.minutes is None or options.plan is not None else 60.0 * options.minutes

    @property
    def mark(self) -> str:
        """What tells that a plan is of this study."""
        return key_of(self.run.table.fingerprint, self.run.options.key())

    def record(self, choice: Choice) -> None:
        """Keep the decision in the folder, where there is one: who resumes the study follows it."""
        if self.kept.folder is not None:
            with open_store(self.kept.folder, "study") as store:
                store.set_meta("plan", {"mark": self.mark, "plan": record_plan(choice)})

    def measure(self, choice: Choice, seconds: float | None) -> Measured:
        """Run the first fold of the main method, then of all features and of the others, and say what they took.

        Others are left out where the table of costs, corrected by what the main method took, expects all of their folds
        to take longer than a part of the `seconds` that there are.
        """
        show = self.run.options.progress or (lambda *_: None)
        methods = methods_of(self.methods, choice)
        main, rest = methods[0], [*methods[:0:-1][:1], *methods[1:-1]]  # all features, the last one, first
        show(main[0].title, 0.0, 1.0)
        fold = self.first_folds([main], choice, 1)
        ratio = fold[main[0].label] / choice.cost[main[0].label]
        expected = {method.label: ratio * choice.cost[method.label] for method, _ in rest}
        if seconds is not None:
            most = MOST_OF * seconds * (os.cpu_count() or 1) / (choice.cv + ALL_ROWS)
            rest = [*rest[:1], *(pair for pair in rest[1:] if expected[pair[0].label] <= most)]
        worth = sum(expected[method.label] for method, _ in rest) > WORTH_WORKERS
        show("first folds of the other methods", 0.0, 1.0)
        fold |= self.first_folds(rest, choice, (-1 if self.n_jobs is None else self.n_jobs) if worth else 1)
        unit: dict[str, float] = {}
        run = replace(self.run, choice=choice, methods=methods, options=replace(self.run.options, n_jobs=1))
        with one_thread():
            for name in choice.efforts:
                analysis = ANALYSES[name]
                if isinstance(analysis, MeasuresItself) and analysis.unit not in unit:
                    watch = Stopwatch()
                    analysis.measure(run)
                    unit[analysis.unit] = watch.seconds()
        return Measured(fold, unit)

    def first_folds(self, methods: Methods, choice: Choice, n_jobs: int | None) -> dict[str, float]:
        """Seconds of the first fold of each method, by label; one that fails says so when all folds are run."""
        table: UnitTable = self.run.table
        tasks = {pair[0].label: outer_units(*pair, table, choice.options)[0] for pair in methods}
        with workers([table], n_jobs) as run:
            if n_jobs not in (1, None):
                try:
                    rows = {row["key"]: row for row in self.kept.rows([*tasks.values()], run)}
                    return {label: float(rows[task.unit.key]["seconds"]) for label, task in tasks.items()}
                except SolverError:
                    return self.first_folds(methods, choice, 1)
            seconds = {}
            for label, task in tasks.items():
                watch = Stopwatch()
                try:
                    (row,) = self.kept.rows([task], run)
                    seconds[label] = float(row["seconds"])
                except SolverError:
                    seconds[label] = watch.seconds()
        return seconds


def methods_of(methods: Methods, choice: Choice) -> list[tuple[Method, PreparedMethod]]:
    """The methods that a choice runs."""
    labels = {method.label for method in choice.methods}
    return [pair for pair in methods if pair[0].label in labels]


def recorded_plan(folder: Path | None, mark: str) -> dict[str, Any] | None:
    """The decision that an earlier run of the same study left in a folder."""
    if folder is None:
        return None
    with open_store(folder, "study") as store:
        entry = store.meta("plan")
    return entry["plan"] if entry is not None and entry["mark"] == mark else None


def format_duration(seconds: float) -> str:
    """About how long, in words."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
