"""Comparing methods over data sets: ranks, Friedman, Nemenyi, Holm, Wilcoxon, bootstrap (Demsar 2006).

A table holds one score per data set (row, a block) and method (column), higher is better. Average over splits and
subset sizes first: the same data counted many times makes any difference significant.

A method is compared with the others only where it was named beforehand, as the control: the method that came out best
is best by chance in part, and a test of the others against it exceeds its level.

`describe` says how hard a data set is: its size, its class shares, and how far the classes overlap.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ..contracts import Array, IntArray, is_sparse
from ..data.table import Schema
from ..errors import InputError, listing
from ..outcomes import Classes
from ..report.figures import COLOURS, new_figure, save_figure

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """Methods side by side over the same data sets, best average rank first.

    Attributes
    ----------
    methods : tuple of str
        Names of the methods.
    scores : array of shape (data sets, methods)
        Scores, higher is better.
    ranks : array of shape (methods,)
        Average rank of each method, 1 is the best.
    chi2 : float
        Friedman's statistic, corrected for ties.
    p_value : float
        Its p-value.
    f_statistic : float
        Statistic of Iman and Davenport.
    f_p_value : float
        Its p-value.
    critical_difference : float
        Nemenyi's critical difference of average ranks.
    alpha : float
        Significance level.
    control : str or None
        Method that the others are tested against, named before the scores were known.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.bench import compare
    >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
    >>> comparison = compare(scores)
    >>> comparison.methods, comparison.ranks
    (('a', 'b', 'c'), array([1. , 2.5, 2.5]))
    """

    methods: tuple[str, ...]
    scores: Array  # (data sets, methods)
    ranks: Array  # (methods,) average rank, 1 = best
    chi2: float  # Friedman's statistic, corrected for ties
    p_value: float
    f_statistic: float  # of Iman and Davenport
    f_p_value: float
    critical_difference: float  # Nemenyi
    alpha: float
    control: str | None = None

    def summary(self) -> dict[str, Any]:
        """The comparison as plain values, and in words which pairs differ, or what the control's test is.

        Returns
        -------
        dict
            Means with their intervals and ranks, Friedman's p-value, the critical difference, a sentence.

        Examples
        --------
        >>> import pandas as pd
        >>> from marginsieve.bench import compare
        >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
        >>> compare(scores).summary()["text"]
        'No pair differs.'
        """
        text = f"p-values are against {self.control}, with Holm's correction."
        if self.control is None:
            pairs = self.pairs()
            known = pairs[pairs["p_nemenyi"] <= self.alpha].to_dict("records")
            named = ", ".join(f"{row['first']} and {row['second']}" for row in known)
            text = f"Pairs that differ: {named}." if known else "No pair differs."
        return {
            "means": self.table().to_dict("records"),
            "p_value": self.p_value,
            "critical_difference": self.critical_difference,
            "alpha": self.alpha,
            "control": self.control,
            "text": text,
        }

    def table(self) -> pd.DataFrame:
        """By method: mean score with its bootstrap interval over data sets, average rank, test against the control.

        Returns
        -------
        DataFrame
            Columns method, mean, low, high and rank; with a control also p_alone, the exact p-value of the difference
            of average ranks, and p_against_control, the same after Holm's correction (nan for the control itself).
            Without a control, `pairs` has the p-values.

        Examples
        --------
        >>> import pandas as pd
        >>> from marginsieve.bench import compare
        >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
        >>> compare(scores).table()[["method", "rank"]]
          method  rank
        0      a   1.0
        1      b   2.5
        2      c   2.5
        >>> compare(scores, control="c").table()[["method", "p_against_control"]].round(2)
          method  p_against_control
        0      a                0.1
        1      b                1.0
        2      c                NaN
        """
        import pandas as pd

        mean, low, high = bootstrap_mean(self.scores)
        columns = {"method": self.methods, "mean": mean, "low": low, "high": high, "rank": self.ranks}
        if self.control is not None:
            ranks, control = rank_rows(self.scores), self.methods.index(self.control)
            columns["p_alone"] = alone_against(ranks, control)
            columns["p_against_control"] = holm_against(ranks, control)
        return pd.DataFrame(columns)

    def pairs(self) -> pd.DataFrame:
        """By pair of methods: difference of mean scores, Nemenyi's p-value, Wilcoxon's signed-rank p-value.

        Returns
        -------
        DataFrame
            Columns first, second, difference, p_nemenyi (for all pairs together), p_wilcoxon (of this pair alone) and
            p_wilcoxon_holm (adjusted over all pairs).

        Examples
        --------
        >>> import pandas as pd
        >>> from marginsieve.bench import compare
        >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
        >>> compare(scores).pairs()[["first", "second", "difference"]].round(3)
          first second  difference
        0     a      b       0.100
        1     a      c       0.138
        2     b      c       0.038
        """
        import pandas as pd

        rows = []
        for a, b in itertools.combinations(range(len(self.methods)), 2):
            first, second = self.scores[:, a], self.scores[:, b]
            p_nemenyi = nemenyi_p(self.ranks[b] - self.ranks[a], self.scores)
            difference = float(np.mean(first - second))
            rows.append((self.methods[a], self.methods[b], difference, p_nemenyi, wilcoxon_p(first, second)))
        frame = pd.DataFrame(rows, columns=["first", "second", "difference", "p_nemenyi", "p_wilcoxon"])
        frame["p_wilcoxon_holm"] = holm(frame["p_wilcoxon"].to_numpy(dtype=float))
        return frame

    def groups(self) -> list[tuple[int, int]]:
        """Runs of methods whose average ranks do not differ by the critical difference; the longest only.

        Returns
        -------
        list of (int, int)
            First and last method of each run, by rank.

        Examples
        --------
        >>> import pandas as pd
        >>> from marginsieve.bench import compare
        >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
        >>> compare(scores).groups()
        [(0, 2)]
        """
        runs: list[tuple[int, int]] = []
        for first in range(len(self.methods)):
            last = int(np.flatnonzero(self.ranks - self.ranks[first] <= self.critical_difference)[-1])
            if last > first and (not runs or last > runs[-1][1]):
                runs.append((first, last))
        return runs

    def plot(self, path: str | Path | None = None, blocks: str = "data sets") -> Any:
        """Plot the critical-difference diagram (matplotlib, the extra `marginsieve[plot]`).

        Average ranks on a line, best to the left; bars join methods that Nemenyi's test does not tell apart.

        Parameters
        ----------
        path : str, path or None, default=None
            File to write (.svg, .png or .pdf); None writes none.
        blocks : str, default="data sets"
            Name of the rows of the table of scores.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import pandas as pd
        >>> from marginsieve.bench import compare
        >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
        >>> len(compare(scores).plot().axes)
        1
        """
        k = len(self.methods)
        bars = self.groups()
        half = (k + 1) // 2
        height = 1.1 + 0.18 * len(bars) + 0.26 * half
        figure, axes = new_figure(7.5, height)
        axes.axis("off")
        axes.set_xlim(1 - 0.55 * k, k + 0.55 * k)
        axes.set_ylim(-(0.9 + 0.5 * len(bars) + 1.0 * half), 2.1)
        axes.hlines(0, 1, k, color="black", lw=1.2)
        for tick in range(1, k + 1):
            axes.vlines(tick, 0, 0.18, color="black", lw=1.2)
            axes.text(tick, 0.3, str(tick), ha="center", va="bottom", fontsize=9)
        width = self.critical_difference
        axes.hlines(1.35, 1, 1 + width, color="black", lw=2)
        axes.text(1, 1.5, f"CD = {width:.2f} ({self.alpha:g}), {len(self.scores)} {blocks}", fontsize=9)
        for row, (first, last) in enumerate(bars):
            y = -0.35 - 0.5 * row
            axes.hlines(y, self.ranks[first] - 0.04, self.ranks[last] + 0.04, color=COLOURS[0], lw=3.5)
        for j, (name, rank) in enumerate(zip(self.methods, self.ranks, strict=True)):
            left = j < half
            y = -(0.7 + 0.5 * len(bars) + 1.0 * (j if left else k - 1 - j))
            edge = 1 - 0.08 * k if left else k + 0.08 * k
            axes.plot([rank, rank, edge], [0, y, y], color="black", lw=0.8)
            align = "right" if left else "left"
            axes.text(edge + (-0.05 if left else 0.05), y, f"{name}  {rank:.2f}", ha=align, va="center", fontsize=9.5)
        return save_figure(figure, path)


def compare(scores: pd.DataFrame, alpha: float = 0.05, control: str | None = None) -> Comparison:
    """Compare the columns of a table of scores (data sets x methods).

    Parameters
    ----------
    scores : DataFrame of shape (data sets, methods)
        Scores, higher is better; no cell may be missing. Average over splits and sizes first: repeated scores of the
        same data set are not independent.
    alpha : float, default=0.05
        Significance level.
    control : str or None, default=None
        Method that the others are tested against. Name it before the scores are known: tests against the method that
        came out best are wrong more often than `alpha` says. None tests all pairs.

    Returns
    -------
    Comparison
        Ranks and tests.

    References
    ----------
    Demsar, Statistical comparisons of classifiers over multiple data sets, Journal of Machine Learning Research 7
    (2006) 1-30.

    Examples
    --------
    >>> import pandas as pd
    >>> from marginsieve.bench import compare
    >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.85, 0.7], "b": [0.8, 0.7, 0.75, 0.6], "c": [0.7, 0.75, 0.6, 0.65]})
    >>> comparison = compare(scores)
    >>> comparison.methods[0], round(comparison.p_value, 3)
    ('a', 0.05)
    """
    values = scores.to_numpy(dtype=float)
    if values.shape[0] < 2 or values.shape[1] < 2:
        raise InputError(f"a comparison needs at least 2 data sets and 2 methods; the table is {values.shape}")
    if np.isnan(values).any():
        row, column = (int(v) for v in np.argwhere(np.isnan(values))[0])
        raise InputError(f"there is no score of {scores.columns[column]} on {scores.index[row]}: fill or leave out one")
    names = [str(name) for name in scores.columns]
    if control is not None and control not in names:
        raise InputError(f"control is {control!r}; it must be one of the methods: {listing(names, 10)}")
    by_block = rank_rows(values)
    order = np.argsort(by_block.mean(axis=0), kind="stable")
    values, by_block = values[:, order], by_block[:, order]
    methods, ranks = tuple(names[j] for j in order), by_block.mean(axis=0)
    return Comparison(methods, values, ranks, *friedman(by_block), critical_difference(by_block, alpha), alpha, control)


def rank_rows(scores: Array) -> Array:
    """(N, k) ranks in each row, 1 = highest, ties shared."""
    return np.asarray(stats.rankdata(-scores, axis=1))


def _spread(ranks: Array) -> float:
    """sum over blocks of sum_j (r_bj - (k + 1)/2)^2: N k (k^2 - 1) / 12 without ties."""
    return float(np.sum((ranks - (ranks.shape[1] + 1) / 2) ** 2))


def _error(ranks: Array) -> float:
    """The standard error of a difference of two average ranks."""
    n, k = ranks.shape
    return float(np.sqrt(2 * _spread(ranks) / ((k - 1) * n * n)))


def friedman(ranks: Array) -> tuple[float, float, float, float]:
    """(chi2, p, F, p of F) of ranks (N, k): do the methods differ at all? F is Iman and Davenport's, less timid."""
    n, k = ranks.shape
    spread = _spread(ranks)
    if spread == 0:
        return 0.0, 1.0, 0.0, 1.0
    between = n * n * float(np.sum((ranks.mean(axis=0) - (k + 1) / 2) ** 2))
    chi2 = (k - 1) * between / spread
    p = float(stats.chi2.sf(chi2, k - 1))
    rest = n * (k - 1) - chi2
    if rest <= 1e-12:
        return chi2, p, float("inf"), 0.0
    f = (n - 1) * chi2 / rest
    return chi2, p, f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def critical_difference(ranks: Array, alpha: float = 0.05) -> float:
    """Nemenyi: average ranks that are further apart differ. q sqrt(2 sum_b S_b / ((k - 1) N^2)), ties counted."""
    q = float(stats.studentized_range.ppf(1 - alpha, ranks.shape[1], np.inf)) / np.sqrt(2)
    return float(q * _error(ranks))


