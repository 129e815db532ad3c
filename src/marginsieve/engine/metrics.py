"""Metrics of out-of-fold predictions, with intervals for what the finished model scores on new rows.

Every metric of a pass over the table is linearised: `influence` (m,) is what each row adds to it, so that its variance
is a sum of squares. The variance of one pass is that of one test of the model, and it is never that of averaged
passes: these share their rows, and their mean varies between tables nearly as much as one of them. What it lacks (the
training rows vary too, and folds share them) are factors that were measured on simulated tables
(benchmarks/coverage.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from ..contracts import Array, BoolArray, IntArray
from ..outcomes import units_per_class
from ..outcomes.scores import METRICS

__all__ = ["METRICS", "Pass", "Scores", "point_metrics", "score_difference", "score_predictions"]

# Ends of an interval: how many roots of a pass's variance the standard error is below and above the value, and what is
# added to it where there is a signal (in units of the metric, times `_room`). Above is more than below, since models on
# a part of the rows score lower than the one on all. Measured on simulated tables: benchmarks/coverage.md.
Factors = Mapping[str, tuple[float, float, float, float]]
LEVELS: Factors = {
    "balanced_accuracy": (0.93, 1.35, 0.0, 0.0),
    "auc": (0.95, 1.55, 0.02, 0.0),
    "pr_auc": (1.0, 1.55, 0.01, 0.04),
    "accuracy": (0.95, 1.55, 0.03, 0.0),
    "brier": (2.0, 1.25, 0.03, 0.0),
}
DIFFERENCES: Factors = {
    "balanced_accuracy": (0.95, 0.95, 0.04, 0.04),
    "auc": (0.95, 0.95, 0.06, 0.06),
    "pr_auc": (1.36, 1.36, 0.0, 0.0),
    "accuracy": (1.05, 1.05, 0.03, 0.03),
    "brier": (1.62, 1.62, 0.0, 0.0),
}
SWAPS: Factors = {"auc": (1.0, 1.0, 0.0, 0.0)}  # differences of models that differ in one column of their lists
SWAP_LEAST = 0.25  # of the variance of half an error in each class, where no pair of rows changed its order
OTHERS = (1.35, 1.35, 0.0, 0.0)  # metrics whose intervals were not measured
FEWEST = 10  # samples (or groups) of a class below which there is no interval


@dataclass(frozen=True)
class Pass:
    """One pass over the table: every row predicted once, by the model that did not see its fold.

    Parameters
    ----------
    predicted : array of int of shape (m,)
        Predicted class codes.
    decision : array of shape (m,) or None, default=None
        Decision values, higher for the positive class, 0 at the cut; None with more than two classes.
    probability : array of shape (m,) or None, default=None
        Probabilities of the positive class.
    fold : array of int of shape (m,) or None, default=None
        Fold in which each row was tested; None is one fold.
    unit : array of shape (m,) or None, default=None
        Standard deviation of the decision values of the row's model on rows that it did not see; None is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.engine import Pass
    >>> Pass(np.array([0, 1]), np.array([-1.0, 2.0])).decision
    array([-1.,  2.])
    """

    predicted: IntArray
    decision: Array | None = None
    probability: Array | None = None
    fold: IntArray | None = None
    unit: Array | None = None

    def take(self, rows: IntArray) -> Pass:
        """Some of the rows, in this order."""
        columns: dict[str, Any] = {name: None if value is None else value[rows] for name, value in vars(self).items()}
        return Pass(**columns)

    @classmethod
    def joined(cls, entries: Sequence[Mapping[str, Any]]) -> Pass:
        """Predictions of some splits as units left them, one after the other."""
        columns: dict[str, Any] = {}
        for key in ("predicted", "decision", "probability"):
            known = [entry.get(key) for entry in entries]
            columns[key] = None if any(one is None for one in known) else np.concatenate(known)  # type: ignore[arg-type]
        sizes = [len(entry["predicted"]) for entry in entries]
        unit = np.repeat([max(entry.get("unit") or 1.0, 1e-300) for entry in entries], sizes)
        return cls(**columns, fold=np.repeat(np.arange(len(sizes)), sizes), unit=unit)


@dataclass(frozen=True)
class Scores:
    """A value, a standard error and an interval for each metric.

    The interval is for what the model that was fitted on all rows scores on new rows with the table's mix of classes.
    The values are those of models on a part of the rows, which score a little lower.

    Attributes
    ----------
    value : dict of str to float
        Value of each metric, the mean over the passes.
    low, high : dict of str to float
        Ends of the interval of each metric; nan where a class has fewer than 10 samples (or groups).
    error : dict of str to float
        Standard error of each metric, for that model: the larger of those below and above the value.
    level : float
        Level of the intervals.
    by_class : dict of str to tuple of float
        For each metric and class, the variance of one pass times the number of its samples.
    counts : tuple of int
        Samples (or groups) of each class.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.engine import nested_cv
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> nested = nested_cv(recipes.fisher(n_features_to_select=2), cohort.X, cohort.y, cv=3, n_repeats=2)
    >>> scores = nested.scores()
    >>> scores.low["auc"] <= scores.value["auc"] <= scores.high["auc"]
    True
    """

    value: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    error: dict[str, float]
    level: float
    by_class: dict[str, tuple[float, ...]]
    counts: tuple[int, ...]

    def forecast(self, counts: Sequence[int], level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Between which values each metric will be on a new cohort.

        Parameters
        ----------
        counts : sequence of int
            Samples of each class in that cohort, in the order of the classes.
        level : float, default=0.9
            Level of the forecast.

        Returns
        -------
        dict of str to (float, float)
            Lowest and highest value of each metric.

        Examples
        --------
        >>> from marginsieve import recipes
        >>> from marginsieve.data import make_cohort
        >>> from marginsieve.engine import nested_cv
        >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
        >>> scores = nested_cv(recipes.fisher(n_features_to_select=2), cohort.X, cohort.y, cv=3).scores()
        >>> low, high = scores.forecast([100, 20])["auc"]
        >>> low < scores.value["auc"] < high
        True
        """
        out = {}
        for name, value in self.value.items():
            new = sum(one / max(count, 1) for one, count in zip(self.by_class[name], counts, strict=True))
            spread = np.sqrt(self.error[name] ** 2 + new)
            out[name] = interval_ends(name, value, (spread, spread), min(self.counts), level)
        return out


