"""Is there any signal at all: each statistic, its permutations and its p against slow ones."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from marginsieve import recipes
from marginsieve.estimators.inputs import encode
from marginsieve.fitting import evidence
from marginsieve.fitting.evidence import (
    CLEAR,
    FEWEST_LEADING,
    MORE_PERMUTATIONS,
    PENALTIES,
    PERMUTATIONS,
    SMOOTH_PENALTY,
    WORTH_MORE,
    ColumnTests,
    as_one_degree,
    find_evidence,
    sample_rows,
    smallest_p,
)
from marginsieve.kernels import clinical_kernel
from marginsieve.outcomes import ClassTarget
from marginsieve.outcomes.scores import labelled_aucs
from marginsieve.solvers.ridge import HeldOutRidge


def rows_of(X, y, groups=None):
    return encode(recipes.two_views(), X, y, None, None, groups).active


def evidence_of(X, y, groups=None, seed=0, most=PERMUTATIONS):
    return find_evidence(rows_of(X, y, groups), np.random.default_rng(seed), most)


def from_table(X, y):
    return evidence._Tests.from_rows(rows_of(X, y))


def uneven_groups(rng, count=9, most=5):
    return np.repeat(np.arange(count), rng.integers(1, most, count))


def mixed_table(rng, m=60):
    """Numbers with gaps, two categories, a flag, a constant column and a category that tells nearly all rows apart."""
    frame = pd.DataFrame(rng.normal(size=(m, 3)), columns=list("abc"))
    frame.loc[:5, "b"] = np.nan
    frame["site"] = rng.choice(["north", "south", "west"], m)
    frame["grade"] = pd.Categorical(rng.choice(["1", "2", "3", "4"], m), ordered=True)
    frame["flag"] = rng.random(m) < 0.3
    frame["same"] = 1.0
    frame["name"] = [f"row {i}" for i in range(m - 2)] + ["row 0", "row 1"]
    return frame


# -- held-out ridge regression ---------------------------------------------------------------------------------------


def refit_by_kernel(K, y, penalty, out):
    """Values of the rows `out` of min |y - b - K a|^2 + penalty a'Ka over the other rows."""
    kept = np.flatnonzero(~out)
    system = np.block([[K[np.ix_(kept, kept)] + penalty * np.eye(len(kept)), np.ones((len(kept), 1))]])
    system = np.vstack([system, np.r_[np.ones(len(kept)), 0.0]])
    solution = np.linalg.solve(system, np.r_[y[kept], 0.0])
    return K[np.ix_(out, kept)] @ solution[:-1] + solution[-1]


@pytest.mark.parametrize("shape", [(24, 5), (20, 45)])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kernel", [False, True])
def test_held_out_values_are_those_of_refits(shape, grouped, kernel):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=shape) + 3.0, rng.choice([-1.0, 1.0], (shape[0], 3))
    groups = np.resize(uneven_groups(rng, 12), shape[0]) if grouped else np.arange(shape[0])  # sizes from 1 on
    known = groups if grouped else None
    ridge = (
        HeldOutRidge.from_kernel(X @ X.T, known) if kernel else HeldOutRidge.from_rows(X, np.ones(len(X)), rng, known)
    )
    values = ridge.held_out(Y, 1.7)
    for group in np.unique(groups):
        out = groups == group
        for k in range(3):
            mean = Y[~out, k].mean()
            peer = Ridge(alpha=1.7, solver="cholesky").fit(X[~out], Y[~out, k]).predict(X[out])
            np.testing.assert_allclose(values[out, k], peer - mean, atol=1e-9)
            np.testing.assert_allclose(refit_by_kernel(X @ X.T, Y[:, k], 1.7, out), peer, atol=1e-7)


