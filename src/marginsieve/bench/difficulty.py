"""How hard is a table? Its size, its class shares, and how far the classes overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Array, IntArray, is_sparse
from ..data.table import Schema
from ..outcomes import Classes

if TYPE_CHECKING:
    import pandas as pd


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
