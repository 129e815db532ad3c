"""Numbers as an outcome: what is predicted is a value, with an interval; scores are shares of explained variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import optimize, stats
from sklearn.utils import RegressorTags

from ..contracts import VALUES, Array, IntArray, MachineTarget, Predictions, Score, ScoreInfo, Search, Words
from ..errors import InputError, truth_value
from .target import Target, read_column, read_groups, read_weight
from .value_effects import describe_with_values

if TYPE_CHECKING:
    import pandas as pd

COVERED = 0.9  # share of new rows that an interval of a prediction is to hold
POINTS = 500  # of a picture, at most
LEAST_SHARE = 1e-9  # of a view among several
ROOM_ROWS = 100.0  # of the tables on which the additions to intervals were measured
SUM_WEIGHT = 1e5  # of the equation that shares sum to 1

# Factors of intervals were measured on simulated tables: benchmarks/outcomes.md. Above is more than below (of errors
# the other way round), since models on a part of the rows score lower than the one on all.
ERRORS = (2.2, 1.3, 0.0, 0.0)
NUMBER_METRICS = {
    "r2": ScoreInfo(
        "R2", chance=0.0, compared=True, listed=True, scale="complement", factors=(1.6, 2.0, 0.0, 0.18), share=False
    ),
    "rank_correlation": ScoreInfo(
        "rank correlation",
        chance=0.0,
        compared=True,
        scale="correlation",
        factors=(1.35, 1.6, 0.0, 0.12),
        share=False,
    ),
    "rmse": ScoreInfo("RMSE", scale="size", factors=ERRORS, share=False, higher_is_better=False),
    "mae": ScoreInfo("mean absolute error", scale="size", factors=ERRORS, share=False, higher_is_better=False),
}


@dataclass(frozen=True)
class Numbers:
    """Numbers as an outcome, and what a selector is set to about them.

    Parameters
    ----------
    probability : bool, default=False
        Make an interval for each prediction, from the errors on held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import Numbers
    >>> target = Numbers().read(np.zeros((3, 1)), [1.0, 2.5, 4.0])
    >>> target.machine_target.kind, target.machine_target.y
    ('values', array([[1. , 2.5, 4. ]]))
    """

    probability: bool = False

    name: ClassVar[str] = "numbers"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Numbers:
        """What parameters, of a selector or a study, say of numbers; other parameters are passed over."""
        return cls(settings.get("probability", False))

    def read(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> NumberTarget:
        """Read the numbers of the rows of X; missing and infinite ones are refused, and what is not a number.

        Parameters
        ----------
        X : table of shape (m, n)
            The rows; only their number is used.
        y : array-like of shape (m,)
            The numbers.
        sample_weight : array-like of shape (m,) or None, default=None
            Weight of each row; None is 1.
        groups : array-like of shape (m,) or None, default=None
            Group of each row.

        Returns
        -------
        NumberTarget
            Numbers, weights and groups.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve.outcomes import Numbers
        >>> Numbers().read(np.zeros((2, 1)), [3, 4]).values
        array([3., 4.])
        """
        values = read_numbers(X, y, "y")
        return NumberTarget(read_weight(sample_weight, len(values)), read_groups(groups, values), values, self)

    def check(self) -> None:
        """Refuse settings that make no sense whatever the rows."""
        truth_value("selector", "probability", self.probability)

    def tag(self, tags: Any) -> None:
        """A regressor."""
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = "regressor", None, RegressorTags()


def read_numbers(X: Any, y: Any, name: str) -> Array:
    """(m,) one finite number for each row of X; anything else is refused with a sentence."""
    y = read_column(X, y, name, "values")
    if y.dtype.kind in "MmcV":
        raise InputError(f"{name} holds {y.dtype}: an outcome of numbers has real numbers; make numbers of it first")
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        shown = next(value for value in y.tolist() if not _is_number(value))
        raise InputError(
            f"{name} holds {shown!r}: an outcome of numbers has real numbers; for classes use outcome='classes'"
        ) from None
    if not np.isfinite(values).all():
        raise InputError(f"Input {name} contains infinity: {int(np.isinf(values).sum())} of {len(y)} values")
    return values


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class NumberTarget(Target):
    """Rows of numbers, with weights and groups.

    Parameters
    ----------
    weight : array of shape (m,)
        Weight of each row.
    groups : array of int of shape (m,) or None
        Group of each row, as a code.
    values : array of shape (m,)
        The numbers.
    outcome : Numbers, default=Numbers()
        What is set about them.
    centre, variance : float or None, default=None
        Mean and variance of the rows of a fit, by which its held-out rows are scored; `settle` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import NumberTarget
    >>> target = NumberTarget(np.ones(3), None, np.array([1.0, 2.0, 6.0]))
    >>> target.take(np.array([0, 2])).values
    array([1., 6.])
    """

    values: Array
    outcome: Numbers = field(default_factory=Numbers)
    centre: float | None = None
    variance: float | None = None

    outcome_name: ClassVar[str] = Numbers.name

    # -- rows -----------------------------------------------------------------------------------------------------

    def take(self, rows: IntArray) -> Self:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, weight=self.weight[rows], groups=groups, values=self.values[rows])

    def settle(self, outcome: Numbers) -> Self:
        """With these settings, and with the mean and the variance of these rows."""
        centre, variance = self._moments()
        return replace(self, outcome=outcome, centre=centre, variance=variance)

    def with_settings(self, outcome: Numbers) -> Self:
        """The same rows with other settings, their scores as they were settled."""
        return self.settle(outcome) if self.variance is None else replace(self, outcome=outcome)

    def _moments(self) -> tuple[float, float]:
        weight = self.weight if self.weight.any() else np.ones(len(self))
        centre = float(np.average(self.values, weights=weight))
        return centre, float(np.average((self.values - centre) ** 2, weights=weight))

    def refuse(self, search: Search | None = None) -> None:  # noqa: ARG002
        """Refuse numbers that are all the same."""
        known = self.values[self.weight > 0]
        if len(known) < 2:
            raise InputError(f"y has {len(known)} sample{'' if len(known) == 1 else 's'}: at least 2 are needed")
        if not np.ptp(known) > 0:
            raise InputError(f"y is {known[0]:g} in every row: there is nothing to predict")

    @property
    def identity(self) -> tuple[list[Any], Any]:
        """The outcome's name, and the numbers."""
        return [Numbers.name], self.values

    @property
    def store_row(self) -> dict[str, Any]:
        """What a store keeps: the numbers."""
        return {"classes": None, "positive": None, "truth": self.values.tolist()}

    # -- machines -------------------------------------------------------------------------------------------------

    @property
    def machine_target(self) -> MachineTarget:
        """The numbers, with the weights as costs."""
        return MachineTarget(VALUES, self.values[None], self.weight[None])

    # -- inner scores and decisions -----------------------------------------------------------------------------------

    @property
    def scored_by(self) -> str:
        """Name of the score by which inner folds choose."""
        return "R2"

    def score_values(self, values: Array) -> Array:
        """(S,): 1 - mean squared error / variance of values (S, m, k), the variance that of all rows of the fit.

        Folds share the variance, so that their mean is 1 - SSE / SST over all of them.
        """
        variance = self._moments()[1] if self.variance is None else self.variance
        errors = (values[:, :, 0] - self.values) ** 2 @ (self.weight / self.weight.sum())
        return np.asarray(1.0 - errors / (variance or 1.0))

    @property
    def needs_held_out(self) -> bool:
        """Whether intervals are made from the errors on held-out rows."""
        return self.outcome.probability

    def decide(self, held: Array | None, rows: IntArray, weight: Array) -> NumberDecision:
        """The interval of predictions, from values (rows, 1) of held-out rows."""
        if held is None or not self.outcome.probability:
            return NumberDecision()
        return NumberDecision(error_interval(self.values[rows] - held[:, 0], weight, len(np.unique(rows))))

    def scales(self, values: Sequence[Array], rows: IntArray, weight: Array) -> tuple[Array, Array]:
        """(v, 1), (v, 1): 0, and units by which the mean of the views has the smallest error on held-out rows."""
        errors = np.array([np.sqrt(weight) * (value[:, 0] - self.values[rows]) for value in values])
        share = np.maximum(shares_of_least_error(errors), LEAST_SHARE)
        return np.zeros((len(values), 1)), (share.sum() / (len(values) * share))[:, None]

    @property
    def list_score(self) -> str:
        """R2."""
        return "r2"

    def constant_entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The mean of the numbers in every row."""
        return {**entry, "predicted": [float(self.values.mean())] * len(entry["predicted"])}

    def fold_advice(self, folds: int) -> str | None:
        """Why so many outer folds cannot be made of these rows."""
        units = self.unit_counts[0]
        if units >= max(folds, 3) + 1:
            return None
        advice = "a study needs at least 4" if units < 4 else f"it takes {units - 1} outer folds, not {folds}"
        return f"has {units} {'rows' if self.groups is None else 'groups of rows'}: {advice}"

    # -- predictions and their scores -------------------------------------------------------------------------------

    def entry(self, decision: NumberDecision, raw: Array) -> dict[str, Any]:  # type: ignore[override]
        """The predicted numbers."""
        predicted = decision.predict(decision.values(raw))
        if not np.isfinite(predicted).all():
            raise ValueError("the predictions are not all finite")
        return {"predicted": predicted.tolist()}

    def entry_of(self, estimator: Any, rows: Any) -> dict[str, Any]:
        """The same of a regressor of any kind."""
        return {"predicted": np.asarray(estimator.predict(rows), dtype=np.float64)}

    @property
    def metrics(self) -> Mapping[str, ScoreInfo]:
        """R2 first, and the rank correlation; errors in the units of the outcome."""
        return NUMBER_METRICS

    def scores(self, predictions: Predictions) -> dict[str, Score]:
        """Each score of a pass over these rows, linearised in them."""
        return linearise_errors(self.values, np.asarray(predictions.predicted, dtype=np.float64), predictions.fold)

    def rooms(self, values: Mapping[str, float]) -> dict[str, float]:
        """For R2 and the rank correlation 4 u (1 - u) 100 / rows, u the score from 0 to 1.

        What a fifth of the rows more is worth falls as one over their number.
        """
        level = {name: float(np.clip(values[name], 0.0, 1.0)) for name in ("r2", "rank_correlation")}
        share = ROOM_ROWS / self.unit_counts[0]
        return dict.fromkeys(values, 0.0) | {name: 4.0 * u * (1.0 - u) * share for name, u in level.items()}

    # -- words --------------------------------------------------------------------------------------------------------

    @property
    def words(self) -> Words:
        """How many numbers, and between which."""
        low, high = self.values.min(), self.values.max()
        return Words(
            f"{len(self)} numbers from {low:.6g} to {high:.6g}",
            "together predict {target}",
            "predicts {target}",
            decision="an interval for each prediction comes from errors on inner folds in which the selection was run "
            "anew",
        )

    def describe(self) -> dict[str, Any]:
        """Range, mean and spread."""
        quantiles = dict(zip(("low", "median", "high"), np.quantile(self.values, [0.0, 0.5, 1.0]), strict=True))
        spread = float(self.values.std(ddof=1)) if len(self) > 1 else 0.0
        return {"numbers": {**quantiles, "mean": float(self.values.mean()), "deviation": spread}}

    @property
    def observed(self) -> Any:
        """(m,) the numbers."""
        return self.values

    def effect(self, column: pd.Series, kind: str) -> dict[str, Any]:
        """Correlation or share of variance with its interval, direction, and values by thirds of the outcome."""
        return describe_with_values(column, kind, self.values)

    def pictures(self, predicted: Any, decision: Array | None, probability: Array | None) -> dict[str, Any]:  # noqa: ARG002
        """Predicted against observed numbers, the mean over the repeats."""
        mean = np.asarray(predicted, dtype=np.float64).mean(axis=0)
        rows = np.arange(len(mean))
        if len(rows) > POINTS:  # evenly through the observed numbers
            rows = np.argsort(self.values, kind="stable")[np.linspace(0, len(mean) - 1, POINTS).astype(np.intp)]
        points = {"observed": self.values[rows].tolist(), "predicted": mean[rows].tolist()}
        return {"curves": {"agreement": points}, "confusion": None}


def shares_of_least_error(errors: Array) -> Array:
    """(v,) shares of 0 or more, of sum 1, whose mean of the errors (v, rows) has the smallest sum of squares."""
    size = float(np.sqrt((errors**2).sum(axis=1).max(initial=0.0)))
    if size <= 0:
        return np.full(len(errors), 1.0 / len(errors))
    # the sum is one more equation, of so large a weight that it holds
    equations = np.vstack([errors.T / size, np.full((1, len(errors)), SUM_WEIGHT)])
    share, _ = optimize.nnls(equations, np.append(np.zeros(errors.shape[1]), SUM_WEIGHT))
    return np.asarray(share / share.sum())


def error_interval(errors: Array, weight: Array, count: int) -> tuple[float, float]:
    """What is added to a prediction for the ends of an interval that holds 90 % of new rows.

    The quantiles of errors of `count` held-out rows, at the places (count + 1) (1 -+ 0.9) / 2, as a further row would
    take each place among them with equal probability; the outermost errors where there are fewer than 19.
    """
    order = np.argsort(errors, kind="stable")
    middle = (np.cumsum(weight[order]) - 0.5 * weight[order]) / weight.sum()
    tail = 0.5 * (1.0 - COVERED) * (count + 1)  # of the places 1 to count
    ends = np.clip(np.array([tail, count + 1 - tail]) - 0.5, 0.5, count - 0.5) / count
    low, high = np.interp(ends, middle, errors[order])
    return float(low), float(high)


@dataclass(frozen=True)
class NumberDecision:
    """The machines' value is the prediction; an interval around it holds 90 % of new rows.

    Parameters
    ----------
    interval : (float, float) or None, default=None
        What is added to a prediction for the lower and for the upper end.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import NumberDecision
    >>> NumberDecision((-1.0, 2.0)).columns(np.array([5.0]))
    {'predicted': array([5.]), 'low': array([4.]), 'high': array([7.])}
    """

    interval: tuple[float, float] | None = None

    def values(self, raw: Array) -> Array:
        """(rows,) the predictions."""
        return np.asarray(raw[:, 0])

    def predict(self, values: Array) -> Any:
        """(rows,) the predictions."""
        return values

    def columns(self, values: Array) -> dict[str, Any]:
        """The prediction, and the ends of its interval where there is one."""
        out = {"predicted": values}
        if self.interval is not None:
            out |= {"low": values + self.interval[0], "high": values + self.interval[1]}
        return out

    def at_margin(self) -> NumberDecision:
        """The same without an interval."""
        return NumberDecision()

    def attributes(self) -> dict[str, Any]:
        """Attributes of the fitted selector."""
        return {"interval_": self.interval}

    @classmethod
    def from_attributes(cls, selector: Any) -> NumberDecision:
        """The decision of a selector that has these attributes."""
        return cls(getattr(selector, "interval_", None))


# -- scores, linearised -----------------------------------------------------------------------------------------------


def linearise_errors(truth: Array, predicted: Array, fold: IntArray | None) -> dict[str, Score]:
    """R2, rank correlation, RMSE and mean absolute error, and what each row adds to them (m,), of mean 0.

    R2 = 1 - SSE / SST, SST around the mean of the rows of the other folds, which is what a model that knows no column
    predicts. Ranks are compared within a fold, since the mean of the training rows is lower where that of the fold is
    higher; of all rows where there is one fold.
    """
    m = len(truth)
    parts = [np.arange(m)] if fold is None else [np.flatnonzero(fold == k) for k in np.unique(fold)]
    wrong, away = (truth - predicted) ** 2, np.empty(m)
    for rows in parts:
        rest = m - len(rows)
        mean = (truth.sum() - truth[rows].sum()) / rest if rest else truth.mean()
        away[rows] = (truth[rows] - mean) ** 2
    ratio = float(wrong.sum() / away.sum()) if away.any() else float("nan")
    root, size = float(np.sqrt(wrong.mean())), np.abs(truth - predicted)
    return {
        "r2": Score(1.0 - ratio, (ratio * away - wrong) / max(float(away.sum()), 1e-300)),
        "rank_correlation": _rank_correlation(truth, predicted, [rows for rows in parts if len(rows) > 2]),
        "rmse": Score(root, (wrong - wrong.mean()) / (2 * max(root, 1e-300) * m)),
        "mae": Score(float(size.mean()), (size - size.mean()) / m),
    }


def _rank_correlation(truth: Array, predicted: Array, parts: Sequence[IntArray]) -> Score:
    """Spearman's correlation within each part, the mean over their rows."""
    influence, total, count = np.zeros(len(truth)), 0.0, 0
    for rows in parts or [np.arange(len(truth))]:
        value, added = spearman(truth[rows], predicted[rows])
        total, count = total + len(rows) * value, count + len(rows)
        influence[rows] = len(rows) * added
    influence /= count
    return Score(total / count, influence - influence.mean())


