"""The order of a table's rows and columns decides nothing: studies draw from an order of their own."""

import warnings

import numpy as np
import pandas as pd
import pytest
from tiers import long_but

import marginsieve
from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.studies.study_data import from_arrays, from_frame, judge_table

PLAIN = {"without": ["suspects", "references", "substitutes"], "cv": 3, "n_repeats": 1, "n_permutations": 24}


def table_and_labels(mixed, m=48):
    """Rounded, so that columns tie; two rows are equal but for the label."""
    extra = {"n_categorical": 3, "missing": 0.03} if mixed else {}
    cohort = make_cohort(m, 14, n_relevant=3, effect=1.2, random_state=3, **extra)
    X, y = cohort.X.round(1), pd.Series(np.asarray(cohort.y), name="outcome")
    a, b = y.index[y == y[0]][1], y.index[y != y[0]][0]
    X.loc[b] = X.loc[a]
    return X.astype(cohort.X.dtypes), y


def in_other_order(X, y, kind):
    """The table sorted, or shuffled; the rows' numbers in the first table."""
    rng = np.random.default_rng(5)
    if kind == "sorted":
        rows, columns = np.lexsort((X.iloc[:, 0], y)), np.argsort(X.columns)[::-1]
    else:
        rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    return X.iloc[rows, columns].reset_index(drop=True), y.iloc[rows].reset_index(drop=True), rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "mixed"), [("sorted", False), ("shuffled", True)])
@pytest.mark.parametrize("name", long_but(recipes.names("classes"), "two_views", "symon", "clinical_rfe", "kp_svm"))
def test_order_changes_no_selection_and_no_value(name, kind, mixed):
    X, y = table_and_labels(mixed)
    try:
        ours = marginsieve.study(X, y, methods=name, **PLAIN)
    except InputError:
        pytest.skip("the method takes no categories or empty cells")
    other, labels, rows = in_other_order(X, y, kind)
    theirs = marginsieve.study(other, labels, methods=name, **PLAIN)
    assert set(ours.features.query("selected")["name"]) == set(theirs.features.query("selected")["name"])
    there = theirs.predictions.assign(row=rows[theirs.predictions["row"] - 1]).sort_values(["repeat", "row"])
    assert np.abs(ours.predictions["decision"].to_numpy() - there["decision"].to_numpy()).max() <= 1e-6
    new = X.iloc[::-1]
    apart = ours.model.decision_function(new) - theirs.model.decision_function(new[other.columns])
    assert np.abs(apart).max() <= 1e-6
    assert ours.result["scores"] == theirs.result["scores"]
    assert ours.result["analyses"]["evidence"] == theirs.result["analyses"]["evidence"]


@pytest.fixture(scope="module")
def small():
    X, y = table_and_labels(False, 40)
    return X[list(X.columns[::-1])], y


def test_outputs_are_in_the_order_of_the_table(small):
    X, y = small
    study = marginsieve.study(X, y, methods="fisher", **(PLAIN | {"without": ["references", "substitutes"]}))
    predictions = study.predictions
    assert predictions["row"].tolist() == list(range(1, len(X) + 1))
    assert predictions["label"].tolist() == y.tolist()
    by_row = study.suspects.set_index("row")["label"]
    assert by_row.sort_index().tolist() == y.tolist()
    assert study.model.feature_names_in_.tolist() == X.columns.tolist()
    chosen = study.features.query("selected")["name"]
    assert set(study.model.get_feature_names_out()) == set(chosen)
    assert study.model.transform(X).columns.tolist() == [name for name in X.columns if name in set(chosen)]
    assert study.model.path_.order.tolist() == [X.columns.get_loc(name) for name in study.features["name"]]


@pytest.mark.parametrize("name", ["fisher", "two_views", "kp_svm", "symon"])
def test_model_in_the_order_of_the_table_is_the_same_model(small, name, tmp_path):
    X, y = small
    study = marginsieve.study(X, y, methods=name, **PLAIN)
    canonical, values = study.main.selector, study.model.decision_function(X)
    np.testing.assert_allclose(values, canonical.decision_function(X[canonical.feature_names_in_]), rtol=0, atol=1e-12)
    names = dict(zip(canonical.feature_names_in_, canonical.scores_, strict=True))
    assert [names[name] for name in X.columns] == study.model.scores_.tolist()
    marginsieve.save(study.model, tmp_path / "model.marginsieve")
    np.testing.assert_array_equal(marginsieve.load(tmp_path / "model.marginsieve").decision_function(X), values)
    if canonical.path_.trials is not None:
        best = int(canonical.path_.trials.best[-1])
        there = canonical.feature_names_in_[canonical.path_.trials.support(best)]
        assert set(X.columns[study.model.path_.trials.support(best)]) == set(there)


def test_rows_come_by_id_else_by_their_cells(small):
    X, y = small
    named = from_frame(X.assign(t=y, sample_id=[f"s{k:02}" for k in range(len(X))][::-1]), "t")
    assert named.in_canonical_order(0).numbers.tolist() == list(range(len(X)))[::-1]
    shuffled = from_frame(X.assign(t=y).sample(frac=1.0, random_state=1), "t")  # whose index is numbers out of order
    plain = from_frame(X.assign(t=y), "t")
    for seed in (0, 1):
        first, second = plain.in_canonical_order(seed), shuffled.in_canonical_order(seed)
        pd.testing.assert_frame_equal(first.X, second.X)
        assert first.y.tolist() == second.y.tolist()
        pd.testing.assert_frame_equal(first.X, X[sorted(X.columns)].iloc[first.numbers].reset_index(drop=True))
    assert plain.in_canonical_order(0).numbers.tolist() != plain.in_canonical_order(1).numbers.tolist()


def test_equal_rows_come_by_their_outcome_and_zeros_and_gaps_are_alike():
    X = pd.DataFrame({"a": [0.0, -0.0, np.nan, -np.nan], "b": [1.0, 1.0, 2.0, 2.0]})
    data = from_frame(pd.concat([X, X + 3.0]).assign(t=list("yxyxyxyx")), "t", ids=()).in_canonical_order(0)
    labels = data.y.to_numpy().reshape(-1, 2)
    assert (labels == ["x", "y"]).all()


def test_unnamed_columns_keep_their_place_and_groups_are_numbered_by_their_rows(small):
    X, y = small
    data = from_arrays(X.to_numpy(), y, groups=[f"g{k % 7}" for k in range(len(X))]).in_canonical_order(0)
    assert data.X.columns.tolist() == [f"x{j}" for j in range(X.shape[1])]
    renamed = from_arrays(X.to_numpy(), y, groups=[-(k % 7) for k in range(len(X))]).in_canonical_order(0)
    outcome = marginsieve.outcomes.Classes()
    codes = [each.table(outcome).target.groups for each in (data, renamed)]
    assert codes[0].tolist() == codes[1].tolist()
    assert codes[0][0] == 0
    assert np.unique(codes[0], return_index=True)[1].tolist() == sorted(np.unique(codes[0], return_index=True)[1])


def test_suspects_of_the_command_do_not_depend_on_order(small):
    X, y = small
    frame = X.assign(outcome=y)
    other = frame.sample(frac=1.0, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, _ = judge_table(frame, "outcome", random_state=0)
        second, _ = judge_table(other.reset_index(drop=True), "outcome", random_state=0)
    back = 1 + other.index.to_numpy()[second["row"] - 1]
    pd.testing.assert_series_equal(
        first.set_index("row")["suspicion"].sort_index(),
        second.set_index(back)["suspicion"].sort_index(),
        check_names=False,
    )
