"""What the parts of a method must offer and may offer, and what passes between them.

A method is a KERNEL, a MACHINE (solves for the expansion), a CRITERION or a FILTER (scores features) and a SEARCH
(walks over subsets and returns a path). Everything that holds a part is typed by the protocols below, and no part knows
another one by name: what a part needs of another it declares, and `marginsieve.fitting.parts` turns a missing
capability into a sentence, made of the first line of its docstring.

Shapes: m training rows, n features of the table, p live features, k binary problems.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Matrix = Any  # a dense Array or a scipy.sparse array
Progress = Callable[[str, float, float], None]  # what is being done, work done, all work

T = TypeVar("T")

KINDS = ("real", "ordinal", "nominal", "boolean")
NUMBERS = frozenset({"real", "ordinal", "boolean"})
# what machines solve for: -1 or +1, numbers, or places in time: 1 is the first, minus where no event was seen
SIGNS, VALUES, TIMES = "signs", "values", "times"
CATEGORICAL = ("nominal", "boolean")  # kinds whose values are equal or not, nothing between


def is_sparse(Z: Matrix) -> bool:
    """Whether this is a scipy.sparse array or matrix."""
    return bool(sparse.issparse(Z))


# -- what passes between the parts ----------------------------------------------------------------------------------


class TableView(Protocol):
    """What a part sees of a table: codes Z (m, n), nan where a cell is missing; the kind and name of each column."""

    @property
    def Z(self) -> Matrix: ...
    @property
    def kind(self) -> tuple[str, ...]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def is_sparse(self) -> bool: ...
    @property
    def bounds(self) -> tuple[Array, Array]: ...  # (n,) the lowest and the highest value of each column
    @property
    def spread(self) -> Array: ...
    @property
    def variance(self) -> Array: ...  # (n,) of each column over the rows, which count by their weights
    @property
    def arrays(self) -> Any: ...  # marginsieve.batches.arrays.Backend where kernels are made on a device, else None
    def with_backend(self, arrays: Any) -> TableView: ...  # the same with its kernels made there
    def rows(self, index: IntArray | BoolArray) -> TableView: ...
    def sample(self, index: IntArray) -> TableView: ...  # some rows, the variances still those of all
    def columns(self, index: IntArray) -> TableView: ...
    def freeze(self) -> TableView: ...  # the same with what was computed from it
    def compute_once(self, make: Callable[[TableView], T]) -> T: ...  # made of the table once, then remembered


@dataclass(frozen=True)
class Solution:
    """f(x) = sum_i coef_i K(x_i, x) + diagonal * K(x, x) + intercept, or weights'x + intercept."""

    coef: Array  # (m,)
    intercept: float
    objective: float
    residual: float  # KKT violation, duality gap or MIP gap
    slack: Array  # (m,) evidence per sample
    converged: bool = True
    diagonal: float = 0.0  # SVDD: +1
    scale: Array | None = None  # (n,) machines that weigh each feature's kernel: roots of the weights
    weights: Array | None = None  # (p,) machines without an expansion
    expanded: Array | None = None  # the same where a category has a weight for each level
    iterations: int = 1  # machines solved on the way to this one
    bound: float = float("nan")  # no objective is below, where that is known
    status: str = ""  # of programs: "optimal", "limit" (the gap was not closed, or the clock cut the work), "heuristic"

    @property
    def is_expansion(self) -> bool:
        """Whether the coefficients of the samples are all that it consists of."""
        return self.weights is None and self.scale is None


@dataclass(frozen=True, slots=True)
class Step:
    """One subset on a path: its size, the machine's objective and residual on it, and the seconds it took."""

    size: int
    objective: float
    residual: float
    seconds: float
    score: float = float("nan")  # by cross-validation, where inner folds were used
    score_error: float = float("nan")  # its standard error over the folds


