"""What a search sees: the problem it works on, the solutions it gets, the path it returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any, NamedTuple, Protocol

import numpy as np

from .algebra.gram import Gram
from .contracts import Array, IntArray, Matrix
from .data.table import Table


@dataclass(frozen=True)
class Solution:
    """f(x) = sum_i coef_i K_s(x_i, x) + diagonal * K_s(x, x) + intercept."""

    coef: Array  # (m,)
    intercept: float
    objective: float
    residual: float  # KKT violation, duality gap or MIP gap
    slack: Array  # (m,) evidence per sample
    converged: bool = True
    diagonal: float = 0.0  # SVDD: +1
    scale: Array | None = None  # machines that choose features
    weights: Array | None = None  # (p,) machines without an expansion
    expanded: Array | None = None  # the same where a category has a weight for each level
    iterations: int = 1  # machines solved on the way to this one
    bound: float = float("nan")  # no objective is below, where that is known
    status: str = ""  # of programs: "optimal", "limit" (the gap was not closed, or the clock cut the work), "heuristic"


class Machine(Protocol):
    """Solves for the expansion on a fixed kernel matrix."""

    def solve(self, gram: Gram, y: Array, cost: Array, warm: Solution | None = None) -> Solution: ...
    def decision(self, solution: Solution, gram: Gram, Z: Any) -> Array: ...
    def loo(self, solution: Solution, gram: Gram, y: Array, cost: Array) -> Array: ...
    def dual(self, solution: Solution, K: Array) -> float: ...
    def scale_gradient(self, solution: Solution, gram: Gram) -> Array: ...
    def contrast(self, problem: Problem) -> Array | None: ...


class Criterion(Protocol):
    """Scores features; higher means keep.

    One that needs a "solution" scores the live features of a gram; one that needs "labels" alone scores every column
    of the problem's table, and the gram may be None.
    """

    needs: frozenset[str]

    def score(self, problem: Problem, gram: Gram | None, solutions: Sequence[Solution]) -> Array: ...


class Search(Protocol):
    """Walks over feature subsets and returns a full ranking."""

    def run(self, problem: Problem, rng: np.random.Generator) -> Path: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One subset on a path: its size, the machine's objective and residual on it, and the seconds it took."""

    size: int
    objective: float
    residual: float
    seconds: float
    score: float = float("nan")  # by cross-validation, when asked
    score_error: float = float("nan")  # its standard error over the folds


class Own(Protocol):
    """The number of features that a method settled on by itself, and how."""

    @property
    def size(self) -> int: ...
    @property
    def emptied(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Settled:
    """Penalised scaling's number: how its factors came to rest."""

    size: int
    converged: bool
    iterations: int
    at_cap: float  # share of the features whose factor is at its bound
    moved: tuple[float, ...] = ()  # by iteration: the mean change of the factors, in units of their start
    emptied: bool = False  # no feature was worth its price: what stays is the last one to fall, or those to keep

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size, "converged": self.converged, "moves": self.iterations, "share_at_cap": self.at_cap}

    def __str__(self) -> str:
        if self.emptied:
            left = f"C2 is too large ({self.size} kept): lower C2"
            return f"no feature was worth its price after {self.iterations} moves: {left}"
        how = "the factors came to rest" if self.converged else "the factors still moved"
        return f"{how} after {self.iterations} moves: {self.size} features, {self.at_cap:.0%} of them at the cap"


@dataclass(frozen=True)
class Weighted:
    """An l1 machine's number: the features with a weight at its own C."""

    size: int
    emptied: bool = False  # there is none: what stays presses hardest for one

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size}

    def __str__(self) -> str:
        if self.emptied:
            return f"no feature has a weight at this C ({self.size} kept): raise C"
        return f"{self.size} features have a weight at the machine's own C"


@dataclass(frozen=True)
class Budgeted:
    """A budget's number: the program's objective, the bound below it, and how it was solved."""

    size: int
    spent: float
    budget: float
    objective: float
    bound: float
    status: str
    how: str
    emptied: bool = False  # no weight differs from 0

    def to_dict(self) -> dict[str, Any]:
        bound = None if self.bound != self.bound else self.bound
        told = {"size": self.size, "spent": self.spent, "budget": self.budget, "objective": self.objective}
        return {**told, "bound": bound, "status": self.status}

    def __str__(self) -> str:
        if self.emptied:
            found = "is" if self.status == "optimal" else "was found"
            return f"no feature {found} worth a weight at this C ({self.size} kept): raise C"
        return f"{self.how}: objective {self.objective:.5g}, {self.spent:g} of a budget of {self.budget:g} spent"


