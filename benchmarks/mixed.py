"""Tables of numbers and categories: the clinical criterion, multiple kernel learning, HEOM distances."""

import tracemalloc

import numpy as np
from sklearn.svm import SVC

from marginsieve.algebra.tents import Tents
from marginsieve.data import make_cohort
from marginsieve.data.table import Schema, Table
from marginsieve.kernels import Clinical, heom_distances
from marginsieve.machines import MKL

from .timing import Result, side_by_side

FITS = 1500
PAIRS = 20_000


def run():
    yield criterion()
    yield from multiple_kernels()
    yield distances()


def bound(table):
    """The clinical Gram of all columns."""
    kernel = Clinical()
    return kernel.bind(table, kernel.start(table), np.arange(table.shape[1]))


def base(u, v, kind, spread):
    """k_j of a column's codes, plainly."""
    return np.equal(u, v).astype(float) if kind == "nominal" else 1.0 - np.abs(u - v) / spread


def criterion():
    """The margin change on 4,348 real and 7 nominal columns of 200 rows."""
    rng = np.random.default_rng(0)
    Z = np.asfortranarray(np.column_stack([rng.normal(size=(200, 4348)), rng.integers(0, 4, (200, 7))]))
    kind = ("real",) * 4348 + ("nominal",) * 7
    codes = Table(Z, kind, tuple(f"x{j}" for j in range(4355)))
    gram, c = bound(codes), rng.normal(size=200)

    def loop():
        spread = codes.spread
        return [c @ base(z[:, None], z[None, :], kind[j], spread[j]) @ c for j, z in enumerate(Z.T)]

    a, b = side_by_side(lambda: gram.drop_one_change(c), loop)
    return Result("clinical criterion, 200 x 4,355", "plain loop over features", a, b, 150)


def multiple_kernels():
    """One clinical kernel per column of 70 x 4,355, to a relative gap of 1e-3."""
    cohort = make_cohort(
        70, 4348, n_relevant=30, n_categorical=7, n_categorical_relevant=3, prevalence=0.43, effect=0.6
    )
    table = Schema.from_table(cohort.X).table(cohort.X)
    y, gram = np.where(cohort.y == "case", 1.0, -1.0), bound(table)
    K = gram.matrix()
    table.compute_once(Tents.from_table).sorting  # noqa: B018 - sorted once per fit
    for C in (1.0, 10.0):
        machine, cost = MKL(C=C), np.ones(70)
        assert machine.solve(gram, y, cost).residual <= 1e-3
        a, b = side_by_side(
            lambda machine=machine, cost=cost: machine.solve(gram, y, cost),
            lambda C=C: SVC(kernel="precomputed", C=C).fit(K, y),
        )
        yield Result(f"MKL, 4,355 kernels on 70 rows, C = {C:g}", f"{FITS:,} fits of SVC(precomputed)", a, FITS * b, 1)
    tracemalloc.start()
    machine.solve(gram, y, cost)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    yield Result("its memory, in MB", "limit of 100 MB", peak, 100, 1)


def distances():
    """452 rows of 206 numbers and 73 categories, against a loop over pairs that is vectorised over the columns."""
    rng = np.random.default_rng(0)
    numbers, levels = rng.normal(size=(452, 206)), rng.integers(0, 3, (452, 73))
    X, kinds = np.column_stack([numbers, levels]), {f"x{j}": "nominal" for j in range(206, 279)}
    spread = np.ptp(numbers, axis=0)

    def loop():
        out = 0.0
        for pair in range(PAIRS):
            i, k = divmod(pair, 452)
            d = (numbers[i] - numbers[k]) / spread
            out += np.sqrt(d @ d + np.count_nonzero(levels[i] != levels[k]))
        return out

    a, b = side_by_side(lambda: heom_distances(X, kinds=kinds), loop)
    whole = b * 452 * 452 / PAIRS
    return Result("HEOM distances, 452 x 279", f"loop over pairs, {PAIRS:,} of them extrapolated", a, whole, 50)
