"""A budget of features as a search: what is found is what is fitted, said with its proof; samples left out."""

import time

import numpy as np
import pandas as pd
import pytest

from marginsieve import recipes
from marginsieve.errors import InputError

FAST = {"solver": "fast", "shakes": 2, "random_state": 0}


def objective(made, X, y, C, ramp=True):
    """F from the weights of a fitted selector alone."""
    solution = made.model_.solutions[0]
    sign = np.where(y == made.positive_, 1.0, -1.0)
    h = np.maximum(0.0, 1.0 - sign * made.model_.decision(np.asarray(X))[:, 0])
    return np.abs(solution.expanded).sum() + C * (np.minimum(2.0, h) if ramp else h).sum()


@pytest.mark.parametrize("name", ["fs_svm", "ramp_fs"])
@pytest.mark.parametrize("solver", ["fast", "daks", "exact"])
def test_what_is_found_is_what_is_fitted(name, solver, blobs):
    X, y = blobs[0][::2, :7], blobs[1][::2].copy()  # too many cells for a proof without "exact"
    y[-1] *= -1  # a row that the ramp leaves out
    made = recipes.get(name)(budget=2, C=0.5, solver=solver, random_state=0).fit(X, y)
    assert made.n_features_ <= 2
    assert made.model_.solutions[0].slack[-1] > 2.0
    assert made.objective_ == pytest.approx(objective(made, X, y, 0.5, name == "ramp_fs"), rel=1e-9)
    assert made.path_.stop.size == made.n_features_
    assert made.path_.stop.to_dict()["objective"] == pytest.approx(made.objective_)
    if solver == "exact":
        assert made.status_ == "optimal"
        assert 0.0 <= made.gap_ <= 1e-4
        assert made.bound_ <= made.objective_
    else:
        assert made.status_ == "heuristic"
        assert np.isnan(made.bound_)
        assert np.isnan(made.gap_)
        proved = recipes.get(name)(budget=2, C=0.5, solver="exact", random_state=0).fit(X, y)
        assert made.objective_ == pytest.approx(proved.bound_, rel=1e-3)


def test_solvers_agree_and_the_objective_never_rises_with_the_budget(blobs):
    X, y = blobs
    at = [recipes.ramp_fs(budget=b, **FAST).fit(X, y).objective_ for b in range(1, 6)]
    assert (np.diff(at) <= 1e-9).all()
    exact = [recipes.ramp_fs(budget=b, solver="exact", random_state=0).fit(X, y).bound_ for b in (1, 2, 3)]
    np.testing.assert_allclose(at[:3], exact, rtol=1e-3)


def test_costs_bound_what_is_spent(blobs):
    X, y = blobs
    costs = {"x0": 10.0, "x1": 2.0}
    made = recipes.ramp_fs(budget=4, feature_costs=costs, **FAST).fit(X, y)
    assert not made.support_[0]
    spent = sum(costs.get(f"x{j}", 1.0) for j in np.flatnonzero(made.support_))
    assert spent <= 4.0
    assert made.path_.stop.details["spent"] == pytest.approx(spent)
    listed = [10.0, 2.0, *[1.0] * 10]
    same = recipes.ramp_fs(budget=4, feature_costs=listed, **FAST).fit(X, y)
    np.testing.assert_array_equal(made.support_, same.support_)


def test_features_to_keep_are_paid_for_first(blobs):
    X, y = blobs
    made = recipes.ramp_fs(budget=3, keep=["x11"], **FAST).fit(X, y)
    assert made.support_[11]
    assert made.n_features_ <= 3
    with pytest.raises(InputError, match="budget is 1, less than the 2 that the features to keep cost"):
        recipes.ramp_fs(budget=1, keep=["x11", "x10"], **FAST).fit(X, y)


