"""Many problems at once: the same code on numpy's and on torch's arrays, against one problem after the other.

MARGINSIEVE_TEST_DEVICE=cuda runs those of torch and cupy on a GPU (`make test-gpu`).
"""

import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tiers import long_but

import marginsieve
from marginsieve import SVMSelector, recipes
from marginsieve.batches import arrays as backends
from marginsieve.batches import lockstep, ridge_batches
from marginsieve.batches.arrays import NUMPY, cupy_on, torch_on
from marginsieve.batches.pair_sums import Scales
from marginsieve.criteria import Fisher, Hellinger, MarginChange, ReliefF, SymmetricalUncertainty
from marginsieve.criteria._columns import by_rank_batched, equal_frequency
from marginsieve.data import make_cohort
from marginsieve.data.table import Schema
from marginsieve.errors import InputError
from marginsieve.estimators import inputs
from marginsieve.fitting import batched_searches, training
from marginsieve.fitting.batched_searches import TrainingPart, batch_fits, rank_parts
from marginsieve.fitting.held_out import Member
from marginsieve.fitting.rows import Rows
from marginsieve.fitting.settings import Plan
from marginsieve.fitting.training import search_once
from marginsieve.kernels import Clinical, Gaussian, Linear
from marginsieve.machines import CSVC, KernelRidge
from marginsieve.outcomes import Classes, ClassTarget, Numbers, NumberTarget
from marginsieve.searches import Backward, TopK
from marginsieve.solvers import smo
from marginsieve.solvers.ridge import kernel_ridge
from marginsieve.studies import measuring, running

TOL = 1e-10
SIZES = (4, 20, 1)


DEVICE = os.environ.get("MARGINSIEVE_TEST_DEVICE", "cpu")


@pytest.fixture(params=long_but(["numpy", "torch", "cupy"], "numpy"))
def arrays(request):
    if request.param == "numpy":
        return NUMPY
    if request.param == "cupy" and DEVICE == "cpu":
        pytest.skip("cupy's arrays are on a GPU: MARGINSIEVE_TEST_DEVICE=cuda")
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return torch_on(DEVICE) if request.param == "torch" else cupy_on(DEVICE)


def violation_of(K, y, top, c):
    """By the definition: the largest y - Kc that may rise less the lowest that may fall."""
    E, used = y - K @ c, top > 0
    lo, hi = np.where(y > 0, 0.0, -top), np.where(y > 0, top, 0.0)
    return max(E[(c < hi) & used].max() - E[(c > lo) & used].min(), 0.0)


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("columns", [3, 40, 500])
def test_machines_in_step_are_those_one_by_one(arrays, C, columns):
    rng, F, m = np.random.default_rng(columns), 7, 40
    K, y, top = np.empty((F, m, m)), np.empty((F, m)), C * rng.uniform(0.5, 2.0, size=(F, m))
    for f in range(F):
        X = rng.normal(size=(m, columns))
        y[f] = np.where(X[:, 0] + rng.normal(size=m) > 0.3, 1.0, -1.0)
        K[f] = X @ X.T if f % 2 else np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * columns))
        top[f, rng.choice(m, f, replace=False)] = 0.0
    found = lockstep.svc(arrays, arrays.to_device(K), arrays.to_device(y), arrays.to_device(top), 1e-8)
    coef, intercept, objective, residual = (
        arrays.to_host(part) for part in (found.coef, found.intercept, found.objective, found.violation)
    )
    for f in range(F):
        one = smo.svc(K[f], y[f], top[f], np.zeros(m), 1e-10, 10**6)
        assert violation_of(K[f], y[f], top[f], coef[f]) <= 1e-8
        assert residual[f] == pytest.approx(violation_of(K[f], y[f], top[f], coef[f]), abs=1e-9)
        assert np.all(np.abs(coef[f]) <= top[f])
        assert abs(coef[f].sum()) <= 1e-9 * np.abs(coef[f]).sum()
        assert objective[f] == pytest.approx(one[2], rel=1e-9)
        assert intercept[f] == pytest.approx(one[1], abs=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_machine_near_a_known_one_is_the_machine(arrays, C):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 6))
    y, top = np.where(X[:, 0] + rng.normal(size=150) > 0, 1.0, -1.0), C * rng.uniform(0.5, 1.5, size=150)
    K, near = (np.exp(-((X[:, None] - X[None]) ** 2 * w).sum(axis=2) / 12) for w in (np.ones(6), np.full(6, 1.05)))
    start = smo.svc(near, y, top, np.zeros(150), 1e-8, 10**6)[0]
    given = [arrays.to_device(part) for part in (K, y, top, start)]
    found = lockstep.svc_near(arrays, *given, 1e-7)
    assert found is not None
    coef = arrays.to_host(found.coef)[0]
    assert violation_of(K, y, top, coef) <= 1e-7
    assert abs(coef.sum()) <= 1e-8 * np.abs(coef).sum()
    best = smo.svc(K, y, top, np.zeros(150), 1e-10, 10**6)[2]
    assert arrays.to_host(found.objective)[0] == pytest.approx(best, rel=1e-9)
    assert lockstep.svc_near(arrays, *given[:3], arrays.to_device(np.zeros(150)), 1e-7) is None


