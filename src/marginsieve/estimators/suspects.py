"""Samples whose label is likely to be wrong, by machines that did not see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed
from scipy import sparse, special

from ..contracts import Array, BoolArray, IntArray, is_sparse
from ..data.table import Table
from ..errors import InputError, check_n_jobs, positive_number
from ..fitting.procedure import sample_index, seed_sequence
from ..fitting.rows import Rows
from ..outcomes import Classes, ClassTarget
from ..outcomes.label_noise import wrong_label
from ..outcomes.scores import ranking_aucs
from ..outcomes.target import Splits, stratified_folds, units_per_stratum
from ..solvers.execution import one_thread, parallel
from ..solvers.ridge import HeldOutRidge, screened_scores
from .inputs import encode
from .selector import SVMSelector

if TYPE_CHECKING:
    import pandas as pd

CLEAN_RATE = 0.05  # the default everywhere: the largest share of the correct labels among the suspects
LIKELY = 0.5  # a suspect's label is at least as likely wrong as right
MOST_LANDMARKS = 1000  # rows that the Gaussian kernel is built on; with no more rows than these it is exact
LONG_TAILS = 6.0  # kurtosis, 3 where a column is normal, above which its values are replaced by ranks
LINEAR_LEAD = 0.01  # of AUC by which another machine must be better than the linear one
STANDARD_ERRORS = 2.0  # by which the AUC must be above chance, else no label can be called wrong
SATURATED = 0.97  # values of the Gaussian machine up to which they are drawn out: it predicts the label itself
SCREENED = (10, 30, 100)  # columns most correlated with the label that machines may be restricted to
SCREENING_FOLDS, SCREENING_REPEATS = 10, 3
MOST_CELLS, PROJECTED = 2**26, 1000  # cells of a sparse table that are made dense; else so many random directions
WRONG_SHARE = "wrong_share"  # attrs of the frame: the estimated share of wrong labels by class
PREDICTS = "predicts"  # and whether labels can be judged


def find_suspects(
    X: Any,
    y: Any,
    *,
    clean_rate: float = CLEAN_RATE,
    class_weight: Mapping[Any, float] | str | None = "balanced",
    kinds: Mapping[str, str] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """Probability that each label is wrong, from ridge regressions that did not see it (all features).

    Each row is scored by the ridge regression on all other rows (or all other groups): linear, with a Gaussian kernel,
    or linear on the columns most correlated with the label, whichever ranks the held-out rows best. The probability is
    the posterior mean under unknown shares of wrong labels in each class and an unknown overlap of the classes. It is
    right for errors at random; labels that are wrong for a reason that the columns show (a batch, a site) look right.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Numbers, categories or both; cells may be missing.
    y : array-like of shape (n_samples,)
        The classes, two or more (then each class against the rest; the suspicion is the largest one).
    clean_rate : float, default=0.05
        At most this share of the correctly labelled samples is expected among the suspects, by the probabilities
        themselves.
    class_weight : None, "balanced" or dict, default="balanced"
        Weight of each class in the border between the classes, where `margin` is 0; the probabilities do not depend on
        it.
    kinds : dict of column name to kind, or None, default=None
        Kinds of columns, as in SVMSelector.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weight of each sample; samples of weight 0 are left out.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of each row; rows of one group are judged by machines that saw none of them.
    n_jobs : int or None, default=None
        Number of workers, at most one for each class; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the rows and directions that stand for all of them in tables of more than 1,000 rows.

    Returns
    -------
    DataFrame
        One row for each sample, indexed by the index of a pandas X, else by row number. `suspicion`: the probability
        that the label is wrong; `margin`: the decision value of the machine that did not see the sample, times its
        label (1 or -1), below 0 on the wrong side; `suspect`: whether the label is more likely wrong than right, within
        clean_rate, where the scores rank the labels better than chance. Samples of weight 0 have no values.
        `attrs["wrong_share"]` has the estimated share of wrong labels among those of each class, `attrs["predicts"]`
        whether the machines that judge the labels predict them better than chance.

    Examples
    --------
    >>> from marginsieve import find_suspects
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 5, n_relevant=3, effect=4.0, flip=0.05, random_state=0)
    >>> judged = find_suspects(cohort.X, cohort.y, random_state=0)
    >>> judged.columns.tolist()
    ['suspicion', 'margin', 'suspect']
    >>> judged.index[judged["suspect"]].tolist() == list(cohort.truth.flipped)
    True
    """
    encoded = encode(SVMSelector(kernel="clinical"), X, y, kinds, sample_weight, groups)
    return judge_labels(
        encoded, clean_rate=clean_rate, class_weight=class_weight, n_jobs=n_jobs, random_state=random_state
    )


def judge_labels(
    encoded: Rows,
    *,
    clean_rate: float = CLEAN_RATE,
    class_weight: Mapping[Any, float] | str | None = "balanced",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """`find_suspects` on rows that are encoded already."""
    positive_number("find_suspects", "clean_rate", clean_rate, 1.0)
    outcome = Classes(class_weight=class_weight)
    outcome.check()
    check_n_jobs(n_jobs)
    encoded.target.refuse()
    part = encoded.active
    target = part.target.settle(outcome)
    assert isinstance(target, ClassTarget)
    if target.groups is not None and target.groups.min() == target.groups.max():
        raise InputError("groups is the same for all rows: no machine is left that did not see a row's group")
    (_, labels, cost), problem, every = target.machine_target, target.own_problem, np.arange(len(part))
    seed = seed_sequence(random_state)
    with one_thread():
        machines = _Machines.from_rows(part, np.random.default_rng(seed))
        jobs = (
            delayed(_judge_label)(machines, label, part.target.weight, part.target.groups, seed) for label in labels
        )
        score, wrong, predicts = (np.array(some) for some in zip(*parallel(n_jobs)(jobs), strict=True))
    border = (cost * (labels - score)).sum(axis=1) / cost.sum(axis=1)
    suspicion = wrong.max(axis=0)  # the label is wrong if it is not this class, or if it is another one
    columns = {
        "suspicion": suspicion,
        "margin": (labels * (score + border[:, None]))[problem, every],
        "suspect": choose_suspects(suspicion, target.weight, clean_rate) & predicts[wrong.argmax(axis=0)],
    }
    used = np.flatnonzero(encoded.target.weight > 0)
    frame = _frame(columns, sample_index(encoded), used)
    frame.attrs[WRONG_SHARE] = target.average_by_class(suspicion)
    frame.attrs[PREDICTS] = bool(predicts.any())
    return frame


def choose_suspects(suspicion: Array, weight: Array, clean_rate: float) -> BoolArray:
    """The labels that are more likely wrong than right, the most suspicious ones, as many as are expected to hold at
    most this share of the correct labels."""
    order = np.argsort(-suspicion, kind="stable")
    clean = np.cumsum(((1.0 - suspicion) * weight)[order])
    out = np.zeros(len(suspicion), dtype=bool)
    out[order[: int(np.searchsorted(clean, clean_rate * clean[-1], side="right"))]] = True
    return out & (suspicion >= LIKELY)


@dataclass(frozen=True)
class _Machines:
    """The columns (m, d), and ridge regressions on them and on a Gaussian kernel of them."""

    columns: Array
    ridges: tuple[HeldOutRidge, ...]

    @classmethod
    def from_rows(cls, part: Rows, rng: np.random.Generator) -> _Machines:
        X = label_columns(part.table, weight := part.target.weight, rng)
        known = part.target.groups
        groups = None if known is None else np.unique(known, return_inverse=True)[1]
        maps = (X, gaussian_columns(X, weight, rng))
        return cls(X, tuple(HeldOutRidge.from_rows(columns, weight, rng, groups) for columns in maps))


def _judge_label(
    machines: _Machines, label: Array, weight: Array, groups: IntArray | None, seed: np.random.SeedSequence
) -> tuple[Array, Array, bool]:
    """(m,), (m,), bool: scores of the machine that ranks held-out rows best, how likely each label is wrong, whether
    the scores rank the labels better than chance."""
    with one_thread():
        linear, gaussian = (ridge.scores(label) for ridge in machines.ridges)
        mean = weight @ label / weight.sum()
        judges = [linear, np.arctanh(np.clip(gaussian + mean, -SATURATED, SATURATED))]
        counts = [count for count in SCREENED if 2 * count <= machines.columns.shape[1]]
        if counts and (folds := _folds(label > 0, groups, seed)):
            judges.append(screened_scores(machines.columns, label, weight, folds, counts))
        areas = ranking_aucs(np.array(judges), label > 0, weight)
        best = int(np.argmax([areas[0] + LINEAR_LEAD, *areas[1:]]))
        ones, zeros = (label > 0).sum(), (label < 0).sum()
        by_chance = np.sqrt((ones + zeros + 1) / (12.0 * ones * zeros))
        predicts = bool(areas[best] > 0.5 + STANDARD_ERRORS * by_chance)
        return judges[best], wrong_label(judges[best], label > 0, _counts(weight)), predicts


def _folds(positive: BoolArray, groups: IntArray | None, seed: np.random.SeedSequence) -> Splits:
    """Folds of every repeat; none where a class has a single sample or group."""
    codes = positive.astype(np.intp)
    count = min(SCREENING_FOLDS, *units_per_stratum(codes, groups, 2))
    if count < 2:
        return []
    states = seed.generate_state(SCREENING_REPEATS)
    return [split for state in states for split in stratified_folds(codes, groups, count, int(state))]


def _counts(weight: Array) -> Array:
    """How many rows each one counts for: whole numbers as they are, others with a mean of 1."""
    return weight if (weight == np.rint(weight)).all() else weight / weight.mean()


def label_columns(table: Table, weight: Array, rng: np.random.Generator) -> Array:
    """(m, d): the table as numbers, without a look at the labels.

    A column of numbers stays as it is or, where it has long tails, becomes the normal scores of its weighted ranks, so
    that no outlier decides; a category becomes a column for each level; a missing cell is the mean, and a column says
    where cells are missing. All have variance 1. A sparse table of more than MOST_CELLS cells is scaled and projected
    at random instead.
    """
    if is_sparse(table.Z) and np.prod(table.shape) > MOST_CELLS:
        return _project(table.Z, weight, rng)
    Z = table.Z.toarray() if is_sparse(table.Z) else table.Z
    share, columns = weight / weight.sum(), []
    for j, kind in enumerate(table.kind):
        z = np.asarray(Z[:, j])
        gap = np.isnan(z)
        if kind == "nominal":
            columns += [z == level for level in np.unique(z[~gap])]
        elif not gap.all():
            columns.append(_without_long_tails(z, np.where(gap, 0.0, share)))
        if gap.any():
            columns.append(gap)
    X = np.column_stack(columns).astype(np.float64)
    X -= share @ X
    deviation = np.sqrt(share @ X**2)
    return np.asarray(X[:, deviation > 1e-12] / deviation[deviation > 1e-12])


def _project(Z: Any, weight: Array, rng: np.random.Generator) -> Array:
    """(m, PROJECTED): the sparse columns at variance 1, in random directions that keep distances nearly."""
    share = weight / weight.sum()
    variance = np.asarray(share @ Z.multiply(Z)) - np.asarray(share @ Z) ** 2
    factor = np.where(variance > 0, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    signs = sparse.random_array(
        (Z.shape[1], PROJECTED),
        density=Z.shape[1] ** -0.5,
        rng=rng,
        data_sampler=lambda size: rng.choice([-1.0, 1.0], size),
    )
    return np.asarray((Z @ (sparse.diags_array(factor) @ signs)).toarray())


def _without_long_tails(z: Array, share: Array) -> Array:
    """(m,) the values less their mean or, where their kurtosis is above LONG_TAILS, the normal quantiles of their
    middle ranks among the weighted rows; 0 where one is missing."""
    share = share / share.sum()
    scale = float(np.nanmax(np.abs(z)))
    centred = np.where(np.isnan(z), 0.0, z / scale if 0 < scale < np.inf else z)
    with np.errstate(invalid="ignore"):
        centred = np.where(np.isnan(z), 0.0, centred - share @ centred)
        variance = share @ centred**2
        if variance == 0 or share @ centred**4 <= LONG_TAILS * variance**2:
            return np.asarray(centred)
    values, place = np.unique(z, return_inverse=True)
    mass = np.bincount(place, share, len(values))
    rank = np.cumsum(mass) - mass / 2
    return np.where(np.isnan(z), 0.0, special.ndtri(np.clip(rank, 1e-12, 1 - 1e-12))[place])


def gaussian_columns(X: Array, weight: Array, rng: np.random.Generator) -> Array:
    """(m, l): columns whose inner products are the Gaussian kernel of width the mean squared distance of two rows.

    With more than MOST_LANDMARKS rows a random sample of that size stands for them (Nystrom's approximation).
    """
    m = len(X)
    share = weight / weight.sum()
    squares = np.einsum("ij,ij->i", X, X)
    unit = max(2.0 * float(share @ squares - (share @ X) @ (share @ X)), 1e-300)
    rows = np.arange(m) if m <= MOST_LANDMARKS else np.sort(rng.choice(m, MOST_LANDMARKS, replace=False))
    distance = np.maximum(squares[:, None] + squares[rows] - 2.0 * X @ X[rows].T, 0.0)
    K = np.exp(-distance / unit)
    energy, basis = np.linalg.eigh(K[rows])
    known = energy > 1e-10 * energy.max()
    return np.asarray(K @ (basis[:, known] / np.sqrt(energy[known])))


def _frame(columns: Mapping[str, Any], index: Any, used: IntArray) -> pd.DataFrame:
    """One row per sample; those that were not used have no values and are no suspects."""
    import pandas as pd

    frame = pd.DataFrame(columns, index=index[used])
    if len(used) == len(index):
        return frame
    whole = pd.DataFrame({name: np.nan for name in ("suspicion", "margin")}, index=index)
    whole["suspect"] = False
    whole.iloc[used] = frame
    return whole.astype({"suspect": bool})
