"""The machines of the ramp loss paper from their definitions, by SciPy: whether our programs are the cause."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, sparse

from marginsieve.contracts import Array
from marginsieve.data import NamedTable

from . import named_problems
from .markdown import grid
from .noisy_folds import make_fold, search_path
from .workplace import Call, Workplace

SETTINGS: dict[str, Any] = {"solver": "auto", "shakes": 5}
SAME = 1e-4  # of an objective


@dataclass(frozen=True)
class PlainPrograms:
    """RL-FS-M and FS-SVM as mixed-integer programs on a few rows and columns, where they are solved to the optimum."""

    data: tuple[str, ...]
    name: str = "plain-programs"
    rows: int = 24
    columns: int = 6
    budget: int = 2
    prices: tuple[float, ...] = (0.1, 1.0, 10.0)
    seconds: float = 20.0

    def quick_form(self) -> PlainPrograms:
        """The first data sets, at one C."""
        return replace(self, data=self.data[:2], prices=self.prices[:1])

    def calls(self) -> list[Call]:
        """Every data set and machine."""
        settings = [self.rows, self.columns, self.budget, self.prices, self.seconds, SETTINGS]
        return [
            Call(f"{name}-{method}", name, settings, partial(self._measure, method=method))
            for name in named_problems.present(self.data)
            for method in ("ramp_fs", "fs_svm")
        ]

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report, and the table as CSV beside it."""
        frame = pd.DataFrame([row for result in place.run_calls(self.name, self.calls()) for row in result["rows"]])
        frame.to_csv(place.drafts / f"{self.name}.csv", index=False)
        text = (
            f"The first training part of each table with wrong labels, {self.rows} of its rows and the "
            f"{self.columns} columns with the largest difference of the classes, a budget of {self.budget}: the "
            f"program of the definition, solved by SciPy, beside ours."
        )
        shown = frame.assign(difference=frame["ours"] / frame["plain"] - 1.0)
        means = shown.groupby(["data", "method"])["difference"].agg(lambda part: part.abs().max())
        table = means.unstack("method").map("{:.1e}".format)
        return [f"## {self.name}: the machines written anew", "", text, "", *grid("Largest difference:", table)]

    def _measure(self, problem: NamedTable, method: str) -> dict[str, Any]:
        fold, rng = make_fold(problem, "labels", 0), np.random.default_rng(0)
        some = np.concatenate([rng.permutation(np.flatnonzero(fold.y == code))[: self.rows // 2] for code in (0, 1)])
        Z, y = fold.train.to_numpy()[some], fold.y[some]
        apart = np.abs(Z[y == 1].mean(axis=0) - Z[y == 0].mean(axis=0))
        Z = Z[:, np.sort(np.argsort(-apart, kind="stable")[: self.columns])]
        names = [str(j) for j in range(Z.shape[1])]
        small = type(fold)(pd.DataFrame(Z, columns=names), y, fold.test, fold.truth)
        rows = []
        for point in search_path(small, method, self.prices, [self.budget], SETTINGS):
            ramp, signs = method == "ramp_fs", np.where(y == 1, 1.0, -1.0)
            value, proved = solve_definition(Z, signs, point.C, self.budget, ramp, self.seconds)
            row = {"data": problem.name, "method": method, "C": point.C, "ours": point.objective}
            rows.append({**row, "plain": value, "proved": proved})
        return {"rows": rows}


def solve_definition(Z: Array, y: Array, C: float, budget: int, ramp: bool, seconds: float) -> tuple[float, bool]:
    """The program in p, q, b, xi, z and v, w = p - q, with constants that no best machine needs more of.

    Without a weight the loss is at most 2C for each sample of the rarer class, so that no weight is above that; for
    fixed weights some sample of a best machine lies on a margin, so that no sample is further outside than 2 and the
    sum of the weights times the largest distance of two samples in a column.
    """
    m, n = Z.shape
    top = 2.0 * C * min(int((y > 0).sum()), int((y < 0).sum()))
    far = 2.0 + top * float(np.ptp(Z, axis=0).max())
    cost = np.r_[np.ones(2 * n), 0.0, np.full(m, C), np.full(m, 2.0 * C), np.zeros(n)]
    eye, signed = np.eye(m), y[:, None] * Z
    zero = np.zeros
    margin = np.hstack([signed, -signed, y[:, None], eye, (far if ramp else 0.0) * eye, zero((m, n))])
    linked = np.hstack([np.eye(n), np.eye(n), zero((n, 1 + 2 * m)), -top * np.eye(n)])
    count = np.r_[zero(2 * n + 1 + 2 * m), np.ones(n)][None]
    rows = sparse.csr_array(np.vstack([margin, linked, count]))
    low = np.r_[np.ones(m), np.full(n + 1, -np.inf)]
    high = np.r_[np.full(m, np.inf), zero(n), float(budget)]
    slack = 2.0 if ramp else np.inf
    bounds = optimize.Bounds(
        np.r_[zero(2 * n), -np.inf, zero(2 * m + n)],
        np.r_[np.full(2 * n, top), np.inf, np.full(m, slack), np.full(m, float(ramp)), np.ones(n)],
    )
    whole = np.r_[zero(2 * n + 1 + m), np.ones(m + n)]
    limits: Any = {"time_limit": seconds, "mip_rel_gap": 1e-6}
    answer = optimize.milp(
        cost, integrality=whole, bounds=bounds, constraints=optimize.LinearConstraint(rows, low, high), options=limits
    )
    return (float(answer.fun) if answer.x is not None else float("nan")), answer.status == 0
