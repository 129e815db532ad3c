"""Reading tables from files and writing results, each file whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, listing

if TYPE_CHECKING:
    import pandas as pd

    from .study import Selection

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_table(path: Path) -> pd.DataFrame:
    """A CSV, TSV or Parquet file as a pandas table."""
    import pandas as pd

    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a CSV, TSV or Parquet file")
    kind = path.suffix.lower()
    try:
        if kind in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        elif kind in SEPARATORS:
            _check_header(path, SEPARATORS[kind])
            frame = pd.read_csv(path, sep=SEPARATORS[kind], low_memory=False)
            frame = frame.drop(columns=[name for name in frame.columns if str(name).startswith("Unnamed: ")])
        else:
            raise InputError(f"{path.name!r} ends in {kind!r}; it must be .csv, .tsv, .txt (tabs) or .parquet")
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path.name!r} could not be read as {kind[1:].upper()}: {error}") from error
    if frame.empty:
        raise InputError(
            f"{path.name!r} has {frame.shape[0]} rows and {frame.shape[1]} columns: there is nothing in it"
        )
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _check_header(path: Path, separator: str) -> None:
    """What pandas would pass over in silence: repeated names, rows with another number of fields, another separator."""
    with path.open(encoding="utf-8-sig", newline="") as handle:
        rows = csv.reader(handle, delimiter=separator)
        names, first = next(rows, []), next(rows, None)
    if len(names) == 1 and any(mark in names[0] for mark in ";\t,|"):
        raise InputError(f"{path.name!r} has one column, {names[0][:60]!r}: its separator is not {separator!r}")
    if first and len(first) != len(names):
        raise InputError(
            f"the header of {path.name!r} has {len(names)} fields and its first row {len(first)}: "
            "name every column, and leave no separator at the end of the rows"
        )
    counts = Counter(name for name in names if name)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"{path.name!r} has columns of the same name: {listing(twice)}; rename them")


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
