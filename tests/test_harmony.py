"""Harmony search: its tuning against a loop, its bookkeeping, and that it never sees a row that judges it later."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from marginsieve import SVMSelector, plot_path, recipes
from marginsieve.contracts import JudgingRows
from marginsieve.criteria import SymmetricalUncertainty
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.fitting.parts import refuses
from marginsieve.kernels import KERNELS
from marginsieve.machines import MACHINES
from marginsieve.problem import Problem
from marginsieve.searches import Harmony, harmony
from marginsieve.searches.harmony import Ripple, Subsets, fitness_of, fitness_plainly, tune_one_by_one

QUICK = {"memory": 8, "improvisations": 25}


def no_fitness(bits):
    raise AssertionError("nothing was tied: no subset has to be valued")


def ripple_of(weight, factor, fitness=no_fitness, kept=None, batches=8, seed=0):
    weight = np.asarray(weight, dtype=float)
    kept = np.zeros(len(weight), dtype=bool) if kept is None else kept
    return Ripple(weight, kept, factor, batches, fitness, np.random.default_rng(seed))


def slow_ripple(bits, weight, factor, size):
    """Ripple-add and ripple-remove as the paper has them, one feature at a time, all weights different."""
    inside, outside = set(np.flatnonzero(bits)), set(np.flatnonzero(~bits))

    def ripple(source, target, heaviest):
        """So many one way, or as many as there are, and one less the other way."""
        pick = (max, min) if heaviest else (min, max)
        count = min(factor, len(source))
        for k in range(2 * count - 1):
            near, far = (source, target) if k < count else (target, source)
            j = pick[k >= count](near, key=lambda k: weight[k])
            near.remove(j)
            far.add(j)

    if len(inside) == size:
        ripple(outside, inside, True)
        ripple(inside, outside, False)
    while len(inside) != size:
        more = len(inside) < size
        ripple(*((outside, inside) if more else (inside, outside)), more)
    return inside


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 25), factor=st.integers(1, 4))
def test_tuning_is_rippling_one_feature_at_a_time(seed, n, factor):
    rng = np.random.default_rng(seed)
    weight, bits = rng.permutation(n).astype(float), rng.random(n) < rng.random()
    size = int(rng.integers(1, n))
    bits[rng.integers(n)] = True
    found = ripple_of(weight, factor).tune(bits, size)
    assert found.sum() == size
    assert set(np.flatnonzero(found)) == slow_ripple(bits, weight, factor, size)
    literal = tune_one_by_one(ripple_of(weight, factor), bits, size)
    if min(bits.sum(), size) > factor:  # a subset is never emptied on the way
        np.testing.assert_array_equal(literal, found)


def test_with_a_factor_of_one_the_lightest_of_the_subset_go():
    weight = np.arange(10.0)
    bits = np.isin(np.arange(10), [0, 2, 3, 7, 8])
    assert np.flatnonzero(ripple_of(weight, 1).tune(bits, 2)).tolist() == [7, 8]
    assert np.flatnonzero(ripple_of(weight, 1).tune(bits, 6)).tolist() == [0, 2, 3, 7, 8, 9]


def test_of_equal_weights_the_fittest_choice_stays():
    """Ten features of weight 0, two of them wanted: the metric is told, weights are not."""
    weight, good = np.r_[np.zeros(10), 1.0, 2.0], {3, 7}
    value = lambda bits: (float(len(good & set(np.flatnonzero(bits)))),)  # noqa: E731
    bits = np.ones(12, dtype=bool)
    tried = []

    def counted(bits):
        tried.append(bits)
        return value(bits)

    found = ripple_of(weight, 1, counted, batches=8).tune(bits, 4)
    assert len(tried) == 8
    assert found[[10, 11]].all()
    assert value(found) == max(value(one) for one in tried)
    literal = tune_one_by_one(ripple_of(weight, 1, value), bits, 4)
    assert set(np.flatnonzero(literal)) == good | {10, 11}  # every removal tried


def test_kept_features_are_never_rippled_out():
    weight, kept = np.arange(8.0), np.isin(np.arange(8), [0, 1])
    for bits in (np.ones(8, dtype=bool), np.zeros(8, dtype=bool)):
        for make in (lambda r, b: r.tune(b, 4), lambda r, b: tune_one_by_one(r, b, 4)):
            assert set(np.flatnonzero(make(ripple_of(weight, 2, kept=kept), bits))) >= {0, 1}


# -- fitness -------------------------------------------------------------------------------------------------------


def test_fitness_is_scikit_learns(rng):
    y, value = np.where(rng.random(40) < 0.3, 1.0, -1.0), np.round(rng.normal(size=40), 1)
    recall = [np.mean(value[y == side] * side > 0) for side in (1, -1)]
    hinge = np.maximum(0, 1 - y * value).mean()
    auc, balanced, g_mean = roc_auc_score(y, value), np.mean(recall), np.sqrt(np.prod(recall))
    known = {"g_mean": (g_mean, auc), "auc": (auc, g_mean), "balanced_accuracy": (balanced, auc)}
    for name, expected in known.items():
        found = fitness_of(name)[0](value[None], y[None], np.ones(40))
        np.testing.assert_allclose(found, (*expected, -hinge), atol=2e-3)
    doubled = fitness_of("g_mean")[0](value[None], y[None], np.where(np.arange(40) < 20, 2.0, 1.0))
    twice = np.r_[np.arange(20), np.arange(40)]
    np.testing.assert_allclose(doubled, fitness_of("g_mean")[0](value[None, twice], y[None, twice], np.ones(60)))


def test_fitness_of_many_classes(rng):
    codes, value = rng.integers(0, 3, 60), rng.normal(size=(3, 60))
    labels = np.array([np.where(codes == c, 1.0, -1.0) for c in range(3)])
    found = fitness_of("balanced_accuracy")[0](value, labels, np.ones(60))
    assert found[0] == pytest.approx(balanced_accuracy_score(codes, value.argmax(axis=0)))
    assert found[1] == pytest.approx(np.mean([roc_auc_score(codes == c, value[c]) for c in range(3)]), abs=2e-3)


def test_what_a_solver_leaves_open_orders_nothing():
    """All rows in one class, decision values that differ in the fifth place: an AUC of one half."""
    y, noise = np.where(np.arange(20) % 4 == 0, 1.0, -1.0), 1e-5 * np.arange(20) % 7e-5
    g_mean, auc, _ = fitness_of("g_mean")[0]((-1.0 + noise)[None], y[None], np.ones(20))
    assert (g_mean, auc) == (0.0, 0.5)


def test_a_metric_of_ones_own():
    cohort = make_cohort(60, 40, n_relevant=5, effect=1.5, random_state=0)
    seen = []

    def metric(y, value):
        assert set(np.unique(y)) == {-1.0, 1.0}
        seen.append(len(y))
        return roc_auc_score(y, value)

    made = recipes.symon(d=8, metric=metric, threshold="margin", random_state=0, **QUICK).fit(cohort.X, cohort.y)
    assert set(seen) == {18}  # three tenths of 60 rows
    same = recipes.symon(d=8, metric="auc", threshold="margin", random_state=0, **QUICK).fit(cohort.X, cohort.y)
    assert made.path_.stop.details["validation"] == pytest.approx(same.path_.stop.details["validation"])
    with pytest.raises(InputError, match=r"metric is len and failed .TypeError: .* it must take the labels and the"):
        recipes.symon(d=8, metric=len, threshold="margin", **QUICK).fit(cohort.X, cohort.y)
    with pytest.raises(InputError, match="metric returned nan"):
        recipes.symon(d=8, metric=lambda *_: np.nan, threshold="margin", **QUICK).fit(cohort.X, cohort.y)


@pytest.mark.parametrize("judged", [True, False], ids=["held-out", "own-rows"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("kernel", "machine"), list(itertools.product(KERNELS, ["c_svc", "svdd", "l1", "mkl"])))
def test_sums_that_are_updated_are_the_matrix_made_anew(kernel, machine, average, judged, rng, table_of):
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(30, 40)) + (y > 0)[:, None] * (np.arange(40) < 6)
    parts = {"kernel": KERNELS[kernel](average=average), "machine": MACHINES[machine]()}
    if refuses(**parts, criterion=SymmetricalUncertainty(), search=Harmony()):
        pytest.skip("refused by compatibility")
    if machine == "svdd" and not judged:
        pytest.skip("rows on the sphere have a decision value of 0, whose order is rounding")
    if "tol" in parts["machine"].get_params():
        parts["machine"].set_params(tol=1e-9 if machine != "mkl" else 1e-6)
    table, weight = table_of(X), rng.integers(1, 3, 30).astype(float)
    start = parts["kernel"].start(table) * rng.uniform(0.5, 1.5, 40) ** 2
    held = JudgingRows(rng.normal(size=(11, 40)), np.where(np.arange(11) % 2, 1.0, -1.0)[None], np.ones(11))
    problem = Problem(table, y[None], weight[None], weight, start, **parts, criterion=None)
    problem.validation = held if judged else None
    metric, pool = fitness_of("auc")[0], np.arange(5, 40)
    subsets, bits = Subsets(problem, pool, metric), rng.random(35) < 0.5
    most = ~np.isin(np.arange(35), rng.choice(35, 9, replace=False))
    for base, change in (
        (bits, 0),
        (bits, 1),
        (bits, 3),
        (bits, 20),
        (most, 0),
        (most, 2),
        (most, 9),
        (most | True, 0),
    ):
        bits = base.copy()
        bits[rng.choice(35, change, replace=False)] ^= True
        slow, _ = fitness_plainly(problem, pool[bits], metric)
        np.testing.assert_allclose(subsets.fitness(bits), slow, rtol=1e-4, atol=1e-4 if machine == "mkl" else 1e-6)


# -- the search ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(80, 60, n_relevant=6, effect=1.4, prevalence=0.35, random_state=3)


def fitted(cohort, **settings):
    asked = {"d": 8, "threshold": "margin", "random_state": 0, **QUICK, **settings}
    return recipes.symon(**asked).fit(cohort.X, cohort.y)


def test_every_harmony_is_kept_with_its_fitness_and_the_best_so_far(cohort):
    path = fitted(cohort).path_
    tried = path.trials
    made = len(tried.size)
    assert made == 8 + 25
    assert (tried.size == 8).all()
    assert tried.fitness.shape == (made, 3)
    for t in range(made):
        assert len(tried.support(t)) == 8
        assert tried.best[t] == max(range(t + 1), key=lambda k: (*tried.fitness[k], -k))
    assert set(path.order[:8]) == set(tried.support(int(tried.best[-1])))
    assert path.stop.details == {"metric": "G-mean", "validation": tried.fitness[tried.best[-1], 0], "harmonies": made}
    assert path.stop.size == 8
    assert sorted(path.order) == list(range(60))


def test_the_fitness_is_the_machine_on_rows_that_it_did_not_see(cohort, monkeypatch):
    """Each harmony's fitness again, from scratch, by a support vector machine of scikit-learn."""
    from sklearn.svm import SVC

    problems = []
    plain = Harmony.run
    monkeypatch.setattr(
        Harmony, "run", lambda self, problem, rng: problems.append(problem) or plain(self, problem, rng)
    )
    made = fitted(cohort)
    (problem,) = problems
    held = problem.validation
    assert isinstance(held, JudgingRows)
    assert held.y.shape[1] + problem.y.shape[1] == 80
    inside = {tuple(row) for row in np.round(problem.table.Z, 9)}
    assert not any(tuple(row) in inside for row in np.round(held.Z, 9))
    metric = fitness_of("g_mean")[0]
    for t in range(0, len(made.path_.trials.size), 4):
        chosen = made.path_.trials.support(t)
        machine = SVC(kernel="linear", tol=1e-8).fit(problem.table.Z[:, chosen], problem.y[0])
        value = machine.decision_function(held.Z[:, chosen])
        found = metric(value[None], held.y, held.weight)
        np.testing.assert_allclose(made.path_.trials.fitness[t], found, atol=2e-3)


