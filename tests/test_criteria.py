"""Criteria against their definitions, and what must not matter to them."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import auc, kernel_matrix
from oracles import fisher as slow_fisher
from oracles import loss as slow_loss
from oracles import sphere as slow_sphere
from scipy import sparse, stats
from sklearn.base import clone

from marginsieve.contracts import SIGNS, JudgingRows, targets_of
from marginsieve.criteria import (
    CRITERIA,
    FILTERS,
    Loss,
    MarginChange,
    ReliefF,
    SphereChange,
    relief,
    significance,
)
from marginsieve.data.table import Schema, Table
from marginsieve.errors import InputError
from marginsieve.kernels import KERNELS
from marginsieve.machines import CSVC, MACHINES, MKL, Sphere
from marginsieve.problem import Problem, is_filter

ALL = {**CRITERIA, **FILTERS}
TOGETHER = ("relieff", "pca")  # take all classes at once
BY_ALL = (*TOGETHER, "shrunken_fisher", "su", "d_hell", "rrelieff")  # a column's score depends on the others
SPHERES = [name for name, make in CRITERIA.items() if isinstance(make(), SphereChange)]
kernels = pytest.mark.parametrize("kernel", list(KERNELS))


def problem_of(table, y, kernel="linear", criterion="margin", weight=None, machine=None):
    y = np.atleast_2d(y)
    weight = np.ones(y.shape[1]) if weight is None else weight
    part = KERNELS[kernel]()
    criterion = ALL[criterion]() if isinstance(criterion, str) else criterion
    if machine is None:
        able = (Sphere(r=0.3, tol=1e-9), MKL(tol=1e-9), *(make() for make in MACHINES.values()))
        needs = getattr(criterion, "requires", ())
        machine = next(part for part in (CSVC(tol=1e-9), *able) if all(isinstance(part, need) for need in needs))
    if isinstance(machine, MKL) and not part.additive:
        pytest.skip("MKL needs a sum over features")
    return Problem(table, y, np.ones_like(y) * weight, weight, part.start(table), part, machine, criterion)


def scores(problem):
    gram = problem.gram()
    solutions = () if is_filter(problem.criterion) else problem.solve(gram)
    return problem.score(gram, solutions)


def root_of(problem):
    """The square roots of the kernel's weights."""
    return np.sqrt(problem.feature_weight)


def without(problem, j):
    """The kernel matrix without feature j, entry by entry; what it is divided by stays that of all."""
    n = problem.table.shape[1]
    live = [k for k in range(n) if k != j]
    return kernel_matrix(problem.kernel, problem.table, root_of(problem), live, divide_by=range(n))


# -- what holds for all ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", list(ALL))
@kernels
def test_columns_may_be_permuted_and_a_constant_one_is_worth_nothing(criterion, kernel, blobs, table_of, rng):
    X, y = blobs
    X = np.column_stack([X, np.full(len(X), 3.0)])
    before = scores(problem_of(table_of(X), y, kernel, criterion))
    order = rng.permutation(X.shape[1])
    after = scores(problem_of(table_of(X[:, order]), y, kernel, criterion))
    np.testing.assert_allclose(after, before[order], rtol=1e-4, atol=1e-9 * np.abs(before).max())
    bends = kernel == "polynomial" and criterion not in FILTERS  # a constant still bends a polynomial
    if not bends and criterion != "loss":  # and a loss without it is the machine's own
        assert before[-1] == pytest.approx(0.0, abs=1e-9 * np.abs(before).max())


@pytest.mark.parametrize("criterion", list(ALL))
def test_a_weight_of_two_is_a_row_twice(criterion, blobs, table_of, rng):
    X, y = blobs
    times = rng.integers(1, 4, len(y))
    weighted = scores(problem_of(table_of(X), y, criterion=criterion, weight=times.astype(float)))
    repeated = table_of(np.repeat(X, times, axis=0))
    twice = scores(problem_of(repeated, np.repeat(y, times), criterion=criterion))
    np.testing.assert_allclose(weighted, twice, rtol=1e-5, atol=1e-8 * np.abs(twice).max())


@pytest.mark.parametrize("criterion", [name for name in ALL if name not in TOGETHER])
def test_scores_add_up_over_class_problems(criterion, blobs, table_of):
    X, y = blobs
    one, two = (scores(problem_of(table_of(X), labels, criterion=criterion)) for labels in (y, np.vstack([y, y])))
    np.testing.assert_allclose(two, 2 * one, rtol=1e-6)


