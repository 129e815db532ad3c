"""The answer in words: how many features, how well, how sure, how stable, how many suspect labels, what to doubt."""

from __future__ import annotations

from typing import Any

from ..errors import listing, many
from ..fitting.false_share import FEWEST_COLUMNS
from ..outcomes.scores import METRICS
from .numbers import shown

STABLE, UNSTABLE = 0.75, 0.4  # of Nogueira's measure: above excellent, below poor (Fleiss' words for kappa)
CLOSE = 0.02  # a difference of balanced accuracy that is not worth a doubt
NAMES = {**METRICS, "auc": "AUC"}
NONE_BELOW = "no list keeps that below 10 %"
COMPARED = ("balanced_accuracy", "auc", "pr_auc", "accuracy")
VERDICTS = {
    "better": "is better in",
    "worse": "is worse in",
    "open": "may be better or worse (the data cannot tell) in",
    "unknown": "differs by an amount without an interval in",
}


def answer(result: dict[str, Any]) -> dict[str, Any]:
    """Headline, sentences and doubts of a summarised study."""
    evident = result["chance"]["evident"]
    return {
        "evidence": evident,
        "headline": _headline(result, evident),
        "sentences": [text for text in (part(result) for part in SENTENCES) if text],
        "doubts": _doubts(result, evident),
    }


def _headline(result: dict[str, Any], evident: bool) -> str:
    table, target = result["table"], result["table"]["target"]
    span, chance = _score(result, "balanced_accuracy"), f"chance gives {1 / len(table['classes']):.2f}"
    test = f"p = {result['chance']['p']:.2f} by {result['chance']['shuffles']} shuffles of the labels"
    if not evident:
        return f"No evidence that any of these features predict {target} ({test}): {span}; {chance}."
    count = result["n_features"]
    what = f"{count:,} of {table['features']:,} features"
    if count == _usable(result):
        what = f"All {count:,} features" if count > 1 else "The only feature"
        what += " that varies" * (count == 1 < table["features"]) + " that vary" * (1 < count < table["features"])
    leak = any(finding["kind"] in ("copy", "leak") for finding in result["findings"])
    tail = " Perhaps too good to be true: see what to doubt." if leak else ""
    if not _above_chance(result):
        rest = f"for the list of {many(count, 'feature')} alone the interval includes chance: {span}; {chance}"
        return f"Features of this table predict {target} ({test}), but {rest}.{tail}"
    verb = "predicts" if count == 1 else "predict"
    return f"{what} {verb} {target}: {span}; {chance}.{tail}"


def _score(result: dict[str, Any], metric: str, scores: dict[str, Any] | None = None) -> str:
    """ "AUC 0.90 (95 % interval 0.81 to 0.95)"."""
    value, span = shown((scores or result["scores"])[metric])
    return f"{NAMES[metric]} {value} ({span if span.startswith('no') else f'95 % interval {span}'})"


def _above_chance(result: dict[str, Any]) -> bool:
    """Whether the intervals of the list's scores are above chance, as far as there are any."""
    levels = {"balanced_accuracy": 1 / len(result["table"]["classes"]), "auc": 0.5}
    known = {name: result["scores"][name]["low"] for name in levels if name in result["scores"]}
    return all(low is None or low > levels[name] for name, low in known.items())


def _usable(result: dict[str, Any]) -> int:
    """How many features vary: what all features are."""
    return int(result["table"]["features"]) - len(result["table"]["constant_columns"])


def _list(result: dict[str, Any]) -> str:
    sizes, folds = result["n_features_over_folds"], result["protocol"]["folds"]
    given, count = result["methods"][0]["size_rule"] == "given", result["n_features"]
    text = ""
    if not given and sizes["smallest"] == sizes["largest"]:
        same = count == sizes["largest"]
        text = f"Every outer fold chose {many(sizes['largest'], 'feature')}{' too' if same else ''}."
        text = "" if same and count == _usable(result) else text
    elif not given:
        low, high = sizes["usual"]
        shared = f"{(folds - 2) / (folds - 1):.0%}" if folds > 2 else "none"
        text = f"The number of features is a range: most outer folds chose {low:,} to {high:,} (median "
        text += f"{sizes['median']:g}); these folds share {shared} of their rows, so that new samples would vary more."
    groups = [feature["group"] for feature in result["features"] if feature["group"]]
    if again := len(groups) - len(set(groups)):
        text += f"{' ' if text else ''}Of the {count:,} selected {again:,} "
        text += f"{'is a near-duplicate of another' if again == 1 else 'are near-duplicates of others'} in the list."
    if "auc" in result["scores"]:
        area = 100 * result["scores"]["auc"]["value"]
        share = "over 99" if round(area) >= 100 > area else f"{area:.0f}"
        text += f"{' ' if text else ''}A random sample of class {result['table']['positive']} ranks above a random "
        text += f"other one in {share} % of pairs ({_score(result, 'auc')})."
    return text


