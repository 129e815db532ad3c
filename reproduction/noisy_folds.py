"""Tables 6 to 13 of the ramp loss paper: wrong labels in the training parts of ten folds, every C and budget.

All C and budgets of RL-FS-M, and of FS-SVM, are searched together in a fold, from one pool of points. A level of a
category is a column of its own, as it has to be in the paper: with 100 % on LEPIOTA it prints 10.7 features, where no
list of ours needs more than 8 of the 22 categories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from marginsieve.contracts import Array, IntArray
from marginsieve.data import NamedTable, Schema, filled_with_means, one_hot
from marginsieve.estimators import prepare_search
from marginsieve.searches import Budget, BudgetPoint

from . import named_problems
from .evidence import AS_PRINTED, HONEST, REPAIRED
from .markdown import grid
from .paper import Job
from .pins import make_selector
from .workplace import Call, Workplace

PRICES = (0.01, 0.1, 1.0, 10.0, 100.0)
NOISE_SHARE, FOLDS = 0.05, 10
SWAPS: dict[str, Any] = {"solver": "fast", "shakes": 0}
DAKS: dict[str, Any] = {"solver": "daks", "shakes": 0}
WHOLE: dict[str, Any] = {"stop": "own", "points": 2}  # no ranking is asked for
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ramp_fs": ("ramp_fs", SWAPS),
    "fs_svm": ("fs_svm", SWAPS),
    "ramp_svm": ("ramp_svm", WHOLE),
    "svm_l1": ("svm_l1", WHOLE),
    "fisher": ("fisher", {}),
    "svm_rfe": ("svm_rfe", {}),
}
QUANTITIES = {
    "accuracy_percent": ("accuracy", "value"),
    "balanced_accuracy_percent": ("balanced_accuracy", "value"),
    "n_features_selected": ("n_features", "value"),
}
MEASURED = ("accuracy", "balanced_accuracy", "n_features")
WITH_DAKS, DAKS_PRICES, DAKS_BUDGETS = "ramp_fs by DAKS", (0.1, 1.0, 10.0), 2
LEVELS, CODES, GROUPS = "levels", "codes", "groups"  # how categories become columns
FIXED: dict[str, Any] = {"positive": 1, "random_state": 0, "resamples": 0, "similar": None, "standardize": False}
Key = tuple[float, float]  # C, budget


@dataclass(frozen=True)
class Fold:
    """A training part with wrong labels and a test part with right ones, in units of the training part."""

    train: pd.DataFrame
    y: IntArray  # wrong in part
    test: pd.DataFrame
    truth: IntArray

    def score(self, guess: Any, n_features: int) -> dict[str, float]:
        """What is measured of the classes that a machine guesses."""
        accuracy, balanced = float(np.mean(guess == self.truth)), float(balanced_accuracy_score(self.truth, guess))
        return {"accuracy": accuracy, "balanced_accuracy": balanced, "n_features": float(n_features)}


def make_fold(problem: NamedTable, noise: str, number: int, coding: str = LEVELS) -> Fold:
    """One of ten folds; `noise`: random labels are flipped, or those of the samples furthest on their side."""
    y = (np.asarray(problem.y).astype(str) == str(problem.positive)).astype(np.intp)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y)
    train, test = next(pair for k, pair in enumerate(folds) if k == number)
    Z = as_numbers(problem, train, coding)
    frames = [pd.DataFrame(Z[rows], columns=[str(j) for j in range(Z.shape[1])]) for rows in (train, test)]
    if noise == "labels":
        wrong = flip_labels(y[train], NOISE_SHARE, np.random.default_rng([0, number]))
    else:
        machine = make_selector("svm_l1", threshold="margin", **WHOLE, **FIXED).fit(frames[0], y[train])
        wrong = flip_furthest(y[train], machine.decision_function(frames[0]), NOISE_SHARE)
    return Fold(frames[0], wrong, frames[1], y[test])


def flip_labels(y: IntArray, share: float, rng: np.random.Generator) -> IntArray:
    """Give a share of the samples another class, at random."""
    out, codes = y.copy(), np.unique(y)
    for i in rng.permutation(len(y))[: round(share * len(y))]:
        out[i] = rng.choice(codes[codes != y[i]])
    return out


def flip_furthest(y: IntArray, value: Any, share: float) -> IntArray:
    """Give the other class to the share of each class that lies furthest on its own side, by decision values."""
    out, codes = y.copy(), np.unique(y)
    depth = value * np.where(y == codes[1], 1.0, -1.0)
    for code, other in (codes, codes[::-1]):
        members = np.flatnonzero(y == code)
        out[members[np.argsort(-depth[members], kind="stable")][: round(share * len(members))]] = other
    return out


def as_numbers(problem: NamedTable, train: IntArray, coding: str = LEVELS) -> Array:
    """The table with means for gaps, less the training part's means and over its deviations; columns that vary."""
    schema = Schema.from_table(problem.X)
    cells = schema.encode(problem.X)
    Z = filled_with_means(cells, cells[train], schema.kind)
    Z = one_hot(Z, cells[train], schema.kind)[0] if coding == LEVELS else np.where(np.isnan(Z), -1.0, Z)
    spread = Z[train].std(axis=0)
    return np.asarray(((Z - Z[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0])


def search_path(
    fold: Fold, method: str, prices: Sequence[float], budgets: Sequence[int], settings: Mapping[str, Any]
) -> list[BudgetPoint]:
    """The machines of all C and budgets, from one pool of points."""
    recipe = METHODS[method][0]
    selector = make_selector(recipe, budget=max(budgets), threshold="margin", **FIXED, **settings)
    search, problem = prepare_search(selector, fold.train, fold.y)
    assert isinstance(search, Budget)
    points = search.solve_path(problem, prices, budgets, np.random.default_rng(0))
    if broken := broken_laws({(point.C, point.budget): point.objective for point in points}):
        raise ArithmeticError(f"objectives of {method} break their laws: {broken[0]}")
    return points


def broken_laws(objectives: Mapping[Key, float]) -> list[str]:
    """Where an objective falls as C grows or rises with the budget."""
    return [
        f"{there:.9g} at C = {other[0]:g} and a budget of {other[1]:g} is below {value:.9g} at C = {C:g} and {budget:g}"
        for (C, budget), value in objectives.items()
        for other, there in objectives.items()
        if other[0] >= C and other[1] <= budget and there < value * (1.0 - 1e-9)
    ]


def guess_by(point: BudgetPoint, table: pd.DataFrame) -> IntArray:
    """The classes that a machine gives new rows."""
    names, w = [str(name) for name, _ in point.weights], np.array(list(point.weights.values()))
    value = point.intercept + (table[names].to_numpy() @ w if len(w) else np.zeros(len(table)))
    return np.asarray(value > 0, dtype=np.intp)


@dataclass(frozen=True)
class NoisyFolds:
    """Every method at every C and budget under one noise, and what is reported of it in three columns.

    As printed: the C and budget with the best accuracy over the folds, of equals the best balanced accuracy. Repaired:
    every method has the five C alone to choose from, and its budgets are averaged: RL-l1-M and SVM-l1 have no budget,
    and the best of 25 estimates is higher than that of 5 by chance. Honest: each fold's are chosen on the other folds.
    """

    name: str
    noise: str
    note: str  # of the printed rows
    budgets: Mapping[str, tuple[int, ...]]
    n_folds: int = FOLDS  # of the ten, the first ones,
    fewer: Mapping[str, int] = field(default_factory=dict)  # and of tables where a fold takes minutes
    daks: tuple[str, ...] = ()  # data sets on which DAKS goes on from the pool, too,
    daks_folds: int = 3  # in the first folds: what a lower objective is worth
    settings: Mapping[str, Any] = field(default_factory=lambda: SWAPS)
    quick: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets."""
        return tuple(self.budgets)

    @property
    def job(self) -> Job:
        """What of it is compared with the print."""
        return Job(self.name, ("text 4.3",), {}, self.data, self.quick, METHODS, QUANTITIES, note=self.note)

    def quick_form(self) -> NoisyFolds:
        """The small data sets, two budgets and two folds."""
        return replace(
            self, budgets={name: self.budgets[name][:2] for name in self.quick}, n_folds=2, fewer={}, daks=()
        )

    def calls(self) -> list[Call]:
        """Every fold of every data set."""
        return [
            Call(f"{name}-{fold}", name, settings, partial(self._measure, number=fold))
            for name in named_problems.present(self.data)
            for fold in range(self.fewer.get(name, self.n_folds))
            for settings in [[self.budgets[name], dict(self.settings), self.noise, self._has_daks(name, fold)]]
        ]

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report, and two tables as CSV beside it."""
        results = place.run_calls(self.name, self.calls())
        frame = pd.DataFrame([row for result in results for row in result["rows"]])
        chosen = choose_settings(frame[frame["method"] != WITH_DAKS])
        chosen.round(6).to_csv(place.drafts / f"{self.name}.csv", index=False)
        means = (
            frame.groupby(["data", "method", "C", "budget"], sort=False)[[*MEASURED, "objective"]].mean().reset_index()
        )
        means.round(6).to_csv(place.drafts / f"{self.name}-settings.csv", index=False)
        compare_daks(frame).to_csv(place.drafts / f"{self.name}-daks.csv", index=False)
        paths, most = sum(result["paths"] for result in results), max(map(len, self.budgets.values()))
        short = {name: len(some) for name, some in self.budgets.items() if len(some) < most}
        text = (
            f"{self.n_folds} of ten folds{''.join(f' ({k} of {name})' for name, k in self.fewer.items())} with "
            f"{NOISE_SHARE:.0%} wrong labels in the training part, "
            f"{'drawn at random' if self.noise == 'labels' else 'those furthest on their own side'}. C and budget are "
            "chosen by the accuracy over all folds (as printed), C alone so, budgets averaged (repaired), or both on "
            "the other folds (honest). The objectives of a fold rise with C and fall with the budget in each of "
            f"{paths} paths.{''.join(f' {name} has its {k} smallest budgets alone.' for name, k in short.items())}"
        )
        lines = [f"## {self.name}: tables 6 to 13", "", text, ""]
        for column, title in zip((AS_PRINTED, REPAIRED, HONEST), ("as printed", "repaired", "honest"), strict=True):
            for measure in MEASURED[:: 2 if column == AS_PRINTED else 3]:
                table = average(chosen, column, measure)
                table.loc["mean"] = table.mean()
                scale = 1.0 if measure == "n_features" else 100.0
                lines += grid(f"{measure.replace('_', ' ')}, {title}:", table.mul(scale).map("{:.1f}".format))
        return lines

    def answers(self, place: Workplace) -> list[pd.DataFrame]:
        """Our values of the printed quantities, a table for each column."""
        chosen, tables = pd.read_csv(place.drafts / f"{self.name}.csv"), []
        for column in (AS_PRINTED, REPAIRED, HONEST):
            rows = [
                {"dataset": data, "method": method, "quantity": quantity, column: value * scale}
                for quantity, (measure, _) in QUANTITIES.items()
                for scale in [1.0 if measure == "n_features" else 100.0]
                for data, row in average(chosen, column, measure).iterrows()
                for method, value in row.items()
            ]
            tables.append(pd.DataFrame(rows))
        return tables

    def _measure(self, problem: NamedTable, number: int) -> dict[str, Any]:
        fold, budgets, rows = make_fold(problem, self.noise, number), self.budgets[problem.name], []
        paths = {name: search_path(fold, name, PRICES, budgets, self.settings) for name in ("ramp_fs", "fs_svm")}
        if self._has_daks(problem.name, number):
            paths[WITH_DAKS] = search_path(fold, "ramp_fs", DAKS_PRICES, budgets[:DAKS_BUDGETS], DAKS)
        for method, points in paths.items():
            for point in points:
                score = fold.score(guess_by(point, fold.test), len(point.weights))
                row = {"method": method, "C": point.C, "budget": int(point.budget), "objective": point.objective}
                rows.append({**row, **score})
        for C in PRICES:
            rows += self._score_rivals(fold, C, budgets)
        fixed = {"data": problem.name, "fold": number}
        return {"rows": [{**fixed, **row} for row in rows], "paths": len(paths)}

    def _has_daks(self, name: str, number: int) -> bool:
        return name in self.daks and number < self.daks_folds

    @staticmethod
    def _score_rivals(fold: Fold, C: float, budgets: Sequence[int]) -> list[dict[str, Any]]:
        """The methods without a path at one C: those without a budget, and rankings cut at each."""
        rows = []
        for method in ("ramp_svm", "svm_l1"):
            recipe, settings = METHODS[method]
            fitted = make_selector(recipe, C=C, threshold="margin", **FIXED, **settings).fit(fold.train, fold.y)
            score = fold.score(fitted.predict(fold.test), int(fitted.support_.sum()))
            rows.append({"method": method, "C": C, "budget": 0, **score})
        for method in ("fisher", "svm_rfe"):
            recipe, settings = METHODS[method]
            fixed = {**FIXED, **settings, "C": C, "threshold": "margin", "n_features_to_select": 1}
            ranked = make_selector(recipe, **fixed).fit(fold.train, fold.y)
            for budget, fitted in zip(budgets, ranked.at_sizes(fold.train, fold.y, budgets), strict=True):
                score = fold.score(fitted.predict(fold.test), budget)
                rows.append({"method": method, "C": C, "budget": budget, **score})
        return rows


def compare_daks(frame: pd.DataFrame) -> pd.DataFrame:
    """By data set, C and budget: the change by DAKS, percent of the objective and points of accuracy, same folds."""
    keys, names = ["data", "C", "budget"], ["objective", "accuracy"]
    parts = (frame.loc[frame["method"] == name, [*keys, "fold", *names]] for name in (WITH_DAKS, "ramp_fs"))
    both = next(parts).merge(next(parts), on=[*keys, "fold"], suffixes=("", "_before"))
    both["objective"] = 100 * (both["objective"] / both["objective_before"] - 1)
    both["accuracy"] = 100 * (both["accuracy"] - both["accuracy_before"])
    return both.groupby(keys)[names].mean().round(4).reset_index()


def choose_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """By data set, method, fold and column: what is measured at the C and budget that the column chooses."""
    rows = []
    for (data, method), part in frame.groupby(["data", "method"], sort=False):
        wide = {name: part.pivot_table(index="fold", columns=["budget", "C"], values=name) for name in MEASURED}
        for column, weights in _choices(wide).items():
            for fold in weights.index:
                values = {name: float((wide[name].loc[fold] * weights.loc[fold]).sum()) for name in MEASURED}
                rows.append({"data": data, "method": method, "fold": fold, "column": column, **values})
    return pd.DataFrame(rows)


def _choices(wide: Mapping[str, Any]) -> dict[str, Any]:
    """By column: the weight of each setting in each fold."""
    accuracy, balanced = wide["accuracy"], wide["balanced_accuracy"]
    weights = {name: 0.0 * accuracy for name in (AS_PRINTED, REPAIRED, HONEST)}
    weights[AS_PRINTED][_best_setting(accuracy, balanced)] = 1.0
    budgets = accuracy.columns.get_level_values("budget")
    for budget in budgets.unique():
        some = budgets == budget
        best = _best_setting(accuracy.loc[:, some], balanced.loc[:, some])
        weights[REPAIRED][best] = 1.0 / budgets.nunique()
    for fold in accuracy.index:
        best = _best_setting(accuracy.drop(fold), balanced.drop(fold))
        weights[HONEST].loc[fold, [best]] = 1.0
    return weights


def _best_setting(accuracy: Any, balanced: Any) -> tuple[Any, ...]:
    """The best accuracy, of equals the best balanced accuracy, of equals the smaller budget and C."""
    order = np.lexsort((-balanced.mean().round(12), -accuracy.mean().round(12)))
    return tuple(accuracy.columns[order[0]])


def average(chosen: pd.DataFrame, column: str, measure: str) -> pd.DataFrame:
    """Means over the folds by data set and method."""
    part = chosen[chosen["column"] == column]
    table = part.pivot_table(index="data", columns="method", values=measure, sort=False)
    return table[[name for name in METHODS if name in table]]
