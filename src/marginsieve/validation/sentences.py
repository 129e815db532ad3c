"""What a validation says in words: the score against the promise and the forecast, the cut, drift, what was aligned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import listing, many
from ..report.numbers import format_score, format_share

NAMED = 5  # columns in a sentence


def meaning_of_gate(gate: float | None, limit: float, measured: bool = True) -> str:
    """What s says, by what alignment did for families of real cohorts, whose outcomes were classes."""
    if gate is None:
        return "It is not known how far the columns are shifted."
    if gate > limit:
        return (
            f"The columns are shifted by s = {gate:.2f} standard deviations (root mean square beyond what sampling "
            f"gives). Above {limit:g} alignment by the cohort's own rows gained balanced accuracy in most families of "
            "real cohorts (.03 to .13 on average), and lost some in others"
            f"{'.' if measured else '; of other outcomes than classes that was not measured.'}"
        )
    return (
        f"The columns are hardly shifted (s = {gate:.2f}, up to {limit:g}): there alignment gained nothing on average."
    )


def sentences_of(result: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """The answer about one cohort; the first sentence is the headline."""
    as_is = entry["lines"]["as_is"]
    texts = [_headline(result, entry), _forecast(result, entry), _cut(result, as_is), _mix(entry)]
    texts += [
        _calibration(as_is),
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


def _difference(change: Mapping[str, Any] | None) -> str:
    """Whether a score differs from the promised one by more than chance."""
    if change is None:
        return ""
    value, span = format_score(_with_gaps(change), signed=True)
    if span == "no interval":
        return f"; that is {value} from the promise, with too few rows to tell a difference from chance"
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
    text += _difference(line["differences"].get(name))
    return f"Promised: {_score(result, promise['scores'], name)}. {text}."


def _forecast(result: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    known, scores = entry["forecast"], entry["lines"]["as_is"]["scores"]
    if known is None:
        return ""
    name, value = known["score"], scores[known["score"]]["value"]

    def place(ends: Any) -> str:
        where = "below" if value < ends[0] else "above" if value > ends[1] else "inside"
        return f"{ends[0]:.2f} to {ends[1]:.2f} (it is {where})"

    return (
        f"The {known['level']:.0%} forecast for a cohort of this size and mix was {result['short_names'][name]} "
        f"{place(known['same'])} where it is measured in the same way, and {place(known['elsewhere'])} where it is "
        "measured elsewhere."
    )


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


def _calibration(line: Mapping[str, Any]) -> str:
    slope = line["scores"].get("calibration_slope")
    if (shift := line["scores"].get("calibration_intercept_at")) is not None:
        return _calibration_at(shift, line["scores"].get("calibration_slope_at"))
    if slope is None or _with_gaps(slope)["low"] is None:
        return ""
    value, span = format_score(_with_gaps(slope))
    text = f"The calibration slope is {value} ({span})"
    if slope["high"] < 1.0:
        return f"{text}: the probabilities are too extreme here."
    if slope["low"] > 1.0:
        return f"{text}: the probabilities are not extreme enough here."
    return f"{text}; right is 1, which is inside the interval."


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
    return (
        f"{used} the cohort's own rows, but no outcome of them: {line['marks'][-1]}. That takes a whole cohort, "
        "and another cohort moves the columns otherwise."
    )


def _levels(entry: Mapping[str, Any]) -> str:
    drift, texts = entry["drift"], []
    if drift["new_levels"]:
        texts.append(
            f"levels that training never saw are in {listing(drift['new_levels'], NAMED)}, and count as unknown"
        )
    if drift["more_missing"]:
        texts.append(f"cells are missing more often in {listing(drift['more_missing'], NAMED)}")
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
    if known["next_low"] is not None:
        text += f"; that of a further cohort is expected between {known['next_low']:.2f} and {known['next_high']:.2f}"
    return f"{text}."
