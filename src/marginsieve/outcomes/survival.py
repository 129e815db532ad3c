"""Times to an event that need not have been seen: what is predicted is a risk, and the chance of no event by a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import RegressorTags

from ..contracts import (
    TIMES,
    Array,
    BoolArray,
    IntArray,
    MachineTarget,
    Predictions,
    Score,
    ScoreInfo,
    Search,
    Words,
)
from ..data.table import as_frame
from ..errors import InputError, many, positive_number, shown_value, truth_value
from ..solvers.cox import BaselineHazard, RiskSets, fit_cox
from .survival_scores import (
    brier_at,
    calibration_at,
    concordance,
    draw_calibration,
    draw_thirds,
    horizon_auc,
    pooled_concordance,
    unos_concordance,
)
from .target import FoldLimit, Target, read_groups, read_weight, unit_name
from .value_effects import describe_with_values
from .values import read_numbers

if TYPE_CHECKING:
    import pandas as pd

FEWEST_EVENTS = 2
FEW_CENSORED = 10  # rows without an event below which folds are not stratified by it

SURVIVAL_METRICS = {
    "c": ScoreInfo("Harrell's C", chance=0.5, short="C", compared=True, listed=True, share=False),
    "uno_c": ScoreInfo("Uno's C", chance=0.5, compared=True, share=False),
    "auc_at": ScoreInfo("AUC at the horizon", chance=0.5, share=False),
    "brier_at": ScoreInfo("Brier score at the horizon", scale="log", share=False, higher_is_better=False),
    "calibration_slope_at": ScoreInfo("calibration slope at the horizon", scale="plain", share=False),
    "calibration_intercept_at": ScoreInfo("calibration intercept at the horizon", scale="plain", share=False),
}


@dataclass(frozen=True)
class Survival:
    """Times to an event as an outcome, and what a selector is set to about them.

    Parameters
    ----------
    probability : bool, default=False
        Estimate the baseline hazard, for survival curves and median times, from the risks of held-out rows.
    horizon : float or None, default=None
        Time at which AUC and Brier score are computed and survival is predicted; None is none.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import Survival
    >>> target = Survival().read(np.zeros((3, 1)), np.array([[5.0, 1], [2.0, 0], [9.0, 1]]))
    >>> target.time, target.event
    (array([5., 2., 9.]), array([ True, False,  True]))
    >>> target.machine_target.y
    array([[ 2., -1.,  3.]])
    """

    probability: bool = False
    horizon: float | None = None

    name: ClassVar[str] = "survival"

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Survival:
        """What parameters, of a selector or a study, say of times; other parameters are passed over."""
        return cls(settings.get("probability", False), settings.get("horizon"))

    def read(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> SurvivalTarget:
        """Read the times and events of the rows of X.

        Parameters
        ----------
        X : table of shape (m, n)
            The rows; only their number is used.
        y : structured array of shape (m,), or table or array of shape (m, 2)
            The time and whether the event was seen: a structured array of a boolean and a number, in any order (as
            scikit-survival has it); two columns, of which that of the event has 0 and 1 alone (of two such columns the
            second).
        sample_weight : array-like of shape (m,) or None, default=None
            Weight of each row; None is 1.
        groups : array-like of shape (m,) or None, default=None
            Group of each row.

        Returns
        -------
        SurvivalTarget
            Times, events, weights and groups.

        Examples
        --------
        >>> import numpy as np
        >>> from marginsieve.outcomes import Survival
        >>> y = np.array([(True, 5.0), (False, 2.0)], dtype=[("event", bool), ("time", float)])
        >>> Survival().read(np.zeros((2, 1)), y).time
        array([5., 2.])
        """
        time, event = read_times(X, y)
        return SurvivalTarget(read_weight(sample_weight, len(time)), read_groups(groups, time), time, event, self)

    def check(self) -> None:
        """Refuse settings that make no sense whatever the rows."""
        truth_value("selector", "probability", self.probability)
        if self.horizon is not None:
            positive_number("selector", "horizon", self.horizon)

    def tag(self, tags: Any) -> None:
        """A regressor, of the risk."""
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = "regressor", None, RegressorTags()


def read_times(X: Any, y: Any) -> tuple[Array, BoolArray]:
    """(m,) times and (m,) events; anything else than two columns, or two fields, is refused."""
    columns = _two_columns(y)
    if columns is None:
        raise InputError(
            f"y is {shown_value(y)}; times to an event are a structured array of an event and a time, or a table of "
            "two columns, the time and the event"
        )
    values = [read_numbers(X, column, "y") for column in columns]
    place = [k for k, column in enumerate(values) if np.isin(column, (0.0, 1.0)).all()]
    if not place:
        raise InputError("y has no column of events: one of the two holds 0 (not seen) and 1 (seen) alone")
    event = place[-1]
    return values[1 - event], values[event] == 1.0


def holds_times(y: Any, outcome: Any) -> bool:
    """Whether y has two columns where the outcome is survival, one of them events where it is to be guessed."""
    known = getattr(outcome, "name", outcome)
    if known not in (Survival.name, "auto") or hasattr(y, "cat") or (columns := _two_columns(y)) is None:
        return False
    return known == Survival.name or any(map(_holds_events, columns))


def _holds_events(column: Any) -> bool:
    """Whether all values are 0 or 1."""
    try:
        return bool(np.isin(np.asarray(column, dtype=np.float64), (0.0, 1.0)).all())
    except (TypeError, ValueError):
        return False


def _two_columns(y: Any) -> list[Any] | None:
    """The two fields of a structured array, or the two columns of a table or array; None where there are others."""
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.names is not None:
        return [y[name] for name in dtype.names] if len(dtype.names) == 2 else None
    if (frame := as_frame(y)) is not None:
        if frame.shape[1] != 2:
            return None
        return [frame[:, k].to_numpy() for k in range(2)]
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return [values[:, 0], values[:, 1]] if values.ndim == 2 and values.shape[1] == 2 else None


@dataclass(frozen=True)
class SurvivalTarget(Target):
    """Rows of times to an event, with weights and groups.

    Parameters
    ----------
    weight : array of shape (m,)
        Weight of each row.
    groups : array of int of shape (m,) or None
        Group of each row, as a code.
    time : array of shape (m,)
        Time of the event, or to which it had not come.
    event : array of bool of shape (m,)
        Whether the event was seen.
    outcome : Survival, default=Survival()
        What is set about them.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import SurvivalTarget
    >>> target = SurvivalTarget(np.ones(3), None, np.array([5.0, 2.0, 9.0]), np.array([True, False, True]))
    >>> target.association().shape, target.residuals.round(2)
    ((1, 3), array([ 0.5,  0. , -0.5]))
    """

    time: Array
    event: BoolArray
    outcome: Survival = field(default_factory=Survival)

    outcome_name: ClassVar[str] = Survival.name

    # -- rows -----------------------------------------------------------------------------------------------------

    def take(self, rows: IntArray) -> Self:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, weight=self.weight[rows], groups=groups, time=self.time[rows], event=self.event[rows])

    def settle(self, outcome: Survival) -> Self:
        """With these settings."""
        return replace(self, outcome=outcome)

    def with_settings(self, outcome: Survival) -> Self:
        """The same rows with other settings."""
        return replace(self, outcome=outcome)

    def refuse(self, search: Search | None = None) -> None:  # noqa: ARG002
        """Refuse rows without events, or whose times are all the same."""
        known = self.weight > 0
        if known.sum() < 2:
            raise InputError(f"y has {many(int(known.sum()), 'sample')}: at least 2 are needed")
        events = int((self.event & known).sum())
        if events < FEWEST_EVENTS:
            raise InputError(f"y has {many(events, 'event')}: at least {FEWEST_EVENTS} are needed")
        first = self.time[known & self.event].min()
        if not ((self.time[known] > first) | (~self.event[known] & (self.time[known] == first))).any():
            raise InputError("y has no two rows of which one is known to have lived longer: nothing can be predicted")

    @property
    def strata(self) -> IntArray:
        """(m,) whether the event was seen, where at least ten rows are without one."""
        few = (~self.event).sum() < FEW_CENSORED
        return np.zeros(len(self), dtype=np.intp) if few else self.event.astype(np.intp)

    @property
    def effective_count(self) -> int:
        """The number of events, or of groups with one."""
        return int(self.event.sum()) if self.groups is None else len(np.unique(self.groups[self.event]))

    @property
    def complete(self) -> bool:
        """Whether there are events."""
        return int(self.event.sum()) >= FEWEST_EVENTS

    @property
    def identity(self) -> tuple[list[Any], Any]:
        """The outcome's name, and the places in time with the sign of the event, then the times."""
        return [Survival.name, self.time.tolist()], self._places

    @property
    def store_row(self) -> dict[str, Any]:
        """What a store keeps: times and events."""
        truth = np.where(self.event, 1, 0).tolist()
        return {"classes": None, "positive": None, "truth": [self.time.tolist(), truth]}

    # -- machines -------------------------------------------------------------------------------------------------

    @property
    def _places(self) -> Array:
        """(m,) the place of each time among these rows, from 1, below 0 where no event was seen."""
        place = 1.0 + np.unique(self.time, return_inverse=True)[1]
        return np.asarray(np.where(self.event, place, -place))

    @property
    def machine_target(self) -> MachineTarget:
        """Places in time, which are all that partial likelihoods look at, with the weights as costs."""
        return MachineTarget(TIMES, self._places[None], self.weight[None])

    @property
    def sets(self) -> RiskSets:
        """Who is at risk when."""
        return RiskSets(self.time, self.event, self.weight)

    @property
    def residuals(self) -> Array:
        """(m,) martingale residuals of no effect: events less the Nelson-Aalen hazard that all rows share."""
        return self.sets.martingale(np.zeros(len(self)))

    @property
    def linear_outcome(self) -> Array:
        """(1, m) the martingale residuals."""
        return self.residuals[None]

    # -- inner scores and decisions -----------------------------------------------------------------------------------

    @property
    def scored_by(self) -> str:
        """Name of the score by which inner folds choose."""
        return "Harrell's C"

    def score_values(self, values: Array) -> Array:
        """(S,): Harrell's C of values (S, m, 1); nan where no two rows can be compared."""
        return np.array([concordance(self.time, self.event, value[:, 0], self.weight).value for value in values])

    @property
    def fold_mass(self) -> float:
        """A fold counts by its pairs that can be compared."""
        return concordance(self.time, self.event, np.zeros(len(self)), self.weight).total

    @property
    def needs_held_out(self) -> bool:
        """Whether the baseline hazard is estimated from the risks of held-out rows."""
        return self.outcome.probability

    def decide(self, held: Array | None, rows: IntArray, weight: Array) -> SurvivalDecision:
        """The slope of the risks and the baseline hazard, from values (rows, 1) of held-out rows."""
        plain = SurvivalDecision(horizon=self.outcome.horizon)
        if held is None or not self.outcome.probability:
            return plain
        sets = RiskSets(self.time[rows], self.event[rows], weight)
        value = held[:, 0] - weight @ held[:, 0] / weight.sum()
        spread = float(np.sqrt(weight @ value**2 / weight.sum()))
        slope = 0.0
        if spread > 0:  # a little penalty keeps the slope finite where the risks order all events
            slope = max(float(fit_cox(value[:, None] / spread, sets, 1e-3).weights[0]) / spread, 0.0)
        base = BaselineHazard.from_risk(sets, slope * value)
        centre = float(weight @ held[:, 0] / weight.sum())
        return replace(plain, times=base.time, hazard=base.hazard, slope=slope, centre=centre)

    @property
    def list_score(self) -> str:
        """Harrell's C."""
        return "c"

    def constant_entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The same risk in every row."""
        return {**entry, "predicted": [0.0] * len(entry["predicted"])}

    def fold_limit(self) -> FoldLimit:
        """One fold for each event, or group of them."""
        units = self.effective_count
        what = "events" if self.groups is None else f"{unit_name(self.groups)} with an event"
        return FoldLimit(units, f"the table has {units} {what}")

    def fold_advice(self, folds: int) -> str | None:
        """Why so many outer folds cannot be made of these rows."""
        limit = self.fold_limit()
        if limit.count >= max(2 * folds, 6):
            return None
        return f"has {limit.count} events: {folds} outer folds with inner ones need at least {max(2 * folds, 6)}"

    # -- predictions and their scores -------------------------------------------------------------------------------

    def entry(self, decision: SurvivalDecision, raw: Array) -> dict[str, Any]:  # type: ignore[override]
        """The risks, and the probability of an event by the horizon where there is one."""
        risk = decision.values(raw)
        if not np.isfinite(risk).all():
            raise ValueError("the risks are not all finite")
        out: dict[str, Any] = {"predicted": risk.tolist()}
        if decision.horizon is not None and decision.times is not None:
            out["probability"] = (1.0 - decision.survival(risk, decision.horizon)).tolist()
        return out

    def entry_of(self, estimator: Any, rows: Any) -> dict[str, Any]:
        """The same of an estimator of any kind whose `predict` returns risks."""
        return {"predicted": np.asarray(estimator.predict(rows), dtype=np.float64)}

    @property
    def metrics(self) -> Mapping[str, ScoreInfo]:
        """Harrell's C first; AUC, Brier score and calibration where there is a horizon."""
        return SURVIVAL_METRICS

    def scores(self, predictions: Predictions) -> dict[str, Score]:
        """Each score of a pass over these rows, linearised in them; what depends on censoring knows other folds'."""
        risk = np.asarray(predictions.predicted, dtype=np.float64)
        fold = np.zeros(len(self), dtype=np.intp) if predictions.fold is None else predictions.fold
        arguments = (self.time, self.event, risk, fold)
        out = {"c": pooled_concordance(*arguments, self.strata), "uno_c": unos_concordance(*arguments, self.strata)}
        if (horizon := self.outcome.horizon) is not None:
            if (score := horizon_auc(*arguments, horizon, self.strata)) is not None:
                out["auc_at"] = score
            if predictions.probability is not None:
                known = self.time, self.event, predictions.probability, fold, horizon, self.strata
                out |= {"brier_at": brier_at(*known), **calibration_at(*known)}
        return out

    # -- other cohorts ------------------------------------------------------------------------------------------------

    @property
    def forecast_by(self) -> str | None:
        """Harrell's C."""
        return "c"

    def forecast_variance(self, value: float, counts: Sequence[int]) -> float:
        """4/9 C (1 - C) / events.

        It is exact for risks without effect and complete times, where C is Kendall's coefficient of rank correlation
        moved to 0 to 1. Of simulated cohorts with C from .63 to .84 and 7 to 100 % events the variance was .30 to .44
        of C (1 - C) / events.
        """
        return 4.0 / 9.0 * value * (1.0 - value) / counts[0]

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """By whether the event was seen, where rows without one are a stratum."""
        return ("censored", "with the event") if self.strata.any() else super().stratum_names

    @property
    def scarce_rows(self) -> str:
        """Events."""
        return "events"

    @property
    def cohort_counts(self) -> tuple[int, ...]:
        """The number of events."""
        return (int(self.event.sum()),)

    def describe_counts(self, counts: Sequence[int]) -> str:
        """So many events."""
        return many(counts[0], "event")

    # -- words --------------------------------------------------------------------------------------------------------

    @property
    def words(self) -> Words:
        """How many events in how many rows."""
        rows = f"{int(self.event.sum())} events in {len(self)} rows, times from {self.time.min():.4g} to "
        return Words(
            rows + f"{self.time.max():.4g}",
            "together predict the time to {target}",
            "predicts the time to {target}",
            ranking="Of two samples of which one is known to have gone longer without the event, the other had the "
            "higher risk in {share} % of pairs ({score}).",
            decision="survival curves come from inner folds in which the selection was run anew",
        )

    def describe(self) -> dict[str, Any]:
        """Events, and the range of the times."""
        low, median, high = np.quantile(self.time, [0.0, 0.5, 1.0])
        times = {"low": low, "median": median, "high": high}
        return {"survival": {"events": int(self.event.sum()), "censored": int((~self.event).sum()), **times}}

    @property
    def observed(self) -> Any:
        """(m,) the times, below 0 where no event was seen (-0.0 of a time of 0)."""
        return np.where(self.event, self.time, -self.time)

    def effect(self, column: pd.Series, kind: str) -> dict[str, Any]:
        """Correlation with the martingale residuals, or share of their variance; values by thirds of them."""
        return describe_with_values(column, kind, self.residuals, "the risk")

    def pictures(self, predicted: Any, decision: Array | None, probability: Array | None) -> dict[str, Any]:  # noqa: ARG002
        """Kaplan-Meier curves by thirds of the predicted risk, the mean of its places over the repeats, and observed
        against predicted shares with the event by the horizon."""
        curves: dict[str, Any] = {"survival": draw_thirds(self.time, self.event, np.asarray(predicted))}
        if probability is not None and (horizon := self.outcome.horizon) is not None:
            curves["calibration"] = draw_calibration(self.time, self.event, np.asarray(probability), horizon)
            curves["horizon"] = horizon
        return {"curves": curves, "confusion": None}


