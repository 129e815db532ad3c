"""A fitted model on a new cohort: scores as is and aligned, against what was promised; drift; what can be adapted.

The model is never fitted again. No outcome of the cohort is used but for scores, and for what is asked for and marked:
a recalibration, and a cut at an operating point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ..contracts import Array, BoolArray, Decision, ReadsCohorts, Recalibrates
from ..data.moments import ALIGNMENTS, FEWEST_ALIGNED, FEWEST_COUNTED, FEWEST_UNSHRUNKEN, ColumnShift
from ..data.table import is_missing
from ..engine.scoring import FEWEST, Pass, Scores, score_predictions
from ..errors import InputError, listing, many, shown_value
from ..estimators.fitted_selector import (
    FittedSelector,
    NewRows,
    adapt,
    align_model,
    alignment_of,
    check_prevalence,
    describe_cohort,
    far_rows,
    predict,
    read_cohort,
    stratum_shares,
)
from ..fitting.settings import outcome_of
from ..outcomes import ClassTarget, SurvivalTarget, Target
from ..outcomes.recalibration import read_rule
from ..report.validation_page import SCHEMA
from .forecasting import LEVEL, digest_of_list, forecast_by_promise
from .sentences import meaning_of_gate, sentences_of
from .validated import Validation, plain_values

if TYPE_CHECKING:
    import pandas as pd

GATE = 0.5  # s above which alignment gained in families of real cohorts, and below which it did not
DEFAULT = "location-scale"
UNNAMED = "cohort"
MUCH = 0.15  # between the mix that alignment assumes and that of the labelled rows, beyond which it is said
WRONG_MIX = (  # docs/elsewhere.md, Measured
    "In 6 families of real cohorts with s above 0.5 alignment changed balanced accuracy by +.055 (90 % interval -.007 "
    "to +.116) with the true prevalence, by +.039 (-.034 to +.111) with one .15 too low, and by +.045 (+.002 to +.089) "
    "with one .15 too high"
)
FOLDS = 5  # in which what is adapted is scored
LISTED = 50  # columns and rows that the JSON names


@dataclass(frozen=True)
class ValidationRequest:
    """What is asked for besides the scores: how columns are aligned, what is adapted."""

    align: str | None = None
    prevalence: float | None = None
    recalibrate: bool = False
    cut: str | None = None
    random_state: int = 0
    name: str = ""  # of the cohort, where it has one

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.align is not None and self.align not in ALIGNMENTS:
            raise InputError(f"align is {shown_value(self.align)}; it must be one of {listing(ALIGNMENTS)}")
        if self.prevalence is not None:
            check_prevalence(self.prevalence)
        if self.cut is not None:
            read_rule(self.cut, self.prevalence)


@dataclass(frozen=True)
class ScoredModel:
    """Predictions of one version of the model, of the labelled rows, and their scores; None where they have none."""

    model: FittedSelector
    raw: Array  # (labelled, k) the machine's values
    target: Target
    one_pass: Pass
    scores: Scores | None

    @property
    def decision(self) -> Decision:
        """What its values mean."""
        return self.model._decision


def validate(
    model: FittedSelector,
    X: Any,
    y: Any,
    *,
    promise: Mapping[str, Any] | None = None,
    align: str | None = None,
    prevalence: float | None = None,
    recalibrate: bool = False,
    cut: str | None = None,
    name: str = UNNAMED,
    random_state: int = 0,
) -> Validation:
    """Score a fitted model on a new cohort, beside what was promised; the model is not fitted again.

    Parameters
    ----------
    model : SVMSelector or Blend
        A fitted selector, such as `Study.model`, or one that `load` read.
    X : DataFrame
        The cohort, a pandas, polars or arrow table; columns are matched by name and only the selected ones are needed.
    y : array-like of shape (n_samples,)
        Its outcomes, in the terms of the training table. Rows without one are not scored.
    promise : dict or None, default=None
        The result of the study that made the model (`Study.result`), with what it promised.
    align : "none", "location", "location-scale", "quantiles" or None, default=None
        How numeric columns are brought to the scale of the training rows for a second line of scores. None: by
        location and scale where the columns are shifted (s above 0.5) and there are 10 rows.
    prevalence : float or None, default=None
        Share of the class of interest in the population of the cohort, as you know it; it is never taken from y.
    recalibrate : bool, default=False
        Offer a model whose probabilities are fitted to the cohort, with scores out of fold.
    cut : str or None, default=None
        Offer a model with another cut: "prevalence", "sensitivity:0.9", "specificity:0.9" or "probability:0.2".
    name : str, default="cohort"
        What the cohort is called.
    random_state : int, default=0
        Seed of the folds in which adapted models are scored.

    Returns
    -------
    Validation
        Scores, drift, predictions, the page, and the adapted models that were asked for.

    Examples
    --------
    >>> import marginsieve
    >>> from marginsieve.data import make_cohort
    >>> old, new = make_cohort(60, 10, n_relevant=2, effect=2.0, cohorts=2, random_state=0)
    >>> study = marginsieve.study(old.X, old.y, methods="fisher", cv=3, n_repeats=1, without="suspects")
    >>> validation = marginsieve.validate(study.model, new.X, new.y, promise=study.result)
    >>> 0.5 < validation.scores["auc"]["value"] <= 1.0
    True
    """
    request = ValidationRequest(align, prevalence, recalibrate, cut, random_state, "" if name == UNNAMED else name)
    request.check()
    rows = read_cohort(model, X)
    labelled = ~np.array([is_missing(value) for value in _values(y, len(rows.frame))], dtype=bool)
    target = _read_target(model, rows, y, labelled)
    known = _known_promise(model, promise)
    as_is = _line(model, X, target, labelled)
    lines, why = {"as_is": as_is}, _why_not_aligned(model, rows, request)
    if why is None:
        moved = align_model(model, X, request.align or DEFAULT, prevalence, request.name)
        lines["aligned"] = _line(moved, X, target, labelled)
    entry: dict[str, Any] = {
        "name": name,
        "rows": len(rows.frame),
        "labelled": int(labelled.sum()),
        "mix": _mix(model, target),
        "forecast": _forecast(known, target),
        "lines": {key: _describe_line(line, known) for key, line in lines.items()},
        "not_aligned": why,
        "prevalence": prevalence,
        "drift": _drift(model, rows),
        "far": _far(model, rows, lines["aligned"].model if "aligned" in lines else None, X),
        "notes": [
            *_marks(model),
            *_notes(rows, labelled, as_is),
            *_doubt_mix(model, target, request, "aligned" in lines),
        ],
    }
    offered, models = _adapt_lines(lines, request)
    entry["adapted"] = offered
    if "aligned" in lines:
        models = {"aligned": lines["aligned"].model, **models}
    entry["files"] = {variant: f"{variant}.marginsieve" for variant in models}
    prediction = _predictions(lines, X, labelled, y)
    result = _result(model, entry, known, promise, list(lines.values()))
    entry["sentences"] = sentences_of(result, entry)
    return Validation(plain_values(result), {name: prediction}, {name: _drift_frame(model, rows)}, models)


# -- reading ----------------------------------------------------------------------------------------------------------


def _values(y: Any, m: int) -> Any:
    """(m,) or (m, columns) the outcomes as they were given, a value for each row."""
    named = getattr(getattr(y, "dtype", None), "names", None)  # of a structured array
    values = np.asarray(y if named is None else y[named[0]], dtype=object)
    values = values[:, 0] if values.ndim == 2 else values
    if values.ndim != 1 or len(values) != m:
        raise InputError(f"X has {m} rows and y {len(values) if values.ndim else 0}; they must be as many")
    return values


def _read_target(model: FittedSelector, rows: NewRows, y: Any, labelled: BoolArray) -> Target:
    """The labelled rows' outcomes in the terms of the model."""
    if not labelled.any():
        raise InputError("no row of the cohort has an outcome: predict takes rows without one")
    known = y[labelled] if hasattr(y, "loc") else np.asarray(y)[labelled]
    outcome, decision = outcome_of(model), model._decision
    if isinstance(decision, ReadsCohorts):
        target: Target = decision.read_new(known, outcome)
    else:
        target = outcome.read(rows.frame[labelled], known).settle(outcome)
    return target


