"""The answer in words: how many features, how well, how sure, how stable, how many suspect labels, what to doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import join_words, listing, many
from ..report.numbers import format_expected, format_score
from .analysis import Gate, HasCard, JudgesLists, Support, load_analyses
from .checks import ALARM, Finding

STABLE, UNSTABLE = 0.75, 0.4  # of Nogueira's measure: above excellent, below poor (Fleiss' words for kappa)
STABILITY = ("unstable", "moderately stable", "stable")
WIDE = 0.2  # an interval
NAMED = 5
CLOSE = 0.02  # a difference of balanced accuracy that is not worth a doubt
LONGER = {
    "better": "it is clearly better",
    "worse": "it is worse",
    "open": "the data cannot tell whether it is better or worse",
    "unknown": "it differs by an amount without an interval",
}
WITHOUT_EVIDENCE = (
    "The list below is what the method picks when it must pick something: tables without any relation to the target "
    "give such lists and such scores."
)
VERDICTS = {
    "better": "is better in",
    "worse": "is worse in",
    "open": "may be better or worse (the data cannot tell) in",
    "unknown": "differs by an amount without an interval in",
}


def answer(result: dict[str, Any]) -> dict[str, Any]:
    """Headline, sentences and doubts (findings) of a summarised study, with those of its analyses.

    Whether there is evidence says the result; analyses read it there as `result["answer"]["evidence"]`.
    """
    known = [each for name, each in load_analyses().items() if result["analyses"].get(name) is not None]
    gates = [(each, result["analyses"][each.name]) for each in known if isinstance(each, Gate)]
    failed = [each.describe_test(values) for each, values in gates if not each.evident(values)]
    evident = not failed
    weak = [each.describe_test(values) for each, values in gates if each.is_weak(values)]
    result = {**result, "answer": {"evidence": evident, "test": ", ".join(failed), "weak": weak}}
    support = [each.support(result) for each in known if isinstance(each, JudgesLists)]
    sentences = [*SENTENCES, *((each.order, each.sentence) for each in known)]
    texts = [sentence(result) for _, sentence in sorted(sentences, key=lambda pair: pair[0])]
    doubts = _doubts(result, evident)
    for each in known:
        if reason := each.doubt(result):
            doubts.append(reason if isinstance(reason, Finding) else Finding("analysis", ALARM, reason))
    cards = [card for each in known if isinstance(each, HasCard) and (card := each.card(result)) is not None]
    return {
        "evidence": evident,
        "headline": _headline(result, evident, support),
        "sentences": [text for text in texts if text],
        "cards": [{"value": value, "text": text} for value, text in cards],
        "doubts": doubts,
        "without_evidence": WITHOUT_EVIDENCE,
    }


def _headline(result: dict[str, Any], evident: bool, support: list[Support]) -> str:
    """What can be defended: how many features, what they do together, how well, how many may be false."""
    table, words = result["table"], result["words"]
    target, level = table["target"], result["chance_levels"][headline_score(result)]
    metric = headline_score(result)
    span = _score(result, metric) + ("" if level is None else f"; chance gives {level:.2f}")
    if not evident:
        return (
            f"No evidence that this table says anything of {target} ({result['answer']['test']}). Out of fold: {span}."
        )
    count = result["n_features"]
    what = f"{count:,} of {table['features']:,} features"
    if count == _usable(result):
        what = f"All {count:,} features" if count > 1 else "The only feature"
        what += " that varies" * (count == 1 < table["features"]) + " that vary" * (1 < count < table["features"])
    shown = [finding for finding in result["findings"] if finding["code"] not in result["options"]["mute"]]
    leak = any(finding["kind"] in ("copy", "leak") for finding in shown)
    tail = " Perhaps too good to be true: see what to doubt." if leak else ""
    if not _above_chance(result):
        rest = f"for the list of {many(count, 'feature')} alone the interval includes chance: {span}"
        return f"The table says something of {target}, but {rest}.{tail}"
    does = words["alone" if count == 1 else "together"].format(target=target)
    warning, text = ("".join(parts) for parts in zip(*support, strict=True)) if support else ("", "")
    strength = "".join(f"Weak evidence ({weak}). " for weak in result["answer"]["weak"])
    return f"{strength}{warning}{what} {does}: {_score(result, metric)}{text}.{tail}"


def headline_score(result: dict[str, Any]) -> str:
    """The score that the headline names: one that needs no threshold, where there is one."""
    return str([result["main_score"], *result["listed_scores"]][-1])


def _score(result: dict[str, Any], metric: str, scores: dict[str, Any] | None = None) -> str:
    """ "AUC 0.90 (95 % interval 0.81 to 0.95)"."""
    value, span = format_score((scores or result["scores"])[metric])
    return f"{name_of(result, metric)} {value} ({span if span.startswith('no') else f'95 % interval {span}'})"


def name_of(result: dict[str, Any], metric: str) -> str:
    """A metric in a sentence."""
    return str(result["short_names"][metric])


def _above_chance(result: dict[str, Any]) -> bool:
    """Whether the intervals of the list's scores are above chance, as far as there are any."""
    levels = {name: result["chance_levels"][name] for name in result["listed_scores"]}
    known = {name: result["scores"][name]["low"] for name, level in levels.items() if level is not None}
    return all(low is None or low > levels[name] for name, low in known.items())


