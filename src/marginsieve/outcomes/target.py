"""Rows of an outcome: what folds, permutations, machines, scores and decisions need to know of y.

Labels, weights and groups are read, with an error that says what is wrong. Each kind of outcome is a module with a
subclass of `Target`. What all of them share is here once: weights, groups, and everything that is drawn without strata.
An outcome whose rows fall into classes, or in which events are few, says in `strata` what has to be on both sides of
every split.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from ..contracts import (
    Array,
    BoolArray,
    Decision,
    IntArray,
    MachineTarget,
    Matrix,
    Predictions,
    Sampler,
    Score,
    ScoreInfo,
    Search,
    Words,
)
from ..data.table import as_frame, is_missing
from ..errors import InputError, reading, shown_value

if TYPE_CHECKING:
    import pandas as pd

# -- what is given, as arrays -----------------------------------------------------------------------------------------

MOST_WEIGHT = 1e12
NUMBERS = (bool, int, float, np.number, np.bool_)


def read_column(X: Any, y: Any, name: str, values: str) -> Any:
    """(m,) one plain value for each row of X, none of them missing; `values` is what an error calls them."""
    if isinstance(y, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array and its mask would be ignored: drop the masked rows")
    with reading(name):
        y = column_or_1d(plain_labels(y), warn=True)
        check_consistent_length(X, y)
        missing = int(sum(map(is_missing, y.tolist())))
    if missing:
        raise InputError(f"Input {name} contains NaN: {missing} of {len(y)} {values} are missing; drop these rows")
    return y


def read_labels(X: Any, y: Any) -> tuple[Any, IntArray]:
    """The classes, sorted, and the code of each row of X; missing, infinite and continuous labels are refused."""
    y = read_column(X, y, "y", "labels")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError(f"Input y contains infinity: {int(np.isinf(y).sum())} of {len(y)} labels; drop these rows")
    if y.dtype.kind in "MmcV":
        raise InputError(f"y holds {y.dtype}: labels are texts, whole numbers or booleans; make classes of it first")
    exact = y.dtype == object and {type(label) for label in y.tolist()} == {Decimal}
    distinct = len(np.unique(y)) if exact or y.dtype.kind in "fiu" else 0
    with reading("y"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # what is wrong is said below
        continuous = not exact and type_of_target(y).startswith("continuous")
    if distinct > max(10, len(y) / 2) or continuous:
        raise InputError(
            f"Unknown label type: continuous. The target looks continuous ({distinct} distinct values in "
            f"{len(y)} rows); make classes of it first, for example above and below its median"
        )
    with reading("y"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        if not exact:
            check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.intp)


def read_groups(groups: Any, rows: Any) -> IntArray | None:
    """Check the rows' groups.

    Parameters
    ----------
    groups : array-like of shape (m,) or None
        Group of each row.
    rows : sequence of length m
        The rows; only their number is used.

    Returns
    -------
    array of int of shape (m,) or None
        The group of each row as a code; None where there are no groups.

    Examples
    --------
    >>> from marginsieve.outcomes import read_groups
    >>> read_groups(["b", "a", "b"], range(3))
    array([1, 0, 1])
    """
    if groups is None:
        return None
    with reading("groups"):
        groups = column_or_1d(plain_labels(groups))
        check_consistent_length(rows, groups)
        if missing := int(sum(map(is_missing, groups.tolist()))):
            raise InputError(f"{missing} of {len(rows)} rows have no group: give each a group, or drop these rows")
        return np.asarray(np.unique(groups, return_inverse=True)[1], dtype=np.intp)


def read_weight(sample_weight: Any, m: int) -> Array:
    """Check the samples' weights.

    Parameters
    ----------
    sample_weight : array-like of shape (m,), float or None
        The weights, none below 0; None is 1 for each.
    m : int
        Number of samples.

    Returns
    -------
    array of shape (m,)
        The weights.

    Examples
    --------
    >>> from marginsieve.outcomes import read_weight
    >>> read_weight(None, 3)
    array([1., 1., 1.])
    """
    if sample_weight is None:
        return np.ones(m)
    with reading("sample_weight"):
        weight = _check_sample_weight(sample_weight, np.empty((m, 1)), dtype=np.float64, ensure_non_negative=True)
    weight = np.asarray(weight, dtype=np.float64)
    counted = weight[weight > 0]
    if len(counted) and not 1 / MOST_WEIGHT <= counted.min() <= counted.max() <= MOST_WEIGHT:
        raise InputError(
            f"sample_weight is between {counted.min():g} and {counted.max():g}; weights are 0 or between "
            f"{1 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}"
        )
    return weight


def plain_labels(y: Any) -> Any:
    """Labels of a pandas, polars or arrow column, or of a table of one column, as plain values of the same type.

    No nullable type leaks into classes_, whole numbers stay whole, and booleans are booleans whatever holds them.
    """
    if (frame := as_frame(y)) is not None and frame.shape[1] == 1:
        y = frame[:, 0].to_native()
    if isinstance(getattr(y, "dtype", None), np.dtype):
        y = np.asarray(y)
        if not y.dtype.isnative:  # such as numbers of another machine's files
            return y.astype(y.dtype.newbyteorder("="))
        if y.dtype != object or y.ndim != 1 or not all(isinstance(value, NUMBERS) for value in y):
            return y
    lister = next((name for name in ("to_list", "to_pylist", "tolist") if hasattr(y, name)), None)
    if lister is None or isinstance(y, (list, tuple)):
        _refuse_lost_ends(y if isinstance(y, (list, tuple)) else ())
        return y
    values = getattr(y, lister)()
    _refuse_lost_ends(values)
    array = np.array(values, dtype=object if any(map(is_missing, values)) else None)
    beyond = array.dtype.kind == "f" and any(isinstance(value, int) and abs(value) > 2**53 for value in values)
    return np.array(values, dtype=object) if beyond else array


def _refuse_lost_ends(labels: Sequence[Any]) -> None:
    """Refuse texts that end in NUL characters, which arrays of numpy take away: two classes would become one."""
    if lost := next((label for label in labels if isinstance(label, str) and label.endswith("\0")), None):
        raise InputError(f"{shown_value(lost)} ends in a NUL character, which would be lost: rename this label")


# -- splits and draws -------------------------------------------------------------------------------------------------

Splits = list[tuple[IntArray, IntArray]]


def stratified_folds(strata: IntArray, groups: IntArray | None, n_splits: int, random_state: int) -> Splits:
    """Folds stratified, with the rows of a group in the same fold.

    Parameters
    ----------
    strata : array of int of shape (m,)
        Stratum of each row, such as its class.
    groups : array of int of shape (m,) or None
        Group of each row.
    n_splits : int
        Number of folds.
    random_state : int
        Seed of the shuffling.

    Returns
    -------
    list of (array, array)
        Row numbers of the training part and of the test part of each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes.target import stratified_folds
    >>> strata = np.array([0, 0, 1, 1])
    >>> [np.bincount(strata[test]).tolist() for train, test in stratified_folds(strata, None, 2, 0)]
    [[1, 1], [1, 1]]
    """
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(n_splits, shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros(len(strata)), strata, groups))


def units_per_stratum(strata: IntArray, groups: IntArray | None = None, count: int | None = None) -> list[int]:
    """The number of rows, or of groups where there are any, in each stratum: those that occur, or the first `count`."""
    units = np.arange(len(strata)) if groups is None else groups
    known = np.unique(strata) if count is None else range(count)
    return [len(np.unique(units[strata == stratum])) for stratum in known]


def unit_name(groups: IntArray | None) -> str:
    """The name of what is counted: samples, or groups of them.

    Parameters
    ----------
    groups : array of int of shape (m,) or None
        Group of each row.

    Returns
    -------
    str
        "samples" or "groups".

    Examples
    --------
    >>> from marginsieve.outcomes.target import unit_name
    >>> unit_name(None)
    'samples'
    """
    return "samples" if groups is None else "groups"


def draw_share(
    strata: IntArray, groups: IntArray | None, share: float, rng: np.random.Generator, at_least: int, leave: int
) -> BoolArray:
    """Draw a share of the rows of each stratum, all rows of a group together.

    Parameters
    ----------
    strata : array of int of shape (m,)
        Stratum of each row, such as its class.
    groups : array of int of shape (m,) or None
        Group of each row.
    share : float
        Share of each stratum that is drawn.
    rng : numpy.random.Generator
        Source of the random numbers.
    at_least : int
        Smallest number of rows (or groups) of a stratum that are drawn.
    leave : int
        Smallest number of rows (or groups) of a stratum that stay, where possible.

    Returns
    -------
    array of bool of shape (m,)
        Which rows are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes.target import draw_share
    >>> strata = np.array([0] * 6 + [1] * 4)
    >>> drawn = draw_share(strata, None, 0.5, np.random.default_rng(0), at_least=1, leave=2)
    >>> np.bincount(strata[drawn])
    array([3, 2])
    """
    units = np.arange(len(strata)) if groups is None else groups
    chosen: set[int] = set()
    for stratum in np.unique(strata):
        members = np.array(sorted(set(units[strata == stratum].tolist())))
        most = min(max(at_least, round(share * len(members))), max(len(members) - leave, min(1, len(members) - 1)))
        free = members[~np.isin(members, list(chosen))]
        count = most - (len(members) - len(free))
        chosen |= set(rng.choice(free, size=min(max(count, 0), len(free)), replace=False).tolist())
    for stratum in np.unique(strata) if leave else ():  # groups that hold two classes may have taken too much of one
        of_stratum = set(units[strata == stratum].tolist())
        lacking = min(leave, max(len(of_stratum) - 1, 1)) - len(of_stratum - chosen)
        chosen -= set(rng.permutation(sorted(of_stratum & chosen))[: max(lacking, 0)].tolist())
    return np.isin(units, list(chosen))


FEW_PERMUTATIONS = 1000  # of groups among those of their size, below which groups of all sizes change places


def _log_arrangements(stratum: IntArray, values: IntArray) -> float:
    """The logarithm of the number of ways to deal values (units,) among the units of each stratum."""
    pairs = np.unique(np.stack([stratum, values]), axis=1, return_counts=True)[1]
    return float(gammaln(np.bincount(stratum) + 1.0).sum() - gammaln(pairs + 1.0).sum())


# -- targets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoldLimit:
    """How many folds can be made at most, and what limits them.

    Parameters
    ----------
    count : int
        Largest number of folds.
    reason : str
        What limits it, as in "class 'a' has 3 samples".

    Examples
    --------
    >>> from marginsieve.outcomes import ClassTarget
    >>> limit = ClassTarget.from_codes([0, 0, 0, 1, 1]).fold_limit()
    >>> limit.count, limit.reason
    (2, 'class 1 has 2 samples')
    """

    count: int
    reason: str


@dataclass(frozen=True)
class Target(ABC):
    """Rows of an outcome, with their weights and groups.

    Parameters
    ----------
    weight : array of shape (m,)
        Weight of each row.
    groups : array of int of shape (m,) or None
        Group of each row, as a code; rows of one group are never on both sides of a split.

    Attributes
    ----------
    strata : array of int of shape (m,)
        What has to be on both sides of every split, as a code: classes, or events. Variances are summed over them.
    metrics : mapping of str to ScoreInfo
        The scores, the one that the answer is about first.
    scored_by : str
        Name of the score by which inner folds choose.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.outcomes import Classes
    >>> target = Classes().read(np.zeros((4, 1)), ["case", "control", "control", "control"])
    >>> len(target), target.row_counts, target.scored_by
    (4, (1, 3), 'AUC')
    """

    weight: Array
    groups: IntArray | None

    def __len__(self) -> int:
        return len(self.weight)

    # -- rows -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def take(self, rows: IntArray) -> Self:
        """Some of the rows."""

    def spread(self, rows: IntArray, m: int) -> Self:
        """The same rows as some of m rows; the others have no weight."""
        place, weight = np.zeros(m, dtype=np.intp), np.zeros(m)
        place[rows], weight[rows] = np.arange(len(self)), self.weight
        return replace(self.take(place), weight=weight, groups=None)

    def with_weight(self, weight: Array) -> Self:
        """The same rows with other weights."""
        return replace(self, weight=weight)

    def settle(self, outcome: Any) -> Self:  # noqa: ARG002
        """The target of a fit on these rows: with the settings of an `Outcome`, and what they leave to the rows."""
        return self

    def with_settings(self, outcome: Any) -> Self:  # noqa: ARG002
        """The same rows with other settings; what was left to the rows stays as it was settled."""
        return self

    def refuse(self, search: Search | None = None) -> None:  # noqa: B027, nothing is refused by default
        """Refuse rows that no fit can be made of, or settings that make no sense for them with this search."""

    @property
    def strata(self) -> IntArray:
        """(m,) one stratum by default."""
        return np.zeros(len(self), dtype=np.intp)

    @property
    def unit_counts(self) -> tuple[int, ...]:
        """The number of rows, or of groups where there are any, in each stratum."""
        return tuple(units_per_stratum(self.strata, self.groups))

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The number of rows in each stratum that occurs."""
        return tuple(units_per_stratum(self.strata))

    @property
    def effective_count(self) -> int:
        """How many rows or groups decide how sure a score is: those of the rarest stratum."""
        return min(self.unit_counts)

    @property
    def complete(self) -> bool:
        """Whether the rows hold all that a fit needs, such as every class."""
        return len(self) > 1

    @property
    @abstractmethod
    def identity(self) -> tuple[list[Any], Any]:
        """Plain values and an array (m,): equal for equal outcomes."""

    @property
    @abstractmethod
    def store_row(self) -> dict[str, Any]:
        """What a store keeps of the outcomes: "classes", "positive" and "truth", of which some may be None."""

    # -- splits and draws ---------------------------------------------------------------------------------------------

    def folds(self, k: int, random_state: int) -> Splits:
        """k folds, stratified where there are strata, with the rows of a group in the same fold."""
        if self.strata.any():
            return stratified_folds(self.strata, self.groups, k, random_state)
        if self.groups is None:
            return list(KFold(k, shuffle=True, random_state=random_state).split(np.zeros(len(self))))
        splitter = GroupKFold(k, shuffle=True, random_state=random_state)
        return list(splitter.split(np.zeros(len(self)), groups=self.groups))

    def fold_limit(self) -> FoldLimit:
        """How many folds can be made: one for each row, or group, of the rarest stratum."""
        count = min(self.unit_counts)
        return FoldLimit(count, f"the table has {count} {unit_name(self.groups)}")

    def check_folds(self, folds: Splits) -> None:  # noqa: B027, nothing is refused by default
        """Refuse folds that do not train on, or together do not test, what has to be there."""

    def shuffle(self, rng: np.random.Generator) -> Self:
        """Outcomes (with their weights) dealt anew to the rows; those of a group move together, to another group."""
        return self.deal(self._shuffled_rows(rng))

    def deal(self, order: IntArray) -> Self:
        """The rows with the outcomes (and weights) of other rows; groups stay with the rows."""
        return replace(self.take(order), groups=self.groups)

    def _shuffled_rows(self, rng: np.random.Generator) -> IntArray:
        """Which row each row's outcome comes from."""
        m = len(self)
        if self.groups is None:
            return np.asarray(rng.permutation(m), dtype=np.intp)
        _, place = np.unique(self.groups, return_inverse=True)
        members = [np.flatnonzero(place == k) for k in range(place.max() + 1)]
        order = np.empty(m, dtype=np.intp)
        for rows, source in zip(members, rng.permutation(len(members)), strict=True):
            order[rows] = np.resize(rng.permutation(members[source]), len(rows))
        return order

    def permutations(self, count: int, rng: np.random.Generator) -> IntArray:
        """(count, m): the row from which each row's outcome comes, in permutations that a null hypothesis allows.

        Rows of a group of several outcomes change places within it. Groups of one outcome change places with such
        groups of the same size, or with any of them where there are hardly others of their size.
        """
        stratum, units = self._exchangeable()
        first = np.unique(units, return_index=True)[1]
        base, order = np.argsort(stratum, kind="stable"), np.empty((count, len(first)), dtype=np.intp)
        order[:, base] = np.argsort(stratum + rng.random((count, len(first))), axis=1)
        return np.asarray(first[order][:, units])

    @property
    def log_permutations(self) -> float:
        """The logarithm of the number of different outcomes that `permutations` can give."""
        return _log_arrangements(*self._group_values())

    def _group_values(self) -> tuple[IntArray, IntArray]:
        """(units,), (units,): the stratum within which each unit changes places, and its outcome as a code."""
        stratum, units = self._exchangeable()
        values = np.unique(self.identity[1], return_inverse=True)[1]
        return stratum, values[np.unique(units, return_index=True)[1]]

    def _exchangeable(self) -> tuple[IntArray, IntArray]:
        """(units,) the stratum within which each unit changes places; (m,) the unit of each row: a row, or a group."""
        m = len(self)
        if self.groups is None:
            return np.zeros(m, dtype=np.intp), np.arange(m)
        group = np.unique(self.groups, return_inverse=True)[1]
        values = np.unique(self.identity[1], return_inverse=True)[1]
        first = np.unique(group, return_index=True)[1]
        several = np.bincount(group, values != values[first][group]) > 0
        units = np.unique(np.where(several[group], len(first) + np.arange(m), group), return_inverse=True)[1]
        first = np.unique(units, return_index=True)[1]
        own = np.where(several, m + 1 + np.arange(len(several)), 0)[group[first]]  # 0: a group that moves as a whole
        stratum = np.where(own > 0, own, np.bincount(group)[group[first]])
        if _log_arrangements(stratum, values[first]) < np.log(FEW_PERMUTATIONS):
            stratum = own
        return np.unique(stratum, return_inverse=True)[1], units

    def draw(self, share: float, rng: np.random.Generator, at_least: int, leave: int) -> BoolArray:
        """(m,) a share of the rows of each stratum, all rows of a group together."""
        return draw_share(self.strata, self.groups, share, rng, at_least, leave)

    def sample(self, count: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
        """So many rows to train on, sorted, and the weights of all rows.

        Every stratum gets an equal share; what a small one cannot fill goes to the others, so that a rare class is
        taken whole. Within the sample each stratum weighs what it weighs among all rows, and a sampled row as much as
        any row on average: if the sample stood for all rows, its few rows would be fitted as closely as all of them
        together, and eliminations would rank noise first.
        """
        strata, weight, chosen, left = self.strata, self.weight.copy(), [], count
        counts = np.bincount(strata)
        for place, code in enumerate(np.argsort(counts, kind="stable")):
            members = np.flatnonzero(strata == code)
            taken = rng.choice(members, size=min(len(members), left // (len(counts) - place)), replace=False)
            weight[taken] *= self.weight[members].sum() / self.weight[taken].sum()
            left -= len(taken)
            chosen.append(taken)
        rows = np.sort(np.concatenate(chosen))
        weight[rows] *= len(rows) * self.weight.mean() / weight[rows].sum()
        return rows, weight

    # -- machines -----------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def machine_target(self) -> MachineTarget:
        """What machines solve for: problems y (k, m) with costs (k, m), which have the weights in them."""

    @property
    def linear_outcome(self) -> Array:
        """(k, m) what closed-form regressions take for the outcome."""
        return np.asarray(self.machine_target.y, dtype=np.float64)

    def association(self) -> Array:
        """(d, m) what columns are correlated with: orthonormal, each with mean 0."""
        values = self.linear_outcome
        basis, triangle = np.linalg.qr((values - values.mean(axis=1, keepdims=True)).T)
        size = np.abs(np.diag(triangle))
        return np.asarray(basis[:, size > 1e-9 * size.max()].T)

    def agreement(self, values: Array, labels: Array) -> Array:
        """(B,) how well values (B, k, m) of held-out rows go with what machines solve for, labels of the same shape.

        The mean over the k problems of the correlation.
        """
        ours, theirs = (part - part.mean(axis=2, keepdims=True) for part in (values, labels))
        size = np.sqrt((ours**2).sum(axis=2) * (theirs**2).sum(axis=2))
        return np.asarray(((ours * theirs).sum(axis=2) / np.maximum(size, 1e-300)).mean(axis=1))

    @property
    def own_problem(self) -> IntArray:
        """(m,) the problem that is about each row, where there are several."""
        return np.zeros(len(self), dtype=np.intp)

    def resample(self, sampler: Sampler, rows: Matrix, rng: np.random.Generator) -> tuple[Matrix, Self]:  # noqa: ARG002
        """Rows that a sampler made of these, and their target; only classes can be resampled."""
        raise TypeError(f"{type(self).__name__} has no classes to resample")

    @property
    def has_costs(self) -> bool:
        """Whether rows have costs by what their outcome is, so that one outcome may be all that counts."""
        return False

    # -- inner scores and decisions -----------------------------------------------------------------------------------

    outcome_name: ClassVar[str]  # of the outcome

    @property
    def scored_by(self) -> str:
        """Name of the score by which inner folds choose."""
        return "score"

    @abstractmethod
    def score_values(self, values: Array) -> Array:
        """(S,) scores of the machines' values (S, m, k), higher is better; nan where these rows cannot tell."""

    def machine_scores(self, values: Array) -> tuple[float, float]:
        """The score by which machines are tuned, from values (m, k) cut at 0, and what decides between equal ones."""
        score = float(self.score_values(values[None])[0])
        return score, 0.0

    def tuning_scores(self, values: Array, fold: IntArray) -> tuple[float, float]:  # noqa: ARG002
        """The same with the decision of each fold made on the other folds; `fold` (m,) is that of each row."""
        return self.machine_scores(values)

    @property
    def fold_mass(self) -> float:
        """What a fold of these rows counts for in a mean of scores."""
        return float(self.weight.sum())

    @property
    def needs_held_out(self) -> bool:
        """Whether a decision is made from values of held-out rows."""
        return False

    @abstractmethod
    def decide(self, held: Array | None, rows: IntArray, weight: Array) -> Decision:
        """The decision, from values (rows, k) of held-out rows (their numbers, their weights); None: there are none."""

    def scale(self, values: Array, rows: IntArray, weight: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """(k,), (k,): where a view's held-out values are cut and what they are divided by before views are averaged."""
        share = weight / weight.sum()
        spread = np.sqrt(share @ (values - share @ values) ** 2)
        return np.zeros(values.shape[1]), np.where(spread > 0, spread, 1.0)

    def scales(self, values: Sequence[Array], rows: IntArray, weight: Array) -> tuple[Array, Array]:
        """(v, k), (v, k): the same of each of several views, whose values (rows, k) are of the same rows."""
        middle, unit = zip(*(self.scale(value, rows, weight) for value in values), strict=True)
        return np.array(middle), np.array(unit)

    @property
    def list_score(self) -> str:
        """The score by which lists are compared that differ in few columns; empty where there is none."""
        return "auc" if self.has_auc else ""

    def decisions_of(self, entry: Mapping[str, Any]) -> Array:
        """(rows,) of what a unit left the numbers that `score_values` takes."""
        return np.asarray(entry["decision" if self.has_auc else "predicted"], dtype=np.float64)

    def constant_entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The same of a model that knows no column."""
        return {**entry, "decision": [0.0] * len(entry["predicted"])}

    @property
    def has_auc(self) -> bool:
        """Whether there are two sides, which AUC compares."""
        return False

    def fold_advice(self, folds: int) -> str | None:  # noqa: ARG002
        """Why so many outer folds cannot be made of these rows, and what can; None where they can."""
        limit = self.fold_limit()
        return None if limit.count >= 3 else f"has too few rows ({limit.reason}): a study needs at least 3"

    # -- predictions and their scores --------------------------------------------------------------------------

    @abstractmethod
    def entry(self, decision: Decision, raw: Array) -> dict[str, Any]:
        """What a unit leaves of a model's values (rows, k): "predicted" and, where there are any, "decision" and
        "probability", as plain lists."""

    @abstractmethod
    def entry_of(self, estimator: Any, rows: Any) -> dict[str, Any]:
        """The same from a fitted estimator of any kind."""

    @property
    def fixed_settings(self) -> dict[str, Any]:
        """Parameters of a selector that are fixed where it is run on parts of these rows."""
        return {}

    @property
    @abstractmethod
    def metrics(self) -> Mapping[str, ScoreInfo]:
        """The scores by name."""

    @abstractmethod
    def scores(self, predictions: Predictions) -> dict[str, Score]:
        """Each score of a pass over these rows."""

    def rooms(self, values: Mapping[str, float]) -> dict[str, float]:
        """For each score 4 u (1 - u), u from 0 at chance to 1 at no error: where training rows matter most."""
        return dict.fromkeys(values, 0.0)

    # -- several classes ---------------------------------------------------------------------------------------

    def against_rest(self) -> dict[str, Target]:
        """For each of more than two classes the same rows, of it or of the others."""
        return {}

    def scores_by_class(self, predictions: Predictions) -> dict[str, dict[str, Score]]:
        """Scores of each of them."""
        raise NotImplementedError

    def areas_by_pair(self, predictions: Predictions) -> dict[tuple[str, str], Score]:
        """For each pair of them the AUC of their rows."""
        raise NotImplementedError

    # -- decisions ---------------------------------------------------------------------------------------------

    @property
    def interest_share(self) -> float | None:
        """The share of rows that a decision is about; None where rows are not called one of two things."""
        return None

    @property
    def operating_metrics(self) -> Mapping[str, ScoreInfo]:
        """What there is to say of a decision by name; nothing where there is none."""
        return {}

    def operating_scores(self, predictions: Predictions, share: float) -> dict[str, Score]:
        """Each of these where the rows that a decision is about have this share."""
        raise NotImplementedError

    def benefit_scores(self, predictions: Predictions, grid: Sequence[float], share: float) -> list[Score]:
        """Net benefit by threshold probability."""
        raise NotImplementedError

    def benefit_of_all(self, grid: Array, share: float) -> Array:
        """The same of calling every row what the decision is about."""
        raise NotImplementedError

    # -- other cohorts -----------------------------------------------------------------------------------------

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """What the strata are called, by code."""
        return ("all rows",)

    @property
    def scarce_rows(self) -> str:
        """What decides how sure a score is, in words: rows of the rarest stratum."""
        counts = np.bincount(self.strata, minlength=len(self.stratum_names))
        return f"rows of {self.stratum_names[int(np.argmin(counts))]}"

    @property
    def forecast_by(self) -> str | None:
        """The score whose value on another cohort can be forecast; None where there is none."""
        return None

    def forecast_variance(self, value: float, counts: Sequence[int]) -> float:
        """The variance that this score has on a cohort with so many rows of each stratum, where it is `value` on
        average."""
        raise NotImplementedError

    @property
    def cohort_counts(self) -> tuple[int, ...]:
        """What decides how a score varies on a cohort like this one: the rows of each stratum."""
        return self.row_counts

    def read_counts(self, parts: Sequence[int]) -> tuple[int, ...]:
        """Rows of each stratum, from numbers as a user gives them; refuses another count of numbers."""
        if len(parts) != len(self.cohort_counts):
            known = len(self.cohort_counts)
            raise InputError(
                f"a cohort is {'+'.join(map(str, parts))}; it takes {known} numbers of rows, with + between"
            )
        return tuple(parts)

    def describe_counts(self, counts: Sequence[int]) -> str:
        """Such a cohort in words."""
        return f"{sum(counts):,} rows"

    # -- words -------------------------------------------------------------------------------------------------

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Plain values for the table of a result."""

    @property
    @abstractmethod
    def observed(self) -> Any:
        """(m,) the outcomes as they were given."""

    def in_terms_of_user(self, predicted: Any) -> Any:
        """Predictions as they would have been given."""
        return predicted

    def effect(self, column: pd.Series, kind: str) -> dict[str, Any]:  # noqa: ARG002
        """How a column goes with the outcome: "effect" with its interval, "direction" in words, "plot" or None."""
        unknown = float("nan")
        return {
            "effect": {"name": "", "value": unknown, "low": unknown, "high": unknown, "unit": ""},
            "direction": "",
            "plot": None,
        }

    def pictures(self, predicted: Any, decision: Array | None, probability: Array | None) -> dict[str, Any]:  # noqa: ARG002
        """What the page draws of out-of-fold predictions (repeats, m): "curves" and "confusion", or None."""
        return {"curves": None, "confusion": None}

    @property
    @abstractmethod
    def words(self) -> Words:
        """What reports say of these rows."""

    def model_notes(self, values: Array, machines: Sequence[Any]) -> list[str]:  # noqa: ARG002
        """What is remarkable about a model's values (m, k) of its training rows."""
        return []
