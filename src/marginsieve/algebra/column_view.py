"""Columns for machines that have weights instead of a kernel: a category becomes a column for each of its levels.

A level's column is 1 where a row has it, over its standard deviation among the training rows; a row without a value, or
with a level that was not trained on, has 0 in all of them. Numbers are as they are, times the root of their weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from ..contracts import Array, IntArray, Kernel, Matrix, TableView, View, is_sparse
from ..data.stored import is_stored, whole_needed
from ..data.table import levels_of
from .blocks import table_columns


@dataclass(frozen=True, eq=False)
class ColumnView:
    """The live features of a table as d columns, for machines that have weights instead of a kernel.

    A category is a column for each of its levels; `owner` (d,) is the position of each column's feature.

    Parameters
    ----------
    kernel : Kernel
        The linear kernel.
    table : TableView
        Training rows.
    feature_weight : array of shape (n,)
        Weights w_j of all features, before the divisor; a column is multiplied by sqrt(w_j).
    features : array of int of shape (p,)
        The live features, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.algebra import ColumnView
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> view = ColumnView(Linear(), Schema.from_table(X).table(X), np.array([1.0, 4.0]), np.arange(2))
    >>> view.X
    array([[1., 4.],
           [3., 2.]])
    """

    kernel: Kernel
    table: TableView
    feature_weight: Array  # (n,) before the divisor
    features: IntArray  # (p,)

    def without(self, features: IntArray) -> Self:
        """The view with these features dropped."""
        return replace(self, features=np.delete(self.features, np.searchsorted(self.features, features)))

    @cached_property
    def weight(self) -> Array:
        """(p,) w_j of the live features, the divisor included."""
        weight, divisor = self.feature_weight[self.features], self.kernel.divisor(self.table, self.features)
        return weight if divisor == 1.0 else weight / divisor

    @cached_property
    def by_rows(self) -> Matrix:
        """(p, m): the live columns as rows, without their weights."""
        columns = table_columns(self.table, self.features)
        if is_stored(columns):
            raise whole_needed(*self.table.shape)
        return columns

    @cached_property
    def X(self) -> Matrix:
        """(m, d): the training rows."""
        return self.rows(self.table.Z)

    @cached_property
    def _levels(self) -> tuple[IntArray, Array, Array]:
        """By column: the place of its feature, its factor, the code that it stands for (nan where it is a number)."""
        scale = np.sqrt(self.weight)
        nominal = np.array([self.table.kind[j] == "nominal" for j in self.features], dtype=bool)
        numbers = np.flatnonzero(~nominal)
        owner, factor, level = [numbers], [scale[numbers]], [np.full(len(numbers), np.nan)]
        for place in np.flatnonzero(nominal):
            z = np.asarray(self.table.Z[:, self.features[place]])
            values = levels_of(z)
            spread = np.array([np.std(z == code) for code in values])
            owner.append(np.full(len(values), place))
            factor.append(scale[place] / np.where(spread > 0, spread, 1.0))
            level.append(values)
        return np.concatenate(owner), np.concatenate(factor), np.concatenate(level)

    @property
    def owner(self) -> IntArray:
        """(d,) the place of each column's feature, numbers first."""
        return self._levels[0]

    def rows(self, Z: Any) -> Matrix:
        """(r, d): rows of the whole table, sparse where the table is."""
        owner, factor, level = self._levels
        if is_sparse(Z):
            return sparse.csc_array(sparse.csc_array(Z)[:, self.features] @ sparse.diags_array(factor))
        count = int(np.isnan(level).sum())
        out = np.empty((Z.shape[0], len(owner)), order="F")
        out[:, :count] = Z[:, self.features[owner[:count]]] * factor[:count]
        for k in range(count, len(owner)):
            out[:, k] = (Z[:, self.features[owner[k]]] == level[k]) * factor[k]
        return out

    def key(self, k: int) -> tuple[int, float | None]:
        """What a column is: its feature of the table, and its level where that is a category."""
        owner, _, level = self._levels
        return int(self.features[owner[k]]), None if np.isnan(level[k]) else float(level[k])

    def by_feature(self, value: Array) -> Array:
        """(p,) the largest of a feature's columns' values."""
        out = np.zeros(len(self.features))
        np.maximum.at(out, self.owner, value)
        return out


def as_columns(view: View) -> ColumnView:
    """The view of a machine that needs columns.

    Parameters
    ----------
    view : View
        What `Machine.solve` was given.

    Returns
    -------
    ColumnView
        The same object.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve.algebra import ColumnView, as_columns
    >>> from marginsieve.data.table import Schema
    >>> from marginsieve.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> view = ColumnView(Linear(), Schema.from_table(X).table(X), np.ones(2), np.arange(2))
    >>> as_columns(view) is view
    True
    """
    if not isinstance(view, ColumnView):
        raise TypeError(f"this machine needs columns and was given {type(view).__name__}")
    return view
