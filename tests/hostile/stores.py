"""Stores with flipped bytes: each unit is as it was, is named and run again, or the file is refused in a sentence."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from marginsieve.bench import Suite, run_suite
from marginsieve.engine.store import FILE, Store
from marginsieve.errors import InputError

SPEC: dict[str, Any] = {
    "protocol": {"name": "nested", "folds": 3, "repeats": 2},
    "data": [{"name": "A", "cohort": {"n_samples": 40, "n_features": 10, "n_relevant": 2}}],
    "method": [{"name": "fisher", "n_features_to_select": 2}],
}


def read(folder: Path, write: bool) -> dict[str, Any]:
    """All that a store says."""
    with closing(Store(folder, write)) as store:
        damaged = store.damages()
        units = {row["key"]: row for row in store.units()}
        entries = {key: store.meta(key) for key in ("suite", "current") if f"entry {key}" not in damaged}
        return {"damaged": damaged, "units": units, "data": store.data(), "entries": entries}


def judge(folder: Path, good: dict[str, Any], write: bool) -> tuple[str, str]:
    """What is made of the store as it lies there; only "same", "named" and "clear" are good."""
    try:
        found = read(folder, write)
    except InputError as error:
        return "clear", str(error)
    except Exception as error:
        return "raw", f"{type(error).__name__}: {error}"
    for part in ("units", "data", "entries"):
        if any(value != good[part].get(key) for key, value in found[part].items()):
            return "nonsense", f"{part} differ and nothing was said"
    lost = any(len(found[part]) < len(good[part]) for part in ("units", "data", "entries"))
    if lost and not found["damaged"]:
        return "nonsense", "something is lost and nothing was said"
    return ("named" if found["damaged"] else "same"), str(found["damaged"])


def flips(folder: Path, count: int, seed: int) -> list[tuple[int, str, str]]:
    """(place, kind, what was said) for so many stores with one changed byte each, read and opened for writing."""
    run_suite(Suite.read(SPEC), folder)
    good, content, out = read(folder, write=False), (folder / FILE).read_bytes(), []
    used, rng = np.flatnonzero(np.frombuffer(content, np.uint8)), np.random.default_rng(seed)
    for k in range(count):
        place = int(rng.choice(used)) if k % 5 else int(rng.integers(len(content)))
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8)) if k % 2 else int(rng.integers(1, 256))
        for path in folder.glob("*.sqlite*"):
            path.unlink()
        (folder / FILE).write_bytes(damaged)
        for write in (False, True):
            kind, said = judge(folder, good, write)
            if not write and (folder / FILE).read_bytes() != damaged:
                kind, said = "nonsense", "reading changed the file"
            out.append((place, kind, said))
        if out[-1][1] == "named":
            out.append((place, *_again(folder, good)))
    return out


def _again(folder: Path, good: dict[str, Any]) -> tuple[str, str]:
    """The same suite on a damaged store: all units are there afterwards, and nothing is damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_suite(Suite.read(SPEC), folder)
    found = read(folder, write=False)
    same = found["entries"] == good["entries"] and found["data"] == good["data"]
    same = same and {k: row["metrics"] for k, row in found["units"].items()} == {
        k: row["metrics"] for k, row in good["units"].items()
    }
    return ("same", "") if same and not found["damaged"] else ("nonsense", f"not mended: {found['damaged']}")


def wrong(found: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    return [one for one in found if one[1] not in ("same", "named", "clear")]


def main() -> int:
    """So many stores (the first argument, or 1,000)."""
    with tempfile.TemporaryDirectory() as name:
        found = flips(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 1000, seed=0)
    for one in wrong(found):
        sys.stdout.write(f"{one}\n")
    sys.stdout.write(f"stores: {dict(Counter(kind for _, kind, _ in found))}\n")
    return int(bool(wrong(found)))


if __name__ == "__main__":
    sys.exit(main())
