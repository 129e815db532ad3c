"""A hard table with a known truth."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from ..contracts import Array, IntArray
from ..errors import InputError, one_of, shown_value, whole_number
from .stored import refuse_more

if TYPE_CHECKING:
    import pandas as pd

COPY_NOISE = 0.3  # standard deviation of what a redundant copy adds to its original
PAIR_NOISE = 0.1  # share of samples whose interaction contradicts their class
LEVELS = ("a", "b", "c")
USUAL, SHIFTED = (0.5, 0.3, 0.2), (0.15, 0.25, 0.6)  # their shares, and those in cases
OUTCOMES = ("classes", "numbers", "survival")
PREVALENCE, CENSORED = 0.3, 0.3
TIME_UNIT = 1000.0  # mean time to an event of a row without effects
COPIES, COPIES_MISSING = 2.1, 3.6  # of the table while it is made


@dataclass(frozen=True)
class Truth:
    """The columns of a cohort that carry signal, and the row numbers of the wrong outcomes.

    Attributes
    ----------
    relevant : tuple of str
        Columns that the outcome depends on.
    interactions : tuple of (str, str)
        Pairs of columns whose product the outcome depends on.
    redundant : dict of str to str
        Noisy copies, with the relevant column that each one copies.
    categorical : tuple of str
        Categorical columns that the outcome depends on.
    flipped : tuple of int
        Row numbers of the labels that were flipped, or of the outcomes that are those of other rows.
    censoring : tuple of str
        Columns that the time of censoring depends on and the event does not.
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
    censoring: tuple[str, ...] = ()  # they carry no signal

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
    y : Series of shape (n_samples,), or DataFrame of shape (n_samples, 2)
        The labels, "case" and "control"; or numbers; or the columns `time` and `event` (1 where it was seen).
    truth : Truth
        The columns that carry signal and the rows whose outcomes are wrong.
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
    y: Any
    truth: Truth
    others: tuple[Cohort, ...] = ()

    def __iter__(self) -> Iterator[Cohort]:
        yield replace(self, others=())
        yield from self.others

    def frame(self, target: str = "outcome") -> pd.DataFrame:
        """X and y in one table; times and events keep their names."""
        columns = {target: self.y} if self.y.ndim == 1 else dict(self.y.items())
        return self.X.assign(**columns)


