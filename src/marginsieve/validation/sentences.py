"""What a validation says in words: the score against the promise and the forecast, the cut, drift, what was aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from ..data.moments import FEWEST_COUNTED
from ..errors import listing, many
from ..report.numbers import format_score, format_share

NAMED = 5  # columns in a sentence
FEWEST_POOLED, MANY = 3, 10  # cohorts that are pooled, and of which tau is known well
CHANCE = 0.5  # of an AUC, and of C
FURTHEST = 3  # columns that are said to make a shift
MUCH_SCALED = 5.0  # ratio of deviations that another unit may explain
HARDLY = 0.05  # between the ends of 95 % of the probabilities, which hardly vary then
UNKNOWN: dict[str, Any] = {"value": None, "low": None, "high": None}


def meaning_of_gate(
    gate: float | None, limit: float, measured: bool = True, columns: Sequence[Mapping[Any, Any]] = ()
) -> str:
    """What s says, by what alignment did for families of real cohorts, whose outcomes were classes."""
    if gate is None:
        return "It is not known how far the columns are shifted."
    if gate > limit:
        return (
            f"The columns are shifted by s = {gate:.2f} standard deviations (root mean square beyond what sampling "
            f"gives), {_name_shifted(columns)}. Above {limit:g} alignment by the cohort's own rows changed balanced "
            "accuracy by +.057 on average (90% interval +.001 to +.113; six families of cohorts, most of it in one)"
            f"{'.' if measured else '; of other outcomes than classes that was not measured.'}"
        )
    return f"The columns are hardly shifted: s = {gate:.2f}, and up to {limit:g} alignment gained nothing on average."


def _name_shifted(columns: Sequence[Mapping[Any, Any]]) -> str:
    """The columns that make most of the shift; `columns` are all of a model, the furthest first."""
    known = [each for each in columns if each["shift"] is not None and isfinite(each["shift"])]
    total = sum(each["shift"] ** 2 for each in known)
    few = next((k for k in range(1, FURTHEST + 1) if sum(c["shift"] ** 2 for c in known[:k]) >= total / 2), 0)
    if not few:
        return f"over many columns; the furthest is {_describe_shift(known[0])}" if known else "in all"
    return f"mostly {'; '.join(map(_describe_shift, known[:few]))}"


def _describe_shift(column: Mapping[Any, Any]) -> str:
    ratio = column["scale"]
    text = f"'{column['name']}': mean {column['mean']:.3g} here, {column['mean_in_training']:.3g} in training"
    if ratio is None or not isfinite(ratio):
        return text
    other = ratio > MUCH_SCALED or ratio < 1.0 / MUCH_SCALED
    spread = f"{ratio:.2g}" if ratio >= 1 else f"1/{1 / ratio:.2g}"
    return f"{text}, spread {spread} of that in training{', check the unit' if other else ''}"


def sentences_of(result: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """The answer about one cohort; the first sentence is the headline."""
    as_is = entry["lines"]["as_is"]
    texts = [_headline(result, entry), _ranking(entry), _forecast(result, entry), _cut(result, as_is), _mix(entry)]
    texts += [
        describe_calibration(entry),
        entry["drift"]["meaning"],
        _describe_alignment(result, entry),
        _levels(entry),
        _far(entry),
    ]
    texts += [_describe_offer(result, offered) for offered in entry["adapted"]]
    return [text for text in texts if text]


def _score(result: Mapping[str, Any], scores: Mapping[str, Any], name: str) -> str:
    value, span = format_score(_with_gaps(scores[name]))
    return f"{result['short_names'][name]} {value} ({span})"


def _with_gaps(score: Mapping[str, Any]) -> dict[str, Any]:
    """A score with None in place of ends that are not known."""
    return {key: None if value is None or value != value else value for key, value in score.items()}


def _leading(result: Mapping[str, Any], scores: Mapping[str, Any]) -> str | None:
    """The score that sentences are about: that of the ranking, where there is one."""
    names = [name for name in result["listed_scores"] if name in scores]
    return names[-1] if names else None


def _difference(change: Mapping[str, Any] | None, place: str = "") -> str:
    """Whether a score differs from the promised one by more than chance."""
    if change is None:
        return ""
    value, span = format_score(_with_gaps(change), signed=True)
    if span == "no interval":
        text = f"; that is {value} from the promise"
        if place in ("above", "below"):
            return f"{text} and {place} the forecast"
        scarce = change.get("scarce")
        return f"{text}, but {scarce}, too few to tell a difference from chance" if scarce else text
    word = "lower than promised" if change["high"] < 0 else "higher than promised" if change["low"] > 0 else None
    if word is None:
        return f"; a difference from the promise is not shown ({value}, {span})"
    return f"; {word} by more than chance ({value}, {span})"


def _headline(result: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    line, promise = entry["lines"]["as_is"], result["promise"]
    name = _leading(result, line["scores"])
    if name is None:
        return f"{entry['name']}: {many(entry['labelled'], 'row')} that cannot be scored."
    text = (
        f"On {many(entry['labelled'], 'row')} of {entry['name']} the model has {_score(result, line['scores'], name)}"
    )
    if promise is None or name not in promise["scores"]:
        return f"{text}."
    known = entry["forecast"]
    place = _place(line["scores"][name]["value"], known["same"]) if known and known["score"] == name else ""
    text += _difference(line["differences"].get(name), place)
    return f"Promised: {_score(result, promise['scores'], name)}. {text}."


def _forecast(result: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    known, scores = entry["forecast"], entry["lines"]["as_is"]["scores"]
    if known is None:
        return ""
    name, value = known["score"], scores[known["score"]]["value"]

    def place(ends: Any) -> str:
        little = f", which says little: {CHANCE:g} is inside too" if _place(CHANCE, ends) == "inside" else ""
        return f"{ends[0]:.2f} to {ends[1]:.2f} (it is {_place(value, ends)}{little})"

    return (
        f"The {known['level']:.0%} forecast for a cohort of this size and mix was {result['short_names'][name]} "
        f"{place(known['same'])} where it is measured in the same way, and {place(known['elsewhere'])} where it is "
        "measured elsewhere."
    )


def _place(value: float, ends: Any) -> str:
    return "below" if value < ends[0] else "above" if value > ends[1] else "inside"


def _ranking(entry: Mapping[str, Any]) -> str:
    """A warning where it is not shown that the model ranks the rows."""
    known = _with_gaps(entry["lines"]["as_is"]["scores"].get("auc", UNKNOWN))
    lowest = known["value"] if known["low"] is None else known["low"]
    if lowest is None or lowest > CHANCE:
        return ""
    if known["low"] is None:
        return f"It is not shown that the model ranks here: the AUC is {known['value']:.2f}."
    if known["high"] < CHANCE:
        return "The model ranks the rows the wrong way round here: the interval of the AUC lies below 0.5."
    return "It is not shown that the model ranks here: the interval of the AUC includes 0.5."


def _cut(result: Mapping[str, Any], line: Mapping[str, Any]) -> str:
    """What the model's own cut does here."""
    names = [name for name in result["listed_scores"][:1] if name in line["scores"]]
    if not names or len(result["listed_scores"]) < 2:
        return ""
    known = _score(result, line["scores"], names[0])
    text = f"At the model's cut: {known}{_difference(line['differences'].get(names[0]))}"
    called = line["called"]
    if called is not None and len(called) == 1:
        text += f". Every row is called {next(iter(called))}"
    elif called is not None:
        total = sum(called.values())
        text += f". Called: {', '.join(f'{label} {count} ({count / total:.0%})' for label, count in called.items())}"
    return f"{text}."


