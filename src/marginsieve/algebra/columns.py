"""Columns for machines that have weights instead of a kernel: a category becomes a column for each of its levels.

A level's column is 1 where a row has it, over its standard deviation among the training rows; a row without a value, or
with a level that was not trained on, has 0 in all of them. Numbers are as they are, times the scale of their feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array, IntArray, Matrix, is_sparse
from .gram import Gram


@dataclass(frozen=True)
class Expansion:
    """The live features of a gram as d columns; `owner` (d,) is the place of each one's feature."""

    features: IntArray  # (p,)
    owner: IntArray  # (d,) numbers first
    factor: Array  # (d,)
    level: Array  # (d,) the code that a column stands for; nan where it is a number

    @classmethod
    def of(cls, gram: Gram) -> Expansion:
        table, scale = gram.table, np.sqrt(gram.weight)
        nominal = np.array([table.kind[j] == "nominal" for j in gram.features], dtype=bool)
        numbers = np.flatnonzero(~nominal)
        owner, factor, level = [numbers], [scale[numbers]], [np.full(len(numbers), np.nan)]
        for place in np.flatnonzero(nominal):
            z = np.asarray(table.Z[:, gram.features[place]])
            codes = np.unique(z[~np.isnan(z)])
            spread = np.array([np.std(z == code) for code in codes])
            owner.append(np.full(len(codes), place))
            factor.append(scale[place] / np.where(spread > 0, spread, 1.0))
            level.append(codes)
        joined = (np.concatenate(part) for part in (owner, factor, level))
        return cls(gram.features, *(part for part in joined))

    @property
    def numbers(self) -> int:
        """How many columns are numbers."""
        return int(np.isnan(self.level).sum())

    def rows(self, Z: Any) -> Matrix:
        """(r, d): rows of the whole table, sparse where the table is."""
        count = self.numbers
        if is_sparse(Z):
            return sparse.csc_array(sparse.csc_array(Z)[:, self.features] @ sparse.diags_array(self.factor))
        out = np.empty((Z.shape[0], len(self.owner)), order="F")
        out[:, :count] = Z[:, self.features[self.owner[:count]]] * self.factor[:count]
        for k in range(count, len(self.owner)):
            out[:, k] = (Z[:, self.features[self.owner[k]]] == self.level[k]) * self.factor[k]
        return out

    def key(self, k: int) -> tuple[int, float | None]:
        """What a column is: its feature of the table, and its level where that is a category."""
        level = float(self.level[k])
        return int(self.features[self.owner[k]]), None if np.isnan(level) else level

    def by_feature(self, value: Array) -> Array:
        """(p,) the largest of a feature's columns' values."""
        out = np.zeros(len(self.features))
        np.maximum.at(out, self.owner, value)
        return out
