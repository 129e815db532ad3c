"""Training rows: encoded once, then taken in parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..contracts import Array, IntArray
from ..data.table import Schema, Table
from ..errors import InputError, whole_number
from ..outcomes import Target
from ..outcomes.folds import Splits

MOST_ROWS = 10_000


@dataclass(frozen=True)
class Part:
    """Training rows: codes of the classes (m,), weights (m,), groups (m,) or None."""

    table: Table
    y: IntArray
    weight: Array
    groups: IntArray | None = None

    def take(self, rows: IntArray) -> Part:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return Part(self.table.rows(rows), self.y[rows], self.weight[rows], groups)


@dataclass(frozen=True)
class Encoded:
    """A table and its target as numbers: what every fit on rows of the table starts from.

    `names` tells the rows apart where the user's table has an index, else it is None. `numbers` are the rows' numbers
    in the user's table of `total` rows, None where these are all of them.
    """

    schema: Schema
    table: Table
    target: Target
    names: Any = None
    numbers: IntArray | None = None
    total: int = 0

    def take(self, rows: IntArray) -> Encoded:
        """Some of the rows; the schema stays that of the whole table."""
        names = None if self.names is None else self.names[rows]
        numbers, total = self.row_numbers()
        table, target = self.table.rows(rows), self.target.take(rows)
        return replace(self, table=table, target=target, names=names, numbers=numbers[rows], total=total)

    def columns(self, index: IntArray) -> Encoded:
        """The same rows with some of the columns."""
        return replace(self, schema=self.schema.columns(index), table=self.table.columns(index))

    def row_numbers(self) -> tuple[IntArray, int]:
        """The numbers of the rows in the user's table, and how many rows that has."""
        count = len(self.target.codes)
        return (np.arange(count), count) if self.numbers is None else (self.numbers, self.total)

    def part(self) -> tuple[Part, IntArray]:
        """The rows that count (weight above 0), and their numbers."""
        target = self.target
        used = np.flatnonzero(target.weight > 0)
        part = Part(self.table, target.codes, target.weight, target.groups)
        return (part if len(used) == len(target.weight) else part.take(used)), used


def choose_rows(
    part: Part, max_samples: int | None, rng: np.random.Generator, most: int | None = MOST_ROWS
) -> tuple[IntArray, Array]:
    """The rows to train on and the weights of all rows.

    Every class gets an equal share of `max_samples`; what a rare class cannot fill goes to the others, so a rare class
    is taken whole. Weights of a class that is sampled are raised so that their sum stays what it was. `most`: the
    number of rows that can be trained on, None where there is no limit.
    """
    m = len(part.y)
    if max_samples is None:
        if most is not None and m > most:
            raise InputError(
                f"the table has {m} rows and this method makes a matrix of rows by rows, for at most {most} of them: "
                "pass max_samples=5000, say, to train on all positives and a weighted sample of the negatives (the "
                "rest is scored), or use a method on the linear kernel with fewer columns than rows, such as fisher or "
                "svm-rfe"
            )
        return np.arange(m), part.weight
    whole_number("selector", "max_samples", max_samples, 4)
    if most is not None and max_samples > most and m > most:
        raise InputError(f"max_samples is {max_samples}; for this method it must be at most {most}")
    if m <= max_samples:
        return np.arange(m), part.weight
    weight, chosen, left = part.weight.copy(), [], max_samples
    counts = np.bincount(part.y)
    for place, code in enumerate(np.argsort(counts, kind="stable")):
        members = np.flatnonzero(part.y == code)
        taken = rng.choice(members, size=min(len(members), left // (len(counts) - place)), replace=False)
        weight[taken] *= part.weight[members].sum() / part.weight[taken].sum()
        left -= len(taken)
        chosen.append(taken)
    return np.sort(np.concatenate(chosen)), weight


def sampled(encoded: Encoded, max_samples: int | None, rng: np.random.Generator) -> Encoded:
    """The rows to train on, with the weights that `choose_rows` gives them."""
    part, used = encoded.part()
    sample, weight = choose_rows(part, max_samples, rng)
    chosen = encoded.take(used[sample])
    return replace(chosen, target=replace(chosen.target, weight=weight[sample]))


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
