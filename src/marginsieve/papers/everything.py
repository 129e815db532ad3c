"""All papers by one command: a folder for each, and one page with every claim and its verdict."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..study.folders import claim, publish
from ..study.results import SuiteResult
from ..study.store import FILE
from ..study.units import versions
from .catalogue import PAPERS
from .reproduce import CLAIMS, REPORT, reproduce

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
PAGE, TABLE = "verdicts.md", "verdicts.csv"
VERDICTS = ("reproduced", "better", "level", "worse", "not comparable")


def reproduce_all(
    out: str | Path,
    *,
    quick: bool = False,
    n_jobs: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    fresh: bool = False,
    progress: Callable[[str, int, int, int], None] | None = None,
) -> Path:
    """Run every paper into a folder of its own, resuming what is there, and write the page of verdicts."""
    out, since, commit = Path(out), time.perf_counter(), _commit()
    claim(out, "reproductions", [PAGE, TABLE])
    failed: dict[str, str] = {}
    for name in PAPERS:
        watch = None if progress is None else _named(progress, name)
        try:
            reproduce(
                name,
                out / name,
                quick=quick,
                n_jobs=n_jobs,
                cluster=cluster,
                resume=resume and (out / name).exists(),
                fresh=fresh,
                progress=watch,
            )
        except InputError as error:  # the data of one paper may be missing
            failed[name] = str(error)
    if len(failed) == len(PAPERS):
        raise InputError(next(iter(failed.values())))
    claims = claims_of(out)
    command = f"`marginsieve reproduce all{' --quick' if quick else ''}` ({commit})"
    page = "\n".join(_page(out, claims, failed, command, time.perf_counter() - since)) + "\n"
    publish(out, "reproductions", {PAGE: page.encode(), TABLE: claims.to_csv(index=False).encode()})
    return out / PAGE


def _named(progress: Callable[[str, int, int, int], None], name: str) -> Callable[[str, int, int, int], None]:
    return lambda what, *state: progress(f"{name}: {what}", *state)


def claims_of(out: Path) -> pd.DataFrame:
    """The claims of all papers that were run: paper, claim, where, verdict, and the verdict's first word as `kind`."""
    import pandas as pd

    pieces = [pd.read_csv(out / name / CLAIMS) for name in PAPERS if (out / name / CLAIMS).is_file()]
    frame = pd.concat(pieces, ignore_index=True)[["paper", "claim", "where", "verdict"]]
    return frame.assign(kind=[_kind(verdict) for verdict in frame["verdict"]])


def _kind(verdict: str) -> str:
    return next((kind for kind in VERDICTS if verdict.startswith(kind)), "not comparable")


def _page(out: Path, claims: pd.DataFrame, failed: dict[str, str], command: str, seconds: float) -> list[str]:
    """Claims counted by verdict and paper, then a line for each."""
    counts = claims.groupby(["paper", "kind"], sort=False).size().unstack("kind", fill_value=0)
    kinds, papers = [kind for kind in VERDICTS if kind in counts], list(dict.fromkeys(claims["paper"]))
    counts = counts.reindex(columns=kinds, index=papers)
    counts.loc["all"] = counts.sum()
    lines = ["# The five papers: claims and verdicts", ""]
    lines += [
        f"Made by {command}; this run took {seconds / 3600:.2f} hours on the clock, and the units in the stores "
        f"{_hours(out):.1f} hours of one core.",
        "",
    ]
    lines += ["| paper | " + " | ".join(counts.columns) + " |", "|---" * (counts.shape[1] + 1) + "|"]
    for paper, row in zip([*papers, "all"], counts.to_numpy(), strict=True):
        shown = f"[{paper}]({paper}/{REPORT})" if paper in PAPERS else paper
        lines.append(f"| {shown} | " + " | ".join(str(int(value)) for value in row) + " |")
    for paper, part in claims.groupby("paper", sort=False):
        lines += ["", f"## {paper!s}: {PAPERS[str(paper)].title}", "", "| claim | where | verdict |", "|---|---|---|"]
        lines += [f"| {row['claim']} | {row['where']} | {row['verdict']} |" for row in part.to_dict("records")]
    lines += ["", *(f"{name} was not run: {why}" for name, why in failed.items())] if failed else []
    return lines


def _hours(out: Path) -> float:
    """Hours of one core that the units in all stores took."""
    total = 0.0
    for file in sorted(out.glob(f"*/*/{FILE}")):
        frame: Any = SuiteResult(file.parent).to_pandas()
        total += float(frame.drop_duplicates(["data", "method", "split"])["seconds"].fillna(0.0).sum())
    return total / 3600.0


def _commit() -> str:
    """The version, and the commit where the package lies in a checkout of its repository."""
    known = f"version {versions()['marginsieve']}"
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return known
    return f"{known}, commit {done.stdout.strip()}" if done.returncode == 0 else known