def test_a_part_with_one_class_is_no_obstacle_to_the_others(arrays):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 10, 4))
    K, y = X @ X.transpose(0, 2, 1), np.ones((2, 10))
    y[1, ::2] = -1.0
    found = lockstep.svc(arrays, arrays.to_device(K), arrays.to_device(y), arrays.to_device(np.ones((2, 10))), 1e-8)
    assert np.all(arrays.to_host(found.coef)[0] == 0.0)
    assert arrays.to_host(found.violation)[1] <= 1e-8


def target_of(codes, weight):
    return ClassTarget.from_codes(codes).with_weight(weight)


def table_and_jobs(seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 60)) * rng.uniform(0.1, 10.0, size=60) + rng.normal(size=60)
    y = rng.permutation(np.arange(40) % classes)
    X[:, :4] += y[:, None] * 1.5 * X[:, :4].std(axis=0)
    X[:30, 7] = 1.0  # constant in some training parts
    table, weight = Schema.from_table(X).table(X), rng.uniform(0.5, 2.0, size=40)
    jobs = []
    for f in range(6):
        rows = rng.permutation(40)
        train = np.sort(rows[: 20 if f < 4 else 28]) if f else np.arange(28)
        labels = y if f < 3 else rng.permutation(y)
        jobs.append(TrainingPart(train, np.setdiff1d(np.arange(40), train), target_of(labels, weight)))
    return table, jobs


TWO = Classes(class_weight="balanced")
PLANS = {
    "linear elimination": Plan(Linear(), CSVC(tol=TOL), MarginChange(), Backward(), TWO, standardize=True),
    "averaged": Plan(Linear(average=True), CSVC(C=5.0, tol=TOL), MarginChange(), Backward(step=7), TWO),
    "clinical": Plan(Clinical(), CSVC(tol=TOL), MarginChange(), Backward(), TWO),
    "clinical of all": Plan(Clinical(average=False), CSVC(tol=TOL), MarginChange(), Backward(), TWO),
    "Gaussian": Plan(Gaussian(), CSVC(C=3.0, tol=TOL), MarginChange(exact=True), Backward(), TWO, standardize=True),
    "Gaussian, width": Plan(
        Gaussian(width=0.5, average=False), CSVC(tol=TOL), MarginChange(exact=True), Backward(), TWO, standardize=True
    ),
    "Fisher": Plan(Linear(), CSVC(tol=TOL), Fisher(), TopK(), TWO, standardize=True),
    "Fisher, another machine": Plan(Linear(), CSVC(tol=TOL), Fisher(), TopK(), TWO),
    "ReliefF": Plan(Gaussian(), CSVC(tol=TOL), ReliefF(), TopK(), TWO, standardize=True),
    "uncertainty": Plan(Linear(), CSVC(tol=TOL), SymmetricalUncertainty(), TopK(), TWO, standardize=True),
    "Hellinger": Plan(Clinical(), CSVC(tol=TOL), Hellinger(bins=3), TopK(), TWO),
}


def one_by_one(plan, table, job):
    part = Rows(None, table, job.target)
    searched = search_once(plan, part.take(job.train), np.random.default_rng(0))
    return searched, Member.from_search(plan, searched, SIZES, part, job.test)


