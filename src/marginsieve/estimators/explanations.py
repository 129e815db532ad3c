"""Why a row: what each selected feature adds to its decision value, from a baseline to the row.

A model is additive where its value is a sum over features, as of a linear or a clinical kernel: then what a feature
adds is exact. For others it is the mean over orders of the features of what the value changes by when the feature is
moved from the baseline to the row (Shapley's value, estimated; each random order and its reverse). In either case the
contributions and the value at the baseline sum to the value of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..contracts import Array, Decision, IntArray, is_sparse
from ..errors import InputError
from ..fitting.procedure import decision_values
from ..fitting.training import AnyModel, Blended
from .fitted_selector import FittedSelector, read_cohort

if TYPE_CHECKING:
    import pandas as pd

PAIRS_OF_ORDERS = 8  # of a model that is not additive
MOST_CELLS = 2_000_000  # of rows that are looked at together
Value = Callable[[Array], Array]  # of rows of the selected columns (r, p): (r, k)


@dataclass(frozen=True)
class Explanation:
    """What each selected feature adds to the decision values of rows.

    Attributes
    ----------
    contributions : DataFrame
        A row for each sample and a column for each selected feature.
    base : array of shape (rows,)
        The value at the baseline; it and a row's contributions sum to the row's value. One number but where there are
        more than two classes: there it is that of the predicted class.
    baseline : dict of str to value
        The values of the features that rows are compared with.
    exact : bool
        Whether the model is a sum over features; else contributions are means over orders.

    Examples
    --------
    >>> from marginsieve import explain, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> known = explain(model, cohort.X.head(3))
    >>> known.contributions.columns.tolist(), known.exact
    (['g03', 'g07'], True)
    """

    contributions: pd.DataFrame
    base: Array
    baseline: dict[str, Any]
    exact: bool

    @property
    def words(self) -> str:
        """What the contributions are."""
        how = "exactly: the model is a sum over features"
        if not self.exact:
            how = (
                f"on average over {2 * PAIRS_OF_ORDERS} orders of the features, since the model is not a sum over them"
            )
        return f"base and the columns adds_NAME sum to the score; what a feature adds to the baseline's is given {how}"

    def join_to(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of the same rows with the value at the baseline and what each feature adds."""
        import pandas as pd

        added = self.contributions.add_prefix("adds_").reset_index(drop=True)
        return pd.concat([table.assign(base=self.base), added], axis=1)


def explain(model: FittedSelector, frame: Any, baseline: Any = None, random_state: int = 0) -> Explanation:
    """What each selected feature adds to the decision values of rows, which `predict` calls the score.

    Parameters
    ----------
    model : SVMSelector or Blend
        A fitted selector.
    frame : DataFrame
        Rows; columns are matched by name.
    baseline : DataFrame of one row, or None, default=None
        What rows are compared with; None is the mean of the training rows for numbers, and the most frequent level for
        other columns.
    random_state : int, default=0
        Seed of the orders, for models that are not a sum over features.

    Returns
    -------
    Explanation
        Contributions, the value at the baseline, the baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from marginsieve import explain, predict, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> known, score = explain(model, cohort.X), predict(model, cohort.X).table["score"]
    >>> np.allclose(known.base + known.contributions.sum(axis=1), score)
    True
    """
    import pandas as pd

    new, columns = read_cohort(model, frame), np.flatnonzero(model.support_)
    Z = _dense(new.Z, columns)
    if baseline is None:
        start = typical_row(model, columns)
    else:
        start = _dense(read_cohort(model, baseline).Z, columns)
        if len(start) != 1:
            raise InputError(f"baseline has {len(start)} rows; it must be one row")
        start = start[0]
    exact = all(part.view.kernel.additive for part in model.model_.models)
    rng = np.random.default_rng(random_state)
    orders = [rng.permutation(len(columns)) for _ in range(0 if exact else PAIRS_OF_ORDERS)]
    orders = [order for each in orders for order in (each, each[::-1])] or [np.arange(len(columns))]
    value = _value_of(narrow_model(model.model_, columns), model._decision, is_sparse(new.Z))
    parts = value(Z)
    which = parts.argmax(axis=1)  # of the values of several classes that of the predicted one
    table = contributions(value, Z, start, orders, which)
    frame = pd.DataFrame(table, columns=new.needed, index=new.frame.index)
    base = np.broadcast_to(value(start[None]), parts.shape)[np.arange(len(Z)), which]
    return Explanation(frame, np.asarray(base), _describe(model, columns, start), exact)


