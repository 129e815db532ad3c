"""Levels, and the filters that are built on levels, neighbours, densities and principal components."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import mutual_info_score

from marginsieve import recipes
from marginsieve.criteria import (
    FILTERS,
    DecomposedHellinger,
    Density,
    Hellinger,
    Principal,
    ReliefF,
    SymmetricalUncertainty,
    _columns,
)
from marginsieve.data.table import Schema
from marginsieve.errors import InputError


def told(X, y, weight=None):
    """Table, labels (k, m) and weights: of y in {-1, +1} one row of labels, of class codes a row for each class."""
    y = np.asarray(y)
    labels = np.atleast_2d(y) if y.min() < 0 else np.array([np.where(y == c, 1.0, -1.0) for c in np.unique(y)])
    return Schema.from_table(X).table(X), labels, np.ones(len(y)) if weight is None else weight


def score(X, y, criterion, weight=None):
    return criterion(*told(X, y, weight))


# -- levels ----------------------------------------------------------------------------------------------------


def test_mdl_cuts_of_the_iris_are_the_published_ones():
    """As printed for this table by Weka's supervised discretisation and by the R package `discretization`."""
    X, y = load_iris(return_X_y=True)
    cuts = _columns.mdl_cuts(np.ascontiguousarray(X.T), y.astype(np.intp), np.ones(len(y)))
    published = [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]
    for found, known in zip(cuts, published, strict=True):
        np.testing.assert_allclose(found, known)
    levels = _columns.mdl(np.ascontiguousarray(X.T), y.astype(np.intp), np.ones(len(y)))
    np.testing.assert_array_equal(levels[2], np.digitize(X[:, 2], [2.45, 4.75]))


def test_the_temperature_of_the_weather_data_is_not_cut():
    """Witten and Frank's example: no cut of these 14 days pays for itself; the best leaves 0.827 bits."""
    degrees = np.array([[64, 65, 68, 69, 70, 71, 72, 72, 75, 75, 80, 81, 83, 85.0]])
    play = np.array([1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0])
    assert len(_columns.mdl_cuts(degrees, play, np.ones(14))[0]) == 0
    many = np.repeat(degrees, 40, axis=1)  # forty times the evidence is enough
    assert 84.0 in _columns.mdl_cuts(many, np.repeat(play, 40), np.ones(14 * 40))[0]
    np.testing.assert_array_equal(
        _columns.mdl_cuts(degrees, play, np.full(14, 40.0))[0],
        _columns.mdl_cuts(many, np.repeat(play, 40), np.ones(560))[0],
    )


def slow_mdl(x, y):
    """Fayyad and Irani, by recursion over sorted rows."""

    def entropy(part):
        return stats.entropy(np.unique(part, return_counts=True)[1], base=2) if len(part) else 0.0

    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    best = None
    for i in range(1, len(x)):
        if x[i] != x[i - 1]:
            both = (i * entropy(y[:i]) + (len(y) - i) * entropy(y[i:])) / len(y)
            if best is None or both < best[0] - 1e-12:
                best = (both, i)
    if best is None:
        return []
    both, i = best
    k, k1, k2 = (len(np.unique(part)) for part in (y, y[:i], y[i:]))
    delta = np.log2(3**k - 2) - (k * entropy(y) - k1 * entropy(y[:i]) - k2 * entropy(y[i:]))
    if entropy(y) - both <= (np.log2(len(y) - 1) + delta) / len(y) + 1e-12:
        return []
    return [*slow_mdl(x[:i], y[:i]), 0.5 * (x[i - 1] + x[i]), *slow_mdl(x[i:], y[i:])]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 60), classes=st.integers(2, 4))
def test_mdl_is_its_recursion(seed, m, classes):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, m)
    z = np.array(
        [np.round(rng.normal(size=m) + scale * y, digits) for scale, digits in ((0, 1), (1, 0), (3, 1), (3, 6))]
    )
    for row, cuts in zip(z, _columns.mdl_cuts(z, y, np.ones(m)), strict=True):
        np.testing.assert_allclose(cuts, slow_mdl(row, y))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 50), bins=st.integers(2, 8))
