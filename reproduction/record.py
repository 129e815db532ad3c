"""What a report says of its run: version, commits and hours; what is stored is written whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marginsieve import __version__
from marginsieve.bench import SuiteResult
from marginsieve.errors import InputError

RUNS = "runs.json"  # when runs began, and at which commits


def commit() -> str:
    """The version, and the commit where the package lies in a checkout of its repository."""
    known = f"version {__version__}"
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return known
    return f"{known}, commit {done.stdout.strip()}" if done.returncode == 0 else known


def timestamp() -> str:
    """Now, in UTC, to the second: such texts are in the order of time."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_json(file: Path, content: Any) -> None:
    """Write beside the file, then put it in its place; a link is replaced and not followed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.part")
    draft.unlink(missing_ok=True)
    draft.write_text(json.dumps(content), encoding="utf-8")
    os.replace(draft, file)


def begin_run(out: Path, now: str) -> None:
    """Note that a run begins at this commit."""
    write_json(out / RUNS, [*_runs(out), (timestamp(), now)])


def _runs(out: Path) -> list[tuple[str, str]]:
    """When runs began, and at which commits."""
    file = out / RUNS
    return [(str(begun), str(at)) for begun, at in json.loads(file.read_text())] if file.is_file() else []


def result_in(folder: Path) -> SuiteResult | None:
    """The results of a suite, None where the folder has none."""
    try:
        return SuiteResult(folder)
    except InputError:
        return None


def timings(folder: Path) -> list[tuple[str, str, str, float, str]]:
    """Data set, method, split, seconds and end of the units in a folder's store, none where it has none."""
    result = result_in(folder)
    return [] if result is None else list(result.timings().itertuples(index=False, name=None))


def stored_calls(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and entries of the calls that are kept in a folder."""
    for file in sorted(folder.glob("*.json")):
        entry = json.loads(file.read_text(encoding="utf-8"))
        if "amount" in entry:
            yield file.stem, entry


def hours_by_commit(out: Path) -> dict[str, float]:
    """Hours of one core of everything that is stored of a paper, by the commit of the run that it ended in."""
    ends: list[tuple[str, float]] = []
    for folder in (path for path in out.glob("*") if path.is_dir()):
        ends += [(end, seconds) for *_, seconds, end in timings(folder)]
        ends += [(str(entry.get("finished", "")), entry["seconds"]) for _, entry in stored_calls(folder)]
    runs, hours = _runs(out), dict[str, float]()
    for end, seconds in ends:
        at = [at for begun, at in runs if begun <= end] or [at for _, at in runs[:1]] or ["an unknown commit"]
        hours[at[-1]] = hours.get(at[-1], 0.0) + seconds / 3600.0
    return hours


def describe_hours(hours: dict[str, float], now: str) -> str:
    """Who made what is stored, in words."""
    text = "; ".join(f"{name}, {value:.1f} hours of one core" for name, value in hours.items())
    return text if now in hours else f"{text}; the page was written at {now}" if text else now
