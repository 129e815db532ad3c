"""Harmony search: a memory of subsets, new ones made of what it holds, the worst replaced."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, BoolArray, IntArray, Metric, Path, ProblemView, Resources, Solution, StopInfo, Trials
from ..errors import InputError, is_real, listing, number_within, one_of, positive_number, truth_value, whole_number
from ..outcomes.scores import area_and_gap
from ..problem import step_of
from ..solvers.execution import jit
from .ranking import reason_with_ties, score_features

# What a subset is worth on validation rows: a metric, then what decides between equal ones.

NAMES = {"g_mean": "G-mean", "auc": "AUC", "balanced_accuracy": "balanced accuracy"}

STEP, DIGITS = 1e-3, 4  # of decision values, in their middle size; of the loss


def fitness_of(metric: Any) -> tuple[Metric, str]:
    """(metric, AUC, minus the mean hinge loss) as a function, and what the first is called.

    With "auc" the second is the G-mean. A function is called with the labels and the decision values: (rows,) in
    {-1, +1} and (rows,) for two classes, class numbers and (rows, classes) for more; larger is better.
    """
    if isinstance(metric, str) and metric in NAMES:
        return _metric_by_name(metric), NAMES[metric]
    if callable(metric) and not isinstance(metric, type):
        return _metric_from_function(metric), getattr(metric, "__name__", "score")
    raise InputError(
        f"search: metric is {metric!r}; it must be one of {listing(list(NAMES))}, or a function(y, values)"
    )


def _metric_by_name(metric: str) -> Metric:
    def fitness(decision: Array, y: Array, weight: Array) -> tuple[float, ...]:
        # With few validation rows most subsets share their G-mean; AUC and hinge loss tell them apart.
        recall, auc, hinge = _measure(_round_values(decision), y, weight)
        g_mean = float(np.prod(recall) ** (1.0 / len(recall)))
        first = {"g_mean": g_mean, "auc": auc, "balanced_accuracy": float(recall.mean())}[metric]
        return first, g_mean if metric == "auc" else auc, -round(hinge, DIGITS)

    return fitness


def _metric_from_function(function: Callable[[Any, Any], float]) -> Metric:
    def fitness(decision: Array, y: Array, weight: Array) -> tuple[float, ...]:
        decision = _round_values(decision)
        pair = (y[0], decision[0]) if len(y) == 1 else (y.argmax(axis=0), decision.T)
        try:
            value = float(function(*pair))
        except MemoryError:
            raise
        except Exception as error:
            name = getattr(function, "__name__", function)
            raise InputError(
                f"search: metric is {name} and failed ({type(error).__name__}: {error}); it must take the labels and "
                "the decision values and return a number"
            ) from error
        if not np.isfinite(value):
            raise InputError(f"search: metric returned {value!r}; it must return a finite number")
        _, auc, hinge = _measure(decision, y, weight)
        return value, auc, -round(hinge, DIGITS)

    return fitness


def _round_values(decision: Array) -> Array:
    """Decision values to a thousandth of their middle size: what a solver leaves open orders no samples."""
    # Warm starts differ in the last digits: without this two equal subsets could be ordered by how they were reached.
    unit = STEP * float(np.median(np.abs(decision)))
    return np.asarray(np.rint(decision / unit) * unit) if unit > 0 else decision


@jit
def _measure(decision: Array, y: Array, weight: Array) -> tuple[Array, float, float]:
    """The share of each class that is called right, the ranking AUC and the mean hinge loss.

    Two classes are called by sign, more by the largest value; of more the last two are means over the class problems.
    In the AUC ties count half.
    """
    k, m = y.shape
    # One loop for all that is asked of a subset: the search calls it thousands of times on few rows.
    right, whole = np.zeros(max(k, 2)), np.zeros(max(k, 2))
    for i in range(m):
        side = (0 if y[0, i] > 0.0 else 1) if k == 1 else int(y[:, i].argmax())
        hit = y[0, i] * decision[0, i] > 0.0 if k == 1 else int(decision[:, i].argmax()) == side
        whole[side] += weight[i]
        right[side] += weight[i] if hit else 0.0
    auc, hinge = 0.0, 0.0
    for j in range(k):
        plus = np.where(y[j] > 0.0, weight, 0.0)
        auc += area_and_gap(decision[j], np.argsort(decision[j]), plus, weight - plus)[0]
        for i in range(m):
            hinge += weight[i] * max(0.0, 1.0 - y[j, i] * decision[j, i])
    return right / whole, auc / k, hinge / (k * weight.sum())


# Bringing a subset to its size: ripple-add and ripple-remove.
#
# ripple-add(r) adds the r heaviest features from outside, then removes the r - 1 lightest; ripple-remove(r) removes the
# r lightest, then adds the r - 1 heaviest. Where all weights differ, many of them in a row have a closed form: with S
# the subset and U the rest, q removals leave the heaviest |S| - q of S and the q (r - 1) heaviest of U, and q additions
# the heaviest |S| + q of S and the q r heaviest of U.

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


# What subsets of features are worth, one after the other: kernel matrices as sums of what each feature adds.

NEAR = 0.5  # of a subset or of its complement: with fewer changes than that its sums are those of another one, updated


class Subsets:
    """Fitness of subsets of a pool of features, each worked out once; machines start from the last one's coefficients.

    Rows are the training rows and, after them, those that judge: A (rows, m) = sum_j w_j base_j with the training rows,
    and the same of each row with itself. A subset is worked out in full, as what it adds or as the whole pool less what
    it leaves out; one that differs little from the last of these takes over its sums, less what left and plus what
    entered. `fitness_plainly` is the same without any of this.
    """

    def __init__(self, problem: ProblemView, pool: IntArray, metric: Metric, penalty: float = 0.0) -> None:
        self.problem = problem
        self.pool = pool
        self.metric = metric
        self.penalty = penalty  # by feature, off the first of the fitness
        self.known: dict[bytes, tuple[float, ...]] = {}
        self._warm: tuple[Solution, ...] | None = None
        self._base: tuple[BoolArray, Array, Array] | None = None
        self._all: tuple[Array, Array] | None = None
        self._sums = problem.gram(pool).subset_sums(problem.judging_rows.Z) if problem.machine.needs == "gram" else None

    def fitness(self, bits: BoolArray) -> tuple[float, ...]:
        """Of the features of the pool whose bits are set."""
        key = np.packbits(bits).tobytes()
        if key not in self.known:
            first, *rest = self._value(bits)
            self.known[key] = (first - self.penalty * int(bits.sum()), *rest)
        return self.known[key]

    def _value(self, bits: BoolArray) -> tuple[float, ...]:
        problem, places = self.problem, np.flatnonzero(bits)
        if self._sums is None:
            value, solutions = fitness_plainly(problem, self.pool[places], self.metric, self._warm)
            self._keep(solutions)
            return value
        A, squares = self._total(bits)
        m = problem.table.shape[0]
        gram = self._sums.gram(A[:m], places)
        solutions = problem.solve(gram, self._warm)
        self._keep(solutions)
        # Machines with weights of their own decide through their view; an expansion needs K of the judging rows alone.
        if not all(solution.is_expansion for solution in solutions):
            return problem.judge(gram, solutions, self.metric)
        K, diagonal = self._sums.kernel(gram, A[m:], squares)
        decision = np.array([K @ s.coef + s.diagonal * diagonal + s.intercept for s in solutions])
        return self.metric(decision, problem.judging_rows.y, problem.judging_rows.weight)

    def _total(self, bits: BoolArray) -> tuple[Array, Array]:
        assert self._sums is not None
        inside, outside = np.flatnonzero(bits), np.flatnonzero(~bits)
        if self._base is not None:
            before, A, squares = self._base
            gone, new = np.flatnonzero(before & ~bits), np.flatnonzero(bits & ~before)
            # The base stays that of the last full sum, so rounding does not add up over many updates.
            if len(gone) + len(new) < NEAR * min(len(inside), len(outside)):
                less, more = self._sums.sums_over(gone), self._sums.sums_over(new)
                return A - less[0] + more[0], squares - less[1] + more[1]
        A, squares = self._sums.sums_over(inside) if len(inside) <= len(outside) else self._without(outside)
        self._base = bits.copy(), A, squares
        return A, squares

    def _without(self, places: IntArray) -> tuple[Array, Array]:
        """What all features of the pool but some add."""
        assert self._sums is not None
        if self._all is None:
            self._all = self._sums.sums_over(np.arange(len(self.pool)))
        less = self._sums.sums_over(places)
        return self._all[0] - less[0], self._all[1] - less[1]

    def _keep(self, solutions: tuple[Solution, ...]) -> None:
        """Coefficients of samples may start another subset; weights of features may not."""
        if all(solution.is_expansion for solution in solutions):
            self._warm = solutions


def fitness_plainly(
    problem: ProblemView, features: IntArray, metric: Metric, warm: tuple[Solution, ...] | None = None
) -> tuple[tuple[float, ...], tuple[Solution, ...]]:
    """What the machine on some features is worth on the rows that it is judged by, and its solutions."""
    view = problem.view(features)
    solutions = problem.solve(view, warm)
    return problem.judge(view, solutions, metric), solutions


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
