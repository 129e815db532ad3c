"""What a report says of its run: version, commits and hours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from marginsieve.data.atomic import write_atomic
from marginsieve.data.paths import check_place
from marginsieve.engine.store import FILE, Store
from marginsieve.engine.units import timestamp, versions

RUNS = "runs.json"  # when runs began, and at which commits


def commit() -> str:
    """The version, and the commit where the package lies in a checkout of its repository."""
    known = f"version {versions()['marginsieve']}"
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return known
    return f"{known}, commit {done.stdout.strip()}" if done.returncode == 0 else known


def begin_run(out: Path, now: str) -> None:
    """Note that a run begins at this commit."""
    runs = _runs(out)
    runs.append((timestamp(), now))
    write_atomic(out / RUNS, json.dumps(runs).encode())


def _runs(out: Path) -> list[tuple[str, str]]:
    """When runs began, and at which commits."""
    file = out / RUNS
    check_place(file)
    return [(str(begun), str(at)) for begun, at in json.loads(file.read_text())] if file.is_file() else []


def timings(folder: Path) -> list[tuple[str, str, str, float, str]]:
    """Data set, method, split, seconds and end of the units in a folder's store, none where it has none."""
    if not (folder / FILE).is_file():
        return []
    with closing(Store(folder, write=False)) as store:
        return store.timings()


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


def described(hours: dict[str, float], now: str) -> str:
    """Who made what is stored, in words."""
    text = "; ".join(f"{name}, {value:.1f} hours of one core" for name, value in hours.items())
    return text if now in hours else f"{text}; the page was written at {now}" if text else now
