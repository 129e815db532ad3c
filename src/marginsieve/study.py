"""The user's study: a table, a target and a method in; a selection and its honest score out."""

from __future__ import annotations

import difflib
import inspect
import time
import warnings
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from . import recipes
from .compatibility import refuses_table
from .errors import InputError, listing
from .evaluation import METRICS, Nested, Scores, nested_cv
from .evaluation.memory import Memory
from .evaluation.protocol import Fold
from .evaluation.store import Store, locked
from .evaluation.suite import Data, fingerprint, key_of
from .inputs import MOST_ROWS, read_target, read_training
from .searches import Budget
from .selector import SVMSelector
from .suspects import find_suspects

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
FEW = 10  # samples of a class below which a bootstrap says little


@dataclass(frozen=True)
class Selection:
    """A fitted selector on all rows, and the nested score of the way it was made."""

    method: str
    settings: dict[str, Any]
    selector: SVMSelector
    nested: Nested
    scores: Scores
    names: tuple[str, ...]
    ids: Any  # row labels for the predictions
    dropped: tuple[str, ...]
    alarms: tuple[str, ...]
    seconds: float

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys([*self.alarms, *self.selector.notes_, *self.nested.notes]))

    def features(self) -> pd.DataFrame:
        """Every feature by rank: name, rank, score, selected, frequency over the outer folds, and what it resembles."""
        import pandas as pd

        order = np.argsort(self.selector.ranking_)
        like = {name: group.representative for group in self.selector.groups_ for name in group.members}
        return pd.DataFrame(
            {
                "name": np.array(self.names, dtype=object)[order],
                "rank": self.selector.ranking_[order],
                "score": self.selector.scores_[order],
                "selected": self.selector.support_[order],
                "frequency": self.nested.frequency[order],
                "like": [like.get(self.names[j], "") for j in order],
                "kind": np.array(self.selector.columns_.kind, dtype=object)[order],
            }
        )

    def predictions(self) -> pd.DataFrame:
        """Out-of-fold predictions, one row per sample and repeat."""
        import pandas as pd

        nested, m = self.nested, len(self.nested.truth)
        frames = []
        for repeat in range(nested.repeats):
            frame = pd.DataFrame({"row": self.ids, "repeat": repeat + 1, "truth": nested.classes[nested.truth]})
            frame["predicted"] = nested.classes[nested.predicted[repeat]]
            frame["decision"] = np.full(m, np.nan) if nested.decision is None else nested.decision[repeat]
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: what was asked, what was found, how well it predicts, what to doubt."""
        from . import __version__

        nested, selector = self.nested, self.selector
        counts = np.bincount(nested.truth, minlength=len(nested.classes))
        chosen = self.features().query("selected")
        return {
            "schema": SCHEMA,
            "version": __version__,
            "method": self.method,
            "settings": self.settings,
            "table": {
                "rows": len(nested.truth),
                "features": len(self.names),
                "classes": {str(label): int(count) for label, count in zip(nested.classes, counts, strict=True)},
                "positive": str(nested.classes[nested.positive]),
                "dropped_columns": list(self.dropped),
                "constant_columns": selector.constant_,
                "equal_columns": [list(group) for group in selector.duplicates_],
            },
            "protocol": {
                "outer": "repeated stratified cross-validation" + (", grouped" if nested.groups is not None else ""),
                "folds": len(nested.folds) // nested.repeats,
                "repeats": nested.repeats,
                "seed": nested.seed,
                "interval": f"{self.scores.level:.0%} percentile bootstrap over "
                + ("groups" if nested.groups is not None else "samples"),
                "draws": self.scores.draws,
            },
            "scores": {
                name: {
                    "value": self.scores.value[name],
                    "low": self.scores.low[name],
                    "high": self.scores.high[name],
                }
                for name in METRICS
                if name in self.scores.value
            },
            "n_features": selector.n_features_,
            "n_features_over_folds": {
                "median": float(np.median(nested.sizes)),
                "smallest": int(nested.sizes.min()),
                "largest": int(nested.sizes.max()),
            },
            "threshold": selector.threshold_,
            "features": chosen.drop(columns=["selected", "like"]).to_dict("records"),
            "groups": [group.to_dict() for group in selector.groups_],
            "score_is": score_label(selector),
            "stop_reason": selector.path_.stop_reason,
            "suspects": _suspects(selector),
            "own_number": None if selector.path_.own is None else selector.path_.own.to_dict(),
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
        }


def _suspects(selector: SVMSelector) -> list[dict[str, Any]] | None:
    """The samples (1 is the first) that a machine with the ramp loss left out; None where it has another loss."""
    if not hasattr(selector, "suspects_"):
        return None
    found = selector.suspects_.replace({np.nan: None})
    return [{"sample": int(row) + 1, **values} for row, values in found.to_dict("index").items()]


def score_label(selector: SVMSelector) -> str:
    """What the features' scores are."""
    if selector.ensemble:
        return "minus the mean of log(rank + 5) over the subsamples"
    if isinstance(selector.search, Budget):
        return "1 + the size of the weight; where there is none, how hard the feature presses for one, below 1"
    part = selector.search if selector.criterion is None else selector.criterion
    name = part if isinstance(part, str) else type(part).__name__
    return f"{name}, when the feature was last looked at"