def test_levels_of_equal_weight(seed, m, bins):
    rng = np.random.default_rng(seed)
    z = np.array([rng.normal(size=m), np.round(rng.normal(size=m)), np.full(m, 2.0)])
    levels = _columns.equal_frequency(z, np.ones(m), bins)
    for row, level in zip(z, levels, strict=True):
        order = np.argsort(row, kind="stable")
        assert (np.diff(level[order]) >= 0).all()
        assert all(len(np.unique(level[row == value])) == 1 for value in np.unique(row))
        if len(np.unique(row)) <= bins:
            assert len(np.unique(level)) == len(np.unique(row))
    assert np.ptp(np.bincount(levels[0], minlength=min(m, bins))) <= 1  # no ties
    times = rng.integers(1, 4, m)
    twice = _columns.equal_frequency(np.repeat(z, times, axis=1), np.ones(times.sum()), bins)
    np.testing.assert_array_equal(
        _columns.equal_frequency(z, times.astype(float), bins), twice[:, np.cumsum(times) - 1]
    )


# -- symmetrical uncertainty and Hellinger ---------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
def test_symmetrical_uncertainty_is_its_definition(seed, classes):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(40) % classes)
    X = rng.normal(size=(40, 6)) + 0.8 * y[:, None] * (np.arange(6) < 2)
    X[:, 5] = np.round(X[:, 5])
    codes = np.where(y == 1, 1, -1) if classes == 2 else y
    criterion = SymmetricalUncertainty(bins=4)
    by_class = criterion.by_class(*told(X, codes))
    labels = [y == 1] if classes == 2 else [y == c for c in range(classes)]
    levels = _columns.equal_frequency(np.ascontiguousarray(X.T), np.ones(40), 4)
    entropy = lambda part: stats.entropy(np.bincount(part), base=2)  # noqa: E731
    slow = np.array(
        [
            [2 * mutual_info_score(label, level) / np.log(2) / (entropy(label) + entropy(level)) for level in levels]
            for label in labels
        ]
    )
    np.testing.assert_allclose(by_class, slow, atol=1e-9)
    np.testing.assert_allclose(score(X, codes, criterion), (slow / slow.sum(axis=1, keepdims=True)).sum(axis=0))


def test_a_copy_of_the_label_has_symmetrical_uncertainty_one(rng):
    y = np.where(np.arange(30) < 9, 1.0, -1.0)
    X = np.column_stack([y, rng.normal(size=30), np.full(30, 2.0)])
    for cuts in ("equal_frequency", "mdl"):
        criterion = SymmetricalUncertainty(cuts)
        found = criterion.by_class(*told(X, y))[0]
        assert found[0] == pytest.approx(1.0)
        assert found[2] == 0.0
        assert score(X, y, Hellinger(cuts))[0] == pytest.approx(1.0)
    assert found[1] == 0.0  # noise is not cut by MDL


def test_without_any_signal_all_weights_are_zero_and_finite():
    X, y = np.tile([[1.0], [2.0]], (10, 3)), np.repeat([1.0, -1.0], 10)
    np.testing.assert_array_equal(score(X, y, SymmetricalUncertainty()), 0.0)


def test_categories_are_levels():
    import pandas as pd

    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    word = np.where(rng.random(60) < 0.8, np.where(y > 0, "a", "b"), "c")
    number = np.select([word == "a", word == "b"], [0.0, 1.0], 2.0)
    X = pd.DataFrame({"word": word, "number": number, "other": rng.normal(size=60)})
    for criterion in (SymmetricalUncertainty(), Hellinger()):
        found = score(X, y, criterion)
        assert found[0] == pytest.approx(found[1])
    shares = np.array([[np.mean(word[y == side] == level) for side in (1, -1)] for level in "abc"])
    assert score(X, y, Density())[0] == pytest.approx(1 - shares.min(axis=1).sum())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_hellinger_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(36) < 11, 1.0, -1.0)
    X = rng.normal(size=(36, 4)) + (y > 0)[:, None] * [2.0, 0.5, 0, 0]
    levels = _columns.equal_frequency(np.ascontiguousarray(X.T), np.ones(36), 5)
    for value, level in zip(score(X, y, Hellinger()), levels, strict=True):
        p, q = (np.bincount(level[y == side], minlength=5) / np.sum(y == side) for side in (1, -1))
        assert value == pytest.approx(np.linalg.norm(np.sqrt(p) - np.sqrt(q)) / np.sqrt(2), abs=1e-9)


