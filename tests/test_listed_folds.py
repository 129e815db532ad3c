"""Inner folds as a list of splits: its numbers are the user's rows, whatever rows take part in a fit."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold

from marginsieve import SVMSelector, nested_cv, recipes, tune
from marginsieve.data.table import Schema
from marginsieve.errors import InputError
from marginsieve.fitting.held_out import Places, listed_folds
from marginsieve.fitting.rows import Rows
from marginsieve.outcomes import Classes


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8))
    X[:, :2] += y[:, None]
    return X, y


def splits_of(y, k=4):
    return list(StratifiedKFold(k, shuffle=True, random_state=1).split(y, y))


def test_rows_without_weight_are_as_removed_rows(table):
    X, y = table
    rng = np.random.default_rng(2)
    weight = (rng.random(60) < 0.7).astype(float)
    left = np.flatnonzero(weight)
    splits = splits_of(y)
    new = np.cumsum(weight).astype(int) - 1
    fewer = [(new[np.intersect1d(train, left)], new[np.intersect1d(test, left)]) for train, test in splits]
    weighted = recipes.svm_rfe(cv=splits, random_state=0).fit(X, y, sample_weight=weight)
    removed = recipes.svm_rfe(cv=fewer, random_state=0).fit(X[left], y[left])
    np.testing.assert_array_equal(weighted.support_, removed.support_)
    np.testing.assert_allclose(weighted.decision_function(X), removed.decision_function(X), rtol=1e-7, atol=1e-9)
    scores = [[step.score for step in one.path_.steps] for one in (weighted, removed)]
    np.testing.assert_allclose(*scores)


def test_masks_predefined_splits_and_numbers_are_the_same(table):
    X, y = table
    splits = splits_of(y)
    fold = np.empty(60, dtype=int)
    for k, (_, test) in enumerate(splits):
        fold[test] = k
    masks = [(fold != k, fold == k) for k in range(4)]
    weight = np.where(np.arange(60) < 50, 1.0, 0.0)
    fits = [
        recipes.fisher(cv=cv, random_state=0).fit(X, y, sample_weight=weight)
        for cv in (splits, masks, PredefinedSplit(fold), [(list(train), tuple(test)) for train, test in splits])
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(fits[0].decision_function(X), other.decision_function(X), rtol=1e-12)


def encoded_of(X, y, weight=None):
    schema = Schema.from_table(X)
    return Rows(schema, schema.table(X), Classes().read(X, y, weight))


def test_a_sample_is_trained_on_and_the_rest_tested_where_the_list_says(table):
    X, y = table
    weight = np.where(np.arange(60) % 7, 1.0, 0.0)
    encoded, splits = encoded_of(X, y, weight), splits_of(y)
    part = encoded.active
    used, sample = part.row_numbers(), np.flatnonzero(np.random.default_rng(3).random(len(part)) < 0.5)
    folds = listed_folds(splits, replace(part, sample=sample))
    for (train, test), (their_train, their_test) in zip(folds, splits, strict=True):
        assert set(used[train]) == set(their_train) & set(used[sample])
        assert set(used[test]) == set(their_test) & set(used)
    small = recipes.fisher(cv=splits, max_samples=40, random_state=0).fit(X, y, sample_weight=weight)
    assert np.isfinite([step.score for step in small.path_.steps]).any()


def test_parts_of_a_table_keep_their_numbers(table):
    X, y = table
    splits, rows = splits_of(y), np.array([3, 50, 12, 13, 40, 41, 8, 9, 20, 21, 22, 23, 30, 31])
    part = encoded_of(X, y).take(np.arange(10, 60)).take(np.flatnonzero(np.isin(np.arange(10, 60), rows)))
    numbers = part.row_numbers()
    assert part.total == 60
    assert set(numbers) == set(rows[rows >= 10])
    for (train, test), (their_train, their_test) in zip(listed_folds(splits, part), splits, strict=True):
        assert set(numbers[train]) == set(their_train) & set(numbers)
        assert set(numbers[test]) == set(their_test) & set(numbers)


def test_nested_folds_have_other_rows(table):
    X, y = table
    with pytest.raises(
        InputError, match="cv of the estimator is a list of splits, whose rows are not those of an outer"
    ):
        nested_cv(recipes.fisher(cv=splits_of(y)), X, y, cv=3, n_repeats=1)


def test_tuning_takes_a_list_of_the_users_rows(table):
    X, y = table
    weight = np.where(np.arange(60) < 45, 1.0, 0.0)
    grid = {"machine__C": [0.1, 1.0]}
    weighted = tune(recipes.svm_rfe(), X, y, grid, cv=splits_of(y), sample_weight=weight)
    fewer = [(train[train < 45], test[test < 45]) for train, test in splits_of(y)]
    assert weighted.scores == tune(recipes.svm_rfe(), X[:45], y[:45], grid, cv=fewer).scores


def test_a_number_may_stand_for_several_rows_or_none():
    places = Places(np.array([5, 2, 5, 9]))
    np.testing.assert_array_equal(places.find(np.array([9, 5, 7])), [3, 0, 2])
    np.testing.assert_array_equal(places.find(np.array([], dtype=int)), [])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(40), np.arange(40, 61))], "split 0 of cv names row 60; the table has rows 0 to 59"),
        ([(np.arange(40), np.array([-1, 41]))], "split 0 of cv names row -1; the table has rows 0 to 59"),
        ([(np.arange(40) < 30, np.arange(40) >= 30)], "a mask has 40 rows and the table 60"),
        ([(np.arange(40.0), np.arange(40.0, 60.0))], "rows are numbered by whole numbers, not by float64"),
        ([(np.arange(40), 50)], "a side of a split must be a list of rows"),
        ([], "cv is a list without any fold"),
        ([np.arange(60)], "cv is .* it must be a whole number, a splitter or a list of splits"),
        ([(np.arange(0, 60, 2), np.arange(1, 60, 2))], "fold 0 of cv trains without class 1"),
        ([(np.arange(60), np.arange(0, 60, 2))], "no fold of cv tests class 1"),
    ],
)
def test_lists_that_do_not_fit_are_refused(table, cv, message):
    with pytest.raises(InputError, match=message):
        SVMSelector(cv=cv).fit(*table)


def test_a_splitter_with_rows_of_its_own_is_refused(table):
    class Fixed:
        def split(self, *_):
            return KFold(3, shuffle=True, random_state=0).split(np.zeros(60))

    X, y = table
    with pytest.raises(InputError, match=r"names row .* of the 50 rows that it was to split"):
        SVMSelector(cv=Fixed()).fit(X, y, sample_weight=np.where(np.arange(60) < 50, 1.0, 0.0))