@dataclass(frozen=True)
class StopInfo:
    """The number of features that a method chose by itself, and how it came to it."""

    size: int
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)  # plain values, for reports
    emptied: bool = False  # the penalty removed every feature: what stays is the last one
    fixed: bool = False  # the size was given, not searched for
    trace: tuple[float, ...] = ()  # how far an iteration moved, one after the other
    costs_may_empty: bool = False  # with a cost for each class an empty model is no surprise

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"size": self.size, **self.details}

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Trials:
    """Every subset that a search tried, in order: T of them over n features."""

    bits: Any  # (T, n / 8) numpy.packbits
    n: int
    size: IntArray  # (T,)
    fitness: Array  # (T, 3) compared from left to right
    best: IntArray  # (T,) which was the best so far
    memory: int  # so many were drawn at random before the first one was made of others
    metric: str

    def support(self, t: int) -> IntArray:
        """The features of subset t."""
        return np.flatnonzero(np.unpackbits(self.bits[t], count=self.n)).astype(np.intp)

    def embed(self, features: IntArray, n: int) -> Trials:
        """The same in a table of n features, of which these were searched."""
        spread = np.zeros((len(self.bits), n), dtype=bool)
        spread[:, features] = np.unpackbits(self.bits, axis=1, count=self.n)
        return replace(self, bits=np.packbits(spread, axis=1), n=n)


@dataclass(frozen=True)
class Path:
    """A full ranking of the features (best first, no ties) and the steps that led to it.

    Attributes
    ----------
    order : array of int of shape (n,)
        The features, best first: a permutation of their numbers.
    scores : array of shape (n,)
        Criterion of each feature at the last step in which it was scored.
    steps : tuple of Step
        Sizes that the search went through, with the machine's objective and, where inner folds were used, a score.
    stop_reason : str
        Why the search ended, in words.
    weights : tuple of array
        Learned kernel weights of the first features of `order`, at the sizes that the search went through.
    stop : StopInfo or None
        Number of features chosen by the method, where it chooses one.
    solutions : tuple of Solution
        Solutions on that number of features, where the search computes them itself.
    n_selected : int or None
        Number of selected features.
    scored_by : str
        Name of the scores of the steps.
    trials : Trials or None
        Every subset that the search tried, where it keeps them.
    replay : mapping of int to tuple of Solution
        Solutions of the search by size, in a fit alone.
    stages : tuple of Path
        Where inner folds choose after how many moves a search ends: the features and weights after each.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> path = recipes.svm_rfe(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y).path_
    >>> path.support(2), path.n_selected
    (array([2, 6]), 2)
    """

    order: IntArray  # (n,) a permutation
    scores: Array  # (n,) by feature: the criterion when the feature was last looked at
    steps: tuple[Step, ...]
    stop_reason: str
    weights: tuple[Array, ...] = ()  # learned kernel weights of heads of `order`, at the sizes where the search stood
    stop: StopInfo | None = None  # where the method chooses the number of features itself
    solutions: tuple[Solution, ...] = ()  # on the features of that number, where the search found them itself
    n_selected: int | None = None  # how many features were selected
    scored_by: str = "score"  # what the scores of the steps are
    trials: Trials | None = None
    replay: Mapping[int, tuple[Solution, ...]] = field(default_factory=dict)  # of its machines, by size, in a fit alone
    stages: tuple[Path, ...] = ()  # what the search would have settled on had it ended earlier, in folds alone

    def weights_at(self, size: int) -> Array | None:
        """(size,) learned kernel weights of the best features, with the sum that their step had; None without."""
        known = [weight for weight in self.weights if len(weight) >= size]
        if not known:
            return None
        nearest = min(known, key=len)
        return np.asarray(nearest[:size] * (nearest.sum() / max(nearest[:size].sum(), 1e-300)))

    def moved_to(self, places: IntArray) -> Path:
        """The same path in a table whose column places[j] is feature j of this one."""
        scores = np.empty_like(self.scores)
        scores[places] = self.scores
        trials = None if self.trials is None else self.trials.embed(places, len(places))
        # solutions are for features in the order of this table
        return replace(self, order=places[self.order], scores=scores, trials=trials, solutions=(), replay={})

    def support(self, size: int) -> IntArray:
        """The features of the subset of this size, sorted."""
        return np.sort(self.order[:size])

    def with_scores(self, sizes: Sequence[int], score: Array, error: Array, by: str) -> Path:
        """The path with a score by size (and what it is); sizes that were not steps become steps, largest first."""
        known = {step.size: step for step in self.steps}
        for size, value, spread in zip(sizes, score, error, strict=True):
            step = known.get(size, Step(size, float("nan"), float("nan"), 0.0))
            known[size] = replace(step, score=float(value), score_error=float(spread))
        return replace(self, steps=tuple(known[size] for size in sorted(known, reverse=True)), scored_by=by)


