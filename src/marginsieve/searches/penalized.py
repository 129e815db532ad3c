"""Penalised scaling: each feature has a factor in the kernel; the factors are optimised and the smallest dropped."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, BoolArray, IntArray, Path, ProblemView, Resources, Scalable, Step, StopInfo
from ..errors import InputError, many, one_of, positive_number, whole_number
from ..problem import step_of
from .backward import check_step, drop_count, worst_first
from .scaling_objective import Objective, ScaledPoint
from .scaling_updates import Gradient, Multiplicative, QuasiNewton, Update, rescale_to

LONGER = 1.2  # the next move after one that lowered the objective
HALVINGS = 6  # of a move whose objective rose, before it is given up
CHOICES = {
    "update": ("multiplicative", "quasi-newton", "gradient"),
    "direction": ("min-max", "as-printed"),
    "stop": ("ranking", "own"),
    "penalty": ("concave", "l1"),
    "refit": ("learned", "start"),
}


@dataclass(eq=False, repr=False)  # scikit-learn has its own
class PenalizedScaling(BaseEstimator):
    """KP: scale the features, penalize the scale, drop features whose factor becomes small.

    ::

        min over s >= 0 of  J(s) + C2 * sum(1 - exp(-beta * s / s_start)) * J(s_start) / n

    where J is the machine's optimal objective at the scale s. A move is accepted only if it does not raise this
    objective after the machine has been solved again.

    Parameters
    ----------
    update : "multiplicative", "quasi-newton" or "gradient", default="multiplicative"
        How the factors move: in mu = s^2 with a fixed sum; by the 2018 rule; by the 2011 rule.
    direction : "min-max" or "as-printed", default="min-max"
        Towards a small J, or towards a large one, as the papers' formulas read. See docs/direction.md.
    stop : "ranking" or "own", default="ranking"
        Rank all features; or first let the penalty decide how many stay, with the sum of mu free, and rank these after.
    penalty : "concave" or "l1", default="concave"
        The concave penalty of the formula above, or the sum of the factors.
    C2 : float, default=1.0
        Weight of the penalty; 0 is no penalty.
    beta : float or None, default=None
        How fast the concave penalty saturates; None is 1 (5 where `scaled` is False).
    scaled : bool, default=True
        Measure s in units of its start and C2 in units of J / n; False uses the papers' formula as printed.
    step : float or int, default=0.2
        Features dropped after each round: a share of those that are left, or a count. The rules of the papers drop the
        features whose factor fell below `eps`, but never more than this; where no factor fell so far, the features
        with the smallest factors are dropped all the same, and the reason of the stop says how many.
    one_by_one_below : int, default=10
        From this number of features on, one is dropped after each round.
    moves : int, default=3
        Number of moves in a round. One move of "quasi-newton" is a run of iterations until a factor falls below `eps`.
    rate : float or None, default=None
        Size of the largest move: of log mu for "multiplicative" (None is 0.1; up to eight times as far where the sum is
        free and the objective keeps falling), of s / s_start for "gradient" (None is 0.25).
    eps : float, default=0.25
        A factor below this share of its start counts as zero.
    cap : float, default=4.0
        Where the sum of mu is free, no factor exceeds this multiple of its start.
    tol : float, default=1e-3
        stop="own": the factors have converged when they move by less than this share of their start, on average.
    max_iter : int, default=200
        stop="own": largest number of moves.
    inner : int, default=3
        Largest number of iterations of "quasi-newton" with the coefficients kept; many of them follow a bound of J, not
        J.
    refit : "learned" or "start", default="learned"
        Scale at which the machine is fitted on the selected features: the learned factors, or those that the kernel
        started with.

    References
    ----------
    Maldonado, Weber and Basak, Simultaneous feature selection and classification using kernel-penalized support vector
    machines, Information Sciences 181 (2011) 115-128; Maldonado and Lopez, Dealing with high-dimensional
    class-imbalanced datasets: Embedded feature selection for SVM classification, Applied Soft Computing 67 (2018)
    94-105.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.data import make_cohort
    >>> from marginsieve.searches import PenalizedScaling
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> search = PenalizedScaling(C2=1.0)
    >>> selector = SVMSelector(
    ...     "gaussian", criterion=None, search=search, n_features_to_select=2, standardize=True, class_weight="balanced"
    ... )
    >>> selector.fit(cohort.X, cohort.y).get_feature_names_out()
    array(['g03', 'g07'], dtype=object)
    """

    resources = Resources(peak=(5.0, 9.0), rescales_often=True)
    requires: ClassVar[tuple[type, ...]] = (Scalable,)
    ranks_by: ClassVar[frozenset[str]] = frozenset()
    multiclass = True

    update: str = "multiplicative"
    direction: str = "min-max"
    stop: str = "ranking"
    penalty: str = "concave"
    C2: float = 1.0
    beta: float | None = None
    scaled: bool = True
    step: float | int = 0.2
    one_by_one_below: int = 10
    moves: int = 3
    rate: float | None = None
    eps: float = 0.25
    cap: float = 4.0
    tol: float = 1e-3
    max_iter: int = 200
    inner: int = 3
    refit: str = "learned"

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Later dropped features rank higher; within one drop, those with the larger last factor."""
        objective = Objective(problem, self.direction, self.penalty, self.C2, self.beta, self.scaled)
        walk = _ScalingWalk(objective, self.step, self.one_by_one_below, self.eps)
        stop = self._settle(walk) if self.stop == "own" else None
        self._rank(walk, fixed=self.update == "multiplicative" or stop is not None)
        reason = f"all features were ranked: {walk.accepted} moves lowered the objective, {walk.refused} did not"
        reason += walk.describe_forced_drops()
        path = walk.path(stop, reason if stop is None else str(stop))
        return path if self.refit == "learned" else replace(path, weights=())

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        for name, known in CHOICES.items():
            one_of("search", name, getattr(self, name), known)
        if self.C2 != 0:
            positive_number("search", "C2", self.C2)
        positive_number("search", "eps", self.eps, 1.0)
        positive_number("search", "tol", self.tol)
        positive_number("search", "cap", self.cap)
        if self.cap < 1:
            raise InputError(f"search: cap is {self.cap!r}; it must be 1 or more, the factors start at 1")
        if self.beta is not None:
            positive_number("search", "beta", self.beta)
        if self.rate is not None:
            positive_number("search", "rate", self.rate, 2.0)
        for name, lowest in (("moves", 1), ("inner", 1), ("max_iter", 1), ("one_by_one_below", 0)):
            whole_number("search", name, getattr(self, name), lowest)
        check_step(self.step)

    def _rule(self, fixed: bool = False) -> Update:
        if self.update == "multiplicative":
            return Multiplicative(0.1 if self.rate is None else self.rate, self.cap)
        if fixed:
            return Multiplicative(0.1, self.cap)
        if self.update == "gradient":
            return Gradient(0.25 if self.rate is None else self.rate, self.cap)
        return QuasiNewton(self.inner, self.eps, self.cap)

    def _rank(self, walk: _ScalingWalk, fixed: bool) -> None:
        """Rounds of moves, a drop after each, down to one feature.

        Where the sum is fixed the moves are multiplicative: what the method settled on is mostly at the cap, and no
        rule without a fixed sum can rank it.
        """
        walk.total = float(walk.point.e @ walk.point.e) if fixed else None
        while len(walk.point.live) > 1:
            since, rule = time.perf_counter(), self._rule(fixed)
            for _ in range(self.moves):
                if not walk.move(rule) or (not fixed and walk.below_eps().any()):
                    break
            walk.record(since)
            fallen = 0 if fixed else int(walk.below_eps().sum())
            before = len(walk.point.live)
            # What fell below eps goes, at most a step of it; where nothing did, a step of the smallest.
            walk.drop(fallen)
            walk.rounds += 1
            if not fixed and not fallen:
                walk.forced_drops.append(before - len(walk.point.live))
        walk.record(time.perf_counter())

    def _settle(self, walk: _ScalingWalk) -> StopInfo:
        """Moves without a fixed sum until the factors rest; what fell below eps is gone for good."""
        rule, converged, since = self._rule(), False, time.perf_counter()
        moved: list[float] = []
        while len(moved) < self.max_iter and not converged:
            before = walk.point
            stalled = not walk.move(rule)
            start = walk.objective.start[before.live]
            moved.append(float(np.mean(np.abs(walk.point.e - before.e) / start)))
            fallen = int(walk.below_eps().sum())
            emptied = fallen == len(walk.point.live)
            converged = emptied or (not fallen and (stalled or moved[-1] < self.tol))
            if fallen and not (emptied and fallen == 1):
                walk.record(since)
                since = time.perf_counter()
                walk.drop(fallen, limit=False)
        emptied = bool(walk.below_eps().all())
        # The share at the cap is read before what stays without a factor gets its own back.
        t = walk.point.e / walk.objective.start[walk.point.live]
        walk.restore()
        walk.record(since)
        return _stop(len(t), converged, float(np.mean(t > 0.999 * self.cap)), tuple(moved), emptied)