def test_the_same_seed_gives_the_same_harmonies(cohort):
    one, two = fitted(cohort).path_.trials, fitted(cohort).path_.trials
    np.testing.assert_array_equal(one.bits, two.bits)
    np.testing.assert_array_equal(one.fitness, two.fitness)
    assert not np.array_equal(one.bits, fitted(cohort, random_state=1).path_.trials.bits)


@pytest.mark.parametrize(("hmcr", "par"), list(itertools.product(harmony.HMCR_READINGS, harmony.PAR_READINGS)), ids=str)
def test_bits_come_from_the_memory_as_often_as_each_reading_says(hmcr, par):
    """A memory of ones, a late improvisation: what is left of them tells both rates."""
    search = Harmony(hmcr=0.8, par=(0.2, 0.6), hmcr_reading=hmcr, par_reading=par, improvisations=100)
    share = search._new(np.ones((4, 200_000), dtype=bool), 50, np.random.default_rng(0)).mean()
    taken = 0.8 if hmcr == "usual" else 0.2
    at_half = 0.2 if par == "printed" else 0.4
    kept = 1.0 - at_half if par == "usual" else at_half
    assert share == pytest.approx(taken * kept + (1 - taken) * 0.5, abs=0.005)


def test_a_pool_is_searched_alone(cohort):
    plain = recipes.su(n_features_to_select=11, threshold="margin").fit(cohort.X, cohort.y)
    made = fitted(cohort, pool=0.05)
    tried = made.path_.trials
    reached = set(np.concatenate([tried.support(t) for t in range(len(tried.size))]))
    assert len(reached) <= 8 + 3
    weights = made.scores_
    assert min(weights[list(reached)]) >= np.sort(weights)[-11]
    assert made.n_features_ == 8
    assert plain.n_features_ == 11


