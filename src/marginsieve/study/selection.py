"""One method on a table: a selector on all rows, and the nested score of the way it was made."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from .. import recipes
from ..contracts import Array
from ..errors import InputError
from ..estimators.inputs import read_target
from ..estimators.selector import SVMSelector
from ..kernels import Clinical
from ..searches import Budget
from .choosing import Choice, Method
from .material import Material
from .memory import Memory
from .metrics import Scores
from .protocol import Fold, Nested, nested_cv
from .stability import Stability, nogueira
from .store import Store, locked
from .suite import Data, fingerprint, key_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Wishes:
    """What the user wants of every method: the class of interest, a number of features, columns to keep, and so on."""

    positive: Any = None
    features: int | None = None
    keep: tuple[str, ...] = ()
    prefilter: tuple[str, int] | None = None
    ensemble: int | None = None
    seed: int = 0
    n_jobs: int | None = None


@dataclass(frozen=True)
class ScoreFormula:
    """score = sum_j coefficient_j x_j + intercept, above 0 for the positive class.

    The probability of that class is the logistic function of slope * score + offset.
    """

    coefficient: Array  # (columns,)
    intercept: float
    slope: float
    offset: float


@dataclass(frozen=True)
class Selection:
    """A method's selector on all rows and its nested score."""

    method: Method
    selector: SVMSelector
    nested: Nested
    scores: Scores
    seconds: float

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys([*self.selector.notes_, *self.nested.notes]))

    @property
    def stability(self) -> Stability | None:
        """How alike the sets of the outer folds are; None where all features are taken."""
        sets = [fold.support for fold in self.nested.folds if fold.support is not None]
        if self.method.baseline or len(sets) < 2:
            return None
        found = nogueira(sets, self.nested.n_features)
        return found if found.value == found.value else None

    @cached_property
    def formula(self) -> ScoreFormula | None:
        """A new sample's score by hand; None where the machine is not linear or there are three classes."""
        selector = self.selector
        if len(selector.classes_) != 2 or not hasattr(selector, "coef_"):
            return None
        sign, (slope, offset) = selector._sign, selector._sigmoid[0]
        return ScoreFormula(sign * selector.coef_[0], sign * selector.intercept_[0], slope, sign * offset)

    def features(self) -> pd.DataFrame:
        """Every feature by rank: name, rank, score, selected, frequency over the outer folds, and what it resembles.

        `coefficient` is that of the `formula`, empty where there is none.
        """
        import pandas as pd

        order = np.argsort(self.selector.ranking_)
        names = self.selector.columns_.names
        coef = None if self.formula is None else self.formula.coefficient
        factor = np.full(len(names), np.nan) if coef is None else np.where(self.selector.support_, coef, np.nan)
        like = {name: group.representative for group in self.selector.groups_ for name in group.members}
        return pd.DataFrame(
            {
                "name": np.array(names, dtype=object)[order],
                "rank": self.selector.ranking_[order],
                "score": self.selector.scores_[order],
                "selected": self.selector.support_[order],
                "frequency": self.nested.frequency[order],
                "coefficient": factor[order],
                "like": [like.get(names[j], "") for j in order],
                "kind": np.array(self.selector.columns_.kind, dtype=object)[order],
            }
        )

    def predictions(self, labels: Any = None) -> pd.DataFrame:
        """Out-of-fold predictions, one row per sample and repeat; `labels` is what the rows are called."""
        import pandas as pd

        nested, m = self.nested, len(self.nested.truth)
        empty = np.full(m, np.nan)
        frames = []
        for repeat in range(nested.repeats):
            frame = pd.DataFrame({"row": np.arange(1, m + 1), "repeat": repeat + 1})
            if labels is not None:
                frame.insert(1, "label", np.asarray(labels))
            frame["truth"] = nested.classes[nested.truth]
            frame["predicted"] = nested.classes[nested.predicted[repeat]]
            frame["decision"] = empty if nested.decision is None else nested.decision[repeat]
            frame["probability"] = empty if nested.probability is None else nested.probability[repeat]
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)


def score_label(selector: SVMSelector) -> str:
    """What the features' scores are."""
    if selector.ensemble:
        return "minus the mean of log(rank + 5) over the subsamples"
    if isinstance(selector.search, Budget):
        return "1 + the size of the weight; where there is none, how hard the feature presses for one, below 1"
    part = selector.search if selector.criterion is None else selector.criterion
    name = part if isinstance(part, str) else type(part).__name__
    return f"{name}, when the feature was last looked at"


