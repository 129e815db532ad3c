"""Searches that rank by a score: backward elimination (solve, score, drop the worst, again), top k, and an l1 path."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import (
    SIGNS,
    TIMES,
    VALUES,
    Array,
    Batch,
    BoolArray,
    BreaksTies,
    EntersFeatures,
    HasCheck,
    IntArray,
    Machine,
    Path,
    ProblemView,
    Resources,
    Solution,
    Step,
    StopInfo,
)
from ..errors import InputError, is_real, one_of, whole_number
from ..problem import WorkDone, is_filter, size_grid, step_of


class Backward(BaseEstimator):
    """Recursive elimination from all features down to one.

    Parameters
    ----------
    step : float or int, default=0.2
        Features dropped in each step: a share of those that are left (in (0, 1), at least one feature) or a count.
    one_by_one_below : int, default=0
        From this number of features on, one is dropped in each step; 0 never switches.
    final : Machine or None, default=None
        Machine fitted on the selected features; None is the machine of the search.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import Backward
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(search=Backward(step=1), n_features_to_select=2, standardize=True, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES, TIMES})
    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"criterion"})
    multiclass = True
    resources = Resources(linear_in_rows=True)
    in_batches: ClassVar[bool] = True
    ended: ClassVar[str] = "all features were eliminated"

    def __init__(self, step: float | int = 0.2, one_by_one_below: int = 0, final: Machine | None = None) -> None:
        self.step = step
        self.one_by_one_below = one_by_one_below
        self.final = final

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_step(self.step)
        check_final(self.final)

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Ranks later dropped features higher; within one drop, higher scores; then the leftmost column."""
        gram = problem.gram()
        n = len(gram.features)
        scores, order, steps = np.zeros(n), np.empty(n, dtype=np.intp), []
        # What is solved here need not be solved again on the sizes that inner folds look at; but rows with equal
        # categories have decision values that only rounding orders, which scores by rank see, and models are to be
        # ranked as if fitted on their own.
        replay: dict[int, tuple[Solution, ...]] = {}
        replays = frozenset(size_grid(n, 1) if self.final is None and set(problem.table.kind) == {"real"} else ())
        solutions, left = None, n
        while True:
            since = time.perf_counter()
            solutions = problem.solve(gram, warm=solutions)
            value = problem.score(gram, solutions)
            steps.append(step_of(left, solutions, since))
            if left in replays and all(solution.is_expansion for solution in solutions):
                replay[left] = solutions
            # Never all at once: the last feature is scored alone, and the path ends at size 1.
            count = min(drop_count(left, self.step, self.one_by_one_below), max(left - 1, 1))
            kept = np.isin(gram.features, problem.keep) if len(problem.keep) else None
            worst = worst_first(value, count, kept, problem.ties(gram, solutions))
            # Ranks are filled from the end: the worst of this step gets the last free rank.
            gone = gram.features[worst]
            scores[gone] = value[worst]
            order[left - count : left] = gone[::-1]
            left -= count
            if left == 0:
                return Path(order, scores, tuple(steps), reason_with_ties(self.ended, problem), replay=replay)
            gram = gram.without(np.sort(gone) if count > 1 else gone)

    def run_batched(self, batch: Batch) -> tuple[Any, Any]:
        """`run` on many training parts in step: features (F, p), best first, and their scores."""
        arrays, live = batch.arrays, batch.usable
        xp, left = arrays.xp, int(live.shape[1])
        orders, scores = [], []
        while left:
            value = batch.score(live)
            count = min(drop_count(left, self.step, self.one_by_one_below), max(left - 1, 1))
            # Sorted backwards so that of equal scores the rightmost goes first, as in `worst_first`.
            worst = left - 1 - arrays.order(xp.flip(value, (1,)))[:, :count]
            orders.append(xp.flip(arrays.take_along(live, worst), (1,)))
            scores.append(xp.flip(arrays.take_along(value, worst), (1,)))
            live = arrays.without(live, worst)
            left -= count
        return xp.concatenate(orders[::-1], 1), xp.concatenate(scores[::-1], 1)


def drop_count(left: int, step: float | int, one_by_one_below: int) -> int:
    """How many features go next: a share of what is left or a count, one at a time near the end."""
    if left <= one_by_one_below:
        return 1
    return int(step) if step >= 1 else max(1, int(step * left))


def check_step(step: Any) -> None:
    """Refuse what is neither a share nor a count."""
    if not is_real(step) or not math.isfinite(step) or not (0 < step < 1 or (step >= 1 and float(step).is_integer())):
        raise InputError(f"search: step is {step!r}; it must be a share in (0, 1) or a whole number of 1 or more")


def check_final(final: Machine | None) -> None:
    """Refuse what is neither None nor a machine."""
    if final is not None and (isinstance(final, type) or not hasattr(final, "solve")):
        raise InputError(f"search: final is {final!r}; it must be None or a machine such as CSVC()")
    if isinstance(final, HasCheck):
        final.check()


def worst_first(value: Array, count: int, kept: BoolArray | None, ties: Array | None = None) -> IntArray:
    """Places of the `count` worst, worst first: kept features last, then by score, by ties; of equals the leftmost is
    better."""
    backwards = value[::-1]
    if count == 1 and kept is None and ties is None:
        return np.array([len(value) - 1 - int(backwards.argmin())])
    # lexsort takes its last key first: kept, then the score, then what breaks ties; reversed for the leftmost.
    keys = [part[::-1] for part in (ties, value, kept) if part is not None]
    return np.asarray(len(value) - 1 - np.lexsort(keys)[:count], dtype=np.intp)


def reason_with_ties(reason: str, problem: ProblemView) -> str:
    """A stop reason, and what decided where scores were equal."""
    return f"{reason}; {problem.criterion.ties_by}" if isinstance(problem.criterion, BreaksTies) else reason


class InTurns(BaseEstimator):
    """Several eliminations that differ in the machine, their rankings merged by turns.

    The first of each comes first, then the second of each, and so on, each feature where it first comes. What is steady
    over the machines, such as ridge regressions with different penalties, ranks high.

    Parameters
    ----------
    machines : sequence of Machine, default=()
        The machine of each elimination; none is the machine of the selector alone.
    step : float or int, default=0.2
        As in `Backward`.
    final : Machine or None, default=None
        Machine fitted on the selected features; None is the machine of the selector.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.machines import CSVC
    >>> from marginsieve.searches import InTurns
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = InTurns([CSVC(C=0.01), CSVC(C=1.0)])
    >>> selector = SVMSelector(search=search, n_features_to_select=2, standardize=True, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES, TIMES})
    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"criterion"})
    multiclass = True
    resources = Resources(linear_in_rows=True)

    def __init__(self, machines: Sequence[Machine] = (), step: float | int = 0.2, final: Machine | None = None) -> None:
        self.machines = machines
        self.step = step
        self.final = final

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_step(self.step)
        for machine in (*self.machines, self.final):
            check_final(machine)

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:
        """The steps are those of the first elimination; scores are minus the place."""
        paths = []
        for machine in self.machines or (problem.machine,):
            part = problem.with_machine(machine)
            paths.append(Backward(self.step, final=machine).run(part, rng))
            problem.count(part)
        turns = np.column_stack([path.order for path in paths]).ravel()
        order = turns[np.sort(np.unique(turns, return_index=True)[1])]
        kept = np.isin(order, problem.keep)
        order = np.concatenate([order[kept], order[~kept]]).astype(np.intp)
        scores = np.empty(len(order))
        scores[order] = -np.arange(len(order), dtype=np.float64)
        return Path(order, scores, paths[0].steps, f"{len(paths)} eliminations in turns")


