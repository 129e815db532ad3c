"""What could stand in for a selected feature: columns that leave the AUC as it is when they take its place.

Candidates are the columns that are most alike, which no label decides. In every outer fold the list that was chosen
there is fitted with the feature and with the candidate in its place, on the training rows, and both predict the test
rows. A candidate is a substitute where two one-sided tests at 5 % say that the AUC changes by less than the margin:
equivalence is shown, not the absence of a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed

from ...contracts import Array, IntArray
from ...criteria import Fisher
from ...data.association import most_alike
from ...engine.metrics import DIFFERENCES, SWAPS, Factors, Pass, Scores, score_difference
from ...engine.nested import Fold, Nested
from ...engine.units import UnitTable
from ...errors import many
from ...estimators import SVMSelector
from ...fitting.preparation import varying
from ...fitting.training_rows import Encoded
from ...searches import TopK
from ...solvers.processes import parallel
from ...solvers.threads import one_thread
from ..analysis import (
    AnalysisResult,
    Facts,
    StudyRun,
    costs_little,
    part_of_every_study,
    register_analysis,
    say_nothing,
)
from ..study_data import column_costs

if TYPE_CHECKING:
    import pandas as pd

MARGIN = 0.02  # of AUC
LEVEL = 0.9  # of the interval that has to be within the margin: two one-sided tests at 5 %
FEATURES, CANDIDATES = 20, 3  # of the list, and for each of them
ALIKE = 0.5  # how alike a candidate is at least
MOST_ROWS = 1000
WORK = 4e7  # swaps x folds x rows^2 / 4 up to which all are tried
COLUMNS = ("feature", "substitute", "alike", "change", "low", "high", "equivalent")


@dataclass(frozen=True)
class _Swap:
    """A feature, a candidate for its place, and how alike they are."""

    feature: int
    candidate: int
    alike: float


@register_analysis
class Substitutes:
    """Columns that could stand in for features of the list."""

    name, order, template = "substitutes", 60.0, "instead"

    def applies(self, facts: Facts) -> str | None:
        """For two classes and tables that are not too long."""
        if facts.shape.classes != 2:
            return "there are more than two classes"
        return f"there are more than {MOST_ROWS:,} rows" if facts.shape.rows > MOST_ROWS else None

    levels = staticmethod(part_of_every_study)
    cost = staticmethod(costs_little)

    def run(self, run: StudyRun) -> AnalysisResult:
        """What could stand in for features of the list; None where nothing was tried."""
        nested, fixed = run.main.nested, run.options.keep
        frame = find_substitutes(run.table, nested, run.selected_features, run.options.n_jobs, fixed)
        names = run.table.encoded.schema.names
        by_feature: dict[str, list[str]] = {}
        for row in frame[frame["equivalent"].astype(bool)].to_dict("records"):
            by_feature.setdefault(row["feature"], []).append(row["substitute"])
        columns = {"substitutes": np.array([", ".join(by_feature.get(name, ())) for name in names], dtype=object)}
        rows: list[dict[Any, Any]] = frame.to_dict("records")
        if run.options.feature_costs is not None:
            cost = dict(zip(names, column_costs(run.options.feature_costs, names), strict=True))
            rows = [row | {"costs": [cost[row["feature"]], cost[row["substitute"]]]} for row in rows]
        values = {"margin": MARGIN, "features": int(frame["feature"].nunique()), "rows": rows} if rows else None
        return AnalysisResult(values, columns, details=frame)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many features have one."""
        known = result["analyses"][self.name]
        same = [row for row in known["rows"] if row["equivalent"]]
        if not result["answer"]["evidence"] or not same:
            return None
        counted, first = len({row["feature"] for row in same}), f"{same[0]['substitute']} for {same[0]['feature']}"
        text = f"{many(counted, 'feature')} of the list {'has' if counted == 1 else 'have'} a substitute outside it"
        return f"{text}, such as {first}: the AUC changes by less than {known['margin']}."

    doubt = staticmethod(say_nothing)


