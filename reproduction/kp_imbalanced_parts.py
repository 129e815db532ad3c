"""Parts of the KP-imbalanced study: the methods written anew, kept widths, both update rules, SMOTE on GLIOMA again.

What is written anew uses NumPy and scikit-learn's SVC on a kernel matrix, and nothing of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from marginsieve.contracts import Array, IntArray
from marginsieve.data import NamedTable
from marginsieve.estimators import prepare_search
from marginsieve.searches import Objective, QuasiNewton

from . import named_problems
from .drawings import curves, intervals
from .markdown import grid
from .paper import bases
from .pins import make_selector
from .record import result_in
from .workplace import Call, Workplace

SMALL = ("GLIOMA", "SRBCT")  # in a quick run
SIZES = (20, 50, 100, 250, 500, 1000)
PLAIN_KP, PLAIN_FISHER, PLAIN_KEPT = "plain KP-CSSVM", "plain Fisher, own width", "plain Fisher, kept width"
OURS_KP, QUASI_NEWTON = "kp_cssvm", "kp_cssvm, quasi-Newton"
UPDATES = {OURS_KP: "multiplicative", QUASI_NEWTON: "quasi-newton"}
BALANCED = "balanced_accuracy"


def encode(problem: NamedTable) -> tuple[Array, IntArray]:
    """Cells, and 1 for the positive class."""
    return problem.X.to_numpy(dtype=float), (np.asarray(problem.y).astype(str) == str(problem.positive)).astype(np.intp)


def standardize(X: Array, train: IntArray) -> Array:
    """Columns with mean 0 and variance 1 on the training rows."""
    deviation = X[train].std(axis=0)
    return np.asarray((X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def gaussian_matrix(X: Array, Z: Array, mu: Array) -> Array:
    """exp(-sum_j mu_j (x_j - z_j)^2 / 2) between the rows of X and of Z."""
    A, B = X * np.sqrt(mu), Z * np.sqrt(mu)
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1)[None, :] - 2.0 * A @ B.T
    return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0)))


def fit_svc(K: Array, y: IntArray, weight: Any = "balanced", C: float = 1.0) -> SVC:
    """scikit-learn's machine on a kernel matrix."""
    return SVC(kernel="precomputed", C=C, class_weight=weight, tol=1e-5).fit(K, y)


# -- KP-CSSVM and Fisher's score, written anew -----------------------------------------------------------------------


def slope_in_weights(X: Array, K: Array, c: Array) -> Array:
    """1/4 sum_ik c_i c_k K_ik (x_ij - x_kj)^2 of each feature j: what J = sum |c| - c'Kc / 2 changes by with its mu."""
    G = c[:, None] * K * c[None, :]
    return np.asarray(0.5 * ((X**2).T @ G.sum(axis=1) - np.einsum("ij,ij->j", X, G @ X)))


def rank_plainly(X: Array, y: IntArray, sizes: Sequence[int], rate: float = 0.1) -> dict[int, tuple[IntArray, Array]]:
    """Features and mu = sigma^2 of KP-CSSVM at each size: rounds of three steps in mu with a fixed sum, then a drop.

    A step lowers the machine's optimum J; c are its signed coefficients.
    """
    live, mu, out = np.arange(X.shape[1]), np.full(X.shape[1], 1.0 / X.shape[1]), {}
    while len(live) > min(sizes):
        Z, mu = X[:, live], np.sqrt(mu) / np.sqrt(mu).sum()
        for _ in range(3):
            K = gaussian_matrix(Z, Z, mu)
            machine = fit_svc(K, y)
            c = np.zeros(len(y))
            c[machine.support_] = machine.dual_coef_[0]
            slope = slope_in_weights(Z, K, c)
            slope -= mu @ slope
            unit = max(float(np.quantile(np.abs(slope), 0.95)), 1e-300)
            mu = mu * np.exp(-rate * np.clip(slope / unit, -1.0, 1.0))
            mu /= mu.sum()
        order = np.argsort(-mu, kind="stable")
        left = max(int(0.8 * len(live)), min(sizes))
        for size in sizes:
            if left < size <= len(live) or size == left == min(sizes):
                best = order[:size]
                out[size] = live[best], mu[best] / mu[best].sum()
        live, mu = live[order[:left]], mu[order[:left]]
    return out


