"""`python -m reproduction NAME`: make a paper's tables, ours beside the printed figures, with a verdict for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from joblib import effective_n_jobs
from typer import Argument, Option

from marginsieve.cli import check_jobs, exit_code_of, say, show_progress
from marginsieve.contracts import Progress
from marginsieve.errors import InputError

from .catalogue import PAPERS, paper_of
from .everything import ALL, reproduce_all
from .named_problems import present
from .paper import FULL, KEPT, QUICK, Paper
from .reproduce import reproduce
from .work import Effort, estimate_effort

SELDOM = 30.0  # seconds between two lines of what may take days

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich", add_completion=False)


@app.command()
def main(
    paper: Annotated[str, Argument(help="kp-imbalanced, kp-svm, mixed, symon, ramp-loss, or all of them: all.")],
    out: Annotated[Path | None, Option(help="The folder for studies, tables and plots.")] = None,
    data: Annotated[Path | None, Option(help="The folder of the papers' data sets.")] = None,
    quick: Annotated[bool, Option("--quick", help="Small data sets and few splits: minutes, not hours.")] = False,
    full: Annotated[bool, Option("--full", help="The papers' entire grids and limits: days.")] = False,
    resume: Annotated[bool, Option("--resume", help="Refuse to start anew.")] = False,
    fresh: Annotated[bool, Option("--fresh", help="Delete earlier results and start over.")] = False,
    jobs: Annotated[int, Option(help="Worker processes; -1, the default, is one per core.")] = -1,
    cluster: Annotated[str | None, Option(help="A Dask scheduler, tcp://host:port, instead of --jobs.")] = None,
) -> None:
    """Make a paper's tables: ours beside the printed figures, with a verdict for each."""
    check_jobs(jobs)
    if quick and full:
        raise InputError("--quick and --full were both given: at most one of them is possible")
    scope = QUICK if quick else FULL if full else KEPT
    papers = list(PAPERS.values()) if paper == ALL else [paper_of(paper)]
    folder = out or Path(f"reproduction-{paper}")
    if data is not None:
        os.environ["MARGINSIEVE_DATA"] = str(data)
    announce_work(papers, scope, jobs)
    run = reproduce_all if paper == ALL else partial(reproduce, paper)
    with show_progress(SELDOM) as progress:
        watch = partial(report_units, progress)
        report = run(folder, scope=scope, n_jobs=jobs, cluster=cluster, resume=resume, fresh=fresh, progress=watch)
    for entry in papers:
        name_absent(entry.with_scope(scope))
    say(f"report: {report}")


def announce_work(papers: Sequence[Paper], scope: str, n_jobs: int) -> None:
    """What a reproduction will take if nothing of it is stored."""
    total = sum((estimate_effort(paper.name, scope) for paper in papers), Effort(0, 0.0))
    if total.count:
        text = f"this runs {total.sentence(effective_n_jobs(n_jobs))}; what the folder holds is not run again"
        say(text, stderr=True)


def name_absent(paper: Paper) -> None:
    """Data sets of a paper that are not here."""
    if absent := sorted(set(paper.data) - set(present(paper.data))):
        count = len(paper.data)
        text = f"note: {len(absent)} of {count} data sets are not here and were not run ({', '.join(absent)}): "
        text += "docs/data.md says where they come from, --data or MARGINSIEVE_DATA names their folder"
        say(text, stderr=True)


def report_units(progress: Progress, label: str, done: int, total: int, failed: int) -> None:
    """Units of a suite as progress."""
    progress(f"{label}, {done} of {total}" + (f", {failed} failed" if failed else ""), done, total)


def run() -> int:
    """The command line of this process; its exit code."""
    code: int = exit_code_of(partial(app, standalone_mode=False, prog_name="python -m reproduction"))
    return code


if __name__ == "__main__":
    sys.exit(run())
