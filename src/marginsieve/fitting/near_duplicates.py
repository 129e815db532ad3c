"""Near-duplicates: columns that stand for one another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.block_products import parts
from ..contracts import Array, BoolArray, IntArray, Matrix, is_sparse
from ..data.table import filled_with_means

MOST = 200  # best-ranked features that are looked at as representatives
ROUNDING = 1e-9  # of a correlation


class Group(NamedTuple):
    """A selected feature, and the columns that are nearly the same with their correlations, the nearest first."""

    representative: str
    members: tuple[str, ...]
    correlation: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "representative": self.representative,
            "members": list(self.members),
            "correlation": list(self.correlation),
        }


def near_duplicates(
    Z: Matrix, weight: Array, chosen: IntArray, usable: BoolArray, least: float
) -> list[tuple[int, IntArray, Array]]:
    """For the columns `chosen`, best first: those with a correlation of at least `least` in size, and the correlations.

    A column belongs to the first that it is near to; one that belongs to another represents nothing itself. At most
    MOST columns are compared with all: the cost is MOST m n.
    """
    chosen = chosen[:MOST]
    r = _correlations(Z, weight, chosen)
    taken, groups = ~usable, []
    for k, j in enumerate(chosen):
        if taken[j]:
            continue
        near = (np.abs(r[k]) >= least - ROUNDING) & ~taken
        near[j] = False
        members = np.flatnonzero(near)
        if len(members):
            members = members[np.argsort(-np.abs(r[k, members]), kind="stable")]
            groups.append((int(j), members, r[k, members]))
            taken |= near
        taken[j] = True
    return groups


def _correlations(Z: Matrix, weight: Array, chosen: IntArray) -> Array:
    """(k, n): weighted correlations of some columns with all; 0 where a column does not vary."""
    U = _centered(Z[:, chosen], weight)
    U = U * weight[:, None] / np.sqrt(np.maximum(weight @ (U * U), 1e-300))
    r = np.zeros((len(chosen), Z.shape[1]))
    for part in parts(Z.shape[1]):
        block = _centered(Z[:, part], weight)
        length = np.sqrt(weight @ (block * block))
        r[:, part] = (U.T @ block) / np.where(length > 0, length, np.inf)
    return np.clip(r, -1.0, 1.0)


def _centered(block: Matrix, weight: Array) -> Array:
    """Columns minus their weighted means, missing cells at the mean of their column."""
    dense = block.toarray() if is_sparse(block) else block
    dense = filled_with_means(dense, dense) if np.isnan(dense).any() else dense
    return np.asarray(dense - weight @ dense / weight.sum())
