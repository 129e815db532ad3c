"""KP-SVM's protocol: features and parameters are chosen on one half of a table, machines are judged on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from marginsieve import SVMSelector
from marginsieve.contracts import Array, IntArray
from marginsieve.data import NamedTable, filled_with_means
from marginsieve.engine import tune_on_all_features
from marginsieve.kernels import Gaussian
from marginsieve.machines import CSVC

from . import named_problems
from .drawings import curves
from .kp_printed import kp_as_printed
from .markdown import grid
from .paper import printed_figures
from .pins import make_selector
from .workplace import Call, Workplace

COSTS = (0.1, 0.5, 1.0, *(10.0 * k for k in range(1, 11)), 200.0, 300.0, 400.0, 500.0, 1000.0)  # 18, as the paper has
WIDTHS = tuple(2.0**k for k in range(-7, 7))  # 14, as the paper has; in units of the columns
PENALTIES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RIVALS: Mapping[str, dict[str, Any]] = {"fisher": {"kernel": "gaussian"}, "svm_rfe": {"kernel": "gaussian"}, "fsv": {}}
LEAKED = {name: f"{name}, selected on all rows" for name in ("fisher", "kp_svm")}  # what must not be done
FIXED: dict[str, Any] = {"threshold": "margin", "similar": None, "random_state": 0}


@dataclass(frozen=True)
class SelectionOnHalf:
    """Table 3 and figures 1 to 5: the printed number of features, the method's own, and curves over sizes."""

    name: str
    sizes: Mapping[str, tuple[int, ...]]  # by data set
    printed_size: Mapping[str, int]
    repeats: int = 100
    folds: int = 10
    halvings: int = 3  # the paper has one
    long: bool = True
    paper: str = "kp-svm"

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets."""
        return tuple(self.sizes)

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and the curves beside it."""
        present, drafts = named_problems.present(self.data), place.drafts
        results = place.run_calls(self.name, self.calls())
        rows, remarks = [row for part in results for row in part["rows"]], [part["remark"] for part in results]
        summary = {"size": "mean", "accuracy": "mean", "error": "mean", "curve": "first"}
        frame = pd.DataFrame(rows).groupby(["data", "method", "at"], sort=False).agg(summary).reset_index()
        frame["size"] = frame["size"].round().astype(int)
        frame.to_csv(drafts / f"{self.name}.csv", index=False)
        lines = [f"## {self.name}: selection on one half, {self.repeats} splits 60/40 of the other (table 3)", ""]
        lines += [f"Means over {self.halvings} ways to halve the table; the paper has one.", ""]
        lines += [*(f"- {remark}" for remark in remarks), ""]
        lines += grid("Effectiveness in percent, printed / ours:", self._compare_with_print(frame))
        for name in present:
            part = frame[(frame["data"] == name) & frame["curve"]]
            if part["size"].nunique() > 2:
                file = f"{self.name}-{name.lower()}.svg"
                shown = part.rename(columns={"accuracy": "value"})
                curves(shown[["method", "size", "value"]], drafts / file, "accuracy")
                lines += [f"![{name}]({file})", ""]
        return lines

    def calls(self) -> list[Call]:
        """Every data set, halved in every way."""
        return [
            Call(f"{name}-{seed}", name, [*settings, self.repeats, self.folds], partial(self._measure, seed=seed))
            for name in named_problems.present(self.data)
            for seed in range(self.halvings)
            for settings in ((self.sizes[name], self.printed_size[name]),)
        ]

    def _compare_with_print(self, frame: pd.DataFrame) -> pd.DataFrame:
        theirs = printed_figures(self.paper)
        theirs = theirs[(theirs["table"] == "3") & (theirs["quantity"] == "effectiveness_percent")]
        known = theirs.groupby(["dataset", "method"])["value"].mean().to_dict()
        cells = {}
        for (name, method, size), part in frame.groupby(["data", "method", "size"], sort=False):
            if size != self.printed_size[str(name)] and "own number" not in str(method):
                continue
            printed = known.get((str(name), str(method).split(",")[0]), float("nan"))
            shown = "-" if printed != printed else f"{printed:.1f}"
            value, error = part["accuracy"].iloc[0], part["error"].iloc[0]
            at = f" ({size})" if "own number" in str(method) else ""
            cells[(str(name), str(method))] = f"{shown} / {100 * value:.1f} ± {100 * error:.1f}{at}"
        table = pd.Series(cells).unstack()
        return table[list(dict.fromkeys(frame["method"]))].loc[list(dict.fromkeys(frame["data"]))]

    def _measure(self, problem: NamedTable, seed: int) -> dict[str, Any]:
        """Everything of one data set and one way to halve it, as plain values."""
        name = problem.name
        cells, y = problem.X.to_numpy(dtype=float), np.asarray(problem.y).astype(str)
        half, rest = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(cells, y))
        X = filled_with_means(cells, cells[half])
        spread = X[half].std(axis=0)
        X = (X - X[half].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        point, score = self._best_gaussian(X[half], y[half])
        C, width = point["machine__C"], point["kernel__width"]
        lists, summary = self._rankings(name, X[half], y[half], C, width)
        lists |= {LEAKED[method]: by_size for method, by_size in self._on_all_rows(name, X, y, C, width).items()}
        rows: list[dict[str, Any]] = []
        splits = StratifiedShuffleSplit(self.repeats, test_size=0.4, random_state=1).split(X[rest], y[rest])
        halves = [(rest[train], rest[test]) for train, test in splits]
        for method, by_size in lists.items():
            for size, features in by_size.items():
                machine = SVMSelector(
                    Gaussian(width=width), CSVC(C=C), "fisher", "top_k", n_features_to_select=1.0, **FIXED
                )
                Z = np.ascontiguousarray(X[:, features])
                right = [machine.fit(Z[train], y[train]).score(Z[test], y[test]) for train, test in halves]
                row = {"data": name, "method": method, "at": size, "size": len(features)}
                row |= {"accuracy": float(np.mean(right)), "error": float(np.std(right))}
                rows.append(row | {"curve": size in self.sizes[name] and method not in LEAKED.values()})
        remark = f"{name}: {len(half)} rows to choose on; C = {C:g}, width = {width:g} (balanced accuracy "
        remark += f"{100 * score:.1f} % in {self.folds} folds of them); the algorithm as printed {summary}"
        return {"rows": rows, "remark": remark}

    def _best_gaussian(self, X: Array, y: Array) -> tuple[dict[str, Any], float]:
        """C and the width with the best balanced accuracy on all features."""
        selector = SVMSelector(Gaussian(), CSVC(), "fisher", "top_k", n_features_to_select=1.0, **FIXED)
        folds = list(StratifiedKFold(self.folds, shuffle=True, random_state=0).split(X, y))
        tuned = tune_on_all_features(selector, X, y, {"machine__C": COSTS, "kernel__width": WIDTHS}, folds)
        return tuned.params, tuned.scores["machine"]

    def _rankings(
        self, name: str, X: Array, y: Array, C: float, width: float
    ) -> tuple[dict[str, dict[int, IntArray]], str]:
        """Features by method and size (0: the number that the method chose), and what the printed algorithm did."""
        out: dict[str, dict[int, IntArray]] = {}
        sizes = sorted({*self.sizes[name], self.printed_size[name]})
        for method, settings in RIVALS.items():
            settings = {**settings, "C": C} if method != "fsv" else settings
            selector = make_selector(method, n_features_to_select=1, standardize=False, **settings, **FIXED)
            order = np.argsort(selector.fit(X, y).ranking_)
            out[method] = {size: order[:size] for size in sizes}
        order = self._kp_ranking(X, y, C, width)
        out["kp_svm"] = {size: order[:size] for size in sizes}
        best = self._tune_penalty(X, y, C, width).path_
        out["kp_svm, own number"] = {0: best.order[: best.stop.size]}
        start = width / np.sqrt(X.shape[1])
        printed = kp_as_printed(X, np.where(y == np.unique(y)[1], 1.0, -1.0), C, C2=1.0, start=start)
        out["kp_svm, as printed, own number"] = {0: printed.order[: max(1, len(printed.features))]}
        return out, printed.summary()

    def _on_all_rows(self, name: str, X: Array, y: Array, C: float, width: float) -> dict[str, dict[int, IntArray]]:
        """What a selection finds that sees the rows on which it is judged: by method, at the printed size."""
        size = self.printed_size[name]
        fisher = make_selector("fisher", n_features_to_select=1, standardize=False, **FIXED).fit(X, y)
        orders = {"fisher": np.argsort(fisher.ranking_), "kp_svm": self._kp_ranking(X, y, C, width)}
        return {method: {size: order[:size]} for method, order in orders.items()}

    @staticmethod
    def _kp_ranking(X: Array, y: Array, C: float, width: float) -> IntArray:
        ranked = make_selector(
            "kp_svm",
            C=C,
            width=width,
            stop="ranking",
            n_features_to_select=1,
            standardize=False,
            final="start",
            **FIXED,
        )
        return np.asarray(ranked.fit(X, y).path_.order)

    def _tune_penalty(self, X: Array, y: Array, C: float, width: float) -> Any:
        """KP-SVM with the penalty that has the best accuracy in folds of the half; of equals the heaviest."""
        scores = []
        folds = list(StratifiedKFold(self.folds, shuffle=True, random_state=1).split(X, y))
        for C2 in PENALTIES:
            right = [self._kp(X[train], y[train], C, width, C2).score(X[test], y[test]) for train, test in folds]
            scores.append(round(float(np.mean(right)), 12))
        best = max(k for k, score in enumerate(scores) if score == max(scores))
        return self._kp(X, y, C, width, PENALTIES[best])

    @staticmethod
    def _kp(X: Array, y: Array, C: float, width: float, C2: float) -> Any:
        return make_selector("kp_svm", C=C, width=width, C2=C2, standardize=False, final="start", **FIXED).fit(X, y)
