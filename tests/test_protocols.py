"""Protocols split as the papers did, put noise into training labels alone, and tune where they say."""

import itertools
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import reproduction  # noqa: F401, registers the papers' protocols
from marginsieve import SVMSelector, recipes
from marginsieve.bench.suite import Suite, run_suite, table_of
from marginsieve.data import make_cohort
from marginsieve.engine import Protocol, register_protocol, units
from marginsieve.engine.store import Store
from marginsieve.engine.tuning import _along_grid, _plan_at, tune, tune_machine
from marginsieve.engine.units import PROTOCOLS, protocol_of
from marginsieve.errors import InputError
from marginsieve.estimators.inputs import encode
from marginsieve.fitting.held_out import run_search
from marginsieve.fitting.procedure import plan_of
from marginsieve.fitting.training import fit_model, prepare
from marginsieve.outcomes import ClassTarget
from reproduction.noisy_folds import flip_furthest, flip_labels

Y = np.repeat([0, 1], [70, 30])
TARGET = ClassTarget.from_codes(Y)


def encoded(X, y):
    return table_of("t", pd.DataFrame(X), y, None).rows


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_splits_are_disjoint_stratified_and_repeat_themselves(name):
    protocol = PROTOCOLS[name]
    splits = protocol.splits(TARGET, 1)
    again = protocol.splits(TARGET, 1)
    assert len({split.name for split in splits}) == len(splits)
    for split, same in zip(splits, again, strict=True):
        parts = [split.train, split.test] + ([] if split.validation is None else [split.validation])
        rows = np.concatenate(parts)
        assert len(np.unique(rows)) == len(rows)
        np.testing.assert_array_equal(split.train, same.train)
        np.testing.assert_array_equal(split.test, same.test)
        if protocol.scheme != "loo":
            assert abs(np.mean(Y[split.test]) - 0.3) < 0.1
    if protocol.scheme != "loo":
        other = protocol.splits(TARGET, 2)
        assert any(len(a.test) != len(b.test) or (a.test != b.test).any() for a, b in zip(splits, other, strict=True))


def test_the_papers_numbers():
    def shares(name):
        split = PROTOCOLS[name].splits(TARGET, 0)[0]
        return [len(part) for part in (split.train, split.test) if part is not None]

    assert len(PROTOCOLS["kp-imbalanced"].splits(TARGET, 0)) == 100
    assert shares("kp-imbalanced") == [99, 1]
    assert PROTOCOLS["kp-imbalanced"].sizes_for(2308) == [20, 50, 100, 250, 500, 1000]
    assert len(PROTOCOLS["mixed"].splits(TARGET, 0)) == 200
    assert shares("mixed") == [90, 10]
    symon = PROTOCOLS["symon"].splits(TARGET, 0)[0]
    assert (len(symon.train), len(symon.test), len(symon.validation)) == (50, 30, 20)
    assert PROTOCOLS["symon"].sizes_for(2000) == [400, 800, 1200, 1600]
    kp_svm = PROTOCOLS["kp-svm"].splits(TARGET, 0)
    assert len(kp_svm) == 100
    assert {len(split.train) + len(split.test) for split in kp_svm} == {50}  # the test half of the table
    assert len({frozenset(np.concatenate([s.train, s.test]).tolist()) for s in kp_svm}) == 1
    assert abs(len(kp_svm[0].train) / 50 - 0.6) < 0.03


def test_nested_passes_cover_the_table_once():
    splits = PROTOCOLS["nested"].splits(TARGET, 0)
    for repeat in range(3):
        rows = np.concatenate([split.test for split in splits if split.repeat == repeat])
        assert sorted(rows) == list(range(100))
    groups = np.arange(100) // 2
    for split in PROTOCOLS["nested"].splits(ClassTarget.from_codes(Y, groups=groups), 0):
        assert not set(groups[split.train]) & set(groups[split.test])
    with pytest.raises(InputError, match="draws rows, not groups"):
        PROTOCOLS["mixed"].splits(ClassTarget.from_codes(Y, groups=groups), 0)
    with pytest.raises(InputError, match="makes 5 folds and class 1 has 3 samples"):
        PROTOCOLS["nested"].splits(ClassTarget.from_codes(np.repeat([0, 1], [20, 3])), 0)


@dataclass(frozen=True)
class WrongLabels(Protocol):
    """A share of the training labels is wrong, the same ones for all methods."""

    share: float = 0.05

    def training_target(self, part, rng):
        return replace(part.target, codes=flip_labels(part.target.codes, self.share, rng))


register_protocol(WrongLabels("wrong-labels", "folds", settings={"threshold": "margin"}))