def _known_promise(model: FittedSelector, promise: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a study promised of this model; refuses the result of another one."""
    if promise is None:
        return None
    if "promise" not in promise:
        raise InputError("promise is not the result of a study of this version: run `marginsieve select` again")
    blocks = (promise["analyses"].get("blocks") or {"blocks": []})["blocks"]
    known = [*promise["promise"].values(), *(block.get("promise") for block in blocks)]
    ours = digest_of_list(name for name, taken in zip(model.columns_.names, model.support_, strict=True) if taken)
    for each in known:
        if each is not None and each["list"] == ours:
            return dict(each)
    raise InputError(
        f"promise is that of a model of {many(promise['n_features'], 'feature')} and the model has "
        f"{model.n_features_}, or others: it is the result of another study"
    )


def _why_not_aligned(model: FittedSelector, rows: NewRows, request: ValidationRequest) -> str | None:
    """Why there is no aligned line; None where there is one."""
    if request.align == "none":
        return "it was not asked for"
    if request.align is None and (aligned := alignment_of(model)) is not None:
        return f"the model was aligned before, by {aligned.rows} rows of {aligned.cohort or 'a cohort'}"
    if request.align is not None:
        return None
    if getattr(model, "training_", None) is None:
        return "the model has no moments of its training columns"
    gate = _shift(model, rows).gate
    if gate is None:
        return "the model has no numeric column"
    if gate <= GATE:
        return "the columns are hardly shifted"
    if len(rows.frame) < FEWEST_ALIGNED:
        return f"the cohort has {len(rows.frame)} rows, fewer than {FEWEST_ALIGNED}"
    return None


# -- lines of scores --------------------------------------------------------------------------------------------------


def _line(model: FittedSelector, X: Any, target: Target, labelled: BoolArray) -> ScoredModel:
    """The model's predictions of the labelled rows."""
    raw = model.model_.decision(read_cohort(model, X).Z)[labelled]
    return _score_line(model, raw, target, _pass(model._decision, raw, target))


def _score_line(model: FittedSelector, raw: Array, target: Target, one_pass: Pass) -> ScoredModel:
    scores = score_predictions(target, [one_pass], fixed=True) if target.complete else None
    return ScoredModel(model, raw, target, one_pass, scores)


def _pass(decision: Decision, raw: Array, target: Target) -> Pass:
    """Predictions of one model, which are on one scale."""
    entry = target.entry(decision, raw)
    columns = {name: None if entry.get(name) is None else np.asarray(entry[name]) for name in Pass.__annotations__}
    return Pass(**{**columns, "fold": None, "unit": None})


def _describe_line(line: ScoredModel, promise: dict[str, Any] | None) -> dict[str, Any]:
    """Scores, differences from the promise, what is predicted, pictures."""
    predictions = line.one_pass
    named = np.asarray(line.target.in_terms_of_user(predictions.predicted)).astype(str)
    called, counts = np.unique(named, return_counts=True)
    pictures = {"curves": None, "confusion": None}
    if line.scores is not None:
        pictures = line.target.pictures(
            predictions.predicted[None],
            None if predictions.decision is None else predictions.decision[None],
            None if predictions.probability is None else predictions.probability[None],
        )
    few = len(called) <= LISTED
    return {
        "marks": _marks(line.model),
        "scores": _plain_scores(line.scores),
        "differences": _differences(line, promise),
        "chances": _describe_chances(line),
        "called": {str(label): int(count) for label, count in zip(called, counts, strict=True)} if few else None,
        **pictures,
    }


def _describe_chances(line: ScoredModel) -> dict[str, Any] | None:
    """The mean probability of the class of interest, its range over 95 % of the rows, and the share that is of it."""
    target = line.target
    if line.one_pass.probability is None or not isinstance(target, ClassTarget) or target.positive is None:
        return None
    p = np.asarray(line.one_pass.probability, dtype=float)
    low, high = np.quantile(p, [0.025, 0.975])
    known = {"mean": p.mean(), "observed": np.mean(target.codes == target.positive), "low": low, "high": high}
    return {"class": str(target.classes[target.positive]), **known}


def _marks(model: FittedSelector) -> list[str]:
    known = getattr(model, "adaptation_", None)
    return [] if known is None else list(known.marks)


def _plain_scores(scores: Scores | None) -> dict[str, dict[str, float]]:
    if scores is None:
        return {}
    ends = {"value": scores.value, "low": scores.low, "high": scores.high, "error": scores.error}
    return {name: {key: values[name] for key, values in ends.items()} for name in scores.value}


def _differences(line: ScoredModel, promise: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Each score less the promised one, with its interval; scores that depend on the mix of classes have none."""
    if promise is None or line.scores is None:
        return {}
    scores, metrics = line.scores, line.target.metrics
    few = min(promise["effective_count"], scores.effective_count)
    reach = float(stats.t.ppf(0.975, max(few - 1, 1)))
    out = {}
    for name, value in scores.value.items():
        if name not in promise["scores"] or metrics[name].varies_with_mix:
            continue
        known = promise["scores"][name]
        change = value - known["value"]
        error = float(np.hypot(scores.error[name], known["error"]))
        ends = (change - reach * error, change + reach * error) if few >= FEWEST else (float("nan"), float("nan"))
        scarce = None
        if few < FEWEST:
            whose = "training table" if promise["effective_count"] == few else "cohort"
            scarce = f"the {whose} has {few} {_scarce_words(line.target, promise, whose)}"
        out[name] = {"value": change, "low": ends[0], "high": ends[1], "scarce": scarce}
    return out


def _scarce_words(target: Target, promise: Mapping[str, Any], whose: str) -> str:
    """What there are few of: rows of the rarest class, or what else decides how sure a score is."""
    if whose == "cohort" or len(promise["counts"]) != len(target.stratum_names):
        return target.scarce_rows
    return f"rows of {target.stratum_names[int(np.argmin(promise['counts']))]}"


def _mix(model: FittedSelector, target: Target) -> list[dict[str, Any]]:
    """The share of each stratum in the training rows and in the cohort."""
    names, training = target.stratum_names, getattr(model, "training_", None)
    counts = np.bincount(target.strata, minlength=len(names))
    shares = [None] * len(names) if training is None or len(training.rows) != len(names) else training.shares.tolist()
    return [
        {"name": name, "rows": int(count), "share": float(count / counts.sum()), "training": share}
        for name, count, share in zip(names, counts, shares, strict=True)
    ]


def _forecast(promise: dict[str, Any] | None, target: Target) -> dict[str, Any] | None:
    """Between which values the score was forecast for a cohort of this size and mix."""
    if promise is None or not target.complete:
        return None
    known = forecast_by_promise(target, promise, target.cohort_counts)
    return None if known is None else {"score": target.forecast_by, "level": LEVEL, **asdict(known)}


# -- drift ------------------------------------------------------------------------------------------------------------


def _shift(model: FittedSelector, rows: NewRows) -> ColumnShift:
    return ColumnShift.between(model.training_, describe_cohort(model, rows.Z))


def _drift(model: FittedSelector, rows: NewRows) -> dict[str, Any]:
    """The gate and the columns that are furthest from the training rows."""
    frame = _drift_frame(model, rows)
    gate = None if getattr(model, "training_", None) is None else _shift(model, rows).gate
    order = frame.assign(size=frame["shift"].abs()).sort_values("size", ascending=False, kind="stable")
    return {
        "gate": gate,
        "limit": GATE,
        "meaning": meaning_of_gate(gate, GATE, hasattr(model, "classes_"), order.to_dict("records")),
        "columns": order.drop(columns="size").head(LISTED).to_dict("records"),
        "n_columns": len(frame),
        "new_levels": frame.loc[frame["new_levels"] > 0, "name"].tolist(),
        "uncounted": frame.loc[frame["filled"] < min(FEWEST_COUNTED, len(rows.frame)), "name"].tolist(),
        "more_missing": [
            {"name": each["name"], "missing": each["missing"], "training": each["missing_in_training"]}
            for each in frame.to_dict("records")
            if each["missing"] > each["missing_in_training"] + 0.1
        ],
    }


def _drift_frame(model: FittedSelector, rows: NewRows) -> pd.DataFrame:
    """A row for each selected column: how it was, how it is, how far it is shifted beyond sampling."""
    import pandas as pd

    columns = np.flatnonzero(model.support_)
    new, kinds = describe_cohort(model, rows.Z), [model.columns_.kind[j] for j in columns]
    unknown = np.full(len(columns), np.nan)
    training = getattr(model, "training_", None)
    known = None if training is None else _shift(model, rows)
    Z = rows.Z[:, columns]
    cells = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    levels = [len(model.columns_.levels.get(int(j), ())) for j in columns]
    fresh = [int(np.sum(cells[:, k] >= levels[k])) if kind == "nominal" else 0 for k, kind in enumerate(kinds)]
    with np.errstate(all="ignore"):
        scale = unknown if known is None else np.exp(known.ratio)
        z = unknown if known is None else known.shift / np.sqrt(known.shift_variance)
    return pd.DataFrame(
        {
            "name": new.names,
            "kind": kinds,
            "mean_in_training": unknown if known is None else np.where(np.isfinite(known.shift), known.mean, np.nan),
            "mean": np.where(new.numeric & (new.count[0] > 0), new.mean[0], np.nan),
            "shift": unknown if known is None else known.shift,
            "shift_z": z,
            "scale": scale,
            "missing_in_training": unknown if training is None else training.missing,
            "missing": new.missing,
            "filled": np.rint(len(cells) * (1.0 - new.missing)).astype(int),
            "new_levels": fresh,
        }
    )


def _far(model: FittedSelector, rows: NewRows, aligned: FittedSelector | None, X: Any) -> dict[str, Any]:
    """Rows further from every training row than any of these is from its nearest one; their number once aligned."""
    far = far_rows(model, rows.Z)
    return {
        "count": int(far.sum()),
        "share": float(far.mean()),
        "rows": (1 + np.flatnonzero(far)[:LISTED]).tolist(),
        "aligned": None if aligned is None else int(far_rows(aligned, read_cohort(aligned, X).Z).sum()),
    }


def _notes(rows: NewRows, labelled: BoolArray, line: ScoredModel) -> list[str]:
    """What cannot be said of the cohort, and why."""
    notes, target = list(rows.notes), line.target
    if target.has_auc and line.one_pass.probability is None:
        notes.append(
            "the model was fitted without probabilities, so there is no Brier score, calibration or net benefit: fit "
            "it with probability=True"
        )
    if lacking := int((~labelled).sum()):
        notes.append(f"{many(lacking, 'row')} without an outcome {'is' if lacking == 1 else 'are'} not scored")
    if not target.complete:
        absent = [name for code, name in enumerate(target.stratum_names) if not (target.strata == code).any()]
        which = f"no row of {listing(absent)}" if absent else target.describe_counts(target.cohort_counts)
        notes.append(f"the cohort has {which}: nothing can be scored")
    elif target.effective_count < FEWEST:
        notes.append(f"fewer than {FEWEST} {target.scarce_rows}: no intervals are given")
    if len(rows.frame) < FEWEST_UNSHRUNKEN:
        notes.append(f"below {FEWEST_UNSHRUNKEN} rows shifts and scales are shrunken towards no change")
    return notes


def _doubt_mix(model: FittedSelector, target: Target, request: ValidationRequest, aligned: bool) -> list[str]:
    """That the labelled rows are mixed otherwise than alignment took them to be; that the prevalence was not used."""
    prevalence = request.prevalence
    if not aligned:
        unused = prevalence is not None and request.cut != "prevalence"
        return ["the prevalence was not used: nothing was aligned"] if unused else []
    if not isinstance(target, ClassTarget) or not target.binary:
        return []
    expected = model.training_.shares if prevalence is None else stratum_shares(model, prevalence)
    share = np.bincount(target.strata, minlength=len(expected)) / len(target)
    if float(np.abs(expected - share).max()) <= MUCH:
        return []
    mixes = [
        ", ".join(f"{name} {part:.0%}" for name, part in zip(target.stratum_names, parts, strict=True))
        for parts in (expected, share)
    ]
    source = "as in training" if prevalence is None else "by the given prevalence"
    return [f"alignment took the mix to be {mixes[0]} ({source}), and the labelled rows are {mixes[1]}. {WRONG_MIX}"]


# -- adapted models ---------------------------------------------------------------------------------------------------


def _adapt_lines(
    lines: dict[str, ScoredModel], request: ValidationRequest
) -> tuple[list[dict[str, Any]], dict[str, FittedSelector]]:
    """Models that learned from the labelled rows, with scores out of fold and the apparent ones beside them."""
    offered: list[dict[str, Any]] = []
    models: dict[str, FittedSelector] = {}
    for key, line in lines.items():
        start, decision = "" if key == "as_is" else f"{key}-", line.decision
        if not (request.recalibrate or request.cut):
            continue
        if not isinstance(decision, Recalibrates):
            raise InputError("recalibrate and cut are for models of two classes: leave them out")
        if line.scores is not None and np.fmin(line.scores.low["auc"], line.scores.value["auc"]) <= 0.5:
            why = "it is not shown that the model ranks here; neither recalibration nor another cut can help that"
            names = [name for name, listed in (("recalibrated", request.recalibrate), ("cut", request.cut)) if listed]
            offered += [{"name": f"{start}{name}", "how": None, "why_not": why} for name in names]
            continue
        m = len(line.target)
        if request.recalibrate:

            def fit(raw: Array, target: Target, decision: Any = decision, key: str = key, m: int = m) -> Any:
                return decision.recalibrate(raw, target, key == "aligned", m)

            offer(f"{start}recalibrated", line, fit, request, offered, models)
        if (rule := request.cut) is not None:

            def move(raw: Array, target: Target, decision: Any = decision, rule: str = rule) -> Any:
                return decision.move_cut(raw, target, rule, request.prevalence)

            offer(f"{start}cut", line, move, request, offered, models)
    return offered, models


def offer(
    name: str,
    line: ScoredModel,
    fit: Callable[[Array, Target], tuple[Decision, str]],
    request: ValidationRequest,
    offered: list[dict[str, Any]],
    models: dict[str, FittedSelector],
) -> None:
    """Add a model whose decision was fitted to the labelled rows, or why there is none."""
    try:
        decision, how = fit(line.raw, line.target)
    except InputError as error:
        offered.append({"name": name, "how": None, "why_not": str(error)})
        return
    mark = f"{how}: fitted to {many(len(line.target), 'labelled row')} of {request.name or 'a new cohort'}"
    models[name] = adapt(line.model, mark, decision=decision)
    apparent = _score_line(line.model, line.raw, line.target, _pass(decision, line.raw, line.target)).scores
    offered.append(
        {
            "name": name,
            "how": how,
            "why_not": None,
            "scores": _plain_scores(_scores_out_of_fold(line, fit, request.random_state)),
            "apparent": _plain_scores(apparent),
        }
    )


def _scores_out_of_fold(
    line: ScoredModel, fit: Callable[[Array, Target], tuple[Decision, str]], random_state: int
) -> Scores | None:
    """The same fitted on the other folds; None where no folds can be made."""
    target, k = line.target, min(FOLDS, line.target.fold_limit().count)
    if k < 2:
        return None
    entries, order = [], []
    for train, test in target.folds(k, random_state):
        try:
            decision, _ = fit(line.raw[train], target.take(train))
        except InputError:  # too few rows without the fold
            return None
        entries.append(target.take(test).entry(decision, line.raw[test]))
        order.append(test)
    rows = np.concatenate(order)
    one_pass = replace(Pass.from_entries(entries), fold=None, unit=None)  # one machine gave all the values
    return score_predictions(target.take(rows), [one_pass], fixed=True)


# -- the result -------------------------------------------------------------------------------------------------------


def _predictions(lines: dict[str, ScoredModel], X: Any, labelled: BoolArray, y: Any) -> pd.DataFrame:
    """A row for each of the cohort: the outcome as given, and what each version of the model says."""
    frame = predict(lines["as_is"].model, X).table.reset_index(drop=True)
    frame.insert(0, "row", range(1, len(frame) + 1))
    for place, (name, values) in enumerate(_observed(lines["as_is"].target, y, labelled).items(), 1):
        frame.insert(place, name, values)
    if "aligned" in lines:
        moved = predict(lines["aligned"].model, X).table.reset_index(drop=True)
        for name in ("predicted", "score", "probability"):
            if name in moved:
                frame[f"{name}_aligned"] = moved[name]
    return frame


def _observed(target: Target, y: Any, labelled: BoolArray) -> dict[str, Any]:
    """Columns of the outcomes as they were given: of times to an event also whether it was seen."""
    columns = {"observed": _values(y, len(labelled))}
    if isinstance(target, SurvivalTarget):
        columns = {name: np.full(len(labelled), None, dtype=object) for name in ("time", "event")}
        columns["time"][labelled], columns["event"][labelled] = target.time, target.event.astype(int)
    return {
        name: [v if known else None for v, known in zip(values, labelled, strict=True)]
        for name, values in columns.items()
    }


def _result(
    model: FittedSelector,
    entry: dict[str, Any],
    known: dict[str, Any] | None,
    promise: Mapping[str, Any] | None,
    lines: Sequence[ScoredModel],
) -> dict[str, Any]:
    target, metrics = lines[0].target, lines[0].target.metrics
    named = [name for name in metrics if any(line.scores is None or name in line.scores.value for line in lines)]
    return {
        "schema": SCHEMA,
        "kind": "validation",
        "version": version("marginsieve"),
        "target": "the outcome" if promise is None else promise["table"]["target"],
        "model": {
            "n_features": model.n_features_,
            "marks": _marks(model),
            "headline": None if promise is None else promise["answer"]["headline"],
            "training_rows": None if getattr(model, "training_", None) is None else float(model.training_.rows.sum()),
        },
        "words": asdict(target.words),
        "metrics": {name: metrics[name].title for name in named},
        "short_names": {name: metrics[name].short or metrics[name].title for name in named},
        "by_mix": [name for name in named if metrics[name].varies_with_mix],
        "listed_scores": [name for name in named if metrics[name].listed],
        "promise": known,
        "cohorts": [entry],
        "pooled": None,
        "not_pooled": "",
        "refused": {},
        "how": {"command": None},
    }
