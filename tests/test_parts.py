"""Parts written outside the package: a kernel, a filter, a machine and a search, in a selector and in a study."""

from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import RFE
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

import marginsieve
from marginsieve import SVMSelector, recipes
from marginsieve.algebra import GenericGram
from marginsieve.bench import Suite, run_suite
from marginsieve.contracts import (
    NUMBERS,
    EntersFeatures,
    FitsBudget,
    HasMargin,
    Path,
    Scalable,
    Solution,
    Step,
)
from marginsieve.criteria import CRITERIA, FILTERS
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.fitting.held_out import choose_size
from marginsieve.kernels import KERNELS
from marginsieve.machines import CSVC, L1SVC, MACHINES
from marginsieve.problem import size_grid
from marginsieve.searches import SEARCHES, Backward, Harmony

FIXED = {"n_features_to_select": 3, "threshold": "margin", "random_state": 0}


# -- the parts ------------------------------------------------------------------------------------------------------


class Laplace:
    """K(x, z) = exp(-sum_j w_j |x_j - z_j|), every w_j = 1 / n at the start."""

    kinds = NUMBERS
    missing = sparse = additive = linear = unit_free = False

    def start(self, table):
        return np.full(table.shape[1], 1.0 / table.shape[1])

    def divisor(self, table, live):
        return 1.0

    def bind(self, table, feature_weight, live):
        return GenericGram(self, table, feature_weight, live)

    def base(self, u, v, kind, spread):
        return -np.abs(u - v)

    def outer(self, A):
        return np.exp(A)

    def outer_derivative(self, A, order=1):
        return np.exp(A)


class Intersection(Laplace):
    """K(x, z) = sum_j w_j min(x_j, z_j) of numbers that are not negative: a sum over features."""

    additive = True

    def base(self, u, v, kind, spread):
        return np.minimum(u, v)

    def outer(self, A):
        return A

    def outer_derivative(self, A, order=1):
        return np.ones_like(A)


def mean_gap(table, y, weight):
    """|difference of the means|, by column, added over the class problems: a filter is a function."""
    total = np.zeros(table.shape[1])
    for row in y:
        high, low = (np.average(table.Z[row == side], axis=0, weights=weight[row == side]) for side in (1, -1))
        total += np.abs(high - low)
    return total


class LeastSquares:
    """min 1/2 c'Kc + C/2 sum_i cost_i (y_i - f(x_i))^2, f(x) = sum_i c_i K(x_i, x) + b: a machine on a Gram."""

    needs = "gram"
    additive_only = False
    kinds = frozenset()

    def __init__(self, C=1.0):
        self.C = C

    def solve(self, gram, y, cost, warm=None):
        m = len(y)
        system = np.block([[gram.matrix() + np.diag(1.0 / (self.C * cost)), np.ones((m, 1))], [np.ones((1, m)), 0.0]])
        *c, b = np.linalg.solve(system, np.r_[y, 0.0])
        c = np.array(c)
        value = gram.matrix() @ c + b
        objective = 0.5 * c @ gram.matrix() @ c + 0.5 * self.C * cost @ (y - value) ** 2
        return Solution(c, float(b), float(objective), 0.0, np.abs(y - value))

    def decision(self, solution, gram, Z):
        return gram.apply(solution.coef, Z) + solution.intercept


class LeastSquaresWithMargin(LeastSquares):
    """The same, that also offers the capability which criteria of the margin require."""

    def squared_norm(self, solution, gram):
        return float(solution.coef @ gram.matrix() @ solution.coef)


class RandomOrder:
    """Features in a random order, those to keep first: a search that needs nothing."""

    requires = ()
    ranks_by = frozenset()
    multiclass = True

    def run(self, problem, rng):
        n = problem.table.shape[1]
        order = rng.permutation(n)
        order = np.r_[problem.keep, order[~np.isin(order, problem.keep)]].astype(np.intp)
        steps = tuple(Step(size, 0.0, 0.0, 0.0) for size in range(n, 0, -1))
        return Path(order, -np.argsort(order).astype(float), steps, "a random order")


