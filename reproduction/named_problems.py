"""The papers' binary problems by the papers' names, read from a folder of Parquet files."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from marginsieve.data import NamedTable, make_cohort, register_tables
from marginsieve.errors import InputError, listing

VARIABLE = "MARGINSIEVE_DATA"

#: name -> file, labels of the positive class, what the positive class is called, and other names that the papers use
with (files(__package__) / "problems.csv").open(encoding="utf-8") as _handle:
    PROBLEMS = {row["name"]: row for row in csv.DictReader(_handle)}
ALIASES = {alias: name for name, row in PROBLEMS.items() for alias in row["aliases"].split("|") if alias}

#: classes that are left out of a problem
LEFT_OUT = {"ARRHYTHMIA430": ("other",)}

CLINICAL = 7  # columns of van 't Veer's table that are not genes; they come first
GAPS = 0.3  # a sample with more missing cells is left out of 77 (one has 10,896 of 24,481)
FILTERED = 4348  # genes of van 't Veer's table in the paper


def _seventy_seven(frame: pd.DataFrame) -> pd.DataFrame:
    """van 't Veer's table without the sample that lacks most genes, and without genes that have no value."""
    frame = frame[frame.isna().mean(axis=1) <= GAPS].reset_index(drop=True)
    return frame.dropna(axis=1, how="all")


def _largest_spread(frame: pd.DataFrame) -> pd.DataFrame:
    """The clinical columns and the genes with the largest standard deviation: the paper's filter is not public."""
    frame = _seventy_seven(frame)
    spread = frame.iloc[:, CLINICAL:-1].std().to_numpy()
    genes = CLINICAL + np.sort(np.argsort(-spread, kind="stable")[:FILTERED])
    return frame.iloc[:, [*range(CLINICAL), *genes.tolist(), frame.shape[1] - 1]]


def _with_test_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The genes of the 78 samples and of the 19 that were the test set, without genes that have no value."""
    both = pd.concat([frame, pd.read_parquet(folder() / "vantveer_test19.parquet")], ignore_index=True)
    return both.iloc[:, CLINICAL:].dropna(axis=1, how="all")


def _training_set(frame: pd.DataFrame) -> pd.DataFrame:
    """Golub's 38 training samples, which are the first rows of the file."""
    return frame.iloc[:38]


def _genes_alone(frame: pd.DataFrame) -> pd.DataFrame:
    """The genes of the 78 samples that have any value."""
    return frame.iloc[:, CLINICAL:].dropna(axis=1, how="all")


#: what is done to a file before it is a problem
ADAPTED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "VANTVEER": _seventy_seven,
    "VANTVEER4348": _largest_spread,
    "BREAST": _with_test_rows,
    "BREAST78": _genes_alone,
    "LEUKEMIA38": _training_set,
}
FURTHER = {"BREAST": ("vantveer_test19",)}  # files that a problem needs beside its own

#: name -> settings of `make_cohort`: a table like one of the papers' that is not public
GENERATED: dict[str, dict[str, Any]] = {
    "COHORT77": {
        "n_samples": 77,
        "n_features": 4348,
        "n_relevant": 30,
        "n_redundant": 30,
        "n_categorical": 7,
        "n_categorical_relevant": 3,
        "prevalence": 33 / 77,
        "effect": 0.6,
        "random_state": 0,
    }
}


def names() -> list[str]:
    """The names that `load` takes."""
    return [*PROBLEMS, *GENERATED]


def folder() -> Path:
    """Where the files are looked for: the folder in MARGINSIEVE_DATA, else the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(VARIABLE) or Path(cache) / "marginsieve")


def present(labels: Sequence[str]) -> list[str]:
    """Those of the data sets whose files are here, or that are generated."""
    return [name for name in labels if name in GENERATED or _is_here(ALIASES.get(name, name))]


def _is_here(key: str) -> bool:
    further = (folder() / f"{name}.parquet" for name in FURTHER.get(key, ()))
    return all(path.is_file() for path in (_file(key), *further))


def _file(key: str) -> Path:
    return folder() / f"{PROBLEMS[key]['file']}.parquet"


def load(name: str) -> NamedTable:
    """Read one of the papers' binary problems; columns and values are as in the file, nothing is scaled or imputed."""
    key = name.strip().upper().replace(" ", "").replace("-", "")
    key = ALIASES.get(key, key)
    if key in GENERATED:
        cohort = make_cohort(**GENERATED[key])
        return NamedTable(key, cohort.X, cohort.y, "case")
    if key not in PROBLEMS:
        raise InputError(f"there is no data set {name!r}; the names are {listing(names(), most=50)}")
    labels, positive, path = PROBLEMS[key]["labels"].split("|"), PROBLEMS[key]["positive"], _file(key)
    if not path.is_file():
        raise FileNotFoundError(
            f"{key} needs {path.name}, which is not in {path.parent}. The files are not shipped with marginsieve: "
            f"docs/data.md says where each comes from; put it there (one row per sample, the label in a column "
            f"'target'), or name another folder in the environment variable {VARIABLE}"
        )
    frame = pd.read_parquet(path)
    if key in LEFT_OUT:
        frame = frame[~frame["target"].isin(LEFT_OUT[key])].reset_index(drop=True)
    if key in ADAPTED:
        frame = ADAPTED[key](frame)
    target = frame.pop("target").astype(str)
    y = pd.Series([positive if label in labels else "rest" for label in target], index=frame.index, name="target")
    return NamedTable(key, frame, y, positive)


register_tables([*names(), *ALIASES], load)