@pytest.mark.parametrize("grouped", [False, True])
def test_held_out_values_of_a_gaussian_kernel_are_those_of_refits(grouped):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(22, 3)), rng.choice([-1.0, 1.0], 22)
    groups = rng.permutation(np.resize(np.arange(7), 22)) if grouped else np.arange(22)
    K = evidence.median_gaussian(X)
    values = HeldOutRidge.from_kernel(K, groups if grouped else None).values(y[:, None], 0.2)[:, 0]
    for group in np.unique(groups):
        np.testing.assert_allclose(values[groups == group], refit_by_kernel(K, y, 0.2, groups == group), atol=1e-8)


def test_the_width_of_the_gaussian_kernel_is_the_median_distance():
    X = np.random.default_rng(2).normal(size=(15, 4))
    square = ((X[:, None] - X) ** 2).sum(axis=2)
    expected = np.exp(-square / np.median(square[np.triu_indices(15, 1)]))
    np.testing.assert_allclose(evidence.median_gaussian(X), expected)
    np.testing.assert_allclose(evidence.median_gaussian(np.ones((4, 2))), 1.0)


# -- the five statistics ---------------------------------------------------------------------------------------------


def slow_statistics(X, K, y, groups):
    """Of two classes and numbers: AUC of refits, and t tests."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    label, groups = np.where(y == 1, 1.0, -1.0), np.arange(len(y)) if groups is None else groups
    L = Z @ Z.T
    centred = [part - part.mean(axis=0) - part.mean(axis=0)[:, None] + part.mean() for part in (L, K)]
    cases = [(L, PENALTIES[0], centred[0]), (L, PENALTIES[1], centred[0]), (K, SMOOTH_PENALTY, centred[1])]
    out = []
    for kernel, penalty, middle in cases:
        value = np.empty(len(y))
        for group in np.unique(groups):
            rows = groups == group
            value[rows] = refit_by_kernel(kernel, label, penalty * np.trace(middle) / len(y), rows)
            value[rows] -= label[~rows].mean()
        out.append(roc_auc_score(y, value))
    t = np.sort(stats.ttest_ind(X[y == 1], X[y == 0]).statistic ** 2)
    return [*out, t[-1], t[-FEWEST_LEADING:].mean()]


@pytest.mark.parametrize("grouped", [False, True])
def test_statistics_are_those_of_refits_and_of_t_tests(grouped):
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(8), [1, 2, 2, 3, 3, 4, 4, 5]) if grouped else None
    y = np.r_[0, 0, 1, 1, 0, 1, 1, 0][groups] if grouped else np.arange(24) % 3 % 2
    X = rng.normal(size=(24, 7)) + 0.8 * y[:, None]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    part = rows_of(X, y, groups)
    order = np.vstack([np.arange(24), part.target.permutations(3, rng)])
    found = evidence._Tests.from_rows(part).statistics(order)
    for row, expected in zip(order, found, strict=True):
        known = slow_statistics(X, evidence.median_gaussian(Z), y[row], groups)
        np.testing.assert_allclose(expected, known, rtol=1e-7)


def test_with_categories_or_gaps_the_third_is_that_of_the_clinical_kernel():
    rng = np.random.default_rng(4)
    frame, y = mixed_table(rng), np.arange(60) % 2
    for table in (frame, frame[["a", "b", "c"]]):
        K = clinical_kernel(table.drop(columns="same", errors="ignore"))
        middle = K - K.mean(axis=0) - K.mean(axis=0)[:, None] + K.mean()
        label, value = 2.0 * y - 1.0, np.empty(60)
        for row in np.arange(60)[:, None] == np.arange(60):
            value[row] = refit_by_kernel(K, label, SMOOTH_PENALTY * np.trace(middle) / 60, row) - label[~row].mean()
        found = from_table(table, y).statistics(np.arange(60)[None])[0]
        assert found[2] == pytest.approx(roc_auc_score(y, value))


@pytest.mark.parametrize("m", [5, 40])
def test_areas_are_those_of_scikit_learn(m):
    rng = np.random.default_rng(5)
    values = np.round(rng.normal(size=(8, m)), 1)  # with ties
    labels = np.array([rng.permutation(np.arange(m) % 3 == 0) for _ in range(8)])
    expected = [roc_auc_score(label, value) for label, value in zip(labels, values, strict=True)]
    np.testing.assert_allclose(labelled_aucs(values, labels), expected)


def test_agreement_of_three_classes_is_the_mean_of_each_against_the_rest():
    rng = np.random.default_rng(6)
    codes, values = np.array([rng.permutation(np.arange(20) % 3) for _ in range(4)]), rng.normal(size=(4, 3, 20))
    labels = np.where(codes[:, None] == np.arange(3)[:, None], 1.0, -1.0)
    found = ClassTarget.from_codes(codes[0]).agreement(values, labels)
    expected = [np.mean([roc_auc_score(c == k, v[k]) for k in range(3)]) for c, v in zip(codes, values, strict=True)]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(8), [1, 2, 2, 3, 3, 4, 4, 5])])
def test_columns_of_two_classes_have_the_squared_t(groups):
    rng = np.random.default_rng(7)
    y = np.arange(24) % 4 // 3 if groups is None else np.r_[0, 0, 1, 1, 0, 1, 1, 1][groups]
    X = rng.normal(size=(24, 6)) + 0.5 * y[:, None]
    X[:, 5] = np.round(X[:, 5] > 0)
    part = rows_of(X, y, groups)
    order = np.vstack([np.arange(24), part.target.permutations(5, rng)])
    found = ColumnTests.from_rows(part).statistics(order)
    for row, values in zip(order, found, strict=True):
        t = stats.ttest_ind(X[y[row] == 1], X[y[row] == 0]).statistic
        np.testing.assert_allclose(values, t**2, rtol=1e-8, atol=1e-12)


@pytest.fixture
def as_they_are(monkeypatch):
    """Statistics of more than one degree of freedom before they become a t^2."""
    monkeypatch.setattr(evidence, "as_one_degree", lambda value, *_: value)


def pillai(A, B):
    """trace(H (H + E)^-1) of the regression of dummies A on dummies B: two ways to cut the rows."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    return np.trace(np.linalg.pinv(A.T @ A) @ A.T @ B @ np.linalg.pinv(B.T @ B) @ B.T @ A)


