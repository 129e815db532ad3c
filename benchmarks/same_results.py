"""Whether two versions of the library answer alike: every recipe on small tables, a study, suspects, nested scores.

A refactoring changes no selection and no value. `python -m benchmarks.same_results write FILE` writes what the version
on the path answers, in about a minute of one core; `python -m benchmarks.same_results compare OLD NEW` says where two
files differ: selections and rankings must be equal, values within 1e-6. A study's numbers may move to other keys, so
those that are not where they were are compared without their places. Only names that every version has are used, so the
same file runs on an old checkout:

    PYTHONPATH=../old/src:. python -m benchmarks.same_results write old.json

With MARGINSIEVE_DATA the cheap recipes are fitted on COLON's first 300 columns and on SONAR as well.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import marginsieve
from marginsieve import InputError, recipes

TOLERANCE = 1e-6
SMALL: dict[str, dict[str, Any]] = {  # less work, the same code
    "fs_svm": {"solver": "fast", "budget": 4, "shakes": 0},
    "ramp_fs": {"solver": "fast", "budget": 4, "shakes": 0, "resamples": 2},
    "ramp_svm": {"points": 5, "resamples": 2},
    "l1_cssvm": {"points": 12},
    "svm_l1": {"points": 8},
    "fsv": {"points": 4},
    "symon": {"improvisations": 20, "memory": 5},
    "stable_fisher": {"ensemble": 5},
}
SIZED = ("fs_svm", "ramp_fs")  # their budget is the number of features
CHEAP = ("fisher", "fast", "su", "relieff", "svm_rfe", "clinical_rfe", "l1_cssvm", "kp_svm", "two_views")
SCORED = ("fisher", "svm_rfe", "two_views")
OF_THE_RUN = ("schema", "second", "minute", "time", "date", "version", "cpu", "memory", "commit", "host", "python")


def numbers() -> tuple[pd.DataFrame, Any]:
    """60 x 200 with a class of 15 rows."""
    rng = np.random.default_rng(1)
    y = rng.permutation(np.where(np.arange(60) < 15, "case", "control"))
    X = rng.normal(size=(60, 200)) * rng.uniform(0.2, 5.0, size=200)
    X[:, :6] += np.where(y == "case", 1.3, 0.0)[:, None] * X[:, :6].std(axis=0)
    X[:, 6] = X[:, 0] + 0.3 * rng.normal(size=60)
    return pd.DataFrame(X, columns=[f"g{j:03d}" for j in range(200)]), y


def mixed() -> tuple[pd.DataFrame, Any]:
    """80 x 30 with numbers, categories, yes and no, and 4 % gaps."""
    rng = np.random.default_rng(2)
    y = rng.permutation(np.where(np.arange(80) < 28, "bad", "good"))
    bad = y == "bad"
    frame = pd.DataFrame(rng.normal(size=(80, 20)), columns=[f"n{j:02d}" for j in range(20)])
    frame["n00"] += 1.2 * bad
    frame["n01"] -= 1.0 * bad
    for j in range(7):
        frame[f"c{j}"] = rng.choice([*"uvwxyz"[: 3 + j % 3]], size=80)
    frame.loc[bad & (rng.random(80) < 0.6), "c0"] = "u"
    for j in range(3):
        frame[f"b{j}"] = np.where(rng.random(80) < 0.4 + 0.3 * (bad if j == 0 else 0), "yes", "no")
    gaps = rng.random(frame.shape) < 0.04
    return frame.mask(gaps), y


def three_classes() -> tuple[pd.DataFrame, Any]:
    """90 x 40 with classes of 45, 27 and 18 rows."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.repeat(["a", "b", "c"], [45, 27, 18]))
    X = rng.normal(size=(90, 40))
    for k, name in enumerate("abc"):
        X[:, 2 * k : 2 * k + 2] += 1.4 * (y == name)[:, None]
    return pd.DataFrame(X, columns=[f"x{j:02d}" for j in range(40)]), y


def shared_tables() -> dict[str, tuple[pd.DataFrame, Any]]:
    """COLON's first 300 columns and SONAR, where MARGINSIEVE_DATA names their folder."""
    folder = os.environ.get("MARGINSIEVE_DATA")
    if not folder:
        return {}
    out = {}
    for name, columns in (("colon", 300), ("sonar", 60)):
        frame = pd.read_parquet(Path(folder) / f"{name}.parquet")
        out[name] = frame.iloc[:, :columns].astype(float), frame["target"].to_numpy(dtype=object).astype(str)
    return out


def answer(name: str, X: pd.DataFrame, y: Any, **settings: Any) -> dict[str, Any]:
    """What a recipe chooses and says of its own training rows."""
    try:
        selector = recipes.get(name)(random_state=0, probability=True, **SMALL.get(name, {}), **settings).fit(X, y)
    except (InputError, TypeError):  # TypeError: this recipe has no choice of kernel
        return {"refused": True} if "kernel" in settings else answer(name, X, y, **settings, kernel="clinical")
    return {
        "selected": [str(column) for column in selector.get_feature_names_out()],
        "ranking": np.asarray(selector.ranking_).tolist(),
        "threshold": np.asarray(selector.threshold_, dtype=float).ravel().tolist(),
        "decision": np.asarray(selector.decision_function(X), dtype=float).ravel().tolist(),
        "probability": np.asarray(selector.predict_proba(X), dtype=float).ravel().tolist(),
    }