class JudgingRows(NamedTuple):
    """Rows by which a machine is judged: Z (rows, n) or None for the training rows, y (k, rows), weight (rows,)."""

    Z: Matrix | None
    y: Array
    weight: Array


Metric = Callable[[Array, Array, Array], tuple[float, ...]]  # decision (k, rows), y (k, rows), weight (rows,)


class View(Protocol):
    """What a machine reads of the live features of a table: a Gram, or their columns (`Machine.needs`)."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def table(self) -> TableView: ...
    @property
    def features(self) -> IntArray: ...  # (p,) the live features, sorted
    @property
    def feature_weight(self) -> Array: ...  # (n,) over all features of the table, before the divisor
    def without(self, features: IntArray) -> View: ...


@dataclass(frozen=True)
class Resources:
    """What a part takes, as its class variable `resources`; a part without it takes what `Resources()` says.

    linear_in_rows: time and memory are in proportion to the rows, where the kernel is linear and there are fewer
    columns. peak: memory in copies of the table and in matrices of training rows by training rows, where that is more
    than what most fits take. rescales_often: a search rescales one kernel many times, so that the matrices of a large
    table stay on a device.
    """

    linear_in_rows: bool = False
    peak: tuple[float, float] = (0.0, 0.0)
    rescales_often: bool = False


@runtime_checkable
class DeclaresResources(Protocol):
    """A part that says what time and memory it takes."""

    resources: ClassVar[Resources]


def resources_of(part: object) -> Resources:
    """What a part declares; the default for functions and for parts that declare nothing."""
    return part.resources if isinstance(part, DeclaresResources) else Resources()


# -- kernels --------------------------------------------------------------------------------------------------------


class Gram(ABC):
    """A kernel bound to a table and feature weights: K = outer(A), A = sum_j w_j base_j over the live features.

    There is one subclass for each geometry in `marginsieve.algebra`. A Gram is never changed: what drops features or
    changes weights returns another.
    """

    kernel: Kernel
    table: TableView
    features: IntArray  # (p,) the live features, sorted
    feature_weight: Array  # (n,) over all features of the table, before the divisor
    linear: ClassVar[bool] = False  # K(x, z) = sum_j w_j x_j z_j
    matrix_free: ClassVar[bool] = False  # products with K are far cheaper than K, which machines do without

    @cached_property
    def divisor(self) -> float:
        """What the sum over the live features is divided by."""
        return self.kernel.divisor(self.table, self.features)

    def divide(self, values: Array) -> Array:
        """Values over the divisor."""
        return values if self.divisor == 1.0 else values / self.divisor

    @property
    def weight(self) -> Array:
        """(p,) w_j of the live features, the divisor included."""
        return self.divide(self.feature_weight[self.features])

    @abstractmethod
    def matrix(self, Z: Matrix | None = None) -> Array:
        """(m, m), or (rows, m) against new rows Z (rows, n)."""

    @abstractmethod
    def diagonal(self, Z: Matrix | None = None) -> Array:
        """(rows,): K(x, x)."""

    @abstractmethod
    def apply(self, c: Array, Z: Matrix | None = None) -> Array:
        """(rows,): K(rows, training) @ c."""

    @property
    def factor(self) -> Matrix | None:
        """(p, m): V with K = V'V, of few rows or sparse, for machines that take it in place of K; None: take K."""
        return None

    @property
    def rows_at_once(self) -> int:
        """How many rows a machine may ask `submatrix` for, where K is never made whole; 0: take K."""
        return 0

    def submatrix(self, rows: IntArray) -> Array:
        """(q, q): K of some training rows."""
        return self.matrix()[np.ix_(rows, rows)]

    @property
    def on_device(self) -> Any:
        """(m, m): K as an array of `table.arrays`, where it stays on a device; else None."""
        return None

    @abstractmethod
    def without(self, features: IntArray) -> Gram:
        """The Gram with these features dropped."""

    @abstractmethod
    def rescale(self, feature_weight: Array, features: IntArray | None = None) -> Gram:
        """The same features, or some of them (sorted), at other weights (n,)."""

    @abstractmethod
    def only(self, rows: IntArray) -> Gram:
        """The Gram among some training rows; where the rest has coefficient 0, its quadratic forms are the same."""

    @abstractmethod
    def drop_one_parts(self, c: Array, Z: Matrix | None = None) -> Iterator[tuple[slice, Array]]:
        """K(without j) @ c for each live j, a few at a time: places in `features`, and (features, rows).

        The divisor stays that of all live features.
        """

    @abstractmethod
    def drop_one_change(self, c: Array, d: Array | None = None, exact: bool = False) -> Array:
        """(p,): c'Kd - c'K(without j)d (d is c by default), never as the difference of two large numbers.

        Where the kernel is not a polynomial, within 1e-6 of the median of their sizes; to rounding with `exact`.
        """

    @abstractmethod
    def drop_one_diagonal_change(self, d: Array) -> Array:
        """(p,): sum_i d_i [K(x_i, x_i) - K(without j)(x_i, x_i)]."""

    @abstractmethod
    def weight_gradient(self, c: Array, d: Array | None = None) -> Array:
        """(p,): derivative of c'Kc (and of d'diag K) in w_j, j live."""

    @abstractmethod
    def line(self, direction: Array) -> GramLine:
        """Grams at weights (sqrt(w) + l * direction)^2, direction (p,): a trial length l costs m^2, not m^2 n."""

    def feature_quadratic(self, c: Array) -> Array:  # noqa: ARG002
        """(p,): c'K_j c with K_j = base_j alone; additive kernels only."""
        raise TypeError(f"{type(self.kernel).__name__} is not a sum over features: it has no K_j")

    def feature_products(self, c: Array, places: IntArray) -> Array:  # noqa: ARG002
        """(k, m): K_j c with K_j = base_j alone, for the live features at some places; additive kernels only."""
        raise TypeError(f"{type(self.kernel).__name__} is not a sum over features: it has no K_j")

    def subset_sums(self, Z: Matrix | None) -> SubsetSums | None:  # noqa: ARG002
        """Sums over many subsets of the live features, with rows Z after the training rows; None where nothing can."""
        return None