def test_columns_of_three_classes_have_f(as_they_are):
    rng = np.random.default_rng(8)
    y = rng.permutation(np.r_[np.zeros(5), np.ones(9), np.full(12, 2)]).astype(int)
    X = rng.normal(size=(26, 4)) + y[:, None]
    order = np.array([np.arange(26), rng.permutation(26)])
    for row, values in zip(order, from_table(X, y).columns.statistics(order), strict=True):
        F = stats.f_oneway(*(X[y[row] == k] for k in range(3))).statistic
        np.testing.assert_allclose(values, 2 * F, rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_categories_have_pearsons_chi_squared(as_they_are, classes):
    rng = np.random.default_rng(9)
    frame, y = mixed_table(rng)[["a", "site", "grade", "flag"]], rng.permutation(np.arange(60) % classes)
    found = from_table(frame, y).columns.statistics(np.arange(60)[None])[0]
    for value, name in zip(found[1:], frame.columns[1:], strict=True):
        dummies = pd.get_dummies(frame[name]).to_numpy(dtype=float)
        width, d = dummies.shape[1] - 1, classes - 1
        V = stats.chi2_contingency(pd.crosstab(frame[name], y), correction=False).statistic / 60
        assert pytest.approx(pillai(dummies, np.eye(classes)[y])) == V
        assert value == pytest.approx((59 - max(width, d)) * V / (1 - V / min(width, d)))


def test_a_category_of_two_levels_is_a_number():
    rng = np.random.default_rng(10)
    y, k = np.arange(30) % 2, rng.random(30) < 0.4
    found = from_table(pd.DataFrame({"k": np.where(k, "yes", "no"), "n": k * 1.0}), y).columns.statistics(
        np.arange(30)[None]
    )
    np.testing.assert_allclose(found[0], stats.ttest_ind(k[y == 1], k[y == 0]).statistic ** 2)


@pytest.mark.parametrize(("m", "freedom"), [(20, 2), (20, 8), (60, 3), (60, 30), (1000, 5)])
def test_more_degrees_of_freedom_become_one_of_the_same_p(m, freedom):
    p, rest = np.array([0.5, 0.1, 1e-2, 1e-4]), m - 1 - freedom
    value = freedom * stats.f.isf(p, freedom, rest)
    t2 = as_one_degree(value[:, None], np.array([freedom]), np.array([rest]), m - 2.0)[:, 0]
    np.testing.assert_allclose(np.log(stats.f.sf(t2, 1, m - 2)), np.log(p), atol=0.4)
    least = as_one_degree(np.zeros((1, 1)), np.array([freedom]), np.array([rest]), m - 2.0)
    assert least[0, 0] == pytest.approx(0.0, abs=1e-12)


def test_values_near_perfect_stay_in_order():
    value = np.geomspace(1e-6, 1e15, 200)[:, None]
    for freedom, rest in ((2, 60), (40, 3), (6, 200)):
        t2 = as_one_degree(value, np.array([freedom]), np.array([rest]), 60.0)[:, 0]
        assert np.isfinite(t2).all()
        assert (np.diff(t2) >= -1e-9 * t2[1:] - 1e-12).all()


# -- permutations ----------------------------------------------------------------------------------------------------


def drawn(y, groups=None, count=2000, seed=0):
    """(labels of the permutations, the target)."""
    target = ClassTarget.from_codes(np.asarray(y), groups=None if groups is None else np.asarray(groups))
    return target.codes[target.permutations(count, np.random.default_rng(seed))], target


def different(labels):
    """How many of these outcomes differ by more than the names of the classes."""
    classes = np.unique(labels)
    named = {min(tuple(np.array(names)[row]) for names in permutations(classes)) for row in np.unique(labels, axis=0)}
    return len(named)


def test_without_groups_all_orders_are_as_frequent():
    order = ClassTarget.from_codes([0, 0, 1, 1]).permutations(24_000, np.random.default_rng(0))
    found, count = np.unique(order, axis=0, return_counts=True)
    assert len(found) == 24
    assert stats.chisquare(count).pvalue > 1e-3


def test_rows_change_places_within_groups_of_several_outcomes():
    groups = np.array([2, 0, 2, 0, 2, 0, 2, 0])
    labels, target = drawn([1, 0, 0, 1, 0, 0, 0, 1], groups)
    assert (labels[:, groups == 2].sum(axis=1) == 1).all()
    assert (labels[:, groups == 0].sum(axis=1) == 2).all()
    assert len(np.unique(labels, axis=0)) == 4 * 6
    assert np.exp(target.log_permutations) == pytest.approx(24)  # the classes are not alike in both groups


def test_groups_of_one_outcome_change_places_whole_with_those_of_their_size():
    sizes = np.r_[np.full(8, 2), np.full(12, 3)]
    names, label = np.random.default_rng(0).permutation(20), (np.arange(20) % 4 == 0).astype(int)
    groups, y, size = np.repeat(names, sizes), np.repeat(label, sizes), np.repeat(sizes, sizes)
    labels, target = drawn(y, groups)
    for group in range(20):
        assert (np.ptp(labels[:, groups == group], axis=1) == 0).all()
    assert (labels[:, size == 2].sum(axis=1) == 4).all()  # 2 groups of 8
    assert (labels[:, size == 3].sum(axis=1) == 9).all()  # 3 groups of 12
    assert np.exp(target.log_permutations) == pytest.approx(28 * 220)


def test_groups_of_any_size_change_places_where_hardly_any_others_could():
    sizes = np.arange(1, 13)
    groups, y = np.repeat(np.arange(12), sizes), np.repeat(np.arange(12) % 3 == 0, sizes).astype(int)
    labels, target = drawn(y, groups, count=6000)
    first = np.r_[0, np.cumsum(sizes)[:-1]]
    assert (labels == labels[:, first][:, groups]).all()
    assert (labels[:, first].sum(axis=1) == 4).all()
    assert len(np.unique(labels, axis=0)) == 495 == round(np.exp(target.log_permutations))


def test_one_group_of_several_outcomes_does_not_hold_the_others_where_they_are():
    groups = np.repeat(np.arange(20), 3)
    y = groups % 2
    y[0] = 1 - y[0]
    labels, target = drawn(y, groups)
    assert (labels[:, :3].sum(axis=1) == y[:3].sum()).all()
    assert (labels[:, 3:].reshape(-1, 19, 3) == labels[:, 3::3, None]).all()
    assert (labels[:, 3:].sum(axis=1) == y[3:].sum()).all()
    assert np.exp(target.log_permutations) == pytest.approx(3 * 92378)  # 19 over 10


@pytest.mark.parametrize(
    ("y", "groups"),
    [
        ([0, 0, 0, 1, 1, 1], None),
        ([0, 0, 0, 0, 1, 1, 1], None),
        ([0, 0, 1, 1, 2, 2], None),
        ([0, 0, 0, 1, 1, 2, 2], None),
        ([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]),
        ([0, 0, 1, 1, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]),
        ([0, 1, 0, 1, 0, 1, 2], [0, 0, 1, 1, 2, 2, 2]),
        ([0, 1, 1, 0, 0, 0, 1, 1, 1, 2], [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]),
    ],
)
def test_permutations_are_counted(y, groups):
    labels, target = drawn(y, groups, count=5000)
    assert np.exp(target.log_permutations) == pytest.approx(different(labels))


def test_permutations_that_move_nothing_leave_the_number_of_the_labels_alone():
    """As many are drawn whatever the labels: else their p would not be that of an exchange."""
    rng = np.random.default_rng(11)
    groups = np.repeat(np.arange(14), [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7])
    y = rng.integers(0, 2, 14)[groups]
    y[-2:] = 0, 1
    labels, target = drawn(y, groups, count=20)
    for row in labels:
        assert ClassTarget.from_codes(row, groups=groups).log_permutations == pytest.approx(target.log_permutations)


# -- p ---------------------------------------------------------------------------------------------------------------


def test_the_smallest_p_is_that_of_the_definition():
    rng = np.random.default_rng(12)
    statistics = np.round(rng.normal(size=(80, 5)), 1)  # with ties
    statistics[0] += 1.0
    slow = np.array([[np.mean(column >= value) for value in column] for column in statistics.T]).T
    each, p = smallest_p(statistics)
    np.testing.assert_allclose(each, slow[0])
    assert p == pytest.approx(np.mean([row.min() <= slow[0].min() for row in slow]))
    assert p >= each.min()


def test_p_is_that_of_its_permutations_and_columns_of_the_largest_among_all():
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(30, 12)), np.arange(30) % 2
    X[:, 3] += 0.9 * y
    part, found = rows_of(X, y), evidence_of(X, y, seed=5)
    order = np.vstack([np.arange(30), part.target.permutations(500, again := np.random.default_rng(5))])
    order = np.vstack([order, part.target.permutations(PERMUTATIONS - 500, again)])
    tests = evidence._Tests.from_rows(part)
    statistics, columns = tests.statistics(order), tests.columns.statistics(order)
    np.testing.assert_allclose(found.values, statistics[0])
    np.testing.assert_allclose([found.p, *found.each], [smallest_p(statistics)[1], *smallest_p(statistics)[0]])
    largest = columns.max(axis=1)
    expected = [np.mean(largest >= value - 1e-9) for value in columns[0]]
    np.testing.assert_allclose(found.column_p, expected)
    assert found.permutations == PERMUTATIONS


