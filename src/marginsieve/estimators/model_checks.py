"""What must hold of a model that was read from a file, before anything is computed with it.

Every array has the type, the shape, the range and the finite values that the machines rely on; every other value is of
its kind. So a forged file gives finite numbers or an error, and no compiled loop sees an index out of range.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from ..algebra import as_columns
from ..contracts import KINDS, HasCheck, Path, Solution, Step, StopInfo, Trials, is_sparse
from ..data.dates import ORDERS
from ..data.moments import ALIGNMENTS, GRID, Alignment, ColumnMoments
from ..data.table import Schema, Table
from ..errors import InputError
from ..fitting.procedure import Group
from ..fitting.training import Model, Scaling
from .fitted_selector import Adaptation

MOST_LEVELS = 1e7
MOST_SLOPE = 1e100
STATES = ("", "optimal", "limit", "heuristic")  # of programs; other machines have none


def require(holds: Any, what: str) -> None:
    """Refuse the file where something does not hold."""
    if not holds:
        raise InputError(f"{what} is not what a model holds there")


def floats(value: Any, shape: tuple[int, ...], what: str, finite: bool = True, least: float = -math.inf) -> None:
    """An array of floats of this shape."""
    require(isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape == shape, what)
    require(not finite or (np.isfinite(value).all() and (value >= least).all()), what)


def indices(value: Any, top: float, what: str, size: int | None = None, distinct: bool = True) -> None:
    """An array of row or column numbers below `top`."""
    require(isinstance(value, np.ndarray) and value.dtype == np.intp and value.ndim == 1, what)
    require(size is None or len(value) == size, what)
    require(not len(value) or (value.min() >= 0 and value.max() < top), what)
    require(not distinct or len(np.unique(value)) == len(value), what)


def number(value: Any, what: str, finite: bool = True) -> None:
    """A real number."""
    require(isinstance(value, numbers.Real) and not isinstance(value, bool), what)
    require(not finite or math.isfinite(value), what)


def whole(value: Any, what: str, low: int = 0, high: float = math.inf) -> None:
    """A whole number in a range."""
    require(isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value <= high, what)


def texts(value: Any, kind: type[list[Any] | tuple[Any, ...]], what: str, size: int | None = None) -> None:
    """A list or tuple of texts."""
    require(type(value) is kind, what)
    require(all(isinstance(text, str) for text in value), what)
    require(size is None or len(value) == size, what)


def check_schema(schema: Any) -> int:
    """The columns; returns how many there are."""
    require(isinstance(schema, Schema), "columns_")
    n = len(schema.names)
    texts(schema.names, tuple, "the names of the columns")
    require(n > 0 and len(set(schema.names)) == n, "the names of the columns")
    texts(schema.kind, tuple, "the kinds of the columns", n)
    require(set(schema.kind) <= set(KINDS), "the kinds of the columns")
    require(isinstance(schema.levels, Mapping), "the levels of the columns")
    for j, levels in schema.levels.items():
        whole(j, "the levels of the columns", 0, n - 1)
        require(schema.kind[j] != "real" and isinstance(levels, tuple), "the levels of the columns")
        require(all(_is_label(level) for level in levels), "the levels of the columns")
    require(isinstance(schema.days, Mapping), "the dates of the columns")
    for j, known in schema.days.items():
        whole(j, "the dates of the columns", 0, n - 1)
        texts(known, tuple, "the dates of the columns", 2)
        require(schema.kind[j] == "real" and known[1] in ORDERS, "the dates of the columns")
        date.fromisoformat(known[0])
    return n


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, bytes, bool, numbers.Real, Decimal, np.generic)) and bool(value == value)


def check_attributes(fitted: Mapping[str, Any], names: tuple[str, ...], of_outcome: tuple[str, ...]) -> int:
    """The attributes of a fitted selector, and those of its outcome; returns how many problems it solved."""
    every, optional = {*names, *of_outcome}, {of_outcome[-1], "feature_names_in_", "training_", "adaptation_"}
    require(set(fitted) <= every and every - set(fitted) <= optional, "its list")
    n = check_schema(fitted["columns_"])
    check = {"classes_": _check_classes, "interval_": _check_interval, "baseline_": _check_baseline}[of_outcome[0]]
    problems = check(fitted)
    weight = fitted["_weight"]
    require(isinstance(weight, np.ndarray) and weight.ndim == 1 and 0 < len(weight) <= n, "_weight")
    floats(weight, weight.shape, "_weight", least=0.0)
    require(isinstance(fitted["_seed"], np.random.SeedSequence), "_seed")
    indices(fitted["rows_"], math.inf, "rows_")
    texts(fitted["notes_"], list, "notes_")
    texts(fitted["constant_"], list, "constant_")
    require(type(fitted["duplicates_"]) is list and type(fitted["groups_"]) is list, "duplicates_ and groups_")
    for names_ in fitted["duplicates_"]:
        texts(names_, tuple, "duplicates_")
    for group in fitted["groups_"]:
        require(isinstance(group, Group) and isinstance(group.representative, str), "groups_")
        texts(group.members, tuple, "groups_", len(group.correlation))
        for value in group.correlation:
            number(value, "groups_")
    whole(fitted["n_features_in_"], "n_features_in_", n, n)
    if "feature_names_in_" in fitted:
        names_in = fitted["feature_names_in_"]
        require(
            isinstance(names_in, np.ndarray) and names_in.shape == (n,) and names_in.dtype == object,
            "feature_names_in_",
        )
        texts(names_in.tolist(), list, "feature_names_in_")
    check_path(fitted["path_"], n)
    if "training_" in fitted:
        check_moments(fitted["training_"], fitted["columns_"])
    if "adaptation_" in fitted:
        check_adaptation(fitted["adaptation_"], fitted["columns_"])
    return problems


def check_moments(known: Any, schema: Schema) -> None:
    """The moments of the training columns."""
    what = "the moments of the columns"
    require(isinstance(known, ColumnMoments), what)
    p = _check_columns(known.names, schema, what)
    numeric = known.numeric
    require(isinstance(numeric, np.ndarray) and numeric.dtype == np.bool_ and numeric.shape == (p,), what)
    require(isinstance(known.rows, np.ndarray) and known.rows.ndim == 1 and len(known.rows) > 0, what)
    s = len(known.rows)
    floats(known.rows, (s,), what, least=0.0)
    require(known.rows.sum() > 0, what)
    for values, least in ((known.count, 0.0), (known.mean, -math.inf), (known.variance, 0.0)):
        floats(values, (s, p), what, least=least)
    floats(known.missing, (p,), what, least=0.0)
    floats(known.quantiles, (GRID, p), what, finite=False)
    require((np.isfinite(known.quantiles).all(axis=0) | np.isnan(known.quantiles).all(axis=0)).all(), what)


def check_adaptation(known: Any, schema: Schema) -> None:
    """What was changed for a cohort after the fit."""
    what = "how it was adapted to a cohort"
    require(isinstance(known, Adaptation), what)
    texts(known.marks, tuple, what)
    if (alignment := known.alignment) is None:
        return
    require(isinstance(alignment, Alignment) and alignment.how in ALIGNMENTS[1:], what)
    p = _check_columns(alignment.names, schema, what)
    for values in (alignment.centre, alignment.middle, alignment.factor):
        floats(values, (p,), what)
    kinds = [schema.kind[schema.names.index(name)] for name in alignment.names]
    level = np.array([kind != "real" for kind in kinds], dtype=bool)  # whose codes are not moved
    still = (alignment.factor == 1.0) & (alignment.centre == alignment.middle)
    require(still[level].all(), what)
    source = alignment.source
    q = len(source) if isinstance(source, np.ndarray) and source.ndim == 2 else -1
    require(q in (0, GRID), what)
    for values in (source, alignment.matched):
        floats(values, (q, p), what, finite=False)
    require(q == 0 or np.isnan(source[:, level]).all(), what)
    whole(alignment.rows, what, 1)
    require(isinstance(alignment.cohort, str), what)
    require(isinstance(alignment.weighted, str), what)


def _check_columns(names: Any, schema: Schema, what: str) -> int:
    """Names of columns of the table, each once; returns how many there are."""
    texts(names, tuple, what)
    require(len(set(names)) == len(names) and set(names) <= set(schema.names), what)
    return len(names)


def _check_classes(fitted: Mapping[str, Any]) -> int:
    """Labels, threshold and sigmoid; returns how many problems these classes are."""
    labels = fitted["classes_"]
    require(isinstance(labels, np.ndarray) and labels.ndim == 1 and len(labels) > 1, "classes_")
    require(all(_is_label(label) for label in labels.tolist()), "classes_")
    require(len(np.unique(labels)) == len(labels), "classes_")
    require(_is_label(fitted["positive_"]) and fitted["positive_"] in labels.tolist(), "positive_")
    number(fitted["threshold_"], "threshold_")
    require(type(fitted["_sign"]) is float and fitted["_sign"] in (1.0, -1.0), "_sign")
    problems = 1 if len(labels) == 2 else len(labels)
    if fitted.get("_sigmoid") is not None:
        floats(fitted["_sigmoid"], (problems, 2), "_sigmoid")
        require(np.abs(fitted["_sigmoid"]).max() < MOST_SLOPE, "_sigmoid")
    return problems


def _check_interval(fitted: Mapping[str, Any]) -> int:
    """What is added to predicted numbers for the ends of an interval; there is one problem."""
    if (interval := fitted.get("interval_")) is not None:
        require(isinstance(interval, tuple) and len(interval) == 2, "interval_")
        for end in interval:
            number(end, "interval_")
        require(interval[0] <= interval[1], "interval_")
    return 1


def _check_baseline(fitted: Mapping[str, Any]) -> int:
    """Times and hazards, both rising, and the line that risks lie on; there is one problem."""
    if (baseline := fitted.get("baseline_")) is not None:
        require(isinstance(baseline, tuple) and len(baseline) == 3, "baseline_")
        times, hazard, line = baseline
        require(isinstance(times, np.ndarray) and times.ndim == 1 and len(times) > 0, "baseline_")
        floats(times, times.shape, "baseline_")
        floats(hazard, times.shape, "baseline_", least=0.0)
        floats(line, (2,), "baseline_")
        require((np.diff(times) > 0).all() and (np.diff(hazard) >= 0).all(), "baseline_")
        require(0 <= line[0] < MOST_SLOPE, "baseline_")
    return 1


def check_path(path: Any, n: int) -> None:
    """The path over n features."""
    require(isinstance(path, Path), "path_")
    indices(path.order, n, "the order of the path", n)
    floats(path.scores, (n,), "the scores of the path", finite=False)
    require(isinstance(path.steps, tuple) and isinstance(path.weights, tuple), "the steps of the path")
    for step in path.steps:
        require(isinstance(step, Step), "a step of the path")
        whole(step.size, "a step of the path", 0, n)
        for value in (step.objective, step.residual, step.seconds, step.score, step.score_error):
            number(value, "a step of the path", finite=False)
    for weight in path.weights:
        require(isinstance(weight, np.ndarray) and weight.ndim == 1 and len(weight) <= n, "the weights of the path")
        floats(weight, weight.shape, "the weights of the path", least=0.0)
    require(isinstance(path.stop_reason, str) and isinstance(path.scored_by, str), "the path")
    if path.n_selected is not None:
        whole(path.n_selected, "the number of selected features", 0, n)
    if path.stop is not None:
        require(isinstance(path.stop, StopInfo) and isinstance(path.stop.message, str), "the end of the path")
        whole(path.stop.size, "the end of the path", 0, n)
        require(isinstance(path.stop.details, Mapping), "the end of the path")
    require(isinstance(path.solutions, tuple), "the solutions of the path")
    for solution in path.solutions:
        require(isinstance(solution, Solution), "a solution of the path")
        check_solution(solution, len(solution.coef), None)
    if path.trials is not None:
        _check_trials(path.trials)


def _check_trials(trials: Any) -> None:
    require(isinstance(trials, Trials) and isinstance(trials.metric, str), "the trials")
    whole(trials.n, "the trials", 1)
    whole(trials.memory, "the trials")
    bits = trials.bits
    require(isinstance(bits, np.ndarray) and bits.dtype == np.uint8 and bits.ndim == 2, "the trials")
    require(bits.shape[1] == -(-trials.n // 8), "the trials")
    indices(trials.size, math.inf, "the trials", len(bits), distinct=False)
    floats(trials.fitness, (len(bits), 3), "the trials", finite=False)
    indices(trials.best, max(len(bits), 1), "the trials", len(bits), distinct=False)


def check_solution(solution: Any, m: int, p: int | None) -> None:
    """A solution on m rows and p features; lengths over features are checked where p is known."""
    floats(solution.coef, (m,), "a coefficient")
    floats(solution.slack, (m,), "a slack", finite=False)
    for value in (solution.intercept, solution.diagonal):
        number(value, "an intercept")
    for value in (solution.objective, solution.residual, solution.bound):
        number(value, "an objective", finite=False)
    for array in (solution.scale, solution.weights, solution.expanded):
        if array is not None:
            require(isinstance(array, np.ndarray) and array.ndim == 1, "a weight")
            floats(array, array.shape, "a weight")
    for array in (solution.scale, solution.weights):
        require(array is None or p is None or len(array) == p, "a weight")
    whole(solution.iterations, "the count of iterations")
    require(isinstance(solution.converged, bool), "the state of a solution")
    require(isinstance(solution.status, str) and solution.status in STATES, "the state of a solution")


def check_parts(model: Mapping[str, Any], schema: Schema, problems: int) -> None:
    """Machine, kernel, features, scaling, rows and solutions, before a view is made of them."""
    fields = {"machine", "kernel", "features", "scaling", "table", "feature_weight", "solutions"}
    require(isinstance(model, Mapping) and set(model) == fields, "the model")
    for part, methods in (("machine", ("solve", "decision")), ("kernel", ("bind", "start"))):
        require(all(hasattr(type(model[part]), name) for name in methods), f"the {part}")
        if isinstance(model[part], HasCheck):
            model[part].check()
    indices(model["features"], len(schema.names), "the selected features")
    p = len(model["features"])
    require(p > 0 and len(np.unique(model["features"])) == p, "the selected features")
    if model["scaling"] is not None:
        require(isinstance(model["scaling"], Scaling), "the scaling")
        floats(model["scaling"].shift, (p,), "the scaling")
        floats(model["scaling"].factor, (p,), "the scaling")
        require(type(model["scaling"].fills) is bool, "the scaling")
    floats(model["feature_weight"], (p,), "the weights of the features", least=0.0)
    m = _check_table(model["table"], schema, model["features"], model["kernel"].missing)
    require(isinstance(model["solutions"], tuple), "the solutions")
    require(len(model["solutions"]) == problems, "the solutions")
    for solution in model["solutions"]:
        require(isinstance(solution, Solution), "a solution")
        check_solution(solution, m, p)


def _check_table(table: Any, schema: Schema, features: Any, missing: bool) -> int:
    """The training rows of the selected columns; returns how many there are."""
    require(isinstance(table, Table), "the training rows")
    kinds = tuple(schema.kind[j] for j in features)
    require(table.kind == kinds, "the kinds of the training rows")
    require(table.names == tuple(schema.names[j] for j in features), "the names of the training rows")
    Z, p = table.Z, len(kinds)
    if table.known_variance is not None:
        floats(table.known_variance, (p,), "the variances of the training rows", least=0.0)
    if is_sparse(Z):
        require(set(kinds) == {"real"} and Z.shape[1] == p and Z.shape[0] > 1, "the training rows")
        require(np.isfinite(Z.data).all(), "a training cell")
        return int(Z.shape[0])
    require(isinstance(Z, np.ndarray) and Z.dtype == np.float64 and Z.ndim == 2, "the training rows")
    require(Z.shape[1] == p and len(Z) > 1, "the training rows")
    for j, kind in enumerate(kinds):
        column = Z[:, j]
        seen = column[~np.isnan(column)] if missing or kind == "nominal" else column
        require(np.isfinite(seen).all(), "a training cell")
        if kind == "nominal" and len(seen):
            require((seen >= 0).all() and (seen < MOST_LEVELS).all() and (seen == np.floor(seen)).all(), "a level")
    return len(Z)


def check_view(model: Model) -> None:
    """What is known once the view is made: lengths of weights over its columns."""
    if model.machine.needs == "columns":
        columns = len(as_columns(model.view).owner)
        for solution in model.solutions:
            require(solution.expanded is None or len(solution.expanded) == columns, "a weight")
            require(solution.weights is not None or solution.expanded is not None, "a weight")


def check_works(fitted: Model) -> None:
    """The model gives a finite number for each class of its own rows: its parts belong together."""
    some = min(2, fitted.view.table.shape[0])
    rows = fitted.view.table.Z[:some]
    try:
        with np.errstate(all="ignore"):
            value = fitted.values(rows)
    except MemoryError:  # says nothing of them
        raise
    except Exception as error:  # whatever parts do that were never made for each other
        raise InputError("its parts do not belong together") from error
    require(value.shape == (some, len(fitted.solutions)) and np.isfinite(value).all(), "a decision value")


def check_csc(data: Any, at: Any, starts: Any, shape: Any) -> None:
    """The parts of a sparse matrix by columns, in the one form that is written: sorted, without repeats."""
    require(isinstance(shape, list) and len(shape) == 2, "the shape of a sparse matrix")
    for side in shape:
        whole(side, "the shape of a sparse matrix", 0, 2**31)
    rows, columns = shape
    require(isinstance(data, np.ndarray) and data.ndim == 1, "a sparse matrix")
    floats(data, data.shape, "a sparse matrix")
    indices(at, rows, "a sparse matrix", len(data), distinct=False)
    indices(starts, math.inf, "a sparse matrix", columns + 1, distinct=False)
    require(starts[0] == 0 and starts[-1] == len(data) and (np.diff(starts) >= 0).all(), "a sparse matrix")
    first = np.zeros(len(data) + 1, dtype=bool)
    first[starts] = True
    require((np.diff(at) > 0)[~first[1 : len(data)]].all(), "a sparse matrix")