def agree(plan, arrays, classes=2):
    table, jobs = table_and_jobs(classes=classes)
    for job, found in zip(jobs, rank_parts(arrays, plan, table, jobs, SIZES), strict=True):
        searched, member = one_by_one(plan, table, job)
        assert found.usable == len(searched.ready.usable)
        np.testing.assert_array_equal(found.order, searched.path.order)
        np.testing.assert_allclose(found.values, member.values, atol=1e-6)
        assert found.work.n_unconverged == 0
        replayed = set(SIZES) & {step.size for step in searched.path.steps} if searched.path.replay else set()
        assert found.work.solves == member.work.solves + len(replayed) * (1 if classes == 2 else classes)


@pytest.mark.parametrize("name", PLANS)
def test_searches_in_step_are_those_one_by_one(arrays, name):
    agree(PLANS[name], arrays)


@pytest.mark.parametrize("name", ["linear elimination", "clinical", "Fisher", "ReliefF", "uncertainty"])
def test_of_three_classes(arrays, name):
    agree(replace(PLANS[name], outcome=Classes()), arrays, classes=3)


RIDGES = {
    "linear": Plan(Linear(), KernelRidge(0.1), MarginChange(), Backward(final=KernelRidge()), Numbers(), True),
    "clinical": Plan(Clinical(), KernelRidge(0.1), MarginChange(), Backward(final=KernelRidge()), Numbers()),
    "chosen penalty": Plan(Linear(), KernelRidge(), MarginChange(), Backward(), Numbers(), True),
}


@pytest.mark.parametrize("name", RIDGES)
def test_ridge_eliminations_of_numbers_in_step_are_those_one_by_one(arrays, name):
    table, jobs = table_and_jobs()
    y = table.Z[:, 0] + table.Z[:, 3] + np.random.default_rng(1).normal(size=40)
    jobs = [
        replace(job, target=NumberTarget(weight, None, y))
        for job, weight in zip(jobs, [np.ones(40), job_weights(2), job_weights(1)] * 2, strict=True)
    ]
    plan = RIDGES[name]
    for job, found in zip(jobs, rank_parts(arrays, plan, table, jobs, SIZES), strict=True):
        searched, member = one_by_one(plan, table, job)
        np.testing.assert_array_equal(found.order, searched.path.order)
        np.testing.assert_allclose(found.values, member.values, atol=1e-6 * np.abs(member.values).max())
        assert found.work.n_unconverged == 0


def job_weights(kind):
    """Whole numbers, or any."""
    rng = np.random.default_rng(kind)
    return rng.integers(1, 4, 40).astype(float) if kind == 2 else rng.uniform(0.5, 2.0, 40)


def test_ridge_regressions_at_once_are_those_one_by_one(arrays):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 20, 30)), rng.normal(size=(3, 20))
    X[2] = 1.0  # nothing varies
    K, cost = X @ X.swapaxes(1, 2), rng.choice([0.0, 1.0, 2.0], (3, 20))
    for share in (0.1, None):
        found = ridge_batches.ridge(arrays, *map(arrays.to_device, (K, y, cost)), share)
        for f in range(3):
            alone = kernel_ridge(K[f], y[f], cost[f], share)
            np.testing.assert_allclose(arrays.to_host(found.coef)[f], alone.coef, atol=1e-9)
            assert arrays.to_host(found.intercept)[f] == pytest.approx(alone.intercept)
            assert arrays.to_host(found.objective)[f] == pytest.approx(alone.objective)


