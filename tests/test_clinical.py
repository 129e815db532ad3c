"""The clinical kernel against its definition, cell by cell."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import drop_one
from sklearn.svm import SVC

from marginsieve import recipes
from marginsieve.algebra import TallTentGram, TentGram, tents
from marginsieve.data.table import Schema
from marginsieve.errors import InputError
from marginsieve.kernels import Clinical, clinical_kernel
from marginsieve.machines import CSVC

LEVELS = ["low", "mid", "high"]


def table(seed, rows):
    """Real, boolean, nominal, ordinal columns, some cells missing."""
    rng = np.random.default_rng(seed)
    stage = pd.Categorical(rng.choice(LEVELS, rows), categories=LEVELS, ordered=True)
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 10, rows),
            "smoker": rng.random(rows) < 0.5,
            "site": pd.Series(rng.choice(["a", "b", "c"], rows), dtype="str"),
            "stage": stage,
            "gene": rng.normal(size=rows),
        }
    )
    for name in ("age", "site", "stage"):
        frame.loc[rng.random(rows) < 0.2, name] = None
    return frame


def slow(A, B):
    """Cell by cell; ranges from B."""
    out = np.zeros((len(A), len(B)))
    for name in B.columns:
        kind = "nominal" if name in ("site", "smoker") else "real"
        a, b = A[name], B[name]
        if name == "stage":
            a, b = (pd.Series([LEVELS.index(v) if isinstance(v, str) else np.nan for v in part]) for part in (a, b))
        observed = b.dropna()
        for i, u in enumerate(a):
            for k, v in enumerate(b):
                if pd.isna(u) or pd.isna(v):
                    continue
                if kind == "nominal":
                    out[i, k] += u == v
                else:
                    low, high = observed.min(), observed.max()
                    u2 = min(max(u, low), high)
                    out[i, k] += 1.0 if high == low else 1 - abs(u2 - v) / (high - low)
    return out / B.shape[1]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 15))
def test_it_is_its_definition(seed, rows):
    train, test = table(seed, rows), table(seed + 1, 6)
    there = train.columns[train.notna().any()]
    train, test = train[there], test[there]
    np.testing.assert_allclose(clinical_kernel(train), slow(train, train), atol=1e-12)
    np.testing.assert_allclose(clinical_kernel(test, train), slow(test, train), atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_it_is_symmetric_and_positive_semi_definite_with_missing_cells_too(seed):
    K = clinical_kernel(table(seed, 40))
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert K.max() <= 1.0


def test_other_libraries_tables_are_read_alike():
    frame = table(3, 20)
    other = pl.DataFrame(
        {
            **{name: pl.Series(frame[name].tolist(), strict=False) for name in ("age", "smoker", "gene")},
            "site": pl.Series([v if isinstance(v, str) else None for v in frame["site"]]),
            "stage": pl.Series([v if isinstance(v, str) else None for v in frame["stage"]], dtype=pl.Enum(LEVELS)),
        }
    ).with_columns(pl.col("age").fill_nan(None))
    other = other.select(list(frame.columns))
    np.testing.assert_allclose(clinical_kernel(other, kinds={"stage": "ordinal"}), clinical_kernel(frame), atol=1e-12)


def test_boolean_columns_take_part():
    """A column that is dropped and still divided by would leave K(x, x) below 1."""
    frame = pd.DataFrame({"a": [True, False, True], "b": [0.0, 0.5, 1.0]})
    K = clinical_kernel(frame)
    np.testing.assert_allclose(np.diag(K), 1.0)
    np.testing.assert_allclose(K[0], [1.0, 0.25, 0.5])


def test_values_outside_the_range_are_clipped_and_new_categories_are_like_nothing():
    train = pd.DataFrame({"x": [0.0, 1.0], "c": ["a", "b"]})
    test = pd.DataFrame({"x": [5.0, -3.0], "c": ["z", "a"]})
    np.testing.assert_allclose(clinical_kernel(test, train), [[0.0, 0.5], [1.0, 0.0]])
    always, never = pd.DataFrame({"b": [True, True]}), pd.DataFrame({"b": [False]})
    np.testing.assert_array_equal(clinical_kernel(never, always), [[0.0, 0.0]])


def test_constant_columns_are_alike_where_both_are_observed():
    X = np.array([[2.0, 0.0], [2.0, 1.0], [np.nan, 1.0]])
    np.testing.assert_allclose(clinical_kernel(X), [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 0.5]])


def test_columns_without_a_cell_are_named_and_left_out():
    X = np.column_stack([np.full(3, np.nan), [0.0, 1.0, 2.0]])
    with pytest.warns(UserWarning, match="no cell of 'x0' is observed: left out of the clinical kernel"):
        np.testing.assert_allclose(clinical_kernel(X), clinical_kernel(X[:, 1:]))
    with pytest.raises(InputError, match="every cell of the training table is missing"):
        clinical_kernel(X[:, :1])


def test_scikit_learns_svc_takes_it(rng):
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 4)) + 2.0 * y[:, None]
    one = SVC(kernel=clinical_kernel).fit(X[:30], y[:30])
    two = SVC(kernel="precomputed").fit(clinical_kernel(X[:30]), y[:30])
    np.testing.assert_allclose(one.decision_function(X[30:]), two.decision_function(clinical_kernel(X[30:], X[:30])))
    assert one.score(X[30:], y[30:]) > 0.8


def test_frames_are_matched_by_name():
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 3.0]})
    with pytest.raises(InputError, match="A has the column 'b' where B has 'a'"):
        clinical_kernel(frame[["b", "a"]], frame)


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="A has 2 columns and B has 3"):
        clinical_kernel(np.zeros((2, 2)), np.ones((2, 3)))
    from scipy import sparse

    with pytest.raises(InputError, match="needs a dense table"):
        clinical_kernel(sparse.eye_array(3).tocsr())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 30))
def test_running_sums_are_the_double_sum(seed, m):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([rng.normal(size=(m, 3)), rng.integers(0, 4, (m, 2)), np.round(rng.normal(size=m))])
    Z[rng.random(Z.shape) < 0.2] = np.nan
    nominal = np.array([False, False, False, True, True, False])
    seen = ~np.isnan(Z).all(axis=0)
    Z, nominal = Z[:, seen], nominal[seen]
    if not Z.shape[1]:
        return
    training = tents.Tents.from_codes(Z, np.where(nominal, "nominal", "real"))
    c, d = rng.normal(size=(2, m))
    plain = [tents.sum_tents(row[None], np.ones(1), row[None]) for row in training.U]
    features = np.arange(Z.shape[1])
    np.testing.assert_allclose(training.quadratics(features, c, d), [c @ K @ d for K in plain], atol=1e-10)
    np.testing.assert_allclose(training.sum_observed(features, c), [c @ np.diag(K) for K in plain], atol=1e-12)
    np.testing.assert_allclose(training.products(features, c), [K @ c for K in plain], atol=1e-12)
    other = training.U[:, ::-1].copy()
    np.testing.assert_allclose(training.products(features, c, other), [(K @ c)[::-1] for K in plain], atol=1e-12)


# -- as the kernel of the selector ---------------------------------------------------------------------------------


@pytest.fixture
def cohort():
    """80 rows: 'age', 'smoker' and 'site' tell the classes apart, 30 genes and a stage do not; cells are missing."""
    rng = np.random.default_rng(0)
    y = np.repeat(["case", "control"], [30, 50])
    case = y == "case"
    frame = pd.DataFrame(rng.normal(size=(80, 30)), columns=[f"g{j:02d}" for j in range(30)])
    frame["age"] = 60 + 8 * rng.normal(size=80) + 12 * case
    frame["smoker"] = rng.random(80) < np.where(case, 0.85, 0.2)
    frame["site"] = pd.Series(np.where(rng.random(80) < np.where(case, 0.8, 0.15), "b", rng.choice(["a", "c"], 80)))
    frame["stage"] = pd.Categorical(rng.choice(LEVELS, 80), categories=LEVELS, ordered=True)
    frame["empty"] = np.nan
    for name in ("age", "site", "g03"):
        frame.loc[rng.random(80) < 0.1, name] = None
    return frame, y


def test_columns_of_all_kinds_are_selected_with_missing_cells(cohort):
    X, y = cohort
    made = recipes.clinical_rfe(C=0.3, n_features_to_select=3, random_state=0).fit(X, y)
    assert set(made.get_feature_names_out()) == {"age", "smoker", "site"}
    assert made.constant_ == ["empty"]
    assert made.ranking_[list(X.columns).index("empty")] == X.shape[1]
    assert made.score(X, y) > 0.75
    assert list(made.transform(X).columns) == ["age", "smoker", "site"]
    strange = X.iloc[:4].assign(site="elsewhere", age=[None, 500.0, -3.0, 60.0])
    assert np.isfinite(made.decision_function(strange)).all()


def test_the_order_of_categories_does_not_matter(cohort):
    X, y = cohort
    renamed = X.assign(site=X["site"].map({"a": "z", "b": "m", "c": "k"}))
    one, two = (recipes.clinical_rfe(n_features_to_select=3, threshold="margin").fit(part, y) for part in (X, renamed))
    np.testing.assert_array_equal(one.ranking_, two.ranking_)


def test_ranges_come_from_the_training_rows_alone(cohort):
    """A test row far out is clipped: what else is in the test table changes nothing."""
    X, y = cohort
    made = recipes.clinical_rfe(n_features_to_select=5, threshold="margin").fit(X[:60], y[:60])
    far = X[60:].assign(age=1e6)
    edge = X[60:].assign(age=X["age"][:60].max())
    np.testing.assert_allclose(made.decision_function(far), made.decision_function(edge))


@pytest.mark.parametrize("name", ["kp_cssvm", "kp_svdd", "svm_bfe", "svdd_rfe", "svm_rfe"])
def test_other_recipes_take_the_kernel(name, cohort):
    X, y = cohort
    settings = {"kernel": "clinical", "n_features_to_select": 3, "threshold": "margin", "random_state": 0}
    settings |= {"held_out": 0.3} if name == "svm_bfe" else {}  # 34 columns fit 80 training rows without an error
    made = recipes.get(name)(**settings).fit(X, y)
    assert made.n_features_ == 3
    if name.startswith(("kp_cssvm", "svm")):
        assert len({"age", "smoker", "site"} & set(made.get_feature_names_out())) >= 2


def test_kinds_are_the_users(cohort):
    X, y = cohort
    X = X.assign(grade=np.arange(80) % 3)
    given = {"n_features_to_select": 3, "threshold": "margin"}
    nominal = recipes.clinical_rfe(kinds={"grade": "nominal"}, **given).fit(X, y)
    real = recipes.clinical_rfe(**given).fit(X, y)
    place = list(X.columns).index("grade")
    assert nominal.columns_.kind[place] == "nominal"
    assert real.columns_.kind[place] == "real"


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"prefilter": ("fast", 5)}, "prefilter is Fast.. and columns hold categories .'site'"),
        ({"sampler": "smote"}, "sampler is Smote.. and columns hold categories"),
        ({"criterion": "fisher", "search": "top_k"}, "criterion is Fisher.. and columns hold categories"),
    ],
)
def test_what_counts_with_numbers_refuses_categories_and_gaps(told, sentence, cohort):
    X, y = cohort
    made = recipes.clinical_rfe(n_features_to_select=3, threshold="margin").set_params(**told)
    with pytest.raises(InputError, match=sentence):
        made.fit(X, y)
    complete = X.drop(columns=["site", "empty"])
    if "sampler" in told:
        with pytest.raises(InputError, match=r"sampler is Smote\(\) and cells are missing in 'g03', 'age'"):
            made.fit(complete, y)
    else:  # a filter leaves them out
        assert made.fit(complete, y).n_features_ == 3


def test_a_filter_for_both_kinds_takes_the_table(cohort):
    X, y = cohort
    made = recipes.clinical_rfe(n_features_to_select=3, threshold="margin").set_params(
        criterion="mixed_test", search="top_k"
    )
    assert set(made.fit(X, y).get_feature_names_out()) == {"age", "smoker", "site"}
    few = recipes.clinical_rfe(n_features_to_select=3, threshold="margin", prefilter=("mixed_test", 3)).fit(X, y)
    assert set(few.get_feature_names_out()) == {"age", "smoker", "site"}


def test_other_kernels_still_refuse_missing_cells(cohort):
    X, y = cohort
    with pytest.raises(InputError, match="missing"):
        recipes.svm_rfe().fit(X[["age", "g00"]], y)


def test_nested_scores_of_mixed_tables(cohort):
    from marginsieve.engine import nested_cv

    X, y = cohort
    scores = nested_cv(recipes.clinical_rfe(n_features_to_select=3, random_state=0), X, y, cv=4, n_repeats=1).scores()
    assert scores.value["auc"] > 0.85


# -- many rows ------------------------------------------------------------------------------------------------------


def both_grams(monkeypatch, rows=120):
    monkeypatch.setattr("marginsieve.algebra.tents.FEW_ROWS", 10)
    data = table(3, rows)
    rows_of, weight, live = Schema.from_table(data).table(data), np.linspace(0.5, 2.0, 5), np.array([0, 1, 2, 4])
    tall, plain = (gram.build(Clinical(), rows_of, weight, live) for gram in (TallTentGram, TentGram))
    return tall, plain, Schema.from_table(data).encode(table(4, 9))


def test_a_tall_gram_is_the_plain_one(monkeypatch):
    tall, plain, Z = both_grams(monkeypatch)
    c, some = np.random.default_rng(0).normal(size=120), np.array([3, 40, 77])

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)

    pairs = [(tall, plain), (tall.without(np.array([1])), plain.without(np.array([1])))]
    pairs += [(tall.without(np.array([1])).without(np.array([0])), plain.without(np.array([0, 1])))]
    pairs += [(tall.rescale(np.arange(1.0, 6.0)), plain.rescale(np.arange(1.0, 6.0)))]
    pairs += [(tall.only(some), plain.only(some))]
    for ours, theirs in pairs:
        K, v = theirs.matrix(), c[: ours.table.shape[0]]
        same(ours.matrix(), K)
        same(ours.apply(v), K @ v)
        same(ours.apply(v, Z), theirs.matrix(Z) @ v)
        same(theirs.apply(v, Z), theirs.matrix(Z) @ v)
        same(ours.diagonal(), K.diagonal())
        same(ours.diagonal(Z), theirs.diagonal(Z))
        rows = np.arange(len(v))[::2]
        same(ours.submatrix(rows), K[np.ix_(rows, rows)])
        same(ours.drop_one_change(v), theirs.drop_one_change(v))
        same(drop_one(ours, v, Z), drop_one(theirs, v, Z))


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("part", [5, 300])
def test_a_machine_by_parts_is_that_of_the_whole_matrix(monkeypatch, C, part):
    monkeypatch.setattr("marginsieve.solvers.smo.PART", part)
    tall, plain, _ = both_grams(monkeypatch)
    rng = np.random.default_rng(1)
    y, cost = np.where(rng.random(120) < 0.3, 1.0, -1.0), rng.uniform(0.2, 2.0, 120)
    cost[:5] = 0.0
    machine = CSVC(C=C, tol=1e-8)
    ours, theirs = machine.solve(tall, y, cost), machine.solve(plain, y, cost)
    assert ours.residual <= 1e-8
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
    K, c = plain.matrix(), ours.coef
    lo, hi = np.where(y > 0, 0.0, -C * cost), np.where(y > 0, C * cost, 0.0)
    assert ((lo <= c) & (c <= hi)).all()
    assert abs(c.sum()) < 1e-9 * max(1.0, np.abs(c).sum())
    E = y - K @ c
    assert max(E[c < hi].max() - E[c > lo].min(), 0.0) <= 1e-7
    np.testing.assert_allclose(ours.slack, theirs.slack, atol=1e-6)
    less = tall.without(np.array([4])), plain.without(np.array([4]))
    warm = machine.solve(less[0], y, cost, ours)
    assert warm.objective == pytest.approx(machine.solve(less[1], y, cost).objective, rel=1e-9)


def test_no_clinical_matrix_is_made_of_many_rows(monkeypatch):
    def refuse(*_):
        raise AssertionError("a matrix of rows by rows")

    data = table(5, 700)
    y = (data["gene"] + np.random.default_rng(0).normal(size=700) > 1).astype(int)
    monkeypatch.setattr(TallTentGram, "weighted_sum", refuse)
    tall = recipes.clinical_rfe(random_state=0).fit(data, y)
    monkeypatch.undo()
    monkeypatch.setattr("marginsieve.kernels.clinical.FEW_COLUMNS", 0)
    plain = recipes.clinical_rfe(random_state=0).fit(data, y)
    np.testing.assert_array_equal(tall.ranking_, plain.ranking_)
    np.testing.assert_allclose(tall.decision_function(data), plain.decision_function(data), atol=1e-4)