# -- D-HELL --------------------------------------------------------------------------------------------------------


def test_the_parts_are_a_rest_point_of_k_means(rng):
    X = rng.normal(size=(50, 300))
    X[:20, :40] += 2.0
    X[20:31, 40:80] -= 2.0
    place = _columns.coordinates(X, np.ones(50))
    distances = lambda Z: ((Z[:, None] - Z[None]) ** 2).sum(axis=2)  # noqa: E731
    np.testing.assert_allclose(distances(place), distances(X), rtol=1e-8, atol=1e-8)
    part = _columns.split(place, np.ones(50), 3, 100)
    centres = np.array([X[part == k].mean(axis=0) for k in range(3)])
    again = KMeans(3, init=centres, n_init=1, max_iter=1).fit(X)
    np.testing.assert_array_equal(again.labels_, part)
    groups = [set(np.flatnonzero(part == k)) for k in range(3)]
    assert set(range(20)) in groups  # what was planted
    assert set(range(20, 31)) in groups


def test_d_hell_with_one_part_is_the_hellinger_distance(rng):
    y = np.where(np.arange(40) < 12, 1.0, -1.0)
    X = rng.normal(size=(40, 30)) + (y > 0)[:, None] * (np.arange(30) < 3)
    np.testing.assert_allclose(score(X, y, DecomposedHellinger(n_clusters=1)), score(X, y, Hellinger()), atol=1e-9)


def test_d_hell_is_the_mean_over_the_parts(rng):
    y = np.where(np.arange(40) < 12, 1.0, -1.0)
    X = rng.normal(size=(40, 30)) + (y > 0)[:, None] * (np.arange(30) < 3)
    rest = np.flatnonzero(y < 0)
    part = _columns.split(_columns.coordinates(X, np.ones(40))[rest], np.ones(28), 5, 100)
    slow = np.zeros(30)
    for k in range(5):
        rows = np.r_[np.flatnonzero(y > 0), rest[part == k]]
        slow += np.mean(part == k) * score(X[rows], y[rows], Hellinger())
    np.testing.assert_allclose(score(X, y, DecomposedHellinger()), slow, atol=1e-9)
    np.testing.assert_allclose(score(X, -y, DecomposedHellinger()), slow, atol=1e-9)  # the larger class is split


def test_more_parts_than_rows_are_as_many_as_there_are():
    y = np.array([1.0, 1, 1, -1, -1, -1, -1])
    X = np.array([[0.0], [1], [2], [5], [5], [6], [6]]) @ np.ones((1, 3))
    assert np.isfinite(score(X, y, DecomposedHellinger(n_clusters=6))).all()


# -- ReliefF -------------------------------------------------------------------------------------------------------