# Top k: score every feature once and sort.


class TopK(BaseEstimator):
    """One ranking, by a filter or by a criterion of one machine fitted on all features.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import TopK
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> selector = SVMSelector(criterion="fisher", search=TopK(), n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES, TIMES})
    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"criterion", "filter"})
    multiclass = True
    resources = Resources(linear_in_rows=True)
    in_batches: ClassVar[bool] = True
    ended: ClassVar[str] = "every feature was scored once"

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Equal scores rank from left to right; features to keep come first."""
        since = time.perf_counter()
        value, ties, solutions = score_features(problem)
        kept = np.isin(np.arange(len(value)), problem.keep)
        order = worst_first(value, len(value), kept, ties)[::-1]
        reason = reason_with_ties(self.ended, problem)
        return Path(order, value, (step_of(len(order), solutions, since),), reason)

    def run_batched(self, batch: Batch) -> tuple[Any, Any]:
        """`run` on many training parts in step: features (F, p), best first, and their scores."""
        value = batch.score(batch.usable)
        order = batch.arrays.order(-value)
        return batch.arrays.take_along(batch.usable, order), batch.arrays.take_along(value, order)


def score_features(problem: ProblemView) -> tuple[Array, Array | None, tuple[Solution, ...]]:
    """(n,) the score of every feature, what orders equal ones, and the machine on all where it was needed."""
    gram = None if is_filter(problem.criterion) else problem.gram()
    solutions = problem.solve(gram) if gram is not None else ()
    return problem.score(gram, solutions), problem.ties(gram, solutions), solutions


