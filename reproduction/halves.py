"""KP-SVM's table 3 and figures 1 to 5: lists and kernels from one half of a table, or all rows, judged on the other.

A list is judged by a Gaussian machine with its kernel at the width that was tuned on all features and kept for every
subset (`kept`), at a width and C of its own (`own`), or with the factors that KP-SVM learned (`learned`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from marginsieve.contracts import Array, IntArray
from marginsieve.data import NamedTable, filled_with_means

from . import named_problems
from .drawings import curves
from .kp_by_hand import choose_path, count_right, gaussian_kernel
from .markdown import grid
from .paper import printed_figures
from .pins import make_selector
from .workplace import Call, Workplace

COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # the paper has 18 between these ends
SIGMAS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 100.0)  # of the paper's 14; v_0 = 1 / sigma
RIVALS: Mapping[str, dict[str, Any]] = {"fisher": {"kernel": "gaussian"}, "svm_rfe": {"kernel": "gaussian"}, "fsv": {}}
BY_HAND = "kp_svm by hand"  # not ours: `kp_by_hand`
RAW = "kp_svm by hand, raw step"
HALF, ALL_ROWS = "one half", "all rows"
KEPT_WIDTH, OWN_WIDTH, LEARNED = "kept", "own", "learned"
FIXED: dict[str, Any] = {"threshold": "margin", "similar": None, "random_state": 0, "standardize": False}


@dataclass(frozen=True)
class Kernel:
    """A list of features with the factors of a Gaussian kernel and the machine's C."""

    features: IntArray
    factors: Array
    C: float

    def share_right(self, X: Array, y: Array, splits: Sequence[tuple[IntArray, IntArray]]) -> Array:
        """Accuracy on each split."""
        return count_right(gaussian_kernel(X[:, self.features] * self.factors), y, self.C, splits)


