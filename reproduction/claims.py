"""Claims of the papers. A rule decides each in up to three columns of our figures; the columns together are a verdict.

A claim that does not hold needs an experiment, a part of the same study, that excludes our implementation, our protocol
and our data as the cause. Without one the verdict is that ours is weaker, which is a fault of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .evidence import AS_PRINTED, EQUAL, HONEST, NEAR, NO, REPAIRED, YES, Evidence, Finding, NotRun, if_holds

HOLDS, ONLY_PRINTED, LEVEL, FAILS = "holds", "holds only under the printed protocol", "level", "does not hold"
CONTRADICTED, NO_DATA, OURS = "print contradicts itself", "data not available", "ours is weaker"
NOT_RUN = "not run"
VERDICTS = (HOLDS, ONLY_PRINTED, LEVEL, FAILS, CONTRADICTED, NO_DATA, OURS)
BOTH, ALL_THREE = (AS_PRINTED, HONEST), (AS_PRINTED, REPAIRED, HONEST)

Rule = Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Experiment:
    """Why a claim does not hold: what a part of the study shows, in two sentences, and the picture of it."""

    tell: Callable[[Evidence], str]
    figure: str = ""  # the name of a file that the study draws


@dataclass(frozen=True)
class Claim:
    """What a paper says, where, and the rule by which our figures decide it, in the columns that it is asked in.

    `settled` is a verdict that no figure of ours can change, with the reason in `note`.
    """

    text: str
    where: str
    decide: Rule | None = None
    experiment: Experiment | None = None
    columns: tuple[str, ...] = (AS_PRINTED,)
    settled: str = ""
    note: str = ""

    def row(self, evidence: Evidence) -> dict[str, str]:
        """The claim with its verdict, what each column says, and the experiment where it does not hold."""
        findings = {column: self._ask(evidence.read(column)) for column in self.columns}
        verdict, why, figure = self.settled or judge(findings), self.note, ""
        if self.experiment is not None and verdict not in (HOLDS, NOT_RUN):
            try:
                why = f"{why} {self.experiment.tell(evidence)}".strip()
                figure = self.experiment.figure
            except NotRun as error:
                verdict, why = self.settled or NOT_RUN, f"{why} The experiment is missing: {error}.".strip()
        if verdict == FAILS and not figure:
            verdict = OURS
        columns = {name: str(findings[name]) if findings.get(name) else "" for name in ALL_THREE}
        return {"claim": self.text, "where": self.where, "verdict": verdict, **columns, "why": why, "figure": figure}

    def _ask(self, evidence: Evidence) -> Finding | None:
        try:
            return None if self.decide is None else self.decide(evidence)
        except NotRun:
            return None


def judge(findings: dict[str, Finding | None]) -> str:
    """The verdict on a rule by what each column finds: the strict ones decide, the printed one where it is alone."""
    answers = {column: finding.answer for column, finding in findings.items() if finding is not None}
    strict = [answers[column] for column in (REPAIRED, HONEST) if column in answers] or list(answers.values())
    if not strict or (AS_PRINTED in findings and AS_PRINTED not in answers):
        return NOT_RUN
    worst = max(strict, key=(YES, NEAR, NO).index)
    if worst != YES and answers.get(AS_PRINTED) == YES:
        return ONLY_PRINTED
    return {YES: HOLDS, NEAR: LEVEL, NO: FAILS}[worst]


# -- rules of several papers ---------------------------------------------------------------------------------------


def _best(evidence: Evidence, best: str, among: Sequence[str], quantity: str, job: str) -> Finding:
    table = evidence.means(quantity, among, job)
    means = table.mean()
    next_best = str(means.drop(best).idxmax())
    return _compare_means(means, best, next_best, f"best or level on {_count_best(table, best)}")


def is_best(best: str, among: Sequence[str], quantity: str, job: str = "") -> Rule:
    """Whether `best` has the highest mean of a quantity among these methods."""
    return partial(_best, best=best, among=tuple(among), quantity=quantity, job=job)


def _ahead(evidence: Evidence, above: Sequence[str], below: Sequence[str], quantity: str, job: str) -> Finding:
    table = evidence.means(quantity, (*above, *below), job)
    means, lead = table.mean(), table[list(above)].min(axis=1) - table[list(below)].max(axis=1)
    weakest, strongest = str(means[list(above)].idxmin()), str(means[list(below)].idxmax())
    return _compare_means(means, weakest, strongest, f"ahead on {int((lead > EQUAL).sum())} of {len(table)}")


def is_ahead(above: Sequence[str], below: Sequence[str], quantity: str, job: str = "") -> Rule:
    """Whether each of `above` has a higher mean of a quantity than each of `below`."""
    return partial(_ahead, above=tuple(above), below=tuple(below), quantity=quantity, job=job)


def _compare_means(means: Any, ours: str, other: str, counts: str) -> Finding:
    digits = 1 if means.max() > 1 else 3
    figures = f"{ours} {means[ours]:.{digits}f}, {other} {means[other]:.{digits}f}; {counts}"
    level = abs(means[ours] - means[other]) < EQUAL
    return if_holds(bool(means[ours] > means[other]) and not level, figures, NEAR if level else NO)


def leads(table: Any, method: str) -> Any:
    """By row, whether a method is best or level."""
    return table[method] >= table.max(axis=1) - EQUAL


def _count_best(table: Any, method: str) -> str:
    return f"{int(leads(table, method).sum())} of {len(table)}"


def list_claims(
    where: str,
    tell: Callable[[Evidence], str],
    *rows: tuple[str, Rule],
    columns: tuple[str, ...] = (AS_PRINTED,),
    figure: str = "",
) -> tuple[Claim, ...]:
    """Claims of one place that one experiment is about: the text and what decides it."""
    return tuple(Claim(text, where, decide, Experiment(tell, figure), columns) for text, decide in rows)


def undecidable_claim(text: str, where: str, why_not: str) -> Claim:
    """A claim that no figure of ours can decide."""
    return Claim(text, where, settled=NO_DATA, note=why_not)
