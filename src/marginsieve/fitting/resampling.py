"""What machines with the ramp loss say of samples that they did not see, over many subsamples of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import delayed

from ..algebra import ColumnView, as_columns
from ..contracts import Array, FitsBudget, IntArray, Matrix, is_sparse
from ..machines import CSVC, RampSVC
from ..outcomes import left_out
from ..solvers.processes import parallel
from ..solvers.threads import one_thread
from .preparation import prepare, varying
from .settings import Plan
from .training import Model
from .training_rows import Part

LEFT_OUT = 0.3  # share of each class that a fit does not see
CLIPPED = 2.0  # a decision value counts up to so much
RESAMPLES = 50
DENSE = (1.0, 3.0, 10.0)  # C of the machines with an l2 penalty, rows of mean square length 1
BEYOND = -1.0 - 1e-9  # a margin below this is beyond the opposite one


@dataclass(frozen=True)
class Resampled:
    """By binary problem and sample: the mean decision value of the fits that did not see it, and how many of them put
    it beyond the opposite margin; nan where there was none."""

    value: Array  # (k, m)
    frequency: Array  # (k, m) share of these fits


def resampled(
    plan: Plan,
    part: Part,
    prices: Sequence[float],
    rng: np.random.Generator,
    count: int,
    n_jobs: int | None = None,
    dense: bool = False,
) -> Resampled:
    """Fits at each price C on `count` subsamples of 70 % of the rows, groups together; all features, one machine each.

    `dense`: where columns outnumber rows, machines with an l2 penalty besides. A fit without a weight says nothing and
    is left out. The result does not depend on n_jobs.
    """
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(count)
    done = parallel(n_jobs)(delayed(_once)(plan, part, tuple(prices), dense, seed) for seed in seeds)
    k, m = plan.outcome.labels(part.y).shape
    total, beyond, seen = np.zeros((k, m)), np.zeros((k, m)), np.zeros((k, m))
    for rows, values, flagged, fits in done:
        total[:, rows] += values
        beyond[:, rows] += flagged
        seen[:, rows] += fits[:, None]
    seen = np.where(seen > 0, seen, np.nan)
    return Resampled(total / seen, beyond / seen)


def _once(
    plan: Plan, part: Part, prices: tuple[float, ...], dense: bool, seed: np.random.SeedSequence
) -> tuple[IntArray, Array, Array, Array]:
    """(rows not seen, sums of their clipped decision values, counts beyond the margin, fits by binary problem)."""
    rng = np.random.default_rng(seed)
    out = left_out(part.y, part.groups, LEFT_OUT, rng, at_least=1, leave=2)
    rows = np.flatnonzero(out)
    labels = plan.outcome.labels(part.y)[:, rows]
    values, flagged, fits = np.zeros(labels.shape), np.zeros(labels.shape), np.zeros(len(labels))
    seen = part.take(np.flatnonzero(~out))
    if not varying(seen.table.Z).any():
        return rows, values, flagged, fits  # nothing to fit on
    with one_thread():
        ready = prepare(plan, seen, rng)
        problem = ready.problem
        view = as_columns(problem.view())
        X = view.rows(ready.rows(part.table.Z[rows]))
        trained = view.X if dense and problem.table.shape[0] < X.shape[1] else None
        for k in range(len(labels)):
            y, cost = problem.y[k], problem.cost[k]
            machines = list(_sparse(view, y, cost, prices))
            machines += [] if trained is None else _dense(trained, y, cost)
            for weights, intercept in machines:
                f = np.asarray(X @ weights) + intercept
                values[k] += np.clip(f, -CLIPPED, CLIPPED)
                flagged[k] += labels[k] * f < BEYOND
                fits[k] += 1
    return rows, values, flagged, fits


def _sparse(view: ColumnView, y: Array, cost: Array, prices: tuple[float, ...]) -> Iterator[tuple[Array, float]]:
    """(weights, intercept) of the machines with ramp loss and l1 penalty that have a weight."""
    for price in prices:
        solution = RampSVC(C=price).solve(view, y, cost)
        assert solution.expanded is not None
        if solution.expanded.any():
            yield solution.expanded, solution.intercept


def _dense(X: Matrix, y: Array, cost: Array) -> Iterator[tuple[Array, float]]:
    """The same with an l2 penalty, for what many columns have in common.

    At these prices and with more columns than rows hardly a row of the training part lies beyond the opposite margin,
    so that the ramp loss is the hinge loss.
    """
    K = np.asarray((X @ X.T).toarray() if is_sparse(X) else X @ X.T)
    unit = max(float(K.diagonal().mean()), 1e-300)
    solution = None
    for price in DENSE:
        start = np.zeros(len(y)) if solution is None else solution.coef
        solution = CSVC(C=price).on(K / unit, y, cost, start)
        yield np.asarray(X.T @ solution.coef) / unit, solution.intercept


def of_model(plan: Plan, part: Part, model: Model, rng: np.random.Generator, index: Any, resamples: int) -> Any:
    """The samples that a model with the ramp loss left out, as a DataFrame; None where it has another loss.

    `margin` is y f of the model, below -1; `frequency` the share of resampled fits on the selected features, among
    those that did not see the sample, that put it there too, nan where there are none.
    """
    import pandas as pd

    machine = model.machine
    if not (isinstance(machine, FitsBudget) and machine.truncated):
        return None
    labels, problem = plan.outcome.labels(part.y), plan.outcome.own_problem(part.y)
    margin = (labels * model.decision(part.table.Z).T)[problem, np.arange(len(problem))]
    chosen = np.flatnonzero(margin < BEYOND)
    frequency = np.full(len(chosen), np.nan)
    if len(chosen) and resamples:
        small = replace(part, table=part.table.columns(model.features))
        simple = replace(plan, keep=(), prefilter=None, sampler=None, ensemble=None)
        again = resampled(simple, small, (machine.C,), rng, resamples)
        frequency = again.frequency[problem[chosen], chosen]
    frame = pd.DataFrame({"margin": margin[chosen], "frequency": frequency}, index=index[chosen])
    return frame.sort_values("margin", kind="stable")


def sample_index(names: Any, count: int) -> Any:
    """The names of the samples: a pandas index, or row numbers."""
    import pandas as pd

    return names if isinstance(names, pd.Index) else pd.RangeIndex(count)
