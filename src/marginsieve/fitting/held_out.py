"""Decision values of rows that neither the machine nor the selection has seen, by number of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed

from ..contracts import Array, IntArray
from ..errors import InputError
from ..outcomes import stratified_folds, unit_name, units_per_class
from ..outcomes.folds import Splits
from ..problem import WorkDone
from ..solvers.processes import parallel
from ..solvers.threads import one_thread
from .ensemble import Member, run_search
from .part import Part
from .settings import Plan

MOST_SIZES = 40  # sizes on the grid of the inner folds
PRICE = 0.002  # of a size twice or half the usual one, in units of the score
USUAL_SIZE = 50
REPEATS = ((500, 4), (2000, 2))  # inner folds of tables with at most so many rows are drawn so often, of others once


@dataclass(frozen=True)
class HeldOut:
    """Decision values of held-out rows by size: values (S, rows, k); row and fold numbers (rows,).

    A row may be held out in several folds where these overlap.
    """

    sizes: tuple[int, ...]
    values: Array
    rows: IntArray
    fold: IntArray
    work: tuple[WorkDone, ...]
    overlap: float  # rows tested for each row trained on, where folds overlap

    @classmethod
    def of(cls, sizes: tuple[int, ...], members: Sequence[Member], overlap: float = 0.0) -> HeldOut:
        """From the rows that each of these searches did not see."""
        values = np.concatenate([member.values for member in members], axis=1)
        rows = np.concatenate([member.rows for member in members])
        fold = np.repeat(np.arange(len(members)), [len(member.rows) for member in members])
        return cls(sizes, values, rows, fold, tuple(member.work for member in members), overlap)

    def weight(self, weight: Array) -> Array:
        """(rows,) the rows' weights, shared among the times that a row is held out."""
        return np.asarray(weight[self.rows] / np.bincount(self.rows)[self.rows])

    def scores(self, y: IntArray, weight: Array, plan: Plan) -> tuple[Array, Array]:
        """(S,) mean over folds of the ranking AUC (balanced accuracy if classes are many), and its standard error.

        A fold counts by its pairs of a positive and a negative row, as AUC over the pairs within folds does. Where no
        fold tests two classes, as in leave-one-out, the folds are pooled and there is no error. Folds that overlap are
        not independent: the variance of their mean is s^2 (1 / folds + overlap) (Nadeau and Bengio 2003).
        """
        y, weight = y[self.rows], weight[self.rows]
        folds = [self.fold == k for k in np.unique(self.fold)]
        score = plan.outcome.score
        table = np.array([[score(v[fold], y[fold], weight[fold]) for fold in folds] for v in self.values])
        if np.isnan(table).all():
            pooled = np.array([score(v, y, weight) for v in self.values])
            return pooled, np.zeros(len(pooled))
        pairs = np.array([plan.outcome.pairs(y[fold], weight[fold]) for fold in folds])
        with np.errstate(all="ignore"):
            count = np.sum(~np.isnan(table), axis=1)
            spread = np.nanstd(table, axis=1, ddof=1) if table.shape[1] > 1 else np.zeros(len(table))
            error = spread * np.sqrt(1.0 / count + self.overlap)
        share = np.where(np.isnan(table), 0.0, pairs)
        return np.sum(share * np.nan_to_num(table), axis=1) / share.sum(axis=1), np.nan_to_num(error)


def size_grid(most: int, smallest: int) -> tuple[int, ...]:
    """All sizes if they are few, else about forty up to `most`, each a fixed share of the one before."""
    geometric = {round(size) for size in np.geomspace(1, most, min(most, MOST_SIZES))}
    return tuple(size for size in sorted(geometric) if size >= smallest) or (most,)


def hold_out(
    plan: Plan,
    part: Part,
    sizes: tuple[int, ...],
    folds: Sequence[tuple[IntArray, IntArray]],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
) -> HeldOut:
    """Run search and machine in each fold's training rows; decision values of its other rows at each size."""
    seeds = zip(folds, seed.spawn(len(folds)), strict=True)
    tasks = (delayed(_one_fold)(plan, part, train, test, sizes, child) for (train, test), child in seeds)
    tested = np.bincount(np.concatenate([test for _, test in folds])).max()
    return HeldOut.of(sizes, parallel(n_jobs)(tasks), len(folds[0][1]) / len(folds[0][0]) if tested > 1 else 0.0)


def _one_fold(
    plan: Plan, part: Part, train: IntArray, test: IntArray, sizes: tuple[int, ...], seed: np.random.SeedSequence
) -> Member:
    with one_thread():
        searched = run_search(plan, part.take(train), np.random.default_rng(seed))
        return Member.of(plan, searched, sizes, part, test)


