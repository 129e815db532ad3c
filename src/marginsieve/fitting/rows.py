"""Rows of a table with their outcome: encoded once, then taken in parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..contracts import Array, IntArray
from ..data.table import Schema, Table
from ..errors import InputError, whole_number
from ..outcomes import Target
from ..outcomes.target import Splits

MOST_ROWS = 10_000


@dataclass(frozen=True)
class Rows:
    """Rows of a table and their outcome as numbers: what every fit starts from, on all rows or on a part of them.

    `names` tells the rows apart where the user's table has an index, else it is None. `numbers` are the rows' numbers
    in the user's table of `total` rows, None where these are all of them. Where machines are trained on a sample of the
    rows, `sample` has its numbers among these rows, and `sample_weight` the weights of all rows with those that the
    sample is trained with.
    """

    schema: Schema
    table: Table
    target: Target
    names: Any = None
    numbers: IntArray | None = None
    total: int = 0
    sample: IntArray | None = None
    sample_weight: Array | None = None

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: IntArray) -> Rows:
        """Some of the rows; the schema stays that of the whole table."""
        names = None if self.names is None else self.names[rows]
        numbers = rows if self.numbers is None else self.numbers[rows]
        table, target = self.table.rows(rows), self.target.take(rows)
        return Rows(self.schema, table, target, names, numbers, self.total or len(self))

    def columns(self, index: IntArray) -> Rows:
        """The same rows with some of the columns."""
        if np.array_equal(index, np.arange(self.table.shape[1])):
            return self
        return replace(self, schema=self.schema.columns(index), table=self.table.columns(index))

    def row_numbers(self) -> IntArray:
        """The numbers of the rows in the user's table."""
        return np.arange(len(self)) if self.numbers is None else self.numbers

    @cached_property
    def active(self) -> Rows:
        """The rows that count: those with a weight above 0."""
        used = np.flatnonzero(self.target.weight > 0)
        return self if len(used) == len(self) else self.take(used)

    @cached_property
    def training(self) -> Rows:
        """All rows with the weights that the sample gives them."""
        if self.sample_weight is None:
            return self
        return replace(self, target=self.target.with_weight(self.sample_weight), sample=None, sample_weight=None)

    @cached_property
    def sample_part(self) -> Rows:
        """The rows that machines are trained on, with those weights."""
        return self.training if self.sample is None else self.training.take(self.sample)

    @property
    def sample_rows(self) -> IntArray:
        """The sample's numbers among these rows."""
        return np.arange(len(self)) if self.sample is None else self.sample

    def with_sample(self, max_samples: int | None, rng: np.random.Generator, most: int | None = MOST_ROWS) -> Rows:
        """The same rows with a sample of at most `max_samples` to train on (`Target.sample`).

        `most`: the number of rows that can be trained on, None where there is no limit.
        """
        m = len(self)
        if max_samples is None:
            if most is not None and m > most:
                raise InputError(
                    f"the table has {m} rows and this method makes a matrix of rows by rows, for at most {most} of "
                    "them: pass max_samples=5000, say, to train on all positives and a weighted sample of the "
                    "negatives (the rest is scored), or use a method on the linear kernel with fewer columns than "
                    "rows, such as fisher or svm-rfe"
                )
            return self
        whole_number("selector", "max_samples", max_samples, 4)
        if most is not None and max_samples > most and m > most:
            raise InputError(f"max_samples is {max_samples}; for this method it must be at most {most}")
        if m <= max_samples:
            return self
        sample, sample_weight = self.target.sample(max_samples, rng)
        return replace(self, sample=sample, sample_weight=sample_weight)


def with_rest(
    folds: Splits, sample: IntArray, m: int, rng: np.random.Generator, groups: IntArray | None = None
) -> Splits:
    """Folds of the sampled rows in the numbering of all rows; rows left out of the sample join the test sides.

    A row whose group was sampled joins the fold that tests its group, so that no group is on both sides.
    """
    if len(sample) == m:
        return folds
    rest = np.setdiff1d(np.arange(m), sample)
    units = np.arange(m) if groups is None else groups
    home = dict(zip(np.unique(units), rng.integers(len(folds), size=len(np.unique(units))), strict=True))
    for k, (_, test) in enumerate(folds):
        home.update(dict.fromkeys(units[sample[test]], k))
    fold = np.array([home[unit] for unit in units[rest]])
    return [(sample[train], np.concatenate([sample[test], rest[fold == k]])) for k, (train, test) in enumerate(folds)]
