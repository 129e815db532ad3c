"""Multiple kernel learning with an l1 penalty: one kernel per feature, by Newton steps over the few that matter.

    min over mu >= 0, sum(mu) = 1 of J(mu),   J(mu) = max_c sum|c| - 1/2 c'K_mu c,   K_mu = sum_f mu_f K_f

J is convex; with c the machine's coefficients at mu and q_f = c'K_f c, dJ/dmu_f = -q_f / 2 (envelope theorem). While
the set F of coefficients inside their box stays what it is, c_F moves by -P (K_f c)_F as mu_f grows, with P the inverse
of K_mu over F but for the direction of the intercept; so the Hessian is V P V', V = rows (K_f c)_F.

Where the best weights leave the machine a choice of coefficients, J has a kink. So the machine is softened, K + e I
in place of K, which makes its coefficients unique and J smooth; e falls stage by stage, and the last machine is solved
without it.

A step minimises the quadratic model over the simplex (a problem of the form that `_smo` solves), restricted to the
features with a weight and to those without one whose q is largest; all others are looked at once per step, through q
alone, which costs m each. No m x m matrix of a single feature is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..contracts import Array, IntArray
from . import smo as _smo

ENTRANTS = 64  # features without a weight that a step may give one
ZERO = 1e-7  # a weight below this is none
STAGE = 0.1  # gap of the first stage, and what each takes of the one before
SMALLEST = 1e-3  # of the tolerance: stages below are not tried
SOFT = 0.1  # of the gap that a stage may have: what softening costs at most
DAMPING = 0.01  # of the model, at first
STIFFEST = 1e6  # damping at which no step helps any more
STIFF = 1.5  # a model that promises so many times less than comes is too stiff
LEAST = 0.01  # a feature without a weight is damped as one with this share of the mean weight
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
SECTIONS = 20  # of a line search for the bound, among so many features that may decide it:
MOST_NEAR = 200
MODEL_STEPS = 20_000  # pair steps in which the quadratic model is minimised


@dataclass(frozen=True)
class BaseKernels:
    """What is asked of the base kernels, p of them over m rows."""

    p: int
    matrix: Callable[[Array], Array]  # mu (p,) -> K_mu (m, m)
    quadratics: Callable[[Array], Array]  # c -> (p,) c'K_f c
    products: Callable[[Array, IntArray], Array]  # c, features -> (k, m) K_f c


@dataclass(frozen=True)
class WeightedPoint:
    """The machine at some weights."""

    mu: Array
    K: Array  # with the softening that it was solved with
    c: Array
    b: float
    slack: Array
    q: Array  # (p,)
    primal: float  # of these weights and coefficients
    J: float
    violation: float  # of the machine


@dataclass(frozen=True)
class Bound:
    """A lower bound of J at all weights: sum|c| - 1/2 max_f q_f of any feasible c, here a mixture of those met.

    Where the best weights leave the machine a choice of coefficients, no single solution need give a good bound.
    """

    c: Array
    q: Array
    value: float

    def better(self, base: BaseKernels, point: WeightedPoint) -> Bound:
        """The best bound on the line from this c to the point's."""
        cross = 0.5 * (base.quadratics(self.c + point.c) - self.q - point.q)
        size, size_there = float(np.abs(self.c).sum()), float(np.abs(point.c).sum())
        # q_f is convex in t, at most the larger one of its ends: features far below the others do not decide.
        high = np.maximum(self.q, point.q)
        parts = np.array([self.q, 2.0 * cross, point.q])
        near = parts[:, high >= np.partition(high, -MOST_NEAR)[-MOST_NEAR]] if len(high) > MOST_NEAR else parts

        def value(t: float, among: Array) -> float:
            return float((1.0 - t) * size + t * size_there - 0.5 * (_mixture(t) @ among).max())

        t = golden(lambda t: value(t, near))
        t = max((0.0, t, 1.0), key=lambda t: value(t, parts))
        return Bound((1.0 - t) * self.c + t * point.c, _mixture(t) @ parts, value(t, parts))


def _mixture(t: float) -> Array:
    """What ((1 - t) c + t d)'K((1 - t) c + t d) takes of c'Kc, 2 c'Kd and d'Kd."""
    return np.array([(1.0 - t) ** 2, t * (1.0 - t), t * t])