@dataclass(frozen=True)
class SelectionOnHalf:
    """Table 3 and figures 1 to 5: the printed number of features, the method's own, and curves over sizes."""

    name: str
    sizes: Mapping[str, tuple[int, ...]]  # by data set
    printed_size: Mapping[str, int]
    repeats: int = 50  # the paper has 100
    folds: int = 5
    halvings: int = 3  # the paper has one
    paper: str = "kp-svm"

    def quick_form(self) -> SelectionOnHalf:
        """The same for COLON, one way to halve it, few splits and no curve."""
        return replace(self, sizes={"COLON": ()}, repeats=20, folds=3, halvings=1)

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets."""
        return tuple(self.sizes)

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the table as CSV and the curves beside it."""
        results, drafts = place.run_calls(self.name, self.calls()), place.drafts
        rows, remarks = [row for part in results for row in part["rows"]], [part["remark"] for part in results]
        frame = pd.DataFrame(rows)
        frame.to_csv(drafts / f"{self.name}.csv", index=False)
        lines = [f"## {self.name}: {self.repeats} splits 60/40 of one half (table 3 and figures 1 to 5)", ""]
        lines += [f"Means over {self.halvings} ways to halve the table; the paper has one.", ""]
        for chosen_on in (ALL_ROWS, HALF):
            table = self._compare_with_print(frame[frame["selected"] == chosen_on])
            lines += grid(f"Effectiveness in percent, selected on {chosen_on}, printed / ours:", table)
        lines += ["What was tuned:", "", *(f"- {remark}" for remark in remarks), ""]
        for name in self.data:
            lines += self._draw_curves(frame[frame["data"] == name], name, place)
        return lines

    def calls(self) -> list[Call]:
        """Every data set, halved in every way."""
        return [
            Call(f"{name}-{seed}", name, [*settings, self.repeats, self.folds], partial(self._measure, seed=seed))
            for seed in range(self.halvings)
            for name in named_problems.present(self.data)
            for settings in ((self.sizes[name], self.printed_size[name]),)
        ]

    def _draw_curves(self, part: pd.DataFrame, name: str, place: Workplace) -> list[str]:
        """Pictures as in figures 1 to 5: selected on all rows at the kept width, and on one half at the own one."""
        lines = []
        for chosen_on, width, word in ((ALL_ROWS, KEPT_WIDTH, "printed"), (HALF, OWN_WIDTH, "honest")):
            some = part[(part["selected"] == chosen_on) & part["kernel"].isin([width, LEARNED]) & (part["at"] > 0)]
            some = some[(some["kernel"] == LEARNED) | some["method"].isin(list(RIVALS))]
            means = some.groupby(["method", "size"], sort=False)["accuracy"].mean().rename("value").reset_index()
            if means["size"].nunique() > 2:
                file = f"{self.name}-{name.lower()}-{word}.svg"
                curves(means, place.drafts / file, f"accuracy, selected on {chosen_on}")
                lines += [f"![{name}, {word}]({file})", ""]
        return lines

    def _compare_with_print(self, frame: pd.DataFrame) -> pd.DataFrame:
        theirs = printed_figures(self.paper)
        theirs = theirs[(theirs["table"] == "3") & (theirs["quantity"] == "effectiveness_percent")]
        known, cells = theirs.groupby(["dataset", "method"])["value"].mean().to_dict(), {}
        for (name, method, kernel, at), part in frame.groupby(["data", "method", "kernel", "at"], sort=False):
            if at in (0, self.printed_size[str(name)]):
                printed = known.get((str(name), str(method).split()[0]), float("nan"))
                shown = "-" if printed != printed else f"{printed:.1f}"
                count = "" if at else f" ({part['size'].mean():.0f})"
                label = f"{method}, {'its number' if not at else f'{kernel} width'}"
                cells[(label.replace("learned width", "learned"), str(name))] = (
                    f"{shown} / {100 * part['accuracy'].mean():.1f}{count}"
                )
        return pd.Series(cells).unstack(sort=False)

    def _measure(self, problem: NamedTable, seed: int) -> dict[str, Any]:
        """Everything of one data set and one way to halve it, as plain values."""
        cells, rows, remarks = problem.X.to_numpy(dtype=float), list[dict[str, Any]](), list[str]()
        y = np.where(np.asarray(problem.y).astype(str) == problem.positive, 1.0, -1.0)
        half, rest = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(cells, y))
        drawn = StratifiedShuffleSplit(self.repeats, test_size=0.4, random_state=1).split(rest, y[rest])
        splits = [(rest[train], rest[test]) for train, test in drawn]
        for chosen_on, chosen in ((ALL_ROWS, np.arange(len(y))), (HALF, half)):
            X = filled_with_means(cells, cells[chosen])
            spread = X[chosen].std(axis=0)
            X = (X - X[chosen].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            C, start = self._tune(X[chosen], y[chosen])
            remarks.append(f"{chosen_on}: C = {C:g}, sigma = {1 / start:g}")
            for method, at, kind, kernel in self._kernels(problem.name, X[chosen], y[chosen], C, start):
                right = kernel.share_right(X, y, splits)
                row = {"data": problem.name, "seed": seed, "selected": chosen_on, "method": method, "kernel": kind}
                row |= {"at": at, "size": len(kernel.features), "accuracy": float(right.mean())}
                rows.append(row | {"deviation": float(right.std())})
        return {"rows": rows, "remark": f"{problem.name}, halved by seed {seed}: {'; '.join(remarks)}"}

    def _tune(self, X: Array, y: Array) -> tuple[float, float]:
        """C and v_0 of these columns with the best accuracy in folds; of equals the smallest C and v_0."""
        splits = list(StratifiedKFold(self.folds, shuffle=True, random_state=0).split(X, y))
        kernels = {1 / sigma: gaussian_kernel(X / sigma) for sigma in SIGMAS[::-1]}
        right = {(C, v): count_right(K, y, C, splits).mean().round(9) for C in COSTS for v, K in kernels.items()}
        return max(right, key=right.__getitem__)

    def _kernels(self, name: str, X: Array, y: Array, C: float, start: float) -> Iterator[tuple[str, int, str, Kernel]]:
        """Method, size (0: its own number), what its kernel is, and that: all that is judged."""
        width, printed = start * np.sqrt(X.shape[1]), self.printed_size[name]
        sizes = sorted({*self.sizes[name], printed})
        for method, settings in RIVALS.items():
            settings = settings if method == "fsv" else {**settings, "C": C}
            selector = make_selector(method, n_features_to_select=1, **settings, **FIXED).fit(X, y)
            order = np.argsort(selector.ranking_)
            for size in sizes:
                yield from self._at_both_widths(method, size, X, y, order[:size], Kernel(order[:size], _all(start), C))
        ours = {"C": C, "width": width, "n_features_to_select": 1, **FIXED}
        path = make_selector("kp_svm", **{**ours, "stop": "ranking"}).fit(X, y).path_
        for size in sizes:
            chosen = path.order[:size]
            yield "kp_svm", size, LEARNED, Kernel(chosen, np.sqrt(path.weights_at(size)), C)
            if size == printed:
                yield from self._at_both_widths("kp_svm", size, X, y, chosen, Kernel(chosen, _all(start), C))
        free = {**FIXED, "C": C, "width": width, "C2": "cv", "iterations": "cv", "cap": None, "max_iter": 60}
        path = make_selector("kp_svm", **free).fit(X, y).path_
        count = path.stop.size
        yield "kp_svm", 0, LEARNED, Kernel(path.order[:count], np.sqrt(path.weights_at(count)), C)
        yield from self._by_hand(X, y, C, start, sizes, printed)

    def _at_both_widths(
        self, method: str, size: int, X: Array, y: Array, chosen: IntArray, kept: Kernel
    ) -> Iterator[tuple[str, int, str, Kernel]]:
        """A list at the width that was tuned on all features, and at one that is tuned on the list."""
        yield method, size, KEPT_WIDTH, kept
        C, v = self._tune(X[:, chosen], y)
        yield method, size, OWN_WIDTH, Kernel(chosen, _all(v), C)

    def _by_hand(
        self, X: Array, y: Array, C: float, start: float, sizes: Sequence[int], printed: int
    ) -> Iterator[tuple[str, int, str, Kernel]]:
        """The same method written anew, with its own step and with the printed one."""
        for label, raw in ((BY_HAND, False), (RAW, True)):
            path, _, end = choose_path(X, y, C, start, raw=raw, folds=self.folds)
            for size in sizes if not raw else (printed,):
                v = path.at_size(size)
                if v.any():
                    yield label, size, LEARNED, Kernel(np.flatnonzero(v), v[v > 0], C)
            v = path.factors[end]
            if v.any():
                yield label, 0, LEARNED, Kernel(np.flatnonzero(v), v[v > 0], C)


def _all(factor: float) -> Array:
    return np.array(factor)
