"""Every kernel: symmetric, positive semi-definite, fast algebra equal to the definition, gradients to differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Plain, drop_one, gram_of, kernel_matrix
from scipy import sparse

from marginsieve.data.table import Table
from marginsieve.errors import InputError
from marginsieve.kernels import KERNELS as ENTRIES
from marginsieve.kernels import Clinical, Gaussian, Linear, Polynomial

KERNELS = [
    Linear(),
    Linear(average=True),
    Gaussian(),
    Gaussian(width=0.5, average=False),
    Polynomial(degree=2),
    Polynomial(degree=3, width=0.3, average=False),
    Clinical(),
    Clinical(average=False),
]
KERNELS += [make() for make in ENTRIES.values() if make not in map(type, KERNELS)]  # whatever is registered
IDS = [str(kernel).replace(" ", "") for kernel in KERNELS]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=IDS)


@pytest.fixture
def setting(rng, table_of):
    X = rng.normal(size=(9, 6)) * [1, 2, 0.5, 1, 3, 1] + [0, 5, -3, 0, 0, 1]
    Z = 0.5 * (X[:4] + X[4:8])  # within the range of each column: the clinical kernel clips what is not
    return table_of(X), rng.uniform(0.2, 1.0, 6), rng.normal(size=9), Z


@kernels
def test_matrix_is_the_definition(kernel, setting):
    table, s, _, Z = setting
    gram = gram_of(kernel, table, s**2)
    K = gram.matrix()
    np.testing.assert_allclose(K, kernel_matrix(kernel, table, s), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gram.matrix(Z), kernel_matrix(kernel, table, s, Z=Z), rtol=1e-9, atol=1e-12)
    both = Table(np.vstack([table.Z, Z]), table.kind, table.names, table.variance)  # within the range of the table
    np.testing.assert_allclose(gram.diagonal(Z), np.diag(gram_of(kernel, both, s**2).matrix())[9:], rtol=1e-9)
    np.testing.assert_allclose(gram.diagonal(), np.diag(K))
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.abs(K).max()


@kernels
def test_apply_is_matrix_times_vector(kernel, setting):
    table, s, c, Z = setting
    gram = gram_of(kernel, table, s**2)
    np.testing.assert_allclose(gram.apply(c, Z), gram.matrix(Z) @ c, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gram.apply(c), gram.matrix() @ c, rtol=1e-12)


@kernels
def test_drop_one_is_rebuilding(kernel, setting):
    table, s, c, Z = setting
    gram = gram_of(kernel, table, s**2)
    n = table.shape[1]
    for rows in (None, Z):
        slow = [
            kernel_matrix(kernel, table, s, [k for k in range(n) if k != j], rows, divide_by=range(n)) @ c
            for j in range(n)
        ]
        np.testing.assert_allclose(drop_one(gram, c, rows), slow, rtol=1e-9, atol=1e-11)


@kernels
def test_drop_one_change_is_rebuilding(kernel, setting):
    table, s, c, _ = setting
    d = np.where(np.arange(len(c)) % 3, np.linspace(-1, 1, len(c)), 0.0)
    gram = gram_of(kernel, table, s**2)
    n, K = table.shape[1], kernel_matrix(kernel, table, s)
    less = [kernel_matrix(kernel, table, s, [k for k in range(n) if k != j], divide_by=range(n)) for j in range(n)]
    for other in (c, d):
        slow = np.array([c @ (K - K_less) @ other for K_less in less])
        tolerance = {"rtol": 1e-9, "atol": 1e-9 * np.median(np.abs(slow))}
        given = None if other is c else d
        np.testing.assert_allclose(gram.drop_one_change(c, given, exact=True), slow, **tolerance)
        tolerance["atol"] = (1e-6 if isinstance(kernel, Gaussian) else 1e-9) * np.median(np.abs(slow))
        np.testing.assert_allclose(gram.drop_one_change(c, given), slow, **tolerance)
    on_diagonal = [d @ np.diag(K - K_less) for K_less in less]
    np.testing.assert_allclose(gram.drop_one_diagonal_change(d), on_diagonal, rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60),
    width=st.sampled_from([1e-3, 0.03, 0.1, 0.3, 1.0, 3.0, 30.0]),
    zeros=st.floats(0, 0.9),
    seed=st.integers(0, 10**6),
)
def test_the_series_stays_inside_its_bound(n, width, zeros, seed):
    """Whatever the width: terms that fall at once, slowly, or not before the exponential takes over."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(20, n)) * 10.0 ** rng.integers(-1, 2, n)
    c, d = rng.normal(size=(2, 20)) * (rng.random((2, 20)) >= zeros)
    Z = rng.standard_t(3, size=(5, n)) * 3
    kernel = Gaussian(width=width / np.sqrt(n))
    gram = gram_of(kernel, X)
    for other in (None, d):
        exact = gram.drop_one_change(c, other, exact=True)
        fast = gram.drop_one_change(c, other)
        assert np.abs(fast - exact).max() <= 1e-6 * np.median(np.abs(exact)) + 1e-13 * np.abs(c).sum() ** 2
    slow = gram_of(Plain(kernel), X)
    for rows in (None, Z):
        np.testing.assert_allclose(drop_one(gram, c, rows), drop_one(slow, c, rows), atol=1e-10 * (np.abs(c).sum() + 1))


