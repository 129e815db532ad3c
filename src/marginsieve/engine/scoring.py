"""Scores of out-of-fold predictions, with intervals for what the finished model scores on new rows; stability of sets.

Every score of a pass over the table is linearised by its target: `influence` (m,) is what each row adds to it, so that
its variance is a sum of squares. The variance of one pass is that of one test of the model, and it is never that of
averaged passes: these share their rows, and their mean varies between tables nearly as much as one of them. What it
lacks (the training rows vary too, and folds share them) are factors that were measured on simulated tables
(benchmarks/coverage.md); they are in each `Metric`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from ..contracts import Array, IntArray, Score, ScoreInfo
from ..errors import InputError
from ..outcomes import Target
from ..outcomes.scores import METRICS

__all__ = ["METRICS", "Pass", "Scores", "average_scores", "point_scores", "score_difference", "score_predictions"]

Factors = tuple[float, float, float, float]
SWAPS: Mapping[str, Factors] = {"auc": (1.0, 1.0, 0.0, 0.0)}  # differences of models that differ in one column
SWAP_LEAST = 0.25  # of the variance of half an error in each stratum, where no pair of rows changed its order
FEWEST = 10  # rows (or groups) of a stratum below which there is no interval
FIXED: Factors = (1.0, 1.0, 0.0, 0.0)  # of one model on rows that it did not see
OTHERS: Factors = (1.35, 1.35, 0.0, 0.0)  # scores whose intervals were not measured
PREDICTED = ("predicted", "decision", "probability", "values")  # what is known of each row of a pass
NO_ENDS = (float("nan"), float("nan"))
Map = Callable[[float], float]
# the scale on which an interval is symmetric, the way back, the slope, and between which values the slope is finite
SCALES: Mapping[str, tuple[Map, Map, Map, tuple[float, float]]] = {
    "plain": (lambda u: u, lambda u: u, lambda _: 1.0, (-np.inf, np.inf)),
    "size": (np.log, np.exp, lambda u: 1.0 / u, (1e-300, np.inf)),
    "complement": (lambda u: -np.log1p(-u), lambda u: -np.expm1(-u), lambda u: 1.0 / (1.0 - u), (-np.inf, 1.0 - 1e-9)),
    "correlation": (np.arctanh, np.tanh, lambda u: 1.0 / (1.0 - u * u), (-1.0 + 1e-9, 1.0 - 1e-9)),
}


@dataclass(frozen=True)
class Pass:
    """One pass over the table: every row predicted once, by the model that did not see its fold.

    Parameters
    ----------
    predicted : array of shape (m,)
        What is predicted, in the terms of the outcome: codes of classes, or numbers.
    decision : array of shape (m,) or None, default=None
        Decision values, of two classes: higher for the one of interest, 0 at the cut.
    probability : array of shape (m,) or None, default=None
        Probabilities of the class of interest.
    fold : array of int of shape (m,) or None, default=None
        Fold in which each row was tested; None is one fold.
    unit : array of shape (m,) or None, default=None
        Standard deviation of the decision values of the row's model on rows that it did not see; None is 1.
    values : array of shape (m, k) or None, default=None
        Decision values, or probabilities, of each of more than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.engine import Pass
    >>> Pass(np.array([0, 1]), np.array([-1.0, 2.0])).decision
    array([-1.,  2.])
    """

    predicted: Any
    decision: Array | None = None
    probability: Array | None = None
    fold: IntArray | None = None
    unit: Array | None = None
    values: Array | None = None

    def take(self, rows: IntArray) -> Pass:
        """Some of the rows, in this order."""
        columns: dict[str, Any] = {name: None if value is None else value[rows] for name, value in vars(self).items()}
        return Pass(**columns)

    @classmethod
    def from_entries(cls, entries: Sequence[Mapping[str, Any]]) -> Pass:
        """Predictions of some splits as units left them, one after the other."""
        columns: dict[str, Any] = {}
        for key in PREDICTED:
            known = [entry.get(key) for entry in entries]
            columns[key] = None if any(value is None for value in known) else np.concatenate(known)  # type: ignore[arg-type]
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
        Ends of the interval of each metric; nan with an effective count below 10.
    error : dict of str to float
        Standard error of each metric, for that model: the larger of those below and above the value.
    level : float
        Level of the intervals.
    by_stratum : dict of str to tuple of float
        For each metric and stratum (class), the variance of one pass times the number of its samples.
    counts : tuple of int
        Samples (or groups) of each stratum (class).
    scale : dict of str to str
        The scale on which the interval of each metric is symmetric.
    effective_count : int
        Samples (or groups) that decide how sure the scores are: of the rarest stratum, or those with an event; one less
        are the degrees of freedom of the intervals.

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
    by_stratum: dict[str, tuple[float, ...]]
    counts: tuple[int, ...]
    scale: dict[str, str]
    effective_count: int

    def forecast(self, counts: Sequence[int], level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Between which values each metric will be on a new cohort.

        Parameters
        ----------
        counts : sequence of int
            Samples of each stratum (class) in that cohort, in their order.
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
            new = sum(part / max(count, 1) for part, count in zip(self.by_stratum[name], counts, strict=True))
            spread = np.sqrt(self.error[name] ** 2 + new)
            out[name] = interval_ends(self.scale[name], value, (spread, spread), self.effective_count, level)
        return out


def score_predictions(
    target: Target,
    passes: Sequence[Pass],
    level: float = 0.95,
    errors: Mapping[str, float] | None = None,
    fixed: bool = False,
) -> Scores:
    """Scores averaged over passes, with intervals for the model that is fitted on all rows.

    Parameters
    ----------
    target : Target
        The rows' outcomes; `marginsieve.outcomes.ClassTarget.from_codes` makes one of class codes.
    passes : sequence of Pass
        Predictions of every row, one pass for each time that the folds were drawn.
    level : float, default=0.95
        Level of the intervals.
    errors : mapping of metric to float, or None, default=None
        Standard errors that were estimated otherwise, as by `nested_errors`; the larger of them and of those from the
        passes count on each side.
    fixed : bool, default=False
        Whether all predictions are those of one model that saw none of the rows: then only the rows vary.

    Returns
    -------
    Scores
        Value, standard error and interval of each metric.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.engine import Pass, score_predictions
    >>> from marginsieve.outcomes import ClassTarget
    >>> target, decision = ClassTarget.from_codes([0, 0, 1, 1]), np.array([-1.0, 0.5, 0.4, 2.0])
    >>> scores = score_predictions(target, [Pass((decision > 0).astype(int), decision)])
    >>> scores.value["auc"], scores.value["sensitivity"]
    (0.75, 1.0)
    """
    known = [target.scores(one_pass) for one_pass in passes]
    return average_scores(target, known, target.metrics, target.rooms(_means(known)), level, errors, fixed)


def average_scores(
    target: Target,
    known: Sequence[Mapping[str, Score]],
    metrics: Mapping[str, ScoreInfo],
    rooms: Mapping[str, float] | None = None,
    level: float = 0.95,
    errors: Mapping[str, float] | None = None,
    fixed: bool = False,
) -> Scores:
    """Scores of passes, each with what every row adds to it, as in `score_predictions`; without `rooms` these are 0."""
    value, error, by_stratum = _means(known), {}, {}
    ends: dict[str, tuple[float, float]] = {}
    counts, count = target.unit_counts, target.effective_count
    for name in value:
        metric = metrics[name]
        parts = _mean_variance(known, name, target)
        by_stratum[name] = _per_row(parts, target)
        factors = FIXED if fixed else metric.factors
        room = 0.0 if rooms is None else rooms[name]
        spread = standard_errors(float(parts.sum()), room, counts, factors, float(metric.share))
        if errors is not None and name in errors:
            spread = (max(spread[0], errors[name]), max(spread[1], errors[name]))
        error[name] = max(spread)
        few = count < FEWEST
        if not fixed and metric.fewest_errors:  # what another model has cannot be told where this is near 0
            few = few or value[name] < metric.fewest_errors * np.sqrt(parts.sum())
        ends[name] = NO_ENDS if few else interval_ends(metric.scale, value[name], spread, count, level)
    scale = {name: metrics[name].scale for name in value}
    return Scores(value, *_split(ends), error, level, by_stratum, counts, scale, count)


def score_difference(
    target: Target,
    ours: Sequence[Pass],
    theirs: Sequence[Pass],
    level: float = 0.95,
    factors: Mapping[str, Factors] | None = None,
) -> Scores:
    """Each score of one method less that of another on the same rows, folds by folds.

    `factors` of the standard errors are those of each metric where none are given.
    """
    first, second = ([target.scores(one_pass) for one_pass in passes] for passes in (ours, theirs))
    known = [
        {name: Score(a[name].value - b[name].value, a[name].influence - b[name].influence) for name in a if name in b}
        for a, b in zip(first, second, strict=True)
    ]
    rooms = [target.rooms(_means(each)) for each in (first, second)]
    metrics, counts, value, count = target.metrics, target.unit_counts, _means(known), target.effective_count
    error, by_stratum = dict[str, float](), dict[str, tuple[float, ...]]()
    ends: dict[str, tuple[float, float]] = {}
    reach = float(stats.t.ppf(0.5 + level / 2, max(count - 1, 1)))
    for name in value:
        parts, ours_parts, theirs_parts = (_mean_variance(each, name, target) for each in (known, first, second))
        likeness = distance_of_methods(float(parts.sum()), float(ours_parts.sum()), float(theirs_parts.sum()))
        room = max(each[name] for each in rooms) * likeness
        by_factor = metrics[name].difference if factors is None else factors.get(name, OTHERS)
        least = float(metrics[name].share) * (1.0 if factors is None else SWAP_LEAST)
        spread = standard_errors(float(parts.sum()), room, counts, by_factor, least)
        error[name], by_stratum[name] = max(spread), _per_row(parts, target)
        ends[name] = NO_ENDS if count < FEWEST else (value[name] - reach * spread[0], value[name] + reach * spread[1])
    return Scores(value, *_split(ends), error, level, by_stratum, counts, dict.fromkeys(value, "plain"), count)


def point_scores(target: Target, predictions: Pass) -> dict[str, float]:
    """The scores of one pass over some rows; none where these rows cannot tell."""
    return {name: score.value for name, score in target.scores(predictions).items()}


def distance_of_methods(difference: float, first: float, second: float) -> float:
    """How far two methods differ in their predictions, from variances: 0 where they are alike, at most 1.

    Two methods that predict alike have the same training rows in common, which then do not widen their difference.
    """
    return float(min(1.0, np.sqrt(2.0 * difference / max(first + second, 1e-300))))


def standard_errors(
    variance: float, room: float, counts: Sequence[int], factors: Factors, least: float = 1.0
) -> tuple[float, float]:
    """Standard errors below and above a value from the variance of a pass.

    A share without an error still varies, as if half an error had been made in each stratum; `least` is a factor on the
    variance of that.
    """
    half_error = float(np.mean([0.5 / (count + 1) ** 2 for count in counts]) / len(counts))
    variance, (below, above, more_below, more_above) = max(variance, least * half_error), factors
    return (
        float(np.sqrt(below**2 * variance + (more_below * room) ** 2)),
        float(np.sqrt(above**2 * variance + (more_above * room) ** 2)),
    )


def interval_ends(
    scale: str, value: float, errors: tuple[float, float], count: int, level: float
) -> tuple[float, float]:
    """The interval: symmetric on its scale, as `ScoreInfo` names it; in the logit from half a pseudo-count.

    Where a value is above 1/2 its upper end is that without the pseudo-count if it is higher, and the other way round.
    """
    t = float(stats.t.ppf(0.5 + level / 2, max(count - 1, 1)))
    if scale == "log":
        unit = max(value, 1e-9)
        return float(unit * np.exp(-t * errors[0] / unit)), float(min(unit * np.exp(t * errors[1] / unit), 1.0))
    if scale in SCALES:
        forward, back, slope, (least, most) = SCALES[scale]
        inside = min(max(value, least), most)
        ends = [float(back(forward(inside) + side * t * slope(inside))) for side in (-errors[0], errors[1])]
        return min(ends[0], value), max(ends[1], value)
    spans = []
    for middle in ((value * count + 0.5) / (count + 1), min(max(value, 1e-9), 1 - 1e-9)):
        reach = t / (middle * (1 - middle))
        spans.append(special.expit(special.logit(middle) + np.array([-reach * errors[0], reach * errors[1]])))
    (low, high), plain = spans
    low, high = min(low, plain[0]) if value < 0.5 else low, max(high, plain[1]) if value > 0.5 else high
    return float(min(low, value)), float(max(high, value))


def _means(passes: Sequence[Mapping[str, Score]]) -> dict[str, float]:
    """The mean over the passes of each score that all of them have."""
    names = [name for name in passes[0] if all(name in known for known in passes)]
    return {name: float(np.mean([known[name].value for known in passes])) for name in names}


def _mean_variance(passes: Sequence[Mapping[str, Score]], name: str, target: Target) -> Array:
    """(strata,) what each stratum adds to the variance of a pass, the mean over passes."""
    return np.asarray(np.mean([_variance(known[name].influence, target) for known in passes], axis=0))


def _variance(influence: Array, target: Target) -> Array:
    """(strata,) what each stratum adds to the variance of a pass; rows of a group vary together."""
    strata, groups = target.strata, target.groups
    known = np.unique(strata)
    if groups is not None:
        total = np.bincount(groups, weights=influence)
        count = len(np.unique(groups))
        return np.full(len(known), float(total @ total) * count / max(count - 1, 1) / len(known))
    sides = [influence[strata == code] for code in known]
    return np.array([float(side @ side) * len(side) / max(len(side) - 1, 1) for side in sides])


def _per_row(parts: Array, target: Target) -> tuple[float, ...]:
    """For each stratum the variance that it adds times its rows."""
    rows = np.unique(target.strata, return_counts=True)[1]
    return tuple(float(part * count) for part, count in zip(parts, rows, strict=True))


def _split(ends: Mapping[str, tuple[float, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """Lower and upper ends by name."""
    return {name: low for name, (low, _) in ends.items()}, {name: high for name, (_, high) in ends.items()}


# -- stability of feature sets ----------------------------------------------------------------------------------------

FEWEST_FOR_INTERVAL = 5  # sets; coverage was not measured with fewer


@dataclass(frozen=True)
class Stability:
    """Nogueira's measure: 1 = always the same set, 0 = as expected of random sets of these sizes.

    `low` and `high` are nan for fewer than 5 sets, and
        where all are equal. They take the sets as independent; cross-validation folds share
    rows, so the interval is too narrow for them.
    """

    value: float
    low: float
    high: float
    sets: int


def as_matrix(sets: Iterable[IntArray | Sequence[int]], n_features: int) -> Array:
    """(M, d) of 0 and 1 from lists of feature numbers."""
    rows = [np.asarray(members, dtype=np.intp) for members in sets]
    Z = np.zeros((len(rows), n_features))
    for i, members in enumerate(rows):
        if len(members) and (members.min() < 0 or members.max() >= n_features):
            raise InputError(f"set {i} names a feature outside 0..{n_features - 1}")
        Z[i, members] = 1.0
    if len(Z) < 2:
        raise InputError(f"{len(Z)} feature sets were given; stability needs at least 2")
    return Z


def nogueira(sets: Iterable[IntArray | Sequence[int]], n_features: int, level: float = 0.95) -> Stability:
    """1 - mean_f [M/(M-1) p_f (1 - p_f)] / [(kbar/d)(1 - kbar/d)], with an interval for more sets of the same kind.

    p_f is the share of the M sets with feature f, kbar their mean size. 1 means always the same set, 0 what is expected
    of random sets of these sizes. The interval is by the jackknife over sets: for 5 to 30 independent sets of seven
    simulated kinds it covered .94 to .98, the large-sample one of the reference .74 to .95.

    Parameters
    ----------
    sets : iterable of array of int
        Feature numbers of each set, two sets or more.
    n_features : int
        Number of features d that the sets are chosen from.
    level : float, default=0.95
        Level of the interval.

    Returns
    -------
    Stability
        `value`, `low`, `high` and `sets`, the number of sets; `low` and `high` are nan for fewer than 5 sets, and
        where all are equal.

    References
    ----------
    Nogueira, Sechidis and Brown, On the stability of feature selection algorithms, Journal of Machine Learning Research
    18 (2018) 1-54.

    Examples
    --------
    >>> from marginsieve.engine import nogueira
    >>> round(float(nogueira([[0, 1], [0, 1], [0, 2]], n_features=5).value), 3)
    0.444
    """
    Z = as_matrix(sets, n_features)
    M, d = Z.shape
    k, p = Z.sum(axis=1), Z.mean(axis=0)
    share = k.mean() / d
    if share in (0.0, 1.0):
        return Stability(float("nan"), float("nan"), float("nan"), M)
    phi = 1 - M / (M - 1) * float(np.mean(p * (1 - p))) / (share * (1 - share))
    rest = (Z.sum(axis=0) - Z) / (M - 1)  # (M, d) the shares without each set
    share = rest.mean(axis=1)
    with np.errstate(all="ignore"):  # all other sets may be empty
        without = 1 - (M - 1) / max(M - 2, 1) * np.mean(rest * (1 - rest), axis=1) / (share * (1 - share))
    reach = float(stats.t.ppf(0.5 + level / 2, M - 1) * np.sqrt((M - 1) * np.var(without)))
    if M < FEWEST_FOR_INTERVAL or not reach > 0:  # equal sets do not say how far others may differ
        return Stability(phi, float("nan"), float("nan"), M)
    return Stability(phi, phi - reach, min(phi + reach, 1.0), M)


def kuncheva(sets: Iterable[IntArray | Sequence[int]], n_features: int) -> float:
    """Mean over pairs of ``(|A and B| - k^2/d) / (k - k^2/d)``; all sets must have the same size k.

    Parameters
    ----------
    sets : iterable of array of int
        Feature numbers of each set, two sets or more.
    n_features : int
        Number of features d that the sets are chosen from.

    Returns
    -------
    float
        Kuncheva's index.

    Examples
    --------
    >>> from marginsieve.engine import kuncheva
    >>> round(kuncheva([[0, 1], [0, 1], [0, 2]], n_features=5), 3)
    0.444
    """
    Z = as_matrix(sets, n_features)
    sizes = np.unique(Z.sum(axis=1))
    if len(sizes) > 1:
        raise InputError(
            f"Kuncheva's index needs sets of one size; these have {int(sizes[0])} to {int(sizes[-1])} features: "
            "use nogueira, which equals it at one size"
        )
    k, d = float(sizes[0]), n_features
    if k in (0.0, float(d)):
        return float("nan")
    common = (Z @ Z.T)[np.triu_indices(len(Z), 1)]
    return float(np.mean((common - k * k / d) / (k - k * k / d)))


def jaccard(sets: Iterable[IntArray | Sequence[int]], n_features: int) -> float:
    """Mean over pairs of ``|A and B| / |A or B|``; two empty sets count as equal.

    Parameters
    ----------
    sets : iterable of array of int
        Feature numbers of each set, two sets or more.
    n_features : int
        Number of features d that the sets are chosen from.

    Returns
    -------
    float
        The mean Jaccard index.

    Examples
    --------
    >>> from marginsieve.engine import jaccard
    >>> round(jaccard([[0, 1], [0, 1], [0, 2]], n_features=5), 3)
    0.556
    """
    Z = as_matrix(sets, n_features)
    first, second = np.triu_indices(len(Z), 1)
    common, k = (Z @ Z.T)[first, second], Z.sum(axis=1)
    union = k[first] + k[second] - common
    return float(np.mean(np.where(union > 0, common / np.where(union > 0, union, 1.0), 1.0)))
