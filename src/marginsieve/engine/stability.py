"""How alike are the feature sets that a method selects on different training parts?

Sets are rows of Z (M, d) in {0, 1}; p_f is the share of sets with feature f, k_i the size of set i.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..contracts import Array, IntArray
from ..errors import InputError

FEWEST_FOR_INTERVAL = 20  # below, the 95 % interval covers far less than 95 %


@dataclass(frozen=True)
class Stability:
    """Nogueira's measure: 1 = always the same set, 0 = as expected of random sets of these sizes.

    `low` and `high` are nan for fewer than 20 sets. They take the sets as independent; cross-validation folds share
    rows, so the interval is too narrow for them.
    """

    value: float
    low: float
    high: float
    sets: int


def as_matrix(sets: Iterable[IntArray | Sequence[int]], n_features: int) -> Array:
    """(M, d) of 0 and 1 from lists of feature numbers."""
    rows = [np.asarray(members, dtype=np.intp) for members in sets]
    Z = np.zeros((len(rows), n_features))
    for i, members in enumerate(rows):
        if len(members) and (members.min() < 0 or members.max() >= n_features):
            raise InputError(f"set {i} names a feature outside 0..{n_features - 1}")
        Z[i, members] = 1.0
    if len(Z) < 2:
        raise InputError(f"{len(Z)} feature sets were given; stability needs at least 2")
    return Z


def nogueira(sets: Iterable[IntArray | Sequence[int]], n_features: int, level: float = 0.95) -> Stability:
    """1 - mean_f [M/(M-1) p_f (1 - p_f)] / [(kbar/d)(1 - kbar/d)], with its large-sample interval.

    p_f is the share of the M sets with feature f, kbar their mean size. 1 means always the same set, 0 what is expected
    of random sets of these sizes.

    Parameters
    ----------
    sets : iterable of array of int
        Feature numbers of each set, two sets or more.
    n_features : int
        Number of features d that the sets are chosen from.
    level : float, default=0.95
        Level of the interval.

    Returns
    -------
    Stability
        `value`, `low`, `high` and `sets`, the number of sets; `low` and `high` are nan for fewer than 20 sets.

    References
    ----------
    Nogueira, Sechidis and Brown, On the stability of feature selection algorithms, Journal of Machine Learning Research
    18 (2018) 1-54.

    Examples
    --------
    >>> from marginsieve.engine import nogueira
    >>> round(float(nogueira([[0, 1], [0, 1], [0, 2]], n_features=5).value), 3)
    0.444
    """
    Z = as_matrix(sets, n_features)
    M, d = Z.shape
    k, p = Z.sum(axis=1), Z.mean(axis=0)
    share = k.mean() / d
    if share in (0.0, 1.0):
        return Stability(float("nan"), float("nan"), float("nan"), M)
    phi = 1 - M / (M - 1) * float(np.mean(p * (1 - p))) / (share * (1 - share))
    if M < FEWEST_FOR_INTERVAL:
        return Stability(phi, float("nan"), float("nan"), M)
    sizes = k / d
    part = (Z @ p / d - sizes * share + 0.5 * phi * (2 * sizes * share - sizes - share + 1)) / (share * (1 - share))
    variance = 4 / M**2 * float(np.sum((part - part.mean()) ** 2))
    reach = float(stats.norm.ppf(0.5 + level / 2)) * np.sqrt(variance)
    return Stability(phi, phi - reach, min(phi + reach, 1.0), M)


def kuncheva(sets: Iterable[IntArray | Sequence[int]], n_features: int) -> float:
    """Mean over pairs of ``(|A and B| - k^2/d) / (k - k^2/d)``; all sets must have the same size k.

    Parameters
    ----------
    sets : iterable of array of int
        Feature numbers of each set, two sets or more.
    n_features : int
        Number of features d that the sets are chosen from.

    Returns
    -------
    float
        Kuncheva's index.

    Examples
    --------
    >>> from marginsieve.engine import kuncheva
    >>> round(kuncheva([[0, 1], [0, 1], [0, 2]], n_features=5), 3)
    0.444
    """
    Z = as_matrix(sets, n_features)
    sizes = np.unique(Z.sum(axis=1))
    if len(sizes) > 1:
        raise InputError(
            f"Kuncheva's index needs sets of one size; these have {int(sizes[0])} to {int(sizes[-1])} features: "
            "use nogueira, which equals it at one size"
        )
    k, d = float(sizes[0]), n_features
    if k in (0.0, float(d)):
        return float("nan")
    common = _pairs(Z @ Z.T)
    return float(np.mean((common - k * k / d) / (k - k * k / d)))


def jaccard(sets: Iterable[IntArray | Sequence[int]], n_features: int) -> float:
    """Mean over pairs of ``|A and B| / |A or B|``; two empty sets count as equal.

    Parameters
    ----------
    sets : iterable of array of int
        Feature numbers of each set, two sets or more.
    n_features : int
        Number of features d that the sets are chosen from.

    Returns
    -------
    float
        The mean Jaccard index.

    Examples
    --------
    >>> from marginsieve.engine import jaccard
    >>> round(jaccard([[0, 1], [0, 1], [0, 2]], n_features=5), 3)
    0.556
    """
    Z = as_matrix(sets, n_features)
    common, k = Z @ Z.T, Z.sum(axis=1)
    union = k[:, None] + k[None, :] - common
    return float(np.mean(_pairs(np.where(union > 0, common / np.where(union > 0, union, 1.0), 1.0))))


def _pairs(matrix: Array) -> Array:
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])