def inner_folds(
    cv: Any, part: Part, names: Sequence[Any], rng: np.random.Generator, repeated: bool = False
) -> tuple[list[Splits], str | None]:
    """The splits of a part, stratified (and by group where there are groups), and a remark where fewer were made.

    A whole number `cv` is lowered to what the rarest class can fill; with `repeated` such folds are drawn several times
    where the part is small, since a curve over sizes from one draw of few rows is mostly noise.
    """
    if not isinstance(cv, (int, np.integer)):
        return [_given_folds(cv, part, names)], None
    if cv < 2:
        raise InputError(f"cv is {cv!r}; it must be 2 or more, or a splitter of scikit-learn")
    count, rarest = rarest_class(part, names)
    k = min(int(cv), count)
    remark = None
    if k < cv:
        what = f"{count} {unit_name(part.groups)}"
        remark = f"class {rarest!r} has {what}, fewer than cv={cv}: {k} inner folds were made"
    times = next((some for rows, some in REPEATS if len(part.y) <= rows), 1) if repeated else 1
    return [stratified_folds(part.y, part.groups, k, int(rng.integers(2**31))) for _ in range(times)], remark


def rarest_class(part: Part, names: Sequence[Any]) -> tuple[int, Any]:
    """How many samples (or groups) the rarest class has, and its name; refuses fewer than two."""
    counts = units_per_class(part.y, part.groups, len(names))
    rarest = int(np.argmin(counts))
    if counts[rarest] < 2:
        raise InputError(
            f"class {names[rarest]!r} has {counts[rarest]} {unit_name(part.groups)}: inner folds need at least 2 of "
            "each class; to do without them give n_features_to_select a number and threshold='margin'"
        )
    return counts[rarest], names[rarest]


def _given_folds(cv: Any, part: Part, names: Sequence[Any]) -> Splits:
    """The folds of a splitter or of a list of (train, test) rows; each training side must hold every class."""
    try:
        splits = cv.split(np.zeros(len(part.y)), part.y, part.groups) if hasattr(cv, "split") else cv
        folds = [(np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)) for a, b in splits]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cv is {cv!r}; it must be a whole number, a splitter or a list of splits ({error})"
        ) from error
    _check_rows(folds, len(part.y))
    for k, (train, _) in enumerate(folds):
        if len(lost := np.setdiff1d(np.arange(len(names)), part.y[train])):
            raise InputError(f"fold {k} of cv trains without class {names[int(lost[0])]!r}: use a stratified splitter")
    if len(lost := np.setdiff1d(np.arange(len(names)), part.y[np.concatenate([test for _, test in folds])])):
        raise InputError(f"no fold of cv tests class {names[int(lost[0])]!r}: use a stratified splitter")
    return folds


def _check_rows(folds: Splits, m: int) -> None:
    """Refuse folds without rows, and rows that are not there."""
    if not folds:
        raise InputError("cv makes no fold; it must make at least one pair of training and test rows")
    for k, fold in enumerate(folds):
        for side, rows in zip(("train", "test"), fold, strict=True):
            if rows.ndim != 1 or not len(rows):
                raise InputError(f"fold {k} of cv has no list of rows to {side}")
            if rows.min() < 0 or rows.max() >= m:
                wrong = int(rows.min() if rows.min() < 0 else rows.max())
                raise InputError(f"fold {k} of cv names the row {wrong} to {side}; the rows are 0 to {m - 1}")


def choose_size(sizes: Sequence[int], score: Array, columns: int, rule: str) -> int:
    """The size with the best smoothed score; with "auto" less a price for being far from what is usual.

    ::

        "best"  maximises  s(k),      "auto"  s(k) - 0.002 log2(k / k0)^2,      k0 = min(50, sqrt(columns))

    s is the mean score over neighbouring sizes (`smoothed`). The price is what makes the size repeatable: where the
    curve is flat the size is near k0, and a curve that rises or falls by more than the price moves it.
    """
    at = np.asarray(sizes, dtype=float)
    value = smoothed(at, score)
    if rule == "auto":
        value = value - PRICE * np.log2(at / min(USUAL_SIZE, np.sqrt(columns))) ** 2
    return int(at[value >= value.max() - 1e-12].min())


def smoothed(sizes: Array, score: Array) -> Array:
    """The mean score over sizes within a factor of two, with weights that fall linearly in the logarithm."""
    apart = np.abs(np.log2(sizes[:, None] / sizes[None, :]))
    weight = np.clip(1.0 - apart, 0.0, None)
    return np.asarray(weight @ score / weight.sum(axis=1))
