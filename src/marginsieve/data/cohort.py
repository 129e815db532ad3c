"""A hard table with a known truth."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Array, IntArray
from ..errors import InputError, shown_value, whole_number
from .stored import refuse_more

if TYPE_CHECKING:
    import pandas as pd

COPY_NOISE = 0.3  # standard deviation of what a redundant copy adds to its original
PAIR_NOISE = 0.1  # share of samples whose interaction contradicts their class
LEVELS = ("a", "b", "c")
COPIES, COPIES_MISSING = 2.1, 3.6  # of the table while it is made


@dataclass(frozen=True)
class Truth:
    """The columns of a cohort that carry signal, and the row numbers of the flipped labels.

    Attributes
    ----------
    relevant : tuple of str
        Columns whose mean depends on the class.
    interactions : tuple of (str, str)
        Pairs of columns whose product depends on the class.
    redundant : dict of str to str
        Noisy copies, with the relevant column that each one copies.
    categorical : tuple of str
        Categorical columns whose levels depend on the class.
    flipped : tuple of int
        Row numbers of the labels that were flipped.
    features : frozenset of str
        Every column that carries signal.

    Examples
    --------
    >>> from marginsieve.data import make_cohort
    >>> truth = make_cohort(60, 10, n_relevant=2, flip=0.05, random_state=0).truth
    >>> sorted(truth.features), len(truth.flipped)
    (['g03', 'g07'], 3)
    """

    relevant: tuple[str, ...]
    interactions: tuple[tuple[str, str], ...]
    redundant: dict[str, str]  # copy -> original
    categorical: tuple[str, ...]  # the informative ones
    flipped: tuple[int, ...]

    @property
    def features(self) -> frozenset[str]:
        """Every column that carries signal."""
        pairs = [name for pair in self.interactions for name in pair]
        return frozenset((*self.relevant, *pairs, *self.redundant, *self.categorical))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Cohort:
    """A generated table with its labels and the truth about them.

    Attributes
    ----------
    X : DataFrame of shape (n_samples, n_features)
        The table.
    y : Series of shape (n_samples,)
        The labels, "case" and "control", some of them flipped.
    truth : Truth
        The columns that carry signal and the flipped labels.
    others : tuple of Cohort
        Further cohorts with the same truth, of `make_cohort(cohorts=...)`; iterating gives all, this one first.

    Examples
    --------
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, random_state=0)
    >>> cohort.frame(target="outcome").shape
    (60, 11)
    """

    X: pd.DataFrame
    y: pd.Series
    truth: Truth
    others: tuple[Cohort, ...] = ()

    def __iter__(self) -> Iterator[Cohort]:
        yield replace(self, others=())
        yield from self.others

    def frame(self, target: str = "outcome") -> pd.DataFrame:
        """X and y in one table."""
        return self.X.assign(**{target: self.y})


def make_cohort(
    n_samples: int = 120,
    n_features: int = 500,
    n_relevant: int = 10,
    n_interactions: int = 0,
    n_redundant: int = 0,
    n_categorical: int = 0,
    n_categorical_relevant: int = 0,
    prevalence: float | Sequence[float] = 0.3,
    effect: float = 1.0,
    flip: float = 0.0,
    missing: float = 0.0,
    random_state: Any = 0,
    cohorts: int = 1,
    shift: float = 0.0,
) -> Cohort:
    """Generate a table with labels and a known truth, and further cohorts of it.

    The numeric columns are standard normal; columns are shuffled.

    Parameters
    ----------
    n_samples : int, default=120
        Number of rows.
    n_features : int, default=500
        Number of numeric columns; those that carry no signal are noise.
    n_relevant : int, default=10
        Numeric columns shifted in the cases by `effect` standard deviations times a factor in [0.75, 1.25], up or down.
    n_interactions : int, default=0
        Pairs of numeric columns without an effect alone, the sign of whose product is that of the class for nine
        samples in ten.
    n_redundant : int, default=0
        Numeric columns that are noisy copies of relevant ones.
    n_categorical : int, default=0
        Number of further columns with three levels.
    n_categorical_relevant : int, default=0
        Categorical columns whose levels depend on the class.
    prevalence : float or sequence of float, default=0.3
        Share of cases, or that of each cohort.
    effect : float, default=1.0
        Shift of the relevant columns, in standard deviations.
    flip : float, default=0.0
        Share of labels that are wrong.
    missing : float, default=0.0
        Share of cells that are empty.
    random_state : int, Generator or None, default=0
        Seed of the random numbers.
    cohorts : int, default=1
        Number of cohorts: the first is that of `cohorts=1`, the others are further rows with the same relevant columns
        and effects.
    shift : float, default=0.0
        Standard deviation of the shift of each numeric column in each further cohort, as of another laboratory, in
        standard deviations of the column.

    Returns
    -------
    Cohort
        The table, its labels and the truth; iterating gives all cohorts.

    Examples
    --------
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, prevalence=0.25, random_state=0)
    >>> cohort.X.shape, int((cohort.y == "case").sum()), sorted(cohort.truth.relevant)
    ((60, 10), 15, ['g03', 'g07'])
    """
    counts = {"n_relevant": n_relevant, "n_interactions": n_interactions, "n_redundant": n_redundant}
    counts |= {"n_categorical": n_categorical, "n_categorical_relevant": n_categorical_relevant}
    for name, count in {**counts, "n_samples": n_samples, "n_features": n_features}.items():
        whole_number("cohort", name, count, 0)
    whole_number("cohort", "cohorts", cohorts, 1)
    for name, value in (("effect", effect), ("shift", shift)):
        if not (isinstance(value, numbers.Real) and math.isfinite(value)):
            raise InputError(f"cohort: {name} is {shown_value(value)}; it must be a number")
    signal = n_relevant + 2 * n_interactions + n_redundant
    _check(n_samples, n_features, signal, n_relevant, n_redundant, n_categorical, n_categorical_relevant)
    shares = _shares_of_cases(prevalence, cohorts)
    _check_shares(flip=flip, missing=missing)
    refuse_cells(cohorts * n_samples, n_features + n_categorical, COPIES_MISSING if missing else COPIES)
    rng = np.random.default_rng(random_state)
    layout, out = _Layout(n_features, effect, counts), []
    for k, share in enumerate(shares):
        moved = shift * rng.normal(size=n_features) if k else None
        out.append(layout.draw(n_samples, share, moved, flip, missing, rng))
    return replace(out[0], others=tuple(out[1:]))


@dataclass
class _Layout:
    """What is planted where: drawn with the first cohort, and the same in all."""

    n_features: int
    effect: float
    counts: Mapping[str, int]  # of what is planted, by the names of the parameters
    place: IntArray | None = None
    size: Array | None = None  # of the relevant columns
    informative: list[int] | None = None  # categories

    def draw(
        self, m: int, share: float, moved: Array | None, flip: float, missing: float, rng: np.random.Generator
    ) -> Cohort:
        """A cohort of m rows, its numeric columns moved."""
        import pandas as pd

        case = np.zeros(m, dtype=bool)
        case[rng.permutation(m)[: min(max(2, round(share * m)), m - 2)]] = True
        Z = rng.normal(size=(m, self.n_features))
        relevant, first, second, copies, originals = self._plant(Z, case, rng)
        if moved is not None:
            Z += moved
        names = [f"g{j:0{len(str(self.n_features))}d}" for j in range(1, self.n_features + 1)]
        X = pd.DataFrame(Z, columns=names)
        labels = [f"c{j}" for j in range(1, self.counts["n_categorical"] + 1)]
        if self.informative is None:
            known = self.counts["n_categorical_relevant"]
            self.informative = sorted(rng.permutation(self.counts["n_categorical"])[:known])
        for j, label in enumerate(labels):
            X[label] = _levels(case, j in self.informative, rng)
        if missing:
            X = X.mask(pd.DataFrame(rng.random(X.shape) < missing, columns=X.columns))
        flipped = np.sort(rng.permutation(m)[: round(flip * m)])
        case[flipped] = ~case[flipped]
        truth = Truth(
            relevant=tuple(names[j] for j in relevant),
            interactions=tuple((names[a], names[b]) for a, b in zip(first, second, strict=True)),
            redundant={names[copy]: names[original] for copy, original in zip(copies, originals, strict=True)},
            categorical=tuple(labels[j] for j in self.informative),
            flipped=tuple(int(i) for i in flipped),
        )
        return Cohort(X, pd.Series(np.where(case, "case", "control"), name="outcome"), truth)

    def _plant(self, Z: Array, case: Any, rng: np.random.Generator) -> tuple[IntArray, ...]:
        """Put the signal into Z; the columns that differ, the pairs, the copies and what they copy."""
        r, p, c = (self.counts[name] for name in ("n_relevant", "n_interactions", "n_redundant"))
        if self.place is None:
            self.place = rng.permutation(self.n_features)
        relevant, rest = self.place[:r], self.place[r:]
        if self.size is None:
            self.size = self.effect * rng.uniform(0.75, 1.25, r) * rng.choice([-1.0, 1.0], r)
        Z[:, relevant] += np.where(case[:, None], self.size, 0.0)
        first, second = rest[:p], rest[p : 2 * p]
        _interact(Z, first, second, case, rng)
        copies = rest[2 * p : 2 * p + c]
        originals = relevant[np.arange(c) % max(r, 1)] if c else copies
        Z[:, copies] = Z[:, originals] + COPY_NOISE * rng.normal(size=(len(Z), c))
        return relevant, first, second, copies, originals


def _shares_of_cases(prevalence: float | Sequence[float], cohorts: int) -> list[float]:
    """The share of cases in each cohort."""
    several: Any = prevalence
    shares = list(several) if isinstance(prevalence, (list, tuple, np.ndarray)) else [several] * cohorts
    if len(shares) != cohorts:
        raise InputError(f"prevalence has {len(shares)} shares and there are {cohorts} cohorts; they must be as many")
    for share in shares:
        _check_shares(prevalence=share)
    return shares


def refuse_cells(m: int, n: int, copies: float) -> None:
    """Refuse a table of which so many copies do not fit into memory."""
    refuse_more(8.0 * copies * m * n, f"a table of {m:,} rows and {n:,} columns", "ask for fewer")


def _check(
    m: int, n: int, signal: int, relevant: int, redundant: int, categorical: int, categorical_relevant: int
) -> None:
    if m < 4:
        raise InputError(f"n_samples is {m}; it must be 4 or more")
    if signal > n:
        raise InputError(f"n_features is {n}, but relevant, interacting and redundant columns are {signal}")
    if redundant and not relevant:
        raise InputError(f"n_redundant is {redundant}, but there is no relevant column to copy")
    if categorical_relevant > categorical:
        raise InputError(f"n_categorical_relevant is {categorical_relevant}, more than n_categorical ({categorical})")


def _check_shares(**shares: Any) -> None:
    for name, share in shares.items():
        if not isinstance(share, numbers.Real) or not 0 <= float(share) < 1 or (name == "prevalence" and share == 0):
            raise InputError(f"{name} is {share!r}; it must be a share in [0, 1)")


def _interact(Z: Array, first: IntArray, second: IntArray, case: Any, rng: np.random.Generator) -> None:
    """Give each pair a product whose sign is that of the class, apart from a share of contradictions."""
    sign = np.where(case, 1.0, -1.0)[:, None] * np.where(rng.random((len(Z), len(first))) < PAIR_NOISE, -1.0, 1.0)
    Z[:, second] = np.abs(Z[:, second]) * np.sign(Z[:, first]) * sign


def _levels(case: Any, informative: bool, rng: np.random.Generator) -> Any:
    import pandas as pd

    usual, shifted = np.array([0.5, 0.3, 0.2]), np.array([0.15, 0.25, 0.6])
    draws = rng.random(len(case))
    chance = np.where(case[:, None] & informative, shifted, usual)
    place: IntArray = (draws[:, None] > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
    return pd.Categorical(np.array(LEVELS)[place], categories=list(LEVELS))