def _mix(entry: Mapping[str, Any]) -> str:
    if len(entry["mix"]) < 2:
        return ""
    parts = [
        f"{each['name']} {each['share']:.0%}"
        + ("" if each["training"] is None else f" (training {each['training']:.0%})")
        for each in entry["mix"]
    ]
    return f"The mix of the cohort: {', '.join(parts)}."


def describe_calibration(entry: Mapping[str, Any]) -> str:
    """Mean predicted probability against the share observed, the intercept against 0, the slope against 1."""
    line = entry["lines"]["as_is"]
    if (shift := line["scores"].get("calibration_intercept_at")) is not None:
        return _calibration_at(shift, line["scores"].get("calibration_slope_at"))
    known, scores = line["chances"], line["scores"]
    if known is None:
        return ""
    text = f"is {known['mean']:.2f}, and {known['observed']:.2f} observed"
    texts = [f"Calibration: the mean predicted probability of {known['class']} {text}"]
    if known["high"] - known["low"] < HARDLY:
        texts[0] += f"; the probabilities hardly vary (95% of the rows {known['low']:.3f} to {known['high']:.3f})"
    if (intercept := _with_gaps(scores.get("calibration_intercept", UNKNOWN)))["low"] is not None:
        value, span = format_score(intercept, signed=True)
        word = "too high" if intercept["high"] < 0 else "too low" if intercept["low"] > 0 else "no shift is shown"
        texts.append(f"intercept {value} ({span}, for this mix; 0 is right): {word}")
    if (slope := _with_gaps(scores.get("calibration_slope", UNKNOWN)))["low"] is not None:
        value, span = format_score(slope)
        if slope["high"] < 0.0:
            word = "higher probabilities go with fewer cases, the ranking is reversed"
        elif slope["high"] < 1.0:
            word = "the probabilities are spread too widely"
        elif slope["low"] > 1.0:
            word = "the probabilities are spread too little"
        else:
            word = "1 is inside the interval, which does not show that it is right"
        texts.append(f"slope {value} ({span}; 1 is right): {word}")
    return f"{'; '.join(texts)}."