def test_one_column_alone_carries_it_and_is_named():
    rng = np.random.default_rng(14)
    X, y = rng.normal(size=(60, 200)), np.arange(60) % 2
    X[:, 17] += 1.8 * y
    found = evidence_of(X, y, most=MORE_PERMUTATIONS)
    assert (found.carried_by, found.strength) == ("single", "clear")
    assert found.p <= CLEAR
    assert np.flatnonzero(found.column_p <= 0.05).tolist() == [17]
    assert found.permutations == MORE_PERMUTATIONS
    assert found.smallest_p == 1 / (MORE_PERMUTATIONS + 1)


def test_pairs_of_columns_are_found_together_and_a_circle_by_the_other_kernel():
    rng = np.random.default_rng(15)
    y = np.arange(80) % 2
    hidden = 3.0 * rng.normal(size=(80, 10))  # in a column alone it hides the rest
    pairs = evidence_of(np.hstack([hidden + rng.normal(size=(80, 10)) + 0.6 * y[:, None], hidden]), y)
    assert (pairs.strength, pairs.carried_by) == ("clear", "together")
    angle = rng.uniform(0, 2 * np.pi, 80)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + y[:, None]) + 0.2 * rng.normal(size=(80, 2))
    found = evidence_of(circle, y)
    assert (found.strength, found.carried_by) == ("clear", "non-linear")


