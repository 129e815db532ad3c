"""Bringing a subset to its size: ripple-add and ripple-remove.

ripple-add(r) adds the r heaviest features from outside, then removes the r - 1 lightest; ripple-remove(r) removes the r
lightest, then adds the r - 1 heaviest. Where all weights differ, many of them in a row have a closed form: with S the
subset and U the rest, q removals leave the heaviest |S| - q of S and the q (r - 1) heaviest of U, and q additions the
heaviest |S| + q of S and the q r heaviest of U.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..contracts import Array, BoolArray, IntArray

Fitness = Callable[[BoolArray], tuple[float, ...]]


@dataclass(frozen=True)
class Ripple:
    """Tuning of bit vectors (n,) by weights (n,); kept features are always in."""

    weight: Array
    kept: BoolArray
    factor: int
    batches: int
    fitness: Fitness
    rng: np.random.Generator

    @cached_property
    def level(self) -> Array:
        """(n,) the weights by rank, equal ones alike; kept features above all others."""
        rank = np.unique(self.weight, return_inverse=True)[1].astype(np.float64)
        return np.where(self.kept, rank + len(rank), rank)

    def tune(self, bits: BoolArray, size: int) -> BoolArray:
        """So many features; where only some of equal weight are wanted, the fittest of a few random choices."""
        bits = bits | self.kept
        best_bits, loose = self._tune_once(bits, size)
        if not loose:
            return best_bits
        best = self.fitness(best_bits)
        for _ in range(self.batches - 1):
            other, _ = self._tune_once(bits, size)
            if (value := self.fitness(other)) > best:
                best_bits, best = other, value
        return best_bits

    def _tune_once(self, bits: BoolArray, size: int) -> tuple[BoolArray, bool]:
        """The subset with equal weights in a random order, and whether that order mattered."""
        # The level is a whole number: adding a fraction orders equal weights at random and no others.
        key = self.level + self.rng.random(len(bits))
        r, missing = self.factor, size - int(bits.sum())
        if missing:
            return self._heaviest(bits, key, abs(missing) * (r if missing > 0 else r - 1), size)
        # A subset of the right size is still tuned once up and once down, as in the paper.
        larger, first = self._heaviest(bits, key, r, size + 1)
        smaller, second = self._heaviest(larger, key, r - 1, size)
        return smaller, first or second

    def _heaviest(self, bits: BoolArray, key: Array, most: int, size: int) -> tuple[BoolArray, bool]:
        """The `size` heaviest of the subset and of the `most` heaviest outside; whether a tie was cut."""
        inside, outside = np.flatnonzero(bits), np.flatnonzero(~bits)
        entering, first = _top(outside, key, most)
        chosen, second = _top(np.concatenate([inside, entering]), key, size)
        out = np.zeros(len(bits), dtype=bool)
        out[chosen] = True
        return out, first or second


def _top(features: IntArray, key: Array, count: int) -> tuple[IntArray, bool]:
    """The features with the largest keys, and whether the last of them shares its level with the next one."""
    if count >= len(features):
        return features, False
    if count <= 0:
        return features[:0], False
    place = np.argpartition(key[features], [len(features) - count - 1, len(features) - count])
    cut = place[len(features) - count - 1 : len(features) - count + 1]
    # Only a tie across the cut matters: then another draw of the fractions would choose other features.
    below, above = np.floor(key[features[cut]])
    return features[place[len(features) - count :]], bool(below == above)


def tune_one_by_one(ripple: Ripple, bits: BoolArray, size: int) -> BoolArray:
    """The same one feature at a time: those that share their weight first, the one by which the metric does best."""
    bits = bits | ripple.kept
    if bits.sum() == size:
        return _ripple(ripple, _ripple(ripple, bits, on=True), on=False) if size < len(bits) else bits
    while bits.sum() != size:
        bits = _ripple(ripple, bits, on=bool(bits.sum() < size))
    return bits


def _ripple(ripple: Ripple, bits: BoolArray, on: bool) -> BoolArray:
    """ripple-add or ripple-remove: the factor one way (or as many as there are), one less the other way."""
    there = _turn_bits(ripple, bits, on, ripple.factor)
    return _turn_bits(ripple, there, not on, abs(int(there.sum()) - int(bits.sum())) - 1)


def _turn_bits(ripple: Ripple, bits: BoolArray, on: bool, count: int) -> BoolArray:
    """So many bits turned on or off: of equal weight the fittest change, then the heaviest or the lightest."""
    for _ in range(count):
        free = np.flatnonzero(~bits if on else bits & ~ripple.kept)
        if not len(free):
            break
        level = ripple.level[free]
        _, group, sizes = np.unique(level, return_inverse=True, return_counts=True)
        # The paper tries each feature that shares its weight, by the metric; this is what makes it slow.
        shared = free[sizes[group] > 1]
        if len(shared):
            bits = max([_flip(bits, j) for j in shared], key=ripple.fitness)
        else:
            bits = _flip(bits, int(free[level.argmax() if on else level.argmin()]))
    return bits


def _flip(bits: BoolArray, j: int) -> BoolArray:
    out = bits.copy()
    out[j] = not out[j]
    return out
