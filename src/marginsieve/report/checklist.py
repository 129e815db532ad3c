"""The 52 items of TRIPOD+AI (Collins et al. 2024, doi 10.1136/bmj-2023-078378), and what a study knows of them.

The items are in our words. What a study cannot know is named with what its authors have to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import join_words, listing, many
from .numbers import format_score

Result = dict[str, Any]
Text = Callable[[Result], str | None]


def checklist_rows(result: Result) -> list[dict[str, str]]:
    """A row for each item: its number, what it asks, what the study says of it, what is left to its authors."""
    rows = []
    for item, asks, says, left in ITEMS:
        text = None if says is None else says(result)
        rows.append({"item": item, "asks": asks, "study": text or "", "authors": left if text or left else UNKNOWN})
    return rows


UNKNOWN = "the study has nothing of it"


def _title(r: Result) -> str:
    table = r["table"]
    return f"development, with internal validation, of a model that predicts {table['target']}"


def _counts(r: Result) -> str:
    """Rows, and of classes or events how many."""
    table = r["table"]
    labels = ", ".join(f"{count:,} {name}" for name, count in table.get("classes", {}).items())
    events = f"{table['events']:,} events" if "events" in table else ""
    return f"{table['rows']:,} rows" + "".join(f" ({text})" for text in (labels or events,) if text)


def _preprocessing(r: Result) -> str:
    counts = ", ".join(f"{count:,} {what}" for what, count in r["ledger"]["counts"].items()) or "nothing was changed"
    return f"reading changed: {counts} (ledger.csv has each place); checks raised: {_codes(r)}"


def _codes(r: Result) -> str:
    return ", ".join(dict.fromkeys(finding["code"] for finding in r["findings"])) or "none"


def _outcome(r: Result) -> str:
    table = r["table"]
    labels = f": {listing(list(table['classes']), 10)}" if "classes" in table else ""
    horizon = f", horizon {r['options']['horizon']:g}" if r["options"].get("horizon") else ""
    return f"column {table['target']} ({r['options']['outcome']}){labels}{horizon}"


def _initial(r: Result) -> str:
    table = r["table"]
    left = table["dropped_columns"]
    text = f"{table['features']:,} columns; left out beforehand: {listing(left, 10) if left else 'none'}"
    filter_ = r["options"].get("prefilter")
    return text + (f"; in each training part the best {filter_[1]:,} by {filter_[0]}" if filter_ else "; no prefilter")


def _predictors(r: Result) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in r["table"]["kinds"].items())
    return f"columns by kind: {kinds}; the list: {listing([each['name'] for each in r['features']], 20)}"


def _size(r: Result) -> str:
    value, span = _score(r)
    return f"{_counts(r)}, all that there were; the width of the interval says what they suffice for: {value} ({span})"


def _missing(r: Result) -> str:
    if not (share := r["table"]["missing_cells"]):
        return "no cell was empty"
    clinical = "clinical" in r["methods"][0]["kernel"]
    how = "the clinical kernel counts no distance for an empty cell" if clinical else "as the method's description says"
    return f"{share:.1%} of the cells were empty; {how}"


def _use(r: Result) -> str:
    p = r["protocol"]
    drawn = f"{p['outer']}, {p['folds']} folds, {many(p['repeats'], 'repeat')}"
    return f"{drawn}; trained on {p['trained_on']}; {p['interval']}"


def _handling(r: Result) -> str:
    kernel = r["methods"][0]["kernel"]
    return (
        f"{kernel} kernel; whatever scales columns is computed in the training part; a column of levels is one feature"
    )


def _model(r: Result) -> str:
    method = r["methods"][0]
    rule = "given" if method["size_rule"] == "given" else "chosen in inner folds"
    return f"{method['title']}: {method['does']} Number of features {rule}; all steps within the training parts"


def _clusters(r: Result) -> str:
    sites = r["analyses"].get("sites")
    return "whole sites left out beside the folds" if sites else "no sites were named (--site), so none were compared"


def _measures(r: Result) -> str:
    return f"{join_words(list(r['metrics'].values()))}; ROC, precision and recall, calibration; beside all features"


def _calculation(r: Result) -> str:
    digests = ", ".join(f"{name} (SHA-256 {digest[:12]})" for name, digest in r.get("models", {}).items())
    formula = "; the formula is in features.csv and result.json" if r["formula"] else ""
    return f"`marginsieve predict` with the model file {digests}{formula}"


def _imbalance(r: Result) -> str | None:
    if "classes" not in r["table"]:
        return None
    threshold = "" if r["threshold"] is None else f" ({r['threshold']:.3g})"
    return f"the cut{threshold} comes from inner folds"


def _output(r: Result) -> str:
    words = r["words"]
    return f"a score and, above its cut, {words['above']}" if words.get("above") else f"the {r['options']['outcome']}"


def _code(r: Result) -> str:
    how = r["how"]
    versions = ", ".join(f"{name} {number}" for name, number in how["versions"].items())
    return f"{versions}; seed {how['random_state']}; {how['command'] or 'called from Python'}"


def _flow(r: Result) -> str:
    rows = r["ledger"]["counts"].get("rows dropped", 0)
    return f"{_counts(r)}; {many(rows, 'row')} of the file dropped while reading"


def _characteristics(r: Result) -> str:
    table = r["table"]
    return f"{_counts(r)}, {table['features']:,} columns, {table['missing_cells']:.1%} of the cells empty"


def _analyses(r: Result) -> str:
    folds, repeats = r["protocol"]["folds"], r["protocol"]["repeats"]
    count = (1 - 1 / folds) * r["table"]["rows"]
    return f"{_counts(r)}; each of {folds * repeats} training parts has about {count:,.0f} of them"


def _performance(r: Result) -> str:
    texts = []
    for name in r["listed_scores"]:
        value, span = format_score(r["scores"][name])
        texts.append(f"{r['short_names'][name]} {value} ({span})")
    return f"out of fold, with 95 % intervals: {join_words(texts)}"


def _heterogeneity(r: Result) -> str | None:
    return "the section Sites of the report" if r["analyses"].get("sites") else None


def _limits(r: Result) -> str | None:
    doubts = r["answer"]["doubts"]
    return "; ".join(doubts) or None


def _score(r: Result) -> tuple[str, str]:
    name = r["listed_scores"][-1]
    value, span = format_score(r["scores"][name])
    return f"{r['short_names'][name]} {value}", span


def _specification(r: Result) -> str:
    return f"{_calculation(r)}; {many(r['n_features'], 'feature')}"


ITEMS: tuple[tuple[str, str, Text | None, str], ...] = (
    ("1", "title: development or evaluation, population, outcome", _title, "the population"),
    ("2", "abstract by TRIPOD+AI for abstracts", None, "the abstract; the headline and methods.txt help"),
    ("3a", "context in care and why there should be a model", None, "the question, and models there are"),
    ("3b", "population, purpose and users", None, "who uses it, when, for what decision"),
    ("3c", "known inequalities between groups", None, "what is known of groups in this population"),
    ("4", "objectives", _title, "the question in words"),
    (
        "5a",
        "sources of the data",
        lambda r: f"one table of {_counts(r)}",
        "where the table comes from and whom it stands for",
    ),
    ("5b", "dates of recruitment and follow-up", None, "first and last day of recruitment and follow-up"),
    ("6a", "setting: number and place of centres", None, "centres; with --site the report has their number"),
    ("6b", "who could take part", None, "criteria of inclusion and exclusion"),
    ("6c", "treatments", None, "treatments before and after the prediction, and how they were handled"),
    ("7", "preparation and checks of the data", _preprocessing, "what was done before the table was made"),
    ("8a", "the outcome and its horizon", _outcome, "how and when it was assessed"),
    ("8b", "who judged the outcome", None, "training of the assessors, where the outcome takes judgement"),
    ("8c", "blinding of the outcome", None, "whether assessors knew the predictors"),
    ("9a", "which predictors were considered", _initial, ""),
    ("9b", "definition of the predictors", _predictors, "how and when each was measured"),
    ("9c", "who judged the predictors", None, "training of the assessors, where predictors take judgement"),
    ("10", "size of the study", _size, "whether a size was planned"),
    ("11", "missing data", _missing, ""),
    ("12a", "how the data were used", _use, ""),
    ("12b", "how predictors were handled", _handling, ""),
    ("12c", "type of model, steps, internal validation", _model, ""),
    ("12d", "differences between clusters", _clusters, ""),
    ("12e", "measures of performance", _measures, ""),
    ("12f", "updating of the model", lambda _: "none: the model was fitted once, on all rows", ""),
    ("12g", "how predictions are calculated", _calculation, ""),
    ("13", "imbalance of the classes", _imbalance, ""),
    ("14", "fairness", None, "groups in which performance was compared, or that none were"),
    ("15", "output of the model and its cut", _output, ""),
    (
        "16",
        "differences between development and evaluation",
        lambda _: "the same table, evaluated on its outer folds",
        "differences, where there is another cohort",
    ),
    ("17", "ethical approval", None, "committee and number, consent or waiver"),
    ("18a", "funding", None, "who paid and what part they had"),
    ("18b", "conflicts of interest", None, "those of all authors"),
    ("18c", "protocol", None, "where it is; options of the study are in result.json"),
    ("18d", "registration", None, "register and number, or that there is none"),
    ("18e", "sharing of the data", None, "where the table is, or why not"),
    ("18f", "sharing of the code", _code, ""),
    ("19", "involvement of patients and the public", None, "how they took part, or that they did not"),
    ("20a", "flow of the participants", _flow, "who was not in the table, as a diagram"),
    ("20b", "characteristics", _characteristics, "dates, care and groups"),
    (
        "20c",
        "predictors in development and evaluation",
        lambda _: "the same rows; for a cohort: marginsieve validate",
        "",
    ),
    ("21", "numbers in each analysis", _analyses, ""),
    ("22", "the full model", _specification, "where the model file can be had"),
    ("23a", "performance with intervals", _performance, ""),
    ("23b", "performance by cluster", _heterogeneity, ""),
    ("24", "results of updating", lambda _: "none: the model was not updated", ""),
    ("25", "interpretation", None, "what the result means beside other studies"),
    ("26", "limits", _limits, "limits that numbers do not show"),
    (
        "27a",
        "poor or missing input at use",
        lambda _: "a missing column or a cell of another type is refused by name; rows far from training are marked",
        "",
    ),
    (
        "27b",
        "what users have to do",
        lambda _: "give a table with the columns of the list by name to `marginsieve predict`",
        "",
    ),
    ("27c", "next steps", None, "evaluation elsewhere (marginsieve validate) and use"),
)
