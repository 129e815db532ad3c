"""What a report says of its run: version, commit and hours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ..study.store import FILE, Store
from ..study.units import versions


def commit() -> str:
    """The version, and the commit where the package lies in a checkout of its repository."""
    known = f"version {versions()['marginsieve']}"
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return known
    return f"{known}, commit {done.stdout.strip()}" if done.returncode == 0 else known


def stored_units(folder: Path) -> list[dict[str, Any]]:
    """The units in a folder's store, none where it has none."""
    if not (folder / FILE).is_file():
        return []
    with closing(Store(folder, write=False)) as store:
        return list(store.units())


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
        total += sum(row["seconds"] or 0.0 for row in stored_units(folder))
        total += sum(entry["seconds"] for _, entry in stored_calls(folder))
    return total / 3600.0
