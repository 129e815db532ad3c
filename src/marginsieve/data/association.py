"""How alike columns of any kind are, whatever the labels: correlation, correlation ratio, Cramér's V as one measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..contracts import Array, BoolArray, IntArray, is_sparse
from .table import Table, filled_with_means, levels_of

BLOCK = 2**21  # cells that are looked at together


def most_alike(table: Table, features: IntArray, usable: BoolArray, count: int) -> list[tuple[IntArray, Array]]:
    """For each feature the `count` usable columns that are most alike, and how much, from -1 to 1.

    Two numbers: their correlation. Otherwise the root of the share that the indicators of the levels have in common,
    less what chance gives: a correlation ratio of a number and a category, Cramér's V of two categories.
    """
    m, n = table.shape
    bases = [_basis(_codes(table, np.array([j])), table.kind[j]) for j in features]
    best = [(np.empty(0, dtype=np.intp), np.empty(0)) for _ in features]
    step = max(1, BLOCK // max(m, 1))
    for start in range(0, n, step):
        columns = np.arange(start, min(start + step, n))
        columns = columns[usable[columns]]
        if not len(columns):
            continue
        like = _likeness(bases, _codes(table, columns), [table.kind[j] for j in columns])
        if not table.is_sparse:  # two numbers by the rows that have both
            block, number = (
                np.asarray(table.Z[:, columns]),
                np.flatnonzero([table.kind[j] != "nominal" for j in columns]),
            )
            real = np.flatnonzero([table.kind[j] != "nominal" for j in features])
            if np.isnan(block).any() or np.isnan(table.Z[:, features]).any():
                among = observed_correlation(np.asarray(table.Z[:, features[real]]), block[:, number], np.ones(m))
                like[np.ix_(real, number)] = among
        for k, (known, value) in enumerate(best):
            others = columns != features[k]
            every, all_values = np.concatenate([known, columns[others]]), np.concatenate([value, like[k, others]])
            first = np.argsort(-np.abs(all_values), kind="stable")[:count]
            best[k] = every[first], all_values[first]
    return best


def observed_correlation(A: Array, B: Array, weight: Array) -> Array:
    """(p, q) the weighted correlation of each column of A (m, p) with each of B (m, q), over the rows that have both.

    0 where fewer than half of the rows have both, or one of the columns does not vary over them.
    """
    gaps = [np.isnan(part) for part in (A, B)]
    if not (gaps[0].any() or gaps[1].any()):
        first, second = ((part - weight @ part / weight.sum()) * np.sqrt(weight)[:, None] for part in (A, B))
        length = np.outer(np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0))
        return np.asarray(np.clip((first.T @ second) / np.where(length > 0, length, np.inf), -1.0, 1.0))
    known = [np.where(gap, 0.0, 1.0) for gap in gaps]
    # Means of the observed cells are taken off first, so that nothing cancels in the sums over pairs.
    cells = []
    for part, has in zip((A, B), known, strict=True):
        filled = np.where(has > 0, part, 0.0)
        centred = (filled - weight @ filled / np.maximum(weight @ has, 1e-300)) * has
        size = np.sqrt(weight @ centred**2 / weight.sum())
        cells.append(centred / np.where(size > 0, size, 1.0))
    (a, b), (has_a, has_b) = cells, ((weight[:, None] * known[0]).T, known[1])
    total = has_a @ has_b
    count = np.maximum(total, 1e-300)
    sum_a, sum_b = (weight[:, None] * a).T @ has_b, has_a @ b
    spread_a = (weight[:, None] * a**2).T @ has_b - sum_a**2 / count
    spread_b = has_a @ b**2 - sum_b**2 / count
    shared = (weight[:, None] * a).T @ b - sum_a * sum_b / count
    usable = (total >= 0.5 * weight.sum()) & (spread_a > 1e-12) & (spread_b > 1e-12)
    out = np.where(usable, shared / np.sqrt(np.where(usable, spread_a * spread_b, 1.0)), 0.0)
    return np.asarray(np.clip(out, -1.0, 1.0))


def _codes(table: Table, columns: IntArray) -> Array:
    """Dense columns without gaps, but for those of categories."""
    Z = table.Z[:, columns]
    Z = np.asarray(Z.toarray() if is_sparse(Z) else Z, dtype=float)
    return filled_with_means(Z, Z, ["nominal" if table.kind[j] == "nominal" else "real" for j in columns])


def _basis(column: Array, kind: str) -> Array:
    """(m, d) orthonormal columns that span what one column says; a number keeps its sign; d = 0 if it is constant."""
    if kind != "nominal":
        D = column - column.mean(axis=0)
        length = np.linalg.norm(D)
        return np.asarray(D / length if length > 1e-9 * np.linalg.norm(column) else D[:, :0])
    X = (column == levels_of(column[:, 0])[None, :]).astype(float)
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return np.asarray(U[:, s > 1e-9])


def _likeness(bases: Sequence[Array], block: Array, kinds: Sequence[str]) -> Array:
    """(features, columns of the block)."""
    m, out = len(block), np.zeros((len(bases), block.shape[1]))
    number = np.array([kind != "nominal" for kind in kinds])
    D = block[:, number] - block[:, number].mean(axis=0)
    length = np.linalg.norm(D, axis=0)
    D /= np.where(length > 1e-9 * np.linalg.norm(block[:, number], axis=0), length, np.inf)
    for k, basis in enumerate(bases):
        shared = basis.T @ D
        out[k, number] = shared[0] if basis.shape[1] == 1 else _root((shared**2).sum(axis=0), basis.shape[1], 1, m)
    for place in np.flatnonzero(~number):
        other = _basis(block[:, [place]], "nominal")
        for k, basis in enumerate(bases):
            out[k, place] = _root(((basis.T @ other) ** 2).sum(), basis.shape[1], other.shape[1], m)
    return np.clip(out, -1.0, 1.0)


def _root(shared: Array | float, first: int, second: int, m: int) -> Array | float:
    """The root of the shared part of two spans of so many dimensions, as a share of the most possible, less chance."""
    if not first or not second:
        return 0.0
    chance = max(first, second) / (m - 1)
    if chance >= 1.0:
        return 0.0
    return np.sqrt(np.maximum(0.0, (shared / min(first, second) - chance) / (1.0 - chance)))
