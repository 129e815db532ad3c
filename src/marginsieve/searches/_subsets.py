"""What subsets of features are worth, one after the other: kernel matrices as sums of what each feature adds."""

from __future__ import annotations

import numpy as np

from ..algebra.gram import Gram
from ..algebra.products import as_distance, weighted
from ..algebra.tents import MISSING
from ..algebra.tents import weighted as tents
from ..contracts import Array, BoolArray, IntArray
from ..problem import Metric, Problem, Solution

NEAR = 0.5  # of a subset or of its complement: with fewer changes than that its sums are those of another one, updated


class Subsets:
    """Fitness of subsets of a pool of features, each worked out once; machines start from the last one's coefficients.

    Rows are the training rows and, after them, those that judge: A (rows, m) = sum_j w_j base_j with the training rows,
    and the same of each row with itself. A subset is worked out in full, as what it adds or as the whole pool less what
    it leaves out; one that differs little from the last of these takes over its sums, less what left and plus what
    entered. `Problem.value` is the same without any of this.
    """

    def __init__(self, problem: Problem, pool: IntArray, metric: Metric, penalty: float = 0.0) -> None:
        self.problem = problem
        self.pool = pool
        self.metric = metric
        self.penalty = penalty  # by feature, off the first of the fitness
        self.known: dict[bytes, tuple[float, ...]] = {}
        self._warm: tuple[Solution, ...] | None = None
        self._base: tuple[BoolArray, Array, Array] | None = None
        self._all: tuple[Array, Array] | None = None
        self._columns: Array | None = None
        if problem.kernel.geometry is not None and not problem.table.is_sparse:
            self._whole = problem.gram(pool)
            Z = problem.judged.Z
            own = np.asarray(self._whole.columns)
            self._columns = np.hstack([own, own if Z is None else self._whole._block_of(Z)])

    def fitness(self, bits: BoolArray) -> tuple[float, ...]:
        """Of the features of the pool whose bits are set."""
        key = np.packbits(bits).tobytes()
        if key not in self.known:
            first, *rest = self._value(bits)
            self.known[key] = (first - self.penalty * int(bits.sum()), *rest)
        return self.known[key]

    def _value(self, bits: BoolArray) -> tuple[float, ...]:
        problem, places = self.problem, np.flatnonzero(bits)
        if self._columns is None:
            found = problem.value(self.pool[places], self.metric, self._warm)
            self._keep(found.solutions)
            return found.fitness
        A, squares = self._sums(bits)
        m = problem.table.shape[0]
        product = 0.5 * (A[:m] + A[:m].T)
        whole = self._whole
        gram = Gram(whole.kernel, whole.table, whole.scale, self.pool[places], whole.block, places, product)
        solutions = problem.solve(gram, self._warm)
        self._keep(solutions)
        if any(one.weights is not None or one.scale is not None for one in solutions):
            return problem.judge(gram, solutions, self.metric)
        K, own = self._kernel(gram, A[m:], squares, m)
        decision = np.array([K @ one.coef + one.diagonal * own + one.intercept for one in solutions])
        return self.metric(decision, problem.judged.y, problem.judged.weight)

    def _kernel(self, gram: Gram, A: Array, squares: Array, m: int) -> tuple[Array, Array]:
        """K between the judging and the training rows, and of each judging row with itself."""
        outer, A, squares = gram.kernel.outer, gram._divided(A), gram._divided(squares)
        if gram.kernel.geometry == "distance":
            return np.asarray(outer(as_distance(A, squares[m:], squares[:m]))), outer(np.zeros(len(A)))
        return np.asarray(outer(A)), np.asarray(outer(squares[m:]))

    def _sums(self, bits: BoolArray) -> tuple[Array, Array]:
        inside, outside = np.flatnonzero(bits), np.flatnonzero(~bits)
        if self._base is not None:
            before, A, squares = self._base
            gone, new = np.flatnonzero(before & ~bits), np.flatnonzero(bits & ~before)
            if len(gone) + len(new) < NEAR * min(len(inside), len(outside)):
                less, more = self._added(gone), self._added(new)
                return A - less[0] + more[0], squares - less[1] + more[1]
        A, squares = self._added(inside) if len(inside) <= len(outside) else self._without(outside)
        self._base = bits.copy(), A, squares
        return A, squares

    def _without(self, places: IntArray) -> tuple[Array, Array]:
        """What all features of the pool but some add."""
        if self._all is None:
            self._all = self._added(np.arange(len(self.pool)))
        less = self._added(places)
        return self._all[0] - less[0], self._all[1] - less[1]

    def _added(self, places: IntArray) -> tuple[Array, Array]:
        """What some features add to A (rows, m) and to the rows' products with themselves (rows,)."""
        assert self._columns is not None
        block, weight = self._columns[places], self._whole.block.weight[places]
        own = block[:, : self.problem.table.shape[0]]
        if self._whole.kernel.geometry == "tent":
            return tents(np.ascontiguousarray(block), weight, np.ascontiguousarray(own)), weight @ (block < MISSING)
        return weighted(block, weight, own), np.asarray(weight @ (block * block))

    def _keep(self, solutions: tuple[Solution, ...]) -> None:
        """Coefficients of samples may start another subset; weights of features may not."""
        if all(one.weights is None and one.scale is None for one in solutions):
            self._warm = solutions