def test_p_of_tables_without_a_signal_is_uniform():
    p, columns = [], []
    for seed in range(80):
        rng = np.random.default_rng([seed, 16])
        y = rng.permutation(np.arange(24) % 3 % 2)
        X = rng.normal(size=(24, 15))
        found = evidence_of(X + rng.normal(size=(24, 1)) if seed % 2 else X, y, seed=seed)
        p.append(found.p)
        columns.append(found.column_p.min())
    for values in (p, columns):
        assert abs(np.mean(values) - 0.5) < 3.5 / np.sqrt(12 * 80)
        assert np.sum(np.array(values) <= 0.1) <= 17  # 8 are expected
        assert stats.kstest(values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", ["equal", "unequal", "by class", "mixed"])
def test_p_of_groups_without_a_signal_is_not_too_small(kind):
    """Rows of a group alike: with permutations of rows nearly all tables would have a small p."""
    p = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 17])
        label = rng.permutation(np.arange(14) % 2)
        sizes = {"unequal": rng.integers(1, 7, 14), "by class": 2 + 3 * label}.get(kind, np.full(14, 4))
        groups = np.repeat(np.arange(14), sizes)
        y = rng.permutation(len(groups)) % 2 if kind == "mixed" else label[groups]
        X = rng.normal(size=(14, 10))[groups] + 0.3 * rng.normal(size=(len(groups), 10))
        p.append(evidence_of(X, y, groups, seed).p)
    assert np.sum(np.array(p) <= 0.1) <= 10  # 4 are expected
    assert np.mean(p) > 0.4


