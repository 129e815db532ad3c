"""The answer in words: how many features, how well, how sure, how stable, how many suspect labels, what to doubt."""

from __future__ import annotations

from typing import Any

from ..errors import listing

STABLE, UNSTABLE = 0.75, 0.4  # of Nogueira's measure: above excellent, below poor (Fleiss' words for kappa)
CLOSE = 0.02  # a difference of balanced accuracy that is not worth a word


def answer(result: dict[str, Any]) -> dict[str, Any]:
    """Headline, sentences and doubts of a summarised study."""
    found = result["chance"]["evident"]
    return {
        "evidence": found,
        "headline": _headline(result, found),
        "sentences": [text for text in (_list(result), _price(result), _stability(result), _labels(result)) if text],
        "doubts": _doubts(result, found),
    }


def _headline(result: dict[str, Any], found: bool) -> str:
    table, score = result["table"], result["scores"]["balanced_accuracy"]
    target, chance = table["target"], 1 / len(table["classes"])
    span = f"balanced accuracy {score['value']:.2f} (95 % interval {score['low']:.2f} to {score['high']:.2f})"
    if not found:
        test = result["chance"]
        also = (
            f"; shuffled labels do as well in {test['p']:.0%} of {test['shuffles']} tries" if test["shuffles"] else ""
        )
        return f"No evidence that these features predict {target}: {span}, where chance gives {chance:.2f}{also}."
    count = result["n_features"]
    what = f"{count:,} of {table['features']:,} features"
    if count == table["features"]:
        what = f"All {count:,} features" if count > 1 else "The only feature"
    verb = "predicts" if count == 1 else "predict"
    return f"{what} {verb} {target}: {span}; chance gives {chance:.2f}."


def _list(result: dict[str, Any]) -> str:
    sizes = result["n_features_over_folds"]
    spread = f"{sizes['smallest']:,} to {sizes['largest']:,}"
    how = f"the outer folds chose {spread}, median {sizes['median']:g}"
    if sizes["smallest"] == sizes["largest"]:
        how = f"every outer fold chose {sizes['smallest']:,}"
    given = result["methods"][0]["size_rule"] == "given"
    text = "" if given else f"The number of features is not exact: {how}."
    if auc := result["scores"].get("auc"):
        span = f"AUC {auc['value']:.2f}, {auc['low']:.2f} to {auc['high']:.2f}"
        positive = result["table"]["positive"]
        text += f"{' ' if text else ''}A random {positive} ranks above a random other sample in "
        text += f"{auc['value']:.0%} of pairs ({span})."
    return text


def _price(result: dict[str, Any]) -> str:
    """What the short list costs or gains against all features."""
    baseline = result["methods"][-1]
    if result["n_features"] == result["table"]["features"]:
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
        verdict = "Whether the short list costs or gains accuracy against all features is open"
    level = baseline["scores"]["balanced_accuracy"]["value"]
    return f"{verdict} (balanced accuracy {level:.2f} with all; difference {span})."


def _stability(result: dict[str, Any]) -> str:
    found = result["stability"]
    if found is None:
        return ""
    value = found["value"]
    always = sum(feature["frequency"] == 1 for feature in result["features"])
    if value >= STABLE:
        word = "The list is stable"
    elif value >= UNSTABLE:
        word = "The list is moderately stable"
    else:
        word = "The list is unstable: other samples would have given another"
    return (
        f"{word} ({value:.2f}, where 0 is a random choice and 1 always the same); "
        f"of {len(result['features']):,} features in the list {always:,} {'was' if always == 1 else 'were'} selected "
        "in every outer fold."
    )


def _labels(result: dict[str, Any]) -> str:
    judged = result["suspects"]
    if judged["judged"] == 0:
        return ""
    if not judged["trusted"]:
        return "Labels cannot be judged where nothing predicts them."
    if judged["count"] == 0:
        return "No label looks wrong."
    worst = listing([entry["label"] for entry in judged["rows"]], 5)
    many = "1 label looks" if judged["count"] == 1 else f"{judged['count']} labels look"
    them = "it" if judged["count"] == 1 else "them"
    return f"{many} wrong (sample {worst}): check {them} by hand before the list is used."


def _doubts(result: dict[str, Any], found: bool) -> list[str]:
    doubts = [finding["text"] for finding in result["findings"] if finding["level"] == "alarm"]
    stability = result["stability"]
    if found and stability is not None and stability["value"] < UNSTABLE:
        doubts.append("the list changes much from fold to fold: read it as one of many that predict equally well")
    table = result["table"]
    width = result["scores"]["balanced_accuracy"]["high"] - result["scores"]["balanced_accuracy"]["low"]
    if width > 0.2:
        doubts.append(f"{table['rows']} samples leave the score open by {width:.2f}")
    if found and len(result["methods"]) > 2:
        best = max(result["methods"], key=lambda method: method["scores"]["balanced_accuracy"]["value"])
        ours = result["methods"][0]["scores"]["balanced_accuracy"]["value"]
        if not best["baseline"] and best["scores"]["balanced_accuracy"]["value"] > ours + CLOSE:
            doubts.append(
                f"{best['title']} scored higher ({best['scores']['balanced_accuracy']['value']:.2f}); the method "
                "presented was fixed beforehand, since the best of several is too good by luck"
            )
    doubts += result["notes"]
    return doubts
