"""A paragraph for a paper's methods section, with its references in BibTeX."""

from __future__ import annotations

from typing import Any

SIZE_RULES = {
    "given": "fixed beforehand",
    "false share": "that of the longest list whose estimated share of false features was at most {share:g}",
    "method": "chosen by the method",
    "best": "the one with the best score, smoothed over neighbouring sizes, in inner folds",
    "short": "chosen on inner folds: the best score, smoothed over neighbouring sizes, less 0.005 for each squared "
    "doubling away from the usual (20 features, or the root of the number of columns where that is fewer)",
    "auto": "chosen on inner folds: the best score, smoothed over neighbouring sizes, less a price for sizes far from "
    "the usual",
}


def paragraph(result: dict[str, Any]) -> tuple[str, str]:
    """(the paragraph, the BibTeX entries that it cites) of a summarised study."""
    cited: dict[str, None] = {}

    def cite(*keys: str) -> str:
        cited.update(dict.fromkeys(keys))
        return f" [{', '.join(keys)}]" if keys else ""

    main, others = result["methods"][0], [method for method in result["methods"][1:] if not method["baseline"]]
    table, protocol = result["table"], result["protocol"]
    words = result["words"]
    prepared = "Columns were standardised"
    if main["kernel"] == "clinical":
        prepared = f"Mixed columns and missing cells were compared by the clinical kernel{cite('daemen2009')}"
    grouped = ", keeping the rows of a group together" if result["options"]["groups"] else ""
    size = f"The number of features was {SIZE_RULES[main['size_rule']].format(share=result['options']['false_share'])}"
    times = f"{protocol['repeats']} times repeated " if protocol["repeats"] > 1 else ""
    has_cut, does = "classes" in table, main["does"]
    sentences = [
        f"Features to predict {table['target']} were selected among {table['features']:,} in {table['rows']:,} "
        f"samples ({words['rows']}) with {main['title']}{cite(*main['citation'])} as implemented in marginsieve "
        f"{result['version']}.",
        "" if has_cut else f"{main['title']} is here: {does[0].lower()}{does[1:]}",
        "; ".join(filter(None, (prepared, words["weighting"]))) + ".",
        "; ".join(filter(None, (size, words["decision"]))) + ".",
        f"The whole procedure was scored by {times}{protocol['folds']}-fold "
        f"{'stratified ' if 'stratified' in protocol['outer'] else ''}nested cross-validation{grouped}"
        f"{cite('varma2006')}: no test sample was seen by scaling, selection, choice of size"
        f"{', threshold' if has_cut else ''} or machine. Scores are of models on {protocol['trained_on']}; "
        f"{protocol['interval']}.",
    ]
    named = ", ".join(f"{method['title']}{cite(*method['citation'])}" for method in others)
    beside = f"{named}, and for " if named else ""
    sentences.append(f"The same splits were used for {beside}all features without a selection.")
    sentences.append(f"Stability is that of Nogueira et al.{cite('nogueira2018')} over the outer folds.")
    known = filter(None, result["analyses"].values())
    sentences += [values["methods_text"] for values in known if "methods_text" in values]
    return " ".join(filter(None, sentences)), "\n".join(result["references"][key] for key in cited) + "\n"