def make_cohort(
    n_samples: int = 120,
    n_features: int = 500,
    n_relevant: int = 10,
    n_interactions: int = 0,
    n_redundant: int = 0,
    n_categorical: int = 0,
    n_categorical_relevant: int = 0,
    prevalence: float | Sequence[float] | None = None,
    effect: float = 1.0,
    flip: float = 0.0,
    missing: float = 0.0,
    random_state: Any = 0,
    cohorts: int = 1,
    shift: float = 0.0,
    outcome: str = "classes",
    censored: float | None = None,
    n_censoring: int = 0,
) -> Cohort:
    """Generate a table with an outcome and a known truth, and further cohorts of it.

    The numeric columns are standard normal; columns are shuffled. Numbers, and the logarithm of the hazard of an event,
    are a sum over what is planted::

        f = sum_j s_j x_j + effect * (sum over pairs of x_a x_b + sum over categories of level),   level = -1, 0, 1
        numbers:   y = f + standard normal noise
        survival:  time to the event ~ exponential of mean 1000 exp(-f)

    and the time of censoring is exponential with a rate that depends on the `n_censoring` columns in the same way.

    Parameters
    ----------
    n_samples : int, default=120
        Number of rows.
    n_features : int, default=500
        Number of numeric columns; those that carry no signal are noise.
    n_relevant : int, default=10
        Numeric columns shifted in the cases by `effect` standard deviations times a factor in [0.75, 1.25], up or
        down; s_j where the outcome is no class.
    n_interactions : int, default=0
        Pairs of numeric columns without an effect alone. With classes the sign of their product is that of the class
        for nine samples in ten.
    n_redundant : int, default=0
        Numeric columns that are noisy copies of relevant ones.
    n_categorical : int, default=0
        Number of further columns with three levels.
    n_categorical_relevant : int, default=0
        Categorical columns that the outcome depends on.
    prevalence : float, sequence of float or None, default=None
        Share of cases, or that of each cohort; None is 0.3. Of classes alone.
    effect : float, default=1.0
        Shift of the relevant columns, in standard deviations; or what a standard deviation of one adds to the number,
        in standard deviations of the noise, or to the logarithm of the hazard.
    flip : float, default=0.0
        Share of labels that are wrong, or of outcomes that are those of other rows.
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
    outcome : {"classes", "numbers", "survival"}, default="classes"
        What is generated to be predicted.
    censored : float or None, default=None
        Expected share of rows whose event is not seen; None is 0.3. Of survival alone.
    n_censoring : int, default=0
        Numeric columns that the time of censoring depends on and the event does not. Of survival alone.

    Returns
    -------
    Cohort
        The table, its outcome and the truth; iterating gives all cohorts.

    Examples
    --------
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, prevalence=0.25, random_state=0)
    >>> cohort.X.shape, int((cohort.y == "case").sum()), sorted(cohort.truth.relevant)
    ((60, 10), 15, ['g03', 'g07'])
    >>> make_cohort(60, 10, n_relevant=2, outcome="survival", random_state=0).y.head(3).round(1)
         time  event
    0    56.6      1
    1   202.3      0
    2  1223.2      0
    """
    one_of("cohort", "outcome", outcome, OUTCOMES)
    counts = {"n_relevant": n_relevant, "n_interactions": n_interactions, "n_redundant": n_redundant}
    counts |= {"n_categorical": n_categorical, "n_categorical_relevant": n_categorical_relevant}
    counts |= {"n_censoring": n_censoring}
    for name, count in {**counts, "n_samples": n_samples, "n_features": n_features}.items():
        whole_number("cohort", name, count, 0)
    whole_number("cohort", "cohorts", cohorts, 1)
    for name, value in (("effect", effect), ("shift", shift)):
        if not (isinstance(value, numbers.Real) and math.isfinite(value)):
            raise InputError(f"cohort: {name} is {shown_value(value)}; it must be a number")
    signal = n_relevant + 2 * n_interactions + n_redundant + n_censoring
    _refuse_others(outcome, prevalence=prevalence, censored=censored, n_censoring=n_censoring or None)
    _check(n_samples, n_features, signal, n_relevant, n_redundant, n_categorical, n_categorical_relevant)
    shares = _shares_of_cases(PREVALENCE if prevalence is None else prevalence, cohorts)
    if outcome == "survival":
        shares = [CENSORED if censored is None else censored] * cohorts
        _check_shares(censored=shares[0])
    _check_shares(flip=flip, missing=missing)
    refuse_cells(cohorts * n_samples, n_features + n_categorical, COPIES_MISSING if missing else COPIES)
    rng = np.random.default_rng(random_state)
    layout, out = _Layout(n_features, effect, counts, outcome), []
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
    outcome: str
    place: IntArray | None = None
    size: Array | None = None  # of the relevant columns, and those of censoring
    informative: list[int] | None = None  # categories

    def draw(
        self, m: int, share: float, moved: Array | None, flip: float, missing: float, rng: np.random.Generator
    ) -> Cohort:
        """A cohort of m rows, its numeric columns moved; `share` is that of cases, or of what is censored."""
        import pandas as pd

        case = None
        if self.outcome == "classes":
            case = np.zeros(m, dtype=bool)
            case[rng.permutation(m)[: min(max(2, round(share * m)), m - 2)]] = True
        Z = rng.normal(size=(m, self.n_features))
        planted = self._plant(Z, case, rng)
        names = [f"g{j:0{len(str(self.n_features))}d}" for j in range(1, self.n_features + 1)]
        labels = [f"c{j}" for j in range(1, self.counts["n_categorical"] + 1)]
        if self.informative is None:
            known = self.counts["n_categorical_relevant"]
            self.informative = sorted(rng.permutation(self.counts["n_categorical"])[:known])
        places = [_levels(m, case if j in self.informative else None, rng) for j in range(len(labels))]
        values = None if case is not None else self._values(Z, planted, places, share, rng)
        X = pd.DataFrame(Z if moved is None else Z + moved, columns=names)
        for label, place in zip(labels, places, strict=True):
            X[label] = pd.Categorical(np.array(LEVELS)[place], categories=list(LEVELS))
        if missing:
            X = X.mask(pd.DataFrame(rng.random(X.shape) < missing, columns=X.columns))
        flipped = np.sort(rng.permutation(m)[: round(flip * m)])
        if case is not None:
            case[flipped] = ~case[flipped]
        if values is not None:
            values[flipped] = values[(flipped + rng.integers(1, m, len(flipped))) % m]
        relevant, first, second, copies, originals, censoring = planted
        truth = Truth(
            relevant=tuple(names[j] for j in relevant),
            interactions=tuple((names[a], names[b]) for a, b in zip(first, second, strict=True)),
            redundant={names[copy]: names[original] for copy, original in zip(copies, originals, strict=True)},
            categorical=tuple(labels[j] for j in self.informative),
            flipped=tuple(int(i) for i in flipped),
            censoring=tuple(names[j] for j in censoring),
        )
        return Cohort(X, _as_outcome(case, values), truth)

    def _plant(self, Z: Array, case: Any, rng: np.random.Generator) -> tuple[IntArray, ...]:
        """Put copies, and the signal of classes, into Z; the relevant columns, pairs, copies, originals, censoring."""
        r, p, c, z = (self.counts[name] for name in ("n_relevant", "n_interactions", "n_redundant", "n_censoring"))
        if self.place is None:
            self.place = rng.permutation(self.n_features)
        relevant, rest = self.place[:r], self.place[r:]
        if self.size is None:
            self.size = self.effect * rng.uniform(0.75, 1.25, r + z) * rng.choice([-1.0, 1.0], r + z)
        first, second = rest[:p], rest[p : 2 * p]
        if case is not None:
            Z[:, relevant] += np.where(case[:, None], self.size, 0.0)
            _interact(Z, first, second, case, rng)
        copies = rest[2 * p : 2 * p + c]
        originals = relevant[np.arange(c) % max(r, 1)] if c else copies
        Z[:, copies] = Z[:, originals] + COPY_NOISE * rng.normal(size=(len(Z), c))
        return relevant, first, second, copies, originals, rest[2 * p + c : 2 * p + c + z]

    def _values(
        self,
        Z: Array,
        planted: tuple[IntArray, ...],
        places: Sequence[IntArray],
        share: float,
        rng: np.random.Generator,
    ) -> Array:
        """(m, 1) numbers, or (m, 2) times and events of which a share is expected to be censored."""
        relevant, first, second, *_, censoring = planted
        assert self.size is not None
        assert self.informative is not None
        f = Z[:, relevant] @ self.size[: len(relevant)]
        f += self.effect * (Z[:, first] * Z[:, second]).sum(axis=1)
        f += self.effect * sum((places[j] - 1.0 for j in self.informative), np.zeros(len(Z)))
        if self.outcome == "numbers":
            return np.asarray(f + rng.normal(size=len(f)))[:, None]
        time = rng.exponential(TIME_UNIT * np.exp(-f))
        if share == 0:
            return np.column_stack([time, np.ones(len(f))])
        g = Z[:, censoring] @ self.size[len(relevant) :]
        rate = _rate_of_censoring(g - f, share)
        end = rng.exponential(TIME_UNIT * np.exp(-rate - g))
        return np.column_stack([np.minimum(time, end), time <= end])