def as_gram(view: View) -> Gram:
    """The view of a machine that needs a Gram."""
    if not isinstance(view, Gram):
        raise TypeError(f"this machine needs a Gram and was given {type(view).__name__}")
    return view


class GramLine(Protocol):
    """Grams along a line of scales."""

    def matrix(self, length: float) -> Array: ...
    def gram_at(self, length: float) -> Gram: ...


class SubsetSums(Protocol):
    """Kernel matrices of many subsets of a Gram's features, each from what the features add."""

    def sums_over(self, places: IntArray) -> tuple[Array, Array]:
        """What some features add to A (rows, m), and to the sums of the rows with themselves (rows,)."""

    def gram(self, A: Array, places: IntArray) -> Gram:
        """The Gram over the training rows of the features at some places, from their sum A (m, m)."""

    def kernel(self, gram: Gram, A: Array, squares: Array) -> tuple[Array, Array]:
        """K between the further and the training rows, and of each further row with itself."""


@runtime_checkable
class Kernel(Protocol):
    """Parameters only; `bind` makes a Gram of it.

    kinds: the kinds of columns that it takes. missing: cells may be missing. sparse: takes scipy.sparse tables.
    additive: K is a sum over features. linear: that sum is of products. unit_free: columns are measured in units of
    their own range, so that standardising them would change nothing.
    """

    kinds: ClassVar[frozenset[str]]
    missing: ClassVar[bool]
    sparse: ClassVar[bool]
    additive: ClassVar[bool]
    linear: ClassVar[bool]
    unit_free: ClassVar[bool]

    def start(self, table: TableView) -> Array:
        """(n,) the feature weights w_j to start from."""

    def divisor(self, table: TableView, live: IntArray) -> float:
        """What the sum over these live features is divided by; 1 where it is a plain sum.

        It depends on the live columns alone, so that the kernel keeps its meaning as features leave.
        """

    def bind(self, table: TableView, feature_weight: Array, live: IntArray) -> Gram:
        """The Gram of some features of a table at weights (n,)."""