@runtime_checkable
class CountsSamples(Protocol):
    """Tells how many samples it used: a capability of a third party."""

    def count(self, solution): ...


class OfTwo(RandomOrder):
    """A random order for machines that count samples, and for two classes."""

    requires = (CountsSamples,)
    multiclass = False


class Counting(CSVC):
    """C-SVC that has the third party's capability."""

    def count(self, solution):
        return int(np.count_nonzero(solution.coef))


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(60, 12, n_relevant=3, effect=2.0, random_state=0)


@pytest.fixture(scope="module")
def planted(cohort):
    return np.isin(cohort.X.columns, list(cohort.truth.features))


def refused(cohort, sentence, X=None, y=None, **parts):
    """The whole sentence."""
    with pytest.raises(InputError) as refusal:
        SVMSelector(**{"criterion": None, **FIXED, **parts}).fit(
            cohort.X if X is None else X, cohort.y if y is None else y
        )
    assert str(refusal.value) == sentence


def offered(axis, *names, fits):
    """How a sentence offers the parts of an axis that fit: these, and whatever else is registered."""
    dictionary = {"kernel": KERNELS, "machine": MACHINES, "criterion": CRITERIA, "search": SEARCHES}[axis]
    shown = [repr(name) for name, make in dictionary.items() if fits(make())]
    assert set(map(repr, names)) <= set(shown)
    return f"{axis}={', '.join(shown[:-1])}{' or ' if len(shown) > 1 else ''}{shown[-1]}"


def has(*capabilities):
    """Whether a machine has all of these."""
    return lambda machine: all(isinstance(machine, capability) for capability in capabilities)


def takes(machine, ranks_by):
    """Whether a search takes a machine and ranks by this (None: by what it learns)."""
    by = (lambda search: ranks_by in search.ranks_by) if ranks_by else (lambda search: not search.ranks_by)
    return lambda search: by(search) and has(*search.requires)(machine)


def about(machine):
    """Whether a criterion is about a machine."""
    return lambda criterion: bool(criterion.requires) and has(*criterion.requires)(machine)


# -- a kernel -------------------------------------------------------------------------------------------------------


def test_a_kernel_is_that_of_scikit_learn(cohort):
    X = cohort.X.to_numpy()
    made = SVMSelector(kernel=Laplace(), machine=CSVC(tol=1e-8), **{**FIXED, "n_features_to_select": 1.0})
    made.fit(X, cohort.y)
    known = SVC(kernel="precomputed", tol=1e-8).fit(laplacian_kernel(X, gamma=1 / 12), cohort.y)
    new = X[:9] + 0.1
    expected = known.decision_function(laplacian_kernel(new, X, gamma=1 / 12))
    np.testing.assert_allclose(made.decision_function(new), expected, atol=1e-6)


def test_a_kernel_ranks_as_refitting_without_each_feature_does(cohort):
    """Recursive elimination by |c'Kc - c'K(without j)c|, kernel matrices made anew by scikit-learn."""
    X, left, gone = cohort.X.to_numpy(), list(range(12)), []

    def matrix(features):
        return laplacian_kernel(X[:, features], gamma=1 / 12)

    while len(left) > 1:
        K, c = matrix(left), np.zeros(60)
        known = SVC(kernel="precomputed", tol=1e-8).fit(K, cohort.y)
        c[known.support_] = known.dual_coef_[0]
        change = [abs(c @ (K - matrix([k for k in left if k != j])) @ c) for j in left]
        gone.append(left.pop(int(np.argmin(change))))
    made = SVMSelector(kernel=Laplace(), machine=CSVC(tol=1e-8), search=Backward(step=1), **FIXED).fit(X, cohort.y)
    np.testing.assert_array_equal(made.path_.order, [*left, *gone[::-1]])