def rank_by_fisher(X: Array, y: IntArray) -> IntArray:
    """Features by |difference of the means| / (sum of the variances), best first."""
    a, b = X[y == 1], X[y == 0]
    score = np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.maximum(a.var(axis=0) + b.var(axis=0), 1e-12)
    return np.argsort(-score, kind="stable")


def predict_plainly(X: Array, y: IntArray, train: IntArray, test: IntArray, some: IntArray, mu: Array) -> IntArray:
    """The machine's classes of the test rows, from some features with these weights in the kernel."""
    left, right = X[np.ix_(train, some)], X[np.ix_(test, some)]
    machine = fit_svc(gaussian_matrix(left, left, mu), y[train])
    return np.asarray(machine.predict(gaussian_matrix(right, left, mu)), dtype=np.intp)


@dataclass(frozen=True)
class PlainMethods:
    """KP-CSSVM as the product has it, by either rule, and written anew; Fisher written anew with both widths."""

    name: str
    data: tuple[str, ...]
    repeats: int = 3
    folds: int = 5

    def quick_form(self) -> PlainMethods:
        """The small tables, one pass."""
        return replace(self, data=SMALL, repeats=1)

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and a picture beside it."""
        frame = pd.DataFrame([row for result in place.run_calls(self.name, self.calls()) for row in result["rows"]])
        frame.to_csv(place.drafts / f"{self.name}.csv", index=False)
        means = frame.groupby(["method", "size"], sort=False)["bcr"].mean().mul(100.0)
        text = f"Mean balanced accuracy over {frame['data'].nunique()} problems, {self.repeats} x {self.folds} folds; "
        text += "the machine has C = 1 and balanced costs, nothing is tuned:"
        curves(means.rename("value").reset_index(), place.drafts / f"{self.name}.svg", "balanced accuracy, %")
        lines = [f"## {self.name}: KP-CSSVM and Fisher's score written anew", ""]
        return [*lines, *grid(text, means.unstack("size"), "method"), f"![{self.name}]({self.name}.svg)", ""]

    def calls(self) -> list[Call]:
        """Every data set."""
        settings = [self.repeats, self.folds, list(UPDATES.values())]
        present = named_problems.present(self.data)
        return [Call(name, name, settings, self._measure, float(self.repeats)) for name in present]

    def _measure(self, problem: NamedTable) -> dict[str, Any]:
        X, y = encode(problem)
        guesses: dict[tuple[str, int], list[IntArray]] = {}
        truth: list[IntArray] = []
        sizes = [size for size in SIZES if size <= X.shape[1]]
        for repeat in range(self.repeats):
            for train, test in StratifiedKFold(self.folds, shuffle=True, random_state=repeat).split(X, y):
                truth.append(y[test])
                for key, guess in self._one_split(X, y, train, test, sizes).items():
                    guesses.setdefault(key, []).append(guess)
        rows = []
        for (method, size), parts in guesses.items():
            passes = [slice(k, k + self.folds) for k in range(0, len(parts), self.folds)]
            rates = [balanced_accuracy_score(np.concatenate(truth[k]), np.concatenate(parts[k])) for k in passes]
            rows.append({"data": problem.name, "method": method, "size": size, "bcr": float(np.mean(rates))})
        return {"rows": rows}

    def _one_split(
        self, X: Array, y: IntArray, train: IntArray, test: IntArray, sizes: Sequence[int]
    ) -> dict[tuple[str, int], IntArray]:
        out: dict[tuple[str, int], IntArray] = {}
        fixed = {"threshold": "margin", "similar": None, "random_state": 0, "positive": 1, "n_features_to_select": 1}
        for label, rule in UPDATES.items():
            selector = make_selector(OURS_KP, update=rule, **fixed).fit(X[train], y[train])
            for size, fitted in zip(sizes, selector.at_sizes(X[train], y[train], sizes), strict=True):
                out[label, size] = np.asarray(fitted.predict(X[test]), dtype=np.intp)
        Z = standardize(X, train)
        predict = partial(predict_plainly, Z, y, train, test)
        for size, (some, mu) in rank_plainly(Z[train], y[train], sizes).items():
            out[PLAIN_KP, size] = predict(some, mu)
        order = rank_by_fisher(Z[train], y[train])
        for size in sizes:
            out[PLAIN_FISHER, size] = predict(order[:size], np.full(size, 1.0 / size))
            out[PLAIN_KEPT, size] = predict(order[:size], np.full(size, 1.0 / X.shape[1]))
        return out


# -- widths: what the suites left, kept width against own ------------------------------------------------------------


KEPT, OWN, LEARNED = "kept width", "own width", "learned width"


@dataclass(frozen=True)
class Widths:
    """Fisher, RFE and BFE with the width of all features kept and with that of their own; KP-CSSVM learns its own.

    It reads what the job measured, with the Gaussian kernel alone.
    """

    name: str
    job: str
    data: tuple[str, ...]
    rivals: tuple[str, ...]

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and pictures beside it."""
        parts = []
        for ending, width, methods in (
            ("as-printed", KEPT, self.rivals),
            ("repaired", OWN, self.rivals),
            ("as-printed", LEARNED, (OURS_KP,)),
        ):
            if (result := result_in(place.out / f"{self.job}-{ending}")) is not None:
                scores = result.scores(BALANCED)
                scores = scores[scores["method"].isin(methods)]
                parts.append(scores.assign(width=width, value=100.0 * scores[BALANCED]))
        if len(parts) < 2:
            return []
        frame = pd.concat(parts, ignore_index=True)[["data", "method", "width", "size", "value"]]
        frame.to_csv(place.drafts / f"{self.name}.csv", index=False)
        named = frame.assign(method=frame["method"] + ", " + frame["width"])
        lines = [f"## {self.name}: the width of all features kept for every subset, and a width of one's own", ""]
        for title, part in (("all problems", named), ("GLIOMA", named[named["data"] == "GLIOMA"])):
            if len(part):
                means = part.groupby(["method", "size"], sort=False)["value"].mean()
                file = f"{self.name}{'' if title != 'GLIOMA' else '-glioma'}.svg"
                curves(means.reset_index(), place.drafts / file, "balanced accuracy, %")
                lines += grid(f"Balanced accuracy, Gaussian kernel, {title}:", means.unstack("size"), "method")
                lines += [f"![{title}]({file})", ""]
        return lines