def find_substitutes(
    table: UnitTable, nested: Nested, ranked: IntArray, n_jobs: int | None, fixed: Sequence[str] = ()
) -> pd.DataFrame:
    """A row for each feature of the list and candidate: the change of AUC with its interval, and the verdict.

    `ranked`: the selected features, the best first; only the first are looked at, and none of `fixed`. There are no
    rows where there are more than two classes, or too many rows or too few of a class for an interval.
    """
    rows, names = [], table.encoded.schema.names
    if len(table.classes) == 2 and len(nested.truth) <= MOST_ROWS:
        swaps = _candidates(table.encoded, ranked, [names.index(name) for name in fixed if name in names])
        swaps = swaps[: max(CANDIDATES, int(4 * WORK / len(nested.folds) / len(nested.truth) ** 2))]
        jobs = (delayed(_values_of_fold)(table.encoded, table.positive, fold, swaps) for fold in nested.folds)
        values = parallel(n_jobs)(jobs) if swaps else []
        for k, swap in enumerate(swaps):
            gap = auc_change(nested, [each[1][k] for each in values], [each[0][k] for each in values], SWAPS)
            change, low, high = (ends["auc"] for ends in (gap.value, gap.low, gap.high))
            same = bool(low > -MARGIN and high < MARGIN)
            rows.append((names[swap.feature], names[swap.candidate], swap.alike, change, low, high, same))
    return substitutes_frame(rows)


def substitutes_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """The rows as a table, which may be empty."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COLUMNS))


def _candidates(encoded: Encoded, ranked: IntArray, fixed: Sequence[int]) -> list[_Swap]:
    """The columns outside the list that are most alike to each of the first features."""
    usable = varying(encoded.table)
    usable[ranked] = False
    features = ranked[~np.isin(ranked, np.array(fixed, dtype=np.intp))][:FEATURES]
    near = most_alike(encoded.table, features, usable, CANDIDATES)
    return [
        _Swap(int(j), int(c), float(r))
        for j, (columns, alike) in zip(features, near, strict=True)
        for c, r in zip(columns, alike, strict=True)
        if abs(r) >= ALIKE
    ]


def _values_of_fold(
    encoded: Encoded, positive: int, fold: Fold, swaps: Sequence[_Swap]
) -> tuple[list[Array], list[Array]]:
    """Decision values of a fold's test rows for each swap: with the feature, and with the candidate in its place."""
    part = training_rows(encoded, fold)
    known: dict[tuple[int, ...], Array] = {}
    chosen = np.empty(0, dtype=np.intp) if fold.support is None else fold.support

    def value(columns: IntArray) -> Array:
        key = tuple(columns.tolist())
        if key not in known:
            known[key] = values_on(part, columns, encoded, fold.test, positive)
        return known[key]

    with_it, without = [], []
    with one_thread():
        for swap in swaps:
            rest = np.setdiff1d(chosen, [swap.feature, swap.candidate])
            with_it.append(value(np.union1d(rest, [swap.feature])))
            without.append(value(np.union1d(rest, [swap.candidate])))
    return with_it, without


def training_rows(encoded: Encoded, fold: Fold) -> Encoded:
    """The rows that a fold does not test."""
    return encoded.take(np.setdiff1d(np.arange(len(encoded.target.codes)), fold.test))


def values_on(part: Encoded, columns: IntArray, encoded: Encoded, test: IntArray, positive: int) -> Array:
    """Decision values of rows of a table by a machine that is trained on some columns of a part, all of them.

    The machine is linear where the columns are numbers without gaps, else on the clinical kernel.
    """
    some, new = part.columns(columns), encoded.take(test).columns(columns).table.Z
    plain = "nominal" not in some.schema.kind
    plain = plain and (some.table.is_sparse or not (np.isnan(some.table.Z).any() or np.isnan(new).any()))
    selector = SVMSelector(
        "linear" if plain else "clinical",
        criterion=Fisher() if plain else "margin",
        search=TopK() if plain else "backward",
        standardize=plain,
        class_weight="balanced",
        threshold="margin",
        n_features_to_select=1.0,
        similar=None,
        random_state=0,
    )
    sign = 1.0 if positive == 1 else -1.0
    return np.asarray(sign * selector.fit_rows(some).decision(new))


def auc_change(
    nested: Nested, ours: Sequence[Array], theirs: Sequence[Array], factors: Factors = DIFFERENCES
) -> Scores:
    """The difference of two sets of decision values of the folds' test rows, with a 90 % interval.

    Only the first repeats may be there: values of the first folds.
    """
    first, second = (_passes(nested, values) for values in (ours, theirs))
    return score_difference(nested.truth, first, second, nested.positive, nested.groups, LEVEL, factors)


def _passes(nested: Nested, values: Sequence[Array]) -> list[Pass]:
    """The values of the first folds as passes over the table."""
    known = list(zip(nested.folds, values, strict=False))
    passes = []
    for repeat in sorted({fold.repeat for fold, _ in known}):
        here = [(fold, value) for fold, value in known if fold.repeat == repeat]
        entries = [
            {"predicted": np.where(value > 0, nested.positive, 1 - nested.positive), "decision": value}
            for _, value in here
        ]
        back = np.argsort(np.concatenate([fold.test for fold, _ in here]))
        passes.append(Pass.joined(entries).take(back))
    return passes
