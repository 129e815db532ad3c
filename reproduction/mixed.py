"""The clinical kernel for mixed types (Paul and Dupont): four tables, 200 splits, performance and stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit

from marginsieve.bench import Comparison, SuiteResult, compare
from marginsieve.contracts import Array, IntArray
from marginsieve.data import NamedTable, Schema, filled_with_means, one_hot
from marginsieve.kernels import heom_distances

from . import named_problems
from .claims import Claim, Experiment, is_ahead, list_claims
from .drawings import curves
from .evidence import NEAR, NO, Evidence, Finding, NotRun, format_values, if_holds
from .markdown import grid
from .paper import Job, Paper
from .pins import make_selector
from .record import result_in
from .workplace import Call, Workplace

MIXED_SETS = ("ARRHYTHMIA430", "HEART", "HEPATITIS", "VANTVEER4348")  # Rheumagene is not public
ELIMINATION, HYBRID = ("clinical_rfe", "mkl_rfe"), ("hfs_nb", "hfs_5nn")
SIDES = {"balanced_accuracy": "balanced classification rate", "stability": "stability (Kuncheva)"}
NEIGHBORS, TREES, SMOOTHING = 5, 200, 1e-3
AGREE = 0.6  # rank correlation of the methods from which on two classifiers agree
CLASSIFIERS = ("SVM", "random forest", "naive Bayes", "5-NN")


def _mixed_job(name: str, C: float) -> Job:
    """The paper does not say which C it used."""
    return Job(
        name,
        ("figures",),
        {"name": "mixed", "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 500, 1000, 2000]},
        MIXED_SETS,
        ("HEART",),
        {recipe: (recipe, {"C": C, "class_weight": "balanced"}) for recipe in (*ELIMINATION, *HYBRID)},
        {"balanced_accuracy": ("balanced_accuracy", "mean")},
        nested=False,
        quick_protocol={"repeats": 10},
    )


# -- parts of the study ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FamilyComparison:
    """What a job measured at every size: `first` against `second`, on scores and on stability, over the data sets.

    Methods are ranked in two ways: with data sets as blocks, sizes averaged, and with every data set and size as a
    block of its own, as the paper does, which counts the same data many times.
    """

    job: str
    data: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.job}-comparison"

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the tables as CSV and the pictures beside it. The job was run before."""
        drafts = place.drafts
        if (result := result_in(place.out / f"{self.job}-as-printed")) is None:
            return []
        both = scores_and_stability(result)
        both.to_csv(drafts / f"{self.name}.csv", index=False)
        lines = [f"## {self.job}: {' and '.join(self.first)} against {' and '.join(self.second)}", ""]
        for side, label in SIDES.items():
            lines += self._means(both, side, label) + self._ranks(both, side, label, drafts)
        for data, part in both.groupby("data", sort=False):
            file = f"{self.job}-{str(data).lower()}-stability.svg"
            curves(part.rename(columns={"stability": "value"}), drafts / file, "stability (Kuncheva)")
            lines += [f"![stability on {data}]({file})", ""]
        return lines

    def _means(self, both: pd.DataFrame, side: str, label: str) -> list[str]:
        """Means over the sizes, and by how much the worst of the first family is ahead of the best of the second."""
        table = both.pivot_table(index="data", columns="method", values=side, sort=False)
        present = [[name for name in family if name in table] for family in (self.first, self.second)]
        ahead = table[present[0]].min(axis=1) - table[present[1]].max(axis=1)
        shown = table.map("{:.3f}".format).assign(**{"ahead by": ahead.map("{:+.3f}".format)})
        lines = grid(f"Mean {label} over the sizes:", shown)[:-1]
        text = "'Ahead by' is the weaker of the first two methods less the stronger of the other two."
        return [*lines, "", text, ""] if all(present) else [*lines, ""]

    def _ranks(self, both: pd.DataFrame, side: str, label: str, drafts: Path) -> list[str]:
        lines = []
        for blocks, index in (("data sets", ["data"]), ("data sets and sizes", ["data", "size"])):
            table = both.pivot_table(index=index, columns="method", values=side, sort=False).dropna()
            if min(table.shape) < 2:
                continue
            values = compare(table)
            file = f"{self.job}-{side.replace('_', '-')}-{blocks.replace(' ', '-')}.svg"
            values.plot(drafts / file, blocks)
            ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(values.methods, values.ranks, strict=True))
            text = f"Average ranks by {label}, blocks are {blocks} ({len(table)}): {ranks}; Friedman p = "
            text += f"{values.p_value:.2g}, critical difference {values.critical_difference:.2f}."
            lines += [text, "", f"![{label}, {blocks}]({file})", ""]
        return lines