def slow_relieff(X, y, nominal, k=10):
    """The definition, a loop over rows, classes and neighbours; missing cells as in scikit-rebate."""
    m, n = X.shape
    mixed = nominal.any() and not nominal.all()
    span, deviation = np.nanmax(X, axis=0) - np.nanmin(X, axis=0), np.nanstd(X, axis=0)

    def plain(a, b, j):
        return float(a != b) if nominal[j] else abs(a - b) / span[j]

    def ramped(a, b, j):
        return 1.0 if mixed and not nominal[j] and abs(a - b) > deviation[j] else plain(a, b, j)

    D = np.full((m, m), np.inf)
    for i, h in itertools.permutations(range(m), 2):
        both = np.flatnonzero(~np.isnan(X[i]) & ~np.isnan(X[h]))
        D[i, h] = np.mean([plain(X[i, j], X[h, j], j) for j in both])
    prior = {c: np.mean(y == c) for c in np.unique(y)}
    out = np.zeros(n)
    for i in range(m):
        near = {c: [h for h in np.argsort(D[i], kind="stable") if h != i and y[h] == c][:k] for c in prior}
        for j in np.flatnonzero(~np.isnan(X[i])):
            mean = {}
            for c, rows in near.items():
                seen = [h for h in rows if not np.isnan(X[h, j])]
                if seen:
                    mean[c] = np.mean([ramped(X[i, j], X[h, j], j) for h in seen])
            others = [c for c in mean if c != y[i]]
            if y[i] in mean and others:
                total = sum(prior[c] for c in others)
                out[j] += (sum(prior[c] / total * mean[c] for c in others) - mean[y[i]]) / m
    return out


