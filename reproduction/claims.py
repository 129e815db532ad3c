"""Claims of the papers: each is decided by our figures, in one line that begins with a verdict.

A claim that fails says why: `why` looks at an experiment, a part of the same study, and gives its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .evidence import EQUAL, LEVEL, NOT_COMPARABLE, WORSE, Evidence, NotRun, if_holds, kind_of

Decide = Callable[[Evidence], str]


@dataclass(frozen=True)
class Claim:
    """What a paper says, where, and how our figures decide it."""

    text: str
    where: str
    decide: Decide
    why: Decide | None = None  # of a claim that fails: what an experiment shows

    def row(self, evidence: Evidence) -> dict[str, str]:
        """The claim with its verdict, and why where it fails."""
        try:
            verdict = self.decide(evidence)
        except NotRun as error:
            verdict = f"{NOT_COMPARABLE}: {error}"
        fails, why = kind_of(verdict) in (LEVEL, WORSE), ""
        if self.why is not None and fails:
            try:
                why = self.why(evidence)
            except NotRun as error:
                why = f"the experiment is missing: {error}"
        return {"claim": self.text, "where": self.where, "verdict": verdict, "why": why}


def list_claims(where: str, why: Decide | None, *rows: tuple[str, Decide]) -> tuple[Claim, ...]:
    """Claims of one place that fail for the same reason: the text and what decides it."""
    return tuple(Claim(text, where, decide, why) for text, decide in rows)


def undecidable_claim(text: str, where: str, why_not: str) -> Claim:
    """A claim that no figure of ours can decide."""
    return Claim(text, where, lambda _: f"{NOT_COMPARABLE}: {why_not}")


# -- what decides claims of several papers -------------------------------------------------------------------------


def _best(evidence: Evidence, best: str, among: Sequence[str], quantity: str, job: str) -> str:
    table = evidence.means(quantity, among, job)
    means = table.mean()
    next_best = str(means.drop(best).idxmax())
    return _compare_means(means, best, next_best, f"best or level on {_count_best(table, best)}", f"with {next_best}")


def is_best(best: str, among: Sequence[str], quantity: str, job: str = "") -> Decide:
    """Whether `best` has the highest mean of a quantity among these methods."""
    return partial(_best, best=best, among=tuple(among), quantity=quantity, job=job)


def _ahead(evidence: Evidence, above: Sequence[str], below: Sequence[str], quantity: str, job: str) -> str:
    table = evidence.means(quantity, (*above, *below), job)
    means, lead = table.mean(), table[list(above)].min(axis=1) - table[list(below)].max(axis=1)
    weakest, strongest = str(means[list(above)].idxmin()), str(means[list(below)].idxmax())
    return _compare_means(means, weakest, strongest, f"ahead on {int((lead > EQUAL).sum())} of {len(table)}")


def is_ahead(above: Sequence[str], below: Sequence[str], quantity: str, job: str = "") -> Decide:
    """Whether each of `above` has a higher mean of a quantity than each of `below`."""
    return partial(_ahead, above=tuple(above), below=tuple(below), quantity=quantity, job=job)


def _compare_means(means: Any, ours: str, other: str, counts: str, level_with: str = "") -> str:
    digits = 1 if means.max() > 1 else 3
    figures = f"{ours} {means[ours]:.{digits}f}, {other} {means[other]:.{digits}f}; {counts}"
    if abs(means[ours] - means[other]) < EQUAL:
        return f"{LEVEL} {level_with}".rstrip() + f": {figures}"
    return if_holds(bool(means[ours] > means[other]), figures)


def leads(table: Any, method: str) -> Any:
    """By row, whether a method is best or level."""
    return table[method] >= table.max(axis=1) - EQUAL


def _count_best(table: Any, method: str) -> str:
    return f"{int(leads(table, method).sum())} of {len(table)}"