def score_predictions(
    truth: IntArray,
    passes: Sequence[Pass],
    positive: int,
    groups: IntArray | None = None,
    level: float = 0.95,
    errors: Mapping[str, float] | None = None,
) -> Scores:
    """Metrics averaged over passes, with intervals for the model that is fitted on all rows.

    Parameters
    ----------
    truth : array of int of shape (m,)
        Class codes.
    passes : sequence of Pass
        Predictions of every row, one pass for each time that the folds were drawn.
    positive : int
        Code of the positive class.
    groups : array of int of shape (m,) or None, default=None
        Group of each sample.
    level : float, default=0.95
        Level of the intervals.
    errors : mapping of metric to float, or None, default=None
        Standard errors that were estimated otherwise, as by `nested_errors`; the larger of them and of those from the
        passes count on each side.

    Returns
    -------
    Scores
        Value, standard error and interval of each metric.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.engine import Pass, score_predictions
    >>> truth, decision = np.array([0, 0, 1, 1]), np.array([-1.0, 0.5, 0.4, 2.0])
    >>> scores = score_predictions(truth, [Pass((decision > 0).astype(int), decision)], positive=1)
    >>> scores.value["auc"], scores.value["sensitivity"]
    (0.75, 1.0)
    """
    known = [_linearised(truth, one, positive) for one in passes]
    values = _means(known)
    return _scores(known, truth, groups, level, LEVELS, rooms_of(values, truth, positive), errors)


def score_difference(
    truth: IntArray,
    ours: Sequence[Pass],
    theirs: Sequence[Pass],
    positive: int,
    groups: IntArray | None = None,
    level: float = 0.95,
    factors: Factors = DIFFERENCES,
) -> Scores:
    """Each metric of one method less that of another on the same rows, folds by folds."""
    first, second = ([_linearised(truth, one, positive) for one in passes] for passes in (ours, theirs))
    known = [
        {name: (a[name][0] - b[name][0], a[name][1] - b[name][1]) for name in a if name in b}
        for a, b in zip(first, second, strict=True)
    ]
    one, other = (rooms_of(_means(each), truth, positive) for each in (first, second))
    spreads = [_total_variance(each, truth, groups) for each in (known, first, second)]
    rooms = {name: max(one[name], other[name]) * apart(*(spread[name] for spread in spreads)) for name in known[0]}
    return _scores(known, truth, groups, level, factors, rooms)


def point_metrics(truth: IntArray, one: Pass, positive: int, classes: int = 2) -> dict[str, float]:
    """The metrics of one pass over some rows; none where a class is not among them."""
    if len(np.unique(truth)) < classes:
        return {}
    return {name: value for name, (value, _) in _linearised(truth, one, positive).items()}


def apart(difference: float, first: float, second: float) -> float:
    """How far two methods differ in their predictions, from variances: 0 where they are alike, at most 1.

    Two methods that predict alike have the same training rows in common, which then do not widen their difference.
    """
    return float(min(1.0, np.sqrt(2.0 * difference / max(first + second, 1e-300))))