def mixed_table(rng, m, kind):
    """Numbers, categories (as words in a frame), or both; `missing` ones too."""
    import pandas as pd

    y = np.where(rng.permutation(m) < m // 3, 1, 0)
    numbers = rng.normal(size=(m, 6)) + 0.8 * y[:, None] * (np.arange(6) < 2)
    levels = (rng.integers(0, 3, (m, 4)) + y[:, None] * (np.arange(4) < 1)).astype(float)
    plain = numbers if kind == "numbers" else np.column_stack([numbers, levels])
    if kind == "mixed":  # without any gap skrebate counts categories more than once in its distances
        plain[0, 0] = np.nan
    if kind == "missing":
        plain[rng.random(plain.shape) < 0.07] = np.nan
    nominal = np.arange(plain.shape[1]) >= 6
    words = {
        f"c{j}": pd.Series([None if np.isnan(v) else "abcdef"[int(v)] for v in plain[:, j]], dtype=object)
        for j in np.flatnonzero(nominal)
    }
    frame = pd.DataFrame({**{f"x{j}": plain[:, j] for j in range(6)}, **words})
    return plain, nominal, frame, y


@pytest.mark.parametrize("kind", ["numbers", "mixed", "missing"])
def test_relieff_is_its_definition(kind, rng):
    plain, nominal, frame, y = mixed_table(rng, 30, kind)
    for k in (3, 10):
        found = score(frame, np.where(y > 0, 1.0, -1.0), ReliefF(k))
        np.testing.assert_allclose(found, slow_relieff(plain, y, nominal, k), atol=1e-12)


def test_the_order_of_rows_does_not_matter_where_neighbours_tie(rng):
    X, y = (rng.random((50, 10)) < 0.5) * 1.0, np.where(np.arange(50) % 3 == 0, 1.0, -1.0)
    order = rng.permutation(50)
    np.testing.assert_allclose(score(X[order], y[order], ReliefF()), score(X, y, ReliefF()), atol=1e-12)


def test_relieff_takes_all_classes_at_once(rng):
    y = rng.permutation(np.arange(36) % 3)
    X = rng.normal(size=(36, 5)) + y[:, None] * (np.arange(5) < 1)
    np.testing.assert_allclose(score(X, y, ReliefF(4)), slow_relieff(X, y, np.zeros(5, dtype=bool), 4), atol=1e-12)


@pytest.mark.parametrize("kind", ["numbers", "mixed", "missing"])
def test_relieff_is_skrebates(kind, rng):
    skrebate = pytest.importorskip("skrebate", reason="skrebate is not installed")
    for _ in range(3):
        plain, nominal, frame, y = mixed_table(rng, 60, kind)
        known = skrebate.ReliefF(n_neighbors=10, categorical_features=np.flatnonzero(nominal).tolist())
        known.fit(plain.copy(), y)
        found = score(frame, np.where(y > 0, 1.0, -1.0), ReliefF())
        np.testing.assert_allclose(found, known.feature_importances_, atol=1e-9)


# -- densities -----------------------------------------------------------------------------------------------------


def test_the_density_filter_is_the_distance_of_two_kernel_densities(rng):
    y = np.where(np.arange(60) < 20, 1.0, -1.0)
    X = rng.normal(size=(60, 4)) + (y > 0)[:, None] * [0.0, 1.0, 2.0, 6.0]
    for x, value in zip(X.T, score(X, y, Density(points=512)), strict=True):
        sides = [x[y > 0], x[y < 0]]
        inside = np.sqrt(sum(len(s) * s.var() for s in sides) / 60)
        grid = np.linspace(x.min() - 4, x.max() + 4, 20_001)
        p, q = (stats.norm.pdf(grid[:, None], s, 1.06 * inside * len(s) ** -0.2).mean(axis=1) for s in sides)
        assert value == pytest.approx(1 - np.trapezoid(np.minimum(p, q), grid), abs=5e-3)


def test_a_column_that_splits_the_classes_overlaps_nowhere(rng):
    y = np.where(np.arange(30) < 10, 1.0, -1.0)
    found = score(np.column_stack([y, rng.normal(size=30), np.full(30, 1.0)]), y, Density())
    assert found[0] == pytest.approx(1.0)
    assert found[2] == 0.0
    assert 0 < found[1] < 0.7


# -- principal components ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(20, 60), (50, 8), (30, 30)])
def test_parts_in_principal_components_are_scikit_learns(shape, rng):
    X = rng.normal(size=shape) @ np.diag(np.linspace(0.5, 3.0, shape[1]))
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    known = PCA(n_components=0.8, svd_solver="full").fit(X)
    factor = (len(X) - 1) / len(X)  # our variances divide by the number of rows
    slow = factor * known.explained_variance_ @ np.abs(known.components_)
    np.testing.assert_allclose(score(X, y, Principal(0.8)), slow, rtol=1e-8)


# -- all of them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["su", "hellinger", "d_hell", "relieff", "dbfs", "smote_relieff"])
def test_planted_columns_are_found(name):
    from marginsieve.data import make_cohort

    cohort = make_cohort(80, 300, n_relevant=6, effect=1.6, prevalence=0.25, random_state=1)
    made = recipes.get(name)(n_features_to_select=12, threshold="margin", random_state=0).fit(cohort.X, cohort.y)
    assert len(set(made.get_feature_names_out()) & set(cohort.truth.relevant)) >= 5


@pytest.mark.parametrize(
    "wrong",
    [
        SymmetricalUncertainty("median"),
        SymmetricalUncertainty(bins=1),
        Hellinger(bins=2.5),
        DecomposedHellinger(n_clusters=0),
        ReliefF(n_neighbors=-1),
        Density(points=3),
        Principal(0.0),
        Principal(True),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InputError, match=r"criterion: .* is .*; it must be"):
        wrong.check()


@pytest.mark.parametrize("name", ["su", "hellinger", "relieff", "dbfs"])
def test_a_category_that_one_class_never_has_proves_nothing(name, rng):
    import pandas as pd

    y = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    word = pd.Series(rng.choice(list("xyz"), 40), dtype=object).where(y < 0, None)
    X = pd.DataFrame({"a": rng.normal(size=40) + y, "b": rng.normal(size=40), "word": word})
    assert score(X, y, FILTERS[name]())[2] == 0.0


@pytest.mark.filterwarnings("ignore:the decision value is the same for every training row")
def test_scores_of_nothing_but_zeros_are_told(rng):
    X, y = np.tile(rng.normal(size=(10, 1)), (2, 6)), np.repeat([0, 1], 10)
    with pytest.warns(UserWarning, match="every column has a SymmetricalUncertainty score of 0"):
        recipes.su(cuts="mdl", n_features_to_select=2, threshold="margin", class_weight="balanced").fit(X, y)


def test_the_new_filters_are_listed():
    assert {"su", "hellinger", "d_hell", "relieff", "dbfs", "pca"} <= set(FILTERS)