def _calibration_at(shift: Mapping[str, Any], slope: Mapping[str, Any] | None) -> str:
    """Whether the chances of an event by the horizon are too high or too low here, and their slope."""
    if _with_gaps(shift)["low"] is None:
        return ""
    value, span = format_score(_with_gaps(shift), signed=True)
    word = "too high" if shift["high"] < 0 else "too low" if shift["low"] > 0 else "not shown to be too high or too low"
    text = f"At the horizon the predicted chances of an event are {word} (calibration intercept {value}, {span}"
    if slope is not None and _with_gaps(slope)["low"] is not None:
        value, span = format_score(_with_gaps(slope))
        text += f"; slope {value}, {span}"
    return f"{text})."


def _describe_alignment(result: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """The second line, with the words that it used the cohort's own rows."""
    line = entry["lines"].get("aligned")
    if line is None:
        return f"No aligned scores: {entry['not_aligned']}."
    names = [name for name in result["listed_scores"] if name in line["scores"]]
    scores = ", ".join(_score(result, line["scores"], name) for name in names)
    used = f"Aligned: {scores}. This used" if names else "Aligned, which cannot be scored either, used"
    return f"{used} the cohort's own rows, but no outcome of them: {line['marks'][-1]}. It takes a whole cohort."


def _levels(entry: Mapping[str, Any]) -> str:
    drift, texts = entry["drift"], []
    if drift["new_levels"]:
        texts.append(
            f"levels that training never saw are in {listing(drift['new_levels'], NAMED)}, and count as unknown"
        )
    if drift["more_missing"]:
        parts = [f"'{c['name']}' ({c['missing']:.0%}, training {c['training']:.0%})" for c in drift["more_missing"]]
        more = f" and {many(len(parts) - NAMED, 'other')}" if len(parts) > NAMED else ""
        texts.append(f"cells are missing more often in {', '.join(parts[:NAMED])}{more}")
    if drift["uncounted"]:
        which = listing(drift["uncounted"], NAMED)
        texts.append(f"fewer than {FEWEST_COUNTED} cells are filled in {which}, which do not count in s")
    text = "; ".join(texts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _far(entry: Mapping[str, Any]) -> str:
    far = entry["far"]
    if not far["count"]:
        return ""
    verb, count = "is" if far["count"] == 1 else "are", far["aligned"]
    aligned = "" if count is None else f" Once aligned, {many(count, 'row')} {'is' if count == 1 else 'are'}."
    return (
        f"{many(far['count'], 'row')} ({format_share(far['share'])}) {verb} further from every training row than any "
        f"of these is from its nearest one: do not rely on what is predicted there.{aligned}"
    )


def _describe_offer(result: Mapping[str, Any], offered: Mapping[str, Any]) -> str:
    if offered["why_not"]:
        return f"Not offered, {offered['name']}: {offered['why_not']}."
    pairs, is_cut = [], offered["name"].endswith("cut")  # which leaves probabilities as they are
    named = ("sensitivity", "specificity") if is_cut else ("brier", "calibration_slope")
    for name in (*named, "balanced_accuracy"):
        if name in offered["scores"] and name in offered["apparent"]:
            honest, apparent = (format_score(_with_gaps(offered[key][name]), 3)[0] for key in ("scores", "apparent"))
            pairs.append(f"{result['short_names'][name]} {honest} out of fold (apparent {apparent})")
    scored = "; ".join(pairs) or "too few rows for scores out of fold"
    return f"Offered, {offered['name']}: {offered['how']}; {scored}."


def pooled_sentence(result: Mapping[str, Any], name: str, line: str, known: Mapping[str, Any]) -> str:
    """A score over several cohorts, as is or aligned."""
    low, high = known["low"], known["high"]
    how = line.replace("_", " ")
    text = f"Over {known['cohorts']} cohorts {result['short_names'][name]}, {how}, is {known['value']:.2f}"
    text += "" if low is None else f" (95 % interval {low:.2f} to {high:.2f})"
    text += f", tau {known['tau']:.2f} on the logit scale"
    text += ", which is uncertain with so few cohorts" if known["cohorts"] < MANY else ""
    ends = f"{known['next_low']:.2f} and {known['next_high']:.2f}"
    return f"{text}; that of a further cohort is expected between {ends} (95 %)."


def unpooled_sentence(left_out: Sequence[str], kept: int) -> str:
    """Which cohorts are not pooled, and that too few are left."""
    texts = []
    if left_out:
        verb = "has no interval and is" if len(left_out) == 1 else "have no intervals and are"
        texts.append(f"{listing(left_out, NAMED)} {verb} not pooled")
    if kept < FEWEST_POOLED:
        texts.append(f"fewer than {FEWEST_POOLED} cohorts with intervals are left, so nothing is pooled")
    text = "; ".join(texts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