def test_label_noise_flips_its_share():
    rng = np.random.default_rng(0)
    flipped = PROTOCOLS["wrong-labels"].training_target(encoded(np.zeros((100, 1)), Y), rng).codes
    assert (flipped != Y).sum() == 5
    assert set(flip_labels(np.repeat([0, 1, 2], 30), 0.05, rng)) == {0, 1, 2}


def test_outliers_are_those_furthest_on_their_own_side():
    flipped = flip_furthest(Y, np.r_[np.linspace(-5, -1, 70), np.linspace(1, 4, 30)], 0.05)
    changed = np.flatnonzero(flipped != Y)
    assert changed.tolist() == [0, 1, 2, 3, 98, 99]  # 5 % of each class, round(3.5) and round(1.5) to even


def test_every_method_learns_from_the_same_wrong_labels(tmp_path):
    """A setting that plays no part changes nothing: the noise depends on the split alone."""
    spec = {
        "protocol": {"name": "wrong-labels", "folds": 4, "share": 0.3, "tuned": ""},
        "data": [{"cohort": {"n_samples": 40, "n_features": 10, "n_relevant": 3, "effect": 1.0}}],
        "method": [{"name": "fisher", "label": f"cv {k}", "n_features_to_select": 3, "cv": k} for k in (3, 4)],
    }
    scores = run_suite(Suite.read(spec), tmp_path).scores("auc").set_index("method")["auc"]
    assert scores["cv 3"] == scores["cv 4"]


def test_noise_stays_in_the_training_parts(tmp_path):
    """Truth in the store is clean, and test labels are never flipped: a separable table still scores well."""
    spec = {
        "protocol": {
            "name": "wrong-labels",
            "folds": 5,
            "share": 0.2,
            "grid": {"machine__C": [0.1]},
            "tuned": "reported",
        },
        "data": [{"cohort": {"n_samples": 60, "n_features": 10, "n_relevant": 8, "effect": 3.0}}],
        "method": [{"name": "fisher", "n_features_to_select": 8}],
    }
    study = run_suite(Suite.read(spec), tmp_path)
    assert study.scores("auc")["auc"].item() > 0.95


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_tuning_is_grid_search_by_hand(kernel):
    cohort = make_cohort(50, 8, n_relevant=3, effect=1.0, random_state=4)
    X, y = cohort.X.to_numpy(), (cohort.y == "case").to_numpy().astype(int)
    selector = recipes.fisher(kernel=kernel, threshold="margin", positive=1).set_params(machine__tol=1e-7)
    table = encode(selector, X, y, None)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    grid = {"machine__C": (0.01, 1.0, 30.0), "negative_weight": (0.2, 1.0)}
    chosen, score = tune_machine(selector, table, grid, splits)
    best = {}
    for C in grid["machine__C"]:
        for w in grid["negative_weight"]:
            predicted = np.empty(50, dtype=int)
            for train, test in splits:
                scaler = StandardScaler().fit(X[train])
                gamma = 1 / (2 * scaler.transform(X[train]).var(axis=0).sum())
                theirs = SVC(
                    C=C, kernel="rbf" if kernel == "gaussian" else kernel, gamma=gamma, class_weight={0: w, 1: 1.0}
                )
                predicted[test] = (
                    theirs.set_params(tol=1e-8)
                    .fit(scaler.transform(X[train]), y[train])
                    .predict(scaler.transform(X[test]))
                )
            best[C, w] = balanced_accuracy_score(y, predicted)
    assert score == pytest.approx(max(best.values()))
    assert best[chosen["machine__C"], chosen["negative_weight"]] == pytest.approx(max(best.values()))
    with pytest.raises(InputError, match="the grid names 'machine__gamma'"):
        tune_machine(selector, table, {"machine__gamma": (1,)}, splits)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_tuning_reuses_kernels_without_a_trace(kernel):
    """Points that share a kernel matrix, another width made from it, warm starts: as if each were fitted alone."""
    cohort = make_cohort(40, 12, n_relevant=3, effect=1.0, random_state=5)
    selector = recipes.fisher(kernel=kernel, threshold="margin", sampler="smote", n_features_to_select=1.0)
    selector.set_params(machine__tol=1e-8, random_state=0)
    table = encode(selector, cohort.X, cohort.y, None)
    plan, splits = plan_of(selector, table), list(StratifiedKFold(3).split(cohort.X, cohort.y))
    part = replace(table, target=table.target.settle(plan.outcome))
    grid = {"kernel__width": (0.1, 0.3), "machine__C": (0.1, 10.0), "negative_weight": (0.3, 1.0)}
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    plans = [_plan_at(selector, point, table) for point in points]
    train, test = splits[0]
    ready = prepare(plan, part.take(train), np.random.default_rng(0))
    rows = ready.scaling.apply(part.table.Z[test])
    for alone, value in zip(plans, _along_grid(points, plans, ready, rows), strict=True):
        searched = run_search(alone, part.take(train), np.random.default_rng(0))
        np.testing.assert_allclose(fit_model(alone, searched, 12).decision(part.table.Z[test]), value, atol=1e-5)


