"""Performance and stability side by side, and whether one family of methods is ahead of another in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from marginsieve.bench.results import SuiteResult
from marginsieve.bench.statistics import compare
from marginsieve.engine.store import FILE

from .drawings import curves
from .workplace import Workplace

if TYPE_CHECKING:
    import pandas as pd

SIDES = {"balanced_accuracy": "balanced classification rate", "stability": "stability (Kuncheva)"}


@dataclass(frozen=True)
class FamilyComparison:
    """What a job measured at every size: `first` against `second`, on scores and on stability, over the data sets.

    Methods are ranked in two ways: with data sets as blocks, sizes averaged, and with every data set and size as a
    block of its own, as the paper does, which counts the same data many times.
    """

    job: str
    data: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.job}-comparison"

    def run(self, place: Workplace) -> list[str]:
        """Lines of the report; the tables as CSV and the pictures beside it. The job was run before."""
        folder, drafts = place.out / f"{self.job}-paper", place.drafts
        if not (folder / FILE).exists():
            return []
        both = measured(SuiteResult(folder))
        both.to_csv(drafts / f"{self.name}.csv", index=False)
        lines = [f"## {self.job}: {' and '.join(self.first)} against {' and '.join(self.second)}", ""]
        for side, label in SIDES.items():
            lines += self._means(both, side, label) + self._ranks(both, side, label, drafts)
        for data, part in both.groupby("data", sort=False):
            file = f"{self.job}-{str(data).lower()}-stability.svg"
            curves(part.rename(columns={"stability": "value"}), drafts / file, "stability (Kuncheva)")
            lines += [f"![stability on {data}]({file})", ""]
        return lines

    def _means(self, both: pd.DataFrame, side: str, label: str) -> list[str]:
        """Means over the sizes, and by how much the worst of the first family is ahead of the best of the second."""
        table = both.pivot_table(index="data", columns="method", values=side, sort=False)
        present = [[name for name in family if name in table] for family in (self.first, self.second)]
        head = "| data set | " + " | ".join(table.columns) + " | ahead by |"
        lines = [f"Mean {label} over the sizes:", "", head, "|---" * (table.shape[1] + 2) + "|"]
        for data, row in table.iterrows():
            ahead = row[present[0]].min() - row[present[1]].max() if all(present) else float("nan")
            cells = [f"{value:.3f}" for value in row]
            lines.append(f"| {data} | " + " | ".join(cells) + f" | {ahead:+.3f} |")
        text = "'Ahead by' is the weaker of the first two methods less the stronger of the other two."
        return [*lines, "", text, ""] if all(present) else [*lines, ""]

    def _ranks(self, both: pd.DataFrame, side: str, label: str, drafts: Path) -> list[str]:
        lines = []
        for blocks, index in (("data sets", ["data"]), ("data sets and sizes", ["data", "size"])):
            table = both.pivot_table(index=index, columns="method", values=side, sort=False).dropna()
            if min(table.shape) < 2:
                continue
            values = compare(table)
            file = f"{self.job}-{side.replace('_', '-')}-{blocks.replace(' ', '-')}.svg"
            values.plot(drafts / file, blocks)
            ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(values.methods, values.ranks, strict=True))
            lines += [
                f"Average ranks by {label}, blocks are {blocks} ({len(table)}): {ranks}; Friedman p = "
                f"{values.p_value:.2g}, critical difference {values.critical_difference:.2f}.",
                "",
                f"![{label}, {blocks}]({file})",
                "",
            ]
        return lines


def measured(study: SuiteResult, keys: Sequence[str] = ("data", "method", "size")) -> pd.DataFrame:
    """By data set, method and size: balanced accuracy and stability, where both are there."""
    scores = study.scores("balanced_accuracy").drop(columns="passes")
    return scores.merge(study.stability()[[*keys, "stability"]], on=list(keys)).dropna()