def configured(method: Method, material: Material, wishes: Wishes, rows: int | None) -> SVMSelector:
    """The selector of a method for this table: columns standardised, both classes weigh the same.

    A table with categories or empty cells gets the clinical kernel where the recipe's own kernel refuses it. Both the
    recipe and the table are checked before anything is run.
    """
    recipe = recipes.get(method.recipe)
    told: dict[str, Any] = {
        "standardize": True,
        "class_weight": "balanced",
        "keep": list(wishes.keep) or None,
        "positive": wishes.positive,
        "rows": rows,
        "probability": True,
        "random_state": wishes.seed,
    }
    if not method.baseline:
        budgeted = wishes.features is not None and "budget" in inspect.signature(recipe).parameters
        told["budget" if budgeted else "n_features_to_select"] = wishes.features  # the count is the budget
        told |= {"prefilter": wishes.prefilter} | ({} if wishes.ensemble is None else {"ensemble": wishes.ensemble})
    told |= dict(method.settings)
    if wishes.features is None and not method.baseline and _averages(recipe, told):
        told["n_features_to_select"] = "best"  # of a ranking over subsamples the curve by size is smooth
    if isinstance(told.get("kernel"), str) and told["kernel"] == "clinical":
        told["standardize"] = False
    selector = _made(recipe, method, told)
    sentence = _refusal(selector, material)
    if sentence and "kernel" not in told and not isinstance(selector.kernel, Clinical):
        other = _made(recipe, method, told | {"kernel": "clinical", "standardize": False})
        if not _refusal(other, material):
            return other
    if sentence:
        raise InputError(f"{method.title}: {sentence}")
    return selector


def _averages(recipe: Callable[..., SVMSelector], told: dict[str, Any]) -> bool:
    """Whether the ranking is averaged over subsamples."""
    own = inspect.signature(recipe).parameters.get("ensemble")
    return bool(told.get("ensemble", None if own is None else own.default))


def _made(recipe: Callable[..., SVMSelector], method: Method, told: dict[str, Any]) -> SVMSelector:
    try:
        return recipe(**told)
    except TypeError as error:
        if "'kernel'" in str(error):
            raise InputError(f"{method.title} has a kernel of its own: leave the kernel out") from error
        raise InputError(f"{method.title} does not take this setting: {error}") from error


def _refusal(selector: SVMSelector, material: Material) -> str | None:
    """What is wrong between a selector and the table as a whole, before any fold is run on a part of it."""
    try:
        copy = clone(selector)
        part, _ = copy._read(material.X, material.y, None, material.groups)
        copy._plan(part)
    except InputError as error:
        return str(error)
    return None


def run(
    method: Method,
    selector: SVMSelector,
    material: Material,
    choice: Choice,
    wishes: Wishes,
    folder: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Selection:
    """The nested score of a method, then its fit on all rows; finished folds are kept in the folder."""
    since = time.perf_counter()
    X, y, groups = material.X, material.y, material.groups
    outer = f"{choice.folds} {choice.repeats} {wishes.seed}"
    with _memory(folder, selector, X, y, groups, method.label, outer) as memory:
        nested = nested_cv(
            clone(selector).set_params(resamples=0),  # nobody asks a fold for its suspects
            X,
            y,
            groups=groups,
            positive=wishes.positive,
            folds=choice.folds,
            repeats=choice.repeats,
            seed=wishes.seed,
            n_jobs=wishes.n_jobs,
            progress=None if progress is None else lambda done, _: progress(done),
            memory=memory,
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.set_params(n_jobs=wishes.n_jobs).fit(X, y, groups=groups)
    selector.notes_ = list(dict.fromkeys([*selector.notes_, *(str(item.message) for item in caught)]))
    return Selection(method, selector, nested, nested.scores(), time.perf_counter() - since)


@contextmanager
def _memory(
    folder: Path | None, selector: SVMSelector, X: Any, y: Any, groups: Any, label: str, outer: str
) -> Iterator[MutableMapping[str, Fold] | None]:
    """Finished folds of this very method and table, kept in the folder's store."""
    if folder is None:
        yield None
        return
    from .. import __version__

    classes, codes, _, units = read_target(X, y, None, groups)
    data = Data("table", X, codes, tuple(map(str, classes)), 0, units)
    mark = key_of(fingerprint(data), repr(selector), selector.get_params(), outer, __version__)
    with locked(folder):
        store = Store(folder)
        try:
            yield Memory(store, mark, "table", label)
        finally:
            store.close()