@pytest.mark.parametrize("far", [1.0, 12.0, 60.0])
def test_a_gaussian_without_a_feature_is_what_it_stands_for(arrays, far):
    """By the series, with columns of any unit and a row that is far out in one of them."""
    rng = np.random.default_rng(1)
    X, coef = rng.normal(size=(90, 12)), rng.normal(size=(2, 12))
    X[7, 3] = far
    unit = 10.0 ** rng.uniform(-7, 7, size=(90, 1))
    coef -= coef.mean(axis=1, keepdims=True)
    ones = arrays.to_device(np.ones((2, 90)))
    scales = Scales(
        arrays.to_device(np.tile(unit.T**-2.0, (2, 1))),
        arrays.to_device(np.tile(unit.T**2.0, (2, 1))),
        ones,
        ones,
        arrays.to_device(np.full((2, 2), 90.0)),
    )
    sums = Gaussian().pair_sums(arrays, arrays.to_device(X * unit), scales)
    W = sums.weights(ones)
    K = sums.matrices(W)
    change = arrays.to_host(sums.changes(W, K, arrays.to_device(coef)))
    for f in range(2):
        for j in (0, 7, 50, 89):
            without = arrays.to_host(K)[f] * np.exp(0.5 * (X[j][:, None] - X[j][None]) ** 2 / 90)
            assert change[f, j] == pytest.approx(abs(coef[f] @ (arrays.to_host(K)[f] - without) @ coef[f]), rel=1e-8)


@pytest.mark.parametrize("values", [2, 4, 9, 10**6])
def test_levels_of_equal_weight_are_those_one_by_one(arrays, values):
    """With equal values, fewer of them than levels or more, and weights that are counts."""
    rng = np.random.default_rng(values)
    z, weight = rng.integers(values, size=(40, 23)) / 7.0, rng.integers(1, 4, size=23).astype(float)
    order, level = by_rank_batched(arrays, arrays.to_device(z), arrays.to_device(weight), 5)
    expected = np.take_along_axis(equal_frequency(z, weight, 5), arrays.to_host(order), axis=1)
    np.testing.assert_array_equal(arrays.to_host(level), expected)


def test_many_jobs_are_run_a_few_at_a_time(arrays, monkeypatch):
    table, jobs = table_and_jobs()
    plan = PLANS["linear elimination"]
    whole = rank_parts(arrays, plan, table, jobs, SIZES)
    monkeypatch.setattr(type(arrays), "free_bytes", lambda _: 2.0**20)
    for few, many in zip(rank_parts(arrays, plan, table, jobs, SIZES), whole, strict=True):
        np.testing.assert_array_equal(few.order, many.order)
        np.testing.assert_allclose(few.values, many.values, atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian(width=0.4, average=False), Linear()])
