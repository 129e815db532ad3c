"""The answer in words: how many features, how well, how sure, how stable, how many suspect labels, what to doubt."""

from __future__ import annotations

from typing import Any

from ..errors import listing, many

STABLE, UNSTABLE = 0.75, 0.4  # of Nogueira's measure: above excellent, below poor (Fleiss' words for kappa)
CLOSE = 0.02  # a difference of balanced accuracy that is not worth a word


def answer(result: dict[str, Any]) -> dict[str, Any]:
    """Headline, sentences and doubts of a summarised study."""
    evident = result["chance"]["evident"]
    return {
        "evidence": evident,
        "headline": _headline(result, evident),
        "sentences": [text for text in (_list(result), _price(result), _stability(result), _labels(result)) if text],
        "doubts": _doubts(result, evident),
    }


def _headline(result: dict[str, Any], found: bool) -> str:
    table, score = result["table"], result["scores"]["balanced_accuracy"]
    target, chance = table["target"], 1 / len(table["classes"])
    span = f"balanced accuracy {score['value']:.2f} (95 % interval {score['low']:.2f} to {score['high']:.2f})"
    if not found:
        p, tries = result["chance"]["p"], result["chance"]["shuffles"]
        also = f"; shuffled labels do as well in {p:.0%} of {tries} tries" if tries else ""
        return f"No evidence that these features predict {target}: {span}, where chance gives {chance:.2f}{also}."
    count = result["n_features"]
    what = f"{count:,} of {table['features']:,} features"
    if count == _usable(result):
        what = f"All {count:,} features" if count > 1 else "The only feature"
        what += " that varies" * (count == 1 < table["features"]) + " that vary" * (1 < count < table["features"])
    verb = "predicts" if count == 1 else "predict"
    leak = any(finding["kind"] in ("copy", "leak") for finding in result["findings"])
    tail = " Perhaps too good to be true: see what to doubt." if leak else ""
    return f"{what} {verb} {target}: {span}; chance gives {chance:.2f}.{tail}"


def _usable(result: dict[str, Any]) -> int:
    """How many features vary: what all features are."""
    return int(result["table"]["features"]) - len(result["table"]["constant_columns"])


def _list(result: dict[str, Any]) -> str:
    sizes = result["n_features_over_folds"]
    spread = f"{sizes['smallest']:,} to {sizes['largest']:,}"
    how = f"the outer folds chose {spread}, median {sizes['median']:g}"
    given, count = result["methods"][0]["size_rule"] == "given", result["n_features"]
    text = "" if given else f"The number of features is not exact: {how}."
    if not given and sizes["smallest"] == sizes["largest"]:
        same = count == sizes["largest"]
        text = f"Every outer fold chose {many(sizes['largest'], 'feature')}{' too' if same else ''}."
        text = "" if same and count == _usable(result) else text
    groups = [feature["group"] for feature in result["features"] if feature["group"]]
    if again := len(groups) - len(set(groups)):
        text += f"{' ' if text else ''}Of the {count:,} selected {again:,} "
        text += f"{'is a near-duplicate of another' if again == 1 else 'are near-duplicates of others'} in the list."
    if auc := result["scores"].get("auc"):
        span = f"AUC {auc['value']:.2f}, {auc['low']:.2f} to {auc['high']:.2f}"
        positive = result["table"]["positive"]
        share = "over 99%" if 0.995 <= auc["value"] < 1 else f"{auc['value']:.0%}"
        text += f"{' ' if text else ''}A random sample of class {positive} ranks above a random other one in "
        text += f"{share} of pairs ({span})."
    return text


def _price(result: dict[str, Any]) -> str:
    """What the short list costs or gains against all features."""
    if result["n_features"] == _usable(result):
        return ""
    change = result["methods"][0]["difference"]["balanced_accuracy"]
    span = f"{change['value']:+.2f}, {change['low']:+.2f} to {change['high']:+.2f}"
    if change["low"] > 0:
        verdict = "The short list predicts better than all features"
    elif change["high"] < 0:
        verdict = "The short list costs accuracy against all features"
    elif abs(change["value"]) <= CLOSE:
        verdict = "The short list predicts as well as all features"
    else:
        verdict = "The data cannot tell whether the short list is better or worse than all features"
    level = result["methods"][-1]["scores"]["balanced_accuracy"]["value"]
    span = f"; difference {span}" if any(round(one, 2) for one in change.values()) else ""
    return f"{verdict} (balanced accuracy {level:.2f} with all{span})."


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
    if not judged["trusted"]:
        return "Labels cannot be judged where nothing predicts them."
    shares = ", ".join(f"{share:.0%} of {label}" for label, share in judged["wrong_share"].items())
    estimate = f"Estimated share of wrong labels: {shares}."
    if not judged["rows"]:
        return f"No label is more likely wrong than right. {estimate}"
    named = listing([row[judged["named_by"]] for row in judged["rows"]], 5)
    one = judged["count"] == 1
    labels, them = ("1 label is", "it") if one else (f"{judged['count']:,} labels are", "them")
    noun = judged["named_by"] + ("" if one else "s")
    return f"{labels} more likely wrong than right ({noun} {named}): check {them} by hand. {estimate}"


def _doubts(result: dict[str, Any], found: bool) -> list[str]:
    doubts = [finding["text"] for finding in result["findings"] if finding["level"] == "alarm"]
    stability = result["stability"]
    if found and stability is not None and stability["value"] < UNSTABLE and not _only_length(result):
        doubts.append("the list changes much from fold to fold: read it as one of many that predict equally well")
    score = result["scores"]["balanced_accuracy"]
    if (width := score["high"] - score["low"]) > 0.2:
        doubts.append(f"{result['table']['rows']} samples leave the score open by {width:.2f}")
    sizes = result["n_features_over_folds"]
    if found and result["methods"][0]["size_rule"] != "given" and result["n_features"] > sizes["largest"]:
        doubts.append(
            f"the list has {result['n_features']:,} features, more than any outer fold chose ({sizes['largest']:,} at "
            "most): its length is largely by chance"
        )
    if found and len(result["methods"]) > 2:
        best = max(result["methods"], key=lambda method: method["scores"]["balanced_accuracy"]["value"])
        level = best["scores"]["balanced_accuracy"]["value"]
        if not best["baseline"] and level > score["value"] + CLOSE:
            doubts.append(
                f"{best['title']} scored higher ({level:.2f}); the method presented was fixed beforehand, since the "
                "best of several is optimistically biased"
            )
    return [*doubts, *result["notes"]]
