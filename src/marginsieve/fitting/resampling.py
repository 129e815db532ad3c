"""What machines with the ramp loss say of samples that they did not see, over many subsamples of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra import as_columns
from ..contracts import Array, FitsBudget, IntArray
from ..machines import RampSVC
from ..solvers.execution import one_thread
from .preparation import prepare, varying
from .rows import Rows
from .settings import Plan
from .training import Model

LEFT_OUT = 0.3  # share of each class that a fit does not see
RESAMPLES = 50
BEYOND = -1.0 - 1e-9  # a margin below this is beyond the opposite one


def beyond_frequency(plan: Plan, part: Rows, price: float, rng: np.random.Generator, count: int) -> Array:
    """(k, m): by binary problem and sample, the share of the fits that did not see it and put it beyond the opposite
    margin; nan where there was none.

    Each of `count` fits, at the price C, is on 70 % of the rows, groups together, with all features. A fit without a
    weight says nothing and is left out.
    """
    seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(count)
    shape = part.target.machine_target.y.shape
    beyond, seen = np.zeros(shape), np.zeros(shape)
    for seed in seeds:
        rows, flagged, fits = _once(plan, part, price, seed)
        beyond[:, rows] += flagged
        seen[:, rows] += fits[:, None]
    return np.asarray(beyond / np.where(seen > 0, seen, np.nan))


def _once(plan: Plan, part: Rows, price: float, seed: np.random.SeedSequence) -> tuple[IntArray, Array, Array]:
    """(rows not seen, whether they are beyond the margin, by binary problem whether there was a fit)."""
    rng = np.random.default_rng(seed)
    out = part.target.draw(LEFT_OUT, rng, at_least=1, leave=2)
    rows = np.flatnonzero(out)
    labels = part.target.machine_target.y[:, rows]
    flagged, fits = np.zeros(labels.shape), np.zeros(len(labels))
    seen = part.take(np.flatnonzero(~out))
    if not varying(seen.table).any():
        return rows, flagged, fits  # nothing to fit on
    with one_thread():
        ready = prepare(plan, seen, rng)
        problem = ready.problem
        view = as_columns(problem.view())
        X = view.rows(ready.rows(part.table.Z[rows]))
        for k in range(len(labels)):
            solution = RampSVC(C=price).solve(view, problem.y[k], problem.cost[k])
            assert solution.expanded is not None
            if solution.expanded.any():
                flagged[k] = labels[k] * (np.asarray(X @ solution.expanded) + solution.intercept) < BEYOND
                fits[k] = 1
    return rows, flagged, fits


def left_out_samples(plan: Plan, part: Rows, model: Model, rng: np.random.Generator, resamples: int) -> Any:
    """The samples that a model with the ramp loss left out, as a DataFrame; None where it has another loss.

    `margin` is y f of the model, below -1; `frequency` the share of resampled fits on the selected features, among
    those that did not see the sample, that put it there too, nan where there are none.
    """
    import pandas as pd

    machine = model.machine
    if not (isinstance(machine, FitsBudget) and machine.truncated):
        return None
    labels, problem = part.target.machine_target.y, part.target.own_problem
    margin = (labels * model.decision(part.table.Z).T)[problem, np.arange(len(problem))]
    chosen = np.flatnonzero(margin < BEYOND)
    frequency = np.full(len(chosen), np.nan)
    if len(chosen) and resamples:
        small = replace(part, table=part.table.columns(model.features))
        simple = replace(plan, keep=(), prefilter=None, sampler=None, ensemble=None)
        frequency = beyond_frequency(simple, small, machine.C, rng, resamples)[problem[chosen], chosen]
    frame = pd.DataFrame({"margin": margin[chosen], "frequency": frequency}, index=sample_index(part)[chosen])
    return frame.sort_values("margin", kind="stable")


def sample_index(rows: Rows) -> Any:
    """The names of the samples: a pandas index, or row numbers."""
    import pandas as pd

    return rows.names if isinstance(rows.names, pd.Index) else pd.Index(rows.row_numbers())
