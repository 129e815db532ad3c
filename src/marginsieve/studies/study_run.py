"""What a study ran: the table, the methods with their nested scores, the judged labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Array
from ..engine.metrics import Scores, score_difference
from ..fitting.false_share import FalseShare
from .chance import Chance
from .cheapest import CheapList
from .choosing import Choice
from .effects import evidence
from .findings import Finding
from .options import StudyOptions
from .reference_rows import ReferenceRow
from .selection import Selection
from .study_data import StudyData, suspect_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StudyRun:
    """What a study ran and what came of it, before it is put into words."""

    data: StudyData
    choice: Choice
    options: StudyOptions
    selections: tuple[Selection, ...]  # the main method first, all features last
    chance: Chance
    judged: pd.DataFrame | None  # what find_suspects says of every sample
    failures: tuple[Finding, ...]
    seconds: float
    reference_rows: tuple[ReferenceRow, ...] = ()
    halves: FalseShare | None = None
    marginal: Array | None = None  # (n,) adjusted p-values of single columns
    substitutes: pd.DataFrame | None = None
    alternatives: pd.DataFrame | None = None
    cost: Array | None = None  # (n,) of each column
    cheapest: CheapList | None = None
    command: str | None = None

    @property
    def main(self) -> Selection:
        """The method whose features are presented; chosen before anything was run."""
        return self.selections[0]

    @property
    def baseline(self) -> Selection:
        """All features with the same kind of machine and threshold."""
        return self.selections[-1]

    @cached_property
    def evidence(self) -> dict[str, dict[str, Any]]:
        """By feature: effect, direction and the numbers of a small plot."""
        nested, columns = self.main.nested, self.main.selector.columns_
        labels = [str(label) for label in nested.classes]
        kinds = dict(zip(columns.names, columns.kind, strict=True))
        return {
            str(name): evidence(self.data.X[name], kinds[str(name)], nested.truth, labels, nested.positive)
            for name in self.data.X.columns
        }

    @cached_property
    def features(self) -> pd.DataFrame:
        """Every feature by rank."""
        frame = self.main.features()
        effects = [self.evidence[name]["effect"] for name in frame["name"]]
        frame["effect"] = [effect["value"] for effect in effects]
        frame["effect_low"] = [effect["low"] for effect in effects]
        frame["effect_high"] = [effect["high"] for effect in effects]
        frame["effect_is"] = [f"{effect['name']}, {effect['unit']}" for effect in effects]
        frame["direction"] = [self.evidence[name]["direction"] for name in frame["name"]]
        order = np.argsort(self.main.selector.ranking_)
        for name, values in self.false_columns.items():
            frame[name] = values[order]
        frame["substitutes"] = [", ".join(self.stand_ins.get(name, ())) for name in frame["name"]]
        if self.cost is not None:
            frame["cost"] = self.cost[order]
        return frame

    @cached_property
    def stand_ins(self) -> dict[str, list[str]]:
        """By feature: the columns that are equivalent in its place."""
        out: dict[str, list[str]] = {}
        if self.substitutes is not None:
            for row in self.substitutes[self.substitutes["equivalent"].astype(bool)].to_dict("records"):
                out.setdefault(row["feature"], []).append(row["substitute"])
        return out

    @cached_property
    def false_columns(self) -> dict[str, Array]:
        """By column of the table: how often it leads in halves of the rows, its q-value, and that of a test alone."""
        n = len(self.main.selector.columns_.names)
        halves, unknown = self.halves, np.full(n, np.nan)
        score, q = (unknown, unknown) if halves is None else (halves.score, halves.q)
        return {"halves": score, "q_value": q, "marginal_q": unknown if self.marginal is None else self.marginal}

    @cached_property
    def suspects(self) -> pd.DataFrame | None:
        """Every sample, the most suspicious label first; None where labels were not judged."""
        if self.judged is None:
            return None
        frame, nested = suspect_table(self.judged, self.data), self.main.nested
        frame["missed"] = (nested.predicted != nested.truth).mean(axis=0)[frame["row"]]
        return frame

    def difference(self, selection: Selection, other: Selection | None = None) -> Scores:
        """A method's metrics less those of another, or of all features, on the same rows and folds."""
        ours, theirs = selection.nested, (self.baseline if other is None else other).nested
        scores = score_difference(ours.truth, ours.passes, theirs.passes, ours.positive, ours.groups)
        zero = dict.fromkeys(scores.value, 0.0)
        return replace(scores, low=zero, high=zero, error=zero) if ours is theirs else scores
