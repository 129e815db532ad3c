"""Criteria against their definitions, and what must not matter to them."""

import numpy as np
import pytest
from oracles import fisher as slow_fisher
from scipy import sparse

from marginsieve.criteria import CRITERIA, Fisher, MarginChange
from marginsieve.kernels import KERNELS
from marginsieve.machines import CSVC
from marginsieve.problem import Problem
from marginsieve.table import Table


def problem_of(table, y, kernel="linear", criterion="margin", weight=None):
    y = np.atleast_2d(y)
    weight = np.ones(y.shape[1]) if weight is None else weight
    cost = np.ones_like(y) * weight
    part = KERNELS[kernel]()
    scale = part.scale(table) if kernel != "linear" or not table.is_sparse else np.ones(table.shape[1])
    return Problem(table, y, cost, weight, scale, part, CSVC(tol=1e-9), CRITERIA[criterion]())


def scores(problem):
    gram = problem.gram()
    solutions = problem.solve(gram) if "solution" in problem.criterion.needs else ()
    return problem.score(gram, solutions)


def test_margin_change_is_the_squared_weight_on_the_linear_kernel(blobs, table_of):
    X, y = blobs
    problem = problem_of(table_of(X), y)
    gram = problem.gram()
    solutions = problem.solve(gram)
    w = solutions[0].coef @ X
    np.testing.assert_allclose(problem.score(gram, solutions), w**2, rtol=1e-12)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_margin_change_is_recomputing_without_the_feature(kernel, blobs, table_of):
    X, y = blobs
    problem = problem_of(table_of(X), y, kernel)
    gram = problem.gram()
    solution = problem.solve(gram)
    c = solution[0].coef
    whole = c @ gram.matrix() @ c
    slow = [abs(whole - c @ gram.without(np.array([j])).matrix() @ c) for j in range(X.shape[1])]
    np.testing.assert_allclose(problem.score(gram, solution), slow, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("criterion", list(CRITERIA))
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_columns_may_be_permuted_and_a_constant_one_is_worth_nothing(criterion, kernel, blobs, table_of, rng):
    X, y = blobs
    X = np.column_stack([X, np.full(len(X), 3.0)])
    before = scores(problem_of(table_of(X), y, kernel, criterion))
    order = rng.permutation(X.shape[1])
    after = scores(problem_of(table_of(X[:, order]), y, kernel, criterion))
    np.testing.assert_allclose(after, before[order], rtol=1e-4, atol=1e-9 * before.max())
    if kernel != "polynomial" or criterion == "fisher":  # a constant still bends a polynomial
        assert before[-1] == pytest.approx(0.0, abs=1e-9 * before.max())


def test_fisher_is_its_definition(blobs, table_of):
    X, y = blobs
    np.testing.assert_allclose(scores(problem_of(table_of(X + 100.0), y, criterion="fisher")), slow_fisher(X, y))
    table = table_of(X)
    thin = Table(sparse.csc_array(X), table.kind, table.names)
    np.testing.assert_allclose(scores(problem_of(thin, y, criterion="fisher")), slow_fisher(X, y))


def test_fisher_counts_by_weight(blobs, table_of, rng):
    X, y = blobs
    times = rng.integers(1, 4, len(y))
    weighted = scores(problem_of(table_of(X), y, criterion="fisher", weight=times.astype(float)))
    np.testing.assert_allclose(weighted, slow_fisher(np.repeat(X, times, axis=0), np.repeat(y, times)))


def test_fisher_of_a_perfect_column_is_finite_and_largest(table_of, rng):
    y = np.where(np.arange(20) < 8, 1.0, -1.0)
    X = np.column_stack([rng.normal(size=20), y])
    value = scores(problem_of(table_of(X), y, criterion="fisher"))
    assert np.isfinite(value).all()
    assert value[1] > 1e6 * value[0]


def test_scores_add_up_over_class_problems(blobs, table_of):
    X, y = blobs
    both = np.vstack([y, -y])
    for criterion in (MarginChange, Fisher):
        name = "margin" if criterion is MarginChange else "fisher"
        one, two = (scores(problem_of(table_of(X), labels, criterion=name)) for labels in (y, both))
        np.testing.assert_allclose(two, 2 * one, rtol=1e-6)