def scores_and_stability(study: SuiteResult, keys: Sequence[str] = ("data", "method", "size")) -> pd.DataFrame:
    """By data set, method and size: balanced accuracy and stability, where both are there."""
    scores = study.scores("balanced_accuracy").drop(columns="passes")
    return scores.merge(study.stability()[[*keys, "stability"]], on=list(keys)).dropna()


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
        drafts = place.drafts
        rows = [row for result in place.run_calls(self.name, self.calls()) for row in result["rows"]]
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
        selector = make_selector(method, n_features_to_select=1, **fixed).fit(left, y[train])
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
    for j, name in enumerate(kind):
        seen, known = ~np.isnan(Z[:, j]), ~np.isnan(new[:, j])
        for code in (0, 1):
            cells = Z[seen & (y == code), j]
            if name == "real":
                if not len(cells):
                    continue
                variance = cells.var() + SMOOTHING * max(float(Z[seen, j].var()), 1e-12)
                value = -0.5 * (new[known, j] - cells.mean()) ** 2 / variance - 0.5 * np.log(variance)
            else:
                levels = np.unique(Z[seen, j])
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
        correlation = float(np.mean([svm.corr(other) for svm, other in pairs]))
        difference = float((means.xs(classifier, level=1) - means.xs("SVM", level=1)).to_numpy().mean())
        lines.append(
            f"- {classifier}: {100 * difference:+.1f} points against the SVM on average; rank correlation of the "
            f"methods with the SVM's, mean over the data sets, {correlation:.2f}."
        )
    return [*lines, ""]


# -- claims --------------------------------------------------------------------------------------------------------


def _compare_ranks(evidence: Evidence, job: str, side: str, blocks: tuple[str, ...] = ("data", "size")) -> Comparison:
    """Ranks of the four methods over data sets and sizes, as in the paper."""
    table = evidence.table(f"{job}-comparison").pivot_table(index=list(blocks), columns="method", values=side).dropna()
    if min(table.shape) < 2:
        raise NotRun("there are too few data sets or methods to compare")
    return compare(table[[*ELIMINATION, *HYBRID]])


def _ranks(compared: Comparison) -> dict[str, float]:
    return dict(sorted(zip(compared.methods, compared.ranks, strict=True), key=lambda pair: pair[1]))


def _highly_significant(evidence: Evidence, job: str) -> Finding:
    both = (
        _compare_ranks(evidence, job, "balanced_accuracy"),
        _compare_ranks(evidence, job, "balanced_accuracy", ("data",)),
    )
    figures = f"Friedman p = {both[0].p_value:.2g} over data sets and sizes, {both[1].p_value:.2g} over data sets"
    return if_holds(both[0].p_value < 1e-30, f"{figures} (printed below 1e-30, over data sets and sizes)")


def _mkl_first(evidence: Evidence, job: str) -> Finding:
    compared = _compare_ranks(evidence, job, "balanced_accuracy")
    ranks = _ranks(compared)
    least = min(ranks[name] for name in HYBRID) - max(ranks[name] for name in ELIMINATION)
    figures = f"average ranks {format_values(ranks, 2)}; critical difference {compared.critical_difference:.2f}"
    order = list(ranks)[:2] == ["mkl_rfe", "clinical_rfe"]
    return if_holds(order and least > compared.critical_difference, figures, NEAR if order else NO)


def _less_stable(evidence: Evidence, job: str) -> Finding:
    compared = _compare_ranks(evidence, job, "stability")
    ranks = _ranks(compared)
    least = min(ranks[name] for name in ELIMINATION) - max(ranks[name] for name in HYBRID)
    figures = (
        f"average ranks by stability {format_values(ranks, 2)}; critical difference {compared.critical_difference:.2f}"
    )
    return if_holds(least > compared.critical_difference, figures, NEAR if least > 0 else NO)


def _leads(evidence: Evidence, job: str) -> dict[str, float]:
    """By data set: the weaker of the RFE methods less the stronger of the HFS methods, in points."""
    frame = evidence.table(f"{job}-comparison")
    table = 100 * frame.pivot_table(index="data", columns="method", values="balanced_accuracy", sort=False)
    ahead = table[list(ELIMINATION)].min(axis=1) - table[list(HYBRID)].max(axis=1)
    return {str(name): float(value) for name, value in ahead.items()}