@pytest.mark.parametrize(
    "parts",
    [
        {"criterion": "margin", "search": "backward"},
        {"criterion": "loss", "search": "top_k"},
        {"criterion": "radius", "machine": "svdd", "search": "backward"},
        {"criterion": None, "search": "scaling"},
        {"criterion": None, "machine": "svdd", "search": "scaling"},
        {"criterion": "fisher", "search": Harmony(d=3, memory=4, improvisations=4)},
        {"criterion": "margin", "search": "backward", "prefilter": ("fast", 6)},
        {"criterion": "fisher", "search": "top_k", "ensemble": 3},
    ],
    ids=str,
)
def test_a_kernel_goes_with_every_search(parts, cohort, planted):
    made = SVMSelector(kernel=Laplace(), standardize=True, **FIXED, **parts).fit(cohort.X, cohort.y)
    assert sorted(made.ranking_) == list(range(1, 13))
    if parts.get("machine") != "svdd":
        assert made.support_[planted].sum() >= 2
        assert made.score(cohort.X, cohort.y) > 0.75
    assert clone(made).fit(cohort.X, cohort.y).ranking_.tolist() == made.ranking_.tolist()


def test_a_kernel_that_is_a_sum_goes_with_multiple_kernel_learning(cohort, planted):
    X = (cohort.X - cohort.X.min()) / (cohort.X.max() - cohort.X.min())
    made = SVMSelector(kernel=Intersection(), machine="mkl", criterion="learned", **FIXED).fit(X, cohort.y)
    assert made.support_[planted].all()
    assert made.score(X, cohort.y) > 0.8


def test_what_a_kernel_does_not_take_is_refused(cohort):
    linear = offered("kernel", "linear", fits=lambda kernel: kernel.linear)
    weights = f"has weights for columns, not a kernel such as Laplace: use {linear}"
    refused(cohort, f"L1SVC {weights}", kernel=Laplace(), machine="l1", search="learned")
    sums = offered("kernel", "linear", "clinical", fits=lambda kernel: kernel.additive)
    mkl = f"MKL weighs one kernel per feature and Laplace is not a sum of such: use {sums}"
    refused(cohort, mkl, kernel=Laplace(), machine="mkl", criterion="learned")
    dense = "the Laplace kernel needs a dense table and this one is sparse: use kernel='linear' or X.toarray()"
    thin = sparse.csr_array(cohort.X.to_numpy())
    refused(cohort, dense, X=thin, kernel=Laplace(), criterion="margin")
    with pytest.raises(
        InputError, match="text or categories where the Laplace kernel needs numbers, in 'word': encode"
    ):
        SVMSelector(kernel=Laplace(), **FIXED).fit(cohort.X.assign(word="a"), cohort.y)
    with pytest.raises(InputError, match=r"1 cells that are missing \(NaN\)"):
        SVMSelector(kernel=Laplace(), **FIXED).fit(cohort.X.where(np.arange(60)[:, None] + np.arange(12) > 0), cohort.y)
    with pytest.raises(InputError, match=r"kernel is .*mean_gap.*; it must be .* 'start', 'divisor', 'bind'"):
        SVMSelector(kernel=mean_gap, **FIXED).fit(cohort.X, cohort.y)


# -- a filter -------------------------------------------------------------------------------------------------------


def test_a_filter_is_a_function(cohort, planted):
    made = SVMSelector(criterion=mean_gap, search="top_k", **FIXED).fit(cohort.X, cohort.y)
    X, case = cohort.X.to_numpy(), np.asarray(cohort.y) == made.classes_[1]
    np.testing.assert_allclose(made.scores_, np.abs(X[case].mean(axis=0) - X[~case].mean(axis=0)))
    np.testing.assert_array_equal(made.path_.order, np.argsort(-made.scores_))
    assert made.support_[planted].all()
    assert made.score(cohort.X, cohort.y) > 0.8


@pytest.mark.parametrize(
    "parts",
    [
        {"criterion": mean_gap, "search": Harmony(d=3, memory=4, improvisations=4)},
        {"criterion": mean_gap, "search": "merge"},
        {"criterion": mean_gap, "search": "top_k", "machine": "l1"},
        {"criterion": mean_gap, "search": "top_k", "n_features_to_select": "best", "cv": 3, "probability": True},
        {"criterion": "margin", "search": "backward", "prefilter": (mean_gap, 5)},
    ],
    ids=["harmony", "merge", "l1", "inner folds", "prefilter"],
)
def test_a_filter_goes_with_every_search_that_ranks_by_one(parts, cohort, planted):
    made = SVMSelector(**{**FIXED, **parts}).fit(cohort.X, cohort.y)
    assert sorted(made.ranking_) == list(range(1, 13))
    assert made.support_[planted].any()
    assert made.score(cohort.X, cohort.y) > 0.75