def nemenyi_p(difference: float, scores: Array) -> float:
    """The p-value of a difference of average ranks, over all pairs."""
    error = _error(rank_rows(scores))
    if error == 0:
        return 1.0
    return float(stats.studentized_range.sf(abs(difference) / error * np.sqrt(2), scores.shape[1], np.inf))


def holm(p: Array) -> Array:
    """Holm's step-down adjustment of p-values."""
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    out = np.empty(len(p))
    out[order] = np.minimum(adjusted, 1.0)
    return out


def rank_difference_p(ranks: Array, difference: Array) -> Array:
    """Exact two-sided p-values of differences of two average ranks where all methods are alike.

    Then each row of the ranks (N, k) is in random order, and the difference in a row is that of two of its ranks drawn
    without replacement, ties as they are. Ranks are multiples of 1/2, so the distribution of the sum over the rows is a
    convolution on a lattice.
    """
    n, k = ranks.shape
    total = np.ones(1)  # of twice the sum of the differences, from -2 (k - 1) rows to 2 (k - 1) rows
    for row in np.round(2 * ranks).astype(np.intp):
        gaps = (row[:, None] - row)[~np.eye(k, dtype=bool)]
        total = np.convolve(total, np.bincount(gaps + 2 * (k - 1), minlength=4 * (k - 1) + 1) / len(gaps))
    size = np.abs(np.arange(len(total)) - len(total) // 2)
    tail = np.bincount(size, weights=total)[::-1].cumsum()[::-1]
    return np.asarray(np.minimum(tail[np.round(2 * n * np.abs(difference)).astype(np.intp)], 1.0))


def alone_against(ranks: Array, control: int) -> Array:
    """(k,) p-values of the methods' average ranks against the control's, each by itself; nan for the control."""
    average = ranks.mean(axis=0)
    out = rank_difference_p(ranks, average - average[control])
    out[control] = np.nan
    return out


def holm_against(ranks: Array, control: int) -> Array:
    """(k,) the same after Holm."""
    out = alone_against(ranks, control)
    others = np.delete(np.arange(len(out)), control)
    out[others] = holm(out[others])
    return out


def wilcoxon_p(a: Array, b: Array) -> float:
    """Two-sided signed-rank test of paired scores as scipy does it; 1 if all differences are zero.

    Exact where no two differences are equal in size, none is zero and there are at most 50. Otherwise zeros are left
    out and the p-value is that of the permutations of the signs (up to 13 pairs) or of the normal distribution,
    corrected for ties. Differences that agree to 12 decimals count as equal.

    Parameters
    ----------
    a, b : array of shape (n,)
        Scores of two methods.

    Returns
    -------
    float
        The p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.bench import wilcoxon_p
    >>> wilcoxon_p(np.array([0.9, 0.8, 0.7, 0.95]), np.array([0.8, 0.6, 0.4, 0.55]))
    0.125
    """
    difference = np.round(a - b, 12)
    return float(stats.wilcoxon(difference).pvalue) if difference.any() else 1.0


def bootstrap_mean(
    scores: Array, draws: int = 10_000, level: float = 0.95, seed: int = 0
) -> tuple[Array, Array, Array]:
    """(mean, low, high) by column: percentile intervals over data sets."""
    n = len(scores)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws) / n
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(weights @ scores, [tail, 100 - tail], axis=0)
    return scores.mean(axis=0), low, high