# -- the margin ------------------------------------------------------------------------------------------------


def test_margin_change_is_the_squared_weight_on_the_linear_kernel(blobs, table_of):
    X, y = blobs
    problem = problem_of(table_of(X), y)
    gram = problem.gram()
    solutions = problem.solve(gram)
    w = solutions[0].coef @ X
    np.testing.assert_allclose(problem.score(gram, solutions), w**2, rtol=1e-12)


@kernels
def test_margin_change_is_recomputing_without_the_feature(kernel, blobs, table_of):
    X, y = blobs
    problem = problem_of(table_of(X), y, kernel, MarginChange(exact=True))
    gram = problem.gram()
    solution = problem.solve(gram)
    c, K = solution[0].coef, kernel_matrix(problem.kernel, problem.table, root_of(problem))
    slow = np.array([abs(c @ (K - without(problem, j)) @ c) for j in range(X.shape[1])])
    middle = np.median(slow)
    np.testing.assert_allclose(problem.score(gram, solution), slow, rtol=1e-9, atol=1e-9 * middle)
    fast = MarginChange().score(problem, gram, solution)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-6 * middle)


# -- the sphere ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r_out", [0.0, 0.3])
@pytest.mark.parametrize("criterion", SPHERES)
@kernels
def test_the_sphere_is_recomputed_without_the_feature(kernel, criterion, r_out, blobs, table_of):
    X, y = blobs
    problem = problem_of(table_of(X), y, kernel, criterion, machine=Sphere(r=0.3, r_out=r_out, tol=1e-10))
    gram = problem.gram()
    solutions = problem.solve(gram)
    c, (lo, hi) = solutions[0].coef / -2.0, problem.machine._box(problem.y[0], problem.cost[0])
    which = 0 if problem.criterion.of == "radius" else 1
    whole = slow_sphere(kernel_matrix(problem.kernel, problem.table, root_of(problem)), lo, hi, c)[which]
    change = np.array([whole - slow_sphere(without(problem, j), lo, hi, c)[which] for j in range(X.shape[1])])
    slow = np.abs(change) if criterion.endswith("printed") else -change
    middle = np.median(np.abs(slow))
    np.testing.assert_allclose(problem.score(gram, solutions), slow, rtol=0, atol=2e-6 * middle)


def test_the_sphere_on_the_linear_kernel_is_its_closed_form(blobs, table_of):
    X, y = blobs
    for of in ("radius", "dual"):
        problem = problem_of(table_of(X), y, criterion=SphereChange(of=of))
        gram = problem.gram()
        solutions = problem.solve(gram)
        c = solutions[0].coef / -2.0
        v = problem.machine.on_sphere(solutions[0], gram, problem.y[0], problem.cost[0])
        a = c @ X
        slow = v @ (X - a) ** 2 if of == "radius" else c @ X**2 - a**2
        np.testing.assert_allclose(problem.score(gram, solutions), -slow, rtol=1e-9)


def test_a_sphere_without_a_free_sample_has_its_radius_between_two(blobs, table_of):
    """r = 1 and no outliers: every target is at its bound, and the nearest bounds R2 from above."""
    X, y = blobs
    problem = problem_of(table_of(X), y, criterion="radius", machine=Sphere(r=1.0, r_out=0.0))
    gram = problem.gram()
    solution = problem.solve(gram)[0]
    v = problem.machine.on_sphere(solution, gram, problem.y[0], problem.cost[0])
    d2 = ((X - X[y < 0].mean(axis=0)) ** 2).sum(axis=1)
    assert v @ d2 == pytest.approx(d2[y < 0].min())
    own = problem.machine.decision(solution, gram, X)
    np.testing.assert_allclose(d2 - v @ d2, own, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}, {"r_out": 0.0}], ids=str)
def test_dropping_what_shrinks_the_sphere_finds_planted_columns(settings):
    from marginsieve import recipes

    found = {}
    for criterion in SPHERES:
        share = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            y = (np.arange(120) < 20).astype(int)
            X = rng.normal(size=(120, 300))
            X[y == 1, :20] += 1.5
            chosen = {"n_features_to_select": 20, "threshold": "margin", **settings}
            share.append(recipes.svdd_rfe(criterion=criterion, **chosen).fit(X, y).support_[:20].mean())
        found[criterion] = np.mean(share)
    assert min(found["radius"], found["dual"]) > 0.35  # by chance 0.07
    assert max(found["radius_as_printed"], found["dual_as_printed"]) < 0.15


