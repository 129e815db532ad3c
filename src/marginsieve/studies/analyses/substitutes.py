"""What could stand in for a selected feature: columns that leave the AUC as it is when they take its place.

Candidates are the columns that are most alike, which no label decides. In every outer fold the list that was chosen
there is fitted with the feature and with the candidate in its place, on the training rows, and both predict the test
rows. A candidate is a substitute where two one-sided tests at 5 % say that the AUC changes by less than the margin:
equivalence is shown, not the absence of a difference. Only features that are missed are looked at: those without which
the list is not shown to be as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed

from ...contracts import Filter, IntArray
from ...criteria import CoxScore, Fisher, FTest
from ...data.association import most_alike
from ...engine.nested import Fold, Nested
from ...engine.scoring import SWAPS, Factors, Pass, Scores, score_difference
from ...engine.units import UnitTable
from ...errors import many
from ...estimators import SVMSelector
from ...estimators.selector import ridge_machines
from ...fitting.rows import Rows
from ...fitting.training import varying_columns
from ...machines import CSVC
from ...searches import TopK
from ...solvers.execution import one_thread, parallel
from ..analysis import AnalysisResult, Facts, Level, StudyRun, applies_to_lists, register_analysis
from ..study_data import column_costs

if TYPE_CHECKING:
    import pandas as pd

MARGIN = 0.02  # of AUC, R2 or C
LEVEL = 0.9  # of the interval that has to be within the margin: two one-sided tests at 5 %
FEATURES, CANDIDATES = 20, 3  # of the list, and for each of them
ALIKE = 0.5  # how alike a candidate is at least
MOST_ROWS, MOST_TRAINED = 1000, 5000
WORK = 4e7  # swaps x folds x rows^2 / 4 up to which all are tried
FIT, PAIR = 3e-3, 2e-8  # seconds of a machine on a list, and for each pair of rows
ChooseLists = Callable[[Rows, IntArray, int], Sequence[IntArray | None]]
COLUMNS = ("feature", "substitute", "alike", "change", "low", "high", "equivalent")


@dataclass(frozen=True)
class _Swap:
    """A feature, a candidate for its place (None: nothing takes it), and how alike they are."""

    feature: int
    candidate: int | None
    alike: float


@register_analysis
class Substitutes:
    """Columns that could stand in for features of the list."""

    name, order, template = "substitutes", 60.0, "instead"

    def applies(self, facts: Facts) -> str | None:
        """For tables that are not too long."""
        if (why := applies_to_lists(facts)) is not None:
            return why
        return f"there are more than {MOST_ROWS:,} rows" if facts.shape.rows > MOST_ROWS else None

    def levels(self, facts: Facts) -> list[Level]:  # noqa: ARG002
        """Whole or not at all."""
        return [Level((), 8)]

    def cost(self, facts: Facts) -> float:
        """A machine for each swap and fold."""
        folds, m = facts.cv * (facts.options.n_repeats or 1), facts.shape.rows
        fits = folds * min(FEATURES, facts.shape.columns) + min(folds * FEATURES * CANDIDATES, 4 * WORK / m**2)
        return fits * (FIT + PAIR * m**2)

    def run(self, run: StudyRun) -> AnalysisResult:
        """What could stand in for features of the list; None where nothing was tried."""
        nested, fixed = run.main.nested, run.options.keep
        frame = find_substitutes(run.table, nested, run.selected_features, run.options.n_jobs, fixed)
        names = run.table.rows.schema.names
        by_feature: dict[str, list[str]] = {}
        for row in frame[frame["equivalent"].astype(bool)].to_dict("records"):
            by_feature.setdefault(row["feature"], []).append(row["substitute"])
        columns = {"substitutes": np.array([", ".join(by_feature.get(name, ())) for name in names], dtype=object)}
        rows: list[dict[Any, Any]] = frame.to_dict("records")
        if run.options.feature_costs is not None:
            cost = dict(zip(names, column_costs(run.options.feature_costs, names), strict=True))
            rows = [row | {"costs": [cost[row["feature"]], cost[row["substitute"]]]} for row in rows]
        values = (
            {
                "margin": MARGIN,
                "score": run.table.target.list_score,
                "features": int(frame["feature"].nunique()),
                "rows": rows,
            }
            if rows
            else None
        )
        return AnalysisResult(values, columns, details=frame)

    def sentence(self, result: dict[str, Any]) -> str | None:
        """How many features have one."""
        known = result["analyses"][self.name]
        same = [row for row in known["rows"] if row["equivalent"]]
        if not result["answer"]["evidence"] or not same:
            return None
        counted, first = len({row["feature"] for row in same}), f"{same[0]['substitute']} for {same[0]['feature']}"
        text = f"{many(counted, 'feature')} of the list {'has' if counted == 1 else 'have'} a substitute outside it"
        score, swaps = result["short_names"][known["score"]], many(len(known["rows"]), "swap")
        tried = f"{known['margin']} of {score} by a 90 % interval; {swaps} tried"
        return f"{text}, such as {first} (within {tried})."


def find_substitutes(
    table: UnitTable, nested: Nested, ranked: IntArray, n_jobs: int | None, fixed: Sequence[str] = ()
) -> pd.DataFrame:
    """A row for each feature of the list and candidate: the change of the score with its interval, and the verdict.

    `ranked`: the selected features, the best first; only the first are looked at, and none of `fixed`.
    """
    rows, names = [], table.rows.schema.names
    swaps = _candidates(table.rows, ranked, [names.index(name) for name in fixed if name in names])
    swaps = swaps[: max(CANDIDATES, int(4 * WORK / len(nested.folds) / len(table.target) ** 2))]
    # A swap says something only of a feature that is missed: where nothing in its place is as good, so is anything.
    needed = set()
    for swap, (change, low, high) in _changes(table, nested, _removals(swaps), n_jobs):
        if change < 0 and not (low > -MARGIN and high < MARGIN):
            needed.add(swap.feature)
    for swap, (change, low, high) in _changes(table, nested, [s for s in swaps if s.feature in needed], n_jobs):
        assert swap.candidate is not None
        same = bool(low > -MARGIN and high < MARGIN)
        rows.append((names[swap.feature], names[swap.candidate], swap.alike, change, low, high, same))
    return substitutes_frame(rows)


def _removals(swaps: Sequence[_Swap]) -> list[_Swap]:
    """Each feature once, with nothing in its place."""
    return [_Swap(feature, None, 0.0) for feature in dict.fromkeys(swap.feature for swap in swaps)]


def _changes(
    table: UnitTable, nested: Nested, swaps: Sequence[_Swap], n_jobs: int | None
) -> list[tuple[_Swap, tuple[float, float, float]]]:
    """The change of the score by each swap, with its interval."""
    jobs = (delayed(_values_of_fold)(table.rows, fold, swaps) for fold in nested.folds)
    values, out, metric = parallel(n_jobs)(jobs) if swaps else [], [], table.target.list_score
    for k, swap in enumerate(swaps):
        gap = list_change(nested, [each[1][k] for each in values], [each[0][k] for each in values], SWAPS)
        out.append((swap, (gap.value[metric], gap.low[metric], gap.high[metric])))
    return out


def substitutes_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """The rows as a table, which may be empty."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COLUMNS))