def test_a_category_counts_once():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    level = np.where(rng.random(80) < 0.9, np.where(y > 0, "a", "b"), "c")
    X = pd.DataFrame({"level": level, **{f"n{k}": rng.normal(size=80) for k in range(6)}})
    made = recipes.ramp_fs(budget=1, **FAST).fit(X, y)
    assert list(made.get_feature_names_out()) == ["level"]
    assert made.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"budget": 0}, "budget is 0; it must be a positive number"),
        ({"solver": "quick"}, "solver is 'quick'; it must be one of 'auto', 'daks', 'exact', 'fast'"),
        ({"time_limit": -1}, "time_limit is -1; it must be a positive number"),
        ({"shakes": -1}, "shakes is -1; it must be a whole number of 0 or more"),
        ({"feature_costs": {"age": 1.0}}, "feature_costs names 'age', which the table does not have"),
        ({"feature_costs": [1.0, 2.0]}, "feature_costs is 2 numbers; it must name columns .* or have 12 numbers"),
        ({"feature_costs": {"x1": "dear"}}, "feature_costs of 'x1' is 'dear'; it must be a number of 0 or more"),
        ({"feature_costs": 3.0}, "feature_costs is 3.0; it must name columns"),
        ({"budget": 0.5}, "budget is 0.5 and no feature costs so little: the cheapest costs 1"),
    ],
)
def test_mistakes_are_named(settings, told, blobs):
    with pytest.raises(InputError, match=told):
        recipes.ramp_fs(**{"solver": "fast", **settings}).fit(*blobs)


def test_more_classes_are_refused(blobs):
    X, _ = blobs
    with pytest.raises(InputError, match="y has 3 classes; use two, or svm_l1"):
        recipes.ramp_fs(**FAST).fit(X, np.arange(40) % 3)


def test_a_price_at_which_nothing_pays_is_told(blobs):
    X, y = blobs
    with pytest.warns(UserWarning, match="no feature has a weight in the best solution known at this C .* raise C"):
        made = recipes.ramp_fs(C=1e-4, **FAST).fit(X, y)
    assert made.n_features_ == 1
    assert made.objective_ == pytest.approx(2e-4 * 15)


def test_a_result_that_the_clock_cut_says_so(blobs):
    made = recipes.ramp_fs(budget=2, time_limit=1e-9, random_state=0).fit(*blobs)
    assert made.status_ == "limit"
    exact = recipes.ramp_fs(budget=2, solver="exact", time_limit=1e-9, random_state=0).fit(*blobs)
    assert exact.status_ in ("limit", "optimal")
    assert exact.bound_ <= exact.objective_


@pytest.mark.long
def test_a_limit_of_seconds_is_kept_on_a_wide_table():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3000)), np.arange(300) % 2
    since = time.perf_counter()
    exact = recipes.ramp_fs(budget=5, solver="exact", C=1, time_limit=5, random_state=0).fit(X, y)
    assert time.perf_counter() - since < 8.0
    assert exact.status_ == "limit"
    assert 0.0 < exact.bound_ < exact.objective_
    assert exact.n_features_ <= 5


@pytest.mark.parametrize("name", ["fs_svm", "ramp_fs"])
@pytest.mark.parametrize("solver", ["fast", "daks"])
def test_tiny_tables_are_solved_to_the_optimum(name, solver, blobs):
    X, y = blobs[0][::3, :5], blobs[1][::3]
    selector = recipes.get(name)(budget=2, C=2.0, solver=solver, random_state=0).fit(X, y)
    proved = recipes.get(name)(budget=2, C=2.0, solver="exact", random_state=0).fit(X, y)
    assert selector.status_ == "optimal"
    assert selector.gap_ <= 1e-6
    assert selector.objective_ <= proved.objective_ * (1 + 1e-6)


def test_linear_programs_have_a_proof_and_others_none(blobs):
    X, y = blobs
    made = recipes.svm_l1(n_features_to_select=3, threshold="margin").fit(X, y)
    assert made.status_ == "optimal"
    assert made.gap_ == pytest.approx(0.0, abs=1e-6)
    assert not hasattr(made, "suspects_")
    assert recipes.fsv(n_features_to_select=3, threshold="margin").fit(X, y).status_ == "heuristic"
    with pytest.raises(AttributeError, match="has no gap_: CSVC is not a linear program"):
        _ = recipes.svm_rfe(n_features_to_select=3, threshold="margin").fit(X, y).gap_
    with pytest.raises(AttributeError, match="has no status_: it is not fitted"):
        _ = recipes.svm_l1().status_


@pytest.mark.parametrize("unit", [1e6, 1e-6, 1e11])
def test_units_do_not_matter(unit):
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(18, 6)), np.where(rng.random(18) < 0.5, 1.0, -1.0)
    plain, scaled = (
        recipes.ramp_fs(3, "exact", C=2 / u, standardize=False, random_state=0).fit(X * u, y) for u in (1.0, unit)
    )
    assert scaled.status_ == plain.status_ == "optimal"
    assert scaled.objective_ * unit == pytest.approx(plain.objective_, rel=1e-6)
    assert scaled.bound_ * unit == pytest.approx(plain.objective_, rel=1e-4)
    assert scaled.objective_ == pytest.approx(objective(scaled, X * unit, y, 2 / unit), rel=1e-9)