def test_a_factor_on_a_class_changes_no_sphere(blobs):
    from marginsieve import recipes

    X, y = blobs
    fixed = {"n_features_to_select": 3, "threshold": "margin"}
    plain = recipes.svdd_rfe(**fixed).fit(X, y).ranking_
    for told in ({"class_weight": "balanced"}, {"class_weight": {1.0: 10.0}}, {"negative_weight": 0.01}):
        np.testing.assert_array_equal(recipes.svdd_rfe(**fixed, **told).fit(X, y).ranking_, plain)


@pytest.mark.parametrize("unit", [1e-9, 1e-7, 1e5])
def test_the_unit_of_a_table_changes_no_sphere(unit, rng):
    from marginsieve import recipes

    X = rng.normal(size=(60, 30))
    X[:, 29] = X[:, 28] + 1e-6 * rng.normal(size=60)
    y = (np.arange(60) % 4 == 0).astype(int)
    made = recipes.svdd_rfe(
        kernel="linear", criterion="dual", standardize=False, n_features_to_select=5, random_state=0
    )
    one, two = (clone(made).fit(part, y).ranking_ for part in (X, unit * X))  # no ConvergenceWarning either
    assert set(np.flatnonzero(one <= 20)) == set(np.flatnonzero(two <= 20))


@pytest.mark.parametrize(("name", "value"), [("of", "area"), ("drop", "most")])
def test_bad_rules_of_the_sphere_are_refused(name, value):
    with pytest.raises(InputError, match=f"criterion: {name} is '{value}'; it must be"):
        SphereChange(**{name: value}).check()


# -- losses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("name", ["balanced", "zero-one", "cost"])
@kernels
def test_losses_are_a_loop_that_refits_nothing(kernel, name, held, blobs, table_of, rng):
    X, y = blobs
    weight = rng.integers(1, 4, len(y)).astype(float)
    problem = problem_of(table_of(X), y, kernel, Loss(loss=name, costs=(1.0, 5.0)), weight)
    gram = problem.gram()
    solution = problem.solve(gram)[0]
    Z, label, w = None, y, weight
    if held:
        Z, label, w = rng.normal(size=(30, 12)), np.where(np.arange(30) < 9, 1.0, -1.0), rng.uniform(1, 2, 30)
        problem.validation = JudgingRows(Z, np.atleast_2d(label), w)
    slow = []
    for j in range(X.shape[1]):
        live = [k for k in range(X.shape[1]) if k != j]
        K = kernel_matrix(problem.kernel, problem.table, root_of(problem), live, Z, divide_by=range(X.shape[1]))
        slow.append(slow_loss(K @ solution.coef + solution.intercept, label, w, name, (1.0, 5.0)))
    np.testing.assert_allclose(problem.score(gram, (solution,)), slow, atol=1e-12)


def test_equal_losses_go_by_the_margin_change(table_of):
    """Classes so far apart that no column is missed: every loss is 0, and the order is that of the margin change."""
    from marginsieve import SVMSelector

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    X = rng.normal(size=(30, 6)) + 3.0 * y[:, None]
    made = [
        SVMSelector(criterion=criterion, search=search, n_features_to_select=1, threshold="margin").fit(X, y)
        for search in ("top_k", "backward")
        for criterion in ("loss", "margin")
    ]
    assert not made[0].scores_.any()
    np.testing.assert_array_equal(made[0].ranking_, made[1].ranking_)
    assert "equal losses were ordered by the margin change" in made[0].path_.stop_reason
    assert "margin change" in made[2].path_.stop_reason
    assert "margin change" not in made[1].path_.stop_reason


