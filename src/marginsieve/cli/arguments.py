"""What words on the command line mean."""

from __future__ import annotations

import inspect
import operator
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand

from ..errors import InputError, listing, many, one_line
from ..studies.options import SWITCHES, StudyOptions, check_keys, flag_of, info_of, read_names, word_type_of
from .console import say

if TYPE_CHECKING:
    import pandas as pd

    from ..data.cohort import Truth
    from ..estimators.fitted_selector import FittedSelector
    from ..studies.study_data import StudyData

HELP = {entry.name: info_of(entry).help for entry in fields(StudyOptions)}
READING = {  # how a file is read, where it does not tell
    "separator": "Between the fields of a text file; found out by default.",
    "decimal": "A point or a comma in numbers of a text file; found out by default.",
    "encoding": "Of a text file; found out by default.",
    "ragged": "Rows of another length than the header: refuse, or fill short ones with empty cells and cut long ones.",
    "sheet": "Of a spreadsheet; by default the first that is not empty.",
    "layer": "Of an AnnData file, read in place of its matrix X.",
}
COPIES_WRITTEN = 5.5  # of a generated table while its file is made


# spellings of the version before, by command
OLD = {
    "select": {info_of(entry).old: flag_of(entry) for entry in fields(StudyOptions) if info_of(entry).old}
    | {f"--no-{name}": f"--without {name}" for name in SWITCHES}
    | {f"--{name}": "" for name in SWITCHES},
    "bench": {"--jobs": "--n-jobs"},
    "suspects": {"--jobs": "--n-jobs", "--seed": "--random-state"},
    "cohort": {"--seed": "--random-state"}
    | {f"--{name}": f"--n-{name}" for name in ("samples", "features", "relevant", "redundant", "categorical")}
    | {"--categorical-relevant": "--n-categorical-relevant"},
}


class RenamedOptions(TyperCommand):
    """A command that takes old spellings of its options for one version, and says how they are spelled now."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = OLD.get(self.name or "", {})
        renamed = []
        for k, word in enumerate(args):
            name, equals, value = word.partition("=")
            if word == "--":
                renamed += args[k:]
                break
            if name not in known:
                renamed.append(word)
                continue
            new = f"is {known[name]} now" if known[name] else "is what happens anyway"
            say(f"note: {name} {new}; the old spelling will be gone in the next version", stderr=True)
            words = known[name].split()
            renamed += [words[0] + equals + value, *words[1:]] if words else []
        return super().parse_args(ctx, renamed)


def with_study_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a parameter for each option of a study, and of reading, in place of its `**words`.

    An option of a study that is None is not given.
    """
    known = [entry for entry in fields(StudyOptions) if info_of(entry).command]
    parameters = [_reading_option(name) for name in READING if name not in {entry.name for entry in known}]
    for entry in known:
        info = info_of(entry)
        default = info.shown or (str(entry.default) if entry.default not in (None, ()) else "")
        declared = typer.Option(flag_of(entry), help=info.help, show_default=default or False)
        parameters.append(_keyword(entry.name, word_type_of(entry) | None, declared, None))
    return _with_parameters(command, parameters)


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with parameters that say how a file is read, in place of its `**reading`."""
    return _with_parameters(command, [_reading_option(name) for name in READING])


def _reading_option(name: str) -> inspect.Parameter:
    default = "refuse" if name == "ragged" else None
    kind: Any = str if default else str | None
    return _keyword(name, kind, typer.Option(help=READING[name]), default)


def _keyword(name: str, kind: Any, declared: Any, default: Any) -> inspect.Parameter:
    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    return parameter.replace(annotation=operator.getitem(Annotated, (kind, declared)))


def _with_parameters(command: Callable[..., None], added: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """The command with parameters in place of its `**` one."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters += added
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    cast(Any, command).__signature__ = signature.replace(parameters=parameters)
    return command


def study_options(words: Mapping[str, Any], file: Path | None) -> StudyOptions:
    """The options of a study: those of a file, where there is one, and those that were given, which win."""
    values = {} if file is None else options_of_file(file)
    for entry in fields(StudyOptions):
        if (value := words.get(entry.name)) is None:
            continue
        if entry.name == "plan":
            value = plan_of(Path(value))
        elif entry.name == "feature_costs":
            value = column_costs(Path(value))
        elif entry.name == "blocks":
            value = blocks_of(value)
        elif isinstance(value, list):
            value = [name for text in value for name in read_names(text)]
        elif (read := info_of(entry).read) is not None:
            value = read(value)
        values[entry.name] = value
    return StudyOptions(**values)


