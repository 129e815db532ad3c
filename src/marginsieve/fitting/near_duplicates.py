"""Near-duplicates: columns that stand for one another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.blocks import column_parts
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
    chosen = chosen[usable[chosen]]
    if not len(chosen):
        return []
    U = _center_columns(Z[:, chosen], weight)
    U = U / np.sqrt(np.maximum(weight @ (U * U), 1e-300))
    first = _representatives(np.abs((U * weight[:, None]).T @ U) >= least - ROUNDING)
    chosen, U = chosen[first], U[:, first] * weight[:, None]
    members: list[list[IntArray]] = [[] for _ in chosen]
    correlation: list[list[Array]] = [[] for _ in chosen]
    for part in column_parts(Z.shape):
        block = _center_columns(Z[:, part], weight)
        length = np.sqrt(weight @ (block * block))
        r = np.clip((U.T @ block) / np.where(length > 0, length, np.inf), -1.0, 1.0)
        near = np.abs(r) >= least - ROUNDING
        owner = np.where(near.any(axis=0) & usable[part], near.argmax(axis=0), -1)
        for k in np.unique(owner[owner >= 0]):
            mine = np.flatnonzero(owner == k)
            mine = mine[mine + part.start != chosen[k]]
            members[k].append(mine + part.start)
            correlation[k].append(r[k, mine])
    groups = []
    for k, j in enumerate(chosen):
        alike, r = np.concatenate([*members[k], chosen[:0]]), np.concatenate([*correlation[k], np.zeros(0)])
        if len(alike):
            order = np.argsort(-np.abs(r), kind="stable")
            groups.append((int(j), alike[order], r[order]))
    return groups


def _representatives(near: BoolArray) -> IntArray:
    """Those of columns, best first, that are not near to one before them that is a representative itself."""
    out: list[int] = []
    for k in range(len(near)):
        if not near[k, out].any():
            out.append(k)
    return np.array(out, dtype=np.intp)


def _center_columns(block: Matrix, weight: Array) -> Array:
    """Columns minus their weighted means, missing cells at the mean of their column."""
    dense = block.toarray() if is_sparse(block) else block
    dense = filled_with_means(dense, dense) if np.isnan(dense).any() else dense
    return np.asarray(dense - weight @ dense / weight.sum())