def _candidates(encoded: Rows, ranked: IntArray, fixed: Sequence[int]) -> list[_Swap]:
    """The columns outside the list that are most alike to each of the first features."""
    usable = varying_columns(encoded.table)
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
    encoded: Rows, fold: Fold, swaps: Sequence[_Swap]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Predictions of a fold's test rows for each swap: with the feature, and with the candidate in its place."""
    part = training_rows(encoded, fold)
    known: dict[tuple[int, ...], dict[str, Any]] = {}
    chosen = np.empty(0, dtype=np.intp) if fold.support is None else fold.support

    def predict(columns: IntArray) -> dict[str, Any]:
        key = tuple(columns.tolist())
        if key not in known:
            known[key] = predict_on(part, columns, encoded, fold.test)
        return known[key]

    with_it, without = [], []
    with one_thread():
        for swap in swaps:
            rest = np.setdiff1d(chosen, [swap.feature, -1 if swap.candidate is None else swap.candidate])
            with_it.append(predict(np.union1d(rest, [swap.feature])))
            others = rest if swap.candidate is None else np.union1d(rest, [swap.candidate])
            without.append(predict(others) if len(others) else part.target.constant_entry(with_it[-1]))
    return with_it, without


def training_rows(encoded: Rows, fold: Fold) -> Rows:
    """The rows that a fold does not test."""
    return encoded.take(np.setdiff1d(np.arange(len(encoded)), fold.test))