def _usable(result: dict[str, Any]) -> int:
    """How many features vary: what all features are."""
    return int(result["table"]["features"]) - len(result["table"]["constant_columns"])


def _list(result: dict[str, Any]) -> str:
    sizes, folds = result["n_features_over_folds"], result["protocol"]["folds"]
    fixed, count = result["methods"][0]["size_rule"] == "given", result["n_features"]
    text = ""
    if not fixed and sizes["smallest"] == sizes["largest"]:
        same = count == sizes["largest"]
        text = f"Every outer fold chose {many(sizes['largest'], 'feature')}{' too' if same else ''}."
        text = "" if same and count == _usable(result) else text
    elif not fixed:
        low, high = sizes["usual"]
        shared = f"{(folds - 2) / (folds - 1):.0%}" if folds > 2 else "none"
        shares = f"these folds share {shared} of their rows, so that new samples would vary more."
        text = f"The number of features is a range: most outer folds chose {low:,} to {high:,} (median "
        text += f"{sizes['median']:g}); {shares}"
        if low == high:
            reach = f"{sizes['smallest']:,} to {sizes['largest']:,}"
            text = f"Most outer folds chose {many(low, 'feature')}, all of them {reach}; {shares}"
    groups = [feature["group"] for feature in result["features"] if feature["group"]]
    if again := len(groups) - len(set(groups)):
        text += f"{' ' if text else ''}Of the {count:,} selected {again:,} "
        text += f"{'is a near-duplicate of another' if again == 1 else 'are near-duplicates of others'} in the list."
    if ranking := result["words"]["ranking"]:
        metric = result["listed_scores"][-1]
        area = 100 * result["scores"][metric]["value"]
        share = "over 99" if round(area) >= 100 > area else f"{area:.0f}"
        text += f"{' ' if text else ''}{ranking.format(share=share, score=name_of(result, metric))}"
    return text


def _longer(result: dict[str, Any]) -> str:
    """What the rule of the longer list gives, and whether it is better."""
    longer = result["lists"]["long"]
    if longer is None or not result["answer"]["evidence"]:
        return ""
    metric, count = headline_score(result), longer["n_features"]
    change = result["lists"]["difference"]
    if change is None:
        return "The rule for a longer list chooses the same features, in every outer fold too."
    value, span = format_score(change[metric], signed=True)
    how = f"{LONGER[verdict(change[metric])]} ({name_of(result, metric)} {value}, {span})"
    if count == result["n_features"]:
        return f"The rule for a longer list chooses the same features on all rows; over the outer folds {how}."
    size = f"takes all {count:,} features" if count == _usable(result) else f"has {many(count, 'feature')}"
    text = f"The long list, from the same inner folds at a lower price, {size}: "
    text += _score(result, metric, longer["scores"])
    if (false := longer["chance_share"]) is not None:
        text += f"; {format_expected(false, count)} expected to be there by chance"
    return f"{text}; against the short list {how}."


def _price(result: dict[str, Any]) -> str:
    """What the short list costs or gains against all features, in each metric."""
    if result["n_features"] == _usable(result):
        return ""
    change = result["methods"][0]["difference"]
    verdicts: dict[str, list[str]] = {}
    for metric in result["compared_scores"]:
        if metric in change:
            value, span = format_score(change[metric], signed=True)
            verdicts.setdefault(verdict(change[metric]), []).append(f"{name_of(result, metric)} ({value}, {span})")
    parts = [f"{words} {join_words(verdicts[key])}" for key, words in VERDICTS.items() if key in verdicts]
    return f"Against all features the list {'; '.join(parts)}."


def verdict(difference: dict[str, Any]) -> str:
    """What an interval of a difference says."""
    if difference["low"] is None:
        return "unknown"
    return "better" if difference["low"] > 0 else "worse" if difference["high"] < 0 else "open"


def _stability(result: dict[str, Any]) -> str:
    stability = result["stability"]
    if stability is None:
        most = result["methods"][0]["size_rule"] != "given" and len(result["n_features_over_folds"]["usual"]) == 2
        if most and 2 * result["n_features_over_folds"]["median"] > result["table"]["features"]:
            median, columns = result["n_features_over_folds"]["median"], result["table"]["features"]
            share = f"about half of the columns or more (median {median:g} of {columns:,})"
            return f"Stability is not given, since the folds take {share}."
        return ""
    value, count, always = stability["value"], result["n_features"], result["n_always"]
    span = "" if stability["low"] is None else f", {stability['low']:.2f} to {stability['high']:.2f}"
    scale = f"{value:.2f}{span}, where 0 is a random choice and 1 always the same"
    if _only_length(result):
        every = "The one feature" if count == 1 else f"All {count:,} features"
        return f"{every} of the list came up in every outer fold; what varies is how many others did ({scale})."
    word = f"The list is {_stability_word(value)}"
    if stability["low"] is not None and _stability_word(stability["low"]) != _stability_word(stability["high"]):
        others = [each for each in STABILITY if each != _stability_word(value) and _reaches(stability, each)]
        word += f"; the folds do not tell it from one that is {join_words(others, 'or')}"
        if len(others) == 2:
            word = "The outer folds do not say how stable the list is"
    if value < UNSTABLE:
        word += ": other samples would have given another"
    if count == 1:
        share = result["features"][0]["frequency"]
        return f"{word} ({scale}); its one feature was selected in {share:.0%} of the outer folds."
    verb = "was" if always == 1 else "were"
    return f"{word} ({scale}); of {count:,} features in the list {always:,} {verb} selected in every outer fold."