def test_costs_may_be_tiny_or_a_series(blobs):
    X, y = blobs
    names = [f"x{j}" for j in range(12)]
    tiny = recipes.ramp_fs(2e-10, "exact", feature_costs=[1e-10] * 12, random_state=0).fit(X, y)
    assert tiny.n_features_ <= 2
    frame = pd.DataFrame(X, columns=names)
    series = pd.Series({name: 1.0 for name in reversed(names)})
    series["x0"] = 5.0
    made = recipes.ramp_fs(2, feature_costs=series, **FAST).fit(frame, y)
    assert "x0" not in made.get_feature_names_out()
    with pytest.raises(InputError, match="it must name columns"):
        recipes.ramp_fs(2, feature_costs={1.0, 2.0}, **FAST).fit(X, y)
    with pytest.raises(InputError, match="it must name columns"):
        recipes.ramp_fs(2, feature_costs=np.array(1.0), **FAST).fit(X, y)


def test_more_than_the_budget_is_told(blobs):
    with pytest.warns(UserWarning, match="the 5 selected features cost 5, more than the budget of 2"):
        recipes.ramp_fs(2, n_features_to_select=5, **FAST).fit(*blobs)


def test_what_is_kept_where_nothing_pays_is_paid_for(blobs):
    X, y = blobs
    costs = {f"x{j}": 50.0 for j in range(3)}
    with pytest.warns(UserWarning, match="no feature has a weight in the best solution known"):
        made = recipes.ramp_fs(1, C=1e-4, feature_costs=costs, **FAST).fit(X, y)
    assert not made.support_[:3].any()
    X = X.copy()
    X[:, 11] += 1000.0
    with pytest.warns(UserWarning, match="no feature has a weight in the best solution known"):
        made = recipes.ramp_fs(1, C=1e-6, standardize=False, **FAST).fit(X, y)
    assert made.support_[:3].any()


def test_suspects_of_an_earlier_fit_go(blobs):
    made = recipes.ramp_fs(2, **FAST).fit(*blobs)
    assert hasattr(made, "suspects_")
    assert not hasattr(made.set_params(machine="hinge").fit(*blobs), "suspects_")


# -- suspects ------------------------------------------------------------------------------------------------------


def planted(seed=0, m=80, n=200, flips=8):
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    X = rng.normal(size=(m, n))
    X[:, :8] += 2.0 * (2 * y[:, None] - 1) / 2
    wrong = rng.choice(m, flips, replace=False)
    given = y.copy()
    given[wrong] = 1 - given[wrong]
    return X, given, wrong


def test_the_machine_names_the_samples_that_it_left_out():
    X, y, wrong = planted(n=20)
    frame = pd.DataFrame(X, index=[f"p{i}" for i in range(80)])
    made = recipes.ramp_fs(budget=8, C=0.3, **FAST).fit(frame, y)
    left = made.suspects_
    assert set(left.index) <= set(frame.index)
    assert {f"p{i}" for i in wrong} >= set(left.index[left.frequency > 0.5])
    assert len(left) >= 4
    margin = np.where(y == 1, 1, -1) * made.decision_function(frame)
    np.testing.assert_allclose(left.margin, pd.Series(margin, index=frame.index)[left.index])
    assert (left.margin < -1).all()
    assert left.frequency.between(0, 1).all()
    assert set(recipes.ramp_svm(n_features_to_select=8, threshold="margin", points=8).fit(X, y).suspects_.index) <= set(
        range(80)
    )


def test_the_fits_behind_a_frequency_can_be_left_out():
    X, y, _ = planted()
    settings = {"n_features_to_select": 8, "threshold": "margin", "points": 8, "random_state": 0}
    told, silent = (recipes.ramp_svm(**settings, **extra).fit(X, y) for extra in ({}, {"resamples": 0}))
    np.testing.assert_array_equal(told.decision_function(X), silent.decision_function(X))
    pd.testing.assert_series_equal(told.suspects_.margin, silent.suspects_.margin)
    assert told.suspects_.frequency.notna().all()
    assert silent.suspects_.frequency.isna().all()
    with pytest.raises(InputError, match="resamples is -1; it must be a whole number of 0 or more"):
        recipes.ramp_svm(**settings, resamples=-1).fit(X, y)