def walk_numbers(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """(path, number) of every number in a result but those of the run itself."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not any(word in str(key).lower() for word in OF_THE_RUN):
                yield from walk_numbers(inner, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for k, inner in enumerate(value):
            yield from walk_numbers(inner, (*path, str(k)))
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        yield "/".join(path), float(value)


def answers() -> dict[str, Any]:
    """Everything, by what was asked; says on the way what took how long."""
    generated = {"numbers": numbers(), "mixed": mixed(), "three": three_classes()}
    out: dict[str, Any] = {}

    def ask(key: str, call: Any) -> None:
        since = time.process_time()
        out[key] = call()
        print(f"{key}: {time.process_time() - since:.1f} s", file=sys.stderr, flush=True)

    for table, (X, y) in generated.items():
        for name in recipes.names():
            fixed = {} if name in SIZED else {"n_features_to_select": 8}
            ask(f"fit {table} {name}", lambda X=X, y=y, name=name, fixed=fixed: answer(name, X, y, **fixed))
            if name in CHEAP:
                ask(f"auto {table} {name}", lambda X=X, y=y, name=name: answer(name, X, y, cv=3))
    for table, (X, y) in shared_tables().items():
        for name in CHEAP:
            ask(f"fit {table} {name}", lambda X=X, y=y, name=name: answer(name, X, y, n_features_to_select=10))
    for table in ("numbers", "three"):
        X, y = generated[table]
        for name in SCORED:
            ask(f"nested {table} {name}", lambda X=X, y=y, name=name: nested(name, X, y))
    for table, (X, y) in generated.items():
        ask(f"suspects {table}", lambda X=X, y=y: suspects(X, y))
    X, y = generated["mixed"]
    asked = {"cv": 3, "n_repeats": 1, "random_state": 0, "n_jobs": 1}
    ask("study mixed", lambda: study(X, y, methods="clinical_rfe,two_views", **asked))
    X, y = generated["numbers"]
    ask("study numbers", lambda: study(X.iloc[:, :60], y, methods="fisher,svm_rfe", **asked))
    return out


def nested(name: str, X: pd.DataFrame, y: Any) -> dict[str, Any]:
    """Scores of nested cross-validation, with their intervals."""
    selector = recipes.get(name)(random_state=0, n_features_to_select=8)
    scores = marginsieve.nested_cv(selector, X, y, cv=3, n_repeats=1).scores()
    return {
        part: {key: float(value) for key, value in getattr(scores, part).items()} for part in ("value", "low", "high")
    }


def study(X: pd.DataFrame, y: Any, **asked: Any) -> dict[str, float]:
    """The numbers of a study by their path."""
    return dict(walk_numbers(marginsieve.study(X, y, **asked).result))


def suspects(X: pd.DataFrame, y: Any) -> dict[str, Any]:
    """The columns of the table of suspects."""
    frame = marginsieve.find_suspects(X, y, random_state=0)
    return {str(name): column.tolist() for name, column in frame.items()}


# -- comparing ---------------------------------------------------------------------------------------------------------


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Where two values differ: texts at all, numbers by more than the tolerance."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            if key in old and key in new:
                yield from differences(old[key], new[key], f"{path}/{key}")
            else:
                yield f"{path}/{key}: only in the {'old' if key in old else 'new'}"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        wrong = [
            text for k, pair in enumerate(zip(old, new, strict=True)) for text in differences(*pair, f"{path}/{k}")
        ]
        yield from wrong[:2]
        if len(wrong) > 2:
            yield f"{path}: {len(wrong)} of {len(old)} differ"
    elif isinstance(old, (int, float)) and isinstance(new, (int, float)):
        nowhere = math.isnan(old) and math.isnan(new)
        if not (nowhere or math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=TOLERANCE)):
            yield f"{path}: {old} and {new}"
    elif old != new:
        yield f"{path}: {str(old)[:80]} and {str(new)[:80]}"


def moved_numbers(old: dict[str, float], new: dict[str, float]) -> tuple[list[str], list[str]]:
    """Numbers of the old study that the new one has nowhere, and those that only the new one has."""
    same = {path for path in old.keys() & new.keys() if math.isclose(old[path], new[path], abs_tol=TOLERANCE)}
    rest = [(value, path) for path, value in new.items() if path not in same]
    lost = []
    for path in (path for path in old if path not in same):
        last = path.rsplit("/", 1)[-1]
        near = [item for item in rest if math.isclose(item[0], old[path], rel_tol=TOLERANCE, abs_tol=TOLERANCE)]
        if near:
            rest.remove(min(near, key=lambda item: item[1].rsplit("/", 1)[-1] != last))
        else:
            lost.append(f"{path}: {old[path]}")
    return lost, [f"{path}: {value}" for value, path in rest]


def compare(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Print where two files of answers differ, and how many do."""
    wrong = 0
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new:
            found = [f"only in the {'old' if key in old else 'new'}"]
        elif key.startswith("study"):
            found, added = moved_numbers(old[key], new[key])
            print(f"{key}: {len(old[key])} numbers, {len(found)} nowhere any more, {len(added)} only in the new")
            for text in added[:20]:
                print(f"    new {text}")
        else:
            found = list(differences(old[key], new[key]))
        wrong += bool(found)
        for text in found[:40]:
            print(f"{key}{text if text.startswith('/') else ' ' + text}")
    print(f"{len(old)} answers, {wrong} differ")
    return int(wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("file", type=Path)
    files = commands.add_parser("compare")
    files.add_argument("old", type=Path)
    files.add_argument("new", type=Path)
    line = parser.parse_args()
    if line.command == "write":
        warnings.simplefilter("ignore")
        line.file.write_text(json.dumps(answers(), indent=1), encoding="utf-8")
        return 0
    return compare(*(json.loads(path.read_text(encoding="utf-8")) for path in (line.old, line.new)))


if __name__ == "__main__":
    raise SystemExit(main())
