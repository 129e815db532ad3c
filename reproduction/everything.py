"""All papers by one command: a folder for each, and one page with every claim and its verdict."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd

from marginsieve.engine import claim, publish
from marginsieve.errors import InputError

from .catalogue import PAPERS
from .claims import VERDICTS
from .markdown import table_lines
from .paper import KEPT
from .record import commit, hours_by_commit
from .reproduce import CLAIMS, REPORT, claim_table, option_of, reproduce
from .work import RATES, rates_of
from .workplace import Progress

ALL = "all"
PAGE, TABLE = "verdicts.md", "verdicts.csv"


def reproduce_all(
    out: str | Path, *, scope: str = KEPT, resume: bool = False, progress: Progress | None = None, **options: Any
) -> Path:
    """Run every paper into a folder of its own, resuming what is there, and write the page of verdicts.

    `options`: `n_jobs`, `cluster` and `fresh` of `reproduce`.
    """
    out, since, begun_at = Path(out), time.perf_counter(), commit()
    claim(out, "reproductions", [PAGE, TABLE, RATES])
    failed: dict[str, str] = {}
    for name in PAPERS:
        watch = None if progress is None else _prefix_progress(progress, name)
        try:
            again = resume and (out / name).exists()
            reproduce(name, out / name, scope=scope, resume=again, progress=watch, **options)
        except InputError as error:  # the data of one paper may be missing
            failed[name] = str(error)
    if len(failed) == len(PAPERS):
        raise InputError(next(iter(failed.values())))
    claims = claims_of(out)
    command = f"`python -m reproduction all{option_of(scope)}` ({begun_at})"
    rates, spent = rates_of(out), [hours_by_commit(out / name) for name in PAPERS]
    core_hours = sum(sum(hours.values()) for hours in spent)
    page = "\n".join(_page(claims, failed, command, time.perf_counter() - since, core_hours)) + "\n"
    tables = {TABLE: claims, RATES: rates}
    content = {name: table.to_csv(index=False).encode() for name, table in tables.items()}
    publish(out, "reproductions", {PAGE: page.encode(), **content})
    return out / PAGE


def _prefix_progress(progress: Progress, name: str) -> Progress:
    return lambda what, *state: progress(f"{name}: {what}", *state)


def claims_of(out: Path) -> pd.DataFrame:
    """The claims of all papers that were run, with their verdicts."""
    pieces = [
        pd.read_csv(out / name / CLAIMS, keep_default_na=False) for name in PAPERS if (out / name / CLAIMS).is_file()
    ]
    return pd.concat(pieces, ignore_index=True)


def _page(claims: pd.DataFrame, failed: dict[str, str], command: str, seconds: float, core_hours: float) -> list[str]:
    """Claims counted by verdict and paper, then a line for each."""
    counts = claims.groupby(["paper", "verdict"], sort=False).size().unstack("verdict", fill_value=0)
    counts = counts.reindex(columns=list(VERDICTS), index=list(dict.fromkeys(claims["paper"])), fill_value=0)
    counts.loc["all"] = counts.sum()
    origin = f"Made by {command}; this run took {seconds / 3600:.2f} hours on the clock, and the units in the stores "
    origin += f"{core_hours:.1f} hours of one core."
    lines = ["# The five papers: claims and verdicts", "", origin, ""]
    rows = (
        (f"[{paper}]({paper}/{REPORT})" if paper in PAPERS else paper, *map(int, row))
        for paper, *row in counts.itertuples()
    )
    lines += table_lines(["paper", *counts.columns], rows)
    for paper, part in claims.groupby("paper", sort=False):
        lines += ["", f"## {paper!s}: {PAPERS[str(paper)].title}", ""]
        lines += claim_table([{str(key): value for key, value in row.items()} for row in part.to_dict("records")])
    lines += ["", *(f"{name} was not run: {why}" for name, why in failed.items())] if failed else []
    return lines
