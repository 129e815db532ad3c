"""Other classifiers than the machine on the features that each method selects: the paper says that they do alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit

from marginsieve import recipes
from marginsieve.contracts import Array, IntArray
from marginsieve.data import NamedTable
from marginsieve.data.table import Schema, filled_with_means, levels_of, one_hot
from marginsieve.kernels import heom_distances

from . import named_problems
from .markdown import grid
from .workplace import Call, Workplace

if TYPE_CHECKING:
    import pandas as pd

NEIGHBORS, TREES, SMOOTHING = 5, 200, 1e-3
AGREE = 0.6  # rank correlation of the methods from which on two classifiers agree
CLASSIFIERS = ("SVM", "random forest", "naive Bayes", "5-NN")


@dataclass(frozen=True)
class FinalClassifiers:
    """Balanced classification rate of four classifiers on the first features of each method's ranking."""

    name: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    sizes: tuple[int, ...] = (2, 5, 10, 20, 50)
    repeats: int = 50
    test_share: float = 0.1
    long: bool = True

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report, and the table as CSV beside it."""
        import pandas as pd

        drafts = place.drafts
        rows = [row for result in place.kept(self.name, self.calls()) for row in result["rows"]]
        frame = pd.DataFrame(rows)
        frame.to_csv(drafts / f"{self.name}.csv", index=False)
        means = frame.groupby(["data", "classifier", "method"], sort=False)["bcr"].mean().unstack("method")
        sizes = ", ".join(map(str, self.sizes))
        text = f"Mean balanced classification rate over {self.repeats} splits and the sizes {sizes}"
        lines = [f"## {self.name}: other classifiers on the selected features", ""]
        lines += ["The paper: similar results with random forests, naive Bayes and 5-NN as with the SVM.", ""]
        table = means.map(lambda value: f"{value:.3f}")
        table.index = pd.Index([f"{data}, {classifier}" for data, classifier in table.index])
        lines += grid(f"{text}:", table, "data set, classifier")
        return [*lines, *_agreement(means)]

    def calls(self) -> list[Call]:
        """Every method on every data set."""
        settings = [self.sizes, self.repeats, self.test_share]
        return [
            Call(f"{name}-{method}", name, settings, partial(self._measure, method=method), self.repeats)
            for name in named_problems.present(self.data)
            for method in self.methods
        ]

    def _measure(self, problem: NamedTable, method: str) -> dict[str, Any]:
        y = (np.asarray(problem.y).astype(str) == str(problem.positive)).astype(np.intp)
        splits = StratifiedShuffleSplit(self.repeats, test_size=self.test_share, random_state=0).split(y, y)
        rates: dict[tuple[str, int], list[float]] = {}
        for train, test in splits:
            for key, rate in self._one_split(problem.X, y, train, test, method).items():
                rates.setdefault(key, []).append(rate)
        fixed = {"data": problem.name, "method": method}
        rows = [
            {**fixed, "classifier": classifier, "size": size, "bcr": float(np.mean(values))}
            for (classifier, size), values in rates.items()
        ]
        return {"rows": rows}

    def _one_split(
        self, X: pd.DataFrame, y: IntArray, train: IntArray, test: IntArray, method: str
    ) -> dict[tuple[str, int], float]:
        """Rates by classifier and size on the test rows of one split."""
        out: dict[tuple[str, int], float] = {}
        left, right = X.iloc[train], X.iloc[test]
        fixed = {"threshold": "margin", "similar": None, "random_state": 0, "class_weight": "balanced"}
        selector = recipes.get(method)(n_features_to_select=1, **fixed).fit(left, y[train])
        order = np.argsort(selector.ranking_)
        sizes = [size for size in self.sizes if size <= X.shape[1]]
        for size, fitted in zip(sizes, selector.at_sizes(left, y[train], sizes), strict=True):
            some = order[:size]
            others = _others(left.iloc[:, some], y[train], right.iloc[:, some])
            for classifier, guess in {"SVM": fitted.predict(right), **others}.items():
                out[classifier, size] = float(balanced_accuracy_score(y[test], guess))
        return out


def _others(train: pd.DataFrame, y: IntArray, test: pd.DataFrame) -> dict[str, IntArray]:
    """The guesses of the classifiers that are no support vector machine."""
    schema = Schema.from_table(train)
    Z, new = schema.encode(train), schema.encode(test)
    filled, rows = (filled_with_means(part, Z, schema.kind) for part in (Z, new))
    forest = RandomForestClassifier(TREES, class_weight="balanced", random_state=0, n_jobs=1)
    forest.fit(one_hot(filled, Z, schema.kind)[0], y)
    near = np.argsort(heom_distances(test, train), axis=1, kind="stable")[:, :NEIGHBORS]
    return {
        "random forest": forest.predict(one_hot(rows, Z, schema.kind)[0]),
        "naive Bayes": naive_bayes(Z, y, new, schema.kind),
        "5-NN": (y[near].mean(axis=1) > 0.5).astype(np.intp),
    }


def naive_bayes(Z: Array, y: IntArray, new: Array, kind: tuple[str, ...]) -> IntArray:
    """Classes 0 or 1 of new rows: normal densities of numbers, smoothed shares of categories; a gap says nothing."""
    score = np.tile(np.log(np.bincount(y, minlength=2) / len(y)), (len(new), 1))
    for j, one in enumerate(kind):
        seen, known = ~np.isnan(Z[:, j]), ~np.isnan(new[:, j])
        for code in (0, 1):
            cells = Z[seen & (y == code), j]
            if one == "real":
                if not len(cells):
                    continue
                variance = cells.var() + SMOOTHING * max(float(Z[seen, j].var()), 1e-12)
                value = -0.5 * (new[known, j] - cells.mean()) ** 2 / variance - 0.5 * np.log(variance)
            else:
                levels = levels_of(Z[:, j])
                counts = np.array([np.sum(cells == level) for level in levels]) + 1.0
                place = np.searchsorted(levels, new[known, j]).clip(0, len(levels) - 1)
                met = levels[place] == new[known, j]
                value = np.where(met, np.log(counts[place] / counts.sum()), 0.0)  # a new level says nothing
            score[known, code] += value
    return np.asarray(score.argmax(axis=1), dtype=np.intp)


def _agreement(means: pd.DataFrame) -> list[str]:
    """Whether the classifiers agree on the order of the methods: the mean of their rank correlations with the SVM's."""
    ranks = means.rank(axis=1)
    lines = []
    for classifier in CLASSIFIERS[1:]:
        pairs = [
            (ranks.loc[(data, "SVM")], ranks.loc[(data, classifier)])
            for data in dict.fromkeys(means.index.get_level_values(0))
        ]
        correlation = float(np.mean([one.corr(other) for one, other in pairs]))
        difference = float((means.xs(classifier, level=1) - means.xs("SVM", level=1)).to_numpy().mean())
        lines.append(
            f"- {classifier}: {100 * difference:+.1f} points against the SVM on average; rank correlation of the "
            f"methods with the SVM's, mean over the data sets, {correlation:.2f}."
        )
    return [*lines, ""]