def tuned_suite(methods):
    """A small suite whose parameters are tuned on the reported splits."""
    grid = {"machine__C": [0.1, 1.0]}
    return Suite.read(
        {
            "protocol": {"name": "nested", "folds": 3, "repeats": 1, "tuned": "reported", "grid": grid},
            "data": [{"cohort": {"n_samples": 40, "n_features": 12, "n_relevant": 3}}],
            "method": methods,
        }
    )


def test_methods_with_the_same_machine_share_what_is_tuned(tmp_path):
    """Criteria, searches and their settings do not matter to a machine on all features; kernels and costs do."""
    methods = [
        {"name": "fisher", "n_features_to_select": 2},
        {"name": "svm-rfe", "n_features_to_select": 3},
        {"name": "fisher", "label": "gaussian", "kernel": "gaussian", "n_features_to_select": 2},
        {"name": "kp-svm", "label": "a", "kernel": "gaussian", "class_weight": None, "C2": 1.0},
        {"name": "kp-svm", "label": "b", "kernel": "gaussian", "class_weight": None, "C2": 4.0},
        {"name": "fisher", "label": "costs", "class_weight": "balanced", "n_features_to_select": 2},
        {"name": "fisher", "label": "grid", "grid": {"machine__C": [0.1, 2.0]}, "n_features_to_select": 2},
    ]
    suite = tuned_suite(methods)
    shared: dict[str, list[str]] = {}
    for method in suite.methods:
        shared.setdefault(method.tuned_with, []).append(method.label)
    assert list(shared.values()) == [["fisher", "svm-rfe"], ["gaussian", "a", "b"], ["costs"], ["grid"]]
    study = run_suite(suite, tmp_path)
    assert not len(study.failures())
    with closing(Store(tmp_path, write=False)) as store:
        assert sorted(method for _, method, split, *_ in store.timings() if split == "tuning") == _firsts(shared)
        assert len(store.timings()) == 4 + 3 * len(suite.methods)


def _firsts(shared):
    return sorted(labels[0] for labels in shared.values())


def test_what_one_method_cannot_tune_another_one_may(tmp_path, monkeypatch):
    """A method whose criterion refuses the table fails alone: those with the same machine are tuned by the next one."""
    tuning = units.tune_machine

    def refusing(selector, *rest):
        if selector.n_features_to_select == 2:
            raise InputError("this criterion does not take the table")
        return tuning(selector, *rest)

    monkeypatch.setattr(units, "tune_machine", refusing)
    methods = [
        {"name": "fisher", "n_features_to_select": 2},
        {"name": "svm-rfe", "n_features_to_select": 3},
    ]
    frame = run_suite(tuned_suite(methods), tmp_path).to_pandas()
    assert set(frame["method"]) == {"fisher", "svm-rfe"}
    assert (frame["status"] == "done").all()
    with closing(Store(tmp_path, write=False)) as store:
        states = {row["method"]: row["status"] for row in store.tuning_rows().values()}
    assert states == {"fisher": "failed", "svm-rfe": "done"}


def test_tuning_a_sphere_counts_the_diagonal():
    cohort = make_cohort(60, 10, n_relevant=6, effect=2.5, prevalence=0.3, random_state=1)
    selector = recipes.fisher(kernel="polynomial", machine="svdd", n_features_to_select=1.0, threshold="margin")
    tuned = tune(selector, cohort.X, cohort.y, {"machine__r": (0.05, 0.2), "machine__r_out": (0.05, 0.5)}, cv=3)
    assert tuned.scores["machine"] > 0.65


def test_tune_chooses_in_two_stages_and_leaves_the_selector_alone():
    cohort = make_cohort(60, 80, n_relevant=6, effect=1.5, random_state=2)
    selector = recipes.kp_cssvm(n_features_to_select=5, random_state=0)
    grid = {"machine__C": (1e-4, 1.0), "kernel__width": (0.05, 5.0), "search__C2": (0.0, 1.0)}
    tuned = tune(selector, cohort.X, cohort.y, grid, cv=3)
    assert set(tuned.params) == set(grid)
    assert tuned.params["kernel__width"] == 0.05  # at 5 every sample is like itself alone
    assert set(tuned.scores) == {"machine", "search"}
    assert selector.get_params()["machine__C"] == 1.0
    assert not hasattr(tuned.selector, "ranking_")
    assert tuned.selector.fit(cohort.X, cohort.y).n_features_ == 5
    assert tune(selector, cohort.X, cohort.y, grid, cv=3, n_jobs=2).params == tuned.params
    default = tune(recipes.kp_svdd(), cohort.X, cohort.y, cv=3)
    assert set(default.params) == {"machine__r", "kernel__width", "search__C2"}
    with pytest.raises(InputError, match="the grid names 'search__step'"):
        tune(recipes.fisher(), cohort.X, cohort.y, {"search__step": (0.1,)})
    with pytest.raises(InputError, match="no value for 'machine__C'"):
        tune(selector, cohort.X, cohort.y, {"machine__C": ()})


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"standardize": [True, False]}, "what is tuned is the machine, the kernel"),
        ({"n_features_to_select": [5, 19]}, "what is tuned is the machine, the kernel"),
        ({"machine__C": [-1.0]}, "C is -1.0; it must be a positive number"),
        ({"machine__C": ["a"]}, "C is 'a'; it must be a positive number"),
        ({"machine__C": 1.0}, "no list of values for 'machine__C'"),
        ({"negative_weight": [-1.0]}, "negative_weight is -1.0"),
        ({"search__eps": [3.0]}, "eps is 3.0"),
    ],
)
def test_grids_without_sense_are_refused(grid, message, blobs):
    with pytest.raises(InputError, match=message):
        tune(recipes.kp_cssvm(), *blobs, grid, cv=3)


