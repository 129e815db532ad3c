"""Writing results, each file whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError

if TYPE_CHECKING:
    from .study import Selection


def check_folder(out: Path) -> None:
    """Make the folder and write to it once, before the work is done."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(f"the folder {str(out)!r} cannot be written to: {error.strerror}") from error


def write_selection(selection: Selection, out: Path) -> list[Path]:
    """result.json, features.csv and predictions.csv in the folder."""
    written = [out / "result.json", out / "features.csv", out / "predictions.csv"]
    _write(written[0], json.dumps(selection.to_dict(), indent=2, allow_nan=False, default=_plain) + "\n")
    _write(written[1], selection.features().to_csv(index=False))
    _write(written[2], selection.predictions().to_csv(index=False))
    return written


def _plain(value: Any) -> Any:
    """A numpy scalar as a Python one."""
    return value.item()


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