@dataclass(frozen=True)
class SurvivalDecision:
    """The machines' value is the risk; with a baseline hazard it is a survival curve.

    Parameters
    ----------
    times, hazard : array of shape (k,) or None, default=None
        Times of events and the cumulative baseline hazard from each on, at the mean risk of held-out rows.
    slope : float, default=1.0
        What the logarithm of the hazard ratio grows by for a unit of risk, on held-out rows.
    centre : float, default=0.0
        The mean risk of held-out rows.
    horizon : float or None, default=None
        Time at which survival is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import SurvivalDecision
    >>> decision = SurvivalDecision(np.array([1.0, 2.0]), np.array([0.2, 1.0]), slope=1.0, horizon=1.0)
    >>> decision.survival(np.array([0.0]), 1.0).round(3), decision.median_time(np.array([0.0]))
    (array([0.819]), array([2.]))
    """

    times: Array | None = None
    hazard: Array | None = None
    slope: float = 1.0
    centre: float = 0.0
    horizon: float | None = None

    def values(self, raw: Array) -> Array:
        """(rows,) the risks."""
        return np.asarray(raw[:, 0])

    def predict(self, values: Array) -> Any:
        """(rows,) the risks."""
        return values

    def survival(self, values: Array, time: float) -> Array:
        """(rows,) the chance of no event up to a time."""
        return np.asarray(np.exp(-self.hazard_at(values, np.full(len(values), time))))

    def hazard_at(self, values: Array, time: Array) -> Array:
        """(rows,) the cumulative hazard of each row up to its time."""
        assert self.times is not None
        assert self.hazard is not None
        base = BaselineHazard(self.times, self.hazard).value_at(time)
        return np.asarray(base * np.exp(np.clip(self.slope * (values - self.centre), -500, 500)))

    def at_horizon(self, horizon: float) -> SurvivalDecision:
        """The same with survival up to another time; refuses what is none, or where there is no baseline hazard."""
        positive_number("predict", "horizon", horizon)
        if self.times is None:
            raise InputError("the model has no baseline hazard (probability=True): survival cannot be predicted")
        return replace(self, horizon=float(horizon))

    def median_time(self, values: Array) -> Array:
        """(rows,) the first time with a chance of at most one half; nan where none of the known times has that."""
        assert self.times is not None
        assert self.hazard is not None
        ratio = np.exp(np.clip(self.slope * (values - self.centre), -500, 500))
        place = np.searchsorted(self.hazard, np.log(2.0) / ratio - 1e-12)
        return np.asarray(np.append(self.times, np.nan)[place])

    def columns(self, values: Array) -> dict[str, Any]:
        """The risk, and where there is a baseline hazard the median time, and survival at the horizon."""
        out = {"predicted": values}
        if self.times is not None and self.horizon is not None:
            out["survival"] = self.survival(values, self.horizon)
        if self.times is not None:
            out["median_time"] = self.median_time(values)
        return out

    def at_margin(self) -> SurvivalDecision:
        """The same without what was made from held-out rows."""
        return SurvivalDecision(horizon=self.horizon)

    def attributes(self) -> dict[str, Any]:
        """Attributes of the fitted selector."""
        if self.times is None:
            return {"baseline_": None}
        line = np.array([self.slope, self.centre])
        return {"baseline_": (self.times, self.hazard, line)}

    @classmethod
    def from_attributes(cls, selector: Any) -> SurvivalDecision:
        """The decision of a selector that has these attributes."""
        horizon = getattr(selector.outcome, "horizon", None)
        if (known := getattr(selector, "baseline_", None)) is None:
            return cls(horizon=horizon)
        times, hazard, (slope, centre) = known
        return cls(times, hazard, float(slope), float(centre), horizon)
