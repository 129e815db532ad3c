"""Fisher's exact test for tables of r levels and two classes (Freeman and Halton)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from ..contracts import Array, IntArray
from ..solvers.jit import jit

MOST = 2_000_000  # beginnings of tables that are looked at
SLACK = 1e-7  # tables whose log-likelihoods differ by less are equally likely


def log_p(table: IntArray) -> float | None:
    """log p of the counts (r, 2): tables with the same margins that are no likelier. None where there are too many."""
    rows = table[table.sum(axis=1) > 0]
    if len(rows) < 2 or not rows.sum(axis=0).all():
        return 0.0
    # The walk is over all levels but two: with the largest ones left out it is shortest. Sorting also lets tables that
    # differ in the order of their levels share a cached result.
    order = np.lexsort((rows[:, 0], rows.sum(axis=1)))  # the two largest levels last
    return _log_p(tuple(map(tuple, rows[order].tolist())))


@lru_cache(maxsize=100_000)
def _log_p(rows: tuple[tuple[int, int], ...]) -> float | None:
    """With x_k positives in level k of size n_k a table's likelihood is prod_k C(n_k, x_k) / C(N, P).

    All beginnings (x_1 .. x_(r-2)) are walked through; the two levels left have one free count, whose likelihoods are
    sorted and summed up once for each number of positives that they may share.
    """
    table = np.array(rows, dtype=np.intp)
    size, positives = table.sum(axis=1), int(table[:, 0].sum())
    fewest, most = max(0, positives - int(size[:-2].sum())), min(positives, int(size[-2:].sum()))
    beginnings = float(np.prod(size[:-2] + 1.0))
    if max(beginnings, (most - fewest + 1.0) * (min(size[-2], positives) + 1.0)) > MOST:
        return None
    logs = [_choose(int(n), np.arange(n + 1)) for n in size]
    term = float(sum(logs[k][x] for k, x in enumerate(table[:, 0])))
    total = float(_choose(int(size.sum()), np.array([positives]))[0])
    ends, tops, sums, starts = _last_two(logs[-2], logs[-1], fewest, most)
    begin = np.full((max(len(size) - 2, 0), int(size[:-2].max(initial=0)) + 1), -np.inf)
    for k, part in enumerate(logs[:-2]):
        begin[k, : len(part)] = part
    likelihood = _walk(begin, size[:-2], positives, fewest, term + SLACK, total, ends, tops, sums, starts)
    least = term - total
    return min(max(float(np.log(likelihood)) if likelihood > 0 else least, least), 0.0)


def _choose(n: int, x: IntArray) -> Array:
    """log of n over x."""
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(x + 1.0) - special.gammaln(n - x + 1.0))


def _last_two(first: Array, second: Array, fewest: int, most: int) -> tuple[Array, Array, Array, IntArray]:
    """For each number s of positives in two levels: the sorted log-likelihoods, the largest of them, and running sums
    of the likelihoods in units of the largest; all s one after the other, from starts[s - fewest]."""
    ends, tops, sums, starts = [], [], [], [0]
    for s in range(fewest, most + 1):
        x = np.arange(max(0, s - len(second) + 1), min(len(first) - 1, s) + 1)
        sorted_logs = np.sort(first[x] + second[s - x])
        ends.append(sorted_logs)
        tops.append(sorted_logs[-1])
        # Running sums by likelihood: how much lies below a bound is then one binary search.
        sums.append(np.cumsum(np.exp(sorted_logs - sorted_logs[-1])))
        starts.append(starts[-1] + len(x))
    return np.concatenate(ends), np.array(tops), np.concatenate(sums), np.array(starts, dtype=np.intp)


@jit
def _walk(
    logs: Array,
    size: IntArray,
    positives: int,
    fewest: int,
    term: float,
    total: float,
    ends: Array,
    tops: Array,
    sums: Array,
    starts: IntArray,
) -> float:
    """The chance of all tables whose log-likelihood (less that of the margins) is at most `term`."""
    levels, most = size.shape[0], tops.shape[0] - 1
    x, chance = np.zeros(levels + 1, dtype=np.intp), 0.0
    while True:
        begun, taken = 0.0, 0
        for k in range(levels):
            begun += logs[k, x[k]]
            taken += x[k]
        s = positives - taken - fewest
        if 0 <= s <= most:
            low, high = starts[s], starts[s + 1]
            while low < high:  # how many ends are no likelier
                middle = (low + high) // 2
                if begun + ends[middle] <= term:
                    low = middle + 1
                else:
                    high = middle
            if low > starts[s]:
                chance += np.exp(begun + tops[s] - total) * sums[low - 1]
        k = 0
        # Count on like an odometer whose wheels have size_k + 1 digits.
        while k < levels and x[k] == size[k]:
            x[k] = 0
            k += 1
        if k == levels:
            return chance
        x[k] += 1