def contributions(value: Value, Z: Array, start: Array, orders: list[IntArray], which: IntArray) -> Array:
    """(r, p): the mean over orders of what each feature changes the value by, on the way from `start` (p,) to Z (r, p).

    `which` (r,) is the column of the value that is looked at.
    """
    out = np.zeros(Z.shape)
    step = max(1, MOST_CELLS // max(Z.shape[1] * (Z.shape[1] + 1), 1))
    for first in range(0, len(Z), step):
        rows = np.arange(first, min(first + step, len(Z)))
        for order in orders:
            way = np.tile(start, (len(rows), len(order) + 1, 1))
            for k, feature in enumerate(order, 1):
                way[:, k:, feature] = Z[rows, feature][:, None]
            known = value(way.reshape(-1, Z.shape[1])).reshape(len(rows), len(order) + 1, -1)
            known = known[np.arange(len(rows)), :, which[rows]]
            out[np.ix_(rows, order)] += np.diff(known, axis=1) / len(orders)
    return out


def narrow_model(model: AnyModel, columns: IntArray) -> AnyModel:
    """The same model for rows that have these columns alone."""
    parts = tuple(replace(part, features=np.searchsorted(columns, part.features)) for part in model.models)
    return replace(model, models=parts) if isinstance(model, Blended) else parts[0]


def typical_row(model: FittedSelector, columns: IntArray) -> Array:
    """(p,) the mean of the training rows' numbers, and the most frequent level of other columns, as codes."""
    out = np.full(len(columns), np.nan)
    for part in model.model_.models:
        cells = part.view.table.Z
        cells = np.array(cells.toarray() if is_sparse(cells) else cells, dtype=np.float64)
        if part.scaling is not None:
            cells = cells / part.scaling.factor + part.scaling.shift
        for place, feature in enumerate(part.features):
            known = cells[~np.isnan(cells[:, place]), place]
            if len(known):
                levels, count = np.unique(np.round(known, 9), return_counts=True)
                numeric = model.columns_.kind[feature] == "real"
                out[np.searchsorted(columns, feature)] = known.mean() if numeric else levels[count.argmax()]
    return out


def _value_of(model: AnyModel, decision: Decision, as_sparse: bool) -> Value:
    """What `predict` calls the score of rows, or the number that it predicts; of several classes a column for each."""

    def value(rows: Array) -> Array:
        known = decision_values(model, decision, sparse.csr_array(rows) if as_sparse else np.asfortranarray(rows))
        if known.ndim == 2:
            return known
        table = decision.columns(known)
        return np.asarray(table["score"] if "score" in table else table["predicted"], dtype=np.float64)[:, None]

    return value


def _dense(Z: Any, columns: IntArray) -> Array:
    part = Z[:, columns]
    return np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64)


def _describe(model: FittedSelector, columns: IntArray, row: Array) -> dict[str, Any]:
    """The baseline in the terms of the table."""
    out: dict[str, Any] = {}
    for j, code in zip(columns.tolist(), row.tolist(), strict=True):
        levels = model.columns_.levels.get(j)
        out[model.columns_.names[j]] = code
        if levels and not np.isnan(code) and 0 <= round(code) < len(levels):
            out[model.columns_.names[j]] = levels[round(code)]
    return out