def test_the_same_seed_gives_the_same_and_another_nearly_the_same():
    rng = np.random.default_rng(18)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 30)) + 0.2 * y[:, None]
    one, again, other = (evidence_of(X, y, seed=seed, most=MORE_PERMUTATIONS) for seed in (1, 1, 2))
    assert one.p == again.p
    np.testing.assert_array_equal(one.column_p, again.column_p)
    np.testing.assert_array_equal(one.values, other.values)
    assert one.p != other.p
    assert one.p == pytest.approx(other.p, rel=0.3)


def test_more_permutations_are_drawn_where_it_may_matter():
    rng = np.random.default_rng(19)
    y = np.arange(30) % 2
    X = rng.normal(size=(30, 4))
    assert evidence_of(X + 2.0 * y[:, None], y, most=3000).permutations == 3000
    null = evidence_of(X, y, most=3000)
    assert null.p > WORTH_MORE
    assert null.permutations == PERMUTATIONS


# -- few rows, few columns, and columns of all kinds -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "groups", "count"),
    [
        ([0, 0, 0, 1, 1, 1], None, 10),  # 20 labellings, which differ in the names of the classes
        ([0, 0, 1, 1, 1, 1], None, 15),
        (np.repeat([0, 0, 0, 1, 1, 1], 4), np.repeat(np.arange(6), 4), 10),
        ([0, 0, 1, 1, 2, 2], None, 15),
        (np.repeat([0, 1], 5), np.repeat([0, 1], 5), 1),
    ],
)
def test_few_rows_or_groups_have_few_permutations(y, groups, count):
    y = np.asarray(y)
    found = evidence_of(5.0 * y[:, None] + np.random.default_rng(20).normal(size=(len(y), 2)), y, groups)
    assert found.smallest_p == pytest.approx(1 / count)
    assert found.smallest_p <= found.p <= 2.0 / count
    assert (found.each >= found.smallest_p).all()
    assert (found.column_p >= found.smallest_p).all()
    assert found.strength == "none"


