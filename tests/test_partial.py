"""Kernels whose matrix is larger than their cache: the same numbers from parts of it, in bounded memory."""

import tracemalloc

import numpy as np
import pytest

from marginsieve import recipes
from marginsieve.algebra import TallTentGram
from marginsieve.algebra.product_gram import PartialDistanceGram, PartialProductGram
from marginsieve.data import make_cohort
from marginsieve.data.table import Schema
from marginsieve.errors import InputError
from marginsieve.kernels import Clinical, Gaussian, Polynomial
from marginsieve.machines import CSVC

SMALL = 0.05  # megabytes: 81 rows
KERNELS = [
    (Gaussian, {}, PartialDistanceGram),
    (Gaussian, {"width": 2.0, "average": False}, PartialDistanceGram),
    (Polynomial, {"degree": 2}, PartialProductGram),
    (Clinical, {}, TallTentGram),
]


def table_of(rows, columns=7, seed=0):
    X = np.random.default_rng(seed).normal(size=(rows, columns))
    return Schema.from_table(X).table(X), X


def both(kernel, settings, rows=150):
    """The Gram with a cache that is large enough and with one that is not, after a feature was dropped."""
    table, _ = table_of(rows)
    weight = np.linspace(0.5, 2.0, 7)
    live = np.arange(7)
    grams = (kernel(**settings, cache=cache).bind(table, weight, live) for cache in (1000.0, SMALL))
    return [gram.without(np.array([2])) for gram in grams]


@pytest.mark.parametrize(("kernel", "settings", "partial"), KERNELS)
def test_the_numbers_are_those_of_the_whole_matrix(kernel, settings, partial):
    whole, some = both(kernel, settings)
    assert type(some) is partial
    assert type(whole) is not partial
    rng, rows = np.random.default_rng(1), np.array([3, 40, 41, 120])
    c, d = rng.normal(size=150), np.where(rng.random(150) < 0.5, rng.normal(size=150), 0.0)
    Z = rng.normal(size=(20, 7))
    K = whole.matrix()
    np.testing.assert_allclose(some.submatrix(rows), K[np.ix_(rows, rows)], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(some.apply(c), K @ c, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(some.apply(c, Z), whole.matrix(Z) @ c, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(some.diagonal(), K.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(some.only(rows).matrix(), K[np.ix_(rows, rows)], rtol=1e-12, atol=1e-13)
    for right in (None, d):
        exact = whole.drop_one_change(c, right, exact=True)
        np.testing.assert_allclose(some.drop_one_change(c, right, exact=True), exact, rtol=1e-9, atol=1e-10)
        scale = np.median(np.abs(exact))
        np.testing.assert_allclose(some.drop_one_change(c, right), exact, atol=1e-4 * scale)
        np.testing.assert_allclose(
            some.weight_gradient(c, right), whole.weight_gradient(c, right), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(("kernel", "settings", "partial"), KERNELS)
def test_the_machine_is_the_same(kernel, settings, partial, C):
    whole, some = both(kernel, settings, rows=300)
    y = np.where(np.random.default_rng(2).random(300) < 0.4, 1.0, -1.0)
    cost = np.linspace(0.5, 1.5, 300)
    ours, theirs = (CSVC(C=C, tol=1e-8).solve(gram, y, cost) for gram in (some, whole))
    assert ours.converged
    assert ours.residual <= 1e-8
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
    violated = y - whole.matrix() @ ours.coef
    up = violated[ours.coef < np.where(y > 0, C * cost, 0.0)].max()
    low = violated[ours.coef > np.where(y > 0, 0.0, -C * cost)].min()
    assert up - low <= 2e-8


def test_elimination_is_the_same_whatever_the_cache():
    cohort = make_cohort(200, 30, n_relevant=5, effect=1.0, random_state=3)
    fixed = {"n_features_to_select": 5, "threshold": "margin", "random_state": 0}
    ranks = [
        recipes.svm_rfe(kernel=Gaussian(cache=cache), **fixed).fit(cohort.X, cohort.y).path_.order
        for cache in (1000.0, SMALL)
    ]
    np.testing.assert_array_equal(*ranks)


def test_memory_stays_within_the_cache():
    table, X = table_of(5000, seed=4)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0, 1.0, -1.0)
    gram = Gaussian(cache=40.0).bind(table, np.ones(7), np.arange(7))
    tracemalloc.start()
    solution = CSVC(C=1.0, tol=1e-3).solve(gram, y, np.ones(5000))
    change = gram.drop_one_change(solution.coef)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.converged
    assert np.argsort(-change)[:2].tolist() in ([0, 1], [1, 0])
    assert peak < 80 * 2**20  # the whole matrix takes 200 MB


@pytest.mark.parametrize("cache", [0, -1.0, "much", np.inf])
def test_a_cache_that_makes_no_sense_is_refused(cache):
    with pytest.raises(InputError, match=r"cache is .*; it must be a positive number"):
        recipes.svm_rfe(kernel=Gaussian(cache=cache)).fit(np.eye(8), [0, 1] * 4)