def test_a_filter_takes_many_classes(cohort):
    y = np.arange(60) % 3
    X = cohort.X.to_numpy() + 3.0 * (np.arange(12) == 7) * y[:, None]
    assert SVMSelector(criterion=mean_gap, search="top_k", **FIXED).fit(X, y).ranking_[7] == 1


def test_what_a_filter_does_not_do_is_refused(cohort):
    drop = "mean_gap scores a column by the labels alone, so its order does not change while features drop: use"
    refused(cohort, f"{drop} search='top_k' instead of Backward", criterion=mean_gap)
    refused(
        cohort,
        "PenalizedScaling ranks by what it learns, not by mean_gap: use criterion=None",
        criterion=mean_gap,
        search="scaling",
    )
    refused(
        cohort,
        "criterion is mean_gap and columns hold categories ('word'): use it on tables of numbers alone, or the filter "
        "for both, mixed_test",
        X=cohort.X.assign(word=np.where(np.arange(60) % 2, "a", "b")),
        kernel="clinical",
        criterion=mean_gap,
        search="top_k",
    )


# -- a machine ------------------------------------------------------------------------------------------------------


def test_a_machine_is_that_of_scikit_learn(cohort):
    X = cohort.X.to_numpy()
    made = SVMSelector(machine=LeastSquares(C=0.5), criterion="fisher", search="top_k", **FIXED).fit(X, cohort.y)
    case = np.asarray(cohort.y) == made.classes_[1]
    known = Ridge(alpha=2.0).fit(X[:, made.support_], np.where(case, 1.0, -1.0))
    np.testing.assert_allclose(made.decision_function(X), known.predict(X[:, made.support_]), atol=1e-8)
    np.testing.assert_array_equal(made.predict(X) == made.classes_[1], known.predict(X[:, made.support_]) > 0)


@pytest.mark.parametrize(
    "parts",
    [
        {"criterion": "fisher", "search": "top_k", "kernel": "gaussian", "standardize": True},
        {"criterion": "fisher", "search": "top_k", "kernel": Laplace(), "standardize": True},
        {"criterion": "mixed_test", "search": "merge"},
        {"criterion": "fisher", "search": Harmony(d=3, memory=4, improvisations=4)},
        {"criterion": mean_gap, "search": "top_k", "n_features_to_select": "auto", "cv": 3, "probability": True},
        {"criterion": None, "search": RandomOrder(), "n_features_to_select": 12},
        {"criterion": "fisher", "search": "top_k", "class_weight": "balanced", "ensemble": 3},
    ],
    ids=["gaussian", "laplace", "merge", "harmony", "inner folds", "random order", "ensemble"],
)
def test_a_machine_goes_with_every_search_that_asks_nothing_of_it(parts, cohort, planted):
    made = SVMSelector(**{**FIXED, "machine": LeastSquares(), **parts}).fit(cohort.X, cohort.y)
    assert made.support_[planted].any()
    assert made.score(cohort.X, cohort.y) > 0.75


def test_a_machine_takes_many_classes(cohort):
    y = np.arange(60) % 3
    X = cohort.X.to_numpy() + 3.0 * (np.arange(12) == 7) * y[:, None] + 3.0 * (np.arange(12) == 8) * (y == 1)[:, None]
    made = SVMSelector(machine=LeastSquares(), criterion="fisher", search="top_k", **FIXED).fit(X, y)
    assert made.decision_function(X).shape == (60, 3)
    assert made.score(X, y) > 0.8


