"""Every hostile input through every recipe, each fit in a process of its own with a limit in CPU time.

What a fit comes to: "good" (finite answers that make sense), "clear" (an error of ours that says what is wrong), "raw"
(any other error), "nonsense" (an answer that makes no sense, without a word), "crash" (the process died), "endless"
(past the limit).
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from marginsieve import recipes
from marginsieve.errors import InputError, SolverError

from . import processes
from .inputs import CASES, Case

LIMIT, TALL_LIMIT = 25.0, 100.0  # CPU seconds of one fit; of one on 3,000 rows
KINDS = ("good", "clear", "raw", "nonsense", "crash", "endless")
SHORT: dict[str, dict[str, Any]] = {  # less work, the same code
    "fs_svm": {"solver": "fast", "budget": 3, "shakes": 0},
    "ramp_fs": {"solver": "fast", "budget": 3, "shakes": 0, "resamples": 2},
    "ramp_svm": {"points": 5, "resamples": 2},
    "l1_cssvm": {"points": 8},
    "svm_l1": {"points": 8},
    "fsv": {"points": 4},
    "symon": {"improvisations": 10, "memory": 5},
    "stable_fisher": {"ensemble": 5},
}


@dataclass(frozen=True)
class Outcome:
    """What a fit came to, and the message or the reason."""

    case: str
    recipe: str
    kind: str
    said: str = ""


def judge(name: str, recipe: str) -> tuple[str, str]:
    """(kind, what was said) of one case, in this process."""
    return judge_case(CASES[name](), recipe)


def judge_case(made: Case, recipe: str) -> tuple[str, str]:
    """(kind, what was said) of one fit, in this process."""
    notes: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            selector = _build(recipe, made)
            selector.fit(made.X, made.y, sample_weight=made.weight, groups=made.groups)
            notes = [f"{item.category.__name__}: {item.message}" for item in caught]
            reason = _nonsense(selector, made, notes)
    except (InputError, SolverError, NotFittedError) as error:
        text = str(error)
        if "\n" in text or len(text.split()) < 4 or "0x7f" in text:
            return "raw", f"{type(error).__name__} without a sentence: {text[:200]}"
        return "clear", text[:300]
    except Exception as error:
        if isinstance(error, TypeError) and ("unexpected keyword" in str(error) or "multiple values" in str(error)):
            return "clear", "the recipe has no such parameter"
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = "" if where is None else f" ({where.tb_frame.f_code.co_filename.split('/')[-1]}:{where.tb_lineno})"
        return "raw", f"{type(error).__name__}: {str(error)[:200]}{place}"
    raw = [note for note in notes if note.startswith(("RuntimeWarning", "DeprecationWarning", "FutureWarning"))]
    if reason is None and raw:
        reason = f"a warning of a library: {raw[0][:200]}"
    return ("good", "") if reason is None else ("nonsense", reason)


def _build(recipe: str, made: Case) -> Any:
    make = recipes.get(recipe)
    settings = {**SHORT.get(recipe, {}), **made.settings}
    if "random_state" not in settings:
        settings["random_state"] = 0
    return make(**settings)


def _nonsense(selector: Any, made: Case, notes: list[str]) -> str | None:
    """What is wrong with an answer, or None."""
    decide = getattr(selector, "decision_function", None)  # what predicts numbers has none
    value = np.asarray(selector.predict(made.X) if decide is None else decide(made.X), dtype=float)
    if not np.isfinite(value).all():
        return "decision values are not finite"
    if decide is not None and not np.isfinite(np.asarray(selector.threshold_, dtype=float)).all():
        return "the threshold is not finite"
    called = selector.predict(made.X)
    if decide is not None and not set(np.asarray(called).tolist()) <= set(selector.classes_.tolist()):
        return "predicts what is not a class"
    if selector.n_features_ < 1:
        return "selects nothing"
    if sorted(selector.ranking_.tolist()) != list(range(1, len(selector.ranking_) + 1)):
        return "the ranking is not a ranking"
    said = " ".join(notes)
    if np.ptp(value, axis=0).max() == 0 and not said:
        return "a constant decision without a word"
    if made.same_as is not None and not said:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = clone(selector).fit(made.same_as, made.y, sample_weight=made.weight, groups=made.groups)
        if other.support_.tolist() != selector.support_.tolist():
            ours, theirs = np.flatnonzero(selector.support_), np.flatnonzero(other.support_)
            return f"selects {ours.tolist()} and {theirs.tolist()} of the same table in another form"
    return None


def pairs(every: int = 1) -> list[tuple[str, str]]:
    """All (case, recipe), or every so many of them, such that each case and each recipe comes up."""
    names = recipes.names()
    chosen = []
    for i, case in enumerate(CASES):
        for j, recipe in enumerate(names):
            if (i + j) % every == 0:
                chosen.append((case, recipe))
    return chosen


def limit_of(case: str, recipe: str) -> float:
    """CPU seconds that a fit may take."""
    del recipe
    return TALL_LIMIT if case == "shape_tall" else LIMIT


def run(wanted: list[tuple[str, str]], workers: int = 2) -> Iterator[Outcome]:
    """The outcomes, as they come."""
    for pair, (kind, said) in processes.run(judge, wanted, workers, limit_of):
        yield Outcome(*pair, kind, said)


def table(outcomes: list[Outcome]) -> str:
    """A row for each family of cases: how many came to what."""
    families: dict[str, Counter[str]] = {}
    for one in outcomes:
        families.setdefault(one.case.split("_")[0], Counter())[one.kind] += 1
    total = sum(families.values(), Counter())
    lines = [f"| inputs | {' | '.join(KINDS)} |", "|---|" + "---:|" * len(KINDS)]
    for name, count in [*families.items(), ("all", total)]:
        lines.append(f"| {name} | {' | '.join(str(count[kind]) for kind in KINDS)} |")
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run everything, or the cases and recipes that are named (case=... recipe=... every=...)."""
    given = dict(item.split("=", 1) for item in sys.argv[1:])
    wanted = pairs(int(given.get("every", 1)))
    wanted = [
        (case, recipe)
        for case, recipe in wanted
        if given.get("case", "") in case and given.get("recipe", recipe).replace("-", "_") == recipe
    ]
    outcomes, since = [], time.time()
    for one in run(wanted, int(given.get("workers", os.cpu_count() or 2))):
        outcomes.append(one)
        if one.kind not in ("good", "clear") or "say" in given:
            _say(f"{one.kind:9s} {one.case} {one.recipe}: {one.said}")
        if len(outcomes) % 1000 == 0:
            _say(f"... {len(outcomes)} of {len(wanted)}, {time.time() - since:.0f} s")
    _say(table(outcomes))
    return int(any(one.kind not in ("good", "clear") for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