def select(
    frame: Any,
    target: str,
    *,
    method: str = "svm-rfe",
    positive: str | None = None,
    features: int | None = None,
    groups: str | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    prefilter: tuple[str, int] | None = None,
    ensemble: int | None = None,
    rows: int | None = None,
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    folder: Path | None = None,
) -> Selection:
    """Select features of a pandas table with a named method and score the whole procedure by nested cross-validation.

    Numeric columns are standardised inside the folds and both classes weigh the same. The number of features is the
    one-standard-error choice of inner folds (or of the rows that the members of an ensemble left out) unless `features`
    gives it. With a `folder`, finished folds are kept there, and the same call goes on where it was interrupted.
    """
    since = time.perf_counter()
    X, y, group, dropped = _split(frame.reset_index(drop=True), target, groups, drop)
    _check_keep(keep, X, (target, groups, *drop))
    label = None if positive is None else _label(y, positive, target)
    recipe = recipes.get(method)
    budgeted = features is not None and "budget" in inspect.signature(recipe).parameters  # the count is the budget
    selector = recipe(
        standardize=True,
        class_weight="balanced",
        **{"budget" if budgeted else "n_features_to_select": features},
        keep=list(keep) or None,
        prefilter=prefilter,
        positive=label,
        rows=rows,
        random_state=seed,
        **({} if ensemble is None else {"ensemble": ensemble}),
    )
    _check_table(selector, X, y)
    total = folds * repeats + 1
    tick = (lambda done, _: progress(done, total)) if progress is not None else None
    with _memory(folder, selector, X, y, group, f"{folds} {repeats} {seed}") as memory:
        nested = nested_cv(
            selector,
            X,
            y,
            groups=group,
            positive=label,
            folds=folds,
            repeats=repeats,
            seed=seed,
            n_jobs=n_jobs,
            progress=tick,
            memory=memory,
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.set_params(n_jobs=n_jobs).fit(X, y, groups=group)
    selector.notes_ = list(dict.fromkeys([*selector.notes_, *(str(item.message) for item in caught)]))
    if progress is not None:
        progress(total, total)
    settings = {
        "features": features,
        "groups": groups,
        "keep": list(keep),
        "prefilter": prefilter,
        "ensemble": selector.ensemble,
        "rows": rows,
        "positive": positive,
    }
    return Selection(
        method=recipe.__name__,
        settings=settings,
        selector=selector,
        nested=nested,
        scores=nested.scores(),
        names=tuple(str(name) for name in X.columns),
        ids=np.arange(1, len(X) + 1),
        dropped=tuple(dropped),
        alarms=tuple(_alarms(X, y)),
        seconds=time.perf_counter() - since,
    )


def suspects(
    frame: Any, target: str, *, groups: str | None = None, drop: Sequence[str] = (), **settings: Any
) -> pd.DataFrame:
    """`find_suspects` on a table with its target: the table's own columns `target` and, where given, `groups` first."""
    X, y, group, _ = _split(frame, target, groups, drop)
    if X.shape[1] == 0:
        raise InputError("no column is left to judge by")
    found = find_suspects(X, y, groups=group, **settings)
    found.insert(0, target, y.to_numpy())
    if groups is not None:
        found.insert(0, groups, group.to_numpy())
    return found


@contextmanager
def _memory(
    folder: Path | None, selector: SVMSelector, X: Any, y: Any, groups: Any, outer: str
) -> Iterator[MutableMapping[str, Fold] | None]:
    """Finished folds of this very call, kept in the folder's store."""
    if folder is None:
        yield None
        return
    from . import __version__

    classes, codes, _, units = read_target(X, y, None, groups)
    data = Data("table", X, codes, tuple(map(str, classes)), 0, units)
    mark = key_of(fingerprint(data), repr(selector), selector.get_params(), outer, __version__)
    with locked(folder):
        store = Store(folder)
        try:
            yield Memory(store, mark, "table", type(selector).__name__)
        finally:
            store.close()


def _check_keep(keep: Sequence[str], X: Any, others: Sequence[str | None]) -> None:
    for name in keep:
        if name in others:
            raise InputError(f"keep names {name!r}, which is the target, the group column or dropped")
        if name not in X.columns:
            raise InputError(f"keep names {name!r}, which the table does not have")


def _check_table(selector: SVMSelector, X: Any, y: Any) -> None:
    """What is wrong with the table as a whole, before any fold is run on a part of it."""
    read_target(X, y, None, None)
    if X.shape[1] == 0:
        raise InputError("no column is left to select from")
    if len(X) > MOST_ROWS and selector.rows is None:
        raise InputError(
            f"the table has {len(X)} rows, more than the {MOST_ROWS} that are trained on: use --rows 5000 (in Python "
            "rows=5000) to train on every row of the rare class and a weighted sample of the others; the rest is scored"
        )
    _, table = read_training(clone(selector), X, y, None)
    if sentence := refuses_table(selector.kernel, table, selector.machine):
        raise InputError(sentence)


def _split(frame: Any, target: str, groups: str | None, drop: Sequence[str]) -> tuple[Any, Any, Any, list[str]]:
    """(X, y, groups, names of the columns left out); rows without a label are an error."""
    for role, name in [("target", target), ("groups", groups), *(("drop", name) for name in drop)]:
        if name is not None and name not in frame.columns:
            close = difflib.get_close_matches(str(name), [str(c) for c in frame.columns], n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its columns are {listing(list(frame.columns))}"
            raise InputError(f"{role} is {name!r}, which the table does not have; {hint}")
    if target in drop or target == groups:
        raise InputError(f"{target!r} is the target: it cannot be dropped, nor tell groups")
    y = frame[target]
    if missing := int(y.isna().sum()):
        raise InputError(f"the target {target!r} is empty in {missing} of {len(y)} rows; fill or remove these rows")
    if str(y.dtype) in ("category", "str", "string", "object"):
        y = y.astype(str).astype(object)
    group = None if groups is None else frame[groups]
    if group is not None and (missing := int(group.isna().sum())):
        raise InputError(f"the group column {groups!r} is empty in {missing} of {len(y)} rows; fill these cells")
    left_out = [name for name in (groups, *drop) if name is not None]
    return frame.drop(columns=[target, *left_out]), y, group, left_out


def _alarms(X: Any, y: Any) -> list[str]:
    """What to know of the table before believing the scores."""
    alarms = []
    ids = [
        str(name)
        for name, dtype in X.dtypes.items()
        if dtype.kind in "iu"
        and (X[name].is_monotonic_increasing or X[name].is_monotonic_decreasing)
        and X[name].is_unique
    ]
    if ids:
        alarms.append(f"{listing(ids)} numbers the rows: if it is an id, leave it out with --drop")
    fewest = int(y.value_counts().min())
    if fewest < FEW:
        alarms.append(
            f"the rarest class has {fewest} samples: the intervals are rough, and 1.000 to 1.000 proves little"
        )
    return alarms


def _label(y: Any, positive: str, target: str) -> Any:
    """The class that the text `positive` names."""
    for label in y.unique():
        if str(label) == positive:
            return label
    raise InputError(f"positive is {positive!r}; the target {target!r} has {listing([str(v) for v in y.unique()])}")