def held_out_rows(y, groups=None, share=0.25, seed=0):
    """The rows that the search does not fit on, told apart by a machine that notes what it is given."""
    from marginsieve import SVMSelector

    fitted = []

    class Noting(CSVC):
        def solve(self, gram, y, cost, warm=None):
            fitted.append(np.round(1e3 * gram.table.Z[:, 0]))
            return super().solve(gram, y, cost, warm)

    rng = np.random.default_rng(seed)
    X = np.column_stack([1e-3 * np.arange(len(y)), rng.normal(size=(len(y), 5))])
    X[y == 1, 1] += 4.0
    # a kernel that does not centre columns
    given = {"kernel": "gaussian", "machine": Noting(), "threshold": "margin", "keep": [0], "class_weight": "balanced"}
    made = SVMSelector(criterion=Loss(held_out=share), n_features_to_select=2, **given)
    made.set_params(random_state=seed).fit(X, y, groups=groups)
    assert set(fitted[-1]) == set(range(len(y)))  # the last machine is fitted on all rows
    return made, sorted(set(range(len(y))) - set(fitted[0].astype(int)))


def test_a_share_of_each_class_is_held_out():
    y = (np.arange(40) < 12).astype(int)
    made, held = held_out_rows(y)
    assert [int(y[held].sum()), len(held)] == [3, 10]
    assert made.support_[1]
    again, same = held_out_rows(y)
    assert same == held
    np.testing.assert_array_equal(again.ranking_, made.ranking_)


def test_no_group_is_on_both_sides_of_what_is_held_out():
    y = (np.arange(40) < 16).astype(int)
    groups = np.arange(40) // 4
    _, held = held_out_rows(y, groups)
    assert set(groups[held]).isdisjoint(groups[[i for i in range(40) if i not in held]])
    assert 0 < y[held].sum() < 16
    with pytest.raises(InputError, match=r"held_out is 0\.25 and a class has too few rows"):
        held_out_rows(y, (np.arange(40) >= 16).astype(int))


def test_columns_that_vary_only_among_held_out_rows_still_rank_before_constant_ones():
    from marginsieve import recipes

    y = (np.arange(24) < 8).astype(int)
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(24), np.zeros(24), rng.normal(size=(24, 3)) + y[:, None]])
    for row in range(24):  # wherever the one row that differs lands
        Z = X.copy()
        Z[row, 1] = 1.0
        made = recipes.svm_bfe(held_out=0.25, n_features_to_select=4, threshold="margin", random_state=row).fit(Z, y)
        assert made.ranking_[0] == 5
        assert made.support_.tolist() == [False, True, True, True, True]


def test_held_out_rows_go_with_a_prefilter_and_a_sampler(blobs):
    from marginsieve import recipes

    X, y = blobs
    settings = {"prefilter": ("fast", 5), "sampler": "smote", "n_features_to_select": 2, "threshold": "margin"}
    made = recipes.svm_bfe(kernel="gaussian", held_out=0.3, random_state=0, **settings).fit(X, y)
    assert made.support_[:3].any()
    assert made.path_.n_selected == 2
    assert sorted(made.ranking_) == list(range(1, 13))


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": "hinge"},
        {"costs": (1.0, 0.0)},
        {"costs": 3},
        {"held_out": 0.9},
        {"held_out": -0.1},
        {"held_out": np.zeros(2)},
    ],
)
def test_bad_losses_are_refused(wrong):
    with pytest.raises(InputError, match=r"criterion: .*it must be"):
        Loss(**wrong).check()


# -- filters ---------------------------------------------------------------------------------------------------