def test_a_gram_on_a_device_is_the_one_on_the_host(arrays, kernel):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 12))
    table = Schema.from_table(X).table(X)
    weight, live = rng.uniform(0.5, 2.0, size=12) * kernel.start(table), np.arange(12)
    host, device = kernel.bind(table, weight, live), kernel.bind(table.with_backend(arrays), weight, live)
    c = rng.normal(size=30)
    c -= c.mean()
    y, d = np.where(rng.random(30) < 0.5, 1.0, -1.0), rng.normal(size=12) * 0.1
    some = np.array([0, 3, 4, 9])
    for one, other in (
        (host, device),
        (host.rescale(2.0 * weight, some), device.rescale(2.0 * weight, some)),
        (host.without(some), device.without(some)),
        (host.only(np.arange(5, 25)), device.only(np.arange(5, 25))),
        (host.line(d).gram_at(0.5), device.line(d).gram_at(0.5)),
    ):
        v = c[: one.matrix().shape[0]] - c[: one.matrix().shape[0]].mean()
        ours = other.matrix() - other.matrix().mean(axis=0) if kernel.linear else other.matrix()
        theirs = one.matrix() - one.matrix().mean(axis=0) if kernel.linear else one.matrix()
        ours, theirs = (M - M.mean(axis=1, keepdims=True) if kernel.linear else M for M in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
        np.testing.assert_allclose(other.weight_gradient(v), one.weight_gradient(v), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(other.drop_one_change(v), one.drop_one_change(v), rtol=1e-8)
    np.testing.assert_allclose(host.line(d).matrix(0.3), host.line(d).gram_at(0.3).matrix(), atol=1e-10)
    theirs, ours = (CSVC(tol=1e-9).solve(gram, y, np.ones(30)) for gram in (host, device))
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
    np.testing.assert_allclose(ours.slack, theirs.slack, atol=1e-6)


# -- through the front door -------------------------------------------------------------------------------------------


@pytest.fixture
def on_arrays(arrays, monkeypatch):
    """device="cuda" takes these arrays, and says how often."""
    used = []

    def backend(device, gain):
        used.append(gain)
        return None if device == "cpu" else arrays

    monkeypatch.setattr(batched_searches, "backend_for", backend)
    monkeypatch.setattr(training, "backend_for", backend)
    return used


COHORT = make_cohort(50, 40, n_relevant=4, effect=1.2, random_state=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: recipes.svm_rfe(standardize=True, n_features_to_select="auto", device=device, random_state=0),
        lambda device: recipes.svm_rfe(standardize=True, ensemble=6, device=device, random_state=0),
        lambda device: recipes.two_views(device=device, random_state=0),
        lambda device: recipes.fisher(false_share=0.3, standardize=True, device=device, random_state=0),
        lambda device: recipes.two_views(false_share=0.3, device=device, random_state=0),
        lambda device: recipes.kp_cssvm(n_features_to_select=8, device=device, random_state=0),
    ],
)
def test_selectors_choose_the_same_on_a_device(on_arrays, make):
    plain, other = (make(device).fit(COHORT.X, COHORT.y) for device in ("cpu", "cuda"))
    assert on_arrays
    np.testing.assert_array_equal(plain.support_, other.support_)
    np.testing.assert_array_equal(plain.ranking_, other.ranking_)
    np.testing.assert_allclose(plain.decision_function(COHORT.X), other.decision_function(COHORT.X), atol=1e-4)


@pytest.mark.parametrize("name", ["svm_rfe", "two_views"])
def test_selectors_of_numbers_choose_the_same_on_a_device(on_arrays, name):
    X = COHORT.X.to_numpy()
    y = X[:, :3].sum(axis=1) + 0.5 * np.random.default_rng(2).normal(size=50)
    make = partial(recipes.get(name), outcome="numbers", n_features_to_select="auto", random_state=0)
    plain, other = (make(device=device).fit(X, y) for device in ("cpu", "cuda"))
    assert on_arrays
    np.testing.assert_array_equal(plain.ranking_, other.ranking_)
    np.testing.assert_array_equal(plain.support_, other.support_)
    np.testing.assert_allclose(plain.predict(X), other.predict(X), atol=1e-6)


def test_batch_fits_are_those_one_by_one(on_arrays):
    fixed = {"device": "cuda", "random_state": 0, "standardize": True}
    table = Schema.from_table(COHORT.X).table(np.asarray(COHORT.X)).track()
    codes = np.unique(COHORT.y, return_inverse=True)[1]
    whole = Rows(Schema.from_table(COHORT.X), table, ClassTarget.from_codes(codes, positive=None))
    parts = [whole.take(np.setdiff1d(np.arange(50), np.arange(k, 50, 5))) for k in range(5)]
    for make in (recipes.svm_rfe, recipes.two_views, recipes.fisher):
        selector = make(n_features_to_select="auto", **fixed)
        plain = make(n_features_to_select="auto", **fixed | {"device": "cpu"})
        seeds = np.random.SeedSequence(1).spawn(5)
        del on_arrays[:]
        in_step = list(
            batch_fits([partial(selector.fit_rows, one, seed) for one, seed in zip(parts, seeds, strict=True)])
        )
        assert 0 < len(on_arrays) <= 6  # searches on all rows, then inner folds, of each view: not of each fit
        for fitted, one, seed in zip(in_step, parts, seeds, strict=True):
            alone = plain.fit_rows(one, seed)
            np.testing.assert_array_equal(fitted.path.order, alone.path.order)
            assert fitted.path.n_selected == alone.path.n_selected
            assert fitted.decision.threshold == pytest.approx(alone.decision.threshold, abs=1e-4)
            assert fitted.notes == alone.notes


def test_a_study_finds_the_same_on_a_device(on_arrays, monkeypatch):
    monkeypatch.setattr(running, "has_cuda", lambda: True)
    monkeypatch.setattr(measuring, "has_cuda", lambda: True)
    fixed = {"methods": "fisher,l1_cssvm,svm_rfe", "cv": 3, "n_repeats": 1}
    fixed |= {
        "n_permutations": 24,
        "without": ("suspects", "references", "substitutes", "learning-curve"),
        "n_jobs": 2,
    }  # the folds of l1_cssvm are run beside
    plain, other = (marginsieve.study(COHORT.X, COHORT.y, device=device, **fixed) for device in ("cpu", "cuda"))
    assert on_arrays
    assert plain.features["name"].tolist() == other.features["name"].tolist()
    assert plain.result["analyses"]["evidence"] == other.result["analyses"]["evidence"]
    for one, two in zip(plain.result["methods"], other.result["methods"], strict=True):
        assert one["scores"]["auc"] == two["scores"]["auc"]


@pytest.mark.parametrize("change", ["keep", "missing", "categories", "sampler"])
def test_what_does_not_work_in_batches_is_run_on_the_cpu(on_arrays, change):
    X, settings = COHORT.frame().drop(columns="outcome"), {"kernel": "clinical", "n_features_to_select": 5}
    if change == "keep":
        settings["keep"] = [X.columns[3]]
    elif change == "missing":
        X.iloc[2, 3] = np.nan
    elif change == "categories":
        X["kind"] = ["a", "b"] * 25
    else:
        settings |= {"sampler": "smote", "kernel": "linear"}
    made = [
        recipes.svm_rfe(device=device, threshold="balanced", random_state=0, **settings).fit(X, COHORT.y)
        for device in ("cpu", "cuda")
    ]
    assert not on_arrays
    np.testing.assert_array_equal(made[0].support_, made[1].support_)


@pytest.mark.parametrize("device", ["gpu", "cuda:x", 0, None, ["cpu"]])
def test_what_is_no_device_is_refused(device):
    with pytest.raises(InputError, match=r'device is .*; it must be "auto", "cpu", "cuda" or "cuda:0"'):
        SVMSelector(device=device).fit(COHORT.X, COHORT.y)


def test_without_a_gpu_it_is_said(monkeypatch):
    monkeypatch.setattr(backends, "has_cuda", lambda: False)
    with pytest.raises(InputError, match=r"device is 'cuda' and torch (sees no GPU|is not installed)"):
        recipes.fisher(device="cuda", n_features_to_select="auto").fit(COHORT.X, COHORT.y)
    small = recipes.fisher(device="auto", n_features_to_select=5, random_state=0).fit(COHORT.X, COHORT.y)
    assert small.n_features_ == 5


@pytest.mark.parametrize("dispatch", [False, True])
def test_arrays_on_a_device_are_tables(arrays, dispatch, monkeypatch):
    """As scikit-learn has it: with array API dispatch results are arrays of the library and device of the table."""
    monkeypatch.setattr(inputs, "get_config", lambda: {"array_api_dispatch": dispatch})
    X, y, weight = COHORT.X.to_numpy(), (np.asarray(COHORT.y) == "case").astype(int), np.linspace(0.5, 2.0, 50)
    make = partial(recipes.svm_rfe, n_features_to_select=5, probability=True, random_state=0)
    plain = make().fit(X, y, weight)
    given = arrays.to_device(X)
    selector = make().fit(given, arrays.to_device(y, np.int64), arrays.to_device(weight))
    np.testing.assert_array_equal(selector.support_, plain.support_)
    for name in ("decision_function", "predict_proba", "predict"):
        values = getattr(selector, name)(given)
        if dispatch:
            assert type(values) is type(given)
            assert getattr(values, "device", None) == getattr(given, "device", None)
            values = arrays.to_host(values)
        assert isinstance(values, np.ndarray)
        np.testing.assert_array_equal(values, getattr(plain, name)(X))
    chosen = selector.transform(given)
    assert type(chosen) is type(given)
    np.testing.assert_array_equal(arrays.to_host(chosen), X[:, plain.support_])


def test_a_study_takes_an_array_on_a_device(arrays):
    fixed = {"methods": "fisher", "cv": 3, "n_repeats": 1, "alternatives": 0}
    fixed |= {"n_permutations": 24, "without": ("suspects", "references", "substitutes"), "n_jobs": 1}
    X, y = COHORT.X.to_numpy(), (np.asarray(COHORT.y) == "case").astype(int)
    on_device = arrays.to_device(X), arrays.to_device(y, np.int64)
    plain, other = (marginsieve.study(*data, **fixed) for data in ((X, y), on_device))
    assert plain.features["rank"].tolist() == other.features["rank"].tolist()