def test_held_out_values_that_are_equal_but_for_rounding_are_equal():
    """Of two groups of one class each nothing is learned: no labelling is above the others."""
    rng = np.random.default_rng(21)
    for _ in range(10):
        found = evidence_of(rng.normal(size=(20, 3)), np.arange(20) // 10, np.arange(20) // 10)
        np.testing.assert_array_equal(found.values[:3], 0.5)
        assert found.p == 1.0


@pytest.mark.parametrize("columns", [1, 2])
def test_one_or_two_columns(columns):
    rng = np.random.default_rng(22)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, columns))
    assert evidence_of(X + 2.5 * y[:, None], y).strength == "clear"
    found = evidence_of(X, y)
    t = stats.ttest_ind(X[y == 1], X[y == 0]).statistic
    np.testing.assert_allclose(found.values[3:], [(t**2).max(), (t**2).mean()])


def test_a_flag_alone_has_the_p_of_fisher():
    """With one column of two values all depends on one cell of the table of four."""
    rng = np.random.default_rng(23)
    y, flag = np.arange(30) % 2, (np.arange(30) < 12) * 1.0
    y = np.where(flag > 0, y | (rng.random(30) < 0.6), y & (rng.random(30) < 0.6))
    found = evidence_of(flag[:, None], y, most=MORE_PERMUTATIONS)
    table = pd.crosstab(flag, y).to_numpy()
    cells = stats.hypergeom(30, int(y.sum()), 12)
    k = np.arange(13)
    r = np.abs(k / 12 - (y.sum() - k) / 18)
    expected = cells.pmf(k)[r >= r[table[1, 1]] - 1e-9].sum()
    assert found.column_p[0] == pytest.approx(expected, abs=0.01)


def test_constant_and_repeated_columns_and_rows_change_nothing():
    rng = np.random.default_rng(24)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 12)) + 0.4 * y[:, None]
    plain = evidence_of(X, y)
    constant = evidence_of(np.column_stack([np.ones(40), X, np.zeros(40)]), y)
    assert constant.p == plain.p
    np.testing.assert_array_equal(constant.column_p, np.r_[1.0, plain.column_p, 1.0])
    np.testing.assert_allclose(evidence_of(1000.0 * X - 7.0, y).values, plain.values)
    twice = evidence_of(np.column_stack([X, X]), y)
    np.testing.assert_allclose(twice.values[:4], plain.values[:4])
    np.testing.assert_array_equal(twice.column_p, np.tile(plain.column_p, 2))
    rows = np.repeat(np.arange(10), 4)
    assert 0 < evidence_of(X[rows], y).p <= 1  # equal rows of different classes


def test_a_sparse_table_is_the_dense_one():
    rng = np.random.default_rng(25)
    X = sparse.random(40, 60, 0.2, format="csr", rng=rng)
    y = np.arange(40) % 2
    thin, full = evidence_of(X, y), evidence_of(X.toarray(), y)
    np.testing.assert_allclose(thin.values, full.values)
    assert thin.p == full.p