def _price(result: dict[str, Any]) -> str:
    """What the short list costs or gains against all features, in each metric."""
    if result["n_features"] == _usable(result):
        return ""
    change = result["methods"][0]["difference"]
    verdicts: dict[str, list[str]] = {}
    for metric in COMPARED:
        if metric in change:
            value, span = shown(change[metric], signed=True)
            verdicts.setdefault(verdict(change[metric]), []).append(f"{NAMES[metric]} ({value}, {span})")
    parts = [f"{words} {listing_of(verdicts[key])}" for key, words in VERDICTS.items() if key in verdicts]
    return f"Against all features the short list {'; '.join(parts)}."


def verdict(difference: dict[str, Any]) -> str:
    """What an interval of a difference says."""
    if difference["low"] is None:
        return "unknown"
    return "better" if difference["low"] > 0 else "worse" if difference["high"] < 0 else "open"


def listing_of(texts: list[str]) -> str:
    """a, b and c."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _stability(result: dict[str, Any]) -> str:
    stability = result["stability"]
    if stability is None:
        return ""
    value, listed = stability["value"], result["features"]
    always = sum(feature["frequency"] == 1 for feature in listed)
    scale = f"{value:.2f}, where 0 is a random choice and 1 always the same"
    if _only_length(result):
        every = "The one feature" if len(listed) == 1 else f"All {len(listed):,} features"
        return f"{every} of the list came up in every outer fold; what varies is how many others did ({scale})."
    word = "The list is stable" if value >= STABLE else "The list is moderately stable"
    if value < UNSTABLE:
        word = "The list is unstable: other samples would have given another"
    if len(listed) == 1:
        return f"{word} ({scale}); its one feature was selected in {listed[0]['frequency']:.0%} of the outer folds."
    return (
        f"{word} ({scale}); of {len(listed):,} features in the list "
        f"{always:,} {'was' if always == 1 else 'were'} selected in every outer fold."
    )


def _only_length(result: dict[str, Any]) -> bool:
    """Whether the folds agree on what is listed and differ in how much more they took."""
    listed = result["features"]
    return bool(listed) and result["stability"]["value"] < STABLE and all(one["frequency"] == 1 for one in listed)


def _labels(result: dict[str, Any]) -> str:
    judged = result["suspects"]
    if judged["judged"] == 0:
        return ""
    if not result["chance"]["evident"]:
        return "Labels cannot be judged where nothing predicts them."
    if not judged["trusted"]:
        return "Labels cannot be judged: the machines that judge them predict no better than chance."
    shares = ", ".join(f"{share:.0%} of {label}" for label, share in judged["wrong_share"].items())
    estimate = f"Estimated share of wrong labels: {shares}."
    if not judged["rows"]:
        return f"No label is more likely wrong than right. {estimate}"
    named = listing([row[judged["named_by"]] for row in judged["rows"]], 5)
    one = judged["count"] == 1
    labels, them = ("1 label is", "it") if one else (f"{judged['count']:,} labels are", "them")
    noun = judged["named_by"] + ("" if one else "s")
    return f"{labels} more likely wrong than right ({noun} {named}): check {them} by hand. {estimate}"


def _false(result: dict[str, Any]) -> str:
    """How many features of the list are false."""
    known, count = result.get("false_share"), result["n_features"]
    if not result["chance"]["evident"] or "false_share" not in result:
        return ""
    if known is None:
        why = "it has few columns" if result["table"]["features"] < FEWEST_COLUMNS else "that would take long"
        return f"How many features of the list are false was not estimated on this table, since {why}."
    share, below = known["share"], known["below_a_tenth"]
    how = f"{2 * known['pairs']} halves of the rows against {known['shuffles']} shuffles of the labels"
    text = f"Of the {count:,} features in the list up to {share:.0%} may have nothing to do with the target ({how})"
    if count == 1:
        text = f"That the one feature has nothing to do with the target has an estimated chance of {share:.0%} ({how})"
    longest = f"the longest list with at most 10 % of such has {many(below, 'feature')}" if below else NONE_BELOW
    return f"{text}; {longest}."


def _together(result: dict[str, Any]) -> str:
    """Whether features matter only together."""
    if (probe := result.get("interactions")) is None:
        return ""
    change = probe["difference"]["balanced_accuracy"]
    value, span = shown(change, signed=True)
    what = f"({value} in balanced accuracy, {span})"
    if verdict(change) == "better":
        on = f"{many(probe['n_features'], 'feature')}, {listing(probe['features'], 5)}"
        return f"Features matter together: a non-linear model is better {what}, on {on}."
    return f"No sign of features that matter only together: a non-linear model is not shown to be better {what}."


def _instead(result: dict[str, Any]) -> str:
    """What could stand in for features of the list, and the cheapest list."""
    if not result["chance"]["evident"]:
        return ""
    texts, known, costs = [], result.get("substitutes"), result.get("costs")
    if known is not None:
        same = [row for row in known["rows"] if row["equivalent"]]
        counted = len({row["feature"] for row in same})
        if same:
            first = f"{same[0]['substitute']} for {same[0]['feature']}"
            verb = "has" if counted == 1 else "have"
            text = f"{many(counted, 'feature')} of the list {verb} a substitute outside it, such as {first}"
            texts.append(f"{text}: the AUC changes by less than {known['margin']}.")
    if costs is not None and costs["cheapest"] < costs["main"]:
        value, span = shown(costs["change"], signed=True)
        text = f"A list that costs {costs['cheapest']:g} instead of {costs['main']:g} did as well in inner folds"
        span = span if span.startswith("no") else f"90 % interval {span}"
        texts.append(f"{text}; over the outer folds the AUC changed by {value} ({span}).")
    elif costs is not None:
        texts.append(f"No list that costs less than this one ({costs['main']:g}) reached its score.")
    return " ".join(texts)


SENTENCES = (_list, _false, _price, _together, _stability, _instead, _labels)


def _doubts(result: dict[str, Any], evident: bool) -> list[str]:
    doubts = [finding["text"] for finding in result["findings"] if finding["level"] == "alarm"]
    stability = result["stability"]
    if evident and stability is not None and stability["value"] < UNSTABLE and not _only_length(result):
        doubts.append("the list changes much from fold to fold: read it as one of many that predict equally well")
    score = result["scores"]["balanced_accuracy"]
    if score["low"] is not None and (width := score["high"] - score["low"]) > 0.2:
        doubts.append(f"{result['table']['rows']} samples leave the balanced accuracy open by {width:.2f}")
    sizes = result["n_features_over_folds"]
    if evident and result["methods"][0]["size_rule"] != "given" and result["n_features"] > sizes["largest"]:
        doubts.append(
            f"the list has {result['n_features']:,} features, more than any outer fold chose ({sizes['largest']:,} at "
            "most): its length is largely by chance"
        )
    if evident and result["methods"][0]["size_rule"] != "given" and result["n_features"] < sizes["usual"][0]:
        low, high = sizes["usual"]
        doubts.append(
            f"the list has {many(result['n_features'], 'feature')}, fewer than most outer folds chose ({low:,} to "
            f"{high:,}): its length is largely by chance"
        )
    if evident and len(result["methods"]) > 2:
        probe = (result.get("interactions") or {}).get("title")
        others = [method for method in result["methods"] if method["title"] != probe]  # which has a sentence of its own
        best = max(others, key=lambda method: method["scores"]["balanced_accuracy"]["value"])
        level = best["scores"]["balanced_accuracy"]["value"]
        if not best["baseline"] and level > score["value"] + CLOSE:
            doubts.append(
                f"{best['title']} has a higher balanced accuracy ({level:.2f}); the method presented was fixed "
                "beforehand, since the best of several is optimistically biased"
            )
    return [*doubts, *result["notes"]]