@dataclass(frozen=True)
class Harmonised:
    """A harmony search's number: the size of the best subset that it met, and what that was worth."""

    size: int
    fitness: tuple[float, ...]
    metric: str
    made: int  # subsets that were tried
    given: bool = True  # the size was asked for, not searched for
    emptied: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size, "metric": self.metric, "validation": self.fitness[0], "harmonies": self.made}

    def __str__(self) -> str:
        return f"the best of {self.made} harmonies has {self.size} features, {self.metric} {self.fitness[0]:.3f} there"


@dataclass(frozen=True)
class Harmonies:
    """Every subset that a harmony search made, in order: T of them over n features."""

    bits: Any  # (T, n / 8) numpy.packbits
    n: int
    size: IntArray  # (T,)
    fitness: Array  # (T, 3) compared from left to right
    best: IntArray  # (T,) which was the best so far
    memory: int  # so many were drawn at random before the first improvisation
    metric: str

    def support(self, t: int) -> IntArray:
        """The features of harmony t."""
        return np.flatnonzero(np.unpackbits(self.bits[t], count=self.n)).astype(np.intp)

    def among(self, features: IntArray, n: int) -> Harmonies:
        """The same in a table of n features, of which these were searched."""
        spread = np.zeros((len(self.bits), n), dtype=bool)
        spread[:, features] = np.unpackbits(self.bits, axis=1, count=self.n)
        return replace(self, bits=np.packbits(spread, axis=1), n=n)


@dataclass(frozen=True)
class Path:
    """A full ranking of the features (best first, no ties) and the steps that led to it."""

    order: IntArray  # (n,) a permutation
    scores: Array  # (n,) by feature: the criterion when the feature was last looked at
    steps: tuple[Step, ...]
    stop_reason: str
    nested: bool = True  # the subset of each size is the head of `order`
    weights: tuple[Array, ...] = ()  # learned kernel weights of heads of `order`, at the sizes where the search stood
    own: Own | None = None  # the method's own number of features, where it has one
    solutions: tuple[Solution, ...] = ()  # on the features of that number, where the search found them itself
    cut: int | None = None  # how many features were selected
    scored_by: str = "score"  # what the scores of the steps are
    harmonies: Harmonies | None = None  # what a harmony search tried

    def weights_at(self, size: int) -> Array | None:
        """(size,) learned kernel weights of the best features, with the sum that their step had; None without."""
        known = [weight for weight in self.weights if len(weight) >= size]
        if not known:
            return None
        nearest = min(known, key=len)
        return np.asarray(nearest[:size] * (nearest.sum() / max(nearest[:size].sum(), 1e-300)))

    def support(self, size: int) -> IntArray:
        """The features of the subset of this size, sorted."""
        return np.sort(self.order[:size])

    def plot(self, file: str | File | None = None) -> Any:
        """A matplotlib figure, written to `file` where given.

        Score against size with its interval, the cut marked; of a harmony search what it tried and the best so far.
        """
        from .report.path_plot import draw

        return draw(self, file)

    def scored(self, sizes: Sequence[int], score: Array, error: Array, by: str) -> Path:
        """The path with a score by size (and what it is); sizes that were not steps become steps, largest first."""
        known = {step.size: step for step in self.steps}
        for size, value, spread in zip(sizes, score, error, strict=True):
            step = known.get(size, Step(size, float("nan"), float("nan"), 0.0))
            known[size] = replace(step, score=float(value), score_error=float(spread))
        return replace(self, steps=tuple(known[size] for size in sorted(known, reverse=True)), scored_by=by)


class Counted(Protocol):
    """Work that was done: solves, how many did not converge, and by how much at most."""

    @property
    def solves(self) -> int: ...
    @property
    def unconverged(self) -> int: ...
    @property
    def worst_residual(self) -> float: ...


class Rows(NamedTuple):
    """Rows in the columns of a problem's table: Z (rows, n) or None for its own, y (k, rows), weight (rows,)."""

    Z: Matrix | None
    y: Array
    weight: Array


Metric = Callable[[Array, Array, Array], tuple[float, ...]]  # decision (k, rows), y (k, rows), weight (rows,)


class Valued(NamedTuple):
    """A subset's fitness, compared from left to right, and the machine on it."""

    fitness: tuple[float, ...]
    solutions: tuple[Solution, ...]