@runtime_checkable
class HasCache(Protocol):
    """A kernel that makes its matrix for some rows at a time where the whole takes more than `cache` megabytes."""

    cache: float


# -- machines -------------------------------------------------------------------------------------------------------


@runtime_checkable
class Machine(Protocol):
    """Solves for the expansion, or for weights.

    needs: "gram" for a kernel matrix, "columns" for the columns themselves (then no kernel matrix is made).
    additive_only: works on kernels that are a sum over features. kinds: kinds of columns that it takes besides those of
    the kernel, since it expands them itself.
    """

    needs: ClassVar[str]
    additive_only: ClassVar[bool]
    kinds: ClassVar[frozenset[str]]

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:
        """The optimum; y (m,) in {-1, +1}, cost (m,)."""

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f at the rows of Z (rows, n)."""


@runtime_checkable
class Scalable(Protocol):
    """Has a kernel to scale: its optimal objective can be differentiated in the kernel's weights."""

    def dual(self, solution: Solution, K: Array) -> float: ...
    def weight_gradient(self, solution: Solution, gram: Gram) -> Array: ...
    def contrast(self, problem: ProblemView) -> Array | None: ...


@runtime_checkable
class Refines(Protocol):
    """Solves a problem again from its solution, far more tightly than its tolerance asks for."""

    def refine(self, solution: Solution, view: View, y: Array, cost: Array) -> Solution: ...


@runtime_checkable
class EntersFeatures(Protocol):
    """Chooses features by itself, more of them as C grows."""

    C: float

    def first(self, view: View, y: Array, cost: Array) -> float: ...  # the C above which some weight differs from 0
    def solve_path(
        self, view: View, y: Array, cost: Array, prices: Array
    ) -> Iterator[Solution]: ...  # at rising values of C
    def pull(self, solution: Solution, view: View) -> Array: ...  # (p,) the gradient at zero weight, at most 1 there


@runtime_checkable
class HasMargin(Protocol):
    """Has a margin between the classes: f(x) = sum_i coef_i K(x_i, x) + intercept, with c'Kc its squared norm."""

    def squared_norm(self, solution: Solution, gram: Gram) -> float: ...


@runtime_checkable
class HasSphere(Protocol):
    """Describes one class by a sphere."""

    def on_sphere(self, solution: Solution, gram: Gram, y: Array, cost: Array) -> Array: ...


@runtime_checkable
class LearnsWeights(Protocol):
    """Learns how much each feature's kernel counts."""

    def learned_weights(self, solution: Solution, gram: Gram) -> Array: ...


@runtime_checkable
class FitsBudget(Protocol):
    """Is a linear program that can be given a budget: the l1 norm with hinge loss, `truncated` at 2 or not."""

    C: float
    truncated: ClassVar[bool]


# -- criteria and filters -------------------------------------------------------------------------------------------


@runtime_checkable
class Criterion(Protocol):
    """Scores the live features of a fitted machine; higher means keep. `requires`: capabilities of the machine."""

    requires: ClassVar[tuple[type, ...]]

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array: ...


