"""Ranking by machines that choose features themselves, over a path of their price C."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, EntersFeatures, IntArray, Machine, Path, ProblemView, Resources, Solution, Step, StopInfo
from ..errors import one_of, whole_number
from ..problem import WorkDone, step_of
from .backward import check_final, worst_first


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