def test_from_a_factor_of_two_on_it_is_the_plain_top_d(cohort):
    """The order of the weights is all that is left: every vector becomes the same, up to equal weights."""
    made = fitted(cohort, ripple=3, criterion="fisher", d=0.2)
    assert "all members of the memory were equal after 0 improvisations" in made.path_.stop_reason
    best = np.argsort(-made.scores_, kind="stable")[:12]
    assert set(np.flatnonzero(made.support_)) == set(best)


def test_a_range_of_sizes_is_searched(cohort):
    tried = fitted(cohort, d=(3, 20), improvisations=60).path_.trials
    assert tried.size.min() >= 3
    assert tried.size.max() <= 20
    assert len(np.unique(tried.size)) > 5
    shares = fitted(cohort, d=(0.05, 0.5)).path_.trials.size
    assert 3 <= shares.min() <= shares.max() <= 30


def test_a_penalty_makes_subsets_smaller(cohort):
    free, dear = (fitted(cohort, d=(2, 40), size_penalty=p, improvisations=60).n_features_ for p in (0.0, 1.0))
    assert dear < free


def test_features_to_keep_are_in_every_harmony(cohort):
    names = [cohort.X.columns[50], cohort.X.columns[51]]
    made = fitted(cohort, keep=names)
    tried = made.path_.trials
    assert all({50, 51} <= set(tried.support(t)) for t in range(len(tried.size)))
    assert made.support_[[50, 51]].all()
    assert fitted(cohort, keep=list(cohort.X.columns[:12])).n_features_ == 12