# -- leads by problem ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leads:
    """By problem, how far the best of some methods is ahead of the best of others, as printed and honestly.

    As printed a value is the largest over settings and sizes; honestly it is the mean over the sizes, since nothing may
    be chosen on the rows that are judged. A sample of the rarer class is what the value may be off by.
    """

    name: str
    text: str
    data: tuple[str, ...]
    first: tuple[str, tuple[str, ...]]  # a job and its methods
    second: tuple[str, tuple[str, ...]]

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and the picture beside it."""
        tables = {
            column: self._values(place.out, self.first, ending) - self._values(place.out, self.second, ending)
            for column, ending in (("as printed", "as-printed"), ("honest", "honest"))
        }
        frame = pd.DataFrame(tables).dropna(how="all")
        if frame.empty:
            return []
        half = pd.Series({name: 50.0 / encode(named_problems.load(name))[1].sum() for name in frame.index})
        frame.assign(sample=half).rename_axis("data").to_csv(place.drafts / f"{self.name}.csv")
        flat = frame.stack()
        labels = [f"{data}, {column}" for data, column in flat.index]
        halves = [half[data] for data, _ in flat.index]
        intervals(labels, flat.to_numpy(), halves, "points", place.drafts / f"{self.name}.svg")
        lines = [f"## {self.name}: {self.text}", ""]
        return [*lines, *grid("In points:", frame.map("{:+.1f}".format)), f"![{self.name}]({self.name}.svg)", ""]

    def _values(self, out: Path, whose: tuple[str, tuple[str, ...]], ending: str) -> pd.Series:
        job, methods = whose
        if (result := result_in(out / f"{job}-{ending}")) is None:
            return pd.Series(dtype=float)
        scores = result.scores(BALANCED)
        scores = scores[bases(scores["method"]).isin(methods)]
        how = "max" if ending == "as-printed" else "mean"
        by_method = scores.groupby(["data", bases(scores["method"])])[BALANCED].agg(how)
        return pd.Series(100.0 * by_method.groupby("data").max())


# -- quasi-Newton against gradient descent ---------------------------------------------------------------------------


class SteepestDescent(QuasiNewton):
    """The rule of 2018 without its matrix B: the same bounds, line search, shortening and end of a move."""

    def iterate(self, objective: Any, here: Any, h: Any, B: Any, total: float | None = None) -> Any:
        """One iteration that forgets the ones before."""
        return super().iterate(objective, here, h, type(B)(), total)


RULES: Mapping[str, type[QuasiNewton]] = {"gradient": SteepestDescent, "quasi-newton": QuasiNewton}
NEARLY = 0.99  # of the way down


@dataclass(frozen=True)
class UpdateRules:
    """The objective after each solved machine by both rules: same start, same line search, same acceptance, same end.

    No feature is dropped, so that both minimise the same function. Beside the machines the iterations are counted.
    """

    name: str
    text: str
    data: tuple[str, ...]
    solves: int = 60
    inner: int = 10
    settings: Mapping[str, Any] = field(default_factory=lambda: {"C2": 1.0, "class_weight": "balanced"})

    def quick_form(self) -> UpdateRules:
        """The small tables."""
        return replace(self, data=SMALL)

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the tables as CSV and the picture beside it."""
        results = place.run_calls(self.name, self.calls())
        rows, traces = [], []
        for result in results:
            start, best = result["values"]["gradient"][0], min(map(min, result["values"].values()))
            for rule, values in result["values"].items():
                left = (np.asarray(values) - best) / max(start - best, 1e-300)
                reached = np.flatnonzero(left <= 1.0 - NEARLY)
                needed = int(reached[0]) if len(reached) else self.solves
                rows.append(
                    {"data": result["data"], "variant": rule, "solves": needed, "left_at_end": float(left[-1])}
                    | {"iterations": result["iterations"][rule], "reached": bool(len(reached))}
                )
                traces += [{"method": rule, "size": k + 1, "value": value} for k, value in enumerate(left)]
        frame = pd.DataFrame(rows)
        frame.to_csv(place.drafts / f"{self.name}.csv", index=False)
        means = pd.DataFrame(traces).groupby(["method", "size"])["value"].mean().mul(100.0).reset_index()
        label = "of the way down still to go, %"
        curves(means, place.drafts / f"{self.name}.svg", label, "machines solved")
        table = frame.pivot(index="data", columns="variant", values="solves")
        title = (
            f"Machines solved until {NEARLY:.0%} of the way to the lowest value of either rule ({self.solves}: never):"
        )
        lines = [f"## {self.name}: both update rules", "", f"The paper: {self.text}", ""]
        return [*lines, *grid(title, table), f"![{self.name}]({self.name}.svg)", ""]

    def calls(self) -> list[Call]:
        """Every data set."""
        settings = [self.solves, self.inner, dict(self.settings)]
        return [Call(name, name, settings, self._measure) for name in named_problems.present(self.data)]

    def _measure(self, problem: NamedTable) -> dict[str, Any]:
        X, y = encode(problem)
        selector = make_selector(OURS_KP, positive=1, **self.settings)
        values, iterations = {}, {}
        for name, rule in RULES.items():
            objective = Objective(prepare_search(selector, X, y)[1], "min-max", "concave", 1.0, None, True)
            values[name], iterations[name] = self._descend(objective, rule(self.inner, 1e-5, 4.0))
        return {"data": problem.name, "values": values, "iterations": iterations}

    def _descend(self, objective: Objective, rule: QuasiNewton) -> tuple[list[float], int]:
        """The lowest objective after each solved machine, and the moves that were tried anew."""
        point, moves = objective.begin(), 0
        values = [point.value]
        while len(values) < self.solves:
            curve, length, moves = rule.curve(objective, point, None), 1.0, moves + 1
            while len(values) < self.solves:
                there = objective.solve_at(point, curve(length))
                values.append(min(values[-1], there.value))
                if there.value < point.value:
                    point = there
                    break
                length *= 0.5
                if length < 2.0**-6:
                    values += [values[-1]] * (self.solves - len(values))
        return values, moves