def study_table(path: Path, target: str, options: StudyOptions, reading: Mapping[str, Any]) -> StudyData:
    """A file as a study needs it; `reading` says how a text file is written."""
    from ..data.ledger import Ledger
    from ..data.reading import read_table
    from ..studies.study_data import from_frame

    ledger, kept = Ledger(), (*options.keep, *options.features_in_any_case, *(options.ids or ()))
    roles = {"groups": options.groups, "site": options.site}
    frame = read_table(path, target=target, **roles, keep=kept, ledger=ledger, **reading)
    named = ("groups", "site", "drop", "ids", "keep", "include", "outcome", "time")
    columns = {name: getattr(options, name) for name in named} | {"include": options.features_in_any_case}
    return from_frame(frame, target, **columns, ledger=ledger)


def options_of_file(path: Path) -> dict[str, Any]:
    """Options from a TOML file, or those of the study in a result folder."""
    from ..data.file_access import check_file, format_path
    from ..studies.files import current_result

    if path.is_dir() or path.suffix == ".json":
        values = current_result(path).get("options")
    else:
        check_file(path, "name a TOML file or a folder that `marginsieve select` wrote")
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{format_path(path)} is not valid TOML: {one_line(error)}") from error
    if not isinstance(values, dict):
        raise InputError(f"{format_path(path)} has no options of a study")
    check_keys(values, format_path(path))
    return values


def plan_of(folder: Path) -> dict[str, Any]:
    """What the minutes of an earlier study decided."""
    from ..studies.files import current_result

    plan = current_result(folder)["protocol"]["plan"]
    return dict(plan)


def say_deleted(paths: list[Path]) -> None:
    for path in paths:
        say(f"deleted {path}", stderr=True)


def say_replaced(out: Path, command: str) -> str:
    """Tell of a folder that holds the result of another command; the command again."""
    from ..studies.files import read_result

    try:
        earlier = str(read_result(out)["how"]["command"] or "")
    except (InputError, OSError, LookupError, TypeError, AttributeError):  # none, or not as a study leaves it
        earlier = ""
    if earlier and earlier.removesuffix(" --fresh") != command.removesuffix(" --fresh"):
        say(f"note: {out} holds the result of another command, which will be replaced ({earlier})", stderr=True)
    return command


def load_module(name: str) -> None:
    """Import a module of the current folder, or an installed one, that registers tables and protocols."""
    import importlib
    import sys

    sys.path.insert(0, "")
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"--load names {name!r}, which cannot be imported: {error}") from error


def say_verified(folder: Path) -> None:
    """Look at every unit of a store; an error names what is damaged."""
    from contextlib import closing

    from ..engine.store import FILE, Store, changed_files, read_mark

    if read_mark(folder) is None or not (folder / FILE).is_file():
        raise InputError(f"there is no store of marginsieve in {str(folder)!r}")
    with closing(Store(folder, write=False)) as store:
        count, damaged = store.count(), [*store.damages(), *changed_files(folder)]
    if damaged:
        counted = "1 entry is" if len(damaged) == 1 else f"{len(damaged):,} entries are"
        raise InputError(f"{counted} damaged: {listing(damaged, 20)}; the command that made them makes them again")
    say(f"{many(count, 'unit')}, all as they were written")


def check_cells(samples: int, features: int) -> None:
    """Refuse a table that does not fit into memory as numbers and as text."""
    from ..data.cohort import refuse_cells

    refuse_cells(max(samples, 0), max(features, 0), COPIES_WRITTEN)


def write_cohort(path: Path, truth: Path, frame: pd.DataFrame, planted: dict[str, Any]) -> None:
    """A generated table and its truth; replaces them only where they are as an earlier call left them."""
    import hashlib
    import json

    from ..data.file_access import check_file, file_error, format_path, write_together

    if path.suffix.lower() != ".csv":
        raise InputError(f"the table is to be {format_path(path)}; it must end in .csv")
    content = frame.to_csv(index=False).encode()
    try:
        for file in (path, truth):
            if file.is_symlink() or file.exists():
                check_file(file)
                if not _as_generated(path, truth):
                    raise InputError(
                        f"{format_path(file)} is there already and was not made by this command: name another file"
                    )
        mark = {**planted, "marginsieve": "cohort", "sha256": hashlib.sha256(content).hexdigest()}
        write_together(path.parent, {path.name: content, truth.name: (json.dumps(mark, indent=2) + "\n").encode()})
    except OSError as error:
        raise file_error(error, f"{format_path(path)} cannot be written") from error


def column_costs(path: Path) -> dict[str, float]:
    """What columns cost, from a table whose first column names them and whose second has numbers."""
    from ..data.file_access import format_path
    from ..data.reading import read_table

    frame = read_table(path, whole=True)
    if frame.shape[1] != 2:
        counted = many(frame.shape[1], "column")
        raise InputError(f"{format_path(path)} has {counted}; it must have two: the columns' names and their costs")
    names, costs = frame.iloc[:, 0], frame.iloc[:, 1]
    if costs.dtype.kind not in "iuf" or costs.isna().any():
        column = f"the column {frame.columns[1]!r} of {format_path(path)}"
        raise InputError(f"{column} must have a number in every row: the costs")
    if len(again := names[names.duplicated()]):
        raise InputError(f"{format_path(path)} names {listing(again.astype(str).tolist())} more than once")
    return dict(zip(names.astype(str), costs.astype(float), strict=True))


