"""Samples whose label is likely to be wrong, by machines that did not see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

from ..contracts import Array, BoolArray, IntArray
from ..errors import InputError, positive_number, whole_number
from ..fitting.part import Encoded
from ..fitting.procedure import plan_of, seed_sequence
from ..fitting.resampling import RESAMPLES, resampled, sample_index
from ..fitting.settings import MOST_MEMBERS
from .inputs import encode
from .selector import SVMSelector

if TYPE_CHECKING:
    import pandas as pd

PRICES = (0.05, 0.2, 1.0)
FLOOR = 0.1  # a sample that is less likely wrong than this is no suspect
WRONG = (2.0, 20.0)  # Beta prior of the share of wrong labels: its mode is 1 in 20
STEEP = (1.5, 2.0)  # normal prior of the logarithm of the sigmoid's slope, values scaled to 1
EVEN, UNEVEN = 0.1, 1.0  # spread of the prior of its shift, around 0, by whether the machines weigh both labels alike


def find_suspects(
    X: Any,
    y: Any,
    *,
    C: float | Sequence[float] = PRICES,
    resamples: int = RESAMPLES,
    clean_rate: float = 0.05,
    class_weight: Mapping[Any, float] | str | None = "balanced",
    kinds: Mapping[str, str] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """Samples that are likely to have a wrong label, from resampled ramp-loss fits (all features).

    Each of `resamples` subsamples of 70 % of the rows gives a machine with an l1 penalty for each C and, where columns
    outnumber rows, three with an l2 penalty; a sample is judged only by machines that did not see it. A sigmoid that
    allows for wrong labels turns their mean decision value into the probability that the label is wrong, given how well
    the classes can be separated and how many labels look wrong altogether. Only a sample on the wrong side can be a
    suspect.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Numbers, categories or both.
    y : array-like of shape (n_samples,)
        The classes, two or more (then each class against the rest).
    C : float or sequence of float, default=(0.05, 0.2, 1.0)
        Cost of a margin error. The results of several are averaged: which one is best depends on the table.
    resamples : int, default=50
        Number of subsamples of the rows.
    clean_rate : float, default=0.05
        At most this share of the correctly labelled samples is expected among the suspects, by the probabilities
        themselves: they are right as far as the sigmoid is, and not where columns have very long tails.
    class_weight : None, "balanced" or dict, default="balanced"
        Weight of each class, as in SVMSelector.
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns, as in SVMSelector.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weight of each sample; samples of weight 0 are left out.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of each row; rows of one group are judged by machines that saw none of them.
    n_jobs : int or None, default=None
        Number of workers; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the subsamples.

    Returns
    -------
    DataFrame
        One row for each sample, indexed by the index of a pandas X, else by row number. `suspicion`: the probability
        that the label is wrong; `margin`: the mean decision value of the machines that did not see the sample, below 0
        on the wrong side; `frequency`: the share of these machines that put it beyond the opposite margin; `suspect`:
        whether it is one. Samples of weight 0 have no values.

    Examples
    --------
    >>> from marginsieve import find_suspects
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 5, n_relevant=3, effect=4.0, flip=0.05, random_state=0)
    >>> judged = find_suspects(cohort.X, cohort.y, resamples=10, random_state=0)
    >>> judged.columns.tolist()
    ['suspicion', 'margin', 'frequency', 'suspect']
    >>> judged.index[judged["suspect"]].tolist() == list(cohort.truth.flipped)
    True
    """
    selector = ramp_selector(class_weight, kinds)
    encoded = encode(selector, X, y, kinds, sample_weight, groups)
    return judge_labels(
        selector, encoded, C=C, resamples=resamples, clean_rate=clean_rate, n_jobs=n_jobs, random_state=random_state
    )


def ramp_selector(class_weight: Any = "balanced", kinds: Mapping[str, str] | None = None) -> SVMSelector:
    """The machine that judges labels: the ramp loss with an l1 penalty on standardised columns."""
    return SVMSelector(
        machine="ramp", criterion=None, search="learned", standardize=True, class_weight=class_weight, kinds=kinds
    )


def judge_labels(
    selector: SVMSelector,
    encoded: Encoded,
    *,
    C: float | Sequence[float] = PRICES,
    resamples: int = RESAMPLES,
    clean_rate: float = 0.05,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """`find_suspects` on rows that are encoded already."""
    prices = _prices(C)
    whole_number("find_suspects", "resamples", resamples, most=MOST_MEMBERS)
    positive_number("find_suspects", "clean_rate", clean_rate, 1.0)
    plan = plan_of(selector, encoded)
    part, used = encoded.part()
    rng = np.random.default_rng(seed_sequence(random_state))
    fits = resampled(plan, part, prices, rng, resamples, n_jobs, dense=True)
    labels, problem, every = plan.outcome.labels(part.y), plan.outcome.own_problem(part.y), np.arange(len(part.y))
    suspicion, shift = np.empty(len(part.y)), EVEN if selector.class_weight == "balanced" else UNEVEN
    for k in range(len(labels)):
        mine = problem == k
        suspicion[mine] = wrong_label(fits.value[k], labels[k], part.weight, shift)[mine]
    margin = (labels * fits.value)[problem, every]
    columns = {
        "suspicion": suspicion,
        "margin": margin,
        "frequency": fits.frequency[problem, every],
        "suspect": suspected(suspicion, clean_rate) & (margin < 0),
    }
    return _frame(columns, sample_index(encoded.names, len(encoded.target.codes)), used)


def _frame(columns: Mapping[str, Any], index: Any, used: IntArray) -> pd.DataFrame:
    """One row per sample; those that were not used have no values and are no suspects."""
    import pandas as pd

    frame = pd.DataFrame(columns, index=index[used])
    if len(used) == len(index):
        return frame
    whole = pd.DataFrame({name: np.nan for name in ("suspicion", "margin", "frequency")}, index=index)
    whole["suspect"] = False
    whole.iloc[used] = frame
    return whole.astype({"suspect": bool})


def _prices(C: Any) -> tuple[float, ...]:
    several = hasattr(C, "__iter__") and not isinstance(C, str) and getattr(C, "ndim", 1) > 0
    prices = tuple(C) if several else (C.item() if hasattr(C, "item") else C,)
    for price in prices:
        positive_number("find_suspects", "C", price)
    if not prices:
        raise InputError("find_suspects: C is empty; it must be a positive number or several")
    return tuple(float(price) for price in prices)


def wrong_label(value: Array, label: Array, weight: Array, shift: float = EVEN) -> Array:
    """(m,) the probability that each label is wrong; label in {-1, +1}, values of machines that did not see it.

    Of the samples with either label a share e is wrong, and belongs to the other class; the logarithm of the classes'
    density ratio at a value f is a f + b. Both labels count the same, however rare one is. a, b and e by maximum
    likelihood with weak priors, b around 0 with the spread `shift`; a sample without a value gets e.
    """
    known = np.isfinite(value)
    unit = max(float(np.abs(value[known]).max(initial=0.0)), 1e-12)
    f, y = value[known] / unit, label[known]
    w = _even(y, weight[known])

    def parts(theta: Array) -> tuple[Array, float]:
        right = 1.0 / (1.0 + np.exp(-np.clip(y * (np.exp(theta[0]) * f + theta[1]), -30.0, 30.0)))
        return right, 0.5 / (1.0 + float(np.exp(-theta[2])))

    def loss(theta: Array) -> float:
        right, e = parts(theta)
        prior = (WRONG[0] - 1) * np.log(2 * e) + (WRONG[1] - 1) * np.log1p(-e)
        away = 0.5 * ((theta[0] - STEEP[0]) / STEEP[1]) ** 2 + 0.5 * (theta[1] / shift) ** 2
        return float(-w @ np.log((1 - e) * right + e * (1 - right)) - prior + away)

    options: dict[str, Any] = {
        "method": "Nelder-Mead",
        "bounds": [(-4.0, 6.0), (-20.0, 20.0), (-12.0, 12.0)],
        "options": {"maxiter": 2000},
    }
    starts = ([0.5, 0.0, -2.0], [2.0, 0.0, -2.0])
    best = min((optimize.minimize(loss, start, **options) for start in starts), key=lambda answer: float(answer.fun))
    right, e = parts(best.x)
    out = np.full(len(value), e)
    out[known] = e * (1 - right) / ((1 - e) * right + e * (1 - right))
    return out


def _even(y: Array, weight: Array) -> Array:
    """Weights with the same sum for both labels; together they count as many samples as the rarer label supports."""
    counts = {side: float((y == side).sum()) for side in (1.0, -1.0)}
    if not all(counts.values()):
        return np.asarray(weight / max(float(weight.mean()), 1e-300))
    total = 4.0 / (1.0 / counts[1.0] + 1.0 / counts[-1.0])
    sums = {side: float(weight[y == side].sum()) for side in counts}
    return np.asarray(0.5 * total * weight / np.where(y > 0, sums[1.0], sums[-1.0]))


def suspected(suspicion: Array, clean_rate: float) -> BoolArray:
    """The most suspicious samples, as many as are expected to hold at most this share of the clean ones."""
    order = np.argsort(-suspicion, kind="stable")
    clean = np.cumsum(1.0 - suspicion[order])
    count = int(np.searchsorted(clean, clean_rate * clean[-1], side="right"))
    out = np.zeros(len(suspicion), dtype=bool)
    out[order[:count]] = True
    return out & (suspicion >= FLOOR)