def test_a_capability_that_a_machine_lacks_is_named(cohort):
    margin = offered("machine", "c_svc", fits=has(HasMargin))
    lacks = f"needs a machine that has a margin between the classes, and LeastSquares is not one: use {margin}"
    refused(cohort, f"MarginChange {lacks}", machine=LeastSquares(), criterion="margin")
    refused(cohort, f"Loss {lacks}", machine=LeastSquares(), criterion="loss", search="top_k")
    refused(
        cohort,
        "PenalizedScaling needs a machine that has a kernel to scale, and LeastSquares is not one: use "
        + offered("machine", "c_svc", "svdd", fits=has(Scalable)),
        machine=LeastSquares(),
        search="scaling",
    )
    refused(
        cohort,
        "Budget needs a machine that is a linear program that can be given a budget, and LeastSquares is not one: use "
        + offered("machine", "hinge", "ramp", fits=has(FitsBudget))
        + f" with {offered('kernel', 'linear', fits=lambda kernel: kernel.linear)}",
        machine=LeastSquares(),
        search="budget",
        kernel="gaussian",
    )
    refused(
        cohort,
        "Backward needs a criterion to rank by, and none is about LeastSquares: use search='top_k' with a filter such "
        "as criterion='mixed_test'",
        machine=LeastSquares(),
    )


def test_a_machine_with_a_capability_is_eliminated_by_it(cohort, planted):
    """On the linear kernel the change of the margin is the squared weight: RFE on ridge regression."""
    X = cohort.X.to_numpy()
    machine = LeastSquaresWithMargin(C=0.5)
    made = SVMSelector(machine=machine, search=Backward(step=1), **FIXED).fit(X, cohort.y)
    labels = np.where(np.asarray(cohort.y) == made.classes_[1], 1.0, -1.0)
    known = RFE(Ridge(alpha=2.0), n_features_to_select=1, step=1).fit(X, labels)
    np.testing.assert_array_equal(made.ranking_, known.ranking_)
    assert made.support_[planted].sum() >= 2
    entering = offered("machine", "l1", "hinge", "fsv", "ramp", fits=has(EntersFeatures))
    refused(
        cohort,
        "LearnedPath needs a machine that chooses features by itself, more of them as C grows, and "
        f"LeastSquaresWithMargin is not one: use {entering}, or "
        + offered("search", "backward", "harmony", "top_k", fits=takes(machine, "criterion"))
        + f" with {offered('criterion', 'margin', 'loss', fits=about(machine))}",
        machine=machine,
        search="learned",
    )


class WeightOfColumn:
    """|sum_i c_i x_ij|, by column: a criterion that asks nothing of the machine; on the linear kernel it is |w_j|."""

    requires = ()

    def score(self, problem, gram, solutions):
        return sum(np.abs(problem.table.Z[:, gram.features].T @ solution.coef) for solution in solutions)


def test_a_criterion_goes_with_every_machine_on_a_kernel(cohort, planted):
    for machine, same in (("c_svc", CSVC()), (LeastSquares(), LeastSquaresWithMargin())):
        made = SVMSelector(machine=machine, criterion=WeightOfColumn(), **FIXED).fit(cohort.X, cohort.y)
        assert made.support_[planted].sum() >= 2
        by_margin = SVMSelector(machine=same, **FIXED).fit(cohort.X, cohort.y)
        np.testing.assert_array_equal(made.ranking_, by_margin.ranking_)
    for search in ("backward", "top_k"):
        refused(
            cohort,
            "WeightOfColumn scores features on a kernel and L1SVC has weights for columns: use "
            + offered("machine", "c_svc", "svdd", "mkl", fits=lambda machine: machine.needs == "gram")
            + f", or {offered('search', 'learned', fits=takes(L1SVC(), None))} with criterion=None",
            machine="l1",
            criterion=WeightOfColumn(),
            search=search,
        )


# -- a search -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["c_svc", "svdd", "l1", "hinge", "mkl"])
def test_a_search_goes_with_every_machine(machine, cohort):
    made = SVMSelector(machine=machine, criterion=None, search=RandomOrder(), keep=["g05"], **FIXED)
    made.fit(cohort.X, cohort.y)
    assert sorted(made.ranking_) == list(range(1, 13))
    assert made.get_support()[list(cohort.X.columns).index("g05")]
    assert made.n_features_ == 3
    assert made.path_.stop_reason == "a random order"
    assert made.predict(cohort.X).shape == (60,)
    again = clone(made).fit(cohort.X, cohort.y)
    np.testing.assert_array_equal(again.ranking_, made.ranking_)
    other = clone(made).set_params(random_state=1).fit(cohort.X, cohort.y)
    assert not np.array_equal(other.ranking_, made.ranking_)


