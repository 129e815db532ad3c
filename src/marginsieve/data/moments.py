"""What is remembered of a model's training columns, and how the columns of a new cohort are brought to their scale.

    d = (mean_B - mean_A) / sd_A,    r = log(sd_B / sd_A)

of each column, A the training rows and B the new ones. No outcome of the new rows is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Matrix, is_sparse
from ..errors import InputError, listing, shown_value

ALIGNMENTS = ("none", "location", "location-scale", "quantiles")
FEWEST_ALIGNED = 10  # rows of a cohort below which its own moments say too little
FEWEST_UNSHRUNKEN = 20  # rows from which on shifts and ratios are taken as they are
FEWEST_COUNTED = 10  # filled cells of a column of a cohort below which its shift is not known; or all of its rows
GRID = 101  # quantiles that are remembered of a column
FEWEST_CELLS = 3  # of a column whose quantiles are matched
MOST_RATIO = 8.0  # of log deviations
MOST_CELLS = 2**26  # of the selected columns, beyond which nothing is remembered of them


@dataclass(frozen=True)
class ColumnMoments:
    """Means and variances of columns by stratum (class), and quantiles over all rows; categories have none.

    Parameters
    ----------
    names : tuple of str
        The columns.
    numeric : array of bool of shape (p,)
        Which of them are numbers.
    rows : array of shape (s,)
        Weight of the rows in each stratum.
    count, mean, variance : arrays of shape (s, p)
        Weight of the filled cells, their mean, their variance (0 where there is no cell).
    missing : array of shape (p,)
        Share of empty cells.
    quantiles : array of shape (101, p)
        From the smallest to the largest filled cell; nan for categories.
    """

    names: tuple[str, ...]
    numeric: BoolArray
    rows: Array
    count: Array
    mean: Array
    variance: Array
    missing: Array
    quantiles: Array

    @classmethod
    def of_rows(
        cls, Z: Matrix, names: Sequence[str], kinds: Sequence[str], strata: IntArray, weight: Array | None = None
    ) -> ColumnMoments:
        """Those of rows Z (m, p), each in its stratum; strata are numbered from 0."""
        cells = np.asarray(Z.toarray() if is_sparse(Z) else Z, dtype=np.float64)
        numeric = np.array([kind == "real" for kind in kinds], dtype=bool)
        weight = np.ones(len(cells)) if weight is None else weight
        filled = ~np.isnan(cells)
        count, mean, variance = [], [], []
        for code in range(int(strata.max(initial=0)) + 1):
            share = np.where((strata == code)[:, None] & filled & numeric, weight[:, None], 0.0)
            total = share.sum(axis=0)
            safe = np.maximum(total, 1e-300)
            # each column is brought near 0 and 1 first, so that squares of large numbers are numbers
            middle = (share * np.where(filled, cells, 0.0) / safe).sum(axis=0)
            away = np.where(share > 0, cells - middle, 0.0)
            unit = np.abs(away).max(axis=0, initial=0.0)
            unit = np.where(unit > 0, unit, 1.0)
            count.append(total)
            mean.append(middle)
            variance.append((share * (away / unit) ** 2 / safe).sum(axis=0) * unit**2)
        quantiles = np.full((GRID, len(numeric)), np.nan)
        for j in np.flatnonzero(numeric & filled.any(axis=0)):
            quantiles[:, j] = np.quantile(cells[filled[:, j], j], np.linspace(0.0, 1.0, GRID))
        rows = np.bincount(strata, weight, minlength=len(count))
        missing = 1.0 - (weight @ filled) / max(float(weight.sum()), 1e-300)
        return cls(
            tuple(names),
            numeric,
            np.asarray(rows, dtype=np.float64),
            np.array(count),
            np.array(mean),
            np.array(variance),
            missing.clip(0.0),
            quantiles,
        )

    def take(self, order: IntArray) -> ColumnMoments:
        """Those of some of the columns, in this order."""
        of_strata = {name: getattr(self, name)[:, order] for name in ("count", "mean", "variance", "quantiles")}
        names, numeric = tuple(self.names[k] for k in order), self.numeric[order]
        return replace(self, names=names, numeric=numeric, missing=self.missing[order], **of_strata)

    def pool(self, shares: Array | None = None) -> tuple[Array, Array, Array]:
        """(p,) means, deviations (with n - 1) and numbers of filled cells, with these shares of the strata.

        Without shares the strata weigh what they weigh in the rows.
        """
        factor = np.ones(len(self.rows)) if shares is None else shares / np.maximum(self.rows / self.rows.sum(), 1e-300)
        part = self.count * factor[:, None]
        total = np.maximum(part.sum(axis=0), 1e-300)
        mean = (part * self.mean).sum(axis=0) / total
        unit = np.sqrt(self.variance).max(axis=0) + np.abs(self.mean - mean).max(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        spread = (part * (self.variance / unit**2 + ((self.mean - mean) / unit) ** 2)).sum(axis=0) / total
        n = self.count.sum(axis=0)
        deviation = np.sqrt(spread * np.maximum(n, 2.0) / (np.maximum(n, 2.0) - 1.0)) * unit
        return mean, deviation, n

    @property
    def shares(self) -> Array:
        """(s,) the share of each stratum."""
        return np.asarray(self.rows / self.rows.sum())


@dataclass(frozen=True)
class ColumnShift:
    """How far columns of new rows are from the training rows; nan where that cannot be said.

    Attributes
    ----------
    mean, deviation, new_mean, new_deviation : arrays of shape (p,)
        Of the training rows and of the new ones.
    shift, shift_variance : arrays of shape (p,)
        d, and what sampling alone gives it.
    ratio, ratio_variance : arrays of shape (p,)
        r, likewise.
    """

    mean: Array
    deviation: Array
    new_mean: Array
    new_deviation: Array
    shift: Array
    shift_variance: Array
    ratio: Array
    ratio_variance: Array

    @classmethod
    def between(cls, training: ColumnMoments, new: ColumnMoments, shares: Array | None = None) -> ColumnShift:
        """From the training columns, with these shares of their strata, to those of the new rows."""
        mean, deviation, n = training.pool(shares)
        new_mean, new_deviation, new_n = new.pool()
        # a column without spread has no unit; of a few cells among many rows the mean says nothing
        fewest = max(2.0, min(FEWEST_COUNTED, float(new.rows.sum())))
        known = training.numeric & (deviation > 1e-9 * np.maximum(np.abs(mean), 1e-300)) & (n >= 2) & (new_n >= fewest)
        unit = np.where(known, deviation, np.nan)
        spread = np.where(known & (new_deviation > 1e-9 * np.maximum(np.abs(new_mean), 1e-300)), new_deviation, np.nan)
        with np.errstate(all="ignore"):
            shift = (new_mean - mean) / unit
            scale = np.where(known, new_deviation, np.nan) / unit
            shift_variance = scale**2 / np.maximum(new_n, 2.0) + 1.0 / n
            ratio = np.log(spread / unit)
            ratio_variance = 0.5 / np.maximum(new_n - 1.0, 1.0) + 0.5 / np.maximum(n - 1.0, 1.0)
        return cls(mean, unit, new_mean, spread, shift, shift_variance, ratio, ratio_variance)

    @property
    def gate(self) -> float | None:
        """s = sqrt(mean over columns of d^2 less its sampling variance), 0 where sampling explains it all."""
        known = np.isfinite(self.shift)
        if not known.any():
            return None
        return float(np.sqrt(max(float(np.mean(self.shift[known] ** 2 - self.shift_variance[known])), 0.0)))


@dataclass(frozen=True)
class Alignment:
    """A map of each numeric column of a cohort to the scale of the training rows.

    x -> centre + (x - middle) factor, or by matched quantiles: `source` and `matched`, (q, p), of which nan is none.

    Parameters
    ----------
    how : str
        "location", "location-scale" or "quantiles".
    names : tuple of str
        The columns.
    centre, middle, factor : arrays of shape (p,)
        Of the map; a column that is left as it is has the centre of its middle and the factor 1.
    source, matched : arrays of shape (q, p)
        Quantiles of the cohort and of the training rows; of no rows where quantiles are not matched.
    rows : int
        Rows of the cohort whose moments these are.
    weighted : str
        To what the training rows were weighted first, in words.
    cohort : str
        What that cohort is called; "" where it has no name.
    """

    how: str
    names: tuple[str, ...]
    centre: Array
    middle: Array
    factor: Array
    source: Array
    matched: Array
    rows: int
    weighted: str = ""
    cohort: str = ""

    def describe(self) -> str:
        """What was done, in words."""
        whose = f"{self.rows} rows of {self.cohort or 'their own cohort'}{self.weighted}"
        other = "; rows of another cohort are not where the model expects them" if self.cohort else ""
        return f"columns were aligned ({self.how}) by {whose}{other}"

    def apply(self, Z: Array, columns: IntArray) -> Array:
        """A copy of rows Z (m, n) whose columns with these numbers are mapped."""
        out = np.array(Z, dtype=np.float64, order="F")
        for k, j in enumerate(columns):
            cells = out[:, j]
            if len(self.source) and np.isfinite(self.source[:, k]).all():
                inside = np.interp(cells, self.source[:, k], self.matched[:, k])
                low, high = self.source[0, k], self.source[-1, k]  # what lies outside keeps its distance
                cells = inside + np.minimum(cells - low, 0.0) + np.maximum(cells - high, 0.0)
            else:
                cells = self.centre[k] + (cells - self.middle[k]) * self.factor[k]
            out[:, j] = cells
        return out


def fit_alignment(
    how: str,
    training: ColumnMoments,
    new: ColumnMoments,
    rows: int,
    shares: Array | None = None,
    weighted: str = "",
) -> Alignment:
    """The map from a cohort of so many rows to the training columns, of which the strata have these shares.

    Below 20 rows shifts and ratios are shrunken towards no change, by how much of their spread over the columns
    sampling explains.
    """
    if how not in ALIGNMENTS[1:]:
        raise InputError(f"align is {shown_value(how)}; it must be one of {listing(ALIGNMENTS)}")
    if rows < FEWEST_ALIGNED:
        raise InputError(
            f"the cohort has {rows} rows: to align it by its own rows takes {FEWEST_ALIGNED}; use align='none'"
        )
    known = ColumnShift.between(training, new, shares)
    shift, ratio = known.shift, known.ratio
    if rows < FEWEST_UNSHRUNKEN:
        shift, ratio = _shrink(shift, known.shift_variance), _shrink(ratio, known.ratio_variance)
    unit = np.where(np.isfinite(known.deviation), known.deviation, 1.0)
    middle = known.mean + np.nan_to_num(shift) * unit
    factor = np.exp(-np.clip(np.nan_to_num(ratio), -MOST_RATIO, MOST_RATIO))
    moved = np.isfinite(known.shift)
    centre, middle = np.where(moved, known.mean, 0.0), np.where(moved, middle, 0.0)
    factor = np.where(moved & (how != "location"), factor, 1.0)
    none = np.empty((0, len(centre)))
    plain = Alignment(how, training.names, centre, middle, factor, none, none, rows, weighted)
    if how != "quantiles":
        return plain
    enough = moved & (new.count.sum(axis=0) >= FEWEST_CELLS)
    source = np.where(enough, new.quantiles, np.nan)
    return replace(plain, source=source, matched=np.where(enough, training.quantiles, np.nan))


def _shrink(value: Array, variance: Array) -> Array:
    """Each value times the share of the mean square over columns that sampling does not explain."""
    known = np.isfinite(value) & np.isfinite(variance)
    if not known.any():
        return value
    excess = max(float(np.mean(value[known] ** 2) - np.mean(variance[known])), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(value * excess / np.maximum(excess + variance, 1e-300))