def _larger_where_wide(evidence: Evidence, job: str) -> Finding:
    leads = _leads(evidence, job)
    columns = {name: named_problems.load(name).X.shape[1] for name in leads}
    order = sorted(leads, key=lambda name: columns[name])
    if len(order) < 3:
        raise NotRun("there are too few data sets")
    figures = ", ".join(f"{name} ({columns[name]} columns) {leads[name]:+.1f}" for name in order)
    correlation = float(spearmanr([columns[name] for name in order], [leads[name] for name in order]).statistic)
    figures = f"{figures}; rank correlation of columns and gain {correlation:+.2f}"
    return if_holds(correlation > 0 and leads[order[-1]] > 0, figures)


def _by_data_and_cost(evidence: Evidence) -> str:
    """Where the claim holds: the lead on each data set at both C, since the paper does not say which it used."""
    leads = [_leads(evidence, job) for job, _ in SETTINGS]
    texts = [f"at {setting} {format_values(lead)}" for lead, (_, setting) in zip(leads, SETTINGS, strict=True)]
    between = max(leads[0].values()) - min(leads[0].values())
    change = float(np.mean([abs(leads[1][name] - leads[0][name]) for name in leads[0] if name in leads[1]]))
    return (
        f"the weaker RFE method less the stronger HFS method, in points: {'; '.join(texts)}. It differs by "
        f"{between:.1f} between the tables and by {change:.1f} on average between the two C, of which the paper names "
        "none; its fifth table is not public"
    )


def _similar(evidence: Evidence) -> Finding:
    means = evidence.table("classifiers").groupby(["classifier", "method"])["bcr"].mean().unstack("method")
    ranks = dict(zip(means.index, means.rank(axis=1).to_numpy(), strict=True))
    agree = [name for name in CLASSIFIERS[1:] if np.corrcoef(ranks[name], ranks["SVM"])[0, 1] >= AGREE]
    rates = means.mean(axis=1).to_dict()
    orders = f"the methods are in the SVM's order (rank correlation {AGREE:g} or more) with {len(agree)} of 3"
    figures = f"{orders}; mean rates {format_values({name: 100 * rates[name] for name in CLASSIFIERS})}"
    return if_holds(len(agree) == len(CLASSIFIERS) - 1, figures)


def _rates_by_classifier(evidence: Evidence) -> str:
    means = 100 * evidence.table("classifiers").groupby(["classifier", "method"])["bcr"].mean().unstack("method")
    texts = [f"{name}: {format_values(means.loc[name])}" for name in CLASSIFIERS]
    return "; ".join(texts)


FIGURE_2 = "section 5, figure 2"
SETTINGS = (("curves", "C = 1"), ("curves-c10", "C = 10"))


def _claims(job: str, setting: str) -> tuple[Claim, ...]:
    rows = (
        (
            "both RFE methods beat both HFS methods in balanced classification rate",
            "section 5, figures 1 and 2",
            is_ahead(ELIMINATION, HYBRID, "balanced_accuracy", job),
        ),
        ("their gain is larger on tables with many columns", "section 5", partial(_larger_where_wide, job=job)),
        ("the differences in BCR are highly significant", FIGURE_2, partial(_highly_significant, job=job)),
        ("RFE-MKL is best, then RFE-SVM, both significantly ahead of HFS", FIGURE_2, partial(_mkl_first, job=job)),
        ("both RFE methods are significantly less stable than HFS", FIGURE_2, partial(_less_stable, job=job)),
    )
    return tuple(
        Claim(f"{text} ({setting})", where, decide, Experiment(_by_data_and_cost)) for text, where, decide in rows
    )


CLAIMS = (
    *(claim for job, setting in SETTINGS for claim in _claims(job, setting)),
    *list_claims(
        "section 5",
        _rates_by_classifier,
        ("similar results with random forests, naive Bayes and 5-NN as final classifier", _similar),
    ),
)


MIXED = Paper(
    "mixed",
    "Paul and Dupont, Kernel methods for mixed feature selection",
    (
        _mixed_job("curves", 1.0),
        _mixed_job("curves-c10", 10.0),
        replace(
            _mixed_job("all-genes", 1.0),
            protocol={"name": "mixed", "repeats": 50, "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200]},
            data=("VANTVEER",),
            quick=(),
        ),
    ),
    CLAIMS,
    (
        *(FamilyComparison(job, MIXED_SETS, ELIMINATION, HYBRID) for job in ("curves", "curves-c10")),
        FamilyComparison("all-genes", ("VANTVEER",), ELIMINATION, HYBRID),
        FinalClassifiers("classifiers", MIXED_SETS, (*ELIMINATION, *HYBRID)),
    ),
    full={
        "all-genes": {
            "protocol": {"name": "mixed", "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 1000, 5000]}
        },
        "classifiers": {"repeats": 200},
    },
)
