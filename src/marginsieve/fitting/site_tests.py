"""Whether sites (laboratories, batches) pass for signal, and whether a model is worse at a site it has not seen.

Both alarms are by permutation, in closed form, and apart from each other:

1. confounding: sites differ in their mix of outcomes, and the columns tell sites apart among rows of one outcome. Then
   a machine may learn the site in place of the outcome. Both parts must be significant.
2. transfer: with whole sites left out the values agree less with the outcome, within the left-out sites, than with
   pseudo-sites of the same sizes and mixes left out. These leave as many rows to train on, which random folds do not.

Sites are permuted among rows of one outcome (stratum), and all rows of a group at once where groups lie in one site.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..contracts import Array, IntArray
from ..outcomes import Target
from ..solvers.execution import one_thread
from ..solvers.ridge import HeldOutRidge
from .evidence import DIGITS, PENALTIES, even_columns, numeric_columns, smallest_p
from .rows import Rows

LEVEL = 0.025  # of each alarm
PERMUTATIONS = 399
NEAR_ONE = 1e-9


@dataclass(frozen=True)
class SiteTests:
    """What permutations of the sites say.

    Attributes
    ----------
    association_p : float
        Whether sites differ in their outcomes.
    columns_p : float
        Whether columns tell sites apart among rows of one outcome.
    left_out, pseudo : float
        How well values of left-out sites go with the outcome within them (AUC of two classes), and the mean of the same
        for pseudo-sites; nan where no site has rows of different outcomes.
    transfer_p : float
        Whether the former is lower; nan likewise.
    column_p : array of shape (n,)
        For each column of the table whether it tells sites apart, adjusted for all columns; nan where it does not vary.
    permutations : int
        Number of permutations.
    complete : bool
        Whether sites and outcomes are the same thing, so that nothing tells them apart.
    """

    association_p: float
    columns_p: float
    left_out: float
    pseudo: float
    transfer_p: float
    column_p: Array
    permutations: int
    complete: bool

    @property
    def is_confounded(self) -> bool:
        """The first alarm."""
        return self.complete or (self.association_p <= LEVEL and self.columns_p <= LEVEL)

    @property
    def loses(self) -> bool:
        """The second alarm."""
        return bool(self.transfer_p <= LEVEL)


def judge_sites(rows: Rows, site: IntArray, rng: np.random.Generator, permutations: int = PERMUTATIONS) -> SiteTests:
    """Both alarms for rows, each of which is of a site, numbered from 0.

    Parameters
    ----------
    rows : Rows
        The table and its outcome.
    site : array of int of shape (m,)
        Site of each row.
    rng : numpy.random.Generator
        Source of the permutations.
    permutations : int, default=399
        Number of permutations.

    Returns
    -------
    SiteTests
        Three p-values and what they are about.
    """
    target = rows.target
    groups = _groups_within(target.groups, site)
    order = _permute(site, target.strata, groups, rng, permutations)
    with one_thread():
        X, owner, features = numeric_columns(rows)
        even = even_columns(X, owner)
        association = _association_p(replace(target, groups=groups), site, rng, permutations)
        apart, columns = _tell_apart(even, owner, target, site, order)
        left, pseudo, transfer = _leave_out(even, target, site, order)
    column_p = np.full(rows.table.shape[1], np.nan)
    column_p[features] = columns
    pairs, several = np.unique(np.stack([site, target.strata]), axis=1), len(np.unique(target.strata)) > 1
    complete = several and pairs.shape[1] == len(np.unique(site)) and association <= LEVEL
    return SiteTests(association, apart, left, pseudo, transfer, column_p, permutations, complete)


def _groups_within(groups: IntArray | None, site: IntArray) -> IntArray | None:
    """The groups, where each lies in one site and some site has several; else rows change places by themselves."""
    if groups is None:
        return None
    pairs = np.unique(np.stack([groups, site]), axis=1)
    within = pairs.shape[1] == len(np.unique(groups)) > len(np.unique(site))
    return groups if within else None


def _permute(
    site: IntArray, strata: IntArray, groups: IntArray | None, rng: np.random.Generator, count: int
) -> IntArray:
    """(count, m) the row from which each row's site comes: one of its stratum, for all rows of a group the same."""
    m = len(site)
    units = np.arange(m) if groups is None else np.unique(groups, return_inverse=True)[1]
    first = np.unique(units, return_index=True)[1]
    stratum = strata[first]
    base, order = np.argsort(stratum, kind="stable"), np.empty((count, len(first)), dtype=np.intp)
    order[:, base] = np.argsort(stratum + rng.random((count, len(first))), axis=1)
    return np.asarray(first[order][:, units])