@runtime_checkable
class BreaksTies(Protocol):
    """A criterion that also orders features of equal score; `ties_by` says how, in words."""

    ties_by: ClassVar[str]

    def ties(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array: ...


class Filter(Protocol):
    """Scores every column (n,) from the table, y (k, m) in {-1, +1} and the samples' weights (m,) alone."""

    def __call__(self, table: TableView, y: Array, weight: Array, /) -> Array: ...


@runtime_checkable
class TakesKinds(Protocol):
    """A part that says which kinds of columns it takes; without this a filter takes numbers."""

    kinds: ClassVar[frozenset[str]]


# -- searches -------------------------------------------------------------------------------------------------------


class Work(Protocol):
    """Work that was done: solves, how many did not converge, and by how much at most."""

    @property
    def solves(self) -> int: ...
    @property
    def n_unconverged(self) -> int: ...
    @property
    def worst_residual(self) -> float: ...


class ProblemView(Work, Protocol):
    """k binary problems over one table that share one scale: what searches and criteria see (`marginsieve.problem`)."""

    table: TableView
    y: Array  # (k, m) in {-1, +1}
    cost: Array  # (k, m)
    sample_weight: Array  # (m,) what filters count a sample by; costs have it inside
    feature_weight: Array  # (n,) of the kernel
    kernel: Kernel
    machine: Machine
    criterion: Criterion | Filter | None
    keep: IntArray  # features that are always selected
    groups: IntArray | None  # (m,) rows of one group stay together in folds

    @property
    def judging_rows(self) -> JudgingRows: ...  # rows by which a machine is judged
    def gram(self, features: IntArray | None = None) -> Gram: ...
    def view(self, features: IntArray | None = None) -> View: ...  # what the machine reads: a Gram or columns
    def solve(self, view: View, warm: Sequence[Solution] | None = None) -> tuple[Solution, ...]: ...
    def judge(self, view: View, solutions: Sequence[Solution], metric: Metric) -> tuple[float, ...]: ...
    def score(self, gram: Gram | None, solutions: Sequence[Solution]) -> Array: ...
    def ties(self, gram: Gram | None, solutions: Sequence[Solution]) -> Array | None: ...
    def with_machine(self, machine: Machine) -> ProblemView: ...
    def count(self, work: Work) -> None: ...


@runtime_checkable
class Search(Protocol):
    """Walks over feature subsets and returns a full ranking.

    requires: capabilities of the machine. ranks_by: "criterion", "filter", both or neither, where the search ranks by
    what it learns. multiclass: takes more than two classes.
    """

    requires: ClassVar[tuple[type, ...]]
    ranks_by: ClassVar[frozenset[str]]
    multiclass: ClassVar[bool]

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path: ...


@runtime_checkable
class Refits(Protocol):
    """A search with a machine of its own for the selected features; None or a word is the machine of the search."""

    final: Machine | str | None


@runtime_checkable
class HoldsOut(Protocol):
    """A search or criterion that judges on a share of the training rows, which nothing is fitted on."""

    @property
    def held_out_share(self) -> float: ...
    @property
    def held_out_name(self) -> str: ...  # of the parameter


@runtime_checkable
class ReadsColumns(Protocol):
    """A search whose parameters depend on the table's columns."""

    def for_columns(self, names: Sequence[str]) -> Search: ...


@runtime_checkable
class FixesSize(Protocol):
    """A search that needs the number of features to select before it begins."""

    def for_size(self, count: int) -> Search: ...


@runtime_checkable
class LeavesToFolds(Protocol):
    """A search that leaves some of its parameters to inner folds, which choose them before it begins."""

    @property
    def candidates(self) -> Sequence[Search]: ...  # searches to choose among; none where nothing is left to folds
    def end_after(self, candidate: Any, stages: int) -> Search: ...  # one of them, ended there (`Path.stages`)


@runtime_checkable
class PricesFeatures(Protocol):
    """A search within a budget of what features cost; None is no limit."""

    budget: float | None

    def prices(self, names: Sequence[str]) -> Array: ...


@runtime_checkable
class KnowsRows(Protocol):
    """A sampler that says how many rows it makes of classes with so many rows."""

    def rows_of(self, counts: Sequence[int]) -> int: ...


@runtime_checkable
class HasCheck(Protocol):
    """A part that refuses parameters that make no sense."""

    def check(self) -> None: ...


@runtime_checkable
class TakesTargets(Protocol):
    """A part that says which kinds of targets it takes; without this it takes classes (SIGNS) alone."""

    targets: ClassVar[frozenset[str]]


def targets_of(part: object) -> frozenset[str]:
    """The kinds of targets that a part takes."""
    return part.targets if isinstance(part, TakesTargets) else frozenset({SIGNS})


@runtime_checkable
class Sampler(Protocol):
    """Resamples training rows, as imbalanced-learn does."""

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]: ...


@runtime_checkable
class Interpolates(Protocol):
    """A sampler that lowers its number of neighbors where a class has few rows."""

    def neighbors(self, count: int) -> int: ...
    @property
    def k_neighbors(self) -> int: ...