def _total_variance(
    passes: Sequence[Mapping[str, tuple[float, Array]]], truth: IntArray, groups: IntArray | None
) -> dict[str, float]:
    return {
        name: float(np.mean([_variance(known[name][1], truth, groups).sum() for known in passes])) for name in passes[0]
    }


def _means(passes: Sequence[Mapping[str, tuple[float, Array]]]) -> dict[str, float]:
    return {name: float(np.mean([known[name][0] for known in passes])) for name in passes[0]}


def rooms_of(value: Mapping[str, float], truth: IntArray, positive: int) -> dict[str, float]:
    """For each metric 4 u (1 - u), u from 0 at chance to 1 at no error: where training rows matter most."""
    share, chance = float(np.mean(truth == positive)), 1.0 / len(np.unique(truth))
    level = dict.fromkeys(value, (value["balanced_accuracy"] - chance) / (1.0 - chance))
    if "auc" in value:
        level |= {"auc": 2.0 * value["auc"] - 1.0, "pr_auc": (value["pr_auc"] - share) / (1.0 - share)}
    if "brier" in value:
        level["brier"] = 1.0 - value["brier"] / (share * (1.0 - share))
    return {name: 4.0 * (u := float(np.clip(one, 0.0, 1.0))) * (1.0 - u) for name, one in level.items()}


def _scores(
    passes: list[dict[str, tuple[float, Array]]],
    truth: IntArray,
    groups: IntArray | None,
    level: float,
    factors: Mapping[str, tuple[float, float, float, float]],
    rooms: Mapping[str, float],
    known_errors: Mapping[str, float] | None = None,
) -> Scores:
    counts = tuple(units_per_class(truth, groups))
    value, low, high, error, by_class = _means(passes), {}, {}, {}, {}
    for name in value:
        parts = np.mean([_variance(known[name][1], truth, groups) for known in passes], axis=0)
        by_class[name] = tuple(float(part * np.sum(truth == code)) for code, part in enumerate(parts))
        least = 0.0 if name == "brier" else SWAP_LEAST if factors is SWAPS else 1.0
        errors = standard_errors(float(parts.sum()), rooms[name], counts, factors.get(name, OTHERS), least)
        if known_errors is not None and name in known_errors:
            errors = (max(errors[0], known_errors[name]), max(errors[1], known_errors[name]))
        error[name] = max(errors)
        if min(counts) < FEWEST:
            low[name] = high[name] = float("nan")
        elif factors is not LEVELS:
            reach = stats.t.ppf(0.5 + level / 2, min(counts) - 1)
            low[name], high[name] = value[name] - reach * errors[0], value[name] + reach * errors[1]
        else:
            low[name], high[name] = interval_ends(name, value[name], errors, min(counts), level)
    return Scores(value, low, high, error, level, by_class, counts)


def standard_errors(
    variance: float, room: float, counts: Sequence[int], factors: tuple[float, float, float, float], least: float = 1.0
) -> tuple[float, float]:
    """Standard errors below and above a value from the variance of a pass.

    A share without an error still varies, as if half an error had been made in each class; `least` is a factor on the
    variance of that.
    """
    half_error = float(np.mean([0.5 / (count + 1) ** 2 for count in counts]) / len(counts))
    variance, (below, above, more_below, more_above) = max(variance, least * half_error), factors
    return (
        float(np.sqrt(below**2 * variance + (more_below * room) ** 2)),
        float(np.sqrt(above**2 * variance + (more_above * room) ** 2)),
    )


def interval_ends(
    name: str, value: float, errors: tuple[float, float], count: int, level: float
) -> tuple[float, float]:
    """The interval: symmetric in the logarithm for the Brier score, else in the logit, from half a pseudo-count.

    Where a value is above 1/2 its upper end is that without the pseudo-count if it is higher, and the other way round.
    """
    t = float(stats.t.ppf(0.5 + level / 2, max(count - 1, 1)))
    if name == "brier":
        unit = max(value, 1e-9)
        return float(unit * np.exp(-t * errors[0] / unit)), float(min(unit * np.exp(t * errors[1] / unit), 1.0))
    ends = []
    for middle in ((value * count + 0.5) / (count + 1), min(max(value, 1e-9), 1 - 1e-9)):
        reach = t / (middle * (1 - middle))
        ends.append(special.expit(special.logit(middle) + np.array([-reach * errors[0], reach * errors[1]])))
    (low, high), plain = ends
    low, high = min(low, plain[0]) if value < 0.5 else low, max(high, plain[1]) if value > 0.5 else high
    return float(min(low, value)), float(max(high, value))