def _between(values: Array, site: IntArray) -> Array:
    """(d,) sum over sites of the squared sum of values (m, d) there over its rows."""
    inside = _indicators(site).T
    return np.asarray(((inside @ values) ** 2 / inside.sum(axis=1)[:, None]).sum(axis=0))


def _share_as_large(values: Array) -> float:
    """The share of values, the first one included, that are as large as the first."""
    return float(np.mean(values >= values[0] - NEAR_ONE * abs(float(values[0]))))


def _association_p(target: Target, site: IntArray, rng: np.random.Generator, count: int) -> float:
    """Whether outcomes differ between sites, among permutations of the outcomes."""
    basis = target.association().T  # (m, d)
    drawn = [np.arange(len(site)), *target.permutations(count, rng)]
    return _share_as_large(np.array([_between(basis[some], site).sum() for some in drawn]))


def _tell_apart(even: Array, owner: IntArray, target: Target, site: IntArray, order: IntArray) -> tuple[float, Array]:
    """Whether columns tell sites apart among rows of one outcome: all together, or one alone (max-T); p by column."""
    basis = np.linalg.qr(np.column_stack([_indicators(target.strata), target.association().T]))[0]
    rest = even - basis @ (basis.T @ even)
    total = np.maximum((rest**2).sum(axis=0), 1e-300)
    free = max(len(site) - len(np.unique(site)), 1)

    def statistics(some: IntArray) -> tuple[float, Array]:
        between = _between(rest, some)
        ratio = np.bincount(owner, between / np.maximum(total - between, NEAR_ONE * total))
        return float(between.sum()), np.asarray(free * ratio)

    known = [statistics(site), *(statistics(site[some]) for some in order)]
    largest = np.array([columns.max(initial=0.0) for _, columns in known])
    _, p = smallest_p(np.column_stack([[whole for whole, _ in known], largest]))
    ahead = np.sort(largest)
    observed = known[0][1]
    count = len(ahead) - np.searchsorted(ahead, observed - NEAR_ONE * np.abs(observed))
    return p, np.asarray(np.maximum(count, 1) / len(ahead))


def _indicators(strata: IntArray) -> Array:
    """(m, s) whether each row is of each stratum."""
    return np.asarray(strata[:, None] == np.unique(strata), dtype=np.float64)


def _leave_out(even: Array, target: Target, site: IntArray, order: IntArray) -> tuple[float, float, float]:
    """How values of left-out sites go with the outcome within them; the mean over pseudo-sites, and the p."""
    labels = target.linear_outcome
    if not any(target.take(rows).fold_mass > 0 and len(rows) > 2 for rows in _members(site)):
        return float("nan"), float("nan"), float("nan")
    ridge = HeldOutRidge.from_rows(even, np.ones(len(even)), np.random.default_rng(0), site)

    def agreement(some: IntArray) -> float:
        out = replace(ridge, groups=some)
        parts = [out.values(labels.T, penalty * ridge.unit).round(DIGITS).T for penalty in PENALTIES]
        return float(np.mean([agreement_within(target, values, labels, some) for values in parts]))

    observed = agreement(site)
    null = np.array([agreement(site[some]) for some in order])
    null = null[np.isfinite(null)]
    if not np.isfinite(observed) or not len(null):
        return float("nan"), float("nan"), float("nan")
    p = (1.0 + np.count_nonzero(null <= observed + NEAR_ONE)) / (1.0 + len(null))
    return observed, float(null.mean()), float(p)


def _members(site: IntArray) -> list[IntArray]:
    """The rows of each site."""
    return [np.flatnonzero(site == code) for code in np.unique(site)]


def agreement_within(target: Target, values: Array, labels: Array, site: IntArray) -> float:
    """How well values (k, m) go with labels (k, m) within sites, weighted by what the sites can tell."""
    won, mass = 0.0, 0.0
    for rows in _members(site):
        part = target.take(rows)
        share = part.fold_mass
        if share > 0 and len(rows) > 2:
            value = float(part.agreement(values[None][:, :, rows], labels[None][:, :, rows])[0])
            if np.isfinite(value):
                won, mass = won + share * value, mass + share
    return won / mass if mass > 0 else float("nan")
