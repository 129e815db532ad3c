"""What filters share: columns block by block, each over the rows in which it is observed.

Samples count by their weight: whole numbers are counts, any other weights are brought to a mean of 1 first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..algebra.block_products import column_parts
from ..contracts import Array, IntArray, Matrix, TableView, is_sparse
from ..data.table import column_of

TINY = 1e-12  # of the variance of a column: what counts as no variance inside the classes

Score = Callable[[Array, Array, Array], Array]  # columns as rows (p, m), labels (m,), weights (m,) -> (p,) or (r, p)


def as_rows(Z: Matrix, part: slice) -> Array:
    """(p, m): some columns of a table as rows, unpacked where it is sparse."""
    block = Z[:, part]
    return np.ascontiguousarray((block.toarray() if is_sparse(block) else block).T)


def by_block(table: TableView, y: Array, weight: Array, of: Score) -> Array:
    """(n,): a score by column, added over the class problems."""
    return np.asarray(np.sum([over_columns(table, label, weight, of) for label in y], axis=0))


def over_columns(table: TableView, label: Array, weight: Array, of: Score) -> Array:
    """(n,) or (r, n): `of` block by block; columns with missing cells one by one, over what is observed of them.

    A column of which one class is not observed at all, or no class twice, has 0.
    """
    Z, weight = table.Z, as_counts(weight)
    pieces = []
    for part in column_parts(table.shape):
        z = as_rows(Z, part)
        gaps = np.flatnonzero(np.isnan(z).any(axis=1))
        scores = of(np.nan_to_num(z, nan=0.0) if len(gaps) else z, label, weight)
        # Columns with gaps have rows of their own; the others share all sums of a block.
        for k in gaps:
            seen = ~np.isnan(z[k])
            counts = [float(weight[seen & (label == side)].sum()) for side in (1.0, -1.0)]
            scores[..., k] = of(z[[k]][:, seen], label[seen], weight[seen])[..., 0] if _enough(*counts) else 0.0
        pieces.append(scores)
    return np.concatenate(pieces, axis=-1)


def by_class_and_kind(
    table: TableView,
    y: Array,
    weight: Array,
    numbers: Score,
    categories: Callable[[Array], float],
    kinds: Sequence[str] = ("nominal",),
) -> Array:
    """(k, n): a score by class problem and column; one for columns of some kinds, another for the rest."""
    other = np.array([kind in kinds for kind in table.kind])
    out = np.empty((len(y), len(other)))
    if not other.all():
        part = table if not other.any() else table.columns(np.flatnonzero(~other))
        out[:, ~other] = [over_columns(part, label, weight, numbers) for label in y]
    out[:, other] = _by_level(table, y, as_counts(weight), np.flatnonzero(other), categories)
    return out


def _by_level(table: TableView, y: Array, weight: Array, features: IntArray, of: Callable[[Array], float]) -> Array:
    """(k, features): `of` the weights (levels, 2) of positives and negatives by category of some columns."""
    out = np.zeros((len(y), len(features)))
    for f, j in enumerate(features):
        z = column_of(table.Z, j)
        seen = ~np.isnan(z)
        level = np.unique(z[seen], return_inverse=True)[1]
        for k, label in enumerate(y):
            positive = np.where(label[seen] > 0, weight[seen], 0.0)
            sides = np.bincount(level, positive), np.bincount(level, weight[seen] - positive)
            counts = sides[0].sum(), sides[1].sum()
            out[k, f] = of(np.column_stack(sides)) if _enough(*counts) else 0.0
    return out


def _enough(positive: float, negative: float) -> bool:
    """Whether a column is observed in both classes, and more than once in one."""
    return min(positive, negative) > 0 and max(positive, negative) > 1


def as_counts(weight: Array) -> Array:
    """Whole numbers are counts; any other weights are brought to a mean of 1."""
    if np.all(weight == np.rint(weight)):
        return weight
    # Rounded, so that weights that differ by a factor give the same counts to the last digit.
    return np.asarray(np.round(weight * (len(weight) / weight.sum()), 12))


def moments(z: Array, label: Array, weight: Array) -> tuple[list[Array], list[Array], list[float], Array]:
    """Means and variances (p,) of positives and negatives, their weights, and the least variance that counts."""
    z = z - (z @ weight / weight.sum())[:, None]  # the variances are differences of squares: keep the means small
    square = z * z
    mean, variance, total = [], [], []
    for side in (1.0, -1.0):
        w = weight * (label == side)
        total.append(float(w.sum()))
        mean.append(z @ w / total[-1])
        variance.append(np.maximum(square @ w / total[-1] - mean[-1] ** 2, 0.0))
    return mean, variance, total, TINY * (square @ weight) / weight.sum()