def _stop(size: int, converged: bool, at_cap: float, moved: tuple[float, ...], emptied: bool) -> StopInfo:
    """How the factors converged; `at_cap` is the share of them at their bound."""
    how = "the factors converged" if converged else "the factors still moved"
    text = f"{how} after {len(moved)} moves: {size} features, {at_cap:.0%} of them at the cap"
    if emptied:
        text = f"the penalty removed every feature after {len(moved)} moves ({size} kept): lower C2"
    details = {"converged": converged, "moves": len(moved), "share_at_cap": at_cap}
    return StopInfo(size, text, details, emptied=emptied, trace=moved)


class _ScalingWalk:
    """Where the search stands, and what it has left behind."""

    def __init__(self, objective: Objective, step: float | int, one_by_one_below: int, eps: float) -> None:
        self.objective = objective
        self.step, self.one_by_one_below, self.eps = step, one_by_one_below, eps
        self.point: ScaledPoint = objective.begin()
        self.total: float | None = None
        n = len(objective.start)
        self.kept: BoolArray = np.isin(np.arange(n), objective.problem.keep)
        self.scores = np.zeros(n)
        self.gone: list[IntArray] = []  # worst first
        self.steps: list[Step] = []
        self.weights: list[tuple[IntArray, Array]] = []
        self.accepted = self.refused = self.rounds = 0
        self.forced_drops: list[int] = []  # features dropped in each round in which no factor fell below eps

    def move(self, rule: Update) -> bool:
        """One move along the rule's curve, halved until the re-solved objective does not rise; False if it did not."""
        curve = rule.curve(self.objective, self.point, self.total)
        for _ in range(HALVINGS):
            # The slope belongs to kept coefficients (envelope theorem); whether a move helps is known after solving
            # anew.
            there = self.objective.solve_at(self.point, curve(rule.length))
            if there.value <= self.point.value:
                self.point = there
                self.accepted += 1
                # Careful growth after a success: halving costs a solved machine each time.
                rule.length = min(1.0 if self.total is not None else rule.longest, LONGER * rule.length)
                return True
            self.refused += 1
            rule.length *= 0.5
        return False

    def restore(self) -> None:
        """A feature that stays although its factor fell to nothing (one to keep, the last one) gets it back."""
        start = self.objective.start[self.point.live]
        e = np.where(self.point.e < self.eps * start, start, self.point.e)
        if not np.array_equal(e, self.point.e):
            self.point = self.objective.solve_at(self.point, e)

    def below_eps(self) -> BoolArray:
        """(p,) which live features have a factor of almost nothing; those to keep never have."""
        live = self.point.live
        return np.asarray((self.point.e < self.eps * self.objective.start[live]) & ~self.kept[live])

    def drop(self, fallen: int, limit: bool = True) -> None:
        """Drop the features with the smallest factors: a share, or those fallen if they are fewer.

        Where the total is fixed the others go on from mu <- sqrt(mu): a short memory of what they were.
        """
        left = len(self.point.live)
        count = drop_count(left, self.step, self.one_by_one_below)
        if fallen:
            count = min(fallen, count) if limit else fallen
        count = min(count, left - 1)
        live, e = self.point.live, self.point.e
        worst = worst_first(e, count, self.kept[live])
        self.scores[live] = e / self.objective.start[live]
        self.gone.append(live[worst])
        stay = np.setdiff1d(np.arange(left), worst)
        # Without the square root features that fell behind early could hardly come back.
        e = e[stay] if self.total is None else rescale_to(np.sqrt(e[stay]), self.total)
        self.point = self.objective.solve_at(self.point, e, stay)

    def describe_forced_drops(self) -> str:
        """What was dropped although no factor had fallen below eps; empty where there was no such round."""
        rounds = len(self.forced_drops)
        if not rounds:
            return ""
        return (
            f"; in {rounds} of {self.rounds} rounds no factor fell below eps ({self.eps:g} of its start), "
            f"and the smallest were dropped all the same, {many(sum(self.forced_drops), 'feature')} in all"
        )

    def record(self, since: float) -> None:
        """A step of the path at the present features."""
        self.steps.append(step_of(len(self.point.live), self.point.solutions, since))
        self.weights.append((self.point.live, self.point.e**2))

    def path(self, stop: StopInfo | None, reason: str) -> Path:
        live, e = self.point.live, self.point.e
        self.scores[live] = e / self.objective.start[live]
        order = np.concatenate([*self.gone, live])[::-1].astype(np.intp)
        known, steps, weight = {}, {}, np.zeros(len(order))
        for step, (features, mu) in zip(self.steps, self.weights, strict=True):
            if step.size not in steps:  # what the method settled on comes before what ranks it
                weight[features] = mu
                steps[step.size], known[step.size] = step, weight[order[: step.size]].copy()
        return Path(order, self.scores, tuple(steps.values()), reason, weights=tuple(known.values()), stop=stop)