def test_inner_folds_score_the_sizes_of_a_search(cohort):
    chosen = {**FIXED, "n_features_to_select": "best", "cv": 3}
    made = SVMSelector(criterion=None, search=RandomOrder(), **chosen).fit(cohort.X, cohort.y)
    assert [step.size for step in made.path_.steps] == list(range(12, 0, -1))
    scored = [step for step in made.path_.steps if np.isfinite(step.score)]
    assert [step.size for step in scored] == list(size_grid(12, 1)[::-1])
    sizes, curve = [step.size for step in scored], np.array([step.score for step in scored])
    assert made.n_features_ == choose_size(sizes, curve, 12, "best")


def test_what_a_search_does_not_take_is_refused(cohort):
    refused(
        cohort,
        "RandomOrder ranks by what it learns, not by MarginChange: use criterion=None",
        search=RandomOrder(),
        criterion="margin",
    )
    refused(
        cohort,
        "OfTwo needs a machine that tells how many samples it used, and CSVC is not one: use "
        + offered("search", "scaling", fits=takes(CSVC(), None))
        + f", or {offered('search', 'backward', 'harmony', 'top_k', fits=takes(CSVC(), 'criterion'))} "
        + f"with {offered('criterion', 'margin', 'loss', fits=about(CSVC()))}",
        search=OfTwo(),
    )
    refused(
        cohort,
        "OfTwo needs a machine that tells how many samples it used, and LeastSquares is not one: use another machine",
        search=OfTwo(),
        machine=LeastSquares(),
    )
    made = SVMSelector(machine=Counting(), criterion=None, search=OfTwo(), class_weight="balanced", **FIXED)
    assert made.fit(cohort.X, cohort.y).n_features_ == 3
    refused(
        cohort,
        "Only binary classification is supported. The type of the target is multiclass: OfTwo takes two classes and y "
        "has 3 classes; use two, or svm_l1",
        y=np.arange(60) % 3,
        search=OfTwo(),
        machine=Counting(),
    )
    with pytest.raises(InputError, match=r"search is .*LeastSquares.*; it must be a name or an object with .*'run'\)$"):
        SVMSelector(search=LeastSquares(), criterion=None).fit(cohort.X, cohort.y)


# -- in a study -----------------------------------------------------------------------------------------------------

BIBTEX = """@article{nobody2025,
  author = {Nobody, A. and Noone, B.},
  title = {Parts of one's own},
  journal = {Journal of Tests},
  year = {2025},
  pages = {1--2},
}"""


@pytest.fixture
def registered():
    """Recipes of these parts, removed afterwards."""
    before, references = dict(recipes.RECIPES), dict(recipes.registry._extra)
    register = recipes.register("nobody2025", family="elimination", bibtex=BIBTEX)

    @register
    def laplace_rfe(**settings):
        """Recursive elimination on the Laplace kernel."""
        return SVMSelector(kernel=Laplace(), **settings)

    @register
    def gap(**settings):
        """The largest differences of means."""
        return SVMSelector(criterion=mean_gap, search="top_k", **settings)

    @register
    def least_squares_rfe(C=1.0, **settings):
        """Recursive elimination by a least-squares machine."""
        return SVMSelector(machine=LeastSquaresWithMargin(C=C), **settings)

    @register
    def at_random(**settings):
        """Features in a random order."""
        return SVMSelector(criterion=None, search=RandomOrder(), **settings)

    yield ["laplace_rfe", "gap", "least_squares_rfe", "at_random"]
    recipes.RECIPES.clear()
    recipes.RECIPES.update(before)
    recipes.registry._extra.clear()
    recipes.registry._extra.update(references)


