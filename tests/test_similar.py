"""Near-duplicates are named with the feature that was kept."""

import numpy as np
import pytest
from scipy import sparse

from marginsieve import recipes
from marginsieve.errors import InputError
from marginsieve.fitting.procedure import near_duplicates


@pytest.fixture
def table(rng):
    """Columns 0 and 5 decide; 1 and 2 are nearly 0, 3 is its mirror image; 6 is nearly 5; 9 is constant."""
    y = np.repeat([0, 1], [40, 20])
    X = rng.normal(size=(60, 10))
    X[:, 0] += 3.0 * y
    X[:, 5] -= 3.0 * y
    for j, near in ((1, 0), (2, 0), (6, 5)):
        X[:, j] = X[:, near] + 0.05 * j * rng.normal(size=60)
    X[:, 3] = -X[:, 0]
    X[:, 9] = 4.0
    return X, y


def slow_groups(X, order, least):
    """Pair by pair."""
    groups, taken = [], set()
    for j in order:
        if j in taken or np.ptp(X[:, j]) == 0:
            continue
        taken.add(j)
        members = []
        for k in range(X.shape[1]):
            if k not in taken and np.ptp(X[:, k]) > 0:
                r = np.corrcoef(X[:, j], X[:, k])[0, 1]
                if abs(r) >= least:
                    members.append((k, r))
        taken |= {k for k, _ in members}
        if members:
            groups.append((j, sorted(members, key=lambda pair: -abs(pair[1]))))
    return groups


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("least", [0.5, 0.9, 0.99])
def test_groups_are_those_of_a_loop_over_pairs(table, least, thin, rng):
    X, _ = table
    order = rng.permutation(10)
    usable = np.arange(10) < 9
    Z = sparse.csc_array(X) if thin else X
    found = near_duplicates(Z, np.ones(60), order, usable, least)
    slow = slow_groups(X, order, least)
    assert [j for j, _, _ in found] == [j for j, _ in slow]
    for (_, members, r), (_, pairs) in zip(found, slow, strict=True):
        assert members.tolist() == [k for k, _ in pairs]
        np.testing.assert_allclose(r, [value for _, value in pairs])


def test_weights_count_as_repeats(table, rng):
    X, _ = table
    times = rng.integers(1, 4, 60)
    order, usable = np.arange(10), np.arange(10) < 9
    weighted = near_duplicates(X, times.astype(float), order, usable, 0.9)
    repeated = near_duplicates(np.repeat(X, times, axis=0), np.ones(times.sum()), order, usable, 0.9)
    assert [j for j, _, _ in weighted] == [j for j, _, _ in repeated]
    for (_, _, a), (_, _, b) in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b)


def test_the_selector_names_the_one_that_was_kept(table):
    X, y = table
    made = recipes.fisher(n_features_to_select=6, threshold="margin").fit(X, y)
    kept = {group.representative: set(group.members) for group in made.groups_}
    assert {frozenset({name} | members) for name, members in kept.items()} == {
        frozenset({"x0", "x1", "x2", "x3"}),
        frozenset({"x5", "x6"}),
    }
    names = np.array([f"x{j}" for j in range(10)])
    for group in made.groups_:
        own = made.ranking_[names == group.representative][0]
        assert all(own < made.ranking_[names == name][0] for name in group.members if made.support_[names == name][0])
        assert all(abs(r) >= 0.95 for r in group.correlation)


def test_the_threshold_is_the_users(table):
    X, y = table
    fixed = {"n_features_to_select": 2, "threshold": "margin"}
    assert recipes.fisher(similar=None, **fixed).fit(X, y).groups_ == []
    exact = recipes.fisher(similar=1.0, n_features_to_select=9, threshold="margin").fit(X, y).groups_
    assert [{group.representative, *group.members} for group in exact] == [{"x0", "x3"}]
    with pytest.raises(InputError, match=r"similar is 1\.5; it must be a positive number of at most 1"):
        recipes.fisher(similar=1.5, **fixed).fit(X, y)


def test_nothing_usable_has_no_near_duplicates(rng):
    assert near_duplicates(rng.normal(size=(20, 3)), np.ones(20), np.arange(3), np.zeros(3, dtype=bool), 0.9) == []
