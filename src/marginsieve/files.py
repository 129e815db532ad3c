"""Writing results, each file whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._whole import write_whole
from .errors import InputError
from .persistence import save

if TYPE_CHECKING:
    import pandas as pd

    from .study import Selection


FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def check_folder(out: Path) -> None:
    """Make the folder and write to it once, before the work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(f"the folder {str(out)!r} cannot be written to: {error.strerror}") from error


def write_selection(selection: Selection, out: Path) -> list[Path]:
    """result.json, features.csv, predictions.csv and model.skops in the folder."""
    written = [out / "result.json", out / "features.csv", out / "predictions.csv"]
    _write(written[0], json.dumps(selection.to_dict(), indent=2, allow_nan=False, default=_plain) + "\n")
    write_csv(selection.features(), written[1])
    write_csv(selection.predictions(), written[2])
    return [*written, save(selection.selector, out / "model.skops")]


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """A table as CSV in which no cell is a formula: text that a spreadsheet would run gets an apostrophe in front."""
    safe = frame.rename(columns=_harmless)
    for name, column in safe.items():
        if column.dtype.kind not in "biufc":
            safe[name] = column.map(_harmless)
    _write(path, safe.to_csv(index=False))


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def _plain(value: Any) -> Any:
    """A numpy scalar as a Python one."""
    return value.item()


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8"))
