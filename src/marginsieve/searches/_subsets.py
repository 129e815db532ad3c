"""What subsets of features are worth, one after the other: kernel matrices as sums of what each feature adds."""

from __future__ import annotations

import numpy as np

from ..contracts import Array, BoolArray, IntArray, Metric, ProblemView, Solution

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
