"""Hybrid feature selection: running scores equal refitting, both judges their references, the merge its definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from marginsieve import recipes
from marginsieve.criteria import MixedTest
from marginsieve.data.table import Schema, Table
from marginsieve.errors import InputError
from marginsieve.fitting.rows import Rows
from marginsieve.fitting.settings import Plan
from marginsieve.fitting.training import prepare
from marginsieve.kernels import Clinical, heom_distances
from marginsieve.machines import CSVC
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.searches import Merge
from marginsieve.searches.merge import FoldedRows, NaiveBayes, NearestNeighbors

KIND = ("real", "nominal", "real", "boolean", "ordinal")


def rows_of(seed, m=36, classes=2, missing=0.0, folds=4):
    rng = np.random.default_rng(seed)
    codes = np.arange(m) % classes
    Z = np.column_stack([
        rng.normal(size=m) + codes, rng.integers(0, 3, m), rng.normal(size=m), rng.random(m) < 0.3 + 0.3 * codes,
        rng.integers(0, 4, m),
    ]).astype(float)  # fmt: skip
    Z[rng.random(Z.shape) < missing] = np.nan
    fold = np.empty(m, dtype=np.intp)
    for k, (_, test) in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed % 1000).split(Z, codes)):
        fold[test] = k
    return FoldedRows(Table(np.asfortranarray(Z), KIND, tuple("abcde")), codes, np.ones(m), fold)


@pytest.mark.parametrize("classes", [2, 3])
def test_naive_bayes_is_scikit_learns(classes):
    rows = rows_of(1, classes=classes)
    judge, Z = NaiveBayes(rows, 1e-9), rows.table.Z
    for j in range(5):
        judge.add(j)
    for k in range(4):
        train, test = rows.fold != k, rows.fold == k
        numbers, levels = [0, 2, 4], [1, 3]
        unit = Z[train][:, numbers].std(axis=0)
        gaussian = GaussianNB(var_smoothing=1e-9).fit(Z[train][:, numbers] / unit, rows.codes[train])
        shares = CategoricalNB(min_categories=[3, 2]).fit(Z[train][:, levels], rows.codes[train])
        log = gaussian.predict_joint_log_proba(Z[test][:, numbers] / unit) - np.log(unit).sum()
        log += shares.predict_joint_log_proba(Z[test][:, levels]) - shares.class_log_prior_
        np.testing.assert_allclose(judge.total[test], log, rtol=1e-6, atol=1e-6)


def slow_votes(rows, features, k):
    """Nearest rows outside the fold by the public distance, ranges from those rows; rows at the edge share."""
    out = np.zeros((len(rows.codes), rows.classes))
    kinds = {f"x{i}": KIND[j].replace("ordinal", "real") for i, j in enumerate(features)}  # the levels are numbers
    Z = rows.table.Z[:, features]
    for i in range(len(Z)):
        train = np.flatnonzero(rows.fold != rows.fold[i])
        shown = {f"x{c}": Z[np.r_[train, i], c] for c in range(len(features))}
        frame = pd.DataFrame(shown)
        d = (
            heom_distances(frame.iloc[[-1]], frame.iloc[:-1], kinds=kinds)[0]
            if frame[:-1].notna().any().all()
            else None
        )
        if d is None:
            return None
        edge = np.sort(d)[min(k, len(d)) - 1]
        inside, at = d < edge - 1e-9, np.abs(d - edge) <= 1e-9
        for c in range(rows.classes):
            own = rows.codes[train] == c
            out[i, c] = (inside & own).sum() + (at & own).sum() * (min(k, len(d)) - inside.sum()) / at.sum()
    return out


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 3), k=st.sampled_from([1, 5, 40]))
def test_neighbours_are_found_one_by_one(seed, classes, k):
    from marginsieve.searches import merge

    rows = rows_of(seed, m=24, classes=classes, missing=0.1)
    judge, features = NearestNeighbors(rows, k), []
    for j in (0, 1, 4, 3):
        features.append(j)
        slow = slow_votes(rows, features, k)
        given = (*judge._column(j), rows.fold, rows.codes, rows.weight, rows.classes, k)
        if slow is not None:
            np.testing.assert_allclose(merge._votes(judge.total, *given), slow, atol=1e-9)
            assert judge.value(j) == pytest.approx(rows.balanced_accuracy(slow))
        judge.add(j)


def test_equal_scores_count_in_part():
    rows = rows_of(0, m=8)
    assert rows.balanced_accuracy(np.zeros((8, 2))) == 0.5
    assert rows.balanced_accuracy(np.eye(2)[rows.codes]) == 1.0


def problem_of(frame, y, keep=()):
    columns = Schema.from_table(frame)
    plan = Plan(Clinical(), CSVC(), MixedTest(), Merge(), Classes(), keep=keep)
    codes = np.unique(y, return_inverse=True)[1]
    return prepare(
        plan, Rows(columns, columns.table(frame), ClassTarget.from_codes(codes)), np.random.default_rng(0)
    ).problem


def cohort(seed=0, m=60):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [m - m // 3, m // 3])
    frame = pd.DataFrame(rng.normal(size=(m, 6)), columns=list("abcdef"))
    frame["a"] += 1.5 * y
    frame["b"] += 1.0 * y
    frame["smoker"] = rng.random(m) < 0.2 + 0.5 * y
    frame["site"] = pd.Categorical(np.where(rng.random(m) < 0.6 * y, "x", rng.choice(["y", "z", "w"], m)))
    frame["hand"] = pd.Categorical(rng.choice(["l", "r"], m))
    frame.loc[::9, ["a", "site"]] = None
    return frame, y


@pytest.mark.parametrize("judge", ["naive_bayes", "nearest_neighbors"])
def test_the_merge_is_its_definition(judge):
    frame, y = cohort()
    problem, search = problem_of(frame, y), Merge(judge, cv=5)
    path = search.run(problem, np.random.default_rng(3))
    value = problem.score(None, ())
    lists = [sorted((j for j in range(9) if (j >= 6) == side), key=lambda j: -value[j]) for side in (False, True)]
    order = []
    while all(lists):  # a judge made anew for each trial
        tried = []
        for part in lists:
            fresh = search._judge(problem, np.random.default_rng(3))
            for j in order:
                fresh.add(j)
            tried.append((fresh.value(part[0]), value[part[0]]))
        order.append(lists[0].pop(0) if tried[0] >= tried[1] else lists[1].pop(0))
    assert path.order.tolist() == [*order, *lists[0], *lists[1]]
    assert f"features were placed by {judge}" in path.stop_reason


def test_one_list_is_a_ranking_by_its_test():
    frame, y = cohort()
    problem = problem_of(frame[list("abcdef")], y)
    path = Merge().run(problem, np.random.default_rng(0))
    np.testing.assert_array_equal(path.order, np.argsort(-problem.score(None, ()), kind="stable"))


@pytest.mark.parametrize("name", ["hfs_nb", "hfs_5nn"])
def test_the_recipes_select_both_kinds(name):
    frame, y = cohort(m=90)
    made = recipes.get(name)(n_features_to_select=4, random_state=0).fit(frame, y)
    assert {"a", "smoker", "site"} <= set(made.get_feature_names_out())
    assert made.score(frame, y) > 0.75
    again = recipes.get(name)(n_features_to_select=4, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(made.ranking_, again.ranking_)
    kept = recipes.get(name)(n_features_to_select=2, keep=["hand"], threshold="margin").fit(frame, y)
    assert "hand" in kept.get_feature_names_out()
    three = recipes.get(name)(n_features_to_select=2, random_state=0).fit(frame, np.where(np.arange(90) % 5 == 0, 2, y))
    assert three.n_features_ == 2


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"search__judge": "forest"}, "judge is 'forest'; it must be one of 'naive_bayes', 'nearest_neighbors'"),
        ({"search__cv": 1}, "cv is 1"),
        ({"search__n_neighbors": 0}, "n_neighbors is 0"),
        ({"search__smoothing": -1}, "smoothing is -1"),
        ({"criterion": "margin"}, "works on lists that a filter ranked, and MarginChange is about a machine"),
    ],
)
def test_what_makes_no_sense_is_refused(told, sentence):
    with pytest.raises(InputError, match=sentence):
        recipes.hfs_nb().set_params(**told).fit(*cohort())


def test_no_group_is_on_both_sides_of_a_fold():
    frame, y = cohort(m=60)
    problem = problem_of(frame, y)
    problem.groups = np.arange(60) // 3
    rows = Merge(cv=5)._judge(problem, np.random.default_rng(0)).rows
    for k in range(5):
        assert not set(problem.groups[rows.fold == k]) & set(problem.groups[rows.fold != k])


def test_the_unit_of_a_column_does_not_matter_though_a_class_has_no_cell():
    rows = rows_of(2, m=45, classes=3)
    found = []
    for unit in (1e-6, 1.0, 1e6):
        Z = rows.table.Z.copy(order="F")
        Z[rows.codes == 2, 0] = np.nan
        Z[:, 0] *= unit
        found.append(
            NaiveBayes(FoldedRows(Table(Z, KIND, tuple("abcde")), rows.codes, rows.weight, rows.fold), 1e-3).value(0)
        )
    np.testing.assert_allclose(found, found[0])


def test_a_class_of_one_row_is_refused():
    frame, y = cohort(m=30)
    y = np.where(np.arange(30) == 29, 1, 0)
    with pytest.raises(InputError, match=r"needs two rows .or groups. of each class"):
        recipes.hfs_nb(n_features_to_select=2, threshold="margin").fit(frame, y)


def test_heom_is_its_definition():
    frame = pd.DataFrame({"x": [0.0, 1.0, 4.0], "c": ["a", "b", None], "b": [True, False, True]})
    d = heom_distances(frame)
    assert d[0, 1] == pytest.approx(np.sqrt(0.25**2 + 1 + 1))
    assert d[0, 2] == pytest.approx(np.sqrt(1 + 1 + 0))
    assert d[2, 2] == 1.0
    assert d[0, 0] == 0.0
    np.testing.assert_array_equal(d, d.T)
    far = pd.DataFrame({"x": [9.0], "c": ["z"], "b": [True]})
    np.testing.assert_allclose(heom_distances(far, frame), np.sqrt([[1 + 1 + 0, 0.75**2 + 1 + 1, 0 + 1 + 0]]))