# Ranking by machines that choose features themselves, over a path of their price C.


class LearnedPath(BaseEstimator):
    """C grows from where the first feature enters to the machine's C; what enters earlier ranks higher.

    Features that enter at the same C rank by the size of their weight there; those that never enter (an l1 machine
    selects about as many features as there are samples, at most) follow by the size of their gradient at the largest C.
    So the best n features are nested, whatever n is.

    Parameters
    ----------
    points : int, default=40
        Number of values of C, each a fixed multiple of the one before.
    final : Machine or None, default=None
        Machine fitted on the selected features; None is the machine of the path. An l1 machine may leave out some of
        them; CSVC() uses them all.
    stop : "ranking" or "own", default="ranking"
        "ranking" ranks all features. With "own" the features with a nonzero weight at the machine's C rank first, and
        all of them are selected where `n_features_to_select` is None.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import LearnedPath
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = LearnedPath(points=10)
    >>> selector = SVMSelector(machine="l1", criterion=None, search=search, n_features_to_select=2, random_state=0)
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    requires: ClassVar[tuple[type, ...]] = (EntersFeatures,)
    targets: ClassVar[frozenset[str]] = frozenset({SIGNS, VALUES})
    ranks_by: ClassVar[frozenset[str]] = frozenset()
    multiclass = True
    resources = Resources(linear_in_rows=True)

    def __init__(self, points: int = 40, final: Machine | None = None, stop: str = "ranking") -> None:
        self.points = points
        self.final = final
        self.stop = stop

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        whole_number("search", "points", self.points, 2)
        check_final(self.final)
        one_of("search", "stop", self.stop, ("ranking", "own"))

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Of n values of C, what enters at the k-th scores n - k + 1, what never enters its gradient, below 1."""
        view, machine = problem.view(), problem.machine
        assert isinstance(machine, EntersFeatures)
        prices = self._prices(problem, machine)
        entered, size = np.zeros(len(view.features)), np.zeros(len(view.features))
        steps: dict[int, Step] = {}
        solutions: tuple[Solution, ...] = ()
        since = time.perf_counter()
        paths = [machine.solve_path(view, y, cost, prices) for y, cost in zip(problem.y, problem.cost, strict=True)]
        for k, solutions in enumerate(zip(*paths, strict=True)):
            problem.count(WorkDone.from_solutions(solutions))
            weight = np.sum([np.abs(each.weights) for each in solutions if each.weights is not None], axis=0)
            # A weight may return to 0 as C grows; the first entry is what ranks.
            new = (weight > 0) & (entered == 0)
            entered[new], size[new] = len(prices) - k, weight[new]
            live = int(np.count_nonzero(weight)) or len(weight)  # C is too small for any: all are left
            steps[live] = step_of(live, solutions, since)
            since = time.perf_counter()
        # At most 1 where a feature has no weight, so that it ranks below those that entered, which score 1 or more.
        gradient = np.max([machine.pull(solution, view) for solution in solutions], axis=0)
        score = np.where(entered > 0, entered, np.minimum(gradient, 1.0 - 1e-9))
        stop = None
        if self.stop == "own":
            chosen = weight > 0
            score[chosen] += len(prices)
            stop = _stop(max(len(np.union1d(np.flatnonzero(chosen), problem.keep)), 1), not chosen.any())
        kept = np.isin(np.arange(len(score)), problem.keep)
        order: IntArray = worst_first(score, len(score), kept, np.where(entered > 0, size, gradient))[::-1]
        walked = tuple(steps[count] for count in sorted(steps, reverse=True))
        count = int(np.count_nonzero(entered))
        reason = f"{count} of {len(entered)} features entered up to the largest C; the others follow by their gradient"
        return Path(order, score, walked, reason, stop=stop)

    def _prices(self, problem: ProblemView, machine: EntersFeatures) -> Array:
        """The values of C; the one at which the first feature enters has nothing to rank and is not looked at."""
        view, first = problem.view(), machine.C
        if self.points > 2:  # of two points only the machine's own is looked at
            first = min(machine.first(view, y, cost) for y, cost in zip(problem.y, problem.cost, strict=True))
        return np.geomspace(first, machine.C, self.points)[1:] if first < machine.C else np.array([machine.C])


def _stop(size: int, emptied: bool) -> StopInfo:
    """The features with a weight at the machine's C."""
    if emptied:
        return StopInfo(size, f"no feature has a weight at this C ({size} kept): raise C", emptied=True)
    return StopInfo(size, f"{size} features have a weight at the machine's C")