# -- SMOTE on GLIOMA, written anew -----------------------------------------------------------------------------------


def smote_plainly(
    X: Array, y: IntArray, rng: np.random.Generator, times: int = 4, k: int = 5
) -> tuple[Array, IntArray]:
    """The rows with `times` new ones from each of the rarer class: a point on the way to one of its k neighbours."""
    rare = X[y == 1]
    squares = ((rare[:, None, :] - rare[None, :, :]) ** 2).sum(axis=2)
    near = np.argsort(squares, axis=1, kind="stable")[:, 1 : k + 1]
    new = [
        rare[i] + rng.random() * (rare[j] - rare[i])
        for i, some in enumerate(near)
        for j in rng.choice(some, size=min(times, len(some)), replace=False)
    ]
    return np.vstack([X, *new]), np.concatenate([y, np.ones(len(new), dtype=np.intp)])


@dataclass(frozen=True)
class PlainSmote:
    """What SMOTE adds to CS-SVM (Gaussian) on GLIOMA, tuned as printed, by another implementation and several draws."""

    name: str
    data: tuple[str, ...] = ("GLIOMA",)
    draws: int = 10
    C: tuple[float, ...] = tuple(2.0**k for k in range(-7, 8, 2))
    widths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    weights: tuple[float, ...] = (0.01, 0.1, 0.5, 1.0)

    def quick_form(self) -> PlainSmote:
        """Two draws and fewer parameters."""
        return replace(self, draws=2, C=self.C[::3], widths=(0.5, 1.0))

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and the picture beside it."""
        rows = [row for result in place.run_calls(self.name, self.calls()) for row in result["rows"]]
        frame = pd.DataFrame(rows)
        frame.to_csv(place.drafts / f"{self.name}.csv", index=False)
        labels = [f"{row['data']}, draw {row['draw']}" for row in rows]
        none = np.zeros(len(frame))
        intervals(labels, frame["gain"], none, "points that SMOTE adds", place.drafts / f"{self.name}.svg")
        text = (
            f"SMOTE written anew adds {frame['gain'].mean():+.1f} points on average over {len(frame)} draws "
            f"(lowest {frame['gain'].min():+.1f}, highest {frame['gain'].max():+.1f}) to {frame['plain'].iloc[0]:.1f}."
        )
        return [f"## {self.name}: SMOTE on GLIOMA", "", text, "", f"![{self.name}]({self.name}.svg)", ""]

    def calls(self) -> list[Call]:
        """Every draw on every data set."""
        settings = [self.C, self.widths, self.weights]
        return [
            Call(f"{name}-{draw}", name, settings, partial(self._measure, draw=draw))
            for name in named_problems.present(self.data)
            for draw in range(self.draws)
        ]

    def _measure(self, problem: NamedTable, draw: int) -> dict[str, Any]:
        X, y = encode(problem)
        rng = np.random.default_rng(draw)
        plain = self._best(X, y, lambda rows, labels: (rows, labels))
        smote = self._best(X, y, partial(smote_plainly, rng=rng))
        row = {"data": problem.name, "draw": draw, "plain": plain, "smote": smote, "gain": smote - plain}
        return {"rows": [row]}

    def _best(self, X: Array, y: IntArray, sample: Callable[[Array, IntArray], tuple[Array, IntArray]]) -> float:
        """The best balanced accuracy of leave-one-out over the parameters, in percent."""
        guesses: dict[tuple[float, float, float], list[int]] = {}
        for out in range(len(y)):
            train = np.delete(np.arange(len(y)), out)
            Z = standardize(X, train)
            rows, labels = sample(Z[train], y[train])
            for width in self.widths:
                mu = np.full(X.shape[1], width**2 / X.shape[1])
                K, cross = gaussian_matrix(rows, rows, mu), gaussian_matrix(Z[[out]], rows, mu)
                for C in self.C:
                    for weight in self.weights:
                        machine = fit_svc(K, labels, {0: weight, 1: 1.0}, C)
                        guesses.setdefault((width, C, weight), []).append(int(machine.predict(cross)[0]))
        return float(100.0 * max(balanced_accuracy_score(y, guess) for guess in guesses.values()))
