"""What a study checks, each with a code that does not change, and what one of them says of a table or an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError, listing, shown_value

ALARM, NOTE = "alarm", "note"


@dataclass(frozen=True)
class Check:
    """A check: its code, and what it looks at in a few words."""

    code: str
    title: str


#: by kind; docs/checks.md has a section for each code
CHECKS = {
    "copy": Check("MS101", "a column says the same as the target"),
    "leak": Check("MS102", "a column alone tells the classes apart"),
    "before": Check("MS103", "known before the outcome?"),
    "groups": Check("MS104", "rows that may belong together"),
    "equal rows": Check("MS105", "equal rows"),
    "torn rows": Check("MS106", "equal rows with different classes"),
    "few": Check("MS107", "fewer than ten of a class"),
    "gaps": Check("MS108", "empty cells"),
    "text": Check("MS109", "text among numbers"),
    "separated": Check("MS110", "numbers with another decimal mark"),
    "numbers": Check("MS111", "text that was read as numbers"),
    "dates": Check("MS112", "dates"),
    "levels": Check("MS113", "more levels than rows can teach"),
    "id": Check("MS114", "ids"),
    "encoding": Check("MS115", "the encoding of the file"),
    "labels": Check("MS116", "labels that differ in case or spaces alone"),
    "counts": Check("MS117", "whole numbers that nearly never repeat"),
    "positive": Check("MS118", "the class of interest by its name"),
    "unnamed": Check("MS119", "columns without a name and index columns"),
    "ragged": Check("MS120", "rows with too few or too many fields"),
    "empty": Check("MS121", "empty columns"),
    "marks": Check("MS122", "words that were read as empty cells"),
    "site": Check("MS123", "columns that look like a site or a batch"),
    "outcome": Check("MS124", "a target that was taken as numbers"),
    "skewed": Check("MS125", "numbers over several orders of magnitude"),
    "prose": Check("MS126", "free text"),
    "sheet": Check("MS127", "a spreadsheet with several sheets"),
    "unstable": Check("MS201", "an unstable list"),
    "wide": Check("MS202", "a wide interval"),
    "long": Check("MS203", "a list longer than in any fold"),
    "short": Check("MS204", "a list shorter than in most folds"),
    "other": Check("MS205", "another method scores higher"),
    "false": Check("MS206", "more than half of the list may be false"),
    "longer": Check("MS207", "the long list is clearly better"),
    "method": Check("MS208", "a method failed"),
    "suspects": Check("MS209", "labels were not judged"),
    "remark": Check("MS210", "a remark of the method"),
    "analysis": Check("MS211", "a doubt of an analysis"),
    "outside": Check("MS212", "columns that folds choose often and the list is without"),
    "transfer": Check("MS213", "worse at sites that were left out"),
    "confounded": Check("MS214", "sites go with the outcome"),
    "minutes": Check("MS215", "a study made smaller by its minutes"),
}


@dataclass(frozen=True)
class Finding:
    """What a check says: its kind, an "alarm" or a "note", a sentence, the columns it is about."""

    kind: str
    level: str
    text: str
    columns: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The code of the check, by which it can be muted."""
        return CHECKS.get(self.kind, CHECKS["analysis"]).code  # analyses of other packages have kinds of their own


def refuse_unknown(name: str, muted: Sequence[str]) -> None:
    """Refuse what is no code of a check."""
    if not isinstance(muted, Sequence):
        raise InputError(f"study: {name} is {shown_value(muted)}; it must hold codes of checks, such as MS107")
    known = [check.code for check in CHECKS.values()]
    if unknown := [code for code in muted if code not in known]:
        raise InputError(f"study: {name} is {listing(unknown)}; it must hold codes of checks, such as MS107")