def test_a_number_of_features_takes_the_place_of_d(cohort):
    made = fitted(cohort, n_features_to_select=5)
    assert (made.path_.trials.size == 5).all()
    assert made.path_.stop.size == made.n_features_ == 5
    many = fitted(cohort, d=10, ensemble=3)
    assert many.n_features_ == 10
    assert many.path_.trials is None  # the agreed ranking is no harmony
    assert fitted(cohort, d=0.2, prefilter=("fisher", 20)).n_features_ == 12  # a share of all columns
    assert 6 <= fitted(cohort, d=(0.1, 20)).n_features_ <= 20


def test_a_kept_column_that_varies_only_among_the_rows_set_aside(cohort):
    X = cohort.X.copy()
    X["once"] = (np.arange(80) == 5).astype(float)
    for seed in range(6):
        made = fitted(type(cohort)(X, cohort.y, cohort.truth), keep=["once"], random_state=seed, improvisations=2)
        assert made.support_[-1]
        assert made.n_features_ == 8


def test_a_literal_run(cohort):
    made = fitted(cohort, tuning="literal", cuts="mdl", memory=3, improvisations=3)
    assert made.n_features_ == 8
    wide = make_cohort(40, 300, random_state=0)
    with pytest.raises(InputError, match=r"tuning is 'literal' and 300 features are searched: .* at most 200; use"):
        fitted(wide, tuning="literal")


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial", "clinical"])
@pytest.mark.parametrize("machine", ["c_svc", "svdd"])
def test_any_kernel_and_machine(kernel, machine, cohort):
    made = fitted(cohort, kernel=kernel, machine=machine, C=10.0, class_weight="balanced")
    assert made.n_features_ == 8
    assert made.path_.stop.details["validation"] >= made.path_.trials.fitness[0, 0]


