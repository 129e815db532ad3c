"""Predictions for new tables: columns matched by name, with what to know about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from ..contracts import Array, BoolArray, Gram
from ..data.cells import as_trained, is_text, tidy_frame
from ..data.table import as_frame, is_missing
from ..errors import InputError, listing
from ..fitting.memory import refuse_distances
from ..fitting.procedure import decision_values
from ..fitting.training import Model
from .fitted_selector import FittedSelector
from .inputs import read_new

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 500  # rows whose distances to all training rows are looked at together
COMPARED = 10_000  # training rows with which new ones are compared, at most


@dataclass(frozen=True)
class Prediction:
    """Predictions for new rows, with remarks about them.

    Attributes
    ----------
    table : DataFrame
        One row for each sample. `predicted`: the class. `score`: the decision value, above 0 for the positive class;
        with more than two classes that of the predicted one. `probability`: of the positive class (of the predicted one
        with more than two), where the model has probabilities. `far`: whether the sample is further from every training
        sample than any training sample is from its nearest one.
    notes : tuple of str
        Remarks, for example about unknown columns or levels.

    Examples
    --------
    >>> from marginsieve import predict, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> prediction = predict(model, cohort.X)
    >>> prediction.table.columns.tolist(), prediction.notes
    (['predicted', 'score', 'far'], ())
    """

    table: pd.DataFrame
    notes: tuple[str, ...]


def predict(model: FittedSelector, frame: Any) -> Prediction:
    """Predict the rows of a pandas table; only the selected columns have to be present.

    Parameters
    ----------
    model : SVMSelector or Blend
        A fitted selector.
    frame : DataFrame
        New rows, a pandas, polars or arrow table. Columns are matched by name.

    Returns
    -------
    Prediction
        A table with one row for each sample, and remarks.

    Examples
    --------
    >>> from marginsieve import predict, recipes
    >>> from marginsieve.data import make_cohort
    >>> cohort = make_cohort(60, 10, n_relevant=2, effect=2.0, random_state=0)
    >>> model = recipes.fisher(n_features_to_select=2, random_state=0).fit(cohort.X, cohort.y)
    >>> predict(model, cohort.X[["g03", "g07"]]).table.shape
    (60, 3)
    """
    import pandas as pd

    names, support = model.columns_.names, model.support_
    needed = [name for name, taken in zip(names, support, strict=True) if taken]
    frame = _as_named_frame(frame)
    if absent := [name for name in needed if name not in frame.columns]:
        lower = {str(name).strip().lower(): name for name in frame.columns}
        like = lower.get(absent[0].strip().lower())
        hint = "" if like is None else f"; it has {like!r}, which is written differently"
        raise InputError(
            f"the table lacks {listing(absent, 10)}, which the model needs; it needs {len(needed)} in all{hint}"
        )
    if len(frame) == 0:
        raise InputError("the table has no rows to predict")
    original, fixed = frame, tidy_frame(frame[needed])
    if any(fixed[name].dtype != frame[name].dtype for name in needed):
        frame = frame.assign(**fixed)
    rows = _complete(model, frame)
    Z = read_new(model, rows)
    decision = model._decision
    out = pd.DataFrame(decision.columns(decision_values(model.model_, decision, Z)), index=frame.index)
    out["far"] = _far(model, Z)
    spans = [name for name in needed if original[name].dtype.kind == "m"]
    notes = [f"durations were read as seconds: {listing(spans)}"] if spans else []
    return Prediction(out, (*notes, *_notes(model, frame, needed, out)))


def _as_named_frame(table: Any) -> pd.DataFrame:
    """The table as a pandas one, whose columns are named by texts that differ."""
    frame = as_frame(table)
    if frame is None:
        raise InputError(
            f"the table is {type(table).__name__}, whose columns have no names: pass a DataFrame, or use model.predict"
        )
    pandas: pd.DataFrame = frame.to_pandas()
    names = [str(name) for name in pandas.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"column names occur more than once: {listing(twice)}; rename or drop the repeats")
    return pandas.set_axis(names, axis=1)


def _complete(model: FittedSelector, frame: pd.DataFrame) -> Any:
    """The training table's columns: the selected ones from the new table, the others at a value of no consequence."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for j, name in enumerate(model.columns_.names):
        levels = model.columns_.levels.get(j)
        neutral: Any = 0.0 if levels is None else levels[0] if levels else None
        columns[name] = _as_trained(frame[name], levels) if model.support_[j] else neutral
    complete = pd.DataFrame(columns, index=frame.index)
    return complete if hasattr(model, "feature_names_in_") else complete.to_numpy()


def _as_trained(column: pd.Series, levels: Any) -> Any:
    """Text that is numbers with something around them, as it was read for the training."""
    return as_trained(column) if levels is None and is_text(column.dtype) else column


def _far(model: FittedSelector, Z: Any) -> BoolArray:
    """(rows,) by distance in a kernel's space: |x - z|^2 = K(x, x) + K(z, z) - 2 K(x, z).

    Where there are many training rows, some of them stand for all.
    """
    return np.asarray(np.any([_far_of(part, Z) for part in model.model_.models], axis=0))


def _far_of(fitted: Model, Z: Any) -> BoolArray:
    part, view = fitted.rows(Z), fitted.view
    m = view.table.shape[0]
    refuse_distances(min(m, COMPARED))
    gram = view if isinstance(view, Gram) else view.kernel.bind(view.table, view.feature_weight, view.features)
    if m > COMPARED:
        gram = gram.only(np.linspace(0, m - 1, COMPARED).astype(np.intp))
    K = gram.matrix()
    diagonal = K.diagonal()
    limit = -np.inf
    for some in gen_batches(len(K), AT_ONCE):
        among = diagonal[some, None] + diagonal[None, :] - 2.0 * K[some]
        among[np.arange(len(among)), np.arange(some.start, some.stop)] = np.inf
        limit = max(limit, float(among.min(axis=1).max()))
    nearest = np.empty(part.shape[0])
    for some in gen_batches(part.shape[0], AT_ONCE):
        away: Array = gram.diagonal(part[some])[:, None] + diagonal[None, :] - 2.0 * gram.matrix(part[some])
        nearest[some] = away.min(axis=1)
    return np.asarray(nearest > limit + 1e-9 * max(float(diagonal.max()), 1e-300))


def _notes(model: FittedSelector, frame: pd.DataFrame, needed: list[str], out: pd.DataFrame) -> list[str]:
    known = set(model.columns_.names)
    notes = []
    if extra := [str(name) for name in frame.columns if name not in known]:
        notes.append(f"columns that the model does not know were not used: {listing(extra)}")
    for name in needed:
        j = model.columns_.names.index(name)
        if model.columns_.kind[j] == "nominal":
            seen = set(model.columns_.levels.get(j, ()))
            new = [value for value in frame[name].unique().tolist() if not is_missing(value) and value not in seen]
            if new:
                count = int(frame[name].isin(new).sum())
                notes.append(
                    f"{name!r} has levels that training never saw in {count} rows: {listing(new)}; treated as unknown"
                )
    far = int(out["far"].sum())
    if far:
        notes.append(f"{far} of {len(out)} samples are far outside the training samples: do not rely on their classes")
    return notes