def test_tuning_looks_at_class_weights_and_at_sample_weights():
    cohort = make_cohort(90, 20, n_relevant=5, effect=1.5, prevalence=0.2, random_state=3)
    X, y = cohort.X.to_numpy(), (cohort.y == "case").to_numpy().astype(int)
    for order in ([None, "balanced"], ["balanced", None]):
        tuned = tune(recipes.kp_cssvm(C=0.05), X, y, {"class_weight": order}, cv=3)
        assert tuned.params == {"class_weight": "balanced"}
    wrong = np.arange(90) < 30
    noisy, weight = np.where(wrong, 1 - y, y), np.where(wrong, 1e-9, 1.0)
    grid = {"machine__C": (0.1, 1.0)}
    clean = tune(recipes.kp_cssvm(), X[~wrong], y[~wrong], grid, cv=3).scores["machine"]
    assert tune(recipes.kp_cssvm(), X, noisy, grid, cv=3, sample_weight=weight).scores["machine"] > clean - 0.15


def test_tuning_names_nothing_for_the_user_to_guess():
    cohort = make_cohort(40, 12, n_relevant=4, effect=2.0, random_state=3)
    selector = SVMSelector(kernel="gaussian", criterion=None, search="scaling")
    tuned = tune(selector, cohort.X, cohort.y, cv=3)
    assert set(tuned.params) == {"machine__C", "kernel__width", "search__C2"}


def test_groups_stay_together_where_parameters_are_tuned(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    frame["patient"], frame["outcome"] = np.repeat(np.arange(12), 5), np.repeat(np.arange(12) % 2, 5)
    frame.to_csv(tmp_path / "t.csv", index=False)
    seen, tuning = [], units.tune_machine

    def watched(selector, table, grid, splits):
        groups = table.target.groups
        seen.extend(set(groups[train]) & set(groups[test]) for train, test in splits)
        return tuning(selector, table, grid, splits)

    monkeypatch.setattr(units, "tune_machine", watched)
    spec = {
        "protocol": {"name": "nested", "folds": 3, "repeats": 1, "tuned": "nested", "grid": {"machine__C": [0.1, 1.0]}},
        "data": [{"file": str(tmp_path / "t.csv"), "target": "outcome", "groups": "patient"}],
        "method": [{"name": "fisher", "n_features_to_select": 2}],
    }
    assert not len(run_suite(Suite.read(spec), tmp_path / "study").failures())
    assert seen
    assert not any(seen)


def test_tuning_on_the_reported_splits_is_optimistic_and_nested_is_not(tmp_path):
    """On pure noise the paper's way looks better than chance; nested tuning does not."""
    values = {}
    for tuned in ("reported", "nested"):
        spec = {
            "protocol": {
                "name": "kp-imbalanced",
                "scheme": "folds",
                "folds": 5,
                "sizes": [20],
                "inner_folds": 4,
                "tuned": tuned,
                "grid": {"machine__C": [0.001, 0.01, 0.1, 1.0, 10.0], "negative_weight": [0.3, 0.6, 1.0]},
            },
            "data": [{"shuffle": 8, "cohort": {"n_samples": 40, "n_features": 20, "n_relevant": 0}}],
            "method": [{"name": "fisher", "n_features_to_select": 1.0}],
        }
        values[tuned] = run_suite(Suite.read(spec), tmp_path / tuned).scores()["balanced_accuracy"].mean()
    assert values["reported"] > values["nested"] + 0.03
    assert 0.4 < values["nested"] < 0.6


def test_a_protocol_can_be_changed():
    changed = protocol_of({"name": "nested", "folds": 4, "sizes": [0.1, 3]})
    assert changed.folds == 4
    assert changed.sizes_for(50) == [3, 5]