def _stability_word(value: float) -> str:
    """What a value of Nogueira's measure is called."""
    return STABILITY[0 if value < UNSTABLE else 1 if value < STABLE else 2]


def _reaches(stability: dict[str, Any], word: str) -> bool:
    """Whether the interval holds a value that is called so."""
    low, high = (STABILITY.index(_stability_word(stability[end])) for end in ("low", "high"))
    return low <= STABILITY.index(word) <= high


def _only_length(result: dict[str, Any]) -> bool:
    """Whether the folds agree on what is listed and differ in how much more they took."""
    return bool(0 < result["n_features"] == result["n_always"] and result["stability"]["value"] < STABLE)


def _describe_interactions(result: dict[str, Any]) -> str:
    """Whether features matter only together."""
    if (probe := result.get("interactions")) is None:
        return ""
    change = probe["difference"][headline_score(result)]
    value, span = format_score(change, signed=True)
    what = f"{value} in {name_of(result, headline_score(result))} ({span})"
    if verdict(change) == "better":
        on = f"{many(probe['n_features'], 'feature')}, {listing(probe['features'], 5)}"
        return f"Features matter together: a non-linear model is better, by {what}, on {on}."
    return f"That features matter only together is not shown: a non-linear model differs by {what}."


# by their places among those of the analyses
SENTENCES = ((10, _list), (12, _longer), (30, _price), (40, _describe_interactions), (50, _stability))


def _doubts(result: dict[str, Any], evident: bool) -> list[Finding]:
    doubts: list[Finding] = []

    def doubt(kind: str, text: str) -> None:
        doubts.append(Finding(kind, ALARM, text))

    score, title = result["scores"][main := result["main_score"]], name_of(result, main)
    if score["low"] is not None and (width := score["high"] - score["low"]) > WIDE:
        known = result["table"].get("survival")
        what = many(result["table"]["rows"], "row") if known is None else many(known["events"], "event")
        doubt("wide", f"the 95 % interval of {title} is {width:.2f} wide: {what} do not say more")
    if not evident:
        return doubts
    _doubt_list(result, doubt)
    if len(result["methods"]) > 2:
        probe = (result.get("interactions") or {}).get("title")
        # which has a sentence of its own, as all features have
        others = [each for each in result["methods"] if each["title"] != probe and not each["baseline"]]
        best = max(others, key=lambda method: method["scores"][main]["value"])
        level = best["scores"][main]["value"]
        if level > score["value"] + CLOSE:
            why = "the method presented was fixed beforehand, since the best of several is optimistically biased"
            doubt("other", f"{best['title']} has a higher {title} ({level:.2f}); {why}")
    return doubts


def _doubt_list(result: dict[str, Any], doubt: Callable[[str, str], None]) -> None:
    """How far the list would be another with other samples."""
    stability, sizes = result["stability"], result["n_features_over_folds"]
    by_rule, count = result["methods"][0]["size_rule"] != "given", result["n_features"]
    if stability is not None and stability["value"] < UNSTABLE and not _only_length(result):
        how = f"changes much from fold to fold (stability {stability['value']:.2f})"
        doubt("unstable", f"the list {how}: it may be one of many that predict equally well")
    if by_rule and count > sizes["largest"]:
        chosen = f"more than any outer fold chose ({sizes['largest']:,} at most)"
        doubt("long", f"the list has {count:,} features, {chosen}: its length is uncertain")
    if by_rule and count < sizes["usual"][0]:
        chosen = f"fewer than most outer folds chose ({sizes['usual'][0]:,} to {sizes['usual'][1]:,})"
        doubt("short", f"the list has {many(count, 'feature')}, {chosen}: its length is uncertain")
    if outside := result["often_outside"]:
        names = ", ".join(f"{each['name']} ({each['frequency']:.0%})" for each in outside[:NAMED])
        more = f" and {len(outside) - NAMED:,} more" if len(outside) > NAMED else ""
        was, them = ("was", "is") if len(outside) == 1 else ("were", "are")
        text = f"{names}{more} {was} chosen by at least half of the outer folds and {them} not in the list"
        doubt("outside", f"{text}; some listed features were chosen by fewer")
    longer = result["lists"]["difference"]
    if longer is not None and verdict(longer[headline_score(result)]) == "better":
        doubt(
            "longer", "the long list is clearly better than the short one: what predicts is spread over more features"
        )
