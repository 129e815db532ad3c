"""Harmony search: a memory of subsets, new ones made of what it holds, the worst replaced."""

from __future__ import annotations

import numbers
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import BoolArray, IntArray, Path, ProblemView, Resources, StopInfo, Trials
from ..errors import InputError, is_real, number_within, one_of, positive_number, truth_value, whole_number
from ..problem import step_of
from ._fitness import fitness_of
from ._ripple import Ripple, tune_one_by_one
from ._subsets import Subsets, fitness_plainly
from .backward import reason_with_ties
from .top_k import score_features

HMCR_READINGS = ("usual", "printed")
PAR_READINGS = ("falling", "usual", "printed")
TUNINGS = ("batches", "literal")
MOST_LITERAL = 200  # features up to which the vectors may be tuned one feature at a time


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class Harmony(BaseEstimator):
    """SYMON: harmony search over subsets of d features; their fitness is the machine's score on validation rows.

    The criterion weighs the features once. Each new vector takes each bit from a random member of the memory or at
    random, is brought to d features by their weights (ripple-add, ripple-remove), and replaces the worst member if it
    is at least as fit. A share of the training rows is set aside for the fitness: neither weights nor machines see it.

    Parameters
    ----------
    d : int, float or pair, default=0.2
        Number of features of a subset: a count, a share of the columns, or the smallest and the largest of either; with
        a pair the size is searched too.
    ripple : int, default=1
        Each step of tuning adds this number of features and removes one less, or the other way round. From 2 on the
        vectors soon are the d best features by weight.
    pool : float or None, default=None
        Search only among the d best features by weight and this share of the searched columns more (SYMON_k); None
        searches all.
    memory : int, default=35
        Number of members of the memory (HMS).
    improvisations : int, default=200
        Number of new vectors (NI); the search ends earlier when all members are equal.
    hmcr : float, default=0.75
        Memory consideration rate.
    par : (float, float), default=(0.45, 0.9)
        Smallest and largest pitch adjustment rate.
    hmcr_reading : "usual" or "printed", default="usual"
        A bit comes from the memory with probability hmcr, or, as the paper's line 6 prints it, with probability 1 -
        hmcr.
    par_reading : "falling", "usual" or "printed", default="falling"
        A bit from the memory is flipped with probability 1 - PAR(t), PAR rising from its smallest to its largest value
        ("falling"), with probability PAR(t) as harmony search does elsewhere ("usual"), or with probability 1 - PAR(t)
        where PAR(t) lacks its smallest value, as in the paper's equation 6 ("printed").
    replace_equal : bool, default=True
        Whether a vector that is as fit as the worst member replaces it; False needs it to be fitter, as the paper
        prints.
    metric : "g_mean", "auc", "balanced_accuracy" or function(y, values), default="g_mean"
        The fitness; ties are broken by the AUC (for "auc" by the G-mean), then by the mean hinge loss.
    size_penalty : float, default=0.0
        Subtracted from the metric for a subset of all features, proportionally less for fewer.
    tuning : "batches" or "literal", default="batches"
        Features are added and removed by weight, and where only some of equal weight are needed, the best of at most
        `batches` random choices by the metric is used ("batches"); or one at a time, those of equal weight first and
        each tried, as in the paper ("literal", up to 200 features).
    batches : int, default=8
        Number of random choices among features of equal weight.
    validation : float, default=0.3
        Share of the training rows (of each class, groups kept together) that is set aside.

    References
    ----------
    Moayedikia, Ong, Boo, Yeoh and Jensen, Feature selection for high dimensional imbalanced class data using harmony
    search, Engineering Applications of Artificial Intelligence 57 (2017) 38-49.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import Harmony
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion="su", search=Harmony(d=2, improvisations=20), random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    resources = Resources(peak=(7.0, 2.0))
    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"criterion", "filter"})
    multiclass = True

    d: Any = 0.2
    ripple: int = 1
    pool: float | None = None
    memory: int = 35
    improvisations: int = 200
    hmcr: float = 0.75
    par: tuple[float, float] = (0.45, 0.9)
    hmcr_reading: str = "usual"
    par_reading: str = "falling"
    replace_equal: bool = True
    metric: Any = "g_mean"
    size_penalty: float = 0.0
    tuning: str = "batches"
    batches: int = 8
    validation: float = 0.3

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        pair = self._pair()
        if len(pair) != 2 or not all(_is_size(size) for size in pair):
            raise InputError(
                f"search: d is {self.d!r}; it must be a whole number of 1 or more, a share in (0, 1], or the smallest "
                "and the largest of either"
            )
        if pair[0] > pair[1] and (pair[0] <= 1) == (pair[1] <= 1):
            raise InputError(f"search: d is {self.d!r}; the smaller size must come first")
        whole_number("search", "ripple", self.ripple)
        whole_number("search", "memory", self.memory, 2)
        whole_number("search", "improvisations", self.improvisations)
        whole_number("search", "batches", self.batches)
        for name in ("hmcr", "pool", "size_penalty"):
            if name != "pool" or self.pool is not None:
                number_within("search", name, getattr(self, name), 0.0, 1.0)
        par = self.par
        two = isinstance(par, (tuple, list)) and len(par) == 2 and all(is_real(rate) for rate in par)
        if not two or not 0.0 <= float(par[0]) <= float(par[1]) <= 1.0:
            raise InputError(f"search: par is {par!r}; it must be two numbers from 0 to 1, the smaller one first")
        for name, known in (("hmcr_reading", HMCR_READINGS), ("par_reading", PAR_READINGS), ("tuning", TUNINGS)):
            one_of("search", name, getattr(self, name), known)
        positive_number("search", "validation", self.validation, 0.5)
        truth_value("search", "replace_equal", self.replace_equal)
        fitness_of(self.metric)

    def for_columns(self, names: Sequence[str]) -> Harmony:
        """The same with counts in the place of shares of all the table's columns."""
        return replace(self, d=self._sizes(len(names)))

    def for_size(self, count: int) -> Harmony:
        """The same for subsets of this size."""
        return replace(self, d=count)

    @property
    def held_out_share(self) -> float:
        """The share of the training rows by which subsets are judged."""
        return float(self.validation)

    @property
    def held_out_name(self) -> str:
        """The parameter that sets it."""
        return "search: validation"

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:
        """The best subset by weight first, then the others by weight; features to keep are in every subset."""
        since = time.perf_counter()
        weight, ties, _ = score_features(problem)
        n = len(weight)
        low, high = self._sizes(n)
        # Features to keep are in every subset, which cannot be smaller then.
        low, high = max(low, len(problem.keep)), max(high, len(problem.keep))
        kept = np.isin(np.arange(n), problem.keep)
        # lexsort takes its last key first: features to keep, then the weight, then what breaks ties.
        keys = [key for key in (ties, weight, kept) if key is not None]
        by_weight = np.lexsort([-key.astype(np.float64) for key in keys]).astype(np.intp)
        pool = np.sort(by_weight[: n if self.pool is None else min(n, high + round(float(self.pool) * n))])
        if self.tuning == "literal" and len(pool) > MOST_LITERAL:
            raise InputError(
                f"search: tuning is 'literal' and {len(pool)} features are searched: that is for at most "
                f"{MOST_LITERAL}; use tuning='batches', or a smaller pool"
            )
        metric, name = fitness_of(self.metric)
        judge = Subsets(problem, pool, metric, float(self.size_penalty) / n)
        ripple = Ripple(weight[pool], kept[pool], int(self.ripple), int(self.batches), judge.fitness, rng)
        trials, reason = self._improvise((low, high), ripple, name)
        best = pool[trials.support(int(trials.best[-1]))]
        chosen = np.isin(by_weight, best)
        order = np.concatenate([by_weight[chosen], by_weight[~chosen]])
        stop = _stop(len(best), float(trials.fitness[trials.best[-1], 0]), name, len(trials.size), fixed=low == high)
        steps = (step_of(len(best), fitness_plainly(problem, best, metric)[1], since),)
        text = reason_with_ties(f"{stop}; {reason}", problem)
        return Path(order, weight, steps, text, stop=stop, trials=trials.embed(pool, n))

    def _improvise(self, sizes: tuple[int, int], ripple: Ripple, name: str) -> tuple[Trials, str]:
        """All harmonies, and why it ended."""
        n, members, rng = len(ripple.level), int(self.memory), ripple.rng
        tune = ripple.tune if self.tuning == "batches" else partial(tune_one_by_one, ripple)
        vectors = np.zeros((members + int(self.improvisations), n), dtype=bool)
        fitness: list[tuple[float, ...]] = []
        best: list[int] = []
        memory = np.arange(members)
        reason, t = f"{self.improvisations} improvisations were made", 0
        # The first `memory` trials fill the memory; all others are made of what it holds.
        while t < len(vectors):
            if t < members:
                new, size = rng.random(n) < 0.5, int(rng.integers(sizes[0], sizes[1] + 1))
            elif (vectors[memory] == vectors[memory[0]]).all():
                reason = f"all members of the memory were equal after {t - members} improvisations"
                break
            else:
                new = self._new(vectors[memory], t - members + 1, rng)
                size = self._size(vectors[memory].sum(axis=1), sizes, rng)
            vectors[t] = tune(new, size)
            fitness.append(ripple.fitness(vectors[t]))
            best.append(t if not best or fitness[t] > fitness[best[-1]] else best[-1])
            if t >= members:
                # The memory holds numbers of trials, so that every vector is kept once.
                worst = min(range(members), key=lambda k: fitness[memory[k]])
                known = fitness[memory[worst]]
                memory[worst] = (
                    t if fitness[t] > known or (self.replace_equal and fitness[t] == known) else memory[worst]
                )
            t += 1
        size_of, last = vectors[:t].sum(axis=1).astype(np.intp), np.array(best, dtype=np.intp)
        return Trials(np.packbits(vectors[:t], axis=1), n, size_of, np.array(fitness), last, members, name), reason

    def _new(self, memory: BoolArray, t: int, rng: np.random.Generator) -> BoolArray:
        """(n,) improvisation t: each bit from a random member (and turned over by chance), or random."""
        n, (least, most) = memory.shape[1], self.par
        # All random numbers are drawn for all bits, used or not: readings of the paper differ in nothing else.
        considered = rng.random(n) < (self.hmcr if self.hmcr_reading == "usual" else 1.0 - self.hmcr)
        bits = memory[rng.integers(len(memory), size=n), np.arange(n)]
        par = t / self.improvisations * (most - least) + (0.0 if self.par_reading == "printed" else least)
        turned = rng.random(n) < (par if self.par_reading == "usual" else 1.0 - par)
        return np.where(considered, bits ^ turned, rng.random(n) < 0.5)

    def _size(self, known: IntArray, sizes: tuple[int, int], rng: np.random.Generator) -> int:
        """The size of a new vector: a member's, a little changed, or random, where a range is searched."""
        low, high = sizes
        if low == high:
            return low
        if rng.random() >= self.hmcr:
            return int(rng.integers(low, high + 1))
        # The pitch adjustment of the size: up to a tenth of its range.
        near = max(1, round(0.1 * (high - low)))
        size = int(rng.choice(known)) + int(rng.integers(-near, near + 1))
        return min(max(size, low), high)

    def _pair(self) -> Sequence[Any]:
        """The smallest and the largest size, as they were given."""
        return self.d if isinstance(self.d, (tuple, list)) else (self.d, self.d)

    def _sizes(self, n: int) -> tuple[int, int]:
        """(smallest, largest) number of features among n columns."""
        low, high = (
            int(size) if float(size) > 1.0 or isinstance(size, numbers.Integral) else round(size * n)
            for size in self._pair()
        )
        if low > high:
            raise InputError(f"search: d is {self.d!r}; the smaller size must come first")
        return min(max(low, 1), n), min(max(high, 1), n)


def _stop(size: int, fitness: float, metric: str, count: int, fixed: bool) -> StopInfo:
    """The size of the best subset, and what that was worth."""
    text = f"the best of {count} harmonies has {size} features, {metric} {fitness:.3f} there"
    return StopInfo(size, text, {"metric": metric, "validation": fitness, "harmonies": count}, fixed=fixed)


def _is_size(value: Any) -> bool:
    return is_real(value) and (0.0 < float(value) <= 1.0 or (float(value) > 1.0 and float(value).is_integer()))
