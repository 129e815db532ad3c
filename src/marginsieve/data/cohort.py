"""A hard table with a known truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Array, IntArray
from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

COPY_NOISE = 0.3  # standard deviation of what a redundant copy adds to its original
PAIR_NOISE = 0.1  # share of samples whose interaction contradicts their class
LEVELS = ("a", "b", "c")


@dataclass(frozen=True)
class Truth:
    """What was planted: column names, and row numbers of the flipped labels."""

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
    """A table X, its labels y ("case" and "control", some flipped), and the truth."""

    X: pd.DataFrame
    y: pd.Series
    truth: Truth

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
    prevalence: float = 0.3,
    effect: float = 1.0,
    flip: float = 0.0,
    missing: float = 0.0,
    random_state: Any = 0,
) -> Cohort:
    """Generate a cohort.

    n_features numeric columns are standard normal. Of these, n_relevant are shifted in the cases by `effect` standard
    deviations times a factor in [0.75, 1.25], up or down; n_interactions pairs have no effect alone, but the sign of
    their product tells the class for nine samples in ten; n_redundant are noisy copies of relevant ones; the rest is
    noise. n_categorical further columns have three levels; the levels of n_categorical_relevant of them depend on the
    class. A share `flip` of the labels is wrong, a share `missing` of the cells is empty. Columns are shuffled.
    """
    import pandas as pd

    signal = n_relevant + 2 * n_interactions + n_redundant
    _check(n_samples, n_features, signal, n_relevant, n_redundant, n_categorical, n_categorical_relevant)
    for name, share in (("prevalence", prevalence), ("flip", flip), ("missing", missing)):
        if not 0 <= share < 1 or (name == "prevalence" and share == 0):
            raise InputError(f"{name} is {share!r}; it must be a share in [0, 1)")
    rng = np.random.default_rng(random_state)
    case = np.zeros(n_samples, dtype=bool)
    case[rng.permutation(n_samples)[: min(max(2, round(prevalence * n_samples)), n_samples - 2)]] = True

    Z = rng.normal(size=(n_samples, n_features))
    place = rng.permutation(n_features)
    relevant, rest = place[:n_relevant], place[n_relevant:]
    shift = effect * rng.uniform(0.75, 1.25, n_relevant) * rng.choice([-1.0, 1.0], n_relevant)
    Z[:, relevant] += np.where(case[:, None], shift, 0.0)
    first, second = rest[:n_interactions], rest[n_interactions : 2 * n_interactions]
    _interact(Z, first, second, case, rng)
    copies = rest[2 * n_interactions : 2 * n_interactions + n_redundant]
    originals = relevant[np.arange(n_redundant) % max(n_relevant, 1)] if n_redundant else copies
    Z[:, copies] = Z[:, originals] + COPY_NOISE * rng.normal(size=(n_samples, n_redundant))

    width = len(str(n_features))
    names = [f"g{j:0{width}d}" for j in range(1, n_features + 1)]
    X = pd.DataFrame(Z, columns=names)
    labels = [f"c{j}" for j in range(1, n_categorical + 1)]
    informative = sorted(rng.permutation(n_categorical)[:n_categorical_relevant])
    for j, label in enumerate(labels):
        X[label] = _levels(case, j in informative, rng)
    if missing:
        X = X.mask(pd.DataFrame(rng.random(X.shape) < missing, columns=X.columns))
    flipped = np.sort(rng.permutation(n_samples)[: round(flip * n_samples)])
    case[flipped] = ~case[flipped]
    truth = Truth(
        relevant=tuple(names[j] for j in relevant),
        interactions=tuple((names[a], names[b]) for a, b in zip(first, second, strict=True)),
        redundant={names[copy]: names[original] for copy, original in zip(copies, originals, strict=True)},
        categorical=tuple(labels[j] for j in informative),
        flipped=tuple(int(i) for i in flipped),
    )
    return Cohort(X, pd.Series(np.where(case, "case", "control"), name="outcome"), truth)


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
