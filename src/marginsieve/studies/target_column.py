"""What a target column says by its cells and its name: spellings of a class, the class of interest, amounts, times."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Outcome
from ..data.ledger import Ledger
from ..errors import InputError, listing
from .checks import NOTE, Finding

if TYPE_CHECKING:
    import pandas as pd

POSITIVE_WORDS = frozenset(
    [
        *("yes", "y", "true", "die", "died", "dead", "deceased", "death"),
        *("case", "cases", "event", "relapse", "relapsed", "recurrence", "recurred"),
        *("progression", "positive", "pos", "malignant", "cancer", "tumor", "tumour"),
        *("disease", "diseased", "sick", "ill", "poor", "bad", "fraud", "default"),
    ]
)
MOST_CODES, FEWEST_ROWS = 10, 10  # different whole numbers that are classes at most, unless each has so many rows
STATUS = re.compile(r"(^|_)status$")  # of anything, such as a loan
UNITS = ("days", "weeks", "months", "years")
# what is found in a plain name: the end of something in a trial, a time, and what comes after the outcome
TRIAL, UNIT = r"(os|pfs|dfs|rfs|dss|efs)", r"(time|days?|weeks?|months?|years?)"
SURVIVAL = r"((overall|\w+_(free|specific))_)?survival"
EVENT = re.compile(
    rf"(^|_)(event|status|death|die|died|dead|deceased|alive|mortality|survived|survival|vital|{TRIAL}|relapsed?|"
    r"recurrence|recurred|progression|progressed|censor(ed|ing)?|fustat)(_|$)"
)
TIME = re.compile(
    rf"time|days|weeks|months|years|futime|{UNIT}_(to|until)_\w+|({TRIAL}|{SURVIVAL}|event|death|follow_?up)_?{UNIT}|"
    rf"{SURVIVAL}|follow_?up"
)
AFTER = re.compile(
    r"(^|_)(duration|outcome|result|follow_?up|survival|survived|discharged?|died|death|dead|relapsed?|recurrence|"
    rf"length_of_stay|los|after|{UNIT}_(to|until)|{TRIAL}_?{UNIT}|futime)(_|$)"
)
CAMEL = re.compile(r"([a-z0-9])([A-Z])")


def merge_labels(y: pd.Series, ledger: Ledger, in_python: bool) -> tuple[pd.Series, list[Finding]]:
    """Labels that differ in case and in spaces around them alone, as the most frequent of their spellings.

    Labels given in Python are what somebody's code made of them: they stay as they are, and that is said.
    """
    counts = y.value_counts()
    spellings: dict[str, list[Any]] = {}
    for label in sorted(counts.index, key=lambda label: (-counts[label], str(label))):
        spellings.setdefault(_plain_spelling(str(label)), []).append(label)
    several = {labels[0]: labels[1:] for labels in spellings.values() if len(labels) > 1}
    if not several or y.dtype != object:
        return y, []
    if in_python:
        texts = [listing([label, *others], 1 + len(others)) for label, others in several.items()]
        text = f"labels that differ in case or spaces alone are different classes: {'; '.join(texts)}"
        return y, [Finding("labels", "alarm", text)]
    back = {other: label for label, others in several.items() for other in others}
    rows = np.flatnonzero(y.isin(list(back)))
    ledger.add("label", "joined", y.name, "with a class spelled in another way", rows=rows, cells=y.iloc[rows].tolist())
    texts = [f"{listing(others, len(others))} as {label!r}" for label, others in several.items()]
    text = f"labels that differ in case or spaces alone were read as one class: {'; '.join(texts)}"
    return y.map(lambda label: back.get(label, label)), [Finding("labels", "alarm", text)]


def _plain_spelling(label: str) -> str:
    """A label without what does not show: kinds of spaces, marks of no width, ways to compose a character; its case."""
    shown = "".join(char for char in unicodedata.normalize("NFC", label) if unicodedata.category(char) != "Cf")
    return " ".join(shown.split()).casefold()


def find_positive(y: pd.Series, target: str) -> tuple[Any, list[Finding]]:
    """The class of interest by its name (yes, died, case, event, 1), and what to say where it is not the rarer one."""
    counts = y.value_counts()
    if len(counts) != 2:
        return None, []
    words = {label: str(label).strip().casefold() for label in counts.index}
    named = [label for label, word in words.items() if word in POSITIVE_WORDS]
    if not named:
        other = {"0", "0.0", "-1", "-1.0"}
        ones = [label for label, word in words.items() if word in ("1", "1.0")]
        named = ones if ones and {*words.values()} - {words[ones[0]]} <= other else []
    if len(named) != 1:
        return None, []
    label = named[0]
    if counts[label] < len(y) / 2:
        return label, []
    text = f"the class of interest is {target} = {label}, by its name, though it is not the rarer one"
    return label, [Finding("positive", NOTE, f"{text} (--positive names another)")]


def refuse_amounts(y: pd.Series, target: str) -> None:
    """Refuse whole numbers that are amounts: many different ones, of which most are rare."""
    if y.dtype.kind not in "iuf" or y.isna().any() or (y != np.rint(y)).any():
        return
    counts = y.value_counts()
    if len(counts) > MOST_CODES and counts.median() < FEWEST_ROWS:
        what = f"{len(counts)} different whole numbers from {y.min():g} to {y.max():g}"
        raise InputError(
            f"the target {target!r} holds {what}: these are amounts rather than classes; make classes of them "
            f"first, for example above and below {y.median():g}"
        )


def resolve_outcome(y: pd.Series, outcome: str | Outcome, timed: bool = False) -> tuple[str | Outcome, list[Finding]]:
    """What the target is where that is "auto", and what to say of it; `timed`: there is a column of times beside it.

    Numbers are more than ten different ones that are not whole, or most of them rare; all else is classes.
    """
    if not (isinstance(outcome, str) and outcome == "auto"):
        return outcome, []
    if timed:
        return "survival", []
    known = y.dropna()
    counts = known.value_counts()
    if y.dtype.kind not in "iuf" or len(counts) <= MOST_CODES:
        return "classes", []
    if counts.median() >= FEWEST_ROWS and not (known != np.rint(known)).any():
        return "classes", []
    what = f"{len(counts):,} different numbers from {known.min():g} to {known.max():g}"
    text = f"the target {str(y.name)!r} holds {what} and was taken as numbers, which are predicted as such"
    return "numbers", [Finding("outcome", NOTE, f"{text} (--outcome classes, outcome='classes' take them as classes)")]


def read_survival(frame: pd.DataFrame, target: str, time: str | None) -> tuple[pd.DataFrame, list[Finding]]:
    """The time and whether the event was seen, of a target of events: 0 and 1, 1 and 2, or words such as died."""
    import pandas as pd

    if time is None:
        raise InputError(
            f"the outcome is survival and {target!r} says whether the event came: name the column of the time"
        )
    y = frame[target]
    if missing := int(y.isna().sum() + frame[time].isna().sum()):
        raise InputError(f"{missing} cells of {target!r} and {time!r} are empty: drop these rows")
    if frame[time].dtype.kind not in "iuf":
        raise InputError(f"the time {time!r} holds {frame[time].dtype}; it must hold numbers, such as days")
    values = set(y.unique().tolist())
    notes = []
    if values <= {0, 1} or {str(value).strip() for value in values} <= {"0", "1", "0.0", "1.0"}:
        event = y.astype(float).to_numpy() == 1.0
    elif values == {1, 2}:
        event = y.to_numpy() == 2
        notes.append(Finding("outcome", NOTE, f"{target!r} holds 1 and 2: 2 was taken for the event"))
    else:
        label, _ = find_positive(y, target)
        if label is None:
            raise InputError(
                f"{target!r} holds {listing(sorted(map(str, values)))}; whether an event was seen is 0 and 1, or two "
                "words of which one is known (died, event, relapse, yes)"
            )
        event = (y == label).to_numpy()
        notes.append(Finding("outcome", NOTE, f"{target!r}: {label!s} was taken for the event"))
    if (frame[time] <= 0).any():
        count = int((frame[time] <= 0).sum())
        text = (
            f"{count} of the times {time!r} {'is' if count == 1 else 'are'} 0 or below: taken as they are, as the first"
        )
        notes.append(Finding("outcome", NOTE, text))
    return pd.DataFrame({"time": frame[time].astype(float), "event": event}), notes


def refuse_times(X: pd.DataFrame, y: pd.Series, target: str, included: Sequence[str]) -> None:
    """Refuse a pair of a time and an event, of which the time would be a feature."""
    event = plain_name(target)
    if y.nunique() != 2 or not EVENT.search(event):
        return
    numbers = [str(name) for name, dtype in X.dtypes.items() if dtype.kind in "iuf" and name not in included]
    times = [name for name in numbers if TIME.fullmatch(plain_name(name))]
    if STATUS.search(event) and "vital" not in event:
        times = [name for name in times if plain_name(name) not in UNITS]
    if times:
        what = f"{listing(times)} and {target!r} look like the time to an event and whether it came"
        drop = f"--drop {','.join(times)}"
        raise InputError(
            f"{what}, and the time would be a feature: predict the time to the event (--time {times[0]}), leave it out "
            f"({drop}), make classes such as an event within a year, or name it with --include where it was known "
            "beforehand"
        )


def named_after_outcome(names: Sequence[str]) -> list[str]:
    """Columns whose names say that they are known after the outcome."""
    return [name for name in names if AFTER.search(plain_name(name))]


def plain_name(name: Any) -> str:
    """A name in small letters, its parts apart: OsMonths is os_months."""
    return re.sub(r"\W+", "_", CAMEL.sub(r"\1_\2", str(name)).casefold()).strip("_")
