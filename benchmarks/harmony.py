"""Filters over levels and neighbours, and harmony search: against limits, a peer, and their own growth."""

import numpy as np

from marginsieve import recipes
from marginsieve.criteria import ReliefF, SymmetricalUncertainty
from marginsieve.data.table import Schema
from marginsieve.kernels import Linear
from marginsieve.machines import CSVC
from marginsieve.problem import Problem

from .elimination import table
from .timing import Result, seconds, side_by_side


def problem_of(X, y, criterion):
    codes, weight, kernel = Schema.from_table(X).table(X), np.ones(len(y)), Linear()
    labels = np.where(y > 0, 1.0, -1.0)
    return Problem(codes, labels[None], weight[None], weight, kernel.start(codes), kernel, CSVC(), criterion)


def symon(X, y, **settings):
    return lambda: recipes.symon(random_state=0, similar=None, **settings).fit(X, y)


def run():
    X, y = table(78, 24_481, 34)
    for cuts in ("equal_frequency", "mdl"):
        problem = problem_of(X, y, SymmetricalUncertainty(cuts))
        problem.score(None, ())
        taken = seconds(lambda p=problem: p.score(None, ()))
        yield Result(f"symmetrical uncertainty with {cuts} cuts, 78 x 24,481", "limit of 5 s", taken, 5, 1)

    small = table(100, 2000, 40)
    try:
        from skrebate import ReliefF as Peer
    except ImportError:
        pass
    else:
        ours = problem_of(*small, ReliefF())
        a, b = side_by_side(
            lambda: ours.score(None, ()), lambda: Peer(n_neighbors=10).fit(small[0].copy(), small[1]), 2
        )
        yield Result("ReliefF, 100 x 2,000", "skrebate", a, b, 20)

    symon(*small, threshold="margin", improvisations=5)()  # compile
    taken = seconds(symon(X, y, threshold="margin"))
    yield Result("SYMON, 78 x 24,481, a fifth of the features, HMS 35, NI 200", "limit of 60 s", taken, 60, 1)
    taken = seconds(symon(X, y, n_jobs=2))
    yield Result("the same with the threshold from five inner folds, n_jobs=2", "limit of 60 s", taken, 60, 1)
    before = None
    for n in (2000, 10_000, 50_000):
        X, y = table(78, n, 34)
        taken = min(seconds(symon(X, y, threshold="margin")) for _ in range(2))
        if before is not None:
            yield Result(f"SYMON, 78 x {n:,}", "five times its seconds on a fifth of the columns", taken, 5 * before, 1)
        before = taken
