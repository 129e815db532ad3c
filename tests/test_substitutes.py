"""What could be measured instead: substitutes, other lists, the cheapest list."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats.contingency import association
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import marginsieve
from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.data.association import most_alike
from marginsieve.engine import nested_cv
from marginsieve.errors import InputError
from marginsieve.outcomes import Classes
from marginsieve.studies.analyses.substitutes import find_substitutes, predict_on
from marginsieve.studies.study_data import column_costs, from_arrays

QUICK = {"n_repeats": 1, "without": ("suspects", "references"), "n_permutations": 24}


def table_of(X, y):
    return from_arrays(X, y, None, [], ()).table(Classes())


def unadjusted(v, d, m):
    """The squared association before what chance gives was taken off; d is the larger number of dimensions."""
    e = d / (m - 1)
    return v * v * (1 - e) + e


def test_likeness_is_correlation_ratio_and_cramers_v():
    rng = np.random.default_rng(0)
    m = 90
    a = rng.normal(size=m)
    level = rng.integers(3, size=m)
    X = pd.DataFrame(
        {
            "a": a,
            "b": -a + rng.normal(size=m),
            "c": pd.Categorical(np.where(rng.random(m) < 0.3, rng.integers(4, size=m), level)),
            "d": pd.Categorical(level),
            "e": level + rng.normal(size=m),
            "f": np.ones(m),
        }
    )
    table = table_of(X, np.arange(m) % 2).rows.table
    usable = np.ones(6, dtype=bool)
    (first, r), (second, v) = most_alike(table, np.array([0, 3]), usable, 6)
    by_number, by_level = dict(zip(first, r, strict=True)), dict(zip(second, v, strict=True))
    assert by_number[1] == pytest.approx(np.corrcoef(X["a"], X["b"])[0, 1])
    assert by_number[1] < 0
    between = sum(np.sum(level == k) * (X["e"][level == k].mean() - X["e"].mean()) ** 2 for k in range(3))
    assert unadjusted(by_level[4], 2, m) == pytest.approx(between / ((X["e"] - X["e"].mean()) ** 2).sum())
    table_cd = pd.crosstab(X["c"], X["d"]).to_numpy()
    assert unadjusted(by_level[2], 3, m) == pytest.approx(association(table_cd, method="cramer") ** 2)
    assert by_number[5] == 0.0
    assert by_level[5] == 0.0
    assert 0 not in by_number


def test_columns_come_in_blocks(monkeypatch):
    X = np.random.default_rng(1).normal(size=(30, 40))
    table = table_of(pd.DataFrame(X).add_prefix("g"), np.arange(30) % 2).rows.table
    usable = np.ones(40, dtype=bool)
    usable[[3, 9]] = False
    whole = most_alike(table, np.array([0, 7]), usable, 5)
    monkeypatch.setattr("marginsieve.data.association.BLOCK", 30 * 7)
    for (a, r), (b, s) in zip(whole, most_alike(table, np.array([0, 7]), usable, 5), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(r, s)
        assert not {3, 9} & set(a)


def test_values_are_those_of_a_machine_on_these_columns():
    cohort = make_cohort(90, 12, n_relevant=3, effect=1.0, prevalence=0.4, random_state=0)
    table = table_of(cohort.X, cohort.y)
    train, test, columns = np.arange(60), np.arange(60, 90), np.array([2, 5, 9])
    value = np.asarray(predict_on(table.rows.take(train), columns, table.rows, test)["decision"])
    Z = cohort.X.to_numpy()[:, columns]
    scaler = StandardScaler().fit(Z[train])
    y = table.target.codes == table.target.positive
    machine = SVC(kernel="linear", class_weight="balanced", tol=1e-8).fit(scaler.transform(Z[train]), y[train])
    expected = machine.decision_function(scaler.transform(Z[test]))
    np.testing.assert_allclose(value, expected, atol=1e-4)


@pytest.fixture(scope="module")
def planted():
    """Ten relevant columns, a copy of each; the list has room for one of each pair at most."""
    cohort = make_cohort(220, 120, n_relevant=6, n_redundant=6, effect=1.1, prevalence=0.4, random_state=3)
    pairs = cohort.truth.redundant
    cost = {name: 50.0 for name in cohort.truth.relevant} | dict.fromkeys(pairs, 1.0)
    study = marginsieve.study(
        cohort.X, cohort.y, methods="fisher", n_features_to_select=6, alternatives=4, feature_costs=cost, **QUICK
    )
    return cohort, study


def test_planted_equivalents_are_found(planted):
    cohort, study = planted
    partner = cohort.truth.redundant | {b: a for a, b in cohort.truth.redundant.items()}
    listed = study.model.get_feature_names_out()
    alone = [name for name in listed if name in partner and partner[name] not in listed]
    frame = study.substitutes
    same = frame[frame["equivalent"]]
    assert len(alone) >= 2
    for name in alone:
        assert partner[name] in set(same.loc[same["feature"] == name, "substitute"])
    assert not set(frame["substitute"]) & set(listed)
    assert (frame["low"] <= frame["change"]).all()
    assert (frame["change"] <= frame["high"]).all()
    row = study.features.set_index("name").loc[alone[0]]
    assert partner[alone[0]] in row["substitutes"]
    assert "substitute outside it" in " ".join(study.result["answer"]["sentences"])
    assert partner[alone[0]] in study.html()


def test_what_loses_more_than_the_margin_is_rarely_called_equivalent():
    claims = tried = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.arange(160) % 2
        a = rng.normal(size=160) + 1.5 * y
        X = pd.DataFrame({"a": a, "b": 0.7 * a + 0.9 * rng.normal(size=160)})  # AUC .86 and .72
        X = X.join(pd.DataFrame(rng.normal(size=(160, 8))).add_prefix("n"))
        nested = nested_cv(recipes.fisher(n_features_to_select=1), X, y, n_repeats=1)
        frame = find_substitutes(table_of(X, y), nested, np.array([0]), None).query("substitute == 'b'")
        tried, claims = tried + len(frame), claims + int(frame["equivalent"].sum())
    assert tried >= 15
    assert claims == 0


def test_other_lists_differ_as_they_say(planted):
    cohort, study = planted
    frame, listed = study.alternatives, set(study.model.get_feature_names_out())
    assert len(frame) == 4
    assert (frame["change"].diff().dropna() <= 0).all()
    for row in frame.itertuples():
        assert len(row.features) == 6
        assert row.shared == len(set(row.features) & listed)
        assert row.as_good == (row.low > -0.02)
        if row.without == "the whole list":
            assert row.shared == 0
        else:
            assert row.without in listed
            assert row.without not in row.features
            near = cohort.X.columns[np.abs(cohort.X.corrwith(cohort.X[row.without])) >= 0.9]
            assert not set(near) & set(row.features)


def test_the_cheapest_list_is_cheaper_and_as_good(planted):
    cohort, study = planted
    cheap, paid = study.cheapest, study.features.set_index("name")["cost"]
    assert cheap.cost == paid[list(cheap.features)].sum()
    assert cheap.main_cost == paid[study.features["selected"].values].sum()
    assert cheap.cost < 0.3 * cheap.main_cost
    assert cheap.change.high["auc"] > 0
    assert cheap.change.value["auc"] > -0.03
    assert "instead of" in " ".join(study.result["answer"]["sentences"])
    assert set(cheap.features) <= set(cohort.X.columns)


def test_workers_and_kept_columns():
    cohort = make_cohort(100, 60, n_relevant=4, n_redundant=4, effect=1.2, prevalence=0.4, random_state=5)
    keep = [name for name in cohort.X if name not in cohort.truth.features][:1]
    settings = {"methods": "two_views", "n_features_to_select": 5, "alternatives": 3, "keep": keep, **QUICK}
    costs = {"feature_costs": dict.fromkeys(cohort.X.columns[::2], 7)}
    one, two = (marginsieve.study(cohort.X, cohort.y, n_jobs=jobs, **settings, **costs) for jobs in (1, 2))
    for name in ("substitutes", "alternatives"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name))
    assert one.cheapest.features == two.cheapest.features
    assert keep[0] in one.cheapest.features
    assert all(keep[0] in features for features in one.alternatives["features"])
    assert keep[0] not in set(one.substitutes["feature"])


def test_categories_gaps_and_three_classes():
    cohort = make_cohort(90, 30, n_relevant=3, n_categorical=4, n_categorical_relevant=2, missing=0.05, random_state=0)
    study = marginsieve.study(
        cohort.X, cohort.y, methods="clinical_rfe", n_features_to_select=4, alternatives=2, feature_costs={}, **QUICK
    )
    assert len(study.alternatives) == 2
    assert np.isfinite(study.alternatives["change"]).all()
    assert study.cheapest.main_cost == 4.0
    X, y = np.random.default_rng(0).normal(size=(60, 20)), np.repeat(["a", "b", "c"], 20)
    three = marginsieve.study(X, y, methods="fisher", alternatives=2, feature_costs={"x1": 2.0}, **QUICK)
    assert not len(three.substitutes)
    assert not len(three.alternatives)
    assert three.cheapest is None
    assert three.result["analyses"]["substitutes"] is None
    assert three.result["analyses"]["costs"] is None


@pytest.mark.parametrize(
    ("costs", "named"),
    [({"nowhere": 1.0}, "nowhere"), ({"a": -1.0}, "-1"), ({"a": float("nan")}, "nan"), ({"a": "7"}, "'7'")],
)
def test_costs_that_make_no_sense_are_refused(costs, named):
    with pytest.raises(InputError, match=named):
        column_costs(costs, ["a", "b"])
    with pytest.raises(InputError, match="feature_costs"):
        marginsieve.study(np.eye(20), np.arange(20) % 2, feature_costs=3)
    assert column_costs({"a": 2}, ["a", "b"]).tolist() == [2.0, 1.0]


def test_nothing_is_listed_where_it_is_not_wanted():
    cohort = make_cohort(60, 12, n_relevant=2, effect=1.5, random_state=0)
    without = (*QUICK["without"], "substitutes")
    settings = {**QUICK, "without": without, "alternatives": 0, "cv": 3}
    study = marginsieve.study(cohort.X, cohort.y, methods="fisher", **settings)
    assert study.result["analyses"]["substitutes"] is None
    assert not len(study.substitutes)
    assert not len(study.alternatives)
    assert study.cheapest is None
    assert "cost" not in study.features
    assert "measured instead" not in study.html()