def test_recipes_of_ones_own_are_studied(registered, cohort):
    study = marginsieve.study(
        cohort.X, cohort.y, methods=registered, cv=3, n_repeats=1, without=("suspects", "references"), n_permutations=24
    )
    titles = [one.method.title for one in study.run.selections]
    assert titles == ["laplace-rfe", "gap", "least-squares-rfe", "at-random", "all features"]
    assert study.main.method.title == "laplace-rfe"
    assert study.predictions.shape[0] == 60
    chosen = {one.method.title: set(one.selector.get_feature_names_out()) for one in study.run.selections}
    for one in study.run.selections[:3]:
        assert one.scores.value["auc"] > 0.8
        assert chosen[one.method.title] & cohort.truth.features
    result = study.result
    assert [one["source"] for one in result["methods"][:4]] == [
        "Nobody and Noone, Parts of one's own, Journal of Tests (2025) 1-2"
    ] * 4
    assert result["methods"][2]["does"] == "Recursive elimination by a least-squares machine."
    assert BIBTEX in result["bibtex"]
    page = study.html()
    assert "least-squares-rfe" in page
    assert "at-random" in page


def test_workers_are_given_recipes_of_ones_own(registered, tmp_path):
    spec = {
        "protocol": {"name": "nested", "folds": 2, "repeats": 1},
        "data": [{"name": "toy", "cohort": {"n_samples": 40, "n_features": 8, "n_relevant": 2}}],
        "method": [{"name": name, "n_features_to_select": 2} for name in registered],
    }
    alone = run_suite(Suite.read(spec), tmp_path / "alone").scores("auc")
    assert alone["auc"].notna().all()
    pd.testing.assert_frame_equal(run_suite(Suite.read(spec), tmp_path / "two", n_jobs=2).scores("auc"), alone)


@pytest.mark.parametrize("place", range(4))
def test_each_recipe_can_be_the_main_one(place, registered, cohort):
    """By itself, through what is shown of the features, with the labels shuffled, and in two runs the same."""
    name = registered[place]
    one, two = (
        marginsieve.study(
            cohort.X,
            cohort.y,
            methods=name,
            cv=3,
            n_repeats=1,
            without=("suspects", "references"),
            n_permutations=24,
            n_features_to_select=4,
        )
        for _ in range(2)
    )
    assert one.main.method.recipe == name
    assert one.features["selected"].sum() == 4
    pd.testing.assert_frame_equal(one.features, two.features)
    pd.testing.assert_frame_equal(one.predictions, two.predictions)
    assert one.model.predict(cohort.X).shape == (60,)
    shown = {"laplace_rfe": "margin", "gap": "mean_gap", "least_squares_rfe": "margin", "at_random": "RandomOrder"}
    assert one.result["score_is"] == f"{shown[name]}, when the feature was last looked at"


class MeanGap:
    """The filter as a class, which a model file can name."""

    def __call__(self, table, y, weight):
        return mean_gap(table, y, weight)


ENTRIES = {  # axis: its dictionary, the class to enter, and a selector that names the entry
    "filter": (FILTERS, MeanGap, {"criterion": "third-party", "search": "top_k", "prefilter": ("third_party", 8)}),
    "kernel": (KERNELS, Laplace, {"kernel": "third_party"}),
    "machine": (MACHINES, LeastSquaresWithMargin, {"machine": "third_party"}),
    "search": (SEARCHES, RandomOrder, {"search": "third_party", "criterion": None, "class_weight": "balanced"}),
}