def predict_on(part: Rows, columns: IntArray, encoded: Rows, test: IntArray) -> dict[str, Any]:
    """Predictions of rows of a table by a machine that is trained on some columns of a part, all of them.

    The machine is linear where the columns are numbers without gaps, else on the clinical kernel. It is ridge
    regression where the target is numbers, and proportional hazards where it is times to an event.
    """
    some, new = part.columns(columns), encoded.take(test).columns(columns).table.Z
    plain = "nominal" not in some.schema.kind
    plain = plain and (some.table.is_sparse or not (np.isnan(some.table.Z).any() or np.isnan(new).any()))
    outcome = part.target.outcome_name
    fast: Filter = Fisher()
    if outcome != "classes":
        fast = CoxScore() if outcome == "survival" else FTest()
    selector = SVMSelector(
        "linear" if plain else "clinical",
        CSVC() if outcome == "classes" else ridge_machines(outcome)[1],
        criterion=fast if plain else "margin",
        search=TopK() if plain else "backward",
        standardize=plain,
        class_weight="balanced",
        threshold="margin",
        outcome=outcome,
        n_features_to_select=1.0,
        similar=None,
        max_samples=MOST_TRAINED,
        random_state=0,
    )
    fitted = selector.fit_rows(some)
    return encoded.target.entry(fitted.decision, fitted.model.decision(new))


def predict_by_lists(
    encoded: Rows, nested: Nested, main: IntArray, choose: ChooseLists, n_jobs: int | None
) -> tuple[list[list[Any]], Sequence[Any]]:
    """Predictions of the test rows of the first repeat's folds, by lists of the training rows; the lists of all rows.

    `choose` is called with rows, the main method's list on them (`main` on all), and a number of the fold.
    """
    folds = [fold for fold in nested.folds if fold.repeat == 0]
    jobs = [delayed(_predict_by_lists)(encoded, fold, choose, k) for k, fold in enumerate(folds)]
    *values, lists = parallel(n_jobs)([*jobs, delayed(choose)(encoded, main, len(folds))])
    return values, lists


def _predict_by_lists(encoded: Rows, fold: Fold, choose: ChooseLists, number: int) -> list[dict[str, Any] | None]:
    assert fold.support is not None
    part = training_rows(encoded, fold)
    with one_thread():
        lists = choose(part, fold.support, number)
        return [None if each is None else predict_on(part, np.sort(each), encoded, fold.test) for each in lists]


def list_change(
    nested: Nested,
    ours: Sequence[Mapping[str, Any]],
    theirs: Sequence[Mapping[str, Any]],
    factors: Mapping[str, Factors] | None = None,
    level: float = LEVEL,
) -> Scores:
    """The difference of two sets of predictions of the folds' test rows, with an interval.

    Only the first repeats may be there: predictions of the first folds.
    """
    first, second = (passes_of(nested, entries) for entries in (ours, theirs))
    return score_difference(nested.target, first, second, level, factors)


def passes_of(nested: Nested, entries: Sequence[Mapping[str, Any]]) -> list[Pass]:
    """The predictions of the first folds as passes over the table."""
    known = list(zip(nested.folds, entries, strict=False))
    passes = []
    for repeat in sorted({fold.repeat for fold, _ in known}):
        here = [(fold, entry) for fold, entry in known if fold.repeat == repeat]
        back = np.argsort(np.concatenate([fold.test for fold, _ in here]))
        passes.append(Pass.from_entries([entry for _, entry in here]).take(back))
    return passes