def _variance(influence: Array, truth: IntArray, groups: IntArray | None) -> Array:
    """(classes,) what each class adds to the variance of a pass; rows of a group vary together."""
    codes = np.unique(truth)
    if groups is not None:
        total = np.bincount(groups, weights=influence)
        count = len(np.unique(groups))
        return np.full(len(codes), float(total @ total) * count / max(count - 1, 1) / len(codes))
    sides = [influence[truth == code] for code in codes]
    return np.array([float(side @ side) * len(side) / max(len(side) - 1, 1) for side in sides])


def _linearised(truth: IntArray, one: Pass, positive: int) -> dict[str, tuple[float, Array]]:
    """Each metric of a pass, and what each row adds to it (m,), of mean 0 in each class."""
    codes, right = np.unique(truth), (one.predicted == truth).astype(float)
    side = {int(code): truth == code for code in codes}
    recall = {code: float(right[rows].mean()) for code, rows in side.items()}
    added = {code: rows * (right - recall[code]) / rows.sum() for code, rows in side.items()}
    out = {"balanced_accuracy": (float(np.mean(list(recall.values()))), np.mean(list(added.values()), axis=0))}
    if one.decision is not None and len(codes) == 2:
        negative = next(code for code in side if code != positive)
        out["sensitivity"] = recall[positive], added[positive]
        out["specificity"] = recall[negative], added[negative]
        out["g_mean"] = _g_mean(recall[positive], recall[negative], added[positive], added[negative])
        hit, unit = side[positive], 1.0 if one.unit is None else one.unit
        out["auc"] = _auc(one.decision, hit, np.zeros(len(truth), dtype=np.intp) if one.fold is None else one.fold)
        out["pr_auc"] = _average_precision(one.decision / unit, hit)
        if one.probability is not None:
            wrong = (one.probability - hit) ** 2
            out["brier"] = float(wrong.mean()), _by_class((wrong - wrong.mean()) / len(truth), side.values())
    share = {code: float(rows.mean()) for code, rows in side.items()}
    out["accuracy"] = float(right.mean()), np.sum([share[code] * added[code] for code in side], axis=0)
    return out


def _by_class(influence: Array, sides: Iterable[BoolArray]) -> Array:
    """The same, less its mean in each class: classes have as many samples in every table of this mix."""
    out = influence.copy()
    for rows in sides:
        out[rows] -= out[rows].mean()
    return out


def _g_mean(ours: float, others: float, added: Array, added_by_others: Array) -> tuple[float, Array]:
    value = float(np.sqrt(ours * others))
    slope = 0.5 / max(value, 1e-12)
    return value, np.asarray(slope * (others * added + ours * added_by_others))


def _auc(decision: Array, positive: BoolArray, fold: IntArray) -> tuple[float, Array]:
    """Over pairs within a fold: values of two models have no common scale. Of all pairs where no fold has one."""
    folds = [rows for k in np.unique(fold) if 0 < positive[rows := np.flatnonzero(fold == k)].sum() < len(rows)]
    folds = folds or [np.arange(len(decision))]
    won, pairs, against = np.zeros(len(decision)), 0.0, np.zeros(len(decision))
    for rows in folds:
        hit = positive[rows]
        gap = decision[rows][hit][:, None] - decision[rows][~hit][None, :]
        better = np.where(gap > 0, 1.0, np.where(gap == 0, 0.5, 0.0))
        won[rows[hit]], won[rows[~hit]] = better.sum(axis=1), better.sum(axis=0)
        against[rows[hit]], against[rows[~hit]] = (~hit).sum(), hit.sum()
        pairs += better.size
    value = float(won[positive].sum() / pairs)
    return value, _by_class((won - value * against) / pairs, (positive, ~positive))


def _average_precision(decision: Array, positive: BoolArray) -> tuple[float, Array]:
    """Area under the precision-recall steps."""
    order = np.argsort(-decision, kind="stable")
    value, hit = decision[order], positive[order]
    last = np.searchsorted(-value, -value, side="right") - 1  # of equal values all count
    hits, all_ = np.cumsum(hit)[last].astype(float), (last + 1).astype(float)
    count = float(hit.sum())
    area = float((hits / all_)[hit].sum() / count)
    first = np.searchsorted(-value, -value, side="left")

    def below(part: Array) -> Array:
        """Sum over the positives at or below each value."""
        total = np.cumsum((part * hit)[::-1])[::-1]
        return total[first]

    grown = np.where(hit, (hits / all_ - area + below((all_ - hits) / all_**2)) / count, -below(hits / all_**2) / count)
    influence = np.empty(len(value))
    influence[order] = grown
    return area, _by_class(influence, (positive, ~positive))