def golden(value: Callable[[float], float]) -> float:
    """Where a concave function is largest on [0, 1], within 1e-4, by golden sections."""
    low, high = 0.0, 1.0
    a, b = 1.0 - GOLDEN, GOLDEN
    at_a, at_b = value(a), value(b)
    for _ in range(SECTIONS):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = value(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = value(a)
    return 0.5 * (low + high)


@dataclass(frozen=True)
class WeightsAnswer:
    """Where the search ended, its duality gap as a share of the primal objective, and the machines solved."""

    point: WeightedPoint
    gap: float
    machines: int


class _WeightSearch:
    """One problem, the points tried on it and the bound that they give."""

    def __init__(self, base: BaseKernels, y: Array, top: Array, tol: float, limit: int) -> None:
        self.base, self.y, self.top, self.tol, self.limit = base, y, top, tol, limit
        self.machines, self.soft, self.J = 0, 0.0, np.inf
        self.bound: Bound | None = None

    def run(self, mu: Array | None, c: Array) -> WeightsAnswer:
        """Stage by stage to smaller gaps, each with less softening; the last machine has none."""
        here, stage = self.solve_at(_first(self.base, self.y, self.top) if mu is None else mu, c), max(STAGE, self.tol)
        # K + e I costs at most e/2 |c|^2 <= e/2 top'|c|: e is chosen so that this is a share (SOFT) of the stage's gap.
        while self.gap(here) > self.tol and self.machines < self.limit and stage > SMALLEST * self.tol:
            self.soft = SOFT * stage * here.J / max(float(self.top @ np.abs(here.c)), 1e-300)
            here = self.stage(self.solve_at(here.mu, here.c), max(stage, self.tol))
            if self.gap(here) <= max(stage, self.tol):
                self.soft = 0.0
                here = self.solve_at(here.mu, here.c)
            stage *= STAGE
        return WeightsAnswer(here, self.gap(here), self.machines)

    def stage(self, here: WeightedPoint, tol: float) -> WeightedPoint:
        """Damped Newton steps until the gap is at most `tol` or no step helps."""
        damping = DAMPING
        while self.gap(here) > tol and self.machines < self.limit and damping < STIFFEST:
            some, d, promised = _step(self.base, self.top, here, damping)
            there, length = self.search_line(here, some, d, promised)
            share = (here.J - there.J) / max(length * promised, 1e-300)
            damping = max(1e-9, damping * (10.0 if share < 0.1 else 1.0 if share < 0.5 else 0.1))
            here = there
        return here

    def search_line(
        self, here: WeightedPoint, some: IntArray, d: Array, promised: float
    ) -> tuple[WeightedPoint, float]:
        """The best point met along d and its distance: a model that is too stiff is followed further than it says."""
        best, length, down = here, 1.0, d < 0
        longest = float(np.min(here.mu[some][down] / -d[down])) if down.any() else 1.0  # to the edge of the simplex
        while self.machines < self.limit:
            mu = here.mu.copy()
            mu[some] += length * d
            mu[mu < ZERO] = 0.0
            there = self.solve_at(mu / mu.sum(), best.c)
            if there.J >= best.J:
                break
            best = there
            if STIFF * length * promised > here.J - there.J or length >= longest:
                break
            length = min(4.0 * length, longest)
        return best, length

    def solve_at(self, mu: Array, start: Array) -> WeightedPoint:
        """The machine at mu; its coefficients go into the bound."""
        K, y, top = self.base.matrix(mu), self.y, self.top
        soft = K + self.soft * np.eye(len(y)) if self.soft else K
        tol = max(1e-10, min(1e-4, 0.01 * self.tol, 0.1 * self.tol * self.J / float(top.sum())))
        c, b, J, slack, violation = _smo.svc(soft, y, top, start, tol, max(1_000_000, 1000 * len(y)))
        self.J = J if J > 0 else self.J
        live = np.flatnonzero(mu)
        # The bound needs a feasible c, not an optimal one: every machine on the way improves it.
        q, f = self.base.quadratics(c), mu[live] @ self.base.products(c, live)  # not through K, which may be huge
        quadratic = float(mu @ q)
        point = WeightedPoint(mu, soft, c, b, slack, q, 0.5 * quadratic + hinge(f, y, top), J, violation)
        if self.bound is None:
            self.bound = Bound(c, q, float(np.abs(c).sum()) - 0.5 * max(float(q.max()), quadratic))
        else:
            self.bound = self.bound.better(self.base, point)
        self.machines += 1
        return point

    def gap(self, point: WeightedPoint) -> float:
        """1/2 c'K_mu c + min_b sum top_i [1 - y_i (f_i + b)]_+ less the bound, of the former; valid for any c."""
        assert self.bound is not None
        return abs(point.primal - self.bound.value) / max(point.primal, 1e-300)  # below 0 is rounding, and as bad


def solve(base: BaseKernels, y: Array, top: Array, mu: Array | None, c: Array, tol: float, limit: int) -> WeightsAnswer:
    """Weights whose relative duality gap is at most `tol`, or the best after `limit` machines.

    `mu` (p,) is where to start, None at the features in which the class means are furthest apart.
    """
    return _WeightSearch(base, y, top, tol, limit).run(mu, c)


def _first(base: BaseKernels, y: Array, top: Array) -> Array:
    """Equal weights for the features in which the two classes' means are furthest apart."""
    side = np.where(y > 0, top, 0.0), np.where(y < 0, top, 0.0)
    q = base.quadratics(side[0] / side[0].sum() - side[1] / side[1].sum())
    best = np.argsort(-q, kind="stable")[:ENTRANTS]
    mu = np.zeros(base.p)
    mu[best] = 1.0 / len(best)
    return mu


def hinge(f: Array, y: Array, top: Array) -> float:
    """min over b of sum_i top_i max(0, 1 - y_i (f_i + b)): convex and piecewise linear, the corners at y_i - f_i."""
    corner = y - f
    order = np.argsort(corner, kind="stable")
    at, w, above = corner[order], top[order], y[order] > 0
    up = np.cumsum(np.where(above, 0.0, w))  # slope from the negatives at or left of a corner
    down = np.cumsum(np.where(above, w, 0.0)[::-1])[::-1]  # from the positives at or right of it
    best = at[np.searchsorted(up - np.append(down[1:], 0.0), 0.0)] if up[-1] > 0 else at[-1]
    return float(top @ np.maximum(0.0, 1.0 - y * (f + best)))


def _step(base: BaseKernels, top: Array, here: WeightedPoint, damping: float) -> tuple[IntArray, Array, float]:
    """The features that may move, by how much, and the fall that it promises: the damped quadratic model's minimum.

    The damping is in the metric in which sqrt(q) mu, normalised, is a step that never rises: q / mu by feature.
    """
    live, mean = here.mu > 0, float(here.mu @ here.q)
    # At the optimum q_f = mean wherever mu_f > 0 and q_f <= mean elsewhere: only features above it can enter.
    outside = np.flatnonzero(~live & (here.q > mean))
    entrants = outside[np.argsort(-here.q[outside], kind="stable")[:ENTRANTS]]
    some = np.sort(np.concatenate([np.flatnonzero(live), entrants]))
    mu, g = here.mu[some], -0.5 * here.q[some]
    H = _hessian(base, top, here, some)
    H[np.diag_indices_from(H)] += damping * mean / np.maximum(mu, LEAST / len(some)) + 1e-12 * mean
    zeros, ones = np.zeros(len(some)), np.ones(len(some))
    d = _smo.quadratic(H, H @ mu - g, zeros, ones, mu, 1e-7 * float(here.q.max()), MODEL_STEPS).c - mu
    return some, d, float(-g @ d - 0.5 * d @ H @ d)


def _hessian(base: BaseKernels, top: Array, here: WeightedPoint, some: IntArray) -> Array:
    """(k, k): second derivatives of J in the weights of some features."""
    slip = _smo.AT_BOUND * top
    free = np.flatnonzero((np.abs(here.c) > slip) & (np.abs(here.c) < top - slip))
    if len(free) < 2:
        return np.zeros((len(some), len(some)))
    V = base.products(here.c, some)[:, free]
    K = here.K[np.ix_(free, free)]
    L = np.linalg.cholesky(K + 1e-10 * np.trace(K) / len(free) * np.eye(len(free)))
    W = np.linalg.solve(L, np.column_stack([V.T, np.ones(len(free))]))
    W, level = W[:, :-1], W[:, -1]  # the intercept's direction is projected out
    W = W - np.outer(level, level @ W) / (level @ level)
    return np.asarray(W.T @ W)