def columns_of(seed, m=24, n=8):
    """Columns with and without ties, with two values, with three, and a constant one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    X[:, 1], X[:, 2], X[:, 3] = np.round(X[:, 1]), X[:, 2] > 0.3, rng.integers(0, 3, m)
    X[:, 4] = 2.0
    y = np.where(rng.permutation(m) < rng.integers(3, m - 3), 1.0, -1.0)
    X[y > 0, 0] += 1.0
    return X, y


SLOW = {
    "fast": lambda a, b: abs(auc(np.r_[a, b], np.arange(len(a) + len(b)) < len(a), np.ones(len(a) + len(b))) - 0.5),
    "t_test": lambda a, b: abs(a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)),
    "kolmogorov_smirnov": lambda a, b: stats.ks_2samp(a, b).statistic,
}


@pytest.mark.parametrize("name", list(SLOW))
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_filters_are_the_reference_column_by_column(name, seed):
    X, y = columns_of(seed)
    fast = scores(problem_of(Schema.from_table(X).table(X), y, criterion=name))
    for x, value in zip(X.T, fast, strict=True):
        sides = x[y > 0], x[y < 0]
        if name == "t_test" and not any(map(np.ptp, sides)):  # nothing to divide by
            assert value > 1e5 or (value == 0 and np.ptp(x) == 0)
        else:
            np.testing.assert_allclose(value, SLOW[name](*sides), rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_tests_of_tables_are_scipys(seed):
    X, y = columns_of(seed)
    table = Schema.from_table(X).table(X)
    chi, exact = (scores(problem_of(table, y, criterion=name)) for name in ("chi_square", "fisher_exact"))
    for j in (2, 3):  # their own levels
        counts = np.array([[np.sum((X[:, j] == v) & (y == side)) for side in (1, -1)] for v in np.unique(X[:, j])])
        np.testing.assert_allclose(10.0 ** -chi[j], stats.chi2_contingency(counts, correction=False).pvalue, rtol=1e-9)
    split = X[:, 0] > np.median(X[:, 0])  # no ties, an even number of rows
    for j, high in ((2, X[:, 2] > 0), (0, split)):
        counts = [[np.sum((high == side) & (y == label)) for label in (1, -1)] for side in (True, False)]
        np.testing.assert_allclose(10.0 ** -exact[j], stats.fisher_exact(counts).pvalue, rtol=1e-7)
    cut = np.searchsorted(np.sort(X[:, 0]), X[:, 0]) // 6  # 24 rows in four levels of six
    counts = np.array([[np.sum((cut == level) & (y == side)) for side in (1, -1)] for level in range(4)])
    np.testing.assert_allclose(10.0 ** -chi[0], stats.chi2_contingency(counts, correction=False).pvalue, rtol=1e-9)
    assert abs(chi[4]) < 1e-12
    assert abs(exact[4]) < 1e-12


def test_p_values_beyond_double_precision_still_rank(table_of):
    """4,000 rows that a column splits perfectly or nearly so: p is below 1e-308, the scores are finite and in order."""
    y = np.where(np.arange(4000) < 2000, 1.0, -1.0)
    X = np.column_stack([y, np.where(np.arange(4000) < 20, -y, y), np.where(np.arange(4000) < 200, -y, y)])
    for name in ("chi_square", "fisher_exact"):
        value = scores(problem_of(table_of(X), y, criterion=name))
        assert np.isfinite(value).all()
        assert value[0] > value[1] > value[2] > 308


@settings(max_examples=60, deadline=None)
@given(table=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=2, max_size=5))
def test_the_exact_test_is_all_tables_with_the_same_margins(table):
    table = np.array(table)
    size, positives = table.sum(axis=1), table[:, 0].sum()
    own, chance, total = np.prod([comb(n, x) for n, x in zip(size, table[:, 0], strict=True)]), 0, 0
    for counts in itertools.product(*(range(n + 1) for n in size)):
        if sum(counts) == positives:
            likely = np.prod([comb(n, x) for n, x in zip(size, counts, strict=True)])
            total += likely
            chance += likely if likely <= own * (1 + 1e-7) else 0
    np.testing.assert_allclose(np.exp(significance.log_p(table)), chance / total, rtol=1e-6)


def test_tables_too_large_for_the_exact_test_get_the_chi_square_test(rng):
    z, y = rng.integers(0, 12, 1200).astype(float), np.where(rng.random(1200) < 0.4, 1.0, -1.0)
    table = Table(z[:, None], ("nominal",), ("site",))
    exact, chi = (scores(problem_of(table, y, "clinical", name)) for name in ("fisher_exact", "chi_square"))
    assert significance.log_p(np.array([[np.sum((z == v) & (y == s)) for s in (1, -1)] for v in range(12)])) is None
    np.testing.assert_allclose(exact, chi)
    small = Table(np.arange(40.0)[:, None] % 4, ("nominal",), ("site",))
    assert scores(problem_of(small, y[:40], "clinical", "fisher_exact")) != pytest.approx(
        scores(problem_of(small, y[:40], "clinical", "chi_square"))
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_mixed_tables_have_a_test_for_each_kind(seed):
    X, y = columns_of(seed)
    kind = ("real", "real", "boolean", "nominal", "real", "real", "ordinal", "real")
    value = scores(problem_of(Table(X, kind, tuple("abcdefgh")), y, "clinical", "mixed_test"))
    for j in (0, 1, 5, 6, 7):
        p = stats.ttest_ind(X[y > 0, j], X[y < 0, j], equal_var=False).pvalue
        np.testing.assert_allclose(10.0 ** -value[j], p, rtol=1e-7)
    for j in (2, 3):
        table = np.array([[np.sum((X[:, j] == v) & (y == side)) for side in (1, -1)] for v in np.unique(X[:, j])])
        np.testing.assert_allclose(value[j], max(-significance.log_p(table) / np.log(10), 0.0), atol=1e-12)


def test_significance_far_out_is_finite_and_in_order(table_of):
    y = np.where(np.arange(2000) < 900, 1.0, -1.0)
    noise = np.random.default_rng(0).normal(size=2000)
    X = np.column_stack([y * a + noise for a in (50.0, 5.0, 4.0, 3.9)])
    value = scores(problem_of(table_of(X), y, criterion="mixed_test"))
    assert np.isfinite(value).all()
    assert (np.diff(value) < 0).all()
    near = scores(problem_of(table_of(X * [1, 1, 1, 1]), y, criterion="t_test"))
    assert (np.diff(near) < 0).all()


@pytest.mark.parametrize("name", list(FILTERS))
def test_missing_cells_are_left_out(name, blobs, table_of):
    X, y = blobs
    X = np.round(X, 1)
    X[3:9, 2], X[y > 0, 5] = np.nan, np.nan
    value = scores(problem_of(table_of(X), y, "clinical", name))
    seen = ~np.isnan(X[:, 2])
    alone = np.where(np.isnan(X[:, [0, 1, 2]]), 0.0, X[:, [0, 1, 2]])[seen]
    if name not in BY_ALL:
        np.testing.assert_allclose(value[2], scores(problem_of(table_of(alone), y[seen], "clinical", name))[2])
    if name != "pca":  # which knows nothing of classes
        assert value[5] == 0.0  # nothing is known of one class
    assert np.isfinite(value).all()


@pytest.mark.parametrize("name", [name for name in FILTERS if name != "pca"])
def test_a_cell_in_each_class_proves_nothing(name, blobs, table_of):
    X, y = blobs
    X[:, 7] = np.nan
    X[[0, 30], 7] = 1.2, 1.9
    value = scores(problem_of(table_of(X), y, "clinical", name))
    assert value[7] == 0.0


def test_a_class_of_one_has_the_others_variance(table_of):
    x, y = np.array([3.0, 0.1, -0.2, 0.3, 0.05]), np.array([1.0, -1, -1, -1, -1])
    t = scores(problem_of(table_of(x[:, None]), y, criterion="t_test"))
    s = x[1:].std(ddof=1)
    np.testing.assert_allclose(t, (3.0 - x[1:].mean()) / (s * np.sqrt(1 + 1 / 4)))
    p = 10.0 ** -scores(problem_of(table_of(x[:, None]), y, criterion="mixed_test"))
    np.testing.assert_allclose(p, 2 * stats.t.sf(t, 3))


def test_large_counts_take_no_memory():
    """40,000 and 20,000 rows in two levels; a normal limit to compare with."""
    import tracemalloc

    tracemalloc.start()
    found = significance.log_p(np.array([[20200, 19800], [9800, 10200]]))
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    chi = stats.chi2_contingency([[20200, 19800], [9800, 10200]], correction=True).pvalue
    np.testing.assert_allclose(np.exp(found), chi, rtol=0.01)


def test_t_is_normal_for_very_many(table_of):
    y = np.where(np.arange(20) < 10, 1.0, -1.0)
    x = np.arange(20.0) % 10 + 0.35 * (y > 0)
    value = scores(problem_of(table_of(x[:, None]), y, criterion="mixed_test", weight=np.full(20, 1e6)))
    assert np.isfinite(value).all()
    assert value[0] > 1000


def test_shrunken_fisher_is_its_definition(blobs, table_of):
    X, y = blobs
    a, b = X[y > 0], X[y < 0]
    pooled = (len(a) * a.var(axis=0) + len(b) * b.var(axis=0)) / len(X)
    spread = sum((len(part) * part.var(axis=0) + 5 * pooled) / (len(part) + 5) for part in (a, b))
    slow = (a.mean(axis=0) - b.mean(axis=0)) ** 2 / (spread + 0.05 * np.median(pooled))
    np.testing.assert_allclose(scores(problem_of(table_of(X + 50.0), y, criterion="shrunken_fisher")), slow)


def test_fisher_is_its_definition(blobs, table_of):
    X, y = blobs
    np.testing.assert_allclose(scores(problem_of(table_of(X + 100.0), y, criterion="fisher")), slow_fisher(X, y))


@pytest.mark.parametrize("name", list(FILTERS))
def test_filters_take_sparse_tables(name, blobs, table_of):
    X, y = blobs
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    table = table_of(X)
    thin = Table(sparse.csc_array(X), table.kind, table.names)
    dense, other = (scores(problem_of(part, y, criterion=name)) for part in (table, thin))
    np.testing.assert_allclose(other, dense)


@pytest.mark.parametrize("name", ["fisher", "t_test"])
def test_a_perfect_column_is_finite_and_largest(name, table_of, rng):
    y = np.where(np.arange(20) < 8, 1.0, -1.0)
    X = np.column_stack([rng.normal(size=20), y])
    value = scores(problem_of(table_of(X), y, criterion=name))
    assert np.isfinite(value).all()
    assert value[1] > 1e5 * value[0]


@pytest.mark.parametrize("name", [name for name in FILTERS if SIGNS in targets_of(FILTERS[name]())])
def test_a_filter_may_come_before_any_recipe(name, blobs):
    from marginsieve import recipes

    X, y = blobs
    made = recipes.svm_rfe(prefilter=(name, 5), n_features_to_select=2, threshold="margin").fit(X, y)
    first = recipes.svm_rfe(n_features_to_select=2, threshold="margin").set_params(
        criterion=name, search="top_k", n_features_to_select=5
    )
    assert set(np.flatnonzero(made.ranking_ <= 5)) == set(np.flatnonzero(first.fit(X, y).support_))
    assert np.isnan(made.scores_[made.ranking_ > 5]).all()


@pytest.mark.parametrize("rule", ["auto", "best"])
def test_no_more_is_selected_than_a_filter_leaves(rule, rng):
    from marginsieve import recipes

    y = (np.arange(80) % 3 == 0).astype(int)
    X = rng.normal(size=(80, 300))
    X[:, :40] += 0.6 * y[:, None]
    for made in (recipes.fisher(prefilter=("fast", 5)), recipes.svm_rfe(step=1, prefilter=("fast", 70))):
        most = made.prefilter[1]
        assert made.set_params(n_features_to_select=rule, random_state=0).fit(X, y).n_features_ <= most
    asked = recipes.svm_rfe(kernel="gaussian", prefilter=("fast", 5), n_features_to_select=50, threshold="margin")
    with pytest.warns(UserWarning, match="50 features were asked for and 5 are left by the prefilter"):
        asked.fit(X, y)
    assert asked.n_features_ == 5
    assert len(set(asked.model_.view.feature_weight)) == 1
    assert [copy.n_features_ for copy in asked.at_sizes(X, y, [3, 200])] == [3, 5]


@pytest.mark.parametrize("name", list(FILTERS))
def test_weights_that_are_no_counts_have_a_mean_of_one(name, rng, table_of):
    X = np.round(rng.normal(size=(60, 40)), 1)
    y = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    plain = scores(problem_of(table_of(X), y, criterion=name))
    for share in (0.1, 1 / 60, 3.7):
        weighted = scores(problem_of(table_of(X), y, criterion=name, weight=np.full(60, share)))
        np.testing.assert_array_equal(weighted, plain)


@pytest.mark.parametrize("weights", ["one", "counts", "shares"])
@pytest.mark.parametrize("classes", [2, 3])
def test_relieff_of_plain_columns_is_that_of_the_general_loop(weights, classes, monkeypatch):
    """Without missing cells the scores are sums over pairs of rows; ties among distances included."""
    rng = np.random.default_rng(classes)
    X = np.round(rng.normal(size=(40, 30)), 1)
    codes = rng.integers(classes, size=40)
    y = np.where(codes == 0, 1.0, -1.0)[None] if classes == 2 else np.where(codes == np.arange(3)[:, None], 1.0, -1.0)
    weight = {"one": np.ones(40), "counts": rng.integers(1, 4, 40) * 1.0, "shares": rng.uniform(0.1, 2, 40)}[weights]
    table = Schema.from_table(X).table(X)
    fast = ReliefF(n_neighbors=4)(table, y, weight)
    general = [*relief._blocks(table, weight)]
    monkeypatch.setattr(relief, "_blocks", lambda *_: [(a, z, b, np.full(len(z), 1e9)) for a, z, b, _ in general])
    np.testing.assert_allclose(fast, ReliefF(n_neighbors=4)(table, y, weight), atol=1e-12)