def spearman(x: Array, y: Array) -> tuple[float, Array]:
    """Spearman's correlation, and what each row adds to it: by its own place and by those that it moves.

    0 where one side is the same in every row.
    """
    m = len(x)
    ranks = [(stats.rankdata(values) - 0.5 * (m + 1)) / m for values in (x, y)]
    spread = [float(np.sqrt(rank @ rank / m)) for rank in ranks]
    if min(spread) <= 0:
        return 0.0, np.zeros(m)
    value = float(ranks[0] @ ranks[1] / m / (spread[0] * spread[1]))
    product, squares = ranks[0] * ranks[1], []
    for values, others in ((x, ranks[1]), (y, ranks[0])):
        product = product + _places_moved(values, others)
    for values, rank in zip((x, y), ranks, strict=True):
        square = rank**2 + 2.0 * _places_moved(values, rank)
        squares.append((square - square.mean()) / (2.0 * spread[0 if values is x else 1] ** 2))
    added = (product - product.mean()) / (spread[0] * spread[1]) - value * (squares[0] + squares[1])
    return value, added / m


def _places_moved(values: Array, others: Array) -> Array:
    """(m,): the mean over rows of `others` times whether the row is above, half where it is equal: what a row of this
    value adds to the product of ranks through the places of the others."""
    order = np.argsort(values, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(others[order])])
    below, upto = (np.searchsorted(values[order], values, side) for side in ("left", "right"))
    above = sums[-1] - sums[upto]
    return np.asarray((above + 0.5 * (sums[upto] - sums[below])) / len(values))