def _rate_of_censoring(ahead: Array, share: float) -> float:
    """The logarithm of a factor of rates of censoring by which a share of rows is expected to be censored.

    Of two exponential times that of censoring is the shorter one with probability 1 / (1 + 1 / (the ratio of rates)).
    """
    reach = float(np.abs(ahead).max()) + 50.0
    return float(optimize.brentq(lambda rate: special.expit(rate + ahead).mean() - share, -reach, reach))


def _as_outcome(case: Any, values: Array | None) -> pd.Series | pd.DataFrame:
    import pandas as pd

    if values is None:
        return pd.Series(np.where(case, "case", "control"), name="outcome")
    if values.shape[1] == 1:
        return pd.Series(values[:, 0], name="outcome")
    return pd.DataFrame({"time": values[:, 0], "event": values[:, 1].astype(int)})


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
        raise InputError(f"n_features is {n}, but the planted columns are {signal}")
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


def _levels(m: int, case: Any, rng: np.random.Generator) -> IntArray:
    """(m,) places of levels, those of cases more often the later ones."""
    draws = rng.random(m)
    chance = np.tile(USUAL, (m, 1)) if case is None else np.where(case[:, None], SHIFTED, USUAL)
    return np.asarray((draws[:, None] > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1))


def _refuse_others(outcome: str, **parameters: Any) -> None:
    """Refuse what is a parameter of another outcome."""
    for name, value in parameters.items():
        of = "classes" if name == "prevalence" else "survival"
        if value is not None and of != outcome:
            raise InputError(f"{name} is {shown_value(value)}; it is a parameter of outcome={of!r} alone")