# -- how hard a table is ----------------------------------------------------------------------------------------------


def describe(X: Any, y: Any) -> pd.Series:
    """Size, class shares and class overlap of a table.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        The table.
    y : array-like of shape (n_samples,)
        The classes.

    Returns
    -------
    Series
        features, samples, minority_percent and majority_percent (the shares of the rarest class and of the others, in
        per cent), imbalance_ratio, and gfr: the generalised Fisher ratio of the numeric columns (Euclidean distances,
        missing cells left out), ``sum_k n_k |m - m_k| / sum_k sum_i |x_i - m_k|``, m the mean, m_k the mean of class k.
        A low gfr means that the classes overlap.

    Examples
    --------
    >>> from marginsieve import describe
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, prevalence=0.25, random_state=0)
    >>> describe(cohort.X, cohort.y)[["features", "samples", "minority_percent", "imbalance_ratio"]].tolist()
    [10.0, 60.0, 25.0, 3.0]
    """
    import pandas as pd

    target = Classes().read(X, y)
    target.refuse()
    strata, columns = target.strata, Schema.from_table(X)
    Z = columns.encode(X)
    Z = Z.toarray() if is_sparse(Z) else Z
    fewest, m = min(target.row_counts), len(target)
    return pd.Series(
        {
            "features": Z.shape[1],
            "samples": Z.shape[0],
            "minority_percent": 100 * fewest / m,
            "majority_percent": 100 * (1 - fewest / m),
            "imbalance_ratio": (m - fewest) / fewest,
            "gfr": generalised_fisher_ratio(Z[:, [kind != "nominal" for kind in columns.kind]], strata),
        }
    )


def generalised_fisher_ratio(Z: Array, strata: IntArray) -> float:
    """Between-class over within-class distance, both summed over samples."""
    if Z.shape[1] == 0:
        return float("nan")
    whole, between, within = np.nanmean(Z, axis=0), 0.0, 0.0
    for stratum in np.unique(strata):
        part = Z[strata == stratum]
        centre = np.nanmean(part, axis=0)
        between += len(part) * float(np.sqrt(np.nansum((whole - centre) ** 2)))
        within += float(np.sqrt(np.nansum((part - centre) ** 2, axis=1)).sum())
    return between / within if within > 0 else float("inf")