@kernels
def test_weight_gradient_is_the_difference_quotient(kernel, setting):
    table, s, c, _ = setting
    d = np.linspace(-1, 1, len(c))
    gram = gram_of(kernel, table, s**2)

    def value(weight, diagonal):
        K = gram.rescale(weight).matrix()
        return c @ K @ c + (d @ np.diag(K) if diagonal else 0.0)

    for diagonal in (False, True):
        slow = np.empty(len(s))
        for j in range(len(s)):
            step = 1e-6 * np.eye(len(s))[j]
            slow[j] = (value(s**2 + step, diagonal) - value(s**2 - step, diagonal)) / 2e-6
        fast = gram.weight_gradient(c, d if diagonal else None)  # in w_j with the divisor inside
        np.testing.assert_allclose(fast / gram.divisor, slow, rtol=1e-5, atol=1e-7 * np.abs(slow).max())


@kernels
def test_generic_algebra_equals_the_closed_forms(kernel, setting):
    """A kernel without a closed form of its own is bound to the Gram that sums over features."""
    table, s, c, Z = setting
    fast, slow = gram_of(kernel, table, s**2), gram_of(Plain(kernel), table, s**2)
    np.testing.assert_allclose(slow.matrix(), fast.matrix(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slow.matrix(Z), fast.matrix(Z), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(drop_one(slow, c, Z), drop_one(fast, c, Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(slow.drop_one_change(c), fast.drop_one_change(c, exact=True), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        slow.drop_one_diagonal_change(c), fast.drop_one_diagonal_change(c), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(slow.weight_gradient(c), fast.weight_gradient(c), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(slow.without(np.array([1, 4])).matrix(), fast.without(np.array([1, 4])).matrix())


@kernels
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_downdating_equals_building(kernel, data):
    """Whatever is dropped in whatever order, and however unlike the columns are in size."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    X = rng.normal(size=(7, 12)) * 10.0 ** rng.integers(-3, 4, 12)
    gram = gram_of(kernel, X)
    while len(gram.features) > 1:
        count = data.draw(st.integers(1, len(gram.features) - 1))
        gram = gram.without(np.sort(rng.choice(gram.features, count, replace=False)))
        fresh = gram_of(kernel, X, gram.feature_weight, gram.features)
        size = np.abs(fresh.matrix()).max()
        np.testing.assert_allclose(gram.matrix(), fresh.matrix(), rtol=1e-6, atol=1e-8 * size)
        np.testing.assert_array_equal(gram.features, np.sort(gram.features))


def test_feature_quadratic_adds_up_on_the_linear_kernel(setting):
    table, s, c, _ = setting
    gram = gram_of(Linear(), table, s**2)
    parts = s**2 * gram.feature_quadratic(c)
    assert parts.sum() == pytest.approx(c @ gram.matrix() @ c)
    with pytest.raises(TypeError, match="Gaussian is not a sum over features"):
        gram_of(Gaussian(), table).feature_quadratic(c)


def test_sparse_equals_dense_on_the_linear_kernel(setting):
    table, s, c, Z = setting
    thin = Table(sparse.csc_array(table.Z), table.kind, table.names)
    for kernel in (Linear(), Linear(average=True)):
        dense, gram = gram_of(kernel, table, s**2), gram_of(kernel, thin, s**2)
        np.testing.assert_allclose(gram.matrix(), dense.matrix())
        np.testing.assert_allclose(drop_one(gram, c), drop_one(dense, c))
        np.testing.assert_allclose(gram.weight_gradient(c), dense.weight_gradient(c))
        np.testing.assert_allclose(gram.apply(c, sparse.csr_array(Z)), dense.apply(c, Z))
        np.testing.assert_allclose(gram.without(np.array([0])).matrix(), dense.without(np.array([0])).matrix())


def test_width_auto_is_one_over_the_root_of_the_summed_variances(setting):
    table = setting[0]
    variance = np.var(table.Z, axis=0)
    np.testing.assert_allclose(Gaussian(average=False).start(table), 1 / variance.sum())
    np.testing.assert_allclose(gram_of(Gaussian(width=3), table).weight, 9 / variance.sum())
    np.testing.assert_allclose(gram_of(Gaussian(), table, features=[1, 4]).weight, 1 / variance[[1, 4]].sum())
    with pytest.raises(InputError, match="width is -1"):
        Gaussian(width=-1).start(table)


def test_distances_survive_a_large_offset(rng):
    X = rng.normal(size=(8, 5))
    near, far = (gram_of(Gaussian(width=0.4), X + offset).matrix() for offset in (0.0, 1e6))
    np.testing.assert_allclose(far, near, rtol=1e-8)


def test_a_rescaled_gram_is_downdated_with_care(rng, table_of):
    """A column that rescaling made huge leaves nothing but rounding behind when it is subtracted."""
    table = table_of(rng.normal(size=(8, 6)))
    weight = np.ones(6)
    weight[2] = 1e14
    gram = gram_of(Linear(), table).rescale(weight).without(np.array([2]))
    fresh = gram_of(Linear(), table, weight, gram.features)
    np.testing.assert_allclose(gram.matrix(), fresh.matrix(), rtol=1e-9, atol=1e-9)
