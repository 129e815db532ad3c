"""Writing results, each file whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.cells import csv_of
from ..data.file_access import check_file, create_file, file_error, format_path, temporary_name, write_atomic
from ..engine.store import FILE, add_published, claim, publish, read_mark
from ..errors import InputError, shown_value
from ..estimators.fitted_selector import FittedSelector
from ..estimators.persistence import NAME, load, to_bytes
from ..report.exports import figure_files, table_files
from ..report.render import SCHEMA
from .analyses.missing_blocks import absent_block

if TYPE_CHECKING:
    import pandas as pd


LONG_NAME = "model-long.marginsieve"  # the model of the longer list
WRITTEN = (
    *("result.json", "report.html", "features.csv", "predictions.csv", "suspects.csv", NAME, LONG_NAME),
    *("unexplained.csv", "methods.txt", "ledger.csv", "aggregate.html"),
)
PAGES = ("report.html", "aggregate.html")


HEADER = 4096  # bytes within which our own pages and tables are known
GENERATOR = b'<meta name="generator" content="marginsieve '


def check_folder(out: Path, table: Path | None = None, models: Sequence[str] = ()) -> None:
    """Make the folder ours before the work is done; refuse one with files that we did not write.

    `table`: the AnnData file that `write_back` is to copy; `models`: further model files.
    """
    names = dict.fromkeys((*WRITTEN, *models, *([] if table is None else [copy_name(table, out)])))
    claim(out, "study", tuple(names), (FILE,))


def model_files(models: Mapping[str, FittedSelector | None]) -> dict[str, bytes | InputError]:
    """The contents of model files by name; an error in place of one that cannot be written."""
    contents: dict[str, bytes | InputError] = {}
    for name, model in models.items():
        try:
            if model is not None:
                contents[name] = to_bytes(model)
        except InputError as error:
            contents[name] = error
    return contents


def digests_of(contents: Mapping[str, bytes | InputError]) -> dict[str, str]:
    """The SHA-256 of each file."""
    known = {name: content for name, content in contents.items() if isinstance(content, bytes)}
    return {name: hashlib.sha256(content).hexdigest() for name, content in known.items()}


def write_study(
    out: Path,
    result: dict[str, Any],
    page: str,
    tables: Mapping[str, pd.DataFrame | None],
    models: Mapping[str, bytes | InputError],
) -> list[Path]:
    """report.html, result.json, the tables, the models and the paragraph for a paper, all at once."""
    files = {name: _bytes(csv_of(table)) for name, table in tables.items() if table is not None}
    for name, content in models.items():
        if isinstance(content, InputError):
            warnings.warn(f"the model is not written: {content}", UserWarning, stacklevel=3)
        else:
            files[name] = content
    files["methods.txt"] = _bytes(f"{result['methods_text']}\n\n{result['bibtex']}")
    files["report.html"] = _bytes(page)
    files["result.json"] = (json.dumps(result, indent=2, allow_nan=False) + "\n").encode()
    try:
        earlier = [path.name for path in out.glob("model-without-*.marginsieve")]
        publish(out, "study", files, [name for name in (*WRITTEN, *earlier) if name not in files])
    except OSError as error:
        raise file_error(error, f"the folder {format_path(out)} cannot be written to") from error
    names = ("result.json", *tables, *models, "methods.txt", "report.html")
    return [out / name for name in names if name in files]


def read_result(folder: Path) -> dict[str, Any]:
    """The result.json of a folder."""
    path = folder / "result.json" if os.path.isdir(folder) else folder
    if not os.path.lexists(path):
        raise InputError(
            f"there is no result.json in {format_path(folder)}: name a folder that `marginsieve select` wrote"
        )
    check_file(path, "name a folder that `marginsieve select` wrote")
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{format_path(path)} is not valid JSON: {error}") from error
    if not isinstance(result, dict):
        raise InputError(f"{str(path)!r} is not the result of a study")
    return result


def current_result(folder: Path) -> dict[str, Any]:
    """The result.json of a folder; one of another version is refused, with what to do."""
    result = read_result(folder)
    if result.get("schema") != SCHEMA:
        writer = result.get("version")
        older = f", or read it with marginsieve {writer[:20]}, which wrote it" if isinstance(writer, str) else ""
        raise InputError(
            f"the result in {format_path(folder)} has schema {shown_value(result.get('schema'))} and this marginsieve "
            f"reads {SCHEMA}: run `marginsieve select` again{older}"
        )
    return result


def model_and_promise(
    path: Path, longer: bool, columns: Iterable[str] | None = None
) -> tuple[dict[str, Any] | None, FittedSelector]:
    """The model of a result folder and what the study says of it; of a model file alone, and no result.

    For a table of these columns that lacks a block: the model without that block.
    """
    if not path.is_dir():
        return None, load(path)
    result = current_result(path)
    if columns is not None and not longer:
        return result, _model_for(path, result, columns)
    if longer and not (path / LONG_NAME).exists():
        raise InputError(f"{format_path(path)} has no {LONG_NAME}: this study has one list; leave out --long")
    return result, load(path / (LONG_NAME if longer else NAME))


def _model_for(folder: Path, result: dict[str, Any], columns: Iterable[str]) -> FittedSelector:
    """The model of a folder that suits a table of these columns."""
    model = load(folder / NAME)
    row = absent_block(columns, [str(name) for name in model.get_feature_names_out()], result)
    return model if row is None else load(folder / row["model"])


def target_beside(model: Path) -> str | None:
    """The column that held the outcome, by the result of the study in the folder of a model; None without one."""
    folder = model if model.is_dir() else model.parent
    try:
        return str(read_result(folder)["table"]["target"])
    except (InputError, OSError, LookupError, TypeError):
        return None


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """A table as CSV in which no cell is a formula."""
    write_text(path, csv_of(frame))


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    try:
        if os.path.lexists(path) and not path.is_symlink():
            check_file(path)  # a folder, a pipe or a device is not replaced
        write_atomic(path, _bytes(text))
    except OSError as error:
        raise file_error(error, f"{format_path(path)} cannot be written") from error


def write_exports(result: dict[str, Any], figures: Path | None, tables: Path | None) -> list[Path]:
    """Figures and tables to paste, each into a folder of its own; the folders."""
    folders = []
    for folder, kind, make in ((figures, "figures", figure_files), (tables, "tables", table_files)):
        if folder is not None:
            files = make(result)
            claim(folder, kind, tuple(files))
            try:
                publish(folder, kind, files)
            except OSError as error:
                raise file_error(error, f"the folder {format_path(folder)} cannot be written to") from error
            folders.append(folder)
    return folders


def check_replaced(path: Path, force: bool, column: str | None = None) -> None:
    """Refuse, before the work is done, a file that is there and was not written by the same command.

    Our own is known by its header: the columns `row` and `column` of a table, the generator of a page.
    """
    if force or not os.path.lexists(path):
        return
    known = False
    if not path.is_symlink():
        check_file(path)
        with path.open("rb") as handle:
            start = handle.read(HEADER)
        first = start.split(b"\n", 1)[0]
        known = first.startswith(b'"row",') and f',"{column}"'.encode() in first if column else GENERATOR in start
    if not known:
        raise InputError(
            f"{format_path(path)} is there already and was not written by this command: name another file, or use "
            "--force to replace it"
        )


def write_page(path: Path, page: str) -> None:
    """A page; where it is one of a result folder of ours, the folder's mark knows of it."""
    mark = read_mark(path.parent) if path.name in PAGES else None
    if mark is None or mark["marginsieve"] != "study":
        return write_text(path, page)
    try:
        publish(path.parent, "study", {path.name: page.encode()})
    except OSError as error:
        raise file_error(error, f"{format_path(path)} cannot be written") from error


def _bytes(text: str) -> bytes:
    """UTF-8; what has no place in it (parts of file names in another encoding) is written as its number."""
    return text.encode("utf-8", errors="backslashreplace")


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
    temporary = temporary_name(folder)
    try:
        os.close(create_file(temporary))  # before others could read what is in it
        data.write_h5ad(temporary)
        add_published(folder, "study", copy_name(path, folder), temporary)
    except OSError as error:
        raise file_error(error, f"the copy of {format_path(path)} cannot be written") from error
    finally:
        temporary.unlink(missing_ok=True)
    return folder / copy_name(path, folder)


def copy_name(path: Path, folder: Path) -> str:
    """What the copy of an AnnData file is called: like the file, unless that is the file itself."""
    return f"{path.stem}-selected.h5ad" if (folder / path.name).resolve() == path.resolve() else path.name
