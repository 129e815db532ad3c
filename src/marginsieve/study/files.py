"""Writing results, each file whole or not at all."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.atomic import write_atomic
from ..errors import InputError, listing
from ..estimators import SVMSelector
from ..estimators.persistence import save
from .store import is_store

if TYPE_CHECKING:
    import pandas as pd


WRITTEN = (
    *("result.json", "report.html", "features.csv", "predictions.csv", "suspects.csv", "model.marginsieve"),
    "methods.txt",
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def check_folder(out: Path) -> None:
    """Make the folder and write to it once, before the work is done; refuse one with files that we did not write."""
    if not _is_ours(out) and (foreign := [name for name in WRITTEN if (out / name).exists()]):
        raise InputError(f"the folder {str(out)!r} holds {listing(foreign)} of something else: name another one")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(f"the folder {str(out)!r} cannot be written to: {error.strerror}") from error


def _is_ours(out: Path) -> bool:
    """Whether a folder holds a result or the finished folds of a study."""
    try:
        return is_store(out) or "schema" in read_result(out)
    except InputError:
        return False


def write_study(
    out: Path, result: dict[str, Any], page: str, tables: Mapping[str, pd.DataFrame | None], model: SVMSelector
) -> list[Path]:
    """report.html, result.json, the tables, the model and the paragraph for a paper in the folder."""
    write_text(out / "result.json", json.dumps(result, indent=2, allow_nan=False) + "\n")
    for name, table in tables.items():
        if table is None:
            (out / name).unlink(missing_ok=True)  # an earlier run's would not belong to this result
        else:
            write_csv(table, out / name)
    try:
        save(model, out / "model.marginsieve")
    except InputError as error:
        (out / "model.marginsieve").unlink(missing_ok=True)
        warnings.warn(f"the model is not written: {error}", UserWarning, stacklevel=3)
    write_text(out / "methods.txt", f"{result['methods_text']}\n\n{result['bibtex']}")
    write_text(out / "report.html", page)
    names = ("result.json", *tables, "model.marginsieve", "methods.txt", "report.html")
    return [out / name for name in names if (out / name).exists()]


def read_result(folder: Path) -> dict[str, Any]:
    """The result.json of a folder."""
    path = folder / "result.json" if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(f"there is no result.json in {str(folder)!r}: name a folder that `marginsieve select` wrote")
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not valid JSON: {error}") from error
    if not isinstance(result, dict):
        raise InputError(f"{str(path)!r} is not the result of a study")
    return result


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """A table as CSV in which no cell is a formula: text that a spreadsheet would run gets an apostrophe in front."""
    safe = frame.rename(columns=_harmless)
    for name, column in safe.items():
        if column.dtype.kind not in "biufc":
            safe[name] = column.map(_harmless)
    write_text(path, safe.to_csv(index=False))


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    try:
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder; name a file")
        write_atomic(path, text.encode("utf-8"))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from error


def write_back(path: Path, folder: Path, features: pd.DataFrame, result: Mapping[str, Any]) -> Path:
    """A copy of an AnnData file in the folder, with what was found: columns of `var` and an entry of `uns`."""
    import anndata  # type: ignore[import-not-found,import-untyped,unused-ignore]

    data = anndata.read_h5ad(path)
    ranked = features.set_index("name").reindex(data.var_names.astype(str))
    data.var["marginsieve_selected"] = ranked["selected"].fillna(False).astype(bool).to_numpy()
    for name in ("rank", "frequency"):
        data.var[f"marginsieve_{name}"] = ranked[name].to_numpy(dtype=float)
    data.uns["marginsieve"] = {
        "headline": result["answer"]["headline"],
        "method": result["method"],
        "version": result["version"],
        "command": result["how"]["command"] or "",
        **{f"{name}_{side}": value for name, score in result["scores"].items() for side, value in score.items()},
    }
    written = folder / path.name
    if written.resolve() == path.resolve():
        written = folder / f"{path.stem}-selected.h5ad"
    data.write_h5ad(written)
    return written