def test_mixed_columns_on_the_clinical_kernel(rng):
    import pandas as pd

    y = np.arange(70) % 3 == 0
    X = pd.DataFrame(rng.normal(size=(70, 8)), columns=list("abcdefgh"))
    X["word"] = pd.Series(np.where(rng.random(70) < 0.85, np.where(y, "yes", "no"), "maybe"), dtype=object)
    X["level"] = pd.Series(rng.choice(["low", "high"], 70), dtype=object)
    X.iloc[::9, 0] = np.nan
    made = recipes.symon(d=3, kernel="clinical", threshold="margin", random_state=0, **QUICK).fit(X, y)
    assert "word" in made.get_feature_names_out()


def test_columns_that_do_not_vary_and_a_prefilter_are_told_in_the_tables_own_numbers(cohort):
    X = cohort.X.copy()
    X.insert(0, "same", 1.0)
    made = recipes.symon(d=4, prefilter=("fisher", 10), threshold="margin", random_state=0, **QUICK).fit(X, cohort.y)
    tried = made.path_.trials
    assert tried.n == 61
    assert all(0 not in tried.support(t) for t in range(len(tried.size)))
    assert set(np.flatnonzero(made.support_)) == set(tried.support(int(tried.best[-1])))


def test_many_classes(rng):
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 20))
    X[:, 0] += 2.0 * (y == 1)
    X[:, 1] += 2.0 * (y == 2)
    made = recipes.symon(d=6, random_state=0, **QUICK).fit(X, y)
    assert made.support_[:2].all()


def test_the_plot_shows_the_harmonies(cohort, tmp_path):
    figure = plot_path(fitted(cohort).path_, tmp_path / "harmonies.png")
    assert (tmp_path / "harmonies.png").stat().st_size > 5000
    (axes,) = figure.axes
    assert axes.get_ylabel() == "G-mean on the validation rows"


def test_too_few_rows_to_set_aside(rng):
    X, y = rng.normal(size=(12, 5)), np.arange(12) < 1
    with pytest.raises(InputError, match=r"search: validation is 0.3 and a class has too few rows .* use another"):
        SVMSelector(search="harmony", criterion="su", threshold="margin").fit(X, y)


@pytest.mark.parametrize(
    "wrong",
    [
        {"d": 0},
        {"d": 1.5},
        {"d": (0.5, 0.2)},
        {"d": "few"},
        {"d": (1, 2, 3)},
        {"ripple": 0},
        {"pool": -0.1},
        {"memory": 1},
        {"improvisations": 0},
        {"hmcr": 1.2},
        {"hmcr": None},
        {"size_penalty": None},
        {"par": (0.9, 0.45)},
        {"par": 0.5},
        {"hmcr_reading": "other"},
        {"par_reading": 3},
        {"metric": "accuracy"},
        {"metric": int},
        {"size_penalty": True},
        {"tuning": "fast"},
        {"batches": 0},
        {"validation": 0.0},
        {"validation": 0.8},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(wrong):
    name = next(iter(wrong))
    with pytest.raises(InputError, match=f"search: {name} is .*; (it must|the smaller)"):
        Harmony(**wrong).check()


@pytest.mark.parametrize("replaces", [True, False])
def test_an_equally_fit_vector_replaces_the_worst_member_or_not(replaces, monkeypatch):
    """Where all vectors are equally fit the memory goes on changing, or stays what it was."""
    memories, new, improvise = [], Harmony._new, Harmony._improvise

    def level(self, sizes, ripple, name):
        return improvise(self, sizes, replace(ripple, fitness=lambda _: (0.5,)), name)

    monkeypatch.setattr(Harmony, "_improvise", level)
    monkeypatch.setattr(
        Harmony, "_new", lambda self, memory, *rest: memories.append(memory) or new(self, memory, *rest)
    )
    cohort = make_cohort(40, 12, n_relevant=2, random_state=0)
    settings = {"d": 3, "memory": 4, "improvisations": 12, "threshold": "margin", "random_state": 0}
    recipes.symon(replace_equal=replaces, **settings).fit(cohort.X, cohort.y)
    changed = [not np.array_equal(memory, memories[0]) for memory in memories[1:]]
    assert any(changed) == replaces
