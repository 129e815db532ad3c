"""Results that are no units of a suite, kept as JSON beside the stores so that a run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..data.atomic import write_atomic
from ..data.paths import check_place
from ..study.suite import key_of
from ..study.units import versions


def kept_json(path: Path, settings: Any, fresh: bool, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the file holds if it was made with these settings by this version, else what `compute` gives, kept there."""
    key = key_of(settings, versions()["marginsieve"])
    check_place(path)
    if not fresh and path.is_file():
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry.get("key") == key:
            return dict(entry["result"])
    result = compute()
    write_atomic(path, json.dumps({"key": key, "result": result}).encode())
    return result
