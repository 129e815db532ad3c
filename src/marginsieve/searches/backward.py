"""Backward elimination: solve, score, drop the worst, again."""

from __future__ import annotations

import math
import time
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Batch, BoolArray, BreaksTies, HasCheck, IntArray, Machine, Path, ProblemView, Resources
from ..errors import InputError, is_real
from ..problem import step_of


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
        solutions, left = None, n
        while True:
            since = time.perf_counter()
            solutions = problem.solve(gram, warm=solutions)
            value = problem.score(gram, solutions)
            steps.append(step_of(left, solutions, since))
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
                return Path(order, scores, tuple(steps), reason_with_ties(self.ended, problem))
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