@runtime_checkable
class HasParameters(Protocol):
    """A part whose parameters can be read by name, as those of scikit-learn's estimators can."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


# -- many training parts at once (marginsieve.batches) ----------------------------------------------------------------


class Batch(Protocol):
    """F training parts of one table of r rows and n columns, searched in step, with arrays on any device.

    Each part has k binary problems. `usable` are the columns that vary in a part: p of them in every part.
    """

    arrays: Any  # marginsieve.batches.arrays.Backend
    X: Any  # (n, r) columns as rows, centred over all rows
    scales: Any  # marginsieve.batches.pair_sums.Scales
    usable: Any  # (F, p) sorted
    labels: Any  # (F, k, r) in {-1, +1}, 0 where a row is not in the part
    weight: Any  # (F, r) of the rows, 0 where a row is not in the part
    strata: Sequence[IntArray]  # of each part, the classes of its rows
    rows: Sequence[IntArray]  # of each part

    def score(self, live: Any) -> Any:
        """(F, q): the criterion at the live features (F, q)."""

    def margin_changes(self, live: Any) -> Any:
        """(F, n): |c'Kc - c'K(without j)c|, summed over the problems, c of machines on the live features (F, q)."""


@runtime_checkable
class Batched(Protocol):
    """Works on many training parts at once, on a device, where `in_batches` says so of it as it is set.

    Each axis has one method for it, beside the one for a single part:

    - a kernel: pair_sums(arrays, X, scales), its matrices for many weightings of the columns X (n, r)
    - a machine: solve_batched(arrays, K, y, cost), on matrices K (F, m, m), with y and cost (F, m)
    - a criterion or filter: score_batched(batch, live), (F, n) at the live features (F, q)
    - a search: run_batched(batch), the features (F, p), best first, and their scores; `ended` says why it ends
    """

    @property
    def in_batches(self) -> bool: ...


class BatchedPart(Batched, Protocol):
    """The methods of all axes for it, of which a part has that of its own."""

    tol: float  # of a machine
    ended: ClassVar[str]  # of a search

    def pair_sums(self, arrays: Any, X: Any, scales: Any) -> Any: ...
    def solve_batched(self, arrays: Any, K: Any, y: Any, cost: Any) -> Any: ...
    def score_batched(self, batch: Batch, live: Any) -> Any: ...
    def run_batched(self, batch: Batch) -> tuple[Any, Any]: ...


def is_batched(part: object) -> bool:
    """Whether a part works on many training parts at once, as it is set."""
    return isinstance(part, Batched) and part.in_batches


# -- outcomes ---------------------------------------------------------------------------------------------------------


class MachineTarget(NamedTuple):
    """What machines solve for: k problems that share one scale."""

    kind: str  # SIGNS, VALUES or TIMES
    y: Array  # (k, m)
    cost: Array  # (k, m)


class Score(NamedTuple):
    """A score of predictions and, linearised, what each row adds to it: its variance is a sum of squares of these."""

    value: float
    influence: Array  # (m,) of mean 0 in each stratum


@dataclass(frozen=True)
class ScoreInfo:
    """How a score is called and how its interval is made.

    `factors` are, below and above the value, how many roots of a pass's variance its standard error is, and what is
    added where training rows matter most (`Target.rooms`); `difference` the same for differences of two methods.
    """

    title: str
    chance: float | None = None  # what a guess scores; None where that is no one number
    short: str = ""  # what a sentence calls it, where that is shorter than the title
    compared: bool = False  # whether the answer compares methods by it
    listed: bool = False  # whether tables of methods have it: the main score, and one of the ranking
    # on which the interval is symmetric: "logit", "log" (of 1 at most), "size" (log), "complement" (log of 1 less the
    # value), "correlation" (atanh) or "plain"
    scale: str = "logit"
    factors: tuple[float, float, float, float] = (1.35, 1.35, 0.0, 0.0)
    difference: tuple[float, float, float, float] = (1.35, 1.35, 0.0, 0.0)
    share: bool = True  # a share of rows, which still varies where no error was seen
    higher_is_better: bool = True
    varies_with_mix: bool = False  # whether it is another number where the classes are mixed otherwise
    fewest_errors: float = 0.0  # above 0, of a pass, for an interval for another model than the one that is scored


@dataclass(frozen=True)
class Words:
    """What reports say of an outcome."""

    rows: str  # how many rows of what kind, as in "case: 15, control: 45"
    together: str = "go together with {target}"  # what several features do, as in "separate case from control"
    alone: str = "goes with {target}"  # and one
    interest: str = ""  # what is of interest, as in "positive class: case"
    above: str = ""  # what lies above 0
    ranking: str = ""  # the ranking score in a sentence with {share} and {score}
    weighting: str = ""  # how rows were weighted
    decision: str = ""  # how predictions were decided upon


class Predictions(Protocol):
    """One pass over some rows: every row predicted once, by a model that did not see it (`marginsieve.engine.Pass`)."""

    @property
    def predicted(self) -> Any: ...  # (m,) in the terms of the outcome
    @property
    def decision(self) -> Array | None: ...  # (m,) decision values, where there is one for a row
    @property
    def probability(self) -> Array | None: ...
    @property
    def values(self) -> Array | None: ...  # (m, k) decision values of several classes
    @property
    def fold(self) -> IntArray | None: ...  # (m,) values of models of different folds have no common scale
    @property
    def unit(self) -> Array | None: ...  # (m,) the deviation of the decision values of the row's model


class Decision(Protocol):
    """What the values of a fitted model mean; made from values of rows that it did not see."""

    def values(self, raw: Array) -> Array:
        """What `decision_function` returns, from the machines' values (rows, k)."""

    def predict(self, values: Array) -> Any:
        """What `predict` returns, from these values."""

    def columns(self, values: Array) -> Mapping[str, Any]:
        """Columns of a table of predictions, by name: "predicted" first."""

    def at_margin(self) -> Decision:
        """The same without what was made from values of held-out rows."""

    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the fitted selector, by name."""


@runtime_checkable
class KnowsShares(Protocol):
    """Knows what shares the strata have where the class of interest has a given one."""

    def stratum_shares(self, share: float) -> Array | None:
        """(strata,), or None where there are not two."""


@runtime_checkable
class ReadsCohorts(Protocol):
    """Reads the outcomes of a new cohort in the terms of the model, whatever of them occurs there."""

    def read_new(self, y: Any, outcome: Any) -> Any:
        """The rows' Target."""