def test_three_classes():
    rng = np.random.default_rng(26)
    y = np.repeat([0, 1, 2], [12, 20, 16])
    X = rng.normal(size=(48, 40))
    null = evidence_of(X, y)
    assert null.strength == "none"
    X[:, 5] += 2.0 * (y == 1)
    found = evidence_of(X, y, most=MORE_PERMUTATIONS)
    assert found.strength == "clear"
    assert np.argmin(found.column_p) == 5
    assert found.column_p[5] <= 0.01
    order = rng.permutation(3)
    renamed = evidence_of(X, order[y], most=MORE_PERMUTATIONS)
    np.testing.assert_allclose(renamed.values, found.values)


def test_a_category_is_named_and_gaps_do_no_harm():
    rng = np.random.default_rng(27)
    frame, y = mixed_table(rng, 90), np.arange(90) % 2
    frame.loc[3:9, "site"] = None
    frame["site"] = frame["site"].where((y == 0) | (rng.random(90) < 0.2), "west")
    found = evidence_of(frame, y, most=MORE_PERMUTATIONS)
    assert found.strength == "clear"
    assert frame.columns[np.argmin(found.column_p)] == "site"
    assert found.column_p[frame.columns.get_loc("same")] == 1.0
    assert np.isfinite(found.values).all()


def test_a_column_that_tells_rows_apart_does_not_hide_the_others():
    """Two pairs of its rows share a level: a labelling in four fits it perfectly, which must not be much."""
    rng = np.random.default_rng(28)
    y = np.arange(60) % 2
    frame = mixed_table(rng)[["a", "name"]]
    frame["a"] = frame["a"] + 2.0 * y
    found = evidence_of(frame, y, most=MORE_PERMUTATIONS)
    assert found.column_p[0] <= 0.001
    assert found.column_p[1] > 0.2


# -- many rows -------------------------------------------------------------------------------------------------------


def test_of_more_rows_some_are_looked_at_and_a_rare_class_whole(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_ROWS", 100)
    rng = np.random.default_rng(29)
    y = (np.arange(400) < 20).astype(int)
    part = rows_of(rng.normal(size=(400, 5)) + 1.5 * y[:, None], y)
    sample = sample_rows(part, rng)
    assert np.bincount(sample.target.codes).tolist() == [80, 20]
    found = find_evidence(part, rng, PERMUTATIONS)
    assert found.rows == 100
    assert found.strength == "clear"
    assert len(sample_rows(part.take(np.arange(100)), rng)) == 100


@pytest.mark.parametrize("size", [1, 2, 10])
def test_groups_of_equal_size_stay_equal_in_a_sample(monkeypatch, size):
    monkeypatch.setattr(evidence, "MOST_ROWS", 120)
    rng = np.random.default_rng(30)
    groups = rng.permutation(np.repeat(np.arange(400 // size), size))
    label = (np.arange(400 // size) % 8 == 0).astype(int)
    sample = sample_rows(rows_of(rng.normal(size=(400, 3)), label[groups], groups), rng)
    sizes = np.unique(sample.target.groups, return_counts=True)[1]
    assert len(np.unique(sizes)) == 1
    assert 100 <= len(sample) <= 120
    assert set(sample.target.groups[sample.target.codes == 1]) <= set(np.flatnonzero(label))
    if size == 10:
        assert len(sizes) == 40
        assert sizes[0] == 3


def test_rows_of_large_groups_of_several_outcomes_are_sampled_by_class(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_ROWS", 100)
    rng = np.random.default_rng(31)
    groups, y = np.repeat(np.arange(4), 100), (np.arange(400) % 20 == 0).astype(int)
    sample = sample_rows(rows_of(rng.normal(size=(400, 3)), y, groups), rng)
    assert np.bincount(sample.target.codes).tolist() == [80, 20]