def blocks_of(text: str) -> tuple[str, ...] | dict[str, str]:
    """Prefixes, or the block of each column from a table whose first column names it and whose second the block."""
    from ..data.reading import read_table

    path = Path(text)
    if not path.is_file():
        return read_names(text)
    frame = read_table(path, whole=True)
    if frame.shape[1] != 2:
        raise InputError(
            f"{str(path)!r} has {many(frame.shape[1], 'column')}; it must have two: the columns' names and their blocks"
        )
    return dict(zip(frame.iloc[:, 0].astype(str), frame.iloc[:, 1].astype(str), strict=True))


def truth_of(path: Path) -> Truth:
    """What was planted in a generated table."""
    import json

    from ..data.cohort import Truth
    from ..data.file_access import check_file, file_error, format_path

    check_file(path, "name the .truth.json that `marginsieve cohort` wrote")
    wrong = InputError(f"{format_path(path)} is not what `marginsieve cohort` writes beside its table")
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.pop("marginsieve") != "cohort":
            raise wrong
        known.pop("sha256")
        lists = {name: tuple(known[name]) for name in ("relevant", "categorical", "flipped")}
        pairs = tuple((str(a), str(b)) for a, b in known["interactions"])
        censoring = tuple(known.get("censoring", ()))  # tables of earlier versions have none
        return Truth(**lists, interactions=pairs, redundant=dict(known["redundant"]), censoring=censoring)
    except OSError as error:
        raise file_error(error, f"{format_path(path)} cannot be read") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise wrong from error


def _as_generated(path: Path, truth: Path) -> bool:
    """Whether a table is the one of which its truth was written."""
    import hashlib
    import json

    try:
        known = json.loads(truth.read_text(encoding="utf-8"))
        ours = isinstance(known, dict) and known.get("marginsieve") == "cohort"
        return ours and known["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, ValueError, KeyError):
        return False


def check_csv(path: Path, table: Path) -> None:
    """Where a table of results goes: a CSV file, and not the table that was given."""
    if path.resolve() == table.resolve():
        raise InputError(f"--out is {str(path)!r}, the table itself: name another file")
    if path.suffix.lower() != ".csv":
        raise InputError(f"--out is {str(path)!r}; it must end in .csv")


def ids_among(columns: Iterable[str], known: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Columns of a new table that are named like ids and are nothing that the model knows."""
    from ..studies.study_data import is_named_id

    other = {*known, *taken}
    return [name for name in columns if is_named_id(name) and name not in other]


def cohort_names(paths: Sequence[Path]) -> list[str]:
    """What cohorts are called: their files' names, or their paths where these are equal."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if again := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{listing(again)} was given more than once: name each cohort once")
    return names


def outcome_of(
    frame: pd.DataFrame, column: str, path: Path, model: FittedSelector, time: str | None
) -> pd.Series | pd.DataFrame:
    """The outcomes of a cohort; where these are times to an event the times and events, of rows that have both."""
    from ..data.file_access import format_path
    from ..studies.target_column import read_survival

    of_times = outcome_name(model) == "survival"
    if of_times and time is None:
        raise InputError(
            "the model predicts times to an event: validate the folder of its study, which names their column"
        )
    for name, hint in ((column, "name it (--target)"), (time, "call it that, as in the study"))[: 1 + of_times]:
        if name not in frame.columns:
            raise InputError(
                f"{format_path(path)} has no column {name!r}, which holds the outcome: {hint}, or use "
                "`marginsieve predict` for rows without outcomes"
            )
    if not of_times:
        return frame[column]
    known = frame[[column, time]].notna().all(axis=1)
    return read_survival(frame[known], column, time)[0].reindex(frame.index)


def outcome_name(model: FittedSelector) -> str:
    """The name of the outcome that a model predicts."""
    from ..fitting.settings import outcome_of as read_outcome

    return read_outcome(model).name


def find_outcomes(model: Path, frame: pd.DataFrame, fitted: FittedSelector) -> list[str]:
    """What `predict` says where the table seems to have outcomes: the study's target, or a column of the classes."""
    from ..studies.files import target_beside

    column = target_beside(model)
    if column is None or column not in frame.columns or column in fitted.columns_.names:
        return []
    return [
        f"the table has a column {column!r}, as the training table had for the outcome: `marginsieve validate` scores "
        "the model on it"
    ]