@dataclass
class Problem:
    """k binary problems over one table that share one scale: y (k, m) in {-1, +1}, cost (k, m)."""

    table: Table
    y: Array
    cost: Array
    sample_weight: Array  # (m,) what filters count a sample by; costs have it inside
    scale: Array  # (n,) frozen at fit
    kernel: Any
    machine: Any
    criterion: Any
    validation: Rows | None = None  # rows that the machine is not fitted on, for criteria that judge it
    keep: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    groups: IntArray | None = None  # (m,) rows of one group stay together in folds
    solves: int = 0
    unconverged: int = 0
    worst_residual: float = 0.0

    def gram(self, features: IntArray | None = None) -> Gram:
        """The kernel on the features (all of them by default), at the frozen scale."""
        return Gram.build(self.kernel, self.table, features, self.scale)

    def solve(self, gram: Gram, warm: Sequence[Solution] | None = None) -> tuple[Solution, ...]:
        """One solution per binary problem."""
        solutions = []
        for k in range(len(self.y)):
            start = None if warm is None else warm[k]
            solution = self.machine.solve(gram, self.y[k], self.cost[k], warm=start)
            self.solves += 1
            if not solution.converged:
                self.unconverged += 1
                self.worst_residual = max(self.worst_residual, solution.residual)
            solutions.append(solution)
        return tuple(solutions)

    def value(self, features: IntArray, metric: Metric, warm: Sequence[Solution] | None = None) -> Valued:
        """What the machine on some features is worth on the rows that it is judged by, and its solutions there."""
        gram = self.gram(features)
        solutions = self.solve(gram, warm)
        return Valued(self.judge(gram, solutions, metric), solutions)

    def judge(self, gram: Gram, solutions: Sequence[Solution], metric: Metric) -> tuple[float, ...]:
        """What solutions are worth on the rows that the machine is judged by."""
        Z, y, weight = self.judged
        rows = self.table.Z if Z is None else Z
        return metric(np.array([self.machine.decision(one, gram, rows) for one in solutions]), y, weight)

    def root(self, live: int) -> float:
        """What turns the root of a kernel weight into a scale: not 1 where the kernel divides by the live features."""
        return float(np.sqrt(live)) if self.kernel.average else 1.0

    def afresh(self, **fields: Any) -> Problem:
        """The problem with other fields and counts of its own."""
        return replace(self, solves=0, unconverged=0, worst_residual=0.0, **fields)

    def part(self, features: IntArray) -> Problem:
        """The problem on some features, with counts of its own."""
        keep = np.flatnonzero(np.isin(features, self.keep)).astype(np.intp)
        made = self.afresh(table=self.table.columns(features), scale=self.scale[features], keep=keep)
        if self.validation is not None and self.validation.Z is not None:
            made.validation = self.validation._replace(Z=self.validation.Z[:, features])
        return made

    def count(self, other: Counted) -> None:
        """Add the counts of other work to this problem's."""
        self.solves += other.solves
        self.unconverged += other.unconverged
        self.worst_residual = max(self.worst_residual, other.worst_residual)

    def score(self, gram: Gram | None, solutions: Sequence[Solution]) -> Array:
        """The criterion of each live feature, summed over the binary problems; same order as gram.features."""
        return np.asarray(self.criterion.score(self, gram, solutions))

    def ties(self, gram: Gram | None, solutions: Sequence[Solution]) -> Array | None:
        """What orders live features of equal score, where the criterion says so."""
        return self.criterion.ties(self, gram, solutions) if hasattr(self.criterion, "ties") else None

    @property
    def judged(self) -> Rows:
        """The rows on which a criterion judges the machine: those held out for it, or its own."""
        return Rows(None, self.y, self.sample_weight) if self.validation is None else self.validation

    @staticmethod
    def step(size: int, solutions: Sequence[Solution], since: float) -> Step:
        """A path's step from what was solved since the clock read `since`."""
        objective, residual = 0.0, 0.0
        for solution in solutions:
            objective, residual = objective + solution.objective, max(residual, solution.residual)
        return Step(size, objective, residual, time.perf_counter() - since)


def codes_of(problem: Problem) -> IntArray:
    """(m,) class numbers of a problem's rows."""
    y = problem.y
    return np.asarray(y[0] > 0 if len(y) == 1 else y.argmax(axis=0), dtype=np.intp)
