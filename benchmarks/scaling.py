"""Penalised scaling against matrix products and against fits of scikit-learn's SVC on the same table."""

import numpy as np
from sklearn.svm import SVC

from marginsieve.data.table import Schema
from marginsieve.kernels import Gaussian
from marginsieve.machines import CSVC
from marginsieve.problem import Problem
from marginsieve.searches import PenalizedScaling
from marginsieve.searches.penalized import DampedBFGS, Objective, QuasiNewton

from .timing import Result, side_by_side


def problem(m, n, positives):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(m) < positives, 1.0, -1.0)
    X = rng.normal(size=(m, n))
    X[y > 0, :50] += 1.0
    table = Schema.from_table(X).table(X)
    kernel = Gaussian()
    cost = np.where(y > 0, (m - positives) / positives, 1.0)
    return X, y, lambda: Problem(table, y[None], cost[None], np.ones(m), kernel.start(table), kernel, CSVC(), None)


def iteration(make):
    """One quasi-Newton iteration with a history of two: gradient, line search, update."""
    objective = Objective(make(), "min-max", "concave", 1.0, None, True)
    rule, here, B = QuasiNewton(3, 0.25, 4.0), objective.restrict_to_support(objective.begin()), DampedBFGS()
    h = rule.slope(objective, here)
    for _ in range(2):
        here, h, B, _ = rule.iterate(objective, here, h, B)

    def once():
        copy = DampedBFGS()
        copy._pairs, copy._parts = list(B._pairs), list(B._parts)
        rule.iterate(objective, here, h, copy)

    return once


def run():
    X, y, make = problem(181, 12533, 31)
    G, Z = np.random.default_rng(0).normal(size=(181, 181)), np.ascontiguousarray(X)
    a, b = side_by_side(iteration(make), lambda: G @ Z, rounds=7)
    yield Result("quasi-Newton iteration, 181 x 12,533", "five products m x m by m x n", a, 5 * b, 1)

    for (m, n, positives), fits in (((50, 4434, 7), 60), ((181, 12533, 31), 150)):
        X, y, make = problem(m, n, positives)
        theirs = SVC(kernel="rbf")
        a, b = side_by_side(
            lambda make=make: PenalizedScaling().run(make(), None), lambda X=X, y=y, theirs=theirs: theirs.fit(X, y)
        )
        yield Result(f"KP path, {m} x {n:,} down to one", f'{fits} fits of SVC(kernel="rbf")', a, fits * b, 1)