@runtime_checkable
class PredictsAtTimes(Protocol):
    """Knows the chance of no event up to a time."""

    @property
    def horizon(self) -> float | None: ...  # that time

    def at_horizon(self, horizon: float) -> Decision:
        """The same for another time."""


@runtime_checkable
class Recalibrates(Protocol):
    """Can learn from a new cohort what its values mean there: probabilities, and where they are cut."""

    def recalibrate(self, raw: Array, target: Any, aligned: bool, m: int | None = None) -> tuple[Decision, str]:
        """With probabilities that are fitted to these rows, and in words how.

        `aligned`: the columns were; `m`: the number of rows that decides how much is fitted, that of these by default.
        """

    def move_cut(self, raw: Array, target: Any, rule: str, share: float | None) -> tuple[Decision, str]:
        """With a cut by a rule such as "sensitivity:0.9", and in words which; `share`: of the class of interest."""


class Outcome(Protocol):
    """What y is, with its settings; `read` makes a `marginsieve.outcomes.Target` of it, and nobody else knows."""

    @property
    def name(self) -> str: ...
    def read(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any: ...  # the rows' Target
    def check(self) -> None: ...  # refuses settings that make no sense
    def tag(self, tags: Any) -> None: ...  # scikit-learn's tags of an estimator of this outcome


# -- parts as a user gives them: by name or as they are -------------------------------------------------------------

KernelLike = str | Kernel
MachineLike = str | Machine
CriterionLike = str | Criterion | Filter | None
SearchLike = str | Search
SamplerLike = str | Sampler | None
PrefilterLike = tuple[str | Filter, int] | None
AnyPart = Kernel | Machine | Criterion | Filter | Search | Sampler