@pytest.mark.parametrize("axis", list(ENTRIES))
def test_an_entry_in_a_dictionary_is_fitted_studied_and_saved(axis, cohort, registered, monkeypatch, tmp_path):
    """After everything was imported and a model was saved: the dictionaries are read when they are needed."""
    dictionary, make, parts = ENTRIES[axis]
    saved = recipes.fisher(**FIXED).fit(cohort.X, cohort.y)
    marginsieve.save(saved, tmp_path / "before.marginsieve")
    with pytest.raises(InputError, match=r"'third.party'"):
        SVMSelector(**FIXED, **parts).fit(cohort.X, cohort.y)
    monkeypatch.setitem(dictionary, "third_party", make)
    fitted = SVMSelector(**FIXED, **parts).fit(cohort.X, cohort.y)
    assert fitted.n_features_ == 3

    @recipes.register("nobody2025", family="elimination", bibtex=BIBTEX)
    def third_party(**settings):
        """A method that names an entry."""
        return SVMSelector(**{**settings, **parts})

    study = marginsieve.study(
        cohort.X,
        cohort.y,
        methods="third-party",
        cv=3,
        n_repeats=1,
        without="suspects",
        n_features_to_select=3,
        n_permutations=24,
    )
    assert study.main.method.recipe == "third_party"
    for number, model in enumerate((fitted, study.model)):
        loaded = marginsieve.load(marginsieve.save(model, tmp_path / f"{number}.marginsieve"))
        np.testing.assert_array_equal(loaded.decision_function(cohort.X), model.decision_function(cohort.X))
        assert loaded.get_params()[{"filter": "criterion"}.get(axis, axis)] is not None


def test_a_refusal_in_a_study_names_the_recipe(registered, cohort):
    @recipes.register("nobody2025", family="elimination", bibtex=BIBTEX)
    def without_margin(**settings):
        """A machine that the criterion is not about."""
        return SVMSelector(machine=LeastSquares(), **settings)

    with pytest.raises(InputError, match=r"^without-margin: MarginChange needs a machine that has a margin between"):
        marginsieve.study(
            cohort.X,
            cohort.y,
            methods="without-margin",
            cv=3,
            n_repeats=1,
            without=("suspects", "references"),
            n_permutations=24,
        )


def test_recipes_of_ones_own_are_gone_afterwards():
    assert not {"laplace_rfe", "gap", "least_squares_rfe", "at_random", "without_margin"} & set(recipes.names())
    with pytest.raises(InputError, match="there is no method 'least-squares-rfe'"):
        recipes.get("least-squares-rfe")
    with pytest.raises(InputError, match=r"citation names 'nobody2025', which references\.bib does not have"):
        recipes.register("nobody2025", family="elimination")


def test_a_model_with_a_machine_of_ones_own_is_not_saved_and_a_study_of_it_is(registered, cohort, tmp_path):
    made = SVMSelector(machine=LeastSquares(), criterion="fisher", search="top_k", **FIXED).fit(cohort.X, cohort.y)
    with pytest.raises(InputError, match="the model has a part 'LeastSquares'"):
        marginsieve.save(made, tmp_path / "model.marginsieve")
    assert not list(tmp_path.iterdir())
    study = marginsieve.study(
        cohort.X,
        cohort.y,
        methods="least-squares-rfe",
        cv=3,
        n_repeats=1,
        without=("suspects", "references"),
        n_permutations=24,
    )
    with pytest.warns(UserWarning, match="the model is not written: the model has a part 'LeastSquares"):
        study.save(tmp_path)
    assert (tmp_path / "report.html").is_file()
    assert not (tmp_path / "model.marginsieve").exists()


def test_a_model_found_by_a_search_of_ones_own_is_saved(cohort, tmp_path):
    made = SVMSelector(criterion=None, search=RandomOrder(), class_weight="balanced", **FIXED).fit(cohort.X, cohort.y)
    loaded = marginsieve.load(marginsieve.save(made, tmp_path / "model.marginsieve"))
    np.testing.assert_array_equal(loaded.decision_function(cohort.X), made.decision_function(cohort.X))


@pytest.mark.parametrize("name", ["ramp_svm", "ramp_fs", "fs_svm", "l1_cssvm", "svm_l1"])
def test_machines_that_read_columns_get_no_kernel_matrix(name, cohort, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("a kernel matrix was made")

    monkeypatch.setattr(marginsieve.algebra.LinearGram, "build", never)
    settings = {
        "ramp_svm": {"resamples": 0},
        "ramp_fs": {"solver": "fast", "resamples": 0},
        "fs_svm": {"solver": "fast"},
    }
    made = recipes.get(name)(random_state=0, **settings.get(name, {})).fit(cohort.X, cohort.y)
    assert np.isfinite(made.decision_function(cohort.X)).all()
