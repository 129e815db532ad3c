"""Cells that a program could take for formulas: written and read again they are the same, and none can be run."""

from __future__ import annotations

import csv
import io
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from marginsieve.data.cells import is_formula
from marginsieve.data.reading import read_table
from marginsieve.studies.files import csv_of, write_csv

PIECES = ("=", "+", "-", "@", "\uff1d", "\u2212", "'", "''", '"', " ", "\xa0", ";", ",", "\n", "\t", "x", "1", "SUM(")


def texts() -> st.SearchStrategy[str]:
    """Texts of what formulas are made of."""
    return st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def drawn(rng: np.random.Generator) -> str:
    """A text with a letter in it, so that it is neither a number nor empty."""
    count = int(rng.integers(1, 8))
    return "".join(rng.choice(PIECES, size=count)) + "z" + "".join(rng.choice(PIECES, size=int(rng.integers(3))))


def round_trips(folder: Path, count: int, seed: int) -> list[tuple[str, str]]:
    """(kind, what is wrong) for so many tables of hostile names and cells."""
    rng, out = np.random.default_rng(seed), []
    for _ in range(count):
        names = list(dict.fromkeys(drawn(rng) for _ in range(3)))
        frame = pd.DataFrame({name: [drawn(rng) for _ in range(12)] for name in names})
        frame["value"] = rng.normal(size=12)
        out.append(_judge(frame, folder / "t.csv"))
    return out


def _judge(frame: pd.DataFrame, path: Path) -> tuple[str, str]:
    write_csv(frame, path)
    for row in csv.reader(io.StringIO(csv_of(frame), newline="")):
        if run := [cell for cell in row if is_formula(cell)]:
            return "nonsense", f"could be run: {run[0]!r}"
    try:
        again = read_table(path, separator=",", whole=True)
    except Exception as error:
        return "raw", f"{type(error).__name__}: {error}"
    if list(again.columns) != list(frame.columns):
        return "nonsense", f"names {list(again.columns)} were {list(frame.columns)}"
    for name in frame:
        if frame[name].dtype.kind != "f" and again[name].tolist() != frame[name].tolist():
            pairs = zip(again[name], frame[name], strict=True)
            return "nonsense", f"cells {next(pair for pair in pairs if pair[0] != pair[1])}"
    return "good", ""


def wrong(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [one for one in found if one[0] != "good"]


def main() -> int:
    """So many tables (the first argument, or 400)."""
    with tempfile.TemporaryDirectory() as name:
        found = round_trips(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 400, seed=0)
    for one in wrong(found):
        sys.stdout.write(f"{one}\n")
    sys.stdout.write(f"tables of cells: {dict(Counter(kind for kind, _ in found))}\n")
    return int(bool(wrong(found)))


if __name__ == "__main__":
    sys.exit(main())
