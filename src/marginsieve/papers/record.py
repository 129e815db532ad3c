"""What a report says of its run: version, commits and hours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ..data.atomic import write_atomic
from ..data.paths import check_place
from ..study.store import FILE, Store
from ..study.units import versions

RUNS = "runs.json"  # hours by the commit that they were spent at


def commit() -> str:
    """The version, and the commit where the package lies in a checkout of its repository."""
    known = f"version {versions()['marginsieve']}"
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return known
    return f"{known}, commit {done.stdout.strip()}" if done.returncode == 0 else known


def unit_seconds(folder: Path) -> list[tuple[str, str, str, float]]:
    """Data set, method, split and seconds of the units in a folder's store, none where it has none."""
    if not (folder / FILE).is_file():
        return []
    with closing(Store(folder, write=False)) as store:
        return store.seconds()


def stored_calls(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and entries of the calls that are kept in a folder."""
    for file in sorted(folder.glob("*.json")):
        entry = json.loads(file.read_text(encoding="utf-8"))
        if "amount" in entry:
            yield file.stem, entry


def hours(out: Path) -> float:
    """Hours of one core that everything took that is stored of a paper."""
    total = 0.0
    for folder in (path for path in out.glob("*") if path.is_dir()):
        total += sum(seconds for *_, seconds in unit_seconds(folder))
        total += sum(entry["seconds"] for _, entry in stored_calls(folder))
    return total / 3600.0


def hours_by_commit(out: Path, now: str, fresh: bool = False) -> dict[str, float]:
    """Hours by the commit at which they were spent; what no run has accounted for yet is put down to `now`."""
    file = out / RUNS
    check_place(file)
    known: dict[str, float] = {}
    if file.is_file() and not fresh:
        known = {str(name): float(value) for name, value in json.loads(file.read_text(encoding="utf-8")).items()}
    added = hours(out) - sum(known.values())
    if added > 1e-9:
        known[now] = known.get(now, 0.0) + added
        write_atomic(file, json.dumps(known).encode())
    return known


def described(known: dict[str, float], now: str) -> str:
    """Who made what is stored, in words."""
    text = "; ".join(f"{name}, {value:.1f} hours of one core" for name, value in known.items())
    return text if now in known else f"{text}; the page was written at {now}" if text else now
